// The taps of a vector of pixels, collected from different places.
//
// The taps of a row are adjacent in memory, so a pixel's taps are one load of two or four numbers.
// Shuffles then separate those of all pixels into a vector of first taps, one of second taps, and
// so on. A gather instruction would need one load per number.
#pragma once
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {

// Pairs of four-lane groups from two registers a and b with N lanes.
template <int N> struct Even {  // per four lanes: 0, 2 of a, then of b
    static constexpr int at(int k) {
        return k % 4 < 2 ? k / 4 * 4 + k % 4 * 2 : N + k / 4 * 4 + (k % 4 - 2) * 2;
    }
};
template <int N> struct Odd {
    static constexpr int at(int k) { return Even<N>::at(k) + 1; }
};
template <int N> struct LowInTurn {  // per four lanes: the first two of a and b, interleaved
    static constexpr int at(int k) { return k / 4 * 4 + k % 4 / 2 + k % 2 * N; }
};
template <int N> struct HighInTurn {
    static constexpr int at(int k) { return LowInTurn<N>::at(k) + 2; }
};
template <int N> struct LowHalves {  // per four lanes: the first two of a, then of b
    static constexpr int at(int k) { return k / 4 * 4 + k % 4 % 2 + k % 4 / 2 * N; }
};
template <int N> struct HighHalves {
    static constexpr int at(int k) { return LowHalves<N>::at(k) + 2; }
};
template <int N> struct EvenOfTwo {  // per two lanes: the first of a, then of b
    static constexpr int at(int k) { return k % 2 ? N + k - 1 : k; }
};
template <int N> struct OddOfTwo {
    static constexpr int at(int k) { return EvenOfTwo<N>::at(k) + 1; }
};

// Two 32-bit words of each pixel, starting at p + offset[pixel].
template <class V, class P, class O, size_t... K>
INLINE void pairs(const P *p, const O *offset, V &first, V &second, std::index_sequence<K...>) {
    constexpr int L = COUNT<V>;
    // a takes pixels 0 1 4 5 8 9 .., b takes 2 3 6 7 .., so no lane leaves its 16 bytes
    using Pairs = Vec<double, L / 2>;
    auto two = [&](int pixel) {
        double both;
        memcpy(&both, p + offset[pixel], 8);
        return both;
    };
    Pairs a = {two(int(K / 2 * 4 + K % 2))...}, b = {two(int(K / 2 * 4 + K % 2 + 2))...};
    first = pick<L, Even<L>>((V)a, (V)b);
    second = pick<L, Odd<L>>((V)a, (V)b);
}

// Four numbers of each of the pixels FIRST, FIRST + 4, ...
template <class V, int FIRST> INLINE V fours(const float *p, const int32_t *offset) {
    auto four = [&](int k) { return load<Vec<float, 4>>(p + offset[FIRST + 4 * k]); };
    if constexpr (COUNT<V> == 4) return four(0);
    else if constexpr (COUNT<V> == 8) return join(four(0), four(1));
    else return join(join(four(0), four(1)), join(four(2), four(3)));
}

// Two numbers of each of the pixels FIRST, FIRST + 2, ...
template <class V, int FIRST> INLINE V twos(const double *p, const int32_t *offset) {
    auto two = [&](int k) { return load<Vec<double, 2>>(p + offset[FIRST + 2 * k]); };
    if constexpr (COUNT<V> == 2) return two(0);
    else if constexpr (COUNT<V> == 4) return join(two(0), two(1));
    else return join(join(two(0), two(1)), join(two(2), two(3)));
}

// Fill v[0] .. v[TAPS - 1] with the taps of a row, for pixels whose first tap is at p[offset[k]].
template <int TAPS, class V> INLINE void neighbours(const float *p, const int32_t *offset, V *v) {
    constexpr int L = COUNT<V>;
    if constexpr (TAPS == 2) pairs(p, offset, v[0], v[1], std::make_index_sequence<L / 2>{});
    else
        for (int n = 0; n < TAPS; n += 4) {
            const int t = n < TAPS - 4 ? n : TAPS - 4;  // may overlap the four before it
            V a = fours<V, 0>(p + t, offset), b = fours<V, 1>(p + t, offset);
            V c = fours<V, 2>(p + t, offset), d = fours<V, 3>(p + t, offset);
            V ab = pick<L, LowInTurn<L>>(a, b), cd = pick<L, LowInTurn<L>>(c, d);
            v[t] = pick<L, LowHalves<L>>(ab, cd), v[t + 1] = pick<L, HighHalves<L>>(ab, cd);
            ab = pick<L, HighInTurn<L>>(a, b), cd = pick<L, HighInTurn<L>>(c, d);
            v[t + 2] = pick<L, LowHalves<L>>(ab, cd), v[t + 3] = pick<L, HighHalves<L>>(ab, cd);
        }
}

template <int TAPS, class V> INLINE void neighbours(const double *p, const int32_t *offset, V *v) {
    constexpr int L = COUNT<V>;
    for (int t = 0; t < TAPS; t += 2) {
        V a = twos<V, 0>(p + t, offset), b = twos<V, 1>(p + t, offset);
        v[t] = pick<L, EvenOfTwo<L>>(a, b), v[t + 1] = pick<L, OddOfTwo<L>>(a, b);
    }
}

// -- four channels-last channels of a pixel --

// Channels-last: interleaves the lanes of two vectors, or of two pairs of them.
template <int N, int TOGETHER> struct InTurn {
    static constexpr int at(int k) {
        return k / (2 * TOGETHER) * TOGETHER + k % TOGETHER + k / TOGETHER % 2 * N;
    }
};
template <int K> struct EveryFourth {
    static constexpr int at(int k) { return 4 * k + K; }
};
template <class V> INLINE auto interleave(const V *v) {
    constexpr int L = COUNT<V>;
    auto a = pick<2 * L, InTurn<L, 1>>(v[0], v[1]), b = pick<2 * L, InTurn<L, 1>>(v[2], v[3]);
    return pick<4 * L, InTurn<2 * L, 2>>(a, b);
}
template <class V, class R> INLINE void part(const R *from, V *v) {
    constexpr int L = COUNT<V>;
    auto all = load<Vec<R, 4 * L>>(from);
    v[0] = pick<L, EveryFourth<0>>(all, all), v[1] = pick<L, EveryFourth<1>>(all, all);
    v[2] = pick<L, EveryFourth<2>>(all, all), v[3] = pick<L, EveryFourth<3>>(all, all);
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
