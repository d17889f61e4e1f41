// The families of calls, the tasks, and the functions that select a task's kernel.
//
// Each instruction set has its kernels in a namespace of its name. There, a function `choose_TASK`
// for each task returns the kernel that a call needs.
#pragma once
#include "shared/call.h"
#include "depth/depth_call.h"
#include "align/descent_call.h"
#include "matrices/fits_call.h"
#include "depth/front_call.h"
#include "jpeg/jpeg_call.h"
#include "points/lens_call.h"
#include "align/level_call.h"
#include "points/maps_call.h"
#include "matching/matching_call.h"
#include "matrices/matrix_call.h"
#include "align/moments_call.h"
#include "objects/objects_call.h"
#include "opencv/opencv_call.h"
#include "pictures/picture_call.h"
#include "resize/resize_call.h"
#include "points/sphere_call.h"
#include "points/transform_call.h"
#include "warp/warp_call.h"

// clang-format off
// Each family: its name, and the list of its own fields.
#define WARPKIT_FAMILIES(FAMILY)                \
    FAMILY(warp, WARPKIT_WARP_FIELDS)           \
    FAMILY(moments, WARPKIT_MOMENTS_FIELDS)     \
    FAMILY(descent, WARPKIT_DESCENT_FIELDS)     \
    FAMILY(level, WARPKIT_LEVEL_FIELDS)         \
    FAMILY(fits, WARPKIT_FITS_FIELDS)           \
    FAMILY(resize, WARPKIT_RESIZE_FIELDS)       \
    FAMILY(opencv, WARPKIT_OPENCV_FIELDS)       \
    FAMILY(objects, WARPKIT_OBJECTS_FIELDS)     \
    FAMILY(picture, WARPKIT_PICTURE_FIELDS)     \
    FAMILY(maps, WARPKIT_MAPS_FIELDS)           \
    FAMILY(lens, WARPKIT_LENS_FIELDS)           \
    FAMILY(transform, WARPKIT_TRANSFORM_FIELDS) \
    FAMILY(matrix, WARPKIT_MATRIX_FIELDS)       \
    FAMILY(sphere, WARPKIT_SPHERE_FIELDS)       \
    FAMILY(jpeg, WARPKIT_JPEG_FIELDS)           \
    FAMILY(depth, WARPKIT_DEPTH_FIELDS)         \
    FAMILY(front, WARPKIT_FRONT_FIELDS)         \
    FAMILY(channels, WARPKIT_CHANNELS_FIELDS)   \
    FAMILY(correlation, WARPKIT_CORRELATION_FIELDS) \
    FAMILY(sweep, WARPKIT_SWEEP_FIELDS)

#define WARPKIT_TASKS(TASK)                                                       \
    TASK(warp) TASK(nearest) TASK(backward) TASK(row_ranges)                      \
    TASK(first_sums) TASK(second_sums) TASK(descent) TASK(smooth_level)           \
    TASK(level_statistics)                                                        \
    TASK(four_points) TASK(four_points_backward) TASK(similarity)                 \
    TASK(homography) TASK(resize) TASK(resize_nearest) TASK(resize_cells)         \
    TASK(resize_torch) TASK(resize_linear) TASK(resize_windows)                   \
    TASK(opencv) TASK(opencv_nearest)                                             \
    TASK(paint) TASK(let_through) TASK(paint_backward)                            \
    TASK(pyramid_down) TASK(pyramid_up) TASK(rectangle) TASK(arrange) TASK(frame) \
    TASK(lens_map) TASK(converted_map) TASK(polar_map) TASK(to_polar)             \
    TASK(from_polar)                                                              \
    TASK(undistorted_points) TASK(moved_points) TASK(perspective_matrices)        \
    TASK(lens_field) TASK(lens_field_backward) TASK(lens_inverse)                 \
    TASK(lens_inverse_backward) TASK(fisheye_shown) TASK(fisheye_found)           \
    TASK(projected) TASK(fisheye_projected)                                       \
    TASK(transformed) TASK(affine_matrices) TASK(invert) TASK(inverse_vjp)        \
    TASK(sphere_places) TASK(sphere_backward) TASK(through_file)                  \
    TASK(file_backward) TASK(depth_points) TASK(depth_points_backward) TASK(front) \
    TASK(front_backward) TASK(channels_last) TASK(correlation)                     \
    TASK(correlation_to_first) TASK(correlation_to_second)                         \
    TASK(sweep) TASK(sweep_backward) TASK(sweep_to_sources)
// clang-format on

#define WARPKIT_CHOOSE(task) Kernel choose_##task(const Call &);
#define WARPKIT_CHOICES(ISA)      \
    namespace ISA {               \
    WARPKIT_TASKS(WARPKIT_CHOOSE) \
    }

namespace warpkit {
#if defined(WARPKIT_ISA)
WARPKIT_CHOICES(WARPKIT_ISA)
#endif
}  // namespace warpkit
