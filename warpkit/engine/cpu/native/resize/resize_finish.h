// Converts a sum to a number of the result, or of the second pass's input.
#pragma once
#include "resize/resize_call.h"
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// Lanes of a vector of sums, and rows that are transposed together.
template <class S> constexpr int SUMS = 64 / int(sizeof(S));
template <class S> using Sums = Vec<S, SUMS<S>>;

// The first n of N numbers; the others are 0 and not accessed.
template <class V, class T> INLINE V load_numbers(const T *p, int64_t n) {
    if (n >= COUNT<V>) return load<V>(p);
    V v{};
    memcpy(&v, p, size_t(n) * sizeof(T));
    return v;
}
template <class V, class T> INLINE void store_numbers(T *p, V v, int64_t n) {
    if (n >= COUNT<V>) return store(p, v);
    memcpy(p, &v, size_t(n) * sizeof(T));
}

// Rounds half to even and saturates to an integer type's range. Adding 1.5 * 2^23 to a float32
// leaves no bit for a fraction, for numbers far beyond 16 bits; likewise 1.5 * 2^52 for float64.
template <class B, class V> INLINE Vec<B, COUNT<V>> rounded(V v) {
    using T = Element<V>;
    constexpr T low = B(-1) < B(0) ? -(1 << (8 * sizeof(B) - 1)) : 0;
    constexpr T high = low + T((1 << (8 * sizeof(B))) - 1);
    constexpr T whole = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);
    v = smaller(larger(v, splat<V>(low)), splat<V>(high));
    v = (v + whole) - whole;
    return convert<Vec<B, COUNT<V>>>(convert<Vec<int32_t, COUNT<V>>>(v));
}

// Rounded half away from zero and saturated: truncated after a step of a half, as in SciPy.
template <class B> INLINE Vec<B, 8> half_away(Vec<double, 8> v) {
    constexpr double low = B(-1) < B(0) ? -(1 << (8 * sizeof(B) - 1)) : 0;
    constexpr double high = low + double((1 << (8 * sizeof(B))) - 1);
    v = v + (v < 0 ? splat<Vec<double, 8>>(-0.5) : splat<Vec<double, 8>>(0.5));
    v = smaller(larger(v, splat<Vec<double, 8>>(low)), splat<Vec<double, 8>>(high));
    return convert<Vec<B, 8>>(convert<Vec<int32_t, 8>>(v));
}

// Divided by 2^bits, half up, saturated to a byte. The 32-bit sum wraps, as OpenCV's does.
INLINE Vec<uint8_t, 16> shifted(Vec<uint32_t, 16> sum, int bits) {
    using I = Vec<int32_t, 16>;
    I v = (I)(sum + (1u << (bits - 1))) >> bits;
    return convert<Vec<uint8_t, 16>>(smaller(larger(v, I{}), splat<I>(255)));
}

// Half up, for a sum in the type's range: OpenCV's exact bilinear of 16 bits, whose 48-bit sums fit
// in float64.
template <class B> INLINE Vec<B, 8> half_up(Vec<double, 8> v) {
    using I = Vec<int32_t, 8>;
    v = v + 0.5;
    I whole = convert<I>(v), above = convert<I>(convert<Vec<double, 8>>(whole) > v);
    return convert<Vec<B, 8>>(whole + above);  // truncation makes negative numbers 1 too large
}

template <class B, class S> INLINE Vec<B, SUMS<S>> finish(const ResizeCall &p, Sums<S> sum) {
    constexpr bool FLOATS = std::is_floating_point<S>::value;
    if constexpr (FLOATS && std::is_floating_point<B>::value) return convert<Vec<B, SUMS<S>>>(sum);
    else if constexpr (FLOATS) {
        if constexpr (sizeof(S) == 8) {
            if (p.finish == HALF_UP) return half_up<B>(sum);
            if (p.finish == HALF_AWAY) return half_away<B>(sum);
        }
        return rounded<B>(sum);
    } else if constexpr (sizeof(B) == 4) return (Vec<B, 16>)sum;
    else if constexpr (sizeof(B) == 2) return convert<Vec<B, 16>>(sum >> 4);  // LINEAR
    else if (p.finish == SCALED) {
        float share;
        memcpy(&share, &p.share, sizeof share);
        return rounded<B>(convert<Vec<float, 16>>((Vec<int32_t, 16>)sum) * share);
    } else return shifted(sum, int(p.bits));
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
