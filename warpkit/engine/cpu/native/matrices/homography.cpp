// The refinement of cv2.findHomography, as in opencv/homography.py: damped Gauss-Newton steps that
// minimize the squared distances over eight entries of a matrix whose last entry is 1.
#include "shared/kernels.h"
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int ENTRIES = 8;

// The sum of squares, with half of its gradient (`down`) and of its approximate Hessian (`square`).
struct Squares {
    double square[ENTRIES][ENTRIES], down[ENTRIES], error;

    void add(const double *slope, double rest) {
        for (int i = 0; i < ENTRIES; i++) {
            down[i] += slope[i] * rest;
            for (int j = 0; j <= i; j++) square[i][j] += slope[i] * slope[j];
        }
        error += rest * rest;
    }

    Squares(const double *e, const double *src, const double *dst, int64_t count)
        : square{}, down{}, error(0) {
        for (int64_t n = 0; n < count; n++) {
            const double x = src[2 * n], y = src[2 * n + 1], per = 1 / (1 + e[6] * x + e[7] * y);
            const double u = (e[0] * x + e[1] * y + e[2]) * per;
            const double v = (e[3] * x + e[4] * y + e[5]) * per, a = x * per, b = y * per;
            const double along_u[ENTRIES] = {a, b, per, 0, 0, 0, -a * u, -b * u};
            const double along_v[ENTRIES] = {0, 0, 0, a, b, per, -a * v, -b * v};
            add(along_u, u - dst[2 * n]);
            add(along_v, v - dst[2 * n + 1]);
        }
    }

    // The step, with `damping` times the diagonal added to the equations. Returns false if they are
    // singular.
    bool step(double damping, double *to) const {
        double a[ENTRIES][ENTRIES];
        for (int i = 0; i < ENTRIES; i++)
            for (int j = 0; j < ENTRIES; j++) a[i][j] = i < j ? square[j][i] : square[i][j];
        for (int i = 0; i < ENTRIES; i++) a[i][i] += damping * square[i][i], to[i] = down[i];
        for (int i = 0; i < ENTRIES; i++) {
            int pivot = i;
            for (int k = i + 1; k < ENTRIES; k++)
                if (__builtin_fabs(a[k][i]) > __builtin_fabs(a[pivot][i])) pivot = k;
            if (a[pivot][i] == 0) return false;
            for (int k = 0; k < ENTRIES; k++) {
                const double first = a[i][k];
                a[i][k] = a[pivot][k], a[pivot][k] = first;
            }
            const double first = to[i];
            to[i] = to[pivot], to[pivot] = first;
            for (int k = i + 1; k < ENTRIES; k++) {
                const double factor = a[k][i] / a[i][i];
                for (int j = i; j < ENTRIES; j++) a[k][j] -= factor * a[i][j];
                to[k] -= factor * to[i];
            }
        }
        for (int i = ENTRIES - 1; i >= 0; i--) {
            for (int k = i + 1; k < ENTRIES; k++) to[i] -= a[i][k] * to[k];
            to[i] /= a[i][i];
        }
        return true;
    }
};

// `matrix`: the initial entries (items, 8), which are overwritten; `limits`: the most steps.
void homography(const Call &call, int64_t begin, int64_t end) {
    const FitsCall &p = as<FitsCall>(call);
    const int64_t steps = int64_t(*at<const double>(p.limits));
    for (int64_t n = begin; n < end; n++) {
        const double *src = at<const double>(p.src) + 2 * p.count * n;
        const double *dst = at<const double>(p.dst) + 2 * p.count * n;
        double *e = at<double>(p.matrix) + ENTRIES * n, damping = 1e-3;
        Squares found(e, src, dst, p.count);
        for (int64_t k = 0; k < steps; k++) {
            double step[ENTRIES] = {}, tried[ENTRIES], longest = 0;
            const bool solved = found.step(damping, step);
            for (int i = 0; i < ENTRIES; i++) tried[i] = e[i] - step[i];
            const Squares there(tried, src, dst, p.count);
            const bool better = solved && there.error <= found.error;
            if (better) {
                memcpy(e, tried, sizeof tried);
                found = there;
            }
            damping = better ? damping * 0.1 : damping * 10;
            for (double length : step) {
                const double size = __builtin_fabs(length);
                longest = size > longest || size != size ? size : longest;
                if (size != size) break;
            }
            if (longest < 1e-14) break;
        }
    }
}

}  // namespace

Kernel choose_homography(const Call &) { return homography; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
