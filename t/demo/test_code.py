# Copyright (C) The nginx-dsa authors

"""The code agent and the code interpreter, and the bounds of their cage."""

import dataclasses
import json
import os
import unittest
from unittest import mock

from tasks.task import CHAT, RETAIN, play
from worlds.code import cage, interpreter, repo, repos
from worlds.form import verify


try:
    cage.check()
    no_cage = None
except cage.NoCage as e:
    no_cage = f'no isolation: {e}'


def python(code, seconds=100):
    """Returns the result of a run in the interpreter, or the error."""

    x = interpreter.Interpreter(seconds)
    try:
        return x.run(code)['output']
    except ValueError as e:
        return f'error: {e}'
    finally:
        x.close()


class Refused(unittest.TestCase):
    """Without bubblewrap or namespaces, nothing runs."""

    def setUp(self):
        cage.check.cache_clear()
        self.addCleanup(cage.check.cache_clear)

    def test_not_installed(self):
        with mock.patch('shutil.which', return_value=None):
            with self.assertRaisesRegex(cage.NoCage, 'not installed'):
                cage.run({}, ['/usr/bin/true'])
            self.assertRegex(python('1'), '^error: bwrap .* not installed')

    def test_no_namespaces(self):
        with mock.patch.object(cage, 'found', return_value='/usr/bin/false'):
            with self.assertRaisesRegex(cage.NoCage, 'namespaces are refused'):
                cage.run({}, ['/usr/bin/true'])
            self.assertRegex(python('1'), '^error: namespaces are refused')


@unittest.skipIf(no_cage, no_cage)
class Cage(unittest.TestCase):

    def run_python(self, code, seconds=100):
        return cage.run({'x.py': code}, ['/usr/bin/python3', 'x.py'], seconds)

    def test_files(self):
        status, text = cage.run(
            {'a/b': 'text'},
            ['/usr/bin/sh', '-c', 'cat a/b; ls /; cat /etc/passwd; id -u; '
             'touch /x; touch /usr/x; echo z > a/c && cat a/c; exit 3'])
        self.assertEqual(status, 3)
        self.assertRegex(text, r'^textbin\ndev\n')
        self.assertNotRegex(text, r'(?m)^(home|root|etc|var)$')
        self.assertRegex(text, 'passwd: No such file')
        self.assertRegex(text, "'/x': Read-only")
        self.assertRegex(text, "'/usr/x': Read-only")
        self.assertRegex(text, r'z\n\Z')

        if os.getuid() == 0:
            self.assertRegex(text, '(?m)^65534$')

    def test_disk_is_bounded(self):
        status, text = self.run_python(
            'try:\n    for i in range(999):\n'
            '        open(f"f{i}", "w").write("x" * 1000000)\n'
            'except OSError as e:\n    print(i, e.strerror)')
        self.assertRegex(text, r'^\d\d No space left')

    def test_network(self):
        status, text = self.run_python(
            'import socket, os\nprint(os.listdir("/sys") if os.path.exists('
            '"/sys") else "no /sys")\n'
            's = socket.socket()\ns.settimeout(5)\n'
            'try:\n    s.connect(("203.0.113.9", 80))\n    print("on")\n'
            'except OSError as e:\n    print(e.strerror)')
        self.assertEqual(text, 'no /sys\nNetwork is unreachable\n')

    def test_time_and_output(self):
        self.assertEqual(cage.run({}, ['/usr/bin/sleep', '99'], 1),
                         (None, '\n[ended: more than 1 seconds]'))
        status, text = cage.run({}, ['/usr/bin/yes'], 100)
        self.assertIsNone(status)
        self.assertLess(len(text), cage.OUTPUT + 100)
        self.assertRegex(text, 'more than 200000 bytes of output')

    def test_processes(self):
        """The forks here end by themselves, so that a missing limit does no
        harm to the machine."""

        status, text = self.run_python(
            'import os, time\ntry:\n    for n in range(100):\n'
            '        if os.fork() == 0:\n            os.close(1)\n'
            '            os.close(2)\n            time.sleep(120)\n'
            'except OSError as e:\n'
            '    print(n < 30, e.strerror)\n', 120)
        self.assertRegex(text, '^True Resource temporarily unavailable')

    def test_nothing_is_left(self):
        before = len(os.listdir('/proc/self/fd'))
        for _ in range(3):
            cage.run({'a': 'x'}, ['/usr/bin/true'])
        self.assertEqual(len(os.listdir('/proc/self/fd')), before)


@unittest.skipIf(no_cage, no_cage)
class Interpreter(unittest.TestCase):

    def test_state(self):
        x = interpreter.Interpreter()
        self.addCleanup(x.close)
        self.assertEqual(x.run('a = 40\nprint("x")'), {'output': 'x\n'})
        self.assertEqual(x.run('a + 2'), {'output': '42\n'})
        self.assertRegex(x.run('1 / 0')['output'], 'ZeroDivisionError')
        self.assertEqual(x.run('a'), {'output': '40\n'})

        for _ in range(interpreter.RUNS - 4):
            x.run('a += 1')

        with self.assertRaisesRegex(ValueError, 'all 20 runs are used'):
            x.run('a')

    def test_bounds(self):
        for code, seconds, why in (
                ('import os, time\nfor _ in range(100):\n'
                 '    if os.fork() == 0:\n        time.sleep(60)', 100,
                 'temporarily unavailable'),
                ('x = bytearray(10 * 2 ** 30)', 100, 'MemoryError'),
                ('while True:\n    pass', 1,
                 'error: more than 1 seconds; the variables are lost'),
                ('import os\nos._exit(3)', 100, 'error: the interpreter ended'),
                ('import sys\nsys.__stdout__.write("x\\n")', 100,
                 'error: the interpreter was disturbed'),
                ('open("/etc/passwd")', 100, 'No such file'),
                ('open("/usr/x", "w")', 100, 'Read-only'),
                ('import socket\nsocket.create_connection(("203.0.113.9", '
                 '80))', 100, 'unreachable'),
                ('exit()', 100, 'SystemExit'),
                ('def f(', 100, 'SyntaxError')):
            self.assertRegex(python(code, seconds), why, code)

        long = python('print("x" * 10 ** 7)')
        self.assertLess(len(long), 9000)
        self.assertRegex(long, 'the rest was cut off')

        # after it was ended, the tool goes on without variables

        x = interpreter.Interpreter()
        self.addCleanup(x.close)
        x.run('a = 1')
        x.seconds = 1
        with self.assertRaises(ValueError):
            x.run('while True: pass')
        x.seconds = interpreter.SECONDS
        self.assertRegex(x.run('a')['output'], 'NameError')

    def test_tasks(self):
        kinds = set()

        for level in range(1, interpreter.LEVELS + 1):
            for n in range(3):
                t = interpreter.make(f'eval-{n}', level)
                messages = play(t, CHAT)
                self.assertIsNone(verify(interpreter.make(f'eval-{n}', level),
                                         messages))
                messages[-1]['content'] = 'It is 123456789.'
                self.assertIsNotNone(verify(
                    interpreter.make(f'eval-{n}', level), messages))
                kinds.add(t.turns[0].user[:12])

        self.assertGreaterEqual(len(kinds), 3)


@unittest.skipIf(no_cage, no_cage)
class Code(unittest.TestCase):

    def test_environments_count(self):
        """One fault of each repository; `python3 -m worlds.code` runs all."""

        for known in repos.REPOS.values():
            for r in known:
                env = repo.environment_of(r, r.faults[-1])
                f2p, p2f = repo.counts(env)
                self.assertGreater(f2p, 0, r.path)
                self.assertEqual(p2f, 0, r.path)

    def test_languages_and_parts(self):
        for part, known in repos.REPOS.items():
            self.assertEqual({r.language for r in known}, {'python', 'c'})

        paths = {part: {r.path for r in known}
                 for part, known in repos.REPOS.items()}
        self.assertFalse(paths['train'] & paths['eval'])

    def wrong(self, r, n, old, new):
        """Returns whether an environment counts with another gold patch."""

        env = repo.environment_of(r, r.faults[n])
        self.assertIn(old, env.files[r.path])

        return repo.is_sound(dataclasses.replace(env, patch=(r.path, old,
                                                             new)))

    def test_wrong_patches(self):
        """A patch that repairs nothing, or that breaks something else, or that
        does not build, disqualifies its environment."""

        for r, old, nothing, breaks in (
                (repos.WRAP, 'len(line) + len(word) > width', 'True',
                 'len(line) + 1 + len(word) > width or width == 9'),
                (repos.NUMBER, ">= '9'", "> '8'", "> '9' || *text == '4'")):
            self.assertFalse(self.wrong(r, 0, old, nothing))
            self.assertFalse(self.wrong(r, 0, old, breaks))
            self.assertFalse(self.wrong(r, 0, old, '('))
            self.assertTrue(self.wrong(
                r, 0, old, r.faults[0].right.rpartition('|| *text ')[2]))

    def test_junit(self):
        """Both frameworks report failures with their names."""

        for r in (repos.WRAP, repos.NUMBER):
            env = repo.environment_of(r, r.faults[0])
            passed, output = repo.run_tests(r, env.with_tests(env.files))
            new = dict(passed)
            self.assertIn('<testsuites>', output)
            self.assertIn(False, new.values())
            self.assertIn(True, new.values())

        self.assertEqual(repo.junit(''), {})
        self.assertEqual(repo.junit(repo.MARK + '\n<a><b>'), {})

    def test_task(self):
        t = repo.make('eval-1', 1)
        messages = play(t, RETAIN)
        self.assertIsNone(verify(repo.make('eval-1', 1), messages))

        # without the patch; with a test that was changed instead

        idle = [m for m in messages if 'replace' not in json.dumps(m)]
        self.assertRegex(verify(repo.make('eval-1', 1), idle),
                         'these tests fail: test_')

        t = repo.make('eval-1', 1)
        for call in (('read_file', {'path': '/etc/passwd'}),
                     ('replace', {'path': 'README.md', 'old': '#', 'new':
                                  'x' * 99999}),
                     ('replace', {'path': 'README.md', 'old': 'zzz',
                                  'new': ''})):
            self.assertIn('error', t.call(call[0], json.dumps(call[1])))


if __name__ == '__main__':
    unittest.main()
