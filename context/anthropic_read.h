
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ANTHROPIC_READ_H_INCLUDED_
#define _DSA_ANTHROPIC_READ_H_INCLUDED_


#include "context/read.h"


/*
 * Inside context/: the parts of a body of Anthropic's Messages API.  Each
 * returns DSA_OK, or DSA_ERROR with r->refusal.
 */

/* anthropic_message.c: system and messages; r->chat->thinking is set. */
int dsa_anthropic_messages(dsa_reader_t *r, const dsa_json_t *root);

/*
 * anthropic_block.c: reads one content block, which must be an object, and
 * finds its type.  It is one of the types; the last one is NULL.  A type of
 * another API or of a tool that runs on Anthropic's servers is refused, and so
 * is a wrong cache_control.
 */
int dsa_anthropic_block(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v, const char *const *types, const char **type);

/* A required string of a block. */
int dsa_anthropic_string(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *block, const char *name, dsa_str_t *out);

/* anthropic_block.c: checks the cache_control of a block, tool or request. */
int dsa_anthropic_cache(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj);

/* anthropic_tools.c: tools and tool_choice. */
int dsa_anthropic_tools(dsa_reader_t *r, const dsa_json_t *root);

/* anthropic_edits.c: context_management and compaction. */
int dsa_anthropic_management(dsa_reader_t *r, const dsa_json_t *root);
int dsa_anthropic_summarize(dsa_reader_t *r, const dsa_json_t *root);

/* anthropic_output.c: output_config and output_format. */
int dsa_anthropic_output(dsa_reader_t *r, const dsa_json_t *root);


#endif /* _DSA_ANTHROPIC_READ_H_INCLUDED_ */
