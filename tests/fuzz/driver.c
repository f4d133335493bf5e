/* Runs a fuzz target without libFuzzer: on every file of its corpus, then on mutations of these
 * files, the same ones in every run. Usage: fuzz_NAME SECONDS CORPUS. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_FILES 256
#define MAX_SIZE 4096

int outcomes_met(void);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seed {
    uint8_t bytes[MAX_SIZE];
    size_t size;
};

static struct seed seeds[MAX_FILES];
static size_t n_seeds;
static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

static size_t below(size_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)((state >> 11) % limit);
}

static int by_bytes(const void *one, const void *other)
{
    const struct seed *first = one, *second = other;
    size_t size = first->size < second->size ? first->size : second->size;
    int order = memcmp(first->bytes, second->bytes, size);
    return order ? order : (first->size > second->size) - (first->size < second->size);
}

static void read_corpus(const char *folder)
{
    DIR *listing = opendir(folder);
    if (!listing)
        return;
    for (struct dirent *entry; (entry = readdir(listing)) && n_seeds < MAX_FILES;) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!file)
            continue;
        seeds[n_seeds].size = fread(seeds[n_seeds].bytes, 1, MAX_SIZE, file);
        n_seeds += seeds[n_seeds].size > 0;
        fclose(file);
    }
    closedir(listing);
    qsort(seeds, n_seeds, sizeof *seeds, by_bytes); /* directories list files in arbitrary order */
}

/* A copy in a buffer of its exact size, so that ASan detects any access beyond it. */
static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        abort();
    memcpy(exact, bytes, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

/* One seed, or the start of one and the end of another, with up to six changes. */
static size_t mutate(uint8_t *to)
{
    const struct seed *first = seeds + below(n_seeds), *second = seeds + below(n_seeds);
    size_t size = first->size;
    memcpy(to, first->bytes, size);
    if (below(2)) {
        size_t start = below(second->size), more = second->size - start;
        size = below(size) + 1;
        memcpy(to + size, second->bytes + start, more);
        size += more;
    }
    for (size_t left = below(7); left; left--) {
        size_t at = below(size);
        switch (below(4)) {
        case 0:
            to[at] = (uint8_t)below(256);
            break;
        case 1: /* a byte that occurs elsewhere */
            to[at] = second->bytes[below(second->size)];
            break;
        case 2: /* repeat one byte up to eight times */
            for (size_t times = below(8) + 1; times; times--, size++)
                memmove(to + at + 1, to + at, size - at);
            break;
        default:
            if (size > 2) {
                memmove(to + at, to + at + 1, size - at - 1);
                size--;
            }
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s SECONDS CORPUS\n", argv[0]);
        return 2;
    }
    read_corpus(argv[2]);
    if (n_seeds == 0) {
        fprintf(stderr, "%s: no corpus\n", argv[2]);
        return 2;
    }
    time_t stop = time(NULL) + (time_t)atof(argv[1]);
    unsigned long long runs = 0;
    for (; runs < n_seeds; runs++)
        run(seeds[runs].bytes, seeds[runs].size);
    static uint8_t mutated[2 * MAX_SIZE + 64];
    for (; runs % 1024 || time(NULL) < stop; runs++)
        run(mutated, mutate(mutated));
    printf("%llu inputs from %zu files; ", runs, n_seeds);
    return !outcomes_met();
}
