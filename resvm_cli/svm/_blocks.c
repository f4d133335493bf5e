/* Arithmetic on rows, blocks and members that numpy cannot do in one pass; the solver for bags whose
 * kernel values are known (smo.h); and a reader for the iteration counts that LIBSVM prints.
 *
 * Each result is a sum in a fixed order that does not depend on its neighbors. The inner functions do
 * not use Python, so the fuzz target can include this file. They check every index before they use it,
 * and return NULL or an error message that names the invalid argument. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "smo.h"

/* One binary serves all x86-64 processors: the loader chooses the widest vectors. Multiplications are
 * fused with additions only where the code says so (-ffp-contract=off), so all widths give the same
 * bits. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(RESVM_WITHOUT_PYTHON)
#define HAS_CLONES 1
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HAS_CLONES 0
#define WIDEST
#endif

/* Replaces dot products with rbf exponents, -gamma * max(0, |x|^2 + |s|^2 - 2 x.s); NaN stays NaN. A
 * block has one line of `width` doubles for each support vector; its columns are the rows to score. */
WIDEST static void fill_exponents(double *block, size_t height, size_t width,
                                  const double *row_norms, const double *support_norms,
                                  double gamma)
{
    for (size_t line = 0; line < height; line++) {
        double *at = block + line * width;
        const double norm = support_norms[line];
        for (size_t i = 0; i < width; i++) {
            double distance = (at[i] * -2.0 + row_norms[i]) + norm;
            at[i] = (distance < 0.0 ? 0.0 : distance) * -gamma;
        }
    }
}

/* The last bits of x + SHIFT are the integer nearest to x; power_of_two raises 2 to that power. */
#define SHIFT 0x1.8p52
#define UNDERFLOW -708.0 /* e^x is set to 0 for any smaller x: 2^n would not be a normal number */

static inline double power_of_two(double shifted)
{
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&shifted, &bits, sizeof bits);
    return shifted;
}

/* e^x for x <= 0, accurate to one unit in the last place; NaN stays NaN. numpy has vector code for this
 * only with AVX-512; elsewhere it takes five times as long.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2, then a Taylor polynomial of degree 13, whose remainder is
 * below 2^-57. */
#define TIMES_PLUS(a, b, c) (fused ? __builtin_fma(a, b, c) : (a) * (b) + (c))

static inline __attribute__((always_inline)) double exp_of(double x, int fused)
{
    const double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45; /* n * high is exact */
    double shifted = x * 0x1.71547652b82fep0 + SHIFT, n = shifted - SHIFT;
    double r = TIMES_PLUS(-n, ln2_low, x - n * ln2_high);
    double q = 1.0 / 6227020800;
    q = TIMES_PLUS(q, r, 1.0 / 479001600);
    q = TIMES_PLUS(q, r, 1.0 / 39916800);
    q = TIMES_PLUS(q, r, 1.0 / 3628800);
    q = TIMES_PLUS(q, r, 1.0 / 362880);
    q = TIMES_PLUS(q, r, 1.0 / 40320);
    q = TIMES_PLUS(q, r, 1.0 / 5040);
    q = TIMES_PLUS(q, r, 1.0 / 720);
    q = TIMES_PLUS(q, r, 1.0 / 120);
    q = TIMES_PLUS(q, r, 1.0 / 24);
    q = TIMES_PLUS(q, r, 1.0 / 6);
    q = TIMES_PLUS(q, r, 0.5);
    double power = (1.0 + TIMES_PLUS(r * r, q, r)) * power_of_two(shifted);
    uint64_t bits, kept = (uint64_t)(x < UNDERFLOW) - 1; /* no branch, so that it vectorizes */
    memcpy(&bits, &power, sizeof bits);
    bits &= kept;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static inline __attribute__((always_inline)) void fill_exp_by(double *at, size_t count, int fused)
{
    for (size_t i = 0; i < count; i++)
        at[i] = exp_of(at[i], fused);
}

#if HAS_CLONES
__attribute__((target("avx512f,avx512dq"))) static void fill_exp_avx512(double *at, size_t count)
{
    fill_exp_by(at, count, 1);
}

__attribute__((target("avx2,fma"))) static void fill_exp_avx2(double *at, size_t count)
{
    fill_exp_by(at, count, 1);
}
#endif

/* All processors with fused multiply-add, that is, nearly all, give the same bits. */
static void fill_exp(double *at, size_t count)
{
#if HAS_CLONES
    if (__builtin_cpu_supports("avx512dq"))
        fill_exp_avx512(at, count);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        fill_exp_avx2(at, count);
    else
#endif
        fill_exp_by(at, count, 0);
}

static const char bad_starts[] = "starts does not fit: it must ascend within the range of entries";

/* The members that use each line of a block, and their sums, which are `stride` numbers apart. The
 * entries of line i are starts[i] to starts[i + 1]. */
struct uses {
    const int64_t *starts;
    const int32_t *members;
    const double *coefficients;
    size_t n_entries;
    double *sums;
    size_t n_members, stride;
};

/* sums[member] += coefficient * line, for each entry of each line. After an error, some sums are
 * incomplete. */
WIDEST static const char *add_weighted(const double *block, size_t height, size_t width,
                                       const struct uses *uses)
{
    for (size_t line = 0; line < height; line++) {
        const double *at = block + line * width;
        int64_t first = uses->starts[line], last = uses->starts[line + 1];
        if (first < 0 || last < first || (uint64_t)last > uses->n_entries)
            return bad_starts;
        for (int64_t entry = first; entry < last; entry++) {
            int32_t member = uses->members[entry];
            if (member < 0 || (size_t)member >= uses->n_members)
                return "members does not fit sums: there is no such line";
            double *sum = uses->sums + (size_t)member * uses->stride;
            const double coefficient = uses->coefficients[entry];
            for (size_t i = 0; i < width; i++)
                sum[i] += coefficient * at[i];
        }
    }
    return NULL;
}

/* Replaces each value with the height of its piecewise linear curve at that point. Beyond its knots, a
 * curve is flat. Curve p has the ascending knots starts[p] to starts[p + 1]. */
static const char *follow_curves(double *values, const int32_t *curves, size_t count,
                                 const int64_t *starts, size_t n_curves, const double *knots,
                                 const double *heights, size_t n_knots)
{
    for (size_t i = 0; i < count; i++) {
        const int32_t curve = curves[i];
        if (curve < 0 || (size_t)curve >= n_curves)
            return "curves does not fit starts: a number is out of range";
        int64_t low = starts[curve], high = starts[curve + 1] - 1;
        if (low < 0 || high < low || (size_t)high >= n_knots)
            return bad_starts;
        const double x = values[i];
        if (!(x > knots[low])) {
            values[i] = heights[low];
            continue;
        }
        if (!(x < knots[high])) {
            values[i] = heights[high];
            continue;
        }
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2;
            if (x < knots[middle])
                high = middle;
            else
                low = middle;
        }
        const double width = knots[high] - knots[low];
        const double part = isfinite(width)
            ? (x - knots[low]) / width
            : (x / 2 - knots[low] / 2) / (knots[high] / 2 - knots[low] / 2);
        values[i] = heights[low] + part * (heights[high] - heights[low]);
    }
    return NULL;
}

/* Sparse rows: the entries of row i are starts[i] to starts[i + 1]. */
struct rows {
    const int64_t *starts;
    size_t count;
    const int32_t *indices;
    const double *values;
    size_t n_entries;
};

/* Finds the range of a row's entries. The row's number must be below the count. */
static const char *bounds(const struct rows *rows, size_t number, size_t *first, size_t *last)
{
    int64_t from = rows->starts[number], to = rows->starts[number + 1];
    *first = (size_t)from;
    *last = (size_t)to;
    return from >= 0 && to >= from && (uint64_t)to <= rows->n_entries ? NULL : bad_starts;
}

/* TILE members are processed at a time, so that their sums stay in registers; the rest are processed
 * STEP at a time. */
#define TILE 32
#define STEP 8

typedef double step_sums __attribute__((vector_size(STEP * sizeof(double))));

/* Feature weights: each tile of members (and each step after the tiles) has one line per feature, so
 * that numbers that are read together are stored together. places[index] is a feature's line. If the
 * feature has none, it is negative, or the index is not below `reach`. */
struct weights {
    const int32_t *places;
    size_t reach;
    const double *tiles;
    size_t n_lines, width;
    int by_member; /* sums has one line per member, not per row */
};

/* The rows' entries that have a line of weights. If the lines of a tile do not fit in the nearest cache,
 * they form several bands: row i has the entries starts[k] to starts[k + 1] in band k - i * n_bands. */
struct placed_rows {
    size_t count, n_bands, *starts;
    double *values; /* the arrays are one allocation, which begins here */
    uint32_t *lines;
};

#ifndef LINES_OF_BAND
#define LINES_OF_BAND 128 /* of a tile: 32 kB */
#define ENTRIES_OF_BAND 12 /* fewer entries per row are not worth another band */
#endif

/* Looks up all lines once, because every tile needs them. */
static const char *place_rows(const struct rows *rows, const struct weights *weights,
                              struct placed_rows *placed)
{
    const char *wrong = NULL;
    size_t n_placed = 0;
    size_t n_bands = rows->n_entries / ENTRIES_OF_BAND / (rows->count ? rows->count : 1);
    if (n_bands > weights->n_lines / LINES_OF_BAND)
        n_bands = weights->n_lines / LINES_OF_BAND;
    n_bands = n_bands ? n_bands : 1;
    const size_t height = (weights->n_lines + n_bands - 1) / n_bands; /* of a band */
    placed->count = rows->count;
    placed->n_bands = n_bands;
    placed->values = malloc(rows->n_entries * (sizeof *placed->values + sizeof *placed->lines) +
                            (rows->count * n_bands + 1) * sizeof *placed->starts);
    if (!placed->values)
        return "out of memory";
    placed->starts = (size_t *)(placed->values + rows->n_entries);
    placed->lines = (uint32_t *)(placed->starts + rows->count * n_bands + 1);
    for (size_t number = 0; number < rows->count && !wrong; number++) {
        size_t first, last, band = number * n_bands;
        placed->starts[band] = n_placed;
        wrong = bounds(rows, number, &first, &last);
        for (size_t entry = first; entry < last && !wrong; entry++) {
            uint32_t index = (uint32_t)rows->indices[entry]; /* a negative index becomes a large one */
            int32_t place = index < weights->reach ? weights->places[index] : -1;
            if (place < 0)
                continue;
            if ((size_t)place >= weights->n_lines)
                wrong = "places does not fit weights: there is no such line";
            /* entries keep their order: those out of order stay in the highest band so far */
            while (!wrong && band < number * n_bands + (size_t)place / height)
                placed->starts[++band] = n_placed;
            placed->values[n_placed] = rows->values[entry];
            placed->lines[n_placed++] = (uint32_t)place;
        }
        while (band < number * n_bands + n_bands - 1)
            placed->starts[++band] = n_placed;
    }
    placed->starts[rows->count * n_bands] = n_placed;
    if (wrong)
        free(placed->values);
    return wrong;
}

/* Writes sums of rows by STEP members: one line per row or, by_member, as columns. The lines or columns
 * are `width` numbers apart. */
static inline __attribute__((always_inline)) void write_step(const step_sums *found, size_t count,
                                                             int by_member, double *sums,
                                                             size_t width)
{
    for (size_t i = 0; i < count; i++)
        if (by_member)
            for (size_t k = 0; k < STEP; k++)
                sums[k * width + i] = found[i][k];
        else
            memcpy(sums + i * width, &found[i], sizeof found[i]);
}

#define ROWS_OF_TILE 64 /* multiplied before their sums are written, because these may become columns */

/* Multiplies all rows by `n_steps` steps of members, whose lines of weights and sums begin here. */
static inline __attribute__((always_inline)) void
multiply_steps(const struct placed_rows *rows, const double *lines, const size_t n_steps,
               int by_member, double *sums, size_t width)
{
    for (size_t start = 0; start < rows->count; start += ROWS_OF_TILE) {
        step_sums found[TILE / STEP][ROWS_OF_TILE];
        size_t count = rows->count - start < ROWS_OF_TILE ? rows->count - start : ROWS_OF_TILE;
        for (size_t band = 0; band < rows->n_bands; band++)
            for (size_t i = 0; i < count; i++) {
                const size_t *starts = rows->starts + (start + i) * rows->n_bands + band;
                step_sums sum[TILE / STEP] = {{0}};
                for (size_t step = 0; band && step < n_steps; step++)
                    sum[step] = found[step][i];
                for (size_t at = starts[0]; at < starts[1]; at++) {
                    const double *line = lines + rows->lines[at] * n_steps * STEP;
                    const double value = rows->values[at];
                    for (size_t step = 0; step < n_steps; step++) {
                        step_sums weights;
                        memcpy(&weights, line + step * STEP, sizeof weights);
                        sum[step] += value * weights;
                    }
                }
                for (size_t step = 0; step < n_steps; step++)
                    found[step][i] = sum[step];
            }
        for (size_t step = 0; step < n_steps; step++)
            if (by_member)
                write_step(found[step], count, 1, sums + step * STEP * rows->count + start,
                           rows->count);
            else
                write_step(found[step], count, 0, sums + start * width + step * STEP, width);
    }
}

/* The number of members, starting with this one, that are processed together. */
static size_t tile_height(const struct weights *weights, size_t first)
{
    return first + TILE <= weights->width ? TILE : STEP;
}

/* Multiplies the rows by the members of a tile or a step, which begins with member `first`. */
WIDEST static void multiply_tile(const struct placed_rows *rows, const struct weights *weights,
                                 size_t first, double *sums)
{
    const double *lines = weights->tiles + first * weights->n_lines;
    if (tile_height(weights, first) == TILE)
        multiply_steps(rows, lines, TILE / STEP, weights->by_member, sums, weights->width);
    else
        multiply_steps(rows, lines, 1, weights->by_member, sums, weights->width);
}

/* sums[row][member] (or [member][row]) = the row times the member's weights, added in the order of the
 * row's entries. The width must be a multiple of STEP. */
static const char *multiply_by_tiles(const struct rows *rows, const struct weights *weights,
                                     double *sums)
{
    struct placed_rows placed;
    const char *wrong = place_rows(rows, weights, &placed);
    if (wrong)
        return wrong;
    for (size_t first = 0; first < weights->width; first += tile_height(weights, first))
        multiply_tile(&placed, weights, first,
                      sums + first * (weights->by_member ? rows->count : 1));
    free(placed.values);
    return NULL;
}

/* A sparse matrix stored by columns: the entries of column c are starts[c] to starts[c + 1]. */
struct columns {
    const int64_t *starts;
    size_t count;
    const int32_t *lines;
    const double *values;
    size_t n_entries;
};

/* The number of rows that are multiplied before their products are written: they fill a cache line. */
#define ROWS_TOGETHER 8

/* The part that two numbers have in common: the smaller one of two counts, 0 of numbers with opposite
 * signs. It is half of |a| + |b| - |a - b|. */
static inline double common_part(double a, double b)
{
    const double low = a < b ? a : b, high = a < b ? b : a;
    return (low > 0.0 ? low : 0.0) - (high < 0.0 ? high : 0.0);
}

WIDEST static void add_common_parts(double *sums, size_t height, double value, const double *held)
{
    for (size_t line = 0; line < height; line++)
        sums[line] += common_part(value, held[line]);
}

/* block[line][row] = line . row, added in the order of the row's entries; features without a place are
 * skipped. The block has `height` lines and one column per row; `scratch` has room for ROWS_TOGETHER
 * columns. With `minimum`, the common part of two numbers replaces their product; a column with one
 * entry per line holds them in order. */
static const char *multiply_rows(const struct rows *rows, const int32_t *places, size_t reach,
                                 const struct columns *matrix, double *block, size_t height,
                                 double *scratch, int minimum)
{
    for (size_t start = 0; start < rows->count; start += ROWS_TOGETHER) {
        size_t count = rows->count - start < ROWS_TOGETHER ? rows->count - start : ROWS_TOGETHER;
        memset(scratch, 0, count * height * sizeof *scratch);
        for (size_t number = 0; number < count; number++) {
            double *sums = scratch + number * height;
            size_t first, last;
            const char *wrong = bounds(rows, start + number, &first, &last);
            if (wrong)
                return wrong;
            for (size_t entry = first; entry < last; entry++) {
                uint32_t index = (uint32_t)rows->indices[entry];
                int32_t place = index < reach ? places[index] : -1;
                if (place < 0)
                    continue;
                if ((size_t)place >= matrix->count)
                    return "places does not fit column_starts: there is no such column";
                int64_t from = matrix->starts[place], to = matrix->starts[place + 1];
                if (from < 0 || to < from || (uint64_t)to > matrix->n_entries)
                    return "column_starts does not fit: it must ascend within the range of lines";
                const double value = rows->values[entry];
                if (minimum && (uint64_t)(to - from) == height) {
                    add_common_parts(sums, height, value, matrix->values + from);
                    continue;
                }
                for (int64_t other = from; other < to; other++) {
                    size_t line = (uint32_t)matrix->lines[other];
                    if (line >= height)
                        return "lines does not fit block: there is no such line";
                    const double held = matrix->values[other];
                    sums[line] += minimum ? common_part(value, held) : value * held;
                }
            }
        }
        for (size_t line = 0; line < height; line++)
            for (size_t number = 0; number < count; number++)
                block[line * rows->count + start + number] = scratch[number * height + line];
    }
    return NULL;
}

/* Writes these rows into the lines of a dense matrix of zeros, with features at their places. If the
 * width is 0, sets the places of the features that occur in the rows to 1 instead. */
static const char *spread_rows(const struct rows *rows, const int64_t *numbers, size_t n_numbers,
                               int32_t *places, size_t reach, double *matrix, size_t width)
{
    for (size_t i = 0; i < n_numbers; i++) {
        size_t first, last;
        if (numbers[i] < 0 || (uint64_t)numbers[i] >= rows->count)
            return "numbers does not fit starts: there is no such row";
        const char *wrong = bounds(rows, (size_t)numbers[i], &first, &last);
        if (wrong)
            return wrong;
        for (size_t entry = first; entry < last; entry++) {
            const uint32_t index = (uint32_t)rows->indices[entry];
            if (index >= reach)
                return "indices does not fit places: there is no such index";
            if (!width)
                places[index] = 1;
            else if ((uint32_t)places[index] >= width)
                return "places does not fit width: there is no such column";
            else
                matrix[i * width + (size_t)places[index]] = rows->values[entry];
        }
    }
    return NULL;
}

/* Sorts the rows' entries by column and, within a column, by row. `starts` has one number more than
 * there are columns; `lines` receives each entry's row, and `transposed` its value. */
static const char *transpose_rows(const struct rows *rows, int64_t *starts, size_t n_columns,
                                  int32_t *lines, double *transposed)
{
    memset(starts, 0, (n_columns + 1) * sizeof *starts);
    for (size_t entry = 0; entry < rows->n_entries; entry++) {
        uint32_t column = (uint32_t)rows->indices[entry];
        if (column >= n_columns)
            return "indices does not fit column_starts: there is no such column";
        starts[column + 1]++;
    }
    for (size_t column = 0; column < n_columns; column++)
        starts[column + 1] += starts[column];
    /* each start advances to the beginning of the next column; at the end, all are moved back by one */
    size_t at = 0;
    for (size_t number = 0; number < rows->count; number++) {
        size_t first, last;
        const char *wrong = bounds(rows, number, &first, &last);
        if (wrong || first != at)
            return wrong ? wrong : bad_starts;
        for (; at < last; at++) {
            int64_t place = starts[rows->indices[at]]++;
            lines[place] = (int32_t)number;
            transposed[place] = rows->values[at];
        }
    }
    if (at != rows->n_entries)
        return bad_starts;
    memmove(starts + 1, starts, n_columns * sizeof *starts);
    starts[0] = 0;
    return NULL;
}

/* Adds entries to the statistics of their features: how many there are, the first value, the sum of the
 * differences from it and of their squares, the lowest and the highest value. */
static const char *add_statistics(const int32_t *indices, const double *values, size_t n_entries,
                                  double *statistics, size_t n_features)
{
    double *n = statistics, *first = n + n_features, *sum = first + n_features;
    double *squares = sum + n_features, *low = squares + n_features, *high = low + n_features;
    for (size_t entry = 0; entry < n_entries; entry++) {
        const uint32_t index = (uint32_t)indices[entry];
        const double value = values[entry];
        if (index >= n_features)
            return "indices does not fit statistics: there is no such index";
        if (n[index] == 0)
            first[index] = low[index] = high[index] = value;
        const double difference = value - first[index];
        n[index] += 1;
        sum[index] += difference;
        squares[index] += difference * difference;
        low[index] = value < low[index] ? value : low[index];
        high[index] = value > high[index] ? value : high[index];
    }
    return NULL;
}

/* Ranks the numbers from 1; equal numbers keep their order, 0.0 equals -0.0, and nan comes last. The
 * scratch has room for twice as many numbers; the ranks may overwrite the values. A radix sort with
 * 11-bit digits takes a tenth of the time of a comparison sort. */
#define DIGIT 11
#define DIGITS 3

static void rank_values(const float *values, size_t count, int descending, uint64_t *scratch,
                        int32_t *ranks)
{
    uint64_t *from = scratch, *to = scratch + count;
    size_t places[DIGITS][1 << DIGIT] = {{0}};
    for (size_t i = 0; i < count; i++) {
        float value;
        uint32_t bits;
        memcpy(&value, values + i, sizeof value);
        value = (descending ? -value : value) + 0.0f;
        memcpy(&bits, &value, sizeof bits);
        bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31; /* negative numbers sort in reverse */
        if (value != value)
            bits = UINT32_MAX;
        for (int digit = 0; digit < DIGITS; digit++)
            places[digit][bits >> DIGIT * digit & ((1 << DIGIT) - 1)]++;
        from[i] = (uint64_t)bits << 32 | i;
    }
    for (int digit = 0; digit < DIGITS; digit++) {
        size_t before = 0;
        for (size_t i = 0; i < 1 << DIGIT; i++) {
            size_t own = places[digit][i];
            places[digit][i] = before;
            before += own;
        }
        for (size_t i = 0; i < count; i++)
            to[places[digit][from[i] >> (32 + DIGIT * digit) & ((1 << DIGIT) - 1)]++] = from[i];
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    for (size_t i = 0; i < count; i++) {
        int32_t rank = (int32_t)(i + 1);
        memcpy(ranks + (uint32_t)from[i], &rank, sizeof rank);
    }
}

/* LIBSVM reports its iterations only in its printed output. This function reads them in the training
 * thread, without the interpreter, and prints nothing. */
#define ITERATIONS "\noptimization finished, #iter = "

static _Thread_local int64_t iterations;

static void read_output(const char *text)
{
    if (strncmp(text, ITERATIONS, sizeof ITERATIONS - 1) == 0)
        iterations = strtoll(text + sizeof ITERATIONS - 1, NULL, 10);
}

#ifndef RESVM_WITHOUT_PYTHON
#include "../arrays.h"

static int is_product(size_t size, size_t a, size_t b)
{
    return a == 0 ? size == 0 : size % a == 0 && size / a == b;
}

/* Converts a width given by Python; 0 if it is invalid. */
static size_t size_from(const struct argument *argument)
{
    return argument->whole > 0 ? (size_t)argument->whole : 0;
}

/* The three parameters of sparse rows, and the struct made from them. */
#define ROWS IN(INT64, "starts"), IN(INT32, "indices"), IN(FLOAT64, "values")

static const char *take_rows(const struct argument *a, struct rows *rows)
{
    *rows = (struct rows){a[0].data, a[0].count - 1, a[1].data, a[2].data, a[2].count};
    if (a[0].count == 0)
        return "starts does not fit: it must have one number more than there are rows";
    return a[1].count == a[2].count ? NULL : "indices and values do not fit each other";
}

FUNCTION(exponents, OUT(FLOAT64, "block"), IN(FLOAT64, "row_norms"), IN(FLOAT64, "support_norms"),
         IN(REAL, "gamma"))
{
    const struct argument *a = call->given;
    if (!is_product(a[0].count, a[1].count, a[2].count))
        return "block does not fit row_norms and support_norms";
    fill_exponents(a[0].data, a[2].count, a[1].count, a[1].data, a[2].data, a[3].real);
    return NULL;
}

FUNCTION(exp, OUT(FLOAT64, "block"))
{
    fill_exp(call->given[0].data, call->given[0].count);
    return NULL;
}

FUNCTION(add, IN(FLOAT64, "block"), IN(INT64, "starts"), IN(INT32, "members"),
         IN(FLOAT64, "coefficients"), OUT(FLOAT64, "sums"), IN(WHOLE, "width"))
{
    const struct argument *a = call->given;
    size_t width = size_from(&a[5]);
    if (width == 0 || a[0].count % width)
        return "block does not fit width";
    if (a[1].count != a[0].count / width + 1)
        return "starts does not fit block: it must have one number more than there are lines";
    if (a[2].count != a[3].count)
        return "coefficients does not fit members";
    if (a[4].count % width)
        return "sums does not fit width";
    struct uses uses = {a[1].data, a[2].data, a[3].data,           a[3].count,
                        a[4].data, a[4].count / width, width};
    return add_weighted(a[0].data, a[1].count - 1, width, &uses);
}

FUNCTION(multiply_tiles, ROWS, IN(INT32, "places"), IN(FLOAT64, "weights"), OUT(FLOAT64, "sums"),
         IN(WHOLE, "width"), IN(FLAG, "by_member"))
{
    const struct argument *a = call->given;
    size_t width = size_from(&a[6]);
    struct rows rows;
    const char *wrong = take_rows(a, &rows);
    if (wrong)
        return wrong;
    if (width == 0 || width % STEP)
        return "width does not fit: it must be a multiple of STEP";
    if (a[4].count % width)
        return "weights does not fit width";
    if (!is_product(a[5].count, width, rows.count))
        return "sums does not fit starts and width";
    struct weights weights = {a[3].data, a[3].count, a[4].data, a[4].count / width,
                              width,     a[7].whole != 0};
    return multiply_by_tiles(&rows, &weights, a[5].data);
}

FUNCTION(multiply, ROWS, IN(INT32, "places"), IN(INT64, "column_starts"), IN(INT32, "lines"),
         IN(FLOAT64, "line_values"), OUT(FLOAT64, "block"), OUT(FLOAT64, "scratch"),
         IN(FLAG, "minimum"))
{
    const struct argument *a = call->given;
    size_t height = a[8].count / ROWS_TOGETHER;
    struct rows rows;
    const char *wrong = take_rows(a, &rows);
    if (wrong)
        return wrong;
    if (a[4].count == 0)
        return "column_starts does not fit: it must have one number more than there are columns";
    if (a[5].count != a[6].count)
        return "line_values does not fit lines";
    if (a[8].count % ROWS_TOGETHER)
        return "scratch does not fit: it must be a multiple of ROWS_TOGETHER";
    if (!is_product(a[7].count, rows.count, height))
        return "block does not fit starts and scratch";
    struct columns matrix = {a[4].data, a[4].count - 1, a[5].data, a[6].data, a[6].count};
    return multiply_rows(&rows, a[3].data, a[3].count, &matrix, a[7].data, height, a[8].data,
                         a[9].whole != 0);
}

FUNCTION(spread, ROWS, IN(INT64, "numbers"), OUT(INT32, "places"),
         OUT(FLOAT64, "matrix"), IN(WHOLE, "width"))
{
    const struct argument *a = call->given;
    size_t width = size_from(&a[6]);
    struct rows rows;
    const char *wrong = take_rows(a, &rows);
    if (wrong)
        return wrong;
    if (!is_product(a[5].count, width, a[3].count))
        return "matrix does not fit numbers and width";
    return spread_rows(&rows, a[3].data, a[3].count, a[4].data, a[4].count, a[5].data, width);
}

FUNCTION(solve, IN(FLOAT64, "values"), IN(WHOLE, "height"), IN(INT64, "numbers"),
         IN(INT64, "starts"), IN(INT64, "n_positive"), IN(INT64, "n_negative"),
         IN(FLOAT64, "settings"), OUT(FLOAT32, "scratch"), OUT(FLOAT64, "coefficients"),
         OUT(FLOAT64, "rhos"), OUT(INT64, "steps"))
{
    const struct argument *a = call->given;
    size_t n_bags = a[4].count;
    struct bags bags = {.values = a[0].data,     .height = size_from(&a[1]),
                        .numbers = a[2].data,    .n_numbers = a[2].count,
                        .starts = a[3].data,     .n_positive = a[4].data,
                        .n_negative = a[5].data, .n_bags = n_bags,
                        .n_problems = n_bags ? a[9].count / n_bags : 0,
                        .settings = a[6].data,   .scratch = a[7].data,
                        .n_scratch = a[7].count};
    if (!is_product(a[0].count, bags.height, bags.height))
        return "values does not fit height";
    if (a[3].count != n_bags + 1)
        return "starts does not fit n_positive: it must have one number more than there are bags";
    if (a[5].count != n_bags)
        return "n_negative does not fit n_positive";
    if (!is_product(a[9].count, n_bags, bags.n_problems))
        return "rhos does not fit n_positive";
    if (a[10].count != a[9].count)
        return "steps does not fit rhos";
    if (!is_product(a[6].count, 4, a[9].count))
        return "settings does not fit rhos";
    if (!is_product(a[8].count, bags.n_numbers, bags.n_problems))
        return "coefficients does not fit numbers and rhos";
    return solve_bags(&bags, widest_passes(), a[8].data, a[9].data, a[10].data);
}

FUNCTION(transpose, ROWS, OUT(INT64, "column_starts"), OUT(INT32, "lines"),
         OUT(FLOAT64, "line_values"))
{
    const struct argument *a = call->given;
    struct rows rows;
    const char *wrong = take_rows(a, &rows);
    if (wrong)
        return wrong;
    if (rows.count > INT32_MAX)
        return "starts does not fit: there are too many rows for 32-bit line numbers";
    if (a[3].count == 0)
        return "column_starts does not fit: it must have one number more than there are columns";
    if (a[4].count != rows.n_entries)
        return "lines does not fit values";
    if (a[5].count != rows.n_entries)
        return "line_values does not fit values";
    return transpose_rows(&rows, a[3].data, a[3].count - 1, a[4].data, a[5].data);
}

FUNCTION(rank, IN(FLOAT32, "values"), IN(FLAG, "descending"), OUT(UINT64, "scratch"),
         OUT(INT32, "ranks"))
{
    const struct argument *a = call->given;
    if (a[0].count > INT32_MAX || a[3].count != a[0].count)
        return "values and ranks do not fit each other";
    if (!is_product(a[2].count, a[0].count, 2))
        return "scratch does not fit values";
    rank_values(a[0].data, a[0].count, a[1].whole != 0, a[2].data, a[3].data);
    return NULL;
}

FUNCTION(follow, OUT(FLOAT64, "values"), IN(INT32, "curves"), IN(INT64, "starts"),
         IN(FLOAT64, "knots"), IN(FLOAT64, "heights"))
{
    const struct argument *a = call->given;
    if (a[1].count != a[0].count)
        return "curves does not fit values";
    if (a[2].count == 0)
        return "starts does not fit: it must have one number more than there are curves";
    if (a[4].count != a[3].count)
        return "heights does not fit knots";
    return follow_curves(a[0].data, a[1].data, a[0].count, a[2].data, a[2].count - 1, a[3].data,
                         a[4].data, a[3].count);
}

FUNCTION(summarize, IN(INT32, "indices"), IN(FLOAT64, "values"), OUT(FLOAT64, "statistics"))
{
    const struct argument *a = call->given;
    if (a[0].count != a[1].count)
        return "indices and values do not fit each other";
    if (a[2].count % 6)
        return "statistics does not fit: it must have six numbers per feature";
    return add_statistics(a[0].data, a[1].data, a[1].count, a[2].data, a[2].count / 6);
}

static PyObject *call_iterations(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    long long count = iterations;
    iterations = 0;
    return PyLong_FromLongLong(count);
}

static PyObject *call_print_function(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    return PyLong_FromVoidPtr((void *)(uintptr_t)read_output);
}

static PyMethodDef methods[] = {
    METHOD(exponents, "Replace the dot products in a block with rbf exponents."),
    METHOD(exp, "Replace each x in a block with e^x; no x may be above zero."),
    METHOD(add, "Add each line of a block, times its coefficients, to its members' sums."),
    METHOD(multiply_tiles, "Multiply rows by the weights of members, as described at struct weights."),
    METHOD(multiply, "Multiply a sparse matrix, given by its columns, by rows: a line for each line."),
    METHOD(spread, "Write rows into a matrix of zeros or, if the width is 0, mark their features."),
    METHOD(solve, "Train several SVMs on each of several bags, as described at struct bags."),
    METHOD(transpose, "Sort the entries of rows by column, as multiply requires."),
    METHOD(rank, "Rank the values from 1; equal values keep their order, and nan comes last."),
    METHOD(follow, "Replace each value with the height of its piecewise linear curve at that point."),
    METHOD(summarize, "Add entries to the statistics of their features: six lines of numbers."),
    {"iterations", call_iterations, METH_NOARGS,
     "Return the number of iterations in this thread's last LIBSVM call, and reset it."},
    {"print_function", call_print_function, METH_NOARGS,
     "Return the address of a print function for LIBSVM that prints nothing and records iterations."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_blocks", "Arithmetic on blocks of rows.", 0, methods, NULL, NULL, NULL,
    NULL};

PyMODINIT_FUNC PyInit__blocks(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && (PyModule_AddIntMacro(module, TILE) < 0 || PyModule_AddIntMacro(module, STEP) < 0 ||
                   PyModule_AddIntMacro(module, ROWS_TOGETHER) < 0 ||
                   PyModule_AddIntMacro(module, LINE_PADDING) < 0))
        Py_CLEAR(module);
    return module;
}
#endif
