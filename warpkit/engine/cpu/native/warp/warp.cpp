// The forward kernel of bilinear, bicubic and lanczos4: all maps, borders, types and layouts.
//
//     value = sum_j wy[j] sum_i wx[i] tap[j, i] + (the missing taps' weights) * fill
//
// in the order of the reference's sum, except for fused products. A tile depends on nothing outside
// it, so threads change no bit. Floats are computed in their own type, and integers in float64, so
// they are rounded once.
#include "shared/kernels.h"
#include "shared/memory.h"
#include "warp/taps.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The values of a tile's missing taps: one for each channel, or also one for each pixel.
template <class R> struct Fill {
    using V = Vec<R, LANES<R>>;
    const R *values;  // at the tile's corner, for a group's first channel
    const WarpCall &call;

    R channel(int k) const { return values[k * call.fill_channel]; }

    // For channel k, `left` pixels of the tile's row r, from column c on.
    INLINE V load(int k, int64_t r, int64_t c, int64_t left) const {
        if (!call.dense) return splat<V>(channel(k));
        const R *row = values + k * call.fill_channel + r * call.fill_row;
        if (call.fill_column) return load_first(row + c, left);
        return splat<V>(*row);
    }
};

// Rounded half to even and saturated; NaN becomes the lowest number.
template <class S, class V> INLINE Vec<S, COUNT<V>> saturated(V v) {
    constexpr double low = S(-1) < S(0) ? -(1 << (8 * sizeof(S) - 1)) : 0;
    constexpr double high = low + ((1 << (8 * sizeof(S))) - 1);
    v = (v + Element<V>(ROUND)) - Element<V>(ROUND);
    v = v > Element<V>(low) ? v : splat<V>(low);
    return convert<Vec<S, COUNT<V>>>(convert<Vec<int32_t, COUNT<V>>>(smaller(v, splat<V>(high))));
}

// Write `left` pixels of one channel of any type.
template <class S, class V> INLINE void write(S *to, V found, int64_t left, int64_t pixel) {
    Vec<S, COUNT<V>> values;
    if constexpr (sizeof(S) < 4) values = saturated<S>(found);
    else values = convert<Vec<S, COUNT<V>>>(found);
    if (pixel == 1 && left >= COUNT<V>) return store(to, values);
    for (int64_t n = 0; n < least<int64_t>(left, COUNT<V>); n++) to[n * pixel] = values[n];
}

// The same at a position in the result.
template <class V>
void write_any(const WarpCall &p, int64_t start, V found, int64_t left, int64_t pixel) {
    switch (p.type) {
        case FLOAT32: return write(at<float>(p.out) + start, found, left, pixel);
        case FLOAT64: return write(at<double>(p.out) + start, found, left, pixel);
        case UINT8: return write(at<uint8_t>(p.out) + start, found, left, pixel);
        case INT16: return write(at<int16_t>(p.out) + start, found, left, pixel);
        default: return write(at<uint16_t>(p.out) + start, found, left, pixel);
    }
}

// Write `left` channels-last pixels: `count` of their `pixel` channels.
template <class R, class V>
INLINE void write_pixels(R *to, const V *found, int count, int64_t left, int64_t pixel) {
    constexpr int L = COUNT<V>;
    alignas(64) R values[GROUP * L];
    store(values, interleave(found));
    left = least<int64_t>(left, L);
    if (count == GROUP || (count == 3 && pixel == 3)) {
        // three of three: a pixel's fourth number is overwritten by the next pixel's first
        const int64_t whole = count == GROUP ? left : left - 1;
        for (int64_t n = 0; n < whole; n++)
            store(to + n * pixel, load<Vec<R, GROUP>>(values + GROUP * n));
        for (int64_t n = whole; n < left; n++)
            for (int k = 0; k < count; k++) to[n * pixel + k] = values[GROUP * n + k];
        return;
    }
    for (int64_t n = 0; n < left; n++)
        for (int k = 0; k < count; k++) to[n * pixel + k] = values[GROUP * n + k];
}

// A group of a tile's channels: their values, what to prefetch, and their targets.
template <class R> struct Group {
    const WarpCall &call;
    int count;
    Fill<R> fill;
    bool own_type;               // the result has the computation's type
    int64_t plane, pixel, line;  // steps of the result: to the next channel, pixel and row
    int64_t start;               // the tile's position in the result
    const R *planes[GROUP];      // of the image, see `Tile::planes_of`
    // the same box of the next channels, or the next tile's of the first ones
    const void *ahead;
    int64_t count_ahead;
    bool moved;

    template <class T> Group(const WarpCall &p, T &t, int64_t item, int64_t source, int64_t channel)
        : call(p),
          count(int(least<int64_t>(GROUP, p.channels - channel))),
          fill{at<const R>(p.fill) + item * p.fill_item + channel * p.fill_channel +
                   t.y0 * p.fill_row + t.x0 * p.fill_column,
               p},
          own_type(p.wide || p.type == (sizeof(R) == 4 ? FLOAT32 : FLOAT64)) {
        const int64_t area = p.out_height * p.out_width;
        plane = p.channels_last ? 1 : area, pixel = p.channels_last ? p.channels : 1;
        line = p.out_width * pixel;
        start = item * p.channels * area + channel * plane + t.y0 * line + t.x0 * pixel;
        const int64_t rest = p.channels - channel - count, next = rest > 0 ? channel + count : 0;
        ahead = at<const R>(p.image) + source + (p.pixel > 1 ? 0 : next * p.plane);
        count_ahead = !own_type || p.wide ? 0 : least<int64_t>(GROUP, rest > 0 ? rest : p.channels);
        moved = rest <= 0;
        const R zeros[GROUP] = {};
        if (!t.empty) t.planes_of(p, source, channel, count, zeros, planes);
    }

    int64_t place(int k, int64_t r, int64_t c) const {
        return start + k * plane + r * line + c * pixel;
    }
};

// Write a patch, except to planes of the computation's type: see `write_tile`.
template <class R, int DOWN>
INLINE void convert_patch(const Tile<R, DOWN> &t, const Group<R> &g, int count,
                          const Vec<R, LANES<R>> (*found)[DOWN], int64_t r, int64_t c) {
    for (int n = 0; n < DOWN && r + n < t.height; n++) {
        const int64_t to = g.place(0, r + n, c);
        if (g.own_type) {
            Vec<R, LANES<R>> values[GROUP] = {};
            for (int k = 0; k < count; k++) values[k] = found[k][n];
            write_pixels(at<R>(g.call.out) + to, values, count, t.width - c, g.pixel);
        } else {
            for (int k = 0; k < count; k++)
                write_any(g.call, to + k * g.plane, found[k][n], t.width - c, g.pixel);
        }
    }
}

// Add missing taps one by one if the fill is infinite: infinities with weights of both signs, or 0,
// give NaN, which the sum of their weights would not. For `left` pixels from (r, c) on, whose other
// taps sum to `total`.
template <class R, int DOWN, class V> __attribute__((noinline)) void add_infinities(
    const Tile<R, DOWN> &t, const WarpCall &p, V fill, int64_t r, int64_t c, int64_t left,
    V &total) {
    for (int64_t l = 0; l < least<int64_t>(left, t.L); l++) {
        if (fill[l] - fill[l] == 0) continue;
        const int64_t q = t.number(r, c + l);
        for (int64_t j = 0; j < t.taps; j++)
            for (int64_t i = 0; i < t.taps; i++) {
                int64_t x, y;
                if (!t.tap(p, q, i, j, x, y)) total[l] += t.wy[j][q] * t.wx[i][q] * fill[l];
            }
    }
}

// Write a patch of any tile. found: the rows of each channel, without the fill.
template <class R, int DOWN>
__attribute__((noinline)) void finish(const Tile<R, DOWN> &t, const Group<R> &g,
                                      Vec<R, LANES<R>> (*found)[DOWN], int64_t r, int64_t c) {
    using V = Vec<R, LANES<R>>;
    const int64_t left = t.width - c, rows = least<int64_t>(DOWN, t.height - r);
    const bool dense = g.call.dense;
    if (!t.whole) {
        V state[DOWN];
        for (int n = 0; n < DOWN; n++) state[n] = load<V>(t.missing + t.number(r, c) + n * t.L);
        t.turn(state);
        for (int k = 0; k < g.count; k++)
            for (int n = 0; n < rows; n++) {
                V value = g.fill.load(k, r + n, c, left), seen = found[k][n];
                // a background's part has always been rounded before it is added
                auto finite = value - value == 0;
                V share = finite ? value : V{};
                V mixed = dense ? seen + state[n] * share : fma(state[n], share, seen);
                if (!(sum(value - value) == 0))
                    add_infinities(t, g.call, value, r + n, c, left, mixed);
                mixed = state[n] == R(NO_TAP) ? value : mixed;
                found[k][n] = state[n] == R(ALL_TAPS) ? seen : mixed;
            }
    }
    if (!g.own_type || g.pixel > 1) return convert_patch<R, DOWN>(t, g, g.count, found, r, c);
    for (int k = 0; k < g.count; k++)
        for (int n = 0; n < rows; n++) {
            R *to = at<R>(g.call.out) + g.place(k, r + n, c);
            if (left < t.L) store_first(to, found[k][n], left);
            else if (g.call.streamed) stream(to, found[k][n]);
            else store(to, found[k][n]);
        }
}

// The values of a vector of pixels from q on, for `count` channels.
template <int TAPS, bool CLOSE, class T, class R, class V>
INLINE void blend(const T &t, const R *const *planes, int64_t q, int count, V *found) {
    V wx[TAPS], wy[TAPS];
    for (int k = 0; k < TAPS; k++) wx[k] = load<V>(t.wx[k] + q), wy[k] = load<V>(t.wy[k] + q);
    Taps<R, TAPS, CLOSE> where(t, q);
    // one channel's sixteen taps and their weights fill the registers
#if defined(__clang__)  // GCC 12 does not accept a template parameter here
#pragma GCC unroll(TAPS == 2 ? GROUP : 1)
#endif
    for (int k = 0; k < count; k++)
        where.each_row(planes[k], [&](int n, const V *taps) {
            V line = wx[0] * taps[0];
            for (int i = 1; i < TAPS; i++) line = fma(wx[i], taps[i], line);
            found[k] = n ? fma(wy[n], line, found[k]) : wy[0] * line;
        });
}

// CH channels of a tile, or all of the group's if CH is 0.
template <int TAPS, int CH, bool CLOSE, class R, int DOWN>
void write_tile(const Tile<R, DOWN> &t, const Group<R> &g) {
    constexpr int L = LANES<R>, MOST = CH ? CH : GROUP;
    using V = Vec<R, L>;
    const int count = CH ? CH : g.count;
    const int64_t width = t.width, height = t.height;
    const bool streamed = g.call.streamed, plain = g.own_type && g.pixel == 1;
    const R *planes[MOST];
    for (int k = 0; k < count; k++) planes[k] = g.planes[k];
    R *corner = at<R>(g.call.out) + g.start;
    for (int64_t r = 0; r < height; r += DOWN) {
        t.fetch(g.call, g.ahead, g.count_ahead, g.moved, r);
        for (int64_t c = 0; c < width; c += L) {
            V found[MOST][DOWN], values[MOST];
            const int64_t q = t.number(r, c);
            for (int n = 0; n < DOWN; n++) {
                blend<TAPS, CLOSE>(t, planes, q + n * L, count, values);
                for (int k = 0; k < count; k++) found[k][n] = values[k];
            }
            for (int k = 0; k < count; k++) t.turn(found[k]);
            // code that is rare or independent of the taps is in a separate function
            if (!t.whole || (plain && (width - c < L || height - r < DOWN))) {
                finish<R, DOWN>(t, g, found, r, c);
                continue;
            }
            if (!plain) {
                convert_patch<R, DOWN>(t, g, count, found, r, c);
                continue;
            }
            for (int k = 0; k < count; k++)
                for (int n = 0; n < DOWN; n++) {
                    R *to = corner + k * g.plane + (r + n) * g.line + c;
                    if (streamed) stream(to, found[k][n]);
                    else store(to, found[k][n]);
                }
        }
    }
}

template <int TAPS, bool CLOSE, class R, int DOWN>
void write_channels(const Tile<R, DOWN> &t, const Group<R> &g) {
    // with two taps, one, three and four channels have loops of their own; with more taps, channels
    // are processed one after the other
    if constexpr (TAPS == 2) switch (g.count) {
            case 1: return write_tile<TAPS, 1, CLOSE>(t, g);
            case 3: return write_tile<TAPS, 3, CLOSE>(t, g);
            case 4: return write_tile<TAPS, 4, CLOSE>(t, g);
        }
    write_tile<TAPS, 0, CLOSE>(t, g);
}

// A group of a tile's channels.
template <int TAPS, class R, int DOWN> void write_group(const Tile<R, DOWN> &t, const Group<R> &g) {
    if (t.empty) {
        for (int64_t r = 0; r < t.height; r += DOWN)
            for (int64_t c = 0; c < t.width; c += t.L) {
                Vec<R, LANES<R>> nothing[GROUP][DOWN] = {};
                finish<R, DOWN>(t, g, nothing, r, c);
            }
        return;
    }
    if constexpr (DOWN == 4)
        if (t.close) return write_channels<TAPS, true>(t, g);
    write_channels<TAPS, false>(t, g);
}

// Units are rows of tiles, numbered across all items.
template <class R, int TAPS> void warp(const Call &call, int64_t begin, int64_t end) {
    WarpCall p = as<WarpCall>(call);
    Borrowed<Tile<R, DOWN_OF<R, TAPS>>> memory;
    if (!memory) return;
    auto &t = *memory;
    t.start(call);
    int64_t tile_rows = (p.out_height + TILE - 1) / TILE;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t item = unit / tile_rows, y0 = unit % tile_rows * TILE;
        int64_t source = p.enter(item);
        for (int64_t x0 = 0; x0 < p.out_width; x0 += TILE) {
            t.look(p, item, x0, y0);
            for (int64_t k = 0; k < p.channels; k += GROUP)
                write_group<TAPS>(t, Group<R>(p, t, item, source, k));
        }
    }
    if (p.streamed) finish_streams();
}

}  // namespace

// float32 and halves, and all other types by float64; more than one tap.
Kernel choose_warp(const Call &call) {
    const WarpCall &p = as<WarpCall>(call);
    Kernel found = nullptr;
    with_taps(p.taps, [&](auto taps) {
        if constexpr (taps > 1) found = computes_float(p.type) ? warp<float, taps> : warp<double, taps>;
    });
    return found;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
