# Copyright (C) The nginx-dsa authors

"""Calls a function of a program in bubblewrap, from outside of it."""

import os
import selectors
import subprocess
import time

from worlds.code import bridge, cage, calling


SECONDS = 60
LONGEST = 8000          # characters of a program


def results(text, name, inputs, seconds=SECONDS):
    """Calls a function of a Python program once for each input.

    text      the source
    inputs    lists of arguments: numbers, texts, lists, ...
    seconds   for all calls together

    Returns [(value, None) or (None, (type, text) of an exception)], as many
    as there are inputs.  Raises calling.Ended if the program does not run to
    the last call, and cage.NoCage.
    """
    if len(text) > LONGEST:
        raise calling.Ended(f'a program of more than {LONGEST} characters')

    cage.check()

    p = cage.start(
        {'given.py': text, '.serving.py': bridge.source('serving.py')},
        ['/usr/bin/sh', '-c', bridge.JOINED.format(
            command='/usr/bin/python3 .serving.py given')],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, bufsize=0)

    try:
        reader = Reader(p.stdout.fileno(), seconds)
        program = calling.Program(p.stdin.write, reader.line)

        return [program.call(name, *given) for given in inputs]

    finally:
        cage.end(p)
        p.stdin.close()
        p.stdout.close()


class Reader:
    """Reads lines until a deadline."""

    def __init__(self, fd, seconds):
        self.fd = fd
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self.rest = b''

    def line(self):
        """Returns the next line.  At the end, or if it is longer than
        calling.LONGEST, what there is of it.  Raises calling.Ended at the
        deadline."""

        with selectors.DefaultSelector() as selector:
            selector.register(self.fd, selectors.EVENT_READ)

            while b'\n' not in self.rest and len(self.rest) < calling.LONGEST:
                left = self.deadline - time.monotonic()

                if left <= 0 or not selector.select(left):
                    raise calling.Ended(f'more than {self.seconds} seconds')

                piece = os.read(self.fd, 1 << 16)

                if piece == b'':
                    return self.rest

                self.rest += piece

        line, end, self.rest = self.rest.partition(b'\n')

        return line + end
