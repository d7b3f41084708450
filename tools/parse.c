
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa parse: a completion's text to the message, or to its deltas.
 *
 * A text that ends with the end token (and maybe a newline) is complete; any
 * other may have been cut off, so that what is open in it stays open.
 */


#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/json_write.h"
#include "context/control_tokens.h"
#include "context/parse.h"
#include "tools/dsa.h"


typedef struct {
    int         stream;
    int         thinking;
    uint32_t    calls;
    dsa_buf_t   content;        /* the inside of a JSON string, as the next */
    dsa_buf_t   reasoning;
    dsa_buf_t   tool_calls;     /* JSON, the last call not closed yet */
} dsa_parse_message_t;


static int dsa_parse_stdin(dsa_parse_message_t *m, size_t piece);
static int dsa_parse_read(dsa_buf_t *text);
static int dsa_parse_text(dsa_parse_t *p, dsa_str_t text, size_t piece,
    int complete);
static int dsa_parse_delta(void *ctx, dsa_delta_e what, uint32_t call,
    dsa_str_t text);
static void dsa_parse_collect(dsa_parse_message_t *m, dsa_delta_e what,
    uint32_t call, dsa_str_t text);
static int dsa_parse_print_delta(dsa_delta_e what, uint32_t call,
    dsa_str_t text);
static int dsa_parse_print(dsa_parse_message_t *m);
static void dsa_parse_call_head(dsa_buf_t *b, uint32_t call, dsa_str_t name);


static const char  dsa_parse_usage[] =
    "usage: dsa parse [--thinking] [--stream N]\n"
    "  a completion's text (stdin) to the message as JSON; --thinking: its\n"
    "  prompt ended in <think>; --stream feeds N bytes at a time, rounded up\n"
    "  to whole characters, and prints the deltas, a line each\n";


int
dsa_cmd_parse(int argc, char **argv)
{
    int                  c, rc;
    char                *end;
    size_t               piece;
    dsa_parse_message_t  m;

    static const struct option  options[] = {
        { "thinking", no_argument, NULL, 't' },
        { "stream", required_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    memset(&m, 0, sizeof(dsa_parse_message_t));
    piece = SIZE_MAX;

    for ( ;; ) {
        c = getopt_long(argc, argv, "", options, NULL);

        if (c == -1) {
            break;
        }

        switch (c) {

        case 't':
            m.thinking = 1;
            break;

        case 's':
            errno = 0;
            piece = strtoul(optarg, &end, 10);

            if (errno != 0 || *end != '\0' || piece == 0
                || *optarg < '0' || *optarg > '9')
            {
                (void) fprintf(stderr, "dsa parse: --stream \"%s\": expected "
                               "a number of bytes, at least 1\n", optarg);
                return 2;
            }

            m.stream = 1;
            break;

        case 'h':
            (void) printf("%s", dsa_parse_usage);
            return 0;

        default:
            (void) fprintf(stderr, "%s", dsa_parse_usage);
            return 2;
        }
    }

    if (optind != argc) {
        (void) fprintf(stderr, "%s", dsa_parse_usage);
        return 2;
    }

    rc = dsa_parse_stdin(&m, piece);

    dsa_buf_free(&m.content);
    dsa_buf_free(&m.reasoning);
    dsa_buf_free(&m.tool_calls);

    return rc;
}


static int
dsa_parse_stdin(dsa_parse_message_t *m, size_t piece)
{
    int           rc, complete;
    size_t        end;
    dsa_buf_t     text;
    dsa_str_t     s;
    dsa_parse_t  *p;

    static const dsa_str_t  eos = dsa_string(DSA_CONTROL_EOS);

    memset(&text, 0, sizeof(dsa_buf_t));

    rc = 1;
    p = dsa_parse_create(m->thinking, 1, 0, dsa_parse_delta, m);

    if (p == NULL) {
        (void) fprintf(stderr, "dsa parse: no memory\n");
        goto done;
    }

    if (dsa_parse_read(&text) != DSA_OK) {
        goto done;
    }

    s = dsa_str(text.data, text.len);
    end = s.len;

    if (end != 0 && s.data[end - 1] == '\n') {
        end--;
    }

    complete = end >= eos.len
               && memcmp(s.data + end - eos.len, eos.data, eos.len) == 0;

    if (complete) {
        s.len = end - eos.len;
    }

    if (dsa_parse_text(p, s, piece, complete) != DSA_OK
        || (!m->stream && dsa_parse_print(m) != DSA_OK)
        || fflush(stdout) != 0)
    {
        perror("dsa parse: stdout");
        goto done;
    }

    rc = 0;

done:

    dsa_parse_destroy(p);
    dsa_buf_free(&text);

    return rc;
}


static int
dsa_parse_read(dsa_buf_t *text)
{
    char    buf[65536];
    size_t  n;

    do {
        n = fread(buf, 1, sizeof(buf), stdin);
        dsa_buf_add(text, buf, n);
    } while (n != 0);

    if (ferror(stdin)) {
        perror("dsa parse: stdin");
        return DSA_ERROR;
    }

    if (text->failed) {
        (void) fprintf(stderr, "dsa parse: no memory\n");
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_parse_text(dsa_parse_t *p, dsa_str_t text, size_t piece, int complete)
{
    int     rc;
    size_t  n;

    while (text.len != 0) {
        n = piece < text.len ? piece : text.len;

        while (n < text.len && (text.data[n] & 0xc0) == 0x80) {
            n++;
        }

        rc = dsa_parse_feed(p, dsa_str(text.data, n));

        if (rc != DSA_OK) {
            return rc;
        }

        text.data += n;
        text.len -= n;
    }

    return dsa_parse_end(p, complete);
}


static int
dsa_parse_delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    dsa_parse_message_t  *m = ctx;

    if (m->stream) {
        return dsa_parse_print_delta(what, call, text);
    }

    dsa_parse_collect(m, what, call, text);

    return m->content.failed || m->reasoning.failed || m->tool_calls.failed
           ? DSA_ERROR : DSA_OK;
}


static void
dsa_parse_collect(dsa_parse_message_t *m, dsa_delta_e what, uint32_t call,
    dsa_str_t text)
{
    switch (what) {

    case DSA_DELTA_REASONING:
        dsa_json_escape(&m->reasoning, text);
        break;

    case DSA_DELTA_CONTENT:
        dsa_json_escape(&m->content, text);
        break;

    case DSA_DELTA_CALL:
        dsa_buf_addz(&m->tool_calls, call == 0 ? "" : "\"}},");
        dsa_parse_call_head(&m->tool_calls, call, text);
        m->calls = call + 1;
        break;

    case DSA_DELTA_ARGUMENTS:
        dsa_json_escape(&m->tool_calls, text);
        break;
    }
}


static int
dsa_parse_print_delta(dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    int        rc;
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));

    switch (what) {

    case DSA_DELTA_REASONING:
        dsa_buf_addz(&b, "{\"reasoning_content\":\"");
        dsa_json_escape(&b, text);
        dsa_buf_addz(&b, "\"}\n");
        break;

    case DSA_DELTA_CONTENT:
        dsa_buf_addz(&b, "{\"content\":\"");
        dsa_json_escape(&b, text);
        dsa_buf_addz(&b, "\"}\n");
        break;

    case DSA_DELTA_CALL:
        dsa_buf_addz(&b, "{\"tool_calls\":[");
        dsa_parse_call_head(&b, call, text);
        dsa_buf_addz(&b, "\"}}]}\n");
        break;

    case DSA_DELTA_ARGUMENTS:
        dsa_buf_printf(&b, "{\"tool_calls\":[{\"index\":%u,\"function\":"
                       "{\"arguments\":\"", call);
        dsa_json_escape(&b, text);
        dsa_buf_addz(&b, "\"}}]}\n");
        break;
    }

    rc = DSA_OK;

    if (b.failed || fwrite(b.data, 1, b.len, stdout) != b.len) {
        rc = DSA_ERROR;
    }

    dsa_buf_free(&b);

    return rc;
}


static int
dsa_parse_print(dsa_parse_message_t *m)
{
    int        rc;
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, "{\"role\":\"assistant\",\"content\":\"");
    dsa_buf_add(&b, m->content.data, m->content.len);
    dsa_buf_addz(&b, "\"");

    if (m->thinking) {
        dsa_buf_addz(&b, ",\"reasoning_content\":\"");
        dsa_buf_add(&b, m->reasoning.data, m->reasoning.len);
        dsa_buf_addz(&b, "\"");
    }

    if (m->calls != 0) {
        dsa_buf_addz(&b, ",\"tool_calls\":[");
        dsa_buf_add(&b, m->tool_calls.data, m->tool_calls.len);
        dsa_buf_addz(&b, "\"}}]");
    }

    dsa_buf_addz(&b, "}\n");

    rc = DSA_OK;

    if (b.failed || fwrite(b.data, 1, b.len, stdout) != b.len) {
        rc = DSA_ERROR;
    }

    dsa_buf_free(&b);

    return rc;
}


/* The beginning of a call, up to where its arguments' text goes. */

static void
dsa_parse_call_head(dsa_buf_t *b, uint32_t call, dsa_str_t name)
{
    dsa_buf_printf(b, "{\"index\":%u,\"id\":\"call_%02u\","
                   "\"type\":\"function\",\"function\":{\"name\":\"", call,
                   call);
    dsa_json_escape(b, name);
    dsa_buf_addz(b, "\",\"arguments\":\"");
}
