
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_KEY_OPTIONS_H_INCLUDED_
#define _DSA_TOOLS_KEY_OPTIONS_H_INCLUDED_


#include "redis_schema/keys.h"


/*
 * The values of the options of "dsa key create" and "dsa key set", as texts;
 * NULL: the option is absent, and the key keeps its value.
 */

typedef struct {
    const char   *name;
    const char   *tenant;
    const char   *state;
    const char   *models;                   /* A,B,... or all */
    const char   *rpm;                      /* a number or none */
    const char   *tpm;
    const char   *concurrency;
    const char   *weight;
    const char   *priority;
    const char   *expires;                  /* a date, a duration or never */
    const char   *budget[DSA_KEY_PERIODS];  /* HARD, HARD:SOFT, :SOFT, none */
} dsa_key_options_t;


/*
 * Changes a key.  now: seconds since 1970.  Names are those of the options;
 * models are allocated from the arena.  DSA_ERROR with what would be accepted.
 */
int dsa_key_options_apply(dsa_key_t *key, dsa_arena_t *arena,
    const dsa_key_options_t *options, int64_t now, dsa_err_t *err);

/*
 * A duration in seconds: a number and s, m, h, d or w, or 0.  option is its
 * name in errors.
 */
int dsa_key_duration(int64_t *seconds, const char *option, const char *text,
    dsa_err_t *err);

/*
 * A date, YYYY-MM-DD, or a time, YYYY-MM-DDTHH:MM:SSZ, of UTC in seconds since
 * 1970.  DSA_ERROR: text is neither.
 */
int dsa_key_date(int64_t *time, const char *text);


#endif /* _DSA_TOOLS_KEY_OPTIONS_H_INCLUDED_ */
