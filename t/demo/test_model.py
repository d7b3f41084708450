# Copyright (C) The nginx-dsa authors

"""Compares the training code's model with loops and finite differences: its
results, and which parameters get gradients from which loss."""

import unittest
from unittest import mock

from models import batch, distances, make, needs_torch, tiny

try:
    import torch
    import torch.nn.functional as F
    from train import loss
    from train import model as model_file
    from train.model import Model, route
except ImportError:
    torch = None


def naive_route(s, bias, c):
    """Routes one token as published.  s [E]: its sigmoids."""

    E, G = c['n_routed_experts'], c['n_group']
    b = [float(x) for x in s + bias]
    size = E // G
    group = [sum(sorted(b[g * size:(g + 1) * size])[-2:]) for g in range(G)]
    kept = sorted(range(G), key=lambda g: (-group[g], g))[:c['topk_group']]
    free = [e for e in range(E) if e // size in kept]
    best = sorted(free, key=lambda e: (-b[e], e))[:c['num_experts_per_tok']]
    total = sum(float(s[e]) for e in best)

    return {e: float(s[e]) / total * c['routed_scaling_factor'] for e in best}


@needs_torch
class Router(unittest.TestCase):

    def test_equals_a_loop(self):
        c = tiny(n_routed_experts=12, n_group=4, topk_group=2,
                 num_experts_per_tok=4)
        gate = make(c).model.layers[1].mlp.gate
        x = torch.randn(200, c['hidden_size'])
        x[0] = 0                        # all equal except for the bias
        x[1:3] = x[3]
        gate.e_score_correction_bias[:6] = 2

        weight, chosen = route(gate, x, False)
        s = (x @ gate.weight.t()).sigmoid()

        for n in range(len(x)):
            want = naive_route(s[n].detach(), gate.e_score_correction_bias, c)
            got = {int(e): float(weight[n, e])
                   for e in chosen[n].nonzero()[:, 0]}
            self.assertEqual(sorted(got), sorted(want))
            for e in want:
                self.assertAlmostEqual(got[e], want[e], places=5)

        self.assertTrue(bool((weight[~chosen] == 0).all()))

    def test_experts_equal_a_loop(self):
        c = tiny()
        m = make(c).model.layers[1].mlp
        x = torch.randn(30, c['hidden_size'])
        valid = torch.arange(30) < 20

        def one(mlp, e, v):
            gate, up, down = (
                w.weight if e is None else w.weight[e]
                for w in (mlp.gate_proj, mlp.up_proj, mlp.down_proj))
            return down @ (F.silu(gate @ v) * (up @ v))

        y, load = model_file.moe(m, x, valid, False)
        weight, chosen = route(m.gate, x, False)

        for n in range(30):
            want = one(m.shared_experts, None, x[n])
            for e in chosen[n].nonzero()[:, 0]:
                want = want + weight[n, e] * one(m.experts, int(e), x[n])
            self.assertLess(float((y[n] - want).abs().max()), 1e-4)

        self.assertTrue(torch.equal(load, chosen[:20].float().sum(0)))

    def test_balance(self):
        m = Model(tiny())
        gate = m.model.layers[1].mlp.gate
        load = torch.full((1, 8), 0.125)
        load[0, 3], load[0, 5] = 0.2, 0.05

        m.balance(load, 0.01)
        bias = gate.e_score_correction_bias.clone()
        self.assertAlmostEqual(float(bias[3]), -0.01)
        self.assertAlmostEqual(float(bias[5]), 0.01)
        self.assertEqual(float(bias[0]), 0)

        # training with the bias does balance the load

        torch.manual_seed(5)
        m = Model(tiny(num_hidden_layers=2))
        ids, valid = batch(tiny(), 8, 64)
        first = m(ids, valid, 'dense', 'float').load

        for _ in range(300):
            m.balance(m(ids, valid, 'dense', 'float').load, 0.005)

        last = m(ids, valid, 'dense', 'float').load
        self.assertAlmostEqual(float(last.sum()), 1, places=5)
        self.assertLess(float(last.max() - last.min()),
                        float(first.max() - first.min()) / 2)


@needs_torch
class Whole(unittest.TestCase):

    def test_all_selected_is_dense(self):
        c = tiny(index_topk=32)
        m, (ids, valid) = make(c), batch(c, 2, 32)

        a = m(ids, valid, 'dense', 'float')
        b = m(ids, valid, 'sparse', 'float')
        w = m(ids, valid, 'warmup', 'float')
        less = make(tiny())(ids, valid, 'sparse', 'float')

        self.assertLess(float(distances(b.hidden, a.hidden)[-1]), 1e-5)
        self.assertLess(float(distances(w.hidden, a.hidden)[-1]), 1e-5)
        self.assertGreater(float(distances(less.hidden, a.hidden)[-1]), 0.1)
        self.assertEqual(float(a.index_loss), 0)
        self.assertAlmostEqual(float(b.index_loss), float(w.index_loss),
                               places=6)

    def test_padding_has_no_effect(self):
        c = tiny()
        m, (ids, valid) = make(c), batch(c, 3, 20)
        valid[1, 12:] = False
        other = ids.clone()
        other[1, 12:] = 3
        one = [m(i[1:2, :12], valid[1:2, :12], 'sparse', 'float')
               for i in (ids, other)][0]

        for how in ('dense', 'warmup', 'sparse'):
            a, b = (m(i, valid, how, 'float') for i in (ids, other))
            self.assertTrue(torch.equal(a.hidden[valid], b.hidden[valid]))
            self.assertTrue(torch.equal(a.load, b.load))
            self.assertTrue(torch.equal(a.index_loss, b.index_loss))

        self.assertTrue(torch.allclose(a.hidden[1, :12], one.hidden[0],
                                       atol=1e-5))
        self.assertTrue(torch.allclose(
            a.load.sum(1), torch.ones(len(a.load))))

    def learned(self, m, ids, valid, how, language, precision='float'):
        """Returns the names of the parameters that a loss changes."""

        m.zero_grad(set_to_none=True)
        out = m(ids, valid, how, precision)
        value = (m.loss(out.hidden, ids.roll(-1, 1), valid) if language
                 else out.index_loss)
        value.backward()

        return {n for n, p in m.named_parameters()
                if p.grad is not None and bool(p.grad.any())}

    def test_gradients_of_each_loss(self):
        c = tiny()
        m, (ids, valid) = make(c), batch(c, 4, 24)
        indexer = {n for n, _ in m.named_parameters() if '.indexer.' in n}
        rest = {n for n, _ in m.named_parameters()} - indexer

        self.assertEqual(len(indexer), 5 * c['num_hidden_layers'])

        for precision in ('float', 'served'):
            for how, language, want in (
                    ('dense', True, rest), ('warmup', False, indexer),
                    ('sparse', True, rest), ('sparse', False, indexer)):
                self.assertEqual(
                    self.learned(m, ids, valid, how, language, precision),
                    want, (how, language, precision))

        out = m(ids, valid, 'warmup', 'float')
        self.assertFalse(out.hidden.requires_grad)

        with torch.no_grad():
            for how in ('dense', 'warmup', 'sparse'):
                out = m(ids, valid, how, 'float')
                self.assertFalse(out.index_loss.requires_grad)
                self.assertFalse(m.loss(out.hidden, ids, valid)
                                 .requires_grad)

    def test_gradients_by_differences(self):
        """Compares the model's gradient of the language loss, and the
        indexer's gradient of its own loss."""

        c = tiny(num_hidden_layers=2)
        m, (ids, valid) = make(c).double(), batch(c, 2, 10)
        valid[1, 7:] = False

        def values():
            out = m(ids, valid, 'sparse', 'float')
            return (m.loss(out.hidden, ids.roll(-1, 1), valid),
                    out.index_loss)

        m.zero_grad(set_to_none=True)
        sum(values()).backward()
        generator = torch.Generator().manual_seed(1)

        for name, p in m.named_parameters():
            which = int('.indexer.' in name)
            flat = p.data.view(-1)

            for _ in range(2):
                i = int(torch.randint(len(flat), (1,), generator=generator))
                old, step, at = float(flat[i]), 1e-6, []

                with torch.no_grad():
                    for x in (old + step, old - step):
                        flat[i] = x
                        at.append(float(values()[which]))
                    flat[i] = old

                want = (at[0] - at[1]) / (2 * step)
                got = float(p.grad.view(-1)[i])

                # The indexer of layer 1 reads the output of layer 0, but must
                # not train layer 0.  So only its own loss is compared.

                self.assertLess(abs(got - want), 1e-6 + 1e-4 * abs(want),
                                f'{name}[{i}]')

    def of_rounding(self, m, ids, valid, how, precision):
        """Returns the output, the losses and all gradients."""

        m.zero_grad(set_to_none=True)
        out = m(ids, valid, how, precision,
                len(m.model.layers) - m.n_layers)
        language = sum(m.loss(hidden, ids.roll(-1, 1), valid, precision)
                       for hidden in (out.hidden, *out.drafts))
        (language + out.index_loss).backward()

        return {'hidden': out.hidden.detach(), 'language': language.detach(),
                'index': out.index_loss.detach(),
                **{n: p.grad.clone() for n, p in m.named_parameters()
                   if p.grad is not None}}

    def test_served_without_rounding_is_float(self):
        """The absorbed form and the Hadamard transform change neither results
        nor gradients, if nothing is rounded."""

        c = tiny(num_nextn_predict_layers=1)
        m, (ids, valid) = make(c).double(), batch(c, 2, 24)
        valid[1, 19:] = False

        for how in ('dense', 'sparse'):
            want = self.of_rounding(m, ids, valid, how, 'float')

            with mock.patch.object(model_file.fp8, 'through',
                                   lambda x, rounded: x), \
                    mock.patch.object(model_file, 'held',
                                      lambda h, served: h.dtype):
                got = self.of_rounding(m, ids, valid, how, 'served')

            self.assertEqual(set(got), set(want))
            for name in want:
                self.assertTrue(torch.allclose(got[name], want[name],
                                               rtol=1e-9, atol=1e-12), name)

    def test_gradients_pass_the_rounding(self):
        """Rounding to BF16 changes gradients by its noise only.  That of FP8
        would hide errors in so small a model, as would the choice of other
        experts or tokens."""

        c = tiny(num_experts_per_tok=8, topk_group=4, index_topk=24)
        m, (ids, valid) = make(c), batch(c, 4, 24)
        want = self.of_rounding(m, ids, valid, 'sparse', 'float')

        with mock.patch.object(model_file.fp8, 'quantize', lambda x: x), \
                mock.patch.object(model_file.fp8, 'quantize_weight',
                                  lambda x: x):
            got = self.of_rounding(m, ids, valid, 'sparse', 'served')

        self.assertEqual(set(got), set(want))
        off = sorted(float((got[name] - want[name]).norm()
                           / want[name].norm()) for name in want)
        self.assertGreater(off[len(off) // 2], 1e-4)
        self.assertLess(off[len(off) // 2], 0.05)
        self.assertLess(off[-1], 0.2)

    def test_loss(self):
        torch.manual_seed(4)
        c = tiny()
        m = make(c)
        hidden = torch.randn(3, 11, c['hidden_size'], requires_grad=True)
        ids = torch.randint(0, c['vocab_size'], (3, 11))
        weights = torch.rand(3, 11)
        weights[0, :5] = 0

        each = F.cross_entropy(m.logits(hidden).transpose(1, 2), ids,
                               reduction='none')
        want = (each * weights).sum() / weights.sum()
        grads = torch.autograd.grad(2 * want, (hidden, m.lm_head.weight))

        for piece in (4, 16, 64):
            with mock.patch.object(loss, 'PIECE', piece):
                got = m.loss(hidden, ids, weights)
                mine = torch.autograd.grad(2 * got,
                                           (hidden, m.lm_head.weight))
            self.assertAlmostEqual(float(got), float(want), places=5)
            for a, b in zip(mine, grads):
                self.assertTrue(torch.allclose(a, b, atol=1e-6))

        self.assertEqual(float(m.loss(hidden, ids, 0 * weights)), 0)

    def test_autocast_is_disabled(self):
        c = tiny()
        m, (ids, valid) = make(c), batch(c, 2, 24)
        want = m(ids, valid, 'sparse', 'float').hidden

        with torch.autocast('cpu', torch.bfloat16):
            got = m(ids, valid, 'sparse', 'float').hidden

        self.assertTrue(torch.equal(got, want))

    def test_it_learns(self):
        """The model learns a few rows by heart, then the indexer learns where
        attention looks."""

        c = tiny()
        m, (ids, valid) = make(c, 6), batch(c, 4, 24, 6)

        def steps(how, n):
            optimizer = torch.optim.Adam(m.parameters(), 5e-3)
            values = []

            for _ in range(n):
                out = m(ids, valid, how, 'float')
                value = (m.loss(out.hidden, ids.roll(-1, 1), valid)
                         if how != 'warmup' else 0)
                optimizer.zero_grad(set_to_none=True)
                (out.index_loss if how == 'warmup'
                 else value + out.index_loss).backward()
                optimizer.step()
                values.append((float(value), float(out.index_loss)))

            return values

        dense = steps('dense', 60)
        self.assertLess(dense[-1][0], dense[0][0] / 2)

        before = m(ids, valid, 'dense', 'float').hidden
        warm = steps('warmup', 60)
        self.assertLess(warm[-1][1], 0.7 * warm[0][1])
        self.assertTrue(torch.equal(
            m(ids, valid, 'dense', 'float').hidden, before))

        sparse = steps('sparse', 60)
        self.assertLess(sparse[-1][0], sparse[0][0])


if __name__ == '__main__':
    unittest.main()
