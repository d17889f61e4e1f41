// The block of a call that paints objects over images, forward or backward.
//
// A "unit" is a band of BAND rows of one image; for the gradients of sources, it is a group of
// objects or a band of an image, see objects_backward.cpp.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_OBJECTS_FIELDS(FIELD)                                                              \
    /* `PaintedImage`s; the image of each unit; the addresses to which their offsets refer */      \
    FIELD(painted) FIELD(image_of_unit) FIELD(images) FIELD(out) FIELD(grad) FIELD(grad_images)    \
    FIELD(top_object)                                                                              \
    /* maps (float64); patches, or 0 if objects show the images' pixels in their own boxes; */     \
    /* masks; opacities; fills */                                                                  \
    FIELD(to_source) FIELD(colour) FIELD(mask) FIELD(opacity) FIELD(fill)                          \
    /* `Object`s; their indices, image by image; each image's, and each group's, first in this */  \
    FIELD(objects) FIELD(order) FIELD(starts) FIELD(groups)                                        \
    /* the columns (first, end) of each row of objects that do not fill their boxes, int32 */      \
    FIELD(spans)                                                                                   \
    /* whether objects have neither mask nor opacity and fill their boxes */                       \
    FIELD(opaque) FIELD(count) FIELD(channels) FIELD(kind) FIELD(number_bytes)                     \
    /* a patch's strides: to the next channel and the next row */                                  \
    FIELD(plane) FIELD(line)                                                                       \
    /* whether each object has a value of its own */                                               \
    FIELD(own_fill) FIELD(own_opacity)                                                             \
    /* the backward pass: gradients, and which are wanted; `alpha`: of map, mask or opacity */     \
    FIELD(backward) FIELD(grad_to_source) FIELD(grad_colour) FIELD(grad_mask) FIELD(grad_opacity)  \
    FIELD(grad_fill) FIELD(needs_images) FIELD(needs_alpha) FIELD(needs_colour) FIELD(needs_mask)  \
    FIELD(needs_fill)                                                                              \
    /* for each pixel of each box: the transmission of the objects above, alpha's gradient */      \
    FIELD(passed) FIELD(alpha_grad)                                                                \
    /* bands of an image's gradient, or 0: units are groups of objects, each with its own sums; */ \
    /* the distances of these in numbers (in `grad_colour` four channels are adjacent) */          \
    FIELD(bands) FIELD(colour_step) FIELD(mask_step)
// clang-format on

namespace warpkit {

struct ObjectsCall : Call {
    WARPKIT_OBJECTS_FIELDS(WARPKIT_FIELD)
};

// An image that is painted on, in the format that Python writes: an item of a batch, or of a list
// with its own size. Its start and its related arrays are offsets in bytes from the block's
// addresses.
struct PaintedImage {
    int64_t height, width, first_unit;  // of its bands
    int64_t pixels, plane, line, step;  // steps to the next channel, row and pixel
    int64_t out, out_step;  // the dense result: planes (1), or channels-last as the image
    int64_t grad;           // the incoming gradient, in dense planes
    int64_t grad_image;     // from `grad_images`
    int64_t top_object;     // the visible one of the opaque objects at each pixel, int32
};

// One object, in the format that Python writes: the image and the box in which it is painted, right
// and bottom exclusive, and its source.
struct Object {
    int64_t image, left, top, right, bottom;
    int64_t source, width, height;  // its start among the patches, and its size
    int64_t cover;                  // the start of its mask
    int64_t first;                  // the index of its first pixel among those of all boxes
    int64_t rows;                   // the start of its rows in `spans`, -1 if it fills its box
};

}  // namespace warpkit
