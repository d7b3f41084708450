# Copyright (C) The nginx-dsa authors

"""Programming: write a Python function whose steps are given in words.

A task of level N has N steps.  The answer is a program, which runs in
bubblewrap; its results are compared outside of it.  Which sequences of steps
there are is divided between training and evaluation, so that no program is in
both.
"""

import hashlib
import json
import random
import re
from dataclasses import dataclass
from typing import List, Tuple

from tasks.task import CHAT, RETAIN, Step, Task, Turn
from worlds.answers.operations import LISTS, NUMBERS
from worlds.code import cage, calling
from worlds.code.function import results
from worlds.form import Family
from worlds.general.words import EVAL, TRAIN, Names, part_of


LEVELS = 5
SAMPLES = 3         # that the request has
HIDDEN = 16

INTRO = {
    TRAIN: 'Write a Python function {name}({list}) that takes a list of '
           'integers and does these steps, one after another:',
    EVAL: 'I need a function called {name} in Python. Its only argument, '
          '{list}, is a list of integers, to which the following happens in '
          'this order:',
}

LAST = {
    TRAIN: 'It returns what the last step gives. Answer with the whole '
           'program in a block that begins with ```python.',
    EVAL: 'What is there after the last step is returned. Give me the '
          'complete source in a code block (```python).',
}

SAMPLE = {TRAIN: '{call} returns {value}.', EVAL: 'For example, {call} gives '
                                                  '{value}.'}

LIST = {TRAIN: ('numbers', 'items'), EVAL: ('values', 'data')}


@dataclass
class Problem:
    """
    part
    name      of the function
    variable  its parameter
    steps     [(Operation, parameter)]
    inputs    of the samples, then of the hidden tests
    """
    part: str
    name: str
    variable: str
    steps: List[tuple]
    inputs: List[List[int]]

    def result(self, xs, steps=None):
        """Returns what the function has to return for a list."""

        for operation, k in self.steps if steps is None else steps:
            xs = operation.result(xs, k)

        return xs

    def text(self):
        side = (TRAIN, EVAL).index(self.part)
        lines = [INTRO[self.part].format(name=self.name, list=self.variable)]
        lines += [f'{n}. {o.text(side, k)}'
                  for n, (o, k) in enumerate(self.steps, 1)]
        lines += [LAST[self.part]]
        lines += [SAMPLE[self.part].format(
            call=f'{self.name}({xs})', value=self.result(xs))
            for xs in self.inputs[:SAMPLES]]

        return '\n'.join(lines)

    def program(self, steps=None):
        """Returns the gold program."""

        lines = [f'def {self.name}({self.variable}):',
                 f'    xs = list({self.variable})']
        for operation, k in self.steps if steps is None else steps:
            lines += ['    ' + line for line in
                      operation.lines.replace('{k}', str(k)).split('\n')]

        return '\n'.join(lines + ['    return xs']) + '\n'

    def wrong(self, answer, inputs):
        """Returns None if the program of an answer is right for these inputs,
        else the reason."""

        text = program_of(answer)

        if text is None:
            return 'there is no block of Python'

        try:
            got = results(text, self.name, [[xs] for xs in inputs])
        except calling.Ended as e:
            return str(e)
        except cage.NoCage as e:
            return f'the program cannot be run: {e}'

        for xs, (value, error) in zip(inputs, got):
            if error is not None:
                return f'{self.name}({xs}): {error[0]}: {error[1][:200]}'

            if not same(value, self.result(xs)):
                return f'{self.name}({xs}) is not {str(value)[:200]}'

        return None

    def passes_samples(self, answer):
        """Whether the program of an answer is right for the samples that the
        request has."""

        return self.wrong(answer, self.inputs[:SAMPLES]) is None


BLOCK = re.compile(r'```(?:python|py)?[ \t]*\n(.*?)```', re.S)


def program_of(answer):
    """Returns the last block of source in an answer, or None."""

    found = BLOCK.findall(answer)

    return found[-1] if found else None


def same(value, wanted):
    """Whether a value is the wanted number or list, in its type, too."""

    if type(value) is not type(wanted):
        return False

    if type(wanted) is list:
        return len(value) == len(wanted) and all(map(same, value, wanted))

    return value == wanted


def draw_steps(rng, level):
    """Draws a sequence of operations; no two neighbours are the same one."""

    while True:
        steps = [rng.choice(LISTS) for _ in range(level - 1)]
        steps.append(rng.choice(LISTS + NUMBERS))

        if all(a is not b for a, b in zip(steps, steps[1:])):
            return [(o, o.draw(rng)) for o in steps]


def part_of_steps(steps):
    """Returns the part to which a sequence of operations belongs."""

    names = ' '.join(o.name for o, _ in steps)
    digest = hashlib.sha256(names.encode()).digest()

    return (TRAIN, EVAL)[digest[0] % 2]


def draw_input(rng, n):
    """Draws a list; the first ones are those that programs forget."""

    if n < 3:
        return [[], [rng.randint(-9, 9)], [rng.randint(1, 3)] * 4][n]

    return [rng.randint(-20, 40) for _ in range(rng.randint(5, 9))]


def problem_of(seed, level):
    """Returns the Problem of a seed."""

    rng = random.Random(f'programming/{seed}/{level}')
    part = part_of(seed)

    while True:
        steps = draw_steps(rng, level)
        samples = [draw_input(rng, 3) for _ in range(SAMPLES)]
        problem = Problem(part, Names(rng, part).draw(1)[0].lower(),
                          rng.choice(LIST[part]), steps,
                          samples + [draw_input(rng, n)
                                     for n in range(HIDDEN)])

        # every step must change something, in a sample too

        if part_of_steps(steps) == part and all(
                any(problem.result(xs) != problem.result(
                    xs, steps[:n] + steps[n + 1:]) for xs in samples)
                for n in range(level)):
            return problem


def make(seed, level):
    problem = problem_of(seed, level)

    def gold(mode):
        notes = [f'Step {n}, {o.name}: '
                 + '; '.join(o.lines.replace('{k}', str(k)).split('\n'))
                 for n, (o, k) in enumerate(problem.steps, 1)]
        xs = problem.inputs[0]
        notes.append(f'{xs}')
        for o, k in problem.steps:
            xs = o.result(xs, k)
            notes.append(f'-> {xs}')

        yield Step('' if mode == CHAT else '\n'.join(notes),
                   f'```python\n{problem.program()}```')

    return Task(family='programming', kind='talk', modes=(RETAIN, CHAT),
                turns=[Turn(problem.text(), lambda answer, calls:
                            problem.wrong(answer, problem.inputs), gold)])


DRAWS = 32
POLICY = f'sample-{DRAWS}'


def attempt(seed, level, rng):
    """The policy POLICY: it draws so many sequences of as many steps, and
    answers with the first that is right for the samples, or the last.
    Returns an answer."""

    problem = problem_of(seed, level)
    wanted = [json.dumps(problem.result(xs))
              for xs in problem.inputs[:SAMPLES]]

    for _ in range(DRAWS):
        steps = draw_steps(rng, level)
        if [json.dumps(problem.result(xs, steps))
                for xs in problem.inputs[:SAMPLES]] == wanted:
            break

    return f'```python\n{problem.program(steps)}```'


def family():
    return Family('programming', make, LEVELS,
                  {'made_by': 'worlds.answers.programming'})
