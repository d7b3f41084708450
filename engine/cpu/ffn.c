
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/cpu/parts.h"
#include "kernels/bf16.h"
#include "kernels/moe.h"


/* y = down(silu(gate(x)) * up(x)), x and y [rows, hidden]. */

static void
dsa_model_mlp(dsa_model_t *m, float *y, const dsa_model_mlp_t *mlp,
    const float *x, uint32_t rows)
{
    dsa_workspace_t  *w;

    w = &m->work;

    dsa_model_linear(m, w->gate, &mlp->gate, x, rows);
    dsa_model_linear(m, w->up, &mlp->up, x, rows);
    dsa_swiglu(w->gate, w->gate, w->up,
               (size_t) rows * mlp->gate.tensor.rows, m->served);
    dsa_model_linear(m, y, &mlp->down, w->gate, rows);
}


void
dsa_model_ffn(dsa_model_t *m, uint32_t layer, uint32_t rows)
{
    uint32_t                  e, n, k, hidden;
    uint64_t                  i, size;
    const uint32_t           *pair;
    dsa_workspace_t          *w;
    const dsa_model_layer_t  *l;

    w = &m->work;
    l = &m->layer[layer];

    if (!l->moe) {
        dsa_model_mlp(m, w->x, &l->mlp, w->x, rows);
        return;
    }

    k = m->router.k;
    hidden = m->config->hidden_size;
    size = (uint64_t) rows * hidden;

    dsa_model_linear_f32(m, w->router, &l->router, w->x, rows);
    dsa_route(w->expert, w->expert_weight, w->router, l->router_bias, rows,
              &m->router, w->route);

    dsa_model_tell(m, "expert", layer, rows, k, w->expert);
    dsa_model_tell(m, "expert_weight", layer, rows, k, w->expert_weight);

    /* experts in rising order: a row's sum does not depend on the batch */

    dsa_moe_group(w->pair, w->offset, w->expert, rows, k, m->router.experts);
    memset(w->y, 0, size * sizeof(float));

    for (e = 0; e < m->router.experts; e++) {
        n = w->offset[e + 1] - w->offset[e];

        if (n == 0) {
            continue;
        }

        pair = w->pair + w->offset[e];

        dsa_moe_gather(w->expert_x, w->x, pair, n, k, hidden);
        dsa_model_mlp(m, w->expert_y, &l->expert[e], w->expert_x, n);
        dsa_moe_scatter(w->y, w->expert_y, w->expert_weight, pair, n, k,
                        hidden);
    }

    dsa_model_mlp(m, w->expert_y, &l->shared, w->x, rows);

    for (i = 0; i < size; i++) {
        w->x[i] = w->y[i] + w->expert_y[i];
    }

    if (m->served) {
        dsa_bf16_round_rows(w->x, size);
    }
}
