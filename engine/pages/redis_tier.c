
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/pages/redis.h"


/* The cache in Redis as a tier. */


static int
dsa_redis_tier_on(void *data)
{
    return dsa_redis_on(data);
}


static int
dsa_redis_tier_submit(void *data, dsa_tier_op_t *op)
{
    return dsa_redis_submit(data, op);
}


static void
dsa_redis_tier_cancel(void *data, const void *owner)
{
    dsa_redis_cancel(data, owner);
}


static dsa_tier_op_t *
dsa_redis_tier_collect(void *data)
{
    return dsa_redis_collect(data);
}


static void
dsa_redis_tier_stats(void *data, dsa_tier_stats_t *stats)
{
    dsa_redis_stats_t  cache;

    dsa_redis_stats(data, &cache);

    stats->failed += cache.unconnected;
    stats->servers = cache.servers;
    stats->servers_on = cache.servers_on;
}


static void
dsa_redis_tier_close(void *data)
{
    dsa_redis_close(data);
}


int
dsa_redis_tier(dsa_tier_t *tier, const dsa_redis_conf_t *conf, dsa_err_t *err)
{
    memset(tier, 0, sizeof(dsa_tier_t));

    tier->data = dsa_redis_open(conf, err);

    if (tier->data == NULL) {
        return DSA_ERROR;
    }

    tier->on = dsa_redis_tier_on;
    tier->submit = dsa_redis_tier_submit;
    tier->cancel = dsa_redis_tier_cancel;
    tier->collect = dsa_redis_tier_collect;
    tier->stats = dsa_redis_tier_stats;
    tier->close = dsa_redis_tier_close;

    return DSA_OK;
}
