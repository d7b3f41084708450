# Copyright (C) The nginx-dsa authors

"""Prints a table, in Markdown, for each run of eval.ordinary.

    PYTHONPATH=demo python3 -m eval.ordinary_table RESULT.json...

Files with the same name are one run with several seeds.
"""

import argparse
import sys

from eval.expect import FALSE, RIGHT, WRONG
from eval.table import grid, load, share


HEAD = ('prompts', 'right', 'wrong', 'of them false', 'right, % (95 %)',
        'calls right')


def row(label, results):
    """Returns the cells of a row.  The last one is empty if no prompt needs a
    call."""

    count = {v: sum(r['verdict'] == v for r in results)
             for v in (RIGHT, WRONG, FALSE)}
    need = sum(r['needs_call'] for r in results)
    called = sum(r['called'] for r in results)

    return [label, str(len(results)), str(count[RIGHT]),
            str(count[WRONG] + count[FALSE]), str(count[FALSE]),
            share(count[RIGHT], len(results)),
            f'{called} of {need}' if need else '']


def table(name, results):
    categories = dict.fromkeys(r['category'] for r in results)
    rows = [row(c, [r for r in results if r['category'] == c])
            for c in categories]

    return grid([name, *HEAD], [*rows, row('**all**', results)])


def main(args):
    p = argparse.ArgumentParser(prog='eval.ordinary_table',
                                description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    p.add_argument('files', nargs='+', metavar='RESULT.json')

    of = load(p.parse_args(args).files)
    tables = [table(name, [r for results in seeds.values() for r in results])
              for name, seeds in of.items()]

    sys.stdout.write('\n\n'.join('\n'.join(lines) for lines in tables) + '\n')


if __name__ == '__main__':
    main(sys.argv[1:])
