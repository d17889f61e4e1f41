// OpenCV's pyramids: images halved and doubled with the weights 1 4 6 4 1, as in
// engine/arithmetic/opencv_pyramids.py, bit for bit: along x first, then along y; integers summed
// exactly and rounded once, floats in their own type and in that order of sums.
//
// Each row of the image is summed along x once, into one of a few buffers, and each row of the
// result sums the buffers that it needs. Along x the even and the odd pixels are separated: then
// the taps of adjacent pixels are adjacent, for any number of channels, and everything except this
// separation is plain vector code. The buffers' rows are longer than necessary, so vectors may
// extend beyond their ends, where values are discarded.
#include "shared/kernels.h"
#include "shared/memory.h"
#include "shared/pixels.h"
#include "shared/rules.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The type in which sums along x, and over all taps, are exact: 255 * 256 + 128 fits in 16 bits.
template <class T> struct SumOf { using type = T; };
template <> struct SumOf<uint8_t> { using type = uint16_t; };
template <> struct SumOf<int16_t> { using type = int32_t; };
template <> struct SumOf<uint16_t> { using type = int32_t; };

// BITS: log2 of the weights' total. Integers are rounded to nearest, ties up.
template <class T, int BITS, class V> INLINE auto rounded(V sum) {
    using S = Element<V>;
    if constexpr (std::is_floating_point_v<T>) return sum * S(1.0 / (1 << BITS));
    else return convert<Vec<T, COUNT<V>>>((sum + S(1 << (BITS - 1))) >> BITS);
}

template <class T, class V> INLINE void store_upto(T *to, V v, int64_t left) {
    if (left >= COUNT<V>) store(to, v);
    else memcpy(to, &v, size_t(left) * sizeof(T));
}

// Shared by both directions: rows of pixels, and memory for them.
template <class T> struct Pyramid {
    using S = typename SumOf<T>::type;
    static constexpr int64_t N = LANES<S>;
    using V = Vec<S, N>;
    using Numbers = Vec<T, N>;

    const PictureCall &p;
    const int64_t channels = p.channels, pixel = channels * int64_t(sizeof(T));
    char *memory = nullptr, *next = nullptr;

    explicit Pyramid(const PictureCall &call) : p(call) {}
    Pyramid(const Pyramid &) = delete;
    Pyramid &operator=(const Pyramid &) = delete;
    ~Pyramid() { give_memory(memory); }

    // The size in bytes of a row of numbers U with a pixel before it and room behind it; one more
    // cache line, so rows are not whole pages apart.
    template <class U> static int64_t row_bytes(int64_t pixels, int64_t channels) {
        const int64_t numbers = (pixels + 3) * channels + 2 * REGISTER;
        return (numbers * int64_t(sizeof(U)) + 191) / 64 * 64;
    }
    template <class U> U *take_row(int64_t pixels) {
        U *row = reinterpret_cast<U *>(next) + channels;
        next += row_bytes<U>(pixels, channels);
        return row;
    }

    const T *row(int64_t y) const { return at<const T>(p.image) + y * p.width * channels; }
    T *out_row(int64_t y) const { return at<T>(p.out) + y * p.out_width * channels; }
    V numbers(const T *from) const { return convert<V>(load<Numbers>(from)); }
    void put(T *to, const T *from) const {
        copy_pixel(reinterpret_cast<char *>(to), reinterpret_cast<const char *>(from), pixel);
    }
};

template <class T> struct Halved : Pyramid<T> {
    using Base = Pyramid<T>;
    using typename Base::S, typename Base::V;  // GCC takes what follows these for types, too
    using Base::N, Base::p, Base::channels, Base::next;
    static constexpr int TAPS = 5;
    T *even, *odd;
    S *kept[TAPS];
    int64_t known = -3;  // the last row, counted from -2 on, that is in a buffer

    explicit Halved(const PictureCall &call) : Base(call) {
        const int64_t width = p.out_width;
        const int64_t bytes = 2 * Base::template row_bytes<T>(width, channels) +
                              TAPS * Base::template row_bytes<S>(width, channels);
        next = this->memory = static_cast<char *>(take_memory(size_t(bytes)));
        if (!next) return;
        even = Base::template take_row<T>(width), odd = Base::template take_row<T>(width);
        for (S *&row : kept) row = Base::template take_row<S>(width);
    }

    // Pixels 2 i and 2 i + 1 of a row, for i from -1 to out_width.
    void part_row(const T *row) {
        const int64_t pairs = (p.width - 1) / 2;  // one pixel remains after them
        part(reinterpret_cast<char *>(even), reinterpret_cast<char *>(odd),
             reinterpret_cast<const char *>(row), pairs, this->pixel);
        put_edge(row, -1);
        for (int64_t i = pairs; i <= p.out_width; i++) put_edge(row, i);
    }
    void put_edge(const T *row, int64_t i) {
        this->put(even + i * channels, row + resolve(2 * i, p.width, p.border) * channels);
        this->put(odd + i * channels, row + resolve(2 * i + 1, p.width, p.border) * channels);
    }

    // A row's sums along x.
    void sum_along(const T *row, S *sums) {
        part_row(row);
        const int64_t count = p.out_width * channels;
        for (int64_t k = 0; k < count; k += N) {
            const T *e = even + k, *o = odd + k;
            V middle =
                this->numbers(e) * S(6) + (this->numbers(o - channels) + this->numbers(o)) * S(4);
            store(sums + k, middle + this->numbers(e - channels) + this->numbers(e + channels));
        }
        // an additional column is centred on the last pixel; with two pixels it is beyond it
        if (2 * (p.out_width - 1) < p.width || p.width == 2) return;
        const T *taps[TAPS];
        for (int64_t k = 0; k < TAPS; k++)
            taps[k] = row + resolve(p.width - 3 + k, p.width, p.border) * channels;
        for (int64_t c = 0; c < channels; c++)
            sums[count - channels + c] =
                S(S(S(taps[2][c]) * S(6) + S(S(taps[1][c]) + S(taps[3][c])) * S(4)) +
                  S(taps[0][c])) +
                S(taps[4][c]);
    }

    void make(int64_t y) {
        known = most(known, 2 * y - 3);
        for (int64_t j = known + 1; j <= 2 * y + 2; j++)
            sum_along(this->row(resolve(j, p.height, p.border)), kept[(j + 2) % TAPS]);
        known = 2 * y + 2;
        const S *r[TAPS];
        for (int64_t k = 0; k < TAPS; k++) r[k] = kept[(2 * y + k) % TAPS];
        const int64_t count = p.out_width * channels;
        T *to = this->out_row(y);
        for (int64_t k = 0; k < count; k += N) {
            V sum = load<V>(r[2] + k) * S(6) + (load<V>(r[1] + k) + load<V>(r[3] + k)) * S(4);
            sum = sum + load<V>(r[0] + k) + load<V>(r[4] + k);
            store_upto(to + k, rounded<T, 8>(sum), count - k);
        }
    }
};

template <class T> struct Doubled : Pyramid<T> {
    using Base = Pyramid<T>;
    using typename Base::S, typename Base::V;  // GCC takes what follows these for types, too
    using Base::N, Base::p, Base::channels, Base::next;
    T *padded, *even, *odd;  // a row with a pixel before and two after it; a result row
    S *evens[3], *odds[3];   // sums along x of even and odd columns
    int64_t known[3] = {-1, -1, -1};  // the rows in these buffers

    explicit Doubled(const PictureCall &call) : Base(call) {
        const int64_t width = p.width + 1;
        const int64_t bytes = 3 * Base::template row_bytes<T>(width, channels) +
                              6 * Base::template row_bytes<S>(width, channels);
        next = this->memory = static_cast<char *>(take_memory(size_t(bytes)));
        if (!next) return;
        padded = Base::template take_row<T>(width);
        even = Base::template take_row<T>(width), odd = Base::template take_row<T>(width);
        for (S *&row : evens) row = Base::template take_row<S>(width);
        for (S *&row : odds) row = Base::template take_row<S>(width);
    }

    // The buffer of a row's sums along x: even columns 1 6 1, odd ones 4 4.
    int64_t summed(int64_t y) {
        const int64_t place = y % 3, width = p.width;
        if (known[place] == y) return place;
        known[place] = y;
        const T *row = this->row(y);
        memcpy(padded, row, size_t(width * this->pixel));
        this->put(padded - channels, row + least<int64_t>(1, width - 1) * channels);
        this->put(padded + width * channels, row + (width - 1) * channels);
        this->put(padded + (width + 1) * channels, row + (width - 1) * channels);
        S *e = evens[place], *o = odds[place];
        for (int64_t k = 0; k < (width + 1) * channels; k += N) {
            V here = this->numbers(padded + k), after = this->numbers(padded + k + channels);
            store(e + k, this->numbers(padded + k - channels) + here * S(6) + after);
            store(o + k, (here + after) * S(4));
        }
        return place;
    }

    void make(int64_t y) {
        T *to = this->out_row(y);
        if (y >= 2 * p.height) y -= 2;  // repeats the last even row
        const int64_t middle = y / 2,
                      before = middle ? middle - 1 : least<int64_t>(1, p.height - 1);
        const int64_t after = least(middle + 1, p.height - 1);
        const int64_t here = summed(middle), next_one = summed(after);
        if (y % 2) {
            for (int64_t k = 0; k < (p.width + 1) * channels; k += N) {
                V e = (load<V>(evens[here] + k) + load<V>(evens[next_one] + k)) * S(4);
                V o = (load<V>(odds[here] + k) + load<V>(odds[next_one] + k)) * S(4);
                store(even + k, rounded<T, 6>(e)), store(odd + k, rounded<T, 6>(o));
            }
        } else {
            const int64_t last = summed(before);
            for (int64_t k = 0; k < (p.width + 1) * channels; k += N) {
                V e = load<V>(evens[last] + k) + load<V>(evens[here] + k) * S(6) +
                      load<V>(evens[next_one] + k);
                V o = load<V>(odds[last] + k) + load<V>(odds[here] + k) * S(6) +
                      load<V>(odds[next_one] + k);
                store(even + k, rounded<T, 6>(e)), store(odd + k, rounded<T, 6>(o));
            }
        }
        const int64_t pairs = (p.out_width - 1) / 2;  // one pixel remains after them
        join(reinterpret_cast<char *>(to), reinterpret_cast<const char *>(even),
             reinterpret_cast<const char *>(odd), pairs, this->pixel);
        for (int64_t x = 2 * pairs; x < p.out_width; x++)
            this->put(to + x * channels, (x % 2 ? odd : even) + x / 2 * channels);
    }
};

template <class Made> void pyramid(const Call &call, int64_t begin, int64_t end) {
    const PictureCall &p = as<PictureCall>(call);
    const Rows rows(p, begin, end);
    Made made(p);
    for (int64_t y = rows.first; y < rows.end && made.memory; y++) made.make(y);
}

}  // namespace

Kernel choose_pyramid_down(const Call &call) {
    static const Kernel KERNELS[] = {pyramid<Halved<float>>, pyramid<Halved<double>>,
                                     pyramid<Halved<uint8_t>>, pyramid<Halved<int16_t>>,
                                     pyramid<Halved<uint16_t>>};
    return KERNELS[as<PictureCall>(call).type];
}

Kernel choose_pyramid_up(const Call &call) {
    static const Kernel KERNELS[] = {pyramid<Doubled<float>>, pyramid<Doubled<double>>,
                                     pyramid<Doubled<uint8_t>>, pyramid<Doubled<int16_t>>,
                                     pyramid<Doubled<uint16_t>>};
    return KERNELS[as<PictureCall>(call).type];
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
