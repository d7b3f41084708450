
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_HTTP_H_INCLUDED_
#define _DSA_BENCH_HTTP_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * HTTP/1.1 requests to loopback for load clients: one connection for each
 * request, an epoll instance of the caller, and a response that is a stream of
 * events in chunks, which arrives line by line.
 */

#define HTTP_LINE           65536       /* most bytes of a line, with its \0 */


/* A line of the body, without its line end; now is its time of arrival. */

typedef void (*http_line_pt)(void *data, const char *line, uint64_t now);


typedef enum {
    HTTP_HEAD = 0,                      /* the head of the response */
    HTTP_SIZE,                          /* the line with a chunk's size */
    HTTP_DATA,                          /* in a chunk */
    HTTP_END,                           /* the line end behind a chunk */
    HTTP_ERROR                          /* the body of another status */
} http_part_e;


typedef struct {
    int                 fd;             /* -1: no connection */
    int                 status;         /* of the response; 0: none arrived */
    http_part_e         part;
    const char         *request;        /* [request_len], the caller's */
    size_t              request_len;
    size_t              sent;
    uint64_t            chunk;          /* bytes of the chunk that are left */
    char               *line;           /* [HTTP_LINE]; with a status other
                                           than 200 the start of the body */
    size_t              line_len;
    http_line_pt        handler;        /* called for lines of a body with
                                           status 200 */
    void               *data;           /* for the handler */
} http_t;


/* CLOCK_MONOTONIC in ns. */
uint64_t http_now(void);

/*
 * A nonblocking connection to a port of 127.0.0.1, which may not be established
 * yet.  -1 with errno.
 */
int http_connect(int port);

/*
 * Allocates the line.  data is what the handler gets.  -1 when out of memory.
 * http_free() is called in any case.
 */
int http_init(http_t *h, http_line_pt handler, void *data);
void http_free(http_t *h);

/*
 * Connects, and adds the connection to ep with ptr as its event's data.  The
 * request is sent by http_io(); its bytes stay the caller's and must not change
 * until http_close().  -1 with errno.
 */
int http_open(http_t *h, int ep, int port, const char *request, size_t len,
    void *ptr);

/*
 * Sends and receives after epoll reported events.  Returns 1 when the
 * connection has ended, for whatever reason, and 0 otherwise.
 */
int http_io(http_t *h, int ep, uint32_t events, void *ptr);

void http_close(http_t *h);

/*
 * Gets a document of 127.0.0.1 on a connection of its own, in at most some
 * seconds, and returns its body, which the caller frees.  NULL with errno:
 * EPROTO is another status than 200, ETIMEDOUT no whole response.
 */
char *http_get(int port, const char *uri);

/* 1 if a line is an event of a chat, or of a text completion, with text. */
int http_has_text(const char *line);

/*
 * The number after a name in a line of JSON, for example after
 * "\"prompt_tokens\":".  -1 when the line does not contain the name.
 */
int64_t http_number(const char *line, const char *name);


#endif /* _DSA_BENCH_HTTP_H_INCLUDED_ */
