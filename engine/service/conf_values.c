
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "engine/backend.h"
#include "engine/service/conf_parts.h"


#define DSA_CONF_MAX_PATH   (sizeof(((struct sockaddr_un *) 0)->sun_path) - 1)


static int dsa_conf_gpu_list(dsa_conf_reader_t *r);
static int dsa_conf_uint32(dsa_conf_reader_t *r, const char *name,
    const char *text, uint32_t *out, uint64_t min, uint64_t max);


int
dsa_conf_string(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    char    **p;
    size_t    len;

    p = (char **) (void *) ((char *) r->conf + offset);
    len = strlen(r->arg[1]);

    if (len == 0 || (max != 0 && (len < min || len > max))) {
        return dsa_conf_fail(r, "\"%s\" has %zu bytes; expected 1 to %zu",
                             r->arg[0], len,
                             max != 0 ? (size_t) max
                                      : (size_t) DSA_CONF_VALUE - 1);
    }

    *p = strdup(r->arg[1]);

    return *p != NULL ? DSA_OK : dsa_conf_fail(r, "out of memory");
}


int
dsa_conf_listen(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    const char  *path, *percent;

    path = r->arg[1];

    if (strncmp(path, "unix:", 5) != 0) {
        return dsa_conf_follow(r);
    }

    if (path[5] == '\0') {
        return dsa_conf_fail(r, "\"listen\" is \"%s\"; expected unix:PATH",
                             path);
    }

    path += 5;
    percent = strchr(path, '%');

    if (percent != NULL
        && (percent[1] != 'n' || strchr(percent + 1, '%') != NULL))
    {
        return dsa_conf_fail(r, "\"listen\" may contain %%n once, for the "
                             "number of the replica, and no other %%");
    }

    /* %n is replaced by at most three digits */

    if (strlen(path) + (percent != NULL) > DSA_CONF_MAX_PATH) {
        return dsa_conf_fail(r, "the path of \"listen\" is longer than %zu "
                             "bytes; expected a shorter one",
                             DSA_CONF_MAX_PATH);
    }

    r->conf->listen = strdup(path);

    return r->conf->listen != NULL ? DSA_OK
                                   : dsa_conf_fail(r, "out of memory");
}


int
dsa_conf_backend(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    char    *end;
    double   rate;

    if (dsa_backend_named(&r->conf->backend, r->arg[1]) != DSA_OK) {
        return dsa_conf_fail(r, "\"backend\" is \"%s\"; expected cpu, cuda "
                             "or null", r->arg[1]);
    }

    if (r->n == 2) {
        return DSA_OK;
    }

    if (r->conf->backend != DSA_BACKEND_NULL
        || strncmp(r->arg[2], "rate=", 5) != 0)
    {
        return dsa_conf_fail(r, "\"%s\" is not a parameter of \"backend "
                             "%s\"%s", r->arg[2], r->arg[1],
                             r->conf->backend == DSA_BACKEND_NULL
                             ? "; expected rate=TOKENS_PER_S"
                             : "; expected none");
    }

    errno = 0;
    rate = strtod(r->arg[2] + 5, &end);

    if (strspn(r->arg[2] + 5, "0123456789.") != strlen(r->arg[2] + 5)
        || end == r->arg[2] + 5 || *end != '\0' || errno != 0
        || !(rate == 0 || (rate >= 1 && rate <= 1e6)))
    {
        return dsa_conf_fail(r, "\"rate\" is \"%s\"; expected 1 to 1000000 "
                             "tokens per second, or 0 for no limit",
                             r->arg[2] + 5);
    }

    r->conf->rate = rate;

    return DSA_OK;
}


int
dsa_conf_precision(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    if (strcmp(r->arg[1], "served") == 0) {
        r->conf->precision = DSA_SERVED;

    } else if (strcmp(r->arg[1], "exact") == 0) {
        r->conf->precision = DSA_EXACT;

    } else {
        return dsa_conf_fail(r, "\"precision\" is \"%s\"; expected served or "
                             "exact", r->arg[1]);
    }

    return DSA_OK;
}


int
dsa_conf_kv(dsa_conf_reader_t *r, size_t offset, uint64_t min, uint64_t max)
{
    if (dsa_kv_named(&r->conf->kv, r->arg[1]) != DSA_OK) {
        return dsa_conf_fail(r, "\"kv\" is \"%s\"; expected fp8 or bf16",
                             r->arg[1]);
    }

    return DSA_OK;
}


int
dsa_conf_weights(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    if (strcmp(r->arg[1], "random") == 0) {
        r->conf->random = 1;

    } else if (strcmp(r->arg[1], "fp8") == 0) {
        r->conf->quantize = 1;

    } else if (strcmp(r->arg[1], "files") != 0) {
        return dsa_conf_fail(r, "\"weights\" is \"%s\"; expected files, fp8 "
                             "or random", r->arg[1]);
    }

    return DSA_OK;
}


/* Reads a count from min to max, or a list of numbers separated by commas. */

int
dsa_conf_gpus(dsa_conf_reader_t *r, size_t offset, uint64_t min, uint64_t max)
{
    uint64_t  count;

    if (strchr(r->arg[1], ',') != NULL) {
        return dsa_conf_gpu_list(r);
    }

    if (dsa_conf_unsigned(r->arg[1], "", NULL, &count) != DSA_OK
        || count < min || count > max)
    {
        return dsa_conf_fail(r, "\"gpus\" is \"%s\"; expected the number of "
                             "GPUs of a replica, %llu to %llu, or a list of "
                             "GPUs, such as 0,2,4,6", r->arg[1],
                             (unsigned long long) min,
                             (unsigned long long) max);
    }

    r->conf->gpus = (uint32_t) count;

    return DSA_OK;
}


static int
dsa_conf_gpu_list(dsa_conf_reader_t *r)
{
    char        *text, *comma;
    uint32_t     i;
    uint64_t     number;
    dsa_conf_t  *conf;

    conf = r->conf;

    for (text = r->arg[1]; text != NULL; text = comma) {
        comma = strchr(text, ',');

        if (comma != NULL) {
            *comma++ = '\0';
        }

        if (dsa_conf_unsigned(text, "", NULL, &number) != DSA_OK
            || number >= DSA_CONF_GPUS)
        {
            return dsa_conf_fail(r, "\"%s\" in the list of \"gpus\" is not "
                                 "the number of a GPU; expected 0 to %d",
                                 text, DSA_CONF_GPUS - 1);
        }

        for (i = 0; i < conf->listed; i++) {
            if (conf->gpu[i] == number) {
                return dsa_conf_fail(r, "GPU %u is in the list of \"gpus\" "
                                     "twice; expected different numbers",
                                     conf->gpu[i]);
            }
        }

        /* all numbers are different, so they fit gpu[] */

        conf->gpu[conf->listed++] = (uint32_t) number;
    }

    return DSA_OK;
}


int
dsa_conf_attention(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    if (strcmp(r->arg[1], "data") == 0) {
        r->conf->attention = DSA_ATTENTION_DATA;

    } else if (strcmp(r->arg[1], "tensor") == 0) {
        r->conf->attention = DSA_ATTENTION_TENSOR;

    } else {
        return dsa_conf_fail(r, "\"attention\" is \"%s\"; expected data or "
                             "tensor", r->arg[1]);
    }

    return DSA_OK;
}


int
dsa_conf_speculate(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    r->conf->adapt_drafts = strcmp(r->arg[1], "auto") == 0;

    if (r->conf->adapt_drafts || strcmp(r->arg[1], "off") == 0) {
        r->conf->drafts = 0;
        return DSA_OK;
    }

    if (r->arg[1][0] < '0' || r->arg[1][0] > '9') {
        return dsa_conf_fail(r, "\"speculate\" is \"%s\"; expected auto, off "
                             "or a number of drafts, %llu to %llu", r->arg[1],
                             (unsigned long long) min,
                             (unsigned long long) max);
    }

    return dsa_conf_number(r, offset, min, max);
}


int
dsa_conf_log_level(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    uint32_t  i;

    static const char  *names[] = { "error", "warn", "notice", "info",
                                    "debug" };

    _Static_assert(sizeof(names) / sizeof(names[0]) == DSA_LOG_DEBUG + 1,
                   "each log level has a name");

    for (i = 0; i <= DSA_LOG_DEBUG; i++) {
        if (strcmp(r->arg[1], names[i]) == 0) {
            r->conf->log_level = (dsa_log_level_e) i;
            return DSA_OK;
        }
    }

    return dsa_conf_fail(r, "\"log_level\" is \"%s\"; expected error, warn, "
                         "notice, info or debug", r->arg[1]);
}


int
dsa_conf_number(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    uint32_t  *p;

    p = (uint32_t *) (void *) ((char *) r->conf + offset);

    return dsa_conf_uint32(r, r->arg[0], r->arg[1], p, min, max);
}


/* max_waiting N [per_tenant=N] */

int
dsa_conf_waiting(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    int          rc;
    dsa_conf_t  *conf;

    static const char  parameter[] = "per_tenant=";

    conf = r->conf;

    rc = dsa_conf_uint32(r, r->arg[0], r->arg[1], &conf->max_waiting, min,
                         max);

    if (rc != DSA_OK || r->n == 2) {
        return rc;
    }

    if (strncmp(r->arg[2], parameter, sizeof(parameter) - 1) != 0) {
        return dsa_conf_fail(r, "\"%s\" is not a parameter of "
                             "\"max_waiting\"; expected per_tenant=N",
                             r->arg[2]);
    }

    return dsa_conf_uint32(r, "per_tenant\" of \"max_waiting",
                           r->arg[2] + sizeof(parameter) - 1,
                           &conf->max_waiting_per_tenant, min,
                           conf->max_waiting);
}


/* Sets *out from a text; name is that of the value in the error. */

static int
dsa_conf_uint32(dsa_conf_reader_t *r, const char *name, const char *text,
    uint32_t *out, uint64_t min, uint64_t max)
{
    uint64_t  value;

    if (dsa_conf_unsigned(text, "", NULL, &value) != DSA_OK
        || value < min || value > max)
    {
        return dsa_conf_fail(r, "\"%s\" is \"%s\"; expected a number from "
                             "%llu to %llu", name, text,
                             (unsigned long long) min,
                             (unsigned long long) max);
    }

    *out = (uint32_t) value;

    return DSA_OK;
}


int
dsa_conf_size(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    uint64_t  *p, value;

    p = (uint64_t *) (void *) ((char *) r->conf + offset);

    if (dsa_conf_bytes(r->arg[1], &value) != DSA_OK
        || value < min || value > max)
    {
        return dsa_conf_fail(r, "\"%s\" is \"%s\"; expected a size from "
                             "%llu to %llu bytes (units k, m, g)", r->arg[0],
                             r->arg[1], (unsigned long long) min,
                             (unsigned long long) max);
    }

    *p = value;

    return DSA_OK;
}


int
dsa_conf_time(dsa_conf_reader_t *r, size_t offset, uint64_t min, uint64_t max)
{
    uint64_t  *p, unit, value;

    p = (uint64_t *) (void *) ((char *) r->conf + offset);
    unit = max % 86400000 == 0 ? 86400000 : 60000;

    if (dsa_conf_milliseconds(r->arg[1], &value) != DSA_OK
        || value < min || value > max)
    {
        return dsa_conf_fail(r, "\"%s\" is \"%s\"; expected a time from "
                             "%llums to %llu%s (units ms, s, m, h, d)",
                             r->arg[0], r->arg[1], (unsigned long long) min,
                             (unsigned long long) max / unit,
                             unit == 60000 ? "m" : "d");
    }

    *p = value;

    return DSA_OK;
}


int
dsa_conf_group(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    uint64_t       value;
    struct group  *group;

    if (dsa_conf_unsigned(r->arg[1], "", NULL, &value) == DSA_OK
        && value < (gid_t) -1)
    {
        r->conf->socket_group = (gid_t) value;
        return DSA_OK;
    }

    group = getgrnam(r->arg[1]);

    if (group == NULL) {
        return dsa_conf_fail(r, "\"socket_group\" is \"%s\", which is not a "
                             "group of this system; expected a name or a "
                             "number",
                             r->arg[1]);
    }

    r->conf->socket_group = group->gr_gid;

    return DSA_OK;
}


int
dsa_conf_bytes(const char *text, uint64_t *out)
{
    static const uint64_t  factors[] = { 1 << 10, 1 << 20, 1 << 30 };

    return dsa_conf_unsigned(text, "kmg", factors, out);
}


int
dsa_conf_milliseconds(const char *text, uint64_t *out)
{
    char    digits[32];
    size_t  len;

    static const uint64_t  factors[] = { 1000, 60000, 3600000, 86400000 };

    len = strlen(text);

    if (len == 0 || len + 2 > sizeof(digits)) {
        return DSA_ERROR;
    }

    if (len > 2 && strcmp(text + len - 2, "ms") == 0) {
        memcpy(digits, text, len - 2);
        digits[len - 2] = '\0';

        return dsa_conf_unsigned(digits, "", NULL, out);
    }

    if (text[len - 1] >= '0' && text[len - 1] <= '9') {
        memcpy(digits, text, len);
        digits[len] = 's';
        digits[len + 1] = '\0';

        return dsa_conf_unsigned(digits, "smhd", factors, out);
    }

    return dsa_conf_unsigned(text, "smhd", factors, out);
}


int
dsa_conf_unsigned(const char *text, const char *units,
    const uint64_t *factors, uint64_t *out)
{
    char         c;
    uint64_t     value;
    const char  *unit;

    if (*text < '0' || *text > '9') {
        return DSA_ERROR;
    }

    for (value = 0; *text >= '0' && *text <= '9'; text++) {
        if (value > (UINT64_MAX >> 1) / 10) {
            return DSA_ERROR;
        }

        value = value * 10 + (uint64_t) (*text - '0');
    }

    if (*text != '\0') {
        c = (char) (*text | 0x20);
        unit = strchr(units, c);

        if (unit == NULL || text[1] != '\0'
            || value > UINT64_MAX / factors[unit - units])
        {
            return DSA_ERROR;
        }

        value *= factors[unit - units];
    }

    *out = value;

    return DSA_OK;
}
