// Memory that kernels work in, kept from call to call: to ask for it anew costs more than a small
// warp. A few blocks wait in slots, which are exchanged atomically: no lock that a fork could leave
// closed, nothing that belongs to a thread, and never more blocks than ran at the same time.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace warpkit {

// On a multiple of 64 bytes. Null where there is none: `warpkit_run` says so to Python, which
// raises MemoryError, and the kernel returns.
void *take_memory(size_t bytes);
void give_memory(void *memory);

// A T for the time of a kernel; its contents are whatever was left there. A kernel begins with
//
//     Borrowed<Tile> memory;
//     if (!memory) return;
template <class T> class Borrowed {
    void *memory = take_memory(sizeof(T));

  public:
    Borrowed() = default;
    Borrowed(const Borrowed &) = delete;
    Borrowed &operator=(const Borrowed &) = delete;
    ~Borrowed() { give_memory(memory); }
    explicit operator bool() const { return memory; }
    T &operator*() { return *static_cast<T *>(memory); }
};

// So many numbers for the time of a kernel, in the same way.
template <class T> class BorrowedRow {
    void *memory;

  public:
    T *const numbers;

    explicit BorrowedRow(int64_t count)
        : memory(take_memory(size_t(count) * sizeof(T))), numbers(static_cast<T *>(memory)) {}
    BorrowedRow(const BorrowedRow &) = delete;
    BorrowedRow &operator=(const BorrowedRow &) = delete;
    ~BorrowedRow() { give_memory(memory); }
    explicit operator bool() const { return memory; }
};

}  // namespace warpkit
