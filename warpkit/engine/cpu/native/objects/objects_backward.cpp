// The gradients to objects' sources, and to their masks, opacities, maps and fills.
//
// objects_through.cpp has found, for each pixel of each box, the share t of the gradient that
// passes the objects above, and the gradient to the object's alpha. This kernel processes each
// object once, row by row. With g the incoming gradient, f the opacity, w the weights of the four
// taps, m their masks and v their colours,
//     s           = sum over channels of t g v, plus alpha's gradient, for each tap
//     colour[tap] += t f g w m        opacity += sum of w m s
//     mask[tap]   += f w s            point   += f (the weights' derivatives) m s
//
// For an opaque object, only visible runs of pixels count: t, f and m are 1 there, and the weight
// of missing taps goes to its fill.
//
// `Pull` computes a register of pixels at a time, and `Scatter` then adds them one by one. Every
// sum has one owner and one order, neither of which depends on the threads.
#include "shared/kernels.h"
#include "objects/paint_run.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The gradients of one object in one row to its point's column, row and depth, alone and times x.
// There are eight sums of each, one per eighth pixel, on all processors.
struct RowSums {
    using Eight = Vec<double, 8>;
    Eight point[3] = {}, across[3] = {};
};

// The work of a unit: the rows of the image's gradient that it adds to, and its sums.
struct Part {
    int64_t low, high, sums;

    bool meets(const Object &o) const { return o.top < high && o.bottom > low; }
    // Of the units that process an object, the one that owns its sums: threads may run the others
    // at the same time.
    bool owns(const Object &o) const { return o.top >= low && o.top < high; }
    // Whether pixels of a window's row, which an affine map sends to a line, may read these rows.
    template <class R> bool is_read(const ObjectsCall &p, const Source<R> &source, int64_t x,
                                    int64_t y, int64_t count) const {
        if (p.kind != AFFINE) return true;
        const Object &o = source.object;
        const double *m = source.map + 3, first = double(x - o.left);
        const double start = m[1] * double(y - o.top) + m[2] + double(o.top);
        const double one = start + m[0] * first, other = start + m[0] * (first + double(count - 1));
        return !(most(one, other) < double(low - 2) || least(one, other) > double(high + 1));
    }
};

template <class R> struct Pull {
    static constexpr int L = LANES<R>;
    using V = Vec<R, L>;
    alignas(64) R part[RUN];                    // t
    alignas(64) R to_mask[4][RUN];              // f w s
    alignas(64) R shown[RUN];                   // the sum of w m s
    alignas(64) R to_column[RUN], to_row[RUN];  // to the point

    // t for a run, and if `all`, the other inputs.
    void find(const ObjectsCall &p, const Source<R> &source, const Run<R> &run, const R *grad,
              int64_t entry, bool all) {
        const V one = splat<V>(R(1));
        const int64_t area = source.image.height * source.image.width;
        for (int64_t k = 0; k < run.count; k += L) {
            const int64_t left = run.count - k;
            const V t = p.opaque ? one : load_run<V>(at<const R>(p.passed) + entry + k, left);
            store(part + k, t);
            if (!all) continue;
            V s[4], start{};
            if (!p.opaque) start = load_run<V>(at<const R>(p.alpha_grad) + entry + k, left);
            for (int n = 0; n < 4; n++) s[n] = start;
            for (int64_t c = 0; c < p.channels; c++) {
                const V g = load_run<V>(grad + c * area + k, left) * t;
                const R missing = p.opaque ? fill_of<R>(p, source.number, c) : R(0);
                V v[4];
                run.read(source, c, k, missing, v);
                for (int n = 0; n < 4; n++) s[n] += g * v[n];
            }
            spread(p, source, run, k, s);
        }
    }

  private:
    INLINE void spread(const ObjectsCall &p, const Source<R> &source, const Run<R> &run, int64_t k,
                       V *s) {
        const V none{}, tx = load<V>(run.tx + k), ty = load<V>(run.ty + k);
        const V sx = 1 - tx, sy = 1 - ty;
        const auto some = run.some(k);
        store(shown + k, some ? run.dot(k, s) : none);
        for (int n = 0; n < 4; n++) s[n] *= source.opacity;
        store(to_mask[0] + k, sy * sx * s[0]), store(to_mask[1] + k, sy * tx * s[1]);
        store(to_mask[2] + k, ty * sx * s[2]), store(to_mask[3] + k, ty * tx * s[3]);
        for (int n = 0; n < 4; n++) {
            const V m = load<V>(run.mask[n] + k);
            if (!p.opaque) s[n] = run.has(n, k) ? m * s[n] : none;
        }
        store(to_column + k, some ? sy * (s[1] - s[0]) + ty * (s[3] - s[2]) : none);
        store(to_row + k, some ? sx * (s[2] - s[0]) + tx * (s[3] - s[1]) : none);
    }
};

template <class R> struct Scatter {
    using Four = Vec<R, 4>;
    const ObjectsCall &p;
    const Source<R> &source;
    const Run<R> &run;
    const Pull<R> &pull;
    const Part &part;
    const R *grad;  // of the run's first pixel, whose channels are `area` apart
    int64_t area;

    // The taps of pixel n inside the source and, if units are bands, in this one's rows.
    INLINE int landing(int64_t n) const {
        int bits = run.there[n] & run.ALL;
        if (!p.bands) return bits;
        const int64_t y = source.object.top + run.row[n];
        if (y < part.low || y >= part.high) bits &= ~3;
        if (y + 1 < part.low || y + 1 >= part.high) bits &= ~12;
        return bits;
    }

    // To images. Sums per object as for patches would cost more than they save.
    void add_planes() const {
        const int64_t plane = area, line = source.image.width, count = p.channels;
        R *colour = at<R>(p.grad_images + source.image.grad_image) + source.object.top * line +
                    source.object.left;
        for (int64_t n = 0; n < run.count; n++) {
            const int bits = landing(n);
            if (!bits) continue;
            const R w[4] = {run.weight[0][n], run.weight[1][n], run.weight[2][n], run.weight[3][n]};
            R *to = colour + run.row[n] * line + run.column[n];
            const R *from = grad + n;
            const R t = pull.part[n], f = source.opacity;
            if (bits == run.ALL)
                for (int64_t c = 0; c < count; c++, to += plane, from += area)
                    add_all(to, line, *from * t * f, w);
            else
                for (int64_t c = 0; c < count; c++, to += plane, from += area)
                    add(to, line, bits, *from * t * f, w);
        }
    }

    // To sums of patches, with four channels adjacent; the next four are in the next plane.
    void add_packed() const {
        const int64_t quads = (p.channels + 3) / 4, plane = 4 * p.plane, line = 4 * p.line;
        R *sums = at<R>(p.grad_colour) + part.sums * p.colour_step +
                  4 * (source.object.source / p.channels * quads);
        alignas(64) R quad[4 * RUN];
        for (int64_t c = 0; c < p.channels; c += 4, sums += plane) {
            gather(c, quad);
            for (int64_t n = 0; n < run.count; n++) {
                const int bits = landing(n);
                if (!bits) continue;
                const R f = pull.part[n] * source.opacity;
                const Four g = load<Four>(quad + 4 * n);
                R *to = sums + 4 * int64_t(run.column[n]) + run.row[n] * line;
                if (bits & 1) add_four(to, f * run.weight[0][n], g);
                if (bits & 2) add_four(to + 4, f * run.weight[1][n], g);
                if (bits & 4) add_four(to + line, f * run.weight[2][n], g);
                if (bits & 8) add_four(to + line + 4, f * run.weight[3][n], g);
            }
        }
    }

    void add_mask() const {
        const int64_t width = source.object.width;
        R *mask = at<R>(p.grad_mask) + source.object.cover + part.sums * p.mask_step;
        for (int64_t n = 0; n < run.count; n++) {
            const R w[4] = {pull.to_mask[0][n], pull.to_mask[1][n], pull.to_mask[2][n],
                            pull.to_mask[3][n]};
            const int bits = run.there[n] & run.ALL;
            if (bits) add(mask + run.row[n] * width + run.column[n], width, bits, R(1), w);
        }
    }

    // To an opaque object's fill: the weights of its missing taps.
    void add_fill() const {
        const int64_t count = p.count;
        for (int64_t n = 0; n < run.count; n++) {
            const int bits = run.there[n] & run.ALL;
            if (bits == run.ALL) continue;
            for (int64_t c = 0; c < p.channels; c++) {
                const R g = grad[c * area + n];
                R lost = 0;
                for (int t = 0; t < 4; t++)
                    if (!(bits >> t & 1)) lost += g * run.weight[t][n];
                at<double>(p.grad_fill)[c * count + source.number] += double(bits ? lost : g);
            }
        }
    }

    void add_opacity() const {
        double &total = at<double>(p.grad_opacity)[source.number];
        for (int64_t n = 0; n < run.count; n++) total += double(pull.shown[n]);
    }

    // To the map, row y.
    void add_point(int64_t x, int64_t y, RowSums &sums) const {
        using Eight = RowSums::Eight;
        const double *m = source.map, first = double(x - source.object.left);
        for (int64_t n = 0; n < run.count; n += 8) {
            const auto here = count_up<Eight>() + double(n) < double(run.count);
            Eight to_u = eight_of(pull.to_column + n), to_v = eight_of(pull.to_row + n);
            to_u = here ? to_u : Eight{}, to_v = here ? to_v : Eight{};
            const Eight across = count_up<Eight>() + (first + double(n));
            if (p.kind == PERSPECTIVE) {
                const Eight u = eight_of(run.column + n) + eight_of(run.tx + n);
                const Eight v = eight_of(run.row + n) + eight_of(run.ty + n);
                Eight depth = m[6] * across + m[7] * double(y - source.object.top) + m[8];
                // if a pixel has no tap the depth may be 0
                const auto some =
                    here &
                    (convert<Vec<int64_t, 8>>(load<Vec<int32_t, 8>>(run.there + n) & run.ALL) != 0);
                depth = some ? depth : splat<Eight>(1.0);
                const Eight to_depth = some ? -(to_u * u + to_v * v) / depth : Eight{};
                to_u /= depth, to_v /= depth;
                sums.point[2] += to_depth, sums.across[2] += to_depth * across;
            }
            sums.point[0] += to_u, sums.across[0] += to_u * across;
            sums.point[1] += to_v, sums.across[1] += to_v * across;
        }
    }

  private:
    // The incoming gradient of channels c .. c + 3, side by side.
    INLINE void gather(int64_t c, R *quad) const {
        using V = Vec<R, LANES<R>>;
        for (int64_t k = 0; k < run.count; k += LANES<R>) {
            V v[4] = {};
            for (int n = 0; n < 4 && c + n < p.channels; n++)
                v[n] = load_run<V>(grad + (c + n) * area + k, run.count - k);
            store(quad + 4 * k, interleave(v));
        }
    }

    static INLINE void add_four(R *to, R weight, Four g) {
        store(to, fma(splat<Four>(weight), g, load<Four>(to)));
    }

    template <class T> static INLINE RowSums::Eight eight_of(const T *from) {
        return convert<RowSums::Eight>(load<Vec<T, 8>>(from));
    }

    // g times the four weights, one by one: loading both of a row together would wait until the
    // number that the previous pixel has just stored has reached the cache.
    static INLINE void add_all(R *to, int64_t line, R g, const R *w) {
        to[0] += g * w[0], apart();
        to[1] += g * w[1], apart();
        to[line] += g * w[2], apart();
        to[line + 1] += g * w[3];
    }

    // The same for the existing taps.
    static INLINE void add(R *to, int64_t line, int bits, R g, const R *w) {
        if (bits & 1) to[0] += g * w[0];
        if (bits & 2) to[1] += g * w[1];
        if (bits & 4) to[line] += g * w[2];
        if (bits & 8) to[line + 1] += g * w[3];
    }

    // Keeps the compiler from merging two accesses.
    static INLINE void apart() { __asm__ volatile("" ::: "memory"); }
};

// A run of `count` pixels at (x, y) of an object.
template <class R> void add_run(const ObjectsCall &p, const Source<R> &source, const Part &part,
                                int64_t x, int64_t y, int64_t count, Run<R> &run, Pull<R> &pull,
                                RowSums &sums) {
    const bool owner = part.owns(source.object);
    if (!owner && !part.is_read(p, source, x, y, count)) return;
    const int64_t area = source.image.height * source.image.width;
    const R *grad = at<const R>(p.grad + source.image.grad) + y * source.image.width + x;
    run.look(p, source, x, y, count);
    pull.find(p, source, run, grad, source.entry(x, y), owner && p.needs_alpha);
    const Scatter<R> to{p, source, run, pull, part, grad, area};
    if (p.needs_colour && p.bands) to.add_planes();
    if (p.needs_colour && !p.bands) to.add_packed();
    if (!owner) return;
    if (p.needs_alpha) to.add_point(x, y, sums);
    if (p.needs_alpha && p.opacity) to.add_opacity();
    if (p.needs_mask) to.add_mask();
    if (p.needs_fill) to.add_fill();
}

void add_row(const ObjectsCall &p, const Object &object, int64_t number, int64_t y,
             const RowSums &sums) {
    double *map = at<double>(p.grad_to_source) + 9 * number;
    for (int k = 0; k < 3; k++) {
        const double point = sum(sums.point[k]);
        map[3 * k] += sum(sums.across[k]);
        map[3 * k + 1] += point * double(y - object.top);
        map[3 * k + 2] += point;
    }
}

// All rows of objects order[first] .. order[end - 1] that may be in `part`.
template <class R> void add_objects(const ObjectsCall &p, const Part &part, int64_t first,
                                    int64_t end, Run<R> &run, Pull<R> &pull) {
    for (int64_t n = first; n < end; n++) {
        const Source<R> source(p, at<const int64_t>(p.order)[n]);
        const Object &o = source.object;
        if (!part.meets(o)) continue;
        for (int64_t row = o.top; row < o.bottom; row++) {
            RowSums sums;
            each_run_in(p, source, row, row + 1, [&](int64_t y, int64_t x, int64_t count) {
                add_run(p, source, part, x, y, count, run, pull, sums);
            });
            if (part.owns(o)) add_row(p, o, source.number, row, sums);
        }
    }
}

// The visible runs of opaque objects with rows in `part`.
template <class R>
void add_shown(const ObjectsCall &p, int64_t image, const Part &part, Run<R> &run, Pull<R> &pull) {
    const int64_t *order = at<const int64_t>(p.order), *starts = at<const int64_t>(p.starts);
    int64_t low = part.low, high = part.high;
    for (int64_t n = starts[image]; n < starts[image + 1]; n++) {
        const Object &o = at<const Object>(p.objects)[order[n]];
        if (part.meets(o)) low = least(low, o.top), high = most(high, o.bottom);
    }
    for (int64_t y = low; y < high; y++)
        each_shown(p, at<const PaintedImage>(p.painted)[image], y,
                   [&](int64_t number, int64_t first, int64_t end) {
                       const Source<R> source(p, number);
                       const Object &o = source.object;
                       if (!part.meets(o)) return;
                       RowSums sums;
                       each_run(first, end, [&](int64_t x, int64_t count) {
                           add_run(p, source, part, x, y, count, run, pull, sums);
                       });
                       if (part.owns(o)) add_row(p, o, number, y, sums);
                   });
}

// Units are bands of an image's gradient, or groups of objects; see `bands`.
template <class R> void paint_backward(const Call &call, int64_t begin, int64_t end) {
    const ObjectsCall &p = as<ObjectsCall>(call);
    const int64_t *starts = at<const int64_t>(p.starts), *groups = at<const int64_t>(p.groups);
    Run<R> run;
    Pull<R> pull;
    for (int64_t unit = begin; unit < end; unit++) {
        if (!p.bands) {
            const Part all = {0, INT64_MAX, unit};
            add_objects(p, all, groups[unit], groups[unit + 1], run, pull);
            continue;
        }
        const int64_t number = unit / p.bands, band = unit % p.bands;
        const PaintedImage &image = at<const PaintedImage>(p.painted)[number];
        const int64_t height = image.height;
        const Part part = {height * band / p.bands, height * (band + 1) / p.bands, 0};
        if (p.opaque) add_shown(p, number, part, run, pull);
        else add_objects(p, part, starts[number], starts[number + 1], run, pull);
    }
}

}  // namespace

Kernel choose_paint_backward(const Call &call) {
    return as<ObjectsCall>(call).number_bytes == 4 ? paint_backward<float> : paint_backward<double>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
