# Copyright (C) The nginx-dsa authors

"""Builds questions by exploring a corpus with the search tool, and verifies
them in passes.

depth    how many pages have to be read one after another
breadth  by how many facts the first entity is described; 0: it is named
"""

from collections import Counter
from dataclasses import dataclass
from typing import List, Tuple

from worlds.search.corpus import FACTS, NUMBERS, Reader


@dataclass
class Question:
    """
    kind, start   of the first entity
    described     (fact name, value) pairs that describe it, or none
    chain         names of facts, from the first entity to the answer
    values        of the chain, as read from the pages; the last is the answer
    text
    """
    kind: str
    start: str
    described: List[Tuple[str, object]]
    chain: List[str]
    values: List[object]
    text: str

    @property
    def answer(self):
        return self.values[-1]


class Explorer:
    """The question-constructing program: it only uses the search tool and
    reads pages."""

    def __init__(self, engine, reader):
        self.engine = engine
        self.reader = reader

    def read(self, name):
        """Returns fact name -> value of an entity, from the page that a search
        for its name finds, or {}."""

        for result in self.engine.search(name):
            if result['page'] == name:
                return {f: v for x, f, v in self.reader.facts(
                    self.engine.open(name)) if x == name}

        return {}

    def explore(self, rng, start, depth, breadth):
        """Returns a Question that begins with an entity, or None if it leads
        nowhere."""

        known = self.read(start)
        kind = next((FACTS[f].of for f in known), None)

        if kind is None:
            return None

        chain, values, at, seen = [], [], start, {start}

        for step in range(depth):
            facts = self.read(at)
            last = step == depth - 1
            ways = [f for f, v in facts.items()
                    if (FACTS[f].to in NUMBERS) == last and v not in seen]
            if not ways:
                return None
            chain.append(rng.choice(sorted(ways)))
            at = facts[chain[-1]]
            values.append(at)
            seen.add(at)

        left = sorted(f for f in known if f not in chain)

        if len(left) < breadth:
            return None

        described = [(f, known[f]) for f in rng.sample(left, breadth)]

        return Question(kind, start, described, chain, values,
                        wording(kind, start, described, chain))


NAMED = {'guild': 'the {x}', 'river': 'the {x}'}


def wording(kind, start, described, chain):
    """Returns the text of a question."""

    if described:
        clauses = [FACTS[f].clause.format(y=v) for f, v in described]
        x = f'the {kind} ' + ' and '.join(clauses)
    else:
        x = start

    for f in chain:
        phrase = FACTS[f].phrase

        # a description is no name: no article or quotation mark before it

        if x != start or described:
            phrase = phrase.replace('the {x}', '{x}').replace('"{x}"', '{x}')
        x = phrase.format(x=x)

    return f'What is {x}?'


# answer-generating programs with different means


def no_search(corpus, engine, reader, question, rng):
    """Guesses: a number as answers of this kind have it."""

    low, high = NUMBERS[FACTS[question.chain[-1]].to]
    return rng.randint(low, high)


def snippets(corpus, engine, reader, question, rng):
    """Searches for the question, and reads the snippets only."""

    text = ' '.join(r['snippet'] for r in engine.search(question.text))
    return next((v for _, f, v in reader.facts(text)
                 if f == question.chain[-1]), None)


def one_page(corpus, engine, reader, question, rng):
    """Searches for the question, and reads the pages that it finds."""

    for r in engine.search(question.text):
        for _, f, v in reader.facts(engine.open(r['page'])):
            if f == question.chain[-1]:
                return v

    return None


def two_pages(corpus, engine, reader, question, rng):
    """Reads the first two pages of the way, and answers with a fact of the
    second that has the type of the answer."""

    x = solve(engine, reader, question, 1)
    wanted = FACTS[question.chain[-1]].to

    if isinstance(x, int):
        return x

    return next((v for y, f, v in facts_of(engine, reader, x)
                 if FACTS[f].to == wanted), None) if x else None


ANSWERERS = (no_search, snippets, one_page, two_pages)


def facts_of(engine, reader, name):
    """Returns the facts of an entity's own page, if a search finds it."""

    for r in engine.search(name):
        if r['page'] == name:
            return [(x, f, v) for x, f, v in reader.facts(engine.open(name))
                    if x == name]

    return []


def begin(engine, reader, question):
    """Returns the first entity of a question, found by searches for what
    describes it, or None."""

    if not question.described:
        return question.start

    query = ' '.join(FACTS[f].clause.format(y=v)
                     for f, v in question.described)

    for words in [query, *(str(v) for _, v in question.described)]:
        for r in engine.search(words):
            facts = facts_of(engine, reader, r['page'])
            if all((r['page'], *d) in facts for d in question.described):
                return r['page']

    return None


def solve(engine, reader, question, pages=None):
    """Follows a question with the search tool.  pages: stops after so many.
    Returns what it reached, or None."""

    x = begin(engine, reader, question)

    for f in question.chain[:pages]:
        x = None if x is None else next(
            (v for _, g, v in facts_of(engine, reader, x) if g == f), None)

    return x


# the passes of verification; each returns whether a question stays


def is_found(corpus, engine, reader, question, rng):
    """The search tool leads to the answer."""

    return solve(engine, reader, question) == question.answer


def is_true(corpus, engine, reader, question, rng):
    """The answer agrees with what the corpus was made from."""

    x = question.start
    for f in question.chain:
        x = corpus.entities[x].facts[f]

    return x == question.answer


def is_unique(corpus, engine, reader, question, rng):
    """No other entity has the description."""

    return not question.described or sum(
        e.kind == question.kind and all(e.facts.get(f) == v
                                        for f, v in question.described)
        for e in corpus.entities.values()) == 1


def is_undisputed(corpus, engine, reader, question, rng):
    """No page contradicts a fact that the question needs."""

    steps = list(zip([question.start, *question.values], question.chain))
    needed = {(x, f): corpus.entities[x].facts[f] for x, f in steps}
    needed.update({(question.start, f): v for f, v in question.described})

    return all(needed.get((x, f), v) == v for text in corpus.pages.values()
               for x, f, v in reader.facts(text))


def is_hard(corpus, engine, reader, question, rng):
    """All answerers are wrong."""

    return all(a(corpus, engine, reader, question, rng) != question.answer
               for a in ANSWERERS)


PASSES = (is_found, is_true, is_unique, is_undisputed, is_hard)


@dataclass
class Counts:
    """How many questions were built, and how many each pass removed."""
    built: int = 0
    removed: Counter = None

    def __post_init__(self):
        self.removed = Counter()


def build(rng, corpus, engine, depth, breadth, counts=None, tries=400):
    """Returns a verified Question, or None."""

    counts = counts or Counts()
    reader = Reader(corpus.part)
    explorer = Explorer(engine, reader)
    names = sorted(corpus.entities)

    for _ in range(tries):
        question = explorer.explore(rng, rng.choice(names), depth, breadth)

        if question is None:
            continue

        counts.built += 1
        gone = next((p for p in PASSES if not p(corpus, engine, reader,
                                                question, rng)), None)

        if gone is None:
            return question

        counts.removed[gone.__name__] += 1

    return None
