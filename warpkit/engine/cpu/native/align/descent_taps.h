// The bilinear taps of a block of 4 x 4 pixels: see descent_pixels.h.
#pragma once
#include "shared/neighbours.h"
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int SIDE = 4, BLOCK = SIDE * SIDE, WINDOW = 8;

using Offsets = Vec<int32_t, BLOCK>;

// The pixels of a plane from `from` on, rows `stride` apart.
template <class T> struct Spread {
    using V = Vec<T, BLOCK>;
    const T *from;
    int64_t stride;

    Spread(const T *p, int64_t row) : from(p), stride(row) {}

    // The four taps of positions whose pixel above and to the left is (x, y).
    INLINE void find(Offsets x, Offsets y, V *taps) const {
        const Offsets place = y * int32_t(stride) + x;
        T found[4][BLOCK];
        int32_t offset[BLOCK];
        store(offset, place);
        for (int row = 0; row < 2; row++)
            for (int k = 0; k < BLOCK; k += LANES<T>) {
                Vec<T, LANES<T>> two[2];
                neighbours<2>(from + row * stride, offset + k, two);
                store(found[2 * row] + k, two[0]), store(found[2 * row + 1] + k, two[1]);
            }
        for (int k = 0; k < 4; k++) taps[k] = load<V>(found[k]);
    }
};

// The same for 8 x 8 pixels.
template <class T> struct Window : Spread<T> {
    using Spread<T>::Spread;
};

#if defined(__AVX512F__)
template <> struct Window<float> {  // in four registers, of two rows each
    using V = Vec<float, BLOCK>;
    __m512 rows[4];

    INLINE Window(const float *p, int64_t stride) {
        for (int n = 0; n < 4; n++, p += 2 * stride) {
            const __m512 even = _mm512_castps256_ps512(_mm256_loadu_ps(p));
            rows[n] = _mm512_insertf32x8(even, _mm256_loadu_ps(p + stride), 1);
        }
    }

    INLINE void find(Offsets x, Offsets y, V *taps) const {
        const Offsets first = y * WINDOW + x;
        for (int k = 0; k < 4; k++) {
            const __m512i place = (__m512i)(first + (WINDOW * (k / 2) + k % 2));
            const __m512 upper = _mm512_permutex2var_ps(rows[0], place, rows[1]);
            const __m512 lower = _mm512_permutex2var_ps(rows[2], place, rows[3]);
            const __mmask16 below = _mm512_test_epi32_mask(place, _mm512_set1_epi32(32));
            taps[k] = (V)_mm512_mask_blend_ps(below, upper, lower);
        }
    }
};
#endif

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
