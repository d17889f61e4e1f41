// Local correlation: a run of sixteen pixels visits the rows of its squares one by one, so that
// the second picture's rows stay in the nearest cache. The definition: definitions/correlation.py.
#include "matching/correlation.h"

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

// The dot products of a pixel with a row of its square; `to` has room for a piece more.
INLINE void all_dots(const Sides &sides, const float *first, Row row, int64_t padded, float *to) {
    by_groups<TOGETHER>(sides.columns, [&](auto count, int64_t i) {
        const Piece found = dots<count>(first, {row.pixels + i * row.gap, row.gap}, padded);
        store(to + i, found);  // what is too many is overwritten
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
    BorrowedRow<float> memory((RUN + sides.columns) * padded + sides.room + RUN);
    if (!squares || !memory) return;
    float *first = memory.numbers, *window = first + RUN * padded;
    float *found = window + sides.columns * padded;
    const Channels channels{at<int32_t>(call.order), padded};
    const Piece per = splat<Piece>(float(1 / double(call.channels)));
    Run run;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t item = unit / call.height, y = unit % call.height;
        const float *planes = first_row(call, item, y), *second = second_copy(call, item);
        for (int64_t x = 0; x < call.width; x += RUN) {
            run.look(call, item, y, x);
            to_pixels(channels, planes + x, area, run.n, first);
            for (int64_t j = 0; j < sides.rows; j++) {
                Piece *square = squares.numbers + j * sides.room;
                for (int k = 0; k < RUN; k++) {
                    const Row row = row_of(call, sides, second, run, k, j, window);
                    if (row.pixels) all_dots(sides, first + k * padded, row, padded, found);
                    Piece none{};
                    if (run.near[k] && !row.pixels)
                        none = splat<Piece>(no_product(first + k * padded, padded));
                    for (int64_t b = 0; b < sides.room; b += RUN)
                        square[b + k] = row.pixels ? load<Piece>(found + b) : none;
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

// -- without a flow --

// Pixels of a run in the lanes, since their neighbours are neighbours, too: no sums of lanes, and no
// copies. Each row of offsets reads a row of the second picture, continued by its border.

constexpr int COLUMNS = REGISTER == 64 ? 10 : 4;  // whose sums are in registers

// A row of all channels of the second picture, from column -margin to width + margin.
INLINE void continue_row(const CorrelationCall &call, const float *planes, int64_t row,
                         int64_t margin, int64_t stride, float *to) {
    const int64_t line = resolve(row, call.second_height, call.border_y);
    const int64_t from = call.second_width, plane = call.second_height * from;
    if (line < 0) {
        memset(to, 0, size_t(call.channels * stride) * sizeof(float));
        return;
    }
    const int64_t end = call.width + 2 * margin, inside = least(from, call.width + margin);
    const float *pixels = planes + line * from;
    for (int64_t c = 0; c < call.channels; c++)
        memcpy(to + c * stride + margin, pixels + c * plane, size_t(inside) * sizeof(float));
    // column by column: of each channel apart, the borders took longer than the rows
    for (int64_t t = 0; t < end; t++) {
        if (t == margin) t += inside;
        if (t >= end) break;
        const int64_t column = resolve(t - margin, from, call.border_x);
        for (int64_t c = 0; c < call.channels; c++)
            to[c * stride + t] = column < 0 ? 0 : pixels[c * plane + column];
    }
}

void without_flow(const Call &block, int64_t begin, int64_t end) {
    const CorrelationCall &call = as<CorrelationCall>(block);
    const Sides sides(call);
    const int64_t area = call.height * call.width, margin = call.columns * call.step;
    const int64_t stride = (call.width + RUN - 1) / RUN * RUN + 2 * margin;
    BorrowedRow<float> memory(call.channels * stride);
    if (!memory) return;
    const Piece per = splat<Piece>(float(1 / double(call.channels)));
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t item = unit / call.height, y = unit % call.height;
        const float *first = first_row(call, item, y);
        const float *second = at<float>(call.second) + at<int64_t>(call.second_of)[item] *
                              call.channels * call.second_height * call.second_width;
        for (int64_t j = 0; j < sides.rows; j++) {
            const int64_t row = y + (j - call.rows) * call.step;
            continue_row(call, second, row, margin, stride, memory.numbers);
            float *out = at<float>(call.out) + y * call.width +
                         (item * sides.rows + j) * sides.columns * area;
            for (int64_t x = 0; x < call.width; x += RUN) {
                const int64_t n = least<int64_t>(RUN, call.width - x);
                by_groups<COLUMNS>(sides.columns, [&](auto count, int64_t i) {
                    constexpr int N = count;
                    Piece sums[N] = {};
                    const float *near = memory.numbers + x + i * call.step;
                    for (int64_t c = 0; c < call.channels; c++) {
                        const Piece f = load_piece(first + c * area + x, n);
                        for (int k = 0; k < N; k++)
                            sums[k] = fma(f, load<Piece>(near + c * stride + k * call.step), sums[k]);
                    }
                    for (int k = 0; k < N; k++)
                        store_piece(out + (i + k) * area + x, per * sums[k], n);
                });
            }
        }
    }
}

}  // namespace

Kernel choose_correlation(const Call &block) {
    return as<CorrelationCall>(block).flow ? forward : without_flow;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
