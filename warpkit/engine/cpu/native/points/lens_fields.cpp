// Fields of points: the source positions of an undistorted image's pixels, in float64, and their
// gradients with respect to the camera, the coefficients, the sensor's tilt and the rays' matrix.
//
// A pixel has no point, and no gradient, if its ray points backwards or the lens's numbers are not
// finite (definitions/finite.py): the result is NaN, or in OpenCV's fields the formula's value.
#include "shared/kernels.h"
#include "points/lens_slopes.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr double FARTHEST = 1e20;  // the limit of directions, as in definitions/finite.py

// A register of an item's row: its rays as directions, and which of them are valid.
struct Seen {
    Doubles per;
    Place raw, p;  // unchanged, and with valid numbers for invalid rays
    Mask good;

    INLINE Seen(const LensNumbers &lens, bool sound, bool opencv, int64_t column, int64_t row) {
        Doubles at = count_up<Doubles>() + double(column), y = Doubles{} + double(row);
        Doubles a = row_at(lens.matrix, at, y), b = row_at(lens.matrix + 3, at, y);
        Doubles w = row_at(lens.matrix + 6, at, y);
        per = 1 / w, raw = {a * per, b * per};
        good = (magnitude(raw.x) < FARTHEST) & (magnitude(raw.y) < FARTHEST);
        if (!opencv) good &= w > 0;
        if (!sound) good = Mask{};
        p = {good ? raw.x : Doubles{}, good ? raw.y : Doubles{}};
        per = good ? per : Doubles{} + 1;
    }
};

// Whether a camera's numbers are valid.
bool is_sound(const LensNumbers &lens) {
    const double *numbers = &lens.fx;
    bool sound = lens.fx != 0 && lens.fy != 0;
    for (int i = 0; i < AT_TILT; i++) sound &= numbers[i] - numbers[i] == 0;
    return sound;
}

template <bool FISHEYE> void field(const Call &block, int64_t begin, int64_t end) {
    const LensCall &call = as<LensCall>(block);
    const int64_t n = call.coefficients;
    const Doubles none = Doubles{} + __builtin_nan("");
    for (int64_t unit = begin; unit < end; unit++) {
        const LensNumbers lens = at<LensNumbers>(call.numbers)[unit / call.height];
        const bool sound = is_sound(lens);
        double *to = at<double>(call.out_x) + 2 * unit * call.width;
        for (int64_t column = 0; column < call.width; column += WIDE) {
            Seen seen(lens, sound, call.opencv, column, unit % call.height);
            Place from = call.opencv ? seen.raw : seen.p;
            Place shown = FISHEYE ? fisheye(lens, from) : brown(lens, n, from);
            if (call.opencv) {  // OpenCV fuses its last step
                shown.x = fma_once(Doubles{} + lens.fx, shown.x, Doubles{} + lens.cx);
                shown.y = fma_once(Doubles{} + lens.fy, shown.y, Doubles{} + lens.cy);
            } else {
                shown.x = seen.good ? lens.fx * shown.x + lens.cx : none;
                shown.y = seen.good ? lens.fy * shown.y + lens.cy : none;
            }
            store_places(to + 2 * column, shown, call.width - column);
        }
    }
}

template <bool FISHEYE> void field_backward(const Call &block, int64_t begin, int64_t end) {
    const LensCall &call = as<LensCall>(block);
    const int64_t n = call.coefficients;
    for (int64_t unit = begin; unit < end; unit++) {
        LensNumbers lens = at<LensNumbers>(call.numbers)[unit / call.height];
        const int64_t row = unit % call.height;
        const double *grads = at<double>(call.grad_x) + 2 * unit * call.width;
        const bool sound = is_sound(lens);
        if (!sound) {  // gradients are 0 here, but 0 times NaN would be NaN
            lens = LensNumbers{};
            lens.fx = lens.fy = 1;
        }
        LensSums sums;
        for (int64_t column = 0; column < call.width; column += WIDE) {
            Seen seen(lens, sound, call.opencv, column, row);
            Place grad = load_places(grads + 2 * column, call.width - column);
            grad = {seen.good ? grad.x : Doubles{}, seen.good ? grad.y : Doubles{}};
            Bent shown = bent(lens.k, n, FISHEYE, seen.p);
            Place at_sensor{shown.u, shown.v};
            if (!FISHEYE && n >= 14) at_sensor = turned(lens.tilt, at_sensor);
            sums.add(AT_FX, column, grad.x * at_sensor.x);
            sums.add(AT_FY, column, grad.y * at_sensor.y);
            sums.add(AT_CX, column, grad.x);
            sums.add(AT_CY, column, grad.y);
            grad = {grad.x * lens.fx, grad.y * lens.fy};
            if (!FISHEYE && n >= 14)
                grad = through_tilt(lens.tilt, {shown.u, shown.v}, grad, column, sums);
            add_coefficients(n, FISHEYE, seen.p, shown.radial, grad.x, grad.y,
                             [&](int i, Doubles v) { sums.add(AT_K + i, column, v); });
            Doubles dx = (grad.x * shown.ux + grad.y * shown.vx) * seen.per;
            Doubles dy = (grad.x * shown.uy + grad.y * shown.vy) * seen.per;
            Doubles dw = -(dx * seen.p.x + dy * seen.p.y);
            Doubles at = count_up<Doubles>() + double(column);
            sums.add(AT_MATRIX, column, dx * at), sums.add(AT_MATRIX + 2, column, dx);
            sums.add(AT_MATRIX + 3, column, dy * at), sums.add(AT_MATRIX + 5, column, dy);
            sums.add(AT_MATRIX + 6, column, dw * at), sums.add(AT_MATRIX + 8, column, dw);
        }
        double *to = at<double>(call.sums) + unit * LensSums::NUMBERS;
        sums.write(to);
        for (int i = AT_MATRIX; i < AT_MATRIX + 9; i += 3) to[i + 1] = to[i + 2] * double(row);
    }
}

}  // namespace

Kernel choose_lens_field(const Call &call) {
    return as<LensCall>(call).fisheye ? field<true> : field<false>;
}

Kernel choose_lens_field_backward(const Call &call) {
    return as<LensCall>(call).fisheye ? field_backward<true> : field_backward<false>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
