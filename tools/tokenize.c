
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa tokenize and dsa detokenize: the token ids of a text, and the way back.
 *
 * Without --jsonl the text is any bytes, which both directions preserve.  With
 * it each line has a text as a JSON string, in which invalid UTF-8 becomes
 * U+FFFD.
 */


#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/json_write.h"
#include "base/options.h"
#include "engine/tokenizer/tokenizer.h"
#include "tools/dsa.h"


#define DSA_TOKENIZE_DEPTH  4


typedef struct {
    const char            *command;
    const char            *file;
    int                    special;
    int                    jsonl;
    dsa_tokenizer_t       *t;
    dsa_tokenizer_work_t  *w;
    dsa_tokens_t           tokens;
    dsa_buf_t              out;
} dsa_tokenize_t;


typedef int (*dsa_tokenize_pt)(dsa_tokenize_t *c, dsa_str_t in,
    dsa_err_t *err);


static int dsa_tokenize_main(int argc, char **argv, const char *usage,
    dsa_tokenize_pt convert);
static int dsa_tokenize_options(dsa_tokenize_t *c, int argc, char **argv,
    const char *usage);
static int dsa_tokenize_all(dsa_tokenize_t *c, dsa_tokenize_pt convert);
static int dsa_tokenize_lines(dsa_tokenize_t *c, dsa_tokenize_pt convert);
static int dsa_tokenize_text(dsa_tokenize_t *c, dsa_str_t in, dsa_err_t *err);
static int dsa_tokenize_ids(dsa_tokenize_t *c, dsa_str_t in, dsa_err_t *err);
static int dsa_tokenize_print(dsa_tokenize_t *c, const char *last);


static const char  dsa_tokenize_usage[] =
    "usage: dsa tokenize --tokenizer FILE [--special] [--jsonl]\n"
    "\n"
    "Reads a text on stdin and prints its token ids as a JSON array.  FILE is\n"
    "a tokenizer.json.\n"
    "\n"
    "  --special   recognize added tokens in the text\n"
    "  --jsonl     each line is a text as a JSON string; print a line for it\n";

static const char  dsa_detokenize_usage[] =
    "usage: dsa detokenize --tokenizer FILE [--jsonl]\n"
    "\n"
    "Reads token ids on stdin, as a JSON array, and prints their bytes.\n"
    "FILE is a tokenizer.json.\n"
    "\n"
    "  --jsonl     each line is an array; print a JSON string for it\n";


int
dsa_cmd_tokenize(int argc, char **argv)
{
    return dsa_tokenize_main(argc, argv, dsa_tokenize_usage,
                             dsa_tokenize_text);
}


int
dsa_cmd_detokenize(int argc, char **argv)
{
    return dsa_tokenize_main(argc, argv, dsa_detokenize_usage,
                             dsa_tokenize_ids);
}


static int
dsa_tokenize_main(int argc, char **argv, const char *usage,
    dsa_tokenize_pt convert)
{
    int             rc;
    dsa_err_t       err;
    dsa_tokenize_t  c;

    memset(&c, 0, sizeof(dsa_tokenize_t));

    c.command = argv[0];

    rc = dsa_tokenize_options(&c, argc, argv, usage);
    if (rc != -1) {
        return rc;
    }

    c.t = dsa_tokenizer_open(c.file, &err);
    if (c.t == NULL) {
        (void) fprintf(stderr, "dsa %s: %s\n", c.command, err.text);
        return 1;
    }

    c.w = dsa_tokenizer_work_create(c.t);

    if (c.w == NULL) {
        (void) fprintf(stderr, "dsa %s: out of memory\n", c.command);
        rc = 1;

    } else {
        rc = c.jsonl ? dsa_tokenize_lines(&c, convert)
                     : dsa_tokenize_all(&c, convert);
    }

    dsa_tokenizer_work_destroy(c.w);
    dsa_tokenizer_close(c.t);
    dsa_buf_free(&c.out);
    free(c.tokens.ids);

    return rc;
}


/* Returns -1 when the command is to run, else the exit status. */

static int
dsa_tokenize_options(dsa_tokenize_t *c, int argc, char **argv,
    const char *usage)
{
    int  opt;

    static const struct option  tokenize[] = {
        { "tokenizer", required_argument, NULL, 't' },
        { "jsonl", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { "special", no_argument, NULL, 's' },
        { NULL, 0, NULL, 0 }
    };

    static const struct option  detokenize[] = {
        { "tokenizer", required_argument, NULL, 't' },
        { "jsonl", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    for ( ;; ) {
        opt = dsa_option(usage == dsa_tokenize_usage ? "dsa tokenize"
                                                     : "dsa detokenize",
                         argc, argv, "h",
                         usage == dsa_tokenize_usage ? tokenize : detokenize);

        if (opt == -1) {
            break;
        }

        switch (opt) {

        case 't':
            c->file = optarg;
            break;

        case 'j':
            c->jsonl = 1;
            break;

        case 's':
            c->special = 1;
            break;

        case 'h':
            (void) printf("%s", usage);
            return 0;

        default:
            return 2;
        }
    }

    if (c->file == NULL || optind != argc) {
        (void) fprintf(stderr, "%s", usage);
        return 2;
    }

    return -1;
}


static int
dsa_tokenize_all(dsa_tokenize_t *c, dsa_tokenize_pt convert)
{
    int         rc;
    dsa_buf_t   in;
    dsa_err_t   err;

    memset(&in, 0, sizeof(dsa_buf_t));

    rc = dsa_read_stdin(c->command, &in);

    if (rc == 0 && convert(c, dsa_str(in.data, in.len), &err) != DSA_OK) {
        (void) fprintf(stderr, "dsa %s: %s\n", c->command, err.text);
        rc = 1;
    }

    if (rc == 0) {
        rc = dsa_tokenize_print(c, convert == dsa_tokenize_text ? "\n" : "");
    }

    dsa_buf_free(&in);

    return rc;
}


static int
dsa_tokenize_lines(dsa_tokenize_t *c, dsa_tokenize_pt convert)
{
    int        rc;
    char      *line;
    size_t     n, size;
    ssize_t    len;
    dsa_err_t  err;

    rc = 0;
    line = NULL;
    size = 0;

    for (n = 1; rc == 0; n++) {

        len = getline(&line, &size, stdin);

        if (len == -1) {
            if (ferror(stdin)) {
                (void) fprintf(stderr, "dsa %s: stdin: %s\n", c->command,
                               strerror(errno));
                rc = 1;
            }

            break;
        }

        if (convert(c, dsa_str(line, (size_t) len), &err) != DSA_OK) {
            (void) fprintf(stderr, "dsa %s: line %zu: %s\n", c->command, n,
                           err.text);
            rc = 1;
            break;
        }

        rc = dsa_tokenize_print(c, "\n");
    }

    free(line);

    return rc;
}


static int
dsa_tokenize_text(dsa_tokenize_t *c, dsa_str_t in, dsa_err_t *err)
{
    int           rc;
    uint32_t      i;
    dsa_json_t   *v;
    dsa_arena_t  *arena;

    arena = NULL;

    if (c->jsonl) {
        arena = dsa_arena_create(in.len * 2 + 65536);
        if (arena == NULL) {
            return dsa_error(err, "out of memory");
        }

        v = dsa_json_parse(arena, in.data, in.len, DSA_TOKENIZE_DEPTH, err);

        if (v == NULL || v->type != DSA_JSON_STRING) {
            dsa_arena_destroy(arena);

            return (v == NULL) ? DSA_ERROR
                               : dsa_error(err, "not a JSON string");
        }

        in = v->text;
    }

    c->tokens.n = 0;

    rc = c->special ? dsa_tokenize_special(c->t, c->w, in, UINT32_MAX,
                                           &c->tokens, err)
                    : dsa_tokenize(c->t, c->w, in, UINT32_MAX, &c->tokens,
                                   err);

    dsa_arena_destroy(arena);

    if (rc != DSA_OK) {
        return rc;
    }

    dsa_buf_addz(&c->out, "[");

    for (i = 0; i < c->tokens.n; i++) {
        dsa_buf_printf(&c->out, i == 0 ? "%u" : ", %u", c->tokens.ids[i]);
    }

    dsa_buf_addz(&c->out, "]");

    return DSA_OK;
}


static int
dsa_tokenize_ids(dsa_tokenize_t *c, dsa_str_t in, dsa_err_t *err)
{
    int                  rc;
    char                *text;
    size_t               n;
    int64_t              id;
    dsa_str_t            bytes;
    dsa_json_t          *v;
    dsa_arena_t         *arena;
    dsa_detokenizer_t    d;

    rc = DSA_ERROR;
    text = NULL;

    /* "0," takes two bytes of text and 80 of the arena */

    arena = dsa_arena_create(in.len * 64 + 65536);
    if (arena == NULL) {
        return dsa_error(err, "out of memory");
    }

    v = dsa_json_parse(arena, in.data, in.len, DSA_TOKENIZE_DEPTH, err);
    if (v == NULL) {
        goto done;
    }

    if (v->type != DSA_JSON_ARRAY) {
        (void) dsa_error(err, "not a JSON array; expected an array of ids");
        goto done;
    }

    memset(&d, 0, sizeof(dsa_detokenizer_t));

    if (c->jsonl) {
        dsa_buf_addz(&c->out, "\"");
    }

    n = 0;

    for (v = v->first; v != NULL; v = v->next, n++) {

        bytes.len = 0;

        if (dsa_json_int(v, &id) == DSA_OK && id >= 0
            && id < dsa_tokenizer_size(c->t))
        {
            bytes = dsa_token_bytes(c->t, (uint32_t) id);
        }

        if (bytes.len == 0) {
            (void) dsa_error(err, "element %zu, \"%.*s\", is not a token id "
                             "of %s", n, (int) (v->text.len < 40
                                                ? v->text.len : 40),
                             v->text.len != 0 ? v->text.data : "", c->file);
            goto done;
        }

        if (!c->jsonl) {
            dsa_buf_add(&c->out, bytes.data, bytes.len);
            continue;
        }

        free(text);

        text = malloc(3 * (bytes.len + 4));
        if (text == NULL) {
            (void) dsa_error(err, "out of memory");
            goto done;
        }

        dsa_json_escape(&c->out, dsa_str(text, dsa_detokenize(&d, bytes,
                                                              text)));
    }

    if (c->jsonl) {
        free(text);

        text = malloc(12);
        if (text == NULL) {
            (void) dsa_error(err, "out of memory");
            goto done;
        }

        dsa_json_escape(&c->out, dsa_str(text, dsa_detokenize_end(&d, text)));
        dsa_buf_addz(&c->out, "\"");
    }

    rc = DSA_OK;

done:

    free(text);
    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_tokenize_print(dsa_tokenize_t *c, const char *last)
{
    dsa_buf_addz(&c->out, last);

    if (c->out.failed) {
        (void) fprintf(stderr, "dsa %s: out of memory\n", c->command);
        return 1;
    }

    if (fwrite(c->out.data, 1, c->out.len, stdout) != c->out.len
        || fflush(stdout) != 0)
    {
        (void) fprintf(stderr, "dsa %s: stdout: %s\n", c->command,
                       strerror(errno));
        return 1;
    }

    c->out.len = 0;

    return 0;
}
