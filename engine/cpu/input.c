
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/cpu/parts.h"


static int dsa_input_check(dsa_model_t *m, const dsa_rows_t *seq,
    uint32_t n_seqs, dsa_err_t *err);
static int dsa_input_check_seq(const dsa_model_t *m, const dsa_rows_t *s,
    uint32_t i, dsa_err_t *err);
static int dsa_input_check_pages(const dsa_model_t *m, const dsa_rows_t *s,
    uint32_t i, const uint32_t *pages, dsa_err_t *err);
static uint32_t dsa_input_cut(const dsa_model_t *m, dsa_rows_t *parts,
    const dsa_rows_t *s);


int
dsa_model_input(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    uint32_t *n, uint32_t *tokens, dsa_err_t *err)
{
    uint32_t  i;

    if (dsa_input_check(m, seq, n_seqs, err) != DSA_OK) {
        return DSA_ERROR;
    }

    /*
     * Each part has at least one token, so there are at most max_tokens parts.
     */

    for (i = 0, *n = 0; i < n_seqs; i++) {
        if (seq[i].copies != NULL) {
            *n += dsa_input_cut(m, m->work.seq + *n, &seq[i]);

        } else if (dsa_model_own(m, seq[i].rank)) {
            m->work.seq[(*n)++] = seq[i];
        }
    }

    *tokens = m->tokens[m->hosts.host];

    return DSA_OK;
}


/* Sets m->tokens; DSA_ERROR with err if the step is not valid. */

static int
dsa_input_check(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    uint32_t  i;
    uint64_t  n;

    memset(m->tokens, 0, sizeof(m->tokens));
    n = 0;

    for (i = 0; i < n_seqs; i++) {
        if (dsa_input_check_seq(m, &seq[i], i, err) != DSA_OK) {
            return DSA_ERROR;
        }

        n += seq[i].n;
        m->tokens[seq[i].rank / m->own] += seq[i].n;
    }

    if (n == 0 || n > m->max_tokens) {
        return dsa_error(err, "a step has %llu tokens; expected 1 to %u",
                         (unsigned long long) n, m->max_tokens);
    }

    return DSA_OK;
}


static int
dsa_input_check_seq(const dsa_model_t *m, const dsa_rows_t *s, uint32_t i,
    dsa_err_t *err)
{
    uint32_t  j, rank;
    uint64_t  end;

    end = (uint64_t) s->start + s->n;

    if (s->n == 0 || s->n_logits > s->n) {
        return dsa_error(err, "sequence %u of a step has %u tokens and "
                         "requests %u logits; expected at least one token and "
                         "no more logits than tokens", i, s->n, s->n_logits);
    }

    if (end > m->config->max_position_embeddings) {
        return dsa_error(err, "sequence %u of a step ends at position %llu; "
                         "expected a position below %u", i,
                         (unsigned long long) end - 1,
                         m->config->max_position_embeddings);
    }

    if (s->rank >= m->ranks) {
        return dsa_error(err, "sequence %u of a step is on rank %u; expected "
                         "a rank below %u", i, s->rank, m->ranks);
    }

    /* tokens and pages of another host are not here, and not read */

    if (!dsa_model_own(m, s->rank)) {
        return DSA_OK;
    }

    for (j = 0; j < s->n; j++) {
        if (s->tokens[j] >= m->config->vocab_size) {
            return dsa_error(err, "sequence %u of a step has token %u at "
                             "position %u; expected an id below %u", i,
                             s->tokens[j], s->start + j,
                             m->config->vocab_size);
        }
    }

    if (s->copies == NULL) {
        return dsa_input_check_pages(m, s, i, s->pages, err);
    }

    for (rank = 0; rank < m->ranks; rank++) {
        if (dsa_input_check_pages(m, s, i, s->copies[rank], err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_input_check_pages(const dsa_model_t *m, const dsa_rows_t *s, uint32_t i,
    const uint32_t *pages, dsa_err_t *err)
{
    uint32_t  j;

    for (j = 0; (uint64_t) j * DSA_CACHE_TOKENS < (uint64_t) s->start + s->n;
         j++)
    {
        if (pages[j] >= m->pages) {
            return dsa_error(err, "entry %u of the block table of sequence %u "
                             "of a step is %u; expected a page below %u", j, i,
                             pages[j], m->pages);
        }
    }

    return DSA_OK;
}


/*
 * Cuts a sequence with copies into parts, and returns their number.  A rank
 * without tokens has no part.
 */

static uint32_t
dsa_input_cut(const dsa_model_t *m, dsa_rows_t *parts, const dsa_rows_t *s)
{
    uint32_t  i, n, first, end, logits, stride;

    stride = dsa_model_config_moe_layers(m->config) * m->router.k;
    logits = s->n - s->n_logits;        /* the first token with logits */

    for (i = 0, n = 0; i < m->ranks; i++) {
        first = (uint32_t) ((uint64_t) s->n * i / m->ranks);
        end = (uint32_t) ((uint64_t) s->n * (i + 1) / m->ranks);

        if (first == end) {
            continue;
        }

        parts[n].tokens = s->tokens + first;
        parts[n].start = s->start + first;
        parts[n].n = end - first;
        parts[n].rank = (s->rank + 1 + i) % m->ranks;
        parts[n].pages = s->copies[parts[n].rank];
        parts[n].copies = s->copies;
        parts[n].experts = s->experts == NULL ? NULL
                           : s->experts + (size_t) first * stride;
        parts[n].hidden = s->hidden == NULL ? NULL
                          : s->hidden
                            + (size_t) first * m->config->hidden_size;
        parts[n].n_logits = end > logits
                            ? end - (first > logits ? first : logits) : 0;
        n++;
    }

    return n;
}
