# Copyright (C) The nginx-dsa authors

"""Group relative policy optimization as the paper has it (section 3.1): eq. 5
to 9 on tensors with an element for each sampled token of a batch.

A *trajectory* is what a task's conversation made the model write: o_i of the
paper, of |o_i| sampled tokens.  Texts of users and tools are in the context
and not among these tokens.  Shapes: N tokens, I trajectories; `of` [N] int64
is the trajectory of each token.

Each of the paper's stabilizers is a switch:

    unbiased_kl    eq. 7; else K3 without the ratio, as in the first GRPO
    sequence_mask  eq. 9; else M is 1
    keep_routing   the experts of sampling are those of training
    keep_mask      the ids that top_p left are those of training

The first two act here; the others decide what log-probabilities are made of:
see policy() and model.Model.forward().
"""

from dataclasses import dataclass, field
from typing import Dict, NamedTuple

import torch

from train.ops import wide


@dataclass(frozen=True)
class Settings:
    """
    clip       epsilon of eq. 5
    beta       strength of the KL term, for domains that beta_of lacks
    beta_of    strength by domain (a family of tasks); 0 leaves the term out
    delta      threshold of eq. 9
    precision  of the trainer: 'served' rounds as the engine does, so that both
               have the same probabilities; 'float' costs less, and meets the
               roundings of serving as another implementation's
    """
    clip: float = 0.2
    beta: float = 0.01
    beta_of: Dict[str, float] = field(default_factory=dict)
    delta: float = 0.1
    precision: str = 'served'
    unbiased_kl: bool = True
    sequence_mask: bool = True
    keep_routing: bool = True
    keep_mask: bool = True

    def strength(self, domain):
        return self.beta_of.get(domain, self.beta)


class Loss(NamedTuple):
    """
    loss      -J of eq. 8, to be minimized
    kl        the mean of the KL estimate over tokens
    ratio     the largest |log of eq. 6|
    clipped   the share of tokens whose objective is the clipped one
    masked    the share of trajectories that eq. 9 masks
    """
    loss: torch.Tensor
    kl: torch.Tensor
    ratio: torch.Tensor
    clipped: torch.Tensor
    masked: torch.Tensor


def advantages(rewards):
    """Returns R_i - mean(R) for the rewards of one group (eq. 5): the paper
    does not divide by the deviation."""

    mean = sum(rewards) / len(rewards)

    return [r - mean for r in rewards]


def policy(hidden, head, ids, kept, temperature):
    """Returns log p of ids [N] and the entropies [N] of the policy that
    samples with a temperature from the ids of a mask.

    hidden [N,H], head [V,H], kept [N,V] bool.  p is normalized over kept
    (Keep Sampling Mask), so that it sums to 1 there; ids are among kept.
    temperature [N], above 0.
    """
    z = wide(hidden) @ wide(head).t() / temperature[:, None]
    log = z.masked_fill(~kept, -torch.inf).log_softmax(-1)
    mine = log.gather(-1, ids[:, None])[:, 0]

    with torch.no_grad():
        entropy = -(log.exp() * log.masked_fill(~kept, 0)).sum(-1)

    return mine, entropy


def kl(log, old, ref, unbiased):
    """Eq. 7 of each token, from log-probabilities [N] of the current, the
    sampling and the reference policy.  The gradient is through the ratio,
    too: without the ratio (K3) it is that of another quantity, and unbounded
    where the current policy is far below the reference."""

    k3 = (ref - log).exp() - (ref - log) - 1

    return (log - old).exp() * k3 if unbiased else k3


def keeps(log, old, advantage, of, counts, delta):
    """Eq. 9: M [I], 0 for a trajectory with a negative advantage whose mean of
    log(old / current) is above delta, else 1.  advantage [I], counts [I]."""

    apart = torch.zeros_like(advantage).index_add(
        0, of, (old - log).detach()) / counts

    return 1 - ((advantage < 0) & (apart > delta)).to(advantage.dtype)


def loss(settings, log, old, ref, of, advantage, beta):
    """Eq. 8 for some trajectories, as a Loss.

    log, old, ref  [N] log-probabilities of the tokens: of the current policy,
                   with gradients, of the one that sampled, as the engine
                   returned them, and of the reference
    of             [N] the trajectory of a token
    advantage      [I]
    beta           [I] strength of the KL term
    """
    counts = torch.bincount(of, minlength=len(advantage)).to(log.dtype)
    counts = counts.clamp(min=1)
    ratio = (log - old).exp()
    mine = advantage[of]

    kept = torch.ones_like(advantage)

    if settings.sequence_mask:
        kept = keeps(log, old, advantage, of, counts, settings.delta)

    free = ratio * mine
    bounded = ratio.clamp(1 - settings.clip, 1 + settings.clip) * mine
    apart = kl(log, old, ref, settings.unbiased_kl)

    each = torch.minimum(free, bounded) * kept[of] - beta[of] * apart

    # the mean over trajectories of the mean over the tokens of each

    total = (each / counts[of]).sum() / len(advantage)

    return Loss(-total, apart.detach().mean(),
                (log - old).detach().abs().max(),
                (bounded < free).to(log.dtype).mean(),
                1 - kept.mean())
