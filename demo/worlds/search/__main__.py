# Copyright (C) The nginx-dsa authors

"""Builds questions of several depths and breadths, and prints what each pass
of verification removed, in Markdown.

    PYTHONPATH=demo python3 -m worlds.search [--questions 40] [--part train]
"""

import argparse
import random
import sys

from eval.table import grid
from worlds.search import corpus as corpora
from worlds.search.corpus import Reader
from worlds.search.engine import Engine
from worlds.search.question import (ANSWERERS, PASSES, Counts, Explorer,
                                    build)


SHAPES = ((1, 0), (2, 0), (3, 0), (4, 0), (2, 1), (3, 1), (4, 1), (4, 2))
TRIES = 60


def measure(depth, breadth, n, part):
    """Builds up to n questions; returns (Counts, how many stayed, how often
    each answerer was right of those that passed all other passes)."""

    counts, stayed = Counts(), 0
    solved, asked = {a.__name__: 0 for a in ANSWERERS}, 0

    for i in range(n):
        rng = random.Random(f'search/{part}-{i}/{depth}/{breadth}')
        corpus = corpora.make(rng, part)
        engine = Engine(corpus.pages)
        stayed += build(rng, corpus, engine, depth, breadth, counts,
                        TRIES) is not None

        question = Explorer(engine, Reader(part)).explore(
            rng, rng.choice(sorted(corpus.entities)), depth, breadth)

        if question is not None:
            asked += 1
            for a in ANSWERERS:
                solved[a.__name__] += a(corpus, engine, Reader(part),
                                        question, rng) == question.answer

    return counts, stayed, solved, asked


def main(args):
    parser = argparse.ArgumentParser(
        prog='worlds.search', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--questions', type=int, default=40)
    parser.add_argument('--part', choices=('train', 'eval'), default='train')
    options = parser.parse_args(args)
    passes, answerers = [], []

    for depth, breadth in SHAPES:
        counts, stayed, solved, asked = measure(
            depth, breadth, options.questions, options.part)
        passes.append([f'{depth}, {breadth}', str(counts.built)]
                      + [str(counts.removed[p.__name__]) for p in PASSES]
                      + [str(stayed)])
        answerers.append([f'{depth}, {breadth}', str(asked)]
                         + [f'{100 * n / max(1, asked):.0f}'
                            for n in solved.values()])

    print('\n'.join(grid(['depth, breadth', 'built']
                         + [p.__name__ for p in PASSES] + ['kept'], passes)))
    print()
    print('\n'.join(grid(['depth, breadth', 'asked']
                         + [a.__name__ + ', %' for a in ANSWERERS],
                         answerers)))

    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
