
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "kernels/core/bf16.h"
#include "kernels/core/fp8.h"
#include "cache.h"


void
dsa_cache_layout(dsa_cache_t *cache, uint32_t format, uint32_t layers,
    const uint8_t *indexed, uint32_t latent, uint32_t rope, uint32_t index)
{
    uint32_t  i;
    uint64_t  key, groups;

    assert(layers <= DSA_CACHE_LAYERS);

    cache->format = format;
    cache->latent = latent;
    cache->rope = rope;
    cache->index = index;

    if (format == DSA_CACHE_BF16) {
        cache->token = ((uint64_t) latent + rope) * sizeof(uint16_t);
        key = index + sizeof(float);

    } else if (format == DSA_CACHE_FP8) {
        groups = (latent + DSA_FP8_GROUP - 1) / DSA_FP8_GROUP;
        cache->token = latent + groups * sizeof(float)
                       + rope * sizeof(uint16_t);
        key = index + sizeof(float);

    } else {
        cache->token = ((uint64_t) latent + rope) * sizeof(float);
        key = index * sizeof(float);
    }

    cache->keys = DSA_CACHE_TOKENS * cache->token;
    cache->hidden = 0;
    cache->page = 0;

    for (i = 0; i < layers; i++) {
        cache->layer[i] = cache->page;
        cache->page += cache->keys;

        if (indexed == NULL || indexed[i]) {
            cache->page += DSA_CACHE_TOKENS * key;
        }
    }
}


void
dsa_cache_layout_hidden(dsa_cache_t *cache, uint32_t elements)
{
    cache->hidden = cache->page;
    cache->page += sizeof(uint32_t)
                   + (uint64_t) elements * (cache->format != DSA_CACHE_EXACT
                                  ? sizeof(uint16_t) : sizeof(float));
    cache->page = (cache->page + DSA_CACHE_ALIGN - 1) / DSA_CACHE_ALIGN
                  * DSA_CACHE_ALIGN;
}


static inline uint8_t *
dsa_cache_part(const dsa_cache_t *cache, const void *base, uint32_t layer,
    const uint32_t *pages, uint32_t position)
{
    return (uint8_t *) base
           + pages[position / DSA_CACHE_TOKENS] * cache->page
           + cache->layer[layer];
}


static void
dsa_cache_write_bf16(uint8_t *p, const float *v, size_t n)
{
    size_t    i;
    uint16_t  x;

    for (i = 0; i < n; i++) {
        x = dsa_bf16_encode(v[i]);
        memcpy(p + i * sizeof(uint16_t), &x, sizeof(uint16_t));
    }
}


/*
 * Scales and rope parts are not aligned in every model config, so memcpy() is
 * used.
 */

static void
dsa_cache_write_latent(const dsa_cache_t *cache, uint8_t *p, const float *c)
{
    float     scale;
    size_t    i, n;
    uint8_t  *s;

    if (cache->format == DSA_CACHE_EXACT) {
        memcpy(p, c, cache->token);
        return;
    }

    if (cache->format == DSA_CACHE_BF16) {
        dsa_cache_write_bf16(p, c, cache->latent + cache->rope);
        return;
    }

    s = p + cache->latent;

    for (i = 0; i < cache->latent; i += DSA_FP8_GROUP) {
        n = cache->latent - i < DSA_FP8_GROUP ? cache->latent - i
                                              : DSA_FP8_GROUP;

        dsa_fp8_encode(p + i, &scale, c + i, n, n);
        memcpy(s, &scale, sizeof(float));
        s += sizeof(float);
    }

    dsa_cache_write_bf16(s, c + cache->latent, cache->rope);
}


static void
dsa_cache_write_key(const dsa_cache_t *cache, uint8_t *keys, uint32_t at,
    const float *key)
{
    float  scale;

    if (cache->format == DSA_CACHE_EXACT) {
        memcpy(keys + at * cache->index * sizeof(float), key,
               cache->index * sizeof(float));
        return;
    }

    dsa_fp8_encode(keys + at * cache->index, &scale, key, cache->index,
                   cache->index);
    memcpy(keys + DSA_CACHE_TOKENS * cache->index + at * sizeof(float),
           &scale, sizeof(float));
}


void
dsa_cache_write(const dsa_cache_t *cache, void *base, uint32_t layer,
    const uint32_t *pages, uint32_t start, size_t n, const float *c,
    size_t ld_c, const float *key)
{
    size_t    i;
    uint8_t  *part;
    uint32_t  p, at;

    for (i = 0; i < n; i++) {
        p = start + (uint32_t) i;
        at = p % DSA_CACHE_TOKENS;
        part = dsa_cache_part(cache, base, layer, pages, p);

        dsa_cache_write_latent(cache, part + at * cache->token, c);
        c += ld_c;

        if (key != NULL) {
            dsa_cache_write_key(cache, part + cache->keys, at, key);
            key += cache->index;
        }
    }
}


static void
dsa_cache_read_latent(float *c, float *k_rope, const dsa_cache_t *cache,
    const uint8_t *p)
{
    float           scale;
    size_t          i, end;
    const uint8_t  *s;

    if (cache->format == DSA_CACHE_EXACT) {
        memcpy(c, p, cache->latent * sizeof(float));
        memcpy(k_rope, p + cache->latent * sizeof(float),
               cache->rope * sizeof(float));
        return;
    }

    if (cache->format == DSA_CACHE_BF16) {
        dsa_bf16_decode_rows(c, p, cache->latent);
        dsa_bf16_decode_rows(k_rope, p + cache->latent * sizeof(uint16_t),
                             cache->rope);
        return;
    }

    s = p + cache->latent;

    for (i = 0; i < cache->latent; i = end) {
        end = cache->latent - i < DSA_FP8_GROUP ? cache->latent
                                                : i + DSA_FP8_GROUP;
        memcpy(&scale, s, sizeof(float));
        s += sizeof(float);

        dsa_fp8_decode(c + i, p + i, end - i, scale);
    }

    dsa_bf16_decode_rows(k_rope, s, cache->rope);
}


void
dsa_cache_latents(float *c, float *k_rope, const dsa_cache_t *cache,
    const void *base, uint32_t layer, const uint32_t *pages,
    const int32_t *position, uint32_t first, size_t n)
{
    size_t          i;
    uint32_t        p;
    const uint8_t  *part;

    for (i = 0; i < n; i++) {
        p = position != NULL ? (uint32_t) position[i] : first + (uint32_t) i;
        part = dsa_cache_part(cache, base, layer, pages, p);

        dsa_cache_read_latent(c, k_rope, cache,
                              part + p % DSA_CACHE_TOKENS * cache->token);

        c += cache->latent;
        k_rope += cache->rope;
    }
}


void
dsa_cache_keys(float *key, float *scale, const dsa_cache_t *cache,
    const void *base, uint32_t layer, const uint32_t *pages, uint32_t first,
    size_t n)
{
    size_t          i;
    uint32_t        p, at;
    const uint8_t  *keys, *q;

    for (i = 0; i < n; i++) {
        p = first + (uint32_t) i;
        at = p % DSA_CACHE_TOKENS;
        keys = dsa_cache_part(cache, base, layer, pages, p) + cache->keys;

        if (cache->format != DSA_CACHE_EXACT) {
            q = keys + at * cache->index;

            dsa_fp8_decode(key, q, cache->index, 1.0f);
            memcpy(&scale[i],
                   keys + DSA_CACHE_TOKENS * cache->index
                   + at * sizeof(float),
                   sizeof(float));

        } else {
            memcpy(key, keys + at * cache->index * sizeof(float),
                   cache->index * sizeof(float));
            scale[i] = 1.0f;
        }

        key += cache->index;
    }
}
