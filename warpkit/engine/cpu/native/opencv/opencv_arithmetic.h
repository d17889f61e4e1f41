// OpenCV's sums, for one pixel (T a number) or a vector of pixels (T a vector), written once.
//
// `numbers` are the taps of one channel, row by row. The order of every operation is OpenCV's, so
// the bits are equal; `arithmetic/opencv4_sums.py` and `opencv5.py` describe its origin.
#pragma once
#include "opencv/opencv_call.h"
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int L = LANES<float>;
using F = Vec<float, L>;
using I = Vec<int32_t, L>;
using W = Vec<double, L>;  // two registers, or the compiler's equivalent

// -- numbers --

// a * b + c, rounded once everywhere. Without an instruction for it, the product is exact in
// float64, where the sum is rounded to odd; rounding that to float32 then equals a single rounding.
template <class T> INLINE T fused(T a, T b, T c) {
#if defined(__FMA__) || defined(__aarch64__)
    if constexpr (sizeof(T) == 4) return __builtin_fmaf(a, b, c);
    else return fma(a, b, c);
#else
    using D_ = std::conditional_t<sizeof(T) == 4, double, W>;
    using B = std::conditional_t<sizeof(T) == 4, int64_t, Vec<int64_t, L>>;
    auto wide = [](T v) {
        if constexpr (sizeof(T) == 4) return double(v);
        else return convert<W>(v);
    };
    D_ product = wide(a) * wide(b), addend = wide(c), total = product + addend;
    D_ back = total - product, lost = (product - (total - back)) + (addend - back);
    B bits;
    memcpy(&bits, &total, sizeof bits);
    if constexpr (sizeof(T) == 4) {
        if (lost != 0 && lost - lost == 0 && !(bits & 1))
            bits += (lost > 0) == (total > 0) ? 1 : -1;
        memcpy(&total, &bits, sizeof bits);
        return float(total);
    } else {
        B inexact = (lost != 0.0) & (lost - lost == 0.0) & ((bits & 1) == 0);
        B same = (lost > 0.0) == (total > 0.0);
        bits += inexact & (same ? B{} + 1 : B{} - 1);
        memcpy(&total, &bits, sizeof bits);
        return convert<T>(total);
    }
#endif
}

// Rounded half to even, for numbers well below 2^22.
template <class T> INLINE T rounded(T v) {
    constexpr float big = 12582912;  // 1.5 * 2^23: its last bit is 1
    return (v + big) - big;
}

// A result in the range of the image's type, rounded half to even and saturated, as a float.
template <class T> INLINE T shown(T v, float low, float high) {
    v = v < low ? T{} + low : v;
    v = v > high ? T{} + high : v;
    return rounded(v);
}

// -- OpenCV 5's float path --

template <class T> INLINE T bilinear5(const T *numbers, T tx, T ty) {
    T upper = fused(tx, numbers[1] - numbers[0], numbers[0]);
    T lower = fused(tx, numbers[3] - numbers[2], numbers[2]);
    return fused(ty, lower - upper, upper);
}

// The weights of bicubic; `vector`: as in OpenCV's vector code.
template <class T> INLINE void weigh5(bool vector, T t, T *weight) {
    constexpr float a = -0.75f;
    T one = T{} + 1.0f, u = one - t;
    if (vector) weight[0] = a * (t * (u * u)), weight[3] = a * (u * (t * t));
    else weight[0] = (a * t) * (u * u), weight[3] = (a * (t * t)) * u;
    weight[1] = fused(fused(T{} + (a + 2), t, T{} - (a + 3)), t * t, one);
    weight[2] = ((one - weight[0]) - weight[1]) - weight[3];
}

template <class T> INLINE T bicubic5(bool vector, const T *numbers, const T *wx, const T *wy) {
    T total{};
    for (int r = 0; r < 4; r++) {
        const T *n = numbers + 4 * r;
        T line = vector ? fused(n[1], wx[1], n[0] * wx[0]) : fused(n[0], wx[0], n[1] * wx[1]);
        line = fused(n[3], wx[3], fused(n[2], wx[2], line));
        total = r ? fused(line, wy[r], total) : line * wy[0];
    }
    return total;
}

// -- OpenCV 4's fixed-point path --

template <class T, class U> INLINE T bilinear4(const T *numbers, const U *wx, const U *wy) {
    U w[] = {wy[0] * wx[0], wy[0] * wx[1], wy[1] * wx[0], wy[1] * wx[1]};
    return numbers[0] * w[0] + numbers[1] * w[1] + numbers[2] * w[2] + numbers[3] * w[3];
}

// The same sum in the order of its vector code.
template <class T> INLINE T bilinear4_fused(const T *numbers, const T *wx, const T *wy) {
    T w[] = {wy[0] * wx[0], wy[0] * wx[1], wy[1] * wx[0], wy[1] * wx[1]};
    T lower = fused(numbers[2], w[2], numbers[3] * w[3]);
    return fused(numbers[0], w[0], fused(numbers[1], w[1], lower));
}

// The weights of all taps: float32 products of the axes' weights, whatever the sum's type.
template <int TAPS, class T> INLINE void products(const T *wx, const T *wy, T *weight) {
    for (int r = 0; r < TAPS; r++)
        for (int k = 0; k < TAPS; k++) weight[r * TAPS + k] = wy[r] * wx[k];
}

// The sum of each row's products, and then of the rows.
template <int TAPS, class T, class U> INLINE T wide4(const T *numbers, const U *weight) {
    T total{};
    for (int r = 0; r < TAPS; r++) {
        T line = numbers[r * TAPS] * weight[r * TAPS];
        for (int k = 1; k < TAPS; k++) line += numbers[r * TAPS + k] * weight[r * TAPS + k];
        total += line;
    }
    return total;
}

// The same sum in the order of its vector code: four registers hold every fourth column.
template <int TAPS, class T> INLINE T wide4_fused(const T *numbers, const T *weight) {
    T part[4] = {};
    for (int n = 0; n < TAPS * TAPS; n++) part[n % 4] = fused(numbers[n], weight[n], part[n % 4]);
    return (part[0] + part[2]) + (part[1] + part[3]);
}

// -- bytes in fixed point: weights in units of 1 / 2^15; any order gives the same sum --

constexpr float UNITS = 32768;

// The weights as integers. They do not sum to 2^15: `correct` adds the deficit to one tap's weight.
template <int TAPS, class T, class U>
INLINE void whole_weights(const T *wx, const T *wy, U *weight) {
    for (int r = 0; r < TAPS; r++)
        for (int k = 0; k < TAPS; k++) {
            T exact = rounded((wy[r] * wx[k]) * UNITS);
            exact = exact > UNITS - 1 ? T{} + (UNITS - 1) : exact;
            if constexpr (sizeof(T) == 4) weight[r * TAPS + k] = int32_t(exact);
            else weight[r * TAPS + k] = convert<U>(exact);
        }
}

// The sum; correction: 4 * the deficit of one of the four central taps + the index of that tap.
template <int TAPS, class U> INLINE U whole_sum(const U *numbers, const U *weight, U correction) {
    constexpr int MIDDLE = TAPS / 2 * TAPS + TAPS / 2;
    U total = U{} + int32_t(UNITS) / 2;
    for (int n = 0; n < TAPS * TAPS; n++) total += numbers[n] * weight[n];
    const U *at = numbers + MIDDLE;
    U upper = (correction & 1) != 0 ? at[1] : at[0];
    U lower = (correction & 1) != 0 ? at[TAPS + 1] : at[TAPS];
    total += (correction >> 2) * ((correction & 2) != 0 ? lower : upper);
    total >>= 15;
    total = total < 0 ? U{} : total;
    return total > 255 ? U{} + 255 : total;
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
