// Pixels of any size: copied one by one, and rows of them split and interleaved.
#pragma once
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// One pixel; the usual sizes take one or two instructions.
INLINE void copy_pixel(char *to, const char *from, int64_t bytes) {
    switch (bytes) {
        case 1: *to = *from; break;
        case 2: memcpy(to, from, 2); break;
        case 3: memcpy(to, from, 3); break;
        case 4: memcpy(to, from, 4); break;
        case 6: memcpy(to, from, 6); break;
        case 8: memcpy(to, from, 8); break;
        case 12: memcpy(to, from, 12); break;
        case 16: memcpy(to, from, 16); break;
        default: memcpy(to, from, size_t(bytes));
    }
}

// Rows of pixels are split into the even and the odd ones, and interleaved again. A pixel of 3
// bytes is moved as 4, and so on: the byte behind it belongs to the next pixel, which is written
// later. So the row that is read (`part`) or written (`join`) must have a pixel after its last
// pair.

template <int MOVED>
void part_pixels(char *even, char *odd, const char *from, int64_t pairs, int64_t bytes) {
    for (int64_t i = 0; i < pairs; i++, from += 2 * bytes, even += bytes, odd += bytes) {
        memcpy(even, from, MOVED);
        memcpy(odd, from + bytes, MOVED);
    }
}

template <int MOVED>
void join_pixels(char *to, const char *even, const char *odd, int64_t pairs, int64_t bytes) {
    for (int64_t i = 0; i < pairs; i++, to += 2 * bytes, even += bytes, odd += bytes) {
        memcpy(to, even, MOVED);
        memcpy(to + bytes, odd, MOVED);
    }
}

// Pixels of one number U: pairs are numbers of twice the width, with the first pixel in the low
// half.
template <class U, class Pair>
void part_numbers(char *even, char *odd, const char *from, int64_t pairs) {
    constexpr int N = LANES<Pair>, BITS = 8 * int(sizeof(U));
    using V = Vec<Pair, N>;
    int64_t i = 0;
    for (; i + N <= pairs; i += N) {
        V both = load<V>(from + i * int64_t(sizeof(Pair)));
        store(even + i * int64_t(sizeof(U)), convert<Vec<U, N>>(both));
        store(odd + i * int64_t(sizeof(U)), convert<Vec<U, N>>(both >> BITS));
    }
    const int64_t done = i * int64_t(sizeof(U));
    part_pixels<sizeof(U)>(even + done, odd + done, from + 2 * done, pairs - i, sizeof(U));
}

template <class U, class Pair>
void join_numbers(char *to, const char *even, const char *odd, int64_t pairs) {
    constexpr int N = LANES<Pair>, BITS = 8 * int(sizeof(U));
    using V = Vec<Pair, N>;
    int64_t i = 0;
    for (; i + N <= pairs; i += N) {
        V low = convert<V>(load<Vec<U, N>>(even + i * int64_t(sizeof(U))));
        V high = convert<V>(load<Vec<U, N>>(odd + i * int64_t(sizeof(U))));
        store(to + i * int64_t(sizeof(Pair)), low | (high << BITS));
    }
    const int64_t done = i * int64_t(sizeof(U));
    join_pixels<sizeof(U)>(to + 2 * done, even + done, odd + done, pairs - i, sizeof(U));
}

inline void part(char *even, char *odd, const char *from, int64_t pairs, int64_t bytes) {
    if (bytes == 1) part_numbers<uint8_t, uint16_t>(even, odd, from, pairs);
    else if (bytes == 2) part_numbers<uint16_t, uint32_t>(even, odd, from, pairs);
    else if (bytes == 4) part_numbers<uint32_t, uint64_t>(even, odd, from, pairs);
    else if (bytes == 3) part_pixels<4>(even, odd, from, pairs, bytes);
    else if (bytes <= 8) part_pixels<8>(even, odd, from, pairs, bytes);
    else if (bytes <= 16) part_pixels<16>(even, odd, from, pairs, bytes);
    else
        for (int64_t i = 0; i < pairs; i++) {
            memcpy(even + i * bytes, from + 2 * i * bytes, size_t(bytes));
            memcpy(odd + i * bytes, from + (2 * i + 1) * bytes, size_t(bytes));
        }
}

inline void join(char *to, const char *even, const char *odd, int64_t pairs, int64_t bytes) {
    if (bytes == 1) join_numbers<uint8_t, uint16_t>(to, even, odd, pairs);
    else if (bytes == 2) join_numbers<uint16_t, uint32_t>(to, even, odd, pairs);
    else if (bytes == 4) join_numbers<uint32_t, uint64_t>(to, even, odd, pairs);
    else if (bytes == 3) join_pixels<4>(to, even, odd, pairs, bytes);
    else if (bytes <= 8) join_pixels<8>(to, even, odd, pairs, bytes);
    else if (bytes <= 16) join_pixels<16>(to, even, odd, pairs, bytes);
    else
        for (int64_t i = 0; i < pairs; i++) {
            memcpy(to + 2 * i * bytes, even + i * bytes, size_t(bytes));
            memcpy(to + (2 * i + 1) * bytes, odd + i * bytes, size_t(bytes));
        }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
