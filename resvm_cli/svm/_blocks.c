/* Arithmetic between rows, blocks and members that no numpy call does in one pass; and, beside it,
 * what LIBSVM is handed of it, and what it says.
 *
 * Each result is a sum in one fixed order, whatever its neighbours are. The cores know nothing of
 * Python, so that the fuzz target can include this file; they check every number they are given
 * before they follow it, and return 0 where one is out of range. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One binary for every x86-64: the loader picks the widest vectors. No multiplication is fused with
 * an addition (-ffp-contract=off), unless it says so, and so all give the same bits. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(RESVM_WITHOUT_PYTHON)
#define CHOOSES
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
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

#ifdef CHOOSES
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
#ifdef CHOOSES
    if (__builtin_cpu_supports("avx512f"))
        fill_powers_avx512(at, count);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        fill_powers_fma(at, count);
    else
#endif
        fill_powers_by(at, count, 0);
}

/* sums[member] += coefficient * line, for each entry of each line. Entries of line i lie between
 * starts[i] and starts[i + 1]. Returns 0, with some sums unfinished, where an entry is out of range. */
WIDEST static int add_weighted(const double *block, size_t height, size_t width,
                               const int64_t *starts, const int32_t *members,
                               const double *coefficients, size_t n_entries, double *sums,
                               size_t n_members)
{
    for (size_t line = 0; line < height; line++) {
        const double *at = block + line * width;
        int64_t first = starts[line], last = starts[line + 1];
        if (first < 0 || last < first || (uint64_t)last > n_entries)
            return 0;
        for (int64_t entry = first; entry < last; entry++) {
            int32_t member = members[entry];
            if (member < 0 || (size_t)member >= n_members)
                return 0;
            double *sum = sums + (size_t)member * width;
            const double coefficient = coefficients[entry];
            for (size_t i = 0; i < width; i++)
                sum[i] += coefficient * at[i];
        }
    }
    return 1;
}

/* All of that for each line in turn, while it is in the nearest cache: dot products to exponents, to
 * powers, to the members' sums. */
static int add_rbf_values(double *block, size_t height, size_t width, const double *row_norms,
                          const double *support_norms, double gamma, const int64_t *starts,
                          const int32_t *members, const double *coefficients, size_t n_entries,
                          double *sums, size_t n_members)
{
    for (size_t line = 0; line < height; line++) {
        double *at = block + line * width;
        fill_exponents(at, 1, width, row_norms, support_norms + line, gamma);
        fill_powers(at, width);
        if (!add_weighted(at, 1, width, starts + line, members, coefficients, n_entries, sums,
                          n_members))
            return 0;
    }
    return 1;
}

/* Sparse rows: the entries of row i lie between starts[i] and starts[i + 1]. */
struct rows {
    const int64_t *starts;
    size_t count;
    const int32_t *indices;
    const double *values;
    size_t n_entries;
};

static int bounds(const struct rows *rows, size_t number, size_t *first, size_t *last)
{
    if (number >= rows->count)
        return 0;
    int64_t from = rows->starts[number], to = rows->starts[number + 1];
    *first = (size_t)from;
    *last = (size_t)to;
    return from >= 0 && to >= from && (uint64_t)to <= rows->n_entries;
}

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

static inline __attribute__((always_inline)) int add_row(const struct rows *rows, size_t number,
                                                         const struct weights *weights,
                                                         size_t member, size_t tile, double *sums)
{
    const double *lines = weights->tiles + member * weights->n_lines;
    double sum[TILE] = {0};
    size_t first, last;
    if (!bounds(rows, number, &first, &last))
        return 0;
    for (size_t entry = first; entry < last; entry++) {
        uint32_t index = (uint32_t)rows->indices[entry]; /* a negative one is beyond reach */
        int32_t place = index < weights->reach ? weights->places[index] : -1;
        if (place < 0)
            continue;
        if ((size_t)place >= weights->n_lines)
            return 0;
        const double *line = lines + (size_t)place * tile;
        const double value = rows->values[entry];
        for (size_t i = 0; i < tile; i++)
            sum[i] += value * line[i];
    }
    memcpy(sums + number * weights->width + member, sum, tile * sizeof *sum);
    return 1;
}

/* sums[row][member] = the row times the member's weights, added in the order of the row's entries.
 * The width is a multiple of STEP. */
WIDEST static int weigh_rows(const struct rows *rows, const struct weights *weights, double *sums)
{
    size_t member = 0;
    for (; member + TILE <= weights->width; member += TILE)
        for (size_t number = 0; number < rows->count; number++)
            if (!add_row(rows, number, weights, member, TILE, sums))
                return 0;
    for (; member + STEP <= weights->width; member += STEP)
        for (size_t number = 0; number < rows->count; number++)
            if (!add_row(rows, number, weights, member, STEP, sums))
                return 0;
    return 1;
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
static int multiply_rows(const struct rows *rows, const int32_t *places, size_t reach,
                         const struct columns *matrix, double *block, size_t height, double *room,
                         int smaller)
{
    for (size_t start = 0; start < rows->count; start += TOGETHER) {
        size_t count = rows->count - start < TOGETHER ? rows->count - start : TOGETHER;
        memset(room, 0, count * height * sizeof *room);
        for (size_t number = 0; number < count; number++) {
            double *sums = room + number * height;
            size_t first, last;
            if (!bounds(rows, start + number, &first, &last))
                return 0;
            for (size_t entry = first; entry < last; entry++) {
                uint32_t index = (uint32_t)rows->indices[entry];
                int32_t place = index < reach ? places[index] : -1;
                if (place < 0)
                    continue;
                if ((size_t)place >= matrix->count)
                    return 0;
                int64_t from = matrix->starts[place], to = matrix->starts[place + 1];
                if (from < 0 || to < from || (uint64_t)to > matrix->n_entries)
                    return 0;
                const double value = rows->values[entry];
                for (int64_t other = from; other < to; other++) {
                    size_t line = (uint32_t)matrix->lines[other];
                    if (line >= height)
                        return 0;
                    const double held = matrix->values[other];
                    sums[line] += !smaller ? value * held : value < held ? value : held;
                }
            }
        }
        for (size_t line = 0; line < height; line++)
            for (size_t number = 0; number < count; number++)
                block[line * rows->count + start + number] = room[number * height + line];
    }
    return 1;
}

/* Mark the features that any of some rows has; counts their entries. */
static int mark_features(const struct rows *rows, const int64_t *numbers, size_t n_numbers,
                         unsigned char *marks, size_t reach, int64_t *count)
{
    *count = 0;
    for (size_t i = 0; i < n_numbers; i++) {
        size_t first, last;
        if (numbers[i] < 0 || !bounds(rows, (size_t)numbers[i], &first, &last))
            return 0;
        for (size_t entry = first; entry < last; entry++) {
            uint32_t index = (uint32_t)rows->indices[entry];
            if (index >= reach)
                return 0;
            marks[index] = 1;
        }
        *count += (int64_t)(last - first);
    }
    return 1;
}

/* Some rows as lines of a dense matrix of zeros, features at their places. */
static int spread_rows(const struct rows *rows, const int64_t *numbers, size_t n_numbers,
                       const int32_t *places, size_t reach, double *matrix, size_t width)
{
    for (size_t i = 0; i < n_numbers; i++) {
        size_t first, last;
        if (numbers[i] < 0 || !bounds(rows, (size_t)numbers[i], &first, &last))
            return 0;
        for (size_t entry = first; entry < last; entry++) {
            uint32_t index = (uint32_t)rows->indices[entry];
            if (index >= reach || places[index] < 0 || (size_t)places[index] >= width)
                return 0;
            matrix[i * width + (size_t)places[index]] = rows->values[entry];
        }
    }
    return 1;
}

/* LIBSVM's svm_node. */
struct node {
    int32_t index;
    double value;
};

/* Kernel values between some rows as LIBSVM wants them: for each row a line of nodes, its serial
 * number and then its value with every row. The indices of such nodes are not looked at. */
static int fill_nodes(const double *values, size_t height, const int64_t *numbers, size_t n_numbers,
                      struct node *nodes)
{
    for (size_t i = 0; i < n_numbers; i++)
        if (numbers[i] < 0 || (size_t)numbers[i] >= height)
            return 0;
    for (size_t i = 0; i < n_numbers; i++) {
        const double *line = values + (size_t)numbers[i] * height;
        *nodes++ = (struct node){0, (double)(i + 1)};
        for (size_t j = 0; j < n_numbers; j++)
            *nodes++ = (struct node){0, line[numbers[j]]};
    }
    return 1;
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
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static size_t doubles(const Py_buffer *buffer) { return (size_t)buffer->len / sizeof(double); }
static size_t longs(const Py_buffer *buffer) { return (size_t)buffer->len / sizeof(int64_t); }
static size_t ints(const Py_buffer *buffer) { return (size_t)buffer->len / sizeof(int32_t); }
static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Let the buffers go, and say None, or what did not fit. */
static PyObject *finish(Py_buffer *buffers, size_t count, int fits, const char *complaint)
{
    for (size_t i = 0; i < count; i++)
        PyBuffer_Release(&buffers[i]);
    if (fits)
        return Py_NewRef(Py_None);
    PyErr_SetString(PyExc_ValueError, complaint);
    return NULL;
}

/* Rows from the buffers of their starts, indices and values. */
static int rows_from(const Py_buffer *buffers, struct rows *rows)
{
    size_t n_starts = longs(&buffers[0]);
    rows->starts = buffers[0].buf;
    rows->count = n_starts > 0 ? n_starts - 1 : 0;
    rows->indices = buffers[1].buf;
    rows->values = buffers[2].buf;
    rows->n_entries = least(ints(&buffers[1]), doubles(&buffers[2]));
    return n_starts > 0;
}

PyDoc_STRVAR(exponents_doc,
"exponents(block, row_norms, support_norms, gamma)\n"
"\n"
"Turn the dot products of a block into rbf exponents, in place.");

static PyObject *exponents(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer buffers[3]; /* block, row_norms, support_norms */
    double gamma;
    if (!PyArg_ParseTuple(args, "w*y*y*d", &buffers[0], &buffers[1], &buffers[2], &gamma))
        return NULL;
    size_t width = doubles(&buffers[1]), height = doubles(&buffers[2]);
    size_t size = doubles(&buffers[0]);
    int fits = width > 0 && height == size / width && size % width == 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        fill_exponents(buffers[0].buf, height, width, buffers[1].buf, buffers[2].buf, gamma);
        Py_END_ALLOW_THREADS
    }
    return finish(buffers, 3, fits, "the block does not fit the norms");
}

PyDoc_STRVAR(shares_doc,
"shares(block, row_norms, support_norms)\n"
"\n"
"Turn what rows have in common into its share of all that either has, in place.");

static PyObject *shares(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer buffers[3]; /* block, row_norms, support_norms */
    if (!PyArg_ParseTuple(args, "w*y*y*", &buffers[0], &buffers[1], &buffers[2]))
        return NULL;
    size_t width = doubles(&buffers[1]), height = doubles(&buffers[2]);
    size_t size = doubles(&buffers[0]);
    int fits = width > 0 && height == size / width && size % width == 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        fill_shares(buffers[0].buf, height, width, buffers[1].buf, buffers[2].buf);
        Py_END_ALLOW_THREADS
    }
    return finish(buffers, 3, fits, "the block does not fit the norms");
}

PyDoc_STRVAR(powers_doc,
"powers(block)\n"
"\n"
"Put e^x in place of each x of a block, none of which is above zero.");

static PyObject *powers(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer block;
    if (!PyArg_ParseTuple(args, "w*", &block))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    fill_powers(block.buf, doubles(&block));
    Py_END_ALLOW_THREADS
    return finish(&block, 1, 1, "");
}

PyDoc_STRVAR(add_doc,
"add(block, starts, members, coefficients, sums, width)\n"
"\n"
"Add each line of a block, times its coefficients, to the sums of the members that use it.");

static PyObject *add(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer buffers[5]; /* block, starts, members, coefficients, sums */
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*n", &buffers[0], &buffers[1], &buffers[2], &buffers[3],
                          &buffers[4], &width))
        return NULL;
    size_t size = doubles(&buffers[0]), n_sums = doubles(&buffers[4]);
    size_t n_starts = longs(&buffers[1]);
    size_t n_entries = least(ints(&buffers[2]), doubles(&buffers[3]));
    int fits = width > 0 && n_starts > 0 && size % (size_t)width == 0 &&
               n_sums % (size_t)width == 0 && size / (size_t)width == n_starts - 1;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        fits = add_weighted(buffers[0].buf, n_starts - 1, (size_t)width, buffers[1].buf,
                            buffers[2].buf, buffers[3].buf, n_entries, buffers[4].buf,
                            n_sums / (size_t)width);
        Py_END_ALLOW_THREADS
    }
    return finish(buffers, 5, fits, "the block does not fit its entries or the sums");
}

PyDoc_STRVAR(add_rbf_doc,
"add_rbf(block, row_norms, support_norms, gamma, starts, members, coefficients, sums)\n"
"\n"
"Exponents, powers and add in one: from the dot products of a block to the members' sums.");

static PyObject *add_rbf(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer buffers[7]; /* block, row_norms, support_norms, starts, members, coefficients, sums */
    double gamma;
    if (!PyArg_ParseTuple(args, "w*y*y*dy*y*y*w*", &buffers[0], &buffers[1], &buffers[2], &gamma,
                          &buffers[3], &buffers[4], &buffers[5], &buffers[6]))
        return NULL;
    size_t size = doubles(&buffers[0]), n_sums = doubles(&buffers[6]);
    size_t width = doubles(&buffers[1]), height = doubles(&buffers[2]);
    size_t n_entries = least(ints(&buffers[4]), doubles(&buffers[5]));
    int fits = width > 0 && height == size / width && size % width == 0 && n_sums % width == 0 &&
               longs(&buffers[3]) == height + 1;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        fits = add_rbf_values(buffers[0].buf, height, width, buffers[1].buf, buffers[2].buf, gamma,
                              buffers[3].buf, buffers[4].buf, buffers[5].buf, n_entries,
                              buffers[6].buf, n_sums / width);
        Py_END_ALLOW_THREADS
    }
    return finish(buffers, 7, fits, "the block does not fit the norms, its entries or the sums");
}

PyDoc_STRVAR(weigh_doc,
"weigh(starts, indices, values, places, weights, sums, width)\n"
"\n"
"Rows times the weights of so many members, a multiple of STEP: for each TILE of them, and then for\n"
"each STEP, a line for every place. Features without one are passed over.");

static PyObject *weigh(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer buffers[6]; /* starts, indices, values, places, weights, sums */
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*w*n", &buffers[0], &buffers[1], &buffers[2], &buffers[3],
                          &buffers[4], &buffers[5], &width))
        return NULL;
    struct rows rows;
    int fits = rows_from(buffers, &rows) && width > 0 && width % STEP == 0 &&
               doubles(&buffers[5]) / (size_t)width == rows.count;
    if (fits) {
        struct weights weights = {buffers[3].buf, ints(&buffers[3]), buffers[4].buf,
                                  doubles(&buffers[4]) / (size_t)width, (size_t)width};
        Py_BEGIN_ALLOW_THREADS
        fits = weigh_rows(&rows, &weights, buffers[5].buf);
        Py_END_ALLOW_THREADS
    }
    return finish(buffers, 6, fits, "the rows do not fit the weights or the sums");
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
    Py_buffer buffers[9]; /* as they are named above */
    int smaller = 0;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*w*w*|p", &buffers[0], &buffers[1], &buffers[2],
                          &buffers[3], &buffers[4], &buffers[5], &buffers[6], &buffers[7],
                          &buffers[8], &smaller))
        return NULL;
    struct rows rows;
    size_t n_starts = longs(&buffers[4]), height = doubles(&buffers[8]) / TOGETHER;
    int fits = rows_from(buffers, &rows) && n_starts > 0 && rows.count > 0 &&
               doubles(&buffers[7]) / rows.count == height;
    if (fits) {
        struct columns matrix = {buffers[4].buf, n_starts - 1, buffers[5].buf, buffers[6].buf,
                                 least(ints(&buffers[5]), doubles(&buffers[6]))};
        Py_BEGIN_ALLOW_THREADS
        fits = multiply_rows(&rows, buffers[3].buf, ints(&buffers[3]), &matrix, buffers[7].buf,
                             height, buffers[8].buf, smaller);
        Py_END_ALLOW_THREADS
    }
    return finish(buffers, 9, fits, "the rows do not fit the matrix or the block");
}

PyDoc_STRVAR(mark_doc,
"mark(starts, indices, values, numbers, marks)\n"
"\n"
"Set the marks of the features that the rows of these numbers have. Returns how many entries\n"
"those rows have.");

static PyObject *mark(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer buffers[5]; /* starts, indices, values, numbers, marks */
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*", &buffers[0], &buffers[1], &buffers[2], &buffers[3],
                          &buffers[4]))
        return NULL;
    struct rows rows;
    int64_t count = 0;
    int fits = rows_from(buffers, &rows);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        fits = mark_features(&rows, buffers[3].buf, longs(&buffers[3]), buffers[4].buf,
                             (size_t)buffers[4].len, &count);
        Py_END_ALLOW_THREADS
    }
    PyObject *done = finish(buffers, 5, fits, "the rows do not fit their numbers or the marks");
    if (!done)
        return NULL;
    Py_DECREF(done);
    return PyLong_FromLongLong(count);
}

PyDoc_STRVAR(spread_doc,
"spread(starts, indices, values, numbers, places, matrix, width)\n"
"\n"
"Write the rows of these numbers into the lines of a matrix of zeros, features at their places.");

static PyObject *spread(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer buffers[6]; /* starts, indices, values, numbers, places, matrix */
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*w*n", &buffers[0], &buffers[1], &buffers[2], &buffers[3],
                          &buffers[4], &buffers[5], &width))
        return NULL;
    struct rows rows;
    int fits = rows_from(buffers, &rows) && width > 0 &&
               doubles(&buffers[5]) / (size_t)width == longs(&buffers[3]);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        fits = spread_rows(&rows, buffers[3].buf, longs(&buffers[3]), buffers[4].buf,
                           ints(&buffers[4]), buffers[5].buf, (size_t)width);
        Py_END_ALLOW_THREADS
    }
    return finish(buffers, 6, fits, "the rows do not fit their numbers, places or the matrix");
}

PyDoc_STRVAR(gram_doc,
"gram(values, height, numbers, nodes)\n"
"\n"
"The kernel values (height x height) between the rows of these numbers as LIBSVM's nodes.");

static PyObject *gram(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer buffers[3]; /* values, numbers, nodes */
    Py_ssize_t given;
    if (!PyArg_ParseTuple(args, "y*ny*w*", &buffers[0], &given, &buffers[1], &buffers[2]))
        return NULL;
    size_t height = given > 0 ? (size_t)given : 0, count = longs(&buffers[1]);
    size_t n_nodes = (size_t)buffers[2].len / sizeof(struct node);
    int fits = height > 0 && doubles(&buffers[0]) / height == height && n_nodes / (count + 1) == count;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        fits = fill_nodes(buffers[0].buf, height, buffers[1].buf, count, buffers[2].buf);
        Py_END_ALLOW_THREADS
    }
    return finish(buffers, 3, fits, "the kernel values do not fit their numbers or the nodes");
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
                                {"gram", gram, METH_VARARGS, gram_doc},
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
                   PyModule_AddIntConstant(module, "TOGETHER", TOGETHER) < 0))
        Py_CLEAR(module);
    return module;
}
#endif
