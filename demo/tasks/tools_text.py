# Copyright (C) The nginx-dsa authors

"""How users put things, and how the assistant thinks about tools."""

from tasks.task import CHAT, DISCARD
from tasks.wording import polite


def ask(rng, *ways):
    """Returns one of the ways to say something, as a user may type it.  No
    way may begin with a name, which would lose its capital."""

    return polite(rng, rng.choice(ways))


def listed(words):
    """'a', 'a and b', 'a, b and c'"""

    words = [str(w) for w in words]

    if len(words) == 1:
        return words[0]

    return ', '.join(words[:-1]) + ' and ' + words[-1]


class Notes:
    """The reasoning of one turn, step after step: what is wanted, what was
    found, what comes next.

    Where reasoning is kept, a step adds what is new.  Where it is discarded,
    a step has to say all of it again.  Without thinking it says nothing.
    """

    def __init__(self, mode, wanted):
        self.mode = mode
        self.wanted = wanted
        self.found = []
        self.begun = False
        self.pending = []

    def find(self, *found):
        """Notes for the next step what was found."""

        self.pending += found

    def think(self, then, *found):
        """Returns the reasoning of a step that found something and goes on
        to do something."""

        first, self.begun = not self.begun, True
        found = self.pending + list(found)
        self.pending = []
        self.found += found

        if self.mode == CHAT:
            return ''

        said = self.found if self.mode == DISCARD else found

        if first or self.mode == DISCARD:
            said = [f'Wanted: {self.wanted}.'] + said

        return ' '.join(said + [then])


ANSWER = 'Now I can answer.'


def compare(numbers, more):
    """Finds the most of numbers (a dict by name) if more, else the least,
    one after another.  Returns its name, and a line of notes for each."""

    best, lines = None, []

    for name, n in numbers.items():
        if best is None:
            lines.append(f'{name} {n}, best so far.')
            best = name
            continue

        is_more = n > numbers[best]
        word = 'more' if is_more else 'less'
        line = f'{name} {n}, {word} than {numbers[best]}'

        if is_more == more:
            line += ', best so far'
            best = name

        lines.append(line + '.')

    return best, lines
