
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/key_options.h"


#define DSA_KEY_NONE  "none"


static int dsa_key_apply_limits(dsa_key_limits_t *limits,
    const dsa_key_options_t *options, dsa_err_t *err);
static int dsa_key_apply_models(dsa_key_t *key, dsa_arena_t *arena,
    const char *text, dsa_err_t *err);
static int dsa_key_apply_expires(dsa_key_t *key, const char *text,
    int64_t now, dsa_err_t *err);
static int dsa_key_apply_state(dsa_key_t *key, const char *text,
    dsa_err_t *err);
static int dsa_key_apply_budget(dsa_key_budget_t *budget, const char *period,
    const char *text, dsa_err_t *err);
static int dsa_key_limit(uint64_t *n, const char *option, const char *text,
    uint64_t max, int none, dsa_err_t *err);
static int dsa_key_whole(uint64_t *n, const char *text, size_t len,
    uint64_t max);


int
dsa_key_options_apply(dsa_key_t *key, dsa_arena_t *arena,
    const dsa_key_options_t *options, int64_t now, dsa_err_t *err)
{
    if (options->name != NULL) {
        key->name = dsa_strz(options->name);
    }

    if (options->tenant != NULL) {
        key->tenant = dsa_strz(options->tenant);
    }

    if ((options->state != NULL
         && dsa_key_apply_state(key, options->state, err) != DSA_OK)
        || (options->models != NULL
            && dsa_key_apply_models(key, arena, options->models, err)
               != DSA_OK)
        || (options->expires != NULL
            && dsa_key_apply_expires(key, options->expires, now, err)
               != DSA_OK)
        || dsa_key_apply_limits(&key->limits, options, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_key_check(key, err);
}


static int
dsa_key_apply_limits(dsa_key_limits_t *limits,
    const dsa_key_options_t *options, dsa_err_t *err)
{
    int       i;
    uint64_t  concurrency, weight;

    concurrency = limits->concurrency;
    weight = limits->weight;

    if (dsa_key_limit(&limits->rpm, "rpm", options->rpm, DSA_KEY_MAX_RATE, 1,
                      err)
        != DSA_OK
        || dsa_key_limit(&limits->tpm, "tpm", options->tpm, DSA_KEY_MAX_RATE,
                         1, err)
           != DSA_OK
        || dsa_key_limit(&concurrency, "concurrency", options->concurrency,
                         DSA_KEY_MAX_CONCURRENCY, 1, err)
           != DSA_OK
        || dsa_key_limit(&weight, "weight", options->weight,
                         DSA_KEY_MAX_WEIGHT, 0, err)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    limits->concurrency = (uint32_t) concurrency;
    limits->weight = (uint32_t) weight;

    if (options->priority != NULL
        && dsa_key_priority(&limits->priority, dsa_strz(options->priority))
           != DSA_OK)
    {
        return dsa_error(err, "--priority \"%.64s\" is invalid; expected low, "
                         "normal or high", options->priority);
    }

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        if (options->budget[i] != NULL
            && dsa_key_apply_budget(&limits->budget[i],
                                    dsa_key_period_name(i),
                                    options->budget[i], err)
               != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_key_apply_state(dsa_key_t *key, const char *text, dsa_err_t *err)
{
    dsa_key_state_e  state;

    if (dsa_key_state(&state, dsa_strz(text)) != DSA_OK
        || state == DSA_KEY_REVOKED)
    {
        return dsa_error(err, "--state \"%.64s\" is invalid; expected active "
                         "or disabled (\"dsa key revoke\" revokes a key)",
                         text);
    }

    key->state = state;

    return DSA_OK;
}


static int
dsa_key_apply_models(dsa_key_t *key, dsa_arena_t *arena, const char *text,
    dsa_err_t *err)
{
    const char  *comma;

    key->n_models = 0;

    if (strcmp(text, "all") == 0) {
        return DSA_OK;
    }

    key->models = dsa_arena_alloc(arena,
                                  DSA_KEY_MAX_MODELS * sizeof(dsa_str_t));

    if (key->models == NULL) {
        return dsa_error(err, "out of memory");
    }

    for ( ;; ) {

        if (key->n_models == DSA_KEY_MAX_MODELS) {
            return dsa_error(err, "--models has more than %d names; expected 1 "
                             "to %d names with commas between them, or all",
                             DSA_KEY_MAX_MODELS, DSA_KEY_MAX_MODELS);
        }

        comma = strchrnul(text, ',');
        key->models[key->n_models++] = dsa_str(text, (size_t) (comma - text));

        if (*comma == '\0') {
            return DSA_OK;
        }

        text = comma + 1;
    }
}


static int
dsa_key_apply_expires(dsa_key_t *key, const char *text, int64_t now,
    dsa_err_t *err)
{
    int64_t  n;

    if (strcmp(text, "never") == 0) {
        key->expires = 0;
        return DSA_OK;
    }

    if (dsa_key_date(&n, text) == DSA_OK) {

        if (n <= now) {
            return dsa_error(err, "--expires %s is not in the future; expected "
                             "a later time, or never (\"dsa key revoke\" "
                             "revokes a key)", text);
        }

        key->expires = n;
        return DSA_OK;
    }

    if (dsa_key_duration(&n, "expires", text, NULL) != DSA_OK || n == 0
        || n > DSA_KEY_MAX_TIME - now)
    {
        return dsa_error(err, "--expires \"%.64s\" is not a time; expected a "
                         "date (2027-01-31 or 2027-01-31T12:00:00Z, of UTC), a "
                         "duration (12h, 30d, 4w) or never", text);
    }

    key->expires = now + n;

    return DSA_OK;
}


/* A limit, or its value 0 when it is removed with "none". */

static int
dsa_key_limit(uint64_t *n, const char *option, const char *text, uint64_t max,
    int none, dsa_err_t *err)
{
    if (text == NULL) {
        return DSA_OK;
    }

    if (none && strcmp(text, DSA_KEY_NONE) == 0) {
        *n = 0;
        return DSA_OK;
    }

    if (dsa_key_whole(n, text, strlen(text), max) != DSA_OK || *n == 0) {
        return dsa_error(err, "--%s \"%.64s\" is invalid; expected a number "
                         "from 1 to %" PRIu64 "%s", option, text, max,
                         none ? ", or none" : "");
    }

    return DSA_OK;
}


static int
dsa_key_apply_budget(dsa_key_budget_t *budget, const char *period,
    const char *text, dsa_err_t *err)
{
    const char        *colon;
    dsa_key_budget_t   b;

    b.hard = -1;
    b.soft = -1;

    if (strcmp(text, DSA_KEY_NONE) != 0) {
        colon = strchrnul(text, ':');

        if ((colon == text && *colon == '\0')
            || (colon != text
                && dsa_money_amount(dsa_str(text, (size_t) (colon - text)),
                                    &b.hard, NULL)
                   != DSA_OK)
            || (*colon == ':'
                && dsa_money_amount(dsa_strz(colon + 1), &b.soft, NULL)
                   != DSA_OK)
            || (b.hard != -1 && b.soft > b.hard))
        {
            return dsa_error(err, "--budget-%s \"%.64s\" is invalid; expected "
                             "HARD, HARD:SOFT or :SOFT, amounts up to %d with "
                             "at most 12 decimals, SOFT at most HARD, or none",
                             period, text, DSA_MONEY_MAX);
        }
    }

    *budget = b;

    return DSA_OK;
}


int
dsa_key_duration(int64_t *seconds, const char *option, const char *text,
    dsa_err_t *err)
{
    size_t    len;
    uint64_t  n, unit;

    len = strlen(text);
    unit = 0;

    if (len > 1) {
        switch (text[len - 1]) {

        case 's':
            unit = 1;
            break;

        case 'm':
            unit = 60;
            break;

        case 'h':
            unit = 3600;
            break;

        case 'd':
            unit = 24 * 3600;
            break;

        case 'w':
            unit = 7 * 24 * 3600;
            break;
        }
    }

    if (strcmp(text, "0") == 0) {
        *seconds = 0;
        return DSA_OK;
    }

    if (unit == 0
        || dsa_key_whole(&n, text, len - 1, DSA_KEY_MAX_TIME / unit) != DSA_OK)
    {
        return dsa_error(err, "--%s \"%.64s\" is not a duration; expected a "
                         "number and s, m, h, d or w, for example 12h", option,
                         text);
    }

    *seconds = (int64_t) (n * unit);

    return DSA_OK;
}


int
dsa_key_date(int64_t *time, const char *text)
{
    char       again[32];
    size_t     len;
    struct tm  tm;

    static const char *const  formats[] = { "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ" };

    len = strlen(text);
    memset(&tm, 0, sizeof(struct tm));

    if (len != sizeof("2027-01-31") - 1
        && len != sizeof("2027-01-31T12:00:00Z") - 1)
    {
        return DSA_ERROR;
    }

    len = len != sizeof("2027-01-31") - 1;

    if (strptime(text, formats[len], &tm) == NULL || tm.tm_year < 70) {
        return DSA_ERROR;
    }

    /* timegm() changes a date that does not exist, as February 30 */

    *time = timegm(&tm);

    if (strftime(again, sizeof(again), formats[len], &tm) == 0
        || strcmp(again, text) != 0)
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}


/* Digits whose value is at most max. */

static int
dsa_key_whole(uint64_t *n, const char *text, size_t len, uint64_t max)
{
    size_t    i;
    uint64_t  v;

    v = 0;

    for (i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || v > max / 10) {
            return DSA_ERROR;
        }

        v = v * 10 + (uint64_t) (text[i] - '0');
    }

    if (len == 0 || v > max) {
        return DSA_ERROR;
    }

    *n = v;

    return DSA_OK;
}
