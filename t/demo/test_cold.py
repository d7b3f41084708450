# Copyright (C) The nginx-dsa authors

"""The paper's cold start: its system prompts, the Python tool and the tasks,
and the count of calls inside the reasoning."""

import json
import os
import sys
import unittest
from unittest import mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path.insert(0, os.path.join(ROOT, 'demo'))

from tasks import coldstart, mix                         # noqa: E402
from tasks.parts import Draw                             # noqa: E402
from tasks.task import CHAT, RETAIN, play                # noqa: E402
from train import corpus, elicit, encode                 # noqa: E402


TABLES = os.path.join(ROOT, 't/data/coldstart/tables.txt')


def words(text):
    return text.split()


class Prompts(unittest.TestCase):

    def test_word_for_word(self):
        """Blanks aside, because the text of the paper has no line breaks."""

        with open(TABLES) as f:
            wanted = [line for line in f if not line.startswith('#')]

        tables = (coldstart.TABLE_6, coldstart.TABLE_7, coldstart.TABLE_8)

        self.assertEqual(len(wanted), len(tables))

        for text, line in zip(tables, wanted):
            self.assertEqual(words(text), words(line))

    def test_the_server_completes_them(self):
        """What a prompt leaves to the server is in the encoded conversation:
        the format of calls, after the last words of the prompt."""

        task = mix.task_of('cold_agent', 'x')
        text = ''.join(t for t, _ in encode.encode(
            play(task, CHAT), task.tool_list(), False))
        head, _, rest = text.partition('exact format for tool use:')

        self.assertIn(json.dumps(coldstart.PYTHON), head)
        self.assertIn(f'<{encode.DSML}function_calls>', rest)
        self.assertNotIn('{TOOL', text)


class Python(unittest.TestCase):

    def test_runs(self):
        for code, said in (
                ('print(9 * 123456)', '1111104'),
                ('def f(x):\n    return x % 7 == 0\nprint(f(49), f(50))',
                 'True False'),
                ('def f(xs):\n    return max(xs) - min(xs)\nf([3, 9])', '6'),
                ('print("abc"[::-1].upper())', 'CBA'),
                ('print(len("a b c".split()))', '3')):
            self.assertEqual(coldstart.run_python(code), said)

    def test_refuses(self):
        for code in ('import os', 'open("x")', '__import__("os")',
                     'print("a" * 400 * 400)', 'while True: pass',
                     '[x for x in range(9)]', '(lambda: 1)()', 'x = 1',
                     'print(10 ** 100)', 'print("%999999999d" % 1)',
                     'print("".__class__)', 'def f(n):\n    return f(n)\nf(1)',
                     'print(1 // 0)',
                     'print([1][5])', 'print(9' + '9' * 300 + ')', '(', '\0',
                     'print(99999999 * 99999999)', 'x' * 1000, 'print(~1)', 'print(1 < 2 < 1)',
                     'print(f"{1}")', 'print(1 if 1 else 2)', 'print({1: 2})',
                     'print(1 in [1])', 'print(not 1)', 'del x'):
            with self.assertRaises(coldstart.Refused, msg=code):
                coldstart.run_python(code)


class Tasks(unittest.TestCase):

    def test_table_6_reasons_and_table_7_calls(self):
        for i in range(200):
            task = mix.task_of('cold_reason', f'train-{i}')
            messages = play(task, RETAIN)
            self.assertEqual(task.modes, (RETAIN,))
            self.assertEqual(task.tools, {})
            self.assertTrue(messages[-1]['reasoning_content'])
            self.assertEqual(len(messages), 3)

            task = mix.task_of('cold_agent', f'train-{i}')
            messages = play(task, CHAT)
            self.assertEqual(task.modes, (CHAT,))
            self.assertTrue(messages[2]['tool_calls'])
            self.assertFalse(any('reasoning_content' in m
                                 for m in messages))

    def test_programs_are_tested(self):
        for i in range(100):
            p = coldstart.Problem(Draw(i))
            name, arg = p.name, p.argument

            self.assertIsNone(p.check(p.program(), []))
            self.assertIsNone(p.check(f'```python\n{p.program()}\n```', []))

            for wrong in ('', 'I do not know.', f'def {name}({arg}): ...',
                          f'def {name}({arg}):\n    return 77777',
                          f'def other({arg}):\n    return {arg}',
                          f'def {name}({arg}):\n    return unknown'):
                self.assertIsNotNone(p.check(wrong, []), wrong)

    def test_names_of_control_tokens_stay_text(self):
        task = mix.task_of('cold_reason', 'train-1')
        segments = encode.encode(play(task, RETAIN), [], True)
        ordinary = [t for t, _ in segments if isinstance(t, encode.Ordinary)]

        self.assertEqual(ordinary, [coldstart.TABLE_6])

    def test_a_base_without_calls_in_reasoning(self):
        with_tools = 0

        for i in range(400):
            task, mode, messages = corpus.conversation(f'b-{i}', apart=True)
            with_tools += bool(task.tools)

            for m in messages:
                self.assertFalse(m.get('tool_calls')
                                 and m.get('reasoning_content'))

        self.assertGreater(with_tools, 25)

    def test_experiment_is_not_in_the_mix(self):
        self.assertFalse(set(mix.APART) & set(mix.FAMILIES))


class Elicit(unittest.TestCase):

    def have(self, *messages, bare=False):
        """Returns what elicit counts when the model sends these messages."""

        answers = iter(messages)
        requests = []

        class Client:
            def __init__(self, url, key=''):
                pass

            def chat(self, request):
                requests.append(request)
                return {'choices': [{'message': next(answers),
                                     'finish_reason': 'stop'}],
                        'usage': {'prompt_tokens': 1,
                                  'completion_tokens': 1}}

            def close(self):
                pass

        args = mock.Mock(url='', model='m', bare=bare, max_tokens=9)

        with mock.patch.object(elicit, 'Client', Client):
            found = elicit.have(args, 3)

        return elicit.summary([found]), requests

    def test_counts(self):
        right = coldstart.Problem(Draw('elicit/eval-3', True)).program()
        call = {'content': '', 'tool_calls': [{
            'id': 'c', 'type': 'function', 'function': {
                'name': 'python', 'arguments': '{"code": "print(1)"}'}}]}
        thinks = {**call, 'reasoning_content': 'I try it.'}
        end = {'content': right}

        for messages, want in (
                ([end], (0, 0, 0, 0)), ([call, end], (1, 0, 0, 1)),
                ([thinks, end], (1, 1, 0, 1)),
                ([thinks, thinks, {'content': 'no'}], (1, 1, 1, 0))):
            got, requests = self.have(*messages)
            self.assertEqual((got['called'], got['thought'], got['several'],
                              got['right']), want)
            self.assertEqual(got['n'], 1)

        self.assertTrue(requests[0]['messages'][0]['content'].startswith(
            'You are a helpful assistant with access to a Python'))
        self.assertEqual(requests[0]['thinking'], {'type': 'enabled'})

        _, requests = self.have(end, bare=True)
        self.assertEqual(requests[0]['messages'][0]['role'], 'user')


if __name__ == '__main__':
    unittest.main()
