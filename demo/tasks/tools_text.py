# Copyright (C) The nginx-dsa authors

"""Styles of users' requests, and the assistant's reasoning about tools."""

from tasks import digits, weigh
from tasks.task import CHAT, DISCARD
from tasks.wording import polite


LONGEST = 240           # letters of a request that is quoted


def ask(rng, *ways):
    """Returns one of the ways in the style of a user.  No way may begin with a
    name, which would lose its capital."""

    return polite(rng, rng.choice(ways))


def listed(words):
    """Returns 'a', 'a and b' or 'a, b and c'."""

    words = [str(w) for w in words]

    if len(words) == 1:
        return words[0]

    return ', '.join(words[:-1]) + ' and ' + words[-1]


class Notes:
    """The reasoning of one turn, step by step: the goal, the results so far,
    and what to do next.

    If reasoning is kept, a step adds only what is new.  If it is discarded, a
    step must repeat everything.  Without thinking it is empty.
    """

    def __init__(self, mode, wanted, user=''):
        """user is a request that the goal quotes instead of saying what is
        wanted, because a model copies words better than it finds others."""

        self.mode = mode
        self.goal = f'"{" ".join(user.split())}"' \
            if 0 < len(user) <= LONGEST else f'Wanted: {wanted}.'
        self.found = []
        self.begun = False
        self.pending = []

    def find(self, *found):
        """Notes results for the next step."""

        self.pending += found

    def think(self, then, *found):
        """Returns the reasoning of a step that has these results and goes on
        to do something."""

        first, self.begun = not self.begun, True
        found = self.pending + list(found)
        self.pending = []
        self.found += found

        if self.mode == CHAT:
            return ''

        said = self.found if self.mode == DISCARD else found

        if first or self.mode == DISCARD:
            said = [self.goal] + said

        return ' '.join(said + [then])


ANSWER = 'Now I can answer.'


def chosen(kit, call):
    """Returns the thought about the tool of a call, (name, arguments), and
    about its parameters."""

    name, arguments = call

    return f'{weigh.weighed(kit.tools, name)} ' \
        f'{weigh.filled(kit.tools[name].function, arguments)}.'


def compare(numbers, more, word):
    """Finds the largest (more) or smallest of numbers, a dict by name, one
    after another.  word is what the request calls it.  Returns its name, and
    lines of notes: first which sign wins, then each comparison with what is
    the best after it, so that no line needs what is far before it."""

    best, lines = None, [f'{word}: {">" if more else "<"} wins.']

    for name, n in numbers.items():
        if best is None:
            lines.append(f'{name} {n}.')
            best = name
            continue

        line = f'{name} {digits.compare(n, numbers[best])}'
        best = name if (n > numbers[best]) == more else best
        lines.append(f'{line}: {best} {numbers[best]}.')

    return best, lines + [f'So {best}.']
