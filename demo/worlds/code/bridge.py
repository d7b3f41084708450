# Copyright (C) The nginx-dsa authors

"""The files with which the tests of a repository run in one cage and its
program in another, joined by two pipes (descriptors 3 and 4).

Where tests run in the process of the program, the program can write their
report.  Here it only returns values; the test framework, the expected values
and the report are in the other cage.  Python: serving.py and calling.py.  C:
functions with the names of the program's, made from the prototypes of the
header as it was before any patch.
"""

import os
import re


MARK = '----junit----'

# what both sides begin with: descriptors 3 and 4 are the pipes, and what is
# printed goes to standard error

JOINED = 'exec {command} 3<&0 4>&1 0</dev/null 1>&2\n'

RUNNER = '''
import os, sys, unittest
from xml.sax.saxutils import quoteattr

class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.names = getattr(self, "names", []) + [test]

suite = unittest.defaultTestLoader.discover("tests", top_level_dir="tests")
result = Result()
suite.run(result)
failed = {t.id(): why for t, why in result.failures + result.errors}
sys.stdout = sys.stderr
print(%r)
print("<testsuites><testsuite>")
for t in getattr(result, "names", []):
    print("<testcase name=%%s>" %% quoteattr(t.id().rpartition(".")[2]))
    if t.id() in failed:
        print("<failure message=%%s/>" %% quoteattr(failed[t.id()][-2000:]))
    print("</testcase>")
print("</testsuite></testsuites>")
''' % MARK

# in place of the program's module, among the tests

MODULE = '''
import os

import calling

_asks, _answers = os.fdopen(4, "wb", 0), os.fdopen(3, "rb")
_program = calling.Program(_asks.write,
                           lambda: _answers.readline(calling.LONGEST))

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _program.ask("get", 0, name)
'''


def source(name):
    """Returns the text of a file of this folder."""

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    with open(path, encoding='utf-8') as f:
        return f.read()


def sides(repo, files, tests):
    """Returns what cage.run_both takes: (files, command) of the tests and of
    the program.

    files   of the repository, with patches; the tests' side has none of them
    tests   (path, text) of the test cases
    """
    make = {'python': python, 'c': c}[repo.language]
    test_files, test_script, program_files, program_script = make(repo)

    return tuple(({**own, '.run.sh': f'set -e\n{script}'},
                  ['/usr/bin/sh', '.run.sh'])
                 for own, script in (
                     ({**test_files, tests[0]: tests[1]}, test_script),
                     ({**files, **program_files}, program_script)))


def python(repo):
    module = repo.path[:-3]

    return ({'.junit.py': RUNNER, 'calling.py': source('calling.py'),
             repo.path: MODULE},
            JOINED.format(command='/usr/bin/python3 .junit.py'),
            {'.serving.py': source('serving.py')},
            '/usr/bin/python3 -m compileall -q . 1>&2\n'
            + JOINED.format(command=f'/usr/bin/python3 .serving.py {module}'))


def c(repo):
    header = repo.path[:-2] + '.h'
    text = repo.files[header]
    found = prototypes(text)
    build = 'gcc -Wall -O1 -o .run {sources} 1>&2\n'

    # with SIGPIPE, whether a program that has ended fails each test, or ends
    # the tests without a report, would depend on when it ends

    return ({header: text, '.stubs.c': stubs(header, found)},
            build.format(sources='tests/test.c .stubs.c -lcmocka')
            + f"trap '' PIPE\necho {MARK} 1>&2\nCMOCKA_MESSAGE_OUTPUT=xml "
            + JOINED.format(command='./.run').replace('exec ', ''),
            {'.serve.c': server(header, found)},
            build.format(sources=f'{repo.path} .serve.c')
            + JOINED.format(command='./.run'))


def prototypes(header):
    """Returns (name, [type of a parameter]) of each function of a header.
    Raises ValueError for what the bridge does not have."""

    found = []

    for name, parameters in re.findall(r'^int (\w+)\(([^)]*)\);$', header,
                                       re.M):
        types = [re.sub(r' ?\w+$', '', p.strip())
                 for p in parameters.split(',')]
        found.append((name, types))

        for t in types:
            if not re.fullmatch(r'int|const char \*|\w+ \*', t):
                raise ValueError(f'{name}: a parameter of the type {t}')

    if len(found) != header.count(');'):
        raise ValueError('a function does not return int')

    return found


TRANSPORT = '''
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
%s
#include "%s"

static void
put(const void *data, int n)
{
    static FILE  *f;

    f = f == NULL ? fdopen(4, "wb") : f;
    fwrite(&n, sizeof(int), 1, f);
    fwrite(data, n, 1, f);
    fflush(f);
}

static void
get(void *data, int size)
{
    int          n;
    static FILE  *f;

    f = f == NULL ? fdopen(3, "rb") : f;

    if (fread(&n, sizeof(int), 1, f) != 1 || n < 0 || n > size
        || (n > 0 && fread(data, n, 1, f) != 1))
    {
        %s;
    }
}
'''


def stubs(header, found):
    """Returns C source: functions that send their arguments to the program
    and return what it answers."""

    text = TRANSPORT % ('#include <cmocka.h>', header,
                        'fail_msg("the program ended")')

    for number, (name, types) in enumerate(found):
        named = [(t, f'a{i}') for i, t in enumerate(types)]
        pointers = [a for t, a in named if t.endswith('*')
                    and not t.startswith('const')]
        lines = [f'int  n = {number}, result;', 'put(&n, sizeof(n));']
        lines += [f'put({a}, strlen({a}) + 1);' if t.startswith('const')
                  else f'put({a}, sizeof(*{a}));' if t.endswith('*')
                  else f'put(&{a}, sizeof({a}));' for t, a in named]
        lines += ['get(&result, sizeof(result));']
        lines += [f'get({a}, sizeof(*{a}));' for a in pointers]
        lines += ['return result;']
        text += function('int', name, ', '.join(f'{t} {a}'
                                                for t, a in named), lines)

    return text


LONGEST = 1 << 16       # bytes of a text


def server(header, found):
    """Returns C source: main(), which answers calls until the tests end."""

    text = TRANSPORT % ('', header, 'exit(0)')
    numbers = range(len(found))

    for number, (name, types) in enumerate(found):
        named = [(t, f'a{i}') for i, t in enumerate(types)]
        lines = ['int  result;']
        lines += [f'static char  {a}[{LONGEST}];' if t.startswith('const')
                  else f'{t.rstrip(" *")}  {a};' for t, a in named]
        lines += [f'get({"" if t.startswith("const") else "&"}{a}, '
                  f'sizeof({a}));' for t, a in named]
        pointers = [a for t, a in named if t.endswith('*')
                    and not t.startswith('const')]
        given = ', '.join(f'&{a}' if a in pointers else a for _, a in named)
        lines += [f'result = {name}({given});', 'put(&result, '
                  'sizeof(result));']
        lines += [f'put(&{a}, sizeof({a}));' for a in pointers]
        text += function('static void', f'serve_{number}', 'void', lines)

    return text + function('int', 'main', 'void', [
        'int  n;', 'for ( ;; ) {', 'get(&n, sizeof(n));', 'switch (n) {',
        *(f'case {n}: serve_{n}(); break;' for n in numbers),
        'default: exit(1);', '}', '}'])


def function(kind, name, parameters, lines):
    return f'\n{kind}\n{name}({parameters})\n{{\n' + ''.join(
        f'    {line}\n' for line in lines) + '}\n'
