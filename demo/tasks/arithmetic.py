# Copyright (C) The nginx-dsa authors

"""Sums, differences, products, quotients, comparisons, sorting, and
expressions of two operations, asked without a story; also questions that the
model must decline because it cannot work out their digits."""

from tasks import arithmetic_check as check
from tasks import arithmetic_work, digits
from tasks.task import CHAT, RETAIN, Step, Task, Turn
from tasks.wording import polite


SUM = '''What is {a} + {b}?|What is {a} plus {b}?|Add {a} and {b}.
How much is {a}+{b}?|{a} + {b} = ?|Calculate {a} + {b}.|Compute {a}+{b}.
What is the sum of {a} and {b}?|Work out {a} plus {b}.|What do {a} and {b}
 make together?|Add {b} to {a}.|What do I get if I add {b} to {a}?'''

DIFFERENCE = '''What is {a} - {b}?|What is {a} minus {b}?
Subtract {b} from {a}.|How much is {a}-{b}?|{a} - {b} = ?|Calculate {a} - {b}.
Compute {a}-{b}.|Take {b} away from {a}.|Work out {a} minus {b}.
What is left if I take {b} from {a}?|What remains of {a} without {b}?'''

PRODUCT = '''What is {a} * {b}?|What is {a} times {b}?|Multiply {a} by {b}.
How much is {a} x {b}?|{a} * {b} = ?|Calculate {a} * {b}.|Compute {a}*{b}.
What is the product of {a} and {b}?|Work out {a} times {b}.|Multiply {a} and
 {b}.|How much do I get for {a} times {b}?'''

QUOTIENT = '''What is {a} / {b}?|What is {a} divided by {b}?|Divide {a} by {b}.
Divide {a} by {b} with remainder.|{a} / {b} = ?|Calculate {a} / {b}.
How often does {b} go into {a}?|Work out {a} divided by {b}.|How many times
 does {b} fit into {a}, and what is left?|Compute {a}/{b} with remainder.'''

REMAINDER = '''What is the remainder of {a} divided by {b}?
What remains when {a} is divided by {b}?|Which remainder does {a} / {b} leave?
If I divide {a} by {b}, what is the remainder?'''

LARGER = '''Which is larger, {list}?|Which number is larger: {list}?
Which of {all} is greater?|What is the larger one of {all}?
Tell me the bigger number: {list}.|Pick the larger of {all}.'''

LARGEST = '''Which is the largest: {list}?|What is the largest of {all}?
Which number is the greatest, {list}?|Find the largest of {all}.
Pick the biggest number: {list}.|Give me the maximum of {all}.'''

SMALLER = '''Which is smaller, {list}?|Which number is smaller: {list}?
Which of {all} is less?|What is the smaller one of {all}?
Tell me the smaller number: {list}.|Pick the smaller of {all}.'''

SMALLEST = '''Which is the smallest: {list}?|What is the smallest of {all}?
Which number is the least, {list}?|Find the smallest of {all}.
Pick the smallest number: {list}.|Give me the minimum of {all}.'''

IS_LARGER = '''Is {a} larger than {b}?|Is {a} greater than {b}?|Is {a} > {b}?
Is {a} bigger than {b}?|Is {a} more than {b}?|Would {a} be more than {b}?'''

UPWARDS = '''Sort these numbers: {list}|Sort {list}.|Sort {list} upwards.
Put these numbers in order: {list}|Order {list} from the smallest to the
 largest.|Sort the numbers {list}, the smallest first.|Put {list} in order.'''

DOWNWARDS = '''Sort these numbers downwards: {list}|Sort {list} downwards.
Put these numbers in order, the largest first: {list}|Order {list} from the
 largest to the smallest.|Sort the numbers {list}, the largest first.'''

# questions without worked lines: the reason, and the ways to ask

BEYOND = {
    'numbers of so many digits': '''What is {long} + {a}?|{a} + {long} = ?
What is {long} - {a}?|Subtract {a} from {long}.|What is {long} * {a}?
Multiply {a} by {long}.|What is {wide} times {broad}?|{broad} * {wide}
What is {wide} * {broad}?|Calculate {long} / {b}.|{long} + {long}''',
    'a decimal point': '''What is {d} + {d}?|{d} + {d}|What is {d} - {a}?
What is {d} times {b}?|Calculate {d} * {d}.|Which is larger, {d} or {d}?
What is {d} / {b}?|Add {d} and {a}.|Is {d} larger than {d}?''',
    'a number below 0': '''What is -{a} + {a}?|-{a} - {a}|Add -{a} and {a}.
What is {a} - -{a}?|What is -{a} * {b}?|Calculate -{a} / {b}.''',
    'percent': '''What is {b}% of {a}?|How much is {a} percent of {a}?
{a}% of {a}|What percentage of {a} is {b}?|Add {b}% to {a}.''',
    'powers': '''What is {b}^{b}?|What is {a} squared?|What is {b} cubed?
What is {b} to the power of {b}?|Calculate {a}^{b}.|{b}**{b} = ?''',
    'roots': '''What is the square root of {a}?|Square root of {a}?
What is the root of {a}?|sqrt({a})|What is the cube root of {a}?''',
    'a divisor of more than one digit':
        '''What is {a} / {c}?|Divide {a} by {c}.
{a} / {c}|How often does {c} go into {a}?|What is {a} divided by {c}?
What is the remainder of {a} divided by {c}?''',
    'a division by 0': '''What is {a} / 0?|Divide {a} by 0.|{a} / 0 = ?
What is {a} divided by 0?|What is {a} divided by zero?''',
    'primes': '''Is {a} prime?|Is {a} a prime number?|What is the next prime
 after {a}?|Name a prime larger than {a}.|What are the factors of {a}?''',
    'averages': '''What is the average of {a}, {a} and {a}?|What is the mean of
 {a} and {a}?|Give me the average of {a} and {b}.|Median of {a}, {b}, {a}?''',
    'fractions': '''What is {b}/{b} + {b}/{b}?|What is half of {a}?|What is a
 third of {a}?|Add {b}/{b} and {b}/{b}.|What is {b}/{c} of {a}?''',
    'unknowns': '''Solve x + {b} = {a}.|Solve {b}x = {a}.|If {b}x - {a} = {c},
 what is x?|What is x if x * {b} = {a}?|Find x: {a} - x = {b}''',
    'functions': '''What is sin({a})?|What is {b}!?|What is the factorial of
 {b}?|What is the logarithm of {a}?|What is log({a})?|What is cos({a})?''',
}

EXPRESSION = '''What is {e}?|Calculate {e}.|Compute {e}.|How much is {e}?
{e} = ?|Work out {e}.|Evaluate {e}.|What does {e} make?|Find {e}.
What is the value of {e}?|Solve {e}.'''


def make(rng):
    """Returns a task of one turn."""

    kind = rng.choices(KINDS, WEIGHTS)[0]
    return kind(rng)


def task(rng, phrasings, lines, answer, verdict, **values):
    """Returns the task to find answer by way of lines.  Without reasoning the
    answer begins with the lines.  A single line is left out there, because the
    model learns its result by heart."""

    text = rng.choice(phrases(phrasings)).format(**values)

    def gold(mode):
        if mode == RETAIN:
            yield Step(reasoning='\n'.join(lines), content=answer)
        elif len(lines) == 1:
            yield Step(content=answer)
        else:
            yield Step(content='\n'.join(lines + [answer]))

    turn = Turn(user=polite(rng, text), gold=gold,
                check=lambda answer, calls: verdict(answer))

    return Task(family='arithmetic', kind='single', turns=[turn],
                modes=(RETAIN, CHAT))


def phrases(text):
    """Splits a text at bars and new lines.  A line that begins with a blank
    continues the one before."""

    return text.replace('\n ', ' ').replace('\n', '|').split('|')


def number(rng, most):
    """Returns a number of 1 to most digits, each length with the same
    probability."""

    n = rng.randint(1, most)
    return rng.randrange(10 ** (n - 1) if n > 1 else 0, 10 ** n)


def addition(rng):
    return operation(rng, SUM, '+', number(rng, 5), number(rng, 5))


def subtraction(rng):
    a, b = sorted((number(rng, 5), number(rng, 5)), reverse=True)

    if rng.randrange(8) == 0:
        a, b = b, a

    return operation(rng, DIFFERENCE, '-', a, b)


def multiplication(rng):
    a, b = number(rng, 3), number(rng, 2)

    # six digits in total, so that the product is below digits.LIMIT

    if rng.randrange(4) == 0:
        b = number(rng, 3)
        a = number(rng, 6 - len(str(b)))

    if rng.randrange(3) == 0:
        a, b = b, a

    return operation(rng, PRODUCT, '*', a, b)


def operation(rng, phrasings, op, a, b):
    e = (op, a, b)
    n = arithmetic_work.value(e)

    return task(rng, phrasings, arithmetic_work.work(e),
                f'The answer is {n}.',
                lambda answer: check.last_is(answer, n), a=a, b=b)


def division(rng):
    d = rng.randint(2, 9)
    a = max(d, number(rng, 5))
    a -= a % d if rng.randrange(3) == 0 else 0
    q, r = divmod(a, d)
    lines = digits.divmod_(a, d)

    if rng.randrange(4) == 0:
        return task(rng, REMAINDER, lines, f'The remainder is {r}.',
                    lambda answer: check.last_is(answer, r), a=a, b=d)

    rest = f', remainder {r}' if r else ''
    return task(rng, QUOTIENT, lines, f'The answer is {q}{rest}.',
                lambda answer: check.divides(answer, q, r), a=a, b=d)


def comparison(rng):
    a, b = near(rng)
    lines = [digits.compare(a, b)]

    if rng.randrange(2):
        answer = f'{"Yes" if a > b else "No"}, ' \
                 f'{a} is {relation(a, b)} {b}.'

        return task(rng, IS_LARGER, lines, answer,
                    lambda answer: check.affirms(answer, a > b), a=a, b=b)

    b += a == b
    up = rng.randrange(2) == 0
    right = max(a, b) if up else min(a, b)

    return task(rng, LARGER if up else SMALLER, [digits.compare(a, b)],
                f'{right} is {"larger" if up else "smaller"}.',
                lambda answer: check.picks(answer, right, {a, b}, up),
                list=f'{a} or {b}', all=f'{a} and {b}')


def near(rng):
    """Returns two numbers.  Half of the time their first digits are the same;
    sometimes the numbers are equal."""

    a = number(rng, 5)
    b = number(rng, 5)

    if rng.randrange(2):
        part = 10 ** rng.randrange(len(str(a)))
        b = a // part * part + rng.randrange(part)

    return a, b


def relation(a, b):
    return 'larger than' if a > b else \
           'smaller than' if a < b else 'equal to'


def extreme(rng):
    """Returns a task: the largest or smallest of three to five numbers."""

    up = rng.randrange(2) == 0
    n = rng.randint(3, 5)
    most = rng.randint(2, 4)
    given = rng.sample(range(10 ** (most - 2), 10 ** most), n)
    right = max(given) if up else min(given)
    first = ', '.join(map(str, given[:-1]))

    return task(rng, LARGEST if up else SMALLEST, digits.extreme(given, up),
                f'The {"largest" if up else "smallest"} is {right}.',
                lambda answer: check.picks(answer, right, set(given), up),
                list=f'{first} or {given[-1]}', all=f'{first} and {given[-1]}')


def sorting(rng):
    """Returns a task: sort three to six numbers."""

    up = rng.randrange(3) > 0
    most = 10 ** rng.randint(1, 3)
    given = rng.sample(range(most), rng.randint(3, 6))
    lines, order = digits.insertion([('', n) for n in given], up)
    right = [given[i] for i in order]

    return task(rng, UPWARDS if up else DOWNWARDS, lines,
                ', '.join(map(str, right)) + '.',
                lambda answer: check.lists(answer, right),
                list=', '.join(map(str, given)))


def beyond(rng):
    """Returns a task that the methods of digits.py cannot solve."""

    what = rng.choice(sorted(BEYOND))
    text = rng.choice(phrases(BEYOND[what]))
    draw = {'{a}': lambda: rng.randint(2, 999),
            '{b}': lambda: rng.randint(2, 9),
            '{c}': lambda: rng.randint(11, 99),
            '{d}': lambda: f'{number(rng, 2)}.{rng.randint(1, 99)}',
            '{broad}': lambda: rng.randrange(100, 100000),
            '{wide}': lambda: rng.randrange(10000, 100000),
            '{long}': lambda: rng.randrange(10 ** 6, 10 ** 9)}

    for slot, value in draw.items():
        while slot in text:
            text = text.replace(slot, str(value()), 1)

    return task(rng, '{text}', [f'This has {what}. I was not taught that.'],
                f'I cannot reckon with {what}. I was taught whole numbers of '
                'up to five digits: +, -, *, and / by one digit.',
                check.refuses, text=text)


def expression(rng):
    """Returns a task with two operations; the inner one may be left or
    right."""

    inner = rng.choice('+-**')
    outer = rng.choice('+-*' if inner != '*' else '+-')
    e = (inner, *operands(rng, inner))
    most = 1 if outer == '*' else 3
    c = rng.randint(2 if outer == '*' else 1, 10 ** most - 1)
    v = arithmetic_work.value(e)

    if outer == '-':
        e = (outer, e, c) if v >= c else (outer, c, e)
    elif rng.randrange(2):
        e = (outer, e, c)
    else:
        e = (outer, c, e)

    n = arithmetic_work.value(e)
    shown = arithmetic_work.text(e)

    if rng.randrange(2):
        for op in '+-*':
            shown = shown.replace(op, f' {op} ')

    return task(rng, EXPRESSION, arithmetic_work.work(e),
                f'The answer is {n}.',
                lambda answer: check.last_is(answer, n), e=shown)


def operands(rng, op):
    """Returns two numbers that are small enough for another operation to
    follow."""

    if op == '*':
        return rng.randint(2, 99), rng.randint(2, 9)

    a, b = rng.randint(1, 99), rng.randint(1, 99)
    return (max(a, b), min(a, b)) if op == '-' else (a, b)


KINDS = (addition, subtraction, multiplication, division, comparison,
         extreme, sorting, expression, beyond)
WEIGHTS = (4, 4, 4, 4, 3, 2, 2, 4, 2)
