
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/checkpoint/scan.h"
#include "engine/cpu/drafter.h"
#include "engine/cpu/model.h"
#include "engine/quantize.h"
#include "kernels/sample/sample.h"


/* bytes for pages if the configuration has no kv_memory */
#define DSA_CPU_KV_MEMORY   (1ULL << 30)


typedef struct {
    dsa_weights_t  *weights;
    dsa_model_t    *model;
    dsa_drafter_t  *drafter;        /* NULL: no drafts */
    dsa_rows_t     *rows;           /* [max_seqs * ranks] */
    float          *logits;         /* [max_outputs, vocab] */
    float          *scratch;        /* [threads, vocab] */
    uint32_t       *first;          /* [max_seqs * ranks] row of logits of a
                                       sequence's first output */
    uint32_t        max_seqs;       /* of each rank */
    uint32_t        max_outputs;    /* of all sequences of a step */
    uint32_t        allowed;
    uint32_t        first_rank;     /* of this host */
    uint32_t        own_ranks;
    dsa_backend_conf_t  conf;       /* for reload() */
    uint64_t        moves[DSA_MAX_GPUS][DSA_MOVES];     /* calls of move() */
} dsa_backend_cpu_t;


/* The sampling of a step as a job; a piece is a sequence. */

typedef struct {
    dsa_backend_cpu_t  *cpu;
    dsa_batch_seq_t    *seq;
} dsa_sampling_job_t;


static int dsa_backend_cpu_open_model(dsa_backend_t *b,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_backend_cpu_identify(dsa_backend_t *b,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_backend_cpu_own(const dsa_backend_cpu_t *cpu,
    const dsa_batch_seq_t *s);
static int dsa_backend_cpu_start(dsa_backend_t *b, dsa_batch_seq_t *seq,
    uint32_t n_seqs, dsa_err_t *err);
static int dsa_backend_cpu_check(const dsa_backend_t *b,
    const dsa_batch_seq_t *seq, uint32_t n_seqs, dsa_err_t *err);
static int dsa_backend_cpu_wait(dsa_backend_t *b, dsa_err_t *err);
static int dsa_backend_cpu_copy(dsa_backend_t *b, const dsa_page_copy_t *copy,
    uint32_t n, dsa_err_t *err);
static int dsa_backend_cpu_move(dsa_backend_t *b, dsa_move_e way,
    uint32_t rank, const dsa_page_move_t *move, uint32_t n, dsa_err_t *err);
static int dsa_backend_cpu_moved(dsa_backend_t *b, dsa_move_e way,
    uint32_t rank, int wait, uint64_t *calls, dsa_err_t *err);
static int dsa_backend_cpu_reload(dsa_backend_t *b, dsa_err_t *err);
static void dsa_backend_cpu_sample_piece(void *ctx, uint32_t piece,
    uint32_t thread);
static void dsa_backend_cpu_sample(dsa_backend_cpu_t *cpu,
    dsa_batch_seq_t *s, const float *logits, float *scratch);
static void dsa_backend_cpu_close(dsa_backend_t *b);


dsa_backend_t *
dsa_backend_cpu_open(const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    uint64_t            seqs, outputs;
    dsa_backend_t      *b;
    dsa_backend_cpu_t  *cpu;

    b = calloc(1, sizeof(dsa_backend_t));
    cpu = calloc(1, sizeof(dsa_backend_cpu_t));

    if (b == NULL || cpu == NULL) {
        (void) dsa_error(err, "no memory for a backend");
        free(b);
        free(cpu);
        return NULL;
    }

    b->data = cpu;
    b->depth = 1;
    b->max_outputs = DSA_MAX_OUTPUTS;
    b->drafts = conf->drafts;
    b->rollouts = 1;
    b->start = dsa_backend_cpu_start;
    b->wait = dsa_backend_cpu_wait;
    b->pin = dsa_backend_pin;
    b->move = dsa_backend_cpu_move;
    b->moved = dsa_backend_cpu_moved;
    b->reload = dsa_backend_hosts(conf) > 1 ? NULL : dsa_backend_cpu_reload;
    b->close = dsa_backend_cpu_close;

    cpu->conf = *conf;
    cpu->weights = dsa_weights_open(conf->model, err);

    if (cpu->weights == NULL
        || (conf->quantize
            && dsa_weights_quantize(cpu->weights, err) != DSA_OK))
    {
        goto failed;
    }

    b->config = cpu->weights->config;

    if (conf->drafts_if_any && cpu->weights->draft.fault[0] != '\0') {
        b->drafts = 0;
        dsa_backend_without_drafts(b, cpu->weights->draft.fault);
    }

    if (dsa_backend_cpu_identify(b, conf, err) != DSA_OK
        || dsa_backend_cpu_open_model(b, conf, err) != DSA_OK)
    {
        goto failed;
    }

    /* a step has at most as many outputs as input tokens */

    seqs = (uint64_t) conf->max_seqs * b->ranks;
    outputs = seqs * b->max_outputs;

    if (outputs > (uint64_t) b->rank_tokens * b->ranks) {
        outputs = (uint64_t) b->rank_tokens * b->ranks;
    }

    cpu->max_seqs = conf->max_seqs;
    cpu->max_outputs = (uint32_t) outputs;
    cpu->allowed = conf->allowed;
    cpu->rows = calloc(seqs, sizeof(dsa_rows_t));
    cpu->logits = calloc(outputs, b->config.vocab_size * sizeof(float));
    cpu->scratch = calloc(dsa_threads_count(dsa_model_pool(cpu->model)),
                          b->config.vocab_size * sizeof(float));
    cpu->first = calloc(seqs, sizeof(uint32_t));

    if (cpu->rows == NULL || cpu->logits == NULL || cpu->scratch == NULL
        || cpu->first == NULL)
    {
        (void) dsa_error(err, "no memory for the logits of %u outputs",
                         cpu->max_outputs);
        goto failed;
    }

    if (b->drafts != 0) {
        cpu->drafter = dsa_drafter_open(cpu->model, &b->config,
                                        (uint32_t) seqs,
                                        b->rank_tokens * b->ranks,
                                        cpu->allowed, err);
        if (cpu->drafter == NULL) {
            goto failed;
        }
    }

    return b;

failed:

    dsa_backend_cpu_close(b);

    return NULL;
}


/*
 * Sets the fingerprint.  The full fingerprint is computed only if pages
 * outlive the process, because it reads all files again.
 */

static int
dsa_backend_cpu_identify(dsa_backend_t *b, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    char                full[DSA_FULL_LEN + 1];
    dsa_backend_cpu_t  *cpu = b->data;

    if (!conf->persistent) {
        b->sampled = 1;
        dsa_backend_fingerprint(b, cpu->weights->sampled_fingerprint, conf);

        return DSA_OK;
    }

    if (dsa_scan(cpu->weights, NULL, 0, full, err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_backend_fingerprint(b, full, conf);

    return DSA_OK;
}


/*
 * Opens cpu->model, and sets the members that depend on the number of ranks.
 */

static int
dsa_backend_cpu_open_model(dsa_backend_t *b, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    uint32_t            r, hosts;
    uint64_t            tokens;
    dsa_model_conf_t    model;
    dsa_backend_cpu_t  *cpu = b->data;

    hosts = dsa_backend_hosts(conf);

    if (conf->gpus == 0 || conf->gpus > DSA_MAX_GPUS / hosts) {
        return dsa_error(err, "%u GPUs were requested; expected 1 to %u%s",
                         conf->gpus, DSA_MAX_GPUS / hosts,
                         hosts > 1 ? " on each host" : "");
    }

    b->ranks = conf->attention == DSA_ATTENTION_TENSOR ? 1
                                                       : conf->gpus * hosts;
    cpu->first_rank = conf->gpus * conf->hosts.host;
    cpu->own_ranks = b->ranks / hosts;

    tokens = ((uint64_t) conf->max_tokens + b->ranks - 1) / b->ranks;
    tokens = tokens > conf->max_seqs ? tokens : conf->max_seqs;

    if (tokens * b->ranks > UINT32_MAX) {
        return dsa_error(err, "steps of %llu tokens on %u ranks were "
                         "requested; expected at most %u tokens in all",
                         (unsigned long long) tokens, b->ranks, UINT32_MAX);
    }

    memset(&model, 0, sizeof(dsa_model_conf_t));

    model.precision = conf->precision;
    model.kv_memory = conf->kv_memory != 0 ? conf->kv_memory
                                           : DSA_CPU_KV_MEMORY;
    model.max_tokens = (uint32_t) tokens * b->ranks;
    model.drafts = b->drafts != 0;

    /* the draft layer has a row more of each sequence, for its sample */

    if (b->drafts != 0) {
        model.max_tokens += conf->max_seqs * b->ranks;
    }

    model.gpus = conf->gpus;
    model.hosts = conf->hosts;
    model.attention = conf->attention;

    cpu->model = dsa_model_open(cpu->weights, &model, err);
    if (cpu->model == NULL) {
        return DSA_ERROR;
    }

    b->rank_tokens = (uint32_t) tokens;
    b->pages = dsa_model_pages(cpu->model);
    b->page_bytes = dsa_model_page_bytes(cpu->model);
    b->copy = b->ranks > 1 ? dsa_backend_cpu_copy : NULL;

    /* cache entries of a step are written on this host only */

    b->splits = b->ranks > 1 && hosts == 1;

    for (r = 0; r < b->ranks; r++) {
        b->node[r] = -1;
    }

    return DSA_OK;
}


static void
dsa_backend_cpu_close(dsa_backend_t *b)
{
    dsa_backend_cpu_t  *cpu = b->data;

    dsa_drafter_close(cpu->drafter);
    dsa_model_close(cpu->model);
    dsa_weights_close(cpu->weights);

    free(cpu->rows);
    free(cpu->logits);
    free(cpu->scratch);
    free(cpu->first);
    free(cpu);
    free(b);
}


/* Returns 1 if a sequence is on a rank of this host. */

static int
dsa_backend_cpu_own(const dsa_backend_cpu_t *cpu, const dsa_batch_seq_t *s)
{
    return s->rank - cpu->first_rank < cpu->own_ranks;
}


static int
dsa_backend_cpu_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    uint32_t            i, outputs;
    dsa_backend_cpu_t  *cpu = b->data;
    dsa_sampling_job_t  job = { cpu, seq };

    if (dsa_backend_cpu_check(b, seq, n_seqs, err) != DSA_OK) {
        return DSA_ERROR;
    }

    outputs = 0;

    for (i = 0; i < n_seqs; i++) {
        cpu->rows[i].tokens = dsa_backend_cpu_own(cpu, &seq[i])
                              ? seq[i].tokens + seq[i].start : NULL;
        cpu->rows[i].start = seq[i].start;
        cpu->rows[i].n = seq[i].n_input;
        cpu->rows[i].rank = seq[i].rank;
        cpu->rows[i].pages = seq[i].pages;
        cpu->rows[i].copies = seq[i].copies;
        cpu->rows[i].experts = seq[i].rollout != NULL
                               ? seq[i].rollout->experts : NULL;
        cpu->rows[i].n_logits = dsa_batch_outputs(&seq[i]);
        cpu->first[i] = outputs;

        if (dsa_backend_cpu_own(cpu, &seq[i])) {
            outputs += cpu->rows[i].n_logits;
        }
    }

    if (outputs > cpu->max_outputs) {
        return dsa_error(err, "a step has %u outputs; expected at most %u",
                         outputs, cpu->max_outputs);
    }

    if (dsa_model_forward(cpu->model, cpu->rows, n_seqs, cpu->logits, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_threads_run(dsa_model_pool(cpu->model), n_seqs,
                 dsa_backend_cpu_sample_piece, &job);

    return cpu->drafter != NULL
           ? dsa_drafter_step(cpu->drafter, seq, n_seqs, err) : DSA_OK;
}


/*
 * Checks the limits of each rank.  A sequence with copies counts on all ranks,
 * with an equal part of its tokens, rounded up, on each.
 */

static int
dsa_backend_cpu_check(const dsa_backend_t *b, const dsa_batch_seq_t *seq,
    uint32_t n_seqs, dsa_err_t *err)
{
    uint32_t                  i, n, rank, r, seqs[DSA_MAX_GPUS];
    uint64_t                  tokens[DSA_MAX_GPUS];
    const dsa_backend_cpu_t  *cpu = b->data;

    if (n_seqs > (uint64_t) cpu->max_seqs * b->ranks) {
        return dsa_error(err, "a step has %u sequences; expected at most %u "
                         "on each of %u ranks", n_seqs, cpu->max_seqs,
                         b->ranks);
    }

    memset(seqs, 0, sizeof(seqs));
    memset(tokens, 0, sizeof(tokens));

    for (i = 0; i < n_seqs; i++) {
        rank = seq[i].rank;

        if (rank >= b->ranks) {
            return dsa_error(err, "sequence %u of a step is on rank %u; "
                             "expected a rank below %u", i, rank, b->ranks);
        }

        n = seq[i].n_input;

        if (seq[i].copies == NULL) {
            seqs[rank]++;
            tokens[rank] += n;
            continue;
        }

        for (r = 0; r < b->ranks; r++) {
            seqs[r]++;
            tokens[r] += n / b->ranks + (n % b->ranks != 0);
        }
    }

    for (r = 0; r < b->ranks; r++) {
        if (seqs[r] > cpu->max_seqs || tokens[r] > b->rank_tokens) {
            return dsa_error(err, "a step has %u sequences with %llu tokens on "
                             "rank %u; expected at most %u with %u", seqs[r],
                             (unsigned long long) tokens[r], r, cpu->max_seqs,
                             b->rank_tokens);
        }
    }

    return DSA_OK;
}


/* Does nothing, because dsa_backend_cpu_start() has computed the step. */

static int
dsa_backend_cpu_wait(dsa_backend_t *b, dsa_err_t *err)
{
    return DSA_OK;
}


static int
dsa_backend_cpu_copy(dsa_backend_t *b, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err)
{
    dsa_backend_cpu_t  *cpu = b->data;

    return dsa_model_copy(cpu->model, copy, n, err);
}


/* Moves pages at once, so that no move is ever in flight. */

static int
dsa_backend_cpu_move(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    dsa_backend_cpu_t  *cpu = b->data;

    if (dsa_backend_check_moves(b, rank, move, n, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (rank < cpu->first_rank || rank - cpu->first_rank >= cpu->own_ranks) {
        return dsa_error(err, "pages of rank %u cannot be moved; expected a "
                         "rank of this host", rank);
    }

    dsa_model_move(cpu->model, way, rank, move, n);
    cpu->moves[rank][way]++;

    return DSA_OK;
}


static int
dsa_backend_cpu_moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    int wait, uint64_t *calls, dsa_err_t *err)
{
    dsa_backend_cpu_t  *cpu = b->data;

    assert(rank < b->ranks);

    *calls = cpu->moves[rank][way];

    return DSA_OK;
}


/*
 * Opens the new weights beside the old ones, so that an error leaves these as
 * they are.  It takes the memory of both for a moment.  All files are read for
 * the fingerprint: one that is cut short is found here, and not by a step that
 * computes with the mapped file.
 */

static int
dsa_backend_cpu_reload(dsa_backend_t *b, dsa_err_t *err)
{
    int                  rc;
    char                *path;
    dsa_backend_t       *new;
    dsa_backend_cpu_t   *cpu = b->data, *next;
    dsa_backend_conf_t   conf;

    path = dsa_backend_resolve(cpu->conf.model, err);

    if (path == NULL) {
        return DSA_AGAIN;
    }

    conf = cpu->conf;
    conf.model = path;
    conf.persistent = 1;

    new = dsa_backend_cpu_open(&conf, err);

    if (new == NULL) {
        free(path);
        return DSA_AGAIN;
    }

    next = new->data;
    rc = dsa_backend_replaces(path, cpu->weights->config_hash,
                              next->weights->config_hash, b->drafts,
                              next->weights->draft.fault, err);
    free(path);

    if (rc != DSA_OK) {
        new->close(new);
        return DSA_AGAIN;
    }

    assert(new->pages == b->pages && new->page_bytes == b->page_bytes);

    next->conf = cpu->conf;
    memcpy(next->moves, cpu->moves, sizeof(next->moves));
    memcpy(b->identity, new->identity, sizeof(b->identity));
    memcpy(b->fingerprint, new->fingerprint, sizeof(b->fingerprint));
    b->sampled = 0;

    b->data = next;
    new->data = cpu;
    new->close(new);

    return DSA_OK;
}


static void
dsa_backend_cpu_sample_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    size_t               vocab;
    dsa_sampling_job_t  *job = ctx;
    dsa_backend_cpu_t   *cpu = job->cpu;

    vocab = cpu->weights->config.vocab_size;

    if (job->seq[piece].sampling != NULL
        && dsa_backend_cpu_own(cpu, &job->seq[piece]))
    {
        dsa_backend_cpu_sample(cpu, &job->seq[piece],
                               cpu->logits + cpu->first[piece] * vocab,
                               cpu->scratch + thread * vocab);
    }
}


/* Samples the outputs of a sequence up to the first rejected draft. */

static void
dsa_backend_cpu_sample(dsa_backend_cpu_t *cpu, dsa_batch_seq_t *s,
    const float *logits, float *scratch)
{
    uint32_t         i, vocab, accepted, position, n_prompt;
    const uint32_t  *mask;
    dsa_rollout_t    rollout;

    vocab = cpu->weights->config.vocab_size;
    mask = s->mask;
    accepted = 0;

    memset(&rollout, 0, sizeof(rollout));

    if (s->rollout != NULL) {
        rollout = *s->rollout;
    }

    for (i = 0; i <= s->n_draft; i++) {
        position = dsa_batch_position(s, i);
        n_prompt = s->n_prompt < position ? s->n_prompt : position;

        if (rollout.draw == NULL) {
            dsa_sample(&s->sample[i], s->sampling, &s->biases, logits, vocab,
                       cpu->allowed, mask, s->tokens + n_prompt,
                       position - n_prompt, position, scratch);

        } else {
            dsa_sample_draw(&s->sample[i], &rollout.draw[i],
                            rollout.kept != NULL
                            ? rollout.kept + (size_t) i * dsa_mask_words(vocab)
                            : NULL, s->sampling, &s->biases, logits, vocab,
                            cpu->allowed, mask, s->tokens + n_prompt,
                            position - n_prompt, position, scratch);
        }

        accepted++;

        if (i < s->n_draft && s->sample[i].token != s->tokens[position]) {
            break;
        }

        logits += vocab;
        mask = mask != NULL ? mask + dsa_mask_words(vocab) : NULL;
    }

    if (s->n_draft != 0) {
        *s->accepted = accepted;
    }
}
