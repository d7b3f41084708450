
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TAG_H_INCLUDED_
#define _DSA_TAG_H_INCLUDED_


#include "context/parse.h"


/*
 * Inside this folder: reads the attributes of an invoke or parameter tag byte
 * by byte.  They begin after the tag's name, for example
 *
 *      name="city" string="true">
 */

#define DSA_TAG_MAX  (DSA_PARSE_NAME + 64)


typedef struct {
    uint32_t    len;
    char        data[DSA_TAG_MAX];
} dsa_tag_t;


void dsa_tag_start(dsa_tag_t *t);

/*
 * Returns 1 if c ends the tag, otherwise 0.  A name may contain both ">" and
 * quotes.  So the tag ends at a ">" that follows a quote, or at any ">" if it
 * has had no quote yet.
 */
int dsa_tag_byte(dsa_tag_t *t, char c);

/*
 * The value of name="..." of a tag that has ended, and whether string="true"
 * follows it.  The data of the result is NULL if there is no name, if it is
 * longer than DSA_PARSE_NAME, or if anything else follows it.
 */
dsa_str_t dsa_tag_name(const dsa_tag_t *t, int *string);


#endif /* _DSA_TAG_H_INCLUDED_ */
