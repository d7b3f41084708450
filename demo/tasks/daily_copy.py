# Copyright (C) The nginx-dsa authors

"""Repeating what the user wrote, all of it or the right part.  A small model
learns late to find and to repeat a text, and needs it in most families."""

from tasks.daily import line, task
from tasks.phrase import capital, expand
from tasks.strings import anything
from tasks.task import CHAT, RETAIN, Step, Turn


# what the items are, the question, the answer; i, j: of items that follow each
# other

REPEAT = '''[Repeat|Say|Copy|Write|Type|Quote][ exactly| only|]: {text}
[Repeat|Say|Copy|Write] this[, please|]: {text}
[Please repeat|Can you repeat|Repeat after me]: {text}
Say "{text}"[, nothing else|].
{text}\\n\\n[Repeat that.|Write it again.|Copy the line above.]
[What do I have here|What is this]? {text}'''

AFTER = '''{list}\\n[What|Which] [comes|is|stands] [after|behind] {a}?
[Here is a list|A list|My list]: {list}. [What comes next after|What follows] {a}?
[Which one is after|What is right after] {a} in this list? {list}'''

BEFORE = '''{list}\\n[What|Which] [comes|is|stands] before {b}?
[Here is a list|A list|My list]: {list}. [What comes before|What precedes] {b}?'''

ORDER = '''{list}\\n[What is|Give me|Name] the {nth} [one|entry|item].
[Here is a list|A list]: {list}. Which is the {nth}?
[Take|Write|Copy] [only |]the {nth} of these: {list}'''

PAIRS = '''{pairs}\\n[What|Which] [is|belongs to|goes with] {key}?
{pairs}\\n{key}?
[Look up|Find] {key}[, please|]:\\n{pairs}
[What is the value of|What does it say for] {key}?\\n{pairs}'''

FILL = '''[Use|Take] {a} [as|for] A and {b} [as|for] B: A, then B.|{a}, {b}
[Use|Take] {a} [as|for] x and {b} [as|for] y: y, then x.|{b}, {a}
[First|At first] {a}, then {b}. [Write both.|Which two?]|{a}, {b}
[Swap|Exchange] these two: {a}, {b}|{b}, {a}
Write {a} [between stars|with stars around it].|*{a}*
[Put|Write] {a} [in|between] [brackets|parentheses].|({a})
Write {key}={a}, {other}={b} as JSON.|{{"{key}": "{a}", "{other}": "{b}"}}
[Call|Write the call] {key} with {a}[.|, please.]|{key}("{a}")
[Call|Write the call] {key} with {a} and {b}.|{key}("{a}", "{b}")
{key} is {a}. {other} is {b}. What is {key}?|{a}
{key} is {a}. {other} is {b}. What is {other}?|{b}
My {key} is {a}. [Write|Say] "Your {key} is" and what it is.|Your {key} is {a}'''

NTH = ('first', 'second', 'third', 'fourth', 'fifth')
KEYS = '''name city color code place price owner title number street subject
day file room type model state user key id'''.split()

THINK = '''[I repeat it|I copy it|I write it again|This is to be copied].
[I look for it|I find it]: "{v}"
"{v}"
[Asked is|The user wants] "{v}".'''


def make(rng):
    way = rng.random()

    if way < 0.3:
        text = anything(rng)

        if rng.random() < 0.3:
            text += ', ' + anything(rng)

        user, answer = asked(line(rng, REPEAT), text=text), text
    elif way < 0.5:
        user, answer = in_list(rng)
    elif way < 0.75:
        user, answer = in_pairs(rng)
    else:
        user, answer = filled(rng)

    thoughts = line(rng, THINK).replace('{v}', answer)

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        return None if answer.lower() in text.lower() \
            else f'"{answer}" is not in: {text}'

    return task(rng, 'daily_copy', 'single', [Turn(user, check, gold)], {},
                (RETAIN, CHAT), strict=True)


def asked(template, /, **fields):
    return template.replace('\\n', '\n').format(**fields)


def distinct(rng, n):
    """Returns n texts, none of which has another in it."""

    found = []

    while len(found) < n:
        text = anything(rng)

        if not any(text.lower() in t.lower() or t.lower() in text.lower()
                   for t in found):
            found.append(text)

    return found


def in_list(rng):
    items = distinct(rng, rng.randint(2, 8))
    joined = rng.choice((', ', ', ', '; ', '\n', ' | ')).join(items)
    i = int(rng.random() * (len(items) - 1))
    way = rng.random()

    if way < 0.5:
        return asked(line(rng, AFTER), list=joined, a=items[i]), \
            items[i + 1]

    if way < 0.75:
        return asked(line(rng, BEFORE), list=joined, b=items[i + 1]), \
            items[i]

    n = int(rng.random() * min(len(items), len(NTH)))
    last = rng.random() < 0.3

    return asked(line(rng, ORDER), list=joined,
                 nth='last' if last else NTH[n]), items[-1 if last else n]


def in_pairs(rng):
    n = rng.randint(2, 8)
    texts = distinct(rng, 2 * n)
    keys, values = texts[:n], texts[n:]
    mark = rng.choice((': ', ' = ', ' - ', ' -> ', ',', '\t', ' | '))
    pairs = '\n'.join(k + mark + v for k, v in zip(keys, values))
    i = int(rng.random() * n)

    return asked(line(rng, PAIRS), pairs=pairs, key=keys[i]), values[i]


def filled(rng):
    question, answer = rng.choice(FILL.splitlines()).rsplit('|', 1)
    a, b = (t.replace('"', '') for t in distinct(rng, 2))
    key, other = rng.sample(KEYS, 2)
    fields = dict(a=a, b=b, key=key, other=other)

    return capital(expand(rng, question).format(**fields)), \
        answer.format(**fields)
