// OpenCV's nearest, bit for bit: for every pixel the one that it shows. It moves the bits of any
// type, so that one kernel serves all types of as many bytes.
#include "kernels.h"
#include "memory.h"
#include "opencv_tiles.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

struct Shown {
    Places places;
    alignas(64) int64_t offset[ROW];  // numbers from the image's first to the pixel's
    int hidden[ROW], missing;         // pixels that show what the border does
};

// Where the pixels stand; those that are not on the image are looked up under the border.
inline void find_pixels(const OpenCVCall &p, const Piece &piece, Shown &s) {
    using Wide = Vec<int64_t, L>;
    const int64_t line = p.line, pixel = p.pixel, count = piece.count;
    const I end_x = splat<I>(int32_t(p.width - 1)), end_y = splat<I>(int32_t(p.height - 1));
    I others{};
    for (int64_t c = 0; c < count; c += L) {
        I i = load<I>(s.places.column + c), j = load<I>(s.places.row + c);
        I x = smaller(larger(i, I{}), end_x), y = smaller(larger(j, I{}), end_y);
        store(s.offset + c, convert<Wide>(y) * line + convert<Wide>(x) * pixel);
        others |= (x != i) | (y != j);
    }
    s.missing = 0;
    if (!any(others)) return;
    for (int c = 0; c < count; c++) {
        const int32_t i = s.places.column[c], j = s.places.row[c];
        if (i >= 0 && i < p.width && j >= 0 && j < p.height) continue;
        int64_t u = -1, v = -1;
        if (i != NOWHERE) u = resolve(i, p.width, p.border), v = resolve(j, p.height, p.border);
        if (u < 0 || v < 0) s.hidden[s.missing++] = c;
        else s.offset[c] = v * line + u * pixel;
    }
}

// Pixels of 3 or 4 bytes side by side, as words; the last one's number by number.
inline void move_words(const uint8_t *from, const int64_t *offset, uint8_t *to, int64_t count,
                       int64_t bytes) {
    for (int64_t c = 0; c + 1 < count; c++) memcpy(to + c * bytes, from + offset[c], 4);
    for (int64_t k = 0; k < bytes; k++) to[(count - 1) * bytes + k] = from[offset[count - 1] + k];
}

template <class U> void opencv_nearest(const Call &call, int64_t begin, int64_t end) {
    const OpenCVCall &p = as<OpenCVCall>(call);
    Borrowed<Shown> memory;
    if (!memory) return;
    Shown &s = *memory;
    const bool packed = p.plane == 1 && p.pixel == p.channels && p.out_plane == 1;
    const bool words = sizeof(U) == 1 && packed && (p.channels == 3 || p.channels == 4);
    // the last pixel of the image is no word of its own
    const int64_t last = (p.height - 1) * p.line + (p.width - 1) * p.pixel;
    each_piece(p, begin, end, [&](const Piece &piece) {
        place(p, piece.mapping, piece.finite, piece.x0, piece.y, piece.count, s.places);
        find_pixels(p, piece, s);
        const U *image = at<const U>(p.image) + piece.source;
        bool ends = false;
        const int64_t pixels = words && p.channels == 3 ? piece.count : 0;
        for (int64_t c = 0; c < pixels; c++) ends |= s.offset[c] == last;
        if (words && !ends)
            move_words((const uint8_t *)image, s.offset, (uint8_t *)result_at<U>(p, piece, 0, 0),
                       piece.count, p.channels);
        else
            for (int64_t k = 0; k < p.channels; k++) {
                const U *from = image + k * p.plane;
                U *to = result_at<U>(p, piece, 0, k);
                const int64_t step = p.out_pixel, count = piece.count;
                for (int64_t c = 0; c < count; c++) to[c * step] = from[s.offset[c]];
            }
        show_fill<U>(p, piece, s.hidden, s.missing);
    });
}

}  // namespace

// Numbers of 1, 2, 4 and 8 bytes.
Kernel choose_opencv_nearest(const Call &call) {
    static const Kernel KERNELS[] = {opencv_nearest<uint8_t>, opencv_nearest<uint16_t>,
                                     opencv_nearest<uint32_t>, opencv_nearest<uint64_t>};
    return KERNELS[logarithm(as<OpenCVCall>(call).number_bytes)];
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
