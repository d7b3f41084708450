# Copyright (C) The nginx-dsa authors

"""Commands for all families.

    PYTHONPATH=demo python3 -m worlds list
    PYTHONPATH=demo python3 -m worlds show FAMILY SEED [--level N]
    PYTHONPATH=demo python3 -m worlds gold FAMILY SEED [--level N] [--json]
    PYTHONPATH=demo python3 -m worlds verify FAMILY SEED [--level N] < MESSAGES
    PYTHONPATH=demo python3 -m worlds harder FAMILY SEED [--level N]
    PYTHONPATH=demo python3 -m worlds serve FAMILY SEED [--level N]
    PYTHONPATH=demo python3 -m worlds run --families FAMILY,FAMILY@2 --out FILE

show and harder print {environment, tools, task, verifier} as JSON; gold prints
the conversation of the gold policy; serve has the tools over stdin and stdout
(tasks.serve); run has the loop, for a served model (eval.run).
"""

import argparse
import json
import sys

from eval import run as eval_run
from tasks import serve, show
from tasks.task import play
from worlds import registry
from worlds.form import Refused, record, verify


def parse(args):
    parser = argparse.ArgumentParser(
        prog='worlds', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    commands.add_parser('list')

    for name in ('show', 'gold', 'verify', 'harder', 'serve'):
        p = commands.add_parser(name)
        p.add_argument('family')
        p.add_argument('seed', help='any text, such as eval-1')
        p.add_argument('--level', type=int, default=1)

        if name == 'gold':
            p.add_argument('--json', action='store_true')
            p.add_argument('--mode', help='retain, discard or chat; default: '
                           'the first that the task has')

    return parser.parse_args(args)


def gold(task, options):
    mode = options.mode or task.modes[0]

    if mode not in task.modes:
        raise Refused(f'the task has the modes {", ".join(task.modes)}, not '
                      + mode)

    messages = play(task, mode)

    return json.dumps(messages, ensure_ascii=False, indent=1) if options.json \
        else show.show(task, messages)


def verified(task):
    try:
        messages = json.load(sys.stdin)
    except (ValueError, RecursionError) as e:
        raise Refused(f'stdin is not JSON: {e}') from None

    why = verify(task, messages)
    print(json.dumps({'right': why is None, 'why': why}))

    return why is None


def talk(task):
    """Serves a task over stdin and stdout."""

    environment = serve.Environment(task)
    serve.say(environment.head())

    for line in sys.stdin.buffer:
        serve.say(environment.line(line))


def as_json(value):
    return json.dumps(value, ensure_ascii=False, indent=1)


def listing():
    return '\n'.join(f'{f.name:<24} {f.levels} level'
                     + ('s' if f.levels > 1 else '')
                     for f in registry.families().values())


def main(args):
    """Returns the exit status."""

    try:
        if args[:1] == ['run']:
            return eval_run.main(args[1:], registry.names(), registry.task_of)

        return command(parse(args))

    except Refused as e:
        print(e, file=sys.stderr)
        return 2


def command(options):
    if options.command == 'list':
        print(listing())
        return 0

    family, _ = registry.find(options.family)
    level = options.level

    if options.command == 'show':
        print(as_json(record(family, options.seed, level)))

    elif options.command == 'harder':
        family.harder(options.seed, level)
        print(as_json(record(family, options.seed, level + 1)))

    elif options.command == 'gold':
        print(gold(family.task(options.seed, level), options))

    elif options.command == 'verify':
        return 0 if verified(family.task(options.seed, level)) else 1

    else:
        talk(family.task(options.seed, level))

    return 0


if __name__ == '__main__':
    try:
        sys.exit(main(sys.argv[1:]))

    except BrokenPipeError:
        sys.stderr.close()
