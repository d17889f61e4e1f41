// The block of an image's pixels that are in front where they land. A unit is an item, and for the
// gradient a channel of an item.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_FRONT_FIELDS(FIELD)                                                             \
    /* arrays: offsets (height, width, 2) and depths (height, width); a table of each item's */ \
    /* first number in both */                                                                  \
    FIELD(flow) FIELD(depth) FIELD(flow_starts) FIELD(depth_starts)                             \
    /* whether offsets and depths are float64 */                                                \
    FIELD(wide_flow) FIELD(wide_depth)                                                          \
    /* images, each item's first number, strides and the bytes of a number */                   \
    FIELD(image) FIELD(image_starts) FIELD(plane) FIELD(line) FIELD(pixel) FIELD(number_bytes)  \
    /* for each item: the numbers (to_height, to_width) of the pixels shown, uint32, the */     \
    /* last one in holes; bool, where one is; pixels (channels, to_height, to_width), or the */       \
    /* gradient of the image from that of these */                                              \
    FIELD(found) FIELD(filled) FIELD(out) FIELD(grad)                                           \
    FIELD(channels) FIELD(height) FIELD(width) FIELD(to_height) FIELD(to_width)
// clang-format on

namespace warpkit {

struct FrontCall : Call {
    WARPKIT_FRONT_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
