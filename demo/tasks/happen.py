# Copyright (C) The nginx-dsa authors

"""Sentences about who did what to which thing, where, when and with whom, and
questions about each part.  They are composed, so that there are more of them
than a model can remember."""

from dataclasses import dataclass

from tasks import names
from tasks.parts import Split
from tasks.phrase import capital, expand
from tasks.times import clock


# verbs: base, past and participle, if it differs from the past

VERBS = Split(tuple(v.split()) for v in '''admire admired, borrow borrowed,
bring brought, build built, buy bought, carry carried, catch caught, check
checked, clean cleaned, collect collected, copy copied, count counted, cover
covered, decorate decorated, deliver delivered, describe described, design
designed, destroy destroyed, discover discovered, donate donated, draw drew
drawn, drop dropped, exchange exchanged, examine examined, fetch fetched, film
filmed, find found, fix fixed, forget forgot forgotten, get got, give gave
given, guard guarded, hide hid hidden, inspect inspected, install installed,
keep kept, lend lent, lift lifted, lose lost, make made, mark marked, measure
measured, mention mentioned, mix mixed, move moved, need needed, notice noticed,
open opened, order ordered, pack packed, paint painted, photograph photographed,
polish polished, present presented, promise promised, push pushed, receive
received, recommend recommended, remove removed, rent rented, repair repaired,
replace replaced, return returned, save saved, scan scanned, see saw seen, sell
sold, send sent, share shared, show showed shown, sketch sketched, sort sorted,
steal stole stolen, store stored, study studied, take took taken, test tested,
throw threw thrown, touch touched, try tried, unpack unpacked, use used, wash
washed, watch watched, weigh weighed, wrap wrapped, write wrote written'''
              .split(','))

WHO = names.listed('''accountant, architect, aunt, baker, barber, boss, brother,
builder, butcher, captain, carpenter, caretaker, cashier, coach, colleague,
cook, cousin, daughter, dentist, doctor, driver, editor, electrician, engineer,
farmer, father, fisherman, florist, friend, gardener, grandfather, grandmother,
guest, guide, hairdresser, intern, janitor, journalist, judge, landlady,
landlord, lawyer, librarian, manager, mayor, mechanic, mother, musician,
neighbor, nephew, niece, nurse, officer, painter, pharmacist, photographer,
pilot, plumber, postman, professor, sailor, scientist, secretary, singer,
sister, son, student, tailor, teacher, tenant, tourist, trainer, uncle, vet,
visitor, waiter, writer''')

SPOTS = names.listed('''airport, bakery, bank, beach, bus stop, cafe, camp site,
canal, castle, cathedral, cinema, clinic, corner shop, farm, ferry, fire
station, flea market, forest, gallery, gas station, harbor, hill, hospital,
hotel, lake, laundry, library, lighthouse, mall, market, mill, monastery,
museum, office, opera, park, pharmacy, pier, pool, post office, pub,
restaurant, river, school, stadium, station, studio, temple, theater, town hall,
university, village, vineyard, warehouse, zoo''')

DAYS = 'Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday'
MONTHS = Split('''January February March April May June July August September
October November December'''.split())


def person(rng):
    way = rng.random()

    if way < 0.5:
        return rng.choice(names.FIRST)

    if way < 0.7:
        return f'{rng.choice(names.FIRST)} {rng.choice(names.LAST)}'

    if way < 0.8:
        return expand(rng, '[Mr|Mrs|Ms|Dr]') + ' ' \
            + rng.choice(names.LAST)

    return expand(rng, '[the|the|my|our]') + ' ' + rng.choice(WHO)


def thing(rng):
    way = rng.random()

    if way < 0.4:
        return expand(rng, '[the|the|a new|an old|my|the last]') + ' ' \
            + rng.choice(names.PRODUCTS)

    if way < 0.6:
        return (expand(rng, '[|the|some|many]') + ' '
                + rng.choice(names.GOODS)).lstrip()

    if way < 0.8:
        return f'{rng.randrange(2, 400)} {rng.choice(names.GOODS)}'

    return f'the {rng.choice(names.ADJECTIVES)} {rng.choice(names.NOUNS)}'


def where(rng):
    way = rng.random()

    if way < 0.5:
        return 'in ' + rng.choice(names.PLACES)

    return 'at the ' + rng.choice(SPOTS) if way < 0.8 \
        else 'in the ' + rng.choice(names.ROOMS)


def when(rng):
    way = rng.random()

    if way < 0.3:
        return 'at ' + clock(rng)

    if way < 0.6:
        return expand(rng, f'[[on|on|last] [{DAYS}]|yesterday|last week]')

    if way < 0.8:
        return f'in {rng.choice(MONTHS)}'

    return f'on {rng.choice(MONTHS)} {rng.randrange(1, 31)}' if way < 0.9 \
        else f'in {rng.randrange(1890, 2030)}'


@dataclass
class Event:
    """who did what; parts: 'who', 'what', 'where', 'when', 'with', those that
    its sentence has."""
    verb: tuple
    parts: dict

    def named(self, part):
        """Returns a part without the preposition before it."""

        if part == 'how many':
            return self.counted()[0]

        text = self.parts.get(part, '')
        first, _, rest = text.partition(' ')

        return rest if first in ('in', 'at', 'on', 'with') else text


    def counted(self):
        """Returns the number and the goods if things were counted."""

        number, _, goods = self.parts['what'].partition(' ')

        return (number, goods) if number.isdigit() else ('', '')


def event(rng, verb=None):
    """Returns an Event with some of its parts."""

    parts = dict(who=person(rng), what=thing(rng))

    for part, make, chance in (('where', where, 0.6), ('when', when, 0.6),
                               ('with', lambda r: 'with ' + person(r), 0.2)):
        if rng.random() < chance:
            parts[part] = make(rng)

    return Event(verb or rng.choice(VERBS), parts)


def sentence(rng, event):
    """Returns the sentence that states an event, with all of its parts."""

    p, past, participle = event.parts, event.verb[1], event.verb[-1]
    rest = [p[x] for x in ('with', 'where', 'when') if x in p]

    if rng.random() < 0.3:
        rng.shuffle(rest)

    front = rest.pop() if rest and rng.random() < 0.3 else ''
    plural = p['what'][:1].isdigit() or p['what'].endswith('s')

    way = rng.random()

    if way < 0.15:
        said = f"{p['what']} {'were' if plural else 'was'} {participle} by " \
            f"{p['who']}"
    elif way < 0.2:
        said = f"it was {p['who']} who {past} {p['what']}"
    elif way < 0.25 and not front:
        said = expand(rng, '[I heard that|they say that|as far as I know,|'
                           'it seems that|I know that]') \
            + f" {p['who']} {past} {p['what']}"
    else:
        said = f"{p['who']} {past} {p['what']}"

    return capital(' '.join(
        ([front + (',' if rng.random() < 0.6 else '')] if front else [])
        + [said] + rest)) + '.'


def note(rng):
    """Returns a sentence as people write it to each other."""

    said = sentence(rng, event(rng)).rstrip('.')

    return said if rng.random() < 0.7 else said[0].lower() + said[1:]


QUESTIONS = {
    'who': Split('''Who {past} {what}?
Who was it that {past} {what}?
Which person {past} {what}?
[By whom|Who] {be} {what} {participle}[ by|]?
Do you know who {past} {what}?
who {past} {what}
Whose work was it? I mean, who {past} {what}?
{capital_what}: who {past} that?
What is the name of the person who {past} {what}?
Somebody {past} {what}. Who?
Tell me who {past} {what}.
I'd like to know who {past} {what}.
Can you see who {past} {what}?
{capital_what} {be} {participle} by whom?
Which of the people {past} {what}?
And who {past} {what}?
Of all these, who {past} {what}?
Someone {past} {what}, but who was that?
The one who {past} {what}, who is it?
Name whoever {past} {what}.
It says that {what} {be} {participle}. Who did that?'''.splitlines()),
    'what': Split('''What did {who} {base}?
What was it that {who} {past}?
[Which thing|What] [has {who} {participle}|did {who} {base}][ according to this|]?
{capital_who} {past} [what|something. What]?
what has {who} {participle}
Tell me what {who} {past}.
Which thing was {participle} by {who}?
I wonder what {who} {past}.
Do you see what {who} {past}?
What was {participle} by {who}?
{capital_who} {past} something. What was that?
And what did {who} {base}?
Name the thing that {who} {past}.
{capital_who}, what did that one {base}?
What is it that was {participle} by {who}?
Can you tell what {who} {past}?
The thing that {who} {past}, what is it?
I need to know what {who} {past}.'''.splitlines()),
    'where': Split('''Where did {who} {base} {what}?
[In which place|Where] [was it that|is it that] {who} {past} {what}?
Where {be} {what} {participle}?
Where was {who} [then|at that time|when that happened]?
where did that happen, with {who} and {what}
At which place {be} {what} {participle}?
{capital_who} {past} {what}, but where?
Tell me where {who} {past} {what}.
Do you know the place where {who} {past} {what}?
What is the place where {what} {be} {participle}?
And where did {who} {base} {what}?
The place where {who} {past} {what}, please.
I'd like to know where {what} {be} {participle}.
Can you see where {who} {past} {what}?
{capital_what} {be} {participle} where?
On the map, where did {who} {base} {what}?
In what place did {who} {base} {what}?
Which place is named for {who} and {what}?'''.splitlines()),
    'when': Split('''When did {who} {base} {what}?
When {be} {what} {participle}?
When was it that {who} {past} {what}?
[When did that happen|When was that], with {what}?
when has {who} {participle} {what}
{capital_who} {past} {what}, but when?
Tell me when {who} {past} {what}.
Do you know when {what} {be} {participle}?
What does it say about the time when {who} {past} {what}?
At what time or on what day did {who} {base} {what}?
And when did {who} {base} {what}?
I'd like to know when {what} {be} {participle}.
Can you see when {who} {past} {what}?
{capital_what} {be} {participle} when?
The time when {who} {past} {what}, please.
How long ago or when did {who} {base} {what}?
For my notes: when did {who} {base} {what}?
When exactly did {who} {base} {what}?'''.splitlines()),
    'with': Split('''With whom did {who} {base} {what}?
Who was with {who}?
Who did {who} {base} {what} with?
[Together with whom|With whom] {be} {what} {participle}?
who helped {who}, I mean who was there, too
{capital_who} was not alone. Who was there, too?
Tell me with whom {who} {past} {what}.
Who else was there when {who} {past} {what}?
And who was with {who}?
In whose company did {who} {base} {what}?
Do you see with whom {who} {past} {what}?
Name the person who was with {who}.
{capital_who} {past} {what} with somebody. With whom?
Who came along with {who}?'''.splitlines()),
    'how many': Split('''How many {goods} did {who} {base}?
What number of {goods} did {who} {base}?
how many {goods} were {participle} by {who}
{capital_who} {past} {goods}. How many?
How many {goods} has {who} {participle}?
Tell me how many {goods} {who} {past}.
How many were the {goods} that {who} {past}?
I'd like to know how many {goods} {who} {past}.
And how many {goods} did {who} {base}?
The {goods} that {who} {past}, how many are they?
Count the {goods} that {who} {past}.
Do you see the number of {goods} that {who} {past}?'''.splitlines()),
}

# questions for yes or no; {asked} did it, or somebody else

YES_NO = Split('''Did {asked} {base} {what}?
Was it {asked} who {past} {what}?
{capital_asked} {past} {what}, right?
Is it true that {asked} {past} {what}?
{capital_what} {be} {participle} by {asked}, is that so?
I think it was {asked} who {past} {what}. Am I right?
did {asked} {base} {what}
Does it say that {asked} {past} {what}?
Would you say that {asked} {past} {what}?
So {asked} {past} {what}?
Has {asked} {participle} {what}?
Can it be that {asked} {past} {what}?
Am I right that {asked} {past} {what}?
They say that {asked} {past} {what}. Is it correct?'''.splitlines())

YES = '''Yes.
Yes, {who} did.
Yes, {who} {past} {what}.
Yes, [that is right|that is so|it was {who}].
Yes, [according to the text|the text says so].'''

NO = '''No, it was {who}.
No, {who} did.
No, {who} {past} {what}.
No, [not {asked}|that is wrong]: it was {who}.
No, [the text says|it says that it was] {who}.'''

ANSWERS = {
    'who': '''{v}.
{v} did.
{v} {past} {what}.
It was {v}.
[That was|The text says that it was] {v}.
[The person is|The one who did it is] {v}.
It was done by {v}.''',
    'what': '''{v}.
{who} {past} {v}.
It was {v}.
[That was|The text says] {v}.
[According to the text|It says]: {v}.
[The thing is|The text names] {v}.''',
    'where': '''{full}.
{v}.
It was {full}.
{who} {past} {what} {full}.
[That was|It happened|That happened] {full}.
[According to the text|The text says]: {full}.
The place is {v}.''',
    'when': '''{full}.
{v}.
It was {full}.
{who} {past} {what} {full}.
[That was|It happened|That happened] {full}.
[According to the text|The text says]: {full}.''',
    'with': '''{full}.
{v}.
It was {v}.
{who} was with {v}.
[That was|The text names] {v}.
[Together with|In the company of] {v}.''',
    'how many': '''{v}.
{v} {goods}.
[It was|That was|There were] {v}.
{who} {past} {v}.
[The number is|I read] {v}.
[According to the text|The text says]: {v}.''',
}


def slots(event, part):
    p = event.parts

    return dict(base=event.verb[0], past=event.verb[1],
                participle=event.verb[-1], who=p['who'], what=p['what'],
                capital_who=capital(p['who']), goods=event.counted()[1],
                capital_what=capital(p['what']), v=event.named(part),
                be='were' if p['what'].endswith('s')
                or p['what'][:1].isdigit() else 'was',
                full=p.get(part, ''))


def question(rng, event, part):
    return capital(expand(rng, rng.choice(QUESTIONS[part])).format(
        **slots(event, part)))


def answer(rng, event, part):
    return capital(expand(rng, rng.choice(
        ANSWERS[part].splitlines())).format(**slots(event, part)))


def doubt(rng, event, asked):
    """Returns (question, answer): whether a person did it, for yes or no."""

    given = dict(slots(event, 'who'), asked=asked,
                 capital_asked=capital(asked))
    said = YES if asked == event.parts['who'] else NO

    return (capital(rng.choice(YES_NO).format(**given)),
            expand(rng, rng.choice(said.splitlines())).format(**given))


BOTH = Split('''Who {past} {what}?
Which people {past} {what}?
{capital_what}: who {past} that? Name all.
Name everyone who {past} {what}.
Who are the two that {past} {what}?
Tell me all who {past} {what}.
who all {past} {what}
There was more than one who {past} {what}. Who?
Which two people {past} {what}?
By whom {be} {what} {participle}? There are two.'''.splitlines())

BOTH_DID = '''{a} and {b}.
{a} and {b} did.
[It was|That was|The text names] {a} and {b}.
[Both|Two people]: {a} and {b}.
[First {a}, and then {b}|{a}, and {b} as well].
{a} {past} {what}, and so did {b}.'''


def both(rng, event, other):
    """Returns (question, answer): who did what two people did."""

    given = dict(slots(event, 'who'), a=event.parts['who'],
                 b=other.parts['who'])

    return (capital(rng.choice(BOTH).format(**given)), capital(expand(
        rng, rng.choice(BOTH_DID.splitlines())).format(**given)))
