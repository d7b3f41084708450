# Copyright (C) The nginx-dsa authors

"""Prints a task as a conversation, as its gold policy solves it:

    PYTHONPATH=demo python3 -m tasks.show FAMILY SEED [--mode M] [--json]
"""

import argparse
import json
import sys

from tasks.mix import APART, FAMILIES, task_of
from tasks.task import play


INDENT = 10


def show(task, messages):
    """Returns the text of a conversation for people."""

    lines = [tool_line(t.function) for t in task.tools.values()]

    for m in messages:
        if 'reasoning_content' in m:
            lines.append(entry('thinks', m['reasoning_content']))

        if m['content'] != '' or not m.get('tool_calls'):
            lines.append(entry(m['role'], m['content']))

        for call in m.get('tool_calls', ()):
            f = call['function']
            lines.append(entry('calls', f'{f["name"]} {f["arguments"]}'))

    return '\n'.join(lines)


def tool_line(function):
    names = ', '.join(function.get('parameters', {}).get('properties', {}))
    return entry('has', f'{function["name"]}({names}): '
                 + function.get('description', ''))


def entry(who, text):
    """Returns a text after its speaker, with all lines indented alike."""

    text = f'{who:<{INDENT}}' + text.replace('\n', '\n' + ' ' * INDENT)
    return '\n'.join(line.rstrip() for line in text.split('\n'))


def main():
    parser = argparse.ArgumentParser(
        prog='tasks.show', description='Prints the gold conversation of a '
        'task.')
    parser.add_argument('family', choices=[*FAMILIES, *APART])
    parser.add_argument('seed', help='any text, such as eval-1')
    parser.add_argument('--mode', help='retain, discard or chat; default: the '
                        'first mode of the task')
    parser.add_argument('--json', action='store_true',
                        help='prints a chat request with messages and tools')
    args = parser.parse_args()

    task = task_of(args.family, args.seed)
    mode = args.mode or task.modes[0]

    if mode not in task.modes:
        parser.error(f'the modes of this task are {", ".join(task.modes)}')

    messages = play(task, mode)

    if args.json:
        request = {'messages': messages, 'tools': task.tool_list()}
        print(json.dumps(request, ensure_ascii=False, indent=4))
        return

    print(f'{args.family} {args.seed}, {task.kind}, mode {mode} of '
          + ', '.join(task.modes))
    print(show(task, messages))


if __name__ == '__main__':
    try:
        main()

    except BrokenPipeError:
        sys.stderr.close()
