// Angles of vectors, and vectors of angles, as OpenCV computes them, in float32 polynomials:
// engine/arithmetic/opencv_angles.py, bit for bit.
#pragma once
#include "shared/fused.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The angle of vectors, [0, 2 pi) or [0, 360), as in cv2.cartToPolar: a polynomial in min / max, in
// degrees first. `alone`: for the last few numbers of a block, which OpenCV computes one by one.
template <class V> INLINE V angle_of(V x, V y, bool alone, bool degrees) {
    constexpr float DEGREES = float(180 / 3.14159265358979323846);
    constexpr float P1 = 0.9997878412794807f * DEGREES, P3 = -0.3258083974640975f * DEGREES;
    constexpr float P5 = 0.1555786518463281f * DEGREES, P7 = -0.04432655554792128f * DEGREES;
    V ax = magnitude(x), ay = magnitude(y), none{};
    V c = smaller(ax, ay) / (larger(ax, ay) + 2.220446049250313e-16f);
    c = ((x == x) & (y == y)) ? c : x + y;  // NaN if either is
    V square = c * c;
    V part = fma_single(square, none + P7, none + P5);
    part = fma_single(fma_single(part, square, none + P3), square, none + P1);
    V steep = alone ? fma_single(-part, c, none + 90) : 90 - part * c;
    V angle = ax >= ay ? part * c : steep;
    angle = x < 0 ? 180 - angle : angle;
    angle = y < 0 ? 360 - angle : angle;
    return degrees ? angle : angle * float(3.14159265358979323846 / 180);
}

template <class V> struct Vectors {
    V x, y;
};

// Cosine and sine as in Cephes: relative to the nearest even number of eighths of a turn, below
// 2^31.
template <class V> INLINE Vectors<V> by_eighths(V angle) {
    using I = Vec<int32_t, COUNT<V>>;
    constexpr float MOST_EIGHTHS = 2147483520.0f;
    const V none{};
    V rest = magnitude(angle), eighths = rest * 1.27323954473516f;
    eighths = smaller(eighths == eighths ? eighths : none, none + MOST_EIGHTHS);
    I count = (convert<I>(eighths) + 1) & ~1;
    V number = convert<V>(count);
    rest = fma_single(number, none + -0.78515625f, rest);
    rest = fma_single(number, none + -2.4187564849853515625e-4f, rest);
    rest = fma_single(number, none + -3.77489497744594108e-8f, rest);
    V square = rest * rest;
    V odd = fma_single(square, none + -1.9515295891e-4f, none + 8.3321608736e-3f);
    odd = fma_single(odd, square, none + -1.6666654611e-1f) * square;
    odd = fma_single(odd, rest, rest);
    V even = fma_single(square, none + 2.443315711809948e-5f, none + -1.388731625493765e-3f);
    even = fma_single(even, square, none + 4.166664568298827e-2f);
    even = fma_single(even, square, none + -0.5f);
    even = fma_single(even, square, none + 1.0f);
    I swapped = (count & 2) != 0;
    V cosine = swapped ? odd : even, sine = swapped ? even : odd;
    cosine = ((count - 2) & 4) == 0 ? -cosine : cosine;
    sine = ((angle < 0) ^ ((count & 4) != 0)) ? -sine : sine;
    return {cosine, sine};
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
