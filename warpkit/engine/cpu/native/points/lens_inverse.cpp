// Undistorts lists of points by the Newton iteration of definitions/lens_inverse.py, which never
// leaves the branch of the centre, and computes the gradient of the solution. A register of points
// iterates until its last point is done.
#include "shared/kernels.h"
#include "points/lens_slopes.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The constants of definitions/lens_inverse.py.
constexpr int STEPS = 100, CHECKS = 16;
constexpr double TIGHT = 4 * 2.220446049250313e-16, LOOSE = 1e-10;
constexpr double SMALLEST_STEP = 1.0 / (1 << 30);

// Directions are below 1e20 and distorted ones below 1e140, so their squares are finite.
INLINE Doubles length_of(Doubles x, Doubles y) { return root(x * x + y * y); }

struct Root {
    Place p;
    Mask found;
};

template <bool FISHEYE>
INLINE Root solved(const LensNumbers &lens, const Reach &reach, int64_t n, Place shown) {
    const Mask finite = (shown.x - shown.x == 0) & (shown.y - shown.y == 0);
    const Doubles u = finite ? shown.x : Doubles{}, v = finite ? shown.y : Doubles{};
    const Doubles length = length_of(u, v), scale = 1 + length;
    const bool radial = reach.radial != 0;
    // a lens with radial distortion alone has no direction beyond its fold
    Mask hopeless = ~finite;
    if (radial) hopeless |= length > reach.radius * (1 + 1e-12);
    Place p{};
    Bent at_p = bent(lens.k, n, FISHEYE, p);
    Doubles off_u = -u, off_v = -v, off = length, share = Doubles{} + 1;
    Mask done = hopeless;
    for (int step = 0; step < STEPS && any(~done); step++) {
        Doubles det = at_p.determinant();
        Doubles dx = (at_p.vy * off_u - at_p.uy * off_v) / det;
        Doubles dy = (at_p.ux * off_v - at_p.vx * off_u) / det;
        Place tried{p.x - share * dx, p.y - share * dy};
        Bent there = bent(lens.k, n, FISHEYE, tried);
        Doubles left_u = there.u - u, left_v = there.v - v, left = length_of(left_u, left_v);
        Mask good = (left < off) & (there.determinant() > 0) & ~done;
        good &= tried.x * tried.x + tried.y * tried.y < reach.limit;
        share = good ? smaller(2 * share, Doubles{} + 1) : share / 2;
        off = good ? left : off;
        off_u = good ? left_u : off_u, off_v = good ? left_v : off_v;
        p.x = good ? tried.x : p.x, p.y = good ? tried.y : p.y;
        at_p.ux = good ? there.ux : at_p.ux, at_p.uy = good ? there.uy : at_p.uy;
        at_p.vx = good ? there.vx : at_p.vx, at_p.vy = good ? there.vy : at_p.vy;
        done |= (off <= TIGHT * scale) | (~good & (off <= LOOSE * scale)) | (share < SMALLEST_STEP);
    }
    Mask found = (off <= LOOSE * scale) & ~hopeless & (at_p.determinant() > 0);
    found &= p.x * p.x + p.y * p.y < reach.limit;
    if (!radial && any(found))
        for (int i = 1; i < CHECKS; i++) {
            double part = double(i) / CHECKS;
            found &= bent(lens.k, n, FISHEYE, {p.x * part, p.y * part}).determinant() > 0;
        }
    return {{found ? p.x : Doubles{}, found ? p.y : Doubles{}}, found};
}

// The first n points, from a plane of x and a plane of y.
INLINE Place some_places(const double *x, const double *y, int64_t n) {
    return {load_first(x, least<int64_t>(n, WIDE)), load_first(y, least<int64_t>(n, WIDE))};
}

// A unit's item, and its points first .. end among all items' points.
struct List {
    int64_t item, first, end;

    List(const LensCall &call, int64_t unit) {
        int64_t units = (call.count + PLACES_AT_ONCE - 1) / PLACES_AT_ONCE;
        item = unit / units;
        int64_t start = unit % units * PLACES_AT_ONCE;
        first = item * call.count + start;
        end = item * call.count + least(start + PLACES_AT_ONCE, call.count);
    }
};

template <bool FISHEYE> void inverse(const Call &block, int64_t begin, int64_t end) {
    const LensCall &call = as<LensCall>(block);
    for (int64_t unit = begin; unit < end; unit++) {
        const List list(call, unit);
        const LensNumbers lens = at<LensNumbers>(call.numbers)[list.item];
        const Reach reach = at<Reach>(call.reach)[list.item];
        for (int64_t i = list.first; i < list.end; i += WIDE) {
            const int64_t n = list.end - i;
            Place shown = some_places(at<double>(call.x) + i, at<double>(call.y) + i, n);
            Root root = solved<FISHEYE>(lens, reach, call.coefficients, shown);
            store_some(at<double>(call.out_x) + i, root.p.x, n);
            store_some(at<double>(call.out_y) + i, root.p.y, n);
            store_some(at<uint8_t>(call.found) + i, convert<Vec<uint8_t, WIDE>>(root.found & 1), n);
        }
    }
}

// The gradient of the implicit function. With the Jacobian J of `bent` at the solution and the
// solution's gradient g, the distorted point gets J^-T g. Each coefficient gets the negated product
// of that with the derivative of `bent` with respect to the coefficient.
template <bool FISHEYE> void inverse_backward(const Call &block, int64_t begin, int64_t end) {
    const LensCall &call = as<LensCall>(block);
    for (int64_t unit = begin; unit < end; unit++) {
        const List list(call, unit);
        const LensNumbers lens = at<LensNumbers>(call.numbers)[list.item];
        LensSums sums;
        for (int64_t i = list.first; i < list.end; i += WIDE) {
            const int64_t n = list.end - i, place = i - list.first;
            Place p = some_places(at<double>(call.x) + i, at<double>(call.y) + i, n);
            Place g = some_places(at<double>(call.grad_x) + i, at<double>(call.grad_y) + i, n);
            Vec<uint8_t, WIDE> flags{};
            memcpy(&flags, at<uint8_t>(call.found) + i, size_t(least<int64_t>(n, WIDE)));
            Mask found = convert<Mask>(flags) != 0;
            g = {found ? g.x : Doubles{}, found ? g.y : Doubles{}};
            Bent shown = bent(lens.k, call.coefficients, FISHEYE, p);
            Doubles det = shown.determinant();
            Doubles du = found ? (shown.vy * g.x - shown.vx * g.y) / det : Doubles{};
            Doubles dv = found ? (shown.ux * g.y - shown.uy * g.x) / det : Doubles{};
            store_some(at<double>(call.out_x) + i, du, n);
            store_some(at<double>(call.out_y) + i, dv, n);
            add_coefficients(call.coefficients, FISHEYE, p, shown.radial, -du, -dv,
                             [&](int k, Doubles v) { sums.add(AT_K + k, place, v); });
        }
        sums.write(at<double>(call.sums) + unit * LensSums::NUMBERS);
    }
}

}  // namespace

Kernel choose_lens_inverse(const Call &call) {
    return as<LensCall>(call).fisheye ? inverse<true> : inverse<false>;
}

Kernel choose_lens_inverse_backward(const Call &call) {
    return as<LensCall>(call).fisheye ? inverse_backward<true> : inverse_backward<false>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
