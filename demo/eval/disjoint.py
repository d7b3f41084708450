# Copyright (C) The nginx-dsa authors

"""Finds conversations that have a sequence of words of a prompt in ordinary
wording, so that training can leave them out: templates for training were
written by others than the prompts, but short sentences of both agree by
chance."""

import functools
import re

from eval.ordinary import load
from eval.statements import normal


WORDS = 5               # of a sequence
OTHERS = 3              # of them, at least, that are no numbers

# greetings, which are the same everywhere

EVERYWHERE = frozenset(('talk-hi', 'talk-thanks', 'none-hello-tools'))


def sequences(text):
    """Returns the sequences of a text.  All numbers are the same word."""

    words = ['0' if w.isdigit() else w for w in re.findall(
        r"[^\W\d]+(?:'[^\W\d]+)?|\d+", normal(text))]

    return {s for s in zip(*(words[i:] for i in range(WORDS)))
            if WORDS - s.count('0') >= OTHERS}


@functools.lru_cache(maxsize=None)
def of_prompts():
    return frozenset(s for p in load().prompts if p.id not in EVERYWHERE
                     for m in p.messages for s in sequences(m['content']))


def shared(messages):
    """Returns true if a message has a sequence of a prompt."""

    return any(not of_prompts().isdisjoint(sequences(m.get('content') or ''))
               for m in messages)
