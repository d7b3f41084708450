# Copyright (C) The nginx-dsa authors

"""Search questions as tasks."""

import random
import re

from tasks.task import CHAT, DISCARD, RETAIN, Step, Task, Turn
from tasks.tools_check import says_number
from worlds.form import Family
from worlds.general.words import part_of
from worlds.search import corpus as corpora
from worlds.search.corpus import FACTS, Reader
from worlds.search.engine import Engine
from worlds.search.question import build


# (depth, breadth) of the levels; what is less deep, the answerers solve

LEVELS = ((3, 0), (4, 0), (3, 1), (4, 1), (4, 2))

TRIES = 20      # corpora for one seed

SYSTEM = ('Answer from the pages that search finds. Name the page on which '
          'the answer is.')


def question_of(seed, level):
    """Returns (corpus, engine, Question)."""

    rng = random.Random(f'search/{seed}/{level}')

    for _ in range(TRIES):
        corpus = corpora.make(rng, part_of(seed))
        engine = Engine(corpus.pages)
        question = build(rng, corpus, engine, *LEVELS[level - 1])

        if question is not None:
            return corpus, engine, question

    raise ValueError(f'search: no question was kept for {seed}')


def make(seed, level):
    corpus, engine, question = question_of(seed, level)

    def check(answer, calls):
        return says_number(answer, question.answer, question.text)

    return Task(family='search', kind='plan', system=SYSTEM,
                modes=(RETAIN, DISCARD, CHAT), tools=engine.tools(),
                turns=[Turn(question.text, check,
                            gold(question, corpus.part))])


def gold(question, part):
    """Follows the question with the tools.  It reads only what they
    return."""

    reader = Reader(part)

    def policy(mode):
        notes = []

        def step(text, name=None, content='', **arguments):
            notes.append(text)
            thought = {RETAIN: text, DISCARD: ' '.join(notes),
                       CHAT: ''}[mode]
            return Step(thought, content,
                        [(name, arguments)] if name else [])

        def facts(page):
            result, = yield step(f'I open {page}.', 'open_page', page=page)
            return [(x, f, v) for x, f, v in reader.facts(
                result.get('text', '')) if x == page]

        def first():
            if not question.described:
                return question.start
            queries = [' '.join(FACTS[f].clause.format(y=v)
                                for f, v in question.described)]
            for q in queries + [str(v) for _, v in question.described]:
                result, = yield step(f'I look for the {question.kind}.',
                                     'search', query=q)
                for r in result['results']:
                    known = yield from facts(r['page'])
                    if all((r['page'], *d) in known
                           for d in question.described):
                        return r['page']
            return question.start

        x = yield from first()

        for f in question.chain:
            yield step(f'I look for {x}.', 'search', query=str(x))
            page = x
            x = next(v for _, g, v in (yield from facts(x)) if g == f)
            notes.append(f'{page} has {x}.')

        yield step(f'The answer is {x}.',
                   content=f'It is {x}, according to the page {page}.')

    return policy


def family():
    return Family('search', make, len(LEVELS), {
        'made_by': 'worlds.search',
        'levels': [{'depth': d, 'breadth': b} for d, b in LEVELS]})


# rubrics for answers; a judge, which may be a model, scores each from 0 to 2

RUBRICS = (
    ('factual', 'Every statement of the answer is on a page of the corpus.'),
    ('complete', 'The answer has the value that the question asks for.'),
    ('sourced', 'The answer names the page from which it comes, and that page '
                'has the value.'),
    ('direct', 'The value is in the first sentence, without a preamble.'),
    ('brief', 'The answer has no more than three sentences.'),
)


def score(corpus, question, answer):
    """Scores an answer by the RUBRICS as far as a program can: name -> 0, 1
    or 2.  Statements are the numbers and titles in the answer."""

    text = ' '.join(corpus.pages.values())
    numbers = re.findall(r'\d+', answer)
    titles = [t for t in corpus.pages if t in answer]
    sentences = [s for s in re.split(r'(?<=[.!?])\s+', answer.strip()) if s]
    known = [n for n in numbers if re.search(rf'\b{n}\b', text)]
    right = str(question.answer)
    has = right in numbers

    return {
        'factual': 0 if not numbers and not titles
        else 2 if len(known) == len(numbers) else 0,
        'complete': 2 if has and len(set(numbers)) == 1 else int(has),
        'sourced': 2 if any(re.search(rf'\b{right}\b', corpus.pages[t])
                            for t in titles) and has else int(bool(titles)),
        'direct': 2 if sentences and right in re.findall(
            r'\d+', sentences[0]) else 0,
        'brief': 2 if 0 < len(sentences) <= 3 else 0,
    }
