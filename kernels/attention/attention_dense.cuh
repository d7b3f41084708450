
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_DENSE_CUH_INCLUDED_
#define _DSA_ATTENTION_DENSE_CUH_INCLUDED_


#include "attention_decode.cuh"


/*
 * Dense decode: absorbed MQA over all positions of a row.  The queries of a
 * block are the heads of neighbouring rows of one sequence, so that the drafts
 * of a sequence read its keys together.  A step of 64 keys is a page.
 *
 * The keys of a row are split into parts, and the parts are combined in order.
 * The size of a part depends on the number of the row's keys alone, and the
 * sums of a query depend on no other query of its block.  So the bits of a row
 * do not depend on the rows beside it.
 */

#define DSA_DENSE_FEW       32          /* heads whose parts are small */


typedef struct {
    dsa_decode_t     d;                 /* slot: block tables; n_slot: keys */
    const int32_t   *left;              /* NULL: each row is alone, or all are
                                           of one sequence */
    uint32_t         rows;
    uint32_t         block;             /* queries of a block, at most */
    uint32_t         fit;               /* rows whose queries share blocks, at
                                           most; 1 if d.groups > 1 */
    uint32_t         one;               /* 1: all rows are of one sequence */
    uint32_t         hidden;            /* positions that are not attended */
} dsa_dense_t;


/*
 * The work of a block of threads.  Positions are relative to the first one of
 * the part.
 */

typedef struct {
    uint32_t         own;               /* the row whose part it is */
    uint32_t         row;               /* the first of those that share */
    uint32_t         group;             /* of their queries */
    uint32_t         split;
    uint32_t         n;                 /* keys of the group's last row */
    uint32_t         first;             /* steps */
    uint32_t         count;
    uint32_t         size;              /* of a part, at most */
    uint32_t         rest;              /* of the row's other parts, after this
                                           one */
    uint32_t         queries;           /* up to the end of that row */
    int32_t          low;               /* the first position attended to */
    int32_t          limit;             /* the end of the first row's, one less
                                           than that of the next row */
    int32_t          end;               /* of the group's last row's */
} dsa_dense_job_t;


/*
 * A part of a row with n keys has so many pages: few for few keys, so that one
 * sequence occupies many multiprocessors, and more for many keys, so that parts
 * are little memory compared with their keys.  The sums of many heads are more
 * memory, and storing them takes longer, so that their parts are larger.  Sets
 * above to the number of keys that is too small for this size.
 */

static __host__ __device__ __forceinline__ uint32_t
dsa_dense_pages(uint32_t n, uint32_t heads, uint32_t *above)
{
    uint32_t  pages, many;

    pages = 4;
    many = 2;
    *above = 0;

    if (n > 4096) {
        pages = 8;
        *above = 4096;
    }

    if (n > 16384) {
        pages = 16;
        many = 4;
        *above = 16384;
    }

    if (n > 65536) {
        pages = 32;
        *above = 65536;
    }

    return heads > DSA_DENSE_FEW ? pages * many : pages;
}


/* Returns the parts of a row with n keys. */

static __host__ __device__ __forceinline__ uint32_t
dsa_dense_parts(uint32_t n, uint32_t heads)
{
    uint32_t  above, keys;

    keys = dsa_dense_pages(n, heads, &above) * DSA_DECODE_KEYS;

    return (n + keys - 1) / keys;
}


static __device__ __forceinline__ uint32_t
dsa_dense_keys(const dsa_dense_t &a, uint32_t row)
{
    int32_t  n;

    n = a.d.n_slot[row];

    return n < 0 ? 0 : min((uint32_t) n, a.d.max_slots);
}


/* Returns 1 if a row and the previous one are neighbours in a sequence. */

static __device__ __forceinline__ int
dsa_dense_follows(const dsa_dense_t &a, uint32_t row)
{
    if (a.d.n_slot[row - 1] <= 0 || a.d.n_slot[row] != a.d.n_slot[row - 1] + 1)
    {
        return 0;
    }

    if (a.left != NULL) {
        return a.left[row] > 0 && a.left[row - 1] == a.left[row] + 1;
    }

    return a.one;
}


/*
 * Finds the work of a block.  Rows of a sequence whose parts have the same size
 * share blocks, a->fit at a time: the blocks of the first one of these have the
 * first a->block of their queries, those of the second one the next, and so on;
 * count is 0 for those that are left.
 */

static __device__ __forceinline__ dsa_dense_job_t
dsa_dense_job(const dsa_dense_t &a, uint32_t row, uint32_t split,
    uint32_t group)
{
    uint32_t         b, n, pages, above, before, last;
    dsa_dense_job_t  job;

    job.own = row;
    job.row = row;
    job.group = group;
    job.split = split;

    n = dsa_dense_keys(a, row);
    pages = dsa_dense_pages(n, a.d.heads, &above);

    last = row;

    if (a.fit > 1 && n != 0) {
        before = 0;

        if (a.one) {
            before = job.row;

        } else {
            while (before < job.row && dsa_dense_follows(a, job.row - before))
            {
                before++;
            }
        }

        before = min(before, n - above - 1) % a.fit;
        job.row -= before;
        job.group = before;

        while (last + 1 < a.rows && last + 1 - job.row < a.fit
               && (last + 1 - job.row) * a.d.heads < (before + 1) * a.block
               && dsa_dense_follows(a, last + 1)
               && dsa_dense_keys(a, last + 1) > n)
        {
            (void) dsa_dense_pages(dsa_dense_keys(a, last + 1), a.d.heads,
                                   &b);

            if (b != above) {
                break;
            }

            last++;
        }
    }

    job.queries = (last + 1 - job.row) * a.d.heads;
    job.n = dsa_dense_keys(a, last);
    job.first = job.split * pages;

    job.size = pages;

    n = (job.n + DSA_DECODE_KEYS - 1) / DSA_DECODE_KEYS;
    n = job.group * a.block >= job.queries || n <= job.first
        ? 0 : n - job.first;
    job.count = min(pages, n);
    job.rest = n - job.count;

    b = job.first * DSA_DECODE_KEYS;
    job.low = (int32_t) a.hidden - (int32_t) b;
    job.limit = (int32_t) dsa_dense_keys(a, job.row) - (int32_t) b;
    job.end = (int32_t) job.n - (int32_t) b;

    return job;
}


/* Returns the work of a block that has one part. */

static __device__ __forceinline__ dsa_dense_job_t
dsa_dense_only(const dsa_dense_t &a)
{
    uint32_t  b;

    b = blockIdx.x / a.d.groups;

    return dsa_dense_job(a, b / a.d.splits, b % a.d.splits,
                         blockIdx.x % a.d.groups);
}


/* Returns the place of a query in the parts. */

static __device__ __forceinline__ uint64_t
dsa_dense_at(const dsa_decode_t &a, const dsa_dense_job_t &job,
    uint32_t query)
{
    return ((uint64_t) (job.row + query / a.heads) * a.splits + job.split)
           * a.heads + query % a.heads;
}


#endif /* _DSA_ATTENTION_DENSE_CUH_INCLUDED_ */
