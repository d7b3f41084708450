
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_KEY_PRINT_H_INCLUDED_
#define _DSA_TOOLS_KEY_PRINT_H_INCLUDED_


#include "redis_schema/keys.h"
#include "tools/key_store.h"


/*
 * Print to stdout, for people: a table of keys, and all members of one key.
 * Hashes are left out.  now: seconds since 1970.  DSA_ERROR with err: out of
 * memory.  Errors of stdout are found by its next fflush().
 */
int dsa_key_print_table(const dsa_key_list_t *list, int64_t now,
    dsa_err_t *err);
void dsa_key_print(const dsa_key_t *key, int64_t now);


#endif /* _DSA_TOOLS_KEY_PRINT_H_INCLUDED_ */
