
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A scripted backend for tests of the scheduler.  Its cache holds, for each
 * input token, a hash of the token's id and of the cache entry before it.  The
 * next token is a hash of all cache entries of the sequence.  A wrong block
 * table, a token that was left out, or a page that was computed after another
 * prefix therefore changes the answer, and the expected answer is computed
 * here from the prompt alone.
 *
 * It may have several ranks with pages of their own.  The inputs of a sequence
 * with block tables on all ranks are written on all of them, and all ranks
 * must have the same cache before them.
 *
 * The backend has a clock of its own: a step takes base_us, and token_us for
 * each input token of the rank that has the most; or what cost() returns.
 *
 * With max_drafts it returns drafts of the next tokens: the first next_right of
 * a sequence are the tokens that the answer will have, and those behind them
 * are others.  As in a draft layer, a draft needs a cache entry: draft k that
 * of the last sample's position plus k.
 */


#ifndef _SCHEDULER_BACKEND_H_INCLUDED_
#define _SCHEDULER_BACKEND_H_INCLUDED_


#include "engine/schedule/scheduler.h"


#define VOCAB       50000
#define EOS         1
#define MAX_PAGES   4096
#define TENANTS     8


#define MAX_SEQS    256
#define MAX_RANKS   4
#define NEXT_RANDOM UINT32_MAX


/* An in-flight step: its samples are written when fake_wait() ends it. */

typedef struct {
    uint32_t            n;
    uint32_t            n_tokens;       /* of the rank with the most */
    uint64_t            us;             /* of cost() */
    uint32_t            n_outputs[MAX_SEQS];
    uint32_t            token[MAX_SEQS][DSA_MAX_OUTPUTS];
    uint32_t            accepted[MAX_SEQS];
    uint32_t           *entries[MAX_SEQS];      /* of the tokens before the
                                                   next drafts, or NULL */
    uint32_t            n_entries[MAX_SEQS];
    uint64_t            seed[MAX_SEQS];
    uint32_t            next[MAX_SEQS][DSA_MAX_OUTPUTS];
    uint32_t            n_next[MAX_SEQS];
    uint32_t           *tokens[MAX_SEQS];       /* of an entry that follows one
                                                   in flight, or NULL */
    dsa_batch_seq_t     seq[MAX_SEQS];
} in_flight_t;


typedef struct fake_s  fake_t;

struct fake_s {
    dsa_backend_t       base;
    in_flight_t         step[2];        /* in-flight steps */
    uint32_t            first;
    uint32_t            in_flight;      /* how many of them there are */
    uint32_t            inputs_from;    /* inputs that were in-flight samples */
    uint32_t            cache[MAX_RANKS][MAX_PAGES][DSA_PAGE_TOKENS];
    uint32_t            max_seqs;       /* on each rank */
    uint32_t            max_tokens;     /* on all ranks */
    uint32_t            eos_at;         /* this answer token ends it; 0: none */
    uint32_t            eos_number;     /* of config.ends */
    uint32_t            fails;
    uint32_t            next_right;     /* drafts of an entry that are right,
                                           or NEXT_RANDOM */
    uint32_t            unmasked;       /* 1: drafts are drawn without masks */
    uint64_t            gone;           /* masks of sequences that had ended */
    uint64_t            now_us;
    uint64_t            base_us;
    uint64_t            token_us;
    uint64_t          (*cost)(fake_t *f, const dsa_batch_seq_t *seq,
                              uint32_t n);      /* us of a step, or NULL */

    /* of the last step, and of all */

    uint32_t            n_seqs;
    uint32_t            n_tokens;
    uint32_t            rank_seqs[MAX_RANKS];
    uint32_t            rank_tokens[MAX_RANKS];
    uint32_t            n_split;        /* sequences on all ranks */
    uint64_t            all_tokens;
    uint64_t            copied;         /* pages */
    uint64_t            drafts;
    uint64_t            tenant_tokens[TENANTS];
    uint32_t            tenant_seqs[TENANTS];
    uint32_t            tenant_rank[TENANTS];   /* of its last sequence */
};


/* The cache entry of a token; before is the entry before it. */

static inline uint32_t
entry_of(uint32_t before, uint32_t token)
{
    uint64_t  h;

    h = ((uint64_t) before << 32 | token) * 0x9e3779b97f4a7c15ULL;

    return (uint32_t) (h >> 31);
}


static inline uint32_t
token_of(const uint32_t *entries, uint32_t n, uint64_t seed)
{
    uint32_t  i;
    uint64_t  h;

    h = seed * 0x9e3779b97f4a7c15ULL + n;

    for (i = 0; i < n; i++) {
        h = (h ^ entries[i]) * 0x100000001b3ULL;
        h ^= h >> 29;
    }

    return 100 + (uint32_t) (h % (VOCAB - 100));
}


static uint32_t  depth;         /* of the backend that tests run on */
static uint32_t  ranks = 1;     /* its pages and max_running are of each */
static uint32_t  rank_tokens = UINT32_MAX;
static uint32_t  max_outputs = 1;
static uint32_t  max_drafts;    /* of the backend */


/* The cache entry at a position of a block table of a rank. */

static inline uint32_t *
fake_entry(fake_t *f, uint32_t rank, const uint32_t *pages, uint32_t at)
{
    assert_true(rank < f->base.ranks);
    assert_true(pages[at / DSA_PAGE_TOKENS] < f->base.pages);

    return &f->cache[rank][pages[at / DSA_PAGE_TOKENS]][at % DSA_PAGE_TOKENS];
}


/* The first id from token on, cyclically, that a mask permits. */

static inline uint32_t
masked(uint32_t token, const uint32_t *mask)
{
    while (!dsa_mask_has(mask, token)) {
        token = (token + 1) % VOCAB;
    }

    return token;
}


/* Samples output i of a sequence from the cache. */

static inline uint32_t
fake_sample(fake_t *f, const dsa_batch_seq_t *seq, uint32_t i)
{
    uint32_t         n, at, token, *all;
    const uint32_t  *mask;

    n = dsa_batch_position(seq, i);
    all = malloc(n * sizeof(uint32_t));
    assert_non_null(all);

    for (at = 0; at < n; at++) {
        all[at] = *fake_entry(f, seq->rank, seq->pages, at);
    }

    token = token_of(all, n, seq->sampling->seed);
    free(all);

    if (f->eos_at != 0 && n - seq->n_prompt + 1 == f->eos_at) {
        token = f->base.config.ends.id[f->eos_number];
    }

    if (seq->mask != NULL) {
        mask = seq->mask + (size_t) i * dsa_mask_words(VOCAB);

        token = masked(token, mask);
    }

    return token;
}


/* Writes the cache entries of a sequence's inputs on one rank. */

static inline void
fake_inputs(fake_t *f, const dsa_batch_seq_t *seq, uint32_t rank,
    const uint32_t *pages)
{
    uint32_t  n, at, before;

    n = seq->start + seq->n_input;

    for (at = seq->start; at < n; at++) {
        before = at == 0 ? 0 : *fake_entry(f, rank, pages, at - 1);
        *fake_entry(f, rank, pages, at) = entry_of(before, seq->tokens[at]);
    }
}


/* The same on all ranks, which have the same cache before the inputs. */

static inline void
fake_split(fake_t *f, const dsa_batch_seq_t *seq)
{
    uint32_t  r, at;

    assert_int_equal(seq->input_from, DSA_INPUT_KNOWN);
    assert_int_equal(seq->n_draft, 0);
    assert_ptr_equal(seq->copies[seq->rank], seq->pages);

    for (r = 0; r < f->base.ranks; r++) {
        for (at = 0; at < seq->start; at++) {
            assert_int_equal(*fake_entry(f, r, seq->copies[r], at),
                             *fake_entry(f, seq->rank, seq->pages, at));
        }

        fake_inputs(f, seq, r, seq->copies[r]);
    }

    f->n_split++;
}


/* Counts a sequence and its tokens on its ranks. */

static inline void
fake_count(fake_t *f, const dsa_batch_seq_t *seq)
{
    uint32_t  r, n;

    n = f->base.ranks;

    for (r = 0; r < n; r++) {
        if (seq->copies != NULL) {
            f->rank_seqs[r]++;
            f->rank_tokens[r] += (seq->n_input + n - 1) / n;

        } else if (r == seq->rank) {
            f->rank_seqs[r]++;
            f->rank_tokens[r] += seq->n_input;
        }

        assert_true(f->rank_seqs[r] <= f->max_seqs);
        assert_true(f->rank_tokens[r] <= f->base.rank_tokens);
    }
}


static inline int
fake_copy(dsa_backend_t *b, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err)
{
    fake_t    *f;
    uint32_t   i, j;

    f = (fake_t *) b;

    if (f->fails) {
        return dsa_error(err, "it fails");
    }

    assert_true(n != 0);

    for (i = 0; i < n; i++) {
        assert_true(copy[i].from_rank < b->ranks
                    && copy[i].to_rank < b->ranks
                    && copy[i].from_rank != copy[i].to_rank
                    && copy[i].from_page < b->pages
                    && copy[i].to_page < b->pages);

        /* a call may make its copies in any order */

        for (j = 0; j < n; j++) {
            assert_false(copy[i].from_rank == copy[j].to_rank
                         && copy[i].from_page == copy[j].to_page);
            assert_false(i != j && copy[i].to_rank == copy[j].to_rank
                         && copy[i].to_page == copy[j].to_page);
        }

        memcpy(f->cache[copy[i].to_rank][copy[i].to_page],
               f->cache[copy[i].from_rank][copy[i].from_page],
               sizeof(f->cache[0][0]));
    }

    f->copied += n;

    return DSA_OK;
}


/*
 * Keeps what the drafts after a step depend on: the cache entries of all tokens
 * up to the last valid sample.
 */

static inline void
fake_keep(fake_t *f, in_flight_t *now, uint32_t i)
{
    uint32_t                n, at, *entries;
    const dsa_batch_seq_t  *seq = &now->seq[i];

    n = dsa_batch_position(seq, now->accepted[i] - 1);
    entries = malloc((n + 1 + max_drafts) * sizeof(uint32_t));
    assert_non_null(entries);

    for (at = 0; at < n; at++) {
        entries[at] = *fake_entry(f, seq->rank, seq->pages, at);
    }

    entries[n] = entry_of(n == 0 ? 0 : entries[n - 1],
                          now->token[i][now->accepted[i] - 1]);
    now->entries[i] = entries;
    now->n_entries[i] = n + 1;
    now->seed[i] = seq->sampling->seed;
}


/*
 * Makes the drafts after entry i: when the step ends, as a GPU would, or when a
 * step that verifies them starts before.
 */

static inline void
fake_next(fake_t *f, in_flight_t *old, uint32_t i)
{
    uint32_t                 k, n, most, room, right, token, *entries;
    uint32_t                 tokens[2 * DSA_MAX_OUTPUTS];
    uint32_t                 mask[dsa_mask_words(VOCAB)];
    const dsa_batch_seq_t   *seq = &old->seq[i];

    entries = old->entries[i];
    n = old->n_entries[i];
    room = seq->n_pages * DSA_PAGE_TOKENS - n + 1;
    most = *seq->n_next < room ? *seq->n_next : room;
    right = f->next_right == NEXT_RANDOM ? entries[n - 1] % (max_drafts + 1)
                                         : f->next_right;

    assert_true(most <= max_drafts);
    memcpy(tokens, old->token[i], old->accepted[i] * sizeof(uint32_t));

    for (k = 0; k < most; k++) {
        memset(mask, 0xff, sizeof(mask));

        if (seq->next_mask != NULL && !f->unmasked
            && seq->next_mask(seq->next_owner, tokens, old->accepted[i] + k,
                              mask) != DSA_OK)
        {
            f->gone += *(void **) seq->next_owner == NULL;
            break;
        }

        token = masked(token_of(entries, n + k, old->seed[i]), mask);

        if (k >= right) {
            token = masked((token + 1) % VOCAB, mask);
        }

        tokens[old->accepted[i] + k] = token;
        entries[n + k] = entry_of(entries[n + k - 1], token);
        old->next[i][k] = token;
    }

    old->n_next[i] = k;
    free(entries);
    old->entries[i] = NULL;
}


/*
 * An entry that follows one in flight: its true start, and its tokens with the
 * samples and drafts of that one.  to is a copy of the entry.
 */

static inline void
fake_follow(fake_t *f, in_flight_t *now, uint32_t i, in_flight_t *last)
{
    uint32_t          n, from, room, accepted, *tokens;
    dsa_batch_seq_t  *to;

    to = &now->seq[i];
    from = to->input_from;

    assert_non_null(last);
    assert_true(from < last->n);

    accepted = last->accepted[from];
    n = 0;

    if (last->seq[from].next != NULL) {
        assert_true(last->entries[from] == NULL
                    || last->seq[from].next_mask == NULL);

        if (last->entries[from] != NULL) {
            fake_next(f, last, from);
        }

        n = last->n_next[from];
    }

    tokens = malloc((to->start + accepted + n + 1) * sizeof(uint32_t));
    assert_non_null(tokens);
    memcpy(tokens, to->tokens, to->start * sizeof(uint32_t));
    memcpy(tokens + to->start, last->token[from],
           accepted * sizeof(uint32_t));

    to->start += accepted - 1;
    assert_true(to->start < to->n_pages * DSA_PAGE_TOKENS);
    room = to->n_pages * DSA_PAGE_TOKENS - to->start - 1;
    n = n < to->n_draft ? n : to->n_draft;
    n = n < room ? n : room;

    memcpy(tokens + to->start + 1, last->next[from], n * sizeof(uint32_t));

    to->n_draft = n;
    to->n_input = n + 1;
    to->tokens = tokens;
    now->tokens[i] = tokens;
    f->inputs_from++;
}


static inline int
fake_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    fake_t       *f;
    uint32_t      i, j, t, position;
    in_flight_t  *now, *last;

    f = (fake_t *) b;

    if (f->fails) {
        return dsa_error(err, "it fails");
    }

    assert_true(n_seqs > 0 && n_seqs <= f->max_seqs * b->ranks);
    assert_true(n_seqs <= MAX_SEQS && f->in_flight < b->depth);

    now = &f->step[(f->first + f->in_flight) % 2];
    last = f->in_flight != 0 ? &f->step[f->first] : NULL;
    now->n = n_seqs;
    f->in_flight++;

    for (i = 0; i < n_seqs; i++) {
        now->seq[i] = seq[i];
        now->tokens[i] = NULL;

        if (seq[i].input_from != DSA_INPUT_KNOWN) {
            fake_follow(f, now, i, last);
        }
    }

    seq = now->seq;

    f->n_seqs = n_seqs;
    f->n_tokens = 0;
    f->n_split = 0;
    memset(f->rank_seqs, 0, sizeof(f->rank_seqs));
    memset(f->rank_tokens, 0, sizeof(f->rank_tokens));
    memset(f->tenant_seqs, 0, sizeof(f->tenant_seqs));

    for (i = 0; i < n_seqs; i++) {
        assert_true(seq[i].n_input > seq[i].n_draft);
        assert_true(seq[i].n_draft < b->max_outputs);
        assert_true(seq[i].sampling != NULL || seq[i].n_draft == 0);
        f->n_tokens += seq[i].n_input;
        f->drafts += seq[i].n_draft;

        /* a prompt begins with its tenant */

        t = seq[i].tokens[0];
        assert_true(t < TENANTS);
        f->tenant_tokens[t] += seq[i].n_input;
        f->tenant_seqs[t]++;
        f->tenant_rank[t] = seq[i].rank;

        fake_count(f, &seq[i]);

        if (seq[i].copies != NULL) {
            fake_split(f, &seq[i]);

        } else {
            fake_inputs(f, &seq[i], seq[i].rank, seq[i].pages);
        }
    }

    assert_true(f->n_tokens <= f->max_tokens);
    f->all_tokens += f->n_tokens;
    now->n_tokens = 0;
    now->us = f->cost != NULL ? f->cost(f, seq, n_seqs) : 0;

    for (i = 0; i < b->ranks; i++) {
        if (f->rank_tokens[i] > now->n_tokens) {
            now->n_tokens = f->rank_tokens[i];
        }
    }

    /*
     * Samples follow after all cache entries are written, so that a sequence
     * that writes to a page of another one changes the answer of that one.
     */

    for (i = 0; i < n_seqs; i++) {
        now->accepted[i] = 0;
        now->entries[i] = NULL;
        now->n_outputs[i] = dsa_batch_outputs(&seq[i]);

        for (j = 0; j < now->n_outputs[i]; j++) {
            position = dsa_batch_position(&seq[i], j);
            now->token[i][j] = fake_sample(f, &seq[i], j);
            now->accepted[i]++;

            if (j < seq[i].n_draft
                && now->token[i][j] != seq[i].tokens[position])
            {
                break;
            }
        }

        if (seq[i].next != NULL) {
            fake_keep(f, now, i);
        }

        free(now->tokens[i]);
    }

    return DSA_OK;
}


static inline int
fake_wait(dsa_backend_t *b, dsa_err_t *err)
{
    fake_t       *f;
    uint32_t      i, j;
    in_flight_t  *old;

    f = (fake_t *) b;
    assert_true(f->in_flight > 0);

    old = &f->step[f->first];

    for (i = 0; i < old->n; i++) {
        for (j = 0; j < old->accepted[i]; j++) {
            memset(&old->seq[i].sample[j], 0, sizeof(dsa_sample_t));
            old->seq[i].sample[j].token = old->token[i][j];
        }

        /* also where a following entry had fewer drafts than it might have */

        if (old->seq[i].accepted != NULL) {
            *old->seq[i].accepted = old->accepted[i];
        }

        if (old->seq[i].next == NULL) {
            continue;
        }

        if (old->entries[i] != NULL) {
            fake_next(f, old, i);
        }

        *old->seq[i].n_next = old->n_next[i];
        memcpy(old->seq[i].next, old->next[i],
               old->n_next[i] * sizeof(uint32_t));
    }

    f->now_us += f->cost != NULL ? old->us
                                 : f->base_us + f->token_us * old->n_tokens;
    f->first = (f->first + 1) % 2;
    f->in_flight--;

    return DSA_OK;
}


static inline uint64_t
fake_clock(void *data)
{
    fake_t  *f;

    f = data;

    return f->now_us;
}


static inline void
fake_init(fake_t *f, uint32_t pages, uint32_t max_running, uint32_t budget)
{
    assert_true(pages <= MAX_PAGES && ranks <= MAX_RANKS);

    f->base.pages = pages;
    f->base.depth = depth;
    f->base.ranks = ranks;
    f->base.rank_tokens = rank_tokens;
    f->base.copy = fake_copy;
    f->base.splits = ranks > 1;
    f->base.max_outputs = max_outputs;
    f->base.drafts = max_drafts;
    f->base.start = fake_start;
    f->base.wait = fake_wait;
    f->base.config.ends.id[0] = EOS;
    f->base.config.ends.n = 1;
    f->base.config.vocab_size = VOCAB;
    f->max_seqs = max_running;
    f->max_tokens = budget;
    strcpy(f->base.fingerprint, "fake");
}


#endif /* _SCHEDULER_BACKEND_H_INCLUDED_ */
