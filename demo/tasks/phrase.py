# Copyright (C) The nginx-dsa authors

"""Texts with alternatives: "[a|b|] c" is "a c", "b c" or "c".  Alternatives
may be nested.  Fields in braces are filled in afterwards."""

import functools
import re


TOKEN = re.compile(r'[\[\]|]|[^\[\]|]+')
BLANKS = re.compile(r' {2,}')
BEFORE_MARK = re.compile(r' +(?=[?.!,;:](?:\s|$))')
ARTICLE = re.compile(r'\b([Aa]) (?=[aeiou])')


@functools.lru_cache(maxsize=None)
def parsed(text):
    """Returns a list of strings and of tuples of alternatives, which are
    lists of the same kind."""

    tokens = TOKEN.findall(text)
    at = 0

    def sequence():
        nonlocal at
        items = []

        while at < len(tokens) and tokens[at] not in ('|', ']'):
            token = tokens[at]
            at += 1

            if token == '[':
                items.append(tuple(choices()))
            else:
                items.append(token)

        return items

    def choices():
        nonlocal at
        found = [sequence()]

        while tokens[at] == '|':
            at += 1
            found.append(sequence())

        at += 1

        return found

    items = sequence()

    if at < len(tokens):
        raise ValueError(f'"{tokens[at]}" outside of brackets: {text}')

    return items


def expand(rng, text):
    """Returns the text with alternatives chosen.  An alternative that was left
    out leaves no blank behind."""

    if '[' not in text:
        return text

    out = []

    def add(items):
        for item in items:
            if isinstance(item, str):
                out.append(item)
            else:
                add(item[int(rng.random() * len(item))])

    add(parsed(text))
    said = BEFORE_MARK.sub('', BLANKS.sub(' ', ''.join(out)))

    return said.strip(' ')


def say(rng, text, /, **fields):
    """Returns the text with alternatives chosen and fields filled in; "a"
    before a vowel becomes "an"."""

    said = expand(rng, text).format(**fields)

    return ARTICLE.sub(r'\1n ', said) if ' a ' in said or said[:2] == 'A ' \
        else said


NAME = re.compile(r'\S*[\w~][./@_]\w|[~/]')


def capital(text):
    """Returns a text with a capital, unless it begins with the name of a
    file, an address or the like."""

    return text if NAME.match(text) else text[:1].upper() + text[1:]


HELLO = ('[Hi|Hello|Hey|Hey there|Hi there|Hello there|Good day|Good evening'
         '|Good morning][!|,|.]')
PLEASE = '[, please|, thanks|, thank you| please|, if you can].'
THANKS = ('[Thanks!|Thanks.|Thank you.|Thank you!|Keep it short.'
          '|It is urgent.|No hurry.|I am curious.]')


def manner(rng, text, name=False):
    """Returns a request as users type it: with or without a capital, a mark at
    its end, a greeting or a word of politeness.  name: it begins with a name,
    which keeps its capital."""

    way = int(rng.random() * 12)

    if way <= 1 and not name:
        text = text[:1].lower() + text[1:]

    if way in (1, 2):
        return text.rstrip('?.')

    if way == 3:
        return expand(rng, HELLO) + ' ' + text

    if way == 4 and text.endswith('.'):
        return expand(rng, f'{text[:-1]}{PLEASE}') if not re.search(
            r'[\[|]|please|\bpls\b|thank', text, re.IGNORECASE) else text

    # without a mark, it would seem a part of a text at the end

    if way == 5 and text[-1] in '.?!':
        return text + ' ' + expand(rng, THANKS)

    return text
