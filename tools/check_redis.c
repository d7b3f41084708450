
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "redis_schema/memory.h"
#include "tools/check.h"
#include "tools/redis.h"


#define DSA_CHECK_TMPFS      0x01021994     /* f_type of tmpfs(5) */
#define DSA_CHECK_PID        "/run/nginx.pid"       /* of Debian's nginx */
#define DSA_CHECK_QUEUE      20000          /* the default of queue= */
#define DSA_CHECK_CELL       512            /* bytes of a place in it */
#define DSA_CHECK_TIME       600            /* s without Redis, in which an
                                               operator can act */
#define DSA_CHECK_FREE       100            /* MB that a disk needs besides */
#define DSA_CHECK_SENTINEL   26379          /* the default port */

/*
 * Answers with tool calls are kept for an hour, and take about 4.7 KB each
 * (docs/operate/sizing.md).
 */

#define DSA_CHECK_KEPT       (3600 * 4700ULL)


typedef struct {
    const char         *what;           /* for lines: the directive */
    dsa_client_conf_t   conf;
    int                 cache;          /* 1: of pages; 0: of the state */
} dsa_check_server_t;


static void dsa_check_disk(dsa_check_t *c, const char *file, uint64_t bytes);
static void dsa_check_state(dsa_check_t *c, const dsa_statement_t *s);
static void dsa_check_sentinels(dsa_check_t *c, const dsa_statement_t *s,
    const char *name, dsa_check_server_t *server);
static char *dsa_check_sentinel(dsa_check_t *c, const char *name,
    dsa_client_conf_t *conf);
static int dsa_check_is_address(dsa_str_t word);
static void dsa_check_cache(dsa_check_t *c, const dsa_check_engine_t *e);
static void dsa_check_login(dsa_check_t *c, const dsa_statement_t *s,
    dsa_client_conf_t *conf);
static void dsa_check_server(dsa_check_t *c, const dsa_check_server_t *server);
static void dsa_check_info(dsa_check_t *c, const dsa_check_server_t *server,
    const dsa_schema_memory_t *memory);
static void dsa_check_clock(dsa_check_t *c, const dsa_check_server_t *server,
    const redisReply *info);


void
dsa_check_queue(dsa_check_t *c)
{
    uint64_t                places;
    const char             *file, *pid, *text;
    const dsa_statement_t  *s;

    s = dsa_statements_find(&c->conf, "dsa_redis", 0);

    if (s == NULL) {
        return;
    }

    text = dsa_statement_value(s, "queue=", c->arena);
    places = text != NULL ? strtoull(text, NULL, 10) : DSA_CHECK_QUEUE;

    if (c->rate != 0) {
        dsa_check_line(c, places / c->rate < DSA_CHECK_TIME ? DSA_CHECK_WARN
                                                            : DSA_CHECK_OK,
                       "queue", "without Redis it lasts %llu s at %llu "
                       "requests/s%s%llu",
                       (unsigned long long) (places / c->rate),
                       (unsigned long long) c->rate,
                       places / c->rate < DSA_CHECK_TIME
                       ? "; expected ten minutes, queue=" : " of queue=",
                       (unsigned long long) (places / c->rate < DSA_CHECK_TIME
                                             ? c->rate * DSA_CHECK_TIME
                                             : places));
    }

    file = dsa_statement_value(s, "queue_file=", c->arena);

    if (file == NULL) {
        s = dsa_statements_find(&c->conf, "pid", 0);
        pid = s != NULL ? dsa_statement_word(s, 1, c->arena) : NULL;
        file = pid != NULL ? pid : DSA_CHECK_PID;
    }

    dsa_check_disk(c, file, places * DSA_CHECK_CELL);
}


/* file: the queue file, or another one in its directory. */

static void
dsa_check_disk(dsa_check_t *c, const char *file, uint64_t bytes)
{
    char           *dir, *end;
    uint64_t        room;
    struct stat     st;
    struct statfs   fs;

    if (*file != '/') {
        dsa_check_line(c, DSA_CHECK_WARN, "queue", "its file %s is in the "
                       "prefix of nginx, which was not checked; expected "
                       "queue_file= with a path that begins with /", file);
        return;
    }

    dir = dsa_arena_dup(c->arena, dsa_strz(file));

    if (dir == NULL) {
        return;
    }

    end = strrchr(dir, '/');
    end[end == dir] = '\0';

    if (statfs(dir, &fs) == -1) {
        dsa_check_line(c, DSA_CHECK_FAIL, "queue", "%s: %s; expected a "
                       "directory", dir, strerror(errno));
        return;
    }

    if (fs.f_type == DSA_CHECK_TMPFS) {
        dsa_check_line(c, DSA_CHECK_WARN, "queue", "its file is in %s, in "
                       "memory: a reboot loses ledger entries that Redis does "
                       "not have; expected queue_file= on a disk, such as "
                       "/var/lib/nginx/dsa.ledger", dir);
    }

    room = (uint64_t) fs.f_bavail * (uint64_t) fs.f_bsize;

    if (stat(file, &st) == 0) {
        room += (uint64_t) st.st_blocks * 512;  /* that it has already */
    }

    bytes += (uint64_t) DSA_CHECK_FREE << 20;

    dsa_check_line(c, room < bytes ? DSA_CHECK_FAIL : DSA_CHECK_OK, "disk",
                   "%s has room for %llu MB, and the queue and logs need %llu "
                   "MB", dir, (unsigned long long) (room >> 20),
                   (unsigned long long) (bytes >> 20));
}


void
dsa_check_redis(dsa_check_t *c)
{
    uint32_t                i;
    const dsa_statement_t  *s;

    s = dsa_statements_find(&c->conf, "dsa_redis", 0);

    if (s != NULL) {
        dsa_check_state(c, s);

    } else if (c->conf.n != 0) {
        dsa_check_line(c, DSA_CHECK_WARN, "dsa_redis", "nginx has no Redis, so "
                       "there are no conversations and no ledger");
    }

    for (i = 0; i < c->n_engines; i++) {
        dsa_check_cache(c, &c->engine[i]);
    }
}


static void
dsa_check_state(dsa_check_t *c, const dsa_statement_t *s)
{
    uint32_t            i;
    const char         *db, *name;
    dsa_check_server_t  server;

    memset(&server, 0, sizeof(server));
    server.what = "dsa_redis";

    dsa_check_login(c, s, &server.conf);
    db = dsa_statement_value(s, "db=", c->arena);
    server.conf.db = db != NULL ? (uint32_t) strtoul(db, NULL, 10) : 0;

    name = dsa_statement_value(s, "sentinel=", c->arena);

    if (name != NULL) {
        dsa_check_sentinels(c, s, name, &server);
        return;
    }

    for (i = 1; i < s->n; i++) {
        if (dsa_check_is_address(s->words[i])) {
            server.conf.address = dsa_statement_word(s, i, c->arena);
            dsa_check_server(c, &server);
        }
    }
}


/* Checks each Sentinel, and then the primary that they name. */

static void
dsa_check_sentinels(dsa_check_t *c, const dsa_statement_t *s,
    const char *name, dsa_check_server_t *server)
{
    char               *primary, *address;
    uint32_t            i;
    dsa_client_conf_t   conf;

    conf = server->conf;
    conf.user = NULL;
    conf.db = 0;
    conf.password_file = dsa_statement_value(s, "sentinel_password_file=",
                                             c->arena);
    primary = NULL;

    for (i = 1; i < s->n; i++) {
        if (!dsa_check_is_address(s->words[i])) {
            continue;
        }

        conf.address = dsa_statement_word(s, i, c->arena);
        address = dsa_check_sentinel(c, name, &conf);

        if (address != NULL && primary != NULL
            && strcmp(address, primary) != 0)
        {
            dsa_check_line(c, DSA_CHECK_WARN, "dsa_redis", "the Sentinel %s "
                           "names the primary %s, and another one %s; expected "
                           "one primary", conf.address, address, primary);
        }

        primary = primary == NULL ? address : primary;
    }

    if (primary != NULL) {
        server->conf.address = primary;
        dsa_check_server(c, server);
    }
}


/* The address of the primary, in the arena; NULL after a line. */

static char *
dsa_check_sentinel(dsa_check_t *c, const char *name, dsa_client_conf_t *conf)
{
    char                   text[DSA_CLIENT_ADDRESS], *primary;
    dsa_err_t              err;
    dsa_str_t              words[3];
    redisReply            *reply, **e;
    const char            *port;
    dsa_client_t          *client;
    dsa_schema_command_t   cmd;

    if (conf->address == NULL) {
        return NULL;
    }

    port = strrchr(conf->address, ':');

    if (port == NULL || strchr(port, ']') != NULL) {
        (void) snprintf(text, sizeof(text), "%.270s:%d", conf->address,
                        DSA_CHECK_SENTINEL);
        conf->address = dsa_arena_dup(c->arena, dsa_strz(text));
    }

    words[0] = dsa_strz("SENTINEL");
    words[1] = dsa_strz("GET-MASTER-ADDR-BY-NAME");
    words[2] = dsa_strz(name);
    cmd.argc = 3;
    cmd.argv = words;

    primary = NULL;
    client = conf->address != NULL ? dsa_client_open(conf, &err) : NULL;
    reply = client != NULL ? dsa_client_call(client, &cmd, &err) : NULL;

    if (reply == NULL) {
        dsa_check_line(c, DSA_CHECK_FAIL, "dsa_redis", "%s; expected a "
                       "Sentinel", err.text);

    } else if (reply->type == REDIS_REPLY_NIL) {
        dsa_check_line(c, DSA_CHECK_FAIL, "dsa_redis", "the Sentinel %s "
                       "monitors no \"%s\"; expected the name of its "
                       "\"sentinel monitor\" in sentinel=", conf->address,
                       name);

    } else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
               || reply->element[0]->type != REDIS_REPLY_STRING
               || reply->element[1]->type != REDIS_REPLY_STRING)
    {
        dsa_check_line(c, DSA_CHECK_FAIL, "dsa_redis", "%s is not a "
                       "Sentinel; it replied \"%.100s\"", conf->address,
                       reply->type == REDIS_REPLY_ERROR ? reply->str : "");

    } else {
        e = reply->element;

        (void) snprintf(text, sizeof(text), strchr(e[0]->str, ':') != NULL
                                            ? "[%.200s]:%.10s"
                                            : "%.200s:%.10s",
                        e[0]->str, e[1]->str);

        primary = dsa_arena_dup(c->arena, dsa_strz(text));

        dsa_check_line(c, DSA_CHECK_OK, "dsa_redis", "the Sentinel %s names "
                       "the primary %s", conf->address, text);
    }

    freeReplyObject(reply);
    dsa_client_close(client);

    return primary;
}


/* 1 if a word of dsa_redis or redis_cache is an address, no parameter. */

static int
dsa_check_is_address(dsa_str_t word)
{
    return memchr(word.data, '=', word.len) == NULL
           && !dsa_str_eqz(word, "tls");
}


static void
dsa_check_cache(dsa_check_t *c, const dsa_check_engine_t *e)
{
    uint32_t                i;
    dsa_check_server_t      server;
    const dsa_statement_t  *s;

    s = dsa_statements_find(&e->conf, "redis_cache", 0);

    if (s == NULL) {
        return;
    }

    memset(&server, 0, sizeof(server));
    server.what = "redis_cache";
    server.cache = 1;

    dsa_check_login(c, s, &server.conf);

    for (i = 1; i < s->n; i++) {
        if (dsa_check_is_address(s->words[i])) {
            server.conf.address = dsa_statement_word(s, i, c->arena);
            dsa_check_server(c, &server);
        }
    }
}


static void
dsa_check_login(dsa_check_t *c, const dsa_statement_t *s,
    dsa_client_conf_t *conf)
{
    uint32_t     i;
    const char  *verify;

    conf->user = dsa_statement_value(s, "user=", c->arena);
    conf->password_file = dsa_statement_value(s, "password_file=", c->arena);
    conf->tls.ca = (char *) dsa_statement_value(s, "tls_ca=", c->arena);
    conf->tls.certificate =
        (char *) dsa_statement_value(s, "tls_certificate=", c->arena);
    conf->tls.key = (char *) dsa_statement_value(s, "tls_key=", c->arena);
    conf->tls.name = (char *) dsa_statement_value(s, "tls_name=", c->arena);

    verify = dsa_statement_value(s, "tls_verify=", c->arena);
    conf->tls.insecure = (verify != NULL && strcmp(verify, "off") == 0);

    for (i = 1; i < s->n; i++) {
        conf->tls.on |= dsa_str_eqz(s->words[i], "tls");
    }
}


static void
dsa_check_server(dsa_check_t *c, const dsa_check_server_t *server)
{
    dsa_err_t              err;
    redisReply            *reply;
    dsa_client_t          *client;
    dsa_schema_memory_t    memory;
    dsa_schema_command_t   cmd;

    reply = NULL;
    client = server->conf.address != NULL ? dsa_client_open(&server->conf, &err)
                                          : NULL;

    if (client == NULL || dsa_schema_memory(&cmd, c->arena) != DSA_OK
        || (reply = dsa_client_call(client, &cmd, &err)) == NULL
        || dsa_schema_memory_reply(&memory, reply, &err) != DSA_OK)
    {
        dsa_check_line(c, DSA_CHECK_FAIL, server->what, "%s; expected a Redis "
                       "that answers INFO", err.text);

    } else {
        dsa_check_info(c, server, &memory);
        dsa_check_clock(c, server, reply);
    }

    freeReplyObject(reply);
    dsa_client_close(client);
}


static void
dsa_check_info(dsa_check_t *c, const dsa_check_server_t *server,
    const dsa_schema_memory_t *memory)
{
    uint64_t     need;
    const char  *address;

    address = server->conf.address;

    dsa_check_line(c, DSA_CHECK_OK, server->what, "%s answers; it uses %llu of "
                   "%llu MB", address,
                   (unsigned long long) (memory->used >> 20),
                   (unsigned long long) (memory->limit >> 20));

    if (server->cache) {
        if (!memory->evicts) {
            dsa_check_line(c, DSA_CHECK_WARN, server->what, "%s refuses pages "
                           "when it is full; expected \"maxmemory-policy "
                           "allkeys-lru\"", address);
        }

        return;
    }

    if (memory->evicts) {
        dsa_check_line(c, DSA_CHECK_FAIL, server->what, "%s removes the ledger "
                       "when it is full; expected \"maxmemory-policy "
                       "noeviction\"", address);
    }

    if (!memory->durable) {
        dsa_check_line(c, DSA_CHECK_FAIL, server->what, "%s keeps no "
                       "append-only file, so its crash loses what it has "
                       "confirmed; expected \"appendonly yes\"", address);
    }

    if (memory->used >= memory->limit / 10 * 9) {
        dsa_check_line(c, DSA_CHECK_FAIL, server->what, "%s is full to 90 %%, "
                       "so nginx stores no conversations; expected a larger "
                       "\"maxmemory\"", address);

    } else if (c->rate != 0) {
        need = c->rate * DSA_CHECK_KEPT;

        dsa_check_line(c, need > memory->limit / 10 * 9 - memory->used
                          ? DSA_CHECK_WARN : DSA_CHECK_OK,
                       server->what, "%s: at %llu requests/s, answers with "
                       "tool calls may take %llu MB, and %llu MB are free",
                       address, (unsigned long long) c->rate,
                       (unsigned long long) (need >> 20),
                       (unsigned long long) ((memory->limit / 10 * 9
                                              - memory->used) >> 20));
    }
}


/* Days of the ledger and budgets are those of both clocks. */

static void
dsa_check_clock(dsa_check_t *c, const dsa_check_server_t *server,
    const redisReply *info)
{
    time_t       now;
    long long    there, off;
    const char  *p;

    static const char  name[] = "server_time_usec:";

    p = info->str != NULL ? strstr(info->str, name) : NULL;

    if (p == NULL || server->cache) {
        return;                         /* before Redis 6.2 */
    }

    now = time(NULL);
    there = strtoll(p + sizeof(name) - 1, NULL, 10) / 1000000;
    off = there > now ? there - now : now - there;

    dsa_check_line(c, off > 60 ? DSA_CHECK_FAIL
                               : off > 2 ? DSA_CHECK_WARN : DSA_CHECK_OK,
                   "clock", "that of %s differs by %lld s%s",
                   server->conf.address, off,
                   off > 2 ? "; expected both to be synchronized (NTP), "
                             "because days and budgets depend on them" : "");
}
