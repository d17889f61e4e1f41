// Resizes of images that the kernels cannot read in place: the numbers of a row are apart, or they
// are halves. Each piece of work reads a window: the rows and columns that it needs, gathered into
// adjacent numbers of the kernels' type. So nothing is as large as the image, and the kernels run
// unchanged.
#include "warp/halves.h"
#include "resize/resize_turn.h"
#include "shared/kernels.h"
#include "shared/memory.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int64_t TOGETHER = 16;                    // rows that are gathered column by column
template <class S> constexpr int BLOCK = PIECE<S>;  // columns and rows that are transposed

// Gathers columns source .. source_end of those that windows have, of some rows of a plane.
template <class S, class T> struct Gather {
    const ResizeCall &p;
    const S *plane;
    const int32_t *rows;
    int64_t row_count, source, count;
    T *to;

    void run() const {
        const int32_t *column = p.window_columns ? at<int32_t>(p.window_columns) + source : nullptr;
        if (column) fill([&](int64_t x) { return column[x] * p.pixel; });
        else fill([&](int64_t x) { return (source + x) * p.pixel; });
    }
    template <class Place> void fill(Place place) const {
        const bool together = p.channel == 1 || p.inner == 1;
        if (p.stride < p.pixel)  // columns are closer in memory than rows
            for (int64_t c = 0; c < p.inner; c++) by_columns(place, c);
        else if (together && p.pixel == p.inner && !p.window_columns)
            for (int64_t r = 0; r < row_count; r++) {
                const S *from = row(r) + place(0);
                T *made = to + r * p.window_line;
                for (int64_t n = 0; n < count * p.inner; n++) made[n] = T(from[n]);
            }
        else if (together && p.inner == 1) by_pixels<1>(place);
        else if (together && p.inner == 3) by_pixels<3>(place);
        else if (together && p.inner == 4) by_pixels<4>(place);
        else
            for (int64_t c = 0; c < p.inner; c++)
                for (int64_t r = 0; r < row_count; r++) {
                    const S *from = row(r) + c * p.channel;
                    T *made = to + r * p.window_line + c;
                    for (int64_t x = 0; x < count; x++) made[x * p.inner] = T(from[place(x)]);
                }
    }
    template <int C, class Place> void by_pixels(Place place) const {
        for (int64_t r = 0; r < row_count; r++) {
            const S *from = row(r);
            T *made = to + r * p.window_line;
            for (int64_t x = 0; x < count; x++)
                for (int c = 0; c < C; c++) made[x * C + c] = T(from[place(x) + c]);
        }
    }
    template <class Place> void by_columns(Place place, int64_t c) const {
        if constexpr (sizeof(S) == sizeof(T) && std::is_integral<S>::value)
            if (p.stride == 1 && p.inner == 1 && count >= BLOCK<S> &&
                rows[row_count - 1] - rows[0] == row_count - 1)
                return by_blocks(place);
        for (int64_t r = 0; r < row_count; r += TOGETHER) {
            const int64_t end = least(r + TOGETHER, row_count);
            for (int64_t x = 0; x < count; x++) {
                const S *from = plane + c * p.channel + place(x);
                T *made = to + x * p.inner + c;
                for (int64_t n = r; n < end; n++)
                    made[n * p.window_line] = T(from[rows[n] * p.stride]);
            }
        }
    }
    // Adjacent rows of a transposed image, whose columns are adjacent numbers: some columns at a
    // time, which are pages of memory, and down all of their rows.
    template <class Place> void by_blocks(Place place) const {
        constexpr int B = BLOCK<S>;
        for (int64_t x = 0; x < count; x += B) {
            const int64_t first = least(x, count - B);  // the last block overlaps the one before it
            const S *column[B];
            for (int k = 0; k < B; k++) column[k] = plane + place(first + k) + rows[0];
            int64_t r = 0;
            for (; r + B <= row_count; r += B)
                turn_block<S, B>([&](int k) { return column[k] + r; },
                                 [&](int n) { return to + (r + n) * p.window_line + first; });
            for (; r < row_count; r++)
                for (int k = 0; k < B; k++) to[r * p.window_line + first + k] = column[k][r];
        }
    }
    const S *row(int64_t r) const { return plane + rows[r] * p.stride; }
};

Kernel kernel_of(const ResizeCall &p) {
    switch (p.kernel) {
        case 0: return choose_resize(p);
        case 1: return choose_resize_linear(p);
        case 2: return choose_resize_cells(p);
        default: return choose_resize_torch(p);
    }
}

// S: the image's numbers; T: the kernel's, or unsigned integers of their size.
template <class S, class T> void in_windows(const Call &call, int64_t begin, int64_t end) {
    const ResizeCall &p = as<ResizeCall>(call);
    const int64_t bands = (p.out_height + p.band - 1) / p.band;
    BorrowedRow<T> memory(p.window);
    if (!memory) return;
    const Kernel kernel = kernel_of(p);
    ResizeCall q = p;
    q.image = int64_t(memory.numbers), q.stride = p.window_line;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t plane = unit / bands, band = unit % bands;
        const int32_t *first = at<int32_t>(p.window_starts) + band;
        const int32_t *rows = at<int32_t>(p.window_rows) + first[0];
        const S *image = at<S>(p.image) + at<int64_t>(p.starts)[plane];
        if (p.bands && !p.down_first)  // the rows of two bands overlap in one list
            q.read = p.slots - at<int32_t>(p.bands)[2 * band] * int64_t(sizeof(int32_t));
        else q.y_pixel = p.slots;
        for (int64_t n = 0; n < most<int64_t>(p.tile_count, 1); n++) {
            int64_t source = 0, source_end = p.width;
            if (p.tile_count) {
                const Columns &columns = at<Columns>(p.tiles)[n];
                source = columns.source, source_end = columns.source_end;
                q.tiles = int64_t(&columns), q.tile_count = 1;
            }
            const int64_t count = source_end - source, row_count = first[1] - first[0];
            Gather<S, T>{p, image, rows, row_count, source, count, memory.numbers}.run();
            int64_t start = -source * p.inner;
            start -= band * p.cell_height * p.window_line;  // 0 unless means of cells
            q.starts = int64_t(&start) - plane * int64_t(sizeof start);
            kernel(q, unit, unit + 1);
        }
    }
}

}  // namespace

Kernel choose_resize_windows(const Call &call) {
    const ResizeCall &p = as<ResizeCall>(call);
    if (p.halves == FLOAT16) return in_windows<Half, float>;
    if (p.halves == BFLOAT16) return in_windows<BFloat, float>;
    switch (p.type) {
        case UINT8: return in_windows<uint8_t, uint8_t>;
        case INT16:
        case UINT16: return in_windows<uint16_t, uint16_t>;
        case FLOAT32: return in_windows<uint32_t, uint32_t>;
        default: return in_windows<uint64_t, uint64_t>;
    }
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
