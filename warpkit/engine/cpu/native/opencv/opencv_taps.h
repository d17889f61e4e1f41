// The taps of a piece of a row, collected from the image in vectors of pixels.
//
// A tap row is one row of a pixel's neighbourhood in memory: TAPS pixels with all their channels,
// or of one channel. `fetch` copies tap rows unchanged, as 32-bit words, whatever their type.
// `turn` transposes the words of L pixels, and `part` extracts one channel's numbers. All of this
// is only for pixels with all taps inside the image; the others are computed one by one.
#pragma once
#include "shared/neighbours.h"
#include "opencv/opencv_positions.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int64_t WIDEST = 128;  // the largest size of a tap row, in bytes
constexpr int64_t APART = 16;    // words between the copies of two tap rows, so that they do not
                                 // share a few sets of the cache

// How tap rows are read.
struct TapRow {
    bool together;   // channels are adjacent, and are read together
    bool scattered;  // one channel, whose numbers are not adjacent
    int64_t step;    // the distance of taps within a tap row, in numbers
    int64_t words;   // words per copy: 1, 2 or 4
    int shift;       // log2 of `words`, by which `part` divides for every tap
    int64_t pieces;  // copies per tap row
    int64_t beyond;  // pixels behind the last tap that are read, too

    TapRow(const OpenCVCall &p) {
        const int64_t size = p.number_bytes;
        together = p.plane == 1 && p.pixel == p.channels && p.channels > 1 &&
                   p.taps * p.channels * size <= WIDEST;
        step = together ? p.channels : 1;
        scattered = !together && p.pixel != 1;
        const int64_t bytes = p.taps * step * size;
        words = bytes <= 4 ? 1 : bytes <= 8 ? 2 : 4;
        shift = logarithm(words);
        pieces = (bytes + 4 * words - 1) / (4 * words);
        beyond = scattered ? 0 : (4 * words * pieces - bytes + step * size - 1) / (step * size);
    }
};

template <int TAPS> struct Taps4 {
    alignas(64) uint32_t words[TAPS * (ROW + APART) * WIDEST / 4];
    alignas(64) int64_t offset[ROW];  // bytes from the image's start to a pixel's first tap
};

// The slot of pixel n in a group of L, for the order in which `turn` reads.
INLINE int slot(int words, int n) { return words == 4 ? n % 4 * (L / 4) + n / 4 : n; }

// PIECES: per tap row, or 0 to use the number in `how`.
template <int TAPS, int WORDS, int PIECES>
void fetch(const TapRow &how, const char *from, int64_t line, int64_t groups, Taps4<TAPS> &taps) {
    constexpr int64_t BYTES = 4 * WORDS;
    const int64_t pieces = PIECES ? PIECES : how.pieces;
    for (int64_t g = 0; g < groups; g++)
        for (int n = 0; n < L; n++) {
            const char *here = from + taps.offset[g * L + n];
            char *to = (char *)taps.words + (g * L + slot(WORDS, n)) * BYTES;
            for (int r = 0; r < TAPS; r++, here += line)
                for (int64_t k = 0; k < pieces; k++, to += ROW * BYTES + 4 * APART)
                    memcpy(to, here + k * BYTES, BYTES);
        }
}

// The same for tap rows of two words, transposed at once, by loads and shuffles. Otherwise words
// would be stored one by one and read together.
template <int TAPS> void fetch_pairs(const char *from, int64_t line, int64_t groups,
                                     Taps4<TAPS> &taps) {
    for (int64_t g = 0; g < groups; g++)
        for (int r = 0; r < TAPS; r++) {
            F first, second;
            pairs(from + r * line, taps.offset + g * L, first, second,
                  std::make_index_sequence<L / 2>{});
            uint32_t *to = taps.words + r * (2 * ROW + APART) + 2 * g * L;
            store(to, first), store(to + L, second);
        }
}

// The same for numbers that are `pixel` bytes apart.
template <int TAPS> void fetch_scattered(const TapRow &how, const char *from, int64_t line,
                                         int64_t pixel, int64_t size, int64_t groups,
                                         Taps4<TAPS> &taps) {
    const int64_t bytes = 4 * how.words;
    for (int64_t q = 0; q < groups * L; q++) {
        char *to = (char *)taps.words + (q / L * L + slot(int(how.words), q % L)) * bytes;
        for (int r = 0; r < TAPS; r++)
            for (int64_t k = 0; k < TAPS; k++) {
                const char *number = from + taps.offset[q] + r * line + k * pixel;
                int64_t place = k * size;
                char *at_ = to + (r * how.pieces + place / bytes) * (ROW * bytes + 4 * APART) +
                            place % bytes;
                if (size == 1) *at_ = *number;
                else if (size == 2) memcpy(at_, number, 2);
                else memcpy(at_, number, 4);
            }
    }
}

using Words = Vec<uint32_t, L>;

// Four vectors, each with one of four words for L pixels, in the order of `slot`.
INLINE void turn4(uint32_t *p) {
    struct LowPairs {  // in every 16 bytes
        static constexpr int at(int k) { return k / 4 * 4 + k % 4 / 2 + k % 2 * L; }
    };
    struct HighPairs {
        static constexpr int at(int k) { return LowPairs::at(k) + 2; }
    };
    struct Low {
        static constexpr int at(int k) { return k / 4 * 4 + k % 2 + k % 4 / 2 * L; }
    };
    struct High {
        static constexpr int at(int k) { return Low::at(k) + 2; }
    };
    Words a = load<Words>(p), b = load<Words>(p + L);
    Words c = load<Words>(p + 2 * L), d = load<Words>(p + 3 * L);
    Words e = pick<L, LowPairs>(a, b), f = pick<L, LowPairs>(c, d);
    Words g = pick<L, HighPairs>(a, b), h = pick<L, HighPairs>(c, d);
    store(p, pick<L, Low>(e, f)), store(p + L, pick<L, High>(e, f));
    store(p + 2 * L, pick<L, Low>(g, h)), store(p + 3 * L, pick<L, High>(g, h));
}

INLINE void turn2(uint32_t *p) {
    Words a = load<Words>(p), b = load<Words>(p + L);
    store(p, pick<L, EvenOf>(a, b)), store(p + L, pick<L, OddOf>(a, b));
}

// Transpose each group of pixels: word n of group g becomes a vector.
template <int TAPS> void turn(const TapRow &how, int64_t groups, Taps4<TAPS> &taps) {
    for (int64_t r = 0; r < TAPS * how.pieces; r++)
        for (int64_t g = 0; g < groups; g++) {
            uint32_t *p = taps.words + r * (ROW * how.words + APART) + g * L * how.words;
            if (how.words == 4) turn4(p);
            else if (how.words == 2) turn2(p);
        }
}

// One number of type S per pixel, from the words that contain it.
template <class S, class V> INLINE V number(Words words, int64_t byte) {
    const uint32_t shift = uint32_t(byte % 4) * 8;
    if constexpr (sizeof(S) == 4) return (V)words;
    else if constexpr (sizeof(S) == 1) return convert<V>((I)(words >> shift & 255));
    else if constexpr (S(-1) > 0) return convert<V>((I)(words >> shift & 65535));
    else return convert<V>((I)(words << (16 - shift)) >> 16);
}

// The numbers of channel k for group g: floats, or integers for bytes.
template <int TAPS, class S, class V> INLINE void part(const Taps4<TAPS> &taps, int64_t step,
                                                       int shift, int64_t pieces, int64_t g,
                                                       int64_t k, V *numbers) {
    const int64_t words = int64_t(1) << shift;
    for (int r = 0; r < TAPS; r++)
        for (int i = 0; i < TAPS; i++) {
            const int64_t byte = (i * step + k) * int64_t(sizeof(S)), word = byte / 4;
            const int64_t place = (r * pieces + (word >> shift)) * (ROW * words + APART);
            const uint32_t *at_ = taps.words + place + g * L * words + (word & (words - 1)) * L;
            numbers[r * TAPS + i] = number<S, V>(load<Words>(at_), byte);
        }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
