
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The engine's end of the link for tests; main.c describes how it is used.
 */


#ifndef _FAKE_H_INCLUDED_
#define _FAKE_H_INCLUDED_


#include "base/str.h"
#include "engine/link.h"
#include "engine/link_event.h"
#include "engine/link_request.h"


#define FAKE_SESSIONS  64
#define FAKE_QUERIES   DSA_LINK_MAX_QUERIES


typedef struct {
    uint64_t         id;
    uint64_t         seed;
    char            *script;        /* NULL: the slot is free */
    char            *pc;            /* the next line */
    uint64_t         next;          /* ms; not before */
    uint64_t         rate;          /* ms between two records */
    uint32_t         repeat;        /* records left of the line at pc */
    uint32_t         max_tokens;
    uint32_t         top;
    uint32_t         prompt;
    uint32_t         cached;
    uint32_t         tier[DSA_TIERS];       /* of cached, in slower tiers */
    uint32_t         completion;
    uint32_t         sent;          /* tokens */
    uint32_t         n_queries;
    char            *query[FAKE_QUERIES];
    unsigned         logprobs:1;
    unsigned         accepted:1;
    unsigned         manual:1;      /* the script has "accept" */
    unsigned         more:1;        /* of an error's prompt */
    unsigned         deaf:1;
    unsigned         reported:1;    /* completion was set by the script */
} request_t;


typedef struct {
    int              fd;            /* -1: free */
    int              open;          /* 1: the hello was sent */
    int              own_wake;
    int              peer_wake;
    void            *segment;
    dsa_link_t       link;
    request_t       *requests;      /* [slots] */
} session_t;


typedef struct {
    dsa_link_hello_t   hello;
    session_t          sessions[FAKE_SESSIONS];
    const char        *fault;           /* of hello= */
    char              *script;          /* default */
    uint64_t           rate;            /* default */
    unsigned           permits;         /* of "go" */
    uint32_t           version_min;
    uint32_t           version_max;
    int                vocabulary;      /* 1: has all control tokens */
    int                draining;
    int                alive;
    int                mute;
    int                blocked;         /* a ring had no room */
    uint32_t           running;         /* of "load" */
    uint32_t           waiting;
    uint64_t           ended;
} fake_t;


extern fake_t  fake;


/* main.c */
void die(const char *what);
void print_event(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint64_t now_ms(void);

/* session.c */
void session_accept(int listener);
void session_offer(session_t *s);
void session_close(session_t *s);
int session_step(session_t *s);     /* requests that are not over */

/* script.c: one line; 1: the next may follow, 0: nothing more for now */
int script_line(session_t *s, request_t *r);
char *script_echo(const char *text, size_t len);
void script_free(request_t *r);

/* record.c: 0 if the ring has no room */
int send_accepted(session_t *s, request_t *r);
int send_tokens(session_t *s, request_t *r, uint32_t n,
    const dsa_link_token_t *token, const dsa_str_t *own, const char *text,
    uint32_t len);
int send_done(session_t *s, request_t *r, uint32_t finish);
int send_error(session_t *s, uint64_t id, uint32_t code, uint32_t prompt,
    uint32_t more, const char *path, const char *text);
void wake(session_t *s);

/* corrupt.c */
void corrupt(session_t *s, const char *kind);
int corrupt_record(session_t *s, const request_t *r, const char *line);


#endif /* _FAKE_H_INCLUDED_ */
