# Copyright (C) The nginx-dsa authors

"""Muon, the optimizer of matrices: the momentum of a matrix's gradient is made
orthogonal before it is subtracted, so that all directions of a matrix are
learned equally fast.

K. Jordan and others, "Muon: An optimizer for hidden layers in neural networks"
(2024), with weight decay and the factor of "Muon is scalable for LLM training"
(arXiv 2502.16982): the elements of an update are about as large as AdamW's, so
that both have the same learning rate.

torch.optim.Muon has no stacks of matrices, which the experts are, and no
learning rate that a recorded CUDA graph can read.
"""

import torch


MOMENTUM = 0.95
STEPS = 5               # of the iteration
COEFFICIENTS = 3.4445, -4.7750, 2.0315
ROOT_MEAN_SQUARE = 0.2  # of an update's elements, as with AdamW


class Muon(torch.optim.Optimizer):
    """params: matrices [rows,cols], or stacks of them [n,rows,cols].  lr may
    be a tensor."""

    def __init__(self, params, lr=0, weight_decay=0):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            alike = {}

            for p in group['params']:
                if p.grad is not None:
                    alike.setdefault(tuple(sorted(p.shape[-2:])),
                                     []).append(p)

            for params in alike.values():
                self.update(params, group['lr'], group['weight_decay'])

    def update(self, params, lr, weight_decay):
        """Updates matrices of one shape, or of its transpose, together."""

        moved = []

        for p in params:
            state = self.state[p]

            if not state:
                state['momentum'] = torch.zeros_like(p)

            momentum = state['momentum'].lerp_(p.grad, 1 - MOMENTUM)
            moved.append(wide_matrices(p.grad.lerp(momentum, MOMENTUM)))

        sizes = [len(x) for x in moved]
        parts = orthogonal(torch.cat(moved)).split(sizes)

        for p, part in zip(params, parts):
            if p.shape[-2] > p.shape[-1]:
                part = part.transpose(-1, -2)

            factor = ROOT_MEAN_SQUARE * max(p.shape[-2:]) ** 0.5
            p.mul_(1 - lr * weight_decay)
            p.sub_(part.reshape(p.shape).to(p.dtype) * (lr * factor))


def wide_matrices(x):
    """x [...,rows,cols] -> [n,a,b] with a <= b: transposed if need be."""

    x = x.reshape(-1, *x.shape[-2:])

    return x if x.shape[1] <= x.shape[2] else x.transpose(1, 2)


def orthogonal(x):
    """x [n,a,b], a <= b -> for each matrix U S V^T nearly U V^T: its singular
    values become 0.7 to 1.2.  The quintic Newton-Schulz iteration of Muon is
    stable in BF16."""

    x = x.to(torch.bfloat16 if x.is_cuda else x.dtype)
    x = x / (x.float().square().sum((1, 2), keepdim=True).sqrt().to(x.dtype)
             + 1e-7)
    a, b, c = COEFFICIENTS

    for _ in range(STEPS):
        s = x @ x.transpose(1, 2)
        x = a * x + (b * s + c * (s @ s)) @ x

    return x
