
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>

#include "bench/node_ops.h"
#include "kernels/row/embed.h"
#include "kernels/row/norm.h"


/* The ops of embedding and head, and how the parts of a step are measured. */

#define DSA_NODE_TABLES     2


/* What is measured: all ops of a part, or one of them. */

typedef struct {
    dsa_node_t             *n;
    dsa_node_part_e         part;
    const dsa_node_op_t    *op;         /* NULL: all */
} dsa_node_call_t;


static int
dsa_node_feed(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_feed(n->input.token, n->input.feed, n->sample,
                         n->step.tokens, NULL, NULL, NULL, 0, n->b.stream);
}


static int
dsa_node_embed(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_embed(n->work.x, n->weights.embed, n->input.token,
                          n->step.tokens, n->config.hidden_size, 0, n->vocab,
                          n->b.stream);
}


static int
dsa_node_last(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t  hidden;

    hidden = n->config.hidden_size;

    dsa_cuda_try(dsa_cuda_gather_rows(n->work.last_x, n->work.x,
                                      n->input.last, n->step.samples, hidden,
                                      n->b.stream));
    dsa_cuda_try(dsa_cuda_gather_rows(n->work.last_residual, n->work.residual,
                                      n->input.last, n->step.samples, hidden,
                                      n->b.stream));

    return dsa_cuda_add_rmsnorm(n->work.last_y, NULL, n->work.last_x,
                                n->work.last_residual, n->work.last_residual,
                                n->weights.norm, n->step.samples, hidden,
                                n->config.rms_norm_eps,
                                (int) n->config.ue8m0, n->b.stream);
}


static int
dsa_node_head(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t  hidden;

    hidden = n->config.hidden_size;

    return dsa_cuda_gemm_bf16(n->gemm, n->work.vocab_part, n->vocab, 1,
                              n->work.last_y, hidden, n->weights.head, hidden,
                              n->step.samples, n->vocab, hidden,
                              n->b.stream);
}


static int
dsa_node_select_whole(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_node_select_all(n);
}


/* With "tensor" the logits of all ranks were gathered before. */

static int
dsa_node_sample(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t  vocab;

    vocab = n->config.vocab_size;

    return dsa_cuda_sample(n->sample, n->input.sampling, n->work.vocab, vocab,
                           n->step.samples, vocab, vocab, NULL, NULL,
                           NULL, n->work.sample_work, n->b.stream);
}


static const dsa_node_op_t  dsa_node_head_ops[] = {
    { "feed", 0, dsa_node_feed },
    { "embedding", 0, dsa_node_embed },
    { "selection of all keys",
      DSA_NODE_IF_DECODE | DSA_NODE_IF_WHOLE | DSA_NODE_IF_SPARSE,
      dsa_node_select_whole },
    { "last norm", 0, dsa_node_last },
    { "head", 0, dsa_node_head },
    { "sampling", 0, dsa_node_sample },
    { NULL, 0, NULL }
};


static int
dsa_node_moe(dsa_node_part_e part)
{
    return part == DSA_NODE_MOE || part == DSA_NODE_SHARED;
}


static int
dsa_node_applies(const dsa_node_call_t *c, const dsa_node_op_t *op)
{
    unsigned                is;
    const dsa_node_step_t  *step;

    step = &c->n->step;

    is = step->prefill ? DSA_NODE_IF_PREFILL : DSA_NODE_IF_DECODE;
    is |= step->indexed ? DSA_NODE_IF_INDEXED : DSA_NODE_IF_WHOLE;
    is |= step->mha ? DSA_NODE_IF_MHA : DSA_NODE_IF_ABSORBED;
    is |= dsa_node_moe(c->part) ? DSA_NODE_IF_MOE : 0;
    is |= c->part != DSA_NODE_SHARED ? DSA_NODE_IF_OWN : 0;
    is |= c->n->dense ? DSA_NODE_IF_DENSE : DSA_NODE_IF_SPARSE;
    is |= dsa_node_gathers(c->n) ? DSA_NODE_IF_GATHERED : DSA_NODE_IF_LOCAL;
    is |= step->rows <= DSA_MOE_SMALL ? DSA_NODE_IF_SMALL : DSA_NODE_IF_LARGE;

    return (op->when & ~is) == 0;
}


/* The ops of a part: two tables, of which the head has one. */

static const dsa_node_op_t *
dsa_node_ops(dsa_node_part_e part, uint32_t table)
{
    if (part == DSA_NODE_HEAD) {
        return table == 0 ? dsa_node_head_ops : NULL;
    }

    return table == 0 ? dsa_node_attention_ops : dsa_node_ffn_ops;
}


/* Turn i uses the weights of another layer, and other choices of experts. */

static int
dsa_node_run(dsa_bench_t *b, void *ctx, int set)
{
    uint32_t                 i;
    dsa_node_t              *n;
    dsa_node_call_t         *c = ctx;
    const dsa_node_op_t     *op;
    const dsa_cuda_layer_t  *l;

    n = c->n;
    n->set = (uint32_t) set;

    n->work.y8.ld = dsa_cuda_ld(n->step.tokens);
    n->work.qr8.ld = dsa_cuda_ld(n->step.tokens);
    n->work.o8.ld = dsa_cuda_ld(n->step.tokens);
    n->work.act8.ld = dsa_cuda_ld(n->step.tokens);

    n->own = c->part != DSA_NODE_SHARED;

    l = &n->weights.layer[(dsa_node_moe(c->part) ? DSA_NODE_LAYERS : 0)
                          + set % DSA_NODE_LAYERS];

    if (c->op != NULL) {
        return c->op->call(n, l);
    }

    for (i = 0; i < DSA_NODE_TABLES; i++) {
        op = dsa_node_ops(c->part, i);

        for ( /* void */ ; op != NULL && op->name != NULL; op++) {
            if (dsa_node_applies(c, op)) {
                dsa_cuda_try(op->call(n, l));
            }
        }
    }

    return 0;
}


double
dsa_node_time(dsa_node_t *n, dsa_node_part_e part)
{
    dsa_node_call_t  c;

    c.n = n;
    c.part = part;
    c.op = NULL;

    return dsa_bench_time(&n->b, dsa_node_run, &c, (int) n->sets);
}


void
dsa_node_time_ops(dsa_node_t *n, dsa_node_part_e part)
{
    double           us, sum;
    uint32_t         i;
    dsa_node_call_t  c;

    c.n = n;
    c.part = part;
    sum = 0;

    for (i = 0; i < DSA_NODE_TABLES; i++) {
        c.op = dsa_node_ops(part, i);

        for ( /* void */ ; c.op != NULL && c.op->name != NULL; c.op++) {
            if (!dsa_node_applies(&c, c.op)) {
                continue;
            }

            us = dsa_bench_time(&n->b, dsa_node_run, &c, (int) n->sets);

            if (us >= 0) {
                sum += us;
                (void) printf("| %s | %.1f |\n", c.op->name, us);
            }
        }
    }

    us = dsa_node_time(n, part);

    (void) printf("| sum of these | %.1f |\n| all in one graph | %.1f |\n",
                  sum, us);
}
