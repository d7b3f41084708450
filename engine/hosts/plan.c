
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "base/tiers.h"
#include "engine/hosts/plan.h"


_Static_assert(sizeof(dsa_hosts_plan_t) == 80, "PLAN has no padding");
_Static_assert(sizeof(dsa_hosts_ready_t) == 56 + 8 * DSA_HOST_SLABS
               + 4 * DSA_MAX_GPUS, "READY has no padding");


static int dsa_hosts_ready_memory(const dsa_hosts_ready_t *ready,
    uint32_t hosts, int memory, const char *name, dsa_err_t *err);
static int dsa_hosts_plan_range(const char *name, uint64_t value,
    uint64_t least, uint64_t most, dsa_err_t *err);


void
dsa_hosts_plan(dsa_hosts_plan_t *plan, dsa_backend_e kind,
    const dsa_backend_conf_t *conf, uint32_t host, uint32_t tiers,
    uint64_t limit_ms)
{
    memset(plan, 0, sizeof(dsa_hosts_plan_t));

    plan->hosts = conf->hosts.n;
    plan->host = host;
    plan->gpus = conf->gpus;
    plan->backend = kind;
    plan->precision = conf->precision;
    plan->kv = conf->kv;
    plan->quantize = conf->quantize;
    plan->context = conf->context;
    plan->max_tokens = conf->max_tokens;
    plan->max_seqs = conf->max_seqs;
    plan->allowed = conf->allowed;
    plan->persistent = conf->persistent;
    plan->tiers = tiers;
    plan->kv_memory = conf->kv_memory;
    plan->host_memory = conf->host_memory;
    plan->limit_ms = limit_ms;
}


int
dsa_hosts_plan_apply(dsa_backend_conf_t *conf, dsa_backend_e kind,
    const dsa_hosts_plan_t *plan, dsa_err_t *err)
{
    size_t  i;

    static const char  *names[] = { "cpu", "cuda", "null" };

    const struct {
        const char     *name;
        uint64_t        value;
        uint64_t        least;
        uint64_t        most;
    } ranges[] = {
        { "backend", plan->backend, 0, DSA_BACKEND_NULL },
        { "hosts", plan->hosts, 2, DSA_MAX_GPUS },
        { "host", plan->host, 1, (uint64_t) plan->hosts - 1 },
        { "gpus", plan->gpus, 1,
          plan->hosts != 0 ? DSA_MAX_GPUS / plan->hosts : 0 },
        { "precision", plan->precision, 0, DSA_SERVED },
        { "kv", plan->kv, 0, DSA_KV_BF16 },
        { "weights fp8", plan->quantize, 0, 1 },
        { "context_length", plan->context, 0, 1U << 30 },
        { "token_budget", plan->max_tokens, 1, 1U << 20 },
        { "max_running", plan->max_seqs, 1, 1U << 20 },
        { "tokens of the tokenizer", plan->allowed, 1, UINT32_MAX },
        { "kv_memory", plan->kv_memory, 0, 1ULL << 48 },
        { "host_memory", plan->host_memory, 0, 1ULL << 48 },
        { "persistent", plan->persistent, 0, 1 },
        { "tiers", plan->tiers, 0,
          plan->host_memory != 0 ? (1U << DSA_TIERS) - 1 : 0 },
        { "reserved", plan->reserved, 0, 0 },
        { "step_timeout", plan->limit_ms, 1, 24 * 3600 * 1000 }
    };

    for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (dsa_hosts_plan_range(ranges[i].name, ranges[i].value,
                                 ranges[i].least, ranges[i].most, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    if (plan->backend != (uint32_t) kind) {
        return dsa_error(err, "the leader has \"backend %s\", and this host "
                         "\"backend %s\"; expected the same one on all hosts",
                         names[plan->backend], names[kind]);
    }

    if (plan->gpus != conf->gpus) {
        return dsa_error(err, "the leader has \"gpus\" %u, and this host %u; "
                         "expected the same number on all hosts", plan->gpus,
                         conf->gpus);
    }

    conf->hosts.n = plan->hosts;
    conf->hosts.host = plan->host;
    conf->precision = (dsa_precision_e) plan->precision;
    conf->kv = (dsa_kv_e) plan->kv;
    conf->quantize = plan->quantize;
    conf->context = plan->context;
    conf->max_tokens = plan->max_tokens;
    conf->max_seqs = plan->max_seqs;
    conf->allowed = plan->allowed;
    conf->kv_memory = plan->kv_memory;
    conf->host_memory = plan->host_memory;
    conf->persistent = plan->persistent;
    conf->attention = DSA_ATTENTION_DATA;
    conf->drafts = 0;

    return DSA_OK;
}


static int
dsa_hosts_plan_range(const char *name, uint64_t value, uint64_t least,
    uint64_t most, dsa_err_t *err)
{
    if (value >= least && value <= most) {
        return DSA_OK;
    }

    return dsa_error(err, "\"%s\" of the leader is %llu; expected %llu to "
                     "%llu", name, (unsigned long long) value,
                     (unsigned long long) least, (unsigned long long) most);
}


static int
dsa_hosts_ready_memory(const dsa_hosts_ready_t *ready, uint32_t hosts,
    int memory, const char *name, dsa_err_t *err)
{
    uint32_t  i, most;

    most = memory ? DSA_HOST_SLABS / hosts : 0;

    if (ready->slabs > most || (memory && ready->slabs == 0)
        || ready->reserved != 0)
    {
        return dsa_error(err, "%s has %u slabs of host memory; expected %u to "
                         "%u", name, ready->slabs, memory ? 1 : 0, most);
    }

    for (i = 0; i < ready->slabs; i++) {
        if (ready->slab_pages[i] == 0 || ready->slab_pages[i] > DSA_PAGES_MAX)
        {
            return dsa_error(err, "%s has %u pages in slab %u of its host "
                             "memory; expected 1 to %u", name,
                             ready->slab_pages[i], i, DSA_PAGES_MAX);
        }
    }

    return DSA_OK;
}


int
dsa_hosts_ready_check(dsa_backend_t *b, const dsa_hosts_ready_t *ready,
    uint32_t hosts, int memory, const char *name, dsa_err_t *err)
{
    char    fingerprint[sizeof(ready->fingerprint)];
    size_t  i;

    for (i = 0; i + 1 < sizeof(fingerprint); i++) {
        fingerprint[i] = ready->fingerprint[i];

        if (fingerprint[i] != '\0'
            && (fingerprint[i] < '0' || fingerprint[i] > 'z'))
        {
            fingerprint[i] = '?';
        }
    }

    fingerprint[i] = '\0';

    if (strcmp(fingerprint, b->fingerprint) != 0) {
        return dsa_error(err, "%s has other weights: their fingerprint is "
                         "%s; expected %s, that of this host's \"model\"",
                         name, fingerprint, b->fingerprint);
    }

    if (ready->page_bytes != b->page_bytes || ready->pages == 0) {
        return dsa_error(err, "%s has %u pages of %llu bytes; expected at "
                         "least one of %llu bytes", name, ready->pages,
                         (unsigned long long) ready->page_bytes,
                         (unsigned long long) b->page_bytes);
    }

    if (ready->pages < b->pages) {
        b->pages = ready->pages;
    }

    return dsa_hosts_ready_memory(ready, hosts, memory, name, err);
}
