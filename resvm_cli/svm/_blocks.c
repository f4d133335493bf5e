/* Arithmetic between rows, blocks and members that no numpy call does in one pass; the solver of bags
 * whose kernel values are known (smo.h); and what LIBSVM says.
 *
 * Each result is a sum in one fixed order, whatever its neighbours are. The cores know nothing of
 * Python, so that the fuzz target can include this file; they check every number they are given
 * before they follow it, and return NULL, or a complaint about the argument that holds a wrong one. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "smo.h"

/* One binary for every x86-64: the loader picks the widest vectors. No multiplication is fused with
 * an addition (-ffp-contract=off), unless it says so, and so all give the same bits. Without such a
 * choice e^x takes half as long again as numpy's, which is then to be preferred: OWN_POWERS is 0. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(RESVM_WITHOUT_PYTHON)
#define OWN_POWERS 1
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define OWN_POWERS 0
#define WIDEST
#endif

/* A block holds one line of `width` doubles for each support row: its columns are the rows being
 * judged. Dot products to rbf exponents: -gamma * max(0, |x|^2 + |s|^2 - 2 x.s), NaN kept. */
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

/* Sums that rows have in common, to their share of all that either row has: s / (a + b - s), and 1
 * where neither has anything. */
WIDEST static void fill_shares(double *block, size_t height, size_t width, const double *row_norms,
                               const double *support_norms)
{
    for (size_t line = 0; line < height; line++) {
        double *at = block + line * width;
        const double norm = support_norms[line];
        for (size_t i = 0; i < width; i++) {
            double all = (row_norms[i] + norm) - at[i];
            at[i] = all == 0.0 ? 1.0 : at[i] / all;
        }
    }
}

/* A double whose last bits are the integer nearest to x, and the power of two by that integer. */
#define SHIFT 0x1.8p52
#define UNDERFLOW -746.0 /* e^x of less is 0 */

static inline double power_of_two(double shifted)
{
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&shifted, &bits, sizeof bits);
    return shifted;
}

/* e^x in place of each x <= 0, NaN kept: within one unit in the last place. numpy has vectors for
 * this only with AVX-512; elsewhere it takes five times as long.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2, then a Taylor polynomial of degree 13, whose remainder is
 * below 2^-57. The power 2^n is applied in two steps, for it may be subnormal. */
#define TIMES_PLUS(a, b, c) (fused ? __builtin_fma(a, b, c) : (a) * (b) + (c))

static inline __attribute__((always_inline)) void fill_powers_by(double *at, size_t count, int fused)
{
    const double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45; /* n * high is exact */
    for (size_t i = 0; i < count; i++) {
        const double x = at[i];
        double shifted = x * 0x1.71547652b82fep0 + SHIFT;
        double n = shifted - SHIFT;
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
        double half = n * 0.5 + SHIFT;
        double rest = (n - (half - SHIFT)) + SHIFT;
        double power = (1.0 + TIMES_PLUS(r * r, q, r)) * power_of_two(half) * power_of_two(rest);
        uint64_t bits, kept = (uint64_t)(x < UNDERFLOW) - 1; /* no branch: vectors have none */
        memcpy(&bits, &power, sizeof bits);
        bits &= kept;
        memcpy(&at[i], &bits, sizeof bits);
    }
}

#if OWN_POWERS
__attribute__((target("avx512f"))) static void fill_powers_avx512(double *at, size_t count)
{
    fill_powers_by(at, count, 1);
}

__attribute__((target("avx2,fma"))) static void fill_powers_fma(double *at, size_t count)
{
    fill_powers_by(at, count, 1);
}
#endif

/* Processors that fuse, which nearly all do, give the same bits as one another. */
static void fill_powers(double *at, size_t count)
{
#if OWN_POWERS
    if (__builtin_cpu_supports("avx512f"))
        fill_powers_avx512(at, count);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        fill_powers_fma(at, count);
    else
#endif
        fill_powers_by(at, count, 0);
}

static const char bad_starts[] = "starts does not fit: it must ascend from 0 or more to the entries";

/* sums[member] += coefficient * line, for each entry of each line. Entries of line i lie between
 * starts[i] and starts[i + 1]. With a complaint some sums are unfinished. */
WIDEST static const char *add_weighted(const double *block, size_t height, size_t width,
                                       const int64_t *starts, const int32_t *members,
                                       const double *coefficients, size_t n_entries, double *sums,
                                       size_t n_members)
{
    for (size_t line = 0; line < height; line++) {
        const double *at = block + line * width;
        int64_t first = starts[line], last = starts[line + 1];
        if (first < 0 || last < first || (uint64_t)last > n_entries)
            return bad_starts;
        for (int64_t entry = first; entry < last; entry++) {
            int32_t member = members[entry];
            if (member < 0 || (size_t)member >= n_members)
                return "members does not fit: sums has no line for one";
            double *sum = sums + (size_t)member * width;
            const double coefficient = coefficients[entry];
            for (size_t i = 0; i < width; i++)
                sum[i] += coefficient * at[i];
        }
    }
    return NULL;
}

/* All of that for each line in turn, while it is in the nearest cache: dot products to exponents, to
 * powers, to the members' sums. */
static const char *add_rbf_values(double *block, size_t height, size_t width,
                                  const double *row_norms, const double *support_norms,
                                  double gamma, const int64_t *starts, const int32_t *members,
                                  const double *coefficients, size_t n_entries, double *sums,
                                  size_t n_members)
{
    const char *wrong = NULL;
    for (size_t line = 0; line < height && !wrong; line++) {
        double *at = block + line * width;
        fill_exponents(at, 1, width, row_norms, support_norms + line, gamma);
        fill_powers(at, width);
        wrong = add_weighted(at, 1, width, starts + line, members, coefficients, n_entries, sums,
                             n_members);
    }
    return wrong;
}

/* Sparse rows: the entries of row i lie between starts[i] and starts[i + 1]. */
struct rows {
    const int64_t *starts;
    size_t count;
    const int32_t *indices;
    const double *values;
    size_t n_entries;
};

/* Where the entries of a row lie; the number is below the count. */
static const char *bounds(const struct rows *rows, size_t number, size_t *first, size_t *last)
{
    int64_t from = rows->starts[number], to = rows->starts[number + 1];
    *first = (size_t)from;
    *last = (size_t)to;
    return from >= 0 && to >= from && (uint64_t)to <= rows->n_entries ? NULL : bad_starts;
}

static int are_below(const int64_t *numbers, size_t n_numbers, size_t limit)
{
    for (size_t i = 0; i < n_numbers; i++)
        if (numbers[i] < 0 || (uint64_t)numbers[i] >= limit)
            return 0;
    return 1;
}

static const char bad_numbers[] = "numbers does not fit starts: there is no row of one";

/* Members are taken so many at a time, whose sums stay in registers; what is left, in steps. */
#define TILE 32
#define STEP 8

/* Weights of features: for each tile of members (and each step of those left) one line for each
 * feature, so that what is read together lies together. places[index] is the line of a feature,
 * negative for one that has none, as have all beyond `reach`. */
struct weights {
    const int32_t *places;
    size_t reach;
    const double *tiles;
    size_t n_lines, width;
};

static inline __attribute__((always_inline)) const char *
add_row(const struct rows *rows, size_t number, const struct weights *weights, size_t member,
        size_t tile, double *sums)
{
    const double *lines = weights->tiles + member * weights->n_lines;
    double sum[TILE] = {0};
    size_t first, last;
    const char *wrong = bounds(rows, number, &first, &last);
    if (wrong)
        return wrong;
    for (size_t entry = first; entry < last; entry++) {
        uint32_t index = (uint32_t)rows->indices[entry]; /* a negative one is beyond reach */
        int32_t place = index < weights->reach ? weights->places[index] : -1;
        if (place < 0)
            continue;
        if ((size_t)place >= weights->n_lines)
            return "places does not fit: weights has no line for one";
        const double *line = lines + (size_t)place * tile;
        const double value = rows->values[entry];
        for (size_t i = 0; i < tile; i++)
            sum[i] += value * line[i];
    }
    memcpy(sums + number * weights->width + member, sum, tile * sizeof *sum);
    return NULL;
}

/* sums[row][member] = the row times the member's weights, added in the order of the row's entries.
 * The width is a multiple of STEP. */
WIDEST static const char *weigh_rows(const struct rows *rows, const struct weights *weights,
                                     double *sums)
{
    const char *wrong = NULL;
    size_t member = 0;
    for (; member + TILE <= weights->width; member += TILE)
        for (size_t number = 0; number < rows->count && !wrong; number++)
            wrong = add_row(rows, number, weights, member, TILE, sums);
    for (; member + STEP <= weights->width; member += STEP)
        for (size_t number = 0; number < rows->count && !wrong; number++)
            wrong = add_row(rows, number, weights, member, STEP, sums);
    return wrong;
}

/* A sparse matrix by its columns: the entries of column c lie between starts[c] and starts[c + 1]. */
struct columns {
    const int64_t *starts;
    size_t count;
    const int32_t *lines;
    const double *values;
    size_t n_entries;
};

/* So many rows are multiplied before their products are written: as many as a cache line holds. */
#define TOGETHER 8

/* block[line][row] = line . row, added in the order of the row's entries; features at their places,
 * those without one passed over. The block has `height` lines, one column a row; `room` holds
 * TOGETHER times as many numbers. */
static const char *multiply_rows(const struct rows *rows, const int32_t *places, size_t reach,
                                 const struct columns *matrix, double *block, size_t height,
                                 double *room, int smaller)
{
    for (size_t start = 0; start < rows->count; start += TOGETHER) {
        size_t count = rows->count - start < TOGETHER ? rows->count - start : TOGETHER;
        memset(room, 0, count * height * sizeof *room);
        for (size_t number = 0; number < count; number++) {
            double *sums = room + number * height;
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
                    return "places does not fit: column_starts has no column for one";
                int64_t from = matrix->starts[place], to = matrix->starts[place + 1];
                if (from < 0 || to < from || (uint64_t)to > matrix->n_entries)
                    return "column_starts does not fit: it must ascend from 0 or more to the lines";
                const double value = rows->values[entry];
                for (int64_t other = from; other < to; other++) {
                    size_t line = (uint32_t)matrix->lines[other];
                    if (line >= height)
                        return "lines does not fit: block has no such line";
                    const double held = matrix->values[other];
                    sums[line] += !smaller ? value * held : value < held ? value : held;
                }
            }
        }
        for (size_t line = 0; line < height; line++)
            for (size_t number = 0; number < count; number++)
                block[line * rows->count + start + number] = room[number * height + line];
    }
    return NULL;
}

/* Mark the features that any of some rows has; counts their entries. */
static const char *mark_features(const struct rows *rows, const int64_t *numbers, size_t n_numbers,
                                 unsigned char *marks, size_t reach, int64_t *count)
{
    *count = 0;
    const char *wrong = are_below(numbers, n_numbers, rows->count) ? NULL : bad_numbers;
    for (size_t i = 0; i < n_numbers && !wrong; i++) {
        size_t first, last;
        wrong = bounds(rows, (size_t)numbers[i], &first, &last);
        if (wrong)
            return wrong;
        for (size_t entry = first; entry < last; entry++) {
            uint32_t index = (uint32_t)rows->indices[entry];
            if (index >= reach)
                return "indices does not fit: marks has no place for one";
            marks[index] = 1;
        }
        *count += (int64_t)(last - first);
    }
    return wrong;
}

/* Some rows as lines of a dense matrix of zeros, features at their places. */
static const char *spread_rows(const struct rows *rows, const int64_t *numbers, size_t n_numbers,
                               const int32_t *places, size_t reach, double *matrix, size_t width)
{
    const char *wrong = are_below(numbers, n_numbers, rows->count) ? NULL : bad_numbers;
    for (size_t i = 0; i < n_numbers && !wrong; i++) {
        size_t first, last;
        wrong = bounds(rows, (size_t)numbers[i], &first, &last);
        if (wrong)
            return wrong;
        for (size_t entry = first; entry < last; entry++) {
            uint32_t index = (uint32_t)rows->indices[entry];
            if (index >= reach)
                return "indices does not fit: places has none for one";
            if (places[index] < 0 || (size_t)places[index] >= width)
                return "places does not fit: matrix is not as wide as one";
            matrix[i * width + (size_t)places[index]] = rows->values[entry];
        }
    }
    return wrong;
}

/* The entries of rows by column instead, in the order of rows: starts gets one more than there are
 * columns, lines the row of each entry and `transposed` its value. */
static const char *transpose_rows(const struct rows *rows, int64_t *starts, size_t n_columns,
                                  int32_t *lines, double *transposed)
{
    memset(starts, 0, (n_columns + 1) * sizeof *starts);
    for (size_t entry = 0; entry < rows->n_entries; entry++) {
        uint32_t column = (uint32_t)rows->indices[entry];
        if (column >= n_columns)
            return "indices does not fit: column_starts has no column for one";
        starts[column + 1]++;
    }
    for (size_t column = 0; column < n_columns; column++)
        starts[column + 1] += starts[column];
    /* each start moves on to the next one's place, and all are moved back by one in the end */
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

/* The rank of each number from 1 on, equal ones in the order they come in; the two zeros are equal,
 * and nan is last. The room holds twice as many; ranks may lie where the values lie. Sorted by digits
 * of 11 bits, which takes a tenth of the time of comparing. */
#define DIGIT 11
#define DIGITS 3

static void rank_values(const float *values, size_t count, int descending, uint64_t *room,
                        int32_t *ranks)
{
    uint64_t *from = room, *to = room + count;
    size_t places[DIGITS][1 << DIGIT] = {{0}};
    for (size_t i = 0; i < count; i++) {
        float value;
        uint32_t bits;
        memcpy(&value, values + i, sizeof value);
        value = (descending ? -value : value) + 0.0f;
        memcpy(&bits, &value, sizeof bits);
        bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31; /* of negative ones more bits are less */
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

/* LIBSVM tells how many iterations it needed only in what it prints, and only here is it heard: by
 * the thread that trains, without the interpreter. */
#define ITERATIONS "\noptimization finished, #iter = "

static _Thread_local int64_t iterations;

static void listen(const char *text)
{
    if (strncmp(text, ITERATIONS, sizeof ITERATIONS - 1) == 0)
        iterations = strtoll(text + sizeof ITERATIONS - 1, NULL, 10);
}

#ifndef RESVM_WITHOUT_PYTHON
#include "../arrays.h"

/* Let the arrays go; returns 0, having said what was wrong, where something was. */
static int finish(struct array *arrays, size_t n_arrays, const char *wrong)
{
    for (size_t i = 0; i < n_arrays; i++)
        PyBuffer_Release(&arrays[i].buffer);
    if (wrong)
        PyErr_SetString(PyExc_ValueError, wrong);
    return !wrong;
}

#define FINISH(arrays, wrong) \
    (finish(arrays, sizeof arrays / sizeof *arrays, wrong) ? Py_NewRef(Py_None) : NULL)

static int is_product(size_t size, size_t a, size_t b)
{
    return a == 0 ? size == 0 : size % a == 0 && size / a == b;
}

/* Rows from the arrays of their starts, indices and values. */
static const char *take_rows(const struct array *arrays, struct rows *rows)
{
    size_t n_starts = count(&arrays[0]);
    *rows = (struct rows){arrays[0].buffer.buf, n_starts - 1, arrays[1].buffer.buf,
                          arrays[2].buffer.buf, count(&arrays[2])};
    if (n_starts == 0)
        return "starts does not fit: it must have one more than there are rows";
    return count(&arrays[1]) == rows->n_entries ? NULL : "indices and values do not fit each other";
}

PyDoc_STRVAR(exponents_doc,
"exponents(block, row_norms, support_norms, gamma)\n"
"\n"
"Turn the dot products of a block into rbf exponents, in place.");

static PyObject *exponents(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {WRITTEN_FLOAT64("block"), FLOAT64("row_norms"),
                             FLOAT64("support_norms")};
    double gamma;
    if (!PyArg_ParseTuple(args, "O&O&O&d", take, &arrays[0], take, &arrays[1], take, &arrays[2],
                          &gamma))
        return NULL;
    size_t width = count(&arrays[1]), height = count(&arrays[2]);
    const char *wrong = NULL;
    if (!is_product(count(&arrays[0]), width, height))
        wrong = "block does not fit row_norms and support_norms";
    if (!wrong) {
        Py_BEGIN_ALLOW_THREADS
        fill_exponents(arrays[0].buffer.buf, height, width, arrays[1].buffer.buf,
                       arrays[2].buffer.buf, gamma);
        Py_END_ALLOW_THREADS
    }
    return FINISH(arrays, wrong);
}

PyDoc_STRVAR(shares_doc,
"shares(block, row_norms, support_norms)\n"
"\n"
"Turn what rows have in common into its share of all that either has, in place.");

static PyObject *shares(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {WRITTEN_FLOAT64("block"), FLOAT64("row_norms"),
                             FLOAT64("support_norms")};
    if (!PyArg_ParseTuple(args, "O&O&O&", take, &arrays[0], take, &arrays[1], take, &arrays[2]))
        return NULL;
    size_t width = count(&arrays[1]), height = count(&arrays[2]);
    const char *wrong = NULL;
    if (!is_product(count(&arrays[0]), width, height))
        wrong = "block does not fit row_norms and support_norms";
    if (!wrong) {
        Py_BEGIN_ALLOW_THREADS
        fill_shares(arrays[0].buffer.buf, height, width, arrays[1].buffer.buf,
                    arrays[2].buffer.buf);
        Py_END_ALLOW_THREADS
    }
    return FINISH(arrays, wrong);
}

PyDoc_STRVAR(powers_doc,
"powers(block)\n"
"\n"
"Put e^x in place of each x of a block, none of which is above zero.");

static PyObject *powers(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {WRITTEN_FLOAT64("block")};
    if (!PyArg_ParseTuple(args, "O&", take, &arrays[0]))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    fill_powers(arrays[0].buffer.buf, count(&arrays[0]));
    Py_END_ALLOW_THREADS
    return FINISH(arrays, NULL);
}

PyDoc_STRVAR(add_doc,
"add(block, starts, members, coefficients, sums, width)\n"
"\n"
"Add each line of a block, times its coefficients, to the sums of the members that use it.");

static PyObject *add(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {FLOAT64("block"), INT64("starts"), INT32("members"),
                             FLOAT64("coefficients"), WRITTEN_FLOAT64("sums")};
    Py_ssize_t given;
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&n", take, &arrays[0], take, &arrays[1], take, &arrays[2],
                          take, &arrays[3], take, &arrays[4], &given))
        return NULL;
    size_t width = given > 0 ? (size_t)given : 0;
    size_t n_starts = count(&arrays[1]), n_sums = count(&arrays[4]);
    const char *wrong = NULL;
    if (width == 0 || count(&arrays[0]) % width)
        wrong = "block does not fit width";
    else if (n_starts != count(&arrays[0]) / width + 1)
        wrong = "starts does not fit block: it must have one more than there are lines";
    else if (count(&arrays[2]) != count(&arrays[3]))
        wrong = "coefficients does not fit members";
    else if (n_sums % width)
        wrong = "sums does not fit width";
    if (!wrong) {
        Py_BEGIN_ALLOW_THREADS
        wrong = add_weighted(arrays[0].buffer.buf, n_starts - 1, width, arrays[1].buffer.buf,
                             arrays[2].buffer.buf, arrays[3].buffer.buf, count(&arrays[3]),
                             arrays[4].buffer.buf, n_sums / width);
        Py_END_ALLOW_THREADS
    }
    return FINISH(arrays, wrong);
}

PyDoc_STRVAR(add_rbf_doc,
"add_rbf(block, row_norms, support_norms, gamma, starts, members, coefficients, sums)\n"
"\n"
"Exponents, powers and add in one: from the dot products of a block to the members' sums.");

static PyObject *add_rbf(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {WRITTEN_FLOAT64("block"), FLOAT64("row_norms"),
                             FLOAT64("support_norms"), INT64("starts"), INT32("members"),
                             FLOAT64("coefficients"), WRITTEN_FLOAT64("sums")};
    double gamma;
    if (!PyArg_ParseTuple(args, "O&O&O&dO&O&O&O&", take, &arrays[0], take, &arrays[1], take,
                          &arrays[2], &gamma, take, &arrays[3], take, &arrays[4], take, &arrays[5],
                          take, &arrays[6]))
        return NULL;
    size_t width = count(&arrays[1]), height = count(&arrays[2]), n_sums = count(&arrays[6]);
    const char *wrong = NULL;
    if (width == 0 || !is_product(count(&arrays[0]), width, height))
        wrong = "block does not fit row_norms and support_norms";
    else if (count(&arrays[3]) != height + 1)
        wrong = "starts does not fit block: it must have one more than there are lines";
    else if (count(&arrays[4]) != count(&arrays[5]))
        wrong = "coefficients does not fit members";
    else if (n_sums % width)
        wrong = "sums does not fit row_norms";
    if (!wrong) {
        Py_BEGIN_ALLOW_THREADS
        wrong = add_rbf_values(arrays[0].buffer.buf, height, width, arrays[1].buffer.buf,
                               arrays[2].buffer.buf, gamma, arrays[3].buffer.buf,
                               arrays[4].buffer.buf, arrays[5].buffer.buf, count(&arrays[5]),
                               arrays[6].buffer.buf, n_sums / width);
        Py_END_ALLOW_THREADS
    }
    return FINISH(arrays, wrong);
}

PyDoc_STRVAR(weigh_doc,
"weigh(starts, indices, values, places, weights, sums, width)\n"
"\n"
"Rows times the weights of so many members, a multiple of STEP: for each TILE of them, and then for\n"
"each STEP, a line for every place. Features without one are passed over.");

static PyObject *weigh(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {INT64("starts"), INT32("indices"), FLOAT64("values"), INT32("places"),
                             FLOAT64("weights"), WRITTEN_FLOAT64("sums")};
    Py_ssize_t given;
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&O&n", take, &arrays[0], take, &arrays[1], take,
                          &arrays[2], take, &arrays[3], take, &arrays[4], take, &arrays[5], &given))
        return NULL;
    size_t width = given > 0 ? (size_t)given : 0;
    struct rows rows;
    const char *wrong = take_rows(arrays, &rows);
    if (!wrong && (width == 0 || width % STEP))
        wrong = "width does not fit: it must be a multiple of STEP";
    else if (!wrong && count(&arrays[4]) % width)
        wrong = "weights does not fit width";
    else if (!wrong && !is_product(count(&arrays[5]), width, rows.count))
        wrong = "sums does not fit starts and width";
    if (!wrong) {
        struct weights weights = {arrays[3].buffer.buf, count(&arrays[3]), arrays[4].buffer.buf,
                                  count(&arrays[4]) / width, width};
        Py_BEGIN_ALLOW_THREADS
        wrong = weigh_rows(&rows, &weights, arrays[5].buffer.buf);
        Py_END_ALLOW_THREADS
    }
    return FINISH(arrays, wrong);
}

PyDoc_STRVAR(multiply_doc,
"multiply(starts, indices, values, places, column_starts, lines, line_values, block, room,\n"
"         smaller=False)\n"
"\n"
"The products of a sparse matrix, given by its columns, with rows: a line of the block for each line\n"
"of the matrix. The room is eight times as large as a column of the block. The smaller of two\n"
"numbers may stand for their product.");

static PyObject *multiply(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {INT64("starts"), INT32("indices"), FLOAT64("values"), INT32("places"),
                             INT64("column_starts"), INT32("lines"), FLOAT64("line_values"),
                             WRITTEN_FLOAT64("block"), WRITTEN_FLOAT64("room")};
    int smaller = 0;
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&O&O&O&O&|p", take, &arrays[0], take, &arrays[1], take,
                          &arrays[2], take, &arrays[3], take, &arrays[4], take, &arrays[5], take,
                          &arrays[6], take, &arrays[7], take, &arrays[8], &smaller))
        return NULL;
    struct rows rows;
    size_t n_starts = count(&arrays[4]), height = count(&arrays[8]) / TOGETHER;
    const char *wrong = take_rows(arrays, &rows);
    if (!wrong && n_starts == 0)
        wrong = "column_starts does not fit: it must have one more than there are columns";
    else if (!wrong && count(&arrays[5]) != count(&arrays[6]))
        wrong = "line_values does not fit lines";
    else if (!wrong && count(&arrays[8]) % TOGETHER)
        wrong = "room does not fit: it must be a multiple of TOGETHER";
    else if (!wrong && !is_product(count(&arrays[7]), rows.count, height))
        wrong = "block does not fit starts and room";
    if (!wrong) {
        struct columns matrix = {arrays[4].buffer.buf, n_starts - 1, arrays[5].buffer.buf,
                                 arrays[6].buffer.buf, count(&arrays[6])};
        Py_BEGIN_ALLOW_THREADS
        wrong = multiply_rows(&rows, arrays[3].buffer.buf, count(&arrays[3]), &matrix,
                              arrays[7].buffer.buf, height, arrays[8].buffer.buf, smaller);
        Py_END_ALLOW_THREADS
    }
    return FINISH(arrays, wrong);
}

PyDoc_STRVAR(mark_doc,
"mark(starts, indices, values, numbers, marks)\n"
"\n"
"Set the marks of the features that the rows of these numbers have. Returns how many entries\n"
"those rows have.");

static PyObject *mark(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {INT64("starts"), INT32("indices"), FLOAT64("values"), INT64("numbers"),
                             WRITTEN_BOOL("marks")};
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&", take, &arrays[0], take, &arrays[1], take, &arrays[2],
                          take, &arrays[3], take, &arrays[4]))
        return NULL;
    struct rows rows;
    int64_t n_entries = 0;
    const char *wrong = take_rows(arrays, &rows);
    if (!wrong) {
        Py_BEGIN_ALLOW_THREADS
        wrong = mark_features(&rows, arrays[3].buffer.buf, count(&arrays[3]), arrays[4].buffer.buf,
                              count(&arrays[4]), &n_entries);
        Py_END_ALLOW_THREADS
    }
    return finish(arrays, 5, wrong) ? PyLong_FromLongLong(n_entries) : NULL;
}

PyDoc_STRVAR(spread_doc,
"spread(starts, indices, values, numbers, places, matrix, width)\n"
"\n"
"Write the rows of these numbers into the lines of a matrix of zeros, features at their places.");

static PyObject *spread(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {INT64("starts"), INT32("indices"), FLOAT64("values"), INT64("numbers"),
                             INT32("places"), WRITTEN_FLOAT64("matrix")};
    Py_ssize_t given;
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&O&n", take, &arrays[0], take, &arrays[1], take,
                          &arrays[2], take, &arrays[3], take, &arrays[4], take, &arrays[5], &given))
        return NULL;
    size_t width = given > 0 ? (size_t)given : 0, n_numbers = count(&arrays[3]);
    struct rows rows;
    const char *wrong = take_rows(arrays, &rows);
    if (!wrong && (width == 0 || !is_product(count(&arrays[5]), width, n_numbers)))
        wrong = "matrix does not fit numbers and width";
    if (!wrong) {
        Py_BEGIN_ALLOW_THREADS
        wrong = spread_rows(&rows, arrays[3].buffer.buf, n_numbers, arrays[4].buffer.buf,
                            count(&arrays[4]), arrays[5].buffer.buf, width);
        Py_END_ALLOW_THREADS
    }
    return FINISH(arrays, wrong);
}

PyDoc_STRVAR(solve_doc,
"solve(values, height, numbers, starts, n_positive, settings, room, coefficients, rhos, steps)\n"
"\n"
"Several SVMs on each of several bags, given the kernel values (height x height) of the rows that\n"
"bags are drawn from. The numbers of bag b lie from starts[b] on, those of P first. Of each SVM the\n"
"settings are the penalties of P and U and the tolerance, first SVM of every bag, then the second. The\n"
"room holds lines of the largest bag, LEAST_LINES or more, and LINE_END.");

static PyObject *solve(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {FLOAT64("values"), INT64("numbers"), INT64("starts"),
                             INT64("n_positive"), FLOAT64("settings"), WRITTEN_FLOAT32("room"),
                             WRITTEN_FLOAT64("coefficients"), WRITTEN_FLOAT64("rhos"),
                             WRITTEN_INT64("steps")};
    Py_ssize_t given;
    if (!PyArg_ParseTuple(args, "O&nO&O&O&O&O&O&O&O&", take, &arrays[0], &given, take, &arrays[1],
                          take, &arrays[2], take, &arrays[3], take, &arrays[4], take, &arrays[5],
                          take, &arrays[6], take, &arrays[7], take, &arrays[8]))
        return NULL;
    struct bags bags = {arrays[0].buffer.buf, given > 0 ? (size_t)given : 0, arrays[1].buffer.buf,
                        arrays[2].buffer.buf, arrays[3].buffer.buf, count(&arrays[1]),
                        count(&arrays[3]), 0, arrays[4].buffer.buf, arrays[5].buffer.buf,
                        count(&arrays[5])};
    const char *wrong = NULL;
    if (bags.n_bags)
        bags.n_problems = count(&arrays[7]) / bags.n_bags;
    if (!is_product(count(&arrays[0]), bags.height, bags.height))
        wrong = "values does not fit height";
    else if (count(&arrays[2]) != bags.n_bags + 1)
        wrong = "starts does not fit n_positive: it must have one more than there are bags";
    else if (!is_product(count(&arrays[7]), bags.n_bags, bags.n_problems))
        wrong = "rhos does not fit n_positive";
    else if (count(&arrays[8]) != count(&arrays[7]))
        wrong = "steps does not fit rhos";
    else if (!is_product(count(&arrays[4]), 3, count(&arrays[7])))
        wrong = "settings does not fit rhos";
    else if (!is_product(count(&arrays[6]), bags.n_numbers, bags.n_problems))
        wrong = "coefficients does not fit numbers and rhos";
    if (!wrong) {
        Py_BEGIN_ALLOW_THREADS
        wrong = solve_bags(&bags, widest_passes(), arrays[6].buffer.buf, arrays[7].buffer.buf,
                           arrays[8].buffer.buf);
        Py_END_ALLOW_THREADS
    }
    if (wrong == no_room) {
        FINISH(arrays, NULL);
        return PyErr_NoMemory();
    }
    return FINISH(arrays, wrong);
}

PyDoc_STRVAR(transpose_doc,
"transpose(starts, indices, values, column_starts, lines, line_values)\n"
"\n"
"The entries of rows by column, as multiply wants them.");

static PyObject *transpose(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {INT64("starts"), INT32("indices"), FLOAT64("values"),
                             WRITTEN_INT64("column_starts"), WRITTEN_INT32("lines"),
                             WRITTEN_FLOAT64("line_values")};
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&O&", take, &arrays[0], take, &arrays[1], take, &arrays[2],
                          take, &arrays[3], take, &arrays[4], take, &arrays[5]))
        return NULL;
    struct rows rows;
    const char *wrong = take_rows(arrays, &rows);
    if (!wrong && rows.count > INT32_MAX)
        wrong = "starts does not fit: there are more rows than lines has numbers for";
    else if (!wrong && count(&arrays[3]) == 0)
        wrong = "column_starts does not fit: it must have one more than there are columns";
    else if (!wrong && count(&arrays[4]) != rows.n_entries)
        wrong = "lines does not fit values";
    else if (!wrong && count(&arrays[5]) != rows.n_entries)
        wrong = "line_values does not fit values";
    if (!wrong) {
        Py_BEGIN_ALLOW_THREADS
        wrong = transpose_rows(&rows, arrays[3].buffer.buf, count(&arrays[3]) - 1,
                               arrays[4].buffer.buf, arrays[5].buffer.buf);
        Py_END_ALLOW_THREADS
    }
    return FINISH(arrays, wrong);
}

PyDoc_STRVAR(rank_doc,
"rank(values, descending, room, ranks)\n"
"\n"
"The rank of each value from 1 on, equal ones in their order, nan last. The room holds twice as\n"
"many; the ranks may take the values' place.");

static PyObject *rank(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array arrays[] = {FLOAT32("values"), WRITTEN_UINT64("room"), WRITTEN_INT32("ranks")};
    int descending;
    if (!PyArg_ParseTuple(args, "O&pO&O&", take, &arrays[0], &descending, take, &arrays[1], take,
                          &arrays[2]))
        return NULL;
    size_t n_values = count(&arrays[0]);
    const char *wrong = NULL;
    if (n_values > INT32_MAX || count(&arrays[2]) != n_values)
        wrong = "values and ranks do not fit each other";
    else if (!is_product(count(&arrays[1]), n_values, 2))
        wrong = "room does not fit values";
    if (!wrong) {
        Py_BEGIN_ALLOW_THREADS
        rank_values(arrays[0].buffer.buf, n_values, descending, arrays[1].buffer.buf,
                    arrays[2].buffer.buf);
        Py_END_ALLOW_THREADS
    }
    return FINISH(arrays, wrong);
}

PyDoc_STRVAR(listener_doc,
"listener()\n"
"\n"
"The address of a function for LIBSVM to print by, which prints nothing.");

static PyObject *listener(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    return PyLong_FromVoidPtr((void *)(uintptr_t)listen);
}

PyDoc_STRVAR(heard_doc,
"heard()\n"
"\n"
"The iterations that the listener last heard of in this thread, which are then forgotten.");

static PyObject *heard(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    long long last = iterations;
    iterations = 0;
    return PyLong_FromLongLong(last);
}

static PyMethodDef methods[] = {{"exponents", exponents, METH_VARARGS, exponents_doc},
                                {"shares", shares, METH_VARARGS, shares_doc},
                                {"powers", powers, METH_VARARGS, powers_doc},
                                {"add", add, METH_VARARGS, add_doc},
                                {"add_rbf", add_rbf, METH_VARARGS, add_rbf_doc},
                                {"weigh", weigh, METH_VARARGS, weigh_doc},
                                {"multiply", multiply, METH_VARARGS, multiply_doc},
                                {"mark", mark, METH_VARARGS, mark_doc},
                                {"spread", spread, METH_VARARGS, spread_doc},
                                {"solve", solve, METH_VARARGS, solve_doc},
                                {"transpose", transpose, METH_VARARGS, transpose_doc},
                                {"rank", rank, METH_VARARGS, rank_doc},
                                {"listener", listener, METH_NOARGS, listener_doc},
                                {"heard", heard, METH_NOARGS, heard_doc},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_blocks", "Arithmetic over blocks of rows.", 0, methods, NULL, NULL, NULL,
    NULL};

PyMODINIT_FUNC PyInit__blocks(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && (PyModule_AddIntConstant(module, "TILE", TILE) < 0 ||
                   PyModule_AddIntConstant(module, "STEP", STEP) < 0 ||
                   PyModule_AddIntConstant(module, "TOGETHER", TOGETHER) < 0 ||
                   PyModule_AddIntConstant(module, "LINE_END", LINE_END) < 0 ||
                   PyModule_AddIntConstant(module, "LEAST_LINES", LEAST_LINES) < 0 ||
                   PyModule_AddIntConstant(module, "OWN_POWERS", OWN_POWERS) < 0))
        Py_CLEAR(module);
    return module;
}
#endif
