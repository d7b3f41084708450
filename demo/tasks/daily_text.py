# Copyright (C) The nginx-dsa authors

"""Reading a short text that the user sends, and answering from it; admitting
what the text does not say.  The texts that have a form, such as lists and
mails, are in text_docs.py."""

import re

from tasks import happen, names, text_docs, text_facts, text_stories
from tasks.daily import line, states, task
from tasks.daily_rough import typed
from tasks.parts import Split
from tasks.phrase import capital, expand, say
from tasks.task import CHAT, RETAIN, Step, Turn
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

ASK = Split(r'''{text}\n\n{q}
{q}\n\n{text}
[Read this|Here is a text|Text|A note]: {text}\n{q}
[Answer from the text|Use only the text]. {q}\n\n"{text}"
"{text}" {q}
I got this [mail|message|note]: "{text}" {q}
Text: {text}\nQuestion: {q}
[Please read|Look at this]:\n{text}\n\n{q}
{q} [It should be in here|It's in there somewhere]:\n{text}
A friend wrote me this:\n\n{text}\n\n{q}
My boss sent this and I don't have time to read it all:\n{text}\n{q}
---\n{text}\n---\n{q}
{text}\n{q}
Question: {q}\nText: {text}
Can you look something up for me? {q}\n\n{text}
From a letter: "{text}"\n\n{q} [Thanks!|]
[Found this on the fridge|This hangs at the door]:\n{text}\n\n{q}
"{text}"\n\n{q} [Only answer from this.|Nothing but the text counts.]
<<{text}>>\n{q}
I don't have my glasses. It says: {text}\nSo: {q}
{q} [Here's what I know|This is all I have]: {text}
Please answer with the help of these lines.\n{text}\n{q}
I copied this for you:\n\n{text}\n\nNow my question. {q}
Context:\n{text}\n\nQ: {q}
[pls read|read this pls]: {text}\n\n{q}
Listen: {text} [And now|Well]: {q}
[I wrote|We wrote] this down [yesterday|last week]: {text}\n{q}
You are given a text.\n\n{text}\n\nAnswer this: {q}
Help me understand this: "{text}" {q}
{text}\n\n[One thing I want to know|What I need]: {q}
[Short test|Reading test]!\nText: "{text}"\n{q}
Q: {q}\nA is in this text: {text}'''.splitlines())

MISSING = '''[The text|It] does not [say|mention|name] [that|it].
[That is|This is] not in the text.
I [cannot|can't] find [that|it] in the text.
[I don't know|I do not know]: the text [says nothing about it|does not say].
[Sorry|I'm sorry], the text has nothing about that.
There is no word about that in the text.
[From the text|Here] I [cannot|can't] tell.
[It isn't|That isn't] mentioned[ there| anywhere|].
The text [gives no answer|has no answer] to that.
[Nothing is said|I read nothing] about that[, sorry|].
[It is not stated.|That's not stated.] [Do you have more text?|]
[Unfortunately,|I looked, but] it does not say.
I see no [mention|trace] of that[ in there|].'''

# A thought names what is asked about before it quotes: the sentence is then the
# one that has the words which were just written.

FOUND = '''[The text says|In the text|I read|It says] of {k}: "{s}"
[I look for|Asked is about|I search for] {k}: "{s}"
{k}? [Look:|Here:|That is in:|] "{s}"
[The part|The sentence] with {k} [is|says|matters]: "{s}"
{k} [is in|I find in]: "{s}" [That is it.|So {v}.|]'''

FOUND_ALONE = '''[The text says|In the text|I read|It says]: "{s}"
[The line is|The answer is in]: "{s}"
[Look:|Here:] "{s}"
[The part that matters|What matters]: "{s}"
"{s}" [That is it.|So {v}.|]'''

NOT_FOUND = '''[I look for|I search for] {k} in [the text|all lines]. [Nothing is said about it|It is not there|There is no such line].
{k}? [Nothing is said about that|It is not there|There is no such line].'''

NOT_THERE = '''[I look through|I read|I go through] [the text|all lines]. [Nothing is said about it|It is not there|There is no such line].'''


def key(question, parts):
    """Returns the longest of these words that a question has, or if it has
    none of them, the first."""

    there = [p for p in parts if p.lower() in question.lower()]

    return max(there, key=len) if there else parts[0]


def found(rng, k, sentence, v):
    """Returns the thought of who finds k, which may be '', in a sentence."""

    return line(rng, FOUND if k else FOUND_ALONE).format(k=k, s=sentence, v=v)


def not_found(rng, k):
    return line(rng, NOT_FOUND if k else NOT_THERE).format(k=k)


def framed(rng, text, question):
    """Returns a message with a text and a question, which has a mark at its
    end unless the message ends with it."""

    form = '{text} {q}' if rng.random() < 0.15 \
        else expand(rng, rng.choice(ASK).replace('\\n', '\n'))

    if not form.endswith('{q}') and question[-1] not in '.?!':
        question += '?'

    return form.format(text=text, q=question)


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
        thoughts = found(rng, str(asked.x), asked.seen, asked.v or 'that') \
            .replace(f'"{asked.seen}"', asked.seen)

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
    if rng.random() < 0.34:
        return task(rng, 'daily_text', 'single', [text_stories.turn(rng)], {},
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
