
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A backend that computes nothing, for load tests of everything in front of
 * the GPU.  The answer repeats the plain tokens of the prompt (those that are
 * not added tokens) over and over, at a configurable rate.  Under a mask it is
 * random instead (choice.h).
 *
 * The "cache" of a page is the number of plain tokens before it, and a hash of
 * all tokens before its end.  A step therefore costs next to nothing even for a
 * long prompt, and the answer is right only if block tables, chunks and reused
 * prefixes are right.  A prefill step compares the hashes of pages that came
 * from host memory with the tokens of its sequence.
 *
 * With "attention data" it has as many ranks as GPUs are configured, each with
 * pages of its own.
 */


#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/file.h"
#include "engine/backend.h"
#include "engine/null/choice.h"
#include "engine/null/pages.h"
#include "engine/tokenizer/tokenizer.h"


#define DSA_NULL_PAGES          (1U << 18)      /* without kv_memory */
#define DSA_NULL_FILE           (256U << 20)
#define DSA_NANOSECONDS         1000000000L


typedef struct {
    uint8_t            *special;        /* bitmap of n_special ids */
    uint32_t            n_special;
    dsa_null_ends_t     ends;
    dsa_null_page_t    *page;           /* [ranks][pages] */
    uint32_t            pages;          /* of each rank */
    uint64_t            moves[DSA_MAX_GPUS][DSA_MOVES];     /* calls */
    long                period;         /* ns of a step; 0: no delay */
    int                 paced;          /* the started step is delayed */
    struct timespec     tick;           /* end of the last delayed step */
} dsa_null_t;


static int dsa_null_tokens(dsa_null_t *null, const char *dir,
    const dsa_model_config_t *config, dsa_err_t *err);
static int dsa_null_fingerprint(const char *dir, char out[36],
    dsa_err_t *err);
static int dsa_null_start(dsa_backend_t *b, dsa_batch_seq_t *seq,
    uint32_t n_seqs, dsa_err_t *err);
static int dsa_null_prefix(const dsa_null_t *null, const dsa_batch_seq_t *seq,
    uint32_t rank, const uint32_t *pages, dsa_err_t *err);
static void dsa_null_cache(const dsa_null_t *null, const dsa_batch_seq_t *seq,
    uint32_t rank, const uint32_t *pages);
static void dsa_null_chains(const dsa_null_t *null, const dsa_batch_seq_t *seq,
    uint32_t rank, const uint32_t *pages);
static int dsa_null_copy(dsa_backend_t *b, const dsa_page_copy_t *copy,
    uint32_t n, dsa_err_t *err);
static int dsa_null_move(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err);
static int dsa_null_moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    int wait, uint64_t *calls, dsa_err_t *err);
static void dsa_null_sample(const dsa_null_t *null, dsa_batch_seq_t *seq,
    const dsa_model_config_t *config);
static uint32_t dsa_null_echo(const dsa_null_t *null,
    const dsa_batch_seq_t *seq, uint32_t position, uint32_t eos);
static int dsa_null_wait(dsa_backend_t *b, dsa_err_t *err);
static void dsa_null_pace(dsa_null_t *null);
static void dsa_null_close(dsa_backend_t *b);


static inline uint32_t
dsa_null_plain(const dsa_null_t *null, uint32_t id)
{
    return id >= null->n_special
           || (null->special[id / 8] >> (id % 8) & 1) == 0;
}


/* The "cache" of a page of a rank. */

static inline dsa_null_page_t *
dsa_null_page(const dsa_null_t *null, uint32_t rank, uint32_t page)
{
    return &null->page[(size_t) rank * null->pages + page];
}


dsa_backend_t *
dsa_backend_null_open(const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    uint32_t        r;
    uint64_t        pages, page;
    dsa_null_t     *null;
    dsa_backend_t  *b;

    b = calloc(1, sizeof(dsa_backend_t));
    null = calloc(1, sizeof(dsa_null_t));

    if (b == NULL || null == NULL) {
        (void) dsa_error(err, "out of memory");
        free(null);
        free(b);
        return NULL;
    }

    b->data = null;
    b->depth = 1;
    b->max_outputs = DSA_MAX_OUTPUTS;
    b->page_bytes = DSA_NULL_PAGE_BYTES;
    b->start = dsa_null_start;
    b->wait = dsa_null_wait;
    b->pin = dsa_backend_pin;
    b->move = dsa_null_move;
    b->moved = dsa_null_moved;
    b->close = dsa_null_close;

    if (dsa_model_config_read(&b->config, conf->model, err) != DSA_OK
        || dsa_null_tokens(null, conf->model, &b->config, err)
           != DSA_OK
        || dsa_null_fingerprint(conf->model, b->fingerprint, err) != DSA_OK)
    {
        goto failed;
    }

    memcpy(b->identity, b->fingerprint, sizeof(b->identity));

    page = (uint64_t) DSA_PAGE_TOKENS * DSA_NULL_TOKEN_BYTES
           * b->config.num_hidden_layers;
    pages = conf->kv_memory != 0 ? conf->kv_memory / page : DSA_NULL_PAGES;

    if (pages == 0) {
        (void) dsa_error(err, "kv_memory is %llu bytes; expected at least one "
                         "page, %llu bytes",
                         (unsigned long long) conf->kv_memory,
                         (unsigned long long) page);
        goto failed;
    }

    assert(conf->gpus >= 1 && conf->gpus <= DSA_MAX_GPUS);

    b->ranks = conf->attention == DSA_ATTENTION_DATA ? conf->gpus : 1;
    b->pages = (uint32_t) (pages < DSA_PAGES_MAX ? pages : DSA_PAGES_MAX);
    b->rank_tokens = (conf->max_tokens + b->ranks - 1) / b->ranks;

    if (b->ranks > 1) {
        b->copy = dsa_null_copy;
        b->splits = 1;
    }

    for (r = 0; r < b->ranks; r++) {
        b->node[r] = -1;
    }

    null->pages = b->pages;
    null->page = calloc((size_t) b->ranks * b->pages,
                        sizeof(dsa_null_page_t));

    if (null->page == NULL) {
        (void) dsa_error(err, "out of memory for %u pages on each of %u ranks",
                         b->pages, b->ranks);
        goto failed;
    }

    if (conf->rate > 0) {
        null->period = (long) ((double) DSA_NANOSECONDS / conf->rate);
    }

    (void) clock_gettime(CLOCK_MONOTONIC, &null->tick);

    return b;

failed:

    dsa_null_close(b);

    return NULL;
}


static int
dsa_null_tokens(dsa_null_t *null, const char *dir,
    const dsa_model_config_t *config, dsa_err_t *err)
{
    int               n;
    char              path[4096];
    int64_t           end;
    uint32_t          id;
    dsa_tokenizer_t  *t;

    n = snprintf(path, sizeof(path), "%s/tokenizer.json", dir);

    if (n < 0 || (size_t) n >= sizeof(path)) {
        return dsa_error(err, "%s: the path is too long", dir);
    }

    t = dsa_tokenizer_open(path, err);

    if (t == NULL) {
        return DSA_ERROR;
    }

    null->n_special = dsa_tokenizer_size(t);

    if (null->n_special > config->vocab_size) {
        null->n_special = config->vocab_size;
    }

    null->special = calloc(null->n_special / 8 + 1, 1);

    if (null->special == NULL) {
        dsa_tokenizer_close(t);
        return dsa_error(err, "out of memory");
    }

    for (id = 0; id < null->n_special; id++) {
        if (dsa_token_is_special(t, id)) {
            null->special[id / 8] |= (uint8_t) (1U << (id % 8));
        }
    }

    /* reasoning also ends at random, so that a constrained answer can begin */

    end = dsa_tokenizer_special(t, dsa_strz(config->prompt.think_end));

    if (end >= 0) {
        null->ends.end[null->ends.n++] = (uint32_t) end;
    }

    memcpy(null->ends.end + null->ends.n, config->ends.id,
           config->ends.n * sizeof(uint32_t));
    null->ends.n += config->ends.n;

    dsa_tokenizer_close(t);

    return DSA_OK;
}


/*
 * Computes the fingerprint.  There are no weights.  Answers depend only on the
 * two files of the model that are read, and pages also on DSA_NULL_LAYOUT, so
 * the fingerprint covers everything.
 */

static int
dsa_null_fingerprint(const char *dir, char out[36], dsa_err_t *err)
{
    int          rc, n;
    char         path[4096];
    size_t       i;
    uint8_t      digest[32];
    dsa_buf_t    text;

    static const char  *files[] = { "config.json", "tokenizer.json" };

    memset(&text, 0, sizeof(text));
    dsa_buf_addz(&text, DSA_NULL_LAYOUT);

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        n = snprintf(path, sizeof(path), "%s/%s", dir, files[i]);

        if (n < 0 || (size_t) n >= sizeof(path)) {
            rc = dsa_error(err, "%s: the path is too long", dir);
            goto done;
        }

        rc = dsa_file_read(path, DSA_NULL_FILE, &text, err);

        if (rc != DSA_OK) {
            goto done;
        }
    }

    if (text.failed
        || EVP_Digest(text.data, text.len, digest, NULL, EVP_sha256(), NULL)
           != 1)
    {
        rc = dsa_error(err, "%s: cannot compute a fingerprint", dir);
        goto done;
    }

    for (i = 0; i < 16; i++) {
        (void) sprintf(out + 2 * i, "%02x", digest[i]);
    }

    rc = DSA_OK;

done:

    dsa_buf_free(&text);

    return rc;
}


static int
dsa_null_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    int              sampled;
    uint32_t         i, rank;
    dsa_null_t      *null;
    const uint32_t  *pages;

    null = b->data;
    sampled = 0;

    for (i = 0; i < n_seqs; i++) {
        for (rank = 0; rank < b->ranks; rank++) {
            if (seq[i].copies == NULL && rank != seq[i].rank) {
                continue;
            }

            pages = seq[i].copies != NULL ? seq[i].copies[rank] : seq[i].pages;

            if (dsa_null_prefix(null, &seq[i], rank, pages, err) != DSA_OK) {
                return DSA_ERROR;
            }

            dsa_null_cache(null, &seq[i], rank, pages);
            dsa_null_chains(null, &seq[i], rank, pages);
        }

        if (seq[i].sampling != NULL) {
            dsa_null_sample(null, &seq[i], &b->config);
            sampled = 1;
        }
    }

    null->paced = sampled && null->period != 0;

    return DSA_OK;
}


static int
dsa_null_wait(dsa_backend_t *b, dsa_err_t *err)
{
    dsa_null_t  *null = b->data;

    if (null->paced) {
        dsa_null_pace(null);
    }

    return DSA_OK;
}


static int
dsa_null_copy(dsa_backend_t *b, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err)
{
    uint32_t           i;
    const dsa_null_t  *null;

    null = b->data;

    for (i = 0; i < n; i++) {
        *dsa_null_page(null, copy[i].to_rank, copy[i].to_page)
            = *dsa_null_page(null, copy[i].from_rank, copy[i].from_page);
    }

    return DSA_OK;
}


static int
dsa_null_move(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    uint32_t          i;
    dsa_null_t       *null;
    dsa_null_page_t  *page;

    null = b->data;

    if (dsa_backend_check_moves(b, rank, move, n, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < n; i++) {
        page = dsa_null_page(null, rank, move[i].page);

        if (way == DSA_MOVE_OUT) {
            if (page->chain == 0) {
                return dsa_error(err, "page %u of rank %u cannot be moved to "
                                 "host memory because its last token was not "
                                 "computed", move[i].page, rank);
            }

            dsa_null_page_write(move[i].host, page);

        } else if (dsa_null_page_read(page, move[i].host) != DSA_OK) {
            return dsa_error(err, "page %u of rank %u cannot be moved from "
                             "host memory, which holds no page of \"backend "
                             "null\"", move[i].page, rank);
        }
    }

    null->moves[rank][way]++;

    return DSA_OK;
}


static int
dsa_null_moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank, int wait,
    uint64_t *calls, dsa_err_t *err)
{
    dsa_null_t  *null = b->data;

    assert(rank < b->ranks);

    *calls = null->moves[rank][way];

    return DSA_OK;
}


/*
 * Checks the pages before a prefill step that came from host memory, each of
 * them once, in the block table of a rank.  Decode steps are not checked,
 * because each of them would visit all pages of its sequence.
 */

static int
dsa_null_prefix(const dsa_null_t *null, const dsa_batch_seq_t *seq,
    uint32_t rank, const uint32_t *pages, dsa_err_t *err)
{
    uint32_t          i, n;
    uint64_t          previous;
    dsa_null_page_t  *page;

    if (seq->start >= seq->n_prompt) {
        return DSA_OK;
    }

    n = seq->start / DSA_PAGE_TOKENS;
    previous = 0;

    for (i = 0; i < n; i++) {
        page = dsa_null_page(null, rank, pages[i]);

        if (page->loaded) {
            if (page->chain != dsa_null_chain(previous, seq->tokens + (size_t) i
                                                        * DSA_PAGE_TOKENS))
            {
                return dsa_error(err, "page %u of rank %u came from host "
                                 "memory with other tokens than those of the "
                                 "sequence from position %u on", pages[i],
                                 rank, i * DSA_PAGE_TOKENS);
            }

            page->loaded = 0;
        }

        previous = page->chain;
    }

    return DSA_OK;
}


/*
 * Writes the "cache" of each page whose first token this step computes, in the
 * block table of a rank.
 */

static void
dsa_null_cache(const dsa_null_t *null, const dsa_batch_seq_t *seq,
    uint32_t rank, const uint32_t *pages)
{
    uint32_t          page, last, n, i;
    const uint32_t   *tokens;
    dsa_null_page_t  *p;

    page = seq->start / DSA_PAGE_TOKENS;
    last = (seq->start + seq->n_input - 1) / DSA_PAGE_TOKENS;

    if (seq->start % DSA_PAGE_TOKENS != 0) {
        page++;
    }

    for ( /* void */ ; page <= last; page++) {
        n = 0;

        if (page != 0) {
            tokens = seq->tokens + (size_t) (page - 1) * DSA_PAGE_TOKENS;
            n = dsa_null_page(null, rank, pages[page - 1])->before;

            for (i = 0; i < DSA_PAGE_TOKENS; i++) {
                n += dsa_null_plain(null, tokens[i]);
            }
        }

        p = dsa_null_page(null, rank, pages[page]);
        p->before = n;
        p->chain = 0;
        p->loaded = 0;
    }
}


/* Writes the chain of each page whose last token this step computes. */

static void
dsa_null_chains(const dsa_null_t *null, const dsa_batch_seq_t *seq,
    uint32_t rank, const uint32_t *pages)
{
    uint32_t  page, end;
    uint64_t  previous;

    page = seq->start / DSA_PAGE_TOKENS;
    end = (seq->start + seq->n_input) / DSA_PAGE_TOKENS;

    for ( /* void */ ; page < end; page++) {
        previous = page == 0
                   ? 0 : dsa_null_page(null, rank, pages[page - 1])->chain;

        dsa_null_page(null, rank, pages[page])->chain =
            dsa_null_chain(previous, seq->tokens + (size_t) page
                                     * DSA_PAGE_TOKENS);
    }
}


/* Samples the outputs of a sequence up to the first rejected draft. */

static void
dsa_null_sample(const dsa_null_t *null, dsa_batch_seq_t *seq,
    const dsa_model_config_t *config)
{
    uint32_t         i, accepted, position;
    dsa_sample_t    *sample;
    const uint32_t  *mask;

    mask = seq->mask;
    accepted = 0;

    for (i = 0; i <= seq->n_draft; i++) {
        sample = &seq->sample[i];
        position = dsa_batch_position(seq, i);
        sample->token = mask != NULL
                        ? dsa_null_masked(mask, config->vocab_size,
                                          &null->ends, seq->sampling, position)
                        : dsa_null_echo(null, seq, position,
                                        config->ends.id[0]);

        sample->token = dsa_null_biased(mask, config->vocab_size,
                                        &seq->biases, sample->token);

        if (mask != NULL) {
            mask += dsa_mask_words(config->vocab_size);
        }

        /* its probability is 1, so it is the only alternative */

        sample->logprob = 0;
        sample->n_top = seq->sampling->logprobs
                        && seq->sampling->top_logprobs != 0;

        if (sample->n_top != 0) {
            sample->top[0] = sample->token;
            sample->top_logprob[0] = 0;
        }

        accepted++;

        if (i < seq->n_draft && sample->token != seq->tokens[position]) {
            break;
        }
    }

    if (seq->n_draft != 0) {
        *seq->accepted = accepted;
    }
}


/*
 * Returns the token at a position after the prompt: token i of the answer is
 * plain token i of the prompt, modulo the number of plain tokens.
 */

static uint32_t
dsa_null_echo(const dsa_null_t *null, const dsa_batch_seq_t *seq,
    uint32_t position, uint32_t eos)
{
    uint32_t  i, n, want, low, high, middle;

    low = (seq->n_prompt - 1) / DSA_PAGE_TOKENS;
    n = dsa_null_page(null, seq->rank, seq->pages[low])->before;

    for (i = low * DSA_PAGE_TOKENS; i < seq->n_prompt; i++) {
        n += dsa_null_plain(null, seq->tokens[i]);
    }

    if (n == 0) {
        return eos;
    }

    want = (position - seq->n_prompt) % n;

    /* find the last page of the prompt with at most `want` tokens before it */

    high = low;
    low = 0;

    while (low < high) {
        middle = (low + high + 1) / 2;

        if (dsa_null_page(null, seq->rank, seq->pages[middle])->before
            <= want)
        {
            low = middle;

        } else {
            high = middle - 1;
        }
    }

    n = dsa_null_page(null, seq->rank, seq->pages[low])->before;

    for (i = low * DSA_PAGE_TOKENS; i < seq->n_prompt; i++) {
        if (!dsa_null_plain(null, seq->tokens[i])) {
            continue;
        }

        if (n++ == want) {
            return seq->tokens[i];
        }
    }

    return eos;
}


/* Sleeps until the next tick; a tick that was missed is not repeated. */

static void
dsa_null_pace(dsa_null_t *null)
{
    long             late;
    struct timespec  now;

    null->tick.tv_nsec += null->period;

    while (null->tick.tv_nsec >= DSA_NANOSECONDS) {
        null->tick.tv_nsec -= DSA_NANOSECONDS;
        null->tick.tv_sec++;
    }

    (void) clock_gettime(CLOCK_MONOTONIC, &now);

    late = now.tv_sec - null->tick.tv_sec;

    if (late > 0 || (late == 0 && now.tv_nsec >= null->tick.tv_nsec)) {
        null->tick = now;
        return;
    }

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &null->tick, NULL)
           == EINTR)
    {
        /* void */
    }
}


static void
dsa_null_close(dsa_backend_t *b)
{
    dsa_null_t  *null;

    null = b->data;

    free(null->special);
    free(null->page);
    free(null);
    free(b);
}
