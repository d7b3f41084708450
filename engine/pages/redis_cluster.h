
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_CLUSTER_H_INCLUDED_
#define _DSA_REDIS_CLUSTER_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "engine/pages/redis_address.h"
#include "redis_schema/cluster.h"


/*
 * The nodes of a Redis Cluster: the map from cluster slots to nodes, and
 * redirections.
 */

#define DSA_CLUSTER_NODES   64          /* most nodes with cluster slots */
#define DSA_CLUSTER_NONE    0xff        /* a cluster slot without a node */


typedef struct {
    dsa_redis_address_t node[DSA_CLUSTER_NODES];
    uint32_t            nodes;
    uint8_t             cluster_slot[DSA_CLUSTER_SLOTS];   /* index of node[] */
} dsa_cluster_map_t;


/*
 * Reads the reply to CLUSTER SLOTS.  Only masters become nodes.  from is the
 * node that sent the reply; it replaces an empty host.  DSA_ERROR with err:
 * the reply is malformed, or has more than DSA_CLUSTER_NODES masters.
 */
int dsa_cluster_map(dsa_cluster_map_t *map, const redisReply *reply,
    const dsa_redis_address_t *from, dsa_err_t *err);

/*
 * Reads the address in an error reply, "MOVED 3999 127.0.0.1:6381" or "ASK
 * ...".  DSA_ERROR with err.
 */
int dsa_cluster_redirect(dsa_redis_address_t *to, const char *text,
    const dsa_redis_address_t *from, dsa_err_t *err);


#endif /* _DSA_REDIS_CLUSTER_H_INCLUDED_ */
