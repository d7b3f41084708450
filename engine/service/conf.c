
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "engine/service/conf.h"
#include "base/file.h"
#include "engine/link.h"


#define DSA_CONF_ARGS       4
#define DSA_CONF_VALUE      1024
#define DSA_CONF_RING       65536       /* smallest ring */
#define DSA_CONF_SLOTS      16384       /* power of two */

#define DSA_CONF_MAX_PATH   (sizeof(((struct sockaddr_un *) 0)->sun_path) - 1)


typedef struct {
    const char     *file;
    const char     *pos;
    const char     *end;
    unsigned        line;
    unsigned        start;              /* line of the directive */
    unsigned        n;
    char            arg[DSA_CONF_ARGS][DSA_CONF_VALUE];
    unsigned       *seen;               /* [directives] line, 0: not yet */
    dsa_conf_t     *conf;
    dsa_err_t      *err;
} dsa_conf_reader_t;


typedef int (*dsa_conf_set_pt)(dsa_conf_reader_t *r, size_t offset,
    uint64_t min, uint64_t max);


typedef struct {
    const char         *name;
    dsa_conf_set_pt     set;
    unsigned            min_args;
    unsigned            max_args;
    size_t              offset;
    uint64_t            min;
    uint64_t            max;
} dsa_directive_t;


static int dsa_conf_directive(dsa_conf_reader_t *r);
static int dsa_conf_word(dsa_conf_reader_t *r, char *out, int *ended);
static int dsa_conf_string(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
static int dsa_conf_listen(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
static int dsa_conf_backend(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
static int dsa_conf_precision(dsa_conf_reader_t *r, size_t offset,
    uint64_t min, uint64_t max);
static int dsa_conf_weights(dsa_conf_reader_t *r, size_t offset,
    uint64_t min, uint64_t max);
static int dsa_conf_number(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
static int dsa_conf_size(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
static int dsa_conf_ring(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
static int dsa_conf_time(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
static int dsa_conf_group(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
static int dsa_conf_absent(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
static int dsa_conf_unsigned(const char *text, const char *units,
    const uint64_t *factors, uint64_t *out);
static int dsa_conf_finish(dsa_conf_reader_t *r);
static int dsa_conf_slots(dsa_conf_reader_t *r);
static int dsa_conf_fail(dsa_conf_reader_t *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


#define DSA_CONF_OFFSET(field)  offsetof(dsa_conf_t, field)


static const dsa_directive_t  dsa_directives[] = {

    { "model", dsa_conf_string, 1, 1, DSA_CONF_OFFSET(model), 0, 0 },

    { "name", dsa_conf_string, 1, 1, DSA_CONF_OFFSET(name), 1,
      sizeof(((dsa_link_hello_t *) 0)->model) - 1 },

    { "listen", dsa_conf_listen, 1, 1, DSA_CONF_OFFSET(listen), 0, 0 },

    { "backend", dsa_conf_backend, 1, 2, DSA_CONF_OFFSET(backend), 0, 0 },

    { "precision", dsa_conf_precision, 1, 1, DSA_CONF_OFFSET(precision),
      0, 0 },

    { "weights", dsa_conf_weights, 1, 1, DSA_CONF_OFFSET(random), 0, 0 },

    { "replicas", dsa_conf_number, 1, 1, DSA_CONF_OFFSET(replicas),
      1, DSA_CONF_REPLICAS },

    { "kv_memory", dsa_conf_size, 1, 1, DSA_CONF_OFFSET(kv_memory),
      1, 1ULL << 48 },

    { "max_running", dsa_conf_number, 1, 1, DSA_CONF_OFFSET(max_running),
      1, 1U << 20 },

    { "token_budget", dsa_conf_number, 1, 1, DSA_CONF_OFFSET(token_budget),
      1, 1U << 20 },

    { "max_waiting", dsa_conf_number, 1, 1, DSA_CONF_OFFSET(max_waiting),
      0, 1U << 20 },

    { "max_waiting_per_tenant", dsa_conf_number, 1, 1,
      DSA_CONF_OFFSET(max_waiting_per_tenant), 0, 1U << 20 },

    { "context_length", dsa_conf_number, 1, 1,
      DSA_CONF_OFFSET(context_length), 2, 1U << 30 },

    { "drain_timeout", dsa_conf_time, 1, 1, DSA_CONF_OFFSET(drain_timeout),
      0, 24 * 3600 * 1000ULL },

    { "slots", dsa_conf_number, 1, 1, DSA_CONF_OFFSET(slots),
      1, DSA_LINK_MAX_SLOTS },

    { "submit_ring", dsa_conf_ring, 1, 1, DSA_CONF_OFFSET(submit_ring),
      DSA_CONF_RING, 1ULL << 30 },

    { "event_ring", dsa_conf_ring, 1, 1, DSA_CONF_OFFSET(event_ring),
      DSA_CONF_RING, 1ULL << 30 },

    { "socket_group", dsa_conf_group, 1, 1, DSA_CONF_OFFSET(socket_group),
      0, 0 },

    { "redis", dsa_conf_absent, 0, DSA_CONF_ARGS - 1, 0, 0, 0 },
    { "host_memory", dsa_conf_absent, 0, DSA_CONF_ARGS - 1, 0, 0, 0 },
    { "parallel", dsa_conf_absent, 0, DSA_CONF_ARGS - 1, 0, 0, 0 }
};


#define DSA_N_DIRECTIVES  (sizeof(dsa_directives) / sizeof(dsa_directives[0]))


int
dsa_conf_read(dsa_conf_t *conf, const char *path, dsa_err_t *err)
{
    int        rc;
    dsa_buf_t  text;

    memset(conf, 0, sizeof(dsa_conf_t));
    memset(&text, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(path, DSA_CONF_SIZE, &text, err);

    if (rc == DSA_OK) {
        rc = dsa_conf_parse(conf, path, text.data, text.len, err);
    }

    dsa_buf_free(&text);

    return rc;
}


int
dsa_conf_parse(dsa_conf_t *conf, const char *path, const char *text,
    size_t len, dsa_err_t *err)
{
    int                 rc;
    unsigned            seen[DSA_N_DIRECTIVES];
    dsa_conf_reader_t  *r;

    memset(conf, 0, sizeof(dsa_conf_t));
    memset(seen, 0, sizeof(seen));

    r = calloc(1, sizeof(dsa_conf_reader_t));
    if (r == NULL) {
        return dsa_error(err, "%s: out of memory", path);
    }

    conf->rate = 50;
    conf->precision = DSA_SERVED;
    conf->replicas = 1;
    conf->drain_timeout = 30 * 1000;
    conf->submit_ring = 16 << 20;
    conf->event_ring = 4 << 20;
    conf->max_waiting = UINT32_MAX;
    conf->max_waiting_per_tenant = UINT32_MAX;
    conf->socket_group = (gid_t) -1;

    r->file = path;
    r->pos = text;
    r->end = text == NULL ? NULL : text + len;
    r->line = 1;
    r->seen = seen;
    r->conf = conf;
    r->err = err;

    do {
        rc = dsa_conf_directive(r);
    } while (rc == DSA_AGAIN);

    if (rc == DSA_OK) {
        rc = dsa_conf_finish(r);
    }

    free(r);

    return rc;
}


void
dsa_conf_free(dsa_conf_t *conf)
{
    free(conf->model);
    free(conf->name);
    free(conf->listen);

    memset(conf, 0, sizeof(dsa_conf_t));
}


int
dsa_conf_socket(const dsa_conf_t *conf, uint32_t replica, char *out,
    size_t size)
{
    int          n;
    const char  *mark;

    mark = strstr(conf->listen, "%n");

    if (mark == NULL) {
        n = snprintf(out, size, "%s", conf->listen);

    } else {
        n = snprintf(out, size, "%.*s%u%s", (int) (mark - conf->listen),
                     conf->listen, replica, mark + 2);
    }

    return n > 0 && (size_t) n < size ? DSA_OK : DSA_ERROR;
}


/* DSA_AGAIN: one was read; DSA_OK: the text is over. */

static int
dsa_conf_directive(dsa_conf_reader_t *r)
{
    int                     rc, ended;
    size_t                  i;
    const dsa_directive_t  *d;

    r->n = 0;
    ended = 0;

    while (!ended) {
        if (r->n == DSA_CONF_ARGS) {
            return dsa_conf_fail(r, "too many values of \"%s\", or no \";\" "
                                 "behind it", r->arg[0]);
        }

        rc = dsa_conf_word(r, r->arg[r->n], &ended);

        if (rc == DSA_ERROR) {
            return rc;
        }

        if (rc == DSA_OK) {
            if (r->n == 0) {
                r->start = r->line;
            }

            r->n++;

        } else if (!ended) {

            /* the end of the text */

            if (r->n == 0) {
                return DSA_OK;
            }

            return dsa_conf_fail(r, "no \";\" behind \"%s\"", r->arg[0]);
        }
    }

    if (r->n == 0) {
        r->start = r->line;
        return dsa_conf_fail(r, "unexpected \";\"");
    }

    for (i = 0; i < DSA_N_DIRECTIVES; i++) {
        d = &dsa_directives[i];

        if (strcmp(r->arg[0], d->name) != 0) {
            continue;
        }

        if (r->seen[i] != 0) {
            return dsa_conf_fail(r, "\"%s\" is a duplicate, the first is in "
                                 "line %u", d->name, r->seen[i]);
        }

        r->seen[i] = r->start;

        if (r->n - 1 < d->min_args || r->n - 1 > d->max_args) {
            return dsa_conf_fail(r, "\"%s\" takes %u value%s, not %u",
                                 d->name, d->max_args,
                                 d->max_args == 1 ? "" : "s", r->n - 1);
        }

        rc = d->set(r, d->offset, d->min, d->max);

        return rc == DSA_OK ? DSA_AGAIN : rc;
    }

    return dsa_conf_fail(r, "unknown directive \"%s\"", r->arg[0]);
}


/*
 * The next word.  DSA_OK; DSA_AGAIN when there was none before ";" (ended is
 * 1 then) or the end of the text (0).
 */

static int
dsa_conf_word(dsa_conf_reader_t *r, char *out, int *ended)
{
    char    c, quote;
    size_t  n;

    for ( /* void */ ; r->pos < r->end; r->pos++) {
        c = *r->pos;

        if (c == '\n') {
            r->line++;

        } else if (c == '#') {
            while (r->pos + 1 < r->end && r->pos[1] != '\n') {
                r->pos++;
            }

        } else if (c != ' ' && c != '\t' && c != '\r') {
            break;
        }
    }

    if (r->n == 0) {
        r->start = r->line;
    }

    if (r->pos >= r->end) {
        return DSA_AGAIN;
    }

    if (*r->pos == ';') {
        r->pos++;
        *ended = 1;
        return DSA_AGAIN;
    }

    quote = 0;

    if (*r->pos == '"' || *r->pos == '\'') {
        quote = *r->pos++;
    }

    for (n = 0; r->pos < r->end; r->pos++) {
        c = *r->pos;

        if (quote != 0) {
            if (c == quote) {
                break;
            }

        } else if (c == ';' || c == ' ' || c == '\t' || c == '\r'
                   || c == '\n')
        {
            break;

        } else if (c == '{' || c == '}' || c == '"' || c == '\'') {
            return dsa_conf_fail(r, "unexpected \"%c\"", c);
        }

        if ((unsigned char) c < 0x20 || c == 0x7f) {
            return dsa_conf_fail(r, "a control character in a value");
        }

        if (n == DSA_CONF_VALUE - 1) {
            return dsa_conf_fail(r, "a value is longer than %d bytes",
                                 DSA_CONF_VALUE - 1);
        }

        out[n++] = c;
    }

    out[n] = '\0';

    if (quote != 0) {
        if (r->pos >= r->end) {
            return dsa_conf_fail(r, "a quote that is not closed");
        }

        r->pos++;
    }

    return DSA_OK;
}


static int
dsa_conf_string(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    char    **p;
    size_t    len;

    p = (char **) (void *) ((char *) r->conf + offset);
    len = strlen(r->arg[1]);

    if (len == 0 || (max != 0 && (len < min || len > max))) {
        return dsa_conf_fail(r, "\"%s\" takes 1 to %zu bytes", r->arg[0],
                             max != 0 ? (size_t) max
                                      : (size_t) DSA_CONF_VALUE - 1);
    }

    *p = strdup(r->arg[1]);

    return *p != NULL ? DSA_OK : dsa_conf_fail(r, "out of memory");
}


static int
dsa_conf_listen(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    const char  *path, *percent;

    path = r->arg[1];

    if (strncmp(path, "unix:", 5) != 0 || path[5] == '\0') {
        return dsa_conf_fail(r, "\"listen\" takes unix:PATH, not \"%s\"",
                             path);
    }

    path += 5;
    percent = strchr(path, '%');

    if (percent != NULL
        && (percent[1] != 'n' || strchr(percent + 1, '%') != NULL))
    {
        return dsa_conf_fail(r, "\"listen\" takes one %%n at most, the "
                             "replica's number, and no other %%");
    }

    /* %n becomes three digits at most */

    if (strlen(path) + (percent != NULL) > DSA_CONF_MAX_PATH) {
        return dsa_conf_fail(r, "the path of \"listen\" is longer than %zu "
                             "bytes", DSA_CONF_MAX_PATH);
    }

    r->conf->listen = strdup(path);

    return r->conf->listen != NULL ? DSA_OK
                                   : dsa_conf_fail(r, "out of memory");
}


static int
dsa_conf_backend(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    char    *end;
    double   rate;

    if (dsa_backend_named(&r->conf->backend, r->arg[1]) != DSA_OK) {
        return dsa_conf_fail(r, "\"backend\" takes cpu, cuda or null, not "
                             "\"%s\"", r->arg[1]);
    }

    if (r->n == 2) {
        return DSA_OK;
    }

    if (r->conf->backend != DSA_BACKEND_NULL
        || strncmp(r->arg[2], "rate=", 5) != 0)
    {
        return dsa_conf_fail(r, "\"backend %s\" does not take \"%s\"%s",
                             r->arg[1], r->arg[2],
                             r->conf->backend == DSA_BACKEND_NULL
                             ? ", only rate=TOKENS_PER_S" : "");
    }

    errno = 0;
    rate = strtod(r->arg[2] + 5, &end);

    if (strspn(r->arg[2] + 5, "0123456789.") != strlen(r->arg[2] + 5)
        || end == r->arg[2] + 5 || *end != '\0' || errno != 0
        || !(rate == 0 || (rate >= 1 && rate <= 1e6)))
    {
        return dsa_conf_fail(r, "\"rate\" takes 1 to 1000000 tokens a second "
                             "or 0 for as fast as it can, not \"%s\"",
                             r->arg[2] + 5);
    }

    r->conf->rate = rate;

    return DSA_OK;
}


static int
dsa_conf_precision(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    if (strcmp(r->arg[1], "served") == 0) {
        r->conf->precision = DSA_SERVED;

    } else if (strcmp(r->arg[1], "exact") == 0) {
        r->conf->precision = DSA_EXACT;

    } else {
        return dsa_conf_fail(r, "\"precision\" takes served or exact, not "
                             "\"%s\"", r->arg[1]);
    }

    return DSA_OK;
}


static int
dsa_conf_weights(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    if (strcmp(r->arg[1], "random") == 0) {
        r->conf->random = 1;

    } else if (strcmp(r->arg[1], "files") != 0) {
        return dsa_conf_fail(r, "\"weights\" takes files or random, not "
                             "\"%s\"", r->arg[1]);
    }

    return DSA_OK;
}


static int
dsa_conf_number(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    uint32_t  *p;
    uint64_t   value;

    p = (uint32_t *) (void *) ((char *) r->conf + offset);

    if (dsa_conf_unsigned(r->arg[1], "", NULL, &value) != DSA_OK
        || value < min || value > max)
    {
        return dsa_conf_fail(r, "\"%s\" takes a number from %llu to %llu, "
                             "not \"%s\"", r->arg[0],
                             (unsigned long long) min,
                             (unsigned long long) max, r->arg[1]);
    }

    *p = (uint32_t) value;

    return DSA_OK;
}


static int
dsa_conf_size(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    uint64_t  *p, value;

    static const uint64_t  factors[] = { 1 << 10, 1 << 20, 1 << 30 };

    p = (uint64_t *) (void *) ((char *) r->conf + offset);

    if (dsa_conf_unsigned(r->arg[1], "kmg", factors, &value) != DSA_OK
        || value < min || value > max)
    {
        return dsa_conf_fail(r, "\"%s\" takes a size from %llu to %llu bytes "
                             "(units k, m, g), not \"%s\"", r->arg[0],
                             (unsigned long long) min,
                             (unsigned long long) max, r->arg[1]);
    }

    *p = value;

    return DSA_OK;
}


static int
dsa_conf_ring(dsa_conf_reader_t *r, size_t offset, uint64_t min, uint64_t max)
{
    int       rc;
    uint64_t  value;

    rc = dsa_conf_size(r, offset, min, max);

    if (rc != DSA_OK) {
        return rc;
    }

    value = *(uint64_t *) (void *) ((char *) r->conf + offset);

    if ((value & (value - 1)) != 0) {
        return dsa_conf_fail(r, "\"%s\" takes a power of two, not \"%s\"",
                             r->arg[0], r->arg[1]);
    }

    return DSA_OK;
}


static int
dsa_conf_time(dsa_conf_reader_t *r, size_t offset, uint64_t min, uint64_t max)
{
    char       text[DSA_CONF_VALUE];
    size_t     len;
    uint64_t  *p, value, factor;

    p = (uint64_t *) (void *) ((char *) r->conf + offset);

    len = strlen(r->arg[1]);
    memcpy(text, r->arg[1], len + 1);
    factor = 1000;

    if (len > 2 && strcmp(text + len - 2, "ms") == 0) {
        factor = 1;
        text[len - 2] = '\0';

    } else if (len > 1 && text[len - 1] == 's') {
        text[len - 1] = '\0';

    } else if (len > 1 && text[len - 1] == 'm') {
        factor = 60 * 1000;
        text[len - 1] = '\0';
    }

    if (dsa_conf_unsigned(text, "", NULL, &value) != DSA_OK
        || value > max / factor || value * factor < min)
    {
        return dsa_conf_fail(r, "\"%s\" takes a time from %llu to %llum "
                             "(units ms, s, m), not \"%s\"", r->arg[0],
                             (unsigned long long) min,
                             (unsigned long long) max / 60000, r->arg[1]);
    }

    *p = value * factor;

    return DSA_OK;
}


static int
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
        return dsa_conf_fail(r, "\"socket_group\": there is no group \"%s\"",
                             r->arg[1]);
    }

    r->conf->socket_group = group->gr_gid;

    return DSA_OK;
}


static int
dsa_conf_absent(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    return dsa_conf_fail(r, "\"%s\": this build does not have it", r->arg[0]);
}


/* Digits and at most one of units, either case. */

static int
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


/* What one directive alone cannot tell. */

static int
dsa_conf_finish(dsa_conf_reader_t *r)
{
    int          cuda, null;
    size_t       len;
    const char  *base;
    dsa_conf_t  *conf;

    conf = r->conf;
    r->start = r->line;

    if (conf->model == NULL) {
        return dsa_conf_fail(r, "no \"model\"");
    }

    if (conf->listen == NULL) {
        return dsa_conf_fail(r, "no \"listen\"");
    }

    if (conf->replicas > 1 && strstr(conf->listen, "%n") == NULL) {
        return dsa_conf_fail(r, "\"listen\" needs a %%n, the replica's "
                             "number, with %u replicas", conf->replicas);
    }

    cuda = conf->backend == DSA_BACKEND_CUDA;

#if !(DSA_CUDA)
    if (cuda) {
        return dsa_conf_fail(r, "\"backend cuda\" is not in this program: it "
                             "was built without nvcc");
    }
#endif

    if (conf->random && !cuda) {
        return dsa_conf_fail(r, "\"weights random\" is for \"backend cuda\"");
    }

    if (conf->precision == DSA_EXACT && cuda) {
        return dsa_conf_fail(r, "\"precision exact\" is for \"backend cpu\"");
    }

    /* what costs nothing may be had in large numbers */

    null = conf->backend == DSA_BACKEND_NULL;

    if (conf->max_running == 0) {
        conf->max_running = null ? 16384 : cuda ? 128 : 64;

        if (conf->token_budget != 0
            && conf->token_budget < conf->max_running)
        {
            conf->max_running = conf->token_budget;
        }
    }

    if (conf->token_budget == 0) {
        conf->token_budget = null ? 65536 : cuda ? 8192 : 512;

        if (conf->token_budget < conf->max_running) {
            conf->token_budget = conf->max_running;
        }
    }

    if (conf->token_budget < conf->max_running) {
        return dsa_conf_fail(r, "\"token_budget\" (%u) is below "
                             "\"max_running\" (%u): a running sequence takes "
                             "a row in each step", conf->token_budget,
                             conf->max_running);
    }

    if (conf->max_waiting == UINT32_MAX) {
        conf->max_waiting = null ? 16384 : 1024;
    }

    if (conf->max_waiting_per_tenant == UINT32_MAX) {
        conf->max_waiting_per_tenant = conf->max_waiting;
    }

    if (dsa_conf_slots(r) != DSA_OK) {
        return DSA_ERROR;
    }

    if (conf->name == NULL) {
        len = strlen(conf->model);

        while (len > 1 && conf->model[len - 1] == '/') {
            len--;
        }

        base = conf->model + len;

        while (base > conf->model && base[-1] != '/') {
            base--;
        }

        len -= (size_t) (base - conf->model);

        if (len == 0 || len >= sizeof(((dsa_link_hello_t *) 0)->model)
            || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        {
            return dsa_conf_fail(r, "the directory of \"model\" makes no "
                                 "name: add \"name\"");
        }

        conf->name = strndup(base, len);

        if (conf->name == NULL) {
            return dsa_conf_fail(r, "out of memory");
        }
    }

    return DSA_OK;
}


/*
 * When all slots of a worker are taken, requests of every tenant are refused.
 * The scheduler treats tenants fairly, so its limits must be reached first.
 */

static int
dsa_conf_slots(dsa_conf_reader_t *r)
{
    uint32_t     most;
    dsa_conf_t  *conf;

    conf = r->conf;
    most = conf->max_running + conf->max_waiting;

    if (conf->slots == 0) {
        conf->slots = DSA_CONF_SLOTS;

        while (conf->slots <= most && conf->slots < DSA_LINK_MAX_SLOTS) {
            conf->slots *= 2;
        }
    }

    if (conf->slots <= most) {
        return dsa_conf_fail(r, "\"slots\" (%u, at most %u) has to be above "
                             "\"max_running\" (%u) and \"max_waiting\" (%u) "
                             "together: one worker may have all of these "
                             "requests", conf->slots, DSA_LINK_MAX_SLOTS,
                             conf->max_running, conf->max_waiting);
    }

    return DSA_OK;
}


static int
dsa_conf_fail(dsa_conf_reader_t *r, const char *fmt, ...)
{
    char     text[sizeof(dsa_err_t)];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    return dsa_error(r->err, "%s:%u: %s", r->file, r->start, text);
}
