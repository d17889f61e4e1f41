// The forward kernel of nearest: finds the source of every pixel, then moves its bits.
//
// There are no sums and no windows, and one kernel is enough for all types of one size.
#include "shared/kernels.h"
#include "shared/memory.h"
#include "warp/tile.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

struct Places {
    Tile<float, 1> tile;
    alignas(64) int64_t place[PIXELS];    // the index of each pixel's source; 0 if there is none
    alignas(64) int32_t missing[PIXELS];  // -1 if it has none, otherwise 0

    void find(const WarpCall &p, int64_t item, int64_t x0, int64_t y0) {
        using I = Tile<float, 1>::I;
        using Whole = Vec<uint32_t, COUNT<I>>;
        using Wide = Vec<int64_t, COUNT<I>>;
        Tile<float, 1> &t = tile;
        t.look(p, item, x0, y0);
        const bool folds = !t.whole && !(misses(p.border_x) && misses(p.border_y));
        const bool small = p.height * p.line + p.width * p.pixel < INT32_MAX;
        const I wide = splat<I>(int32_t(least<int64_t>(p.width, INT32_MAX)));
        const I high = splat<I>(int32_t(least<int64_t>(p.height, INT32_MAX)));
        for (int64_t r = 0; r < t.height; r++)
            for (int64_t c = 0; c < t.width; c += COUNT<I>) {
                int64_t q = t.number(r, c);
                I x = load<I>(t.column + q), y = load<I>(t.row + q), there = ~I{};
                if (!t.whole)
                    there =
                        (x >= 0) & (x < wide) & (y >= 0) & (y < high) & ~convert<I>(t.nowhere(q));
                Wide found;
                if (small) {  // unsigned: far indices overflow and count as outside
                    auto number = (Whole)y * uint32_t(p.line) + (Whole)x * uint32_t(p.pixel);
                    found = convert<Wide>(there ? (I)number : I{});
                } else
                    found = convert<Wide>(there)
                                ? convert<Wide>(y) * p.line + convert<Wide>(x) * p.pixel
                                : Wide{};
                store(place + q, found);
                store(missing + q, ~there);
                for (int64_t n = q; folds && n < q + COUNT<I>; n++) {
                    int64_t u, v;
                    if (!missing[n] || t.missing[n] == NO_TAP || !t.tap(p, n, 0, 0, u, v)) continue;
                    place[n] = v * p.line + u * p.pixel, missing[n] = 0;
                }
            }
    }
};

// One number per pixel of a vector: combined in a register, because a vector cannot be loaded soon
// after its numbers were stored one by one.
template <class V, class U, size_t... K>
INLINE V collect(const U *from, const int64_t *place, std::index_sequence<K...>) {
    return V{from[place[K]]...};
}

// The first `left` numbers of a row, followed by 0.
template <class V, class U> __attribute__((noinline)) V first_of(const U *row, int64_t left) {
    V v{};
    memcpy(&v, row, size_t(left) * sizeof(U));
    return v;
}

// U: an unsigned number of the pixel's size. ALL: every pixel has a source in the image.
template <class U, bool ALL, bool PLANES>
void move_tile(const WarpCall &p, const Places &places, int64_t item, int64_t source) {
    constexpr int N = LANES<float>;
    using V = Vec<U, N>;
    const Tile<float, 1> &t = places.tile;
    const int64_t out_area = p.out_height * p.out_width, width = t.width;
    const int64_t pixel = PLANES ? 1 : p.channels, out_plane = PLANES ? out_area : 1;
    const int64_t fill_column = p.fill_column;
    for (int64_t k = 0; k < p.channels; k++) {
        const U *from = at<const U>(p.image) + source + k * p.plane;
        const U *fill = at<const U>(p.fill) + item * p.fill_item + k * p.fill_channel;
        U *to = at<U>(p.out) + item * p.channels * out_area + k * out_plane;
        for (int64_t r = 0; r < t.height; r++) {
            if (k == 0 || PLANES) t.fetch(p, from, 1, true, r);
            const U *background = fill + (t.y0 + r) * p.fill_row + t.x0 * fill_column;
            U *row = to + ((t.y0 + r) * p.out_width + t.x0) * pixel;
            V value = V{} + *background;
            for (int64_t c = 0; c < width; c += N) {
                const int64_t q = r * TILE + c, left = least<int64_t>(width - c, N);
                V found = collect<V>(from, places.place + q, std::make_index_sequence<N>{});
                if constexpr (!ALL) {
                    if (fill_column) value = first_of<V>(background + c, left);
                    auto none = convert<Vec<std::make_signed_t<U>, N>>(
                        load<Vec<int32_t, N>>(places.missing + q));
                    found = none ? value : found;
                }
                if (!PLANES)
                    for (int64_t n = 0; n < left; n++) row[(c + n) * pixel] = found[n];
                else if (left < N) memcpy(row + c, &found, size_t(left) * sizeof(U));
                else if constexpr (sizeof(V) == REGISTER)
                    p.streamed ? stream(row + c, found) : store(row + c, found);
                else store(row + c, found);
            }
        }
    }
}

// Units are rows of tiles, numbered across all items.
template <class U> void nearest(const Call &call, int64_t begin, int64_t end) {
    WarpCall p = as<WarpCall>(call);
    Borrowed<Places> memory;
    if (!memory) return;
    Places &places = *memory;
    places.tile.start(call);
    int64_t tile_rows = (p.out_height + TILE - 1) / TILE;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t item = unit / tile_rows, y0 = unit % tile_rows * TILE;
        int64_t source = p.enter(item);
        for (int64_t x0 = 0; x0 < p.out_width; x0 += TILE) {
            places.find(p, item, x0, y0);
            const bool all = places.tile.whole, planes = !p.channels_last;
            if (all && planes) move_tile<U, true, true>(p, places, item, source);
            else if (all) move_tile<U, true, false>(p, places, item, source);
            else if (planes) move_tile<U, false, true>(p, places, item, source);
            else move_tile<U, false, false>(p, places, item, source);
        }
    }
    if (p.streamed) finish_streams();
}

}  // namespace

// Numbers of 1, 2, 4 and 8 bytes.
Kernel choose_nearest(const Call &call) {
    static const Kernel KERNELS[] = {nearest<uint8_t>, nearest<uint16_t>, nearest<uint32_t>,
                                     nearest<uint64_t>};
    return KERNELS[logarithm(as<WarpCall>(call).number_bytes)];
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
