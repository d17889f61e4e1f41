// Which pixel of an image is in front at each target: definitions/front.py. One thread takes an
// item's pixels in order, so that the first of equal depths stays.
#include "kernels.h"
#include "vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

template <class F, class D> void front(const Call &block, int64_t begin, int64_t end) {
    const FrontCall &call = as<FrontCall>(block);
    const int64_t targets = call.to_height * call.to_width;
    const double last_x = double(call.to_width - 1), last_y = double(call.to_height - 1);
    for (int64_t item = begin; item < end; item++) {
        const F *flow = at<F>(call.flow) + at<int64_t>(call.flow_starts)[item];
        const D *depth = at<D>(call.depth) + at<int64_t>(call.depth_starts)[item];
        double *nearest = at<double>(call.nearest) + item * targets;
        int64_t *out = at<int64_t>(call.out) + item * targets;
        for (int64_t i = 0; i < targets; i++) out[i] = -1;
        for (int64_t row = 0, i = 0; row < call.height; row++)
            for (int64_t column = 0; column < call.width; column++, i++) {
                const double x = __builtin_rint(double(column) + double(flow[2 * i]));
                const double y = __builtin_rint(double(row) + double(flow[2 * i + 1]));
                const double d = double(depth[i]);
                if (!(x >= 0 && x <= last_x && y >= 0 && y <= last_y && d == d)) continue;
                const int64_t to = int64_t(y) * call.to_width + int64_t(x);
                if (out[to] >= 0 && !(d < nearest[to])) continue;
                out[to] = i, nearest[to] = d;
            }
    }
}

}  // namespace

Kernel choose_front(const Call &block) {
    const FrontCall &call = as<FrontCall>(block);
    if (call.wide_flow) return call.wide_depth ? front<double, double> : front<double, float>;
    return call.wide_depth ? front<float, double> : front<float, float>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
