# Copyright (C) The nginx-dsa authors

"""More kinds of daily_parts.py: questions of different kinds in one message or
sentence, conditions, questions that are taken back, corrections, right answers
that are doubted, and questions that refer to what was said before.

daily_parts imports this module, too, so its names are used in functions only.
"""

import re
from dataclasses import dataclass
from typing import Callable

from tasks import daily_fix, daily_parts, digits, names, parts_layout, words
from tasks.arithmetic_check import last_is
from tasks.daily import line, states
from tasks.daily_rough import typed
from tasks.parts import Split
from tasks.phrase import capital, expand, say
from tasks.strings import code, letters
from tasks.task import CHAT, Step, Turn
from tasks.times import clock


def columns(text):
    return Split(tuple(t.split('|| ')) for t in text.splitlines())


def turn(user, thoughts, answer, wrong, work=(), alone=()):
    """Returns a Turn whose thoughts end with the lines of the work; these are
    written without reasoning, too, if they are more than one, or alone."""

    def gold(mode):
        before = alone or (work if len(work) > 1 else ())
        yield Step('', '\n'.join([*before, answer])) if mode == CHAT \
            else Step('\n'.join([thoughts, *work]), answer)

    return Turn(user, lambda text, calls: 'there was nothing to call'
                if calls else wrong(text), gold)


def quote(text):
    """Returns a text, or its last words, in quotes."""

    return f'"{parts_layout.bare(" ".join(text.split()[-16:]))}"'


def has(*keys, but=()):
    """Returns the check that an answer has these texts and none of others."""

    return lambda text: next(
        (f'"{k}" is missing or wrong in: {text}' for k in (*keys, *but)
         if states(text, k) != (k in keys)), None)


@dataclass
class Item:
    """A question (ask), as a part of a sentence (noun) after what it refers to
    (told); its answer, the word in it that matters (key), whether a text has
    it (right), the lines that find it (work), and another that is wrong, or
    ''.  question: the ask without what is told, if that is a part of it."""

    ask: str
    told: str
    noun: str
    answer: str
    key: str
    right: Callable[[str], bool]
    work: list
    wrong: str = ''
    question: str = ''


def known(rng):
    """A question of daily_parts: a sum, a day, an opposite or a word."""

    kind = rng.choice(('a_sum', 'a_sum', 'a_day', 'an_opposite', 'a_word'))
    part = getattr(daily_parts, kind)(rng)
    work = part.thought.split('\n')
    key = re.split('[:=] ?', work[-1])[-1]

    return Item(part.ask, '', expand(rng, part.noun), part.answer, key,
                part.right, work, str(int(key) + rng.choice((1, 2, 10)))
                if kind == 'a_sum' else '')


FACTS = columns('''{name} lives in {city}.|| Where does {name} live?|| where {name} lives|| city|| {name} lives in {city}.
The {event} is on {day}.|| When is the {event}?|| when the {event} is|| day|| The {event} is on {day}.
{name} cleans the {room} today.|| What does {name} clean?|| what {name} cleans|| room|| {name} cleans the {room}.
{name} bought the {g}.|| Who bought the {g}?|| who bought the {g}|| name|| {name} bought the {g}.
{name} is {n} years old.|| How old is {name}?|| how old {name} is|| n|| {name} is {n} years old.
The code of the gate is {code}.|| What's the code of the gate?|| the code of the gate|| code|| The code is {code}.
We meet at {time}.|| At what time do we meet?|| when we meet|| time|| You meet at {time}.
My sister is called {name}.|| What is my sister's name?|| the name of my sister|| name|| Your sister is called {name}.
The bus to {city} leaves at {time}.|| When does the bus leave?|| when the bus leaves|| time|| The bus leaves at {time}.
{name} brings {g} and {other} brings {h}.|| What does {other} bring?|| what {other} brings|| h|| {other} brings {h}.
I gave {other} the {t} and {name} the {g}.|| Who has the {t}?|| who got the {t}|| other|| {other} has the {t}.
Our train goes to {city} with a stop in {place}.|| Where does it stop?|| where the train stops|| place|| It stops in {place}.''')


def fields(rng):
    found = dict(t=rng.choice(words.THINGS), n=rng.randrange(11, 90),
                 room=rng.choice(names.ROOMS), event=rng.choice(names.EVENTS),
                 day=rng.choice(daily_fix.DAYS), time=clock(rng),
                 code=code(rng))

    for a, b, pool in (('name', 'other', names.FIRST), ('g', 'h', names.GOODS),
                       ('city', 'place', names.PLACES)):
        found[a], found[b] = rng.sample(pool, 2)

    return found


def a_fact(rng):
    given = fields(rng)
    *texts, key, answer = rng.choice(FACTS)
    told, ask, noun, answer = (t.format(**given) for t in (*texts, answer))
    value = str(given[key])

    return Item(f'{told} {ask}', told, noun, answer, value,
                lambda text: states(text, value), [value], question=ask)


CHOICES = columns('''which [one |]is cheaper, the {a} for {m} euros or the {b} for {n}|| <
who is younger, {x}, who is {m}, or {y}, who is {n}|| <
what is lighter, a {a} of {m} grams or a {b} of {n} grams|| <
who was faster: {x} ran it in {m} minutes, {y} in {n}|| <
which [one |]is [more expensive|dearer], the {a} for {m} euros or the {b} for {n}|| >
who is older, {x}, who is {m}, or {y}, who is {n}|| >
what is heavier, a {a} of {m} grams or a {b} of {n} grams|| >
who won if {x} has {m} points and {y} has {n}|| >
which one is longer, the {a} with {m} cm or the {b} with {n} cm|| >
which holds more, the {a} with {m} liters or the {b} with {n}|| >''')


def a_choice(rng):
    text, sign = rng.choice(CHOICES)
    m, n = rng.sample(range(2, 99), 2)
    pair = rng.sample(words.THINGS if '{a}' in text else names.FIRST, 2)
    noun = say(rng, text, **dict(zip('ab' if '{a}' in text else 'xy', pair)),
               m=m, n=n, g=rng.choice(names.GOODS))
    one, other = pair if (m > n) == (sign == '>') else pair[::-1]
    the = 'the ' if '{a}' in text else ''

    return Item(f'{capital(noun)}?', '', noun, capital(say(
        rng, f'[{the}{one}.|It is {the}{one}.|My answer: {the}{one}.|{the}'
             f'{one}, not {the}{other}.]')), one, lambda text: states(
                 text, one) and not states(text.lower().partition(
                     one.lower())[0], other),
        [f'{m}{"<" if m < n else ">"}{n} so {one}'], other)


COUNTS = Split('''[How many things are|What is the number of things] [in this list|on my list|in this row]: {list}?
[I pack|We need|They sell] {list}. How many [different|] things are that?
[{list}: how many is that?|count pls: {list}]
Count [these|them] for me: {list}.'''.splitlines())


def a_count(rng):
    items = rng.sample(rng.choice((words.THINGS, names.GOODS)),
                       rng.randint(2, 5))
    row, n = ', '.join(items), str(len(items))

    return Item(say(rng, rng.choice(COUNTS), list=row), '', say(
        rng, f'[how many things are in my list ({row})|how many words are in '
             f'"{row}"|how many things I name ({row})]'), say(
        rng, f'[{n}.|There are {n}.|That makes {n}.|I count {n}.]'), n,
        lambda text: states(text, n), [', '.join(
            f'{i + 1} {w}' for i, w in enumerate(items))], str(int(n) + 1))


YES_NO = Split('''[Is {a} [more|larger] than {b}?|Would you say that {a} is a [higher|bigger] number than {b}?]
{a} is more than {b}, [right|isn't it|true or not|yes or no]?
[Do {a} {g} outnumber {b} {g}?|yes or no: {a} > {b}?]
{name} says that {a} beats {b}. Is that so?'''.splitlines())


def yes_no(rng):
    a, b = rng.sample(range(2, 99), 2)
    yes, no, sign, than = ('yes', 'no', '>', 'more') if a > b \
        else ('no', 'yes', '<', 'less')

    return Item(say(rng, rng.choice(YES_NO), a=a, b=b, g=rng.choice(
        names.GOODS), name=rng.choice(names.FIRST)), '',
        f'whether {a} is more than {b}', say(
            rng, f'[{capital(yes)}.|{capital(yes)}, {a} is {than} than {b}.]'),
        yes, lambda text: states(text, yes) and not states(text, no),
        [f'{a}{sign}{b}, so {yes}'], no)


def draw_items(rng, n):
    """Returns n Items with different answers."""

    items = [rng.choice((known, known, known, a_fact, a_fact, a_choice,
                         a_choice, a_count, yes_no))(rng) for _ in range(n)]
    mixed = any(states(j.answer, t) for i in items for j in items
                if i is not j for t in (i.key, i.wrong) if t)

    return draw_items(rng, n) if mixed else items


def in_order(items):
    """Returns the check that a text answers the questions in this order."""

    def wrong(text):
        said = text.split()

        for i in items:
            end = next((n for n in range(1, len(said) + 1)
                        if i.right(' '.join(said[:n]))), None)

            if end is None:
                return f'no answer to "{i.ask}" at its place in: {text}'

            said = said[end:]

        return None

    return wrong


def thought(item, words, user):
    """Returns what is thought about a question with these words."""

    return parts_layout.taken(parts_layout.literal(words, user), item.work,
                              item.told)


def answered(rng, user, items, words):
    """Returns the Turn that answers the questions, which have these words."""

    thoughts = [thought(i, w, user) for i, w in zip(items, words)]
    mark = rng.choice(('{a}', '{i}. {a}', '{i}) {a}')) \
        if '\n' in user and len(items) > 1 else '{a}'
    answer = (' ' if mark == '{a}' and rng.random() < 0.7 else '\n').join(
        mark.format(i=n + 1, a=i.answer) for n, i in enumerate(items))
    work = [w for i in items if len(i.work) > 1 for w in i.work]

    return turn(user, '\n'.join(thoughts), answer, in_order(items), (), work)


JOIN = Split('''{0} [And also|Plus|And then]: {1}
[Hi, two questions.|Hello! Two things, please.|I've got two for you.] {0} [And:|Second:|The other one:] {1}
[Good morning,|Hey,|Hello,] [just|only] two [little|quick|short] things:\\n- {0}\\n- {1}
[Please answer both|I need both answers|Both, please, in this order]: {0} {1}
{0} [My friend {name} also asks|{name} wants to know, too|And from {name}]: {1}
[Q1: {0}\\nQ2: {1}|{0}\\n\\n[And one more|Something else|New topic]: {1}|1) {0} 2) {1}]
[Don't skip one.|Don't forget the second part.|There are two parts.] {0} {1}'''.splitlines())
AGAIN = Split('''[What was|Say|Repeat|I forgot] the {o} [answer|one] [again|once more].
[[Only|Just] the {o} [one|answer] [again|once more][, please|].|And the {o} one was?]
[I lost|I didn't catch|I can't read] the {o} [answer|one]. [Again, please.|Can you repeat it?]
[I only need|Which was|Sorry, what was] the {o} [one|answer]?'''.splitlines())


def asked(rng, forms, items, k='', o=''):
    """Returns a message with the questions."""

    form = expand(rng, rng.choice(forms)).replace('\\n', '\n')

    for key, value in (('{name}', rng.choice(names.FIRST)), ('{k}', k),
                       ('{o}', o)):
        form = form.replace(key, value)

    return daily_parts.joined(form, [i.ask for i in items])


def several(rng):
    """Two or three questions, and perhaps one of the answers once more."""

    items = draw_items(rng, rng.choice((2, 2, 3)))
    user = asked(rng, daily_parts.THREE if len(items) == 3 else rng.choice(
        (JOIN, JOIN, daily_parts.TWO)), items)
    made = [answered(rng, user, items, [i.question or i.ask for i in items])]

    if rng.random() < 0.25:
        at = rng.randrange(2)
        o, one = ORDER[at], items[at]
        user = typed(rng, rng.choice(AGAIN), True, o=o)
        made.append(turn(user, f'{quote(user)} The {o} was "{one.answer}"',
                         one.answer, in_order([one])))

    return made


ONE = {2: Split('''[Tell me|Please tell me|I ask you|i want to know] {0} [and|and also|and then] {1}[.|]
I'd like to [know|hear] {0} [and|as well as] {1}.
[Hello, please say|I need to know] {0}, and {1}[, please|].
[{name} wants to know {0}, and I want to know {1}.|[Can|Could] you tell me {0}, and then {1}?]
[[What I want to know:|My two questions:|two things:] {0}; {1}|We have a bet on two things: {0} and {1}.]
[First tell me|Begin with] {0}, [then|and after that] {1}.
[Say|Write] {0}. [In the same answer|Besides|And after it], {1}.'''.splitlines()),
       3: Split('''[Tell me|Please tell me|I ask you] {0}, {1} and {2}[.|]
[I want to know|I'm curious about|I need] three things: {0}, {1}, and {2}.
[Say|Write] {0}, then {1}, and [finally|at the end] {2}.
[Quiz for you:|Hi there,] {0}, and {1}, and last {2}.'''.splitlines())}


def one_sentence(rng):
    """Two or three questions in one sentence, after what is told."""

    n = rng.choice((2, 2, 3))
    items = draw_items(rng, n)
    told = ' '.join(i.told for i in items if i.told)
    user = expand(rng, rng.choice(ONE[n])).format(
        *(i.noun for i in items), name=rng.choice(names.FIRST))

    return answered(rng, f'{told} {capital(user)}' if told else user, items,
                    [i.noun for i in items])


TAKEN_BACK = Split('''{0} {1} [Forget|Ignore|Skip|Leave out|Never mind] the {k} [question|part|one][, please|, I know it now|].
{0} {1} [No, wait, only|Just|Actually only|Please answer only] the {o} [one|question][, please|].
{0}\\n{1}\\n[I changed my mind:|Sorry,|Hm,] [only the {o} one|not the {k} one|drop the {k} one|without the {k}][, please|].
1. {0}\\n2. {1}\\n[The {k} is done already.|{name} told me the {k} already, so the {o} is enough.]
{0} {1} [The {k} was a joke|The {k} one is for {name}, not for you|I don't need the {k} any more], [so the {o} is enough|just do the {o}].
[Two questions, but only the {o} counts|Answer just the {o} of these|I need only the {o} of these|Do not answer the {k} one]: {0} {1}'''.splitlines())


def taken_back(rng):
    """Two questions, of which one is taken back."""

    items, keep = draw_items(rng, 2), rng.randrange(2)
    one, other = items[keep], items[1 - keep]
    k, o = ORDER[:2][::1 if keep else -1]
    user = rest = asked(rng, TAKEN_BACK, items, k=k, o=o)

    for i in items:
        rest = rest.replace(parts_layout.literal(i.ask, user), ' ')

    rest = re.sub(r'^1\. +2\. ', '', ' '.join(rest.split())).rstrip(': ?')

    return turn(user, f'"{parts_layout.bare(rest)}" so only the {o}\n'
                + thought(one, one.question or one.ask, user), one.answer,
                lambda text: in_order([one])(text) or has(but=[other.key])(
                    text.split('\n')[-1]),
                alone=one.work if len(one.work) > 1 else ())


CLAIMS = columns('''It is {a} degrees.|| it is warmer than {b} degrees|| >
I have {a} euros.|| I have less than {b} euros|| <
{name} is {a} years old.|| {name} is younger than {b}|| <
My bag weighs {a} kilos.|| it weighs more than {b} kilos|| >
The bus comes in {a} minutes.|| I wait longer than {b} minutes|| >
|| {a} is larger than {b}|| >
|| {a} is smaller than {b}|| <
|| {name}, who has {a} points, beats a friend with {b}|| >''')
COND = Split('''[If|In case] {t}, [say|write|answer|reply with] {x}[, otherwise|, or else|; if not,] {y}.
[Say|Write|Answer] {x} [if|in case] {t}, and {y} [if not|otherwise].
[Two cases.|It depends:] [If|When] {t}: {x}. [If not|Else|Otherwise]: {y}.
{x} [if|when] {t}, [else|otherwise] {y} - [which one|what's your answer|what do you say]?
[Is it true that|Is it so that|Would you say that] {t}? [If yes|If so|Then], [say|write] {x}. [If no|If not|Otherwise], [say|write] {y}.
[Check|Find out] whether {t}. [Your answer is|Answer with] {x} if [it is so|that is right], {y} if [it isn't|that is wrong].
[I'd like to read|Let me read] {y}, unless {t}; in that case {x}.
Your answer is {x} [as long as|only if] {t}. [In the other case|If that's not so] it is {y}.
[[pls|please] say {x} if {t} and if not say {y}|[true or false|small game]: {t}. true = {x}, false = {y}]
[You may say|Say] {x} only if {t}; [else|otherwise] say {y}. [So?|Well?|]'''.splitlines())


def condition(rng):
    told, claim, sign = rng.choice(CLAIMS)
    a, b = rng.sample(range(2, 99), 2)
    name = rng.choice(names.FIRST)
    told, claim = (t.format(a=a, b=b, name=name) for t in (told, claim))
    x, y = rng.sample(rng.choice((words.THINGS, names.FIRST)), 2)
    mark = rng.choice(('', '"'))
    user = capital(f'{told} '.lstrip() + typed(
        rng, rng.choice(COND), True, t=claim, x=mark + x + mark,
        y=mark + y + mark))
    yes = (a > b) == (sign == '>')
    one, other = (x, y) if yes else (y, x)

    return turn(user, parts_layout.taken(
        parts_layout.literal(claim, user), [
            f'{digits.compare(a, b)}, {"true" if yes else "not true"}, so '
            f'"{one}"'], told),
                say(rng, f'[{one}|{capital(one)}.|"{one}"]'),
                has(one, but=(other,)))


FIX = Split('''[No, not|Not|no not] {old}, {new}[, please|].
[Sorry, wrong|Oops, typo|My mistake]: [{new} instead of {old}|it's {new}, not {old}|{old} should be {new}].
[Make that|Make it] {new} [instead of {old}|, not {old}].
I [said|wrote|typed] {old}, but I meant {new}.
[Where it says {old}, put {new}.|It wasn't {old} but {new}.|I've just checked, it is {new}, not {old}.]
[can u change|Could you change|pls change] {old} to {new}[?|]
[Wait, wait,|Hold on,|Ah no,] {new}. [Not {old}.|I mixed it up with {old}.]
{new}! [{old} was wrong.|{old} is what I had before.|Don't say {old}.]
[Everything as it was, but|The same, just] [{new} for {old}|with {new} in place of {old}].
[{old} is out, {new} is in|Take {new}, forget {old}|Let's have {new} rather than {old}].'''.splitlines())
UNDO = Split('''[No,|Sorry, no,|Hm, no,] [it was right before|the first one was right|back to {old}][, please|].
[Take that back|Undo that|Forget that change]. [{old} was right.|{old} was correct after all.|It is {old} again.]
[Oh, I was wrong|I've looked again]: [it is {old} after all|{old} was right|it stays at {old}].
[ok leave it as it was, with {old}|[Changed my mind again|On second thought]: {old}, [as at first|like in the beginning].]'''.splitlines())
SENTENCES = Split('''{name} buys {n} {g} in {city}.
Please meet {name} at the {t} on {day}.
We need {n} {g} for the {event} on {day}.
The {event} with {name} takes place in {city}.
{name} gave {other} {n} {g}.
{name} lives in {city}, and {other} in {place}.
{name} took {n} {g} out of the {room}.'''.splitlines())
WRITE = Split('''[Write|Please write|Write down|Type] [this sentence|this|the following]: {s}
[[I need|I want] [this text|this line] [on a card|for my notes]:|] {s} [Write it.|Type it, please.|Copy this sentence.]
[[Can you|Could you|Would you] [write|copy] this for me?|Repeat after me:|Say this:] {s}'''.splitlines())
SWAP = Split('''[Other way round|The other way round|It's the other way round][, please|]: {a} and {b} change places.
[Swap|Exchange|Switch] {a} and {b}[, please|].
[I mixed up|I confused] {a} and {b}. [Please swap them.|The other way round!|So {a} must be where {b} is.]'''.splitlines())
LOUD = Split('''[All|Everything|Now] in [capital letters|capitals|upper case][, please|].
[ALL CAPS pls:|Can you shout it?|Write it big:|Like on a sign:] [Only capital letters.|Capital letters only.]'''.splitlines())


def corrected(rng):
    """A sentence, in which a detail or the form is changed, or changed back."""

    form, given, way = rng.choice(SENTENCES), fields(rng), rng.random()
    k = rng.choice([k for k in sorted(given) if f'{{{k}}}' in form])
    new, s = fields(rng)[k], form.format(**given)
    made = [sentence(rng, typed(rng, rng.choice(WRITE), True, s=s), s)]

    if str(new) in s:
        return corrected(rng)

    if '{other}' in form and way < 0.6:
        a, b = given['name'], given['other']

        return made + [sentence(rng, typed(
            rng, rng.choice(SWAP), True, a=a, b=b),
            form.format(**{**given, 'name': b, 'other': a}), s)]

    if way < 0.15:
        return made + [sentence(rng, typed(rng, rng.choice(LOUD), True),
                                s.upper(), s)]

    changed = form.format(**{**given, k: new})
    made.append(sentence(rng, typed(rng, rng.choice(FIX), True, old=given[k],
                                    new=new), changed, s))

    if way > 0.75:
        made.append(sentence(rng, typed(rng, rng.choice(UNDO), True,
                                        old=given[k]), s, changed))

    return made


def sentence(rng, user, s, old=None):
    """Returns the Turn that answers with a sentence, and not with the old."""

    return turn(user, f'{quote(user)} so: {s}', rng.choice(
        ('', '', 'Here it is: ', 'Of course: ', 'OK: ')) + s, lambda text: None
        if s in text and (old is None or old not in text)
        else f'not "{s}": {text}')


DENY = Split('''[That's wrong|That is not right|Wrong|No|Nope|You're wrong][.|!]
[I don't think so|I don't believe that|I doubt it|That can't be][.|!]
[{name}|My teacher] says [that's wrong|it is something else|that you made a mistake].
[[I got something else|My book has another answer|My phone says something else].|[Are you sure|Really|Is that right|sure about that]?|[Check again|Think again|Look again], [please|pls|I don't trust that].]'''.splitlines())
BELIEVE = Split('''[No, it is|I think it's|My result is|It must be] {w}[, isn't it|, I'm sure|].
{name} [says|told me|has] {w}. [So you are wrong.|Not what you say.|]
[{w}!|{w}, not what you said.] [You made a mistake.|Look again.]
[Isn't it|not|Shouldn't it be] {w}?'''.splitlines())
STAY = '''[I have checked it again|I looked at it again], [and it is still|and my answer is still|and I still say:] {v}.
[Sorry, but|I understand, but|I see that you doubt it, but] [it is {v}|the answer is {v}].
[Let me check once more:|Checked again:] {v}. [I stay with that.|I keep my answer.|]'''
YIELD = Split('''[Oh, you're right|Ah yes, you were right|I see, it was right], [my mistake|sorry|thanks].
[Sorry,|OK,] [I had misread it|I made the mistake myself|{name} was wrong, not you].
[ah ok|Hm, true], [now I get it too|now I see it]'''.splitlines())
KIND = '''[No problem|No worries|That's all right|Never mind]! [{v} it is.|The answer is {v}.|It stays {v}.]
[That happens to everybody|That can happen]. [{v} it is.|So the answer is {v}.]'''


def doubted(rng):
    """A right answer, which the user doubts, and then perhaps accepts."""

    one, = draw_items(rng, 1)

    if one.key in ('yes', 'no'):
        return doubted(rng)

    made = [answered(rng, one.ask, [one], [one.question or one.ask])]
    but = has(but=['are right', 'was wrong', 'my mistake',
                   *[one.wrong] * one.wrong.isdigit()])
    deny = BELIEVE if one.wrong and rng.random() < 0.5 else DENY

    again = '\n' + thought(one, one.question or one.ask, one.ask)
    work = one.work if len(one.work) > 1 else ()

    for asks, reply, checked, work in (
            (deny, STAY, again, work), (YIELD, KIND, '', ()))[
                :rng.choice((1, 1, 2))]:
        user = typed(rng, rng.choice(asks), True, w=one.wrong,
                     name=rng.choice(names.FIRST))
        made.append(turn(user, f'{quote(user)} The answer was: {one.key}'
                         + checked,
                         capital(line(rng, reply).format(v=one.key)),
                         lambda text: in_order([one])(text) or but(
                             text.split('\n')[-1]), alone=work))

    return made


RATES = columns('''{name} eats {a} {g} a day.|| day
I sell {a} {g} every day.|| day
We use {a} {g} per week.|| week
Each box has {a} {g} in it.|| box
I read {a} pages a day.|| day
{name} works {a} hours a day.|| day
My dog walks {a} km each day.|| day
A table seats {a} people.|| table''')
RATE_ASK = Split('''[How many is that|What does that make|How many are that] [for|in] {k}?
[I need to know it|Tell me the number] for {k}.
[What do I get|what comes out] [for|with] {k}?'''.splitlines())
RATE_NEXT = Split('''[And how many is that|And what would it be|How many would that be] for {k}?
[And for|What about|How about|and] {k}?
[Sorry, I meant|No, I meant|Make that] {k}[, please|].
[[Now the same for|The same with|Now] {k}[, please|].|[if it was|What if it's|And if it is] {k}?]'''.splitlines())


def followed(rng):
    """A rate, and then questions for other numbers of days or boxes."""

    (told, unit), a = rng.choice(RATES), rng.randrange(2, 10)
    told = told.format(a=a, g=rng.choice(names.GOODS),
                       name=rng.choice(names.FIRST)) + ' '
    made = []

    for k in rng.sample(range(2, 15), rng.choice((2, 2, 3))):
        shown, work = f'{k} {unit}{"es" if unit == "box" else "s"}', []

        if made and unit == 'day' and k < 9:
            shown, work, k = f'{k} weeks', [f'{k}*7={k * 7}'], k * 7

        user = typed(rng, rng.choice(RATE_NEXT), True, k=shown) if made \
            else told + typed(rng, rng.choice(RATE_ASK), True, k=shown)
        n = a * k
        made.append(turn(user, parts_layout.taken(
            shown, [f'{a} for each {unit}'], told), say(
            rng, f'[That is {n}.|It is {n}.|{n}.|For {shown} it is {n}.]'),
            lambda text, n=n: last_is(text, n),
            work + digits.mul(max(a, k), min(a, k))))

    return made


ROWS = Split('''[In the queue stand|In the race came in|On my list are|I invited|We have called|Please note, in this order:] {list}.
{list} [came to the {event}, in this order|stand in line|are on the list|wait at the door].
[[The speakers|The guests|The players], [in order|from first to last]: {list}.|[I met|Today I saw|I wrote to] {list}, [one after the other|in this order].]'''.splitlines())
PLACE = Split('''[Who|Which name] [was|is] the {o} one[| again]?
[Who did I name|Whom did I name|Which name did I say] as the {o} one?
[And the {o} one|the {o}] [was|is] who[| again]?
[Tell me|Say|I forgot] the {o} [name|person].'''.splitlines())

ORDER = 'first', 'second', 'third', 'fourth'


def row(rng):
    """Names in a row, and questions about their places."""

    people = rng.sample(names.FIRST, rng.randint(3, 5))
    shown = ', '.join(people)
    told = say(rng, rng.choice(ROWS), list=' and '.join(shown.rsplit(', ', 1)),
               event=rng.choice(names.EVENTS)) + ' '
    made = []

    for at in rng.sample(range(len(people)), rng.choice((2, 2, 3))):
        one, others = people[at], people[:at] + people[at + 1:]
        o = [*ORDER[:len(others)], 'last'][at]
        ask = typed(rng, rng.choice(PLACE), True, o=o)
        user = ('' if made else told) + ask
        made.append(turn(user, parts_layout.taken(ask, [
            parts_layout.numbered(people[:at + 1])]), say(
            rng, f'[{one}.|It is {one}.|That was {one}.]'),
            has(one, but=others)))

    return made


REMEMBER = Split('''[Remember|Please remember|Keep in mind|Don't forget|Note] [the {k} {v}|this {k}: {v}].
[I must not forget|I always forget|Help me not to forget] the {k} {v}. [Remember it for me.|Keep it for me.|]
[The {k} is {v}|{k}: {v}]. [I'll ask you later.|Remember that, please.|Keep it, I need it later.]
[For later|For the {event}]: the {k} is {v}.'''.splitlines())
RECALL = Split('''[What did I ask you to remember|What should you remember|What was it that you should keep for me]?
[What was|What's] the {k} [again|once more|I gave you|that I told you]?
[And the {k}|The {k} was|Do you still know the {k}|Can you tell me the {k}]?
[Back to before|OK, and now]: [the {k}|which {k} did I tell you|what did I want to keep]?'''.splitlines())


def remembered(rng):
    """Something to remember, perhaps corrected, and then what it was."""

    k, v, new = rng.choice((
        ('code', code(rng), code(rng)), ('word', letters(rng), letters(rng)),
        ('name', *rng.sample(names.FIRST, 2)),
        ('errand', *(f'"{e}"' for e in rng.sample(names.ERRANDS, 2)))))
    user = typed(rng, rng.choice(REMEMBER), True, k=k, v=v,
                 event=rng.choice(names.EVENTS))
    made = [kept(rng, user, k, v)]

    if rng.random() < 0.4:
        user = typed(rng, rng.choice(FIX), True, old=v, new=new)
        v = new
        made.append(kept(rng, user, k, v))

    if rng.random() < 0.7:
        one, = draw_items(rng, 1)
        made.append(answered(rng, one.ask, [one],
                             [one.question or one.ask]))

    return made + [kept(rng, typed(rng, rng.choice(RECALL), True, k=k), k, v,
                        '[The {k} is|It is|You told me:|I remember:|] {v}.')]


def kept(rng, user, k, v, text='[OK,|The {k} is|I note it:|Noted:] {v}.'):
    v = v.strip('"')

    return turn(user, f'{quote(user)} {k}: {v}', capital(
        expand(rng, text).format(k=k, v=v)), has(v))


def turns(rng):
    """Returns a Turn, or the Turns of a conversation."""

    return rng.choice((several, several, one_sentence, one_sentence,
                       taken_back, condition, condition, corrected, corrected,
                       doubted, doubted, followed, row, remembered))(rng)
