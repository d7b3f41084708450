
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/cpu/parts.h"
#include "kernels/row/norm.h"


/* A step of the draft layer as a job over its rows. */

typedef struct {
    dsa_model_t        *model;
    const dsa_rows_t   *seq;
    uint32_t            tokens;
} dsa_draft_step_t;


static int dsa_draft_check(const dsa_rows_t *seq, uint32_t n_seqs,
    uint32_t step, dsa_err_t *err);
static void dsa_draft_input(dsa_model_t *m, const dsa_rows_t *seq,
    uint32_t tokens);
static void dsa_draft_input_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_draft_keep_selection(dsa_model_t *m, const dsa_rows_t *seq,
    uint32_t n_seqs);


const float *
dsa_model_hidden(const dsa_model_t *m)
{
    return m->work.hidden;
}


int
dsa_model_draft(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    uint32_t step, float *hidden, float *logits, dsa_err_t *err)
{
    uint32_t  n, layer, tokens;

    if (dsa_draft_check(seq, n_seqs, step, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (dsa_model_input(m, seq, n_seqs, &n_seqs, &tokens, err) != DSA_OK) {
        return DSA_ERROR;
    }

    seq = m->work.seq;
    layer = m->config->num_hidden_layers;

    m->draft_shared = step != 0 && m->config->index_share_for_mtp_iteration
                      && m->config->draft.selection == DSA_SELECTION_OWN;

    dsa_model_embed(m, seq, n_seqs, tokens);
    dsa_draft_input(m, seq, tokens);
    dsa_model_report(m, "draft_in", layer, tokens, m->config->hidden_size,
                     m->work.x);

    dsa_model_decoder(m, layer, seq, n_seqs, tokens);

    m->draft_shared = 0;

    if (step == 0) {
        dsa_draft_keep_selection(m, seq, n_seqs);
    }

    n = dsa_model_last(m, seq, n_seqs);

    dsa_model_norm(m, m->draft.norm, n);

    if (hidden != NULL) {
        memcpy(hidden, m->work.x,
               (uint64_t) n * m->config->hidden_size * sizeof(float));
    }

    dsa_model_head(m, n, logits);

    return DSA_OK;
}


static int
dsa_draft_check(const dsa_rows_t *seq, uint32_t n_seqs, uint32_t step,
    dsa_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < n_seqs; i++) {
        if (seq[i].start == 0) {
            return dsa_error(err, "sequence %u of a step of the draft layer "
                             "begins at position 0; expected 1 or more", i);
        }

        if (step != 0 && seq[i].n != 1) {
            return dsa_error(err, "sequence %u of step %u of the draft layer "
                             "has %u tokens; expected one", i, step,
                             seq[i].n);
        }
    }

    return DSA_OK;
}


/* x = eh_proj [ enorm(x) | hnorm(hidden) ]. */

static void
dsa_draft_input(dsa_model_t *m, const dsa_rows_t *seq, uint32_t tokens)
{
    dsa_product_t     p;
    dsa_workspace_t  *w = &m->work;
    dsa_draft_step_t  step = { m, seq, tokens };

    dsa_model_rows(m, tokens, dsa_draft_input_piece, &step);

    p = (dsa_product_t) { w->x, w->draft_in, &m->draft.eh_proj, m->served };

    dsa_model_products(m, &p, 1, tokens);
}


static void
dsa_draft_input_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    float             *out;
    size_t             hidden;
    uint32_t           row, end;
    const float       *h;
    dsa_draft_step_t  *step = ctx;
    dsa_model_t       *m = step->model;
    dsa_workspace_t   *w = &m->work;
    const dsa_rows_t  *s;

    hidden = m->config->hidden_size;
    row = piece * DSA_ROW_TOKENS;
    end = step->tokens - row < DSA_ROW_TOKENS ? step->tokens
                                              : row + DSA_ROW_TOKENS;

    for ( /* void */ ; row < end; row++) {
        s = &step->seq[w->owner[row]];
        h = s->hidden + (w->position[row] - s->start) * hidden;
        out = w->draft_in + row * 2 * hidden;

        dsa_rmsnorm(out, 2 * hidden, w->x + row * hidden, hidden,
                    m->draft.enorm, 1, hidden, m->config->rms_norm_eps,
                    m->served);
        dsa_rmsnorm(out + hidden, 2 * hidden, h, hidden, m->draft.hnorm, 1,
                    hidden, m->config->rms_norm_eps, m->served);
    }
}


/*
 * Moves the selection of each sequence's last row to the front, where the next
 * steps have one row for each sequence.  A sequence that was cut into parts has
 * its last row in the last part.
 */

static void
dsa_draft_keep_selection(dsa_model_t *m, const dsa_rows_t *seq,
    uint32_t n_seqs)
{
    uint32_t          i, n, row;
    dsa_workspace_t  *w = &m->work;

    for (i = 0, n = 0, row = 0; i < n_seqs; i++) {
        row += seq[i].n;

        if (i + 1 < n_seqs && seq[i + 1].copies != NULL
            && seq[i + 1].copies == seq[i].copies)
        {
            continue;
        }

        memmove(w->selected + (uint64_t) n * m->topk,
                w->selected + (uint64_t) (row - 1) * m->topk,
                (uint64_t) w->n_selected[row - 1] * sizeof(int32_t));

        w->n_selected[n] = w->n_selected[row - 1];
        w->margin[n] = w->margin[row - 1];
        n++;
    }
}
