// Converts vectors to lengths and angles, and back: cv2.cartToPolar and cv2.polarToCart, bit for
// bit as in engine/arithmetic/opencv_angles.py. A unit is one of OpenCV's blocks, with `channels`
// numbers.
//
// OpenCV processes 16 numbers at a time. It computes fewer than 16 at the end of a block one by
// one, with other operations. It rounds float64 to float32, in pieces of 128 numbers of a block.
#include "points/angles.h"
#include "shared/kernels.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int WIDE = LANES<float>;
constexpr int64_t AT_ONCE = 16, PIECE_OF_DOUBLES = 128;
using Floats = Vec<float, WIDE>;
using Doubles = Vec<double, WIDE>;

INLINE Floats root(Floats v) {
#if defined(__AVX512F__)
    return (Floats)_mm512_maskz_sqrt_ps(0xffff, (__m512)v);  // GCC 12 warns without a mask
#elif defined(__AVX2__)
    return (Floats)_mm256_sqrt_ps((__m256)v);
#elif defined(__x86_64__)
    return (Floats)_mm_sqrt_ps((__m128)v);
#else
    return (Floats)vsqrtq_f32((float32x4_t)v);
#endif
}

INLINE bool any(Vec<int32_t, WIDE> mask) {
    int32_t found = 0;
    for (int k = 0; k < WIDE; k++) found |= mask[k];
    return found;
}

// Loads the first n numbers of a register, of type T, as float32; `write` stores them.
template <class T> INLINE Floats read(const T *p, int64_t n) {
    Vec<T, WIDE> v{};
    if (n >= WIDE) v = load<Vec<T, WIDE>>(p);
    else memcpy(&v, p, size_t(n) * sizeof(T));
    return convert<Floats>(v);
}
template <class T> INLINE void write(T *p, Floats found, int64_t n) {
    auto v = convert<Vec<T, WIDE>>(found);
    if (n >= WIDE) store(p, v);
    else memcpy(p, &v, size_t(n) * sizeof(T));
}

// Calls piece(first, count, alone) for the pieces of blocks begin .. end - 1.
template <class T, class Do>
INLINE void for_pieces(const MapsCall &call, int64_t begin, int64_t end, Do piece) {
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block * call.channels;
        const int64_t last = least(first + call.channels, call.count);
        const int64_t step = sizeof(T) == 8 ? PIECE_OF_DOUBLES : last - first;
        for (int64_t n = first; n < last; n += step) {
            const int64_t count = least(step, last - n);
            piece(n, count, count < AT_ONCE);
        }
    }
}

template <class T> void to_polar(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    for_pieces<T>(call, begin, end, [&](int64_t first, int64_t count, bool alone) {
        const T *xs = at<T>(call.first) + first, *ys = at<T>(call.second) + first;
        T *lengths = at<T>(call.out) + first, *angles = at<T>(call.out_second) + first;
        for (int64_t k = 0; k < count; k += WIDE) {
            const Floats x = read(xs + k, count - k), y = read(ys + k, count - k);
            write(lengths + k, root(fma_single(x, x, y * y)), count - k);
            write(angles + k, angle_of(x, y, alone, call.degrees), count - k);
        }
    });
}

// The vector of one angle, in float64: that of the nearest step in the table, rotated by the rest.
INLINE Vectors<double> by_table(const double *table, float angle, bool degrees) {
    constexpr double TURN = 2 * 3.14159265358979323846, STEP = TURN / 64;
    constexpr double CUBE = -0.166630293345647 * STEP * STEP * STEP;
    constexpr double SQUARE = -0.499818138450326 * STEP * STEP;
    const double turn = double(angle) * (degrees ? 64 / 360.0 : 64 / TURN);
    const double nearest = __builtin_rint(turn), rest = turn - nearest;
    const int64_t step = int64_t(nearest) & 63;
    const double at_sine = table[step], at_cosine = table[(16 - step) & 63];
    const double sine = (CUBE * rest * rest + STEP) * rest, cosine = SQUARE * rest * rest + 1;
    return {at_cosine * cosine - at_sine * sine, at_sine * cosine + at_cosine * sine};
}

// `first` has the lengths, or is null if they are 1; `second` has the angles; `numbers` has the
// table of sines. Angles of at least 2^31 eighths of a turn are not computed: `far` (int64) is then
// set to 1.
template <class T> void from_polar(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    const double *table = at<double>(call.numbers);
    const double to_radians = call.degrees ? 3.14159265358979323846 / 180 : 1.0;
    const float degree = float(3.14159265358979323846 / 180);
    for_pieces<T>(call, begin, end, [&](int64_t first, int64_t count, bool alone) {
        const T *lengths = at<T>(call.first) + first, *angles = at<T>(call.second) + first;
        T *xs = at<T>(call.out) + first, *ys = at<T>(call.out_second) + first;
        for (int64_t k = 0; k < count; k += WIDE) {
            const int64_t n = least<int64_t>(WIDE, count - k);
            const Floats angle = read(angles + k, n);
            const Floats length = call.first ? read(lengths + k, n) : Floats{} + 1;
            int64_t far = 0;
            if (any(magnitude(angle) > 1e9f)) {  // all angles below 2^31 eighths are smaller
                Doubles eighths =
                    magnitude(convert<Doubles>(angle) * to_radians) * 1.27323954473516;
                for (int lane = 0; lane < n; lane++) far |= eighths[lane] >= 2147483648.0;
            }
            if (far) __atomic_store_n(at<int64_t>(call.far), 1, __ATOMIC_RELAXED);
            Vectors<Floats> found = by_eighths(call.degrees ? angle * degree : angle);
            found.x *= length, found.y *= length;
            for (int lane = 0; alone && !far && lane < n; lane++) {
                if (angle[lane] != angle[lane]) continue;
                const auto one = by_table(table, angle[lane], call.degrees);
                found.x[lane] = float(one.x * double(length[lane]));
                found.y[lane] = float(one.y * double(length[lane]));
            }
            const Floats none = angle - angle;  // NaN if the angle is not finite
            found.x = none == none ? found.x : none, found.y = none == none ? found.y : none;
            write(xs + k, found.x, n), write(ys + k, found.y, n);
        }
    });
}

}  // namespace

Kernel choose_to_polar(const Call &call) {
    return as<MapsCall>(call).double_points ? to_polar<double> : to_polar<float>;
}

Kernel choose_from_polar(const Call &call) {
    return as<MapsCall>(call).double_points ? from_polar<double> : from_polar<float>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
