// The block for mapping pixels of a view to positions in a sphere's picture, and its gradient; a
// unit is a row of a view.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_SPHERE_FIELDS(FIELD)                                                            \
    /* arrays, float64: matrices (items, 3, 3) from pixels to directions; positions (items, */  \
    /* height, width, 2), or their gradient; for each row of a view, the smallest and the */    \
    /* largest row of the picture that it reads, or its nine sums */                            \
    FIELD(matrices) FIELD(places) FIELD(rows)                                                   \
    /* the sizes of a view and of the sphere's picture; whether longitudes are never shifted */ \
    FIELD(height) FIELD(width) FIELD(sphere_height) FIELD(sphere_width) FIELD(fixed)
// clang-format on

namespace warpkit {

struct SphereCall : Call {
    WARPKIT_SPHERE_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
