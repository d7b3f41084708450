
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "resp.h"


/* bytes that the reader may keep allocated between replies */

#define DSA_RESP_IDLE_BUFFER  (64 * 1024)


/* the type in which hiredis passes a number of elements */

#if (HIREDIS_MAJOR >= 1)
typedef size_t  dsa_resp_elements_t;
#else
typedef int     dsa_resp_elements_t;
#endif


struct dsa_resp_s {
    redisReader                 *reader;
    redisReplyObjectFunctions    fn;
    void                      *(*create_array)(const redisReadTask *,
                                     dsa_resp_elements_t);
    size_t                       bytes;
    size_t                       max_bytes;
    size_t                       elements;
    size_t                       max_elements;
    int                          exceeded;
};


typedef struct {
    const char                  *code;
    const char                  *why;
} dsa_resp_refusal_t;


static void *dsa_resp_create_array(const redisReadTask *task,
    dsa_resp_elements_t elements);


static const char  dsa_resp_readonly[] = "Redis is a read-only replica";


static const dsa_resp_refusal_t  dsa_resp_refusals[] = {
    { "NOAUTH", "Redis requires a password" },
    { "WRONGPASS", "Redis rejects the password" },
    { "LOADING", "Redis is loading its data" },
    { "MASTERDOWN", "Redis is a replica without its master" },
    { "READONLY", dsa_resp_readonly },
    { "MOVED", "Redis is a node of a cluster" },
    { "ASK", "Redis is a node of a cluster" },
    { "CLUSTERDOWN", "Redis is a node of a cluster that is down" },
    { NULL, NULL }
};


dsa_resp_t *
dsa_resp_create(size_t bytes, size_t elements)
{
    dsa_resp_t  *resp;

    resp = calloc(1, sizeof(dsa_resp_t));
    if (resp == NULL) {
        return NULL;
    }

    resp->reader = redisReaderCreate();
    if (resp->reader == NULL) {
        free(resp);
        return NULL;
    }

    resp->fn = *resp->reader->fn;
    resp->create_array = resp->fn.createArray;
    resp->fn.createArray = dsa_resp_create_array;

    resp->reader->fn = &resp->fn;
    resp->reader->privdata = resp;
    resp->reader->maxbuf = DSA_RESP_IDLE_BUFFER;

    resp->max_bytes = bytes;
    resp->max_elements = elements;

    return resp;
}


void
dsa_resp_destroy(dsa_resp_t *resp)
{
    if (resp != NULL) {
        redisReaderFree(resp->reader);
        free(resp);
    }
}


int
dsa_resp_feed(dsa_resp_t *resp, const void *data, size_t len, dsa_err_t *err)
{
    if (len > resp->max_bytes - resp->bytes) {
        return dsa_error(err, "a reply is longer than %zu bytes",
                         resp->max_bytes);
    }

    resp->bytes += len;

    if (redisReaderFeed(resp->reader, data, len) != REDIS_OK) {
        return dsa_error(err, "%s", resp->reader->errstr);
    }

    return DSA_OK;
}


int
dsa_resp_next(dsa_resp_t *resp, redisReply **reply, dsa_err_t *err)
{
    void  *p;

    p = NULL;

    if (redisReaderGetReply(resp->reader, &p) != REDIS_OK) {

        if (resp->exceeded) {
            return dsa_error(err, "a reply has more than %zu elements",
                             resp->max_elements);
        }

        return dsa_error(err, "%s", resp->reader->errstr);
    }

    if (p == NULL) {
        return DSA_AGAIN;
    }

    resp->bytes = resp->reader->len - resp->reader->pos;
    resp->elements = 0;

    *reply = p;

    return DSA_OK;
}


static void *
dsa_resp_create_array(const redisReadTask *task, dsa_resp_elements_t elements)
{
    dsa_resp_t  *resp = task->privdata;

    /* the cast makes a negative number very large */

    if ((size_t) elements > resp->max_elements - resp->elements) {
        resp->exceeded = 1;
        return NULL;
    }

    resp->elements += elements;

    return resp->create_array(task, elements);
}


const char *
dsa_resp_refusal(const redisReply *reply)
{
    const dsa_resp_refusal_t  *refusal;

    for (refusal = dsa_resp_refusals; refusal->code != NULL; refusal++) {
        if (dsa_resp_is_error(reply, refusal->code)) {
            return refusal->why;
        }
    }

    /* before Redis 7, a script that must not write fails with ERR */

    if (dsa_resp_is_error(reply, "ERR")
        && strstr(reply->str, ": -READONLY ") != NULL)
    {
        return dsa_resp_readonly;
    }

    return NULL;
}


const char *
dsa_resp_text(char *buf, const char *text, size_t len)
{
    size_t  i;

    for (i = 0; i < len && i < 200; i++) {
        buf[i] = (text[i] >= 0x20 && text[i] < 0x7f) ? text[i] : '?';
    }

    strcpy(&buf[i], i < len ? "..." : "");

    return buf;
}


/* Nesting is limited by dsa_resp_create(). */

size_t
dsa_resp_bytes(const redisReply *reply)
{
    size_t  i, bytes;

    if (reply->type != REDIS_REPLY_ARRAY) {
        return (size_t) reply->len;
    }

    bytes = 0;

    for (i = 0; i < (size_t) reply->elements; i++) {
        bytes += dsa_resp_bytes(reply->element[i]);
    }

    return bytes;
}


int
dsa_resp_is_error(const redisReply *reply, const char *code)
{
    size_t  n;

    n = strlen(code);

    return reply->type == REDIS_REPLY_ERROR
           && reply->len >= n
           && memcmp(reply->str, code, n) == 0
           && (reply->len == n || reply->str[n] == ' ');
}
