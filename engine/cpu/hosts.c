
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/cpu/parts.h"
#include "kernels/core/fp8.h"


/*
 * The exchange of the ranks of several hosts.  A token of another host is a row
 * behind those of this host; its rows begin at dsa_hosts_row().
 */


static uint64_t dsa_hosts_row(const dsa_model_t *m, uint32_t host);
static void dsa_hosts_gather(dsa_model_t *m, void *rows, uint64_t bytes);
static void dsa_hosts_call(dsa_model_t *m, const void *const *out,
    void *const *in, const uint64_t *bytes);


/* Returns the first row of a host's tokens in the workspace of this host. */

static uint64_t
dsa_hosts_row(const dsa_model_t *m, uint32_t host)
{
    uint64_t  row;
    uint32_t  h;

    if (host == m->hosts.host) {
        return 0;
    }

    row = m->tokens[m->hosts.host];

    for (h = 0; h < host; h++) {
        row += h != m->hosts.host ? m->tokens[h] : 0;
    }

    return row;
}


uint32_t
dsa_model_gather(dsa_model_t *m, uint32_t tokens)
{
    uint32_t          h, all;
    uint64_t          hidden, k;
    dsa_workspace_t  *w;

    w = &m->work;
    hidden = m->config->hidden_size;
    k = m->router.k;

    for (h = 0, all = 0; h < m->hosts.n; h++) {
        all += m->tokens[h];
    }

    dsa_hosts_gather(m, w->x, hidden * sizeof(float));
    dsa_hosts_gather(m, w->expert, k * sizeof(int32_t));
    dsa_hosts_gather(m, w->expert_weight, k * sizeof(float));

    if (m->served && !m->failed) {
        dsa_fp8_simulate(w->x8 + tokens * hidden, w->x + tokens * hidden,
                         all - tokens, hidden, (int) m->config->ue8m0);
    }

    return all;
}


/* Sends the rows of this host to all others, and receives theirs. */

static void
dsa_hosts_gather(dsa_model_t *m, void *rows, uint64_t bytes)
{
    void        *in[DSA_MAX_GPUS];
    uint32_t     f, t, n;
    uint64_t     size[DSA_MAX_GPUS * DSA_MAX_GPUS];
    const void  *out[DSA_MAX_GPUS];

    n = m->hosts.n;

    for (f = 0; f < n; f++) {
        out[f] = rows;
        in[f] = (char *) rows + dsa_hosts_row(m, f) * bytes;

        for (t = 0; t < n; t++) {
            size[f * n + t] = f != t ? m->tokens[f] * bytes : 0;
        }
    }

    dsa_hosts_call(m, out, in, size);
}


/* The parts of a rank are exchanged by a call, so that all are contiguous. */

void
dsa_model_scatter(dsa_model_t *m)
{
    void        *in[DSA_MAX_GPUS];
    uint32_t     i, f, t, n;
    uint64_t     bytes, size[DSA_MAX_GPUS * DSA_MAX_GPUS];
    const char  *part;
    const void  *out[DSA_MAX_GPUS];

    n = m->hosts.n;
    bytes = m->config->hidden_size * sizeof(float);
    part = (const char *) m->work.part;

    for (i = 0; i < m->own; i++) {
        for (f = 0; f < n; f++) {
            out[f] = part + ((uint64_t) (m->first + i) * m->max_tokens
                             + dsa_hosts_row(m, f)) * bytes;
            in[f] = (char *) m->work.part
                    + (uint64_t) (f * m->own + i) * m->max_tokens * bytes;

            for (t = 0; t < n; t++) {
                size[f * n + t] = f != t ? m->tokens[t] * bytes : 0;
            }
        }

        dsa_hosts_call(m, out, in, size);
    }
}


/* Calls the exchange, unless one has failed before. */

static void
dsa_hosts_call(dsa_model_t *m, const void *const *out, void *const *in,
    const uint64_t *bytes)
{
    if (!m->failed
        && m->hosts.exchange(m->hosts.data, out, in, bytes, &m->err) != DSA_OK)
    {
        m->failed = 1;
    }
}


int
dsa_model_copy_far(dsa_model_t *m, const dsa_page_copy_t *copy,
    dsa_err_t *err)
{
    void        *in[DSA_MAX_GPUS];
    uint32_t     from, to;
    uint64_t     bytes[DSA_MAX_GPUS * DSA_MAX_GPUS];
    const void  *out[DSA_MAX_GPUS];

    from = copy->from_rank / m->own;
    to = copy->to_rank / m->own;

    memset(in, 0, sizeof(in));
    memset(out, 0, sizeof(out));
    memset(bytes, 0, sizeof(bytes));

    bytes[from * m->hosts.n + to] = m->cache.page;

    if (from == m->hosts.host) {
        out[to] = (const uint8_t *) dsa_model_page(m, copy->from_rank)
                  + copy->from_page * m->cache.page;
    }

    if (to == m->hosts.host) {
        in[from] = (uint8_t *) dsa_model_page(m, copy->to_rank)
                   + copy->to_page * m->cache.page;
    }

    return m->hosts.exchange(m->hosts.data, out, in, bytes, err);
}
