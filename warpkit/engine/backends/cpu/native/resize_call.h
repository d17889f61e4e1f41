// The block of a resize. A "plane" is `height` rows of `width * inner` numbers: one channel's
// pixels, or, channels-last, all channels' side by side. A "unit" is a band of rows of a result.
#pragma once
#include "warp_call.h"

// clang-format off
#define WARPKIT_RESIZE_FIELDS(FIELD)                                                              \
    FIELD(image) FIELD(out)                                                                      \
    FIELD(height) FIELD(width) FIELD(out_height) FIELD(out_width) FIELD(inner)                   \
    /* types (`Type`, `INT32`): of the pixels, of the sums, and of what the first pass leaves */ \
    FIELD(type) FIELD(sum) FIELD(middle) FIELD(down_first)                                       \
    /* how a sum becomes a pixel: `Finish`, the bits that are cut off, a float32's bits; how */  \
    /* many numbers of a row OpenCV sums at a time, in another order than the rest */            \
    FIELD(finish) FIELD(bits) FIELD(share) FIELD(at_once)                                        \
    /* the taps along x and y: of tap k its pixel (int32) and its weight, in the type of the */  \
    /* sums; of output n its taps begin[n] .. end[n] - 1 (int32) */                              \
    FIELD(x_pixel) FIELD(x_weight) FIELD(x_begin) FIELD(x_end)                                   \
    FIELD(y_pixel) FIELD(y_weight) FIELD(y_begin) FIELD(y_end)                                   \
    /* a band's rows; the rows of the image that are read at all, whose places in this list */   \
    /* y_pixel names where the pass along x comes first; of each band its first place and end */ \
    FIELD(band) FIELD(read) FIELD(bands)                                                         \
    /* tiles of columns (`Columns`), and what a tile needs memory for, in numbers */             \
    FIELD(tiles) FIELD(tile_count) FIELD(lines) FIELD(line) FIELD(turned) FIELD(summed)          \
    /* IPP: of every row whether it reads what its interpolation asks for, not an edge alone */  \
    /* IPP's bicubic: of every column the order of its sum (`Order`); whether pixels at the */   \
    /* edge are summed alone; the first number of a row whose upper pair is the other way */     \
    /* round. IPP's bilinear: of every number of a row whether its step along y is not fused */  \
    FIELD(inside) FIELD(orders) FIELD(alone) FIELD(last_numbers) FIELD(apart)                    \
    /* bilinear of a few channels side by side: of every column four times the number that sums */ \
    /* along x weigh by: both weights as halves of an int32, or the second one */                \
    FIELD(quads)                                                                                 \
    /* cells of whole pixels: their sides */                                                     \
    FIELD(cell_width) FIELD(cell_height)                                                         \
    /* nearest: the bytes of a pixel; of every column and row the pixel that it shows (int64) */ \
    FIELD(pixel_bytes) FIELD(columns) FIELD(rows)
// clang-format on

namespace warpkit {

struct ResizeCall : Call {
    WARPKIT_RESIZE_FIELDS(WARPKIT_FIELD)
};

constexpr int64_t INT32 = UINT16 + 1;  // another `Type`, of sums alone

// A sum of floats is rounded to the pixels' type if that is an integer type. A sum of integers is
// shifted, or scaled in float32. OpenCV's 8-bit bilinear and bicubic, the sums of floats that begin
// with the last row (NESTED), its exact bilinear of 16 bits, and IPP's sums have their own rules,
// see resize_passes.h and resize_ipp.h.
enum Finish { PLAIN, SHIFTED, SCALED, LINEAR, CUBIC, NESTED, HALF_UP, IPP_LINEAR, IPP_CUBIC };

// Columns of the result, and the columns of the image that they read.
struct Columns {
    int32_t first, end, source, source_end;
};

// IPP's orders of a sum of four products, see resize_ipp.h.
enum Order { CHAIN, PAIRS, SKIP, HALVES, ENDS, ALONE };

}  // namespace warpkit
