# Copyright (C) The nginx-dsa authors

"""The environment of one task over stdin and stdout, for programs in any
language; a line is a JSON object:

    PYTHONPATH=demo python3 -m tasks.serve FAMILY SEED

It begins with

    {"family": ..., "system": "...", "tools": [...], "turns": ["...", ...]}

where tools are those of a chat request and turns are the user's messages, in
their order.  Then it answers each line that it reads:

    {"call": NAME, "arguments": "{...}"}   {"result": "..."}
    {"answer": "..."}                      {"turn": 0, "right": true,
                                            "why": null}

A call belongs to the turn that the next answer ends.  If the answer is wrong,
"why" has the reason.  A line that cannot be parsed is answered with {"error":
"..."}.  The program ends at the end of its input.
"""

import json
import sys

from tasks.mix import FAMILIES, task_of
from tasks.task import Call


class Environment:
    """A task and the calls and answers so far."""

    def __init__(self, task):
        self.task = task
        self.turn = 0
        self.calls = []

    def head(self):
        return {'family': self.task.family, 'system': self.task.system,
                'tools': self.task.tool_list(),
                'turns': [t.user for t in self.task.turns]}

    def line(self, line):
        """Returns the answer to a line, which is some bytes."""

        try:
            message = json.loads(line)

        except (ValueError, RecursionError) as e:
            return {'error': f'no JSON: {e}'}

        if not isinstance(message, dict):
            return {'error': 'not an object'}

        if self.turn == len(self.task.turns):
            return {'error': 'all turns are over'}

        if message.keys() == {'call', 'arguments'} and texts(message):
            return self.call(message['call'], message['arguments'])

        if message.keys() == {'answer'} and texts(message):
            return self.answer(message['answer'])

        return {'error': 'neither a call with its arguments nor an answer, '
                'all of them texts'}

    def call(self, name, arguments):
        try:
            result = self.task.call(name, arguments)

        except Exception as e:

            # A tool should raise ValueError only.  Other exceptions must not
            # end the conversation, either.

            result = json.dumps({'error': f'{type(e).__name__}: {e}'})

        self.calls.append(Call(name, parsed(arguments), result))
        return {'result': result}

    def answer(self, text):
        try:
            why = self.task.turns[self.turn].check(text, self.calls)

        except Exception as e:
            why = f'the check failed: {type(e).__name__}: {e}'

        reply = {'turn': self.turn, 'right': why is None, 'why': why}
        self.turn += 1
        self.calls = []

        return reply


def texts(message):
    return all(isinstance(v, str) for v in message.values())


def parsed(arguments):
    """Returns the arguments of a call, or {} if they are not a JSON object."""

    try:
        value = json.loads(arguments)

    except (ValueError, RecursionError):
        return {}

    return value if isinstance(value, dict) else {}


def say(message):
    """Writes a line in ASCII, because half of a surrogate pair, which JSON can
    contain, cannot be encoded in UTF-8."""

    print(json.dumps(message), flush=True)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in FAMILIES:
        print('usage: python3 -m tasks.serve FAMILY SEED\nfamilies: '
              + ' '.join(FAMILIES), file=sys.stderr)
        return 2

    environment = Environment(task_of(sys.argv[1], sys.argv[2]))
    say(environment.head())

    for line in sys.stdin.buffer:
        say(environment.line(line))

    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())

    except BrokenPipeError:

        # the reader has closed the pipe, so the last flush would fail, too

        sys.stderr.close()
