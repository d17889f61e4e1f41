// Bands of images: brightness and colours in rings of rows, through their blocks, and back to RGB.
//
// Two rows of blocks are held at a time. To enlarge colours, a row of the image reads the rows of
// colour above and below, so a band begins and ends with a row of blocks of its neighbours, which
// is computed twice.
#pragma once
#include "shared/fused.h"
#include "jpeg/jpeg_blocks.h"
#include "jpeg/jpeg_call.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int N = LANES<float>;
using Ints = Vec<int32_t, N>;
using Floats = Vec<float, N>;
using Bytes = Vec<uint8_t, HALVES>;

INLINE Halves halves(const uint8_t *p) { return convert<Halves>(load<Bytes>(p)); }

// Levels before the clip. The constants are those of the definition less 65536 for each 1 beside
// the brightness, so that they fit 16 bits.
INLINE void rgb_of(const uint8_t *level_at, const uint8_t *blue, const uint8_t *red, Halves *rgb) {
    const Halves level = halves(level_at), u = halves(blue) - 128, v = halves(red) - 128;
    auto part = [](Halves x, int constant) {  // (constant x + 2^15) >> 16
        return (high_products(x + x, splat<Halves>(constant)) + 1) >> 1;
    };
    rgb[0] = level + v + part(v, 91881 - 65536);
    rgb[1] = level - v + scaled_sums<16>(Pairs(u, v), -22554, 65536 - 46802);
    rgb[2] = level + u + u + part(u, 116130 - 131072);
}

// Floats in [0, 1] as levels, halves to even: 1.5 * 2^23 has no fraction, so the sum is rounded to
// an integer, once.
INLINE void to_levels(const float *from, uint8_t *to, int64_t count) {
    for (int64_t x = 0; x < count; x += N) {
        const bool all = x + N <= count;
        const Floats given = all ? load<Floats>(from + x) : load_first(from + x, count - x);
        const Floats inside = smaller(larger(given, Floats{}), splat<Floats>(1));
        const Floats sum = fma_single(inside, splat<Floats>(255), splat<Floats>(12582912));
        store(to + x, convert<Vec<uint8_t, N>>((Ints)sum & 255));
    }
}

// Levels / 255. The first part of 1 / 255 has 16 bits, so that its product is exact; so the sum is
// the quotient, rounded once: a test compares all 256.
INLINE void from_levels(const uint8_t *from, float *to, int64_t count) {
    constexpr float FIRST = 32896.0f / 8388608, SECOND = float(1 / 255.0 - double(FIRST));
    for (int64_t x = 0; x < count; x += N) {
        const Floats level = convert<Floats>(convert<Ints>(load<Vec<uint8_t, N>>(from + x)));
        const Floats made = level * FIRST + level * SECOND;
        if (x + N <= count) store(to + x, made);
        else store_first(to + x, made, count - x);
    }
}

struct Band {
    const JpegCall &p;
    const int64_t item;
    const Table tables[2];
    const int64_t height, blocks, around;  // of a row of blocks of colour; such rows; 1 if they mix
    const int64_t stride, small;           // of rows of brightness and of colour
    const int64_t colour_width, colour_height;
    uint8_t *planes, *brightness, *colours[2];
    uint8_t *source[3], *whole[2][2], *large[2];
    uint16_t *mixed;
    // for a gradient, of all planes: the coefficients of each group of blocks, one after the other,
    // and whether a value stays within a byte
    int16_t *waves = nullptr;
    uint8_t *inside = nullptr;

    static int64_t stride_of(const JpegCall &p) {
        return (p.width + 2 * HALVES - 1) / (2 * HALVES) * 2 * HALVES;
    }
    static int64_t small_of(const JpegCall &p) {
        return (p.channels - 1) / 2 * stride_of(p) / p.columns;
    }
    // Bytes of the two rings of blocks.
    static int64_t ring(const JpegCall &p) {
        return 2 * BLOCK * (p.rows * stride_of(p) + 2 * small_of(p));
    }
    static int64_t bytes(const JpegCall &p) {
        return ring(p) + (3 + 4 + 2 + 2) * stride_of(p) + 4 * REGISTER;
    }

    Band(const JpegCall &call, int64_t item, uint8_t *memory)
        : p(call), item(item),
          tables{{STEPS[0], at<const int32_t>(call.qualities)[item]},
                 {STEPS[1], at<const int32_t>(call.qualities)[item]}},
          height(BLOCK * call.rows), blocks((call.height + height - 1) / height),
          around(call.rows == 2 && call.channels == 3), stride(stride_of(call)),
          small(small_of(call)), colour_width((call.width + call.columns - 1) / call.columns),
          colour_height((call.height + call.rows - 1) / call.rows), planes(memory) {
        auto take = [&](int64_t count) {
            uint8_t *taken = memory;
            memory += count;
            return taken;
        };
        brightness = take(2 * height * stride);
        for (auto &row : colours) row = take(2 * BLOCK * small);
        for (auto &row : source) row = take(stride);
        for (auto &pair : whole)
            for (auto &row : pair) row = take(stride);
        for (auto &row : large) row = take(stride);
        mixed = reinterpret_cast<uint16_t *>(memory + 2 * REGISTER);  // more at both ends
    }

    static int64_t size(const JpegCall &p) { return p.channels * p.height * p.width; }
    uint8_t *brightness_row(int64_t y) const { return brightness + y % (2 * height) * stride; }
    uint8_t *colour_row(int c, int64_t y) const { return colours[c] + y % (2 * BLOCK) * small; }

    int64_t place(int64_t c, int64_t y) const {
        return item * size(p) + (c * p.height + y) * p.width;
    }

    // Row y of a channel as bytes, to the end of `stride`: in its place, or in `memory`.
    const uint8_t *read(int64_t c, int64_t y, uint8_t *memory) const {
        const int64_t first = place(c, y);
        if (!p.floats && p.width == stride) return at<const uint8_t>(p.images) + first;
        if (p.floats) to_levels(at<const float>(p.images) + first, memory, p.width);
        else memcpy(memory, at<const uint8_t>(p.images) + first, size_t(p.width));
        memset(memory + p.width, memory[p.width - 1], size_t(stride - p.width));
        return memory;
    }

    // Row y of the image as brightness and two colours, 16 bits of fraction.
    void convert_row(int64_t y, uint8_t *to, uint8_t *blue, uint8_t *red) const {
        const uint8_t *from[3];
        for (int c = 0; c < p.channels; c++) from[c] = read(c, y, source[c]);
        if (p.channels == 1) {
            memcpy(to, from[0], size_t(stride));
            return;
        }
        const Wide half = splat<Wide>(32768), middle = splat<Wide>(128 * 65536 + 32767);
        const Wide for_rg = weights(19595, 19235), for_bg = weights(7471, 19235);  // 38470 / 2 each
        for (int64_t x = 0; x < stride; x += HALVES) {
            const Halves r = halves(from[0] + x), g = halves(from[1] + x);
            const Halves b = halves(from[2] + x), none{};
            const Pairs rg(r, g), bg(b, g), bs(none, b), rs(none, r);  // the last two times 65536
            auto level = [&](Wide first, Wide second) {
                return (pair_sums(first, for_rg) + pair_sums(second, for_bg) + half) >> 16;
            };
            auto colour = [&](Wide whole, Wide others, Wide w) {
                return ((whole >> 1) + pair_sums(others, w) + middle) >> 16;
            };
            auto write = [&](uint8_t *at, Wide low, Wide high) {
                store(at + x, convert<Bytes>(narrowed(low, high)));
            };
            const Wide for_blue = weights(-11059, -21709), for_red = weights(-5329, -27439);
            write(to, level(rg.low, bg.low), level(rg.high, bg.high));
            write(blue, colour(bs.low, rg.low, for_blue), colour(bs.high, rg.high, for_blue));
            write(red, colour(rs.low, bg.low, for_red), colour(rs.high, bg.high, for_red));
        }
    }

    // Means of two columns of one or two rows, halves down and up in turn.
    void average(const uint8_t *above, const uint8_t *below, uint8_t *to) const {
        using Doubles = Vec<uint16_t, HALVES>;
        const uint16_t bits = uint16_t(p.rows);
        const Doubles turns = count_up<Doubles>() % 2 + uint16_t(bits - 1);
        for (int64_t x = 0; x < small; x += HALVES) {
            const Doubles a = load<Doubles>(above + 2 * x);
            Doubles sum = (a & 255) + (a >> 8);
            if (bits == 2) {
                const Doubles b = load<Doubles>(below + 2 * x);
                sum += (b & 255) + (b >> 8);
            }
            store(to + x, convert<Bytes>((sum + turns) >> bits));
        }
    }

    // A row of blocks of colour, with the brightness beside it.
    void make(int64_t block) const {
        for (int64_t y = BLOCK * block; y < BLOCK * (block + 1); y++) {
            if (y * p.rows >= p.height) {  // brightness and means are repeated
                for (int64_t k = 0; k < p.rows; k++)
                    memcpy(brightness_row(y * p.rows + k), brightness_row(y * p.rows - 1),
                           size_t(stride));
                for (int c = 0; c < p.channels - 1; c++)
                    memcpy(colour_row(c, y), colour_row(c, y - 1), size_t(small));
                continue;
            }
            const bool mean = p.columns == 2;
            for (int64_t k = 0; k < p.rows; k++) {
                const int64_t row = least(y * p.rows + k, p.height - 1);
                convert_row(row, brightness_row(y * p.rows + k),
                            mean ? whole[0][k] : colour_row(0, y),
                            mean ? whole[1][k] : colour_row(1, y));
            }
            for (int c = 0; mean && c < p.channels - 1; c++)
                average(whole[c][0], whole[c][1], colour_row(c, y));
        }
        for (int64_t y = 0; y < p.rows; y++)
            through(brightness_row(block * height + BLOCK * y), stride, tables[0], p.width);
        for (int c = 0; c < p.channels - 1; c++)
            through(colour_row(c, BLOCK * block), small, tables[1], colour_width);
    }

    void through(uint8_t *row, int64_t step, const Table &table, int64_t width) const {
        for (int64_t x = 0; x < width; x += HALVES) {
            if (!waves) through_blocks<false>(row + x, step, table);
            else through_blocks<true>(row + x, step, table, waves_of(row, x), inside_of(row) + x);
        }
    }
    int16_t *waves_of(const uint8_t *row, int64_t x) const {
        return waves + (row - planes) + BLOCK * x;
    }
    uint8_t *inside_of(const uint8_t *row) const { return inside + (row - planes); }

    // Colour c of row y of the image, in its width.
    const uint8_t *enlarged(int c, int64_t y) const {
        const int64_t near_row = y / p.rows;
        const uint8_t *near = colour_row(c, near_row);
        if (p.columns == 1) return near;
        uint8_t *to = large[c];
        if (colour_width <= 2) {
            for (int64_t x = 0; x < p.width; x++) to[x] = near[x / 2];
            return to;
        }
        using Numbers = Vec<uint16_t, HALVES>;
        const bool two = p.rows == 2;
        const int64_t far_row = clamped(near_row + (y % 2 ? 1 : -1), 0, colour_height - 1);
        const uint8_t *far = two ? colour_row(c, far_row) : near;
        for (int64_t x = 0; x < colour_width; x += HALVES) {
            const Numbers a = convert<Numbers>(load<Bytes>(near + x));
            const Numbers b = convert<Numbers>(load<Bytes>(far + x));
            store(mixed + x, two ? 3 * a + b : a);
        }
        mixed[-1] = mixed[0], mixed[colour_width] = mixed[colour_width - 1];
        const uint16_t bits = two ? 4 : 2, first = two ? 8 : 1, second = two ? 7 : 2;
        for (int64_t x = 0; x < colour_width; x += HALVES) {
            const Numbers a = 3 * load<Numbers>(mixed + x);
            const Numbers left = (a + load<Numbers>(mixed + x - 1) + first) >> bits;
            const Numbers right = (a + load<Numbers>(mixed + x + 1) + second) >> bits;
            store(to + 2 * x, left | right << 8);
        }
        return to;
    }

    // Row y of the result.
    void show(int64_t y) const {
        if (p.channels == 1) return write(0, y, brightness_row(y));
        const uint8_t *from = brightness_row(y), *blue = enlarged(0, y), *red = enlarged(1, y);
        const bool in_place = !p.floats && p.width % HALVES == 0;
        uint8_t *to[3];
        for (int c = 0; c < 3; c++)
            to[c] = in_place ? at<uint8_t>(p.out) + place(c, y) : source[c];
        for (int64_t x = 0; x < p.width; x += HALVES) {
            Halves rgb[3];
            rgb_of(from + x, blue + x, red + x, rgb);
            for (int c = 0; c < 3; c++) {
                const Halves level = smaller(larger(rgb[c], Halves{}), splat<Halves>(255));
                store(to[c] + x, convert<Bytes>(level));
            }
        }
        for (int c = 0; c < 3 && !in_place; c++) write(c, y, source[c]);
    }
    void write(int64_t c, int64_t y, const uint8_t *row) const {
        if (p.floats) from_levels(row, at<float>(p.out) + place(c, y), p.width);
        else memcpy(at<uint8_t>(p.out) + place(c, y), row, size_t(p.width));
    }
};

// Walks through a band: makes its rows of blocks of colour, and calls shown(y) for every row of the
// image that it can show, then done(block) when all rows that mix with a block's colours are shown.
// beyond: also for such rows outside the band.
template <class Shown, class Done>
INLINE void walk(const Band &band, int64_t unit, bool beyond, Shown shown, Done done) {
    const JpegCall &p = band.p;
    const int64_t first = unit % p.bands * p.band_rows, height = band.height;
    const int64_t last = least(first + p.band_rows, band.blocks), around = band.around;
    const int64_t more = beyond ? around : 0;
    int64_t next = most<int64_t>(first * height - more, 0), finished = first;
    const int64_t end = least(last * height + more, p.height);
    const int64_t stop = least(last + around, band.blocks);
    for (int64_t block = most<int64_t>(first - around, 0); block < stop; block++) {
        band.make(block);
        // the last row of a block reads the colours below
        const int64_t ready = block + 1 == band.blocks ? end : (block + 1) * height - around;
        while (next < least(ready, end)) {
            shown(next++);
            while (finished < last && next >= least((finished + 1) * height + more, p.height))
                done(finished++);
        }
    }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
