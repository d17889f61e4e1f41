// cv2.transform of float32: a matrix for the numbers of every pixel or point, bit for bit as
// engine/arithmetic/opencv_points.py. A unit is `POINTS_AT_ONCE` of them.
#include "fused.h"
#include "kernels.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int WIDE = LANES<float>;
using Floats = Vec<float, WIDE>;

// How OpenCV sums: only the diagonal and the bias; from the first product on, fused; or the bias,
// then one rounded product after the other.
enum Sum { DIAGONAL, FUSED, IN_ORDER };

// numbers: the matrix (rows, channels + 1), float32. Registers of points are parted into their
// numbers and joined again in memory.
void transformed(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    const int64_t c = call.channels, rows = call.rows;
    const int64_t stop = least(end * POINTS_AT_ONCE, call.count);
    const float *matrix = at<float>(call.numbers);
    for (int64_t i = begin * POINTS_AT_ONCE; i < stop; i += WIDE) {
        const int64_t n = least<int64_t>(WIDE, stop - i);
        const float *from = at<float>(call.first) + i * c;
        float *to = at<float>(call.out) + i * rows;
        const auto number = [&](int64_t k) {
            Floats v{};
            if (n < WIDE)
                for (int64_t lane = 0; lane < n; lane++) v[lane] = from[lane * c + k];
            else
                for (int lane = 0; lane < WIDE; lane++) v[lane] = from[lane * c + k];
            return v;
        };
        for (int64_t r = 0; r < rows; r++) {
            const float *m = matrix + r * (c + 1);
            const auto factor = [&](int64_t k) { return splat<Floats>(m[k]); };
            Floats total;
            if (call.steps == DIAGONAL) total = fma_single(number(r), factor(r), factor(c));
            else if (call.steps == FUSED) {
                total = fma_single(number(0), factor(0), number(1) * m[1]);
                for (int64_t k = 2; k < c; k++) total = fma_single(number(k), factor(k), total);
                total = total + m[c];
            } else {
                total = factor(c);
                for (int64_t k = 0; k < c; k++) total = total + number(k) * m[k];
            }
            for (int64_t lane = 0; lane < n; lane++) to[lane * rows + r] = total[lane];
        }
    }
}

struct Evens {
    static constexpr int at(int k) { return 2 * k; }
};
struct Odds {
    static constexpr int at(int k) { return 2 * k + 1; }
};
struct Zipped {
    static constexpr int at(int k) { return k / 2 + k % 2 * WIDE; }
};

// The commonest, points (x, y): a register of them is parted and joined by shuffles.
void transformed_pairs(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    const int64_t stop = least(end * POINTS_AT_ONCE, call.count);
    const float *m = at<float>(call.numbers);
    for (int64_t i = begin * POINTS_AT_ONCE; i < stop; i += WIDE) {
        const int64_t n = least<int64_t>(WIDE, stop - i);
        Vec<float, 2 * WIDE> both{};
        const float *from = at<float>(call.first) + 2 * i;
        if (n == WIDE) both = load<Vec<float, 2 * WIDE>>(from);
        else memcpy(&both, from, size_t(n) * 2 * sizeof *from);
        const Floats x = pick<WIDE, Evens>(both, both), y = pick<WIDE, Odds>(both, both);
        const auto sum = [&](int r) {
            const float *row = m + 3 * r;
            if (call.steps == DIAGONAL)
                return fma_single(r ? y : x, splat<Floats>(row[r]), splat<Floats>(row[2]));
            return fma_single(x, splat<Floats>(row[0]), y * row[1]) + row[2];
        };
        both = pick<2 * WIDE, Zipped>(sum(0), sum(1));
        float *to = at<float>(call.out) + 2 * i;
        if (n == WIDE) store(to, both);
        else memcpy(to, &both, size_t(n) * 2 * sizeof *to);
    }
}

}  // namespace

Kernel choose_transformed(const Call &block) {
    const MapsCall &call = as<MapsCall>(block);
    const bool pairs = call.channels == 2 && call.rows == 2 && call.steps != IN_ORDER;
    return pairs ? transformed_pairs : transformed;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
