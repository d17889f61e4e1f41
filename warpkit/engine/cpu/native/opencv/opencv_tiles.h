// How OpenCV's kernels traverse the output: in tiles of ROW x TILE_ROWS pixels, row by row, with a
// prefetch for the next tile.
#pragma once
#include "opencv/opencv_positions.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int64_t TILE_ROWS = 16;  // as in launch.py

// A piece of a row of the output: `count` pixels from (x0, y) on.
struct Piece {
    int64_t item, source, mapping;  // the start of the item's image, and of its matrix or points
    bool finite;                    // whether the matrix is finite
    int64_t x0, y, count, tile_row;
};

// Prefetch approximately what a tile reads: the box of its corners' source positions.
inline void look_ahead(const OpenCVCall &p, const Piece &piece, int64_t x0, int64_t y0,
                       int64_t rows) {
    if (x0 >= p.out_width || !piece.finite) return;
    constexpr int32_t WIDE = 8 * ROW;  // for a larger box a prefetch costs more than it saves
    int32_t left = INT32_MAX, right = INT32_MIN, top = INT32_MAX, bottom = INT32_MIN;
    for (int n = 0; n < 4; n++) {
        Places corner;
        int64_t x = n % 2 ? least(x0 + ROW, p.out_width) - 1 : x0, y = n / 2 ? y0 + rows - 1 : y0;
        place(p, piece.mapping, true, x, y, 1, corner);
        if (corner.column[0] == NOWHERE) return;
        left = least(left, corner.column[0]), right = most(right, corner.column[0]);
        top = least(top, corner.row[0]), bottom = most(bottom, corner.row[0]);
    }
    if (int64_t(right) - left > WIDE || int64_t(bottom) - top > WIDE) return;
    const int64_t a = most(left, 0), b = least<int64_t>(int64_t(right) + 1, p.width - 1);
    const int64_t c = most(top, 0), d = least<int64_t>(int64_t(bottom) + 1, p.height - 1);
    const int64_t pixel = p.pixel * p.number_bytes,
                  step = most<int64_t>(64 / most<int64_t>(pixel, 1), 1);
    const char *image = at<const char>(p.image) + piece.source * p.number_bytes;
    for (int64_t j = c; j <= d; j++)
        for (int64_t i = a; i < b + step; i += step)
            __builtin_prefetch(image + j * p.line * p.number_bytes + least(i, b) * pixel);
}

// The offsets of pixels from the image's start: in int32, which fits a whole vector in a register,
// if the image is small enough.
struct Distance {
    using Wide = Vec<int64_t, L>;
    int64_t line, pixel;
    bool small;

    Distance(const OpenCVCall &p, int64_t bytes) : line(p.line * bytes), pixel(p.pixel * bytes) {
        const int64_t end = INT32_MAX;
        small = line < end && pixel < end && p.height * line + p.width * pixel < end;
    }
    INLINE Wide at(I x, I y) const {
        if (small) return convert<Wide>(y * int32_t(line) + x * int32_t(pixel));
        return convert<Wide>(y) * line + convert<Wide>(x) * pixel;
    }
};

// Call work(piece) for all pieces of units begin .. end.
template <class Work>
INLINE void each_piece(const OpenCVCall &p, int64_t begin, int64_t end, Work work) {
    const int64_t tile_rows = (p.out_height + TILE_ROWS - 1) / TILE_ROWS;
    for (int64_t unit = begin; unit < end; unit++) {
        Piece piece;
        piece.item = unit / tile_rows;
        const int64_t y0 = unit % tile_rows * TILE_ROWS;
        const int64_t rows = least(TILE_ROWS, p.out_height - y0);
        piece.source = at<const int64_t>(p.image_of)[piece.item];
        piece.mapping = at<const int64_t>(p.mapping_of)[piece.item] * p.mapping_size;
        piece.finite = is_finite(p, piece.mapping);
        for (int64_t x0 = 0; x0 < p.out_width; x0 += ROW) {
            piece.x0 = x0, piece.count = least<int64_t>(ROW, p.out_width - x0);
            look_ahead(p, piece, x0 + ROW, y0, rows);
            for (int64_t r = 0; r < rows; r++) {
                piece.y = y0 + r, piece.tile_row = r;
                work(piece);
            }
        }
    }
}

// One bit per pixel of a piece.
INLINE uint64_t bits_of_all(int64_t count) { return ~uint64_t(0) >> (ROW - count); }
INLINE int lowest_bit(uint64_t bits) { return __builtin_ctzll(bits); }

// The border's value of channel k at pixel c of a piece; its index in the result.
template <class S>
INLINE const S *fill_at(const OpenCVCall &p, const Piece &piece, int64_t c, int64_t k) {
    return at<const S>(p.fill) + piece.item * p.fill_item + k * p.fill_channel +
           piece.y * p.fill_row + (piece.x0 + c) * p.fill_column;
}
template <class S>
INLINE S *result_at(const OpenCVCall &p, const Piece &piece, int64_t c, int64_t k) {
    const int64_t item = p.channels * p.out_height * p.out_width;
    return at<S>(p.out) + piece.item * item + piece.y * p.out_line + (piece.x0 + c) * p.out_pixel +
           k * p.out_plane;
}

// Write the border's values at `count` pixels of a piece, from c on.
template <class S>
void show_fill_run(const OpenCVCall &p, const Piece &piece, int64_t c, int64_t count) {
    const bool packed = p.out_plane == 1 && p.out_pixel == p.channels && !p.fill_column;
    const int64_t step = p.out_pixel, fill_step = p.fill_column, alike = packed ? 1 : count;
    for (int64_t k = 0; k < p.channels; k++) {
        const S *fill = fill_at<S>(p, piece, c, k);
        S *to = result_at<S>(p, piece, c, k);
        if (step == 1 && !fill_step)
            for (int64_t n = 0; n < alike; n++) to[n] = *fill;
        else
            for (int64_t n = 0; n < alike; n++) to[n * step] = fill[n * fill_step];
    }
    if (!packed) return;
    // adjacent pixels are copies of the first: twice as many each time
    S *to = result_at<S>(p, piece, c, 0);
    for (int64_t n = 1; n < count; n *= 2)
        memcpy(to + n * step, to, size_t(least(n, count - n) * step) * sizeof(S));
}

// The same for the pixels whose bits are set, run by run.
template <class S> INLINE void show_fill(const OpenCVCall &p, const Piece &piece, uint64_t pixels) {
    while (pixels) {
        const int first = lowest_bit(pixels);
        const uint64_t behind = ~(pixels >> first);
        const int count = behind ? lowest_bit(behind) : ROW;
        show_fill_run<S>(p, piece, first, count);
        pixels &= first + count < ROW ? ~uint64_t(0) << (first + count) : 0;
    }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
