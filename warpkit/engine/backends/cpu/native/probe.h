// One entry point for each instruction set, as small as can be: see probe.cpp.
#pragma once

#include <stdint.h>

namespace warpkit {

struct Kernels {
    void (*probe)(const int64_t *call);
};

#if defined(__x86_64__)
extern const Kernels kernels_sse4, kernels_avx2, kernels_avx512;
#else
extern const Kernels kernels_neon;
#endif

}  // namespace warpkit
