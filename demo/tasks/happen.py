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

        text = self.parts[part]
        first, _, rest = text.partition(' ')

        return rest if first in ('in', 'at', 'on', 'with') else text


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

    if rng.random() < 0.15:
        said = f"{p['what']} {'were' if plural else 'was'} {participle} by " \
            f"{p['who']}"
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
Do you know who {past} {what}?'''.splitlines()),
    'what': Split('''What did {who} {base}?
What was it that {who} {past}?
[Which thing|What] [has {who} {participle}|did {who} {base}][ according to this|]?
{capital_who} {past} [what|something. What]?'''.splitlines()),
    'where': Split('''Where did {who} {base} {what}?
[In which place|Where] [was it that|is it that] {who} {past} {what}?
Where {be} {what} {participle}?
Where was {who} [then|at that time|when that happened]?'''.splitlines()),
    'when': Split('''When did {who} {base} {what}?
When {be} {what} {participle}?
When was it that {who} {past} {what}?
[When did that happen|When was that], with {what}?'''.splitlines()),
    'with': Split('''With whom did {who} {base} {what}?
Who was with {who}?
Who did {who} {base} {what} with?
[Together with whom|With whom] {be} {what} {participle}?'''.splitlines()),
}

ANSWERS = {
    'who': '''{v}.
{v} did.
{v} {past} {what}.
It was {v}.''',
    'what': '''{v}.
{who} {past} {v}.
It was {v}.''',
    'where': '''{full}.
{v}.
It was {full}.
{who} {past} {what} {full}.''',
    'when': '''{full}.
{v}.
It was {full}.
{who} {past} {what} {full}.''',
    'with': '''{full}.
{v}.
It was {v}.
{who} was with {v}.''',
}


def slots(event, part):
    p = event.parts

    return dict(base=event.verb[0], past=event.verb[1],
                participle=event.verb[-1], who=p['who'], what=p['what'],
                capital_who=capital(p['who']), v=event.named(part),
                be='were' if p['what'].endswith('s')
                or p['what'][:1].isdigit() else 'was',
                full=p[part])


def question(rng, event, part):
    return capital(expand(rng, rng.choice(QUESTIONS[part])).format(
        **slots(event, part)))


def answer(rng, event, part):
    return capital(expand(rng, rng.choice(
        ANSWERS[part].splitlines())).format(**slots(event, part)))
