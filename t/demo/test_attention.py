# Copyright (C) The nginx-dsa authors

"""Compares attention to the selected tokens, and the indexer's loss, with loops
over the equations; and counts what is kept for the backward pass."""

import math
import unittest
from unittest import mock

from models import config, needs_torch

try:
    import torch
    from train import attention, data, recipe
except ImportError:
    torch = None


def naive(q, k, v, iq, ik, iw, topk, scale):
    """Computes one row of one batch by eq. 1 to 4, token by token; k and v
    [T,G,...].  Returns (o [T,H,Dv], [KL of each token], [the tokens
    chosen])."""

    T, H, _ = q.shape
    k, v = (x.expand(-1, H, -1) for x in (k, v))
    o, losses, sets = [], [], []

    for t in range(T):
        score = [sum(iw[t, j] * (iq[t, j] @ ik[s]).relu()
                     for j in range(iq.shape[1])) for s in range(t + 1)]
        best = sorted(range(t + 1), key=lambda s: (-float(score[s]), s))
        best = sorted(best[:topk])
        each, total = [], 0

        for h in range(H):
            p = (k[best, h] @ q[t, h] * scale).softmax(0)
            each.append(p @ v[best, h])
            total = total + p.detach()

        p = total / total.sum()
        log = torch.stack([score[s] for s in best]).log_softmax(0)
        o.append(torch.stack(each))
        losses.append((p * (p.log() - log)).sum())
        sets.append(best)

    return torch.stack(o), losses, sets


def naive_rows(args, weight, topk, scale):
    """Returns o [B,T,H,Dv] and the loss of a batch."""

    rows = [naive(*(x[b] for x in args), topk, scale)
            for b in range(len(weight))]

    return (torch.stack([o for o, _, _ in rows]),
            sum(w * x for b, (_, losses, _) in enumerate(rows)
                for w, x in zip(weight[b], losses)))


def selected(args, weight, topk, scale):
    return attention.selected_attention(*args[:3], args[3:], weight, topk,
                                        scale)


def results(function, args, weight, topk):
    """Returns o, the loss, and the gradients of a function of both with
    respect to q, k, v, iq, ik and iw."""

    args = [x.clone().requires_grad_() for x in args]
    o, loss = function(args, weight, topk, 0.3)
    some = torch.arange(o.numel(), dtype=o.dtype).reshape(o.shape).cos()
    ((o * some).sum() + 1.7 * loss).backward()

    return [o.detach(), loss.detach()] + [x.grad for x in args]


def inputs(B, T, H=2, G=2, J=3, whole=False):
    """Returns q, k, v, iq, ik, iw and weight in float64.  whole: the
    indexer's are whole numbers, so that many scores are equal."""

    shapes = ((B, T, H, 6), (B, T, G, 6), (B, T, G, 4), (B, T, J, 5),
              (B, T, 5), (B, T, J))
    args = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]

    if whole:
        args[3:] = [x.round() for x in args[3:]]

    return args, torch.rand(B, T, dtype=torch.float64)


@needs_torch
class Attention(unittest.TestCase):

    def setUp(self):
        torch.manual_seed(7)

    def check(self, args, weight, topk):
        got = results(selected, args, weight, topk)
        want = results(naive_rows, args, weight, topk)

        for n, (a, b) in enumerate(zip(got, want)):
            self.assertTrue(torch.allclose(a, b, rtol=1e-9, atol=1e-12),
                            (n, topk, args[0].shape))

    def test_equals_loops(self):
        """Results and all gradients, for rows that are shorter than the
        selection, as long, and longer."""

        for T in (1, 3, 4, 5, 9):
            for topk in (4, 1, None):
                for heads in (2, 1):
                    self.check(*inputs(2, T, G=heads), topk)

    def test_pieces_equal_loops(self):
        """Rows that are computed in pieces: of all visible keys, of more keys
        than are selected, and with rows of both kinds."""

        with mock.patch.object(attention, 'PIECE', 1):
            for topk in (64, 100, None):
                args, weight = inputs(1, 150, J=1)
                self.assertEqual(len(attention.pieces(
                    args[0].transpose(1, 2))), 3)
                self.check(args, weight, topk)

    def test_equal_scores_equal_loops(self):
        args, weight = inputs(2, 30, J=1, whole=True)
        self.check(args, weight, 5)

    def test_selected_tokens(self):
        """The values are the unit vectors, so that o is the probabilities."""

        for topk in (1, 5, 24):
            (q, k, _, *index), weight = inputs(2, 24, whole=True)
            v = torch.eye(24, dtype=q.dtype).expand(2, 24, 24)[:, :, None]
            o, _ = selected((q, k[:, :, :1], v, *index), weight, topk, 0.3)

            for b in range(2):
                _, _, sets = naive(q[b], k[b, :, :1], v[b],
                                   *(x[b] for x in index), topk, 0.3)
                for t in range(24):
                    self.assertEqual(len(sets[t]), min(t + 1, topk))
                    for h in range(2):
                        self.assertEqual(
                            o[b, t, h].nonzero()[:, 0].tolist(), sets[t])

    def test_without_an_index(self):
        args, weight = inputs(2, 9, G=1)
        want, _ = naive_rows(args, weight, 9, 0.3)
        o, loss = attention.selected_attention(*args[:3], [None] * 3, None,
                                               None, 0.3)

        self.assertLess(float((o - want).abs().max()), 1e-12)
        self.assertEqual(float(loss), 0)

    def test_size_of_pieces_has_no_effect(self):
        args, weight = inputs(2, 300)
        found = []

        for piece in (1, 1 << 28):
            with mock.patch.object(attention, 'PIECE', piece):
                found.append(results(selected, args, weight, 100))

        for a, b in zip(*found):
            self.assertTrue(torch.allclose(a, b, rtol=1e-9, atol=1e-12))

    def test_gradients(self):
        """Compares the gradients of both results with finite differences."""

        args, weight = inputs(1, 7)

        for which, n in ((0, slice(0, 3)), (1, slice(3, 6))):
            def function(*x):
                mine = list(args)
                mine[n] = x
                return selected(mine, weight, 4, 0.3)[which]

            x = [v.clone().requires_grad_() for v in args[n]]
            self.assertTrue(torch.autograd.gradcheck(function, x))


@needs_torch
class Selection(unittest.TestCase):

    def test_equals_a_sort(self):
        torch.manual_seed(3)
        least = torch.finfo(torch.float32).tiny
        special = [0.0, -0.0, math.inf, -math.inf, 3e38, -3e38, least, -least,
                   least / 8, 1.0, 1 + 2.0 ** -23, -1.0, -1 - 2.0 ** -23]
        rows = [torch.randn(60), torch.randn(60).relu(),
                torch.randn(60).round(), -torch.randn(60).relu(),
                torch.tensor(special)[torch.randint(len(special), (60,))]]

        for dtype in (torch.float32, torch.float64):
            scores = torch.stack(rows).to(dtype)

            for topk in (1, 2, 7, 20, 30, 40, 59, 60):
                chosen = attention.select(scores[None], topk)
                places = attention.places_of(chosen, topk)[0]

                for row, mask, at in zip(scores.tolist(), chosen[0], places):
                    best = sorted(range(60), key=lambda s: (-row[s], s))
                    self.assertEqual(mask.nonzero()[:, 0].tolist(),
                                     sorted(best[:topk]))
                    self.assertEqual(at.tolist(), sorted(best[:topk]))


@needs_torch
class Work(unittest.TestCase):
    """What a step of the recipe keeps and computes.  Tensors of the device
    'meta' have shapes without numbers, so a step that needed a number on the
    host would fail, as it would in a CUDA graph."""

    def kept(self, B, T):
        """Returns how many elements are kept for the backward pass."""

        c, count = config(), []
        H, J = c['num_attention_heads'], c['index_n_heads']
        rope, topk = c['qk_rope_head_dim'], c['index_topk']
        args = [torch.empty(B, T, *more, device='meta', requires_grad=True)
                for more in ((H, c['qk_nope_head_dim'] + rope),
                             (H, c['qk_nope_head_dim'] + rope),
                             (H, c['v_head_dim']), (J, c['index_head_dim']),
                             (c['index_head_dim'],), (J,))]

        def count_it(x):
            count.append(x.numel())
            return x

        with torch.autograd.graph.saved_tensors_hooks(count_it,
                                                      lambda x: x):
            o, loss = selected(args, torch.empty(B, T, device='meta'), topk,
                               0.1)

        (o.sum() + loss).backward()

        for x in args:
            self.assertEqual(x.grad.shape, x.shape)

        return sum(count), sum(x[0, 0].numel() for x in args[:3]) \
            + topk * (H + 1)

    def test_memory_grows_with_the_length(self):
        for B, T in ((16, 8192), (16, 4096), (1, 8192)):
            count, of_a_token = self.kept(B, T)
            self.assertLessEqual(count, B * T * of_a_token)
            self.assertGreater(count, B * T * of_a_token * 0.9)

    def test_pieces(self):
        shapes = [(s.batch // n, n) for s in recipe.STAGES
                  for n in ([s.length] if s.length else data.BUCKETS)]
        heads = config()['num_attention_heads']

        for B, T in shapes + [(1, 1), (1, 700), (1, 8192)]:
            q = torch.empty(B, heads, T, 1, device='meta')
            pieces = attention.pieces(q)
            rows = [t for first, end in pieces for t in range(first, end)]
            self.assertEqual(sorted(rows), list(range(T)))
            self.assertEqual(max(pieces), pieces[0])

            for first, end in pieces:
                self.assertLessEqual(B * heads * (end - first) * end,
                                     attention.PIECE)


if __name__ == '__main__':
    unittest.main()
