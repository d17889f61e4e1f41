// The tables of kernels, which every instruction set has in a namespace of its name.
#pragma once
#include "call.h"

#define WARPKIT_TABLES(ISA)                                                                   \
    namespace ISA {                                                                           \
    extern const Kernel WARP[2][3];     /* float32, and others by float64; 2, 4 and 8 taps */ \
    extern const Kernel BACKWARD[2][4]; /* float32 and float64; 1, 2, 4 and 8 taps */         \
    extern const Kernel ROW_RANGES[4];                                                        \
    extern const Kernel NEAREST[4]; /* numbers of 1, 2, 4 and 8 bytes */                      \
    }

namespace warpkit {
#if defined(WARPKIT_ISA)
WARPKIT_TABLES(WARPKIT_ISA)
#endif
}  // namespace warpkit
