
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/logits.h"


/*
 * dsa logits --drafts: the steps of the draft layer behind each token.  Row i
 * has the cache entry i + 1, see dsa_model_draft().
 */

typedef struct {
    dsa_logits_t       *l;
    uint32_t            steps;
    uint32_t            rows;           /* most of a step */
    int                 trace;
    float              *hidden;         /* [a step's rows, hidden size] */
    float              *logits;         /* [a step's rows, vocabulary] */
    int32_t            *topk;           /* [index_topk] */
} dsa_draft_run_t;


static int dsa_drafts_known(dsa_draft_run_t *d, const dsa_logits_conf_t *conf,
    dsa_err_t *err);
static int dsa_drafts_forced(dsa_draft_run_t *d, uint32_t row,
    dsa_err_t *err);
static int dsa_drafts_free(dsa_draft_run_t *d, uint32_t row, dsa_err_t *err);
static int dsa_drafts_step(dsa_draft_run_t *d, uint32_t row, uint32_t step,
    uint32_t token, dsa_err_t *err);
static uint32_t dsa_drafts_best(const dsa_draft_run_t *d);
static void dsa_drafts_keep(dsa_draft_run_t *d, const char *name,
    uint32_t step, uint32_t rows, uint32_t at, uint32_t n, uint32_t cols,
    const void *data);
static void dsa_drafts_note(void *ctx, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data);
static void dsa_drafts_note_topk(dsa_draft_run_t *d, uint32_t rows,
    uint32_t cols, const int32_t *slot);


int
dsa_logits_drafts(dsa_logits_t *l, const dsa_logits_conf_t *conf,
    dsa_err_t *err)
{
    int              rc;
    uint32_t         i, rows;
    dsa_draft_run_t  d;

    if (l->n < 2) {
        return dsa_error(err, "--drafts with %u token; expected 2 or more, "
                         "because a draft follows two known tokens", l->n);
    }

    rows = conf->chunk < l->n ? conf->chunk : l->n;

    d.l = l;
    d.steps = conf->drafts;
    d.rows = rows;
    d.trace = conf->trace;
    d.hidden = calloc(rows, l->weights->config.hidden_size * sizeof(float));
    d.logits = calloc(rows, l->weights->config.vocab_size * sizeof(float));
    d.topk = calloc((size_t) l->weights->config.index_topk + 1,
                    sizeof(int32_t));

    rc = d.hidden != NULL && d.logits != NULL && d.topk != NULL
         ? dsa_drafts_known(&d, conf, err)
         : dsa_error(err, "out of memory for the drafts of %u tokens", l->n);

    /*
     * Later steps of a row overwrite the entries of the rows after it, which
     * rows before it do not read.
     */

    for (i = l->n - 1; i > 0 && rc == DSA_OK; i--) {
        rc = dsa_drafts_forced(&d, i - 1, err);

        if (rc == DSA_OK) {
            rc = dsa_drafts_free(&d, i - 1, err);
        }
    }

    free(d.hidden);
    free(d.logits);
    free(d.topk);

    return rc;
}


/* Step 1 of all rows, in chunks. */

static int
dsa_drafts_known(dsa_draft_run_t *d, const dsa_logits_conf_t *conf,
    dsa_err_t *err)
{
    uint32_t       row, vocab, hidden;
    dsa_rows_t     rows;
    dsa_logits_t  *l = d->l;

    vocab = l->weights->config.vocab_size;
    hidden = l->weights->config.hidden_size;

    memset(&rows, 0, sizeof(dsa_rows_t));

    rows.pages = l->pages;
    rows.copies = l->copies;

    for (row = 0; row < l->n - 1; row += rows.n) {
        rows.n = conf->chunk < l->n - 1 - row ? conf->chunk : l->n - 1 - row;
        rows.n_logits = rows.n;
        rows.start = row + 1;
        rows.tokens = l->tokens + row + 1;
        rows.hidden = l->hidden + (uint64_t) row * hidden;

        l->step = 1;
        l->done = row;

        dsa_logits_trace(l, d->trace ? dsa_drafts_note : NULL, d);

        if (dsa_logits_draft(l, &rows, 0, d->hidden, d->logits, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        dsa_drafts_keep(d, "draft_logits", 1, l->n - 1, row, rows.n, vocab,
                        d->logits);

        if (d->trace) {
            dsa_drafts_keep(d, "draft_hidden", 1, l->n - 1, row, rows.n,
                            hidden, d->hidden);
        }
    }

    return DSA_OK;
}


/* The later steps of a row with the tokens of the file. */

static int
dsa_drafts_forced(dsa_draft_run_t *d, uint32_t row, dsa_err_t *err)
{
    uint32_t       k, vocab, hidden;
    dsa_logits_t  *l = d->l;

    vocab = l->weights->config.vocab_size;
    hidden = l->weights->config.hidden_size;

    dsa_logits_trace(l, NULL, NULL);

    for (k = 1; k <= d->steps && row + k < l->n; k++) {
        if (k == 2 && d->trace) {
            dsa_logits_trace(l, dsa_drafts_note, d);
        }

        l->step = k;
        l->done = row;

        if (dsa_drafts_step(d, row, k, l->tokens[row + k], err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (k == 1) {
            continue;
        }

        dsa_drafts_keep(d, "draft_logits", k, l->n - k, row, 1, vocab,
                        d->logits);

        if (d->trace) {
            dsa_drafts_keep(d, "draft_hidden", k, l->n - k, row, 1, hidden,
                            d->hidden);
        }
    }

    return DSA_OK;
}


/* The steps of a row, each with the most probable token of the one before. */

static int
dsa_drafts_free(dsa_draft_run_t *d, uint32_t row, dsa_err_t *err)
{
    uint32_t       k, token;
    dsa_logits_t  *l = d->l;

    dsa_logits_trace(l, NULL, NULL);

    token = l->tokens[row + 1];

    for (k = 1; k <= d->steps; k++) {
        if (dsa_drafts_step(d, row, k, token, err) != DSA_OK) {
            return DSA_ERROR;
        }

        token = dsa_drafts_best(d);

        dsa_drafts_keep(d, "free_logits", k, l->n - 1, row, 1,
                        l->weights->config.vocab_size, d->logits);
        dsa_drafts_keep(d, "free_tokens", k, l->n - 1, row, 1, 1, &token);
    }

    return DSA_OK;
}


/*
 * Step k, from 1 on; d->hidden has g of step k - 1.  Step 1 repeats the row
 * before, as in a round of speculation with an accepted draft.
 */

static int
dsa_drafts_step(dsa_draft_run_t *d, uint32_t row, uint32_t k, uint32_t token,
    dsa_err_t *err)
{
    uint32_t       known[2];
    dsa_rows_t     rows;
    dsa_logits_t  *l = d->l;

    memset(&rows, 0, sizeof(dsa_rows_t));

    rows.tokens = &token;
    rows.start = row + k;
    rows.n = 1;
    rows.n_logits = 1;
    rows.pages = l->pages;
    rows.hidden = d->hidden;

    if (k == 1) {
        known[0] = l->tokens[row];
        known[1] = token;

        rows.n = row > 0 && d->rows > 1 ? 2 : 1;
        rows.start = row + 2 - rows.n;
        rows.tokens = known + 2 - rows.n;
        rows.hidden = l->hidden + (uint64_t) (rows.start - 1)
                                  * l->weights->config.hidden_size;
    }

    return dsa_logits_draft(l, &rows, k - 1, d->hidden, d->logits, err);
}


static uint32_t
dsa_drafts_best(const dsa_draft_run_t *d)
{
    uint32_t  i, best;

    best = 0;

    for (i = 1; i < d->l->weights->config.vocab_size; i++) {
        if (d->logits[i] > d->logits[best]) {
            best = i;
        }
    }

    return best;
}


static void
dsa_drafts_keep(dsa_draft_run_t *d, const char *name, uint32_t step,
    uint32_t rows, uint32_t at, uint32_t n, uint32_t cols, const void *data)
{
    char  full[DSA_LOGITS_NAME];

    (void) snprintf(full, sizeof(full), "%s.%u", name, step);

    dsa_logits_keep(d->l, full, rows, cols, at, n, cols, data);
}


static void
dsa_drafts_note(void *ctx, const char *name, uint32_t layer, uint32_t rows,
    uint32_t cols, const void *data)
{
    uint32_t          i;
    dsa_draft_run_t  *d = ctx;
    dsa_logits_t     *l = d->l;

    static const char  *kept[][2] = {
        { "draft_in", "draft_in" },
        { "hidden", "draft_out" },
        { "gap", "draft_gap" },
        { "expert", "draft_expert" }
    };

    if (strcmp(name, "topk") == 0) {
        dsa_drafts_note_topk(d, rows, cols, data);
        return;
    }

    for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (strcmp(name, kept[i][0]) == 0) {
            dsa_drafts_keep(d, kept[i][1], l->step, l->n - l->step, l->done,
                            rows, cols, data);
        }
    }
}


/* Entry p of the cache belongs to row p - 1. */

static void
dsa_drafts_note_topk(dsa_draft_run_t *d, uint32_t rows, uint32_t cols,
    const int32_t *slot)
{
    uint32_t       i, j, width;
    dsa_logits_t  *l = d->l;

    width = l->weights->config.index_topk;

    for (i = 0; i < rows; i++) {
        for (j = 0; j < width; j++) {
            d->topk[j] = j < cols ? slot[(uint64_t) i * cols + j] : -1;
            d->topk[j] -= d->topk[j] != -1;
        }

        dsa_drafts_keep(d, "draft_topk", l->step, l->n - l->step, l->done + i,
                        1, width, d->topk);
    }
}
