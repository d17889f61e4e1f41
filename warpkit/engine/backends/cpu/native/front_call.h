// The block of the nearest pixels that land on each target; a unit is an item.
#pragma once
#include "call.h"

// clang-format off
#define WARPKIT_FRONT_FIELDS(FIELD)                                                           \
    /* arrays: offsets (height, width, 2) and depths (height, width), a table of each item's */ \
    /* first number in both; working memory, float64, and results, int64, (to_height, */     \
    /* to_width) for each item */                                                             \
    FIELD(flow) FIELD(depth) FIELD(flow_starts) FIELD(depth_starts) FIELD(nearest) FIELD(out) \
    FIELD(height) FIELD(width) FIELD(to_height) FIELD(to_width)                               \
    /* whether offsets and depths are float64 */                                              \
    FIELD(wide_flow) FIELD(wide_depth)
// clang-format on

namespace warpkit {

struct FrontCall : Call {
    WARPKIT_FRONT_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
