
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/key_print.h"


#define DSA_KEY_PRINT_ARENA  (256 * 1024)       /* of one key entry */

/* room for a time, and for a number */

#define DSA_KEY_PRINT_TIME   32


/* Called for each key of a list. */

typedef void (*dsa_key_print_pt)(const dsa_key_t *key, int64_t now,
    size_t *tenant);


static int dsa_key_print_each(const dsa_key_list_t *list, int64_t now,
    dsa_key_print_pt print, size_t *tenant, dsa_err_t *err);
static void dsa_key_print_width(const dsa_key_t *key, int64_t now,
    size_t *tenant);
static void dsa_key_print_row(const dsa_key_t *key, int64_t now,
    size_t *tenant);
static void dsa_key_print_budget(const dsa_key_limits_t *limits);
static const char *dsa_key_print_state(const dsa_key_t *key, int64_t now);
static const char *dsa_key_print_time(char text[DSA_KEY_PRINT_TIME],
    int64_t time, const char *format);
static const char *dsa_key_print_limit(char text[DSA_KEY_PRINT_TIME],
    uint64_t n);
static size_t dsa_key_print_columns(dsa_str_t text);


int
dsa_key_print_table(const dsa_key_list_t *list, int64_t now, dsa_err_t *err)
{
    size_t  tenant;

    tenant = sizeof("TENANT") - 1;

    if (dsa_key_print_each(list, now, dsa_key_print_width, &tenant, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    (void) printf("%-20s  %-8s  %-10s  %8s  %8s  %6s  %6s  %-8s  %-*s  %s\n",
                  "ID", "STATE", "EXPIRES", "RPM", "TPM", "CONCUR", "WEIGHT",
                  "PRIORITY", (int) tenant, "TENANT", "NAME");

    return dsa_key_print_each(list, now, dsa_key_print_row, &tenant, err);
}


static int
dsa_key_print_each(const dsa_key_list_t *list, int64_t now,
    dsa_key_print_pt print, size_t *tenant, dsa_err_t *err)
{
    int           rc;
    size_t        i;
    dsa_key_t     key;
    dsa_arena_t  *arena;

    rc = DSA_OK;

    for (i = 0; i < list->n && rc == DSA_OK; i++) {
        arena = dsa_arena_create(DSA_KEY_PRINT_ARENA);

        if (arena == NULL) {
            return dsa_error(err, "out of memory");
        }

        rc = dsa_key_read(&key, arena, list->entries[i].text, err);

        if (rc == DSA_OK) {
            print(&key, now, tenant);
        }

        dsa_arena_destroy(arena);
    }

    return rc;
}


static void
dsa_key_print_width(const dsa_key_t *key, int64_t now, size_t *tenant)
{
    size_t  n;

    n = dsa_key_print_columns(key->tenant);
    *tenant = n > *tenant ? n : *tenant;
}


static void
dsa_key_print_row(const dsa_key_t *key, int64_t now, size_t *tenant)
{
    char                     time[DSA_KEY_PRINT_TIME];
    char                     limit[3][DSA_KEY_PRINT_TIME];
    const dsa_key_limits_t  *l;

    l = &key->limits;

    (void) printf("%.*s  %-8s  %-10s  %8s  %8s  %6s  %6" PRIu32 "  %-8s  "
                  "%.*s%*s  %.*s\n", (int) key->id.len, key->id.data,
                  dsa_key_print_state(key, now),
                  dsa_key_print_time(time, key->expires, "%Y-%m-%d"),
                  dsa_key_print_limit(limit[0], l->rpm),
                  dsa_key_print_limit(limit[1], l->tpm),
                  dsa_key_print_limit(limit[2], l->concurrency), l->weight,
                  dsa_key_priority_name(l->priority),
                  (int) key->tenant.len, key->tenant.data,
                  (int) (*tenant - dsa_key_print_columns(key->tenant)), "",
                  (int) key->name.len, key->name.data);
}


void
dsa_key_print(const dsa_key_t *key, int64_t now)
{
    char                     text[DSA_KEY_PRINT_TIME];
    uint32_t                 i;
    const dsa_key_limits_t  *l;

    static const char        format[] = "%Y-%m-%dT%H:%M:%SZ";

    l = &key->limits;

    (void) printf("id           %.*s\n"
                  "name         %.*s\n"
                  "tenant       %.*s\n"
                  "state        %s\n",
                  (int) key->id.len, key->id.data,
                  (int) key->name.len, key->name.data,
                  (int) key->tenant.len, key->tenant.data,
                  dsa_key_print_state(key, now));
    (void) printf("created      %s\n", dsa_key_print_time(text, key->created,
                                                          format));
    (void) printf("expires      %s\n", dsa_key_print_time(text, key->expires,
                                                          format));

    if (key->old_until > now) {
        (void) printf("old key      served until %s\n",
                      dsa_key_print_time(text, key->old_until, format));
    }

    (void) printf("models       %s", key->n_models == 0 ? "all" : "");

    for (i = 0; i < key->n_models; i++) {
        (void) printf("%s%.*s", i != 0 ? ", " : "",
                      (int) key->models[i].len, key->models[i].data);
    }

    (void) printf("\nrpm          %s\n", dsa_key_print_limit(text, l->rpm));
    (void) printf("tpm          %s\n", dsa_key_print_limit(text, l->tpm));
    (void) printf("concurrency  %s\n",
                  dsa_key_print_limit(text, l->concurrency));
    (void) printf("weight       %" PRIu32 "\n"
                  "priority     %s\n", l->weight,
                  dsa_key_priority_name(l->priority));

    dsa_key_print_budget(l);
}


static void
dsa_key_print_budget(const dsa_key_limits_t *limits)
{
    int                      i;
    char                     text[DSA_MONEY_LEN];
    const dsa_key_budget_t  *b;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        b = &limits->budget[i];

        if (b->hard != -1) {
            (void) printf("budget       %s: %.*s\n", dsa_key_period_name(i),
                          (int) dsa_money_print(text, b->hard, 2), text);
        }

        if (b->soft != -1) {
            (void) printf("warning at   %s: %.*s\n", dsa_key_period_name(i),
                          (int) dsa_money_print(text, b->soft, 2), text);
        }
    }
}


static const char *
dsa_key_print_state(const dsa_key_t *key, int64_t now)
{
    if (key->state == DSA_KEY_ACTIVE && key->expires != 0
        && key->expires <= now)
    {
        return "expired";
    }

    return dsa_key_state_name(key->state);
}


static const char *
dsa_key_print_time(char text[DSA_KEY_PRINT_TIME], int64_t time,
    const char *format)
{
    time_t     t;
    struct tm  tm;

    t = time;

    if (time == 0 || gmtime_r(&t, &tm) == NULL
        || strftime(text, DSA_KEY_PRINT_TIME, format, &tm) == 0)
    {
        return "never";
    }

    return text;
}


static const char *
dsa_key_print_limit(char text[DSA_KEY_PRINT_TIME], uint64_t n)
{
    if (n == 0) {
        return "none";
    }

    (void) snprintf(text, DSA_KEY_PRINT_TIME, "%" PRIu64, n);

    return text;
}


/* The characters of UTF-8, each of which counts as one column. */

static size_t
dsa_key_print_columns(dsa_str_t text)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < text.len; i++) {
        n += (text.data[i] & 0xc0) != 0x80;
    }

    return n;
}
