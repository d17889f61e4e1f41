// Paints a run of an object's pixels over the values below: shared by both passes.
//
// With alpha = opacity x (sum of weights x mask), an object turns a pixel b below it into
//
//     opacity x (sum of weights x mask x tap) + (1 - alpha) b
//
// An opaque object replaces the pixel by the interpolated value of its four taps; missing taps have
// the value of its fill.
#pragma once
#include "objects/band.h"
#include "objects/run_of_pixels.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The target of a run: its first pixel in the first channel, and the step to the next channel.
template <class R> struct Canvas {
    R *pixels;
    int64_t plane;
    // In a backward pass also the incoming gradient, whose channels are `area` apart, and the
    // arrays for each pixel's alpha and its gradient.
    const R *grad = nullptr;
    int64_t area = 0;
    R *alpha = nullptr, *alpha_grad = nullptr;
};

template <class V, class R> INLINE V load_run(const R *p, int64_t left) {
    return left >= COUNT<V> ? load<V>(p) : load_first(p, left);
}
template <class V, class R> INLINE void store_run(R *p, V v, int64_t left) {
    if (left >= COUNT<V>) store(p, v);
    else store_first(p, v, left);
}

template <class R> INLINE R fill_of(const ObjectsCall &p, int64_t object, int64_t channel) {
    return at<const R>(p.fill)[p.own_fill ? channel * p.count + object : channel];
}

template <class R>
void paint_run(const ObjectsCall &p, const Source<R> &source, const Run<R> &run, Canvas<R> to) {
    using V = typename Run<R>::V;
    const V one = splat<V>(R(1));
    for (int64_t k = 0; k < run.count; k += Run<R>::L) {
        const int64_t left = run.count - k;
        const auto some = run.some(k);
        const V tx = load<V>(run.tx + k), ty = load<V>(run.ty + k), sx = one - tx, sy = one - ty;
        const V alpha = p.opaque ? one : some ? source.opacity * load<V>(run.cover + k) : V{};
        V under{};
        for (int64_t c = 0; c < p.channels; c++) {
            R *pixels = to.pixels + c * to.plane + k;
            V v[4];
            const R missing = p.opaque ? fill_of<R>(p, source.number, c) : R(0);
            run.read(source, c, k, missing, v);
            if (p.opaque) {
                V value = sy * (sx * v[0] + tx * v[1]) + ty * (sx * v[2] + tx * v[3]);
                store_run(pixels, some ? value : splat<V>(missing), left);
                continue;
            }
            const V below = load_run<V>(pixels, left);
            const V value = source.opacity * run.dot(k, v) + (one - alpha) * below;
            if (to.grad) under += load_run<V>(to.grad + c * to.area + k, left) * below;
            store_run(pixels, some ? value : below, left);
        }
        if (to.alpha) store_run(to.alpha + k, alpha, left);
        if (to.alpha_grad) store_run(to.alpha_grad + k, some ? -under : V{}, left);
    }
}

// Call use(object, first, end) for the visible parts of opaque objects in row y of an image.
template <class Use>
INLINE void each_shown(const ObjectsCall &p, const PaintedImage &image, int64_t y, Use use) {
    const int32_t *shown = at<const int32_t>(p.top_object + image.top_object) + y * image.width;
    for (int64_t x = 0, end; x < image.width; x = end) {
        end = x + 1;
        while (end < image.width && shown[end] == shown[x]) end++;
        if (shown[x] >= 0) use(shown[x], x, end);
    }
}

// Call use(x, count) for the pixels first .. end of a row, RUN at a time.
template <class Use> INLINE void each_run(int64_t first, int64_t end, Use use) {
    for (int64_t x = first; x < end; x += RUN) use(x, least<int64_t>(RUN, end - x));
}

// Call use(y, x, count) for the runs of an object in the rows low .. high.
template <class R, class Use> INLINE void each_run_in(const ObjectsCall &p, const Source<R> &source,
                                                      int64_t low, int64_t high, Use use) {
    const Object &o = source.object;
    for (int64_t y = most(o.top, low); y < least(o.bottom, high); y++) {
        int64_t first, end;
        source.reach(p, y, first, end);
        each_run(first, end, [&](int64_t x, int64_t count) { use(y, x, count); });
    }
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
