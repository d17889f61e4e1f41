// JPEG files of images: definitions/jpeg.py in integers, the same bits. A unit is a band of an
// image.
#include "jpeg/jpeg_band.h"
#include "shared/kernels.h"
#include "shared/memory.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

void through_file(const Call &call, int64_t begin, int64_t end) {
    const JpegCall &p = as<JpegCall>(call);
    BorrowedRow<uint8_t> memory(Band::bytes(p));
    if (!memory) return;
    for (int64_t n = begin; n < end; n++) {
        const Band band(p, n / p.bands, memory.numbers);
        walk(band, n, false, [&](int64_t y) { band.show(y); }, [](int64_t) {});
    }
}

}  // namespace

Kernel choose_through_file(const Call &) { return through_file; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
