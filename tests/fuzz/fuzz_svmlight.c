/* Fuzz target for the tokenizer: the input is a line of choices, then text, which is scanned from a
 * buffer of exactly the right size, so that ASan detects any access beyond it. */
#define RESVM_WITHOUT_PYTHON
#include "../../resvm_cli/data/_svmlight.c"
#include "input.h"

static int libc_decimal(void *context, text start, size_t length, double *out)
{
    (void)context;
    char *copy = malloc(length + 1);
    if (!copy)
        return 0;
    memcpy(copy, start, length);
    copy[length] = 0;
    *out = strtod(copy, NULL);
    free(copy);
    return 1;
}

static void require(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "violated: %s\n", what);
        abort();
    }
}

enum { N_CHOICES = 8 }; /* one byte each */
static unsigned long long runs, rows, refused;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < N_CHOICES + 1)
        return 0;
    read_choices_from(data, N_CHOICES);
    size_t length = size - N_CHOICES;
    unsigned char *exact = room(length, 1);
    memcpy(exact, data + N_CHOICES, length);
    exact[length - 1] = '\n';
    static const unsigned char separators[] = {0, '\t', ','};
    unsigned char separator = separators[below(3)];
    int64_t first_column = (int64_t)below(4), second_column = (int64_t)below(5) - 1;
    int zero_based = (int)below(2);
    size_t capacity = below(10), row_capacity = below(10), nonzero_capacity = below(30);

    int64_t newlines = 0;
    for (size_t at = 0; at < length; at++)
        newlines += exact[at] == '\n';

    double *firsts = malloc(8 * capacity), *seconds = malloc(8 * capacity);
    struct outcome table = scan_columns(exact, length, separator, first_column, second_column,
                                        firsts, seconds, capacity, libc_decimal, NULL);
    require(table.rows <= capacity, "table rows within capacity");
    require(table.consumed <= length, "table consumed within the text");
    require(table.consumed == 0 || exact[table.consumed - 1] == '\n', "whole lines of the table");
    require(table.status != OK || table.consumed == length, "the whole table consumed when OK");
    for (size_t row = 0; row < table.rows; row++)
        require(!isnan(firsts[row]), "no nan in a table");
    if (table.status >= MALFORMED)
        require(table.line_start <= table.token_start && table.token_start <= table.token_end &&
                    table.token_end < length,
                "the refused field lies in its line");
    free(firsts);
    free(seconds);

    int64_t kinds[4];
    size_t width = 1 + below(4);
    struct cells room = {.kinds = kinds, .width = width, .row_capacity = capacity};
    for (size_t column = 0; column < width; column++) {
        kinds[column] = (int64_t)below(3);
        room.numbers += kinds[column] == NUMBER;
        room.texts += kinds[column] == TEXT;
    }
    room.values = malloc(8 * capacity * room.numbers);
    room.spans = malloc(16 * capacity * room.texts);
    room.odd = malloc(24 * capacity * room.numbers);
    struct outcome simple =
        scan_cells(exact, length, separator ? separator : ';', &room, libc_decimal, NULL);
    require(simple.rows <= capacity, "rows of cells within capacity");
    require(simple.status != OK || simple.consumed == length, "all cells consumed when OK");
    require(simple.consumed == 0 || exact[simple.consumed - 1] == '\n', "whole lines of cells");
    for (size_t one = 0; one < simple.rows * room.texts; one++)
        require(room.spans[2 * one] <= room.spans[2 * one + 1] &&
                    room.spans[2 * one + 1] < (int64_t)simple.consumed,
                "texts lie in what was consumed");
    size_t n_nan = 0;
    for (size_t one = 0; one < simple.rows * room.numbers; one++)
        n_nan += isnan(room.values[one]) != 0;
    require(n_nan == room.n_odd, "each odd cell is nan");
    free(room.values);
    free(room.spans);
    free(room.odd);

    double *coefficients = malloc(8 * capacity);
    int64_t *starts = malloc(8 * capacity);
    struct outcome vectors =
        scan_vectors(exact, length, coefficients, starts, capacity, libc_decimal, NULL);
    require(vectors.rows <= capacity, "vectors within capacity");
    require(vectors.status != OK || (int64_t)vectors.rows == newlines, "each vector a line");
    for (size_t row = 0; row < vectors.rows; row++) {
        require(isfinite(coefficients[row]), "coefficients are finite");
        require(starts[row] > 0 && starts[row] < (int64_t)length, "lines that there are");
    }
    free(coefficients);
    free(starts);

    struct sink sink = {malloc(8 * row_capacity),  malloc(8 * row_capacity),
                        malloc(8 * row_capacity),  malloc(8 * row_capacity),
                        malloc(8 * row_capacity),  malloc(16 * row_capacity), row_capacity,
                        malloc(4 * nonzero_capacity), malloc(8 * nonzero_capacity),
                        nonzero_capacity};
    struct outcome result = scan_lines(exact, length, zero_based, 1, &sink, libc_decimal, NULL);
    require(result.rows <= row_capacity, "rows within capacity");
    require(result.nonzeros <= nonzero_capacity, "nonzeros within capacity");
    require(result.consumed <= length, "consumed within the text");
    require(result.consumed == 0 || exact[result.consumed - 1] == '\n', "whole lines consumed");
    require(result.status != OK || result.consumed == length, "everything consumed when OK");
    int64_t before = 0;
    for (size_t row = 0; row < result.rows; row++) {
        require(sink.ends[row] >= before, "ends ascend");
        for (int64_t i = before; i < sink.ends[row]; i++) {
            require(sink.indices[i] >= 0, "indices are not negative");
            require(i == before || sink.indices[i] > sink.indices[i - 1], "indices ascend");
            require(isfinite(sink.values[i]), "values are finite");
        }
        require(sink.starts[row] >= 0 && sink.starts[row] < (int64_t)result.consumed,
                "rows start in what was consumed");
        int64_t start = sink.comments[2 * row], end = sink.comments[2 * row + 1];
        require(start <= end && end <= (int64_t)length, "comments lie in the text");
        before = sink.ends[row];
    }
    if (result.status >= MALFORMED) {
        require(result.line_start <= result.token_start && result.token_start <= result.token_end &&
                    result.token_end < length,
                "the refused token lies in its line");
        refused++;
    }
    rows += result.rows;
    runs++;
    free(sink.ends);
    free(sink.labels);
    free(sink.qids);
    free(sink.lines);
    free(sink.starts);
    free(sink.comments);
    free(sink.indices);
    free(sink.values);
    free(exact);
    return 0;
}

int outcomes_met(void)
{
    printf("%llu rows read, %llu texts refused\n", rows, refused);
    return rows && refused && refused < runs;
}
