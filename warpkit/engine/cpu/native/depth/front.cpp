// Which pixel of an image is in front at each target, and the pixels moved there:
// definitions/front.py.
//
// One thread takes all pixels of an item, and moves them while the keys are in the cache. Its
// targets keep the least key so far: depths as unsigned integers in the same order, and then the
// number of the pixel, so that the first of equal depths stays. Both are one 64-bit number for
// float32.
#include "shared/kernels.h"
#include "points/lens.h"
#include "shared/memory.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

using Keys = Vec<uint64_t, WIDE>;

constexpr int PIECE = 256;  // pixels of a row whose targets are computed together
constexpr uint32_t HOLE = ~uint32_t(0);  // no pixel's number

// The order of floats, -0 beside 0, as unsigned integers. NaN is none.
INLINE Keys order_of(Vec<double, WIDE> depth) {
    const Mask bits = (Mask)(depth + 0.0);
    return (Keys)(bits ^ ((bits >> 63) | INT64_MIN));
}
INLINE Keys order_of(Vec<float, WIDE> depth) {
    const Ints bits = (Ints)(depth + 0.0f);
    return convert<Keys>((Vec<uint32_t, WIDE>)(bits ^ ((bits >> 31) | INT32_MIN)));
}

// The nearest pixel of a target, in order and number; or both in one number.
struct Apart {
    uint64_t order = ~uint64_t(0);
    uint32_t number = HOLE;

    static Keys keys(Keys orders, int64_t) { return orders; }
    INLINE void see(uint64_t other, uint32_t n) {
        const bool nearer = other < order;
        order = nearer ? other : order, number = nearer ? n : number;
    }
    uint32_t shown() const { return number; }
};
struct Packed {
    uint64_t both = ~uint64_t(0);

    static INLINE Keys keys(Keys orders, int64_t first) {
        return orders << 32 | (Keys)(count_up<Mask>() + first);
    }
    INLINE void see(uint64_t key, uint32_t) { both = key < both ? key : both; }
    uint32_t shown() const { return uint32_t(both); }
};

// The targets of a piece of a row, those of pixels that land nowhere behind the last, and their
// keys; first: the number of the first pixel.
template <class Nearest, class F, class T>
INLINE void aim(const FrontCall &call, const F *flow, const T *depth, int64_t row, int64_t column,
                int64_t first, int64_t count, int64_t *targets, uint64_t *keys) {
    const Mask width = convert<Mask>(Ints{} + int32_t(call.to_width));
    const Mask height = Mask{} + call.to_height, nowhere = Mask{} + call.to_height * call.to_width;
    for (int64_t c = 0; c < count; c += WIDE) {
        const int64_t n = least<int64_t>(count - c, WIDE);
        const Place by = load_places(flow + 2 * c, n);
        const Mask x = convert<Mask>(rounded(count_up<Doubles>() + double(column + c) + by.x));
        const Mask y = convert<Mask>(rounded(by.y + double(row)));
        Vec<T, WIDE> near{};
        if (n == WIDE) near = load<Vec<T, WIDE>>(depth + c);
        else memcpy(&near, depth + c, size_t(n) * sizeof(T));
        const Doubles seen = convert<Doubles>(near);
        const Mask lands = (x >= 0) & (x < width) & (y >= 0) & (y < height) & (seen == seen);
        store(targets + c, lands ? y * width + x : nowhere);
        store(keys + c, Nearest::keys(order_of(near), first + c));
    }
}

// Moves the pixels of `count` targets from `start` on. Holes read the first pixel and clear it: a
// branch would be guessed wrong at every third one.
template <class N> void move(const FrontCall &call, int64_t item, int64_t start, int64_t count,
                             const uint32_t *found) {
    const int64_t area = call.to_height * call.to_width, pixel = call.pixel;
    const N *image = at<N>(call.image) + at<int64_t>(call.image_starts)[item];
    N *out = at<N>(call.out) + item * call.channels * area + start;
    int64_t places[PIECE];
    N filled[PIECE];
    for (int64_t c = 0; c < count; c++) {
        const bool hole = found[c] == HOLE;
        filled[c] = N(hole ? 0 : -1), places[c] = hole ? 0 : int64_t(found[c]) * pixel;
    }
    if (call.line != call.width * pixel)  // rows of a larger image
        for (int64_t c = 0; c < count; c++) {
            const uint32_t i = found[c] == HOLE ? 0 : found[c], width = uint32_t(call.width);
            places[c] = i / width * call.line + i % width * pixel;
        }
    for (int64_t k = 0; k < call.channels; k++, image += call.plane, out += area)
        for (int64_t c = 0; c < count; c++) out[c] = N(image[places[c]] & filled[c]);
}

using Move = void (*)(const FrontCall &, int64_t, int64_t, int64_t, const uint32_t *);

template <class F, class T, class Nearest>
void front(const Call &block, int64_t begin, int64_t end) {
    const FrontCall &call = as<FrontCall>(block);
    const Move moves[] = {move<uint8_t>, move<uint16_t>, move<uint32_t>, move<uint64_t>};
    const Move move = moves[logarithm(call.number_bytes)];
    const int64_t area = call.to_height * call.to_width;
    BorrowedRow<Nearest> memory(area + 1);  // the last for pixels that land nowhere
    if (!memory) return;
    Nearest *const nearest = memory.numbers;
    alignas(64) int64_t targets[PIECE];
    alignas(64) uint64_t keys[PIECE];
    for (int64_t item = begin; item < end; item++) {
        const F *flow = at<F>(call.flow) + at<int64_t>(call.flow_starts)[item];
        const T *depth = at<T>(call.depth) + at<int64_t>(call.depth_starts)[item];
        for (int64_t i = 0; i <= area; i++) nearest[i] = Nearest{};
        for (int64_t row = 0, i = 0; row < call.height; row++)
            for (int64_t column = 0; column < call.width; column += PIECE) {
                const int64_t n = least<int64_t>(call.width - column, PIECE);
                aim<Nearest>(call, flow + 2 * i, depth + i, row, column, i, n, targets, keys);
                for (int64_t k = 0; k < n; k++, i++) nearest[targets[k]].see(keys[k], uint32_t(i));
            }
        for (int64_t start = 0; start < area; start += PIECE) {
            const int64_t n = least<int64_t>(area - start, PIECE);
            uint32_t *found = at<uint32_t>(call.found) + item * area + start;
            uint8_t *filled = at<uint8_t>(call.filled) + item * area + start;
            for (int64_t c = 0; c < n; c++) {
                found[c] = nearest[start + c].shown();
                filled[c] = found[c] != HOLE;
            }
            move(call, item, start, n, found);
        }
    }
}

// Units are the channels of all items. A pixel is shown once at most, so nothing is added up.
template <class T> void front_backward(const Call &block, int64_t begin, int64_t end) {
    const FrontCall &call = as<FrontCall>(block);
    const int64_t area = call.height * call.width, count = call.to_height * call.to_width;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t item = unit / call.channels;
        const uint32_t *found = at<uint32_t>(call.found) + item * count;
        const T *grad = at<T>(call.grad) + unit * count;
        T *out = at<T>(call.out) + unit * area;
        memset(out, 0, size_t(area) * sizeof(T));
        for (int64_t i = 0; i < count; i++)
            if (found[i] != HOLE) out[found[i]] = grad[i];
    }
}

template <class F> Kernel of_depth(const FrontCall &call) {
    return call.wide_depth ? front<F, double, Apart> : front<F, float, Packed>;
}

}  // namespace

Kernel choose_front(const Call &block) {
    const FrontCall &call = as<FrontCall>(block);
    return call.wide_flow ? of_depth<double>(call) : of_depth<float>(call);
}

Kernel choose_front_backward(const Call &block) {
    switch (as<FrontCall>(block).number_bytes) {
        case 2: return front_backward<uint16_t>;
        case 4: return front_backward<uint32_t>;
        default: return front_backward<uint64_t>;
    }
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
