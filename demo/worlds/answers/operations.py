# Copyright (C) The nginx-dsa authors

"""What the steps of a programming task do to a list of integers.

Each operation is there twice, written by hand and differently: as lines of
Python for the gold policy, and as a function, from which the expected results
come.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Callable, Tuple


@dataclass(frozen=True)
class Operation:
    """
    name
    texts      the step in words, for training and for evaluation; {k} is the
               parameter
    lines      Python that changes the list xs; the last operation of a task
               may make it a number
    result     (xs, k) -> the list or the number
    draw       rng -> k, or None if there is no parameter
    """
    name: str
    texts: Tuple[str, str]
    lines: str
    result: Callable
    draw: Callable = lambda rng: None

    def text(self, part, k):
        return self.texts[part].format(k=k)


def small(low, high):
    return lambda rng: rng.randint(low, high)


def inserted(xs, key=lambda x: x):
    """Returns a list in order: a stable sort by insertion."""

    ordered = []

    for x in xs:
        n = len(ordered)
        while n > 0 and key(ordered[n - 1]) > key(x):
            n -= 1
        ordered.insert(n, x)

    return ordered


def longest_run(xs, k):
    best = 0

    for i in range(len(xs)):
        j = i + 1
        while j < len(xs) and xs[j] > xs[j - 1]:
            j += 1
        best = max(best, j - i)

    return best


def swapped(xs, k):
    pairs = [xs[i:i + 2][::-1] for i in range(0, len(xs), 2)]

    return [x for pair in pairs for x in pair]


LISTS = (
    Operation('multiples', ('Keep only the multiples of {k}.',
                            'Throw away what {k} does not divide.'),
              'xs = [x for x in xs if x % {k} == 0]',
              lambda xs, k: list(filter(lambda x: x // k * k == x, xs)),
              small(2, 4)),
    Operation('below', ('Drop all numbers greater than {k}.',
                        'Nothing above {k} stays in the list.'),
              'xs = [x for x in xs if x <= {k}]',
              lambda xs, k: [x for x in xs if not x > k], small(5, 12)),
    Operation('sorted', ('Sort the numbers in ascending order.',
                         'Arrange the list from the smallest to the largest.'),
              'xs = sorted(xs)', lambda xs, k: inserted(xs)),
    Operation('by_digit', (
        'Sort by the last digit of the absolute value; numbers with the same '
        'one keep their order.',
        'Arrange the list by the final digit, without regard to the sign; '
        'where it is equal, the order stays.'),
        'xs = sorted(xs, key=lambda x: abs(x) % 10)',
        lambda xs, k: inserted(xs, lambda x: int(str(x)[-1]))),
    Operation('reversed', ('Reverse the list.',
                           'Turn the list around, so that the last is first.'),
              'xs = xs[::-1]', lambda xs, k: list(reversed(xs))),
    Operation('distinct', (
        'Remove numbers that occurred before.',
        'Of equal values only the first may remain.'),
        'seen = []\nfor x in xs:\n    if x not in seen:\n'
        '        seen.append(x)\nxs = seen',
        lambda xs, k: list(dict.fromkeys(xs))),
    Operation('sums', (
        'Replace each number by the sum of all up to it.',
        'Every place gets the total of the list as far as that place.'),
        'total, sums = 0, []\nfor x in xs:\n    total += x\n'
        '    sums.append(total)\nxs = sums',
        lambda xs, k: list(accumulate(xs))),
    Operation('differences', (
        'Replace the list by the differences of neighbours, the right one '
        'minus the left one.',
        'Go on with how much each value exceeds the one before it; the first '
        'has none.'),
        'xs = [b - a for a, b in zip(xs, xs[1:])]',
        lambda xs, k: [xs[i] - xs[i - 1] for i in range(1, len(xs))]),
    Operation('squares', ('Square every number.',
                          'Multiply each value by itself.'),
              'xs = [x * x for x in xs]',
              lambda xs, k: [pow(x, 2) for x in xs]),
    Operation('add_index', (
        'Add to each number its index, counted from 0.',
        'Increase every value by the number of values before it.'),
        'xs = [x + i for i, x in enumerate(xs)]',
        lambda xs, k: [sum(pair) for pair in zip(xs, range(len(xs)))]),
    Operation('even_places', (
        'Keep the first, the third, the fifth number, and so on.',
        'Skip every second value, beginning with the second.'),
        'xs = xs[::2]',
        lambda xs, k: [xs[i] for i in range(len(xs)) if i % 2 == 0]),
    Operation('rotated', (
        'Move the first number to the end; do this {k} times.',
        'Rotate the list by {k} places to the left.'),
        'for _ in range({k}):\n    xs = xs[1:] + xs[:1]',
        lambda xs, k: [xs[(i + k) % len(xs)] for i in range(len(xs))],
        small(1, 3)),
    Operation('swapped', (
        'Exchange the first with the second number, the third with the '
        'fourth, and so on; a last one without a partner stays.',
        'Within each pair of neighbours, counted from the front without '
        'overlap, switch the places; a value that is left over is not moved.'),
        'for i in range(0, len(xs) - 1, 2):\n'
        '    xs = xs[:i] + [xs[i + 1], xs[i]] + xs[i + 2:]', swapped),
    Operation('digits', (
        'Replace each number by the sum of its digits; the sign does not '
        'matter.',
        'Every value becomes the total of the digits with which it is '
        'written, whatever its sign.'),
        'xs = [sum(int(d) for d in str(abs(x))) for x in xs]',
        lambda xs, k: [sum(abs(x) // 10 ** n % 10 for n in range(20))
                       for x in xs]),
    Operation('rising', (
        'Drop every number that is not greater than the one before it in the '
        'list; the first stays.',
        'Only values that exceed their left neighbour remain, and the first '
        'one.'),
        'xs = xs[:1] + [b for a, b in zip(xs, xs[1:]) if b > a]',
        lambda xs, k: [x for i, x in enumerate(xs)
                       if i == 0 or xs[i - 1] < x]),
    Operation('groups', (
        'Replace each {k} numbers in a row by their sum; fewer at the end are '
        'summed, too.',
        'Cut the list into pieces of {k} values, of which the last may be '
        'shorter, and go on with the totals of the pieces.'),
        'xs = [sum(xs[i:i + {k}]) for i in range(0, len(xs), {k})]',
        lambda xs, k: [sum(x for j, x in enumerate(xs) if j // k == i)
                       for i in range(-(-len(xs) // k))], small(2, 3)),
)

NUMBERS = (
    Operation('sum', ('Return the sum.', 'The result is the total.'),
              'xs = sum(xs)', lambda xs, k: [*accumulate(xs), *[0] * (
                  not xs)][-1]),
    Operation('largest', (
        'Return the largest number, or 0 for an empty list.',
        'The result is the greatest value; of no values it is 0.'),
        'xs = max(xs) if xs else 0', lambda xs, k: (inserted(xs) or [0])[-1]),
    Operation('kinds', (
        'Return how many different numbers there are.',
        'The result is the count of distinct values.'),
        'xs = len(set(xs))', lambda xs, k: len(dict.fromkeys(xs))),
    Operation('alternating', (
        'Return the first number minus the second plus the third, and so on.',
        'The result adds the values with alternating signs, beginning with '
        'plus.'),
        'total = 0\nfor i, x in enumerate(xs):\n'
        '    total += x if i % 2 == 0 else -x\nxs = total',
        lambda xs, k: sum(xs[::2]) - sum(xs[1::2])),
    Operation('run', (
        'Return the length of the longest part without a gap in which each '
        'number is greater than the one before.',
        'The result is how many values the longest strictly increasing '
        'stretch of neighbours has.'),
        'best = now = 0\nfor i, x in enumerate(xs):\n'
        '    now = now + 1 if i > 0 and x > xs[i - 1] else 1\n'
        '    best = max(best, now)\nxs = best', longest_run),
)
