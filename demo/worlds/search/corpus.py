# Copyright (C) The nginx-dsa authors

"""A corpus of pages about entities that exist nowhere else, so that no model
has them in its weights.

An entity has a kind, a name, and facts: relations to other entities and
attributes.  Each fact is a sentence of the entity's page, in one of several
wordings.  Pages have other sentences around the facts, and some pages
contradict a fact of another one.
"""

import re
from dataclasses import dataclass, field
from typing import Dict

from worlds.general.words import EVAL, TRAIN, Names


@dataclass(frozen=True)
class Fact:
    """
    of, to      kinds; to is 'year', 'number' or 'word' for an attribute
    sentences   the wordings of pages, by part; {x} has it, {y} is its value
    phrase      the value in a question: 'the birthplace of {x}'
    clause      what describes {x} by the value: 'who was born in {y}'
    """
    of: str
    to: str
    sentences: Dict[str, tuple]
    phrase: str
    clause: str


def fact(of, to, train, evaluation, phrase, clause):
    return Fact(of, to, {TRAIN: train, EVAL: evaluation}, phrase, clause)


FACTS = {
    'born_in': fact(
        'person', 'village',
        ('{x} was born in {y}.', '{x} came into the world in {y}.'),
        ('{y} is the birthplace of {x}.', 'The family of {x} lived in {y}, '
         'where the child was born.'),
        'the village in which {x} was born', 'who was born in {y}'),
    'member_of': fact(
        'person', 'guild',
        ('{x} belonged to the {y}.', 'For decades {x} was a member of the '
         '{y}.'),
        ('The {y} counted {x} among its members.', '{x} took the oath of '
         'the {y}.'),
        'the guild of which {x} was a member', 'who belonged to the {y}'),
    'taught_by': fact(
        'person', 'person',
        ('{x} was a pupil of {y}.', '{x} learned the trade from {y}.'),
        ('{y} was the teacher of {x}.', 'It was {y} who trained {x}.'),
        'the teacher of {x}', 'who was a pupil of {y}'),
    'on_river': fact(
        'village', 'river',
        ('{x} lies on the {y}.', 'The {y} flows through {x}.'),
        ('At {x} the {y} is shallow.', 'The houses of {x} stand along the '
         '{y}.'),
        'the river of {x}', 'that lies on the {y}'),
    'seat': fact(
        'guild', 'village',
        ('The {x} has its seat in {y}.', 'The {x} meets in {y}.'),
        ('The hall of the {x} stands in {y}.', '{y} is home to the {x}.'),
        'the seat of the {x}', 'that has its seat in {y}'),
    'author': fact(
        'book', 'person',
        ('"{x}" was written by {y}.', '{y} wrote "{x}".'),
        ('The author of "{x}" is {y}.', '"{x}" came from the pen of {y}.'),
        'the author of "{x}"', 'that was written by {y}'),
    'captain': fact(
        'ship', 'person',
        ('The captain of the {x} was {y}.', '{y} commanded the {x}.'),
        ('{y} took the {x} to sea.', 'On the bridge of the {x} stood {y}.'),
        'the captain of the {x}', 'that {y} commanded'),
    'built_in': fact(
        'ship', 'village',
        ('The {x} was built in {y}.', 'A yard in {y} built the {x}.'),
        ('The keel of the {x} was laid in {y}.', 'The {x} left its yard in '
         '{y}.'),
        'the village in which the {x} was built', 'that was built in {y}'),
    'builder': fact(
        'mill', 'person',
        ('The {x} was built by {y}.', '{y} built the {x}.'),
        ('The {x} is a work of {y}.', '{y} drew the plans of the {x}.'),
        'the builder of the {x}', 'that {y} built'),
    'born': fact(
        'person', 'year',
        ('The year of birth of {x} is {y}.', '{x} was born in the year {y}.'),
        ('{x} first saw the light in {y}.', 'The register has the birth of '
         '{x} in {y}.'),
        'the year of birth of {x}', 'who was born in the year {y}'),
    'founded': fact(
        'village', 'year',
        ('{x} was founded in {y}.', 'The first houses of {x} date from {y}.'),
        ('Settlers came to {x} in {y}.', 'A charter of {y} first names '
         '{x}.'),
        'the year in which {x} was founded', 'that was founded in {y}'),
    'length': fact(
        'river', 'number',
        ('The {x} is {y} kilometres long.', 'The length of the {x} is {y} '
         'kilometres.'),
        ('From source to mouth the {x} measures {y} kilometres.',
         'The {x} runs for {y} kilometres.'),
        'the length of the {x} in kilometres', 'that is {y} kilometres long'),
    'members': fact(
        'guild', 'number',
        ('The {x} has {y} members.', '{y} people belong to the {x}.'),
        ('The roll of the {x} lists {y} names.', 'The {x} is {y} strong.'),
        'the number of members of the {x}', 'that has {y} members'),
    'printed': fact(
        'book', 'year',
        ('"{x}" was printed in {y}.', '"{x}" appeared in {y}.'),
        ('The first edition of "{x}" is of {y}.', 'In {y} "{x}" was sold '
         'for the first time.'),
        'the year in which "{x}" was printed', 'that was printed in {y}'),
    'launched': fact(
        'ship', 'year',
        ('The {x} was launched in {y}.', 'The {x} was afloat from {y} on.'),
        ('In {y} the {x} touched water.', 'The launch of the {x} was in '
         '{y}.'),
        'the year in which the {x} was launched', 'that was launched in {y}'),
    'stones': fact(
        'mill', 'number',
        ('The {x} has {y} stones.', 'There are {y} stones in the {x}.'),
        ('The {x} grinds with {y} stones.', '{y} stones turn in the {x}.'),
        'the number of stones of the {x}', 'that has {y} stones'),
}

KINDS = ('person', 'village', 'river', 'guild', 'book', 'ship', 'mill')
COUNTS = {'person': 26, 'village': 14, 'river': 8, 'guild': 8, 'book': 14,
          'ship': 12, 'mill': 10}

NUMBERS = {'year': (1700, 1899), 'number': (2, 400)}

# sentences without facts, by part; {x} is an entity of any kind

FILLER = {
    TRAIN: ('Few travellers know about {x}.',
            'A drawing of {x} is kept in the regional archive.',
            'Opinions about {x} differ among those who write about it.',
            'In winter there is little to report of {x}.',
            'Letters that mention {x} were found in an attic.',
            'A song about {x} is still heard at the autumn market.',
            'The name of {x} has been spelled in several ways.',
            'Most of what is written about {x} is copied from older pages.'),
    EVAL: ('Visitors seldom ask for {x}.',
           'An engraving shows {x} from the south.',
           'Scholars have argued over {x} without result.',
           'The chronicle is silent about {x} for many years.',
           'Some papers about {x} were lost in a fire.',
           'Children of the region learn a rhyme about {x}.',
           'On old maps {x} has another spelling.',
           'The description of {x} in the handbook is brief.'),
}

CONTRADICTIONS = {
    TRAIN: 'An older page has it otherwise: {sentence}',
    EVAL: 'A note in the margin reads: {sentence}',
}

CONTRADICTED = 0.06     # of the facts


@dataclass
class Entity:
    """facts is fact name -> the name of an entity, or a number."""
    kind: str
    name: str
    facts: Dict[str, object] = field(default_factory=dict)


@dataclass
class Corpus:
    """
    part       of words
    entities   by name
    pages      title -> text
    """
    part: str
    entities: Dict[str, Entity]
    pages: Dict[str, str]


PATTERN = {'person': '{a} {b}', 'village': '{a}', 'river': '{a} River',
           'guild': '{a} Guild', 'book': 'The {a} {b}', 'ship': '{a} Star',
           'mill': '{a} Mill'}


def make(rng, part):
    """Returns a Corpus."""

    names = Names(rng, part)
    families = names.draw(9)        # few, so that people share them
    entities = {}

    for kind in KINDS:
        while sum(e.kind == kind for e in entities.values()) < COUNTS[kind]:
            name = PATTERN[kind].format(
                a=names.draw(1)[0], b=rng.choice(families))
            entities[name] = Entity(kind, name)

    of_kind = {k: [e.name for e in entities.values() if e.kind == k]
               for k in KINDS}

    for e in entities.values():
        for name, f in FACTS.items():
            if f.of == e.kind:
                e.facts[name] = rng.choice(
                    [x for x in of_kind[f.to] if x != e.name]) \
                    if f.to in of_kind else rng.randint(*NUMBERS[f.to])

    return Corpus(part, entities, write_pages(rng, part, entities, of_kind))


def write_pages(rng, part, entities, of_kind):
    pages = {name: [] for name in entities}

    for e in entities.values():
        for name, value in e.facts.items():
            f = FACTS[name]
            pages[e.name].append(rng.choice(f.sentences[part]).format(
                x=e.name, y=value))

            if rng.random() < CONTRADICTED:
                other = rng.choice([x for x in of_kind[f.to] if x != value]) \
                    if f.to in of_kind else value + rng.randint(1, 30)
                pages[rng.choice(list(entities))].append(
                    CONTRADICTIONS[part].format(
                        sentence=rng.choice(f.sentences[part]).format(
                            x=e.name, y=other)))

    for name, sentences in pages.items():
        for _ in range(rng.randint(3, 6)):
            about = name if rng.random() < 0.5 else rng.choice(list(entities))
            sentences.append(rng.choice(FILLER[part]).format(x=about))
        rng.shuffle(sentences)

    return {name: ' '.join(s) for name, s in pages.items()}


class Reader:
    """Reads facts from the text of pages: what a reader of the sentences
    sees, not what the corpus was made from."""

    def __init__(self, part):
        self.patterns = [
            (name, re.compile(
                re.escape(s).replace(r'\{x\}', r'(?P<x>[A-Z][\w ]*?)')
                .replace(r'\{y\}', r'(?P<y>\d+)' if f.to in NUMBERS
                         else r'(?P<y>[A-Z][\w ]*?)')))
            for name, f in FACTS.items() for s in f.sentences[part]]

    def facts(self, text):
        """Yields (entity, fact name, value) of each sentence that has one."""

        for sentence in re.findall(r'[^.]*\.', text):
            sentence = sentence.strip().rpartition(': ')[2]
            for name, pattern in self.patterns:
                m = pattern.fullmatch(sentence)
                if m:
                    y = m['y']
                    yield m['x'], name, int(y) if y.isdigit() else y
