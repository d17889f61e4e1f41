// The parameter block of every kernel: numbers of 64 bits, which Python fills by their names.
//
// `warpkit_fields` hands the names to Python, so that the two sides cannot disagree. Every block
// begins with the fields of `Call`; each family of kernels adds its own, as `WarpCall` does in
// warp_call.h, and kernels.h lists the families. Arrays come as addresses.
#pragma once
#include <stdint.h>

namespace warpkit {

// What is done (a task of kernels.h), which of its units, and by whom: see `warpkit_run`. A unit is
// what one thread takes at a time.
#define WARPKIT_CALL_FIELDS(FIELD) \
    FIELD(task) FIELD(first_unit) FIELD(end_unit) FIELD(run) FIELD(threads) FIELD(team)

#define WARPKIT_FIELD(name) int64_t name;

struct Call {
    WARPKIT_CALL_FIELDS(WARPKIT_FIELD)
};

using Kernel = void (*)(const Call &, int64_t begin, int64_t end);

// A call as its family's.
template <class Family> inline const Family &as(const Call &call) {
    return static_cast<const Family &>(call);
}

// What an address in a call points to.
template <class T> inline T *at(int64_t address) { return reinterpret_cast<T *>(address); }

}  // namespace warpkit
