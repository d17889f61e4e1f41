// Sums over the pixels of two images and their slopes: the normal equations of an alignment.
//
// alignment/equations.py computes them by torch operations, in about forty passes over the images;
// here two tasks make one pass each. A unit is a strip of columns of one pair, from top to bottom.
// Every column has its own float64 sums, so adjacent columns are adjacent lanes. At the end of the
// strip its columns are added, always in the same order, and Python adds the strips. So neither
// threads nor the register width change a bit of a result.
//
// A strip is processed ROWS rows at a time, and within these one register of columns at a time: the
// columns' sums stay in registers for all of these rows. The second pass adds these few rows in the
// images' type, in which torch adds whole rows.
//
// The outermost ring of pixels has weight 0 and is not in the strips, so every pixel has
// neighbours.
#include "shared/kernels.h"
#include "shared/memory.h"
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int64_t ROWS = 16;
constexpr int SHARED = 8, CHANNEL = 4;  // maps of the second pass: shared, and per channel
constexpr int SLOPES = 5;               // the first of three shared maps that have no powers
constexpr int SUMS = 6;                 // of the first pass
constexpr int64_t MOST_COLUMNS = 512;   // of a strip

// A register at p, with `left` numbers inside the strip.
template <class T> INLINE Vec<T, LANES<T>> some(const T *p, int64_t left) {
    return left < LANES<T> ? load_first(p, left) : load<Vec<T, LANES<T>>>(p);
}

// The same, and prefetches ROWS rows further down. A strip is narrow, so the processor does not
// prefetch by itself: large images take twice as long without this.
template <class T> INLINE Vec<T, LANES<T>> take(const T *p, int64_t left, int64_t row) {
    __builtin_prefetch(p + ROWS * row);
    return some(p, left);
}

using Eight = Vec<double, 8>;  // columns are added in eights for any register width

// The strip of a unit: columns first .. first + width - 1 of rows 1 .. height - 2.
struct Strip {
    int64_t item, first, width;

    Strip(const MomentsCall &p, int64_t unit)
        : item(unit / p.strips), first(1 + unit % p.strips * p.strip_width) {
        width = least(p.strip_width, p.width - 1 - first);
    }
};

// The sum of a strip's columns, each times its factor.
double add_up(const double *columns, const double *factors, int64_t width) {
    Eight total{};
    for (int64_t x = 0; x < width; x += 8) {
        Eight part = load<Eight>(columns + x) * load<Eight>(factors + x);
        auto there = count_up<Vec<int64_t, 8>>() < width - x;  // numbers beyond may be NaN
        total += there ? part : Eight{};
    }
    return sum(total);
}

// -- the first pass: sums of 1, W, F, W W, F F and W F, times the weight --

template <class T> void first_sums(const Call &call, int64_t begin, int64_t end) {
    constexpr int64_t N = LANES<T>;
    using V = Vec<double, N>;
    const MomentsCall &p = as<MomentsCall>(call);
    const int64_t area = p.height * p.width, last = p.height - 1;
    alignas(64) double columns[SUMS][MOST_COLUMNS], ones[MOST_COLUMNS];
    for (double &one : ones) one = 1;
    for (int64_t unit = begin; unit < end; unit++) {
        const Strip strip(p, unit);
        const T *weight = at<const T>(p.weight) + strip.item * area + strip.first;
        for (int64_t c = 0; c < p.channels; c++) {
            const T *fixed =
                at<const T>(p.fixed) + (strip.item * p.channels + c) * area + strip.first;
            const T *seen =
                at<const T>(p.seen) + (strip.item * p.seen_channels + c) * area + strip.first;
            memset(columns, 0, sizeof columns);
            for (int64_t y0 = 1; y0 < last; y0 += ROWS)
                for (int64_t x = 0; x < strip.width; x += N) {
                    const int64_t left = strip.width - x;
                    V s[SUMS];
                    for (int k = 0; k < SUMS; k++) s[k] = load<V>(columns[k] + x);
                    for (int64_t y = y0; y < least(y0 + ROWS, last); y++) {
                        const int64_t q = y * p.width + x;
                        const V m = convert<V>(take(weight + q, left, p.width));
                        const V w = convert<V>(take(seen + q, left, p.width));
                        const V f = convert<V>(take(fixed + q, left, p.width));
                        const V by_w = m * w, by_f = m * f;
                        s[0] += m, s[1] += by_w, s[2] += by_f;
                        s[3] += by_w * w, s[4] += by_f * f, s[5] += by_w * f;
                    }
                    for (int k = 0; k < SUMS; k++) store(columns[k] + x, s[k]);
                }
            double *out = at<double>(p.out) + (unit * p.channels + c) * SUMS;
            for (int k = 0; k < SUMS; k++) out[k] = add_up(columns[k], ones, strip.width);
        }
    }
}

// -- the second pass --

// The positions of a strip's columns, and the factors of its pixels. There are `maps` maps, each
// with a row of numbers per power of y.
template <class T> struct Second {
    static constexpr int64_t N = LANES<T>;
    using V = Vec<T, N>;
    using Wide = Vec<double, N>;

    const MomentsCall &p;
    const int64_t maps = SHARED + CHANNEL * p.channels, area = p.height * p.width;
    const double half = *at<const double>(p.half);
    double *columns;  // (maps, powers, strip_width)
    T *values;        // (maps, ROWS, N): the maps of one register of columns

    // The maps of one row of pixels at x and y, of which `left` are inside the strip.
    void read(const Strip &strip, int64_t x, int64_t y, int64_t left, T *to) const {
        const int64_t q = y * p.width + strip.first + x, first = strip.item * p.channels;
        const V m = take(at<const T>(p.weight) + strip.item * area + q, left, p.width);
        const T part = T(0.5), unit = T(half / 2);
        V s[SHARED] = {};
        for (int64_t c = 0; c < p.channels; c++) {
            const T a = at<const T>(p.gain)[first + c], b = at<const T>(p.bias)[first + c];
            const T *seen = at<const T>(p.seen) + (strip.item * p.seen_channels + c) * area + q;
            const int64_t place = (first + c) * area + q;
            const V f = take(at<const T>(p.fixed) + place, left, p.width);
            const V fx = take(at<const T>(p.fixed_x) + place, left, p.width);
            const V fy = take(at<const T>(p.fixed_y) + place, left, p.width);
            const V w = take(seen, left, p.width);
            const V wx = (some(seen + 1, left) - some(seen - 1, left)) * part;
            const V wy = (some(seen + p.width, left) - some(seen - p.width, left)) * part;
            const V r = f - b - a * w;
            V gx = fx + a * wx, gy = fy + a * wy;
            if (p.line_x) {
                gx = T(2) * a * take(at<const T>(p.line_x) + place, left, p.width);
                gy = T(2) * a * take(at<const T>(p.line_y) + place, left, p.width);
            }
            gx *= unit, gy *= unit;
            const V mx = m * gx, my = m * gy;
            s[0] = fma(mx, gx, s[0]), s[1] = fma(mx, gy, s[1]), s[2] = fma(my, gy, s[2]);
            s[3] = fma(mx, r, s[3]), s[4] = fma(my, r, s[4]);
            s[5] = fma(m, fma(fx, wx, fy * wy), s[5]);
            s[6] = fma(m, fma(fx, fx, fy * fy), s[6]);
            s[7] = fma(m, fma(wx, wx, wy * wy), s[7]);
            T *own = to + (SHARED + CHANNEL * c) * ROWS * N;
            store(own, mx), store(own + ROWS * N, my);
            store(own + 2 * ROWS * N, mx * w), store(own + 3 * ROWS * N, my * w);
        }
        for (int k = 0; k < SHARED; k++) store(to + k * ROWS * N, s[k]);
    }

    // Adds the maps of `rows` rows, times y^j, to the columns at x.
    template <int POWERS> void add(int64_t x, int64_t rows, const T (*heights)[ROWS]) {
        for (int64_t k = 0; k < maps; k++) {
            V total[POWERS] = {};
            const T *from = values + k * ROWS * N;
            for (int64_t r = 0; r < rows; r++) {
                const V value = load<V>(from + r * N);
                total[0] += value;
                for (int j = 1; j < POWERS; j++)
                    total[j] = fma(splat<V>(heights[j][r]), value, total[j]);
            }
            const int powers = k >= SLOPES && k < SHARED ? 1 : POWERS;
            for (int j = 0; j < powers; j++) {
                double *column = columns + (k * POWERS + j) * p.strip_width + x;
                store(column, load<Wide>(column) + convert<Wide>(total[j]));
            }
        }
    }

    template <int POWERS> void sum_up(const Strip &strip, double *out) {
        T heights[POWERS][ROWS];
        double along[MOST_COLUMNS];
        memset(columns, 0, size_t(maps * p.powers * p.strip_width) * sizeof(double));
        for (int64_t y0 = 1; y0 < p.height - 1; y0 += ROWS) {
            const int64_t rows = least(ROWS, p.height - 1 - y0);
            for (int64_t r = 0; r < rows; r++) {
                const double place = (double(y0 + r) - double(p.height - 1) / 2) / half;
                double power = 1;
                for (int j = 0; j < POWERS; j++, power *= place) heights[j][r] = T(power);
            }
            for (int64_t x = 0; x < strip.width; x += N) {
                for (int64_t r = 0; r < rows; r++)
                    read(strip, x, y0 + r, strip.width - x, values + r * N);
                add<POWERS>(x, rows, heights);
            }
        }
        for (double &one : along) one = 1;
        for (int64_t i = 0; i < p.powers; i++) {
            for (int64_t k = 0; k < maps; k++)
                for (int64_t j = 0; j < p.powers; j++) {
                    double &to = out[(k * p.powers + i) * p.powers + j];
                    if (k >= SLOPES && k < SHARED && i + j > 0) to = 0;
                    else
                        to = add_up(columns + (k * p.powers + j) * p.strip_width, along,
                                    strip.width);
                }
            for (int64_t x = 0; x < p.strip_width; x++)
                along[x] *= (double(strip.first + x) - double(p.width - 1) / 2) / half;
        }
    }
};

template <class T> void second_sums(const Call &call, int64_t begin, int64_t end) {
    const MomentsCall &p = as<MomentsCall>(call);
    const int64_t maps = SHARED + CHANNEL * p.channels, each = maps * p.powers * p.powers;
    BorrowedRow<double> memory(maps * p.powers * p.strip_width);
    BorrowedRow<T> values(maps * ROWS * LANES<T>);
    if (!memory || !values) return;
    Second<T> second{.p = p, .columns = memory.numbers, .values = values.numbers};
    for (int64_t unit = begin; unit < end; unit++) {
        const Strip strip(p, unit);
        double *to = at<double>(p.out) + unit * each;
        if (p.powers == 1) second.template sum_up<1>(strip, to);  // as models.py has them
        else if (p.powers == 3) second.template sum_up<3>(strip, to);
        else second.template sum_up<5>(strip, to);
    }
}

}  // namespace

Kernel choose_first_sums(const Call &call) {
    return as<MomentsCall>(call).doubles ? first_sums<double> : first_sums<float>;
}

Kernel choose_second_sums(const Call &call) {
    return as<MomentsCall>(call).doubles ? second_sums<double> : second_sums<float>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
