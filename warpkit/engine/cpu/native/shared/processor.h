// Determines which instruction sets of this library the processor and operating system can run.
//
// The names are those of the build (hatch_build.py), from the lowest to the highest:
//   x86-64   sse4 = x86-64-v2,  avx2 = x86-64-v3,  avx512 = x86-64-v4
//   aarch64  neon
// A processor must have an x86 level completely, because the compiler may use any of its
// instructions. So a processor with AVX2 but without BMI2 (some virtual machines hide it) gets
// sse4.
//
// We execute cpuid ourselves. `__builtin_cpu_supports` needs a table that a compiler's runtime
// fills at program start; zig's runtime has none, so it always answers no.
#pragma once

#include <stdint.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace warpkit {

#if defined(__x86_64__)

namespace processor {

struct Registers {
    uint32_t a, b, c, d;
};

// The result of cpuid for a leaf; zeros if the processor does not have it.
inline Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
    Registers r{0, 0, 0, 0};
    __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
    return r;
}

// The registers that the operating system saves when it switches threads (XCR0): vector registers
// that it does not save cannot be used. The instruction itself needs OSXSAVE.
inline uint32_t saved_registers() {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

constexpr bool has(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

constexpr uint32_t bit(int n) { return uint32_t(1) << n; }

// Intel's manual, volume 2, CPUID; the levels are defined in the x86-64 psABI, section 3.1.1.
constexpr uint32_t FMA = bit(12), MOVBE = bit(22), OSXSAVE = bit(27), AVX = bit(28),
                   F16C = bit(29);                                             // 1, ecx
constexpr uint32_t BMI1 = bit(3), AVX2 = bit(5), BMI2 = bit(8);                // 7, ebx
constexpr uint32_t AVX512F = bit(16), AVX512DQ = bit(17), AVX512CD = bit(28);  // 7, ebx
constexpr uint32_t AVX512BW = bit(30), AVX512VL = bit(31);                     // 7, ebx
constexpr uint32_t LZCNT = bit(5);                                             // 0x80000001, ecx
constexpr uint32_t XMM = bit(1), YMM = bit(2), MASKS = bit(5), ZMM = bit(6),
                   ZMM16 = bit(7);  // XCR0

}  // namespace processor

// How many of `sse4`, `avx2`, `avx512` can run: 1, 2 or 3.
inline int instruction_sets() {
    using namespace processor;
    uint32_t basic = cpuid(1).c;
    if (!has(basic, FMA | MOVBE | OSXSAVE | AVX | F16C)) return 1;
    uint32_t saved = saved_registers(), extended = cpuid(7).b;
    if (!has(saved, XMM | YMM) || !has(extended, BMI1 | AVX2 | BMI2)) return 1;
    if (!has(cpuid(0x80000001).c, LZCNT)) return 1;
    // macOS saves a thread's mask registers only after its first AVX-512 instruction: use avx2
    // there
    if (!has(saved, MASKS | ZMM | ZMM16)) return 2;
    return has(extended, AVX512F | AVX512DQ | AVX512CD | AVX512BW | AVX512VL) ? 3 : 2;
}

constexpr const char *INSTRUCTION_SETS[] = {"sse4", "avx2", "avx512"};

#elif defined(__aarch64__)

// Every 64-bit ARM processor has NEON.
inline int instruction_sets() { return 1; }

constexpr const char *INSTRUCTION_SETS[] = {"neon"};

#else
#error "warpkit's kernels are written for x86-64 and aarch64"
#endif

}  // namespace warpkit
