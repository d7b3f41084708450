
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/hosts/door.h"
#include "engine/service/conf_parts.h"


/*
 * A replica over several hosts.  "hosts" makes this one its leader; "listen"
 * with an address of TCP makes it a follower, which has few directives of its
 * own, because it receives the others from the leader.
 */

static const char  *dsa_conf_follower[] = {
    "model", "listen", "host_secret", "backend", "gpus", "log_level",
    "step_timeout", "start_timeout", "redis_cache"
};


static int dsa_conf_leads(dsa_conf_reader_t *r);
static int dsa_conf_secret(dsa_conf_reader_t *r);


int
dsa_conf_follow(dsa_conf_reader_t *r)
{
    dsa_err_t            err;
    dsa_hosts_address_t  address;

    if (dsa_hosts_address(&address, r->arg[1], &err) != DSA_OK) {
        return dsa_conf_fail(r, "\"listen\" is \"%s\"; expected unix:PATH, or "
                             "HOST:PORT for a host that follows another one",
                             r->arg[1]);
    }

    r->conf->follow = strdup(r->arg[1]);

    return r->conf->follow != NULL ? DSA_OK
                                   : dsa_conf_fail(r, "out of memory");
}


int
dsa_conf_hosts(dsa_conf_reader_t *r, size_t offset, uint64_t min, uint64_t max)
{
    unsigned              i, j;
    dsa_err_t             err;
    dsa_conf_t           *conf;
    dsa_hosts_address_t   address;

    conf = r->conf;

    for (i = 1; i < r->n; i++) {
        if (dsa_hosts_address(&address, r->arg[i], &err) != DSA_OK
            || strcmp(address.port, "0") == 0)
        {
            return dsa_conf_fail(r, "\"%s\" of \"hosts\" is not an address; "
                                 "expected the \"listen\" of a host that "
                                 "follows, HOST:PORT or [IPV6]:PORT",
                                 r->arg[i]);
        }

        for (j = 0; j < conf->followers; j++) {
            if (strcmp(conf->host[j], r->arg[i]) == 0) {
                return dsa_conf_fail(r, "\"hosts\" has \"%s\" twice; expected "
                                     "different hosts", r->arg[i]);
            }
        }

        conf->host[conf->followers] = strdup(r->arg[i]);

        if (conf->host[conf->followers] == NULL) {
            return dsa_conf_fail(r, "out of memory");
        }

        conf->followers++;
    }

    return DSA_OK;
}


int
dsa_conf_check_hosts(dsa_conf_reader_t *r)
{
    dsa_conf_t  *conf;

    conf = r->conf;

    if (conf->followers == 0 && conf->follow == NULL) {
        return conf->host_secret == NULL ? DSA_OK
               : dsa_conf_fail(r, "\"host_secret\" needs \"hosts\", or "
                               "\"listen HOST:PORT\"");
    }

    if (conf->backend == DSA_BACKEND_NULL) {
        return dsa_conf_fail(r, "several hosts need \"backend cuda\" or "
                             "\"backend cpu\"");
    }

    if (conf->followers != 0 && dsa_conf_leads(r) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_conf_secret(r);
}


/* Checks what a replica over several hosts does not offer. */

static int
dsa_conf_leads(dsa_conf_reader_t *r)
{
    dsa_conf_t  *conf;

    conf = r->conf;

    if (conf->attention == DSA_ATTENTION_TENSOR) {
        return dsa_conf_fail(r, "\"attention tensor\" is not possible over "
                             "several \"hosts\", because it adds up every "
                             "layer over all GPUs; expected attention data");
    }

    if (conf->replicas != 1) {
        return dsa_conf_fail(r, "there are %u \"replicas\" with \"hosts\"; "
                             "expected one, and another engine.conf for each "
                             "further replica", conf->replicas);
    }

    if (conf->gpus * (conf->followers + 1) > DSA_MAX_GPUS) {
        return dsa_conf_fail(r, "%u \"gpus\" on each of %u hosts are %u; "
                             "expected at most %d GPUs of a replica",
                             conf->gpus, conf->followers + 1,
                             conf->gpus * (conf->followers + 1),
                             DSA_MAX_GPUS);
    }

    if (!conf->adapt_drafts && conf->drafts != 0) {
        return dsa_conf_fail(r, "\"speculate %u\" is not possible over several "
                             "\"hosts\"; expected auto or off",
                             conf->drafts);
    }

    if (conf->random) {
        return dsa_conf_fail(r, "\"weights random\" is not possible over "
                             "several \"hosts\", which compare the "
                             "fingerprints of their weights; expected files "
                             "or fp8");
    }

    if (conf->step_timeout_ms == 0) {
        return dsa_conf_fail(r, "\"step_timeout\" is 0, but with \"hosts\" it "
                             "is what finds a host that hangs; expected a "
                             "time");
    }

    conf->drafts = 0;

    return DSA_OK;
}


static int
dsa_conf_secret(dsa_conf_reader_t *r)
{
    dsa_err_t  err;

    if (r->conf->host_secret == NULL) {
        return dsa_conf_fail(r, "\"host_secret\" is missing; expected "
                             "\"host_secret FILE;\", with the same secret on "
                             "all hosts");
    }

    if (dsa_hosts_secret_read(&r->conf->secret, r->conf->host_secret, &err)
        != DSA_OK)
    {
        return dsa_conf_fail(r, "\"host_secret\": %.400s", err.text);
    }

    return DSA_OK;
}


int
dsa_conf_follows(dsa_conf_reader_t *r, const char *name, unsigned line)
{
    size_t  i, n;

    n = sizeof(dsa_conf_follower) / sizeof(dsa_conf_follower[0]);

    for (i = 0; i < n; i++) {
        if (strcmp(name, dsa_conf_follower[i]) == 0) {
            return DSA_OK;
        }
    }

    r->start = line;

    return dsa_conf_fail(r, "\"%s\" is the leader's, because this host follows "
                         "another one (\"listen %s\"); expected only model, "
                         "listen, host_secret, backend, gpus, log_level, "
                         "step_timeout, start_timeout and redis_cache", name,
                         r->conf->follow);
}
