# Copyright (C) The nginx-dsa authors

"""The environment over stdin and stdout, and the printing of a task, as other
programs use them."""

import json
import os
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
DEMO = os.path.join(ROOT, 'demo')
sys.path.insert(0, DEMO)

from tasks.mix import task_of                            # noqa: E402
from tasks.task import play                              # noqa: E402


ENV = {**os.environ, 'PYTHONPATH': DEMO}

GARBAGE = (b'', b'garbage', b'{', b'[]', b'3', b'null', b'\xff\xfe\x00',
           b'{"call": 1}', b'{"call": "x", "arguments": {}}',
           b'{"call": "x"}', b'{"answer": null}', b'{"answer": ["a"]}',
           b'{"answer": "a", "call": "b", "arguments": "{}"}',
           b'{"other": "a"}', b'[' * 100000, b'{"answer": ' + b'9' * 9999)

BAD_ARGUMENTS = ('', 'null', '[]', '{', '{"city": 7}', '{"a": NaN}',
                 '[' * 100000, '{"x": "\\ud800"}', '"text"')


def run(module, *args, text=b''):
    return subprocess.run([sys.executable, '-m', 'tasks.' + module, *args],
                          input=text, env=ENV, capture_output=True,
                          timeout=60)


def serve(family, seed, lines):
    """Returns the output: the head and the answers to the lines."""

    text = b''.join(line + b'\n' for line in lines)
    done = run('serve', family, seed, text=text)

    if done.returncode != 0 or done.stderr != b'':
        raise AssertionError(done)

    return [json.loads(line) for line in done.stdout.splitlines()]


def line(**message):
    return json.dumps(message).encode()


class Serve(unittest.TestCase):

    def test_gold_is_right(self):
        for family in ('talk', 'chat', 'tools_multi', 'tools_error',
                       'trip_facts', 'trip'):
            task = task_of(family, 'eval-4')
            lines, results = [], []

            for m in play(task, task.modes[0]):
                if m['role'] == 'tool':
                    results.append({'result': m['content']})
                elif m.get('tool_calls'):
                    lines += [line(call=c['function']['name'],
                                   arguments=c['function']['arguments'])
                              for c in m['tool_calls']]
                elif m['role'] == 'assistant':
                    lines.append(line(answer=m['content']))

            head, *answers = serve(family, 'eval-4', lines)

            self.assertEqual(head, {
                'family': family, 'system': task.system,
                'tools': task.tool_list(),
                'turns': [t.user for t in task.turns]})
            self.assertEqual([a for a in answers if 'result' in a], results)
            self.assertEqual(
                [a for a in answers if 'result' not in a],
                [{'turn': i, 'right': True, 'why': None}
                 for i in range(len(task.turns))])

    def test_wrong_answers_are_reported(self):
        turns = task_of('chat', 'eval-4').turns
        head, *answers = serve('chat', 'eval-4', [
            line(answer='Zebra 7777')] * (len(turns) + 1))

        for i in range(len(turns)):
            self.assertEqual(answers[i]['turn'], i)
            self.assertIs(answers[i]['right'], False)
            self.assertTrue(answers[i]['why'])

        self.assertEqual(list(answers[-1]), ['error'])

    def test_garbage_is_rejected(self):
        said = next(task_of('talk', 'eval-4').turns[0].gold('chat')).content
        head, *answers = serve('talk', 'eval-4',
                               GARBAGE + (line(answer=said),) + GARBAGE)

        for a in answers[:len(GARBAGE)] + answers[len(GARBAGE) + 1:]:
            self.assertEqual(list(a), ['error'])

        self.assertEqual(answers[len(GARBAGE)],
                         {'turn': 0, 'right': True, 'why': None})

    def test_bad_calls_have_an_error_as_their_result(self):
        tools = [*task_of('trip', 'eval-4').tools, 'no_such_tool', '\ud800']
        head, *answers = serve('trip', 'eval-4', [
            line(call=name, arguments=arguments)
            for name in tools for arguments in BAD_ARGUMENTS])

        self.assertEqual(len(answers), len(tools) * len(BAD_ARGUMENTS))

        for a in answers:
            self.assertIn('error', json.loads(a['result']), a)

    def test_ends_with_its_reader(self):
        with subprocess.Popen(
                [sys.executable, '-m', 'tasks.serve', 'talk', '1'], env=ENV,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE) as p:
            p.stdout.readline()
            p.stdout.close()
            p.stdin.write(b'garbage\n' * 10)
            p.stdin.close()
            self.assertEqual(p.stderr.read(), b'')

    def test_usage(self):
        for args in ((), ('talk',), ('nothing', '1'), ('talk', '1', '2')):
            done = run('serve', *args)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stdout, b'')
            self.assertIn(b'usage:', done.stderr)


class Show(unittest.TestCase):

    def test_text(self):
        for family in ('talk', 'chat', 'trip'):
            done = run('show', family, 'eval-1')
            self.assertEqual((done.returncode, done.stderr), (0, b''))
            text = done.stdout.decode()
            task = task_of(family, 'eval-1')

            for who in ('user ', 'thinks ', 'assistant '):
                self.assertIn('\n' + who, text)

            self.assertIn(task.turns[-1].user.split('\n')[0], text)
            self.assertTrue(all(name in text for name in task.tools))

    def test_json(self):
        done = run('show', 'tools_multi', 'eval-1', '--mode', 'discard',
                   '--json')
        task = task_of('tools_multi', 'eval-1')
        self.assertEqual(json.loads(done.stdout), {
            'messages': play(task, 'discard'), 'tools': task.tool_list()})

    def test_usage(self):
        for args in (('talk', '1', '--mode', 'discard'), ('nothing', '1'),
                     ('talk',)):
            done = run('show', *args)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b'usage:', done.stderr)


if __name__ == '__main__':
    unittest.main()
