// Objects painted over images, the last one on top: the forward kernel.
//
// A unit is a band of BAND rows of one image. It copies the image's pixels, and then paints:
//
//     objects with coverage: from the lowest up, every row of the object in the band;
//     opaque objects: `show` first finds the visible one at each pixel, and each pixel is
//     sampled once, whatever the number of objects below.
//
// All objects read the original images, so bands do not depend on each other.
#include "shared/kernels.h"
#include "shared/memory.h"
#include "objects/paint_run.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The visible object at each pixel of a band, -1 for none.
//
// From the topmost down, each object takes the free pixels. ahead[x] leads from a taken pixel
// towards the next free one, so the time grows with rows of boxes and with pixels, not with areas.
void show(const ObjectsCall &p, const Band &band, int32_t *ahead) {
    const int64_t width = band.image.width;
    int32_t *shown = at<int32_t>(p.top_object + band.image.top_object);
    for (int64_t y = band.low; y < band.high; y++)
        for (int64_t x = 0; x < width; x++) {
            shown[y * width + x] = -1;
            ahead[(y - band.low) * width + x] = int32_t(x);
        }
    for (int64_t n = band.end - 1; n >= band.first; n--) {
        const int64_t number = at<const int64_t>(p.order)[n];
        const Object &o = at<const Object>(p.objects)[number];
        const int32_t *spans = spans_of(p, o);
        for (int64_t y = most(o.top, band.low); y < least(o.bottom, band.high); y++) {
            int32_t *free = ahead + (y - band.low) * width;
            const int64_t first = spans ? spans[2 * (y - o.top)] : o.left;
            const int64_t end = spans ? spans[2 * (y - o.top) + 1] : o.right;
            if (first >= end) continue;
            int64_t x = first;
            while (x < end) {
                int64_t next = free[x];
                if (next == x) {
                    shown[y * width + x] = int32_t(number);
                    free[x] = int32_t(end);
                    next++;
                }
                x = next;
            }
            free[first] = int32_t(x);
        }
    }
}

// Paint `count` pixels at (x, y) of a result.
template <class R> INLINE void paint_at(const ObjectsCall &p, const Source<R> &source, Run<R> &run,
                                        int64_t x, int64_t y, int64_t count, R *strip) {
    const PaintedImage &image = source.image;
    const int64_t step = image.out_step;
    R *out = at<R>(p.out + image.out) + (y * image.width + x) * step;
    run.look(p, source, x, y, count);
    if (step == 1) return paint_run<R>(p, source, run, {out, image.height * image.width});
    for (int64_t c = 0; !p.opaque && c < step; c++)
        for (int64_t k = 0; k < count; k++) strip[c * RUN + k] = out[k * step + c];
    paint_run<R>(p, source, run, {strip, RUN});
    for (int64_t k = 0; k < count; k++)
        for (int64_t c = 0; c < step; c++) out[k * step + c] = strip[c * RUN + k];
}

template <class R> void paint(const Call &call, int64_t begin, int64_t end) {
    const ObjectsCall &p = as<ObjectsCall>(call);
    Run<R> run;
    BorrowedRow<R> strip(p.channels * RUN);  // a run of a channels-last result, as planes
    if (!strip) return;
    for (int64_t unit = begin; unit < end; unit++) {
        const Band band(p, unit);
        const int64_t width = band.image.width, step = band.image.out_step;
        R *out = at<R>(p.out + band.image.out) + band.low * width * step;
        if (step == 1) copy_planes(p, band, out, band.image.height * width);
        else copy_pixels(p, band, out);
        const auto paint_some = [&](const Source<R> &source, int64_t x, int64_t y, int64_t count) {
            paint_at<R>(p, source, run, x, y, count, strip.numbers);
        };
        if (p.opaque) {
            BorrowedRow<int32_t> ahead(BAND * width);
            if (!ahead) return;
            show(p, band, ahead.numbers);
            for (int64_t y = band.low; y < band.high; y++)
                each_shown(p, band.image, y, [&](int64_t number, int64_t first, int64_t last) {
                    const Source<R> source(p, number);
                    each_run(first, last, [&](int64_t x, int64_t count) {
                        paint_some(source, x, y, count);
                    });
                });
            continue;
        }
        for (int64_t n = band.first; n < band.end; n++) {
            const Source<R> source(p, at<const int64_t>(p.order)[n]);
            each_run_in(p, source, band.low, band.high, [&](int64_t y, int64_t x, int64_t count) {
                paint_some(source, x, y, count);
            });
        }
    }
}

}  // namespace

Kernel choose_paint(const Call &call) {
    return as<ObjectsCall>(call).number_bytes == 4 ? paint<float> : paint<double>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
