// The positions of a view's pixels in a picture of the sphere, and their gradient to the view's
// matrix: the formulas of engine/definitions/sphere.py on vectors of float64.
#include "shared/kernels.h"
#include "points/lens.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr double PI = 3.14159265358979323846;
constexpr double POLE = 1.0 / (1 << 22);  // both as in engine/definitions/sphere.py
constexpr double FARTHEST = 1e100;

// The angle of vectors from axis c to axis s, -pi to pi; 0 for (0, 0). The quotient of the smaller
// and the larger is reduced by 0, 1/2 or 1, whichever is nearest, so at most 1/4 remains; there,
// nine terms of a minimax polynomial are within 5e-18 of the arctangent.
INLINE Doubles angle_of(Doubles s, Doubles c) {
    constexpr double TERMS[] = {1.0,
                                -0.33333333333332155,
                                0.19999999999495108,
                                -0.14285714202496685,
                                0.11111104225870845,
                                -0.09090588096274248,
                                0.07683471158726171,
                                -0.06523442638256541,
                                0.045989056315131054};
    constexpr double OF_HALF = 0.4636476090008061;
    Doubles a = magnitude(s), b = magnitude(c), none{};
    Doubles low = smaller(a, b), high = larger(a, b);
    Mask steep = a > b, half = 4 * low > high, whole = 4 * low > 3 * high;
    Doubles from = whole ? none + 1 : half ? none + 0.5 : none;
    Doubles offset = whole ? none + PI / 4 : half ? none + OF_HALF : none;
    Doubles u = (low - from * high) / (fma(from, low, high) + (high == 0 ? none + 1 : none));
    Doubles z = u * u, part = none + TERMS[8];
    for (int k = 7; k >= 0; k--) part = fma(part, z, none + TERMS[k]);
    Doubles angle = fma(part, u, offset);
    angle = steep ? PI / 2 - angle : angle;
    angle = c < 0 ? PI - angle : angle;
    return s < 0 ? -angle : angle;
}

// The directions of a row's pixels: the matrix times (x, y, 1). Non-finite ones become the centre.
struct Directions {
    Doubles x, y, z;
    Mask good;

    INLINE Directions(const double *m, Doubles column, Doubles row)
        : x(row_at(m, column, row)), y(row_at(m + 3, column, row)), z(row_at(m + 6, column, row)) {
        good = (magnitude(x) < FARTHEST) & (magnitude(y) < FARTHEST) & (magnitude(z) < FARTHEST);
        x = good ? x : Doubles{}, y = good ? y : Doubles{}, z = good ? z : Doubles{} + 1;
    }
};

// A view that looks backwards uses longitudes shifted by half a turn. Then positions jump by the
// picture's width straight ahead, not in the view's centre, and a tile reads adjacent columns.
void sphere_places(const Call &block, int64_t begin, int64_t end) {
    const SphereCall &call = as<SphereCall>(block);
    const double width = double(call.sphere_width), height = double(call.sphere_height);
    const double nan = __builtin_nan(""), far = __builtin_inf();
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t row = unit % call.height, n = call.width;
        const double *m = at<const double>(call.matrices) + 9 * (unit / call.height);
        const double ahead = m[6] * double(n - 1) / 2 + m[7] * double(call.height - 1) / 2 + m[8];
        const bool turns = ahead < 0 && !call.fixed;
        const double way = turns ? -1 : 1, middle = (width - 1) / 2 + (turns ? width / 2 : 0);
        double *to = at<double>(call.places) + 2 * unit * n;
        Doubles least_row = Doubles{} + far, largest = -least_row;
        for (int64_t column = 0; column < n; column += WIDE) {
            // the last lanes repeat the row's last pixel
            Doubles x = smaller(count_up<Doubles>() + double(column), Doubles{} + double(n - 1));
            Directions d(m, x, Doubles{} + double(row));
            Doubles u = angle_of(way * d.x, way * d.z) * (width / (2 * PI)) + middle;
            u = ((d.x == 0) & (d.z == 0)) ? Doubles{} + (width - 1) / 2 : u;  // as for (0, y, 0)
            Doubles v = angle_of(d.y, root(d.x * d.x + d.z * d.z)) * (height / PI);
            v += (height - 1) / 2;
            least_row = d.good ? smaller(v, least_row) : least_row;
            largest = d.good ? larger(v, largest) : largest;
            u = d.good ? u : Doubles{} + nan, v = d.good ? v : Doubles{} + nan;
            store_some(to + 2 * column, zip(u, v), 2 * (n - column));
        }
        double *ends = at<double>(call.rows) + 2 * unit;
        ends[0] = far, ends[1] = -far;
        for (int k = 0; k < WIDE; k++) {
            ends[0] = least(double(least_row[k]), ends[0]);
            ends[1] = most(double(largest[k]), ends[1]);
        }
    }
}

// The gradient to a matrix, summed over a row's pixels: each of its rows gets the products with x,
// y and 1. It is 0 at a pole.
void sphere_backward(const Call &block, int64_t begin, int64_t end) {
    const SphereCall &call = as<SphereCall>(block);
    const double along_u = double(call.sphere_width) / (2 * PI);
    const double along_v = double(call.sphere_height) / PI;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t row = unit % call.height, n = call.width;
        const double *m = at<const double>(call.matrices) + 9 * (unit / call.height);
        const double *from = at<const double>(call.places) + 2 * unit * n;
        SumsByEights<9> total;
        for (int64_t column = 0; column < n; column += WIDE) {
            Doubles x = count_up<Doubles>() + double(column);
            Directions d(m, x, Doubles{} + double(row));
            Place grad = load_places(from + 2 * column, n - column);  // 0 beyond the row
            Doubles flat = d.x * d.x + d.z * d.z, square = flat + d.y * d.y;
            Mask there = d.good & (flat > POLE * POLE * square);
            flat = there ? flat : Doubles{} + 1, square = there ? square : Doubles{} + 1;
            Doubles turn = there ? grad.x * along_u / flat : Doubles{};
            Doubles rise = there ? grad.y * along_v / (root(flat) * square) : Doubles{};
            Doubles parts[3] = {turn * d.z - rise * d.y * d.x, rise * flat,
                                -turn * d.x - rise * d.y * d.z};
            for (int k = 0; k < 3; k++) {
                total.add(3 * k, column, parts[k] * x);
                total.add(3 * k + 2, column, parts[k]);
            }
        }
        double *sums = at<double>(call.rows) + 9 * unit;
        total.write(sums);
        for (int k = 0; k < 9; k += 3) sums[k + 1] = sums[k + 2] * double(row);
    }
}

}  // namespace

Kernel choose_sphere_places(const Call &) { return sphere_places; }

Kernel choose_sphere_backward(const Call &) { return sphere_backward; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
