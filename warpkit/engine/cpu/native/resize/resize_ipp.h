// Resizes as in OpenCV's wheels with IPP: bilinear and bicubic sums of floats with fused steps,
// whose order differs inside and at the ends of a row.
// `arithmetic/opencv_ipp_resize.py` defines it.
#pragma once
#include "shared/fused.h"
#include "resize/resize_finish.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

using Floats = Vec<float, 16>;

// a * b + c, rounded once, as in IPP.
INLINE Floats fused(Floats a, float b, Floats c) { return fma_single(a, splat<Floats>(b), c); }
INLINE Vec<double, 8> fused(Vec<double, 8> a, double b, Vec<double, 8> c) {
    return fma_double(a, splat<Vec<double, 8>>(b), c);
}

// -- bilinear --

// The sums of a tile's columns, from transposed rows; see `sum_columns`.
template <class T, class S>
void sum_columns_ipp_linear(const ResizeCall &p, const T *turned, const Columns &columns, S *out) {
    constexpr int N = SUMS<S>;
    for (int64_t x = columns.first; x < columns.end; x++) {
        const int32_t *pixel = at<int32_t>(p.x_pixel) + 2 * x;
        const S t = at<S>(p.x_weight)[2 * x + 1];
        for (int64_t c = 0; c < p.inner; c++, out += N) {
            const auto tap = [&](int n) {
                const int64_t number = (pixel[n] - columns.source) * p.inner + c;
                return convert<Sums<S>>(load<Vec<T, N>>(turned + number * N));
            };
            Sums<S> near = tap(0);
            store(out, fused(tap(1) - near, t, near));
        }
    }
}

// Half to even: adding 1.5 * 2^23 leaves no bit for a fraction.
INLINE Floats nearest_whole(Floats v) {
    constexpr float whole = 12582912.0f;
    return (v + whole) - whole;
}

// A row of int16 that reads a single image row: the step along x is rounded separately.
inline void flat_row(const ResizeCall &p, const int16_t *row, const Columns &columns,
                     int16_t *out) {
    for (int64_t x = columns.first; x < columns.end; x++) {
        const int32_t *pixel = at<int32_t>(p.x_pixel) + 2 * x;
        const float t = at<float>(p.x_weight)[2 * x + 1];
        for (int64_t c = 0; c < p.inner; c++) {
            const float near = row[pixel[0] * p.inner + c], far = row[pixel[1] * p.inner + c];
            constexpr float whole = 12582912.0f;
            *out++ = int16_t(near + ((t * (far - near) + whole) - whole));
        }
    }
}

// `count` numbers of row y of a tile. Numbers whose step is not fused (`apart`) are, in int16,
// those that read a single image column: their step is rounded separately.
template <class T, class S> void linear_row_ipp(const ResizeCall &p, const S *above, const S *below,
                                                int64_t y, const Columns &columns, const T *plane,
                                                T *out) {
    constexpr int N = SUMS<S>;
    using V = Sums<S>;
    if constexpr (std::is_same<T, int16_t>::value)
        if (p.inside && !at<int32_t>(p.inside)[y]) {
            const int64_t row = at<int32_t>(p.read)[at<int32_t>(p.y_pixel)[2 * y]];
            return flat_row(p, plane + row * p.stride, columns, out);
        }
    const S t = at<S>(p.y_weight)[2 * y + 1];
    const int32_t *apart = at<int32_t>(p.apart);
    const int64_t first = columns.first * p.inner, count = columns.end * p.inner - first;
    for (int64_t e = 0; e < count; e += N) {
        const V a = load<V>(above + e), step = load<V>(below + e) - a;
        V sum = fused(step, t, a);
        if constexpr (std::is_same<S, float>::value)
            if (apart) {
                V other = step * t;
                if constexpr (std::is_same<T, int16_t>::value) other = nearest_whole(other);
                sum = load<Vec<int32_t, N>>(apart + first + e) != 0 ? a + other : sum;
            }
        Vec<T, N> found;
        if constexpr (std::is_floating_point<T>::value) found = convert<Vec<T, N>>(sum);
        else found = rounded<T>(sum);
        store_numbers(out + e, found, count - e);
    }
    (void)plane;
}

// -- bicubic --

// Four products in the given order.
INLINE Floats sum_four(int32_t order, Floats a, Floats b, Floats c, Floats d, const float *w) {
    switch (order) {
        case PAIRS: return (a * w[0] + b * w[1]) + (c * w[2] + d * w[3]);
        case SKIP: return (a * w[0] + c * w[2]) + (b * w[1] + d * w[3]);
        case HALVES: return fused(c, w[2], a * w[0]) + fused(d, w[3], b * w[1]);
        case ENDS: return fused(a, w[0], d * w[3]) + fused(b, w[1], c * w[2]);
        default: return fused(d, w[3], fused(c, w[2], fused(b, w[1], a * w[0])));
    }
}

// The sums of a tile's columns, from transposed rows; see `sum_columns`.
template <class T>
void sum_columns_ipp(const ResizeCall &p, const T *turned, const Columns &columns, float *out) {
    const auto four = [&](int32_t pixel, int64_t c) {
        const int64_t number = (pixel - columns.source) * p.inner + c;
        return convert<Floats>(load<Vec<T, 16>>(turned + number * 16));
    };
    for (int64_t x = columns.first; x < columns.end; x++) {
        const int32_t *pixel = at<int32_t>(p.x_pixel) + 4 * x, order = at<int32_t>(p.orders)[x];
        const float *w = at<float>(p.x_weight) + 4 * x;
        for (int64_t c = 0; c < p.inner; c++, out += 16)
            store(out, sum_four(order, four(pixel[0], c), four(pixel[1], c), four(pixel[2], c),
                                four(pixel[3], c), w));
    }
}

// `count` numbers as pixels.
template <class T> INLINE void put(T *out, Floats sum, int64_t count) {
    Vec<T, 16> found;
    if constexpr (std::is_same<T, float>::value) found = sum;
    else found = rounded<T>(sum);
    store_numbers(out, found, count);
}

// One number of a pixel whose taps are not all inside the image, from a plane: the two central rows
// begin with the second product, and the rows are not fused.
template <class T>
T sum_alone(const ResizeCall &p, const T *plane, int64_t x, int64_t y, int64_t c) {
    const int32_t *row = at<int32_t>(p.y_pixel) + 4 * y, *pixel = at<int32_t>(p.x_pixel) + 4 * x;
    const float *w = at<float>(p.x_weight) + 4 * x, *v = at<float>(p.y_weight) + 4 * y;
    float product[4];
    for (int k = 0; k < 4; k++) {
        const T *from = plane + at<int32_t>(p.read)[row[k]] * p.stride + c;
        const auto tap = [&](int n) { return float(from[pixel[n] * p.inner]); };
        const float two = k == 1 || k == 2 ? __builtin_fmaf(tap(0), w[0], tap(1) * w[1])
                                           : __builtin_fmaf(tap(1), w[1], tap(0) * w[0]);
        product[k] = __builtin_fmaf(tap(3), w[3], __builtin_fmaf(tap(2), w[2], two)) * v[k];
    }
    const float sum = (product[0] + product[2]) + (product[1] + product[3]);
    if constexpr (std::is_same<T, float>::value) return sum;
    else return rounded<T>(Vec<float, 4>{sum, sum, sum, sum})[0];
}

// `count` numbers of row y of a tile: four rows of sums in two fused pairs. out: the row, whose
// first number is that of column columns.first.
template <class T> void cubic_row_ipp(const ResizeCall &p, const float *lines, int64_t stride,
                                      int64_t y, const Columns &columns, const T *plane, T *out) {
    const int32_t *pixel = at<int32_t>(p.y_pixel) + 4 * y;
    const float *v = at<float>(p.y_weight) + 4 * y;
    const int64_t first = columns.first * p.inner, count = columns.end * p.inner - first;
    const bool inside = !p.alone || at<int32_t>(p.inside)[y];
    const int64_t last = p.last_numbers - first;
    for (int64_t e = 0; inside && e < count; e += 16) {
        const auto row = [&](int k) { return load<Floats>(lines + pixel[k] * stride + e); };
        Floats upper = fused(row(0), v[0], row(1) * v[1]);
        if (e + 16 > last) {
            auto others = count_up<Vec<int32_t, 16>>() + int32_t(e) >= int32_t(last);
            upper = others ? fused(row(1), v[1], row(0) * v[0]) : upper;
        }
        put(out + e, upper + fused(row(2), v[2], row(3) * v[3]), count - e);
    }
    if (!p.alone) return;
    const auto finish_alone = [&](int64_t x) {  // whether column x is computed separately
        if (inside && at<int32_t>(p.orders)[x] != ALONE) return false;
        for (int64_t c = 0; c < p.inner; c++)
            out[(x - columns.first) * p.inner + c] = sum_alone(p, plane, x, y, c);
        return true;
    };
    int64_t x = columns.first, end = columns.end;  // the central columns are not
    while (x < end && finish_alone(x)) x++;
    while (end > x && finish_alone(end - 1)) end--;
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
