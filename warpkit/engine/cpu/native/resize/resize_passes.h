// The two passes of a resize: sums of rows, and sums of columns.
//
// Along y, a row of the result is a sum of rows, number by number, which vectorises directly. Along
// x, the rows were transposed (resize_turn.h), and sums are again sums of vectors. They add the
// taps in order, with each product and sum rounded, as in the reference.
#pragma once
#include "resize/resize_finish.h"
#include "resize/resize_ipp.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// -- along y --

// The sums of output n, from vectors that begin at number e of their rows: U vectors, or the first
// `left` numbers of one.
template <int U, class A, class S, class V> INLINE void sum_rows(const ResizeCall &p, const A *rows,
                                                                 int64_t stride, int64_t n,
                                                                 int64_t left, V *total) {
    constexpr int N = SUMS<S>;
    const int32_t *pixel = at<int32_t>(p.y_pixel);
    const S *weight = at<S>(p.y_weight);
    const int64_t begin = at<int32_t>(p.y_begin)[n], end = at<int32_t>(p.y_end)[n];
    for (int u = 0; u < U; u++) total[u] = V{};
    for (int64_t k = begin; k < end; k++) {
        const A *row = rows + pixel[k] * stride;
        for (int u = 0; u < U; u++) {
            using Numbers = Vec<A, N>;
            auto numbers = U > 1 ? load<Numbers>(row + u * N) : load_numbers<Numbers>(row, left);
            V product = convert<V>(numbers) * weight[k];
            total[u] = k == begin ? product : total[u] + product;
        }
    }
}

// `count` numbers of output n: a sum of rows with distance `stride`.
template <class A, class S, class B>
void sum_row(const ResizeCall &p, const A *rows, int64_t stride, int64_t n, int64_t count, B *out) {
    constexpr int N = SUMS<S>, U = REGISTER / 16;
    Sums<S> total[U];
    int64_t e = 0;
    for (; e + U * N <= count; e += U * N) {
        if constexpr (U > 1) sum_rows<U, A, S>(p, rows + e, stride, n, N, total);
        else sum_rows<1, A, S>(p, rows + e, stride, n, N, total);
        for (int u = 0; u < U; u++) store(out + e + u * N, finish<B, S>(p, total[u]));
    }
    for (; e < count; e += N) {
        if (count >= N) e = least(e, count - N);  // overlaps the vector before it
        sum_rows<1, A, S>(p, rows + e, stride, n, count - e, total);
        store_numbers(out + e, finish<B, S>(p, total[0]), count - e);
    }
}

// OpenCV's 8-bit bilinear: sums along x lose their last 4 bits, their products with the weights of
// two rows lose 16 bits, and the sum loses 2, rounded half up.
inline void linear_row(const ResizeCall &p, const int16_t *above, const int16_t *below, int64_t n,
                       int64_t count, uint8_t *out) {
    using V = Vec<int16_t, 32>;
    using Wide = Vec<int32_t, 32>;
    const int32_t *weight = at<int32_t>(p.y_weight) + 2 * n;
    const V upper = splat<V>(int16_t(weight[0])), lower = splat<V>(int16_t(weight[1]));
    const auto upper_half = [](V v, V w) {  // one instruction for 16-bit factors
        return convert<V>((convert<Wide>(v) * convert<Wide>(w)) >> 16);
    };
    for (int64_t e = 0; e < count; e += 32) {
        V sum = upper_half(load<V>(above + e), upper) + upper_half(load<V>(below + e), lower);
        sum = (sum + 2) >> 2;
        store_numbers(out + e, convert<Vec<uint8_t, 32>>(smaller(sum, splat<V>(255))), count - e);
    }
}

// OpenCV's bicubic and lanczos4 in float32: numbers of a row that fill vectors are summed starting
// with the last row, the others with the first. first: the position of the first number in its row.
template <class B> void nested_row(const ResizeCall &p, const float *lines, int64_t stride,
                                   int64_t n, int64_t first, int64_t count, B *out) {
    using V = Vec<float, 16>;
    const int64_t all = p.out_width * p.inner / p.at_once * p.at_once - first;
    const int64_t begin = at<int32_t>(p.y_begin)[n], taps = at<int32_t>(p.y_end)[n] - begin;
    const int32_t *pixel = at<int32_t>(p.y_pixel) + begin;
    const float *weight = at<float>(p.y_weight) + begin;
    for (int64_t e = 0; e < count; e += 16) {
        const auto product = [&](int64_t k) {
            return load<V>(lines + pixel[k] * stride + e) * weight[k];
        };
        V total = product(taps - 1);
        for (int64_t k = taps - 2; k >= 0; k--) total = product(k) + total;
        if (e + 16 > all) {
            V forth = product(0);
            for (int64_t k = 1; k < taps; k++) forth = forth + product(k);
            total = count_up<Vec<int32_t, 16>>() + int32_t(e) < int32_t(all) ? total : forth;
        }
        if constexpr (std::is_same<B, float>::value) store_numbers(out + e, total, count - e);
        else store_numbers(out + e, rounded<B>(total), count - e);
    }
}

// OpenCV's 8-bit bicubic: numbers of a row that fill vectors of 8 are summed in float32, starting
// with the last row; the others as integers. first: the position of the first number in its row.
inline void cubic_row(const ResizeCall &p, const int32_t *lines, int64_t stride, int64_t n,
                      int64_t first, int64_t count, uint8_t *out) {
    using V = Vec<float, 16>;
    using I = Vec<int32_t, 16>;
    const int64_t k = at<int32_t>(p.y_begin)[n];
    const int64_t all = p.out_width * p.inner / p.at_once * p.at_once - first;
    const int32_t *pixel = at<int32_t>(p.y_pixel) + k, *weight = at<int32_t>(p.y_weight) + k;
    for (int64_t e = 0; e < count; e += 16) {
        V floats{};
        Vec<uint32_t, 16> whole{};
        for (int j = 3; j >= 0; j--) {
            I numbers = load<I>(lines + pixel[j] * stride + e);
            V product = convert<V>(numbers) * (float(weight[j]) * 0x1p-22f);
            floats = j == 3 ? product : product + floats;
            whole += (Vec<uint32_t, 16>)numbers * uint32_t(weight[j]);
        }
        Vec<uint8_t, 16> found = rounded<uint8_t>(floats);
        if (e + 16 > all) {
            auto in_vectors = convert<Vec<int8_t, 16>>(count_up<I>() + int32_t(e) < int32_t(all));
            found = in_vectors ? found : shifted(whole, 22);
        }
        store_numbers(out + e, found, count - e);
    }
}

// -- along x --

// The sums of a tile's columns, from transposed rows: those of the image's pixels from
// columns.source on.
template <class A, class S, class B>
void sum_columns(const ResizeCall &p, const A *turned, const Columns &columns, B *out) {
    constexpr int N = SUMS<S>;
    using V = Sums<S>;
    const int32_t *pixel = at<int32_t>(p.x_pixel);
    const S *weight = at<S>(p.x_weight);
    for (int64_t x = columns.first; x < columns.end; x++) {
        const int64_t begin = at<int32_t>(p.x_begin)[x], end = at<int32_t>(p.x_end)[x];
        for (int64_t c = 0; c < p.inner; c++, out += N) {
            V total{};
            for (int64_t k = begin; k < end; k++) {
                const A *column = turned + ((pixel[k] - columns.source) * p.inner + c) * N;
                V product = convert<V>(load<Vec<A, N>>(column)) * weight[k];
                total = k == begin ? product : total + product;
            }
            store(out, finish<B, S>(p, total));
        }
    }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
