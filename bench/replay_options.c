
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/draft_share.h"
#include "bench/replay_options.h"
#include "bench/replay_prompt.h"
#include "engine/backend.h"


#define REPLAY_ADDED        3           /* <User>, <Assistant>, </think> */
#define REPLAY_CONCURRENCY  16


static int replay_value(replay_options_t *o, int option);
static int replay_count(const char *text, uint32_t max, uint32_t *out);
static int replay_speed(const char *text, double *out);
static int replay_prices(const char *text, replay_prices_t *out);
static int replay_drafts(const char *text, double *temperature);
static int replay_ports(char *text, replay_options_t *o);


static const char  replay_usage[] =
"usage: replay --port PORT --tokenizer FILE [OPTION ...] TRACE\n"
"\n"
"TRACE has a JSON object on each line; - is stdin, *.xz is unpacked.\n"
"\n"
"  --speed X          divide times of arrival and pauses by X; max (the\n"
"                     default) ignores them\n"
"  --concurrency N    most requests at a time (default 16)\n"
"  --agents N         N conversations at a time, also in their pauses, not\n"
"                     times of arrival: one that has ended is replaced by the\n"
"                     next of the trace.  Ends when none is left\n"
"  --requests N       only the first N requests\n"
"  --warm N           measure from N seconds after the start\n"
"  --seconds N        measure for N seconds, and end\n"
"  --gpus N           of all engines, for rates of each (default 1)\n"
"  --drafts SHARE     random weights: the share of drafts that are right,\n"
"                     above 0 to 0.92 (bench/draft_share.h)\n"
"  --prices M,H,O     USD for a million tokens: miss, hit, output\n"
"                     (default 0.28,0.028,0.42)\n"
"  --messages N|one   a message ends where prompts of the trace part, and the\n"
"                     template adds N tokens for each (default 3); one: a\n"
"                     prompt is one message, so that nginx finds no prefix to\n"
"                     choose a replica by\n"
"  --uri URI          default /v1/chat/completions\n"
"  --model NAME       in requests (default model)\n"
"  --label TEXT       the first columns of the rows that are printed\n"
"  --list FILE        write a line of CSV for each request\n"
"  --metrics PORT,... of each nginx with /metrics (default: that of --port)\n"
"  --keep NAME        write /metrics at the beginning and at the end of the\n"
"                     measurement to NAME.begin and NAME.end\n";


int
replay_options(replay_options_t *o, int argc, char **argv)
{
    int  c;

    static const struct option  options[] = {
        { "port", required_argument, NULL, 'p' },
        { "tokenizer", required_argument, NULL, 't' },
        { "speed", required_argument, NULL, 's' },
        { "concurrency", required_argument, NULL, 'c' },
        { "agents", required_argument, NULL, 'g' },
        { "requests", required_argument, NULL, 'n' },
        { "warm", required_argument, NULL, 'w' },
        { "seconds", required_argument, NULL, 'e' },
        { "gpus", required_argument, NULL, 'G' },
        { "drafts", required_argument, NULL, 'D' },
        { "prices", required_argument, NULL, 'd' },
        { "messages", required_argument, NULL, 'a' },
        { "uri", required_argument, NULL, 'u' },
        { "model", required_argument, NULL, 'm' },
        { "label", required_argument, NULL, 'l' },
        { "list", required_argument, NULL, 'o' },
        { "metrics", required_argument, NULL, 'M' },
        { "keep", required_argument, NULL, 'k' },
        { NULL, 0, NULL, 0 }
    };

    memset(o, 0, sizeof(replay_options_t));
    o->limit = UINT32_MAX;
    o->added = REPLAY_ADDED;
    o->gpus = 1;
    o->temperature = 1;
    o->uri = "/v1/chat/completions";
    o->model = "model";
    o->label = "";
    o->prices.miss = 0.28;
    o->prices.hit = 0.028;
    o->prices.output = 0.42;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (replay_value(o, c) == -1) {
            (void) fprintf(stderr, "%s", replay_usage);
            return -1;
        }
    }

    if (o->port == 0 || o->tokenizer == NULL || optind != argc - 1) {
        (void) fprintf(stderr, "%s", replay_usage);
        return -1;
    }

    if (o->agents != 0 && o->concurrency != 0) {
        (void) fprintf(stderr, "replay: --agents and --concurrency: expected "
                       "one of them\n");
        return -1;
    }

    if (o->concurrency == 0) {
        o->concurrency = o->agents != 0 ? o->agents : REPLAY_CONCURRENCY;
    }

    if (o->n_metrics == 0) {
        o->metrics[o->n_metrics++] = o->port;
    }

    o->file = argv[optind];

    return 0;
}


static int
replay_value(replay_options_t *o, int option)
{
    switch (option) {

    case 'p':
        return replay_count(optarg, UINT16_MAX, &o->port);

    case 't':
        o->tokenizer = optarg;
        return 0;

    case 's':
        return replay_speed(optarg, &o->speed);

    case 'c':
        return replay_count(optarg, INT32_MAX, &o->concurrency);

    case 'g':
        return replay_count(optarg, INT32_MAX, &o->agents);

    case 'n':
        return replay_count(optarg, INT32_MAX, &o->limit);

    case 'w':
        return replay_count(optarg, INT32_MAX, &o->warm);

    case 'e':
        return replay_count(optarg, INT32_MAX, &o->seconds);

    case 'G':
        return replay_count(optarg, INT32_MAX, &o->gpus);

    case 'D':
        return replay_drafts(optarg, &o->temperature);

    case 'd':
        return replay_prices(optarg, &o->prices);

    case 'a':
        if (strcmp(optarg, "one") == 0) {
            o->added = PROMPT_ONE;
            return 0;
        }

        return replay_count(optarg, TRACE_BLOCK - 1, &o->added);

    case 'u':
        o->uri = optarg;
        return 0;

    case 'm':
        o->model = optarg;
        return 0;

    case 'l':
        o->label = optarg;
        return 0;

    case 'o':
        o->list = optarg;
        return 0;

    case 'M':
        return replay_ports(optarg, o);

    case 'k':
        o->keep = optarg;
        return 0;
    }

    return -1;
}


static int
replay_count(const char *text, uint32_t max, uint32_t *out)
{
    char           *end;
    unsigned long   n;

    errno = 0;
    n = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0
        || n == 0 || n > max)
    {
        (void) fprintf(stderr, "replay: \"%s\" is not a number; expected an "
                       "integer from 1 to %u\n", text, max);
        return -1;
    }

    *out = (uint32_t) n;

    return 0;
}


static int
replay_speed(const char *text, double *out)
{
    char  *end;

    if (strcmp(text, "max") == 0) {
        *out = 0;
        return 0;
    }

    *out = strtod(text, &end);

    if (end == text || *end != '\0' || !(*out >= 1e-6 && *out <= 1e9)) {
        (void) fprintf(stderr, "replay: the speed is \"%s\"; expected a "
                       "number from 0.000001 to 1e9, or max\n", text);
        return -1;
    }

    return 0;
}


static int
replay_prices(const char *text, replay_prices_t *out)
{
    int  n;

    n = -1;

    if (sscanf(text, "%lf,%lf,%lf%n", &out->miss, &out->hit, &out->output, &n)
        != 3 || n == -1 || text[n] != '\0'
        || !(out->miss >= 0 && out->hit >= 0 && out->output >= 0))
    {
        (void) fprintf(stderr, "replay: the prices are \"%s\"; expected three "
                       "numbers with commas: miss, hit, output\n", text);
        return -1;
    }

    return 0;
}


/* The temperature at which so many drafts of random weights are right. */

static int
replay_drafts(const char *text, double *temperature)
{
    char    *end;
    double   share;

    share = strtod(text, &end);
    *temperature = end == text || *end != '\0' ? 0
                   : bench_draft_temperature(share, DSA_RANDOM_LOGITS);

    if (*temperature == 0) {
        (void) fprintf(stderr, "replay: the share of drafts is \"%s\"; "
                       "expected a number above 0 to 0.92\n", text);
        return -1;
    }

    return 0;
}


static int
replay_ports(char *text, replay_options_t *o)
{
    char  *port;

    for (port = strtok(text, ","); port != NULL; port = strtok(NULL, ",")) {

        if (o->n_metrics == REPLAY_PORTS) {
            (void) fprintf(stderr, "replay: --metrics: expected at most %d "
                           "ports\n", REPLAY_PORTS);
            return -1;
        }

        if (replay_count(port, UINT16_MAX, &o->metrics[o->n_metrics++]) == -1) {
            return -1;
        }
    }

    return 0;
}
