
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hosts/step.h"


/* An entry in the message, before its sampling, biases, tokens, pages, mask. */

typedef struct {
    uint32_t            rank;
    uint32_t            start;
    uint32_t            n_input;
    uint32_t            n_prompt;
    uint32_t            input_from;
    uint32_t            first;          /* position of the first token */
    uint32_t            n_tokens;       /* 0: of another host */
    uint32_t            sampled;        /* 1: sampling follows */
    uint32_t            n_bias;
    uint32_t            masked;         /* 1: a mask follows */
} dsa_hosts_entry_t;


/* The part of a message that has not been read yet. */

typedef struct {
    const char         *pos;
    const char         *end;
    uint32_t            number;         /* of the entry */
} dsa_hosts_reader_t;


static int dsa_hosts_step_check(const dsa_batch_seq_t *s, uint32_t i,
    dsa_err_t *err);
static void dsa_hosts_entry_write(dsa_buf_t *out, const dsa_batch_seq_t *s,
    int own, uint32_t vocab);
static int dsa_hosts_entry_read(dsa_hosts_step_t *s, dsa_hosts_reader_t *r,
    const dsa_hosts_step_t *before, const dsa_hosts_limits_t *l,
    dsa_err_t *err);
static int dsa_hosts_entry_check(const dsa_hosts_entry_t *e,
    const dsa_hosts_reader_t *r, const dsa_hosts_step_t *before,
    const dsa_hosts_limits_t *l, dsa_err_t *err);
static int dsa_hosts_entry_arrays(dsa_batch_seq_t *to, dsa_sampling_t *sampling,
    const dsa_hosts_entry_t *e, dsa_hosts_reader_t *r,
    const dsa_hosts_limits_t *l, dsa_err_t *err);
static const void *dsa_hosts_take(dsa_hosts_reader_t *r, uint64_t bytes);
static int dsa_hosts_below(const uint32_t *v, uint32_t n, uint32_t limit);
static int dsa_hosts_sampling_ok(const dsa_sampling_t *s);
static int dsa_hosts_biases_ok(const dsa_bias_t *b, uint32_t n,
    uint32_t vocab);
static int dsa_hosts_mask_ok(const uint32_t *mask, uint32_t words);


uint32_t
dsa_hosts_step_most(const dsa_hosts_limits_t *l)
{
    return l->max_seqs * l->gpus * l->hosts;
}


uint64_t
dsa_hosts_step_bytes(const dsa_hosts_limits_t *l)
{
    uint64_t  entry, pages;

    /* penalties need all tokens of an answer, so that they may follow */

    pages = (uint64_t) l->context / DSA_PAGE_TOKENS + 1;

    entry = sizeof(dsa_hosts_entry_t) + sizeof(dsa_sampling_t)
            + DSA_SAMPLE_MAX_BIAS * sizeof(dsa_bias_t)
            + (l->context + pages + dsa_mask_words(l->vocab))
              * sizeof(uint32_t);

    return sizeof(uint32_t) + dsa_hosts_step_most(l) * entry;
}


int
dsa_hosts_step_write(dsa_buf_t *out, const dsa_hosts_limits_t *l,
    const dsa_batch_seq_t *seq, uint32_t n, dsa_err_t *err)
{
    uint32_t  i;

    dsa_buf_add(out, &n, sizeof(uint32_t));

    for (i = 0; i < n; i++) {
        if (dsa_hosts_step_check(&seq[i], i, err) != DSA_OK) {
            return DSA_ERROR;
        }

        dsa_hosts_entry_write(out, &seq[i], seq[i].rank / l->gpus == l->host,
                              l->vocab);
    }

    return out->failed ? dsa_error(err, "out of memory for a step of %u "
                                   "sequences", n)
                       : DSA_OK;
}


/* The backend of hosts offers none of this, so it is an error of the caller. */

static int
dsa_hosts_step_check(const dsa_batch_seq_t *s, uint32_t i, dsa_err_t *err)
{
    if (s->n_draft == 0 && s->copies == NULL && s->rollout == NULL
        && s->next == NULL)
    {
        return DSA_OK;
    }

    return dsa_error(err, "entry %u of a step has drafts, copies or a rollout; "
                     "expected none, because several hosts compute the step",
                     i);
}


static void
dsa_hosts_entry_write(dsa_buf_t *out, const dsa_batch_seq_t *s, int own,
    uint32_t vocab)
{
    uint32_t           pages, end;
    dsa_hosts_entry_t  e;

    memset(&e, 0, sizeof(e));
    e.rank = s->rank;
    e.start = s->start;
    e.n_input = s->n_input;
    e.n_prompt = s->n_prompt;
    e.input_from = s->input_from;

    if (!own) {
        dsa_buf_add(out, &e, sizeof(e));
        return;
    }

    end = s->start + (s->input_from == DSA_INPUT_KNOWN ? s->n_input : 0);

    e.sampled = s->sampling != NULL;
    e.first = s->start;

    if (e.sampled && dsa_sampling_penalizes(s->sampling)
        && s->n_prompt < e.first)
    {
        e.first = s->n_prompt;
    }

    /* an entry that follows another one has a token that it does not need */

    if (e.first == end) {
        e.first--;
    }

    e.n_tokens = end - e.first;
    e.n_bias = e.sampled ? s->biases.n : 0;
    e.masked = e.sampled && s->mask != NULL;
    pages = (s->start + s->n_input + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    dsa_buf_add(out, &e, sizeof(e));

    if (e.sampled) {
        dsa_buf_add(out, s->sampling, sizeof(dsa_sampling_t));
    }

    dsa_buf_add(out, s->biases.bias, e.n_bias * sizeof(dsa_bias_t));
    dsa_buf_add(out, s->tokens + e.first, e.n_tokens * sizeof(uint32_t));
    dsa_buf_add(out, s->pages, pages * sizeof(uint32_t));

    if (e.masked) {
        dsa_buf_add(out, s->mask, dsa_mask_words(vocab) * sizeof(uint32_t));
    }
}


int
dsa_hosts_step_open(dsa_hosts_step_t *s, const dsa_hosts_limits_t *l,
    dsa_err_t *err)
{
    uint32_t  most;

    most = dsa_hosts_step_most(l);

    memset(s, 0, sizeof(dsa_hosts_step_t));

    s->seq = calloc(most, sizeof(dsa_batch_seq_t));
    s->sampling = calloc(most, sizeof(dsa_sampling_t));
    s->sample = calloc(most, sizeof(dsa_sample_t));

    if (s->seq == NULL || s->sampling == NULL || s->sample == NULL) {
        return dsa_error(err, "no memory for steps of %u sequences", most);
    }

    return DSA_OK;
}


void
dsa_hosts_step_close(dsa_hosts_step_t *s)
{
    free(s->seq);
    free(s->sampling);
    free(s->sample);
    free(s->text);
}


int
dsa_hosts_step_read(dsa_hosts_step_t *s, size_t bytes,
    const dsa_hosts_step_t *before, const dsa_hosts_limits_t *l,
    dsa_err_t *err)
{
    uint32_t            i, n;
    dsa_hosts_reader_t  r;

    s->n = 0;

    /* without bytes there may be no text, either */

    if (bytes < sizeof(uint32_t)) {
        return dsa_error(err, "a step of %zu bytes has no number of entries",
                         bytes);
    }

    memcpy(&n, s->text, sizeof(uint32_t));

    r.pos = s->text + sizeof(uint32_t);
    r.end = s->text + bytes;

    if (n == 0 || n > dsa_hosts_step_most(l)) {
        return dsa_error(err, "a step has %u entries; expected 1 to %u", n,
                         dsa_hosts_step_most(l));
    }

    for (i = 0; i < n; i++) {
        r.number = i;
        s->n = i;

        if (dsa_hosts_entry_read(s, &r, before, l, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    s->n = n;

    if (r.pos != r.end) {
        return dsa_error(err, "a step has %zu bytes behind its %u entries; "
                         "expected none", (size_t) (r.end - r.pos), n);
    }

    return DSA_OK;
}


/* Returns the next bytes of the message, or NULL if it has fewer. */

static const void *
dsa_hosts_take(dsa_hosts_reader_t *r, uint64_t bytes)
{
    const char  *p;

    p = r->pos;

    if (bytes > (uint64_t) (r->end - r->pos)) {
        return NULL;
    }

    r->pos += bytes;

    return p;
}


static int
dsa_hosts_entry_read(dsa_hosts_step_t *s, dsa_hosts_reader_t *r,
    const dsa_hosts_step_t *before, const dsa_hosts_limits_t *l,
    dsa_err_t *err)
{
    const void         *p;
    dsa_batch_seq_t    *to;
    dsa_hosts_entry_t   e;

    p = dsa_hosts_take(r, sizeof(e));

    if (p == NULL) {
        return dsa_error(err, "entry %u of a step is cut off", r->number);
    }

    memcpy(&e, p, sizeof(e));

    if (dsa_hosts_entry_check(&e, r, before, l, err) != DSA_OK) {
        return DSA_ERROR;
    }

    to = &s->seq[r->number];
    memset(to, 0, sizeof(dsa_batch_seq_t));

    to->start = e.start;
    to->n_input = e.n_input;
    to->input_from = e.input_from;
    to->n_prompt = e.n_prompt;
    to->rank = e.rank;

    if (e.n_tokens == 0) {
        return DSA_OK;
    }

    to->n_pages = (e.start + e.n_input + DSA_PAGE_TOKENS - 1)
                  / DSA_PAGE_TOKENS;
    to->sample = &s->sample[r->number];

    return dsa_hosts_entry_arrays(to, &s->sampling[r->number], &e, r, l, err);
}


/* Checks the numbers of an entry. */

static int
dsa_hosts_entry_check(const dsa_hosts_entry_t *e, const dsa_hosts_reader_t *r,
    const dsa_hosts_step_t *before, const dsa_hosts_limits_t *l,
    dsa_err_t *err)
{
    int       own, follows;
    uint64_t  end;

    own = e->rank / l->gpus == l->host;
    follows = e->input_from != DSA_INPUT_KNOWN;
    end = (uint64_t) e->start + (follows ? 0 : e->n_input);

    if (e->rank >= l->hosts * l->gpus || e->n_input == 0
        || e->n_input > l->max_tokens
        || (uint64_t) e->start + e->n_input > l->context
        || e->n_prompt == 0 || e->n_prompt > l->context || e->sampled > 1
        || e->masked > e->sampled || e->n_bias > DSA_SAMPLE_MAX_BIAS
        || (e->n_bias != 0 && !e->sampled))
    {
        return dsa_error(err, "entry %u of a step has %u tokens from position "
                         "%u, a prompt of %u, on rank %u; expected a rank "
                         "below %u and positions below %u", r->number,
                         e->n_input, e->start, e->n_prompt, e->rank,
                         l->hosts * l->gpus, l->context);
    }

    if (own != (e->n_tokens != 0) || (!own && e->sampled)
        || (own && (e->first > e->start || e->first + e->n_tokens != end)))
    {
        return dsa_error(err, "entry %u of a step on rank %u has tokens %u to "
                         "%u; expected those up to %llu, and only on this "
                         "host", r->number, e->rank, e->first,
                         e->first + e->n_tokens, (unsigned long long) end);
    }

    if (follows
        && (before == NULL || e->input_from >= before->n || e->n_input != 1
            || before->seq[e->input_from].rank != e->rank
            || (own && before->seq[e->input_from].sampling == NULL)))
    {
        return dsa_error(err, "entry %u of a step follows entry %u; expected "
                         "one of the step before with a sample on its rank",
                         r->number, e->input_from);
    }

    return DSA_OK;
}


/* Sets the arrays of an entry of this host, which stay in the message. */

static int
dsa_hosts_entry_arrays(dsa_batch_seq_t *to, dsa_sampling_t *sampling,
    const dsa_hosts_entry_t *e, dsa_hosts_reader_t *r,
    const dsa_hosts_limits_t *l, dsa_err_t *err)
{
    uint32_t          words;
    const void       *parameters, *mask;
    const uint32_t   *tokens, *pages;
    const dsa_bias_t *bias;

    words = dsa_mask_words(l->vocab);

    parameters = dsa_hosts_take(r, e->sampled ? sizeof(dsa_sampling_t) : 0);
    bias = dsa_hosts_take(r, e->n_bias * sizeof(dsa_bias_t));
    tokens = dsa_hosts_take(r, (uint64_t) e->n_tokens * sizeof(uint32_t));
    pages = dsa_hosts_take(r, (uint64_t) to->n_pages * sizeof(uint32_t));
    mask = dsa_hosts_take(r, e->masked ? words * sizeof(uint32_t) : 0);

    if (parameters == NULL || bias == NULL || tokens == NULL || pages == NULL
        || mask == NULL)
    {
        return dsa_error(err, "entry %u of a step is cut off", r->number);
    }

    if (!dsa_hosts_below(tokens, e->n_tokens, l->vocab)
        || !dsa_hosts_below(pages, to->n_pages, l->pages))
    {
        return dsa_error(err, "entry %u of a step has a token or a page that "
                         "does not exist; expected tokens below %u and pages "
                         "below %u", r->number, l->vocab, l->pages);
    }

    /*
     * Backends read tokens at positions from first on only, so the addresses
     * before are never used.
     */

    to->tokens = (const uint32_t *) ((uintptr_t) tokens
                                     - e->first * sizeof(uint32_t));
    to->pages = pages;

    if (!e->sampled) {
        return DSA_OK;
    }

    memcpy(sampling, parameters, sizeof(dsa_sampling_t));

    if (!dsa_hosts_sampling_ok(sampling)
        || !dsa_hosts_biases_ok(bias, e->n_bias, l->vocab)
        || (e->masked && !dsa_hosts_mask_ok(mask, words)))
    {
        return dsa_error(err, "entry %u of a step has sampling parameters, "
                         "biases or a mask that are out of range", r->number);
    }

    /* the penalties read all tokens of the answer */

    if (dsa_sampling_penalizes(sampling) && e->first > e->n_prompt) {
        return dsa_error(err, "entry %u of a step has penalties, and tokens "
                         "from position %u on; expected those from %u on",
                         r->number, e->first, e->n_prompt);
    }

    to->sampling = sampling;
    to->biases.bias = bias;
    to->biases.n = e->n_bias;
    to->mask = e->masked ? mask : NULL;

    return DSA_OK;
}


static int
dsa_hosts_below(const uint32_t *v, uint32_t n, uint32_t limit)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (v[i] >= limit) {
            return 0;
        }
    }

    return 1;
}


static int
dsa_hosts_sampling_ok(const dsa_sampling_t *s)
{
    return s->logprobs <= 1 && s->top_logprobs <= DSA_SAMPLE_MAX_TOP
           && isfinite(s->temperature) && s->temperature >= 0
           && s->top_p > 0 && s->top_p <= 1
           && fabsf(s->frequency_penalty) <= 2
           && fabsf(s->presence_penalty) <= 2;
}


static int
dsa_hosts_biases_ok(const dsa_bias_t *b, uint32_t n, uint32_t vocab)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (b[i].id >= vocab || !(fabsf(b[i].bias) <= DSA_SAMPLE_FORCE)) {
            return 0;
        }
    }

    return 1;
}


static int
dsa_hosts_mask_ok(const uint32_t *mask, uint32_t words)
{
    uint32_t  i;

    for (i = 0; i < words; i++) {
        if (mask[i] != 0) {
            return 1;
        }
    }

    return 0;
}
