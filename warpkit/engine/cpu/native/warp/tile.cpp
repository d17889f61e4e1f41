// The source positions of a tile's pixels, their weights, and which taps are missing: see tile.h.
#include "warp/tile.h"

#include <math.h>

namespace warpkit {
namespace WARPKIT_ISA {

// Half a pixel below 2^31, nearest rounds up to it, beyond int32: an index that reads the same
// pixel of the image.
INLINE double end_pixel(int64_t length, int64_t border) {
    bool folds = !misses(border) && border != REPLICATE;
    return LIMIT - double(folds ? period_of(length, border) : 1);
}

template <class R, int DOWN> void Tile<R, DOWN>::start(const Call &call) {
    const WarpCall &p = as<WarpCall>(call);
    this->see(call);
    interpolation = p.interpolation, taps = p.taps, before = most<int64_t>(taps / 2 - 1, 0);
    room = PIXELS * (taps <= 2 ? 8 : taps * taps);
    last_left = last_top = 0;  // there is no previous tile at first
}

template <class R, int DOWN>
__attribute__((noinline)) void Tile<R, DOWN>::look(const WarpCall &p, int64_t item, int64_t x,
                                                   int64_t y, bool sloped) {
    begin(p, item, x, y);
    marked = false;
    if (taps == 1) end_x = end_pixel(p.width, p.border_x), end_y = end_pixel(p.height, p.border_y);
    for (int64_t r = 0; r < height; r += BAND) {
        int64_t count = DOWN == BAND ? BAND : least<int64_t>(BAND, height - r);
        find(p, r, count);
        if (far) mark_far(r, count);
        weigh_any(r, count, sloped);
    }
    whole = false;
    if (all_near) {
        double least_x, most_x, least_y, most_y;
        bounds(least_x, most_x, least_y, most_y);
        west = whole_pixel(least_x), east = whole_pixel(most_x);
        north = whole_pixel(least_y), south = whole_pixel(most_y);
        set_box();
        whole = left >= 0 && top >= 0;
        whole = whole && left + columns <= p.width && top + rows <= p.height;
    }
    // with one or two taps, a separate loop over the taps is faster
    if (!whole) taps == 1 ? cover<1>(p) : taps == 2 ? cover<2>(p) : cover<0>(p);
    in_place = whole && p.pixel == 1 && p.type == (sizeof(R) == 4 ? FLOAT32 : FLOAT64);
    in_place = in_place && p.line > 0 && rows < INT32_MAX / p.line;
    boxed = in_place || (!empty && columns <= room && rows <= room && columns * rows <= room);
    stride = in_place ? p.line : boxed ? columns : taps;
    close = false;
    plan_fetch(p);
    if (empty || taps == 1) return;  // nearest moves single pixels
    if (boxed) set_offsets();
    else set_single_offsets();
    if constexpr (DOWN == 4)
        if (boxed) find_blocks(p);
    if (boxed && !in_place)
        find_extents(cornered && p.border_x != REPLICATE && p.border_y != REPLICATE);
    if (boxed && !in_place && !misses(p.border_x))
        for (int64_t c = 0; c < columns; c++)
            source_column[c] = int32_t(resolve(left + c, p.width, p.border_x));
}

// -- whole pixels and weights --

template <class R, int DOWN> int64_t Tile<R, DOWN>::whole_pixel(double v) const {
    if (taps == 1) return int64_t(least((v + ROUND) - ROUND, LIMIT - 1));
    return int64_t(floor(v));
}

// The whole pixels of D positions along an axis, and their taps' weights, written from `weights`
// on. end: see `Tile::end_x`.
template <int INTERPOLATION, bool SLOPED, class R>
INLINE Ints weigh_axis(Doubles u, [[maybe_unused]] double end, R *weights, R *slopes) {
    constexpr int TAPS = TAPS_OF[INTERPOLATION];
    if constexpr (INTERPOLATION == NEAREST) {
        Doubles nearest = (u + ROUND) - ROUND;  // ties to even
        return convert<Ints>(nearest < LIMIT ? nearest : splat<Doubles>(end));
    } else {
        Doubles below = floor_of(u), weight[TAPS], slope[TAPS];
        weigh<INTERPOLATION, SLOPED>(u - below, weight, slope);
        for (int k = 0; k < TAPS; k++) {
            store(weights + k * PADDED, convert<Vec<R, D>>(weight[k]));
            if constexpr (SLOPED) store(slopes + k * PADDED, convert<Vec<R, D>>(slope[k]));
        }
        return convert<Ints>(below);
    }
}

// D points of a band, for a vector at row n and column c, starting with lane k.
template <int ACROSS>
INLINE Doubles piece(const double (*points)[TILE], int64_t n, int64_t c, int k) {
    if constexpr (ACROSS >= D) return load<Doubles>(points[n] + c + k);
    else {
        using Part = Vec<double, ACROSS>;
        const double(*from)[TILE] = points + n + k / ACROSS;
        return join(load<Part>(from[0] + c), load<Part>(from[1] + c));
    }
}

// From the points of rows r .. r + count: whole pixels, weights, and if SLOPED their derivatives.
template <class R, int DOWN> template <int INTERPOLATION, bool SLOPED>
void Tile<R, DOWN>::weigh_band(int64_t r, int64_t count) {
    for (int64_t n = 0; n < count; n += DOWN) {
        int64_t q = this->number(r + n, 0), end = q + filled();
        for (int64_t c = 0; q < end; q += L, c += ACROSS)
            for (int k = 0; k < L; k += D) {
                Doubles u = piece<ACROSS>(point_x, n, c, k), v = piece<ACROSS>(point_y, n, c, k);
                Ints i = weigh_axis<INTERPOLATION, SLOPED>(u, end_x, wx[0] + q + k, dx[0] + q + k);
                Ints j = weigh_axis<INTERPOLATION, SLOPED>(v, end_y, wy[0] + q + k, dy[0] + q + k);
                store(column + q + k, i), store(row + q + k, j);
            }
    }
}

template <class R, int DOWN> void Tile<R, DOWN>::weigh_any(int64_t r, int64_t count, bool sloped) {
    // two taps are bilinear's, whose slopes are -1 and 1, and only two taps use blocks of pixels
    if (DOWN > 1 || taps == 2) return weigh_band<BILINEAR, false>(r, count);
    if constexpr (DOWN == 1) switch (interpolation) {
#define WARPKIT_WEIGH(name, taps) \
    case name: return sloped ? weigh_band<name, true>(r, count) : weigh_band<name, false>(r, count);
            WARPKIT_INTERPOLATIONS(WARPKIT_WEIGH)
        }
}

// Mark points without a position in rows r .. r + count in `missing`, and set them to 0, 0.
template <class R, int DOWN> void Tile<R, DOWN>::mark_far(int64_t r, int64_t count) {
    for (int64_t q = 0; q < PIXELS && !marked; q++) missing[q] = R(ALL_TAPS);
    marked = true;
    for (int64_t n = 0; n < count; n++)
        for (int64_t c = 0; c < TILE; c++) {
            double &x = point_x[n][c], &y = point_y[n][c];
            const bool near = x == x;
            missing[this->number(r + n, c)] = near ? R(ALL_TAPS) : R(NO_TAP);
            x = near ? x : 0, y = near ? y : 0;
        }
}

template <class R, int DOWN> void Tile<R, DOWN>::set_box() {
    left = west - before, top = north - before;
    columns = east - west + taps, rows = south - north + taps;
    empty = east < west || south < north;
}

// -- missing taps --

// For taps along an axis: whether all are inside, whether any is, and the sum of their weights.
template <class R, int DOWN> struct Tile<R, DOWN>::Reach {
    I all, some;
    V sum;
};
template <class R, int DOWN>
INLINE auto Tile<R, DOWN>::reach(I whole_pixel, int64_t length, bool missing_ones,
                                 const R (*weights)[PADDED], int64_t q, int64_t taps) const
    -> Reach {
    Reach found = {~I{}, ~I{}, splat<V>(R(1))};
    if (!missing_ones) return found;
    found.some = I{}, found.sum = V{};
    I end = splat<I>(int32_t(least<int64_t>(length, INT32_MAX)));
    for (int64_t k = 0; k < taps; k++) {
        I here = whole_pixel + int32_t(k - before), there = (here >= 0) & (here < end);
        if (taps > 1) found.sum += lanes_of<V>(there) ? load<V>(weights[k] + q) : V{};
        found.all &= there, found.some |= there;
    }
    return found;
}

// For a tile that is not whole: `missing`, and the box of the pixels that read anything.
template <class R, int DOWN> template <int TAPS> void Tile<R, DOWN>::cover(const WarpCall &p) {
    const int64_t taps = TAPS ? TAPS : this->taps;
    I low_x = splat<I>(INT32_MAX), low_y = low_x, high_x = ~low_x, high_y = high_x;
    bool misses_x = misses(p.border_x), misses_y = misses(p.border_y);
    bool moves_x = misses_x || p.border_x == REPLICATE,
         moves_y = misses_y || p.border_y == REPLICATE;
    I far_x = splat<I>(int32_t(least<int64_t>(p.width, INT32_MAX - 2 * taps) + taps));
    I far_y = splat<I>(int32_t(least<int64_t>(p.height, INT32_MAX - 2 * taps) + taps));
    for (int64_t r = 0; r < height; r += DOWN)
        for (int64_t q = this->number(r, 0), end = q + filled(); q < end; q += L) {
            I i = load<I>(column + q), j = load<I>(row + q);
            // positions farther out read the same pixels, or none
            if (moves_x) i = smaller(larger(i, splat<I>(int32_t(-taps))), far_x);
            if (moves_y) j = smaller(larger(j, splat<I>(int32_t(-taps))), far_y);
            Reach x = reach(i, p.width, misses_x, wx, q, taps),
                  y = reach(j, p.height, misses_y, wy, q, taps);
            auto some = lanes_of<V>(x.some & y.some), all = lanes_of<V>(x.all & y.all);
            V state = all ? splat<V>(R(ALL_TAPS)) : R(1) - x.sum * y.sum;
            state = some ? state : splat<V>(R(NO_TAP));
            if (!all_near) state = nowhere(q) ? splat<V>(R(NO_TAP)) : state;
            store(missing + q, state);
            store(column + q, i), store(row + q, j);
            auto seen = convert<I>(state != R(NO_TAP));
            low_x = seen ? smaller(low_x, i) : low_x, high_x = seen ? larger(high_x, i) : high_x;
            low_y = seen ? smaller(low_y, j) : low_y, high_y = seen ? larger(high_y, j) : high_y;
        }
    west = north = INT32_MAX, east = south = INT32_MIN;
    for (int k = 0; k < L; k++) {
        west = least<int64_t>(west, low_x[k]), east = most<int64_t>(east, high_x[k]);
        north = least<int64_t>(north, low_y[k]), south = most<int64_t>(south, high_y[k]);
    }
    set_box();
}

// -- positions of taps --

template <class R, int DOWN> void Tile<R, DOWN>::set_offsets() {
    using Whole = Vec<uint32_t, L>;  // pixels without a position may overflow
    uint32_t line = uint32_t(stride), first_x = uint32_t(west), first_y = uint32_t(north);
    for (int64_t r = 0; r < height; r += DOWN)
        for (int64_t q = this->number(r, 0), end = q + filled(); q < end; q += L) {
            Whole y = load<Whole>(row + q) - first_y, x = load<Whole>(column + q) - first_x;
            I here = (I)(y * line + x);
            if (!whole) here = convert<I>(nowhere(q)) ? I{} : here;
            store(offset + q, here);
        }
}

template <class R, int DOWN> void Tile<R, DOWN>::set_single_offsets() {
    for (int64_t q = 0; q < PIXELS; q += L)
        store(offset + q, (count_up<I>() + int32_t(q)) * int32_t(taps * taps));
}

template <class I> INLINE int32_t least_of(I v) {
    int32_t found = v[0];
    for (int k = 1; k < COUNT<I>; k++) found = least<int32_t>(found, v[k]);
    return found;
}
template <class I> INLINE bool any(I v) {
    int32_t found = 0;
    for (int k = 0; k < COUNT<I>; k++) found |= v[k];
    return found;
}

// If all taps of a block are inside 8 x 8 pixels, they can be looked up there: the corner of each
// block, and offsets in it. This is so unless the map shrinks below one half.
template <class R, int DOWN> void Tile<R, DOWN>::find_blocks(const WarpCall &p) {
    int32_t line = int32_t(stride), first_x = int32_t(west), first_y = int32_t(north);
    // in place, no pixel beyond the image is read; a window has room beyond its end
    int32_t last_x = in_place ? int32_t(p.width - 8 - left) : INT32_MAX;
    int32_t last_y = in_place ? int32_t(p.height - 8 - top) : INT32_MAX;
    if (columns * rows + 8 * stride > room + BEYOND && !in_place) return;
    if (in_place && (p.width < 8 || p.height < 8)) return;
    alignas(64) int32_t found[PIXELS];
    using Whole = Vec<uint32_t, L>;  // as in `set_offsets`
    I far{};
    for (int64_t r = 0; r < height; r += DOWN)
        for (int64_t q = this->number(r, 0), end = q + filled(); q < end; q += L) {
            I i = (I)(load<Whole>(column + q) - uint32_t(first_x));
            I j = (I)(load<Whole>(row + q) - uint32_t(first_y));
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

// -- prefetching --

// The box's motion to the next tile: under an affine map from its matrix, otherwise as before.
template <class R, int DOWN> void Tile<R, DOWN>::plan_fetch(const WarpCall &p) {
    double x = double(left - last_left), y = double(top - last_top);
    last_left = left, last_top = top;
    if (p.kind == AFFINE) {
        double dx = double(next_x(p)), dy = double(next_y(p));
        x = matrix[0] * dx + matrix[1] * dy, y = matrix[3] * dx + matrix[4] * dy;
    }
    double far_away = double(p.width + p.height);
    fetches = !empty && columns <= room && rows <= room && columns * rows <= room;
    fetches = fetches && fabs(x) < far_away && fabs(y) < far_away;
    if (fetches) moved_x = int64_t(x), moved_y = int64_t(y);
}

template <class R, int DOWN> void Tile<R, DOWN>::fetch_rows(const WarpCall &p, const void *planes,
                                                            int64_t count, bool moved,
                                                            int64_t r) const {
    // not what lies between pixels: of a transposed image it is nearly all of it
    if (p.pixel > p.line || (p.plane != 1 && p.pixel * p.number_bytes > 64)) return;
    // the box's rows for each row of the tile: without a division, which would cost as much as all
    // the pixels of a row
    int64_t each = (rows + TILE - 1) / TILE, begin = r * each;
    int64_t stop_row = least((r + DOWN) * each, rows);
    int64_t from_x = left + (moved ? moved_x : 0), from_y = top + (moved ? moved_y : 0);
    int64_t first = most<int64_t>(from_x, 0), end = least<int64_t>(from_x + columns, p.width);
    if (first >= end) return;
    int64_t pixel = p.pixel * p.number_bytes, plane = p.plane * p.number_bytes;
    if (p.pixel > 1) count = moved ? 1 : 0;
    for (int64_t n = begin; n < stop_row; n++) {
        int64_t y = from_y + n;
        if (y < 0 || y >= p.height) continue;
        const char *line = static_cast<const char *>(planes) + y * p.line * p.number_bytes;
        for (int64_t k = 0; k < count; k++, line += plane) {
            const char *stop = line + end * pixel;
            for (const char *here = line + first * pixel; here < stop; here += 64)
                __builtin_prefetch(here);
            __builtin_prefetch(stop - 1);
        }
    }
}

#define WARPKIT_INSTANTIATE(R, DOWN) template struct Tile<R, DOWN>;
WARPKIT_TILES(WARPKIT_INSTANTIATE)

}  // namespace WARPKIT_ISA
}  // namespace warpkit
