/* Tokenizer for svmlight text: parses complete lines into rows, with exact decimals, without the GIL.
 *
 * The core (scan_lines) does not use Python, so the fuzz target can include this file. Every buffer
 * passed to it must end in '\n'. Each inner loop stops there at the latest, so no read goes past the
 * end and no byte needs a length check. The capacities in `struct sink` are checked before each
 * write. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE __attribute__((always_inline))
#define MAX_INDEX 2147483646u /* 2^31 - 2: LIBSVM keeps indices in an int */

enum status {
    OK = 0,
    ROWS_FULL, /* no room for another row; everything before `consumed` is stored */
    NONZEROS_FULL,
    MALFORMED,
    NOT_FINITE,
    VALUE_OVERFLOW,
    INDEX_ZERO,
    INDEX_NEGATIVE,
    INDEX_DESCENDS,
    INDEX_REPEATS,
    INDEX_TOO_LARGE,
    NUL_BYTE,
    BAD_LABEL,
    BAD_QID,
    NO_VALUE,
    OUT_OF_MEMORY
};

struct sink {
    int64_t *ends;        /* running count of nonzeros at each row's end */
    double *labels;       /* NaN for a row without a label */
    int64_t *qids;        /* -1 for a row without a qid */
    int64_t *lines;       /* line number of each row */
    int64_t *starts;      /* offset of each row's line */
    int64_t *comments;    /* start and end offsets of the trimmed comment; -1, -1 without one */
    size_t row_capacity;
    int32_t *indices;
    double *values;
    size_t nonzero_capacity;
};

struct outcome {
    enum status status;
    size_t rows, nonzeros, consumed;
    int64_t lines;                       /* complete lines consumed */
    size_t token_start, token_end;       /* offsets of the offending token in the buffer */
    size_t line_start;
    int64_t previous_index;
};

typedef const unsigned char *text;

/* Converts a valid decimal that the fast paths cannot convert; returns 0 if memory ran out. */
typedef int (*slow_decimal)(void *context, text start, size_t length, double *out);

static const double power_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static inline int is_digit(unsigned char c) { return (unsigned)(c - '0') < 10u; }
static inline int is_blank(unsigned char c) { return c == ' ' || c == '\t'; }

static inline int ends_line(text p) { return *p == '\n' || (*p == '\r' && p[1] == '\n'); }

/* Only a blank, a comment or the line's end may follow a token. */
static inline int ends_token(text p) { return *p == '\n' || is_blank(*p) || *p == '#' || ends_line(p); }

#if LDBL_MANT_DIG == 64 && defined(__x86_64__)
/* 10^0 .. 10^27 are exact in the x87 format (5^27 < 2^63), so one multiplication or division there
 * is off by at most half a unit of the 64th bit. Unless the 11 bits below a double's last bit are
 * next to a tie, rounding again to 53 bits gives the correctly rounded result. */
static int extended_decimal(uint64_t mantissa, int exponent, double *out)
{
    static const long double power[] = {
        1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
        1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
        1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    if (exponent < -27 || exponent > 27)
        return 0;
    long double scaled = exponent < 0 ? (long double)mantissa / power[-exponent]
                                      : (long double)mantissa * power[exponent];
    uint64_t bits;
    memcpy(&bits, &scaled, sizeof bits); /* the explicit 64-bit significand, little endian */
    unsigned below = (unsigned)(bits & 0x7ff);
    if (below >= 0x3ff && below <= 0x401)
        return 0;
    *out = (double)scaled;
    return 1;
}
#endif

/* Appends the digits at p to a number, modulo 2^64, and returns where they end. */
static inline text read_digits(text p, uint64_t *number)
{
    while (is_digit(*p))
        *number = *number * 10 + (uint64_t)(*p++ - '0');
    return p;
}

/* Reads a decimal at *at and moves past it. */
static inline enum status read_decimal(text *at, double *out, slow_decimal slow, void *context)
{
    text start = *at, p = start;
    int negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    text digits = p;
    uint64_t mantissa = 0;
    p = read_digits(p, &mantissa);
    ptrdiff_t count = p - digits;
    int64_t exponent = 0;
    if (*p == '.') {
        text fraction = ++p;
        p = read_digits(p, &mantissa);
        count += p - fraction;
        exponent = -(int64_t)(p - fraction);
    }
    if (count == 0)
        return MALFORMED;
    if (*p == 'e' || *p == 'E') {
        p++;
        int minus = *p == '-';
        if (*p == '-' || *p == '+')
            p++;
        if (!is_digit(*p))
            return MALFORMED;
        int64_t written = 0;
        while (is_digit(*p)) {
            if (written < INT64_C(1000000000000)) /* no text has that many digits */
                written = written * 10 + (*p - '0');
            p++;
        }
        exponent += minus ? -written : written;
    }
    *at = p;

    double value;
    if (count > 19) { /* if some are leading zeros, the mantissa has not overflowed */
        text first = digits;
        while (*first == '0' || *first == '.')
            first++;
        ptrdiff_t significant = 0;
        for (text q = first; is_digit(*q) || *q == '.'; q++)
            significant += *q != '.';
        count = significant;
    }
    if (count <= 19) {
        if (mantissa == 0) {
            *out = negative ? -0.0 : 0.0;
            return OK;
        }
        /* Clinger: both operands are exact, so only the result is rounded */
        if (FLT_EVAL_METHOD == 0 && mantissa <= (UINT64_C(1) << 53) && exponent >= -22 && exponent <= 22) {
            value = (double)mantissa;
            value = exponent < 0 ? value / power_of_ten[-exponent] : value * power_of_ten[exponent];
            *out = negative ? -value : value;
            return OK;
        }
#if LDBL_MANT_DIG == 64 && defined(__x86_64__)
        if (exponent >= -27 && exponent <= 27 && extended_decimal(mantissa, (int)exponent, &value)) {
            *out = negative ? -value : value;
            return OK;
        }
#endif
    }
    if (!slow(context, start, (size_t)(p - start), &value))
        return OUT_OF_MEMORY;
    if (value > DBL_MAX || value < -DBL_MAX)
        return VALUE_OVERFLOW;
    *out = value;
    return OK;
}

/* Reads the digits of an index; once an index is too large, it stays too large, whatever follows. */
static inline text read_index(text p, uint64_t *index)
{
    for (*index = 0; is_digit(*p); p++)
        if (*index <= MAX_INDEX)
            *index = *index * 10 + (uint64_t)(*p - '0');
    return p;
}

static int starts_with_word(text p, const char *word)
{
    while (*word)
        if ((*p++ | 0x20) != (unsigned char)*word++)
            return 0;
    return 1;
}

/* Return the status for a token that is not a number; nan and inf have a status of their own. */
static enum status no_number(text p, enum status otherwise)
{
    if (*p == '-' || *p == '+')
        p++;
    if (starts_with_word(p, "nan") || starts_with_word(p, "inf"))
        return NOT_FINITE;
    return otherwise;
}

/* Record the position of an invalid token, and whether it contains a NUL byte. */
static void record_failure(struct outcome *result, text buffer, text line_start, text token,
                           unsigned char separator, enum status status)
{
    text end = token;
    while (*end != '\n' && !is_blank(*end) && !(separator && *end == separator))
        end++;
    result->line_start = (size_t)(line_start - buffer);
    result->token_start = (size_t)(token - buffer);
    result->token_end = (size_t)(end - buffer);
    int has_nul = status != OUT_OF_MEMORY && memchr(token, 0, (size_t)(end - token)) != NULL;
    result->status = has_nul ? NUL_BYTE : status;
}

/* The row that is being read. */
struct row {
    double label;          /* NaN if there is none */
    int64_t qid, previous; /* previous index, or -1 before the first */
    size_t n_entries;      /* in all rows up to and including this one */
    text token;
};

/* Read the first token of a row, which is a label unless it is an index or a qid. */
static inline enum status read_label(text *at, double *label, slow_decimal slow, void *context)
{
    text start = *at, p = start;
    while (is_digit(*p))
        p++;
    if (*start == 'q' || (p > start && *p == ':'))
        return OK;
    enum status status = read_decimal(at, label, slow, context);
    if (status == MALFORMED || (status == OK && !ends_token(*at))) {
        /* -3:1 is a bad index, 1.5:2 a bad token, `spam` a bad label */
        p = start + (*start == '-');
        while (is_digit(*p))
            p++;
        if (*start == '-' && p > start + 1 && *p == ':')
            return INDEX_NEGATIVE;
        return no_number(start, BAD_LABEL);
    }
    return status;
}

/* Read a token that does not begin with a digit: a qid before the first entry, or an error. */
static enum status read_qid(text *at, struct row *row)
{
    text p = *at;
    if (*p == '-' && is_digit(p[1]))
        return INDEX_NEGATIVE;
    if (*p != 'q')
        return MALFORMED;
    if (p[1] != 'i' || p[2] != 'd' || p[3] != ':' || row->qid >= 0 || row->previous >= 0)
        return BAD_QID;
    text digits = p += 4;
    int64_t number = 0;
    while (is_digit(*p) && p - digits < 18)
        number = number * 10 + (*p++ - '0');
    if (p == digits || !ends_token(p))
        return BAD_QID;
    row->qid = number;
    *at = p;
    return OK;
}

static inline ALWAYS_INLINE enum status read_entry(text *at, int zero_based, int64_t previous,
                                                   uint64_t *index, double *value,
                                                   slow_decimal slow, void *context)
{
    text p = read_index(*at, index);
    if (*p != ':')
        return MALFORMED;
    if (*index > MAX_INDEX)
        return INDEX_TOO_LARGE;
    if (*index == 0 && !zero_based)
        return INDEX_ZERO;
    if ((int64_t)*index <= previous)
        return (int64_t)*index == previous ? INDEX_REPEATS : INDEX_DESCENDS;
    if (ends_token(++p))
        return NO_VALUE;
    text number = p;
    enum status status = read_decimal(&p, value, slow, context);
    if (status == MALFORMED || (status == OK && !ends_token(p)))
        return no_number(number, MALFORMED);
    *at = p;
    return status;
}

/* Read a row up to its comment or the end of its line. */
static inline ALWAYS_INLINE enum status read_row(text *at, int zero_based, struct sink *sink,
                                                 struct row *row, slow_decimal slow, void *context)
{
    text p = row->token = *at;
    enum status status = read_label(&p, &row->label, slow, context);
    while (status == OK) {
        while (is_blank(*p))
            p++;
        row->token = p;
        if (!is_digit(*p)) {
            if (ends_line(p) || *p == '#')
                break;
            status = read_qid(&p, row);
            continue;
        }
        uint64_t index;
        double value;
        status = read_entry(&p, zero_based, row->previous, &index, &value, slow, context);
        if (status != OK)
            break;
        if (row->n_entries == sink->nonzero_capacity) {
            status = NONZEROS_FULL;
            break;
        }
        sink->indices[row->n_entries] = (int32_t)index;
        sink->values[row->n_entries++] = value;
        row->previous = (int64_t)index;
    }
    *at = p;
    return status;
}

/* Store a row whose comment, if any, is the text from p to the newline. */
static inline void store_row(struct sink *sink, size_t number, const struct row *row, int64_t line,
                             text buffer, text line_start, text p, text newline)
{
    int64_t *comment = sink->comments + 2 * number;
    comment[0] = comment[1] = -1;
    if (*p == '#') {
        text start = p + 1, end = newline;
        while (end > start && (is_blank(end[-1]) || end[-1] == '\r'))
            end--;
        while (start < end && is_blank(*start))
            start++;
        comment[0] = start - buffer;
        comment[1] = end - buffer;
    }
    sink->ends[number] = (int64_t)row->n_entries;
    sink->labels[number] = row->label;
    sink->qids[number] = row->qid;
    sink->lines[number] = line;
    sink->starts[number] = line_start - buffer;
}

static struct outcome scan_lines(text buffer, size_t length, int zero_based, int64_t first_line,
                                 struct sink *sink, slow_decimal slow, void *context)
{
    struct outcome result = {.previous_index = -1};
    text p = buffer, end = buffer + length;
    while (p < end) {
        text line_start = p;
        struct row row = {(double)NAN, -1, -1, result.nonzeros, p};
        enum status status = OK;
        while (is_blank(*p))
            p++;
        int is_row = !ends_line(p) && *p != '#';
        if (is_row)
            status = result.rows == sink->row_capacity
                         ? ROWS_FULL
                         : read_row(&p, zero_based, sink, &row, slow, context);
        if (status == ROWS_FULL || status == NONZEROS_FULL) {
            result.status = status;
            break;
        }
        text newline = memchr(p, '\n', (size_t)(end - p));
        text nul = status == OK && *p == '#' ? memchr(p, 0, (size_t)(newline - p)) : NULL;
        if (status != OK || nul) {
            if (status == INDEX_REPEATS || status == INDEX_DESCENDS)
                result.previous_index = row.previous;
            record_failure(&result, buffer, line_start, nul ? nul : row.token, 0, status);
            break;
        }
        if (is_row) {
            store_row(sink, result.rows++, &row, first_line + result.lines, buffer, line_start, p,
                      newline);
            result.nonzeros = row.n_entries;
        }
        p = newline + 1;
        result.lines++;
        result.consumed = (size_t)(p - buffer);
    }
    return result;
}

/* Read a number that can be ranked: a decimal or an infinity. */
static enum status read_rankable(text *at, double *out, slow_decimal slow, void *context)
{
    text word = *at;
    int negative = *word == '-';
    if (*word == '-' || *word == '+')
        word++;
    if (starts_with_word(word, "inf")) {
        *at = word + (starts_with_word(word, "infinity") ? 8 : 3);
        *out = negative ? -(double)INFINITY : (double)INFINITY;
        return OK;
    }
    enum status status = read_decimal(at, out, slow, context);
    return status == MALFORMED ? no_number(*at, MALFORMED) : status;
}

/* Skip a field, up to its separator, blank or newline. */
static text skip_field(text p, unsigned char separator)
{
    if (separator && *p == '"') {
        do { /* a doubled quote is part of the field */
            p++;
            while (*p != '"' && *p != '\n')
                p++;
            p += *p == '"';
        } while (*p == '"');
        return p;
    }
    while (*p != '\n' && (separator ? *p != separator : !is_blank(*p)))
        p++;
    return p;
}

/* Read one or two numeric columns of every line. Columns are numbered from 0; `second` is negative if
 * there is only one. Fields are separated by `separator`. If it is 0, they are separated by runs of
 * blanks, and a # ends the line. All other fields are ignored. */
static struct outcome scan_columns(text buffer, size_t length, unsigned char separator, int64_t first,
                                   int64_t second, double *firsts, double *seconds, size_t capacity,
                                   slow_decimal slow, void *context)
{
    struct outcome result = {.previous_index = -1};
    text p = buffer, end = buffer + length, token = buffer;
    int64_t last = first > second ? first : second;
    while (p < end) {
        text line_start = p;
        enum status status = OK;
        while (!separator && is_blank(*p))
            p++;
        int is_empty = ends_line(p) || (!separator && *p == '#');
        if (!is_empty && result.rows == capacity) {
            result.status = ROWS_FULL;
            break;
        }
        for (int64_t column = 0; !is_empty && status == OK && column <= last; column++) {
            while (!separator && is_blank(*p))
                p++;
            token = p;
            if (column == first || column == second) {
                double number = 0;
                status = ends_token(p) ? NO_VALUE : read_rankable(&p, &number, slow, context);
                if (status == OK && !(separator ? *p == separator || ends_line(p) : ends_token(p)))
                    status = no_number(token, MALFORMED);
                if (status == OK && column == first)
                    firsts[result.rows] = number;
                if (status == OK && column == second)
                    seconds[result.rows] = number;
            } else if (!separator && *p == '\n')
                status = NO_VALUE; /* no matter how many columns are missing */
            else
                p = skip_field(p, separator);
            if (status == OK && separator && column < last && *p++ != separator)
                status = NO_VALUE;
        }
        if (status != OK) {
            record_failure(&result, buffer, line_start, token, separator, status);
            break;
        }
        p = (text)memchr(p, '\n', (size_t)(end - p)) + 1;
        result.rows += !is_empty;
        result.lines++;
        result.consumed = (size_t)(p - buffer);
    }
    return result;
}

enum cell_kind { SKIPPED, NUMBER, TEXT };

/* Arrays for the cells of a table: its numbers, and the offsets of its texts, row by row. If a cell of
 * a numeric column is not a decimal, its value is NaN, and its index in `values` and its offsets are
 * stored in `odd`, which has room for all cells. */
struct cells {
    const int64_t *kinds;
    size_t width, numbers, texts, row_capacity, n_odd;
    double *values;
    int64_t *spans, *odd;
};

/* Skip a cell; return 0 if it is not simple. A quoted cell must not contain a quote or newline. */
static inline int skip_cell(text *at, unsigned char separator, text *start, text *stop)
{
    text p = *at;
    int quoted = *p == '"';
    *start = p += quoted;
    if (quoted)
        while (*p != '"' && *p != '\n')
            p++;
    else
        while (*p != separator && *p != '\n' && *p != '\r')
            p++;
    *stop = p;
    if (quoted && *p++ != '"')
        return 0;
    *at = p;
    return *p == separator || ends_line(p);
}

/* Read the cells of complete lines. MALFORMED means that the next line is not a row of simple cells. */
static struct outcome scan_cells(text buffer, size_t length, unsigned char separator,
                                 struct cells *room, slow_decimal slow, void *context)
{
    struct outcome result = {.previous_index = -1};
    text p = buffer, end = buffer + length;
    while (p < end && result.status == OK) {
        double *values = room->values + result.rows * room->numbers;
        int64_t *spans = room->spans + 2 * result.rows * room->texts;
        size_t n_odd = room->n_odd;
        if (result.rows == room->row_capacity)
            result.status = ROWS_FULL;
        else if (ends_line(p))
            result.status = MALFORMED;
        for (size_t column = 0; result.status == OK && column < room->width; column++) {
            text token = p, start, stop;
            enum status read = OK;
            double number = 0;
            if (room->kinds[column] == NUMBER && *p != '"') {
                read = *p == separator ? MALFORMED : read_decimal(&p, &number, slow, context);
                if (read == OK && *p != separator && !ends_line(p))
                    read = MALFORMED;
            } else
                read = MALFORMED;
            if (read != OK) {
                p = token;
                if (!skip_cell(&p, separator, &start, &stop))
                    result.status = MALFORMED;
                else if (room->kinds[column] == NUMBER) {
                    number = (double)NAN;
                    int64_t *odd = room->odd + 3 * n_odd++;
                    odd[0] = values - room->values;
                    odd[1] = start - buffer;
                    odd[2] = stop - buffer;
                } else if (room->kinds[column] == TEXT) {
                    *spans++ = start - buffer;
                    *spans++ = stop - buffer;
                }
            }
            if (read == OUT_OF_MEMORY)
                result.status = OUT_OF_MEMORY;
            if (result.status == OK && room->kinds[column] == NUMBER)
                *values++ = number;
            if (result.status == OK && column + 1 < room->width && *p++ != separator)
                result.status = MALFORMED;
        }
        if (result.status == OK && !ends_line(p))
            result.status = MALFORMED;
        if (result.status != OK)
            break;
        p += 1 + (*p == '\r');
        room->n_odd = n_odd;
        result.rows++;
        result.lines++;
        result.consumed = (size_t)(p - buffer);
    }
    return result;
}

/* Read a member's lines, `coefficient index:value ...`. Store the coefficients, and where the rest of
 * each line starts. */
static struct outcome scan_vectors(text buffer, size_t length, double *coefficients, int64_t *starts,
                                   size_t capacity, slow_decimal slow, void *context)
{
    struct outcome result = {.previous_index = -1};
    text p = buffer, end = buffer + length;
    while (p < end) {
        text line = p;
        if (result.rows == capacity) {
            result.status = ROWS_FULL;
            break;
        }
        result.status = read_decimal(&p, coefficients + result.rows, slow, context);
        if (result.status == MALFORMED || (result.status == OK && *p != ' ' && *p != '\n'))
            result.status = no_number(line, MALFORMED);
        if (result.status != OK)
            break;
        p += *p == ' ';
        starts[result.rows++] = p - buffer;
        p = (text)memchr(p, '\n', (size_t)(end - p)) + 1;
    }
    return result;
}

#ifndef RESVM_WITHOUT_PYTHON
#include "../arrays.h"

/* Use Python's own conversion, so that numbers that the fast paths cannot read also match float(). */
static int python_decimal(void *context, text start, size_t length, double *out)
{
    struct call *call = context;
    char stack[64];
    char *copy = length < sizeof stack ? stack : malloc(length + 1);
    if (!copy)
        return 0;
    memcpy(copy, start, length);
    copy[length] = 0;
    PyEval_RestoreThread(call->state);
    *out = PyOS_string_to_double(copy, NULL, NULL);
    int failed = PyErr_Occurred() != NULL;
    PyErr_Clear();
    call->state = PyEval_SaveThread();
    if (copy != stack)
        free(copy);
    return !failed;
}

static int ends_in_newline(const struct argument *source)
{
    return source->count == 0 || ((text)source->data)[source->count - 1] == '\n';
}

static const char no_newline[] = "text must end in a newline";

static const char *memory_of(const struct outcome *result)
{
    return result->status == OUT_OF_MEMORY ? "out of memory" : NULL;
}

FUNCTION(scan, IN(BYTES, "text"), IN(FLAG, "zero_based"), IN(WHOLE, "first_line"),
         OUT(INT64, "ends"), OUT(FLOAT64, "labels"), OUT(INT64, "qids"), OUT(INT64, "lines"),
         OUT(INT64, "starts"), OUT(INT64, "comments"), OUT(INT32, "indices"),
         OUT(FLOAT64, "values"))
{
    static const char *const misfits[] = {
        "labels does not fit ends", "qids does not fit ends", "lines does not fit ends",
        "starts does not fit ends", "comments does not fit ends"};
    const struct argument *a = call->given;
    for (int i = 0; i < 5; i++)
        if (a[4 + i].count != (i == 4 ? 2 : 1) * a[3].count)
            return misfits[i];
    if (a[10].count != a[9].count)
        return "values does not fit indices";
    if (!ends_in_newline(&a[0]))
        return no_newline;
    struct sink sink = {a[3].data, a[4].data, a[5].data, a[6].data,  a[7].data,
                        a[8].data, a[3].count, a[9].data, a[10].data, a[9].count};
    struct outcome found = scan_lines(a[0].data, a[0].count, a[1].whole != 0, a[2].whole, &sink,
                                      python_decimal, call);
    RESULTS(call, found.status, (int64_t)found.rows, (int64_t)found.nonzeros,
            (int64_t)found.consumed, found.lines, (int64_t)found.line_start,
            (int64_t)found.token_start, (int64_t)found.token_end, found.previous_index);
    return memory_of(&found);
}

FUNCTION(columns, IN(BYTES, "text"), IN(WHOLE, "separator"), IN(WHOLE, "first"),
         IN(WHOLE, "second"), OUT(FLOAT64, "firsts"), OUT(FLOAT64, "seconds"))
{
    const struct argument *a = call->given;
    int64_t separator = a[1].whole;
    if (separator < 0 || separator > 127 || separator == '\n' || separator == '"')
        return "separator must be an ASCII character other than a newline or quote, or 0";
    if (a[2].whole < 0)
        return "first must be a column number, at least 0";
    if (a[3].whole >= 0 && a[5].count != a[4].count)
        return "seconds does not fit firsts";
    if (!ends_in_newline(&a[0]))
        return no_newline;
    struct outcome found =
        scan_columns(a[0].data, a[0].count, (unsigned char)separator, a[2].whole, a[3].whole,
                     a[4].data, a[5].data, a[4].count, python_decimal, call);
    RESULTS(call, found.status, (int64_t)found.rows, (int64_t)found.consumed, found.lines,
            (int64_t)found.line_start, (int64_t)found.token_start, (int64_t)found.token_end);
    return memory_of(&found);
}

static int fits(size_t count, size_t per_row, size_t rows)
{
    return per_row ? count / per_row == rows && count % per_row == 0 : count == 0;
}

FUNCTION(cells, IN(BYTES, "text"), IN(WHOLE, "separator"), IN(INT64, "kinds"), IN(WHOLE, "rows"),
         OUT(FLOAT64, "values"), OUT(INT64, "spans"), OUT(INT64, "odd"))
{
    const struct argument *a = call->given;
    int64_t separator = a[1].whole;
    if (separator < 1 || separator > 127 || separator == '\n' || separator == '\r' || separator == '"')
        return "separator must be an ASCII character other than a newline or quote";
    if (a[3].whole < 0)
        return "rows must not be negative";
    struct cells room = {.kinds = a[2].data, .width = a[2].count, .row_capacity = (size_t)a[3].whole,
                         .values = a[4].data, .spans = a[5].data, .odd = a[6].data};
    for (size_t i = 0; i < room.width; i++) {
        room.numbers += room.kinds[i] == NUMBER;
        room.texts += room.kinds[i] == TEXT;
    }
    if (!fits(a[4].count, room.numbers, room.row_capacity))
        return "values does not fit rows and kinds";
    if (!fits(a[5].count, 2 * room.texts, room.row_capacity))
        return "spans does not fit rows and kinds";
    if (a[6].count != 3 * a[4].count)
        return "odd does not fit values";
    if (!ends_in_newline(&a[0]))
        return no_newline;
    struct outcome found = scan_cells(a[0].data, a[0].count, (unsigned char)separator, &room,
                                      python_decimal, call);
    RESULTS(call, found.status, (int64_t)found.rows, (int64_t)found.consumed, (int64_t)room.n_odd);
    return memory_of(&found);
}

/* Replace the start of each line by its number in a dict, to which new lines are added. Comments and
 * qids are MALFORMED here. */
static enum status number_lines(PyObject *lines, text buffer, size_t length, int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text start = buffer + numbers[i];
        size_t size = (size_t)((text)memchr(start, '\n', length - (size_t)numbers[i]) + 1 - start);
        PyObject *line = PyBytes_FromStringAndSize((const char *)start, (Py_ssize_t)size);
        PyObject *number = line ? PyDict_GetItemWithError(lines, line) : NULL;
        enum status status = !line || PyErr_Occurred() ? OUT_OF_MEMORY : OK;
        if (number || status != OK)
            Py_XINCREF(number);
        else if (memchr(start, '#', size) || memchr(start, 'q', size))
            status = MALFORMED;
        else if (!(number = PyLong_FromSsize_t(PyDict_Size(lines))) ||
                 PyDict_SetItem(lines, line, number) < 0)
            status = OUT_OF_MEMORY;
        numbers[i] = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        Py_XDECREF(line);
        if (status != OK) {
            PyErr_Clear();
            return status;
        }
    }
    return OK;
}

FUNCTION(vectors, IN(BYTES, "text"), IN(DICT, "lines"), OUT(FLOAT64, "coefficients"),
         OUT(INT64, "numbers"))
{
    const struct argument *a = call->given;
    if (a[3].count != a[2].count)
        return "numbers does not fit coefficients";
    if (!ends_in_newline(&a[0]))
        return no_newline;
    struct outcome found = scan_vectors(a[0].data, a[0].count, a[2].data, a[3].data, a[3].count,
                                        python_decimal, call);
    if (found.status == OK) {
        PyEval_RestoreThread(call->state);
        found.status = number_lines(a[1].data, a[0].data, a[0].count, a[3].data, found.rows);
        call->state = PyEval_SaveThread();
    }
    RESULTS(call, found.status, (int64_t)found.rows);
    return memory_of(&found);
}

static PyMethodDef methods[] = {
    METHOD(scan,
           "Parse complete lines into these arrays. Returns (status, rows, nonzeros, consumed, lines,\n"
           "line_start, token_start, token_end, previous_index)."),
    METHOD(columns,
           "Read one or two numeric columns of complete lines. Returns (status, rows, consumed, lines,\n"
           "line_start, token_start, token_end)."),
    METHOD(cells,
           "Read the cells of complete lines of a table: numbers (kind 1) into values, and the offsets\n"
           "of texts (kind 2) into spans. If a cell of kind 1 is not a number, odd gets its index in\n"
           "values and its offsets. Returns (status, rows, consumed, odd cells)."),
    METHOD(vectors,
           "Read the support vectors of a member: their coefficients, and the numbers of their lines in\n"
           "a dict, to which new lines are added. Returns (status, vectors)."),
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_svmlight", "The svmlight tokenizer.", 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__svmlight(void)
{
    static const char *const names[] = {
        "OK", "ROWS_FULL", "NONZEROS_FULL", "MALFORMED", "NOT_FINITE", "VALUE_OVERFLOW", "INDEX_ZERO",
        "INDEX_NEGATIVE", "INDEX_DESCENDS", "INDEX_REPEATS", "INDEX_TOO_LARGE", "NUL_BYTE",
        "BAD_LABEL", "BAD_QID", "NO_VALUE"}; /* in the order of enum status */
    PyObject *module = PyModule_Create(&definition);
    for (int i = 0; module && i < (int)(sizeof names / sizeof *names); i++)
        if (PyModule_AddIntConstant(module, names[i], i) < 0)
            Py_CLEAR(module);
    return module;
}
#endif
