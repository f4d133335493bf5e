/* Class-weighted C-SVMs of bags whose kernel values are known, by sequential minimal optimisation.
 *
 * Pairs of rows are chosen by second-order information and rows are shrunk as LIBSVM does it (Fan,
 * Chen and Lin, Working set selection using second order information, JMLR 6, 2005; svm.cpp), with
 * the same operations on every number in the same order: coefficients and rho have the same bits.
 * What differs is where numbers lie. LIBSVM looks up each value through the serial number of another
 * row, with a sign; here a line of a bag's matrix is what a step reads, and vectors go over it.
 *
 * slope = label * gradient, and lines hold the bare kernel values in single precision, as LIBSVM's
 * cache does: signs are then needed nowhere but in the step itself, and moving them rounds nothing. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TINY_CURVATURE 1e-12 /* svm.cpp, TAU */
#define NEARLY_ONE (1.0 - 0x1p-40)
#define LEAST_PRODUCT 1e-290 /* less may have lost digits */
#define MOST_LANES 8
#define LEAST_LIMIT 10000000 /* of steps */
#define SHRINK_AFTER 1000

struct row_choice {
    double value;
    int64_t row; /* -1: none */
};

#define LANES 2
#define TARGET
#define LARGEST_DOUBLE(into, lanes) ((into) = (lanes)[0] > (lanes)[1] ? (lanes)[0] : (lanes)[1])
#define LARGEST_WORD LARGEST_DOUBLE
#define NAMED(name) name##_by_2
#include "smo_lanes.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define LANES 4
#define TARGET __attribute__((target("avx2")))
#define LARGEST_DOUBLE(into, lanes)                                                            \
    do {                                                                                       \
        __m256d all_ = (__m256d)(lanes);                                                       \
        __m128d half_ = _mm_max_pd(_mm256_castpd256_pd128(all_), _mm256_extractf128_pd(all_, 1)); \
        (into) = _mm_cvtsd_f64(_mm_max_sd(half_, _mm_unpackhi_pd(half_, half_)));              \
    } while (0)
#define LARGEST_WORD(into, lanes)                                                               \
    do {                                                                                        \
        int64_t low_ = (lanes)[0] > (lanes)[1] ? (lanes)[0] : (lanes)[1];                       \
        int64_t high_ = (lanes)[2] > (lanes)[3] ? (lanes)[2] : (lanes)[3];                      \
        (into) = low_ > high_ ? low_ : high_;                                                   \
    } while (0)
#define NAMED(name) name##_by_4
#include "smo_lanes.h"

#define LANES 8
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq")))
#define LARGEST_DOUBLE(into, lanes) ((into) = _mm512_reduce_max_pd((__m512d)(lanes)))
#define LARGEST_WORD(into, lanes) ((into) = _mm512_reduce_max_epi64((__m512i)(lanes)))
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

/* By width, the widest first; none where this processor lacks it. */
static struct passes passes_of(int width)
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
    while (!passes_of(width).descend)
        width++;
    return passes_of(width);
}

/* Lines of so many numbers by their owners, as many as there is room for: then one after the other
 * makes way. */
struct lines {
    float *room;
    size_t n_room, length, n_slots, next;
    int32_t *slots;  /* by owner, or -1 */
    int32_t *owners; /* by slot, or -1 */
};

static void clear_lines(struct lines *lines, size_t count)
{
    lines->length = count;
    lines->n_slots = lines->n_room / count < count ? lines->n_room / count : count;
    lines->next = 0;
    for (size_t i = 0; i < count; i++)
        lines->slots[i] = lines->owners[i] = -1;
}

/* The line of an owner; it is a new one where that had none. The line of the one kept stays. */
static float *claim_line(struct lines *lines, size_t owner, int64_t kept, int *is_new)
{
    *is_new = lines->slots[owner] < 0;
    if (*is_new) {
        if (kept >= 0 && lines->owners[lines->next] == kept)
            lines->next = (lines->next + 1) % lines->n_slots;
        if (lines->owners[lines->next] >= 0)
            lines->slots[lines->owners[lines->next]] = -1;
        lines->owners[lines->next] = (int32_t)owner;
        lines->slots[owner] = (int32_t)lines->next;
        lines->next = (lines->next + 1) % lines->n_slots;
    }
    return lines->room + (size_t)lines->slots[owner] * lines->length;
}

/* Rows of a bag, those of P first: their numbers among the rows whose kernel values are given. A line
 * of its own values is made when it is first asked for, and serves every problem on the bag. */
struct bag {
    const double *values;
    size_t height;
    const int64_t *numbers;
    size_t count, n_positive;
    struct lines lines;
};

static const float *bag_line(struct bag *bag, size_t row, int64_t kept)
{
    int is_new;
    float *line = claim_line(&bag->lines, row, kept, &is_new);
    if (is_new) {
        const double *from = bag->values + (size_t)bag->numbers[row] * bag->height;
        for (size_t i = 0; i < bag->count; i++)
            line[i] = (float)from[bag->numbers[i]];
    }
    return line;
}

/* A problem at work. Places begin as rows of the bag; shrinking exchanges them, so that those still
 * at work come first, and from then on lines of places are the problem's own. */
struct smo {
    struct passes passes;
    struct bag bag;
    size_t count, n_active, n_exchanges;
    double penalties[2]; /* of P, of U */
    double tolerance;
    int exchanged, unshrunk;
    double *slopes, *bounded; /* the part of slopes that is due to rows at their upper bound */
    double *alphas, *diagonal;
    int32_t *rows;
    int64_t *rises, *falls; /* marks, -1 or 0: may label * alpha grow, or lessen? */
    int8_t *signs;
    struct lines own_lines;
    size_t *lengths; /* of the own line of each place, as far as it is made */
    size_t *exchanges;
};

static double penalty(const struct smo *smo, size_t place)
{
    return smo->penalties[smo->signs[place] < 0];
}

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
    int upper = smo->alphas[place] >= penalty(smo, place);
    int lower = !upper && smo->alphas[place] <= 0.0;
    int positive = smo->signs[place] > 0;
    smo->rises[place] = (positive ? upper : lower) ? 0 : -1;
    smo->falls[place] = (positive ? lower : upper) ? 0 : -1;
}

/* The first values of a place's line; that of the place kept stays where it is. */
static const float *line_of(struct smo *smo, size_t place, size_t length, int64_t kept)
{
    if (!smo->exchanged)
        return bag_line(&smo->bag, place, kept);
    int is_new;
    float *line = claim_line(&smo->own_lines, place, kept, &is_new);
    size_t made = is_new ? 0 : smo->lengths[place];
    if (made < length) {
        const float *whole = bag_line(&smo->bag, (size_t)smo->rows[place], -1);
        for (size_t i = made; i < length; i++)
            line[i] = whole[smo->rows[i]];
        smo->lengths[place] = length;
    } else if (is_new)
        smo->lengths[place] = 0;
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

/* The partner of the row that rises; none where the two slopes are as near as was asked for. */
static struct row_choice falling_row(struct smo *smo, struct row_choice rising)
{
    struct row_choice none = {0.0, -1}, choice;
    double steepest;
    if (rising.row < 0)
        return none;
    size_t place = (size_t)rising.row;
    choice = smo->passes.partner(smo->slopes, line_of(smo, place, smo->n_active, -1), smo->diagonal,
                                 smo->diagonal[place], rising.value, smo->falls, smo->n_active,
                                 &steepest);
    return rising.value + steepest < smo->tolerance ? none : choice;
}

/* The slopes of places that were left aside. */
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
            const float *line = line_of(smo, i, active, -1);
            for (size_t j = 0; j < active; j++)
                if (is_free(smo, j))
                    smo->slopes[i] += smo->signs[j] * smo->alphas[j] * line[j];
        }
    } else {
        for (size_t i = 0; i < active; i++)
            if (is_free(smo, i)) {
                const float *line = line_of(smo, i, count, -1);
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
    EXCHANGE(int64_t, smo->rises[one], smo->rises[other]);
    EXCHANGE(int64_t, smo->falls[one], smo->falls[other]);
    EXCHANGE(size_t, smo->lengths[one], smo->lengths[other]);
    struct lines *lines = &smo->own_lines;
    EXCHANGE(int32_t, lines->slots[one], lines->slots[other]);
    if (lines->slots[one] >= 0)
        lines->owners[lines->slots[one]] = (int32_t)one;
    if (lines->slots[other] >= 0)
        lines->owners[lines->slots[other]] = (int32_t)other;
    smo->exchanges[2 * smo->n_exchanges] = one;
    smo->exchanges[2 * smo->n_exchanges + 1] = other;
    smo->n_exchanges++;
}

/* Make the same exchanges within every line, one line after the other. */
static void exchange_in_lines(struct smo *smo)
{
    const struct lines *lines = &smo->own_lines;
    for (size_t slot = 0; slot < lines->n_slots && smo->n_exchanges; slot++) {
        if (lines->owners[slot] < 0)
            continue;
        size_t place = (size_t)lines->owners[slot], length = smo->lengths[place];
        float *line = lines->room + slot * lines->length;
        for (size_t i = 0; i < smo->n_exchanges && length; i++) {
            size_t one = smo->exchanges[2 * i], other = smo->exchanges[2 * i + 1];
            if (other < length)
                EXCHANGE(float, line[one], line[other]);
            else if (one < length)
                length = one; /* the rest is made anew */
        }
        smo->lengths[place] = length;
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

/* Leave rows aside that are at a bound and far from leaving it. */
static void shrink(struct smo *smo)
{
    double rise = -INFINITY, fall = -INFINITY;
    for (size_t i = 0; i < smo->n_active; i++) {
        if (smo->rises[i] && -smo->slopes[i] >= rise)
            rise = -smo->slopes[i];
        if (smo->falls[i] && smo->slopes[i] >= fall)
            fall = smo->slopes[i];
    }
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

/* Two alphas whose sum is kept, or their difference, moved back to where both are allowed. */
static void keep_sum(double *one, double *other, double sum, double most, double other_most)
{
    if (sum > most ? *one > most : *other < 0.0) {
        *one = sum > most ? most : sum;
        *other = sum > most ? sum - most : 0.0;
    }
    if (sum > other_most ? *other > other_most : *one < 0.0) {
        *other = sum > other_most ? other_most : sum;
        *one = sum > other_most ? sum - other_most : 0.0;
    }
}

static void keep_difference(double *one, double *other, double difference, double most,
                            double other_most)
{
    if (difference > 0.0 ? *other < 0.0 : *one < 0.0) {
        *one = difference > 0.0 ? difference : 0.0;
        *other = difference > 0.0 ? 0.0 : -difference;
    }
    int one_first = difference > most - other_most;
    if (one_first ? *one > most : *other > other_most) {
        *one = one_first ? most : other_most + difference;
        *other = one_first ? most - difference : other_most;
    }
}

static void note_bound(struct smo *smo, size_t place, int was_upper)
{
    mark_bounds(smo, place);
    if (was_upper != is_at_upper_bound(smo, place)) {
        double by = smo->signs[place] * penalty(smo, place);
        smo->passes.add_line(smo->bounded, line_of(smo, place, smo->count, -1),
                             was_upper ? -by : by, smo->count);
    }
}

/* Move along one pair; returns the row that rises next. */
static struct row_choice step(struct smo *smo, size_t one, size_t other)
{
    const float *line = line_of(smo, one, smo->n_active, -1);
    const float *other_line = line_of(smo, other, smo->n_active, (int64_t)one);
    double sign = smo->signs[one], other_sign = smo->signs[other];
    double *alpha = smo->alphas + one, *other_alpha = smo->alphas + other;
    double before = *alpha, other_before = *other_alpha;
    double slope = sign * smo->slopes[one], other_slope = other_sign * smo->slopes[other];
    /* twice the value in single precision, as svm.cpp has it: it may overflow */
    double curve = (smo->diagonal[one] + smo->diagonal[other]) - 2.0f * line[other];
    if (curve <= 0.0)
        curve = TINY_CURVATURE;
    if (sign != other_sign) {
        double by = (-slope - other_slope) / curve;
        *alpha += by;
        *other_alpha += by;
        keep_difference(alpha, other_alpha, before - other_before, penalty(smo, one),
                        penalty(smo, other));
    } else {
        double by = (slope - other_slope) / curve;
        *alpha -= by;
        *other_alpha += by;
        keep_sum(alpha, other_alpha, before + other_before, penalty(smo, one),
                 penalty(smo, other));
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
        if (slope == 0.0) /* gradients never are minus zero */
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

/* Solve one problem on the bag; coefficients are label * alpha. Returns the steps it took. */
static int64_t solve_problem(struct smo *smo, double *coefficients, double *rho)
{
    size_t count = smo->count = smo->n_active = smo->bag.count;
    int64_t limit = LEAST_LIMIT / 100 > (int64_t)count ? LEAST_LIMIT : 100 * (int64_t)count;
    size_t pause = count < SHRINK_AFTER ? count : SHRINK_AFTER, until = pause + 1;
    int64_t n_steps = 0;
    smo->exchanged = smo->unshrunk = 0;
    smo->n_exchanges = 0;
    clear_lines(&smo->own_lines, count);
    for (size_t i = 0; i < count; i++) {
        size_t number = (size_t)smo->bag.numbers[i];
        smo->signs[i] = i < smo->bag.n_positive ? 1 : -1;
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

/* Several problems on each of several bags, whose numbers lie between starts[b] and starts[b + 1].
 * A problem has three settings: the penalties of P and of U, and the tolerance. Problem p of bag b
 * is p * n_bags + b; its coefficients are the b-th part of line p. */
struct bags {
    const double *values;
    size_t height;
    const int64_t *numbers, *starts, *n_positive;
    size_t n_numbers, n_bags, n_problems;
    const double *settings;
    float *room; /* for lines of bags and for lines of problems, and LINE_END */
    size_t n_room;
};

#define LINE_END MOST_LANES
#define LEAST_LINES 8 /* the two of a step, and one more, of either kind */

static void release(struct smo *smo)
{
    void *rooms[] = {smo->slopes,
                     smo->bounded,
                     smo->alphas,
                     smo->diagonal,
                     smo->rows,
                     smo->signs,
                     smo->rises,
                     smo->falls,
                     smo->lengths,
                     smo->exchanges,
                     smo->own_lines.slots,
                     smo->own_lines.owners,
                     smo->bag.lines.slots,
                     smo->bag.lines.owners};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        free(rooms[i]);
}

/* Lanes reach behind the last row. */
static int make_room(struct smo *smo, size_t most)
{
    most += MOST_LANES;
    smo->slopes = calloc(most, sizeof *smo->slopes);
    smo->bounded = malloc(most * sizeof *smo->bounded);
    smo->alphas = malloc(most * sizeof *smo->alphas);
    smo->diagonal = calloc(most, sizeof *smo->diagonal);
    smo->rows = malloc(most * sizeof *smo->rows);
    smo->signs = malloc(most);
    smo->rises = calloc(most, sizeof(int64_t));
    smo->falls = calloc(most, sizeof(int64_t));
    smo->lengths = malloc(most * sizeof *smo->lengths);
    smo->exchanges = malloc(most * 2 * sizeof *smo->exchanges);
    smo->own_lines.slots = malloc(most * sizeof(int32_t));
    smo->own_lines.owners = malloc(most * sizeof(int32_t));
    smo->bag.lines.slots = malloc(most * sizeof(int32_t));
    smo->bag.lines.owners = malloc(most * sizeof(int32_t));
    return smo->slopes && smo->bounded && smo->alphas && smo->diagonal && smo->rows && smo->signs &&
           smo->rises && smo->falls && smo->lengths && smo->exchanges && smo->own_lines.slots &&
           smo->own_lines.owners && smo->bag.lines.slots && smo->bag.lines.owners;
}

static const char no_room[] = "out of memory";

static const char *solve_bags(const struct bags *bags, struct passes passes, double *coefficients,
                              double *rhos, int64_t *n_steps)
{
    size_t most = 1;
    int64_t at = 0;
    for (size_t bag = 0; bag < bags->n_bags; bag++) {
        int64_t from = bags->starts[bag], to = bags->starts[bag + 1];
        if (from != at || to <= from || (uint64_t)to > bags->n_numbers || to - from > INT32_MAX / 2)
            return "starts does not fit: it must ascend from 0 to the numbers";
        if (bags->n_positive[bag] < 0 || bags->n_positive[bag] > to - from)
            return "n_positive does not fit: a bag has fewer rows than one";
        if ((size_t)(to - from) > most)
            most = (size_t)(to - from);
        at = to;
    }
    if ((size_t)at != bags->n_numbers)
        return "starts does not fit: it must ascend from 0 to the numbers";
    for (size_t i = 0; i < bags->n_numbers; i++)
        if (bags->numbers[i] < 0 || (uint64_t)bags->numbers[i] >= bags->height)
            return "numbers does not fit height: values has no line of one";
    if (bags->n_room < LINE_END || (bags->n_room - LINE_END) / LEAST_LINES < most)
        return "room does not fit: it must hold LEAST_LINES of the largest bag";
    size_t half = (bags->n_room - LINE_END) / 2;
    struct smo smo = {.passes = passes};
    smo.bag.lines.room = bags->room;
    smo.own_lines.room = bags->room + half;
    smo.bag.lines.n_room = smo.own_lines.n_room = half;
    if (!make_room(&smo, most)) {
        release(&smo);
        return no_room;
    }
    for (size_t bag = 0; bag < bags->n_bags; bag++) {
        size_t start = (size_t)bags->starts[bag];
        smo.bag.values = bags->values;
        smo.bag.height = bags->height;
        smo.bag.numbers = bags->numbers + start;
        smo.bag.count = (size_t)bags->starts[bag + 1] - start;
        smo.bag.n_positive = (size_t)bags->n_positive[bag];
        clear_lines(&smo.bag.lines, smo.bag.count);
        for (size_t problem = 0; problem < bags->n_problems; problem++) {
            size_t place = problem * bags->n_bags + bag;
            const double *settings = bags->settings + 3 * place;
            smo.penalties[0] = settings[0];
            smo.penalties[1] = settings[1];
            smo.tolerance = settings[2];
            n_steps[place] = solve_problem(&smo, coefficients + problem * bags->n_numbers + start,
                                           rhos + place);
        }
    }
    release(&smo);
    return NULL;
}
