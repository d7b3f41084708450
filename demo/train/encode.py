# Copyright (C) The nginx-dsa authors

"""The published prompt encoding of DeepSeek-V3.2, as context/deepseek/encode.c
implements it for the server, with the targets of training.

A conversation becomes segments, (text, target).  target is True for text that
the model generates: from the <think> or </think> at the end of a prompt to the
end of the sentence, including its token.  Segments are divided at special
tokens, where a tokenizer divides anyway, so the ids of all segments joined are
the ids of the whole text.
"""

import json
import re

from tasks.task import CHAT, DISCARD


BOS = '<｜begin▁of▁sentence｜>'
EOS = '<｜end▁of▁sentence｜>'
USER = '<｜User｜>'
ASSISTANT = '<｜Assistant｜>'
THINK = '<think>'
THINK_END = '</think>'
DSML = '｜DSML｜'

# texts that could become special tokens

NAMES = re.compile(r'｜|</?think>|<\|EOT\|>')

TOOLS_HEAD = f'''## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<{DSML}function_calls>" block like the \
following as part of your reply to the user:
<{DSML}function_calls>
<{DSML}invoke name="$FUNCTION_NAME">
<{DSML}parameter name="$PARAMETER_NAME" string="true|false">\
$PARAMETER_VALUE</{DSML}parameter>
...
</{DSML}invoke>
<{DSML}invoke name="$FUNCTION_NAME2">
...
</{DSML}invoke>
</{DSML}function_calls>

String and scalar parameters should be specified as is without any escaping \
or quotes, while lists and objects should use JSON format. The "string" \
attribute should be set to "true" for string type parameters and "false" for \
other types (numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should \
strongly consider outputting a thinking block. Here is an example:

<{DSML}function_calls>
...
</{DSML}function_calls>

<function_results>
...
</function_results>

{THINK}...thinking about results{THINK_END}

Here are the functions available in JSONSchema format:
<functions>
'''

# the same without the instructions, which are more than 200 tokens of each
# sample with tools (data.shortened)

TOOLS_BRIEF = '''## Tools

Here are the functions available in JSONSchema format:
<functions>
'''


def encode(messages, tools, thinking):
    """Returns the segments of a conversation.

    messages  of a chat request; a system message only at their beginning
    tools     of a chat request, or none
    thinking  the mode; if true, only the messages after the last one of the
              user have reasoning, and only they are targets
    """
    system = messages[0]['role'] == 'system'
    users = [i for i, m in enumerate(messages) if m['role'] == 'user']
    last = users[-1] if users else -1
    segments = head(messages[0]['content'] if system else '', tools)
    i = 1 if system else 0

    while i < len(messages):
        message = messages[i]
        cue = THINK if thinking and i >= last else THINK_END

        if message['role'] == 'user':
            segments.append((USER + plain(message['content']) + ASSISTANT
                             + cue, False))
            i += 1

        elif message['role'] == 'assistant':
            calls = message.get('tool_calls') or []
            target = not thinking or i > last

            segments.append((written(message, thinking and i > last),
                             target))
            i += 1

            if calls and i < len(messages):
                answers = messages[i:i + len(calls)]
                segments.append((results(calls, answers) + cue, False))
                i += len(calls)

        else:
            raise ValueError(f'messages[{i}]: a {message["role"]} message '
                             'is not allowed here')

    return segments


def training_samples(messages, tools, mode):
    """Returns the training samples of a conversation, as lists of segments.

    A model that thinks sees only the reasoning of the current turn, so each
    turn is a sample.  If reasoning is discarded, each step is.  A model that
    does not think sees everything that it wrote, so one sample has the targets
    of all turns.
    """
    if mode == CHAT:
        return [encode(messages, tools, False)]

    samples = []

    for begin, end in turns(messages):
        if mode == DISCARD:
            samples += [step_alone(messages, i, begin, tools)
                        for i in range(begin, end)
                        if messages[i]['role'] == 'assistant']
        else:
            samples.append(encode(messages[:end], tools, True))

    return samples


def turns(messages):
    """Yields where each turn begins and ends."""

    users = [i for i, m in enumerate(messages) if m['role'] == 'user']

    return zip(users, users[1:] + [len(messages)])


def step_alone(messages, i, begin, tools):
    """Returns the sample that has only the step messages[i] as a target, and
    no reasoning from earlier steps of the turn, which begins at begin."""

    seen = [{**m, 'reasoning_content': ''} if m['role'] == 'assistant' else m
            for m in messages[begin:i]]
    *before, step = encode(messages[:begin] + seen + [messages[i]], tools,
                           True)

    return [(text, False) for text, _ in before] + [step]


class Ordinary(str):
    """A text with the names of special tokens, which are ordinary text
    here."""


def head(system, tools):
    """Returns the segments before the first user's message.  A system prompt
    without tools may have the names of special tokens."""

    if NAMES.search(system) and not tools:
        return [(BOS, False), (Ordinary(system), False)]

    text = BOS + plain(system)

    if tools:
        text += '\n\n' + TOOLS_HEAD + ''.join(
            plain(dump(t['function'])) + '\n' for t in tools)
        text += '</functions>\n'

    return [(text, False)]


def written(message, reasons):
    """Returns an assistant's message; reasons: with its reasoning."""

    text = plain(message.get('content') or '')

    if reasons:
        text = (plain(message.get('reasoning_content') or '') + THINK_END
                + text)

    if message.get('tool_calls'):
        text += '\n\n' + calls_block(message['tool_calls'])

    return text + EOS


def calls_block(calls):
    text = f'<{DSML}function_calls>\n'

    for call in calls:
        name = plain(call['function']['name'])
        arguments = json.loads(call['function']['arguments'])

        text += f'<{DSML}invoke name="{name}">\n'
        text += '\n'.join(parameter(k, v) for k, v in arguments.items())
        text += f'\n</{DSML}invoke>\n'

    return text + f'</{DSML}function_calls>'


def parameter(name, value):
    """Strings are written as they are, without any escapes; the rest is
    JSON."""

    string = isinstance(value, str)
    text = value if string else dump(value)

    return (f'<{DSML}parameter name="{plain(name)}" '
            f'string="{"true" if string else "false"}">'
            f'{plain(text)}</{DSML}parameter>')


def results(calls, answers):
    """Returns the tools' messages, in the order of the calls."""

    text = {m['tool_call_id']: m['content'] for m in answers
            if m['role'] == 'tool'}

    if text.keys() != {c['id'] for c in calls}:
        raise ValueError('each call needs one tool message')

    return ('\n\n<function_results>'
            + ''.join(f'\n<result>{plain(text[c["id"]])}</result>'
                      for c in calls)
            + '\n</function_results>\n\n')


def dump(value):
    return json.dumps(value, ensure_ascii=False)


def plain(text):
    """Returns a text that comes from outside the encoding.  It must not
    contain the text of a special token, which would be tokenized as this
    token."""

    if NAMES.search(text):
        raise ValueError(f'the name of a special token in: {text!r:.200}')

    return text
