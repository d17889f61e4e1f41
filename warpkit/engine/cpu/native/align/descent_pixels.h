// A pair of an alignment at one matrix, in one pass: the moving image and its weights as the matrix
// shows them, both images' weights, the exact slopes if wanted, and the first sums.
//
// Sixteen pixels are a block of 4 x 4, whose taps lie in a window of 8 x 8 pixels of the moving
// image unless the matrix shrinks it much: `Window` finds one tap of all sixteen, `Spread` those
// of a block that is larger but inside the image. Positions are numbers from the block's corner on,
// so float32 rounds them to 5e-7 pixels in images of any size.
// Blocks are sixteen lanes for every instruction set, which therefore add in the same order.
#pragma once
#include "align/descent_call.h"
#include "align/descent_taps.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int FIRST_SUMS = 6;
constexpr int RUN = 16;  // blocks whose sums are added in the images' type, before float64

using Positions = Vec<double, BLOCK>;

template <class T> struct PairPixels {
    using V = Vec<T, BLOCK>;
    using Four = Vec<T, SIDE>;

    const DescentCall &p;
    const double step;  // half the step of the differences that define exact slopes; 0: without
    const int64_t area = p.height * p.width, channels = p.channels;
    const int64_t plane = p.moving_height * p.moving_width;
    const T *moving, *fixed, *own;  // of this pair: (C + 1, H, W), (C, h, w), (h, w)
    T *seen, *weight, *lines;       // (C, h, w); (h, w); (2, C, h, w)
    T *parts;                       // (C, 6, 16): sums of a run of blocks
    double *lanes;                  // (C, 6, 16)
    bool plain;                     // three pixels inside the moving image, its weights are 1

    PairPixels(const DescentCall &call, double sharp) : p(call), step(sharp) {}

    void begin(int64_t pair) {
        moving = at<const T>(p.moving) + pair * (channels + 1) * plane;
        fixed = at<const T>(p.fixed) + pair * channels * area;
        own = at<const T>(p.weight) + pair * p.weight_size;
        plain = true;
        const T *weights = moving + channels * plane;
        for (int64_t y = 3; y < p.moving_height - 3 && plain; y++) {
            const T *row = weights + y * p.moving_width;
            const int64_t end = p.moving_width - 3;
            int64_t x = 3;
            for (; x + BLOCK <= end && plain; x += BLOCK) plain = !any_not(load<V>(row + x) == 1);
            for (; x < end; x++) plain = plain && row[x] == 1;
        }
    }

    // The matrix's position and its slopes along x and y, for blocks.
    struct Map {
        const double *m;
        bool projective;
        double lowest_u, highest_u, lowest_v, highest_v;  // of affine lanes, from the first one on
        V u, v;                                           // the same, all lanes

        Map(const double *matrix, bool with_division) : m(matrix), projective(with_division) {
            const V place = convert<V>(count_up<Offsets>() % SIDE);
            const V row = convert<V>(count_up<Offsets>() / SIDE);
            u = place * T(m[0]) + row * T(m[1]), v = place * T(m[3]) + row * T(m[4]);
            const double last = SIDE - 1;
            lowest_u = last * (least(m[0], 0.0) + least(m[1], 0.0));
            lowest_v = last * (least(m[3], 0.0) + least(m[4], 0.0));
            highest_u = last * (most(m[0], 0.0) + most(m[1], 0.0));
            highest_v = last * (most(m[3], 0.0) + most(m[4], 0.0));
        }

        void at(double x, double y, double &to_u, double &to_v, double &w) const {
            to_u = x * m[0] + y * m[1] + m[2], to_v = x * m[3] + y * m[4] + m[5], w = 1;
            if (!projective) return;
            w = x * m[6] + y * m[7] + m[8];
            to_u /= w, to_v /= w;
        }
    };

    // How a block finds its taps: in a window, in the image, or pixel by pixel.
    enum Reading { WINDOWED, INSIDE, APART };

    // The positions of a block's pixels from its corner on.
    struct Places {
        V u, v, u_x, u_y, v_x, v_y;  // slopes, if wanted: along x and y of the fixed image
        int64_t left, top, last_x, last_y;  // the corner; the last pixels that have neighbours
    };

    template <bool SHARP, bool PROJECTIVE>
    INLINE Reading place(const Map &map, int64_t x, int64_t y, Places &to) const {
        const double *m = map.m;
        double u, v, w, low_u, low_v, high_u, high_v;
        map.at(double(x), double(y), u, v, w);
        if (PROJECTIVE) {
            low_u = high_u = u, low_v = high_v = v;
            for (int corner = 1; corner < 4; corner++) {
                double to_u, to_v, weight;
                map.at(double(x + corner % 2 * (SIDE - 1)), double(y + corner / 2 * (SIDE - 1)),
                       to_u, to_v, weight);
                if (!(weight * w > 0)) return APART;
                low_u = least(low_u, to_u), high_u = most(high_u, to_u);
                low_v = least(low_v, to_v), high_v = most(high_v, to_v);
            }
        } else {
            low_u = u + map.lowest_u, high_u = u + map.highest_u;
            low_v = v + map.lowest_v, high_v = v + map.highest_v;
        }
        constexpr double FAR = 1e9;
        if (!(low_u > -FAR && high_u < FAR && low_v > -FAR && high_v < FAR)) return APART;
        double margin = 0;
        if (SHARP)
            margin = step * (__builtin_fabs(m[0]) + __builtin_fabs(m[1]) + __builtin_fabs(m[3]) +
                             __builtin_fabs(m[4])) * (PROJECTIVE ? 2 / __builtin_fabs(w) : 1);
        const double left = __builtin_floor(low_u - margin), top = __builtin_floor(low_v - margin);
        constexpr double LAST = WINDOW - 1;  // less than this: the tap to the right is inside
        Reading reading = WINDOWED;
        to.left = int64_t(left), to.top = int64_t(top);
        to.last_x = to.last_y = WINDOW - 2;
        if (!(high_u + margin < left + LAST && high_v + margin < top + LAST)) {
            if (!(plane < INT32_MAX && left >= 0 && top >= 0 &&
                  high_u + margin < double(p.moving_width - 1) &&
                  high_v + margin < double(p.moving_height - 1)))
                return APART;
            to.last_x = p.moving_width - 2 - to.left, to.last_y = p.moving_height - 2 - to.top;
            reading = INSIDE;
        }
        if (PROJECTIVE) {
            const Positions along = convert<Positions>(count_up<Offsets>() % SIDE) + double(x);
            const Positions down = convert<Positions>(count_up<Offsets>() / SIDE) + double(y);
            const Positions over = 1 / (along * m[6] + down * m[7] + m[8]);
            const Positions at_u = (along * m[0] + down * m[1] + m[2]) * over;
            const Positions at_v = (along * m[3] + down * m[4] + m[5]) * over;
            to.u = convert<V>(at_u - left), to.v = convert<V>(at_v - top);
            if (SHARP) {
                to.u_x = convert<V>((m[0] - at_u * m[6]) * over);
                to.u_y = convert<V>((m[1] - at_u * m[7]) * over);
                to.v_x = convert<V>((m[3] - at_v * m[6]) * over);
                to.v_y = convert<V>((m[4] - at_v * m[7]) * over);
            }
        } else {
            to.u = map.u + T(u - left), to.v = map.v + T(v - top);
            if (SHARP) {
                to.u_x = splat<V>(m[0]), to.u_y = splat<V>(m[1]);
                to.v_x = splat<V>(m[3]), to.v_y = splat<V>(m[4]);
            }
        }
        return reading;
    }

    // A position from the block's corner on: its taps' place, and the fractions.
    struct Cell {
        Offsets x, y;
        V right, down;

        INLINE Cell(V u, V v, const Places &at) : x(whole(u, at.last_x)), y(whole(v, at.last_y)) {
            right = u - convert<V>(x), down = v - convert<V>(y);
        }

        // The integer below, not above `last` whatever the number.
        static INLINE Offsets whole(V v, int64_t last) {
            using Lanes = Vec<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>, BLOCK>;
            const Offsets n = convert<Offsets>((Lanes)(v > 0) ? v : V{});  // not NaN
            return smaller(n, splat<Offsets>(int32_t(last)));
        }

        static INLINE V between(V a, V b, V part) { return fma(part, b - a, a); }

        INLINE V value(const V *taps) const {
            return between(between(taps[0], taps[1], right), between(taps[2], taps[3], right),
                           down);
        }
    };

    // The plane's pixels: in place, or copied with zeros outside of the image.
    template <class Pixels>
    INLINE Pixels pixels(const T *from, const Places &at, T *copy) const {
        const int64_t width = p.moving_width, height = p.moving_height;
        if (std::is_same_v<Pixels, Spread<T>>)
            return Pixels(from + at.top * width + at.left, width);
        if (at.left >= 0 && at.top >= 0 && at.left + WINDOW <= width && at.top + WINDOW <= height)
            return Pixels(from + at.top * width + at.left, width);
        const int64_t first = clamped(-at.left, 0, WINDOW);
        const int64_t count = clamped(width - at.left, first, WINDOW) - first;
        memset(copy, 0, sizeof(T) * WINDOW * WINDOW);
        for (int64_t y = 0; y < WINDOW && count > 0; y++) {
            const int64_t row = at.top + y;
            if (row < 0 || row >= height) continue;
            memcpy(copy + y * WINDOW + first, from + row * width + at.left + first,
                   size_t(count) * sizeof(T));
        }
        return Pixels(copy, WINDOW);
    }

    // The slope of a channel along one axis: of the pixel's cell if the step stays in it.
    template <class Pixels>
    INLINE V slope(const Pixels &from, const Places &at, const Cell &cell, const V *taps, V by_u,
                   V by_v) const {
        const V across = Cell::between(taps[1] - taps[0], taps[3] - taps[2], cell.down);
        const V down = Cell::between(taps[2] - taps[0], taps[3] - taps[1], cell.right);
        const V inside = fma(across, by_u, down * by_v);
        const T half = T(step);
        const V du = by_u * half, dv = by_v * half, far_u = magnitude(du), far_v = magnitude(dv);
        const auto here = (cell.right >= far_u) & (cell.right <= 1 - far_u) &
                          (cell.down >= far_v) & (cell.down <= 1 - far_v);
        if (!any_not(here)) return inside;
        auto shifted = [&](V u, V v) {
            const Cell other(u, v, at);
            V found[4];
            from.find(other.x, other.y, found);
            return other.value(found);
        };
        const V apart = shifted(at.u + du, at.v + dv) - shifted(at.u - du, at.v - dv);
        return here ? inside : apart / (2 * half);
    }

    template <class M> static INLINE bool any_not(M mask) {
        constexpr int L = LANES<Element<M>>;
        for (int k = 0; k < BLOCK; k += L) {
            Vec<Element<M>, L> part;
            memcpy(&part, reinterpret_cast<const Element<M> *>(&mask) + k, sizeof part);
            if (bits_of((Vec<int32_t, LANES<float>>)part) !=
                (uint64_t(1) << LANES<float>) - 1)
                return true;
        }
        return false;
    }

    static INLINE V gather_rows(const T *from, int64_t stride) {
        return joined<SIDE>([&](int row) { return load<Four>(from + row * stride); });
    }

    static INLINE void put_rows(T *to, int64_t stride, V value) {
        T numbers[BLOCK];
        store(numbers, value);
        for (int row = 0; row < SIDE; row++)
            memcpy(to + row * stride, numbers + SIDE * row, sizeof(T) * SIDE);
    }

    // A plane at one position, 0 where taps are missing.
    T value_at(const T *from, double u, double v) const {
        const double width = double(p.moving_width), height = double(p.moving_height);
        if (!(u > -1 && u < width && v > -1 && v < height)) return 0;
        const double left = __builtin_floor(u), top = __builtin_floor(v);
        auto tap = [&](int64_t x, int64_t y) {
            const bool there = x >= 0 && y >= 0 && x < p.moving_width && y < p.moving_height;
            return there ? from[y * p.moving_width + x] : T(0);
        };
        const int64_t x = int64_t(left), y = int64_t(top);
        const T right = T(u - left), down = T(v - top);
        const T upper = tap(x, y) + right * (tap(x + 1, y) - tap(x, y));
        const T lower = tap(x, y + 1) + right * (tap(x + 1, y + 1) - tap(x, y + 1));
        return upper + down * (lower - upper);
    }

    // A block of pixels, one after another.
    void show_apart(const Map &map, int64_t x0, int64_t y0) {
        for (int k = 0; k < BLOCK; k++) {
            const int64_t x = x0 + k % SIDE, y = y0 + k / SIDE, q = y * p.width + x;
            double u, v, w;
            map.at(double(x), double(y), u, v, w);
            for (int64_t c = 0; c < channels; c++)
                seen[c * area + q] = value_at(moving + c * plane, u, v);
            weight[q] = value_at(moving + channels * plane, u, v) * own[q];
            for (int axis = 0; axis < 2 && step > 0; axis++) {
                const double dx = axis ? 0 : step, dy = axis ? step : 0;
                double behind_u, behind_v;
                map.at(double(x) + dx, double(y) + dy, u, v, w);
                map.at(double(x) - dx, double(y) - dy, behind_u, behind_v, w);
                for (int64_t c = 0; c < channels; c++) {
                    const T *from = moving + c * plane;
                    lines[(axis * channels + c) * area + q] =
                        (value_at(from, u, v) - value_at(from, behind_u, behind_v)) / T(2 * step);
                }
            }
        }
    }

    template <bool SHARP, class Pixels> INLINE void show(const Places &at, int64_t q) {
        T copy[WINDOW * WINDOW];
        const Cell cell(at.u, at.v, at);
        V taps[4];
        for (int64_t c = 0; c < channels; c++) {
            const Pixels from = pixels<Pixels>(moving + c * plane, at, copy);
            from.find(cell.x, cell.y, taps);
            put_rows(seen + c * area + q, p.width, cell.value(taps));
            if (SHARP) {
                T *to = lines + c * area + q;
                put_rows(to, p.width, slope(from, at, cell, taps, at.u_x, at.v_x));
                to += channels * area;
                put_rows(to, p.width, slope(from, at, cell, taps, at.u_y, at.v_y));
            }
        }
        V both = gather_rows(own + q, p.width);
        if (!(plain && at.left >= 3 && at.top >= 3 &&
              at.left + at.last_x + 5 <= p.moving_width &&
              at.top + at.last_y + 5 <= p.moving_height)) {
            pixels<Pixels>(moving + channels * plane, at, copy).find(cell.x, cell.y, taps);
            both *= cell.value(taps);
        }
        put_rows(weight + q, p.width, both);
    }

    // The sums of 1, W, F, W W, F F and W F, times the weight, of a block's lanes that are `fresh`.
    INLINE void add(int64_t q, Offsets fresh) {
        using Lanes = Vec<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>, BLOCK>;
        V m = gather_rows(weight + q, p.width);
        m = convert<Lanes>(fresh) ? m : V{};
        for (int64_t c = 0; c < channels; c++) {
            const V w = gather_rows(seen + c * area + q, p.width);
            const V f = gather_rows(fixed + c * area + q, p.width);
            const V by_w = m * w, by_f = m * f;
            T *sums = parts + c * FIRST_SUMS * BLOCK;
            const V terms[] = {m, by_w, by_f, by_w * w, by_f * f, by_w * f};
            for (int k = 0; k < FIRST_SUMS; k++)
                store(sums + k * BLOCK, load<V>(sums + k * BLOCK) + terms[k]);
        }
    }

    void end_run() {
        for (int64_t k = 0; k < channels * FIRST_SUMS * BLOCK; k++) {
            lanes[k] += double(parts[k]);
            parts[k] = 0;
        }
    }

    // Shows the moving image by a matrix (3, 3), fixed pixel -> moving pixel; sums (C, 6).
    void run(const double *matrix, double *sums) {
        if (p.projective) step > 0 ? run<true, true>(matrix, sums) : run<false, true>(matrix, sums);
        else step > 0 ? run<true, false>(matrix, sums) : run<false, false>(matrix, sums);
    }

    template <bool SHARP, bool PROJECTIVE> void run(const double *matrix, double *sums) {
        const Map map(matrix, PROJECTIVE);
        memset(lanes, 0, size_t(channels * FIRST_SUMS * BLOCK) * sizeof *lanes);
        memset(parts, 0, size_t(channels * FIRST_SUMS * BLOCK) * sizeof *parts);
        const Offsets column = count_up<Offsets>() % SIDE, row = count_up<Offsets>() / SIDE;
        for (int64_t y = 0; y < p.height; y += SIDE) {
            const int64_t top = least(y, p.height - SIDE);  // the last blocks overlap
            int blocks = 0;
            for (int64_t x = 0; x < p.width; x += SIDE) {
                const int64_t left = least(x, p.width - SIDE), q = top * p.width + left;
                Places at;
                const Reading reading = place<SHARP, PROJECTIVE>(map, left, top, at);
                if (reading == WINDOWED) show<SHARP, Window<T>>(at, q);
                else if (reading == INSIDE) show<SHARP, Spread<T>>(at, q);
                else show_apart(map, left, top);
                add(q, (column >= int32_t(x - left)) & (row >= int32_t(y - top)));
                if (++blocks % RUN == 0) end_run();
            }
            end_run();
        }
        for (int64_t k = 0; k < channels * FIRST_SUMS; k++)
            sums[k] = sum(load<Positions>(lanes + k * BLOCK));
    }
};

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
