# Copyright (C) The nginx-dsa authors

"""Runs the source of a candidate in a process of its own.

The process has two pipes and nothing else: it cannot open files or sockets,
and its memory, its time and the size of its lines are bounded.  A solution's
process does not have the database: what it learns comes from the tools, which
run in another process.
"""

import json
import os
import resource
import selectors
import subprocess
import sys
import time

from worlds.general import source


SECONDS = 60
CPU_SECONDS = 10
MEMORY = 512 << 20
LONGEST = 4 << 20       # bytes of a line
MOST_CALLS = 2000

INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      'inside.py')


class Failed(Exception):
    """The source failed or was stopped; the text is the reason.  refused: a
    function raised ValueError, which is an answer to its caller."""

    def __init__(self, why, refused=False):
        super().__init__(why)
        self.refused = refused


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Box:
    """A process.  first is the line that inside.py reads first."""

    def __init__(self, first, seconds=SECONDS):
        self.process = subprocess.Popen(
            [sys.executable, '-I', '-S', INSIDE], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={},
            cwd='/', preexec_fn=limits, start_new_session=True)
        self.seconds = seconds
        self.rest = b''
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

        try:
            self.write({'builtins': source.BUILTINS, **first})
        except Failed:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()

        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.selector.close()

    def __del__(self):
        if self.process.returncode is None:
            self.close()

    def write(self, value):
        try:
            self.process.stdin.write(json.dumps(value).encode() + b'\n')
            self.process.stdin.flush()
        except OSError:
            raise Failed(self.ended()) from None

    def ended(self):
        self.process.kill()
        status = self.process.wait()

        return 'the process ended: ' + (
            f'signal {-status}' if status < 0 else f'status {status}')

    def read(self):
        """Returns the next value that the process wrote."""

        deadline = time.monotonic() + self.seconds

        while b'\n' not in self.rest:
            left = deadline - time.monotonic()

            if left <= 0 or not self.selector.select(left):
                self.process.kill()
                raise Failed(f'no answer within {self.seconds} seconds')

            piece = os.read(self.process.stdout.fileno(), 1 << 16)

            if piece == b'':
                raise Failed(self.ended())

            self.rest += piece

            if len(self.rest) > LONGEST:
                self.process.kill()
                raise Failed(f'a value of more than {LONGEST} bytes')

        line, _, self.rest = self.rest.partition(b'\n')

        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None

        if not isinstance(value, dict):
            self.process.kill()
            raise Failed('the process wrote something else than an object')

        return value


class Functions(Box):
    """Tools and verifiers, with the database."""

    def __init__(self, text, db):
        super().__init__({'source': text, 'db': db})
        self.value(self.read())

    def call(self, name, arguments):
        """Calls a function.  Raises Failed."""

        self.write({'call': name, 'arguments': arguments})

        return self.value(self.read())

    @staticmethod
    def value(reply):
        if 'error' in reply:
            raise Failed(reply['error'], reply['refused'])

        return reply['result']


def steps(text, tools, seconds=SECONDS):
    """A generator that runs a solution.  tools is name -> the names of its
    parameters.  It yields (name, arguments) for each call, is sent ("result",
    value) or ("error", text), and returns the answer.  Raises Failed."""

    with Box({'source': text, 'tools': list(tools)}, seconds) as box:
        for _ in range(MOST_CALLS):
            message = box.read()

            if 'error' in message:
                raise Failed(message['error'])

            if 'answer' in message:
                return message['answer']

            name, given = message.get('call'), message.get('arguments')

            if name not in tools or not isinstance(given, list):
                raise Failed('neither a call nor an answer')

            if len(given) != len(tools[name]):
                raise Failed(f'{name}: {len(given)} arguments instead of '
                             f'{len(tools[name])}')

            key, value = yield name, dict(zip(tools[name], given))
            box.write({key: value})

        raise Failed(f'more than {MOST_CALLS} calls')
