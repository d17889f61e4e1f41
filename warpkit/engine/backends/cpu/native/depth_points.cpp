// Points of a view's depths in another camera, and the gradients to depths, rays or the view's
// camera, pose, and the other camera: definitions/depth.py. Rays, lenses and points stay in
// registers; a gradient's pass computes them again.
#include "depth_call.h"
#include "kernels.h"
#include "lens_slopes.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr double FARTHEST = 1e20;  // the limit of directions, as in definitions/finite.py
constexpr double WHOLE = 1e-6;     // as in definitions/depth.py
constexpr double SMALL = 1e-2;     // as in definitions/lens_rays.py

using DepthSums = SumsByEights<int(sizeof(DepthNumbers) / sizeof(double))>;
constexpr int AT_POSE = int(sizeof(LensNumbers) / sizeof(double)), AT_OWN = AT_POSE + 12;

enum Lens { PINHOLE, BROWN, FISHEYE };

struct Space {
    Doubles x, y, z;
};

INLINE Doubles chosen(Mask mask, Doubles a, Doubles b) { return mask ? a : b; }
INLINE Doubles kept(Mask mask, Doubles a) { return mask ? a : Doubles{}; }

INLINE Doubles angle_of(Doubles r, Doubles z) {
    double found[WIDE];
    for (int k = 0; k < WIDE; k++) found[k] = __builtin_atan2(r[k], z[k]);
    return load<Doubles>(found);
}

// A direction in the other lens: its direction on the sensor (before the tilt, for a brown lens),
// and what the gradient needs.
template <Lens LENS> struct Shown {
    Mask good;
    Place at;       // on the sensor
    Place ideal;    // of a pinhole or brown lens, the direction over z
    Doubles per;    // 1 / z
    Bent bent_at;   // of a brown lens
    Doubles factor, slope, along_z, ratio, square;  // of a fisheye

    INLINE Shown(const DepthNumbers &item, int64_t n, Space v, bool slopes) {
        if constexpr (LENS == FISHEYE) {
            fisheye_at(item, v);
            return;
        }
        good = v.z > 0;
        per = 1 / v.z;
        ideal = {v.x * per, v.y * per};
        good &= (magnitude(ideal.x) < FARTHEST) & (magnitude(ideal.y) < FARTHEST);
        per = chosen(good, per, Doubles{} + 1);
        ideal = {kept(good, ideal.x), kept(good, ideal.y)};
        if constexpr (LENS == PINHOLE) at = ideal;
        else {
            good &= ideal.x * ideal.x + ideal.y * ideal.y < item.end;
            for (double part : {1.0, 0.75, 0.5, 0.25})
                good &= bent(item.other.k, n, false, {ideal.x * part, ideal.y * part})
                            .determinant() > 0;
            ideal = {kept(good, ideal.x), kept(good, ideal.y)};
            if (slopes) bent_at = bent(item.other.k, n, false, ideal);
            at = brown(item.other, n, ideal);
        }
    }

    INLINE void fisheye_at(const DepthNumbers &item, Space v) {
        const double *k = item.other.k;
        Doubles r2 = v.x * v.x + v.y * v.y;
        const Mask ahead = v.z > 0, none = (r2 == 0) & ~ahead;
        const Mask small = ahead & (r2 < SMALL * (v.z * v.z));
        Doubles near = chosen(small, v.z, Doubles{} + 1), t = kept(small, r2) / (near * near);
        Doubles series{}, series_slope{};
        for (int i = 8; i >= 0; i--) {
            double term = (i % 2 ? -1.0 : 1.0) / (2 * i + 1);
            series = series * t + term;
            if (i > 0) series_slope = series_slope * t + i * term;
        }
        Doubles r = root(chosen(small | none, Doubles{} + 1, r2));
        Doubles angle = angle_of(r, chosen(small, Doubles{} + 1, v.z));
        ratio = chosen(small, series / near, angle / r);
        square = chosen(small, t * series * series, angle * angle);
        good = ~none & (square < item.end);
        Doubles b = 1 + (((k[3] * square + k[2]) * square + k[1]) * square + k[0]) * square;
        Doubles db = ((4 * k[3] * square + 3 * k[2]) * square + 2 * k[1]) * square + k[0];
        factor = kept(good, ratio * b);
        at = {v.x * factor, v.y * factor};
        // twice the derivative of the factor by x^2 + y^2, and that by z
        Doubles near_slope = series_slope * b +
                             series * db * (series * series + 2 * t * series * series_slope);
        Doubles whole = chosen(small | none, Doubles{} + 1, r2);
        Doubles turn = (b + 2 * square * db) / (r2 + chosen(none, Doubles{} + 1, v.z * v.z));
        Doubles far_slope = (v.z * turn - factor) / whole;
        slope = kept(good, chosen(small, 2 * near_slope / (near * near * near), far_slope));
        along_z = kept(good, -turn);
    }

    // From the gradient on the sensor to that of the direction; adds to the coefficients'.
    INLINE Space back(const DepthNumbers &item, int64_t n, Space v, Place g, int64_t place,
                      DepthSums &sums) const {
        if constexpr (LENS == FISHEYE) {
            Doubles along = g.x * v.x + g.y * v.y, part = along * ratio;
            for (int i = 0; i < 4; i++) sums.add(AT_K + i, place, part = part * square);
            return {g.x * factor + along * slope * v.x, g.y * factor + along * slope * v.y,
                    along * along_z};
        }
        if constexpr (LENS == BROWN) {
            if (n >= 14) g = through_tilt(item.other.tilt, {bent_at.u, bent_at.v}, g, place, sums);
            add_coefficients(n, false, ideal, bent_at.radial, g.x, g.y,
                             [&](int i, Doubles value) { sums.add(AT_K + i, place, value); });
            g = {g.x * bent_at.ux + g.y * bent_at.vx, g.x * bent_at.uy + g.y * bent_at.vy};
        }
        g = {g.x * per, g.y * per};
        return {g.x, g.y, -(g.x * ideal.x + g.y * ideal.y)};
    }
};

// A register of a view's pixels: depths, rays, and points in the other camera's coordinates.
template <class T, int KIND> struct Seen {
    Mask good, close, endless;
    Doubles depth, near, far, a, b, per;  // per: 1 over a ray's length, of a pinhole
    Space ray, turned, moved;

    INLINE Seen(const DepthCall &call, const DepthNumbers &item, const T *depths,
                const double *rays, int64_t column, int64_t row) {
        const int64_t n = least<int64_t>(call.width - column, WIDE);
        using Numbers = Vec<T, WIDE>;
        Numbers some{};
        if (n == WIDE) some = load<Numbers>(depths + column);
        else memcpy(&some, depths + column, size_t(n) * sizeof(T));
        depth = convert<Doubles>(some);
        const Doubles one = Doubles{} + 1, infinite = Doubles{} + __builtin_inf();
        if constexpr (KIND == DEPTH_INVERSE) {
            good = (depth >= 0) & (depth < infinite), close = depth > 1;
            endless = Mask{};
        } else {
            good = depth > 0, close = depth < 1;
            endless = depth == infinite;
        }
        depth = chosen(good, depth, one);
        const Doubles over = 1 / (KIND == DEPTH_INVERSE ? chosen(close, depth, one)
                                                        : chosen(close, one, depth));
        if constexpr (KIND == DEPTH_INVERSE) {
            near = over, far = chosen(close, one, depth);
        } else {
            near = chosen(close & good, depth, one), far = over;
        }
        if (call.pinhole) {
            a = (count_up<Doubles>() + (double(column) - item.own[2])) * (1 / item.own[0]);
            b = Doubles{} + (double(row) - item.own[3]) * (1 / item.own[1]);
            const Mask found = (magnitude(a) < FARTHEST) & (magnitude(b) < FARTHEST);
            good &= found;
            a = kept(found, a), b = kept(found, b), per = one;
            if constexpr (KIND == DEPTH_RAY) per = 1 / root(a * a + b * b + 1);
            ray = {a * per, b * per, per};
        } else {
            Doubles *const parts[] = {&ray.x, &ray.y, &ray.z};
            for (int k = 0; k < 3; k++) {
                *parts[k] = load_first(rays + k * call.height * call.width + column, n);
                good &= *parts[k] - *parts[k] == 0;
            }
            ray = {kept(good, ray.x), kept(good, ray.y), chosen(good, ray.z, one)};
            a = b = Doubles{}, per = one;
        }
        if (item.sound == 0) good = Mask{};
        const double *p = item.pose;
        turned = {p[0] * ray.x + p[1] * ray.y + p[2] * ray.z,
                  p[4] * ray.x + p[5] * ray.y + p[6] * ray.z,
                  p[8] * ray.x + p[9] * ray.y + p[10] * ray.z};
        moved = {turned.x * near + p[3] * far, turned.y * near + p[7] * far,
                 turned.z * near + p[11] * far};
        good &= (magnitude(moved.x) < FARTHEST) & (magnitude(moved.y) < FARTHEST) &
                (magnitude(moved.z) < FARTHEST);
        moved = {kept(good, moved.x), kept(good, moved.y), chosen(good, moved.z, one)};
    }

    INLINE Mask ahead() const {
        if constexpr (KIND != DEPTH_RAY) return good & (moved.z > 0);
        else return good & (square() > 0);
    }
    INLINE Doubles square() const {
        return moved.x * moved.x + moved.y * moved.y + moved.z * moved.z;
    }
    // The distance of `moved`, 1 where the point has none, and what makes it the point's.
    INLINE Doubles reach(Mask mask) const {
        return KIND == DEPTH_RAY ? root(chosen(mask, square(), Doubles{} + 1))
                                 : chosen(mask, moved.z, Doubles{} + 1);
    }
    INLINE Doubles back() const { return chosen(close | endless, Doubles{} + 1, depth); }
};

// Whether all taps with weight lie along an axis of `length` pixels.
INLINE Mask inside(const DepthCall &call, Doubles v, int64_t length) {
    Doubles whole, last = Doubles{} + double(length - 1);
    for (int k = 0; k < WIDE; k++) whole[k] = __builtin_rint(v[k]);
    const Mask near = magnitude(v - whole) <= WHOLE;
    if (call.nearest) return (whole >= 0) & (whole <= last);
    Doubles low;
    for (int k = 0; k < WIDE; k++) low[k] = __builtin_floor(v[k]);
    const Mask on = near & (whole >= 0) & (whole <= last);
    return on | (~near & (low + double(call.first_tap) >= 0) &
                 (low + double(call.last_tap) <= last));
}

template <class T, int KIND, Lens LENS>
void points(const Call &block, int64_t begin, int64_t end) {
    const DepthCall &call = as<DepthCall>(block);
    const Doubles none = Doubles{} + __builtin_nan(""), infinite = Doubles{} + __builtin_inf();
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t index = unit / call.height, row = unit % call.height;
        const DepthNumbers &item = at<DepthNumbers>(call.numbers)[index];
        const T *depths = at<T>(call.depth) + at<int64_t>(call.depth_starts)[index];
        depths += row * call.width;
        const double *rays = nullptr;
        if (!call.pinhole)
            rays = at<double>(call.rays) + at<int64_t>(call.ray_starts)[index] + row * call.width;
        for (int64_t column = 0; column < call.width; column += WIDE) {
            const int64_t n = call.width - column, to = unit * call.width + column;
            Seen<T, KIND> seen(call, item, depths, rays, column, row);
            Shown<LENS> shown(item, call.coefficients, seen.moved, false);
            const Mask good = seen.good = seen.good & shown.good;
            Place p{item.other.fx * shown.at.x + item.other.cx,
                    item.other.fy * shown.at.y + item.other.cy};
            p = {chosen(good, p.x, none), chosen(good, p.y, none)};
            store_places(at<double>(call.points) + 2 * to, p, n);
            if (call.own) {
                const Mask ahead = seen.ahead();
                const Doubles reach = seen.reach(ahead);
                Doubles own = KIND == DEPTH_INVERSE ? seen.far / reach : reach * seen.back();
                own = chosen(seen.endless, infinite, own);
                store_some(at<double>(call.own) + to, chosen(ahead, own, none), n);
            }
            if (call.inside) {
                const Mask both = inside(call, p.x, call.image_width) &
                                  inside(call, p.y, call.image_height);
                store_some(at<uint8_t>(call.inside) + to,
                           convert<Vec<uint8_t, WIDE>>(both & good & 1), n);
            }
        }
    }
}

template <class T, int KIND, Lens LENS>
void points_backward(const Call &block, int64_t begin, int64_t end) {
    const DepthCall &call = as<DepthCall>(block);
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t index = unit / call.height, row = unit % call.height;
        DepthNumbers item = at<DepthNumbers>(call.numbers)[index];
        if (item.sound == 0) {  // gradients are 0 here, but 0 times NaN would be NaN
            item = DepthNumbers{};
            item.other.fx = item.other.fy = item.own[0] = item.own[1] = 1;
        }
        const T *depths = at<T>(call.depth) + at<int64_t>(call.depth_starts)[index];
        depths += row * call.width;
        const double *rays = nullptr;
        if (!call.pinhole)
            rays = at<double>(call.rays) + at<int64_t>(call.ray_starts)[index] + row * call.width;
        DepthSums sums;
        for (int64_t column = 0; column < call.width; column += WIDE) {
            const int64_t n = call.width - column, from = unit * call.width + column;
            Seen<T, KIND> seen(call, item, depths, rays, column, row);
            Shown<LENS> shown(item, call.coefficients, seen.moved, true);
            const Mask good = seen.good = seen.good & shown.good;
            const Space v = seen.moved;
            Place g = load_places(at<double>(call.grad_points) + 2 * from, n);
            g = {kept(good, g.x), kept(good, g.y)};
            sums.add(AT_FX, column, kept(good, g.x * shown.at.x));
            sums.add(AT_FY, column, kept(good, g.y * shown.at.y));
            sums.add(AT_CX, column, g.x), sums.add(AT_CY, column, g.y);
            g = {g.x * item.other.fx, g.y * item.other.fy};
            Space to = shown.back(item, call.coefficients, v, g, column, sums);
            Doubles to_back{}, to_far{};
            if (call.grad_own) {
                const Mask ahead = seen.ahead() & ~seen.endless;
                Doubles h = kept(ahead, load_first(at<double>(call.grad_own) + from,
                                                   least<int64_t>(n, WIDE)));
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
            const double *p = item.pose;
            const Doubles parts[3] = {to.x, to.y, to.z};
            for (int i = 0; i < 3; i++) {
                const Doubles part = parts[i] * seen.near;
                sums.add(AT_POSE + 4 * i, column, part * seen.ray.x);
                sums.add(AT_POSE + 4 * i + 1, column, part * seen.ray.y);
                sums.add(AT_POSE + 4 * i + 2, column, part * seen.ray.z);
                sums.add(AT_POSE + 4 * i + 3, column, parts[i] * seen.far);
            }
            const Doubles to_near =
                to.x * seen.turned.x + to.y * seen.turned.y + to.z * seen.turned.z;
            to_far += to.x * p[3] + to.y * p[7] + to.z * p[11];
            Doubles to_depth;
            if constexpr (KIND == DEPTH_INVERSE) {
                to_depth = chosen(seen.close, -to_near * seen.near * seen.near, to_far);
            } else {
                to_depth = chosen(seen.close, to_near,
                                  kept(~seen.endless, to_back) - to_far * seen.far * seen.far);
            }
            to_depth = kept(good, to_depth);
            store_some(at<T>(call.to_depth) + from, convert<Vec<T, WIDE>>(to_depth), n);
            const Space back{(to.x * p[0] + to.y * p[4] + to.z * p[8]) * seen.near,
                             (to.x * p[1] + to.y * p[5] + to.z * p[9]) * seen.near,
                             (to.x * p[2] + to.y * p[6] + to.z * p[10]) * seen.near};
            if (!call.pinhole) {
                const int64_t plane = call.height * call.width;
                double *out = at<double>(call.to_rays) + 3 * index * plane + row * call.width;
                store_some(out + column, back.x, n);
                store_some(out + plane + column, back.y, n);
                store_some(out + 2 * plane + column, back.z, n);
                continue;
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
        double *to = at<double>(call.sums) + unit * DepthSums::NUMBERS;
        sums.write(to);
        for (int i = 0; i < 4; i++) to[AT_OWN + i] /= item.own[i % 2];
    }
}

template <class T, int KIND> Kernel of_lens(const DepthCall &call, bool backward) {
    if (call.fisheye) return backward ? points_backward<T, KIND, FISHEYE> : points<T, KIND, FISHEYE>;
    if (call.coefficients)
        return backward ? points_backward<T, KIND, BROWN> : points<T, KIND, BROWN>;
    return backward ? points_backward<T, KIND, PINHOLE> : points<T, KIND, PINHOLE>;
}

template <class T> Kernel of_kind(const DepthCall &call, bool backward) {
    if (call.kind == DEPTH_Z) return of_lens<T, DEPTH_Z>(call, backward);
    if (call.kind == DEPTH_RAY) return of_lens<T, DEPTH_RAY>(call, backward);
    return of_lens<T, DEPTH_INVERSE>(call, backward);
}

Kernel chosen_kernel(const Call &block, bool backward) {
    const DepthCall &call = as<DepthCall>(block);
    return call.wide ? of_kind<double>(call, backward) : of_kind<float>(call, backward);
}

}  // namespace

Kernel choose_depth_points(const Call &block) { return chosen_kernel(block, false); }

Kernel choose_depth_points_backward(const Call &block) { return chosen_kernel(block, true); }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
