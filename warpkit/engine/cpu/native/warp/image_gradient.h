// The gradient to the image: every output pixel adds to its taps.
//
//     grad_image[tap] += wy[j] wx[i] push
//
// A tile's contributions are summed in a window, which is then added to the image's gradient in
// memory. In the window and in `pushed`, GROUP channels of a pixel are adjacent, so a pixel adds to
// a tap with one load, one multiply-add and one store.
#pragma once
#include "shared/neighbours.h"
#include "warp/tile.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// Gradients of a group of a tile's channels.
template <class R> struct Pushes {
    alignas(64) R pushed[GROUP * PIXELS + 16];  // per pixel; 0 if it reads nothing

    int64_t first;                    // channel
    int count;                        // at most GROUP
    const R *grad;                    // the incoming gradient, at the tile's corner
    R *target;                        // the whole gradient of the image
    int64_t source;                   // the whole image
    int64_t plane, out_plane, pixel;  // steps to the next channel and pixel
    // what to prefetch: planes of the next channels, or of the next tile
    const R *grad_ahead, *image_ahead, *target_ahead;
    int ahead;
    bool moved;
};

template <class R, int DOWN> struct ImageGradient {
    using T = Tile<R, DOWN>;
    static constexpr int L = LANES<R>;
    using V = Vec<R, L>;
    using Channels = Vec<R, GROUP>;
    using I = Vec<int32_t, L>;

    alignas(64) int32_t place[L];  // of a vector's first taps, in the window
    alignas(64) R window[GROUP * (T::ROOM + L)];

    // Add `pushed` to an image's gradient, in its rows band .. band_end.
    void add(const WarpCall &p, const Job &job, const T &t, const Pushes<R> &g) {
        if (t.columns > t.room || t.rows > t.room || t.columns * t.rows > t.room)
            return add_each_tap(p, job, t, g);
        memset(window, 0, size_t(t.columns * t.rows * GROUP) * sizeof(R));
        if constexpr (DOWN > 1) add_pixels<2>(p, t, g);
        else with_taps(t.taps, [&](auto taps) { add_pixels<taps>(p, t, g); });
        flush(p, job, t, g);
    }

  private:
    template <int TAPS> void add_pixels(const WarpCall &p, const T &t, const Pushes<R> &g) {
        const int64_t line = t.columns * GROUP;
        using Whole = Vec<uint32_t, L>;  // pixels without a position may overflow
        const uint32_t first_x = uint32_t(t.left + t.before), first_y = uint32_t(t.top + t.before);
        for (int64_t r = 0; r < t.height; r += DOWN) {
            t.fetch(p, g.target_ahead, g.ahead, g.moved, r);
            for (int64_t q = t.number(r, 0), end = q + t.filled(); q < end; q += L) {
                Whole x = load<Whole>(t.column + q) - first_x, y = load<Whole>(t.row + q) - first_y;
                I here = (I)((y * uint32_t(t.columns) + x) * uint32_t(GROUP));
                if (!t.whole) here = convert<I>(t.nowhere(q)) ? I{} : here;
                store(place, here);
                for (int n = 0; n < L; n++) add_taps<TAPS>(t, g, window + place[n], line, q + n);
            }
        }
    }

    // Add pixel q's contribution to its taps, of which the first is at `tap`; rows are `line`
    // apart.
    template <int TAPS>
    static INLINE void add_taps(const T &t, const Pushes<R> &g, R *tap, int64_t line, int64_t q) {
        Channels push = load<Channels>(g.pushed + GROUP * q);
        if constexpr (TAPS == 1) return store(tap, load<Channels>(tap) + push);
        for (int n = 0; n < TAPS; n++, tap += line) {
            Channels share = push * t.wy[n][q];
            for (int k = 0; k < TAPS; k++) {
                R *here = tap + GROUP * k;
                store(here, fma(splat<Channels>(t.wx[k][q]), share, load<Channels>(here)));
            }
        }
    }

    // Add the window to the gradient in memory.
    void flush(const WarpCall &p, const Job &job, const T &t, const Pushes<R> &g) const {
        const int64_t pixel = g.pixel;
        int64_t first = clamped(-t.left, 0, t.columns);
        int64_t last = clamped(p.width - t.left, first, t.columns);
        for (int64_t r = 0; r < t.rows; r++) {
            int64_t y = resolve(t.top + r, p.height, p.border_y);
            if (y < job.band || y >= job.band_end) continue;  // including missing ones
            const R *from = window + r * t.columns * GROUP;
            R *row = g.target + g.first * g.plane + y * p.width * pixel;
            if (p.channels_last) {
                for (int64_t c = first; c < last; c++)
                    add_channels(row + (t.left + c) * pixel, from + GROUP * c, g.count);
            } else {
                for (int64_t c = first; c < last; c += L)
                    add_vector(row + t.left + c, g.plane, from + GROUP * c, g.count, last - c);
            }
            if (misses(p.border_x)) continue;
            for (int64_t c = 0; c < t.columns; c = c + 1 == first ? last : c + 1) {
                if (c == first && first < last) c = last;  // nothing before it
                if (c >= t.columns) break;
                R *folded = row + resolve(t.left + c, p.width, p.border_x) * pixel;
                for (int k = 0; k < g.count; k++) folded[k * g.plane] += from[GROUP * c + k];
            }
        }
    }

    static INLINE void add_vector(R *to, int64_t plane, const R *from, int count, int64_t left) {
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
    static void add_each_tap(const WarpCall &p, const Job &job, const T &t, const Pushes<R> &g) {
        for (int64_t r = 0; r < t.height; r++)
            for (int64_t c = 0; c < t.width; c++) {
                int64_t q = t.number(r, c);
                if (!t.whole && t.missing[q] == R(NO_TAP)) continue;
                for (int64_t n = 0; n < t.taps * t.taps; n++) {
                    int64_t i = n % t.taps, j = n / t.taps, x, y;
                    if (!t.tap(p, q, i, j, x, y) || y < job.band || y >= job.band_end) continue;
                    R *to = g.target + g.first * g.plane + (y * p.width + x) * g.pixel;
                    for (int k = 0; k < g.count; k++) {
                        R value = g.pushed[GROUP * q + k];
                        if (t.taps > 1) value = t.wx[i][q] * (t.wy[j][q] * value);
                        to[k * g.plane] += value;
                    }
                }
            }
    }
};

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
