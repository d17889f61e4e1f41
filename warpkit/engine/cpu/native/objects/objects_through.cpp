// The transmission of the objects above: the first half of the gradients of painted objects.
//
// An object with alpha a turns the value b below it into c + (1 - a) b. With g the incoming
// gradient of a pixel, and t the product of (1 - a) over the objects above it:
//
//     an object's colour c gets   t g
//     its alpha a gets            -t sum over channels of g b
//     the image gets              t g, with t over all objects
//
// This kernel computes t and the gradient to a for each pixel of each box, and the image's
// gradient; objects_backward.cpp continues. Pixels do not depend on each other.
#include "shared/kernels.h"
#include "shared/memory.h"
#include "objects/paint_run.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// For the pixels of a band: t in `passed`, the gradient to each alpha, and the one to the image.
//
// The first loop composites again, object by object from the lowest, to get each b, and stores a
// and the sum of g b. The second goes from the top down with the product t so far.
template <class R>
void let_through_band(const ObjectsCall &p, const Band &band, R *below, R *rest, Run<R> &run) {
    const int64_t width = band.image.width, area = band.image.height * width, step = BAND * width;
    const int64_t rows = band.high - band.low;
    const R *grad = at<const R>(p.grad + band.image.grad);
    R *passed = at<R>(p.passed), *alpha_grad = p.needs_alpha ? at<R>(p.alpha_grad) : nullptr;
    if (p.needs_alpha) copy_planes(p, band, below, step);
    for (int64_t n = 0; n < rows * width; n++) rest[n] = 1;
    for (int64_t n = band.first; n < band.end; n++) {
        const Source<R> source(p, at<const int64_t>(p.order)[n]);
        each_run_in(p, source, band.low, band.high, [&](int64_t y, int64_t x, int64_t count) {
            const int64_t entry = source.entry(x, y), place = (y - band.low) * width + x;
            run.look(p, source, x, y, count);
            if (p.needs_alpha)
                return paint_run<R>(p, source, run,
                                    {below + place, step, grad + y * width + x, area,
                                     passed + entry, alpha_grad + entry});
            for (int64_t k = 0; k < count; k++)
                passed[entry + k] = run.there[k] & run.ALL ? source.opacity * run.cover[k] : R(0);
        });
    }
    for (int64_t n = band.end - 1; n >= band.first; n--) {
        const Source<R> source(p, at<const int64_t>(p.order)[n]);
        each_run_in(p, source, band.low, band.high, [&](int64_t y, int64_t x, int64_t count) {
            R *t = rest + (y - band.low) * width + x, *a = passed + source.entry(x, y);
            for (int64_t k = 0; alpha_grad && k < count; k++)
                alpha_grad[source.entry(x, y) + k] *= t[k];
            for (int64_t k = 0; k < count; k++) {
                const R alpha = a[k];
                a[k] = t[k], t[k] *= 1 - alpha;
            }
        });
    }
    for (int64_t c = 0; p.needs_images && c < p.channels; c++) {
        const int64_t from = c * area + band.low * width;
        R *to = at<R>(p.grad_images + band.image.grad_image) + from;
        for (int64_t n = 0; n < rows * width; n++) to[n] = grad[from + n] * rest[n];
    }
}

// For opaque objects: the image gets the gradient of pixels that no object hides.
template <class R> void let_through_opaque(const ObjectsCall &p, const Band &band) {
    const int64_t width = band.image.width, area = band.image.height * width;
    const int64_t start = band.low * width;
    const int32_t *shown = at<const int32_t>(p.top_object + band.image.top_object) + start;
    for (int64_t c = 0; p.needs_images && c < p.channels; c++) {
        const int64_t from = c * area + start;
        const R *grad = at<const R>(p.grad + band.image.grad) + from;
        R *to = at<R>(p.grad_images + band.image.grad_image) + from;
        for (int64_t n = 0; n < (band.high - band.low) * width; n++)
            to[n] = shown[n] < 0 ? grad[n] : R(0);
    }
}

template <class R> void let_through(const Call &call, int64_t begin, int64_t end) {
    const ObjectsCall &p = as<ObjectsCall>(call);
    Run<R> run;
    for (int64_t unit = begin; unit < end; unit++) {
        const Band band(p, unit);
        if (p.opaque) {
            let_through_opaque<R>(p, band);
            continue;
        }
        const int64_t pixels = BAND * band.image.width;
        BorrowedRow<R> memory(pixels * (p.needs_alpha ? p.channels + 1 : 1));
        if (!memory) return;
        let_through_band<R>(p, band, memory.numbers + pixels, memory.numbers, run);
    }
}

}  // namespace

Kernel choose_let_through(const Call &call) {
    return as<ObjectsCall>(call).number_bytes == 4 ? let_through<float> : let_through<double>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
