# Copyright (C) The nginx-dsa authors

"""Runs demo/eval with a server that plays the gold policy and makes known
errors, which must be counted exactly."""

import contextlib
import dataclasses
import io
import itertools
import json
import os
import socket
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', '..', 'demo')]

from eval import run, table                                     # noqa: E402
from gold_server import GoldServer, Refusal                     # noqa: E402
from tasks import mix                                           # noqa: E402
from tasks.task import (CHAT, DISCARD, RETAIN, Step, Task, Tool,  # noqa: E402
                        Turn, function)


ADD = Tool(function('add', 'Adds.', a='integer', b='integer'),
           lambda args: args['a'] + args['b'])

FIRST = run.SEEDS_A_RUN     # the first task number of --seed 1


def last_word(wanted):
    """Returns a check: the answer's last word must be this one."""

    return lambda answer, calls: None \
        if answer.rstrip('.').split()[-1:] == [str(wanted)] \
        else f'{wanted} is right'


def sums(seed):
    """A task of two turns, with two calls and with one."""

    def first(mode):
        (n,) = yield Step('two steps', '', [('add', {'a': 1, 'b': 2})])
        (n,) = yield Step('one step', '', [('add', {'a': n, 'b': seed})])
        yield Step('done', f'It is {n}.')

    def second(mode):
        (n,) = yield Step('again', '', [('add', {'a': seed, 'b': seed})])
        yield Step('', f'That is {n}.')

    return Task('sums', 'multi', [
        Turn(f'Add 1, 2 and {seed}.', last_word(3 + seed), first),
        Turn('And twice that number?', last_word(2 * seed), second),
    ], modes=(RETAIN, DISCARD), system='You add.', tools={'add': ADD})


def echo(seed):
    """A task without tools; only even seeds have the mode without thinking."""

    def gold(mode):
        yield Step('' if mode == CHAT else 'easy', f'You said {seed}.')

    return Task('echo', 'talk', [Turn(f'Say {seed}.', last_word(seed), gold)],
                modes=(RETAIN, CHAT) if seed % 2 == 0 else (RETAIN,))


def task_of(family, seed):
    number = int(seed.removeprefix('eval-'))
    return {'sums': sums, 'echo': echo}[family](number)


def find(request):
    family = 'sums' if 'tools' in request else 'echo'
    return task_of(family, f'eval-{request["seed"]}')


def number(request):
    """Returns the number of the task that a request belongs to."""

    return request['seed'] - FIRST


def turn_of(request):
    return sum(m['role'] == 'user' for m in request['messages'])


def arguments(message, text):
    message['tool_calls'][0]['function']['arguments'] = text
    return message


def evaluate(url, *args, known=('sums', 'echo'), task_of=task_of):
    """Returns the exit status, the output file (None: not written), and
    stderr."""

    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, 'out.json')

        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            rc = run.main(['--url', url, '--out', out, *args], known,
                          task_of)

        if not os.path.exists(out):
            return rc, None, stderr.getvalue()

        with open(out) as f:
            return rc, json.load(f), stderr.getvalue()


class TestRun(unittest.TestCase):

    def results(self, server, *args):
        rc, written, stderr = evaluate(server.url, *args)
        self.assertEqual(rc, 0, stderr)
        return written['results']

    def test_gold(self):
        for mode, n in (RETAIN, 16), (DISCARD, 8), (CHAT, 4):
            with self.subTest(mode), GoldServer(find, mode) as server:
                rs = self.results(server, '--mode', mode, '--tasks', '8')
                self.assertEqual(len(rs), n)
                self.assertEqual([r['why'] for r in rs], [None] * n)
                self.assertTrue(all(r['right'] for r in rs))

    def test_output_file(self):
        with GoldServer(find, RETAIN) as server:
            rc, written, stderr = evaluate(
                server.url, '--tasks', '3', '--seed', '1', '--name', 'one',
                '--families', 'sums', '--concurrency', '2')

        self.assertEqual(stderr, 'sums: 3 of 3 right\n')

        results = written.pop('results')
        self.assertEqual(written, {
            'name': 'one', 'model': 'gold', 'mode': 'retain', 'seed': 1,
            'tasks': 3, 'temperature': 0, 'max_tokens': 2048,
            'concurrency': 2})
        self.assertEqual([r['seed'] for r in results],
                         [f'eval-{FIRST + i}' for i in range(3)])

        r = results[0]
        self.assertGreater(r.pop('seconds'), 0)
        self.assertEqual(r, {
            'family': 'sums', 'kind': 'multi', 'seed': f'eval-{FIRST}',
            'right': True, 'why': None, 'rounds': 5, 'calls': 3, 'parsed': 3,
            'prompt_tokens': 500, 'cached_tokens': 320,
            'completion_tokens': 50, 'reasoning_tokens': 20,
            'accepted_tokens': 15,
            'finish': ['tool_calls', 'tool_calls', 'stop', 'tool_calls',
                       'stop']})

    def test_seeds(self):
        with GoldServer(find, RETAIN) as server:
            sets = [{r['seed'] for r in self.results(
                server, '--tasks', '5', '--families', 'echo', '--seed', s)}
                for s in ('1', '2', '3')]

        self.assertEqual(len(set.union(*sets)), 15)

    def test_requests(self):
        with GoldServer(find, RETAIN) as server:
            self.results(server, '--tasks', '1', '--families', 'sums',
                         '--max-tokens', '99', '--temperature', '0.5')
            seen = [request for _, request in server.seen]

        self.assertEqual(len(seen), 5)

        for request in seen:
            self.assertEqual(request['model'], 'gold')
            self.assertEqual(request['max_tokens'], 99)
            self.assertEqual(request['temperature'], 0.5)
            self.assertEqual(request['seed'], FIRST)
            self.assertEqual(request['thinking'], {'type': 'enabled'})
            self.assertEqual([t['function']['name']
                              for t in request['tools']], ['add'])

        self.assertEqual(
            [m['role'] for m in seen[-1]['messages']],
            ['system', 'user', 'assistant', 'tool', 'assistant', 'tool',
             'assistant', 'user', 'assistant', 'tool'])

    def test_reasoning_sent_back(self):
        """RETAIN sends it until the next message of the user, DISCARD
        never."""

        def kept(mode):
            with GoldServer(find, mode) as server:
                self.results(server, '--tasks', '1', '--families', 'sums',
                             '--mode', mode)
                return [[m['reasoning_content'] for m in r['messages']
                         if 'reasoning_content' in m] for _, r in server.seen]

        self.assertEqual(kept(RETAIN), [[], ['two steps'],
                                        ['two steps', 'one step'],
                                        [], ['again']])
        self.assertEqual(kept(DISCARD), [[]] * 5)

    def test_chat_does_not_think(self):
        with GoldServer(find, RETAIN) as server:
            self.results(server, '--tasks', '2', '--mode', CHAT)
            self.assertEqual([r['thinking'] for _, r in server.seen],
                             [{'type': 'disabled'}])

    def test_a_key_for_each_task(self):
        with GoldServer(find, RETAIN) as server:
            self.results(server, '--tasks', '4', '--families', 'sums')
            self.results(server, '--tasks', '4', '--families', 'sums')
            self.assertEqual(len({key for key, _ in server.seen}), 8)
            self.assertEqual(len(server.seen), 40)

    def test_errors_of_the_model(self):
        """One task for each error that a model can make."""

        def spoil(request, message):
            n, turn = number(request), turn_of(request)
            calls = 'tool_calls' in message

            if n == 1 and turn == 1 and not calls:
                message['content'] = 'It is 4.'
            elif n == 2 and turn == 2 and not calls:
                message['content'] = ''
            elif n == 3 and calls:
                arguments(message, '{"a": 1, "b": ')
            elif n == 4 and calls:
                arguments(message, '[1, 2]')
            elif n == 5 and len(request['messages']) == 2:
                arguments(message, '{"a": 1, "b": "two"}')
            elif n == 6 and len(request['messages']) == 2:
                message['tool_calls'][0]['function']['name'] = 'sub'
            elif n == 7 and not calls:
                message['finish'] = 'length'
            elif n == 8:
                del message['tool_calls']
                message['content'] = '<invoke name="add">'
            elif n == 9 and not calls:
                raise Refusal(400, "This model's maximum context length is "
                                   '4096 tokens.')
            elif n == 10 and 'max_tokens' in request:
                raise Refusal(400, "This model's maximum context length is "
                                   '4096 tokens.')
            elif n == 11 and not calls:
                message['content'] = f'It is {turn}.'
            return message

        with GoldServer(find, RETAIN, spoil) as server:
            rs = self.results(server, '--tasks', '12', '--families', 'sums')

        s = FIRST
        self.assertEqual(
            [(r['why'], r['rounds'], r['calls'], r['parsed']) for r in rs], [
                (None, 5, 3, 3),
                (f'turn 1: {3 + s + 1} is right', 5, 3, 3),
                (f'turn 2: {2 * (s + 2)} is right', 5, 3, 3),
                ('turn 1: add({"a": 1, "b": ): Expecting value: '
                 'line 1 column 15 (char 14)', 1, 1, 0),
                ('turn 1: add([1, 2]): the arguments are not a JSON object',
                 1, 1, 0),
                (None, 6, 4, 3),
                (None, 6, 4, 3),
                (f'turn 1: cut off: done\nIt is {3 + s + 7}.', 3, 2, 2),
                ('turn 1: no call, but its text: two steps\n'
                 '<invoke name="add">', 1, 1, 0),
                ('turn 1: the context is full', 2, 2, 2),
                (None, 5, 3, 3),
                (f'turn 1: {3 + s + 11} is right', 5, 3, 3),
            ])
        self.assertEqual([r['right'] for r in rs],
                         [r['why'] is None for r in rs])
        self.assertEqual([r['completion_tokens'] for r in rs],
                         [10 * r['rounds'] for r in rs])
        self.assertEqual(rs[7]['finish'], ['tool_calls'] * 2 + ['length'])

    def test_too_many_rounds(self):
        def again(request, message):
            call = {'id': f'call_{len(request["messages"])}',
                    'type': 'function',
                    'function': {'name': 'add',
                                 'arguments': '{"a": 1}'}}
            return {'role': 'assistant', 'content': '', 'tool_calls': [call]}

        for kind, n in ('multi', 12), ('plan', 40):
            def chosen(family, seed):
                return dataclasses.replace(task_of(family, seed), kind=kind)

            with self.subTest(kind), \
                    GoldServer(find, RETAIN, again) as server:
                rc, written, stderr = evaluate(
                    server.url, '--tasks', '1', '--families', 'sums',
                    task_of=chosen)
                (r,) = written['results']
                self.assertEqual(
                    (r['why'], r['rounds'], r['calls'], r['parsed']),
                    ('turn 1: too many rounds', n, n, 0))

    def test_the_server_fails(self):
        """An error of the server does not count as a wrong answer."""

        def failing(status):
            def spoil(request, message):
                if number(request) == 3 and turn_of(request) == 2:
                    raise Refusal(status, 'no engine')
                return message
            return spoil

        for status, text in (500, '500: no engine'), \
                (0, 'RemoteDisconnected'), (400, '400: no engine'):
            with self.subTest(status), \
                    GoldServer(find, RETAIN, failing(status)) as server:
                rc, written, stderr = evaluate(server.url, '--tasks', '6',
                                             '--families', 'sums')
                self.assertEqual((rc, written), (1, None))
                self.assertIn(f'the run failed: sums eval-{FIRST + 3}: ',
                              stderr)
                self.assertIn(text, stderr)

    def test_a_failure_ends_the_run(self):
        def spoil(request, message):
            if number(request) == 2:
                raise Refusal(503, 'overloaded')
            return message

        with GoldServer(find, RETAIN, spoil) as server:
            rc, written, stderr = evaluate(
                server.url, '--tasks', '4000', '--families', 'sums',
                '--concurrency', '2')
            self.assertEqual((rc, written), (1, None))
            self.assertLess(len(server.seen), 10000)

    def test_no_server(self):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            rc, written, stderr = evaluate(
                f'http://127.0.0.1:{s.getsockname()[1]}/v1')

        self.assertEqual((rc, written), (1, None))
        self.assertIn('ConnectionRefusedError', stderr)

    def test_unknown_family(self):
        with self.assertRaises(SystemExit) as e:
            evaluate('http://127.0.0.1:1/v1', '--families', 'sums,other')

        self.assertEqual(e.exception.code, 2)


class TestFamilies(unittest.TestCase):

    def test_gold(self):
        """The gold policies of all families solve their tasks over HTTP."""

        for family, mode in itertools.product(mix.FAMILIES,
                                              (RETAIN, DISCARD, CHAT)):

            def find(request):
                return mix.task_of(family, f'eval-{request["seed"]}')

            with self.subTest(family, mode=mode), \
                    GoldServer(find, mode) as server:
                rc, written, stderr = evaluate(
                    server.url, '--tasks', '2', '--mode', mode,
                    known=[family], task_of=mix.task_of)

                self.assertEqual(rc, 0, stderr)

                fit = [t for t in (mix.task_of(family, f'eval-{FIRST + i}')
                                   for i in range(2)) if mode in t.modes]

                self.assertEqual([r['why'] for r in written['results']],
                                 [None] * len(fit))

                for r in written['results']:
                    self.assertEqual(r['calls'], r['parsed'])


def result(seed, right, family='sums', kind='multi', **more):
    return {'family': family, 'kind': kind, 'seed': seed, 'right': right,
            'rounds': 2, 'calls': 1, 'parsed': 1, 'prompt_tokens': 1000,
            'cached_tokens': 600, 'completion_tokens': 100,
            'reasoning_tokens': 40, 'accepted_tokens': 0, **more}


class TestTable(unittest.TestCase):

    def table(self, runs, *args):
        """runs is [(name, seed, results)]."""

        with tempfile.TemporaryDirectory() as d:
            files = []

            for name, seed, results in runs:
                files.append(os.path.join(d, f'{len(files)}.json'))
                with open(files[-1], 'w') as f:
                    json.dump({'name': name, 'seed': seed,
                               'results': results}, f)

            with contextlib.redirect_stdout(io.StringIO()) as out:
                table.main([*files, *args])

        return out.getvalue()

    def test_wilson(self):
        # the examples of Newcombe 1998, method 3

        for right, n, bounds in (81, 263, (0.2553, 0.3662)), \
                (15, 148, (0.0624, 0.1605)), (0, 20, (0, 0.1611)), \
                (1, 29, (0.0061, 0.1718)):
            self.assertEqual(
                tuple(round(x, 4) for x in table.wilson(right, n)), bounds)

    def test_accuracy_and_calls(self):
        text = self.table([
            ('one', 1, [result(i, i < 3) for i in range(4)]
             + [result(9, True, 'trip', 'plan', calls=7, parsed=5)]),
            ('one', 2, [result(i, True) for i in range(10, 14)]),
            ('two', 1, [result(i, False, calls=0, parsed=0)
                        for i in range(4)])])

        self.assertEqual(text, '\n'.join((
            '| right, % (95 %) | tasks | one | two |',
            '| --- | ---: | ---: | ---: |',
            '| sums | 8 | 87.5 (52.9-97.8) | 0.0 (0.0-49.0) |',
            '| trip | 1 | 100.0 (20.7-100.0) |  |',
            '| **all multi** | 8 | 87.5 (52.9-97.8) | 0.0 (0.0-49.0) |',
            '| **all plan** | 1 | 100.0 (20.7-100.0) |  |',
            '| **all** | 9 | 88.9 (56.5-98.0) | 0.0 (0.0-49.0) |',
            '',
            '| tool calls | all | not parsed | parsed, % (95 %) |',
            '| --- | ---: | ---: | ---: |',
            '| one | 15 | 2 | 86.7 (62.1-96.3) |',
            '| two | 0 | 0 |  |',
            '')))

    def test_tokens_a_step(self):
        text = self.table([
            ('one', 1, [result(1, True, completion_tokens=100,
                               accepted_tokens=50),
                        result(2, False, completion_tokens=60,
                               accepted_tokens=30),
                        result(9, True, 'trip', 'plan', completion_tokens=40,
                               accepted_tokens=10)]),
            ('two', 1, [result(1, True, completion_tokens=80)])])

        self.assertEqual(text.split('\n\n')[-1], '\n'.join((
            '| tokens a step | tasks | one | two |',
            '| --- | ---: | ---: | ---: |',
            '| sums | 2 | 2.00 | 1.00 |',
            '| trip | 1 | 1.33 |  |',
            '| **all multi** | 2 | 2.00 | 1.00 |',
            '| **all plan** | 1 | 1.33 |  |',
            '| **all** | 3 | 1.82 | 1.00 |',
            '')))

    def test_compare(self):
        text = self.table([
            ('discard', 1, [result(1, True, completion_tokens=300),
                            result(2, False, completion_tokens=300)]),
            ('discard', 2, [result(3, False, completion_tokens=320),
                            result(4, False, completion_tokens=360)]),
            ('retain', 1, [result(1, True), result(2, False),
                           result(8, True, completion_tokens=9999)]),
            ('retain', 2, [result(3, True, cached_tokens=800),
                           result(4, True, cached_tokens=800)]),
            ('retain', 3, [result(5, True)])],
            '--compare', 'discard,retain')

        # the tasks that both runs have: four, of two seeds

        self.assertEqual(text.split('\n\n')[-1], '\n'.join((
            '| 4 tasks, 2 seeds | discard | retain | difference |',
            '| --- | ---: | ---: | ---: |',
            '| right, % | 25.0 ± 35.4 | 75.0 ± 35.4 | +50.0 ± 70.7 |',
            '| messages a task | 2.00 ± 0.00 | 2.00 ± 0.00 '
            '| +0.00 ± 0.00 |',
            '| tokens generated a task | 320 ± 28 | 100 ± 0 | -220 ± 28 |',
            '| of them reasoning | 40 ± 0 | 40 ± 0 | +0 ± 0 |',
            '| tokens generated for each right task | - | 150 ± 71 | - |',
            '| tokens prefilled a task | 400 ± 0 | 300 ± 141 '
            '| -100 ± 141 |',
            '| cache hits, % of the prompts | 60.0 ± 0.0 | 70.0 ± 14.1 '
            '| +10.0 ± 14.1 |',
            '')))

    def test_one_seed_has_no_spread(self):
        text = self.table([('a', 1, [result(1, True)]),
                           ('b', 1, [result(1, False)])],
                          '--compare', 'a,b')

        self.assertIn('| right, % | 100.0 | 0.0 | -100.0 |', text)

    def test_nothing_to_compare(self):
        text = self.table([('a', 1, [result(1, True)]),
                           ('b', 2, [result(2, True)])],
                          '--compare', 'a,b')

        self.assertIn('a and b have no tasks in common.', text)

    def test_refused(self):
        one = ('a', 1, [result(1, True)])

        with self.assertRaisesRegex(SystemExit, 'a has the seed 1 already'):
            self.table([one, one])

        with contextlib.redirect_stderr(io.StringIO()) as stderr, \
                self.assertRaises(SystemExit):
            self.table([one], '--compare', 'a,c')

        self.assertIn('two of: a', stderr.getvalue())


if __name__ == '__main__':
    unittest.main()
