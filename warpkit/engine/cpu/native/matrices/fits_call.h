// The block of calls that fit matrices to pairs of points: see fits.cpp and homography.cpp. A unit
// is an item of the batch.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_FITS_FIELDS(FIELD)                                                             \
    /* arrays of float64: points (items, count, 2); weights; matrices and their gradients */   \
    FIELD(src) FIELD(dst) FIELD(weights) FIELD(matrix) FIELD(grad)                             \
    /* gradients of the points; int64: whether an item has a solution; float64: eps and the */ \
    /* largest number of the caller's type */                                                  \
    FIELD(grad_src) FIELD(grad_dst) FIELD(good) FIELD(limits) FIELD(count)
// clang-format on

namespace warpkit {

struct FitsCall : Call {
    WARPKIT_FITS_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
