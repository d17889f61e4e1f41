// The block of JPEG files of images (N, 1 or 3, H, W); a unit is a band of one image.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_JPEG_FIELDS(FIELD)                                                                 \
    /* arrays: images and result, (N, channels, height, width); a quality for each image, int32 */ \
    FIELD(images) FIELD(out) FIELD(qualities)                                                      \
    /* for a gradient: that of the result, and of the images, float32 */                           \
    FIELD(grad) FIELD(grad_images)                                                                 \
    FIELD(channels) FIELD(height) FIELD(width)                                                     \
    /* whether images and result are float32 in [0, 1], not bytes */                               \
    FIELD(floats)                                                                                  \
    /* rows and columns of brightness per row and column of colour */                              \
    FIELD(rows) FIELD(columns)                                                                     \
    /* bands of an image, and rows of blocks of colour in a band */                                \
    FIELD(bands) FIELD(band_rows)
// clang-format on

namespace warpkit {

struct JpegCall : Call {
    WARPKIT_JPEG_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
