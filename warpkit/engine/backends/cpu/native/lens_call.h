// The block of a lens's formulas with their derivatives: fields of points and their gradient, and
// lists of points that are undistorted. An "item" is a lens of a batch; a unit is a row of an
// item's field, or `PLACES_AT_ONCE` points of an item's list.
#pragma once
#include "call.h"

// clang-format off
#define WARPKIT_LENS_FIELDS(FIELD)                                                               \
    /* arrays of float64: `LensNumbers` of each item; directions, or what is shown of them */    \
    FIELD(numbers) FIELD(x) FIELD(y)                                                             \
    /* gradients of a field (rows, width, 2) or a list; what is written; bool: what was found */ \
    FIELD(grad_x) FIELD(grad_y) FIELD(out_x) FIELD(out_y) FIELD(found)                           \
    /* sums of a unit, `LensNumbers` each; of each item where its radial part ends: `Reach` */   \
    FIELD(sums) FIELD(reach)                                                                     \
    FIELD(items) FIELD(height) FIELD(width) FIELD(count)                                         \
    /* as in maps_call.h; a field as OpenCV has it, behind the camera too */                     \
    FIELD(coefficients) FIELD(fisheye) FIELD(opencv)
// clang-format on

namespace warpkit {

struct LensCall : Call {
    WARPKIT_LENS_FIELDS(WARPKIT_FIELD)
};

// The part of a lens that is symmetric about the centre.
struct Reach {
    double limit;   // x^2 + y^2 where it folds; infinite with other distortions
    double radius;  // the distorted radius there
    double radial;  // 1 if there is no other distortion
};

constexpr int64_t PLACES_AT_ONCE = 1024;

}  // namespace warpkit
