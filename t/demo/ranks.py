# Copyright (C) The nginx-dsa authors

"""A rank of test_ranks.py: trains a small model on fixed batches and writes
what it saw to OUT.RANK.

    python3 ranks.py OUT
"""

import io
import os
import random
import sys
import time
from unittest import mock

import numpy
import torch
from models import make, tiny
from train import ranks
from train import train as train_file
from train.recipe import Stage


# the attention of each stage and the rows of its batches; one row is less than
# there are ranks

STAGES = (('dense', 4), ('warmup', 5), ('sparse', 4), ('sparse', 1))
STEPS = 3
LENGTH = 16


class Batches:
    """Random rows of unequal length."""

    def __init__(self, rows):
        self.rows = rows

    def batches(self, rng, size):
        g = numpy.random.default_rng(5)

        while True:
            lengths = g.integers(6, LENGTH + 1, self.rows)
            at = numpy.arange(LENGTH)
            yield (g.integers(0, tiny()['vocab_size'], (self.rows, LENGTH)),
                   (at >= 4) & (at < lengths[:, None]), lengths)


def main():
    us, device = ranks.join()
    found, grads = [], []
    m = make(tiny(num_nextn_predict_layers=1), seed=1 + us.rank)
    step = torch.optim.AdamW.step

    def told(self, *args):
        grads.append({n: p.grad.clone() for n, p in m.named_parameters()
                      if p.grad is not None})
        return step(self, *args)

    def train(stage, shards, **more):
        log = io.StringIO()
        grads.clear()
        us.equal(m)

        with mock.patch.object(torch.optim.AdamW, 'step', told), \
                mock.patch('builtins.print'):
            part = train_file.train(m, stage, shards, random.Random(1),
                                    device, 1, log, us=us, **more)

        found.append({'grads': list(grads), 'log': log.getvalue(),
                      'stopped': part and part['at']['step'],
                      'state': {n: x.clone()
                                for n, x in m.state_dict().items()}})

    for attention, rows in STAGES:
        size = rows * LENGTH
        train(Stage(attention, attention, False, STEPS * size, size,
                    1e-3, drafts=0.3, recycled=2),
              Batches(rows) if us.first else None)

    # rank 0 decides when a stage ends; the clock of other ranks is wrong, and
    # their signals are ignored

    stage = Stage('dense', 'dense', True, 50 * 64, 64, 1e-3)
    begun, calls = time.time(), []

    def clock():
        calls.append(None)
        return begun + (len(calls) if us.first else 1e6 * len(calls))

    with mock.patch.object(train_file, 'time') as fake:
        fake.time = clock
        train(stage, Batches(4) if us.first else None, limit=8.0)

    polls = []
    train(stage, Batches(4) if us.first else None,
          stop=lambda: polls.append(None) or not us.first or len(polls) > 5)

    torch.save(found, f'{sys.argv[1]}.{us.rank}')
    us.leave()


if __name__ == '__main__':
    main()
