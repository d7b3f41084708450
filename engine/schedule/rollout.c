
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/schedule/state.h"


/*
 * What a step reports of sequences beside their samples.  The memory belongs
 * to the step, because the backend writes to it until the step has ended, and
 * a sequence may end before.  It grows to the largest step that had rollouts.
 */

static int dsa_sched_reported(const dsa_sched_t *s, uint32_t i);
static void *dsa_sched_part_of(char **p, size_t size);


/* Bytes of the parts of an entry, each a multiple of 8. */

typedef struct {
    size_t              draw;
    size_t              kept;
    size_t              experts;
} dsa_rollout_sizes_t;


static dsa_rollout_sizes_t
dsa_sched_rollout_sizes(const dsa_sched_t *s, uint32_t i)
{
    uint32_t                n, reports;
    dsa_rollout_sizes_t     size;
    const dsa_batch_seq_t  *b;

    b = &s->next->batch[i];
    n = dsa_batch_outputs(b);
    reports = s->next->member[i]->reports;

    size.draw = n * sizeof(dsa_draw_t);
    size.kept = 0;
    size.experts = 0;

    if ((reports & DSA_REPORT_KEPT) != 0) {
        size.kept = (size_t) n * sizeof(uint32_t)
                    * dsa_mask_words(s->backend->config.vocab_size);
        size.kept = (size.kept + 7) / 8 * 8;
    }

    if ((reports & DSA_REPORT_EXPERTS) != 0) {
        size.experts = (size_t) b->n_input * s->routes * sizeof(uint16_t);
        size.experts = (size.experts + 7) / 8 * 8;
    }

    return size;
}


int
dsa_sched_rollouts(dsa_sched_t *s)
{
    char                 *p;
    size_t                total;
    uint32_t              i;
    dsa_rollout_t        *r;
    dsa_sched_step_t     *step;
    dsa_rollout_sizes_t   size;

    step = s->next;
    total = 0;

    for (i = 0; i < step->n_batch; i++) {
        if (dsa_sched_reported(s, i)) {
            size = dsa_sched_rollout_sizes(s, i);
            total += size.draw + size.kept + size.experts;
        }
    }

    if (total == 0) {
        return DSA_OK;
    }

    if (total > step->rollout_size) {
        free(step->rollout_memory);
        step->rollout_memory = malloc(total);
        step->rollout_size = step->rollout_memory != NULL ? total : 0;
    }

    if (step->rollout_memory == NULL) {
        return DSA_ERROR;
    }

    p = step->rollout_memory;

    for (i = 0; i < step->n_batch; i++) {
        if (!dsa_sched_reported(s, i)) {
            continue;
        }

        size = dsa_sched_rollout_sizes(s, i);
        r = &step->rollout[i];
        r->draw = dsa_sched_part_of(&p, size.draw);
        r->kept = dsa_sched_part_of(&p, size.kept);
        r->experts = dsa_sched_part_of(&p, size.experts);
        step->batch[i].rollout = r;
    }

    assert(p == (char *) step->rollout_memory + total);

    return DSA_OK;
}


/*
 * 1 if the step reports something of entry i: without outputs only experts, if
 * those of the prompt are requested.
 */

static int
dsa_sched_reported(const dsa_sched_t *s, uint32_t i)
{
    const dsa_seq_t  *seq;

    seq = s->next->member[i];

    return seq->rollout != NULL
           && (s->next->batch[i].sampling != NULL
               || (seq->reports & (DSA_REPORT_EXPERTS|DSA_REPORT_PROMPT))
                  == (DSA_REPORT_EXPERTS|DSA_REPORT_PROMPT));
}


static void *
dsa_sched_part_of(char **p, size_t size)
{
    void  *part;

    part = size != 0 ? *p : NULL;
    *p += size;

    return part;
}


void
dsa_sched_report(const dsa_sched_t *s, const dsa_seq_t *seq,
    const dsa_batch_seq_t *b, uint32_t n)
{
    dsa_sched_rollout_t  r;

    if (b->rollout == NULL) {
        return;
    }

    memset(&r, 0, sizeof(r));

    /* output i is that of input n_input - 1 - n_draft + i */

    r.start = b->start;
    r.n_input = n != 0 ? b->n_input - b->n_draft + n - 1 : b->n_input;
    r.experts = b->rollout->experts;
    r.n_samples = n;

    if (n != 0) {
        r.position = dsa_batch_position(b, 0);
        r.samples = b->sample;
        r.draw = b->rollout->draw;
        r.kept = b->rollout->kept;
        r.words = dsa_mask_words(s->backend->config.vocab_size);
    }

    seq->rollout(seq->owner, &r);
}
