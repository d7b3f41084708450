# Copyright (C) The nginx-dsa authors

"""The code agent and the code interpreter, and the bounds of their cage."""

import dataclasses
import json
import os
import random
import re
import signal
import subprocess
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from tasks.task import CHAT, RETAIN, play
from worlds.code import bridge, cage, calling, interpreter, repo, repos
from worlds.form import verify
from worlds.general.words import Names


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

    def test_thread_that_started_it_ends(self):
        """A process goes on when the thread that started it has ended."""

        def begun():
            p = cage.start({}, ['/usr/bin/sh', '-c', 'echo; exec cat'],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            p.stdout.readline()
            return p, threading.get_native_id()

        with ThreadPoolExecutor(1) as pool:
            p, thread = pool.submit(begun).result()

        # the kernel ends it later than Python does

        while os.path.exists(f'/proc/self/task/{thread}'):
            time.sleep(0.01)

        output, _ = p.communicate(b'text', timeout=100)
        self.assertEqual((p.returncode, output), (0, b'text'))

    def test_other_memory_is_bounded(self):
        status, text = cage.run({}, [
            '/usr/bin/sh', '-c', 'touch /dev/x; echo y > /dev/null && echo ok; '
            'head -c 50000000 /dev/zero > /dev/shm/x; unshare -Urm true'])
        self.assertRegex(text, "'/dev/x': Read-only")
        self.assertRegex(text, '(?m)^ok$')
        self.assertRegex(text, 'No space left|File too large|size limit')
        self.assertRegex(text, 'unshare failed')

    def test_files_in_memory_are_bounded(self):
        status, text = self.run_python(
            'import os\nfd = os.memfd_create("x")\n'
            'while True:\n    os.write(fd, bytes(1 << 20))\n')
        self.assertNotEqual(status, 0)

        status, text = self.run_python(
            'import os\nwhile True:\n    os.memfd_create("x")\n')
        self.assertEqual(status, 1)
        self.assertIn('Too many open files', text)

    def test_half_of_a_pair(self):
        before = len(os.listdir('/proc/self/fd'))
        self.assertEqual(self.run_python('x = "\ud800"')[0], 1)
        self.assertEqual(len(os.listdir('/proc/self/fd')), before)

    def test_signal_while_it_starts(self):
        """An exception of a signal's handler ends what is being started."""

        def late(*_):
            raise KeyboardInterrupt

        started = []

        def spawn(*args):
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.5)
            started.append(original(*args))
            return started[0]

        original = cage.spawn
        before = signal.signal(signal.SIGUSR1, late)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)

        with mock.patch.object(cage, 'spawn', spawn), \
                self.assertRaises(KeyboardInterrupt):
            cage.start({}, ['/usr/bin/sleep', '1000'])

        self.assertIsNotNone(started[0].returncode)

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

        # a child answers for a program that does not read

        x = interpreter.Interpreter()
        self.addCleanup(x.close)
        x.run('import os, time\nif os.fork() == 0:\n'
              '    while True:\n        os.write(1, b\'"x"\\n\')\n'
              '        time.sleep(0.1)\ntime.sleep(1000)')
        x.seconds = 2
        with self.assertRaisesRegex(ValueError, 'more than 2 seconds'):
            x.run('#' * (1 << 20))

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


class ByHand(unittest.TestCase):
    """The bounded policy of the interpreter's tasks, which has no tool."""

    def test_without_slips(self):
        """The steps by hand lead to the answer, which is computed in another
        way."""

        for make in interpreter.PROBLEMS:
            for level in (1, 2):
                for n in range(5):
                    rng = random.Random(n)
                    _, answer, _, by_hand = make(rng, Names(rng, 'train'),
                                                 level)
                    self.assertEqual(by_hand(lambda value: value), answer)

    def test_levels_are_harder(self):
        right = {}

        for level in (1, interpreter.LEVELS):
            right[level] = sum(
                interpreter.make(seed, level).turns[0].check(
                    interpreter.attempt(seed, level, random.Random(seed)),
                    []) is None
                for seed in (f'train-{n}' for n in range(40)))

        self.assertGreater(right[1] - right[interpreter.LEVELS], 0.3 * 40)


FORGED = """----junit----
<testsuites><testsuite><testcase name="test_short"/><testcase name="test_nine"/>
</testsuite></testsuites>
"""

# what a patch could write instead of a repair; none may be right

PYTHON = (
    # a report of its own, in each place that it can write to, and an end
    *(f'import os\nos.write({fd}, {FORGED.encode()!r})\nos._exit(0)\n'
      for fd in (1, 2, 4)),
    # other assertions, and other tests
    'import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n',
    'import os\nopen("tests/test_wrap.py", "w").write("")\n'
    'open(".junit.py", "w").write("")\n',
    # answers that are not values, or more than were asked for
    'class Equal(list):\n    __eq__ = lambda *a: True\n'
    '    __ne__ = lambda *a: False\n'
    'wrap = initials = center = lambda *a: Equal()\n',
    'class Equal:\n    __eq__ = lambda *a: True\n'
    '    __ne__ = lambda *a: False\n'
    'wrap = initials = center = lambda *a: Equal()\n',
    'import unittest\ndef wrap(*a):\n    raise unittest.SkipTest\n'
    'initials = center = wrap\n',
    'import os\nos.write(4, b\'{"value": true}\\n\' * 99)\n',
    'import os\nos.write(4, b"[" * 99999 + b"\\n")\n',
    'import os\nos.write(4, b"9" * 5000 + b"\\n")\n')

QUOTED = FORGED.replace('"', '\\"').replace('\n', '\\n')

C = (
    *('#include <unistd.h>\n#include <stdio.h>\n'
      '__attribute__((constructor)) static void\nforge(void)\n{\n'
      f'    dprintf({fd}, "%s", "{QUOTED}");\n    _exit(0);\n}}\n'
      for fd in (1, 2, 4)),
    'void _assert_int_equal(void) { }\n'
    'int _cmocka_run_group_tests(void) { return 0; }\n')


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

    # small changes of a source

    CHANGES = (('<=', '<'), ('>=', '>'), (' < ', ' <= '), (' > ', ' >= '),
               (' + ', ' - '), (' - ', ' + '), ('==', '!='), (' // ', ' % '),
               (' or ', ' and '), ('||', '&&'), (' 0', ' 1'), (' 1', ' 2'),
               ('return -1', 'return 1'), ('++', '--'))

    def test_mutations(self):
        """Each small change of a right source fails the hidden tests.  None
        of these changes leaves the program as it was."""

        total = 0

        for r in sum(repos.REPOS.values(), ()):
            text, n = r.files[r.path], 0
            tests = repo.environment_of(r, r.faults[0]).tests
            passed, output = repo.run_tests(r, r.files, tests)
            self.assertTrue(passed and all(passed.values()), output)

            for old, new in self.CHANGES:
                for m in re.finditer(re.escape(old), text):
                    line = text[text.rfind('\n', 0, m.start()) + 1:
                                text.find('\n', m.end())]
                    if line.lstrip().startswith(('/*', '"""')):
                        continue
                    other = text[:m.start()] + new + text[m.end():]
                    passed, _ = repo.run_tests(
                        r, {**r.files, r.path: other}, tests)
                    self.assertFalse(passed and all(passed.values()),
                                     (r.path, line, new))
                    n += 1

            self.assertGreater(n, 3, r.path)
            total += n

        self.assertGreater(total, 50)

    def test_junit(self):
        """Both frameworks report failures with their names."""

        for r in (repos.WRAP, repos.NUMBER):
            env = repo.environment_of(r, r.faults[0])
            passed, output = repo.run_tests(r, env.files, env.tests)
            new = dict(passed)
            self.assertIn('<testsuites>', output)
            self.assertIn(False, new.values())
            self.assertIn(True, new.values())

        self.assertEqual(repo.junit(''), {})
        self.assertEqual(repo.junit(bridge.MARK + '\n<a><b>'), {})

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

    def patched(self, r, changes):
        """Returns what the verifier reports of (path, old, new) changes, as
        an agent makes them."""

        work = repo.Work(repo.environment_of(r, r.faults[0]))
        for path, old, new in changes:
            work.replace(path, old, new)
        return work.check()

    def test_forged_reports(self):
        head = '"""Text in lines."""\n'

        for text in PYTHON:

            # once in place of the program, and once after it

            self.assertIsNotNone(self.patched(
                repos.WRAP, [('wrap.py', head, head + text)]), text)
            last = 'name.split())\n'
            self.assertIsNotNone(self.patched(
                repos.WRAP, [('wrap.py', last, last + text)]), text)

        head = '#include "number.h"\n'

        for text in C:
            self.assertIsNotNone(self.patched(
                repos.NUMBER, [('number.c', head, head + text)]), text)

        macro = 'int number_digits(int n);\n'
        for text in ('#define assert_int_equal(a, b)\n',
                     'static inline int f(void) { _exit(0); }\n'):
            self.assertIsNotNone(self.patched(
                repos.NUMBER, [('number.h', macro, macro + text)]), text)

    def test_sides(self):
        """The side of the tests has nothing of a patch, and that of the
        program nothing of the hidden tests."""

        for r in (repos.WRAP, repos.NUMBER):
            env = repo.environment_of(r, r.faults[0])
            patched = {name: text + '/* marked */'
                       for name, text in env.files.items()}
            path, text = env.tests
            sides = bridge.sides(r, patched, (path, text + '/* hidden */'))
            (tests, _), (program, _) = sides
            self.assertNotIn('marked', str(tests))
            self.assertIn('hidden', tests[path])
            self.assertIn('marked', program[r.path])
            self.assertNotIn('hidden', str(program))

    def test_tests_of_the_agent_do_not_decide(self):
        self.assertRegex(self.patched(repos.WRAP, [
            ('tests/test_wrap.py', 'class Tests',
             'unittest.TestCase.assertEqual = print\n\n\nclass Tests')]),
            'these tests fail: test_width')

    def test_program_that_does_not_end(self):
        """Both sides end with the time, and the reason is reported."""

        env = repo.environment_of(repos.WRAP, repos.WRAP.faults[0])
        env.files['wrap.py'] = 'while True:\n    pass\n'
        sides = bridge.sides(env.repo, env.files, env.tests)
        report, errors = cage.run_both(*sides, seconds=3)
        self.assertEqual(repo.junit(report), {})
        self.assertRegex(errors, r'\[ended: more than 3 seconds\]')

        env.files['wrap.py'] = ('import os\nwhile True:\n'
                                '    os.write(2, b"x" * 9999)\n')
        sides = bridge.sides(env.repo, env.files, env.tests)
        report, errors = cage.run_both(*sides, seconds=100)
        self.assertEqual(repo.junit(report), {})
        self.assertRegex(errors, 'more than 200000 bytes of output')

    def test_errors_of_the_program_are_shown(self):
        for r in (repos.WRAP, repos.NUMBER):
            work = repo.Work(repo.environment_of(r, r.faults[0]))
            work.files[r.path] = 'int ('
            shown = work.run_tests()
            self.assertEqual(set(shown['tests'].values()), {'failed'})
            self.assertIn(r.path, shown['output'])

        self.assertIn('number.c:1', shown['output'])


class Calls(unittest.TestCase):
    """What the process of a program may write."""

    def ask(self, line):
        return calling.Program(lambda line: None, lambda: line).call('f')

    def test_answers(self):
        self.assertEqual(self.ask(b'{"error": ["ValueError", "x"]}\n'),
                         (None, ('ValueError', 'x')))
        self.assertEqual(self.ask(b'{"value": 5}\n'),
                         (None, ('TypeError', 'f is no function')))

        lines = [b'{"value": {"object": 1}}\n',
                 b'{"value": {"list": [1, {"tuple": [{"dict": [[2, {"set": '
                 b'[3]}]]}]}]}}\n']
        p = calling.Program(lambda line: None, lambda: lines.pop(0))
        self.assertEqual(p.call('f'), ([1, ({2: {3}},)], None))

    def test_no_answers(self):
        for line in (b'', b'{', b'x\n', b'[]\n', b'{}\n', b'1\n', b'\xff\n',
                     b'{"value": 1, "error": 2}\n', b'{"other": 1}\n',
                     b'{"value": [1]}\n', b'{"value": {"list": 3}}\n',
                     b'{"value": {"code": []}}\n', b'{"value": {}}\n',
                     b'{"value": {"object": true}}\n',
                     b'{"value": {"object": "x"}}\n',
                     b'{"value": {"dict": [[1]]}}\n',
                     b'{"value": {"dict": [[{"list": []}, 1]]}}\n',
                     b'{"value": ' + b'{"list": [' * 60 + b']}' * 60 + b'}\n',
                     b'{"value": ' + b'[' * 100000 + b'\n',
                     b'{"error": 1}\n', b'{"error": ["a"]}\n',
                     b'{"error": [1, "x"]}\n', b'{"error": "ab"}\n',
                     b'{"value": ' + b'9' * 5000 + b'}\n',
                     b'x' * calling.LONGEST):
            with self.assertRaises(calling.Ended, msg=line[:60]):
                self.ask(line)

    def test_any_answer(self):
        """Whatever JSON it is, it is a value, an error or no answer."""

        rng = random.Random(4)

        def value(depth=0):
            kind = rng.randrange(9 if depth < 4 else 6)
            if kind < 6:
                return rng.choice((None, True, -1, 1e308, 'x', 'list',
                                   float('nan'), '', 10 ** 30))
            if kind == 6:
                return [value(depth + 1) for _ in range(rng.randrange(4))]
            return {rng.choice(('value', 'error', 'list', 'tuple', 'set',
                                'dict', 'object', 'other')): value(depth + 1)
                    for _ in range(rng.randrange(1, 3))}

        seen = set()

        for _ in range(5000):
            line = json.dumps(value()).encode() + b'\n'
            line = line[rng.randrange(2) * rng.randrange(len(line)):]
            program = calling.Program(lambda line: None, lambda line=line:
                                      line)
            try:
                seen.add(type(program.reply('get', 0, 'f')))
            except calling.Ended:
                seen.add(None)

        self.assertEqual(seen, {tuple, None})

    def test_exceptions(self):
        for name, kind in (('ValueError', ValueError), ('KeyError', KeyError),
                           ('SystemExit', RuntimeError), ('print',
                                                          RuntimeError),
                           ('SkipTest', RuntimeError),
                           ('UnicodeDecodeError', RuntimeError)):
            self.assertIs(type(calling.exception(name, 'x')), kind)

    def test_prototypes(self):
        self.assertEqual(
            bridge.prototypes('int f(int a, x_t *b);\n'
                              'int g(const char *c);\n'),
            [('f', ['int', 'x_t *']), ('g', ['const char *'])])
        for text in ('int f(char **x);\n', 'void g(int x);\n',
                     'int f(double x);\n'):
            with self.assertRaises(ValueError):
                bridge.prototypes(text)


if __name__ == '__main__':
    unittest.main()
