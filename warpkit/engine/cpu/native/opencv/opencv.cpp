// OpenCV's bilinear, bicubic and lanczos4, bit for bit: all maps, borders, types and layouts.
//
// Rows of a tile are processed ROW pixels at a time. First their source positions are computed
// (opencv_positions.h). If all taps of a pixel are inside the image, the taps are collected in
// vectors (opencv_taps.h), summed (opencv_arithmetic.h) and written; the other pixels are computed
// one by one (opencv_pixel.h).
#include "shared/kernels.h"
#include "shared/memory.h"
#include "opencv/opencv_pixel.h"
#include "opencv/opencv_taps.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The data of a piece of a row.
template <int TAPS> struct Row {
    Places places;
    Taps4<TAPS> taps;
    alignas(64) float wx[TAPS][ROW], wy[TAPS][ROW];  // for bilinear the fractions are enough
    alignas(64) int32_t corrections[ROW];            // see `whole_sum`
    alignas(64) int32_t registers[ROW];              // -1: summed by OpenCV 4's vector code
    alignas(64) uint32_t pixels[ROW + L];            // bytes, with all channels in one word
    // one bit per pixel: those computed one by one, and those that show only the border
    uint64_t alone, hidden;
    int run[TILE_ROWS];                              // see `find_registers`
    bool filled[TILE_ROWS];

    // The start of the taps, for pixels with all taps inside the image. The others read arbitrary
    // pixels of it until they are computed separately, or show the border. False if all are such.
    bool find_taps(const OpenCVCall &p, const TapRow &how, int64_t count) {
        constexpr int32_t BEFORE = TAPS / 2 - 1;
        const int64_t last_x = p.width - TAPS + BEFORE - how.beyond;
        const int64_t last_y = p.height - TAPS + BEFORE;
        const bool none = last_x < BEFORE || last_y < BEFORE || p.type == FLOAT64;
        const Reach seen(p, TAPS);
        const Distance distance(p, p.number_bytes);
        const I first = splat<I>(BEFORE), end_x = splat<I>(int32_t(last_x)),
                end_y = splat<I>(int32_t(last_y));
        const I always = none ? ~I{} : I{};
        uint64_t others = hidden = 0;
        for (int64_t c = 0; c < count; c += L) {
            I i = load<I>(places.column + c), j = load<I>(places.row + c);
            I x = smaller(larger(i, first), end_x), y = smaller(larger(j, first), end_y);
            others |= bits_of((x != i) | (y != j) | always) << c;
            hidden |= bits_of(seen.nothing(i, j)) << c;
            store(taps.offset + c, distance.at(x - BEFORE, y - BEFORE));
        }
        const uint64_t all = bits_of_all(count);
        hidden &= all, alone = others & all & ~hidden;
        return (alone | hidden) != all;
    }

    // OpenCV 4 sums one-channel images in registers: whole registers of every run of pixels with
    // all taps inside the image. A run ends with a block of columns.
    void find_registers(const OpenCVCall &p, const Piece &piece, int64_t block) {
        constexpr int32_t BEFORE = TAPS / 2 - 1;
        alignas(64) int8_t inner[2 * ROW];
        const int64_t end = least<int64_t>(p.out_width - piece.x0, 2 * ROW);
        Places next;
        if (end > ROW)
            place(p, piece.mapping, piece.finite, piece.x0 + ROW, piece.y,
                  least<int64_t>(end - ROW, p.lanes), next);
        for (int64_t c = 0; c < least<int64_t>(end, ROW + p.lanes); c++) {
            const Places &of = c < ROW ? places : next;
            const int64_t i = of.column[c % ROW] - int64_t(BEFORE), j = of.row[c % ROW] - BEFORE;
            inner[c] = i >= 0 && i + TAPS <= p.width && j >= 0 && j + TAPS <= p.height;
        }
        int &of_run = run[piece.tile_row];
        bool &full = filled[piece.tile_row];
        if (!piece.x0) of_run = 0;
        for (int64_t c = 0; c < piece.count; c++) {
            const int64_t in_block = (piece.x0 + c) % block;
            if (in_block == 0 || !inner[c]) of_run = 0;
            if (inner[c] && of_run == 0) {
                full = in_block + p.lanes <= block && c + p.lanes <= end;
                for (int64_t n = c; full && n < c + p.lanes; n++) full &= bool(inner[n]);
            }
            registers[c] = inner[c] && full ? -1 : 0;
            if (inner[c]) of_run = (of_run + 1) % int(p.lanes);
        }
    }

    // The weights of interpolations wider than bilinear.
    void weigh(const OpenCVCall &p, int64_t count) {
        if constexpr (TAPS == 2) return;
        if (!p.fixed) {
            if constexpr (TAPS == 4)
                for (int64_t c = 0; c < count; c += L) {
                    F weight[4];
                    weigh5(p.vector, load<F>(places.tx + c), weight);
                    for (int k = 0; k < 4; k++) store(wx[k] + c, weight[k]);
                    weigh5(p.vector, load<F>(places.ty + c), weight);
                    for (int k = 0; k < 4; k++) store(wy[k] + c, weight[k]);
                }
            return;
        }
        const float *table = at<const float>(p.weights);
        const int32_t *lacking = at<const int32_t>(p.corrections);
        for (int64_t c = 0; c < count; c++) {
            const int step_x = int(places.tx[c] * 32), step_y = int(places.ty[c] * 32);
            for (int k = 0; k < TAPS; k++)
                wx[k][c] = table[step_x * TAPS + k], wy[k][c] = table[step_y * TAPS + k];
            corrections[c] = lacking[step_y * 32 + step_x];
        }
    }
};

// -- writing --

// Write L pixels of one channel of any type, the first `left` of them; pixels are `step` apart.
template <class S> INLINE void write(S *to, F found, int64_t left, int64_t step) {
    Vec<S, L> values;
    if constexpr (sizeof(S) == 4) values = found;
    else {
        constexpr float low = S(-1) > 0 ? 0 : -(1 << (8 * sizeof(S) - 1));
        constexpr float high = low + ((1 << (8 * sizeof(S))) - 1);
        values = convert<Vec<S, L>>(convert<I>(shown(found, low, high)));
    }
    if (step == 1 && left >= L) return store(to, values);
    alignas(64) S numbers[L];
    store(numbers, values);
    for (int64_t n = 0; n < least<int64_t>(left, L); n++) to[n * step] = numbers[n];
}

// Numbers FIRST .. FIRST + L of L three-channel pixels, from a vector per channel.
template <int FIRST> INLINE F three_from(const F *channels) {
    struct Two {  // the first two channels; the third's lanes are arbitrary
        static constexpr int at(int k) {
            return (FIRST + k) % 3 < 2 ? (FIRST + k) % 3 * L + (FIRST + k) / 3 : 0;
        }
    };
    struct All {
        static constexpr int at(int k) { return (FIRST + k) % 3 < 2 ? k : L + (FIRST + k) / 3; }
    };
    return pick<L, All>(pick<L, Two>(channels[0], channels[1]), channels[2]);
}

// Write `count` three-byte pixels from words, four pixels at a time.
INLINE void write_threes(const uint32_t *pixels, uint8_t *to, int64_t count) {
    using Bytes = Vec<uint8_t, 16>;
    struct NoFourth {
        static constexpr int at(int k) { return k < 12 ? k / 3 * 4 + k % 3 : 15; }
    };
    int64_t c = 0;
    for (; c + 8 <= count; c += 4) {  // writes 16 bytes; the next pixels overwrite four
        Bytes four = load<Bytes>(pixels + c);
        store(to + 3 * c, pick<16, NoFourth>(four, four));
    }
    for (; c < count; c++) memcpy(to + 3 * c, pixels + c, 3);
}

// -- sums --

// All vectors of a row of bytes by bilinear, with C channels in each word.
template <int C> INLINE void sum_bytes(const OpenCVCall &p, Row<2> &row, int64_t groups) {
    constexpr int SHIFT = C == 1 ? 0 : 1;
    const bool fixed = p.fixed;
    for (int64_t g = 0; g < groups; g++) {
        F tx = load<F>(row.places.tx + g * L), ty = load<F>(row.places.ty + g * L);
        I word{};
        for (int k = 0; k < C; k++) {
            F numbers[4];
            part<2, uint8_t>(row.taps, C, SHIFT, 1, g, k, numbers);
            F value = bilinear5(numbers, tx, ty);  // with 1/32 parts every product is exact
            value = fixed ? value + 0.5f : rounded(value);
            word |= convert<I>(value) << (8 * k);
        }
        store(row.pixels + g * L, word);
    }
}

void write_bytes(const OpenCVCall &p, const Piece &piece, Row<2> &row, int64_t k, int channels) {
    uint8_t *to = result_at<uint8_t>(p, piece, 0, k);
    const int64_t count = piece.count;
    if (channels == 4) memcpy(to, row.pixels, size_t(count) * 4);
    else if (channels == 3) write_threes(row.pixels, to, count);
    else {
        for (int64_t c = 0; c + L <= count; c += L)
            store(to + c, convert<Vec<uint8_t, L>>(load<I>(row.pixels + c)));
        for (int64_t c = count / L * L; c < count; c++) to[c] = uint8_t(row.pixels[c]);
    }
}

// The sum of one channel for L pixels; `weight`: that of all taps, if it is fixed.
template <int TAPS> INLINE F sum_floats(const OpenCVCall &p, const Row<TAPS> &row, int64_t c,
                                        const F *numbers, const F *weight) {
    F wx[TAPS], wy[TAPS];
    if constexpr (TAPS == 2) {
        wx[1] = load<F>(row.places.tx + c), wy[1] = load<F>(row.places.ty + c);
        if (!p.fixed) return bilinear5(numbers, wx[1], wy[1]);
        wx[0] = 1.0f - wx[1], wy[0] = 1.0f - wy[1];
        F found = bilinear4(numbers, wx, wy);
        if (!p.vector) return found;
        return load<I>(row.registers + c) ? bilinear4_fused(numbers, wx, wy) : found;
    } else {
        if (TAPS == 4 && !p.fixed) {
            for (int k = 0; k < TAPS; k++)
                wx[k] = load<F>(row.wx[k] + c), wy[k] = load<F>(row.wy[k] + c);
            if constexpr (TAPS == 4) return bicubic5(p.vector, numbers, wx, wy);
        }
        return p.vector ? wide4_fused<TAPS>(numbers, weight) : wide4<TAPS>(numbers, weight);
    }
}

// Sum and write the fetched channels, starting with `channel`.
template <int TAPS, class S> void sum_row(const OpenCVCall &p, const Piece &piece,
                                          const TapRow &how, Row<TAPS> &row, int64_t channel) {
    constexpr bool WHOLE = sizeof(S) == 1 && TAPS > 2;
    const bool whole = WHOLE && p.fixed;
    const int64_t channels = how.together ? p.channels : 1;
    const bool threes = sizeof(S) == 4 && channels == 3 && p.out_plane == 1;
    F of_channels[3] = {};
    for (int64_t c = 0; c < piece.count; c += L) {
        F wx[TAPS], wy[TAPS], weight[TAPS * TAPS];
        I units[TAPS * TAPS];
        if (TAPS > 2 && p.fixed) {
            for (int k = 0; k < TAPS; k++)
                wx[k] = load<F>(row.wx[k] + c), wy[k] = load<F>(row.wy[k] + c);
            if (whole) whole_weights<TAPS>(wx, wy, units);
            else products<TAPS>(wx, wy, weight);
        }
        for (int64_t k = 0; k < channels; k++) {
            F found;
            if (whole) {
                I numbers[TAPS * TAPS];
                part<TAPS, S>(row.taps, how.step, how.shift, how.pieces, c / L, k, numbers);
                found = convert<F>(whole_sum<TAPS>(numbers, units, load<I>(row.corrections + c)));
            } else {
                F numbers[TAPS * TAPS];
                part<TAPS, S>(row.taps, how.step, how.shift, how.pieces, c / L, k, numbers);
                found = sum_floats<TAPS>(p, row, c, numbers, weight);
                // bytes in fixed point round half up
                if (TAPS == 2 && sizeof(S) == 1 && p.fixed)
                    found = convert<F>(convert<I>(found + 0.5f));
            }
            if (threes && piece.count - c >= L) of_channels[k] = found;
            else write(result_at<S>(p, piece, c, channel + k), found, piece.count - c, p.out_pixel);
        }
        if constexpr (sizeof(S) == 4)
            if (threes && piece.count - c >= L) {  // single stores took as long as the sums
                float *to = result_at<float>(p, piece, c, 0);
                store(to, three_from<0>(of_channels)), store(to + L, three_from<L>(of_channels));
                store(to + 2 * L, three_from<2 * L>(of_channels));
            }
    }
}

template <int TAPS, class S>
void one_by_one(const OpenCVCall &p, const Piece &piece, const Row<TAPS> &row, bool by_registers) {
    for (uint64_t left = row.alone; left; left &= left - 1) {
        const int c = lowest_bit(left);
        show_alone<TAPS, S>(p, piece, row.places, c, by_registers && row.registers[c]);
    }
    show_fill<S>(p, piece, row.hidden);
}

template <int TAPS> void warp_piece(const OpenCVCall &p, const Piece &piece, const TapRow &how,
                                    Row<TAPS> &row, bool by_registers, int64_t block) {
    const int64_t count = piece.count, groups = (count + L - 1) / L;
    place(p, piece.mapping, piece.finite, piece.x0, piece.y, count, row.places);
    if (TAPS == 4 && !p.fixed)
        leave_far(p, piece.mapping, piece.finite, piece.x0, piece.y, count, row.places);
    if (by_registers) row.find_registers(p, piece, block);
    if (row.find_taps(p, how, count)) {
        row.weigh(p, groups * L);
        const int64_t line = p.line * p.number_bytes, pixel = p.pixel * p.number_bytes;
        const int64_t together = how.together ? p.channels : 1;
        for (int64_t k = 0; k < p.channels; k += together) {
            const char *from =
                at<const char>(p.image) + (piece.source + k * p.plane) * p.number_bytes;
            if (how.scattered)
                fetch_scattered(how, from, line, pixel, p.number_bytes, groups, row.taps);
            else if (how.words == 1) fetch<TAPS, 1, 1>(how, from, line, groups, row.taps);
            else if (how.words == 2) fetch_pairs(from, line, groups, row.taps);
            else if (how.pieces == 1) fetch<TAPS, 4, 1>(how, from, line, groups, row.taps);
            else if (how.pieces == 2) fetch<TAPS, 4, 2>(how, from, line, groups, row.taps);
            else fetch<TAPS, 4, 0>(how, from, line, groups, row.taps);
            if (how.scattered || how.words == 4) turn(how, groups, row.taps);
            if constexpr (TAPS == 2)
                if (p.type == UINT8 && (p.out_pixel == 1 || p.channels == 3 || p.channels == 4) &&
                    (together > 1 || p.out_pixel == 1)) {
                    if (together == 4) sum_bytes<4>(p, row, groups);
                    else if (together == 3) sum_bytes<3>(p, row, groups);
                    else sum_bytes<1>(p, row, groups);
                    write_bytes(p, piece, row, k, int(together));
                    continue;
                }
            switch (p.type) {
                case FLOAT32: sum_row<TAPS, float>(p, piece, how, row, k); break;
                case UINT8: sum_row<TAPS, uint8_t>(p, piece, how, row, k); break;
                case INT16: sum_row<TAPS, int16_t>(p, piece, how, row, k); break;
                default: sum_row<TAPS, uint16_t>(p, piece, how, row, k);
            }
        }
    }
    switch (p.type) {
        case FLOAT32: return one_by_one<TAPS, float>(p, piece, row, by_registers);
        case FLOAT64: return one_by_one<TAPS, double>(p, piece, row, by_registers);
        case UINT8: return one_by_one<TAPS, uint8_t>(p, piece, row, by_registers);
        case INT16: return one_by_one<TAPS, int16_t>(p, piece, row, by_registers);
        default: return one_by_one<TAPS, uint16_t>(p, piece, row, by_registers);
    }
}

template <int TAPS> void opencv(const Call &call, int64_t begin, int64_t end) {
    const OpenCVCall &p = as<OpenCVCall>(call);
    const TapRow how(p);
    const bool by_registers = TAPS == 2 && p.fixed && p.vector;
    const int64_t block = block_of(p);
    Borrowed<Row<TAPS>> memory;
    if (!memory) return;
    Row<TAPS> &row = *memory;
    each_piece(p, begin, end, [&](const Piece &piece) {
        warp_piece<TAPS>(p, piece, how, row, by_registers, block);
    });
}

}  // namespace

Kernel choose_opencv(const Call &call) {
    static const Kernel KERNELS[] = {opencv<2>, opencv<4>, opencv<8>};
    return KERNELS[logarithm(as<OpenCVCall>(call).taps) - 1];
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
