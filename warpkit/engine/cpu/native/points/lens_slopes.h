// The distorted position of a direction, and its derivatives with respect to the direction and to
// each coefficient: `bend` and `slopes` of definitions/lens_models.py, operation by operation.
#pragma once
#include "points/lens.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// A model's radial part at q = x^2 + y^2: the factor of (x, y), its derivative with respect to q,
// and numbers that the coefficients' derivatives need: for a fisheye the squared angle and the
// angle over r, for a brown lens the denominator.
struct Radial {
    Doubles factor, slope, square, ratio, bottom;
};

struct Bent {
    Doubles u, v, ux, uy, vx, vy;
    Radial radial;

    INLINE Doubles determinant() const { return ux * vy - uy * vx; }
};

INLINE Radial brown_radial(const double *k, int64_t n, Doubles q) {
    Doubles top = 1 + (k[1] * q + k[0]) * q, slope = 2 * k[1] * q + k[0];
    if (n >= 5) {
        top = 1 + ((k[4] * q + k[1]) * q + k[0]) * q;
        slope = (3 * k[4] * q + 2 * k[1]) * q + k[0];
    }
    if (n < 8) return {top, slope, Doubles{}, Doubles{}, Doubles{} + 1};
    constexpr double POLE = 1e-100;  // instead of 0, as in definitions/lens_models.py
    Doubles bottom = 1 + ((k[7] * q + k[6]) * q + k[5]) * q;
    bottom = bottom == 0 ? Doubles{} + POLE : bottom;
    Doubles factor = top / bottom;
    slope = (slope - factor * ((3 * k[7] * q + 2 * k[6]) * q + k[5])) / bottom;
    return {factor, slope, Doubles{}, Doubles{}, bottom};
}

INLINE Radial fisheye_radial(const double *k, Doubles q) {
    constexpr double SERIES_BELOW = 1e-2;
    Mask small = q < SERIES_BELOW;
    Doubles ratio{}, ratio_slope{};
    if (any(small)) {
        Doubles near = small ? q : Doubles{};
        for (int i = 8; i >= 0; i--) {
            double sign = (i % 2 ? -1.0 : 1.0) / (2 * i + 1);
            ratio = ratio * near + sign;
            if (i > 0) ratio_slope = ratio_slope * near + i * sign;
        }
    }
    if (any(~small)) {
        Doubles far = small ? Doubles{} + 1 : q, r = root(far), angle = arctangent(r) / r;
        ratio = small ? ratio : angle;
        ratio_slope = small ? ratio_slope : (1 / (1 + far) - angle) / (2 * far);
    }
    Doubles square = q * ratio * ratio;
    Doubles square_slope = ratio * ratio + 2 * q * ratio * ratio_slope;
    Doubles bent = 1 + (((k[3] * square + k[2]) * square + k[1]) * square + k[0]) * square;
    Doubles bent_slope = ((4 * k[3] * square + 3 * k[2]) * square + 2 * k[1]) * square + k[0];
    Doubles slope = ratio_slope * bent + ratio * bent_slope * square_slope;
    return {ratio * bent, slope, square, ratio, Doubles{}};
}

// For a lens with n coefficients, without the tilt of its sensor.
INLINE Bent bent(const double *k, int64_t n, bool is_fisheye, Place p) {
    Doubles xx = p.x * p.x, yy = p.y * p.y, q = xx + yy;
    Radial r = is_fisheye ? fisheye_radial(k, q) : brown_radial(k, n, q);
    Doubles u = p.x * r.factor, v = p.y * r.factor, cross = 2 * p.x * p.y * r.slope;
    Doubles ux = r.factor + 2 * p.x * p.x * r.slope, vy = r.factor + 2 * p.y * p.y * r.slope;
    if (is_fisheye) return {u, v, ux, cross, cross, vy, r};
    Doubles xy = 2 * p.x * p.y, both = 2 * k[2] * p.x + 2 * k[3] * p.y;
    u = u + k[2] * xy + k[3] * (q + 2 * xx);
    v = v + k[2] * (q + 2 * yy) + k[3] * xy;
    ux = ux + 2 * k[2] * p.y + 6 * k[3] * p.x;
    vy = vy + 6 * k[2] * p.y + 2 * k[3] * p.x;
    Doubles uy = cross + both, vx = cross + both;
    if (n >= 12) {
        u = u + k[8] * q + k[9] * q * q;
        v = v + k[10] * q + k[11] * q * q;
        Doubles s = 2 * (k[8] + 2 * k[9] * q), t = 2 * (k[10] + 2 * k[11] * q);
        ux += p.x * s, uy += p.y * s, vx += p.x * t, vy += p.y * t;
    }
    return {u, v, ux, uy, vx, vy, r};
}

// Calls add(i, v) with what the gradient (du, dv) of the distorted p contributes to that of
// coefficient i.
template <class Add>
INLINE void add_coefficients(int64_t n, bool is_fisheye, Place p, const Radial &r, Doubles du,
                             Doubles dv, Add add) {
    Doubles xx = p.x * p.x, yy = p.y * p.y, q = xx + yy, along = du * p.x + dv * p.y;
    if (is_fisheye) {
        Doubles part = along * r.ratio;
        for (int i = 0; i < 4; i++) {
            part = part * r.square;
            add(i, part);
        }
        return;
    }
    Doubles top = along / r.bottom, xy = 2 * p.x * p.y;
    add(0, top * q), add(1, top * q * q);
    add(2, du * xy + dv * (q + 2 * yy)), add(3, du * (q + 2 * xx) + dv * xy);
    if (n >= 5) add(4, top * q * q * q);
    if (n >= 8) {
        Doubles low = -top * r.factor;
        add(5, low * q), add(6, low * q * q), add(7, low * q * q * q);
    }
    if (n >= 12) add(8, du * q), add(9, du * q * q), add(10, dv * q), add(11, dv * q * q);
}

// A unit's sums, in the order of `LensNumbers`' fields.
using LensSums = SumsByEights<int(sizeof(LensNumbers) / sizeof(double))>;

// The positions of `LensNumbers`' fields.
enum LensPlace { AT_FX, AT_FY, AT_CX, AT_CY, AT_K, AT_TILT = AT_K + 14, AT_MATRIX = AT_TILT + 18 };

// The backward pass of the perspective of a tilted sensor. Returns the gradient with respect to p.
template <class Sums>
INLINE Place through_tilt(const double *tilt, Place p, Place grad, int64_t place, Sums &sums) {
    Doubles a = row_at(tilt, p.x, p.y), b = row_at(tilt + 3, p.x, p.y);
    Doubles w = row_at(tilt + 6, p.x, p.y);
    Mask none = w == 0;  // the forward pass divides by 1 there
    Doubles per = 1 / (none ? Doubles{} + 1 : w);
    Doubles rows[3] = {grad.x * per, grad.y * per, {}};
    rows[2] = -(rows[0] * a + rows[1] * b) * per;
    rows[2] = none ? Doubles{} : rows[2];
    Place found{};
    for (int i = 0; i < 3; i++) {
        sums.add(AT_TILT + 3 * i, place, rows[i] * p.x);
        sums.add(AT_TILT + 3 * i + 1, place, rows[i] * p.y);
        sums.add(AT_TILT + 3 * i + 2, place, rows[i]);
        found.x += rows[i] * tilt[3 * i], found.y += rows[i] * tilt[3 * i + 1];
    }
    return found;
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
