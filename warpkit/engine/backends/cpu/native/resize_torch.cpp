// F.interpolate of bytes: weights of 16 bits, so that one instruction sums two taps of a number.
//
// The passes are those of resize.cpp where x comes first, with one difference: what the block
// calls a tap is a pair of them, of the pixel it names and the next one. Its weight holds both of
// theirs, the first one's in the lower half. A pair whose second weight is 0 reads what lies
// there, which may be a row or a column more than a tile has: axes.py leaves room for it.
#include "kernels.h"
#include "memory.h"
#include "resize_call.h"
#include "resize_turn.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int R = 16;  // rows on their side, and lanes of a sum
using Bytes = Vec<uint8_t, R>;
using Sum = Vec<int32_t, R>;

// a times the weight's lower half and b times its upper one, added.
INLINE Sum pair_sums(Bytes a, Bytes b, int32_t weight) {
    Sum pairs = convert<Sum>(a) | convert<Sum>(b) << 16, w = splat<Sum>(weight);
#if defined(__AVX512BW__)
    return (Sum)_mm512_madd_epi16((__m512i)pairs, (__m512i)w);
#else
    constexpr int N = REGISTER / 4, PARTS = R / N;
    using Part = Vec<int32_t, N>;
    Part parts[PARTS], weights = splat<Part>(weight);
    memcpy(parts, &pairs, sizeof pairs);
    for (int n = 0; n < PARTS; n++) {
#if defined(__AVX2__)
        parts[n] = (Part)_mm256_madd_epi16((__m256i)parts[n], (__m256i)weights);
#elif defined(__x86_64__)
        parts[n] = (Part)_mm_madd_epi16((__m128i)parts[n], (__m128i)weights);
#else
        parts[n] = (parts[n] & 0xffff) * int32_t(int16_t(weight)) +
                   (parts[n] >> 16) * int32_t(weight >> 16);
#endif
    }
    (void)weights, (void)w;
    memcpy(&pairs, parts, sizeof pairs);
    return pairs;
#endif
}

INLINE Bytes as_bytes(Sum total, int64_t bits) {
    total = total >> int32_t(bits);
    return convert<Bytes>(smaller(larger(total, Sum{}), splat<Sum>(255)));
}

// The sums of the columns of a tile, of rows on their side, for C channels side by side; C of 0:
// any number.
template <int C>
void sum_across(const ResizeCall &p, const uint8_t *turned, const Columns &columns, uint8_t *out) {
    const int64_t inner = C ? C : p.inner;
    const int32_t *pixel = at<int32_t>(p.x_pixel), *weight = at<int32_t>(p.x_weight);
    const Sum half = splat<Sum>(1 << (p.bits - 1));
    for (int64_t x = columns.first; x < columns.end; x++) {
        const int64_t begin = at<int32_t>(p.x_begin)[x], end = at<int32_t>(p.x_end)[x];
        for (int64_t c = 0; c < inner; c += C ? C : 1) {
            constexpr int U = C ? C : 1;
            Sum total[U];
            for (int u = 0; u < U; u++) total[u] = half;
            for (int64_t k = begin; k < end; k++) {
                const uint8_t *column = turned + ((pixel[k] - columns.source) * inner + c) * R;
                for (int u = 0; u < U; u++)
                    total[u] += pair_sums(load<Bytes>(column + u * R),
                                          load<Bytes>(column + (inner + u) * R), weight[k]);
            }
            for (int u = 0; u < U; u++, out += R) store(out, as_bytes(total[u], p.bits));
        }
    }
}

// `count` numbers of row n of the result, from lines that lie `stride` apart, of a whole vector
// more than count.
void sum_down(const ResizeCall &p, const uint8_t *lines, int64_t stride, int64_t n, int64_t count,
              uint8_t *out) {
    constexpr int U = 4;
    const int32_t *pixel = at<int32_t>(p.y_pixel), *weight = at<int32_t>(p.y_weight);
    const int64_t begin = at<int32_t>(p.y_begin)[n], end = at<int32_t>(p.y_end)[n];
    const Sum half = splat<Sum>(1 << (p.share - 1));
    int64_t e = 0;
    for (; e + U * R <= count; e += U * R) {
        Sum total[U];
        for (int u = 0; u < U; u++) total[u] = half;
        for (int64_t k = begin; k < end; k++) {
            const uint8_t *row = lines + pixel[k] * stride + e;
            for (int u = 0; u < U; u++)
                total[u] += pair_sums(load<Bytes>(row + u * R), load<Bytes>(row + stride + u * R),
                                      weight[k]);
        }
        for (int u = 0; u < U; u++) store(out + e + u * R, as_bytes(total[u], p.share));
    }
    for (; e < count; e += R) {
        Sum total = half;
        for (int64_t k = begin; k < end; k++) {
            const uint8_t *row = lines + pixel[k] * stride + e;
            total += pair_sums(load<Bytes>(row), load<Bytes>(row + stride), weight[k]);
        }
        Bytes found = as_bytes(total, p.share);
        memcpy(out + e, &found, size_t(least<int64_t>(R, count - e)));
    }
}

// Units are bands of rows of the result, of all planes, counted through.
template <int C> void resize_pairs(const Call &call, int64_t begin, int64_t end) {
    const ResizeCall &p = as<ResizeCall>(call);
    const int64_t line = p.width * p.inner, out_line = p.out_width * p.inner;
    const int64_t bands = (p.out_height + p.band - 1) / p.band;
    BorrowedRow<uint8_t> memory(p.lines + p.turned + p.summed);
    if (!memory) return;
    uint8_t *lines = memory.numbers, *turned = lines + p.lines, *summed = turned + p.turned;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t plane = unit / bands, band = unit % bands, y0 = band * p.band;
        const int64_t rows = least(p.band, p.out_height - y0);
        const int32_t top = at<int32_t>(p.bands)[2 * band];
        const int32_t bottom = at<int32_t>(p.bands)[2 * band + 1];
        const uint8_t *image = at<uint8_t>(p.image) + plane * p.height * line;
        for (int64_t n = 0; n < p.tile_count; n++) {
            const Columns columns = at<Columns>(p.tiles)[n];
            const int64_t count = (columns.source_end - columns.source) * p.inner;
            const int64_t out_count = (columns.end - columns.first) * p.inner;
            for (int64_t place = top; place < bottom; place += R) {
                const uint8_t *from[R];
                uint8_t *to[R];
                const int64_t together = least<int64_t>(R, bottom - place);
                for (int64_t r = 0; r < R; r++) {
                    const int64_t row = at<int32_t>(p.read)[place + least(r, together - 1)];
                    from[r] = image + row * line + columns.source * p.inner;
                    to[r] = lines + (place - top + r) * p.line;
                }
                turn_rows<uint8_t, R>(from, count, turned);
                sum_across<C>(p, turned, columns, summed);
                turn_back<uint8_t, R>(summed, out_count, to, R);
            }
            uint8_t *out = at<uint8_t>(p.out) + (plane * p.out_height + y0) * out_line;
            out += columns.first * p.inner;
            for (int64_t y = y0; y < y0 + rows; y++, out += out_line)
                sum_down(p, lines - top * p.line, p.line, y, out_count, out);
        }
    }
}

}  // namespace

Kernel choose_resize_torch(const Call &call) {
    const int64_t inner = as<ResizeCall>(call).inner;
    if (inner == 1) return resize_pairs<1>;
    return inner == 3 ? resize_pairs<3> : inner == 4 ? resize_pairs<4> : resize_pairs<0>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
