// Vectors of the widest register of the instruction set for which a file is compiled.
//
// GCC's and Clang's vector extensions provide nearly everything: arithmetic, comparisons, a ? b : c
// and shuffles are written alike for SSE4, AVX2, AVX-512 and NEON. The following adds what they
// lack: fused multiply-add, floor, and partial loads and stores. Each file is compiled once for
// each instruction set, in a namespace of that name; otherwise the linker would use one copy for
// all of them.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define INLINE inline __attribute__((always_inline))

namespace warpkit {
namespace WARPKIT_ISA {

#if defined(__AVX512F__)
constexpr int REGISTER = 64;
#elif defined(__AVX2__)
constexpr int REGISTER = 32;
#else
constexpr int REGISTER = 16;
#endif

template <class T, int N> struct VecOf {
    typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <class T, int N> using Vec = typename VecOf<T, N>::type;
template <class V> using Element = std::decay_t<decltype(V{}[0])>;
template <class V> constexpr int COUNT = int(sizeof(V) / sizeof(Element<V>));
template <class T> constexpr int LANES = REGISTER / int(sizeof(T));

template <class V, class T> INLINE V load(const T *p) {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}
template <class V, class T> INLINE void store(T *p, V v) { memcpy(p, &v, sizeof v); }
template <class V, class T> INLINE V splat(T x) { return Element<V>(x) - V{}; }  // keeps -0, too
template <class To, class V> INLINE To convert(V v) { return __builtin_convertvector(v, To); }
template <class V> INLINE V smaller(V a, V b) { return a < b ? a : b; }
template <class V> INLINE V larger(V a, V b) { return a > b ? a : b; }
template <class T> INLINE T least(T a, T b) { return a < b ? a : b; }
template <class T> INLINE T most(T a, T b) { return a > b ? a : b; }
INLINE int64_t clamped(int64_t v, int64_t low, int64_t high) { return least(most(v, low), high); }
INLINE int logarithm(int64_t power_of_two) { return __builtin_ctzll(uint64_t(power_of_two)); }
template <class V> INLINE V magnitude(V v) {  // without the sign's bit: of -0 it is 0
    using Bits = std::conditional_t<sizeof(Element<V>) == 4, uint32_t, uint64_t>;
    using Lanes = Vec<Bits, COUNT<V>>;
    return (V)((Lanes)v & (~Bits(0) >> 1));
}

template <class V, size_t... I> INLINE V count_up(std::index_sequence<I...>) { return V{I...}; }
template <class V> INLINE V count_up() {  // 0, 1, 2, ...
    return count_up<V>(std::make_index_sequence<COUNT<V>>{});
}

// N lanes of a and b: Order::at(0), Order::at(1), ...
template <int N, class Order, class V, size_t... I>
INLINE Vec<Element<V>, N> pick(V a, V b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, Order::at(I)...);
}
template <int N, class Order, class V> INLINE Vec<Element<V>, N> pick(V a, V b) {
    return pick<N, Order>(a, b, std::make_index_sequence<N>{});
}

struct InOrder {
    static constexpr int at(int k) { return k; }
};
template <class V> INLINE auto join(V a, V b) { return pick<2 * COUNT<V>, InOrder>(a, b); }

// N concatenated parts: part(first), part(first + 1), ...
template <int N, class Part> INLINE auto joined(Part part, int first = 0) {
    if constexpr (N == 1) return part(first);
    else return join(joined<N / 2>(part, first), joined<N / 2>(part, first + N / 2));
}

// A mask as lanes of another type, as wide as V's.
template <class V, class M> INLINE auto lanes_of(M mask) {
    if constexpr (sizeof(Element<V>) == 4) return convert<Vec<int32_t, COUNT<V>>>(mask);
    else return convert<Vec<int64_t, COUNT<V>>>(mask);
}

// One bit per lane of a register of masks.
INLINE uint64_t bits_of(Vec<int32_t, LANES<float>> mask) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask((__m512i)mask);
#elif defined(__AVX2__)
    return unsigned(_mm256_movemask_ps((__m256)mask));
#elif defined(__x86_64__)
    return unsigned(_mm_movemask_ps((__m128)mask));
#else
    return vaddvq_u32(vandq_u32((uint32x4_t)mask, uint32x4_t{1, 2, 4, 8}));
#endif
}

template <int N> struct UpperHalf {
    static constexpr int at(int k) { return N + k; }
};

// a * b + c, rounded once; twice on x86 processors from before 2013.
template <class V> INLINE V fma(V a, V b, V c) {
    constexpr bool SINGLE = sizeof(Element<V>) == 4;
    (void)SINGLE;
    if constexpr (sizeof(V) > REGISTER) {
        constexpr int N = COUNT<V> / 2;
        auto low = fma(pick<N, InOrder>(a, a), pick<N, InOrder>(b, b), pick<N, InOrder>(c, c));
        using Upper = UpperHalf<N>;
        return join(low, fma(pick<N, Upper>(a, a), pick<N, Upper>(b, b), pick<N, Upper>(c, c)));
    }
#if defined(__AVX512F__)
    else if constexpr (sizeof(V) == 64) {
        if constexpr (SINGLE) return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
        else return (V)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
    }
#endif
#if defined(__FMA__)
    else if constexpr (sizeof(V) == 32) {
        if constexpr (SINGLE) return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
        else return (V)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
    } else {
        if constexpr (SINGLE) return (V)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
        else return (V)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
    }
#elif defined(__aarch64__)
    else if constexpr (SINGLE)
        return (V)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
    else return (V)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    else
        return a * b + c;
#endif
}

// For each pair of 16-bit numbers, the 32-bit sum of its products with a weight's halves.
template <class V> INLINE V pair_sums(V pairs, V weights) {
    if constexpr (sizeof(V) > REGISTER) {
        constexpr int N = COUNT<V> / 2;
        using Upper = UpperHalf<N>;
        return join(pair_sums(pick<N, InOrder>(pairs, pairs), pick<N, InOrder>(weights, weights)),
                    pair_sums(pick<N, Upper>(pairs, pairs), pick<N, Upper>(weights, weights)));
    }
#if defined(__AVX512BW__)
    else if constexpr (sizeof(V) == 64)
        return (V)_mm512_madd_epi16((__m512i)pairs, (__m512i)weights);
#endif
#if defined(__AVX2__)
    else if constexpr (sizeof(V) == 32)
        return (V)_mm256_madd_epi16((__m256i)pairs, (__m256i)weights);
#endif
#if defined(__x86_64__)
    else return (V)_mm_madd_epi16((__m128i)pairs, (__m128i)weights);
#else
    else
        return (pairs << 16 >> 16) * (weights << 16 >> 16) + (pairs >> 16) * (weights >> 16);
#endif
}

INLINE Vec<double, LANES<double>> floor_of(Vec<double, LANES<double>> v) {
    using V = Vec<double, LANES<double>>;
#if defined(__AVX512F__)
    constexpr int DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    return (V)_mm512_maskz_roundscale_pd(0xff, (__m512d)v, DOWN);  // GCC 12 warns without a mask
#elif defined(__AVX2__)
    return (V)_mm256_floor_pd((__m256d)v);
#elif defined(__x86_64__)
    return (V)_mm_floor_pd((__m128d)v);
#else
    return (V)vrndmq_f64((float64x2_t)v);
#endif
}

INLINE Vec<float, LANES<float>> floor_of(Vec<float, LANES<float>> v) {
    using V = Vec<float, LANES<float>>;
#if defined(__AVX512F__)
    constexpr int DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    return (V)_mm512_maskz_roundscale_ps(0xffff, (__m512)v, DOWN);
#elif defined(__AVX2__)
    return (V)_mm256_floor_ps((__m256)v);
#elif defined(__x86_64__)
    return (V)_mm_floor_ps((__m128)v);
#else
    return (V)vrndmq_f32((float32x4_t)v);
#endif
}

// Rounded half to even; arbitrary out of the range of int32.
INLINE Vec<int32_t, LANES<float>> nearest_int(Vec<float, LANES<float>> v) {
    using I = Vec<int32_t, LANES<float>>;
#if defined(__AVX512F__)
    return (I)_mm512_maskz_cvtps_epi32(0xffff, (__m512)v);  // GCC 12 warns without a mask
#elif defined(__AVX2__)
    return (I)_mm256_cvtps_epi32((__m256)v);
#elif defined(__x86_64__)
    return (I)_mm_cvtps_epi32((__m128)v);
#else
    return (I)vcvtnq_s32_f32((float32x4_t)v);
#endif
}

// The first n lanes, n > 0, of a register of floats or doubles; the others are 0, and not accessed.
template <class T> INLINE Vec<T, LANES<T>> load_first(const T *p, int64_t n) {
    using V = Vec<T, LANES<T>>;
#if defined(__AVX512F__)
    unsigned lanes = n >= LANES<T> ? (1u << (LANES<T> - 1) << 1) - 1 : (1u << n) - 1;
    if constexpr (sizeof(T) == 4) return (V)_mm512_maskz_loadu_ps((__mmask16)lanes, p);
    else return (V)_mm512_maskz_loadu_pd((__mmask8)lanes, p);
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        return (V)_mm256_maskload_ps(p, (__m256i)(count_up<Vec<int32_t, 8>>() < int(n)));
    else return (V)_mm256_maskload_pd(p, (__m256i)(count_up<Vec<int64_t, 4>>() < n));
#else
    V v{};
    for (int k = 0; k < least<int64_t>(n, LANES<T>); k++) v[k] = p[k];
    return v;
#endif
}

// Lanes first .. end - 1 of a register at p; the others are those of `rest`, and not accessed.
template <class T> INLINE Vec<T, LANES<T>> load_between(const T *p, int64_t first, int64_t end,
                                                        Vec<T, LANES<T>> rest) {
    using V = Vec<T, LANES<T>>;
    first = first < 0 ? 0 : first;
    if (first == 0 && end >= LANES<T>) return load<V>(p);
    if (first >= LANES<T> || end <= first) return rest;
#if defined(__AVX512F__)
    unsigned lanes =
        (end >= LANES<T> ? (1u << (LANES<T> - 1) << 1) - 1 : (1u << end) - 1) & (~0u << first);
    if constexpr (sizeof(T) == 4) return (V)_mm512_mask_loadu_ps((__m512)rest, (__mmask16)lanes, p);
    else return (V)_mm512_mask_loadu_pd((__m512d)rest, (__mmask8)lanes, p);
#else
    for (int64_t k = first; k < least<int64_t>(end, LANES<T>); k++) rest[k] = p[k];
    return rest;
#endif
}

template <class T> INLINE void store_first(T *p, Vec<T, LANES<T>> v, int64_t n) {
#if defined(__AVX512F__)
    unsigned lanes = n >= LANES<T> ? (1u << (LANES<T> - 1) << 1) - 1 : (1u << n) - 1;
    if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(p, (__mmask16)lanes, (__m512)v);
    else _mm512_mask_storeu_pd(p, (__mmask8)lanes, (__m512d)v);
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        _mm256_maskstore_ps(p, (__m256i)(count_up<Vec<int32_t, 8>>() < int(n)), (__m256)v);
    else _mm256_maskstore_pd(p, (__m256i)(count_up<Vec<int64_t, 4>>() < n), (__m256d)v);
#else
    for (int k = 0; k < least<int64_t>(n, LANES<T>); k++) p[k] = v[k];
#endif
}

// Bypassing the caches, for data that is read much later: p is a multiple of REGISTER.
template <class V> INLINE void stream(void *p, V v) {
    static_assert(sizeof(V) == REGISTER, "one register");
#if defined(__AVX512F__)
    _mm512_stream_si512((__m512i *)p, (__m512i)v);
#elif defined(__AVX2__)
    _mm256_stream_si256((__m256i *)p, (__m256i)v);
#elif defined(__x86_64__)
    _mm_stream_si128((__m128i *)p, (__m128i)v);
#else
    store(p, v);
#endif
}

INLINE void finish_streams() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

// Transposes four vectors of four pieces: piece n of row m becomes piece m of row n.
template <class V> INLINE void turn_pieces(V *v) {
    static_assert(COUNT<V> % 4 == 0, "pieces");
    constexpr int N = COUNT<V>, P = N / 4;
    struct Low {
        static constexpr int at(int k) { return k < N / 2 ? k : N + k - N / 2; }
    };
    struct High {
        static constexpr int at(int k) { return Low::at(k) + N / 2; }
    };
    struct Even {
        static constexpr int at(int k) { return k / P % 2 * N + k / (2 * P) * 2 * P + k % P; }
    };
    struct Odd {
        static constexpr int at(int k) { return Even::at(k) + P; }
    };
    V a = pick<N, Even>(v[0], v[1]), b = pick<N, Odd>(v[0], v[1]);
    V c = pick<N, Even>(v[2], v[3]), d = pick<N, Odd>(v[2], v[3]);
    v[0] = pick<N, Low>(a, c), v[1] = pick<N, Low>(b, d);
    v[2] = pick<N, High>(a, c), v[3] = pick<N, High>(b, d);
}

// The sum of all lanes, by halves.
template <class V> INLINE Element<V> sum(V v) {
    Element<V> parts[COUNT<V>];
    memcpy(parts, &v, sizeof v);
    for (int n = COUNT<V> / 2; n; n /= 2)
        for (int k = 0; k < n; k++) parts[k] += parts[n + k];
    return parts[0];
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
