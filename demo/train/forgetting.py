# Copyright (C) The nginx-dsa authors

"""Prints what runs of train.rl --eval learned and forgot, in Markdown.

    PYTHONPATH=demo python3 -m train.forgetting RUN/log.jsonl ...

A table for each run has a row for each family and a column for each
measurement: before the first stage and after each one, in % (95 %).  The last
column is the last measurement minus the best of those before it, in points:
what a family lost after it had it is negative.
"""

import json
import os
import sys

from eval.table import grid, share


def read(lines):
    """Returns [(stage, {family: (right, tasks)})] of a log; the stage of the
    first one is 'before'."""

    points = [json.loads(line) for line in lines]

    return [('before' if p['eval'] == 'before' else 'after ' + p['stage'],
             p['right']) for p in points if 'eval' in p]


def lost(shares):
    """Returns the last of some shares minus the best one before it."""

    return shares[-1] - max(shares[:-1])


def table(points):
    """Returns the lines of the table of what read() returns."""

    rows = []

    for family in points[0][1]:
        each = [right[family] for _, right in points]
        shares = [right / tasks for right, tasks in each]
        rows.append([family, *(share(*x) for x in each),
                     f'{100 * lost(shares):+.1f}'])

    return grid(['family', *(name for name, _ in points),
                 'last - best before'], rows)


def main(paths):
    """Returns the exit status."""

    if not paths:
        print('usage: python3 -m train.forgetting RUN/log.jsonl ...',
              file=sys.stderr)
        return 2

    for path in paths:
        with open(path) as f:
            points = read(f)

        if len(points) < 2:
            print(f'{path}: {len(points)} measurements; expected at least 2',
                  file=sys.stderr)
            return 1

        print(os.path.basename(os.path.dirname(os.path.abspath(path))) + ':')
        print('\n' + '\n'.join(table(points)) + '\n')

    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
