// The block for mapping pixels of a view to positions in a sphere's picture, and its gradient; a
// unit is a row of a view.
#pragma once
#include "call.h"

// clang-format off
#define WARPKIT_SPHERE_FIELDS(FIELD)                                                               \
    /* arrays, float64: matrices (items, 3, 3) from pixels to directions; places (items, height,   \
       width, 2), or their gradient; the least and the largest row that a row looks at, or the     \
       nine sums of a row */                                                                       \
    FIELD(matrices) FIELD(places) FIELD(rows)                                                      \
    /* of a view, and of the sphere's picture; columns begin at -1/2 whatever a view looks at */   \
    FIELD(height) FIELD(width) FIELD(sphere_height) FIELD(sphere_width) FIELD(fixed)
// clang-format on

namespace warpkit {

struct SphereCall : Call {
    WARPKIT_SPHERE_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
