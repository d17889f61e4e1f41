// A rectangle around a subpixel position, in OpenCV's own sums, as in
// engine/arithmetic/opencv_rectangles.py, bit for bit; that file describes the sums.
#include "shared/kernels.h"
#include "shared/rules.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr float SMALLEST = 1e-4f;  // the smallest fraction along x by which `recur` divides

// T, R: the types of image and result. W: the type of sums, int32 if both are bytes.
template <class T, class R> struct Rectangle {
    using W = std::conditional_t<std::is_same_v<R, uint8_t>, int32_t, R>;

    const PictureCall &p;
    const float a = at<const float>(p.fractions)[0], b = at<const float>(p.fractions)[1];
    W four[4], two[2];
    int64_t first, end;  // columns with four weights: they and their neighbours are inside

    explicit Rectangle(const PictureCall &call) : p(call) {
        const float weights[] = {(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b, 1 - b, b};
        for (int k = 0; k < 6; k++) (k < 4 ? four[k] : two[k - 4]) = weight(weights[k]);
        first = clamped(-p.left, 0, p.out_width);
        end = clamped(p.width - 1 - p.left, first, p.out_width);
    }
    static W weight(float value) {
        if constexpr (std::is_same_v<W, int32_t>) return int32_t(__builtin_rintf(65536 * value));
        else return W(value);
    }
    static R finished(W sum) {
        if constexpr (std::is_same_v<W, int32_t>) return R((sum + 32768) >> 16);
        else return sum;
    }

    const T *row(int64_t y) const {
        return at<const T>(p.image) + clamped(y, 0, p.height - 1) * p.width * p.channels;
    }

    // Columns beyond the image: a pixel of each row is repeated.
    void edge(R *to, const T *upper, const T *lower, int64_t begin, int64_t stop) const {
        for (int64_t x = begin; x < stop; x++) {
            const int64_t q = clamped(p.left + x, 0, p.width - 1) * p.channels;
            for (int64_t c = 0; c < p.channels; c++)
                to[x * p.channels + c] =
                    finished(W(upper[q + c]) * two[0] + W(lower[q + c]) * two[1]);
        }
    }

    void make(int64_t y) const {
        const T *upper = row(p.top + y), *lower = row(p.top + y + 1);
        R *to = at<R>(p.out) + y * p.out_width * p.channels;
        edge(to, upper, lower, 0, first), edge(to, upper, lower, end, p.out_width);
        const int64_t c = p.channels, shift = p.left * c;
        const T *__restrict u = upper + shift, *__restrict l = lower + shift;
        R *__restrict out = to;
        const W w0 = four[0], w1 = four[1], w2 = four[2], w3 = four[3];
        for (int64_t k = first * c; k < end * c; k++)
            out[k] = finished(W(u[k]) * w0 + W(u[k + c]) * w1 + W(l[k]) * w2 + W(l[k + c]) * w3);
    }

    // Floats from one channel of bytes, fully inside: the left half of a column's sum is computed
    // from the right half of the previous column's.
    void recur(int64_t y) const {
        const T *u = row(p.top + y) + p.left, *l = row(p.top + y + 1) + p.left;
        R *to = at<R>(p.out) + y * p.out_width;
        const float along = most(a, SMALLEST), upper = along * (1 - b), lower = along * b;
        const double ratio = (1.0 - double(along)) / double(along);
        float left = (1 - along) * ((1 - b) * float(u[0]) + b * float(l[0]));
        for (int64_t x = 0; x < p.out_width; x++) {
            const float right = upper * float(u[x + 1]) + lower * float(l[x + 1]);
            to[x] = R(left + right);
            left = float(double(right) * ratio);
        }
    }
};

template <class T, class R> void rectangle(const Call &call, int64_t begin, int64_t end) {
    const PictureCall &p = as<PictureCall>(call);
    const Rectangle<T, R> made(p);
    const Rows rows(p, begin, end);
    bool recurs = std::is_same_v<T, uint8_t> && std::is_same_v<R, float> && p.channels == 1;
    recurs &=
        made.first == 0 && made.end == p.out_width && p.top >= 0 && p.top + p.out_height < p.height;
    for (int64_t y = rows.first; y < rows.end; y++) recurs ? made.recur(y) : made.make(y);
}

}  // namespace

Kernel choose_rectangle(const Call &call) {
    const PictureCall &p = as<PictureCall>(call);
    if (p.type == FLOAT32) return rectangle<float, float>;
    if (p.type == FLOAT64) return rectangle<double, double>;
    return p.floating ? rectangle<uint8_t, float> : rectangle<uint8_t, uint8_t>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
