// Replays recorded calls of the native library: scripts/sanitize kernels and scripts/compare aarch64 compile
// it together with the kernels, and record.py passes the calls one by one. After each call it writes
// the contents of the call's arrays.
//     replay [THREADS]
// makes each call in one piece; with THREADS it also makes it in two other ways, each on new arrays.
// First the library deals its units to a team, as with OpenMP; then each thread makes calls of one
// unit, as Python's pool does, without waiting for other threads.
//
// The format of a call: three 64-bit counts, of the block's numbers, of arrays, and of addresses in
// the block; then the block; for each array its size in bytes, its offset from 64-byte alignment and
// its contents; and for each address its position in the block and the index of its array.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" int warpkit_run(const int64_t *numbers);
extern "C" const char *warpkit_isa(void);

namespace {

constexpr int MOST = 64;                        // threads
enum { TASK, FIRST, END, RUN, THREADS, TEAM };  // the head of every block: native/shared/call.h

void take(void *to, size_t bytes) {
    if (fread(to, 1, bytes, stdin) != bytes) abort();
}

// A call as it was read.
struct Tape {
    int64_t counts[3];  // the block's numbers, arrays, addresses
    int64_t *block, (*places)[2], (*addresses)[2];
    char **bytes;

    bool read() {
        if (!fread(counts, sizeof counts, 1, stdin)) return false;
        block = static_cast<int64_t *>(calloc(size_t(counts[0]), 8));
        places = static_cast<int64_t(*)[2]>(calloc(size_t(counts[1]), 16));
        bytes = static_cast<char **>(calloc(size_t(counts[1]), sizeof(char *)));
        addresses = static_cast<int64_t(*)[2]>(calloc(size_t(counts[2]), 16));
        take(block, size_t(counts[0]) * 8);
        for (int64_t n = 0; n < counts[1]; n++) {
            take(places[n], 16);
            bytes[n] = static_cast<char *>(malloc(size_t(places[n][0])));
            take(bytes[n], size_t(places[n][0]));
        }
        take(addresses, size_t(counts[2]) * 16);
        return true;
    }
    void drop() {
        for (int64_t n = 0; n < counts[1]; n++) free(bytes[n]);
        free(block), free(places), free(bytes), free(addresses);
    }
};

// Runs a function on several threads, as OpenMP's GOMP_parallel does.
void on_team(void (*part)(void *), void *argument, unsigned threads, unsigned) {
    struct Part {
        void (*part)(void *);
        void *argument;
    } given = {part, argument};
    pthread_t made[MOST];
    for (unsigned n = 0; n < threads; n++)
        pthread_create(
            &made[n], nullptr,
            [](void *given) -> void * {
                static_cast<Part *>(given)->part(static_cast<Part *>(given)->argument);
                return nullptr;
            },
            &given);
    for (unsigned n = 0; n < threads; n++) pthread_join(made[n], nullptr);
}

// The units of one thread: every `step`-th.
struct Share {
    const int64_t *block;
    int64_t numbers, first, step;
};

void *run_share(void *given) {
    const Share &share = *static_cast<Share *>(given);
    int64_t *mine = static_cast<int64_t *>(malloc(size_t(share.numbers) * 8));
    memcpy(mine, share.block, size_t(share.numbers) * 8);
    for (int64_t unit = share.first; unit < share.block[END]; unit += share.step) {
        mine[FIRST] = unit, mine[END] = unit + 1;
        if (warpkit_run(mine)) abort();
    }
    free(mine);
    return nullptr;
}

void unit_by_unit(const Tape &tape, int threads) {
    pthread_t made[MOST];
    Share shares[MOST];
    for (int n = 0; n < threads; n++) {
        shares[n] = {tape.block, tape.counts[0], tape.block[FIRST] + n, threads};
        pthread_create(&made[n], nullptr, run_share, &shares[n]);
    }
    for (int n = 0; n < threads; n++) pthread_join(made[n], nullptr);
}

// Makes the call on new arrays, and writes their contents.
void make(Tape &tape, int threads, bool team) {
    char *memory[64];
    if (tape.counts[1] > 64) abort();
    for (int64_t n = 0; n < tape.counts[1]; n++) {
        void *whole = nullptr;  // ends with the array: a sanitizer sees reads beyond it
        const size_t bytes = size_t(tape.places[n][0]), before = size_t(tape.places[n][1]);
        if (posix_memalign(&whole, 64, before + bytes)) abort();
        memory[n] = static_cast<char *>(whole);
        memcpy(memory[n] + before, tape.bytes[n], bytes);
    }
    for (int64_t n = 0; n < tape.counts[2]; n++) {
        const int64_t array = tape.addresses[n][1];
        tape.block[tape.addresses[n][0]] =
            reinterpret_cast<int64_t>(memory[array] + tape.places[array][1]);
    }
    if (threads) tape.block[RUN] = 1;
    tape.block[THREADS] = team ? threads : 1;
    tape.block[TEAM] = team ? reinterpret_cast<int64_t>(&on_team) : 0;
    if (threads && !team) unit_by_unit(tape, threads);
    else if (warpkit_run(tape.block)) abort();
    for (int64_t n = 0; n < tape.counts[1]; n++) {
        const size_t bytes = size_t(tape.places[n][0]);
        if (fwrite(memory[n] + tape.places[n][1], 1, bytes, stdout) != bytes) abort();
        free(memory[n]);
    }
}

}  // namespace

int main(int count, char **arguments) {
    const int threads = count > 1 ? atoi(arguments[1]) : 0;
    if (!warpkit_isa() || threads > MOST) abort();
    fprintf(stderr, "replay: %s\n", warpkit_isa());
    Tape tape;
    while (tape.read()) {
        if (threads) make(tape, threads, true), make(tape, threads, false);
        make(tape, 0, false);
        fflush(stdout);
        tape.drop();
    }
    return 0;
}
