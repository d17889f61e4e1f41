// Points of a view's depths in another camera, and the gradients to depths, rays or the view's
// camera, pose, and the other camera: for whole fields, and for tiles of a warp.
#include "depth/depth_gradient.h"
#include "shared/kernels.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

template <class T, int KIND, Lens LENS>
void points(const Call &block, int64_t begin, int64_t end) {
    const DepthCall &call = as<DepthCall>(block);
    const Doubles none = Doubles{} + __builtin_nan(""), infinite = Doubles{} + __builtin_inf();
    const Marks marks(call);
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t index = unit / call.height;
        const DepthNumbers &item = at<DepthNumbers>(call.numbers)[index];
        ViewRow<T> view(call, item, index);
        view.enter(unit % call.height);
        for (int64_t column = 0; column < call.width; column += WIDE) {
            const int64_t n = call.width - column, to = view.place + column;
            Seen<T, KIND> seen(view, column, n);
            const Place p = shown_at<LENS>(call, item, seen);
            store_places(at<double>(call.points) + 2 * to, p, n);
            if (call.own) {
                const Mask ahead = seen.ahead();
                const Doubles reach = seen.reach(ahead);
                Doubles own = KIND == DEPTH_INVERSE ? seen.far / reach : reach * seen.back();
                own = chosen(seen.endless, infinite, own);
                store_some(at<double>(call.own) + to, chosen(ahead, own, none), n);
            }
            if (marks.to) marks.write(to, n, p);
        }
    }
}

template <class T, int KIND, Lens LENS>
void points_backward(const Call &block, int64_t begin, int64_t end) {
    const DepthCall &call = as<DepthCall>(block);
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t index = unit / call.height;
        const DepthNumbers item = sound_numbers(call, index);
        ViewRow<T> view(call, item, index);
        view.enter(unit % call.height);
        DepthSums sums;
        PoseSums pose;
        const double *grad = at<double>(call.grad_points) + 2 * view.place;
        back_row<T, KIND, LENS>(
            call, item, view, 0, call.width, at<double>(call.grad_own), sums, pose,
            [&](int64_t c) { return load_places(grad + 2 * c, call.width - c); });
        pose.add_to(sums);
        write_sums(item, sums, at<double>(call.sums) + unit * DepthSums::NUMBERS);
    }
}

// Prefetch the same row of the next tile, or of the first one below: else each row of depths would
// wait for memory, which takes longer than everything else.
template <class T> INLINE void fetch_next(const ViewRow<T> &view, const ViewPart &part,
                                          int64_t row) {
    int64_t next = part.column + TILE;
    if (next >= view.call.width) next = TILE * view.call.width;
    if (row * view.call.width + next + TILE > view.area) return;
    for (int64_t c = 0; c < TILE; c += 64 / int64_t(sizeof(T)))
        __builtin_prefetch(view.depths + next + c);
    for (int64_t c = 0; view.rays && c < TILE; c += 8)
        for (int k = 0; k < 3; k++) __builtin_prefetch(view.rays + k * view.area + next + c);
}

template <class T, int KIND, Lens LENS> void find_rows(const DepthCall &call, const ViewPart &part,
                                                       int64_t step, double *x, double *y) {
    const DepthNumbers &item = at<DepthNumbers>(call.numbers)[part.index];
    ViewRow<T> view(call, item, part.index);
    const Marks marks(call);
    const int64_t first = part.column, columns = part.columns, end = part.row + part.rows;
    for (int64_t r = part.row; r < end; r++, x += TILE, y += TILE) {
        view.enter(r);
        fetch_next(view, part, r);
        for (int64_t c = 0; c < columns; c += WIDE) {
            Seen<T, KIND> seen(view, first + c, columns - c);
            const Place p = shown_at<LENS>(call, item, seen);
            store(x + c, p.x), store(y + c, p.y);
            if (marks.to) marks.write(view.place + first + c, columns - c, p);
        }
        const int64_t last = columns - 1;
        for (int64_t c = last + 1; c % step; c++) x[c] = x[last], y[c] = y[last];
    }
}

template <class T, int KIND, Lens LENS>
void back_rows(const DepthCall &call, const DepthNumbers &item, const ViewPart &part,
               const double *x, const double *y, DepthSums &sums) {
    ViewRow<T> view(call, item, part.index);
    PoseSums pose;
    for (int64_t r = part.row; r < part.row + part.rows; r++, x += TILE, y += TILE) {
        view.enter(r);
        back_row<T, KIND, LENS>(
            call, item, view, part.column, part.columns, nullptr, sums, pose,
            [&](int64_t c) { return Place{load<Doubles>(x + c), load<Doubles>(y + c)}; });
    }
    pose.add_to(sums);
}

// All that depends on the depths' type and kind, and on the other lens.
struct Chosen {
    Kernel forward, backward;
    DepthRows rows;
};

template <class T, int KIND, Lens LENS> Chosen all_of() {
    return {points<T, KIND, LENS>,
            points_backward<T, KIND, LENS>,
            {find_rows<T, KIND, LENS>, back_rows<T, KIND, LENS>}};
}

template <class T, int KIND> Chosen of_lens(const DepthCall &call) {
    if (call.fisheye) return all_of<T, KIND, FISHEYE>();
    return call.coefficients ? all_of<T, KIND, BROWN>() : all_of<T, KIND, PINHOLE>();
}

template <class T> Chosen of_kind(const DepthCall &call) {
    if (call.kind == DEPTH_Z) return of_lens<T, DEPTH_Z>(call);
    if (call.kind == DEPTH_RAY) return of_lens<T, DEPTH_RAY>(call);
    return of_lens<T, DEPTH_INVERSE>(call);
}

Chosen chosen_for(const DepthCall &call) {
    return call.wide ? of_kind<double>(call) : of_kind<float>(call);
}

}  // namespace

DepthRows depth_rows(const DepthCall &call) { return chosen_for(call).rows; }

DepthNumbers sound_numbers(const DepthCall &call, int64_t index) {
    DepthNumbers item = at<DepthNumbers>(call.numbers)[index];
    if (item.sound != 0) return item;
    item = DepthNumbers{};
    item.other.fx = item.other.fy = item.own[0] = item.own[1] = 1;
    return item;
}

void write_sums(const DepthNumbers &item, const DepthSums &sums, double *to) {
    sums.write(to);
    for (int i = 0; i < 4; i++) to[AT_OWN + i] /= item.own[i % 2];
}

Kernel choose_depth_points(const Call &block) { return chosen_for(as<DepthCall>(block)).forward; }

Kernel choose_depth_points_backward(const Call &block) {
    return chosen_for(as<DepthCall>(block)).backward;
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
