# Copyright (C) The nginx-dsa authors

"""Trains the demonstration model, stage by stage.

    python3 -m train.train --data DIR --out DIR [--from CHECKPOINT]
                           [--stages a,b] [--scale X] [--seconds N]
                           [--seed N] [--dense] [--recall DIR]
    torchrun --nproc-per-node N -m train.train ...

--data has the shards of train.data, to which more may be added meanwhile.
--out gets a checkpoint after every stage, STAGE.bf16 (checkpoint.py), from
which the next stage starts, in the same run or in another.  --from continues
after a checkpoint's stage, or begins with the weights of a directory that
train.export wrote; --stages selects other stages.  --scale multiplies
the length of every stage, for trials.  --seconds ends a stage after this time,
if it is not over before; the learning rate has fallen by then.  It runs on a
GPU if there is one; torchrun starts it on several (ranks.py).

--dense trains the dense twin: the same stages with dense attention, without
the indexer's warm-up.  --recall measures after every stage, on shards that
were not used for training, what the indexer selects (recall.py).

SIGTERM and Ctrl-C end it after the current step, with a checkpoint stopped.pt,
and --from continues within the stage.  A second signal ends it at once.

--out also gets log.jsonl, with a line every 50 steps and at a stage's end:

    stage, step, of         the position in the training
    positions, tokens       so far in the stage, with padding and without
    seconds                 so far in the stage
    tokens_per_second       since the last line, as are the means
    rate                    the learning rate
    loss, index_loss, draft_loss
                            language, indexer, draft layer; 0 if not computed
    gradient, index_gradient
                            norms before clipping; 0 if not trained
    busiest_expert, idlest_expert
                            the largest and the smallest share in the choices
                            of a layer

and with --recall a line {"stage", "recall"} after each stage.
"""

import argparse
import itertools
import json
import math
import os
import queue
import random
import signal
import sys
import threading
import time

import torch

from train import checkpoint, ranks, recall, recipe, restore
from train.data import Shards
from train.model import Model, shifted
from train.ops import accelerate
from train.steps import Steps


CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      'config.json')

LOG_EVERY = 50
RISE = 0.02             # share of a stage's steps until the full rate
FLOOR = 0.1             # share of the rate at the end

# parameters that are trained, each with a loss of its own, by attention

LEARN = {'dense': ('model',),
         'warmup': ('indexer',),
         'sparse': ('model', 'indexer')}


def main():
    args = arguments()
    us, device = ranks.join()

    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)

    # graphs are not recorded on the stream that CUDA starts with

    if device.type == 'cuda':
        accelerate()
        torch.cuda.set_stream(torch.cuda.Stream())

    if args.start is None:
        with open(CONFIG) as f:
            saved = {'config': json.load(f)}
    else:
        saved = restore.start(args.start)

    # the twin is served with a selection of the whole context

    if args.dense:
        saved['config']['index_topk'] = \
            saved['config']['max_position_embeddings']

    model = Model(saved['config'])

    if args.start is not None:
        model.load_state_dict(saved['model'])

    model.to(device)
    shards = Shards(args.data)
    stop = stop_on_signals()

    with open(os.path.join(args.out, 'log.jsonl') if us.first
              else os.devnull, 'a') as log:
        for stage, part in to_train(args.stages, saved, args.dense):
            step = part['at']['step'] if part else 0
            rng = random.Random(f'{args.seed}/{stage.name}/{step}')

            us.equal(model)
            part = train(model, stage, shards, rng, device, args.scale, log,
                         stop, part, args.seconds, us)

            if not us.first:
                if part:
                    break
                continue

            if part:
                path = os.path.join(args.out, 'stopped.pt')
                torch.save({'config': saved['config'],
                            'model': model.state_dict(),
                            'stage': stage.name, 'part': part},
                           path + '.tmp')
                os.rename(path + '.tmp', path)
                sys.exit(f'stopped; continue with --from {path}')

            # the next stage starts from what the file has

            path = os.path.join(args.out, stage.name + checkpoint.ENDING)
            checkpoint.save(path, saved['config'], stage.name,
                            model.state_dict())
            model.load_state_dict(checkpoint.load(path)['model'])

            if args.recall:
                write(log, {'stage': stage.name, 'recall': recall.measure(
                    model, stage.attention, args.recall, device)})

    us.leave()


def write(log, values):
    line = json.dumps(values)
    log.write(line + '\n')
    log.flush()
    print(line, flush=True)


def arguments():
    p = argparse.ArgumentParser(prog='train.train')
    p.add_argument('--data', required=True)
    p.add_argument('--out', required=True)
    p.add_argument('--from', dest='start')
    p.add_argument('--stages', type=lambda s: s.split(','))
    p.add_argument('--scale', type=float, default=1)
    p.add_argument('--seconds', type=float, default=math.inf)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--dense', action='store_true')
    p.add_argument('--recall')

    args = p.parse_args()
    names = [s.name for s in stages(args.dense, True)]

    for name in args.stages or []:
        if name not in names:
            p.error(f'unknown stage {name}; stages are ' + ', '.join(names))

    return args


def stages(dense, experiments=False):
    """Returns the stages of the model or of its dense twin."""

    found = recipe.ALL if experiments else recipe.STAGES

    return recipe.dense(found) if dense else found


def to_train(names, saved, dense=False):
    """Returns the stages to train after a checkpoint, each with the state of
    an unfinished train() or None.  Without names these are all remaining
    stages of the model, or of its dense twin."""

    part = saved.get('part')

    if names is None:
        names = [s.name for s in stages(dense)]
        if 'stage' in saved:
            if saved['stage'] not in names:
                sys.exit(f'no stage follows {saved["stage"]}; expected '
                         '--stages')

            done = names.index(saved['stage']) + (part is None)
            names = names[done:]

    return [(s, part if s.name == saved.get('stage') else None)
            for s in stages(dense, True) if s.name in names]


def stop_on_signals():
    """Returns a function that returns true after a signal to stop."""

    stop = threading.Event()

    def on_signal(number, frame):
        stop.set()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)

    return stop.is_set


def train(model, stage, shards, rng, device, scale, log,
          stop=lambda: False, part=None, limit=math.inf, us=ranks.ALONE):
    """Trains one stage, for at most limit seconds; the parameters of model
    change in place.  Returns None, or, after stop() returned true, a state to
    continue with as part."""

    steps = max(1, int(stage.positions * scale) // stage.batch)
    step = Steps(model, stage, parameters(model, stage),
                 lambda *rows: losses(model, stage, *rows, us), us, device)
    at = {'step': 0, 'of': steps, 'positions': 0, 'tokens': 0, 'seconds': 0}

    if part:
        step.set_state(part['optimizer'])
        at = {**part['at'], 'of': steps}

    meter, last = Meter(), time.time()
    begun = last - at['seconds']

    for batch in drawn(shards, stage, rng, steps - at['step'], us):

        batch, passed, stopping = us.turn(
            batch, share(time.time() - begun, step.compiled, limit), stop())
        now = rate(stage.rate, max(at['step'], passed * steps), steps)
        step.set_rate(now)
        meter.add(**step(batch))
        at['step'] += 1
        at['positions'] += batch[0].numel()

        stopped = stopping and at['step'] < steps
        ended = at['step'] == steps or passed >= 1

        if at['step'] % LOG_EVERY == 0 or ended or stopped:
            tokens, means = meter.read()
            seconds, last = time.time() - last, time.time()
            at['tokens'] += tokens
            at['seconds'] = round(last - begun, 1)

            for name, value in means.items():
                if not math.isfinite(value):
                    sys.exit(f'{stage.name}, step {at["step"]}: '
                             f'{name} is not finite')

            if us.first:
                write(log, {'stage': stage.name, **at,
                            'tokens_per_second': round(tokens / seconds),
                            'rate': float(f'{now:.4g}'), **means})

        if stopped:
            return {'at': at, 'optimizer': step.state()}

        if ended:
            break

    return None


def share(seconds, compiled, limit):
    """Returns the share of a stage of limit seconds that is over.  The time in
    which regions were compiled does not count, because it can be half of a
    short stage, and the learning rate would fall in few steps."""

    if seconds >= limit:
        return 1.0

    return max(0.0, seconds - compiled) / (limit - compiled)


def drawn(shards, stage, rng, n, us):
    """Returns n batches of rank 0, which draws them, or None n times."""

    if not us.first:
        return itertools.repeat(None, n)

    if stage.length:
        batches = shards.packed(rng, stage.batch, stage.length)
    else:
        batches = shards.batches(rng, stage.batch)

    return ahead(batches, n)


def losses(model, stage, ids, target, length, us=ranks.ALONE):
    """ids [B,T] int64, target [B,T] bool, length [B] -> the language loss (the
    mean cross-entropy of the next token, weighted as the stage does), the
    indexers' loss, the experts' loads, the draft layer's loss (a mean over its
    steps).  The warm-up runs the draft layer for its indexer.  Each is this
    rank's part, a sum over its rows of the batch."""

    at = torch.arange(ids.shape[1], device=ids.device)
    valid = at < length[:, None]
    counts = torch.where(target, 1.0, stage.prompts) * valid
    ids, mine, counted = (us.mine(x) for x in (ids, valid, counts))
    steps = stage.recycled if drafts(model, stage) else 0
    out = model(ids, mine, stage.attention, 'float', steps, valid)

    def loss(hidden, k):
        """Position t predicts token t + k, the last k predict none."""

        return model.loss(hidden, ids.roll(-k, 1), shifted(counted, k),
                          total=shifted(counts, k).sum())

    guesses = [loss(hidden, k) for k, hidden in enumerate(out.drafts, 2)] \
        if stage.drafts else []

    return (loss(out.hidden, 1), out.index_loss, out.load,
            sum(guesses) / len(guesses) if guesses
            else out.index_loss.new_zeros(()))


def drafts(model, stage):
    """Returns true if a stage runs the draft layer."""

    return len(model.model.layers) > model.n_layers \
        and (stage.drafts > 0 or stage.attention == 'warmup')


def parameters(model, stage):
    """Returns the parameters of each part that the stage trains; all others
    are frozen."""

    learners = {who: [] for who in LEARN[stage.attention]}

    for name, p in model.named_parameters():
        who = 'indexer' if '.indexer.' in name else 'model'
        p.requires_grad_(who in learners)
        if who in learners:
            learners[who].append(p)

    return learners


def rate(highest, step, steps):
    """Returns the learning rate of a step; that of the first step is 0."""

    rise = max(1, int(RISE * steps))

    if step < rise:
        return highest * (step + 1) / rise

    done = (step - rise) / max(1, steps - rise)
    return highest * (FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * done)) / 2)


def ahead(batches, n):
    """Yields n batches of tensors; a thread reads them ahead."""

    q = queue.Queue(maxsize=8)

    def read():
        try:
            for _, batch in zip(range(n), batches):
                q.put([torch.from_numpy(x) for x in batch])
            q.put(None)
        except Exception as e:      # the consumer raises it
            q.put(e)

    threading.Thread(target=read, daemon=True).start()

    while True:
        batch = q.get()

        if batch is None:
            return

        if isinstance(batch, Exception):
            raise batch

        yield batch


class Meter:
    """Sums over steps, on the device, because fetching a number in every step
    would make the host wait."""

    def __init__(self):
        self.sums, self.steps = {}, 0

    def add(self, tokens, load, **values):
        for name, value in (('tokens', tokens), ('load', load),
                            *values.items()):
            self.sums[name] = self.sums.get(name, 0) + value

        self.steps += 1

    def read(self):
        """Returns the tokens and the means by their names in the log, and
        resets the sums."""

        sums, steps = self.sums, self.steps
        self.sums, self.steps = {}, 0

        tokens = int(sums.pop('tokens'))
        load = sums.pop('load') / steps
        means = {name: round(float(value) / steps, 5)
                 for name, value in sums.items()}
        means['busiest_expert'] = round(float(load.max()), 4)
        means['idlest_expert'] = round(float(load.min()), 4)

        return tokens, means


if __name__ == '__main__':
    main()
