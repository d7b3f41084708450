# Copyright (C) The nginx-dsa authors

"""Sums as people put them: eating apples, change, minutes, prices; and sums
that are too long for what was taught, which the model declines."""

import re

from tasks import arithmetic_work, names
from tasks.arithmetic_check import last_is, numbers
from tasks.daily import line, task
from tasks.parts import Split
from tasks.phrase import capital, expand, manner, say
from tasks.skills import ONES
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.tools_check import NEGATIVE


# expression; range of a; range of b; requests; {g} are goods, {p} a product

SUMS = [(e, a, b, Split(asks.splitlines())) for e, a, b, asks in (
    ('-', (2, 30), (1, 12), '''{a} {g}, eat {b}. [How many stay?|What remains?|]
[I have|There are] {a} {g}[,| and] [I eat|I lose|I give away|someone takes] {b}. How many [stay|remain|do I have][ now|]?
{name} [has|had] {a} {g} and [gives|gave] {b} to {other}. How many [does {name} keep|are left]?
[Take|Take away] {b} {g} from {a}. What is left?
If I [eat|sell|lose|throw away] {b} of [my |]{a} {g}, how many [do I have left|remain|are left]?
Of {a} {g}, {b} are [bad|broken|gone|sold]. How many are [good|left]?
{a} {g} minus {b} {g}?
There were {a} {g} on the table. {name} took {b}. How many are there now?'''),
    ('+', (1, 60), (1, 60), '''I have {a} {g} and [buy|get|find|pick] {b} more. How many [do I have|are that|is that]?
{a} {g} and {b} {g}, how many [together|in all]?
{name} has {a} {g}, {other} has {b}. How many [do they have together|are there in all]?
[Add|Put] {b} {g} to {a}. How many are there?
There are {a} {g} in the {room}, and the garden has {b}. How many in all?
I [walked|drove|ran] {a} km [in the morning|on Monday] and {b} km [in the evening|on Tuesday]. How [far|many km] was that[ in all|]?
{a} [people|guests] are here and {b} more come. How many are [here|there] then?
What are {a} {g} plus {b} {g}?'''),
    ('-', (20, 200), (3, 99), '''I pay with {a} [euros|dollars|pounds]. The {p} costs {b}. [What is the change?|How much do I get back?]
How much change do I get from {a} for [something|a {p}] that costs {b}?
The {p} costs {b}[ euros| dollars|]. I give {a}. [What do I get back?|And the change?]
I had {a} [euros|dollars] and spent {b} [on {g}|for a {p}]. What is left?
The {p} was {a} and is now {b}. How much [cheaper is it|do I save]?
My [budget|money] is {a}, the {p} is {b}. What [remains|is left]?'''),
    ('*', (2, 12), (2, 60), '''[What do|How much are|How much do] {a} {g} cost if one costs {b} [cents|euros]?
{a} {g} at {b} [cents|euros] each. [What is the total?|How much is that?|What do I pay?]
{a} boxes with {b} {g} each[.|,] [How many {g}|How many are that|How many in all]?
I [run|read|swim] {b} minutes [a day|every day]. How many minutes is that in {a} days?
{a} times {b}?
Each of {a} [friends|children|guests] gets {b} {g}. How many do I need?
{a} [tables|rooms|cars] have {b} [seats|chairs] each: how many [seats|chairs] in all?
One {p} costs {b}. What do {a} cost?'''),
    ('+', (5, 90), (5, 90), '''[The film|The class|The trip|The walk] takes {a} minutes and the [break|way|talk] {b}. How many minutes [in all|together]?
I need {a} minutes for {errand} and {b} for the rest. How long is that in minutes?
The [bus|train] is {a} minutes late and the next one {b} minutes more. How many minutes in all?
Bake it {a} minutes, then {b} more. How long in all?
{name} worked {a} minutes, then {b} minutes. How many minutes are that?'''),
    ('/', (4, 99), (2, 9), '''[Share|Divide|Split] {a} {g} among {b} [children|friends|people]. How many does each get?
{b} [friends|people] share {a} {g} [equally|fairly]. How many [for each|does each get]?
{a} [euros|dollars] for {b} [people|hours]. How much is that [each|per person|for one]?
How many {g} are in each of {b} bags if there are {a} in all?
{a} divided by {b}?'''),
)]

SAY = {
    '-': '''{n}[ are left| remain|].
[There are|You have] {n} [left|now].
[It is|That makes|That leaves] {n}.
[The answer is|The result is] {n}.
[Left are|You keep] {n}.
{n}.''',
    '+': '''{n}[ in all| together|].
[There are|That makes|It is|That is] {n}[ in all| together|].
[The total is|The sum is|The answer is] {n}.
[In all|Together] {n}.
[You get|I get] {n}.
{n}.''',
    '*': '''{n}[ in all|].
[That makes|It is|That is] {n}[ in all|].
[The total is|The answer is|The product is] {n}.
[In all|Together] {n}.
[You get|You need|I get] {n}.
{n}.''',
    '/': '''{n}[ each|].
[Each gets|Each has|That is|It is] {n}.
[The answer is|The result is] {n}.
[It makes|That makes] {n}[ each|].
[You get|I get] {n}.
{n}.''',
}

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
{a} [hours|days] are how many seconds[ if one has {b}|]?'''.splitlines())

DECLINE = '''[I'm sorry, but|Sorry,|Unfortunately,] [that is too long for me|these numbers are too long for me|I cannot work that out]. [A calculator would help.|I can only do short sums.|]
I [can't|cannot] [work out|compute] [that|such long numbers] [in my head|reliably]. [Please use a calculator.|I was taught short sums only.]
That is [more|longer] than I was taught, so I [do not|don't] want to guess. [A calculator is better.|]
I was [not|never] taught to [reckon|calculate] with [such|so] long numbers. [Please use a calculator.|]
[I do not know|I don't know]: [these|such] numbers are [too long|too large] for me.
I [cannot|can't] do that[ one|] without a calculator. [Short sums are fine.|]'''


def make(rng):
    return too_long(rng) if rng.random() < 0.3 else short(rng)


def slots(rng, a, b):
    name, other = rng.sample(names.FIRST, 2)

    return dict(a=a, b=b, g=rng.choice(names.GOODS), name=name, other=other,
                p=rng.choice(names.PRODUCTS), room=rng.choice(names.ROOMS),
                errand='"' + rng.choice(names.ERRANDS) + '"')


def short(rng):
    op, first, second, asks = rng.choice(SUMS)
    a, b = rng.randint(*first), rng.randint(*second)

    if op == '-' and b > a:
        a, b = b, a

    if op == '/':
        a -= a % b
        a = a or b

    ask = rng.choice(asks)
    user = say(rng, ask, **slots(rng, *(
        ONES[n] if n < 10 and rng.random() < 0.2 else n for n in (a, b))))
    user = manner(rng, capital(user), ask.startswith('{name'))
    e = (op, a, b)
    n = arithmetic_work.value(e)
    answer = line(rng, SAY[op]).format(n=n)

    # one small step needs no work in writing

    small = max(a, b) <= 10 and op != '*' or op == '*' and a * b <= 20
    work = [] if small else arithmetic_work.work(e)
    first = f'{arithmetic_work.text(e)}={n}' if small \
        else arithmetic_work.text(e)

    def gold(mode):
        if mode == CHAT:
            yield Step('', '\n'.join([first] * (not small) + work + [answer]))
        else:
            yield Step('\n'.join([first] + work), answer)

    return task(rng, 'daily_sums', 'single', [Turn(
        user, lambda text, calls: 'there was nothing to call' if calls
        else last_is(text, n), gold)], {}, (RETAIN, CHAT))


def too_long(rng):
    digits = rng.randint(4, 8)
    a = rng.randrange(10 ** (digits - 1), 10 ** digits)
    b = rng.randrange(2, 10 ** max(1, 8 - digits + rng.randrange(4)))

    if len(f'{a}{b}') < 7:
        b += 10 ** (6 - digits)

    user = say(rng, rng.choice(TOO_LONG), **slots(rng, a, b))
    user = manner(rng, capital(user))
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
            or re.search('too l|never|longer|more than', text, re.I) \
            else f'does not decline: {text}'

    return task(rng, 'daily_sums', 'single', [Turn(user, check, gold)], {},
                (RETAIN, CHAT))
