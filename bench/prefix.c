
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "context/family.h"
#include "context/prompt_keys.h"
#include "context/prompt_map.h"


/*
 * Measures what the choice of an engine by prefix adds to a request, without
 * nginx: the keys of prompts of several sizes, and a lookup and an update of
 * all keys that a request can have, in a full map of the default size.
 *
 *     build/bench/prefix [RUNS]
 *
 * Prints the best of the runs, because other processes on the machine only make
 * a run slower.  Every request has keys of its own, as in a server with many
 * conversations, so that their sets are not in the first caches of the CPU.
 */

#define BENCH_MAP         (4 * 1024 * 1024)
#define BENCH_REQUESTS    20000
#define BENCH_MESSAGES    50            /* in a prompt */


static uint8_t  secret[DSA_PROMPT_SECRET];
static uint8_t  tenant[DSA_PROMPT_TENANT];
static uint64_t  bench_prompts;         /* each has its number in front */


static double
now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}


static uint64_t
random_next(void)
{
    static uint64_t  state = 1;

    state = state * 6364136223846793005 + 1442695040888963407;

    return state ^ state >> 29;
}


/* A prompt of size bytes, in which all messages are of the user. */

static void
bench_prompt(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_family_t *family, const char *text, size_t size)
{
    uint32_t       i;
    dsa_err_t      err;
    dsa_chat_t     chat;
    dsa_message_t  messages[BENCH_MESSAGES];

    memset(&chat, 0, sizeof(dsa_chat_t));
    memset(messages, 0, sizeof(messages));

    chat.messages = messages;
    chat.n_messages = BENCH_MESSAGES;

    for (i = 0; i < BENCH_MESSAGES; i++) {
        messages[i].role = DSA_ROLE_USER;
        messages[i].content = dsa_str(text + i * (size / BENCH_MESSAGES),
                                      size / BENCH_MESSAGES);
    }

    if (arena == NULL || family->encode(prompt, arena, &chat, &err) != DSA_OK)
    {
        (void) fprintf(stderr, "bench/prefix: out of memory\n");
        exit(1);
    }
}


/* Seconds for the keys of one prompt of size bytes. */

static double
bench_keys(const char *text, size_t size)
{
    char                        *first;
    double                       seconds;
    uint32_t                     i, n;
    dsa_arena_t                 *arena;
    dsa_prompt_t                 prompt;
    const dsa_family_t          *family;
    dsa_prompt_keys_t   keys;

    family = dsa_families[0];
    arena = dsa_arena_create(16 * 1000 * 1000);

    bench_prompt(&prompt, arena, family, text, size);

    for (i = 0; prompt.segments[i].kind != DSA_SEGMENT_TEXT; i++) {
        /* void */
    }

    first = (char *) (uintptr_t) prompt.segments[i].text.data;
    n = (uint32_t) (100 * 1000 * 1000 / (size + 10000));
    seconds = now();

    for (i = 0; i < n; i++) {
        memcpy(first, &bench_prompts, sizeof(bench_prompts));
        bench_prompts++;
        dsa_prompt_keys(&keys, &prompt, &family->tokens, secret,
                                 tenant, dsa_str("deepseek-chat", 13));
    }

    seconds = (now() - seconds) / n;

    dsa_arena_destroy(arena);

    return seconds;
}


/* Seconds for the lookup and the update of one request. */

static double
bench_map(dsa_prompt_map_t *map, uint64_t *keys)
{
    double     start;
    uint32_t   i, k, found;
    uint64_t  *key;

    for (i = 0; i < BENCH_REQUESTS * DSA_PROMPT_KEYS; i++) {
        keys[i] = random_next() << 32 | random_next() >> 32;
    }

    found = 0;
    start = now();

    for (i = 0; i < BENCH_REQUESTS; i++) {
        key = keys + i * DSA_PROMPT_KEYS;

        for (k = 0; k < DSA_PROMPT_KEYS; k++) {
            dsa_prompt_map_prefetch(map, key[k]);
        }

        for (k = 0; k < DSA_PROMPT_KEYS; k++) {
            found += dsa_prompt_map_find(map, key[k]);
        }

        for (k = 0; k < DSA_PROMPT_KEYS; k++) {
            dsa_prompt_map_put(map, key[k], 1 + found % 4);
        }
    }

    return (now() - start) / BENCH_REQUESTS;
}


int
main(int argc, char **argv)
{
    int                          run, runs;
    char                        *text;
    double                       best, time;
    size_t                       i;
    uint64_t                    *keys;
    dsa_prompt_map_t            *map;

    static const size_t  sizes[] = { 1000, 10 * 1000, 100 * 1000, 1000 * 1000 };

    runs = argc > 1 ? atoi(argv[1]) : 20;

    text = malloc(1000 * 1000);
    keys = calloc(BENCH_REQUESTS * DSA_PROMPT_KEYS, sizeof(uint64_t));
    map = aligned_alloc(4096, BENCH_MAP);

    if (runs < 1 || text == NULL || keys == NULL || map == NULL) {
        (void) fprintf(stderr, "usage: bench/prefix [RUNS], at least 1\n");
        return 1;
    }

    memset(text, 'x', 1000 * 1000);
    map = dsa_prompt_map_init(map, BENCH_MAP);

    for (i = 0; i < sizeof(secret); i++) {
        secret[i] = (uint8_t) random_next();
    }

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (best = 1, run = 0; run < runs; run++) {
            time = bench_keys(text, sizes[i]);
            best = time < best ? time : best;
        }

        (void) printf("keys of %d messages, %7zu bytes: %8.2f us, %5.1f GB/s\n",
                      BENCH_MESSAGES, sizes[i], best * 1e6,
                      (double) sizes[i] / best / 1e9);
    }

    /* the first runs fill the map */

    for (best = 1, run = 0; run < runs + 5; run++) {
        time = bench_map(map, keys);
        best = time < best ? time : best;
    }

    (void) printf("lookup and update of %d keys, 4 MB map:  %8.2f us\n",
                  DSA_PROMPT_KEYS, best * 1e6);

    return 0;
}
