
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "engine/hosts/leader.h"
#include "engine/pages/redis.h"
#include "engine/service/tiers.h"


/*
 * A server that sends nothing for so long is off.  Then waiting requests are
 * computed, and others do not wait for it.
 */

#define DSA_TIERS_TIMEOUT_MS    200


/* Whom a tier wakes, in its threads. */

typedef struct {
    void              (*wake)(void *data);
    void               *data;
} dsa_service_wake_t;


/* Opens a tier that conf has.  DSA_ERROR with err: it is not open. */
typedef int (*dsa_service_tier_pt)(const dsa_conf_t *conf,
    const dsa_backend_t *backend, const dsa_service_wake_t *wake,
    dsa_tier_t *tier, dsa_err_t *err);


static int dsa_service_host(const dsa_conf_t *conf, dsa_backend_t *backend,
    dsa_host_t *host, dsa_err_t *err);
static int dsa_service_slower_open(const dsa_conf_t *conf, uint32_t mask,
    const dsa_backend_t *backend, const dsa_service_wake_t *wake,
    dsa_tier_t *tier, dsa_err_t *err);
static int dsa_service_redis(const dsa_conf_t *conf,
    const dsa_backend_t *backend, const dsa_service_wake_t *wake,
    dsa_tier_t *tier, dsa_err_t *err);


/* The tiers behind host memory, by number. */

static const dsa_service_tier_pt  dsa_service_slower[DSA_TIERS] = {
    [DSA_TIER_REDIS] = dsa_service_redis
};


uint32_t
dsa_service_tier_mask(const dsa_conf_t *conf)
{
    return conf->cache.addresses != 0 ? 1U << DSA_TIER_REDIS : 0;
}


int
dsa_service_tiers(const dsa_conf_t *conf, dsa_backend_t *backend,
    dsa_step_t *st, dsa_host_t *host, dsa_sched_conf_t *sched, dsa_err_t *err)
{
    uint32_t            i;
    dsa_service_wake_t  wake = { dsa_step_nudge, st };

    if (conf->host_memory == 0) {
        return DSA_OK;
    }

    if (dsa_service_host(conf, backend, host, err) != DSA_OK) {
        return DSA_ERROR;
    }

    sched->host = host;

    if (dsa_service_slower_open(conf, dsa_service_tier_mask(conf), backend,
                                &wake, sched->tier, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS && conf->followers != 0; i++) {
        if (sched->tier[i].submit != NULL) {
            dsa_hosts_tier(backend, i, &sched->tier[i]);
        }
    }

    return DSA_OK;
}


int
dsa_service_follow_tiers(void *data, uint32_t mask,
    const dsa_backend_t *backend, void (*wake)(void *data), void *wake_data,
    dsa_tier_t *tier, dsa_err_t *err)
{
    const dsa_conf_t    *conf = data;
    dsa_service_wake_t   woken = { wake, wake_data };

    if ((mask & ~dsa_service_tier_mask(conf)) != 0) {
        return dsa_error(err, "the leader has \"redis_cache\", and this host "
                         "none; expected one on all hosts, of the same Redis");
    }

    return dsa_service_slower_open(conf, mask, backend, &woken, tier, err);
}


/* Opens the tiers of a mask, or none. */

static int
dsa_service_slower_open(const dsa_conf_t *conf, uint32_t mask,
    const dsa_backend_t *backend, const dsa_service_wake_t *wake,
    dsa_tier_t *tier, dsa_err_t *err)
{
    uint32_t  i;

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        if ((mask >> i & 1) != 0
            && dsa_service_slower[i](conf, backend, wake, &tier[i], err)
               != DSA_OK)
        {
            break;
        }
    }

    if (i == DSA_TIERS) {
        return DSA_OK;
    }

    while (i-- > DSA_TIER_SLOWER) {
        if (tier[i].submit != NULL) {
            tier[i].close(tier[i].data);
            tier[i].submit = NULL;
        }
    }

    return DSA_ERROR;
}


static int
dsa_service_host(const dsa_conf_t *conf, dsa_backend_t *backend,
    dsa_host_t *host, dsa_err_t *err)
{
    uint32_t  i;
    uint64_t  pages;

    if (dsa_host_open_part(host, conf->host_memory, backend->page_bytes,
                           conf->followers + 1, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (conf->followers != 0) {
        dsa_hosts_memory(backend, host);
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
    const dsa_service_wake_t *wake, dsa_tier_t *tier, dsa_err_t *err)
{
    dsa_redis_conf_t  cache;

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
    cache.wake = wake->wake;
    cache.wake_data = wake->data;

    return dsa_redis_tier(tier, &cache, err);
}
