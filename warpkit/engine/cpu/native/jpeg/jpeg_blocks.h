// A file's blocks of 8 x 8 numbers: cosines, rounded coefficients, and the way back, in integers.
//
// Numbers have 16 bits, and a register holds a row of each of 1, 2 or 4 blocks side by side. No
// number overflows: see `to_waves`. Sums of products have 32 bits.
#pragma once
#include "shared/int16.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int BLOCK = 8;
constexpr int GROUP = HALVES / BLOCK;  // blocks in a register

// ITU-T T.81, tables K.1 and K.2: the steps of brightness and of colour at quality 50.
constexpr uint8_t STEPS[2][BLOCK * BLOCK] = {
    {16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26,  58,  60,  55, 14,  13,  16,  24,  40, 57,
     69, 56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37,  56,  68,  109, 103, 77, 24,  35,  55, 64,
     81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
     99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}};

// The steps of a table at a quality, for all blocks of a register.
struct Table {
    Halves step[BLOCK], half[BLOCK], inverse[BLOCK], scale[BLOCK];
    float slopes[BLOCK][HALVES];  // (column, row): of 1/64 of the slope of an 8-fold coefficient

    // A quotient n / d by d = 8 step, of n < 2^14, is n * inverse >> (15 + k), where 2^k is the
    // first power of two that is not below d, and `inverse` is 2^(15 + k) / d, rounded up.
    Table(const uint8_t *at_50, int64_t given) {
        const int quality = int(clamped(given, 1, 100));
        const int percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
        for (int u = 0; u < BLOCK; u++)
            for (int x = 0; x < BLOCK; x++) {
                const int s = int(clamped((at_50[BLOCK * u + x] * percent + 50) / 100, 1, 255));
                int k = 3;
                while (1 << k < 8 * s) k++;
                const int reciprocal = ((1 << (15 + k)) + 8 * s - 1) / (8 * s);
                for (int n = u; n < HALVES; n += BLOCK) slopes[x][n] = 1.8f / 64 / float(8 * s);
                for (int n = x; n < HALVES; n += BLOCK) {
                    step[u][n] = int16_t(s), half[u][n] = int16_t(4 * s);
                    inverse[u][n] = int16_t(uint16_t(reciprocal));
                    scale[u][n] = int16_t(1 << (17 - k));  // a shift by k - 1, after one by 16
                }
            }
    }
};

INLINE void turn(Halves *v) {  // each block: every round moves the bits of a place by one
    for (int round = 0; round < 3; round++) {
        Halves turned[BLOCK];
        for (int i = 0; i < 4; i++) {
            turned[2 * i] = zip_low(v[i], v[i + 4]);
            turned[2 * i + 1] = zip_high(v[i], v[i + 4]);
        }
        for (int i = 0; i < BLOCK; i++) v[i] = turned[i];
    }
}

// The numbers of v at one place, times `COSINES` of definitions/jpeg.py / 2^BITS, halves up.
//
// Levels are from -128 to 127: the first pass makes at most 4096 of them, of which eight add up to
// -32,768 to 32,640, and the second one makes at most 8192.
template <int BITS> INLINE void to_waves(Halves *v) {
    Halves s[4], d[4];
    for (int i = 0; i < 4; i++) s[i] = v[i] + v[7 - i], d[i] = v[i] - v[7 - i];
    const Halves a = s[0] + s[3], b = s[1] + s[2];
    constexpr int LESS = BITS - 13;  // 8192 is 2^13
    if constexpr (LESS < 0) v[0] = (a + b) << -LESS, v[4] = (a - b) << -LESS;
    else {
        const Halves up = splat<Halves>(1 << (LESS - 1));
        v[0] = (a + b + up) >> LESS, v[4] = (a - b + up) >> LESS;
    }
    const Pairs even(s[0] - s[3], s[1] - s[2]), first(d[0], d[1]), second(d[2], d[3]);
    v[2] = scaled_sums<BITS>(even, 10703, 4433);
    v[6] = scaled_sums<BITS>(even, 4433, -10704);
    auto odd = [&](int p, int q, int r, int t) {
        const Wide w = weights(p, q), x = weights(r, t), up = splat<Wide>(1 << (BITS - 1));
        return narrowed((pair_sums(first.low, w) + pair_sums(second.low, x) + up) >> BITS,
                        (pair_sums(first.high, w) + pair_sums(second.high, x) + up) >> BITS);
    };
    v[1] = odd(11363, 9633, 6437, 2260);
    v[3] = odd(9633, -2259, -11362, -6436);
    v[5] = odd(6437, -11362, 2261, 9633);
    v[7] = odd(2260, -6436, 9633, -11363);
}

// The same with COSINES transposed. A block's coefficients have a norm below 1024, and the errors
// of their rounding too, so that a pass makes less than 2^15.
template <int BITS> INLINE void from_waves(Halves *v) {
    const Pairs a(v[0], v[4]), b(v[2], v[6]), c(v[1], v[3]), d(v[5], v[7]);
    const Wide up = splat<Wide>(1 << (BITS - 1));
    Wide low[4], high[4];
    auto both = [](Pairs x, int m, int n, Wide *to) {
        to[0] = pair_sums(x.low, weights(m, n)), to[1] = pair_sums(x.high, weights(m, n));
    };
    Wide sum[2], difference[2], outer[2], inner[2];
    both(a, 8192, 8192, sum), both(a, 8192, -8192, difference);
    both(b, 10703, 4433, outer), both(b, 4433, -10704, inner);
    for (int n = 0; n < 2; n++) {
        Wide *even = n ? high : low;
        sum[n] += up, difference[n] += up;
        even[0] = sum[n] + outer[n], even[3] = sum[n] - outer[n];
        even[1] = difference[n] + inner[n], even[2] = difference[n] - inner[n];
    }
    auto odd = [&](int i, int p, int q, int r, int t) {
        const Wide w = weights(p, q), x = weights(r, t);
        const Wide lower = pair_sums(c.low, w) + pair_sums(d.low, x);
        const Wide upper = pair_sums(c.high, w) + pair_sums(d.high, x);
        v[i] = narrowed((low[i] + lower) >> BITS, (high[i] + upper) >> BITS);
        v[7 - i] = narrowed((low[i] - lower) >> BITS, (high[i] - upper) >> BITS);
    };
    odd(0, 11363, 9633, 6437, 2260);
    odd(1, 9633, -2259, -11362, -6436);
    odd(2, 6437, -11362, 2261, 9633);
    odd(3, 2260, -6436, 9633, -11363);
}

// Multiples of the steps, halves away from 0.
INLINE Halves rounded(Halves x, const Table &table, int u) {
    using Unsigned = Vec<uint16_t, HALVES>;
    const Halves negative = x >> 15, size = (x ^ negative) - negative;
    const Unsigned sum = (Unsigned)(size + table.half[u]);
    const Unsigned part = high_products(sum, (Unsigned)table.inverse[u]);
    const Halves kept = (Halves)high_products(part, (Unsigned)table.scale[u]) * table.step[u];
    return (kept ^ negative) - negative;
}

// A group of blocks of bytes in rows of `stride`, as the file shows it. KEPT: with its 8-fold
// coefficients, columns first; and 255 where a value stays within a byte, otherwise 0, in rows of
// `stride`, too.
template <bool KEPT> INLINE void through_blocks(uint8_t *p, int64_t stride, const Table &table,
                                                int16_t *waves = nullptr,
                                                uint8_t *inside = nullptr) {
    using Bytes = Vec<uint8_t, HALVES>;
    Halves v[BLOCK];
    for (int y = 0; y < BLOCK; y++) v[y] = convert<Halves>(load<Bytes>(p + y * stride)) - 128;
    turn(v), to_waves<11>(v);
    turn(v), to_waves<15>(v);
    if (KEPT) {
        Halves turned[BLOCK];
        for (int u = 0; u < BLOCK; u++) turned[u] = v[u];
        turn(turned);
        for (int u = 0; u < BLOCK; u++) store(waves + HALVES * u, turned[u]);
    }
    for (int u = 0; u < BLOCK; u++) v[u] = rounded(v[u], table, u);
    from_waves<11>(v), turn(v);
    from_waves<18>(v), turn(v);
    for (int y = 0; y < BLOCK; y++) {
        const Halves made = v[y] + 128;
        const Halves levels = smaller(larger(made, Halves{}), splat<Halves>(255));
        store(p + y * stride, convert<Bytes>(levels));
        if (KEPT) store(inside + y * stride, convert<Bytes>((levels == made) & 255));
    }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
