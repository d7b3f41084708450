
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_WRONG_H_INCLUDED_
#define _NGX_HTTP_DSA_WRONG_H_INCLUDED_


#include <stdint.h>


#define NGX_HTTP_DSA_WRONG        240       /* bytes of a reason */


/* Why a record or a hello is not accepted.  Plain C. */

typedef struct {
    const char *name;               /* of the record */
    const char *field;              /* at fault */
    char        text[NGX_HTTP_DSA_WRONG];   /* of the log, after the name: the
                                               value of the field, and what
                                               would be accepted */
} ngx_http_dsa_wrong_t;


/* Sets field and text of w, and returns -1. */
int ngx_http_dsa_wrong(ngx_http_dsa_wrong_t *w, const char *field,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Returns 0 if value is low .. high; otherwise sets field and text of w, and
 * returns -1.  If high is UINT32_MAX, the text has only low.
 */
int ngx_http_dsa_wrong_range(ngx_http_dsa_wrong_t *w, const char *field,
    uint64_t value, uint64_t low, uint64_t high);


#endif /* _NGX_HTTP_DSA_WRONG_H_INCLUDED_ */
