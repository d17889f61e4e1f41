// The gradients of local correlation. The blend's adjoint gives the gradient of every dot product
// at whole pixels; from it come those of the first picture and the flow, run by run, and that of
// the second picture: each band of its rows visits the runs whose squares touch it, in order, and
// has its own sums, so that threads share none.
#include "matching/correlation.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// Neighbours whose dot products and weights fit the registers.
constexpr int TOGETHER = REGISTER == 64 ? 10 : 2;
constexpr int64_t WIDEST = 64;  // columns of targets that a run visits one by one

// The gradients of a run's dot products, by row: of each pixel, its columns. `row` has as many
// pieces as a row of a square, and `above` and `grads` as all its rows.
INLINE void adjoint(const CorrelationCall &call, const Sides &sides, const Run &run,
                    const float *grad, Piece *above, Piece *grads) {
    const int64_t area = call.height * call.width;
    const Piece per = splat<Piece>(float(1 / double(call.channels)));
    for (int64_t i = 0; i < sides.columns; i++) above[i] = Piece{};
    for (int64_t j = 0; j < sides.rows; j++) {
        Piece *to = grads + j * sides.room, left{};
        for (int64_t i = 0; i < sides.columns; i++) {
            Piece next{}, here{};
            if (i < sides.out_columns) {
                if (j < sides.out_rows) {
                    next = run.there(call, i, j, per * load_piece(grad, run.n)), grad += area;
                }
                if (!sides.blends) {
                    to[i] = next;
                    continue;
                }
                here = fma(run.fy, above[i] - next, next), above[i] = next;
            }
            to[i] = fma(run.fx, left - here, here), left = here;
        }
        for (int64_t i = sides.columns; i < sides.room; i++) to[i] = Piece{};
        for (int64_t b = 0; b < sides.room; b += RUN) transpose(to + b);
    }
}

// The gradient of pixel k's dot products with columns from i on, i a multiple of sixteen or less
// than sixteen apart from one.
INLINE const float *columns_of(const Piece *row, int64_t k, int64_t i) {
    return reinterpret_cast<const float *>(row + i / RUN * RUN + k) + i % RUN;
}

// Adds the neighbours times their weights to `to`; also returns their dot products, if wanted.
template <int N, bool DOTS> INLINE Piece added(const float *first, Row row, const float *weights,
                                               float *to, int64_t padded) {
    Piece sums[N] = {}, weight[N];
    for (int n = 0; n < N; n++) weight[n] = splat<Piece>(weights[n]);
    for (int64_t b = 0; b < padded; b += RUN) {
        const Piece f = DOTS ? load<Piece>(first + b) : Piece{};
        Piece even = load<Piece>(to + b), odd{};
        for (int n = 0; n < N; n++) {
            const Piece s = load<Piece>(row.pixels + n * row.gap + b);
            if constexpr (DOTS) sums[n] = fma(f, s, sums[n]);
            (n % 2 ? odd : even) = fma(weight[n], s, n % 2 ? odd : even);
        }
        store(to + b, even + odd);
    }
    return DOTS ? sums_of<N>(sums) : Piece{};
}

// The gradient of a run's places, from the dot products by row, whose lanes are pixels.
INLINE void to_flow(const CorrelationCall &call, const Sides &sides, const Run &run,
                    const float *grad, const Piece *squares, double *to) {
    const int64_t area = call.height * call.width;
    const Piece per = splat<Piece>(float(1 / double(call.channels)));
    Piece x{}, y{};
    for (int64_t j = 0; j < sides.out_rows; j++)
        for (int64_t i = 0; i < sides.out_columns; i++, grad += area) {
            const Piece *q = squares + j * sides.room + i, *below = q + sides.room;
            const Piece g = run.there(call, i, j, per * load_piece(grad, run.n));
            const Piece top = q[1] - q[0], bottom = below[1] - below[0];
            x = fma(g, fma(run.fy, bottom - top, top), x);
            y = fma(g, fma(run.fx, bottom - top, below[0] - q[0]), y);
        }
    for (int k = 0; k < run.n; k++) {
        to[2 * k] = run.near[k] ? double(x[k]) : 0, to[2 * k + 1] = run.near[k] ? double(y[k]) : 0;
    }
}

template <bool DOTS> void first_backward(const Call &block, int64_t begin, int64_t end) {
    const CorrelationCall &call = as<CorrelationCall>(block);
    const Sides sides(call);
    const int64_t padded = call.padded, area = call.height * call.width;
    const int64_t pieces = sides.rows * sides.room;
    BorrowedRow<Piece> memory(2 * pieces + sides.room);
    BorrowedRow<float> numbers((2 * RUN + sides.columns) * padded + 2 * sides.room + RUN);
    if (!memory || !numbers) return;
    Piece *grads = memory.numbers, *squares = grads + pieces, *above = squares + pieces;
    float *first = numbers.numbers, *sums = first + RUN * padded, *window = sums + RUN * padded;
    float *weights = window + sides.columns * padded, *found = weights + sides.room;
    const Channels channels{at<int32_t>(call.order), padded};
    Run run;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t item = unit / call.height, y = unit % call.height;
        const float *planes = first_row(call, item, y), *second = second_copy(call, item);
        for (int64_t x = 0; x < call.width; x += RUN) {
            run.look(call, item, y, x);
            if (DOTS) to_pixels(channels, planes + x, area, run.n, first);
            memset(sums, 0, size_t(RUN * padded) * sizeof(float));
            const float *grad = at<float>(call.grad) +
                                item * sides.out_rows * sides.out_columns * area + y * call.width + x;
            adjoint(call, sides, run, grad, above, grads);
            for (int64_t j = 0; j < sides.rows; j++) {
                Piece *square = squares + j * sides.room;
                for (int k = 0; k < RUN; k++) {
                    const Row row = row_of(call, sides, second, run, k, j, window);
                    for (int64_t b = 0; DOTS && b < sides.room; b += RUN) square[b + k] = Piece{};
                    if (!row.pixels) continue;
                    for (int64_t i = 0; i < sides.room; i += RUN)
                        store(weights + i, grads[j * sides.room + i + k]);
                    by_groups<TOGETHER>(sides.columns, [&](auto count, int64_t i) {
                        const Piece dots = added<count, DOTS>(
                            first + k * padded, {row.pixels + i * row.gap, row.gap}, weights + i,
                            sums + k * padded, padded);
                        if (DOTS) store(found + i, dots);  // what is too many is overwritten
                    });
                    for (int64_t b = 0; DOTS && b < sides.room; b += RUN)
                        square[b + k] = load<Piece>(found + b);
                }
                for (int64_t b = 0; DOTS && b < sides.room; b += RUN) transpose(square + b);
            }
            const int64_t place = item * call.height * call.width + y * call.width + x;
            if (call.to_first)
                to_planes(channels, sums, area, run.n,
                          at<float>(call.to_first) + item * call.channels * area + y * call.width + x);
            if (DOTS)
                to_flow(call, sides, run, grad, squares, at<double>(call.to_flow) + 2 * place);
        }
    }
}

// -- the second picture --

// One target: adds what the run's pixels in `who` give it, weight(k) of pixel k.
template <int PIECES, class Weight>
INLINE void collect(const float *first, uint32_t who, Weight weight, float *to, int64_t padded) {
    Piece sums[PIECES];
    for (int b = 0; b < PIECES; b++) sums[b] = load<Piece>(to + b * RUN);
    for (; who; who &= who - 1) {
        const int k = __builtin_ctz(who);
        const Piece w = splat<Piece>(weight(k));
        for (int b = 0; b < PIECES; b++)
            sums[b] = fma(w, load<Piece>(first + k * padded + b * RUN), sums[b]);
    }
    for (int b = 0; b < PIECES; b++) store(to + b * RUN, sums[b]);
}
template <class Weight>
INLINE void collect_all(const float *first, uint32_t who, Weight weight, float *to,
                        int64_t padded) {
    int64_t b = 0;
    for (; b + 8 * RUN <= padded; b += 8 * RUN) collect<8>(first + b, who, weight, to + b, padded);
    for (; b + 4 * RUN <= padded; b += 4 * RUN) collect<4>(first + b, who, weight, to + b, padded);
    for (; b + 2 * RUN <= padded; b += 2 * RUN) collect<2>(first + b, who, weight, to + b, padded);
    if (b < padded) collect<1>(first + b, who, weight, to + b, padded);
}

// The pixels that the squares of a run cover, if no border folds them.
struct Reach {
    int64_t top = INT64_MAX, bottom = INT64_MIN, left = INT64_MAX, right = INT64_MIN;

    Reach(const CorrelationCall &call, const Sides &sides, const Run &run) {
        for (int k = 0; k < run.n; k++)
            if (run.near[k]) {
                top = least(top, run.top[k]);
                bottom = most(bottom, run.top[k] + (sides.rows - 1) * call.step + 1);
                left = least(left, run.left[k]);
                right = most(right, run.left[k] + (sides.columns - 1) * call.step + 1);
            }
    }
    bool none() const { return bottom < top; }
    // Whether a pixel outside is missing or there is none, so that rows and columns are what they
    // seem.
    bool plain(const CorrelationCall &call) const {
        return (call.border_y == CONSTANT || (top >= 0 && bottom <= call.second_height)) &&
               (call.border_x == CONSTANT || (left >= 0 && right <= call.second_width));
    }
};

// What the pixels of a run add to rows low .. high of the second picture. If they are near each
// other, targets are visited one by one: each is read and written once for all sixteen.
void add_run(const CorrelationCall &call, const Sides &sides, const Run &run, const Reach &reach,
             const float *first, const Piece *grads, int64_t low, int64_t high, float *sums) {
    const int64_t padded = call.padded;
    if (call.step == 1 && reach.plain(call) && reach.right - reach.left <= WIDEST) {
        uint32_t columns[WIDEST] = {};
        for (int k = 0; k < run.n; k++)
            for (int64_t i = 0; run.near[k] && i < sides.columns; i++)
                columns[run.left[k] - reach.left + i] |= 1u << k;
        for (int64_t y = most(reach.top, low); y < least(reach.bottom, high); y++) {
            uint32_t rows = 0;
            for (int k = 0; k < run.n; k++)
                rows |= uint32_t(y >= run.top[k] && y < run.top[k] + sides.rows) << k;
            float *line = sums + (y - low) * call.second_width * padded;
            const int64_t end = least(reach.right, call.second_width);
            for (int64_t x = most<int64_t>(reach.left, 0); x < end; x++) {
                const uint32_t who = rows & columns[x - reach.left];
                const auto weight = [&](int k) {
                    return *columns_of(grads + (y - run.top[k]) * sides.room, k, x - run.left[k]);
                };
                if (who) collect_all(first, who, weight, line + x * padded, padded);
            }
        }
        return;
    }
    for (int k = 0; k < run.n; k++)
        for (int64_t j = 0; run.near[k] && j < sides.rows; j++) {
            const int64_t row =
                resolve(run.top[k] + j * call.step, call.second_height, call.border_y);
            if (row < low || row >= high) continue;
            for (int64_t i = 0; i < sides.columns; i++) {
                const int64_t column =
                    resolve(run.left[k] + i * call.step, call.second_width, call.border_x);
                if (column < 0) continue;
                const auto weight = [&](int) {
                    return *columns_of(grads + j * sides.room, k, i);
                };
                float *to = sums + ((row - low) * call.second_width + column) * padded;
                collect_all(first, 1u << k, weight, to, padded);
            }
        }
}

void second_backward(const Call &block, int64_t begin, int64_t end) {
    const CorrelationCall &call = as<CorrelationCall>(block);
    const Sides sides(call);
    const int64_t padded = call.padded, area = call.height * call.width;
    const int64_t bands = (call.second_height + call.band - 1) / call.band;
    const int64_t line = call.second_width * padded;
    BorrowedRow<Piece> memory(sides.rows * sides.room + sides.room);
    BorrowedRow<float> numbers(call.band * line + RUN * padded);
    if (!memory || !numbers) return;
    Piece *grads = memory.numbers, *above = grads + sides.rows * sides.room;
    float *sums = numbers.numbers, *first = sums + call.band * line;
    const Channels channels{at<int32_t>(call.order), padded};
    Run run;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t entry = unit / bands, low = unit % bands * call.band;
        const int64_t high = least(low + call.band, call.second_height);
        memset(sums, 0, size_t((high - low) * line) * sizeof(float));
        for (int64_t pixel = 0; pixel < call.items * call.height; pixel++) {
            const int64_t item = pixel / call.height, y = pixel % call.height;
            if (at<int64_t>(call.second_of)[item] != entry) {
                pixel += call.height - 1;
                continue;
            }
            const float *planes = first_row(call, item, y);
            const float *grad = at<float>(call.grad) + y * call.width +
                                item * sides.out_rows * sides.out_columns * area;
            for (int64_t x = 0; x < call.width; x += RUN) {
                run.look(call, item, y, x);
                const Reach reach(call, sides, run);
                if (reach.none()) continue;
                if (reach.plain(call) && (reach.bottom <= low || reach.top >= high)) continue;
                to_pixels(channels, planes + x, area, run.n, first);
                adjoint(call, sides, run, grad + x, above, grads);
                add_run(call, sides, run, reach, first, grads, low, high, sums);
            }
        }
        float *planes = at<float>(call.to_second) + low * call.second_width +
                        entry * call.channels * call.second_height * call.second_width;
        const int64_t count = (high - low) * call.second_width;
        for (int64_t p = 0; p < count; p += RUN)
            to_planes(channels, sums + p * padded, call.second_height * call.second_width,
                      least<int64_t>(RUN, count - p), planes + p);
    }
}

}  // namespace

Kernel choose_correlation_to_first(const Call &block) {
    return as<CorrelationCall>(block).to_flow ? first_backward<true> : first_backward<false>;
}

Kernel choose_correlation_to_second(const Call &) { return second_backward; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
