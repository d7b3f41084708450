# Copyright (C) The nginx-dsa authors

"""The program of training: its stages, checkpoints, seeds and signals."""

import contextlib
import dataclasses
import io
import json
import os
import signal
import tempfile
import unittest
from unittest import mock

from models import needs_torch, tiny
from training import FIELDS, PER_STEP, TOKENS, Pattern, is_indexer

try:
    import numpy
    import torch
    from train import data
    from train import train as train_file
    from train.model import Model
    from train import checkpoint, export, recipe, restore
    from train.recipe import STAGES
except ImportError:
    torch = None


@needs_torch
class Main(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = directory.name
        self.data = self.path('data')
        self.config = tiny(max_position_embeddings=384)

        os.mkdir(self.data)
        with open(self.path('config.json'), 'w') as f:
            json.dump(self.config, f)

        for name in (signal.SIGINT, signal.SIGTERM):
            self.addCleanup(signal.signal, name, signal.getsignal(name))

        # three rows of 128 in a step, two of 192, or one of 384

        self.stages = tuple(
            dataclasses.replace(s, batch=384, positions=384 * n,
                                length=s.length and 384)
            for s, n in zip(STAGES, (40, 20, 20, 20, 20, 20, 20)))

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write_shard(self):
        lengths = numpy.array([20, 128, 129, 70, 5] * 4, numpy.int32)
        ids = numpy.arange(lengths.sum()) % 24
        ids[::3] |= data.TARGET
        name = os.path.join(self.data, 'shard-00000')

        data.put(name + '.ids.npy', ids.astype(numpy.uint16))
        data.put(name + '.len.npy', lengths)
        data.put(name + '.json', {'samples': len(lengths)})

    def main(self, *args, **patches):
        """Returns the exit status or message."""

        with mock.patch('sys.argv', ['train', '--data', self.data, '--out',
                                     self.path('out'), *args]), \
                mock.patch.multiple(
                    train_file, CONFIG=self.path('config.json'),
                    **patches), \
                mock.patch.multiple(recipe, STAGES=self.stages,
                                    ALL=self.stages), \
                mock.patch('torch.cuda.is_available', lambda: False), \
                contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()) as err:
            try:
                train_file.main()
                return None
            except SystemExit as e:
                return err.getvalue() if e.code == 2 else e.code

    def log(self):
        with open(self.path('out/log.jsonl')) as f:
            return [json.loads(line) for line in f]

    def checkpoint(self, name):
        return checkpoint.load(self.path('out', name + '.bf16'))

    def test_all_stages(self):
        self.write_shard()
        self.assertIsNone(self.main('--scale', '0.1'))

        lines = self.log()
        self.assertEqual([(x['stage'], x['step'], x['of']) for x in lines],
                         [('pretrain', 4, 4), ('extend', 2, 2),
                          ('warmup', 2, 2), ('sparse', 2, 2),
                          ('instruct', 2, 2), ('deepen', 2, 2),
                          ('tune', 2, 2)])
        self.assertEqual(sorted(os.listdir(self.path('out'))),
                         ['deepen.bf16', 'extend.bf16', 'instruct.bf16',
                          'log.jsonl', 'pretrain.bf16', 'sparse.bf16',
                          'tune.bf16', 'warmup.bf16'])

        for line in lines:
            self.assertEqual(set(line), FIELDS)
            self.assertEqual(line['positions'], 384 * line['step'])
            self.assertLessEqual(line['tokens'], line['positions'])
            self.assertGreater(line['tokens'], 0)

        saved = self.checkpoint('tune')
        self.assertEqual(saved['config'], self.config)
        Model(saved['config']).load_state_dict(saved['model'])

    def test_continues_from(self):
        self.write_shard()
        self.assertIsNone(self.main('--scale', '0.1', '--stages',
                                    'pretrain,warmup'))
        self.assertEqual([x['stage'] for x in self.log()],
                         ['pretrain', 'warmup'])

        before = self.checkpoint('pretrain')['model']
        warm = self.checkpoint('warmup')['model']
        self.assertEqual({n for n in before
                          if not torch.equal(before[n], warm[n])},
                         {n for n in before if is_indexer(n)})

        # the same model continues with the next stages, and lines are added to
        # the log

        with mock.patch.object(train_file, 'train',
                               wraps=train_file.train) as train:
            self.assertIsNone(self.main(
                '--scale', '0.1', '--from', self.path('out/warmup.bf16')))

        self.assertEqual([c.args[1].name for c in train.call_args_list],
                         ['sparse', 'instruct', 'deepen', 'tune'])
        self.assertEqual([x['stage'] for x in self.log()],
                         ['pretrain', 'warmup', 'sparse', 'instruct',
                          'deepen', 'tune'])

        self.assertIsNone(self.main(
            '--scale', '0.1', '--stages', 'warmup', '--from',
            self.path('out/warmup.bf16')))

        again = self.checkpoint('warmup')['model']
        self.assertEqual({n for n in warm
                          if not torch.equal(again[n], warm[n])},
                         {n for n in warm if is_indexer(n)})

    def test_begins_with_an_exported_model(self):
        """All stages follow, unless some are named; the weights are those of
        FP8 codes."""

        self.write_shard()
        self.assertIsNone(self.main('--scale', '0.1', '--stages', 'pretrain'))

        saved = self.checkpoint('pretrain')
        export.export(saved['config'], saved['model'], self.path('model'))
        codes = restore.restore(self.path('model'))['model']
        begun = []

        def train(model, stage, *rest):
            begun.append((stage.name, {
                n: t.clone() for n, t in model.state_dict().items()}))

        self.assertIsNone(self.main('--from', self.path('model'),
                                    train=train))
        self.assertEqual([name for name, _ in begun],
                         [s.name for s in self.stages])

        first = begun[0][1]
        self.assertEqual({n for n in codes
                          if not torch.equal(first[n], codes[n])}, set())
        self.assertTrue(any(not torch.equal(first[n], t)
                            for n, t in saved['model'].items()))

    def test_seed(self):
        self.write_shard()
        tables = []

        for seed in ('1', '1', '2'):
            self.main('--scale', '0.01', '--stages', 'pretrain', '--seed',
                      seed)
            tables.append(self.checkpoint('pretrain')['model'])

        a, b, c = (t['model.embed_tokens.weight'] for t in tables)
        self.assertTrue(torch.equal(a, b))
        self.assertFalse(torch.equal(a, c))

    def test_each_stage_has_its_own_seed(self):
        drawn = []

        for seed in ('1', '1', '2'):
            with mock.patch.object(train_file, 'train') as train:
                train.return_value = None
                self.main('--seed', seed)
            drawn.append([c.args[3].random() for c in train.call_args_list])

        self.assertEqual(drawn[0], drawn[1])
        self.assertEqual(len({*drawn[0], *drawn[2]}), 14)

    def test_signals(self):
        self.stages = tuple(dataclasses.replace(s, batch=PER_STEP, length=0,
                                                positions=PER_STEP * 60)
                            for s in self.stages)

        for number in (signal.SIGTERM, signal.SIGINT):

            def after(n):
                if n == 20:
                    os.kill(os.getpid(), number)

            message = self.main('--stages', 'sparse,tune',
                                Shards=lambda path: Pattern(24, after))
            stopped = self.path('out/stopped.pt')
            self.assertEqual(message,
                             f'stopped; continue with --from {stopped}')

            line = self.log()[-1]
            self.assertEqual(line['stage'], 'sparse')
            self.assertTrue(1 <= line['step'] < 40, line)
            self.assertFalse(os.path.exists(self.path('out/sparse.bf16')))

            # it continues where it stopped, and runs to its end

            self.assertIsNone(self.main(
                '--from', stopped, Shards=lambda path: Pattern(24)))

            lines = self.log()
            at = lines.index(line)
            self.assertEqual(
                [(x['stage'], x['step'], x['of']) for x in lines[at + 1:]],
                [('sparse', 50, 60), ('sparse', 60, 60),
                 ('instruct', 50, 60), ('instruct', 60, 60),
                 ('deepen', 50, 60), ('deepen', 60, 60), ('tune', 50, 60),
                 ('tune', 60, 60)])
            self.assertEqual(lines[at + 2]['tokens'], 60 * TOKENS)
            os.remove(self.path('out/sparse.bf16'))

    def test_unknown_stage(self):
        for names in ('polish', 'pretrain,polish', ''):
            message = self.main('--stages', names)
            self.assertIn(f'unknown stage {names.split(",")[-1]}; stages are '
                          'pretrain, extend, warmup, sparse, instruct, deepen, '
                          'tune', message)

        self.assertFalse(os.path.exists(self.path('out')))
