# Copyright (C) The nginx-dsa authors

"""The one form of all tasks: {environment, tools, task, verifier}.

A Family makes tasks.task.Task objects, which have all four: functions over
hidden data, their definitions, the user's turns, and a check for each turn.
This file adds what is needed to name a task, to print it as JSON and to verify
a conversation that any client had.
"""

import json
from dataclasses import dataclass, field
from typing import Callable, Dict

from tasks.task import Call


class Refused(ValueError):
    """A family, level or conversation that does not exist or does not fit; the
    text is for people."""


@dataclass
class Family:
    """
    name
    make      (seed, level) -> Task; the same task for the same arguments.
              seed is a text, train-N or eval-N; level is 1 to levels
    levels    how many; a higher level is harder
    about     what describes its environments: JSON's values by name
    """
    name: str
    make: Callable
    levels: int = 1
    about: Dict[str, object] = field(default_factory=dict)

    def task(self, seed, level=1):
        """Returns the Task.  Raises Refused if there is no such level."""

        if not 1 <= level <= self.levels:
            raise Refused(f'{self.name} has the levels 1 to {self.levels}, '
                          f'not {level}')

        return self.make(seed, level)

    def harder(self, seed, level):
        """Returns the Task of the next level with the same seed."""

        if level >= self.levels:
            raise Refused(f'{self.name} has no level above {self.levels}')

        return self.task(seed, level + 1)


def record(family, seed, level=1):
    """Returns {environment, tools, task, verifier} for json.dumps.  The
    environment and the verifier are programs; these two fields name them by
    what makes them again."""

    task = family.task(seed, level)

    return {
        'environment': {'family': family.name, 'seed': seed, 'level': level,
                        **family.about},
        'tools': task.tool_list(),
        'task': {'system': task.system,
                 'turns': [t.user for t in task.turns],
                 'kind': task.kind, 'modes': list(task.modes)},
        'verifier': {'command': ['python3', '-m', 'worlds', 'verify',
                                 family.name, seed, '--level', str(level)],
                     'reads': 'the messages of a chat, as JSON'},
    }


def verify(task, messages):
    """Verifies a conversation.

    task      newly made, because its tools may have state
    messages  those of a chat request, with the last answer

    All calls are executed again, so that nothing depends on the results that
    the messages have.  Returns None if all turns are right, or the reason.
    Raises Refused if the messages are not a conversation of this task.
    """
    for n, (turn, replies) in enumerate(zip(task.turns,
                                            turns_of(task, messages)), 1):
        calls, answer = [], None

        for message in replies:
            wanted = message.get('tool_calls') or []
            content = message.get('content') or ''

            if not isinstance(wanted, list) or not isinstance(content, str):
                raise Refused('an answer is no text, or its calls are no list')

            for c in wanted:
                calls.append(repeat(task, c))

            answer = None if wanted else content

        why = 'it has no answer' if answer is None \
            else turn.check(answer, calls)

        if why is not None:
            return why if len(task.turns) == 1 else f'turn {n}: {why}'

    return None


def turns_of(task, messages):
    """Returns the assistant's messages of each turn."""

    if not isinstance(messages, list) \
            or not all(isinstance(m, dict) for m in messages):
        raise Refused('messages must be a list of objects')

    turns = []

    for m in messages:
        if m.get('role') == 'user':
            turns.append((m.get('content'), []))
        elif m.get('role') == 'assistant' and turns:
            turns[-1][1].append(m)

    if [text for text, _ in turns] != [t.user for t in task.turns]:
        raise Refused("the messages of the user are not this task's")

    return [replies for _, replies in turns]


def repeat(task, call):
    """Returns the Call of an entry of "tool_calls"."""

    try:
        name = call['function']['name']
        text = call['function']['arguments']
        arguments = json.loads(text)

    except (LookupError, TypeError, ValueError, RecursionError):
        raise Refused('a call has no function with a name and arguments of '
                      'JSON') from None

    if not isinstance(name, str):
        raise Refused('the name of a call is not a text')

    if not isinstance(arguments, dict):
        raise Refused(f'{name}: the arguments are not an object')

    return Call(name, arguments, task.call(name, text))
