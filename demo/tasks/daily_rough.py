# Copyright (C) The nginx-dsa authors

"""Requests as people type them in a hurry: without apostrophes or capitals,
with abbreviations and slips.  Only the words of a template are changed, never
what was filled in, so the request means the same."""

import re

from tasks.phrase import ARTICLE, capital, expand, manner


FIELD = re.compile(r'(\{\w+\})')
LONG = re.compile(r'(?<![\w\'])[a-z]{5,}(?![\w\'])')

SHORT = (('please', 'pls'), ('Please', 'Pls'), ('you', 'u'), ('your', 'ur'),
         ('thanks', 'thx'), ('because', 'cuz'), ('tomorrow', 'tmrw'),
         ('people', 'ppl'), ('are you', 'r u'), ('I am', 'im'), ('and', '&'),
         ('with', 'w/'), ('want to', 'wanna'), ('going to', 'gonna'),
         ('minutes', 'mins'), ('about', 'abt'), ('really', 'rly'),
         ('I do not', 'i dont'), ('tonight', '2nite'))


def slip(rng, text):
    """Returns the text with a slip in one of its longer words."""

    words = list(LONG.finditer(text))

    if not words:
        return text

    m = words[int(rng.random() * len(words))]
    w = m[0]
    i = 1 + int(rng.random() * (len(w) - 3))
    way = rng.random()

    if way < 0.4:
        w = w[:i] + w[i + 1] + w[i] + w[i + 2:]
    elif way < 0.75:
        w = w[:i] + w[i + 1:]
    else:
        w = w[:i] + w[i] + w[i:]

    return text[:m.start()] + w + text[m.end():]


def shorter(rng, text):
    """Returns the text with some words written shorter."""

    for word, short in SHORT:
        if rng.random() < 0.6:
            text = re.sub(rf'(?<![\w\']){word}(?![\w\'])', short, text)

    return text


def rough(rng, text):
    """Returns a template, whose alternatives are chosen, with the words
    outside of its fields changed, or as it is."""

    way = rng.random()

    if way > 0.36:
        return text

    parts = FIELD.split(text)

    if way < 0.09:
        parts[::2] = [p.replace("'", '') for p in parts[::2]]
    elif way < 0.17:
        parts[::2] = [shorter(rng, p) for p in parts[::2]]
    elif way < 0.27:
        at = 2 * int(rng.random() * len(parts[::2]))
        parts[at] = slip(rng, parts[at])
    else:
        parts[::2] = [p.lower().replace("'", '' if way < 0.31 else "'")
                      for p in parts[::2]]

    return ''.join(parts)


def typed(rng, ask, /, plain=False, **fields):
    """Returns the text of a template as a user types it.  plain: without a
    greeting before it or thanks after it."""

    text = expand(rng, ask)
    changed = rough(rng, text)
    said = ARTICLE.sub(r'\1n ', changed.format(**fields))

    if changed != text or plain:
        return said if rng.random() < 0.8 else said.rstrip('.?!') or said

    return manner(rng, capital(said), ask.startswith('{'))
