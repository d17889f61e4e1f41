// Memory that kernels work in, kept from call to call: allocating it anew costs more than a small
// warp. A few free blocks are in slots, which are exchanged atomically. So there is no lock that a
// fork could leave closed, nothing belongs to a thread, and there are never more blocks than
// kernels that ran at the same time.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace warpkit {

// Aligned to 64 bytes. Null if there is none: `warpkit_run` then tells Python, which raises
// MemoryError, and the kernel returns.
void *take_memory(size_t bytes);
void give_memory(void *memory);

// A T for the duration of a kernel, with arbitrary contents. A kernel begins with
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

// An array of numbers for the duration of a kernel, in the same way.
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
