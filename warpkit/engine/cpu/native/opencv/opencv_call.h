// The block of a warp in OpenCV's arithmetic. An "item" is one image of the result's batch; a
// "unit" is a row of tiles of an item. Strides are in numbers of the image's type.
#pragma once
#include "warp/warp_call.h"

// clang-format off
#define WARPKIT_OPENCV_FIELDS(FIELD)                                                           \
    /* arrays: pixels; the fill; the start of sums near the border; matrices (float64) or */   \
    /* points, see `Points`; the result */                                                     \
    FIELD(image) FIELD(fill) FIELD(sum_start) FIELD(mapping) FIELD(second) FIELD(out)          \
    /* each item: the start of its image, and of its matrix or points */                       \
    FIELD(image_of) FIELD(mapping_of)                                                          \
    FIELD(channels) FIELD(height) FIELD(width) FIELD(line) FIELD(pixel) FIELD(plane)           \
    FIELD(out_height) FIELD(out_width) FIELD(out_line) FIELD(out_pixel) FIELD(out_plane)       \
    /* codes of `Border`, `Kind` and `Type`, the taps along an axis, the bytes of a number */  \
    FIELD(border) FIELD(kind) FIELD(type) FIELD(taps) FIELD(number_bytes)                      \
    /* numbers of one matrix or field of points; a code of `Points` */                         \
    FIELD(mapping_size) FIELD(points)                                                          \
    FIELD(fill_item) FIELD(fill_channel) FIELD(fill_row) FIELD(fill_column)                    \
    FIELD(start_item) FIELD(start_channel)                                                     \
    /* whether in fixed point, not in float32; whether in the order of OpenCV's vector code */ \
    FIELD(fixed) FIELD(vector)                                                                 \
    /* numbers in a register of that code; how nearest rounds 1/32 parts, see `Parts` */       \
    FIELD(lanes) FIELD(parts)                                                                  \
    /* the weights of taps at 32 steps between two pixels; corrections of bytes' weights */    \
    FIELD(weights) FIELD(corrections)
// clang-format on

namespace warpkit {

struct OpenCVCall : Call {
    WARPKIT_OPENCV_FIELDS(WARPKIT_FIELD)
};

// The memory layouts of points: pairs (x, y) of float32 or float64; x in `mapping` and y in
// `second`, float32; and cv2.convertMaps's pixels, pairs of int16, alone or with the 1/32 parts in
// `second`, uint16: five bits of y above five of x.
enum Points { SINGLES, DOUBLES, PLANES_OF_SINGLES, PIXELS, PIXELS_AND_PARTS };

// How nearest rounds 1/32 parts of a pixel: like floats; up from 16 on; or, in OpenCV 5, up below
// 16.
enum Parts { AS_FLOATS, UP_FROM_HALF, UP_BELOW_HALF };

}  // namespace warpkit
