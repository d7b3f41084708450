
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What the backends have in common.
 */


#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/log.h"
#include "engine/backend.h"


/*
 * Change this name when the contents of a page change.  Otherwise pages of the
 * old and the new layout would have the same identity.  What a page has for
 * each layer follows from config.json, which the fingerprint of the weights
 * covers.
 */

#define DSA_BACKEND_LAYOUT  "layout 1"

/* Change this name when "weights fp8" rounds in another way. */

#define DSA_BACKEND_FP8     " fp8 1"


static int dsa_backend_pinned(const dsa_backend_t *b, const void *host);


int
dsa_kv_named(dsa_kv_e *kv, const char *name)
{
    if (strcmp(name, "fp8") != 0 && strcmp(name, "bf16") != 0) {
        return DSA_ERROR;
    }

    *kv = name[0] == 'f' ? DSA_KV_FP8 : DSA_KV_BF16;

    return DSA_OK;
}


uint32_t
dsa_kv_bf16(dsa_backend_e kind, dsa_kv_e kv, const dsa_model_config_t *config)
{
    if (kv == DSA_KV_AUTO) {
        return kind == DSA_BACKEND_CUDA && dsa_model_config_dense(config);
    }

    return kv == DSA_KV_BF16;
}


/* Sets hash to the hash of text in hexadecimal. */

static void
dsa_backend_hash(char hash[36], const char *text)
{
    XXH128_hash_t  h;

    h = XXH3_128bits(text, strlen(text));

    (void) snprintf(hash, 36, "%016llx%016llx", (unsigned long long) h.high64,
                    (unsigned long long) h.low64);
}


void
dsa_backend_fingerprint(dsa_backend_t *b, const char *model,
    const dsa_backend_conf_t *conf)
{
    char         text[128];
    const char  *name, *change;

    name = conf->precision != DSA_SERVED ? "exact"
           : b->kv_bf16 ? "served kv bf16" : "served";
    change = conf->quantize ? DSA_BACKEND_FP8 : "";

    (void) snprintf(text, sizeof(text), "%s%s %s", model, change, name);
    dsa_backend_hash(b->identity, text);

    (void) snprintf(text, sizeof(text), "%s%s %s %s%s", model, change, name,
                    DSA_BACKEND_LAYOUT, b->drafts != 0 ? " drafts 2" : "");
    dsa_backend_hash(b->fingerprint, text);
}


void
dsa_backend_without_drafts(const dsa_backend_t *b, const char *fault)
{
    if (b->config.num_nextn_predict_layers == 0) {
        return;
    }

    dsa_log(DSA_LOG_NOTICE, "\"speculate auto\" makes no drafts, because "
            "config.json has \"num_nextn_predict_layers\" %u and the "
            "checkpoint no usable draft layer: %s; expected the tensors of "
            "model.layers.%u, or \"speculate off\"",
            b->config.num_nextn_predict_layers, fault,
            b->config.num_hidden_layers);
}


char *
dsa_backend_resolve(const char *model, dsa_err_t *err)
{
    char  *path;

    path = realpath(model, NULL);

    if (path == NULL) {
        (void) dsa_error(err, "%s: %s", model, strerror(errno));
    }

    return path;
}


int
dsa_backend_replaces(const char *model, const uint8_t running[32],
    const uint8_t other[32], uint32_t drafts, const char *fault,
    dsa_err_t *err)
{
    if (memcmp(running, other, 32) != 0) {
        return dsa_error(err, "%s/config.json is another one than that of the "
                         "running model; expected the same bytes (a model of "
                         "another shape needs a restart)", model);
    }

    if (drafts != 0 && fault[0] != '\0') {
        return dsa_error(err, "%s has no usable draft layer: %s", model,
                         fault);
    }

    return DSA_OK;
}


int
dsa_backend_pin(dsa_backend_t *b, void *memory, uint64_t bytes, dsa_err_t *err)
{
    dsa_pin_region_t  *region;

    if (memory == NULL || bytes == 0) {
        return dsa_error(err, "host memory of %llu bytes cannot be pinned; "
                         "expected at least one byte",
                         (unsigned long long) bytes);
    }

    if (b->n_pinned == DSA_PIN_REGIONS) {
        return dsa_error(err, "%d regions of host memory are pinned already; "
                         "no more are possible", DSA_PIN_REGIONS);
    }

    region = &b->pinned[b->n_pinned++];
    region->memory = memory;
    region->bytes = bytes;

    return DSA_OK;
}


int
dsa_backend_check_moves(const dsa_backend_t *b, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    uint32_t  i;

    assert(n != 0);

    for (i = 0; i < n; i++) {
        if (rank >= b->ranks || move[i].page >= b->pages) {
            return dsa_error(err, "page %u of rank %u cannot be moved; "
                             "expected a page below %u and a rank below %u",
                             move[i].page, rank, b->pages, b->ranks);
        }

        if (!dsa_backend_pinned(b, move[i].host)) {
            return dsa_error(err, "page %u of rank %u cannot be moved because "
                             "its %llu bytes of host memory are not pinned",
                             move[i].page, rank,
                             (unsigned long long) b->page_bytes);
        }
    }

    return DSA_OK;
}


/* Returns 1 if the page at host is within one pinned region. */

static int
dsa_backend_pinned(const dsa_backend_t *b, const void *host)
{
    uint32_t                 i;
    uint64_t                 offset;
    const dsa_pin_region_t  *region;

    for (i = 0; i < b->n_pinned; i++) {
        region = &b->pinned[i];

        if ((uintptr_t) host < (uintptr_t) region->memory) {
            continue;
        }

        offset = (uintptr_t) host - (uintptr_t) region->memory;

        if (offset < region->bytes
            && region->bytes - offset >= b->page_bytes)
        {
            return 1;
        }
    }

    return 0;
}
