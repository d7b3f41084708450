# Copyright (C) The nginx-dsa authors

"""A task: a conversation with its tools, and the checks of its answers.

A task is made from a random.Random alone, so its seed identifies it.  It has
one or more turns.  Each turn has the user's text, a check of the outcome, and
a gold policy, which yields the steps of an ideal assistant.  The gold policy
reaches the tools only by calling them.
"""

import json
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, Optional, Tuple


# The three ways in which an assistant's reasoning is kept:
#
#   RETAIN   thinks; reasoning is kept until the next message of the user (the
#            paper, section 3.2.1)
#   DISCARD  thinks; reasoning is dropped after every tool round, so that each
#            round must derive again what was known
#   CHAT     does not think: every step's reasoning is empty

RETAIN = 'retain'
DISCARD = 'discard'
CHAT = 'chat'


class Text(str):
    """A result that is a text as it is, not JSON."""


@dataclass
class Tool:
    """A function that a model may call.

    function   the "function" object of an OpenAI tool: name, description,
               parameters (JSON schema)
    run        arguments (a dict) -> a value for json.dumps, or a Text;
               raises ValueError with a text for the model if the arguments
               are not valid
    """
    function: dict
    run: Callable[[dict], object]


@dataclass
class Step:
    """One message of the assistant.

    calls is a list of (name, arguments).  A step with calls is followed by
    their results; a step without calls ends the turn.
    """
    reasoning: str = ''
    content: str = ''
    calls: List[Tuple[str, dict]] = field(default_factory=list)


@dataclass
class Call:
    """A call that was made, and the text of its result."""
    name: str
    arguments: dict
    result: str


@dataclass
class Turn:
    """One message of the user, and the checks of its outcome.

    check   (answer, calls) -> None if it is right, else the reason;
            answer is the text of the last message, calls is [Call, ...]
    gold    mode -> generator of Step; "results = yield step" gives the list
            of the parsed results of the step's calls
    """
    user: str
    check: Callable[[str, List[Call]], Optional[str]]
    gold: Callable[[str], Iterator[Step]]


@dataclass
class Task:
    """
    family   the row of the table in which it counts
    kind     'talk', 'single', 'multi' or 'plan'
    modes    those of RETAIN, DISCARD and CHAT that its gold policies have
    system   the system prompt, or ''
    tools    by name
    """
    family: str
    kind: str
    turns: List[Turn]
    modes: Tuple[str, ...] = (RETAIN, CHAT)
    system: str = ''
    tools: Dict[str, Tool] = field(default_factory=dict)

    def tool_list(self):
        """Returns the "tools" of a chat request."""
        return [{'type': 'function', 'function': t.function}
                for t in self.tools.values()]

    def call(self, name, arguments):
        """Runs a tool.  arguments is the text of a JSON object, as the model
        wrote it.  Returns the text of the result.  If the call fails, that is
        {"error": reason} for the model, and nothing is raised."""
        try:
            if name not in self.tools:
                raise ValueError('no such tool: ' + name)

            arguments = json.loads(arguments)

            if not isinstance(arguments, dict):
                raise ValueError('the arguments are no object')

            refuse_unknown(self.tools[name].function, arguments)
            result = self.tools[name].run(arguments)

        except (ValueError, ArithmeticError, RecursionError) as e:
            result = {'error': str(e)}

        return str(result) if isinstance(result, Text) \
            else json.dumps(result, ensure_ascii=False)


TYPES = {'string': str, 'number': (int, float), 'integer': int,
         'array': list, 'object': dict, 'boolean': bool}


def refuse_unknown(function, arguments):
    """Raises ValueError unless the arguments match the schema: none missing,
    none unknown, each of its type."""

    refuse_object(function.get('parameters', {}), arguments)


def refuse_object(schema, value):
    known = schema.get('properties', {})

    for name in schema.get('required', []):
        if name not in value:
            raise ValueError('missing argument: ' + name)

    for name, part in value.items():
        if name not in known:
            raise ValueError('unknown argument: ' + name)

        refuse_value(known[name], part, name)


def refuse_value(schema, value, name):
    kind = schema['type']

    if not isinstance(value, TYPES[kind]) \
            or isinstance(value, bool) != (kind == 'boolean'):
        raise ValueError(f'{name} must be of type {kind}')

    if kind == 'array' and not all(isinstance(v, str) for v in value):
        raise ValueError(f'{name} must be an array of strings')

    if kind == 'object':
        refuse_object(schema, value)

    if 'enum' in schema and value not in schema['enum']:
        raise ValueError(f'{name} must be one of '
                         + ', '.join(map(str, schema['enum'])))


def function(name, description, /, required=None, **properties):
    """Returns the "function" object of a tool.  A property is its type, or
    (type, description).  All are required by default."""

    def schema(p):
        kind, text = p if isinstance(p, tuple) else (p, None)
        s = {'type': kind}
        if kind == 'array':
            s['items'] = {'type': 'string'}
        if text is not None:
            s['description'] = text
        return s

    return {
        'name': name,
        'description': description,
        'parameters': {
            'type': 'object',
            'properties': {n: schema(p) for n, p in properties.items()},
            'required': list(properties) if required is None else required,
        },
    }


class GoldFailed(Exception):
    """A gold policy did not pass its own task's check."""


def play(task, mode):
    """Plays the conversation with the gold policies.

    Returns its messages in the form of a chat request.  Every message of the
    assistant has its whole "reasoning_content"; the prompt encoding decides
    which of it a prompt still has.  Raises GoldFailed.
    """
    messages = []

    if task.system != '':
        messages.append({'role': 'system', 'content': task.system})

    for turn in task.turns:
        messages.append({'role': 'user', 'content': turn.user})
        answer, calls = '', []
        policy = turn.gold(mode)
        results = None

        while True:
            try:
                step = policy.send(results)
            except StopIteration:
                raise GoldFailed('it ended with a call') from None

            messages.append(assistant(step, len(messages)))

            if not step.calls:
                answer = step.content
                break

            results = []

            for (name, arguments), c in zip(step.calls,
                                            messages[-1]['tool_calls']):
                text = task.call(name, json.dumps(arguments,
                                                  ensure_ascii=False))
                calls.append(Call(name, arguments, text))
                results.append(value_of(text))
                messages.append({'role': 'tool', 'content': text,
                                 'tool_call_id': c['id']})

        why = turn.check(answer, calls)

        if why is not None:
            raise GoldFailed(f'{task.family}: {why}')

    return messages


def value_of(result):
    """Returns the value of a result's text: of JSON, else the text."""

    try:
        return json.loads(result)
    except ValueError:
        return result


def assistant(step, n):
    """Returns the message of a step; n makes its calls' ids unique."""

    message = {'role': 'assistant', 'content': step.content}

    if step.reasoning != '':
        message['reasoning_content'] = step.reasoning

    if step.calls:
        message['tool_calls'] = [
            {'id': f'call_{n}_{i}', 'type': 'function',
             'function': {'name': name,
                          'arguments': json.dumps(arguments,
                                                  ensure_ascii=False)}}
            for i, (name, arguments) in enumerate(step.calls)]

    return message
