# Copyright (C) The nginx-dsa authors

"""The values of a request for a tool of any kind (daily_open.py), as people
write them: with the name of the parameter ("priority: high"), or without it,
where a unit or a preposition shows what is meant ("for 45 minutes")."""

from tasks import names, spoken
from tasks.open_words import Trait
from tasks.parts import Split
from tasks.phrase import expand


NAMED = '''{words} {v}
{words}: {v}
the {words} is {v}
{words} = {v}
with {v} as the {words}
with the {words} {v}
and {v} for the {words}'''

NAMED_LIST = '''{words} {v}
{words}: {v}
with {v} as {words}
with the {words} {v}
and as {words} {v}'''

NAMED_UNIT = '''{words} {v}
a {words} of {v}
{words}: {v}
the {words} is {v}
with a {words} of {v}
and the {words} should be {v}'''

# without the name, by the unit or the name of the trait; parameters of one row
# could be taken for each other, so only one of a tool is written like this

SHOWN = tuple((tuple(f.strip() for f in row.partition('=')[0].split(',')),
               Split(f.strip() for f in row.partition('=')[2].split('/')))
              for row in '''
euros = for {v} euros / at {v} euros / {v} euros / {v} EUR / it's {v} euros
cm = {v} cm / it has {v} cm / {v} centimeters
kg = {v} kg / it weighs {v} kg / weighing {v} kilos
years = {v} years old / it is {v} years old / aged {v}
pieces = {v} of them / {v} pieces / {v} times / make it {v}
people = for {v} people / {v} people / for a party of {v} / there are {v} of us
minutes = for {v} minutes / it takes {v} min / {v} minutes / {v} min long
km/h = at {v} km/h / {v} km/h / going {v} km/h
degrees = at {v} degrees / to {v} degrees / {v} degrees / {v} °C
% = {v} percent / {v}% / at {v} % / by {v} percent
points = {v} points / it got {v} points / with {v} points
km = {v} km / {v} km away / over {v} kilometers
watts = {v} watts / {v} W / it needs {v} watts
stars = {v} stars / with {v} stars / I give {v} stars
mm = {v} mm / {v} mm thick
tons = {v} tons / {v} t
due date, end date = by {v} / until {v} / till {v} / not after {v}
start date = from {v} on / as of {v} / starting {v} / beginning {v}
start, appointment, end = {v} / it is {v}
opening time, closing time, departure time = at {v} / {v}
day = on {v} / {v} / this {v} / next {v}
days = on {v} / always on {v} / every {v}
month, months = in {v} / this {v}
time = at {v} / {v} sharp / around {v}
city, birthplace = in {v} / over in {v} / down in {v}
origin = from {v} / starting in {v} / leaving {v}
destination = to {v} / bound for {v} / going to {v}
address = at {v} / it's at {v}
email = {v} / use {v} / reach me at {v}
color = in {v} / {v} of course / make it {v}
priority, urgency = {v} prio / {v} priority / it has {v} priority
format = as {v} / in {v} form / as a {v}
topic, keyword = about {v} / it's about {v} / on {v}
room = in the {v} / it is in the {v} / for the {v}
floor = on floor {v} / up on floor {v}
page = on page {v} / see page {v}
year = from {v} / of {v} / in {v}
author, reviewer = by {v} / written by {v}
owner, manager = it belongs to {v} / owned by {v} / {v}'s
members, guests = with {v} / together with {v} / {v} will come
tags, keywords = tagged {v} / under {v}
contents = with {v} inside / full of {v} / there are {v} in it
currency = in {v} / paid in {v}
folder = into {v} / in the folder {v} / under {v}
latitude, longitude = {v}
'''.strip().splitlines())

ROWS = {key: (i, ways) for i, (keys, ways) in enumerate(SHOWN)
        for key in keys}


def row(trait):
    return ROWS.get(trait.unit or trait.words, (None, None))


def detail(rng, trait, said, traits):
    """Returns how a request states that a trait has the value that is said
    like this; traits are all of the tool."""

    at, ways = row(trait)
    rivals = [t for t in traits if t is not trait and row(t)[0] == at]

    if ways and not rivals and rng.random() < 0.6:
        return rng.choice(ways).format(v=said)

    unit = '' if trait.unit in ('', '%') else ' ' + trait.unit
    named = NAMED_LIST if trait.kind == 'array' else \
        NAMED_UNIT if trait.unit else NAMED

    return rng.choice(named.splitlines()).format(
        words=trait.words, v=said + ('%' if trait.unit == '%' else unit))


def draw(rng, trait):
    """Returns a value as people write it, and as a program does."""

    if trait.form == 'date':
        return spoken.date(rng)

    if trait.form == 'time':
        return spoken.time(rng)

    if trait.form == 'moment':
        (day, date), (hour, time) = spoken.date(rng), spoken.time(rng)

        return expand(rng, f'{day} at {hour}|{day}, {hour}'
                      f'|{hour} on {day}'.join('[]')), f'{date}T{time}'

    v = rng.choice(trait.choices) if trait.choices else trait.make(rng)

    if isinstance(v, list):
        return spoken.listed(rng, v), v

    if trait.form == 'compound':
        return ' '.join(parted(v)).lower(), v

    if trait.kind == 'integer' and 2 <= v < 100 and trait.unit != '%' \
            and rng.random() < (0.3 if v < 13 else 0.1):
        return spoken.in_words(v), v

    return str(v), v


# ------------------------------------------------- traits that are not words


TIMES = Split((Trait('start', 'string', None, form='moment'),
               Trait('appointment', 'string', None, form='moment'),
               Trait('end', 'string', None, form='moment'),
               Trait('opening time', 'string', None, form='time'),
               Trait('closing time', 'string', None, form='time'),
               Trait('departure time', 'string', None, form='time')))

# none of them is the name of another trait

CHOICE = Split('scheme zone area target plan kind type layer source sector lane '
               'stage track region group route'.split())


def compound(rng):
    """Returns a trait with a choice of names that are written like those of a
    program."""

    style = rng.choice((str.lower, str.lower, str.upper, str.title))
    gap = rng.choice(('_', '_', '-', ''))

    if gap == '':
        style = str.title

    made, n = [], rng.randint(2, 5)

    while len(made) < n:
        name = gap.join(map(style, (rng.choice(names.ADJECTIVES),
                                    rng.choice(names.NOUNS))))
        if name.isascii() and ' ' not in name and name not in made:
            made.append(name)

    return Trait(rng.choice(CHOICE), 'string', None, choices=tuple(made),
                 form='compound')


def parted(name):
    """Returns the words of a name of a program."""

    out = ''

    for at, letter in enumerate(name):
        out += ' ' if letter in '_-' else \
            ' ' + letter if letter.isupper() and at \
            and not name[at - 1].isupper() else letter

    return out.split()
