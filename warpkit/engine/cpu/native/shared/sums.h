// Sums that have the same bits for every instruction set.
#pragma once
#include "shared/vec.h"

namespace warpkit {
namespace WARPKIT_ISA {

// Sums over places, each in eight lanes for any register width: a place adds to the lane of its
// number modulo 8. All instruction sets add in the same order.
template <int COUNT_OF_SUMS> struct SumsByEights {
    static constexpr int NUMBERS = COUNT_OF_SUMS, EIGHT = 8;
    static_assert(EIGHT % LANES<double> == 0, "lanes of a register go into the eight");
    alignas(64) double lanes[NUMBERS][EIGHT] = {};

    INLINE void add(int number, int64_t place, Vec<double, LANES<double>> v) {
        double *to = lanes[number] + place % EIGHT;
        store(to, load<Vec<double, LANES<double>>>(to) + v);
    }

    void write(double *to) const {
        for (int i = 0; i < NUMBERS; i++) {
            const double *l = lanes[i];
            to[i] = ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
        }
    }
};

}  // namespace WARPKIT_ISA
}  // namespace warpkit
