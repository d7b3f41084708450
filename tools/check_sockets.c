
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/check.h"


#define DSA_CHECK_REPLICAS   256
#define DSA_CHECK_GPUS       1024
#define DSA_CHECK_GROUPS     256        /* of a user */


static uint32_t dsa_check_number(const dsa_check_engine_t *e, const char *name,
    uint32_t none);
static int dsa_check_path(char path[108], const dsa_check_engine_t *e,
    uint32_t replica);
static dsa_str_t dsa_check_unix(const dsa_statement_t *s);
static const dsa_check_engine_t *dsa_check_listens(dsa_check_t *c,
    const char *path);
static void dsa_check_socket(dsa_check_t *c, const char *path);
static void dsa_check_group(dsa_check_t *c, const dsa_check_engine_t *e);
static int dsa_check_member(const char *user, gid_t gid);
static int dsa_check_pooled(dsa_check_t *c, const char *path);
static void dsa_check_gpus(dsa_check_t *c, const dsa_check_engine_t *e,
    const char *users[DSA_CHECK_GPUS]);
static uint64_t dsa_check_memory(dsa_check_t *c, const dsa_check_engine_t *e);


void
dsa_check_sockets(dsa_check_t *c)
{
    char                    path[108];
    uint32_t                i, k, n;
    const char             *word;
    const dsa_statement_t  *s;

    for (i = 0; i < c->conf.n; i++) {
        s = &c->conf.elts[i];

        if (s->parent == -1 || !dsa_str_eqz(s->words[0], "engine")
            || !dsa_str_eqz(c->conf.elts[s->parent].words[0], "dsa_pool"))
        {
            continue;
        }

        word = dsa_statement_word(s, 1, c->arena);

        if (word != NULL && strncmp(word, "unix:", 5) == 0) {
            dsa_check_socket(c, word + 5);
        }
    }

    for (i = 0; i < c->n_engines && c->conf.n != 0; i++) {
        n = dsa_check_number(&c->engine[i], "replicas", 1);

        for (k = 0; k < n && k < DSA_CHECK_REPLICAS; k++) {
            if (dsa_check_path(path, &c->engine[i], k) == DSA_OK
                && !dsa_check_pooled(c, path))
            {
                dsa_check_line(c, DSA_CHECK_WARN, path, "an engine of %s "
                               "listens here, but no dsa_pool of nginx has "
                               "it; expected \"engine unix:%s;\" in one",
                               c->engine[i].file, path);
            }
        }

        dsa_check_group(c, &c->engine[i]);
    }
}


/* The value of a directive of engine.conf that is a number. */

static uint32_t
dsa_check_number(const dsa_check_engine_t *e, const char *name, uint32_t none)
{
    char                    text[16];
    const dsa_statement_t  *s;

    s = dsa_statements_find(&e->conf, name, 0);

    if (s == NULL || s->n < 2 || s->words[1].len >= sizeof(text)) {
        return none;
    }

    memcpy(text, s->words[1].data, s->words[1].len);
    text[s->words[1].len] = '\0';

    return (uint32_t) strtoul(text, NULL, 10);
}


/* The path of a replica's socket: "listen" with %n replaced. */

static int
dsa_check_path(char path[108], const dsa_check_engine_t *e, uint32_t replica)
{
    int                     n;
    size_t                  len;
    dsa_str_t               word;
    const char             *mark;
    const dsa_statement_t  *s;

    s = dsa_statements_find(&e->conf, "listen", 0);
    word = s != NULL ? dsa_check_unix(s) : dsa_str(NULL, 0);

    if (word.len == 0) {
        return DSA_ERROR;
    }

    mark = memmem(word.data, word.len, "%n", 2);
    len = mark != NULL ? (size_t) (mark - word.data) : word.len;

    n = mark == NULL
        ? snprintf(path, 108, "%.*s", (int) len, word.data)
        : snprintf(path, 108, "%.*s%u%.*s", (int) len, word.data, replica,
                   (int) (word.len - len - 2), mark + 2);

    return n > 0 && n < 108 ? DSA_OK : DSA_ERROR;
}


/*
 * The path behind "unix:" of the first argument; empty without one.  It is not
 * copied, because sockets are compared in pairs, and there may be thousands.
 */

static dsa_str_t
dsa_check_unix(const dsa_statement_t *s)
{
    dsa_str_t  word;

    static const char  prefix[] = "unix:";

    word = s->n > 1 ? s->words[1] : dsa_str(NULL, 0);

    if (word.len <= sizeof(prefix) - 1
        || memcmp(word.data, prefix, sizeof(prefix) - 1) != 0)
    {
        return dsa_str(NULL, 0);
    }

    return dsa_str(word.data + sizeof(prefix) - 1,
                   word.len - (sizeof(prefix) - 1));
}


/* The engine that has this socket, or NULL. */

static const dsa_check_engine_t *
dsa_check_listens(dsa_check_t *c, const char *path)
{
    char      other[108];
    uint32_t  i, k, n;

    for (i = 0; i < c->n_engines; i++) {
        n = dsa_check_number(&c->engine[i], "replicas", 1);

        for (k = 0; k < n && k < DSA_CHECK_REPLICAS; k++) {
            if (dsa_check_path(other, &c->engine[i], k) == DSA_OK
                && strcmp(path, other) == 0)
            {
                return &c->engine[i];
            }
        }
    }

    return NULL;
}


/* A socket of a pool: whose it is, and whether anyone listens there now. */

static void
dsa_check_socket(dsa_check_t *c, const char *path)
{
    int                 fd, rc;
    struct sockaddr_un  sun;

    if (c->n_engines != 0 && dsa_check_listens(c, path) == NULL) {
        dsa_check_line(c, DSA_CHECK_FAIL, path, "nginx connects here, but no "
                       "engine's configuration has \"listen unix:%s;\"", path);
        return;
    }

    memset(&sun, 0, sizeof(sun));
    sun.sun_family = AF_UNIX;

    if (strlen(path) >= sizeof(sun.sun_path)) {
        return;                         /* nginx has refused it */
    }

    strcpy(sun.sun_path, path);

    fd = socket(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0);
    rc = fd != -1 ? connect(fd, (struct sockaddr *) &sun, sizeof(sun)) : -1;

    if (rc == 0) {
        dsa_check_line(c, DSA_CHECK_OK, path, "an engine listens");

    } else {
        dsa_check_line(c, DSA_CHECK_WARN, path, "no engine listens: %s; it is "
                       "not started, or has not loaded its model yet "
                       "(systemctl status 'dsa-engine@*')", strerror(errno));
    }

    if (fd != -1) {
        (void) close(fd);
    }
}


static int
dsa_check_pooled(dsa_check_t *c, const char *path)
{
    uint32_t                i;
    const dsa_statement_t  *s;

    for (i = 0; i < c->conf.n; i++) {
        s = &c->conf.elts[i];

        if (dsa_str_eqz(s->words[0], "engine")
            && dsa_str_eqz(dsa_check_unix(s), path))
        {
            return 1;
        }
    }

    return 0;
}


/* The sockets have mode 0660: nginx's workers have to be in their group. */

static void
dsa_check_group(dsa_check_t *c, const dsa_check_engine_t *e)
{
    const char             *user, *name;
    struct group           *group;
    const dsa_statement_t  *s;

    s = dsa_statements_find(&c->conf, "user", 0);
    user = s != NULL ? dsa_statement_word(s, 1, c->arena) : "nobody";

    if (e->conf.n == 0 || user == NULL || strcmp(user, "root") == 0
        || getuid() != 0)
    {
        return;                 /* or all of it runs as the present user */
    }

    s = dsa_statements_find(&e->conf, "socket_group", 0);
    name = s != NULL ? dsa_statement_word(s, 1, c->arena) : NULL;
    group = name != NULL ? getgrnam(name) : NULL;

    if (group == NULL) {
        dsa_check_line(c, DSA_CHECK_WARN, e->file, "it has no socket_group "
                       "that exists, so whether nginx's workers, which are "
                       "\"%s\", may connect depends on the engine's user; "
                       "expected \"socket_group GROUP;\"", user);

    } else if (dsa_check_member(user, group->gr_gid)) {
        dsa_check_line(c, DSA_CHECK_OK, e->file, "nginx's workers (%s) are in "
                       "the group %s", user, name);

    } else {
        dsa_check_line(c, DSA_CHECK_FAIL, e->file, "nginx's workers are "
                       "\"%s\", which is not in socket_group \"%s\", so they "
                       "cannot connect; expected a group of theirs", user,
                       name);
    }
}


static int
dsa_check_member(const char *user, gid_t gid)
{
    int             i, n;
    gid_t           groups[DSA_CHECK_GROUPS];
    struct passwd  *pw;

    pw = getpwnam(user);
    n = DSA_CHECK_GROUPS;

    if (pw == NULL || getgrouplist(user, pw->pw_gid, groups, &n) == -1) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        if (groups[i] == gid) {
            return 1;
        }
    }

    return 0;
}


void
dsa_check_shared(dsa_check_t *c)
{
    char         path[108];
    uint64_t     sum, have;
    uint32_t     i, k, n;
    const char  *users[DSA_CHECK_GPUS];

    memset(users, 0, sizeof(users));
    sum = 0;

    for (i = 0; i < c->n_engines; i++) {
        n = dsa_check_number(&c->engine[i], "replicas", 1);

        for (k = 0; k < n && k < DSA_CHECK_REPLICAS; k++) {
            if (dsa_check_path(path, &c->engine[i], k) == DSA_OK
                && dsa_check_listens(c, path) != &c->engine[i])
            {
                dsa_check_line(c, DSA_CHECK_FAIL, path, "%s and %s both "
                               "listen here; expected different sockets",
                               dsa_check_listens(c, path)->file,
                               c->engine[i].file);
            }
        }

        dsa_check_gpus(c, &c->engine[i], users);
        sum += dsa_check_memory(c, &c->engine[i]);
    }

    have = (uint64_t) sysconf(_SC_PHYS_PAGES)
           * (uint64_t) sysconf(_SC_PAGESIZE);

    if (sum > have) {
        dsa_check_line(c, DSA_CHECK_FAIL, "memory", "the pages of all engines "
                       "take %llu MB, but this machine has %llu MB; expected "
                       "less in host_memory and kv_memory",
                       (unsigned long long) (sum >> 20),
                       (unsigned long long) (have >> 20));

    } else if (sum != 0) {
        dsa_check_line(c, DSA_CHECK_OK, "memory", "the pages of all engines "
                       "take %llu MB of %llu MB",
                       (unsigned long long) (sum >> 20),
                       (unsigned long long) (have >> 20));
    }
}


static void
dsa_check_gpus(dsa_check_t *c, const dsa_check_engine_t *e,
    const char *users[DSA_CHECK_GPUS])
{
    char                   *p;
    uint32_t                gpu, n;
    const char             *list;
    const dsa_statement_t  *s;

    s = dsa_statements_find(&e->conf, "backend", 0);

    if (s == NULL || s->n < 2 || !dsa_str_eqz(s->words[1], "cuda")) {
        return;
    }

    s = dsa_statements_find(&e->conf, "gpus", 0);
    list = s != NULL ? dsa_statement_word(s, 1, c->arena) : NULL;

    if (list == NULL || strchr(list, ',') == NULL) {
        n = dsa_check_number(e, "gpus", 1) * dsa_check_number(e, "replicas", 1);
        list = NULL;

    } else {
        n = DSA_CHECK_GPUS;
    }

    for (gpu = 0; n != 0 && gpu < DSA_CHECK_GPUS; n--, gpu++) {

        if (list != NULL) {
            gpu = (uint32_t) strtoul(list, &p, 10);

            if (gpu >= DSA_CHECK_GPUS) {
                return;
            }
        }

        if (users[gpu] != NULL) {
            dsa_check_line(c, DSA_CHECK_FAIL, e->file, "GPU %u is also one of "
                           "%s; expected each GPU in one configuration", gpu,
                           users[gpu]);
        }

        users[gpu] = e->file;

        if (list != NULL) {
            if (*p != ',') {
                return;
            }

            list = p + 1;
        }
    }
}


/* The bytes of host memory for pages, of all replicas. */

static uint64_t
dsa_check_memory(dsa_check_t *c, const dsa_check_engine_t *e)
{
    uint32_t                i, n;
    uint64_t                size, sum;
    const char             *word;
    const dsa_statement_t  *s;

    static const char *const  names[] = { "host_memory", "kv_memory" };

    sum = 0;

    /* kv_memory is that of a GPU, unless the CPU computes */

    s = dsa_statements_find(&e->conf, "backend", 0);
    n = s != NULL && s->n > 1 && dsa_str_eqz(s->words[1], "cpu") ? 2 : 1;

    for (i = 0; i < n; i++) {
        s = dsa_statements_find(&e->conf, names[i], 0);
        word = s != NULL ? dsa_statement_word(s, 1, c->arena) : NULL;

        if (word != NULL && dsa_check_size(&size, word) == DSA_OK
            && size < UINT64_MAX / DSA_CHECK_REPLICAS)
        {
            sum += size * dsa_check_number(e, "replicas", 1);
        }
    }

    return sum;
}
