
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The report of dsa status.
 */


#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/money.h"
#include "tools/status.h"


#define DSA_STATUS_LINE   1024          /* bytes */
#define DSA_STATUS_CELL   64


/* Lines of a bounded width, and at most so many. */

typedef struct {
    dsa_buf_t  *out;
    uint32_t    width;
    uint32_t    left;                   /* lines */
} dsa_status_page_t;


static void dsa_status_redis(dsa_status_page_t *p, const dsa_status_t *now);
static void dsa_status_line(dsa_status_page_t *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static size_t dsa_status_clip(const char *text, size_t len, uint32_t most,
    uint32_t *width);
static const char *dsa_status_cell(char *cell, dsa_str_t text, uint32_t width);
static const char *dsa_status_count(char *cell, double n);
static const char *dsa_status_age(char *cell, double seconds);
static const char *dsa_status_rate(char *cell, uint64_t before, uint64_t now,
    double seconds);
static const char *dsa_status_percentile(char *cell,
    const dsa_status_hist_t *before, const dsa_status_hist_t *now,
    double part);
static void dsa_status_totals(dsa_status_page_t *p, const dsa_status_t *before,
    const dsa_status_t *now, double seconds);
static void dsa_status_latency(dsa_status_page_t *p, const char *name,
    const dsa_status_hist_t *before, const dsa_status_hist_t *now);
static void dsa_status_cost(dsa_status_page_t *p, const dsa_status_t *before,
    const dsa_status_t *now, double seconds);
static void dsa_status_print_engines(dsa_status_page_t *p,
    const dsa_status_t *before, const dsa_status_t *now, double seconds);
static void dsa_status_drafts(char (*cell)[DSA_STATUS_CELL],
    const dsa_status_engine_t *before, const dsa_status_engine_t *now,
    double seconds);
static void dsa_status_print_tenants(dsa_status_page_t *p,
    const dsa_status_t *before, const dsa_status_t *now, double seconds);


void
dsa_status_print(dsa_buf_t *b, const dsa_status_t *before,
    const dsa_status_t *now, uint32_t width, uint32_t height)
{
    char               version[DSA_STATUS_CELL * 4], age[DSA_STATUS_CELL];
    double             seconds;
    dsa_status_page_t  p = { b, width, height != 0 ? height : UINT32_MAX };

    seconds = now->time - before->time;

    dsa_status_line(&p, "nginx-dsa %s  up %s",
                    dsa_status_cell(version, now->version, 0),
                    dsa_status_age(age, now->uptime));

    dsa_status_totals(&p, before, now, seconds);
    dsa_status_latency(&p, "first token", &before->ttft, &now->ttft);
    dsa_status_latency(&p, "next token", &before->inter_token,
                       &now->inter_token);

    if (now->priced) {
        dsa_status_cost(&p, before, now, seconds);
    }

    if (now->redis) {
        dsa_status_redis(&p, now);
    }

    if (now->redis_lossy) {
        dsa_status_line(&p, "%s", "redis        NOT DURABLE: appendonly is "
                        "off, a crash of it loses ledger entries");
    }

    dsa_status_print_engines(&p, before, now, seconds);
    dsa_status_print_tenants(&p, before, now, seconds);
}


static void
dsa_status_redis(dsa_status_page_t *p, const dsa_status_t *now)
{
    char  memory[32];

    (void) snprintf(memory, sizeof(memory), "-");

    if (now->memory_limit != 0) {
        (void) snprintf(memory, sizeof(memory), "%.0f%%",
                        100.0 * (double) now->memory_used
                        / (double) now->memory_limit);
    }

    dsa_status_line(p, "redis        %s, memory %s; %" PRIu64 " ledger entries "
                    "wait, %" PRIu64 " of %" PRIu64 " places are used",
                    !now->redis_up ? "DOWN"
                    : now->writable ? "up" : "REFUSES WRITES",
                    memory, now->queue, now->queue_used, now->queue_capacity);
}


/* The texts among the arguments are escaped already. */

static void
dsa_status_line(dsa_status_page_t *p, const char *fmt, ...)
{
    int       n;
    char      line[DSA_STATUS_LINE];
    size_t    len;
    va_list   args;
    uint32_t  width;

    if (p->left == 0) {
        return;
    }

    p->left--;

    va_start(args, fmt);
    n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);

    len = n < 0 ? 0 : (size_t) n < sizeof(line) ? (size_t) n
                                                : sizeof(line) - 1;
    len = dsa_status_clip(line, len, p->width, &width);

    while (len != 0 && line[len - 1] == ' ') {
        len--;
    }

    dsa_buf_add(p->out, line, len);
    dsa_buf_add(p->out, "\n", 1);
}


/* The bytes of the first characters, *width of them and at most `most`. */

static size_t
dsa_status_clip(const char *text, size_t len, uint32_t most, uint32_t *width)
{
    size_t  i;

    *width = 0;

    for (i = 0; i < len; i++) {
        if (((unsigned char) text[i] & 0xc0) == 0x80) {
            continue;
        }

        if (*width == most) {
            break;
        }

        (*width)++;
    }

    return i;
}


/*
 * A text from outside without control characters, as wide as width (0: as long
 * as it is); the cell has 4 * DSA_STATUS_CELL bytes.
 */

static const char *
dsa_status_cell(char *cell, dsa_str_t text, uint32_t width)
{
    size_t    len;
    uint32_t  n;

    len = dsa_escape(cell, 4 * DSA_STATUS_CELL - DSA_STATUS_CELL - 1,
                     text.data, text.len);

    if (width != 0) {
        len = dsa_status_clip(cell, len, width, &n);

        for (/* void */; n < width; n++) {
            cell[len++] = ' ';
        }
    }

    cell[len] = '\0';

    return cell;
}


static const char *
dsa_status_count(char *cell, double n)
{
    if (n < 9.95) {
        (void) snprintf(cell, DSA_STATUS_CELL, "%.1f", n);

    } else if (n < 99999) {
        (void) snprintf(cell, DSA_STATUS_CELL, "%.0f", n);

    } else if (n < 1e7) {
        (void) snprintf(cell, DSA_STATUS_CELL, "%.1fk", n / 1e3);

    } else if (n < 1e10) {
        (void) snprintf(cell, DSA_STATUS_CELL, "%.1fM", n / 1e6);

    } else {
        (void) snprintf(cell, DSA_STATUS_CELL, "%.1fG", n / 1e9);
    }

    return cell;
}


static const char *
dsa_status_age(char *cell, double seconds)
{
    uint64_t  s;

    s = (uint64_t) seconds;

    (void) snprintf(cell, DSA_STATUS_CELL, "%" PRIu64 "d %02u:%02u:%02u",
                    s / 86400, (unsigned) (s / 3600 % 24),
                    (unsigned) (s / 60 % 60), (unsigned) (s % 60));

    return cell;
}


static const char *
dsa_status_rate(char *cell, uint64_t before, uint64_t now, double seconds)
{
    if (seconds <= 0 || now < before) {
        return strcpy(cell, "-");
    }

    return dsa_status_count(cell, (double) (now - before) / seconds);
}


/*
 * The value that `part` of the durations do not exceed, as if those of a bucket
 * were evenly spread over it.
 */

static const char *
dsa_status_percentile(char *cell, const dsa_status_hist_t *before,
    const dsa_status_hist_t *now, double part)
{
    double    sum, rank, low;
    uint32_t  i;
    uint64_t  n[DSA_STATUS_BUCKETS + 1];

    sum = 0;

    if (now->n == 0 || now->n != before->n) {
        return strcpy(cell, "-");
    }

    for (i = 0; i <= now->n; i++) {
        n[i] = now->counts[i] > before->counts[i]
               ? now->counts[i] - before->counts[i] : 0;
        sum += (double) n[i];
    }

    if (sum == 0) {
        return strcpy(cell, "-");
    }

    rank = part * sum;

    for (i = 0; i < now->n && (double) n[i] < rank; i++) {
        rank -= (double) n[i];
    }

    if (i == now->n) {
        (void) snprintf(cell, DSA_STATUS_CELL, ">%" PRIu64 " ms",
                        now->bounds[i - 1]);
        return cell;
    }

    low = i != 0 ? (double) now->bounds[i - 1] : 0;

    (void) snprintf(cell, DSA_STATUS_CELL, "%.1f ms",
                    low + ((double) now->bounds[i] - low) * rank
                          / (n[i] != 0 ? (double) n[i] : 1));

    return cell;
}


static void
dsa_status_totals(dsa_status_page_t *p, const dsa_status_t *before,
    const dsa_status_t *now, double seconds)
{
    char      cell[5][DSA_STATUS_CELL];
    uint64_t  prompt, cached;

    dsa_status_line(p, "requests     %" PRIu64 " in flight, %s/s, %" PRIu64
                    " in all, %" PRIu64 " failed", now->in_flight,
                    dsa_status_rate(cell[0], before->requests, now->requests,
                                    seconds),
                    now->requests, now->failed);

    prompt = now->prompt - before->prompt;
    cached = now->cached - before->cached;

    if (prompt != 0 && cached <= prompt && now->prompt >= before->prompt) {
        (void) snprintf(cell[3], DSA_STATUS_CELL, "%.1f%%",
                        100 * (double) cached / (double) prompt);

    } else {
        strcpy(cell[3], "-");
    }

    dsa_status_line(p, "tokens       %s/s of answers, %s/s of prompts, %s "
                    "cached",
                    dsa_status_rate(cell[0], before->completion,
                                    now->completion, seconds),
                    dsa_status_rate(cell[1], before->prompt, now->prompt,
                                    seconds),
                    cell[3]);
}


static void
dsa_status_latency(dsa_status_page_t *p, const char *name,
    const dsa_status_hist_t *before, const dsa_status_hist_t *now)
{
    char  cell[3][DSA_STATUS_CELL];

    dsa_status_line(p, "%-11s  p50 %s, p90 %s, p99 %s", name,
                    dsa_status_percentile(cell[0], before, now, 0.5),
                    dsa_status_percentile(cell[1], before, now, 0.9),
                    dsa_status_percentile(cell[2], before, now, 0.99));
}


static void
dsa_status_cost(dsa_status_page_t *p, const dsa_status_t *before,
    const dsa_status_t *now, double seconds)
{
    char    text[DSA_MONEY_LEN], cell[DSA_STATUS_CELL];
    char    currency[4 * DSA_STATUS_CELL];
    size_t  n;

    n = dsa_money_print(text, now->cost, 2);

    strcpy(cell, "-");

    if (seconds > 0 && now->cost >= before->cost) {
        (void) snprintf(cell, sizeof(cell), "%.4f",
                        (double) (now->cost - before->cost) / DSA_MONEY_UNIT
                        * 3600 / seconds);
    }

    dsa_status_line(p, "money        %.*s %s, %s per hour", (int) n, text,
                    dsa_status_cell(currency, now->currency, 0), cell);
}


static void
dsa_status_print_engines(dsa_status_page_t *p, const dsa_status_t *before,
    const dsa_status_t *now, double seconds)
{
    char                        name[4 * DSA_STATUS_CELL];
    char                        model[4 * DSA_STATUS_CELL];
    char                        rate[DSA_STATUS_CELL];
    char                        cache[DSA_STATUS_CELL];
    char                        drafts[3][DSA_STATUS_CELL];
    char                        pages[2][DSA_STATUS_CELL];
    uint32_t                    i, n;
    const dsa_status_engine_t  *e, *old;

    dsa_status_line(p, "%s", "");
    dsa_status_line(p, "%-28s %-16s %-8s %5s %5s %8s %15s %15s %-10s %8s %8s "
                    "%11s", "ENGINE", "MODEL", "STATE", "RUN", "WAIT",
                    "TOKENS/S", "GPU PAGES", "HOST PAGES", "CACHE", "DRAFTS/S",
                    "ACCEPTED", "TOKENS/STEP");

    for (i = 0; i < now->n_engines; i++) {
        e = &now->engines[i];
        old = i < before->n_engines ? &before->engines[i] : NULL;

        strcpy(rate, "-");
        strcpy(drafts[0], "-");
        strcpy(drafts[1], "-");
        strcpy(drafts[2], "-");

        if (old != NULL && e->up && dsa_str_eq(old->name, e->name)
            && dsa_str_eq(old->pool, e->pool))
        {
            (void) dsa_status_rate(rate, old->tokens, e->tokens, seconds);
            dsa_status_drafts(drafts, old, e, seconds);
        }

        for (n = 0; n < 2; n++) {
            (void) snprintf(pages[n], DSA_STATUS_CELL, "%" PRIu64 "/%" PRIu64,
                            e->used[n], e->pages[n]);
        }

        strcpy(cache, "-");

        if (e->servers != 0) {
            (void) snprintf(cache, sizeof(cache), "%" PRIu64 "/%" PRIu64 "%s",
                            e->servers_on, e->servers,
                            e->servers_on < e->servers ? " DOWN" : "");
        }

        dsa_status_line(p, "%s %s %-8s %5" PRIu64 " %5" PRIu64 " %8s %15s "
                        "%15s %-10s %8s %8s %11s",
                        dsa_status_cell(name, e->name, 28),
                        dsa_status_cell(model, e->model, 16),
                        !e->up ? "DOWN" : e->draining ? "draining" : "up",
                        e->running, e->waiting, rate, pages[0], pages[1],
                        cache, drafts[0], drafts[1], drafts[2]);
    }
}


/* Drafts a second, the share of accepted ones, and tokens of a step. */

static void
dsa_status_drafts(char (*cell)[DSA_STATUS_CELL],
    const dsa_status_engine_t *before, const dsa_status_engine_t *now,
    double seconds)
{
    (void) dsa_status_rate(cell[0], before->drafts, now->drafts, seconds);

    if (now->drafts > before->drafts && now->accepted >= before->accepted) {
        (void) snprintf(cell[1], DSA_STATUS_CELL, "%.1f%%",
                        100 * (double) (now->accepted - before->accepted)
                        / (double) (now->drafts - before->drafts));
    }

    if (now->decodes > before->decodes
        && now->decode_tokens >= before->decode_tokens)
    {
        (void) snprintf(cell[2], DSA_STATUS_CELL, "%.2f",
                        (double) (now->decode_tokens - before->decode_tokens)
                        / (double) (now->decodes - before->decodes));
    }
}


static void
dsa_status_print_tenants(dsa_status_page_t *p, const dsa_status_t *before,
    const dsa_status_t *now, double seconds)
{
    char                        name[4 * DSA_STATUS_CELL];
    char                        id[4 * DSA_STATUS_CELL];
    char                        cost[4 * DSA_STATUS_CELL];
    char                        rate[DSA_STATUS_CELL];
    uint32_t                    i, j;
    const dsa_status_tenant_t  *t, *old;

    dsa_status_line(p, "%s", "");
    dsa_status_line(p, "%-32s %-20s %5s %5s %9s %8s %s", "TENANT", "KEY",
                    "RUN", "WAIT", "REQUESTS", "TOKENS/S", "COST");

    for (i = 0; i < now->n_tenants && p->left != 0; i++) {
        t = &now->tenants[i];

        strcpy(rate, "-");

        for (j = 0; j < before->n_tenants; j++) {
            old = &before->tenants[j];

            if (dsa_str_eq(old->tenant, t->tenant)
                && dsa_str_eq(old->key, t->key))
            {
                (void) dsa_status_rate(rate, old->tokens, t->tokens, seconds);
                break;
            }
        }

        dsa_status_line(p, "%s %s %5" PRIu64 " %5" PRIu64 " %9" PRIu64
                        " %8s %s",
                        dsa_status_cell(name, t->name.len != 0 ? t->name
                                                               : t->tenant,
                                        32),
                        dsa_status_cell(id, t->key, 20), t->running,
                        t->waiting, t->requests, rate,
                        dsa_status_cell(cost, t->cost, 0));
    }
}
