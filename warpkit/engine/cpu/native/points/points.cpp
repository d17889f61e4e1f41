// Undistorts lists of points, and transforms them by perspective matrices, a register at a time.
// Computes the matrices of three or four pairs of points.
#include "shared/kernels.h"
#include "points/lens.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// -- undistorted points --

INLINE Doubles squared_factor_inverse(const double *k, Doubles q) {
    return (1 + ((k[7] * q + k[6]) * q + k[5]) * q) / (1 + ((k[4] * q + k[1]) * q + k[0]) * q);
}

// The terms of a brown lens besides the radial factor: tangential distortion and thin prism.
INLINE Place added(const double *k, Place p, Doubles q) {
    Doubles x = 2 * k[2] * p.x * p.y + k[3] * (q + 2 * p.x * p.x) + k[8] * q + k[9] * q * q;
    Doubles y = k[2] * (q + 2 * p.y * p.y) + 2 * k[3] * p.x * p.y + k[10] * q + k[11] * q * q;
    return {x, y};
}

// The distorted direction, from which the error of a step is computed. OpenCV does not reuse
// `squared_factor_inverse` and `added` for it.
INLINE Place shown_at(const LensNumbers &lens, int64_t n, Place p) {
    const double *k = lens.k;
    Doubles q = p.x * p.x + p.y * p.y;
    Doubles factor =
        (1 + ((k[4] * q + k[1]) * q + k[0]) * q) / (1 + ((k[7] * q + k[6]) * q + k[5]) * q);
    Doubles u =
        p.x * factor + 2 * k[2] * p.x * p.y + k[3] * (q + 2 * p.x * p.x) + k[8] * q + k[9] * q * q;
    Doubles v = p.y * factor + k[2] * (q + 2 * p.y * p.y) + 2 * k[3] * p.x * p.y + k[10] * q +
                k[11] * q * q;
    return n < 14 ? Place{u, v} : turned(lens.tilt, {u, v});
}

// OpenCV's iteration, for a number of steps or until the error in pixels is small. A step that
// increases the error is discarded, and the next ones are half as long.
INLINE Place undistorted(const LensNumbers &lens, const MapsCall &call, Place pixel) {
    const double *k = lens.k;
    Place raw{(pixel.x - lens.cx) * (1 / lens.fx), (pixel.y - lens.cy) * (1 / lens.fy)};
    Place start = call.coefficients < 14 ? raw : turned(lens.untilt, raw), p = start;
    Mask active = Mask{} - 1;
    Doubles error = Doubles{} + __builtin_inf(), share = Doubles{} + 1;
    for (int64_t step = 0; step < call.steps; step++) {
        if (call.ends_by_error) active &= ~(error < lens.error);
        if (!any(active)) break;
        Doubles q = p.x * p.x + p.y * p.y, inverse = squared_factor_inverse(k, q);
        Mask behind = inverse < 0;  // OpenCV stops these
        Place more = added(k, p, q);
        Doubles x = (1 - share) * p.x + share * (start.x - more.x) * inverse;
        Doubles y = (1 - share) * p.y + share * (start.y - more.y) * inverse;
        Mask better = active;
        if (call.ends_by_error) {
            Place shown = shown_at(lens, call.coefficients, {x, y});
            Doubles before = error;
            Doubles off_x = lens.fx * shown.x + lens.cx - pixel.x;
            Doubles off_y = lens.fy * shown.y + lens.cy - pixel.y;
            error = root(off_x * off_x + off_y * off_y);
            better &= ~(error > before);
            share = better ? share : share / 2;
        }
        p.x = better ? x : p.x, p.y = better ? y : p.y;
        p.x = active & behind ? raw.x : p.x, p.y = active & behind ? raw.y : p.y;
        active &= ~behind;
    }
    if (!call.projects) return p;
    Doubles per = 1 / row_at(lens.matrix + 6, p.x, p.y);
    return {row_at(lens.matrix, p.x, p.y) * per, row_at(lens.matrix + 3, p.x, p.y) * per};
}

template <class T> void undistorted_points(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    const LensNumbers lens = *at<LensNumbers>(call.numbers);
    each_place<T>(call, begin, end, [&](Place p) { return undistorted(lens, call, p); });
}

// -- points under a perspective --

// float32's epsilon: a divisor up to this size counts as 0
constexpr double SMALL = 1.1920928955078125e-07;

// numbers: the matrix (3, 3).
template <class T> void moved_pairs(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    const double *m = at<double>(call.numbers);
    each_place<T>(call, begin, end, [&](Place p) {
        // the order of opencv_points.py: the first number times its factor, then the others
        Doubles x = p.x * m[0] + p.y * m[1] + m[2], y = p.x * m[3] + p.y * m[4] + m[5];
        Doubles w = p.x * m[6] + p.y * m[7] + m[8];
        Mask good = magnitude(w) > SMALL;
        Doubles per = 1 / (good ? w : Doubles{} + 1);
        return Place{good ? x * per : Doubles{}, good ? y * per : Doubles{}};
    });
}

// numbers: the matrix (C + 1, C + 1), for points with C numbers.
template <class T> void moved_tuples(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    int64_t c = call.channels, stop = least(end * POINTS_AT_ONCE, call.count);
    for (int64_t i = begin * POINTS_AT_ONCE; i < stop; i++) {
        const T *from = at<T>(call.first) + i * c;
        auto row = [&](int64_t r) {
            const double *m = at<double>(call.numbers) + r * (c + 1);
            double total = double(from[0]) * m[0];
            for (int64_t k = 1; k < c; k++) total += double(from[k]) * m[k];
            return total + m[c];
        };
        double w = row(c);
        bool good = w > SMALL || w < -SMALL;
        double per = 1 / (good ? w : 1);
        for (int64_t r = 0; r < c; r++) at<T>(call.out)[i * c + r] = T(good ? row(r) * per : 0);
    }
}

// -- matrices from pairs of points --

// Gaussian elimination of a[n][n + 1] with column pivots, like cv::LU. Returns false if a pivot is
// too small or NaN.
template <int N> bool solved(double (*a)[N + 1], double *x) {
    constexpr double TOO_SMALL = 100 * 2.220446049250313e-16;
    bool good = true;
    for (int i = 0; i < N; i++) {
        int pivot = i;
        for (int k = i + 1; k < N; k++)
            if (__builtin_fabs(a[k][i]) > __builtin_fabs(a[pivot][i])) pivot = k;
        for (int k = 0; k <= N; k++) {
            double first = a[i][k];
            a[i][k] = a[pivot][k], a[pivot][k] = first;
        }
        good &= __builtin_fabs(a[i][i]) >= TOO_SMALL;
        double per = -1 / a[i][i];
        for (int k = i + 1; k < N; k++) {
            double factor = a[k][i] * per;
            for (int j = i + 1; j <= N; j++) a[k][j] += factor * a[i][j];
        }
    }
    for (int i = N - 1; i >= 0; i--) {
        double rest = a[i][N];
        for (int k = i + 1; k < N; k++) rest -= a[i][k] * x[k];
        x[i] = rest / a[i][i];
    }
    return good;
}

// Matrices (3, 3) from four pairs of float32 points. Each has an int64 in `out_second`: whether the
// equations were solved to within 1e-8.
void perspective_matrices(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    for (int64_t item = begin; item < end; item++) {
        const float *src = at<float>(call.first) + 8 * item,
                    *dst = at<float>(call.second) + 8 * item;
        double system[8][9] = {}, a[8][9], *found = at<double>(call.out) + 9 * item;
        for (int row = 0; row < 8; row++) {
            int axis = row / 4, n = row % 4;
            double *equation = system[row];
            for (int k = 0; k < 2; k++) {
                equation[3 * axis + k] = src[2 * n + k];
                equation[6 + k] = -(src[2 * n + k] * dst[2 * n + axis]);  // float32 products
            }
            equation[3 * axis + 2] = 1, equation[8] = dst[2 * n + axis];
        }
        memcpy(a, system, sizeof a);
        bool good = solved<8>(a, found);
        double square[8];
        for (int row = 0; row < 8; row++) {
            const double *equation = system[row];
            double four[4];
            for (int k = 0; k < 4; k++)
                four[k] = equation[k] * found[k] + equation[k + 4] * found[k + 4];
            double off = four[0] + four[1] + four[2] + four[3] - equation[8];
            square[row] = off * off;
        }
        double sum = ((square[0] + square[1]) + (square[2] + square[3])) +
                     ((square[4] + square[5]) + (square[6] + square[7]));
        found[8] = 1;
        at<int64_t>(call.out_second)[item] = good && __builtin_sqrt(sum) < 1e-8;
    }
}

// Matrices (2, 3) from three pairs of float32 points, and in `out_second` whether each exists.
void affine_matrices(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    for (int64_t item = begin; item < end; item++) {
        const float *src = at<float>(call.first) + 6 * item,
                    *dst = at<float>(call.second) + 6 * item;
        double a[6][7] = {};
        for (int row = 0; row < 6; row++) {  // equations of x and y alternate
            const int n = row / 2, axis = row % 2;
            for (int k = 0; k < 2; k++) a[row][3 * axis + k] = src[2 * n + k];
            a[row][3 * axis + 2] = 1, a[row][6] = dst[row];
        }
        at<int64_t>(call.out_second)[item] = solved<6>(a, at<double>(call.out) + 6 * item);
    }
}

}  // namespace

Kernel choose_undistorted_points(const Call &call) {
    return as<MapsCall>(call).double_points ? undistorted_points<double>
                                            : undistorted_points<float>;
}

Kernel choose_moved_points(const Call &block) {
    const MapsCall &call = as<MapsCall>(block);
    if (call.channels == 2) return call.double_points ? moved_pairs<double> : moved_pairs<float>;
    return call.double_points ? moved_tuples<double> : moved_tuples<float>;
}

Kernel choose_perspective_matrices(const Call &) { return perspective_matrices; }

Kernel choose_affine_matrices(const Call &) { return affine_matrices; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
