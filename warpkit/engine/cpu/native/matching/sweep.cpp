// Plane sweeps: sources sampled where they show a view's depths, and compared with the view. Depths
// along a row are visited one by one, so that results are written in order; channels are in the
// lanes, ordered so that a lane belongs to one group. The definition: definitions/sweep.py.
#include "matching/sweep_taps.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int64_t CACHED = 4 << 20;  // bytes; a larger result would pass through the caches twice

// Adds a sample to what a measure sums; of the correlation the product with r comes last.
template <int MEASURE> INLINE void compare(Piece s, Piece r, Piece &sum, Piece &squares) {
    const Piece d = s - r;
    if constexpr (MEASURE == CORRELATION) sum += s;
    else if constexpr (MEASURE == DIFFERENCE) sum -= d;
    else if constexpr (MEASURE == ABSOLUTE) sum += magnitude(d);
    else if constexpr (MEASURE == SQUARED) sum = fma(d, d, sum);
    else sum += d, squares = fma(d, d, squares);
}

// Writes a register of results, past the caches if `streamed`.
INLINE void write(float *to, Piece v, int64_t n, bool streamed) {
    if (!streamed || n < RUN || reinterpret_cast<uintptr_t>(to) % REGISTER)
        return store_piece(to, v, n);
    constexpr int L = LANES<float>;
    UNROLLED for (int k = 0; k < RUN; k += L) {
        Vec<float, L> part;
        memcpy(&part, reinterpret_cast<const char *>(&v) + 4 * k, sizeof part);
        stream(to + k, part);
    }
}

struct Range {
    Wholes low, high;

    INLINE void widen(const Taps &taps) {
        const Wholes used = (splat<Wholes>(int32_t(taps.used)) >> count_up<Wholes>() & 1) != 0;
        low = used ? smaller(low, taps.least_row) : low;
        high = used ? larger(high, taps.most_row) : high;
    }
};

// The measure of pixel k, one piece for each block of lanes.
template <int MEASURE>
INLINE void measure(const SweepCall &call, const Workshop &shop, int64_t item, const float *ref,
                    int k, int64_t count) {
    const Piece part = splat<Piece>(part_of<MEASURE>(count));
    int64_t block = 0;
    bool again = false;
    by_pieces(call.padded, [&](auto pieces, int64_t b) {
        constexpr int P = pieces;
        Piece sum[P] = {}, squares[P] = {}, s[P], r[P] = {};
        if constexpr (MEASURE != VARIANCE_ALONE)
            for (int i = 0; i < P; i++) r[i] = load<Piece>(ref + b + i * RUN);
        bool some = MEASURE != VARIANCE_ALONE;
        for (int64_t v = 0; v < shop.views; v++) {
            const Taps &taps = shop.taps.numbers[v];
            if (taps.used >> k & 1)
                sample<P>(taps, source_at(call, item, v) + b, call.padded, k, s);
            else if (call.inside) continue;
            else
                for (int i = 0; i < P; i++) s[i] = Piece{};
            for (int i = 0; i < P && !some; i++) r[i] = s[i];  // differences from the first
            some = true;
            for (int i = 0; i < P; i++) compare<MEASURE>(s[i], r[i], sum[i], squares[i]);
        }
        for (int i = 0; i < P; i++) {
            Piece found = sum[i];
            if constexpr (MEASURE == CORRELATION) found = sum[i] * r[i];
            if constexpr (IS_VARIANCE<MEASURE>) {
                const Piece mean = part * sum[i];
                found = part * squares[i] - mean * mean;
                found = found < 0 ? Piece{} : found;  // NaN stays
            }
            Piece &to = shop.groups.numbers[block * RUN + k];
            to = again ? to + found : found;
            if (++block == shop.blocks) block = 0, again = true;
        }
    });
}

// Writes the costs of a run from its pixels' measures.
template <int MEASURE>
INLINE void write_costs(const SweepCall &call, const Workshop &shop, Wholes views, float *to,
                        int64_t n, bool streamed) {
    const float each = float(double(call.groups) / double(call.channels));
    const int64_t lanes = least<int64_t>(call.lanes, RUN);
    Piece scale = splat<Piece>(each);
    if constexpr (!IS_VARIANCE<MEASURE>)
        scale = views > 0 ? scale / convert<Piece>(views) : Piece{};
    for (int64_t g = 0; g < shop.blocks; g++) {
        Piece *v = shop.groups.numbers + g * RUN;
        transpose(v);
        for (int64_t l = 0; l < lanes && g * RUN + l < call.groups; l++) {
            Piece found = v[l];
            for (int64_t m = l + lanes; m < RUN; m += lanes) found += v[m];
            write(to + (g * RUN + l) * call.planes * call.height * call.width, scale * found, n,
                  streamed);
        }
    }
}

template <int MEASURE> void forward(const Call &block, int64_t begin, int64_t end) {
    const SweepCall &call = as<SweepCall>(block);
    Workshop shop(call);
    BorrowedRow<float> view(shop.stride * call.padded);
    BorrowedRow<Range> ranges(call.views);
    if (!shop || !view || !ranges) return;
    const Channels channels{at<int32_t>(call.order), call.padded};
    const int64_t area = call.height * call.width, views = call.views;
    const bool streamed = call.items * (call.groups + 1) * call.planes * area * 4 > CACHED;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t item = unit / call.height, y = unit % call.height;
        if (call.view) read_view(call, channels, item, y, view.numbers);
        shop.begin_row(call, item, y);
        for (int64_t v = 0; v < views; v++)
            ranges.numbers[v] = {splat<Wholes>(INT32_MAX), splat<Wholes>(-1)};
        for (int64_t d = 0; d < call.planes; d++) {
            shares_of_row(call, item, d, y, shop.near(), shop.far());
            for (int64_t x = 0; x < call.width; x += RUN) {
                const int64_t n = least<int64_t>(RUN, call.width - x);
                const uint32_t any = shop.look(call, item, x, n);
                Wholes seen{};
                for (int64_t v = 0; v < views; v++) {
                    seen -= shop.taps.numbers[v].seen;
                    ranges.numbers[v].widen(shop.taps.numbers[v]);
                }
                const Wholes count = call.inside ? seen : splat<Wholes>(int32_t(views));
                for (int k = 0; k < RUN; k++) {
                    if (any >> k & 1)
                        measure<MEASURE>(call, shop, item, view.numbers + (x + k) * call.padded, k,
                                         count[k]);
                    else
                        for (int64_t g = 0; g < shop.blocks; g++)
                            shop.groups.numbers[g * RUN + k] = Piece{};
                }
                const int64_t place = d * area + y * call.width + x;
                float *to = at<float>(call.out) + item * call.groups * call.planes * area + place;
                write_costs<MEASURE>(call, shop, count, to, n, streamed);
                int32_t *see = at<int32_t>(call.seen) + item * call.planes * area + place;
                write(reinterpret_cast<float *>(see), (Piece)seen, n, streamed);
            }
        }
        for (int64_t v = 0; v < views; v++) {
            int32_t *to = at<int32_t>(call.ranges) + ((item * views + v) * call.height + y) * 2;
            const Range &range = ranges.numbers[v];
            to[0] = INT32_MAX, to[1] = -1;
            for (int k = 0; k < RUN; k++)
                to[0] = least(to[0], range.low[k]), to[1] = most(to[1], range.high[k]);
        }
    }
    if (streamed) finish_streams();
}

}  // namespace

Kernel choose_sweep(const Call &block) { WARPKIT_BY_MEASURE(forward) }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
