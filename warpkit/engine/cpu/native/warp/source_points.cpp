// The source positions of a tile's pixels, see source_points.h.
#include "warp/source_points.h"

#include <math.h>

namespace warpkit {
namespace WARPKIT_ISA {

// Points from depths instead of `Kind`'s.
constexpr int OF_VIEW = -1;

void SourcePoints::see(const Call &call) {
    view = as<WarpCall>(call).depths ? &as<DepthWarpCall>(call).view : nullptr;
    if (view) rows_of_view = depth_rows(*view);
}

void SourcePoints::begin(const WarpCall &p, int64_t item, int64_t x, int64_t y) {
    x0 = x, y0 = y;
    width = least<int64_t>(TILE, p.out_width - x), height = least<int64_t>(TILE, p.out_height - y);
    index = at<const int64_t>(p.mapping_of)[item], map = index * p.mapping_size;
    for (int64_t k = 0; k < 3 * p.kind; k++) matrix[k] = at<const double>(p.mapping)[map + k];
    all_near = true, cornered = false;
    low_x = low_y = splat<Doubles>(INFINITY), high_x = high_y = -low_x;
    if (p.kind == AFFINE) find_corners();
}

// Under an affine map, whose rounding is monotonic, the corners bound all points, unless one of
// them has no position.
void SourcePoints::find_corners() {
    cornered = true;
    for (int k = 0; k < 4; k++) {
        double x = double(x0 + (k == 1 || k == 2 ? width - 1 : 0));
        double y = double(y0 + (k / 2 ? height - 1 : 0));
        double u = corner_x[k] = x * matrix[0] + y * matrix[1] + matrix[2];
        double v = corner_y[k] = x * matrix[3] + y * matrix[4] + matrix[5];
        cornered = cornered && fabs(u) < LIMIT && fabs(v) < LIMIT;
    }
}

void SourcePoints::bounds(double &least_x, double &most_x, double &least_y, double &most_y) const {
    least_x = least_y = INFINITY, most_x = most_y = -INFINITY;
    for (int k = 0; k < 4 && cornered; k++) {
        least_x = least(least_x, corner_x[k]), most_x = most(most_x, corner_x[k]);
        least_y = least(least_y, corner_y[k]), most_y = most(most_y, corner_y[k]);
    }
    for (int k = 0; k < D && !cornered; k++) {
        least_x = least(least_x, low_x[k]), most_x = most(most_x, high_x[k]);
        least_y = least(least_y, low_y[k]), most_y = most(most_y, high_y[k]);
    }
}

void SourcePoints::find(const WarpCall &p, int64_t r, int64_t rows) {
    far = false;
    if (view) find_rows<OF_VIEW, true>(p, r, rows);
    else if (p.kind == AFFINE && cornered) find_rows<AFFINE, false>(p, r, rows);
    else if (p.kind == AFFINE) find_rows<AFFINE, true>(p, r, rows);
    else if (p.kind == PERSPECTIVE) find_rows<PERSPECTIVE, true>(p, r, rows);
    else find_rows<POINTS, true>(p, r, rows);
    all_near = all_near && !far;
}

namespace {

struct EvenLanes {
    static constexpr int at(int k) { return 2 * k; }
};
struct OddLanes {
    static constexpr int at(int k) { return 2 * k + 1; }
};

// D points from memory, of whose row `left` pixels remain. plane: from x to y; 0 if they are
// adjacent.
template <class P>
INLINE void given(const P *row, int64_t plane, int64_t c, int64_t left, Doubles &u, Doubles &v) {
    if (plane && D <= left) {
        u = convert<Doubles>(load<Vec<P, D>>(row + c));
        v = convert<Doubles>(load<Vec<P, D>>(row + plane + c));
        return;
    }
    if (D <= left) {
        auto pairs = load<Vec<P, 2 * D>>(row + 2 * c);
        u = convert<Doubles>(pick<D, EvenLanes>(pairs, pairs));
        v = convert<Doubles>(pick<D, OddLanes>(pairs, pairs));
        return;
    }
    for (int64_t k = 0; k < D; k++) {
        const P *here = row + (plane ? 1 : 2) * (c + least(k, left - 1));
        u[k] = here[0], v[k] = here[plane ? plane : 1];
    }
}

}  // namespace

// BOUNDED: with their bounds, and NaN for points without a position.
template <int KIND, bool BOUNDED>
void SourcePoints::find_rows(const WarpCall &p, int64_t r, int64_t rows) {
    constexpr int64_t L = LANES<float>;  // the most lanes of a tile's vectors
    const int64_t columns = (width + L - 1) / L * L;
    const Doubles last = splat<Doubles>(double(x0 + width - 1));
    Longs near = ~Longs{};
    // in registers: for all the compiler knows, a store may reach any member
    [[maybe_unused]] const bool double_points = p.double_points, relative = p.relative;
    [[maybe_unused]] const int64_t end = width, plane = p.planar ? p.mapping_size / 2 : 0;
    Doubles least_x = low_x, least_y = low_y, most_x = high_x, most_y = high_y, m[9];
    for (int k = 0; k < 3 * KIND; k++) m[k] = splat<Doubles>(matrix[k]);
    if constexpr (KIND == OF_VIEW) {
        const int64_t there = least(rows, height - r), last = there - 1;
        rows_of_view.find(*view, {index, y0 + r, there, x0, width}, L, point_x[0], point_y[0]);
        for (int64_t n = there; n < rows; n++) {
            memcpy(point_x[n], point_x[last], sizeof point_x[n]);
            memcpy(point_y[n], point_y[last], sizeof point_y[n]);
        }
    }
    for (int64_t n = 0; n < rows; n++) {
        const int64_t row = y0 + least(r + n, height - 1);
        const Doubles y = splat<Doubles>(double(row));
        for (int64_t c = 0; c < columns; c += D) {
            Doubles x = smaller(count_up<Doubles>() + double(x0 + c), last), u, v;
            if constexpr (KIND == POINTS) {
                const int64_t start = map + (plane ? 1 : 2) * (row * p.out_width + x0);
                if (double_points)
                    given(at<const double>(p.mapping) + start, plane, c, end - c, u, v);
                else given(at<const float>(p.mapping) + start, plane, c, end - c, u, v);
                if (relative) u += x, v += y;
            } else if constexpr (KIND == OF_VIEW) {
                u = load<Doubles>(point_x[n] + c), v = load<Doubles>(point_y[n] + c);
            } else {
                u = x * m[0] + y * m[1] + m[2];
                v = x * m[3] + y * m[4] + m[5];
            }
            if constexpr (KIND == PERSPECTIVE) {
                Doubles w = x * m[6] + y * m[7] + m[8];
                Doubles size = magnitude(w), limit = LIMIT * size;
                Longs good = (magnitude(u) < limit) & (magnitude(v) < limit) & (size < INFINITY);
                w = good ? w : splat<Doubles>(double(NAN));
                u /= w, v /= w;
            }
            if constexpr (BOUNDED) {
                Longs here = (magnitude(u) < LIMIT) & (magnitude(v) < LIMIT);  // false for NaN
                u = here ? u : splat<Doubles>(double(NAN)), v = here ? v : u;
                near &= here;
                // of NaN the bound, which stands last in both
                least_x = smaller(u, least_x), most_x = larger(u, most_x);
                least_y = smaller(v, least_y), most_y = larger(v, most_y);
            }
            store(point_x[n] + c, u), store(point_y[n] + c, v);
        }
    }
    low_x = least_x, low_y = least_y, high_x = most_x, high_y = most_y;
    for (int k = 0; k < D; k++) far = far || !near[k];
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
