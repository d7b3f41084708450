# Copyright (C) The nginx-dsa authors

"""Mixed reinforcement learning: rewards, plans with their proportions, the
stages of a run, and what families lose."""

import contextlib
import filecmp
import io
import json
import os
import random
import tempfile
import unittest
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace
from unittest import mock

from models import ROOT, make, needs_torch, tiny
from tasks.task import CHAT, RETAIN, play
from train import forgetting, plan, rewards
from train.judge import Verdict
from train.rubric import rubric_of
from worlds.form import Refused
from worlds.registry import task_of

try:
    import numpy
    import torch
    from eval.client import RunFailed
    from train import checkpoint, rl, rollout
except ImportError:
    torch = None


MIXED = os.path.join(ROOT, 'demo/train/mixed.json')
TOKENIZER = os.path.join(ROOT, 'demo/model/tokenizer.json')


def talked(text, reasoning='', right=1.0, tokens=10, cut=0, family='talk'):
    return SimpleNamespace(
        family=family, seed='rl-1', reward=right, tokens=tokens, cut=cut,
        written=[{'content': text, 'reasoning_content': reasoning}])


class Scores:
    """A judge with a verdict, which keeps what it is given."""

    def __init__(self, verdict):
        self.given, self.made = [], verdict

    def verdict(self, conversation, criteria):
        self.given.append((conversation, criteria))

        return self.made(criteria)

    def check(self):
        pass


class Rewards(unittest.TestCase):

    def test_length(self):
        """Beside a loop that adds the penalty token by token."""

        rng = random.Random(1)

        for _ in range(200):
            n, limit = rng.randrange(0, 3000), rng.randrange(1, 2000)
            strength, total = rng.random(), 0.0

            for token in range(n):
                if token < limit:
                    total += strength / limit

            got = rewards.length(n, strength, limit)
            self.assertAlmostEqual(got, total, 9)
            self.assertLessEqual(got, strength)

    def test_language(self):
        for asked, text, want in (
                ('What is it?', 'It is 5.', 1), ('What?', '', 1),
                ('What?', '5 + 5 = 10!', 1), ('12?', '\u5341', 1),
                ('What?', 'It\u662f', Fraction(2, 3)),
                ('What?', '\u662f\u7684', 0),
                ('12\u52a030\u662f?', 'It is \u56db\u5341\u4e8c',
                 Fraction(3, 7)),
                ('\u0427\u0442\u043e \u044d\u0442\u043e? OK',
                 '\u0414\u0430, ok', Fraction(2, 4)),
                ('Caf\u00e9?', 'na\u00efve', 1)):
            self.assertEqual(rewards.language(asked, text), float(want), text)

    def test_by_rules(self):
        task = task_of('talk', 'rl-1')
        d = plan.Domain({'talk': 1}, length=0.5, tokens=100, language=0.3)
        made = talked('yes', '\u662f', right=1.0, tokens=40)

        for mode, off, want in (
                (RETAIN, (), 1 - 0.2 + 0.3 * 3 / 4),
                (CHAT, (), 1 - 0.2 + 0.3),
                (RETAIN, ('length_penalty',), 1 + 0.3 * 3 / 4),
                (RETAIN, ('language',), 1 - 0.2),
                (RETAIN, ('language', 'length_penalty'), 1)):
            r = rewards.reward(d, task, made, mode, off=off)
            self.assertAlmostEqual(r.total, want)
            self.assertAlmostEqual(r.outcome - r.length + r.language, want)
            self.assertFalse(r.judged)

        wrong = rewards.reward(d, task, talked('yes', right=0.0, tokens=900),
                               RETAIN)
        self.assertAlmostEqual(wrong.total, 0 - 0.5 + 0.3)

    def test_by_rubric(self):
        """The verifier does not count, nor does the judge if there is no
        answer or no rubric."""

        task = task_of('talk', 'rl-1')
        d = plan.Domain({'talk': 1}, rubric=True)
        judge = Scores(lambda criteria: Verdict(
            {c.name: 1 for c in criteria}))

        r = rewards.reward(d, task, talked('yes', right=0.0), RETAIN, judge)
        self.assertEqual((r.total, r.judged, r.why), (0.5, True, None))
        self.assertEqual(judge.given, [([(task.turns[0].user, 'yes')],
                                        rubric_of('talk', 'rl-1'))])

        for none in (talked('yes', cut=1), talked(''), talked(None),
                     SimpleNamespace(**{**vars(talked('a')), 'written': []})):
            r = rewards.reward(d, task, none, RETAIN, judge)
            self.assertEqual((r.total, r.judged), (0, False))

        r = rewards.reward(d, task, talked('yes'), RETAIN, judge, ('rubric',))
        self.assertEqual((r.total, r.judged), (1, False))
        self.assertEqual(len(judge.given), 1)

    def test_no_verdict(self):
        """It is no reward, and is counted with its reason."""

        d = plan.Domain({'talk': 1}, rubric=True)
        p = plan.Plan({'general': d}, [])
        whys = iter(['late', None, 'late', 'refused', None])

        def verdict(criteria):
            why = next(whys)
            return Verdict(None, why) if why else Verdict(
                {c.name: 2 for c in criteria})

        groups = [[talked('a', right=0.0) for _ in range(3)],
                  [talked('b'), talked('b'), talked('', tokens=60)]]
        found = rewards.settle(groups, p, task_of, RETAIN, Scores(verdict),
                               (), 1)
        self.assertEqual([[r.total for r in row] for row in found],
                         [[None, 1, None], [None, 1, 0]])

        figures = rewards.figures(p, groups, found)
        self.assertEqual(figures['judged'], 5)
        self.assertEqual(figures['no_verdict'], {'late': 2, 'refused': 1})
        self.assertAlmostEqual(figures['total'], 2 / 3)
        self.assertEqual(figures['domains'], {'general': {
            'reward': figures['total'], 'tokens': 110 / 6}})

    def test_rubrics(self):
        """Each prompt has its own, and the gold answer is in that of talk."""

        for family in ('talk', 'writing', 'writing@3'):
            found = [rubric_of(family, f'rl-{n}') for n in range(20)]
            self.assertGreater(len({str(c) for c in found}), 10)

            for n, criteria in enumerate(found):
                names = [c.name for c in criteria]
                self.assertEqual(len(set(names)), len(names))
                self.assertTrue(criteria[0].decides)

        gold = play(task_of('talk', 'rl-1'), CHAT)[-1]['content']
        self.assertIn(gold, rubric_of('talk', 'rl-1')[0].text)
        self.assertEqual(sum(c.decides for c in
                             rubric_of('writing@3', 'rl-1')), 4)

        with self.assertRaisesRegex(Refused, 'without tools'):
            rubric_of('tools_single', 'rl-1')


class Plans(unittest.TestCase):

    def test_proportions(self):
        """After a multiple of the weights' sum the counts are the weights';
        before, each is less than one and a half away."""

        for weights in ({'a': 1}, {'a': 1, 'b': 1, 'c': 1},
                        {'a': 4, 'b': 1, 'c': 7}, {'a': 100, 'b': 3},
                        plan.load(MIXED, 'mixed').weights(
                            plan.load(MIXED, 'mixed').stages[0])):
            whole = sum(weights.values())
            mixture, counts = plan.Mixture(weights), Counter()

            for n in range(1, 3 * whole + 1):
                counts[mixture.draw()] += 1

                for f, w in weights.items():
                    self.assertLess(abs(counts[f] - n * w / whole), 1.5)

                if n % whole == 0:
                    self.assertEqual(counts, {f: w * n // whole
                                              for f, w in weights.items()})

        turns = plan.Mixture({'a': 1, 'b': 1})
        self.assertEqual([turns.draw() for _ in range(4)], list('abab'))

    def test_orders(self):
        """Both orders of the plan that is here have the same tasks."""

        drawn = {}

        for order in ('mixed', 'one_by_one'):
            p, n = plan.load(MIXED, order), Counter()

            for stage in p.stages:
                mixture = plan.Mixture(p.weights(stage))
                n.update(mixture.draw() for _ in range(16 * stage.batches))

            drawn[order] = n
            self.assertEqual(set(p.names), set(n))
            self.assertEqual(sum(s.batches for s in p.stages), 48)
            self.assertEqual(p.of('talk').rubric, True)
            self.assertEqual(p.of('arithmetic').beta, 0)

            for family in n:
                task_of(family, 'rl-1')

        self.assertEqual(drawn['mixed'], drawn['one_by_one'])

    def test_wrong(self):
        with open(MIXED) as f:
            good = json.load(f)

        def spoiled(*path, value=None):
            x = json.loads(json.dumps(good))
            at = x
            for key in path[:-1]:
                at = at[key]
            if value is None:
                del at[path[-1]]
            else:
                at[path[-1]] = value
            return x

        one, talk = ('orders', 'one_by_one'), ('domains', 'alignment')

        for x, want in (
                (spoiled('orders'), 'orders is missing'),
                (spoiled('more', value=1), 'more is unknown'),
                ([], 'expected an object'),
                (spoiled(*talk, 'families', 'talk', value=0), 'from 1'),
                (spoiled(*talk, 'families', 'talk', value=1.5), 'type'),
                (spoiled(*talk, 'families', 'talk', value=True), 'type'),
                (spoiled(*talk, 'families', 'lookup', value=1), 'in two'),
                (spoiled(*talk, 'families', value={}), 'from 1'),
                (spoiled(*talk, 'families', 'talk', value=4), 'unlike'),
                (spoiled(*talk, 'beta', value=-1), 'beta is -1'),
                (spoiled(*talk, 'beta', value=float('nan')), 'beta is nan'),
                (spoiled(*talk, 'tokens', value=0), 'tokens is 0'),
                (spoiled(*talk, 'rubric', value=1), 'rubric is of another'),
                (spoiled(*one, 0, 'batches', value=25), '49 batches'),
                (spoiled(*one, 0, 'batches', value=0), 'at least one'),
                (spoiled(*one, 0, 'domains', value=['x']), 'not names'),
                (spoiled(*one, 0, 'domains', value=[['x']]), 'not names'),
                (spoiled(*one, 0, 'domains', value=[]), 'not names'),
                (spoiled(*one, 0), 'has no stage'),
                (spoiled(*one, value=[]), 'a list of stages')):
            with tempfile.NamedTemporaryFile('w') as f:
                json.dump(x, f)
                f.flush()
                with self.assertRaisesRegex(plan.BadPlan, want):
                    plan.load(f.name, 'mixed')

        with self.assertRaisesRegex(plan.BadPlan, 'the order x is not'):
            plan.load(MIXED, 'x')
        with self.assertRaises(plan.BadPlan):
            plan.load(MIXED + '.none', 'mixed')


SMALL = {
    'domains': {
        'reasoning': {'families': {'arithmetic': 3, 'lookup': 1}, 'beta': 0.5,
                      'length': 0.25, 'tokens': 10},
        'alignment': {'families': {'talk': 4}, 'beta': 0.01, 'rubric': True}},
    'orders': {
        'mixed': [{'domains': ['reasoning', 'alignment'], 'batches': 4}],
        'one_by_one': [{'domains': ['reasoning'], 'batches': 2},
                       {'domains': ['alignment'], 'batches': 2}]}}


class FakeServer:
    """In the place of train.server.Server: versions, without programs."""

    def __init__(self, *args, **options):
        self.url, self.model, self.version = 'http://127.0.0.1:9', 'p', 0

    def start(self):
        self.version = 1

    def replace(self, path):
        self.version += 1
        return 0.0

    def stop(self):
        pass


@needs_torch
class Stages(unittest.TestCase):
    """A run of a tiny policy without a server: its conversations are made
    here, and its updates are those of train.rl."""

    failing = None

    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)

    def sequence(self, rng, n):
        config = tiny()
        s = rollout.Sequence([rng.randrange(24) for _ in range(3 + n)],
                             [False] * 3 + [True] * n,
                             [-3.0 - rng.random() for _ in range(n)],
                             [None] * n)
        layers = config['num_hidden_layers'] - config['first_k_dense_replace']
        s.experts = numpy.array(
            [[rng.sample(range(config['n_routed_experts']),
                         config['num_experts_per_tok'])
              for _ in range(layers)] for _ in range(3 + n)])

        return s

    def rollouts(self, tasks, make, sampling, group, *_):
        """Of each group the first half is right.  The call that is to fail
        ends the run."""

        if len(self.drawn) == self.failing:
            raise RunFailed('as it was to')

        self.drawn.append([f for f, _ in tasks])
        found = []

        for family, seed in tasks:
            self.assertEqual(make(family, seed).family, family)
            self.seeds.append(seed)
            rng = random.Random(seed)
            found.append([rollout.Trajectory(
                family, seed, float(2 * i < group),
                sequences=[self.sequence(rng, 2 + i)],
                versions={self.server.version}, requests=1,
                written=[{'content': f'{seed} {i}'}]) for i in range(group)])

        return found, 1.0

    def run_one(self, order, out, judge, *more):
        self.drawn, self.seeds = [], []
        self.server = FakeServer()
        torch.manual_seed(1)
        path = os.path.join(out, 'first.bf16')
        checkpoint.save(path, tiny(), 'tune', make(tiny()).state_dict())

        with open(os.path.join(out, 'plan'), 'w') as f:
            json.dump(SMALL, f)

        with open(os.path.join(out, 'judge'), 'w') as f:
            json.dump({'url': 'http://127.0.0.1:9/v1', 'model': 'm',
                       'timeout': 1, 'families': {'talk': {'kappa': 0.9}}}, f)

        options = rl.arguments([
            '--model', path, '--tokenizer', TOKENIZER, '--out', out, '--plan',
            f.name[:-5] + 'plan', '--order', order, '--judge', f.name,
            '--tasks', '4', '--group', '4', '--rate', '1e-2', *more])
        self.assertEqual(options.judge.url, 'http://127.0.0.1:9/v1')
        options.judge = judge
        run = rl.Run(options)
        self.updated = []
        original = rl.Learner.step

        def step(learner, prepared):
            self.updated.append([(t, float(a), float(b)) for p in prepared
                                 for t, a, b in zip(p.of, p.batch.advantage,
                                                    p.batch.beta)])
            return original(learner, prepared)

        with mock.patch.object(rl, 'Server', lambda *a, **k: self.server), \
                mock.patch.object(rl, 'export', lambda *a: None), \
                mock.patch.object(rl.Clients, 'rollouts',
                                  lambda _, *args: self.rollouts(*args)), \
                mock.patch.object(rl.Learner, 'step', step), \
                contextlib.redirect_stdout(io.StringIO()):
            run.run()

        with open(os.path.join(out, 'log.jsonl')) as f:
            return [json.loads(line) for line in f]

    def full(self):
        return Scores(lambda criteria: Verdict({c.name: 2 for c in criteria}))

    def test_one_by_one(self):
        judge = self.full()

        with tempfile.TemporaryDirectory() as out:
            log = self.run_one('one_by_one', out, judge, '--eval', '3',
                               '--off', 'keep_routing')

            with open(out + '/answers-2.jsonl') as f:
                kept = [json.loads(line) for line in f]

            self.assertFalse(os.path.exists(out + '/answers-3.jsonl'))

        # at the end of a stage the server gets what its checkpoint has

        batches = [x for x in log if 'batch' in x]
        self.assertEqual([(x['batch'], x['stage'], x['version'])
                          for x in batches],
                         [(1, 'reasoning', 1), (2, 'reasoning', 2),
                          (3, 'alignment', 4), (4, 'alignment', 5)])

        # measurements of all families, the same each time, between stages;
        # each batch draws by weights, and no task is there twice

        measured = ['arithmetic', 'lookup', 'talk'] * 3
        self.assertEqual([d for d in self.drawn if len(d) == 9],
                         [measured] * 3)
        self.assertEqual([i for i, d in enumerate(self.drawn) if len(d) == 9],
                         [0, 3, 6])
        self.assertEqual([Counter(d) for d in self.drawn if len(d) == 4],
                         [{'arithmetic': 3, 'lookup': 1}] * 2
                         + [{'talk': 4}] * 2)
        names = [s for s in self.seeds if s.startswith('rl-')]
        self.assertEqual(len(set(names)), 16)
        self.assertEqual([len(set(s for s in self.seeds
                                  if s.startswith('eval-')))], [9])
        self.assertEqual(
            [(x['family'], x['seed'], x['written']) for x in kept],
            [(f, s, [{'content': f'{s} 0'}])
             for f, s in zip(measured, self.seeds[-9:])])

        # a stage begins with itself as the reference; the routes here are
        # random, and the reference has its own

        self.assertEqual([x['domains'][x['stage']]['kl'] == 0
                          for x in batches], [True, False, True, False])

        # strengths of the domains; the rubric's judge scores talk only

        self.assertEqual({(t.family, round(b, 4)) for step in self.updated
                          for t, _, b in step},
                         {('arithmetic', 0.5), ('lookup', 0.5),
                          ('talk', 0.01)})
        self.assertEqual(len(judge.given), 2 * 4 * 4)
        self.assertEqual([x['judged'] for x in batches], [0, 0, 16, 16])

        table = forgetting.table(forgetting.read(map(json.dumps, log)))
        self.assertEqual(table[0], '| family | before | after reasoning | '
                                   'after alignment | last - best before |')
        self.assertEqual(len(table), 5)

    def test_continued(self):
        """A run that was ended has the tasks, the weights and the reference
        that it would have had, in its first stage and in its second."""

        def run(out):
            log = self.run_one('one_by_one', out, self.full(), '--part', '1',
                               '--eval', '1', '--tasks', '3')

            return [{k: v for k, v in x.items() if 'second' not in k
                     and k != 'version'} for x in log]

        with tempfile.TemporaryDirectory() as one:
            whole = run(one)

            # each measurement and each batch is a call

            for failing, left in ((2, 5), (3, 4), (5, 2), (6, 1)):
                with tempfile.TemporaryDirectory() as two:
                    self.failing = failing
                    with self.assertRaisesRegex(RunFailed, 'as it was to'):
                        run(two)
                    self.assertFalse(os.path.exists(two + '/policy.bf16'))

                    self.failing = None
                    log = run(two)
                    self.assertEqual(len(self.drawn), left)
                    self.assertTrue(filecmp.cmp(one + '/policy.bf16',
                                                two + '/policy.bf16', False))
                    self.assertEqual(
                        sorted(f for f in os.listdir(two)
                               if f.startswith(('part', 'answers'))),
                        ['answers-0.jsonl', 'answers-1.jsonl',
                         'answers-2.jsonl', 'part-4.bf16'])

                # only the whole run has the pairs of its measurements

                self.assertEqual([x for x in whole if 'paired' not in x], log)

    def test_rewards_and_domains(self):
        """Advantages are those of the rewards with their penalties, and the
        figures of domains are those of their trajectories."""

        with tempfile.TemporaryDirectory() as out:
            log = self.run_one('mixed', out, self.full())

        batches = [x for x in log if 'batch' in x]
        self.assertEqual(len(batches), 4)
        self.assertEqual(Counter(f for d in self.drawn for f in d),
                         {'arithmetic': 6, 'lookup': 2, 'talk': 8})

        # lengths 2 to 5 of 10 tokens cost 0.05 to 0.125; all are full for talk

        penalties = [0.25 * n / 10 for n in (2, 3, 4, 5)]
        totals = [1 - penalties[0], 1 - penalties[1], -penalties[2],
                  -penalties[3]]
        want = [x - sum(totals) / 4 for x in totals]

        for t, a, _ in (x for step in self.updated for x in step):
            self.assertAlmostEqual(a, 0 if t.family == 'talk'
                                   else want[t.tokens - 2], 6)

        for i, line in enumerate(batches):
            mine = [t for step in self.updated[4 * i:4 * i + 4]
                    for t, _, _ in step]
            self.assertEqual(len(mine), 16)
            self.assertEqual(set(line['domains']),
                             {'reasoning', 'alignment'})

            for name, d in line['domains'].items():
                some = [t for t in mine
                        if (t.family == 'talk') == (name == 'alignment')]
                self.assertAlmostEqual(d['reward'], 1 if name == 'alignment'
                                       else sum(totals) / 4)
                self.assertAlmostEqual(d['tokens'], 3.5)
                for key in ('kl', 'entropy'):
                    self.assertAlmostEqual(d[key], sum(
                        getattr(t, key) for t in some) / len(some), 4)

            self.assertGreater(line['domains']['reasoning']['entropy'], 0)

    def test_no_verdict(self):
        """What has none is not in an update, the others of its group are
        compared among themselves; if most have none, the run ends."""

        n = iter(range(1000))
        judge = Scores(lambda criteria: Verdict(None, 'late')
                       if next(n) % 4 == 0
                       else Verdict({c.name: 2 for c in criteria}))

        with tempfile.TemporaryDirectory() as out:
            log = self.run_one('mixed', out, judge)

        batches = [x for x in log if 'batch' in x]
        self.assertEqual([x['no_verdict'] for x in batches],
                         [{'late': 2}] * 4)
        self.assertEqual([len(sum(self.updated[4 * i:4 * i + 4], []))
                          for i in range(4)], [14] * 4)

        with tempfile.TemporaryDirectory() as out:
            with self.assertRaisesRegex(RunFailed, "{'late': 8} of 8 no"):
                self.run_one('mixed', out, Scores(
                    lambda criteria: Verdict(None, 'late')))
            with open(out + '/log.jsonl') as f:
                self.assertEqual(json.loads(f.read())['no_verdict'],
                                 {'late': 8})


@needs_torch
class Options(unittest.TestCase):

    def refused(self, *args):
        err = io.StringIO()
        with contextlib.redirect_stderr(err), self.assertRaises(SystemExit):
            rl.arguments(['--model', 'm', '--out', 'o', *args])

        return err.getvalue()

    def test_judge(self):
        """Rubrics need a judge that was measured to agree, or to be off."""

        run = ('--plan', MIXED, '--order', 'mixed')
        self.assertIn('--judge is missing', self.refused(*run))
        self.assertIn('not a file', self.refused(*run, '--judge', '/none'))
        self.assertIsNone(rl.arguments(['--model', 'm', '--out', 'o', *run,
                                        '--off', 'rubric']).judge)

        with tempfile.NamedTemporaryFile('w') as f:
            json.dump({'url': 'http://a/v1', 'model': 'm', 'timeout': 1,
                       'families': {'talk': {'kappa': 0.9},
                                    'writing': {'kappa': 0.79}}}, f)
            f.flush()
            self.assertIn('kappa on writing is 0.79',
                          self.refused(*run, '--judge', f.name))

    def test_plan(self):
        run = ('--plan', MIXED, '--off', 'rubric')
        self.assertIn('the order None is not', self.refused(*run))
        self.assertIn('either', self.refused(*run, '--families', 'talk'))
        self.assertIn('either', self.refused())
        self.assertIn('neither', self.refused(*run, '--order', 'mixed',
                                              '--seconds', '5'))

    def test_mode(self):
        """A family without tasks in the mode ends the run, not the program's
        patience."""

        options = rl.arguments(['--model', 'm', '--out', 'o', '--families',
                                'talk'])
        options.mode = 'none'
        with self.assertRaisesRegex(RunFailed, 'talk has no task in the mode'):
            rl.Tasks(options, {'talk': 1}).draw(1)


class Forgetting(unittest.TestCase):

    def test_table(self):
        log = [{'batch': 1}] + [
            {'eval': when, 'stage': stage, 'right': {
                'a': [a, 10], 'b': [b, 20]}}
            for when, stage, a, b in (('before', 'x', 2, 10),
                                      ('after', 'x', 9, 8),
                                      ('after', 'y', 6, 16))]
        head, _, a, b = forgetting.table(forgetting.read(
            map(json.dumps, log)))
        self.assertEqual(head, '| family | before | after x | after y | '
                               'last - best before |')
        self.assertEqual([c.split(' ')[0] for c in a[2:-2].split(' | ')],
                         ['a', '20.0', '90.0', '60.0', '-30.0'])
        self.assertEqual([c.split(' ')[0] for c in b[2:-2].split(' | ')],
                         ['b', '50.0', '40.0', '80.0', '+30.0'])

        with tempfile.NamedTemporaryFile('w') as f:
            f.writelines(json.dumps(x) + '\n' for x in log[:2])
            f.flush()
            err = io.StringIO()
            with contextlib.redirect_stderr(err):
                self.assertEqual(forgetting.main([f.name]), 1)
                self.assertEqual(forgetting.main([]), 2)
            self.assertIn('1 measurements', err.getvalue())


if __name__ == '__main__':
    unittest.main()
