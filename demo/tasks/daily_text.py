# Copyright (C) The nginx-dsa authors

"""Reading a short text that the user sends, and answering from it; admitting
what the text does not say.  The texts that have a form, such as lists and
mails, are in text_docs.py, coherent ones in text_stories.py, and plain
statements in text_more.py."""

import re

from tasks import (happen, names, scan, text_docs, text_facts, text_more,
                   text_stories)
from tasks.daily import line, states, task
from tasks.daily_rough import typed
from tasks.parts import Split
from tasks.phrase import capital, say
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.text_frame import MISSING, found, framed, key, not_found
from tasks.tools_check import NEGATIVE
from tasks.times import clock


def facts_of(text):
    """Returns (name, sentences, questions, answers) for each kind of fact."""

    found = []

    for block in text.strip().split('\n\n'):
        top, *rest = block.split('\n')
        part = {mark: [t[2:] for t in rest if t[0] == mark] for mark in '.->'}
        found.append((top[2:], Split(part['.']), Split(part['-']),
                      tuple(part['>'])))

    return found


FACTS = facts_of(text_facts.FACTS)
REASONS = Split(text_facts.REASONS.splitlines())

FILLER = ('''[It was|It is] a [long|quiet|busy|sunny|cold] day.
The [weather|coffee|mood] was [good|bad|fine].
[Nobody|Everybody] knew [why|about it].
[People|The neighbors] talked about {topic}.
[Some|A few] {goods} were [left|missing|on the table].
[In the end|At first|After a while] [nothing happened|all were happy|they went home].
The {room} was [empty|full|dark|warm].
[A|The] letter came [late|early|from {city}].
[Then|Later|Before that] the phone rang.
There [is|was] no [hurry|reason to worry|more news].
[By the way,|And] the {goods} were [cheap|fresh|very good].
I [hope|think] that [you are well|all is fine at home].
[Nobody|Somebody] asked [about|for] the {goods}.
[Tell me|Write to me] [when you can|soon].
We [laughed a lot|did not stay long|had to wait].
[Last year|Two years ago] it was [quite|very] different.
The [bus|train] to {city} was [full|late|on time].
[Outside|In the {room}] a dog barked.
[As always|As usual], the {room} smelled of coffee.
More [about it|on that] [next time|another day].'''.splitlines())

def document(rng):
    """Returns the Turn of a text that has a form."""

    text, asked = text_docs.draw(rng)
    ask, given, answer = asked.ask(rng)
    question = typed(rng, ask, True, **given)
    question = capital(question) if rng.random() < 0.7 else question
    user = framed(rng, text, question)

    if asked.missing:
        answer, thoughts = line(rng, MISSING), not_found(rng, str(asked.x))
    else:
        thoughts = found(rng, str(asked.x), asked.seen, asked.v or 'that')

    lines = scan.sentences(text)
    thoughts = scan.looked(rng, lines, question, thoughts, not asked.missing)
    thoughts = thoughts.replace(f'"{asked.seen}"', asked.seen) \
        if f'"{asked.seen}": yes' not in thoughts else thoughts

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(said, calls):
        if calls:
            return 'there was nothing to call'

        if asked.missing:
            return None if NEGATIVE.search(said) \
                else f'claims what the text does not say: {said}'

        return asked.wrong(said)

    return Turn(user, check, gold)


def make(rng):
    way = rng.random()

    if way < 0.55:
        source = text_more if way < 0.3 else text_stories

        return task(rng, 'daily_text', 'single', [source.turn(rng)], {},
                    (RETAIN, CHAT))

    if rng.random() < 0.55:
        return task(rng, 'daily_text', 'single', [document(rng)], {},
                    (RETAIN, CHAT))

    cases = rng.sample(FACTS, rng.randint(2, 5))
    people = rng.sample(names.FIRST, len(cases))
    products = rng.sample(names.PRODUCTS, len(cases))
    events = rng.sample(names.EVENTS, len(cases))
    facts = []

    for i, (what, says, asks, answers) in enumerate(cases):
        slots = dict(
            name=people[i], city=rng.choice(names.PLACES),
            goods=rng.choice(names.GOODS), product=products[i],
            event=events[i], day=rng.choice(happen.DAYS.split('|')),
            time=clock(rng),
            room=rng.choice(names.ROOMS), n=rng.randrange(2, 999),
            topic=rng.choice(names.TOPICS),
            other=f'{rng.choice(names.FIRST)} {rng.choice(names.LAST)}')
        slots['reason'] = rng.choice(REASONS).format(**slots)
        value = slots[{'author': 'other', 'price': 'n', 'count': 'n'}.get(
            what, what)]
        facts.append((capital(say(rng, rng.choice(says), **slots)), asks,
                      answers, slots, value))

    asked = facts.pop() if rng.random() < 0.25 else rng.choice(facts)
    known = asked in facts
    lines = [f[0] for f in facts] + [
        say(rng, text, topic=rng.choice(names.TOPICS),
            goods=rng.choice(names.GOODS), room=rng.choice(names.ROOMS),
            city=rng.choice(names.PLACES))
        for text in rng.sample(FILLER, rng.randint(0, 2))]
    rng.shuffle(lines)

    sentence, asks, answers, slots, value = asked
    question = typed(rng, rng.choice(asks), True, **slots)
    user = framed(rng, ' '.join(lines), question)
    k = key(question, [slots[x] for x in re.findall(r'{(\w+)}', ' '.join(asks))
                       if slots[x] != value])

    if known:
        answer = capital(say(rng, rng.choice(answers), **slots, v=value))
        thoughts = found(rng, k, sentence, value)
    else:
        answer = line(rng, MISSING)
        thoughts = not_found(rng, k)

    thoughts = scan.looked(rng, lines, question, thoughts, known)

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        if not known:
            return None if NEGATIVE.search(text) \
                else f'claims what the text does not say: {text}'

        return None if states(text, value) \
            else f'"{value}" is not in: {text}'

    return task(rng, 'daily_text', 'single', [Turn(user, check, gold)], {},
                (RETAIN, CHAT))
