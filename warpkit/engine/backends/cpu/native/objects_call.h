// The block of a call that paints objects over images, forward or backward.
//
// A "unit" is a band of BAND rows of one image; of the gradients to sources, a group of objects or
// a band of an image, see objects_backward.cpp.
#pragma once
#include "call.h"

// clang-format off
#define WARPKIT_OBJECTS_FIELDS(FIELD)                                                                 \
    /* arrays: images, maps (float64), sources, masks, opacities, what missing taps show, result */   \
    FIELD(images) FIELD(to_source) FIELD(colour) FIELD(mask) FIELD(opacity) FIELD(fill) FIELD(out)    \
    /* `Object`s; their numbers, image by image; where each image's begin, or each group's */         \
    FIELD(objects) FIELD(order) FIELD(starts) FIELD(groups)                                           \
    /* (first, end) int32 of the columns of each row of objects that do not fill their boxes */       \
    FIELD(spans)                                                                                      \
    /* opaque objects: which one each pixel shows, (images, height, width) int32 */                   \
    FIELD(opaque) FIELD(top_object)                                                                        \
    FIELD(count) FIELD(channels) FIELD(height) FIELD(width) FIELD(kind) FIELD(number_bytes)           \
    /* of a source: from one channel to the next, and from one row to the next */                     \
    FIELD(plane) FIELD(line)                                                                          \
    /* whether each object has a value of its own */                                                  \
    FIELD(own_fill) FIELD(own_opacity)                                                                \
    /* the backward pass: gradients, and which are wanted; `alpha`: of map, mask or opacity */        \
    FIELD(grad) FIELD(grad_images) FIELD(grad_to_source) FIELD(grad_colour) FIELD(grad_mask)          \
    FIELD(grad_opacity) FIELD(grad_fill) FIELD(needs_images) FIELD(needs_alpha) FIELD(needs_colour)   \
    FIELD(needs_mask) FIELD(needs_fill)                                                               \
    /* of each pixel of each box: what the objects above let through, the gradient to its alpha */    \
    FIELD(passed) FIELD(alpha_grad)                                                                   \
    /* sums of gradients to sources have four channels side by side, in `grad_colour` */              \
    FIELD(packed)                                                                                     \
    /* bands of an image's gradient; 0: units are groups of objects, each with sums of its own, */    \
    /* that lie so many numbers apart */                                                              \
    FIELD(bands) FIELD(colour_step) FIELD(mask_step)
// clang-format on

namespace warpkit {

struct ObjectsCall : Call {
    WARPKIT_OBJECTS_FIELDS(WARPKIT_FIELD)
};

// One object, as Python writes it: the image and the box that it is painted in, right and bottom
// exclusive, and its source.
struct Object {
    int64_t image, left, top, right, bottom;
    int64_t source, width, height;  // where it begins among the sources, and its size
    int64_t cover;                  // where its mask begins
    int64_t first;                  // of its pixels among those of all boxes
    int64_t rows;                   // where its rows begin among `spans`, -1 if it fills its box
};

}  // namespace warpkit
