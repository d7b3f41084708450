# Copyright (C) The nginx-dsa authors

"""Shards of training data: their contents, which do not depend on the number
of workers, and the batches that are read from them."""

import argparse
import collections
import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from worlds.form import verify
from worlds.registry import task_of

try:
    import numpy
    from train import data
    from train.encode import TOOLS_BRIEF, TOOLS_HEAD
except ImportError:
    numpy = None


ROOT = os.path.join(os.path.dirname(__file__), '../..')
BUILD = os.path.join(ROOT, os.environ.get('DSA_BUILD', 'build'))
DSA = os.path.join(BUILD, 'dsa')
TOKENIZER = os.path.join(BUILD, 'model/tokenizer.json')

BOS, EOS = 0, 1
needs_numpy = unittest.skipIf(numpy is None, 'no numpy here')


def texts(lists):
    """Returns the text of each list of ids."""

    lines = ''.join(json.dumps([int(i) for i in ids]) + '\n' for ids in lists)
    out = subprocess.run(
        [DSA, 'detokenize', '--tokenizer', TOKENIZER, '--jsonl'],
        input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout

    return [json.loads(line) for line in out.splitlines()]


def files(directory):
    found = {}

    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), 'rb') as f:
            found[name] = f.read()

    return found


def samples_of(directory, n):
    name = os.path.join(directory, f'shard-{n:05}')
    ids = numpy.load(name + '.ids.npy')
    lengths = numpy.load(name + '.len.npy')

    assert lengths.sum() == len(ids)

    return numpy.split(ids, numpy.cumsum(lengths)[:-1])


def make(directory, samples, workers, *more):
    """Runs `python3 -m train.data`, but with shards of 16 samples."""

    code = ('from train import data; data.SHARD = 16; '
            'data.main()')

    subprocess.run(
        [sys.executable, '-c', code, '--out', directory, '--tokenizer',
         TOKENIZER, '--dsa', DSA, '--seed', '7', '--samples', str(samples),
         '--workers', str(workers), *more],
        check=True, stderr=subprocess.DEVNULL)


@needs_numpy
class Made(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        make(cls.directory.name, 40, 2)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def test_files(self):
        self.assertEqual(sorted(files(self.directory.name)),
                         [f'shard-{n:05}.{what}' for n in range(3)
                          for what in ('ids.npy', 'json', 'len.npy')])

    def test_the_same_with_any_workers(self):
        with tempfile.TemporaryDirectory() as other:
            make(other, 40, 1)
            self.assertEqual(files(other), files(self.directory.name))

    def test_continues(self):
        with tempfile.TemporaryDirectory() as a, \
                tempfile.TemporaryDirectory() as b:
            make(a, 64, 2)
            make(b, 64, 2)
            want = files(a)
            kept = os.path.join(b, 'shard-00000.ids.npy')

            # complete shards stay as they are; an incomplete one is made again

            with open(kept, 'wb') as f:
                f.write(b'kept')
            os.remove(os.path.join(b, 'shard-00001.json'))
            os.remove(os.path.join(b, 'shard-00002.ids.npy'))
            os.remove(os.path.join(b, 'shard-00002.json'))

            make(b, 64, 1)
            self.assertEqual(files(b), {**want,
                                        'shard-00000.ids.npy': b'kept'})

    def test_samples(self):
        for n in range(3):
            for sample in samples_of(self.directory.name, n):
                self.check(sample)

    def check(self, sample):
        self.assertEqual(sample.dtype, numpy.uint16)

        ids = sample & 0x7fff
        target = sample >= 0x8000
        change = numpy.flatnonzero(numpy.diff(target)) + 1
        parts = numpy.split(ids, change)

        # The targets follow a <think> or </think>.  The end token, which the
        # model generates too, is the last id of the sample.

        self.assertEqual(ids[0], BOS)
        self.assertEqual(ids[-1], EOS)
        self.assertFalse(target[0])
        self.assertEqual(len(parts) % 2, 0)

        text = texts(parts)

        for before, written, end in zip(text[::2], text[1::2], parts[1::2]):
            self.assertTrue(before.endswith('think>'))
            self.assertEqual(end[-1], EOS)
            self.assertNotIn('<｜User｜>', written)
            self.assertEqual('</think>' in written,
                             before.endswith('<think>'))

    def test_counts(self):
        for n in range(3):
            samples = samples_of(self.directory.name, n)

            with open(os.path.join(self.directory.name,
                                   f'shard-{n:05}.json')) as f:
                counts = json.load(f)

            families = counts.pop('families')
            self.assertEqual(counts.pop('failed'), 0)

            self.assertEqual(counts, {
                name: sum(f[name] for f in families.values())
                for name in ('samples', 'tokens', 'targets', 'dropped')})

            del counts['dropped']       # tested by test_too_long

            self.assertEqual(counts, {
                'samples': len(samples),
                'tokens': sum(len(s) for s in samples),
                'targets': sum((s >= 0x8000).sum() for s in samples)})

    def test_too_long(self):
        all_lengths = sorted(len(s) for n in range(3)
                             for s in samples_of(self.directory.name, n))
        limit = all_lengths[len(all_lengths) // 2]

        with tempfile.TemporaryDirectory() as directory, \
                unittest.mock.patch.multiple(data, SHARD=1000,
                                             LONGEST=limit):
            maker = self.maker(directory, 60)
            counts = maker.shard(0)
            maker.tokenizer.close()
            samples = samples_of(directory, 0)

        self.assertEqual(len(samples), counts['samples'])
        self.assertGreater(counts['dropped'], 0)
        self.assertGreaterEqual(counts['samples'] + counts['dropped'], 60)
        self.assertLessEqual(max(len(s) for s in samples), limit)

    def test_tasks_that_fail(self):
        played = data.corpus.conversation

        def conversation(seed, *options):
            if int(seed.split('-')[-1]) % every == 0:
                raise KeyError('broken')
            return played(seed, *options)

        with tempfile.TemporaryDirectory() as directory, \
                unittest.mock.patch.multiple(data, SHARD=200), \
                unittest.mock.patch.object(data.corpus, 'conversation',
                                           conversation), \
                contextlib.redirect_stderr(io.StringIO()) as stderr:
            maker = self.maker(directory, 200)
            every = 10000
            counts = maker.shard(0)
            self.assertEqual(counts['failed'], 1)
            self.assertEqual(stderr.getvalue(), "train-8-0-0: "
                             "KeyError('broken')\n")

            every = 3
            with self.assertRaises(KeyError):
                maker.shard(0)
            maker.tokenizer.close()

    def maker(self, directory, samples):
        return data.Maker(argparse.Namespace(
            out=directory, tokenizer=TOKENIZER, dsa=DSA, seed='8',
            samples=samples, families=None, apart=False, texts=None,
            words=None, others=[], worlds=0))

    def test_worlds(self):
        """A share of the conversations is of families of demo/worlds, as
        their verifiers accept them; without it no conversation changes."""

        others = ['logic', 'writing', 'search']
        found = collections.Counter()

        for i in range(300):
            task, mode, messages = data.corpus.conversation(
                f'train-9-{i}', others=others, share=0.3)
            found[task.family] += 1

            # where a conversation before this one was refused, the seed is
            # another one

            again = task.family in others and task_of(task.family,
                                                      f'train-9-{i}')

            if again and again.turns[0].user == task.turns[0].user:
                self.assertIn(mode, task.modes)
                self.assertIsNone(verify(again, messages))
                found['verified'] += 1

        drawn = [found[name] for name in others]
        self.assertGreater(found['verified'], 0.8 * sum(drawn))
        self.assertTrue(60 <= sum(drawn) <= 120, found)
        self.assertGreater(min(drawn), 10)

        self.assertEqual(
            [data.corpus.conversation(f'train-9-{i}')[2] for i in range(20)],
            [data.corpus.conversation(f'train-9-{i}', others=others)[2]
             for i in range(20)])

        with tempfile.TemporaryDirectory() as directory, \
                unittest.mock.patch.multiple(data, SHARD=60):
            maker = self.maker(directory, 60)
            maker.args.others, maker.args.worlds = others, 1
            families = maker.shard(0)['families']
            maker.tokenizer.close()

        self.assertEqual(set(families), set(others))

    def test_instructions_are_left_out(self):
        """Of most samples of a base, which has texts, and of no others;
        nothing else changes."""

        class NoTexts:
            def sample(self, rng):
                return [('a', True)]

        def made(texts):
            with unittest.mock.patch.multiple(data, TEXTS=0):
                maker = self.maker(self.directory.name, 0)
                maker.args.families = ['tools_single']
                maker.texts = texts
                found = [maker.made(random.Random(i), f'train-8-0-{i}')[1]
                         for i in range(60)]
                maker.tokenizer.close()
                return found

        whole, brief = made(None), made(NoTexts())
        shorter = 0

        for a, b in zip(whole, brief):
            for x, y in zip(a, b):
                text = ''.join(t for t, _ in y)
                self.assertIn('## Tools\n\n', text)
                self.assertEqual(
                    [(t.replace(TOOLS_BRIEF, TOOLS_HEAD), target)
                     for t, target in y], x)
                shorter += TOOLS_HEAD not in text

        samples = sum(map(len, whole))
        self.assertTrue(0.5 * samples < shorter < 0.9 * samples,
                        f'{shorter} of {samples}')

    def test_a_tokenizer_that_ends(self):
        tokenizer = data.Tokenizer(DSA, TOKENIZER)
        tokenizer.ids(['a'])
        tokenizer.process.kill()

        for _ in range(2):
            with self.assertRaises(RuntimeError):
                tokenizer.ids(['b'] * 100000)

        tokenizer.close()


@needs_numpy
class Read(unittest.TestCase):
    """Reads shards made by hand.  The first id of a sample is its number; all
    others are targets."""

    SIZES = (8, 32)

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.directory = self.temporary.name
        self.rng = random.Random(3)
        self.number = 100
        self.sample = {}

    def tearDown(self):
        self.temporary.cleanup()

    def shard(self, n, samples=50):
        """Writes shard n and returns the numbers of its samples."""

        numbers, arrays = [], []

        for _ in range(samples):
            ids = numpy.full(self.rng.randint(3, 32), 0x8000 + 5)
            ids[0] = self.number
            ids[-1] = 1 + self.rng.randrange(2) * 0x8000
            self.sample[self.number] = ids
            arrays.append(ids)
            numbers.append(self.number)
            self.number += 1

        name = os.path.join(self.directory, f'shard-{n:05}')
        data.put(name + '.ids.npy',
                 numpy.concatenate(arrays).astype(numpy.uint16))
        data.put(name + '.len.npy',
                 numpy.array([len(a) for a in arrays], numpy.int32))
        data.put(name + '.json', {})

        return numbers

    def read(self, batches, n):
        """Returns the numbers of the next n samples, or a few more, and checks
        their batches."""

        numbers = []

        while len(numbers) < n:
            ids, target, lengths = next(batches)
            rows, size = ids.shape

            self.assertEqual((ids.dtype, target.dtype, lengths.dtype),
                             ('int64', 'bool', 'int64'))
            self.assertEqual((target.shape, lengths.shape),
                             ((rows, size), (rows,)))
            self.assertIn(size, self.SIZES)
            self.assertEqual(rows * size, 128)

            for row, marks, length in zip(ids, target, lengths):
                sample = self.sample[row[0]]

                self.assertEqual(list(row[:length]), list(sample & 0x7fff))
                self.assertEqual(list(marks[:length]),
                                 list(sample >= 0x8000))
                self.assertTrue((row[length:] == data.PAD).all())
                self.assertFalse(marks[length:].any())
                self.assertEqual(size, 8 if length <= 8 else 32)
                numbers.append(int(row[0]))

        return numbers

    def test_every_sample_as_often(self):
        there = self.shard(0) + self.shard(1)
        batches = data.Shards(self.directory).batches(self.rng, 128,
                                                      self.SIZES)
        times = [self.read(batches, 100 * 20).count(n) for n in there]

        self.assertGreaterEqual(min(times), 18)
        self.assertLessEqual(max(times), 22)

    def test_shuffled(self):
        self.shard(0)
        shards = data.Shards(self.directory)

        def first(seed):
            return self.read(shards.batches(random.Random(seed), 128,
                                            self.SIZES), 30)

        a = first(1)
        self.assertNotEqual(a, sorted(a))
        self.assertEqual(a, first(1))
        self.assertNotEqual(a, first(2))

    def test_a_new_shard_comes_next(self):
        old = self.shard(0)
        batches = data.Shards(self.directory).batches(self.rng, 128,
                                                      self.SIZES)
        self.assertLessEqual(set(self.read(batches, 200)), set(old))

        with unittest.mock.patch.object(data, 'WINDOW', 1):
            new = self.shard(1)
            seen = self.read(batches, 130)

        self.assertGreater(len(set(seen) & set(new)), 40)

    def test_incomplete_shard_is_ignored(self):
        whole = self.shard(0)
        part = self.shard(1)

        os.unlink(os.path.join(self.directory, 'shard-00001.json'))
        os.unlink(os.path.join(self.directory, 'shard-00001.len.npy'))

        batches = data.Shards(self.directory).batches(self.rng, 128,
                                                      self.SIZES)
        seen = set(self.read(batches, 300))

        self.assertLessEqual(seen, set(whole))
        self.assertFalse(seen & set(part))

    def test_longer_than_all_buckets(self):
        self.shard(0)
        batches = data.Shards(self.directory).batches(self.rng, 32, (8, 16))

        for _ in range(100):
            ids, _, lengths = next(batches)
            self.assertLessEqual(lengths.max(), 16)
            self.assertEqual(ids.size, 32)


@needs_numpy
class Packed(unittest.TestCase):

    def test_rows_hold_whole_samples(self):
        rng = random.Random(2)
        lengths = [rng.randrange(3, 60) for _ in range(400)] + [500]

        with tempfile.TemporaryDirectory() as path:
            name = os.path.join(path, 'shard-00000')
            ids = [numpy.full(n, i % 900, numpy.uint16)
                   for i, n in enumerate(lengths)]
            data.put(name + '.ids.npy', numpy.concatenate(ids))
            data.put(name + '.len.npy', numpy.array(lengths, numpy.int32))
            data.put(name + '.json', {})
            batches = data.Shards(path).packed(random.Random(1), 400, 100)
            found = [next(batches) for _ in range(10)]

        filled = 0

        for ids, target, length in found:
            self.assertEqual(ids.shape, (4, 100))

            for row, n in zip(ids, length):
                self.assertTrue((row[n:] == data.PAD).all())
                filled += n
                at = 0

                while at < n:
                    sample = row[at]
                    self.assertTrue(
                        (row[at:at + lengths[sample]] == sample).all())
                    at += lengths[sample]

                self.assertEqual(at, n)

        self.assertGreater(filled, 0.85 * 10 * 400)


if __name__ == '__main__':
    unittest.main()
