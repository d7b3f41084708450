
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ARGUMENTS_H_INCLUDED_
#define _DSA_ARGUMENTS_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"


/*
 * Inside context/: reads arguments of a tool call that are not a JSON
 * object, because max_tokens cut them or the model wrote something else.
 * Members are found as far as the text has them; a value is not checked, it
 * reaches to the next comma or brace that is outside of its own brackets and
 * strings.
 */

typedef struct {
    const char   *p;
    const char   *end;
    int           begun;
} dsa_arguments_t;


typedef struct {
    dsa_str_t     key;          /* the inside of a JSON string */
    dsa_str_t     value;        /* a string: its inside; any other: all */
    dsa_str_t     json;         /* the value as it stands in the text */
    int           string;
} dsa_argument_t;


void dsa_arguments_start(dsa_arguments_t *a, dsa_str_t text);

/*
 * 1 and the next member; 0 at the end of the object or of a text that was cut
 * within the object; DSA_ERROR when the text is not the beginning of an
 * object, goes on behind it, or is cut within a name.  The last member of a
 * text that was cut has the value that is there.
 */
int dsa_arguments_next(dsa_arguments_t *a, dsa_argument_t *arg);


#endif /* _DSA_ARGUMENTS_H_INCLUDED_ */
