// Where the sources of a sweep show a row of a view's pixels at a depth, and the way back.
//
// A pixel's point in a source is n R d + s t, as in definitions/depth.py. R d of a row is computed
// once for all depths, n and s of a depth once for all sources. NaN marks what is missing.
#pragma once
#include "matching/channels.h"
#include "shared/kernels.h"

namespace warpkit {
namespace WARPKIT_ISA {

// A row of pixels: three numbers for each, `stride` apart, a multiple of RUN.
struct RowOfThree {
    double *numbers;
    int64_t stride;

    double *part(int i) const { return numbers + i * stride; }
};

// The rays of row y of an item.
void rays_of_row(const SweepCall &call, int64_t item, int64_t y, RowOfThree rays);
// The same in a source's coordinates; NaN if its numbers are not finite.
void turned_row(const SweepCall &call, const DepthNumbers &numbers, RowOfThree rays,
                RowOfThree turned);
// The factors n and s of row y at a plane of an item.
void shares_of_row(const SweepCall &call, int64_t item, int64_t plane, int64_t y, double *near,
                   double *far);

// A run of pixels, from `column` on, at a depth in a source.
struct Places {
    const DepthNumbers &numbers;
    RowOfThree turned;
    const double *near, *far;
    int64_t column;
};

// The gradients that a row of a source collects: `to_turned` has those of R d; `sums` those of the
// source's lens and of t.
struct PlaceGradients;

using FindPlaces = void (*)(const SweepCall &, const Places &, double *x, double *y);
// From the gradients of the run's places, 0 where there is none; adds to those of n and s.
using BackPlaces = void (*)(const SweepCall &, const Places &, const double *gx, const double *gy,
                            PlaceGradients &, double *to_near, double *to_far);

FindPlaces find_places(const SweepCall &);
BackPlaces back_places(const SweepCall &);

// All gradients of a row and a source, into `to`, an array of `DepthNumbers`, and added to
// `to_rays`, unless it is null.
int64_t bytes_of_gradients();
void begin_row(PlaceGradients &, RowOfThree to_turned);
void finish_row(const SweepCall &, const DepthNumbers &, const PlaceGradients &, RowOfThree rays,
                RowOfThree to_rays, double *to);

// The gradients of a run's depths, from those of n and s.
INLINE Vec<double, RUN> depth_gradient(const SweepCall &call, const double *near,
                                       const double *far, const double *to_near,
                                       const double *to_far) {
    using Numbers = Vec<double, RUN>;
    const Numbers n = load<Numbers>(near), s = load<Numbers>(far);
    const Numbers to_n = load<Numbers>(to_near), to_s = load<Numbers>(to_far);
    Numbers found;
    if (call.kind == DEPTH_INVERSE) found = n < 1 ? -to_n * n * n : to_s;
    else found = n < 1 ? to_n : -to_s * s * s;
    return n == n ? found : Numbers{};
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
