// The four taps of a run of places in a source, and what a sweep's passes share: samples, measures
// and the memory that a thread works in.
#pragma once
#include "shared/memory.h"
#include "shared/rules.h"
#include "matching/sweep_places.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr double SLACK = 1e-6;       // WHOLE in definitions/depth.py
constexpr double FAR = 2147483648.0;  // LIMIT in definitions/rules.py
constexpr int PIECES = REGISTER == 64 ? 4 : 1;  // of channels that are in registers together

using Numbers = Vec<double, RUN>;
using Longs = Vec<int64_t, RUN>;

struct Taps {
    // Pixels; the one behind the last is 0.
    alignas(64) int32_t pixel[4][RUN];
    alignas(64) float weight[4][RUN];
    alignas(64) double x[RUN], y[RUN];
    Piece fx, fy;
    Wholes seen;            // -1 where the place lies in the source
    Wholes least_row, most_row;
    uint32_t used;          // a bit for each pixel that has a sample

    // x and y of n places, NaN where there is none, to taps.
    void look(const SweepCall &call, int64_t n) {
        const Numbers u = load<Numbers>(x), v = load<Numbers>(y);
        const double last_x = double(call.source_width - 1);
        const double last_y = double(call.source_height - 1);
        const Longs within = (u >= -SLACK) & (u <= last_x + SLACK) & (v >= -SLACK) &
                             (v <= last_y + SLACK);
        const Wholes there = count_up<Wholes>() < int32_t(n);
        seen = convert<Wholes>(within) & there;
        if (call.inside) return look_inside(call, u, v, seen);
        const Longs near = (magnitude(u) < FAR) & (magnitude(v) < FAR);
        const Wholes known = convert<Wholes>(near) & there;
        if (call.border_y <= REPLICATE && call.border_x <= REPLICATE) look_around(call, u, v, known);
        else look_folded(call, known);
    }

    // In the cell inside: at the last column the taps before it.
    INLINE void look_inside(const SweepCall &call, Numbers u, Numbers v, Wholes good) {
        const int32_t width = int32_t(call.source_width), height = int32_t(call.source_height);
        used = bits_of_all(good);
        const Longs wide = convert<Longs>(good);
        u = wide ? u : Numbers{}, v = wide ? v : Numbers{};
        Wholes left = convert<Wholes>(u), top = convert<Wholes>(v);  // of -1e-6 it is 0
        left = larger(smaller(left, splat<Wholes>(width - 2)), Wholes{});
        top = larger(smaller(top, splat<Wholes>(height - 2)), Wholes{});
        const Wholes right = smaller(left + 1, splat<Wholes>(width - 1));
        const Wholes bottom = smaller(top + 1, splat<Wholes>(height - 1));
        fill(width, u - convert<Numbers>(left), v - convert<Numbers>(top), left, right, top,
             bottom);
    }

    // Under constant and replicate.
    INLINE void look_around(const SweepCall &call, Numbers u, Numbers v, Wholes good) {
        const int32_t width = int32_t(call.source_width), height = int32_t(call.source_height);
        const bool no_x = call.border_x == CONSTANT, no_y = call.border_y == CONSTANT;
        Longs wide = convert<Longs>(good);
        // without a tap inside there is nothing to read
        if (no_x) wide &= (u > -1) & (u < double(width));
        if (no_y) wide &= (v > -1) & (v < double(height));
        used = bits_of_all(convert<Wholes>(wide));
        u = wide ? u : Numbers{}, v = wide ? v : Numbers{};
        u = larger(smaller(u, splat<Numbers>(width + 1.0)), splat<Numbers>(-2.0));
        v = larger(smaller(v, splat<Numbers>(height + 1.0)), splat<Numbers>(-2.0));
        const Wholes left = convert<Wholes>(u + 2) - 2, top = convert<Wholes>(v + 2) - 2;
        const Wholes x0 = within_sides(left, width), x1 = within_sides(left + 1, width);
        const Wholes y0 = within_sides(top, height), y1 = within_sides(top + 1, height);
        fill(width, u - convert<Numbers>(left), v - convert<Numbers>(top), x0, x1, y0, y1);
        const Wholes none = splat<Wholes>(width * height);
        for (int tap = 0; tap < 4; tap++) {
            const Wholes in_x = tap % 2 ? x1 == left + 1 : x0 == left;
            const Wholes in_y = tap / 2 ? y1 == top + 1 : y0 == top;
            const Wholes in = (no_x ? in_x : ~Wholes{}) & (no_y ? in_y : ~Wholes{});
            store(pixel[tap], in ? load<Wholes>(pixel[tap]) : none);
        }
    }
    static INLINE Wholes within_sides(Wholes i, int32_t length) {
        return larger(smaller(i, splat<Wholes>(length - 1)), Wholes{});
    }

    // Under any border, place by place.
    void look_folded(const SweepCall &call, Wholes good) {
        const int64_t width = call.source_width, height = call.source_height;
        used = bits_of_all(good);
        for (int k = 0; k < RUN; k++) {
            const double u = good[k] ? x[k] : 0, v = good[k] ? y[k] : 0;
            const double left = __builtin_floor(u), top = __builtin_floor(v);
            fx[k] = float(u - left), fy[k] = float(v - top);
            int64_t low = height, high = -1;
            for (int tap = 0; tap < 4; tap++) {
                const int64_t column = resolve(int64_t(left) + tap % 2, width, call.border_x);
                const int64_t row = resolve(int64_t(top) + tap / 2, height, call.border_y);
                const bool in = column >= 0 && row >= 0;
                pixel[tap][k] = int32_t(in ? row * width + column : height * width);
                if (in) low = least(low, row), high = most(high, row);
            }
            least_row[k] = int32_t(low), most_row[k] = int32_t(high);
        }
        weigh();
    }

    INLINE void fill(int32_t width, Numbers x_part, Numbers y_part, Wholes x0, Wholes x1, Wholes y0,
                     Wholes y1) {
        fx = convert<Piece>(x_part), fy = convert<Piece>(y_part);
        store(pixel[0], y0 * width + x0), store(pixel[1], y0 * width + x1);
        store(pixel[2], y1 * width + x0), store(pixel[3], y1 * width + x1);
        least_row = y0, most_row = y1;
        weigh();
    }
    INLINE void weigh() {
        store(weight[0], (1 - fx) * (1 - fy)), store(weight[1], fx * (1 - fy));
        store(weight[2], (1 - fx) * fy), store(weight[3], fx * fy);
    }
};

// Calls use(count, first) for groups of pieces, the count being a constant.
template <class Use> INLINE void by_pieces(int64_t padded, Use use) {
    const int64_t pieces = padded / RUN;
    int64_t b = 0;
    for (; b + PIECES <= pieces; b += PIECES) use(std::integral_constant<int, PIECES>{}, b * RUN);
    if constexpr (PIECES > 2)
        if (b + 2 <= pieces) use(std::integral_constant<int, 2>{}, b * RUN), b += 2;
    if constexpr (PIECES > 1)
        if (b < pieces) use(std::integral_constant<int, 1>{}, b * RUN);
}

// The samples of pixel k of a run: one load and one multiply-add for each tap.
template <int P>
INLINE void sample(const Taps &t, const float *source, int64_t padded, int k, Piece *s) {
    const float *taps[4];
    for (int tap = 0; tap < 4; tap++) taps[tap] = source + int64_t(t.pixel[tap][k]) * padded;
    const Piece first = splat<Piece>(t.weight[0][k]);
    for (int b = 0; b < P; b++) s[b] = first * load<Piece>(taps[0] + b * RUN);
    for (int tap = 1; tap < 4; tap++) {
        const Piece weight = splat<Piece>(t.weight[tap][k]);
        for (int b = 0; b < P; b++) s[b] = fma(weight, load<Piece>(taps[tap] + b * RUN), s[b]);
    }
}

template <int MEASURE> constexpr bool IS_VARIANCE = MEASURE == VARIANCE || MEASURE == VARIANCE_ALONE;

// One over the number of pictures whose variance is computed, of `views` that take part.
template <int MEASURE> INLINE float part_of(int64_t views) {
    return 1 / float(most<int64_t>(views + (MEASURE == VARIANCE), 1));
}

// What a thread works in, for rows of an item: memory that is taken once for a call.
struct Workshop {
    const int64_t views, stride, blocks;
    BorrowedRow<Taps> taps;
    BorrowedRow<double> rows;   // rays, turned rays of each view, shares
    BorrowedRow<Piece> groups;  // of each block of lanes: the run's pixels
    const FindPlaces find;

    explicit Workshop(const SweepCall &call)
        : views(call.views),
          stride((call.width + RUN - 1) / RUN * RUN),
          blocks(most<int64_t>(1, call.lanes / RUN)),
          taps(call.views),
          rows((3 * call.views + 5) * stride),
          groups(blocks * RUN),
          find(find_places(call)) {}
    explicit operator bool() const { return taps && rows && groups; }

    RowOfThree rays() const { return {rows.numbers, stride}; }
    RowOfThree turned(int64_t v) const { return {rows.numbers + 3 * (v + 1) * stride, stride}; }
    double *near() const { return rows.numbers + 3 * (views + 1) * stride; }
    double *far() const { return near() + stride; }

    void begin_row(const SweepCall &call, int64_t item, int64_t y) {
        rays_of_row(call, item, y, rays());
        const DepthNumbers *numbers = at<DepthNumbers>(call.numbers) + item * views;
        for (int64_t v = 0; v < views; v++) turned_row(call, numbers[v], rays(), turned(v));
    }
    Places places(const SweepCall &call, int64_t item, int64_t v, int64_t x) const {
        const DepthNumbers &numbers = at<DepthNumbers>(call.numbers)[item * views + v];
        return {numbers, turned(v), near(), far(), x};
    }
    // The taps of a run in all views; a bit for each pixel that one of them samples.
    uint32_t look(const SweepCall &call, int64_t item, int64_t x, int64_t n) {
        uint32_t any = 0;
        for (int64_t v = 0; v < views; v++) {
            Taps &t = taps.numbers[v];
            find(call, places(call, item, v, x), t.x, t.y);
            t.look(call, n);
            any |= t.used;
        }
        return call.inside ? any : (1u << n) - 1;
    }
};

INLINE const float *source_at(const SweepCall &call, int64_t item, int64_t v) {
    const int64_t entry = at<int64_t>(call.source_of)[item * call.views + v];
    return at<float>(call.sources) +
           entry * call.padded * (call.source_height * call.source_width + 1);
}

// A row of the view, channels-last.
INLINE void read_view(const SweepCall &call, Channels channels, int64_t item, int64_t y,
                      float *to) {
    const int64_t area = call.height * call.width;
    const float *planes = at<float>(call.view) + y * call.width +
                          at<int64_t>(call.view_of)[item] * call.channels * area;
    for (int64_t x = 0; x < call.width; x += RUN)
        to_pixels(channels, planes + x, area, least<int64_t>(RUN, call.width - x),
                  to + x * call.padded);
}

// Calls Kernel<measure> of a template.
#define WARPKIT_BY_MEASURE(kernel)                       \
    switch (as<SweepCall>(block).measure) {              \
    case DIFFERENCE: return kernel<DIFFERENCE>;          \
    case ABSOLUTE: return kernel<ABSOLUTE>;              \
    case SQUARED: return kernel<SQUARED>;                \
    case VARIANCE: return kernel<VARIANCE>;              \
    case VARIANCE_ALONE: return kernel<VARIANCE_ALONE>;  \
    default: return kernel<CORRELATION>;                 \
    }

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
