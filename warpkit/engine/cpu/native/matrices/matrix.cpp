// Inverts matrices, and computes the gradient: the operations of `maps.inverse_map` and
// `maps.inverse_vjp` in Python, in the same order, so every bit is equal.
//
// In torch, an inverse takes 30 operations, and more time than a small warp. A matrix of two rows
// has (0, 0, 1) as its third.
#include "shared/kernels.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

struct Matrix {
    double a, b, c, d, e, f, g = 0, h = 0, i = 1;

    template <class T> Matrix(const T *m, bool square)
        : a(m[0]), b(m[1]), c(m[2]), d(m[3]), e(m[4]), f(m[5]) {
        if (square) g = m[6], h = m[7], i = m[8];
    }

    double determinant(bool square) const {
        if (!square) return a * e - b * d;
        return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
    }

    bool finite() const {
        const double numbers[] = {a, b, c, d, e, f, g, h, i};
        bool all = true;
        for (double number : numbers) all = all && __builtin_isfinite(number);
        return all;
    }
};

template <class T> void invert(const Call &call, int64_t begin, int64_t end) {
    const MatrixCall &p = as<MatrixCall>(call);
    const bool square = p.rows == 3;
    const int64_t size = 3 * p.rows;
    for (int64_t n = begin; n < end; n++) {
        const Matrix m(at<const T>(p.matrices) + n * size, square);
        double *out = at<double>(p.out) + n * size;
        const double det = m.determinant(square), per = 1 / det;
        const bool finite = m.finite();
        if (!finite || !__builtin_isfinite(det) || !__builtin_isfinite(per)) {
            const bool singular = finite && det == 0;
            for (int64_t k = 0; k < size; k++)
                out[k] = singular && p.singular_to_zero ? 0 : __builtin_nan("");
        } else if (!square) {
            const double k = m.e * per, l = m.b * -per, q = m.d * -per, r = m.a * per;
            out[0] = k, out[1] = l, out[2] = -k * m.c - l * m.f;
            out[3] = q, out[4] = r, out[5] = -q * m.c - r * m.f;
        } else {
            out[0] = (m.e * m.i - m.f * m.h) * per;
            out[1] = (m.c * m.h - m.b * m.i) * per;
            out[2] = (m.b * m.f - m.c * m.e) * per;
            out[3] = (m.f * m.g - m.d * m.i) * per;
            out[4] = (m.a * m.i - m.c * m.g) * per;
            out[5] = (m.c * m.d - m.a * m.f) * per;
            out[6] = (m.d * m.h - m.e * m.g) * per;
            out[7] = (m.b * m.g - m.a * m.h) * per;
            out[8] = (m.a * m.e - m.b * m.d) * per;
        }
    }
}

// The gradient with respect to a matrix: -N' G N', with its inverse N and the gradient G with
// respect to N. It is 0 where there is no inverse, or where the square of N's determinant or the
// fourth power of N's largest entry would overflow.
template <class T> void inverse_vjp(const Call &call, int64_t begin, int64_t end) {
    const MatrixCall &p = as<MatrixCall>(call);
    const int64_t rows = p.rows, size = 3 * rows;
    for (int64_t n = begin; n < end; n++) {
        const double *inverse = at<const double>(p.matrices) + n * size;
        const double *grad = at<const double>(p.sums) + n * size;
        const Matrix m(inverse, rows == 3);
        double det = m.determinant(rows == 3), square = 0, whole[9] = {};
        whole[8] = rows == 2;  // the third row of a matrix of two
        for (int64_t k = 0; k < size; k++) {
            const double magnitude = __builtin_fabs(inverse[k]);
            square = magnitude > square ? magnitude : square;
        }
        square *= square;
        if (m.finite() && __builtin_isfinite(det * det + square * square))
            for (int64_t k = 0; k < size; k++) whole[k] = inverse[k];
        double right[9] = {};  // G N'
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < 3; c++) {
                const double *g = grad + 3 * r, *w = whole + 3 * c;
                right[3 * r + c] = g[0] * w[0] + g[1] * w[1] + g[2] * w[2];
            }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < 3; c++) {
                const double *w = whole + r, *g = right + c;
                at<T>(p.out)[n * size + 3 * r + c] = T(-(w[0] * g[0] + w[3] * g[3] + w[6] * g[6]));
            }
    }
}

}  // namespace

Kernel choose_invert(const Call &call) {
    return as<MatrixCall>(call).wide ? invert<double> : invert<float>;
}

Kernel choose_inverse_vjp(const Call &call) {
    return as<MatrixCall>(call).wide ? inverse_vjp<double> : inverse_vjp<float>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
