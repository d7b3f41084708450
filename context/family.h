
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FAMILY_H_INCLUDED_
#define _DSA_FAMILY_H_INCLUDED_


#include "context/chat.h"
#include "context/prompt.h"


/*
 * A family of models: how prompts are written for them, and how their output is
 * read.  An engine names the family of its model in its hello.  Everything else
 * in context/ is the same for all families, and calls them by this struct.  A
 * family is a folder of context/ and a line of the table in family.c.
 */

#define DSA_FAMILY_NAME     16          /* bytes of a name with its NUL, as in
                                           dsa_link_hello_t */

/* The modes in which the models of a family can answer. */

#define DSA_MODE_CHAT       0x1U        /* without thinking */
#define DSA_MODE_THINKING   0x2U


typedef struct dsa_family_s  dsa_family_t;
typedef struct dsa_parser_s  dsa_parser_t;      /* parser.h */


struct dsa_family_s {
    const char            *name;
    const char            *owner;       /* who made the models, as their own
                                           API lists them */
    dsa_control_tokens_t   tokens;
    uint32_t               modes;       /* 0: text completions only */
    const char            *title;       /* with modes 0: the models, for an
                                           error */
    const char            *syntax;      /* of tool calls: that of the spec in
                                           grammar/grammar.h; NULL: tools are
                                           refused */
    uint32_t               typed;       /* 1: calls do not contain the types of
                                           their arguments, so the parser needs
                                           those of the tools, see types.h */
    const char            *fim;         /* the names of the control tokens of a
                                           completion with a suffix, for an
                                           error; NULL: the models cannot fill
                                           in the middle */
    const dsa_parser_t    *parser;

    /*
     * Completes a chat by what the family does where the request is silent:
     * whether the model thinks, with which effort, what happens to earlier
     * reasoning, and which fields of sampling count.  DSA_ERROR: the request
     * has a value that the family does not have, and refusal is filled in.
     */
    int                  (*apply)(dsa_chat_t *chat, dsa_refusal_t *refusal);
                                        /* NULL: nothing */

    /*
     * Encodes a chat that dsa_chat_check() and dsa_family_check() accepted.
     * The prompt and its texts are allocated from arena.  DSA_ERROR with err:
     * tool messages do not match the calls before them, a number exceeds the
     * range of a double, or there is no memory.
     *
     * If the last message is an assistant message with prefix set, its end is
     * left open, and the model continues it.  Without prefix it is ended.  If
     * the chat is hosted, the prompt then begins another answer, in the way in
     * which an answer behind another one is written in a history, so that the
     * prompt stays a prefix of the next one; otherwise nothing follows, as
     * published.  NULL: modes is 0.
     */
    int                  (*encode)(dsa_prompt_t *prompt, dsa_arena_t *arena,
                                   const dsa_chat_t *chat, dsa_err_t *err);

    /* The same for a completion that dsa_family_check() accepted. */
    int                  (*complete)(dsa_prompt_t *prompt, dsa_arena_t *arena,
                                     const dsa_completion_t *completion,
                                     dsa_err_t *err);

    /*
     * Adds a question of the user to the prompt of a chat, and the beginning
     * of an answer without thinking.  If the prompt ends where an answer
     * begins, that answer stays empty.  Reasoning that a new question would
     * remove from the prompt stays, so that the prompt remains a prefix of the
     * result.  DSA_ERROR with err: there is no memory.  NULL: modes is 0.
     */
    int                  (*ask)(dsa_prompt_t *prompt, dsa_arena_t *arena,
                                dsa_str_t question, dsa_str_t answer,
                                dsa_err_t *err);
};


/* The families of this program; the last element is NULL. */
extern const dsa_family_t *const  dsa_families[];


/* The family with this name, or NULL if there is none. */
const dsa_family_t *dsa_family_find(const char *name);

/*
 * Completes a chat or completion as the family has it.  It is called once for
 * each chat, before the functions of retain.h and dsa_chat_check().  DSA_ERROR:
 * refusal is filled in.
 */
int dsa_family_apply(const dsa_family_t *family, dsa_chat_t *chat,
    dsa_refusal_t *refusal);

/*
 * Refuses a chat or completion that needs a mode or tools that the family does
 * not have.
 * DSA_ERROR: refusal is filled in.
 */
int dsa_family_check(const dsa_family_t *family, const dsa_chat_t *chat,
    dsa_refusal_t *refusal);


#endif /* _DSA_FAMILY_H_INCLUDED_ */
