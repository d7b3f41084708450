
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_KEY_FILE_H_INCLUDED_
#define _DSA_TOOLS_KEY_FILE_H_INCLUDED_


#include "tools/key_store.h"


/*
 * A file of key entries: see key_store.h.  Empty lines, and lines that begin
 * with "#", are skipped and kept.
 */

typedef struct dsa_key_file_s  dsa_key_file_t;


/*
 * Reads the file, and locks it unless mode is DSA_KEY_STORE_READ.  NULL with
 * err: it cannot be read, a line is not a key entry, or two key entries have
 * the same id or the same hash.
 */
dsa_key_file_t *dsa_key_file_open(const char *path, dsa_key_store_mode_e mode,
    dsa_err_t *err);

void dsa_key_file_close(dsa_key_file_t *file);          /* NULL is allowed */

/* The key entries in the order of the lines; they live as long as the file. */
const dsa_key_list_t *dsa_key_file_list(const dsa_key_file_t *file);

/*
 * Replaces the key entry with the id of this key, or appends it.  The new file
 * has the mode and the owner of the old one.  The list does not change.
 */
int dsa_key_file_put(dsa_key_file_t *file, const dsa_key_t *key,
    dsa_err_t *err);


#endif /* _DSA_TOOLS_KEY_FILE_H_INCLUDED_ */
