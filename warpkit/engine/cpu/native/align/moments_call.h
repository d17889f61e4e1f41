// The block of an alignment's sums: see moments.cpp. An "item" is a pair of images; a "unit" is a
// strip of an item's columns.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_MOMENTS_FIELDS(FIELD)                                                              \
    /* arrays: the fixed image and its slopes, the warped moving image, the weights; or 0, or */   \
    /* the slopes of the warped image from which alone steps are made, (channels, h, w) */         \
    FIELD(fixed) FIELD(fixed_x) FIELD(fixed_y) FIELD(seen) FIELD(weight)                           \
    FIELD(line_x) FIELD(line_y)                                                                    \
    /* gain and bias of each channel of each item; one float64: pixels per unit of x and y; the */ \
    /* result, float64 */                                                                          \
    FIELD(gain) FIELD(bias) FIELD(half) FIELD(out)                                                 \
    FIELD(items) FIELD(channels) FIELD(seen_channels) FIELD(height) FIELD(width)                   \
    /* strips of an item, columns of a strip; the number of powers of x and of y, from 0 on; */    \
    /* whether images are float64 */                                                               \
    FIELD(strips) FIELD(strip_width) FIELD(powers) FIELD(doubles)
// clang-format on

namespace warpkit {

struct MomentsCall : Call {
    WARPKIT_MOMENTS_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
