/* Tokenizer for svmlight text: complete lines in, rows out, exact decimals, the GIL released.
 *
 * The core (scan_lines) knows nothing of Python, so that the fuzz target can include this file and
 * drive it alone. Every buffer handed to it must end in '\n': each inner loop stops there at the
 * latest, which bounds all reading without a length check per byte. Writing is bounded by the
 * capacities in `struct sink`, checked before each store. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INDEX 2147483646u /* 2^31 - 2: LIBSVM keeps indices in an int */

enum status {
    OK = 0,
    ROWS_FULL,    /* no room for another row; everything before `consumed` is stored */
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
    int64_t *ends;        /* running count of non-zeros at each row's end */
    double *labels;       /* NaN where a row has none */
    int64_t *qids;        /* -1 where a row has none */
    int64_t *lines;       /* line number of each row */
    int64_t *starts;      /* offset of each row's line */
    int64_t *comments;    /* start and end offset of the trimmed comment; -1, -1 where none */
    size_t row_capacity;
    int32_t *indices;
    double *values;
    size_t nonzero_capacity;
};

struct outcome {
    enum status status;
    size_t rows, nonzeros, consumed;
    int64_t lines;                       /* complete lines consumed */
    size_t token_start, token_end;       /* of the offending token, as buffer offsets */
    size_t line_start;
    int64_t previous_index;
};

typedef const unsigned char *text;

/* Converts a validated decimal that the fast paths cannot; returns 0 when memory ran out. */
typedef int (*slow_decimal)(void *context, text start, size_t length, double *out);

static const double power_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static inline int is_digit(unsigned char c) { return (unsigned)(c - '0') < 10u; }
static inline int is_blank(unsigned char c) { return c == ' ' || c == '\t'; }

/* Nothing but a blank, a comment or the line's end may follow a finished token. */
static inline int ends_token(text p)
{
    return *p == '\n' || is_blank(*p) || *p == '#' || (*p == '\r' && p[1] == '\n');
}

#if LDBL_MANT_DIG == 64 && defined(__x86_64__)
/* 10^0 .. 10^27 are exact in the x87 format (5^27 < 2^63), so one multiplication or division there
 * is off by at most half a unit of the 64th bit. Unless the 11 bits below a double's last bit sit
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

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && defined(__GNUC__)
#define EIGHT_AT_ONCE 1
/* How many of the next eight bytes are digits before the first that is none. A byte below '0' borrows
 * from those above it, and one far above '9' adds to them: what is flagged lowest is flagged rightly. */
static inline int leading_digits(uint64_t word)
{
    uint64_t flags = ((word + UINT64_C(0x4646464646464646)) | (word - UINT64_C(0x3030303030303030))) &
                     UINT64_C(0x8080808080808080);
    return flags ? __builtin_ctzll(flags) >> 3 : 8;
}

/* The number that the first n of eight bytes spell, 1 to 8 of them: pairs, fours, all, each in one
 * multiplication. */
static inline uint64_t spelled(uint64_t word, int n)
{
    const uint64_t every_fourth = UINT64_C(0x000000ff000000ff);
    word = (word - UINT64_C(0x3030303030303030)) << (64 - 8 * n); /* zeros before them */
    word = word * 10 + (word >> 8);
    return ((word & every_fourth) * UINT64_C(0x000f424000000064) +
            (word >> 16 & every_fourth) * UINT64_C(0x0000271000000001)) >> 32;
}
#else
#define EIGHT_AT_ONCE 0
#endif

/* Appends the digits at p to a number, modulo 2^64, and returns where they end. */
static inline text read_digits(text p, text end, uint64_t *number)
{
#if EIGHT_AT_ONCE
    static const uint64_t power[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    while (end - p >= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        int n = leading_digits(word);
        if (n)
            *number = *number * power[n] + spelled(word, n);
        p += n;
        if (n < 8)
            return p;
    }
#else
    (void)end;
#endif
    while (is_digit(*p))
        *number = *number * 10 + (uint64_t)(*p++ - '0');
    return p;
}

/* Reads a decimal at *at and moves past it. */
static inline enum status read_decimal(text *at, text end, double *out, slow_decimal slow,
                                       void *context)
{
    text start = *at, p = start;
    int negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    text digits = p;
    uint64_t mantissa = 0;
    if (is_digit(*p) && !is_digit(p[1])) /* what is scaled begins so */
        mantissa = (uint64_t)(*p++ - '0');
    else
        p = read_digits(p, end, &mantissa);
    ptrdiff_t count = p - digits;
    int64_t exponent = 0;
    if (*p == '.') {
        text fraction = ++p;
        p = read_digits(p, end, &mantissa);
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
            if (written < INT64_C(1000000000000)) /* far beyond any text's digits */
                written = written * 10 + (*p - '0');
            p++;
        }
        exponent += minus ? -written : written;
    }
    *at = p;

    double value;
    if (count > 19) { /* perhaps only leading zeros: then the mantissa has not wrapped */
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
        /* Clinger: both operands exact, so one rounding */
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

/* Reads the digits of an index; one that is too large stays so, however many there are. */
static inline text read_index(text p, text end, uint64_t *index)
{
    /* short ones, which most are, are read sooner than eight bytes */
    *index = (uint64_t)(*p - '0');
    for (int n = 1; n < 4; n++) {
        if (!is_digit(p[n]))
            return p + n;
        *index = *index * 10 + (uint64_t)(p[n] - '0');
    }
#if EIGHT_AT_ONCE
    if (end - p >= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        int n = leading_digits(word);
        if (n < 8) {
            *index = spelled(word, n);
            return p + n;
        }
    }
#else
    (void)end;
#endif
    for (p += 4; is_digit(*p); p++)
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

/* A token that should have been a number: nan and inf get their own word. */
static enum status no_number(text p, enum status otherwise)
{
    if (*p == '-' || *p == '+')
        p++;
    if (starts_with_word(p, "nan") || starts_with_word(p, "inf"))
        return NOT_FINITE;
    return otherwise;
}

static struct outcome scan_lines(text buffer, size_t length, int zero_based, int64_t first_line,
                                 struct sink *sink, slow_decimal slow, void *context)
{
    struct outcome result = {OK, 0, 0, 0, 0, 0, 0, 0, -1};
    text p = buffer, end = buffer + length, token = buffer;
    size_t rows = 0, nonzeros = 0;
    int64_t line = first_line;
    enum status status = OK;

    while (p < end) {
        text line_start = p;
        double label = 0;
        int64_t qid = -1, previous = -1;
        int has_label = 0;
        size_t kept = nonzeros;
        text comment = NULL, comment_end = NULL;

        while (is_blank(*p))
            p++;
        if (*p == '\n' || (*p == '\r' && p[1] == '\n') || *p == '#') {
            text newline = memchr(p, '\n', (size_t)(end - p));
            text nul = memchr(p, 0, (size_t)(newline - p));
            if (nul) {
                token = nul;
                status = NUL_BYTE;
                goto fail;
            }
            p = newline + 1;
            line++;
            result.consumed = (size_t)(p - buffer);
            continue;
        }
        if (rows == sink->row_capacity) {
            status = ROWS_FULL;
            break;
        }

        /* The first token is a label unless it is an index or a qid. */
        token = p;
        if (*p != 'q') {
            text q = p;
            while (is_digit(*q))
                q++;
            if (q == p || *q != ':') {
                status = read_decimal(&p, end, &label, slow, context);
                if (status == MALFORMED || (status == OK && !ends_token(p))) {
                    /* -3:1 is a bad index, 1.5:2 a bad token, `spam` a bad label */
                    text colon = token + (*token == '-');
                    while (is_digit(*colon))
                        colon++;
                    if (*token == '-' && colon > token + 1 && *colon == ':')
                        status = INDEX_NEGATIVE;
                    else
                        status = no_number(token, BAD_LABEL);
                }
                if (status != OK)
                    goto fail;
                has_label = 1;
            }
        }

        for (;;) {
            while (is_blank(*p))
                p++;
            unsigned char c = *p;
            token = p;
            if (!is_digit(c)) {
                if (c == '\n' || (c == '\r' && p[1] == '\n'))
                    break;
                if (c == '#') {
                    comment = p + 1;
                    break;
                }
                if (c == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':' && qid < 0 && previous < 0) {
                    p += 4;
                    text digits = p;
                    uint64_t number = 0;
                    while (is_digit(*p) && p - digits < 18)
                        number = number * 10 + (uint64_t)(*p++ - '0');
                    if (p == digits || !ends_token(p)) {
                        status = BAD_QID;
                        goto fail;
                    }
                    qid = (int64_t)number;
                    continue;
                }
                if (c == '-' && is_digit(p[1]))
                    status = INDEX_NEGATIVE;
                else
                    status = c == 'q' ? BAD_QID : MALFORMED;
                goto fail;
            }
            uint64_t index = 0;
            p = read_index(p, end, &index);
            if (*p != ':') {
                status = MALFORMED;
                goto fail;
            }
            if (index > MAX_INDEX) {
                status = INDEX_TOO_LARGE;
                goto fail;
            }
            if (index == 0 && !zero_based) {
                status = INDEX_ZERO;
                goto fail;
            }
            if ((int64_t)index <= previous) {
                status = (int64_t)index == previous ? INDEX_REPEATS : INDEX_DESCENDS;
                result.previous_index = previous;
                goto fail;
            }
            p++;
            double value;
            if (ends_token(p)) {
                status = NO_VALUE;
                goto fail;
            }
            text number = p;
            status = read_decimal(&p, end, &value, slow, context);
            if (status == MALFORMED || (status == OK && !ends_token(p))) {
                status = no_number(number, MALFORMED);
                goto fail;
            }
            if (status != OK)
                goto fail;
            if (kept == sink->nonzero_capacity) {
                status = NONZEROS_FULL;
                break;
            }
            sink->indices[kept] = (int32_t)index;
            sink->values[kept] = value;
            kept++;
            previous = (int64_t)index;
        }
        if (status == NONZEROS_FULL)
            break;

        text newline = memchr(p, '\n', (size_t)(end - p));
        if (comment) {
            text nul = memchr(comment, 0, (size_t)(newline - comment));
            if (nul) {
                token = nul;
                status = NUL_BYTE;
                goto fail;
            }
            comment_end = newline;
            while (comment_end > comment && (is_blank(comment_end[-1]) || comment_end[-1] == '\r'))
                comment_end--;
            while (comment < comment_end && is_blank(*comment))
                comment++;
        }
        sink->ends[rows] = (int64_t)kept;
        sink->labels[rows] = has_label ? label : (double)NAN;
        sink->qids[rows] = qid;
        sink->lines[rows] = line;
        sink->starts[rows] = line_start - buffer;
        sink->comments[2 * rows] = comment ? comment - buffer : -1;
        sink->comments[2 * rows + 1] = comment ? comment_end - buffer : -1;
        rows++;
        nonzeros = kept;
        p = newline + 1;
        line++;
        result.consumed = (size_t)(p - buffer);
        continue;

    fail:
        result.line_start = (size_t)(line_start - buffer);
        result.token_start = (size_t)(token - buffer);
        while (*token != '\n' && !is_blank(*token))
            token++;
        result.token_end = (size_t)(token - buffer);
        if (status != OUT_OF_MEMORY && memchr(buffer + result.token_start, 0, result.token_end - result.token_start))
            status = NUL_BYTE;
        break;
    }
    result.status = status;
    result.rows = rows;
    result.nonzeros = nonzeros;
    result.lines = line - first_line;
    return result;
}

/* A decimal, or an infinity, which has a rank if no size. */
static enum status read_rankable(text *at, text end, double *out, slow_decimal slow, void *context)
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
    enum status status = read_decimal(at, end, out, slow, context);
    return status == MALFORMED ? no_number(*at, MALFORMED) : status;
}

/* Two number columns of every line, counted from 0; `second` may be negative for none. Fields are
 * parted by `separator`, or by runs of blanks where it is 0: there a # ends the line. Nothing is
 * asked of other fields or of what follows. */
static struct outcome scan_columns(text buffer, size_t length, unsigned char separator, int64_t first,
                                   int64_t second, double *firsts, double *seconds, size_t capacity,
                                   slow_decimal slow, void *context)
{
    struct outcome result = {OK, 0, 0, 0, 0, 0, 0, 0, -1};
    text p = buffer, end = buffer + length, token = buffer;
    int64_t last = first > second ? first : second;
    enum status status = OK;

    while (p < end) {
        text line_start = p;
        if (!separator)
            while (is_blank(*p))
                p++;
        int empty = *p == '\n' || (*p == '\r' && p[1] == '\n') || (!separator && *p == '#');
        if (!empty && result.rows == capacity) {
            status = ROWS_FULL;
            break;
        }
        for (int64_t column = 0; !empty && column <= last; column++) {
            if (!separator)
                while (is_blank(*p))
                    p++;
            token = p;
            if (column == first || column == second) {
                double number;
                status = ends_token(p) ? NO_VALUE : read_rankable(&p, end, &number, slow, context);
                if (status == OK && !(separator ? *p == separator || *p == '\n' ||
                                                      (*p == '\r' && p[1] == '\n')
                                                : ends_token(p)))
                    status = no_number(token, MALFORMED);
                if (status != OK)
                    goto fail;
                if (column == first)
                    firsts[result.rows] = number;
                if (column == second)
                    seconds[result.rows] = number;
            } else if (separator && *p == '"') {
                do { /* a doubled quote is one that belongs to the text */
                    p++;
                    while (*p != '"' && *p != '\n')
                        p++;
                    p += *p == '"';
                } while (*p == '"');
            } else if (!separator && *p == '\n') {
                status = NO_VALUE; /* however many columns are missing */
                goto fail;
            } else {
                while (*p != '\n' && (separator ? *p != separator : !is_blank(*p)))
                    p++;
            }
            if (separator && column < last) {
                if (*p != separator) {
                    status = NO_VALUE;
                    goto fail;
                }
                p++;
            }
        }
        text newline = memchr(p, '\n', (size_t)(end - p));
        p = newline + 1;
        result.rows += !empty;
        result.lines++;
        result.consumed = (size_t)(p - buffer);
        continue;

    fail:
        result.line_start = (size_t)(line_start - buffer);
        result.token_start = (size_t)(token - buffer);
        while (*token != '\n' && !is_blank(*token) && !(separator && *token == separator))
            token++;
        result.token_end = (size_t)(token - buffer);
        if (status != OUT_OF_MEMORY && memchr(buffer + result.token_start, 0, result.token_end - result.token_start))
            status = NUL_BYTE;
        break;
    }
    result.status = status;
    return result;
}

/* Support vectors that members share: each distinct line once, in order of appearance, as a row of
 * svmlight text with the label 0. Line i ends at ends[i] of `lines`, where the next begins. A slot
 * holds the number of a line plus one, or 0; slots are a power of two, at most half of them taken. */
struct shared_lines {
    unsigned char *lines;
    size_t size, capacity;
    size_t *ends;
    uint64_t *hashes;
    size_t *slots;
    size_t count, n_slots;
    size_t n_colons; /* in all lines: as many entries at most */
    uint64_t key; /* keeps others from choosing texts that meet in one slot */
    int busy;
};

#define LABEL "0 "
#define LABEL_LENGTH (sizeof LABEL - 1)
#define FEWEST_SLOTS 1024

/* Four words at a time, in lanes that do not wait for each other. */
static inline void mix(uint64_t lanes[4], const uint64_t words[4])
{
    for (int i = 0; i < 4; i++) {
        lanes[i] = (lanes[i] ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        lanes[i] ^= lanes[i] >> (29 + i);
    }
}

static uint64_t hash_bytes(text p, size_t length, uint64_t key)
{
    uint64_t lanes[4] = {key ^ length, ~key, key + length, key >> 1}, words[4];
    for (; length >= sizeof words; length -= sizeof words, p += sizeof words) {
        memcpy(words, p, sizeof words);
        mix(lanes, words);
    }
    memset(words, 0, sizeof words);
    memcpy(words, p, length);
    mix(lanes, words);
    for (int i = 0; i < 4; i++)
        words[i] = lanes[(i + 1) % 4]; /* each has a say in the first */
    mix(lanes, words);
    words[0] = lanes[2];
    mix(lanes, words);
    return lanes[0];
}

/* Room for one more line of this size; 0 where there is none. What was there is kept. */
static int make_room(struct shared_lines *shared, size_t size)
{
    if (2 * (shared->count + 1) > shared->n_slots) {
        size_t n_slots = shared->n_slots ? 2 * shared->n_slots : FEWEST_SLOTS;
        size_t *slots = calloc(n_slots, sizeof *slots);
        size_t *ends = realloc(shared->ends, n_slots / 2 * sizeof *ends);
        if (ends)
            shared->ends = ends;
        uint64_t *hashes = realloc(shared->hashes, n_slots / 2 * sizeof *hashes);
        if (hashes)
            shared->hashes = hashes;
        if (!slots || !ends || !hashes) {
            free(slots);
            return 0;
        }
        for (size_t number = 0; number < shared->count; number++) {
            size_t slot = (size_t)hashes[number] & (n_slots - 1);
            while (slots[slot])
                slot = (slot + 1) & (n_slots - 1);
            slots[slot] = number + 1;
        }
        free(shared->slots);
        shared->slots = slots;
        shared->n_slots = n_slots;
    }
    if (shared->capacity - shared->size < size) {
        size_t capacity = 2 * shared->capacity + size;
        unsigned char *lines = realloc(shared->lines, capacity);
        if (!lines)
            return 0;
        shared->lines = lines;
        shared->capacity = capacity;
    }
    return 1;
}

/* How often a byte occurs in a text; lanes, emptied before they can overflow, let the compiler use
 * SIMD. */
static int64_t count_byte(text p, size_t length, unsigned char byte)
{
    int64_t count = 0;
    while (length >= 64) {
        uint8_t lanes[64] = {0};
        size_t rounds = length / 64 < 255 ? length / 64 : 255;
        length -= 64 * rounds;
        for (; rounds; rounds--, p += 64)
            for (int i = 0; i < 64; i++)
                lanes[i] = (uint8_t)(lanes[i] + (p[i] == byte));
        for (int i = 0; i < 64; i++)
            count += lanes[i];
    }
    for (; length; length--)
        count += *p++ == byte;
    return count;
}

/* The number of a line among those shared, to which it is added if it is new. Neither comments nor
 * qids may stand there: MALFORMED. */
static enum status share_line(struct shared_lines *shared, text line, size_t size, int64_t *number_out)
{
    if (!make_room(shared, LABEL_LENGTH + size))
        return OUT_OF_MEMORY;
    uint64_t hash = hash_bytes(line, size, shared->key);
    size_t slot = (size_t)hash & (shared->n_slots - 1), taken;
    for (; (taken = shared->slots[slot]) != 0; slot = (slot + 1) & (shared->n_slots - 1)) {
        size_t number = taken - 1, start = number ? shared->ends[number - 1] : 0;
        if (shared->hashes[number] == hash && shared->ends[number] - start == LABEL_LENGTH + size &&
            memcmp(shared->lines + start + LABEL_LENGTH, line, size) == 0) {
            *number_out = (int64_t)number;
            return OK;
        }
    }
    if (memchr(line, '#', size) || memchr(line, 'q', size))
        return MALFORMED;
    shared->n_colons += (size_t)count_byte(line, size, ':');
    memcpy(shared->lines + shared->size, LABEL, LABEL_LENGTH);
    memcpy(shared->lines + shared->size + LABEL_LENGTH, line, size);
    shared->size += LABEL_LENGTH + size;
    shared->ends[shared->count] = shared->size;
    shared->hashes[shared->count] = hash;
    shared->slots[slot] = shared->count + 1;
    *number_out = (int64_t)shared->count++;
    return OK;
}

static void drop_lines(struct shared_lines *shared)
{
    free(shared->lines);
    free(shared->ends);
    free(shared->hashes);
    free(shared->slots);
}

/* The lines `coefficient index:value ...` of a member: its coefficients, and the numbers of the rest
 * of its lines among those shared. */
static struct outcome scan_vectors(text buffer, size_t length, double *coefficients, int64_t *numbers,
                                   size_t capacity, struct shared_lines *shared, slow_decimal slow,
                                   void *context)
{
    struct outcome result = {OK, 0, 0, 0, 0, 0, 0, 0, -1};
    text p = buffer, end = buffer + length;
    while (p < end && result.status == OK) {
        text line_start = p, newline = memchr(p, '\n', (size_t)(end - p));
        if (result.rows == capacity) {
            result.status = ROWS_FULL;
            break;
        }
        result.status = read_decimal(&p, end, coefficients + result.rows, slow, context);
        if (result.status == MALFORMED || (result.status == OK && *p != ' ' && *p != '\n'))
            result.status = no_number(line_start, MALFORMED);
        if (result.status != OK)
            break;
        p += *p == ' ';
        result.status = share_line(shared, p, (size_t)(newline + 1 - p), numbers + result.rows);
        result.rows += result.status == OK;
        p = newline + 1;
    }
    return result;
}

#ifndef RESVM_WITHOUT_PYTHON
#include "../arrays.h"

struct interpreter {
    PyThreadState *state;
};

/* Python's own conversion, so that what the fast paths leave equals float() by construction. */
static int python_decimal(void *context, text start, size_t length, double *out)
{
    struct interpreter *interpreter = context;
    char stack[64];
    char *copy = length < sizeof stack ? stack : malloc(length + 1);
    if (!copy)
        return 0;
    memcpy(copy, start, length);
    copy[length] = 0;
    PyEval_RestoreThread(interpreter->state);
    *out = PyOS_string_to_double(copy, NULL, NULL);
    int failed = PyErr_Occurred() != NULL;
    PyErr_Clear();
    interpreter->state = PyEval_SaveThread();
    if (copy != stack)
        free(copy);
    return !failed;
}

static int ends_in_newline(const struct array *source)
{
    const unsigned char *bytes = source->buffer.buf;
    if (count(source) == 0 || bytes[count(source) - 1] == '\n')
        return 1;
    PyErr_SetString(PyExc_ValueError, "text must end in a newline");
    return 0;
}

PyDoc_STRVAR(scan_doc,
"scan(text, zero_based, first_line, ends, labels, qids, lines, starts, comments, indices, values)\n"
"\n"
"Parse complete lines into the given arrays. Returns (status, rows, nonzeros, consumed, lines,\n"
"line_start, token_start, token_end, previous_index).");

static PyObject *scan(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array source = BYTES("text");
    struct array arrays[] = {WRITTEN_INT64("ends"),    WRITTEN_FLOAT64("labels"),
                             WRITTEN_INT64("qids"),    WRITTEN_INT64("lines"),
                             WRITTEN_INT64("starts"),  WRITTEN_INT64("comments"),
                             WRITTEN_INT32("indices"), WRITTEN_FLOAT64("values")};
    int zero_based;
    long long first_line;
    if (!PyArg_ParseTuple(args, "O&pLO&O&O&O&O&O&O&O&", take, &source, &zero_based, &first_line, take,
                          &arrays[0], take, &arrays[1], take, &arrays[2], take, &arrays[3], take,
                          &arrays[4], take, &arrays[5], take, &arrays[6], take, &arrays[7]))
        return NULL;

    PyObject *answer = NULL;
    size_t row_capacity = count(&arrays[0]), nonzero_capacity = count(&arrays[6]);
    const struct array *misfit = count(&arrays[7]) == nonzero_capacity ? NULL : &arrays[7];
    for (int i = 1; i < 6; i++)
        if (count(&arrays[i]) != (i == 5 ? 2 : 1) * row_capacity)
            misfit = &arrays[i];
    if (misfit) {
        PyErr_Format(PyExc_ValueError, "%s does not fit %s", misfit->name,
                     misfit == &arrays[7] ? "indices" : "ends");
    } else if (ends_in_newline(&source)) {
        struct sink sink = {arrays[0].buffer.buf, arrays[1].buffer.buf, arrays[2].buffer.buf,
                            arrays[3].buffer.buf, arrays[4].buffer.buf, arrays[5].buffer.buf,
                            row_capacity,         arrays[6].buffer.buf, arrays[7].buffer.buf,
                            nonzero_capacity};
        struct interpreter interpreter;
        interpreter.state = PyEval_SaveThread();
        struct outcome result = scan_lines(source.buffer.buf, count(&source), zero_based, first_line,
                                           &sink, python_decimal, &interpreter);
        PyEval_RestoreThread(interpreter.state);
        if (result.status == OUT_OF_MEMORY)
            PyErr_NoMemory();
        else
            answer = Py_BuildValue("innnLnnnL", (int)result.status, (Py_ssize_t)result.rows,
                                   (Py_ssize_t)result.nonzeros, (Py_ssize_t)result.consumed,
                                   (long long)result.lines, (Py_ssize_t)result.line_start,
                                   (Py_ssize_t)result.token_start, (Py_ssize_t)result.token_end,
                                   (long long)result.previous_index);
    }
    PyBuffer_Release(&source.buffer);
    for (int i = 0; i < 8; i++)
        PyBuffer_Release(&arrays[i].buffer);
    return answer;
}

PyDoc_STRVAR(columns_doc,
"columns(text, separator, first, second, firsts, seconds)\n"
"\n"
"Read one or two number columns of complete lines into arrays of double. Returns (status, rows,\n"
"consumed, lines, line_start, token_start, token_end).");

static PyObject *columns(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array source = BYTES("text"), firsts = WRITTEN_FLOAT64("firsts"),
                 seconds = WRITTEN_FLOAT64("seconds");
    int separator;
    long long first, second;
    if (!PyArg_ParseTuple(args, "O&iLLO&O&", take, &source, &separator, &first, &second, take, &firsts,
                          take, &seconds))
        return NULL;
    PyObject *answer = NULL;
    if (separator < 0 || separator > 127 || separator == '\n' || separator == '"') {
        PyErr_SetString(PyExc_ValueError, "separator is no such separator: it must part fields");
    } else if (first < 0) {
        PyErr_SetString(PyExc_ValueError, "first is no such column: it must not be negative");
    } else if (second >= 0 && count(&seconds) != count(&firsts)) {
        PyErr_SetString(PyExc_ValueError, "seconds does not fit firsts");
    } else if (ends_in_newline(&source)) {
        struct interpreter interpreter;
        interpreter.state = PyEval_SaveThread();
        struct outcome result = scan_columns(source.buffer.buf, count(&source),
                                             (unsigned char)separator, first, second,
                                             firsts.buffer.buf, seconds.buffer.buf, count(&firsts),
                                             python_decimal, &interpreter);
        PyEval_RestoreThread(interpreter.state);
        if (result.status == OUT_OF_MEMORY)
            PyErr_NoMemory();
        else
            answer = Py_BuildValue("innLnnn", (int)result.status, (Py_ssize_t)result.rows,
                                   (Py_ssize_t)result.consumed, (long long)result.lines,
                                   (Py_ssize_t)result.line_start, (Py_ssize_t)result.token_start,
                                   (Py_ssize_t)result.token_end);
    }
    PyBuffer_Release(&source.buffer);
    PyBuffer_Release(&firsts.buffer);
    PyBuffer_Release(&seconds.buffer);
    return answer;
}

#define SHARED "resvm_cli.files._svmlight.shared_lines"

static void drop_capsule(PyObject *capsule)
{
    struct shared_lines *shared = PyCapsule_GetPointer(capsule, SHARED);
    if (shared)
        drop_lines(shared);
    free(shared);
}

/* What a capsule holds, for this thread alone until it is no longer busy. */
static struct shared_lines *take_shared(PyObject *capsule)
{
    struct shared_lines *shared = PyCapsule_GetPointer(capsule, SHARED);
    if (shared && shared->busy) {
        PyErr_SetString(PyExc_RuntimeError, "these lines are in use by another thread");
        return NULL;
    }
    return shared;
}

PyDoc_STRVAR(shared_doc,
"shared(key)\n"
"\n"
"Room for lines that members share, for vectors to fill; the key may be any number.");

static PyObject *shared(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long key;
    if (!PyArg_ParseTuple(args, "K", &key))
        return NULL;
    struct shared_lines *made = calloc(1, sizeof *made);
    if (!made)
        return PyErr_NoMemory();
    made->key = key;
    PyObject *capsule = PyCapsule_New(made, SHARED, drop_capsule);
    if (!capsule)
        free(made);
    return capsule;
}

PyDoc_STRVAR(vectors_doc,
"vectors(shared, text, coefficients, numbers)\n"
"\n"
"Read the support vectors of a member: their coefficients, and the numbers of their rows among those\n"
"shared, to which new ones are added. Returns (status, vectors).");

static PyObject *vectors(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsule;
    struct array source = BYTES("text"), coefficients = WRITTEN_FLOAT64("coefficients"),
                 numbers = WRITTEN_INT64("numbers");
    if (!PyArg_ParseTuple(args, "OO&O&O&", &capsule, take, &source, take, &coefficients, take,
                          &numbers))
        return NULL;
    PyObject *answer = NULL;
    struct shared_lines *lines = take_shared(capsule);
    if (lines && count(&numbers) != count(&coefficients)) {
        PyErr_SetString(PyExc_ValueError, "numbers does not fit coefficients");
    } else if (lines && ends_in_newline(&source)) {
        struct interpreter interpreter;
        lines->busy = 1;
        interpreter.state = PyEval_SaveThread();
        struct outcome result =
            scan_vectors(source.buffer.buf, count(&source), coefficients.buffer.buf,
                         numbers.buffer.buf, count(&numbers), lines, python_decimal, &interpreter);
        PyEval_RestoreThread(interpreter.state);
        lines->busy = 0;
        if (result.status == OUT_OF_MEMORY)
            PyErr_NoMemory();
        else
            answer = Py_BuildValue("in", (int)result.status, (Py_ssize_t)result.rows);
    }
    PyBuffer_Release(&source.buffer);
    PyBuffer_Release(&coefficients.buffer);
    PyBuffer_Release(&numbers.buffer);
    return answer;
}

PyDoc_STRVAR(distinct_doc,
"distinct(shared)\n"
"\n"
"The distinct rows that vectors found, as svmlight text in the order of their numbers.");

static PyObject *distinct(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsule;
    if (!PyArg_ParseTuple(args, "O", &capsule))
        return NULL;
    struct shared_lines *lines = take_shared(capsule);
    if (!lines)
        return NULL;
    return PyBytes_FromStringAndSize((const char *)lines->lines, (Py_ssize_t)lines->size);
}

PyDoc_STRVAR(sizes_doc,
"sizes(shared)\n"
"\n"
"How many distinct rows vectors found, and how many entries they have at most.");

static PyObject *sizes(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsule;
    if (!PyArg_ParseTuple(args, "O", &capsule))
        return NULL;
    struct shared_lines *lines = take_shared(capsule);
    if (!lines)
        return NULL;
    return Py_BuildValue("nn", (Py_ssize_t)lines->count, (Py_ssize_t)lines->n_colons);
}

PyDoc_STRVAR(parse_doc,
"parse(shared, ends, indices, values)\n"
"\n"
"Parse the distinct rows that vectors found, indices from 0, into arrays of the sizes they have.\n"
"Returns (status, rows, nonzeros).");

static PyObject *parse(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsule;
    struct array ends = WRITTEN_INT64("ends"), indices = WRITTEN_INT32("indices"),
                 values = WRITTEN_FLOAT64("values");
    if (!PyArg_ParseTuple(args, "OO&O&O&", &capsule, take, &ends, take, &indices, take, &values))
        return NULL;
    PyObject *answer = NULL;
    struct shared_lines *lines = take_shared(capsule);
    size_t n_rows = count(&ends);
    int64_t *others = NULL;
    const struct array *misfit = NULL;
    if (lines && n_rows != lines->count)
        misfit = &ends;
    else if (lines && count(&indices) != lines->n_colons)
        misfit = &indices;
    else if (lines && count(&values) != lines->n_colons)
        misfit = &values;
    if (misfit) {
        PyErr_Format(PyExc_ValueError, "%s does not fit what sizes says", misfit->name);
    } else if (lines && !(others = malloc(6 * (n_rows ? n_rows : 1) * sizeof *others))) {
        PyErr_NoMemory();
    } else if (lines) { /* labels, qids, lines, starts and comments are of no use here */
        struct sink sink = {ends.buffer.buf,      (double *)others,   others + n_rows,
                            others + 2 * n_rows,  others + 3 * n_rows, others + 4 * n_rows,
                            n_rows,               indices.buffer.buf, values.buffer.buf,
                            count(&indices)};
        struct interpreter interpreter;
        lines->busy = 1;
        interpreter.state = PyEval_SaveThread();
        struct outcome result = scan_lines(lines->lines, lines->size, 1, 1, &sink, python_decimal,
                                           &interpreter);
        PyEval_RestoreThread(interpreter.state);
        lines->busy = 0;
        if (result.status == OUT_OF_MEMORY)
            PyErr_NoMemory();
        else
            answer = Py_BuildValue("inn", (int)result.status, (Py_ssize_t)result.rows,
                                   (Py_ssize_t)result.nonzeros);
    }
    free(others);
    PyBuffer_Release(&ends.buffer);
    PyBuffer_Release(&indices.buffer);
    PyBuffer_Release(&values.buffer);
    return answer;
}

PyDoc_STRVAR(newlines_doc,
"newlines(text, step, counts)\n"
"\n"
"Count the newlines of every step bytes of a text into an array of int64.");

static PyObject *newlines(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct array source = BYTES("text"), counts = WRITTEN_INT64("counts");
    Py_ssize_t given;
    if (!PyArg_ParseTuple(args, "O&nO&", take, &source, &given, take, &counts))
        return NULL;
    PyObject *answer = NULL;
    size_t step = given > 0 ? (size_t)given : 0, left = count(&source);
    if (step == 0) {
        PyErr_SetString(PyExc_ValueError, "step must be positive");
    } else if (count(&counts) != left / step + (left % step > 0)) {
        PyErr_SetString(PyExc_ValueError, "counts does not fit: it must have one for each step of text");
    } else {
        Py_BEGIN_ALLOW_THREADS
        text at = source.buffer.buf;
        for (int64_t *out = counts.buffer.buf; left > 0; out++) {
            size_t length = left < step ? left : step;
            *out = count_byte(at, length, '\n');
            at += length;
            left -= length;
        }
        Py_END_ALLOW_THREADS
        answer = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&source.buffer);
    PyBuffer_Release(&counts.buffer);
    return answer;
}

static PyMethodDef methods[] = {{"scan", scan, METH_VARARGS, scan_doc},
                                {"columns", columns, METH_VARARGS, columns_doc},
                                {"shared", shared, METH_VARARGS, shared_doc},
                                {"vectors", vectors, METH_VARARGS, vectors_doc},
                                {"distinct", distinct, METH_VARARGS, distinct_doc},
                                {"sizes", sizes, METH_VARARGS, sizes_doc},
                                {"parse", parse, METH_VARARGS, parse_doc},
                                {"newlines", newlines, METH_VARARGS, newlines_doc},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_svmlight", "The svmlight tokenizer.", 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__svmlight(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    static const struct {
        const char *name;
        int value;
    } statuses[] = {{"OK", OK},
                    {"ROWS_FULL", ROWS_FULL},
                    {"NONZEROS_FULL", NONZEROS_FULL},
                    {"MALFORMED", MALFORMED},
                    {"NOT_FINITE", NOT_FINITE},
                    {"VALUE_OVERFLOW", VALUE_OVERFLOW},
                    {"INDEX_ZERO", INDEX_ZERO},
                    {"INDEX_NEGATIVE", INDEX_NEGATIVE},
                    {"INDEX_DESCENDS", INDEX_DESCENDS},
                    {"INDEX_REPEATS", INDEX_REPEATS},
                    {"INDEX_TOO_LARGE", INDEX_TOO_LARGE},
                    {"NUL_BYTE", NUL_BYTE},
                    {"BAD_LABEL", BAD_LABEL},
                    {"BAD_QID", BAD_QID},
                    {"NO_VALUE", NO_VALUE}};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (PyModule_AddIntConstant(module, statuses[i].name, statuses[i].value) < 0) {
            Py_DECREF(module);
            return NULL;
        }
    return module;
}
#endif
