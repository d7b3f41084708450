# Copyright (C) The nginx-dsa authors

"""The division of words and templates into a part for training and a part that
is held out.

A word belongs to the same part in every list, because a hash of it decides.  A
Split is a list of words or templates.  A Draw is a random.Random that draws
from one part of a Split, so whatever a family draws from Splits differs
between training and evaluation.  Other sequences are drawn from as usual.
"""

import random
import zlib


HELD_OUT = 4            # one of so many words
TRIES = 1000


def held_out(word):
    """Returns true if a text belongs to the held-out part."""

    return zlib.crc32(str(word).encode()) % HELD_OUT == 0


class Split(tuple):
    """A tuple with its two parts, training and held_out.  If a short list has
    only one part by the hash, the last of its entries by hash changes the
    part, because none may be empty.  An only entry belongs to both."""

    def __new__(cls, words):
        self = super().__new__(cls, dict.fromkeys(words))
        parts = {True: [], False: []}

        for word in self:
            parts[held_out(word)].append(word)

        for part, other in ((True, False), (False, True)):
            if len(self) == 1:
                parts[part] = list(self)
            elif not parts[part]:
                parts[other].sort(key=lambda w: zlib.crc32(str(w).encode()))
                parts[part].append(parts[other].pop())

        self.held_out, self.training = parts[True], parts[False]

        return self

    @classmethod
    def given(cls, training, held_out):
        """Returns a Split whose parts are given, not decided by the hash."""

        self = super().__new__(cls, (*training, *held_out))
        self.training, self.held_out = list(training), list(held_out)

        return self

    def __add__(self, other):
        return Split((*self, *other))


class Names(Split):
    """A Split of names to which others are added without end: a Draw composes
    half of those that it draws.  A model cannot remember these, so that it must copy them."""

    def __new__(cls, words, compose):
        """compose: (Draw, words to compose from) -> a name"""

        self = super().__new__(cls, words)
        self.compose = compose

        return self


COMPOSED = 0.5          # of the names that a Draw draws


class Draw(random.Random):
    """held_out: draws from the held-out parts."""

    def __init__(self, seed, held_out=False):
        super().__init__(seed)
        self.held_out = held_out

    def again(self, seed):
        """Returns a Draw of the same part with a seed of its own."""

        return Draw(seed, self.held_out)

    def of(self, words):
        """Returns the words of a Split that it draws from."""

        if isinstance(words, Split):
            return words.held_out if self.held_out else words.training

        return words

    def choice(self, words):
        if isinstance(words, Names) and self.random() < COMPOSED:
            return self.composed(words)

        words = self.of(words)

        return words[int(self.random() * len(words))]

    def composed(self, names):
        """Returns a name that is in the part that it draws from, like the
        words that it is composed of."""

        return drawn(self, lambda: names.compose(self, self.of(names)))

    def choices(self, words, weights=None, *, cum_weights=None, k=1):
        return super().choices(self.of(words), weights,
                               cum_weights=cum_weights, k=k)

    def sample(self, words, k):
        found = super().sample(self.of(words), k)

        if isinstance(words, Names):
            for i in range(k):
                if self.random() < COMPOSED:
                    name = self.composed(words)
                    found[i] = found[i] if name in found else name

        return found


def drawn(rng, make):
    """Returns what make() returns, called until the text is in the part that
    rng draws from; for texts that are composed.  rng may be a random.Random,
    for which any text is right.  make() must have texts of both parts."""

    part = getattr(rng, 'held_out', None)

    for _ in range(TRIES):
        text = make()

        if part is None or held_out(text) == part:
            return text

    raise ValueError(f'no text of the part, but "{text}"')


def part(rng, words):
    """Returns the words that rng draws from."""

    return rng.of(words) if isinstance(rng, Draw) else list(words)


def again(rng, seed):
    """Returns a generator with another seed that draws from the same part."""

    return rng.again(seed) if isinstance(rng, Draw) else random.Random(seed)
