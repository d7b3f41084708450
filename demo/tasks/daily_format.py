# Copyright (C) The nginx-dsa authors

"""Answers in a form that the user asks for: JSON, a list, one word, a line of
CSV, capitals."""

import json

from tasks import names
from tasks.daily import task
from tasks.parts import Split
from tasks.phrase import capital, expand, manner
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.times import day


# keys -> how a value is drawn

VALUES = {
    'name': lambda rng: rng.choice(names.FIRST),
    'city': lambda rng: rng.choice(names.PLACES),
    'age': lambda rng: rng.randrange(3, 99),
    'product': lambda rng: rng.choice(names.PRODUCTS),
    'price': lambda rng: rng.randrange(2, 900),
    'goods': lambda rng: rng.choice(names.GOODS),
    'count': lambda rng: rng.randrange(2, 99),
    'day': lambda rng: capital(day(rng)),
    'language': lambda rng: rng.choice(names.LANGUAGES),
    'room': lambda rng: rng.choice(names.ROOMS),
    'topic': lambda rng: rng.choice(names.TOPICS),
    'event': lambda rng: rng.choice(names.EVENTS),
}

JSON = Split(r'''[Write|Give me|Return|Make] [this|the following] as [JSON|a JSON object][, the keys being {keys}|]: {pairs}
{pairs}. [As JSON|As a JSON object|In JSON], please.
[Turn|Convert] this into [JSON|a JSON object]: {pairs}
[Answer|Reply] only with JSON: {pairs}
JSON for {pairs}[?|, please.]
[I need|I want] a JSON object [of|for] {pairs}.
{pairs}\nFormat: JSON'''.splitlines())

BULLETS = Split('''[Write|Give me|Make] [a list|a bullet list] of {items}.
[List|Put] {items} [one per line|as bullets|in a list].
[Turn|Make] this into a list: {items}
{items}. [As a list, please.|One per line.]
[A list with dashes|Bullets] for {items}[, please|].
[I need|I want] {items} as a list.'''.splitlines())

NUMBERED = Split('''[Write|Give me|Make] a numbered list of {items}.
[Number|Count] these: {items}
{items}. [As a numbered list.|With numbers.]
[Put|Write] {items} under each other, [numbered|with numbers].'''.splitlines())

ONE_WORD = Split('''{a} or {b}? [Pick one.|Answer with one word.|One word only.]
[Choose|Pick] one: {a}, {b}.
[Which is better|What do you prefer], {a} or {b}? [One word.|Just name it.]
[Answer|Reply] with one word: {a} or {b}?
[Decide for me|Toss a coin]: {a} or {b}? [One word, please.|]'''.splitlines())

CSV = Split('''[Write|Give me|Make] [this|the following] as [CSV|one line of CSV]: {pairs}
{pairs}. [As CSV with a header.|CSV with a header, please.]
[Turn|Convert] this into CSV: {pairs}
[I need|I want] CSV [of|for] {pairs}.'''.splitlines())

CAPITALS = Split('''[Write|Say] "{text}" in capital letters.
[Capitals|Upper case], please: {text}
[Turn|Put] "{text}" into [capitals|upper case].
[Shout|Yell]: {text}
"{text}" in [capitals|upper case letters|capital letters][?|, please.]'''.splitlines())

THOUGHTS = '''[The form is|Asked is|The user wants] {form}. [I fill it in.|I write only that.|Nothing else.]'''


def make(rng):
    return rng.choice((as_json, as_json, bullets, bullets, one_word, as_csv,
                       capitals))(rng)


def one_turn(rng, user, form, answer, right):
    thoughts = expand(rng, THOUGHTS).format(form=form)

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        return None if right(text) else f'not {form}: {text}'

    return task(rng, 'daily_format', 'single', [Turn(user, check, gold)], {},
                (RETAIN, CHAT), True)


def pairs_of(rng):
    keys = rng.sample(sorted(VALUES), rng.randint(2, 4))

    return {k: VALUES[k](rng) for k in keys}


def told(rng, pairs):
    sign = rng.choice((' ', ': ', ' = ', ' is '))

    return ', '.join(f'{k}{sign}{v}' for k, v in pairs.items())


def unfenced(text):
    """Returns the text without a fence of Markdown."""

    lines = text.strip().splitlines()

    return '\n'.join(line for line in lines if not line.startswith('```'))


def as_json(rng):
    pairs = pairs_of(rng)
    user = expand(rng, rng.choice(JSON).replace('\\n', '\n')).format(
        pairs=told(rng, pairs), keys=' and '.join(pairs))
    answer = json.dumps(pairs, ensure_ascii=False,
                        indent=rng.choice((None, None, 2)))

    if rng.random() < 0.2:
        answer = f'```json\n{answer}\n```'

    def right(text):
        try:
            said = json.loads(unfenced(text))
        except ValueError:
            return False

        return isinstance(said, dict) and {
            str(k).lower(): str(v) for k, v in said.items()} == {
            k: str(v) for k, v in pairs.items()}

    return one_turn(rng, user, 'JSON', answer, right)


def bullets(rng):
    pool = rng.choice((names.GOODS, names.PLACES, names.FIRST,
                       names.PRODUCTS, names.ERRANDS))
    items = rng.sample(pool, rng.randint(3, 6))
    numbered = rng.random() < 0.4
    joined = ', '.join(items[:-1]) + rng.choice((' and ', ', ')) + items[-1]
    user = manner(rng, expand(rng, rng.choice(
        NUMBERED if numbered else BULLETS)).format(items=joined), True)
    mark = rng.choice(('- ', '- ', '* ', ''))
    answer = '\n'.join(f'{i}. {x}' if numbered else mark + x
                       for i, x in enumerate(items, 1))

    def right(text):
        lines = [s.strip() for s in text.strip().splitlines() if s.strip()]

        return len(lines) == len(items) and all(
            s.lower().endswith(x.lower()) and (not numbered or s.startswith(
                str(i))) for i, (s, x) in enumerate(zip(lines, items), 1))

    return one_turn(rng, user, 'a numbered list' if numbered else 'a list',
                    answer, right)


def one_word(rng):
    pool = rng.choice((names.GOODS, names.PLACES, names.FIRST))
    pool = [w for w in rng.sample(pool, 8) if ' ' not in w]
    a, b = pool[:2] if len(pool) > 1 else ('tea', 'coffee')
    user = expand(rng, rng.choice(ONE_WORD)).format(a=a, b=b)
    answer = rng.choice((a, b)) + rng.choice(('.', '', '!'))

    return one_turn(rng, user, 'one word', answer,
                    lambda text: text.strip(' .!\n').lower()
                    in (a.lower(), b.lower()))


def as_csv(rng):
    pairs = pairs_of(rng)
    user = expand(rng, rng.choice(CSV)).format(pairs=told(rng, pairs))
    answer = ','.join(pairs) + '\n' + ','.join(map(str, pairs.values()))

    def right(text):
        lines = unfenced(text).splitlines()

        return bool(lines) and [v.strip() for v in lines[-1].split(',')] \
            == [str(v) for v in pairs.values()]

    return one_turn(rng, user, 'CSV', answer, right)


def capitals(rng):
    text = expand(rng, '{a} [and|or|with] {b}|the {c} of {d}|{d} [likes|has] '
                       '{a}|a {c}, please'.join(('[', ']'))).format(
        a=rng.choice(names.GOODS), b=rng.choice(names.GOODS),
        c=rng.choice(names.PRODUCTS), d=rng.choice(names.FIRST))
    user = expand(rng, rng.choice(CAPITALS)).format(text=text)

    return one_turn(rng, user, 'capital letters', text.upper(),
                    lambda said: said.strip(' ."!\n') == text.upper())
