
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A tokenizer of a few tokens, for the tests of engine/tokenizer/, and the
 * pre-tokenizers of tokenizer.json that they use.
 */


#ifndef _T_TOKENIZER_H_INCLUDED_
#define _T_TOKENIZER_H_INCLUDED_


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/json_write.h"
#include "engine/tokenizer/tokenizer.h"


#define BYTE_LEVEL  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"     \
                    "\"trim_offsets\":true,\"use_regex\":false}"

#define GPT2        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"     \
                    "\"trim_offsets\":true,\"use_regex\":true}"

#define SPLIT(pattern, behavior, invert)                                      \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","          \
    "\"pattern\":" pattern ",\"behavior\":\"" behavior "\",\"invert\":"       \
    invert "}," BYTE_LEVEL "]}"

#define REGEX(text)  "{\"Regex\":\"" text "\"}"

#define DEEPSEEK                                                              \
    "{\"type\":\"Sequence\",\"pretokenizers\":["                              \
    "{\"type\":\"Split\",\"pattern\":" REGEX("\\\\p{N}{1,3}")                 \
    ",\"behavior\":\"Isolated\",\"invert\":false},"                           \
    "{\"type\":\"Split\",\"pattern\":"                                        \
    REGEX("[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+")                 \
    ",\"behavior\":\"Isolated\",\"invert\":false},"                           \
    "{\"type\":\"Split\",\"pattern\":"                                        \
    REGEX("[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+" \
          "|[^\\\\r\\\\n\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+"        \
          "| ?[\\\\p{P}\\\\p{S}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+"           \
          "|\\\\s+(?!\\\\S)|\\\\s+")                                          \
    ",\"behavior\":\"Isolated\",\"invert\":false}," BYTE_LEVEL "]}"


typedef struct {
    dsa_tokenizer_t       *t;
    dsa_tokenizer_work_t  *w;
    dsa_tokens_t           out;
    dsa_err_t              err;
} fixture_t;


/* GPT-2's byte-level alphabet: the character of a byte, in UTF-8. */

static inline void
add_byte(dsa_buf_t *b, uint8_t byte)
{
    char      c[4];
    uint32_t  i, n;

    n = 256;

    for (i = 0; i <= byte; i++) {
        if (i < 0x21 || (i > 0x7e && i < 0xa1) || i == 0xad) {
            n++;
        }
    }

    n = (byte < 0x21 || (byte > 0x7e && byte < 0xa1) || byte == 0xad)
        ? n - 1 : byte;

    if (n < 0x80) {
        c[0] = (char) n;
        dsa_json_escape(b, dsa_str(c, 1));
        return;
    }

    c[0] = (char) (0xc0 | n >> 6);
    c[1] = (char) (0x80 | (n & 0x3f));
    dsa_buf_add(b, c, 2);
}


static inline void
add_bytes(dsa_buf_t *b, dsa_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        add_byte(b, (uint8_t) s.data[i]);
    }
}


static inline void
load(fixture_t *f, dsa_buf_t *json)
{
    assert_int_equal(json->failed, 0);

    memset(f, 0, sizeof(fixture_t));

    f->t = dsa_tokenizer_read("test", json->data, json->len, &f->err);

    if (f->t == NULL) {
        print_error("%s\n", f->err.text);
    }

    assert_non_null(f->t);

    f->w = dsa_tokenizer_work_create(f->t);
    assert_non_null(f->w);
}


static inline void
unload(fixture_t *f)
{
    dsa_tokenizer_work_destroy(f->w);
    dsa_tokenizer_close(f->t);
    free(f->out.ids);
}


static inline int
is_added(const char *added, dsa_str_t content)
{
    char  quoted[300];

    (void) snprintf(quoted, sizeof(quoted), "\"content\":\"%.*s\"",
                    (int) content.len, content.data);

    return strstr(added, quoted) != NULL;
}


/*
 * A tokenizer with every part of text, and of text after a space, as a token,
 * so that the ids show where the text was cut.
 */

static inline void
load_parts(fixture_t *f, const char *pre, const char *added, dsa_str_t text)
{
    char         whole[256];
    size_t       i, len;
    uint32_t     id;
    dsa_buf_t    b;

    memset(&b, 0, sizeof(dsa_buf_t));
    assert_true(text.len < sizeof(whole));

    whole[0] = ' ';
    memcpy(whole + 1, text.data, text.len);

    dsa_buf_printf(&b, "{\"added_tokens\":[%s],\"normalizer\":null,"
                   "\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\","
                   "\"ignore_merges\":true,\"merges\":[],\"vocab\":{",
                   added, pre);

    for (id = 0; id < 256; id++) {
        dsa_buf_addz(&b, id == 0 ? "\"" : ",\"");
        add_byte(&b, (uint8_t) id);
        dsa_buf_printf(&b, "\":%u", id);
    }

    for (len = 2; len <= text.len + 1; len++) {
        for (i = 0; i + len <= text.len + 1; i++) {

            if (memmem(whole, i + len - 1, whole + i, len) != NULL
                || is_added(added, dsa_str(whole + i, len)))
            {
                continue;
            }

            dsa_buf_addz(&b, ",\"");
            add_bytes(&b, dsa_str(whole + i, len));
            dsa_buf_printf(&b, "\":%u", id++);
        }
    }

    dsa_buf_addz(&b, "}}}");

    load(f, &b);
    dsa_buf_free(&b);
}


#define ADDED(id, content, more)                                              \
    "{\"id\":" #id ",\"content\":\"" content "\"" more "}"


/* The published patterns, with merges that join equal letters up to 32. */

static inline void
load_deepseek(fixture_t *f)
{
    char       run[32];
    uint32_t   i, n, id;
    dsa_buf_t  b, merges;

    static const char  letters[] = "a !\n7";

    memset(&b, 0, sizeof(dsa_buf_t));
    memset(&merges, 0, sizeof(dsa_buf_t));

    dsa_buf_printf(&b, "{\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\","
                   "\"vocab\":{", DEEPSEEK);

    for (id = 0; id < 256; id++) {
        dsa_buf_addz(&b, id == 0 ? "\"" : ",\"");
        add_byte(&b, (uint8_t) id);
        dsa_buf_printf(&b, "\":%u", id);
    }

    for (n = 2; n <= sizeof(run); n *= 2) {
        for (i = 0; letters[i] != '\0'; i++) {
            memset(run, letters[i], sizeof(run));

            dsa_buf_addz(&b, ",\"");
            add_bytes(&b, dsa_str(run, n));
            dsa_buf_printf(&b, "\":%u", id++);

            dsa_buf_addz(&merges, merges.len == 0 ? "\"" : ",\"");
            add_bytes(&merges, dsa_str(run, n / 2));
            dsa_buf_addz(&merges, " ");
            add_bytes(&merges, dsa_str(run, n / 2));
            dsa_buf_addz(&merges, "\"");
        }
    }

    dsa_buf_addz(&b, "},\"merges\":[");
    dsa_buf_add(&b, merges.data, merges.len);
    dsa_buf_addz(&b, "]}}");

    load(f, &b);

    dsa_buf_free(&merges);
    dsa_buf_free(&b);
}


#endif /* _T_TOKENIZER_H_INCLUDED_ */
