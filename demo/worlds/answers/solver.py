# Copyright (C) The nginx-dsa authors

"""Solves puzzles of variables and clues by elimination, and writes down how."""

from dataclasses import dataclass
from itertools import permutations, product
from typing import Callable, Dict, List, Tuple


@dataclass(frozen=True)
class Clue:
    """
    texts   in words, for training and for evaluation
    about   the variables
    holds   (values of these variables) -> whether it holds
    parts   (about, holds) of conditions that together are the same, about
            fewer variables
    """
    texts: Tuple[str, str]
    about: Tuple[str, ...]
    holds: Callable
    parts: Tuple[tuple, ...] = ()


@dataclass
class Puzzle:
    """
    values    variable -> what it can be
    groups    of variables of which no two are equal
    clues
    solution  variable -> its value
    """
    values: Dict[str, list]
    groups: List[List[str]]
    clues: List[Clue]
    solution: Dict[str, object]


def assignments(puzzle):
    """Yields every assignment in which the groups have no equal values."""

    grouped = {v for g in puzzle.groups for v in g}
    free = [v for v in puzzle.values if v not in grouped]

    for orders in product(*(permutations(puzzle.values[g[0]], len(g))
                            for g in puzzle.groups)):
        for rest in product(*(puzzle.values[v] for v in free)):
            one = dict(zip(free, rest))
            for g, order in zip(puzzle.groups, orders):
                one.update(zip(g, order))
            yield one


class Contradiction(Exception):
    """A variable has no value left."""


def solve(puzzle, name='{} is {}', named='{} is not {}'):
    """Returns (solution, lines of the way).

    name, named   how a line writes that a variable has, or has not, a value
    """
    left = {v: list(x) for v, x in puzzle.values.items()}
    way = Way(puzzle, name, named)

    return {v: x[0] for v, x in way.search(left).items()}, way.lines


class Way:
    """The way to a solution, as lines.  left is variable -> the values that
    nothing excludes yet."""

    def __init__(self, puzzle, name, named):
        self.puzzle = puzzle
        self.name = name
        self.named = named
        self.lines = []

    def search(self, left):
        """Narrows what is left until each variable has one value, and returns
        it.  Raises Contradiction."""

        self.narrow(left)
        open_ones = [v for v in left if len(left[v]) > 1]

        if not open_ones:
            return left

        v = min(open_ones, key=lambda v: len(left[v]))

        for value in list(left[v]):
            self.lines.append(f'Suppose {self.name.format(v, value)}.')
            copied = {u: list(x) for u, x in left.items()}
            copied[v] = [value]

            try:
                return self.search(copied)
            except Contradiction as e:
                self.lines.append(f'{e} So {self.named.format(v, value)}.')

        raise Contradiction(f'Nothing is left for {v}.')

    def narrow(self, left):
        """Removes values that a clue or a group excludes, until none does."""

        changed = True

        while changed:
            changed = False

            for n, clue in enumerate(self.puzzle.clues, 1):
                gone = []
                for about, true in clue.parts or ((clue.about, clue.holds),):
                    gone += self.excluded(left, about, true)
                changed |= self.remove(left, gone, f'Clue {n}')

            for group in self.puzzle.groups:
                for v in group:
                    if len(left[v]) == 1:
                        changed |= self.remove(
                            left, [(u, left[v][0]) for u in group
                                   if u != v and left[v][0] in left[u]],
                            self.name.format(v, left[v][0]))

    def excluded(self, left, about, true):
        """Returns the (variable, value) for which a condition cannot hold."""

        found = []

        for i, v in enumerate(about):
            for value in left[v]:
                others = [[value] if j == i else left[u]
                          for j, u in enumerate(about)]
                if not any(differ(self.puzzle, about, one) and true(*one)
                           for one in product(*others)):
                    found.append((v, value))

        return found

    def remove(self, left, gone, why):
        """Removes values.  Returns whether there were any."""

        gone = list(dict.fromkeys(gone))

        if gone:
            self.lines.append(f'{why}: ' + ', '.join(
                self.named.format(v, x) for v, x in gone) + '.')

        for v, value in gone:
            left[v].remove(value)
            if not left[v]:
                raise Contradiction(f'Nothing is left for {v}.')

        return gone != []


def differ(puzzle, variables, values):
    """Whether variables of the same group have different values."""

    of = dict(zip(variables, values))

    for group in puzzle.groups:
        own = [of[v] for v in group if v in of]
        if len(set(own)) < len(own):
            return False

    return True


def make_unique(rng, puzzle, draw, tries=400):
    """Adds clues from draw(), which are true, until the puzzle has one
    solution, and drops those that it does not need.  Returns whether it
    could."""

    every = list(assignments(puzzle))
    column = {v: [one[v] for one in every] for v in puzzle.values}
    kept = []       # (clue, for which assignments it holds, as bits)
    left = (1 << len(every)) - 1

    for _ in range(tries):
        clue = draw()
        if clue.texts in [c.texts for c, _ in kept]:
            continue
        bits = int(''.join('1' if clue.holds(*values) else '0' for values
                           in zip(*(column[v] for v in clue.about))), 2)
        kept.append((clue, bits))
        left &= bits
        if left.bit_count() == 1:
            break
    else:
        return False

    for one in rng.sample(kept, len(kept)):
        others = [k for k in kept if k is not one]
        left = (1 << len(every)) - 1
        for _, bits in others:
            left &= bits
        if left.bit_count() == 1:
            kept = others

    puzzle.clues = rng.sample([c for c, _ in kept], len(kept))

    return True
