
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_NODE_OPS_H_INCLUDED_
#define _DSA_BENCH_NODE_OPS_H_INCLUDED_


#include "bench/node.h"


/*
 * The ops of a step in the order of the forward pass.  They use n->step and
 * n->set, and return 0 or a cudaError_t.
 */

/* When an op is called: every bit of it has to apply to step and layer. */

#define DSA_NODE_IF_DECODE      1
#define DSA_NODE_IF_PREFILL     2
#define DSA_NODE_IF_INDEXED     4
#define DSA_NODE_IF_WHOLE       8       /* all keys are selected */
#define DSA_NODE_IF_MHA         16
#define DSA_NODE_IF_ABSORBED    32
#define DSA_NODE_IF_MOE         64
#define DSA_NODE_IF_LOCAL       128     /* no tokens are gathered */
#define DSA_NODE_IF_GATHERED    256
#define DSA_NODE_IF_SMALL       512     /* at most DSA_MOE_SMALL rows, for which
                                           ops are fused, */
#define DSA_NODE_IF_LARGE       1024    /* and more */
#define DSA_NODE_IF_OWN         2048    /* the layer has an indexer */
#define DSA_NODE_IF_SPARSE      4096    /* the model has one */
#define DSA_NODE_IF_DENSE       8192    /* layers attend to all positions */


typedef struct {
    const char         *name;           /* NULL: the end of a table */
    unsigned            when;
    int               (*call)(dsa_node_t *n, const dsa_cuda_layer_t *l);
} dsa_node_op_t;


/* node_attention.c */

/* The cache of a layer with entries of its own, another one for each set. */
void dsa_node_cache(const dsa_node_t *n, dsa_cuda_cache_t *cache);

/* The bound of contexts of the graph that serves the step's keys. */
uint32_t dsa_node_bound(const dsa_node_t *n);

/* node_dense.c: attention to all positions, of decode and of prefill. */
int dsa_node_dense_decode(dsa_node_t *n, const dsa_cuda_layer_t *l);
int dsa_node_dense_prompt(dsa_node_t *n, const dsa_cuda_layer_t *l);

/* node_attention.c, node_ffn.c */
extern const dsa_node_op_t  dsa_node_attention_ops[];
extern const dsa_node_op_t  dsa_node_ffn_ops[];


#endif /* _DSA_BENCH_NODE_OPS_H_INCLUDED_ */
