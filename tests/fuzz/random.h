/* Shared by all fuzz targets: random numbers, the same in every run, and memory of an exact size. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t below(size_t limit) { return (size_t)(next_random() % limit); }

static inline void *room(size_t count, size_t size)
{
    void *made = malloc(count > 0 ? count * size : 1);
    if (!made)
        abort();
    return made;
}
