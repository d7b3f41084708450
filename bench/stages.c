
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What the stages of a request cost that nginx runs: each on the largest or the
 * most expensive input that it accepts, or has to read before it refuses it.
 *
 *     stages [NAME]
 *
 * Prints for each stage whose name begins with NAME the bytes of its input, the
 * best of five runs in ms, and ns for each byte.
 */


#include <math.h>
#include <time.h>

#include "context/chat.h"
#include "bench/stages.h"


#define RUNS     5


const dsa_family_t  *stage_family;

const dsa_chat_limits_t  stage_limits = {
    .max_messages = 8192, .max_tools = 128, .hosted = 1
};


static double
now(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}


void
stage_must(int ok, const char *what)
{
    if (!ok) {
        (void) fprintf(stderr, "stages: %s failed\n", what);
        exit(1);
    }
}


void
stage_fill(stage_input_t *in, const char *head, const char *unit,
    const char *tail, size_t size, size_t max)
{
    size_t  i, n, len;

    len = strlen(unit);
    n = (size - strlen(head) - strlen(tail)) / len;

    if (n > max) {
        n = max;
    }

    dsa_buf_addz(&in->text, head);

    for (i = 0; i < n; i++) {
        dsa_buf_add(&in->text, unit, len);
    }

    if (unit[len - 1] == ',') {
        in->text.len--;
    }

    dsa_buf_addz(&in->text, tail);
    stage_must(!in->text.failed, "malloc()");
}


dsa_arena_t *
stage_arena(const stage_input_t *in)
{
    return dsa_arena_create(1024 * 1024 + 48 * in->text.len);
}


void
stage_parse(stage_input_t *in)
{
    in->arena = stage_arena(in);
    in->root = dsa_json_parse(in->arena, in->text.data, in->text.len, DEPTH,
                              NULL);
    stage_must(in->root != NULL, "parsing");
}


void
stage_read_chat(stage_input_t *in)
{
    dsa_refusal_t  refusal;

    stage_parse(in);

    if (dsa_chat_read(&in->chat, in->arena, in->root, &stage_limits, &refusal)
        != DSA_OK)
    {
        (void) fprintf(stderr, "%s\n", refusal.message);
        stage_must(0, "reading a chat");
    }
}


void
stage_make_plain(stage_input_t *in)
{
    stage_fill(in, ONE, "The quick brown fox. ", "\"}]}", BODY, SIZE_MAX);
}


void
stage_make_tools(stage_input_t *in)
{
    size_t  i, k;

    dsa_buf_addz(&in->text, ONE "x\"}],\"tools\":[");

    for (i = 0; i < 128; i++) {
        dsa_buf_printf(&in->text, "%s{\"type\":\"function\",\"function\":{"
                       "\"name\":\"f%zu\",\"parameters\":{\"type\":\"object\","
                       "\"properties\":{", i != 0 ? "," : "", i);

        for (k = 0; k < 1000; k++) {
            dsa_buf_printf(&in->text, "%s\"property_%zu\":{\"type\":"
                           "\"string\"}", k != 0 ? "," : "", k);
        }

        dsa_buf_addz(&in->text, "}},\"strict\":true}}");
    }

    dsa_buf_addz(&in->text, "]}");
    stage_must(!in->text.failed, "malloc()");
}


void
stage_make_calls(stage_input_t *in)
{
    size_t  i;

    dsa_buf_addz(&in->text, ONE "x\"},{\"role\":\"assistant\",\"content\":\"\","
                 "\"reasoning_content\":\"y\",\"tool_calls\":[");

    for (i = 0; i < 1000; i++) {
        dsa_buf_printf(&in->text, "%s{\"id\":\"call_%07zu"
                       "abcdefghijklmnopqrstuv\",\"type\":\"function\","
                       "\"function\":{\"name\":\"f\",\"arguments\":\"{",
                       i != 0 ? "," : "", i);
        stage_fill(in, "\\\"a\\\": [", "1.5, ", "1]}\"}}", 7500, SIZE_MAX);
    }

    dsa_buf_addz(&in->text, "]}");

    for (i = 0; i < 1000; i++) {
        dsa_buf_printf(&in->text, ",{\"role\":\"tool\",\"tool_call_id\":"
                       "\"call_%07zuabcdefghijklmnopqrstuv\",\"content\":"
                       "\"z\"}", 999 - i);
    }

    dsa_buf_addz(&in->text, "]}");
    stage_must(!in->text.failed, "malloc()");
}


void
stage_make_check(stage_input_t *in)
{
    stage_make_calls(in);
    stage_read_chat(in);
}


/* Prints the best of the runs of a stage. */

static void
measure(const stage_t *stage)
{
    int              k;
    size_t           bytes;
    double           best, t;
    stage_input_t    in;

    memset(&in, 0, sizeof(stage_input_t));
    stage->make(&in);

    best = INFINITY;

    for (k = 0; k < RUNS; k++) {
        in.work = dsa_arena_create(1024 * 1024 + 12 * in.text.len);

        t = now();
        stage->run(&in);
        t = now() - t;

        if (t < best) {
            best = t;
        }

        dsa_arena_destroy(in.work);
    }

    bytes = in.n_lists != 0 ? in.n_lists * in.text.len : in.text.len;

    (void) printf("| %-34s | %9zu | %8.2f | %6.1f |\n", stage->name, bytes,
                  best, best * 1e6 / (double) bytes);
    (void) fflush(stdout);

    free(in.lists);
    dsa_arena_destroy(in.arena);
    dsa_buf_free(&in.text);
}


int
main(int argc, char **argv)
{
    size_t          i;
    const stage_t  *stage;

    static const stage_t *const  tables[] = {
        stages_read, stages_prompt, stages_stored
    };

    stage_family = dsa_families[0];

    for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (stage = tables[i]; stage->name != NULL; stage++) {
            if (argc == 1
                || strncmp(stage->name, argv[1], strlen(argv[1])) == 0)
            {
                measure(stage);
            }
        }
    }

    return 0;
}
