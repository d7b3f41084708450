# Copyright (C) The nginx-dsa authors

"""Prints how often the bounded policy of each family is right, by level, in
Markdown.  worlds.general has a command of its own for its categories.

    PYTHONPATH=demo python3 -m worlds.policies [--families search ...]
        [--tasks 200] [--part train] [--processes 2]
"""

import argparse
import random
import sys
from multiprocessing import Pool

from eval.run import positive
from eval.table import grid, share
from worlds import registry
from worlds.answers import logic, programming, writing
from worlds.code import cage, interpreter
from worlds.search import policy


# each has POLICY, its name, and attempt(seed, level, rng), which returns its
# answer

MODULES = {'programming': programming, 'logic': logic, 'writing': writing,
           'search': policy, 'interpreter': interpreter}


def tried(job):
    """Returns whether one attempt of a policy is right."""

    name, seed, level = job
    answer = MODULES[name].attempt(seed, level,
                                   random.Random(f'{seed}/attempt'))
    task = registry.families()[name].task(seed, level)

    return task.turns[0].check(answer, []) is None


def main(args):
    parser = argparse.ArgumentParser(
        prog='worlds.policies', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--families', nargs='+', choices=MODULES,
                        default=list(MODULES))
    parser.add_argument('--tasks', type=positive, default=200)
    parser.add_argument('--part', choices=('train', 'eval'), default='train')
    parser.add_argument('--processes', type=positive, default=2)
    options = parser.parse_args(args)
    rows = []

    if 'programming' in options.families:
        try:
            cage.check()
        except cage.NoCage as e:
            print(e, file=sys.stderr)
            return 1

    with Pool(options.processes) as pool:
        for name in options.families:
            rows.append([name, MODULES[name].POLICY])
            for level in range(1, registry.families()[name].levels + 1):
                right = pool.map(tried, [
                    (name, f'{options.part}-{n}', level)
                    for n in range(1, options.tasks + 1)], chunksize=5)
                rows[-1].append(share(sum(right), options.tasks))

    levels = max(len(row) - 2 for row in rows)
    rows = [row + [''] * (levels + 2 - len(row)) for row in rows]
    print('\n'.join(grid(['family', 'policy'] + [
        f'level {n}, % (95 %)' for n in range(1, levels + 1)], rows)))

    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
