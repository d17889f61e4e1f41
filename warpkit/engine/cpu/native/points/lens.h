// The formulas of lenses on vectors of float64. Operations and roundings have the order of
// engine/arithmetic and definitions/lens_models.py, so the bits are equal.
//
// A direction (x, y) is a pixel minus the centre, divided by the focal length. With q = x^2 + y^2,
// a brown lens maps it to (x, y) f(q), with f a ratio of cubics, plus two terms that are not
// symmetric about the centre; a tilted sensor adds a perspective. A fisheye maps it to (x, y) d /
// r, with r the square root of q, and d a polynomial in the angle atan r.
#pragma once
#include "points/maps_call.h"
#include "shared/sums.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

using Doubles = Vec<double, LANES<double>>;
using Floats = Vec<float, LANES<double>>;  // as many numbers: half a register
using Ints = Vec<int32_t, LANES<double>>;
using Mask = Vec<int64_t, LANES<double>>;
constexpr int WIDE = LANES<double>;

struct Place {
    Doubles x, y;
};

INLINE bool any(Mask mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask);
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#elif defined(__x86_64__)
    return !_mm_testz_si128((__m128i)mask, (__m128i)mask);
#else
    return mask[0] | mask[1];
#endif
}

INLINE Doubles root(Doubles v) {
#if defined(__AVX512F__)
    return (Doubles)_mm512_maskz_sqrt_pd(0xff, (__m512d)v);  // GCC 12 warns without a mask
#elif defined(__AVX2__)
    return (Doubles)_mm256_sqrt_pd((__m256d)v);
#elif defined(__x86_64__)
    return (Doubles)_mm_sqrt_pd((__m128d)v);
#else
    return (Doubles)vsqrtq_f64((float64x2_t)v);
#endif
}

// a * b + c, rounded once on every processor. Without an instruction for it, the rounding errors of
// product and sum are added (Dekker, Knuth). The result differs only for ties made by the first
// rounding, once in 2^50 times.
INLINE Doubles fma_once(Doubles a, Doubles b, Doubles c) {
#if defined(__FMA__) || defined(__aarch64__)
    return fma(a, b, c);
#else
    constexpr double SPLIT = 134217729.0;  // 2^27 + 1
    Doubles product = a * b, wide_a = SPLIT * a, wide_b = SPLIT * b;
    Doubles a_high = wide_a - (wide_a - a), b_high = wide_b - (wide_b - b);
    Doubles a_low = a - a_high, b_low = b - b_high;
    Doubles lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    Doubles total = product + c, back = total - product;
    lost += (product - (total - back)) + (c - back);
    return total + (lost - lost == 0 ? lost : Doubles{});  // if that is finite
#endif
}

// The rows of a matrix times (x, y, 1).
INLINE Doubles row_at(const double *row, Doubles x, Doubles y) {
    return row[0] * x + row[1] * y + row[2];
}

// Applies a sensor's matrix to a direction, and divides by the third number, or by 1 if that is 0.
INLINE Place turned(const double *m, Place p) {
    Doubles w = row_at(m + 6, p.x, p.y);
    Doubles per = 1 / (w == 0 ? Doubles{} + 1 : w);
    return {per * row_at(m, p.x, p.y), per * row_at(m + 3, p.x, p.y)};
}

// The distorted direction of a brown lens with n coefficients.
INLINE Place brown(const LensNumbers &lens, int64_t n, Place p) {
    const double *k = lens.k;
    Doubles xx = p.x * p.x, yy = p.y * p.y, q = xx + yy;
    Doubles factor = n < 5 ? 1 + (k[1] * q + k[0]) * q : 1 + ((k[4] * q + k[1]) * q + k[0]) * q;
    if (n >= 8) {
        constexpr double POLE = 1e-100;  // instead of 0, as in definitions/lens_models.py
        Doubles bottom = 1 + ((k[7] * q + k[6]) * q + k[5]) * q;
        factor /= bottom == 0 ? Doubles{} + POLE : bottom;
    }
    Doubles xy = 2 * p.x * p.y;
    Doubles u = p.x * factor + k[2] * xy + k[3] * (q + 2 * xx);
    Doubles v = p.y * factor + k[2] * (q + 2 * yy) + k[3] * xy;
    if (n >= 12) {
        u = u + k[8] * q + k[9] * q * q;
        v = v + k[10] * q + k[11] * q * q;
    }
    return n < 14 ? Place{u, v} : turned(lens.tilt, {u, v});
}

// The C library's arctangent, which OpenCV also uses.
INLINE Doubles arctangent(Doubles v) {
    double found[WIDE];
    for (int k = 0; k < WIDE; k++) found[k] = __builtin_atan(v[k]);
    return load<Doubles>(found);
}

// atan(r) / r with r^2 = q: a series near 0, where the quotient is 0 / 0.
INLINE Doubles angle_ratio(Doubles q) {
    constexpr double SERIES_BELOW = 1e-2;
    Mask small = q < SERIES_BELOW;
    Doubles ratio{};
    if (any(small)) {
        Doubles near = small ? q : Doubles{};
        for (int i = 8; i >= 0; i--) ratio = ratio * near + (i % 2 ? -1.0 : 1.0) / (2 * i + 1);
    }
    if (any(~small)) {
        Doubles r = root(small ? Doubles{} + 1 : q);
        ratio = small ? ratio : arctangent(r) / r;
    }
    return ratio;
}

// The distorted direction of a fisheye.
INLINE Place fisheye(const LensNumbers &lens, Place p) {
    const double *k = lens.k;
    Doubles q = p.x * p.x + p.y * p.y, ratio = angle_ratio(q), square = q * ratio * ratio;
    Doubles bent = 1 + (((k[3] * square + k[2]) * square + k[1]) * square + k[0]) * square;
    return {p.x * (ratio * bent), p.y * (ratio * bent)};
}

// -- points in memory --

// Rounds half to even; NaN and numbers out of range become the smallest integer, as on x86.
INLINE Ints rounded(Doubles v) {
#if defined(__AVX512F__)
    return (Ints)_mm512_maskz_cvtpd_epi32(0xff, (__m512d)v);
#elif defined(__AVX2__)
    return (Ints)_mm256_cvtpd_epi32((__m256d)v);
#elif defined(__x86_64__)
    typedef int32_t Four __attribute__((vector_size(16)));
    Four four = (Four)_mm_cvtpd_epi32((__m128d)v);
    return __builtin_shufflevector(four, four, 0, 1);
#else
    Doubles whole = (Doubles)vrndnq_f64((float64x2_t)v);
    Mask fits = (whole >= -2147483648.0) & (whole <= 2147483647.0);
    return convert<Ints>(fits ? whole : Doubles{} - 2147483648.0);
#endif
}

struct Even {
    static constexpr int at(int k) { return 2 * k; }
};
struct Odd {
    static constexpr int at(int k) { return 2 * k + 1; }
};
template <int N> struct Zip {
    static constexpr int at(int k) { return k / 2 + k % 2 * N; }
};

template <class V> INLINE auto zip(V a, V b) { return pick<2 * COUNT<V>, Zip<COUNT<V>>>(a, b); }

// The first n numbers of a vector, which has at least that many.
template <class V, class T> INLINE void store_some(T *to, V v, int64_t n) {
    if (n >= COUNT<V>) return store(to, v);
    T some[COUNT<V>];
    store(some, v);
    memcpy(to, some, size_t(n) * sizeof(T));
}

template <class T> INLINE Place load_places(const T *from, int64_t n) {
    using Numbers = Vec<T, 2 * WIDE>;
    Numbers v{};
    if (n >= WIDE) v = load<Numbers>(from);
    else memcpy(&v, from, size_t(n) * 2 * sizeof(T));
    return {convert<Doubles>(pick<WIDE, Even>(v, v)), convert<Doubles>(pick<WIDE, Odd>(v, v))};
}

template <class T> INLINE void store_places(T *to, Place p, int64_t n) {
    using Numbers = Vec<T, WIDE>;
    store_some(to, zip(convert<Numbers>(p.x), convert<Numbers>(p.y)), 2 * n);
}

// Applies a function to the points of some units, in their type.
template <class T, class Function>
INLINE void each_place(const MapsCall &call, int64_t begin, int64_t end, Function function) {
    const T *from = at<T>(call.first);
    T *to = at<T>(call.out);
    int64_t stop = least(end * POINTS_AT_ONCE, call.count);
    for (int64_t i = begin * POINTS_AT_ONCE; i < stop; i += WIDE) {
        int64_t n = least<int64_t>(stop - i, WIDE);
        store_places(to + 2 * i, function(load_places(from + 2 * i, n)), n);
    }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
