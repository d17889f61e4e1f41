// The sampling rules: the border outside an image, and the weights of taps. `definitions/rules.py` is
// the Python counterpart, with the same codes for borders and interpolations.
#pragma once
#include "shared/vec.h"
#include "warp/warp_call.h"

namespace warpkit {

enum Border { CONSTANT, REPLICATE, REFLECT, REFLECT_101, WRAP, TRANSPARENT };

// Each interpolation, and its number of taps along an axis.
#define WARPKIT_INTERPOLATIONS(INTERPOLATION) \
    INTERPOLATION(NEAREST, 1)                 \
    INTERPOLATION(BILINEAR, 2) INTERPOLATION(BICUBIC, 4) INTERPOLATION(LANCZOS4, 8) \
    INTERPOLATION(SPLINE3, 4) INTERPOLATION(SPLINE5, 6)

#define WARPKIT_NAME(name, taps) name,
enum Interpolation { WARPKIT_INTERPOLATIONS(WARPKIT_NAME) };
#define WARPKIT_TAPS(name, taps) taps,
constexpr int TAPS_OF[] = {WARPKIT_INTERPOLATIONS(WARPKIT_TAPS)};

namespace WARPKIT_ISA {

// -- borders --

// Whether taps outside the image are missing along an axis; under other borders they are pixels.
INLINE bool misses(int64_t border) { return border == CONSTANT || border == TRANSPARENT; }

// The number of pixels after which a border that folds repeats.
INLINE int64_t period_of(int64_t length, int64_t border) {
    if (border == REFLECT) return 2 * length;
    return border == WRAP ? length : most<int64_t>(2 * length - 2, 1);
}

// The pixel of 0 .. length - 1 that an index reads along an axis, or -1 if it is missing.
inline int64_t resolve(int64_t index, int64_t length, int64_t border) {
    if (index >= 0 && index < length) return index;
    if (misses(border)) return -1;
    if (border == REPLICATE) return clamped(index, 0, length - 1);
    const int64_t period = period_of(length, border);
    int64_t rest = index % period;
    rest += rest < 0 ? period : 0;
    if (border == WRAP) return rest;
    return least(rest, (border == REFLECT ? period - 1 : period) - rest);
}

// -- taps --

// Calls use(taps) with the taps of an interpolation as a constant.
template <class Use> INLINE void with_taps(int64_t taps, Use use) {
#define WARPKIT_USE(name, number) \
    if (taps == number) return use(std::integral_constant<int, number>{});
    WARPKIT_INTERPOLATIONS(WARPKIT_USE)
}

// -- weights --
//
// For the taps around a position with fraction t along an axis, in float64, D positions at a time.

constexpr int D = LANES<double>;
using Doubles = Vec<double, D>;
constexpr double CUBIC_A = -0.75;  // Keys' parameter: OpenCV's and torch's choice

INLINE Doubles cubic_near(Doubles d) {  // within a pixel
    return ((CUBIC_A + 2) * d - (CUBIC_A + 3)) * d * d + 1;
}
INLINE Doubles cubic_far(Doubles d) {  // from one pixel to two
    return ((CUBIC_A * d - 5 * CUBIC_A) * d + 8 * CUBIC_A) * d - 4 * CUBIC_A;
}
INLINE Doubles cubic_near_slope(Doubles d) {
    return (3 * (CUBIC_A + 2) * d - 2 * (CUBIC_A + 3)) * d;
}
INLINE Doubles cubic_far_slope(Doubles d) {
    return (3 * CUBIC_A * d - 10 * CUBIC_A) * d + 8 * CUBIC_A;
}

// B-splines of degree 3 and 5 at the distance d, or the distance 1 - s or 3 - s from their ends.
INLINE Doubles cubic_spline_near(Doubles d) { return (0.5 * d - 1) * d * d + 2. / 3; }
INLINE Doubles cubic_spline_near_slope(Doubles d) { return (1.5 * d - 2) * d; }
INLINE Doubles quintic_near(Doubles d) {  // within a pixel
    Doubles s = d * d;
    return 11. / 20 + s * (s * (0.25 - d / 12) - 0.5);
}
INLINE Doubles quintic_near_slope(Doubles d) { return d * (d * d * (1 - 5 * d / 12) - 1); }
INLINE Doubles quintic_middle(Doubles s) {  // from one pixel to two: d = 2 - s
    return (1 + 5 * s * (1 + s * (2 + s * (2 + s * (1 - s))))) / 120;
}
INLINE Doubles quintic_middle_slope(Doubles s) {  // by s
    return (1 + s * (4 + s * (6 + s * (4 - 5 * s)))) / 24;
}

// Tap K has what the others leave of 1, so that its slope is what leaves 0.
template <int TAPS, int K, bool SLOPED> INLINE void leave(Doubles *weight, Doubles *slope) {
    Doubles others{}, slopes{};
    for (int k = 0; k < TAPS; k++)
        if (k != K) {
            others += weight[k];
            if constexpr (SLOPED) slopes += slope[k];
        }
    weight[K] = 1 - others;
    if constexpr (SLOPED) slope[K] = -slopes;
}

// sinc(d) sinc(d / 4) at the distances d = t + 3 - k of eight taps, divided by their sum, and
// slopes.
//
// With s4 = sin(pi d), c4 = cos(pi d), s1 = sin(pi d / 4), c1 = cos(pi d / 4):
//
//     value = 4 s4 s1 / (pi d)^2
//     slope = 4 (pi c4 s1 + (pi / 4) s4 c1) / (pi d)^2 - 2 value / d
//
// Both lose all digits as d goes to 0. Below 1e-2, the series of the product replaces them, whose
// first missing term is below 1e-12. The eight distances differ by integers, so sin(pi d) only
// changes its sign, and sin(pi d / 4) turns by an eighth of a circle from tap to tap: one sine and
// one cosine are enough.
template <bool SLOPED> inline void lanczos(Doubles t, Doubles *weight, Doubles *slope) {
    constexpr double h = 0.70710678118654752440, quarter = 0.78539816339744830962;
    constexpr double pi = 4 * quarter, square = pi * pi;
    constexpr double turn_sin[] = {h, 1, h, 0, -h, -1, -h, 0};  // of pi (3 - k) / 4
    constexpr double turn_cos[] = {-h, 0, h, 1, h, 0, -h, -1};
    constexpr double second = 17. / 96, fourth = 1. / 120 + 1. / 576 + 1. / 30720;
    Doubles x = quarter * t, s = x * x;
    // the series to x^15 and x^14: below 1e-15 for |x| <= pi / 4
    Doubles r = 1 - s / 210 * (1 - s / 272);
    r = 1 - s / 110 * (1 - s / 156 * r);
    Doubles sine = x * (1 - s / 6 * (1 - s / 20 * (1 - s / 42 * (1 - s / 72 * r))));
    r = 1 - s / 90 * (1 - s / 132 * (1 - s / 182));
    Doubles cosine = 1 - s / 2 * (1 - s / 12 * (1 - s / 30 * (1 - s / 56 * r)));
    Doubles sin2 = 2 * sine * cosine, cos2 = 1 - 2 * sine * sine;
    Doubles sin4 = 2 * sin2 * cos2, cos4 = 1 - 2 * sin2 * sin2;
    Doubles total{}, total_slope{};
    for (int k = 0; k < 8; k++) {
        int m = 3 - k;
        Doubles d = t + double(m), odd_sin = m % 2 ? -sin4 : sin4;
        Doubles sin1 = sine * turn_cos[k] + cosine * turn_sin[k];
        Doubles z = square * d * d;
        auto small = magnitude(d) < 1e-2;
        Doubles e = small ? splat<Doubles>(1.0) : d, scale = 4 / (square * e * e);
        Doubles value = odd_sin * sin1 * scale;
        if constexpr (SLOPED) {
            Doubles cos1 = cosine * turn_cos[k] - sine * turn_sin[k];
            Doubles odd_cos = m % 2 ? -cos4 : cos4;
            Doubles change = (pi * odd_cos * sin1 + quarter * odd_sin * cos1) * scale;
            change -= 2 * value / e;
            slope[k] = small ? square * d * (-2 * second + 4 * z * fourth) : change;
            total_slope += slope[k];
        }
        weight[k] = small ? 1 - z * second + z * z * fourth : value;
        total += weight[k];
    }
    for (int k = 0; k < 8; k++) {
        weight[k] /= total;
        if constexpr (SLOPED) slope[k] = (slope[k] - weight[k] * total_slope) / total;
    }
}

// Computes the weights of the taps and, if SLOPED, their derivatives by t.
template <int INTERPOLATION, bool SLOPED>
INLINE void weigh(Doubles t, Doubles *weight, Doubles *slope) {
    if constexpr (INTERPOLATION == BILINEAR) {
        weight[0] = 1.0 - t, weight[1] = t;
        if constexpr (SLOPED) slope[0] = splat<Doubles>(-1.0), slope[1] = splat<Doubles>(1.0);
    }
    if constexpr (INTERPOLATION == BICUBIC) {
        weight[0] = cubic_far(1.0 + t), weight[1] = cubic_near(t);
        weight[2] = cubic_near(1.0 - t), weight[3] = cubic_far(2.0 - t);
        if constexpr (SLOPED) {
            slope[0] = cubic_far_slope(1.0 + t), slope[1] = cubic_near_slope(t);
            slope[2] = -cubic_near_slope(1.0 - t), slope[3] = -cubic_far_slope(2.0 - t);
        }
    }
    if constexpr (INTERPOLATION == LANCZOS4) lanczos<SLOPED>(t, weight, slope);
    if constexpr (INTERPOLATION == SPLINE3) {
        Doubles s = 1.0 - t;
        weight[0] = s * s * s / 6, weight[2] = cubic_spline_near(s), weight[3] = t * t * t / 6;
        if constexpr (SLOPED) {
            slope[0] = -0.5 * s * s, slope[3] = 0.5 * t * t;
            slope[2] = -cubic_spline_near_slope(s);
        }
        leave<4, 1, SLOPED>(weight, slope);
    }
    if constexpr (INTERPOLATION == SPLINE5) {
        Doubles s = 1.0 - t, s4 = s * s * (s * s), t4 = t * t * (t * t);
        weight[0] = s4 * s / 120, weight[1] = quintic_middle(s), weight[3] = quintic_near(s);
        weight[4] = quintic_middle(t), weight[5] = t4 * t / 120;
        if constexpr (SLOPED) {
            slope[0] = -s4 / 24, slope[1] = -quintic_middle_slope(s);
            slope[3] = -quintic_near_slope(s);
            slope[4] = quintic_middle_slope(t), slope[5] = t4 / 24;
        }
        leave<6, 2, SLOPED>(weight, slope);
    }
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
