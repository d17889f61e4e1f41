// The windows of a tile: copies of the box that its pixels read, see tile.h.
#include "warp/halves.h"
#include "shared/neighbours.h"
#include "warp/tile.h"

namespace warpkit {
namespace WARPKIT_ISA {

template <class R, int DOWN> void Tile<R, DOWN>::planes_of(const WarpCall &p, int64_t source,
                                                           int64_t channel, int count,
                                                           const R *fill, const R **planes) {
    for (int k = 0; k < count; k++) {
        planes[k] = window[k];
        if (in_place)
            planes[k] =
                at<const R>(p.image) + source + (channel + k) * p.plane + top * p.line + left;
    }
    if (in_place) return;
    if constexpr (sizeof(R) == 4) switch (p.type) {
            case FLOAT16: return copy<Half>(p, source, channel, count, fill);
            case BFLOAT16: return copy<BFloat>(p, source, channel, count, fill);
            default: return copy<float>(p, source, channel, count, fill);
        }
    else switch (p.type) {
            case FLOAT64: return copy<double>(p, source, channel, count, fill);
            case UINT8: return copy<uint8_t>(p, source, channel, count, fill);
            case INT16: return copy<int16_t>(p, source, channel, count, fill);
            default: return copy<uint16_t>(p, source, channel, count, fill);
        }
}

// Compute `low` and `high`. A row of a rotated tile's box needs 0.6 of its columns: those that the
// tile's edges cross above the row's last tap and below its first, plus a margin.
template <class R, int DOWN> void Tile<R, DOWN>::find_extents(bool turned) {
    if (rows > ROWS) return;
    if (!turned) {
        for (int64_t r = 0; r < rows; r++) low[r] = 0, high[r] = int32_t(columns);
        return;
    }
    using F = Vec<float, LANES<float>>;
    using N = Vec<int32_t, LANES<float>>;
    constexpr float LITTLE = 0.02f;  // more than the error of floats of a few hundred pixels
    float x[5], y[5];
    for (int k = 0; k < 5; k++) {
        x[k] = float(corner_x[k % 4] - double(left + before));
        y[k] = float(corner_y[k % 4] - double(top + before));
    }
    for (int32_t r = 0; r < rows; r += LANES<float>) {
        F first = convert<F>(count_up<N>() + (r - int32_t(taps) + 1)) - LITTLE,
          end = first + (float(taps) + 2 * LITTLE);
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
        N a = convert<N>(larger(least_x - LITTLE, F{})),
          b = convert<N>(most_x + LITTLE) + int32_t(taps);
        a = smaller(a, widest), b = larger(smaller(b, widest), a);
        store(low + r, a), store(high + r, b);
    }
}

// Columns 0 .. end of a row: first .. last from memory, the others `rest`. Vectors extend beyond
// the end, into numbers that are written later.
template <class V, class R, class S> INLINE void copy_row(R *to, const S *line, int64_t left,
                                                          int64_t pixel, int64_t first,
                                                          int64_t last, int64_t end, V rest) {
    constexpr int64_t L = COUNT<V>;
    if constexpr (sizeof(S) == sizeof(R)) {
        if (pixel == 1) {
            for (int64_t c = 0; c < end; c += L)
                store(to + c, load_between((const R *)line + left + c, first - c, last - c, rest));
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

// Copy a box column by column, where a column's numbers are closer in memory than a row's: of a
// transposed image, each column lies in a page of its own, and row by row each number took 20 times
// as long.
template <class R, int DOWN> template <class S>
void Tile<R, DOWN>::copy_columns(const WarpCall &p, const S *from, int count, int64_t first,
                                 int64_t last, bool folds, const R *fill) {
    constexpr int64_t AHEAD = 4;
    int64_t place[ROWS];
    for (int64_t r = 0; r < rows; r++) {
        const int64_t y = resolve(top + r, p.height, p.border_y);
        place[r] = y < 0 ? -1 : y * p.line;
    }
    for (int k = 0; k < count; k++, from += p.plane)
        for (int64_t c = 0; c < columns; c++) {
            const bool inside = c >= first && c < last;
            const S *column = from + (inside ? left + c : folds ? source_column[c] : 0) * p.pixel;
            if (c + AHEAD < last && inside)
                for (int64_t r = 0; r < rows; r += 64 / int64_t(sizeof(S)))
                    __builtin_prefetch(column + AHEAD * p.pixel + most<int64_t>(place[r], 0));
            R *to = window[k] + c;
            for (int64_t r = 0; r < rows; r++)
                to[r * columns] =
                    place[r] < 0 || !(inside || folds) ? fill[k] : R(column[place[r]]);
        }
}

// Copy the box of `count` channels, or the taps of every pixel, to the windows.
template <class R, int DOWN> template <class S>
void Tile<R, DOWN>::copy(const WarpCall &p, int64_t source, int64_t channel, int count,
                         const R *fill) {
    const int64_t plane = p.plane, pixel = p.pixel;
    const S *from = at<const S>(p.image) + source + channel * plane;
    if (!boxed && taps == 2) return copy_taps<2>(p, from, count, fill);
    if (!boxed) return copy_taps<0>(p, from, count, fill);
    int64_t first = clamped(-left, 0, columns), last = clamped(p.width - left, first, columns);
    bool folds = !misses(p.border_x) && (first > 0 || last < columns);
    const int64_t count_x = columns, x_left = left;
    const bool listed = rows <= ROWS;
    if (listed && p.line < pixel)
        return copy_columns(p, from, count, first, last, folds, fill);
    // of a view that skips rows or pixels, no memory behind its last number is known to exist
    const S *end = from + (p.height - 1) * p.line + (p.width - 1) * pixel + p.channels - channel;
    for (int64_t r = 0; r < rows; r++) {
        int64_t y = resolve(top + r, p.height, p.border_y);
        if constexpr (sizeof(S) == sizeof(R))
            if (plane == 1 && pixel > 1 && y >= 0) {
                const int64_t a = listed ? low[r] : 0, b = listed ? high[r] : count_x;
                const S *line = from + y * p.line;
                copy_pixels(r * count_x, (const R *)line, (const R *)end, x_left, pixel, count,
                            first, last, a, b, fill);
                for (int k = 0; folds && k < count; k++)
                    fold_row(window[k] + r * count_x, line + k, pixel, first, last, a, b);
                continue;
            }
        for (int k = 0; k < count; k++) {
            const int64_t a = listed ? low[r] : 0, b = listed ? high[r] : count_x;
            R *to = window[k] + r * count_x;
            const S *line = from + k * plane + y * p.line;
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

// The columns of a row that the border folds back into the image.
template <class R, int DOWN> template <class S>
INLINE void Tile<R, DOWN>::fold_row(R *to, const S *line, int64_t pixel, int64_t first,
                                    int64_t last, int64_t a, int64_t b) const {
    for (int64_t c = a; c < least(first, b); c++) to[c] = R(line[source_column[c] * pixel]);
    for (int64_t c = most(last, a); c < b; c++) to[c] = R(line[source_column[c] * pixel]);
}

// Columns a .. b of a row of channels-last pixels: `count` channels, separated L pixels at a time.
// Nothing at `end` or beyond is read.
template <class R, int DOWN>
void Tile<R, DOWN>::copy_pixels(int64_t to, const R *line, const R *end, int64_t from_x,
                                int64_t pixel, int count, int64_t first, int64_t last, int64_t a,
                                int64_t b, const R *fill) {
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

// TAPS: the number along an axis, or 0 for any.
template <class R, int DOWN> template <int TAPS, class S>
void Tile<R, DOWN>::copy_taps(const WarpCall &p, const S *from, int count, const R *fill) {
    const int64_t each = TAPS ? TAPS : taps;
    const int64_t line = p.line, pixel = p.pixel, plane = p.plane;
    for (int64_t r = 0; r < height; r++)
        for (int64_t c = 0; c < width; c++) {
            const int64_t q = this->number(r, c);
            const int64_t x = column[q] - before, y = row[q] - before;
            const bool some = whole || missing[q] != R(NO_TAP);
            const bool all =
                some && x >= 0 && y >= 0 && x + each <= p.width && y + each <= p.height;
            int64_t n = q * each * each;
            if (all) {  // without a look at the border: a third of the time, and less
                const S *corner = from + y * line + x * pixel;
                for (int k = 0; k < count; k++, corner += plane) {
                    R *to = window[k] + n;
                    for (int64_t j = 0; j < each; j++)
                        for (int64_t i = 0; i < each; i++)
                            to[j * each + i] = R(corner[j * line + i * pixel]);
                }
                continue;
            }
            for (int64_t j = 0; j < each; j++)
                for (int64_t i = 0; i < each; i++, n++) {
                    int64_t u, v;
                    const bool there = some && tap(p, q, i, j, u, v);
                    for (int k = 0; k < count; k++) {
                        R value = fill[k];
                        if (there) value = R(from[k * plane + v * line + u * pixel]);
                        window[k][n] = value;
                    }
                }
        }
}

#define WARPKIT_INSTANTIATE(R, DOWN)                                                           \
    template void Tile<R, DOWN>::planes_of(const WarpCall &, int64_t, int64_t, int, const R *, \
                                           const R **);                                        \
    template void Tile<R, DOWN>::find_extents(bool);
WARPKIT_TILES(WARPKIT_INSTANTIATE)

}  // namespace WARPKIT_ISA
}  // namespace warpkit
