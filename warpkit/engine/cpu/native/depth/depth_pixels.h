// A register of a view's pixels: their rays and depths, the points that they show, and these points
// in another camera: definitions/depth.py. Nothing leaves the registers; for a gradient,
// depth_gradient.h computes it again.
#pragma once
#include "depth/depth_rows.h"
#include "points/lens_slopes.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr double FARTHEST = 1e20;  // the limit of directions, as in definitions/finite.py
constexpr double WHOLE = 1e-6;     // as in definitions/depth.py
constexpr double SMALL = 1e-2;     // as in definitions/lens_rays.py
constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52: adding and subtracting it rounds
// Points at depths below this are not divided by them: no number of theirs is large.
constexpr double NEAR = 1e6;

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

// An item's numbers where no store is taken to change them, and one of its rows.
template <class T> struct ViewRow {
    const DepthCall &call;
    const int64_t index, area;  // of the item; all its pixels
    double pose[12], cx, cy, per_fx, per_fy;
    bool pinhole, sound;
    // All numbers are finite and no direction reaches `FARTHEST`: it need not be looked at.
    bool tame;
    // Rays are (a, b, 1), with one b in a row; what the pose makes of (b, 1).
    bool flat;
    double base[3];
    const T *depths;
    const double *rays;  // null for a pinhole
    int64_t place;       // of the row's first pixel in arrays of all items
    double b;            // its directions' y, of a pinhole

    INLINE ViewRow(const DepthCall &call, const DepthNumbers &item, int64_t index)
        : call(call),
          index(index),
          area(call.height * call.width),
          pinhole(call.pinhole),
          sound(item.sound != 0) {
        memcpy(pose, item.pose, sizeof pose);
        cx = item.own[2], cy = item.own[3], per_fx = 1 / item.own[0], per_fy = 1 / item.own[1];
        const double ends[] = {-cx * per_fx, (double(call.width - 1) - cx) * per_fx, -cy * per_fy,
                               (double(call.height - 1) - cy) * per_fy};
        double reach = 1, largest = 0;
        for (double end : ends) reach += __builtin_fabs(end);
        for (double number : pose) largest = most(largest, __builtin_fabs(number));
        tame = pinhole && sound && reach < 1e6 && largest < 1e6;
        flat = tame && call.kind != DEPTH_RAY;
    }

    INLINE void enter(int64_t row) {
        const int64_t start = row * call.width;
        place = index * area + start, b = (double(row) - cy) * per_fy;
        for (int i = 0; i < 3; i++) base[i] = pose[4 * i + 1] * b + pose[4 * i + 2];
        depths = at<T>(call.depth) + at<int64_t>(call.depth_starts)[index] + start;
        rays = nullptr;
        if (!pinhole) rays = at<double>(call.rays) + at<int64_t>(call.ray_starts)[index] + start;
    }
};

// A register of a view's pixels: depths, rays, and points in the other camera's coordinates, those
// beyond `NEAR` times their inverse depth.
template <class T, int KIND> struct Seen {
    Seen() = default;
    Mask good, close, endless;
    bool divided;                         // whether a pixel's depth is: else a factor is 1 in all
    Doubles depth, near, far, a, b, per;  // per: 1 over a ray's length, of a pinhole
    Space ray, turned, moved;

    INLINE Doubles by_near(Doubles v) const {
        return KIND == DEPTH_INVERSE && !divided ? v : v * near;
    }
    INLINE Doubles by_far(Doubles v) const {
        return KIND != DEPTH_INVERSE && !divided ? v : v * far;
    }

    // Pixels from `column` on, of those n are inside the row.
    INLINE Seen(const ViewRow<T> &view, int64_t column, int64_t n) {
        using Numbers = Vec<T, WIDE>;
        Numbers some{};
        if (n >= WIDE) some = load<Numbers>(view.depths + column);
        else memcpy(&some, view.depths + column, size_t(n) * sizeof(T));
        depth = convert<Doubles>(some);
        const Doubles one = Doubles{} + 1, infinite = Doubles{} + __builtin_inf();
        near = far = one;
        if constexpr (KIND == DEPTH_INVERSE) {
            good = (depth >= 0) & (depth < infinite), close = good & (depth > NEAR);
            endless = Mask{};
            depth = chosen(good, depth, one);
            divided = any(close);
            if (divided) near = 1 / chosen(close, depth, one);
            far = chosen(close, one, depth);
        } else {
            good = depth > 0, close = good & (depth < NEAR);
            endless = depth == infinite;
            depth = chosen(good, depth, one);
            near = chosen(close, depth, one);
            const Mask beyond = good & ~close;
            divided = any(beyond);
            if (divided) far = 1 / chosen(beyond, depth, one);
        }
        if (view.pinhole) {
            a = (count_up<Doubles>() + (double(column) - view.cx)) * view.per_fx;
            b = Doubles{} + view.b, per = one;
            if (!view.tame) {
                const Mask found = (magnitude(a) < FARTHEST) & (magnitude(b) < FARTHEST);
                good &= found;
                a = kept(found, a), b = kept(found, b);
            }
            if constexpr (KIND == DEPTH_RAY) per = 1 / root(a * a + b * b + 1);
            ray = {a * per, b * per, per};
        } else {
            Doubles *const parts[] = {&ray.x, &ray.y, &ray.z};
            for (int k = 0; k < 3; k++) {
                *parts[k] = load_first(view.rays + k * view.area + column, least<int64_t>(n, WIDE));
                good &= *parts[k] - *parts[k] == 0;
            }
            ray = {kept(good, ray.x), kept(good, ray.y), chosen(good, ray.z, one)};
            a = b = Doubles{}, per = one;
        }
        const double *p = view.pose;
        if (view.flat) {
            turned = {p[0] * ray.x + view.base[0], p[4] * ray.x + view.base[1],
                      p[8] * ray.x + view.base[2]};
        } else {
            turned = {p[0] * ray.x + p[1] * ray.y + p[2] * ray.z,
                      p[4] * ray.x + p[5] * ray.y + p[6] * ray.z,
                      p[8] * ray.x + p[9] * ray.y + p[10] * ray.z};
        }
        const Doubles shift[] = {one * p[3], one * p[7], one * p[11]};
        moved = {by_near(turned.x) + by_far(shift[0]), by_near(turned.y) + by_far(shift[1]),
                 by_near(turned.z) + by_far(shift[2])};
        if (view.tame) return;
        if (!view.sound) good = Mask{};
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

// Where all taps with weight lie in the image: what a call says about it, where no store can change
// it.
struct Marks {
    const double last_x, last_y, first_tap, last_tap;
    const bool bilinear, nearest;
    uint8_t *const to;

    INLINE explicit Marks(const DepthCall &call)
        : last_x(double(call.image_width - 1)),
          last_y(double(call.image_height - 1)),
          first_tap(double(call.first_tap)),
          last_tap(double(call.last_tap)),
          bilinear(call.last_tap == 1),
          nearest(call.nearest),
          to(at<uint8_t>(call.inside)) {}

    // Along an axis with this last pixel; false for NaN.
    INLINE Mask along(Doubles v, double last) const {
        if (bilinear) return (v >= -WHOLE) & (v <= last + WHOLE);
        const Doubles whole = (v + ROUND) - ROUND, low = floor_of(v);  // ties to even
        if (nearest) return (whole >= 0) & (whole <= last);
        const Mask near = magnitude(v - whole) <= WHOLE;
        return (near & (whole >= 0) & (whole <= last)) |
               (~near & (low + first_tap >= 0) & (low + last_tap <= last));
    }
    INLINE void write(int64_t place, int64_t n, Place p) const {
        const Mask both = along(p.x, last_x) & along(p.y, last_y);
        store_some(to + place, convert<Vec<uint8_t, WIDE>>(both & 1), n);
    }
};

// Where the other camera shows pixels from `column` on; NaN where it does not.
template <Lens LENS, class T, int KIND>
INLINE Place shown_at(const DepthCall &call, const DepthNumbers &item, Seen<T, KIND> &seen) {
    const Shown<LENS> shown(item, call.coefficients, seen.moved, false);
    const Mask good = seen.good = seen.good & shown.good;
    const Doubles none = Doubles{} + __builtin_nan("");
    const Place p{item.other.fx * shown.at.x + item.other.cx,
                  item.other.fy * shown.at.y + item.other.cy};
    return {chosen(good, p.x, none), chosen(good, p.y, none)};
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
