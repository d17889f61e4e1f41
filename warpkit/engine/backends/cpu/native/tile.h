// A tile of the result: where its pixels look, with which weights, and what they read.
//
// Kernels go through the result tile by tile, since the pixels of a small square look at a small
// part of the image, which fits the nearest cache. For each tile `look` finds, in this order,
//
//     the source point of every pixel, its whole pixel, and the weights of the taps around it;
//     the box of all taps, and of each pixel the place of its first tap in that box;
//     where the box reaches over the border: which taps are missing, and the sum of their weights.
//
// Then, for each group of channels, `planes_of` says where the box is: in the image itself, or in a
// window that it is copied to, where it reaches over the border or the image's memory is no plane
// of the type that is computed with. Every pixel then reads its taps alike, see `taps.h`.
//
// Positions are computed in float64 in the reference's order of operations, so that both choose the
// same neighbours to the last bit; weights too, and are rounded once.
#pragma once
#include <math.h>

#include "neighbours.h"
#include "rules.h"

namespace warpkit {
namespace WARPKIT_ISA {

// Turned by 33 degrees, a tile of 32 x 32 spans 1.6 times its pixels in the source, and one of
// 16 x 64 spans 2.4 times.
constexpr int TILE = 32, PIXELS = TILE * TILE;
// From one array of a tile to the next: at whole pages all of them would meet in one set of the
// nearest cache, where a store takes ten times as long.
constexpr int PADDED = PIXELS + 16;
constexpr int GROUP = 4;                // channels that are read together, at most
constexpr double LIMIT = 2147483648.0;  // points of this magnitude and beyond are nowhere
// `missing` of a pixel with all its taps, and with none; no sum of weights is as large
constexpr float ALL_TAPS = 8, NO_TAP = 16;
constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52: adding and subtracting it rounds

using Ints = Vec<int32_t, D>;
using Longs = Vec<int64_t, D>;

// The pixels of a vector: DOWN rows of ACROSS pixels, row by row. Sixteen floats of two taps are a
// block of 4 x 4 pixels, whose taps lie close together, see `taps.h`; all others are part of a row.
// DOWN vectors side by side make up a patch of DOWN rows of L pixels. Patches follow each other row
// by row in a tile, and vectors in a patch.
template <class R, int TAPS> struct Order {
    static constexpr int L = LANES<R>;
    static constexpr int DOWN = L == 16 && TAPS == 2 ? 4 : 1, ACROSS = L / DOWN;

    // The number of the pixel in row r and column c of a tile.
    static INLINE int64_t number(int64_t r, int64_t c) {
        return ((r / DOWN) * (TILE / ACROSS) + c / ACROSS) * L + r % DOWN * ACROSS + c % ACROSS;
    }
    // Column and row of each lane.
    static constexpr int column(int lane) { return lane % ACROSS; }
    static constexpr int row(int lane) { return lane / ACROSS; }

    // From the vectors of a patch to its rows, and back.
    template <class V> static INLINE void turn(V *v) {
        if constexpr (DOWN == 4) turn_pieces(v);
    }
};

template <class R, int TAPS> struct Tile : Order<R, TAPS> {
    static constexpr int BEFORE = TAPS > 1 ? TAPS / 2 - 1 : 0;  // taps before the whole pixel
    static constexpr int L = LANES<R>, DOWN = Order<R, TAPS>::DOWN, ACROSS = Order<R, TAPS>::ACROSS;
    using V = Vec<R, L>;        // pixels that are computed together
    using I = Vec<int32_t, L>;  // as many whole numbers
    // Pixels of a window. A larger box is replaced by one box of TAPS x TAPS for each pixel.
    static constexpr int64_t ROOM = PIXELS * (TAPS <= 2 ? 8 : TAPS * TAPS);
    static constexpr int64_t ROWS = 512;     // of a box whose rows are looked at one by one
    static constexpr int64_t BEYOND = 1024;  // what a window is read beyond its end, at most

    // of each pixel, by its number; patches are filled
    alignas(64) int32_t column[PADDED], row[PADDED];  // its whole pixel: at or before the point
    alignas(64) int32_t offset[PADDED];               // of the first tap, from the box's corner
    alignas(64) R wx[TAPS][PADDED], wy[TAPS][PADDED], dx[TAPS][PADDED], dy[TAPS][PADDED];
    alignas(64) R missing[PADDED];  // the sum of the weights of missing taps, ALL_TAPS, or NO_TAP
    int32_t base[PIXELS / L];       // where `close`: of each block's 8 x 8 pixels, from the corner
    alignas(64) R window[GROUP][ROOM + BEYOND + 16];
    alignas(64) int32_t low[ROWS], high[ROWS];  // the columns of the box that a row of it needs
    int64_t source_column[ROOM];  // under borders without missing taps: what a box's column reads

    int64_t x0, y0, width, height;     // in the result
    int64_t left, top, columns, rows;  // the box of all taps, in the image
    int64_t stride;                    // from one row of the box to the next, in memory
    bool whole;                        // no tap is missing, or folded back into the image
    bool empty;                        // no tap is there
    bool boxed;                        // one box holds all taps
    bool in_place;                     // it is read from the image itself
    bool close;                        // the taps of every block of 4 x 4 lie in 8 x 8 pixels
    double matrix[9];

  private:
    int64_t west, east, north, south;  // bounds of the whole pixels
    double corner_x[4], corner_y[4];   // where an affine map's tile looks, around it
    bool cornered;                     // these are known, and no pixel is moved to the border
    bool all_near;                     // every point is a number below LIMIT
    int64_t last_left, last_top;       // the corner of the tile before
    int64_t moved_x, moved_y;          // of the box, since then
    bool fetches;

  public:
    // Forget the tile before, of which nothing is known at first.
    void start() { last_left = last_top = 0; }

    // Everything about the tile at (x, y) but pixels. SLOPED: with the derivatives of weights.
    template <bool SLOPED>
    __attribute__((noinline)) void look(const WarpCall &p, int64_t item, int64_t x, int64_t y) {
        x0 = x, y0 = y, cornered = false;
        width = least<int64_t>(TILE, p.out_width - x),
        height = least<int64_t>(TILE, p.out_height - y);
        int64_t map = at<const int64_t>(p.mapping_of)[item] * p.mapping_size;
        for (int64_t k = 0; k < 3 * p.kind; k++) matrix[k] = at<const double>(p.mapping)[map + k];
        if (p.kind == AFFINE && bound_by_corners()) map_pixels<AFFINE, false, SLOPED>(p, map);
        else if (p.kind == AFFINE) map_pixels<AFFINE, true, SLOPED>(p, map);
        else if (p.kind == PERSPECTIVE) map_pixels<PERSPECTIVE, true, SLOPED>(p, map);
        else map_pixels<POINTS, true, SLOPED>(p, map);
        set_box();
        whole = all_near && left >= 0 && top >= 0;
        whole = whole && left + columns <= p.width && top + rows <= p.height;
        if (!whole) cover(p);
        in_place = whole && !p.channels_last && p.type == (sizeof(R) == 4 ? FLOAT32 : FLOAT64);
        in_place = in_place && rows < INT32_MAX / p.width;
        boxed = in_place || (columns <= ROOM && rows <= ROOM && columns * rows <= ROOM);
        stride = in_place ? p.width : boxed ? columns : TAPS;
        close = false;
        plan_fetch(p);
        if (empty || TAPS == 1) return;  // nearest moves single pixels
        if (boxed) set_offsets();
        else set_single_offsets();
        if constexpr (DOWN == 4)
            if (boxed) find_blocks(p);
        if (boxed && !in_place)
            find_extents(cornered && p.border_x != REPLICATE && p.border_y != REPLICATE);
        if (boxed && !in_place && !misses(p.border_x))
            for (int64_t c = 0; c < columns; c++)
                source_column[c] = resolve(left + c, p.width, p.border_x);
    }

    // Where `count` channels of the item at `source` are, from the box's corner on. Of what is
    // missing: the fill of each channel.
    void planes_of(const WarpCall &p, int64_t source, int64_t channel, int count, const R *fill,
                   const R **planes) {
        int64_t area = p.height * p.width;
        for (int k = 0; k < count; k++) {
            planes[k] = window[k];
            if (in_place)
                planes[k] =
                    at<const R>(p.image) + source + (channel + k) * area + top * p.width + left;
        }
        if (in_place) return;
        switch (p.type) {
            case FLOAT32: return copy<float>(p, source, channel, count, fill);
            case FLOAT64: return copy<double>(p, source, channel, count, fill);
            case UINT8: return copy<uint8_t>(p, source, channel, count, fill);
            case INT16: return copy<int16_t>(p, source, channel, count, fill);
            default: return copy<uint16_t>(p, source, channel, count, fill);
        }
    }

    // The lanes from pixel q on that show nothing of the image, see `missing`.
    INLINE auto nowhere(int64_t q) const { return load<V>(missing + q) == R(NO_TAP); }

    // Pixels of a row of patches.
    int64_t filled() const { return (width + L - 1) / L * L * DOWN; }

    // The lanes of the vector at row r and column c that lie in the result.
    INLINE auto inside(int64_t r, int64_t c) const {
        return lanes_of<V>((columns_of_lanes() < int32_t(width - c)) &
                           (rows_of_lanes() < int32_t(height - r)));
    }

    // The pixel that tap n of pixel q reads, counted row by row; false where it is missing.
    INLINE bool tap(const WarpCall &p, int64_t q, int n, int64_t &x, int64_t &y) const {
        x = resolve(int64_t(column[q]) - BEFORE + n % TAPS, p.width, p.border_x);
        y = resolve(int64_t(row[q]) - BEFORE + n / TAPS, p.height, p.border_y);
        return x >= 0 && y >= 0;
    }

    // -- prefetching --

    // The next tile, that to the right or the first of the next row, from this one.
    int64_t next_x(const WarpCall &p) const { return x0 + TILE < p.out_width ? TILE : -x0; }
    int64_t next_y(const WarpCall &p) const { return x0 + TILE < p.out_width ? 0 : TILE; }

    // How the box moves to the next tile: under an affine map by its matrix, else as it did before.
    void plan_fetch(const WarpCall &p) {
        double x = double(left - last_left), y = double(top - last_top);
        last_left = left, last_top = top;
        if (p.kind == AFFINE) {
            double dx = double(next_x(p)), dy = double(next_y(p));
            x = matrix[0] * dx + matrix[1] * dy, y = matrix[3] * dx + matrix[4] * dy;
        }
        double far = double(p.width + p.height);
        fetches = !empty && columns <= ROOM && rows <= ROOM && columns * rows <= ROOM;
        fetches = fetches && fabs(x) < far && fabs(y) < far;
        if (fetches) moved_x = int64_t(x), moved_y = int64_t(y);
    }

    // Prefetch part of this tile's box of `count` planes, while rows r .. r + DOWN of the tile are
    // made; moved: of about what the next tile reads. Of pixels with their channels side by side:
    // the next tile's, of all channels.
    template <class S> INLINE void fetch(const WarpCall &p, const S *planes, int64_t count,
                                         bool moved, int64_t r) const {
        if (!fetches) return;
        // the box's rows for each of the tile's: no division here, where it would cost as much as
        // all the pixels of a row
        int64_t each = (rows + TILE - 1) / TILE, begin = r * each;
        int64_t stop_row = least((r + DOWN) * each, rows);
        int64_t from_x = left + (moved ? moved_x : 0), from_y = top + (moved ? moved_y : 0);
        int64_t first = most<int64_t>(from_x, 0), end = least<int64_t>(from_x + columns, p.width);
        if (first >= end) return;
        int64_t pixel = p.channels_last ? p.channels : 1, plane = p.height * p.width;
        if (p.channels_last) count = moved ? 1 : 0;
        for (int64_t n = begin; n < stop_row; n++) {
            int64_t y = from_y + n;
            if (y < 0 || y >= p.height) continue;
            const S *line = planes + y * p.width * pixel;
            for (int64_t k = 0; k < count; k++, line += plane) {
                const S *stop = line + end * pixel;
                for (const S *here = line + first * pixel; here < stop; here += 64 / int(sizeof(S)))
                    __builtin_prefetch(here);
                __builtin_prefetch(stop - 1);
            }
        }
    }

  private:
    // -- where pixels look --

    // Under an affine map, whose rounding is monotonous, the corners bound all points. False where
    // one of them is nowhere.
    bool bound_by_corners() {
        double low_x = INFINITY, low_y = INFINITY, high_x = -INFINITY, high_y = -INFINITY;
        all_near = true;
        for (int k = 0; k < 4; k++) {
            double x = double(x0 + (k == 1 || k == 2 ? width - 1 : 0));
            double y = double(y0 + (k / 2 ? height - 1 : 0));
            double u = x * matrix[0] + y * matrix[1] + matrix[2];
            double v = x * matrix[3] + y * matrix[4] + matrix[5];
            all_near = all_near && fabs(u) < LIMIT && fabs(v) < LIMIT;
            low_x = least(low_x, u), high_x = most(high_x, u);
            low_y = least(low_y, v), high_y = most(high_y, v);
            corner_x[k] = u, corner_y[k] = v;
        }
        cornered = all_near;
        if (!all_near) return false;
        west = whole_pixel(low_x), east = whole_pixel(high_x);
        north = whole_pixel(low_y), south = whole_pixel(high_y);
        return true;
    }

    static int64_t whole_pixel(double v) {
        if constexpr (TAPS == 1) return int64_t(least((v + ROUND) - ROUND, LIMIT - 1));
        else return int64_t(floor(v));
    }

    // Columns and rows of lanes FIRST .. FIRST + count of a vector.
    template <class W, int FIRST, size_t... K>
    static INLINE W columns_from(std::index_sequence<K...>) {
        return W{Element<W>(Order<R, TAPS>::column(FIRST + int(K)))...};
    }
    template <class W, int FIRST, size_t... K>
    static INLINE W rows_from(std::index_sequence<K...>) {
        return W{Element<W>(Order<R, TAPS>::row(FIRST + int(K)))...};
    }
    static INLINE I columns_of_lanes() { return columns_from<I, 0>(std::make_index_sequence<L>{}); }
    static INLINE I rows_of_lanes() { return rows_from<I, 0>(std::make_index_sequence<L>{}); }

    // The source points of lanes FIRST .. FIRST + D - 1 of the vector at row r and column c. Pixels
    // beyond the tile repeat the last one of their row, or the last row.
    template <int KIND, int FIRST> INLINE void points(const WarpCall &p, int64_t map, int64_t r,
                                                      int64_t c, Doubles &u, Doubles &v) const {
        auto lanes = std::make_index_sequence<D>{};
        Doubles x = columns_from<Doubles, FIRST>(lanes) + double(x0 + c);
        Doubles y = rows_from<Doubles, FIRST>(lanes) + double(y0 + r);
        x = smaller(x, splat<Doubles>(double(x0 + width - 1)));
        y = smaller(y, splat<Doubles>(double(y0 + height - 1)));
        if constexpr (KIND == POINTS) {
            int64_t start = map + 2 * (y0 * p.out_width + x0);
            if (p.double_points) given<FIRST>(at<const double>(p.mapping) + start, p, r, c, u, v);
            else given<FIRST>(at<const float>(p.mapping) + start, p, r, c, u, v);
            if (p.relative) u += x, v += y;
            return;
        }
        u = x * matrix[0] + y * matrix[1] + matrix[2];
        v = x * matrix[3] + y * matrix[4] + matrix[5];
        if constexpr (KIND == PERSPECTIVE) {
            Doubles w = x * matrix[6] + y * matrix[7] + matrix[8];
            Doubles size = magnitude(w), limit = LIMIT * size;
            Longs good = (magnitude(u) < limit) & (magnitude(v) < limit) & (size < INFINITY);
            w = good ? w : splat<Doubles>(double(NAN));
            u /= w, v /= w;
        }
    }

    struct EvenLanes {
        static constexpr int at(int k) { return 2 * k; }
    };
    struct OddLanes {
        static constexpr int at(int k) { return 2 * k + 1; }
    };

    // The same from memory, where x and y lie side by side, and the tile's first at `corner`.
    template <int FIRST, class P> INLINE void given(const P *corner, const WarpCall &p, int64_t r,
                                                    int64_t c, Doubles &u, Doubles &v) const {
        constexpr int RUN = D < ACROSS ? D : ACROSS;  // lanes that lie side by side in memory
        c += Order<R, TAPS>::column(FIRST), r += Order<R, TAPS>::row(FIRST);
        if (c + RUN <= width && r + D / RUN <= height) {
            P both[2 * D];
            for (int n = 0; n < D / RUN; n++)
                memcpy(both + 2 * RUN * n, corner + 2 * ((r + n) * p.out_width + c),
                       sizeof(P) * 2 * RUN);
            auto pairs = load<Vec<P, 2 * D>>(both);
            u = convert<Doubles>(pick<D, EvenLanes>(pairs, pairs));
            v = convert<Doubles>(pick<D, OddLanes>(pairs, pairs));
            return;
        }
        for (int k = 0; k < D; k++) {
            int64_t y = least(r + k / RUN, height - 1), x = least(c + k % RUN, width - 1);
            const P *here = corner + 2 * (y * p.out_width + x);
            u[k] = here[0], v[k] = here[1];
        }
    }

    struct Bounds {
        Ints low_x, low_y, high_x, high_y;
        Longs near;
    };

    // Whole pixels, weights, and `missing` as far as points are nowhere; BOUNDED: bounds, too.
    template <int KIND, bool BOUNDED, bool SLOPED> void map_pixels(const WarpCall &p, int64_t map) {
        Ints highest = splat<Ints>(INT32_MAX);
        Bounds bounds = {highest, highest, ~highest, ~highest, ~Longs{}};
        for (int64_t r = 0; r < height; r += DOWN)
            for (int64_t c = 0; c < width; c += L)
                for (int64_t n = 0; n < DOWN; n++)
                    map_lanes<KIND, BOUNDED, SLOPED, 0>(p, map, r, c + n * ACROSS, bounds);
        if constexpr (!BOUNDED) return;
        west = north = INT32_MAX, east = south = INT32_MIN, all_near = true;
        for (int k = 0; k < D; k++) {
            west = least<int64_t>(west, bounds.low_x[k]),
            east = most<int64_t>(east, bounds.high_x[k]);
            north = least<int64_t>(north, bounds.low_y[k]),
            south = most<int64_t>(south, bounds.high_y[k]);
            all_near = all_near && bounds.near[k];
        }
    }

    // The vector at row r and column c, D lanes at a time.
    template <int KIND, bool BOUNDED, bool SLOPED, int FIRST>
    INLINE void map_lanes(const WarpCall &p, int64_t map, int64_t r, int64_t c, Bounds &bounds) {
        int64_t q = Order<R, TAPS>::number(r, c) + FIRST;
        Doubles u, v;
        points<KIND, FIRST>(p, map, r, c, u, v);
        if constexpr (BOUNDED) {
            Longs near = (magnitude(u) < LIMIT) & (magnitude(v) < LIMIT);  // not NaN
            u = near ? u : Doubles{}, v = near ? v : Doubles{};
            bounds.near &= near;
            Doubles state =
                near ? splat<Doubles>(double(ALL_TAPS)) : splat<Doubles>(double(NO_TAP));
            store(missing + q, convert<Vec<R, D>>(state));
        }
        Ints i = weigh_axis<SLOPED>(u, wx, dx, q), j = weigh_axis<SLOPED>(v, wy, dy, q);
        store(column + q, i), store(row + q, j);
        if constexpr (BOUNDED) {
            bounds.low_x = smaller(bounds.low_x, i), bounds.high_x = larger(bounds.high_x, i);
            bounds.low_y = smaller(bounds.low_y, j), bounds.high_y = larger(bounds.high_y, j);
        }
        if constexpr (FIRST + D < L)
            map_lanes<KIND, BOUNDED, SLOPED, FIRST + D>(p, map, r, c, bounds);
    }

    // The whole pixels of D positions along an axis, and the weights of their taps.
    template <bool SLOPED>
    static INLINE Ints weigh_axis(Doubles u, R (*weights)[PADDED], R (*slopes)[PADDED], int64_t q) {
        if constexpr (TAPS == 1) {
            Doubles nearest = (u + ROUND) - ROUND;  // ties to even
            return convert<Ints>(smaller(nearest, splat<Doubles>(LIMIT - 1)));
        } else {
            constexpr bool STORED = SLOPED && TAPS > 2;  // of two taps they are -1 and 1
            Doubles below = floor_of(u), weight[TAPS], slope[TAPS];
            weigh<TAPS, STORED>(u - below, weight, slope);
            for (int k = 0; k < TAPS; k++) {
                store(weights[k] + q, convert<Vec<R, D>>(weight[k]));
                if constexpr (STORED) store(slopes[k] + q, convert<Vec<R, D>>(slope[k]));
            }
            return convert<Ints>(below);
        }
    }

    void set_box() {
        left = west - BEFORE, top = north - BEFORE;
        columns = east - west + TAPS, rows = south - north + TAPS;
        empty = east < west || south < north;
    }

    // -- what is missing --

    // Of a tile that is not whole: `missing`, and the box of the pixels that read anything.
    void cover(const WarpCall &p) {
        I low_x = splat<I>(INT32_MAX), low_y = low_x, high_x = ~low_x, high_y = high_x;
        bool misses_x = misses(p.border_x), misses_y = misses(p.border_y);
        bool moves_x = misses_x || p.border_x == REPLICATE,
             moves_y = misses_y || p.border_y == REPLICATE;
        I far_x = splat<I>(int32_t(least<int64_t>(p.width, INT32_MAX - 2 * TAPS) + TAPS));
        I far_y = splat<I>(int32_t(least<int64_t>(p.height, INT32_MAX - 2 * TAPS) + TAPS));
        for (int64_t r = 0; r < height; r += DOWN)
            for (int64_t q = Order<R, TAPS>::number(r, 0), end = q + filled(); q < end; q += L) {
                I i = load<I>(column + q), j = load<I>(row + q);
                // farther out the same pixels are read, or none
                if (moves_x) i = smaller(larger(i, splat<I>(-TAPS)), far_x);
                if (moves_y) j = smaller(larger(j, splat<I>(-TAPS)), far_y);
                Reach x = reach(i, p.width, misses_x, wx, q),
                      y = reach(j, p.height, misses_y, wy, q);
                auto some = lanes_of<V>(x.some & y.some), all = lanes_of<V>(x.all & y.all);
                V state = all ? splat<V>(R(ALL_TAPS)) : R(1) - x.sum * y.sum;
                state = some ? state : splat<V>(R(NO_TAP));
                if (!all_near) state = nowhere(q) ? splat<V>(R(NO_TAP)) : state;
                store(missing + q, state);
                store(column + q, i), store(row + q, j);
                auto seen = convert<I>(state != R(NO_TAP));
                low_x = seen ? smaller(low_x, i) : low_x,
                high_x = seen ? larger(high_x, i) : high_x;
                low_y = seen ? smaller(low_y, j) : low_y,
                high_y = seen ? larger(high_y, j) : high_y;
            }
        west = north = INT32_MAX, east = south = INT32_MIN;
        for (int k = 0; k < L; k++) {
            west = least<int64_t>(west, low_x[k]), east = most<int64_t>(east, high_x[k]);
            north = least<int64_t>(north, low_y[k]), south = most<int64_t>(south, high_y[k]);
        }
        set_box();
    }

    struct Reach {
        I all, some;  // whether all taps along an axis are there, and some
        V sum;        // of the weights of those that are
    };
    static INLINE Reach reach(I whole_pixel, int64_t length, bool missing_ones,
                              R (*weights)[PADDED], int64_t q) {
        Reach found = {~I{}, ~I{}, splat<V>(R(1))};
        if (!missing_ones) return found;
        found.some = I{};
        I end = splat<I>(int32_t(least<int64_t>(length, INT32_MAX)));
        for (int k = 0; k < TAPS; k++) {
            I here = whole_pixel + (k - BEFORE), there = (here >= 0) & (here < end);
            V share = V{};
            if constexpr (TAPS > 1) share = lanes_of<V>(there) ? load<V>(weights[k] + q) : V{};
            found.sum = k ? found.sum + share : share;
            found.all &= there, found.some |= there;
        }
        return found;
    }

    // -- where the taps are --

    void set_offsets() {
        int32_t line = int32_t(stride), first_x = int32_t(west), first_y = int32_t(north);
        for (int64_t r = 0; r < height; r += DOWN)
            for (int64_t q = Order<R, TAPS>::number(r, 0), end = q + filled(); q < end; q += L) {
                I here = (load<I>(row + q) - first_y) * line + (load<I>(column + q) - first_x);
                if (!whole) here = convert<I>(nowhere(q)) ? I{} : here;
                store(offset + q, here);
            }
    }

    void set_single_offsets() {
        for (int64_t q = 0; q < PIXELS; q += L)
            store(offset + q, (count_up<I>() + int32_t(q)) * (TAPS * TAPS));
    }

    // Where all taps of a block lie in 8 x 8 pixels, they can be looked up there: the corner of
    // each, and offsets in it. They do unless the map shrinks to less than half.
    void find_blocks(const WarpCall &p) {
        int32_t line = int32_t(stride), first_x = int32_t(west), first_y = int32_t(north);
        // in place no pixel beyond the image is read; a window has room beyond its end
        int32_t last_x = in_place ? int32_t(p.width - 8 - left) : INT32_MAX;
        int32_t last_y = in_place ? int32_t(p.height - 8 - top) : INT32_MAX;
        if (columns * rows + 8 * stride > ROOM + BEYOND && !in_place) return;
        if (in_place && (p.width < 8 || p.height < 8)) return;
        alignas(64) int32_t found[PIXELS];
        I far{};
        for (int64_t r = 0; r < height; r += DOWN)
            for (int64_t q = Order<R, TAPS>::number(r, 0), end = q + filled(); q < end; q += L) {
                I i = load<I>(column + q) - first_x, j = load<I>(row + q) - first_y;
                if (!whole) {
                    I none = convert<I>(nowhere(q));
                    i = none ? splat<I>(INT32_MAX) : i, j = none ? splat<I>(INT32_MAX) : j;
                }
                int32_t x = least(least_of(i), last_x), y = least(least_of(j), last_y);
                I some = i != INT32_MAX;
                i = some ? i - x : I{}, j = some ? j - y : I{};
                far |= (i > 6) | (j > 6);
                x = x == INT32_MAX ? 0 : x, y = y == INT32_MAX ? 0 : y;
                base[q / L] = y * line + x;
                store(found + q, j * 8 + i);
            }
        close = !any(far);
        if (close) memcpy(offset, found, sizeof found);
    }

    static INLINE int32_t least_of(I v) {
        int32_t found = v[0];
        for (int k = 1; k < L; k++) found = least<int32_t>(found, v[k]);
        return found;
    }
    static INLINE bool any(I v) {
        int32_t found = 0;
        for (int k = 0; k < L; k++) found |= v[k];
        return found;
    }

    // -- windows --

    // Fill `low` and `high`. Of a turned tile a row of the box needs 0.6 of its columns: those that
    // the tile's edges cross above the row's last tap and below its first, and a little.
    void find_extents(bool turned) {
        if (rows > ROWS) return;
        if (!turned) {
            for (int64_t r = 0; r < rows; r++) low[r] = 0, high[r] = int32_t(columns);
            return;
        }
        using F = Vec<float, LANES<float>>;
        using N = Vec<int32_t, LANES<float>>;
        constexpr float LITTLE = 0.02f;  // more than floats of a few hundred pixels are off
        float x[5], y[5];
        for (int k = 0; k < 5; k++) {
            x[k] = float(corner_x[k % 4] - double(left + BEFORE));
            y[k] = float(corner_y[k % 4] - double(top + BEFORE));
        }
        for (int32_t r = 0; r < rows; r += LANES<float>) {
            F first = convert<F>(count_up<N>() + (r - TAPS + 1)) - LITTLE,
              end = first + (TAPS + 2 * LITTLE);
            F least_x = splat<F>(1e9f), most_x = -least_x;
            for (int k = 0; k < 4; k++) {
                float upper = least(y[k], y[k + 1]), lower = most(y[k], y[k + 1]);
                bool level = lower - upper < 1e-3f;
                float slope = level ? 0 : (x[k + 1] - x[k]) / (y[k + 1] - y[k]);
                F from = larger(first, splat<F>(upper)), to = smaller(end, splat<F>(lower));
                F a = x[k] + (from - y[k]) * slope, b = x[k] + (to - y[k]) * slope;
                if (level) a = splat<F>(x[k]), b = splat<F>(x[k + 1]);
                auto crossed = from <= to;
                least_x = crossed ? smaller(least_x, smaller(a, b)) : least_x;
                most_x = crossed ? larger(most_x, larger(a, b)) : most_x;
            }
            N widest = splat<N>(int32_t(columns));
            N a = convert<N>(larger(least_x - LITTLE, F{})), b = convert<N>(most_x + LITTLE) + TAPS;
            a = smaller(a, widest), b = larger(smaller(b, widest), a);
            store(low + r, a), store(high + r, b);
        }
    }

    // Copy the box of `count` channels, or the taps of every pixel, to the windows.
    template <class S>
    void copy(const WarpCall &p, int64_t source, int64_t channel, int count, const R *fill) {
        int64_t area = p.height * p.width;
        int64_t plane = p.channels_last ? 1 : area, pixel = p.channels_last ? p.channels : 1;
        const S *from = at<const S>(p.image) + source + channel * plane;
        if (!boxed) return copy_taps(p, from, plane, pixel, count, fill);
        int64_t first = clamped(-left, 0, columns), last = clamped(p.width - left, first, columns);
        bool folds = !misses(p.border_x) && (first > 0 || last < columns);
        const int64_t count_x = columns, x_left = left;
        const bool listed = rows <= ROWS;
        for (int64_t r = 0; r < rows; r++) {
            int64_t y = resolve(top + r, p.height, p.border_y);
            if constexpr (sizeof(S) == sizeof(R))
                if (p.channels_last && y >= 0) {
                    const int64_t a = listed ? low[r] : 0, b = listed ? high[r] : count_x;
                    const S *line = from + y * p.width * pixel, *end = from + area * pixel;
                    copy_pixels(r * count_x, (const R *)line, (const R *)end, x_left, pixel, count,
                                first, last, a, b, fill);
                    for (int k = 0; folds && k < count; k++)
                        fold_row(window[k] + r * count_x, line + k, pixel, first, last, a, b);
                    continue;
                }
            for (int k = 0; k < count; k++) {
                const int64_t a = listed ? low[r] : 0, b = listed ? high[r] : count_x;
                R *to = window[k] + r * count_x;
                const S *line = from + k * plane + y * p.width * pixel;
                V value = splat<V>(fill[k]);
                if (y < 0) {
                    for (int64_t c = a; c < b; c += L) store(to + c, value);
                    continue;
                }
                copy_row(to + a, line, x_left + a, pixel, first - a, last - a, b - a, value);
                if (folds) fold_row(to, line, pixel, first, last, a, b);
            }
        }
    }

    // The columns of a row that the border leads back into the image.
    template <class S> INLINE void fold_row(R *to, const S *line, int64_t pixel, int64_t first,
                                            int64_t last, int64_t a, int64_t b) const {
        for (int64_t c = a; c < least(first, b); c++) to[c] = R(line[source_column[c] * pixel]);
        for (int64_t c = most(last, a); c < b; c++) to[c] = R(line[source_column[c] * pixel]);
    }

    // Columns a .. b of a row of pixels with their channels side by side: `count` channels, parted
    // L pixels at a time. Nothing at `end` or beyond is read.
    void copy_pixels(int64_t to, const R *line, const R *end, int64_t from_x, int64_t pixel,
                     int count, int64_t first, int64_t last, int64_t a, int64_t b, const R *fill) {
        int64_t begin = clamped(first, a, b), stop = clamped(last, begin, b), c = begin;
        for (int k = 0; k < count; k++)
            for (int64_t n = a; n < begin; n += L) store(window[k] + to + n, splat<V>(fill[k]));
        I steps = count_up<I>() * int32_t(pixel);
        alignas(64) int32_t offsets[L];
        store(offsets, steps);
        for (; count > 2 && pixel < INT32_MAX / L && c < stop; c += L) {
            const R *here = line + (from_x + c) * pixel;
            if (here + (L - 1) * pixel + GROUP > end) break;
            V v[GROUP];
            neighbours<GROUP>(here, offsets, v);
            for (int k = 0; k < count; k++) store(window[k] + to + c, v[k]);
        }
        for (; c < stop; c++)
            for (int k = 0; k < count; k++) window[k][to + c] = line[(from_x + c) * pixel + k];
        for (int k = 0; k < count; k++)
            for (int64_t n = stop; n < b; n += L) store(window[k] + to + n, splat<V>(fill[k]));
    }

    // Columns 0 .. end of a row: those of first .. last from memory, the others `rest`. Vectors
    // reach over the end, to what is written after them.
    template <class S> static INLINE void copy_row(R *to, const S *line, int64_t left,
                                                   int64_t pixel, int64_t first, int64_t last,
                                                   int64_t end, V rest) {
        if constexpr (sizeof(S) == sizeof(R)) {
            if (pixel == 1) {
                for (int64_t c = 0; c < end; c += L)
                    store(to + c,
                          load_between((const R *)line + left + c, first - c, last - c, rest));
                return;
            }
        }
        first = clamped(first, 0, end), last = clamped(last, first, end);
        for (int64_t c = 0; c < first; c += L) store(to + c, rest);
        if (pixel == 1)
            for (int64_t c = first; c < last; c++) to[c] = R(line[left + c]);
        else
            for (int64_t c = first; c < last; c++) to[c] = R(line[(left + c) * pixel]);
        for (int64_t c = last; c < end; c += L) store(to + c, rest);
    }

    template <class S> void copy_taps(const WarpCall &p, const S *from, int64_t plane,
                                      int64_t pixel, int count, const R *fill) {
        for (int64_t r = 0; r < height; r++)
            for (int64_t c = 0; c < width; c++) {
                int64_t q = Order<R, TAPS>::number(r, c);
                bool some = whole || missing[q] != R(NO_TAP);
                for (int n = 0; n < TAPS * TAPS; n++) {
                    int64_t x, y;
                    bool there = some && tap(p, q, n, x, y);
                    for (int k = 0; k < count; k++) {
                        R value = fill[k];
                        if (there) value = R(from[k * plane + (y * p.width + x) * pixel]);
                        window[k][q * TAPS * TAPS + n] = value;
                    }
                }
            }
    }
};

}  // namespace WARPKIT_ISA
}  // namespace warpkit
