/* The passes over all rows of a bag that smo.h makes in each step, LANES numbers at a time.
 *
 * Included once for each width of vectors, with LANES, TARGET and NAMED(name) defined. Each lane
 * keeps its own best row, and the best of the lanes is the one that a loop from the first row to the
 * last would have found: of equal ones the last. So the width changes no bit. */

typedef double NAMED(doubles) __attribute__((vector_size(8 * LANES)));
typedef int64_t NAMED(words) __attribute__((vector_size(8 * LANES)));
typedef float NAMED(floats) __attribute__((vector_size(4 * LANES)));
typedef int8_t NAMED(marks) __attribute__((vector_size(LANES)));

#define DOUBLES NAMED(doubles)
#define WORDS NAMED(words)
#define FLOATS NAMED(floats)
#define MARKS NAMED(marks)
#define CHOSEN(mask, one, other) \
    ((DOUBLES)(((mask) & (WORDS)(one)) | (~(mask) & (WORDS)(other))))
#define LOADED(type, variable, address) \
    type variable;                      \
    memcpy(&variable, address, sizeof variable)

static inline __attribute__((always_inline)) TARGET struct row_choice
NAMED(best_lane)(DOUBLES best, WORDS rows)
{
    struct row_choice choice = {-INFINITY, -1};
    for (int lane = 0; lane < LANES; lane++)
        if (rows[lane] >= 0 && (best[lane] > choice.value ||
                                (best[lane] == choice.value && rows[lane] > choice.row)))
            choice = (struct row_choice){best[lane], rows[lane]};
    return choice;
}

/* slopes += one * by_one + other * by_other; and the row that may rise whose slope is least. */
TARGET static struct row_choice NAMED(descend)(double *slopes, const float *one, double by_one,
                                               const float *other, double by_other,
                                               const int8_t *rises, size_t count)
{
    DOUBLES best = (DOUBLES){0} - INFINITY;
    WORDS rows = (WORDS){0} - 1, at;
    for (int lane = 0; lane < LANES; lane++)
        at[lane] = lane;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        LOADED(DOUBLES, slope, slopes + i);
        LOADED(FLOATS, of_one, one + i);
        LOADED(FLOATS, of_other, other + i);
        LOADED(MARKS, marks, rises + i);
        slope += __builtin_convertvector(of_one, DOUBLES) * by_one +
                 __builtin_convertvector(of_other, DOUBLES) * by_other;
        memcpy(slopes + i, &slope, sizeof slope);
        WORDS better = __builtin_convertvector(marks, WORDS) & (WORDS)(-slope >= best);
        best = CHOSEN(better, -slope, best);
        rows = (better & at) | (~better & rows);
        at += LANES;
    }
    struct row_choice choice = NAMED(best_lane)(best, rows);
    for (; i < count; i++) {
        slopes[i] += one[i] * by_one + other[i] * by_other;
        if (rises[i] && -slopes[i] >= choice.value)
            choice = (struct row_choice){-slopes[i], (int64_t)i};
    }
    return choice;
}

/* The row that may fall by which the objective gains most together with the one that rises, whose
 * kernel values and diagonal are given; and the steepest slope of those that may fall. */
TARGET static struct row_choice NAMED(partner)(const double *slopes, const float *values,
                                               const double *diagonal, double own_diagonal,
                                               double rise, const int8_t *falls, size_t count,
                                               double *steepest)
{
    DOUBLES best = (DOUBLES){0} - INFINITY, most = best;
    const DOUBLES tiny = (DOUBLES){0} + TINY_CURVATURE;
    WORDS rows = (WORDS){0} - 1, at;
    for (int lane = 0; lane < LANES; lane++)
        at[lane] = lane;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        LOADED(DOUBLES, slope, slopes + i);
        LOADED(DOUBLES, square, diagonal + i);
        LOADED(FLOATS, value, values + i);
        LOADED(MARKS, marks, falls + i);
        WORDS allowed = __builtin_convertvector(marks, WORDS);
        most = CHOSEN(allowed & (WORDS)(slope >= most), slope, most);
        DOUBLES drop = slope + rise;
        DOUBLES curve = (square + own_diagonal) - 2.0 * __builtin_convertvector(value, DOUBLES);
        curve = CHOSEN((WORDS)(curve > 0.0), curve, tiny);
        DOUBLES gain = (drop * drop) / curve;
        WORDS better = allowed & (WORDS)(drop > 0.0) & (WORDS)(gain >= best);
        best = CHOSEN(better, gain, best);
        rows = (better & at) | (~better & rows);
        at += LANES;
    }
    *steepest = -INFINITY;
    for (int lane = 0; lane < LANES; lane++)
        if (most[lane] > *steepest)
            *steepest = most[lane];
    struct row_choice choice = NAMED(best_lane)(best, rows);
    for (; i < count; i++) {
        if (!falls[i])
            continue;
        if (slopes[i] >= *steepest)
            *steepest = slopes[i];
        double drop = slopes[i] + rise;
        double curve = (diagonal[i] + own_diagonal) - 2.0 * values[i];
        double gain = (drop * drop) / (curve > 0.0 ? curve : TINY_CURVATURE);
        if (drop > 0.0 && gain >= choice.value)
            choice = (struct row_choice){gain, (int64_t)i};
    }
    return choice;
}

/* sums += line * by. */
TARGET static void NAMED(add_line)(double *sums, const float *line, double by, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sums[i] += line[i] * by;
}

#undef DOUBLES
#undef WORDS
#undef FLOATS
#undef MARKS
#undef CHOSEN
#undef LOADED
#undef LANES
#undef TARGET
#undef NAMED
