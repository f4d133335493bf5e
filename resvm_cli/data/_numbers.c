/* Write doubles as text, exactly as Python's repr does, but many at a time and without the GIL.
 *
 * The cores (format_rows, format_lines) do not use Python, so the fuzz target can include this file.
 * They stop when the next number might not fit, and continue from there when called again with more space.
 * fill_tables must be called once before them. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_ROOM 24 /* -2.2250738585072014e-308 */
#define WHOLE_ROOM 20  /* -9223372036854775808 */
#define ENTRY_ROOM (1 + 11 + 1 + NUMBER_ROOM)         /* blank, index, colon, number */
#define FIELD_ROOM (WHOLE_ROOM + 1 + NUMBER_ROOM + 1) /* label, separator, number, newline */

enum status { DONE = 0, FULL, MISFIT, OUT_OF_MEMORY };

/* The text written so far, and the number of rows and entries in it. */
struct output {
    char *text;
    size_t used, capacity;
    size_t rows, entries;
};

/* Writes a number that the fast paths cannot write, into at most NUMBER_ROOM bytes; returns its end, or
 * NULL if memory ran out. */
typedef char *(*slow_number)(void *context, double number, char *to);

/* digits * 10^exponent, with `count` digits */
struct decimal {
    uint64_t digits;
    int count, exponent;
};

static char pairs[200]; /* 00 01 02 .. 99 */

/* Writes a number with exactly this many digits. */
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

/* For numbers up to 2^63; 10^19 still fits in 64 bits. */
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

/* Writes a decimal as repr does, in exponential notation below 1e-4 and from 1e16 on. */
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
        memcpy(to, pairs + 2 * (power < 0 ? -power : power), 2); /* the tables end far below 99 */
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
/* The Schubfach algorithm (R. Giulietti). The decimals that read back as the double form an interval,
 * and 10^k is the largest power of ten no wider than it. So the interval contains at most one multiple
 * of 10^(k+1). If it contains one, that is the shortest decimal, without its trailing zeros. Otherwise
 * it is the nearest multiple of 10^k in the interval. Everything is measured in quarters of 10^k. A
 * fraction is truncated and its last bit set, which does not change any comparison with an even number.
 *
 * Powers have 126 bits. Up to 10^54 they are exact, and so is every product. Powers below 1 are rounded
 * up, by at most 2^-66 in any product. There the true product is a multiple of 5^-27 > 2^-63, so its
 * integer part is right, and the first 64 bits of its fraction are zero only if the fraction is. */
#define LAST_RECIPROCAL 27
#define LAST_POWER 54

__extension__ typedef unsigned __int128 wide;

static struct power {
    uint64_t high, low;
    int log2;      /* 10^n lies between 2^log2 and twice that */
    uint64_t mask; /* all ones if the low half of a fraction is exact, else 0 */
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

/* Return power * factor / 2^128; a fraction is truncated and the last bit is set. */
static inline uint64_t scaled(const struct power *power, uint64_t factor)
{
    wide low = (wide)power->low * factor;
    wide high = (wide)power->high * factor + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | (((uint64_t)high | ((uint64_t)low & power->mask)) != 0);
}

/* Find the nearest of the shortest decimals that read back exactly; return 0 beyond the table of powers. */
static inline int shortest(uint64_t bits, struct decimal *out)
{
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1075;
    int narrow = fraction == 0; /* at a power of two the lower neighbor is twice as near */
    /* 10^k is at most the width of the interval: logarithms of 2 and 3/4, times 2^32 */
    int k = (int)((exponent * INT64_C(1292913986) - narrow * INT64_C(536607790)) >> 32);
    if (k < -LAST_POWER || k > LAST_RECIPROCAL)
        return 0; /* this includes subnormals, infinities and nan */
    const struct power *power = &powers[LAST_RECIPROCAL - k];
    int shift = exponent + power->log2 + 3; /* 3 to 6, so factors have at most 62 bits */
    uint64_t quarters = (fraction | UINT64_C(1) << 52) << 2;
    uint64_t lower = scaled(power, (quarters - 2 + (uint64_t)narrow) << shift);
    uint64_t middle = scaled(power, quarters << shift);
    uint64_t upper = scaled(power, (quarters + 2) << shift);
    uint64_t odd = fraction & 1; /* ties round to even, so the interval of an odd number excludes its ends */
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
    uint64_t digits = ones + (uint64_t)above; /* no trailing zero, or it would be a multiple of ten */
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

/* Writes the repr of a double; `to` has NUMBER_ROOM bytes. */
static inline char *write_number(char *to, double number, slow_number slow, void *context)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    struct decimal decimal;
    /* below 2^53, the shortest decimal of an integer is the integer itself; this includes zeros */
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

/* Writes rows as `index:value index:value ...`, one after the other, without the .0 of integers; ends[r]
 * is where the text of row r ends. Row r has entries starts[r] to starts[r + 1]. The starts must begin
 * at 0, never decrease, and not exceed n_entries, or the result is MISFIT. */
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

/* Writes one line per row of a table: the row's label if labels are given, and `n_columns` > 0 numbers,
 * with `separator` between them. */
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

/* Calls Python's repr, so that numbers that the fast paths cannot write match it as well. */
static char *python_number(void *context, double number, char *to)
{
    struct call *call = context;
    PyEval_RestoreThread(call->state);
    char *text = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    size_t length = text ? strlen(text) : 0;
    char *end = NULL;
    if (text && length <= NUMBER_ROOM) {
        memcpy(to, text, length);
        end = to + length;
    }
    PyMem_Free(text);
    PyErr_Clear();
    call->state = PyEval_SaveThread();
    return end;
}

/* Allocate more space, at first as much as the numbers usually need; return 0 if memory runs out. */
static int grow(struct output *out, size_t n_numbers)
{
    size_t more = out->capacity ? out->capacity : 16 * n_numbers + 64;
    if (n_numbers >= PTRDIFF_MAX / 32 || more >= PTRDIFF_MAX - out->capacity)
        return 0;
    char *text = realloc(out->text, out->capacity + more);
    if (!text)
        return 0;
    out->text = text;
    out->capacity += more;
    return 1;
}

/* Return the text as a bytes object: a copy, because the stable ABI cannot shorten one. */
static const char *finish(struct call *call, struct output *out, enum status status)
{
    call->text = out->text;
    call->length = out->used;
    if (status == MISFIT)
        return "indptr does not fit: it must increase from 0 to at most the number of entries";
    return status == DONE ? NULL : "out of memory";
}

FUNCTION(rows, IN(INT64, "indptr"), IN(INT32, "indices"), IN(FLOAT64, "values"), OUT(INT64, "ends"))
{
    const struct argument *a = call->given;
    if (a[0].count == 0)
        return "indptr does not fit: it must have one more entry than there are rows";
    if (a[1].count != a[2].count)
        return "indices and values do not fit each other";
    if (a[3].count != a[0].count - 1)
        return "ends does not fit indptr";
    struct output out = {0};
    enum status status = FULL;
    while (status == FULL && grow(&out, a[2].count))
        status = format_rows(a[0].data, a[3].count, a[1].data, a[2].data, a[2].count, a[3].data,
                             &out, python_number, call);
    return finish(call, &out, status);
}

FUNCTION(lines, OPTIONAL(INT64, "labels"), IN(FLOAT64, "table"), IN(WHOLE, "n_columns"),
         IN(BYTES, "separator"))
{
    const struct argument *a = call->given;
    size_t width = a[2].whole > 0 ? (size_t)a[2].whole : 0;
    if (width == 0 || a[1].count % width)
        return "table does not fit n_columns";
    if (a[0].buffer.obj && a[0].count != a[1].count / width)
        return "labels does not fit table and n_columns";
    if (a[3].count != 1)
        return "separator must be one byte";
    struct output out = {0};
    enum status status = FULL;
    while (status == FULL && grow(&out, a[1].count))
        status = format_lines(a[0].data, a[1].data, a[1].count / width, width, *(char *)a[3].data,
                              &out, python_number, call);
    return finish(call, &out, status);
}

static PyMethodDef methods[] = {
    METHOD(rows,
           "Return the rows as index:value text, one after the other, without the .0 of integers.\n"
           "`ends` gets the end of each row's text."),
    METHOD(lines,
           "Return one line per row of a table of doubles: the row's label, unless labels is None, and\n"
           "its numbers as repr writes them, with the separator between them."),
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_numbers", "Doubles as text.", 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__numbers(void)
{
    fill_tables();
    return PyModule_Create(&definition);
}
#endif
