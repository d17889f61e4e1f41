// The taps of a vector of a tile's pixels: in general by `neighbours`, for blocks by look-ups.
//
// Sixteen floats are a block of 4 x 4 pixels. If the map does not shrink below one half, the four
// bilinear taps of all of them are inside 8 x 8 pixels of the image, which fit four registers: two
// look-ups and a selection find one tap of all sixteen pixels.
#pragma once
#include "shared/neighbours.h"
#include "warp/tile.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The taps of one vector's pixels, in any channel. CLOSE: see `Tile::close`.
template <class R, int TAPS, bool CLOSE> struct Taps {
    static constexpr int L = LANES<R>;
    using V = Vec<R, L>;
    const int32_t *offset;
    int64_t stride;

    template <class T> INLINE Taps(const T &t, int64_t q)
        : offset(t.offset + q), stride(t.stride) {}

    // Call use(n, taps) for each row n of the taps in a plane, from left to right. Rows are
    // processed one by one: not all of sixteen taps fit in registers.
    template <class Use> INLINE void each_row(const R *plane, Use use) const {
        for (int n = 0; n < TAPS; n++) {
            V v[TAPS];
            neighbours<TAPS>(plane + n * stride, offset, v);
            use(n, v);
        }
    }
};

#if defined(__AVX512F__)
template <> struct Taps<float, 2, true> {
    using V = Vec<float, 16>;
    int64_t base, stride;
    __m512i index[2][2];
    __mmask16 lower[2][2];  // lanes that read the lower four rows

    template <class T> INLINE Taps(const T &t, int64_t q) : base(t.base[q / 16]), stride(t.stride) {
        auto first = load<Vec<int32_t, 16>>(t.offset + q);
        for (int n = 0; n < 2; n++)
            for (int k = 0; k < 2; k++) {
                index[n][k] = (__m512i)(first + (8 * n + k));
                lower[n][k] = _mm512_test_epi32_mask(index[n][k], _mm512_set1_epi32(32));
            }
    }

    template <class Use> INLINE void each_row(const float *plane, Use use) const {
        __m512 rows[4];
        const float *p = plane + base;
        for (int n = 0; n < 4; n++, p += 2 * stride) {
            __m512 even = _mm512_castps256_ps512(_mm256_loadu_ps(p));
            rows[n] = _mm512_insertf32x8(even, _mm256_loadu_ps(p + stride), 1);
        }
        for (int n = 0; n < 2; n++) {
            V v[2];
            for (int k = 0; k < 2; k++) {
                __m512 upper_rows = _mm512_permutex2var_ps(rows[0], index[n][k], rows[1]);
                __m512 lower_rows = _mm512_permutex2var_ps(rows[2], index[n][k], rows[3]);
                v[k] = (V)_mm512_mask_blend_ps(lower[n][k], upper_rows, lower_rows);
            }
            use(n, v);
        }
    }
};
#endif

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
