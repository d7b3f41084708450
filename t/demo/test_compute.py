# Copyright (C) The nginx-dsa authors

"""What more computation at test time brings: the clients and the tables."""

import contextlib
import copy
import io
import json
import re
import unittest
from itertools import combinations

from gold_server import GoldServer
from tasks.task import CHAT, RETAIN
from worlds import registry
from worlds.code import cage
from worlds.compute import keep, refine, run, stats, tables
from worlds.compute.__main__ import main, parse
from worlds.compute.player import Player
from worlds.compute.tries import Chat, sample


try:
    cage.check()
    no_cage = None
except cage.NoCage as e:
    no_cage = f'no isolation: {e}'


def usage(made, reasoning=0):
    return {'prompt_tokens': 1, 'completion_tokens': made,
            'completion_tokens_details': {'reasoning_tokens': reasoning}}


class Script:
    """A model that answers with these texts or (text, tokens of reasoning)
    or messages, one after another, and records the requests."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.seen = []

    def __call__(self, request):
        self.seen.append(copy.deepcopy(request))
        answer = self.answers.pop(0)
        text, reasoning = answer if isinstance(answer, tuple) else (answer, 0)
        message = text if isinstance(text, dict) else {'content': text}
        finish = message.pop('finish', 'stop')

        return {'choices': [{'message': message, 'finish_reason': finish}],
                'usage': usage(10 + reasoning, reasoning)}


def task_of(name='logic', seed='eval-1', level=1):
    return registry.families()[name].task(seed, level)


def right_answer(task):
    return next(task.turns[0].gold(CHAT)).content


class Stats(unittest.TestCase):

    def test_pass_at(self):
        """It is the share of all draws that have a right one."""

        for n in range(1, 7):
            for right in range(n + 1):
                results = [True] * right + [False] * (n - right)
                for k in range(1, n + 1):
                    draws = list(combinations(results, k))
                    self.assertAlmostEqual(
                        stats.pass_at(right, n, k),
                        sum(map(any, draws)) / len(draws))

        for bad in ((3, 2, 1), (1, 2, 3), (1, 2, 0), (-1, 2, 1)):
            with self.assertRaises(ValueError):
                stats.pass_at(*bad)

    def test_gain(self):
        """The example of Newcombe's paper: 56 of 70 and 48 of 80."""

        d, low, high = stats.gain([1] * 48 + [0] * 32, [1] * 56 + [0] * 14)
        self.assertAlmostEqual(d, 0.2)
        self.assertAlmostEqual(low, 0.0524, places=4)
        self.assertAlmostEqual(high, 0.3339, places=4)

        d, low, high = stats.gain([0] * 20, [0] * 20)
        self.assertEqual(d, 0)
        self.assertTrue(low < -0.1 and high > 0.1)

        self.assertEqual(stats.percent([1, 0]), '50.0 (9.5-90.5)')
        self.assertEqual(stats.percent([]), '')
        self.assertEqual(stats.points([], []), '')


class Refine(unittest.TestCase):

    def refined(self, *answers, cap=3, task=None):
        self.task = task or task_of()
        self.model = Script(*answers)
        return refine.refine(self.task, Chat(self.model, RETAIN, 7), cap)

    def test_perfect_score_ends(self):
        r = self.refined(right_answer(task_of()), 'All is kept. Score: 2')
        self.assertTrue(r.first.right and r.last.right)
        self.assertEqual((r.scores, r.first.tokens, r.last.tokens),
                         ([2], 10, 20))

        asked = self.model.seen[1]['messages']
        self.assertEqual(len(asked), 1)
        self.assertIn(self.task.turns[0].user, asked[0]['content'])
        self.assertIn(right_answer(self.task), asked[0]['content'])
        self.assertEqual([s['seed'] for s in self.model.seen], [7, 7])
        self.assertEqual(self.model.seen[1]['thinking'], {'type': 'enabled'})

    def test_improves(self):
        gold = right_answer(task_of())
        r = self.refined('Answer: nothing', 'Line 2 is wrong.\nScore: 1',
                         gold, '**Score:** 2')
        self.assertFalse(r.first.right)
        self.assertTrue(r.last.right)
        self.assertEqual(r.scores, [1, 2])

        sent = self.model.seen[2]['messages']
        self.assertEqual([m['role'] for m in sent],
                         ['user', 'assistant', 'user'])
        self.assertEqual(sent[1]['content'], 'Answer: nothing')
        self.assertIn('Line 2 is wrong.', sent[2]['content'])

    def test_cap(self):
        r = self.refined('a', 'Score: 0', 'b', 'Score: 0', 'c', 'no score',
                         cap=2)
        self.assertEqual((r.last.answer, r.scores), ('c', [0, 0, None]))
        self.assertEqual(self.model.answers, [])

    def test_no_answer(self):
        """Nothing is evaluated if there is no answer; a revision without an
        answer leaves the solution as it was."""

        r = self.refined({'content': 'x', 'finish': 'length'})
        self.assertEqual((r.first.answer, r.scores), (None, []))

        r = self.refined('a', 'Score: 1', {'content': 'x', 'finish':
                                           'length'}, 'Score: 2')
        self.assertEqual((r.last.answer, r.scores), ('a', [1, 2]))

    @unittest.skipIf(no_cage, no_cage)
    def test_tools(self):
        """The evaluation has what was submitted and what tools returned, and
        the last submission counts."""

        task = task_of('general_basket')
        submit = {'content': '', 'tool_calls': [{
            'id': 'c', 'type': 'function', 'function': {
                'name': 'submit_result',
                'arguments': '{"answer_text": "[1]"}'}}]}
        look = copy.deepcopy(submit)
        look['tool_calls'][0]['function'] = {'name': 'list_items',
                                             'arguments': '{}'}
        items = json.loads(task.call('list_items', '{}'))
        again = copy.deepcopy(submit)
        again['tool_calls'][0]['function']['arguments'] = \
            '{"answer_text": "[2]"}'
        r = self.refined(look, submit, 'Done.', 'Score: 0', again, 'Done.',
                         'Score: 2', task=task)
        asked = self.model.seen[3]['messages'][0]['content']
        self.assertIn('\n[1]\n', asked)
        self.assertIn(str(list(items)[0]), asked)
        self.assertEqual(r.last.submitted(), '[2]')
        self.assertIn('\n[2]\n', self.model.seen[6]['messages'][0]['content'])

        # a revision that submits nothing leaves the submission

        r = self.refined(look, submit, 'Done.', 'Score: 0', 'It is right.',
                         'Score: 2', task=task)
        self.assertEqual(r.last.submitted(), '[1]')

    def test_score(self):
        for text, want in (('Score: 2', 2), ('score 1', 1), ('**Score**: 0',
                                                             0),
                           ('Score: 0\nScore: 2', 2), ('Score: 9', None),
                           ('Score: two', None), ('', None),
                           ('Score: 22', None), ('Score: ' + '2' * 9999, None)):
            self.assertEqual(refine.score(text), want, text)


class Keep(unittest.TestCase):

    def kept(self, *answers, k=2, name='logic'):
        self.model = Script(*answers)
        n = sum(isinstance(a, tuple) for a in answers)
        chats = [Chat(self.model, RETAIN, i) for i in range(n)]
        return keep.keep(lambda: task_of(name), name, 'eval-1', 1, chats, k)

    def test_longest(self):
        gold = right_answer(task_of())
        r = self.kept((gold, 5), 'no', ('b', 9), 'no', ('c', 7), 'no')
        self.assertEqual([t.answer for t in r.kept], ['b', 'c'])
        self.assertEqual(r.solved(), 0)
        self.assertAlmostEqual(r.random(1), 1 / 3)
        self.assertAlmostEqual(r.random(2), 2 / 3)

        r = self.kept((gold, 8), 'no', ('b', 9), 'no', ('c', 7), 'no')
        self.assertEqual(r.solved(), 1)
        self.assertEqual(r.tokens, 3 * 20 + 8 + 9 + 7)

        # the question about a refusal is not a thought of the sample

        self.assertEqual({s['thinking']['type'] for s in self.model.seen[1::2]
                          }, {'disabled'})

    @unittest.skipIf(no_cage, no_cage)
    def test_filters(self):
        gold = right_answer(task_of())
        r = self.kept(({'content': gold, 'finish': 'length'}, 99),
                      ('I cannot.', 50), 'Yes, it does.', (gold, 1), 'No.')
        self.assertEqual(r.removed, {'cut off': 1, 'refusal': 1})
        self.assertEqual(r.solved(), 1)
        self.assertAlmostEqual(r.random(1), 1 / 3)
        self.assertAlmostEqual(r.random(2, 'valid'), 1)

        # all are removed

        r = self.kept(('I cannot.', 5), 'yes')
        self.assertEqual((r.solved(), r.random(2, 'valid')), (0, 0))

        r = self.kept(('Done.', 5), name='general_basket')
        self.assertEqual(r.removed, {'no submission': 1})

    def test_no_filter_reads_the_verdict(self):
        task = task_of()
        chat = Chat(Script('no', 'no'), RETAIN, 1)
        one = sample(task, Chat(Script('x'), RETAIN, 1))
        before = keep.invalid(task, 'logic', 'eval-1', 1, one, chat)
        one.why = None
        self.assertEqual(keep.invalid(task, 'logic', 'eval-1', 1, one, chat),
                         before)


class Runs(unittest.TestCase):

    def options(self, *args):
        return parse([*args])

    def test_deadline(self):
        """Nothing begins after it; what began is finished."""

        o = self.options('modes', '--minutes', '0')
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(run.run(o, [('logic', 1)], lambda job: 1), [])
        self.assertRegex(err.getvalue(), '^0 of 1 tasks in 0 s; 0 more')

        # one at a time: the first task moves the deadline into the past

        o = self.options('modes', '--minutes', '5', '--concurrency', '1')
        done = []

        def work(job):
            done.append(job.seed)
            clock[0] += 400
            return True

        clock = [0]
        real, run.time.monotonic = run.time.monotonic, lambda: clock[0]
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                run.run(o, [('logic', n) for n in range(5)], work)
        finally:
            run.time.monotonic = real

        self.assertEqual(done, ['eval-0'])

    def test_late(self):
        """What is not finished after half of the time more is left out, and
        counted."""

        o = self.options('modes', '--minutes', '1', '--concurrency', '1')
        clock = [0]

        def work(job):
            for seconds in {'eval-0': (50, 39), 'eval-1': (50, 41)}[job.seed]:
                job.ask({'messages': [{'role': 'user', 'content': 'x'}],
                         'thinking': {'type': 'disabled'}, 'seed': 1})
                clock[0] += seconds
            job.ask({'messages': [{'role': 'user', 'content': 'x'}],
                     'thinking': {'type': 'disabled'}, 'seed': 1})
            return True

        real, run.time.monotonic = run.time.monotonic, lambda: clock[0]
        try:
            for n, left in ((0, 1), (1, 0)):
                clock[0] = 0
                with contextlib.redirect_stderr(io.StringIO()) as err:
                    self.assertEqual(len(run.run(o, [('logic', n)], work)),
                                     left)
                self.assertRegex(err.getvalue(), f'{1 - left} more had begun')
        finally:
            run.time.monotonic = real

    def test_order(self):
        o = self.options('modes', '--tasks', '2')
        self.assertEqual(run.in_rounds(['a', 'b'], o),
                         [('a', 1000000), ('b', 1000000), ('a', 1000001),
                          ('b', 1000001)])

        held = tables.held_out(self.options('pass'))
        self.assertEqual(len(held), 50)
        self.assertGreater(len({n for n, _ in held}), 30)
        self.assertTrue(all(n.startswith('general_') for n, _ in held))
        self.assertEqual(held, tables.held_out(self.options('pass')))

    def command(self, *args):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(list(args))
        return status, out.getvalue(), err.getvalue()

    def test_served_model(self):
        """Any server of the API; thinking and not."""

        tasks = [task_of('logic', f'eval-{1000000 + n}') for n in range(2)]

        def find(request):
            user = request['messages'][-1]['content']
            return next(t for t in tasks if t.turns[0].user == user)

        def spoil(request, message):
            if request['thinking']['type'] == 'disabled':
                message['content'] = 'Answer: nothing'
            return message

        with GoldServer(find, RETAIN, spoil) as server:
            status, out, _ = self.command(
                'modes', '--url', server.url, '--families', 'logic',
                '--tasks', '2')
            self.assertEqual(status, 0)
            self.assertIn('| logic | 2 | 0.0 (0.0-65.8) | 100.0 (34.2-100.0) '
                          '| +100.0 (', out)
            keys = {key for key, _ in server.seen}
            self.assertEqual(len(keys), 2)
            self.assertEqual({r['model'] for _, r in server.seen}, {'gold'})

        status, out, err = self.command('modes', '--url', server.url,
                                        '--families', 'logic')
        self.assertEqual((status, out), (1, ''))
        self.assertRegex(err, 'ConnectionRefused')

    @unittest.skipIf(no_cage, no_cage)
    def test_commands(self):
        """A program plays the model."""

        status, out, _ = self.command(
            'keep', '--families', 'writing,logic@2', '--tasks', '3')
        self.assertEqual(status, 0)
        self.assertRegex(out, r'(?m)^\| writing \| 3 \|')
        self.assertRegex(out, r'(?m)^\| logic@2 \| 3 \|')
        self.assertRegex(out, r'(?m)^\| \*\*all\*\* \| 6 \|')
        self.assertRegex(out, r'of 48 samples the filters removed: 0 cut off')

        status, out, _ = self.command(
            'modes', '--families', 'chat,logic', '--tasks', '6')
        self.assertEqual(status, 0)
        self.assertRegex(out, r'(?m)^\| chat \| 6 \| (?!0\.0)')

        status, out, _ = self.command(
            'refine', '--families', 'writing', '--tasks', '8')
        self.assertRegex(out, r'(?m)^\| \*\*all\*\* \| 8 \|')

        status, out, _ = self.command('pass', '--tasks', '2', '--samples',
                                      '2', '--modes', 'chat')
        self.assertEqual(status, 0)
        self.assertEqual(re.findall(r'(?m)^\| (\d) \|', out), ['1', '2'])

    def test_gains_of_the_program(self):
        """The program improves with both, as it was made to."""

        o = self.options('refine', '--tasks', '40', '--families', 'writing')
        o.families = ['writing']

        def work(job):
            return refine.refine(job.make(), Chat(job.ask, RETAIN,
                                                  job.number), 3)

        with contextlib.redirect_stderr(io.StringIO()):
            done = run.run(o, run.in_rounds(o.families, o), work)
        first, last = (sum(getattr(r, x).right for _, r in done)
                       for x in ('first', 'last'))
        self.assertGreater(last, first)
        self.assertTrue(any(len(r.scores) > 1 for _, r in done))

    @unittest.skipIf(no_cage, no_cage)
    def test_player_is_fair(self):
        """Its right solutions pass the verifier, and its wrong ones do
        not."""

        for name in ('writing', 'logic', 'general_basket', 'general_trip',
                     'trip_short'):
            make = lambda name=name: task_of(name)     # noqa: E731
            player = Player((name, 'eval-1', 1), make)
            player.skill = 0.5
            seen = set()
            for seed in range(12):
                one = sample(make(), Chat(player.chat, RETAIN, seed))
                right = player.right(seed, 0, True)
                self.assertEqual(one.right, right, (name, seed, one.why))
                seen.add(right)
            self.assertEqual(seen, {True, False})

    def test_refused(self):
        for args in (['keep', '--modes', 'chat,retain'],
                     ['modes', '--modes', 'loud'],
                     ['keep', '--samples', '2', '--keep', '3'],
                     ['pass', '--tasks', '0'], ['think']):
            with contextlib.redirect_stderr(io.StringIO()), \
                    self.assertRaises(SystemExit):
                parse(args)

        for args, why in ((['modes', '--families', 'nothing'],
                           'no such family: nothing'),
                          (['modes', '--families', 'logic@9'],
                           'logic has the levels 1 to 5, not 9'),
                          (['keep', '--families', 'chat'],
                           'chat has tasks of several turns')):
            status, out, err = self.command(*args)
            self.assertEqual((status, out), (1, ''))
            self.assertRegex(err, why)


if __name__ == '__main__':
    unittest.main()
