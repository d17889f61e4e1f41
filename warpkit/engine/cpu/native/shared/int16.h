// Registers of 16-bit numbers: interleaved, packed, and multiplied.
#pragma once
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

template <int N> struct ZipLow16 {  // in every 8 numbers, as processors do
    static constexpr int at(int k) { return k / 8 * 8 + k % 8 / 2 + k % 2 * N; }
};
template <int N> struct ZipHigh16 {
    static constexpr int at(int k) { return ZipLow16<N>::at(k) + 4; }
};

constexpr int HALVES = LANES<int16_t>;
using Halves = Vec<int16_t, HALVES>;
using Wide = Vec<int32_t, HALVES / 2>;

INLINE Halves zip_low(Halves a, Halves b) { return pick<HALVES, ZipLow16<HALVES>>(a, b); }
INLINE Halves zip_high(Halves a, Halves b) { return pick<HALVES, ZipHigh16<HALVES>>(a, b); }

// The inverse of both: numbers of 32 bits that fit 16.
INLINE Halves narrowed(Wide low, Wide high) {
#if defined(__AVX512BW__)
    return (Halves)_mm512_packs_epi32((__m512i)low, (__m512i)high);
#elif defined(__AVX2__)
    return (Halves)_mm256_packs_epi32((__m256i)low, (__m256i)high);
#elif defined(__x86_64__)
    return (Halves)_mm_packs_epi32((__m128i)low, (__m128i)high);
#else
    return join(convert<Vec<int16_t, HALVES / 2>>(low), convert<Vec<int16_t, HALVES / 2>>(high));
#endif
}

// The upper halves of products, of signed or unsigned numbers.
template <class V> INLINE V high_products(V a, V b) {
    constexpr bool SIGNED = std::is_signed<Element<V>>::value;
    (void)SIGNED;
#if defined(__AVX512BW__)
    if constexpr (SIGNED) return (V)_mm512_mulhi_epi16((__m512i)a, (__m512i)b);
    else return (V)_mm512_mulhi_epu16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    if constexpr (SIGNED) return (V)_mm256_mulhi_epi16((__m256i)a, (__m256i)b);
    else return (V)_mm256_mulhi_epu16((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
    if constexpr (SIGNED) return (V)_mm_mulhi_epi16((__m128i)a, (__m128i)b);
    else return (V)_mm_mulhi_epu16((__m128i)a, (__m128i)b);
#else
    using Product = Vec<std::conditional_t<SIGNED, int32_t, uint32_t>, COUNT<V>>;
    return convert<V>((convert<Product>(a) * convert<Product>(b)) >> 16);
#endif
}

// Sums of two products, of numbers that are interleaved.
struct Pairs {
    Wide low, high;
    INLINE Pairs(Halves a, Halves b) : low((Wide)zip_low(a, b)), high((Wide)zip_high(a, b)) {}
};
INLINE Wide weights(int a, int b) { return splat<Wide>(int32_t(uint32_t(b) << 16 | (a & 0xffff))); }

// (a x + b y + 2^(BITS - 1)) >> BITS for pairs x, y, one constant each.
template <int BITS> INLINE Halves scaled_sums(Pairs pairs, int a, int b) {
    const Wide w = weights(a, b), half = splat<Wide>(1 << (BITS - 1));
    return narrowed((pair_sums(pairs.low, w) + half) >> BITS,
                    (pair_sums(pairs.high, w) + half) >> BITS);
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
