# Copyright (C) The nginx-dsa authors

"""Arithmetic written out digit by digit, for reasoning that can be followed
token by token.

Every function takes integers from 0 to below LIMIT and returns a list of short
lines.  The last line always has the whole result, as in '638+75=713'.  The
lines follow three rules, so that each next character is either copied from
nearby or is one fact of a small table:

 * a number is first spelled from its last digit on, each digit after the
   name of its place: the column "tens" finds its digits after the word
   "tens", wherever they are;
 * a column does one fact (7+6+1=14), and then writes the carry;
 * the result grows at its left: "so" is followed by the new digit and a copy
   of the text after the last "so".  The digits of the result are never
   collected from distant places.

add(638, 75) is

    638: ones 8 tens 3 hundreds 6
    75: ones 5 tens 7 hundreds 0
    ones 8+5=13 carry 1 so 3
    tens 3+7+1=11 carry 1 so 13
    hundreds 6+0+1=7 so 713
    638+75=713
"""


import re
from itertools import zip_longest


TEXT = re.compile(r'[0-9.:-]+')
PLACES = ('ones', 'tens', 'hundreds', 'thousands', 'myriads', 'lakhs')
LIMIT = 10 ** len(PLACES)


def add(a, b):
    """Returns the lines of a+b; one line if both have one digit or one of them
    is 0."""

    check(a, b)

    if max(a, b) < 10 or min(a, b) == 0:
        return [f'{a}+{b}={a + b}']

    n = max(len(str(a)), len(str(b)))
    lines = [spell(a, n), spell(b, n)]
    carry, so = 0, ''

    for i in range(n):
        x, y = digit(a, i), digit(b, i)
        s = x + y + carry
        fact = f'{PLACES[i]} {x}+{y}' + (f'+{carry}' if i > 0 else '')

        if i == n - 1:
            lines.append(f'{fact}={s} so {s}{so}')
            break

        so = f'{s % 10}{so}'
        carry = s // 10
        lines.append(f'{fact}={s} carry {carry} so {so}')

    return lines + [f'{a}+{b}={a + b}']


def sub(a, b):
    """Returns the lines of a-b.  If a is less than b, these are the lines of
    b-a, followed by the sign:

        638: ones 8 tens 3 hundreds 6
        75: ones 5 tens 7 hundreds 0
        ones 8-5=3 borrow 0 so 3
        tens 3-7-0<0 13-7-0=6 borrow 1 so 63
        hundreds 6-0-1=5 so 563
        638-75=563
    """
    check(a, b)

    if max(a, b) < 10 or b == 0:
        return [f'{a}-{b}={a - b}']

    if a < b:
        return [compare(a, b)] + sub(b, a) + [f'{a}-{b}={a - b}']

    n = len(str(a))
    lines = [spell(a, n), spell(b, n)]
    borrow, so = 0, ''

    for i in range(n):
        x = digit(a, i)
        rest = f'-{digit(b, i)}' + (f'-{borrow}' if i > 0 else '')
        d = x - digit(b, i) - borrow
        fact = f'{PLACES[i]} {x}{rest}'
        borrow = 0

        if d < 0:
            d += 10
            borrow = 1
            fact = f'{fact}<0 1{x}{rest}'

        so = f'{d}{so}'
        end = f'so {so}' if i == n - 1 else f'borrow {borrow} so {so}'
        lines.append(f'{fact}={d} {end}')

    return lines + [f'{a}-{b}={a - b}']


def mul(a, b):
    """Returns the lines of a*b.  The number with more digits is multiplied by
    each digit of the other that is not 0, then the parts are added:

        247: ones 7 tens 4 hundreds 2
        ones 7*6=42 carry 4 so 2
        tens 4*6=24 24+4=28 carry 2 so 82
        hundreds 2*6=12 12+2=14 so 1482
        247*6=1482

    247*36 continues with 247*3=741, 247*30=7410, the lines of 1482+7410, and
    247*36=8892.
    """
    check(a, b)

    if a * b >= LIMIT:
        raise ValueError('a product of too many digits')

    last = f'{a}*{b}={a * b}'

    if max(a, b) < 10 or min(a, b) < 2:
        return [last]

    x, y = (a, b) if len(str(a)) >= len(str(b)) else (b, a)
    lines, parts = [spell(x, len(str(x)))], []

    for i in range(len(str(y))):
        d = digit(y, i)

        if d == 0:
            continue

        lines += mul_digit(x, d)
        parts.append(x * d * 10 ** i)

        if i > 0:
            lines.append(f'{x}*{d * 10 ** i}={parts[-1]}')

    if len(parts) > 1:
        lines += sum_list(parts)

    return lines if lines[-1] == last else lines + [last]


def mul_digit(x, d):
    """Returns the lines of a spelled number multiplied by a digit."""

    if d == 1:
        return [f'{x}*1={x}']

    lines, carry, so = [], 0, ''
    n = len(str(x))

    for i in range(n):
        p = digit(x, i) * d
        fact = f'{PLACES[i]} {digit(x, i)}*{d}={p}'

        if i > 0:
            fact = f'{fact} {p}+{carry}={p + carry}'
            p += carry

        if i == n - 1:
            lines.append(f'{fact} so {p}{so}')
            break

        so = f'{p % 10}{so}'
        carry = p // 10
        lines.append(f'{fact} carry {carry} so {so}')

    return lines + [f'{x}*{d}={x * d}']


def divmod_(a, d):
    """Returns the lines of a divided by a digit of 1 to 9.  The number before
    the bar is divided next, the digits after it follow later:

        7|58 7/6=1 rest 1 so 1
        15|8 15/6=2 rest 3 so 12
        38| 38/6=6 rest 2 so 126
        758/6=126 rest 2
    """
    check(a, d)

    if not 1 <= d <= 9:
        raise ValueError('a divisor must have one digit and not be 0')

    lines, rest, so = [], 0, ''
    s = str(a)

    if a >= 10:
        for i, c in enumerate(s):
            now = rest * 10 + int(c)
            rest = now % d
            so += str(now // d)
            lines.append(f'{now}|{s[i + 1:]} {now}/{d}={now // d} '
                         f'rest {rest} so {so}')

    return lines + [f'{a}/{d}={a // d} rest {a % d}']


def compare(a, b):
    """Returns the line that finds the larger of two numbers, integers or
    decimals, by the lengths before the point, or by the first digit that
    differs:

        638 and 75: 3 digits > 2 digits so 638>75
        638 and 652: 6=6 3<5 so 638<652

    Of two negative numbers, -8>-12 follows; one negative number needs no
    digits.
    """
    end = short(a, b)

    if a < 0 or b < 0:
        return f'{compare(-a, -b)} so {end}' if a < 0 and b < 0 else end

    return reasoned(str(a), str(b), sign(a, b))


def short(a, b):
    """Returns the comparison of two numbers without its digits."""

    return f'{a}{sign(a, b)}{b}'


def reasoned(s, t, is_):
    """Returns the comparison of two texts, with the digits that decide it if
    they are digits with points, colons or hyphens; is_ is the sign between
    their values."""

    why = by_digits(s, t) if TEXT.fullmatch(s + t) else ''
    end = f'{s}{is_}{t}'

    return f'{s} and {t}: {why} so {end}' if why.find(is_) >= 0 else end


def by_digits(s, t):
    """Returns the comparisons up to the first one that decides."""

    n, m = (len(re.match('[0-9]*', x)[0]) for x in (s, t))

    if n != m:
        return f'{n} digits {sign(n, m)} {m} digits'

    if ('.' in s) != ('.' in t):
        s, t = (x if '.' in x else x + '.0' for x in (s, t))

    seen = []

    for x, y in zip_longest(s, t, fillvalue='0'):
        if x.isdigit() and y.isdigit():
            seen.append(f'{x}{sign(x, y)}{y}')
        if x != y:
            break

    return ' '.join(seen)


def extreme(numbers, up):
    """Returns the lines that find the largest (up) or the smallest of two or
    more numbers.  The best so far is compared with each of the others:

        34 and 51: 3<5 so 34<51
        largest 51
        51 and 29: 5>2 so 51>29
        largest 51
    """
    best, lines = numbers[0], []

    for n in numbers[1:]:
        lines.append(compare(best, n))
        best = max(best, n) if up else min(best, n)
        lines.append(f'{"largest" if up else "smallest"} {best}')

    return lines


def insertion(items, up, told=short):
    """Returns (lines, order) of sorting items, (label, number) each, the
    smallest first if up is true.  Each item is inserted before the first one
    that it must precede.  order has the items' indices.  told returns the text
    of a comparison.  Labels may be empty:

        34: 34
        51 51>34: 34, 51
        29 29<34: 29, 34, 51
    """
    def shown(i):
        return f'{items[i][0]} {items[i][1]}'.lstrip()

    lines, order = [], []

    for i, (_, n) in enumerate(items):
        at, signs = 0, ''

        for j in order:
            other = items[j][1]
            signs += ' ' + told(n, other)
            if (n < other) == up:
                break
            at += 1

        order.insert(at, i)
        lines.append(f'{shown(i)}{signs}: ' + ', '.join(map(shown, order)))

    return lines, order


def sum_list(numbers):
    """Returns the lines of a sum, added from left to right; a single number
    has none.  With more than two numbers the last line has them all:
    'a+b+c=n'."""
    if len(numbers) < 2:
        return []

    total, lines = numbers[0], []

    for n in numbers[1:]:
        lines += add(total, n)
        total += n

    if len(numbers) > 2:
        lines.append('+'.join(map(str, numbers)) + f'={total}')

    return lines


def spell(a, n):
    """Returns the last n digits of a number by place, from the last one on."""

    places = (f'{PLACES[i]} {digit(a, i)}' for i in range(n))
    return f'{a}: ' + ' '.join(places)


def digit(a, i):
    """Returns the digit of a at the place of 10^i."""

    return a // 10 ** i % 10


def sign(a, b):
    return '<' if a < b else '>' if a > b else '='


def check(*numbers):
    for n in numbers:
        if not 0 <= n < LIMIT:
            raise ValueError(f'no number to write out: {n}')
