// The block of cv2.transform, which multiplies the numbers of every point by a matrix. A unit is
// `PIXELS_AT_ONCE` points.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_TRANSFORM_FIELDS(FIELD)                                                           \
    /* arrays: the matrix (rows, columns), float64, with or without a last column for offsets; */ \
    /* points (count, channels); the result (count, rows) of their type */                        \
    FIELD(matrix) FIELD(points) FIELD(out)                                                        \
    FIELD(rows) FIELD(columns) FIELD(count) FIELD(channels)                                       \
    /* a code of `Type`; the points in a line; how many of them OpenCV sums in vectors, and */    \
    /* how many in vectors or in pairs */                                                         \
    FIELD(type) FIELD(line) FIELD(vectors) FIELD(pairs)
// clang-format on

namespace warpkit {

struct TransformCall : Call {
    WARPKIT_TRANSFORM_FIELDS(WARPKIT_FIELD)
};

constexpr int64_t PIXELS_AT_ONCE = 1024;

}  // namespace warpkit
