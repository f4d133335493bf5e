/* Fuzz target for the arithmetic on blocks. The input chooses shapes and entries, often invalid ones.
 * Buffers have exactly the right size, so that ASan detects any access beyond them. */
#define RESVM_WITHOUT_PYTHON
#define LINES_OF_BAND 2 /* so that a few features form several bands */
#define ENTRIES_OF_BAND 1
#include "../../resvm_cli/svm/_blocks.c"
#include "input.h"

#include <math.h>

static double *numbers(size_t count)
{
    double *made = room(count, sizeof(double));
    for (size_t i = 0; i < count; i++)
        made[i] = (double)(int64_t)next_random() / 1e18;
    return made;
}

static void violated(const char *what)
{
    fprintf(stderr, "violated: %s\n", what);
    abort();
}

/* Numbers below a limit, sometimes any number. */
static void *indices(size_t count, size_t limit)
{
    int32_t *made = room(count, sizeof *made);
    for (size_t i = 0; i < count; i++)
        made[i] = below(60) ? (int32_t)below(limit) : (int32_t)next_random();
    return made;
}

static int64_t *ascending(size_t count)
{
    int64_t *made = room(count + 1, sizeof *made), at = 0;
    for (size_t i = 0; i <= count; i++) {
        made[i] = below(40) ? at : (int64_t)next_random();
        at += (int64_t)below(6);
    }
    return made;
}

static int pooled(void)
{
    size_t height = below(9), width = 1 + below(20), n_members = below(6), n_entries = below(30);
    double *block = numbers(height * width), *rows = numbers(width), *supports = numbers(height);
    double *coefficients = numbers(n_entries), *sums = numbers(n_members * width);
    int64_t *starts = ascending(height);
    int32_t *members = indices(n_entries, n_members + 1);
    fill_exponents(block, height, width, rows, supports, below(2) ? 0.5 : 200.0);
    for (size_t i = 0; i < height * width; i++)
        if (!(block[i] <= 0.0))
            violated("an exponent above zero");
    double *powers = room(height * width, sizeof *powers);
    memcpy(powers, block, height * width * sizeof *powers);
    fill_exp(powers, height * width);
    for (size_t i = 0; i < height * width; i++)
        if (!(fabs(powers[i] - exp(block[i])) <= 0x1p-52 * powers[i]) &&
            !(block[i] < UNDERFLOW && powers[i] == 0.0))
            violated("a power that is not e^x");
    struct uses uses = {starts, members, coefficients, n_entries, sums, n_members, width};
    int done = !add_weighted(block, height, width, &uses);
    free(block), free(rows), free(supports), free(coefficients), free(sums);
    free(starts), free(members), free(powers);
    return done;
}

static int sparse(void)
{
    size_t n_rows = below(8), n_entries = below(30), reach = below(12), n_lines = below(6);
    size_t width = STEP * (1 + below(6));
    int64_t *starts = ascending(n_rows);
    int32_t *features = indices(n_entries, reach + 1), *places = indices(reach, n_lines + 1);
    double *values = numbers(n_entries), *weights = numbers(n_lines * width);
    double *sums = numbers(n_rows * width);
    struct rows rows = {starts, n_rows, features, values, n_entries};
    struct weights held = {places, reach, weights, n_lines, width, (int)below(2)};
    int64_t *starts_of = ascending(n_lines);
    size_t height = below(10);
    int32_t *lines = indices(n_entries, height + 1);
    double *block = numbers(height * n_rows), *room_for = numbers(ROWS_TOGETHER * height);
    struct columns by_column = {starts_of, n_lines, lines, values, n_entries};
    int done = !multiply_by_tiles(&rows, &held, sums);
    done &= !multiply_rows(&rows, places, reach, &by_column, block, height, room_for,
                           (int)below(2));
    int64_t chosen[] = {(int64_t)below(n_rows + 1), (int64_t)below(n_rows + 1) - below(2)};
    double *matrix = numbers(2 * (n_lines + 1));
    done &= !spread_rows(&rows, chosen, 2, places, reach, matrix, n_lines + 1);
    done &= !spread_rows(&rows, chosen, 2, places, reach, NULL, 0);
    free(matrix), free(starts), free(features), free(places), free(values), free(weights);
    free(sums), free(starts_of), free(lines), free(block), free(room_for);
    return done;
}

/* Curves with random knots, often unsorted: nothing may be read beyond them. */
static void followed(void)
{
    size_t n_curves = below(5), n_knots = below(20), count = below(30);
    double *values = numbers(count), *knots = numbers(n_knots), *heights = numbers(n_knots);
    int32_t *curves = indices(count, n_curves + 1);
    int64_t *starts = ascending(n_curves);
    follow_curves(values, curves, count, starts, n_curves, knots, heights, n_knots);
    free(values), free(knots), free(heights), free(curves), free(starts);
}

/* Statistics of random entries, often of features beyond the last. */
static void summarized(void)
{
    size_t n_entries = below(30), n_features = below(8);
    int32_t *features = indices(n_entries, n_features + 1);
    double *values = numbers(n_entries), *statistics = room(6 * n_features, sizeof *statistics);
    memset(statistics, 0, 6 * n_features * sizeof *statistics);
    add_statistics(features, values, n_entries, statistics, n_features);
    free(features), free(values), free(statistics);
}

static int by_column(void)
{
    size_t n_rows = below(5), n_entries = 0, n_columns = below(8);
    int64_t *starts = room(n_rows + 1, sizeof *starts), *found = room(n_columns + 1, sizeof *found);
    starts[0] = below(40) ? 0 : 1;
    for (size_t i = 0; i < n_rows; i++) {
        n_entries += below(6);
        starts[i + 1] = below(40) ? (int64_t)n_entries : (int64_t)next_random();
    }
    n_entries += below(20) == 0;
    int32_t *columns = indices(n_entries, n_columns + 1), *lines = room(n_entries, sizeof *lines);
    double *values = numbers(n_entries), *transposed = room(n_entries, sizeof *transposed);
    struct rows rows = {starts, n_rows, columns, values, n_entries};
    int done = !transpose_rows(&rows, found, n_columns, lines, transposed);
    for (size_t i = 0; done && i < n_columns; i++)
        if (found[i] > found[i + 1])
            violated("columns do not ascend");
    if (done && (found[0] != 0 || found[n_columns] != (int64_t)n_entries))
        violated("columns lost entries");
    free(starts), free(found), free(columns), free(lines), free(values), free(transposed);

    size_t count = below(40);
    float *line = room(count, sizeof *line);
    int32_t *ranks = room(count, sizeof *ranks);
    uint64_t *keys = room(2 * count, sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)next_random();
        memcpy(line + i, &bits, sizeof bits);
    }
    rank_values(line, count, (int)below(2), keys, ranks);
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (size_t)ranks[i];
    if (sum != count * (count + 1) / 2)
        violated("ranks are not 1 to n");
    free(line), free(ranks), free(keys);
    followed();
    summarized();
    return done;
}

/* Bags of random rows, often with invalid numbers; every vector width must give the same bits. */
static int solved(void)
{
    size_t n_features = 1 + below(4), height = 1 + below(40), n_bags = 1 + below(3), most = 1;
    size_t n_problems = 1 + below(2), n_numbers = 0;
    double *rows = numbers(height * n_features), *values = room(height * height, sizeof *values);
    for (size_t i = 0; i < height; i++)
        for (size_t j = 0; j < height; j++) {
            double sum = 0.0;
            for (size_t k = 0; k < n_features; k++)
                sum += rows[i * n_features + k] * rows[j * n_features + k];
            values[i * height + j] = below(100000) ? sum * 0.01 : NAN;
        }
    int64_t *starts = room(n_bags + 1, sizeof *starts), *n_positive = room(n_bags, sizeof *starts);
    int64_t *n_negative = room(n_bags, sizeof *starts);
    starts[0] = 0;
    for (size_t bag = 0; bag < n_bags; bag++) {
        size_t count = 1 + below(50);
        most = count > most ? count : most;
        n_numbers += count;
        starts[bag + 1] = below(40) ? (int64_t)n_numbers : (int64_t)next_random();
        n_positive[bag] = below(40) ? (int64_t)below(count + 1) : (int64_t)next_random();
        n_negative[bag] = below(4) ? 0 : below(10) ? (int64_t)below(count + 1) : (int64_t)next_random();
    }
    int64_t *chosen = room(n_numbers, sizeof *chosen), *steps[3];
    for (size_t i = 0; i < n_numbers; i++)
        chosen[i] = below(2000) ? (int64_t)below(height) : (int64_t)next_random();
    double *settings = room(4 * n_bags * n_problems, sizeof *settings);
    for (size_t i = 0; i < n_bags * n_problems; i++) {
        for (size_t which = 0; which < 3; which++)
            settings[4 * i + which] = 0.01 * (double)(1 + below(300));
        settings[4 * i + 3] = below(2) ? 0.001 : 0.1;
    }
    size_t n_lines = 2 * most * most + LINE_PADDING - (below(40) == 0);
    float *lines = room(n_lines, sizeof *lines);
    struct bags bags = {values, height, chosen,     starts,   n_positive, n_negative, n_numbers,
                        n_bags, n_problems, settings, lines,      n_lines};
    double *coefficients[3], *rhos[3];
    int done = 1, n_widths = 0;
    for (int width = 0; width < 3; width++) {
        struct passes passes = passes_by_width(width);
        if (!passes.descend)
            continue;
        int last = n_widths++;
        coefficients[last] = room(n_problems * n_numbers, sizeof *coefficients[last]);
        rhos[last] = room(n_problems * n_bags, sizeof *rhos[last]);
        steps[last] = room(n_problems * n_bags, sizeof *steps[last]);
        done &= !solve_bags(&bags, passes, coefficients[last], rhos[last], steps[last]);
        if (done && last &&
            (memcmp(rhos[0], rhos[last], n_problems * n_bags * sizeof *rhos[last]) ||
             memcmp(coefficients[0], coefficients[last],
                    n_problems * n_numbers * sizeof *coefficients[last])))
            violated("the vector width changes a solution");
    }
    for (int width = 0; width < n_widths; width++)
        free(coefficients[width]), free(rhos[width]), free(steps[width]);
    free(rows), free(values), free(starts), free(n_positive), free(chosen), free(settings);
    free(lines), free(n_negative);
    return done;
}

static void iterations_are_read(void)
{
    char text[64];
    int64_t count = (int64_t)below(100000000);
    snprintf(text, sizeof text, ITERATIONS "%lld\n", (long long)count);
    read_output(text);
    read_output("*");
    if (iterations != count)
        violated("iterations are not read");
    text[below(sizeof ITERATIONS + 3)] = 0;
    read_output(text);
}

static int (*const parts[])(void) = {pooled, sparse, by_column, solved};
enum { N_PARTS = sizeof parts / sizeof *parts };
static unsigned long long runs[N_PARTS], refused[N_PARTS];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_choices_from(data, size);
    size_t part = below(N_PARTS + 1);
    if (part == N_PARTS) {
        iterations_are_read();
        return 0;
    }
    runs[part]++;
    refused[part] += !parts[part]();
    return 0;
}

int outcomes_met(void)
{
    int met = 1;
    for (size_t i = 0; i < N_PARTS; i++) {
        printf("%llu of %llu refused%s", refused[i], runs[i], i + 1 < N_PARTS ? ", " : "\n");
        met &= refused[i] > 0 && refused[i] < runs[i];
    }
    return met;
}
