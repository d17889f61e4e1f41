// Means over cells of whole pixels, as in cv2.resize by whole numbers: `_cells` in
// engine/arithmetic/opencv_resize.py, bit for bit.
//
// Groups of four pixels of a cell are added first, row by row, exactly for integers; the mean is
// the sum times the pixel's share. Sums of bytes are equal in any order: cells of 2 x 2 are summed
// a register at a time here, and all others in two passes (resize.cpp).
#include "shared/kernels.h"
#include "resize/resize_finish.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// T: the pixels; F: sums of four; W: the type in which groups are added.
template <class T> struct CellTypes {
    using Four = T;
    using Sum = T;
};
template <> struct CellTypes<uint8_t> {
    using Four = int32_t;
    using Sum = float;
};
template <> struct CellTypes<int16_t> {
    using Four = int32_t;
    using Sum = float;
};
template <> struct CellTypes<uint16_t> {
    using Four = int32_t;
    using Sum = float;
};

template <class T, class W> INLINE T mean_of(W total, W share) {
    const W mean = total * share;
    if constexpr (std::is_same<T, W>::value) return mean;
    else return rounded<T>(Vec<float, 4>{mean, mean, mean, mean})[0];
}

// The mean of the cell whose first number is at p, with a pixel's numbers `inner` apart.
template <class T, class W>
INLINE T cell_mean(const T *p, int64_t high, int64_t wide, int64_t line, int64_t inner, W share) {
    using Four = typename CellTypes<T>::Four;
    W total{};
    if (wide % 4 == 0) {  // groups of four do not continue in the next row
        for (int64_t y = 0; y < high; y++, p += line)
            for (int64_t x = 0; x < wide; x += 4) {
                const T *q = p + x * inner;
                total += W(((Four(q[0]) + q[inner]) + q[2 * inner]) + q[3 * inner]);
            }
        return mean_of<T, W>(total, share);
    }
    Four four{};
    int64_t k = 0, all = high * wide, fours = all / 4 * 4;
    for (int64_t y = 0; y < high; y++)
        for (int64_t x = 0; x < wide; x++, k++) {
            const T number = p[y * line + x * inner];
            if (k >= fours) total += W(number);
            else {
                four = k % 4 ? four + Four(number) : Four(number);
                if (k % 4 == 3) total += W(four);
            }
        }
    return mean_of<T, W>(total, share);
}

// A row of cells of 2 x 2; half_up: for integers, ((a + b + c + d) + 2) / 4. For floats the first
// `pairs` numbers add pairs first.
template <class T, class W> void row_by_two(const T *p, int64_t line, int64_t inner, int64_t count,
                                            bool half_up, int64_t pairs, W share, T *out) {
    using Four = typename CellTypes<T>::Four;
    int64_t e = 0;
    for (int64_t x = 0; x < count; x++, p += 2 * inner)
        for (int64_t c = 0; c < inner; c++, e++) {
            const Four a(p[c]), b(p[c + inner]), d(p[c + line]), f(p[c + line + inner]);
            if constexpr (std::is_same<T, W>::value)
                out[e] =
                    e < pairs ? ((a + b) + (d + f)) * W(0.25) : (W{} + (((a + b) + d) + f)) * share;
            else
                out[e] =
                    half_up ? T((a + b + d + f + 2) >> 2) : mean_of<T, W>(W(a + b + d + f), share);
        }
}

// The same for bytes rounded half up, without cells for which a register would read beyond the row:
// returns the number of values made. Every 16 bytes hold as many pairs of pixels as fit.
template <int C> int64_t bytes_by_two(const uint8_t *p, int64_t line, int64_t count, uint8_t *out) {
    constexpr int MADE = 8 / C * C, READ = 2 * MADE, PIECES = REGISTER / 16;
    struct Pairs {  // for each number both pixels' adjacent
        static constexpr int at(int k) {
            const int number = k % 16 / 2, far = k % 2;
            if (number >= MADE) return k;
            return k / 16 * 16 + (number / C * 2 + far) * C + number % C;
        }
    };
    struct Close {
        static constexpr int at(int k) { return k < MADE * PIECES ? k / MADE * 8 + k % MADE : 0; }
    };
    using Bytes = Vec<uint8_t, REGISTER>;
    using Sums = Vec<uint16_t, REGISTER / 2>;
    using Found = Vec<uint8_t, REGISTER / 2>;
    const auto sums = [](const uint8_t *row) {
        const Bytes all =
            joined<PIECES>([&](int n) { return load<Vec<uint8_t, 16>>(row + n * READ); });
        const Sums pairs = (Sums)pick<REGISTER, Pairs>(all, all);
        return (pairs & 255) + (pairs >> 8);
    };
    int64_t e = 0;  // reads and stores extend 16 bytes from the start of the last piece
    for (; 2 * e + READ * (PIECES - 1) + 16 <= 2 * count && e + REGISTER / 2 <= count;
         e += MADE * PIECES) {
        const Sums four = sums(p + 2 * e) + sums(p + 2 * e + line);
        const Found mean = convert<Found>((four + 2) >> 2);
        store(out + e, pick<REGISTER / 2, Close>(mean, mean));
    }
    return e;
}

// Units are rows of the result, of all planes. bits: 2 if integers are rounded half up.
template <class T> void cells(const Call &call, int64_t begin, int64_t end) {
    using W = typename CellTypes<T>::Sum;
    const ResizeCall &p = as<ResizeCall>(call);
    const int64_t line = p.stride, count = p.out_width * p.inner;
    const int64_t wide = p.cell_width, high = p.cell_height, inner = p.inner;
    float part;
    memcpy(&part, &p.share, sizeof part);
    const W share = W(part);
    const bool half_up = p.bits == 2;
    const int64_t pairs = p.at_once ? count / p.at_once * p.at_once : 0;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t plane = unit / p.out_height, y = unit % p.out_height;
        const T *row = p.plane_of<T>(plane) + y * high * line;
        T *out = at<T>(p.out) + unit * count;
        if (wide == 2 && high == 2) {
            if constexpr (sizeof(T) == 1) {
                const int64_t done = inner == 1   ? bytes_by_two<1>(row, line, count, out)
                                     : inner == 3 ? bytes_by_two<3>(row, line, count, out)
                                                  : bytes_by_two<4>(row, line, count, out);
                row_by_two<T, W>(row + 2 * done, line, inner, (count - done) / inner, true, 0,
                                 share, out + done);
                continue;
            }
            if (inner == 1) row_by_two<T, W>(row, line, 1, p.out_width, half_up, pairs, share, out);
            else if (inner == 3)
                row_by_two<T, W>(row, line, 3, p.out_width, half_up, pairs, share, out);
            else row_by_two<T, W>(row, line, inner, p.out_width, half_up, pairs, share, out);
            continue;
        }
        for (int64_t x = 0; x < p.out_width; x++)
            for (int64_t c = 0; c < inner; c++)
                *out++ =
                    cell_mean<T, W>(row + x * wide * inner + c, high, wide, line, inner, share);
    }
}

}  // namespace

Kernel choose_resize_cells(const Call &call) {
    switch (as<ResizeCall>(call).type) {
        case UINT8: return cells<uint8_t>;
        case INT16: return cells<int16_t>;
        case UINT16: return cells<uint16_t>;
        case FLOAT32: return cells<float>;
        default: return cells<double>;
    }
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
