
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mask.h"
#include "kernels/sample/noise.h"
#include "kernels/sample/sample.h"


#define DSA_RACE_IDS        64      /* whose noise is computed at a time */
#define DSA_RADIX_BITS      8
#define DSA_RADIX           (1U << DSA_RADIX_BITS)


/* The ids that a random sample was drawn from, by their weights. */

typedef struct {
    double      total;              /* of kept ids; 0: nothing was drawn,
                                       because one id has all probability */
    float       least;              /* ids with less are cut off: their
                                       weights become 0 */
} dsa_nucleus_t;


static void dsa_sample_token(dsa_sample_t *out, dsa_nucleus_t *nucleus,
    const dsa_sampling_t *s, const float *logits, uint32_t allowed,
    const uint32_t *mask, uint64_t position, float *scratch);
static void dsa_sample_logits(float *scratch, const dsa_sampling_t *s,
    const dsa_biases_t *biases, const float *logits, uint32_t allowed,
    const uint32_t *mask, const uint32_t *history, uint32_t n_history);
static uint32_t dsa_sample_possible(uint32_t *kept, const float *x,
    uint32_t n);
static uint32_t dsa_sample_cut(uint32_t *kept, const float *x, uint32_t n);
static void dsa_sample_penalize(float *x, const dsa_sampling_t *s,
    const float *logits, uint32_t allowed, const uint32_t *history,
    uint32_t n_history);
static void dsa_sample_bias(float *x, const dsa_biases_t *biases,
    uint32_t allowed);
static uint32_t dsa_sample_permitted(const uint32_t *mask, uint32_t allowed,
    uint32_t token);
static uint32_t dsa_sample_max(const float *x, uint32_t n);
static uint32_t dsa_sample_random(float *x, uint32_t n,
    const dsa_sampling_t *s, uint64_t position, dsa_nucleus_t *nucleus);
static uint32_t dsa_sample_race(const float *x, uint32_t n, uint64_t seed,
    uint64_t position);
static void dsa_sample_words(uint32_t *word, uint64_t seed, uint64_t position,
    uint32_t block);
static float dsa_sample_keep(float *x, uint32_t n, double want);
static float dsa_sample_nucleus(const float *p, uint32_t n, double want,
    double *above);
static void dsa_sample_logprobs(dsa_sample_t *out, const dsa_sampling_t *s,
    const float *logits, uint32_t n);


void
dsa_sample(dsa_sample_t *out, const dsa_sampling_t *s,
    const dsa_biases_t *biases, const float *logits, uint32_t vocab,
    uint32_t allowed, const uint32_t *mask, const uint32_t *history,
    uint32_t n_history, uint64_t position, float *scratch)
{
    dsa_nucleus_t  nucleus;

    if (allowed > vocab) {
        allowed = vocab;
    }

    dsa_sample_logits(scratch, s, biases, logits, allowed, mask, history,
                      n_history);
    dsa_sample_token(out, &nucleus, s, logits, allowed, mask, position,
                     scratch);
}


void
dsa_sample_draw(dsa_sample_t *out, dsa_draw_t *draw, uint32_t *kept,
    const dsa_sampling_t *s, const dsa_biases_t *biases, const float *logits,
    uint32_t vocab, uint32_t allowed, const uint32_t *mask,
    const uint32_t *history, uint32_t n_history, uint64_t position,
    float *scratch)
{
    dsa_nucleus_t  nucleus;

    if (allowed > vocab) {
        allowed = vocab;
    }

    dsa_sample_logits(scratch, s, biases, logits, allowed, mask, history,
                      n_history);

    draw->n_kept = 0;

    if (kept != NULL) {
        memset(kept, 0, dsa_mask_words(vocab) * sizeof(uint32_t));
        draw->n_kept = dsa_sample_possible(kept, scratch, allowed);
    }

    dsa_sample_token(out, &nucleus, s, logits, allowed, mask, position,
                     scratch);

    if (nucleus.total == 0) {
        draw->logprob = 0;

        if (kept != NULL) {
            memset(kept, 0, dsa_mask_words(vocab) * sizeof(uint32_t));
            kept[out->token / 32] |= 1U << out->token % 32;
            draw->n_kept = 1;
        }

    } else {
        draw->logprob = (float) log((double) scratch[out->token]
                                    / nucleus.total);

        if (kept != NULL && nucleus.least > 0) {
            draw->n_kept = dsa_sample_cut(kept, scratch, allowed);
        }
    }

    if (draw->n_kept == allowed) {
        draw->n_kept = DSA_KEPT_ALL;
    }
}


/* Sets scratch to the logits from which a token is sampled. */

static void
dsa_sample_logits(float *scratch, const dsa_sampling_t *s,
    const dsa_biases_t *biases, const float *logits, uint32_t allowed,
    const uint32_t *mask, const uint32_t *history, uint32_t n_history)
{
    uint32_t  i;

    for (i = 0; i < allowed; i++) {
        scratch[i] = isnan(logits[i]) ? -INFINITY : logits[i];
    }

    if (mask != NULL) {
        for (i = 0; i < allowed; i++) {
            if (!dsa_mask_has(mask, i)) {
                scratch[i] = -INFINITY;
            }
        }
    }

    dsa_sample_penalize(scratch, s, logits, allowed, history, n_history);

    if (biases != NULL) {
        dsa_sample_bias(scratch, biases, allowed);
    }
}


/* Samples from scratch, which afterwards has weights if nucleus has a total. */

static void
dsa_sample_token(dsa_sample_t *out, dsa_nucleus_t *nucleus,
    const dsa_sampling_t *s, const float *logits, uint32_t allowed,
    const uint32_t *mask, uint64_t position, float *scratch)
{
    memset(nucleus, 0, sizeof(dsa_nucleus_t));

    if (s->temperature > 0) {
        out->token = dsa_sample_random(scratch, allowed, s, position,
                                       nucleus);

    } else {
        out->token = dsa_sample_max(scratch, allowed);
    }

    if (mask != NULL) {
        out->token = dsa_sample_permitted(mask, allowed, out->token);
    }

    out->logprob = 0;
    out->n_top = 0;

    if (s->logprobs) {
        dsa_sample_logprobs(out, s, logits, allowed);
    }
}


/* Sets the bits of the ids that have a probability, and counts them. */

static uint32_t
dsa_sample_possible(uint32_t *kept, const float *x, uint32_t n)
{
    uint32_t  i, count, bit;

    count = 0;

    for (i = 0; i < n; i++) {
        bit = x[i] > -INFINITY;
        kept[i / 32] |= bit << i % 32;
        count += bit;
    }

    return count;
}


/* Clears the bits of the ids that top_p cut off; x has weights. */

static uint32_t
dsa_sample_cut(uint32_t *kept, const float *x, uint32_t n)
{
    uint32_t  i, count;

    count = 0;

    for (i = 0; i < n; i++) {
        if (x[i] == 0) {
            kept[i / 32] &= ~(1U << i % 32);
            continue;
        }

        count++;
    }

    return count;
}


/*
 * Computes logit - presence * (count > 0) - frequency * count.  The presence
 * penalty is subtracted once per id: if a logit differs from the model's, it
 * was penalized already, or the id is masked.
 */

static void
dsa_sample_penalize(float *x, const dsa_sampling_t *s, const float *logits,
    uint32_t allowed, const uint32_t *history, uint32_t n_history)
{
    uint32_t  i, id;

    if (s->presence_penalty != 0) {
        for (i = 0; i < n_history; i++) {
            id = history[i];

            if (id < allowed && x[id] == logits[id]) {
                x[id] -= s->presence_penalty;
            }
        }
    }

    if (s->frequency_penalty != 0) {
        for (i = 0; i < n_history; i++) {
            id = history[i];

            if (id < allowed) {
                x[id] -= s->frequency_penalty;
            }
        }
    }
}


static void
dsa_sample_bias(float *x, const dsa_biases_t *biases, uint32_t allowed)
{
    uint32_t           i, n_forced;
    dsa_bias_t         forced[DSA_SAMPLE_MAX_BIAS];
    const dsa_bias_t  *b;

    assert(biases->n <= DSA_SAMPLE_MAX_BIAS);

    n_forced = 0;

    for (i = 0; i < biases->n; i++) {
        b = &biases->bias[i];

        if (b->id >= allowed) {
            continue;
        }

        if (b->bias <= -DSA_SAMPLE_FORCE) {
            x[b->id] = -INFINITY;
            continue;
        }

        x[b->id] += b->bias;

        if (b->bias >= DSA_SAMPLE_FORCE && x[b->id] > -INFINITY) {
            forced[n_forced].id = b->id;
            forced[n_forced].bias = x[b->id];
            n_forced++;
        }
    }

    if (n_forced == 0) {
        return;
    }

    for (i = 0; i < allowed; i++) {
        x[i] = -INFINITY;
    }

    for (i = 0; i < n_forced; i++) {
        x[forced[i].id] = forced[i].bias;
    }
}


/*
 * Replaces a token that is not permitted by the lowest permitted id.  If the
 * logits of all permitted ids are minus infinity, all ids have equal weights,
 * and an excluded one may have been chosen.
 */

static uint32_t
dsa_sample_permitted(const uint32_t *mask, uint32_t allowed, uint32_t token)
{
    uint32_t  id;

    if (dsa_mask_has(mask, token)) {
        return token;
    }

    for (id = 0; id + 1 < allowed && !dsa_mask_has(mask, id); id++) {
        /* void */
    }

    return id;
}


static uint32_t
dsa_sample_max(const float *x, uint32_t n)
{
    uint32_t  i, best;

    best = 0;

    for (i = 1; i < n; i++) {
        if (x[i] > x[best]) {
            best = i;
        }
    }

    return best;
}


/*
 * Samples an id as noise.h describes it.  x [n] has the logits, and is
 * overwritten by weights relative to the greatest one.  *nucleus, which is
 * zeroed before, gets the bounds of the ids that were kept.
 */

static uint32_t
dsa_sample_random(float *x, uint32_t n, const dsa_sampling_t *s,
    uint64_t position, dsa_nucleus_t *nucleus)
{
    float     greatest;
    double    total;
    uint32_t  i, max;

    max = dsa_sample_max(x, n);

    if (!isfinite(x[max])) {

        /*
         * Plus infinity has all of the probability.  When all logits are
         * minus infinity, the result is id 0.
         */

        return max;
    }

    greatest = x[max];
    total = 0;

    for (i = 0; i < n; i++) {
        x[i] = (float) exp(((double) x[i] - (double) greatest)
                           / (double) s->temperature);
        total += (double) x[i];
    }

    if (s->top_p < 1) {
        nucleus->least = dsa_sample_keep(x, n, (double) s->top_p * total);
        total = 0;

        for (i = 0; i < n; i++) {
            total += (double) x[i];
        }
    }

    nucleus->total = total;

    return dsa_sample_race(x, n, s->seed, position);
}


/*
 * Returns the id that wins with the weights x [n], of which one is not 0.
 * Blocks of ids without weights, of which a nucleus leaves many, are skipped.
 */

static uint32_t
dsa_sample_race(const float *x, uint32_t n, uint64_t seed, uint64_t position)
{
    float             sum, rest[DSA_RACE_IDS];
    uint32_t          i, j, m, word[DSA_RACE_IDS];
    const float      *w;
    dsa_noise_race_t  race;

    dsa_noise_start(&race, 0);

    for (i = 0; i < n; i += DSA_RACE_IDS) {
        m = n - i < DSA_RACE_IDS ? n - i : DSA_RACE_IDS;
        w = &x[i];

        if (m < DSA_RACE_IDS) {
            memset(rest, 0, sizeof(rest));
            memcpy(rest, w, m * sizeof(float));
            w = rest;
        }

        for (j = 0, sum = 0; j < DSA_RACE_IDS && sum == 0; j++) {
            sum += w[j];
        }

        if (sum == 0) {
            continue;
        }

        dsa_sample_words(word, seed, position, i / DSA_NOISE_IDS);

        for (j = 0; j < DSA_RACE_IDS; j += DSA_NOISE_IDS) {
            dsa_noise_compare(&race, &w[j], &word[j], seed, position, i + j);
        }
    }

    return race.id;
}


/* Computes the words of DSA_RACE_IDS ids, several blocks at a time. */

static DSA_CLONES void
dsa_sample_words(uint32_t *word, uint64_t seed, uint64_t position,
    uint32_t block)
{
    uint32_t  i;

    for (i = 0; i < DSA_RACE_IDS / DSA_NOISE_IDS; i++) {
        dsa_noise_words(&word[i * DSA_NOISE_IDS], seed, position, block + i,
                        0);
    }
}


/*
 * Sets the weights of all ids to 0 but those of the smallest set that reaches
 * want.  Returns the least weight of this set, or 0 if it has all ids.
 */

static float
dsa_sample_keep(float *x, uint32_t n, double want)
{
    float     least;
    double    above;
    uint32_t  i, ties;

    least = dsa_sample_nucleus(x, n, want, &above);

    if (least == 0) {
        return 0;
    }

    /* keep only as many of the least probable ids as are needed */

    above = ceil((want - above) / (double) least);
    ties = (uint32_t) fmin(fmax(above, 1), n);

    for (i = 0; i < n; i++) {
        if (x[i] > least || (x[i] == least && ties != 0 && ties--)) {
            continue;
        }

        x[i] = 0;
    }

    return least;
}


/*
 * Returns the weight of the least probable id that is needed to reach want;
 * *above is the sum of all greater weights.  The bits of positive floats have
 * the order of the floats, so that a radix selection over them is exact.  It
 * takes O(n) steps, where sorting takes O(n log n).
 */

static float
dsa_sample_nucleus(const float *p, uint32_t n, double want, double *above)
{
    int       shift;
    float     least;
    double    sum[DSA_RADIX], greater;
    uint32_t  i, bits, digit, fixed, mask;

    fixed = 0;
    mask = 0;
    greater = 0;

    for (shift = 32 - DSA_RADIX_BITS; shift >= 0; shift -= DSA_RADIX_BITS) {
        memset(sum, 0, sizeof(sum));

        for (i = 0; i < n; i++) {
            memcpy(&bits, &p[i], sizeof(bits));

            if ((bits & mask) == fixed) {
                sum[(bits >> shift) & (DSA_RADIX - 1)] += (double) p[i];
            }
        }

        for (digit = DSA_RADIX - 1; digit > 0; digit--) {
            if (sum[digit] > 0 && greater + sum[digit] >= want) {
                break;
            }

            greater += sum[digit];
        }

        fixed |= digit << shift;
        mask |= (DSA_RADIX - 1) << shift;
    }

    memcpy(&least, &fixed, sizeof(least));

    *above = greater;

    return least;
}


static void
dsa_sample_logprobs(dsa_sample_t *out, const dsa_sampling_t *s,
    const float *logits, uint32_t n)
{
    float     x;
    double    sum, norm;
    uint32_t  i, j, max, n_top;

    max = 0;

    for (i = 0; i < n; i++) {
        if (logits[i] > logits[max] || isnan(logits[max])) {
            max = i;
        }
    }

    sum = 0;

    for (i = 0; i < n; i++) {
        if (!isnan(logits[i])) {
            sum += exp((double) logits[i] - (double) logits[max]);
        }
    }

    norm = (double) logits[max] + log(sum);
    out->logprob = (float) ((double) logits[out->token] - norm);

    n_top = s->top_logprobs;

    if (n_top > DSA_SAMPLE_MAX_TOP) {
        n_top = DSA_SAMPLE_MAX_TOP;
    }

    if (n_top == 0) {
        return;
    }

    for (i = 0; i < n; i++) {
        x = logits[i];

        if (isnan(x)
            || (out->n_top == n_top && x <= out->top_logprob[n_top - 1]))
        {
            continue;
        }

        /* insert after equal ones, which have lower ids */

        j = out->n_top < n_top ? out->n_top++ : n_top - 1;

        for ( /* void */ ; j > 0 && out->top_logprob[j - 1] < x; j--) {
            out->top[j] = out->top[j - 1];
            out->top_logprob[j] = out->top_logprob[j - 1];
        }

        out->top[j] = i;
        out->top_logprob[j] = x;
    }

    for (j = 0; j < out->n_top; j++) {
        out->top_logprob[j] = (float) ((double) out->top_logprob[j] - norm);
    }
}
