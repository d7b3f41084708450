
/*
 * Copyright (C) The nginx-dsa authors
 */


/* Latents and index keys, to pages of the cache and from them. */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/attention/cache.h"
#include "kernels/row/hadamard.h"
#include "kernels/row/norm.h"
#include "t/gpu/rope.h"


#define KV_EPS         1e-3f       /* another one, so that a swap shows */


/* Layer 1 of 3, so that pages have a stride and an offset. */

static void
cache_place(dsa_cache_t *host, dsa_cuda_cache_t *cache, uint8_t *device,
    uint32_t pages)
{
    dsa_cache_layout(host, DSA_CACHE_FP8, 3, NULL, 512, 64, 128);

    cache->base = device + host->layer[1];
    cache->page = host->page;
    cache->keys = host->keys;
    cache->pages = pages;
    cache->bf16 = 0;
}


/* Pages with arbitrary codes and scales that are powers of two. */

static uint8_t *
cache_pages(const dsa_cache_t *host, uint32_t pages)
{
    float     s;
    size_t    i, j;
    uint8_t  *p, *token;

    p = get(pages * host->page);

    for (i = 0; i < pages * host->page; i++) {
        p[i] = (uint8_t) (dsa_t_random(127) | dsa_t_random(2) << 7);
    }

    for (i = 0; i < pages * 64; i++) {
        token = p + i / 64 * host->page + host->layer[1]
                + i % 64 * host->token;

        for (j = 0; j < 4; j++) {
            s = ldexpf(1, (int) dsa_t_random(24) - 16);
            memcpy(token + 512 + j * 4, &s, 4);
        }
    }

    return p;
}


static void
latents_case(const dsa_cache_t *host, const dsa_cuda_cache_t *cache,
    const uint8_t *page, uint32_t n)
{
    float     *c, *r;
    size_t     i, j;
    uint32_t   pages, *list;
    uint16_t  *out, *want;
    int32_t   *device_list;

    pages = (n + 63) / 64;
    list = get(pages * 4);
    c = get((size_t) n * 512 * sizeof(float));
    r = get((size_t) n * 64 * sizeof(float));
    want = get((size_t) n * 576 * 2);

    for (i = 0; i < pages; i++) {
        list[i] = dsa_t_random(cache->pages);
    }

    device_list = gpu_upload(list, pages * 4);
    out = gpu_alloc((size_t) (n + 1) * 576 * 2);

    gpu_ok(dsa_cuda_cache_latents(out, cache, device_list, n, NULL));
    dsa_cache_latents(c, r, host, page, 1, list, NULL, 0, n);

    for (i = 0; i < n; i++) {
        for (j = 0; j < 512; j++) {
            want[i * 576 + j] = dsa_bf16_encode(c[i * 512 + j]);
            assert_true(dsa_bf16_round(c[i * 512 + j]) == c[i * 512 + j]);
        }

        for (j = 0; j < 64; j++) {
            want[i * 576 + 512 + j] = dsa_bf16_encode(r[i * 64 + j]);
        }
    }

    same(out, want, (size_t) n * 576 * 2);

    memset(want, 0xff, 576 * 2);
    same(out + (size_t) n * 576, want, 576 * 2);

    free(list);
    free(c);
    free(r);
    free(want);
}


static void
test_cache_latents(void **state)
{
    size_t             i;
    uint8_t           *page, *device;
    dsa_cache_t        host;
    dsa_cuda_cache_t   cache;

    static const uint32_t  tokens[] = {
        1, 63, 64, 65, 2047, 2048, 2049, 131072
    };

    cache_place(&host, &cache, NULL, 40);
    page = cache_pages(&host, 40);
    device = gpu_upload(page, 40 * host.page);
    cache_place(&host, &cache, device, 40);

    for (i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        latents_case(&host, &cache, page, tokens[i]);
    }

    free(page);
}


/*
 * Both norms have sums.  So in this many of the codes that are written the
 * cache may differ from the CPU's by one step; an element of an index key that
 * is rounded differently changes all of its key a little.
 */

static void
cache_write_case(uint32_t rows, uint32_t ld_kv, uint32_t ld_k,
    int interleaved)
{
    float             *kv, *k, *norm, *k_norm, *k_bias, *table, *c, *r, *key,
                      *got, scale, cos[32], sin[32];
    double            *exact, mean, var;
    size_t             i, j, n, size, used, off;
    uint8_t           *want, *out, *device;
    int32_t           *position, *slot, *device_position, *device_slot, d;
    uint16_t          *device_kv, *device_k;
    uint32_t           pages, p, *taken, *list;
    dsa_cache_t        host;
    dsa_cuda_cache_t   cache;

    pages = rows / 32 + 2;
    kv = numbers((size_t) rows * 576, 3.0f);
    k = numbers((size_t) rows * 128, 3.0f);
    norm = numbers(512, 2.0f);
    k_norm = numbers(128, 2.0f);
    k_bias = numbers(128, 0.5f);
    position = get(rows * sizeof(int32_t));
    slot = get(rows * sizeof(int32_t));
    taken = get(pages * 64 * sizeof(uint32_t));
    list = get(pages * sizeof(uint32_t));

    for (i = 0; i < pages; i++) {
        list[i] = (uint32_t) i;         /* positions are slots */
    }

    cache_place(&host, &cache, NULL, pages);
    size = pages * host.page;
    device = gpu_alloc(size);
    cache_place(&host, &cache, device, pages);

    want = get(size);
    out = get(size);
    memset(want, 0xff, size);

    for (i = 0; i < rows; i++) {
        do {
            p = dsa_t_random(pages * 64);
        } while (taken[p]);

        taken[p] = 1;
        slot[i] = i % 13 == 5 ? -1 : i % 13 == 7 ? (int32_t) pages * 64
                  : (int32_t) p;
    }

    device_kv = spread(kv, rows, 576, ld_kv);
    device_k = spread(k, rows, 128, ld_k);
    table = rope_table(position, rows);
    device_position = gpu_upload(position, rows * sizeof(int32_t));
    device_slot = gpu_upload(slot, rows * sizeof(int32_t));

    gpu_ok(dsa_cuda_cache_write(&cache, device_slot, device_kv, ld_kv,
                                gpu_upload(norm, 512 * 4), KV_EPS, device_k,
                                ld_k, gpu_upload(k_norm, 128 * 4),
                                gpu_upload(k_bias, 128 * 4), EPS, table,
                                device_position, interleaved, rows, NULL));
    gpu_download(out, device, size);

    exact = get((size_t) rows * 128 * sizeof(double));
    got = get((size_t) rows * 128 * sizeof(float));
    used = 0;

    for (i = 0; i < rows; i++) {
        if (slot[i] < 0 || slot[i] >= (int32_t) pages * 64) {
            continue;
        }

        c = kv + i * 576;
        key = k + i * 128;

        /* the index key in float64 */

        mean = 0;
        var = 0;

        for (j = 0; j < 128; j++) {
            mean += key[j] / 128.0;
        }

        for (j = 0; j < 128; j++) {
            var += (key[j] - mean) * (key[j] - mean) / 128;
        }

        r = got + used * 128;

        for (j = 0; j < 128; j++) {
            exact[used * 128 + j] = (key[j] - mean) / sqrt(var + 1e-6)
                                    * k_norm[j] + k_bias[j];
            r[j] = (float) exact[used * 128 + j];
        }

        rope_float64(exact + used * 128, r, position[i], !interleaved);
        hadamard_float64(exact + used * 128);

        /* the twins */

        dsa_rope_angles(cos, sin, rope_frequency, 64, (uint32_t) position[i],
                        1);
        dsa_rmsnorm(c, 576, c, 576, norm, 1, 512, KV_EPS, 1);
        dsa_rope_interleaved(c + 512, 1, 64, cos, sin, 64, 1);
        dsa_layernorm(key, k_norm, k_bias, 1, 128, EPS, 1);
        index_rope(key, cos, sin, interleaved);
        dsa_hadamard(key, 1, 128, 1);

        dsa_cache_write(&host, want, 1, list, (uint32_t) slot[i], 1, c, 576,
                        key);
        dsa_cache_keys(r, &scale, &host, out, 1, list, (uint32_t) slot[i], 1);

        for (j = 0; j < 128; j++) {
            r[j] *= scale;
        }

        used++;
    }

    n = 0;

    for (i = 0; i < size; i++) {
        off = i % host.page;

        if (out[i] == want[i]) {
            continue;
        }

        /* no scale, rope part or byte outside of the layer may differ */

        assert_true(off >= host.layer[1] && off < host.layer[2]);
        off -= host.layer[1];
        assert_true(off < host.keys ? off % host.token < 512
                                    : off < host.keys + 64 * 128);

        d = (int32_t) out[i] - want[i];
        assert_true(d == 1 || d == -1);
        n++;
    }

    assert_true(n <= FEW(used * 640));
    assert_true(dsa_t_error(got, exact, used * 128) < 0.04);

    /* a second run */

    gpu_poison(device, size);
    gpu_ok(dsa_cuda_cache_write(&cache, device_slot, device_kv, ld_kv,
                                gpu_upload(norm, 512 * 4), KV_EPS, device_k,
                                ld_k, gpu_upload(k_norm, 128 * 4),
                                gpu_upload(k_bias, 128 * 4), EPS, table,
                                device_position, interleaved, rows, NULL));
    same(device, out, size);

    free(kv);
    free(k);
    free(norm);
    free(k_norm);
    free(k_bias);
    free(position);
    free(slot);
    free(taken);
    free(list);
    free(want);
    free(out);
    free(exact);
    free(got);
}


/*
 * A layer without index keys: its latents are those of a layer with some, and
 * no byte behind them is written.
 */

static void
cache_write_latents_case(uint32_t rows)
{
    float             *kv, *norm, *k, *table;
    size_t             i, size;
    uint8_t           *with, *without, *device;
    int32_t           *position, *slot, *device_position, *device_slot;
    uint16_t          *device_kv, *device_k;
    uint32_t           pages;
    dsa_cache_t        host;
    dsa_cuda_cache_t   cache;

    pages = rows / 64 + 1;
    kv = numbers((size_t) rows * 576, 3.0f);
    norm = gpu_upload(numbers(512, 2.0f), 512 * 4);
    k = gpu_upload(numbers(128, 2.0f), 128 * 4);
    position = get(rows * sizeof(int32_t));
    slot = get(rows * sizeof(int32_t));

    cache_place(&host, &cache, NULL, pages);
    size = pages * host.page;
    device = gpu_alloc(size);
    cache_place(&host, &cache, device, pages);
    with = get(size);
    without = get(size);

    for (i = 0; i < rows; i++) {
        slot[i] = (int32_t) i;
    }

    device_kv = gpu_upload_bf16(kv, (size_t) rows * 576);
    device_k = gpu_upload_bf16(kv, (size_t) rows * 128);
    table = rope_table(position, rows);
    device_position = gpu_upload(position, rows * sizeof(int32_t));
    device_slot = gpu_upload(slot, rows * sizeof(int32_t));

    gpu_ok(dsa_cuda_cache_write(&cache, device_slot, device_kv, 576, norm,
                                KV_EPS, device_k, 128, k, k, EPS, table,
                                device_position, 1, rows, NULL));
    gpu_download(with, device, size);

    gpu_poison(device, size);
    gpu_ok(dsa_cuda_cache_write(&cache, device_slot, device_kv, 576, norm,
                                KV_EPS, NULL, 128, NULL, NULL, EPS, table,
                                device_position, 1, rows, NULL));
    gpu_download(without, device, size);

    for (i = 0; i < size; i++) {
        if (i % host.page >= host.layer[1]
            && i % host.page < host.layer[1] + host.keys)
        {
            assert_int_equal(without[i], with[i]);

        } else {
            assert_int_equal(without[i], 0xff);
        }
    }

    free(kv);
    free(position);
    free(slot);
    free(with);
    free(without);
}


static void
test_cache_write(void **state)
{
    cache_write_case(1, 576, 128, 0);
    cache_write_case(2, 640, 136, 0);
    cache_write_case(130, 2304, 2304, 0);
    cache_write_case(1000, 576, 128, 0);
    cache_write_case(1, 576, 128, 1);
    cache_write_case(130, 2816, 2816, 1);
    cache_write_case(1000, 576, 128, 1);
    cache_write_latents_case(1);
    cache_write_latents_case(130);
}


/*
 * Latents in BF16: the first 512 elements have a sum behind them, see rows.h.
 * The op that reads them copies what is there.
 */

static void
cache_bf16_case(uint32_t rows)
{
    float             *kv, *norm, *table, *read, cos[32], sin[32];
    size_t             i, n, size;
    uint8_t           *want, *out, *device, indexed[3];
    int32_t           *position, *slot, *device_position, *device_slot, d;
    uint16_t          *device_kv, *latents, a, b;
    uint32_t           pages, *list;
    dsa_cache_t        host;
    dsa_cuda_cache_t   cache;

    memset(indexed, 0, sizeof(indexed));
    dsa_cache_layout(&host, DSA_CACHE_BF16, 3, indexed, 512, 64, 128);

    pages = rows / 64 + 1;
    size = pages * host.page;
    device = gpu_alloc(size);
    cache.base = device + host.layer[1];
    cache.page = host.page;
    cache.keys = host.keys;
    cache.pages = pages;
    cache.bf16 = 1;

    kv = numbers((size_t) rows * 576, 3.0f);
    norm = numbers(512, 2.0f);
    position = get(rows * sizeof(int32_t));
    slot = get(rows * sizeof(int32_t));
    list = get(pages * sizeof(uint32_t));
    read = get((size_t) rows * 576 * sizeof(float));
    want = get(size);
    out = get(size);
    memset(want, 0xff, size);

    for (i = 0; i < pages; i++) {
        list[i] = (uint32_t) (pages - 1 - i);
    }

    for (i = 0; i < rows; i++) {
        slot[i] = (int32_t) (list[i / 64] * 64 + i % 64);
    }

    device_kv = spread(kv, rows, 576, 704);
    table = rope_table(position, rows);
    device_position = gpu_upload(position, rows * sizeof(int32_t));
    device_slot = gpu_upload(slot, rows * sizeof(int32_t));

    gpu_ok(dsa_cuda_cache_write(&cache, device_slot, device_kv, 704,
                                gpu_upload(norm, 512 * 4), KV_EPS, NULL, 128,
                                NULL, NULL, EPS, table, device_position, 1,
                                rows, NULL));
    gpu_download(out, device, size);

    for (i = 0; i < rows; i++) {
        dsa_rope_angles(cos, sin, rope_frequency, 64, (uint32_t) position[i],
                        1);
        dsa_rmsnorm(kv + i * 576, 576, kv + i * 576, 576, norm, 1, 512, KV_EPS,
                    1);
        dsa_rope_interleaved(kv + i * 576 + 512, 1, 64, cos, sin, 64, 1);
    }

    dsa_cache_write(&host, want, 1, list, 0, rows, kv, 576, NULL);

    for (i = 0, n = 0; i < size; i += 2) {
        memcpy(&a, out + i, 2);
        memcpy(&b, want + i, 2);

        if (a != b) {
            d = (int32_t) a - b;
            assert_true(i % host.page >= host.layer[1]
                        && i % host.page < host.layer[2]);
            assert_true((i % host.page - host.layer[1]) % host.token < 1024);
            assert_true(d == 1 || d == -1);
            n++;
        }
    }

    assert_true(n <= FEW(rows * 512));

    latents = gpu_alloc((size_t) rows * 576 * 2);
    gpu_ok(dsa_cuda_cache_latents(latents, &cache,
                                  gpu_upload(list, pages * sizeof(uint32_t)),
                                  rows, NULL));
    gpu_download_bf16(read, latents, (size_t) rows * 576);

    for (i = 0; i < rows * 576; i++) {
        memcpy(&a, out + list[i / 576 / 64] * host.page + host.layer[1]
                   + i / 576 % 64 * host.token + i % 576 * 2, 2);
        assert_true(read[i] == dsa_bf16_decode(a));
    }

    free(kv);
    free(norm);
    free(position);
    free(slot);
    free(list);
    free(read);
    free(want);
    free(out);
}


static void
test_cache_bf16(void **state)
{
    cache_bf16_case(1);
    cache_bf16_case(63);
    cache_bf16_case(130);
    cache_bf16_case(1000);
}


/*
 * Latents that are not finite, because a sum before them was not, are stored as
 * zeros: a page may end with them when it is another sequence's.
 */

static void
test_cache_finite(void **state)
{
    float             norm[512], angles[64], read[3 * 576];
    size_t            i;
    int32_t           position[3], slot[3];
    uint8_t          *device;
    uint16_t          kv[3 * 576];
    dsa_cuda_cache_t  cache;

    for (i = 0; i < 3 * 576; i++) {
        kv[i] = 0x3f80;                                     /* 1 */
    }

    kv[7] = 0x7f80;                                         /* infinity */
    kv[576 + 100] = 0x7fc0;                                 /* not a number */
    kv[576 + 512 + 3] = 0xff80;

    for (i = 0; i < 512; i++) {
        norm[i] = 1;
    }

    for (i = 0; i < 64; i++) {
        angles[i] = i < 32;
    }

    memset(position, 0, sizeof(position));
    slot[0] = 0;
    slot[1] = 1;
    slot[2] = 2;

    device = gpu_alloc(64 * dsa_cuda_record(1));
    cache.base = device;
    cache.page = 64 * dsa_cuda_record(1);
    cache.keys = cache.page;
    cache.pages = 1;
    cache.bf16 = 1;

    gpu_ok(dsa_cuda_cache_write(&cache, gpu_upload(slot, sizeof(slot)),
                                gpu_upload(kv, sizeof(kv)), 576,
                                gpu_upload(norm, sizeof(norm)), KV_EPS, NULL,
                                128, NULL, NULL, EPS,
                                gpu_upload(angles, sizeof(angles)),
                                gpu_upload(position, sizeof(position)), 1, 3,
                                NULL));
    gpu_download_bf16(read, device, 3 * 576);

    for (i = 0; i < 3 * 576; i++) {
        assert_true(isfinite(read[i]));
    }

    assert_true(read[7] == 0 && read[576 + 100] == 0);
    assert_true(read[576 + 512 + 3] == 0 && read[576 + 512 + 4] == 1);
    assert_true(read[2 * 576] == 1 && read[3 * 576 - 1] == 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_cache_latents, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_cache_write, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_cache_bf16, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_cache_finite, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
