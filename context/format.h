
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FORMAT_H_INCLUDED_
#define _DSA_FORMAT_H_INCLUDED_


#include "context/family.h"


/*
 * The structure that a request demands of its answer, as the spec that
 * grammar/grammar.h describes.
 *
 *     response_format         spec
 *     text                    none
 *     json_object             {"type": "json_object"}
 *     json_schema             {"type": "json_schema", ...}
 *
 *     tool_choice             spec
 *     none                    that of response_format
 *     auto                    tools, with text, if one of them is strict or
 *                             parallel_tool_calls is false; with a
 *                             response_format: tools, and its structure in
 *                             place of the text
 *     required, named         tools, without text
 */

#define DSA_FORMAT_SPEC     (1U << 20)  /* most bytes of a spec */


typedef struct {
    dsa_str_t           spec;           /* JSON; len 0: no constraint */
    unsigned            tools:1;        /* the spec has tools, and */
    unsigned            schema:1;       /* the spec has a schema for a text */
    unsigned            either:1;       /* the spec has tools, and a structure
                                           for the text */
    const char         *syntax;         /* of calls */
    uint32_t            first_tool;     /* the first one of them is this one of
                                           the request */
    const dsa_format_names_t  *names;   /* for refusals */
    const dsa_json_t   *made_tools;     /* those with a "place"; NULL: a path
                                           has the number of a tool */
} dsa_format_t;


/*
 * Makes the spec, in which calls have the syntax of the family; it is allocated
 * from arena.  DSA_ERROR: refusal is filled in, because the fields contradict
 * each other, the spec is too long, or there is no memory.  Whether a schema
 * can be enforced is the compiler's matter.
 */
int dsa_format_spec(dsa_format_t *format, const dsa_family_t *family,
    const dsa_chat_t *chat, dsa_arena_t *arena, dsa_refusal_t *refusal);

/*
 * A refusal of a schema that cannot be enforced: path and message are those of
 * the compiler.  path "properties.a" becomes
 * "response_format.json_schema.schema.properties.a"; a path that begins with
 * "tools[0]" keeps its form with the place of the tool in the request.  The
 * names are those of the request's API.
 */
int dsa_format_refuse(const dsa_format_t *format, const char *path,
    const char *message, dsa_refusal_t *refusal);


#endif /* _DSA_FORMAT_H_INCLUDED_ */
