# Copyright (C) The nginx-dsa authors

"""Tables of specialists and the share of reinforcement learning: intervals,
pairs, and operations, each beside another computation."""

import contextlib
import io
import json
import math
import os
import random
import tempfile
import unittest

from models import config, needs_torch
from tasks.task import CHAT, RETAIN
from train import lines, tables

try:
    import numpy
except ImportError:
    numpy = None

try:
    import torch
    from train import recipe, share
except ImportError:
    torch = None


def results(name, family, right, mode=RETAIN, seed=1, tokens=100):
    """A file of a family's tasks; right: of each task."""

    return {'name': name, 'mode': mode, 'seed': seed, 'results': [
        {'family': family, 'seed': f'eval-{i}', 'right': r,
         'completion_tokens': tokens + i} for i, r in enumerate(right)]}


def cells(line):
    return [c.strip() for c in line.strip('|').split('|')]


class Printed(unittest.TestCase):

    def setUp(self):
        self.out = tempfile.TemporaryDirectory()
        self.addCleanup(self.out.cleanup)
        self.files = []

    def put(self, value):
        self.files.append(f'{self.out.name}/{len(self.files)}.json')
        with open(self.files[-1], 'w') as f:
            json.dump(value, f)

    def printed(self, *options):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            tables.main([*options, *self.files])

        return [cells(x) for x in out.getvalue().splitlines()]

    def refused(self, *options):
        with contextlib.redirect_stderr(io.StringIO()) as out:
            try:
                self.printed(*options)
            except SystemExit as e:
                return f'{e} {out.getvalue()}'

        return self.fail('it was not refused')

    def test_domains(self):
        """Specialists' files are one column; a row has the families of its
        domain, thinking and non-thinking apart."""

        yes, no = [True], [False]
        self.put(results('base', 'arithmetic', yes * 3 + no))
        self.put(results('base', 'arithmetic_story', no * 4))
        self.put(results('base', 'logic', no * 5))
        self.put(results('base', 'logic', yes * 5, CHAT))
        self.put(results('base', 'general_menu', no * 2))
        self.put(results('specialist', 'arithmetic', yes * 4))
        self.put(results('specialist', 'logic@2', yes * 2 + no))
        found = self.printed('--columns', 'specialist,base')

        self.assertEqual(found[0], ['right, % (95 %)', 'tasks', 'specialist',
                                    'base'])
        rows = {r[0]: r[1:] for r in found[2:]}
        self.assertEqual(list(rows), ['mathematics, thinking',
                                      'logic, thinking',
                                      'logic, non-thinking',
                                      'held out, thinking'])
        self.assertEqual(rows['mathematics, thinking'][0], '8')
        self.assertTrue(rows['mathematics, thinking'][1]
                        .startswith('100.0 ('))
        self.assertTrue(rows['mathematics, thinking'][2].startswith('37.5 ('))
        self.assertTrue(rows['logic, thinking'][1].startswith('66.7 ('))
        self.assertEqual(rows['logic, non-thinking'][1], '')

    def test_pairs(self):
        """Only tasks of both count, and which of them changed."""

        a = [True] * 6 + [False] * 4
        b = [False] + [True] * 8 + [False] * 3
        self.put(results('a', 'logic', a))
        self.put(results('b', 'logic', b))
        self.put(results('b', 'logic', [True], seed=2))
        row = self.printed('--compare', 'a,b')[-1]
        self.assertEqual(row[:4], ['logic, thinking', '10', '3', '1'])
        self.assertTrue(row[4].startswith('+20.0 ('))

    def test_tokens(self):
        """The form of table 3, the highest in bold."""

        self.put(results('strict', 'logic', [True, False], tokens=10))
        self.put(results('speciale', 'logic', [True, True], tokens=400))
        self.assertEqual(self.printed('--tokens', '--by', 'family')[2:],
                         [['logic, thinking', '50.0 (10)',
                           '**100.0** (400)']])

    def test_ordinary(self):
        """Prompts in ordinary wording, each of which counts once."""

        one = {'id': 'single-1', 'category': 'single', 'verdict': 'right',
               'completion_tokens': 3}
        two = {**one, 'id': 'single-2', 'verdict': 'false'}
        run = {'name': 'sft', 'mode': CHAT, 'seed': 1, 'results': [one, two]}
        self.put(run)
        row = self.printed('--by', 'family')[2]
        self.assertEqual(row[:2], ['ordinary single, non-thinking', '2'])
        self.assertTrue(row[2].startswith('50.0 ('))

        self.put({**run, 'seed': 2})
        self.assertIn('already', self.refused())

    def test_hostile(self):
        good = results('a', 'logic', [True])

        for bad, why in ((good, 'a has logic eval-0 already'),
                         ([], 'name: expected a value of type str'),
                         ({**good, 'seed': '1'}, 'seed: expected .* type int'),
                         ({**good, 'results': [{}]}, 'expected results of'),
                         ({**good, 'results': [7]}, 'expected results of'),
                         ({**good, 'results': [{'completion_tokens': 'x'}]},
                          'expected results of')):
            self.files = []
            self.put(good)
            self.put(bad)
            self.assertRegex(self.refused(), why)

        self.files = []
        self.put({**good, 'weights': 'x'})
        self.put({**good, 'weights': 'y', 'seed': 2})
        self.assertRegex(self.refused(), 'logic of a by the weights y; '
                         'expected x')

        with open(self.files[1], 'w') as f:
            f.write(json.dumps(good)[:-9])
        self.assertRegex(self.refused(), '1.json: .*expected a file of')

        self.files.pop()
        self.assertIn('the files have a', self.refused('--compare', 'a,b'))
        self.assertIn('expected A,B', self.refused('--compare', 'a'))


@unittest.skipIf(numpy is None, 'no numpy here')
class Intervals(unittest.TestCase):

    def test_wilson(self):
        """The bounds are the shares that a test at 1.96 deviations does not
        reject: the roots of (p - r/n)^2 = z^2 p (1 - p) / n."""

        z = 1.96

        for right, n in ((0, 5), (3, 8), (50, 100), (300, 300)):
            q = right / n
            low, high = sorted(numpy.roots([1 + z * z / n,
                                            -2 * q - z * z / n, q * q]).real)
            self.assertEqual(tables.share(right, n),
                             f'{100 * q:.1f} ({100 * max(low, 0):.1f}-'
                             f'{100 * min(high, 1):.1f})')

    def test_paired(self):
        """The mean and the deviation of the differences of all tasks and of
        two more, half of one in each cell."""

        rng = random.Random(3)

        for n in (4, 30, 200):
            a = [rng.random() < 0.6 for _ in range(n)]
            b = [rng.random() < 0.8 for _ in range(n)]
            gained = sum(y and not x for x, y in zip(a, b))
            lost = sum(x and not y for x, y in zip(a, b))
            d = numpy.array([int(y) - int(x) for x, y in zip(a, b)]
                            + [0, 1, -1, 0])
            weights = numpy.array([1.0] * n + [0.5] * 4)
            mean = numpy.average(d, weights=weights)
            deviation = math.sqrt(numpy.average((d - mean) ** 2,
                                                weights=weights) / (n + 2))
            at, low, high = tables.paired(gained, lost, n)
            self.assertAlmostEqual(at, sum(b) / n - sum(a) / n)
            self.assertAlmostEqual(low, mean - 1.96 * deviation)
            self.assertAlmostEqual(high, mean + 1.96 * deviation)

        # where nothing changes the interval is not empty

        at, low, high = tables.paired(0, 0, 20)
        self.assertEqual(at, 0)
        self.assertLess(low, -0.02)
        self.assertGreater(high, 0.02)

    def test_coverage(self):
        """About 95 of 100 intervals have the true difference."""

        rng, inside = random.Random(8), 0

        for _ in range(2000):
            drawn = [rng.random() for _ in range(60)]
            gained = sum(x < 0.25 for x in drawn)
            lost = sum(x > 0.9 for x in drawn)
            _, low, high = tables.paired(gained, lost, 60)
            inside += low <= 0.15 <= high

        self.assertGreater(inside, 0.93 * 2000)
        self.assertLess(inside, 0.97 * 2000)


@needs_torch
class Share(unittest.TestCase):

    def test_sizes(self):
        """Against the shapes that the configuration gives."""

        c = config()
        h, q, kv = c['hidden_size'], c['q_lora_rank'], c['kv_lora_rank']
        heads, rope = c['num_attention_heads'], c['qk_rope_head_dim']
        nope, v = c['qk_nope_head_dim'], c['v_head_dim']
        attention = (h * q + q * heads * (nope + rope) + h * (kv + rope)
                     + kv * heads * (nope + v) + heads * v * h)
        expert = 3 * h * c['moe_intermediate_size']
        moe = (h * c['n_routed_experts'] + expert
               * (c['num_experts_per_tok'] + c['n_shared_experts']))
        dense = 3 * h * c['intermediate_size']
        head = c['vocab_size'] * h
        index = (q * c['index_n_heads'] * c['index_head_dim']
                 + h * c['index_head_dim'] + h * c['index_n_heads'])

        self.assertEqual(share.sizes(c), {
            'model': 6 * attention + dense + 5 * moe + head,
            'indexer': 6 * index,
            'draft': attention + moe + 2 * h * h + head,
            'draft_indexer': index})

        none = config(num_nextn_predict_layers=0)
        self.assertEqual(share.sizes(none)['draft'], 0)

    def test_stages(self):
        n = {'model': 1000, 'indexer': 100, 'draft': 10, 'draft_indexer': 1}
        of = {s.name: share.of_stage(s, n) for s in recipe.ALL}
        self.assertEqual(of['pretrain'], 6 * 1010)
        self.assertEqual(of['warmup'], 2 * 1010 + 6 * 101)
        self.assertEqual(of['instruct'], 6 * 1111)
        self.assertEqual(of['tune'], 6 * (1100 + 3 * 11))
        self.assertEqual(share.of_rl(n), 12 * 1100)

    def stage(self, name, step, tokens, seconds):
        return {'stage': name, 'step': step, 'of': 9, 'tokens': tokens,
                'seconds': seconds}

    def test_logs(self):
        """A stage counts once, and again if it was trained again; batches of
        reinforcement learning are summed."""

        n = {'model': 1e9, 'indexer': 0, 'draft': 0, 'draft_indexer': 0}
        rl = {'batch': 1, 'positions': 500000, 'rollout_seconds': 1,
              'update_seconds': 2, 'export_seconds': 1, 'reload_seconds': 1,
              'reward_seconds': 5}

        with tempfile.TemporaryDirectory() as out:
            os.mkdir(out + '/math')
            path, other = out + '/log.jsonl', out + '/math/log.jsonl'
            lines.replace(path, [
                self.stage('pretrain', 50, 10 ** 6, 5),
                {'stage': 'pretrain', 'recall': {}},
                self.stage('pretrain', 90, 2 * 10 ** 6, 9),
                self.stage('tune', 9, 10 ** 6, 8),
                self.stage('tune', 9, 10 ** 6, 8)])
            lines.replace(other, [{'pick': ['x']}, rl, {**rl, 'batch': 2},
                                  {'saved': 2}])
            rows = share.read(path, n) + share.read(other, n)

            self.assertEqual(rows, [
                ('pretrain', 2 * 10 ** 6, 12e15, 9),
                ('tune', 10 ** 6, 6e15, 8), ('tune', 10 ** 6, 6e15, 8),
                ('rl math', 10 ** 6, 12e15, 20)])
            text = share.table(rows)
            row = next(cells(x) for x in text if 'reinforcement' in x)
            self.assertEqual(row[2:], ['12.000', '33.3%', '20', '44.4%'])
            self.assertIn('100.0% of the operations, 222.2% of the seconds',
                          text[-1])

            for bad, why in (
                    (self.stage('x', 1, 1, 1), 'expected pretrain or extend'),
                    ({'batch': 1}, "KeyError: 'positions'"),
                    ({'stage': 'tune', 'step': 1}, "KeyError: 'tokens'")):
                lines.replace(path, [bad])
                with self.assertRaisesRegex(lines.BadLines, why):
                    share.read(path, n)


if __name__ == '__main__':
    unittest.main()
