
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Makes a model directory: config.json and weights of t/data/golden/b-bf16, and
 * a tokenizer with a token for each byte and a few added tokens.
 */


#ifndef _SMALL_MODEL_H_INCLUDED_
#define _SMALL_MODEL_H_INCLUDED_


#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


#define SMALL_MODEL_FROM    "t/data/golden/b-bf16"

#define SMALL_MODEL_BOS     0
#define SMALL_MODEL_EOS     1
#define SMALL_MODEL_USER    2
#define SMALL_MODEL_BYTES   3           /* id of byte 0; 256 of them */
#define SMALL_MODEL_END     259         /* </think>, and the control token of */
#define SMALL_MODEL_CALL    260         /* calls, if they are added */


static const char  *small_model_files[] = {
    "config.json",
    "model.safetensors.index.json",
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors"
};


/* Byte-level BPE writes byte b as this code point. */

static inline uint32_t
small_model_char(uint32_t b)
{
    uint32_t  i, n;

    if ((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174) {
        return b;
    }

    for (i = 0, n = 256; i < b; i++) {
        if (!((i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174)) {
            n++;
        }
    }

    return n;
}


/* end: 1: the tokenizer has the control tokens of reasoning and calls. */

static inline void
small_model_tokenizer(FILE *f, int end)
{
    uint32_t  i;

    static const struct {
        uint32_t     id;
        const char  *name;
    } added[] = {
        { SMALL_MODEL_BOS, "<bos>" },
        { SMALL_MODEL_EOS, "<eos>" },
        { SMALL_MODEL_USER, "<user>" },
        { SMALL_MODEL_END, "</think>" },
        { SMALL_MODEL_CALL, "｜DSML｜" }
    };

    fprintf(f, "{\"version\": \"1.0\", \"added_tokens\": [");

    for (i = 0; i < (end ? 5 : 3); i++) {
        fprintf(f, "%s{\"id\": %u, \"content\": \"%s\", \"single_word\": "
                "false, \"lstrip\": false, \"rstrip\": false, "
                "\"normalized\": false, \"special\": true}",
                i != 0 ? ", " : "", added[i].id, added[i].name);
    }

    fprintf(f, "], \"normalizer\": null, \"pre_tokenizer\": {\"type\": "
            "\"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": "
            "true, \"use_regex\": false}, \"post_processor\": null, "
            "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": "
            "true, \"trim_offsets\": true, \"use_regex\": true}, "
            "\"model\": {\"type\": \"BPE\", \"dropout\": null, "
            "\"unk_token\": null, \"continuing_subword_prefix\": null, "
            "\"end_of_word_suffix\": null, \"fuse_unk\": false, "
            "\"byte_fallback\": false, \"vocab\": {");

    for (i = 0; i < 256; i++) {
        fprintf(f, "%s\"\\u%04x\": %u", i != 0 ? ", " : "",
                small_model_char(i), SMALL_MODEL_BYTES + i);
    }

    fprintf(f, "}, \"merges\": []}}\n");
}


/* Writes the tokenizer of a directory that exists.  Returns as below. */

static inline int
small_model_write(const char *dir, int end)
{
    char   path[512];
    FILE  *out;

    (void) snprintf(path, sizeof(path), "%s/tokenizer.json", dir);
    out = fopen(path, "w");

    if (out == NULL) {
        perror(path);
        return -1;
    }

    small_model_tokenizer(out, end);

    return fclose(out);
}


/* dir: a mkdtemp() template.  Returns 0, or -1 after an error on stderr. */

static inline int
small_model_make(char *dir)
{
    int   i;
    char  path[512], from[4096];

    if (mkdtemp(dir) == NULL || realpath(SMALL_MODEL_FROM, from) == NULL) {
        perror(SMALL_MODEL_FROM);
        return -1;
    }

    for (i = 0; i < 4; i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", dir,
                        small_model_files[i]);
        (void) snprintf(from + strlen(from), sizeof(from) - strlen(from),
                        "/%s", small_model_files[i]);

        if (symlink(from, path) == -1) {
            perror(path);
            return -1;
        }

        *strrchr(from, '/') = '\0';
    }

    return small_model_write(dir, 0);
}


static inline void
small_model_remove(const char *dir)
{
    int   i;
    char  path[512];

    for (i = 0; i < 4; i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", dir,
                        small_model_files[i]);
        (void) unlink(path);
    }

    (void) snprintf(path, sizeof(path), "%s/tokenizer.json", dir);
    (void) unlink(path);
    (void) rmdir(dir);
}


#endif /* _SMALL_MODEL_H_INCLUDED_ */
