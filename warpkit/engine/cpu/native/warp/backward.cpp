// The backward kernel: the gradients to image, map and fill in one pass over the tiles.
//
// With g the incoming gradient of an output pixel, tap[j, i] the pixels that it reads and w = wy
// wx:
//
//     grad_image[tap]  += w g                                               image_gradient.h
//     grad_mapping     += g (sum wy dx tap, sum dy wx tap) (d point/d map)  mapping_gradient.h
//     grad_fill        += (1 - sum of w over the taps inside) g             here
//
// A unit of work is a list of jobs, which one thread does one after the other, as it does the tiles
// of a job and the pixels of a tile. The order of every sum depends only on shapes and the matrix:
// results are the same bits for any number of threads.
#include "warp/image_gradient.h"
#include "shared/kernels.h"
#include "warp/mapping_gradient.h"
#include "shared/memory.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// A part of a row with `left` remaining pixels; 0 beyond them.
template <class R> INLINE Vec<R, LANES<R>> row_part(const R *p, int64_t left) {
    return left >= LANES<R> ? load<Vec<R, LANES<R>>>(p) : load_first(p, left);
}

template <class R, int DOWN> struct Gradients {
    static constexpr int L = LANES<R>;
    using V = Vec<R, L>;

    Tile<R, DOWN> tile;
    Pushes<R> group;
    ImageGradient<R, DOWN> image;
    MappingGradient<R, DOWN> mapping;
    int64_t source;  // the start of the item's image

    void start(const Call &call) {
        const WarpCall &p = as<WarpCall>(call);
        tile.start(call);
        group.pixel = p.channels_last ? p.channels : 1;
        group.out_plane = p.channels_last ? 1 : p.out_height * p.out_width;
    }

    void add_tile(const WarpCall &p, const Job &job, int64_t x0, int64_t tile_row) {
        Tile<R, DOWN> &t = tile;
        bool owner = true;
        if (p.row_ranges) {  // only one band adds a shared tile's part to map and fill
            int64_t tiles_x = (p.out_width + TILE - 1) / TILE,
                    tiles_y = (p.out_height + TILE - 1) / TILE;
            int64_t number = (job.item * tiles_y + tile_row) * tiles_x + x0 / TILE;
            int64_t top = at<const int64_t>(p.row_ranges)[2 * number];
            int64_t bottom = at<const int64_t>(p.row_ranges)[2 * number + 1];
            owner = job.band <= top && top < job.band_end;
            if (!owner && (bottom < job.band || top >= job.band_end)) return;
        }
        bool slopes = p.needs_mapping && owner && p.taps > 1;
        t.look(p, job.item, x0, tile_row * TILE, slopes);
        for (int64_t k = 0; k < p.channels && !t.empty && (p.needs_image || slopes); k += GROUP) {
            begin_group(p, job, k);
            if (p.channels_last) collect_pixels(p);
            else collect_planes(p);
            if (p.needs_image) image.add(p, job, t, group);
            if (slopes) mapping.add_slopes(p, job, t, group);
        }
        if (slopes) mapping.write(p, job, t);
        if (p.needs_fill && owner && !t.whole)
            for (int64_t k = 0; k < p.channels; k++) add_fill(p, job, k);
    }

  private:
    // The incoming gradient of a channel at the tile's corner.
    const R *incoming(const WarpCall &p, const Job &job, int64_t channel) const {
        int64_t item = job.item * p.channels * p.out_height * p.out_width;
        int64_t corner = tile.y0 * p.out_width + tile.x0;
        return at<const R>(p.grad) + item + channel * group.out_plane + corner * group.pixel;
    }

    // Channels starting with `first`.
    void begin_group(const WarpCall &p, const Job &job, int64_t first) {
        Pushes<R> &g = group;
        int64_t area = p.height * p.width, size = p.channels * area;
        g.first = first, g.count = int(least<int64_t>(GROUP, p.channels - first));
        g.grad = incoming(p, job, first);
        g.source = source, g.plane = p.channels_last ? 1 : area;
        g.target = at<R>(p.grad_image) + (p.listed ? 0 : job.accumulator * size);
        // the next box to read: the same one in the next channels, or the next tile's in the first
        int64_t rest = p.channels - first - g.count, next = rest > 0 ? first + g.count : 0;
        g.ahead = int(least<int64_t>(GROUP, rest > 0 ? rest : p.channels));
        g.moved = rest <= 0;
        g.grad_ahead = incoming(p, job, next);
        if (g.moved) g.grad_ahead += (tile.next_y(p) * p.out_width + tile.next_x(p)) * g.pixel;
        g.image_ahead = at<const R>(p.image) + g.source + next * p.plane;
        g.target_ahead = g.target + next * g.plane;
    }

    // Fill `pushed`; 0 for absent channels, and for pixels that read nothing.
    void collect_planes(const WarpCall &p) {
        const Tile<R, DOWN> &t = tile;
        const int count = group.count;
        for (int64_t r = 0; r < t.height; r += DOWN) {
            fetch_incoming(p, r);
            for (int64_t c = 0; c < t.width; c += L) {
                V v[GROUP][DOWN] = {};
                for (int n = 0; n < DOWN && r + n < t.height; n++) {
                    const R *row = group.grad + (r + n) * p.out_width + c;
                    for (int k = 0; k < count; k++)
                        v[k][n] = row_part(row + k * group.out_plane, t.width - c);
                }
                for (int k = 0; k < count; k++) t.turn(v[k]);
                for (int n = 0; n < DOWN; n++) {
                    int64_t q = t.number(r, c) + n * L;
                    V each[GROUP];
                    for (int k = 0; k < GROUP; k++) {
                        each[k] = v[k][n];
                        if (!t.whole) each[k] = t.nowhere(q) ? V{} : each[k];
                    }
                    store(group.pushed + GROUP * q, interleave(each));
                }
            }
        }
    }

    // The same for channels-last images, which stay channels-last.
    void collect_pixels(const WarpCall &p) {
        using Channels = Vec<R, GROUP>;
        const Tile<R, DOWN> &t = tile;
        const R *grad = group.grad;
        R *pushed = group.pushed;
        memset(pushed, 0, sizeof group.pushed);
        for (int64_t r = 0; r < t.height; r++, grad += p.out_width * group.pixel)
            for (int64_t c = 0; c < t.width; c++) {
                int64_t q = t.number(r, c);
                if (!t.whole && t.missing[q] == R(NO_TAP)) continue;
                const R *from = grad + c * group.pixel;
                if (group.count == GROUP) store(pushed + GROUP * q, load<Channels>(from));
                else
                    for (int k = 0; k < group.count; k++) pushed[GROUP * q + k] = from[k];
            }
    }

    // Prefetch DOWN rows of an incoming gradient, starting with row r.
    INLINE void fetch_incoming(const WarpCall &p, int64_t r) const {
        for (int k = 0; k < group.ahead; k++)
            for (int64_t n = r; n < r + DOWN; n++)
                for (int64_t x = 0; x < TILE; x += 64 / int(sizeof(R)))
                    __builtin_prefetch(group.grad_ahead + k * group.out_plane + n * p.out_width +
                                       x);
    }

    // The fill's gradient: one value for every pixel of a background, otherwise one sum per
    // channel, in the same number of lanes on every processor.
    void add_fill(const WarpCall &p, const Job &job, int64_t channel) {
        const Tile<R, DOWN> &t = tile;
        constexpr int SUMS = 64 / int(sizeof(R));
        double sums[SUMS] = {};
        const R *grad = incoming(p, job, channel);
        double *dense = at<double>(p.grad_fill);
        dense += (job.item * p.channels + channel) * p.out_height * p.out_width;
        dense += t.y0 * p.out_width + t.x0;
        for (int64_t r = 0; r < t.height; r++)
            for (int64_t c = 0; c < t.width; c++) {
                R share = t.missing[t.number(r, c)];
                share = share == R(ALL_TAPS) ? R(0) : share == R(NO_TAP) ? R(1) : share;
                R push = share != 0 ? share * grad[(r * p.out_width + c) * group.pixel] : R(0);
                if (p.dense) dense[r * p.out_width + c] = push;
                else sums[c % SUMS] += push;
            }
        if (p.dense) return;
        for (int n = SUMS / 2; n; n /= 2)
            for (int k = 0; k < n; k++) sums[k] += sums[n + k];
        at<double>(p.grad_fill)[job.slot * p.channels + channel] += sums[0];
    }
};

template <class R, int DOWN> void backward(const Call &call, int64_t begin, int64_t end) {
    WarpCall p = as<WarpCall>(call);
    const int64_t buffer = p.grad_image;
    Borrowed<Gradients<R, DOWN>> memory;
    if (!memory) return;
    Gradients<R, DOWN> &g = *memory;
    g.start(call);
    const int64_t *starts = at<const int64_t>(p.starts);
    for (int64_t n = starts[begin]; n < starts[end]; n++) {
        const Job &job = at<const Job>(p.jobs)[n];
        if (p.needs_image)
            memset(at<R>(buffer) + job.clear, 0, size_t(job.clear_end - job.clear) * sizeof(R));
        if (job.first_row == job.end_row) continue;
        g.source = p.enter(job.item);
        const bool of_view = g.tile.view && p.needs_mapping;
        if (of_view) g.mapping.begin_view(g.tile, at<const int64_t>(p.mapping_of)[job.item]);
        for (int64_t row = job.first_row; row < job.end_row; row++)
            for (int64_t x0 = 0; x0 < p.out_width; x0 += TILE) g.add_tile(p, job, x0, row);
        if (of_view) g.mapping.end_view(g.tile, job);
    }
}

// The first and the last image row that each tile reads; the last is before the first if there is
// none. Units are rows of tiles, numbered across all items.
void row_ranges(const Call &call, int64_t begin, int64_t end) {
    WarpCall p = as<WarpCall>(call);
    Borrowed<Tile<float, 1>> memory;
    if (!memory) return;
    Tile<float, 1> &t = *memory;
    t.start(call);
    int64_t tile_rows = (p.out_height + TILE - 1) / TILE, tiles_x = (p.out_width + TILE - 1) / TILE;
    int64_t *to = at<int64_t>(p.row_ranges) + 2 * begin * tiles_x;
    for (int64_t unit = begin; unit < end; unit++) {
        p.enter(unit / tile_rows);
        for (int64_t x0 = 0; x0 < p.out_width; x0 += TILE, to += 2) {
            t.look(p, unit / tile_rows, x0, unit % tile_rows * TILE);
            to[0] = t.top, to[1] = t.top + t.rows - 1;
            if (t.empty) to[0] = 0, to[1] = -1;
            else if (misses(p.border_y) || p.border_y == REPLICATE)
                to[0] = clamped(to[0], 0, p.height - 1), to[1] = clamped(to[1], 0, p.height - 1);
            else if (to[0] < 0 || to[1] >= p.height) to[0] = 0, to[1] = p.height - 1;
        }
    }
}

}  // namespace

// float32 and float64.
Kernel choose_backward(const Call &call) {
    const WarpCall &p = as<WarpCall>(call);
    if (p.type == FLOAT64) return backward<double, 1>;
    return p.taps == 2 ? backward<float, DOWN_OF<float, 2>> : backward<float, 1>;
}

Kernel choose_row_ranges(const Call &) { return row_ranges; }

}  // namespace WARPKIT_ISA
}  // namespace warpkit
