// Resizing: processes a tile of columns in a band of rows at a time, in two passes
// (resize_passes.h).
//
//     along y first   the rows of a band are summed into `lines`, transposed, summed along x,
//                     and transposed back
//     along x first   the rows that a band reads are transposed, summed along x, transposed
//                     back into `lines`, and summed along y
//
// The order affects the last bits. A tile's data stays in the first caches. Tiles and bands follow
// from shapes alone (axes.py), so threads change no bit. The loops of the second order are in
// resize_walk.h.
#include "shared/kernels.h"
#include "resize/resize_passes.h"
#include "resize/resize_walk.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// Whether IPP has sums for this type, with M after the first pass.
template <class S, class M> constexpr bool IS_IPPS =
    std::is_same<S, M>::value &&std::is_floating_point<M>::value;

// T: the pixels; S: the sums; M: the values after the first pass.
template <class T, class S, class M> void down_first(const Call &call, int64_t begin, int64_t end) {
    const ResizeCall &p = as<ResizeCall>(call);
    constexpr int R = SUMS<S>;
    const int64_t out_line = p.out_width * p.inner;
    const int64_t bands = (p.out_height + R - 1) / R;
    Scratch<M, M, T> scratch(p);
    if (!scratch.memory) return;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t plane = unit / bands, y0 = unit % bands * R;
        const int64_t rows = least<int64_t>(R, p.out_height - y0);
        for (int64_t n = 0; n < p.tile_count; n++) {
            const Columns columns = at<Columns>(p.tiles)[n];
            const int64_t count = (columns.source_end - columns.source) * p.inner;
            const T *from = p.plane_of<T>(plane) + columns.source * p.inner;
            T *to = at<T>(p.out) + (plane * p.out_height + y0) * out_line + columns.first * p.inner;
            const Bits<M> *lines[R];
            Bits<T> *found[R];
            for (int64_t r = 0; r < R; r++) {
                const int64_t row = least(r, rows - 1);
                M *mine = scratch.lines + row * p.line;
                if (r < rows) sum_row<T, S, M>(p, from, p.stride, y0 + r, count, mine);
                lines[r] = reinterpret_cast<Bits<M> *>(mine);
                found[r] = reinterpret_cast<Bits<T> *>(to + row * out_line);
            }
            turn_rows<Bits<M>, R>(lines, count, reinterpret_cast<Bits<M> *>(scratch.turned));
            sum_columns<M, S, T>(p, scratch.turned, columns, scratch.summed);
            turn_back<Bits<T>, R>(reinterpret_cast<Bits<T> *>(scratch.summed),
                                  (columns.end - columns.first) * p.inner, found, rows);
        }
    }
}

// The first pass of `across_first`: a tile's sums along x, in the arithmetic's order.
template <class T, class S, class M>
void sum_across(const ResizeCall &p, const T *turned, const Columns &columns, M *summed) {
    if constexpr (IS_IPPS<S, M>) {
        if (p.finish == IPP_LINEAR) return sum_columns_ipp_linear(p, turned, columns, summed);
        if constexpr (sizeof(M) == 4)
            if (p.finish == IPP_CUBIC) return sum_columns_ipp(p, turned, columns, summed);
    }
    sum_columns<T, S, M>(p, turned, columns, summed);
}

// Its second pass: row y of a tile.
template <class T, class S, class M> void sum_down(const ResizeCall &p, const M *lines, int64_t y,
                                                   const Columns &columns, const T *image, T *out) {
    const int64_t first = columns.first * p.inner, count = columns.end * p.inner - first;
    const int32_t *row = at<int32_t>(p.y_pixel) + 2 * y;  // for two taps
    const auto line_of = [&](int k) { return lines + row[k] * p.line; };
    if constexpr (std::is_same<M, int16_t>::value)
        linear_row(p, line_of(0), line_of(1), y, count, out);
    else {
        if constexpr (std::is_same<M, int32_t>::value)
            if (p.finish == CUBIC) return cubic_row(p, lines, p.line, y, first, count, out);
        if constexpr (IS_IPPS<S, M>) {
            if (p.finish == IPP_LINEAR)
                return linear_row_ipp(p, line_of(0), line_of(1), y, columns, image, out);
            if constexpr (sizeof(M) == 4) {
                if (p.finish == IPP_CUBIC)
                    return cubic_row_ipp(p, lines, p.line, y, columns, image, out);
                if (p.finish == NESTED) return nested_row(p, lines, p.line, y, first, count, out);
            }
        }
        sum_row<M, S, T>(p, lines, p.line, y, count, out);
    }
    (void)image, (void)line_of;
}

template <class T, class S, class M>
void across_first(const Call &call, int64_t begin, int64_t end) {
    walk_across_first<T, M, SUMS<S>>(as<ResizeCall>(call), begin, end, sum_across<T, S, M>,
                                     sum_down<T, S, M>);
}

struct Entry {
    int64_t type, sum, middle;
    Kernel down, across;  // by which pass comes first
};

}  // namespace

// The arithmetics, by their types. Null if none starts with that pass.
Kernel choose_resize(const Call &call) {
    using Word = uint32_t;  // 32-bit sums that wrap
    static const Entry ENTRIES[] = {
        {FLOAT32, FLOAT32, FLOAT32, down_first<float, float, float>,
         across_first<float, float, float>},
        {FLOAT64, FLOAT64, FLOAT64, down_first<double, double, double>,
         across_first<double, double, double>},
        {FLOAT32, FLOAT64, FLOAT64, down_first<float, double, double>, nullptr},
        {FLOAT32, FLOAT64, FLOAT32, down_first<float, double, float>,
         across_first<float, double, float>},
        {UINT8, FLOAT64, FLOAT64, down_first<uint8_t, double, double>, nullptr},
        {INT16, FLOAT64, FLOAT64, down_first<int16_t, double, double>,
         across_first<int16_t, double, double>},
        {UINT16, FLOAT64, FLOAT64, down_first<uint16_t, double, double>,
         across_first<uint16_t, double, double>},
        {UINT8, FLOAT32, FLOAT32, nullptr, across_first<uint8_t, float, float>},
        {INT16, FLOAT32, FLOAT32, nullptr, across_first<int16_t, float, float>},
        {UINT16, FLOAT32, FLOAT32, nullptr, across_first<uint16_t, float, float>},
        {UINT8, INT32, UINT8, down_first<uint8_t, Word, uint8_t>,
         across_first<uint8_t, Word, uint8_t>},
        {UINT8, INT32, INT32, nullptr, across_first<uint8_t, Word, int32_t>},
        {UINT8, INT32, INT16, nullptr, across_first<uint8_t, Word, int16_t>},
    };
    const ResizeCall &p = as<ResizeCall>(call);
    for (const Entry &entry : ENTRIES)
        if (entry.type == p.type && entry.sum == p.sum && entry.middle == p.middle)
            return p.down_first ? entry.down : entry.across;
    return nullptr;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
