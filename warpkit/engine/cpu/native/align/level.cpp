// The pictures of an alignment's pyramid, as alignment/pyramid.py defines them: their statistics;
// and a level of an item in one pass from top to bottom, in which every row is standardised,
// smoothed along both axes with repeated edges, differentiated, and halved while it is in the
// caches. The order of sums depends on no register's width.
#include "shared/kernels.h"
#include "shared/memory.h"
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int64_t MOST = 8;         // neighbours on each side
constexpr int64_t RING = 32;        // rows smoothed along x, a power of 2 above 2 MOST
constexpr int SUM_LANES = 16;

// -- statistics --

// The sum of found(number) over the numbers of a plane.
template <class T, class F> double total_of(const T *from, int64_t count, F found) {
    using V = Vec<T, SUM_LANES>;
    using Wide = Vec<double, SUM_LANES>;
    Wide total{};
    int64_t q = 0;
    for (; q + SUM_LANES <= count; q += SUM_LANES)
        total += convert<Wide>(found(load<V>(from + q)));
    double result = sum(total);
    for (; q < count; q++) result += double(found(splat<V>(from[q]))[0]);
    return result;
}

// Per item: the variance over channels and pixels, and the largest magnitude, NaN or infinite if a
// number is; then the mean of each channel.
template <class T> void level_statistics(const Call &call, int64_t begin, int64_t end) {
    using V = Vec<T, SUM_LANES>;
    const LevelCall &p = as<LevelCall>(call);
    const int64_t area = p.height * p.width;
    for (int64_t item = begin; item < end; item++) {
        double *to = at<double>(p.out) + item * (2 + p.channels), squares = 0;
        const T *from = at<const T>(p.image) + item * p.channels * area;
        V largest{}, broken{};  // NaN if a number is not finite, else 0
        for (int64_t c = 0; c < p.channels; c++, from += area) {
            const double mean = total_of(from, area, [&](V v) {
                largest = larger(largest, magnitude(v)), broken += v * T(0);
                return v;
            }) / double(area);
            const T middle = T(mean);
            squares += total_of(from, area, [&](V v) { return (v - middle) * (v - middle); });
            to[2 + c] = double(middle);
        }
        double most_of_all = 0;
        for (int k = 0; k < SUM_LANES; k++) most_of_all = most(most_of_all, double(largest[k]));
        to[0] = squares / double(area * p.channels), to[1] = most_of_all + double(sum(broken));
    }
}

// -- a level --

// One row of results: found(x, kind) is a register of them from x on, or one of them, as `kind` is.
template <class T, class F> INLINE void each(int64_t first, int64_t end, T *to, F found) {
    using V = Vec<T, LANES<T>>;
    int64_t x = first;
    for (; x + LANES<T> <= end; x += LANES<T>) store(to + x, found(x, V{}));
    for (; x < end; x++) to[x] = found(x, T(0));
}

template <class V, class T> INLINE V some(const T *p) {  // a register, or one number
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}

template <class T> struct LevelRows {
    const LevelCall &p;
    T *ring, *mixed;  // rows smoothed along x; one row between two
    T weights[MOST + 1];
    const int64_t width = p.width, height = p.height, reach = p.reach;

    LevelRows(const LevelCall &call, T *memory) : p(call), ring(memory) {
        mixed = ring + RING * width;
        for (int64_t k = 0; k <= reach; k++) weights[k] = T(at<const double>(p.weights)[k]);
    }

    T *smooth_of(int64_t y) const { return ring + clamped(y, 0, height - 1) % RING * width; }

    void standardise(const T *from, T mean, T deviation, T *to) const {
        each(0, width, to, [&](int64_t x, auto kind) {
            using V = decltype(kind);
            return (some<V>(from + x) - mean) / deviation;
        });
    }

    void smooth_along(const T *from, T *to) const {
        auto beside = [&](int64_t x) {
            T total = from[x] * weights[0];
            for (int64_t k = 1; k <= reach; k++)
                total += weights[k] * (from[most<int64_t>(x - k, 0)] + from[least(x + k, width - 1)]);
            return total;
        };
        const int64_t first = least(reach, width), last = most(width - reach, first);
        for (int64_t x = 0; x < first; x++) to[x] = beside(x);
        each(first, last, to, [&](int64_t x, auto kind) {
            using V = decltype(kind);
            V total = some<V>(from + x) * weights[0];
            for (int64_t k = 1; k <= reach; k++)
                total += weights[k] * (some<V>(from + x - k) + some<V>(from + x + k));
            return total;
        });
        for (int64_t x = last; x < width; x++) to[x] = beside(x);
    }

    void smooth_down(int64_t y, T *to) const {
        const T *middle = smooth_of(y), *above[MOST], *below[MOST];
        for (int64_t k = 1; k <= reach; k++)
            above[k - 1] = smooth_of(y - k), below[k - 1] = smooth_of(y + k);
        each(0, width, to, [&](int64_t x, auto kind) {
            using V = decltype(kind);
            V total = some<V>(middle + x) * weights[0];
            for (int64_t k = 0; k < reach; k++)
                total += weights[k + 1] * (some<V>(above[k] + x) + some<V>(below[k] + x));
            return total;
        });
    }

    // The slopes of row y of a plane.
    void differences(const T *plane, int64_t y, T *along, T *down) const {
        const T *line = plane + y * width, *above = plane + most<int64_t>(y - 1, 0) * width;
        const T *below = plane + least(y + 1, height - 1) * width, half = T(0.5);
        each(0, width, down, [&](int64_t x, auto kind) {
            using V = decltype(kind);
            return (some<V>(below + x) - some<V>(above + x)) * half;
        });
        each(1, width - 1, along, [&](int64_t x, auto kind) {
            using V = decltype(kind);
            return (some<V>(line + x + 1) - some<V>(line + x - 1)) * half;
        });
        const int64_t last = width - 1;
        along[0] = (line[least<int64_t>(1, last)] - line[0]) * half;
        along[last] = (line[last] - line[most<int64_t>(last - 1, 0)]) * half;
    }

    // Row y of a plane at half its size: weights 1, 3, 3, 1, of which edges lack one.
    void halve(const T *plane, int64_t y, T *to) const {
        const int64_t rows = height / 2 * 2, columns = width / 2 * 2, count = width / 2;
        const T *lines[4], outer = T(0.125), inner = T(0.375);
        T factors[4] = {outer, inner, inner, outer};
        for (int64_t k = 0; k < 4; k++) {
            const int64_t row = 2 * y - 1 + k;
            if (row < 0 || row >= rows) factors[k] = 0;
            lines[k] = plane + clamped(row, 0, rows - 1) * width;
        }
        const T whole = 1 / (factors[0] + factors[1] + factors[2] + factors[3]);
        for (T &factor : factors) factor *= whole;
        each(0, columns, mixed, [&](int64_t x, auto kind) {
            using V = decltype(kind);
            return (some<V>(lines[0] + x) * factors[0] + some<V>(lines[1] + x) * factors[1]) +
                   (some<V>(lines[2] + x) * factors[2] + some<V>(lines[3] + x) * factors[3]);
        });
        for (int64_t x = 1; x < count - 1; x++) {
            const T *from = mixed + 2 * x;
            to[x] = (from[-1] + from[2]) * outer + (from[0] + from[1]) * inner;
        }
        for (int64_t x : {int64_t(0), count - 1}) {
            const T before = x > 0 ? outer : T(0), after = x < count - 1 ? outer : T(0);
            const T *from = mixed + 2 * x;
            T total = (from[0] + from[1]) * inner;
            if (x > 0) total += from[-1] * outer;
            if (x < count - 1) total += from[2] * outer;
            to[x] = total / (2 * inner + before + after);
        }
    }

    void run(int64_t item, int64_t c) {
        const int64_t area = height * width, place = item * p.channels + c;
        const int64_t into = (item * p.out_planes + c) * area;
        const T *from = at<const T>(p.image) + place * area;
        T *whole = p.whole ? at<T>(p.whole) + into : nullptr;
        T *to = p.out ? at<T>(p.out) + into : nullptr;
        T *along = p.out_x ? at<T>(p.out_x) + place * area : nullptr;
        T *down = p.out_x ? at<T>(p.out_y) + place * area : nullptr;
        T *half = p.half ? at<T>(p.half) + place * (height / 2) * (width / 2) : nullptr;
        const T *source = whole ? whole : from, *shown = to ? to : source;
        for (int64_t y = 0, next = 0; y < height; y++) {
            for (; next <= least(y + reach, height - 1); next++) {
                if (whole)
                    standardise(from + next * width, at<const T>(p.means)[place],
                                at<const T>(p.deviations)[item], whole + next * width);
                if (to) smooth_along(source + next * width, smooth_of(next));
            }
            if (to) smooth_down(y, to + y * width);
            if (half && y % 2 == 0 && y >= 2) halve(source, y / 2 - 1, half + (y / 2 - 1) * (width / 2));
            if (along && y > 0)
                differences(shown, y - 1, along + (y - 1) * width, down + (y - 1) * width);
        }
        if (along) differences(shown, height - 1, along + area - width, down + area - width);
        for (int64_t y = most<int64_t>((height - 1) / 2, 0); half && y < height / 2; y++)
            halve(source, y, half + y * (width / 2));
    }
};

template <class T> void smooth_level(const Call &call, int64_t begin, int64_t end) {
    const LevelCall &p = as<LevelCall>(call);
    BorrowedRow<T> memory((RING + 1) * p.width);
    if (!memory) return;
    LevelRows<T> rows(p, memory.numbers);
    const int64_t area = p.height * p.width;
    for (int64_t item = begin; item < end; item++) {
        for (int64_t c = 0; c < p.channels; c++) rows.run(item, c);
        if (!p.pixel_weights) continue;
        const T *from = at<const T>(p.pixel_weights) + item * p.weights_size;
        for (int64_t to : {p.whole, p.out})
            if (to)
                memcpy(at<T>(to) + (item * p.out_planes + p.channels) * area, from,
                       size_t(area) * sizeof(T));
    }
}

}  // namespace

Kernel choose_level_statistics(const Call &call) {
    return as<LevelCall>(call).doubles ? level_statistics<double> : level_statistics<float>;
}

Kernel choose_smooth_level(const Call &call) {
    return as<LevelCall>(call).doubles ? smooth_level<double> : smooth_level<float>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
