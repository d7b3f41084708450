# Copyright (C) The nginx-dsa authors

"""Worlds of records for look-ups.

A record is a dict with the parts of its key and the values of its fields.
Only the whole key is unique.  The value of a link is the key of another
record, so that a question can lead through one record to another.
"""

import math
from dataclasses import dataclass
from typing import Tuple

from tasks import words
from tasks.parts import Split, part


ROOMS = '''attic barn bakery cellar chapel corridor garage garden hall
kitchen library mill pantry porch shed stable studio tower vault
workshop'''.split()


@dataclass(frozen=True)
class Field:
    """
    name    its column
    says    a predicate with the value in it, as in 'is {v} years old'
    asks    questions for the value, separated by bars
    pool    its words, or a range of numbers; None for a link
    many    the predicate of several records, if they can be counted
    via     for a link: names of the record to which it leads, with bars
    steps   for a number: (more, less, most, least)
    unit    the text after the number
    """
    name: str
    says: str
    asks: str
    pool: object = None
    many: str = ''
    via: str = ''
    steps: Tuple[str, ...] = ()
    unit: str = ''


@dataclass(frozen=True)
class World:
    """
    parts   columns of the key, with the words of each
    noun    the part that is enough if no other record has the same
    key     the name of a record in a sentence; label: without its article
    who     the question words for a record
    all     the records together
    """
    parts: dict
    noun: str
    key: str
    label: str
    who: Tuple[str, ...]
    all: str
    fields: Tuple[Field, ...]


AGE = Field('age', 'is {v} years old',
            'How old is {key}?|What is the age of {key}?|What age is {key}?'
            '|Tell me how old {key} is.', range(10, 100),
            steps=('older', 'younger', 'oldest', 'youngest'))

CITY = Field('city', 'lives in {v}',
             'Where does {key} live?|In which city does {key} live?'
             '|Which city does {key} live in?|What is the city of {key}?',
             'cities', many='live in {v}')

COLOR = Field('color', 'likes {v}',
              'Which color does {key} like?|What color does {key} like?'
              '|What is the color of {key}?|Name the color that {key} likes.',
              words.COLORS, many='like {v}')

THING = Field('thing', 'owns the {v}',
              'What does {key} own?|Which thing does {key} own?'
              '|What is the thing of {key}?|Tell me what {key} owns.',
              words.THINGS)

FRIEND = Field('friend', 'has the friend {v}',
               'Who is the friend of {key}?|Which friend does {key} have?'
               '|Name the friend of {key}.|Tell me the friend of {key}.',
               via="the friend of {key}|{key}'s friend")

TEACHER = Field('teacher', 'has the teacher {v}',
                'Who is the teacher of {key}?|Which teacher does {key} have?'
                '|Name the teacher of {key}.|Who teaches {key}?',
                via='the teacher of {key}')

ROOM = Field('room', 'is in the {v}',
             'Where is {key}?|In which room is {key}?|What room is {key} in?'
             '|Where do I find {key}?', ROOMS, many='are in the {v}')

PRICE = Field('price', 'costs {v} coins',
              'What does {key} cost?|How much is {key}?'
              '|What is the price of {key}?|How many coins does {key} cost?',
              range(2, 1000),
              steps=('dearer', 'cheaper', 'dearest', 'cheapest'),
              unit=' coins')

OWNER = Field('owner', 'belongs to {v}',
              'Who owns {key}?|To whom does {key} belong?'
              '|Who is the owner of {key}?|Whose is {key}?',
              words.PEOPLE, many='belong to {v}')

REPLACES = Field('replaces', 'replaces {v}',
                 'What does {key} replace?|Which thing does {key} replace?'
                 '|Name the thing that {key} replaces.',
                 via='the thing that {key} replaces')

# below 100, so that a weight is never confused with a box number

WEIGHT = Field('weight', 'weighs {v} kg',
               'What does {key} weigh?|How heavy is {key}?'
               '|What is the weight of {key}?|How many kg does {key} weigh?',
               range(2, 100),
               steps=('heavier', 'lighter', 'heaviest', 'lightest'),
               unit=' kg')

HOLDS = Field('thing', 'holds the {v}',
              'What does {key} hold?|What is in {key}?'
              '|Which thing is in {key}?|What do I find in {key}?',
              Split(t for t in words.THINGS if t != 'box'))

PAINT = Field('color', 'is painted {v}',
              'What color is {key}?|Which color does {key} have?'
              '|How is {key} painted?|What is the color of {key}?',
              words.COLORS, many='are painted {v}')

NEXT = Field('next', 'leads to {v}',
             'Which box does {key} lead to?|Where does {key} lead?'
             '|What does {key} lead to?|Name the box that {key} leads to.',
             via='the box that {key} leads to')


FRIENDS = World({'name': words.PEOPLE}, 'name', '{name}', '{name}', ('who',),
                'people', (CITY, AGE, COLOR, THING, FRIEND))

PEOPLE = World({'name': words.PEOPLE, 'city': 'cities'}, 'name',
               '{name} from {city}', '{name} from {city}', ('who',),
               'people', (AGE, COLOR, THING, TEACHER))

STORE = World({'color': words.COLORS, 'thing': words.THINGS}, 'thing',
              'the {color} {thing}', '{color} {thing}',
              ('what', 'which thing'), 'things',
              (ROOM, PRICE, OWNER, REPLACES))

BOXES = World({'box': range(100, 1000)}, 'box', 'box {box}', 'box {box}',
              ('which box',), 'boxes', (WEIGHT, HOLDS, PAINT, OWNER, NEXT))


def make_records(rng, world, fields, n, few=None):
    """Returns n records with different keys.  The values of a field differ as
    far as its pool allows.  few limits the number of words in the pools of
    fields that can be counted; None: no limit."""

    keys = make_keys(rng, world, n)
    columns = {}

    for f in fields:
        if f.via:
            columns[f.name] = links(rng, keys)
            continue

        pool = values(rng, f.pool, n)

        if few is not None and f.many:
            pool = rng.sample(pool, min(few, len(pool)))

        columns[f.name] = spread(rng, pool, n)

    return [dict(keys[i], **{name: column[i]
                             for name, column in columns.items()})
            for i in range(n)]


def most(rng, world):
    """Returns how many different keys make_records can draw."""

    sizes = [len(part(rng, pool)) for pool in world.parts.values() if pool != 'cities']

    # with two parts, grid() needs isqrt(2n) + 1 values of each

    return min(sizes) if len(world.parts) == 1 \
        else (min(sizes) - 1) ** 2 // 2


def links(rng, keys):
    """Returns another key for each key; all links make a ring."""

    ring = rng.sample(range(len(keys)), len(keys))
    to = {a: keys[b] for a, b in zip(ring, ring[1:] + ring[:1])}
    return [to[i] for i in range(len(keys))]


def make_keys(rng, world, n):
    """Returns n different keys that are similar: each part is shared by
    several keys, and numbers begin with the same digits."""

    if len(world.parts) == 2:
        pairs = grid(rng, n)
        side = 1 + max(max(p) for p in pairs)
        first, second = (rng.sample(values(rng, pool, side), side)
                         for pool in world.parts.values())
        return [dict(zip(world.parts, (first[i], second[j])))
                for i, j in pairs]

    (name, pool), = world.parts.items()

    if not isinstance(pool, range):
        return [{name: v} for v in rng.sample(pool, n)]

    heads = rng.sample(range(10, 100), min(n // 3, 90) or 1)
    ends = {h: rng.sample(range(10), 10) for h in heads}
    found = [10 * h + ends[h].pop()
             for h in (heads[i % len(heads)] for i in range(n))]
    rng.shuffle(found)
    return [{name: v} for v in found]


def grid(rng, n):
    """Returns n different pairs of small integers.  From six pairs on, each
    integer is in at least two of them, on either side."""

    side = max(min(math.isqrt(2 * n) + 1, n // 2), math.isqrt(n - 1) + 1)
    pairs = [(i, (i + d) % side) for d in range(side) for i in range(side)]
    found = pairs[:min(n, 2 * side)]
    found += rng.sample(pairs[len(found):], n - len(found))
    rng.shuffle(found)
    return found


def values(rng, pool, n):
    """Returns the values of a pool as a list; cities are made up, n of
    them."""

    return words.cities(rng, n) if pool == 'cities' else list(part(rng, pool))


def spread(rng, pool, n):
    """Returns n values, all different if there are enough."""

    found = []

    while len(found) < n:
        found += rng.sample(pool, min(len(part(rng, pool)), n - len(found)))

    return found
