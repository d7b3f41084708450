
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GLM_ENCODE_H_INCLUDED_
#define _DSA_GLM_ENCODE_H_INCLUDED_


#include <stdlib.h>

#include "context/glm/glm.h"


/* Inside this folder: the parts of a prompt. */

/* An answer of the history, with its reasoning apart from its content. */

typedef struct {
    dsa_str_t    reasoning;
    dsa_str_t    content;
    int          has_reasoning;     /* it may be empty */
} dsa_glm_answer_t;


/*
 * Reads an answer.  If the message has no reasoning of its own and its content
 * has a </think>, the content is split as the templates do it.  The reasoning
 * is the text before the first </think>, without what precedes the last <think>
 * in this text.  The content is the text after the last </think>.  lines:
 * newlines around the reasoning do not belong to it.
 */
void dsa_glm_split(dsa_glm_answer_t *a, const dsa_message_t *m, int lines);

/* The list of tools; whole: see whole_tools of a version. */
void dsa_glm_write_tools(dsa_prompt_writer_t *w, const dsa_json_t *tools,
    int whole);

/*
 * A call.  String arguments are written without any escaping, all others as
 * JSON.
 */
void dsa_glm_write_call(dsa_prompt_writer_t *w, const dsa_tool_call_t *call);


#endif /* _DSA_GLM_ENCODE_H_INCLUDED_ */
