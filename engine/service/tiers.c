
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "engine/service/tiers.h"


/*
 * A server that sends nothing for so long is off.  Then waiting requests are
 * computed, and others do not wait for it.
 */

#define DSA_TIERS_TIMEOUT_MS    200


int
dsa_service_tiers(const dsa_conf_t *conf, dsa_backend_t *backend,
    dsa_step_t *st, dsa_host_t *host, dsa_sched_conf_t *sched, dsa_err_t *err)
{
    uint32_t          i;
    uint64_t          pages;
    dsa_redis_conf_t  cache;

    if (conf->host_memory == 0) {
        return DSA_OK;
    }

    /* pages of different weights must not have the same keys */

    assert(conf->cache.addresses == 0 || !backend->sampled);

    if (dsa_host_open(host, conf->host_memory, backend->page_bytes, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    sched->host = host;
    pages = 0;

    for (i = 0; i < host->slabs; i++) {
        pages += host->slab[i].slots;
    }

    dsa_log(DSA_LOG_NOTICE, "host memory: %llu pages, %.2f M tokens of KV",
            (unsigned long long) pages,
            (double) (pages * DSA_PAGE_TOKENS) * 1e-6);

    if (conf->cache.addresses == 0) {
        return DSA_OK;
    }

    memset(&cache, 0, sizeof(cache));

    cache.address = conf->cache.address;
    cache.n_addresses = conf->cache.addresses;
    cache.connections = conf->cache.connections;
    cache.user = conf->cache.user;
    cache.password = conf->cache.password;
    cache.ttl_s = conf->cache.ttl_s;
    cache.max_bandwidth = conf->cache.max_bandwidth;
    cache.timeout_ms = DSA_TIERS_TIMEOUT_MS;
    cache.page_bytes = backend->page_bytes;
    cache.fingerprint = backend->fingerprint;
    cache.wake = dsa_step_nudge;
    cache.wake_data = st;

    sched->cache = dsa_redis_open(&cache, err);

    return sched->cache != NULL ? DSA_OK : DSA_ERROR;
}
