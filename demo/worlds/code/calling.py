# Copyright (C) The nginx-dsa authors

"""Calls a program that runs in another process, where serving.py has it.

What that process writes is only ever a value or the name of an exception: a
program under test cannot reach what compares its results.
"""

import builtins
import json


LONGEST = 4 << 20       # bytes of a line
DEEPEST = 50            # lists in lists


class Ended(Exception):
    """The process ended, or wrote something else than an answer; the text is
    the reason."""


class Remote:
    """An object of the other process.  Attributes are read there, and calls
    are made there; everything else is that of a plain object here."""

    def __init__(self, program, number):
        self._program = program
        self._number = number

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)

        return self._program.ask('get', self._number, name)

    def __call__(self, *arguments):
        return self._program.ask('call', self._number,
                                 [encode(a) for a in arguments])


class Program:
    """
    write     takes the bytes of a line
    readline  returns the bytes of the next line, b'' at the end
    """

    def __init__(self, write, readline):
        self.write = write
        self.readline = readline
        self.module = Remote(self, 0)

    def ask(self, what, number, other):
        """Returns the value, or raises the exception if it is one of
        Python's own, else RuntimeError.  Raises Ended."""

        value, error = self.reply(what, number, other)

        if error is None:
            return value

        raise exception(*error)

    def call(self, name, *arguments):
        """Calls a function of the module.  Returns (value, None), or (None,
        the name and the text of an exception).  Raises Ended."""

        f, error = self.reply('get', 0, name)

        if error is not None or not isinstance(f, Remote):
            return None, error or ('TypeError', f'{name} is no function')

        return self.reply('call', f._number, [encode(a) for a in arguments])

    def reply(self, what, number, other):
        try:
            self.write(json.dumps({what: [number, other]}).encode() + b'\n')
        except OSError:
            raise Ended('the program ended') from None

        line = self.readline()

        if not line.endswith(b'\n'):
            raise Ended('the program ended' if len(line) < LONGEST
                        else f'an answer of more than {LONGEST} bytes')

        try:
            return self.parsed(json.loads(line))
        except (ValueError, TypeError, LookupError, RecursionError):
            raise Ended('the program wrote no answer') from None

    def parsed(self, answer):
        (kind, value), = answer.items() if isinstance(answer, dict) else ()

        if kind == 'value':
            return self.decode(value), None

        if kind != 'error' or not isinstance(value, list) \
                or [type(v) for v in value] != [str, str]:
            raise ValueError

        return None, tuple(value)

    def decode(self, value, depth=0):
        if depth > DEEPEST or isinstance(value, list):
            raise ValueError

        if not isinstance(value, dict):
            return value

        (name, parts), = value.items()

        if name == 'object':
            if type(parts) is not int:
                raise ValueError
            return Remote(self, parts)

        if name == 'dict':
            return {self.decode(k, depth + 1): self.decode(v, depth + 1)
                    for k, v in parts}

        return {'list': list, 'tuple': tuple, 'set': set}[name](
            [self.decode(v, depth + 1) for v in parts])


def encode(value):
    if value is None or isinstance(value, (bool, int, float, str)):
        return value

    if isinstance(value, dict):
        return {'dict': [[encode(k), encode(v)] for k, v in value.items()]}

    for kind in (list, tuple, set):
        if isinstance(value, kind):
            return {kind.__name__: [encode(v) for v in value]}

    if isinstance(value, Remote):
        return {'object': value._number}

    raise TypeError(f'{type(value).__name__} cannot be sent to the program')


def exception(name, text):
    """Returns an exception of Python's own with this name, else a
    RuntimeError."""

    kind = getattr(builtins, name, None)

    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(text)
        except TypeError:       # it needs more than a text
            pass

    return RuntimeError(f'{name}: {text}')
