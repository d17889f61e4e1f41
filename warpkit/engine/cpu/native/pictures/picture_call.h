// The block of a whole picture, (rows, columns, channels): pyramids.cpp, arrangements.cpp and
// rectangles.cpp. A "unit" is `band` rows of the result.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_PICTURE_FIELDS(FIELD)                                                              \
    FIELD(image) FIELD(out)                                                                        \
    FIELD(height) FIELD(width) FIELD(channels) FIELD(out_height) FIELD(out_width) FIELD(band)      \
    /* codes of `Type` and `Border`, see warp_call.h; whether a rectangle's bytes become floats */ \
    FIELD(type) FIELD(border) FIELD(floating)                                                      \
    /* moved pixels: their size, a pixel of the fill, steps in bytes to the next row and column */ \
    FIELD(pixel_bytes) FIELD(fill) FIELD(row_step) FIELD(column_step)                              \
    /* rows above and columns left of a framed image; or the first row and column of a */          \
    /* rectangle, and its two float32 fractions along x and y */                                   \
    FIELD(top) FIELD(left) FIELD(fractions)
// clang-format on

namespace warpkit {

struct PictureCall : Call {
    WARPKIT_PICTURE_FIELDS(WARPKIT_FIELD)
};

// The rows of the result that units begin .. end - 1 compute.
struct Rows {
    int64_t first, end;

    Rows(const PictureCall &p, int64_t begin, int64_t units_end)
        : first(begin * p.band), end(units_end * p.band) {
        if (end > p.out_height) end = p.out_height;
    }
};

}  // namespace warpkit
