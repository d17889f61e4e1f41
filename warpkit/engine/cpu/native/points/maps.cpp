// Maps for `remap`, row by row: of lenses, of polar pictures, and conversions between kinds.
//
// Every kernel computes a register of points (x, y), passes them to `write`, which knows the kinds
// of maps, and goes on to the next; a row's last points are written partially.
#include "points/angles.h"
#include "shared/kernels.h"
#include "points/lens.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

using Shorts = Vec<int16_t, WIDE>;
using Ushorts = Vec<uint16_t, WIDE>;

template <class T> INLINE T *row_of(int64_t address, const MapsCall &call, int64_t row, int each) {
    return at<T>(address) + row * call.width * each;
}

// Pixels and 1/32 parts of a fixed map: y's part is in the upper five bits. Pixels outside int16's
// range saturate (`saturates`), or wrap.
INLINE void write_steps(const MapsCall &call, int64_t row, int64_t column, Ints x, Ints y,
                        bool saturates) {
    int64_t n = call.width - column;
    Ints parts = (y & 31) * 32 + (x & 31);
    x >>= 5, y >>= 5;
    if (saturates) {
        constexpr int LEAST = -32768, MOST = 32767;
        x = larger(smaller(x, Ints{} + MOST), Ints{} + LEAST);
        y = larger(smaller(y, Ints{} + MOST), Ints{} + LEAST);
    }
    if (call.to == STEPS) {
        Floats u = convert<Floats>(convert<Shorts>(x)) + convert<Floats>(parts & 31) / 32;
        Floats v = convert<Floats>(convert<Shorts>(y)) + convert<Floats>(parts >> 5) / 32;
        return store_some(row_of<float>(call.out, call, row, 2) + 2 * column, zip(u, v), 2 * n);
    }
    auto pixels = zip(convert<Shorts>(x), convert<Shorts>(y));
    store_some(row_of<int16_t>(call.out, call, row, 2) + 2 * column, pixels, 2 * n);
    if (call.to == FIXED)
        store_some(row_of<uint16_t>(call.out_second, call, row, 1) + column,
                   convert<Ushorts>(parts), n);
}

INLINE void write_floats(const MapsCall &call, int64_t row, int64_t column, Floats x, Floats y) {
    int64_t n = call.width - column;
    if (call.to == PLANES) {
        store_some(row_of<float>(call.out, call, row, 1) + column, x, n);
        store_some(row_of<float>(call.out_second, call, row, 1) + column, y, n);
    } else {
        store_some(row_of<float>(call.out, call, row, 2) + 2 * column, zip(x, y), 2 * n);
    }
}

INLINE void write(const MapsCall &call, int64_t row, int64_t column, Place p,
                  bool saturates = false) {
    if (call.to == PLANES || call.to == POINT_PAIRS)
        write_floats(call, row, column, convert<Floats>(p.x), convert<Floats>(p.y));
    else write_steps(call, row, column, rounded(p.x * 32), rounded(p.y * 32), saturates);
}

INLINE Doubles columns_from(int64_t column) { return count_up<Doubles>() + double(column); }

// The rays of a row's pixels: the matrix times (x, y, 1).
struct Rays {
    Doubles x, y, w;

    INLINE Rays(const double *m, Doubles column, Doubles row)
        : x(row_at(m, column, row)), y(row_at(m + 3, column, row)), w(row_at(m + 6, column, row)) {}
};

void brown_map(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    const LensNumbers lens = *at<LensNumbers>(call.numbers);
    // OpenCV processes 8 columns at a time and saturates their pixels; those of other columns wrap
    const int64_t n = call.coefficients, vectors = call.width / 8 * 8;
    static_assert(8 % WIDE == 0, "a register of columns is all in vectors, or not");
    for (int64_t row = begin; row < end; row++)
        for (int64_t column = 0; column < call.width; column += WIDE) {
            Rays ray(lens.matrix, columns_from(column), Doubles{} + double(row));
            Doubles per = 1 / ray.w;
            Place shown = brown(lens, n, {ray.x * per, ray.y * per});
            // OpenCV fuses its last step: a pixel at source position 0 gets 4e-16
            shown.x = fma_once(Doubles{} + lens.fx, shown.x, Doubles{} + lens.cx);
            shown.y = fma_once(Doubles{} + lens.fy, shown.y, Doubles{} + lens.cy);
            write(call, row, column, shown, column < vectors);
        }
}

void fisheye_map(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    const LensNumbers lens = *at<LensNumbers>(call.numbers);
    const Doubles far = Doubles{} + __builtin_inf();
    for (int64_t row = begin; row < end; row++)
        for (int64_t column = 0; column < call.width; column += WIDE) {
            Rays ray(lens.matrix, columns_from(column), Doubles{} + double(row));
            Doubles per = 1 / ray.w;
            Place shown = fisheye(lens, {ray.x * per, ray.y * per});
            shown.x = lens.fx * shown.x + lens.cx;
            shown.y = lens.fy * shown.y + lens.cy;
            // behind the camera: infinitely far away, on the other side
            Mask ahead = (ray.w > 0) & (shown.x == shown.x) & (shown.y == shown.y);
            shown.x = ahead ? shown.x : ray.x > 0 ? -far : far;
            shown.y = ahead ? shown.y : ray.y > 0 ? -far : far;
            write(call, row, column, shown);
        }
}

// The same points as another kind of map. Float32 points become steps of 1/32 in float32, and
// pixels outside int16's range saturate.
void converted_map(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    for (int64_t row = begin; row < end; row++)
        for (int64_t column = 0; column < call.width; column += WIDE) {
            int64_t n = least<int64_t>(call.width - column, WIDE);
            Floats x{}, y{};
            if (call.from == PLANES) {
                const float *xs = row_of<float>(call.first, call, row, 1) + column;
                const float *ys = row_of<float>(call.second, call, row, 1) + column;
                memcpy(&x, xs, n == WIDE ? sizeof x : size_t(n) * sizeof *xs);
                memcpy(&y, ys, n == WIDE ? sizeof y : size_t(n) * sizeof *ys);
            } else if (call.from == POINT_PAIRS) {
                Vec<float, 2 * WIDE> v{};
                const float *from = row_of<float>(call.first, call, row, 2) + 2 * column;
                memcpy(&v, from, n == WIDE ? sizeof v : size_t(n) * 2 * sizeof *from);
                x = pick<WIDE, Even>(v, v), y = pick<WIDE, Odd>(v, v);
            } else {
                Vec<int16_t, 2 * WIDE> v{};
                Ushorts parts{};
                const int16_t *from = row_of<int16_t>(call.first, call, row, 2) + 2 * column;
                memcpy(&v, from, n == WIDE ? sizeof v : size_t(n) * 2 * sizeof *from);
                if (call.from == FIXED) {
                    const uint16_t *table = row_of<uint16_t>(call.second, call, row, 1) + column;
                    memcpy(&parts, table, n == WIDE ? sizeof parts : size_t(n) * sizeof *table);
                }
                Ints steps = convert<Ints>(parts);
                Floats dx = convert<Floats>(steps & 31), dy = convert<Floats>(steps >> 5 & 31);
                x = convert<Floats>(pick<WIDE, Even>(v, v)) + dx / 32;
                y = convert<Floats>(pick<WIDE, Odd>(v, v)) + dy / 32;
            }
            if (call.to == PLANES || call.to == POINT_PAIRS) {
                write_floats(call, row, column, x, y);
            } else {
                // whole pixels are computed in the same way: 32 times the rounded number
                bool whole = call.to == WHOLE;
                Ints u = rounded(convert<Doubles>(whole ? x : x * 32));
                Ints v = rounded(convert<Doubles>(whole ? y : y * 32));
                if (whole) {
                    constexpr int LEAST = -32768, MOST = 32767;
                    u = larger(smaller(u, Ints{} + MOST), Ints{} + LEAST) * 32;
                    v = larger(smaller(v, Ints{} + MOST), Ints{} + LEAST) * 32;
                }
                write_steps(call, row, column, u, v, true);
            }
        }
}

// The source positions of a polar picture's pixels: a ring per column, a direction per row.
// numbers: the centre, each row's cosine and sine, each column's distance.
void polar_map(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    const double *centre = at<double>(call.numbers), *turn = centre + 2;
    const double *rings = turn + 2 * call.height;
    for (int64_t row = begin; row < end; row++)
        for (int64_t column = 0; column < call.width; column += WIDE) {
            int64_t n = least<int64_t>(call.width - column, WIDE);
            Doubles ring{};
            memcpy(&ring, rings + column, size_t(n) * sizeof *rings);
            Doubles x = ring * turn[2 * row] + centre[0], y = ring * turn[2 * row + 1] + centre[1];
            write(call, row, column, {x, y});
        }
}

// The positions of pixels around a point in a polar picture of `count` rows, which has one more row
// on top. numbers: the centre, and the distance and the angle per pixel of the polar picture.
void map_from_polar(const Call &block, int64_t begin, int64_t end) {
    constexpr int64_t BLOCK = 1024, AT_ONCE = 16;  // as OpenCV processes them
    const MapsCall &call = as<MapsCall>(block);
    const double *numbers = at<double>(call.numbers);
    const float left = float(numbers[0]), top = float(numbers[1]);
    for (int64_t row = begin; row < end; row++)
        for (int64_t column = 0; column < call.width; column += WIDE) {
            bool alone = least(call.width - column / BLOCK * BLOCK, BLOCK) < AT_ONCE;
            Floats x = convert<Floats>(columns_from(column)) - left;
            Floats y = Floats{} + (float(row) - top);
            Doubles square = convert<Doubles>(fma_single(x, x, y * y));
            Doubles length = convert<Doubles>(convert<Floats>(root(square)));
            Doubles angle = convert<Doubles>(angle_of(x, y, alone, false));
            write_floats(call, row, column, convert<Floats>(length / numbers[2]),
                         convert<Floats>(angle / numbers[3]) + 1);
        }
}

}  // namespace

Kernel choose_lens_map(const Call &call) {
    return as<MapsCall>(call).fisheye ? fisheye_map : brown_map;
}

Kernel choose_converted_map(const Call &) { return converted_map; }

Kernel choose_polar_map(const Call &call) {
    return as<MapsCall>(call).count ? map_from_polar : polar_map;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
