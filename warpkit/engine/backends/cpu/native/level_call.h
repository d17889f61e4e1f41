// The block of a level of an alignment's pyramids: see level.cpp. A unit is a picture of one channel.
#pragma once
#include "call.h"

// clang-format off
#define WARPKIT_LEVEL_FIELDS(FIELD)                                                              \
    /* arrays: pictures; the smoothed ones, and their slopes, if they are wanted (0); weights of */ \
    /* a pixel and its neighbours to each side, float64 */                                       \
    FIELD(image) FIELD(out) FIELD(out_x) FIELD(out_y) FIELD(weights)                             \
    /* of an item; planes of one in `out`; neighbours to each side */                            \
    FIELD(channels) FIELD(out_planes) FIELD(height) FIELD(width) FIELD(reach) FIELD(doubles)
// clang-format on

namespace warpkit {

struct LevelCall : Call {
    WARPKIT_LEVEL_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
