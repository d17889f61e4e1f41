// Squares of the second picture's pixels around the places of a run of the first one's.
//
// All offsets of a pixel have one fraction, so the (2 r + 1)^2 results of a pixel are a blend of
// the (2 r + 2)^2 dot products at whole pixels; without a flow, these are the results.
#pragma once
#include "matching/channels.h"
#include "shared/kernels.h"
#include "shared/memory.h"
#include "shared/rules.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr double LIMIT = 2147483648.0;  // as in definitions/rules.py

// The numbers of dot products and of results along both axes.
struct Sides {
    int64_t rows, columns, out_rows, out_columns;
    int64_t room;  // pieces for the columns of a run: a multiple of sixteen
    bool blends;

    explicit Sides(const CorrelationCall &call) {
        out_rows = 2 * call.rows + 1, out_columns = 2 * call.columns + 1;
        blends = call.flow != 0;
        rows = out_rows + blends, columns = out_columns + blends;
        room = (columns + RUN - 1) / RUN * RUN;
    }
};

// A run of sixteen pixels of a row: the first pixels of their squares, and fractions.
struct Run {
    int64_t n, left[RUN], top[RUN];
    bool near[RUN];
    bool all_near;  // no place of an offset is out of reach
    Piece fx, fy;
    double x[RUN], y[RUN];

    void look(const CorrelationCall &call, int64_t item, int64_t row, int64_t column) {
        n = least<int64_t>(RUN, call.width - column);
        const int64_t from = call.flow ? at<int64_t>(call.flow_of)[item] : 0;
        const int64_t place = 2 * ((from * call.height + row) * call.width + column);
        const double reach_x = double(call.columns * call.step);
        const double reach_y = double(call.rows * call.step);
        fx = fy = Piece{}, all_near = true;
        for (int k = 0; k < RUN; k++) near[k] = false, left[k] = top[k] = 0, x[k] = y[k] = 0;
        for (int k = 0; k < n; k++) {
            double u = double(column + k), v = double(row);
            if (call.flow && call.wide_flow)
                u += at<double>(call.flow)[place + 2 * k], v += at<double>(call.flow)[place + 2 * k + 1];
            else if (call.flow)
                u += at<float>(call.flow)[place + 2 * k], v += at<float>(call.flow)[place + 2 * k + 1];
            const double far_x = __builtin_fabs(u), far_y = __builtin_fabs(v);
            near[k] = far_x < LIMIT + reach_x && far_y < LIMIT + reach_y;  // false for NaN
            if (!near[k]) continue;
            all_near &= far_x + reach_x < LIMIT && far_y + reach_y < LIMIT;
            const double low_x = __builtin_floor(u), low_y = __builtin_floor(v);
            x[k] = u, y[k] = v;
            fx[k] = float(u - low_x), fy[k] = float(v - low_y);
            left[k] = int64_t(low_x) - call.columns * call.step;
            top[k] = int64_t(low_y) - call.rows * call.step;
        }
    }

    // A result of offset (i, j) of the square, or its gradient, 0 where its place is none.
    INLINE Piece there(const CorrelationCall &call, int64_t i, int64_t j, Piece v) const {
        if (all_near) return v;
        for (int k = 0; k < n; k++) {
            const double u = x[k] + double((i - call.columns) * call.step);
            const double w = y[k] + double((j - call.rows) * call.step);
            if (!(near[k] && __builtin_fabs(u) < LIMIT && __builtin_fabs(w) < LIMIT)) v[k] = 0;
        }
        return v;
    }
};

// Row y of the first picture of an item, its channels a plane apart; and the second one's copy.
INLINE const float *first_row(const CorrelationCall &call, int64_t item, int64_t y) {
    const int64_t planes = at<int64_t>(call.first_of)[item] * call.channels;
    return at<float>(call.first) + (planes * call.height + y) * call.width;
}
INLINE const float *second_copy(const CorrelationCall &call, int64_t item) {
    return at<float>(call.second) + at<int64_t>(call.second_of)[item] * call.padded *
                                        (call.second_height * call.second_width + 1);
}

// The pixels of a row of the second picture that squares read: in place if all are inside,
// otherwise copied to a window. `gap` is from one to the next.
struct Row {
    const float *pixels;  // null if the whole row is missing
    int64_t gap;
};

// Row j of the square of a run's pixel k.
INLINE Row row_of(const CorrelationCall &call, const Sides &sides, const float *second,
                  const Run &run, int k, int64_t j, float *window) {
    if (!run.near[k]) return {nullptr, 0};
    const int64_t left = run.left[k], row = run.top[k] + j * call.step, padded = call.padded;
    const int64_t line = resolve(row, call.second_height, call.border_y);
    if (line < 0) return {nullptr, 0};
    const float *pixels = second + line * call.second_width * padded;
    const int64_t last = left + (sides.columns - 1) * call.step;
    if (left >= 0 && last < call.second_width) return {pixels + left * padded, call.step * padded};
    for (int64_t i = 0; i < sides.columns; i++) {
        const int64_t column = resolve(left + i * call.step, call.second_width, call.border_x);
        float *to = window + i * padded;
        if (column < 0) memset(to, 0, size_t(padded) * sizeof(float));
        else memcpy(to, pixels + column * padded, size_t(padded) * sizeof(float));
    }
    return {window, padded};
}

// Calls use(count, first) for groups of up to MOST of `columns`, the count being a constant.
template <int MOST, class Use> INLINE void by_groups(int64_t columns, Use use) {
    int64_t i = 0;
    for (; i + MOST <= columns; i += MOST) use(std::integral_constant<int, MOST>{}, i);
    const auto rest = [&](auto self, auto count) {
        constexpr int N = count;
        if (columns - i == N) return use(count, i);
        if constexpr (N > 1) self(self, std::integral_constant<int, N - 1>{});
    };
    if constexpr (MOST > 1)
        if (i < columns) rest(rest, std::integral_constant<int, MOST - 1>{});
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
