# Copyright (C) The nginx-dsa authors

"""Reading sentences of any kind, about who did what (happen.py), and answering
one or two questions from them."""

from tasks import happen
from tasks.daily import line, states, task
from tasks.daily_text import ASK, FOUND, MISSING
from tasks.phrase import expand
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.tools_check import NEGATIVE


NOT_THERE = ('[I look through|I read] the text. '
             '[Nothing is said about it|It is not there].')


def make(rng):
    n = rng.randint(1, 6)
    events = [happen.event(rng, verb) for verb in rng.sample(happen.VERBS, n)]
    said = [happen.sentence(rng, e) for e in events]
    asked = rng.sample(range(n), min(n, rng.choice((1, 1, 1, 2))))
    parts, gone = [], None

    for i in asked:
        parts.append(rng.choice([p for p in events[i].parts
                                 if clear(events, i, p)] or ['what']))

    if n > 1 and len(asked) == 1 and rng.random() < 0.15:
        gone, = asked

    text = ' '.join(s for i, s in enumerate(said) if i != gone)
    questions = ' '.join(happen.question(rng, events[i], p)
                         for i, p in zip(asked, parts))
    user = expand(rng, rng.choice(ASK).replace('\\n', '\n')).format(
        text=text, q=questions)

    if gone is None:
        answer = ' '.join(happen.answer(rng, events[i], p)
                          for i, p in zip(asked, parts))
        thoughts = ' '.join(line(rng, FOUND).format(
            s=said[i], v=events[i].named(p)) for i, p in zip(asked, parts))
    else:
        answer, thoughts = line(rng, MISSING), expand(rng, NOT_THERE)

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        if gone is not None:
            return None if NEGATIVE.search(text) \
                else f'claims what the text does not say: {text}'

        for i, p in zip(asked, parts):
            if not states(text, events[i].named(p)):
                return f'"{events[i].named(p)}" is not in: {text}'

        return None

    return task(rng, 'daily_events', 'single', [Turn(user, check, gold)], {},
                (RETAIN, CHAT))


def clear(events, i, part):
    """Returns true if a question about a part of an event has one answer: the
    event is the only one with its other parts."""

    def others(e):
        return e.parts['who' if part != 'who' else 'what']

    return sum(others(e) == others(events[i]) for e in events) == 1
