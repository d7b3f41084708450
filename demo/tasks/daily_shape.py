# Copyright (C) The nginx-dsa authors

"""Answers of one line in a form that the user asks for: capitals, quotes,
separators, a number of words, only yes or no, only a number."""

from tasks import names
from tasks.daily import task
from tasks.parts import Split
from tasks.phrase import capital, expand
from tasks.skills import COLOR_OF, KINDS, ONES
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.wording import a as article


THOUGHTS = Split('''[The form is|Asked is|The user wants] {form}. [I fill it in.|I write only that.|Nothing else.]
[The answer must be|It should be] {form}. [No other words.|So I write that.|]
{Form}, [nothing else|and nothing around it|as the user asked].
I write it as {form}[ and add nothing|].
[Wanted|Requested]: {form}. [I do not explain it.|Only that.|]'''.splitlines())


def one_turn(rng, user, form, answer, right):
    thoughts = expand(rng, rng.choice(THOUGHTS)).format(form=form,
                                                        Form=capital(form))

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        return None if right(text) else f'not {form}: {text}'

    return task(rng, 'daily_format', 'single', [Turn(user, check, gold)], {},
                (RETAIN, CHAT), True)


def lines(text):
    return Split(s.replace('\\n', '\n') for s in text.strip().splitlines())


CAPITALS = lines(r'''
[Write|Say] "{text}" in capital letters.
[Capitals|Upper case], please: {text}
[Turn|Put] "{text}" into [capitals|upper case].
[Shout|Yell]: {text}
"{text}" in [capitals|upper case letters|capital letters][?|, please.]
all caps pls: {text}
My sign needs capital letters. The text: {text}
Make everything in this uppercase: {text}
{text}\n\nPlease write that in block letters.
Could you write "{text}" with capital letters only?
I want it loud, in all caps: {text}
Convert to upper case:\n{text}
The form must be filled in with capitals: {text}
uppercase("{text}")
How does "{text}" look in capitals?
Caps lock is broken here. Type this in capitals for me: {text}
No small letters, please: {text}''')

SMALL = lines(r'''
[Write|Say] "{text}" in small letters.
[Lower case|Small letters], please: {text}
[Turn|Put] "{text}" into [small letters|lower case].
"{text}" in [lower case|lowercase letters|small letters][?|, please.]
all lowercase pls: {text}
Do not shout. Write this in lower case: {text}
Somebody left caps lock on: {text}. Make it lower case.
{text}\n\nPlease write that in small letters.
Could you write "{text}" without any capital letters?
Convert to lower case:\n{text}
The name of the file must be in lower case: {text}
lowercase("{text}")
No capitals, please: {text}
How does "{text}" look in small letters?''')

AROUND = (('double quotes', '"', '"', lines(r'''
[Put|Write] {text} in [double |]quotes.
[Put|Set] quotation marks around this: {text}
[Quote|Put quotes around]: {text}
{text}, with quotation marks[, please|].
quotes around this pls: {text}
Make a quotation of it: {text}
I need {text} between double quotes.
{text}\n\nWrite it with quotation marks around.
Could you enclose {text} in double quotes?
The string must be quoted, so write {text} in quotes.
Answer only with the quoted text: {text}''')),
          ('round brackets', '(', ')', lines(r'''
[Put|Write] {text} in [round brackets|parentheses|brackets].
[Put|Set] [brackets|parentheses] around this: {text}
{text}, but in [brackets|parentheses][, please|].
parentheses around this pls: {text}
I need {text} between round brackets.
{text}\n\nWrite it in brackets.
Could you enclose {text} in parentheses?
This is only a remark, so put it in brackets: {text}
Answer only with {text} in parentheses.''')),
          ('bold in Markdown', '**', '**', lines(r'''
Make [this|the following] bold in Markdown: {text}
[Write|Put] {text} in bold (Markdown).
{text} should be bold. Use Markdown.
bold pls, markdown: {text}
How do I write {text} in bold in Markdown? Only the result.
In Markdown, mark {text} as bold.
Emphasize with two stars on each side: {text}
I need {text} in bold letters for my README.
Use Markdown to make "{text}" bold.''')),
          ('a heading', '# ', '', lines(r'''
Make [this|the following] a heading in Markdown: {text}
Write {text} as a Markdown heading.
A first-level heading for {text}, in Markdown, please.
heading pls (markdown): {text}
My README begins with the title {text}. Write the title in Markdown.
{text}\n\nMake it a Markdown title.
In Markdown, how do I write the heading {text}? Only the line.
Title of the page: {text}. Markdown, top level.''')),
          ('code in Markdown', '`', '`', lines(r'''
Write {text} as inline code in Markdown.
Put {text} in backticks.
[Backticks|Code marks] around {text}, please.
{text} in code style (Markdown)[?|, please.]
inline code pls: {text}
In my README, {text} should look like code. Write it that way.
Enclose {text} in backticks and write nothing else.
Mark {text} as code with Markdown.''')))

SEPARATE = tuple((form, sign, lines(q)) for form, sign, q in (
    ('words divided by commas', ', ', r'''
[Write|Put] [these|this] [in one line|on one line], [with|divided by] commas:\n{lines}
{lines}\n\nMake this one line with commas[, please|].
comma separated pls:\n{lines}
Join these with commas:\n{lines}
I need this list as one line, with commas between the entries.\n{lines}
No list, please. Commas instead.\n{lines}
Turn the lines into a list with commas:\n{lines}
{lines}\n\nAll in a single line, comma separated.'''),
    ('words divided by semicolons', '; ', r'''
[Write|Put] [these|this] in one line, divided by semicolons: {commas}
{commas}. Use semicolons instead of commas.
semicolons pls: {commas}
Join these with semicolons:\n{lines}
{lines}\n\nOne line, semicolons between them, please.
I need semicolons between the entries: {commas}
Replace the commas by semicolons: {commas}'''),
    ('words divided by slashes', ' / ', r'''
[Write|Put] [these|this] in one line, divided by slashes: {commas}
{commas}. Use slashes instead of commas.
slashes between these pls: {commas}
Join these with slashes:\n{lines}
I want slashes between the words: {commas}
{lines}\n\nOne line, with slashes.
Replace the commas by slashes: {commas}'''),
    ('words divided by dashes', ' - ', r'''
[Write|Put] [these|this] in one line, divided by dashes: {commas}
{commas}. Use dashes instead of commas.
dashes between these pls: {commas}
Join these with dashes:\n{lines}
I want dashes between the words: {commas}
Replace the commas by dashes: {commas}'''),
))

# sentences of a number of words; {x} is one word

SENTENCES = {
    2: ('I like {x}.', '{X} everywhere.', 'Only {x}.', 'Good {x}.'),
    3: ('I like {x}.', '{X} are nice.', 'We want {x}.', 'People buy {x}.'),
    4: ('I really like {x}.', '{X} make me happy.', 'We have some {x}.',
        'Many people buy {x}.'),
    5: ('I like to see {x}.', '{X} are a good present.',
        'My friends often buy {x}.', 'There are {x} on Mondays.'),
    6: ('There are {x} on the table.', 'I would like to have {x}.',
        'Every Monday we buy some {x}.', '{X} are not hard to find.'),
    7: ('There are {x} in the old house.', 'I think that {x} are very nice.',
        'My sister has some {x} at home.', 'In summer, we see {x} every day.'),
}

SENTENCES[2] = SENTENCES[2][1:]

EXACTLY = lines(r'''
[Write|Say] something about {x} in exactly {n} words.
Use exactly {n} words [to talk about|about] {x}.
Write a sentence with {x} that has {n} words.
{n} words about {x}[, please|].
A sentence of {n} words with the word {x}[, please|].
{n} words, no more and no less, about {x}.
The topic is {x}. You have exactly {n} words.
about {x} pls, {n} words exactly
Could you make a sentence with {x}? It must be {n} words long.
Tell me about {x}, but use just {n} words.
I need a line for a card, {n} words, about {x}.
Make a sentence. It has {n} words, and {x} is one of them.
My form takes exactly {n} words. Say something on {x}.''')

YES_NO = lines(r'''
{q} [Answer only yes or no.|Yes or no?|Just yes or no.]
[Answer|Reply] with yes or no[ only|]: {q}
Yes or no: {q}
Only yes or no, please. {q}
{q} (yes/no)
No explanation, only yes or no. {q}
One word, yes or no: {q}
I only want to hear yes or no. {q}
{q}\nYour answer is either "yes" or "no".
true or not? say just yes or no. {q}
You may say yes or you may say no, nothing else. {q}''')

NUMBER = lines(r'''
{q} [Answer only with the number.|Only the number, please.|Just the number.]
[Answer|Reply] with a number[ only|]. {q}
Number only: {q}
{q} (just digits, no words)
I want nothing but the number. {q}
{q}\nDo not write a sentence, only the number.
Digits only pls. {q}
{q} My program reads your answer, so write only the number.
No words. {q}''')


def words_of(rng):
    return expand(rng, '[{a} [and|or|with] {b}|the {c} of {d}|{d} [likes|has] '
                       '{a}|a {c} for {d}|no {a} on {e}|{d} lives in {e}|the '
                       'road to {e}|we need {a}|{a} from {e}]').format(
        a=rng.choice(names.GOODS), b=rng.choice(names.GOODS),
        c=rng.choice(names.PRODUCTS), d=rng.choice(names.FIRST),
        e=rng.choice(names.PLACES))


def capitals(rng):
    text = words_of(rng)
    user = expand(rng, rng.choice(CAPITALS)).format(text=text)

    return one_turn(rng, user, 'capital letters', text.upper(),
                    lambda said: said.strip(' ."!\n') == text.upper())


def small(rng):
    text = words_of(rng)
    shown = text.upper() if rng.random() < 0.6 else text.title()
    user = expand(rng, rng.choice(SMALL)).format(text=shown)

    return one_turn(rng, user, 'small letters', text.lower(),
                    lambda said: said.strip(' ."!\n') == text.lower())


def around(rng):
    form, before, after, asks = rng.choice(AROUND)
    text = rng.choice(names.PRODUCTS) if rng.random() < 0.3 \
        else words_of(rng)
    answer = before + text + after

    return one_turn(rng, expand(rng, rng.choice(asks)).format(text=text),
                    form, answer, lambda said: said.strip() == answer)


def separate(rng):
    form, sign, asks = rng.choice(SEPARATE)
    items = rng.sample(rng.choice((names.GOODS, names.PLACES, names.FIRST)),
                       rng.randint(2, 5))
    user = expand(rng, rng.choice(asks)).format(
        lines='\n'.join(items), commas=', '.join(items))

    def right(said):
        return [s.strip() for s in said.strip(' .').split(sign.strip())] \
            == items

    return one_turn(rng, user, form, sign.join(items), right)


def exactly(rng):
    n = rng.choice(sorted(SENTENCES))
    x = rng.choice([w for w in rng.sample(names.GOODS, 12) if ' ' not in w]
                   or ['apples'])
    user = expand(rng, rng.choice(EXACTLY)).format(
        x=x, n=rng.choice((n, ONES[n])))
    answer = rng.choice(SENTENCES[n]).format(x=x, X=capital(x))

    def right(said):
        return len(said.split()) == n and x in said.lower()

    return one_turn(rng, user, f'{n} words', answer, right)


def question(rng):
    """Returns a question and whether the answer is yes."""

    way = rng.randrange(4)
    yes = rng.random() < 0.5

    if way == 0:
        x, y = rng.sample(range(1, 100), 2)
        more = rng.choice(('larger', 'smaller'))

        return f'Is {x} {more} than {y}?', (x > y) == (more == 'larger')

    if way == 1:
        thing = rng.choice(sorted(COLOR_OF))
        color = COLOR_OF[thing] if yes else rng.choice(sorted(
            set(COLOR_OF.values()) - {COLOR_OF[thing]}))

        return f'Is {thing} {color}?', yes

    if way == 2:
        known = sorted(k for k in KINDS if k[0] in (
            'fruit', 'vegetable', 'tool', 'tree', 'metal'))
        kind, other = rng.sample(known, 2)
        word = rng.choice(KINDS[kind])

        return f'Is {article(word) if kind[0] != "metal" else word} ' \
               f'{article((kind if yes else other)[0])}?', yes

    items = rng.sample(names.FIRST, rng.randint(2, 4))
    other = rng.choice(names.FIRST)
    who = rng.choice(items) if yes else other

    return f'Invited are {", ".join(items)}. Is {who} invited?', who in items


def yes_no(rng):
    q, yes = question(rng)
    user = expand(rng, rng.choice(YES_NO)).format(q=q)
    wanted = 'yes' if yes else 'no'
    answer = expand(rng, f'[{wanted}|{wanted.capitalize()}'
                         f'|{wanted.capitalize()}.]')

    return one_turn(rng, user, 'yes or no', answer,
                    lambda said: said.strip(' .!\n').lower() == wanted)


def number(rng):
    goods, other = rng.sample(names.GOODS, 2)
    name, name2 = rng.sample(names.FIRST, 2)
    n, m = rng.sample(range(2, 1000), 2)
    q = rng.choice((
        f'{name} has {n} {goods} and {m} {other}. How many {goods} does '
        f'{name} have?',
        f'There are {m} {other} in the {rng.choice(names.ROOMS)} and {n} '
        f'{goods} in the {rng.choice(names.ROOMS)}. How many {goods} are '
        'there?',
        f'{name} lives at number {n}, {name2} at {m}. What is the number of '
        f'{name}?',
        f'The code of {name} is {n}, and {name2} has {m}. Which code has '
        f'{name}?',
        f'A {rng.choice(names.PRODUCTS)} was {m} and is now {n}. What does '
        'it cost now?',
        f'We sold {n} {goods} last week. How many {goods} did we sell?'))
    user = expand(rng, rng.choice(NUMBER)).format(q=q)

    return one_turn(rng, user, 'only the number', str(n),
                    lambda said: said.strip(' .') == str(n))


SHAPES = (capitals, capitals, small, around, around, separate, exactly,
          exactly, yes_no, yes_no, number)
