/* Doubles as text: byte for byte what Python's repr writes, many at a time, the GIL released.
 *
 * The cores (format_rows, format_lines) know nothing of Python, so that the fuzz target can include
 * this file. They stop where what comes next might not fit, and go on from there when called again
 * with more room. fill_tables must have been called once before. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_ROOM 24 /* -2.2250738585072014e-308 */
#define WHOLE_ROOM 20  /* -9223372036854775808 */
#define ENTRY_ROOM (1 + 11 + 1 + NUMBER_ROOM)         /* blank, index, colon, number */
#define FIELD_ROOM (WHOLE_ROOM + 1 + NUMBER_ROOM + 1) /* label, separator, number, newline */

enum status { DONE = 0, FULL, MISFIT, OUT_OF_MEMORY };

/* What has been written so far, and of which numbers. */
struct output {
    char *text;
    size_t used, capacity;
    size_t rows, entries;
};

/* Writes a number that the fast paths leave into NUMBER_ROOM bytes and returns its end; NULL when
 * memory ran out. */
typedef char *(*slow_number)(void *context, double number, char *to);

/* digits * 10^exponent, `count` being how many digits there are */
struct decimal {
    uint64_t digits;
    int count, exponent;
};

static char pairs[200]; /* 00 01 02 .. 99 */

/* Writes exactly as many digits as the number has. */
static inline void write_digits(char *to, uint64_t digits, int count)
{
    char *end = to + count;
    while (digits >= 100000000) {
        uint32_t low = (uint32_t)(digits % 100000000);
        digits /= 100000000;
        uint32_t upper = low / 10000, lower = low % 10000;
        end -= 8;
        memcpy(end, pairs + 2 * (upper / 100), 2);
        memcpy(end + 2, pairs + 2 * (upper % 100), 2);
        memcpy(end + 4, pairs + 2 * (lower / 100), 2);
        memcpy(end + 6, pairs + 2 * (lower % 100), 2);
    }
    uint32_t rest = (uint32_t)digits;
    for (; rest >= 100; rest /= 100) {
        end -= 2;
        memcpy(end, pairs + 2 * (rest % 100), 2);
    }
    if (rest >= 10)
        memcpy(end - 2, pairs + 2 * rest, 2);
    else
        end[-1] = (char)('0' + rest);
}

/* Of a number up to 2^63: 10^19 still fits 64 bits. */
static inline int count_digits(uint64_t number)
{
    int count = 1;
    for (uint64_t limit = 10; number >= limit; limit *= 10)
        count++;
    return count;
}

static inline char *write_whole(char *to, int64_t number)
{
    uint64_t size = (uint64_t)number;
    if (number < 0) {
        *to++ = '-';
        size = 0 - size;
    }
    int count = count_digits(size);
    write_digits(to, size, count);
    return to + count;
}

/* Lays a decimal out as repr does: an exponent below 1e-4 and from 1e16 on. */
static inline char *write_decimal(char *to, struct decimal number)
{
    int count = number.count, point = count + number.exponent; /* digits before the point */
    if (point < -3 || point > 16) {
        int power = point - 1;
        write_digits(to + 1, number.digits, count);
        to[0] = to[1];
        to[1] = '.';
        to += count > 1 ? count + 1 : 1;
        *to++ = 'e';
        *to++ = power < 0 ? '-' : '+';
        memcpy(to, pairs + 2 * (power < 0 ? -power : power), 2); /* the tables end long before 99 */
        return to + 2;
    }
    if (point <= 0) {
        memcpy(to, "0.000", 5);
        to += 2 - point;
        write_digits(to, number.digits, count);
        return to + count;
    }
    if (point < count) {
        write_digits(to + 1, number.digits, count);
        for (int i = 0; i < point; i++)
            to[i] = to[i + 1];
        to[point] = '.';
        return to + count + 1;
    }
    write_digits(to, number.digits, count);
    memset(to + count, '0', (size_t)(point - count));
    memcpy(to + point, ".0", 2);
    return to + point + 2;
}

#ifdef __SIZEOF_INT128__
/* The Schubfach way (R. Giulietti). What reads back as the double is an interval, and 10^k is the
 * largest power of ten that is not wider. So at most one multiple of 10^(k+1) lies in it: less its
 * trailing zeros, that is the shortest decimal. If there is none, it is the nearest multiple of
 * 10^k in the interval. All is counted in quarters of 10^k; fractions are cut off and the last bit
 * set instead, which changes no comparison with an even number.
 *
 * Powers have 126 bits. Up to 10^54 that is exact, and so is every product. Below 1 they are
 * rounded up, by at most 2^-66 in any product; the true product is a multiple of 5^-27 > 2^-63
 * there, so its whole part is right, and the first 64 bits of its fraction are zero just when it
 * has none. */
#define LAST_RECIPROCAL 27
#define LAST_POWER 54

__extension__ typedef unsigned __int128 wide;

static struct power {
    uint64_t high, low;
    int log2;      /* 10^n lies between 2^log2 and twice that */
    uint64_t mask; /* of the low half of a fraction, where that half is exact */
} powers[LAST_RECIPROCAL + 1 + LAST_POWER];

static void fill_powers(void)
{
    wide five = 1;
    for (int n = 0; n <= LAST_POWER; n++, five *= 5) {
        int length = 0;
        while (length < 126 && five >> length)
            length++;
        wide exact = five << (126 - length);
        powers[LAST_RECIPROCAL + n] =
            (struct power){(uint64_t)(exact >> 64), (uint64_t)exact, length - 1 + n, UINT64_MAX};
        if (n == 0 || n > LAST_RECIPROCAL)
            continue;
        wide quotient = 0, remainder = 1;
        for (int bit = 0; bit < 125 + length; bit++) {
            remainder <<= 1;
            quotient <<= 1;
            if (remainder >= five) {
                remainder -= five;
                quotient |= 1;
            }
        }
        quotient++;
        powers[LAST_RECIPROCAL - n] =
            (struct power){(uint64_t)(quotient >> 64), (uint64_t)quotient, -length - n, 0};
    }
}

/* power * factor / 2^128, any fraction cut off and the last bit set instead. */
static inline uint64_t scaled(const struct power *power, uint64_t factor)
{
    wide low = (wide)power->low * factor;
    wide high = (wide)power->high * factor + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | (((uint64_t)high | ((uint64_t)low & power->mask)) != 0);
}

/* The shortest decimal that reads back, the nearest of these; 0 where the powers do not reach. */
static inline int shortest(uint64_t bits, struct decimal *out)
{
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1075;
    int narrow = fraction == 0; /* at a power of two the lower neighbour is twice as near */
    /* 10^k is at most the width of the interval: logarithms of 2 and 3/4, times 2^32 */
    int k = (int)((exponent * INT64_C(1292913986) - narrow * INT64_C(536607790)) >> 32);
    if (k < -LAST_POWER || k > LAST_RECIPROCAL)
        return 0; /* subnormals, infinities and nan among them */
    const struct power *power = &powers[LAST_RECIPROCAL - k];
    int shift = exponent + power->log2 + 3; /* 3 to 6, so factors have at most 62 bits */
    uint64_t quarters = (fraction | UINT64_C(1) << 52) << 2;
    uint64_t lower = scaled(power, (quarters - 2 + (uint64_t)narrow) << shift);
    uint64_t middle = scaled(power, quarters << shift);
    uint64_t upper = scaled(power, (quarters + 2) << shift);
    uint64_t odd = fraction & 1; /* a tie goes to the even neighbour, so the ends are not ours */
    uint64_t ones = middle >> 2, tens = ones / 10;

    int below = lower + odd <= 40 * tens, above = 40 * tens + 40 + odd <= upper;
    if (below != above) {
        uint64_t digits = tens + (uint64_t)above;
        int count = 15 + (digits >= UINT64_C(1000000000000000));
        count += digits >= UINT64_C(10000000000000000);
        k++;
        if (digits % 100000000 == 0) {
            digits /= 100000000;
            count -= 8;
            k += 8;
        }
        while (digits % 10 == 0) {
            digits /= 10;
            count--;
            k++;
        }
        *out = (struct decimal){digits, count, k};
        return 1;
    }
    below = lower + odd <= 4 * ones;
    above = 4 * ones + 4 + odd <= upper;
    if (below == above) {
        uint64_t half = 4 * ones + 2;
        above = middle > half || (middle == half && (ones & 1));
    }
    uint64_t digits = ones + (uint64_t)above; /* no trailing zero: tens would have had it */
    *out = (struct decimal){digits, 16 + (digits >= UINT64_C(10000000000000000)), k};
    return 1;
}
#else
static void fill_powers(void) {}
static inline int shortest(uint64_t bits, struct decimal *out)
{
    (void)bits, (void)out;
    return 0;
}
#endif

static void fill_tables(void)
{
    for (int i = 0; i < 100; i++) {
        pairs[2 * i] = (char)('0' + i / 10);
        pairs[2 * i + 1] = (char)('0' + i % 10);
    }
    fill_powers();
}

/* repr of a double; `to` has NUMBER_ROOM bytes. */
static inline char *write_number(char *to, double number, slow_number slow, void *context)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    struct decimal decimal;
    /* below 2^53 no shorter decimal is as near to a whole number as itself; zeros come here too */
    if (number > -9007199254740992.0 && number < 9007199254740992.0 &&
        (double)(int64_t)number == number) {
        decimal.digits = (uint64_t)(number < 0 ? -(int64_t)number : (int64_t)number);
        decimal.count = count_digits(decimal.digits);
        decimal.exponent = 0;
    } else if (!shortest(bits, &decimal)) {
        return slow(context, number, to);
    }
    if (bits >> 63)
        *to++ = '-';
    return write_decimal(to, decimal);
}

/* `index:value index:value ...` of one row behind the other; ends[r] is where row r's text ends.
 * The .0 of whole numbers is left out. Row r has entries starts[r] to starts[r + 1]; these must
 * begin at 0 and must neither descend nor go beyond n_entries, else MISFIT. */
static enum status format_rows(const int64_t *starts, size_t n_rows, const int32_t *indices,
                               const double *values, size_t n_entries, int64_t *ends,
                               struct output *out, slow_number slow, void *context)
{
    if (starts[0] != 0)
        return MISFIT;
    size_t row = out->rows, entry = out->entries;
    char *at = out->text + out->used, *limit = out->text + out->capacity;
    enum status status = DONE;
    for (; row < n_rows; row++) {
        int64_t last = starts[row + 1];
        if (last < 0 || (uint64_t)last < entry || (uint64_t)last > n_entries) {
            status = MISFIT;
            break;
        }
        size_t first = (size_t)starts[row];
        for (; entry < (size_t)last; entry++) {
            if (limit - at < ENTRY_ROOM) {
                status = FULL;
                break;
            }
            if (entry > first)
                *at++ = ' ';
            at = write_whole(at, indices[entry]);
            *at++ = ':';
            char *end = write_number(at, values[entry], slow, context);
            if (!end) {
                status = OUT_OF_MEMORY;
                break;
            }
            at = end[-2] == '.' && end[-1] == '0' ? end - 2 : end;
        }
        if (status != DONE)
            break;
        ends[row] = at - out->text;
    }
    out->rows = row;
    out->entries = entry;
    out->used = (size_t)(at - out->text);
    return status;
}

/* One line for each row of a table, `n_columns` > 0 numbers parted by `separator`, before them the
 * row's label where labels are given. */
static enum status format_lines(const int64_t *labels, const double *table, size_t n_rows,
                                size_t n_columns, char separator, struct output *out,
                                slow_number slow, void *context)
{
    size_t row = out->rows, column = out->entries;
    char *at = out->text + out->used, *limit = out->text + out->capacity;
    enum status status = DONE;
    for (; row < n_rows; row++, column = 0) {
        for (; column < n_columns; column++) {
            if (limit - at < FIELD_ROOM) {
                status = FULL;
                break;
            }
            if (column == 0 && labels)
                at = write_whole(at, labels[row]);
            if (column > 0 || labels)
                *at++ = separator;
            char *end = write_number(at, table[row * n_columns + column], slow, context);
            if (!end) {
                status = OUT_OF_MEMORY;
                break;
            }
            at = end;
        }
        if (status != DONE)
            break;
        *at++ = '\n';
    }
    out->rows = row;
    out->entries = column;
    out->used = (size_t)(at - out->text);
    return status;
}

#ifndef RESVM_WITHOUT_PYTHON
#include "../arrays.h"

struct interpreter {
    PyThreadState *state;
};

/* repr itself, so that what the fast paths leave equals it by construction. */
static char *python_number(void *context, double number, char *to)
{
    struct interpreter *interpreter = context;
    PyEval_RestoreThread(interpreter->state);
    char *text = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    size_t length = text ? strlen(text) : 0;
    char *end = NULL;
    if (text && length <= NUMBER_ROOM) {
        memcpy(to, text, length);
        end = to + length;
    }
    PyMem_Free(text);
    PyErr_Clear();
    interpreter->state = PyEval_SaveThread();
    return end;
}

/* Makes room for so many more bytes of text; 0 where there is none. */
static int grow(struct output *out, size_t more)
{
    char *text = more < PTRDIFF_MAX - out->capacity ? realloc(out->text, out->capacity + more) : NULL;
    if (!text)
        return 0;
    out->text = text;
    out->capacity += more;
    return 1;
}

/* Room for `numbers` numbers, as much as they usually need. */
static int first_room(struct output *out, size_t numbers)
{
    return numbers < PTRDIFF_MAX / 32 && grow(out, 16 * numbers + 64);
}

/* The text as bytes, or NULL with an error. The stable ABI cannot shorten bytes, so they are a copy. */
static PyObject *finished(struct output *out, enum status status)
{
    PyObject *bytes = NULL;
    if (status == DONE)
        bytes = PyBytes_FromStringAndSize(out->text, (Py_ssize_t)out->used);
    else if (status == MISFIT)
        PyErr_SetString(PyExc_ValueError,
                        "indptr does not fit: it must ascend from 0 to at most the entries");
    else
        PyErr_NoMemory();
    free(out->text);
    return bytes;
}

PyDoc_STRVAR(rows_doc,
"rows(indptr, indices, values, ends)\n"
"\n"
"The rows as index:value text, one behind the other, without the .0 of whole values. The int64\n"
"array ends gets the end of each row's text.");

static PyObject *rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array indptr = INT64("indptr"), indices = INT32("indices"), values = FLOAT64("values"),
                 ends = WRITTEN_INT64("ends");
    if (!PyArg_ParseTuple(args, "O&O&O&O&", take, &indptr, take, &indices, take, &values, take, &ends))
        return NULL;
    PyObject *bytes = NULL;
    size_t n_entries = count(&values);
    if (count(&indptr) == 0) {
        PyErr_SetString(PyExc_ValueError,
                        "indptr does not fit: it must have one more than there are rows");
    } else if (count(&indices) != n_entries) {
        PyErr_SetString(PyExc_ValueError, "indices and values do not fit each other");
    } else if (count(&ends) != count(&indptr) - 1) {
        PyErr_SetString(PyExc_ValueError, "ends does not fit indptr");
    } else {
        struct output out = {0};
        enum status status = FULL;
        struct interpreter interpreter;
        interpreter.state = PyEval_SaveThread();
        for (int roomy = first_room(&out, n_entries); roomy && status == FULL;) {
            status = format_rows(indptr.buffer.buf, count(&ends), indices.buffer.buf,
                                 values.buffer.buf, n_entries, ends.buffer.buf, &out, python_number,
                                 &interpreter);
            roomy = status != FULL || grow(&out, out.capacity);
        }
        PyEval_RestoreThread(interpreter.state);
        bytes = finished(&out, status);
    }
    PyBuffer_Release(&indptr.buffer);
    PyBuffer_Release(&indices.buffer);
    PyBuffer_Release(&values.buffer);
    PyBuffer_Release(&ends.buffer);
    return bytes;
}

PyDoc_STRVAR(lines_doc,
"lines(labels, table, n_columns, separator)\n"
"\n"
"One line for each row of a table of doubles: the row's label where labels are given (int64, or\n"
"None) and its numbers as repr writes them, parted by the separator.");

static int take_unless_none(PyObject *object, void *address)
{
    return object == Py_None ? 1 : take(object, address);
}

static PyObject *lines(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array labels = INT64("labels"), table = FLOAT64("table");
    Py_ssize_t n_columns;
    char separator;
    if (!PyArg_ParseTuple(args, "O&O&nc", take_unless_none, &labels, take, &table, &n_columns,
                          &separator))
        return NULL;
    PyObject *bytes = NULL;
    size_t n_numbers = count(&table), width = n_columns > 0 ? (size_t)n_columns : 0;
    if (width == 0 || n_numbers % width) {
        PyErr_SetString(PyExc_ValueError, "table does not fit n_columns");
    } else if (labels.buffer.obj && count(&labels) != n_numbers / width) {
        PyErr_SetString(PyExc_ValueError, "labels does not fit table and n_columns");
    } else {
        struct output out = {0};
        enum status status = FULL;
        struct interpreter interpreter;
        interpreter.state = PyEval_SaveThread();
        for (int roomy = first_room(&out, n_numbers); roomy && status == FULL;) {
            status = format_lines(labels.buffer.buf, table.buffer.buf, n_numbers / width, width,
                                  separator, &out, python_number, &interpreter);
            roomy = status != FULL || grow(&out, out.capacity);
        }
        PyEval_RestoreThread(interpreter.state);
        bytes = finished(&out, status);
    }
    PyBuffer_Release(&labels.buffer);
    PyBuffer_Release(&table.buffer);
    return bytes;
}

static PyMethodDef methods[] = {{"rows", rows, METH_VARARGS, rows_doc},
                                {"lines", lines, METH_VARARGS, lines_doc},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_numbers", "Doubles as text.", 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__numbers(void)
{
    fill_tables();
    return PyModule_Create(&definition);
}
#endif
