# Copyright (C) The nginx-dsa authors

"""Measures a served model, and prints tables in Markdown with intervals of
95 %.

    PYTHONPATH=demo python3 -m worlds.compute modes  --url URL [...]
    PYTHONPATH=demo python3 -m worlds.compute pass   --url URL [...]
    PYTHONPATH=demo python3 -m worlds.compute refine --url URL [...]
    PYTHONPATH=demo python3 -m worlds.compute keep   --url URL [...]

modes    thinking against non-thinking, by category
pass     pass@1, 2 and 4 on held-out general tasks
refine   the model evaluates its solution and improves it, until its own score
         is perfect or --cap revisions were made
keep     of --samples samples, those that pass the filters; --keep of them with
         the most reasoning are submitted

Without --url a program plays the model (player.py).  After --minutes no
further task begins.  The tables have those that began before, but for those that
are not finished after half of that time more.
"""

import argparse
import sys

from eval.client import RunFailed
from eval.run import positive
from tasks import mix
from tasks.task import CHAT, DISCARD, RETAIN
from worlds import registry
from worlds.compute import tables
from worlds.form import Refused


COMMANDS = {'modes': tables.modes, 'pass': tables.passes,
            'refine': tables.refine, 'keep': tables.keep}

TRIPS_AND_CODE = ('trip_short', 'trip', 'general_trip', 'general_hangzhou',
                  'programming', 'programming@2')


def parse(args):
    parser = argparse.ArgumentParser(
        prog='worlds.compute', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)

    for name in COMMANDS:
        p = commands.add_parser(name)
        p.add_argument('--url', help='of the API, with /v1')
        p.add_argument('--model', help='default: the first that the server '
                       'lists')
        p.add_argument('--tasks', type=positive,
                       default=50 if name == 'pass' else 10,
                       help='of each family; of pass: in all')
        p.add_argument('--minutes', type=float, default=1e6)
        p.add_argument('--modes', default=f'{CHAT},{RETAIN}' if name in
                       ('modes', 'pass') else RETAIN,
                       help=f'of {CHAT}, {RETAIN}, {DISCARD}')
        p.add_argument('--seed', type=int, default=1)
        p.add_argument('--temperature', type=float, default=1,
                       help='only for the mode chat, because the API ignores '
                            'it when the model thinks')
        p.add_argument('--max-tokens', type=positive, default=2048,
                       help='limit of one message')
        p.add_argument('--concurrency', type=positive, default=8)

        if name in ('modes', 'refine', 'keep'):
            p.add_argument('--families', help='NAME or NAME@LEVEL, divided by '
                           'commas; default: ' + (
                               'all of this folder, at level 1'
                               if name == 'modes'
                               else ','.join(TRIPS_AND_CODE)))
        if name in ('pass', 'keep'):
            p.add_argument('--samples', type=positive,
                           default=4 if name == 'pass' else 8)
        if name == 'keep':
            p.add_argument('--keep', type=positive, default=2)
        if name == 'refine':
            p.add_argument('--cap', type=positive, default=3,
                           help='number of revisions')

    options = parser.parse_args(args)
    options.modes = options.modes.split(',')

    for m in options.modes:
        if m not in (CHAT, RETAIN, DISCARD):
            parser.error(f'no such mode: {m}')

    if options.command in ('refine', 'keep') and len(options.modes) != 1:
        parser.error(f'{options.command} has one mode')

    if getattr(options, 'keep', 0) > getattr(options, 'samples', 0) > 0:
        parser.error('--keep is at most --samples')

    return options


def families(options):
    """Returns the names of families that an option names.  Raises
    Refused."""

    if options.families is not None:
        names = options.families.split(',')
        for name in names:
            family, level = registry.find(name)
            family.task('eval-1', level)
        return names

    if options.command == 'modes':
        return [n for n in registry.families() if n not in mix.FAMILIES]

    return list(TRIPS_AND_CODE)


def main(args):
    """Returns the exit status."""

    options = parse(args)

    try:
        if options.command != 'pass':
            options.families = families(options)

        if options.command in ('refine', 'keep'):
            tables.one_turn(options.families)

        parts = COMMANDS[options.command](options)

    except (Refused, RunFailed) as e:
        print(e, file=sys.stderr)
        return 1

    print('\n\n'.join('\n'.join(lines) for lines in parts))

    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
