/* Shared by all fuzz targets: choices read from the fuzzer's input, and memory of an exact size. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the target has reached every outcome that it should; for driver.c. */
int outcomes_met(void);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *input;
static size_t input_left;
static uint64_t state;

/* The first eight bytes also seed the choices made after the input ends, so that a short input
 * suffices for a complete run. */
static void read_choices_from(const uint8_t *data, size_t size)
{
    input = data;
    input_left = size;
    state = 0;
    memcpy(&state, data, size < sizeof state ? size : sizeof state);
    state ^= UINT64_C(0x9e3779b97f4a7c15);
    state += state == 0;
}

static uint64_t next_bytes(size_t count)
{
    uint64_t bytes = 0;
    if (input_left >= count) {
        memcpy(&bytes, input, count);
        input += count;
        input_left -= count;
        return bytes;
    }
    input_left = 0;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static inline uint64_t next_random(void) { return next_bytes(8); }

static inline size_t below(size_t limit)
{
    return (size_t)(next_bytes(limit <= 256 ? 1 : 8) % limit);
}

static inline void *room(size_t count, size_t size)
{
    void *made = malloc(count > 0 ? count * size : 1);
    if (!made)
        abort();
    return made;
}
