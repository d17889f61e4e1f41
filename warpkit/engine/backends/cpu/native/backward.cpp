// The backward kernel: the gradients to image, map and fill in one pass over the tiles.
//
// With g the incoming gradient of an output pixel, tap[j, i] what it reads and w = wy wx:
//
//     grad_image[tap]  += w g
//     grad_mapping     += g (sum wy dx tap, sum dy wx tap) through the map's own derivative
//     grad_fill        += (1 - sum of w over the taps inside) g
//
// The image's gradient is added up in a window, which is added to the image's gradient in memory.
// In both the window and `pushed` the channels of a pixel lie side by side, GROUP of them: so a
// pixel adds to a tap by one load, one multiply-add and one store.
//
// A unit of work is a list of jobs, done one after the other by one thread; so are the tiles of a
// job and the pixels of a tile. The order of every sum follows from shapes and the matrix alone:
// results are the same bits for any number of threads.
#include "kernels.h"
#include "memory.h"
#include "taps.h"

namespace warpkit {
namespace WARPKIT_ISA {

// Part of a row of which `left` pixels are left; 0 beyond them.
template <class R> INLINE Vec<R, LANES<R>> row_part(const R *p, int64_t left) {
    return left >= LANES<R> ? load<Vec<R, LANES<R>>>(p) : load_first(p, left);
}

template <class R, int TAPS> struct Gradients {
    static constexpr int L = LANES<R>, BEFORE = Tile<R, TAPS>::BEFORE;
    static constexpr int DOWN = Order<R, TAPS>::DOWN, ACROSS = Order<R, TAPS>::ACROSS;
    static constexpr int64_t ROOM = Tile<R, TAPS>::ROOM;
    using V = Vec<R, L>;
    using Channels = Vec<R, GROUP>;
    using I = Vec<int32_t, L>;

    Tile<R, TAPS> tile;
    alignas(64) int32_t place[L];               // of the first taps of a vector, in the window
    alignas(64) R pushed[GROUP * PIXELS + 16];  // the incoming gradient, 0 where nothing is read
    alignas(64) R slope_x[PADDED], slope_y[PADDED];  // it times the value's slopes, by all channels
    alignas(64) R window[GROUP * (ROOM + L)];

    // Of the layout of images and gradients: from a channel, and a pixel, to the next.
    int64_t plane, out_plane, pixel;

    void start(const WarpCall &p) {
        tile.start();
        pixel = p.channels_last ? p.channels : 1;
        plane = p.channels_last ? 1 : p.height * p.width;
        out_plane = p.channels_last ? 1 : p.out_height * p.out_width;
    }

    // What to prefetch: planes of the next channels, or of the next tile.
    const R *grad_ahead, *image_ahead, *target_ahead;
    int ahead;
    bool moved;

    // The incoming gradient of a channel at the tile's corner.
    const R *incoming(const WarpCall &p, const Job &job, int64_t channel) const {
        int64_t item = job.item * p.channels * p.out_height * p.out_width;
        return at<const R>(p.grad) + item + channel * out_plane + corner(p) * pixel;
    }
    int64_t corner(const WarpCall &p) const { return tile.y0 * p.out_width + tile.x0; }

    // Fill `pushed` for `count` channels; 0 for absent ones, and for pixels that read nothing.
    void collect(const WarpCall &p, const R *grad, int count) {
        const Tile<R, TAPS> &t = tile;
        if (p.channels_last) return collect_pixels(p, grad, count);
        for (int64_t r = 0; r < t.height; r += DOWN) {
            fetch_incoming(p, r);
            for (int64_t c = 0; c < t.width; c += L) {
                V v[GROUP][DOWN] = {};
                for (int n = 0; n < DOWN && r + n < t.height; n++) {
                    const R *row = grad + (r + n) * p.out_width + c;
                    for (int k = 0; k < count; k++)
                        v[k][n] = row_part(row + k * out_plane, t.width - c);
                }
                for (int k = 0; k < count; k++) Order<R, TAPS>::turn(v[k]);
                for (int n = 0; n < DOWN; n++) {
                    int64_t q = t.number(r, c) + n * L;
                    V each[GROUP];
                    for (int k = 0; k < GROUP; k++) {
                        each[k] = v[k][n];
                        if (!t.whole) each[k] = t.nowhere(q) ? V{} : each[k];
                    }
                    store(pushed + GROUP * q, interleave(each));
                }
            }
        }
    }

    // The same of channels side by side, which they are to be.
    void collect_pixels(const WarpCall &p, const R *grad, int count) {
        const Tile<R, TAPS> &t = tile;
        memset(pushed, 0, sizeof pushed);
        for (int64_t r = 0; r < t.height; r++, grad += p.out_width * pixel)
            for (int64_t c = 0; c < t.width; c++) {
                int64_t q = t.number(r, c);
                if (!t.whole && t.missing[q] == R(NO_TAP)) continue;
                const R *from = grad + c * pixel;
                if (count == GROUP) store(pushed + GROUP * q, load<Channels>(from));
                else
                    for (int k = 0; k < count; k++) pushed[GROUP * q + k] = from[k];
            }
    }

    // -- the image --

    // Add what was pushed to `count` channels of an image's gradient, in rows band .. band_end.
    void add_image(const WarpCall &p, const Job &job, R *to, int count) {
        const Tile<R, TAPS> &t = tile;
        if (t.columns > ROOM || t.rows > ROOM || t.columns * t.rows > ROOM)
            return add_each_tap(p, job, to, count);
        memset(window, 0, size_t(t.columns * t.rows * GROUP) * sizeof(R));
        int64_t line = t.columns * GROUP;
        int32_t first_x = int32_t(t.left + BEFORE), first_y = int32_t(t.top + BEFORE);
        for (int64_t r = 0; r < t.height; r += DOWN) {
            t.fetch(p, target_ahead, ahead, moved, r);
            for (int64_t q = t.number(r, 0), end = q + t.filled(); q < end; q += L) {
                I x = load<I>(t.column + q) - first_x, y = load<I>(t.row + q) - first_y;
                I here = (y * int32_t(t.columns) + x) * GROUP;
                if (!t.whole) here = convert<I>(t.nowhere(q)) ? I{} : here;
                store(place, here);
                for (int n = 0; n < L; n++) add_taps(window + place[n], line, q + n);
            }
        }
        flush(p, job, to, count);
    }

    // Add what pixel q pushes to its taps, the first of which is at `tap`; rows are `line` apart.
    INLINE void add_taps(R *tap, int64_t line, int64_t q) const {
        Channels push = load<Channels>(pushed + GROUP * q);
        if constexpr (TAPS == 1) return store(tap, load<Channels>(tap) + push);
        for (int n = 0; n < TAPS; n++, tap += line) {
            Channels share = push * tile.wy[n][q];
            for (int k = 0; k < TAPS; k++) {
                R *here = tap + GROUP * k;
                store(here, fma(splat<Channels>(tile.wx[k][q]), share, load<Channels>(here)));
            }
        }
    }

    // Add the window to the gradient in memory.
    void flush(const WarpCall &p, const Job &job, R *to, int count) {
        const Tile<R, TAPS> &t = tile;
        int64_t first = clamped(-t.left, 0, t.columns);
        int64_t last = clamped(p.width - t.left, first, t.columns);
        for (int64_t r = 0; r < t.rows; r++) {
            int64_t y = resolve(t.top + r, p.height, p.border_y);
            if (y < job.band || y >= job.band_end) continue;  // missing ones, too
            const R *from = window + r * t.columns * GROUP;
            R *row = to + y * p.width * pixel;
            if (p.channels_last) {
                for (int64_t c = first; c < last; c++)
                    add_channels(row + (t.left + c) * pixel, from + GROUP * c, count);
            } else {
                for (int64_t c = first; c < last; c += L)
                    add_vector(row + t.left + c, from + GROUP * c, count, last - c);
            }
            if (misses(p.border_x)) continue;
            for (int64_t c = 0; c < t.columns; c = c + 1 == first ? last : c + 1) {
                if (c == first && first < last) c = last;  // none before it
                if (c >= t.columns) break;
                R *folded = row + resolve(t.left + c, p.width, p.border_x) * pixel;
                for (int k = 0; k < count; k++) folded[k * plane] += from[GROUP * c + k];
            }
        }
    }

    INLINE void add_vector(R *to, const R *from, int count, int64_t left) const {
        V v[GROUP];
        part(from, v);
        for (int k = 0; k < count; k++, to += plane) {
            if (left >= L) store(to, load<V>(to) + v[k]);
            else store_first(to, load_first(to, left) + v[k], left);
        }
    }

    static INLINE void add_channels(R *to, const R *from, int count) {
        if (count == GROUP) return store(to, load<Channels>(to) + load<Channels>(from));
        for (int k = 0; k < count; k++) to[k] += from[k];
    }

    // The same for taps that are too far apart for a window.
    void add_each_tap(const WarpCall &p, const Job &job, R *to, int count) {
        const Tile<R, TAPS> &t = tile;
        for (int64_t r = 0; r < t.height; r++)
            for (int64_t c = 0; c < t.width; c++) {
                int64_t q = t.number(r, c);
                if (!t.whole && t.missing[q] == R(NO_TAP)) continue;
                for (int n = 0; n < TAPS * TAPS; n++) {
                    int64_t x, y;
                    if (!t.tap(p, q, n, x, y) || y < job.band || y >= job.band_end) continue;
                    for (int k = 0; k < count; k++) {
                        R value = pushed[GROUP * q + k];
                        if constexpr (TAPS > 1)
                            value = t.wx[n % TAPS][q] * (t.wy[n / TAPS][q] * value);
                        to[k * plane + (y * p.width + x) * pixel] += value;
                    }
                }
            }
    }

    // -- the map --

    // Add what was pushed to CH channels from `channel` on, times the slopes of their values:
    //     along = sum_j wy[j] sum_i dx[i] tap[j, i],  across = sum_j dy[j] sum_i wx[i] tap[j, i]
    // where a missing tap is the fill.
    template <int CH, bool CLOSE>
    void add_slopes(const WarpCall &p, const Job &job, int64_t source, int64_t channel) {
        Tile<R, TAPS> &t = tile;
        const R *fill = at<const R>(p.fill) + job.item * p.fill_item + channel * p.fill_channel;
        const R *planes[CH];
        R fills[GROUP] = {};
        if (!p.dense)
            for (int k = 0; k < CH; k++) fills[k] = fill[k * p.fill_channel];
        t.planes_of(p, source, channel, CH, fills, planes);
        const bool whole = t.whole;
        for (int64_t r = 0; r < t.height; r += DOWN) {
            t.fetch(p, image_ahead, ahead, moved, r);
            for (int64_t q = t.number(r, 0), end = q + t.filled(), c = 0; q < end;
                 q += L, c += ACROSS) {
                V wx[TAPS], wy[TAPS], dx[TAPS], dy[TAPS], push[GROUP];
                for (int k = 0; k < TAPS; k++) {
                    wx[k] = load<V>(t.wx[k] + q), wy[k] = load<V>(t.wy[k] + q);
                    if constexpr (TAPS > 2)
                        dx[k] = load<V>(t.dx[k] + q), dy[k] = load<V>(t.dy[k] + q);
                }
                V x = channel ? load<V>(slope_x + q) : V{},
                  y = channel ? load<V>(slope_y + q) : V{};
                part(pushed + GROUP * q, push);
                Taps<R, TAPS, CLOSE> where(t, q);
                for (int k = 0; k < CH; k++) {
                    V along, across, up[2];
                    where.each_row(planes[k], [&](int n, const V *taps) {
                        if constexpr (TAPS == 2) {
                            if (n == 0) {
                                up[0] = taps[0], up[1] = taps[1];
                                return;
                            }
                            along = fma(wy[1], taps[1] - taps[0], wy[0] * (up[1] - up[0]));
                            across = fma(wx[1], taps[1] - up[1], wx[0] * (taps[0] - up[0]));
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
        if (p.dense && !whole)
            for (int k = 0; k < CH; k++) add_background_slopes(p, fill + k * p.fill_channel, k);
    }

    template <int CH>
    void add_any_slopes(const WarpCall &p, const Job &job, int64_t source, int64_t channel) {
        constexpr bool BLOCKS = TAPS == 2 && DOWN == 4;
        if (BLOCKS && tile.close) add_slopes<CH, BLOCKS>(p, job, source, channel);
        else add_slopes<CH, false>(p, job, source, channel);
    }

    // What the weights of missing taps contribute where the fill is a background.
    void add_background_slopes(const WarpCall &p, const R *fill, int lane) {
        const Tile<R, TAPS> &t = tile;
        for (int64_t r = 0; r < t.height; r++)
            for (int64_t c = 0; c < t.width; c++) {
                int64_t q = t.number(r, c);
                if (t.missing[q] == R(ALL_TAPS) || t.missing[q] == R(NO_TAP)) continue;
                R in_x = 1, in_y = 1, change_x = 0, change_y = 0;
                if (misses(p.border_x))
                    sum_inside(t.column[q], p.width, t.wx, t.dx, q, in_x, change_x);
                if (misses(p.border_y))
                    sum_inside(t.row[q], p.height, t.wy, t.dy, q, in_y, change_y);
                R push = pushed[GROUP * q + lane];
                push *= fill[(t.y0 + r) * p.fill_row + (t.x0 + c) * p.fill_column];
                slope_x[q] -= push * change_x * in_y;
                slope_y[q] -= push * in_x * change_y;
            }
    }

    static void sum_inside(int32_t whole_pixel, int64_t length, const R (*weights)[PADDED],
                           const R (*slopes)[PADDED], int64_t q, R &sum, R &slope) {
        sum = 0;
        for (int k = 0; k < TAPS; k++) {
            int64_t here = int64_t(whole_pixel) + k - BEFORE;
            if (here < 0 || here >= length) continue;
            sum += weights[k][q];
            slope += TAPS == 2 ? R(2 * k - 1) : slopes[k][q];
        }
    }

    using Eight = Vec<double, 8>;
    INLINE static Eight eight(const R *of, int64_t r, int64_t c) {
        constexpr int RUN = ACROSS < 8 ? ACROSS : 8;
        R pixels[8];
        for (int k = 0; k < 8; k += RUN)
            memcpy(pixels + k, of + Order<R, TAPS>::number(r, c + k), sizeof(R) * RUN);
        return convert<Eight>(load<Vec<R, 8>>(pixels));
    }

    // A matrix's sums, in float64, eight pixels at a time whatever the processor: the slopes, alone
    // and times column and row. Under an affine map these count from the tile's corner, which is
    // added at the end.
    template <int ROWS> void add_matrix(double *to) {
        const Tile<R, TAPS> &t = tile;
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

    // A field's gradient, (x, y) side by side, in its own type.
    template <class P> void write_points(const WarpCall &p, const Job &job, P *to) {
        const Tile<R, TAPS> &t = tile;
        to += 2 * (job.item * p.out_height * p.out_width + corner(p));
        for (int64_t r = 0; r < t.height; r++, to += 2 * p.out_width)
            for (int64_t c = 0; c < t.width; c++) {
                int64_t q = t.number(r, c);
                to[2 * c] = t.empty ? P(0) : P(slope_x[q]),
                       to[2 * c + 1] = t.empty ? P(0) : P(slope_y[q]);
            }
    }

    void add_mapping(const WarpCall &p, const Job &job) {
        if (p.kind == POINTS && p.single) write_points(p, job, at<float>(p.grad_mapping));
        else if (p.kind == POINTS) write_points(p, job, at<double>(p.grad_mapping));
        else if (tile.empty) return;
        else if (p.kind == AFFINE) add_matrix<2>(at<double>(p.grad_mapping) + 9 * job.slot);
        else add_matrix<3>(at<double>(p.grad_mapping) + 9 * job.slot);
    }

    // -- the fill --

    // One value for every pixel of a background, else one sum for each channel, in as many lanes on
    // every processor.
    void add_fill(const WarpCall &p, const Job &job, int64_t channel) {
        const Tile<R, TAPS> &t = tile;
        constexpr int SUMS = 64 / int(sizeof(R));
        double sums[SUMS] = {};
        const R *grad = incoming(p, job, channel);
        double *dense = at<double>(p.grad_fill);
        dense += (job.item * p.channels + channel) * p.out_height * p.out_width + corner(p);
        for (int64_t r = 0; r < t.height; r++)
            for (int64_t c = 0; c < t.width; c++) {
                R share = t.missing[t.number(r, c)];
                share = share == R(ALL_TAPS) ? R(0) : share == R(NO_TAP) ? R(1) : share;
                R push = share != 0 ? share * grad[(r * p.out_width + c) * pixel] : R(0);
                if (p.dense) dense[r * p.out_width + c] = push;
                else sums[c % SUMS] += push;
            }
        if (p.dense) return;
        for (int n = SUMS / 2; n; n /= 2)
            for (int k = 0; k < n; k++) sums[k] += sums[n + k];
        at<double>(p.grad_fill)[job.slot * p.channels + channel] += sums[0];
    }

    // -- a tile --

    void add_tile(const WarpCall &p, const Job &job, int64_t x0, int64_t tile_row) {
        Tile<R, TAPS> &t = tile;
        bool owner = true;
        if (p.row_ranges) {  // tiles that several bands do add to map and fill but once
            int64_t tiles_x = (p.out_width + TILE - 1) / TILE,
                    tiles_y = (p.out_height + TILE - 1) / TILE;
            int64_t number = (job.item * tiles_y + tile_row) * tiles_x + x0 / TILE;
            int64_t top = at<const int64_t>(p.row_ranges)[2 * number];
            int64_t bottom = at<const int64_t>(p.row_ranges)[2 * number + 1];
            owner = job.band <= top && top < job.band_end;
            if (!owner && (bottom < job.band || top >= job.band_end)) return;
        }
        bool slopes = p.needs_mapping && owner && TAPS > 1;
        if (slopes) t.template look<(TAPS > 2)>(p, job.item, x0, tile_row * TILE);
        else t.template look<false>(p, job.item, x0, tile_row * TILE);
        int64_t area = p.height * p.width;
        int64_t source = at<const int64_t>(p.image_of)[job.item] * p.channels * area;
        R *target = at<R>(p.grad_image) + job.accumulator * p.channels * area;
        for (int64_t k = 0; k < p.channels && !t.empty && (p.needs_image || slopes); k += GROUP) {
            int count = int(least<int64_t>(GROUP, p.channels - k));
            const R *grad = incoming(p, job, k);
            // what is read next: the same box of the next channels, or the next tile's of the first
            int64_t rest = p.channels - k - count, next = rest > 0 ? k + count : 0;
            ahead = int(least<int64_t>(GROUP, rest > 0 ? rest : p.channels));
            moved = rest <= 0;
            grad_ahead = incoming(p, job, next);
            if (moved)
                grad_ahead =
                    incoming(p, job, next) + (t.next_y(p) * p.out_width + t.next_x(p)) * pixel;
            image_ahead = at<const R>(p.image) + source + next * plane,
            target_ahead = target + next * plane;
            collect(p, grad, count);
            if (p.needs_image) add_image(p, job, target + k * plane, count);
            if constexpr (TAPS > 1)
                if (slopes) switch (count) {
                        case 1: add_any_slopes<1>(p, job, source, k); break;
                        case 2: add_any_slopes<2>(p, job, source, k); break;
                        case 3: add_any_slopes<3>(p, job, source, k); break;
                        default: add_any_slopes<4>(p, job, source, k);
                    }
        }
        if (slopes) add_mapping(p, job);
        if (p.needs_fill && owner && !t.whole)
            for (int64_t k = 0; k < p.channels; k++) add_fill(p, job, k);
    }

    // Prefetch DOWN rows of an incoming gradient, from row r on.
    INLINE void fetch_incoming(const WarpCall &p, int64_t r) const {
        for (int k = 0; k < ahead && !p.channels_last; k++)
            for (int64_t n = r; n < r + DOWN; n++)
                for (int64_t x = 0; x < TILE; x += 64 / int(sizeof(R)))
                    __builtin_prefetch(grad_ahead + k * out_plane + n * p.out_width + x);
    }
};

template <class R, int TAPS> void backward(const Call &call, int64_t begin, int64_t end) {
    const WarpCall &p = as<WarpCall>(call);
    Borrowed<Gradients<R, TAPS>> memory;
    if (!memory) return;
    Gradients<R, TAPS> &g = *memory;
    g.start(p);
    const int64_t *starts = at<const int64_t>(p.starts);
    for (int64_t n = starts[begin]; n < starts[end]; n++) {
        const Job &job = at<const Job>(p.jobs)[n];
        if (p.needs_image)
            memset(at<R>(p.grad_image) + job.clear, 0,
                   size_t(job.clear_end - job.clear) * sizeof(R));
        for (int64_t row = job.first_row; row < job.end_row; row++)
            for (int64_t x0 = 0; x0 < p.out_width; x0 += TILE) g.add_tile(p, job, x0, row);
    }
}

// The first and the last image row that each tile reads, the last before the first for none. Units
// are rows of tiles, numbered across all items.
template <int TAPS> void row_ranges(const Call &call, int64_t begin, int64_t end) {
    const WarpCall &p = as<WarpCall>(call);
    Borrowed<Tile<float, TAPS>> memory;
    if (!memory) return;
    Tile<float, TAPS> &t = *memory;
    t.start();
    int64_t tile_rows = (p.out_height + TILE - 1) / TILE, tiles_x = (p.out_width + TILE - 1) / TILE;
    int64_t *to = at<int64_t>(p.row_ranges) + 2 * begin * tiles_x;
    for (int64_t unit = begin; unit < end; unit++)
        for (int64_t x0 = 0; x0 < p.out_width; x0 += TILE, to += 2) {
            t.template look<false>(p, unit / tile_rows, x0, unit % tile_rows * TILE);
            to[0] = t.top, to[1] = t.top + t.rows - 1;
            if (t.empty) to[0] = 0, to[1] = -1;
            else if (misses(p.border_y) || p.border_y == REPLICATE)
                to[0] = clamped(to[0], 0, p.height - 1), to[1] = clamped(to[1], 0, p.height - 1);
            else if (to[0] < 0 || to[1] >= p.height) to[0] = 0, to[1] = p.height - 1;
        }
}

// float32 and float64; 1, 2, 4 and 8 taps.
Kernel choose_backward(const Call &call) {
    static const Kernel KERNELS[2][4] = {
        {backward<float, 1>, backward<float, 2>, backward<float, 4>, backward<float, 8>},
        {backward<double, 1>, backward<double, 2>, backward<double, 4>, backward<double, 8>},
    };
    const WarpCall &p = as<WarpCall>(call);
    return KERNELS[p.type][logarithm(p.taps)];
}

Kernel choose_row_ranges(const Call &call) {
    static const Kernel KERNELS[] = {row_ranges<1>, row_ranges<2>, row_ranges<4>, row_ranges<8>};
    return KERNELS[logarithm(as<WarpCall>(call).taps)];
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
