// The gradients of a plane sweep: strips of rows sample again, for all gradients at once. Each adds
// to windows of its own, the rows of the sources that it reads, which the forward pass has noted;
// then `sweep_to_sources` adds the windows up in their order. Strips depend on shapes and places,
// never on threads.
#include "matching/sweep_taps.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// The gradient of a sample, or of the variance's difference from its mean.
template <int MEASURE> INLINE Piece slope(Piece push, Piece s, Piece r, Piece mean) {
    const Piece d = s - r;
    if constexpr (MEASURE == CORRELATION) return push * r;
    else if constexpr (MEASURE == DIFFERENCE) return -push;
    else if constexpr (MEASURE == ABSOLUTE) return d > 0 ? push : d < 0 ? -push : d * 0;
    else if constexpr (MEASURE == SQUARED) return 2 * push * d;
    else return push * (d - mean);
}

// The gradients of each pixel's measures, one piece for each block of lanes.
template <int MEASURE>
INLINE void read_gradients(const SweepCall &call, const Workshop &shop, int64_t item, int64_t place,
                           int64_t n, const Wholes views) {
    const int64_t area = call.height * call.width, lanes = least<int64_t>(call.lanes, RUN);
    const float each = float(double(call.groups) / double(call.channels));
    const Piece count = convert<Piece>(views);
    Piece scale;
    if constexpr (IS_VARIANCE<MEASURE>) {
        const Piece all = MEASURE == VARIANCE ? count + 1 : larger(count, splat<Piece>(1.0f));
        scale = 2 * each / all;
    } else {
        scale = views > 0 ? each / count : Piece{};
    }
    for (int64_t g = 0; g < shop.blocks; g++) {
        Piece *v = shop.groups.numbers + g * RUN;
        for (int64_t l = 0; l < lanes; l++) {
            Piece push{};
            if (g * RUN + l < call.groups) {
                const int64_t group = item * call.groups + g * RUN + l;
                push = scale * load_piece(at<float>(call.grad) + group * call.planes * area + place, n);
            }
            for (int64_t m = l; m < RUN; m += lanes) v[m] = push;
        }
        transpose(v);
    }
}

// What a thread works in beside the forward pass's memory.
struct Room {
    const int64_t views, stride, padded, bytes;
    BorrowedRow<float> view;       // a row of the view, and its gradient
    BorrowedRow<Piece> samples;    // of each view
    BorrowedRow<Piece> products;   // of each view and tap: the run's pixels
    BorrowedRow<double> turned;    // the gradients of turned rays, of rays, and of a run's shares
    BorrowedRow<char> gradients;   // `PlaceGradients` of each view

    explicit Room(const SweepCall &call, const Workshop &shop)
        : views(call.views),
          stride(shop.stride),
          padded(call.padded),
          bytes(bytes_of_gradients()),
          view(2 * stride * padded),
          samples(views * PIECES),
          products(views * 4 * RUN),
          turned(3 * (views + 1) * stride + 2 * RUN),
          gradients(views * bytes) {}
    explicit operator bool() const { return view && samples && products && turned && gradients; }

    float *to_view() const { return view.numbers + stride * padded; }
    RowOfThree to_rays() const { return {turned.numbers + 3 * views * stride, stride}; }
    double *to_near() const { return turned.numbers + 3 * (views + 1) * stride; }
    PlaceGradients &of(int64_t v) const {
        return *reinterpret_cast<PlaceGradients *>(gradients.numbers + v * bytes);
    }
    void begin_row() const {
        for (int64_t v = 0; v < views; v++)
            WARPKIT_ISA::begin_row(of(v), {turned.numbers + 3 * v * stride, stride});
        memset(to_rays().numbers, 0, size_t(3 * stride) * sizeof(double));
    }
};

// Adds what pixel k's measures, of the pieces from b on, give to its samples, and returns what they
// give to the view's pixel.
template <int MEASURE, int P>
INLINE void through_samples(const SweepCall &call, const Workshop &shop, const Room &room,
                            int64_t item, const Window *windows, const float *ref, int k, int64_t b,
                            float part, const Piece *push, bool places, Piece *to_ref) {
    const int64_t padded = call.padded;
    Piece r[P] = {}, mean[P] = {};
    if constexpr (MEASURE != VARIANCE_ALONE)
        for (int i = 0; i < P; i++) r[i] = load<Piece>(ref + b + i * RUN);
    bool some = MEASURE != VARIANCE_ALONE;
    for (int64_t v = 0; v < shop.views; v++) {
        const Taps &taps = shop.taps.numbers[v];
        Piece *s = room.samples.numbers + v * P;
        if (taps.used >> k & 1) sample<P>(taps, source_at(call, item, v) + b, padded, k, s);
        else if (call.inside) continue;
        else
            for (int i = 0; i < P; i++) s[i] = Piece{};
        if constexpr (!IS_VARIANCE<MEASURE>) continue;
        for (int i = 0; i < P && !some; i++) r[i] = s[i];
        some = true;
        for (int i = 0; i < P; i++) mean[i] += s[i] - r[i];
    }
    for (int i = 0; i < P; i++) mean[i] *= part, to_ref[i] = Piece{};
    for (int64_t v = 0; v < shop.views; v++) {
        const Taps &taps = shop.taps.numbers[v];
        const bool used = taps.used >> k & 1;
        if (!used && call.inside) continue;
        const Piece *s = room.samples.numbers + v * P;
        Piece g[P];
        for (int i = 0; i < P; i++) {
            g[i] = slope<MEASURE>(push[i], s[i], r[i], mean[i]);
            to_ref[i] += MEASURE == CORRELATION ? push[i] * s[i] : -g[i];
        }
        if (!used) continue;
        const int32_t none = int32_t(call.source_height * call.source_width);
        if (call.to_sources) {
            const Window &window = windows[v];
            float *sums = at<float>(call.sums) + b +
                          (window.start - window.first * call.source_width) * padded;
            for (int tap = 0; tap < 4; tap++) {
                const int32_t pixel = taps.pixel[tap][k];
                if (pixel == none) continue;
                const Piece weight = splat<Piece>(taps.weight[tap][k]);
                float *to = sums + pixel * padded;
                for (int i = 0; i < P; i++)
                    store(to + i * RUN, fma(weight, g[i], load<Piece>(to + i * RUN)));
            }
        }
        if (!places) continue;
        const float *source = source_at(call, item, v) + b;
        for (int tap = 0; tap < 4; tap++) {
            if (taps.pixel[tap][k] == none) continue;
            const float *from = source + taps.pixel[tap][k] * padded;
            Piece &product = room.products.numbers[(v * 4 + tap) * RUN + k];
            Piece sum = product;
            for (int i = 0; i < P; i++) sum = fma(g[i], load<Piece>(from + i * RUN), sum);
            product = sum;
        }
    }
}

// The gradients of a run's places, depths, cameras and lenses.
INLINE void through_places(const SweepCall &call, const Workshop &shop, const Room &room,
                           BackPlaces back, int64_t item, int64_t x, double *to_near,
                           double *to_far) {
    alignas(64) double gx[RUN], gy[RUN];
    for (int64_t v = 0; v < shop.views; v++) {
        const Taps &taps = shop.taps.numbers[v];
        if (!taps.used) continue;
        Piece dots[4];
        for (int tap = 0; tap < 4; tap++)
            dots[tap] = sums_of<RUN>(room.products.numbers + (v * 4 + tap) * RUN);
        const Piece along_x =
            (1 - taps.fy) * (dots[1] - dots[0]) + taps.fy * (dots[3] - dots[2]);
        const Piece along_y =
            (1 - taps.fx) * (dots[2] - dots[0]) + taps.fx * (dots[3] - dots[1]);
        for (int k = 0; k < RUN; k++) {
            const bool used = taps.used >> k & 1;
            gx[k] = used ? double(along_x[k]) : 0, gy[k] = used ? double(along_y[k]) : 0;
        }
        back(call, shop.places(call, item, v, x), gx, gy, room.of(v), to_near, to_far);
    }
}

// Writes the gradients of a run's depths.
INLINE void write_depths(const SweepCall &call, const Workshop &shop, int64_t item, int64_t d,
                         int64_t y, int64_t x, int64_t n, const double *to_near,
                         const double *to_far) {
    Numbers found = depth_gradient(call, shop.near() + x, shop.far() + x, to_near, to_far);
    if (call.flat) {
        for (int64_t k = n; k < RUN; k++) found[k] = 0;
        at<double>(call.to_depths)[(item * call.height + y) * call.planes + d] += sum(found);
        return;
    }
    const int64_t place = ((item * call.planes + d) * call.height + y) * call.width + x;
    for (int64_t k = 0; k < n; k++) {
        if (call.wide) at<double>(call.to_depths)[place + k] = found[k];
        else at<float>(call.to_depths)[place + k] = float(found[k]);
    }
}

template <int MEASURE>
void row_backward(const SweepCall &call, Workshop &shop, const Room &room, BackPlaces back,
                  const Window *windows, int64_t item, int64_t y) {
    const Channels channels{at<int32_t>(call.order), call.padded};
    const int64_t area = call.height * call.width, padded = call.padded, views = call.views;
    const bool places = call.row_sums;
    if (call.view) read_view(call, channels, item, y, room.view.numbers);
    shop.begin_row(call, item, y);
    room.begin_row();
    memset(room.to_view(), 0, size_t(shop.stride * padded) * sizeof(float));
    if (call.needs_depths && call.flat)
        memset(at<double>(call.to_depths) + (item * call.height + y) * call.planes, 0,
               size_t(call.planes) * sizeof(double));
    for (int64_t d = 0; d < call.planes; d++) {
        shares_of_row(call, item, d, y, shop.near(), shop.far());
        for (int64_t x = 0; x < call.width; x += RUN) {
            const int64_t n = least<int64_t>(RUN, call.width - x);
            const int64_t place = d * area + y * call.width + x;
            const uint32_t any = shop.look(call, item, x, n);
            Wholes count = splat<Wholes>(int32_t(views));
            if (call.inside) {
                count = Wholes{};
                for (int64_t v = 0; v < views; v++) count -= shop.taps.numbers[v].seen;
            }
            read_gradients<MEASURE>(call, shop, item, place, n, count);
            if (places)
                memset(room.products.numbers, 0, size_t(views * 4 * RUN) * sizeof(Piece));
            for (uint32_t rest = any; rest; rest &= rest - 1) {
                const int k = __builtin_ctz(rest);
                const float *ref = room.view.numbers + (x + k) * padded;
                float *to = room.to_view() + (x + k) * padded;
                int64_t block = 0;
                by_pieces(padded, [&](auto pieces, int64_t b) {
                    constexpr int P = pieces;
                    Piece push[P], to_ref[P];
                    for (int i = 0; i < P; i++) {
                        push[i] = shop.groups.numbers[block * RUN + k];
                        if (++block == shop.blocks) block = 0;
                    }
                    through_samples<MEASURE, P>(call, shop, room, item, windows, ref, k, b,
                                                part_of<MEASURE>(count[k]), push, places, to_ref);
                    for (int i = 0; i < P; i++)
                        store(to + b + i * RUN, load<Piece>(to + b + i * RUN) + to_ref[i]);
                });
            }
            if (!places) continue;
            double *to_near = room.to_near(), *to_far = to_near + RUN;
            memset(to_near, 0, 2 * RUN * sizeof(double));
            through_places(call, shop, room, back, item, x, to_near, to_far);
            if (call.needs_depths) write_depths(call, shop, item, d, y, x, n, to_near, to_far);
        }
    }
    for (int64_t x = 0; call.to_view && x < call.width; x += RUN)
        to_planes(channels, room.to_view() + x * padded, area, least<int64_t>(RUN, call.width - x),
                  at<float>(call.to_view) + item * call.channels * area + y * call.width + x);
    if (!places) return;
    const int64_t of_view = int64_t(sizeof(DepthNumbers) / sizeof(double));
    RowOfThree to_rays = room.to_rays();
    if (call.pinhole) to_rays.numbers = nullptr;
    for (int64_t v = 0; v < views; v++)
        finish_row(call, at<DepthNumbers>(call.numbers)[item * views + v], room.of(v), shop.rays(),
                   to_rays,
                   at<double>(call.row_sums) + ((item * call.height + y) * views + v) * of_view);
    for (int i = 0; i < 3 && call.to_rays; i++)
        memcpy(at<double>(call.to_rays) + (3 * item + i) * area + y * call.width,
               to_rays.part(i), size_t(call.width) * sizeof(double));
}

template <int MEASURE> void backward(const Call &block, int64_t begin, int64_t end) {
    const SweepCall &call = as<SweepCall>(block);
    Workshop shop(call);
    const Room room(call, shop);
    if (!shop || !room) return;
    const BackPlaces back = back_places(call);
    const int64_t line = call.source_width * call.padded;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t item = unit / call.strips, first = unit % call.strips * call.band;
        const Window *windows = at<Window>(call.windows) + unit * call.views;
        for (int64_t v = 0; call.to_sources && v < call.views; v++)
            memset(at<float>(call.sums) + windows[v].start * call.padded, 0,
                   size_t(windows[v].rows * line) * sizeof(float));
        for (int64_t y = first; y < least(call.height, first + call.band); y++)
            row_backward<MEASURE>(call, shop, room, back, windows, item, y);
    }
}

// A row of the sources' gradient: the windows of all strips that have it, in their order.
void add_windows(const Call &block, int64_t begin, int64_t end) {
    const SweepCall &call = as<SweepCall>(block);
    const int64_t width = call.source_width, height = call.source_height, padded = call.padded;
    const Channels channels{at<int32_t>(call.order), padded};
    BorrowedRow<float> row((width + RUN) * padded);
    if (!row) return;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t entry = unit / height, y = unit % height;
        memset(row.numbers, 0, size_t(width * padded) * sizeof(float));
        for (int64_t pair = 0; pair < call.items * call.views; pair++) {
            if (at<int64_t>(call.source_of)[pair] != entry) continue;
            const int64_t item = pair / call.views, v = pair % call.views;
            for (int64_t strip = 0; strip < call.strips; strip++) {
                const Window &window =
                    at<Window>(call.windows)[(item * call.strips + strip) * call.views + v];
                if (y < window.first || y >= window.first + window.rows) continue;
                const float *from = at<float>(call.sums) +
                                    (window.start + (y - window.first) * width) * padded;
                for (int64_t n = 0; n < width * padded; n += RUN)
                    store(row.numbers + n, load<Piece>(row.numbers + n) + load<Piece>(from + n));
            }
        }
        float *planes = at<float>(call.to_sources) + entry * call.channels * height * width +
                        y * width;
        for (int64_t x = 0; x < width; x += RUN)
            to_planes(channels, row.numbers + x * padded, height * width,
                      least<int64_t>(RUN, width - x), planes + x);
    }
}

}  // namespace

Kernel choose_sweep_backward(const Call &block) { WARPKIT_BY_MEASURE(backward) }

Kernel choose_sweep_to_sources(const Call &) { return add_windows; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
