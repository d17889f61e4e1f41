// A kernel that runs instructions of its instruction set: out = a * x + y, fused, over n numbers.
// The call is (n, address of x, of y, of out, a's bits), float64.
#include "probe.h"

#include <string.h>

#define PASTE(a, b) a##b
#define NAMED(a, b) PASTE(a, b)

namespace {

void probe(const int64_t *call) {
    const int64_t n = call[0];
    const double *x = reinterpret_cast<const double *>(call[1]);
    const double *y = reinterpret_cast<const double *>(call[2]);
    double *out = reinterpret_cast<double *>(call[3]), a;
    memcpy(&a, &call[4], sizeof a);
    for (int64_t i = 0; i < n; i++) out[i] = __builtin_fma(a, x[i], y[i]);
}

}  // namespace

namespace warpkit {
extern const Kernels NAMED(kernels_, WARPKIT_ISA);
const Kernels NAMED(kernels_, WARPKIT_ISA) = {probe};
}  // namespace warpkit
