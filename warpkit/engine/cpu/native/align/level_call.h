// The block of an alignment's pyramid level: see level.cpp. A unit is an item, of one picture.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_LEVEL_FIELDS(FIELD)                                                              \
    /* arrays: pictures; these smoothed, or statistics (float64); slopes of the smoothed */      \
    /* pictures, or of the given ones if no smoothed ones are wanted; the */                     \
    /* standardised pictures and the means and deviations for them; the pictures at half */      \
    /* their size; each or 0 if not wanted; the weights of a pixel and of its neighbours on */   \
    /* one side, float64 */                                                                      \
    FIELD(image) FIELD(out) FIELD(out_x) FIELD(out_y)                                            \
    FIELD(whole) FIELD(means) FIELD(deviations) FIELD(half) FIELD(weights)                       \
    /* the pixels' weights, which become the last plane of `out` and `whole`, or 0; the */       \
    /* numbers from an item's to the next one's */                                               \
    FIELD(pixel_weights) FIELD(weights_size)                                                     \
    /* channels of an item; planes of an item in `out`; neighbours on each side */               \
    FIELD(channels) FIELD(out_planes) FIELD(height) FIELD(width) FIELD(reach) FIELD(doubles)
// clang-format on

namespace warpkit {

struct LevelCall : Call {
    WARPKIT_LEVEL_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
