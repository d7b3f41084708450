# Copyright (C) The nginx-dsa authors

"""Reading sentences of any kind, about who did what (happen.py), and answering
one or two questions from them: also for yes or no, for a number, for two
people who did the same, and for what is not said."""

from tasks import happen, scan
from tasks.arithmetic_check import affirms
from tasks.daily import line, states, task
from tasks.phrase import expand
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.text_frame import MISSING, found, framed, key, not_found
from tasks.tools_check import NEGATIVE


def make(rng):
    way = rng.random()
    draw = doubted if way < 0.14 else same_twice if way < 0.24 \
        else unsaid if way < 0.34 else questions
    turn = draw(rng)

    return task(rng, 'daily_events', 'single', [turn], {}, (RETAIN, CHAT))


def drawn(rng, least, most):
    """Returns events of different verbs, with a sentence for each."""

    n = rng.randint(least, most)
    events = [happen.event(rng, verb) for verb in rng.sample(happen.VERBS, n)]

    return events, [happen.sentence(rng, e) for e in events]


def one_turn(rng, text, question, thoughts, answer, wrong):
    """wrong: text -> None, or the reason why it is wrong"""

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    return Turn(framed(rng, text, question), gold=gold,
                check=lambda said, calls: 'there was nothing to call'
                if calls else wrong(said))


def not_said(said):
    return None if NEGATIVE.search(said) \
        else f'claims what the text does not say: {said}'


def questions(rng):
    """Questions about one or two of the events, or about one that is not
    there."""

    events, said = drawn(rng, 1, 6)
    n = len(events)
    asked = rng.sample(range(n), min(n, rng.choice((1, 1, 1, 2))))
    parts, gone = [], None

    for i in asked:
        known = [p for p in events[i].parts if clear(events, i, p)] or ['what']
        counted = events[i].counted()[0] and clear(events, i, 'what')
        parts.append('how many' if counted and rng.random() < 0.5
                     else rng.choice(known))

    if n > 1 and len(asked) == 1 and rng.random() < 0.12:
        gone, = asked

    there = [s for i, s in enumerate(said) if i != gone]
    text = ' '.join(there)
    asks = [happen.question(rng, events[i], p) for i, p in zip(asked, parts)]
    question = '? '.join(asks)
    question = question.replace('??', '?').replace('.?', '.')

    if gone is not None:
        return one_turn(rng, text, question, scan.looked(
            rng, there, question,
            not_found(rng, about(question, events[gone])), False),
                        line(rng, MISSING), not_said)

    answer = ' '.join(happen.answer(rng, events[i], p)
                      for i, p in zip(asked, parts))
    thoughts = ' '.join(scan.looked(rng, there, q, found(
        rng, about(q, events[i], p), said[i], events[i].named(p)))
        for q, i, p in zip(asks, asked, parts))

    def wrong(text):
        for i, p in zip(asked, parts):
            if not states(text, events[i].named(p)):
                return f'"{events[i].named(p)}" is not in: {text}'

        return None

    return one_turn(rng, text, question, thoughts, answer, wrong)


def doubted(rng):
    """Whether it was this person who did it."""

    events, said = drawn(rng, 2, 5)
    i = rng.randrange(len(events))
    who = events[i].parts['who']
    people = [e.parts['who'] for e in events]
    asked = who if rng.random() < 0.5 else rng.choice(people)
    question, answer = happen.doubt(rng, events[i], asked)
    thoughts = scan.looked(rng, said, question, found(
        rng, about(question, events[i], 'who'), said[i], who))

    return one_turn(rng, ' '.join(said), question, thoughts, answer,
                    lambda text: affirms(text, asked == who))


def same_twice(rng):
    """Two people did the same, and both are asked for."""

    events, said = drawn(rng, 1, 4)
    first = events[0]
    person = happen.person(rng)

    while person == first.parts['who']:
        person = happen.person(rng)

    twin = happen.event(rng, first.verb)
    twin.parts.update(who=person, what=first.parts['what'])
    again = happen.sentence(rng, twin)
    said.insert(rng.randint(1, len(said)), again)
    question, answer = happen.both(rng, first, twin)
    thoughts = f'{about(question, first, "who")}: two sentences fit, ' \
        f'"{said[0]}" and "{again}"'
    thoughts = scan.looked(rng, said, question, thoughts)

    def wrong(text):
        for e in (first, twin):
            if not states(text, e.parts['who']):
                return f'"{e.parts["who"]}" is not in: {text}'

        return None

    return one_turn(rng, ' '.join(said), question, thoughts, answer, wrong)


def unsaid(rng):
    """A part that the sentence of the event does not have."""

    events, said = drawn(rng, 1, 4)
    i = rng.randrange(len(events))
    open_parts = [p for p in ('where', 'when', 'with')
                  if p not in events[i].parts]

    if not open_parts or not clear(events, i, 'where'):
        return questions(rng)

    asked = rng.choice(open_parts)
    question = happen.question(rng, events[i], asked)
    k = about(question, events[i])
    thoughts = found(rng, k, said[i], k).replace(' That is it.', '') \
        + ' ' + expand(rng, f'[It does not say {asked}|Nothing about '
                            f'"{asked}"].')
    thoughts = scan.looked(rng, said, question, thoughts, False)

    return one_turn(rng, ' '.join(said), question, thoughts,
                    line(rng, MISSING), not_said)


def about(question, event, part=''):
    """Returns what a question for a part of an event has of the event."""

    parts = [event.parts[p] for p in ('what', 'who') if p != part]
    goods = event.counted()[1]

    return key(question, parts + ([goods] if goods else []))


def clear(events, i, part):
    """Returns true if a question about a part of an event has one answer: the
    event is the only one with its other parts."""

    def others(e):
        return e.parts['who' if part != 'who' else 'what']

    return sum(others(e) == others(events[i]) for e in events) == 1
