
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What the other side of the link can write: a ring with any content and any
 * indices, read as both ends read it, and the payload of a SUBMIT or COUNT.
 *
 * The first byte of an input chooses; a ring then takes 8 bytes as its head,
 * 8 as the consumer's index, and the rest as its content.  The same bytes are
 * then the sizes of records that both ends of an honest ring exchange.
 */


#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/service/submit.h"
#include "grammar/grammar.h"
#include "kernels/sample/sample.h"
#include "t/lib/small_model.h"


#define RING    4096
#define RECORDS 256         /* more than RING bytes of them */


int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_ring(const uint8_t *data, size_t size);
static void fuzz_exchange(uint64_t start, const uint8_t *data, size_t size);
static void fuzz_submit(dsa_link_type_e type, const uint8_t *data,
    size_t size);
static void fuzz_sampling(const dsa_sampling_t *s);


static dsa_tokenizer_t       *tokenizer;
static dsa_tokenizer_work_t  *work;


int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char       *json;
    FILE       *f;
    size_t      len;
    dsa_err_t   err;

    f = open_memstream(&json, &len);

    if (f == NULL) {
        abort();
    }

    small_model_tokenizer(f, 0);
    (void) fclose(f);

    tokenizer = dsa_tokenizer_read("tokenizer.json", json, len, &err);
    free(json);

    if (tokenizer == NULL) {
        (void) fprintf(stderr, "%s\n", err.text);
        abort();
    }

    work = dsa_tokenizer_work_create(tokenizer);

    if (work == NULL) {
        abort();
    }

    return 0;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }

    switch (data[0] % 3) {

    case 0:
        fuzz_ring(data + 1, size - 1);
        break;

    case 1:
        fuzz_submit(DSA_LINK_SUBMIT, data + 1, size - 1);
        break;

    default:
        fuzz_submit(DSA_LINK_COUNT, data + 1, size - 1);
    }

    return 0;
}


static void
fuzz_ring(const uint8_t *data, size_t size)
{
    int                  rc;
    size_t               i, n, sum;
    uint8_t             *bytes;
    uint64_t             head, start;
    const void          *payload;
    dsa_link_ring_t      ring;
    dsa_link_record_t    record;
    dsa_link_indices_t  *indices;

    if (size < 16) {
        return;
    }

    memcpy(&head, data, 8);
    memcpy(&start, data + 8, 8);
    data += 16;
    size -= 16;

    /* the own index is always a multiple of 8 */

    start &= ~7ULL;

    bytes = malloc(RING);
    indices = aligned_alloc(64, sizeof(dsa_link_indices_t));

    if (bytes == NULL || indices == NULL) {
        abort();
    }

    memset(bytes, 0, RING);
    memcpy(bytes, data, size < RING ? size : RING);

    memset(indices, 0, sizeof(dsa_link_indices_t));
    atomic_store(&indices->head, head);
    atomic_store(&indices->tail, start);

    memset(&ring, 0, sizeof(ring));
    ring.shared = indices;
    ring.data = bytes;
    ring.size = RING;
    ring.own = start;
    ring.pending = start;

    /* a ring of RING bytes holds no more records than this */

    sum = 0;

    for (n = 0; n <= RING / sizeof(dsa_link_record_t) + 1; n++) {
        rc = dsa_link_peek(&ring, &record, &payload);

        if (rc != 1) {
            break;
        }

        for (i = 0; i < record.length; i++) {
            sum += ((const uint8_t *) payload)[i];
        }

        if (record.type <= DSA_LINK_PAD || record.type >= DSA_LINK_TYPES) {
            abort();
        }

        dsa_link_release(&ring);
    }

    if (n > RING / sizeof(dsa_link_record_t) || sum == SIZE_MAX) {
        abort();
    }

    /* the producer, with any index of the consumer */

    atomic_store(&indices->tail, head);

    for (i = 0; i < size && i < 64; i++) {
        n = data[i] * 16U;
        payload = dsa_link_reserve(&ring, DSA_LINK_DONE, i, n);

        if (payload != NULL) {
            memset((void *) (uintptr_t) payload, 0xff, n);
        }

        (void) dsa_link_commit(&ring);
    }

    free(bytes);
    free(indices);

    fuzz_exchange(start, data, size);
}


/*
 * A byte is a record of 4 times its high six bits, or, if the lowest bit is 1,
 * first lets the consumer read one record.  What is read is what was written,
 * in its order.
 */

static void
fuzz_exchange(uint64_t start, const uint8_t *data, size_t size)
{
    size_t               i, k, len, room;
    uint8_t             *p;
    uint32_t             first, last, held[RECORDS];
    const void          *payload;
    dsa_link_ring_t      in, out;
    dsa_link_record_t    record;

    static uint8_t             bytes[RING];
    static dsa_link_indices_t  indices;

    atomic_store(&indices.head, start);
    atomic_store(&indices.tail, start);

    memset(&in, 0, sizeof(in));
    in.shared = &indices;
    in.data = bytes;
    in.size = RING;
    in.own = start;
    in.pending = start;
    out = in;

    first = 0;
    last = 0;

    for (i = 0; i < size; i++) {

        if ((data[i] & 1) != 0 && first != last) {
            if (dsa_link_peek(&out, &record, &payload) != 1
                || record.id != first
                || record.length != held[first % RECORDS])
            {
                abort();
            }

            for (k = 0; k < record.length; k++) {
                if (((const uint8_t *) payload)[k] != (uint8_t) (first + k)) {
                    abort();
                }
            }

            dsa_link_release(&out);
            first++;
        }

        len = (data[i] >> 2) * 4U;
        p = dsa_link_reserve(&in, DSA_LINK_DONE, last, len);

        if (p == NULL) {

            /* at most one record's length is skipped at the end of the ring */

            room = RING - (in.pending - out.own);

            if (room >= 2 * (sizeof(dsa_link_record_t) + len)) {
                abort();
            }

            continue;
        }

        for (k = 0; k < len; k++) {
            p[k] = (uint8_t) (last + k);
        }

        held[last++ % RECORDS] = (uint32_t) len;
        (void) dsa_link_commit(&in);
    }

    if (first == last && dsa_link_peek(&out, &record, &payload) != 0) {
        abort();
    }
}


static void
fuzz_submit(dsa_link_type_e type, const uint8_t *data, size_t size)
{
    void          *copy;
    size_t         i, j, sum;
    dsa_err_t      err;
    dsa_submit_t   submit;
    dsa_tokens_t   tokens;

    copy = malloc(size != 0 ? size : 1);

    if (copy == NULL) {
        abort();
    }

    memcpy(copy, data, size);
    memset(&tokens, 0, sizeof(tokens));
    sum = 0;

    if (dsa_submit_decode(&submit, type, copy, size, &err) == DSA_OK) {

        if (submit.n_stop > DSA_LINK_MAX_STOP
            || submit.n_query > DSA_LINK_MAX_QUERIES
            || (type == DSA_LINK_COUNT
                && (submit.n_stop != 0 || submit.n_resume != 0
                    || submit.biases.n != 0))
            || submit.biases.n > DSA_SAMPLE_MAX_BIAS
            || submit.grammar.len > DSA_GRAMMAR_SPEC)
        {
            abort();
        }

        if (type == DSA_LINK_SUBMIT) {
            fuzz_sampling(&submit.head.sampling);
        }

        for (i = 0; i < submit.biases.n; i++) {
            if (!(submit.biases.bias[i].bias >= -100
                  && submit.biases.bias[i].bias <= 100))
            {
                abort();
            }

            sum += submit.biases.bias[i].id;
        }

        for (j = 0; j < submit.grammar.len; j++) {
            sum += (uint8_t) submit.grammar.data[j];
        }

        for (i = 0; i < submit.n_resume; i++) {
            sum += submit.resume[i];
        }

        for (i = 0; i < submit.n_stop; i++) {
            for (j = 0; j < submit.stop[i].len; j++) {
                sum += (uint8_t) submit.stop[i].data[j];
            }
        }

        sum += dsa_submit_vocabulary(&submit, tokenizer);

        if (dsa_submit_tokenize(&submit, tokenizer, work, 500, &tokens, &err)
            == DSA_OK
            && (tokens.n == 0 || tokens.n > 500))
        {
            abort();
        }
    }

    if (sum == SIZE_MAX) {
        abort();
    }

    free(tokens.ids);
    free(copy);
}


/* What the check accepts has the ranges of the header, and can be sampled. */

static void
fuzz_sampling(const dsa_sampling_t *s)
{
    float         logits[8] = { 3, 1, -2, 0, 5, 1, 1, -7 }, scratch[8];
    uint32_t      history[2] = { 4, 0 };
    dsa_sample_t  out;

    if (s->version != 1 || s->logprobs > 1 || s->top_logprobs > 20
        || (s->reserved[0] | s->reserved[1] | s->reserved[2]) != 0
        || !(s->temperature >= 0 && s->temperature <= FLT_MAX)
        || !(s->top_p > 0 && s->top_p <= 1)
        || !(s->frequency_penalty >= -2 && s->frequency_penalty <= 2)
        || !(s->presence_penalty >= -2 && s->presence_penalty <= 2))
    {
        abort();
    }

    dsa_sample(&out, s, NULL, logits, 8, 8, NULL, history, 2, 9, scratch);

    if (out.token >= 8 || out.n_top > 8 || out.n_top > s->top_logprobs) {
        abort();
    }
}
