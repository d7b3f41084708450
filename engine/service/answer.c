
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/service/answer.h"


static void dsa_stop_prepare(dsa_stop_t *stop);
static int dsa_stop_byte(dsa_stop_t *stop, char c);
static void dsa_answer_ready(dsa_answer_t *a);
static int dsa_answer_reserve_token(dsa_answer_t *a);
static int dsa_answer_reserve(dsa_answer_t *a, size_t more);
static int dsa_answer_scan(dsa_answer_t *a, uint32_t from);


int
dsa_answer_init(dsa_answer_t *a, const dsa_str_t *stop, uint32_t n_stop)
{
    char      *p;
    size_t     size;
    uint32_t   i;

    memset(a, 0, sizeof(dsa_answer_t));

    if (n_stop == 0) {
        return DSA_OK;
    }

    size = n_stop * sizeof(dsa_stop_t);

    for (i = 0; i < n_stop; i++) {
        size += stop[i].len * (sizeof(uint16_t) + 1);
    }

    a->stop = calloc(1, size);

    if (a->stop == NULL) {
        return DSA_ERROR;
    }

    /* the tables, which are aligned, then the bytes */

    a->n_stop = n_stop;
    p = (char *) &a->stop[n_stop];

    for (i = 0; i < n_stop; i++) {
        a->stop[i].fail = (uint16_t *) (void *) p;
        a->stop[i].len = (uint16_t) stop[i].len;
        p += stop[i].len * sizeof(uint16_t);
    }

    for (i = 0; i < n_stop; i++) {
        memcpy(p, stop[i].data, stop[i].len);
        a->stop[i].text = p;
        p += stop[i].len;

        dsa_stop_prepare(&a->stop[i]);
    }

    return DSA_OK;
}


void
dsa_answer_free(dsa_answer_t *a)
{
    free(a->logprob);
    free(a->token);
    free(a->stop);
    free(a->text);

    memset(a, 0, sizeof(dsa_answer_t));
}


void
dsa_answer_reasoning(dsa_answer_t *a, uint32_t think_end)
{
    a->think_end = think_end;
    a->reasoning = 1;
}


int
dsa_answer_add(dsa_answer_t *a, uint32_t id, dsa_str_t bytes, int control)
{
    int                rc;
    uint32_t           from;
    unsigned           reasoning;
    dsa_link_token_t  *token;

    if (dsa_answer_reserve(a, 12 + 3 * (bytes.len + 4)) != DSA_OK
        || dsa_answer_reserve_token(a) != DSA_OK)
    {
        return DSA_ERROR;
    }

    from = a->len;

    if (control) {

        /* the name of a control token does not continue a character */

        a->len += (uint32_t) dsa_detokenize_end(&a->detokenizer,
                                                a->text + a->len);
    }

    a->len += (uint32_t) dsa_detokenize(&a->detokenizer, bytes,
                                        a->text + a->len);

    token = &a->token[a->n_tokens++];
    token->id = id;
    token->end = a->len;
    token->control = control ? (uint32_t) bytes.len : 0;

    reasoning = a->reasoning;

    if (control && id == a->think_end) {
        a->reasoning = 0;
    }

    rc = dsa_answer_scan(a, reasoning ? a->len : from);
    dsa_answer_ready(a);

    return rc;
}


dsa_link_logprob_t *
dsa_answer_logprobs(dsa_answer_t *a)
{
    return a->logprob + (size_t) (a->n_tokens - 1) * a->row;
}


void
dsa_answer_resume(dsa_answer_t *a)
{
    a->ready = 0;
    a->len = 0;
    a->n_ready = 0;
    a->n_tokens = 0;
}


int
dsa_answer_end(dsa_answer_t *a)
{
    uint32_t  from;

    if (dsa_answer_reserve(a, 12) != DSA_OK) {
        return DSA_ERROR;
    }

    from = a->len;
    a->len += (uint32_t) dsa_detokenize_end(&a->detokenizer, a->text + a->len);

    if (a->n_tokens != 0 && a->len != from) {

        /* the last token ended within a character, which became U+FFFD */

        a->token[a->n_tokens - 1].end = a->len;
    }

    if (dsa_answer_scan(a, a->reasoning ? a->len : from) == DSA_OK) {
        a->ready = a->len;
    }

    dsa_answer_ready(a);

    return DSA_OK;
}


void
dsa_answer_sent(dsa_answer_t *a, uint32_t n, uint32_t len)
{
    uint32_t           i;
    dsa_link_token_t  *token;

    a->ready -= len;
    a->len -= len;
    memmove(a->text, a->text + len, a->len);

    a->n_ready -= n;
    a->n_tokens -= n;

    if (n != 0) {
        memmove(a->token, a->token + n,
                a->n_tokens * sizeof(dsa_link_token_t));
    }

    if (n != 0 && a->row != 0) {
        memmove(a->logprob, a->logprob + (size_t) n * a->row,
                (size_t) a->n_tokens * a->row * sizeof(dsa_link_logprob_t));
    }

    for (i = 0; i < a->n_tokens; i++) {
        token = &a->token[i];
        token->end -= len;

        if (token->control > token->end) {
            token->control = 0;
        }
    }
}


/*
 * Counts the tokens that may be sent.  If a stop string has cut the text,
 * tokens that overlap it end at the new end of the text.
 */

static void
dsa_answer_ready(dsa_answer_t *a)
{
    uint32_t           i;
    dsa_link_token_t  *token;

    for (i = a->n_tokens; i != a->n_ready; i--) {
        token = &a->token[i - 1];

        if (token->end <= a->len) {
            break;
        }

        token->end = a->len;
        token->control = 0;
    }

    while (a->n_ready < a->n_tokens && a->token[a->n_ready].end <= a->ready) {
        a->n_ready++;
    }
}


static int
dsa_answer_reserve_token(dsa_answer_t *a)
{
    void      *p;
    uint32_t   size;

    /* resumed tokens have no logprobs, so the array may be allocated later */

    if (a->n_tokens < a->tokens_size && (a->row == 0 || a->logprob != NULL)) {
        return DSA_OK;
    }

    size = a->tokens_size == 0 ? 4 : a->tokens_size * 2;
    p = realloc(a->token, size * sizeof(dsa_link_token_t));

    if (p == NULL) {
        return DSA_ERROR;
    }

    a->token = p;

    if (a->row != 0) {
        p = realloc(a->logprob, (size_t) size * a->row
                                * sizeof(dsa_link_logprob_t));

        if (p == NULL) {
            return DSA_ERROR;
        }

        a->logprob = p;
    }

    a->tokens_size = size;

    return DSA_OK;
}


/*
 * Computes fail[i]: the length of the longest proper prefix of text[0 .. i]
 * that is also its suffix.
 */

static void
dsa_stop_prepare(dsa_stop_t *stop)
{
    uint16_t  i, k;

    k = 0;
    stop->fail[0] = 0;

    for (i = 1; i < stop->len; i++) {
        while (k != 0 && stop->text[i] != stop->text[k]) {
            k = stop->fail[k - 1];
        }

        if (stop->text[i] == stop->text[k]) {
            k++;
        }

        stop->fail[i] = k;
    }
}


static int
dsa_stop_byte(dsa_stop_t *stop, char c)
{
    uint16_t  k;

    k = stop->matched;

    while (k != 0 && stop->text[k] != c) {
        k = stop->fail[k - 1];
    }

    if (stop->text[k] == c) {
        k++;
    }

    stop->matched = k;

    return k == stop->len;
}


static int
dsa_answer_reserve(dsa_answer_t *a, size_t more)
{
    char    *text;
    size_t   size;

    size = a->len + more;

    if (size <= a->size) {
        return DSA_OK;
    }

    size += a->size / 2 + 64;

    if (size > UINT32_MAX) {
        return DSA_ERROR;
    }

    text = realloc(a->text, size);

    if (text == NULL) {
        return DSA_ERROR;
    }

    a->text = text;
    a->size = (uint32_t) size;

    return DSA_OK;
}


static int
dsa_answer_scan(dsa_answer_t *a, uint32_t from)
{
    uint32_t  i, j, held, longest;

    longest = 0;

    for (i = from; i < a->len; i++) {
        for (j = 0; j < a->n_stop; j++) {
            if (dsa_stop_byte(&a->stop[j], a->text[i])
                && a->stop[j].len > longest)
            {
                longest = a->stop[j].len;
                a->stopped = j + 1;
            }
        }

        if (longest != 0) {

            /*
             * The stop string may begin in text that was sent before a resume.
             */

            a->len = i + 1 > longest ? i + 1 - longest : 0;
            a->ready = a->len;
            return DSA_AGAIN;
        }
    }

    held = 0;

    for (j = 0; j < a->n_stop; j++) {
        if (a->stop[j].matched > held) {
            held = a->stop[j].matched;
        }
    }

    a->ready = a->len > held ? a->len - held : 0;

    return DSA_OK;
}
