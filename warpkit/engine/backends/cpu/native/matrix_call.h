// The block of calls on matrices, (count, rows, 3) each; a unit is one matrix.
#pragma once
#include "call.h"

// clang-format off
#define WARPKIT_MATRIX_FIELDS(FIELD)                                                             \
    /* arrays: matrices of either type, their gradient's sums, float64; what is made of them */  \
    FIELD(matrices) FIELD(sums) FIELD(out)                                                       \
    /* rows of a matrix, 2 or 3; what is given, or made of sums, is float64; of the singular */  \
    FIELD(rows) FIELD(wide) FIELD(singular_to_zero)
// clang-format on

namespace warpkit {

struct MatrixCall : Call {
    WARPKIT_MATRIX_FIELDS(WARPKIT_FIELD)
};

}  // namespace warpkit
