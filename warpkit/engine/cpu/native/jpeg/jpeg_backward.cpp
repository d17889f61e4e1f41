// The gradient of images through their JPEG files; a unit is a band of an image, as forward.
//
// Everything is computed again from the images. Then the steps are taken back, a row of blocks at a
// time: colours, enlarged colours, blocks, means, colours. Repeated rows and columns add to the
// last one. No sum is fused, so that all processors give the same bits.
#include "jpeg/jpeg_band.h"
#include "shared/kernels.h"
#include "shared/memory.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr float PART = 1.0f / 65536;
constexpr int SIDE = GROUP > 1 ? GROUP / 2 : 1;  // blocks in a vector of floats
using Lanes = Vec<float, BLOCK * SIDE>;

template <int D, int N> struct SwapLow {
    static constexpr int at(int k) { return k & D ? N + k - D : k; }
};
template <int D, int N> struct SwapHigh {
    static constexpr int at(int k) { return k & D ? N + k : k + D; }
};
template <int D> INLINE void turn_squares(Lanes *v) {  // exchanges squares of D x D
    constexpr int N = COUNT<Lanes>;
    for (int i = 0; i < BLOCK; i++)
        if (!(i & D)) {
            Lanes a = v[i], b = v[i + D];
            v[i] = pick<N, SwapLow<D, N>>(a, b), v[i + D] = pick<N, SwapHigh<D, N>>(a, b);
        }
}
INLINE void turn(Lanes *v) { turn_squares<4>(v), turn_squares<2>(v), turn_squares<1>(v); }

constexpr float scaled(int constant) { return float(constant) / 8192; }

// The odd half of both transforms: it is symmetric.
INLINE void turn_odd(Lanes &a, Lanes &b, Lanes &c, Lanes &d) {
    const Lanes all = (a + b + c + d) * scaled(9633);
    const Lanes outer = (a + d) * scaled(7373), inner = (b + c) * scaled(20995);
    const Lanes first = all - (a + c) * scaled(16069), second = all - (b + d) * scaled(3196);
    a = a * scaled(2446) - outer + first, b = b * scaled(16819) - inner + second;
    c = c * scaled(25172) - inner + first, d = d * scaled(12299) - outer + second;
}

// Twelve products (Loeffler, Ligtenberg, Moschytz, 1989), of whose constants `COSINES` of
// definitions/jpeg.py are sums; here divided by 8192, so that both functions multiply by 8.
INLINE void to_waves(Lanes *v) {
    Lanes s[4], d[4];
    for (int i = 0; i < 4; i++) s[i] = v[i] + v[7 - i], d[i] = v[i] - v[7 - i];
    const Lanes a = s[0] + s[3], b = s[1] + s[2], c = s[0] - s[3], e = s[1] - s[2];
    const Lanes turned = (c + e) * scaled(4433);
    v[0] = a + b, v[4] = a - b;
    v[2] = turned + c * scaled(6270), v[6] = turned - e * scaled(15137);
    turn_odd(d[3], d[2], d[1], d[0]);
    v[7] = d[3], v[5] = d[2], v[3] = d[1], v[1] = d[0];
}

INLINE void from_waves(Lanes *v) {
    const Lanes a = v[0] + v[4], b = v[0] - v[4], turned = (v[2] + v[6]) * scaled(4433);
    const Lanes c = turned + v[2] * scaled(6270), e = turned - v[6] * scaled(15137);
    const Lanes even[] = {a + c, b + e, b - e, a - c};
    Lanes odd[] = {v[1], v[3], v[5], v[7]};
    turn_odd(odd[3], odd[2], odd[1], odd[0]);
    for (int i = 0; i < 4; i++) v[i] = even[i] + odd[i], v[7 - i] = even[i] - odd[i];
}

// The lanes of a vector and the next one at places FIRST, FIRST + 2, ...
template <int FIRST> struct Second {
    static constexpr int at(int k) { return FIRST + 2 * k; }
};
struct Twice {
    static constexpr int at(int k) { return k / 2; }
};

struct Gradient {
    const Band &band;
    const JpegCall &p;
    const int64_t ring;  // rows of the image whose gradients are held
    // gradients to brightness, and to colours as wide as their planes, of rows of the image; and to
    // colours of a row of blocks
    float *levels, *lines[2], *means[2];
    float *pairs[2][2], *none;  // of a row of colours, the numbers at even and odd places; zeros

    static int64_t ring_of(const JpegCall &p) { return BLOCK * p.rows + 2; }
    static int64_t numbers(const JpegCall &p) {
        const int64_t stride = Band::stride_of(p), small = Band::small_of(p);
        return ring_of(p) * (stride + 2 * small) + (2 * BLOCK + 5) * small + 8 * N;
    }

    Gradient(const Band &band, float *memory)
        : band(band), p(band.p), ring(ring_of(band.p)), levels(memory) {
        memory += ring * band.stride;
        for (auto &rows : lines) rows = memory, memory += ring * band.small;
        for (auto &rows : means) rows = memory, memory += BLOCK * band.small;
        for (auto &pair : pairs)  // with one more number at an end
            for (auto &row : pair) row = memory + N, memory += band.small + 2 * N;
        none = memory;
        memset(none, 0, size_t(band.small) * sizeof(float));
    }

    float *level(int64_t y) const { return levels + y % ring * band.stride; }
    float *line(int c, int64_t y) const { return lines[c] + y % ring * band.small; }
    // The gradients to row y of colours.
    float *mean(int c, int64_t y) const {
        return p.rows == 1 ? line(c, y) : means[c] + y % BLOCK * band.small;
    }

    // A row of the image.
    void unshow(int64_t y) const {
        const int64_t width = p.width, plane = p.height * width;
        const float *grad = at<const float>(p.grad) + band.place(0, y);
        float *to = level(y);
        if (p.channels == 1) {
            memcpy(to, grad, size_t(width) * sizeof(float));
            memset(to + width, 0, size_t(band.stride - width) * sizeof(float));
            return;
        }
        const uint8_t *from = band.brightness_row(y);
        const uint8_t *blue = band.enlarged(0, y), *red = band.enlarged(1, y);
        for (int64_t x = 0; x < band.stride; x += HALVES) {
            Halves rgb[3];
            rgb_of(from + x, blue + x, red + x, rgb);
            Floats colours[2][2];
            for (int k = 0; k < 2; k++) {
                const int64_t first = x + k * N;
                Floats part[3]{};
                for (int c = 0; c < 3 && first < width; c++) {
                    const float *at = grad + c * plane + first;
                    const bool all = first + N <= width;
                    part[c] = all ? load<Floats>(at) : load_first(at, width - first);
                    const Halves beyond = (rgb[c] < 0) | (rgb[c] > 255);
                    const auto mine = k ? pick<N, UpperHalf<N>>(beyond, beyond)
                                        : pick<N, InOrder>(beyond, beyond);
                    part[c] = convert<Ints>(mine) ? Floats{} : part[c];
                }
                store(to + first, part[0] + part[1] + part[2]);
                colours[0][k] = (116130 * PART) * part[2] - (22554 * PART) * part[1];
                colours[1][k] = (91881 * PART) * part[0] - (46802 * PART) * part[1];
                for (int c = 0; c < 2 && p.columns == 1; c++)
                    store(line(c, y) + first, colours[c][k]);
            }
            for (int c = 0; c < 2 && p.columns == 2; c++) {
                const Floats *both = colours[c];
                store(pairs[c][0] + x / 2, pick<N, Second<0>>(both[0], both[1]));
                store(pairs[c][1] + x / 2, pick<N, Second<1>>(both[0], both[1]));
            }
        }
        for (int c = 0; c < 2 && p.columns == 2; c++)
            unenlarge(pairs[c][0], pairs[c][1], line(c, y));
    }

    // To colours of their own width, from those at even and at odd places.
    void unenlarge(float *even, float *odd, float *to) const {
        const int64_t count = band.colour_width;
        const float far = count > 2 ? 0.25f : 0, near = 1 - far;
        odd[-1] = even[0], even[band.small] = 0, even[count] = odd[count - 1];
        for (int64_t x = 0; x < band.small; x += N) {
            const Floats own = load<Floats>(even + x) + load<Floats>(odd + x);
            const Floats others = load<Floats>(odd + x - 1) + load<Floats>(even + x + 1);
            store(to + x, near * own + far * others);
        }
        if (count < band.small) to[count] = 0;
    }

    // Row y of colours, from the rows of the image that show it.
    void unmix(int c, int64_t y) const {
        const float far = band.colour_width > 2 ? 0.25f : 0, near = 1 - far;
        const float *first = line(c, 2 * y);
        const float *second = 2 * y + 1 < p.height ? line(c, 2 * y + 1) : none;
        const float *before = y ? line(c, 2 * y - 1) : first;
        const float *after = 2 * y + 2 < p.height ? line(c, 2 * y + 2) : second;
        float *to = mean(c, y);
        for (int64_t x = 0; x < band.small; x += N) {
            const Floats own = load<Floats>(first + x) + load<Floats>(second + x);
            const Floats others = load<Floats>(before + x) + load<Floats>(after + x);
            store(to + x, near * own + far * others);
        }
    }

    // The row of blocks that begins with row y of a plane; the gradients of rows from `end` on are
    // 0, and added to the row before afterwards.
    template <class Row>
    void through(Row row, const uint8_t *made, int64_t step, const Table &table, int64_t width,
                 int64_t y, int64_t end) const {
        float *rows[BLOCK];
        for (int k = 0; k < BLOCK; k++) {
            rows[k] = row(y + k);
            if (y + k >= end) memset(rows[k], 0, size_t(step) * sizeof(float));
        }
        const uint8_t *inside = band.inside_of(made);
        const int16_t *waves = band.waves_of(made, 0);
        const Lanes one = splat<Lanes>(1.0f / 64);
        for (int64_t x = 0; x < width; x += COUNT<Lanes>) {
            Lanes v[BLOCK];
            for (int k = 0; k < BLOCK; k++) {
                using Marks = Vec<uint8_t, COUNT<Lanes>>;
                const Marks marks = load<Marks>(inside + k * step + x);
                const auto in = convert<Vec<int32_t, COUNT<Lanes>>>(marks);
                v[k] = in != 0 ? load<Lanes>(rows[k] + x) : Lanes{};
            }
            to_waves(v), turn(v), to_waves(v);
            const int16_t *group = waves + x / HALVES * HALVES * BLOCK + x % HALVES;
            for (int u = 0; u < BLOCK; u++) {
                using Numbers = Vec<int16_t, COUNT<Lanes>>;
                const Lanes size = magnitude(convert<Lanes>(load<Numbers>(group + HALVES * u)));
                v[u] *= smaller(0.1f / 64 + load<Lanes>(table.slopes[u]) * size, one);
            }
            from_waves(v), turn(v), from_waves(v);
            for (int k = 0; k < BLOCK; k++) store(rows[k] + x, v[k]);
        }
        for (int64_t k = most<int64_t>(end - y, 1); k < BLOCK; k++)
            for (int64_t x = 0; x < step; x += N) {
                float *last = rows[end - y - 1] + x;
                store(last, load<Floats>(last) + load<Floats>(rows[k] + x));
            }
    }

    // A row of blocks of colour, and the image's rows.
    void finish(int64_t block) const {
        const int64_t first = block * band.height, end = least(first + band.height, p.height);
        for (int64_t y = first; y < end; y += BLOCK)
            through([&](int64_t y) { return level(y); }, band.brightness_row(y), band.stride,
                    band.tables[0], p.width, y, p.height);
        const int64_t begin = BLOCK * block, height = band.colour_height;
        for (int c = 0; c < p.channels - 1; c++) {
            for (int64_t y = begin; p.rows == 2 && y < least(begin + BLOCK, height); y++)
                unmix(c, y);
            through([&](int64_t y) { return mean(c, y); }, band.colour_row(c, begin), band.small,
                    band.tables[1], band.colour_width, begin, height);
        }
        for (int64_t y = first; y < end; y++) unconvert(y);
    }

    // A row of the images' gradient.
    void unconvert(int64_t y) const {
        const int64_t width = p.width, plane = p.height * width, last = width - 1;
        const float *to_level = level(y);
        float *to = at<float>(p.grad_images) + band.place(0, y), sum = to_level[last];
        for (int64_t x = width; x % BLOCK; x++) sum += to_level[x];
        if (p.channels == 1) {
            memcpy(to, to_level, size_t(width) * sizeof(float));
            to[last] = sum;
            return;
        }
        const bool wide = p.columns == 2;
        const bool alone = p.rows == 2 && y % 2 == 0 && y + 1 == p.height;  // counted twice
        const float share = (wide ? 0.5f : 1) * (p.rows == 2 && !alone ? 0.5f : 1);
        const float *colours[] = {mean(0, y / p.rows), mean(1, y / p.rows)};
        auto rgb = [&](auto g, auto u, auto v, auto use) {
            use(0, (19595 * PART) * g - (11059 * PART) * u + (32768 * PART) * v);
            use(1, (38470 * PART) * g - (21709 * PART) * u - (27439 * PART) * v);
            use(2, (7471 * PART) * g + (32768 * PART) * u - (5329 * PART) * v);
        };
        for (int64_t x = 0; x < width; x += N) {
            Floats part[2];
            for (int c = 0; c < 2; c++) {
                using Half = Vec<float, N / 2>;
                if (!wide) part[c] = load<Floats>(colours[c] + x);
                else {
                    const Half half = load<Half>(colours[c] + x / 2);
                    part[c] = pick<N, Twice>(half, half);
                }
            }
            rgb(load<Floats>(to_level + x), share * part[0], share * part[1],
                [&](int c, Floats value) {
                    float *at = to + c * plane + x;
                    if (x + N <= width) store(at, value);
                    else store_first(at, value, width - x);
                });
        }
        float ends[2]{};
        for (int c = 0; c < 2; c++)
            for (int64_t x = last; x == last || x % (BLOCK * p.columns); x++)
                ends[c] += share * colours[c][x / p.columns];
        rgb(sum, ends[0], ends[1], [&](int c, float value) { to[c * plane + last] = value; });
    }
};

void file_backward(const Call &call, int64_t begin, int64_t end) {
    const JpegCall &p = as<JpegCall>(call);
    const int64_t bytes = (Band::bytes(p) + 63) / 64 * 64, ring = Band::ring(p);
    BorrowedRow<uint8_t> memory(bytes + ring);
    BorrowedRow<int16_t> waves(ring);
    BorrowedRow<float> numbers(Gradient::numbers(p));
    if (!memory || !waves || !numbers) return;
    for (int64_t n = begin; n < end; n++) {
        Band band(p, n / p.bands, memory.numbers);
        band.inside = memory.numbers + bytes, band.waves = waves.numbers;
        const Gradient gradient(band, numbers.numbers);
        walk(band, n, true, [&](int64_t y) { gradient.unshow(y); },
             [&](int64_t block) { gradient.finish(block); });
    }
}

}  // namespace

Kernel choose_file_backward(const Call &) { return file_backward; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
