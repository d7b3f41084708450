# Copyright (C) The nginx-dsa authors

"""Word problems about buying, sharing, packing or ages, with one to three
operations between the story and the answer.

A problem is a function of rng that returns (stories, expression, answer).  The
stories are phrasings that contain names of fields.  The answer is a sentence
with the field {n} for the value of the expression.
"""

import re

from tasks import arithmetic_check as check
from tasks import arithmetic_work, words
from tasks.arithmetic import phrases
from tasks.skills import ONES
from tasks.task import CHAT, RETAIN, Step, Task, Turn
from tasks.wording import a as one
from tasks.wording import plural, polite


def make(rng):
    """Returns a task of one turn."""

    p, q = rng.sample(words.PEOPLE, 2)
    t, u = rng.sample(words.THINGS, 2)
    problem = rng.choice(PROBLEMS)
    stories, e, answer, numbers = problem(rng)

    fields = dict(numbers, p=p, q=q, t=t, u=u, ts=plural(t), us=plural(u),
                  at=one(t), au=one(u))
    n = arithmetic_work.value(e)
    story = rng.choice(phrases(stories)).format(**fields)
    answer = answer.format(n=n, **fields)

    # some people write numbers in this way

    if rng.randrange(4) == 0:
        story = re.sub(r'\b[2-9]\b', lambda m: ONES[int(m.group())], story)

    story = story[0].upper() + story[1:]
    lines = [arithmetic_work.text(e)] + arithmetic_work.work(e)

    def gold(mode):
        if mode == RETAIN:
            yield Step(reasoning='\n'.join(lines), content=answer)
        else:
            yield Step(content='\n'.join(lines + [answer]))

    turn = Turn(user=story if story.startswith((p, q)) else polite(rng, story),
                check=lambda answer, calls: check.last_is(answer, n),
                gold=gold)

    return Task(family='arithmetic_story', kind='single', turns=[turn],
                modes=(RETAIN, CHAT))


def price(rng):
    a, b = rng.randint(2, 12), rng.randint(2, 60)

    return '''{p} buys {a} {ts} for {b} coins each. What does {p} pay?
{a} {ts} at {b} coins each: what do they cost together?
One {t} costs {b} coins. How many coins do {a} {ts} cost?
How much does {p} pay for {a} {ts} if each is {b} coins?
I buy {a} {ts} for {b} coins each. What do I pay?
A shop sells {ts} at {b} coins each. {p} takes {a}. How much is that?''', \
        ('*', a, b), 'That is {n} coins.', dict(a=a, b=b)


def two_prices(rng):
    a, b, c, d = (rng.randint(2, 9), rng.randint(2, 20), rng.randint(2, 9),
                  rng.randint(2, 20))

    return '''{p} buys {a} {ts} for {b} coins each and {c} {us} for {d} coins
 each. What is the bill?
How much are {a} {ts} at {b} coins each and {c} {us} at {d} coins each?
{ts} cost {b} coins each, {us} cost {d} coins each. {p} takes {a} {ts} and
 {c} {us}. What does {p} pay?''', \
        ('+', ('*', a, b), ('*', c, d)), 'That is {n} coins.', \
        dict(a=a, b=b, c=c, d=d)


def together(rng):
    a, b = rng.randint(2, rng.choice((9, 400))), rng.randint(1, 400)

    return '''{p} has {a} {ts} and {q} has {b}. How many do they have together?
{at} costs {a} coins and {au} costs {b} coins. What do both cost?
In the morning {p} counts {a} {ts}, in the evening {b} more. How many in all?
I have {a} {ts} and get {b} more. How many do I have?
If I have {a} {ts} and buy {b}, how many are that?
{p} has {a} {ts}. {q} brings {b} more. How many {ts} are there?''', \
        ('+', a, b), 'In all it is {n}.', dict(a=a, b=b)


def change(rng):
    b = rng.randint(1, rng.choice((9, 480)))
    a = b + rng.randint(1, rng.choice((9, 400)))

    return '''{p} has {a} coins and pays {b} for {at}. How many are left?
{p} pays {b} coins for {at} out of a purse of {a}. What is left?
After {p} spends {b} of {a} coins on {at}, how many coins remain?
{p} has {a} {ts} and sells {b}. How many {ts} does {p} still have?
I have {a} {ts} and give {b} away. How many are left?
If I have {a} {ts} and eat {b}, how many are left?
If I lose {b} of my {a} {ts}, how many do I still have?
Out of {a} {ts} in a store, {b} are sold. How many stay?''', \
        ('-', a, b), '{n} are left.', dict(a=a, b=b)


def two_buys(rng):
    b, c = rng.randint(3, 90), rng.randint(3, 90)
    a = b + c + rng.randint(1, 200)

    return '''{p} has {a} coins, buys {at} for {b} and {au} for {c}. How many
 coins are left?
Out of {a} coins {p} pays {b} for {at} and then {c} for {au}. What is left?
{p} starts with {a} {ts}, gives {b} to {q} and loses {c}. How many remain?
There were {a} {ts}. {p} took {b}, {q} took {c}. How many are left?''', \
        ('-', ('-', a, b), c), '{n} are left.', dict(a=a, b=b, c=c)


def give_and_find(rng):
    b, c = rng.randint(3, 90), rng.randint(3, 90)
    a = b + rng.randint(1, 200)

    return '''{p} has {a} {ts}, gives {b} to {q} and finds {c} more. How many
 {ts} does {p} have now?
A box holds {a} {ts}. {p} takes {b} out and puts {c} in. How many are in it?
{p} had {a} coins, spent {b} and earned {c}. How many are there now?''', \
        ('+', ('-', a, b), c), 'Now it is {n}.', dict(a=a, b=b, c=c)


def older(rng):
    a, b = rng.randint(5, 70), rng.randint(2, 28)

    return '''{p} is {a} years old. {q} is {b} years older. How old is {q}?
{p} is {a}. How old will {p} be in {b} years?
{q} is {b} years older than {p}, who is {a}. What is the age of {q}?
What is the age of {p} in {b} years, if it is {a} now?''', \
        ('+', a, b), 'The age is {n}.', dict(a=a, b=b)


def younger(rng):
    b = rng.randint(2, 28)
    a = b + rng.randint(2, 60)

    return '''{p} is {a} years old. {q} is {b} years younger. How old is {q}?
{p} is {a}. How old was {p} {b} years ago?
{q} is {b} years younger than {p}, who is {a}. What is the age of {q}?
What was the age of {p} {b} years ago, if it is {a} now?''', \
        ('-', a, b), 'The age is {n}.', dict(a=a, b=b)


def times_older(rng):
    a, b, c = rng.randint(3, 19), rng.randint(2, 5), rng.randint(2, 9)

    return '''{p} is {a}. {q} is {b} times as old. How old is {q} in {c} years?
{q} is {b} times as old as {p}, who is {a}. What is the age of {q} in {c}
 years?''', \
        ('+', ('*', a, b), c), 'The age is {n}.', dict(a=a, b=b, c=c)


def difference(rng):
    b = rng.randint(3, 480)
    a = b + rng.randint(1, 400)

    return '''{p} has {a} {ts}, {q} has {b}. How many more does {p} have?
{p} has {a} {ts}, {q} only {b}. By how many does {p} lead?
{at} costs {a} coins, {au} costs {b}. How much dearer is the {t}?
{p} walked {a} steps and {q} {b}. How many steps fewer did {q} walk?''', \
        ('-', a, b), 'The difference is {n}.', dict(a=a, b=b)


def boxes(rng):
    a, b, c = rng.randint(2, 9), rng.randint(3, 60), rng.randint(1, 40)

    return '''There are {a} boxes with {b} {ts} each and {c} loose {ts}. How
 many {ts} are there?
{p} packs {a} boxes with {b} {ts} each; {c} {ts} do not fit. How many {ts} are
 there in all?
How many {ts} are {a} full boxes of {b} with {c} more on the desk?''', \
        ('+', ('*', a, b), c), 'There are {n} {ts}.', dict(a=a, b=b, c=c)


def used_up(rng):
    b, c = rng.randint(2, 40), rng.randint(2, 9)
    a = b * c + rng.randint(1, 200)

    return '''A book has {a} pages. {p} reads {b} a day for {c} days. How many
 pages are left?
{p} has {a} {ts} and gives {b} to each of {c} friends. How many are left?
From {a} coins {p} pays {c} times {b} coins. How many coins remain?
The road is {a} km long. {p} walks {b} km on each of {c} days. How many km are
 left?''', \
        ('-', a, ('*', b, c)), '{n} are left.', dict(a=a, b=b, c=c)


def discount(rng):
    c = rng.randint(1, 20)
    b, a = c + rng.randint(2, 60), rng.randint(2, 9)

    return '''{at} costs {b} coins, but today {c} coins less. What do {a} {ts}
 cost today?
{p} buys {a} {ts} for {b} coins each, with {c} coins off each. What does {p}
 pay?''', \
        ('*', a, ('-', b, c)), 'That is {n} coins.', dict(a=a, b=b, c=c)


def pairs(rng):
    a, b, c = rng.randint(2, 9), rng.randint(2, 40), rng.randint(2, 40)

    return '''Each of {a} friends buys {at} for {b} coins and {au} for {c}.
 What do they pay in all?
{p} fills {a} bags with {b} {ts} and {c} {us} each. How many things are that?
A set is {at} for {b} and {au} for {c} coins. What do {a} sets cost?''', \
        ('*', a, ('+', b, c)), 'In all it is {n}.', dict(a=a, b=b, c=c)


def per_day(rng):
    a, b = rng.randint(2, 9), rng.randint(3, 300)

    return '''{p} walks {b} steps a minute. How many steps is that in {a}
 minutes?
{p} makes {b} {ts} a day. How many {ts} in {a} days?
Each of {a} rows has {b} seats. How many seats are there?
A cart carries {b} {ts}. How many {ts} do {a} carts carry?''', \
        ('*', a, b), 'That makes {n}.', dict(a=a, b=b)


def full_boxes(rng):
    a, b = rng.randint(12, 500), rng.randint(2, 9)

    return '''{p} packs {a} {ts} into boxes of {b}. How many boxes are full?
{a} {ts} go into boxes of {b}. How many full boxes is that?
{p} shares {a} {ts} among {b} friends evenly. How many does each get?
{at} costs {b} coins. How many {ts} can {p} buy for {a} coins?
{b} friends split {a} coins evenly. How many whole coins does each get?''', \
        ('/', a, b), 'It is {n}.', dict(a=a, b=b)


def left_over(rng):
    a, b = rng.randint(12, 500), rng.randint(2, 9)

    return '''{p} packs {a} {ts} into boxes of {b}. How many are left over?
{a} {ts} go into boxes of {b}. How many do not fill a box?
{p} shares {a} {ts} among {b} friends evenly. How many are left over?
{at} costs {b} coins. {p} buys as many as {a} coins allow. How many coins are
 left?''', \
        ('%', a, b), '{n} are left over.', dict(a=a, b=b)


PROBLEMS = (price, two_prices, together, change, two_buys, give_and_find,
            older, younger, times_older, difference, boxes, used_up, discount,
            pairs, per_day, full_boxes, left_over)
