// Transposes rows: number e of R rows becomes one vector, and back.
//
// A sum along x adds numbers at irregular distances in a row. In R transposed rows a column is one
// vector, so the sum needs neither gathers nor shuffles.
//
// Interleaving the upper half of B rows with the lower one, log2(B) times, transposes B x B
// numbers:
//
//     a0 a1 a2 a3      a0 c0 a1 c1      a0 b0 c0 d0
//     b0 b1 b2 b3  ->  a2 c2 a3 c3  ->  a1 b1 c1 d1
//     c0 c1 c2 c3      b0 d0 b1 d1      a2 b2 c2 d2
//     d0 d1 d2 d3      b2 d2 b3 d3      a3 b3 c3 d3
#pragma once
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

template <int N> struct ZipLow {
    static constexpr int at(int k) { return k / 2 + k % 2 * N; }
};
template <int N> struct ZipHigh {
    static constexpr int at(int k) { return N / 2 + ZipLow<N>::at(k); }
};

// With 64-byte registers, two of them are interleaved in one instruction. AVX2 is slow across its
// halves; and for bytes and pairs of bytes every processor interleaves only pieces of 16 in one
// instruction.
template <class U>
constexpr int PIECE = (sizeof(U) >= 4 && REGISTER == 64 ? 64 : 16) / int(sizeof(U));

// Transposes R x R numbers: rows from(0), from(1), ... become the columns of rows to(0), to(1), ...
template <class U, int R, class From, class To> INLINE void turn_block(From from, To to) {
    constexpr int B = PIECE<U> < R ? PIECE<U> : R;
    using V = Vec<U, B>;
    for (int i = 0; i < R; i += B)
        for (int j = 0; j < R; j += B) {
            V v[B], w[B];
            for (int n = 0; n < B; n++) v[n] = load<V>(from(i + n) + j);
            for (int zips = 1; zips < B; zips *= 2) {
                for (int n = 0; n < B / 2; n++) {
                    w[2 * n] = pick<B, ZipLow<B>>(v[n], v[n + B / 2]);
                    w[2 * n + 1] = pick<B, ZipHigh<B>>(v[n], v[n + B / 2]);
                }
                for (int n = 0; n < B; n++) v[n] = w[n];
            }
            for (int n = 0; n < B; n++) store(to(j + n) + i, v[n]);
        }
}

// Transposes `count` numbers of R rows: number e of row r goes to turned[e * R + r]. Compiled once
// for all kernels that transpose such rows: inlined into each, it adds 100 KB to the library.
template <class U, int R>
__attribute__((noinline)) void turn_rows(const U *const *row, int64_t count, U *turned) {
    if (count < R) {
        for (int64_t e = 0; e < count; e++)
            for (int r = 0; r < R; r++) turned[e * R + r] = row[r][e];
        return;
    }
    for (int64_t e = 0; e < count; e += R) {
        int64_t first = least(e, count - R);  // the last block overlaps the one before it
        turn_block<U, R>([&](int r) { return row[r] + first; },
                         [&](int n) { return turned + (first + n) * R; });
    }
}

// The inverse, for the first `rows` of the R rows.
template <class U, int R> __attribute__((noinline)) void turn_back(const U *turned, int64_t count,
                                                                   U *const *row, int64_t rows) {
    if (count < R || rows < R) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t e = 0; e < count; e++) row[r][e] = turned[e * R + r];
        return;
    }
    for (int64_t e = 0; e < count; e += R) {
        int64_t first = least(e, count - R);
        turn_block<U, R>([&](int n) { return turned + (first + n) * R; },
                         [&](int r) { return row[r] + first; });
    }
}

// The unsigned integer of the same size.
template <int BYTES> struct BitsOf;
template <> struct BitsOf<1> { using type = uint8_t; };
template <> struct BitsOf<2> { using type = uint16_t; };
template <> struct BitsOf<4> { using type = uint32_t; };
template <> struct BitsOf<8> { using type = uint64_t; };
template <class T> using Bits = typename BitsOf<sizeof(T)>::type;

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
