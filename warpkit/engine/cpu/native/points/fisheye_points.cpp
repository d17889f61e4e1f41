// Distorts lists of points through a fisheye lens by OpenCV's formula, and undistorts them by
// OpenCV's Newton steps on the angle: the operations of engine/arithmetic/opencv_lenses.py, in the
// same order.
#include "shared/kernels.h"
#include "points/lens.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The C library's tangent.
INLINE Doubles tangent(Doubles v) {
    double found[WIDE];
    for (int k = 0; k < WIDE; k++) found[k] = __builtin_tan(v[k]);
    return load<Doubles>(found);
}

// Maps directions to pixels, and to NaN where they have no pixel. `numbers` is the lens, whose
// `error` holds the skew.
template <class T> void shown(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    const LensNumbers lens = *at<LensNumbers>(call.numbers);
    constexpr double FARTHEST = 1e20;  // as in definitions/finite.py
    const Doubles none = Doubles{} + __builtin_nan("");
    each_place<T>(call, begin, end, [&](Place p) {
        Mask near = (magnitude(p.x) < FARTHEST) & (magnitude(p.y) < FARTHEST);
        Place q = fisheye(lens, {near ? p.x : Doubles{}, near ? p.y : Doubles{}});
        Doubles x = lens.fx * (q.x + lens.error * q.y) + lens.cx, y = lens.fy * q.y + lens.cy;
        return Place{near ? x : none, near ? y : none};
    });
}

// Maps pixels to directions, or to pixels of a view.
template <class T> void found(const Call &block, int64_t begin, int64_t end) {
    const MapsCall &call = as<MapsCall>(block);
    const LensNumbers lens = *at<LensNumbers>(call.numbers);
    const double *k = lens.k;
    constexpr double QUARTER = 1.5707963267948966, NOWHERE = -1e6;
    const Mask all = Mask{} - 1;
    each_place<T>(call, begin, end, [&](Place pixel) {
        Place p{(pixel.x - lens.cx) / lens.fx, (pixel.y - lens.cy) / lens.fy};
        Doubles bent = root(p.x * p.x + p.y * p.y);
        bent = bent > QUARTER ? Doubles{} + QUARTER : bent;  // NaN stays
        Doubles angle = bent;
        Mask done{}, moving = call.ends_by_error ? (Mask)(bent > 1e-8) : all;
        for (int64_t step = 0; step < call.steps && any(moving & ~done); step++) {
            Doubles t2 = angle * angle, t4 = t2 * t2, t6 = t4 * t2, t8 = t4 * t4;
            Doubles a = k[0] * t2, b = k[1] * t4, c = k[2] * t6, d = k[3] * t8;
            Doubles move =
                (angle * (1 + a + b + c + d) - bent) / (1 + 3 * a + 5 * b + 7 * c + 9 * d);
            Mask active = moving & ~done;
            angle = active ? angle - move : angle;
            if (call.ends_by_error) done |= active & (magnitude(move) < lens.error);
        }
        Doubles scale = tangent(angle) / (bent > 0 ? bent : Doubles{} + 1);
        scale = moving ? scale : Doubles{};
        Mask good = (call.ends_by_error ? done | ~moving : all) & ~((bent > 0) & (angle < 0));
        p = {p.x * scale, p.y * scale};
        if (call.projects) {
            Doubles a = row_at(lens.matrix, p.x, p.y), b = row_at(lens.matrix + 3, p.x, p.y);
            Doubles w = row_at(lens.matrix + 6, p.x, p.y);
            Doubles per = 1 / w;
            p = {a * per, b * per};
        }
        Doubles nowhere = Doubles{} + NOWHERE;
        return Place{good ? p.x : nowhere, good ? p.y : nowhere};
    });
}

}  // namespace

Kernel choose_fisheye_shown(const Call &call) {
    return as<MapsCall>(call).double_points ? shown<double> : shown<float>;
}

Kernel choose_fisheye_found(const Call &call) {
    return as<MapsCall>(call).double_points ? found<double> : found<float>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
