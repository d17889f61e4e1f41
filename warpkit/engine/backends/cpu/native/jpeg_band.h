// Bands of images: brightness and colours in rings of rows, through their blocks, and back to RGB.
#pragma once
#include "jpeg_blocks.h"
#include "jpeg_call.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int N = LANES<int32_t>;         // pixels that are converted at a time
constexpr int SLACK = 2 * REGISTER;       // bytes after a row, which vectors may access
using Ints = Vec<int32_t, N>;
using Floats = Vec<float, N>;
using Bytes = Vec<uint8_t, N>;

INLINE Floats floats(const uint8_t *p) { return convert<Floats>(convert<Ints>(load<Bytes>(p))); }
INLINE Bytes cut(Floats x) { return convert<Bytes>(convert<Ints>(x * (1.0f / 65536))); }
INLINE Floats times(float a, Floats x, Floats sum) { return fma(splat<Floats>(a), x, sum); }
INLINE Ints both(int a, int b) {
    return splat<Ints>(int32_t(uint32_t(b) << 16 | (a & 0xffff)));
}

// Levels before the clip. The constants are those of the definition less 65536 for each 1 beside the
// brightness, so that they fit 16 bits.
INLINE void rgb_of(const uint8_t *level_at, const uint8_t *blue, const uint8_t *red, Ints *rgb) {
    const Ints level = convert<Ints>(load<Bytes>(level_at)), half = splat<Ints>(32768);
    const Ints u = convert<Ints>(load<Bytes>(blue)) - 128;
    const Ints v = convert<Ints>(load<Bytes>(red)) - 128;
    const Ints uv = (u & 0xffff) | (v << 16);
    rgb[0] = level + v + ((pair_sums(uv, both(0, 91881 - 65536)) + half) >> 16);
    rgb[1] = level - v + ((pair_sums(uv, both(-22554, 65536 - 46802)) + half) >> 16);
    rgb[2] = level + 2 * u + ((pair_sums(uv, both(116130 - 131072, 0)) + half) >> 16);
}

struct Band {
    const JpegCall &p;
    const uint8_t *image;
    uint8_t *out;
    const Table tables[2];
    int64_t held, stride, rows, colour_width, colour_height;
    uint8_t *brightness, *colours[2], *source[3], *whole[2][2], *large[2];
    uint16_t *mixed;
    // for a gradient, of brightness and two colours: the slopes of each block's coefficients, one
    // block after the other, and whether a value stays within a byte
    float *slopes[3] = {};
    uint8_t *inside[3] = {};

    static int64_t stride_of(const JpegCall &p) { return (p.width + 15) / 16 * 16 + SLACK; }
    static int64_t bytes(const JpegCall &p, int64_t held) {
        const int64_t numbers = held * BLOCK * (p.rows + 2) + 3 + 4 + 2 + 2;
        return numbers * stride_of(p) + 2 * SLACK;
    }

    // held: rows of blocks of colour in a ring.
    Band(const JpegCall &call, int64_t item, uint8_t *memory, int64_t held)
        : p(call), image(at<const uint8_t>(call.images) + item * size(call)),
          out(at<uint8_t>(call.out) + item * size(call)),
          tables{{STEPS[0], at<const int32_t>(call.qualities)[item]},
                 {STEPS[1], at<const int32_t>(call.qualities)[item]}},
          held(held), stride(stride_of(call)), rows(BLOCK * call.rows),
          colour_width((call.width + call.columns - 1) / call.columns),
          colour_height((call.height + call.rows - 1) / call.rows) {
        auto take = [&](int64_t count) {
            uint8_t *taken = memory;
            memory += count * stride;
            return taken;
        };
        mixed = reinterpret_cast<uint16_t *>(take(2)) + SLACK / 2;  // one more at both ends
        memory += 2 * SLACK;
        brightness = take(held * rows);
        for (auto &row : colours) row = take(held * BLOCK);
        for (auto &row : source) row = take(1);
        for (auto &pair : whole)
            for (auto &row : pair) row = take(1);
        for (auto &row : large) row = take(1);
    }

    static int64_t size(const JpegCall &p) { return p.channels * p.height * p.width; }
    uint8_t *brightness_row(int64_t y) const { return brightness + y % (held * rows) * stride; }
    uint8_t *colour_row(int c, int64_t y) const {
        return colours[c] + y % (held * BLOCK) * stride;
    }

    // Row y of the image as brightness and two colours. All sums are exact in float32: they are
    // integers below 2^24.
    void convert_row(int64_t y, uint8_t *to, uint8_t *blue, uint8_t *red) const {
        const int64_t padded = (p.width + 15) / 16 * 16;
        for (int64_t c = 0; c < p.channels; c++) {
            uint8_t *row = p.channels == 1 ? to : source[c];
            memcpy(row, image + (c * p.height + y) * p.width, size_t(p.width));
            memset(row + p.width, row[p.width - 1], size_t(padded - p.width));
        }
        if (p.channels == 1) return;
        const Floats half = splat<Floats>(32768), middle = splat<Floats>(128 * 65536 + 32767);
        for (int64_t x = 0; x < padded; x += N) {
            const Floats r = floats(source[0] + x), g = floats(source[1] + x);
            const Floats b = floats(source[2] + x);
            store(to + x, cut(times(19595, r, times(38470, g, times(7471, b, half)))));
            store(blue + x, cut(times(32768, b, times(-11059, r, times(-21709, g, middle)))));
            store(red + x, cut(times(32768, r, times(-27439, g, times(-5329, b, middle)))));
        }
    }

    // Means of two columns of one or two rows, halves down and up in turn.
    void average(const uint8_t *above, const uint8_t *below, uint8_t *to) const {
        constexpr int PAIRS = LANES<uint16_t>;
        using Pairs = Vec<uint16_t, PAIRS>;
        const int bits = int(p.rows);
        const Pairs turns = count_up<Pairs>() % 2 + uint16_t(bits - 1);
        for (int64_t x = 0; x < stride - SLACK; x += 2 * PAIRS) {
            Pairs a = load<Pairs>(above + x);
            Pairs sum = (a & 255) + (a >> 8);
            if (bits == 2) {
                Pairs b = load<Pairs>(below + x);
                sum += (b & 255) + (b >> 8);
            }
            store(to + x / 2, convert<Vec<uint8_t, PAIRS>>((sum + turns) >> uint16_t(bits)));
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
                    memcpy(colour_row(c, y), colour_row(c, y - 1), size_t(stride));
                continue;
            }
            const bool small = p.columns == 2;
            for (int64_t k = 0; k < p.rows; k++) {
                const int64_t row = least(y * p.rows + k, p.height - 1);
                convert_row(row, brightness_row(y * p.rows + k),
                            small ? whole[0][k] : colour_row(0, y),
                            small ? whole[1][k] : colour_row(1, y));
            }
            for (int c = 0; small && c < p.channels - 1; c++)
                average(whole[c][0], whole[c][1], colour_row(c, y));
        }
        for (int64_t y = 0; y < p.rows; y++) {
            uint8_t *row = brightness_row(block * rows + BLOCK * y);
            through_blocks(row, 0, block * p.rows + y, p.width);
        }
        for (int c = 0; c < p.channels - 1; c++) {
            through_blocks(colour_row(c, BLOCK * block), c + 1, block, colour_width);
        }
    }

    void through_blocks(uint8_t *row, int plane, int64_t block, int64_t width) const {
        const Table &table = tables[plane > 0];
        for (int64_t x = 0; x < width; x += BLOCK) {
            if (!slopes[plane]) through_block<false>(row + x, stride, table);
            else
                through_block<true>(row + x, stride, table, slopes_of(plane, block, x),
                                    inside[plane] + block * BLOCK * stride + x);
        }
    }
    float *slopes_of(int plane, int64_t block, int64_t x) const {
        return slopes[plane] + (block * stride + x) * BLOCK;
    }

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
        constexpr int COUNT_OF = LANES<uint16_t>;
        using Numbers = Vec<uint16_t, COUNT_OF>;
        using Part = Vec<uint8_t, COUNT_OF>;
        const bool two = p.rows == 2;
        const int64_t far_row = clamped(near_row + (y % 2 ? 1 : -1), 0, colour_height - 1);
        const uint8_t *far = two ? colour_row(c, far_row) : near;
        for (int64_t x = 0; x < colour_width; x += COUNT_OF) {
            const Numbers a = convert<Numbers>(load<Part>(near + x));
            const Numbers b = convert<Numbers>(load<Part>(far + x));
            store(mixed + x, two ? 3 * a + b : a);
        }
        mixed[-1] = mixed[0], mixed[colour_width] = mixed[colour_width - 1];
        const uint16_t bits = two ? 4 : 2, first = two ? 8 : 1, second = two ? 7 : 2;
        for (int64_t x = 0; x < colour_width; x += COUNT_OF) {
            const Numbers a = 3 * load<Numbers>(mixed + x);
            const Numbers left = (a + load<Numbers>(mixed + x - 1) + first) >> bits;
            const Numbers right = (a + load<Numbers>(mixed + x + 1) + second) >> bits;
            store(to + 2 * x, left | right << 8);
        }
        return to;
    }

    // Row y of the result.
    void show(int64_t y) const {
        const uint8_t *from = brightness_row(y);
        uint8_t *to = out + y * p.width;
        if (p.channels == 1) {
            memcpy(to, from, size_t(p.width));
            return;
        }
        const uint8_t *blue = enlarged(0, y), *red = enlarged(1, y);
        const int64_t plane = p.height * p.width;
        for (int64_t x = 0; x < p.width; x += N) {
            Ints rgb[3];
            rgb_of(from + x, blue + x, red + x, rgb);
            for (int c = 0; c < 3; c++) {
                const Ints clipped = smaller(larger(rgb[c], Ints{}), splat<Ints>(255));
                const Bytes bytes = convert<Bytes>(clipped);
                uint8_t *at = to + c * plane + x;
                if (x + N <= p.width) store(at, bytes);
                else memcpy(at, &bytes, size_t(p.width - x));
            }
        }
    }
};

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
