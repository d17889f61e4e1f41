// Makes recorded calls of the native library again: scripts/compare_aarch64 compiles it together
// with the kernels, for a processor that is emulated. Reads calls from its input, and writes to its
// output what their arrays hold afterwards.
//
// A call is three numbers of 64 bits: of the block's numbers, of its arrays, and of the addresses
// in the block; then the block; of each array its bytes and where it lies on 64 of them, and these
// bytes; and of each address its place in the block and the array that it is of.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern "C" int warpkit_run(const int64_t *numbers);
extern "C" const char *warpkit_isa(void);

static void take(void *to, size_t bytes) {
    if (fread(to, 1, bytes, stdin) != bytes) abort();
}

int main() {
    fprintf(stderr, "%s\n", warpkit_isa());
    int64_t counts[3];
    while (fread(counts, sizeof counts, 1, stdin)) {
        const int64_t numbers = counts[0], arrays = counts[1], addresses = counts[2];
        int64_t *block = (int64_t *)malloc(size_t(numbers) * 8);
        char **memory = (char **)malloc(size_t(arrays) * sizeof(char *));
        char **array = (char **)malloc(size_t(arrays) * sizeof(char *));
        int64_t *bytes = (int64_t *)malloc(size_t(arrays) * 8);
        take(block, size_t(numbers) * 8);
        for (int64_t n = 0; n < arrays; n++) {
            int64_t place[2];
            take(place, sizeof place);
            void *whole = nullptr;
            if (posix_memalign(&whole, 64, size_t(place[0] + 64))) abort();
            memory[n] = (char *)whole, array[n] = memory[n] + place[1], bytes[n] = place[0];
            take(array[n], size_t(bytes[n]));
        }
        for (int64_t n = 0; n < addresses; n++) {
            int64_t place[2];
            take(place, sizeof place);
            block[place[0]] = (int64_t)array[place[1]];
        }
        if (warpkit_run(block)) abort();
        for (int64_t n = 0; n < arrays; n++) {
            if (fwrite(array[n], 1, size_t(bytes[n]), stdout) != size_t(bytes[n])) abort();
            free(memory[n]);
        }
        free(block), free(memory), free(array), free(bytes);
    }
    return 0;
}
