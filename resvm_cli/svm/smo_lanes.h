/* The passes over all rows of a bag that smo.h makes in each step, LANES numbers at a time.
 *
 * This file is included once for each vector width, with LANES, TARGET and NAMED(name) defined. Each
 * lane keeps its own best row.
 * The best of these is the row that a simple loop would find (the last one in a tie), so the results
 * do not depend on the width. */

typedef double NAMED(doubles) __attribute__((vector_size(8 * LANES)));
typedef int64_t NAMED(words) __attribute__((vector_size(8 * LANES)));
typedef float NAMED(floats) __attribute__((vector_size(4 * LANES)));

#define DOUBLES NAMED(doubles)
#define WORDS NAMED(words)
#define FLOATS NAMED(floats)
#define CHOSEN(mask, one, other) \
    ((DOUBLES)(((mask) & (WORDS)(one)) | (~(mask) & (WORDS)(other))))
#define LOADED(type, variable, address) \
    type variable;                      \
    memcpy(&variable, address, sizeof variable)

static inline __attribute__((always_inline)) TARGET struct row_choice
NAMED(best_lane)(DOUBLES best, WORDS rows)
{
    struct row_choice choice = {best[0], rows[0]}; /* lanes without a row have -1 */
    for (int lane = 1; lane < LANES; lane++)
        if (best[lane] > choice.value || (best[lane] == choice.value && rows[lane] > choice.row))
            choice = (struct row_choice){best[lane], rows[lane]};
    return choice;
}

/* slopes += one * by_one + other * by_other; returns the row with the smallest slope among those that
 * may rise. Up to LANES - 1 slopes beyond the last one also change, and lines are read that far. */
TARGET static struct row_choice NAMED(descend)(double *slopes, const float *one, double by_one,
                                               const float *other, double by_other,
                                               const int64_t *rises, size_t count)
{
    const WORDS limit = (WORDS){0} + (int64_t)count;
    DOUBLES best = (DOUBLES){0} - INFINITY;
    WORDS rows = (WORDS){0} - 1, at;
    for (int lane = 0; lane < LANES; lane++)
        at[lane] = lane;
    for (size_t i = 0; i < count; i += LANES) {
        LOADED(DOUBLES, slope, slopes + i);
        LOADED(FLOATS, of_one, one + i);
        LOADED(FLOATS, of_other, other + i);
        LOADED(WORDS, marks, rises + i);
        slope += __builtin_convertvector(of_one, DOUBLES) * by_one +
                 __builtin_convertvector(of_other, DOUBLES) * by_other;
        memcpy(slopes + i, &slope, sizeof slope);
        WORDS better = marks & (WORDS)(at < limit) & (WORDS)(-slope >= best);
        best = CHOSEN(better, -slope, best);
        rows = (better & at) | (~better & rows);
        at += LANES;
    }
    return NAMED(best_lane)(best, rows);
}

/* Returns the row, among those that may fall, that improves the objective most when paired with the
 * rising row, whose kernel values and diagonal are given. Also sets `steepest` to the largest slope
 * among the rows that may fall. */

TARGET static struct row_choice NAMED(partner)(const double *slopes, const float *values,
                                               const double *diagonal, double own_diagonal,
                                               double rise, const int64_t *falls, size_t count,
                                               double *steepest)
{
    const WORDS limit = (WORDS){0} + (int64_t)count;
    const DOUBLES tiny = (DOUBLES){0} + TINY_CURVATURE;
    DOUBLES best = (DOUBLES){0} - INFINITY, most = best;
    WORDS rows = (WORDS){0} - 1, at;
    for (int lane = 0; lane < LANES; lane++)
        at[lane] = lane;
    for (size_t i = 0; i < count; i += LANES) {
        LOADED(DOUBLES, slope, slopes + i);
        LOADED(DOUBLES, square, diagonal + i);
        LOADED(FLOATS, value, values + i);
        LOADED(WORDS, marks, falls + i);
        WORDS allowed = marks & (WORDS)(at < limit);
        most = CHOSEN(allowed & (WORDS)(slope >= most), slope, most);
        DOUBLES drop = slope + rise, drops = drop * drop;
        DOUBLES curve = (square + own_diagonal) - 2.0 * __builtin_convertvector(value, DOUBLES);
        curve = CHOSEN((WORDS)(curve > 0.0), curve, tiny);
        allowed &= (WORDS)(drop > 0.0);
        DOUBLES gain = drops / curve;
        WORDS better = allowed & (WORDS)(gain >= best);
        best = CHOSEN(better, gain, best);
        rows = (better & at) | (~better & rows);
        at += LANES;
    }
    *steepest = NAMED(best_lane)(most, rows).value;
    return NAMED(best_lane)(best, rows);
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
#undef CHOSEN
#undef LOADED
#undef LANES
#undef TARGET
#undef NAMED
