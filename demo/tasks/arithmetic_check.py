# Copyright (C) The nginx-dsa authors

"""Checks of answers to questions about numbers.  Each check returns None if
the answer is right, or else the reason."""

import re


# a minus is a sign unless something stands before it from which the number
# could be subtracted

NUMBER = re.compile(r'(?<![\w)])-?\d+(?:\.\d+)?|\d+(?:\.\d+)?')

UP = r'larg|great|bigg|high|more|most|max|>'
DOWN = r'small|less|least|low|few|min|<'


def numbers(text):
    """Returns the numbers of a text in order; 1,234 is one number."""

    text = re.sub(r'(?<=\d),(?=\d{3}(?!\d))', '', text)
    return [float(s) if '.' in s else int(s) for s in NUMBER.findall(text)]


def last_is(answer, n):
    """The last number of the answer must be n."""

    found = numbers(answer)

    if not found:
        return 'no number in the answer'

    if found[-1] != n:
        return f'{found[-1]} is not {n}'

    return None


def divides(answer, q, r):
    """The answer must end with the quotient and the rest; a rest of 0 may be
    left out."""

    last = answer.strip().split('\n')[-1]
    found = numbers(last)

    if found[-2:] == [q, r] and len(found) > 1:
        return None

    if r == 0 and found[-1:] == [q] \
            and not re.search('rest|remain|left', last, re.I):
        return None

    return f'{last!r} is not {q} rest {r}'


def picks(answer, right, numbers_given, up):
    """The answer must pick one of the given numbers: alone, or in a comparison
    with the others.  up: the largest was asked for, not the smallest."""

    line = answer.strip().split('\n')[-1]
    given = [n for n in numbers(line) if n in numbers_given]

    if right not in given:
        return f'{right} is not in {line!r}'

    if set(given) == {right}:
        return None

    said = claim(line, UP if up else DOWN, DOWN if up else UP)
    return None if said == right else f'{line!r} does not pick {right}'


def claim(line, asked, other):
    """Returns the number to which a line gives the property that was asked
    for."""

    n = r'(-?\d+)'
    m = re.search(rf'{n} *(?:is |are )?(?:the )?(?:{asked})', line, re.I)
    m = m or re.search(rf'\d *(?:is |are )?(?:the )?(?:{other})\w*'
                       rf'(?: than)? *{n}', line, re.I)
    m = m or re.search(rf'(?:{asked})[a-z]*(?: [a-z]+)*(?: is|:| =) *{n}',
                       line, re.I)
    return int(m.group(1)) if m else None


def affirms(answer, yes):
    """The answer must begin with yes or no."""

    word = re.match(r'\W*(yes|no)\b', answer.strip().split('\n')[-1], re.I)

    if word is None:
        return 'neither yes nor no'

    if (word.group(1).lower() == 'yes') != yes:
        return f'{word.group(1)} is wrong'

    return None


def lists(answer, right):
    """The last line of the answer must have these numbers in this order."""

    last = answer.strip().split('\n')[-1]
    found = numbers(last)

    return None if found[-len(right):] == right else f'{last!r} is not {right}'


def refuses(answer):
    """The answer must say that the model cannot work it out."""

    if re.search(r"can't|cannot|can not|not taught|not able|do not know"
                 r"|don't know", answer, re.I):
        return None

    return 'does not say that it cannot'
