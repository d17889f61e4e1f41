// The forward kernel of bilinear, bicubic and lanczos4: all maps, borders, types and layouts.
//
//     value = sum_j wy[j] sum_i wx[i] tap[j, i] + (the missing taps' weights) * fill
//
// in the order of the reference's sum, up to fused products. A tile depends on nothing outside it,
// so that threads change no bit. Floats are computed with in their own type, integers in float64,
// so that they round once.
#include "kernels.h"
#include "memory.h"
#include "taps.h"

namespace warpkit {
namespace WARPKIT_ISA {

// What the missing taps of a tile show: one value for each channel, or one for each pixel as well.
template <class R> struct Fill {
    using V = Vec<R, LANES<R>>;
    const R *values;  // at the tile's corner, of the first channel of a group
    const WarpCall &call;

    R channel(int k) const { return values[k * call.fill_channel]; }

    // Of channel k, `left` pixels of the tile's row r from column c on.
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

// The same at a place of the result.
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

// Write `left` pixels whose channels lie side by side, CH of `pixel`.
template <int CH, class R, class V>
INLINE void write_pixels(R *to, const V *found, int64_t left, int64_t pixel) {
    constexpr int L = COUNT<V>;
    V v[GROUP] = {};
    for (int k = 0; k < CH; k++) v[k] = found[k];
    alignas(64) R values[GROUP * L];
    store(values, interleave(v));
    int64_t count = least<int64_t>(left, L);
    // three of three: a pixel's fourth number is written over by the next pixel's first
    if (CH == GROUP || (CH == 3 && pixel == 3)) {
        using Channels = Vec<R, GROUP>;
        int64_t whole = CH == GROUP ? count : count - 1;
        for (int64_t n = 0; n < whole; n++)
            store(to + n * pixel, load<Channels>(values + GROUP * n));
        for (int64_t n = whole; n < count; n++)
            for (int k = 0; k < CH; k++) to[n * pixel + k] = values[GROUP * n + k];
        return;
    }
    for (int64_t n = 0; n < count; n++)
        for (int k = 0; k < CH; k++) to[n * pixel + k] = values[GROUP * n + k];
}

// The values of a vector of pixels from q on, of CH channels.
template <class R, int TAPS, int CH, bool CLOSE, class V>
INLINE void blend(const Tile<R, TAPS> &t, const R *const *planes, int64_t q, V *found) {
    V wx[TAPS], wy[TAPS];
    for (int k = 0; k < TAPS; k++) wx[k] = load<V>(t.wx[k] + q), wy[k] = load<V>(t.wy[k] + q);
    Taps<R, TAPS, CLOSE> where(t, q);
    // one channel's sixteen taps and their weights are all that the registers hold
#pragma GCC unroll(TAPS == 2 ? GROUP : 1)
    for (int k = 0; k < CH; k++)
        where.each_row(planes[k], [&](int n, const V *taps) {
            V line = wx[0] * taps[0];
            for (int i = 1; i < TAPS; i++) line = fma(wx[i], taps[i], line);
            found[k] = n ? fma(wy[n], line, found[k]) : wy[0] * line;
        });
}

// CH channels of a tile, from `channel` on.
template <class R, int TAPS, int CH, bool CLOSE> void write_tile(Tile<R, TAPS> &t,
                                                                 const WarpCall &p, int64_t item,
                                                                 int64_t source, int64_t channel) {
    constexpr int L = LANES<R>, DOWN = Tile<R, TAPS>::DOWN;
    using V = Vec<R, L>;
    const int64_t out_area = p.out_height * p.out_width, line = p.out_width;
    const int64_t plane = p.channels_last ? 1 : out_area, pixel = p.channels_last ? p.channels : 1;
    const int64_t start =
        item * p.channels * out_area + channel * plane + (t.y0 * line + t.x0) * pixel;
    const int64_t width = t.width, height = t.height;
    const bool own_type = p.type == (sizeof(R) == 4 ? FLOAT32 : FLOAT64);
    const bool plain = own_type && pixel == 1, beside = own_type && !plain;
    const bool empty = t.empty, whole = t.whole, streamed = p.streamed;
    const Fill<R> fill = {at<const R>(p.fill) + item * p.fill_item + channel * p.fill_channel +
                              t.y0 * p.fill_row + t.x0 * p.fill_column,
                          p};
    const R zeros[GROUP] = {}, *planes[CH];
    // what is read next: the same box of the next channels, or the next tile's of the first ones
    const int64_t rest = p.channels - channel - CH, next = rest > 0 ? channel + CH : 0;
    const R *ahead =
        at<const R>(p.image) + source + (p.channels_last ? 0 : next * p.height * p.width);
    const int64_t count = !own_type ? 0 : least<int64_t>(GROUP, rest > 0 ? rest : p.channels);
    if (!empty) t.planes_of(p, source, channel, CH, zeros, planes);
    for (int64_t r = 0; r < height; r += DOWN) {
        t.fetch(p, ahead, count, rest <= 0, r);
        for (int64_t c = 0; c < width; c += L) {
            V found[CH][DOWN], values[CH];
            const int64_t q = t.number(r, c), left = width - c;
            for (int n = 0; n < DOWN && !empty; n++) {
                blend<R, TAPS, CH, CLOSE>(t, planes, q + n * L, values);
                for (int k = 0; k < CH; k++) found[k][n] = values[k];
            }
            for (int k = 0; k < CH && !empty; k++) t.turn(found[k]);
            if (!whole) {
                V state[DOWN];
                for (int n = 0; n < DOWN; n++) state[n] = load<V>(t.missing + q + n * L);
                t.turn(state);
                for (int k = 0; k < CH; k++)
                    for (int n = 0; n < DOWN && r + n < height; n++) {
                        V value = fill.load(k, r + n, c, left);
                        if (empty) found[k][n] = value;
                        // a background's share has always been rounded before it is added
                        V mixed = p.dense ? found[k][n] + state[n] * value
                                          : fma(state[n], value, found[k][n]);
                        mixed = state[n] == R(NO_TAP) ? value : mixed;
                        found[k][n] = state[n] == R(ALL_TAPS) ? found[k][n] : mixed;
                    }
            }
            for (int n = 0; beside && n < DOWN && r + n < height; n++) {
                for (int k = 0; k < CH; k++) values[k] = found[k][n];
                write_pixels<CH>(at<R>(p.out) + start + ((r + n) * line + c) * pixel, values, left,
                                 pixel);
            }
            for (int k = 0; k < CH && !beside; k++)
                for (int n = 0; n < DOWN && r + n < height; n++) {
                    const int64_t to = start + k * plane + ((r + n) * line + c) * pixel;
                    R *out = at<R>(p.out) + to;
                    if (!plain) write_any(p, to, found[k][n], left, pixel);
                    else if (left < L) store_first(out, found[k][n], left);
                    else if (streamed) stream(out, found[k][n]);
                    else store(out, found[k][n]);
                }
        }
    }
}

template <class R, int TAPS, int CH> INLINE void write_any_tile(Tile<R, TAPS> &t, const WarpCall &p,
                                                                int64_t item, int64_t source,
                                                                int64_t channel) {
    constexpr bool BLOCKS = TAPS == 2 && Tile<R, TAPS>::DOWN == 4;
    if (BLOCKS && t.close) write_tile<R, TAPS, CH, BLOCKS>(t, p, item, source, channel);
    else write_tile<R, TAPS, CH, false>(t, p, item, source, channel);
}

// Units are rows of tiles, numbered across all items.
template <class R, int TAPS> void warp(const Call &call, int64_t begin, int64_t end) {
    const WarpCall &p = as<WarpCall>(call);
    Borrowed<Tile<R, TAPS>> memory;
    if (!memory) return;
    Tile<R, TAPS> &t = *memory;
    t.start();
    int64_t tile_rows = (p.out_height + TILE - 1) / TILE;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t item = unit / tile_rows, y0 = unit % tile_rows * TILE;
        int64_t source = at<const int64_t>(p.image_of)[item] * p.channels * p.height * p.width;
        for (int64_t x0 = 0; x0 < p.out_width; x0 += TILE) {
            t.template look<false>(p, item, x0, y0);
            for (int64_t k = 0; k < p.channels; k += GROUP) switch (p.channels - k) {
                    case 1: write_any_tile<R, TAPS, 1>(t, p, item, source, k); break;
                    case 2: write_any_tile<R, TAPS, 2>(t, p, item, source, k); break;
                    case 3: write_any_tile<R, TAPS, 3>(t, p, item, source, k); break;
                    default: write_any_tile<R, TAPS, 4>(t, p, item, source, k);
                }
        }
    }
    if (p.streamed) finish_streams();
}

// float32, and all other types by float64; 2, 4 and 8 taps.
Kernel choose_warp(const Call &call) {
    static const Kernel KERNELS[2][3] = {
        {warp<float, 2>, warp<float, 4>, warp<float, 8>},
        {warp<double, 2>, warp<double, 4>, warp<double, 8>},
    };
    const WarpCall &p = as<WarpCall>(call);
    return KERNELS[p.type != FLOAT32][logarithm(p.taps) - 1];
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
