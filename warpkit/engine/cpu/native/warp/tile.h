// A tile of the result: its pixels' source positions, their weights, and the pixels they read.
//
// Kernels process the result tile by tile, because the pixels of a small square read a small part
// of the image, which fits in the nearest cache. For each tile `look` computes, in this order,
//
//     the source point of every pixel (source_points.h), its whole pixel, and the weights of the
//     taps around it, which are computed in float64 and rounded once;
//     the box of all taps, and the position of each pixel's first tap in that box;
//     if the box extends beyond the border: the missing taps, and the sum of their weights.
//
// Then, for each group of channels, `planes_of` returns the location of the box: in the image
// itself, or in a window. The box is copied to a window if it extends beyond the border, or if the
// image's memory is not a plane of the computation's type. Every pixel then reads its taps in the
// same way, see taps.h.
//
// tile.cpp has `look`, window.cpp the windows. Both are compiled only for the few tiles below. The
// number of taps is a variable here, and a template parameter in the loops over all pixels.
#pragma once
#include "warp/source_points.h"

namespace warpkit {
namespace WARPKIT_ISA {

// The distance between two arrays of a tile: at multiples of a page they would share one set of the
// nearest cache, where a store takes ten times as long.
constexpr int PADDED = PIXELS + 16;
constexpr int GROUP = 4;      // channels that are read together, at most
constexpr int MOST_TAPS = 8;  // along an axis
// `missing` of a pixel with all its taps, and with none; no sum of weights is this large
constexpr float ALL_TAPS = 8, NO_TAP = 16;
constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52: adding and subtracting it rounds

// The pixels of a vector: DOWN rows of ACROSS pixels, row by row. DOWN adjacent vectors make a
// patch of DOWN rows with L pixels. Patches follow each other row by row in a tile, and vectors in
// a patch.
template <class R, int DOWN> struct Order {
    static constexpr int L = LANES<R>, ACROSS = L / DOWN;
    using I = Vec<int32_t, L>;

    // The index of the pixel in row r and column c of a tile.
    static INLINE int64_t number(int64_t r, int64_t c) {
        return ((r / DOWN) * (TILE / ACROSS) + c / ACROSS) * L + r % DOWN * ACROSS + c % ACROSS;
    }
    // Column and row of each lane.
    static INLINE I columns_of_lanes() { return count_up<I>() % ACROSS; }
    static INLINE I rows_of_lanes() { return count_up<I>() / ACROSS; }

    // From the vectors of a patch to its rows, and back.
    template <class V> static INLINE void turn(V *v) {
        if constexpr (DOWN == 4) turn_pieces(v);
    }
};

// Sixteen floats with two taps are a block of 4 x 4 pixels, whose taps are close together, see
// taps.h; all other vectors are part of a row.
template <class R, int TAPS> constexpr int DOWN_OF = LANES<R> == 16 && TAPS == 2 ? 4 : 1;

template <class R, int DOWN> struct Tile : SourcePoints, Order<R, DOWN> {
    static constexpr int L = LANES<R>, ACROSS = Order<R, DOWN>::ACROSS;
    using V = Vec<R, L>;        // pixels that are computed together
    using I = Vec<int32_t, L>;  // the same number of integers
    static constexpr int64_t ROOM = PIXELS * MOST_TAPS * MOST_TAPS;  // pixels of a window
    static constexpr int64_t ROWS = 512;     // of a box whose rows are computed one by one
    static constexpr int64_t BEYOND = 1024;  // how far reads extend beyond a window's end, at most

    // per pixel, by its index; patches are filled
    alignas(64) int32_t column[PADDED], row[PADDED];  // the whole pixel at or before the point
    alignas(64) int32_t offset[PADDED];               // of the first tap, from the box's corner
    // the weights of its taps, and their slopes
    alignas(64) R wx[MOST_TAPS][PADDED], wy[MOST_TAPS][PADDED];
    alignas(64) R dx[MOST_TAPS][PADDED], dy[MOST_TAPS][PADDED];
    alignas(64) R missing[PADDED];  // the sum of the weights of missing taps, ALL_TAPS, or NO_TAP
    int32_t base[PIXELS / L];       // if `close`: the position of each block's 8 x 8 pixels
    alignas(64) int32_t low[ROWS], high[ROWS];  // the columns that each row of the box needs
    int32_t source_column[ROOM];  // under borders without missing taps: what a box's column reads
    alignas(64) R window[GROUP][ROOM + BEYOND + 16];

    int64_t interpolation;             // as in rules.h
    int64_t taps, before;              // along an axis, and how many before the whole pixel
    double end_x, end_y;               // nearest: the whole pixel that stands for 2^31
    int64_t room;                      // pixels of a box, at most; else each pixel has its own
    int64_t left, top, columns, rows;  // the box of all taps, in the image
    int64_t stride;                    // from one row of the box to the next, in memory
    bool whole;                        // no tap is missing or folded back into the image
    bool empty;                        // no tap is inside
    bool boxed;                        // one box holds all taps
    bool in_place;                     // the box is read from the image itself
    bool close;                        // the taps of every 4 x 4 block are inside 8 x 8 pixels

    // Before the first tile of a call.
    void start(const Call &call);

    // Compute everything about the tile at (x, y) except pixels. sloped: with the weights'
    // derivatives.
    void look(const WarpCall &p, int64_t item, int64_t x, int64_t y, bool sloped = false);

    // The location of `count` channels of the item at `source`, from the box's corner on. Missing
    // pixels get the fill of each channel.
    void planes_of(const WarpCall &p, int64_t source, int64_t channel, int count, const R *fill,
                   const R **planes);

    // The lanes from pixel q on that read nothing from the image, see `missing`.
    INLINE auto nowhere(int64_t q) const { return load<V>(missing + q) == R(NO_TAP); }

    // The number of pixels in a row of patches.
    int64_t filled() const { return (width + L - 1) / L * L * DOWN; }

    // The lanes of the vector at row r and column c that are inside the result.
    INLINE auto inside(int64_t r, int64_t c) const {
        return lanes_of<V>((this->columns_of_lanes() < int32_t(width - c)) &
                           (this->rows_of_lanes() < int32_t(height - r)));
    }

    // The pixel that a tap of pixel q reads, by its position along both axes; false if it is
    // missing.
    INLINE bool tap(const WarpCall &p, int64_t q, int64_t i, int64_t j, int64_t &x,
                    int64_t &y) const {
        x = resolve(int64_t(column[q]) - before + i, p.width, p.border_x);
        y = resolve(int64_t(row[q]) - before + j, p.height, p.border_y);
        return x >= 0 && y >= 0;
    }

    // The next tile, that to the right or the first of the next row, from this one.
    int64_t next_x(const WarpCall &p) const { return x0 + TILE < p.out_width ? TILE : -x0; }
    int64_t next_y(const WarpCall &p) const { return x0 + TILE < p.out_width ? 0 : TILE; }

    // Prefetch part of this tile's box of `count` planes of the image's type, while rows r .. r +
    // DOWN of the tile are computed; moved: approximately the box of the next tile. For
    // channels-last pixels: the next tile's box, with all channels.
    void fetch(const WarpCall &p, const void *planes, int64_t count, bool moved, int64_t r) const {
        if (fetches) fetch_rows(p, planes, count, moved, r);
    }

  private:
    int64_t west, east, north, south;  // bounds of the whole pixels
    int64_t last_left, last_top;       // the previous tile's corner
    int64_t moved_x, moved_y;          // of the box, since then
    bool fetches;
    bool marked;  // `missing` marks the points without a position

    // tile.cpp
    template <int INTERPOLATION, bool SLOPED> void weigh_band(int64_t r, int64_t count);
    void weigh_any(int64_t r, int64_t count, bool sloped);
    void mark_far(int64_t r, int64_t count);
    int64_t whole_pixel(double v) const;
    void set_box();
    template <int TAPS> void cover(const WarpCall &p);
    struct Reach;
    INLINE Reach reach(I whole_pixel, int64_t length, bool missing_ones, const R (*weights)[PADDED],
                       int64_t q, int64_t taps) const;
    void set_offsets();
    void set_single_offsets();
    void find_blocks(const WarpCall &p);
    void plan_fetch(const WarpCall &p);
    void fetch_rows(const WarpCall &p, const void *planes, int64_t count, bool moved,
                    int64_t r) const;

    // window.cpp
    void find_extents(bool turned);
    template <class S>
    void copy(const WarpCall &p, int64_t source, int64_t channel, int count, const R *fill);
    template <class S> INLINE void fold_row(R *to, const S *line, int64_t pixel, int64_t first,
                                            int64_t last, int64_t a, int64_t b) const;
    void copy_pixels(int64_t to, const R *line, const R *end, int64_t from_x, int64_t pixel,
                     int count, int64_t first, int64_t last, int64_t a, int64_t b, const R *fill);
    template <class S>
    void copy_columns(const WarpCall &p, const S *from, int count, int64_t first, int64_t last,
                      bool folds, const R *fill);
    template <int TAPS, class S>
    void copy_taps(const WarpCall &p, const S *from, int count, const R *fill);
};

// All tiles of an instruction set, for which tile.cpp and window.cpp are compiled.
#if defined(__AVX512F__)
#define WARPKIT_TILES(TILE) TILE(float, 4) TILE(float, 1) TILE(double, 1)
#else
#define WARPKIT_TILES(TILE) TILE(float, 1) TILE(double, 1)
#endif

}  // namespace WARPKIT_ISA
}  // namespace warpkit
