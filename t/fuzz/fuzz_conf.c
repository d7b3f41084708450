
/*
 * Copyright (C) The nginx-dsa authors
 *
 * An engine.conf of any bytes either fails with an error that has a file and a
 * line, or makes a configuration with values that do not contradict one
 * another.
 */


#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "engine/link_hello.h"
#include "engine/service/conf.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
check(int ok)
{
    if (!ok) {
        abort();
    }
}


static void
check_cache(const dsa_conf_t *conf)
{
    uint32_t                 i;
    const dsa_conf_cache_t  *cache;

    cache = &conf->cache;

    if (cache->addresses == 0) {
        check(cache->user == NULL && cache->password == NULL);
        return;
    }

    check(conf->host_memory != 0 && !conf->random);
    check(cache->addresses <= DSA_REDIS_SERVERS);
    check(cache->connections >= 1 && cache->connections <= 64);
    check(cache->ttl_s >= 1 && cache->ttl_s <= 3650ULL * 86400);
    check(cache->user == NULL || cache->password != NULL);

    for (i = 0; i < cache->addresses; i++) {
        check(strchr(cache->address[i], ':') != NULL);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char                 path[sizeof(((struct sockaddr_un *) 0)->sun_path)];
    uint32_t             last, ranks;
    dsa_err_t            err;
    dsa_conf_t           conf;
    dsa_backend_conf_t   backend;

    err.text[0] = '\0';

    if (dsa_conf_parse(&conf, "file", (const char *) data, size, &err)
        != DSA_OK)
    {
        check(strncmp(err.text, "file:", 5) == 0
              && err.text[5] >= '0' && err.text[5] <= '9');
        dsa_conf_free(&conf);

        return 0;
    }

    last = conf.replicas - 1;
    ranks = conf.attention == DSA_ATTENTION_DATA ? conf.gpus : 1;

    check(conf.model != NULL && conf.name != NULL && conf.listen != NULL);
    check(dsa_conf_socket(&conf, last, path, sizeof(path)) == DSA_OK);
    check(conf.replicas >= 1 && conf.replicas <= DSA_CONF_REPLICAS);
    check(conf.replicas == 1 || strstr(conf.listen, "%n") != NULL);
    check(conf.journal == NULL || conf.backend == DSA_BACKEND_NULL);
    check(!conf.random || conf.backend == DSA_BACKEND_CUDA);
    check(conf.gpus >= 1 && conf.gpus <= DSA_MAX_GPUS);
    check(conf.max_running >= 1
          && conf.token_budget / ranks >= conf.max_running);
    check(conf.max_running * ranks + conf.max_waiting < DSA_LINK_MAX_SLOTS
          && conf.max_waiting_per_tenant <= conf.max_waiting);
    check_cache(&conf);

    dsa_conf_backend_of(&conf, last, &backend);
    check(backend.persistent == (conf.cache.addresses != 0));

    dsa_conf_free(&conf);

    return 0;
}
