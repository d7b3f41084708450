
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MAP_H_INCLUDED_
#define _DSA_MAP_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"


/*
 * Names to numbers, in constant time: a checkpoint has some 100,000 tensors.
 * A zeroed table is an empty one.  The names' bytes are the caller's and
 * outlive the table.
 */

typedef struct {
    dsa_str_t       name;           /* data NULL: free */
    uint32_t        value;
} dsa_map_slot_t;


typedef struct {
    dsa_map_slot_t     *slot;       /* open addressing */
    uint32_t            size;       /* a power of two, at most half full */
    uint32_t            n;
} dsa_map_t;


/*
 * DSA_OK; DSA_AGAIN when the name is there already, whose value then stays;
 * DSA_ERROR when there is no memory.
 */
int dsa_map_add(dsa_map_t *t, dsa_str_t name, uint32_t value);

/* The name's value, -1 when it is not there. */
int64_t dsa_map_find(const dsa_map_t *t, dsa_str_t name);

void dsa_map_free(dsa_map_t *t);


#endif /* _DSA_MAP_H_INCLUDED_ */
