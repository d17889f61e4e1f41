// Local correlation: a run of sixteen pixels visits the rows of its squares one by one, so that
// the second picture's rows stay in the nearest cache. The definition: definitions/correlation.py.
#include "correlation.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// Dot products that keep their sums in registers at the same time.
constexpr int TOGETHER = REGISTER == 64 ? 16 : 4;

// The dot products of a pixel with N neighbours, `gap` numbers apart.
template <int N> INLINE Piece dots(const float *first, Row row, int64_t padded) {
    Piece sums[N] = {};
    for (int64_t b = 0; b < padded; b += RUN) {
        const Piece f = load<Piece>(first + b);
        for (int n = 0; n < N; n++)
            sums[n] = fma(f, load<Piece>(row.pixels + n * row.gap + b), sums[n]);
    }
    return sums_of<N>(sums);
}

// The dot products of a pixel with a row of its square, one piece for each sixteen.
INLINE void all_dots(const Sides &sides, const float *first, Row row, int64_t padded, float *to) {
    by_groups<TOGETHER>(sides.columns, [&](auto count, int64_t i) {
        const Piece found = dots<count>(first, {row.pixels + i * row.gap, row.gap}, padded);
        store_piece(to + i, found, int(count));
    });
}

// 0, or NaN if a channel is not finite: the dot product with pixels that are all missing.
INLINE float no_product(const float *first, int64_t padded) {
    Piece sum{};
    for (int64_t b = 0; b < padded; b += RUN) sum = fma(load<Piece>(first + b), Piece{}, sum);
    return WARPKIT_ISA::sum(sum);
}

void forward(const Call &block, int64_t begin, int64_t end) {
    const CorrelationCall &call = as<CorrelationCall>(block);
    const Sides sides(call);
    const int64_t padded = call.padded, area = call.height * call.width;
    const int64_t pieces = sides.rows * sides.room;
    BorrowedRow<Piece> squares(pieces);  // by row: of each pixel, then of each column
    BorrowedRow<float> memory((RUN + sides.columns) * padded + sides.room);
    if (!squares || !memory) return;
    float *first = memory.numbers, *window = first + RUN * padded;
    float *found = window + sides.columns * padded;
    const Channels channels{at<int32_t>(call.order), padded};
    const Piece per = splat<Piece>(float(1 / double(call.channels)));
    Run run;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t item = unit / call.height, y = unit % call.height;
        const float *planes = at<float>(call.first) +
                              at<int64_t>(call.first_of)[item] * call.channels * area + y * call.width;
        const float *second = at<float>(call.second) + at<int64_t>(call.second_of)[item] * padded *
                              (call.second_height * call.second_width + 1);
        for (int64_t x = 0; x < call.width; x += RUN) {
            run.look(call, item, y, x);
            to_pixels(channels, planes + x, area, run.n, first);
            float none[RUN];
            for (int k = 0; k < run.n; k++) none[k] = no_product(first + k * padded, padded);
            for (int64_t j = 0; j < sides.rows; j++) {
                Piece *square = squares.numbers + j * sides.room;
                for (int k = 0; k < RUN; k++) {
                    Row row{nullptr, 0};
                    if (run.near[k])
                        row = row_of(call, sides, second, run.left[k],
                                     run.top[k] + j * call.step, window);
                    if (row.pixels) all_dots(sides, first + k * padded, row, padded, found);
                    for (int64_t b = 0; b < sides.room; b += RUN)
                        square[b + k] = row.pixels ? load<Piece>(found + b)
                                        : run.near[k] ? splat<Piece>(none[k]) : Piece{};
                }
                for (int64_t b = 0; b < sides.room; b += RUN) transpose(square + b);
                for (int64_t i = 0; sides.blends && i < sides.out_columns; i++)
                    square[i] = fma(run.fx, square[i + 1] - square[i], square[i]);
            }
            float *out = at<float>(call.out) + item * sides.out_rows * sides.out_columns * area +
                         y * call.width + x;
            for (int64_t j = 0; j < sides.out_rows; j++)
                for (int64_t i = 0; i < sides.out_columns; i++, out += area) {
                    const Piece *square = squares.numbers + j * sides.room + i;
                    Piece value = *square;
                    if (sides.blends) value = fma(run.fy, square[sides.room] - value, value);
                    store_piece(out, run.there(call, i, j, per * value), run.n);
                }
        }
    }
}

}  // namespace

Kernel choose_correlation(const Call &) { return forward; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
