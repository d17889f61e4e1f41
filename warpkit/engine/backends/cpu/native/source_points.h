// Where the pixels of a tile look: their points in the image, by a matrix or from a field.
//
// Points are computed in float64 in the reference's order of operations, so that both choose the
// same neighbours to the last bit. They come some rows at a time, which stay in the nearest cache
// until `Tile` has made whole pixels and weights of them.
#pragma once
#include "rules.h"

namespace warpkit {
namespace WARPKIT_ISA {

// Turned by 33 degrees, a tile of 32 x 32 spans 1.6 times its pixels in the source, and one of
// 16 x 64 spans 2.4 times.
constexpr int TILE = 32, PIXELS = TILE * TILE;
constexpr int BAND = 4;                 // rows of a tile whose points are found together
constexpr double LIMIT = 2147483648.0;  // points of this magnitude and beyond are nowhere

using Ints = Vec<int32_t, D>;
using Longs = Vec<int64_t, D>;

struct SourcePoints {
    int64_t x0, y0, width, height;                                // the tile, in the result
    alignas(64) double point_x[BAND][TILE], point_y[BAND][TILE];  // of a band; NaN: nowhere
    bool far;                                                     // some of them are nowhere
    bool all_near;                    // no point of the tile is, as far as they were found
    bool cornered;                    // an affine map's corners bound all points
    double corner_x[4], corner_y[4];  // these, around the tile

    // The tile at (x, y), and the map of an item.
    void begin(const WarpCall &p, int64_t item, int64_t x, int64_t y);

    // Fill points of the tile's rows r .. r + rows, and beyond its width up to whole registers:
    // pixels beyond the tile repeat the last one of their row, or the last row.
    void find(const WarpCall &p, int64_t r, int64_t rows);

    // After all rows: the least and the greatest of those that are not nowhere.
    void bounds(double &least_x, double &most_x, double &least_y, double &most_y) const;

    double matrix[9];

  private:
    int64_t map;  // where the item's matrix or field begins
    Doubles low_x, low_y, high_x, high_y;

    void find_corners();
    template <int KIND, bool BOUNDED> void find_rows(const WarpCall &p, int64_t r, int64_t rows);
};

}  // namespace WARPKIT_ISA
}  // namespace warpkit
