// Where the sources of a sweep show a row of a view's pixels at a depth, and the way back: with
// the lenses of depth_pixels.h.
#include "matching/sweep_places.h"

#include "depth/depth_pixels.h"

namespace warpkit {
namespace WARPKIT_ISA {

// The gradients of a row in a source.
struct PlaceGradients {
    RowOfThree to_turned;
    DepthSums sums;
};

namespace {

INLINE Doubles none() { return Doubles{} + __builtin_nan(""); }

INLINE Space space_at(RowOfThree row, int64_t column) {
    return {load<Doubles>(row.part(0) + column), load<Doubles>(row.part(1) + column),
            load<Doubles>(row.part(2) + column)};
}
INLINE void store_space(RowOfThree row, int64_t column, Space v) {
    store(row.part(0) + column, v.x);
    store(row.part(1) + column, v.y);
    store(row.part(2) + column, v.z);
}

// The points of a register of pixels in a source; (0, 0, 1) where there is none.
struct Point {
    Space turned, at;
    Doubles near, far;
    Mask good;

    INLINE Point(const Places &places, int64_t c) {
        const double *pose = places.numbers.pose;
        turned = space_at(places.turned, places.column + c);
        near = load<Doubles>(places.near + places.column + c);
        far = load<Doubles>(places.far + places.column + c);
        at = {turned.x * near + pose[3] * far, turned.y * near + pose[7] * far,
              turned.z * near + pose[11] * far};
        good = (magnitude(at.x) < FARTHEST) & (magnitude(at.y) < FARTHEST) &
               (magnitude(at.z) < FARTHEST);
        at = {kept(good, at.x), kept(good, at.y), chosen(good, at.z, Doubles{} + 1)};
    }
};

template <Lens LENS>
void find(const SweepCall &call, const Places &places, double *x, double *y) {
    const LensNumbers &other = places.numbers.other;
    for (int64_t c = 0; c < RUN; c += WIDE) {
        const Point point(places, c);
        const Shown<LENS> shown(places.numbers, call.coefficients, point.at, false);
        const Mask good = point.good & shown.good;
        store(x + c, chosen(good, other.fx * shown.at.x + other.cx, none()));
        store(y + c, chosen(good, other.fy * shown.at.y + other.cy, none()));
    }
}

template <Lens LENS>
void back(const SweepCall &call, const Places &places, const double *gx, const double *gy,
          PlaceGradients &grads, double *to_near, double *to_far) {
    const DepthNumbers &item = places.numbers;
    DepthSums &sums = grads.sums;
    for (int64_t c = 0; c < RUN; c += WIDE) {
        const int64_t column = places.column + c;
        const Point point(places, c);
        const Shown<LENS> shown(item, call.coefficients, point.at, true);
        const Mask good = point.good & shown.good;
        Place g{kept(good, load<Doubles>(gx + c)), kept(good, load<Doubles>(gy + c))};
        if (call.needs_other) {
            sums.add(AT_FX, column, kept(good, g.x * shown.at.x));
            sums.add(AT_FY, column, kept(good, g.y * shown.at.y));
            sums.add(AT_CX, column, g.x), sums.add(AT_CY, column, g.y);
        }
        g = {g.x * item.other.fx, g.y * item.other.fy};
        Space to = shown.back(item, call.coefficients, point.at, g, column, sums);
        to = {kept(good, to.x), kept(good, to.y), kept(good, to.z)};
        const Doubles near = kept(good, point.near), far = kept(good, point.far);
        if (call.needs_pose || call.needs_own) {
            const Space so_far = space_at(grads.to_turned, column);
            store_space(grads.to_turned, column,
                        {so_far.x + to.x * near, so_far.y + to.y * near, so_far.z + to.z * near});
        }
        if (call.needs_pose) {
            sums.add(AT_POSE + 3, column, to.x * far);
            sums.add(AT_POSE + 7, column, to.y * far);
            sums.add(AT_POSE + 11, column, to.z * far);
        }
        if (!call.needs_depths) continue;
        const Space t = point.turned;
        const double *p = item.pose;
        const Doubles along = kept(good, to.x * t.x + to.y * t.y + to.z * t.z);
        store(to_near + c, load<Doubles>(to_near + c) + along);
        store(to_far + c, load<Doubles>(to_far + c) + to.x * p[3] + to.y * p[7] + to.z * p[11]);
    }
}

}  // namespace

void rays_of_row(const SweepCall &call, int64_t item, int64_t y, RowOfThree rays) {
    const DepthNumbers &numbers = at<DepthNumbers>(call.numbers)[item * call.views];
    const double *own = numbers.own;
    const int64_t area = call.height * call.width;
    const double *field = nullptr;
    if (!call.pinhole)
        field = at<double>(call.rays) + 3 * area * at<int64_t>(call.rays_of)[item] + y * call.width;
    for (int64_t c = 0; c < rays.stride; c += WIDE) {
        Space ray{none(), none(), none()};
        if (field) {
            const int64_t n = least<int64_t>(call.width - c, WIDE);
            if (n > 0)
                ray = {load_first(field + c, n), load_first(field + area + c, n),
                       load_first(field + 2 * area + c, n)};
        } else {
            const Doubles a = (count_up<Doubles>() + (double(c) - own[2])) / own[0];
            const Doubles b = (Doubles{} + (double(y) - own[3])) / own[1];
            const Mask good = (magnitude(a) < FARTHEST) & (magnitude(b) < FARTHEST);
            const Doubles per = call.kind == DEPTH_RAY ? 1 / root(a * a + b * b + 1)
                                                       : Doubles{} + 1;
            ray = {chosen(good, a * per, none()), b * per, per};
        }
        const Mask sound = (ray.x - ray.x == 0) & (ray.y - ray.y == 0) & (ray.z - ray.z == 0);
        store_space(rays, c, {chosen(sound, ray.x, none()), ray.y, ray.z});
    }
}

void turned_row(const SweepCall &, const DepthNumbers &numbers, RowOfThree rays,
                RowOfThree turned) {
    const double *p = numbers.pose;
    for (int64_t c = 0; c < rays.stride; c += WIDE) {
        const Space ray = space_at(rays, c);
        Space v{p[0] * ray.x + p[1] * ray.y + p[2] * ray.z,
                p[4] * ray.x + p[5] * ray.y + p[6] * ray.z,
                p[8] * ray.x + p[9] * ray.y + p[10] * ray.z};
        const Mask good = numbers.sound != 0 ? (Mask)(ray.x == ray.x) : Mask{};
        store_space(turned, c, {chosen(good, v.x, none()), chosen(good, v.y, none()),
                                chosen(good, v.z, none())});
    }
}

template <class T>
INLINE void shares(const SweepCall &call, const T *depths, double *near, double *far) {
    for (int64_t c = 0; c < (call.width + RUN - 1) / RUN * RUN; c += WIDE) {
        const int64_t n = clamped(call.width - c, 0, WIDE);
        Vec<T, WIDE> some{};
        if (call.flat) some = some + depths[0];
        else memcpy(&some, depths + c, size_t(n) * sizeof(T));
        Doubles depth = convert<Doubles>(some), one = Doubles{} + 1, over;
        Mask good = depth > 0;
        if (call.kind == DEPTH_INVERSE) good = (depth >= 0) & (depth < __builtin_inf());
        over = 1 / depth;
        Doubles n_ = depth < 1 ? depth : one, s = depth < 1 ? one : over;
        if (call.kind == DEPTH_INVERSE) n_ = depth > 1 ? over : one, s = depth > 1 ? one : depth;
        store(near + c, chosen(good, n_, none())), store(far + c, chosen(good, s, none()));
    }
}

void shares_of_row(const SweepCall &call, int64_t item, int64_t plane, int64_t y, double *near,
                   double *far) {
    const int64_t of = at<int64_t>(call.depths_of)[item] * call.planes + plane;
    const int64_t place = call.flat ? of : (of * call.height + y) * call.width;
    if (call.wide) return shares(call, at<double>(call.depths) + place, near, far);
    shares(call, at<float>(call.depths) + place, near, far);
}

FindPlaces find_places(const SweepCall &call) {
    if (call.fisheye) return find<FISHEYE>;
    return call.coefficients ? find<BROWN> : find<PINHOLE>;
}

BackPlaces back_places(const SweepCall &call) {
    if (call.fisheye) return back<FISHEYE>;
    return call.coefficients ? back<BROWN> : back<PINHOLE>;
}

int64_t bytes_of_gradients() { return (sizeof(PlaceGradients) + 63) / 64 * 64; }

void begin_row(PlaceGradients &grads, RowOfThree to_turned) {
    grads.to_turned = to_turned;
    memset(to_turned.numbers, 0, size_t(3 * to_turned.stride) * sizeof(double));
    memset(grads.sums.lanes, 0, sizeof grads.sums.lanes);
}

void finish_row(const SweepCall &call, const DepthNumbers &item, const PlaceGradients &grads,
                RowOfThree rays, RowOfThree to_rays, double *to) {
    DepthSums sums = grads.sums;
    const double *p = item.pose;
    for (int64_t c = 0; c < rays.stride && item.sound != 0; c += WIDE) {
        if (!call.needs_pose && !call.needs_own) break;
        Space ray = space_at(rays, c);
        const Space g = space_at(grads.to_turned, c);
        const Mask good = ray.x == ray.x;
        ray = {kept(good, ray.x), kept(good, ray.y), chosen(good, ray.z, Doubles{} + 1)};
        const Doubles parts[3] = {g.x, g.y, g.z};
        for (int i = 0; i < 3 && call.needs_pose; i++) {
            sums.add(AT_POSE + 4 * i, c, parts[i] * ray.x);
            sums.add(AT_POSE + 4 * i + 1, c, parts[i] * ray.y);
            sums.add(AT_POSE + 4 * i + 2, c, parts[i] * ray.z);
        }
        if (!call.needs_own) continue;
        const Space back{g.x * p[0] + g.y * p[4] + g.z * p[8], g.x * p[1] + g.y * p[5] + g.z * p[9],
                         g.x * p[2] + g.y * p[6] + g.z * p[10]};
        if (to_rays.numbers) {
            const Space old = space_at(to_rays, c);
            store_space(to_rays, c, {old.x + back.x, old.y + back.y, old.z + back.z});
            continue;
        }
        Doubles da = back.x, db = back.y, per = Doubles{} + 1;
        if (call.kind == DEPTH_RAY) {
            const Doubles along = back.x * ray.x + back.y * ray.y + back.z * ray.z;
            per = ray.z;
            da = per * (back.x - along * ray.x), db = per * (back.y - along * ray.y);
        }
        sums.add(AT_OWN, c, -da * (ray.x / per)), sums.add(AT_OWN + 1, c, -db * (ray.y / per));
        sums.add(AT_OWN + 2, c, -da), sums.add(AT_OWN + 3, c, -db);
    }
    if (item.sound != 0) return write_sums(item, sums, to);
    memset(to, 0, DepthSums::NUMBERS * sizeof(double));
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
