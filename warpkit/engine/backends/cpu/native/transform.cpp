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

}  // namespace

Kernel choose_transformed(const Call &) { return transformed; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
