
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What an engine can send to nginx: a hello, or records of the event ring for
 * one request, which pass the border of nginx and then are used as nginx uses
 * them.
 *
 * The first byte of an input has flags: a hello follows (HELLO), or three bytes
 * about the request and its records, each of them a byte for the type, two for
 * the length, and the payload.
 */


#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "context/deepseek/deepseek.h"
#include "context/parse.h"
#include "engine/link_rollout.h"
#include "ngx_module/engine/ngx_http_dsa_hello_check.h"
#include "ngx_module/engine/ngx_http_dsa_record_check.h"


#define HELLO      1                /* in the first byte */
#define COUNT      2
#define LOGPROBS   4
#define SAMPLES    8
#define GRAMMAR    16
#define THINKING   32
#define TOOLS      64
#define BIAS       128

#define CONTEXT    5000
#define IDS        1000


typedef struct {
    dsa_link_submit_t        head;
    uint32_t                 resume;
    uint32_t                 stops;
    ngx_http_dsa_expect_t    expect;
    dsa_parse_t             *parser;    /* after ACCEPTED */
    uint32_t                 prompt;    /* tokens of ACCEPTED */
    uint32_t                 sent;      /* tokens of TOKENS */
    int                      ended;
} request_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_hello(const uint8_t *data, size_t size);
static void fuzz_records(uint8_t flags, const uint8_t *data, size_t size);
static void request_create(request_t *r, uint8_t flags, const uint8_t *data);
static void request_record(request_t *r, uint8_t flags, uint32_t type,
    const uint8_t *p, uint32_t length);
static void use_tokens(request_t *r, const uint8_t *p, uint32_t length);
static void use_done(request_t *r, const uint8_t *p);
static void use_rows(const uint8_t *p, uint32_t length);
static int delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text);
static void check_wrong(const ngx_http_dsa_wrong_t *wrong);
static void expect(int condition);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }

    if ((data[0] & HELLO) != 0) {
        fuzz_hello(data + 1, size - 1);

    } else {
        fuzz_records(data[0], data + 1, size - 1);
    }

    return 0;
}


/* What a good hello has is written to logs and JSON as it is. */

static void
fuzz_hello(const uint8_t *data, size_t size)
{
    size_t                 i, len;
    dsa_link_hello_t       hello;
    const dsa_family_t    *family;
    ngx_http_dsa_wrong_t   wrong;

    static const dsa_family_t  other = { .name = "other" };

    memset(&hello, 0, sizeof(hello));
    memcpy(&hello, data, size < sizeof(hello) ? size : sizeof(hello));

    if (ngx_http_dsa_hello_check(&hello, NULL, &family, &wrong) != 0) {
        check_wrong(&wrong);
        return;
    }

    len = strnlen(hello.model, sizeof(hello.model));
    expect(len != 0 && len < sizeof(hello.model));
    expect(dsa_utf8_prefix((uint8_t *) hello.model, len) == len);

    for (i = 0; i < len; i++) {
        expect((uint8_t) hello.model[i] >= 0x20 && hello.model[i] != 0x7f);
    }

    expect(hello.context_length > 1 && hello.page_tokens != 0
           && hello.ids != 0);
    expect(hello.temperature >= 0 && hello.temperature <= 2);
    expect(hello.top_p > 0 && hello.top_p <= 1);
    expect(memchr(hello.family, '\0', sizeof(hello.family)) != NULL
           && strcmp(hello.family, family->name) == 0);

    expect(ngx_http_dsa_hello_check(&hello, &other, &family, &wrong) == -1);
    check_wrong(&wrong);
}


static void
fuzz_records(uint8_t flags, const uint8_t *data, size_t size)
{
    uint8_t    *copy;
    uint32_t    type;
    uint16_t    length;
    request_t   r;

    if (size < 3) {
        return;
    }

    request_create(&r, flags, data);
    data += 3;
    size -= 3;

    while (size >= 3 && !r.ended) {
        type = data[0];
        memcpy(&length, data + 1, sizeof(length));
        data += 3;
        size -= 3;
        length = length < size ? length : (uint16_t) size;

        /* a block of its own, so that ASan sees what is read behind it */

        copy = malloc(length != 0 ? length : 1);
        expect(copy != NULL);
        memcpy(copy, data, length);
        data += length;
        size -= length;

        request_record(&r, flags, type, copy, length);
        free(copy);
    }

    dsa_parse_destroy(r.parser);
}


static void
request_create(request_t *r, uint8_t flags, const uint8_t *data)
{
    uint32_t  i;

    memset(r, 0, sizeof(request_t));

    r->head.max_tokens = data[0];
    r->head.sampling.top_logprobs = data[1] % (DSA_SAMPLE_MAX_TOP + 1);
    r->head.sampling.logprobs = (flags & LOGPROBS) != 0;
    r->head.flags = (flags & SAMPLES) != 0 ? DSA_LINK_SAMPLES : 0;
    r->stops = data[2] % (DSA_LINK_MAX_STOP + 1);
    r->resume = data[2] / 32;

    if (r->head.max_tokens != 0 && r->resume > r->head.max_tokens) {
        r->resume = r->head.max_tokens;
    }

    ngx_http_dsa_expect(&r->expect, (flags & COUNT) != 0 ? NULL : &r->head,
                        CONTEXT, IDS);

    for (i = 0; i < r->stops; i++) {
        ngx_http_dsa_expect_field(&r->expect, DSA_LINK_FIELD_STOP, 1);
    }

    for (i = 0; i < DSA_DEEPSEEK_TOKENS; i++) {
        ngx_http_dsa_expect_field(&r->expect, DSA_LINK_FIELD_QUERY, 1);
    }

    if (r->resume != 0) {
        ngx_http_dsa_expect_field(&r->expect, DSA_LINK_FIELD_RESUME,
                                  r->resume * sizeof(uint32_t));
    }

    if ((flags & GRAMMAR) != 0) {
        ngx_http_dsa_expect_field(&r->expect, DSA_LINK_FIELD_GRAMMAR, 1);
    }

    if ((flags & BIAS) != 0) {
        ngx_http_dsa_expect_field(&r->expect, DSA_LINK_FIELD_BIAS, 8);
    }
}


static void
request_record(request_t *r, uint8_t flags, uint32_t type, const uint8_t *p,
    uint32_t length)
{
    ngx_http_dsa_wrong_t   wrong;
    dsa_link_failure_t     failure;
    dsa_link_accepted_t    accepted;

    if (ngx_http_dsa_record_check(&r->expect, type, p, length, &wrong) != 0) {
        check_wrong(&wrong);
        r->ended = 1;
        return;
    }

    switch (type) {

    case DSA_LINK_ACCEPTED:
        memcpy(&accepted, p, sizeof(accepted));
        expect(r->parser == NULL && (flags & COUNT) == 0);
        expect(accepted.prompt_tokens < CONTEXT);
        expect(accepted.cached_tokens <= accepted.prompt_tokens);

        r->prompt = accepted.prompt_tokens;
        r->parser = dsa_parse_create(&dsa_deepseek, (flags & THINKING) != 0,
                                     (flags & TOOLS) != 0,
                                     accepted.vocabulary, delta, NULL);
        expect(r->parser != NULL);
        return;

    case DSA_LINK_TOKENS:
        use_tokens(r, p, length);
        return;

    case DSA_LINK_ROLLOUT:
        expect(r->parser != NULL && (flags & SAMPLES) != 0);
        use_rows(p, length);
        return;

    case DSA_LINK_DONE:
        use_done(r, p);
        r->ended = 1;
        return;

    case DSA_LINK_ERROR:
        memcpy(&failure, p, sizeof(failure));
        expect(sizeof(failure) + (uint64_t) failure.path_len
               + failure.text_len == length);
        expect(failure.path_len == 0 || (flags & GRAMMAR) != 0);
        expect(failure.code != DSA_LINK_E_BIAS || (flags & BIAS) != 0);
        r->ended = 1;
        return;

    default:
        expect(type == DSA_LINK_COUNTED && (flags & COUNT) != 0
               && length == sizeof(dsa_link_counted_t));
        r->ended = 1;
    }
}


/* As nginx reads them: each token's text, then the name of a control token. */

static void
use_tokens(request_t *r, const uint8_t *p, uint32_t length)
{
    size_t               n;
    uint32_t             i, k, last, name;
    const char          *text;
    dsa_link_token_t     token;
    dsa_link_tokens_t    tokens;
    dsa_link_logprob_t   entry;

    expect(r->parser != NULL);
    memcpy(&tokens, p, sizeof(tokens));

    text = (const char *) p + length - tokens.text_len;
    n = sizeof(tokens) + tokens.n_tokens * sizeof(token);

    for (i = 0, k = 0; tokens.logprobs && i < tokens.n_tokens; i++) {
        for (k = 0; k <= tokens.n_top; k++) {
            memcpy(&entry, p + n, sizeof(entry));
            n += sizeof(entry);
            expect(entry.token < IDS && entry.logprob - entry.logprob == 0);
        }
    }

    expect(p + n == (const uint8_t *) text);
    expect(tokens.n_top <= r->head.sampling.top_logprobs);

    last = 0;

    for (i = 0; i < tokens.n_tokens; i++) {
        memcpy(&token, p + sizeof(tokens) + i * sizeof(token), sizeof(token));
        expect(token.id < IDS);

        name = token.end - token.control;
        (void) dsa_parse_feed(r->parser, dsa_str(text + last, name - last));

        if (token.control != 0) {
            (void) dsa_parse_feed_control(r->parser,
                                          dsa_str(text + name, token.control));
        }

        last = token.end;
    }

    (void) dsa_parse_feed(r->parser,
                          dsa_str(text + last, tokens.text_len - last));

    /* what is billed */

    r->sent += tokens.n_tokens;
    expect((uint64_t) r->prompt + r->resume + r->sent <= CONTEXT);
    expect(r->head.max_tokens == 0
           || r->resume + r->sent <= r->head.max_tokens);
}


static void
use_done(request_t *r, const uint8_t *p)
{
    uint32_t         i;
    uint64_t         cached;
    dsa_link_done_t  done;

    memcpy(&done, p, sizeof(done));

    expect(done.prompt_tokens <= r->prompt);

    for (i = 0, cached = 0; i < DSA_TIERS; i++) {
        cached += done.cached_tokens[i];
    }

    expect(cached <= done.prompt_tokens);
    expect(done.completion_tokens >= r->sent);
    expect(done.completion_tokens == 0
           || r->prompt + r->resume + done.completion_tokens <= CONTEXT);
    expect(done.completion_tokens == 0 || r->head.max_tokens == 0
           || r->resume + done.completion_tokens <= r->head.max_tokens);
    expect(done.stop <= r->stops);

    if (done.finish == DSA_LINK_FINISH_STOP
        || done.finish == DSA_LINK_FINISH_LENGTH)
    {
        expect(r->parser != NULL);
        (void) dsa_parse_end(r->parser, done.finish == DSA_LINK_FINISH_STOP);
    }
}


static void
use_rows(const uint8_t *p, uint32_t length)
{
    uint32_t         at;
    dsa_link_row_t   row;

    for (at = 0; at < length; at += row.length) {
        memcpy(&row, p + at, sizeof(row));
        expect(row.length >= sizeof(row) && row.length <= length - at);
        expect(row.position < CONTEXT);
        expect(row.type == DSA_LINK_ROW_SAMPLE
               || (uint64_t) row.position + row.n <= CONTEXT);
    }
}


static int
delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    (void) ctx;
    (void) call;

    expect(what == DSA_DELTA_ARGUMENTS
           || dsa_utf8_prefix((const uint8_t *) text.data, text.len)
              == text.len);

    return DSA_OK;
}


/* A line of the log. */

static void
check_wrong(const ngx_http_dsa_wrong_t *wrong)
{
    size_t  i, len;

    len = strnlen(wrong->text, sizeof(wrong->text));

    expect(wrong->name != NULL && wrong->field != NULL);
    expect(len != 0 && len < sizeof(wrong->text) - 1);
    expect(strstr(wrong->text, "expected ") != NULL);

    for (i = 0; i < len; i++) {
        expect(wrong->text[i] >= 0x20 && wrong->text[i] < 0x7f);
    }
}


static void
expect(int condition)
{
    if (!condition) {
        abort();
    }
}
