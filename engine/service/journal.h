
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_JOURNAL_H_INCLUDED_
#define _DSA_JOURNAL_H_INCLUDED_


#include <sys/types.h>

#include "base/buf.h"
#include "engine/service/request.h"


/*
 * The journal of a null backend: a file with a line of JSON for each record
 * that the replica writes for a request.  Tests compare it with the ledger.
 * README.md describes the lines.
 *
 * The lines of a round of records are appended by one write(), before the
 * worker can read the records.  So they are in the file even if the replica is
 * killed.
 *
 * All functions except open and close are called by the I/O thread.  A journal
 * that is NULL ignores all calls.
 */

typedef struct {
    int             fd;                 /* -1: closed */
    uint32_t        replica;            /* number */
    pid_t           pid;                /* of the replica */
    dsa_buf_t       lines;              /* lines that are not written yet */
} dsa_journal_t;


/* Opens or creates the file, which several replicas may share. */
int dsa_journal_open(dsa_journal_t *j, const char *path, uint32_t replica,
    dsa_err_t *err);
void dsa_journal_close(dsa_journal_t *j);

/* Add a line for ACCEPTED, a TOKENS with n tokens, or the last record of r. */
void dsa_journal_accepted(dsa_journal_t *j, const dsa_request_t *r);
void dsa_journal_tokens(dsa_journal_t *j, const dsa_request_t *r, uint32_t n);
void dsa_journal_last(dsa_journal_t *j, const dsa_request_t *r);

/*
 * Adds a line for a request without a last record, because its worker is gone.
 */
void dsa_journal_left(dsa_journal_t *j, const dsa_request_t *r);

/* Appends the lines to the file.  A failure is logged. */
void dsa_journal_flush(dsa_journal_t *j);


#endif /* _DSA_JOURNAL_H_INCLUDED_ */
