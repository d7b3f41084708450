# Copyright (C) The nginx-dsa authors

"""Runs the source of a candidate in a process of its own.

The process is in the cage of worlds.code: no network, no files but the
system's programs.  Here it can also start no process and open no file or
socket, it has two pipes and nothing else, and its memory, its time and the size
of its lines are bounded.  A solution's process does not have the database: what
it learns comes from the tools, which run in another process.
"""

import functools
import json
import os
import selectors
import subprocess
import time

from worlds.code import cage
from worlds.general import source


SECONDS = 60            # a solution; a call of a tool or of a verifier
CPU_SECONDS = 10        # a process
LONGEST = 4 << 20       # bytes of a line
MOST_CALLS = 2000

# cage.py bounds the memory.  Nothing can be started below the limit of 0
# processes, because it is set within the user namespace, where the process has
# no capability that lifts it.

COMMAND = ('/usr/bin/prlimit', '--nproc=0', f'--cpu={CPU_SECONDS}',
           '--fsize=0', '--', '/usr/bin/python3', '-I', '-S', 'inside.py')


@functools.lru_cache(maxsize=None)
def inside():
    """Returns the text of the program that reads the source."""

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        'inside.py')

    with open(path, encoding='utf-8') as f:
        return f.read()


class Failed(Exception):
    """The source failed or was stopped; the text is the reason.  refused: a
    function raised ValueError, which is an answer to its caller."""

    def __init__(self, why, refused=False):
        super().__init__(why)
        self.refused = refused


class Box:
    """A process.

    first     the line that inside.py reads first
    seconds   how long it may be waited for; a Functions has them again for
              each call

    Raises Failed, and cage.NoCage where programs cannot be isolated.
    """

    process = None

    def __init__(self, first, seconds=SECONDS):
        cage.check()
        self.process = cage.start(
            {'inside.py': inside()}, COMMAND, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        os.set_blocking(self.process.stdin.fileno(), False)
        self.seconds = seconds
        self.waited = 0
        self.rest = b''

        try:
            self.write({'builtins': source.BUILTINS, **first})
        except Failed:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def close(self):
        if self.process is not None:
            self.end()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def runs(self):
        return self.process.poll() is None

    def end(self):
        if self.runs():
            cage.end(self.process)

    def wait(self, pipe, event):
        """Waits until a pipe is ready."""

        begin = time.monotonic()

        with selectors.DefaultSelector() as selector:
            selector.register(pipe, event)
            left = self.seconds - self.waited
            ready = left > 0 and selector.select(left)

        self.waited += time.monotonic() - begin

        if not ready:
            self.end()
            raise Failed(f'no answer within {self.seconds} seconds')

    def write(self, value):
        try:
            line = memoryview(json.dumps(value).encode() + b'\n')
        except RecursionError:
            raise Failed('a value that is nested too deep') from None

        pipe = self.process.stdin

        while line:
            self.wait(pipe, selectors.EVENT_WRITE)

            try:
                line = line[os.write(pipe.fileno(), line):]
            except BlockingIOError:
                pass
            except OSError:
                raise Failed(self.ended()) from None

    def ended(self):
        """Returns how the process ended, or ends it.  bubblewrap returns the
        status of the program, and 128 and the signal if one ended it."""

        if cage.runs_on(self.process):
            self.end()

        status = self.process.returncode

        return 'the process ended: ' + (
            f'signal {-status}' if status < 0
            else f'signal {status - 128}' if status > 128
            else f'status {status}')

    def read(self):
        """Returns the next value that the process wrote."""

        while b'\n' not in self.rest:
            self.wait(self.process.stdout, selectors.EVENT_READ)
            piece = os.read(self.process.stdout.fileno(), 1 << 16)

            if piece == b'':
                raise Failed(self.ended())

            self.rest += piece

            if len(self.rest) > LONGEST:
                self.end()
                raise Failed(f'a value of more than {LONGEST} bytes')

        line, _, self.rest = self.rest.partition(b'\n')

        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None

        if not isinstance(value, dict):
            self.end()
            raise Failed('the process wrote something else than an object')

        return value


class Functions(Box):
    """Tools and verifiers, with the database."""

    def __init__(self, text, db):
        super().__init__({'source': text, 'db': db})
        self.value(self.read())

    def call(self, name, arguments):
        """Calls a function.  Raises Failed."""

        self.waited = 0
        self.write({'call': name, 'arguments': arguments})

        return self.value(self.read())

    @staticmethod
    def value(reply):
        if 'error' in reply:
            raise Failed(str(reply['error']), reply.get('refused') is True)

        if 'result' not in reply:
            raise Failed('neither a result nor an error')

        return reply['result']


def steps(text, tools, seconds=SECONDS):
    """A generator that runs a solution.  tools is name -> the names of its
    parameters.  It yields (name, arguments) for each call, is sent ("result",
    value) or ("error", text), and returns the answer.  seconds are those in
    which it is waited for the solution.  Raises Failed and cage.NoCage."""

    with Box({'source': text, 'tools': list(tools)}, seconds) as box:
        for _ in range(MOST_CALLS):
            message = box.read()

            if 'error' in message:
                raise Failed(message['error'])

            if 'answer' in message:
                return message['answer']

            name, given = message.get('call'), message.get('arguments')

            if not isinstance(name, str) or name not in tools \
                    or not isinstance(given, list):
                raise Failed('neither a call nor an answer')

            if len(given) != len(tools[name]):
                raise Failed(f'{name}: {len(given)} arguments instead of '
                             f'{len(tools[name])}')

            key, value = yield name, dict(zip(tools[name], given))
            box.write({key: value})

        raise Failed(f'more than {MOST_CALLS} calls')
