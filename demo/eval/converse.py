# Copyright (C) The nginx-dsa authors

"""Runs the conversation of a task with a served model."""

import json
import re
from dataclasses import dataclass, field
from typing import List, Optional

from eval.client import ContextFull
from tasks.task import CHAT, RETAIN, Call, refuse_unknown


# how many messages the model may write in a turn, by kind of task

ROUNDS = {'plan': 40}
ROUNDS_OTHER = 12

# remains in the text if the server could not parse a block of calls

CALL_LEFT = re.compile(
    r'</?(?:\W*DSML\W*)?(?:function_calls|invoke|parameter)\b')


@dataclass
class Outcome:
    """The outcome of a task.

    why         the first thing that was wrong; None: all turns were right
    rounds      messages of the model
    calls       tool calls, without those of a message that was cut off
    parsed      those of the calls that were JSON and fit the tool's schema
    prompt_tokens, of which cached_tokens came from the cache
    completion_tokens, of which reasoning_tokens were reasoning, and
                accepted_tokens drafts that the engine accepted
    finish      the finish_reason of each message
    """
    why: Optional[str] = None
    rounds: int = 0
    calls: int = 0
    parsed: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    accepted_tokens: int = 0
    finish: List[str] = field(default_factory=list)

    def count(self, completion):
        """Adds a completion's numbers."""

        usage = completion['usage']
        prompt = usage.get('prompt_tokens_details') or {}
        made = usage.get('completion_tokens_details') or {}

        self.rounds += 1
        self.finish.append(completion['choices'][0]['finish_reason'])
        self.prompt_tokens += usage['prompt_tokens']
        self.cached_tokens += prompt.get(
            'cached_tokens', usage.get('prompt_cache_hit_tokens', 0))
        self.completion_tokens += usage['completion_tokens']
        self.reasoning_tokens += made.get('reasoning_tokens', 0)
        self.accepted_tokens += made.get('accepted_draft_tokens', 0)


class Unanswered(Exception):
    """A turn ended without an answer."""


def converse(task, mode, chat):
    """Returns the Outcome.  chat takes a request without a model and returns a
    completion.

    After a wrong answer the next turn follows, so that two runs do the same
    turns.  After a turn without an answer the task ends.
    """
    outcome = Outcome()
    messages = []

    if task.system != '':
        messages.append({'role': 'system', 'content': task.system})

    for n, turn in enumerate(task.turns, 1):

        # before a message of the user, the reasoning so far is dropped

        for m in messages:
            m.pop('reasoning_content', None)

        messages.append({'role': 'user', 'content': turn.user})

        try:
            answer, calls = have_turn(task, mode, chat, messages, outcome)
            why = turn.check(answer, calls)
        except Unanswered as e:
            why = str(e)
            answer = None

        if why is not None and outcome.why is None:
            outcome.why = why if len(task.turns) == 1 else f'turn {n}: {why}'

        if answer is None:
            break

    return outcome


def have_turn(task, mode, chat, messages, outcome):
    """Lets the model call tools until it answers.  Returns the answer and the
    calls, or raises Unanswered."""

    request = {'messages': messages,
               'thinking': {'type': 'disabled' if mode == CHAT
                            else 'enabled'}}
    calls = []

    if task.tools:
        request['tools'] = task.tool_list()

    for _ in range(ROUNDS.get(task.kind, ROUNDS_OTHER)):

        try:
            completion = chat(request)
        except ContextFull:
            raise Unanswered('the context is full') from None

        outcome.count(completion)

        message = completion['choices'][0]['message']
        wanted = message.get('tool_calls') or []
        content = message.get('content') or ''

        text = f"{message.get('reasoning_content') or ''}\n{content}".strip()

        # a message that was cut at max_tokens is neither an answer nor a call

        if outcome.finish[-1] == 'length':
            raise Unanswered('cut off: ' + text[-60:])

        if not wanted:
            if CALL_LEFT.search(text):
                outcome.calls += 1
                raise Unanswered('no call, but its text: ' + text[-60:])

            messages.append({'role': 'assistant', 'content': content})
            return content, calls

        messages.append(assistant(message, mode))

        for call in wanted:
            name = call['function']['name']
            written = call['function']['arguments']
            arguments, why = read_call(task, name, written)

            outcome.calls += 1
            outcome.parsed += why is None

            # the server would reject a message with such a call

            if arguments is None:
                raise Unanswered(f'{name}({written[:60]}): {why}')

            result = task.call(name, written)
            calls.append(Call(name, arguments, result))
            messages.append({'role': 'tool', 'content': result,
                             'tool_call_id': call['id']})

    raise Unanswered('too many rounds')


def assistant(message, mode):
    """Returns the message with its calls as the server accepts it."""

    m = {'role': 'assistant', 'content': message.get('content') or '',
         'tool_calls': [{'id': c['id'], 'type': 'function',
                         'function': c['function']}
                        for c in message['tool_calls']]}

    if mode == RETAIN and message.get('reasoning_content'):
        m['reasoning_content'] = message['reasoning_content']

    return m


def read_call(task, name, text):
    """Returns (the arguments, None).  If the tool would reject them: (what
    could be parsed, or None if that is not an object; the reason)."""

    arguments = None

    try:
        value = json.loads(text)

        if not isinstance(value, dict):
            return None, 'the arguments are not a JSON object'

        arguments = value

        if name not in task.tools:
            return arguments, 'no such tool'

        refuse_unknown(task.tools[name].function, arguments)

    except (ValueError, RecursionError) as e:
        return arguments, str(e)

    return arguments, None
