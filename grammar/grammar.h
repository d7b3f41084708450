
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GRAMMAR_H_INCLUDED_
#define _DSA_GRAMMAR_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"
#include "base/json.h"


/*
 * Constrained output.  A request names the structure of its answer in a spec; a
 * spec is compiled once to a grammar over bytes; a matcher follows one answer
 * through its grammar, and turns its state into a mask over the vocabulary.
 *
 * nginx writes the spec, and the engine compiles it.
 *
 * A spec is JSON:
 *
 *     {"type": "json_object"}
 *
 *     {"type": "json_schema", "strict": true | false, "schema": {...}}
 *
 *     {"type": "tools", "syntax": "deepseek-v3.1" | "dsml" | "glm",
 *      "calls": "one" | "many",
 *      "text": false | true | {"type": "json_schema", ...},
 *      "tools": [{"name": "get_weather", "strict": true,
 *                 "parameters": {...}},
 *                {"name": "calculate",
 *                 "input": {"syntax": "lark", "definition": "..."}}, ...]}
 *
 * json_object and json_schema: the answer is one JSON value, compact or with
 * JSON's white space, at most a few characters of it between two tokens.
 * Properties appear in the order of the schema.  strict false: keywords that
 * cannot be enforced are left out; if that does not suffice, the answer is any
 * JSON object.  It is true by default.
 *
 * tools: the answer is a block of calls in the syntax of the model family, of
 * one of the tools each: deepseek-v3.1 for that model, dsml for DeepSeek-V3.2,
 * glm for GLM-5.  calls "one": exactly one; "many": one or more.  text true:
 * text may come before the block, and the answer may be text only (the request
 * has strict tools, and tool_choice is auto).  text json_object or json_schema:
 * the answer is the block, or else one JSON value as above.
 * strict false: as in a json_schema; the arguments are any JSON if leaving out
 * keywords does not suffice, or without parameters.  input: the only argument
 * is the string "input", whose text is in the language of a grammar.
 */

#define DSA_GRAMMAR_SPEC        (1U << 20)  /* most bytes of a spec */
#define DSA_GRAMMAR_WORK        (1U << 22)  /* steps of a compilation, about 50
                                               ms */
#define DSA_VOCABULARY_MEMORY   (512U << 20)    /* bytes of the states of all
                                               answers */


/* Why a spec cannot be enforced; a schema's author reads it. */

typedef struct {
    char                path[256];      /* of the schema, "" for its root, for
                                           example "properties.a.items"; in
                                           one of the tools it begins
                                           "tools[0].function.parameters", or
                                           is that with "format.definition" */
    char                message[400];   /* what is wrong, and what would be
                                           accepted */
    uint32_t            no_memory;      /* 1: the schema is not at fault */
    uint32_t            work;           /* steps of the compilation, also of a
                                           spec without an error: at most
                                           DSA_GRAMMAR_WORK, and half of it
                                           more if a schema is optional */
} dsa_grammar_error_t;


typedef struct dsa_grammar_s  dsa_grammar_t;
typedef struct dsa_vocabulary_s  dsa_vocabulary_t;
typedef struct dsa_matcher_s  dsa_matcher_t;


/*
 * Compiles a spec.  control: the name of the first control token of the tool
 * syntax, which is not empty, and outlives the grammar; dsml has no others, and
 * the other syntaxes have fixed names.  Time and memory are bounded for every
 * spec; a schema that needs more is refused.  A grammar does not
 * change: threads may share it.  DSA_ERROR: error is set.
 */
int dsa_grammar_compile(dsa_grammar_t **grammar, dsa_str_t spec,
    dsa_str_t control, dsa_grammar_error_t *error);
void dsa_grammar_free(dsa_grammar_t *grammar);      /* NULL is allowed */

/*
 * How many conditions of schemas that are not strict were left out; one for a
 * schema that any JSON object replaces.
 */
uint32_t dsa_grammar_skipped(const dsa_grammar_t *grammar);

/* Returns 1 if any JSON objects replace all schemas that are not strict. */
int dsa_grammar_loose(const dsa_grammar_t *grammar);

/* The bytes that a grammar takes now, with the states of its answers. */
size_t dsa_grammar_bytes(dsa_grammar_t *grammar);


/*
 * The vocabulary as a trie, made once for each tokenizer.  A token is its
 * bytes, or a control token with a name, which never matches bytes.  add() is
 * called for all ids in rising order; ids that were not added are never
 * permitted.  seal() makes the trie; DSA_ERROR: no memory.
 *
 * end: the ids that end an answer; they are permitted where the answer is
 * complete.
 */
dsa_vocabulary_t *dsa_vocabulary_create(uint32_t size);
int dsa_vocabulary_add(dsa_vocabulary_t *v, uint32_t id, dsa_str_t bytes);
int dsa_vocabulary_add_control(dsa_vocabulary_t *v, uint32_t id,
    dsa_str_t name);
int dsa_vocabulary_end(dsa_vocabulary_t *v, const uint32_t *end, uint32_t n);
int dsa_vocabulary_seal(dsa_vocabulary_t *v);
void dsa_vocabulary_free(dsa_vocabulary_t *v);      /* NULL is allowed */

/*
 * The bytes that the states and masks of all grammars take, and how many they
 * may take before each of them is limited to a small share: by default
 * DSA_VOCABULARY_MEMORY.  A test sets the limit before the first matcher.
 */
size_t dsa_vocabulary_used(const dsa_vocabulary_t *v);
void dsa_vocabulary_limit(dsa_vocabulary_t *v, size_t bytes);


/*
 * A matcher of one answer; its grammar and vocabulary outlive it.  NULL: no
 * memory.  A matcher is used by one thread at a time; those of one grammar and
 * vocabulary share states and masks, which have a lock.
 *
 * A matcher keeps one state, and one for each draft.  If there is no memory for
 * the next one, it has failed, and the answer cannot go on: the functions below
 * then refuse tokens and leave masks as they are.
 *
 * begin: the name of the control token behind which the grammar begins, for
 * example "</think>", or an empty string: it begins at once.  Before it, every
 * id is permitted except those that end the answer.
 */
dsa_matcher_t *dsa_matcher_create(dsa_grammar_t *grammar,
    dsa_vocabulary_t *v, dsa_str_t begin);
void dsa_matcher_free(dsa_matcher_t *m);            /* NULL is allowed */

/* 1: the matcher has failed. */
int dsa_matcher_failed(const dsa_matcher_t *m);

/*
 * The next token of the answer; there are no drafts.  DSA_ERROR: the grammar
 * does not permit it, and the matcher is as it was before; or it has failed.
 */
int dsa_matcher_accept(dsa_matcher_t *m, uint32_t id);

/*
 * The same for a draft: a token that dsa_matcher_undo() takes back, with all
 * other drafts.
 */
int dsa_matcher_draft(dsa_matcher_t *m, uint32_t id);
void dsa_matcher_undo(dsa_matcher_t *m);

/*
 * 1: the mask is in the cache, or this call has made it within about 20 us, so
 * dsa_matcher_mask() takes microseconds; or the matcher has failed.  0:
 * dsa_matcher_mask() takes up to 10 ms, unless dsa_matcher_warm() is called
 * before.  That makes the mask in the thread of its caller; matchers in other
 * threads go on meanwhile.
 */
int dsa_matcher_ready(dsa_matcher_t *m);
void dsa_matcher_warm(dsa_matcher_t *m);

/*
 * Clears the bits of the ids that may not come next; mask [words], words =
 * ceil(size / 32), bit id % 32 of word id / 32.  At least one bit stays.
 */
void dsa_matcher_mask(dsa_matcher_t *m, uint32_t *mask, uint32_t words);

/* 1: the answer is complete, and may end here. */
int dsa_matcher_complete(const dsa_matcher_t *m);


#endif /* _DSA_GRAMMAR_H_INCLUDED_ */
