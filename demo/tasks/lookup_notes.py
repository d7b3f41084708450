# Copyright (C) The nginx-dsa authors

"""Records in the forms in which a user may write them: sentences, lines of
keys and values, a table, JSON objects, a dated log."""

import json
from dataclasses import dataclass
from typing import Tuple

from tasks.lookup_worlds import Field, World


FORMS = ('prose', 'lines', 'table', 'json', 'log')


@dataclass(frozen=True)
class Notes:
    """
    world     the kind of records
    form      one of FORMS
    fields    the fields in the notes
    records   in the order of the notes
    """
    world: World
    form: str
    fields: Tuple[Field, ...]
    records: Tuple[dict, ...]

    def key(self, record):
        """Returns the name of a record in a sentence."""
        return self.world.key.format(**record)

    def label(self, record):
        """Returns the name of a record in a list."""
        return self.world.label.format(**record)

    def cell(self, record, field):
        """Returns a value in the form for a list."""
        v = record[field.name]
        return self.label(v) if field.via else v

    def says(self, record, field):
        """Returns the predicate of a sentence about a record."""
        v = record[field.name]
        return field.says.format(v=self.key(v) if field.via else v)

    def statement(self, record, *fields):
        """Returns a sentence with some fields of a record."""
        said = [self.says(record, f) for f in fields]
        rest = ' and ' + said[-1] if len(said) > 1 else ''
        text = ', '.join(said[:-1] or said) + rest
        return capital(f'{self.key(record)} {text}.')

    def follow(self, record, field):
        """Returns the record to which a link leads."""
        to = record[field.name]
        return next(r for r in self.records
                    if all(r[p] == v for p, v in to.items()))

    def entry(self, record):
        """Returns a record in the form of the notes, without the date of a
        log."""

        cells = [(f.name, self.cell(record, f)) for f in self.fields]
        parts = [(p, record[p]) for p in self.world.parts]

        if self.form == 'prose':
            return self.statement(record, *self.fields)

        if self.form == 'table':
            return ' | '.join(str(v) for _, v in parts + cells)

        if self.form == 'json':
            return json.dumps(dict(parts + cells))

        joint, gap = ('=', ' ') if self.form == 'log' else (' ', ', ')
        return f'{self.label(record)}: ' \
            + gap.join(f'{name}{joint}{v}' for name, v in cells)

    def lines(self, rng):
        """Returns (head, lines): the head of a table, or None, and a line for
        each record."""

        entries = [self.entry(r) for r in self.records]

        if self.form == 'log':
            days = sorted(rng.choices(range(12 * 28), k=len(entries)))
            return None, [f'{d // 28 + 1:02}-{d % 28 + 1:02} {e}'
                          for d, e in zip(days, entries)]

        if self.form == 'table':
            return ' | '.join([*self.world.parts,
                               *(f.name for f in self.fields)]), entries

        return None, entries


def capital(text):
    return text[0].upper() + text[1:]
