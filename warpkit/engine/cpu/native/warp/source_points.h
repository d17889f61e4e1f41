// The source positions of a tile's pixels: points in the image, from a matrix or a field.
//
// Points are computed in float64 in the reference's order of operations, so both select the same
// neighbours to the last bit. A few rows are computed at a time, which stay in the nearest cache
// until `Tile` has converted them to whole pixels and weights.
#pragma once
#include "depth/depth_rows.h"
#include "shared/rules.h"

namespace warpkit {
namespace WARPKIT_ISA {

// Rotated by 33 degrees, a tile of 32 x 32 spans 1.6 times its pixels in the source, and one of 16
// x 64 spans 2.4 times.
constexpr int PIXELS = TILE * TILE;  // of 32 x 32
constexpr int BAND = 4;                 // rows of a tile whose points are computed together
constexpr double LIMIT = 2147483648.0;  // points of at least this magnitude have no position

using Ints = Vec<int32_t, D>;
using Longs = Vec<int64_t, D>;

struct SourcePoints {
    int64_t x0, y0, width, height;                                // the tile, in the result
    alignas(64) double point_x[BAND][TILE], point_y[BAND][TILE];  // of a band; NaN: no position
    bool far;                                                     // some of them have no position
    bool all_near;                    // all points of the tile so far have one
    bool cornered;                    // an affine map's corners bound all points
    double corner_x[4], corner_y[4];  // these, around the tile

    // The tile at (x, y), and the map of an item.
    void begin(const WarpCall &p, int64_t item, int64_t x, int64_t y);

    // Compute points of the tile's rows r .. r + rows, and beyond its width up to whole registers:
    // pixels beyond the tile repeat the last one of their row, or the last row.
    void find(const WarpCall &p, int64_t r, int64_t rows);

    // After all rows: the smallest and the largest points that have a position.
    void bounds(double &least_x, double &most_x, double &least_y, double &most_y) const;

    double matrix[9];
    int64_t index;          // of the item's matrix or points
    const DepthCall *view;  // of a call whose points come from depths, otherwise null
    DepthRows rows_of_view;

    // Before the first tile of a call.
    void see(const Call &call);

  private:
    int64_t map;  // the start of the item's matrix or field
    Doubles low_x, low_y, high_x, high_y;

    void find_corners();
    template <int KIND, bool BOUNDED> void find_rows(const WarpCall &p, int64_t r, int64_t rows);
};

}  // namespace WARPKIT_ISA
}  // namespace warpkit
