// Multiply-adds rounded once on every processor, where other libraries' bits depend on it.
#pragma once
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// a * b + c of float32. Without an instruction for it, the product is exact in float64. If the sum
// is not exact, its last bit is made odd ("rounding to odd"), so the second rounding, to float32,
// rounds as if it were the only one.
template <class V> INLINE V fma_single(V a, V b, V c) {
#if defined(__FMA__)
    return fma(a, b, c);
#else
#if defined(__aarch64__)
    constexpr bool WHOLE = sizeof(V) >= REGISTER;
#else
    constexpr bool WHOLE = false;  // part of a register, or no instruction
#endif
    if constexpr (WHOLE) return fma(a, b, c);
    else {
        using D = Vec<double, COUNT<V>>;
        using Wide = Vec<int64_t, COUNT<V>>;
        D product = convert<D>(a) * convert<D>(b), more = convert<D>(c), sum = product + more;
        D part = sum - product, lost = (product - (sum - part)) + (more - part);
        Wide bits = (Wide)sum, away = (lost > 0) == (sum > 0) ? Wide{} + 1 : Wide{} - 1;
        Wide inexact = (lost != 0) & (lost - lost == 0) & ((bits & 1) == 0);
        return convert<V>((D)(inexact ? bits + away : bits));
    }
#endif
}

// The same for float64: without an instruction, C's own function for each number.
template <class V> INLINE V fma_double(V a, V b, V c) {
#if defined(__FMA__) || defined(__aarch64__)
    return fma(a, b, c);
#else
    for (int k = 0; k < COUNT<V>; k++) c[k] = __builtin_fma(a[k], b[k], c[k]);
    return c;
#endif
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
