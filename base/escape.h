
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ESCAPE_H_INCLUDED_
#define _DSA_ESCAPE_H_INCLUDED_


#include <stddef.h>


/*
 * Copies text to out so that it is one line of valid UTF-8: each byte of a
 * control character (C0, DEL, C1) and each invalid byte becomes \xNN.  Stops
 * before the first character that does not fit room.  Returns the bytes
 * written; no NUL is added.
 */
size_t dsa_escape(char *out, size_t room, const char *text, size_t len);


#endif /* _DSA_ESCAPE_H_INCLUDED_ */
