# Copyright (C) The nginx-dsa authors

"""Messages with two or three parts: a greeting and a sum, a name and a number,
something that is known and something that is not, thanks and a request,
several questions in a line or a list, steps to follow; corrections of what was
said before (daily_fix.py); more of each, conditions, and questions about what
was said before (parts_more.py); and requests of any kinds in many layouts
(parts_layout.py).  The thoughts take the parts one after the other: the words
of a part, as the message has them, and then what they lead to."""

import re
from dataclasses import dataclass
from typing import Callable

from tasks import (arithmetic_work, daily_fix, names, parts_layout, parts_more,
                   words)
from tasks.arithmetic_check import numbers
from tasks.daily import line, states, task
from tasks.daily_rough import typed
from tasks.daily_sums import DAYS, story_turn
from tasks.parts import Split
from tasks.phrase import capital, say
from tasks.skills import OPPOSITES
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.tools_check import NEGATIVE, has_word


@dataclass
class Part:
    """
    ask      the words of the user
    answer   a sentence that answers it
    right    text -> whether it has the answer
    thought  a line, or the lines of the work
    work     whether the thought is needed before an answer without reasoning
    told     the sentence of the user that has the answer, or ''
    noun     what is asked for, or ''
    """
    ask: str
    answer: str
    right: Callable[[str], bool]
    thought: str
    work: bool = False
    told: str = ''
    noun: str = ''


SUM = {
    '+': Split('''What is {a} plus {b}?
How much is {a} plus {b}?
{a} + {b}?
Could you put {a} and {b} into a sum?
Add {a} to {b}.
What do {a} and {b} make together?
I need the sum of {a} and {b}.
Tell me what {a} and {b} are in all.
whats {a}+{b}
With {a} {g} and {b} more on top, how many are that?
Count {a} and {b} together.
The sum of {a} and {b}?'''.splitlines()),
    '-': Split('''What is {a} minus {b}?
How much is {a} minus {b}?
{a} - {b}?
Take {b} away from {a}.
What is left when I take {b} from {a}?
Subtract {b} from {a}.
whats {a}-{b}
{a} less {b} is what?
I had {a} {g} and lost {b}. How many are left?
Tell me the difference of {a} and {b}.'''.splitlines()),
    '*': Split('''What is {a} times {b}?
How much is {a} times {b}?
{a} x {b}?
{a} * {b}?
Multiply {a} by {b}.
whats {a} times {b}
What do {a} bags with {b} {g} each make?
I need {a} times {b}.
{b} {g} for each of {a} people makes what?'''.splitlines()),
}

SIGN = {'+': 'plus', '-': 'minus', '*': 'times'}

SUM_SAID = '''{a} {sign} {b} is {n}.
[The sum gives|The number is|The result is|It makes] {n}.
{a} {sign} {b} makes {n}.
The result of {a} {sign} {b} is {n}.'''


def a_sum(rng):
    op = rng.choice('++-*')
    a, b = (rng.randrange(2, 10), rng.randrange(2, 10)) if op == '*' \
        else (rng.randrange(3, 60), rng.randrange(2, 40))
    a, b = (max(a, b), min(a, b)) if op == '-' else (a, b)

    if op == '-' and a == b:
        a += 5

    e = op, a, b
    n = arithmetic_work.value(e)
    g = rng.choice(names.GOODS)
    small = op == '*' or max(a, b) <= 10

    return Part(say(rng, rng.choice(SUM[op]), a=a, b=b, g=g),
                line(rng, SUM_SAID).format(a=a, b=b, n=n, sign=SIGN[op]),
                lambda text: n in numbers(text),
                f'{a}{op}{b}={n}' if small
                else '\n'.join(arithmetic_work.work(e)), not small,
                noun=f'[what|how much] {a}{op}{b} is')


DAY_ASK = Split('''[What|Which] day [comes after|follows] {d}?
What is the day after {d}?
Name the day after {d}.
If today is {d}, what is tomorrow?
Tomorrow of a {d} is which day?
what comes after {d}
{d} is over. Which day is it then?
And the day that follows {d}?
Today it's {d}. What day will it be tomorrow?
We have {d}. And tomorrow?
Tell me the day that follows {d}.
The party is one day after {d}. On which day is it?
{d}, and then?
day after {d}?
Which day do we have when {d} has gone by?
My shift starts the day after {d}. What day is that?
After {d}, what day is it?
I'm free on the day after {d}. Which one is that?'''.splitlines())

DAY_BEFORE = Split('''[What|Which] day [comes before|is before] {d}?
What is the day before {d}?
Name the day before {d}.
If today is {d}, what was yesterday?
Yesterday of a {d} is which day?
It's {d} today. Which day was it yesterday?
day before {d}?
Tell me the day that {d} follows.
The exam is on {d}, and I learn the day before. Which day is that?
One day back from {d} is what?
{d} minus one day?
Before {d}, what day is it?
I leave one day earlier than {d}. On what day is that?
We met yesterday, and today is {d}. On what day did we meet?
Which day do we have before {d} begins?'''.splitlines())


def a_day(rng):
    at, step = rng.randrange(7), rng.choice((1, -1))
    d, n = DAYS[at], DAYS[(at + step) % 7]
    where = 'after' if step == 1 else 'before'

    return Part(say(rng, rng.choice(DAY_ASK if step == 1 else DAY_BEFORE),
                    d=d),
                say(rng, f'[{capital(where)} {{d}} it is {{n}}.|The day '
                         f'{where} {{d}} is {{n}}.|It is {{n}}.|{{n}} comes '
                         f'{where} {{d}}.]', d=d, n=n),
                lambda text: has_word(text, n), f'{where} {d}: {n}',
                noun=f'[what|which] day is {where} {d}')


OPPOSITE = Split('''What is the opposite of {a}?
The opposite of {a}?
Name the opposite of {a}.
What is the contrary of "{a}"?
Give me a word that means the opposite of {a}.
not {a}, but the opposite: how do you say that?
How do I say the opposite of "{a}"?
opposite of {a}?
Which word is the contrary of {a}?
What do you call the opposite of {a}?
I look for the opposite of "{a}".
If it is not {a} at all, what is it?
The other way round from {a} is what?
For a crossword: the opposite of {a}.
My teacher wants the opposite of "{a}". What is it?
{a} and its opposite: what is the other word?'''.splitlines())


def an_opposite(rng):
    a, b = rng.choice(OPPOSITES)[:2]

    if rng.random() < 0.5:
        a, b = b, a

    return Part(say(rng, rng.choice(OPPOSITE), a=a),
                say(rng, '[The opposite of {a} is {b}.|The opposite is {b}.|'
                         'It is "{b}".|Not {a} but {b}.]', a=a, b=b),
                lambda text: has_word(text, b), b, noun=f'the opposite of {a}')


LARGER = Split('''Which one of {a} and {b} is [larger|bigger]?
{a} or {b}, which one is [larger|bigger]?
Is {a} or {b} the larger number?
Tell me the larger one of {a} and {b}.
Which of these is more: {a}, {b}?
What is more, {a} {g} or {b} {g}?
Of {a} and {b}, which number is larger?
I have {a} points, {name} has {b}. What is the higher number?
Compare {a} and {b}. Which is more?
larger number: {a} or {b}?
Take the bigger one of {a} and {b}. Which is it?
If you had to choose the larger of {a} and {b}, what would you say?
One box has {a} {g}, the other {b}. What is the larger number?
Between {a} and {b}, which one is greater?
{a} against {b}: which is higher?'''.splitlines())


def larger(rng):
    a, b = rng.sample(range(2, 99), 2)
    n = max(a, b)

    return Part(say(rng, rng.choice(LARGER), a=a, b=b,
                    g=rng.choice(names.GOODS), name=rng.choice(names.FIRST)),
                say(rng, '[{n} is larger.|The larger one is {n}.|{n} is more'
                         ' than {m}.|More is {n}.]', n=n, m=min(a, b)),
                lambda text: n in numbers(text),
                f'{a}{"<" if a < b else ">"}{b} so {n}')


REPEAT = Split('''Say "{w}".
Repeat the word "{w}".
Write the word {w}.
Please say the word {w}[, too|].
Say {w} for me.
I want to read the word "{w}".
Put the word {w} into your answer.
Type "{w}" please.
The word is {w}. Please repeat it.
Can you say {w}?
Your answer must have the word {w} in it.
say the word {w}
I spell badly, so write {w} for me.
Echo this: {w}.
Let me see the word "{w}".
Give me back the word {w}.
The magic word is {w}. Say it.'''.splitlines())


def a_word(rng):
    w = rng.choice(words.THINGS)

    return Part(say(rng, rng.choice(REPEAT), w=w),
                say(rng, '[{c}.|"{c}".|Here is the word: {w}.|I say: {w}.]',
                    w=w, c=capital(w)),
                lambda text: has_word(text, w), w, noun=f'the word {w}')


UNKNOWN = Split(tuple(t.split('|| ')) for t in '''Who is the mayor of {city}?|| the mayor of {city}
What is the population of {city}?|| the population of {city}
How old is {name} {last}?|| the age of {name} {last}
What is the phone number of {name} {last}?|| the phone number of {name} {last}
What does a {p} cost in {city}?|| the price of a {p} in {city}
What will the weather be like in {city}?|| the weather in {city}
Who won the match in {city}?|| the result of the match in {city}
Who wrote the best book about {topic}?|| the best book about {topic}
When does the next train to {city} leave?|| the trains to {city}
Where was {name} {last} born?|| where {name} {last} was born
Who invented the {p}?|| who invented the {p}
What is the name of my {p}'s maker?|| the maker of your {p}
What am I thinking of?|| what you are thinking of
Where did I leave my keys?|| where your keys are
What time is it in {city}?|| the time in {city}
How tall is the tower in {city}?|| the height of the tower in {city}
What is on TV tonight?|| the TV program
Is the bakery in {city} open?|| the opening hours in {city}
What did {name} say yesterday?|| what {name} said
Who is the boss of {name} {last}?|| the boss of {name} {last}
How far is it to {city}?|| the distance to {city}
What is the newest {p}?|| the newest {p}'''.splitlines())

NOT_KNOWN = '''[But|] I [do not|don't] know {x}.
{x}: [that|this] I [do not|don't] know.
I [have no idea about|know nothing about] {x}.
[Sorry,|I'm sorry, but] I [do not|don't] know {x}.
I can't [tell you|say] anything about {x}, sorry.
About {x} I [do not|don't] know anything.'''


def unknown(rng):
    ask, noun = rng.choice(UNKNOWN)
    given = dict(city=rng.choice(names.PLACES), name=rng.choice(names.FIRST),
                 last=rng.choice(names.LAST), p=rng.choice(names.PRODUCTS),
                 topic=rng.choice(names.TOPICS))
    noun = noun.format(**given)

    return Part(ask.format(**given),
                capital(line(rng, NOT_KNOWN).format(x=noun)),
                lambda text: NEGATIVE.search(text) is not None,
                'not known')


GREET = Split('''Hi!
Hello!
Hey there!
Good morning!
Good evening!
Hi, how are you?
Hello, nice to meet you.
Hi, I'm {name}.
My name is {name}.
{name} here.
Hey, good to see you.
Good day, how is it going?
Hello again!
hey,
Hello, {name} here.
Hiya!
Good evening to you!
Hi there, I hope you're well.
Hello dear model!
Morning!
Hi again, it's me.
Hello from {name}!
Greetings!
Hey, I'm back.'''.splitlines())

GREETED = '''[Hello|Hi|Hey]!
[Hello|Hi], [nice|good] to see you.
[Hi there|Hello there]!
[Good to see you|Welcome]!
Hello, I'm fine.'''

THANKED = Split('''Thanks!
Thank you, that helped.
Thanks for the last answer.
Great, thanks.
Thank you so much.
Thanks, you're a star.
OK thanks.
Many thanks for your help.
Cheers, that was useful.
thx!
Perfect, thank you.
Thanks a lot, {name} is happy now.
Thank you, that was right.
Very good, thanks.
Thanks again!
I thank you.
Wonderful, thank you.
ty!
That was quick, thanks!
Thanks for the help with my homework.
Nice, thank you.
It worked, thank you very much.'''.splitlines())

WELCOME = '''[You're|You are] welcome!
[My pleasure|Gladly|With pleasure]!
[No problem|Any time]!
[Glad|Happy] to help!
[Sure|Of course]!'''

HELLO_WORDS = re.compile(r'hello|\bhi\b|hey|good|welcome|nice', re.I)
WELCOME_WORDS = re.compile(r'welcome|pleasure|gladly|problem|time|help|sure'
                           r'|course', re.I)


def greeting(rng, named=True):
    """named: it may have a name."""

    return Part(polite(rng, GREET, named), line(rng, GREETED),
                lambda t: HELLO_WORDS.search(t) is not None, 'a greeting')


def thanks(rng, named=True):
    return Part(polite(rng, THANKED, named), line(rng, WELCOME),
                lambda t: WELCOME_WORDS.search(t) is not None, 'thanks')


def polite(rng, texts, named):
    text = rng.choice(texts)

    while '{name}' in text and not named:
        text = rng.choice(texts)

    return say(rng, text, name=rng.choice(names.FIRST))


# ----------------------------------------------------------- several at once

TWO = Split('''{0} {1}
{0} And {1}
{0} Also: {1}
{0} One more thing: {1}
{0} And another question: {1}
Two questions. {0} {1}
I have two questions: {0} {1}
Two things, please. {0} {1}
{0} Oh, and {1}
First: {0} Second: {1}
{0} After that: {1}
Please do both: {0} {1}
{0}\\n{1}
{0}\\n\\n{1}
a) {0} b) {1}
{0} Then, {1}
{0} ({1})
Question one: {0}\\nQuestion two: {1}
My son asks: {0} My daughter asks: {1}
{0} While you're at it: {1}
{0} By the way, {1}
I want to know this: {0} And this: {1}
Answer both in one message. {0} {1}
{0} ...and {1}
You have two tasks. {0} {1}
{0} Besides, {1}
Quick ones: {0} / {1}
Both of these, please: {0} {1}'''.splitlines())

THREE = Split('''{0} {1} {2}
{0} {1} And {2}
Three questions: {0} {1} {2}
First: {0} Second: {1} Third: {2}
{0}\\n{1}\\n{2}
{0} Also: {1} Finally: {2}
Please answer all three. {0} {1} {2}
{0} Then: {1} And at the end: {2}
Three things. {0} {1} {2}
Quick round! {0} {1} {2}
{0} And {1} And {2}
I need three answers: {0} / {1} / {2}
a) {0} b) {1} c) {2}
My questions for today:\\n{0}\\n{1}\\n{2}
{0}... {1}... and {2}
{0} Next: {1} Last: {2}
Could you tell me three things? {0} {1} {2}
{0}\\n\\n{1}\\n\\n{2}
I am curious: {0} {1} {2}
{0} That was the first. {1} That was the second. {2}
Answer one after the other: {0} {1} {2}
{0} Besides, {1} And also, {2}'''.splitlines())

LISTED = Split('''{list}
Please answer:\\n{list}
My questions:\\n{list}
Can you help me with these?\\n{list}
{list}\\nThanks!
Here is my list:\\n{list}
Small quiz:\\n{list}
To answer:\\n{list}
Please answer one by one.\\n{list}
These are my questions today:\\n{list}
I collected some questions.\\n\\n{list}
{list}\\n\\nAnswer in the same form, please.
From my son's homework:\\n{list}
Go through this list:\\n{list}
Short answers to all of these, please:\\n{list}
quiz time\\n{list}
My notes for you:\\n{list}
What do you say to these?\\n{list}'''.splitlines())

def several(rng):
    """A message with two or three questions, some of them not known."""

    makers = rng.sample((a_sum, a_sum, a_day, an_opposite, larger, a_word,
                         unknown), rng.choice((2, 2, 3)))
    parts = [m(rng) for m in makers]
    n = len(parts)

    if rng.random() < 0.25:
        mark = rng.choice(('{i}. {a}', '{i}) {a}', '- {a}', '* {a}'))
        listed = '\n'.join(mark.format(i=i + 1, a=p.ask)
                           for i, p in enumerate(parts))
        user = rng.choice(LISTED).replace('\\n', '\n').format(list=listed)
        answer = '\n'.join(mark.format(i=i + 1, a=p.answer)
                           for i, p in enumerate(parts))
    else:
        form = rng.choice(TWO if n == 2 else THREE).replace('\\n', '\n')
        user = joined(form, [p.ask for p in parts])
        answer = (' ' if rng.random() < 0.8 else '\n').join(
            p.answer for p in parts)

    return parts_turn(user, answer, parts)


# words with which a request begins, so that their first letter may be small

FIRST_WORDS = frozenset('''a add after all an and answer are at before between
by can compare count could did do does each echo finally find for from give he
her here his how if in is it it's let like look make may multiply my name next
now of on one or our please put repeat say she show subtract take tell that the
then there these they this to type we what what's when where which who whose
with would write you your'''.split())


def joined(form, asks):
    """Returns the questions in a form; each has a mark at its end, and a small
    letter after "and" or a comma."""

    asks = [a if a[-1] in '.?!' else a + '?' for a in asks]

    for i, ask in enumerate(asks):
        before = form.partition(f'{{{i}}}')[0].lower()

        if before.endswith(('and ', 'also, ', 'then, ', 'besides, ', 'way, ')
                           ) and ask.split()[0].lower() in FIRST_WORDS:
            asks[i] = ask[0].lower() + ask[1:]

    return form.format(*asks)


def parts_turn(user, answer, parts):
    """The parts are in the order of the message."""

    thoughts = [parts_layout.taken(
        parts_layout.literal(p.ask, user), p.thought.split('\n'), p.told)
        for p in parts]
    before = [p.thought for p in parts if p.work]

    def gold(mode):
        if mode == CHAT:
            yield Step('', '\n'.join(before + [answer]))
        else:
            yield Step('\n'.join(thoughts), answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        for p in parts:
            if not p.right(text):
                return f'no answer to "{p.ask}" in: {text}'

        return None

    return Turn(user, check, gold)


def polite_first(rng):
    """A greeting or thanks, and then a question."""

    first = rng.choice((greeting, thanks))(rng)
    second = rng.choice((a_sum, a_sum, a_day, an_opposite, larger, unknown,
                         a_word))(rng)
    between = rng.choice((' ', ' ', ' ', '\n', ' Now: ', ' A question: ',
                          ' Next: ', ' Quick one: ', ' I wonder: '))
    answer = f'{first.answer} {second.answer}'

    return parts_turn(first.ask + between + second.ask, answer,
                      [first, second])


def polite_story(rng):
    """A greeting or thanks, and then a sum in words."""

    first = rng.choice((greeting, thanks))(rng)
    turn, _ = story_turn(rng, True)

    def gold(mode):
        step = next(turn.gold(mode))
        *work, answer = step.content.split('\n')
        yield Step(step.reasoning and '\n'.join([
            parts_layout.taken(first.ask, [first.thought]),
            parts_layout.taken(turn.user, step.reasoning.split('\n'))]),
            '\n'.join(work + [f'{first.answer} {answer}']))

    def check(text, calls):
        return turn.check(text, calls) or (
            None if first.right(text)
            else f'no answer to "{first.ask}" in: {text}')

    return Turn(f'{first.ask} {turn.user}', check, gold)


# ------------------------------------------------------- a name and a number

# "<" and ">" enclose the words of each part, which the reasoning quotes

BOTH = Split('''{told} <[Who am I|What is my name]>, and <what is {s}>?
{told} <Tell me my name> and <[the result of|] {s}>.
{told} <[Say|Write] my name> and then <{s}>.
<What is {s}>? <My name, too>, please. {told}
{told} Two things: <my name>, and <{s}>.
{told} <Greet me by name> and <tell me {s}>.
{told} I want to hear <my name> and <what {s} is>.
<Use my name in the answer>. {told} <How much is {s}>?
{told} <Call me by my name> and <work out {s}>.
{told} <how am I called> and <how much is {s}>
{told} <Do you remember my name>? Also, <{s}>?
Please <address me by name when you answer>. {told} <{s}>?
{told} I'd like you to <say my name>, then <how much {s} is>.
{told} <What do I get for {s}>? And <do you know what I am called>?
{told} My questions: <{s}>, and <what is my name>?
<Tell me {s}> and <begin with my name>. {told}
{told} <Name> and <result of {s}>, please.
<How much is {s}>, and <who is asking>? {told}
{told} First <my name>, then <{s}>.
{told} <{s}>? <Answer with my name>, please.
{told} <You should know my name now. Say it>, and <what {s} makes>.
{told} Please write "name: number", with <my name> and <the result of {s}>.'''.splitlines())

TOLD = Split('''My name is {name}.
I am {name}.
I'm {name}.
{name} here.
This is {name}.
Hi, {name} speaking.
They call me {name}.
You are talking to {name}.
{name} is my name.
People call me {name}.
I'm called {name}, by the way.
Hello from {name}!
{name}, nice to meet you.
{name} is what they call me.
I have the name {name}.
Let me introduce myself: {name}.
My friends call me {name}.
The name's {name}.
im {name}.
You can call me {name}.
Hey, it's {name}.
My parents named me {name}.'''.splitlines())

BOTH_SAID = '''[You are|Your name is] {name}, and {s} is {n}.
{name}, {s} is {n}.
Hello {name}! [It is|That makes|The result is] {n}.
[You're|You are] {name}. {s} is {n}.
{s} is {n}, {name}.
[Sure, {name}|Gladly, {name}|OK, {name}]: {n}.
{name}, [it is|that is|the answer is] {n}.'''


def name_and_sum(rng):
    name = rng.choice(names.FIRST)
    op = rng.choice('++-*')
    a, b = rng.randrange(2, 10), rng.randrange(2, 10)
    a, b = (a + b, b) if op == '-' else (a, b)
    n = arithmetic_work.value((op, a, b))
    s = f'{a} {SIGN[op]} {b}'
    told = say(rng, rng.choice(TOLD), name=name)
    user = typed(rng, rng.choice(BOTH), True, told=told, s=s)
    answer = capital(line(rng, BOTH_SAID).format(name=name, s=s, n=n))
    parts = [Part(words, '', lambda t: n in numbers(t), f'{a}{op}{b}={n}')
             if s in words else
             Part(words, '', lambda t: states(t, name), name, told=told)
             for words in map(''.join, re.findall(r'<(.*?)>(\??)', user))]

    return parts_turn(re.sub('[<>]', '', user), answer, parts)


# ----------------------------------------------- what the user said, or not

ABOUT_ME = Split('''I am {name}, {age} years old, and I live in {city}.
My name is {name}. I'm {age} and from {city}.
{name} here, {age}, from {city}.
I live in {city}, I'm {age}, and people call me {name}.
im {name} and im {age} and i live in {city}.
Let me introduce myself. Name: {name}. Age: {age}. City: {city}.
I'm {age} years old. I come from {city} and my name is {name}.
You are talking to {name} from {city}, aged {age}.
From {city}, {age} years old, called {name}: that's me.
Here I am: {name}. My home is {city}, and this year I turned {age}.
My passport says: {name}, {city}, age {age}.
About me: {name}, {age} years, {city}.'''.splitlines())

ASK_ME = {
    'name': (Split('''What is my name?
Who am I?
How am I called?
whats my name
Say my name.
Do you know my name?
By which name do I go?
And my name was?
Can you tell me my name?'''.splitlines()),
             '[Your name is|You are|You\'re] {name}.'),
    'age': (Split('''How old am I?
What is my age?
My age?
how old did i say i am
Do you know how old I am?
And my age was?
Which age did I name?
Tell me my age.'''.splitlines()),
            '[You are|You\'re|Your age is] {age}.'),
    'city': (Split('''Where do I live?
In which city am I at home?
What is my city?
where am i from
Do you know where I live?
And my city was?
Which place did I name?
Tell me where I live.'''.splitlines()),
             '[You live in|You are from|Your city is] {city}.'),
}

NOT_SAID = Split(tuple(t.split('|| ')) for t in '''What is my job?|| your job
What do I do for a living?|| your job
Which color do I like best?|| the color you like best
What is my favorite dish?|| your favorite dish
Do I have children?|| whether you have children
What is the name of my dog?|| the name of your dog
When is my birthday?|| your birthday
Where was I born?|| where you were born
What is my phone number?|| your phone number
Which street do I live in?|| your street
What is the name of my sister?|| the name of your sister
How tall am I?|| how tall you are
Which car do I drive?|| which car you drive
What did I eat today?|| what you ate today
What is my last name?|| your last name
Am I married?|| whether you are married'''.splitlines())

NOT_TOLD = '''You did not say {x}.
I [do not|don't] know {x}[: you did not say it|].
{x}: [that|this] you did not say.
You have not mentioned {x}[, so I do not know|].
I can't know {x}, since you did not say it.
About {x} I know nothing.'''


def about_me(rng):
    """Two questions about what the user said, of which one may ask for
    something else."""

    given = dict(name=rng.choice(names.FIRST), city=rng.choice(names.PLACES),
                 age=rng.randrange(9, 90))
    told = say(rng, rng.choice(ABOUT_ME), **given)
    parts = []

    for key in rng.sample(sorted(ASK_ME), 2):
        asks, answer = ASK_ME[key]
        value = str(given[key])
        parts.append(Part(say(rng, rng.choice(asks)),
                          say(rng, answer, **given),
                          lambda text, v=value: states(text, v), value,
                          told=parts_layout.sentence_with(value, told)))

    if rng.random() < 0.6:
        ask, noun = rng.choice(NOT_SAID)
        parts[rng.randrange(2)] = Part(
            ask, capital(line(rng, NOT_TOLD).format(x=noun)),
            lambda text: re.search("n't|not|nothing", text, re.I) is not None,
            'not said')

    user = joined(rng.choice(TWO).replace('\\n', '\n'),
                  [p.ask for p in parts])
    user = f'{told} {user}' if rng.random() < 0.75 else f'{user} {told}'

    return parts_turn(user, ' '.join(p.answer for p in parts), parts)


# --------------------------------------------------------------------- steps

START = Split('''Start with {a}.
Take the number {a}.
Begin at {a}.
Think of {a}.
You have {a}.
Here's a number: {a}.
The first number is {a}.
Let's start at {a}.
We begin with {a} {g}.
Write down {a}.
Your number is {a}.
Let {a} be the number.
Imagine {a} {g} in a basket.
I give you {a}.
Take {a} to begin with.
On the paper stands {a}.
At first there are {a} {g}.
Keep {a} in mind.
First number: {a}.'''.splitlines())

STEP = {
    '+': Split('''Add {b}.
Then add {b}.
Now plus {b}.
Put {b} on top.
Next, {b} more.
Increase it by {b}.
After that, add another {b}.
{b} come in.'''.splitlines()),
    '-': Split('''Take away {b}.
Then subtract {b}.
Now minus {b}.
Remove {b}.
Next, {b} less.
Decrease it by {b}.
After that, take off {b}.
{b} go away.'''.splitlines()),
    '*': Split('''Multiply it by {b}.
Then times {b}.
Now take it {b} times.
Multiply the result by {b}.
Next, make it {b} times as much.'''.splitlines()),
}

ENDING = Split('''What do you get?
What is the result?
Where do you end?
How much is it now?
Tell me the number.
And the result?
What have you got at the end?
What number is that?
Say the last number.
What comes out?
result?
What does that make?
How many is that in the end?
Which number do you have now?
Now tell me what is left.
What is the number at the end?
So how much?
Give me the final number.
What do I have now?
and the answer is?'''.splitlines())

ENDED = '''{n}.
[I get|You get|It is|That makes] {n}.
[The result is|The number is|At the end it is|In the end I have] {n}.
[I end at|It comes to|The last number is] {n}.
[Step by step, I get|After all steps it is] {n}.'''


def chain(rng):
    """A number that is changed step by step."""

    e = a = rng.randrange(2, 31)
    said = [say(rng, rng.choice(START), a=a, g=rng.choice(names.GOODS))]
    works = [[str(a)]]

    for _ in range(rng.choice((2, 2, 3))):
        now = arithmetic_work.value(e)
        op = rng.choice('++-*') if now < 20 else rng.choice('+-')
        b = rng.randrange(2, 5) if op == '*' else rng.randrange(2, 21)

        if op == '-' and b >= now:
            op = '+'

        said.append(say(rng, rng.choice(STEP[op]), b=b))
        works.append(arithmetic_work.WRITE[op](now, b))
        e = op, e, b

    n = arithmetic_work.value(e)
    said.append(rng.choice(ENDING))
    works.append([str(n)])
    way = rng.random()

    if way < 0.2:
        user = '\n'.join(f'{i + 1}. {s}' for i, s in enumerate(said))
    else:
        user = ('\n' if way < 0.3 else ' ').join(said)

    answer = line(rng, ENDED).format(n=n)

    def gold(mode):
        if mode == CHAT:
            yield Step('', '\n'.join([*sum(works[1:-1], []), answer]))
        else:
            yield Step('\n'.join(map(parts_layout.taken, said, works)), answer)

    def check(text, calls):
        return 'there was nothing to call' if calls else (
            None if numbers(text)[-1:] == [n] else f'{n} is not in: {text}')

    return Turn(user, check, gold)


WRITE = Split('''First write {x}, then {y}, and at the end {z}.
Write {x}. Below that, {y}. Last, {z}.
Three lines: {x}, {y}, {z}.
Line one: {x}. Line two: {y}. Line three: {z}.
Begin with {x}, go on with {y} and finish with {z}.
Write these in three lines: {x}, then {y}, then {z}.
Step 1: write {x}.\\nStep 2: write {y}.\\nStep 3: write {z}.
1. {x}\\n2. {y}\\n3. {z}\\nWrite only that, one per line, without numbers.
I want {z} in the last line, {x} in the first and {y} between them.
Put {x} first, {y} second and {z} third, each on its own line.
Write {x}, start a new line with {y}, and another one with {z}.
Please write three words under each other: {x}, {y}, {z}.
Start your answer with {x}. In the next line comes {y}. End with {z}.
The answer has three lines. {x} is the first, {y} the second, {z} the third.
After {x} write {y}, and after {y} write {z}, one below the other.'''
              .splitlines())


def three_lines(rng):
    x, y, z = rng.sample(words.THINGS, 3)

    if rng.random() < 0.4:
        y = rng.choice(names.FIRST)

    user = typed(rng, rng.choice(WRITE).replace('\\n', '\n'), True, x=x, y=y,
                 z=z)
    right = [x, y, z]

    def gold(mode):
        yield Step('' if mode == CHAT else parts_layout.taken(
            user, [f'first {x}, second {y}, third {z}']), '\n'.join(right))

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        found = [t.strip(' .,-"').lower() for t in text.strip().split('\n')]

        return None if found == [w.lower() for w in right] \
            else f'not three lines {right}: {text}'

    return Turn(user, check, gold)


def make(rng):
    draw, strict = rng.choices(
        ((several, True), (polite_first, False), (polite_story, False),
         (name_and_sum, False), (about_me, False), (chain, False),
         (three_lines, True), (daily_fix.turns, True),
         (parts_more.turns, True), (parts_layout.turns, True)),
        (26, 11, 9, 9, 9, 9, 4, 23, 100, 150))[0]
    made = draw(rng)
    turns = [made] if isinstance(made, Turn) else made

    return task(rng, 'daily_parts', 'single' if len(turns) == 1 else 'multi',
                turns, {}, (RETAIN, CHAT), strict)
