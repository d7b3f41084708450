# Copyright (C) The nginx-dsa authors

"""Eq. 5 to 9: loops in float64 beside the trainer's tensors, finite
differences, and exact expectations of a policy that can be enumerated."""

import math
import random
import unittest
from unittest import mock

from models import batch, make, needs_torch, tiny

try:
    import torch
    from train import grpo
    from train import model as file
except ImportError:
    torch = None


N_IDS = 7


def case(seed, mixed=True):
    """Returns the tokens of some trajectories: current, sampling and reference
    log-probabilities, and the trajectory of each token in any order."""

    rng = random.Random(seed)
    counts = [rng.randint(1, 6) for _ in range(rng.randint(2, 5))]
    of = [i for i, n in enumerate(counts) for _ in range(n)]

    if mixed:
        rng.shuffle(of)

    def some(near=None):
        return [(near[j] if near else -3 * rng.random())
                + 0.5 * rng.gauss(0, 1) for j in range(len(of))]

    log = some()

    return {'log': log, 'old': some(log), 'ref': some(log), 'of': of,
            'advantage': [rng.gauss(0, 1) for _ in counts],
            'beta': [rng.choice([0, 0.1, 2]) for _ in counts]}


def in_loops(s, c):
    """Eq. 8 as it is written, and the masks of eq. 9."""

    total, masks = 0.0, []

    for i, a in enumerate(c['advantage']):
        mine = [t for t, who in enumerate(c['of']) if who == i]
        apart = sum(c['old'][t] - c['log'][t] for t in mine) / len(mine)
        mask = 0 if s.sequence_mask and a < 0 and apart > s.delta else 1
        masks.append(mask)

        for t in mine:
            r = math.exp(c['log'][t] - c['old'][t])
            clipped = min(max(r, 1 - s.clip), 1 + s.clip)
            q = math.exp(c['ref'][t]) / math.exp(c['log'][t])
            d = q - math.log(q) - 1

            if s.unbiased_kl:
                d *= r

            total += (min(r * a, clipped * a) * mask
                      - c['beta'][i] * d) / len(mine)

    return total / len(c['advantage']), masks


def tensors(c):
    return {k: torch.tensor(v, dtype=torch.int64 if k == 'of'
                            else torch.float64) for k, v in c.items()}


SWITCHES = [{}, {'unbiased_kl': False}, {'sequence_mask': False},
            {'clip': 0.05}, {'delta': -0.2}, {'delta': 1e9}]


@needs_torch
class Equations(unittest.TestCase):

    def test_loops(self):
        masked = 0

        for seed in range(60):
            for switch in SWITCHES:
                s, c = grpo.Settings(**switch), case(seed)
                want, masks = in_loops(s, c)
                got = grpo.loss(s, **tensors(c))

                self.assertAlmostEqual(float(-got.loss), want, 12)
                self.assertAlmostEqual(float(got.masked),
                                       1 - sum(masks) / len(masks), 12)
                masked += len(masks) - sum(masks)

        self.assertGreater(masked, 50)

    def test_gradient(self):
        """Finite differences of the loop, where no token is at the edge of
        the clip."""

        for seed in range(20):
            for switch in SWITCHES:
                s, c = grpo.Settings(**switch), case(seed)
                t = tensors(c)
                t['log'].requires_grad_()
                grpo.loss(s, **t).loss.backward()

                for j in range(len(c['log'])):
                    h, both = 1e-6, []

                    for sign in (1, -1):
                        log = list(c['log'])
                        log[j] += sign * h
                        both.append(in_loops(s, {**c, 'log': log})[0])

                    self.assertAlmostEqual(
                        float(t['log'].grad[j]),
                        -(both[0] - both[1]) / 2 / h, 5)

    def test_mask_leaves_the_kl(self):
        """A masked trajectory is still held near the reference."""

        s = grpo.Settings(delta=0.1)
        c = {'log': [-3.0], 'old': [-1.0], 'ref': [-1.5], 'of': [0],
             'advantage': [-1.0], 'beta': [0.5]}
        t = tensors(c)
        t['log'].requires_grad_()
        out = grpo.loss(s, **t)
        out.loss.backward()

        self.assertEqual(float(out.masked), 1)
        r, q = math.exp(-2), math.exp(1.5)
        self.assertAlmostEqual(float(out.loss), 0.5 * r * (q - 1.5 - 1), 12)
        self.assertNotEqual(float(t['log'].grad), 0)

    def test_advantages(self):
        self.assertEqual(grpo.advantages([1.0, 0.0, 0.0, 0.0]),
                         [0.75, -0.25, -0.25, -0.25])
        self.assertEqual(grpo.advantages([1.0] * 3), [0.0] * 3)

    def test_strength(self):
        s = grpo.Settings(beta=0.3, beta_of={'arithmetic': 0})
        self.assertEqual(s.strength('arithmetic'), 0)
        self.assertEqual(s.strength('talk'), 0.3)


@needs_torch
class Unbiased(unittest.TestCase):
    """Over all ids of a small vocabulary the expectation of an estimator's
    gradient can be computed exactly."""

    def expectation(self, unbiased, far):
        torch.manual_seed(3)
        logits = torch.randn(N_IDS, dtype=torch.float64, requires_grad=True)
        old = (logits.detach() + torch.randn(N_IDS).double()).log_softmax(0)
        ref = (logits.detach() + far * torch.randn(N_IDS).double()
               ).log_softmax(0)
        log = logits.log_softmax(0)

        # the sum over ids of the probability of drawing it times its gradient

        (old.exp() * grpo.kl(log, old, ref, unbiased)).sum().backward()
        got = logits.grad.clone()
        logits.grad = None
        log = logits.log_softmax(0)
        (log.exp() * (log - ref)).sum().backward()

        return got, logits.grad

    def test_eq7(self):
        for far in (0.1, 1, 4):
            got, want = self.expectation(True, far)
            self.assertLess(float((got - want).abs().max()), 1e-12)

    def test_k3_is_not(self):
        for far in (1, 4):
            got, want = self.expectation(False, far)
            self.assertGreater(float((got - want).norm() / want.norm()), 0.2)

    def test_unbounded(self):
        """Where the current policy is far below the reference, K3's gradient
        grows without bound and eq. 7's does not."""

        def slope(unbiased, log):
            x = torch.tensor([log], dtype=torch.float64, requires_grad=True)
            old, ref = torch.full((2, 1), -1.0, dtype=torch.float64)
            grpo.kl(x, old, ref, unbiased).sum().backward()
            return abs(float(x.grad))

        self.assertGreater(slope(False, -16.0), 1e6)
        self.assertLess(slope(True, -16.0), 1)


@needs_torch
class Policy(unittest.TestCase):

    def test_masked(self):
        torch.manual_seed(5)
        n, h, v = 40, 6, 30
        hidden = torch.randn(n, h, dtype=torch.float64, requires_grad=True)
        head = torch.randn(v, h, dtype=torch.float64)
        kept = torch.rand(n, v) < 0.3
        kept[:, 4] = True
        temperature = torch.full((n,), 0.7, dtype=torch.float64)
        total = torch.zeros(n, dtype=torch.float64)
        entropy = torch.zeros(n, dtype=torch.float64)

        for i in range(v):
            ids = torch.full((n,), i)
            log, e = grpo.policy(hidden, head, ids, kept, temperature)
            p = torch.where(kept[:, i], log.exp(), torch.zeros(n).double())
            self.assertTrue(torch.equal(kept[:, i], log > -torch.inf))
            total += p.detach()
            entropy -= torch.where(p > 0, p * log, p).detach()

            for j in (0, 17):
                z = [float(hidden[j] @ head[k]) / 0.7 for k in range(v)
                     if kept[j, k]]
                if kept[j, i]:
                    want = float(hidden[j] @ head[i]) / 0.7 - math.log(
                        sum(math.exp(x) for x in z))
                    self.assertAlmostEqual(float(log[j]), want, 10)

        self.assertLess(float((total - 1).abs().max()), 1e-12)
        self.assertLess(float((entropy - e).abs().max()), 1e-10)

        # no gradient becomes a NaN because of an id that is left out

        log, _ = grpo.policy(hidden, head, torch.full((n,), 4), kept,
                             temperature)
        log.sum().backward()
        self.assertTrue(torch.isfinite(hidden.grad).all())


@needs_torch
class Routes(unittest.TestCase):
    """Keep Routing in the model."""

    def test_forced(self):
        c = tiny(num_hidden_layers=3)
        model = make(c)
        ids, valid = batch(c, 2, 12)
        k, layers = c['num_experts_per_tok'], 2
        torch.manual_seed(9)
        routes = torch.stack([
            torch.randperm(c['n_routed_experts'])[:k]
            for _ in range(2 * 12 * layers)]).reshape(2, 12, layers, k)
        free = torch.rand(2, 12) < 0.4
        routes[free] = -1

        seen = self.chosen(model, ids, valid, None)
        got = self.chosen(model, ids, valid, routes)

        for layer in range(layers):
            want = torch.zeros(24, c['n_routed_experts'], dtype=torch.bool)
            flat = routes[:, :, layer].flatten(0, 1)
            for n in range(24):
                for e in flat[n].tolist():
                    if e >= 0:
                        want[n, e] = True

            forced = ~free.flatten()
            self.assertTrue(torch.equal(got[layer][forced], want[forced]))
            self.assertTrue((got[layer].sum(-1) == k).all())

        self.assertFalse(torch.equal(got[0], seen[0]))

        # what the router chooses itself gives the same output

        own = torch.stack([s.float().topk(k, -1).indices for s in seen], 1)
        own = own.reshape(2, 12, layers, k)
        a = model(ids, valid, 'sparse', 'float').hidden
        b = model(ids, valid, 'sparse', 'float', routes=own).hidden
        self.assertTrue(torch.equal(a, b))

    def chosen(self, model, ids, valid, routes):
        seen, route = [], file.route

        def told(*args):
            out = route(*args)
            seen.append(out[1])
            return out

        with torch.no_grad(), mock.patch.object(file, 'route', told):
            model(ids, valid, 'sparse', 'float', routes=routes)

        return seen


if __name__ == '__main__':
    unittest.main()
