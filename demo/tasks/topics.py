# Copyright (C) The nginx-dsa authors

"""Parses questions and answers about the model, the project and small
talk.  Each question has one answer.

A topic is some lines:

    = the purpose of the user; "The user ..." begins the reasoning
    ~ names of a thing, divided by |: the questions of WHAT are asked of them
    - a question; [a|b] is a or b, [a|] may be left out
    > the answer
    * another answer, with alternatives like a question
    + words that an answer must have, divided by commas; a|b is a or b
"""

import re
from dataclasses import dataclass, field
from typing import List, Tuple

from tasks.parts import Split
from tasks.tools_check import has_word


WHAT = '''What is {}?
What does {} mean?
What's {}?
Explain {}.
Can you explain {}?
Tell me about {}.
What do you know about {}?
Say in a sentence what {} is.
I want to know what {} is.
What is meant by {}?'''.splitlines()


@dataclass
class Topic:
    """keys is a list of alternatives; an answer must have one word of each.
    ways are all templates of a question."""
    asks: str
    names: List[str]
    questions: List[str]
    answer: str
    keys: List[Tuple[str, ...]]
    ways: Split = ()
    others: List[str] = field(default_factory=list)

    def reply(self, rng):
        """Returns one of the answers."""

        return chosen(rng, rng.choice([self.answer, *self.others]))

    def ask(self, rng):
        """Returns one of the ways to ask."""

        way = rng.choice(self.ways)

        if way in WHAT:
            return way.format(rng.choice(self.names))

        return chosen(rng, way)

    def say(self):
        """Returns the required words in the form of the reasoning."""

        return ', '.join(k[0] for k in self.keys)

    def missing(self, answer):
        """Returns a required word that an answer lacks, or None."""

        for key in self.keys:
            if not any(has_word(answer, k) for k in key):
                return key[0]

        return None


def chosen(rng, text):
    """Returns a text with its alternatives chosen."""

    text = re.sub(r'\[(.*?)\]',
                  lambda m: rng.choice(m.group(1).split('|')), text)

    # an omitted alternative leaves a blank

    return re.sub(r' (?=[ ?.!,]|$)', '', text).lstrip()


def topics(text):
    """Returns the topics of a text, by the purpose of the user."""

    found = {}

    for block in text.strip().split('\n\n'):
        t = Topic('', [], [], '', [])

        for line in block.splitlines():
            mark, line = line[0], line[2:]

            if mark == '=':
                t.asks = line
            elif mark == '~':
                t.names = line.split('|')
            elif mark == '*':
                t.others.append(line)
            elif mark == '-':
                t.questions.append(line)
            elif mark == '>':
                t.answer = f'{t.answer} {line}'.lstrip()
            else:
                t.keys = [tuple(k.split('|')) for k in line.split(', ')]

        t.ways = Split((WHAT if t.names else []) + t.questions)
        found[t.asks] = t

    return found
