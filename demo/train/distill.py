# Copyright (C) The nginx-dsa authors

"""Makes shards for the stage distill of train.train from the samples of
train.verified.

    PYTHONPATH=demo python3 -m train.distill --out DIR --tokenizer FILE \\
        --dsa build/dsa [--most N] [--seed N] FILE.jsonl|DIR...

A sample is what train.data makes of a conversation.  --most bounds the samples
of a domain in a mode, so that none drowns the others; which ones are left, and
their order, depend on --seed only.  --out must be empty or not exist: other
shards would be trained on, too.  It also gets origins.jsonl, with a line for
each sample of each shard, in order: the task, the weights and the noise that it
was made with.
"""

import argparse
import glob
import os
import random
import shutil
import sys

import numpy

from eval.run import positive
from train import data, lines, verified
from train.encode import training_samples


ORIGIN = ('domain', 'family', 'seed', 'mode', 'weights', 'version')


def samples_of(path):
    """Yields (origin, segments) of a file's samples.  Raises BadLines."""

    for n, x in enumerate(verified.read(path), 1):
        try:
            for s in x['samples']:
                origin = {**{k: x[k] for k in ORIGIN}, 'noise': s['noise']}
                for segments in training_samples(s['messages'], x['tools'],
                                                 x['mode']):
                    yield origin, segments
        except (AttributeError, LookupError, TypeError, ValueError) as e:
            raise lines.BadLines(
                f'{path}:{n}: {type(e).__name__}: {e}; expected samples of '
                '{"noise", "messages"} and tools of a chat request') from None


def paths(name):
    """Returns a file, or those of a directory."""

    return sorted(glob.glob(name + '/*.jsonl')) if os.path.isdir(name) \
        else [name]


def bounded(found, most, rng):
    """Returns samples in random order, of each domain in each mode at most so
    many."""

    found, counts, kept = list(found), {}, []
    rng.shuffle(found)

    for origin, segments in found:
        key = origin['domain'], origin['mode']
        counts[key] = counts.get(key, 0) + 1

        if counts[key] <= most:
            kept.append((origin, segments))

    return kept


def write(args, found, tokenizer):
    """Writes the shards and origins.jsonl.  Returns the counts of each."""

    counted, origins = [], []

    for n, at in enumerate(range(0, len(found), data.SHARD)):
        part, counts = found[at:at + data.SHARD], data.Counts()
        ids = data.marked_ids(tokenizer, [segments for _, segments in part])
        kept = [(origin, x) for (origin, _), x in zip(part, ids)
                if counts.add(origin['family'], x)]
        counted.append(counts.read())

        if not kept:
            continue

        shard = data.name(args, n)
        data.put(shard + '.ids.npy', numpy.concatenate([x for _, x in kept]))
        data.put(shard + '.len.npy', numpy.array([len(x) for _, x in kept],
                                                 numpy.int32))
        data.put(shard + '.json', counted[-1])
        origins += [origin for origin, _ in kept]

    lines.replace(os.path.join(args.out, 'origins.jsonl'), origins)

    return counted


def main(args=None):
    p = argparse.ArgumentParser(prog='train.distill')
    p.add_argument('--out', required=True)
    p.add_argument('--tokenizer', required=True)
    p.add_argument('--dsa', required=True)
    p.add_argument('--most', type=positive, default=1 << 30)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('files', nargs='+', metavar='FILE.jsonl|DIR')
    args = p.parse_args(args)

    target, args.out = args.out, args.out + '.part'

    if os.path.exists(target) and os.listdir(target):
        p.error(f'--out: {target} has files; expected none')

    try:
        found = bounded((s for name in args.files for path in paths(name)
                         for s in samples_of(path)),
                        args.most, random.Random(args.seed))
    except (OSError, lines.BadLines) as e:
        sys.exit(f'train.distill: {e}')

    if not found:
        sys.exit('train.distill: the files have no samples')

    shutil.rmtree(args.out, ignore_errors=True)
    os.makedirs(args.out)
    tokenizer = data.Tokenizer(args.dsa, args.tokenizer)

    try:
        counted = write(args, found, tokenizer)
    finally:
        tokenizer.close()

    if not any(c['samples'] for c in counted):
        sys.exit('train.distill: all samples are too long')

    os.rename(args.out, target)
    print(f'{sum(c["samples"] for c in counted)} samples, '
          f'{sum(c["tokens"] for c in counted)} tokens, '
          f'{sum(c["dropped"] for c in counted)} too long')


if __name__ == '__main__':
    main()
