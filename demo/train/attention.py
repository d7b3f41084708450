# Copyright (C) The nginx-dsa authors

"""Attention to the tokens that the lightning indexer selects, and the training
of the indexer.

Both need the probabilities of the main attention: attention multiplies the
values by them, and the indexer's loss has them as its target (eq. 3 and 4).
They are computed once, for some rows of queries at a time, and never stored.
The gradient of the indexer's loss is available in the forward pass already,
because the gradient of KL(p || softmax(I)) with respect to I is softmax(I) -
p.

Shapes: B rows of T tokens; H heads of queries and G of keys and values, with Dq
and Dv; J index heads of D; C rows of queries and the first K keys that they
see.  G is H (multi-head form) or 1 (absorbed form, MQA).
"""

import math

import torch

from train.ops import matmul, region, varying, wide


PIECE = 1 << 28         # elements of B * H * C * K: 1 GB of float32


def selected_attention(q, k, v, index, weight, topk, scale):
    """Computes attention to the selected tokens.

    q       [B,T,H,Dq]
    k, v    [B,T,G,Dq], [B,T,G,Dv]
    index   (iq [B,T,J,D], ik [B,T,D], iw [B,T,J] with all constants in it), or
            None for each, if topk is None; the loss is then 0
    weight  [B,T] of a token in the indexer's loss, or None without an index
    topk    None for all visible tokens

    Returns o [B,T,H,Dv], the indexer's loss.
    """
    q, k, v = (x.transpose(1, 2).contiguous() for x in (q, k, v))
    o, loss = Selected.apply(q, k, v, *index, weight, topk, scale)

    return o.transpose(1, 2), loss


class Selected(torch.autograd.Function):
    """The language loss has gradients for q, k and v through o.  The indexer's
    loss has gradients for iq, ik and iw only."""

    @staticmethod
    def forward(ctx, q, k, v, iq, ik, iw, weight, topk, scale):
        learn = any(ctx.needs_input_grad[3:6])
        o, lse, chosen = [], [], []
        grads = [torch.zeros_like(x, dtype=wide(x).dtype)
                 for x in (iq, ik, iw)] if learn else [None] * 3
        loss = q.new_zeros((), dtype=wide(q).dtype)

        for first, end in pieces(q):
            at = varying(torch.arange(first, end, device=q.device), 0)
            every = topk is None or end <= topk
            rows = slice(first, end)

            out = rows_forward(
                part(q, 2, first, end), part(k, 2, 0, end),
                part(v, 2, 0, end), part(iq, 1, first, end),
                part(ik, 1, 0, end), part(iw, 1, first, end),
                part(weight, 1, first, end), at, topk, scale, every, learn)

            o.append(out[0])
            lse.append(out[1])
            chosen.append(out[2])
            loss = loss + out[3]

            if learn:
                grads[0][:, rows] = out[4]
                grads[1][:, :end] += out[5]
                grads[2][:, rows] = out[6]

        o = torch.cat(o, 2)

        if any(ctx.needs_input_grad[:3]):
            ctx.save_for_backward(q, k, v, o, torch.cat(lse, 2), *chosen)

        ctx.scale = scale
        ctx.grads = [None if g is None else g.to(x.dtype)
                     for g, x in zip(grads, (iq, ik, iw))]
        ctx.set_materialize_grads(False)

        return o, loss

    @staticmethod
    def backward(ctx, do, dloss):
        dq = dk = dv = None
        index = [None] * 3

        if dloss is not None:
            index = [None if g is None else g * dloss.to(g.dtype)
                     for g in ctx.grads]

        if do is not None and any(ctx.needs_input_grad[:3]):
            q, k, v, o, lse, *chosen = ctx.saved_tensors
            dq = torch.empty_like(q)
            dk, dv = (torch.zeros_like(x, dtype=wide(x).dtype)
                      for x in (k, v))

            for (first, end), mask in zip(pieces(q), chosen):
                rows = slice(first, end)
                dq[:, :, rows], more_k, more_v = rows_backward(
                    part(q, 2, first, end), part(k, 2, 0, end),
                    part(v, 2, 0, end), part(o, 2, first, end),
                    part(do, 2, first, end), part(lse, 2, first, end),
                    varying(mask, 0, 1, 2), ctx.scale)
                dk[:, :, :end] += more_k
                dv[:, :, :end] += more_v

            dk, dv = dk.to(k.dtype), dv.to(v.dtype)

        return (dq, dk, dv, *index, None, None, None)


def pieces(q):
    """Yields (first, end) of the rows that are computed together."""

    B, H, T, _ = q.shape
    C = 64

    while C < T and B * H * 2 * C * T <= PIECE:
        C *= 2

    return [(first, min(first + C, T)) for first in range(0, T, C)]


def part(x, dim, first, end):
    """Returns the elements first to end of a dimension in contiguous memory.
    Their number and the batch size are marked as varying between calls.  None
    stays None."""

    if x is None:
        return None

    x = x.narrow(dim, first, end - first).contiguous()

    return varying(x.detach(), 0, dim)


def index_scores(iq, ik, iw):
    """Eq. 1: iq [B,C,J,D], ik [B,K,D], iw [B,C,J] -> the products after the
    ReLU [B,C,J,K], scores [B,C,K]."""

    B, C, J, D = iq.shape
    positive = wide(iq).reshape(B, C * J, D) @ wide(ik).transpose(-1, -2)
    positive = positive.reshape(B, C, J, ik.shape[1]).relu()

    return positive, (positive * iw[..., None]).sum(2)


def select(scores, topk):
    """Eq. 2: scores [B,C,K], -inf for invisible keys -> bool, true for the
    topk greatest scores.  Of equal scores the first are selected, as in the
    engine.  There are many equal scores, because a key has the score 0 if the
    ReLU of every head is 0."""

    least = scores.topk(topk, dim=-1, sorted=False).values.amin(-1, True)
    above, equal = scores > least, scores == least
    room = topk - above.sum(-1, keepdim=True)

    return above | (equal & (equal.cumsum(-1, dtype=torch.int32) <= room))


def grouped(x, k):
    """x [B,H,C,n] -> [B,G,H/G*C,n]: the rows of all heads that share keys and
    values, as many as k [B,G,K,Dq] has."""

    return x.reshape(x.shape[0], k.shape[1], -1, x.shape[-1])


def dots(q, k):
    """q [B,H,C,D], k [B,G,K,D] -> all products [B,H,C,K] in at least
    float32."""

    s = grouped(wide(q), k) @ wide(k).transpose(-1, -2)

    return s.reshape(*q.shape[:3], k.shape[2])


@region
def rows_forward(q, k, v, iq, ik, iw, weight, at, topk, scale, every, learn):
    """Computes some rows of queries, at the positions at [C], with the K keys
    up to the last row's: q [B,H,C,Dq], k [B,G,K,Dq], v [B,G,K,Dv] ...

    every: all visible keys are selected.  The softmax is float32; its results
    are rounded to the type of v before they are multiplied by v, as in
    kernels/attention/attention.h.  Returns o [B,H,C,Dv], the logarithm
    lse [B,H,C,1] of each softmax's denominator, chosen [B or 1,C,K], the loss,
    and if learn is true its gradients with respect to iq, ik and iw.
    """
    seen = torch.arange(k.shape[2], device=q.device) <= at[:, None]
    chosen = seen[None]

    if iq is not None:
        positive, scores = index_scores(iq, ik, iw)

    if not every:
        chosen = select(scores.masked_fill(~seen, -math.inf), topk) & seen

    s = dots(q, k) * scale
    s = s.masked_fill(~chosen[:, None], -math.inf)
    lse = s.logsumexp(-1, keepdim=True)
    p = (s - lse).exp()
    o = matmul(grouped(p.to(v.dtype), v), v).reshape(*q.shape[:3], -1)

    if iq is None:
        return o, lse, chosen, p.new_zeros(()), None, None, None

    # the mean over the heads is a distribution again

    p = p.mean(1)
    log = scores.masked_fill(~chosen, -math.inf).log_softmax(-1)
    kl = torch.where(chosen, torch.xlogy(p, p) - p * log,
                     torch.zeros_like(p)).sum(-1)
    loss = (kl * weight).sum()

    if not learn:
        return o, lse, chosen, loss, None, None, None

    dscores = (log.exp() - p) * weight[..., None]
    diw = (positive * dscores[:, :, None]).sum(-1)
    ddots = dscores[:, :, None] * iw[..., None] * (positive > 0)
    B, C, J, D = iq.shape
    ddots = ddots.to(iq.dtype).reshape(B, C * J, ik.shape[1])
    diq = matmul(ddots, ik).reshape(B, C, J, D)
    dik = matmul(ddots.transpose(-1, -2), iq.reshape(B, C * J, D))

    return o, lse, chosen, loss, diq, dik, diw


@region
def rows_backward(q, k, v, o, do, lse, chosen, scale):
    """Returns the gradients with respect to q, k and v; shapes as above, do as
    o."""

    s = dots(q, k) * scale
    p = (s - lse).exp().masked_fill(~chosen[:, None], 0)
    dp = dots(do, v)
    mean = (wide(do) * wide(o)).sum(-1, keepdim=True)
    ds = grouped((p * (dp - mean) * scale).to(q.dtype), k)
    p = grouped(p.to(v.dtype), v)

    return (matmul(ds, k).reshape(q.shape),
            matmul(ds.transpose(-1, -2), grouped(q, k)),
            matmul(p.transpose(-1, -2), grouped(do, v)))
