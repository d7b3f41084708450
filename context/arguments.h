
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ARGUMENTS_H_INCLUDED_
#define _DSA_ARGUMENTS_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"


/*
 * Inside context/: reads arguments of a tool call that are not a JSON object,
 * because max_tokens cut them or because the model wrote something else.  It
 * finds the members that the text has.  It does not check values: a value ends
 * at the next comma or brace outside of its own brackets and strings.
 */

typedef struct {
    const char   *p;
    const char   *end;
    int           begun;
} dsa_arguments_t;


typedef struct {
    dsa_str_t     key;          /* the inside of a JSON string */
    dsa_str_t     value;        /* of a string its inside, otherwise json */
    dsa_str_t     json;         /* the value as it is in the text */
    int           string;
} dsa_argument_t;


void dsa_arguments_start(dsa_arguments_t *a, dsa_str_t text);

/*
 * Returns 1 and the next member; 0 at the end of the object, or of a text that
 * was cut within the object; DSA_ERROR if the text is not the beginning of an
 * object, continues after it, or was cut within a name.  The last member of a
 * text that was cut has its value up to the cut.
 */
int dsa_arguments_next(dsa_arguments_t *a, dsa_argument_t *arg);


#endif /* _DSA_ARGUMENTS_H_INCLUDED_ */
