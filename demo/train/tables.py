# Copyright (C) The nginx-dsa authors

"""Prints tables, in Markdown, of the results that train.measure wrote.

    PYTHONPATH=demo python3 -m train.tables [--by domain|family] [--tokens]
        [--columns base,specialist,distilled,mixed]
        [--compare specialist,distilled]... RESULT.json...

A column is a name of train.measure.  By domain, the specialists' files make
one column: each has the families of its own domain.  Rows are for thinking and
non-thinking.  Brackets have intervals of 95 %, Wilson's for a share.

--compare A,B adds a table of B - A in points, over the tasks that both have,
with the interval of Agresti and Min for paired shares.  --tokens prints the
form of the paper's table 3 instead: the accuracy, of each row the highest in
bold, and the mean of the tokens that the model generated for a task.
"""

import argparse
import json
import math
import sys
from statistics import mean

from eval.expect import RIGHT
from eval.table import grid, share
from tasks.task import CHAT
from train.domains import DOMAINS, HELD, base, domain_of


FIELDS = {'name': str, 'mode': str, 'seed': int, 'results': list}


class BadResults(ValueError):
    """A file is not what train.measure writes."""


def load(path):
    """Returns the object of a file.  Raises BadResults."""

    try:
        with open(path, encoding='utf-8') as f:
            run = json.load(f)
    except (ValueError, RecursionError) as e:
        raise BadResults(f'{path}: {e}; expected a file of train.measure') \
            from None

    for name, kind in FIELDS.items():
        if not isinstance(run, dict) or not isinstance(run.get(name), kind):
            raise BadResults(f'{path}: {name}: expected a value of type '
                             + kind.__name__)

    return {'weights': None, **run}


def outcome(result):
    """Returns (family, task, right, tokens) of a result of eval.run or of
    eval.ordinary."""

    made = int(result['completion_tokens'])

    if 'verdict' in result:
        return ('ordinary ' + result['category'], result['id'],
                result['verdict'] == RIGHT, made)

    return str(result['family']), result['seed'], bool(result['right']), made


def columns(paths):
    """Returns column -> {(family, mode, task): (right, tokens)}.  Raises
    BadResults if a task is in a column twice, or if two models have tasks of
    a family."""

    of, models = {}, {}

    for path in paths:
        run = load(path)
        column = of.setdefault(run['name'], {})

        for result in run['results']:
            try:
                family, task, right, tokens = outcome(result)
            except (KeyError, TypeError, ValueError) as e:
                raise BadResults(f'{path}: {type(e).__name__}: {e}; expected '
                                 'results of eval.run or eval.ordinary') \
                    from None

            # a prompt in ordinary wording is one task, whatever the seed

            key = (family, run['mode'], task if 'verdict' in result
                   else f'{run["seed"]}/{task}')

            if key in column:
                raise BadResults(f'{path}: {run["name"]} has {family} {task} '
                                 f'already in the mode {run["mode"]}')

            column[key] = right, tokens
            first = models.setdefault((run['name'], family), run['weights'])

            if run['weights'] != first:
                raise BadResults(f'{path}: {family} of {run["name"]} by the '
                                 f'weights {run["weights"]}; expected {first}')

    return of


def group(family, by):
    """Returns the label of a family's row."""

    if by == 'family' or family.startswith('ordinary '):
        return family

    if base(family) in HELD:
        return 'held out'

    return domain_of(family) or family


def rows_of(of, by):
    """Returns the labels (row, mode) in the order of the domains."""

    order = [*DOMAINS, 'held out']

    def place(label):
        domain = label[0] if label[0] in order else group(label[0], 'domain')
        at = order.index(domain) if domain in order else len(order)

        return at, label[0], label[1] == CHAT

    return sorted({(group(family, by), mode) for column in of.values()
                   for family, mode, _ in column}, key=place)


def named(label):
    row, mode = label

    return f'{row}, {"non-thinking" if mode == CHAT else "thinking"}'


def some(column, label, by):
    """Returns {key: (right, tokens)} of a row."""

    return {k: v for k, v in column.items()
            if (group(k[0], by), k[1]) == label}


def accuracy(of, by):
    rows = []

    for label in rows_of(of, by):
        cells = [some(column, label, by) for column in of.values()]
        rows.append([named(label), str(max(map(len, cells))), *(
            share(sum(r for r, _ in c.values()), len(c)) for c in cells)])

    return grid(['right, % (95 %)', 'tasks', *of], rows)


def paired(gained, lost, n, z=1.96):
    """Returns B - A and its bounds, for n tasks of which B alone has `gained`
    right and A alone `lost`: Wald's interval after half a task was added to
    each of the four cells (Agresti and Min, 2005), so that it does not vanish
    where all tasks agree."""

    m = n + 2
    d = (gained - lost) / m
    half = z * math.sqrt((gained + lost + 1) / m - d * d) / math.sqrt(m)

    return (gained - lost) / n, max(-1, d - half), min(1, d + half)


def difference(of, a, b, by):
    rows = []

    for label in rows_of({n: of[n] for n in (a, b)}, by):
        x, y = (some(of[name], label, by) for name in (a, b))
        both = x.keys() & y.keys()

        if not both:
            continue

        gained = sum(y[k][0] and not x[k][0] for k in both)
        lost = sum(x[k][0] and not y[k][0] for k in both)
        d, low, high = (100 * v for v in paired(gained, lost, len(both)))
        rows.append([named(label), str(len(both)), str(gained), str(lost),
                     f'{d:+.1f} ({low:+.1f} to {high:+.1f})'])

    return grid([f'{a} -> {b}', 'tasks of both', 'gained', 'lost',
                 'points (95 %)'], rows)


def tokens(of, by):
    rows = []

    for label in rows_of(of, by):
        cells = [list(some(column, label, by).values())
                 for column in of.values()]
        shares = [mean(r for r, _ in c) if c else -1 for c in cells]
        rows.append([named(label)])

        for c, s in zip(cells, shares):
            text = f'{100 * s:.1f}' if c else '-'
            if c and s == max(shares):
                text = f'**{text}**'
            rows[-1].append(text + (f' ({mean(t for _, t in c):.0f})'
                                    if c else ''))

    return grid(['right, % (tokens)', *of], rows)


def main(args=None):
    p = argparse.ArgumentParser(prog='train.tables', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    p.add_argument('--by', choices=('domain', 'family'), default='domain')
    p.add_argument('--tokens', action='store_true')
    p.add_argument('--columns', type=lambda s: s.split(','))
    p.add_argument('--compare', action='append', default=[],
                   type=lambda s: s.split(','), metavar='A,B')
    p.add_argument('files', nargs='+', metavar='RESULT.json')
    options = p.parse_args(args)

    try:
        of = columns(options.files)
    except BadResults as e:
        sys.exit(f'train.tables: {e}')

    for names in [options.columns or [], *options.compare]:
        for name in names:
            if name not in of:
                p.error(f'no results of {name}; the files have '
                        + ', '.join(of))

    if any(len(pair) != 2 for pair in options.compare):
        p.error('--compare: expected A,B')

    shown = {n: of[n] for n in options.columns or of}
    parts = [tokens(shown, options.by) if options.tokens
             else accuracy(shown, options.by)]
    parts += [difference(of, a, b, options.by) for a, b in options.compare]
    print('\n\n'.join('\n'.join(part) for part in parts))


if __name__ == '__main__':
    main()
