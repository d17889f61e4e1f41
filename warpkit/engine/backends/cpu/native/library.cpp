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

// What chooses the kernel of each task, by instruction set.
#define CHOOSE(task) choose_##task,
#define CHOICES_OF(ISA)                                                    \
    WARPKIT_CHOICES(ISA)                                                   \
    namespace ISA {                                                        \
    constexpr Kernel (*CHOICES[])(const Call &) = {WARPKIT_TASKS(CHOOSE)}; \
    }
#if defined(__x86_64__)
CHOICES_OF(sse4)
CHOICES_OF(avx2)
CHOICES_OF(avx512)
#else
CHOICES_OF(neon)
#endif

// -- memory --

namespace {

struct Block {
    size_t bytes;
    void *allocated;
};
constexpr size_t LINE = 64;  // of a cache; the block's head stands in the line before the memory

// A build for sanitizers has none: what is read beyond a block shows there, and two units that
// write to the same place do so in different blocks.
#if !defined(WARPKIT_SLOTS)
#define WARPKIT_SLOTS 64
#endif
Block *waiting[WARPKIT_SLOTS];
int64_t refusals;  // how often there was none

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
    if (block) return reinterpret_cast<char *>(block) + LINE;
    __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED);
    return nullptr;
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

using Choose = Kernel (*)(const Call &);

#if defined(__x86_64__)
const Choose *const CHOICES[] = {sse4::CHOICES, avx2::CHOICES, avx512::CHOICES};
#else
const Choose *const CHOICES[] = {neon::CHOICES};
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

// The families of calls, a line each: its name and the names of its block's fields, in their order.
EXPORT const char *warpkit_families(void) {
#define FIELD(name) " " #name
#define FAMILY(name, FIELDS) #name WARPKIT_CALL_FIELDS(FIELD) FIELDS(FIELD) "\n"
    return WARPKIT_FAMILIES(FAMILY);
}

// The names of the tasks, in the order of their numbers, with a space after each.
EXPORT const char *warpkit_tasks(void) {
#define TASK(name) #name " "
    return WARPKIT_TASKS(TASK);
}

// Units first_unit .. end_unit of a task, dealt to `threads` in runs of `run`: by `team`, the
// address of OpenMP's GOMP_parallel, or all by the caller where that is 0. Returns 0, or 1 where a
// kernel had no memory to work in: this call's, or one of another that ran meanwhile.
EXPORT int warpkit_run(const int64_t *numbers) {
    const Call &call = *reinterpret_cast<const Call *>(numbers);
    Kernel kernel = CHOICES[chosen][call.task](call);
    Work work = {kernel, &call, call.first_unit, call.end_unit, call.run};
    int64_t runs = (work.end - work.next + work.run - 1) / work.run;
    int64_t threads = call.threads < runs ? call.threads : runs;
    int64_t before = __atomic_load_n(&refusals, __ATOMIC_RELAXED);
    if (threads <= 1 || !call.team) kernel(call, work.next, work.end);
    else reinterpret_cast<Team>(call.team)(share, &work, unsigned(threads), 0);
    return __atomic_load_n(&refusals, __ATOMIC_RELAXED) != before;
}
