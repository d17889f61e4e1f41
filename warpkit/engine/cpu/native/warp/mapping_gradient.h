// The gradient to a matrix or to a field of points: every pixel's derivative by its source point.
//
//     grad_mapping += push (sum wy dx tap, sum dy wx tap) through the map's own derivative
//
// `add_slopes` computes both sums of every pixel over all channels; `write` then adds those of all
// pixels of a tile to a matrix, or writes them to the field.
#pragma once
#include "warp/image_gradient.h"
#include "warp/taps.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

template <class R, int DOWN> struct MappingGradient {
    using T = Tile<R, DOWN>;
    static constexpr int L = LANES<R>, ACROSS = T::ACROSS;
    using V = Vec<R, L>;

    alignas(64) R slope_x[PADDED], slope_y[PADDED];  // of each pixel

    // of a job whose points come from depths
    DepthNumbers numbers;
    DepthSums sums;

    void begin_view(const T &t, int64_t index) {
        numbers = sound_numbers(*t.view, index);
        sums = DepthSums{};
    }
    void end_view(const T &t, const Job &job) const {
        write_sums(numbers, sums, at<double>(t.view->sums) + job.slot * DepthSums::NUMBERS);
    }

    // Add the incoming gradient of a group of channels, times the slopes of their values.
    void add_slopes(const WarpCall &p, const Job &job, T &t, const Pushes<R> &g) {
        const R *fill = at<const R>(p.fill) + job.item * p.fill_item + g.first * p.fill_channel;
        const R *planes[GROUP];
        R fills[GROUP] = {};
        for (int k = 0; k < g.count && !p.dense; k++) fills[k] = fill[k * p.fill_channel];
        t.planes_of(p, g.source, g.first, g.count, fills, planes);
        if constexpr (DOWN == 4) {
            if (t.close) add_pixels<2, true, true>(p, t, g, planes);
            else add_pixels<2, false, true>(p, t, g, planes);
        } else
            with_taps(t.taps, [&](auto taps) {
                if constexpr (taps == 2) add_pixels<2, false, true>(p, t, g, planes);
                if constexpr (taps > 2)
                    t.whole ? add_pixels<taps, false, false>(p, t, g, planes)
                            : add_pixels<taps, false, true>(p, t, g, planes);
            });
        for (int k = 0; k < g.count && p.dense && !t.whole; k++)
            add_background(p, t, g, fill + k * p.fill_channel, k);
    }

    // A tile's part of the gradient, after all channels.
    void write(const WarpCall &p, const Job &job, const T &t) {
        if (t.view) add_view(t);
        else if (p.kind == POINTS && p.single) write_points(p, job, t, at<float>(p.grad_mapping));
        else if (p.kind == POINTS) write_points(p, job, t, at<double>(p.grad_mapping));
        else if (t.empty) return;
        else if (p.kind == AFFINE) add_matrix<2>(t, at<double>(p.grad_mapping) + 9 * job.slot);
        else add_matrix<3>(t, at<double>(p.grad_mapping) + 9 * job.slot);
    }

  private:
    //     along = sum_j wy[j] sum_i dx[i] tap[j, i],  across = sum_j dy[j] sum_i wx[i] tap[j, i]
    // where the fill replaces a missing tap.
    //
    // FAR: by differences of taps, and of rows, which are exactly 0 where these are equal. Towards
    // a horizon points are up to 2^31 pixels away, and all taps read the same pixel of a border.
    // They multiply the rounding error of a sum of slopes, which is 0 only in exact numbers.
    template <int TAPS, bool CLOSE, bool FAR>
    void add_pixels(const WarpCall &p, const T &t, const Pushes<R> &g, const R *const *planes) {
        const bool whole = t.whole;
        const int count = g.count;
        for (int64_t r = 0; r < t.height; r += DOWN) {
            t.fetch(p, g.image_ahead, g.ahead, g.moved, r);
            for (int64_t q = t.number(r, 0), end = q + t.filled(), c = 0; q < end;
                 q += L, c += ACROSS) {
                V wx[TAPS], wy[TAPS], dx[TAPS], dy[TAPS], push[GROUP];
                for (int k = 0; k < TAPS; k++) {
                    wx[k] = load<V>(t.wx[k] + q), wy[k] = load<V>(t.wy[k] + q);
                    if constexpr (TAPS > 2)
                        dx[k] = load<V>(t.dx[k] + q), dy[k] = load<V>(t.dy[k] + q);
                }
                V x = g.first ? load<V>(slope_x + q) : V{};
                V y = g.first ? load<V>(slope_y + q) : V{};
                part(g.pushed + GROUP * q, push);
                Taps<R, TAPS, CLOSE> where(t, q);
                for (int k = 0; k < count; k++) {
                    V along, across, up[2], top;
                    where.each_row(planes[k], [&](int n, const V *taps) {
                        if constexpr (TAPS == 2) {
                            if (n == 0) {
                                up[0] = taps[0], up[1] = taps[1];
                                return;
                            }
                            along = fma(wy[1], taps[1] - taps[0], wy[0] * (up[1] - up[0]));
                            across = fma(wx[1], taps[1] - up[1], wx[0] * (taps[0] - up[0]));
                        } else if constexpr (FAR) {
                            V change = dx[1] * (taps[1] - taps[0]), line = wx[0] * taps[0];
                            for (int i = 2; i < TAPS; i++)
                                change = fma(dx[i], taps[i] - taps[0], change);
                            for (int i = 1; i < TAPS; i++) line = fma(wx[i], taps[i], line);
                            along = n ? fma(wy[n], change, along) : wy[0] * change;
                            if (n == 0) top = line;
                            across = n > 1 ? fma(dy[n], line - top, across) : dy[n] * (line - top);
                        } else {
                            V change = dx[0] * taps[0], line = wx[0] * taps[0];
                            for (int i = 1; i < TAPS; i++)
                                change = fma(dx[i], taps[i], change),
                                line = fma(wx[i], taps[i], line);
                            along = n ? fma(wy[n], change, along) : wy[0] * change;
                            across = n ? fma(dy[n], line, across) : dy[0] * line;
                        }
                    });
                    x = fma(push[k], along, x), y = fma(push[k], across, y);
                }
                auto some = t.inside(r, c);
                if (!whole) some &= ~t.nowhere(q);
                store(slope_x + q, some ? x : V{}), store(slope_y + q, some ? y : V{});
            }
        }
    }

    // The contribution of missing taps' weights if the fill is a background.
    void add_background(const WarpCall &p, const T &t, const Pushes<R> &g, const R *fill,
                        int lane) {
        for (int64_t r = 0; r < t.height; r++)
            for (int64_t c = 0; c < t.width; c++) {
                int64_t q = t.number(r, c);
                if (t.missing[q] == R(ALL_TAPS) || t.missing[q] == R(NO_TAP)) continue;
                R in_x = 1, in_y = 1, change_x = 0, change_y = 0;
                if (misses(p.border_x))
                    sum_inside(t, t.column[q], p.width, t.wx, t.dx, q, in_x, change_x);
                if (misses(p.border_y))
                    sum_inside(t, t.row[q], p.height, t.wy, t.dy, q, in_y, change_y);
                R push = g.pushed[GROUP * q + lane];
                push *= fill[(t.y0 + r) * p.fill_row + (t.x0 + c) * p.fill_column];
                slope_x[q] -= push * change_x * in_y;
                slope_y[q] -= push * in_x * change_y;
            }
    }

    static void sum_inside(const T &t, int32_t whole_pixel, int64_t length,
                           const R (*weights)[PADDED], const R (*slopes)[PADDED], int64_t q, R &sum,
                           R &slope) {
        sum = 0;
        for (int64_t k = 0; k < t.taps; k++) {
            int64_t here = int64_t(whole_pixel) + k - t.before;
            if (here < 0 || here >= length) continue;
            sum += weights[k][q];
            slope += t.taps == 2 ? R(2 * k - 1) : slopes[k][q];
        }
    }

    using Eight = Vec<double, 8>;
    static INLINE Eight eight(const R *of, int64_t r, int64_t c) {
        constexpr int RUN = ACROSS < 8 ? ACROSS : 8;
        R pixels[8];
        for (int k = 0; k < 8; k += RUN)
            memcpy(pixels + k, of + T::number(r, c + k), sizeof(R) * RUN);
        return convert<Eight>(load<Vec<R, 8>>(pixels));
    }

    // Through the points to depths, poses and cameras.
    void add_view(const T &t) {
        alignas(64) double x[BAND][TILE], y[BAND][TILE];
        for (int64_t r = 0; r < t.height; r += BAND) {
            const int64_t rows = least<int64_t>(BAND, t.height - r);
            for (int64_t n = 0; n < rows; n++)
                for (int64_t c = 0; c < t.width; c += 8) {
                    auto none = count_up<Vec<int64_t, 8>>() >= (t.empty ? 0 : t.width - c);
                    store(x[n] + c, none ? Eight{} : eight(slope_x, r + n, c));
                    store(y[n] + c, none ? Eight{} : eight(slope_y, r + n, c));
                }
            const ViewPart part{t.index, t.y0 + r, rows, t.x0, t.width};
            t.rows_of_view.back(*t.view, numbers, part, x[0], y[0], sums);
        }
    }

    // A matrix's sums, in float64, eight pixels at a time on every processor: the slopes, alone and
    // times column and row. Under an affine map these are relative to the tile's corner, which is
    // added at the end.
    template <int ROWS> void add_matrix(const T &t, double *to) const {
        const double *m = t.matrix;
        Eight sums[3 * ROWS] = {};
        for (int64_t r = 0; r < t.height; r++)
            for (int64_t c = 0; c < t.width; c += 8) {
                Eight gx = eight(slope_x, r, c), gy = eight(slope_y, r, c), gw{};
                Eight x = count_up<Eight>() + double(c), y = splat<Eight>(double(r));
                if constexpr (ROWS == 3) {
                    x += double(t.x0), y += double(t.y0);
                    Eight u = x * m[0] + y * m[1] + m[2], v = x * m[3] + y * m[4] + m[5];
                    Eight w = x * m[6] + y * m[7] + m[8];
                    gx /= w, gy /= w;
                    gw = 0.0 - (gx * (u / w) + gy * (v / w));
                    if (!t.whole) {
                        auto none = eight(t.missing, r, c) == double(NO_TAP);
                        gx = none ? Eight{} : gx, gy = none ? Eight{} : gy,
                        gw = none ? Eight{} : gw;
                    }
                }
                auto beyond = count_up<Vec<int64_t, 8>>() >= t.width - c;
                Eight slopes[] = {beyond ? Eight{} : gx, beyond ? Eight{} : gy,
                                  beyond ? Eight{} : gw};
                for (int k = 0; k < ROWS; k++) {
                    sums[3 * k] += slopes[k] * x, sums[3 * k + 1] += slopes[k] * y;
                    sums[3 * k + 2] += slopes[k];
                }
            }
        for (int k = 0; k < ROWS; k++) {
            double by_x = sum(sums[3 * k]), by_y = sum(sums[3 * k + 1]),
                   alone = sum(sums[3 * k + 2]);
            if (ROWS == 2) by_x += double(t.x0) * alone, by_y += double(t.y0) * alone;
            to[3 * k] += by_x, to[3 * k + 1] += by_y, to[3 * k + 2] += alone;
        }
    }

    // A field's gradient, (x, y) adjacent, in its own type.
    template <class P>
    void write_points(const WarpCall &p, const Job &job, const T &t, P *to) const {
        to += 2 * (job.item * p.out_height * p.out_width + t.y0 * p.out_width + t.x0);
        for (int64_t r = 0; r < t.height; r++, to += 2 * p.out_width)
            for (int64_t c = 0; c < t.width; c++) {
                int64_t q = t.number(r, c);
                to[2 * c] = t.empty ? P(0) : P(slope_x[q]);
                to[2 * c + 1] = t.empty ? P(0) : P(slope_y[q]);
            }
    }
};

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
