
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAMPLER_H_INCLUDED_
#define _DSA_SAMPLER_H_INCLUDED_


#include "engine/sampling.h"


/*
 * Samples one token from logits [vocab] float32: an id of
 * softmax((logits - penalties + bias) / temperature), restricted to the
 * nucleus, the smallest set of most probable ids whose probabilities reach
 * top_p (among equally probable ids the lower one comes first).  A NaN logit
 * counts as minus infinity.
 *
 * allowed: 1 to vocab.  Ids from there on are never sampled, because the
 *     matrix of the head may have more rows than the tokenizer has ids.
 * mask: NULL, or a bitmap over the vocabulary as in dsa_batch_seq_t.  The
 *     logit of an id that the mask excludes counts as minus infinity before
 *     temperature, top_p and penalties.  When all ids that the mask permits
 *     have logits of minus infinity, the lowest of them is sampled.  The mask
 *     must permit at least one id below allowed.  Reported logprobs are those
 *     of the model's distribution over all allowed ids, without mask and bias.
 * s->bias: is added to the logits beside the penalties.  As documented by
 *     OpenAI, a bias of -100 bans an id: its logit counts as minus infinity.
 *     If permitted ids have a bias of 100, the logits of all others do.  Ids
 *     from allowed on have no effect.
 * history: the n_history answer tokens so far, for the penalties.
 * position: of the token to be sampled.  The noise is a function of (seed,
 *     position) alone, so that another replica continues a sequence with the
 *     same tokens.
 * scratch: vocab floats.
 */
void dsa_sample(dsa_sample_t *out, const dsa_sampling_t *s,
    const float *logits, uint32_t vocab, uint32_t allowed,
    const uint32_t *mask, const uint32_t *history, uint32_t n_history,
    uint64_t position, float *scratch);

/*
 * The same, and reports the ids that the token was drawn from.  kept: NULL, or
 * [dsa_mask_words(vocab)], a bitmap as mask is.  It is written unless
 * draw->n_kept is DSA_KEPT_ALL.
 */
void dsa_sample_draw(dsa_sample_t *out, dsa_draw_t *draw, uint32_t *kept,
    const dsa_sampling_t *s, const float *logits, uint32_t vocab,
    uint32_t allowed, const uint32_t *mask, const uint32_t *history,
    uint32_t n_history, uint64_t position, float *scratch);

/*
 * Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2,
 * 3", SC 2011): out has four random words, a function of counter and key.
 */
void dsa_philox(const uint32_t counter[4], const uint32_t key[2],
    uint32_t out[4]);

/*
 * Uniform in (0, 1), 52 bits of the first two words of Philox4x32-10 with
 * counter (position low, high, lane, 0) and key (seed low, high).
 */
double dsa_uniform(uint64_t seed, uint64_t position, uint32_t lane);


#endif /* _DSA_SAMPLER_H_INCLUDED_ */
