// A band of an image that is painted on: its rows and objects, and copies of its pixels.
#pragma once
#include <string.h>

#include "objects/objects_call.h"
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int BAND = 32;  // rows of an image that are painted together

// A band: its image, its rows, and the image's objects, order[first] .. order[end - 1].
struct Band {
    const PaintedImage &image;
    int64_t low, high, first, end;

    Band(const ObjectsCall &p, int64_t unit)
        : Band(p, unit, at<const int64_t>(p.image_of_unit)[unit]) {}

  private:
    Band(const ObjectsCall &p, int64_t unit, int64_t number)
        : image(at<const PaintedImage>(p.painted)[number]),
          low((unit - image.first_unit) * BAND),
          high(least<int64_t>(low + BAND, image.height)),
          first(at<const int64_t>(p.starts)[number]),
          end(at<const int64_t>(p.starts)[number + 1]) {}
};

// numbers[0], numbers[STEP], .. in a row; STEP 0: `step` of them lie between two.
template <int STEP, class R>
INLINE void copy_spaced(R *__restrict to, const R *__restrict from, int64_t step, int64_t count) {
    if (STEP) step = STEP;
    for (int64_t n = 0; n < count; n++) to[n] = from[n * step];
}

// A band's pixels as planes, `plane` apart, of dense rows.
//
// Where the pixels of a row are further apart than its rows, as in a transposed image, a cache line
// has pixels of several rows: then ACROSS columns at a time keep their lines in the cache.
template <class R>
void copy_planes(const ObjectsCall &p, const Band &band, R *to, int64_t plane) {
    constexpr int64_t ACROSS = 8;
    const PaintedImage &image = band.image;
    const R *from = at<const R>(p.images + image.pixels) + band.low * image.line;
    const int64_t rows = band.high - band.low, width = image.width;
    if (image.step == 1 && image.line == width) {
        for (int64_t c = 0; c < p.channels; c++)
            memcpy(to + c * plane, from + c * image.plane, size_t(rows * width) * sizeof(R));
        return;
    }
    const int64_t across = image.step > image.line ? ACROSS : width;
    for (int64_t x = 0; x < width; x += across)
        for (int64_t y = 0; y < rows; y++)
            for (int64_t c = 0; c < p.channels; c++) {
                const R *row = from + c * image.plane + y * image.line + x * image.step;
                R *start = to + c * plane + y * width + x;
                const int64_t count = least(across, width - x);
                if (image.step == 1) memcpy(start, row, size_t(count) * sizeof(R));
                else if (image.step == 3) copy_spaced<3>(start, row, 3, count);
                else if (image.step == 4) copy_spaced<4>(start, row, 4, count);
                else copy_spaced<0>(start, row, image.step, count);
            }
}

// A band's pixels as they are stored, channels-last, in a dense result of the same kind.
template <class R> void copy_pixels(const ObjectsCall &p, const Band &band, R *to) {
    const PaintedImage &image = band.image;
    const int64_t numbers = image.width * image.step;
    const R *from = at<const R>(p.images + image.pixels) + band.low * image.line;
    for (int64_t y = 0; y < band.high - band.low; y++)
        memcpy(to + y * numbers, from + y * image.line, size_t(numbers) * sizeof(R));
}

}  // namespace
}  // namespace WARPKIT_ISA
}  // namespace warpkit
