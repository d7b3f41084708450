
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RECORD_CHECK_H_INCLUDED_
#define _NGX_HTTP_DSA_RECORD_CHECK_H_INCLUDED_


#include <stdint.h>

#include "engine/link_event.h"
#include "engine/link_request.h"
#include "engine/link_ring.h"

#include "ngx_http_dsa_wrong.h"


/*
 * The border between the engine and the worker: whether a record is one that
 * an engine may send now for a request.  What passes can be used without
 * another check: numbers are within their bounds, texts are UTF-8, and records
 * come in their order.  Plain C, so that tests and fuzzers use the same code.
 */

/* What was requested, and what has come so far. */

typedef struct {
    uint32_t    context;            /* tokens, of the engine */
    uint32_t    ids;                /* of the model: tokens are below */
    uint32_t    vocabulary;         /* bits that ACCEPTED may have */
    uint32_t    max_tokens;         /* as in SUBMIT */
    uint32_t    resume;             /* tokens of RESUME */
    uint32_t    sent;               /* tokens */
    uint32_t    prompt;             /* tokens, with ACCEPTED */
    uint8_t     stops;              /* STOP fields */
    uint8_t     top;                /* alternatives beside a logprob */
    unsigned    count:1;            /* COUNT was sent, not SUBMIT */
    unsigned    logprobs:1;
    unsigned    samples:1;          /* rows of a rollout */
    unsigned    grammar:1;
    unsigned    bias:1;
    unsigned    accepted:1;
} ngx_http_dsa_expect_t;


/*
 * What to expect after SUBMIT, or COUNT if head is NULL; context and ids: of
 * the hello.  The fields of the record follow by ngx_http_dsa_expect_field().
 */
void ngx_http_dsa_expect(ngx_http_dsa_expect_t *e,
    const dsa_link_submit_t *head, uint32_t context, uint32_t ids);
void ngx_http_dsa_expect_field(ngx_http_dsa_expect_t *e,
    dsa_link_field_e type, size_t len);

/*
 * Returns 1 if the context leaves less than max_tokens; after ACCEPTED.
 */
int ngx_http_dsa_expect_reduced(const ngx_http_dsa_expect_t *e);

/*
 * Checks a record; payload is a private copy.  0: it is good, and e is updated;
 * -1: it is not, and w has the reason.
 */
int ngx_http_dsa_record_check(ngx_http_dsa_expect_t *e, uint32_t type,
    const void *payload, uint32_t length, ngx_http_dsa_wrong_t *w);

/* The name of a type of records, for logs. */
const char *ngx_http_dsa_record_name(uint32_t type);


#endif /* _NGX_HTTP_DSA_RECORD_CHECK_H_INCLUDED_ */
