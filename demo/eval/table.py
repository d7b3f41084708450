# Copyright (C) The nginx-dsa authors

"""Prints tables, in Markdown, of the results that eval.run wrote.

    PYTHONPATH=demo python3 -m eval.table RESULT.json... \\
        [--compare 'NAME,NAME']...

Files with the same name are one run with several seeds.
"""

import argparse
import json
import math
import sys
from collections import defaultdict
from statistics import mean, stdev


KINDS = ('talk', 'single', 'multi', 'plan')


def wilson(right, n, z=1.96):
    """Returns the bounds of Wilson's interval (95 %) for a share."""

    p = right / n
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n

    return max(0, (middle - half) / scale), min(1, (middle + half) / scale)


def share(right, n):
    """Returns a cell: a share of n with its interval."""

    if n == 0:
        return ''

    low, high = wilson(right, n)

    return f'{100 * right / n:.1f} ({100 * low:.1f}-{100 * high:.1f})'


def grid(head, rows):
    """Returns the lines of a table.  All columns but the first are numbers."""

    lines = [head, ['---'] + ['---:'] * (len(head) - 1), *rows]

    return ['| ' + ' | '.join(row) + ' |' for row in lines]


def accuracy(runs):
    """Returns a table with a row for each family, each kind and all tasks, and
    a column for each run."""

    def cell(results):
        return share(sum(r['right'] for r in results), len(results))

    return grid(['right, % (95 %)', 'tasks', *runs], by_family(runs, cell))


def drafts(runs):
    """Returns a table like accuracy() of the tokens of an answer in a step of
    the engine."""

    def cell(results):
        made = sum(r['completion_tokens'] for r in results)
        steps = made - sum(r['accepted_tokens'] for r in results)

        return f'{made / steps:.2f}' if steps else ''

    return grid(['tokens a step', 'tasks', *runs], by_family(runs, cell))


def by_family(runs, cell):
    """Returns rows of cells, each made of some results of a run: a row for
    each family, each kind, and all tasks."""

    groups = defaultdict(dict)      # kind -> families in order

    for results in runs.values():
        for r in results:
            groups[r['kind']][r['family']] = True

    kinds = sorted(groups, key=KINDS.index)

    def row(label, of):
        some = [[r for r in results if of(r)] for results in runs.values()]

        return [label, str(max(map(len, some))), *map(cell, some)]

    rows = [row(family, lambda r: r['family'] == family)
            for kind in kinds for family in groups[kind]]
    rows += [row(f'**all {kind}**', lambda r: r['kind'] == kind)
             for kind in kinds]

    return rows + [row('**all**', lambda r: True)]


def parsed(runs):
    """Returns a table with a row for each run: how many of its tool calls had
    valid arguments."""

    rows = []

    for name, results in runs.items():
        calls = sum(r['calls'] for r in results)
        good = sum(r['parsed'] for r in results)
        rows.append([name, str(calls), str(calls - good), share(good, calls)])

    return grid(['tool calls', 'all', 'not parsed', 'parsed, % (95 %)'], rows)


# A measure is a name, its decimals, and a function of the results of a seed.

def per_task(key):
    return lambda rs: mean(r[key] for r in rs)


def prefilled(rs):
    return mean(r['prompt_tokens'] - r['cached_tokens'] for r in rs)


def cache_hits(rs):
    prompt = sum(r['prompt_tokens'] for r in rs)
    return 100 * sum(r['cached_tokens'] for r in rs) / prompt


def per_success(rs):
    right = sum(r['right'] for r in rs)
    return sum(r['completion_tokens'] for r in rs) / right if right else None


MEASURES = (
    ('right, %', 1, lambda rs: 100 * mean(r['right'] for r in rs)),
    ('messages a task', 2, per_task('rounds')),
    ('tokens generated a task', 0, per_task('completion_tokens')),
    ('of them reasoning', 0, per_task('reasoning_tokens')),
    ('tokens generated for each right task', 0, per_success),
    ('tokens prefilled a task', 0, prefilled),
    ('cache hits, % of the prompts', 1, cache_hits),
)


def spread(values, decimals, sign=''):
    """Returns a cell: the mean over seeds and their standard deviation."""

    if None in values:
        return '-'

    cell = f'{mean(values):{sign}.{decimals}f}'

    if len(values) > 1:
        cell += f' ± {stdev(values):.{decimals}f}'

    return cell


def compare(a, b, of):
    """Returns a table with a row for each measure, over the tasks that both
    runs have, seed by seed.  of[name] is {seed: results}."""

    left, right = [], []        # a list of results for each seed

    for seed in sorted(of[a].keys() & of[b].keys()):
        ours = {(r['family'], r['seed']): r for r in of[a][seed]}
        theirs = {(r['family'], r['seed']): r for r in of[b][seed]}
        both = sorted(ours.keys() & theirs.keys())

        if both:
            left.append([ours[k] for k in both])
            right.append([theirs[k] for k in both])

    if not left:
        return [f'{a} and {b} have no tasks in common.']

    rows = []

    for label, decimals, measure in MEASURES:
        x = [measure(rs) for rs in left]
        y = [measure(rs) for rs in right]
        d = [None if None in p else p[1] - p[0] for p in zip(x, y)]
        rows.append([label, spread(x, decimals), spread(y, decimals),
                     spread(d, decimals, '+')])

    n = sum(len(rs) for rs in left)
    seeds = '1 seed' if len(left) == 1 else f'{len(left)} seeds'

    return grid([f'{n} tasks, {seeds}', a, b, 'difference'], rows)


def load(files):
    """Returns name -> {seed: results}, in the order of the files."""

    of = {}

    for file in files:
        with open(file) as f:
            run = json.load(f)

        seeds = of.setdefault(run['name'], {})

        if run['seed'] in seeds:
            raise SystemExit(f'{file}: {run["name"]} has the seed '
                             f'{run["seed"]} already')

        seeds[run['seed']] = run['results']

    return of


def tables(of, pairs):
    """Returns the text of all tables."""

    runs = {name: [r for results in seeds.values() for r in results]
            for name, seeds in of.items()}

    parts = [accuracy(runs), parsed(runs)]

    if any(r['accepted_tokens'] for rs in runs.values() for r in rs):
        parts.append(drafts(runs))

    parts += [compare(a, b, of) for a, b in pairs]

    return '\n\n'.join('\n'.join(lines) for lines in parts) + '\n'


def main(args):
    p = argparse.ArgumentParser(prog='eval.table', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    p.add_argument('files', nargs='+', metavar='RESULT.json')
    p.add_argument('--compare', action='append', default=[],
                   metavar='NAME,NAME',
                   help='compare two runs on the tasks that both have')

    options = p.parse_args(args)
    of = load(options.files)
    pairs = [tuple(pair.split(',')) for pair in options.compare]

    for pair in pairs:
        if len(pair) != 2 or not set(pair) <= of.keys():
            p.error(f'--compare needs two of: {", ".join(of)}')

    sys.stdout.write(tables(of, pairs))


if __name__ == '__main__':
    main(sys.argv[1:])
