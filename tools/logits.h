
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LOGITS_H_INCLUDED_
#define _DSA_LOGITS_H_INCLUDED_


#if (DSA_CUDA)
#include "engine/cuda/group.h"
#endif
#include "engine/checkpoint/safetensors.h"
#include "engine/cpu/model.h"


/* Shared by the files of dsa logits. */

#define DSA_LOGITS_NAME     32
#define DSA_LOGITS_DRAFTS   (DSA_MAX_OUTPUTS - 1)       /* of --drafts */


typedef struct {
    const char         *model;
    const char         *tokens;
    const char         *out;
    const char         *select;
    dsa_precision_e     precision;
    uint32_t            gpus;
    dsa_attention_e     attention;
    uint32_t            chunk;
    uint32_t            decode_from;
    dsa_backend_e       backend;
    dsa_kv_e            kv;
    uint32_t            drafts;
    int                 quantize;
    int                 trace;
} dsa_logits_conf_t;


typedef struct {
    char                name[DSA_LOGITS_NAME];
    uint32_t            rows;
    uint32_t            cols;
    uint8_t            *data;           /* [rows, cols], 4 bytes each */
} dsa_logits_trace_t;


typedef struct {
    dsa_weights_t       *weights;
    dsa_model_t         *model;         /* one of the two is open */
#if (DSA_CUDA)
    dsa_cuda_group_t    *cuda;
#endif
    uint32_t            *tokens;
    uint32_t            *pages;
    const uint32_t      *copies[DSA_MAX_GPUS];  /* pages, of each rank */
    float               *logits;
    float               *hidden;        /* [n, hidden size], with drafts */
    dsa_st_t            *select;
    uint32_t             n;             /* tokens */
    uint32_t             done;          /* computed in earlier steps */
    uint32_t             step;          /* of the draft layer, from 1 on */

    dsa_logits_trace_t  *trace;
    uint32_t             n_trace;
    uint32_t             max_trace;
    int                  failed;        /* out of memory for a trace */
} dsa_logits_t;


/*
 * Copies rows of a result, [n, cols] of 4 bytes each, to the rows from at on of
 * the tensor name, which is written to the output file.  The first call for a
 * name sets the shape of the tensor, [rows, width], whose other elements are
 * -1.  l->failed is 1 when there is no memory.
 */
void dsa_logits_keep(dsa_logits_t *l, const char *name, uint32_t rows,
    uint32_t width, uint32_t at, uint32_t n, uint32_t cols, const void *data);

/* dsa_model_trace() and dsa_model_draft() of the backend. */
void dsa_logits_trace(dsa_logits_t *l, dsa_trace_pt trace, void *ctx);
int dsa_logits_draft(dsa_logits_t *l, const dsa_rows_t *rows, uint32_t step,
    float *hidden, float *logits, dsa_err_t *err);

/* Computes the drafts of --drafts, after l->logits and l->hidden. */
int dsa_logits_drafts(dsa_logits_t *l, const dsa_logits_conf_t *conf,
    dsa_err_t *err);


#endif /* _DSA_LOGITS_H_INCLUDED_ */
