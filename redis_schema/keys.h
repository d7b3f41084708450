
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_KEYS_H_INCLUDED_
#define _DSA_KEYS_H_INCLUDED_


#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/money.h"


/*
 * The key entry of an API key is one JSON object, which is a line of a file of
 * keys or a field in Redis.  README.md beside this file describes its members.
 * A key entry has the SHA-256 of the key and never the key itself.
 */

#define DSA_KEY_ID_LEN          20      /* "key_" and 16 hexadecimal digits */
#define DSA_KEY_HASH_LEN        32
#define DSA_KEY_TEXT_LEN        50      /* "sk-dsa-", 43 of base64url */
#define DSA_KEY_RANDOM          32      /* bytes in the text of a key */
#define DSA_KEY_MAX_NAME        64      /* bytes of name, tenant */
#define DSA_KEY_MAX_MODELS      16
#define DSA_KEY_MAX_MODEL       128     /* bytes of the name of a model */
#define DSA_KEY_MAX_ENTRY       4096    /* bytes of a key entry */
#define DSA_KEY_MAX_RATE        1000000000000ULL    /* of rpm and tpm */
#define DSA_KEY_MAX_CONCURRENCY 1000000
#define DSA_KEY_MAX_WEIGHT      10000
#define DSA_KEY_WEIGHT          100     /* of a key entry without a weight */
#define DSA_KEY_MAX_TIME        253402300799LL      /* the end of 9999 */


typedef enum {
    DSA_KEY_ACTIVE = 0,
    DSA_KEY_DISABLED,               /* refused until it is active again */
    DSA_KEY_REVOKED                 /* refused for ever */
} dsa_key_state_e;


typedef enum {
    DSA_KEY_LOW = 0,
    DSA_KEY_NORMAL,
    DSA_KEY_HIGH
} dsa_key_priority_e;


typedef enum {
    DSA_KEY_DAY = 0,                /* of UTC, as the ledger has them */
    DSA_KEY_MONTH,
    DSA_KEY_TOTAL,
    DSA_KEY_PERIODS
} dsa_key_period_e;


/* The most money of a period in 10^-12 units; -1: no limit. */

typedef struct {
    int64_t                soft;        /* a warning; at most hard */
    int64_t                hard;        /* further requests are refused */
} dsa_key_budget_t;


/* There are no pointers, so that this may be in shared memory. */

typedef struct {
    uint64_t               rpm;         /* requests per minute; 0: no limit */
    uint64_t               tpm;         /* tokens per minute; 0: no limit */
    uint32_t               concurrency; /* requests; 0: no limit */
    uint32_t               weight;      /* 1 to DSA_KEY_MAX_WEIGHT */
    dsa_key_priority_e     priority;
    dsa_key_budget_t       budget[DSA_KEY_PERIODS];
} dsa_key_limits_t;


/* Times are seconds since 1970. */

typedef struct {
    dsa_str_t              id;
    dsa_str_t              name;        /* printable UTF-8, not empty */
    dsa_str_t              tenant;      /* the same */
    uint8_t                hash[DSA_KEY_HASH_LEN];
    uint8_t                old_hash[DSA_KEY_HASH_LEN];
    int64_t                old_until;   /* the old key is served before this
                                           time; 0: there is none */
    dsa_key_state_e        state;
    int64_t                created;
    int64_t                expires;     /* served before this time; 0: always */
    dsa_str_t             *models;      /* that may be used */
    uint32_t               n_models;    /* 0: all models */
    dsa_key_limits_t       limits;
} dsa_key_t;


/*
 * Reads a key entry.  The strings and the array of models are in the arena, of
 * which a key entry uses less than 64 KB.  DSA_ERROR: the text is not a
 * complete key entry, a value is outside its limits, or a member is unknown.
 * err has what is wrong and what would be accepted.  It quotes no string of the
 * key entry, because a string may be the text of a key, put there by mistake.
 */
int dsa_key_read(dsa_key_t *key, dsa_arena_t *arena, dsa_str_t json,
    dsa_err_t *err);

/*
 * Appends the key entry as one line without a newline.  The key satisfies
 * dsa_key_check().  Reading what was written results in the same key, and
 * writing that key again in the same bytes.
 */
void dsa_key_write(dsa_buf_t *b, const dsa_key_t *key);

/*
 * The limits that a key entry has: DSA_OK, or DSA_ERROR with what would be
 * accepted.
 */
int dsa_key_check(const dsa_key_t *key, dsa_err_t *err);

/* The limits of a key for which nothing was set. */
void dsa_key_limits_default(dsa_key_limits_t *limits);


/* 1 if id has the form of the id of a key. */
int dsa_key_id_ok(dsa_str_t id);

/* "active", "disabled" or "revoked". */
const char *dsa_key_state_name(dsa_key_state_e state);

/* "low", "normal" or "high". */
const char *dsa_key_priority_name(dsa_key_priority_e priority);

/* "day", "month" or "total". */
const char *dsa_key_period_name(dsa_key_period_e period);

/* Reads such a name.  DSA_ERROR: there is no such name. */
int dsa_key_priority(dsa_key_priority_e *priority, dsa_str_t text);
int dsa_key_state(dsa_key_state_e *state, dsa_str_t text);


/* SHA-256 of the text of a key, as key entries have it. */
void dsa_key_hash(uint8_t hash[DSA_KEY_HASH_LEN], dsa_str_t text);

/*
 * The digest of a tenant, the same as that of "dsa_tenant NAME".  The keys of
 * Redis have the first 32 of its hexadecimal digits.
 */
void dsa_key_tenant(uint8_t digest[32], dsa_str_t name);

#define DSA_KEY_TENANT_LEN  32          /* digits in a key of Redis */

/* These digits and a NUL.  name: at most DSA_KEY_MAX_NAME bytes. */
void dsa_key_tenant_digits(char digits[DSA_KEY_TENANT_LEN + 1],
    dsa_str_t name);

/* The same for what an operator names: it may be the digits themselves. */
void dsa_key_tenant_given(char digits[DSA_KEY_TENANT_LEN + 1],
    dsa_str_t given);


#endif /* _DSA_KEYS_H_INCLUDED_ */
