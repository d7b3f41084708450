
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <float.h>
#include <string.h>

#include "engine/hosts/step.h"


/* A sample in the message, before its alternatives: ids, then logprobs. */

typedef struct {
    uint32_t            token;
    float               logprob;
    uint32_t            n_top;
} dsa_hosts_sample_t;


uint64_t
dsa_hosts_result_bytes(const dsa_hosts_limits_t *l)
{
    return (uint64_t) l->max_seqs * l->gpus
           * (sizeof(dsa_hosts_sample_t)
              + DSA_SAMPLE_MAX_TOP * (sizeof(uint32_t) + sizeof(float)));
}


void
dsa_hosts_result_write(dsa_buf_t *out, const dsa_hosts_limits_t *l,
    const dsa_hosts_step_t *s)
{
    uint32_t             i;
    const dsa_sample_t  *from;
    dsa_hosts_sample_t   to;

    for (i = 0; i < s->n; i++) {
        if (s->seq[i].sampling == NULL) {
            continue;
        }

        from = &s->sample[i];

        to.token = from->token;
        to.logprob = from->logprob;
        to.n_top = from->n_top;

        dsa_buf_add(out, &to, sizeof(to));
        dsa_buf_add(out, from->top, to.n_top * sizeof(uint32_t));
        dsa_buf_add(out, from->top_logprob, to.n_top * sizeof(float));
    }
}


int
dsa_hosts_result_read(const dsa_hosts_slot_t *slot, uint32_t n,
    const char *text, size_t bytes, const dsa_hosts_limits_t *l,
    const char *name, dsa_err_t *err)
{
    size_t              at;
    uint32_t            i, j;
    dsa_sample_t       *to;
    dsa_hosts_sample_t  from;

    at = 0;

    for (i = 0; i < n; i++) {
        if (slot[i].rank / l->gpus != l->host) {
            continue;
        }

        if (bytes - at < sizeof(from)) {
            return dsa_error(err, "%s has sent a result of %zu bytes, in which "
                             "samples are missing", name, bytes);
        }

        memcpy(&from, text + at, sizeof(from));
        at += sizeof(from);

        if (from.token >= l->vocab || from.n_top > slot[i].most
            || bytes - at < from.n_top * (sizeof(uint32_t) + sizeof(float)))
        {
            return dsa_error(err, "%s has sent token %u with %u alternatives; "
                             "expected a token below %u with at most %u",
                             name, from.token, from.n_top, l->vocab,
                             slot[i].most);
        }

        to = slot[i].sample;
        to->token = from.token;
        to->logprob = from.logprob;
        to->n_top = from.n_top;

        memcpy(to->top, text + at, from.n_top * sizeof(uint32_t));
        at += from.n_top * sizeof(uint32_t);
        memcpy(to->top_logprob, text + at, from.n_top * sizeof(float));
        at += from.n_top * sizeof(float);

        /* NaN is not refused, because a model of this host can have it, too */

        if (from.logprob > FLT_MAX) {
            return dsa_error(err, "%s has sent token %u with an infinite "
                             "logprob", name, from.token);
        }

        for (j = 0; j < from.n_top; j++) {
            if (to->top[j] >= l->vocab || to->top_logprob[j] > FLT_MAX) {
                return dsa_error(err, "%s has sent token %u with logprob %g as "
                                 "an alternative; expected one below %u, and a "
                                 "finite logprob", name, to->top[j],
                                 (double) to->top_logprob[j], l->vocab);
            }
        }
    }

    if (at != bytes) {
        return dsa_error(err, "%s has sent a result with %zu bytes behind its "
                         "samples; expected none", name, bytes - at);
    }

    return DSA_OK;
}
