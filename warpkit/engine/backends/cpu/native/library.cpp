// What Python calls: picks the kernels of this processor, deals their units to threads, and keeps
// their memory. Compiled for the baseline alone.
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"
#include "processor.h"

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace warpkit {

#if defined(__x86_64__)
WARPKIT_TABLES(sse4)
WARPKIT_TABLES(avx2)
WARPKIT_TABLES(avx512)
#else
WARPKIT_TABLES(neon)
#endif

// -- memory --

namespace {

struct Block {
    size_t bytes;
    void *allocated;
};
constexpr size_t LINE = 64;  // of a cache; the block's head stands in the line before the memory

constexpr int SLOTS = 64;
Block *waiting[SLOTS];

Block *new_block(size_t bytes) {
    char *allocated = static_cast<char *>(malloc(bytes + 2 * LINE));
    if (!allocated) return nullptr;
    char *memory = allocated + 2 * LINE - reinterpret_cast<uintptr_t>(allocated) % LINE;
    Block *block = reinterpret_cast<Block *>(memory - LINE);
    *block = {bytes, allocated};
    return block;
}

}  // namespace

void *take_memory(size_t bytes) {
    for (Block *&slot : waiting) {
        if (!__atomic_load_n(&slot, __ATOMIC_RELAXED)) continue;
        Block *block = __atomic_exchange_n(&slot, nullptr, __ATOMIC_ACQUIRE);
        if (!block) continue;
        if (block->bytes >= bytes) return reinterpret_cast<char *>(block) + LINE;
        free(block->allocated);  // the next one in this slot is as large as the largest kernel's
    }
    Block *block = new_block(bytes);
    return block ? reinterpret_cast<char *>(block) + LINE : nullptr;
}

void give_memory(void *memory) {
    if (!memory) return;
    Block *block = reinterpret_cast<Block *>(static_cast<char *>(memory) - LINE);
    for (Block *&slot : waiting) {
        Block *none = nullptr;
        if (__atomic_compare_exchange_n(&slot, &none, block, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return;
    }
    free(block->allocated);
}

// -- threads --

namespace {

// OpenMP's own: runs a function of one argument on so many threads, of which the caller is one.
using Team = void (*)(void (*)(void *), void *, unsigned threads, unsigned flags);

struct Work {
    Kernel kernel;
    const Call *call;
    int64_t next, end, run;
};

// One thread's part: runs of consecutive units, whichever comes next. Which thread does a unit
// changes no bit of a result.
void share(void *argument) {
    Work &work = *static_cast<Work *>(argument);
    for (;;) {
        int64_t begin = __atomic_fetch_add(&work.next, work.run, __ATOMIC_RELAXED);
        if (begin >= work.end) return;
        int64_t end = begin + work.run;
        work.kernel(*work.call, begin, end < work.end ? end : work.end);
    }
}

// -- the choice --

struct Tables {
    const Kernel (*warp)[3], (*backward)[4], *row_ranges, *nearest;
};

#define OF(isa) \
    { isa::WARP, isa::BACKWARD, isa::ROW_RANGES, isa::NEAREST }
#if defined(__x86_64__)
const Tables TABLES[] = {OF(sse4), OF(avx2), OF(avx512)};
#else
const Tables TABLES[] = {OF(neon)};
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

enum Task { WARP, BACKWARD, ROW_RANGES, NEAREST };

int logarithm(int64_t power_of_two) { return __builtin_ctzll(uint64_t(power_of_two)); }

Kernel kernel_of(int64_t task, const Call &p) {
    const Tables &tables = TABLES[chosen];
    switch (task) {
        case WARP: return tables.warp[p.type != FLOAT32][logarithm(p.taps) - 1];
        case BACKWARD: return tables.backward[p.type][logarithm(p.taps)];
        case ROW_RANGES: return tables.row_ranges[logarithm(p.taps)];
        default: return tables.nearest[logarithm(p.number_bytes)];
    }
}

}  // namespace
}  // namespace warpkit

using namespace warpkit;

// The instruction set in use; null where WARPKIT_ISA cannot be had: call nothing else then.
EXPORT const char *warpkit_isa(void) { return chosen < 0 ? nullptr : INSTRUCTION_SETS[chosen]; }

// The n-th instruction set that this processor can run; null after the last.
EXPORT const char *warpkit_isas(int n) {
    return n < 0 || n >= instruction_sets() ? nullptr : INSTRUCTION_SETS[n];
}

// The digest of the sources that this was built from.
EXPORT const char *warpkit_source(void) { return WARPKIT_SOURCE; }

// The names of a call's fields, in their order, each with a space after it.
EXPORT const char *warpkit_fields(void) {
#define FIELD(name) #name " "
    return WARPKIT_FIELDS(FIELD);
#undef FIELD
}

// Units first .. end of a task (see `Task`), dealt to `threads` in runs of `run`: by `team`, the
// address of OpenMP's GOMP_parallel, or all by the caller where that is 0.
EXPORT void warpkit_run(const int64_t *numbers) {
    const Call &call = *reinterpret_cast<const Call *>(numbers);
    Kernel kernel = kernel_of(call.task, call);
    Work work = {kernel, &call, call.first_unit, call.end_unit, call.run};
    int64_t runs = (work.end - work.next + work.run - 1) / work.run;
    int64_t threads = call.threads < runs ? call.threads : runs;
    if (threads <= 1 || !call.team) return kernel(call, work.next, work.end);
    reinterpret_cast<Team>(call.team)(share, &work, unsigned(threads), 0);
}
