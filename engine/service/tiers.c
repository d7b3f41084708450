
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "engine/pages/redis.h"
#include "engine/service/tiers.h"


/*
 * A server that sends nothing for so long is off.  Then waiting requests are
 * computed, and others do not wait for it.
 */

#define DSA_TIERS_TIMEOUT_MS    200


/*
 * Opens a tier that wakes st, if conf has it; otherwise *tier stays as it is,
 * zeroed.  DSA_ERROR with err: nothing is open.
 */
typedef int (*dsa_service_tier_pt)(const dsa_conf_t *conf,
    const dsa_backend_t *backend, dsa_step_t *st, dsa_tier_t *tier,
    dsa_err_t *err);


static int dsa_service_host(const dsa_conf_t *conf,
    const dsa_backend_t *backend, dsa_host_t *host, dsa_err_t *err);
static int dsa_service_redis(const dsa_conf_t *conf,
    const dsa_backend_t *backend, dsa_step_t *st, dsa_tier_t *tier,
    dsa_err_t *err);


/* The tiers behind host memory, by number. */

static const dsa_service_tier_pt  dsa_service_slower[DSA_TIERS] = {
    [DSA_TIER_REDIS] = dsa_service_redis
};


int
dsa_service_tiers(const dsa_conf_t *conf, dsa_backend_t *backend,
    dsa_step_t *st, dsa_host_t *host, dsa_sched_conf_t *sched, dsa_err_t *err)
{
    uint32_t     i;
    dsa_tier_t  *tier;

    if (conf->host_memory == 0) {
        return DSA_OK;
    }

    if (dsa_service_host(conf, backend, host, err) != DSA_OK) {
        return DSA_ERROR;
    }

    sched->host = host;

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        if (dsa_service_slower[i](conf, backend, st, &sched->tier[i], err)
            != DSA_OK)
        {
            break;
        }
    }

    if (i == DSA_TIERS) {
        return DSA_OK;
    }

    while (i-- > DSA_TIER_SLOWER) {
        tier = &sched->tier[i];

        if (tier->submit != NULL) {
            tier->close(tier->data);
        }
    }

    return DSA_ERROR;
}


static int
dsa_service_host(const dsa_conf_t *conf, const dsa_backend_t *backend,
    dsa_host_t *host, dsa_err_t *err)
{
    uint32_t  i;
    uint64_t  pages;

    if (dsa_host_open(host, conf->host_memory, backend->page_bytes, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    pages = 0;

    for (i = 0; i < host->slabs; i++) {
        pages += host->slab[i].pages;
    }

    dsa_log(DSA_LOG_NOTICE, "host memory: %llu pages, %.2f M tokens of KV",
            (unsigned long long) pages,
            (double) (pages * DSA_PAGE_TOKENS) * 1e-6);

    return DSA_OK;
}


static int
dsa_service_redis(const dsa_conf_t *conf, const dsa_backend_t *backend,
    dsa_step_t *st, dsa_tier_t *tier, dsa_err_t *err)
{
    dsa_redis_conf_t  cache;

    if (conf->cache.addresses == 0) {
        return DSA_OK;
    }

    /* pages of different weights must not have the same keys */

    assert(!backend->sampled);

    memset(&cache, 0, sizeof(cache));

    cache.address = conf->cache.address;
    cache.n_addresses = conf->cache.addresses;
    cache.connections = conf->cache.connections;
    cache.user = conf->cache.user;
    cache.password = conf->cache.password;
    cache.tls = conf->cache.tls;
    cache.ttl_s = conf->cache.ttl_s;
    cache.max_bandwidth = conf->cache.max_bandwidth;
    cache.timeout_ms = DSA_TIERS_TIMEOUT_MS;
    cache.page_bytes = backend->page_bytes;
    cache.fingerprint = backend->fingerprint;
    cache.wake = dsa_step_nudge;
    cache.wake_data = st;

    return dsa_redis_tier(tier, &cache, err);
}
