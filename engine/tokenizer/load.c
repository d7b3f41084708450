
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "engine/tokenizer/load.h"


static int dsa_load_top(dsa_loader_t *l);
static int dsa_load_model(dsa_loader_t *l);
static int dsa_load_null(const dsa_fields_t *f, const char *name);


int
dsa_tokenizer_load(dsa_tokenizer_t *t, const char *name, dsa_str_t json,
    dsa_err_t *err)
{
    int            rc;
    size_t         i;
    dsa_loader_t   l;

    static int   (*const step[])(dsa_loader_t *l) = {
        dsa_load_top, dsa_load_model, dsa_load_sizes, dsa_load_vocab,
        dsa_load_alphabet, dsa_load_merges, dsa_load_added, dsa_load_stages
    };

    memset(&l, 0, sizeof(dsa_loader_t));

    l.t = t;

    rc = dsa_fields_open(&l.top, name, json, err);

    for (i = 0; rc == DSA_OK && i < sizeof(step) / sizeof(step[0]); i++) {
        rc = step[i](&l);
    }

    dsa_map_free(&l.names);
    free(l.scratch);
    dsa_fields_close(&l.top);

    return rc;
}


static int
dsa_load_top(dsa_loader_t *l)
{
    dsa_fields_t               decoder;

    static const char  *const  names[] = {
        "version", "truncation", "padding", "added_tokens", "normalizer",
        "pre_tokenizer", "post_processor", "decoder", "model", NULL
    };

    if (dsa_fields_known(&l->top, names) != DSA_OK
        || dsa_load_null(&l->top, "truncation") != DSA_OK
        || dsa_load_null(&l->top, "padding") != DSA_OK
        || dsa_load_null(&l->top, "normalizer") != DSA_OK
        || dsa_fields_inner(&decoder, &l->top, "decoder", "decoder.")
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (decoder.object != NULL && !dsa_field_is(&decoder, "type", "ByteLevel"))
    {
        return dsa_field_reject(&decoder, "type", dsa_field(&decoder, "type"),
                                "\"ByteLevel\"");
    }

    return DSA_OK;
}


static int
dsa_load_model(dsa_loader_t *l)
{
    double                     dropout;
    const dsa_json_t          *v;

    static const char  *const  names[] = {
        "type", "dropout", "unk_token", "continuing_subword_prefix",
        "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
        "vocab", "merges", NULL
    };

    if (dsa_fields_inner(&l->model, &l->top, "model", "model.") != DSA_OK) {
        return DSA_ERROR;
    }

    if (l->model.object == NULL) {
        return dsa_field_reject(&l->top, "model", NULL, "an object");
    }

    if (!dsa_field_is(&l->model, "type", "BPE")) {
        return dsa_field_reject(&l->model, "type", dsa_field(&l->model, "type"),
                                "\"BPE\"");
    }

    /*
     * unk_token, fuse_unk and byte_fallback apply to text that is not in the
     * vocabulary.  There is none, because all 256 bytes are required to be.
     */

    if (dsa_fields_known(&l->model, names) != DSA_OK
        || dsa_load_null(&l->model, "continuing_subword_prefix") != DSA_OK
        || dsa_load_null(&l->model, "end_of_word_suffix") != DSA_OK
        || dsa_field_flag(&l->model, "ignore_merges", 0,
                          &l->t->bpe.ignore_merges)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    v = dsa_field(&l->model, "dropout");

    if (v != NULL && (dsa_json_double(v, &dropout) != DSA_OK || dropout != 0.0))
    {
        return dsa_field_reject(&l->model, "dropout", v, "null");
    }

    l->vocab = dsa_field(&l->model, "vocab");

    if (l->vocab == NULL || l->vocab->type != DSA_JSON_OBJECT) {
        return dsa_field_reject(&l->model, "vocab", l->vocab, "an object");
    }

    l->merges = dsa_field(&l->model, "merges");

    if (l->merges == NULL || l->merges->type != DSA_JSON_ARRAY) {
        return dsa_field_reject(&l->model, "merges", l->merges, "an array");
    }

    l->added = dsa_field(&l->top, "added_tokens");

    if (l->added != NULL && l->added->type != DSA_JSON_ARRAY) {
        return dsa_field_reject(&l->top, "added_tokens", l->added, "an array");
    }

    return DSA_OK;
}


/* Checks that a field is missing, null or an empty string. */

static int
dsa_load_null(const dsa_fields_t *f, const char *name)
{
    const dsa_json_t  *v;

    v = dsa_field(f, name);

    if (v == NULL || dsa_field_is(f, name, "")) {
        return DSA_OK;
    }

    return dsa_field_reject(f, name, v, "null");
}
