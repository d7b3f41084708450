# Copyright (C) The nginx-dsa authors

"""Sums as people put them: eating apples, change, minutes, prices, ages, legs,
boxes, times of day; and sums that are too long for what was taught, which the
model declines.  The stories are in sums_money.py, sums_count.py and
sums_time.py; those that are worked out clause by clause are composed in
sums_steps.py."""

import ast
import re
from dataclasses import dataclass

from tasks import (arithmetic_work, digits, names, sums_count, sums_money,
                   sums_steps, sums_time)
from tasks.arithmetic_check import last_is, numbers
from tasks.daily import line, task
from tasks.daily_rough import typed
from tasks.parts import Split
from tasks.phrase import BEFORE_MARK, BLANKS, capital, expand, say
from tasks.skills import ONES
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.tools_check import NEGATIVE


# how a result is said: what it is -> answers; an answer with a slot that the
# request does not have is not used

COMMON = '''{n}.
[It is|That is|It's|That's] {n}.
[The answer is|The result is] {n}.
[That makes|This makes|It makes] {n}.
[It comes to|I get|I count] {n}.'''

LEFT = '''{n}[ are left| remain|].
[There are|You have] {n} [left|now].
{n} {g}[ are left| remain|].
[Left are|What remains is] {n}.'''

TOTAL = '''{n}[ in all| altogether| in total|].
[The total is|The sum is|In all it is|Altogether] {n}.
[There are|That makes|It is] {n}[ in all| together|].
{n} {g}[ in all|].'''

MONEY = '''{n} {cur}.
[That is|It is|It comes to|That makes] {n} {cur}.'''

ALSO = {
    'left': LEFT, 'total': TOTAL,
    'cost': MONEY + '''
[You pay|It costs|The total is|The price is|In all] {n} {cur}.
[Altogether|All in all|In total,] {n} {cur}.''',
    'change': MONEY + '''
[The change is|You get back|You should get back] {n} {cur}.
{n} {cur} [back|in change].
[You will get|There will be] {n} {cur} [back|in change].''',
    'money_left': MONEY + '''
{n} {cur}[ are left| remain|].
[There are still|You still have] {n} {cur}.
[What is left is|What remains is|Left over:] {n} {cur}.''',
    'missing': MONEY + '''
{n} {cur} [are missing|more|are still needed].
[Another|Still missing:|You need another] {n} {cur}.''',
    'saved': MONEY + '''
[The difference is|The saving is|It is less by|It is cheaper by] {n} {cur}.
{n} {cur} less.''',
    'each_money': MONEY + '''
{n} {cur} [each|].
[One is|Each is|One share is] {n} {cur}.''',
    'percent': MONEY,
    'sum': '''[Together|In all|The sum is] {n}.
[They add up to|Added up:] {n}.''',
    'per_time': MONEY + '''
[The total is|Altogether|In all] {n}.
[Over that time|In that time|By then] it is {n}.''',
    'now': '''{n} now.
[There are|There would be|Now there are] {n}.
[At the end it is|In the end there are|That leaves] {n}.''',
    'each': '''{n}[ each|].
[Each gets|Each has|For each there are] {n}.
{n} [for each|apiece].
[One share is|The share is] {n}.''',
    'rest': '''{n} left over.
[The rest is|The remainder is|Left over:|What stays is] {n}.
[There will be|You have] {n} left.''',
    'boxes': '''[You need|It takes|You will need|It must be] {n}.
[The number is|You have to plan for] {n}.
{n}, [the last one is not full|as the rest needs one, too|rounded up].''',
    'legs': '''{n}[ in all| together|].
[Together|In all] {n}.
[There are|They have|I count] {n}[ in all|].''',
    'double': '''[Double that is|Doubled it is|Twice as much is] {n}.
{n}, twice as much.''',
    'half': '''[Half of that is|One half is|Half is] {n}.
{n}, that is half.''',
    'triple': '''[Three times that is|Tripled it is] {n}.
{n}, three times as much.''',
    'more': '''{n} more.
[The difference is|It is a difference of] {n}.
[There are|By] {n} more.''',
    'needed': '''{n} more.
[Missing are|Still missing:|You need another|There are] {n}[ to go|].
[Another|Still] {n}.''',
    'minutes': '''{n} minutes.
[It takes|That is|It is] {n} minutes[ in all|].
[In all|Altogether|The total is] {n}.''',
    'minutes_left': '''{n} minutes.
[There are|You have] {n} minutes left.
[Another|Still] {n} minutes.''',
    'days': '''[That is|It is|They are|You get] {n}.
[Altogether|In all] {n}.''',
    'hours': '''{n} hours.
[It takes|That is|It is] {n} hours.
[That takes|In all] {n} hours.''',
    'per_day': '''[The rate is|Each time it is|For one it is] {n}.
[That leaves|That gives] {n} [each|for each].''',
    'age': '''{n} years[ old|].
[The age is|It is an age of|At] {n}.
[That makes|That gives] {n} years.''',
    'years': '''{n} years.
[The difference is|It is|There are] {n} years.
[By|It is a gap of] {n} years.''',
    'km': '''{n} km.
[It is|That is|The distance is] {n} km[ in all|].
[In all|Altogether] {n} km.''',
    'km_left': '''{n} km.
[Still|Another] {n} km.
[There are|It is still|You have] {n} km to go.''',
    'weight': '''[The total is|In all|Together] {n}.
[It comes to|It adds up to] {n}.''',
    'degrees': '''{n} degrees.
[It is|That is|It makes] {n} degrees.
[The temperature is|The thermometer shows] {n}.''',
}

SAY = {what: COMMON + '\n' + text for what, text in ALSO.items()}

CLOCK = '''{n}.
At {n}.
[It is|That is|It would be] [at |]{n}.
[The time is|It will be|That makes it] {n}.
[You get|I get|The answer is] {n}.
[Exactly|Then it is|By the clock:] {n}.'''

ON_DAY = '''{n}.
On {n}.
[It is|That is|It will be|It's] [a |]{n}.
[The day is|The answer is|That makes it] {n}.
[Counting on, I get|I count and get|Then it is] {n}.'''

LEAD = {
    'left': '[What is left|Left|The rest]', 'total': '[In all|Together|Sum]',
    'cost': '[The cost|To pay|The price]', 'change': '[The change|Back]',
    'boxes': '[Full ones, and is there a rest|Round up]',
    'rest': '[The rest|What is over]', 'each': '[One share|For each]',
    'more': '[The difference|How many more]', 'age': '[The age|Age]',
    'km': '[The way|Distance]', 'minutes': '[The minutes|Time]',
    'percent': '[The part|A part]', 'missing': '[Missing|Still needed]',
    'legs': '[The legs|Count]', 'needed': '[Missing|Still needed]',
}

BEFORE = Split('''[It is raining, so I sit and count.|I've been busy all day.]
My name is {name}.
[I have a question about numbers.|A question about numbers for you.]
My teacher gave me this one.
[Quick sum:|Quick one:|Maths question:|Homework:]
[Help me with this:|Can you help me here?|I'm stuck with this.]
We talked about this at lunch.
I am {z} years old and [bad|not good] at sums.
[My kid|My son|My daughter] asked me this.
[Listen.|Imagine this.|Here is the situation.|So.]'''.splitlines())

AFTER = Split('''I always mix that up.
[My kids want to know.|My boss wants to know.]
I am too tired to work it out.
[Just the number.|The number is enough.|Short answer.]
[I need it now.|Asap.|I'm in a shop right now.]
[I have no calculator here.|My phone is empty, so no calculator.]
{name} says that it is easy.
[I think I know it, but I am not sure.|Not sure about it.]'''.splitlines())


@dataclass(frozen=True)
class Story:
    """
    formula   an expression of a, b, c and d; up(a, b) rounds a/b up
    what      how the result is said, a key of SAY
    ranges    letter -> (least, most, step)
    words     the letters whose numbers may be written as words
    holds     the condition for the numbers
    """
    formula: str
    what: str
    ranges: dict
    words: str
    holds: str
    asks: Split


def stories(text):
    found = []

    for block in text.strip().split('\n\n'):
        top, *asks = block.split('\n')
        formula, what, given, *holds = [p.strip()
                                        for p in top[2:].split('|')]
        ranges, written = {}, ''
        items = given.split()

        for letter, span in zip(items[::2], items[1::2]):
            if span.endswith('w'):
                written += letter
                span = span[:-1]

            span, _, step = span.partition('/')
            low, high = map(int, span.split('-'))
            ranges[letter] = low, high, int(step or 1)

        found.append(Story(formula, what, ranges, written,
                           holds[0] if holds else 'True', Split(
                               a[2:].replace('\\n', '\n') for a in asks)))

    return found


STORIES = [s for text in (sums_money, sums_count, sums_time)
           for s in stories(text.STORIES)]


# ---------------------------------------------------------------- the work

SIGNS = {ast.Add: '+', ast.Sub: '-', ast.Mult: '*', ast.Div: '/',
         ast.Mod: '%'}


def tree(formula, given):
    """Returns a formula as an expression of arithmetic_work."""

    def of(node):
        if isinstance(node, ast.BinOp):
            return SIGNS[type(node.op)], of(node.left), of(node.right)

        return node.value if isinstance(node, ast.Constant) \
            else given[node.id]

    return of(ast.parse(formula, mode='eval').body)


def work_of(e):
    """Returns the lines that work an expression out.  A division by ten needs
    no digits."""

    todo = arithmetic_work.operations(e)
    lines = []

    for i, (op, a, b) in enumerate(todo):
        if len(todo) > 1:
            lines.append(f'{"then" if i else "first"} {a}{op}{b}')

        if op == '/' and b > 9:
            lines.append(f'{a}/{b}={a // b}')
        else:
            lines += arithmetic_work.WRITE[op](a, b)

    return lines if len(todo) == 1 else lines + [
        f'{arithmetic_work.text(e)}={arithmetic_work.value(e)}']


def round_up(a, b):
    """Returns (lines, n): how often b must be taken to have at least a."""

    n, rest = divmod(a, b)
    lines = digits.divmod_(a, b)

    if rest == 0:
        return lines + [f'no rest, so {n}'], n

    return lines + [f'a rest, so one more: {n}+1={n + 1}'], n + 1


def is_small(e):
    """Returns true if an expression is one small step, which needs no work in
    writing."""

    op, a, b = e

    return isinstance(a, int) and isinstance(b, int) and (
        a * b <= 20 if op == '*' else op in '+-' and max(a, b) <= 10)


# -------------------------------------------------------------------- tasks


STEPS = 0.5             # stories that are worked out clause by clause


def turn(rng):
    way = rng.random()

    if way < 0.2:
        return too_long(rng)

    if way < 0.2 + STEPS:
        return sums_steps.turn(rng)

    way = rng.random()

    if way < 0.12:
        return clock_turn(rng)

    return cents_turn(rng) if way < 0.2 else story_turn(rng)[0]


def make(rng):
    return task(rng, 'daily_sums', 'single', [turn(rng)], {}, (RETAIN, CHAT))


def slots(rng, **more):
    name, other = rng.sample(names.FIRST, 2)
    goods, others = rng.sample(names.GOODS, 2)

    return dict(g=goods, h=others, name=name, other=other,
                p=rng.choice(names.PRODUCTS), room=rng.choice(names.ROOMS),
                city=rng.choice(names.PLACES), event=rng.choice(names.EVENTS),
                cur=rng.choice(('euros', 'dollars', 'pounds', 'euros',
                                'dollars', 'francs')),
                errand='"' + rng.choice(names.ERRANDS) + '"', **more)


def fields_of(text):
    return set(re.findall(r'{(\w+)}', text))


def request(rng, asks, given, about='', plain=False):
    """Returns (the user's text, the slots that it has).  plain: nothing is
    said before or after the request."""

    ask = expand(rng, rng.choice(asks))
    user = typed(rng, ask, plain, **given)

    if '\n' not in ask and '{other}' not in ask and not plain:
        way = rng.random()
        add = dict(z=rng.randrange(13, 80), name=given['other'])

        if way < 0.08:
            first = rng.choice(BEFORE)

            if about not in ('age', 'years', 'sum') or '{z}' not in first:
                user = say(rng, first, **add) + ' ' + capital(user)

        elif way < 0.14 and user[-1:] in '.?!':
            user += ' ' + say(rng, rng.choice(AFTER), **add)

    return user, fields_of(ask)


def answer_of(rng, text, n, given, has):
    """Returns an answer that names nothing that the request does not."""

    given = {**given, 'n': n}

    if 'cur' not in has:
        given['cur'] = ''

    lines = [a for a in text.split('\n')
             if fields_of(a) <= has | {'n', 'cur'}
             and not (str(n) == '1' and '{g}' in a)]

    return capital(BEFORE_MARK.sub('', BLANKS.sub(
        ' ', say(rng, rng.choice(lines), **given))))


def turn_of(rng, user, thoughts, lines, answer, right):
    """thoughts are the lines of reasoning, lines those before an answer
    without reasoning."""

    def gold(mode):
        if mode == CHAT:
            yield Step('', '\n'.join(lines + [answer]))
        else:
            yield Step('\n'.join(thoughts), answer)

    return Turn(user, lambda text, calls: 'there was nothing to call'
                if calls else right(text), gold)


def drawn_numbers(rng, story):
    while True:
        given = {k: rng.randrange(low, high + 1, step)
                 for k, (low, high, step) in story.ranges.items()}

        if eval(story.holds, {}, dict(given)):
            return given


def story_turn(rng, plain=False):
    """Returns the Turn of a story, and its result."""

    story = rng.choice(STORIES)

    return told_turn(rng, story, drawn_numbers(rng, story), plain)


def told_turn(rng, story, given, plain=False, user=None, numerals=False):
    """Returns the Turn of a story with these numbers, and its result.

    user       the request if it is not one of the story's
    numerals   numbers are not written as words
    """
    small = False

    if story.formula.startswith('up'):
        a, b = given['a'], given['b']
        lines, n = round_up(a, b)
        first = f'{a}/{b}'
    else:
        e = tree(story.formula, given)
        n = arithmetic_work.value(e)
        small = is_small(e)
        first = arithmetic_work.text(e)
        lines = work_of(e)

    shown = slots(rng, **{k: ONES[v] if k in story.words and v <= 12
                          and not numerals and rng.random() < 0.2 else v
                          for k, v in given.items()})

    if user is None:
        user, has = request(rng, story.asks, shown, story.what, plain)
    else:
        has = set()

    answer = answer_of(rng, SAY[story.what], n, shown, has)
    lead = expand(rng, LEAD[story.what]) + ': ' \
        if story.what in LEAD and rng.random() < 0.6 else ''

    # one small step needs no work in writing

    thoughts, work = ([f'{lead}{first}={n}'], []) if small \
        else ([lead + first] + lines, [first] + lines)

    return turn_of(rng, user, thoughts, work, answer,
                   lambda text: last_is(text, n)), n


# ---------------------------------------------------------------- the clock

DAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split()
TIME = re.compile(r'(?<!\d)(\d{1,2})[:.](\d\d)(?!\d)')

END, BEFORE_IT, BETWEEN, WEEKDAY = (
    Split(text.splitlines()) for text in (
        sums_time.END, sums_time.BEFORE, sums_time.BETWEEN,
        sums_time.WEEKDAY))


def clock_text(minutes):
    return f'{minutes // 60}:{minutes % 60:02}'


def shifted(t, m, sign):
    """Returns the lines for a time of day and minutes after it, or before it
    if the sign is a minus."""

    lines = [f'{m} minutes={m // 60} h {m % 60} min'] if m >= 60 else []
    a, b = t % 60, m % 60
    hours = [str(t // 60)] + ([str(m // 60)] if m >= 60 else [])

    if sign == '+' and a + b >= 60:
        lines += [f'min {a}+{b}={a + b}', f'{a + b}-60={a + b - 60} carry 1']
        hours.append('1')
    elif sign == '-' and a < b:
        lines.append(f'min {a}-{b}<0 {a + 60}-{b}={a + 60 - b} borrow 1')
        hours.append('1')
    else:
        lines.append(f'min {a}{sign}{b}={a + b if sign == "+" else a - b}')

    u = t + m if sign == '+' else t - m
    lines.append('h ' + sign.join(hours)
                 + (f'={u // 60}' if len(hours) > 1 else ''))

    return lines + [f'so {clock_text(u)}']


def between(t, u):
    h = u // 60 - t // 60

    if h == 0:
        return [f'{u % 60}-{t % 60}={u - t}']

    return [f'h {u // 60}-{t // 60}={h}', f'{h}*60={h * 60}',
            f'{h * 60}+{u % 60}={h * 60 + u % 60}',
            f'{h * 60 + u % 60}-{t % 60}={u - t}']


def last_time(answer, wanted):
    hour, minute = wanted.split(':')
    found = TIME.findall(answer)

    return None if found and (int(found[-1][0]), found[-1][1]) \
        == (int(hour), minute) else f'the time is not {wanted}: {answer}'


def last_day(answer, wanted):
    found = re.findall('|'.join(DAYS), answer, re.I)

    return None if found and found[-1].capitalize() == wanted \
        else f'the day is not {wanted}: {answer}'


def clock_turn(rng, plain=False):
    """Returns the Turn of a story of the clock or of the days of the week."""

    t = rng.randrange(6 * 60, 20 * 60, 5)
    m = rng.randrange(5, 65, 5) if rng.random() < 0.6 \
        else rng.randrange(65, 200, 5)
    k, at = rng.randrange(2, 9), rng.randrange(7)
    begin, end = clock_text(t), clock_text(t + m)
    later = DAYS[(at + k) % 7]
    asks, first, lines, n, text, right = rng.choice((
        (END, f'{begin}+{m}', shifted(t, m, '+'), end, CLOCK, last_time),
        (BEFORE_IT, f'{end}-{m}', shifted(t + m, m, '-'), begin, CLOCK,
         last_time),
        (BETWEEN, f'from {begin} to {end}', between(t, t + m), m,
         SAY['minutes'], last_is),
        (WEEKDAY, f'{DAYS[at]}+{k}', [f'{i} {DAYS[(at + i) % 7]}'
                                      for i in range(1, k + 1)],
         later, ON_DAY, last_day)))

    given = slots(rng, t=begin, u=end, m=m, d=DAYS[at], k=k)
    user, has = request(rng, asks, given, plain=plain)
    answer = answer_of(rng, text, n, given, has)

    return turn_of(rng, user, [first] + lines, [first] + lines, answer,
                   lambda said: right(said, n))


# ----------------------------------------------------------- prices in cents

TIMES, BOTH, BACK = (Split(text.splitlines()) for text in (
    sums_time.TIMES, sums_time.BOTH, sums_time.BACK))


def price(cents):
    return f'{cents / 100:.2f}'


def in_cents(cents):
    return f'{price(cents)}={cents} cents'


def cents_turn(rng):
    """Returns the Turn of a sum of prices such as 2.50."""

    x, y = (rng.randrange(110, 990, 10) for _ in 'xy')
    a, note = rng.randrange(2, 7), rng.choice((10, 20, 50))
    e, asks, what, first, lines = rng.choice((
        (('*', x, a), TIMES, 'cost', f'{price(x)}*{a}', [in_cents(x)]),
        (('+', x, y), BOTH, 'cost', f'{price(x)}+{price(y)}',
         [in_cents(x), in_cents(y)]),
        (('-', note * 100, x), BACK, 'change', f'{note}-{price(x)}',
         [f'{note}={note * 100} cents', in_cents(x)])))

    cents = arithmetic_work.value(e)
    lines = [first] + lines + arithmetic_work.work(e) \
        + [f'{cents} cents={price(cents)}']
    given = slots(rng, a=note if asks is BACK else a, x=price(x), y=price(y))
    user, has = request(rng, asks, given)
    answer = answer_of(rng, SAY[what], price(cents), given, has)

    return turn_of(rng, user, lines, lines, answer,
                   lambda text: last_is(text, cents / 100))


# ------------------------------------------------------------ too long sums

# more digits than a product, a sum or a quotient that was taught may have

TOO_LONG = Split('''[What is|How much is|Calculate|Compute|] {a} [times|x|*|multiplied by] {b}[?|]
[Multiply|Please multiply] {a} [by|and|with] {b}.
What is {a} [squared|to the power of {b}]?
{a} [boxes|trucks|rooms] with {b} {g} each. How many {g}?
[The product of|Give me the product of] {a} and {b}[?|.]
One {p} costs {b}. What do {a} [of them|pieces] cost?
[Divide|Please divide] {a} by {b}.
If {a} people pay {b} each, how much is that?
[What is|Compute] the square root of {a}[?|.]
{a} [hours|days] are how many seconds[ if one has {b}|]?
I sold {a} tickets at {b} {cur} each last year. What did that bring in?
whats {a} x {b}
{a}*{b}=?
{name} earns {a} {cur} a month for {b} months. How much is it in all, exactly?
A factory makes {a} {g} an hour. How many does it make in {b} hours?
Can you work out {a} to the power of {b} for me?
Our town has {a} people, each with {b} kilos of waste a year. How much is it?
I need the exact value of {a} divided by {b}.
my calculator broke. {a} times {b}?
Please check for me: what do I get for {a} multiplied by {b}?
A book has {a} words on average and the library {b} books. Words in all?
The planet is {a} km away. How far is it there and back {b} times?
What is {a} percent of {b}?
Solve x = {a} * {b} for me[, please|].
[Could you|Can you] multiply these two: {a}, {b}?
If a sheet is {a} nanometers thick, how thick is a pile of {b} sheets?'''.splitlines())

DECLINE = '''[I'm sorry, but|Sorry,|Unfortunately,] [that is too long for me|these numbers are too long for me|I cannot work that out]. [A calculator would help.|I can only do short sums.|]
I [can't|cannot] [work out|compute] [that|such long numbers] [in my head|reliably]. [Please use a calculator.|I was taught short sums only.]
That is [more|longer] than I was taught, so I [do not|don't] want to guess. [A calculator is better.|]
I was [not|never] taught to [reckon|calculate] with such long numbers. [Please use a calculator.|]
[That goes beyond what I can do.|That is beyond me.] I do not want to guess.
[Too long for me, sorry.|Sorry, too many digits for me.] [A calculator will do it right.|I work with short numbers only.]
[I would make mistakes with that|I'd get that wrong], so I'd rather not [try|answer]. [Do you have a calculator?|]
[I do not know|I don't know]: [these|such] numbers are [too long|too large] for me.
I [cannot|can't] do that[ one|] without a calculator. [Short sums are fine.|]'''


def too_long(rng):
    digits = rng.randint(4, 8)
    a = rng.randrange(10 ** (digits - 1), 10 ** digits)
    b = rng.randrange(2, 10 ** max(1, 8 - digits + rng.randrange(4)))

    if len(f'{a}{b}') < 7:
        b += 10 ** (6 - digits)

    user = typed(rng, rng.choice(TOO_LONG), **slots(rng, a=a, b=b))
    answer = line(rng, DECLINE)
    thoughts = expand(rng, '[These numbers are|That is|The numbers are] '
                           '[too long|longer than what I was taught]. [I '
                           'decline.|I do not guess.|I say so.]')

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        if any(len(str(n)) > 3 and str(n) not in user
               for n in numbers(text)):
            return f'it states a result: {text}'

        return None if NEGATIVE.search(text) \
            or re.search('too l|too many|beyond|never|longer|more than',
                         text, re.I) \
            else f'does not decline: {text}'

    return Turn(user, check, gold)
