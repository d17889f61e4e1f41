// The block of lens distortion with gradients: fields of points, and undistorted lists of points.
// An "item" is a lens of a batch; a unit is a row of an item's field, or `PLACES_AT_ONCE` points of
// an item's list.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_LENS_FIELDS(FIELD)                                                              \
    /* arrays of float64: `LensNumbers` of each item; distorted points, or their directions */  \
    FIELD(numbers) FIELD(x) FIELD(y)                                                            \
    /* gradients of a field (rows, width, 2) or a list; outputs; bool: whether a point has a */ \
    /* solution */                                                                              \
    FIELD(grad_x) FIELD(grad_y) FIELD(out_x) FIELD(out_y) FIELD(found)                          \
    /* the sums of each unit, as `LensNumbers`; the `Reach` of each item */                     \
    FIELD(sums) FIELD(reach)                                                                    \
    FIELD(items) FIELD(height) FIELD(width) FIELD(count)                                        \
    /* as in maps_call.h; whether a field includes points behind the camera, as OpenCV's do */  \
    FIELD(coefficients) FIELD(fisheye) FIELD(opencv)
// clang-format on

namespace warpkit {

struct LensCall : Call {
    WARPKIT_LENS_FIELDS(WARPKIT_FIELD)
};

// The limits of a lens's radial part.
struct Reach {
    double limit;   // x^2 + y^2 where it folds; infinite with other distortions
    double radius;  // the distorted radius there
    double radial;  // 1 if there is no other distortion
};

constexpr int64_t PLACES_AT_ONCE = 1024;

}  // namespace warpkit
