
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PROGRESS_H_INCLUDED_
#define _DSA_PROGRESS_H_INCLUDED_


#include "responses.h"


/*
 * Responses that are in progress.  Each one has a lease, which the worker that
 * computes it renews, so that a response whose worker was killed is seen to
 * have failed.  One in the background is kept after it was cancelled or has
 * failed, and the events of its stream are kept, in chunks.  All functions
 * return as those of schema.h do.
 */

#define DSA_PROGRESS_LEASE   30                 /* seconds; renew it three
                                                   times as often */
#define DSA_PROGRESS_TTL     (24 * 3600)        /* seconds, of one that is not
                                                   in the background and whose
                                                   worker was killed */

/* the events of a response: their bytes, and how long they outlive it */

#define DSA_PROGRESS_EVENTS      (8 * 1024 * 1024)
#define DSA_PROGRESS_EVENTS_TTL  3600

#define DSA_PROGRESS_CHUNK       (64 * 1024)    /* bytes of a chunk, at most */
#define DSA_PROGRESS_CHUNKS      16             /* in one reply, at most */

_Static_assert((DSA_PROGRESS_CHUNKS + 1) * DSA_PROGRESS_CHUNK
               <= DSA_SCHEMA_MAX_REPLY, "the chunks of a reply are accepted");

#define DSA_PROGRESS_ERROR   512                /* bytes of an error's text */


/*
 * The response object while it is in progress, cut at the values of the members
 * from "status" to "error": before, these, after.
 */

typedef struct {
    dsa_str_t    tenant;
    dsa_str_t    id;
    dsa_str_t    before;
    dsa_str_t    after;
    unsigned     background:1;
    unsigned     streams:1;         /* in the background, and its events are
                                       kept */
} dsa_progress_t;


/* What the state of a response is for its worker; as in the scripts. */

typedef enum {
    DSA_PROGRESS_GONE = 0,          /* it was deleted, or has expired */
    DSA_PROGRESS_RUNS,
    DSA_PROGRESS_CANCELLED,
    DSA_PROGRESS_LARGE              /* it runs, and has too many events */
} dsa_progress_e;


/*
 * Begins.  Redis replies DSA_PROGRESS_RUNS, also if it has begun already; or,
 * for one in the background, that it exceeds the quota.
 */
int dsa_progress_begin(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_progress_t *p, const dsa_schema_storage_t *storage);

/* Renews the lease.  Redis replies with a dsa_progress_e. */
int dsa_progress_renew(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_progress_t *p);

/*
 * Stores a chunk of events, 1 to DSA_PROGRESS_CHUNK bytes, and renews the
 * lease.  A chunk with the same number is replaced, so that the command can be
 * sent again.  Redis replies with a dsa_progress_e; LARGE, or that it exceeds
 * the quota: the chunk is not stored.
 */
int dsa_progress_append(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_progress_t *p, uint32_t chunk, dsa_str_t events,
    const dsa_schema_storage_t *storage);

/*
 * Ends without an answer.  error: why, at most DSA_PROGRESS_ERROR bytes; the
 * response then is kept and has failed.  Empty: nothing of it is kept.  Redis
 * replies 1, or 0 if it does not run.
 */
int dsa_progress_end(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_progress_t *p, dsa_str_t error);


/* What a reader gets. */

typedef enum {
    DSA_PROGRESS_STORED = 0,        /* the node, as dsa_response_load() */
    DSA_PROGRESS_OPEN,              /* it runs */
    DSA_PROGRESS_FAILED,
    DSA_PROGRESS_STOPPED,           /* it was cancelled */
    DSA_PROGRESS_UNKNOWN,           /* there is no such response */
    DSA_PROGRESS_ATTACHED           /* it is not in the background, and cannot
                                       be cancelled */
} dsa_progress_state_e;

typedef struct {
    dsa_progress_state_e  state;
    dsa_str_t             before;
    dsa_str_t             output;   /* with STORED only */
    dsa_str_t             after;
    dsa_str_t             error;    /* with FAILED: why */
} dsa_progress_view_t;


/*
 * Reads a response, or cancels it if it runs in the background.  Redis replies
 * with what dsa_progress_view() reads.
 */
int dsa_progress_read(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);
int dsa_progress_cancel(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);

/* The bytes of the view are the reply's.  DSA_OK or DSA_ERROR. */
int dsa_progress_view(dsa_progress_view_t *view, const redisReply *reply,
    dsa_err_t *err);

/*
 * Reads up to DSA_PROGRESS_CHUNKS chunks of events from a number on, up to the
 * first one that is missing.  Redis replies with what dsa_progress_events()
 * reads.
 */
int dsa_progress_follow(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, uint32_t chunk);

typedef struct {
    unsigned     exists:1;          /* there is such a response */
    unsigned     runs:1;            /* more chunks may follow */
    unsigned     kept:1;            /* its events are kept */
    unsigned     large:1;           /* it has more events than are kept */
    uint32_t     n;
    dsa_str_t    chunk[DSA_PROGRESS_CHUNKS];
} dsa_progress_events_t;

/* The same as dsa_progress_view(). */
int dsa_progress_events(dsa_progress_events_t *events,
    const redisReply *reply, dsa_err_t *err);


#endif /* _DSA_PROGRESS_H_INCLUDED_ */
