# Copyright (C) The nginx-dsa authors

"""General logic: a queue, honest people and liars, rooms with properties.

Clues are drawn until one solution is left, which is found by going through all
assignments.  The gold policy finds it by elimination (solver.py).
"""

import random

from tasks.task import CHAT, RETAIN, Step, Task, Turn
from worlds.answers.solver import Clue, Puzzle, make_unique, solve
from worlds.form import Family
from worlds.general.words import EVAL, TRAIN, Names, part_of


LEVELS = 5

ORDINAL = ('first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh')


class Kind:
    """
    text(names)        the request without the clues, for both parts
    answer(solution)   the text behind "Answer:"
    read(text)         the solution that such a text has, or None
    """

    def __init__(self, rng, part, level):
        self.rng = rng
        self.side = (TRAIN, EVAL).index(part)
        self.names = Names(rng, part).draw(self.people(level))
        self.puzzle = self.make()

        while not make_unique(rng, self.puzzle, self.clue):
            self.puzzle = self.make()


class Queue(Kind):
    """Who stands where.  A variable is a person, its value a place from 1."""

    name, named = '{} is at {}', '{} is not at {}'

    @staticmethod
    def people(level):
        return level + 2

    def make(self):
        places = list(range(1, len(self.names) + 1))
        order = self.rng.sample(self.names, len(self.names))

        return Puzzle({n: places for n in self.names}, [list(self.names)], [],
                      {n: order.index(n) + 1 for n in self.names})

    def clue(self):
        at, n = self.puzzle.solution, len(self.names)
        a, b, c = self.rng.sample(self.names, 3)
        k = self.rng.randint(1, n)
        options = [
            Clue((f'{a} stands somewhere before {b}.',
                  f'{b} comes later in the line than {a}.'),
                 (a, b), lambda x, y: x < y),
            Clue((f'{b} is right behind {a}.',
                  f'{a} is the one who precedes {b} directly.'),
                 (a, b), lambda x, y: y == x + 1),
            Clue((f'There is exactly one person between {a} and {b}.',
                  f'{a} and {b} have a single person between them.'),
                 (a, b), lambda x, y: abs(x - y) == 2),
            Clue((f'{a} is not the {ORDINAL[k - 1]} in the queue.',
                  f'Place {k} does not belong to {a}.'),
                 (a,), lambda x, k=k: x != k),
            Clue((f'{a} is at one of the two ends.',
                  f'{a} is either in front of all or behind all.'),
                 (a,), lambda x, n=n: x in (1, n)),
            Clue((f'{a} stands between {b} and {c}, but not necessarily next '
                  'to them.',
                  f'One of {b} and {c} is ahead of {a}, and the other one is '
                  'not.'),
                 (a, b, c), lambda x, y, z: min(y, z) < x < max(y, z)),
        ]

        return self.rng.choice([o for o in options
                                if o.holds(*(at[v] for v in o.about))]
                               or [self.clue()])

    def text(self):
        names = sorted(self.names)

        return (f'{", ".join(names)} stand in a queue. From the first to the '
                'last, in which order do they stand?',
                f'The following people wait in a line: {", ".join(names)}. '
                'Find out who is where, beginning at the front.'
                )[self.side]

    def form(self):
        return ('the names in their order, divided by commas',
                'all names from the front to the back with commas between '
                'them')[self.side]

    def answer(self, solution):
        return ', '.join(sorted(solution, key=solution.get))

    def read(self, text):
        order = [x.strip() for x in text.split(',')]

        return {n: i for i, n in enumerate(order, 1)} \
            if sorted(order) == sorted(self.names) else None


class Honest(Kind):
    """Who always tells the truth.  A value is 'honest' or 'liar'."""

    name, named = '{} is {}', '{} is not {}'

    @staticmethod
    def people(level):
        return level + 1

    def make(self):
        return Puzzle({n: ['honest', 'liar'] for n in self.names}, [], [],
                      {n: self.rng.choice(('honest', 'liar'))
                       for n in self.names})

    def clue(self):
        """Draws what somebody says, which is true if the speaker is
        honest."""

        is_ = self.puzzle.solution
        n = len(self.names)

        while True:
            a = self.rng.choice(self.names)
            others = [x for x in self.names if x != a]
            b = self.rng.choice(others)
            c = self.rng.choice(others)
            k = self.rng.randint(1, n)
            said = [
                ((f'{b} is a liar', f'never believe {b}'), (b,),
                 lambda x: x == 'liar'),
                ((f'{b} is honest', f'you can believe {b}'), (b,),
                 lambda x: x == 'honest'),
                ((f'{b} and I are of the same kind',
                  f'what I am, {b} is as well'), (a, b),
                 lambda x, y: x == y),
                ((f'of all of us, exactly {k} '
                  + ('is a liar' if k == 1 else 'are liars'),
                  f'the number of liars here is {k}'), tuple(self.names),
                 lambda *all_, k=k: all_.count('liar') == k),
            ]
            if b != c:
                said.append((
                    (f'at least one of {b} and {c} is a liar',
                     f'{b} and {c} are not both honest'), (b, c),
                    lambda x, y: 'liar' in (x, y)))
            words, about, holds = self.rng.choice(said)

            if holds(*(is_[v] for v in about)) == (is_[a] == 'honest'):
                return Clue(
                    (f'{a} says: "{words[0][0].upper()}{words[0][1:]}."',
                     f'According to {a}, "{words[1]}".'), (a, *about),
                    lambda x, *rest, holds=holds:
                    holds(*rest) == (x == 'honest'))

    def text(self):
        names = sorted(self.names)

        return (f'On an island live {", ".join(names)}. Honest people always '
                'say the truth, and liars never do. Who is honest?',
                f'Of {", ".join(names)}, each one either only makes true '
                'statements or only false ones. Which of them are the honest '
                'ones?')[self.side]

    def form(self):
        return ('the names of the honest people, divided by commas, or the '
                'word nobody',
                'who is honest, with commas between the names, or nobody'
                )[self.side]

    def answer(self, solution):
        return ', '.join(sorted(n for n in solution
                                if solution[n] == 'honest')) or 'nobody'

    def read(self, text):
        honest = [x.strip() for x in text.split(',')] \
            if text.lower() != 'nobody' else []

        return {n: 'honest' if n in honest else 'liar' for n in self.names} \
            if set(honest) <= set(self.names) \
            and len(set(honest)) == len(honest) else None


PROPERTIES = {
    TRAIN: (('door', ('red', 'blue', 'green', 'white')),
            ('pet', ('cat', 'dog', 'parrot', 'turtle')),
            ('drink', ('tea', 'milk', 'juice', 'water'))),
    EVAL: (('lamp', ('yellow', 'purple', 'brown', 'grey')),
           ('plant', ('fern', 'cactus', 'ivy', 'orchid')),
           ('fruit', ('apple', 'cherry', 'mango', 'lemon'))),
}


class Rooms(Kind):
    """Who has what.  A variable is "PERSON's PROPERTY"."""

    name, named = "{} is {}", "{} is not {}"

    SIZES = ((2, 2), (3, 1), (3, 2), (4, 2), (4, 3))    # people, properties

    def people(self, level):
        self.size = self.SIZES[level - 1]

        return self.size[0]

    def make(self):
        n, m = self.size
        self.properties = [
            (p, self.rng.sample(values, n)) for p, values in self.rng.sample(
                PROPERTIES[(TRAIN, EVAL)[self.side]], m)]
        values, groups, solution = {}, [], {}

        for p, own in self.properties:
            group = [f"{x}'s {p}" for x in self.names]
            groups.append(group)
            values.update({v: sorted(own) for v in group})
            solution.update(zip(group, self.rng.sample(own, n)))

        return Puzzle(values, groups, [], solution)

    def clue(self):
        rng, is_ = self.rng, self.puzzle.solution
        p, own = rng.choice(self.properties)
        x, y = rng.sample(self.names, 2)
        v, w = rng.sample(own, 2)
        options = [
            Clue((f"{x}'s {p} is not {v}.", f'The {p} of {x} is another one '
                  f'than {v}.'), (f"{x}'s {p}",), lambda a, v=v: a != v),
            Clue((f"Either {x}'s or {y}'s {p} is {v}.",
                  f'The {p} that is {v} belongs to {x} or to {y}.'),
                 (f"{x}'s {p}", f"{y}'s {p}"), lambda a, b, v=v: v in (a, b)),
            Clue((f"{x}'s {p} is {v} or {w}.",
                  f'For the {p} of {x} there are two possibilities: {v} and '
                  f'{w}.'), (f"{x}'s {p}",), lambda a, v=v, w=w: a in (v, w)),
        ]

        if len(self.properties) > 1:
            q, others = rng.choice([r for r in self.properties if r[0] != p])
            u = rng.choice(others)
            pairs = [(f"{n}'s {p}", f"{n}'s {q}") for n in self.names]
            options.append(Clue(
                (f'The one whose {p} is {v} has a {q} that is {u}.',
                 f'The {p} that is {v} and the {q} that is {u} belong to the '
                 'same person.'), sum(pairs, ()),
                lambda *all_, v=v, u=u: (v, u) in zip(all_[::2], all_[1::2]),
                tuple((pair, lambda a, b, v=v, u=u: (a == v) == (b == u))
                      for pair in pairs)))

        return rng.choice([o for o in options
                           if o.holds(*(is_[a] for a in o.about))]
                          or [self.clue()])

    def text(self):
        names = sorted(self.names)
        have = '; '.join(f'{p}: {", ".join(sorted(own))}'
                         for p, own in self.properties)

        return (f'{", ".join(names)} each have one of these, and no two have '
                f'the same: {have}. Who has what?',
                f'There are the persons {", ".join(names)}. Every one has '
                f'something of each of these, different from all others: '
                f'{have}. Work out what everyone has.')[self.side]

    def form(self):
        what = ', '.join(p for p, _ in self.properties)

        return (f'for each person the name, a colon, and what the person has '
                f'({what}), divided by commas; persons are divided by '
                'semicolons',
                f'"name: {what}" for everyone, with semicolons between them'
                )[self.side]

    def answer(self, solution):
        return '; '.join(
            f'{n}: ' + ', '.join(solution[f"{n}'s {p}"]
                                 for p, _ in self.properties)
            for n in sorted(self.names))

    def read(self, text):
        found = {}

        for part in text.split(';'):
            name, _, has = part.partition(':')
            has = [x.strip().lower() for x in has.split(',')]
            name = name.strip()
            if name not in self.names or len(has) != len(self.properties) \
                    or f"{name}'s {self.properties[0][0]}" in found:
                return None
            found.update({f"{name}'s {p}": x
                          for (p, _), x in zip(self.properties, has)})

        return found if len(found) == len(self.puzzle.solution) else None


KINDS = (Queue, Honest, Rooms)

FORM = {TRAIN: 'End with a line that begins with "Answer:" and has {form}.',
        EVAL: 'Your last line must be "Answer: " followed by {form}.'}


def kind_of(seed, level):
    """Returns the Kind of a seed, with its puzzle."""

    rng = random.Random(f'logic/{seed}/{level}')

    return rng.choice(KINDS)(rng, part_of(seed), level)


def request(kind):
    lines = [kind.text()]
    lines += [f'{n}. {c.texts[kind.side]}'
              for n, c in enumerate(kind.puzzle.clues, 1)]
    lines += [FORM[(TRAIN, EVAL)[kind.side]].format(form=kind.form())]

    return '\n'.join(lines)


LABEL = 'answer:'


def wrong(kind, answer):
    """Returns None if an answer has the solution, else the reason."""

    lines = [line.strip(' *') for line in answer.split('\n')]
    found = [line[len(LABEL):].strip(' *.') for line in lines
             if line.lower().startswith(LABEL)]

    if not found:
        return 'there is no line with Answer:'

    given = kind.read(found[-1])

    if given is None:
        return f'this is not an answer in the form: {found[-1][:200]}'

    return None if given == kind.puzzle.solution \
        else f'not the solution: {found[-1][:200]}'


def make(seed, level):
    kind = kind_of(seed, level)

    def gold(mode):
        solution, lines = solve(kind.puzzle, kind.name, kind.named)
        yield Step('' if mode == CHAT else '\n'.join(lines),
                   f'Answer: {kind.answer(solution)}')

    return Task(family='logic', kind='talk', modes=(RETAIN, CHAT),
                turns=[Turn(request(kind), lambda answer, calls:
                            wrong(kind, answer), gold)])


DRAWS = 4
POLICY = f'sample-{DRAWS}'


def attempt(seed, level, rng):
    """The policy POLICY: it draws so many assignments, and answers with the
    first that keeps all clues, or the last.  Returns an answer."""

    kind = kind_of(seed, level)
    puzzle = kind.puzzle

    for _ in range(DRAWS):
        one = {v: rng.choice(x) for v, x in puzzle.values.items()}
        for g in puzzle.groups:
            one.update(zip(g, rng.sample(puzzle.values[g[0]], len(g))))
        if all(c.holds(*(one[v] for v in c.about)) for c in puzzle.clues):
            break

    return f'Answer: {kind.answer(one)}'


def family():
    return Family('logic', make, LEVELS,
                  {'made_by': 'worlds.answers.logic'})
