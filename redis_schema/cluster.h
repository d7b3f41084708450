
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEMA_CLUSTER_H_INCLUDED_
#define _DSA_SCHEMA_CLUSTER_H_INCLUDED_


#include "schema.h"


/*
 * What a client of a Redis Cluster has to compute and to read.  A cluster slot
 * is one of 16384 parts of the keys; each is on one node.  This follows the
 * Redis Cluster specification.
 */

#define DSA_CLUSTER_SLOTS   16384


/*
 * Returns the cluster slot of a key: CRC16 (XMODEM) of its hash tag, or of the
 * whole key if it has none, modulo DSA_CLUSTER_SLOTS.
 */
uint32_t dsa_cluster_slot(const char *key, size_t len);

/*
 * Returns the cluster slot of the keys of a command, which all have the same
 * hash tag; -1: it has no key, so that any node may execute it.
 */
int32_t dsa_cluster_command_slot(const dsa_schema_command_t *cmd);


/*
 * The replies with which a node of a cluster does not execute a command, and
 * with which another attempt may succeed.
 */

typedef enum {
    DSA_CLUSTER_OTHER = 0,  /* any other reply */
    DSA_CLUSTER_MOVED,      /* another node has the cluster slot */
    DSA_CLUSTER_ASK,        /* another node may have the keys while the cluster
                               slot is moved; send it ASKING before */
    DSA_CLUSTER_MOVING,     /* TRYAGAIN: the keys are being moved */
    DSA_CLUSTER_DOWN        /* no node serves the cluster slot now */
} dsa_cluster_reply_e;

dsa_cluster_reply_e dsa_cluster_reply(const redisReply *reply);


/* The node that a reply of the kinds MOVED and ASK names. */

typedef struct {
    uint32_t             cluster_slot;
    dsa_str_t            host;          /* of the text; empty: the host of the
                                           node that replied */
    int                  port;
} dsa_cluster_target_t;


/*
 * Reads the text of such a reply, "MOVED 3999 127.0.0.1:6381", which ends with
 * a NUL.  DSA_ERROR with err.
 */
int dsa_cluster_target(dsa_cluster_target_t *to, const char *text,
    dsa_err_t *err);


#endif /* _DSA_SCHEMA_CLUSTER_H_INCLUDED_ */
