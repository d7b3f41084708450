# Copyright (C) The nginx-dsa authors

"""Cross-entropy over a vocabulary, for some tokens at a time.  The gradient
with respect to the logits is computed together with them, so that the logits
are neither stored nor computed again."""

import torch
import torch.nn.functional as F

from train.ops import region, wide


PIECE = 16384           # tokens; the same for all batches


def cross_entropy(hidden, head, targets, weights, total=None):
    """hidden [N,H], head [V,H], targets [N] int64, weights [N] -> the weighted
    mean, or, if these are some tokens of a batch with this total of weights,
    their part of its mean."""

    weights = weights.to(wide(hidden).dtype)
    total = weights.sum() if total is None else total
    weights = weights / total.clamp(min=1e-6)
    learn = torch.is_grad_enabled() and (hidden.requires_grad
                                         or head.requires_grad)

    return CrossEntropy.apply(hidden, head, targets, weights, learn)


class CrossEntropy(torch.autograd.Function):

    @staticmethod
    def forward(ctx, hidden, head, targets, weights, learn):
        loss, dhidden, dhead = 0, [], 0

        # all pieces have the same size, so one compiled function is enough;
        # the last is padded

        n = hidden.shape[0]
        more = -n % min(PIECE, 1 << (n - 1).bit_length())
        h = F.pad(hidden, (0, 0, 0, more))
        t = F.pad(targets, (0, more))
        w = F.pad(weights, (0, more))

        for at in range(0, n, PIECE):
            rows = slice(at, at + PIECE)
            out = some_tokens(h[rows], head, t[rows], w[rows], learn)
            loss = loss + out[0]

            if learn:
                dhidden.append(out[1])
                dhead = dhead + out[2]

        if learn:
            ctx.save_for_backward(torch.cat(dhidden)[:n],
                                  dhead.to(head.dtype))

        return loss

    @staticmethod
    def backward(ctx, g):
        dhidden, dhead = ctx.saved_tensors
        return dhidden * g.to(dhidden.dtype), dhead * g, None, None, None


@region
def some_tokens(hidden, head, targets, weights, learn):
    """Returns the sum of weighted losses and, if learn is true, its gradients
    with respect to hidden and head."""

    logits = wide(hidden) @ wide(head).t()
    lse = logits.logsumexp(-1)
    right = logits.gather(-1, targets[:, None])[:, 0]
    loss = ((lse - right) * weights).sum()

    if not learn:
        return loss, None, None

    d = (logits - lse[:, None]).exp()
    hit = torch.arange(d.shape[1], device=d.device) == targets[:, None]
    d = (d - hit.to(d.dtype)) * weights[:, None]

    # These two products are small, so float32 costs little here.  The
    # gradients of rare tokens are small and need its precision.

    return (loss, (d @ wide(head)).to(hidden.dtype), d.t() @ wide(hidden))
