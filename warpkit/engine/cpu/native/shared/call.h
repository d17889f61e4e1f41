// The parameter block of every kernel: 64-bit numbers, which Python fills by name.
//
// `warpkit_fields` passes the names to Python, so the two sides cannot disagree. Every block begins
// with the fields of `Call`; each family of kernels adds its own, as `WarpCall` does in
// warp_call.h. kernels.h lists the families. Arrays are passed as addresses.
#pragma once
#include <stdint.h>

namespace warpkit {

// The task (see kernels.h), its units, and the threads that run them: see `warpkit_run`. A unit is
// the work that one thread takes at a time.
#define WARPKIT_CALL_FIELDS(FIELD) \
    FIELD(task) FIELD(first_unit) FIELD(end_unit) FIELD(run) FIELD(threads) FIELD(team)

#define WARPKIT_FIELD(name) int64_t name;

struct Call {
    WARPKIT_CALL_FIELDS(WARPKIT_FIELD)
};

using Kernel = void (*)(const Call &, int64_t begin, int64_t end);

// A call with the type of its family.
template <class Family> inline const Family &as(const Call &call) {
    return static_cast<const Family &>(call);
}

// The target of an address in a call.
template <class T> inline T *at(int64_t address) { return reinterpret_cast<T *>(address); }

}  // namespace warpkit
