
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "engine/cuda/plan.h"


/* Slots of tokens are int32_t. */
#define DSA_PLAN_PAGES      (INT32_MAX / DSA_PAGE_TOKENS)

_Static_assert(DSA_PLAN_PAGES <= DSA_PAGES_MAX,
               "the scheduler can number the pages of a GPU");


static uint64_t dsa_plan_fixed(const dsa_plan_needs_t *needs);
static uint64_t dsa_plan_context(const dsa_plan_t *plan);
static int dsa_plan_lacks(const dsa_plan_t *plan, const dsa_plan_gpu_t *gpu,
    uint64_t kv, dsa_err_t *err);
static int dsa_plan_page_fits(const dsa_plan_t *plan);
static void dsa_plan_parts(const dsa_plan_t *plan, const dsa_plan_gpu_t *gpu,
    dsa_buf_t *text);
static void dsa_plan_total(const dsa_plan_t *plan, dsa_buf_t *text);
static uint32_t dsa_plan_smallest(const dsa_plan_t *plan,
    dsa_attention_e attention, dsa_plan_needs_pt needs, void *data);
static void dsa_plan_append(dsa_err_t *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


static inline double
dsa_plan_gb(uint64_t bytes)
{
    return (double) bytes * 1e-9;
}


int
dsa_plan_pages(dsa_plan_t *plan, dsa_err_t *err)
{
    uint32_t               i;
    uint64_t               kv, used, pages, lack, most;
    const dsa_plan_gpu_t  *gpu, *worst;

    assert(plan->gpus >= 1 && plan->gpus <= DSA_MAX_GPUS && plan->page != 0);

    plan->pages = 0;

    if (plan->kv_memory != 0 && plan->kv_memory < plan->page) {
        return dsa_error(err, "\"kv_memory\" is %llu bytes; expected at least "
                         "one page, %llu bytes",
                         (unsigned long long) plan->kv_memory,
                         (unsigned long long) plan->page);
    }

    kv = plan->kv_memory != 0 ? plan->kv_memory : plan->page;
    pages = plan->kv_memory / plan->page;
    worst = NULL;
    most = 0;

    for (i = 0; i < plan->gpus; i++) {
        gpu = &plan->gpu[i];
        used = dsa_plan_fixed(&gpu->needs);

        if (gpu->memory == 0) {
            continue;
        }

        if (used + kv > gpu->memory) {
            lack = used + kv - gpu->memory;

            if (lack > most) {
                most = lack;
                worst = gpu;
            }

            continue;
        }

        if (plan->kv_memory == 0
            && (pages == 0 || (gpu->memory - used) / plan->page < pages))
        {
            pages = (gpu->memory - used) / plan->page;
        }
    }

    if (worst != NULL) {
        return dsa_plan_lacks(plan, worst, kv, err);
    }

    plan->pages = (uint32_t) (pages < DSA_PLAN_PAGES ? pages
                                                     : DSA_PLAN_PAGES);

    return DSA_OK;
}


static uint64_t
dsa_plan_fixed(const dsa_plan_needs_t *needs)
{
    return needs->weights + needs->workspace + needs->exchange
           + needs->reserve;
}


/* Returns the bytes of the pages of one sequence of the whole context. */

static uint64_t
dsa_plan_context(const dsa_plan_t *plan)
{
    return ((uint64_t) plan->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS
           * plan->page;
}


static int
dsa_plan_lacks(const dsa_plan_t *plan, const dsa_plan_gpu_t *gpu, uint64_t kv,
    dsa_err_t *err)
{
    uint64_t   used;
    dsa_buf_t  text;

    memset(&text, 0, sizeof(text));
    used = dsa_plan_fixed(&gpu->needs);
    dsa_plan_parts(plan, gpu, &text);

    (void) dsa_error(err, "GPU %u has %.2f GB of %smemory but needs %.2f = "
                     "%.*s + %s %.2f", gpu->number, dsa_plan_gb(gpu->memory),
                     plan->free ? "free " : "", dsa_plan_gb(used + kv),
                     (int) text.len, text.data != NULL ? text.data : "",
                     plan->kv_memory != 0 ? "pages" : "at least one page",
                     dsa_plan_gb(kv));

    dsa_buf_free(&text);

    if (dsa_plan_page_fits(plan)) {
        dsa_plan_append(err, "; \"kv_memory\" can be %llum at most",
                        (unsigned long long) (gpu->memory - used) >> 20);
    }

    return DSA_ERROR;
}


/* Returns 1 if each GPU has room for at least one page. */

static int
dsa_plan_page_fits(const dsa_plan_t *plan)
{
    uint32_t               i;
    const dsa_plan_gpu_t  *gpu;

    for (i = 0; i < plan->gpus; i++) {
        gpu = &plan->gpu[i];

        if (gpu->memory != 0
            && dsa_plan_fixed(&gpu->needs) + plan->page > gpu->memory)
        {
            return 0;
        }
    }

    return 1;
}


/* Appends "weights 1.00 + workspace 2.00 + ...". */

static void
dsa_plan_parts(const dsa_plan_t *plan, const dsa_plan_gpu_t *gpu,
    dsa_buf_t *text)
{
    const dsa_plan_needs_t  *needs;

    needs = &gpu->needs;

    dsa_buf_printf(text, "weights %.2f + workspace %.2f",
                   dsa_plan_gb(needs->weights), dsa_plan_gb(needs->workspace));

    if (plan->gpus > 1) {
        dsa_buf_printf(text, " + exchange %.2f",
                       dsa_plan_gb(needs->exchange));
    }

    dsa_buf_printf(text, " + graphs and driver %.2f",
                   dsa_plan_gb(needs->reserve));
}


void
dsa_plan_describe(const dsa_plan_t *plan, dsa_buf_t *text)
{
    int                    one;
    uint32_t               i;
    uint64_t               used, kv;
    const dsa_plan_gpu_t  *gpu;

    kv = (uint64_t) plan->pages * plan->page;

    for (i = 0; i < plan->gpus; i++) {
        gpu = &plan->gpu[i];
        used = dsa_plan_fixed(&gpu->needs) + kv;

        one = plan->gpus > 1 && (plan->same || gpu->memory == 0);

        if (one) {
            dsa_buf_printf(text, "each of %u GPUs: ", plan->gpus);

        } else {
            dsa_buf_printf(text, "GPU %u: ", gpu->number);
        }

        dsa_buf_printf(text, "%.2f GB%s = ",
                       dsa_plan_gb(gpu->memory != 0 ? gpu->memory : used),
                       plan->free ? " free" : "");

        dsa_plan_parts(plan, gpu, text);

        if (plan->pages != 0) {
            dsa_buf_printf(text, " + pages %.2f", dsa_plan_gb(kv));

        } else {
            dsa_buf_addz(text, ", and what its pages need");
        }

        if (gpu->memory != 0) {
            dsa_buf_printf(text, " + unused %.2f",
                           dsa_plan_gb(gpu->memory - used));
        }

        dsa_buf_addz(text, "\n");

        if (one) {

            /* all GPUs need the same */

            break;
        }
    }

    dsa_plan_total(plan, text);
}


static void
dsa_plan_total(const dsa_plan_t *plan, dsa_buf_t *text)
{
    int       data;
    uint32_t  context;
    uint64_t  tokens;

    data = plan->attention == DSA_ATTENTION_DATA;

    if (plan->gpus > 1) {
        dsa_buf_printf(text, "%u GPUs with attention %s: ", plan->gpus,
                       data ? "data" : "tensor");
    }

    dsa_buf_printf(text, "steps of up to %u tokens and %u sequences%s; ",
                   plan->rank_tokens, plan->max_seqs,
                   plan->gpus > 1 && data ? " on each GPU" : "");

    if (plan->pages == 0) {
        dsa_buf_printf(text, "a page of %d tokens has %.2f MB, the pages of a "
                       "sequence of %u tokens %.2f GB%s\n", DSA_PAGE_TOKENS,
                       (double) plan->page * 1e-6, plan->context,
                       dsa_plan_gb(dsa_plan_context(plan)),
                       plan->gpus == 1 ? ""
                       : data ? " on one GPU" : " on every GPU");
        return;
    }

    tokens = (uint64_t) plan->pages * DSA_PAGE_TOKENS;
    context = tokens < plan->context ? (uint32_t) tokens : plan->context;

    if (data) {
        tokens *= plan->gpus;
    }

    dsa_buf_printf(text, "%u pages of %d tokens%s, %.2f M tokens of KV in "
                   "all; contexts up to %u tokens\n", plan->pages,
                   DSA_PAGE_TOKENS,
                   plan->gpus == 1 ? ""
                   : data ? " on each GPU" : ", the same on each GPU",
                   (double) tokens * 1e-6, context);
}


void
dsa_plan_log(const dsa_plan_t *plan)
{
    char       *line, *end;
    dsa_buf_t   text;

    memset(&text, 0, sizeof(text));
    dsa_plan_describe(plan, &text);

    if (!text.failed) {
        for (line = text.data; line < text.data + text.len; line = end + 1) {
            end = memchr(line, '\n', text.len - (size_t) (line - text.data));
            dsa_log(DSA_LOG_NOTICE, "%.*s", (int) (end - line), line);
        }
    }

    dsa_buf_free(&text);
}


void
dsa_plan_alternatives(const dsa_plan_t *plan, dsa_plan_needs_pt needs,
    void *data, dsa_err_t *err)
{
    uint32_t  by_data, by_tensor;

    if (dsa_plan_page_fits(plan)) {

        /* a smaller kv_memory fits, which err already contains */

        return;
    }

    by_data = dsa_plan_smallest(plan, DSA_ATTENTION_DATA, needs, data);
    by_tensor = dsa_plan_smallest(plan, DSA_ATTENTION_TENSOR, needs, data);

    if (by_data == 0 && by_tensor == 0) {
        dsa_plan_append(err, "; up to %d such GPUs cannot hold the model and "
                        "a context of %u tokens", DSA_MAX_GPUS,
                        plan->context);
        return;
    }

    dsa_plan_append(err, "; enough for a context of %u tokens:",
                    plan->context);

    if (by_data != 0) {
        dsa_plan_append(err, " %u such GPU%s with \"attention data\"",
                        by_data, by_data > 1 ? "s" : "");
    }

    if (by_tensor != 0) {
        dsa_plan_append(err, "%s %u such GPU%s with \"attention tensor\"",
                        by_data != 0 ? ", or" : "", by_tensor,
                        by_tensor > 1 ? "s" : "");
    }
}


/* Returns the smallest number of GPUs that fits; 0: none. */

static uint32_t
dsa_plan_smallest(const dsa_plan_t *plan, dsa_attention_e attention,
    dsa_plan_needs_pt needs, void *data)
{
    uint32_t          i;
    uint64_t          memory;
    dsa_err_t         err;
    dsa_plan_needs_t  n;

    memory = UINT64_MAX;

    for (i = 0; i < plan->gpus; i++) {
        if (plan->gpu[i].memory != 0 && plan->gpu[i].memory < memory) {
            memory = plan->gpu[i].memory;
        }
    }

    for (i = 1; i <= DSA_MAX_GPUS; i++) {
        if (needs(data, &n, i, attention, &err) == DSA_OK
            && dsa_plan_fixed(&n) + dsa_plan_context(plan) <= memory)
        {
            return i;
        }
    }

    return 0;
}


/* Appends to err.  Text that does not fit is cut off. */

static void
dsa_plan_append(dsa_err_t *err, const char *fmt, ...)
{
    size_t   len;
    va_list  args;

    len = strlen(err->text);

    va_start(args, fmt);
    (void) vsnprintf(err->text + len, sizeof(err->text) - len, fmt, args);
    va_end(args);
}
