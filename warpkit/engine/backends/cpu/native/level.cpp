// Smooths pictures along both axes, with repeated edges, and computes the central differences of
// the result: `smoothed` of alignment/pyramid.py and `slopes` of equations.py, in one pass over a
// picture that stays in the caches.
#include "kernels.h"
#include "memory.h"
#include "vec.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

constexpr int64_t MOST = 8;  // neighbours on each side

template <class T> void smooth_row(const T *from, T *to, int64_t width, const T *w, int64_t reach) {
    auto one = [&](int64_t x) {
        T total = from[x] * w[0];
        for (int64_t k = 1; k <= reach; k++)
            total += w[k] * (from[most<int64_t>(x - k, 0)] + from[least(x + k, width - 1)]);
        to[x] = total;
    };
    const int64_t first = least(reach, width), last = most(width - reach, first);
    for (int64_t x = 0; x < first; x++) one(x);
    for (int64_t x = first; x < last; x++) {
        T total = from[x] * w[0];
        for (int64_t k = 1; k <= reach; k++) total += w[k] * (from[x - k] + from[x + k]);
        to[x] = total;
    }
    for (int64_t x = last; x < width; x++) one(x);
}

template <class T> void smooth_level(const Call &call, int64_t begin, int64_t end) {
    const LevelCall &p = as<LevelCall>(call);
    const int64_t width = p.width, height = p.height, area = width * height;
    BorrowedRow<T> memory(area);
    if (!memory) return;
    T *const rows = memory.numbers, weights[MOST + 1];
    for (int64_t k = 0; k <= p.reach; k++) weights[k] = T(at<const double>(p.weights)[k]);
    for (int64_t unit = begin; unit < end; unit++) {
        const T *from = at<const T>(p.image) + unit * area;
        T *to = at<T>(p.out) +
                (unit / p.channels * p.out_planes + unit % p.channels) * area;
        for (int64_t y = 0; y < height; y++)
            smooth_row(from + y * width, rows + y * width, width, weights, p.reach);
        for (int64_t y = 0; y < height; y++) {
            T *line = to + y * width;
            const T *middle = rows + y * width;
            for (int64_t x = 0; x < width; x++) line[x] = middle[x] * weights[0];
            for (int64_t k = 1; k <= p.reach; k++) {
                const T *above = rows + most<int64_t>(y - k, 0) * width;
                const T *below = rows + least(y + k, height - 1) * width, weight = weights[k];
                for (int64_t x = 0; x < width; x++) line[x] += weight * (above[x] + below[x]);
            }
        }
        if (!p.out_x) continue;
        T *along_x = at<T>(p.out_x) + unit * area, *along_y = at<T>(p.out_y) + unit * area;
        for (int64_t y = 0; y < height; y++) {
            const T *line = to + y * width, *above = to + most<int64_t>(y - 1, 0) * width;
            const T *below = to + least(y + 1, height - 1) * width;
            T *dx = along_x + y * width, *dy = along_y + y * width;
            for (int64_t x = 0; x < width; x++) dy[x] = (below[x] - above[x]) / 2;
            for (int64_t x = 1; x < width - 1; x++) dx[x] = (line[x + 1] - line[x - 1]) / 2;
            const int64_t last = width - 1;
            dx[0] = (line[least<int64_t>(1, last)] - line[0]) / 2;
            dx[last] = (line[last] - line[most<int64_t>(last - 1, 0)]) / 2;
        }
    }
}

}  // namespace

Kernel choose_smooth_level(const Call &call) {
    return as<LevelCall>(call).doubles ? smooth_level<double> : smooth_level<float>;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
