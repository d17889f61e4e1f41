// The blocks of what samples and compares features in one pass: channels-last copies, local
// correlation, and plane sweeps.
#pragma once
#include "depth/depth_call.h"

// clang-format off
#define WARPKIT_CHANNELS_FIELDS(FIELD)                                                          \
    /* float32: pictures as planes, and their copies, `padded` channels a pixel, with a pixel of */ \
    /* zeros behind each; int32: the channel at each place of a pixel, -1 for none */           \
    FIELD(planes) FIELD(copies) FIELD(order)                                                    \
    FIELD(channels) FIELD(padded) FIELD(pixels)

// A unit is a row of an item; `correlation_to_second` has bands of rows of an entry.
#define WARPKIT_CORRELATION_FIELDS(FIELD)                                                        \
    /* first (channels, height, width), copies of the second pictures, for a result without a */ \
    /* flow the planes; flow (height, width, 2), which entry of each belongs to an item (int64), */ \
    /* and the result */                         \
    FIELD(first) FIELD(second) FIELD(flow) FIELD(first_of) FIELD(second_of) FIELD(flow_of)       \
    FIELD(out) FIELD(order)                                                                      \
    /* the gradient of the result; those to first and flow (float64) of each item, and to the */ \
    /* second pictures; 0: not wanted */                                                         \
    FIELD(grad) FIELD(to_first) FIELD(to_flow) FIELD(to_second)                                  \
    FIELD(items) FIELD(channels) FIELD(padded) FIELD(height) FIELD(width)                        \
    FIELD(second_height) FIELD(second_width)                                                     \
    /* of the square on each side; the pixels between offsets, more than 1 without a flow alone */ \
    FIELD(rows) FIELD(columns) FIELD(step) FIELD(border_y) FIELD(border_x)                       \
    /* whether the flow is float64; the rows of a band */                                        \
    FIELD(wide_flow) FIELD(band)

// A unit is a row of an item; of `sweep_backward` a strip of rows, and of `sweep_to_sources` a row
// of an entry of the sources.
#define WARPKIT_SWEEP_FIELDS(FIELD)                                                              \
    /* the view (channels, height, width), 0 if there is none; copies of the sources; depths */  \
    /* (planes, height, width), or one for each plane; rays as in depth_call.h */                \
    FIELD(view) FIELD(sources) FIELD(depths) FIELD(rays)                                         \
    /* which entry of each belongs to an item, and for sources to each of its views, int64 */    \
    FIELD(view_of) FIELD(source_of) FIELD(depths_of) FIELD(rays_of)                              \
    /* `DepthNumbers` of each view of an item; the channel at each place of a pixel */           \
    FIELD(numbers) FIELD(order)                                                                  \
    /* results: costs (groups, planes, height, width), int32 (planes, height, width), and the */ \
    /* first and last row of each source that a row reads, int32 (views, height, 2) */           \
    FIELD(out) FIELD(seen) FIELD(ranges)                                                         \
    /* the gradient of costs; those to the view, sources, depths of their type or (height, */    \
    /* planes) of float64, rays, and sums as `DepthNumbers` of each row and view */              \
    FIELD(grad) FIELD(to_view) FIELD(to_sources) FIELD(to_depths) FIELD(to_rays) FIELD(row_sums) \
    /* `Window`s of each strip and view, and their sums, channels-last */                        \
    FIELD(windows) FIELD(sums) FIELD(strips) FIELD(band)                                         \
    FIELD(items) FIELD(views) FIELD(planes) FIELD(entries) FIELD(channels) FIELD(padded)         \
    /* a place of a piece belongs to the group of its number modulo `lanes` */                   \
    FIELD(groups) FIELD(lanes) FIELD(measure)                                                    \
    FIELD(height) FIELD(width) FIELD(source_height) FIELD(source_width)                          \
    /* whether only views that see a point take part; then no border is read */                  \
    FIELD(inside) FIELD(border_y) FIELD(border_x)                                                \
    /* as in depth_call.h; whether depths are one number for each plane */                       \
    FIELD(kind) FIELD(wide) FIELD(flat) FIELD(coefficients) FIELD(fisheye) FIELD(pinhole)        \
    FIELD(needs_pose) FIELD(needs_other) FIELD(needs_own) FIELD(needs_depths)
// clang-format on

namespace warpkit {

struct ChannelsCall : Call {
    WARPKIT_CHANNELS_FIELDS(WARPKIT_FIELD)
};

struct CorrelationCall : Call {
    WARPKIT_CORRELATION_FIELDS(WARPKIT_FIELD)
};

struct SweepCall : Call {
    WARPKIT_SWEEP_FIELDS(WARPKIT_FIELD)
};

// The measures in the order of definitions/sweep.py, and the variance without a view.
enum Measure { CORRELATION, DIFFERENCE, ABSOLUTE, SQUARED, VARIANCE, VARIANCE_ALONE };

// The rows of a source that a strip reads, and the pixel of the sums where they begin.
struct Window {
    int64_t first, rows, start;
};

constexpr int64_t PIXELS_OF_COPY = 64;  // of a unit that copies

}  // namespace warpkit
