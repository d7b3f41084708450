# Copyright (C) The nginx-dsa authors

"""A code interpreter: a tool that runs Python with state, in bubblewrap, and
tasks that need it.

A run has 120 seconds, a task 20 runs.  A run that is too long, or that ends the
process, loses the state, and its result has the reason.
"""

import json
import os
import random
import selectors
import subprocess
import time

from tasks.task import CHAT, RETAIN, Step, Task, Tool, Turn, function
from tasks.tools_check import says_number
from worlds.code import cage
from worlds.form import Family
from worlds.general.words import EVAL, Names, part_of


RUNS = 20
SECONDS = 120
LONGEST = 8_000         # characters of a result

INSIDE = '''
import ast, contextlib, io, json, sys, traceback

class Kept(io.StringIO):
    def write(self, text):
        if self.tell() < 100000:
            super().write(text[:100000])
        return len(text)

def run(code, scope):
    tree = ast.parse(code)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, "cell", "exec"), scope)
    if last is not None:
        value = eval(compile(last, "cell", "eval"), scope)
        if value is not None:
            print(repr(value))

sys.set_int_max_str_digits(20000)
scope, answers = {"__name__": "__main__"}, sys.stdout
for line in sys.stdin:
    out = Kept()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            run(json.loads(line), scope)
        except SystemExit:
            print("SystemExit")
        except BaseException:
            print(traceback.format_exc(limit=-1))
    answers.write(json.dumps(out.getvalue()) + "\\n")
    answers.flush()
'''


class Interpreter:
    """The tool of one task.  seconds is the limit of a run."""

    def __init__(self, seconds=SECONDS):
        self.seconds = seconds
        self.runs = 0
        self.process = None

    def tool(self):
        return Tool(function(
            'python', f'Runs Python and returns what it prints, and the value '
            f'of the last line. Variables stay. A run has {self.seconds} '
            f'seconds; there are {RUNS} runs. There is no network.',
            code='string'), lambda a: self.run(a['code']))

    def run(self, code):
        if self.runs == RUNS:
            raise ValueError(f'all {RUNS} runs are used')

        self.runs += 1

        try:
            if self.process is None:
                self.open()
            return {'output': self.answer(code)}

        except cage.NoCage as e:
            raise ValueError(str(e)) from None

    def open(self):
        cage.check()
        self.process = cage.start(
            {'inside.py': INSIDE}, ['/usr/bin/python3', '-I', 'inside.py'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, bufsize=0)
        os.set_blocking(self.process.stdin.fileno(), False)

    def close(self):
        if self.process is not None:
            cage.end(self.process)
            self.process.stdout.close()

            try:
                self.process.stdin.close()
            except OSError:     # what it did not read is lost
                pass

            self.process = None

    def __del__(self):
        self.close()

    def fail(self, why):
        self.close()
        raise ValueError(f'{why}; the variables are lost')

    def answer(self, code):
        deadline = time.monotonic() + self.seconds
        self.write(json.dumps(code).encode() + b'\n', deadline)
        line = self.line(deadline)

        try:
            text = json.loads(line)
        except (ValueError, RecursionError):
            text = None

        if not isinstance(text, str):
            self.fail('the interpreter was disturbed')

        if len(text) > LONGEST:
            text = text[:LONGEST] + '\n[the rest was cut off]'

        return text

    def write(self, data, deadline):
        """Writes to the process, which may not read."""

        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdin, selectors.EVENT_WRITE)

            while data:
                left = deadline - time.monotonic()

                if left <= 0 or not selector.select(left):
                    self.fail(f'more than {self.seconds} seconds')

                try:
                    data = data[os.write(self.process.stdin.fileno(), data):]
                except BlockingIOError:
                    pass
                except OSError:
                    self.fail('the interpreter ended')

    def line(self, deadline):
        """Returns the next line of the process."""

        kept = b''

        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)

            while not kept.endswith(b'\n'):
                left = deadline - time.monotonic()

                if left <= 0 or not selector.select(left):
                    self.fail(f'more than {self.seconds} seconds')

                piece = os.read(self.process.stdout.fileno(), 1 << 16)

                if piece == b'':
                    self.fail('the interpreter ended')

                kept += piece

                if len(kept) > 8 * 100_000 + 100:
                    self.fail('too much output')

        return kept


# problems: each returns (texts for training and evaluation, the answer, code
# of the gold policy, in runs, and a function that does the steps of that code
# by hand).  The answer is computed in another way than by that code.  The
# function passes the value of each step through its argument, which may
# change it.


def digit_sums(rng, names, level):
    top, s = 10 ** (level + 2), rng.randint(8, 12)

    # by digits: ways to reach a sum with one digit more

    ways = {0: 1}
    for _ in range(level + 2):
        more = {}
        for have, n in ways.items():
            for d in range(10):
                more[have + d] = more.get(have + d, 0) + n
        ways = more

    def by_hand(done):
        count = 0
        for n in range(top):
            count = done(count + (sum(map(int, str(n))) == s))
        return count

    return ((f'How many integers from 0 to {top - 1} have the digit sum {s}?',
             f'Count the numbers below {top}, with 0, whose digits add up to '
             f'{s}.'),
            ways[s],
            [f'sum(sum(map(int, str(n))) == {s} for n in range({top}))'],
            by_hand)


def table_mean(rng, names, level):
    groups = names.draw(level + 1)
    rows = [(rng.choice(groups), rng.randint(1, 99))
            for _ in range(8 * level + 4)]
    rows += [(g, rng.randint(1, 99)) for g in groups]
    best = sorted(groups, key=lambda g: (-sum(n for h, n in rows if h == g),
                                         g))[0]
    table = '\n'.join(f'{g},{n}' for g, n in rows)

    def by_hand(done):
        total = {g: 0 for g in groups}
        for g, n in rows:
            total[g] = done(total[g] + n)
        found = min(groups, key=lambda g: (-total[g], g))
        squares = 0
        for g, n in rows:
            if g == found:
                squares = done(squares + n * n)
        return squares

    return ((f'The table has a group and a number in each line. Find the '
             f'group with the largest sum of its numbers (of equal ones the '
             f'first by name). What is the sum of the squares of its '
             f'numbers?\n{table}',
             f'Below, every line is a group with a number. Which group has '
             f'the highest total (if several, the first in the alphabet)? '
             f'Give the total of the squares of its numbers.\n{table}'),
            sum(n * n for g, n in rows if g == best),
            [f'rows = [line.split(",") for line in """{table}""".split("\\n")]',
             'total = {}\n'
             'for g, n in rows:\n    total[g] = total.get(g, 0) + int(n)\n'
             'best = min(total, key=lambda g: (-total[g], g))',
             'sum(int(n) ** 2 for g, n in rows if g == best)'],
            by_hand)


def recurrence(rng, names, level):
    a, b, m = rng.randint(2, 9), rng.randint(1, 9), rng.choice((997, 1009))
    n = 10 ** (level + 1) + rng.randint(1, 99)

    # by powers of the matrix (a b; 1 0)

    def times(x, y):
        return [[sum(x[i][k] * y[k][j] for k in range(2)) % m
                 for j in range(2)] for i in range(2)]

    power, base, e = [[1, 0], [0, 1]], [[a, b], [1, 0]], n
    while e:
        if e & 1:
            power = times(power, base)
        base, e = times(base, base), e >> 1

    def by_hand(done):
        x, y = 0, 1
        for _ in range(n):
            x, y = y, done((a * y + b * x) % m)
        return x

    return ((f'Let x(0) = 0, x(1) = 1 and x(n) = {a} x(n-1) + {b} x(n-2). '
             f'What is x({n}) modulo {m}?',
             f'A sequence begins with 0 and 1; each next term is {a} times '
             f'the last plus {b} times the one before. Find the remainder of '
             f'the term with the index {n} (the first has the index 0) after '
             f'division by {m}.'),
            power[1][0],
            [f'x, y = 0, 1\nfor _ in range({n}):\n'
             f'    x, y = y, ({a} * y + {b} * x) % {m}', 'x'],
            by_hand)


PROBLEMS = (digit_sums, table_mean, recurrence)
LEVELS = 4

# the bounded policy does the steps without the tool, and one of so many is
# wrong by one

SLIP = 1000
POLICY = f'slip-{SLIP}'


def problem_of(seed, level):
    rng = random.Random(f'interpreter/{seed}/{level}')

    return rng.choice(PROBLEMS)(rng, Names(rng, part_of(seed)), level)


def attempt(seed, level, rng):
    """Returns the answer of one attempt of the bounded policy."""

    def done(value):
        return value if rng.random() >= 1 / SLIP \
            else value + rng.choice((-1, 1))

    *_, by_hand = problem_of(seed, level)

    return f'It is {by_hand(done)}.'


def make(seed, level):
    texts, answer, code, _ = problem_of(seed, level)
    text = texts[part_of(seed) == EVAL]
    interpreter = Interpreter()

    def gold(mode):
        def thought(words):
            return '' if mode == CHAT else words

        for cell in code:
            result, = yield Step(thought('I compute it.'),
                                 calls=[('python', {'code': cell})])
        value = result.get('output', '').strip()
        yield Step(thought(f'The result is {value}.'), f'It is {value}.')

    return Task(family='interpreter', kind='multi', modes=(RETAIN, CHAT),
                tools={'python': interpreter.tool()},
                turns=[Turn(text, lambda a, calls: says_number(a, answer,
                                                               text), gold)])


def family():
    return Family('interpreter', make, LEVELS,
                  {'made_by': 'worlds.code.interpreter'})
