// What Python calls. Compiled for the baseline alone: it picks the kernels that this processor can run.
#include <stdlib.h>
#include <string.h>

#include "probe.h"
#include "processor.h"

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

using namespace warpkit;

namespace {

#if defined(__x86_64__)
const Kernels *const TABLES[] = {&kernels_sse4, &kernels_avx2, &kernels_avx512};
#else
const Kernels *const TABLES[] = {&kernels_neon};
#endif

// The place of the instruction set to use, the best by itself; -1 where WARPKIT_ISA wants one that
// the processor does not have, or that nobody knows.
int choose() {
    const char *wish = getenv("WARPKIT_ISA");
    int count = instruction_sets();
    if (!wish || !*wish) return count - 1;
    for (int n = 0; n < count; n++)
        if (!strcmp(wish, INSTRUCTION_SETS[n])) return n;
    return -1;
}

const int chosen = choose();

}  // namespace

// The instruction set in use; null where WARPKIT_ISA cannot be had: call nothing else then.
EXPORT const char *warpkit_isa(void) { return chosen < 0 ? nullptr : INSTRUCTION_SETS[chosen]; }

// The n-th instruction set that this processor can run; null after the last.
EXPORT const char *warpkit_isas(int n) { return n < 0 || n >= instruction_sets() ? nullptr : INSTRUCTION_SETS[n]; }

// The digest of the sources that this was built from.
EXPORT const char *warpkit_source(void) { return WARPKIT_SOURCE; }

EXPORT void warpkit_probe(const int64_t *call) { TABLES[chosen]->probe(call); }
