// OpenCV's bilinear for channels-last pixels of 2, 3 or 4 numbers. It computes one row of the
// result after the other, from two rows of sums along x, which are kept while the following rows of
// the result read them.
//
// The two pixels of a sum along x are adjacent in memory, so they are loaded as one piece, and
// nothing is transposed as in resize.cpp, which resizes all other images. A register of pixels is
// summed together, with room for four numbers of each. Only at the ends of a row, a piece is
// assembled from single pixels.
#include "shared/kernels.h"
#include "shared/memory.h"
#include "resize/resize_passes.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int PIECE = 8;  // numbers of a pixel and the next one that are loaded

// Number k of Q pixels with C numbers, where each has room for four.
template <int C, int Q> struct Close {
    static constexpr int at(int k) { return k < C * Q ? k / C * 4 + k % C : 0; }
};

// Sums along x of Q pixels with C numbers T, from the pieces at from[0], from[1], ... weights: one
// per pixel, four times. out: the sums without gaps, and room for four of each pixel.

template <int C> struct ByteSums {  // weights: both of a pixel, as two halves
    using M = int16_t;
    using Weight = int32_t;
    static constexpr int Q = REGISTER / 8;

    // Every 16 bytes hold the pieces of two pixels. One pixel's numbers as 16 bits: for each
    // channel, the near pixel's and the far one's.
    template <int WHICH> struct Pairs {
        static constexpr int at(int k) {
            const int number = k % 16 / 4, far = k % 4 / 2;
            if (k % 2 || number >= C) return REGISTER + k;  // 0
            return k / 16 * 16 + WHICH * 8 + far * C + number;
        }
    };
    struct LowerHalves {
        static constexpr int at(int k) { return 2 * Close<C, Q>::at(k); }
    };
    static INLINE void sum(const uint8_t *const *from, const Weight *weights, M *out) {
        using Bytes = Vec<uint8_t, REGISTER>;
        using Sum = Vec<int32_t, REGISTER / 4>;
        const Bytes all =
            joined<Q>([&](int n) {  // the second half's follow the first's
                return load<Vec<uint8_t, PIECE>>(from[n % 2 * (Q / 2) + n / 2]);
            });
        const Sum first = (Sum)pick<REGISTER, Pairs<0>>(all, Bytes{});
        const Sum second = (Sum)pick<REGISTER, Pairs<1>>(all, Bytes{});
        const Sum low = pair_sums(first, load<Sum>(weights)) >> 4;
        const Sum high = pair_sums(second, load<Sum>(weights + 2 * Q)) >> 4;
        using Halves = Vec<M, REGISTER / 2>;
        store(out, pick<4 * Q, LowerHalves>((Halves)low, (Halves)high));
    }
};

template <class T, int C> struct FloatSums {  // weights: the far pixel's
    using M = std::conditional_t<sizeof(T) == 8, double, float>;
    using Weight = M;
    static constexpr int Q = LANES<M> > 4 ? LANES<M> / 4 : 1;
    using V = Vec<M, 4 * Q>;

    template <int FIRST>
    struct Widened {  // for every piece, numbers FIRST ... FIRST + 3, twice as wide
        static constexpr int at(int k) {
            const int half = T(-1) < T(0) ? 1 : 0;  // a sign is in the upper half
            const int number = FIRST + k % PIECE / 2;
            return k % 2 == half && number < PIECE ? k / PIECE * PIECE + number : PIECE * Q + k;
        }
    };
    template <int FIRST> static INLINE V numbers(const T *const *from) {
        if constexpr (sizeof(T) == 2) {
            using Whole = Vec<int32_t, 4 * Q>;
            const auto all = joined<Q>([&](int n) { return load<Vec<T, PIECE>>(from[n]); });
            const Whole wide = (Whole)pick<PIECE * Q, Widened<FIRST>>(all, decltype(all){});
            return convert<V>(T(-1) < T(0) ? wide >> 16 : wide);
        } else return joined<Q>([&](int n) { return load<Vec<T, 4>>(from[n] + FIRST); });
    }
    static INLINE void sum(const T *const *from, const Weight *weights, M *out) {
        const V near = numbers<0>(from), t = load<V>(weights), step = numbers<C>(from) - near;
        V found;
        if constexpr (sizeof(M) == 8) found = fma_double(step, t, near);
        else found = fma_single(step, t, near);
        store(out, pick<4 * Q, Close<C, Q>>(found, found));
    }
};
template <class T, int C> using SumsOf =
    std::conditional_t<sizeof(T) == 1, ByteSums<C>, FloatSums<T, C>>;

template <class T, int C> struct Rows {
    using S = SumsOf<T, C>;
    using M = typename S::M;
    static constexpr int Q = S::Q;
    const ResizeCall &p;
    const int32_t *pixel;  // per column: near, far
    int64_t first, end;    // columns whose pieces are inside an image row
    M *kept[2];
    int64_t known[2] = {-1, -1};  // the rows of these sums

    Rows(const ResizeCall &call, M *memory)
        : p(call), pixel(at<int32_t>(p.x_pixel)), first(0), end(p.out_width) {
        kept[0] = memory, kept[1] = memory + p.line;
        while (end > 0 && !is_inside(end - 1)) end--;
        while (first < end && !is_inside(first)) first++;
    }
    bool is_inside(int64_t x) const {
        return pixel[2 * x + 1] == pixel[2 * x] + 1 && pixel[2 * x] * C + PIECE <= p.width * C;
    }
    void sum_along(const T *row, M *out) const {
        const auto *weights = at<typename S::Weight>(p.quads);
        T made[Q][PIECE] = {};
        for (int64_t x = 0; x < p.out_width; x += Q, weights += 4 * Q, out += C * Q) {
            const T *from[Q];
            if (x >= first && x + Q <= end)
                for (int n = 0; n < Q; n++) from[n] = row + pixel[2 * (x + n)] * C;
            else
                for (int n = 0; n < Q; n++) {
                    const int64_t column = least(x + n, p.out_width - 1);
                    for (int far = 0; far < 2; far++)
                        memcpy(made[n] + far * C, row + pixel[2 * column + far] * C, C * sizeof(T));
                    from[n] = made[n];
                }
            S::sum(from, weights, out);
        }
    }

    // The sums of rows r[0] and r[1] of the image, in `kept`; image: a plane.
    void find(const T *image, const int32_t *r) {
        if (known[0] != r[0] && known[1] == r[0]) {
            M *line = kept[0];
            kept[0] = kept[1], kept[1] = line, known[1] = known[0], known[0] = r[0];
        }
        for (int k = 0; k < 2; k++)
            if (known[k] != r[k]) {
                sum_along(image + r[k] * p.stride, kept[k]);
                known[k] = r[k];
            }
    }
};

// Units are bands of rows of the result, of all planes.
template <class T, int C> void linear(const Call &call, int64_t begin, int64_t end) {
    const ResizeCall &p = as<ResizeCall>(call);
    const int64_t bands = (p.out_height + p.band - 1) / p.band, count = p.out_width * C;
    BorrowedRow<typename Rows<T, C>::M> memory(p.lines);
    if (!memory) return;
    Rows<T, C> rows(p, memory.numbers);
    const Columns all{0, int32_t(p.out_width), 0, int32_t(p.width)};
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t plane = unit / bands, y0 = unit % bands * p.band;
        const T *image = p.plane_of<T>(plane);
        T *out = at<T>(p.out) + (plane * p.out_height + y0) * count;
        rows.known[0] = rows.known[1] = -1;  // from another plane, or outdated
        for (int64_t y = y0; y < least(y0 + p.band, p.out_height); y++, out += count) {
            const int32_t *pair = at<int32_t>(p.y_pixel) + 2 * y;
            rows.find(image, pair);
            if constexpr (sizeof(T) == 1) linear_row(p, rows.kept[0], rows.kept[1], y, count, out);
            else linear_row_ipp(p, rows.kept[0], rows.kept[1], y, all, image, out);
        }
    }
}

template <class T> Kernel linear_of(int64_t inner) {
    return inner == 2 ? linear<T, 2> : inner == 3 ? linear<T, 3> : linear<T, 4>;
}

}  // namespace

Kernel choose_resize_linear(const Call &call) {
    const ResizeCall &p = as<ResizeCall>(call);
    switch (p.type) {
        case UINT8: return linear_of<uint8_t>(p.inner);
        case INT16: return linear_of<int16_t>(p.inner);
        case UINT16: return linear_of<uint16_t>(p.inner);
        case FLOAT32: return linear_of<float>(p.inner);
        default: return linear_of<double>(p.inner);
    }
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
