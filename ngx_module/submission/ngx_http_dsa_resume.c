
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_resume.h"


struct ngx_http_dsa_resume_s {
    dsa_link_submit_t         head;         /* of choice 0 */
    uint32_t                  context;      /* of the engine */
    char                      model[64];    /* of the model that it serves */
    char                      fingerprint[40];
    uint32_t                  n_fields;
    ngx_http_dsa_field_t      fields[];     /* n_fields, and one for the
                                               tokens; then their bytes */
};


_Static_assert(sizeof(((ngx_http_dsa_resume_t *) 0)->model)
               == sizeof(((dsa_link_hello_t *) 0)->model)
               && sizeof(((ngx_http_dsa_resume_t *) 0)->fingerprint)
                  == sizeof(((dsa_link_hello_t *) 0)->fingerprint),
               "the names of an engine are copied whole");


ngx_http_dsa_resume_t *
ngx_http_dsa_resume_create(const ngx_http_dsa_submit_t *submit,
    const ngx_http_dsa_session_t *s, ngx_log_t *log)
{
    size_t                  size;
    char                   *p;
    uint32_t                i;
    ngx_http_dsa_resume_t  *resume;

    size = sizeof(ngx_http_dsa_resume_t)
           + (submit->head.n_fields + 1) * sizeof(ngx_http_dsa_field_t);

    for (i = 0; i < submit->head.n_fields; i++) {
        size += submit->fields[i].value.len;
    }

    resume = ngx_alloc(size, log);
    if (resume == NULL) {
        return NULL;
    }

    resume->head = submit->head;
    resume->head.sampling.seed -= submit->index;
    resume->context = s->hello.context_length;
    resume->n_fields = submit->head.n_fields;
    ngx_memcpy(resume->model, s->hello.model, sizeof(resume->model));
    ngx_memcpy(resume->fingerprint, s->hello.fingerprint,
               sizeof(resume->fingerprint));

    p = (char *) &resume->fields[resume->n_fields + 1];

    for (i = 0; i < resume->n_fields; i++) {
        resume->fields[i].type = submit->fields[i].type;
        resume->fields[i].value = dsa_str(p, submit->fields[i].value.len);

        p = (char *) ngx_cpymem(p, submit->fields[i].value.data,
                                submit->fields[i].value.len);
    }

    return resume;
}


void
ngx_http_dsa_resume_free(ngx_http_dsa_resume_t *resume)
{
    if (resume != NULL) {
        ngx_free(resume);
    }
}


/*
 * Returns 1 if an engine can continue the answer.  Its context has to be the
 * same, because the context can end the answer.
 */

ngx_uint_t
ngx_http_dsa_resume_fits(const ngx_http_dsa_resume_t *resume,
    const ngx_http_dsa_session_t *s)
{
    return s->hello.context_length == resume->context
           && ngx_strcmp(s->hello.model, resume->model) == 0
           && ngx_strcmp(s->hello.fingerprint, resume->fingerprint) == 0;
}


ngx_int_t
ngx_http_dsa_resume_submit(ngx_http_dsa_resume_t *resume,
    ngx_http_dsa_pool_t *pool, uint64_t *tried, uint32_t index,
    const dsa_buf_t *ids, ngx_http_dsa_link_request_t *lr)
{
    uint32_t                 n;
    ngx_str_t                model;
    dsa_link_submit_t        head;
    ngx_http_dsa_session_t  *s;

    n = resume->n_fields;

    if (ids->len != 0) {
        resume->fields[n].type = DSA_LINK_FIELD_RESUME;
        resume->fields[n].value = dsa_str(ids->data, ids->len);
        n++;
    }

    head = resume->head;
    head.sampling.seed += index;

    model.data = (u_char *) resume->model;
    model.len = ngx_strlen(resume->model);

    for ( ;; ) {
        s = ngx_http_dsa_pool_pick(pool, *tried, &model, resume->context);

        if (s == NULL) {
            return NGX_ERROR;
        }

        *tried |= 1ULL << s->index;

        if (ngx_http_dsa_resume_fits(resume, s)
            && ngx_http_dsa_session_submit(s, lr, &head, resume->fields, n)
               == NGX_OK)
        {
            return NGX_OK;
        }
    }
}
