// The block of a warp, forward or backward. An "item" is one image of the result's batch; a "unit"
// is a row of tiles of an item, or, in a backward pass, a list of jobs.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_WARP_FIELDS(FIELD)                                                               \
    /* arrays: pixels, the fill, matrices (float64) or points, the result */                     \
    FIELD(image) FIELD(fill) FIELD(mapping) FIELD(out)                                           \
    /* of each item: the start of its image, in steps, and its matrix or points */               \
    FIELD(image_of) FIELD(step) FIELD(mapping_of)                                                \
    FIELD(items) FIELD(channels) FIELD(height) FIELD(width) FIELD(out_height) FIELD(out_width)   \
    /* an image's strides: to the next channel, row and column */                                \
    FIELD(plane) FIELD(line) FIELD(pixel)                                                        \
    /* a `ListedImage` for each image, if they are separate tensors of different sizes; or 0 */  \
    FIELD(listed)                                                                                \
    /* codes of `Border` along each axis, of `Interpolation`, and its taps along an axis */      \
    FIELD(border_y) FIELD(border_x) FIELD(interpolation) FIELD(taps)                             \
    /* codes of `Kind` and of `Type`, and the bytes of a number */                               \
    FIELD(kind) FIELD(type) FIELD(number_bytes)                                                  \
    /* whether the result has the computation's type, whatever the image's */                    \
    FIELD(wide)                                                                                  \
    /* numbers of one matrix or field of points; whether points are float64, are offsets, and */ \
    /* are planes of x and y */                                                                  \
    FIELD(mapping_size) FIELD(double_points) FIELD(relative) FIELD(planar)                       \
    /* whether the block is a `DepthWarpCall`, whose points come from depths */                   \
    FIELD(depths)                                                                                \
    /* strides of the fill; `dense`: it has a value for every output pixel */                    \
    FIELD(fill_item) FIELD(fill_channel) FIELD(fill_row) FIELD(fill_column) FIELD(dense)         \
    /* whether a pixel's channels are adjacent in the result and the image's gradient; whether */ \
    /* the result is written past the caches */                                                  \
    FIELD(channels_last) FIELD(streamed)                                                         \
    /* the backward pass: gradients, which of them are wanted, and each unit's work (`Job`) */   \
    FIELD(grad) FIELD(grad_image) FIELD(grad_mapping) FIELD(grad_fill)                           \
    FIELD(needs_image) FIELD(needs_mapping) FIELD(needs_fill)                                    \
    FIELD(single) FIELD(jobs) FIELD(starts) FIELD(row_ranges)
// clang-format on

namespace warpkit {

// One image of a list, in the format that Python writes.
struct ListedImage {
    int64_t image, height, width, plane, line, pixel;  // as the fields of the block
    int64_t grad;                                      // its gradient, dense
};

struct WarpCall : Call {
    WARPKIT_WARP_FIELDS(WARPKIT_FIELD)

    // Set the block to that of an item, and return the start of its image.
    int64_t enter(int64_t item) {
        const int64_t number = at<const int64_t>(image_of)[item];
        if (!listed) return number * step;
        const ListedImage &one = at<const ListedImage>(listed)[number];
        image = one.image, height = one.height, width = one.width;
        plane = one.plane, line = one.line, pixel = one.pixel;
        grad_image = one.grad;
        return 0;
    }
};

enum Kind { POINTS = 0, AFFINE = 2, PERSPECTIVE = 3 };  // a matrix, by its number of rows
// Halves are read, and the results of a warp are then float32.
enum Type { FLOAT32, FLOAT64, UINT8, INT16, UINT16, FLOAT16, BFLOAT16 };

inline bool computes_float(int64_t type) { return type == FLOAT32 || type >= FLOAT16; }

// One piece of a backward pass. The lists of these depend only on shapes and the matrix, never on
// the threads, and so does the order of every sum.
struct Job {
    int64_t item, first_row, end_row;  // rows of tiles
    int64_t accumulator;               // the image gradient to which it adds
    int64_t slot;                      // the position of its sums for the matrix and the fill
    int64_t clear, clear_end;          // numbers of the image's gradient to set to 0 first
    int64_t band, band_end;            // rows of the image's gradient to which it may add
};

}  // namespace warpkit
