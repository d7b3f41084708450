# Copyright (C) The nginx-dsa authors

"""Reading a short text that the user sends, and answering from it; admitting
what the text does not say."""

from tasks import names
from tasks.daily import line, states, task
from tasks.parts import Split
from tasks.phrase import capital, expand, say
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.tools_check import NEGATIVE
from tasks.times import clock, day


# a fact: its name; sentences that state it; questions; answers

FACTS = [(name, Split(s.split('|| ')), Split(q.split('|| ')),
          tuple(a.split('|| '))) for name, s, q, a in (
    ('city',
     '{name} [lives|works] in {city}.|| {name} [comes from|moved to] '
     '{city}[ last year| in May|].|| The [home|office] of {name} is in '
     '{city}.|| In {city} [lives|works] {name}[, a teacher|].',
     '[Where|In which city] does {name} [live|work]?|| Which city is {name} '
     'in?|| Where can one [find|meet] {name}?|| What is the city of {name}?',
     'In {v}.|| {name} is in {v}.|| [It is|The city is|That is] {v}.|| '
     '{v}.|| [According to the text|The text says]: {v}.'),
    ('goods',
     '{name} [sells|buys|grows|collects] {goods}.|| [Every {day}|At the '
     'market] {name} sells {goods}.|| {name} [likes|loves] {goods}[ most of '
     'all|].|| {goods} are what {name} [wants|needs].',
     'What does {name} [sell|buy|like|want|collect]?|| Which things are '
     'mentioned for {name}?|| What is {name} into?',
     '{v}.|| [It is|That is] {v}.|| {name} has to do with {v}.|| The text '
     '[names|mentions] {v}.|| [According to the text|The text says]: {v}.'),
    ('day',
     '[The {event} is on|The {event} takes place on] {day}.|| On {day} '
     'there is a {event}.|| Do not forget the {event} on {day}.|| [We|They] '
     'meet for the {event} on {day}.',
     'When is the {event}?|| On which day is the {event}?|| What day does '
     'the {event} take place?|| Which day is it for the {event}?',
     'On {v}.|| [It is|The {event} is] on {v}.|| {v}.|| The day is {v}.|| '
     '[According to the text|The text says]: {v}.'),
    ('time',
     '[The {event} begins|The {event} starts] at {time}.|| At {time} the '
     '{event} [begins|starts].|| Be there at {time} for the {event}.|| The '
     '{event} was moved to {time}.',
     'At what time [is|does] the {event}[ begin|]?|| What time is the '
     '{event}?|| When does the {event} [begin|start]?|| How late is it when '
     'the {event} begins?',
     'At {v}.|| [It is|It begins|The {event} is] at {v}.|| {v}.|| The time '
     'is {v}.|| [According to the text|The text says]: {v}.'),
    ('price',
     'The {product} costs {n} euros.|| [For|At] {n} euros you can '
     '[get|have] the {product}.|| {name} paid {n} euros for the '
     '{product}.|| The price of the {product} is {n} euros.',
     'How much [is|does] the {product}[ cost|]?|| What is the price of the '
     '{product}?|| What does one pay for the {product}?|| For how much can '
     'I have the {product}?',
     '{v} euros.|| [It costs|It is|The price is] {v} euros.|| The {product} '
     '[costs|is] {v} euros.|| {v}.|| [According to the text|The text says]: '
     '{v} euros.'),
    ('room',
     'The {product} is in the {room}.|| In the {room} [stands|is] the '
     '{product}.|| {name} put the {product} into the {room}.|| You find the '
     '{product} in the {room}.',
     'Where is the {product}?|| In which room is the {product}?|| Where do '
     'I find the {product}?|| Which room has the {product}?',
     'In the {v}.|| [It is|The {product} is] in the {v}.|| The {v}.|| Look '
     'in the {v}.|| [According to the text|The text says]: in the {v}.'),
    ('author',
     'The [book|article|report] about {topic} is by {other}.|| {other} '
     'wrote [a book|an article|a report] about {topic}.|| About {topic} '
     'there is [a report|a text] by {other}.',
     'Who wrote about {topic}?|| Who is the author of the text about '
     '{topic}?|| By whom is the work about {topic}?',
     '{v}.|| [It is by|It was|The author is] {v}.|| {v} wrote it.|| '
     '[According to the text|The text says]: {v}.'),
)]

FILLER = ('''[It was|It is] a [long|quiet|busy|sunny|cold] day.
The [weather|coffee|mood] was [good|bad|fine].
[Nobody|Everybody] knew [why|about it].
[People|The neighbors] talked about {topic}.
[Some|A few] {goods} were [left|missing|on the table].
[In the end|At first|After a while] [nothing happened|all were happy|they went home].
The {room} was [empty|full|dark|warm].
[A|The] letter came [late|early|from {city}].
[Then|Later|Before that] the phone rang.
There [is|was] no [hurry|reason to worry|more news].'''.splitlines())

ASK = Split(r'''{text}\n\n{q}
{q}\n\n{text}
[Read this|Here is a text|Text|A note]: {text}\n{q}
[Answer from the text|Use only the text]. {q}\n\n"{text}"
"{text}" {q}
I got this [mail|message|note]: "{text}" {q}
Text: {text}\nQuestion: {q}
[Please read|Look at this]:\n{text}\n\n{q}'''.splitlines())

MISSING = '''[The text|It] does not [say|mention|name] [that|it].
[That is|This is] not in the text.
I [cannot|can't] find [that|it] in the text.
[I don't know|I do not know]: the text [says nothing about it|does not say].
[Sorry|I'm sorry], the text has nothing about that.
There is no word about that in the text.
[From the text|Here] I [cannot|can't] tell.'''

FOUND = '''[The text says|In the text|I read|It says]: "{s}"
[The line is|The answer is in]: "{s}"
"{s}" [That is it.|So {v}.|]'''


def make(rng):
    cases = rng.sample(FACTS, rng.randint(2, 5))
    people = rng.sample(names.FIRST, len(cases))
    products = rng.sample(names.PRODUCTS, len(cases))
    events = rng.sample(names.EVENTS, len(cases))
    facts = []

    for i, (what, says, asks, answers) in enumerate(cases):
        slots = dict(
            name=people[i], city=rng.choice(names.PLACES),
            goods=rng.choice(names.GOODS), product=products[i],
            event=events[i], day=capital(day(rng)), time=clock(rng),
            room=rng.choice(names.ROOMS), n=rng.randrange(2, 999),
            topic=rng.choice(names.TOPICS),
            other=f'{rng.choice(names.FIRST)} {rng.choice(names.LAST)}')
        value = slots[{'author': 'other', 'price': 'n'}.get(what, what)]
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
    question = capital(say(rng, rng.choice(asks), **slots))
    user = expand(rng, rng.choice(ASK).replace('\\n', '\n')).format(
        text=' '.join(lines), q=question)

    if known:
        answer = capital(say(rng, rng.choice(answers), **slots, v=value))
        thoughts = line(rng, FOUND).format(s=sentence, v=value)
    else:
        answer = line(rng, MISSING)
        thoughts = expand(rng, '[I look through|I read] the text. '
                               '[Nothing is said about it|It is not there].')

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
