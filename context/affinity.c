
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "affinity.h"


/* the text of a message, or of the part of it that was scanned */

typedef struct {
    XXH3_state_t        hash;
    size_t              len;        /* bytes that count */
    size_t              max;        /* most of them */
} dsa_affinity_text_t;


typedef struct {
    const char         *p;
    const char         *end;
    unsigned            stopped:1;  /* the end, or not JSON */
    unsigned            response:1; /* has "previous_response_id" */
    unsigned            role:1;     /* of this message: user */
    dsa_affinity_e        found;
    dsa_str_t           seed;
    uint8_t            *digest;
    dsa_affinity_text_t   text;
} dsa_affinity_scan_t;


/*
 * Reads one value: of a member with this name, or of an array, whose elements
 * have no name.
 */
typedef void (*dsa_affinity_value_pt)(dsa_affinity_scan_t *s, dsa_str_t name);


static void dsa_affinity_member(dsa_affinity_scan_t *s, dsa_str_t name);
static void dsa_affinity_conversation(dsa_affinity_scan_t *s, dsa_str_t name);
static void dsa_affinity_messages(dsa_affinity_scan_t *s);
static void dsa_affinity_message(dsa_affinity_scan_t *s, dsa_str_t name);
static void dsa_affinity_message_member(dsa_affinity_scan_t *s, dsa_str_t name);
static void dsa_affinity_part(dsa_affinity_scan_t *s, dsa_str_t name);
static void dsa_affinity_part_member(dsa_affinity_scan_t *s, dsa_str_t name);
static void dsa_affinity_prompt(dsa_affinity_scan_t *s, dsa_str_t name);
static void dsa_affinity_begin(dsa_affinity_scan_t *s, dsa_affinity_e kind);
static void dsa_affinity_add(dsa_affinity_scan_t *s, dsa_str_t text);
static void dsa_affinity_end(dsa_affinity_scan_t *s, dsa_affinity_e kind);
static void dsa_affinity_members(dsa_affinity_scan_t *s,
    dsa_affinity_value_pt value);
static void dsa_affinity_elements(dsa_affinity_scan_t *s,
    dsa_affinity_value_pt value);
static int dsa_affinity_more(dsa_affinity_scan_t *s, char close);
static int dsa_affinity_is(dsa_affinity_scan_t *s, char c);
static char dsa_affinity_next(dsa_affinity_scan_t *s);
static dsa_str_t dsa_affinity_string(dsa_affinity_scan_t *s);
static void dsa_affinity_skip(dsa_affinity_scan_t *s);


dsa_affinity_e
dsa_affinity_scan(const char *text, size_t len, dsa_str_t seed,
    uint8_t digest[16])
{
    dsa_affinity_scan_t  s;

    s.p = text;
    s.end = text + (len < DSA_AFFINITY_SCAN ? len : DSA_AFFINITY_SCAN);
    s.stopped = 0;
    s.response = 0;
    s.found = DSA_AFFINITY_NONE;
    s.seed = seed;
    s.digest = digest;

    dsa_affinity_begin(&s, DSA_AFFINITY_NONE);
    dsa_affinity_end(&s, DSA_AFFINITY_NONE);

    if (dsa_affinity_is(&s, '{')) {
        dsa_affinity_members(&s, dsa_affinity_member);
    }

    if (s.response && s.found != DSA_AFFINITY_CONVERSATION) {
        s.found = DSA_AFFINITY_NONE;
        dsa_affinity_begin(&s, DSA_AFFINITY_NONE);
        dsa_affinity_end(&s, DSA_AFFINITY_NONE);
    }

    return s.found;
}


/* A member of the body.  What is found later replaces only what says less. */

static void
dsa_affinity_member(dsa_affinity_scan_t *s, dsa_str_t name)
{
    char  c;

    c = dsa_affinity_next(s);

    if (dsa_str_eqz(name, "conversation")
        && s->found < DSA_AFFINITY_CONVERSATION)
    {
        if (c == '{') {
            dsa_affinity_members(s, dsa_affinity_conversation);

        } else {
            dsa_affinity_conversation(s, dsa_str("id", 2));
        }

    } else if (dsa_str_eqz(name, "previous_response_id") && c == '"') {
        s->response = 1;
        dsa_affinity_skip(s);

    } else if ((dsa_str_eqz(name, "messages") || dsa_str_eqz(name, "input"))
               && s->found < DSA_AFFINITY_USER)
    {
        dsa_affinity_messages(s);

    } else if (dsa_str_eqz(name, "prompt") && s->found < DSA_AFFINITY_PROMPT) {

        if (c == '[') {
            dsa_affinity_elements(s, dsa_affinity_prompt);

        } else {
            dsa_affinity_prompt(s, name);
        }

    } else {
        dsa_affinity_skip(s);
    }
}


static void
dsa_affinity_conversation(dsa_affinity_scan_t *s, dsa_str_t name)
{
    if (s->found == DSA_AFFINITY_CONVERSATION || !dsa_str_eqz(name, "id")
        || dsa_affinity_next(s) != '"')
    {
        dsa_affinity_skip(s);
        return;
    }

    dsa_affinity_begin(s, DSA_AFFINITY_CONVERSATION);
    dsa_affinity_add(s, dsa_affinity_string(s));
    dsa_affinity_end(s, DSA_AFFINITY_CONVERSATION);
}


static void
dsa_affinity_messages(dsa_affinity_scan_t *s)
{
    switch (dsa_affinity_next(s)) {

    case '[':
        dsa_affinity_elements(s, dsa_affinity_message);
        break;

    case '"':
        /* "input" of the Responses API: the text of a user */

        dsa_affinity_begin(s, DSA_AFFINITY_USER);
        dsa_affinity_add(s, dsa_affinity_string(s));
        dsa_affinity_end(s, DSA_AFFINITY_USER);
        break;

    default:
        dsa_affinity_skip(s);
    }
}


/* The role may follow the content. */

static void
dsa_affinity_message(dsa_affinity_scan_t *s, dsa_str_t name)
{
    if (s->found >= DSA_AFFINITY_USER || dsa_affinity_next(s) != '{') {
        dsa_affinity_skip(s);
        return;
    }

    s->role = 0;
    dsa_affinity_begin(s, DSA_AFFINITY_USER);
    dsa_affinity_members(s, dsa_affinity_message_member);

    if (s->role) {
        dsa_affinity_end(s, DSA_AFFINITY_USER);
    }
}


static void
dsa_affinity_message_member(dsa_affinity_scan_t *s, dsa_str_t name)
{
    char  c;

    c = dsa_affinity_next(s);

    if (c == '"' && dsa_str_eqz(name, "role")) {
        s->role |= dsa_str_eqz(dsa_affinity_string(s), "user");

    } else if (c == '"' && dsa_str_eqz(name, "content")) {
        dsa_affinity_add(s, dsa_affinity_string(s));

    } else if (c == '[' && dsa_str_eqz(name, "content")) {
        dsa_affinity_elements(s, dsa_affinity_part);

    } else {
        dsa_affinity_skip(s);
    }
}


static void
dsa_affinity_part(dsa_affinity_scan_t *s, dsa_str_t name)
{
    if (dsa_affinity_next(s) == '{') {
        dsa_affinity_members(s, dsa_affinity_part_member);

    } else {
        dsa_affinity_skip(s);
    }
}


/*
 * Only the text of a part: clients of the Messages API move "cache_control"
 * from one message to another between turns.
 */

static void
dsa_affinity_part_member(dsa_affinity_scan_t *s, dsa_str_t name)
{
    if (dsa_affinity_next(s) == '"' && dsa_str_eqz(name, "text")) {
        dsa_affinity_add(s, dsa_affinity_string(s));

    } else {
        dsa_affinity_skip(s);
    }
}


/* The prompt of a completion, the first one if there are several. */

static void
dsa_affinity_prompt(dsa_affinity_scan_t *s, dsa_str_t name)
{
    if (s->found >= DSA_AFFINITY_PROMPT || dsa_affinity_next(s) != '"') {
        dsa_affinity_skip(s);
        return;
    }

    dsa_affinity_begin(s, DSA_AFFINITY_PROMPT);
    dsa_affinity_add(s, dsa_affinity_string(s));
    dsa_affinity_end(s, DSA_AFFINITY_PROMPT);
}


static void
dsa_affinity_begin(dsa_affinity_scan_t *s, dsa_affinity_e kind)
{
    char  label;

    label = (char) kind;
    s->text.len = 0;
    s->text.max = kind == DSA_AFFINITY_PROMPT ? DSA_AFFINITY_PROMPT_TEXT
                                            : DSA_AFFINITY_TEXT;

    (void) XXH3_128bits_reset(&s->text.hash);
    (void) XXH3_128bits_update(&s->text.hash, s->seed.data, s->seed.len);
    (void) XXH3_128bits_update(&s->text.hash, &label, 1);
}


static void
dsa_affinity_add(dsa_affinity_scan_t *s, dsa_str_t text)
{
    size_t  n;

    n = s->text.max - s->text.len;
    n = text.len < n ? text.len : n;

    (void) XXH3_128bits_update(&s->text.hash, text.data, n);
    s->text.len += n;
}


/*
 * Nothing is found in a message without text, such as one with an image, and in
 * one that the scan has not read as far as it counts: a turn with another limit
 * of tokens would find more or less of it.
 */

static void
dsa_affinity_end(dsa_affinity_scan_t *s, dsa_affinity_e kind)
{
    XXH128_canonical_t  canonical;

    if (kind != DSA_AFFINITY_NONE
        && (s->text.len == 0 || (s->stopped && s->text.len < s->text.max)))
    {
        return;
    }

    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&s->text.hash));
    memcpy(s->digest, canonical.digest, sizeof(canonical.digest));
    s->found = kind;
}


/* The members of an object, whose '{' is next. */

static void
dsa_affinity_members(dsa_affinity_scan_t *s, dsa_affinity_value_pt value)
{
    dsa_str_t  name;

    s->p++;

    if (dsa_affinity_is(s, '}')) {
        s->p++;
        return;
    }

    do {
        if (!dsa_affinity_is(s, '"')) {
            s->stopped = 1;
            return;
        }

        name = dsa_affinity_string(s);

        if (!dsa_affinity_is(s, ':')) {
            s->stopped = 1;
            return;
        }

        s->p++;
        value(s, name);

    } while (dsa_affinity_more(s, '}'));
}


/* The elements of an array, whose '[' is next. */

static void
dsa_affinity_elements(dsa_affinity_scan_t *s, dsa_affinity_value_pt value)
{
    s->p++;

    if (dsa_affinity_is(s, ']')) {
        s->p++;
        return;
    }

    do {
        value(s, dsa_str(NULL, 0));
    } while (dsa_affinity_more(s, ']'));
}


/* Passes the comma or the end behind a value; 1: a comma. */

static int
dsa_affinity_more(dsa_affinity_scan_t *s, char close)
{
    char  c;

    c = dsa_affinity_next(s);

    if (c != ',' && c != close) {
        s->stopped = 1;
        return 0;
    }

    s->p++;

    return c == ',';
}


static int
dsa_affinity_is(dsa_affinity_scan_t *s, char c)
{
    return dsa_affinity_next(s) == c;
}


/* The next byte that is not a blank; 0 at the end. */

static char
dsa_affinity_next(dsa_affinity_scan_t *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r'
                             || *s->p == '\t'))
    {
        s->p++;
    }

    if (s->stopped || s->p == s->end) {
        s->stopped = 1;
        return '\0';
    }

    return *s->p;
}


/*
 * The inside of a string, whose quotation mark is next.  One that the text does
 * not end is what there is of it, and the scan stops.
 */

static dsa_str_t
dsa_affinity_string(dsa_affinity_scan_t *s)
{
    const char  *begin, *quote, *p;

    begin = ++s->p;

    for ( ;; ) {
        quote = memchr(s->p, '"', (size_t) (s->end - s->p));

        if (quote == NULL) {
            s->p = s->end;
            s->stopped = 1;
            return dsa_str(begin, (size_t) (s->end - begin));
        }

        for (p = quote; p > begin && p[-1] == '\\'; p--) { /* void */ }

        s->p = quote + 1;

        if ((quote - p) % 2 == 0) {
            return dsa_str(begin, (size_t) (quote - begin));
        }
    }
}


/* Skips a value, with any nesting. */

static void
dsa_affinity_skip(dsa_affinity_scan_t *s)
{
    char    c;
    size_t  depth;

    depth = 0;

    do {
        c = dsa_affinity_next(s);

        switch (c) {

        case '"':
            (void) dsa_affinity_string(s);
            break;

        case '{':
        case '[':
            depth++;
            s->p++;
            break;

        case '}':
        case ']':
        case ',':
        case ':':
            if (depth == 0) {
                s->stopped = 1;
                return;
            }

            depth -= (c == '}' || c == ']');
            s->p++;
            break;

        default:
            /* a number or a word */

            while (s->p < s->end && memchr("\"{}[],: \t\r\n", *s->p, 11)
                                    == NULL)
            {
                s->p++;
            }
        }

    } while (depth != 0 && !s->stopped);
}
