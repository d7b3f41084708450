
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BACKEND_H_INCLUDED_
#define _DSA_BACKEND_H_INCLUDED_


#include "base/error.h"
#include "engine/cpu/sampler.h"
#include "engine/checkpoint/config.h"


/*
 * What computes: the scheduler decides which rows of which sequences are
 * computed in a step and where their cache pages lie; the backend computes
 * them and samples.  It owns the page memory, the scheduler owns the page
 * numbers.
 */

#define DSA_PAGE_TOKENS     64


typedef enum {
    DSA_BACKEND_CPU = 0,
    DSA_BACKEND_CUDA,                   /* where the build has it */
    DSA_BACKEND_NULL
} dsa_backend_e;


typedef enum {
    DSA_EXACT = 0,              /* float32 throughout: the oracle */
    DSA_SERVED                  /* FP8 activations and cache, as published */
} dsa_precision_e;


#define DSA_FOLLOWS_NONE    UINT32_MAX


/* One sequence's part of a step. */

typedef struct {
    const uint32_t         *tokens;     /* the whole sequence so far */
    uint32_t                start;      /* rows before it are in the cache */
    uint32_t                n;          /* rows start .. start+n-1 now */
    uint32_t                follows;    /* the entry of the step started
                                           before this one whose sample is
                                           the last row's token, which tokens
                                           does not have yet; or
                                           DSA_FOLLOWS_NONE */
    uint32_t                prompt;     /* tokens of the prompt; penalties
                                           count what follows it */
    const uint32_t         *pages;      /* [ceil((start+n)/64)] page numbers */
    const dsa_sampling_t   *sampling;   /* NULL: cache only, sample nothing */
    dsa_sample_t           *sample;     /* out: the token after the last row,
                                           when the step is waited for */
} dsa_batch_seq_t;


typedef struct {
    const char         *model;          /* directory */
    uint32_t            random;         /* 1: of it only config.json is read,
                                           weights and pages are random
                                           (cuda) */
    uint32_t            layers;         /* with random: so many; 0: all */
    dsa_precision_e     precision;
    uint32_t            device;         /* cuda: number of the GPU */
    uint32_t            context;        /* most tokens of a sequence; 0: the
                                           model's */
    uint64_t            kv_memory;      /* bytes for pages; 0: backend's own */
    uint32_t            max_tokens;     /* most rows in a step */
    uint32_t            max_seqs;       /* most sequences in a step */
    uint32_t            allowed;        /* ids from here on are never sampled */
    double              rate;           /* null: tokens/s of a sequence */
} dsa_backend_conf_t;


typedef struct dsa_backend_s  dsa_backend_t;

struct dsa_backend_s {
    dsa_model_config_t  config;
    uint32_t            pages;          /* 0 .. pages-1 may be used */
    uint32_t            depth;          /* steps that may be started and not
                                           yet waited for */
    char                fingerprint[36];/* model and cache layout */
    void               *data;           /* the backend's own */

    /*
     * Starts a step, behind those started before.  Of seq only the samples
     * are used after the return.  DSA_ERROR is fatal for the replica.
     */
    int               (*start)(dsa_backend_t *b, dsa_batch_seq_t *seq,
                               uint32_t n_seqs, dsa_err_t *err);

    /* The oldest step not yet waited for ends; its samples are there. */
    int               (*wait)(dsa_backend_t *b, dsa_err_t *err);
    void              (*close)(dsa_backend_t *b);
};


/* By its name in engine.conf: "cpu", "cuda", "null"; DSA_ERROR: another. */
int dsa_backend_named(dsa_backend_e *kind, const char *name);

/* Opens one of those below; NULL with err. */
dsa_backend_t *dsa_backend_open(dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err);

dsa_backend_t *dsa_backend_cpu_open(const dsa_backend_conf_t *conf,
    dsa_err_t *err);
dsa_backend_t *dsa_backend_null_open(const dsa_backend_conf_t *conf,
    dsa_err_t *err);
#if (DSA_CUDA)
dsa_backend_t *dsa_backend_cuda_open(const dsa_backend_conf_t *conf,
    dsa_err_t *err);
#endif

/*
 * Sets b->fingerprint: pages may be shared where the model, the precision and
 * the layout of a page are the same.  model is its own fingerprint.
 */
void dsa_backend_fingerprint(dsa_backend_t *b, const char *model,
    dsa_precision_e precision);


#endif /* _DSA_BACKEND_H_INCLUDED_ */
