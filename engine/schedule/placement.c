
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "engine/schedule/state.h"


/*
 * On which rank a sequence runs.  Candidates are the ranks with a free batch
 * index and enough pages.  A sequence is placed on the candidate with the
 * longest prefix in READY pages, if the load of that rank exceeds the lowest
 * load by at most DSA_PLACE_BOUND; otherwise on the candidate with the lowest
 * load.  Pages of the prefix that only other ranks have are copied, so that the
 * choice costs no computation; staying where the prefix is saves pages.  Those
 * that only host memory has count for the ranks of its host: another host would
 * have to compute them, or to read them from a slower tier.
 *
 * The load of a rank is counted in tokens:
 *
 *     prompt tokens that are not computed yet, and all tokens of this step
 *     + DSA_PLACE_RUNNING for each running sequence
 *     + DSA_PLACE_PAGES if all pages are in use, and in proportion
 *
 * Example: rank 0 computes a prompt of which 300 tokens are left and has 2
 * other sequences in decode; of its 1000 pages 50 are in use.  Its load is
 * 300 + 2 + 3 * 256 + 204 = 1274.  Rank 1 is idle with a load of 0.  A request
 * whose prefix is on rank 0 is placed on rank 1, because the difference
 * exceeds 1024, and the pages of the prefix are copied there.  With one
 * sequence less in decode, the difference would be 1017, and the request would
 * be placed on rank 0.
 */

#define DSA_PLACE_RUNNING   256
#define DSA_PLACE_PAGES     4096
#define DSA_PLACE_BOUND     1024


static int dsa_sched_may_use(const dsa_sched_t *s, const dsa_seq_t *seq,
    uint32_t rank);
static uint32_t dsa_sched_longest(const dsa_sched_t *s, const dsa_seq_t *seq,
    uint32_t ranks);
static uint32_t dsa_sched_prefix(dsa_sched_t *s, const dsa_seq_t *seq);
static int dsa_sched_splits(const dsa_sched_t *s, const dsa_seq_t *seq,
    uint32_t found);
static uint32_t dsa_sched_find(dsa_sched_t *s, const dsa_seq_t *seq,
    uint32_t rank);
static void dsa_sched_fill(dsa_sched_t *s, const dsa_seq_t *seq,
    uint32_t rank, uint32_t prefix);


static inline int
dsa_rank_in(uint32_t ranks, uint32_t rank)
{
    return (ranks >> rank & 1) != 0;
}


/* Full pages that the sequence may take from the index. */

static inline uint32_t
dsa_sched_prefix_most(const dsa_seq_t *seq)
{
    return (seq->n_tokens - 1) / DSA_PAGE_TOKENS;
}


/*
 * Without one page more for each running sequence, the next tokens of these
 * would soon preempt what was admitted.
 */

int
dsa_sched_fits(const dsa_sched_t *s, const dsa_seq_t *seq, uint32_t rank)
{
    int       in_use;
    uint32_t  i, n, need, live, n_free;

    live = s->rank[rank].n_live;

    if (live == s->conf.max_running) {
        return 0;
    }

    need = dsa_pages_of(seq->n_tokens);
    n_free = dsa_pages_free(s->pages, rank);

    if (need + live <= n_free) {
        return 1;
    }

    /* pages of the prefix that running sequences use there are not taken */

    n = dsa_sched_prefix_most(seq);

    for (i = 0; i < n; i++) {
        if (dsa_pages_peek(s->pages, rank, &seq->digest[i], &in_use)
            != DSA_NO_PAGE)
        {
            need -= (uint32_t) in_use;

        } else if (dsa_pages_ready(s->pages, &seq->digest[i]) == 0) {
            break;
        }
    }

    return need + live <= n_free;
}


static int
dsa_sched_may_use(const dsa_sched_t *s, const dsa_seq_t *seq, uint32_t rank)
{
    return dsa_policy_may_admit(&s->policy, seq->tenant, rank)
           && dsa_sched_fits(s, seq, rank);
}


uint32_t
dsa_sched_load(const dsa_sched_t *s, uint32_t rank)
{
    uint32_t                 total, used;
    const dsa_sched_rank_t  *r;

    r = &s->rank[rank];
    total = dsa_pages_total(s->pages);
    used = total - dsa_pages_free(s->pages, rank);

    return r->pending + r->tokens + r->n_live * DSA_PLACE_RUNNING
           + (uint32_t) ((uint64_t) used * DSA_PLACE_PAGES / total);
}


uint32_t
dsa_sched_least_loaded(const dsa_sched_t *s)
{
    uint32_t  i, rank, load, least;

    rank = 0;
    least = dsa_sched_load(s, 0);

    for (i = 1; i < s->ranks; i++) {
        load = dsa_sched_load(s, i);

        if (load < least) {
            rank = i;
            least = load;
        }
    }

    return rank;
}


/*
 * Of these ranks, those with the longest prefix: those that have the first
 * page, then the first two, and so on; then, for the pages that no rank has,
 * those whose host has them.
 */

static uint32_t
dsa_sched_longest(const dsa_sched_t *s, const dsa_seq_t *seq, uint32_t ranks)
{
    uint32_t  i, n, ready, found;

    n = dsa_sched_prefix_most(seq);

    for (i = 0; i < n; i++) {
        ready = ranks & dsa_pages_ready(s->pages, &seq->digest[i]);

        if (ready == 0) {
            break;
        }

        ranks = ready;
    }

    while (i < n && dsa_pages_ready(s->pages, &seq->digest[i]) != 0) {
        i++;
    }

    if (dsa_pages_host_of(s->pages, s->ranks - 1) == 0) {

        /* there is one host, so that all ranks have its memory */

        return ranks;
    }

    for ( /* void */ ; i < n; i++) {
        found = ranks & dsa_pages_host_near(s->pages, &seq->digest[i]);

        if (found == 0) {
            break;
        }

        ranks = found;
    }

    return ranks;
}


uint32_t
dsa_sched_place(const dsa_sched_t *s, const dsa_seq_t *seq)
{
    uint32_t  i, n, best, ranks, longest, load, least, least_longest;

    ranks = 0;

    for (i = 0; i < s->ranks; i++) {
        if (dsa_sched_may_use(s, seq, i)) {
            ranks |= 1U << i;
        }
    }

    if ((ranks & (ranks - 1)) == 0) {

        /* one candidate or none */

        for (i = 0; i < s->ranks; i++) {
            if (dsa_rank_in(ranks, i)) {
                return i;
            }
        }

        return DSA_NO_RANK;
    }

    longest = dsa_sched_longest(s, seq, ranks);
    best = DSA_NO_RANK;
    n = DSA_NO_RANK;
    least = UINT32_MAX;
    least_longest = UINT32_MAX;

    for (i = 0; i < s->ranks; i++) {
        if (!dsa_rank_in(ranks, i)) {
            continue;
        }

        load = dsa_sched_load(s, i);

        if (load < least) {
            n = i;
            least = load;
        }

        if (dsa_rank_in(longest, i) && load < least_longest) {
            best = i;
            least_longest = load;
        }
    }

    return least_longest - least <= DSA_PLACE_BOUND ? best : n;
}


/*
 * A split costs pages on all ranks, and helps only while there are fewer
 * prompts than ranks, this one and waiting ones included: otherwise each rank
 * has a prompt of its own to compute.
 */

static int
dsa_sched_splits(const dsa_sched_t *s, const dsa_seq_t *seq, uint32_t found)
{
    uint32_t  i;

    if (!s->backend->splits
        || seq->n_tokens - found * DSA_PAGE_TOKENS < DSA_SCHED_SPLIT
        || s->n_prefill + s->n_waiting >= s->ranks)
    {
        return 0;
    }

    for (i = 0; i < s->ranks; i++) {
        if (!dsa_sched_may_use(s, seq, i)) {
            return 0;
        }
    }

    return 1;
}


/* Pages of the prefix that any rank has; host memory protects them, too. */

static uint32_t
dsa_sched_prefix(dsa_sched_t *s, const dsa_seq_t *seq)
{
    uint32_t  i, n;

    n = dsa_sched_prefix_most(seq);

    for (i = 0; i < n; i++) {
        if (dsa_pages_ready(s->pages, &seq->digest[i]) == 0) {
            break;
        }

        dsa_pages_hit(s->pages, &seq->digest[i]);
    }

    return i;
}


void
dsa_sched_assign(dsa_sched_t *s, dsa_seq_t *seq, uint32_t rank)
{
    uint32_t  i, n, prefix, more, found;

    assert(seq->n_pages == 0 && seq->copies == NULL);

    seq->rank = rank;
    n = dsa_pages_of(seq->n_tokens);
    prefix = dsa_sched_prefix(s, seq);
    more = dsa_sched_available(s, seq, prefix);
    s->n_copy = 0;

    if (dsa_sched_splits(s, seq, prefix + more)
        && dsa_seq_split(seq, s->ranks) == DSA_OK)
    {
        s->n_split++;
        s->stats.split_prompts++;
        seq->n_copied = n;
        seq->tenant->n_pages += n * (s->ranks - 1);
    }

    seq->n_pages = n;
    seq->tenant->n_pages += n;

    /*
     * All pages of the prefix on a rank get a user before one is allocated
     * there, so that none of them is allocated as an empty page.  The index
     * does not change for this prefix, so that all ranks find the same length.
     */

    for (i = 0; i < s->ranks; i++) {
        if (dsa_seq_is_on(seq, i)) {
            found = dsa_sched_find(s, seq, i);

            assert(found == prefix);

            dsa_sched_fill(s, seq, i, prefix);
        }
    }

    seq->computed = prefix * DSA_PAGE_TOKENS;
    seq->scheduled = seq->computed;
    seq->published = prefix;

    if (more != 0) {
        dsa_sched_fetch(s, seq, more);
    }
}


/*
 * Enters the pages of the prefix that a rank has into the block table, and
 * DSA_NO_PAGE for those that only other ranks have.  Returns the pages of the
 * prefix that any rank has.
 */

static uint32_t
dsa_sched_find(dsa_sched_t *s, const dsa_seq_t *seq, uint32_t rank)
{
    uint32_t  i, n, *table;

    n = dsa_sched_prefix_most(seq);
    table = dsa_seq_table(seq, rank);

    for (i = 0; i < n; i++) {
        table[i] = dsa_pages_find(s->pages, rank, &seq->digest[i]);

        if (table[i] == DSA_NO_PAGE
            && dsa_pages_ready(s->pages, &seq->digest[i]) == 0)
        {
            break;
        }
    }

    return i;
}


/*
 * Allocates the pages that the block table of a rank lacks, and adds those of
 * the prefix to s->copy.
 */

static void
dsa_sched_fill(dsa_sched_t *s, const dsa_seq_t *seq, uint32_t rank,
    uint32_t prefix)
{
    int               in_use;
    uint32_t          i, from, ready, *table;
    dsa_page_copy_t  *copy;

    table = dsa_seq_table(seq, rank);

    for (i = 0; i < dsa_pages_of(seq->n_tokens); i++) {
        if (i < prefix && table[i] != DSA_NO_PAGE) {
            continue;
        }

        table[i] = dsa_pages_alloc(s->pages, rank);

        assert(table[i] != DSA_NO_PAGE);

        if (i >= prefix) {
            continue;
        }

        ready = dsa_pages_ready(s->pages, &seq->digest[i]);

        for (from = 0; !dsa_rank_in(ready, from); from++) {
            assert(from < s->ranks);
        }

        copy = &s->copy[s->n_copy++];
        copy->from_rank = from;
        copy->from_page = dsa_pages_peek(s->pages, from, &seq->digest[i],
                                         &in_use);
        copy->to_rank = rank;
        copy->to_page = table[i];
    }
}


/*
 * Steps that are started later can read the new pages, so that these enter the
 * index at once.  The old ones may be allocated at once, too, because steps
 * that overwrite them run after the copies.
 */

int
dsa_sched_copy(dsa_sched_t *s, const dsa_seq_t *seq, dsa_err_t *err)
{
    uint32_t  i, j;

    if (s->n_copy == 0) {
        return DSA_OK;
    }

    if (s->backend->copy(s->backend, s->copy, s->n_copy, err) != DSA_OK) {
        return DSA_ERROR;
    }

    s->stats.copied_tokens += (uint64_t) s->n_copy * DSA_PAGE_TOKENS;

    for (i = 0; i < s->ranks; i++) {
        if (!dsa_seq_is_on(seq, i)) {
            continue;
        }

        for (j = 0; j < seq->published; j++) {
            dsa_pages_publish(s->pages, i, dsa_seq_table(seq, i)[j],
                              &seq->digest[j]);
        }
    }

    return DSA_OK;
}
