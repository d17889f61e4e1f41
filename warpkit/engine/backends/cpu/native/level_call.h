// The block of an alignment's pyramid level: see level.cpp. A unit is a picture of one channel.
#pragma once
#include "call.h"

// clang-format off
#define WARPKIT_LEVEL_FIELDS(FIELD)                                                              \
    /* arrays: pictures; the smoothed pictures; their slopes, or 0 if not wanted; the weights */ \
    /* of a pixel and of its neighbours on one side, float64 */                                  \
    FIELD(image) FIELD(out) FIELD(out_x) FIELD(out_y) FIELD(weights)                             \
    /* channels of an item; planes of an item in `out`; neighbours on each side */               \
    FIELD(channels) FIELD(out_planes) FIELD(height) FIELD(width) FIELD(reach) FIELD(doubles)
// clang-format on

namespace warpkit {

struct LevelCall : Call {
    WARPKIT_LEVEL_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
