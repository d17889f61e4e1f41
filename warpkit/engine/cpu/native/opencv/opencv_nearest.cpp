// OpenCV's nearest, bit for bit: the source pixel of every pixel. It moves the bits of any type, so
// one kernel serves all types of one size.
#include "shared/kernels.h"
#include "shared/memory.h"
#include "opencv/opencv_tiles.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

struct Shown {
    Places places;
    alignas(64) int64_t offset[ROW];  // numbers from the start of the image to the pixel
    uint64_t hidden;  // one bit per pixel: it shows the border
    bool ends;        // some pixel shows the image's last pixel
};

// The positions of the pixels; those outside the image are found by the border's rule.
inline void find_pixels(const OpenCVCall &p, const Piece &piece, Shown &s) {
    const I end_x = splat<I>(int32_t(p.width - 1)), end_y = splat<I>(int32_t(p.height - 1));
    const Distance distance(p, 1);
    uint64_t others = 0, ends = 0;
    for (int64_t c = 0; c < piece.count; c += L) {
        I i = load<I>(s.places.column + c), j = load<I>(s.places.row + c);
        I x = smaller(larger(i, I{}), end_x), y = smaller(larger(j, I{}), end_y);
        store(s.offset + c, distance.at(x, y));
        others |= bits_of((x != i) | (y != j)) << c;
        ends |= bits_of((x == end_x) & (y == end_y));
    }
    others &= bits_of_all(piece.count);
    s.hidden = others, s.ends = ends;
    if (misses(p.border)) return;
    for (; others; others &= others - 1) {
        const int c = lowest_bit(others);
        const int32_t i = s.places.column[c], j = s.places.row[c];
        if (i == NOWHERE) continue;
        const int64_t u = resolve(i, p.width, p.border), v = resolve(j, p.height, p.border);
        s.offset[c] = v * p.line + u * p.pixel, s.hidden &= ~(uint64_t(1) << c);
        s.ends |= u == p.width - 1 && v == p.height - 1;
    }
}

// Channels-last pixels of 3 or 4 bytes, as words; the last one byte by byte.
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
    each_piece(p, begin, end, [&](const Piece &piece) {
        place(p, piece.mapping, piece.finite, piece.x0, piece.y, piece.count, s.places);
        find_pixels(p, piece, s);
        const U *image = at<const U>(p.image) + piece.source;
        // the image's last pixel is not a whole word
        if (s.hidden == bits_of_all(piece.count)) {
        } else if (words && (p.channels == 4 || !s.ends))
            move_words((const uint8_t *)image, s.offset, (uint8_t *)result_at<U>(p, piece, 0, 0),
                       piece.count, p.channels);
        else
            for (int64_t k = 0; k < p.channels; k++) {
                const U *from = image + k * p.plane;
                U *to = result_at<U>(p, piece, 0, k);
                const int64_t step = p.out_pixel, count = piece.count;
                for (int64_t c = 0; c < count; c++) to[c * step] = from[s.offset[c]];
            }
        show_fill<U>(p, piece, s.hidden);
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
