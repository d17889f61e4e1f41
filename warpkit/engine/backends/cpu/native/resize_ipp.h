// The bicubic resize of bytes as OpenCV's wheels have it from IPP: sums in float32, whose order
// differs inside and at the ends of a row. `arithmetic/opencv_ipp_resize.py` defines it.
#pragma once
#include "resize_finish.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

using Floats = Vec<float, 16>;

// a * b + c, rounded once, on every processor: IPP's bits have it.
INLINE Floats fused(Floats a, float b, Floats c) {
#if defined(__x86_64__) && !defined(__FMA__)
    // The product is exact in float64. Their sum, if it is not, gets an odd last bit ("rounding to
    // odd"), so that the second rounding, to float32, rounds as if it were the only one.
    using V = Vec<double, 16>;
    using Wide = Vec<int64_t, 16>;
    V product = convert<V>(a) * double(b), more = convert<V>(c), sum = product + more;
    V part = sum - product, lost = (product - (sum - part)) + (more - part);
    Wide bits = (Wide)sum, away = (lost > 0) == (sum > 0) ? splat<Wide>(1) : splat<Wide>(-1);
    bits += ((lost != 0) & ((bits & 1) == 0)) ? away : Wide{};
    return convert<Floats>((V)bits);
#else
    return fma(a, splat<Floats>(b), c);
#endif
}

// Four products in one of the orders.
INLINE Floats sum_four(int32_t order, Floats a, Floats b, Floats c, Floats d, const float *w) {
    switch (order) {
        case PAIRS: return (a * w[0] + b * w[1]) + (c * w[2] + d * w[3]);
        case SKIP: return (a * w[0] + c * w[2]) + (b * w[1] + d * w[3]);
        case HALVES: return fused(c, w[2], a * w[0]) + fused(d, w[3], b * w[1]);
        case ENDS: return fused(a, w[0], d * w[3]) + fused(b, w[1], c * w[2]);
        default: return fused(d, w[3], fused(c, w[2], fused(b, w[1], a * w[0])));
    }
}

// The sums of the columns of a tile, of rows on their side; see `sum_columns`.
inline void sum_columns_ipp(const ResizeCall &p, const uint8_t *turned, const Columns &columns,
                            float *out) {
    const auto four = [&](int32_t pixel, int64_t c) {
        const int64_t number = (pixel - columns.source) * p.inner + c;
        return convert<Floats>(load<Vec<uint8_t, 16>>(turned + number * 16));
    };
    for (int64_t x = columns.first; x < columns.end; x++) {
        const int32_t *pixel = at<int32_t>(p.x_pixel) + 4 * x, order = at<int32_t>(p.orders)[x];
        const float *w = at<float>(p.x_weight) + 4 * x;
        for (int64_t c = 0; c < p.inner; c++, out += 16)
            store(out, sum_four(order, four(pixel[0], c), four(pixel[1], c), four(pixel[2], c),
                                four(pixel[3], c), w));
    }
}

// One pixel whose taps are not all on the image, of a plane, on processors with AVX2: the two rows
// in the middle begin with the second product, and the rows are not fused.
inline uint8_t sum_alone(const ResizeCall &p, const uint8_t *plane, int64_t x, int64_t y,
                         int64_t c) {
    const int32_t *row = at<int32_t>(p.y_pixel) + 4 * y, *pixel = at<int32_t>(p.x_pixel) + 4 * x;
    const float *w = at<float>(p.x_weight) + 4 * x, *v = at<float>(p.y_weight) + 4 * y;
    Floats half[2] = {};
    for (int k = 0; k < 4; k++) {
        const uint8_t *from = plane + at<int32_t>(p.read)[row[k]] * p.width * p.inner + c;
        const auto tap = [&](int n) { return splat<Floats>(float(from[pixel[n] * p.inner])); };
        Floats two = k == 1 || k == 2 ? fused(tap(0), w[0], tap(1) * w[1])
                                      : fused(tap(1), w[1], tap(0) * w[0]);
        half[k % 2] += fused(tap(3), w[3], fused(tap(2), w[2], two)) * v[k];
    }
    return rounded<uint8_t>(half[0] + half[1])[0];
}

// `count` numbers of row y of a tile: four rows of sums in two fused pairs. out: the row, whose
// first number is that of column columns.first.
inline void cubic_row_ipp(const ResizeCall &p, const float *lines, int64_t stride, int64_t y,
                          const Columns &columns, const uint8_t *plane, uint8_t *out) {
    const int32_t *pixel = at<int32_t>(p.y_pixel) + 4 * y;
    const float *v = at<float>(p.y_weight) + 4 * y;
    const int64_t count = (columns.end - columns.first) * p.inner;
    for (int64_t e = 0; e < count; e += 16) {
        const auto row = [&](int k) { return load<Floats>(lines + pixel[k] * stride + e); };
        Floats sum = fused(row(0), v[0], row(1) * v[1]) + fused(row(2), v[2], row(3) * v[3]);
        Vec<uint8_t, 16> found = rounded<uint8_t>(sum);
        memcpy(out + e, &found, size_t(least<int64_t>(16, count - e)));
    }
    if (!p.alone) return;
    const bool inside = at<int32_t>(p.inside)[y];
    for (int64_t x = columns.first; x < columns.end; x++)
        if (!inside || at<int32_t>(p.orders)[x] == ALONE)
            for (int64_t c = 0; c < p.inner; c++)
                out[(x - columns.first) * p.inner + c] = sum_alone(p, plane, x, y, c);
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
