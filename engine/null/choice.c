
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/backend.h"
#include "engine/null/choice.h"


static uint64_t dsa_null_noise(uint64_t seed, uint64_t position);
static uint32_t dsa_null_nth(const uint32_t *mask, uint32_t vocab,
    uint32_t n);
static int dsa_null_banned(const dsa_biases_t *b, uint32_t id);


/* Returns a word of the mask without the bits that are not ids. */

static inline uint32_t
dsa_null_word(const uint32_t *mask, uint32_t vocab, uint32_t word)
{
    uint32_t  left;

    left = vocab - word * 32;

    return left >= 32 ? mask[word] : mask[word] & ((1U << left) - 1);
}


uint32_t
dsa_null_masked(const uint32_t *mask, uint32_t vocab,
    const dsa_null_ends_t *ends, const dsa_sampling_t *s, uint32_t position)
{
    uint32_t  i, n, permitted[DSA_NULL_ENDS];
    uint64_t  noise;

    noise = dsa_null_noise(s->seed, position);
    n = 0;

    for (i = 0; i < ends->n; i++) {
        if (ends->end[i] < vocab && dsa_mask_has(mask, ends->end[i])) {
            permitted[n++] = ends->end[i];
        }
    }

    if (n != 0 && (noise & 3) == 0) {
        return permitted[(noise >> 2) % n];
    }

    n = 0;

    for (i = 0; i < dsa_mask_words(vocab); i++) {
        n += (uint32_t) __builtin_popcount(dsa_null_word(mask, vocab, i));
    }

    /* the high bits, because the low ones were used above */

    return n != 0 ? dsa_null_nth(mask, vocab,
                                 (uint32_t) ((noise >> 32) * n >> 32))
                  : 0;
}


/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), of a counter. */

static uint64_t
dsa_null_noise(uint64_t seed, uint64_t position)
{
    uint64_t  z;

    z = seed + (position + 1) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;

    return z ^ (z >> 31);
}


/* Returns the id of the n-th bit that is set, counted from 0. */

static uint32_t
dsa_null_nth(const uint32_t *mask, uint32_t vocab, uint32_t n)
{
    uint32_t  i, word, bits;

    for (i = 0; i < dsa_mask_words(vocab); i++) {
        word = dsa_null_word(mask, vocab, i);
        bits = (uint32_t) __builtin_popcount(word);

        if (n >= bits) {
            n -= bits;
            continue;
        }

        while (n-- != 0) {
            word &= word - 1;
        }

        return i * 32 + (uint32_t) __builtin_ctz(word);
    }

    return 0;
}


uint32_t
dsa_null_biased(const uint32_t *mask, uint32_t vocab, const dsa_biases_t *b,
    uint32_t token)
{
    uint32_t  i, id;

    if (b->n == 0) {
        return token;
    }

    for (i = 0; i < b->n; i++) {
        id = b->bias[i].id;

        if (b->bias[i].bias >= DSA_SAMPLE_FORCE && id < vocab
            && (mask == NULL || dsa_mask_has(mask, id)))
        {
            return id;
        }
    }

    for (i = 0; i < vocab; i++) {
        id = (token + i) % vocab;

        if ((mask == NULL || dsa_mask_has(mask, id))
            && !dsa_null_banned(b, id))
        {
            return id;
        }
    }

    return token;
}


static int
dsa_null_banned(const dsa_biases_t *b, uint32_t id)
{
    uint32_t  i;

    for (i = 0; i < b->n; i++) {
        if (b->bias[i].id == id && b->bias[i].bias <= -DSA_SAMPLE_FORCE) {
            return 1;
        }
    }

    return 0;
}
