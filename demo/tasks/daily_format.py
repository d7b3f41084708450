# Copyright (C) The nginx-dsa authors

"""Answers in a form that the user asks for: JSON, YAML, CSV, a table, a list.
Forms of one line, such as capitals, are in daily_shape.py, others in
format_more.py."""

import json
import re

from tasks import daily_shape, format_more, names
from tasks.daily_shape import one_turn
from tasks.parts import Split
from tasks.phrase import capital, expand, manner
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
    'last_name': lambda rng: rng.choice(names.LAST),
    'task': lambda rng: rng.choice(names.ERRANDS),
    'file': lambda rng: f'{rng.choice(names.STEMS)}.'
                        f'{rng.choice(names.ENDINGS)}',
    'points': lambda rng: rng.randrange(1, 500),
    'seats': lambda rng: rng.randrange(2, 60),
    'street': lambda rng: f'{rng.choice(names.LAST)} Street '
                          f'{rng.randrange(1, 200)}',
    'phone': lambda rng: rng.randrange(100000, 999999),
    'size': lambda rng: rng.choice(('S', 'M', 'L', 'XL', 'XXL')),
}


def lines(text):
    """Returns the templates of a text; \\n is a new line of the user."""

    return Split(s.replace('\\n', '\n') for s in text.strip().splitlines())


JSON = lines(r'''
[Write|Give me|Return|Make] [this|the following] as [JSON|a JSON object][, the keys being {keys}|]: {pairs}
{pairs}. [As JSON|As a JSON object|In JSON], please.
[Turn|Convert] this into [JSON|a JSON object]: {pairs}
[Answer|Reply] only with JSON: {pairs}
JSON for {pairs}[?|, please.]
[I need|I want] a JSON object [of|for] {pairs}.
{pairs}\nFormat: JSON
json pls: {pairs}
My program reads JSON. Give it this: {pairs}
{pairs} -> JSON
Can you make JSON out of this? {pairs}
Here is some data: {pairs}. [I'd like to have it|Please write it] as JSON.
Output a single JSON object, nothing else. {pairs}
Respond in JSON.\n{pairs}
The data is {pairs}. What does it look like in JSON?
Put the following into an object with the keys {keys}: {pairs}. JSON, no comments.
Encode as JSON:\n{pairs}
I have to send this to an API that takes JSON: {pairs}
[Structured output|Machine readable], please, that is JSON: {pairs}
"{pairs}" in JSON [syntax|notation][?|, please.]
Use JSON with the keys {keys}.\n\n{pairs}
How would you write {pairs} as a JSON object?
No prose. Only a JSON object for: {pairs}
{pairs}\n\nPlease convert to json
Someone noted: {pairs}. Write that down in JSON.
Parse this into JSON ({keys}): {pairs}
My colleague wrote "{pairs}", but we need JSON. Could you do that?
make a json from this {pairs}
I am filling a config file in JSON. It should say {pairs}.
The API wants {keys} as JSON. The values: {pairs}''')

YAML = lines(r'''
[Write|Give me|Return] this as YAML: {pairs}
{pairs}. As YAML, please.
[Turn|Convert] this into YAML: {pairs}
yaml pls: {pairs}
[I need|I want] YAML for {pairs}.
One "key: value" per line, please: {pairs}
Put each of these on a line of its own, as key: value.\n{pairs}
My config is YAML. Write this for it: {pairs}
{pairs}\nFormat: YAML
Write {pairs} in YAML syntax.
Here is some data: {pairs}. I'd like it as lines of the form key: value.
Can you make YAML of this? {pairs}
No JSON, I use YAML: {pairs}
Only YAML, nothing else.\n{pairs}''')

BULLETS = lines(r'''
[Write|Give me|Make] [a list|a bullet list] of {items}.
[List|Put] {items} [one per line|as bullets|in a list].
[Turn|Make] this into a list: {items}
{items}. [As a list, please.|One per line.]
[A list with dashes|Bullets] for {items}[, please|].
[I need|I want] {items} as a list.
bullet points pls: {items}
Each on a line of its own: {items}
I can't read it in one line: {items}. Break it up.
For my slides I need bullet points: {items}
Make bullets of this sentence: {items}.
Format as a list:\n{items}
My shopping note says {items}. Put each thing on its own line.
List: {items}
Split this up, one entry per line: {items}
Could you write {items} as a bulleted list?
Please use a new line for each of these: {items}.
Show {items} under each other.
{items} - list them
This is a mess: {items}. Make a tidy list.
I have {items}. Write them in a column.
How would {items} look as a list?
Instead of commas, I want line breaks: {items}
The items are {items}. Print them as bullets, please.
Rewrite "{items}" as a list.
As a Markdown list: {items}''')

NUMBERED = lines(r'''
[Write|Give me|Make] a numbered list of {items}.
[Number|Count] these: {items}
{items}. [As a numbered list.|With numbers.]
[Put|Write] {items} under each other, [numbered|with numbers].
numbered list pls: {items}
Please number the following: {items}
1, 2, 3 and so on, one per line: {items}
I need {items} as an enumerated list.
This is the order: {items}. Write it as a numbered list.
Format: numbered list\n{items}
List {items} with a number in front of each.
Make a ranking, number one first: {items}
Could you give each of these a number? {items}
My steps are {items}. Number them, please.
These are the steps: {items}. Show them with 1., 2., 3.
Turn "{items}" into a numbered list.
First to last, with numbers: {items}
We vote on {items}. Number the choices.
Agenda, numbered: {items}''')

ONE_WORD = lines(r'''
{a} or {b}? [Pick one.|Answer with one word.|One word only.]
[Choose|Pick] one: {a}, {b}.
[Which is better|What do you prefer], {a} or {b}? [One word.|Just name it.]
[Answer|Reply] with one word: {a} or {b}?
[Decide for me|Toss a coin]: {a} or {b}? [One word, please.|]
{a} vs {b}, one word
I can't decide between {a} and {b}. Say just one of them.
No explanation, just the word: {a} or {b}?
You may use a single word. {a} or {b}?
Shall it be {a} or {b}? Be very short: one word.
Flip a coin between {a} and {b} and tell me only the result.
I'm torn: {a}? {b}? Give me one word.
One of the two, without any reason: {a}, {b}
{a} / {b}? Only name your choice.
We are fighting about {a} or {b}. Decide with one word.
If you had to choose, {a} or {b}? Name one, say nothing else.''')

CSV = lines(r'''
[Write|Give me|Make] [this|the following] as [CSV|one line of CSV]: {pairs}
{pairs}. [As CSV with a header.|CSV with a header, please.]
[Turn|Convert] this into CSV: {pairs}
[I need|I want] CSV [of|for] {pairs}.
csv pls: {pairs}
{pairs}\nFormat: CSV
I want to open this in a spreadsheet. Write it as CSV: {pairs}
The first line has the names, the second the values, all with commas: {pairs}
Can you make CSV out of this? {pairs}
Comma separated values, please: {pairs}
Output CSV and nothing else.\n{pairs}
{pairs} -> CSV
Here is one record: {pairs}. Write it in CSV.
My import only takes CSV: {pairs}
How would you write {pairs} as CSV with a header line?
Save this as CSV (columns {keys}): {pairs}''')

TABLE = lines(r'''
[Write|Give me|Make] [this|the following] as a [table|Markdown table]: {rows}
[Turn|Convert] this into a table: {rows}
A table of {rows}, please.
{rows}. As a table with the columns {keys}.
table pls ({keys}): {rows}
[I need|I want] a Markdown table with {keys}: {rows}
Put this in a table with a header.\n{rows}
Columns: {keys}. Rows: {rows}. Make the table.
{rows}\nFormat: Markdown table
My wiki takes Markdown tables. Make one of this: {rows}
Could you tabulate {rows}?
Show {keys} side by side in a table: {rows}
Draw up a table with {keys} on top: {rows}
I have a list, {rows}, and want a table of {keys}.
Lay this out as a Markdown table: {rows}''')

ARRAY = lines(r'''
[Write|Give me|Return] {items} as a JSON [array|list].
JSON array [of|for] {items}[?|, please.]
[Turn|Convert] this into a JSON array: {items}
{items} -> JSON array of strings
json list pls: {items}
An array of strings in JSON: {items}
My code needs a JSON array with {items}.
Only the JSON array, nothing else.\n{items}
{items}\nFormat: JSON array
Put {items} into an array, in JSON.
I have {items} and I need a JSON list of them.
How do I write {items} as an array in JSON?
Answer with a JSON array of these: {items}
Encode the list {items} in JSON.''')


def make(rng):
    if rng.random() < 0.5:
        return rng.choice(format_more.MAKERS)(rng)

    if rng.random() < 0.45:
        return rng.choice(daily_shape.SHAPES)(rng)

    return rng.choice((as_json, as_json, array, bullets, bullets, as_csv,
                       yaml, table, one_word))(rng)


def pairs_of(rng):
    keys = rng.sample(sorted(VALUES), rng.randint(2, 4))

    return {k: VALUES[k](rng) for k in keys}


def told(rng, pairs):
    sign = rng.choice((' ', ': ', ' = ', ' is ', '=', ':'))

    return rng.choice((', ', ', ', '; ')).join(
        f'{k}{sign}{v}' for k, v in pairs.items())


def unfenced(text):
    """Returns the text without a fence of Markdown."""

    lines = text.strip().splitlines()

    return '\n'.join(line for line in lines if not line.startswith('```'))


def fenced(rng, text, name):
    """Returns the text, now and then in a fence of Markdown."""

    return f'```{name}\n{text}\n```' if rng.random() < 0.15 else text


def listed(rng, items):
    return ', '.join(items[:-1]) + rng.choice((' and ', ', ')) + items[-1]


def as_json(rng):
    pairs = pairs_of(rng)
    user = expand(rng, rng.choice(JSON)).format(
        pairs=told(rng, pairs), keys=' and '.join(pairs))
    answer = fenced(rng, json.dumps(pairs, ensure_ascii=False,
                                    indent=rng.choice((None, None, 2))),
                    'json')

    def right(text):
        try:
            said = json.loads(unfenced(text))
        except ValueError:
            return False

        return isinstance(said, dict) and {
            str(k).lower(): str(v) for k, v in said.items()} == {
            k: str(v) for k, v in pairs.items()}

    return one_turn(rng, user, 'JSON', answer, right)


def array(rng):
    items = items_of(rng)
    user = expand(rng, rng.choice(ARRAY)).format(items=listed(rng, items))

    def right(text):
        try:
            return json.loads(unfenced(text)) == items
        except ValueError:
            return False

    return one_turn(rng, user, 'a JSON array', fenced(
        rng, json.dumps(items, ensure_ascii=False), 'json'), right)


def yaml(rng):
    pairs = pairs_of(rng)
    user = expand(rng, rng.choice(YAML)).format(pairs=told(rng, pairs))
    answer = '\n'.join(f'{k}: {v}' for k, v in pairs.items())

    def right(text):
        def bare(text):
            return [re.sub(r'["\']', '', s).strip()
                    for s in text.strip().splitlines()]

        return bare(unfenced(text)) == bare(answer)

    return one_turn(rng, user, 'YAML', fenced(rng, answer, 'yaml'), right)


def items_of(rng):
    pool = rng.choice((names.GOODS, names.PLACES, names.FIRST,
                       names.PRODUCTS, names.ERRANDS, names.ROOMS,
                       names.EVENTS, names.LANGUAGES))

    return rng.sample(pool, rng.randint(3, 6))


def bullets(rng):
    items = items_of(rng)
    numbered = rng.random() < 0.4
    user = manner(rng, expand(rng, rng.choice(
        NUMBERED if numbered else BULLETS)).format(
            items=listed(rng, items)), True)
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
    user = expand(rng, rng.choice(CSV)).format(
        pairs=told(rng, pairs), keys=' and '.join(pairs))
    answer = ','.join(pairs) + '\n' + ','.join(map(str, pairs.values()))

    def right(text):
        lines = unfenced(text).splitlines()

        return bool(lines) and [v.strip() for v in lines[-1].split(',')] \
            == [str(v) for v in pairs.values()]

    return one_turn(rng, user, 'CSV', answer, right)


def table(rng):
    """A table of two columns."""

    left, right_ = rng.choice((
        ('name', 'city'), ('name', 'age'), ('product', 'price'),
        ('goods', 'count'), ('name', 'points'), ('room', 'seats'),
        ('name', 'language'), ('city', 'day'), ('event', 'day'),
        ('file', 'count'), ('task', 'name')))
    rows, seen = [], set()

    while len(rows) < 2 or len(rows) < 4 and rng.random() < 0.5:
        row = (str(VALUES[left](rng)), str(VALUES[right_](rng)))

        if row[0] not in seen:
            rows.append(row)
            seen.add(row[0])

    sign = rng.choice((' ', ': ', ' - ', ' = '))
    user = expand(rng, rng.choice(TABLE)).format(
        rows=', '.join(f'{a}{sign}{b}' for a, b in rows),
        keys=f'{left} and {right_}')
    head = f'| {left} | {right_} |\n| --- | --- |\n'
    answer = head + '\n'.join(f'| {a} | {b} |' for a, b in rows)

    def right(text):
        found = [tuple(c.strip() for c in s.strip().strip('|').split('|'))
                 for s in text.strip().splitlines()]

        return found[-len(rows):] == rows and len(found) >= len(rows)

    return one_turn(rng, user, 'a table', answer, right)
