// The source positions of a piece of a row in OpenCV's arithmetics: the pixel to which taps are
// relative, and the fractions. They follow `arithmetic/opencv4_positions.py` (`fixed`) and
// `opencv5.py`, operation by operation.
//
// Fixed-point positions are multiples of 1/32 pixel with a 16-bit integer part. The others are
// float32.
#pragma once
#include "opencv/opencv_arithmetic.h"
#include "shared/rules.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int ROW = 64;  // pixels that are processed together: their data stays in the cache,
                         // and a bit for each of them fills a word
constexpr int32_t NOWHERE = INT32_MIN;  // the column of a pixel that shows only the border's value
constexpr float FAR = 2147483648.0f;    // 2^31: positions from here on are not sampled
constexpr int32_t COLUMNS = 16;         // OpenCV 5 fuses products of this many columns
constexpr int32_t BLOCK = 8;            // the block size of its bicubic

struct Places {
    alignas(64) int32_t column[ROW], row[ROW];
    alignas(64) float tx[ROW], ty[ROW];
};

// -- numbers --

// Rounded half to even; INT_MIN for NaN and out of range, as x86 converts.
INLINE I to_int(W v) {
    constexpr double big = 6755399441055744.0;  // 1.5 * 2^52
    W found = (v + big) - big;
    auto fits = (found >= -2147483648.0) & (found <= 2147483647.0);
    return convert<I>(fits ? found : splat<W>(-2147483648.0));
}

INLINE I saturate16(I v) { return larger(smaller(v, splat<I>(INT16_MAX)), splat<I>(INT16_MIN)); }
INLINE I mask(Vec<int64_t, L> lanes) { return convert<I>(lanes); }

// -- maps --

// The output's columns x .. x + L - 1.
INLINE I columns_from(int64_t x) { return count_up<I>() + int32_t(x); }

struct EvenOf {
    static constexpr int at(int k) { return 2 * k; }
};
struct OddOf {
    static constexpr int at(int k) { return 2 * k + 1; }
};

// Numbers first .. first + 2 L of an array with `left` remaining pairs; 0 behind them.
template <class T> INLINE void load_pairs(const T *from, int64_t left, Vec<T, L> &x, Vec<T, L> &y) {
    alignas(64) T last[2 * L];
    if (left < L) {
        memset(last, 0, sizeof last);
        memcpy(last, from, size_t(left) * 2 * sizeof(T));
        from = last;
    }
    auto a = load<Vec<T, L>>(from), b = load<Vec<T, L>>(from + L);
    x = pick<L, EvenOf>(a, b), y = pick<L, OddOf>(a, b);
}

// Numbers of an array with `left` remaining ones; 0 behind them.
template <class T> INLINE Vec<T, L> load_left(const T *from, int64_t left) {
    Vec<T, L> found{};
    memcpy(&found, from, left < L ? size_t(left) * sizeof(T) : sizeof found);
    return found;
}

// The points of output pixels x .. x + L - 1 in row y, `left` of them, from cv2.convertMaps's maps:
// in 1/32 pixel.
INLINE void load_steps(const OpenCVCall &p, int64_t start, int64_t x, int64_t y, int64_t left, I &u,
                       I &v) {
    const int64_t first = start + 2 * (y * p.out_width + x);
    Vec<int16_t, L> a, b;
    load_pairs(at<const int16_t>(p.mapping) + first, left, a, b);
    u = convert<I>(a) * 32, v = convert<I>(b) * 32;
    if (p.points == PIXELS) return;
    const I parts = convert<I>(load_left(at<const uint16_t>(p.second) + first / 2, left));
    u += parts & 31, v += (parts >> 5) & 31;
}

// The points of output pixels x .. x + L - 1 in row y, `left` of them.
INLINE void load_points(const OpenCVCall &p, int64_t start, int64_t x, int64_t y, int64_t left,
                        F &u, F &v) {
    const int64_t first = start + 2 * (y * p.out_width + x);
    if (p.points == SINGLES) return load_pairs(at<const float>(p.mapping) + first, left, u, v);
    if (p.points == PLANES_OF_SINGLES) {
        u = load_left(at<const float>(p.mapping) + first / 2, left);
        v = load_left(at<const float>(p.second) + first / 2, left);
        return;
    }
    if (p.points != DOUBLES) {
        I i, j;
        load_steps(p, start, x, y, left, i, j);
        u = convert<F>(i) * (1 / 32.0f), v = convert<F>(j) * (1 / 32.0f);
        return;
    }
    Vec<double, L> a, b;
    load_pairs(at<const double>(p.mapping) + first, left, a, b);
    u = convert<F>(a), v = convert<F>(b);
}

// A matrix row applied to pixels (x, y) in float32: fused, in the order of OpenCV's vector loop or
// tail.
INLINE F line5(const double *m, F x, float y, bool head) {
    F a = splat<F>(float(m[0])), down = splat<F>(y * float(m[1]));
    float c = float(m[2]);
    return head ? fused(a, x, down + c) : fused(a, x, down) + c;
}

// The same for bicubic, in float32 or, for a perspective, float64.
INLINE F line_cubic(const double *m, F x, float y) {
    return x * float(m[0]) + (y * float(m[1]) + float(m[2]));
}
INLINE W wide_cubic(const double *m, F x, float y) {
    return convert<W>(x) * double(float(m[0])) + double(y * float(m[1]) + float(m[2]));
}

// The columns of a block: OpenCV splits rows into blocks, at whose ends vector loops end.
inline int64_t block_of(const OpenCVCall &p) {
    int64_t h = p.out_height, block = 16384 / least<int64_t>(128, h);
    if (p.kind == AFFINE) block = 4096 / least<int64_t>(32, h);
    if (p.kind == PERSPECTIVE) block = 1024 / least<int64_t>(16, h);
    return least(block, p.out_width);
}

// -- fixed point --

// A row of an affine matrix in 1/1024 pixel, in an int32 that may overflow; and whether it is
// valid.
INLINE I line4(const double *m, W x, double y, int32_t half, I &near) {
    using U = Vec<uint32_t, L>;
    W across = m[0] * x, down = splat<W>(m[1] * y + m[2]);
    W place = magnitude(across + down);
    near &= mask(place < double(FAR));
    return (I)((U)to_int(across * 1024.0) + (U)to_int(down * 1024.0) + uint32_t(half));
}

// A row of a perspective: the first column of the block is added first.
INLINE W wide4(const double *m, W block_start, W within, double y) {
    return ((m[0] * block_start + m[1] * y) + m[2]) + m[0] * within;
}

// Whole pixels and 1/32 parts of nearest's points: see `Parts`.
INLINE I round_parts(int64_t parts, I v) {
    I upper = (v & 31) >= 16;
    I up = parts == UP_FROM_HALF ? upper : ~upper;
    I found = (v >> 5) - up;
    return found << 16 >> 16;  // as in an int16 that overflowed
}

// Positions in 1/32 pixel (for nearest, in pixels), and whether they are valid.
template <int KIND> INLINE void place4(const OpenCVCall &p, const double *m, int64_t start,
                                       int64_t x, int64_t y, int64_t left, I &u, I &v, I &near) {
    const bool nearest = p.taps == 1;
    const double unit = nearest ? 1.0 : 32.0, limit = double(FAR) * unit;
    W wide_u, wide_v;
    near = ~I{};
    if (KIND == AFFINE) {
        W column = convert<W>(columns_from(x));
        int32_t half = nearest ? 512 : 16, shift = nearest ? 10 : 5;
        u = line4(m, column, double(y), half, near) >> shift;
        v = line4(m + 3, column, double(y), half, near) >> shift;
        return;
    }
    if (KIND == POINTS) {
        if (p.points == PIXELS_AND_PARTS || p.points == PIXELS) {
            load_steps(p, start, x, y, left, u, v);
            if (!nearest) return;
            if (p.points == PIXELS_AND_PARTS)
                u = round_parts(p.parts, u), v = round_parts(p.parts, v);
            else u >>= 5, v >>= 5;
            return;
        }
        F a, b;
        load_points(p, start, x, y, left, a, b);
        near = (magnitude(a) < FAR) & (magnitude(b) < FAR);
        if (nearest && p.parts != AS_FLOATS) {
            u = round_parts(p.parts, to_int(convert<W>(a * 32.0f)));
            v = round_parts(p.parts, to_int(convert<W>(b * 32.0f)));
            return;
        }
        u = to_int(convert<W>(a * float(unit))), v = to_int(convert<W>(b * float(unit)));
        return;
    }
    const int64_t block = block_of(p);
    W column = convert<W>(columns_from(x)), first = column / double(block);
    first = convert<W>(convert<I>(first)) * double(block);
    W within = column - first;
    W w = wide4(m + 6, first, within, double(y));
    W scale = w != 0.0 ? unit / w : W{};
    wide_u = wide4(m, first, within, double(y)) * scale;
    wide_v = wide4(m + 3, first, within, double(y)) * scale;
    near = mask((magnitude(wide_u) < limit) & (magnitude(wide_v) < limit));
    W low = splat<W>(-2147483648.0), high = splat<W>(2147483647.0);
    u = to_int(larger(smaller(wide_u, high), low)), v = to_int(larger(smaller(wide_v, high), low));
}

// -- float32 --

// Positions of nearest and bilinear; head: see `line5`.
template <int KIND>
INLINE void place5(const OpenCVCall &p, const double *m, int64_t start, int64_t x, int64_t y,
                   int64_t left, bool head, F &u, F &v) {
    if (KIND == POINTS) return load_points(p, start, x, y, left, u, v);
    F column = convert<F>(columns_from(x));
    u = line5(m, column, float(y), head), v = line5(m + 3, column, float(y), head);
    if (KIND == AFFINE) return;
    F w = line5(m + 6, column, float(y), head);
    u = u / w, v = v / w;
}

// The positions of bicubic.
template <int KIND> INLINE void place_cubic(const OpenCVCall &p, const double *m, int64_t start,
                                            int64_t x, int64_t y, int64_t left, F &u, F &v) {
    if (KIND == POINTS) return load_points(p, start, x, y, left, u, v);
    F column = convert<F>(columns_from(x));
    if (KIND == AFFINE) {
        u = line_cubic(m, column, float(y)), v = line_cubic(m + 3, column, float(y));
        return;
    }
    W w = wide_cubic(m + 6, column, float(y));
    u = convert<F>(wide_cubic(m, column, float(y)) / w);
    v = convert<F>(wide_cubic(m + 3, column, float(y)) / w);
}

// Bicubic's positions are clamped to one image length before and behind the image.
INLINE F held(F v, int64_t length) {
    float side = float(most<int64_t>(length, 16));
    return smaller(larger(v, splat<F>(-side)), splat<F>(2 * side));
}

// The pixel at or below a position, and the fraction.
INLINE I split(F v, F &fraction) {
    I below = convert<I>(floor_of(v));
    fraction = v - convert<F>(below);
    return below;
}

// -- a piece --

// Whether an item's matrix is finite.
inline bool is_finite(const OpenCVCall &p, int64_t start) {
    bool good = true;
    const double *m = at<const double>(p.mapping) + start;
    for (int64_t k = 0; k < 3 * p.kind; k++) good &= m[k] - m[k] == 0;
    return good;
}

enum Path { IN_FIXED_POINT, IN_FLOATS, OF_BICUBIC };

// See `place`. There is a loop for each kind and path; otherwise each call would prepare all of
// them.
template <int KIND, Path PATH> INLINE void place_by(const OpenCVCall &p, int64_t start, bool finite,
                                                    int64_t x0, int64_t y, int64_t count,
                                                    Places &to) {
    const double *matrix = at<const double>(p.mapping) + start;
    const bool nearest = p.taps == 1;
    const int64_t tail = p.out_width / COLUMNS * COLUMNS;
    double m[9];  // not aliased by stores, so values derived from it are computed once
    for (int k = 0; k < 9; k++) m[k] = k < 3 * KIND ? matrix[k] : 0;
    for (int64_t c = 0; c < count; c += L) {
        I i, j, near;
        F tx{}, ty{};
        if (PATH == IN_FIXED_POINT) {
            place4<KIND>(p, m, start, x0 + c, y, count - c, i, j, near);
            if (!nearest) {
                tx = convert<F>(i & 31) * (1 / 32.0f), ty = convert<F>(j & 31) * (1 / 32.0f);
                i >>= 5, j >>= 5;
            }
            i = saturate16(i), j = saturate16(j);
        } else {
            F u, v;
            if (PATH == OF_BICUBIC) place_cubic<KIND>(p, m, start, x0 + c, y, count - c, u, v);
            else place5<KIND>(p, m, start, x0 + c, y, count - c, x0 + c < tail, u, v);
            near = (magnitude(u) < FAR) & (magnitude(v) < FAR);
            u = near ? u : F{}, v = near ? v : F{};
            if (PATH == OF_BICUBIC) u = held(u, p.width), v = held(v, p.height);
            if (nearest) i = nearest_int(u), j = nearest_int(v);
            else i = split(u, tx), j = split(v, ty);
        }
        if (!finite) near = I{};
        store(to.column + c, near ? i : splat<I>(NOWHERE));
        store(to.row + c, near ? j : I{});
        if (!nearest) store(to.tx + c, tx), store(to.ty + c, ty);
    }
}

template <Path PATH> void place_on(const OpenCVCall &p, int64_t start, bool finite, int64_t x0,
                                   int64_t y, int64_t count, Places &to) {
    if (p.kind == AFFINE) place_by<AFFINE, PATH>(p, start, finite, x0, y, count, to);
    else if (p.kind == POINTS) place_by<POINTS, PATH>(p, start, finite, x0, y, count, to);
    else place_by<PERSPECTIVE, PATH>(p, start, finite, x0, y, count, to);
}

// Fill the places of `count` pixels from (x0, y) on; start: that of the item's matrix or points.
inline void place(const OpenCVCall &p, int64_t start, bool finite, int64_t x0, int64_t y,
                  int64_t count, Places &to) {
    if (p.fixed) place_on<IN_FIXED_POINT>(p, start, finite, x0, y, count, to);
    else if (p.taps == 4) place_on<OF_BICUBIC>(p, start, finite, x0, y, count, to);
    else place_on<IN_FLOATS>(p, start, finite, x0, y, count, to);
}

// Whether no tap of a bicubic pixel is near the image.
INLINE bool is_far(const OpenCVCall &p, int32_t i, int32_t j) {
    return i < -3 || i > p.width || j < -3 || j > p.height;
}

// OpenCV 5's bicubic shows only the border's value for pixels far outside. Its vector code tests
// whole blocks under a constant border; a row's last block ends with the row.
inline void leave_far(const OpenCVCall &p, int64_t start, bool finite, int64_t x0, int64_t y,
                      int64_t count, Places &to) {
    if (!misses(p.border)) return;
    if (!(p.vector && p.border == CONSTANT)) {
        for (int64_t c = 0; c < count; c++)
            if (is_far(p, to.column[c], to.row[c])) to.column[c] = NOWHERE;
        return;
    }
    // a pixel without a position is sampled at 0, and its value discarded
    auto far_block = [&](const Places &at_, int64_t c) {
        for (int64_t n = c; n < c + BLOCK; n++) {
            bool none = at_.column[n] == NOWHERE;
            if (!is_far(p, none ? 0 : at_.column[n], none ? 0 : at_.row[n])) return false;
        }
        return true;
    };
    const int64_t w = p.out_width, last = w % BLOCK ? w - BLOCK : w;
    if (w < BLOCK) return;
    bool last_far = false;
    if (x0 + count > last) {
        Places end;
        place(p, start, finite, last, y, BLOCK, end);
        last_far = far_block(end, 0);
    }
    for (int64_t c = 0; c < count && x0 + c < last; c += BLOCK)
        if (x0 + c + BLOCK <= w && far_block(to, c))
            for (int64_t n = c; n < least(c + BLOCK, last - x0); n++) to.column[n] = NOWHERE;
    for (int64_t c = most<int64_t>(last - x0, 0); last_far && c < count; c++)
        to.column[c] = NOWHERE;
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
