# Copyright (C) The nginx-dsa authors

"""Trajectories as tensors, and the updates of a policy by them (grpo.py)."""

from itertools import chain
from typing import NamedTuple

import numpy
import torch

from train import grpo


POSITIONS = 1 << 16             # most of a forward pass, with padding
FEW = 1 << 14                   # a pass with fewer gets short rows, too
BETAS = (0.9, 0.95)
CLIP = 1.0                      # largest norm of a gradient
WARM = 8                        # steps until the full learning rate


class Batch(NamedTuple):
    """Some trajectories.  B sequences of T tokens, N sampled tokens, I
    trajectories.

    ids     [B,T] int64
    valid   [B,T] bool
    routes  [B,T,MoE layers,k] int64, -1 where they are not known
    before  [N] int64, the position in B*T whose output predicts a token
    target  [N] int64, the token
    kept    [2,M] int64, M pairs of a sampled token and an id of its mask
    below   [N] int64, ids below it are in a token's mask, too: all of the
            tokenizer, if it was drawn without a mask, and otherwise 0
    old     [N] float32, log-probabilities of the engine
    of      [N] int64, the trajectory of a token
    advantage, beta
            [I] float32
    """
    ids: torch.Tensor
    valid: torch.Tensor
    routes: torch.Tensor
    before: torch.Tensor
    target: torch.Tensor
    kept: torch.Tensor
    below: torch.Tensor
    old: torch.Tensor
    of: torch.Tensor
    advantage: torch.Tensor
    beta: torch.Tensor

    def to(self, device):
        return Batch(*(x.to(device) for x in self))


class Part(NamedTuple):
    """What one forward pass has of a mini-batch.

    ref   [N] log-probabilities of the reference policy
    of    the rollout.Trajectories of the batch, in its order
    """
    batch: Batch
    ref: torch.Tensor
    of: list


def assemble(trajectories, advantage, beta, shape, allowed):
    """Returns the Batch of trajectories, with an advantage and a strength of
    the KL term for each.  shape: (MoE layers, k) of the model; ids of the
    tokenizer are below allowed."""

    rows = [(i, s) for i, t in enumerate(trajectories) for s in t.sequences]
    T = max(len(s.ids) for _, s in rows)

    # the compiler would make another version of attention for a single row

    B = max(2, len(rows))
    ids = numpy.zeros((B, T), numpy.int64)
    valid = numpy.zeros((B, T), bool)
    routes = numpy.full((B, T, *shape), -1, numpy.int64)
    before, kept, old, of = [], [], [], []

    for b, (i, s) in enumerate(rows):
        n = len(s.ids)
        ids[b, :n], valid[b, :n] = s.ids, True
        at = numpy.flatnonzero(s.sampled)

        if s.experts is not None:
            routes[b, :n] = s.experts

        before.append(b * T + at - 1)
        kept += s.kept
        old += s.old
        of += [i] * len(at)

    before = numpy.concatenate(before)

    return Batch(*(torch.from_numpy(numpy.asarray(x, kind)) for x, kind in (
        (ids, None), (valid, None), (routes, None), (before, None),
        (ids.reshape(-1)[before + 1], None),
        (pairs(kept), None),
        ([allowed if x is None else 0 for x in kept], numpy.int64),
        (old, numpy.float32), (of, numpy.int64),
        (advantage, numpy.float32), (beta, numpy.float32))))


def pairs(kept):
    """Returns Batch.kept of N lists of ids, or None for a token without a
    mask.  Most have one or two ids, so that this is a small part of a matrix of
    all ids."""

    counts = [0 if ids is None else len(ids) for ids in kept]
    token = numpy.repeat(numpy.arange(len(kept)), counts)
    ids = numpy.fromiter(chain.from_iterable(x for x in kept if x is not None),
                         numpy.int64, len(token))

    return numpy.stack((token, ids))


def masks(batch, vocabulary):
    """Returns the masks of a Batch as bool [N,vocabulary]."""

    found = torch.arange(vocabulary, device=batch.below.device) \
        < batch.below[:, None]
    found[batch.kept[0], batch.kept[1]] = True

    return found


def run(model, settings, batch, temperature, own=False):
    """Returns log-probabilities [N], entropies [N] and the indexer's loss.
    own: with the experts that the model's own routers choose."""

    routes = batch.routes if settings.keep_routing and not own else None
    out = model(batch.ids, batch.valid, 'sparse', settings.precision,
                routes=routes)
    hidden = out.hidden.flatten(0, 1)[batch.before]
    head = model.lm_head.value(settings.precision == 'served')
    kept = masks(batch, len(head))

    # without Keep Sampling Mask, the policy may draw each id that was ever
    # permitted: all of the tokenizer

    if not settings.keep_mask:
        kept = kept.any(0, keepdim=True).expand_as(kept)

    log, entropy = grpo.policy(hidden, head, batch.target, kept,
                               torch.full_like(batch.old, temperature))

    return log, entropy, out.index_loss


def split(trajectories, n):
    """Divides a list into n parts of whole trajectories, as equal as
    possible."""

    return [trajectories[i::n] for i in range(n)]


def parts(trajectories, positions=POSITIONS, few=FEW):
    """Divides indices of trajectories so that a forward pass has at most so
    many positions, or one trajectory.  The longest come together.  A row of
    less than half of a pass's longest is more padding than row: it comes into
    the next pass, unless this one has few positions so far."""

    def longest(i):
        return max(len(s.ids) for s in trajectories[i].sequences)

    order = sorted(range(len(trajectories)), key=longest, reverse=True)
    found, rows, most = [], 0, 0

    for i in order:
        mine = len(trajectories[i].sequences)

        if not found or (rows + mine) * most > positions \
                or (2 * longest(i) < most and rows * most >= few):
            found.append([])
            rows, most = 0, longest(i)

        found[-1].append(i)
        rows += mine

    return found


class Learner:
    """Updates model by trajectories; ref is the reference policy.

    settings     a grpo.Settings
    temperature  of the sampling
    rate         the learning rate
    allowed      ids of the tokenizer
    """

    def __init__(self, model, ref, settings, temperature, rate, allowed,
                 device):
        self.model, self.ref, self.settings = model, ref, settings
        self.temperature, self.rate = temperature, rate
        self.allowed, self.device = allowed, device
        gates = [x.mlp.gate for x in model.model.layers[:model.n_layers]
                 if x.moe]
        self.shape = len(gates), gates[0].k
        self.learners = {'model': [], 'indexer': []}

        for name, p in model.named_parameters():
            self.learners['indexer' if '.indexer.' in name
                          else 'model'].append(p)

        self.restart()

    def restart(self):
        """Begins with a new optimizer, whose rate rises."""

        self.steps = 0
        self.optimizer = torch.optim.AdamW(self.model.parameters(),
                                           lr=self.rate, betas=BETAS,
                                           weight_decay=0)

    def batch(self, trajectories, advantage):
        beta = [self.settings.strength(t.family) for t in trajectories]

        return assemble(trajectories, advantage, beta, self.shape,
                        self.allowed).to(self.device)

    def prepared(self, trajectories, advantage):
        """Returns the Parts of a mini-batch."""

        found = []

        for part in parts(trajectories):
            mine = [trajectories[i] for i in part]
            batch = self.batch(mine, [advantage[i] for i in part])

            with torch.no_grad():
                ref = run(self.ref, self.settings, batch, self.temperature,
                          own=True)[0]

            found.append(Part(batch, ref, mine))

        return found

    def agreement(self, prepared):
        """Returns the distance of the trainer's log-probabilities from the
        engine's: mean and largest |difference|, and the mean difference (the
        K1 estimate of the divergence), before an update.  Each trajectory
        gets the means of its KL estimates and entropies."""

        apart = []

        for batch, ref, trajectories in prepared:
            with torch.no_grad():
                log, entropy, _ = run(self.model, self.settings, batch,
                                      self.temperature)
                kl = grpo.kl(log, batch.old, ref, self.settings.unbiased_kl)

            apart.append(log - batch.old)

            both = torch.stack((kl, entropy, torch.ones_like(kl)))
            sums = both.new_zeros(3, len(trajectories)).index_add(
                1, batch.of, both)

            for t, (a, b, n) in zip(trajectories, sums.t().tolist()):
                t.kl, t.entropy = a / n, b / n

        apart = torch.cat(apart)

        return {'apart_mean': float(apart.abs().mean()),
                'apart_most': float(apart.abs().max()),
                'apart_signed': float(-apart.mean())}

    def step(self, prepared):
        """Makes one update by a mini-batch; returns its figures."""

        whole = sum(len(p.of) for p in prepared)
        tokens = sum(len(p.batch.old) for p in prepared)
        sums = {}

        for batch, ref, _ in prepared:
            log, entropy, index = run(self.model, self.settings, batch,
                                      self.temperature)
            out = grpo.loss(self.settings, log, batch.old, ref, batch.of,
                            batch.advantage, batch.beta)
            share = len(batch.advantage) / whole
            by_token = len(batch.old) / tokens

            # the indexer's loss (eq. 4) has gradients for the indexer only,
            # and the policy's none for it

            ((out.loss + index) * share).backward()

            for name, value, weight in (
                    ('loss', out.loss, share), ('kl', out.kl, by_token),
                    ('clipped', out.clipped, by_token),
                    ('masked', out.masked, share),
                    ('entropy', entropy.mean(), by_token),
                    ('index_loss', index, share)):
                sums[name] = sums.get(name, 0) + value.detach() * weight

            sums['ratio'] = max(sums.get('ratio', 0), float(out.ratio))

        for who, params in self.learners.items():
            mine = [p for p in params if p.grad is not None]
            sums['gradient' if who == 'model' else 'index_gradient'] = \
                torch.nn.utils.clip_grad_norm_(mine, CLIP)

        self.steps += 1

        for group in self.optimizer.param_groups:
            group['lr'] = self.rate * min(1, self.steps / WARM)

        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

        return {k: float(v) for k, v in sums.items()}
