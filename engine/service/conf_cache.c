
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/pages/redis_address.h"
#include "engine/service/conf_parts.h"


/*
 * redis_cache ADDRESS... [user=NAME] [connections=N] [password_file=PATH]
 *     [ttl=TIME] [max_bandwidth=SIZE];
 */

#define DSA_CONF_PASSWORD       512         /* most bytes of a password */
#define DSA_CONF_PASSWORD_FILE  4096        /* most bytes of its file */
#define DSA_CONF_CONNECTIONS    64

#define DSA_CONF_DAY_S          (24 * 3600ULL)
#define DSA_CONF_TTL_S          (3650 * DSA_CONF_DAY_S)     /* longest */


/* Sets one parameter from its value. */
typedef int (*dsa_conf_cache_pt)(dsa_conf_reader_t *r, const char *value);


typedef struct {
    const char         *name;               /* including the "="; without
                                               one the whole word */
    dsa_conf_cache_pt   set;
} dsa_conf_cache_parameter_t;


static int dsa_conf_cache_word(dsa_conf_reader_t *r, const char *word,
    uint32_t *seen);
static int dsa_conf_cache_address(dsa_conf_reader_t *r, const char *text);
static int dsa_conf_cache_user(dsa_conf_reader_t *r, const char *value);
static int dsa_conf_cache_connections(dsa_conf_reader_t *r,
    const char *value);
static int dsa_conf_cache_password(dsa_conf_reader_t *r, const char *value);
static int dsa_conf_cache_password_set(dsa_conf_reader_t *r,
    const char *path, const dsa_buf_t *text);
static int dsa_conf_cache_ttl(dsa_conf_reader_t *r, const char *value);
static int dsa_conf_cache_bandwidth(dsa_conf_reader_t *r, const char *value);
static int dsa_conf_cache_tls_on(dsa_conf_reader_t *r, const char *value);
static int dsa_conf_cache_tls_ca(dsa_conf_reader_t *r, const char *value);
static int dsa_conf_cache_tls_certificate(dsa_conf_reader_t *r,
    const char *value);
static int dsa_conf_cache_tls_key(dsa_conf_reader_t *r, const char *value);
static int dsa_conf_cache_tls_name(dsa_conf_reader_t *r, const char *value);
static int dsa_conf_cache_tls_verify(dsa_conf_reader_t *r, const char *value);
static int dsa_conf_cache_tls_text(dsa_conf_reader_t *r, const char *name,
    const char *value, char **field);
static int dsa_conf_cache_tls(dsa_conf_reader_t *r);


static const dsa_conf_cache_parameter_t  dsa_conf_cache_parameters[] = {
    { "user=", dsa_conf_cache_user },
    { "connections=", dsa_conf_cache_connections },
    { "password_file=", dsa_conf_cache_password },
    { "ttl=", dsa_conf_cache_ttl },
    { "max_bandwidth=", dsa_conf_cache_bandwidth },
    { "tls", dsa_conf_cache_tls_on },
    { "tls_ca=", dsa_conf_cache_tls_ca },
    { "tls_certificate=", dsa_conf_cache_tls_certificate },
    { "tls_key=", dsa_conf_cache_tls_key },
    { "tls_name=", dsa_conf_cache_tls_name },
    { "tls_verify=", dsa_conf_cache_tls_verify }
};


#define DSA_N_PARAMETERS  (sizeof(dsa_conf_cache_parameters)                  \
                           / sizeof(dsa_conf_cache_parameters[0]))

_Static_assert(DSA_N_PARAMETERS == DSA_CONF_CACHE_PARAMETERS,
               "a directive has room for all parameters");


int
dsa_conf_redis_cache(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max)
{
    unsigned           i;
    uint32_t           seen;
    dsa_conf_cache_t  *cache;

    cache = &r->conf->cache;
    cache->connections = 4;
    cache->ttl_s = DSA_CONF_DAY_S;
    seen = 0;

    for (i = 1; i < r->n; i++) {
        if (dsa_conf_cache_word(r, r->arg[i], &seen) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (cache->addresses == 0) {
        return dsa_conf_fail(r, "\"redis_cache\" has no address; expected "
                             "HOST:PORT or unix:PATH");
    }

    if (cache->user != NULL && cache->password == NULL) {
        return dsa_conf_fail(r, "\"redis_cache\" has user=%s without a "
                             "password; expected password_file=PATH as well",
                             cache->user);
    }

    return dsa_conf_cache_tls(r);
}


void
dsa_conf_cache_free(dsa_conf_cache_t *cache)
{
    uint32_t  i;

    for (i = 0; i < cache->addresses; i++) {
        free(cache->address[i]);
    }

    if (cache->password != NULL) {
        explicit_bzero(cache->password, strlen(cache->password));
    }

    free(cache->password);
    free(cache->user);
    free(cache->tls.ca);
    free(cache->tls.certificate);
    free(cache->tls.key);
    free(cache->tls.name);
}


/* Reads a parameter or an address.  seen: bits of earlier parameters. */

static int
dsa_conf_cache_word(dsa_conf_reader_t *r, const char *word, uint32_t *seen)
{
    size_t                             i, len;
    const dsa_conf_cache_parameter_t  *p;

    for (i = 0; i < DSA_N_PARAMETERS; i++) {
        p = &dsa_conf_cache_parameters[i];
        len = strlen(p->name);

        if (strncmp(word, p->name, len) != 0
            || (p->name[len - 1] != '=' && word[len] != '\0'))
        {
            continue;
        }

        if ((*seen >> i & 1) != 0) {
            return dsa_conf_fail(r, "\"%s\" of \"redis_cache\" is repeated; "
                                 "expected it once", p->name);
        }

        *seen |= 1U << i;

        return p->set(r, word + len);
    }

    return dsa_conf_cache_address(r, word);
}


static int
dsa_conf_cache_address(dsa_conf_reader_t *r, const char *text)
{
    uint32_t              i;
    dsa_err_t             err;
    dsa_conf_cache_t     *cache;
    dsa_redis_address_t   address;

    cache = &r->conf->cache;

    if (dsa_redis_address(&address, text, &err) != DSA_OK) {
        return dsa_conf_fail(r, "\"%s\" is neither an address nor a parameter "
                             "of \"redis_cache\"; expected HOST:PORT, "
                             "unix:PATH, user=, connections=, "
                             "password_file=, ttl=, max_bandwidth=, tls, "
                             "tls_ca=, tls_certificate=, tls_key=, tls_name= "
                             "or tls_verify=", text);
    }

    for (i = 0; i < cache->addresses; i++) {
        if (strcmp(cache->address[i], address.text) == 0) {
            return dsa_conf_fail(r, "\"redis_cache\" has the address \"%s\" "
                                 "twice; expected different servers", text);
        }
    }

    if (cache->addresses == DSA_REDIS_SERVERS) {
        return dsa_conf_fail(r, "\"redis_cache\" has more than %d addresses; "
                             "expected at most so many", DSA_REDIS_SERVERS);
    }

    cache->address[cache->addresses] = strdup(address.text);

    if (cache->address[cache->addresses] == NULL) {
        return dsa_conf_fail(r, "out of memory");
    }

    cache->addresses++;

    return DSA_OK;
}


static int
dsa_conf_cache_user(dsa_conf_reader_t *r, const char *value)
{
    if (*value == '\0' || strchr(value, ' ') != NULL) {
        return dsa_conf_fail(r, "\"user\" of \"redis_cache\" is \"%s\"; "
                             "expected a name without spaces", value);
    }

    r->conf->cache.user = strdup(value);

    return r->conf->cache.user != NULL ? DSA_OK
                                       : dsa_conf_fail(r, "out of memory");
}


static int
dsa_conf_cache_connections(dsa_conf_reader_t *r, const char *value)
{
    uint64_t  n;

    if (dsa_conf_unsigned(value, "", NULL, &n) != DSA_OK
        || n < 1 || n > DSA_CONF_CONNECTIONS)
    {
        return dsa_conf_fail(r, "\"connections\" of \"redis_cache\" is "
                             "\"%s\"; expected 1 to %d connections to each "
                             "server", value, DSA_CONF_CONNECTIONS);
    }

    r->conf->cache.connections = (uint32_t) n;

    return DSA_OK;
}


/* Reads the password file.  Errors do not contain the password. */

static int
dsa_conf_cache_password(dsa_conf_reader_t *r, const char *value)
{
    int        rc;
    dsa_err_t  err;
    dsa_buf_t  text;

    memset(&text, 0, sizeof(text));

    rc = dsa_file_read(value, DSA_CONF_PASSWORD_FILE, &text, &err);

    rc = rc == DSA_OK ? dsa_conf_cache_password_set(r, value, &text)
                      : dsa_conf_fail(r, "\"password_file\" of "
                                      "\"redis_cache\": %s", err.text);

    if (text.data != NULL) {
        explicit_bzero(text.data, text.len);
    }

    dsa_buf_free(&text);

    return rc;
}


/* Copies the first line, without its newline. */

static int
dsa_conf_cache_password_set(dsa_conf_reader_t *r, const char *path,
    const dsa_buf_t *text)
{
    size_t       len;
    const char  *end;

    end = text->len != 0 ? memchr(text->data, '\n', text->len) : NULL;
    len = end != NULL ? (size_t) (end - text->data) : text->len;

    if (len > 0 && text->data[len - 1] == '\r') {
        len--;
    }

    if (len == 0 || len > DSA_CONF_PASSWORD
        || memchr(text->data, '\0', len) != NULL)
    {
        return dsa_conf_fail(r, "\"password_file\" of \"redis_cache\": the "
                             "first line of %s has %zu bytes%s; expected a "
                             "password of 1 to %d bytes", path, len,
                             len != 0 && len <= DSA_CONF_PASSWORD
                             ? ", one of them 0" : "", DSA_CONF_PASSWORD);
    }

    r->conf->cache.password = strndup(text->data, len);

    return r->conf->cache.password != NULL
           ? DSA_OK : dsa_conf_fail(r, "out of memory");
}


static int
dsa_conf_cache_ttl(dsa_conf_reader_t *r, const char *value)
{
    uint64_t  ms;

    if (dsa_conf_milliseconds(value, &ms) != DSA_OK || ms < 1000
        || ms % 1000 != 0 || ms / 1000 > DSA_CONF_TTL_S)
    {
        return dsa_conf_fail(r, "\"ttl\" of \"redis_cache\" is \"%s\"; "
                             "expected a time of whole seconds from 1s to "
                             "%llud (units s, m, h, d)", value,
                             DSA_CONF_TTL_S / DSA_CONF_DAY_S);
    }

    r->conf->cache.ttl_s = ms / 1000;

    return DSA_OK;
}


static int
dsa_conf_cache_bandwidth(dsa_conf_reader_t *r, const char *value)
{
    uint64_t  bytes;

    if (dsa_conf_bytes(value, &bytes) != DSA_OK || bytes > 1ULL << 48) {
        return dsa_conf_fail(r, "\"max_bandwidth\" of \"redis_cache\" is "
                             "\"%s\"; expected bytes per second (units k, m, "
                             "g), or 0 for no limit", value);
    }

    r->conf->cache.max_bandwidth = bytes;

    return DSA_OK;
}


static int
dsa_conf_cache_tls_on(dsa_conf_reader_t *r, const char *value)
{
    r->conf->cache.tls.on = 1;

    return DSA_OK;
}


static int
dsa_conf_cache_tls_ca(dsa_conf_reader_t *r, const char *value)
{
    return dsa_conf_cache_tls_text(r, "tls_ca", value, &r->conf->cache.tls.ca);
}


static int
dsa_conf_cache_tls_certificate(dsa_conf_reader_t *r, const char *value)
{
    return dsa_conf_cache_tls_text(r, "tls_certificate", value,
                                   &r->conf->cache.tls.certificate);
}


static int
dsa_conf_cache_tls_key(dsa_conf_reader_t *r, const char *value)
{
    return dsa_conf_cache_tls_text(r, "tls_key", value,
                                   &r->conf->cache.tls.key);
}


static int
dsa_conf_cache_tls_name(dsa_conf_reader_t *r, const char *value)
{
    return dsa_conf_cache_tls_text(r, "tls_name", value,
                                   &r->conf->cache.tls.name);
}


static int
dsa_conf_cache_tls_text(dsa_conf_reader_t *r, const char *name,
    const char *value, char **field)
{
    if (*value == '\0') {
        return dsa_conf_fail(r, "\"%s\" of \"redis_cache\" is empty; expected "
                             "%s", name, strcmp(name, "tls_name") == 0
                             ? "a name or an IP address" : "a file in PEM");
    }

    *field = strdup(value);

    return *field != NULL ? DSA_OK : dsa_conf_fail(r, "out of memory");
}


static int
dsa_conf_cache_tls_verify(dsa_conf_reader_t *r, const char *value)
{
    if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0) {
        return dsa_conf_fail(r, "\"tls_verify\" of \"redis_cache\" is \"%s\"; "
                             "expected on or off", value);
    }

    r->conf->cache.tls.insecure = (strcmp(value, "off") == 0);

    return DSA_OK;
}


/* Checks the parameters of TLS together, and that its files can be used. */

static int
dsa_conf_cache_tls(dsa_conf_reader_t *r)
{
    uint32_t               i;
    dsa_err_t              err;
    dsa_redis_tls_t       *tls;
    dsa_redis_tls_conf_t  *conf;

    conf = &r->conf->cache.tls;

    if (!conf->on) {
        return conf->ca == NULL && conf->certificate == NULL
               && conf->key == NULL && conf->name == NULL && !conf->insecure
               ? DSA_OK
               : dsa_conf_fail(r, "\"redis_cache\" has a parameter of TLS "
                               "without \"tls\"; expected \"tls\" as well");
    }

    for (i = 0; i < r->conf->cache.addresses; i++) {
        if (strncmp(r->conf->cache.address[i], "unix:", 5) == 0) {
            return dsa_conf_fail(r, "\"redis_cache\" has \"tls\" and \"%s\", "
                                 "on which Redis has no TLS; expected "
                                 "HOST:PORT",
                                 r->conf->cache.address[i]);
        }
    }

    tls = dsa_redis_tls_create(conf, &err);

    if (tls == NULL) {
        return dsa_conf_fail(r, "\"redis_cache\": %s", err.text);
    }

    dsa_redis_tls_destroy(tls);

    return DSA_OK;
}
