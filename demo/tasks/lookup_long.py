# Copyright (C) The nginx-dsa authors

"""Look-ups in long notes.  One to five of many entries matter, and the others
are similar, so sparse attention must select among them."""

import math
import re

from tasks import lookup_ask, lookup_worlds
from tasks.lookup import INTROS, choose_fields, conversation
from tasks.lookup_filler import sentence
from tasks.lookup_notes import FORMS, Notes
from tasks.wording import polite


# tokens of the notes, approximately

SHORTEST, LONGEST = 600, 7000

# the least share of the notes that are entries; the rest is filler

FEWEST = 0.05

WORLDS = (lookup_worlds.PEOPLE, lookup_worlds.STORE, lookup_worlds.BOXES)

KINDS = ((lookup_ask.value, 5), (lookup_ask.each, 5), (lookup_ask.hop, 3),
         (lookup_ask.total, 2), (lookup_ask.difference, 1),
         (lookup_ask.which, 2))


def make(rng):
    """Returns a task of one turn."""

    kind = rng.choices([k[0] for k in KINDS], [k[1] for k in KINDS])[0]
    size = math.exp(rng.uniform(math.log(SHORTEST), math.log(LONGEST)))
    asked = None

    while asked is None:
        share = math.exp(rng.uniform(math.log(FEWEST), 0))
        notes = make_notes(rng, kind, size * share)
        asked = kind(rng, notes)

    body = text(rng, notes, size)
    return conversation('lookup_long', asked, body,
                        polite(rng, asked.question), False)


def make_notes(rng, kind, size):
    """Returns notes of about so many tokens."""

    world, form = rng.choice(WORLDS), rng.choice(FORMS)
    fields = choose_fields(rng, world, rng.randint(1, 3), kind)

    def some(n):
        return Notes(world, form, fields, tuple(
            lookup_worlds.make_records(rng, world, fields, n)))

    sample = some(8).lines(rng)[1]
    n = int(size * 8 / sum(map(tokens, sample)))

    return some(min(max(6, n), lookup_worlds.most(rng, world)))


def text(rng, notes, size):
    """Returns the notes with enough filler sentences to have about size
    tokens.  They are between the entries, or around a table or list."""

    head, lines = notes.lines(rng)
    joint = ' ' if notes.form == 'prose' else '\n'
    left = size - sum(map(tokens, lines))
    idle = []

    while left > 0:
        idle.append(sentence(rng))
        left -= tokens(idle[-1])

    if notes.form in ('table', 'json'):
        cut = rng.randint(0, len(idle))
        parts = [' '.join(idle[:cut]), '\n'.join([head] * bool(head) + lines),
                 ' '.join(idle[cut:])]
        body = '\n\n'.join(p for p in parts if p)
    else:
        body = joint.join(mixed(rng, lines, idle))

    return rng.choice(INTROS) + '\n' + body


def mixed(rng, lines, idle):
    """Merges two lists at random; each keeps its order."""

    mine = [True] * len(lines) + [False] * len(idle)
    rng.shuffle(mine)
    lines, idle = iter(lines), iter(idle)
    return [next(lines if m else idle) for m in mine]


def tokens(text):
    """Estimates the tokens of a text, rather too high: one per digit and per
    run of punctuation, one per six letters of a word."""

    words = re.findall(r'[A-Za-z]+', text)
    others = re.findall(r' (?=\d)|\d|\n|[^\w\s]+', text)
    return sum(1 + len(w) // 6 for w in words) + len(others) + 1
