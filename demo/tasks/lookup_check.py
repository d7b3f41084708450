# Copyright (C) The nginx-dsa authors

"""Checks of answers to look-ups.  Each check returns None if the answer is
right, or else the reason.  An answer may repeat the words of the question."""

import re

from tasks.arithmetic_check import numbers


COUNTED = 'none one two three four five six seven eight'.split()


def has_value(answer, question, right, others):
    """The answer must have the right value and none of the others."""

    if isinstance(right, int):
        asked = numbers(question)
        found = [n for n in numbers(answer) if n == right or n not in asked]
        return None if found[-1:] == [right] else f'{found} is not {right}'

    if not has(answer, right):
        return f'{right} is not in the answer'

    for other in others:
        if other != right and has(answer, other) and not has(question, other):
            return f'{other} is in the answer too'

    return None


def has_key(answer, right, others):
    """The answer's last line must name the right record, by the words of its
    key, and none of the others."""

    line = last_line(answer)

    if not has(line, *right):
        return f'{right} is not in {line!r}'

    for other in others:
        if other != right and has(line, *other):
            return f'{other} is in {line!r} too'

    return None


def prefers(answer, right, other, step, against):
    """The answer's last line must name the right one of two records; or both,
    the right one first and with "than" or after it: 'A is older than B'.  step
    is the adjective of the question, against is its opposite."""

    line = last_line(answer)

    if not has(line, *other):
        return has_key(line, right, [])

    if not has(line, *right):
        return f'{right} is not in {line!r}'

    first = place(line, right) < place(line, other)

    if has(line, step) == has(line, against):
        return f'{line!r} tells nothing'

    return None if first == has(line, step) else f'{line!r} is wrong'


def counts(answer, n):
    """The last number of the answer must be n; small numbers may be words."""

    text = answer.lower()

    for i, word in enumerate(COUNTED):
        text = re.sub(rf'\b{word}\b', str(i), text)

    found = numbers(text)
    return None if found[-1:] == [n] else f'{found} is not {n}'


def in_order(answer, keys):
    """The last line with all the keys must have them in order."""

    for line in reversed(answer.split('\n')):
        if all(has(line, *key) for key in keys):
            at = [place(line, key) for key in keys]
            return None if at == sorted(at) else f'{line!r} is out of order'

    return 'no line has all'


def tells_each(answer, pairs):
    """For each (key, value), one sentence of the answer must name the key and
    have the value, and no value of another pair."""

    sentences = re.split(r'[.;]\s+|\n', answer.strip())

    for key, right in pairs:
        said = [s for s in sentences if has(s, *key)]

        if len(said) != 1:
            return f'{key} is in {len(said)} sentences'

        for value in [right] + [v for _, v in pairs if v != right]:
            if has(said[0], value) != (value == right):
                return f'{right} is not what {said[0]!r} says'

    return None


def last_line(answer):
    return answer.strip().split('\n')[-1]


def place(text, key):
    """Returns the position of a key in a text, or -1.  Its words must follow
    one another, with at most one word between two of them."""

    words = r'\W+(?:\w+\W+)?'.join(re.escape(str(w)) for w in key)
    m = re.search(rf'\b{words}\b', text, re.I)
    return m.start() if m else -1


def has(text, *words):
    """Returns true if the words are in a text in the way of a key."""

    return place(text, words) >= 0
