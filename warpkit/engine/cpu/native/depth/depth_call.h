// The block of a view's points in another camera, and their gradients; a unit is a row of an item.
// It also follows the block of a warp of these points.
#pragma once
#include "points/maps_call.h"
#include "warp/warp_call.h"

// clang-format off
#define WARPKIT_DEPTH_FIELDS(FIELD)                                                              \
    /* arrays: `DepthNumbers` of each item; depths (height, width); rays (3, height, width), */  \
    /* float64, none for a pinhole; each item's first number in both, int64 */                   \
    FIELD(numbers) FIELD(depth) FIELD(rays) FIELD(depth_starts) FIELD(ray_starts)                \
    /* for each item, float64: points (height, width, 2), own depths (height, width); bool: */   \
    /* where all taps are; the gradients of points and own depths. 0: not wanted */              \
    FIELD(points) FIELD(own) FIELD(inside) FIELD(grad_points) FIELD(grad_own)                    \
    /* gradients, for each item: to depths, of their type; to rays; sums as `DepthNumbers` of */ \
    /* each row */                                                                               \
    FIELD(to_depth) FIELD(to_rays) FIELD(sums)                                                   \
    /* whether pose, other camera, and the view's camera or rays want one */                     \
    FIELD(needs_pose) FIELD(needs_other) FIELD(needs_own)                                        \
    FIELD(height) FIELD(width)                                                                   \
    /* `DepthKind`; whether depths are float64; as in maps_call.h; whether rays are a pinhole's */ \
    FIELD(kind) FIELD(wide) FIELD(coefficients) FIELD(fisheye) FIELD(pinhole)                    \
    /* the taps of an interpolation from the whole number below, `nearest` has none; the size */ \
    /* of the other image */                                                                     \
    FIELD(first_tap) FIELD(last_tap) FIELD(nearest) FIELD(image_height) FIELD(image_width)
// clang-format on

namespace warpkit {

struct DepthCall : Call {
    WARPKIT_DEPTH_FIELDS(WARPKIT_FIELD)
};

// A warp whose points are those of depths, made where they are read; sums are of each slot.
struct DepthWarpCall : WarpCall {
    DepthCall view;
};

enum DepthKind { DEPTH_Z, DEPTH_RAY, DEPTH_INVERSE };

// An item's numbers: the other camera, the pose (3, 4), the view's fx, fy, cx, cy if it is a
// pinhole, where the other lens ends (definitions/lens_rays.py), and whether all are finite.
struct DepthNumbers {
    LensNumbers other;
    double pose[12], own[4], end, sound;
};

}  // namespace warpkit
