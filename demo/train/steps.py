# Copyright (C) The nginx-dsa authors

"""The steps of a stage: losses, gradients, their sums over the ranks, and the
update of the parameters.

On a GPU a step consists of many short kernels, which the host starts more
slowly than the GPU runs them.  So the first steps with rows of a shape run as
they are, because regions are compiled in them, and the next one is recorded as
a CUDA graph, which all others replay.  Nothing in a step may wait for the GPU
or depend on a number that only the GPU has.
"""

import time

import torch

from train.muon import Muon


FIRST = 2               # steps of a shape that run before it is recorded
BETAS = (0.9, 0.95)
CLIP = 1.0              # largest norm of the gradient
BALANCE_RATE = 1e-3     # of the routers' bias, as in DeepSeek-V3
WEIGHT_DECAY = 0.1


class Steps:
    """
    losses    (ids, target, length) -> losses of train.train
    learners  the parameters that are trained, each with a loss of its own
    compiled  seconds that went by while regions were compiled and graphs
              recorded
    """

    def __init__(self, model, stage, learners, losses, us, device):
        self.model, self.stage, self.us = model, stage, us
        self.learners, self.losses, self.device = learners, losses, device
        self.optimizers = optimizers(model, learners, device)
        self.done, self.graphs, self.pool = {}, {}, None
        self.compiled = 0.0

    def set_rate(self, rate):
        for group in (g for o in self.optimizers for g in o.param_groups):
            if torch.is_tensor(group['lr']):
                group['lr'].fill_(rate)
            else:
                group['lr'] = rate

    def state(self):
        return [o.state_dict() for o in self.optimizers]

    def set_state(self, states):
        for optimizer, state in zip(self.optimizers, states):
            rates = [group['lr'] for group in optimizer.param_groups]
            optimizer.load_state_dict(state)

            # a graph reads the tensors of this device; those of a file are
            # on the host, and a graph would keep their values

            for group, rate in zip(optimizer.param_groups, rates):
                group['lr'] = rate

    def __call__(self, batch):
        """Trains on a batch (ids [B,T] int64, target [B,T] bool, length [B]
        int64) of the host.  Returns tensors of the device by their names in
        Meter.add(); the next call may overwrite them."""

        shape = tuple(batch[0].shape)
        done = self.done[shape] = self.done.get(shape, 0) + 1

        if self.device.type != 'cuda':
            return self.step(*batch)

        if done <= FIRST + 1:
            began = time.monotonic()

            try:
                if done <= FIRST:
                    return self.step(*(moved(x, self.device) for x in batch))

                self.graphs[shape] = self.record(batch)
            finally:
                self.compiled += time.monotonic() - began

        graph, inputs, values = self.graphs[shape]

        for to, x in zip(inputs, batch):
            to.copy_(x.pin_memory(), non_blocking=True)

        graph.replay()

        return values

    def record(self, batch):
        """Returns a CUDA graph of a step, the tensors that it reads the batch
        from, and those that it writes.  Recording computes nothing.  Graphs
        share memory, because they run one after the other.  Another thread
        may use CUDA meanwhile."""

        inputs = [torch.empty_like(x, device=self.device) for x in batch]
        graph = torch.cuda.CUDAGraph()

        with torch.cuda.graph(graph, pool=self.pool,
                              stream=torch.cuda.current_stream(),
                              capture_error_mode='thread_local'):
            values = self.step(*inputs)

        self.pool = graph.pool()

        return graph, inputs, values

    def step(self, ids, target, length):
        learners = self.learners
        language, index, load, draft = self.losses(ids, target, length)
        loss = {'model': language + self.stage.drafts * draft,
                'indexer': index}
        sum(loss[who] for who in learners).backward()

        language, index, load, draft = self.added(
            (language, index, load, draft))
        norms = {who: torch.nn.utils.clip_grad_norm_(params, CLIP)
                 for who, params in learners.items()}

        for optimizer in self.optimizers:
            optimizer.step()

        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)

        if 'model' in learners:
            self.model.balance(load, BALANCE_RATE)

        return dict(tokens=length.sum(), load=load, loss=language,
                    index_loss=index, draft_loss=draft,
                    gradient=norms.get('model', 0),
                    index_gradient=norms.get('indexer', 0))

    def added(self, values):
        """Adds up the gradients and some values over the ranks.  Returns the
        values."""

        params = [p for of in self.learners.values() for p in of
                  if p.grad is not None]
        sums = self.us.add([p.grad for p in params]
                           + [x.detach() for x in values])

        for p, total in zip(params, sums):
            p.grad = total

        return sums[len(params):]


def optimizers(model, learners, device):
    """Returns the optimizers.  On a GPU the learning rate is a tensor, so that
    a graph reads it, and AdamW is one kernel."""

    matrices, rest = groups(model, learners)
    found = []

    if device.type == 'cuda':
        more = dict(lr=torch.zeros((), device=device))
        fused = dict(fused=True, capturable=True)
    else:
        more, fused = dict(lr=0.0), {}

    if matrices['params']:
        found.append(Muon(matrices['params'], **more,
                          weight_decay=matrices['weight_decay']))

    if rest:
        found.append(torch.optim.AdamW(rest, betas=BETAS, **more, **fused))

    return found


def groups(model, learners):
    """Returns the groups of parameters: the model's matrices, for Muon, and
    those for AdamW.  The embedding, the head and the routers are tables of
    vectors that are learned one by one.  Matrices, head and routers have
    weight decay; norms, the embedding and the indexer do not."""

    tables = {id(p): p for p in
              [model.lm_head.weight] + [layer.mlp.gate.weight for layer
                                        in model.model.layers if layer.moe]}
    embedding = model.model.embed_tokens.weight
    matrices, decay, rest = [], [], []

    for who, params in learners.items():
        for p in params:
            if who == 'indexer' or p.dim() < 2 or p is embedding:
                rest.append(p)
            elif id(p) in tables:
                decay.append(p)
            else:
                matrices.append(p)

    return ({'params': matrices, 'weight_decay': WEIGHT_DECAY},
            [{'params': params, 'weight_decay': weight}
             for params, weight in ((decay, WEIGHT_DECAY), (rest, 0))
             if params])


def moved(x, device):
    """Returns a tensor of the host on a GPU.  The copy makes the host wait for
    nothing, because the memory it copies from is locked."""

    if not x.is_pinned():
        x = x.pin_memory()

    return x.to(device, non_blocking=True)
