# Copyright (C) The nginx-dsa authors

"""Writing: a short text about a place that keeps what the request asks for.

What a program can decide decides; RUBRICS are for a judge, which may be a
model.
"""

import random
import re
from dataclasses import dataclass
from typing import Callable, Tuple

from tasks.task import CHAT, RETAIN, Step, Task, Turn
from worlds.answers import sentences as lists
from worlds.answers.sentences import Writer
from worlds.form import Family
from worlds.general.words import EVAL, TRAIN, part_of


LEVELS = 5

RUBRICS = (
    ('topical', 'All sentences are about the place of the request.'),
    ('coherent', 'Each sentence can follow the one before it.'),
    ('correct', 'Grammar and spelling have no faults.'),
    ('vivid', 'The text has things that can be seen, heard or smelled.'),
)

INTRO = {
    TRAIN: 'Write a short text about a {place}. It must have the word {place} '
           'and at least three sentences.',
    EVAL: 'Please describe a {place} in three sentences or more, and use the '
          'word {place}.',
}

LAST = {TRAIN: 'Answer with the text only.',
        EVAL: 'Write nothing but the text itself.'}


def sentences(text):
    """Returns the sentences of a text; each ends with . ! or ?"""

    return [s for s in re.split(r'(?<=[.!?])\s+', text.strip()) if s]


def words(text):
    return re.findall(r"[a-z]+(?:'[a-z]+)*", text.lower())


@dataclass
class Condition:
    """
    kind
    texts   in words, for training and for evaluation
    holds   text -> whether it holds
    value   what a writer needs to keep it
    """
    kind: str
    texts: Tuple[str, str]
    holds: Callable
    value: object


def exactly(rng, part):
    n = rng.randint(4, 6)

    return Condition('sentences', (f'It has exactly {n} sentences.',
                                   f'Use {n} sentences, no more and no '
                                   'fewer.'),
                     lambda t: len(sentences(t)) == n, n)


def longest(rng, part):
    n = rng.randint(8, 9)

    return Condition('longest', (f'No sentence has more than {n} words.',
                                 f'Keep every sentence at {n} words or '
                                 'less.'),
                     lambda t: all(len(words(s)) <= n for s in sentences(t)),
                     n)


def without(rng, part):
    w = rng.choice(lists.COMMON[part])

    return Condition('without', (f'Do not use the word "{w}".',
                                 f'The word "{w}" is forbidden.'),
                     lambda t: w not in words(t), w)


def contains(rng, part):
    pair = rng.sample(lists.NOUNS[part], 2)

    return Condition('contains', ('It contains the words {} and {}.'.format(
        *pair), 'Mention {} as well as {}.'.format(*pair)),
        lambda t: set(pair) <= set(words(t)), pair)


def counted(rng, part):
    w, n = rng.choice(lists.NOUNS[part]), rng.randint(2, 3)

    return Condition('counted', (f'The word {w} is there exactly {n} times.',
                                 f'Write {w} {n} times, not more often and '
                                 'not less.'),
                     lambda t: words(t).count(w) == n, (w, n))


def last(rng, part):
    text = rng.choice(lists.LASTS[part])

    return Condition('last', (f'The last sentence is: {text}',
                              f'Close with this sentence: {text}'),
                     lambda t: sentences(t)[-1:] == [text], text)


def rising(rng, part):
    def holds(text):
        n = [len(words(s)) for s in sentences(text)]
        return all(a < b for a, b in zip(n, n[1:]))

    return Condition('rising', ('Every sentence has more words than the one '
                                'before it.',
                                'From sentence to sentence the number of '
                                'words grows.'), holds, True)


def acrostic(rng, part):
    w = rng.choice(lists.ACROSTICS[part])

    return Condition('acrostic', (f'The first letters of the sentences spell '
                                  f'{w}.',
                                  f'Read downwards, the initial letters of '
                                  f'the sentences give {w}.'),
                     lambda t: ''.join(s[0] for s in sentences(t)) == w, w)


EASY = (exactly, longest, without)
HARD = (contains, counted, last, rising, acrostic)

# pairs that do not fit together

APART = ({'acrostic', 'sentences'}, {'acrostic', 'last'}, {'rising', 'last'},
         {'rising', 'longest'})


@dataclass
class Order:
    """What a request asks for."""
    part: str
    place: str
    conditions: list

    def text(self):
        side = (TRAIN, EVAL).index(self.part)

        return '\n'.join([INTRO[self.part].format(place=self.place)]
                         + ['- ' + c.texts[side] for c in self.conditions]
                         + [LAST[self.part]])

    def value(self, kind, default=None):
        return next((c.value for c in self.conditions if c.kind == kind),
                    default)

    def wrong(self, text):
        """Returns None if a text keeps all that was asked for, else the first
        thing that it does not keep."""

        own = sentences(text)

        if self.place not in words(text) or len(own) < 3:
            return f'it is not about a {self.place}, or too short'

        if len(set(own)) < len(own) or any(len(words(s)) < 3 for s in own) \
                or not re.search(r'[.!?]$', text.strip()):
            return 'a sentence is there twice, is no sentence, or has no end'

        broken = [c.kind for c in self.conditions if not c.holds(text)]

        return 'not kept: ' + ', '.join(broken) if broken else None


def order_of(seed, level):
    """Returns the Order of a seed: one easy condition, and for each further
    level another one."""

    rng = random.Random(f'writing/{seed}/{level}')
    part = part_of(seed)

    while True:
        made = [rng.choice(EASY)(rng, part)]
        for make_one in rng.sample(HARD + EASY, level - 1):
            made.append(make_one(rng, part))
        kinds = [c.kind for c in made]

        values = {c.kind: c.value for c in made}

        if len(set(kinds)) == level \
                and not any(pair <= set(kinds) for pair in APART) \
                and values.get('counted', ' ')[0] \
                not in values.get('contains', ()):
            return Order(part, rng.choice(lists.PLACES[part]), made)


TRIES = 2000


def written(order, rng):
    """Returns a text that keeps an order, and the plan of its sentences:
    [(first letter, words, nouns)]."""

    for _ in range(TRIES):
        plan, text = draft(order, rng)
        if order.wrong(text) is None:
            return text, plan

    raise ValueError(f'no text was found for: {order.text()}')


def draft(order, rng):
    writer = Writer(rng, order.part, order.place,
                    [order.value('without', '')])
    end, first = order.value('last'), order.value('acrostic', '')
    n = len(first) or order.value('sentences', rng.randint(3, 5))
    most = order.value('longest', 10)
    rise = order.value('rising', False)
    counted_word, times = order.value('counted', ('', 0))
    nouns = [order.place, *order.value('contains', ()),
             *[counted_word] * times]
    plan = []

    if end is not None:
        n -= 1

    for i in range(n):
        length = 6 + bool(first) + i if rise else rng.randint(5, most)
        own = [nouns.pop(0) for _ in range(-(-len(nouns) // (n - i)))]
        plan.append((first[i:i + 1], length, own))

    text = [writer.sentence(length, letter, own)
            for letter, length, own in plan]

    return plan, ' '.join(text + ([end] if end is not None else []))


def make(seed, level):
    order = order_of(seed, level)

    def gold(mode):
        text, plan = written(order, random.Random(
            f'writing/{seed}/{level}/gold'))
        notes = [c.texts[(TRAIN, EVAL).index(order.part)]
                 for c in order.conditions]
        notes += [f'Sentence {i}: ' + ', '.join(
            ([f'begins with {letter}'] if letter else [])
            + [f'{length} words'] + list(own))
            for i, (letter, length, own) in enumerate(plan, 1)]

        yield Step('' if mode == CHAT else '\n'.join(notes), text)

    return Task(family='writing', kind='talk', modes=(RETAIN, CHAT),
                turns=[Turn(order.text(), lambda answer, calls:
                            order.wrong(answer), gold)])


DRAWS = 4
POLICY = f'sample-{DRAWS}'


def attempt(seed, level, rng):
    """The policy POLICY: it draws so many texts about the place, without
    regard to the conditions, and answers with the first that keeps them, or
    the last."""

    order = order_of(seed, level)

    for _ in range(DRAWS):
        _, text = draft(Order(order.part, order.place, []), rng)
        if order.wrong(text) is None:
            break

    return text


def family():
    return Family('writing', make, LEVELS,
                  {'made_by': 'worlds.answers.writing'})
