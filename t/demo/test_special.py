# Copyright (C) The nginx-dsa authors

"""Specialists: their domains, samples that verifiers accept, shards of them,
and reinforcement learning of a domain that continues in another call."""

import contextlib
import copy
import filecmp
import io
import json
import os
import re
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

from models import ROOT, config, make, needs_torch
from tasks.task import CHAT, RETAIN, play
from train import domains, lines
from worlds import registry
from worlds.code import cage
from worlds.form import Refused, verify
from worlds.general import program
from worlds.registry import task_of

try:
    import numpy
    from eval import run as eval_run
    from eval.client import RunFailed
    from train import (checkpoint, data, distill, experiment, measure, recipe,
                       rl, served, tables, train, verified)
    from train.export import export
except ImportError:
    numpy = None

try:
    cage.check()
    no_cage = None
except cage.NoCage as e:
    no_cage = f'no isolation: {e}'


DEMO = os.path.join(ROOT, 'demo/model')
BUILD = os.environ.get('DSA_BUILD', os.path.join(ROOT, 'build'))
EXPERIMENTS = os.path.join(ROOT, 'demo/train/experiments')


def silent():
    return contextlib.redirect_stderr(io.StringIO())


class Domains(unittest.TestCase):

    def test_families(self):
        """Each family is known, in one domain, and has its verifier; the
        categories that no domain has are all that are left."""

        every = [f for some in domains.DOMAINS.values() for f in some]
        self.assertEqual(len(domains.DOMAINS), 8)
        self.assertEqual(len(set(every)), len(every))
        self.assertLessEqual(set(every), set(registry.families()))
        self.assertEqual(set(domains.SYNTHETIC) | set(domains.HELD),
                         {f'general_{c}' for c in program.CATEGORIES}
                         | {'general_hangzhou'})
        self.assertFalse(set(every) & set(domains.HELD))
        self.assertGreaterEqual(len(domains.HELD), 5)

        for name, families in domains.DOMAINS.items():
            modes = {m for f in families if f not in domains.CAGED
                     or f in ('programming', 'code', 'interpreter')
                     for m in task_of(f, 'train-1').modes}
            self.assertLessEqual({RETAIN, CHAT}, modes, name)

    def test_names(self):
        self.assertEqual(domains.domain_of('logic@3'), 'logic')
        self.assertIsNone(domains.domain_of('general_menu@2'))

        for name, why in (('math', 'known: mathematics programming'),
                          ('proofs', 'proof is right')):
            with self.assertRaisesRegex(Refused, why):
                domains.families_of([name])

    def test_left_out(self):
        """Where programs cannot be isolated, what needs it is left out, with
        a report, and the rest is there."""

        def refuse():
            raise cage.NoCage('no namespaces')

        with mock.patch.object(cage, 'check', refuse), \
                contextlib.redirect_stderr(io.StringIO()) as out:
            with self.assertRaisesRegex(Refused, 'no namespaces'):
                domains.families_of(['programming'])
            found = domains.families_of(['general_agent', 'logic'])

        self.assertEqual([f for f in found if f in domains.CAGED], [])
        self.assertIn('tools_single', found)
        self.assertIn('logic', found)
        self.assertIn('left out: general_basket', out.getvalue())


class Lines(unittest.TestCase):

    def test_wrong(self):
        with tempfile.TemporaryDirectory() as out:
            path = out + '/x'

            for text, why in (('{}\n{"a":', 'x:2: the line is cut off'),
                              ('[]\n', 'x:1: expected a JSON object'),
                              ('{}\n\n', 'x:2: .*expected a JSON object'),
                              ('[' * 100000 + '\n', 'x:1'),
                              ('\udcff\n', 'x:1')):
                with open(path, 'w', errors='surrogateescape') as f:
                    f.write(text)
                with self.assertRaisesRegex(lines.BadLines, why):
                    lines.read(path)

            with open(path, 'w') as f:
                f.write('{"a": 1}\n{"b"')

            self.assertEqual(lines.repair(path), 4)
            self.assertEqual(lines.repair(path), 0)
            self.assertEqual(lines.read(path), [{'a': 1}])


def changed(messages):
    """A conversation with another result: the digits of a plan or of the last
    answer are others, or, if its last line has none, its words are gone."""

    def other(text):
        return re.sub(r'\d', lambda m: str((int(m[0]) + 1) % 10), text)

    found = copy.deepcopy(messages)
    last = found[-1]

    for m in found:
        for c in m.get('tool_calls', []):
            if c['function']['name'] == 'submit_result':
                c['function']['arguments'] = other(c['function']['arguments'])
                return found

    text = last['content']
    end = text.split('\n')[-1]
    last['content'] = other(text) if other(end) != end else 'Indeed.'

    return found


@unittest.skipIf(numpy is None, 'no numpy here')
class Filter(unittest.TestCase):
    """Only right conversations are kept, each once.  The gold policy is right
    by construction, and so is what is wrong."""

    FAMILIES = (('arithmetic', RETAIN), ('arithmetic_story', CHAT),
                ('logic', RETAIN), ('lookup', CHAT), ('tools_multi', RETAIN),
                ('tools_single', CHAT), ('search', RETAIN), ('trip', RETAIN))

    def entry(self, family, mode, found, most):
        return verified.entry({'number': 3, 'family': family,
                               'seed': 'train-5', 'mode': mode}, found,
                              task_of, most)

    def test_wrong_among_right(self):
        for family, mode in self.FAMILIES:
            gold = play(task_of(family, 'train-5'), mode)
            wrong = changed(gold)
            other = copy.deepcopy(gold)
            other[-1]['content'] += ' '
            found = [wrong, None, gold, copy.deepcopy(gold), wrong, other]

            if any('tool_calls' in m for m in gold):
                # the results that a conversation has do not count

                found.append(copy.deepcopy(gold))
                for m in found[-1]:
                    if m['role'] == 'tool':
                        m['content'] = '{}'

            x = self.entry(family, mode, found[:5], 3)
            self.assertEqual([s['messages'] for s in x['samples']], [gold],
                             family)
            self.assertEqual(x['samples'][0]['noise'], 3 * verified.NOISE + 2)
            self.assertEqual(x['refused'], {'wrong when it is repeated': 2,
                                            'as another': 1})
            self.assertEqual((x['attempts'], x['right']), (5, 4))

            for most in (1, 2):
                x = self.entry(family, mode, found, most)
                self.assertEqual([s['messages'] for s in x['samples']],
                                 [gold, other][:most], family)

    def test_of_no_use(self):
        """What the encoding cannot have, and what a prompt of demo/eval has,
        is not trained on."""

        gold = play(task_of('arithmetic', 'train-5'), RETAIN)
        special = copy.deepcopy(gold)
        special[-1]['reasoning_content'] = '</think>'
        x = self.entry('arithmetic', RETAIN, [special], 2)
        self.assertEqual((x['refused'], x['samples']),
                         ({'not encodable': 1}, []))

        with mock.patch.object(verified.disjoint, 'shared', lambda m: True):
            x = self.entry('arithmetic', RETAIN, [gold], 2)
        self.assertEqual(list(x['refused']),
                         ['shares words with a prompt of demo/eval'])

    def test_as_training_reads_it(self):
        """From the messages of converse(), which lack earlier reasoning, and
        the completions: what play() returns."""

        for family, mode in (('chat', RETAIN), ('tools_multi', CHAT)):
            gold = play(task_of(family, 'train-8'), mode)
            sent, written = [], []

            for n, m in enumerate(copy.deepcopy(gold)):
                if m['role'] == 'assistant':
                    for i, c in enumerate(m.get('tool_calls', [])):
                        c['id'] = f'x{n}{i}'
                    written.append(copy.deepcopy(m))
                    m.pop('reasoning_content', None)
                if m['role'] == 'tool':
                    m['tool_call_id'] = re.sub(r'call_(\d+)_(\d+)', r'x\1\2',
                                               m['tool_call_id'])
                sent.append(m)

            self.assertEqual(verified.conversation(sent, written), gold)


def line(**change):
    gold = play(task_of('arithmetic', 'train-5'), CHAT)

    return {'number': 0, 'domain': 'mathematics', 'family': 'arithmetic',
            'seed': 'distill-1-0', 'mode': CHAT, 'weights': 'a', 'version': 1,
            'samples': [{'noise': 0, 'messages': gold}], 'tools': [],
            **change}


@unittest.skipIf(numpy is None, 'no numpy here')
class Files(unittest.TestCase):

    def test_hostile(self):
        """The error names what is accepted."""

        good, bad = line(), line()
        del bad['family']

        with tempfile.TemporaryDirectory() as out:
            path = out + '/x'

            for second, why in (
                    (line(weights='b'), 'x:2: weights: b; expected a'),
                    (line(domain='maths'), 'maths; expected mathematics or '),
                    (line(domain=[]), 'domain: expected a value of type str'),
                    (line(family='algebra'),
                     'algebra; expected arithmetic or arithmetic_story'),
                    (line(family='logic'), 'logic; expected arithmetic or'),
                    (line(mode='discard'), 'discard; expected retain or chat'),
                    (line(version='1'), 'version: expected .* int'),
                    (bad, 'family: expected')):
                lines.replace(path, [good, second])
                with self.assertRaisesRegex(lines.BadLines, why):
                    verified.read(path)

            with self.assertRaisesRegex(lines.BadLines,
                                        'x:1: weights: a; expected z'):
                verified.read(path, 'z')

            for samples in ([{'noise': 0, 'messages': 5}], [7], [{}],
                            [{'noise': 0, 'messages': []}],
                            [{'noise': 0, 'messages': [{'role': 'tool'}]}]):
                lines.replace(path, [good, line(samples=samples)])
                with self.assertRaisesRegex(lines.BadLines,
                                            'x:2.*expected samples'):
                    list(distill.samples_of(path))

            with open(path, 'a') as f:
                f.write('{"number": 1')
            with self.assertRaisesRegex(lines.BadLines, 'x:3: the line is cut'):
                list(distill.samples_of(path))

    def test_shards(self):
        """Shards have the samples, bounded by domain and mode, each with its
        origin, and training reads them."""

        with tempfile.TemporaryDirectory() as out:
            lines.replace(out + '/a.jsonl', [line(number=i)
                                             for i in range(9)])
            lines.replace(out + '/b.jsonl', [line(
                family='logic', domain='logic', weights='b')])
            command = ['--out', out + '/shards', '--tokenizer',
                       DEMO + '/tokenizer.json', '--dsa', BUILD + '/dsa',
                       '--most', '4', out]

            with contextlib.redirect_stdout(io.StringIO()) as said:
                distill.main(command)

            self.assertIn('5 samples', said.getvalue())
            origins = lines.read(out + '/shards/origins.jsonl')
            self.assertEqual(sorted(x['domain'] for x in origins),
                             ['logic'] + ['mathematics'] * 4)
            self.assertEqual({x['weights'] for x in origins}, {'a', 'b'})

            tokenizer = data.Tokenizer(BUILD + '/dsa',
                                       DEMO + '/tokenizer.json')
            self.addCleanup(tokenizer.close)
            want, = data.marked_ids(tokenizer, [
                s for _, s in distill.samples_of(out + '/b.jsonl')])
            rows = data.Shards(out + '/shards').window(rl.random.Random(1))
            self.assertEqual(len(rows), 5)

            for row in rows:
                self.assertEqual(row.tolist(), want.tolist())
                self.assertGreater((row >= data.TARGET).sum(), 3)

            with silent(), self.assertRaises(SystemExit):
                distill.main(command)

    def test_stage(self):
        """The stage begins after the sparse base, and is not among those of
        the model."""

        (stage, part), = train.to_train(['distill'], {'stage': 'sparse'})
        self.assertEqual((stage.attention, stage.prompts), ('sparse', 0))
        self.assertIsNone(part)
        self.assertNotIn(stage, recipe.STAGES)

        with self.assertRaisesRegex(SystemExit, 'no stage follows distill'):
            train.to_train(None, {'stage': 'distill'})


@unittest.skipIf(numpy is None, 'no numpy here')
class Experiments(unittest.TestCase):

    def commands(self, name):
        options = SimpleNamespace(run='R', instruct='I', sparse='S',
                                  tokenizer='T', build='B', backend='cpu')

        steps = experiment.load(f'{EXPERIMENTS}/{name}.json')

        return [[w.format(seconds=9) for w in words]
                for _, words, _ in experiment.commands(steps, options)]

    @unittest.skipIf(no_cage, no_cage)
    def test_commands(self):
        """The programs accept each command of each experiment."""

        accept = {'train.rl': rl.arguments, 'train.measure':
                  measure.arguments, 'train.verified': verified.arguments,
                  'train.data': data.arguments}
        seen = set()

        for name in ('specialists', 'figure5', 'speciale'):
            for module, *args in self.commands(name):
                seen.add(module)
                if module in accept:
                    accept[module](args)
                else:
                    self.assertIn(module, ('train.distill', 'train.train'))

        self.assertLessEqual(set(accept), seen)

    @unittest.skipIf(no_cage, no_cage)
    def test_held_out(self):
        """Nothing of the comparison of figure 5 is trained on, and training
        does not think."""

        trained = [rl.arguments(args) for module, *args
                   in self.commands('figure5') if module == 'train.rl']
        general, other = trained
        self.assertEqual(set(general.families), set(domains.SYNTHETIC))
        self.assertEqual(set(other.families), {'search', 'code',
                                               'interpreter'})

        for options in trained:
            self.assertEqual(options.mode, CHAT)
            self.assertFalse(set(options.families) & set(domains.HELD))

    def test_ended(self):
        """A command is a module, and its status is returned."""

        with tempfile.TemporaryDirectory() as out:
            with open(out + '/ends.py', 'w') as f:
                f.write('import sys\nsys.exit(int(sys.argv[1]))\n')
            with mock.patch.dict(os.environ, PYTHONPATH=out):
                self.assertEqual(experiment.ended(
                    [['ends', '75'], ['ends', '0']]), [75, 0])

    def test_together(self):
        """The commands of a batch run at once: each waits for a file that
        the other one writes.  What succeeds is done, and a failure is
        reported before what is left."""

        with tempfile.TemporaryDirectory() as out:
            with open(out + '/meets.py', 'w') as f:
                f.write('import os, sys, time\n'
                        'out, name = sys.argv[1:]\n'
                        'open(out + "/" + name, "w").close()\n'
                        'end = time.monotonic() + 60\n'
                        'while not os.path.exists(out + "/" + '
                        '{"a": "b", "b": "a", "c": "c"}[name]):\n'
                        '    if time.monotonic() > end: sys.exit(9)\n'
                        '    time.sleep(0.01)\n'
                        'sys.exit(75 * (name == "a"))\n')

            with open(out + '/plan', 'w') as f:
                json.dump({'steps': [{'command': 'meets {run} {each}',
                                      'each': ['a', 'b', 'c'],
                                      'together': 2}]}, f)

            command = [out + '/plan', '--run', out, '--instruct', 'I',
                       '--sparse', 'S', '--tokenizer', 'T']

            with mock.patch.dict(os.environ, PYTHONPATH=out), silent(), \
                    mock.patch.object(experiment, 'ends_on_signal'):
                self.assertEqual(experiment.main(command), 75)

            self.assertEqual([x['done'].split()[-1] for x in
                              lines.read(out + '/experiment.jsonl')], ['b'])
            self.assertFalse(os.path.exists(out + '/c'))

            with mock.patch.object(experiment, 'ended', lambda batch:
                                   [75, 3] if len(batch) == 2 else [0]), \
                    mock.patch.object(experiment, 'ends_on_signal'), silent():
                os.unlink(out + '/experiment.jsonl')
                self.assertEqual(experiment.main(command), 3)

    def test_continues(self):
        """A command that has more to do is run again, and what is done is
        not."""

        with tempfile.TemporaryDirectory() as out:
            steps = [{'command': 'a {run}'}, {'command': 'b {each}',
                                              'each': ['x', 'y']},
                     {'command': 'c {seconds}', 'needs': 400}]

            with open(out + '/plan', 'w') as f:
                json.dump({'steps': steps}, f)

            ran, answers = [], []

            def ended(batch):
                words, = batch
                ran.append(' '.join(words))
                return [answers.pop(0)]

            def call(seconds, *statuses):
                ran[:], answers[:] = [], statuses
                return experiment.main([
                    out + '/plan', '--run', out, '--instruct', 'I',
                    '--sparse', 'S', '--tokenizer', 'T', '--seconds',
                    str(seconds)]), list(ran)

            with mock.patch.object(experiment, 'ended', ended), silent(), \
                    mock.patch.object(experiment, 'ends_on_signal'):
                self.assertEqual(call(200, 0, 75), (75, ['a ' + out, 'b x']))
                self.assertEqual(call(200, 0, 1), (1, ['b x', 'b y']))

                with open(out + '/experiment.jsonl', 'a') as f:
                    f.write('{"don')

                self.assertEqual(call(200, 0), (75, ['b y']))
                status, (last,) = call(600, 0)
                self.assertEqual(status, 0)
                self.assertRegex(last, r'c 5[678]\d$')
                self.assertEqual(call(600), (0, []))

                with open(out + '/plan', 'w') as f:
                    f.write('{"steps": [{}]}')
                with self.assertRaisesRegex(SystemExit, 'expected .*steps'):
                    call(1)


@needs_torch
class Served(unittest.TestCase):
    """The committed model, served by the CPU engine.  At the temperature 2
    some of its answers are wrong."""

    def arguments(self, out, *more):
        return verified.arguments([
            '--model', DEMO, '--build', BUILD, '--domain', 'mathematics',
            '--tasks', '4', '--attempts', '4', '--memory', '64m',
            '--temperature', '2', '--top-p', '1', '--max-tokens', '160',
            '--out', out, *more])

    def test_samples(self):
        with tempfile.TemporaryDirectory() as out:
            path = out + '/x.jsonl'
            self.assertEqual(verified.run(self.arguments(path)), 0)
            found = verified.read(path)
            self.kept(found)

            # as a call that was killed leaves it

            with open(path, 'rb') as f:
                whole = f.read()

            cut = whole.index(b'\n', whole.index(b'\n') + 1) + 40
            os.unlink(path)

            with open(path + '.part', 'wb') as f:
                f.write(whole[:cut])

            with silent():
                self.assertEqual(verified.run(self.arguments(path)), 0)

            with open(path, 'rb') as f:
                self.assertEqual(f.read(), whole)

            self.shards(path, out + '/shards', found)

            # files of another model or of other tasks are not continued

            lines.replace(path, [{**x, 'weights': 'b'} for x in found])
            with self.assertRaisesRegex(lines.BadLines, 'expected '
                                        + served.digest(DEMO)):
                verified.run(self.arguments(path))

            os.rename(path, path + '.part')
            lines.replace(path + '.part', found[:2])
            with self.assertRaisesRegex(lines.BadLines,
                                        'expected arithmetic distill-7-0'):
                verified.run(self.arguments(path, '--seed', '7'))

    def shards(self, path, out, found):
        """What was sampled can be trained on."""

        with contextlib.redirect_stdout(io.StringIO()):
            distill.main(['--out', out, '--tokenizer', DEMO
                          + '/tokenizer.json', '--dsa', BUILD + '/dsa', path])

        noise = sorted(x['noise'] for x in lines.read(out + '/origins.jsonl'))
        self.assertEqual(noise, sorted(s['noise'] for x in found
                                       for s in x['samples']))
        ids, target, length = next(data.Shards(out).batches(
            rl.random.Random(1), 512, (512,)))
        self.assertEqual((ids.shape, target.shape), ((1, 512), (1, 512)))
        self.assertGreater(target.sum(), 3)
        self.assertLess(target.sum(), length.sum())

    def kept(self, found):
        self.assertEqual([x['mode'] for x in found],
                         [RETAIN, RETAIN, CHAT, CHAT])
        self.assertEqual(
            [(x['family'], x['seed']) for x in found],
            [(f, f'distill-1-{i}') for i, f in enumerate(
                ['arithmetic', 'arithmetic_story'] * 2)])
        right = sum(x['right'] for x in found)
        self.assertGreater(right, 0)
        self.assertLess(right, 16)

        for x in found:
            texts = [json.dumps(s['messages']) for s in x['samples']]
            self.assertLessEqual(len(texts), 2)
            self.assertEqual(len(set(texts)), len(texts))
            self.assertEqual(bool(texts), x['right'] > 0)

            for s in x['samples']:
                task = task_of(x['family'], x['seed'])
                self.assertIsNone(verify(task, s['messages']))
                self.assertEqual('reasoning_content' in s['messages'][-1],
                                 x['mode'] == RETAIN)

    def test_jobs(self):
        """Each family with each seed, and the prompts in ordinary wording,
        which have no seed, once."""

        options = measure.arguments(
            ['--model', DEMO, '--name', 'b', '--families', 'arithmetic,lookup',
             '--mode', 'chat', '--seeds', '1,2', '--ordinary', '--out', 'o'])

        self.assertEqual([path for path, _ in measure.jobs(options)],
                         ['o/b.arithmetic.chat.1.json',
                          'o/b.lookup.chat.1.json', 'o/b.ordinary.chat.1.json',
                          'o/b.arithmetic.chat.2.json',
                          'o/b.lookup.chat.2.json'])

    def test_versions_and_tables(self):
        """An answer of other weights is no sample; held-out tasks are measured
        once, and make a table."""

        with tempfile.TemporaryDirectory() as out:
            command = ['--model', DEMO, '--build', BUILD, '--memory', '64m',
                       '--name', 'base', '--families', 'arithmetic',
                       '--tasks', '3', '--out', out]

            with silent():
                self.assertEqual(measure.measure(measure.arguments(command)),
                                 0)
                files = sorted(os.listdir(out))
                self.assertEqual(files, ['base.arithmetic.chat.1.json',
                                         'base.arithmetic.retain.1.json'])

                with mock.patch.object(measure, 'serving', None):
                    self.assertEqual(measure.measure(
                        measure.arguments(command)), 0)

                paths = [f'{out}/{f}' for f in files]
                results = tables.load(paths[0])['results']
                self.assertEqual([r['seed'] for r in results],
                                 [eval_run.name_of(n) for n in
                                  eval_run.task_numbers(1, 3)])

                for mode in ('retain', 'chat'):
                    os.unlink(f'{out}/base.arithmetic.{mode}.1.json')

            options = self.arguments(out + '/x')

            with served.serving(options) as server:
                task = task_of('arithmetic', 'train-1')
                other = SimpleNamespace(url=server.url, model=server.model,
                                        version=2)
                with self.assertRaisesRegex(RunFailed, 'version 1; expected '
                                            '2'):
                    verified.have(task, CHAT, other, {}, 1, 'k')


@needs_torch
class Continued(unittest.TestCase):
    """With a small model of random weights, whose answers are all wrong: half
    of them get a reward here."""

    def run_(self, first, out, seconds, what='mathematics'):
        options = rl.arguments([
            '--model', first, '--tokenizer', DEMO + '/tokenizer.json',
            '--out', out, '--build', BUILD, '--domain', what, '--mode',
            'both', '--updates', '2', '--part', '1', '--tasks', '2',
            '--group', '2', '--max-tokens', '6', '--memory', '64m', '--rate',
            '1e-3', '--seconds', str(seconds)])
        os.makedirs(out, exist_ok=True)
        run = rl.Run(options)
        made = run.rollouts

        def rollouts(*args):
            groups, took = made(*args)
            for group in groups:
                for i, t in enumerate(group):
                    t.reward = float(i % 2)
            return groups, took

        run.rollouts = rollouts

        with contextlib.redirect_stdout(io.StringIO()):
            return run.run()

    def test_same(self):
        """Two calls have the batches and the weights of one."""

        c = config(num_hidden_layers=2, num_nextn_predict_layers=0,
                   hidden_size=64, num_attention_heads=2, index_topk=64,
                   num_key_value_heads=2, q_lora_rank=64,
                   intermediate_size=128)

        with tempfile.TemporaryDirectory() as out:
            first = out + '/first.bf16'
            checkpoint.save(first, c, 'instruct', make(c).state_dict())
            self.assertEqual(self.run_(first, out + '/one', 1e9), 0)
            self.assertEqual(self.run_(first, out + '/two', 0), 1)
            self.assertFalse(os.path.exists(out + '/two/policy.bf16'))

            # a batch whose weights were lost, and a line that was cut off

            with open(out + '/two/log.jsonl', 'a') as f:
                f.write('{"batch": 2}\n{"batch"')

            self.assertEqual(self.run_(first, out + '/two', 1e9), 0)
            one, two = (self.logged(out + '/' + x) for x in ('one', 'two'))
            self.assertEqual(one, two)
            self.assertEqual([x.get('batch') for x in one],
                             [1, None, 2, None])
            self.assertEqual([one[i]['families'] for i in (0, 2)],
                             [{'arithmetic': 0.5, 'arithmetic_story': 0.5}]
                             * 2)
            self.assertNotEqual(one[0]['loss'], one[2]['loss'])
            self.assertEqual((one[3]['task'], one[3]['noise']), (4, 8))

            self.assertTrue(filecmp.cmp(
                *(f'{out}/{x}/policy.bf16' for x in ('one', 'two')), False))
            self.assertEqual([x for x in os.listdir(out + '/two')
                              if x.startswith('part')], ['part-2.bf16'])

            other = out + '/other.bf16'
            checkpoint.save(other, c, 'instruct', make(c, 2).state_dict())
            with self.assertRaisesRegex(RunFailed, 'begins with the weights '
                                        + served.digest(first)):
                self.run_(other, out + '/two', 0)
            with self.assertRaisesRegex(RunFailed, 'of the stage arithmetic'
                                        r'\+.*would be of writing'):
                self.run_(first, out + '/two', 0, 'writing')

    def logged(self, out):
        return [{k: v for k, v in x.items() if 'second' not in k
                 and k != 'version'} for x in lines.read(out + '/log.jsonl')]

    def test_modes(self):
        """Each family of a specialist has its modes in turn."""

        options = rl.arguments(['--model', 'm', '--out', 'o', '--domain',
                                'mathematics', '--mode', 'both'])
        tasks = rl.Tasks(options, {'arithmetic': 1, 'trip': 1})
        self.assertEqual([(f, m) for f, _, m in tasks.draw(4)],
                         [('arithmetic', RETAIN), ('trip', RETAIN),
                          ('arithmetic', CHAT), ('trip', RETAIN)])

        with silent():
            for more in (['--domain', 'nothing'], ['--domain', 'proofs'],
                         ['--families', 'logic@9'],
                         ['--domain', 'logic', '--part', '0'],
                         ['--domain', 'logic', '--families', 'logic'], []):
                with self.assertRaises(SystemExit):
                    rl.arguments(['--model', 'm', '--out', 'o', *more])


if __name__ == '__main__':
    unittest.main()
