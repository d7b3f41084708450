# Copyright (C) The nginx-dsa authors

"""The steps of a stage: losses, gradients, their sums over the ranks, and the
update of the parameters.

On a GPU a step consists of many short kernels, which the host starts more
slowly than the GPU runs them.  So the first steps with rows of a shape run as
they are, because regions are compiled in them, and the next one is recorded as
a CUDA graph, which all others replay.  Nothing in a step may wait for the GPU
or depend on a number that only the GPU has.
"""

import torch


FIRST = 2               # steps of a shape that run before it is recorded
BETAS = (0.9, 0.95)
CLIP = 1.0              # largest norm of the gradient
BALANCE_RATE = 1e-3     # of the routers' bias, as in DeepSeek-V3
WEIGHT_DECAY = 0.1


class Steps:
    """
    losses    (ids, target, length) -> losses of train.train
    learners  the parameters that are trained, each with a loss of its own
    """

    def __init__(self, model, stage, learners, losses, us, device):
        self.model, self.stage, self.us = model, stage, us
        self.learners, self.losses, self.device = learners, losses, device
        self.optimizer = adamw(groups(model, learners), device)
        self.done, self.graphs, self.pool = {}, {}, None

    def set_rate(self, rate):
        for group in self.optimizer.param_groups:
            if torch.is_tensor(group['lr']):
                group['lr'].fill_(rate)
            else:
                group['lr'] = rate

    def __call__(self, batch):
        """Trains on a batch (ids [B,T] int64, target [B,T] bool, length [B]
        int64) of the host.  Returns tensors of the device by their names in
        Meter.add(); the next call may overwrite them."""

        shape = tuple(batch[0].shape)
        done = self.done[shape] = self.done.get(shape, 0) + 1

        if self.device.type != 'cuda' or done <= FIRST:
            return self.step(*(moved(x, self.device) for x in batch))

        if shape not in self.graphs:
            self.graphs[shape] = self.record(batch)

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

        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

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


def adamw(groups, device):
    """Returns the optimizer.  On a GPU it is one kernel, and the learning rate
    is a tensor, so that a graph reads it."""

    if device.type != 'cuda':
        return torch.optim.AdamW(groups, betas=BETAS)

    return torch.optim.AdamW(
        groups, lr=torch.zeros((), device=device), betas=BETAS,
        fused=True, capturable=True)


def groups(model, learners):
    """Returns the optimizer's groups.  The model's matrices have weight decay;
    norms, the embedding and the indexer do not."""

    embedding = model.model.embed_tokens.weight
    decay, rest = [], []

    for who, params in learners.items():
        for p in params:
            if who == 'model' and p.dim() >= 2 and p is not embedding:
                decay.append(p)
            else:
                rest.append(p)

    return [{'params': params, 'weight_decay': weight}
            for params, weight in ((decay, WEIGHT_DECAY), (rest, 0))
            if params]


def moved(x, device):
    """Returns a tensor of the host on the device.  The copy makes the host wait
    for nothing, because the memory it copies from is locked."""

    if device.type == 'cuda' and not x.is_pinned():
        x = x.pin_memory()

    return x.to(device, non_blocking=True)
