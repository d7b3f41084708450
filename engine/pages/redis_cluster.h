
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_CLUSTER_H_INCLUDED_
#define _DSA_REDIS_CLUSTER_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "engine/pages/redis_address.h"


struct redisReply;


/*
 * Which node of a Redis Cluster has a key: the slots of keys, the map of slots
 * to nodes, and the error replies that point to another node.
 */

#define DSA_CLUSTER_SLOTS   16384
#define DSA_CLUSTER_NODES   64          /* most nodes with slots */
#define DSA_CLUSTER_NONE    0xff        /* a slot without a node */


typedef struct {
    dsa_redis_address_t node[DSA_CLUSTER_NODES];
    uint32_t            nodes;
    uint8_t             slot[DSA_CLUSTER_SLOTS];    /* an index of node[] */
} dsa_cluster_map_t;


/*
 * The slot of a key: CRC16 (XMODEM) of its bytes modulo 16384.  A part in
 * braces has no meaning here, because keys of pages have no braces.
 */
uint32_t dsa_cluster_slot(const char *key, size_t len);

/*
 * Reads the reply to CLUSTER SLOTS.  Only masters become nodes.  from is the
 * node that sent the reply: an empty host is that of from.  DSA_ERROR with
 * err: this is not such a reply, or it has more than DSA_CLUSTER_NODES masters.
 */
int dsa_cluster_map(dsa_cluster_map_t *map, const struct redisReply *reply,
    const dsa_redis_address_t *from, dsa_err_t *err);

/*
 * The address in the text of an error reply, "MOVED 3999 127.0.0.1:6381" or
 * "ASK ...".  DSA_ERROR with err.
 */
int dsa_cluster_redirect(dsa_redis_address_t *to, const char *text,
    const dsa_redis_address_t *from, dsa_err_t *err);


#endif /* _DSA_REDIS_CLUSTER_H_INCLUDED_ */
