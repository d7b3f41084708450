
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ESCAPE_H_INCLUDED_
#define _DSA_ESCAPE_H_INCLUDED_


#include <stddef.h>


/*
 * Copies len bytes of text to out, as far as room bytes hold them, with each
 * byte of a control character (C0, DEL, C1), and each byte that is not UTF-8,
 * as \xNN.  Returns the bytes written; no NUL is added.
 */
size_t dsa_escape(char *out, size_t room, const char *text, size_t len);


#endif /* _DSA_ESCAPE_H_INCLUDED_ */
