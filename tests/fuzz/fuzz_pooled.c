/* Fuzz target of the pooled arithmetic: random shapes and random, often wrong, entries, in buffers of
 * exactly the right size, so that ASan sees any access beyond them. Usage: fuzz_pooled [seconds]. */
#define RESVM_WITHOUT_PYTHON
#include "../../resvm_cli/svm/_pooled.c"

#include <math.h>
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

static void *room(size_t count, size_t size)
{
    void *made = malloc(count > 0 ? count * size : 1);
    if (!made)
        abort();
    return made;
}

static double *numbers(size_t count)
{
    double *made = room(count, sizeof(double));
    for (size_t i = 0; i < count; i++)
        made[i] = (double)(int64_t)next_random() / 1e18;
    return made;
}

int main(int argc, char **argv)
{
    time_t stop = time(NULL) + (time_t)(argc > 1 ? atof(argv[1]) : 10);
    unsigned long long runs = 0, refused = 0;
    while (runs % 1024 || time(NULL) < stop) {
        size_t height = below(9), width = 1 + below(20), n_members = below(6), n_entries = below(30);
        double *block = numbers(height * width), *rows = numbers(width), *supports = numbers(height);
        double *coefficients = numbers(n_entries), *sums = numbers(n_members * width);
        int64_t *starts = room(height + 1, sizeof *starts);
        int32_t *members = room(n_entries, sizeof *members);
        int64_t at = 0;
        for (size_t i = 0; i <= height; i++) {
            starts[i] = below(20) ? at : (int64_t)next_random();
            at += (int64_t)below(6);
        }
        for (size_t i = 0; i < n_entries; i++)
            members[i] = below(40) ? (int32_t)below(n_members + 1) : (int32_t)next_random();
        fill_exponents(block, height, width, rows, supports, 0.5);
        for (size_t i = 0; i < height * width; i++)
            if (!(block[i] <= 0.0)) {
                fprintf(stderr, "violated: an exponent above zero\n");
                abort();
            }
        refused += !add_weighted(block, height, width, starts, members, coefficients, n_entries,
                                 sums, n_members);
        free(block), free(rows), free(supports), free(coefficients), free(sums);
        free(starts), free(members);
        runs++;
    }
    printf("%llu runs, %llu refused\n", runs, refused);
    return refused == 0 || refused == runs; /* both kinds must have been met */
}
