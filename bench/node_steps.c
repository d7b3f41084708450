
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/node_steps.h"


#define DSA_STEPS_PROMPTS   0
#define DSA_STEPS_DECODE    1


static int dsa_steps_line(dsa_node_steps_t *s, const char *line);
static int dsa_steps_add(dsa_node_steps_t *s, uint32_t kind, double rows,
    double context, double ms, double us);
static int dsa_steps_between(dsa_node_seconds_t *t, const dsa_node_steps_t *s,
    uint32_t kind, double rows, double context);
static void dsa_steps_mix(dsa_node_seconds_t *t, const dsa_node_seconds_t *a,
    const dsa_node_seconds_t *b, double part);


int
dsa_node_steps_read(dsa_node_steps_t *s, const char *name, dsa_err_t *err)
{
    int        rc;
    char       line[256];
    FILE      *file;
    uint32_t   n;

    memset(s, 0, sizeof(dsa_node_steps_t));
    file = fopen(name, "r");

    if (file == NULL) {
        return dsa_error(err, "%s: %s", name, strerror(errno));
    }

    rc = DSA_OK;

    for (n = 1; rc == DSA_OK && fgets(line, sizeof(line), file) != NULL; n++) {
        if (line[0] != '#' && dsa_steps_line(s, line) != DSA_OK) {
            rc = dsa_error(err, "%s: line %u is not a measurement; expected "
                           "\"layers,LAYERS,DENSE\" and then \"prefill,TOKENS,"
                           "MS,US\", \"decode,ROWS,CONTEXT,MS,US\" or \"served,"
                           "STREAMS,PROMPT,ANSWER,N\", at most %d of each",
                           name, n, DSA_NODE_LINES);
        }
    }

    (void) fclose(file);

    return rc;
}


static int
dsa_steps_line(dsa_node_steps_t *s, const char *line)
{
    double              a, b, c, d;
    dsa_node_served_t  *served;

    if (sscanf(line, "layers,%lf,%lf", &a, &b) == 2) {
        s->layers = a;
        s->dense = b;

        return b >= 0 && b < a ? DSA_OK : DSA_ERROR;
    }

    if (sscanf(line, "prefill,%lf,%lf,%lf", &a, &c, &d) == 3) {
        return dsa_steps_add(s, DSA_STEPS_PROMPTS, a, 0, c, d);
    }

    if (sscanf(line, "decode,%lf,%lf,%lf,%lf", &a, &b, &c, &d) == 4) {
        return dsa_steps_add(s, DSA_STEPS_DECODE, a, b, c, d);
    }

    if (sscanf(line, "served,%lf,%lf,%lf,%lf", &a, &b, &c, &d) != 4
        || s->n_served == DSA_NODE_LINES)
    {
        return DSA_ERROR;
    }

    served = &s->served[s->n_served++];
    served->streams = a;
    served->prompt = b;
    served->answer = c;
    served->tokens = d;

    return DSA_OK;
}


static int
dsa_steps_add(dsa_node_steps_t *s, uint32_t kind, double rows, double context,
    double ms, double us)
{
    dsa_node_line_t  *line;

    if (s->lines[kind] == DSA_NODE_LINES || s->layers == 0 || !(rows > 0)
        || !(us > 0) || !(ms * 1e3 > (s->layers - s->dense) * us))
    {
        return DSA_ERROR;
    }

    line = &s->line[kind][s->lines[kind]++];
    line->rows = rows;
    line->context = context;
    line->t.layer = us * 1e-6;
    line->t.rest = ms * 1e-3 - (s->layers - s->dense) * us * 1e-6;

    return DSA_OK;
}


int
dsa_node_steps_decode(dsa_node_seconds_t *t, const dsa_node_steps_t *s,
    double rows, double context)
{
    double              c, below, above;
    uint32_t            i;
    dsa_node_seconds_t  a, b;

    below = 0;
    above = 0;

    for (i = 0; i < s->lines[DSA_STEPS_DECODE]; i++) {
        c = s->line[DSA_STEPS_DECODE][i].context;

        if (c <= context && c > below) {
            below = c;
        }

        if (c >= context && (above == 0 || c < above)) {
            above = c;
        }
    }

    if (below == 0 || above == 0
        || dsa_steps_between(&a, s, DSA_STEPS_DECODE, rows, below) != DSA_OK
        || dsa_steps_between(&b, s, DSA_STEPS_DECODE, rows, above) != DSA_OK)
    {
        return DSA_AGAIN;
    }

    dsa_steps_mix(t, &a, &b, above > below ? (context - below)
                                             / (above - below) : 0);

    return DSA_OK;
}


int
dsa_node_steps_prefill(dsa_node_seconds_t *t, const dsa_node_steps_t *s,
    double tokens)
{
    return dsa_steps_between(t, s, DSA_STEPS_PROMPTS, tokens, 0);
}


/* Between the lines of a context; a prompt's are times of one token. */

static int
dsa_steps_between(dsa_node_seconds_t *t, const dsa_node_steps_t *s,
    uint32_t kind, double rows, double context)
{
    uint32_t                i;
    dsa_node_seconds_t      a, b;
    const dsa_node_line_t  *line, *below, *above;

    static const dsa_node_seconds_t  zero;

    below = NULL;
    above = NULL;

    for (i = 0; i < s->lines[kind]; i++) {
        line = &s->line[kind][i];

        if (line->context != context) {
            continue;
        }

        if (line->rows <= rows && (below == NULL || line->rows > below->rows))
        {
            below = line;
        }

        if (line->rows >= rows && (above == NULL || line->rows < above->rows))
        {
            above = line;
        }
    }

    if (below == NULL || above == NULL) {
        return DSA_AGAIN;
    }

    a = below->t;
    b = above->t;

    if (kind == DSA_STEPS_PROMPTS) {
        dsa_steps_mix(&a, &zero, &a, 1 / below->rows);
        dsa_steps_mix(&b, &zero, &b, 1 / above->rows);
    }

    dsa_steps_mix(t, &a, &b, above->rows > below->rows
                             ? (rows - below->rows)
                               / (above->rows - below->rows)
                             : 0);

    return DSA_OK;
}


/* t = a where part is 0, b where it is 1. */

static void
dsa_steps_mix(dsa_node_seconds_t *t, const dsa_node_seconds_t *a,
    const dsa_node_seconds_t *b, double part)
{
    double  layer, rest;

    layer = a->layer + part * (b->layer - a->layer);
    rest = a->rest + part * (b->rest - a->rest);

    t->layer = layer;
    t->rest = rest;
}


double
dsa_node_steps_served(const dsa_node_steps_t *s, double streams,
    double prompt, double answer)
{
    uint32_t                  i;
    const dsa_node_served_t  *served;

    for (i = 0; i < s->n_served; i++) {
        served = &s->served[i];

        if (served->streams == streams && served->prompt == prompt
            && served->answer == answer)
        {
            return served->tokens;
        }
    }

    return 0;
}
