# Copyright (C) The nginx-dsa authors

"""Prints how often the bounded policy of each family is right, by level, in
Markdown.

    PYTHONPATH=demo python3 -m worlds.answers [--tasks 200] [--part train]
        [--processes 2]
"""

import argparse
import random
import sys
from multiprocessing import Pool

from eval.run import positive
from eval.table import grid, share
from worlds.answers import logic, programming, writing


MODULES = {'programming': programming, 'logic': logic, 'writing': writing}


def tried(job):
    """Returns whether one attempt of a policy is right."""

    name, seed, level = job
    module = MODULES[name]
    task = module.make(seed, level)
    answer = module.attempt(seed, level, random.Random(f'{seed}/attempt'))

    return task.turns[0].check(answer, []) is None


def main(args):
    parser = argparse.ArgumentParser(
        prog='worlds.answers', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--tasks', type=positive, default=200)
    parser.add_argument('--part', choices=('train', 'eval'), default='train')
    parser.add_argument('--processes', type=positive, default=2)
    options = parser.parse_args(args)
    rows = []

    with Pool(options.processes) as pool:
        for name, module in MODULES.items():
            rows.append([name, module.POLICY])
            for level in range(1, module.LEVELS + 1):
                right = pool.map(tried, [
                    (name, f'{options.part}-{n}', level)
                    for n in range(1, options.tasks + 1)], chunksize=5)
                rows[-1].append(share(sum(right), options.tasks))

    levels = max(m.LEVELS for m in MODULES.values())
    print('\n'.join(grid(['family', 'policy'] + [
        f'level {n}, % (95 %)' for n in range(1, levels + 1)], rows)))

    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
