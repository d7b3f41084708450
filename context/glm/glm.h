
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GLM_H_INCLUDED_
#define _DSA_GLM_H_INCLUDED_


#include "context/completion.h"
#include "context/family.h"
#include "context/glm/tokens.h"


/*
 * The families of GLM-4.7-Flash, 5, 5.1, 5.2 and 5.3: the prompt format of the
 * chat templates that are published with the models, one for each version.  The
 * output format is the same for all of them.
 */

extern const dsa_family_t  dsa_glm_4_7_flash;
extern const dsa_family_t  dsa_glm_5;
extern const dsa_family_t  dsa_glm_5_1;
extern const dsa_family_t  dsa_glm_5_2;
extern const dsa_family_t  dsa_glm_5_3;


/* Inside this folder: in what the versions differ. */

typedef struct {
    const char          *no_reasoning;  /* begins an answer without it */
    uint32_t             efforts;       /* bits 1 << dsa_effort_e that the
                                           prompt has a word for, or 0: the
                                           prompt has no line of the effort */
    unsigned             whole_tools:1; /* a tool is written as the request has
                                           it, not its function only */
    unsigned             bare_reasoning:1;  /* reasoning without the white
                                           space around it; empty reasoning is
                                           none */
    unsigned             pairs:1;       /* empty reasoning is written in answers
                                           after the last question, and in turns
                                           with reasoning */
    unsigned             keeps:1;       /* reasoning before the last question
                                           stays, unless the request clears
                                           it */
    unsigned             sorted:1;      /* results come in the order of the
                                           calls, not of the request */
} dsa_glm_version_t;


/* The functions of the families, see context/family.h. */

int dsa_glm_apply(const dsa_glm_version_t *version, dsa_chat_t *chat,
    dsa_refusal_t *refusal);
int dsa_glm_encode(const dsa_glm_version_t *version, dsa_prompt_t *prompt,
    dsa_arena_t *arena, const dsa_chat_t *chat, dsa_err_t *err);
int dsa_glm_complete(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_completion_t *completion, dsa_err_t *err);
int dsa_glm_ask(const dsa_glm_version_t *version, dsa_prompt_t *prompt,
    dsa_arena_t *arena, dsa_str_t question, dsa_str_t answer,
    dsa_err_t *err);

extern const dsa_parser_t  dsa_glm_parser;


/* strip.c: the text without white space at both ends, as Python's strip(). */
dsa_str_t dsa_glm_strip(dsa_str_t text);


#endif /* _DSA_GLM_H_INCLUDED_ */
