// Fits matrices to pairs of points: the perspective of four pairs (definitions/quads.py) with its
// gradient, and the least-squares similarity (definitions/fits.py). In torch, a fit takes about
// fifty operations, whose calls cost more time than the computations for a thousand items.
#include "shared/kernels.h"
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr double ROUNDING = 8 * 2.220446049250313e-16;  // as in quads.py
constexpr int SPREAD = 16;                              // ROUNDING of fits.py
constexpr int CORNERS = 4;

struct Point {
    double x, y;
};

double size_of(double v) { return __builtin_fabs(v); }
bool is_number(double v) { return v - v == 0; }

struct Matrix3 {
    double m[9];
};

Matrix3 product(const Matrix3 &a, const Matrix3 &b) {
    Matrix3 r;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            r.m[3 * i + j] = a.m[3 * i] * b.m[j] + a.m[3 * i + 1] * b.m[3 + j] +
                             a.m[3 * i + 2] * b.m[6 + j];
    return r;
}

Matrix3 turned_over(const Matrix3 &a) {
    const double *m = a.m;
    return {{m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]}};
}

Matrix3 adjugate(const Matrix3 &a) {
    const double *m = a.m;
    return {{m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
             m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
             m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]}};
}

Matrix3 shift(double x, double y) { return {{1, 0, x, 0, 1, y, 0, 0, 1}}; }

// -- four pairs --

// The matrix that maps (1,0,0), (0,1,0), (0,0,1) and (1,1,1) to four points relative to the first.
Matrix3 frame(const Point *p) {
    Matrix3 first = {{0, p[1].x - p[0].x, p[2].x - p[0].x, 0, p[1].y - p[0].y, p[2].y - p[0].y, 1,
                      1, 1}};
    const Matrix3 adj = adjugate(first);
    const double x = p[3].x - p[0].x, y = p[3].y - p[0].y;
    for (int j = 0; j < 3; j++) {
        const double w = adj.m[3 * j] * x + adj.m[3 * j + 1] * y + adj.m[3 * j + 2];
        for (int i = 0; i < 3; i++) first.m[3 * i + j] *= w;
    }
    return first;
}

// Whether three points lie on a line, up to the rounding of the caller's type.
bool on_a_line(const Point &a, const Point &b, const Point &c, double eps) {
    const double ax = b.x - a.x, ay = b.y - a.y, bx = c.x - a.x, by = c.y - a.y;
    const double edge = most(most(size_of(ax), size_of(ay)), most(size_of(bx), size_of(by)));
    double reach = 0;
    for (const Point &p : {a, b, c}) reach = most(reach, most(size_of(p.x), size_of(p.y)));
    return !(size_of(ax * by - ay * bx) > 4 * eps * edge * reach);
}

int lines(const Point *p, double eps) {
    constexpr int THREES[4][3] = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};
    int count = 0;
    for (auto &t : THREES) count += on_a_line(p[t[0]], p[t[1]], p[t[2]], eps);
    return count;
}

bool are_numbers(const Point *p) {
    bool good = true;
    for (int i = 0; i < CORNERS; i++) good &= is_number(p[i].x) && is_number(p[i].y);
    return good;
}

// The divisor of a matrix: its last entry, or its norm if the origin maps to infinity or the
// entries would not fit into the caller's type.
double whole(const Matrix3 &h, const Point &first, double most_of_type) {
    const double *m = h.m, terms = size_of(m[6] * first.x) + size_of(m[7] * first.y) +
                                   size_of(m[6] * first.x + m[7] * first.y + m[8]);
    double largest = 0, square = 0;
    for (double entry : h.m) largest = most(largest, size_of(entry)), square += entry * entry;
    const bool far = size_of(m[8]) <= ROUNDING * terms;
    if (far || !(largest / size_of(m[8]) <= most_of_type)) return __builtin_sqrt(square);
    return m[8];
}

void four_points(const Call &call, int64_t begin, int64_t end) {
    const FitsCall &p = as<FitsCall>(call);
    const double eps = at<const double>(p.limits)[0], most_of_type = at<const double>(p.limits)[1];
    for (int64_t n = begin; n < end; n++) {
        const Point *src = at<const Point>(p.src) + CORNERS * n;
        const Point *dst = at<const Point>(p.dst) + CORNERS * n;
        at<int64_t>(p.good)[n] = are_numbers(src) && are_numbers(dst) && lines(src, eps) == 0 &&
                                 lines(dst, eps) < CORNERS;
        Matrix3 found = product(frame(dst), adjugate(frame(src)));
        found = product(product(shift(dst->x, dst->y), found), shift(-src->x, -src->y));
        const double by = whole(found, *src, most_of_type);
        for (int k = 0; k < 9; k++) at<double>(p.matrix)[9 * n + k] = found.m[k] / by;
    }
}

// Solves a x = b by elimination with column pivots; overwrites both.
void eliminate(double (*a)[8], double *b) {
    for (int i = 0; i < 8; i++) {
        int pivot = i;
        for (int k = i + 1; k < 8; k++)
            if (size_of(a[k][i]) > size_of(a[pivot][i])) pivot = k;
        for (int k = 0; k < 8; k++) {
            const double first = a[i][k];
            a[i][k] = a[pivot][k], a[pivot][k] = first;
        }
        const double first = b[i];
        b[i] = b[pivot], b[pivot] = first;
        for (int k = i + 1; k < 8; k++) {
            const double factor = a[k][i] / a[i][i];
            for (int j = i; j < 8; j++) a[k][j] -= factor * a[i][j];
            b[k] -= factor * b[i];
        }
    }
    for (int i = 7; i >= 0; i--) {
        for (int k = i + 1; k < 8; k++) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
}

// Points relative to the first, scaled to within 1 of it. Returns their divisor.
double about_first(const Point *p, Point *local) {
    double size = 0;
    for (int i = 0; i < CORNERS; i++) {
        local[i] = {p[i].x - p[0].x, p[i].y - p[0].y};
        size = most(size, most(size_of(local[i].x), size_of(local[i].y)));
    }
    size = size > 0 ? size : 1;
    for (int i = 0; i < CORNERS; i++) local[i] = {local[i].x / size, local[i].y / size};
    return size;
}

// The gradient of an implicit function. The matrix is T_d L T_s, where T_s and T_d change to points
// relative to the first ones. L's last entry is 1, since the first points are finite, and its other
// entries solve eight equations.
void four_points_backward(const Call &call, int64_t begin, int64_t end) {
    const FitsCall &p = as<FitsCall>(call);
    const double most_of_type = at<const double>(p.limits)[1];
    for (int64_t n = begin; n < end; n++) {
        const Point *src = at<const Point>(p.src) + CORNERS * n;
        const Point *dst = at<const Point>(p.dst) + CORNERS * n;
        Point s[CORNERS], d[CORNERS], *to_src = at<Point>(p.grad_src) + CORNERS * n,
                                      *to_dst = at<Point>(p.grad_dst) + CORNERS * n;
        const double by_s = about_first(src, s), by_d = about_first(dst, d);
        Matrix3 local = product(frame(d), adjugate(frame(s)));
        const double last = local.m[8];
        for (double &entry : local.m) entry /= last;
        const Matrix3 out_of = {{by_d, 0, dst->x, 0, by_d, dst->y, 0, 0, 1}};
        const Matrix3 into = {{1 / by_s, 0, -src->x / by_s, 0, 1 / by_s, -src->y / by_s, 0, 0, 1}};
        const Matrix3 right = product(local, into), raw = product(out_of, right);
        // backward through the division by the last entry, or by the norm
        const double *g = at<const double>(p.grad) + 9 * n;
        double by = whole(raw, *src, most_of_type);
        const bool by_last = by == raw.m[8];
        if (!by_last && last < 0) by = -by;  // the norm of the matrix before L's division
        double along = 0;
        bool none = true;  // of points that several matrices map, the others would be NaN
        for (int k = 0; k < 9; k++) along += g[k] * raw.m[k] / by, none &= g[k] == 0;
        if (none) {
            for (int i = 0; i < CORNERS; i++) to_src[i] = to_dst[i] = {};
            continue;
        }
        Matrix3 to_raw;
        for (int k = 0; k < 9; k++)
            to_raw.m[k] = (g[k] - along * (by_last ? double(k == 8) : raw.m[k] / by)) / by;
        const Matrix3 to_out = product(to_raw, turned_over(right));
        const Matrix3 to_right = product(turned_over(out_of), to_raw);
        const Matrix3 to_into = product(turned_over(local), to_right);
        Matrix3 to_local = product(to_right, turned_over(into));
        // the equations of L, transposed
        const double *l = local.m;
        double a[8][8] = {}, b[8];
        for (int i = 0; i < CORNERS; i++) {
            const double row[3] = {s[i].x, s[i].y, 1};
            for (int k = 0; k < 3; k++) a[k][i] = a[k + 3][i + 4] = row[k];
            for (int k = 0; k < 2; k++)
                a[k + 6][i] = -d[i].x * row[k], a[k + 6][i + 4] = -d[i].y * row[k];
        }
        for (int k = 0; k < 8; k++) b[k] = to_local.m[k];
        eliminate(a, b);
        Point sum_s = {}, sum_d = {};
        for (int i = 0; i < CORNERS; i++) {
            const double u = b[i], v = b[i + 4], w = l[6] * s[i].x + l[7] * s[i].y + 1;
            to_src[i].x = -(u * (l[0] - d[i].x * l[6]) + v * (l[3] - d[i].y * l[6])) / by_s;
            to_src[i].y = -(u * (l[1] - d[i].x * l[7]) + v * (l[4] - d[i].y * l[7])) / by_s;
            to_dst[i] = {u * w / by_d, v * w / by_d};
            sum_s = {sum_s.x + to_src[i].x, sum_s.y + to_src[i].y};
            sum_d = {sum_d.x + to_dst[i].x, sum_d.y + to_dst[i].y};
        }
        to_src[0].x -= sum_s.x + to_into.m[2] / by_s;
        to_src[0].y -= sum_s.y + to_into.m[5] / by_s;
        to_dst[0].x += to_out.m[2] - sum_d.x;
        to_dst[0].y += to_out.m[5] - sum_d.y;
    }
}

// -- similarity: rotation, uniform scale and translation --

void similarity(const Call &call, int64_t begin, int64_t end) {
    const FitsCall &p = as<FitsCall>(call);
    const double eps = at<const double>(p.limits)[0];
    for (int64_t n = begin; n < end; n++) {
        const Point *src = at<const Point>(p.src) + p.count * n;
        const Point *dst = at<const Point>(p.dst) + p.count * n;
        const double *given = p.weights ? at<const double>(p.weights) + p.count * n : nullptr;
        auto weight = [&](int64_t i) { return given ? given[i] : 1.0; };
        double total = 0;
        Point s = {}, d = {};
        for (int64_t i = 0; i < p.count; i++) {
            const double w = weight(i);
            total += w;
            s = {s.x + w * src[i].x, s.y + w * src[i].y};
            d = {d.x + w * dst[i].x, d.y + w * dst[i].y};
        }
        s = {s.x / total, s.y / total}, d = {d.x / total, d.y / total};
        double length = 0, a = 0, b = 0, apart = 0, reach = 0;
        bool numbers = true;  // `most` may ignore NaN
        for (int64_t i = 0; i < p.count; i++) {
            const double w = weight(i), x = src[i].x - s.x, y = src[i].y - s.y;
            const double u = dst[i].x - d.x, v = dst[i].y - d.y;
            length += w * (x * x + y * y), a += w * (x * u + y * v), b += w * (x * v - y * u);
            if (!(w > 0)) continue;
            numbers &= x == x && y == y;
            apart = most(apart, most(size_of(x), size_of(y)));
            reach = most(reach, most(size_of(src[i].x), size_of(src[i].y)));
        }
        at<int64_t>(p.good)[n] = numbers && apart > SPREAD * eps * reach;
        a /= length, b /= length;
        double *m = at<double>(p.matrix) + 6 * n;
        m[0] = a, m[1] = -b, m[2] = d.x - a * s.x + b * s.y;
        m[3] = b, m[4] = a, m[5] = d.y - b * s.x - a * s.y;
    }
}

}  // namespace

Kernel choose_four_points(const Call &) { return four_points; }

Kernel choose_four_points_backward(const Call &) { return four_points_backward; }

Kernel choose_similarity(const Call &) { return similarity; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
