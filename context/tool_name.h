
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOL_NAME_H_INCLUDED_
#define _DSA_TOOL_NAME_H_INCLUDED_


#include "base/arena.h"
#include "base/str.h"


/*
 * The Responses API has tools in namespaces: the same name may be in several of
 * them, and a call has both.  A model reads and writes one name, which is
 * NAMESPACE.NAME.  A name of OpenAI's has no dot, so the first one divides the
 * two without a list of the tools.
 */


#define DSA_TOOL_NAME   128             /* bytes of a name or a namespace */

/* A custom tool is read as a function with one parameter of this name. */
#define DSA_TOOL_INPUT  "input"


/*
 * Splits the name that a model wrote: *space is what is before the first dot,
 * *name what is behind it.  0: the name has no namespace, and neither is
 * changed.
 */
int dsa_tool_name_split(dsa_str_t *space, dsa_str_t *name);

/*
 * Sets *name to the name that a model reads, which is in the arena if space is
 * not empty.  DSA_ERROR: out of memory.
 */
int dsa_tool_name_join(dsa_arena_t *arena, dsa_str_t space, dsa_str_t *name);


#endif /* _DSA_TOOL_NAME_H_INCLUDED_ */
