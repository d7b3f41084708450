# Copyright (C) The nginx-dsa authors

"""Trains the demonstration model, stage by stage.

    python3 -m train.train --data DIR --out DIR [--from CHECKPOINT]
                           [--stages a,b] [--scale X] [--seed N]

--data holds the shards of train.data and may still be filling.  --out gets a
checkpoint after every stage, STAGE.pt, and log.jsonl: a line every 50 steps.
--scale multiplies every stage's tokens, to try it.  Runs on a GPU where there
is one.
"""

import argparse
import json
import math
import os
import queue
import random
import sys
import threading
import time

import torch

from train.data import Shards
from train.model import Model
from train.ops import accelerate
from train.recipe import STAGES


LOG_EVERY = 50
BALANCE_RATE = 1e-3     # of the routers' bias, as DeepSeek-V3 trained
WEIGHT_DECAY = 0.1
BETAS = (0.9, 0.95)
CLIP = 1.0
RISE = 0.02             # of a stage's steps, until the rate is reached
FLOOR = 0.1             # of the rate, at the end


def main():
    args = arguments()
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    names = args.stages.split(',') if args.stages else None

    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)

    if device.type == 'cuda':
        accelerate()

    if args.start is None:
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, 'config.json')) as f:
            config = json.load(f)
        model = Model(config)
    else:
        saved = torch.load(args.start, map_location='cpu')
        config = saved['config']
        model = Model(config)
        model.load_state_dict(saved['model'])

    model.to(device)
    shards = Shards(args.data)

    with open(os.path.join(args.out, 'log.jsonl'), 'a') as log:
        for i, stage in enumerate(STAGES):
            if names is not None and stage.name not in names:
                continue

            train(model, stage, shards, random.Random(f'{args.seed}/{i}'),
                  device, args.scale, log)

            path = os.path.join(args.out, stage.name + '.pt')
            torch.save({'config': config, 'model': model.state_dict()},
                       path + '.tmp')
            os.rename(path + '.tmp', path)


def arguments():
    p = argparse.ArgumentParser(prog='train.train')
    p.add_argument('--data', required=True)
    p.add_argument('--out', required=True)
    p.add_argument('--from', dest='start')
    p.add_argument('--stages')
    p.add_argument('--scale', type=float, default=1)
    p.add_argument('--seed', type=int, default=1)

    args = p.parse_args()

    for name in (args.stages or '').split(','):
        if args.stages and name not in [s.name for s in STAGES]:
            p.error(f'no stage {name}; there are '
                    + ', '.join(s.name for s in STAGES))

    return args


def train(model, stage, shards, rng, device, scale, log):
    """One stage: the parameters of model change in place."""

    steps = max(1, int(stage.tokens * scale) // stage.batch)
    optimizer = torch.optim.AdamW(parameter_groups(model, stage),
                                  betas=BETAS)
    learns = {'dense': lambda language, index: language,
              'warmup': lambda language, index: index,
              'sparse': lambda language, index: language + index}
    seen, meter, start = 0, Meter(), time.time()

    for step, (ids, target, length) in enumerate(
            ahead(shards.batches(rng, stage.batch), steps, device)):

        language, index, load = losses(model, stage, ids, target, length)
        learns[stage.attention](language, index).backward()

        for group in optimizer.param_groups:
            group['lr'] = rate(stage.rate, step, steps)
            torch.nn.utils.clip_grad_norm_(group['params'], CLIP)

        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

        if stage.attention != 'warmup':
            model.balance(load, BALANCE_RATE)

        seen += ids.numel()
        meter.add(language.detach(), index.detach(), load.detach())

        if (step + 1) % LOG_EVERY == 0 or step + 1 == steps:
            line = {'stage': stage.name, 'step': step + 1, 'of': steps,
                    'tokens': seen, 'seconds': round(time.time() - start, 1),
                    'rate': rate(stage.rate, step, steps), **meter.read()}
            log.write(json.dumps(line) + '\n')
            log.flush()
            print(json.dumps(line), flush=True)

            if not math.isfinite(line['loss']):
                sys.exit('the loss is no number any more')


def losses(model, stage, ids, target, length):
    """ids [B,T] int64, target [B,T] bool, length [B] -> the language loss
    (mean over the positions that count, of the next token's cross-entropy),
    the indexers' loss, the experts' loads."""

    at = torch.arange(ids.shape[1], device=ids.device)
    valid = at < length[:, None]
    out = model(ids, valid, stage.attention, stage.precision)

    # position t answers for token t + 1, the last for none

    counts = (target if stage.answers else valid).roll(-1, 1)
    counts[:, -1] = False
    language = model.loss(out.hidden, ids.roll(-1, 1), counts,
                          stage.precision)

    return language, out.index_loss, out.load


def parameter_groups(model, stage):
    """What the stage teaches, the rest is frozen.  Norms, biases and
    embeddings do not decay.  The indexer is clipped by itself: its gradients
    come from a loss of its own."""

    indexer, decay, rest = [], [], []

    for name, p in model.named_parameters():
        if '.indexer.' in name:
            indexer.append(p)
        elif p.dim() >= 2 and 'embed_tokens' not in name:
            decay.append(p)
        else:
            rest.append(p)

    learns = {'dense': (decay, rest), 'warmup': (indexer,),
              'sparse': (decay, rest, indexer)}[stage.attention]

    for p in model.parameters():
        p.requires_grad_(False)

    for group in learns:
        for p in group:
            p.requires_grad_(True)

    return [{'params': group,
             'weight_decay': WEIGHT_DECAY if group is decay else 0}
            for group in learns]


def rate(highest, step, steps):
    """The learning rate of a step."""

    rise = max(1, int(RISE * steps))

    if step < rise:
        return highest * (step + 1) / rise

    done = (step - rise) / max(1, steps - rise)
    return highest * (FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * done)) / 2)


def ahead(batches, n, device):
    """Yields n batches, on the device; reads them in a thread of its own."""

    q = queue.Queue(maxsize=8)

    def read():
        try:
            for _, batch in zip(range(n), batches):
                tensors = [torch.from_numpy(x) for x in batch]
                if device.type == 'cuda':
                    tensors = [x.pin_memory() for x in tensors]
                q.put(tensors)
            q.put(None)
        except Exception as e:      # told where it is waited for
            q.put(e)

    threading.Thread(target=read, daemon=True).start()

    while True:
        batch = q.get()

        if batch is None:
            return

        if isinstance(batch, Exception):
            raise batch

        yield [x.to(device, non_blocking=True) for x in batch]


class Meter:
    """Means over the steps since the last reading, added up on the device:
    a number fetched every step would make the host wait for it."""

    def __init__(self):
        self.language = self.index = self.load = 0
        self.n = 0

    def add(self, language, index, load):
        self.language = self.language + language
        self.index = self.index + index
        self.load = self.load + load
        self.n += 1

    def read(self):
        load = self.load / self.n
        out = {'loss': round(float(self.language) / self.n, 5),
               'index_loss': round(float(self.index) / self.n, 5),
               'busiest_expert': round(float(load.max()), 4),
               'idlest_expert': round(float(load.min()), 4)}
        self.__init__()
        return out


if __name__ == '__main__':
    main()
