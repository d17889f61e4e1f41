// The functions that Python calls: they select this processor's kernels, distribute their units to
// threads, and keep their memory. Compiled for the baseline only.
#include <stdlib.h>
#include <string.h>

#include "shared/kernels.h"
#include "shared/memory.h"
#include "shared/processor.h"

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace warpkit {

// The functions that select the kernel of each task, by instruction set.
#define CHOOSE(task) choose_##task,
#define CHOICES_OF(ISA)                                                    \
    WARPKIT_CHOICES(ISA)                                                   \
    namespace ISA {                                                        \
    constexpr Kernel (*CHOICES[])(const Call &) = {WARPKIT_TASKS(CHOOSE)}; \
    }
#if defined(WARPKIT_ONE_SET)  // the others were not compiled
CHOICES_OF(WARPKIT_ONE_SET)
#elif defined(__x86_64__)
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
constexpr size_t LINE = 64;  // of the cache; a block's head is in the line before its memory

// A build for sanitizers keeps no memory: so reads beyond a block are found, and two units that
// write to the same address do so in different blocks.
#if !defined(WARPKIT_SLOTS)
#define WARPKIT_SLOTS 64
#endif
Block *waiting[WARPKIT_SLOTS];
int64_t refusals;  // how often there was no memory

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
        free(block->allocated);  // this slot's next block fits the largest kernel
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

// OpenMP's own: runs a function of one argument on this many threads, including the caller.
using Team = void (*)(void (*)(void *), void *, unsigned threads, unsigned flags);

struct Work {
    Kernel kernel;
    const Call *call;
    int64_t next, end, run;
};

// One thread's part: takes runs of consecutive units, one after the other. The assignment of units
// to threads changes no bit of a result.
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

#define TEXT_OF(word) #word
#define TEXT(word) TEXT_OF(word)
#if defined(WARPKIT_ONE_SET)
const Choose *const CHOICES[] = {WARPKIT_ONE_SET::CHOICES};
constexpr const char *SETS[] = {TEXT(WARPKIT_ONE_SET)};

int available() {  // 1 if the processor can run it, otherwise 0
    int count = instruction_sets();
    while (count && strcmp(INSTRUCTION_SETS[count - 1], SETS[0])) count--;
    return count > 0;
}
#else
#if defined(__x86_64__)
const Choose *const CHOICES[] = {sse4::CHOICES, avx2::CHOICES, avx512::CHOICES};
#else
const Choose *const CHOICES[] = {neon::CHOICES};
#endif
constexpr auto &SETS = INSTRUCTION_SETS;

int available() { return instruction_sets(); }
#endif

// The index of the instruction set to use, by default the best; -1 if there is none, or if
// WARPKIT_ISA names one that is unknown or that the processor lacks.
int choose() {
    const char *wish = getenv("WARPKIT_ISA");
    int count = available();
    if (!wish || !*wish) return count - 1;
    for (int n = 0; n < count; n++)
        if (!strcmp(wish, SETS[n])) return n;
    return -1;
}

const int chosen = choose();

}  // namespace
}  // namespace warpkit

using namespace warpkit;

// The instruction set in use; null if none is, or not WARPKIT_ISA's: then nothing else may be called.
EXPORT const char *warpkit_isa(void) { return chosen < 0 ? nullptr : SETS[chosen]; }

// The n-th instruction set that this processor can run; null after the last.
EXPORT const char *warpkit_isas(int n) {
    return n < 0 || n >= available() ? nullptr : SETS[n];
}

// The digest of the sources from which this was built, and the name of a lone instruction set.
EXPORT const char *warpkit_source(void) { return WARPKIT_SOURCE; }

// The families of calls, one per line: its name and the names of its block's fields, in order.
EXPORT const char *warpkit_families(void) {
#define FIELD(name) " " #name
#define FAMILY(name, FIELDS) #name WARPKIT_CALL_FIELDS(FIELD) FIELDS(FIELD) "\n"
    return WARPKIT_FAMILIES(FAMILY);
}

// The names of the tasks in the order of their numbers, each followed by a space.
EXPORT const char *warpkit_tasks(void) {
#define TASK(name) #name " "
    return WARPKIT_TASKS(TASK);
}

// Units first_unit .. end_unit of a task, distributed to `threads` in runs of `run`: by `team`, the
// address of OpenMP's GOMP_parallel, or all in the caller if that is 0. Returns 0, or 1 if a kernel
// ran out of memory: this call's, or another one's that ran meanwhile.
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
