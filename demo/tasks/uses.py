# Copyright (C) The nginx-dsa authors

"""Uses of services: what users write, which arguments the right call has, and
how the result is answered.

A kind of use is some lines:

    = what the user wants: a verb with its object
    @ roles of the arguments that the call must have
    - a request; [a|b] is a or b, {x} is a slot of the case, \\n is a new line
    > an answer, in the same form
    + words that an answer must have, in the same form, divided by ;

"\\n" in a request or answer begins a new line.
"""

from dataclasses import dataclass
from typing import Callable, Tuple

from tasks.api import Service, Use
from tasks.parts import Split
from tasks.phrase import capital, expand, manner, say


@dataclass(frozen=True)
class Kind:
    """
    service   whose tool is called
    case      rng -> the slots of a case: arguments, fields of the result, and
              'records' if the result is not one record
    swap      the slot that a correction changes, or ''
    accepts   as in Use
    """
    service: Service
    case: Callable
    want: str
    roles: Tuple[str, ...]
    asks: Split
    answers: Tuple[str, ...]
    keys: Tuple[str, ...]
    swap: str = ''
    accepts: Callable = None

    def draw(self, rng):
        return self.use(rng, self.case(rng))

    def use(self, rng, slots, user=None):
        """Returns the Use of a case; user is the request if it is not one of
        those of the kind."""

        if user is None:
            ask = rng.choice(self.asks)
            user = say(rng, ask, **slots)
            user = manner(rng, user, ask.startswith('{'))

        records = slots.get('records')

        if records is None:
            records = [{f: slots[f] for f in self.service.gives}]

        answer = expand(rng, rng.choice(self.answers))
        said = say(rng, answer, **slots)

        # a file or a user keeps its small letters

        if not (self.service.plain and answer.startswith('{')):
            said = capital(said)

        return Use(self.service, user, {r: slots[r] for r in self.roles},
                   records, said,
                   tuple(k.format(**slots) for k in self.keys),
                   say(rng, self.want, **slots), self.accepts, slots, self)


def kinds(service, case, text, swap='', accepts=None):
    """Returns the Kinds of a text, which share their service and case."""

    found = []

    for block in text.strip().split('\n\n'):
        part = {mark: [] for mark in '=@->+'}

        for line in block.splitlines():
            if line.startswith('  '):
                part[mark][-1] += ' ' + line.strip()
            else:
                mark = line[0]
                part[mark].append(line[2:].replace('\\n', '\n'))

        found.append(Kind(service, case, part['='][0],
                          tuple(' '.join(part['@']).split()),
                          Split(part['-']), tuple(part['>']),
                          tuple(k.strip() for k in
                                ' '.join(part['+']).split(';') if k.strip()),
                          swap, accepts))

    return found


def loosely(role, wanted, value):
    """Returns true if a text has the words of the wanted one."""

    said = {w.strip('.,!?"\'').lower() for w in str(value).split()}

    return all(w.strip('.,!?"\'').lower() in said
               for w in str(wanted).split())


def one_of(rng, text):
    return expand(rng, f'[{text}]')
