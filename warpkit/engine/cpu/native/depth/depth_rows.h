// A view's pixels as the source of a tile: their points in another camera, and the way back.
#pragma once
#include "depth/depth_call.h"
#include "shared/sums.h"

namespace warpkit {
namespace WARPKIT_ISA {

constexpr int TILE = 32;  // pixels of a tile along each side: see source_points.h

// A unit's sums, in the order of `DepthNumbers`' fields.
using DepthSums = SumsByEights<int(sizeof(DepthNumbers) / sizeof(double))>;
constexpr int AT_POSE = int(sizeof(LensNumbers) / sizeof(double)), AT_OWN = AT_POSE + 12;

// A rectangle of an item's pixels.
struct ViewPart {
    int64_t index, row, rows, column, columns;
};

// The functions of a kind of depths and a lens. Points and their gradients are rows of `TILE`.
struct DepthRows {
    // Points; up to a multiple of `step` each row repeats its last one. Writes where all taps are,
    // if the call wants that.
    void (*find)(const DepthCall &, const ViewPart &, int64_t step, double *x, double *y);
    // From the gradients of points to those of depths and rays, and to sums.
    void (*back)(const DepthCall &, const DepthNumbers &, const ViewPart &, const double *x,
                 const double *y, DepthSums &);
};

DepthRows depth_rows(const DepthCall &call);

// The numbers of an item for a gradient: of one that is not sound, numbers that give no NaN times 0.
DepthNumbers sound_numbers(const DepthCall &call, int64_t index);

// Writes sums that are complete.
void write_sums(const DepthNumbers &item, const DepthSums &sums, double *to);

}  // namespace WARPKIT_ISA
}  // namespace warpkit
