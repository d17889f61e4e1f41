// Channels-last copies of pictures: a tap is one load for sixteen channels. A unit is
// PIXELS_OF_COPY pixels of a picture.
#include "matching/channels.h"
#include "shared/kernels.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

void copy(const Call &block, int64_t begin, int64_t end) {
    const ChannelsCall &call = as<ChannelsCall>(block);
    const Channels channels{at<int32_t>(call.order), call.padded};
    const int64_t units = (call.pixels + PIXELS_OF_COPY - 1) / PIXELS_OF_COPY;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t picture = unit / units, first = unit % units * PIXELS_OF_COPY;
        const float *from = at<float>(call.planes) + picture * call.channels * call.pixels;
        float *to = at<float>(call.copies) + picture * (call.pixels + 1) * call.padded;
        for (int64_t p = first; p < least(first + PIXELS_OF_COPY, call.pixels); p += RUN)
            to_pixels(channels, from + p, call.pixels, least<int64_t>(RUN, call.pixels - p),
                      to + p * call.padded);
        if (first == 0)
            memset(to + call.pixels * call.padded, 0, size_t(call.padded) * sizeof(float));
    }
}

}  // namespace

Kernel choose_channels_last(const Call &) { return copy; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
