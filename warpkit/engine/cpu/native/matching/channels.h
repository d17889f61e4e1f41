// Sixteen numbers at a time for every register width, so that all instruction sets sum alike: the
// channels of a pixel, or the pixels of a run along a row.
#pragma once
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int RUN = 16;
using Piece = Vec<float, RUN>;
using Wholes = Vec<int32_t, RUN>;
#define UNROLLED _Pragma("clang loop unroll(full)")

template <class Order> INLINE Piece of_two(Piece a, Piece b) { return pick<RUN, Order>(a, b); }

// Lanes of two pieces: the lower or upper eight of both; every other four; every other two, and
// every other one within each four. All are single shuffles of whole quarters or inside them.
struct Low8 {
    static constexpr int at(int k) { return k < 8 ? k : k + 8; }
};
struct Low4 {
    static constexpr int at(int k) { return k / 4 * 8 + k % 4; }
};
struct Low2 {
    static constexpr int at(int k) { return k / 4 * 4 + k % 4 / 2 * RUN + k % 2; }
};
struct Low1 {
    static constexpr int at(int k) { return k / 4 * 4 + k % 4 / 2 * RUN + k % 2 * 2; }
};
template <class Low, int STEP> struct Above {
    static constexpr int at(int k) { return Low::at(k) + STEP; }
};
template <class Low, int STEP> INLINE Piece folded(Piece a, Piece b) {
    return of_two<Low>(a, b) + of_two<Above<Low, STEP>>(a, b);
}

// The sums of N <= 16 pieces in the first N lanes: four folds halve them, two shuffles and an
// addition each. Pieces that meet differ in bit 2 of their number, then 3, 0 and 1, so that the
// lanes end in order.
template <int N> INLINE Piece sums_of(const Piece *v) {
    Piece eights[2][4] = {}, fours[4];
    for (int n = 0; n < 4; n++)
        for (int high = 0; high < 2; high++) {
            const int a = 8 * high + n, b = a + 4;
            if (a < N) eights[high][n] = folded<Low8, 8>(v[a], b < N ? v[b] : Piece{});
        }
    for (int n = 0; n < 4; n++) fours[n] = folded<Low4, 4>(eights[0][n], eights[1][n]);
    return folded<Low1, 1>(folded<Low2, 2>(fours[0], fours[1]), folded<Low2, 2>(fours[2], fours[3]));
}

// Transposes sixteen pieces: numbers within each quarter, then the quarters.
struct Pairs {
    static constexpr int at(int k) { return k / 4 * 4 + k % 4 / 2 + k % 2 * RUN; }
};
struct PairsOfTwo {
    static constexpr int at(int k) { return k / 4 * 4 + k % 2 + k % 4 / 2 * RUN; }
};
INLINE void transpose(Piece *v) {
    Piece t[RUN], u[RUN];
    UNROLLED for (int m = 0; m < RUN; m += 2) {
        t[m] = of_two<Pairs>(v[m], v[m + 1]);
        t[m + 1] = of_two<Above<Pairs, 2>>(v[m], v[m + 1]);
    }
    UNROLLED for (int m = 0; m < RUN; m += 4) {
        for (int half = 0; half < 2; half++) {
            u[m + 2 * half] = of_two<PairsOfTwo>(t[m + half], t[m + 2 + half]);
            u[m + 2 * half + 1] = of_two<Above<PairsOfTwo, 2>>(t[m + half], t[m + 2 + half]);
        }
    }
    using High8 = Above<Low8, 8>;
    using High4 = Above<Low4, 4>;
    UNROLLED for (int q = 0; q < 4; q++) {
        const Piece a = of_two<Low8>(u[q], u[4 + q]), b = of_two<Low8>(u[8 + q], u[12 + q]);
        const Piece c = of_two<High8>(u[q], u[4 + q]), d = of_two<High8>(u[8 + q], u[12 + q]);
        v[q] = of_two<Low4>(a, b), v[4 + q] = of_two<High4>(a, b);
        v[8 + q] = of_two<Low4>(c, d), v[12 + q] = of_two<High4>(c, d);
    }
}

INLINE Piece load_piece(const float *p, int64_t n) {  // the first n; 0 beyond, and not accessed
    if (n >= RUN) return load<Piece>(p);
    Piece v{};
    for (int k = 0; k < n; k++) v[k] = p[k];
    return v;
}
INLINE void store_piece(float *p, Piece v, int64_t n) {
    if (n >= RUN) return store(p, v);
    for (int k = 0; k < n; k++) p[k] = v[k];
}

// One bit for each lane of a mask.
INLINE uint32_t bits_of_all(Wholes mask) {
    constexpr int L = LANES<float>;
    Vec<int32_t, L> part;
    uint32_t found = 0;
    UNROLLED for (int k = 0; k < RUN; k += L) {
        memcpy(&part, reinterpret_cast<const char *>(&mask) + 4 * k, sizeof part);
        found |= uint32_t(bits_of(part)) << k;
    }
    return found;
}

// How a pixel's channels lie in a copy: the channel at each of `padded` places, -1 for none.
struct Channels {
    const int32_t *order;
    int64_t padded;
};

// n <= 16 neighbouring pixels of planes, `plane` numbers apart, as pieces of channels.
INLINE void to_pixels(Channels c, const float *planes, int64_t plane, int64_t n, float *to) {
    for (int64_t b = 0; b < c.padded; b += RUN) {
        Piece v[RUN];
        for (int k = 0; k < RUN; k++) {
            const int64_t channel = c.order[b + k];
            v[k] = channel < 0 ? Piece{} : load_piece(planes + channel * plane, n);
        }
        transpose(v);
        for (int64_t k = 0; k < n; k++) store(to + k * c.padded + b, v[k]);
    }
}

// The way back.
INLINE void to_planes(Channels c, const float *from, int64_t plane, int64_t n, float *planes) {
    for (int64_t b = 0; b < c.padded; b += RUN) {
        Piece v[RUN];
        for (int k = 0; k < RUN; k++)
            v[k] = k < n ? load<Piece>(from + k * c.padded + b) : Piece{};
        transpose(v);
        for (int k = 0; k < RUN; k++) {
            const int64_t channel = c.order[b + k];
            if (channel >= 0) store_piece(planes + channel * plane, v[k], n);
        }
    }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
