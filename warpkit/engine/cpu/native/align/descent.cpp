// Damped Gauss-Newton steps of one pair of images after another, each until convergence: `refine`
// of alignment/solver.py with the normal equations of equations.py, in two passes over the images:
// descent_pixels.h warps and makes the first sums, moments.cpp the second ones. The remaining
// computations are a few dozen numbers.
#include "align/descent_pixels.h"
#include "shared/kernels.h"
#include "shared/memory.h"
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int MOST = 8, SHARED = 8, CHANNEL = 4, SUMS = 6;  // parameters; moments; first sums

double divisor(double value) { return value > 0 ? value : 1; }
bool is_finite(double value) { return value - value == 0; }
double clamp_to(double value, double low, double high) {  // keeps NaN
    return value < low ? low : value > high ? high : value;
}

struct Limits : DescentLimits {
    double half;   // pixels per unit of x and y
    double sharp;  // half the step of the differences that give exact slopes; 0: no such slopes
};

struct Matrix3 {
    double m[9];

    Matrix3 operator*(const Matrix3 &other) const {
        Matrix3 result;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                result.m[3 * i + j] = m[3 * i] * other.m[j] + m[3 * i + 1] * other.m[3 + j] +
                                      m[3 * i + 2] * other.m[6 + j];
        return result;
    }
};

// As a series, for a matrix that is halved until the series is short, and squared equally often.
Matrix3 exponential(const Matrix3 &a) {
    double size = 0;
    for (double entry : a.m) size = most(size, __builtin_fabs(entry));
    int halvings = 0;
    for (; size > 0.0625 && halvings < 60; halvings++) size /= 2;
    const double scale = 1.0 / double(1ll << halvings);
    Matrix3 part = a, result = {{1, 0, 0, 0, 1, 0, 0, 0, 1}};
    for (double &entry : part.m) entry *= scale;
    Matrix3 power = part;
    for (int n = 1; n <= 12; n++) {  // 0.1875^12 / 12! is 4e-18
        for (int k = 0; k < 9; k++) result.m[k] += power.m[k];
        power = power * part;
        for (double &entry : power.m) entry /= n + 1;
    }
    for (int n = 0; n < halvings; n++) result = result * result;
    return result;
}

// Solves a x = b by elimination with column pivots; false if the system is singular.
bool solve(int n, double (*a)[MOST], double *b) {
    for (int i = 0; i < n; i++) {
        int pivot = i;
        for (int k = i + 1; k < n; k++)
            if (__builtin_fabs(a[k][i]) > __builtin_fabs(a[pivot][i])) pivot = k;
        if (a[pivot][i] == 0) return false;
        for (int k = 0; k < n; k++) {
            double first = a[i][k];
            a[i][k] = a[pivot][k], a[pivot][k] = first;
        }
        double first = b[i];
        b[i] = b[pivot], b[pivot] = first;
        for (int k = i + 1; k < n; k++) {
            double factor = a[k][i] / a[i][i];
            for (int j = i; j < n; j++) a[k][j] -= factor * a[i][j];
            b[k] -= factor * b[i];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    return true;
}

// The normal equations, and how well the pair matches: `Equations` of equations.py.
struct Equations {
    double hessian[MOST][MOST], rhs[MOST], cost, score, agreement, overlap;
};

// The memory for a pair's numbers.
template <class T> struct Pair {
    const DescentCall &p;
    const Limits &limits = *at<const Limits>(p.limits);
    const MomentsCall &second_block = *at<const MomentsCall>(p.second_sums);
    const int64_t area = p.height * p.width, channels = p.channels;
    const int64_t powers = second_block.powers * second_block.powers;
    const int64_t maps = SHARED + CHANNEL * channels;
    int64_t pair = 0;
    T *gain, *bias;                          // for the kernel
    double *strips, *sums, *moments, *kept;  // over all strips; (C, 6); (maps, powers); see `fit`
    PairPixels<T> pixels{p, limits.sharp};

    static int64_t numbers(const DescentCall &p) {
        const MomentsCall &second = *at<const MomentsCall>(p.second_sums);
        const int64_t powers = second.powers * second.powers;
        const int64_t maps = SHARED + CHANNEL * p.channels;
        return (second.strips + 1) * maps * powers + p.channels * (SUMS * (1 + BLOCK) + 2);
    }

    static int64_t pixels_of(const DescentCall &p) {
        const int64_t area = p.height * p.width, sharp = at<const Limits>(p.limits)->sharp > 0;
        return (p.channels * (1 + 2 * sharp) + 1) * area + p.channels * (2 + SUMS * BLOCK);
    }

    Pair(const DescentCall &call, T *images, double *rows) : p(call) {
        pixels.seen = images, pixels.weight = images + channels * area;
        gain = pixels.weight + area, bias = gain + channels;
        pixels.parts = bias + channels, pixels.lines = pixels.parts + channels * SUMS * BLOCK;
        sums = rows, moments = sums + channels * SUMS;
        kept = moments + maps * powers, pixels.lanes = kept + 2 * channels;
        strips = pixels.lanes + channels * SUMS * BLOCK;
    }

    // The moments of the second pass. light: of the slopes' products alone, without powers.
    void add_up(bool light) {
        MomentsCall call = second_block;
        const int64_t all = pair * area * channels;
        call.fixed = int64_t(at<const T>(p.fixed) + all);
        call.fixed_x = int64_t(at<const T>(p.fixed_x) + all);
        call.fixed_y = int64_t(at<const T>(p.fixed_y) + all);
        call.seen = int64_t(pixels.seen), call.weight = int64_t(pixels.weight);
        call.gain = int64_t(gain), call.bias = int64_t(bias), call.half = int64_t(&limits.half);
        call.out = int64_t(strips);
        if (light) call.powers = 1;
        else if (limits.sharp > 0) {
            call.line_x = int64_t(pixels.lines);
            call.line_y = int64_t(pixels.lines + channels * area);
        }
        choose_second_sums(call)(call, 0, call.strips);
        const int64_t size = maps * call.powers * call.powers;
        memset(moments, 0, size_t(size) * sizeof *moments);
        for (int64_t strip = 0; strip < call.strips; strip++)
            for (int64_t k = 0; k < size; k++) moments[k] += strips[strip * size + k];
    }

    // The mean square of the fixed image's slopes, over pixels and channels.
    double mean_slope() const {
        using Lanes = Vec<T, BLOCK>;
        const T *x = at<const T>(p.fixed_x) + pair * area * channels;
        const T *y = at<const T>(p.fixed_y) + pair * area * channels;
        const int64_t count = area * channels, whole = count / BLOCK * BLOCK;
        Positions total{};
        for (int64_t q = 0; q < whole; q += BLOCK) {
            const Lanes along = load<Lanes>(x + q), down = load<Lanes>(y + q);
            total += convert<Positions>(along * along + down * down);
        }
        double rest = sum(total);
        for (int64_t q = whole; q < count; q++) rest += double(x[q] * x[q] + y[q] * y[q]);
        return rest / double(count);
    }

    // Gain and bias of each channel, in the least-squares sense: kept[c], kept[channels + c].
    void fit() {
        for (int64_t c = 0; c < channels; c++) {
            const double *s = sums + c * SUMS, variance = s[0] * s[3] - s[1] * s[1];
            const bool varies = variance > limits.singular * s[0] * s[0];
            const double slope = varies ? (s[0] * s[5] - s[1] * s[2]) / variance : 0;
            kept[c] = slope, kept[channels + c] = (s[2] - slope * s[1]) / divisor(s[0]);
            gain[c] = p.by_values ? T(1) : T(slope);
            bias[c] = p.by_values ? T(0) : T(kept[channels + c]);
        }
    }

    double score() const {
        double all = 0, found = 0;
        auto variance_of = [&](const double *s, int one, int square) {
            const double total = divisor(s[0]), mean = s[one] / total;
            const double variance = s[square] / total - mean * mean;
            return variance < 0 ? 0 : variance;
        };
        for (int64_t c = 0; c < channels; c++) all += variance_of(sums + c * SUMS, 2, 4);
        for (int64_t c = 0; c < channels; c++) {
            const double *s = sums + c * SUMS, total = divisor(s[0]);
            const double of_w = variance_of(s, 1, 3), of_f = variance_of(s, 2, 4);
            if (!(of_w > limits.singular && of_f > limits.singular)) continue;
            const double both = s[5] / total - s[1] / total * (s[2] / total);
            found += both / __builtin_sqrt(of_w * of_f) * (of_f / divisor(all));
        }
        return clamp_to(found, -1, 1);
    }

    double squares() const {
        double total = 0, square = 0;
        for (int64_t c = 0; c < channels; c++) {
            const double *s = sums + c * SUMS;
            total += s[0], square += s[4] - 2 * s[5] + s[3];
        }
        return square / divisor(total);
    }

    // The moving image by a matrix, and what the first sums tell.
    void look(const Matrix3 &to_source, Equations &e) {
        pixels.run(to_source.m, sums);
        fit();
        e.score = score(), e.cost = p.by_values ? squares() : 1 - e.score;
        e.overlap = sums[0], e.agreement = 0;
    }

    // `look`, and the rest. light: without the equations, of which no step follows.
    void equations(const Matrix3 &to_source, Equations &e, bool light) {
        look(to_source, e);
        complete(e, light);
    }

    void complete(Equations &e, bool light) {
        const int64_t n = p.parameters, powers = light ? 1 : this->powers;
        add_up(light);
        const double *slopes = moments + 5 * powers;
        e.agreement = slopes[0] / divisor(__builtin_sqrt(slopes[powers] * slopes[2 * powers]));
        for (int64_t i = 0; i < n && light; i++) e.rhs[i] = sums[0];
        if (light) return;
        memset(e.hessian, 0, sizeof e.hessian);
        const double *table = at<const double>(p.quadratic);
        for (int64_t k = 0; k < 3 * powers; k++)
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++)
                    e.hessian[i][j] += moments[k] * table[(k * n + i) * n + j];
        onto_steps(moments + 3 * powers, e.rhs);
        if (!p.by_values)
            for (int64_t c = 0; c < channels; c++) absorb(c, e);
    }

    // Moments along x and y as the parameters of a step, by the model's table.
    void onto_steps(const double *both, double *to) const {
        const int64_t n = p.parameters;
        const double *table = at<const double>(p.linear);
        for (int64_t i = 0; i < n; i++) {
            to[i] = 0;
            for (int64_t k = 0; k < 2 * powers; k++) to[i] += both[k] * table[k * n + i];
        }
    }

    // The part of the equations that a channel's gain and bias remove.
    void absorb(int64_t c, Equations &e) const {
        double to_bias[MOST], to_gain[MOST];
        const double *own = moments + (SHARED + CHANNEL * c) * powers, *s = sums + c * SUMS;
        onto_steps(own, to_bias);
        onto_steps(own + 2 * powers, to_gain);
        const double total = divisor(s[0]), mean = s[1] / total, variance = s[3] - mean * s[1];
        const bool varies = variance > limits.singular * s[0];
        for (int64_t i = 0; i < p.parameters; i++) to_gain[i] -= mean * to_bias[i];
        for (int64_t i = 0; i < p.parameters; i++)
            for (int64_t j = 0; j < p.parameters; j++) {
                e.hessian[i][j] -= to_bias[i] / total * to_bias[j];
                if (varies) e.hessian[i][j] -= to_gain[i] / variance * to_gain[j];
            }
    }

    // The matrix of a step in pixels, and the largest motion of a corner.
    Matrix3 step_of(const double *numbers, double &motion) const {
        const double half = limits.half;
        const double x = double(p.width - 1) / 2, y = double(p.height - 1) / 2;
        Matrix3 sum = {};
        for (int64_t i = 0; i < p.parameters; i++)
            for (int k = 0; k < 9; k++)
                sum.m[k] += numbers[i] * at<const double>(p.generators)[9 * i + k];
        const Matrix3 to_pixels = {{half, 0, x, 0, half, y, 0, 0, 1}};
        const Matrix3 to_units = {{1 / half, 0, -x / half, 0, 1 / half, -y / half, 0, 0, 1}};
        const Matrix3 step = to_pixels * exponential(sum) * to_units;
        motion = 0;
        for (int corner = 0; corner < 4; corner++) {
            const double u = corner == 1 || corner == 2 ? double(p.width - 1) : 0;
            const double v = corner > 1 ? double(p.height - 1) : 0, *m = step.m;
            const double w = m[6] * u + m[7] * v + m[8];
            const double dx = (m[0] * u + m[1] * v + m[2]) / w - u;
            const double dy = (m[3] * u + m[4] * v + m[5]) / w - v;
            const double far = __builtin_sqrt(dx * dx + dy * dy);
            motion = far > motion || far != far ? far : motion;
            if (far != far) break;
        }
        return step;
    }

    // The step from the damped equations.
    Matrix3 next(const Equations &found, double damping, double &motion) const {
        const int n = int(p.parameters);
        double a[MOST][MOST], numbers[MOST], largest = found.hessian[0][0];
        for (int i = 1; i < n; i++) largest = most(largest, found.hessian[i][i]);
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) a[i][j] = found.hessian[i][j];
            a[i][i] += damping * found.hessian[i][i] + (1e-9 * largest + 2.2250738585072014e-308);
            numbers[i] = found.rhs[i];
        }
        bool good = solve(n, a, numbers);
        for (int i = 0; i < n; i++) good = good && is_finite(numbers[i]);
        for (int i = 0; i < n && !good; i++) numbers[i] = 0;
        Matrix3 step = step_of(numbers, motion);
        if (motion > limits.longest) {
            for (int i = 0; i < n; i++) numbers[i] *= limits.longest / motion;
            step = step_of(numbers, motion);
        }
        if (!good) motion = __builtin_inf();
        return step;
    }

    // The matrix, score, agreement, overlap, convergence, steps, slope; gains and biases.
    void write(double *to, const Matrix3 &matrix, const Equations &e, bool still,
               int64_t made) const {
        memcpy(to, matrix.m, sizeof matrix.m);
        to[9] = e.score, to[10] = e.agreement, to[11] = e.overlap;
        to[12] = still, to[13] = double(made);
        memcpy(to + 15, kept, size_t(2 * channels) * sizeof *kept);
    }

    void descend(double *to) {
        pixels.begin(pair);
        Matrix3 to_source;
        memcpy(to_source.m, at<const double>(p.to_source) + 9 * pair, sizeof to_source.m);
        Equations found, tried;
        look(to_source, found);
        to[14] = mean_slope();
        const bool hopeless = p.least_scores && !(found.score > at<double>(p.least_scores)[pair]);
        if (!hopeless) complete(found, p.steps == 0);
        write(to, to_source, found, false, 0);
        double damping = limits.first_damping, motion;
        for (int64_t step = 1; step <= p.steps && !hopeless; step++) {
            const Matrix3 trial = to_source * next(found, damping, motion);
            equations(trial, tried, motion < limits.tolerance || step == p.steps);
            bool accepted = tried.cost <= found.cost || motion < limits.small;
            accepted = accepted && tried.overlap >= limits.least_overlap * found.overlap;
            for (int64_t i = 0; i < p.parameters; i++)
                accepted = accepted && is_finite(tried.rhs[i]);
            accepted = accepted && is_finite(motion);
            const bool still = accepted && motion < limits.tolerance;
            if (accepted) {
                to_source = trial, found = tried;
                damping = most(damping / 10, limits.least_damping);
                write(to, to_source, found, still, step);
            } else {
                damping *= 10;
                to[13] = double(step);
            }
            if (still || damping > limits.most_damping) break;
        }
    }
};

template <class T> void descent(const Call &call, int64_t begin, int64_t end) {
    const DescentCall &p = as<DescentCall>(call);
    BorrowedRow<double> rows(Pair<T>::numbers(p));
    BorrowedRow<T> images(Pair<T>::pixels_of(p));
    if (!rows || !images) return;
    Pair<T> pair(p, images.numbers, rows.numbers);
    for (pair.pair = begin; pair.pair < end; pair.pair++)
        pair.descend(at<double>(p.out) + pair.pair * p.result_size);
}

}  // namespace

Kernel choose_descent(const Call &call) {
    return as<DescentCall>(call).doubles ? descent<double> : descent<float>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
