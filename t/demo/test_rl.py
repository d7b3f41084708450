# Copyright (C) The nginx-dsa authors

"""Rollouts and updates: rows of bytes that are wrong, trajectories, batches,
and the whole loop with a server, whose probabilities the trainer's are compared
with."""

import contextlib
import dataclasses
import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from types import SimpleNamespace
from unittest import mock

from models import ROOT, config, make, needs_torch

try:
    import numpy
    from eval.client import RunFailed
    from train import rollout
except ImportError:
    numpy = None

try:
    import torch
    from train import fp8, learn, restore, rl
    from train import model as file
    from train.export import export
    from train.server import Server
except ImportError:
    torch = None


V = 40
DEMO = os.path.join(ROOT, 'demo/model')
BUILD = os.environ.get('DSA_BUILD', os.path.join(ROOT, 'build'))
needs_numpy = unittest.skipIf(numpy is None, 'no numpy here')


def row(kind, form, position, n, data, version=1):
    data += bytes(-len(data) % 4)

    return struct.pack('<IHHIII', 20 + len(data), kind, form, position, n,
                       version) + data


def prompt(*ids, position=0):
    return row(1, 0, position, len(ids), struct.pack(f'<{len(ids)}I', *ids), 0)


def sample(position, number, kept=None, old=-0.5):
    head = struct.pack('<If', number, old)

    if kept is None:
        return row(3, 1, position, 0, head)

    found, last = b'', 0

    for i in sorted(kept):
        gap, last = i - last, i
        while gap > 127:
            found += bytes([gap & 127 | 128])
            gap >>= 7
        found += bytes([gap])

    return row(3, 2, position, len(kept), head + found)


def experts(position, n, layers=2, k=2, first=0):
    values = bytes((first + i) % 8 for i in range(n * layers * k))

    return row(2, 1, position, n, struct.pack('<HH', layers, k) + values)


@needs_numpy
class Rows(unittest.TestCase):

    def test_rows(self):
        bitmap = row(3, 3, 5, 3, struct.pack('<If', 9, -1.5)
                     + bytes([0, 0b10, 0b100, 1]))
        bitmap = bitmap[:20] + struct.pack('<If', 9, -1.5) \
            + bytes([0, 0b10, 0b100, 1])
        rows = rollout.read_rows(
            prompt(3, 4) + prompt(5, position=2) + experts(0, 3)
            + sample(3, 39, [1, 39]) + sample(4, 7) + bitmap, V)

        self.assertEqual(rows.prompt, [3, 4, 5])
        self.assertEqual(rows.ids, [39, 7, 9])
        self.assertEqual(rows.old, [-0.5, -0.5, -1.5])
        (position, values), = rows.experts
        self.assertEqual((position, values.shape), (0, (3, 2, 2)))
        self.assertEqual(values[1].tolist(), [[4, 5], [6, 7]])
        self.assertEqual(rows.versions, {1})
        self.assertEqual(rows.kept, [[1, 39], None, [9, 18, 24]])

    def test_wrong(self):
        good = prompt(3, 4) + experts(0, 2) + sample(2, 5, [5, 6])
        rollout.read_rows(good, V)

        for name, data in (
                ('an id', prompt(V)), ('a sample', prompt(1) + sample(1, V)),
                ('a gap in the prompt', prompt(1, position=1)),
                ('a gap in the samples', prompt(1) + sample(2, 5)),
                ('its own id', prompt(1) + sample(1, 5, [6])),
                ('an id of a mask', prompt(1) + sample(1, 5, [5, V])),
                ('an id twice', prompt(1) + row(3, 2, 1, 2, struct.pack(
                    '<If', 5, -1) + bytes([5, 0]))),
                ('the id 0 twice', prompt(1) + row(3, 2, 1, 2, struct.pack(
                    '<If', 0, -1) + bytes([0, 0]))),
                ('log p', prompt(1) + sample(1, 5, old=math.nan)),
                ('log p', prompt(1) + sample(1, 5, old=1.0)),
                ('log p', prompt(1) + sample(1, 5, old=-math.inf)),
                ('type', row(4, 0, 0, 1, bytes(4))),
                ('form', row(3, 4, 0, 1, bytes(12))),
                ('form', row(2, 3, 0, 1, bytes(8))),
                ('experts', row(2, 1, 0, 9, struct.pack('<HH', 2, 2))),
                ('no experts', row(2, 1, 0, 9, struct.pack('<HH', 0, 2))),
                ('other layers', experts(0, 2) + experts(2, 1, layers=3)),
                ('experts', row(2, 1, 0, 1 << 31, struct.pack('<HH', 9, 9))),
                ('number', row(3, 2, 0, 9, struct.pack('<If', 1, 0) + b'\1')),
                ('length 0', bytes(20)), ('cut', good[:-1]),
                ('cut', good[:30]), ('header', good + bytes(3))):
            with self.assertRaises(rollout.BadRows, msg=name):
                rollout.read_rows(data, V)

    def test_noise(self):
        """Whatever the bytes are, reading them ends with rows or with
        BadRows."""

        rng = random.Random(4)
        good = prompt(3, 4) + experts(0, 2) + sample(2, 5, [5, 6])
        read = 0

        for _ in range(3000):
            data = bytearray(good)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                rollout.read_rows(bytes(data), V)
                read += 1
            except rollout.BadRows:
                pass

        self.assertGreater(read, 0)
        self.assertLess(read, 3000)


def answer(ids, samples, start=0):
    """The Rows of a request with a prompt of ids."""

    data = prompt(*ids) + experts(start, len(ids) + len(samples) - 1 - start)

    for i, number in enumerate(samples):
        data += sample(len(ids) + i, number, [number, 0])

    return rollout.read_rows(data, V)


@needs_numpy
class Trajectories(unittest.TestCase):

    def test_joined(self):
        """A request that begins with the one before and its answer continues
        its sequence; tool results are no samples; the experts of positions
        that the cache had are those of the first request."""

        t = rollout.Trajectory('f', 's')
        t.add(answer([1, 2, 3], [4, 5]), 1)
        t.add(answer([1, 2, 3, 4, 5, 6, 7], [8], start=4), 1)
        s, = t.sequences

        self.assertEqual(s.ids, [1, 2, 3, 4, 5, 6, 7, 8])
        self.assertEqual(s.sampled, [False] * 3 + [True] * 2 + [False] * 2
                         + [True])
        self.assertEqual(len(s.old), 3)
        self.assertEqual(s.experts[0].tolist(), [[0, 1], [2, 3]])
        self.assertEqual((s.experts[:, 0, 0] >= 0).tolist(),
                         [True] * 7 + [False])
        self.assertEqual((t.tokens, t.differs, t.requests), (3, 0, 2))

    def test_experts(self):
        """A position has the experts of the request that computed it first; of
        the positions behind the last id nothing is kept."""

        first = rollout.read_rows(
            prompt(1, 2) + experts(0, 1) + sample(2, 4), V)
        again = rollout.read_rows(
            prompt(1, 2, 4) + experts(0, 2, first=1) + experts(3, 1, first=3)
            + experts(7, 2) + sample(3, 5), V)
        other = rollout.read_rows(
            prompt(1, 2, 4, 5) + experts(4, 1, k=3) + sample(4, 5), V)

        t = rollout.Trajectory('f', 's')
        t.add(first, 1)
        t.add(again, 1)
        self.assertEqual(t.sequences[0].experts.tolist(), [
            [[0, 1], [2, 3]], [[5, 6], [7, 0]], [[-1, -1], [-1, -1]],
            [[3, 4], [5, 6]]])

        with self.assertRaises(rollout.BadRows):
            t.add(other, 1)

        none = rollout.Trajectory('f', 's')
        none.add(rollout.read_rows(prompt(1) + sample(1, 5), V), 1)
        self.assertIsNone(none.sequences[0].experts)

    def test_differs(self):
        """Within a turn another encoding is counted; after a message of the
        user the reasoning is left out, which is expected."""

        t = rollout.Trajectory('f', 's')
        t.add(answer([1, 2], [4, 5]), 1)
        t.add(answer([1, 2, 9, 6], [7]), 1)
        self.assertEqual((t.differs, len(t.sequences)), (1, 2))
        t.add(answer([1, 3], [7]), 2)
        self.assertEqual((t.differs, len(t.sequences), t.tokens), (1, 3, 4))


@needs_numpy
class Conversations(unittest.TestCase):

    def test_each_has_a_task_of_its_own(self):
        """Tools may have state, which must not pass from one conversation of
        a group to another."""

        seen = []

        def made(family, name):
            return SimpleNamespace(family=family, name=name, state=[])

        def converse(task, mode, chat):
            task.state.append(1)
            seen.append((task.family, task.name, len(task.state)))
            return SimpleNamespace(why=None if task.name == 'b' else 'wrong')

        with mock.patch.object(rollout, 'converse', converse):
            groups, _ = rollout.rollouts(
                [('f', 'a'), ('g', 'b')], made,
                rollout.Sampling('http://127.0.0.1:9', 'm', 'chat', V), 3, 1, 2,
                'n')

        self.assertEqual(sorted(seen),
                         [('f', 'a', 1)] * 3 + [('g', 'b', 1)] * 3)
        self.assertEqual([[(t.family, t.seed, t.reward) for t in g]
                          for g in groups],
                         [[('f', 'a', 0)] * 3, [('g', 'b', 1)] * 3])


@needs_torch
class Batches(unittest.TestCase):

    def test_assemble(self):
        a, b = rollout.Trajectory('f', 'a'), rollout.Trajectory('g', 'b')
        a.add(answer([1, 2, 3], [4, 5]), 1)
        b.add(answer([7, 8], [9]), 1)
        b.add(answer([7, 6], [2, 3]), 2)
        batch = learn.assemble([a, b], [0.5, -0.5], [0.1, 0], (2, 2), 30)

        self.assertEqual(batch.target.tolist(), [4, 5, 9, 2, 3])
        self.assertEqual(batch.before.tolist(), [2, 3, 6, 11, 12])
        self.assertEqual(batch.of.tolist(), [0, 0, 1, 1, 1])
        self.assertEqual(batch.valid.sum(1).tolist(), [5, 3, 4])
        self.assertEqual(batch.routes[0, 4].flatten().tolist(), [-1] * 4)
        self.assertEqual(batch.routes[1, 1].tolist(), [[4, 5], [6, 7]])

        kept = learn.masks(batch, V)
        self.assertEqual(kept.shape, (5, V))
        self.assertEqual([row.nonzero().flatten().tolist() for row in kept],
                         [[0, 4], [0, 5], [0, 9], [0, 2], [0, 3]])

        # a row that counts nothing joins a single one

        batch = learn.assemble([a], [0], [0], (2, 2), 30)
        self.assertEqual(batch.valid.sum(1).tolist(), [5, 0])
        self.assertEqual(batch.of.tolist(), [0, 0])

        b.sequences[0].kept[0] = None
        batch = learn.assemble([b], [0], [0], (2, 2), 30)
        self.assertEqual([row.nonzero().flatten().tolist()
                          for row in learn.masks(batch, V)],
                         [list(range(30)), [0, 2], [0, 3]])

    def test_parts(self):
        def of(*lengths):
            return SimpleNamespace(sequences=[SimpleNamespace(ids=[0] * n)
                                              for n in lengths])

        t = [of(10), of(100), of(10, 20), of(30), of(90)]
        found = learn.parts(t, 200)

        self.assertEqual(sorted(i for p in found for i in p), [0, 1, 2, 3, 4])
        self.assertEqual(found[0], [1, 4])
        for p in found:
            rows = sum(len(t[i].sequences) for i in p)
            most = max(len(s.ids) for i in p for s in t[i].sequences)
            self.assertLessEqual(rows * most, 200)

        # 90 is in the pass of 100, 40 is not, unless that one has few

        t = [of(100), of(40), of(90), of(40)]
        self.assertEqual(learn.parts(t, 1000, 200), [[0, 2], [1, 3]])
        self.assertEqual(learn.parts(t, 1000, 201), [[0, 2, 1], [3]])


@needs_torch
class Restored(unittest.TestCase):

    def test_bytes(self):
        """What export() wrote and restore() read is the same model when it is
        written and read again, and differs from it by the rounding."""

        c = config(num_hidden_layers=2, num_nextn_predict_layers=1)

        with tempfile.TemporaryDirectory() as out:
            one, two = (os.path.join(out, x) for x in 'ab')
            state = make(c).state_dict()
            export(c, state, one)
            saved = restore.restore(one)
            export(c, saved['model'], two)
            again = restore.restore(two)

        self.assertEqual(saved['config'], c)
        self.assertEqual(set(saved['model']), set(state))

        for name, x in saved['model'].items():
            self.assertTrue(torch.equal(x, again['model'][name]), name)
            apart = (x - state[name]).norm() / state[name].norm()
            self.assertLessEqual(float(apart), 0.04 if x.dim() > 1 else 0,
                                 name)

    def test_spread(self):
        """Spread weights are served as before, and what is served follows
        them at once: its mean change is that of the weights."""

        w = make(config(num_hidden_layers=2)).state_dict()
        w = next(x for name, x in w.items() if name.endswith('q_b_proj.weight'))
        w = fp8.quantize_weight(w)
        spread = restore.spread(w, torch.Generator().manual_seed(1))
        change = w.std() / 200

        def served(x):
            return float((fp8.quantize_weight(x + change) - w).mean() / change)

        self.assertTrue(torch.equal(fp8.quantize_weight(spread), w))
        self.assertGreater(float((spread != w).float().mean()), 0.9)
        self.assertLess(served(w), 0.5)
        self.assertGreater(served(spread), 0.8)
        self.assertLess(served(spread), 1.2)

    def test_codes(self):
        codes = numpy.array([c for c in range(256) if c & 127 != 127])
        values = torch.from_numpy(restore.e4m3(codes))
        self.assertTrue(torch.equal(fp8.e4m3(values), values))
        self.assertEqual(fp8.e4m3_code(values).tolist(),
                         codes.tolist())


@needs_torch
class Options(unittest.TestCase):

    def test_wrong(self):
        good = ['--model', 'm', '--out', 'o', '--families', 'arithmetic']
        self.assertEqual(rl.arguments(good + ['--beta-of', 'arithmetic=0']
                                      ).beta_of, {'arithmetic': 0})

        for more in (['--off', 'x'], ['--beta-of', 'a'], ['--minibatches', '3'],
                     ['--temperature', '0'], ['--families', 'nothing']):
            with open(os.devnull, 'w') as null:
                with contextlib.redirect_stderr(null), \
                        self.assertRaises(SystemExit):
                    rl.arguments(good + more)


@needs_torch
class Loop(unittest.TestCase):
    """With the engine on the CPU, and a model of random weights, whose answers
    are random: every log-probability differs."""

    def test_loop(self):
        c = config(num_hidden_layers=2, num_nextn_predict_layers=0)

        with tempfile.TemporaryDirectory() as out:
            first = os.path.join(out, 'first')
            export(c, make(c).state_dict(), first, DEMO + '/tokenizer.json')
            options = rl.arguments([
                '--model', first, '--out', out, '--build', BUILD,
                '--families', 'arithmetic', '--updates', '2',
                '--tasks', '1', '--group', '4', '--max-tokens', '12',
                '--memory', '64m', '--rate', '1e-3', '--top-p', '0.8'])
            run = rl.Run(options)
            seen = self.watched(run)
            self.rewarded(run)
            run.run()

            with open(out + '/log.jsonl') as f:
                lines = [json.loads(x) for x in f]

            *lines, saved = lines
            self.assertEqual([x['version'] for x in lines], [1, 2])
            self.assertEqual((saved['saved'], saved['task'], saved['noise']),
                             (2, 2, 8))

            for x in lines:
                self.assertEqual((x['dropped'], x['differs']), (0, 0))
                self.assertEqual(x['requests'], 4)
                self.assertGreater(x['entropy'], 1)

                # another implementation, with the roundings of serving.  One
                # near a tie that goes the other way moves all later tokens
                # of this model by some hundredths

                self.assertLess(x['apart_mean'], 0.1)

            self.assertLess(min(x['apart_mean'] for x in lines), 0.01)

            # the policy has moved away from the reference

            self.assertLess(lines[0]['kl'], lines[1]['kl'])
            self.assertGreater(lines[1]['ratio'], lines[1]['apart_most'])
            self.forced(seen)
            self.control(run, seen)

    def rewarded(self, run):
        """A model of random weights is never right, so here half of each
        group is."""

        made = run.rollouts

        def rollouts(*args):
            groups, seconds = made(*args)
            for group in groups:
                for i, t in enumerate(group):
                    t.reward = float(i % 2)
            return groups, seconds

        run.rollouts = rollouts

    def watched(self, run):
        """Keeps what each forward pass of an update routed, and its batch."""

        seen, made = [], run.learner.step

        def step(prepared):
            if not seen:
                seen.append((prepared[0][0], self.chosen(run, prepared[0][0])))
            return made(prepared)

        run.learner.step = step

        return seen

    def chosen(self, run, batch):
        found, route = [], file.route

        def told(*args):
            out = route(*args)
            found.append(out[1])
            return out

        with torch.no_grad(), mock.patch.object(file, 'route', told):
            learn.run(run.policy, run.learner.settings, batch, 1.0)

        return found

    def forced(self, seen):
        """Enforced routes are the recorded ones, and every position that led
        to a sample has one."""

        for batch, chosen in seen:
            routes = batch.routes.flatten(0, 1)
            known = routes[:, 0, 0] >= 0
            self.assertTrue(known[batch.before].all())

            for layer, got in enumerate(chosen):
                want = torch.zeros_like(got).scatter(
                    1, routes[:, layer].clamp(min=0), True)
                self.assertTrue(torch.equal(got[known], want[known]))


    def control(self, run, seen):
        """The log-probabilities of other tokens are much further apart, so
        that the agreement means something.  Those without the roundings of
        serving are others, too, but nearer."""

        batch, settings = seen[0][0], run.learner.settings
        with torch.no_grad():
            log = learn.run(run.policy, settings, batch, 1.0)[0]
            plain = learn.run(run.policy, dataclasses.replace(
                settings, precision='float'), batch, 1.0)[0]

        self.assertGreater(float((log - batch.old.roll(1)).abs().mean()), 0.5)
        apart = float((log - plain).abs().mean())
        self.assertGreater(apart, 1e-4)
        self.assertLess(apart, 0.5)


@needs_torch
class Ended(unittest.TestCase):

    def test_no_engine(self):
        """A server that cannot start is an error with its log, and leaves
        nothing behind."""

        with tempfile.TemporaryDirectory() as none:
            server = Server(BUILD, none)
            try:
                with self.assertRaisesRegex(RunFailed, 'config.json'):
                    server.start(60)
            finally:
                server.stop()
            self.assertFalse(os.path.exists(server.run))

    def test_terminated(self):
        """SIGTERM ends the server, too."""

        c = config(num_hidden_layers=2, num_nextn_predict_layers=0)

        with tempfile.TemporaryDirectory() as out:
            first = os.path.join(out, 'first')
            export(c, make(c).state_dict(), first, DEMO + '/tokenizer.json')

            p = subprocess.Popen([
                sys.executable, '-m', 'train.rl', '--model', first, '--out',
                out, '--build', BUILD, '--families', 'arithmetic', '--memory',
                '64m', '--updates', '1000', '--max-tokens', '12'],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

            try:
                path = f'/proc/{p.pid}/task/{p.pid}/children'
                end = time.monotonic() + 300
                programs = []

                while len(programs) < 2 and time.monotonic() < end:
                    self.assertIsNone(p.poll())
                    with open(path) as f:
                        programs = f.read().split()
                    time.sleep(0.05)

                self.assertEqual(len(programs), 2)
                p.send_signal(signal.SIGTERM)
                p.communicate(timeout=120)
            finally:
                p.kill()
                p.communicate()

        self.assertEqual(p.returncode, 143)

        for number in programs:
            self.assertFalse(os.path.exists(f'/proc/{number}'))


if __name__ == '__main__':
    unittest.main()
