# Copyright (C) The nginx-dsa authors

"""Numbers, durations and dates as people state them: each function returns
(the text of the user, the argument of the call)."""

import datetime
import re

from tasks.uses import one_of
from tasks.api import same


WORDS = '''zero one two three four five six seven eight nine ten eleven twelve
thirteen fourteen fifteen sixteen seventeen eighteen nineteen'''.split()
TENS = 'twenty thirty forty fifty sixty seventy eighty ninety'.split()


def in_words(n):
    """Returns a number up to 999,999 in words."""

    if n < 20:
        return WORDS[n]

    if n < 100:
        return TENS[n // 10 - 2] + ('-' + WORDS[n % 10] if n % 10 else '')

    if n < 1000:
        rest = n % 100

        return WORDS[n // 100] + ' hundred' \
            + (' and ' + in_words(rest) if rest else '')

    rest = n % 1000

    return in_words(n // 1000) + ' thousand' \
        + (('' if rest > 99 else ' and') + ' ' + in_words(rest)
           if rest else '')


def number(rng, n):
    """Returns a number in digits, with a comma, or in words."""

    way = rng.random()

    if way < 0.3 and (n < 21 or n % 10 == 0 and n < 100 or n % 100 == 0):
        return in_words(n)

    if n >= 1000 and way < 0.6:
        return f'{n // 1000}k' if n % 1000 == 0 and way < 0.35 else f'{n:,}'

    return str(n)


def few(rng, least, most):
    """A count."""

    n = rng.randint(least, most)

    return rng.choice((str(n), in_words(n), in_words(n))), n


MINUTES = (('half an hour', 30), ('an hour', 60), ('one hour', 60),
           ('a quarter of an hour', 15), ('two hours', 120), ('1h', 60),
           ('three quarters of an hour', 45), ('an hour and a half', 90),
           ('one and a half hours', 90), ('1.5 hours', 90), ('2h', 120),
           ('ninety minutes', 90), ('90 min', 90), ('an hour and 15 minutes',
                                                    75),
           ('1h 20min', 80), ('1 h 40', 100), ('thirty minutes', 30),
           ('fifteen minutes', 15), ('twenty minutes', 20), ('2.5 hours', 150),
           ('three hours', 180), ('45 mins', 45), ('0.5 h', 30),
           ('a full hour', 60), ('forty-five minutes', 45), ('1:30 h', 90),
           ('two and a half hours', 150), ('ten minutes', 10))


def minutes(rng):
    """A duration, in minutes."""

    if rng.random() < 0.6:
        return rng.choice(MINUTES)

    n = 5 * rng.randint(2, 24)

    return one_of(rng, f'{n} minutes|{n} min|{n} mins|{n}min'), n


NIGHTS = (('one night', 1), ('a night', 1), ('a single night', 1),
          ('two nights', 2), ('a couple of nights', 2), ('a week', 7),
          ('one week', 7), ('a whole week', 7), ('seven nights', 7),
          ('two weeks', 14), ('a fortnight', 14), ('10 nights', 10),
          ('ten nights', 10), ('three weeks', 21), ('a week and one night',
                                                    8))


def nights(rng):
    """The length of a stay, in nights."""

    if rng.random() < 0.6:
        return rng.choice(NIGHTS)

    n = rng.randint(2, 9)

    return one_of(rng, f'{n} nights|{in_words(n)} nights'), n


MONTHS = '''January February March April May June July August September October
November December'''.split()
FIRST = datetime.date(2025, 1, 1).toordinal()
ISO = re.compile(r'\d{4}-\d{2}-\d{2}')


def nth(n):
    last = 'th' if n in (11, 12, 13) else {1: 'st', 2: 'nd',
                                           3: 'rd'}.get(n % 10, 'th')

    return f'{n}{last}'


def date(rng):
    """A day with its year, as YYYY-MM-DD."""

    d = datetime.date.fromordinal(FIRST + rng.randrange(2000))
    month = MONTHS[d.month - 1]
    said = [f'{d.day} {month} {d.year}', f'{month} {d.day}, {d.year}',
            f'{month} {nth(d.day)}, {d.year}', f'{d.day}. {month} {d.year}',
            f'the {nth(d.day)} of {month} {d.year}', d.isoformat(),
            f'{d.day} {month[:3]} {d.year}', f'{d:%d.%m.%Y}',
            f'{month[:3]} {d.day} {d.year}', f'{d:%Y/%m/%d}',
            f'{nth(d.day)} {month} {d.year}']

    # the order of day and month is clear only if the day is large

    if d.day > 12:
        said += [f'{d.day}/{d.month}/{d.year}', f'{d.month}/{d.day}/{d.year}']

    return rng.choice(said), d.isoformat()


def clearly(role, wanted, value):
    """Compares arguments: as same(), but a date may be written otherwise."""

    if ISO.fullmatch(str(wanted)):
        return wanted in read(str(value))

    return same(role, wanted, value)


def read(text):
    """Returns the dates that a text may mean, as YYYY-MM-DD."""

    found = set()
    plain = re.sub(r'(\d)(?:st|nd|rd|th)\b', r'\1',
                   re.sub(r'\bthe |\bof |,|\.(?= )', '', text)).strip()

    for form in ('%Y-%m-%d', '%d %B %Y', '%B %d %Y', '%d %b %Y', '%b %d %Y',
                 '%d.%m.%Y', '%Y/%m/%d', '%d/%m/%Y', '%m/%d/%Y'):
        try:
            found.add(datetime.datetime.strptime(plain, form).date()
                      .isoformat())
        except ValueError:
            pass

    return found


class Typed(str):
    """A name that a template may also write as people type in a rush:
    {city:l} is in small letters, {city:u} in capitals."""

    def __format__(self, spec):
        return {'l': str.lower, 'u': str.upper}.get(spec, str)(self)


METERS = (('half a kilometer', 500), ('a kilometer', 1000), ('1 km', 1000),
          ('500 m', 500), ('two kilometers', 2000), ('1.5 km', 1500),
          ('one and a half kilometres', 1500), ('0.5 km', 500),
          ('five hundred meters', 500), ('a hundred meters', 100),
          ('300 metres', 300), ('three kilometers', 3000), ('2.5 km', 2500),
          ('half a km', 500), ('ten kilometers', 10000), ('0.8 km', 800),
          ('two hundred metres', 200), ('a couple of kilometers', 2000))


def meters(rng):
    """A distance, in meters."""

    if rng.random() < 0.6:
        return rng.choice(METERS)

    n = rng.randint(2, 20)

    return rng.choice((
        (f'{n} km', 1000 * n), (f'{n}km', 1000 * n), (f'{50 * n} m', 50 * n),
        (f'{50 * n}m', 50 * n), (f'{in_words(n)} kilometres', 1000 * n),
        (f'{50 * n} meters', 50 * n)))
