// Moves whole pixels: rotated, flipped and transposed pictures (`arrange`), and pictures with
// additional rows and columns (`frame`). Bits of any type are moved.
#include "shared/kernels.h"
#include "shared/memory.h"
#include "shared/pixels.h"
#include "resize/resize_turn.h"
#include "shared/rules.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// -- arrange: pixel (y, x) of the result is at image + y row_step + x column_step --

// If rows become columns, the result is made in tiles: a tile reads as many lines of the image as
// it has columns, and uses each for all rows whose pixels it holds. The next line is prefetched
// meanwhile.
constexpr int64_t TILE_COLUMNS = 64, TILE_BYTES = 256, LINE = 64;

// If rows become columns, and pixels are numbers U: blocks of R x R are transposed in registers.
// The remaining pixels at two edges of the result are moved one by one.
template <class U> void turn(const PictureCall &p, const Rows &rows) {
    constexpr int R = 16;
    constexpr int64_t BYTES = sizeof(U), HIGH = TILE_BYTES / BYTES;
    const char *image = at<const char>(p.image);
    U *out = at<U>(p.out);
    const int64_t blocks = p.out_width / R * R, step = p.row_step < 0 ? -1 : 1;
    const auto move = [&](int64_t y, int64_t x) {
        memcpy(out + y * p.out_width + x, image + y * p.row_step + x * p.column_step, sizeof(U));
    };
    for (int64_t y0 = rows.first; y0 < rows.end; y0 += HIGH) {
        const int64_t end = least(y0 + HIGH, rows.end), whole = y0 + (end - y0) / R * R;
        for (int64_t x0 = 0; x0 < blocks; x0 += R)
            for (int64_t y = y0; y < whole; y += R) {
                const int64_t lowest = step < 0 ? y + R - 1 : y;  // in memory
                const char *from = image + lowest * p.row_step + x0 * p.column_step;
                U *to = out + lowest * p.out_width + x0;
                turn_block<U, R>(
                    [&](int n) { return reinterpret_cast<const U *>(from + n * p.column_step); },
                    [&](int n) { return to + n * step * p.out_width; });
            }
        for (int64_t y = y0; y < end; y++)
            for (int64_t x = y < whole ? blocks : 0; x < p.out_width; x++) move(y, x);
    }
}

// BYTES per pixel; 0: the number in the call.
template <int BYTES> void arrange(const Call &call, int64_t begin, int64_t end) {
    const PictureCall &p = as<PictureCall>(call);
    const int64_t bytes = BYTES ? BYTES : p.pixel_bytes;
    const Rows rows(p, begin, end);
    const char *image = at<const char>(p.image);
    char *out = at<char>(p.out);
    const bool along = p.column_step == bytes || p.column_step == -bytes;
    if constexpr (BYTES == 1 || BYTES == 2 || BYTES == 4)
        if (p.row_step == bytes || p.row_step == -bytes)
            return turn<typename BitsOf<BYTES>::type>(p, rows);
    const int64_t high = along ? 1 : most<int64_t>(TILE_BYTES / bytes, 1);
    const int64_t wide = along ? p.out_width : TILE_COLUMNS;
    const int64_t ahead = along ? 0 : p.row_step < 0 ? -1 * LINE : 1 * LINE;
    for (int64_t y0 = rows.first; y0 < rows.end; y0 += high)
        for (int64_t x0 = 0; x0 < p.out_width; x0 += wide) {
            const int64_t count = least(wide, p.out_width - x0);
            for (int64_t y = y0; y < least(y0 + high, rows.end); y++) {
                const char *from = image + y * p.row_step + x0 * p.column_step;
                char *to = out + (y * p.out_width + x0) * bytes;
                if (p.column_step == bytes) {
                    memcpy(to, from, size_t(count * bytes));
                    continue;
                }
                if constexpr (BYTES == 3) {  // written by 4; the next pixel covers the last byte
                    for (int64_t x = 0; x < count - 1; x++, from += p.column_step, to += 3) {
                        __builtin_prefetch(from + ahead);
                        uint32_t pixel = uint8_t(from[2]);
                        uint16_t low;
                        memcpy(&low, from, 2);
                        pixel = pixel << 16 | low;
                        memcpy(to, &pixel, 4);
                    }
                    memcpy(to, from, 3);
                    continue;
                }
                for (int64_t x = 0; x < count; x++, from += p.column_step, to += bytes) {
                    __builtin_prefetch(from + ahead);
                    if constexpr (BYTES > 0) memcpy(to, from, BYTES);
                    else memcpy(to, from, size_t(bytes));
                }
            }
        }
}

}  // namespace

Kernel choose_arrange(const Call &call) {
    switch (as<PictureCall>(call).pixel_bytes) {
        case 1: return arrange<1>;
        case 2: return arrange<2>;
        case 3: return arrange<3>;
        case 4: return arrange<4>;
        case 6: return arrange<6>;
        case 8: return arrange<8>;
        case 12: return arrange<12>;
        case 16: return arrange<16>;
        default: return arrange<0>;
    }
}

namespace {

// -- frame: the image with `top` rows above it and `left` columns left of it, and so on --

// Copies the same pixel `count` times, in runs of increasing length.
void repeat(char *to, const char *pixel, int64_t count, int64_t bytes) {
    if (count <= 0) return;
    copy_pixel(to, pixel, bytes);
    for (int64_t done = 1; done < count; done *= 2)
        memcpy(to + done * bytes, to, size_t(least(done, count - done) * bytes));
}

void frame(const Call &call, int64_t begin, int64_t end) {
    const PictureCall &p = as<PictureCall>(call);
    const Rows rows(p, begin, end);
    const int64_t bytes = p.pixel_bytes, right = p.left + p.width, after = p.out_width - right;
    const char *fill = at<const char>(p.fill);
    BorrowedRow<int64_t> memory(p.left + after + 1);
    if (!memory) return;
    int64_t *columns = memory.numbers;  // left and right of the image
    for (int64_t x = 0; x < p.left + after; x++)
        columns[x] =
            bytes * resolve(x < p.left ? x - p.left : x - p.left + p.width, p.width, p.border);
    for (int64_t y = rows.first; y < rows.end; y++) {
        char *to = at<char>(p.out) + y * p.out_width * bytes;
        const int64_t source = resolve(y - p.top, p.height, p.border);
        if (source < 0) {
            repeat(to, fill, p.out_width, bytes);
            continue;
        }
        const char *row = at<const char>(p.image) + source * p.width * bytes;
        memcpy(to + p.left * bytes, row, size_t(p.width * bytes));
        if (misses(p.border)) {
            repeat(to, fill, p.left, bytes), repeat(to + right * bytes, fill, after, bytes);
            continue;
        }
        for (int64_t x = 0; x < p.left; x++) copy_pixel(to + x * bytes, row + columns[x], bytes);
        for (int64_t x = 0; x < after; x++)
            copy_pixel(to + (right + x) * bytes, row + columns[p.left + x], bytes);
    }
}

}  // namespace

Kernel choose_frame(const Call &) { return frame; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
