// JPEG files of images: definitions/jpeg.py in integers, the same bits.
//
// A unit is a band of an image. Three rows of blocks are held at a time, in rings of rows: to
// enlarge colours, a row reads the one above and the one below, and a band begins and ends with a
// row of blocks of its neighbours, which is computed twice.
#include "jpeg_band.h"
#include "kernels.h"
#include "memory.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int HELD = 3;  // rows of blocks of colour

void through_file(const Call &call, int64_t begin, int64_t end) {
    const JpegCall &p = as<JpegCall>(call);
    BorrowedRow<uint8_t> memory(Band::bytes(p, HELD));
    if (!memory) return;
    // so that vectors read numbers after the end of rows, whatever they are
    memset(memory.numbers, 0, size_t(Band::bytes(p, HELD)));
    const int64_t height = BLOCK * p.rows, blocks = (p.height + height - 1) / height;
    for (int64_t n = begin; n < end; n++) {
        const Band band(p, n / p.bands, memory.numbers, HELD);
        const int64_t first = n % p.bands * p.band_rows, last = least(first + p.band_rows, blocks);
        const int64_t around = p.rows == 2 && p.channels == 3;
        const int64_t stop = least(last + around, blocks);
        for (int64_t block = most<int64_t>(first - around, 0); block < stop + around; block++) {
            if (block < stop) band.make(block);
            const int64_t shown = block - around;
            if (shown < first || shown >= last) continue;
            for (int64_t y = shown * height; y < least((shown + 1) * height, p.height); y++)
                band.show(y);
        }
    }
}

}  // namespace

Kernel choose_through_file(const Call &) { return through_file; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
