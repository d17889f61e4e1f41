// Blocks of a JPEG file: cosines, coefficients rounded to multiples of their steps, and back.
#pragma once
#include "vec.h"

namespace warpkit {
namespace WARPKIT_ISA {

constexpr int BLOCK = 8;

// `COSINES` of definitions/jpeg.py: (frequency, position).
constexpr int COSINES[BLOCK][BLOCK] = {{8192, 8192, 8192, 8192, 8192, 8192, 8192, 8192},
                                       {11363, 9633, 6437, 2260, -2260, -6437, -9633, -11363},
                                       {10703, 4433, -4433, -10703, -10703, -4433, 4433, 10703},
                                       {9633, -2259, -11362, -6436, 6436, 11362, 2259, -9633},
                                       {8192, -8192, -8192, 8192, 8192, -8192, -8192, 8192},
                                       {6437, -11362, 2261, 9633, -9633, -2261, 11362, -6437},
                                       {4433, -10704, 10704, -4433, -4433, 10704, -10704, 4433},
                                       {2260, -6436, 9633, -11363, 11363, -9633, 6436, -2260}};

// ITU-T T.81, tables K.1 and K.2: the steps of brightness and of colour at quality 50.
constexpr uint8_t STEPS[2][BLOCK * BLOCK] = {
    {16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26,  58,  60,  55, 14,  13,  16,  24,  40, 57,
     69, 56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37,  56,  68,  109, 103, 77, 24,  35,  55, 64,
     81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
     99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}};

using Row = Vec<int32_t, BLOCK>;  // a row of a block
using Lanes = Vec<float, BLOCK>;

// The steps of a table at a quality.
struct Table {
    int32_t steps[BLOCK * BLOCK];
    float shares[BLOCK * BLOCK];  // of an 8-fold step

    Table(const uint8_t *at_50, int64_t given) {
        const int quality = int(clamped(given, 1, 100));
        const int percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
        for (int k = 0; k < BLOCK * BLOCK; k++) {
            steps[k] = int(clamped((at_50[k] * percent + 50) / 100, 1, 255));
            shares[k] = 1 / float(8 * steps[k]);
        }
    }
};

template <int D> struct SwapLow {
    static constexpr int at(int k) { return k & D ? BLOCK + k - D : k; }
};
template <int D> struct SwapHigh {
    static constexpr int at(int k) { return k & D ? BLOCK + k : k + D; }
};

template <int D, class V> INLINE void turn_squares(V *v) {  // exchanges squares of D x D
    for (int i = 0; i < BLOCK; i++)
        if (!(i & D)) {
            V a = v[i], b = v[i + D];
            v[i] = pick<BLOCK, SwapLow<D>>(a, b), v[i + D] = pick<BLOCK, SwapHigh<D>>(a, b);
        }
}
template <class V> INLINE void turn(V *v) {
    turn_squares<1>(v), turn_squares<2>(v), turn_squares<4>(v);
}

// Two numbers of 16 bits in each lane: |X| < 2^14, and all numbers between passes are smaller.
INLINE Row paired(Row a, Row b) { return (a & 0xffff) | (b << 16); }
INLINE Row weights(int a, int b) { return splat<Row>(int32_t(uint32_t(b) << 16 | (a & 0xffff))); }

// The numbers of v at one place, times COSINES / 2^BITS, halves up.
template <int BITS> INLINE void to_waves(Row *v) {
    Row sums[4], differences[4];
    for (int i = 0; i < 4; i++) sums[i] = v[i] + v[7 - i], differences[i] = v[i] - v[7 - i];
    const Row even[] = {paired(sums[0], sums[1]), paired(sums[2], sums[3])};
    const Row odd[] = {paired(differences[0], differences[1]),
                       paired(differences[2], differences[3])};
    for (int u = 0; u < BLOCK; u++) {
        const Row *x = u % 2 ? odd : even;
        const int *a = COSINES[u];
        Row y = pair_sums(x[0], weights(a[0], a[1])) + pair_sums(x[1], weights(a[2], a[3]));
        v[u] = (y + (1 << (BITS - 1))) >> BITS;
    }
}

// The same with COSINES transposed.
template <int BITS> INLINE void from_waves(Row *v) {
    const Row even[] = {paired(v[0], v[2]), paired(v[4], v[6])};
    const Row odd[] = {paired(v[1], v[3]), paired(v[5], v[7])};
    const auto &a = COSINES;
    for (int i = 0; i < 4; i++) {
        Row e = pair_sums(even[0], weights(a[0][i], a[2][i])) +
                pair_sums(even[1], weights(a[4][i], a[6][i])) + (1 << (BITS - 1));
        Row o = pair_sums(odd[0], weights(a[1][i], a[3][i])) +
                pair_sums(odd[1], weights(a[5][i], a[7][i]));
        v[i] = (e + o) >> BITS, v[7 - i] = (e - o) >> BITS;
    }
}

// Multiples of the steps, halves away from 0. The product with a share, cut, is the quotient for
// all |X| < 2^14 and all steps: a half of 1 / (8 step) is added, more than all rounding.
INLINE Row rounded(Row x, const int32_t *steps, const float *shares) {
    const Row step = load<Row>(steps), negative = x < 0;
    const Row size = (x ^ negative) - negative;
    const Lanes sum = convert<Lanes>(size + 4 * step) + 0.5f;
    const Row kept = convert<Row>(sum * load<Lanes>(shares)) * step;
    return (kept ^ negative) - negative;
}

// A block of bytes in rows of `stride`, as the file shows it. KEPT: with the slopes of the rounded
// coefficients, and 255 where a value stays within a byte, otherwise 0, in rows of `stride`, too.
template <bool KEPT> INLINE void through_block(uint8_t *p, int64_t stride, const Table &table,
                                               float *slopes = nullptr, uint8_t *inside = nullptr) {
    using Bytes = Vec<uint8_t, BLOCK>;
    Row v[BLOCK];
    for (int y = 0; y < BLOCK; y++) v[y] = convert<Row>(load<Bytes>(p + y * stride)) - 128;
    turn(v), to_waves<11>(v);
    turn(v), to_waves<15>(v);
    if (KEPT)
        for (int u = 0; u < BLOCK; u++) {
            const Lanes size = magnitude(convert<Lanes>(v[u])) * load<Lanes>(table.shares + 8 * u);
            store(slopes + BLOCK * u, smaller(0.1f + 1.8f * size, splat<Lanes>(1)));
        }
    for (int u = 0; u < BLOCK; u++)
        v[u] = rounded(v[u], table.steps + BLOCK * u, table.shares + BLOCK * u);
    from_waves<11>(v), turn(v);
    from_waves<18>(v), turn(v);
    for (int y = 0; y < BLOCK; y++) {
        const Row levels = smaller(larger(v[y] + 128, Row{}), splat<Row>(255));
        store(p + y * stride, convert<Bytes>(levels));
        if (KEPT) store(inside + y * stride, convert<Bytes>((levels == v[y] + 128) & 255));
    }
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
