
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BACKEND_H_INCLUDED_
#define _DSA_BACKEND_H_INCLUDED_


#include "base/buf.h"
#include "base/error.h"
#include "base/mask.h"
#include "base/sampling.h"
#include "engine/checkpoint/config.h"
#include "engine/checkpoint/shard.h"


/*
 * The interface between the scheduler and a backend.  The scheduler chooses
 * the tokens of each step and the pages of the KV cache for them; the backend
 * runs the model over these tokens and samples.  The backend owns the memory
 * of the pages; the scheduler allocates their numbers.
 */

#define DSA_PAGE_TOKENS     64

#define DSA_PAGES_MAX       (1U << 26)  /* of a rank */
#define DSA_MAX_OUTPUTS     8           /* of a sequence in a step */
#define DSA_MAX_GPUS        16          /* of a replica */

#define DSA_INPUT_KNOWN     UINT32_MAX  /* see input_from */

#define DSA_RANDOM_LOGITS   0.2f        /* deviation of the logits of random
                                           weights */


typedef enum {
    DSA_BACKEND_CPU = 0,
    DSA_BACKEND_CUDA,                   /* only where the build has it */
    DSA_BACKEND_NULL
} dsa_backend_e;


typedef enum {
    DSA_EXACT = 0,              /* float32 throughout, compared with golden
                                   vectors */
    DSA_SERVED                  /* FP8 activations and cache, as published */
} dsa_precision_e;


typedef enum {
    DSA_KV_AUTO = 0,            /* cuda: BF16 for models whose layers attend to
                                   all positions; otherwise FP8 */
    DSA_KV_FP8,
    DSA_KV_BF16                 /* cuda, for these models only */
} dsa_kv_e;


/*
 * The results of a sequence in a step besides its samples, for reinforcement
 * learning.  The experts of a token are those to which its forward pass was
 * routed: by layer, and within a layer in falling order of the router's score.
 */

typedef struct {
    dsa_draw_t             *draw;       /* out: [outputs], valid as sample is;
                                           NULL without sampling */
    uint32_t               *kept;       /* NULL; or out: [outputs]
                                           [dsa_mask_words(vocab)], the ids
                                           that output i was drawn from, unless
                                           draw[i].n_kept is DSA_KEPT_ALL */
    uint16_t               *experts;    /* NULL; or out: [n_input][layers with
                                           experts][num_experts_per_tok] */
} dsa_rollout_t;


/*
 * Sets mask [dsa_mask_words(vocab)] to the ids that are permitted for the next
 * draft of a sequence: tokens are the n valid samples of the step, and behind
 * them the drafts so far, n <= DSA_MAX_OUTPUTS + drafts of the backend.  To be
 * called by the thread that calls start() and wait(), from start() until wait()
 * for the same step returns.  DSA_AGAIN: the mask is not ready, or the sequence
 * has ended; it gets no further drafts.
 */
typedef int (*dsa_next_mask_pt)(void *owner, const uint32_t *tokens,
    uint32_t n, uint32_t *mask);


/*
 * The part of a step that belongs to one sequence.
 *
 * Inputs are tokens[start .. start + n_input - 1]; the cache has all tokens
 * before start.  The last n_draft inputs are drafts: guesses at the answer
 * that this step verifies.  With sampling set, the step has n_draft + 1
 * outputs: output i is sampled after input n_input - 1 - n_draft + i, which is
 * the token before draft i.
 *
 * Sampling noise is a function of (seed, position, id) only.  A draft is thus
 * accepted exactly when it equals the sample at its position, and the answer
 * has the same tokens as without drafts (up to rounding, where a backend's
 * results depend on the shape of a step).  Example with two drafts after the
 * known token 7:
 *
 *     inputs              7    4    9
 *     samples             4    5    -
 *     accepted = 2        draft 4 was right, and the next token is 5
 *
 * The sample after 9 is not valid, because 9 is not part of the answer.
 *
 * With input_from the entry follows an entry of the step before, which is in
 * flight: its inputs are the last valid sample of that entry and the drafts
 * that it returns in next.  start, n_input and n_draft are those for the case
 * that none of its own drafts are accepted, and that it returns as many drafts
 * as it may: the backend adds the number of its accepted drafts to start, and
 * leaves out the inputs for which there is no draft, or no room in the block
 * table.  Example, where the entry in the example above returns the drafts 6
 * and 2 in next, of at most three:
 *
 *     without the results     start 11, n_input 4, n_draft 3
 *     with them               start 12, inputs 5 6 2
 */

typedef struct {
    const uint32_t         *tokens;     /* of the sequence, from position 0 */
    uint32_t                start;
    uint32_t                n_input;    /* >= 1 */
    uint32_t                n_draft;    /* < n_input; 0 without sampling;
                                           < max_outputs of the backend */
    uint32_t                input_from; /* the entry of the in-flight step
                                           that this entry follows; then tokens
                                           has only those before start.
                                           DSA_INPUT_KNOWN: tokens has all
                                           inputs */
    uint32_t                n_prompt;   /* tokens of the prompt; penalties
                                           count the tokens after it */
    uint32_t                rank;       /* where the sequence's pages are:
                                           below the backend's ranks */
    const uint32_t         *pages;      /* block table, [ceil((start +
                                           n_input) / DSA_PAGE_TOKENS)], of
                                           pages of that rank; with input_from
                                           also for the accepted drafts of the
                                           entry that this one follows */
    const uint32_t *const  *copies;     /* NULL; or [ranks] block tables, one
                                           of each rank, copies[rank] being
                                           pages: the ranks share out the
                                           input tokens.  Each rank has the
                                           cache of all tokens before start in
                                           its own table, and of all inputs
                                           after the step.  The entry counts
                                           as one of max_seqs on each rank.
                                           Not with drafts, nor with
                                           input_from */
    const dsa_sampling_t   *sampling;   /* NULL: the step has no outputs */
    dsa_biases_t            biases;     /* of the sampling; n may be 0 */
    const uint32_t         *mask;       /* [outputs][dsa_mask_words(vocab)],
                                           bit id % 32 of word id / 32 is 1
                                           where the id may be sampled; at
                                           least one allowed id per output.
                                           NULL: all allowed ids */
    dsa_sample_t           *sample;     /* out: [outputs], of which the first
                                           *accepted are valid */
    uint32_t               *accepted;   /* out: out: 1 + the number of drafts
                                           before the first one that differs
                                           from its sample.  Written only with
                                           drafts; otherwise it may be NULL */
    const dsa_rollout_t    *rollout;    /* NULL: nothing more to report */
    uint32_t                n_pages;    /* entries of the block table, and of
                                           each of copies; used for drafts
                                           only */
    uint32_t               *next;       /* NULL; or out: [*n_next] drafts of
                                           the tokens after the last valid
                                           sample */
    uint32_t               *n_next;     /* with next: in: the most drafts, at
                                           most drafts of the backend; out:
                                           their number, which is less where
                                           the block table has no page for
                                           them, or where a mask is not
                                           ready */
    dsa_next_mask_pt        next_mask;  /* with next: sets the mask of a draft,
                                           so that drafts are tokens which the
                                           answer may have; NULL: all ids are
                                           permitted */
    void                   *next_owner; /* argument of next_mask */
} dsa_batch_seq_t;


/*
 * A replica over several hosts.  Each host computes gpus ranks: host h those
 * from h * gpus on.  A backend is opened on every host, and each is started
 * with all entries of a step, but computes and samples only those of its own
 * ranks; of the others it uses rank, start, n_input, n_prompt and input_from.
 */

typedef struct {
    uint32_t            n;              /* hosts; 0, 1: one */
    uint32_t            host;           /* this one, below n */

    /*
     * For a backend that exchanges through the memory of the host (cpu): sends
     * out[h] to each other host and receives in[h] from it.  bytes[f * n + t]
     * is the size from host f to host t, which all hosts agree on; where it is
     * 0, out and in are not used.  All hosts call it in the same order, in
     * start() and copy().
     */
    int               (*exchange)(void *data, const void *const *out,
                                  void *const *in, const uint64_t *bytes,
                                  dsa_err_t *err);
    void               *data;           /* argument of exchange */
} dsa_backend_hosts_t;


typedef struct {
    const char         *model;          /* directory */
    uint32_t            random;         /* cuda: 1: only config.json of the
                                           model is read; weights and pages are
                                           random */
    uint32_t            layers;         /* with random: number of layers; 0:
                                           all */
    uint32_t            quantize;       /* cpu, cuda: 1: the weights, which are
                                           BF16 or F32, are quantized to FP8
                                           while they are loaded */
    dsa_precision_e     precision;
    dsa_kv_e            kv;             /* latents in the pages, served */
    uint32_t            gpus;           /* 1 .. DSA_MAX_GPUS, on each host;
                                           cpu: ranks that the CPU computes in
                                           turn, for tests */
    uint32_t            gpu[DSA_MAX_GPUS];      /* cuda: their numbers */
    dsa_backend_hosts_t hosts;          /* several: with "attention data" */
    dsa_attention_e     attention;      /* how several GPUs share the work */
    uint32_t            context;        /* most tokens of a sequence; 0: the
                                           value of config.json */
    uint64_t            kv_memory;      /* bytes for pages on each GPU; 0: the
                                           backend chooses */
    uint64_t            gpu_memory;     /* bytes of each GPU, for
                                           dsa_backend_plan() only; 0: those of
                                           the GPUs of this machine */
    uint64_t            host_memory;    /* bytes for pages in host memory, for
                                           dsa_backend_plan() and other hosts
                                           only; 0: none */
    uint32_t            max_tokens;     /* most input tokens of a step, on all
                                           GPUs together */
    uint32_t            max_seqs;       /* most sequences in a step, on each
                                           rank */
    uint32_t            allowed;        /* ids from here on are never sampled */
    uint32_t            persistent;     /* 1: the fingerprint has to cover every
                                           byte of the weights */
    uint32_t            drafts;         /* cpu, cuda: most drafts of a sequence
                                           that the draft layer makes in a step,
                                           below DSA_MAX_OUTPUTS; 0: none */
    uint32_t            drafts_if_any;      /* 1: none, too, if the checkpoint
                                           has no usable draft layer, which is
                                           an error otherwise */
    double              rate;           /* null: tokens/s of a sequence */
} dsa_backend_conf_t;


/* A page that is copied from one rank to another. */

typedef struct {
    uint32_t            from_rank;
    uint32_t            from_page;
    uint32_t            to_rank;
    uint32_t            to_page;
} dsa_page_copy_t;


/*
 * A page to copy between a rank and host memory.  A page in host memory has
 * the same bytes for all ranks and for all backends with the same fingerprint:
 * the latents of all layers, and the index keys of those that have an indexer.
 */

#define DSA_MOVE_TAG        32          /* bytes that identify the contents of
                                           a page */

typedef struct {
    uint32_t            page;           /* of the rank */
    void               *host;           /* page_bytes, in memory that pin() was
                                           called for; NULL: in that of the
                                           rank's host, which is another one */

    /* the rest is used only with host NULL */

    uint32_t            slab;           /* where the memory is: its slab */
    uint32_t            index;          /* and the page in it */
    const void         *tag;            /* [DSA_MOVE_TAG] of the contents */
    uint32_t           *lost;           /* out, with DSA_MOVE_IN, when the call
                                           has completed: 1 if that host does
                                           not have the contents, and then the
                                           page of the rank is undefined;
                                           otherwise unchanged */
} dsa_page_move_t;


typedef enum {
    DSA_MOVE_OUT = 0,                   /* from the rank to host memory */
    DSA_MOVE_IN,                        /* from host memory to the rank */
    DSA_MOVES
} dsa_move_e;

#define DSA_MOVE_CALLS      16          /* most calls of move() in flight, for
                                           each rank and direction */

#define DSA_PIN_REGIONS     16          /* most calls of pin() */


/* Memory that pin() was called for. */

typedef struct {
    void               *memory;
    uint64_t            bytes;
} dsa_pin_region_t;


/*
 * A rank is a part of the backend with pages of its own.  With "attention
 * data" each GPU is a rank, and the pages of a sequence are on one rank.  With
 * "attention tensor" all GPUs compute each token and hold the same pages with
 * the same numbers, so that there is one rank.
 */

typedef struct dsa_backend_s  dsa_backend_t;

struct dsa_backend_s {
    dsa_model_config_t  config;
    uint32_t            ranks;          /* 1 .. DSA_MAX_GPUS */
    uint32_t            pages;          /* of each rank: 0 .. pages-1 */
    uint32_t            rank_tokens;    /* most input tokens of a rank in a
                                           step; those of an entry with copies
                                           are shared out equally */
    uint32_t            depth;          /* most steps in flight: started and
                                           not yet waited for */
    uint32_t            max_outputs;    /* of a sequence in a step, 1 ..
                                           DSA_MAX_OUTPUTS; 1: no drafts */
    uint32_t            drafts;         /* most drafts of a sequence that a
                                           step returns; 0: none */
    uint32_t            splits;         /* 1: an entry may have copies */
    uint32_t            rollouts;       /* 1: reports rollouts; 0: each rollout
                                           must be NULL */
    uint64_t            expert_rows;    /* cuda: pairs of a token and an expert
                                           in all layers of all steps that have
                                           ended; on this host */
    uint64_t            fullest_rows;   /* what they would be if, in each layer
                                           of each step, all GPUs had as many as
                                           the fullest one */
    uint32_t            kv_bf16;        /* 1: latents in pages are BF16 */
    char                identity[36];   /* of the model and the precision: a
                                           backend with the same one continues
                                           an answer as this one would */
    char                fingerprint[36];/* of identity and the page layout */
    uint32_t            sampled;        /* 1: the fingerprint does not cover
                                           every byte of the weights, so that
                                           pages must not outlive the process */
    uint64_t            page_bytes;     /* of a page in host memory */
    int32_t             node[DSA_MAX_GPUS];     /* [ranks], the NUMA node of a
                                           rank; -1: not known */
    dsa_pin_region_t    pinned[DSA_PIN_REGIONS];
    uint32_t            n_pinned;
    void               *data;           /* private to the backend */

    /*
     * Starts a step, which is computed after all earlier ones.  Only the
     * arrays sample, accepted, rollout and next of seq, n_next and next_mask
     * are used after the return.  DSA_ERROR is fatal for the replica.
     */
    int               (*start)(dsa_backend_t *b, dsa_batch_seq_t *seq,
                               uint32_t n_seqs, dsa_err_t *err);

    /*
     * Waits for the end of the oldest in-flight step.  Its samples, accepted
     * counts and rollouts are valid when this returns.
     */
    int               (*wait)(dsa_backend_t *b, dsa_err_t *err);

    /*
     * Copies n pages between ranks: after the steps and copies of earlier
     * calls, and before those of later calls.  Within a call a page must not
     * be both read and written, so the copies may run in any order.  NULL if
     * ranks is 1.  DSA_ERROR is fatal for the replica.
     */
    int               (*copy)(dsa_backend_t *b, const dsa_page_copy_t *copy,
                              uint32_t n, dsa_err_t *err);

    /*
     * Prepares host memory for moves, at most DSA_PIN_REGIONS times.  The
     * memory must exist until close().  Call it while no step or move is in
     * flight, from the thread that calls start() or before that thread is
     * started.  Registering memory with GPUs may take seconds.
     */
    int               (*pin)(dsa_backend_t *b, void *memory, uint64_t bytes,
                             dsa_err_t *err);

    /*
     * Orders moves of n pages between a rank and the memory of its host, n >=
     * 1, beside the steps and never on their stream.  A backend of one host of
     * several moves the pages of its own ranks only:
     *
     *     DSA_MOVE_OUT  begins after the page copies of earlier calls of
     *                   copy().  The caller orders it when the steps that
     *                   wrote the pages have ended, and keeps the pages
     *                   unchanged until it has ended.
     *     DSA_MOVE_IN   begins after all steps that were started and copies
     *                   that were ordered, because they may still read what
     *                   the pages held before.  Steps that read the pages are
     *                   started when it has ended.
     *
     * At most DSA_MOVE_CALLS calls for a rank and a direction are in flight.
     * Called by the thread that calls start(); move is not used after the
     * return.  DSA_ERROR, also for a page, a rank or memory that is out of
     * range, is fatal for the replica.
     */
    int               (*move)(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
                              const dsa_page_move_t *move, uint32_t n,
                              dsa_err_t *err);

    /*
     * Sets *calls to the number of completed calls of move() for this rank and
     * direction since the backend was opened.  They complete in the order of
     * the calls.  With wait 1 it waits for the oldest one in flight, if there
     * is one.  Called by the thread that calls move().
     */
    int               (*moved)(dsa_backend_t *b, dsa_move_e way,
                               uint32_t rank, int wait, uint64_t *calls,
                               dsa_err_t *err);

    /*
     * Returns 1 if wait() would return at once.  NULL: it always would, or
     * the caller has nothing else to do while it waits.
     */
    int               (*ended)(dsa_backend_t *b);

    /*
     * Returns DSA_ERROR with err if the backend has failed since the last
     * call, between steps as well.  NULL: it fails in other calls only.
     */
    int               (*check)(dsa_backend_t *b, dsa_err_t *err);

    /*
     * Replaces the weights by those that the model's directory has now; NULL:
     * the backend has none, or other hosts have weights, too.  Called by the
     * thread that calls start(), while no step and no move is in flight.  The
     * directory may be a symbolic link, which is followed once.  Files must not
     * change while they are read: a new checkpoint gets files of its own.
     *
     * DSA_OK      All weights are replaced, and identity and fingerprint are
     *             those of the new ones, of every byte.  Pages hold nothing of
     *             use, and the next steps must not read what is in them.
     * DSA_AGAIN   with err: the checkpoint cannot be loaded, or config.json is
     *             another one.  The old weights and pages are unchanged.
     * DSA_ERROR   with err: some weights may be replaced; fatal for the
     *             replica.
     */
    int               (*reload)(dsa_backend_t *b, dsa_err_t *err);
    void              (*close)(dsa_backend_t *b);
};


/* Returns the number of outputs of a sequence in a step. */

static inline uint32_t
dsa_batch_outputs(const dsa_batch_seq_t *s)
{
    return s->sampling != NULL ? s->n_draft + 1 : 0;
}


/* Returns the position of the token that output i samples. */

static inline uint32_t
dsa_batch_position(const dsa_batch_seq_t *s, uint32_t i)
{
    return s->start + s->n_input - s->n_draft + i;
}


/*
 * Returns the most input tokens of a GPU in a step of max_tokens: with
 * "attention data" the tokens are split over the GPUs, with "attention tensor"
 * each GPU computes all tokens.
 */

static inline uint32_t
dsa_rank_tokens(uint32_t max_tokens, uint32_t gpus, dsa_attention_e attention)
{
    return attention == DSA_ATTENTION_DATA
           ? max_tokens / gpus + (max_tokens % gpus != 0) : max_tokens;
}


/* Returns the number of hosts of a backend, at least one. */

static inline uint32_t
dsa_backend_hosts(const dsa_backend_conf_t *conf)
{
    return conf->hosts.n > 1 ? conf->hosts.n : 1;
}


/*
 * Sets *kind from its name in engine.conf: "cpu", "cuda" or "null".  DSA_ERROR
 * for any other name.
 */
int dsa_backend_named(dsa_backend_e *kind, const char *name);

/* Sets kv to the format of that name, fp8 or bf16; DSA_ERROR: neither. */
int dsa_kv_named(dsa_kv_e *kv, const char *name);

/* Returns 1 if a backend keeps latents in BF16. */
uint32_t dsa_kv_bf16(dsa_backend_e kind, dsa_kv_e kv,
    const dsa_model_config_t *config);

/*
 * Opens a backend of this kind; NULL with err.  The name of the model must
 * exist until close().
 */
dsa_backend_t *dsa_backend_open(dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err);

/* dsa_backend_open() for each kind. */
dsa_backend_t *dsa_backend_cpu_open(const dsa_backend_conf_t *conf,
    dsa_err_t *err);
dsa_backend_t *dsa_backend_null_open(const dsa_backend_conf_t *conf,
    dsa_err_t *err);
#if (DSA_CUDA)
dsa_backend_t *dsa_backend_cuda_open(const dsa_backend_conf_t *conf,
    dsa_err_t *err);
#endif

/*
 * Checks conf against the model's config.json, without the weights, and
 * appends a description of the memory that the backend would allocate to text;
 * for the CPU only the line for host memory.  DSA_ERROR with err: the model
 * cannot be split over so many GPUs, the GPUs of this machine cannot hold it,
 * or host memory cannot hold a page.  A machine without a GPU is not an error;
 * then text has a line about it.
 */
int dsa_backend_plan(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_buf_t *text, dsa_err_t *err);

/*
 * Appends a line to text with the number of pages and tokens that fit
 * host_memory bytes.  DSA_ERROR with err: less than one page fits.
 */
int dsa_backend_plan_host(uint64_t host_memory, uint64_t page_bytes,
    dsa_buf_t *text, dsa_err_t *err);

/*
 * dsa_backend_plan() for the CUDA backend, and the bytes of a page of a model
 * with this config.
 */
#if (DSA_CUDA)
int dsa_backend_cuda_plan(const dsa_backend_conf_t *conf, dsa_buf_t *text,
    dsa_err_t *err);
uint64_t dsa_backend_cuda_page(const dsa_backend_conf_t *conf,
    const dsa_model_config_t *config);
#endif

/*
 * Sets b->identity and b->fingerprint.  Backends with equal fingerprints have
 * the same model, precision and page layout, so that they may share pages.
 * b->kv_bf16 is part of the precision.  The layout has the draft layer if
 * b->drafts is not 0; the text of an answer does not depend on it.  model is
 * the fingerprint of the checkpoint; weights that conf->quantize changes are
 * others.
 */
void dsa_backend_fingerprint(dsa_backend_t *b, const char *model,
    const dsa_backend_conf_t *conf);

/*
 * Resolves the model's directory for reload(), so that all files are those of
 * one checkpoint.  The caller frees the path; NULL with err.
 */
char *dsa_backend_resolve(const char *model, dsa_err_t *err);

/*
 * Checks that a checkpoint may replace the running one, by the SHA-256 of both
 * config.json, and, with drafts, by the fault of its draft layer, which is
 * empty if the layer can be used.  DSA_ERROR with err.
 */
int dsa_backend_replaces(const char *model, const uint8_t running[32],
    const uint8_t other[32], uint32_t drafts, const char *fault,
    dsa_err_t *err);

/*
 * Logs why "speculate auto" makes no drafts, unless the model is published
 * without a draft layer: copies of a checkpoint often leave it out.  fault: of
 * the layer's weights.
 */
void dsa_backend_without_drafts(const dsa_backend_t *b, const char *fault);

/*
 * Records memory in b->pinned; the whole of pin() for backends that need no
 * other preparation.  DSA_ERROR with err: the memory is empty, or there are
 * DSA_PIN_REGIONS regions already.
 */
int dsa_backend_pin(dsa_backend_t *b, void *memory, uint64_t bytes,
    dsa_err_t *err);

/*
 * Checks the arguments of a call of move(): the rank, the pages, and that all
 * host memory was pinned.  Memory that was not pinned would still be copied by
 * a GPU, but slowly, and the calling thread would wait for the copy.
 */
int dsa_backend_check_moves(const dsa_backend_t *b, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err);


#endif /* _DSA_BACKEND_H_INCLUDED_ */
