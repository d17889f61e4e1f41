// Resizing by nearest: every pixel of the result is a copy of one image pixel's bits.
//
// One kernel serves every type: a pixel has as many bytes as its adjacent channels.
#include "shared/kernels.h"
#include "resize/resize_call.h"
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

struct Twelve {
    uint8_t bytes[12];
};
struct Sixteen {
    uint8_t bytes[16];
};

// Pixels of `bytes`, each moved as a U of at least as many bytes. If U is larger, the excess is
// overwritten by the next pixel; pixels at the end of a row or image are copied separately.
template <class U>
void move_row(const ResizeCall &p, const char *from, const char *image_end, char *to) {
    const int64_t *column = at<int64_t>(p.columns);
    const int64_t bytes = p.pixel_bytes, wide = sizeof(U), apart = p.pixel * (bytes / p.inner);
    int64_t whole = p.out_width;
    if (bytes < wide) whole--;
    for (int64_t x = 0; x < whole; x++) {
        const char *pixel = from + column[x] * apart;
        if (bytes < wide && pixel + wide > image_end) memcpy(to + x * bytes, pixel, size_t(bytes));
        else memcpy(to + x * bytes, pixel, sizeof(U));
    }
    for (int64_t x = whole; x < p.out_width; x++)
        memcpy(to + x * bytes, from + column[x] * apart, size_t(bytes));
}

void move_row_bytes(const ResizeCall &p, const char *from, const char *, char *to) {
    const size_t bytes = size_t(p.pixel_bytes), apart = size_t(p.pixel) * (bytes / size_t(p.inner));
    for (int64_t x = 0; x < p.out_width; x++)
        memcpy(to + x * bytes, from + size_t(at<int64_t>(p.columns)[x]) * apart, bytes);
}

// Units are bands of rows of the result, numbered across all planes.
template <auto MOVE> void nearest_rows(const Call &call, int64_t begin, int64_t end) {
    const ResizeCall &p = as<ResizeCall>(call);
    const int64_t number = p.pixel_bytes / p.inner, line = p.stride * number;
    const int64_t out_line = p.out_width * p.pixel_bytes;
    const int64_t bands = (p.out_height + p.band - 1) / p.band;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t plane = unit / bands, y0 = unit % bands * p.band;
        const char *image = at<char>(p.image) + at<int64_t>(p.starts)[plane] * number;
        const char *image_end = image + (p.height - 1) * line;
        image_end += (p.width - 1) * p.pixel * number + p.pixel_bytes;
        char *to = at<char>(p.out) + (plane * p.out_height + y0) * out_line;
        const int64_t *row = at<int64_t>(p.rows);
        for (int64_t y = y0; y < least(y0 + p.band, p.out_height); y++, to += out_line) {
            // a repeated row is copied
            if (y > y0 && row[y] == row[y - 1]) memcpy(to, to - out_line, size_t(out_line));
            else MOVE(p, image + row[y] * line, image_end, to);
        }
    }
}

}  // namespace

Kernel choose_resize_nearest(const Call &call) {
    const int64_t bytes = as<ResizeCall>(call).pixel_bytes;
    if (bytes == 1) return nearest_rows<move_row<uint8_t>>;
    if (bytes == 2) return nearest_rows<move_row<uint16_t>>;
    if (bytes <= 4) return nearest_rows<move_row<uint32_t>>;
    if (bytes <= 8) return nearest_rows<move_row<uint64_t>>;
    if (bytes == 12) return nearest_rows<move_row<Twelve>>;
    if (bytes == 16) return nearest_rows<move_row<Sixteen>>;
    return nearest_rows<move_row_bytes>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
