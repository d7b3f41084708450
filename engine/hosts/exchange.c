
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "engine/hosts/exchange.h"


_Static_assert(DSA_MAX_GPUS <= DSA_HOSTS_PARTS,
               "a message has room for a part of each host");


static int dsa_hosts_exchange_follow(dsa_hosts_exchange_t *x,
    const void *const *out, void *const *in, const uint64_t *bytes,
    dsa_err_t *err);
static int dsa_hosts_exchange_from(dsa_hosts_exchange_t *x, uint32_t from,
    void *in, const uint64_t *bytes, dsa_err_t *err);
static int dsa_hosts_exchange_to(dsa_hosts_exchange_t *x, uint32_t to,
    const void *out, const uint64_t *bytes, dsa_err_t *err);
static int dsa_hosts_exchange_room(dsa_hosts_exchange_t *x, uint32_t from,
    uint64_t bytes, dsa_err_t *err);


int
dsa_hosts_exchange(void *data, const void *const *out, void *const *in,
    const uint64_t *bytes, dsa_err_t *err)
{
    uint32_t               h;
    dsa_hosts_exchange_t  *x = data;

    x->number++;

    if (x->host != 0) {
        return dsa_hosts_exchange_follow(x, out, in, bytes, err);
    }

    /*
     * A follower sends everything before it receives, so that the leader, which
     * receives first, never waits for a follower that waits for it.
     */

    for (h = 1; h < x->n; h++) {
        if (dsa_hosts_exchange_from(x, h, in[h], bytes, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    for (h = 1; h < x->n; h++) {
        if (dsa_hosts_exchange_to(x, h, out[h], bytes, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


void
dsa_hosts_exchange_close(dsa_hosts_exchange_t *x)
{
    uint32_t  h;

    for (h = 0; h < DSA_MAX_GPUS; h++) {
        free(x->passed[h]);
    }
}


static int
dsa_hosts_exchange_follow(dsa_hosts_exchange_t *x, const void *const *out,
    void *const *in, const uint64_t *bytes, dsa_err_t *err)
{
    int               parts;
    uint32_t          h;
    uint64_t          from, to;
    struct iovec      part[DSA_HOSTS_PARTS];
    dsa_hosts_head_t  head;

    parts = 0;
    from = 0;
    to = 0;

    for (h = 0; h < x->n; h++) {
        part[parts].iov_base = (void *) (uintptr_t) out[h];
        part[parts].iov_len = bytes[x->host * x->n + h];
        to += part[parts].iov_len;
        parts += part[parts].iov_len != 0;
        from += bytes[h * x->n + x->host];
    }

    if (to != 0
        && dsa_hosts_wire_send(x->wire, DSA_HOSTS_DATA, x->number, part, parts,
                               err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (from == 0) {
        return DSA_OK;
    }

    if (dsa_hosts_wire_expect(x->wire, DSA_HOSTS_DATA, x->number, from, from,
                              &head, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (h = 0; h < x->n; h++) {
        if (dsa_hosts_wire_read(x->wire, in[h], bytes[h * x->n + x->host], err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Receives what a follower has for the leader, and for other followers. */

static int
dsa_hosts_exchange_from(dsa_hosts_exchange_t *x, uint32_t from, void *in,
    const uint64_t *bytes, dsa_err_t *err)
{
    uint32_t          h;
    uint64_t          all, others;
    dsa_hosts_head_t  head;

    bytes += from * x->n;

    for (h = 1, others = 0; h < x->n; h++) {
        others += bytes[h];
    }

    all = bytes[0] + others;

    if (all == 0) {
        return DSA_OK;
    }

    if (dsa_hosts_exchange_room(x, from, others, err) != DSA_OK
        || dsa_hosts_wire_expect(&x->wire[from], DSA_HOSTS_DATA, x->number,
                                 all, all, &head, err) != DSA_OK
        || dsa_hosts_wire_read(&x->wire[from], in, bytes[0], err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_hosts_wire_read(&x->wire[from], x->passed[from], others, err);
}


static int
dsa_hosts_exchange_room(dsa_hosts_exchange_t *x, uint32_t from, uint64_t bytes,
    dsa_err_t *err)
{
    char  *p;

    if (bytes <= x->size[from]) {
        return DSA_OK;
    }

    p = realloc(x->passed[from], bytes);

    if (p == NULL) {
        return dsa_error(err, "no memory for %llu bytes of %s",
                         (unsigned long long) bytes, x->wire[from].name);
    }

    x->passed[from] = p;
    x->size[from] = bytes;

    return DSA_OK;
}


/* Sends what the leader and the other followers have for a follower. */

static int
dsa_hosts_exchange_to(dsa_hosts_exchange_t *x, uint32_t to, const void *out,
    const uint64_t *bytes, dsa_err_t *err)
{
    int           parts;
    uint32_t      h, f;
    uint64_t      at;
    struct iovec  part[DSA_HOSTS_PARTS];

    part[0].iov_base = (void *) (uintptr_t) out;
    part[0].iov_len = bytes[to];
    parts = part[0].iov_len != 0;

    for (f = 1; f < x->n; f++) {
        for (h = 1, at = 0; h < to; h++) {
            at += bytes[f * x->n + h];
        }

        if (bytes[f * x->n + to] != 0) {
            part[parts].iov_base = x->passed[f] + at;
            part[parts].iov_len = bytes[f * x->n + to];
            parts++;
        }
    }

    return parts == 0 ? DSA_OK
           : dsa_hosts_wire_send(&x->wire[to], DSA_HOSTS_DATA, x->number, part,
                                 parts, err);
}
