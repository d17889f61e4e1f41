// F.interpolate for bytes: with 16-bit weights, one instruction sums two taps of a number.
//
// The passes are those of resize.cpp with x first, with one difference: a tap of the block is a
// pair, the pixel that it names and the next one. Its weight holds both weights, the first one in
// the lower half. A pair whose second weight is 0 reads the next pixel anyway, which may be one row
// or column more than a tile has: axes.py leaves room for it.
#include "shared/int16.h"
#include "shared/kernels.h"
#include "resize/resize_walk.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int R = 16;               // transposed rows
constexpr int WIDE = 2 * REGISTER;  // numbers of a row that are summed together

// Packs sums below 2^16: in every 16 bytes those of a before those of b; 0 for negative ones.
template <class V> INLINE V positive(V a, V b) {
    if constexpr (sizeof(V) > REGISTER) {
        constexpr int N = COUNT<V> / 2;
        using Upper = UpperHalf<N>;
        return join(positive(pick<N, InOrder>(a, a), pick<N, InOrder>(b, b)),
                    positive(pick<N, Upper>(a, a), pick<N, Upper>(b, b)));
    }
#if defined(__AVX512BW__)
    else if constexpr (sizeof(V) == 64)
        return (V)_mm512_packus_epi32((__m512i)a, (__m512i)b);
#endif
#if defined(__AVX2__)
    else if constexpr (sizeof(V) == 32) return (V)_mm256_packus_epi32((__m256i)a, (__m256i)b);
#endif
#if defined(__x86_64__)
    else return (V)_mm_packus_epi32((__m128i)a, (__m128i)b);
#else
    else {
        using Half = Vec<uint16_t, COUNT<V>>;
        return (V)join(convert<Half>(larger(a, V{})), convert<Half>(larger(b, V{})));
    }
#endif
}

// The sums of N numbers: those at even positions, and at odd ones, from halves of every 16 bytes.
template <int N> struct Sums {
    using Numbers = Vec<uint8_t, N>;
    using Pairs = Vec<uint16_t, N / 2>;
    using Sum = Vec<int32_t, N / 4>;
    Sum total[4];

    INLINE explicit Sums(int64_t bits) {
        for (Sum &sum : total) sum = splat<Sum>(1 << (bits - 1));
    }
    // a times the weight's lower half, b times its upper half
    INLINE void add(const uint8_t *a, const uint8_t *b, int32_t weight) {
        const Pairs first = (Pairs)load<Numbers>(a), second = (Pairs)load<Numbers>(b);
        const Sum weights = splat<Sum>(weight);
        add(total, first & 255, second & 255, weights);
        add(total + 2, first >> 8, second >> 8, weights);
    }
    static INLINE void add(Sum *sums, Pairs a, Pairs b, Sum weights) {
        sums[0] += pair_sums((Sum)pick<N / 2, ZipLow16<N / 2>>(a, b), weights);
        sums[1] += pair_sums((Sum)pick<N / 2, ZipHigh16<N / 2>>(a, b), weights);
    }
    INLINE Numbers bytes(int64_t bits) const {
        const Pairs limit = splat<Pairs>(255);
        const auto even = positive(total[0] >> int32_t(bits), total[1] >> int32_t(bits));
        const auto odd = positive(total[2] >> int32_t(bits), total[3] >> int32_t(bits));
        return (Numbers)(smaller((Pairs)even, limit) | smaller((Pairs)odd, limit) << 8);
    }
};

// The same for a column of R rows, in their order if a register holds one sum of each.
struct ColumnSums {
    using Sum = Vec<int32_t, R>;
    Sum total;

    INLINE explicit ColumnSums(int64_t bits) : total(splat<Sum>(1 << (bits - 1))) {}
    INLINE void add(const uint8_t *a, const uint8_t *b, int32_t weight) {
        const Sum first = convert<Sum>(load<Vec<uint8_t, R>>(a));
        const Sum second = convert<Sum>(load<Vec<uint8_t, R>>(b));
        total += pair_sums(first | second << 16, splat<Sum>(weight));
    }
    INLINE Vec<uint8_t, R> bytes(int64_t bits) const {
        const Sum sum = larger(total >> int32_t(bits), Sum{});
        return convert<Vec<uint8_t, R>>(smaller(sum, splat<Sum>(255)));
    }
};
using Columnwise = std::conditional_t<REGISTER == 64, ColumnSums, Sums<R>>;

// The sums of a tile's columns, from transposed rows, for C adjacent channels; C of 0: any number.
template <int C>
void sum_across(const ResizeCall &p, const uint8_t *turned, const Columns &columns, uint8_t *out) {
    const int64_t inner = C ? C : p.inner;
    const int32_t *pixel = at<int32_t>(p.x_pixel), *weight = at<int32_t>(p.x_weight);
    for (int64_t x = columns.first; x < columns.end; x++) {
        const int64_t begin = at<int32_t>(p.x_begin)[x], end = at<int32_t>(p.x_end)[x];
        for (int64_t c = 0; c < inner; c++, out += R) {
            Columnwise sums(p.bits);
            for (int64_t k = begin; k < end; k++) {
                const uint8_t *column = turned + ((pixel[k] - columns.source) * inner + c) * R;
                sums.add(column, column + inner * R, weight[k]);
            }
            store(out, sums.bytes(p.bits));
        }
    }
}

// N numbers of row n of the result, from lines with distance `stride`.
template <int N> INLINE Vec<uint8_t, N> sum_lines(const ResizeCall &p, const uint8_t *lines,
                                                  int64_t stride, int64_t n) {
    const int32_t *pixel = at<int32_t>(p.y_pixel), *weight = at<int32_t>(p.y_weight);
    const int64_t begin = at<int32_t>(p.y_begin)[n], end = at<int32_t>(p.y_end)[n];
    Sums<N> sums(p.share);
    for (int64_t k = begin; k < end; k++) {
        const uint8_t *row = lines + pixel[k] * stride;
        sums.add(row, row + stride, weight[k]);
    }
    return sums.bytes(p.share);
}

// Row n of a tile; the lines have one vector more than its numbers.
void sum_down(const ResizeCall &p, const uint8_t *lines, int64_t n, const Columns &columns,
              const uint8_t *, uint8_t *out) {
    const int64_t stride = p.line, count = (columns.end - columns.first) * p.inner;
    int64_t e = 0;
    for (; e + WIDE <= count; e += WIDE) store(out + e, sum_lines<WIDE>(p, lines + e, stride, n));
    for (; e < count; e += 16) {
        if (count >= 16) e = least<int64_t>(e, count - 16);  // overlaps the one before it
        Vec<uint8_t, 16> found = sum_lines<16>(p, lines + e, stride, n);
        memcpy(out + e, &found, size_t(least<int64_t>(16, count - e)));
    }
}

template <int C> void resize_pairs(const Call &call, int64_t begin, int64_t end) {
    walk_across_first<uint8_t, uint8_t, R>(as<ResizeCall>(call), begin, end, sum_across<C>,
                                           sum_down);
}

}  // namespace

Kernel choose_resize_torch(const Call &call) {
    const int64_t inner = as<ResizeCall>(call).inner;
    if (inner == 1) return resize_pairs<1>;
    return inner == 3 ? resize_pairs<3> : inner == 4 ? resize_pairs<4> : resize_pairs<0>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
