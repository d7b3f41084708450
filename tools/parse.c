
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa parse: parses the text of a model's output into the message, or into
 * the deltas of a stream.
 *
 * A text that ends with the end token, and perhaps a newline, is complete.  Any
 * other text may have been cut off, so open arguments stay open.  A text does
 * not show which of its control tokens were sampled as tokens, so all names
 * count.
 */


#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_write.h"
#include "base/options.h"
#include "context/parse.h"
#include "tools/dsa.h"
#include "tools/family.h"


typedef struct {
    int         stream;
    int         thinking;
    uint32_t    calls;
    dsa_buf_t   content;        /* the inside of a JSON string, as the next */
    dsa_buf_t   reasoning;
    dsa_buf_t   tool_calls;     /* JSON; the last call is not closed yet */

    dsa_json_writer_t  writer;  /* of tool_calls */
} dsa_parse_message_t;


static int dsa_parse_stdin(dsa_parse_message_t *m,
    const dsa_family_t *family, size_t piece);
static int dsa_parse_stops(dsa_str_t *text,
    const dsa_control_tokens_t *tokens);
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
static void dsa_parse_call_begin(dsa_json_writer_t *w, uint32_t call,
    dsa_str_t name);
static void dsa_parse_call_end(dsa_json_writer_t *w);
static int dsa_parse_write(dsa_buf_t *b);


static const char  dsa_parse_usage[] =
    "usage: dsa parse [--family NAME] [--thinking] [--stream N]\n"
    "  Reads the text of a model's output from stdin and prints the message\n"
    "  as JSON.\n"
    "  --family NAME\n"
    "              the format of the output: deepseek (the default),\n"
    "              deepseek-v3.1, glm-4.7-flash, glm-5, glm-5.1, glm-5.2\n"
    "              or glm-5.3\n"
    "  --thinking  the prompt ended in <think>\n"
    "  --stream N  feed N bytes at a time, rounded up to whole characters,\n"
    "              and print the deltas, one a line\n";


int
dsa_cmd_parse(int argc, char **argv)
{
    int                  c, rc;
    char                *end;
    size_t               piece;
    const char          *name;
    const dsa_family_t  *family;
    dsa_parse_message_t  m;

    static const struct option  options[] = {
        { "family", required_argument, NULL, 'f' },
        { "thinking", no_argument, NULL, 't' },
        { "stream", required_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    memset(&m, 0, sizeof(dsa_parse_message_t));
    dsa_json_writer(&m.writer, &m.tool_calls);
    piece = SIZE_MAX;
    name = NULL;

    for ( ;; ) {
        c = dsa_option("dsa parse", argc, argv, "h", options);

        if (c == -1) {
            break;
        }

        switch (c) {

        case 'f':
            name = optarg;
            break;

        case 't':
            m.thinking = 1;
            break;

        case 's':
            errno = 0;
            piece = strtoul(optarg, &end, 10);

            if (errno != 0 || *end != '\0' || piece == 0
                || *optarg < '0' || *optarg > '9')
            {
                (void) fprintf(stderr, "dsa parse: --stream: \"%s\" is not a "
                               "number of bytes; expected 1 or more\n",
                               optarg);
                return 2;
            }

            m.stream = 1;
            break;

        case 'h':
            (void) printf("%s", dsa_parse_usage);
            return 0;

        default:
            return 2;
        }
    }

    if (optind != argc) {
        (void) fprintf(stderr, "%s", dsa_parse_usage);
        return 2;
    }

    family = dsa_option_family("dsa parse", name);

    if (family == NULL) {
        return 2;
    }

    rc = dsa_parse_stdin(&m, family, piece);

    dsa_buf_free(&m.content);
    dsa_buf_free(&m.reasoning);
    dsa_buf_free(&m.tool_calls);

    return rc;
}


static int
dsa_parse_stdin(dsa_parse_message_t *m, const dsa_family_t *family,
    size_t piece)
{
    int                  rc, complete;
    dsa_buf_t            text;
    dsa_str_t            s;
    dsa_parse_t         *p;

    memset(&text, 0, sizeof(dsa_buf_t));

    rc = 1;
    p = dsa_parse_create(family, m->thinking, 1, 0, dsa_parse_delta, m);

    if (p == NULL) {
        (void) fprintf(stderr, "dsa parse: out of memory\n");
        goto done;
    }

    if (dsa_parse_read(&text) != DSA_OK) {
        goto done;
    }

    s = dsa_str(text.data, text.len);
    complete = dsa_parse_stops(&s, &family->tokens);

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


/* Whether the output ends with the token that the model ends it with. */

static int
dsa_parse_stops(dsa_str_t *text, const dsa_control_tokens_t *tokens)
{
    size_t            end;
    uint32_t          i;
    const dsa_str_t  *name;

    end = text->len;

    if (end != 0 && text->data[end - 1] == '\n') {
        end--;
    }

    for (i = 0; i < tokens->n; i++) {
        name = &tokens->elts[i].name;

        if ((tokens->elts[i].marks & DSA_MARK_STOP) != 0 && end >= name->len
            && memcmp(text->data + end - name->len, name->data, name->len)
               == 0)
        {
            text->len = end - name->len;
            return 1;
        }
    }

    return 0;
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
        (void) fprintf(stderr, "dsa parse: out of memory\n");
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
        if (call == 0) {
            dsa_json_array(&m->writer);

        } else {
            dsa_parse_call_end(&m->writer);
        }

        dsa_parse_call_begin(&m->writer, call, text);
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
    dsa_buf_t          b;
    dsa_json_writer_t  w;

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_json_writer(&w, &b);
    dsa_json_object(&w);

    switch (what) {

    case DSA_DELTA_REASONING:
    case DSA_DELTA_CONTENT:
        dsa_json_key(&w, what == DSA_DELTA_CONTENT ? "content"
                                                   : "reasoning_content");
        dsa_json_string(&w, text);
        break;

    case DSA_DELTA_CALL:
        dsa_json_key(&w, "tool_calls");
        dsa_json_array(&w);
        dsa_parse_call_begin(&w, call, text);
        dsa_parse_call_end(&w);
        dsa_json_array_end(&w);
        break;

    case DSA_DELTA_ARGUMENTS:
        dsa_json_key(&w, "tool_calls");
        dsa_json_array(&w);
        dsa_json_object(&w);
        dsa_json_key(&w, "index");
        dsa_json_uint(&w, call);
        dsa_json_key(&w, "function");
        dsa_json_object(&w);
        dsa_json_key(&w, "arguments");
        dsa_json_string(&w, text);
        dsa_json_object_end(&w);
        dsa_json_object_end(&w);
        dsa_json_array_end(&w);
        break;
    }

    dsa_json_object_end(&w);

    return dsa_parse_write(&b);
}


static int
dsa_parse_print(dsa_parse_message_t *m)
{
    dsa_buf_t          b;
    dsa_json_writer_t  w;

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_json_writer(&w, &b);
    dsa_json_object(&w);
    dsa_json_key(&w, "role");
    dsa_json_stringz(&w, "assistant");

    dsa_json_key(&w, "content");
    dsa_json_string_begin(&w);
    dsa_buf_add(&b, m->content.data, m->content.len);
    dsa_json_string_end(&w);

    if (m->thinking) {
        dsa_json_key(&w, "reasoning_content");
        dsa_json_string_begin(&w);
        dsa_buf_add(&b, m->reasoning.data, m->reasoning.len);
        dsa_json_string_end(&w);
    }

    if (m->calls != 0) {
        dsa_parse_call_end(&m->writer);
        dsa_json_array_end(&m->writer);

        dsa_json_key(&w, "tool_calls");
        dsa_json_raw(&w, dsa_str(m->tool_calls.data, m->tool_calls.len));
    }

    dsa_json_object_end(&w);

    return dsa_parse_write(&b);
}


/* Writes a call up to the place where the text of its arguments goes. */

static void
dsa_parse_call_begin(dsa_json_writer_t *w, uint32_t call, dsa_str_t name)
{
    char  id[32];

    (void) snprintf(id, sizeof(id), "call_%02u", call);

    dsa_json_object(w);
    dsa_json_key(w, "index");
    dsa_json_uint(w, call);
    dsa_json_key(w, "id");
    dsa_json_stringz(w, id);
    dsa_json_key(w, "type");
    dsa_json_stringz(w, "function");
    dsa_json_key(w, "function");
    dsa_json_object(w);
    dsa_json_key(w, "name");
    dsa_json_string(w, name);
    dsa_json_key(w, "arguments");
    dsa_json_string_begin(w);
}


static void
dsa_parse_call_end(dsa_json_writer_t *w)
{
    dsa_json_string_end(w);
    dsa_json_object_end(w);
    dsa_json_object_end(w);
}


/* Prints a line and frees the buffer. */

static int
dsa_parse_write(dsa_buf_t *b)
{
    int  rc;

    dsa_buf_addz(b, "\n");

    rc = DSA_OK;

    if (b->failed || fwrite(b->data, 1, b->len, stdout) != b->len) {
        rc = DSA_ERROR;
    }

    dsa_buf_free(b);

    return rc;
}
