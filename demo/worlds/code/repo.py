# Copyright (C) The nginx-dsa authors

"""Repositories with an issue as environments and tasks of a code agent.

An environment counts if its gold patch makes at least one failing test pass
(F2P > 0) and no passing test fail (P2F = 0).  Tests of both languages report in
JUnit's format: Python's by a runner around unittest, C's by cmocka.  They run
apart from the program that they test (bridge.py).
"""

import json
import random
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Dict

from tasks.task import CHAT, RETAIN, Step, Task, Tool, Turn, function
from worlds.code import bridge, cage, repos
from worlds.form import Family
from worlds.general.words import part_of


SECONDS = 60
LONGEST = 20_000        # characters of a file that is written
MOST_FILES = 20

def test_file(repo, tests):
    """Returns (path, text) of a file with test cases."""

    if repo.language == 'python':
        name = repo.path[:-3]
        return f'tests/test_{name}.py', (
            f'import sys\nimport unittest\n\nsys.path.insert(0, ".")\n'
            f'import {name}\n\n\nclass Tests(unittest.TestCase):\n{tests}')

    names = re.findall(r'^(test_\w+)\(', tests, re.M)

    return 'tests/test.c', (
        '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n'
        '#include <setjmp.h>\n#include <cmocka.h>\n\n'
        f'#include "../{repo.path[:-2]}.h"\n{tests}\n'
        'int\nmain(void)\n{\n    const struct CMUnitTest  tests[] = {\n'
        + ''.join(f'        cmocka_unit_test({n}),\n' for n in names)
        + '    };\n\n    return cmocka_run_group_tests(tests, NULL, NULL);\n'
          '}\n')


def run_tests(repo, files, tests):
    """Runs test cases, (path, text), on a repository.  Returns (name ->
    whether it passed, what both sides printed).  Without a report, no test
    passed."""

    report, errors = cage.run_both(*bridge.sides(repo, files, tests),
                                   SECONDS)

    return junit(report), f'{report}\n{errors}'


def junit(output):
    """Returns test name -> whether it passed, from a report."""

    _, mark, report = output.partition(bridge.MARK + '\n')

    try:
        root = ET.fromstring(report[report.index('<'):report.rindex('>') + 1])
    except (ValueError, ET.ParseError):
        return {}

    return {c.get('name'): c.find('failure') is None
            and c.find('error') is None for c in root.iter('testcase')}


@dataclass
class Environment:
    """
    repo, fault
    files   of the repository with the fault and its own tests
    patch   (path, old text, new text), the gold patch
    tests   (path, text), the test cases with the test patch
    """
    repo: object
    fault: object
    files: Dict[str, str]
    patch: tuple
    tests: tuple

    def patched(self):
        path, old, new = self.patch
        return {**self.files, path: self.files[path].replace(old, new, 1)}


def environment(rng, part):
    repo = rng.choice(repos.REPOS[part])

    return environment_of(repo, rng.choice(repo.faults))


def environment_of(repo, fault):
    files = dict(repo.files)
    whole = files[repo.path]

    if whole.count(fault.right) != 1:
        raise ValueError(f'{repo.path}: {fault.right!r} is not there once')

    # the patch has the whole lines, because the wrong text may be empty or
    # at several places

    files[repo.path] = whole.replace(fault.right, fault.wrong)
    old, new = lines_that_differ(files[repo.path], whole)
    path, text = test_file(repo, repo.tests)
    files[path] = text

    # the test cases of the other faults are hidden, too: what passes before
    # a patch has to pass after it

    return Environment(repo, fault, files, (repo.path, old, new),
                       test_file(repo, repo.tests + ''.join(
                           f.test for f in repo.faults)))


def lines_that_differ(a, b):
    """Returns the lines of each text that are not at the beginning or the end
    of the other, with one line before them."""

    x, y = a.splitlines(True), b.splitlines(True)
    i = 0
    while x[i] == y[i]:
        i += 1
    j = 0
    while x[-1 - j] == y[-1 - j] and j < min(len(x), len(y)) - i - 1:
        j += 1
    i = max(0, i - 1)

    return ''.join(x[i:len(x) - j]), ''.join(y[i:len(y) - j])


def counts(env):
    """Returns (F2P, P2F) of the gold patch, under the test patch."""

    before, _ = run_tests(env.repo, env.files, env.tests)
    after, _ = run_tests(env.repo, env.patched(), env.tests)

    return (sum(ok and not before.get(name, False)
                for name, ok in after.items()),
            sum(ok and not after.get(name, False)
                for name, ok in before.items()))


def is_sound(env):
    f2p, p2f = counts(env)
    return f2p > 0 and p2f == 0


class Work:
    """The repository of a task, and its tools."""

    def __init__(self, env):
        self.env = env
        self.files = dict(env.files)

    def tools(self):
        def tool(f, text, **arguments):
            return f.__name__, Tool(function(f.__name__, text, **arguments),
                                    lambda a: f(**a))

        return dict((
            tool(self.list_files, 'Lists the files of the repository.'),
            tool(self.read_file, 'Returns the text of a file.',
                 path='string'),
            tool(self.replace, 'Replaces a text, which must be in the file '
                 'once, by another.', path='string', old='string',
                 new='string'),
            tool(self.run_tests, 'Builds the repository, runs its tests, and '
                 'returns which passed.')))

    def list_files(self):
        return {'files': sorted(self.files)}

    def read_file(self, path):
        if path not in self.files:
            raise ValueError(f'no such file: {path[:80]}')

        return {'text': self.files[path]}

    def replace(self, path, old, new):
        text = self.read_file(path)['text']

        if old == '' or text.count(old) != 1:
            raise ValueError(f'the text is in {path} {text.count(old)} times')

        if len(text) + len(new) > LONGEST:
            raise ValueError('the file would be too long')

        self.files[path] = text.replace(old, new)

        return {'replaced': True}

    def run_tests(self):
        path = self.env.tests[0]

        try:
            passed, output = run_tests(self.env.repo, self.files,
                                       (path, self.files[path]))
        except cage.NoCage as e:
            raise ValueError(str(e)) from None

        shown = {'tests': {n: 'passed' if ok else 'failed'
                           for n, ok in passed.items()}}

        # the program may not have been built

        if not any(passed.values()):
            shown['output'] = output[-3000:]

        return shown

    def check(self):
        """Returns None if all tests pass under the test patch."""

        try:
            passed, _ = run_tests(self.env.repo, self.files,
                                  self.env.tests)
        except cage.NoCage as e:
            return str(e)

        if not passed:
            return 'the tests do not run'

        failed = [n for n, ok in passed.items() if not ok]

        return 'these tests fail: ' + ', '.join(failed) if failed else None


def make(seed, level):
    rng = random.Random(f'code/{seed}')
    env = environment(rng, part_of(seed))
    work = Work(env)

    def gold(mode):
        def thought(text):
            return '' if mode == CHAT else text

        path, old, new = env.patch
        yield Step(thought('I look at the files.'),
                   calls=[('list_files', {})])
        yield Step(thought(f'I read {path}.'),
                   calls=[('read_file', {'path': path})])
        yield Step(thought('This is the fault.'), calls=[
            ('replace', {'path': path, 'old': old, 'new': new})])
        yield Step(thought('I run the tests.'), calls=[('run_tests', {})])
        yield Step(content=f'I have repaired {path}.')

    return Task(family='code', kind='plan', modes=(RETAIN, CHAT),
                system='Repair the repository so that the issue is solved. '
                       'Tests that are not shown decide.',
                tools=work.tools(),
                turns=[Turn(env.fault.issue, lambda a, calls: work.check(),
                            gold)])


def family():
    return Family('code', make, 1, {'made_by': 'worlds.code.repo'})
