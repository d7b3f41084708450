
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "engine/tokenizer/parts.h"


/*
 * Pre-tokenizing: each stage cuts the pieces of the previous stage.  A piece
 * is a text of its own, so patterns do not look beyond its ends.  A piece
 * passes through all stages before the next piece is cut, so pieces are not
 * stored, and tokenizing stops early when a prompt is too long.
 */


/*
 * The state of one stage.  A pending piece may be extended by the next match.
 */

typedef struct {
    dsa_tokenizer_run_t       *run;
    const dsa_split_stage_t   *stage;
    uint32_t                   next;            /* the next stage */
    const char                *data;
    size_t                     start;           /* of the pending piece */
    size_t                     end;
    uint32_t                   pending;         /* 1: there is one */
    uint32_t                   matched;         /* 1: the last item matched */
} dsa_splitter_t;


static int dsa_split_item(dsa_splitter_t *s, size_t start, size_t end,
    uint32_t matched);
static int dsa_split_flush(dsa_splitter_t *s);
static int dsa_split_prefix(dsa_tokenizer_run_t *run, const char **data,
    size_t *len);
static int dsa_split_failed(dsa_tokenizer_run_t *run, uint32_t stage, int rc);


int
dsa_split_run(dsa_tokenizer_run_t *run, uint32_t stage, const char *data,
    size_t len)
{
    int              rc;
    size_t           pos, start, end, last, *match;
    dsa_splitter_t   s;

    if (len == 0) {
        return DSA_OK;
    }

    if (stage == run->t->n_stages) {
        return dsa_bpe_piece(run, data, len);
    }

    s.run = run;
    s.stage = &run->t->stage[stage];
    s.next = stage + 1;
    s.pending = 0;
    s.matched = 0;

    if (s.stage->prefix_space && data[0] != ' ') {
        rc = dsa_split_prefix(run, &data, &len);
        if (rc != DSA_OK) {
            return rc;
        }
    }

    s.data = data;

    if (s.stage->code == NULL) {
        return dsa_split_run(run, s.next, data, len);
    }

    match = pcre2_get_ovector_pointer(run->w->match);
    last = SIZE_MAX;                            /* the end of the last match */
    end = 0;                                    /* of the items so far */
    pos = 0;

    while (pos <= len) {
        rc = pcre2_jit_match(s.stage->code, (PCRE2_SPTR) data, len, pos, 0,
                             run->w->match, run->w->context);

        if (rc == PCRE2_ERROR_NOMATCH) {
            break;
        }

        if (rc < 0) {
            return dsa_split_failed(run, stage, rc);
        }

        if (match[0] == match[1] && match[1] == last) {

            /* ignore an empty match at the end of the last match */

            for (pos++; pos < len && (data[pos] & 0xc0) == 0x80; pos++) {
                /* void */
            }

            continue;
        }

        /* copied, because the next stages use the same match data */

        start = match[0];
        pos = match[1];
        last = pos;

        if (start != end) {
            rc = dsa_split_item(&s, end, start, 0);
            if (rc != DSA_OK) {
                return rc;
            }
        }

        rc = dsa_split_item(&s, start, pos, 1);
        if (rc != DSA_OK) {
            return rc;
        }

        end = pos;
    }

    if (end != len) {
        rc = dsa_split_item(&s, end, len, 0);
        if (rc != DSA_OK) {
            return rc;
        }
    }

    return dsa_split_flush(&s);
}


/*
 * Adds an item: a match, or a text between matches.  MergedWithPrevious
 * appends a match to the text before it, and MergedWithNext prepends it to the
 * text after it.  Of several adjacent matches, only the one next to that text
 * is merged; each of the others is a piece.  Contiguous joins adjacent items
 * of the same kind.
 */

static int
dsa_split_item(dsa_splitter_t *s, size_t start, size_t end, uint32_t matched)
{
    int       rc;
    uint32_t  before, join;

    matched ^= s->stage->invert;
    before = s->matched;
    s->matched = matched;

    switch (s->stage->behavior) {

    case DSA_SPLIT_ISOLATED:
        return dsa_split_run(s->run, s->next, s->data + start, end - start);

    case DSA_SPLIT_REMOVED:

        if (matched) {
            return DSA_OK;
        }

        return dsa_split_run(s->run, s->next, s->data + start, end - start);

    case DSA_SPLIT_MERGED_WITH_PREVIOUS:
        join = matched && !before;
        break;

    case DSA_SPLIT_MERGED_WITH_NEXT:
        join = !matched && before;
        break;

    default: /* DSA_SPLIT_CONTIGUOUS */
        join = (matched == before);
    }

    if (s->pending && join) {
        s->end = end;
        return DSA_OK;
    }

    rc = dsa_split_flush(s);

    s->start = start;
    s->end = end;
    s->pending = 1;

    return rc;
}


static int
dsa_split_flush(dsa_splitter_t *s)
{
    if (!s->pending) {
        return DSA_OK;
    }

    s->pending = 0;

    return dsa_split_run(s->run, s->next, s->data + s->start,
                         s->end - s->start);
}


static int
dsa_split_prefix(dsa_tokenizer_run_t *run, const char **data, size_t *len)
{
    char                  *p;
    dsa_tokenizer_work_t  *w;

    w = run->w;

    if (*len + 1 > w->prefixed_size) {
        p = realloc(w->prefixed, *len + 1);
        if (p == NULL) {
            return dsa_error(run->err, "out of memory for %zu bytes of text",
                             *len);
        }

        w->prefixed = p;
        w->prefixed_size = *len + 1;
    }

    w->prefixed[0] = ' ';
    memcpy(w->prefixed + 1, *data, *len);

    *data = w->prefixed;
    *len += 1;

    return DSA_OK;
}


static int
dsa_split_failed(dsa_tokenizer_run_t *run, uint32_t stage, int rc)
{
    PCRE2_UCHAR  text[128];

    (void) pcre2_get_error_message(rc, text, sizeof(text));

    return dsa_error(run->err, "pattern %u of the tokenizer failed on this "
                     "text: %s", stage + 1, (char *) text);
}
