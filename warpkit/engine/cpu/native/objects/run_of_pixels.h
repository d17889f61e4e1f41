// A run of pixels in one row of an object's box: their source positions, the weights of their four
// taps, and the taps' values.
//
// `look` computes all of it for up to RUN pixels, a register at a time; both passes then process
// the run. Interpolation is bilinear, with nothing outside a source: a missing tap has weight 0,
// or, in an opaque object, the object's fill as value.
//
// The two taps of a row are adjacent and loaded together, see `neighbours`. At the edge of a source
// the pair is moved inside, so no load leaves it, and its numbers are exchanged.
#pragma once
#include <math.h>

#include "shared/neighbours.h"
#include "objects/objects_call.h"
#include "warp/warp_call.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int RUN = 64;  // pixels of a run

INLINE bool inside(int64_t index, int64_t length) { return index >= 0 && index < length; }

// The first column and the end of each row of an object that does not fill its box.
INLINE const int32_t *spans_of(const ObjectsCall &p, const Object &o) {
    return o.rows < 0 ? nullptr : at<const int32_t>(p.spans) + 2 * o.rows;
}

// An object, and the common data of its pixels.
template <class R> struct Source {
    const Object &object;
    const PaintedImage &image;  // on which it is painted
    int64_t number;
    const double *map;  // from pixels of the box, relative to its corner
    int64_t plane, line, step;  // to the next channel, row and pixel of the source
    const R *colour, *mask;
    R opacity;
    const int32_t *spans;  // of its rows, if it does not fill its box

    Source(const ObjectsCall &p, int64_t o)
        : object(at<const Object>(p.objects)[o]),
          image(at<const PaintedImage>(p.painted)[object.image]),
          number(o),
          map(at<const double>(p.to_source) + 3 * p.kind * o),
          plane(p.colour ? p.plane : image.plane),
          line(p.colour ? p.line : image.line),
          step(p.colour ? 1 : image.step),
          colour(p.colour ? at<const R>(p.colour) + object.source
                          : at<const R>(p.images + image.pixels) + object.top * line +
                                object.left * step),
          mask(p.mask ? at<const R>(p.mask) + object.cover : nullptr),
          opacity(p.opacity ? at<const R>(p.opacity)[p.own_opacity ? o : 0] : R(1)),
          spans(spans_of(p, object)) {}

    // The index of pixel (x, y) among those of all boxes.
    INLINE int64_t entry(int64_t x, int64_t y) const {
        return object.first + (y - object.top) * (object.right - object.left) + x - object.left;
    }

    // The columns first .. end of row y that belong to the object, without those for which an
    // affine map finds no tap.
    void reach(const ObjectsCall &p, int64_t y, int64_t &first, int64_t &end) const {
        double low = double(object.left), high = double(object.right);
        if (spans) {
            low = double(spans[2 * (y - object.top)]),
            high = double(spans[2 * (y - object.top) + 1]);
        }
        const double limit = high;
        for (int axis = 0; axis < 2 && p.kind == AFFINE; axis++) {
            double slope = map[3 * axis], side = double(axis ? object.height : object.width);
            double zero = map[3 * axis + 1] * double(y - object.top) + map[3 * axis + 2];
            if (slope != 0) {  // one more column on both sides, for rounding; NaN is no limit
                double one = (-1 - zero) / slope, other = (side - zero) / slope;
                low = most(double(object.left) + least(one, other) - 1, low);
                high = least(double(object.left) + most(one, other) + 2, high);
            } else if (!(-1 <= zero && zero <= side)) {
                high = low;
            }
        }
        high = most(high, low);
        first = int64_t(least(low, limit));
        end = int64_t(least(high, limit));
    }
};

template <class R> struct Run {
    static constexpr int L = LANES<R>, D = LANES<double>;
    using V = Vec<R, L>;
    using I = Vec<int32_t, L>;
    using Doubles = Vec<double, D>;
    // bits of `there`: the taps are 1, 2, 4 and 8; whether the pair was moved inside
    static constexpr int32_t ALL = 15, AT_LEFT = 16, AT_RIGHT = 32;

    int64_t count;                               // pixels; they are repeated up to a register's end
    bool paired;                                 // whether the taps of a row are read together
    alignas(64) int32_t column[RUN], row[RUN];   // of the first tap, in the source
    alignas(64) int32_t upper[RUN], lower[RUN];  // where the pairs are, from the source's start
    alignas(64) int32_t there[RUN];              // which of the four taps are inside the source
    alignas(64) R tx[RUN], ty[RUN];              // fractions
    alignas(64) R mask[4][RUN], weight[4][RUN];  // per tap; the weight includes the mask
    alignas(64) R cover[RUN];                    // the sum of the weights
    bool whole[RUN / L];  // all taps of a register's pixels are inside

    // Pixels x .. x + n of row y.
    __attribute__((noinline)) void look(const ObjectsCall &p, const Source<R> &source, int64_t x,
                                        int64_t y, int64_t n) {
        const Object &o = source.object;
        count = n;
        paired = o.width > 1 && o.height * source.line + o.width * source.step < INT32_MAX;
        const double first = double(x - o.left), line = double(y - o.top);
        for (int64_t k = 0; k < n; k += L) {
            Place at = place(p, source.map, first + double(k), first + double(n - 1), line);
            store(column + k, at.i), store(row + k, at.j), store(tx + k, at.x), store(ty + k, at.y);
            find_taps(source, k, at);
            if (!p.opaque) weigh(source, k, at);
            else if (p.backward) weigh_all(k, at);
        }
    }

    // The four taps of a register's pixels in a plane of the source, `missing` where one is
    // outside.
    INLINE void read(const Source<R> &source, int64_t channel, int64_t k, R missing, V *v) const {
        const R *plane = source.colour + channel * source.plane;
        read_at(plane, upper + k, lower + k, source.line, source.step, k, missing, v);
    }

    // The weighted sum of four taps.
    INLINE V dot(int64_t k, const V *v) const {
        return (w(0, k) * v[0] + w(1, k) * v[1]) + (w(2, k) * v[2] + w(3, k) * v[3]);
    }
    INLINE V w(int tap, int64_t k) const { return load<V>(weight[tap] + k); }

    // The lanes that have this tap, or any tap.
    INLINE auto has(int tap, int64_t k) const {
        return lanes_of<V>((load<I>(there + k) & 1 << tap) != 0);
    }
    INLINE auto some(int64_t k) const { return lanes_of<V>((load<I>(there + k) & ALL) != 0); }

  private:
    struct Place {
        I i, j;  // column and row of the first tap
        V x, y;  // fractions
    };

    // The positions of a register's pixels from column x of the box on, at most `last`. They stay
    // in registers: a load would wait for the halves that were just stored.
    static INLINE Place place(const ObjectsCall &p, const double *m, double x, double last,
                              double line) {
        if constexpr (L == D) return place_part(p, m, x, last, line);
        else {
            auto a = place_part(p, m, x, last, line), b = place_part(p, m, x + D, last, line);
            return {join(a.i, b.i), join(a.j, b.j), join(a.x, b.x), join(a.y, b.y)};
        }
    }

    struct Part {
        Vec<int32_t, D> i, j;
        Vec<R, D> x, y;
        operator Place() const { return {i, j, x, y}; }
    };

    // The same of D pixels.
    static INLINE Part place_part(const ObjectsCall &p, const double *m, double x, double last,
                                  double line) {
        const Doubles across = smaller(count_up<Doubles>() + x, splat<Doubles>(last));
        const Doubles down = splat<Doubles>(line);
        Doubles u = m[0] * across + m[1] * down + m[2], v = m[3] * across + m[4] * down + m[5];
        if (p.kind == PERSPECTIVE) {
            Doubles w = m[6] * across + m[7] * down + m[8];
            Doubles limit = FAR * magnitude(w);
            auto good = (magnitude(u) < limit) & (magnitude(v) < limit);
            good = good & (magnitude(w) < INFINITY);
            w = good ? w : splat<Doubles>(double(NAN));
            u /= w, v /= w;
        }
        auto near = (magnitude(u) < FAR) & (magnitude(v) < FAR);  // false for NaN
        u = near ? u : splat<Doubles>(-2.0), v = near ? v : splat<Doubles>(-2.0);
        const Doubles i = floor_of(u), j = floor_of(v);
        return {convert<Vec<int32_t, D>>(i), convert<Vec<int32_t, D>>(j), convert<Vec<R, D>>(u - i),
                convert<Vec<R, D>>(v - j)};
    }

    INLINE void find_taps(const Source<R> &source, int64_t k, const Place &at) {
        const Object &o = source.object;
        const I i = at.i, j = at.j;
        const int32_t width = int32_t(o.width), height = int32_t(o.height);
        const I x0 = (i >= 0) & (i < width), x1 = (i >= -1) & (i < width - 1);
        const I y0 = (j >= 0) & (j < height), y1 = (j >= -1) & (j < height - 1);
        I bits = (x0 & y0 & 1) | (x1 & y0 & 2) | (x0 & y1 & 4) | (x1 & y1 & 8);
        if (source.spans) bits &= held_taps(source, k);
        bits |= ((i < 0) & AT_LEFT) | ((i >= width - 1) & AT_RIGHT);
        store(there + k, bits);
        whole[k / L] = all_are(bits, int32_t(ALL));
        set_pairs(o, uint32_t(source.line), uint32_t(source.step), at, upper + k, lower + k);
    }

    // The bits of the taps inside the rows of an object that does not fill its box.
    __attribute__((noinline)) I held_taps(const Source<R> &source, int64_t k) const {
        const Object &o = source.object;
        alignas(64) int32_t bits[L];
        for (int n = 0; n < L; n++) {
            bits[n] = 0;
            for (int line = 0; line < 2; line++) {
                const int64_t y = int64_t(row[k + n]) + line;
                if (!inside(y, o.height)) continue;
                const int64_t first = source.spans[2 * y] - o.left,
                              end = source.spans[2 * y + 1] - o.left, x = column[k + n];
                if (x >= first && x < end) bits[n] |= 1 << 2 * line;
                if (x + 1 >= first && x + 1 < end) bits[n] |= 2 << 2 * line;
            }
        }
        return load<I>(bits);
    }

    // The positions of the pairs of taps, moved inside; unsigned, since they are not used for a
    // source that is not paired.
    static INLINE void set_pairs(const Object &o, uint32_t line, uint32_t step, const Place &at,
                                 int32_t *above, int32_t *below) {
        using U = Vec<uint32_t, L>;
        const int32_t width = int32_t(o.width), height = int32_t(o.height);
        const U x = (U)held(at.i, 0, most(width - 2, 0)) * step;
        store(above, (U)held(at.j, 0, height - 1) * line + x);
        store(below, (U)(held(at.j, -1, height - 2) + 1) * line + x);
    }

    INLINE void weigh(const Source<R> &source, int64_t k, const Place &at) {
        V m[4];
        if (source.mask) {
            alignas(64) int32_t above[L], below[L];
            set_pairs(source.object, uint32_t(source.object.width), 1, at, above, below);
            read_at(source.mask, above, below, source.object.width, 1, k, R(0), m);
        } else {
            for (int t = 0; t < 4; t++) m[t] = has(t, k) ? splat<V>(R(1)) : V{};
        }
        for (int t = 0; t < 4; t++) store(mask[t] + k, m[t]);
        // not their sum, which may differ from 1 in its last bit: opaque objects must hide even
        // 1e30
        const V above = m[0] + at.x * (m[1] - m[0]), below = m[2] + at.x * (m[3] - m[2]);
        store(cover + k, above + at.y * (below - above));
        set_weights(k, at, m);
    }

    // An opaque object's taps, missing or not.
    INLINE void weigh_all(int64_t k, const Place &at) {
        const V one = splat<V>(R(1)), m[4] = {one, one, one, one};
        for (int t = 0; t < 4; t++) store(mask[t] + k, one);
        set_weights(k, at, m);
    }

    INLINE void set_weights(int64_t k, const Place &at, const V *m) {
        const V x = at.x, y = at.y, sx = 1 - x, sy = 1 - y;
        store(weight[0] + k, sy * sx * m[0]), store(weight[1] + k, sy * x * m[1]);
        store(weight[2] + k, y * sx * m[2]), store(weight[3] + k, y * x * m[3]);
    }

    INLINE void read_at(const R *plane, const int32_t *above, const int32_t *below, int64_t line,
                        int64_t step, int64_t k, R missing, V *v) const {
        if (!paired) return read_singly(plane, line, step, k, missing, v);
        if (step == 1) neighbours<2>(plane, above, v), neighbours<2>(plane, below, v + 2);
        else read_spaced(plane, above, step, v), read_spaced(plane, below, step, v + 2);
        if (whole[k / L]) return;
        const I bits = load<I>(there + k);
        const auto left = lanes_of<V>((bits & AT_LEFT) != 0);
        const auto right = lanes_of<V>((bits & AT_RIGHT) != 0);
        for (int n = 0; n < 4; n += 2) {
            const V first = v[n], second = v[n + 1];
            v[n] = right ? second : first, v[n + 1] = left ? first : second;
        }
        for (int t = 0; t < 4; t++)
            v[t] = lanes_of<V>((bits & 1 << t) != 0) ? v[t] : splat<V>(missing);
    }

    // As `neighbours<2>`, of pixels that are not adjacent.
    static __attribute__((noinline)) void read_spaced(const R *plane, const int32_t *offset,
                                                      int64_t step, V *v) {
        alignas(64) R found[2][L];
        for (int n = 0; n < L; n++) {
            found[0][n] = plane[offset[n]];
            found[1][n] = plane[offset[n] + step];
        }
        v[0] = load<V>(found[0]), v[1] = load<V>(found[1]);
    }

    // For a source one pixel wide, or one too large for `upper` and `lower`.
    void read_singly(const R *plane, int64_t line, int64_t step, int64_t k, R missing,
                     V *v) const {
        alignas(64) R found[4][L];
        for (int n = 0; n < L; n++)
            for (int t = 0; t < 4; t++) {
                int64_t y = int64_t(row[k + n]) + t / 2, x = int64_t(column[k + n]) + t % 2;
                found[t][n] = there[k + n] >> t & 1 ? plane[y * line + x * step] : missing;
            }
        for (int t = 0; t < 4; t++) v[t] = load<V>(found[t]);
    }

    static constexpr double FAR = 2147483648.0;  // points of this magnitude and beyond are nowhere

    static INLINE bool all_are(I v, int32_t wanted) {
        uint64_t parts[sizeof(I) / 8], differing = 0;
        const I difference = v ^ wanted;
        memcpy(parts, &difference, sizeof parts);
        for (uint64_t part : parts) differing |= part;
        return !differing;
    }

    static INLINE I held(I v, int32_t low, int32_t high) {
        return smaller(larger(v, splat<I>(low)), splat<I>(high));
    }
};

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
