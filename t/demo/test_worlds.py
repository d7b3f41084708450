# Copyright (C) The nginx-dsa authors

"""The one form of all tasks, and its commands."""

import contextlib
import copy
import io
import json
import os
import re
import tempfile
import unittest
from unittest import mock

from eval import converse
from gold_server import GoldServer
from tasks import mix
from tasks.task import RETAIN, play
from worlds import registry
from worlds.__main__ import main
from worlds.form import Refused, record, verify
from worlds.search import task as search


def command(*args, stdin=''):
    """Returns (exit status, stdout, stderr)."""

    out, err = io.StringIO(), io.StringIO()

    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), \
            mock.patch('sys.stdin', io.StringIO(stdin)):
        status = main(list(args))

    return status, out.getvalue(), err.getvalue()


class Form(unittest.TestCase):

    def test_all_families(self):
        known = registry.families()

        self.assertLessEqual(set(mix.FAMILIES), set(known))

        for name in mix.FAMILIES:
            family = known[name]

            for level in range(1, family.levels + 1):
                seed = f'eval-{level}'
                r = json.loads(json.dumps(record(family, seed, level)))

                self.assertEqual(list(r), ['environment', 'tools', 'task',
                                           'verifier'])
                self.assertTrue(r['task']['turns'])

                for tool in r['tools']:
                    self.assertEqual(tool['type'], 'function')
                    self.assertEqual(
                        tool['function']['parameters']['type'], 'object')

                task = family.task(seed, level)
                messages = play(task, task.modes[0])
                self.assertIsNone(verify(family.task(seed, level), messages),
                                  name)

                wrong = copy.deepcopy(messages)
                for m in wrong:
                    if m['role'] == 'assistant':
                        m['content'] = ''
                        for c in m.get('tool_calls', ()):
                            c['function']['arguments'] = '{}'

                self.assertIsNotNone(verify(family.task(seed, level), wrong),
                                     name)

    def test_other_numbers(self):
        """20 other answers to a question of search or interpreter, which are
        numbers of its pages or near the right one, are wrong."""

        for name in ('search', 'interpreter'):
            task = registry.families()[name].task('eval-2')
            check = task.turns[0].check

            if name == 'search':
                corpus, _, question = search.question_of('eval-2', 1)
                right = question.answer
                others = {int(n) for text in corpus.pages.values()
                          for n in re.findall(r'\d+', text)}
            else:
                right = next(n for n in range(10 ** 6) if check(
                    f'It is {n}.', []) is None)
                others = {right + d for d in range(-15, 16)}

            self.assertIsNone(check(f'It is {right}.', []))
            others -= {right}
            self.assertGreaterEqual(len(others), 20)

            for n in sorted(others):
                self.assertIsNotNone(check(f'It is {n}.', []), (name, n))

    def test_results_are_not_trusted(self):
        family = registry.families()['trip']
        messages = play(family.task('eval-3'), RETAIN)
        forged = copy.deepcopy(messages)

        for m in forged:
            if m['role'] == 'tool':
                m['content'] = '{"error": "none"}'

        self.assertIsNone(verify(family.task('eval-3'), forged))

        # without its submission

        last = [m for m in messages if 'tool_calls' in m][-1]
        self.assertEqual(last['tool_calls'][0]['function']['name'],
                         'submit_result')
        without = [m for m in messages if m is not last]
        self.assertEqual(verify(family.task('eval-3'), without),
                         'no plan was submitted')

    def test_other_conversations(self):
        task = registry.families()['trip'].task('eval-3')
        messages = play(task, RETAIN)

        for bad in (None, {}, [1], [], messages + messages,
                    [{'role': 'user', 'content': 'Hello'}]):
            with self.assertRaises(Refused):
                verify(task, bad)

        for call in (1, {}, {'function': {'name': 'x', 'arguments': '[]'}},
                     {'function': {'name': 'x', 'arguments': '{'}},
                     {'function': {'name': 7, 'arguments': '{}'}},
                     {'function': {'name': [], 'arguments': '{}'}}):
            with self.assertRaises(Refused):
                verify(task, messages[:2] + [{'role': 'assistant',
                                              'tool_calls': [call]}])

        for answer in ({'tool_calls': 1}, {'content': [{'type': 'text'}]}):
            with self.assertRaises(Refused):
                verify(task, messages[:2] + [{'role': 'assistant', **answer}])

    def test_nested_arguments(self):
        """They are an error of the call, and end no program."""

        task = registry.families()['trip'].task('eval-3')
        name = next(iter(task.tools))
        self.assertIn('error', json.loads(task.call(name, '[' * 10 ** 5)))
        self.assertIsNotNone(converse.read_call(task, name, '[' * 10 ** 5)[1])

    def test_commands(self):
        status, out, _ = command('show', 'lookup', 'eval-1')
        self.assertEqual(status, 0)
        shown = json.loads(out)
        self.assertEqual(shown['environment']['level'], 1)

        status, out, _ = command('harder', 'lookup', 'eval-1')
        self.assertEqual(status, 0)
        self.assertEqual(json.loads(out)['environment']['level'], 2)

        status, _, err = command('harder', 'lookup', 'eval-1', '--level', '2')
        self.assertEqual((status, err),
                         (2, 'lookup has no level above 2\n'))
        status, _, err = command('show', 'lookup', 'eval-1', '--level', '0')
        self.assertEqual((status, err),
                         (2, 'lookup has the levels 1 to 2, not 0\n'))

        status, _, err = command('show', 'nothing', 'eval-1')
        self.assertEqual(status, 2)
        self.assertRegex(err, '^no such family: nothing; known: talk ')

        status, gold, _ = command('gold', 'trip', 'eval-3', '--json')
        self.assertEqual(status, 0)
        status, out, _ = command('verify', 'trip', 'eval-3', stdin=gold)
        self.assertEqual((status, json.loads(out)),
                         (0, {'right': True, 'why': None}))
        status, out, _ = command('verify', 'trip', 'eval-3', stdin='[{}')
        self.assertEqual(status, 2)

        status, out, _ = command('list')
        self.assertRegex(out, r'(?m)^trip_facts +3 levels$')

    def test_loop(self):
        """A served model has the loop of eval.run, with a level."""

        tasks = [registry.task_of('lookup_long', f'eval-{1000000 + n}')
                 for n in range(2)]

        def find(request):
            user = request['messages'][-1]['content']
            return next(t for t in tasks if t.turns[0].user == user)

        with GoldServer(find, RETAIN) as server, \
                tempfile.TemporaryDirectory() as d:
            out = os.path.join(d, 'run.json')
            status, _, _ = command('run', '--families', 'lookup_long',
                                   '--tasks', '2', '--url', server.url,
                                   '--out', out)
            self.assertEqual(status, 0)

            with open(out) as f:
                self.assertEqual([r['right'] for r in json.load(f)['results']],
                                 [True, True])

        with self.assertRaises(Refused):
            registry.task_of('lookup@x', 'eval-1')


if __name__ == '__main__':
    unittest.main()
