
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TYPES_H_INCLUDED_
#define _DSA_TYPES_H_INCLUDED_


#include "base/json.h"


/*
 * The types that the schemas of tools permit for the arguments of calls.  A
 * family whose calls do not contain types needs them: the text 12 is a number
 * or a string, as the schema of the argument has it.
 *
 * Each argument takes 8 bytes, because thousands of answers are open at once:
 * 57 bits of a hash of its names, and the types.
 */

#define DSA_TYPE_TEXT       0x1U        /* string */
#define DSA_TYPE_WHOLE      0x2U        /* integer */
#define DSA_TYPE_FRACTION   0x4U        /* a number with a fraction */
#define DSA_TYPE_TRUTH      0x8U        /* boolean */
#define DSA_TYPE_NOTHING    0x10U       /* null */
#define DSA_TYPE_LIST       0x20U       /* array */
#define DSA_TYPE_MEMBERS    0x40U       /* object */

#define DSA_TYPE_ALL        0x7fU


typedef struct dsa_types_s  dsa_types_t;


/*
 * Reads an array of tools as a chat has it; NULL: there are none.  At most
 * 262,144 values are read, each once for each $ref to it.  A tool that needs
 * more, and those behind it, have all types.  NULL: out of memory.
 */
dsa_types_t *dsa_types_create(const dsa_json_t *tools);
void dsa_types_destroy(dsa_types_t *types);     /* NULL is allowed */

/*
 * The types of an argument of a tool.  An argument that no schema mentions has
 * all types; types NULL: nothing is known.
 */
uint32_t dsa_types_find(const dsa_types_t *types, dsa_str_t tool,
    dsa_str_t argument);


#endif /* _DSA_TYPES_H_INCLUDED_ */
