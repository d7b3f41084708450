
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CONF_H_INCLUDED_
#define _DSA_CONF_H_INCLUDED_


#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/backend.h"
#include "engine/hosts/secret.h"
#include "engine/pages/redis.h"


/*
 * engine.conf: "name value...;", comments from # to the end of the line,
 * quotes as in nginx.conf.  docs/engine.md lists the directives.
 */

#define DSA_CONF_SIZE       65536       /* most bytes of a file */
#define DSA_CONF_REPLICAS   256
#define DSA_CONF_GPUS       256         /* numbers in a list of GPUs */


/* redis_cache. */

typedef struct {
    char               *address[DSA_REDIS_SERVERS];     /* HOST:PORT or
                                           unix:PATH */
    uint32_t            addresses;      /* 0: there is no cache */
    uint32_t            connections;    /* to each server, 1 .. 64 */
    char               *user;           /* NULL: the default user */
    char               *password;       /* NULL: none; never logged */
    dsa_redis_tls_conf_t  tls;
    uint64_t            ttl_s;          /* of a page; >= 1 */
    uint64_t            max_bandwidth;  /* bytes/s of writes; 0: no limit */
} dsa_conf_cache_t;


typedef struct {
    char               *model;          /* directory */
    char               *name;           /* name of the model */
    char               *prompt_format;  /* NULL: the model's files decide */
    char               *listen;         /* path, with %n when replicas > 1;
                                           NULL: this host follows */
    char               *follow;         /* HOST:PORT at which it waits for its
                                           leader; NULL: it does not follow */
    char               *host[DSA_MAX_GPUS];     /* HOST:PORT of followers */
    uint32_t            followers;      /* 0: the replica has one host */
    char               *host_secret;    /* path; NULL: none */
    dsa_hosts_secret_t  secret;         /* in that file; never logged */
    dsa_backend_e       backend;
    dsa_precision_e     precision;
    dsa_kv_e            kv;             /* latents in the pages */
    dsa_attention_e     attention;
    dsa_log_level_e     log_level;
    uint32_t            random;         /* cuda: weights are random */
    uint32_t            quantize;       /* cpu, cuda: weights are quantized to
                                           FP8 while they are loaded */
    uint32_t            drafts;         /* most drafts of a sequence in a step;
                                           0: no speculation */
    uint32_t            adapt_drafts;   /* 1: as many of these as pay, and none
                                           if the model has no draft layer */
    double              rate;           /* null: tokens/s of a sequence */
    char               *journal;        /* null: its file; NULL: none */
    uint64_t            kv_memory;      /* bytes; 0: the backend chooses */
    uint64_t            host_memory;    /* bytes, of each replica; 0: none */
    dsa_conf_cache_t    cache;          /* needs host_memory, which a follower
                                           has from its leader */
    uint64_t            drain_timeout_ms;
    uint64_t            token_target_ms;    /* 0: none */
    uint64_t            first_token_target_ms;  /* 0: none */
    uint64_t            step_timeout_ms;    /* 0: none */
    uint64_t            start_timeout_ms;   /* 0: none */
    uint32_t            replicas;
    uint32_t            gpus;           /* of each replica, on each host */
    uint32_t            listed;         /* numbers in gpu; 0: no list */
    uint32_t            gpu[DSA_CONF_GPUS];     /* cuda: those of replica 0,
                                                   then of replica 1, ... */
    uint32_t            max_running;    /* sequences in a step: on each GPU
                                           with "attention data" */
    uint32_t            token_budget;   /* tokens in a step of a replica */
    uint32_t            max_waiting;    /* requests in the queue, in excess
                                           of those that can run */
    uint32_t            max_waiting_per_tenant;     /* of max_waiting */
    uint32_t            context_length; /* 0: that of the model */
    gid_t               socket_group;   /* (gid_t) -1: not changed */
} dsa_conf_t;


/*
 * Reads and checks a file and its password file, and sets defaults.  Relative
 * paths are not changed.  On DSA_ERROR, err is "FILE:LINE: reason".  The
 * caller frees conf in any case.
 */
int dsa_conf_read(dsa_conf_t *conf, const char *path, dsa_err_t *err);

/* The same for a text in memory; path is its name in errors. */
int dsa_conf_parse(dsa_conf_t *conf, const char *path, const char *text,
    size_t len, dsa_err_t *err);

/* Frees the strings, and clears the password and the secret first. */
void dsa_conf_free(dsa_conf_t *conf);

/* Returns the most sequences that run at once on all ranks of a replica. */
uint32_t dsa_conf_running(const dsa_conf_t *conf);

/*
 * Sets the configuration of a replica's backend, except allowed, which is the
 * size of the tokenizer and stays 0.
 */
void dsa_conf_backend_of(const dsa_conf_t *conf, uint32_t replica,
    dsa_backend_conf_t *backend);

/*
 * Writes the socket path of a replica: "listen" with %n replaced.  DSA_ERROR:
 * size is too small.
 */
int dsa_conf_socket(const dsa_conf_t *conf, uint32_t replica, char *out,
    size_t size);


#endif /* _DSA_CONF_H_INCLUDED_ */
