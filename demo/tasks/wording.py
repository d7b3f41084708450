# Copyright (C) The nginx-dsa authors

"""Styles of requests: more or less polite, with or without a capital; and
plurals of things."""


BEFORE = ('Please ', 'Hi! ', 'Hello, ', 'Quick question: ', 'Tell me: ',
          'One more: ', 'Now: ', 'Hey, ')
AFTER = (' Thanks.', ' Thank you!', ' Please.', ' Be brief.')


def polite(rng, text):
    """Returns a request in one of several styles; its words are unchanged."""

    manner = rng.randrange(8)

    if manner == 0:
        text = rng.choice(BEFORE) + lower(text)
    elif manner == 1:
        text = text + rng.choice(AFTER)
    elif manner == 2:
        text = lower(text)
    elif manner == 3:
        text = lower(text).rstrip('?.')

    return text


def lower(text):
    return text[0].lower() + text[1:]


def plural(thing):
    """Returns the plural of one of words.THINGS."""

    if thing.endswith(('s', 'x', 'sh', 'ch')):
        return thing + 'es'

    if thing in ('knife', 'leaf', 'scarf', 'shelf'):
        return thing.rstrip('e').rstrip('f') + 'ves'

    return thing + 's'


def a(thing):
    """Returns a word with its article, "a" or "an"."""

    return ('an ' if thing[0] in 'aeiou' else 'a ') + thing
