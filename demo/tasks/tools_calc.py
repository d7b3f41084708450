# Copyright (C) The nginx-dsa authors

"""The calculator: + - * / and parentheses over decimal numbers, exactly.

The grammar is read from left to right, with a function for each rule:

    sum     = product { ("+" | "-") product }
    product = factor { ("*" | "/") factor }
    factor  = "-" factor | "(" sum ")" | number
"""

import re
from fractions import Fraction


LENGTH = 200        # characters of an expression
DEPTH = 20          # of parentheses and signs
LARGEST = 10 ** 11  # of a result; with PLACES a double can still hold it
PLACES = 4          # decimals of a result

TOKEN = re.compile(r'\s*([0-9]+(?:\.[0-9]+)?|[-+*/()])')


def calculate(expression):
    """Returns {"result": number}; raises ValueError."""

    return {'result': short(value(expression))}


def value(expression):
    """Returns the exact value of an expression, a Fraction."""

    tokens = split(expression)
    result, rest = read_sum(tokens, 0, 0)

    if rest != len(tokens):
        raise ValueError('unexpected ' + tokens[rest])

    return result


def short(number):
    """Returns a Fraction in the form for JSON: an integer, or with as many
    decimals as needed, at most PLACES."""

    if abs(number) >= LARGEST:
        raise ValueError('number too large')

    number = round(number, PLACES)

    if number.denominator == 1:
        return int(number)

    return float(number)


def split(text):
    """Returns the tokens of an expression."""

    text = text.strip()

    if len(text) > LENGTH:
        raise ValueError('expression too long')

    tokens, at = [], 0

    while at < len(text):
        m = TOKEN.match(text, at)

        if m is None:
            raise ValueError('unexpected ' + text[at:].strip()[0])

        tokens.append(m.group(1))
        at = m.end()

    return tokens


# Each of these functions reads its rule from tokens[at:].  It returns the
# value and the index of the first token after the rule.

def read_sum(tokens, at, depth):
    left, at = read_product(tokens, at, depth)

    while at < len(tokens) and tokens[at] in '+-':
        right, after = read_product(tokens, at + 1, depth)
        left = left + right if tokens[at] == '+' else left - right
        at = after

    return left, at


def read_product(tokens, at, depth):
    left, at = read_factor(tokens, at, depth)

    while at < len(tokens) and tokens[at] in '*/':
        right, after = read_factor(tokens, at + 1, depth)

        if tokens[at] == '*':
            left *= right
        elif right == 0:
            raise ValueError('division by zero')
        else:
            left /= right

        at = after

    return left, at


def read_factor(tokens, at, depth):
    if depth > DEPTH:
        raise ValueError('expression too deep')

    if at == len(tokens):
        raise ValueError('unexpected end')

    if tokens[at] == '-':
        number, at = read_factor(tokens, at + 1, depth + 1)
        return -number, at

    if tokens[at] == '(':
        number, at = read_sum(tokens, at + 1, depth + 1)

        if at == len(tokens) or tokens[at] != ')':
            raise ValueError('missing )')

        return number, at + 1

    if not tokens[at][0].isdigit():
        raise ValueError('unexpected ' + tokens[at])

    return Fraction(tokens[at]), at + 1
