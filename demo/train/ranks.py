# Copyright (C) The nginx-dsa authors

"""Training in several processes of one host, each with a GPU of its own, if
torchrun starts them.

Every rank has the whole model and the same optimizer.  Rank 0 draws the
batches, and decides by its clock and its signals; each rank computes some rows
of a batch.  Losses are sums over rows that are divided by the counts of the
whole batch, so gradients and losses are added up over the ranks.
"""

import os

import torch


class Ranks:
    """One process, or one of the world's; group: for tensors on the host."""

    def __init__(self, rank=0, world=1, group=None):
        self.rank, self.world, self.group = rank, world, group

    @property
    def first(self):
        return self.rank == 0

    def turn(self, batch, passed, stopping):
        """Returns rank 0's batch (ids, target, lengths), on the host, its
        share of the time that has passed, and whether it was told to stop.
        The other ranks' arguments are ignored."""

        if self.world == 1:
            return batch, passed, stopping

        head = torch.zeros(4, dtype=torch.float64)

        if self.first:
            ids, target, lengths = batch
            head = torch.tensor([passed, stopping, *ids.shape],
                                dtype=torch.float64)
            data = torch.cat([lengths[:, None], ids * 2 + target], 1).int()

        self.broadcast(head)
        passed, stopping, B, T = head.tolist()

        if not self.first:
            data = torch.empty(int(B), int(T) + 1, dtype=torch.int32)

        self.broadcast(data)
        ids = data[:, 1:].long()

        return (ids // 2, ids % 2 == 1, data[:, 0].long()), passed, \
            bool(stopping)

    def mine(self, rows):
        """Returns this rank's rows of a tensor; if there are fewer rows than
        ranks, one of zeros, which counts nothing."""

        found = rows[self.rank::self.world]

        return found if len(found) else torch.zeros_like(rows[:1])

    def add(self, tensors):
        """Replaces float32 tensors by their sums over the ranks, in one
        buffer.  Returns views of it."""

        if self.world == 1:
            return tensors

        flat = torch.cat([t.flatten() for t in tensors])
        torch.distributed.all_reduce(flat)

        return [part.view_as(t) for part, t
                in zip(flat.split([t.numel() for t in tensors]), tensors)]

    def equal(self, model):
        """Gives all ranks the parameters of rank 0."""

        if self.world > 1:
            with torch.no_grad():
                for x in model.state_dict().values():
                    torch.distributed.broadcast(x, 0)

    def broadcast(self, x):
        torch.distributed.broadcast(x, 0, group=self.group)

    def leave(self):
        if self.world > 1:
            torch.distributed.destroy_process_group()


ALONE = Ranks()


def join():
    """Returns the Ranks of torchrun's environment, and this process's device.
    """

    world = int(os.environ.get('WORLD_SIZE', 1))
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

    if world == 1:
        return ALONE, device

    if device.type == 'cuda':
        device = torch.device('cuda', int(os.environ['LOCAL_RANK']))
        torch.cuda.set_device(device)

    torch.distributed.init_process_group(
        'nccl' if device.type == 'cuda' else 'gloo')

    return Ranks(int(os.environ['RANK']), world,
                 torch.distributed.new_group(backend='gloo')), device
