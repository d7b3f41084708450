
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _OBSERVE_H_INCLUDED_
#define _OBSERVE_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * Starts a thread that records when tokens are published.  It has a stream of
 * its own, directly from the source of the tokens.  The engine and
 * bench/source.c give all streams a token in the same step, so the times of
 * one stream are the times of all.
 *
 * where is unix:PATH, the socket of an engine, to which the thread connects as
 * an nginx worker does (engine/link.h), or the port of bench/source.c.
 * Returns when the first token has arrived: 0, or -1 with errno.
 */
int observe_start(const char *where);

/*
 * Waits until observe_ticks() has every token that was published before this
 * call, that is, for the next token of the observer's stream.  0, or -1 with
 * errno if that stream has ended or no token arrived for 10 seconds.
 */
int observe_catch_up(void);

/* The times of all tokens so far, ascending, in ns of CLOCK_MONOTONIC. */
const uint64_t *observe_ticks(size_t *n);

/* Now, in ns of CLOCK_MONOTONIC. */
uint64_t observe_now(void);


#endif /* _OBSERVE_H_INCLUDED_ */
