// cv2.transform: multiplies the numbers of every pixel or point by a matrix, bit for bit as in
// engine/arithmetic/opencv_points.py, which describes the sums.
#include "shared/fused.h"
#include "shared/kernels.h"
#include "shared/memory.h"

namespace warpkit {
namespace WARPKIT_ISA {
namespace {

// How OpenCV sums the products of a matrix's row, and the offset in the row's last column.
enum Sum {
    DIAGONAL,        // only the diagonal's product and the offset, fused
    FUSED,           // from the first product on, fused; then the offset
    IN_ORDER,        // from the offset on, each product rounded
    IN_ORDER_FUSED,  // the same, fused
    CHAIN,           // from the offset on, fused, the last product first
    HALVES,          // the first two products, plus the third with the offset
    PAIRS,           // two pairs of rounded products, then the offset
    FIXED            // in integers
};

// Entries of at most this size count as 0 beside a diagonal.
template <class N> constexpr N SMALL = sizeof(N) == 4 ? N(1.1920928955078125e-07) : N(0x1p-52);
constexpr int FIXED_BITS = 10;
constexpr float FIXED_BOUNDS[] = {32, 32, 8192, 8192};  // for the matrix's columns

template <class F> INLINE F fma_once(F a, F b, F c) {
    if constexpr (sizeof(Element<F>) == 4) return fma_single(a, b, c);
    else return fma_double(a, b, c);
}

// T: a point's numbers; N: the type of sums.
template <class T, class N> struct Points {
    static constexpr int WIDE = LANES<N>;
    static constexpr bool FLOATS = std::is_same_v<T, N>;
    using F = Vec<N, WIDE>;
    using I = Vec<int32_t, WIDE>;
    using Numbers = Vec<T, WIDE>;

    const TransformCall &call;
    const int64_t c, rows;
    N *const matrix;  // (rows, c + 1)
    F *const numbers, *const sums;
    const int32_t *factors = nullptr;  // for FIXED: (rows, c + 1)

    // -- registers of points, split into their numbers and joined again --

    template <int C, int K> struct Parted {
        static constexpr int at(int i) { return C * i + K; }
    };
    template <int C, int J> struct Joined {
        static constexpr int at(int i) { return (J * WIDE + i) % C * WIDE + (J * WIDE + i) / C; }
    };
    template <int C, class V, size_t... K>
    static INLINE void part(const V *in, V *to, std::index_sequence<K...>) {
        if constexpr (C == 2) {
            V both[] = {in[0], in[1]};
            ((to[K] = pick<WIDE, Parted<C, K>>(both[0], both[1])), ...);
        } else {
            auto low = join(in[0], in[1]), high = join(in[2], in[C - 1]);
            ((to[K] = pick<WIDE, Parted<C, K>>(low, high)), ...);
        }
    }
    template <int C, class V, size_t... J>
    static INLINE void joined(const V *from, V *out, std::index_sequence<J...>) {
        if constexpr (C == 2) {
            V both[] = {from[0], from[1]};
            ((out[J] = pick<WIDE, Joined<C, J>>(both[0], both[1])), ...);
        } else {
            auto low = join(from[0], from[1]), high = join(from[2], from[C - 1]);
            ((out[J] = pick<WIDE, Joined<C, J>>(low, high)), ...);
        }
    }

    template <int C> static INLINE void take(const T *from, int64_t n, F *numbers) {
        T part_of_them[C * WIDE];
        if (n < WIDE) {
            memset(part_of_them, 0, sizeof part_of_them);
            memcpy(part_of_them, from, size_t(n * C) * sizeof(T));
            from = part_of_them;
        }
        F in[C];
        for (int j = 0; j < C; j++) in[j] = convert<F>(load<Numbers>(from + j * WIDE));
        if constexpr (C == 1) numbers[0] = in[0];
        else part<C>(in, numbers, std::make_index_sequence<C>{});
    }
    INLINE void take(const T *from, int64_t n, F *numbers) const {
        switch (c) {
            case 1: return take<1>(from, n, numbers);
            case 2: return take<2>(from, n, numbers);
            case 3: return take<3>(from, n, numbers);
            case 4: return take<4>(from, n, numbers);
            default:
                for (int64_t k = 0; k < c; k++)
                    for (int64_t i = 0; i < WIDE; i++)
                        numbers[k][i] = i < n ? N(from[i * c + k]) : N(0);
        }
    }

    template <int R> static INLINE void give(T *to, int64_t n, const F *sums) {
        F out[R];
        if constexpr (R == 1) out[0] = sums[0];
        else joined<R>(sums, out, std::make_index_sequence<R>{});
        T part_of_them[R * WIDE];
        T *const into = n < WIDE ? part_of_them : to;
        for (int j = 0; j < R; j++) store(into + j * WIDE, finished(out[j]));
        if (n < WIDE) memcpy(to, part_of_them, size_t(n * R) * sizeof(T));
    }
    INLINE void give(T *to, int64_t n, const F *sums) const {
        switch (rows) {
            case 1: return give<1>(to, n, sums);
            case 2: return give<2>(to, n, sums);
            case 3: return give<3>(to, n, sums);
            case 4: return give<4>(to, n, sums);
            default:
                for (int64_t r = 0; r < rows; r++) {
                    const Numbers row = finished(sums[r]);
                    for (int64_t i = 0; i < n; i++) to[i * rows + r] = row[i];
                }
        }
    }

    // Rounds to 32 bits, where NaN and numbers out of range become the smallest value, then clamps.
    static INLINE Numbers finished(F sum) {
        if constexpr (FLOATS) return sum;
        else {
            constexpr float END = 2147483648.0f;
            constexpr int32_t LOW = T(-1) > T(0) ? 0 : -32768;
            constexpr int32_t HIGH = sizeof(T) == 1 ? 255 : LOW < 0 ? 32767 : 65535;
            const I fits = (sum >= -END) & (sum < END);
            const I whole = fits ? nearest_int(sum) : I{} + INT32_MIN;
            return convert<Numbers>(larger(smaller(whole, I{} + HIGH), I{} + LOW));
        }
    }

    // -- sums --

    // Vectors of uint16 are signed: 32768 is subtracted before a sum is rounded, and added
    // afterwards.
    static constexpr N SHIFT = std::is_same_v<T, uint16_t> ? 32768 : 0;
    static INLINE F shifted_back(F sum) {
        if constexpr (!std::is_same_v<T, uint16_t>) return sum;
        else {
            const F whole = magnitude(sum) < 8388608.0f ? convert<F>(nearest_int(sum)) : sum;
            return whole + SHIFT;
        }
    }

    static INLINE F sum(Sum way, const F *numbers, int64_t c, const N *matrix, int64_t r) {
        const N *m = matrix + r * (c + 1);
        const auto factor = [&](int64_t k) { return splat<F>(m[k]); };
        switch (way) {
            case DIAGONAL: return fma_once(numbers[r], factor(r), factor(c));
            case FUSED: {
                F total = fma_once(numbers[0], factor(0), numbers[1] * m[1]);
                for (int64_t k = 2; k < c; k++) total = fma_once(numbers[k], factor(k), total);
                return total + m[c];
            }
            case IN_ORDER: {
                F total = factor(c);
                for (int64_t k = 0; k < c; k++) total = total + numbers[k] * m[k];
                return total;
            }
            case IN_ORDER_FUSED: {
                F total = factor(c);
                for (int64_t k = 0; k < c; k++) total = fma_once(numbers[k], factor(k), total);
                return total;
            }
            case CHAIN: {
                F total = splat<F>(m[c] - SHIFT);
                for (int64_t k = c - 1; k >= 0; k--) total = fma_once(numbers[k], factor(k), total);
                return shifted_back(total);
            }
            case PAIRS: {
                F first = numbers[0] * m[0] + numbers[1] * m[1];
                return (first + (numbers[2] * m[2] + numbers[3] * m[3])) + m[4];
            }
            default: {
                F first = fma_once(numbers[0], factor(0), numbers[1] * m[1]);
                return shifted_back(first +
                                    fma_once(numbers[2], factor(2), splat<F>(m[3] - SHIFT)));
            }
        }
    }

    // Sums three bytes' products in integers that wrap.
    static INLINE F sum_of_integers(const F *numbers, const int32_t *factors, int64_t r) {
        using U = Vec<uint32_t, WIDE>;
        const int32_t *m = factors + 4 * r;
        U total = U{} + uint32_t(m[3]);
        for (int k = 0; k < 3; k++) total += (U)convert<I>(numbers[k]) * (U{} + uint32_t(m[k]));
        return convert<F>(larger(smaller((I)total >> FIXED_BITS, I{} + 255), I{}));
    }

    // C: the numbers of a point before and after; 0: those in the call.
    template <int C> void go(Sum way, int64_t begin, int64_t stop) const {
        F before[C ? C : 1], after[C ? C : 1];
        F *const v = C ? before : numbers, *const found = C ? after : sums;
        for (int64_t i = begin; i < stop; i += WIDE) {
            const int64_t n = least<int64_t>(WIDE, stop - i);
            const T *from = at<T>(call.points) + i * c;
            T *to = at<T>(call.out) + i * rows;
            if constexpr (C > 0) {
                take<C>(from, n, v);
                for (int r = 0; r < C; r++) found[r] = sum(way, v, C, matrix, r);
                give<C>(to, n, found);
            } else {
                take(from, n, v);
                for (int64_t r = 0; r < rows; r++) found[r] = sum(way, v, c, matrix, r);
                give(to, n, found);
            }
        }
    }
    void go_by_integers(int64_t begin, int64_t stop) const {
        F v[3], found[3];
        for (int64_t i = begin; i < stop; i += WIDE) {
            const int64_t n = least<int64_t>(WIDE, stop - i);
            take<3>(at<T>(call.points) + i * 3, n, v);
            for (int r = 0; r < 3; r++) found[r] = sum_of_integers(v, factors, r);
            give<3>(at<T>(call.out) + i * 3, n, found);
        }
    }
    void make(Sum way, int64_t begin, int64_t stop) const {
        if (begin >= stop) return;
        if constexpr (std::is_same_v<T, uint8_t>)
            if (way == FIXED) return go_by_integers(begin, stop);
        if (c == 2 && rows == 2) go<2>(way, begin, stop);
        else if (c == 3 && rows == 3) go<3>(way, begin, stop);
        else go<0>(way, begin, stop);
    }
};

template <class N> bool is_diagonal(const N *matrix, int64_t rows, int64_t c) {
    if (rows != c) return false;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < c; k++)
            if (k != r && __builtin_fabs(double(matrix[r * (c + 1) + k])) > SMALL<N>) return false;
    return true;
}

bool is_within_bounds(const float *matrix) {
    for (int k = 0; k < 12; k++)
        if (!(__builtin_fabsf(matrix[k]) < FIXED_BOUNDS[k % 4])) return false;
    return true;
}

template <class T, class N> void transformed(const Call &block, int64_t begin, int64_t end) {
    using P = Points<T, N>;
    const TransformCall &call = as<TransformCall>(block);
    const int64_t c = call.channels, rows = call.rows, size = rows * (c + 1);
    BorrowedRow<typename P::F> registers(c + rows);
    BorrowedRow<N> matrix(size);
    if (!registers || !matrix) return;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k <= c; k++)
            matrix.numbers[r * (c + 1) + k] =
                k < call.columns ? N(at<double>(call.matrix)[r * call.columns + k]) : N(0);
    int32_t factors[12];
    P points{call, c, rows, matrix.numbers, registers.numbers, registers.numbers + c, factors};

    int64_t vectors = 0, pairs = 0;
    Sum first = FUSED, second = FUSED, last = FUSED;  // for vectors, pairs, the others
    const bool three = c == 3 && rows == 3;
    if (is_diagonal(matrix.numbers, rows, c)) last = DIAGONAL;
    else if (three) {
        vectors = call.vectors, first = CHAIN;
        if constexpr (std::is_same_v<T, uint16_t>) second = HALVES, pairs = call.pairs;
        if constexpr (std::is_same_v<T, uint8_t>) {
            const bool fixed = is_within_bounds(matrix.numbers);
            first = fixed ? FIXED : FUSED, last = first;
        }
    } else if (c == 4 && rows == 4) last = std::is_same_v<T, float> ? PAIRS : FUSED;
    else if (!((c == 2 && rows == 2) || (c == 3 && rows == 1)))
        last = P::FLOATS && (sizeof(N) == 4 || c < 4) ? IN_ORDER_FUSED : IN_ORDER;

    const int64_t start = begin * PIXELS_AT_ONCE;
    const int64_t stop = least(end * PIXELS_AT_ONCE, call.count);
    const auto scale = [&](bool after) {  // after: half a level is added to the rounded offset
        for (int64_t k = 0; k < 12; k++) {
            const float m = float(matrix.numbers[k]) + (k % 4 == 3 && !after ? 0.5f : 0.0f);
            factors[k] = int32_t(__builtin_rintf(m * (1 << FIXED_BITS)));
            if (k % 4 == 3 && after) factors[k] += 1 << (FIXED_BITS - 1);
        }
    };
    for (int64_t i = start, next; i < stop; i = next) {
        const int64_t line = i / call.line * call.line;
        next = least(stop, line + call.line);
        const int64_t one = clamped(line + vectors, i, next),
                      two = clamped(line + pairs, one, next);
        if (first == FIXED) scale(true);
        points.make(first, i, one);
        points.make(second, one, two);
        if (last == FIXED) scale(false);
        points.make(last, two, next);
    }
}

}  // namespace

Kernel choose_transformed(const Call &block) {
    switch (as<TransformCall>(block).type) {
        case UINT8: return transformed<uint8_t, float>;
        case INT16: return transformed<int16_t, float>;
        case UINT16: return transformed<uint16_t, float>;
        case FLOAT32: return transformed<float, float>;
        default: return transformed<double, double>;
    }
}

}  // namespace WARPKIT_ISA
}  // namespace warpkit
