// The gradients of a view's points in another camera, a row of pixels at a time: to depths, rays or
// the view's camera, the pose, and the other camera.
#pragma once
#include "depth/depth_pixels.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// Sums of a pose over some rows, apart from the lanes of `SumsByEights`, which are in memory.
struct PoseSums {
    static constexpr int PARTS = DepthSums::EIGHT / WIDE;
    Doubles of[PARTS][12] = {}, row[PARTS][3] = {};  // row: of rays' z, of one flat row

    INLINE void add(int k, const Doubles *parts, Space ray, bool flat) {
        for (int i = 0; i < 3; i++) {
            of[k][4 * i] += parts[i] * ray.x;
            if (flat) {
                row[k][i] += parts[i];
            } else {
                of[k][4 * i + 1] += parts[i] * ray.y;
                of[k][4 * i + 2] += parts[i] * ray.z;
            }
        }
    }
    // After a flat row, with its rays' y.
    INLINE void end_row(double b) {
        for (int k = 0; k < PARTS; k++)
            for (int i = 0; i < 3; i++) {
                of[k][4 * i + 1] += row[k][i] * b, of[k][4 * i + 2] += row[k][i];
                row[k][i] = Doubles{};
            }
    }
    INLINE void add_to(DepthSums &sums) const {
        for (int k = 0; k < PARTS; k++)
            for (int i = 0; i < 12; i++) sums.add(AT_POSE + i, k * WIDE, of[k][i]);
    }
};

// From the gradients of n points, and perhaps of own depths, to those of depths, rays, and sums.
template <class T, int KIND, Lens LENS>
INLINE void back(const DepthCall &call, const DepthNumbers &item, const ViewRow<T> &view,
                 int64_t column, int64_t n, Place g, const double *grad_own, DepthSums &sums,
                 PoseSums &pose, int lanes) {
    const int64_t from = view.place + column;
    Seen<T, KIND> seen(view, column, n);
    Shown<LENS> shown(item, call.coefficients, seen.moved, true);
    const Mask good = seen.good = seen.good & shown.good;
    const Space v = seen.moved;
    g = {kept(good, g.x), kept(good, g.y)};
    if (call.needs_other) {
        sums.add(AT_FX, column, kept(good, g.x * shown.at.x));
        sums.add(AT_FY, column, kept(good, g.y * shown.at.y));
        sums.add(AT_CX, column, g.x), sums.add(AT_CY, column, g.y);
    }
    g = {g.x * item.other.fx, g.y * item.other.fy};
    Space to = shown.back(item, call.coefficients, v, g, column, sums);
    Doubles to_back{}, to_far{};
    if (grad_own) {
        const Mask ahead = seen.ahead() & ~seen.endless;
        Doubles h = kept(ahead, load_first(grad_own + from, least<int64_t>(n, WIDE)));
        const Doubles reach = seen.reach(ahead);
        if constexpr (KIND == DEPTH_INVERSE) {
            to_far = h / reach;
            to.z -= to_far * seen.far / reach;
        } else {
            to_back = h * reach;
            h *= seen.back();
            if constexpr (KIND == DEPTH_Z) to.z += h;
            else {
                h /= reach;
                to = {to.x + h * v.x, to.y + h * v.y, to.z + h * v.z};
            }
        }
    }
    to = {kept(good, to.x), kept(good, to.y), kept(good, to.z)};
    const double *p = view.pose;
    const Doubles parts[3] = {to.x, to.y, to.z};
    const Doubles nearer[3] = {seen.by_near(to.x), seen.by_near(to.y), seen.by_near(to.z)};
    pose.add(lanes, nearer, seen.ray, view.flat);
    for (int i = 0; i < 3; i++) pose.of[lanes][4 * i + 3] += seen.by_far(parts[i]);
    Doubles to_near{};
    if (KIND != DEPTH_INVERSE || seen.divided)
        to_near = to.x * seen.turned.x + to.y * seen.turned.y + to.z * seen.turned.z;
    if (KIND == DEPTH_INVERSE || seen.divided)
        to_far += to.x * p[3] + to.y * p[7] + to.z * p[11];
    Doubles to_depth;
    if constexpr (KIND == DEPTH_INVERSE) {
        to_depth = to_far;
        if (seen.divided) to_depth = chosen(seen.close, -to_near * seen.near * seen.near, to_far);
    } else {
        to_depth = to_near;
        if (seen.divided)
            to_depth = chosen(seen.close, to_near,
                              kept(~seen.endless, to_back) - to_far * seen.far * seen.far);
    }
    to_depth = kept(good, to_depth);
    store_some(at<T>(call.to_depth) + from, convert<Vec<T, WIDE>>(to_depth), n);
    if (!call.needs_own) return;
    const Space back{(to.x * p[0] + to.y * p[4] + to.z * p[8]) * seen.near,
                     (to.x * p[1] + to.y * p[5] + to.z * p[9]) * seen.near,
                     (to.x * p[2] + to.y * p[6] + to.z * p[10]) * seen.near};
    if (!call.pinhole) {
        // (3, height, width) of each item
        double *out = at<double>(call.to_rays) + from + 2 * view.index * view.area;
        store_some(out, back.x, n);
        store_some(out + view.area, back.y, n);
        store_some(out + 2 * view.area, back.z, n);
        return;
    }
    Doubles da = back.x, db = back.y;
    if constexpr (KIND == DEPTH_RAY) {
        const Doubles along =
            back.x * seen.ray.x + back.y * seen.ray.y + back.z * seen.ray.z;
        da = seen.per * (back.x - along * seen.ray.x);
        db = seen.per * (back.y - along * seen.ray.y);
    }
    sums.add(AT_OWN, column, -da * seen.a), sums.add(AT_OWN + 1, column, -db * seen.b);
    sums.add(AT_OWN + 2, column, -da), sums.add(AT_OWN + 3, column, -db);
}

// The same for the n pixels of a row from `column` on, a multiple of eight.
template <class T, int KIND, Lens LENS, class Push>
INLINE void back_row(const DepthCall &call, const DepthNumbers &item, const ViewRow<T> &view,
                     int64_t column, int64_t n, const double *grad_own, DepthSums &sums,
                     PoseSums &pose, Push push) {
    for (int64_t c = 0; c < n; c += DepthSums::EIGHT)
        for (int k = 0; k < PoseSums::PARTS && c + k * WIDE < n; k++) {
            const int64_t at = c + k * WIDE;
            back<T, KIND, LENS>(call, item, view, column + at, n - at, push(at), grad_own, sums,
                                pose, k);
        }
    if (view.flat) pose.end_row(view.b);
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
