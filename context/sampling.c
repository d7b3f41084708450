
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The fields of a chat request that control sampling and the end of the
 * answer.
 */


#include <float.h>
#include <math.h>
#include <stddef.h>

#include "context/read.h"


static int dsa_sampling_read_numbers(dsa_reader_t *r,
    const dsa_json_t *root, size_t n);
static int dsa_sampling_read_n(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_sampling_read_max_tokens(dsa_reader_t *r,
    const dsa_json_t *root);
static int dsa_sampling_read_seed(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_sampling_read_stop(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_sampling_add_stop(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v);


/* The numbers of dsa_sampling_t; those of all APIs come first. */

static const struct {
    const char   *name;
    size_t        offset;
    double        value;        /* the default */
    double        min;
    double        max;
    const char   *range;
} dsa_sampling_numbers[] = {
    { "temperature", offsetof(dsa_sampling_t, temperature),
      NAN, 0, 2, "[0, 2]" },
    { "top_p", offsetof(dsa_sampling_t, top_p),
      NAN, DBL_TRUE_MIN, 1, "(0, 1.0]" },
    { "frequency_penalty", offsetof(dsa_sampling_t, frequency_penalty),
      0, -2, 2, "[-2, 2]" },
    { "presence_penalty", offsetof(dsa_sampling_t, presence_penalty),
      0, -2, 2, "[-2, 2]" }
};

#define DSA_SAMPLING_COMMON   2
#define DSA_SAMPLING_NUMBERS  (sizeof(dsa_sampling_numbers)                   \
                               / sizeof(dsa_sampling_numbers[0]))


/* Fields of other servers; see dsa_read_neutral(). */

static const dsa_field_t  dsa_sampling_unsupported[] = {
    { "allowed_token_ids", { "[]" }, NULL },
    { "bad_words", { "[]" }, NULL },
    { "best_of", { "1" }, NULL },
    { "custom_logit_processor", { NULL }, NULL },
    { "dry_multiplier", { "0" }, NULL },
    { "length_penalty", { "1" }, NULL },
    { "logits_processors", { "[]" }, NULL },
    { "min_p", { "0" }, NULL },
    { "min_tokens", { "0" }, NULL },
    { "mirostat", { "0" }, NULL },
    { "repetition_penalty", { "1" }, NULL },
    { "stop_token_ids", { "[]" }, "use stop" },
    { "stop_regex", { "[]" }, "use stop" },
    { "tfs_z", { "1" }, NULL },
    { "max_reasoning_tokens", { NULL }, "use max_thinking_tokens" },
    { "thinking_budget", { NULL }, "use max_thinking_tokens" },
    { "thinking_token_budget", { NULL }, "use max_thinking_tokens" },
    { "top_a", { "0" }, NULL },
    { "typical_p", { "1" }, NULL },
    { "use_beam_search", { "false" }, NULL },
    { "xtc_probability", { "0" }, NULL }
};

/* The Messages API has this one, and reads it itself. */

static const dsa_field_t  dsa_sampling_top_k_unsupported[] = {
    { "top_k", { "0", "-1" }, NULL }
};


int
dsa_read_sampling(dsa_reader_t *r, const dsa_json_t *root)
{
    if (dsa_sampling_read_numbers(r, root, DSA_SAMPLING_NUMBERS) != DSA_OK
        || dsa_sampling_read_max_tokens(r, root) != DSA_OK
        || dsa_sampling_read_n(r, root) != DSA_OK
        || dsa_sampling_read_seed(r, root) != DSA_OK
        || dsa_sampling_read_stop(r, root) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_read_neutral(r, root, dsa_sampling_top_k_unsupported, 1);
}


int
dsa_read_common_sampling(dsa_reader_t *r, const dsa_json_t *root)
{
    return dsa_sampling_read_numbers(r, root, DSA_SAMPLING_COMMON);
}


int
dsa_read_unsupported_sampling(dsa_reader_t *r, const dsa_json_t *root)
{
    return dsa_read_neutral(r, root, dsa_sampling_unsupported,
                            sizeof(dsa_sampling_unsupported)
                            / sizeof(dsa_sampling_unsupported[0]));
}


/*
 * Reads the first n numbers.  Thinking ignores them as the published API does,
 * but a trainer, who requests a rollout, decides how its samples are drawn.
 */

static int
dsa_sampling_read_numbers(dsa_reader_t *r, const dsa_json_t *root, size_t n)
{
    float   *to, *asked;
    double   value;
    size_t   i;

    for (i = 0; i < n; i++) {
        value = dsa_sampling_numbers[i].value;

        if (dsa_read_number(r, NULL, root, dsa_sampling_numbers[i].name,
                            dsa_sampling_numbers[i].min,
                            dsa_sampling_numbers[i].max,
                            dsa_sampling_numbers[i].range, &value)
            == DSA_ERROR)
        {
            return DSA_ERROR;
        }

        asked = (float *) (void *) ((char *) &r->chat->asked
                                    + dsa_sampling_numbers[i].offset);
        *asked = (float) value;

        if (r->chat->thinking && !r->chat->rollout) {
            value = dsa_sampling_numbers[i].value;
        }

        to = (float *) (void *) ((char *) &r->chat->sampling
                                 + dsa_sampling_numbers[i].offset);
        *to = (float) value;
    }

    return DSA_OK;
}


/* A turn of a conversation has one answer. */

static int
dsa_sampling_read_n(dsa_reader_t *r, const dsa_json_t *root)
{
    int64_t   n;
    dsa_at_t  at = { NULL, "n", 0 };

    n = 1;

    if (dsa_read_integer(r, NULL, root, "n", 1, DSA_CHAT_CHOICES, "[1, 8]",
                         &n)
        == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    if (n != 1 && r->chat->conversation.len != 0) {
        return dsa_refuse_at(r->refusal, &at, "a conversation stores one "
                             "answer to each turn; expected 1, or a request "
                             "without conversation");
    }

    r->chat->others = (uint32_t) n - 1;

    return DSA_OK;
}


static int
dsa_sampling_read_max_tokens(dsa_reader_t *r, const dsa_json_t *root)
{
    size_t       i;
    uint32_t     n;
    dsa_at_t     at = { NULL, NULL, 0 };
    dsa_json_t  *v;

    static const char *const  names[] = {
        "max_tokens", "max_completion_tokens"
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        at.name = names[i];

        if (dsa_read_any(root, at.name, &v) == 0) {
            continue;
        }

        if (dsa_read_tokens(r, &at, v, &n) != DSA_OK) {
            return DSA_ERROR;
        }

        if (r->chat->max_tokens != 0 && r->chat->max_tokens != n) {
            return dsa_refuse_at(r->refusal, &at, "the value differs from "
                                 "that of max_tokens; expected the same, or "
                                 "only one of the two fields");
        }

        r->chat->max_tokens = n;
    }

    return DSA_OK;
}


/* Any integer of 64 bits, signed (as OpenAI's clients send it) or not. */

static int
dsa_sampling_read_seed(dsa_reader_t *r, const dsa_json_t *root)
{
    int          rc;
    int64_t      n;
    uint64_t     seed;
    dsa_str_t    text;
    dsa_json_t  *v;

    if (dsa_read_any(root, "seed", &v) == 0) {
        return DSA_OK;
    }

    if (v->type == DSA_JSON_INTEGER && v->text.len == 20
        && v->text.data[0] == '1')
    {
        seed = 0;

        for (text = v->text; text.len != 0; text.data++, text.len--) {
            if (__builtin_mul_overflow(seed, (uint64_t) 10, &seed)
                || __builtin_add_overflow(seed,
                                          (uint64_t) (text.data[0] - '0'),
                                          &seed))
            {
                break;
            }
        }

        if (text.len == 0) {
            r->chat->sampling.seed = seed;
            r->chat->has_seed = 1;
            return DSA_OK;
        }
    }

    rc = dsa_read_integer(r, NULL, root, "seed", INT64_MIN, INT64_MAX,
                          "[-9223372036854775808, 18446744073709551615]", &n);

    if (rc == 1) {
        r->chat->sampling.seed = (uint64_t) n;
        r->chat->has_seed = 1;
    }

    return rc == DSA_ERROR ? DSA_ERROR : DSA_OK;
}


static int
dsa_sampling_read_stop(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t           at = { NULL, "stop", 0 };
    dsa_at_t           el = { &at, NULL, 0 };
    dsa_json_t        *v;
    const dsa_json_t  *child;

    if (dsa_read_any(root, "stop", &v) == 0) {
        return DSA_OK;
    }

    if (v->type == DSA_JSON_ARRAY && v->n > DSA_CHAT_STOP) {
        return dsa_refuse_at(r->refusal, &at, "%u stop strings; at most %u "
                             "are accepted", v->n, DSA_CHAT_STOP);
    }

    r->chat->stop = dsa_arena_calloc(r->arena,
                                     DSA_CHAT_STOP * sizeof(dsa_str_t));
    if (r->chat->stop == NULL) {
        return dsa_refuse_memory(r->refusal, r->arena);
    }

    if (v->type != DSA_JSON_ARRAY) {
        return dsa_sampling_add_stop(r, &at, v);
    }

    for (child = v->first; child != NULL; child = child->next) {
        if (dsa_sampling_add_stop(r, &el, child) != DSA_OK) {
            return DSA_ERROR;
        }

        el.index++;
    }

    return DSA_OK;
}


static int
dsa_sampling_add_stop(dsa_reader_t *r, const dsa_at_t *at, const dsa_json_t *v)
{
    if (v->type != DSA_JSON_STRING) {
        return dsa_refuse_type(r->refusal, at, v, at->name != NULL
                               ? "a string or an array of strings"
                               : "a string");
    }

    if (v->text.len > DSA_CHAT_STOP_LEN) {
        return dsa_refuse_at(r->refusal, at, "a stop string of %zu bytes; at "
                             "most %d are accepted", v->text.len,
                             DSA_CHAT_STOP_LEN);
    }

    /* some clients send "" for none; it would stop every answer at once */

    if (v->text.len != 0) {
        r->chat->stop[r->chat->n_stop++] = v->text;
    }

    return DSA_OK;
}


int
dsa_read_logprobs(dsa_reader_t *r, const dsa_json_t *root)
{
    int        logprobs;
    int64_t    top;
    dsa_at_t   at = { NULL, "top_logprobs", 0 };

    logprobs = 0;
    top = 0;

    if (dsa_read_bool(r, NULL, root, "logprobs", &logprobs) == DSA_ERROR
        || dsa_read_integer(r, NULL, root, "top_logprobs", 0,
                            DSA_SAMPLE_MAX_TOP, "[0, 20]", &top)
           == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    if (top != 0 && !logprobs) {
        return dsa_refuse(r->refusal, &at, "top_logprobs should be set along "
                          "with logprobs = true");
    }

    r->chat->sampling.logprobs = (uint32_t) logprobs;
    r->chat->sampling.top_logprobs = (uint32_t) top;

    return DSA_OK;
}
