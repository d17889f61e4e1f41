// The block of an alignment's descent at one pyramid level: see descent.cpp. A unit is a pair of
// images.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_DESCENT_FIELDS(FIELD)                                                         \
    /* arrays: the moving images with their weights as the last channel; the fixed images, */ \
    /* their slopes and weights; initial matrices (float64); the result of each pair */       \
    FIELD(moving) FIELD(fixed) FIELD(fixed_x) FIELD(fixed_y) FIELD(weight)                    \
    FIELD(to_source) FIELD(out)                                                               \
    /* the block of the second sums for one pair; scores (float64) that a pair must exceed to */ \
    /* move at all, or 0 */                                                                   \
    FIELD(second_sums) FIELD(least_scores)                                                    \
    /* the model's tables, float64, and `DescentLimits` */                                    \
    FIELD(generators) FIELD(quadratic) FIELD(linear) FIELD(limits)                            \
    FIELD(channels) FIELD(moving_height) FIELD(moving_width) FIELD(height) FIELD(width)       \
    /* from a pair's weights to the next one's: a plane, or 0 if all have the same */         \
    FIELD(weight_size)                                                                        \
    /* numbers of a step, and of a result; the largest number of steps */                     \
    FIELD(parameters) FIELD(result_size) FIELD(steps)                                         \
    /* whether gain and bias are fixed at 1 and 0, matrices divide, images are float64 */     \
    FIELD(by_values) FIELD(projective) FIELD(doubles)
// clang-format on

namespace warpkit {

struct DescentCall : Call {
    WARPKIT_DESCENT_FIELDS(WARPKIT_FIELD)
};

// See alignment/solver.py and sums.py for their meaning.
struct DescentLimits {
    double tolerance, small, longest, least_overlap;
    double first_damping, least_damping, most_damping, singular;
};

}  // namespace warpkit
