
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>
#include <hiredis/hiredis.h>

#include "engine/pages/redis_cluster.h"


_Static_assert(DSA_CLUSTER_NODES < DSA_CLUSTER_NONE,
               "no node has the index that stands for none");


static int dsa_cluster_range(dsa_cluster_map_t *map, const redisReply *range,
    const dsa_redis_address_t *from, dsa_err_t *err);
static int dsa_cluster_node(dsa_cluster_map_t *map, const redisReply *node,
    const dsa_redis_address_t *from, uint8_t *number, dsa_err_t *err);


int
dsa_cluster_map(dsa_cluster_map_t *map, const redisReply *reply,
    const dsa_redis_address_t *from, dsa_err_t *err)
{
    size_t  i;

    map->nodes = 0;
    memset(map->cluster_slot, DSA_CLUSTER_NONE, sizeof(map->cluster_slot));

    if (reply->type != REDIS_REPLY_ARRAY) {
        return dsa_error(err, "protocol error: the reply to CLUSTER SLOTS is "
                         "not an array");
    }

    for (i = 0; i < reply->elements; i++) {
        if (dsa_cluster_range(map, reply->element[i], from, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Reads one range: [first cluster slot, last one, master, replica...]. */

static int
dsa_cluster_range(dsa_cluster_map_t *map, const redisReply *range,
    const dsa_redis_address_t *from, dsa_err_t *err)
{
    uint8_t    number;
    long long  first, last;

    if (range->type != REDIS_REPLY_ARRAY || range->elements < 3
        || range->element[0]->type != REDIS_REPLY_INTEGER
        || range->element[1]->type != REDIS_REPLY_INTEGER)
    {
        return dsa_error(err, "protocol error: a range of CLUSTER SLOTS does "
                         "not have two cluster slots and a node");
    }

    first = range->element[0]->integer;
    last = range->element[1]->integer;

    if (first < 0 || first > last || last >= DSA_CLUSTER_SLOTS) {
        return dsa_error(err, "protocol error: CLUSTER SLOTS has a range of "
                         "cluster slots from %lld to %lld", first, last);
    }

    if (dsa_cluster_node(map, range->element[2], from, &number, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    memset(&map->cluster_slot[first], number, (size_t) (last - first + 1));

    return DSA_OK;
}


/* Reads a node: [host, port, id...].  The host may be nil or "". */

static int
dsa_cluster_node(dsa_cluster_map_t *map, const redisReply *node,
    const dsa_redis_address_t *from, uint8_t *number, dsa_err_t *err)
{
    size_t                len;
    uint32_t              i;
    const char           *host;
    dsa_redis_address_t   address;

    if (node->type != REDIS_REPLY_ARRAY || node->elements < 2
        || (node->element[0]->type != REDIS_REPLY_STRING
            && node->element[0]->type != REDIS_REPLY_NIL)
        || node->element[1]->type != REDIS_REPLY_INTEGER)
    {
        return dsa_error(err, "protocol error: a node of CLUSTER SLOTS does "
                         "not have a host and a port");
    }

    host = node->element[0]->str;
    len = node->element[0]->type == REDIS_REPLY_STRING ? node->element[0]->len
                                                       : 0;
    if (len == 0) {
        host = from->host;
        len = strlen(host);
    }

    if (dsa_redis_address_set(&address, host, len, node->element[1]->integer,
                              err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < map->nodes; i++) {
        if (strcmp(map->node[i].text, address.text) == 0) {
            *number = (uint8_t) i;
            return DSA_OK;
        }
    }

    if (i == DSA_CLUSTER_NODES) {
        return dsa_error(err, "the cluster has more than %d masters",
                         DSA_CLUSTER_NODES);
    }

    map->node[i] = address;
    map->nodes++;
    *number = (uint8_t) i;

    return DSA_OK;
}


int
dsa_cluster_redirect(dsa_redis_address_t *to, const char *text,
    const dsa_redis_address_t *from, dsa_err_t *err)
{
    dsa_cluster_target_t  target;

    if (dsa_cluster_target(&target, text, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (target.host.len == 0) {
        target.host = dsa_strz(from->host);
    }

    return dsa_redis_address_set(to, target.host.data, target.host.len,
                                 target.port, err);
}
