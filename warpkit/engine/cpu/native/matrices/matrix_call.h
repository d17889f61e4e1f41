// The block of calls on matrices, (count, rows, 3) each; a unit is one matrix.
#pragma once
#include "shared/call.h"

// clang-format off
#define WARPKIT_MATRIX_FIELDS(FIELD)                                                               \
    /* arrays: matrices; their incoming gradient, float64; the result */                           \
    FIELD(matrices) FIELD(sums) FIELD(out)                                                         \
    /* rows of a matrix, 2 or 3; whether the caller's type is float64; whether the inverse of a */ \
    /* singular matrix is 0, not NaN */                                                            \
    FIELD(rows) FIELD(wide) FIELD(singular_to_zero)
// clang-format on

namespace warpkit {

struct MatrixCall : Call {
    WARPKIT_MATRIX_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
