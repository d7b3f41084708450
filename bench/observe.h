
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _OBSERVE_H_INCLUDED_
#define _OBSERVE_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * Sees when tokens are published: a thread with a stream of its own, straight
 * from where they come.  The engine and bench/source.c give all their streams
 * a token in the same step, so the times of one are the times of all.
 *
 * where is unix:PATH, an engine's socket, which is spoken to as an nginx
 * worker does (engine/link.h), or the port of bench/source.c.  Returns when
 * the first token has come: 0, or -1 with errno.
 */
int observe_start(const char *where);

/*
 * Returns when observe_ticks() has every token that was published before this
 * call: at the next token, because the observer's stream goes on.  0, or -1
 * with errno when that stream has ended or nothing came for 10 seconds.
 */
int observe_catch_up(void);

/* The times of all tokens so far, ascending, in ns of CLOCK_MONOTONIC. */
const uint64_t *observe_ticks(size_t *n);

/* Now, in ns of CLOCK_MONOTONIC. */
uint64_t observe_now(void);


#endif /* _OBSERVE_H_INCLUDED_ */
