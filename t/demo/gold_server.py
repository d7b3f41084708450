# Copyright (C) The nginx-dsa authors

"""A chat server in which the gold policy of a task takes the place of the
model.  Answers are sent whole or streamed.  The server has no state: for each
request it replays the conversation from its beginning.

    PYTHONPATH=demo python3 t/demo/gold_server.py FAMILY SEED [wrong|cut|detour]

serves one task, in the mode retain, and prints its port, then the number of
choices of each request.  With "wrong" it sends a wrong answer at once, with
"cut" it closes the connection instead.  With "detour" it does so in place of
the second message for the sampling seed 102, and for 100 its first call has
wrong arguments and is repeated.
"""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import zip_longest

from tasks.task import CHAT, RETAIN, assistant, value_of


# the usage of every completion

USAGE = {
    'prompt_tokens': 100, 'completion_tokens': 10, 'total_tokens': 110,
    'prompt_tokens_details': {'cached_tokens': 64},
    'completion_tokens_details': {'reasoning_tokens': 4,
                                  'accepted_draft_tokens': 3},
}


class Refusal(Exception):
    """Raised for an answer with this status and text instead of a completion.
    Status 0 closes the connection."""

    def __init__(self, status, text=''):
        super().__init__(text)
        self.status = status


class GoldServer(ThreadingHTTPServer):
    """
    A server of gold policies.

    find   request -> its task
    mode   of the gold policies
    spoil  (request, message) -> the message to send; may raise Refusal
    report called with each request
    """
    daemon_threads = True

    def __init__(self, find, mode, spoil=lambda request, message: message,
                 report=lambda request: None):
        super().__init__(('127.0.0.1', 0), Handler)
        self.find = find
        self.mode = mode
        self.spoil = spoil
        self.report = report
        self.seen = []          # (key, request), in the order of arrival
        self.url = f'http://127.0.0.1:{self.server_port}/v1'

    def handle_error(self, request, client_address):
        """A client may leave: a program that has its answer ends the others
        of its requests.  Anything else is reported, which fails the test."""

        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,),
                         daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def message(self, request):
        """Returns the next message of the conversation."""

        messages = request['messages']
        user = [i for i, m in enumerate(messages) if m['role'] == 'user']
        task = self.find(request)
        mode = self.mode if request['thinking']['type'] == 'enabled' \
            else CHAT
        policy = task.turns[len(user) - 1].gold(mode)
        step = next(policy)

        for reasoning, calls, results in rounds(messages[user[-1]:]):

            # a call that was spoiled is sent again

            if calls != step.calls:
                continue

            if reasoning != (step.reasoning if mode == RETAIN else ''):
                raise Refusal(400, f'reasoning sent back: {reasoning}')

            step = policy.send(results)

        return self.spoil(request, assistant(step, len(messages)))


def rounds(messages):
    """Yields (reasoning, calls, results) for each message that has calls."""

    results = {}

    for m in messages:
        if m['role'] == 'tool':
            results[m['tool_call_id']] = value_of(m['content'])

    for m in messages:
        if m['role'] == 'assistant':
            yield (m.get('reasoning_content', ''),
                   [(c['function']['name'],
                     json.loads(c['function']['arguments']))
                    for c in m['tool_calls']],
                   [results[c['id']] for c in m['tool_calls']])


class Handler(BaseHTTPRequestHandler):

    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def do_GET(self):
        self.answer(200, {'object': 'list', 'data': [{'id': 'gold'}]})

    def do_POST(self):
        size = int(self.headers['Content-Length'])
        request = json.loads(self.rfile.read(size))
        self.server.seen.append((self.headers['Authorization'], request))

        self.server.report(request)

        n = request.get('n', 1)

        try:
            messages = [self.server.message(
                {**request, 'seed': request.get('seed', 0) + k})
                for k in range(n)]
        except Refusal as e:
            if e.status == 0:
                self.close_connection = True
            else:
                self.answer(e.status, {'error': {'message': str(e)}})
            return

        ends = [message.pop('finish', None)
                or ('tool_calls' if 'tool_calls' in message else 'stop')
                for message in messages]

        if request.get('stream'):
            self.stream(messages, ends)
        else:
            self.answer(200, {'object': 'chat.completion', 'usage': USAGE,
                              'choices': [{'index': k, 'message': messages[k],
                                           'finish_reason': ends[k]}
                                          for k in range(n)]})

    def answer(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def stream(self, messages, ends):
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Connection', 'close')
        self.end_headers()

        # the choices alternate, and the shortest one ends first

        for step in zip_longest(*map(deltas, messages)):
            for k, delta in enumerate(step):
                if delta is not None:
                    self.event({'choices': [{'index': k, 'delta': delta,
                                             'finish_reason': None}]})

        for k, finish in enumerate(ends):
            self.event({'choices': [{'index': k, 'delta': {'content': ''},
                                     'finish_reason': finish}],
                        'usage': USAGE if k == len(ends) - 1 else None})

        self.wfile.write(b'data: [DONE]\n\n')

    def event(self, value):
        value = {'object': 'chat.completion.chunk', **value}
        self.wfile.write(b'data: ' + json.dumps(value).encode() + b'\n\n')

    def log_message(self, *_):
        pass


def deltas(message):
    """Yields a message in pieces of a few characters."""

    yield {'role': 'assistant', 'content': ''}

    for key in ('reasoning_content', 'content'):
        for piece in pieces(message.get(key, '')):
            yield {key: piece}

    for i, call in enumerate(message.get('tool_calls', [])):
        function = call['function']
        head = {**call, 'function': {**function, 'arguments': ''}}
        yield {'tool_calls': [{'index': i, **head}]}

        for piece in pieces(function['arguments']):
            yield {'tool_calls': [{'index': i,
                                   'function': {'arguments': piece}}]}


def pieces(text, size=7):
    return [text[i:i + size] for i in range(0, len(text), size)]


def main(family, seed, fault=''):
    from tasks.mix import task_of

    task = task_of(family, int(seed))

    def spoil(request, message):
        if fault == 'cut':
            raise Refusal(0)
        if fault == 'wrong':
            return {'role': 'assistant', 'content': 'I do not know.'}
        if fault == 'detour' and request['seed'] == 102 \
                and request['messages'][-1]['role'] != 'user':
            raise Refusal(0)
        if fault == 'detour' and request['seed'] == 100 \
                and request['messages'][-1]['role'] == 'user':
            message['tool_calls'][0]['function']['arguments'] = '{"x": 1}'
        return message

    # print() writes the line and its end separately, and two threads may
    # interleave them

    def report(request):
        os.write(1, b'%d\n' % request.get('n', 1))

    with GoldServer(lambda request: task, RETAIN, spoil, report) as server:
        print(server.server_port, flush=True)
        signal.pause()


if __name__ == '__main__':
    main(*sys.argv[1:])
