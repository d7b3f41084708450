
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CONF_PARTS_H_INCLUDED_
#define _DSA_CONF_PARTS_H_INCLUDED_


#include "engine/service/conf.h"


/*
 * Shared by conf.c (the directives), conf_old.c (the former ones),
 * conf_words.c (the words of the text), conf_values.c (conversion of words to
 * values), conf_cache.c (redis_cache) and conf_hosts.c (several hosts).
 */

#define DSA_CONF_CACHE_PARAMETERS   11

/* name and values of a directive; redis_cache has the most */
#define DSA_CONF_ARGS       (1 + DSA_REDIS_SERVERS + DSA_CONF_CACHE_PARAMETERS)
#define DSA_CONF_VALUE      1024        /* bytes of one, with NUL */


typedef struct {
    const char     *file;
    const char     *pos;
    const char     *end;
    unsigned        line;
    unsigned        start;              /* line of the directive */
    unsigned        n;
    char            arg[DSA_CONF_ARGS][DSA_CONF_VALUE];
    dsa_conf_t     *conf;
    dsa_err_t      *err;
} dsa_conf_reader_t;


/*
 * Reads the words of the next directive into arg[0 .. n-1].  DSA_AGAIN: a
 * directive was read; DSA_OK: end of the text; DSA_ERROR.
 */
int dsa_conf_words(dsa_conf_reader_t *r);

/* Fails with what to write instead, if the directive was removed. */
int dsa_conf_old(dsa_conf_reader_t *r);

/* Sets err to "FILE:LINE: text" for the directive.  Returns DSA_ERROR. */
int dsa_conf_fail(dsa_conf_reader_t *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


/*
 * Sets the field at this offset of conf from arg[1], a text of min to max
 * bytes or a value from min to max.  On DSA_ERROR, err has the accepted
 * values.
 */
typedef int (*dsa_conf_set_pt)(dsa_conf_reader_t *r, size_t offset,
    uint64_t min, uint64_t max);

int dsa_conf_string(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
int dsa_conf_listen(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
int dsa_conf_backend(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
int dsa_conf_precision(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
int dsa_conf_kv(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
int dsa_conf_weights(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
int dsa_conf_gpus(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);                      /* gpus, or listed and gpu[] */
int dsa_conf_attention(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
int dsa_conf_speculate(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
int dsa_conf_log_level(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);
int dsa_conf_number(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);                      /* uint32_t */
int dsa_conf_size(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);                      /* uint64_t, bytes */
int dsa_conf_waiting(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);                      /* max_waiting, and that of a tenant */
int dsa_conf_time(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);                      /* uint64_t, ms */
int dsa_conf_group(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);

/*
 * conf_hosts.c: followers; the address of a follower in arg[1]; what must hold
 * for a replica over several hosts; and whether a follower may have the
 * directive of this name in this line.
 */
int dsa_conf_hosts(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);                      /* host, followers */
int dsa_conf_follow(dsa_conf_reader_t *r);
int dsa_conf_check_hosts(dsa_conf_reader_t *r);
int dsa_conf_follows(dsa_conf_reader_t *r, const char *name, unsigned line);

int dsa_conf_redis_cache(dsa_conf_reader_t *r, size_t offset, uint64_t min,
    uint64_t max);                      /* cache */

/* Frees the strings, and clears the password first. */
void dsa_conf_cache_free(dsa_conf_cache_t *cache);


/*
 * Parse values.  DSA_ERROR: the text is not such a value.
 *
 *     unsigned       digits, and at most one of the units, in either case;
 *                    factors has the factor of each unit
 *     bytes          units k, m, g
 *     milliseconds   units ms, s (the default), m, h, d
 */
int dsa_conf_unsigned(const char *text, const char *units,
    const uint64_t *factors, uint64_t *out);
int dsa_conf_bytes(const char *text, uint64_t *out);
int dsa_conf_milliseconds(const char *text, uint64_t *out);


#endif /* _DSA_CONF_PARTS_H_INCLUDED_ */
