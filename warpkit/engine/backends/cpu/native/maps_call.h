// The block of what makes or converts maps and points: lenses, cv2's kinds of maps, polar pictures,
// and lists of points. A unit is a row of a map, or `POINTS_AT_ONCE` points of a list.
#pragma once
#include "call.h"

// clang-format off
#define WARPKIT_MAPS_FIELDS(FIELD)                                                                 \
    /* arrays: numbers (float64) as the task's struct says; what is read; what is written */       \
    FIELD(numbers) FIELD(first) FIELD(second) FIELD(out) FIELD(out_second)                         \
    /* of a map, or of a list of points and the numbers of each, and of each result; of the */     \
    /* picture around a point */                                                                   \
    FIELD(height) FIELD(width) FIELD(count) FIELD(channels) FIELD(rows)                            \
    /* codes of `MapKind`; a lens's coefficients, and whether it is a fisheye's */                 \
    FIELD(from) FIELD(to) FIELD(coefficients) FIELD(fisheye)                                       \
    /* points are float64; steps of an iteration, which ends by an error, too; a view follows, */  \
    /* or a rotation is given as a matrix */                                                       \
    FIELD(double_points) FIELD(steps) FIELD(ends_by_error) FIELD(projects)                          \
    /* angles are in degrees; where it is said that some are too large */                           \
    FIELD(degrees) FIELD(far)
// clang-format on

namespace warpkit {

struct MapsCall : Call {
    WARPKIT_MAPS_FIELDS(WARPKIT_FIELD)
};

// Two planes of float32; pairs of float32; int16 pixels with uint16 for 1/32 parts; the first of
// these alone; pairs of float32 that hold what the pixels and their parts would.
enum MapKind { PLANES, POINT_PAIRS, FIXED, WHOLE, STEPS };

// A camera and its lens. Coefficients that it does not have are 0.
struct LensNumbers {
    double fx, fy, cx, cy;
    double k[14];      // k1 k2 p1 p2 k3 k4 k5 k6 s1 s2 s3 s4, tilt; of a fisheye k1 k2 k3 k4
    double tilt[9];    // what the tilted sensor does to directions: read with 14 coefficients
    double untilt[9];  // its inverse
    double matrix[9];  // of a map: from pixels to rays; of points: from directions to pixels
    double error;      // of an iteration that ends by it
};

// A scene's pose, a camera and its lens.
struct ProjectionNumbers {
    double fx, fy, cx, cy;
    double k[14];         // as a lens's
    double tilt[9];       // with 14 coefficients: what the tilted sensor does to directions,
    double tilt_by_x[9];  // and its derivatives by both angles
    double tilt_by_y[9];
    double vector[3];  // of the rotation, whose derivatives are by it;
    double turn[9];    // the rotation itself, where the call `projects`
    double shift[3];
    double extra;  // of a fisheye the skew, of others a fixed fx / fy, or 0
};

constexpr int64_t POINTS_AT_ONCE = 1024;

}  // namespace warpkit
