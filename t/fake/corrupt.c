
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include "engine/link_rollout.h"
#include "t/fake/fake.h"


static void
corrupt_token(dsa_link_ring_t *ring, uint64_t id,
    const dsa_link_tokens_t *tokens, const dsa_link_token_t *token)
{
    char  *p;

    p = dsa_link_reserve(ring, DSA_LINK_TOKENS, id,
                         sizeof(dsa_link_tokens_t) + sizeof(dsa_link_token_t)
                         + 4);

    memcpy(p, tokens, sizeof(dsa_link_tokens_t));
    memcpy(p + sizeof(dsa_link_tokens_t), token, sizeof(dsa_link_token_t));
    memcpy(p + sizeof(dsa_link_tokens_t) + sizeof(dsa_link_token_t), "text",
           4);
}


/*
 * The fields of records that a script can set.  A record is good for the
 * request otherwise, in the state in which it is.  "length" is added to the
 * length of the record, but of a rollout it is that of its row; "text" is the
 * first byte of the text.
 */

#define FIELD(record, type, part, field)                                      \
    { record, #field, offsetof(type, field), part,                            \
      sizeof(((type *) NULL)->field) }

#define TIER(name, tier)                                                      \
    { "done", name, offsetof(dsa_link_done_t, cached_tokens[tier]), 0,        \
      sizeof(uint32_t) }

typedef struct {
    const char    *record;
    const char    *name;
    size_t         offset;
    unsigned       part;        /* 0: the head; 1: a token; 2: a logprob */
    size_t         size;
} field_t;

static const field_t  fields[] = {
    FIELD("accepted", dsa_link_accepted_t, 0, prompt_tokens),
    FIELD("accepted", dsa_link_accepted_t, 0, cached_tokens),
    FIELD("accepted", dsa_link_accepted_t, 0, vocabulary),
    FIELD("accepted", dsa_link_accepted_t, 0, conditions),
    FIELD("accepted", dsa_link_accepted_t, 0, schemas),
    FIELD("tokens", dsa_link_tokens_t, 0, n_tokens),
    FIELD("tokens", dsa_link_tokens_t, 0, text_len),
    FIELD("tokens", dsa_link_tokens_t, 0, logprobs),
    FIELD("tokens", dsa_link_tokens_t, 0, n_top),
    FIELD("tokens", dsa_link_token_t, 1, id),
    FIELD("tokens", dsa_link_token_t, 1, end),
    FIELD("tokens", dsa_link_token_t, 1, control),
    FIELD("tokens", dsa_link_logprob_t, 2, token),
    FIELD("tokens", dsa_link_logprob_t, 2, logprob),
    FIELD("tokens", dsa_link_logprob_t, 2, len),
    FIELD("rollout", dsa_link_row_t, 0, length),
    FIELD("rollout", dsa_link_row_t, 0, type),
    FIELD("rollout", dsa_link_row_t, 0, form),
    FIELD("rollout", dsa_link_row_t, 0, position),
    FIELD("rollout", dsa_link_row_t, 0, n),
    FIELD("done", dsa_link_done_t, 0, finish),
    FIELD("done", dsa_link_done_t, 0, prompt_tokens),
    FIELD("done", dsa_link_done_t, 0, completion_tokens),
    TIER("gpu_tokens", DSA_TIER_GPU),
    TIER("host_tokens", DSA_TIER_HOST),
    TIER("redis_tokens", DSA_TIER_REDIS),
    FIELD("done", dsa_link_done_t, 0, stop),
    FIELD("done", dsa_link_done_t, 0, draft_tokens),
    FIELD("done", dsa_link_done_t, 0, accepted_tokens),
    FIELD("error", dsa_link_failure_t, 0, code),
    FIELD("error", dsa_link_failure_t, 0, path_len),
    FIELD("error", dsa_link_failure_t, 0, text_len),
    FIELD("error", dsa_link_failure_t, 0, more),
    FIELD("error", dsa_link_failure_t, 0, reserved),
    FIELD("counted", dsa_link_counted_t, 0, prompt_tokens),
    FIELD("counted", dsa_link_counted_t, 0, more)
};

static const char  types[] =
    "pad submit accepted tokens done error count counted rollout";


/* Writes the good record; returns its length.  part: offsets of its parts. */

static size_t
good_record(char *p, const request_t *r, const char *record, size_t part[3])
{
    size_t                 size;
    dsa_link_row_t         row;
    dsa_link_done_t        done;
    dsa_link_token_t       token;
    dsa_link_tokens_t      tokens;
    dsa_link_counted_t     counted;
    dsa_link_failure_t     failure;
    dsa_link_logprob_t     entry;
    dsa_link_accepted_t    accepted;

    memset(&row, 0, sizeof(row));
    memset(&done, 0, sizeof(done));
    memset(&token, 0, sizeof(token));
    memset(&tokens, 0, sizeof(tokens));
    memset(&counted, 0, sizeof(counted));
    memset(&failure, 0, sizeof(failure));
    memset(&entry, 0, sizeof(entry));
    memset(&accepted, 0, sizeof(accepted));

#define PUT(what)                                                             \
    memcpy(p + size, &what, sizeof(what));                                    \
    size += sizeof(what)

    size = 0;
    memset(part, 0, 3 * sizeof(size_t));

    if (strcmp(record, "accepted") == 0) {
        accepted.prompt_tokens = r->prompt;
        accepted.cached_tokens = r->cached;
        PUT(accepted);

    } else if (strcmp(record, "tokens") == 0) {
        tokens.n_tokens = 1;
        tokens.text_len = 4;
        tokens.logprobs = r->logprobs;
        tokens.n_top = 0;
        PUT(tokens);

        part[1] = size;
        token.end = 4;
        PUT(token);

        if (r->logprobs) {
            part[2] = size;
            entry.logprob = -1;
            PUT(entry);
        }

        memcpy(p + size, "t\xc3\xa9t", 4);
        size += 4;

    } else if (strcmp(record, "rollout") == 0) {
        row.length = sizeof(row) + sizeof(uint32_t);
        row.type = DSA_LINK_ROW_PROMPT;
        row.n = 1;
        PUT(row);
        size += sizeof(uint32_t);

    } else if (strcmp(record, "done") == 0) {
        done.finish = DSA_LINK_FINISH_STOP;
        done.prompt_tokens = r->prompt;
        done.cached_tokens[DSA_TIER_GPU] = r->cached;
        done.completion_tokens = r->sent;
        PUT(done);

    } else if (strcmp(record, "counted") == 0) {
        counted.prompt_tokens = 1;
        PUT(counted);

    } else {
        failure.code = DSA_LINK_E_INTERNAL;
        failure.text_len = 4;
        PUT(failure);
        memcpy(p + size, "text", 4);
        size += 4;
    }

#undef PUT

    return size;
}


/* "TYPE FIELD NUMBER" */

int
corrupt_record(session_t *s, const request_t *r, const char *line)
{
    char      *p, copy[4096], record[32], field[32], number[32];
    size_t     i, n, size, part[3];
    float      real;
    uint32_t   type, value;

    if (sscanf(line, "%31s %31s %31s", record, field, number) != 3) {
        print_event("unknown record %s", line);
        return 1;
    }

    for (type = 1, n = 0; types[n] != '\0'; type++) {
        if (strncmp(types + n, record, strlen(record)) == 0
            && strchr(" ", types[n + strlen(record)]) != NULL)
        {
            break;
        }

        n += strcspn(types + n, " ");
        n += strspn(types + n, " ");
    }

    memset(copy, 0, sizeof(copy));
    size = good_record(copy, r, record, part);
    value = (uint32_t) strtoul(number, NULL, 0);
    real = strtof(number, NULL);

    if (strcmp(field, "length") == 0 && strcmp(record, "rollout") != 0) {
        size += (size_t) (int32_t) value;

    } else if (strcmp(field, "text") == 0) {
        copy[size - 4] = (char) value;

    } else {
        for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
            if (strcmp(fields[i].record, record) == 0
                && strcmp(fields[i].name, field) == 0)
            {
                p = copy + part[fields[i].part] + fields[i].offset;

                if (strcmp(field, "logprob") == 0) {
                    memcpy(p, &real, sizeof(real));

                } else {
                    memcpy(p, &value, fields[i].size);
                }
            }
        }
    }

    p = dsa_link_reserve(&s->link.event, type, r->id, size);

    if (p == NULL) {
        die("dsa_link_reserve");
    }

    memcpy(p, copy, size);

    return 1;
}


/* Corrupts a ring in the given way; the worker must survive it. */

void
corrupt(session_t *s, const char *kind)
{
    void                *p;
    uint32_t             i;
    uint64_t             id;
    dsa_link_ring_t     *ev = &s->link.event;
    dsa_link_done_t      done;
    dsa_link_token_t     token;
    dsa_link_tokens_t    tokens;

    memset(&done, 0, sizeof(done));
    memset(&token, 0, sizeof(token));
    memset(&tokens, 0, sizeof(tokens));
    id = 0;

    if (strcmp(kind, "head") == 0) {            /* beyond the ring */
        atomic_store(&ev->shared->head, ev->own + ev->size * 2 + 8);

    } else if (strcmp(kind, "odd") == 0) {      /* between records */
        atomic_store(&ev->shared->head, ev->own + 3);

    } else if (strcmp(kind, "length") == 0) {   /* longer than written */
        p = dsa_link_reserve(ev, DSA_LINK_DONE, 0, sizeof(done));
        ((dsa_link_record_t *) p - 1)->length = 0xfffffff0;
        dsa_link_commit(ev);

    } else if (strcmp(kind, "type") == 0) {
        (void) dsa_link_reserve(ev, 77, 0, 8);
        dsa_link_commit(ev);

    } else if (strcmp(kind, "slot") == 0) {     /* no such slot */
        p = dsa_link_reserve(ev, DSA_LINK_DONE, dsa_link_id(1, 0xffffff),
                             sizeof(done));
        memcpy(p, &done, sizeof(done));
        dsa_link_commit(ev);

    } else if (strcmp(kind, "tail") == 0) {     /* of the submit ring */
        atomic_store(&s->link.submit.shared->tail, 12345);

    } else {                                    /* of the first request */
        for (i = 0; i < fake.hello.slots; i++) {
            if (s->requests[i].script != NULL) {
                id = s->requests[i].id;
                break;
            }
        }

        if (strcmp(kind, "huge") == 0) {      /* all that remains of the ring */
            p = dsa_link_reserve(ev, DSA_LINK_TOKENS, id, sizeof(tokens));
            ((dsa_link_record_t *) p - 1)->length =
                (uint32_t) (ev->size - ev->own - sizeof(dsa_link_record_t));
            ev->pending = ev->size;

        } else if (strcmp(kind, "short") == 0) {    /* a truncated payload */
            (void) dsa_link_reserve(ev, DSA_LINK_DONE, id, 4);

        } else if (strcmp(kind, "other") == 0) {    /* of another length */
            p = dsa_link_reserve(ev, DSA_LINK_DONE, id, 32);
            memset(p, 0, 32);

        } else if (strcmp(kind, "count") == 0) {  /* more than in the payload */
            tokens.n_tokens = 0x40000000;
            p = dsa_link_reserve(ev, DSA_LINK_TOKENS, id, sizeof(tokens));
            memcpy(p, &tokens, sizeof(tokens));

        } else if (strcmp(kind, "ends") == 0) {     /* beyond the text */
            tokens.n_tokens = 1;
            tokens.text_len = 4;
            token.end = 9;
            corrupt_token(ev, id, &tokens, &token);

        } else if (strcmp(kind, "control") == 0) {  /* before the text */
            tokens.n_tokens = 1;
            tokens.text_len = 4;
            token.end = 4;
            token.control = 5;
            corrupt_token(ev, id, &tokens, &token);

        } else if (strcmp(kind, "stale") == 0) {    /* harmless: an old id */
            p = dsa_link_reserve(ev, DSA_LINK_DONE, id - (1ULL << 32),
                                 sizeof(done));
            memcpy(p, &done, sizeof(done));

        } else {
            print_event("unknown corruption %s", kind);
            return;
        }

        dsa_link_commit(ev);
    }

    wake(s);
}
