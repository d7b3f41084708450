# Copyright (C) The nginx-dsa authors

"""Makes shards of token ids for training, in several processes, and reads them
in batches of rows of equal length.

    python3 -m train.data --out DIR --tokenizer FILE --dsa PROGRAM --seed S
                          --samples N [--workers W] [--families a,b]
                          [--apart] [--texts FILE | --words FILE]
                          [--worlds SHARE]

--texts adds samples of ordinary text (texts.py).  With it or with --words,
which adds none, words of the text replace some of those of conversations.
--apart leaves out conversations with reasoning and calls, for the base of the
paper's cold start (tasks/coldstart.py).
--worlds SHARE draws this share of the conversations from the families of
demo/worlds that specialists have (domains.py), as far as they can be verified
on this machine, so that reinforcement learning of them does not begin with
nothing.

A shard is

    shard-00000.ids.npy   uint16, the ids of its samples one after the other;
                          the top bit marks a target
    shard-00000.len.npy   int32, the number of ids of each sample
    shard-00000.json      counts, in total and by family; it is written last,
                          so where it exists, the shard is complete

Runs with the same seed make the same shards, with any number of workers; a
run leaves out shards that are complete, so it continues one that was ended.
There may be a few samples more than N, because a task is not divided.
"""

import argparse
import bisect
import glob
import itertools
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time

import numpy

from tasks.task import DISCARD
from train import corpus, domains, vary
from train.encode import (TOOLS_BRIEF, TOOLS_HEAD, Ordinary,
                          training_samples)
from train.texts import Texts


TARGET = 0x8000         # a bit of an id in a shard
PAD = 2                 # the id of demo/make-tokenizer's padding
LONGEST = 7680          # tokens of a sample; longer samples are dropped
SHARD = 2048            # samples in a shard, about
FAILING = 0.01          # failing tasks per sample; more end the run
TEXTS = 0.06            # of the samples are ordinary text: a fifth of the
                        # tokens, a third of the loss of all tokens
BRIEF = 0.7             # of the base's samples with tools lack instructions
WINDOW = 8              # shards that are shuffled together
OPEN = 8                # rows that are packed at a time

# Lengths of rows.  A batch of train.recipe's size holds a whole and even number
# of rows of each length, so all batches have the same number of tokens, and
# two GPUs have the same number of rows.
BUCKETS = (64, 96, 128, 192, 256, 384, 512, 640, 768, 960, 1280, 1536, 2048,
           2560, 3072, 3840, 5120, 6144, 7680)


class Tokenizer:
    """A process of `dsa tokenize` that is used for many texts; special: names
    of special tokens become these tokens, except in an Ordinary text."""

    def __init__(self, dsa, file, special=True):
        self.arguments = dsa, file
        self.ordinary = None
        self.process = subprocess.Popen(
            [dsa, 'tokenize', '--tokenizer', file, '--jsonl',
             *(['--special'] if special else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ids(self, texts):
        """Returns an array of ids for each of the texts, none of which may be
        empty."""

        apart = [i for i, t in enumerate(texts) if isinstance(t, Ordinary)]

        if apart and self.ordinary is None:
            self.ordinary = Tokenizer(*self.arguments, False)

        found = self.read([t for t in texts if not isinstance(t, Ordinary)])

        if apart:
            for i, ids in zip(apart, self.ordinary.read(
                    [texts[i] for i in apart])):
                found.insert(i, ids)

        return found

    def read(self, texts):
        lines = ''.join(json.dumps(t, ensure_ascii=False) + '\n'
                        for t in texts).encode()

        # The process answers while it still reads.  If one thread wrote and
        # read, both processes could block on a full pipe.

        writer = threading.Thread(target=self.write, args=(lines,))
        writer.start()
        answers = [self.process.stdout.readline() for _ in texts]
        writer.join()

        if answers and not answers[-1].endswith(b']\n'):
            raise RuntimeError('dsa tokenize ended')

        return [numpy.array(json.loads(a), numpy.int64) for a in answers]

    def write(self, lines):
        try:
            self.process.stdin.write(lines)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass                # ids() reports this when answers are missing

    def close(self):
        self.process.communicate()

        if self.ordinary is not None:
            self.ordinary.close()


def marked_ids(tokenizer, samples):
    """Returns the ids of each sample, which is a list of segments; the top bit
    marks targets."""

    segments = [s for sample in samples for s in sample]
    marked = []

    for ids, (_, target) in zip(tokenizer.ids([t for t, _ in segments]),
                                segments):
        if ids.max() >= TARGET:
            raise ValueError('token ids must be less than 32768')

        marked.append((ids | (TARGET if target else 0)).astype(numpy.uint16))

    ends = numpy.cumsum([len(sample) for sample in samples])

    return [numpy.concatenate(marked[end - len(sample):end])
            for end, sample in zip(ends, samples)]


class Maker:
    """Makes shards in a process of its own."""

    def __init__(self, args):
        self.args = args
        self.tokenizer = Tokenizer(args.dsa, args.tokenizer)
        self.texts = Texts(args.texts) if args.texts else None
        self.words = self.texts or (Texts(args.words) if args.words else None)

    def shard(self, n):
        """Writes shard n and returns its counts."""

        size = min(SHARD, self.args.samples - n * SHARD)
        samples, families = [], []
        counts = Counts()

        for i in itertools.count():
            if len(samples) >= size:
                break

            seed = f'train-{self.args.seed}-{n}-{i}'

            try:
                family, more = self.made(random.Random(seed), seed)
            except Exception as e:
                # a few tasks may fail, but not a larger share than FAILING

                counts.failed += 1
                print(f'{seed}: {e!r}', file=sys.stderr)
                if counts.failed > size * FAILING:
                    raise
                continue

            samples += more
            families += [family] * len(more)

        kept = [ids for family, ids
                in zip(families, marked_ids(self.tokenizer, samples))
                if counts.add(family, ids)]

        shard = name(self.args, n)
        put(shard + '.ids.npy', numpy.concatenate(kept))
        put(shard + '.len.npy', numpy.array([len(ids) for ids in kept],
                                            numpy.int32))
        put(shard + '.json', counts.read())

        return counts.read()

    def made(self, rng, seed):
        """Returns the family and the samples of a task, or of a text."""

        # what follows is the same with texts and without

        if rng.random() < TEXTS and self.texts is not None:
            return 'texts', [self.texts.sample(rng)]

        task, mode, messages = corpus.conversation(
            seed, self.args.families, self.args.apart, self.args.others,
            self.args.worlds)
        tools = vary.reordered(rng, task.tool_list())
        samples = training_samples(vary.greeted(rng, task.family, messages),
                                   tools, mode)

        # each environment of demo/worlds has names of its own, so that none
        # can be learned by heart

        if task.family not in self.args.others:
            samples = vary.renamed(rng, task.family, vary.disguised(
                rng, task.family, tools, samples),
                self.words.word if self.words else None)

        # each step is a sample that repeats all earlier messages, so at most
        # two of them are used

        if mode == DISCARD:
            samples = rng.sample(samples, min(2, len(samples)))

        # only of a base, which has texts: what is served has the instructions

        if self.texts is not None and rng.random() < BRIEF:
            samples = shortened(samples)

        return task.family, samples


def shortened(samples):
    """Returns the samples without the instructions before the list of tools.
    They are always the same, and a base learns more from other tokens."""

    return [[(type(text)(text.replace(TOOLS_HEAD, TOOLS_BRIEF)), target)
             for text, target in sample] for sample in samples]


def name(args, n):
    """Returns the path of shard n without its ending."""

    return os.path.join(args.out, f'shard-{n:05}')


class Counts:
    """The counts of a shard and of its families."""

    NAMES = ('samples', 'tokens', 'targets', 'dropped')

    def __init__(self):
        self.families = {}
        self.failed = 0         # tasks whose gold policy failed

    def add(self, family, ids):
        """Counts a sample.  Returns true if it is kept."""

        counts = self.families.setdefault(family, dict.fromkeys(self.NAMES,
                                                                0))
        if len(ids) > LONGEST:
            counts['dropped'] += 1
            return False

        counts['samples'] += 1
        counts['tokens'] += len(ids)
        counts['targets'] += int((ids >= TARGET).sum())
        return True

    def read(self):
        total = {name: sum(c[name] for c in self.families.values())
                 for name in self.NAMES}

        return {**total, 'failed': self.failed, 'families': self.families}


def put(path, value):
    """Writes a file under another name and renames it when it is complete."""

    with open(path + '.tmp', 'wb') as f:
        if isinstance(value, dict):
            f.write((json.dumps(value, indent=1) + '\n').encode())
        else:
            numpy.save(f, value)

    os.rename(path + '.tmp', path)


class Shards:
    """The shards of a directory, including those that appear later."""

    def __init__(self, directory):
        self.directory = directory
        self.used = {}          # how often each was used, by name

    def batches(self, rng, tokens_per_batch, bucket_sizes=BUCKETS):
        """Yields (ids int64 [B, T], target bool [B, T], lengths int64 [B])
        without end.  T is a bucket's size, B * T is about tokens_per_batch.
        Rows are padded at their end.  Samples that are longer than the largest
        bucket are skipped.  rng is a random.Random."""
        waiting = [[] for _ in bucket_sizes]

        while True:
            for sample in self.window(rng):
                i = bisect.bisect_left(bucket_sizes, len(sample))

                if i == len(bucket_sizes):
                    continue

                waiting[i].append(sample)

                if len(waiting[i]) >= tokens_per_batch // bucket_sizes[i]:
                    yield batch(waiting[i], bucket_sizes[i])
                    waiting[i] = []

    def packed(self, rng, tokens_per_batch, length):
        """Yields batches like batches(), of rows of this length that hold
        whole samples one after the other.  A token sees the samples before its
        own, too: they make the context long, and the indexer must find what
        belongs to the sample.  A sample is put into the first of some open
        rows that has room for it."""

        n = max(1, tokens_per_batch // length)
        full, rows = [], [[] for _ in range(OPEN)]

        while True:
            for sample in self.window(rng):
                if len(sample) > length:
                    continue

                room = [length - sum(map(len, row)) for row in rows]
                i = next((i for i, r in enumerate(room)
                          if r >= len(sample)), None)

                if i is None:
                    i = min(range(OPEN), key=room.__getitem__)
                    full.append(numpy.concatenate(rows[i]))
                    rows[i] = []

                rows[i].append(sample)

                if len(full) == n:
                    yield batch(full, length)
                    full = []

    def window(self, rng):
        """Returns the samples of the shards that were used least, of new
        shards first, in random order."""

        while True:
            for path in glob.glob(os.path.join(self.directory,
                                               'shard-*.json')):
                self.used.setdefault(path[:-len('.json')], 0)

            if self.used:
                break

            time.sleep(1)

        names = sorted(self.used)
        rng.shuffle(names)
        samples = []

        for name in sorted(names, key=self.used.get)[:WINDOW]:
            self.used[name] += 1
            ids = numpy.load(name + '.ids.npy')
            lengths = numpy.load(name + '.len.npy')
            samples += numpy.split(ids, numpy.cumsum(lengths)[:-1])

        rng.shuffle(samples)

        return samples


def batch(samples, size):
    ids = numpy.full((len(samples), size), PAD, numpy.int64)

    for row, sample in zip(ids, samples):
        row[:len(sample)] = sample

    return (ids & ~TARGET, ids >= TARGET,
            numpy.array([len(s) for s in samples], numpy.int64))


def portion(text):
    """Returns a share, for argparse."""

    value = float(text)

    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f'{text}: expected 0 to 1')

    return value


def arguments(args=None):
    p = argparse.ArgumentParser(prog='train.data')
    p.add_argument('--out', required=True)
    p.add_argument('--tokenizer', required=True)
    p.add_argument('--dsa', required=True)
    p.add_argument('--seed', required=True)
    p.add_argument('--samples', type=int, required=True)
    p.add_argument('--workers', type=int, default=os.cpu_count())
    p.add_argument('--families', type=lambda s: s.split(','))
    p.add_argument('--apart', action='store_true')
    p.add_argument('--texts')
    p.add_argument('--words')
    p.add_argument('--worlds', type=portion, default=0)
    args = p.parse_args(args)
    args.others = domains.families_of(['worlds']) if args.worlds else []

    return args


def main():
    args = arguments()
    os.makedirs(args.out, exist_ok=True)

    shards = [n for n in range((args.samples + SHARD - 1) // SHARD)
              if not os.path.exists(name(args, n) + '.json')]
    start = time.time()
    samples = tokens = 0

    with multiprocessing.Pool(args.workers, start_worker, (args,)) as pool:
        for counts in pool.imap_unordered(make_shard, shards):
            samples += counts['samples']
            tokens += counts['tokens']
            print(f'{samples} samples, {tokens} tokens, '
                  f'{tokens / (time.time() - start):.0f} a second',
                  file=sys.stderr)


maker = None            # one per worker process


def start_worker(args):
    global maker
    maker = Maker(args)


def make_shard(n):
    return maker.shard(n)


if __name__ == '__main__':
    main()
