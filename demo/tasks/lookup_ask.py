# Copyright (C) The nginx-dsa authors

"""Questions about notes.

Each function takes rng and notes and returns an Asked, or None if the notes do
not allow such a question.  The reasoning quotes each entry before it uses it.
"""

from dataclasses import dataclass
from typing import Callable, List, Optional

from tasks import digits, lookup_check as check
from tasks.lookup_notes import capital


@dataclass
class Asked:
    """
    question   the user's question
    thought    lines of reasoning
    shown      lines before the answer if there is no reasoning
    answer     the sentence that answers
    verdict    answer -> None if it is right, else the reason
    """
    question: str
    thought: List[str]
    shown: List[str]
    answer: str
    verdict: Callable[[str], Optional[str]]


def value(rng, notes):
    """Asks for one field of one record."""

    r, f = rng.choice(notes.records), rng.choice(notes.fields)
    question = ask(rng, f, notes.key(r))

    return Asked(question, ['Found: ' + notes.entry(r)], [],
                 notes.statement(r, f),
                 right_value(notes, question, r, f))


def each(rng, notes):
    """Asks for one field of several records."""

    fields = [f for f in notes.fields if not f.via]

    if not fields:
        return None

    f = rng.choice(fields)
    records = rng.sample(notes.records,
                         rng.randint(2, min(5, len(notes.records))))
    keys = [notes.key(r) for r in records]
    listed = ', '.join(keys[:-1]) + ' and ' + keys[-1]
    question = rng.choice([f'Tell me the {f.name} of {listed}.',
                           f'What is the {f.name} of {listed}, each?',
                           f'List the {f.name} of each: {listed}.',
                           f'I need the {f.name} of {listed}.'])
    pairs = [(key_words(notes, r), r[f.name]) for r in records]

    return Asked(question, ['Found: ' + notes.entry(r) for r in records], [],
                 ' '.join(notes.statement(r, f) for r in records),
                 lambda answer: check.tells_each(answer, pairs))


def reverse(rng, notes):
    """Asks for the record with a value that no other record has.  The
    reasoning searches the records in order until it finds it."""

    found = [(r, f) for f in notes.fields for r in notes.records
             if not f.via and only(notes, r, f)]

    if not found:
        return None

    r, f = rng.choice(found)
    who, says = rng.choice(notes.world.who), notes.says(r, f)
    question = rng.choice([f'{capital(who)} {says}?', f'Tell me {who} {says}.',
                           f'I want to know {who} {says}.',
                           f'{capital(who)} {says}, by these notes?'])
    passed = notes.records[:notes.records.index(r)]
    lines = [f'{notes.label(p)} {p[f.name]} no' for p in passed]
    lines.append(f'{notes.label(r)} {r[f.name]} yes')

    return Asked(question, lines, lines, notes.statement(r, f),
                 right_key(notes, r))


def hop(rng, notes):
    """Asks for a field of the record to which a link of another record
    leads."""

    links = [f for f in notes.fields if f.via]
    plain = [f for f in notes.fields if not f.via]

    if not links or not plain:
        return None

    r, link, f = rng.choice(notes.records), links[0], rng.choice(plain)
    to = notes.follow(r, link)
    via = rng.choice(link.via.split('|')).format(key=notes.key(r))
    question = ask(rng, f, via)

    return Asked(question,
                 ['First: ' + notes.entry(r), 'Then: ' + notes.entry(to)],
                 [notes.statement(r, link)], notes.statement(to, f),
                 right_value(notes, question, to, f))


def extreme(rng, notes):
    """Asks for the record with the largest or the smallest number."""

    f = number_field(rng, notes)

    if f is None:
        return None

    up = rng.randrange(2) == 0
    step = f.steps[2 if up else 3]
    who = rng.choice(notes.world.who)
    question = rng.choice([f'{capital(who)} is the {step}?',
                           f'{capital(who)} is the {step} of all?',
                           f'Tell me {who} is the {step}.',
                           f'By these notes, {who} is the {step}?'])
    best = notes.records[0]
    lines = [f'{step}: {">" if up else "<"} wins',
             f'{notes.label(best)} {best[f.name]}']

    for r in notes.records[1:]:
        a, b = r[f.name], best[f.name]
        best = r if (a > b) == up else best
        lines.append(f'{notes.label(r)} {digits.compare(a, b)} '
                     f'best {notes.label(best)} {best[f.name]}')

    return Asked(question, lines, lines, f'It is {notes.key(best)}.',
                 right_key(notes, best))


def count(rng, notes):
    """Asks how many records have a property."""

    f = rng.choice(notes.fields)
    records, all = notes.records, notes.world.all

    if f.steps:
        up = rng.randrange(2) == 0
        bound = rng.choice(records)[f.name] + rng.choice((-1, 1))
        step = f.steps[0 if up else 1]
        text = f'are {step} than {bound}{f.unit}'
        lines = [f'{step}: {">" if up else "<"} counts']
        proofs = [digits.compare(r[f.name], bound) for r in records]
        fits = [(r[f.name] > bound) == up and r[f.name] != bound
                for r in records]
    elif f.many:
        v = rng.choice(records)[f.name]
        text = f.many.format(v=v)
        proofs = [f'{r[f.name]}, wanted {v}:' for r in records]
        lines = []
        fits = [r[f.name] == v for r in records]
    else:
        return None

    question = rng.choice([f'How many {all} {text}?',
                           f'How many of the {all} {text}?',
                           f'Count the {all} that {text}.',
                           f'Tell me how many {all} {text}.'])
    n = 0

    for r, proof, fit in zip(records, proofs, fits):
        n += fit
        lines.append(f'{notes.label(r)} {proof} {"yes" if fit else "no"} {n}')

    return Asked(question, lines, lines, f'The count is {n}.',
                 lambda answer: check.counts(answer, n))


def order(rng, notes):
    """Asks for all records, sorted by a number."""

    f = number_field(rng, notes)

    if f is None or len(notes.records) > 5:
        return None

    up = rng.randrange(2) == 0
    a, b = f.steps[3 if up else 2], f.steps[2 if up else 3]
    all = notes.world.all
    question = rng.choice([f'Sort the {all} from the {a} to the {b}.',
                           f'List the {all} from the {a} to the {b}.',
                           f'Order them by {f.name}, the {a} first.',
                           f'Put the {all} in order, the {a} first.'])
    lines, done = digits.insertion([(notes.label(r), r[f.name])
                                    for r in notes.records], up,
                                   digits.compare)
    lines.insert(0, f'{a} first: {"<" if up else ">"} goes before')
    done = [notes.records[i] for i in done]
    answer = capital(', '.join(notes.label(d) for d in done)) + '.'
    keys = [key_words(notes, d) for d in done]

    return Asked(question, lines, lines, answer,
                 lambda answer: check.in_order(answer, keys))


def total(rng, notes):
    """Asks for the sum of two numbers."""

    f = number_field(rng, notes)

    if f is None:
        return None

    r, s = rng.sample(notes.records, 2)
    p, q, a, b = notes.key(r), notes.key(s), r[f.name], s[f.name]
    question = rng.choice([
        f'Add the {f.name} of {p} and the {f.name} of {q}.',
        f'What is the {f.name} of {p} plus the {f.name} of {q}?',
        f'What do the {f.name}s of {p} and {q} make together?',
        f'What is the sum of the {f.name}s of {p} and {q}?'])

    return pair(notes, question, r, s, f, digits.add(a, b),
                f'The sum is {a + b}.',
                lambda answer: check.has_value(answer, question, a + b, []))


def difference(rng, notes):
    """Asks for the difference between two numbers."""

    f = number_field(rng, notes)

    if f is None:
        return None

    r, s = rng.sample(notes.records, 2)
    p, q, a, b = notes.key(r), notes.key(s), r[f.name], s[f.name]
    d = abs(a - b)
    question = rng.choice([
        f'What is the difference between the {f.name}s of {p} and {q}?',
        f'By how much do the {f.name}s of {p} and {q} differ?',
        f'How far apart are the {f.name}s of {p} and {q}?'])

    return pair(notes, question, r, s, f,
                [digits.compare(a, b)] + digits.sub(max(a, b), min(a, b)),
                f'The difference is {d}.',
                lambda answer: check.has_value(answer, question, d, []))


def which(rng, notes):
    """Asks which of two records has the larger or the smaller number."""

    f = number_field(rng, notes)

    if f is None:
        return None

    r, s = rng.sample(notes.records, 2)

    if r[f.name] == s[f.name]:
        return None

    up = rng.randrange(2) == 0
    step, against = f.steps[:2] if up else f.steps[1::-1]
    right = r if (r[f.name] > s[f.name]) == up else s
    other = s if right is r else r
    p, q, who = notes.key(r), notes.key(s), notes.world.who[0]
    question = rng.choice([f'{capital(who)} is {step}, {p} or {q}?',
                           f'Tell me {who} is {step}: {p} or {q}.',
                           f'Of {p} and {q}, {who} is {step}?'])

    return pair(notes, question, r, s, f,
                [digits.compare(r[f.name], s[f.name]),
                 f'{step}: {">" if up else "<"} wins so {right[f.name]} '
                 f'{notes.key(right)}'],
                f'It is {notes.key(right)}.',
                lambda answer: check.prefers(
                    answer, key_words(notes, right), key_words(notes, other),
                    step, against))


def pair(notes, question, r, s, field, lines, answer, verdict):
    """Returns a question about a number of two records."""

    found = ['First: ' + notes.entry(r), 'Then: ' + notes.entry(s)]
    said = [notes.statement(r, field), notes.statement(s, field)]
    return Asked(question, found + lines, said + lines, answer, verdict)


def ask(rng, field, key):
    return rng.choice(field.asks.split('|')).format(key=key)


def number_field(rng, notes):
    found = [f for f in notes.fields if f.steps]
    return rng.choice(found) if found else None


def only(notes, record, field):
    v = record[field.name]
    return sum(r[field.name] == v for r in notes.records) == 1


def key_words(notes, record):
    """Returns the words with which an answer must name a record."""

    noun = notes.world.noun

    if sum(r[noun] == record[noun] for r in notes.records) == 1:
        return [record[noun]]

    return [record[p] for p in notes.world.parts]


def right_key(notes, record):
    others = [key_words(notes, r) for r in notes.records]
    return lambda answer: check.has_key(answer, key_words(notes, record),
                                        others)


def right_value(notes, question, record, field):
    if field.via:
        others = [key_words(notes, r) for r in notes.records
                  if r is not record]
        to = key_words(notes, notes.follow(record, field))
        return lambda answer: check.has_key(answer, to, others)

    others = {r[field.name] for r in notes.records}
    return lambda answer: check.has_value(answer, question,
                                          record[field.name], others)
