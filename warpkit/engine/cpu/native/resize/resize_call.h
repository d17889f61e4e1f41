// The block of a resize. A "plane" is `height` rows of `width * inner` adjacent numbers: the pixels
// of one channel, or channels-last pixels. A "unit" is a band of rows of a result.
#pragma once
#include "warp/warp_call.h"

// clang-format off
#define WARPKIT_RESIZE_FIELDS(FIELD)                                                               \
    FIELD(image) FIELD(out)                                                                        \
    /* of the image: the start of each plane (int64), and the distances of rows, pixels and */     \
    /* channels, in numbers; those of pixels and channels are only used by windows and nearest */  \
    FIELD(starts) FIELD(stride) FIELD(pixel) FIELD(channel)                                        \
    FIELD(height) FIELD(width) FIELD(out_height) FIELD(out_width) FIELD(inner)                     \
    /* types (`Type`, `INT32`) of the pixels, the sums, and the first pass's output; whether */    \
    /* the first pass is along y */                                                                \
    FIELD(type) FIELD(sum) FIELD(middle) FIELD(down_first)                                         \
    /* how a sum becomes a pixel: `Finish`, the bits that are cut off, the bits of a float32 */    \
    /* factor; how many numbers of a row OpenCV sums at a time, in another order than the rest */  \
    FIELD(finish) FIELD(bits) FIELD(share) FIELD(at_once)                                          \
    /* the taps along x and y: the pixel (int32) and the weight (of the sums' type) of tap k; */   \
    /* output n has taps begin[n] .. end[n] - 1 (int32) */                                         \
    FIELD(x_pixel) FIELD(x_weight) FIELD(x_begin) FIELD(x_end)                                     \
    FIELD(y_pixel) FIELD(y_weight) FIELD(y_begin) FIELD(y_end)                                     \
    /* rows of a band; the list of the image's rows that are read, to which y_pixel refers if */   \
    /* the first pass is along x; the part of this list that each band reads: first, end */        \
    FIELD(band) FIELD(read) FIELD(bands)                                                           \
    /* tiles of columns (`Columns`); the sizes of a tile's buffers, in numbers */                  \
    FIELD(tiles) FIELD(tile_count) FIELD(lines) FIELD(line) FIELD(turned) FIELD(summed)            \
    /* IPP: whether the taps of each row are inside the image. IPP's bicubic: the order of each */ \
    /* column's sum (`Order`); whether pixels at the edge are summed one by one; the first */      \
    /* number of a row whose upper pair is summed in reverse. IPP's bilinear: for each number */   \
    /* of a row, whether its step along y is not fused */                                          \
    FIELD(inside) FIELD(orders) FIELD(alone) FIELD(last_numbers) FIELD(apart)                      \
    /* bilinear of a few channels-last channels: each column's weight along x, four times: both */ \
    /* weights as halves of an int32, or the second weight */                                      \
    FIELD(quads)                                                                                   \
    /* the sides of cells of whole pixels */                                                       \
    FIELD(cell_width) FIELD(cell_height)                                                           \
    /* nearest: the bytes of a pixel; the source pixel of each column and row (int64) */           \
    FIELD(pixel_bytes) FIELD(columns) FIELD(rows)                                                  \
    /* windows (resize_windows.cpp): the kernel that reads them; the image's `Type` if it is a */    \
    /* half; the image's rows in each band's window (int32), and where each band's rows */         \
    /* begin; the columns that windows have (int32), if not all: `width` is their number, and */   \
    /* other fields refer to them; what y_pixel or `read` is for the kernel; a window's numbers */ \
    /* and those of a row */                                                                       \
    FIELD(kernel) FIELD(halves) FIELD(window_rows) FIELD(window_starts) FIELD(window_columns)      \
    FIELD(slots) FIELD(window) FIELD(window_line)
// clang-format on

namespace warpkit {

struct ResizeCall : Call {
    WARPKIT_RESIZE_FIELDS(WARPKIT_FIELD)

    // A plane of an image with numbers T.
    template <class T> const T *plane_of(int64_t number) const {
        return at<const T>(image) + at<const int64_t>(starts)[number];
    }
};

constexpr int64_t INT32 = BFLOAT16 + 1;  // another `Type`, only for sums

// A sum of floats is rounded to the pixels' type if that is an integer type: half to even, or as in
// SciPy HALF_AWAY from zero. A sum of integers is
// shifted, or scaled in float32. OpenCV's 8-bit bilinear and bicubic, the sums of floats that begin
// with the last row (NESTED), its exact bilinear of 16 bits, and IPP's sums have their own rules,
// see resize_passes.h and resize_ipp.h.
enum Finish {
    PLAIN,
    SHIFTED,
    SCALED,
    LINEAR,
    CUBIC,
    NESTED,
    HALF_UP,
    IPP_LINEAR,
    IPP_CUBIC,
    HALF_AWAY
};

// Columns of the result, and the columns of the image that they read.
struct Columns {
    int32_t first, end, source, source_end;
};

// IPP's orders of a sum of four products, see resize_ipp.h.
enum Order { CHAIN, PAIRS, SKIP, HALVES, ENDS, ALONE };

}  // namespace warpkit
