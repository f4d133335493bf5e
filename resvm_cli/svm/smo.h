/* Train class-weighted C-SVMs on bags with known kernel values, by sequential minimal optimization.
 *
 * Pairs of rows are chosen using second-order information, and the problem is shrunk, as in LIBSVM
 * (Fan, Chen and Lin, Working set selection using second order information, JMLR 6, 2005; svm.cpp).
 * The same operations are applied to every number in the same order, so coefficients and rho are
 * bit-for-bit identical. Only the memory layout differs: LIBSVM looks up each value by another row's
 * serial number and stores it with a sign; here, a step reads lines of a bag's matrix with vector
 * instructions.
 *
 * slope = label * gradient. Lines contain kernel values without signs, in single precision as in
 * LIBSVM's cache. Only the step itself therefore needs signs, and applying them causes no rounding. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TINY_CURVATURE 1e-12 /* svm.cpp, TAU */
#define MAX_LANES 8
#define MIN_STEP_LIMIT 10000000
#define SHRINK_AFTER 1000

struct row_choice {
    double value;
    int64_t row; /* -1: none */
};

#define LANES 2
#define TARGET
#define NAMED(name) name##_by_2
#include "smo_lanes.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define LANES 4
#define TARGET __attribute__((target("avx2")))
#define NAMED(name) name##_by_4
#include "smo_lanes.h"

#define LANES 8
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq")))
#define NAMED(name) name##_by_8
#include "smo_lanes.h"
#endif

struct passes {
    struct row_choice (*descend)(double *, const float *, double, const float *, double,
                                 const int64_t *, size_t);
    struct row_choice (*partner)(const double *, const float *, const double *, double, double,
                                 const int64_t *, size_t, double *);
    void (*add_line)(double *, const float *, double, size_t);
};

/* The passes for each vector width, widest first; none if the processor does not support it. */
static struct passes passes_by_width(int width)
{
    struct passes none = {NULL, NULL, NULL};
#if defined(__x86_64__) && defined(__GNUC__)
    if (width == 0 && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return (struct passes){descend_by_8, partner_by_8, add_line_by_8};
    if (width == 1 && __builtin_cpu_supports("avx2"))
        return (struct passes){descend_by_4, partner_by_4, add_line_by_4};
#endif
    return width == 2 ? (struct passes){descend_by_2, partner_by_2, add_line_by_2} : none;
}

static inline struct passes widest_passes(void)
{
    int width = 0;
    while (!passes_by_width(width).descend)
        width++;
    return passes_by_width(width);
}

/* The rows of a bag, P first and known negatives last, numbered among the rows whose kernel values are
 * given. Lines of the bag's matrix are filled on first use and shared by all problems on the bag. */
struct bag {
    const double *values;
    size_t height;
    const int64_t *numbers;
    size_t count, n_positive, n_negative;
    float *lines;
    int8_t *is_filled; /* by row */
};

static const float *bag_line(struct bag *bag, size_t row)
{
    float *line = bag->lines + row * bag->count;
    if (!bag->is_filled[row]) {
        const double *from = bag->values + (size_t)bag->numbers[row] * bag->height;
        for (size_t i = 0; i < bag->count; i++)
            line[i] = (float)from[bag->numbers[i]];
        bag->is_filled[row] = 1;
    }
    return line;
}

/* The state of one problem. At first, places are rows of the bag. Shrinking swaps places so that the
 * active ones come first; from then on, the problem has its own lines. */
struct smo {
    struct passes passes;
    struct bag bag;
    size_t count, n_active, n_exchanges;
    double penalties[3]; /* for P, U and known negatives */
    double tolerance;
    int exchanged, unshrunk;
    double *slopes, *bounded; /* bounded: the part of slopes due to rows at their upper bound */
    double *alphas, *diagonal, *limits; /* limits: the upper bounds of alphas, the rows' penalties */
    int32_t *rows;
    int64_t *rises, *falls; /* masks, -1 or 0: whether label * alpha may increase or decrease */
    int8_t *signs;
    float *own_lines; /* by row of the bag */
    size_t *lengths;  /* how much of each row's own line is filled */
    size_t *exchanges;
};

static int is_free(const struct smo *smo, size_t place)
{
    return smo->rises[place] && smo->falls[place];
}

static int is_at_upper_bound(const struct smo *smo, size_t place)
{
    return smo->signs[place] > 0 ? !smo->rises[place] : !smo->falls[place];
}

static void mark_bounds(struct smo *smo, size_t place)
{
    int upper = smo->alphas[place] >= smo->limits[place];
    int lower = !upper && smo->alphas[place] <= 0.0;
    int positive = smo->signs[place] > 0;
    smo->rises[place] = (positive ? upper : lower) ? 0 : -1;
    smo->falls[place] = (positive ? lower : upper) ? 0 : -1;
}

/* Returns the first `length` values of a place's line. */
static const float *line_of(struct smo *smo, size_t place, size_t length)
{
    if (!smo->exchanged)
        return bag_line(&smo->bag, place);
    const size_t row = (size_t)smo->rows[place];
    float *line = smo->own_lines + row * smo->count;
    if (smo->lengths[row] < length) {
        const float *whole = bag_line(&smo->bag, row);
        for (size_t i = smo->lengths[row]; i < length; i++)
            line[i] = whole[smo->rows[i]];
        smo->lengths[row] = length;
    }
    return line;
}

static struct row_choice rising_row(const struct smo *smo)
{
    struct row_choice choice = {-INFINITY, -1};
    for (size_t i = 0; i < smo->n_active; i++)
        if (smo->rises[i] && -smo->slopes[i] >= choice.value)
            choice = (struct row_choice){-smo->slopes[i], (int64_t)i};
    return choice;
}

/* Returns the partner of the rising row; none if their slopes agree within the tolerance. */
static struct row_choice falling_row(struct smo *smo, struct row_choice rising)
{
    struct row_choice none = {0.0, -1}, choice;
    double steepest;
    if (rising.row < 0)
        return none;
    size_t place = (size_t)rising.row;
    choice = smo->passes.partner(smo->slopes, line_of(smo, place, smo->n_active), smo->diagonal,
                                 smo->diagonal[place], rising.value, smo->falls, smo->n_active,
                                 &steepest);
    return rising.value + steepest < smo->tolerance ? none : choice;
}

/* Recomputes the slopes of shrunk places and makes all places active. */
static void reconstruct(struct smo *smo)
{
    size_t count = smo->count, active = smo->n_active, n_free = 0;
    if (active == count)
        return;
    for (size_t i = active; i < count; i++)
        smo->slopes[i] = smo->bounded[i] - smo->signs[i];
    for (size_t i = 0; i < active; i++)
        n_free += is_free(smo, i);
    if (n_free * count > 2 * active * (count - active)) {
        for (size_t i = active; i < count; i++) {
            const float *line = line_of(smo, i, active);
            for (size_t j = 0; j < active; j++)
                if (is_free(smo, j))
                    smo->slopes[i] += smo->signs[j] * smo->alphas[j] * line[j];
        }
    } else {
        for (size_t i = 0; i < active; i++)
            if (is_free(smo, i)) {
                const float *line = line_of(smo, i, count);
                smo->passes.add_line(smo->slopes + active, line + active,
                                     smo->signs[i] * smo->alphas[i], count - active);
            }
    }
    smo->n_active = count;
}

#define EXCHANGE(type, one, other) \
    do {                           \
        type kept = one;           \
        one = other;               \
        other = kept;              \
    } while (0)

static void exchange(struct smo *smo, size_t one, size_t other)
{
    EXCHANGE(double, smo->slopes[one], smo->slopes[other]);
    EXCHANGE(double, smo->bounded[one], smo->bounded[other]);
    EXCHANGE(double, smo->alphas[one], smo->alphas[other]);
    EXCHANGE(double, smo->diagonal[one], smo->diagonal[other]);
    EXCHANGE(int32_t, smo->rows[one], smo->rows[other]);
    EXCHANGE(int8_t, smo->signs[one], smo->signs[other]);
    EXCHANGE(double, smo->limits[one], smo->limits[other]);
    EXCHANGE(int64_t, smo->rises[one], smo->rises[other]);
    EXCHANGE(int64_t, smo->falls[one], smo->falls[other]);
    smo->exchanges[2 * smo->n_exchanges] = one;
    smo->exchanges[2 * smo->n_exchanges + 1] = other;
    smo->n_exchanges++;
}

/* Applies the recorded exchanges to every line. */
static void exchange_in_lines(struct smo *smo)
{
    for (size_t row = 0; row < smo->count; row++) {
        size_t length = smo->lengths[row];
        float *line = smo->own_lines + row * smo->count;
        for (size_t i = 0; i < smo->n_exchanges && length; i++) {
            size_t one = smo->exchanges[2 * i], other = smo->exchanges[2 * i + 1];
            if (other < length)
                EXCHANGE(float, line[one], line[other]);
            else if (one < length)
                length = one; /* the rest will be filled again */
        }
        smo->lengths[row] = length;
    }
    smo->exchanged |= smo->n_exchanges > 0;
    smo->n_exchanges = 0;
}

static int is_shrunk(const struct smo *smo, size_t place, double rise, double fall)
{
    if (!smo->rises[place])
        return -smo->slopes[place] > rise;
    return !smo->falls[place] && smo->slopes[place] > fall;
}

/* Sets aside rows that are at a bound and unlikely to leave it. */
static void shrink(struct smo *smo)
{
    double rise = rising_row(smo).value, fall = -INFINITY;
    for (size_t i = 0; i < smo->n_active; i++)
        if (smo->falls[i] && smo->slopes[i] >= fall)
            fall = smo->slopes[i];
    if (!smo->unshrunk && rise + fall <= smo->tolerance * 10) {
        smo->unshrunk = 1;
        reconstruct(smo);
    }
    for (size_t i = 0; i < smo->n_active; i++) {
        if (!is_shrunk(smo, i, rise, fall))
            continue;
        smo->n_active--;
        while (smo->n_active > i && is_shrunk(smo, smo->n_active, rise, fall))
            smo->n_active--;
        if (smo->n_active > i)
            exchange(smo, i, smo->n_active);
    }
    exchange_in_lines(smo);
}

/* Moves two alphas back within their bounds, preserving their sum or their difference. */
static void keep_sum(double *one, double *other, double sum, double limit, double other_limit)
{
    if (sum > limit ? *one > limit : *other < 0.0) {
        *one = sum > limit ? limit : sum;
        *other = sum > limit ? sum - limit : 0.0;
    }
    if (sum > other_limit ? *other > other_limit : *one < 0.0) {
        *other = sum > other_limit ? other_limit : sum;
        *one = sum > other_limit ? sum - other_limit : 0.0;
    }
}

static void keep_difference(double *one, double *other, double difference, double limit,
                            double other_limit)
{
    if (difference > 0.0 ? *other < 0.0 : *one < 0.0) {
        *one = difference > 0.0 ? difference : 0.0;
        *other = difference > 0.0 ? 0.0 : -difference;
    }
    int one_first = difference > limit - other_limit;
    if (one_first ? *one > limit : *other > other_limit) {
        *one = one_first ? limit : other_limit + difference;
        *other = one_first ? limit - difference : other_limit;
    }
}

static void note_bound(struct smo *smo, size_t place, int was_upper)
{
    mark_bounds(smo, place);
    if (was_upper != is_at_upper_bound(smo, place)) {
        double by = smo->signs[place] * smo->limits[place];
        smo->passes.add_line(smo->bounded, line_of(smo, place, smo->count),
                             was_upper ? -by : by, smo->count);
    }
}

/* Optimizes one pair; returns the next rising row. */
static struct row_choice step(struct smo *smo, size_t one, size_t other)
{
    const float *line = line_of(smo, one, smo->n_active);
    const float *other_line = line_of(smo, other, smo->n_active);
    double sign = smo->signs[one], other_sign = smo->signs[other];
    double *alpha = smo->alphas + one, *other_alpha = smo->alphas + other;
    double before = *alpha, other_before = *other_alpha;
    double slope = sign * smo->slopes[one], other_slope = other_sign * smo->slopes[other];
    /* doubled in single precision, which may overflow, as in svm.cpp */
    double curve = (smo->diagonal[one] + smo->diagonal[other]) - 2.0f * line[other];
    if (curve <= 0.0)
        curve = TINY_CURVATURE;
    if (sign != other_sign) {
        double by = (-slope - other_slope) / curve;
        *alpha += by;
        *other_alpha += by;
        keep_difference(alpha, other_alpha, before - other_before, smo->limits[one],
                        smo->limits[other]);
    } else {
        double by = (slope - other_slope) / curve;
        *alpha -= by;
        *other_alpha += by;
        keep_sum(alpha, other_alpha, before + other_before, smo->limits[one],
                 smo->limits[other]);
    }
    int upper = is_at_upper_bound(smo, one), other_upper = is_at_upper_bound(smo, other);
    note_bound(smo, one, upper);
    note_bound(smo, other, other_upper);
    return smo->passes.descend(smo->slopes, line, sign * (*alpha - before), other_line,
                               other_sign * (*other_alpha - other_before), smo->rises,
                               smo->n_active);
}

static double offset(const struct smo *smo)
{
    size_t n_free = 0;
    double upper = INFINITY, lower = -INFINITY, sum = 0.0;
    for (size_t i = 0; i < smo->count; i++) {
        double slope = smo->slopes[i];
        if (slope == 0.0) /* gradients are never negative zero */
            slope = smo->signs[i] * 0.0;
        if (is_free(smo, i)) {
            n_free++;
            sum += slope;
        } else if (smo->rises[i])
            upper = upper < slope ? upper : slope;
        else
            lower = lower > slope ? lower : slope;
    }
    return n_free ? sum / (double)n_free : (upper + lower) / 2;
}

/* Solves one problem on the bag; coefficients are label * alpha. Returns the number of steps. */
static int64_t solve_problem(struct smo *smo, double *coefficients, double *rho)
{
    size_t count = smo->count = smo->n_active = smo->bag.count;
    int64_t limit = MIN_STEP_LIMIT / 100 > (int64_t)count ? MIN_STEP_LIMIT : 100 * (int64_t)count;
    size_t pause = count < SHRINK_AFTER ? count : SHRINK_AFTER, until = pause + 1;
    int64_t n_steps = 0;
    smo->exchanged = smo->unshrunk = 0;
    smo->n_exchanges = 0;
    for (size_t i = 0; i < count; i++) {
        size_t number = (size_t)smo->bag.numbers[i];
        smo->signs[i] = i < smo->bag.n_positive ? 1 : -1;
        smo->limits[i] = smo->penalties[i < smo->bag.n_positive           ? 0
                                        : count - i > smo->bag.n_negative ? 1
                                                                          : 2];
        smo->slopes[i] = -smo->signs[i];
        smo->bounded[i] = smo->alphas[i] = 0.0;
        smo->diagonal[i] = smo->bag.values[number * smo->bag.height + number];
        smo->rows[i] = (int32_t)i;
        smo->lengths[i] = 0;
        mark_bounds(smo, i);
    }
    struct row_choice rising = rising_row(smo);
    while (n_steps < limit) {
        if (--until == 0) {
            until = pause;
            shrink(smo);
            rising = rising_row(smo);
        }
        struct row_choice falling = falling_row(smo, rising);
        if (falling.row < 0) {
            if (smo->n_active == count)
                break;
            reconstruct(smo);
            rising = rising_row(smo);
            falling = falling_row(smo, rising);
            if (falling.row < 0)
                break;
            until = 1;
        }
        n_steps++;
        rising = step(smo, (size_t)rising.row, (size_t)falling.row);
    }
    reconstruct(smo);
    *rho = offset(smo);
    for (size_t i = 0; i < count; i++)
        coefficients[smo->rows[i]] = smo->signs[i] * smo->alphas[i];
    return n_steps;
}

/* Several problems on each of several bags. Entries starts[b] to starts[b + 1] are bag b's rows. A
 * problem has four settings: the penalties for P, U and known negatives, and the tolerance. The index
 * of problem p on bag b is p * n_bags + b; its coefficients are the b-th part of line p. */
struct bags {
    const double *values;
    size_t height;
    const int64_t *numbers, *starts, *n_positive, *n_negative;
    size_t n_numbers, n_bags, n_problems;
    const double *settings;
    float *scratch; /* all lines of the largest bag, twice, and LINE_PADDING */
    size_t n_scratch;
};

#define LINE_PADDING MAX_LANES

/* Allocates a problem's arrays in one piece, which begins with its slopes. */
static int allocate(struct smo *smo, size_t length)
{
    const size_t n = length + MAX_LANES; /* vector instructions access memory beyond the last row */
    smo->slopes = calloc(n, 7 * sizeof(double) + 3 * sizeof(size_t) + sizeof(int32_t) + 2);
    if (!smo->slopes)
        return 0;
    smo->bounded = smo->slopes + n;
    smo->alphas = smo->bounded + n;
    smo->diagonal = smo->alphas + n;
    smo->limits = smo->diagonal + n;
    smo->rises = (int64_t *)(smo->limits + n);
    smo->falls = smo->rises + n;
    smo->lengths = (size_t *)(smo->falls + n);
    smo->exchanges = smo->lengths + n;
    smo->rows = (int32_t *)(smo->exchanges + 2 * n);
    smo->signs = (int8_t *)(smo->rows + n);
    smo->bag.is_filled = smo->signs + n;
    return 1;
}

static const char *solve_bags(const struct bags *bags, struct passes passes, double *coefficients,
                              double *rhos, int64_t *n_steps)
{
    size_t max_rows = 1;
    int64_t at = 0;
    for (size_t bag = 0; bag < bags->n_bags; bag++) {
        int64_t from = bags->starts[bag], to = bags->starts[bag + 1];
        if (from != at || to <= from || (uint64_t)to > bags->n_numbers || to - from > INT32_MAX / 2)
            return "starts does not fit: it must ascend from 0 to the numbers";
        if (bags->n_positive[bag] < 0 || bags->n_positive[bag] > to - from)
            return "n_positive does not fit: it exceeds the number of rows in a bag";
        if (bags->n_negative[bag] < 0 || bags->n_negative[bag] > to - from - bags->n_positive[bag])
            return "n_negative does not fit: it exceeds the number of other rows in a bag";
        if ((size_t)(to - from) > max_rows)
            max_rows = (size_t)(to - from);
        at = to;
    }
    if ((size_t)at != bags->n_numbers)
        return "starts does not fit: it must ascend from 0 to the numbers";
    for (size_t i = 0; i < bags->n_numbers; i++)
        if (bags->numbers[i] < 0 || (uint64_t)bags->numbers[i] >= bags->height)
            return "numbers does not fit height: values has no such line";
    if (bags->n_scratch < LINE_PADDING || (bags->n_scratch - LINE_PADDING) / max_rows / 2 < max_rows)
        return "scratch does not fit: it must have room for all lines of the largest bag, twice";
    struct smo smo = {.passes = passes};
    if (!allocate(&smo, max_rows))
        return "out of memory";
    smo.bag.lines = bags->scratch;
    smo.own_lines = bags->scratch + max_rows * max_rows;
    for (size_t bag = 0; bag < bags->n_bags; bag++) {
        size_t start = (size_t)bags->starts[bag];
        smo.bag.values = bags->values;
        smo.bag.height = bags->height;
        smo.bag.numbers = bags->numbers + start;
        smo.bag.count = (size_t)bags->starts[bag + 1] - start;
        smo.bag.n_positive = (size_t)bags->n_positive[bag];
        smo.bag.n_negative = (size_t)bags->n_negative[bag];
        memset(smo.bag.is_filled, 0, smo.bag.count);
        for (size_t problem = 0; problem < bags->n_problems; problem++) {
            size_t place = problem * bags->n_bags + bag;
            const double *settings = bags->settings + 4 * place;
            memcpy(smo.penalties, settings, sizeof smo.penalties);
            smo.tolerance = settings[3];
            n_steps[place] = solve_problem(&smo, coefficients + problem * bags->n_numbers + start,
                                           rhos + place);
        }
    }
    free(smo.slopes);
    return NULL;
}
