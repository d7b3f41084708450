# Copyright (C) The nginx-dsa authors

"""Works out expressions, one operation after the other.

An expression is an integer or (operator, left, right) with the operators + - *
and / (the quotient) and % (the rest).  The two operators of division occur
only alone, and their divisor has one digit.
"""

from tasks import digits


WRITE = {'+': digits.add, '-': digits.sub, '*': digits.mul,
         '/': digits.divmod_, '%': digits.divmod_}
VALUE = {'+': lambda a, b: a + b, '-': lambda a, b: a - b,
         '*': lambda a, b: a * b, '/': lambda a, b: a // b,
         '%': lambda a, b: a % b}
BINDS = {'+': 1, '-': 1, '*': 2, '/': 2, '%': 2}


def text(e):
    """Returns an expression as text.  Without parentheses the operations are
    done from the left.  Both kinds of division are written a/b."""

    if isinstance(e, int):
        return str(e)

    op, left, right = e
    left_text, right_text = text(left), text(right)

    if isinstance(left, tuple) and BINDS[left[0]] < BINDS[op]:
        left_text = f'({left_text})'

    if isinstance(right, tuple) and BINDS[right[0]] <= BINDS[op]:
        right_text = f'({right_text})'

    return left_text + op.replace('%', '/') + right_text


def value(e):
    if isinstance(e, int):
        return e

    op, left, right = e
    return VALUE[op](value(left), value(right))


def operations(e):
    """Returns the operations of an expression as (operator, number, number),
    in an order in which they can be done."""

    if isinstance(e, int):
        return []

    op, left, right = e
    return operations(left) + operations(right) \
        + [(op, value(left), value(right))]


def work(e):
    """Returns the lines that work an expression out; the last line has the
    value."""

    todo = operations(e)

    if len(todo) == 1:
        op, a, b = todo[0]
        return WRITE[op](a, b)

    lines = []

    for i, (op, a, b) in enumerate(todo):
        lines.append(f'{"then" if i else "first"} {a}{op}{b}')
        lines += WRITE[op](a, b)

    return lines + [f'{text(e)}={value(e)}']
