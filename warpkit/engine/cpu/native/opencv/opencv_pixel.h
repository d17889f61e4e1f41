// One pixel at a time, for any border and type: pixels whose taps are not all inside the image, and
// every pixel of float64 images.
#pragma once
#include "opencv/opencv_tiles.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// Converts a result to the image's type; bytes in fixed point round half up.
template <class S, class T> INLINE void put(S *to, T value) {
    constexpr bool INTEGER = sizeof(S) < 4;
    if constexpr (INTEGER) {
        constexpr float low = S(-1) > 0 ? 0 : -(1 << (8 * sizeof(S) - 1));
        *to = S(int32_t(shown(float(value), low, low + ((1 << (8 * sizeof(S))) - 1))));
    } else *to = S(value);
}

// Which pixels show only the border: those without a tap inside the image, under OpenCV 4's
// transparent border those outside the image, and always those without a position. For OpenCV 5's
// bicubic, see `leave_far`.
struct Reach {
    int32_t left = NOWHERE + 1, right = INT32_MAX, top = INT32_MIN, bottom = INT32_MAX;

    Reach(const OpenCVCall &p, int32_t taps) {
        if (!misses(p.border) || (!p.fixed && taps == 4)) return;
        const bool transparent = p.fixed && p.border == TRANSPARENT;
        left = top = transparent ? 0 : -taps / 2;
        const int64_t beyond = transparent ? 0 : taps / 2 - 1, end = INT32_MAX;
        right = int32_t(least(p.width - 1 + beyond, end));
        bottom = int32_t(least(p.height - 1 + beyond, end));
    }
    INLINE I nothing(I i, I j) const {
        return (i < left) | (i > right) | (j < top) | (j > bottom);
    }
};

// The source pixels of a pixel's taps, and which of them are missing.
template <int TAPS> struct Neighbourhood {
    int64_t x[TAPS], y[TAPS];  // -1: missing
    bool inner;

    Neighbourhood(const OpenCVCall &p, int64_t i, int64_t j) {
        const int64_t before = TAPS > 1 ? TAPS / 2 - 1 : 0, left = i - before, top = j - before;
        // bicubic and lanczos4 reflect under OpenCV 4's transparent border
        const bool reflects = p.fixed && p.border == TRANSPARENT && TAPS > 2;
        const int64_t border = reflects ? int64_t(REFLECT_101) : p.border;
        for (int k = 0; k < TAPS; k++)
            x[k] = resolve(left + k, p.width, border), y[k] = resolve(top + k, p.height, border);
        inner = left >= 0 && left + TAPS <= p.width && top >= 0 && top + TAPS <= p.height;
    }
    bool has(int n) const { return x[n % TAPS] >= 0 && y[n / TAPS] >= 0; }
};

// OpenCV 4's transparent bilinear near the border: the weighted mean of the existing taps.
template <class T, class U>
INLINE T mean_of_some(const Neighbourhood<2> &near, const T *numbers, const U *weight) {
    T share{}, total{};
    for (int n = 0; n < 4; n++)
        if (near.has(n)) share += numbers[n] * weight[n], total += weight[n];
    if constexpr (std::is_integral_v<T>) {
        float mean = float(share) * UNITS / float(total == 0 ? 1 : total);
        return (T(mean) + T(UNITS) / 2) >> 15;
    } else return share / (total == 0 ? T(1) : total);
}

// OpenCV 4's bicubic and lanczos4 near the border: sums of differences from the border's value.
template <int TAPS, class T> INLINE T sum_of_some(const Neighbourhood<TAPS> &near, const T *numbers,
                                                  const float *weight, T start) {
    T total = start;
    for (int n = 0; n < TAPS * TAPS; n++)
        if (near.has(n)) total += (numbers[n] - start) * weight[n];
    return total;
}

// Pixel c of a piece, all channels; of_registers: whether OpenCV 4's vector code sums it.
template <int TAPS, class S> void show_alone(const OpenCVCall &p, const Piece &piece,
                                             const Places &places, int64_t c, bool of_registers) {
    using T = std::conditional_t<sizeof(S) == 8, double, float>;
    constexpr bool BYTES = sizeof(S) == 1, DOUBLE = sizeof(S) == 8;  // fixed point, in any order
    const Neighbourhood<TAPS> near(p, places.column[c], places.row[c]);
    const float tx = places.tx[c], ty = places.ty[c];
    float wx[TAPS] = {}, wy[TAPS] = {}, weight[TAPS * TAPS];
    const int32_t step_x = int32_t(tx * 32), step_y = int32_t(ty * 32);
    if (!p.fixed && TAPS == 4) weigh5(p.vector, tx, wx), weigh5(p.vector, ty, wy);
    else if (TAPS == 2) wx[0] = 1 - tx, wx[1] = tx, wy[0] = 1 - ty, wy[1] = ty;
    else if (p.fixed) {
        const float *table = at<const float>(p.weights);
        memcpy(wx, table + step_x * TAPS, sizeof wx), memcpy(wy, table + step_y * TAPS, sizeof wy);
    }
    products<TAPS>(wx, wy, weight);
    const bool partly = !near.inner && p.fixed && p.border == TRANSPARENT;
    for (int64_t k = 0; k < p.channels; k++) {
        S *to = result_at<S>(p, piece, c, k);
        const S fill = *fill_at<S>(p, piece, c, k);
        const S *image = at<const S>(p.image) + piece.source + k * p.plane;
        T numbers[TAPS * TAPS];
        for (int n = 0; n < TAPS * TAPS; n++) {
            const int64_t place = near.y[n / TAPS] * p.line + near.x[n % TAPS] * p.pixel;
            numbers[n] = near.has(n) ? image[place] : fill;
        }
        if constexpr (BYTES && TAPS == 2) {
            if (p.fixed && partly) {
                int32_t whole[4], units[4];
                for (int n = 0; n < 4; n++)
                    whole[n] = int32_t(numbers[n]), units[n] = int32_t(weight[n] * UNITS);
                *to = S(mean_of_some(near, whole, units));
            } else {
                float value = bilinear5(numbers, tx, ty);
                *to = S(int32_t(p.fixed ? value + 0.5f : rounded(value)));
            }
        } else if constexpr (TAPS == 2) {
            if (partly) put(to, mean_of_some(near, numbers, weight));
            else if constexpr (DOUBLE) put(to, bilinear4(numbers, wx, wy));
            else if (!p.fixed) put(to, bilinear5(numbers, tx, ty));
            else if (of_registers) put(to, bilinear4_fused(numbers, wx, wy));
            else put(to, bilinear4(numbers, wx, wy));
        } else if (TAPS == 4 && !p.fixed) {
            float singles[TAPS * TAPS];
            // float64: all taps become integers if one is outside the image
            for (int n = 0; n < TAPS * TAPS; n++) {
                if (DOUBLE && !near.inner) {
                    const double v = double(numbers[n]);
                    const bool fits = v > -2147483649.0 && v < 2147483648.0;
                    singles[n] = float(fits ? int32_t(v) : INT32_MIN);
                } else singles[n] = float(numbers[n]);
            }
            put(to, bicubic5(p.vector, singles, wx, wy));
        } else if constexpr (BYTES) {
            int32_t whole[TAPS * TAPS], units[TAPS * TAPS];
            for (int n = 0; n < TAPS * TAPS; n++) whole[n] = int32_t(numbers[n]);
            whole_weights<TAPS>(wx, wy, units);
            const int32_t correction = at<const int32_t>(p.corrections)[step_y * 32 + step_x];
            *to = S(whole_sum<TAPS>(whole, units, correction));
        } else {
            const T start =
                T(at<const S>(p.sum_start)[piece.item * p.start_item + k * p.start_channel]);
            if (!near.inner) put(to, sum_of_some(near, numbers, weight, start));
            else if constexpr (DOUBLE) put(to, wide4<TAPS>(numbers, weight));
            else if (p.vector) put(to, wide4_fused<TAPS>(numbers, weight));
            else put(to, wide4<TAPS>(numbers, weight));
        }
    }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
