// The gradient of images through their JPEG files; a unit is an image.
//
// Everything is computed again from the bytes. Then the steps are taken back: colours, enlarged
// colours, blocks, means, colours. Repeated rows and columns add to the last one.
#include "jpeg_band.h"
#include "kernels.h"
#include "memory.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr float SCALE = 1 / (8192 * 2.8284271247461903f);  // COSINES, orthonormal
constexpr float PART = 1.0f / 65536;

INLINE void float_waves(Lanes *v) {
    Lanes sums[4], differences[4];
    for (int i = 0; i < 4; i++) sums[i] = v[i] + v[7 - i], differences[i] = v[i] - v[7 - i];
    for (int u = 0; u < BLOCK; u++) {
        const Lanes *x = u % 2 ? differences : sums;
        Lanes y = x[0] * (COSINES[u][0] * SCALE);
        for (int i = 1; i < 4; i++) y = fma(splat<Lanes>(COSINES[u][i] * SCALE), x[i], y);
        v[u] = y;
    }
}

INLINE void from_float_waves(Lanes *v) {
    Lanes even[4], odd[4];
    for (int i = 0; i < 4; i++) {
        even[i] = v[0] * (COSINES[0][i] * SCALE), odd[i] = v[1] * (COSINES[1][i] * SCALE);
        for (int u = 2; u < BLOCK; u += 2) {
            even[i] = fma(splat<Lanes>(COSINES[u][i] * SCALE), v[u], even[i]);
            odd[i] = fma(splat<Lanes>(COSINES[u + 1][i] * SCALE), v[u + 1], odd[i]);
        }
    }
    for (int i = 0; i < 4; i++) v[i] = even[i] + odd[i], v[7 - i] = even[i] - odd[i];
}

struct Gradient {
    const Band &band;
    const JpegCall &p;
    const float *grad;
    float *out, *planes[3], *lines[2], *mixed;
    int64_t stride, height;

    // A row of the image: its gradients to brightness and to enlarged colours.
    void unshow(int64_t y) {
        const int64_t plane = p.height * p.width, width = p.width;
        const float *g = grad + y * width;
        float *to = planes[0] + y * stride;
        if (p.channels == 1) {
            memcpy(to, g, size_t(width) * sizeof(float));
            return;
        }
        const uint8_t *level = band.brightness_row(y);
        const uint8_t *blue = band.enlarged(0, y), *red = band.enlarged(1, y);
        for (int64_t x = 0; x < width; x += N) {
            Ints rgb[3];
            rgb_of(level + x, blue + x, red + x, rgb);
            Floats part[3];
            for (int c = 0; c < 3; c++) {
                const float *at = g + c * plane + x;
                const Floats all = x + N <= width ? load<Floats>(at) : load_first(at, width - x);
                part[c] = ((rgb[c] < 0) | (rgb[c] > 255)) ? Floats{} : all;
            }
            store(to + x, part[0] + part[1] + part[2]);
            store(lines[0] + x, (116130 * PART) * part[2] - (22554 * PART) * part[1]);
            store(lines[1] + x, (91881 * PART) * part[0] - (46802 * PART) * part[1]);
        }
        for (int c = 0; c < 2; c++) unenlarge(c, y);
    }

    void unenlarge(int c, int64_t y) {
        float *line = lines[c], *near = planes[c + 1] + y / p.rows * stride;
        const int64_t count = band.colour_width;
        if (p.columns == 1) {
            memcpy(near, line, size_t(p.width) * sizeof(float));
            return;
        }
        line[p.width] = p.width % 2 ? 0 : line[p.width];  // beyond the image, in a pair
        if (count <= 2) {
            for (int64_t x = 0; x < p.width; x++) near[x / 2] += line[x];
            return;
        }
        line[-1] = line[0], line[2 * count] = line[2 * count - 1];
        const bool two = p.rows == 2;
        const int64_t other = clamped(y / 2 + (y % 2 ? 1 : -1), 0, band.colour_height - 1);
        float *far = planes[c + 1] + other * stride;
        const float own = two ? 0.75f : 1;
        for (int64_t x = 0; x < count; x++)
            mixed[x] = 0.75f * (line[2 * x] + line[2 * x + 1]) +
                       0.25f * (line[2 * x - 1] + line[2 * x + 2]);
        for (int64_t x = 0; x < count; x++) near[x] += own * mixed[x];
        if (two)
            for (int64_t x = 0; x < count; x++) far[x] += 0.25f * mixed[x];
    }

    // A plane's blocks; its rows and columns beyond `rows` and `width` were repeated.
    void through_blocks(int plane, int64_t rows, int64_t width) {
        for (int64_t y = 0; y < rows; y += BLOCK)
            for (int64_t x = 0; x < width; x += BLOCK) {
                float *at = planes[plane] + y * stride + x;
                const uint8_t *inside = band.inside[plane] + y * stride + x;
                const float *slopes = band.slopes_of(plane, y / BLOCK, x);
                Lanes v[BLOCK];
                for (int k = 0; k < BLOCK; k++) {
                    const Row in = convert<Row>(load<Vec<uint8_t, BLOCK>>(inside + k * stride));
                    v[k] = in != 0 ? load<Lanes>(at + k * stride) : Lanes{};
                }
                turn(v), float_waves(v), turn(v), float_waves(v);
                for (int u = 0; u < BLOCK; u++) v[u] *= load<Lanes>(slopes + BLOCK * u);
                from_float_waves(v), turn(v), from_float_waves(v), turn(v);
                for (int k = 0; k < BLOCK; k++) store(at + k * stride, v[k]);
            }
        float *last = planes[plane] + (rows - 1) * stride;
        for (int64_t y = rows; y % BLOCK; y++)
            for (int64_t x = 0; x < width + BLOCK - 1; x++)
                last[x] += planes[plane][y * stride + x];
    }

    // A row of the images' gradient.
    void unconvert(int64_t y) {
        const int64_t width = p.width, plane = p.height * width;
        const bool wide = p.columns == 2;
        const int64_t padded = (width + 8 * p.columns - 1) / (8 * p.columns) * 8 * p.columns;
        float *level = planes[0] + y * stride, *to = out + y * width;
        for (int64_t x = width; x % BLOCK; x++) level[width - 1] += level[x];
        if (p.channels == 1) {
            memcpy(to, level, size_t(width) * sizeof(float));
            return;
        }
        const bool alone = p.rows == 2 && y % 2 == 0 && y + 1 == p.height;  // counted twice
        const float share = (wide ? 0.5f : 1) * (p.rows == 2 && !alone ? 0.5f : 1);
        for (int c = 0; c < 2; c++) {
            const float *from = planes[c + 1] + y / p.rows * stride;
            float *line = lines[c];
            for (int64_t x = 0; x < padded; x++) line[x] = share * from[wide ? x / 2 : x];
            for (int64_t x = width; x < padded; x++) line[width - 1] += line[x];
        }
        const float *blue = lines[0], *red = lines[1];
        for (int64_t x = 0; x < width; x++) {
            const float g = level[x], u = blue[x], v = red[x];
            to[x] = PART * (19595 * g - 11059 * u + 32768 * v);
            to[x + plane] = PART * (38470 * g - 21709 * u - 27439 * v);
            to[x + 2 * plane] = PART * (7471 * g + 32768 * u - 5329 * v);
        }
    }
};

void file_backward(const Call &call, int64_t begin, int64_t end) {
    const JpegCall &p = as<JpegCall>(call);
    const int64_t stride = Band::stride_of(p), blocks = (p.height + 8 * p.rows - 1) / (8 * p.rows);
    const int64_t rows[] = {blocks * 8 * p.rows, blocks * 8, blocks * 8};
    const int64_t size = (rows[0] + rows[1] + rows[2]) * stride;
    const int64_t bytes = (Band::bytes(p, blocks) + 63) / 64 * 64;
    BorrowedRow<uint8_t> memory(bytes + size);
    BorrowedRow<float> numbers(2 * size + 8 * stride);
    if (!memory || !numbers) return;
    for (int64_t n = begin; n < end; n++) {
        memset(memory.numbers, 0, size_t(bytes + size));
        memset(numbers.numbers, 0, size_t(2 * size + 8 * stride) * sizeof(float));
        Band band(p, n, memory.numbers, blocks);
        Gradient g{band, p, at<const float>(p.grad) + n * Band::size(p),
                   at<float>(p.grad_images) + n * Band::size(p), {}, {}, nullptr, stride, p.height};
        int64_t done = 0;
        for (int plane = 0; plane < 3; plane++) {
            band.inside[plane] = memory.numbers + bytes + done;
            band.slopes[plane] = numbers.numbers + done;
            g.planes[plane] = numbers.numbers + size + done;
            done += rows[plane] * stride;
        }
        float *rest = numbers.numbers + 2 * size;
        g.lines[0] = rest + 16, g.lines[1] = rest + 2 * stride + 16, g.mixed = rest + 5 * stride;
        for (int64_t block = 0; block < blocks; block++) band.make(block);
        for (int64_t y = 0; y < p.height; y++) g.unshow(y);
        g.through_blocks(0, p.height, p.width);
        for (int c = 1; c < p.channels; c++)
            g.through_blocks(c, band.colour_height, band.colour_width);
        for (int64_t y = 0; y < p.height; y++) g.unconvert(y);
    }
}

}  // namespace

Kernel choose_file_backward(const Call &) { return file_backward; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
