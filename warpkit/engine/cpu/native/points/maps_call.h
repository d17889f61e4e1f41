// The block of calls that compute or convert maps and lists of points: maps of lenses and of polar
// pictures, cv2's kinds of maps. A unit is a row of a map, or `POINTS_AT_ONCE` points of a list.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_MAPS_FIELDS(FIELD)                                                                \
    /* arrays: numbers (float64, see the structs below), inputs, outputs */                       \
    FIELD(numbers) FIELD(first) FIELD(second) FIELD(out) FIELD(out_second)                        \
    /* the size of a map; the count of points, or of a polar picture's rows; the numbers of a */  \
    /* point, the columns of a Jacobian, or the numbers of a block (polar.cpp) */                 \
    FIELD(height) FIELD(width) FIELD(count) FIELD(channels)                                       \
    /* codes of `MapKind`; the number of coefficients; whether the lens is a fisheye */           \
    FIELD(from) FIELD(to) FIELD(coefficients) FIELD(fisheye)                                      \
    /* whether points are float64; the largest number of steps; whether a small error ends the */ \
    /* iteration; whether points are projected to a view, or a rotation is given as a matrix */   \
    FIELD(double_points) FIELD(steps) FIELD(ends_by_error) FIELD(projects)                        \
    /* whether angles are in degrees; an int64 that becomes 1 if an angle is too large */         \
    FIELD(degrees) FIELD(far)
// clang-format on

namespace warpkit {

struct MapsCall : Call {
    WARPKIT_MAPS_FIELDS(WARPKIT_FIELD)
};

// Two planes of float32; pairs of float32; int16 pixels with uint16 1/32 parts; int16 pixels alone;
// pairs of float32 with the values of pixels and 1/32 parts.
enum MapKind { PLANES, POINT_PAIRS, FIXED, WHOLE, STEPS };

// A camera and its lens. Missing coefficients are 0.
struct LensNumbers {
    double fx, fy, cx, cy;
    double k[14];      // k1 k2 p1 p2 k3 k4 k5 k6 s1 s2 s3 s4, tilt; for a fisheye k1 k2 k3 k4
    double tilt[9];    // a tilted sensor's matrix for directions, if there are 14 coefficients
    double untilt[9];  // its inverse
    double matrix[9];  // for a map from pixels to rays, for points from directions to pixels
    double error;      // the error that ends an iteration; in `fisheye_shown` the skew
};

// A scene's pose, a camera and its lens.
struct ProjectionNumbers {
    double fx, fy, cx, cy;
    double k[14];         // as in `LensNumbers`
    double tilt[9];       // as there, and its derivatives with respect to both angles
    double tilt_by_x[9];
    double tilt_by_y[9];
    double vector[3];  // the rotation vector, with respect to which derivatives are computed
    double turn[9];    // the rotation matrix, read if the call `projects`
    double shift[3];
    double extra;  // the skew of a fisheye; for other lenses a fixed fx / fy, or 0
};

constexpr int64_t POINTS_AT_ONCE = 1024;

}  // namespace warpkit
