# Copyright (C) The nginx-dsa authors

"""The reasoning of the gold policies of the trip families."""

from tasks import digits
from tasks.task import CHAT, RETAIN, Step
from tasks.tools_text import compare


class Mind:
    """The thoughts so far, in their order, and the steps in which they are
    written.

    With RETAIN, a step has the thoughts that are new since the step before.
    With DISCARD, the reasoning of earlier steps is lost, so a step repeats all
    thoughts.
    """

    def __init__(self, mode):
        self.mode = mode
        self.thoughts = []
        self.told = 0

    def think(self, *thoughts):
        self.thoughts += thoughts

    def step(self, *calls):
        """Returns the step that makes these calls."""

        return Step(self.reasoning(), calls=list(calls))

    def answer(self, text):
        """Returns the step that ends the turn."""

        return Step(self.reasoning(), text)

    def reasoning(self):
        if self.mode == CHAT:
            return ''

        told = self.told if self.mode == RETAIN else 0
        self.told = len(self.thoughts)
        return '\n'.join(self.thoughts[told:])


def infos(kind, names, *keywords):
    """Returns the calls that query infos of each name."""

    return [(f'get_infos_by_{kind}',
             {'info_keywords': list(keywords), kind: name})
            for name in names]


def first_of(numbers, better, word):
    """Finds the least ('<') or the largest ('>') of name -> number; all
    numbers differ; word is what it is called.  Returns (thought, name), with
    the best so far behind each comparison: 'cheapest: < wins. Fir Inn 230. Owl
    Inn 180 and 230: 1<2 so 180<230: Owl Inn 180. So Owl Inn 180.'"""

    best, lines = compare(numbers, better == '>', word)

    return ' '.join(lines[:-1]) + f' So {best} {numbers[best]}.', best


def compared(name, number, limit, ok):
    """Returns the thought that a number satisfies a limit or not; ok has the
    signs that do: 'Rye Grill 3.8 and 4.0: 3<4 so 3.8<4.0 no.'"""

    held = digits.sign(number, limit) in ok
    return f'{name} {digits.compare(number, limit)} {"ok" if held else "no"}.'
