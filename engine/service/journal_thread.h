
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_JOURNAL_THREAD_H_INCLUDED_
#define _DSA_JOURNAL_THREAD_H_INCLUDED_


#include "base/buf.h"
#include "base/error.h"


/*
 * A thread that appends lines to a file, so that a slow disk does not stop the
 * thread that makes the lines.  That thread, the caller of the functions below,
 * never waits for the disk.
 *
 * While the file keeps up, dsa_journal_thread_pending() returns 1 until the
 * lines are written, and what they report can wait for them.  After
 * DSA_JOURNAL_WAIT_MS it returns 0, and the lines are written later than what
 * they report; this ends when all lines are written, and after
 * DSA_JOURNAL_LATE_MS at the earliest.  Lines beyond DSA_JOURNAL_BYTES are
 * lost, and so are lines that cannot be written.  In their place is a line with
 * their number, which the caller makes.  The log has a line when this begins,
 * and when it ends.
 *
 * A file that was renamed or deleted is created again.
 */

#define DSA_JOURNAL_BYTES       (4 * 1024 * 1024)
#define DSA_JOURNAL_WAIT_MS     1000
#define DSA_JOURNAL_LATE_MS     10000
#define DSA_JOURNAL_END_MS      1000    /* for the rest, at the end */


typedef struct dsa_journal_thread_s  dsa_journal_thread_t;

/* Appends the line in place of so many lost ones.  It runs in the thread. */
typedef void (*dsa_journal_gap_pt)(void *data, dsa_buf_t *out, uint64_t lost);


/*
 * Opens or creates the file, which several processes may share.  The thread is
 * not started.  NULL with err.
 */
dsa_journal_thread_t *dsa_journal_thread_open(const char *path,
    dsa_journal_gap_pt gap, void *data, dsa_err_t *err);

/*
 * Starts the thread.  wake is an eventfd, which is written when lines were
 * written.  DSA_ERROR with err.
 */
int dsa_journal_thread_start(dsa_journal_thread_t *t, int wake,
    dsa_err_t *err);

/*
 * Writes the rest, and frees the thread.  If this takes more than
 * DSA_JOURNAL_END_MS, the thread is left to the end of the process, with data.
 * Returns 1 if data may be freed.
 */
int dsa_journal_thread_close(dsa_journal_thread_t *t);

/* Hands over n lines, and empties the buffer. */
void dsa_journal_thread_push(dsa_journal_thread_t *t, dsa_buf_t *lines,
    uint32_t n, uint64_t now_ms);

/* Returns 1 while what the lines report should wait for them. */
int dsa_journal_thread_pending(dsa_journal_thread_t *t, uint64_t now_ms);


#endif /* _DSA_JOURNAL_THREAD_H_INCLUDED_ */
