
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_JOURNAL_H_INCLUDED_
#define _DSA_JOURNAL_H_INCLUDED_


#include <sys/types.h>

#include "engine/service/journal_thread.h"
#include "engine/service/request.h"


/*
 * The journal of a null backend: a file with a line of JSON for each record
 * that the replica writes for a request.  Tests compare it with the ledger.
 * README.md describes the lines.
 *
 * A thread of its own writes the lines.  The records of a round wait until
 * their lines are written, so that the lines are in the file even if the
 * replica is killed, unless the file does not keep up (journal_thread.h).
 *
 * All functions except open, start and close are called by the I/O thread.  A
 * journal that is NULL ignores all calls.
 */

typedef struct {
    dsa_journal_thread_t   *thread;
    uint32_t                replica;    /* number */
    pid_t                   pid;        /* of the replica */
    dsa_buf_t               lines;      /* that were not handed over yet */
    uint32_t                n;          /* of them */
    uint64_t                round;      /* how often records were committed */
} dsa_journal_t;


/*
 * Opens or creates the file, which several replicas may share.  NULL with err.
 */
dsa_journal_t *dsa_journal_open(const char *path, uint32_t replica,
    dsa_err_t *err);

/* Starts the thread, which writes to wake when lines were written. */
int dsa_journal_start(dsa_journal_t *j, int wake, dsa_err_t *err);

/* Writes the rest, within DSA_JOURNAL_END_MS, and frees the journal. */
void dsa_journal_close(dsa_journal_t *j);

/* Add a line for ACCEPTED, a TOKENS with n tokens, or the last record of r. */
void dsa_journal_accepted(dsa_journal_t *j, const dsa_request_t *r);
void dsa_journal_tokens(dsa_journal_t *j, const dsa_request_t *r, uint32_t n);
void dsa_journal_last(dsa_journal_t *j, const dsa_request_t *r);

/*
 * Adds a line for a request without a last record, because its worker is gone.
 */
void dsa_journal_left(dsa_journal_t *j, const dsa_request_t *r);

/* Hands over the lines of a round. */
void dsa_journal_flush(dsa_journal_t *j, uint64_t now_ms);

/*
 * The workers can read the records of all lines up to here.  Lines after it
 * have another number of a round: if the replica is killed, the records of the
 * last number in the file may not have been committed.
 */
void dsa_journal_commit(dsa_journal_t *j);

/* Returns 1 while records should wait for their lines. */
int dsa_journal_pending(dsa_journal_t *j, uint64_t now_ms);


#endif /* _DSA_JOURNAL_H_INCLUDED_ */
