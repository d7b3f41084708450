# Copyright (C) The nginx-dsa authors

"""Questions about a few facts that the user has just stated."""

from tasks import lookup_ask, lookup_worlds
from tasks.lookup_notes import FORMS, Notes
from tasks.task import CHAT, RETAIN, Step, Task, Turn
from tasks.wording import polite


INTROS = '''Here is what I know:|These are my notes:|I wrote this down:
My list:|Please read this:|Look at this:|I have this list:|This is known:
Notes of today:|What I have:'''.replace('\n', '|').split('|')

WORLDS = (lookup_worlds.FRIENDS, lookup_worlds.PEOPLE, lookup_worlds.STORE,
          lookup_worlds.BOXES)

# a question, its weight, and the largest number of records

KINDS = ((lookup_ask.value, 4, 6), (lookup_ask.each, 4, 6),
         (lookup_ask.reverse, 3, 6),
         (lookup_ask.hop, 3, 6), (lookup_ask.extreme, 2, 6),
         (lookup_ask.count, 2, 6), (lookup_ask.order, 2, 5),
         (lookup_ask.total, 1, 4), (lookup_ask.difference, 1, 4),
         (lookup_ask.which, 1, 4))


def make(rng):
    """Returns a task of one turn."""

    kind, _, most = rng.choices(KINDS, [k[1] for k in KINDS])[0]
    asked = None

    while asked is None:
        world = rng.choice(WORLDS)
        form = rng.choice(FORMS)
        width = 2 if form == 'json' else 3
        fields = choose_fields(rng, world, rng.randint(1, width), kind)
        few = 3 if kind is lookup_ask.count else None
        records = lookup_worlds.make_records(rng, world, fields,
                                             rng.randint(3, most), few)
        notes = Notes(world, form, fields, tuple(records))
        asked = kind(rng, notes)

    head, lines = notes.lines(rng)
    joint = ' ' if notes.form == 'prose' else '\n'
    body = joint.join(([head] if head else []) + lines)

    if rng.randrange(4):
        body = rng.choice(INTROS) + '\n' + body

    return conversation('lookup', asked, body, polite(rng, asked.question),
                        rng.randrange(5) == 0)


def choose_fields(rng, world, n, kind):
    """Returns n of the world's fields in a random order; one of them is a link
    if the question needs one."""

    if kind is not lookup_ask.hop:
        return tuple(rng.sample(world.fields, n))

    plain = [f for f in world.fields if not f.via]
    link = [f for f in world.fields if f.via]
    fields = rng.sample(plain, max(1, n - 1)) + link
    rng.shuffle(fields)
    return tuple(fields)


def conversation(family, asked, body, question, first):
    """Returns a task that asks about a text in the user's message; first: the
    question precedes the text."""

    def gold(mode):
        if mode == RETAIN:
            yield Step(reasoning='\n'.join(asked.thought),
                       content=asked.answer)
        else:
            yield Step(content='\n'.join(asked.shown + [asked.answer]))

    parts = [question, body] if first else [body, question]
    turn = Turn(user='\n\n'.join(parts), gold=gold,
                check=lambda answer, calls: asked.verdict(answer))

    return Task(family=family, kind='single', turns=[turn],
                modes=(RETAIN, CHAT))
