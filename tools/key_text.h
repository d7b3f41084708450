
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_KEY_TEXT_H_INCLUDED_
#define _DSA_TOOLS_KEY_TEXT_H_INCLUDED_


#include "redis_schema/keys.h"


/*
 * The text of a key, "sk-dsa-" and 32 random bytes as base64url, with a line
 * feed.  It is a secret, so the caller wipes it after use.
 */

typedef struct {
    char  line[DSA_KEY_TEXT_LEN + 1];
} dsa_key_text_t;


/* Makes a text and its hash.  DSA_ERROR with err: there are no random bytes. */
int dsa_key_text_make(dsa_key_text_t *text, uint8_t hash[DSA_KEY_HASH_LEN],
    dsa_err_t *err);

/*
 * Prints the text to stdout, and a line about it to stderr.  id is that of
 * the key, which is already stored; command is "key create" or "key rotate".
 */
int dsa_key_text_print(const dsa_key_text_t *text, const char *command,
    dsa_str_t id, dsa_err_t *err);

/* Fills bytes, at most 256 of them. */
int dsa_key_random(void *bytes, size_t n, dsa_err_t *err);


#endif /* _DSA_TOOLS_KEY_TEXT_H_INCLUDED_ */
