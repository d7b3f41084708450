# Copyright (C) The nginx-dsa authors

"""Attention to the tokens that the lightning indexer selects, and the training
of the indexer.

Both need the probabilities of the main attention: attention multiplies the
values by them, and the indexer's loss has them as its target (eq. 3 and 4).
They are computed once, for some rows of queries at a time.  The gradient of
the indexer's loss is available in the forward pass already, because the
gradient of KL(p || softmax(I)) with respect to I is softmax(I) - p.

The products of matrices have all the keys that the rows see, and the results
live as long as these rows are computed.  All else, softmax, loss and their
gradients, has the topk selected keys of a query only: they are taken out of
the products, and spread into matrices of zeros for the next product.  So what
is kept for the backward pass grows with T * topk, and not with T * T.  Tensor
cores compute the products with all keys in less time than it takes to copy the
selected keys of each query next to each other, because only a few heads share
such a copy; README.md has the numbers.

Shapes: B rows of T tokens; H heads of queries and G of keys and values, with Dq
and Dv; J index heads of D; C rows of queries, the first K keys that they see,
and N keys of a query: all K, or the topk selected.  G is H (multi-head form) or
1 (absorbed form, MQA).
"""

import math

import torch

from train.ops import matmul, region, varying, wide, wide_matmul


PIECE = 1 << 29         # most elements of B * H * C * K: 2 GB of float32
BUSY = 1 << 24          # as many of them, and no kernel is too short
PARTS = 4               # pieces of a row, if they are not too short


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
        o = q.new_empty(*q.shape[:3], v.shape[-1], dtype=v.dtype)
        kept = []
        grads = [torch.zeros_like(x, dtype=wide(x).dtype)
                 for x in (iq, ik, iw)] if learn else [None] * 3
        loss = q.new_zeros((), dtype=wide(q).dtype)

        for first, end in pieces(q):
            every = topk is None or end <= topk
            rows = slice(first, end)

            out = rows_forward(
                part(q, 2, first, end), part(k, 2, 0, end),
                part(v, 2, 0, end), part(iq, 1, first, end),
                part(ik, 1, 0, end), part(iw, 1, first, end),
                part(weight, 1, first, end), positions(q, first, end), topk,
                scale, every, learn)

            o[:, :, rows] = out[0]
            kept += out[1:3]
            loss = loss + out[3]

            if learn:
                grads[0][:, rows] = out[4]
                grads[1][:, :end] += out[5]
                grads[2][:, rows] = out[6]

        if any(ctx.needs_input_grad[:3]):
            ctx.save_for_backward(q, k, v, *kept)

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
            q, k, v, *kept = ctx.saved_tensors
            dq = torch.empty_like(q)
            dk, dv = (torch.zeros_like(x, dtype=wide(x).dtype)
                      for x in (k, v))

            for (first, end), p, places in zip(pieces(q), kept[::2],
                                               kept[1::2]):
                dq[:, :, first:end], more_k, more_v = rows_backward(
                    part(q, 2, first, end), part(k, 2, 0, end),
                    part(v, 2, 0, end), part(do, 2, first, end),
                    varying(p, 0, 2),
                    None if places is None else varying(places, 0, 1),
                    positions(q, first, end), ctx.scale)
                dk[:, :, :end] += more_k
                dv[:, :, :end] += more_v

            dk, dv = dk.to(k.dtype), dv.to(v.dtype)

        return (dq, dk, dv, *index, None, None, None)


def pieces(q):
    """Returns (first, end) of the rows of q [B,H,T,Dq] that are computed
    together.  The longest come first, because the compiler chooses the sizes
    of blocks by the first shapes that it sees.  Small pieces have few keys
    that their first rows do not see."""

    B, H, T, _ = q.shape
    C = 64

    while C < T and (C < T / PARTS or B * H * C * T < BUSY) \
            and B * H * 2 * C * T <= PIECE:
        C *= 2

    return [(first, min(first + C, T)) for first in range(0, T, C)][::-1]


def part(x, dim, first, end):
    """Returns the elements first to end of a dimension in contiguous memory.
    Their number and the batch size are marked as varying between calls.  None
    stays None."""

    if x is None:
        return None

    x = x.narrow(dim, first, end - first).contiguous()

    return varying(x.detach(), 0, dim)


def positions(q, first, end):
    return varying(torch.arange(first, end, device=q.device), 0)


def index_scores(iq, ik, iw):
    """Eq. 1: iq [B,C,J,D], ik [B,K,D], iw [B,C,J] -> the products before the
    ReLU [B,C,J,K], scores [B,C,K]."""

    B, C, J, D = iq.shape
    products = wide_matmul(iq.reshape(B, C * J, D), ik.transpose(-1, -2))
    products = products.reshape(B, C, J, ik.shape[1])

    return products, (products.relu() * iw[..., None]).sum(2)


def select(scores, topk):
    """Eq. 2: scores [B,C,K], -inf for invisible keys -> bool, true for the
    topk greatest scores.  Of equal scores the first are selected, as in the
    engine.  There are many equal scores, because a key has the score 0 if the
    ReLU of every head is 0."""

    key = ordered(scores)
    least = kth(key, topk)
    above, equal = key > least, key == least
    room = topk - above.sum(-1, keepdim=True, dtype=torch.int32)

    return above | (equal & (equal.cumsum(-1, dtype=torch.int32) <= room))


def ordered(x):
    """Returns integers [...] in the order of x (float32 or float64).  The bits
    of numbers without a sign are in their order already; 0 and -0 are
    equal."""

    kind = {torch.float32: torch.int32, torch.float64: torch.int64}[x.dtype]
    i = x.view(kind)
    most = torch.iinfo(kind).max
    i = torch.where(i < 0, i ^ most, i)

    return i.masked_fill(x == 0, 0)


def kth(key, n):
    """key [...,K] -> the n-th greatest of each row [...,1].

    It is found two bits at a time, by counting.  These are loops over a row,
    which a compiler can fuse, and a row fits into the cache of a
    multiprocessor.
    """
    info = torch.iinfo(key.dtype)
    t = torch.full_like(key[..., :1], info.min)

    for shift in range(info.bits - 2, -1, -2):
        at = t

        for _ in range(3):
            at = at + (1 << shift)
            many = (key >= at).sum(-1, keepdim=True, dtype=torch.int32) >= n
            t = torch.where(many, at, t)

    return t


def places_of(chosen, topk):
    """chosen [B,C,K], true for topk elements of each row -> their places
    [B,C,topk] int32, in order."""

    # all others go to an element that is removed

    rank = chosen.cumsum(-1, dtype=torch.int32) - 1
    slot = torch.where(chosen, rank, topk).long()
    key = torch.arange(chosen.shape[-1], dtype=torch.int32,
                       device=chosen.device)
    places = key.new_zeros(*slot.shape[:-1], topk + 1)

    places.scatter_(-1, slot, key.expand_as(slot))

    return places[..., :topk].contiguous()


def take(x, places, dim):
    """Returns the elements [...,N] of x [...,K] at places [B,C,N], which are
    the same for all heads in dimension dim; all, if places is None."""

    if places is None:
        return x

    return x.gather(-1, alike(places, x.shape[dim], dim))


def spread(x, places, dim, K):
    """Returns a matrix [...,K] with the elements x [...,N] at places, and 0
    elsewhere; the inverse of take()."""

    if places is None:
        return x

    return x.new_zeros(*x.shape[:-1], K).scatter_(
        -1, alike(places, x.shape[dim], dim), x)


def alike(places, heads, dim):
    places = places.long().unsqueeze(dim)
    sizes = list(places.shape)
    sizes[dim] = heads

    return places.expand(sizes)


def grouped(x, k):
    """x [B,H,C,n] -> [B,G,H/G*C,n]: the rows of all heads that share keys and
    values, as many as k [B,G,K,Dq] has."""

    return x.reshape(x.shape[0], k.shape[1], -1, x.shape[-1])


def dots(q, k):
    """q [B,H,C,D], k [B,G,K,D] -> all products [B,H,C,K] in at least
    float32."""

    s = wide_matmul(grouped(q, k), k.transpose(-1, -2))

    return s.reshape(*q.shape[:3], k.shape[2])


@region
def rows_forward(q, k, v, iq, ik, iw, weight, at, topk, scale, every, learn):
    """Computes some rows of queries, at the positions at [C], with the K keys
    up to the last row's: q [B,H,C,Dq], k [B,G,K,Dq], v [B,G,K,Dv] ...

    every: all visible keys are selected.  The softmax is float32; its results
    are rounded to the type of v before they are multiplied by v, as in
    kernels/attention/attention.h.  Returns o [B,H,C,Dv]; what
    rows_backward() needs: the logarithm [B,H,C,1] of each softmax's denominator
    and None, or, of the selected keys, the probabilities [B,H,C,topk] and
    places [B,C,topk]; the loss, and if learn is true its gradients with respect
    to iq, ik and iw.
    """
    K = k.shape[2]
    key = torch.arange(K, device=q.device)
    seen = (key <= at[:, None])[None]
    places = None

    if iq is not None:
        products, scores = index_scores(iq, ik, iw)

    # a row of fewer than topk visible keys has places that it does not see

    if not every:
        places = places_of(
            select(scores.masked_fill(~seen, -math.inf), topk), topk)
        seen = places <= at[:, None]

    s = take(dots(q, k), places, 1) * scale
    s = s.masked_fill(~seen[:, None], -math.inf)
    lse = s.logsumexp(-1, keepdim=True)
    p = (s - lse).exp()
    full = spread(p.to(v.dtype), places, 1, K)
    o = matmul(grouped(full, v), v).reshape(*q.shape[:3], -1)
    kept = (lse if every else p), places

    if iq is None:
        return (o, *kept, p.new_zeros(()), None, None, None)

    products = take(products, places, 2)
    scores = take(scores[:, None], places, 1)[:, 0]
    loss, dproducts, diw = index_loss(p.mean(1), products, scores, seen, iw,
                                      weight)

    if not learn:
        return (o, *kept, loss, None, None, None)

    B, C, J, D = iq.shape
    full = spread(dproducts.to(iq.dtype), places, 2, K).reshape(B, C * J, K)
    diq = matmul(full, ik).reshape(B, C, J, D)
    dik = matmul(full.transpose(-1, -2), iq.reshape(B, C * J, D))

    return (o, *kept, loss, diq, dik, diw)


def index_loss(p, products, scores, seen, iw, weight):
    """The KL divergence of eq. 3 and 4 and its gradients: p [B,C,N], the mean
    over the heads, which is a distribution again; products [B,C,J,N], scores
    [B,C,N], seen [B or 1,C,N], iw [B,C,J], weight [B,C] -> the loss, gradients
    with respect to products and iw."""

    log = scores.masked_fill(~seen, -math.inf).log_softmax(-1)
    kl = torch.where(seen, torch.xlogy(p, p) - p * log,
                     torch.zeros_like(p)).sum(-1)
    dscores = ((log.exp() - p) * weight[..., None])[:, :, None]

    return ((kl * weight).sum(),
            dscores * iw[..., None] * (products > 0),
            (products.relu() * dscores).sum(-1))


@region
def rows_backward(q, k, v, do, kept, places, at, scale):
    """Returns the gradients with respect to q, k and v; do [B,H,C,Dv], kept
    and places as rows_forward() returns them, other shapes as there."""

    K, p = k.shape[2], kept

    if places is None:
        seen = torch.arange(K, device=q.device) <= at[:, None]
        p = (dots(q, k) * scale - kept).exp().masked_fill(~seen, 0)

    dp = take(dots(do, v), places, 1)
    ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * scale
    ds = grouped(spread(ds.to(q.dtype), places, 1, K), k)
    p = grouped(spread(p.to(v.dtype), places, 1, K), v)

    return (matmul(ds, k).reshape(q.shape),
            matmul(ds.transpose(-1, -2), grouped(q, k)),
            matmul(p.transpose(-1, -2), grouped(do, v)))
