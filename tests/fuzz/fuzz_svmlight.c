/* Fuzz target of the tokenizer: mutate svmlight text and scan it from buffers of exactly the right
 * size, so that ASan sees any access beyond them. Usage: fuzz_svmlight [seconds]. */
#define RESVM_WITHOUT_PYTHON
#include "../../resvm_cli/files/_svmlight.c"
#include "random.h"

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

static const char *const seeds[] = {
    "1 1:0.5 2:-3e-5 7:12345678901234567890 # BRCA1\n-1 qid:12 3:1\n",
    "+1.0 10:.5 11:5. 12:1e308\r\n\r\n# only a comment\n2\n",
    "1:2 2:3\n\t 3:4   4:5\t\n0 2147483646:1\n",
    "id\tlabel\tdecision_value\n\"a\"\"b\tc\"\t1\t0.25\n\t-1\t-inf\n", "a,1,2\nb,Infinity,3\r\n",
    "1 0.5 # name\n-1 -3.25 0.5 1e-3\n\n0.125\n",
    "nan 1:2\n", "1 1:nan\n", "1 0:1\n", "1 2:1 1:1\n", "1 1:1 1:2\n", "1 -1:2\n", "-3:4\n",
    "1 1:\n", "1 :1\n", "1 1:1e\n", "1 1:1e999999999\n", "1 99999999999:1\n", "qid:\n", "1 qid:x 1:2\n",
    "1 1:0.00000000000000000000000000000000000012345678901234567890123e-300 2:17976931348623157e292\n",
};
static const char alphabet[] = "0123456789:. +-eE\t\r\n#qidnaf,\"";

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    time_t stop = time(NULL) + (time_t)seconds;
    unsigned long long runs = 0, rows = 0, refused = 0;
    while (runs % 1024 || time(NULL) < stop) {
        const char *seed = seeds[below(sizeof seeds / sizeof *seeds)];
        const char *other = seeds[below(sizeof seeds / sizeof *seeds)];
        size_t first = strlen(seed), second = below(2) ? strlen(other) : 0;
        size_t length = first + second;
        unsigned char *buffer = malloc(length + 64);
        memcpy(buffer, seed, first);
        memcpy(buffer + first, other, second);
        for (size_t left = below(6); left; left--) {
            size_t at = below(length);
            switch (below(4)) {
            case 0:
                buffer[at] = (unsigned char)next_random();
                break;
            case 1:
                buffer[at] = (unsigned char)alphabet[below(sizeof alphabet - 1)];
                break;
            case 2: /* repeat one byte up to eight times */
                for (size_t times = below(8) + 1; times && length < first + second + 60; times--) {
                    memmove(buffer + at + 1, buffer + at, length - at);
                    length++;
                }
                break;
            default:
                if (length > 2) {
                    memmove(buffer + at, buffer + at + 1, length - at - 1);
                    length--;
                }
            }
        }
        buffer[length - 1] = '\n';
        unsigned char *exact = malloc(length);
        memcpy(exact, buffer, length);
        free(buffer);

        int64_t newlines = 0;
        for (size_t at = 0; at < length; at++)
            newlines += exact[at] == '\n';
        require(count_byte(exact, length, '\n') == newlines, "newlines are counted");

        static const unsigned char separators[] = {0, '\t', ','};
        unsigned char separator = separators[below(3)];
        size_t capacity = below(8);
        int64_t first_column = (int64_t)below(4), second_column = (int64_t)below(5) - 1;
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

        struct shared_lines shared = {.key = next_random()};
        int64_t number;
        for (int again = 0; again < 2; again++) { /* the second time every line is known */
            double *coefficients = malloc(8 * capacity);
            int64_t *numbers = malloc(8 * capacity);
            size_t known = shared.count;
            struct outcome vectors = scan_vectors(exact, length, coefficients, numbers, capacity,
                                                  &shared, libc_decimal, NULL);
            require(vectors.rows <= capacity, "vectors within capacity");
            require(vectors.status != OK || (int64_t)vectors.rows == newlines, "each vector a line");
            require(!again || shared.count == known, "known lines are found again");
            for (size_t row = 0; row < vectors.rows; row++) {
                require(isfinite(coefficients[row]), "coefficients are finite");
                require(numbers[row] >= 0 && (size_t)numbers[row] < shared.count, "lines that there are");
            }
            require(shared.count == 0 || shared.ends[shared.count - 1] == shared.size, "lines end");
            free(coefficients);
            free(numbers);
        }
        for (uint64_t more = below(200) ? 0 : 2000; more; more--) /* slots grow */
            if (share_line(&shared, (text)&more, sizeof more, &number) == OK)
                require(number == (int64_t)shared.count - 1, "a new line is the last");
        drop_lines(&shared);

        size_t row_capacity = below(8), nonzero_capacity = below(24);
        struct sink sink = {malloc(8 * row_capacity),  malloc(8 * row_capacity),
                            malloc(8 * row_capacity),  malloc(8 * row_capacity),
                            malloc(8 * row_capacity),  malloc(16 * row_capacity), row_capacity,
                            malloc(4 * nonzero_capacity), malloc(8 * nonzero_capacity),
                            nonzero_capacity};
        struct outcome result = scan_lines(exact, length, (int)below(2), 1, &sink, libc_decimal, NULL);
        require(result.rows <= row_capacity, "rows within capacity");
        require(result.nonzeros <= nonzero_capacity, "non-zeros within capacity");
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
        free(exact);
        free(sink.ends);
        free(sink.labels);
        free(sink.qids);
        free(sink.lines);
        free(sink.starts);
        free(sink.comments);
        free(sink.indices);
        free(sink.values);
    }
    printf("%llu texts, %llu rows read, %llu texts refused, no fault\n", runs, rows, refused);
    return 0;
}
