// Projects 3D points to pixels, with the Jacobian with respect to pose, camera and lens:
// cv2.projectPoints and cv2.fisheye.projectPoints, with OpenCV's operations in OpenCV's order.
//
// A register of points is projected at a time. Each derivative of these pixels is a column of the
// Jacobian. Its rows are stored point by point: first the row of x, then that of y.
#include "shared/kernels.h"
#include "points/lens.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int MOST_COLUMNS = 24;

struct Solid {
    Doubles x, y, z;
};

// The derivatives of a register of pixels. `add` appends a column.
struct Slopes {
    Doubles of[2][MOST_COLUMNS];
    int count = 0;

    INLINE void add(Doubles u, Doubles v) { of[0][count] = u, of[1][count] = v, count++; }

    INLINE void store_rows(double *to, int64_t points) const {
        for (int64_t n = 0; n < points; n++)
            for (int axis = 0; axis < 2; axis++)
                for (int k = 0; k < count; k++) *to++ = of[axis][k][n];
    }
};

// The matrix of a rotation vector, and its derivatives with respect to the vector: the operations
// of `turn_of` in engine/arithmetic/opencv_projection.py.
struct Turn {
    double of[9], slopes[3][9];

    explicit Turn(const double *v) : of{}, slopes{} {
        constexpr double EPSILON = 2.220446049250313e-16;
        // where the matrix of a cross product has -1 and 1
        constexpr int LOW[] = {5, 6, 1}, HIGH[] = {7, 2, 3};
        const double angle = __builtin_sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        if (angle < EPSILON) {
            of[0] = of[4] = of[8] = 1;
            for (int i = 0; i < 3; i++) slopes[i][LOW[i]] = -1, slopes[i][HIGH[i]] = 1;
            return;
        }
        const double c = __builtin_cos(angle), s = __builtin_sin(angle), per = 1 / angle;
        const double c1 = 1 - c, r[] = {v[0] * per, v[1] * per, v[2] * per};
        const double cross[] = {0, -r[2], r[1], r[2], 0, -r[0], -r[1], r[0], 0};
        for (int k = 0; k < 9; k++)
            of[k] = c * (k % 4 == 0) + c1 * (r[k / 3] * r[k % 3]) + s * cross[k];
        for (int i = 0; i < 3; i++) {
            const double a0 = -s * r[i], a1 = (s - 2 * c1 * per) * r[i], a2 = c1 * per;
            const double a3 = (c - s * per) * r[i], a4 = s * per;
            for (int k = 0; k < 9; k++) {
                const double both = (k / 3 == i) * r[k % 3] + (k % 3 == i) * r[k / 3];
                const double sign = (k == HIGH[i]) - (k == LOW[i]);
                slopes[i][k] = a0 * (k % 4 == 0) + a1 * (r[k / 3] * r[k % 3]) + a2 * both +
                               a3 * cross[k] + a4 * sign;
            }
        }
    }
};

INLINE Doubles along(const double *row, Solid p) {
    return row[0] * p.x + row[1] * p.y + row[2] * p.z;
}

// Rotates and shifts the points, a register at a time, and passes them to `function` with their
// derivatives with respect to the rotation vector. Stores the resulting pixels and columns.
template <class T, class Function>
INLINE void each_point(const Call &block, int64_t begin, int64_t end, Function function) {
    const MapsCall &call = as<MapsCall>(block);
    const ProjectionNumbers &numbers = *at<ProjectionNumbers>(call.numbers);
    Turn turn(numbers.vector);
    if (call.projects) memcpy(turn.of, numbers.turn, sizeof turn.of);
    const int64_t stop = least(end * POINTS_AT_ONCE, call.count), columns = call.channels;
    for (int64_t i = begin * POINTS_AT_ONCE; i < stop; i += WIDE) {
        const int64_t n = least<int64_t>(stop - i, WIDE);
        const T *from = at<T>(call.first) + 3 * i;
        double given[3][WIDE] = {};
        for (int64_t k = 0; k < n; k++)
            for (int axis = 0; axis < 3; axis++) given[axis][k] = double(from[3 * k + axis]);
        const Solid p{load<Doubles>(given[0]), load<Doubles>(given[1]), load<Doubles>(given[2])};
        const Solid seen{along(turn.of, p) + numbers.shift[0],
                         along(turn.of + 3, p) + numbers.shift[1],
                         along(turn.of + 6, p) + numbers.shift[2]};
        Solid turning[3];
        for (int k = 0; k < 3; k++) {
            const double *by = turn.slopes[k];
            turning[k] = {along(by, p), along(by + 3, p), along(by + 6, p)};
        }
        Slopes slopes;
        store_places(at<T>(call.out) + 2 * i, function(numbers, seen, turning, slopes), n);
        slopes.store_rows(at<double>(call.out_second) + 2 * i * columns, n);
    }
}

// -- brown lenses --

// A direction projected onto a tilted sensor, and the derivatives with respect to the direction.
struct Tilted {
    Place p;
    Doubles by[2][2], per_squared, a, b, w;

    INLINE Tilted(const double *m, Place q)
        : a(row_at(m, q.x, q.y)), b(row_at(m + 3, q.x, q.y)), w(row_at(m + 6, q.x, q.y)) {
        const Doubles per = w == 0 ? Doubles{} + 1 : 1 / w;
        p = {per * a, per * b}, per_squared = per * per;
        for (int k = 0; k < 2; k++) {
            by[0][k] = (m[k] * w - m[6 + k] * a) * per_squared;
            by[1][k] = (m[3 + k] * w - m[6 + k] * b) * per_squared;
        }
    }

    INLINE Place change(Place q) const {
        return {by[0][0] * q.x + by[0][1] * q.y, by[1][0] * q.x + by[1][1] * q.y};
    }

    // The derivative with respect to a tilt angle, without the factor `per_squared`. m: the
    // derivative of the tilt's matrix with respect to that angle.
    INLINE Place by_angle(const double *m, Place q) const {
        const Doubles da = row_at(m, q.x, q.y), db = row_at(m + 3, q.x, q.y);
        const Doubles dw = row_at(m + 6, q.x, q.y);
        return {da * w - dw * a, db * w - dw * b};
    }
};

// `numbers.extra` is a fixed ratio fx / fy, or 0.
INLINE Place brown_pixels(const ProjectionNumbers &numbers, int64_t coefficients, Solid seen,
                          const Solid *turning, Slopes &slopes) {
    const double *k = numbers.k, fx = numbers.fx, fy = numbers.fy;
    const Doubles zero{}, one = zero + 1;
    const Doubles per = seen.z == 0 ? one : 1 / seen.z, x = seen.x * per, y = seen.y * per;
    const Doubles r2 = x * x + y * y, r4 = r2 * r2, r6 = r4 * r2;
    const Doubles a1 = 2 * x * y, a2 = r2 + 2 * x * x, a3 = r2 + 2 * y * y;
    const Doubles top = 1 + k[0] * r2 + k[1] * r4 + k[4] * r6;
    const Doubles below = 1 / (1 + k[5] * r2 + k[6] * r4 + k[7] * r6);
    const Place bent{x * top * below + k[2] * a1 + k[3] * a2 + k[8] * r2 + k[9] * r4,
                     y * top * below + k[2] * a3 + k[3] * a1 + k[10] * r2 + k[11] * r4};
    const bool tilts = coefficients == 14;
    const Tilted tilted(numbers.tilt, tilts ? bent : Place{});
    const Place shown = tilts ? tilted.p : bent;

    auto add = [&](Doubles u, Doubles v) {
        const Place changed = tilts ? tilted.change({u, v}) : Place{u, v};
        slopes.add(fx * changed.x, fy * changed.y);
    };
    // The change of the distorted direction for a change of x and y, without the thin prism, whose
    // terms OpenCV adds in one order for the rotation and in another for the shift.
    auto moved = [&](Doubles dx, Doubles dy, Doubles dr2, Doubles dtop, Doubles dbelow) {
        const Doubles da1 = 2 * (x * dy + y * dx);
        return Place{dx * top * below + x * dtop * below + x * top * dbelow + k[2] * da1 +
                         k[3] * (dr2 + 4 * x * dx),
                     dy * top * below + y * dtop * below + y * top * dbelow +
                         k[2] * (dr2 + 4 * y * dy) + k[3] * da1};
    };
    for (int i = 0; i < 3; i++) {
        const Doubles dx = per * (turning[i].x - x * turning[i].z);
        const Doubles dy = per * (turning[i].y - y * turning[i].z), dr2 = 2 * x * dx + 2 * y * dy;
        const Place p = moved(dx, dy, dr2, (k[0] + 2 * k[1] * r2 + 3 * k[4] * r4) * dr2,
                              -below * below * (k[5] + 2 * k[6] * r2 + 3 * k[7] * r4) * dr2);
        add(p.x + (k[8] + 2 * r2 * k[9]) * dr2, p.y + (k[10] + 2 * r2 * k[11]) * dr2);
    }
    const Doubles by_shift[3][2] = {{per, zero}, {zero, per}, {-x * per, -y * per}};
    for (int i = 0; i < 3; i++) {
        const Doubles dx = by_shift[i][0], dy = by_shift[i][1], dr2 = 2 * x * dx + 2 * y * dy;
        const Doubles dtop = k[0] * dr2 + 2 * k[1] * r2 * dr2 + 3 * k[4] * r4 * dr2;
        const Doubles bottom = k[5] * dr2 + 2 * k[6] * r2 * dr2 + 3 * k[7] * r4 * dr2;
        const Place p = moved(dx, dy, dr2, dtop, -below * below * bottom);
        add(p.x + k[8] * dr2 + 2 * r2 * k[9] * dr2, p.y + k[10] * dr2 + 2 * r2 * k[11] * dr2);
    }
    if (numbers.extra != 0) slopes.add(zero, zero), slopes.add(shown.x * numbers.extra, shown.y);
    else slopes.add(shown.x, zero), slopes.add(zero, shown.y);
    slopes.add(one, zero), slopes.add(zero, one);
    add(x * below * r2, y * below * r2), add(x * below * r4, y * below * r4);
    add(a1, a3), add(a2, a1);
    if (coefficients >= 5) add(x * below * r6, y * below * r6);
    if (coefficients >= 8)
        for (Doubles power : {r2, r4, r6})
            add(x * top * -below * below * power, y * top * -below * below * power);
    if (coefficients >= 12) add(r2, zero), add(r4, zero), add(zero, r2), add(zero, r4);
    if (tilts)
        for (const double *by : {numbers.tilt_by_x, numbers.tilt_by_y}) {
            const Place more = tilted.by_angle(by, bent);
            slopes.add(fx * tilted.per_squared * more.x, fy * tilted.per_squared * more.y);
        }
    return {shown.x * fx + numbers.cx, shown.y * fy + numbers.cy};
}

template <class T> void projected(const Call &block, int64_t begin, int64_t end) {
    const int64_t n = as<MapsCall>(block).coefficients;
    each_point<T>(block, begin, end,
                  [n](const ProjectionNumbers &numbers, Solid seen, const Solid *turning,
                      Slopes &slopes) { return brown_pixels(numbers, n, seen, turning, slopes); });
}

// -- fisheyes --

// `numbers.extra` is the skew.
INLINE Place fisheye_pixels(const ProjectionNumbers &numbers, Solid seen, const Solid *turning,
                            Slopes &slopes) {
    constexpr double LEAST = 2.2250738585072014e-308, NEAR = 1e-8;
    const double *k = numbers.k, fx = numbers.fx, fy = numbers.fy, skew = numbers.extra;
    const Doubles zero{}, one = zero + 1, z = magnitude(seen.z) < LEAST ? one : seen.z;
    const Doubles x = seen.x / z, y = seen.y / z, r2 = x * x + y * y, r = root(r2);
    const Doubles angle = arctangent(r), t2 = angle * angle, t3 = t2 * angle, t4 = t2 * t2;
    const Doubles t5 = t4 * angle, t6 = t3 * t3, t7 = t6 * angle, t8 = t4 * t4, t9 = t8 * angle;
    const Doubles bent = angle + k[0] * t3 + k[1] * t5 + k[2] * t7 + k[3] * t9;
    const Mask far = r > NEAR;
    const Doubles per_r = far ? 1 / r : one, scale = far ? bent * per_r : one;
    const Place there{x * scale, y * scale};
    const Place shown{there.x + skew * there.y, there.y};

    slopes.add(shown.x, zero), slopes.add(zero, shown.y);
    slopes.add(one, zero), slopes.add(zero, one);
    for (Doubles power : {t3, t5, t7, t9}) {
        const Doubles by = per_r * power, u = x * by, v = y * by;
        slopes.add(fx * (u + skew * v), fy * v);
    }
    const Doubles per = 1 / z, by_r2 = far ? 1 / (2 * r) : one, by_r = 1 / (1 + r2);
    const Doubles steep = 1 + 3 * k[0] * t2 + 5 * k[1] * t4 + 7 * k[2] * t6 + 9 * k[3] * t8;
    auto add_move = [&](Doubles dx, Doubles dy) {
        const Doubles dr = by_r2 * (2 * x * dx + 2 * y * dy);
        const Doubles dscale = per_r * (steep * (by_r * dr) - scale * dr);
        const Doubles u = x * dscale + scale * dx, v = y * dscale + scale * dy;
        slopes.add(fx * (u + skew * v), fy * v);
    };
    for (int i = 0; i < 3; i++)
        add_move(per * turning[i].x - x / z * turning[i].z,
                 per * turning[i].y - y / z * turning[i].z);
    add_move(per, zero), add_move(zero, per), add_move(-(x / z), -(y / z));
    slopes.add(fx * there.y, zero);
    return {shown.x * fx + numbers.cx, shown.y * fy + numbers.cy};
}

template <class T> void fisheye_projected(const Call &block, int64_t begin, int64_t end) {
    each_point<T>(block, begin, end,
                  [](const ProjectionNumbers &numbers, Solid seen, const Solid *turning,
                     Slopes &slopes) { return fisheye_pixels(numbers, seen, turning, slopes); });
}

}  // namespace

Kernel choose_projected(const Call &call) {
    return as<MapsCall>(call).double_points ? projected<double> : projected<float>;
}

Kernel choose_fisheye_projected(const Call &call) {
    return as<MapsCall>(call).double_points ? fisheye_projected<double> : fisheye_projected<float>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
