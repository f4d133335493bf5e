/* Fuzz target for writing numbers. Arbitrary bits and short decimals must read back exactly, have no
 * unnecessary digits, and fit in buffers of exactly the promised size. Rows and lines must not
 * depend on how their buffers grow. */
#define RESVM_WITHOUT_PYTHON
#include "../../resvm_cli/data/_numbers.c"
#include "input.h"

#include <math.h>

static void require(int condition, const char *what, double number)
{
    if (!condition) {
        fprintf(stderr, "violated: %s, %.17g\n", what, number);
        abort();
    }
}

struct libc {
    unsigned long long calls;
    int fails;
};

/* Not repr's layout, but a text of its length. */
static char *libc_number(void *context, double number, char *to)
{
    struct libc *libc = context;
    libc->calls++;
    if (libc->fails)
        return NULL;
    char text[64];
    int length = 0;
    for (int precision = 0; precision < 17; precision++) {
        length = snprintf(text, sizeof text, "%.*e", precision, number);
        if (strtod(text, NULL) == number)
            break;
    }
    require(length > 2 && length <= NUMBER_ROOM, "the slow path keeps its room", number);
    memcpy(to, text, (size_t)length);
    return to + length;
}

static double random_number(void)
{
    double number;
    uint64_t bits = next_random();
    char text[64];
    switch (below(6)) {
    case 0: /* any bits */
        break;
    case 1: /* within the tables, few bits set or all but few */
        bits = (UINT64_C(893) + below(280)) << 52;
        bits += next_random() >> 12 & ~UINT64_C(0) << below(52);
        bits += below(5) - 2;
        break;
    case 2: /* within the tables */
        bits = (UINT64_C(893) + below(280)) << 52 | next_random() >> 12;
        break;
    case 3:
        return (double)((int64_t)next_random() >> below(64));
    default:
        snprintf(text, sizeof text, "%s%llue%d", below(2) ? "-" : "",
                 (unsigned long long)(next_random() % UINT64_C(100000000000000000) >> below(57)),
                 (int)below(40) - 25);
        return strtod(text, NULL);
    }
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* The digits of a text from the first to the last that is not zero; returns how many. */
static int digits_of(const char *from, const char *end, char *to)
{
    int count = 0;
    for (; from < end && *from != 'e'; from++)
        if (*from >= '0' && *from <= '9' && (count > 0 || *from != '0'))
            to[count++] = *from;
    while (count > 0 && to[count - 1] == '0')
        count--;
    return count;
}

static void check_number(double number, struct libc *libc)
{
    char *exact = room(NUMBER_ROOM, 1), *end = write_number(exact, number, libc_number, libc);
    require(end > exact + 2 && end <= exact + NUMBER_ROOM, "a number keeps its room", number);
    char text[NUMBER_ROOM + 1] = {0}, other[64], digits[NUMBER_ROOM], nearest[64];
    memcpy(text, exact, (size_t)(end - exact));
    free(exact);
    if (isnan(number))
        return;
    double again = strtod(text, NULL);
    require(memcmp(&again, &number, sizeof again) == 0, "a number reads back", number);
    if (isinf(number) || number == 0)
        return;
    int count = digits_of(text, text + strlen(text), digits);
    require(count >= 1 && count <= 17, "a number has 1 to 17 digits", number);
    if (count > 1) {
        snprintf(other, sizeof other, "%.*e", count - 2, number);
        require(strtod(other, NULL) != number, "no digit is too many", number);
    }
    snprintf(other, sizeof other, "%.*e", count - 1, number);
    if (strtod(other, NULL) == number) {
        int n_nearest = digits_of(other, other + strlen(other), nearest);
        require(n_nearest == count && memcmp(nearest, digits, (size_t)count) == 0,
                "the nearest of the shortest is taken", number);
    }
}

/* Gives a full output just as much room as it needs, or slightly more. */
static void give_room(struct output *out, size_t needed)
{
    require(out->capacity - out->used < needed, "room is requested only when needed", 0);
    size_t capacity = out->used + needed + below(100);
    char *more = room(capacity, 1);
    memcpy(more, out->text, out->used);
    free(out->text);
    out->text = more;
    out->capacity = capacity;
}

static unsigned long long runs, fast, slow, refused, failed, grown;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct libc libc = {0, 0};
    read_choices_from(data, size);
    fill_tables();
    size_t n_rows = below(6), n_entries = below(20);
    double *values = room(n_entries, sizeof *values);
    int32_t *indices = room(n_entries, sizeof *indices);
    int64_t *starts = room(n_rows + 1, sizeof *starts), *ends = room(n_rows, sizeof *ends);
    for (size_t i = 0; i < n_entries; i++) {
        values[i] = random_number();
        indices[i] = (int32_t)((int64_t)next_random() >> (32 + below(32)));
        unsigned long long before = libc.calls;
        check_number(values[i], &libc);
        slow += libc.calls > before;
        fast += libc.calls == before && values[i] != floor(values[i]); /* by the powers */
    }
    int64_t start = below(50) ? 0 : (int64_t)next_random();
    for (size_t i = 0; i <= n_rows; i++) {
        starts[i] = below(40) ? start : (int64_t)next_random() >> below(64);
        start += (int64_t)below(5);
    }

    unsigned long long calls = libc.calls;
    libc.fails = below(10) == 0;
    struct output out = {room(0, 1), 0, 0, 0, 0};
    enum status status;
    while ((status = format_rows(starts, n_rows, indices, values, n_entries, ends, &out,
                                 libc_number, &libc)) == FULL) {
        give_room(&out, ENTRY_ROOM);
        grown++;
    }
    require(out.used <= out.capacity, "rows keep their room", 0);
    require((status == OUT_OF_MEMORY) == (libc.fails && libc.calls > calls),
            "rows report when memory runs out", 0);
    if (status == DONE) {
        char number[NUMBER_ROOM], *at = out.text;
        for (size_t row = 0; row < n_rows; row++) {
            require(starts[row] <= starts[row + 1] && starts[row + 1] <= (int64_t)n_entries,
                    "rows that do not fit are refused", 0);
            for (int64_t i = starts[row]; i < starts[row + 1]; i++) {
                char index[32];
                int length = snprintf(index, sizeof index, "%s%d:", i > starts[row] ? " " : "",
                                      (int)indices[i]);
                require(memcmp(at, index, (size_t)length) == 0, "an index is written", 0);
                at += length;
                char *end = write_number(number, values[i], libc_number, &libc);
                size_t size = (size_t)(end - number);
                if (memcmp(end - 2, ".0", 2) == 0)
                    size -= 2;
                require(memcmp(at, number, size) == 0, "a value is written", values[i]);
                at += size;
            }
            require(at == out.text + ends[row], "a row ends where it says", 0);
        }
        require(at == out.text + out.used, "rows are written whole", 0);
    }
    refused += status == MISFIT;
    failed += status == OUT_OF_MEMORY;
    free(out.text);

    size_t n_columns = 1 + below(5), n_lines = n_entries / n_columns;
    int64_t *labels = below(2) ? room(n_lines, sizeof *labels) : NULL;
    for (size_t i = 0; labels && i < n_lines; i++)
        labels[i] = (int64_t)(next_random() & ~UINT64_C(0) << below(64)) >> below(64);
    calls = libc.calls;
    out = (struct output){room(0, 1), 0, 0, 0, 0};
    while ((status = format_lines(labels, values, n_lines, n_columns, '\t', &out, libc_number,
                                  &libc)) == FULL) {
        give_room(&out, FIELD_ROOM);
        grown++;
    }
    require(out.used <= out.capacity, "lines keep their room", 0);
    require((status == OUT_OF_MEMORY) == (libc.fails && libc.calls > calls),
            "lines report when memory runs out", 0);
    if (status == DONE) {
        char number[NUMBER_ROOM], *at = out.text;
        for (size_t i = 0; i < n_lines * n_columns; i++) {
            char label[32];
            int length = 0;
            if (i % n_columns)
                length = snprintf(label, sizeof label, "\t");
            else if (labels)
                length = snprintf(label, sizeof label, "%lld\t",
                                  (long long)labels[i / n_columns]);
            require(memcmp(at, label, (size_t)length) == 0, "a label is written", values[i]);
            at += length;
            char *end = write_number(number, values[i], libc_number, &libc);
            require(memcmp(at, number, (size_t)(end - number)) == 0, "a field is written",
                    values[i]);
            at += end - number;
            if ((i + 1) % n_columns == 0)
                require(*at++ == '\n', "a line is closed", values[i]);
        }
        require(at == out.text + out.used, "lines are written whole", 0);
    }
    failed += status == OUT_OF_MEMORY;
    libc.fails = 0;
    free(out.text), free(labels), free(values), free(indices), free(starts), free(ends);
    runs++;
    return 0;
}

int outcomes_met(void)
{
    printf("%llu refused, %llu out of memory; %llu numbers by powers, %llu slowly\n", refused, failed,
           fast, slow);
    return fast && slow && refused && refused < runs && failed && grown;
}
