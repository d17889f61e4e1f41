// The loops of a resize over its bands and tiles, and a tile's memory.
#pragma once
#include "shared/memory.h"
#include "resize/resize_call.h"
#include "resize/resize_turn.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr size_t ALIGNED = 64, APART = 5 * ALIGNED;  // not whole pages, which share a cache set

// The arrays of a tile: M between the passes, A before transposing, B after.
template <class M, class A, class B> struct Scratch {
    M *lines;
    A *turned;
    B *summed;
    void *memory;

    explicit Scratch(const ResizeCall &p) {
        const auto room = [](int64_t numbers, size_t each) {
            return (size_t(numbers) * each / ALIGNED + 1) * ALIGNED + APART;
        };
        const size_t first = room(p.lines, sizeof(M)), second = room(p.turned, sizeof(A));
        memory = take_memory(first + second + room(p.summed, sizeof(B)));
        if (!memory) return;  // as the kernel does
        char *start = static_cast<char *>(memory);
        lines = reinterpret_cast<M *>(start), turned = reinterpret_cast<A *>(start + first);
        summed = reinterpret_cast<B *>(start + first + second);
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    ~Scratch() { give_memory(memory); }
};

// x first: the image's pixels are T, the values after the first pass M; R rows are transposed
// together. `across` sums the columns of a tile from transposed rows; `down` makes row y of the
// result from such sums. Units are bands of rows of the result, numbered across all planes.
template <class T, class M, int R> void walk_across_first(
    const ResizeCall &p, int64_t begin, int64_t end,
    void (*across)(const ResizeCall &, const T *turned, const Columns &, M *summed),
    void (*down)(const ResizeCall &, const M *lines, int64_t y, const Columns &, const T *image,
                 T *out)) {
    const int64_t out_line = p.out_width * p.inner;
    const int64_t bands = (p.out_height + p.band - 1) / p.band;
    Scratch<M, T, M> scratch(p);
    if (!scratch.memory) return;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t plane = unit / bands, band = unit % bands, y0 = band * p.band;
        const int64_t rows = least(p.band, p.out_height - y0);
        const int32_t top = at<int32_t>(p.bands)[2 * band];
        const int32_t bottom = at<int32_t>(p.bands)[2 * band + 1];
        const T *image = p.plane_of<T>(plane);
        for (int64_t n = 0; n < p.tile_count; n++) {
            const Columns columns = at<Columns>(p.tiles)[n];
            const int64_t count = (columns.source_end - columns.source) * p.inner;
            const int64_t out_count = (columns.end - columns.first) * p.inner;
            for (int64_t place = top; place < bottom; place += R) {
                const Bits<T> *from[R];
                Bits<M> *to[R];
                const int64_t together = least<int64_t>(R, bottom - place);
                for (int64_t r = 0; r < R; r++) {
                    const int64_t row = at<int32_t>(p.read)[place + least(r, together - 1)];
                    from[r] = reinterpret_cast<const Bits<T> *>(image + row * p.stride +
                                                                columns.source * p.inner);
                    // the rows beyond the last one have room of their own
                    to[r] = reinterpret_cast<Bits<M> *>(scratch.lines + (place - top + r) * p.line);
                }
                turn_rows<Bits<T>, R>(from, count, reinterpret_cast<Bits<T> *>(scratch.turned));
                across(p, scratch.turned, columns, scratch.summed);
                turn_back<Bits<M>, R>(reinterpret_cast<Bits<M> *>(scratch.summed), out_count, to,
                                      R);
            }
            const M *lines = scratch.lines - top * p.line;
            T *out = at<T>(p.out) + (plane * p.out_height + y0) * out_line;
            out += columns.first * p.inner;
            for (int64_t y = y0; y < y0 + rows; y++, out += out_line)
                down(p, lines, y, columns, image, out);
        }
    }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
