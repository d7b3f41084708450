
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <math.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_http_dsa_hash.h"


#define NGX_HTTP_DSA_HASH_BOUND   125   /* percent */
#define NGX_HTTP_DSA_HASH_LEAST   32    /* requests */
#define NGX_HTTP_DSA_HASH_TRIES   20    /* then nginx's own method */
#define NGX_HTTP_DSA_HASH_RECENT  512   /* choices for each server */
#define NGX_HTTP_DSA_HASH_BITS    (8 * sizeof(uintptr_t))    /* of rrp.tried */


/*
 * Of an upstream.  Each worker has its own counts of its recent choices: they
 * are halved when they are NGX_HTTP_DSA_HASH_RECENT for each peer together, so
 * that what varies by chance is far below the bound.
 */

typedef struct {
    ngx_http_complex_value_t           value;
    ngx_uint_t                         bound;   /* percent; 0: not set */
    ngx_uint_t                         least;   /* requests; 0: not set */
    ngx_uint_t                         n;
    ngx_uint_t                        *recent;  /* [n], in the order of peers */
    ngx_uint_t                         sum;     /* of recent */
} ngx_http_dsa_hash_conf_t;


/* what the peers have that may get a request, with this request */

typedef struct {
    uint64_t                           weight;
    uint64_t                           conns;
    uint64_t                           recent;
} ngx_http_dsa_hash_sums_t;


typedef struct {
    /* nginx's functions get a pointer to this struct, so it is the first */
    ngx_http_upstream_rr_peer_data_t   rrp;

    ngx_http_dsa_hash_conf_t          *conf;
    uint64_t                           value;
    ngx_uint_t                         tries;
} ngx_http_dsa_hash_peer_t;


static ngx_int_t ngx_http_dsa_hash_parameter(ngx_http_dsa_hash_conf_t *conf,
    ngx_str_t *value);
static ngx_int_t ngx_http_dsa_hash_init(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_dsa_hash_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_dsa_hash_get_peer(ngx_peer_connection_t *pc,
    void *data);
static ngx_http_upstream_rr_peer_t *ngx_http_dsa_hash_choose(
    ngx_http_dsa_hash_peer_t *hp, time_t now, ngx_uint_t *number);
static ngx_uint_t ngx_http_dsa_hash_is_usable(ngx_http_dsa_hash_peer_t *hp,
    ngx_http_upstream_rr_peer_t *peer, ngx_uint_t i, time_t now);
static ngx_uint_t ngx_http_dsa_hash_is_full(ngx_http_dsa_hash_conf_t *conf,
    ngx_http_upstream_rr_peer_t *peer, ngx_uint_t recent,
    ngx_http_dsa_hash_sums_t *sums);
static double ngx_http_dsa_hash_rank(uint64_t value,
    ngx_http_upstream_rr_peer_t *peer);
static void ngx_http_dsa_hash_count(ngx_http_dsa_hash_conf_t *conf,
    ngx_uint_t i);


void *
ngx_http_dsa_hash_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_hash_conf_t));
}


char *
ngx_http_dsa_hash_directive(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_hash_conf_t *hcf = conf;

    ngx_str_t                         *value;
    ngx_uint_t                         i;
    ngx_http_upstream_srv_conf_t      *us;
    ngx_http_compile_complex_value_t   ccv;

    value = cf->args->elts;
    us = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);

    if (us->peer.init_upstream != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" follows another directive that chooses "
                           "servers, or \"keepalive\"; expected it before "
                           "\"keepalive\", and no other method", &value[0]);
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_http_dsa_hash_parameter(hcf, &value[i]) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\" of \"%V\"; expected "
                               "\"bound=\" and a number from 1 to 100, such "
                               "as 1.25, or \"least=\" and a number of "
                               "requests of at least 1, each of them once",
                               &value[i], &value[0]);
            return NGX_CONF_ERROR;
        }
    }

    if (hcf->bound == 0) {
        hcf->bound = NGX_HTTP_DSA_HASH_BOUND;
    }

    if (hcf->least == 0) {
        hcf->least = NGX_HTTP_DSA_HASH_LEAST;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = &hcf->value;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    us->peer.init_upstream = ngx_http_dsa_hash_init;

    us->flags = NGX_HTTP_UPSTREAM_CREATE
                |NGX_HTTP_UPSTREAM_WEIGHT
                |NGX_HTTP_UPSTREAM_MAX_CONNS
                |NGX_HTTP_UPSTREAM_MAX_FAILS
                |NGX_HTTP_UPSTREAM_FAIL_TIMEOUT
                |NGX_HTTP_UPSTREAM_DOWN;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_dsa_hash_parameter(ngx_http_dsa_hash_conf_t *conf, ngx_str_t *value)
{
    size_t       len;
    u_char      *text;
    ngx_int_t    n;
    ngx_uint_t  *field, bound;

    bound = (ngx_strncmp(value->data, "bound=", 6) == 0);

    if (!bound && ngx_strncmp(value->data, "least=", 6) != 0) {
        return NGX_ERROR;
    }

    field = bound ? &conf->bound : &conf->least;
    text = value->data + 6;
    len = value->len - 6;

    n = bound ? ngx_atofp(text, len, 2) : ngx_atoi(text, len);

    if (*field != 0 || n < (bound ? 100 : 1) || (bound && n > 10000)) {
        return NGX_ERROR;
    }

    *field = n;

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_hash_init(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_dsa_hash_conf_t      *conf;
    ngx_http_upstream_rr_peers_t  *peers;

    if (ngx_http_upstream_init_round_robin(cf, us) != NGX_OK) {
        return NGX_ERROR;
    }

    conf = ngx_http_conf_upstream_srv_conf(us, ngx_http_dsa_module);
    peers = us->peer.data;

    conf->n = peers->number;
    conf->recent = ngx_pcalloc(cf->pool, conf->n * sizeof(ngx_uint_t));

    if (conf->recent == NULL) {
        return NGX_ERROR;
    }

    us->peer.init = ngx_http_dsa_hash_init_peer;

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_hash_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_str_t                  value;
    ngx_http_dsa_hash_peer_t  *hp;

    hp = ngx_palloc(r->pool, sizeof(ngx_http_dsa_hash_peer_t));
    if (hp == NULL) {
        return NGX_ERROR;
    }

    r->upstream->peer.data = &hp->rrp;

    if (ngx_http_upstream_init_round_robin_peer(r, us) != NGX_OK) {
        return NGX_ERROR;
    }

    r->upstream->peer.get = ngx_http_dsa_hash_get_peer;

    hp->conf = ngx_http_conf_upstream_srv_conf(us, ngx_http_dsa_module);
    hp->tries = 0;

    if (ngx_http_complex_value(r, &hp->conf->value, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    hp->value = XXH3_64bits(value.data, value.len);

    return NGX_OK;
}


/*
 * Does for the chosen peer what nginx's own methods do, so that nginx's own
 * function can free it.  Where no peer is left, nginx's method has backup
 * servers and the error.
 */

static ngx_int_t
ngx_http_dsa_hash_get_peer(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_dsa_hash_peer_t *hp = data;

    time_t                         now;
    ngx_uint_t                     i;
    ngx_http_upstream_rr_peer_t   *peer;
    ngx_http_upstream_rr_peers_t  *peers;

    peers = hp->rrp.peers;

    if (peers->single || hp->tries++ > NGX_HTTP_DSA_HASH_TRIES) {
        return ngx_http_upstream_get_round_robin_peer(pc, &hp->rrp);
    }

    now = ngx_time();
    pc->cached = 0;
    pc->connection = NULL;

    ngx_http_upstream_rr_peers_wlock(peers);

    peer = ngx_http_dsa_hash_choose(hp, now, &i);

    if (peer == NULL) {
        ngx_http_upstream_rr_peers_unlock(peers);

        return ngx_http_upstream_get_round_robin_peer(pc, &hp->rrp);
    }

    pc->sockaddr = peer->sockaddr;
    pc->socklen = peer->socklen;
    pc->name = &peer->name;

    peer->conns++;

    if (now - peer->checked > peer->fail_timeout) {
        peer->checked = now;
    }

    hp->rrp.current = peer;
    hp->rrp.tried[i / NGX_HTTP_DSA_HASH_BITS]
                             |= (uintptr_t) 1 << i % NGX_HTTP_DSA_HASH_BITS;

    ngx_http_upstream_rr_peers_unlock(peers);

    ngx_http_dsa_hash_count(hp->conf, i);

    return NGX_OK;
}


/*
 * The first peer in the order of the value that is not full, or else the first
 * one; NULL if none is usable.  number: its place in the list.
 */

static ngx_http_upstream_rr_peer_t *
ngx_http_dsa_hash_choose(ngx_http_dsa_hash_peer_t *hp, time_t now,
    ngx_uint_t *number)
{
    double                        rank, first[2];
    ngx_uint_t                    i, full, at[2];
    ngx_http_dsa_hash_sums_t      sums;
    ngx_http_upstream_rr_peer_t  *peer, *best[2];

    sums.weight = 0;
    sums.conns = 1;
    sums.recent = 1;

    for (peer = hp->rrp.peers->peer, i = 0; peer != NULL;
         peer = peer->next, i++)
    {
        if (ngx_http_dsa_hash_is_usable(hp, peer, i, now)) {
            sums.weight += peer->weight;
            sums.conns += peer->conns;
            sums.recent += hp->conf->recent[i];
        }
    }

    best[0] = NULL;
    best[1] = NULL;

    for (peer = hp->rrp.peers->peer, i = 0; peer != NULL;
         peer = peer->next, i++)
    {
        if (!ngx_http_dsa_hash_is_usable(hp, peer, i, now)) {
            continue;
        }

        full = ngx_http_dsa_hash_is_full(hp->conf, peer, hp->conf->recent[i],
                                         &sums);
        rank = ngx_http_dsa_hash_rank(hp->value, peer);

        if (best[full] == NULL || rank < first[full]) {
            best[full] = peer;
            first[full] = rank;
            at[full] = i;
        }
    }

    full = (best[0] == NULL);
    *number = best[full] != NULL ? at[full] : 0;

    return best[full];
}


/*
 * 1: not tried for this request, and not out of use.  Servers that nginx adds
 * to an upstream while it runs are not used; Debian's nginx does not add any.
 */

static ngx_uint_t
ngx_http_dsa_hash_is_usable(ngx_http_dsa_hash_peer_t *hp,
    ngx_http_upstream_rr_peer_t *peer, ngx_uint_t i, time_t now)
{
    uintptr_t  tried;

    if (i >= hp->conf->n) {
        return 0;
    }

    tried = hp->rrp.tried[i / NGX_HTTP_DSA_HASH_BITS]
            >> i % NGX_HTTP_DSA_HASH_BITS & 1;

    return !tried && !peer->down
           && (peer->max_fails == 0 || peer->fails < peer->max_fails
               || now - peer->checked > peer->fail_timeout)
           && (peer->max_conns == 0 || peer->conns < peer->max_conns);
}


/*
 * A peer is full if it is busy, and has had more than bound times its share of
 * recent requests, or has twice as many in progress: then it is slower than
 * others.
 */

static ngx_uint_t
ngx_http_dsa_hash_is_full(ngx_http_dsa_hash_conf_t *conf,
    ngx_http_upstream_rr_peer_t *peer, ngx_uint_t recent,
    ngx_http_dsa_hash_sums_t *sums)
{
    uint64_t  bound;

    bound = conf->bound * (uint64_t) peer->weight;

    return peer->conns >= conf->least
           && (100 * sums->weight * recent >= bound * sums->recent
               || 100 * sums->weight * peer->conns >= 2 * bound * sums->conns);
}


/*
 * The place of a peer in the order of a value, smallest first: a draw from the
 * exponential distribution whose rate is the weight, so that a peer is first
 * with a probability that is proportional to it (weighted rendezvous hashing).
 */

static double
ngx_http_dsa_hash_rank(uint64_t value, ngx_http_upstream_rr_peer_t *peer)
{
    double  u;

    /* 53 bits: in (0, 1) */

    u = ((double) (XXH3_64bits_withSeed(peer->name.data, peer->name.len, value)
                   >> 11) + 0.5) / 9007199254740992.0;

    return -log(u) / (double) peer->weight;
}


static void
ngx_http_dsa_hash_count(ngx_http_dsa_hash_conf_t *conf, ngx_uint_t i)
{
    conf->recent[i]++;

    if (++conf->sum < NGX_HTTP_DSA_HASH_RECENT * conf->n) {
        return;
    }

    conf->sum = 0;

    for (i = 0; i < conf->n; i++) {
        conf->recent[i] /= 2;
        conf->sum += conf->recent[i];
    }
}
