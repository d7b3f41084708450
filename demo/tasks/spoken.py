# Copyright (C) The nginx-dsa authors

"""Times, dates, lengths and numbers as people say them, with the form that a
schema wants: "half past seven in the evening" is 19:30.

Each function returns the text and the value.  A case has them as x_said and
x, where x is the role of the argument.
"""

import datetime

from tasks import names
from tasks.parts import Split
from tasks.uses import one_of


ONES = '''zero one two three four five six seven eight nine ten eleven twelve
thirteen fourteen fifteen sixteen seventeen eighteen nineteen'''.split()
TENS = 'twenty thirty forty fifty sixty seventy eighty ninety'.split()
ORDINALS = '''first second third fourth fifth sixth seventh eighth ninth tenth
eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth
eighteenth nineteenth twentieth twenty-first twenty-second twenty-third
twenty-fourth twenty-fifth twenty-sixth twenty-seventh twenty-eighth
twenty-ninth thirtieth'''.split()
MONTHS = '''January February March April May June July August September
October November December'''.split()


def in_words(n):
    """Returns a number below 100 in words."""

    if n < 20:
        return ONES[n]

    ten = TENS[n // 10 - 2]

    return f'{ten}-{ONES[n % 10]}' if n % 10 else ten


def part_of_day(hour):
    return 'in the morning' if hour < 12 else 'in the afternoon' \
        if hour < 18 else 'in the evening' if hour < 22 else 'at night'


def time(rng):
    """Returns a time of the day and its HH:MM."""

    hour, minute = rng.randrange(5, 24), rng.choice((0, 0, 15, 30, 30, 45))
    clock, half = (hour - 1) % 12 + 1, 'am' if hour < 12 else 'pm'
    value = f'{hour:02}:{minute:02}'
    way = rng.random()

    if way < 0.25:
        return value, value

    if way < 0.55:
        return one_of(rng, f'{clock}:{minute:02} {half}'
                           f'|{clock}:{minute:02}{half}'
                           f'|{clock}.{minute:02} {half}' if minute
                           else f'{clock} {half}|{clock}{half}'
                                f'|{clock}:00 {half}'), value

    if hour == 12 and minute == 0:
        return 'noon', value

    word, after = ONES[clock], ONES[clock % 12 + 1]
    day = part_of_day(hour)

    # a quarter to twelve is before noon, though twelve is after it

    if minute == 0:
        return one_of(rng, f"{word} o'clock {day}|{word} {half}"
                           f'|{clock} {day}|{word} {day}'), value

    if minute == 45:
        return one_of(rng, f'quarter to {after} {day}'
                           f'|a quarter to {after} {day}'
                           f'|{word} forty-five {half}'), value

    if minute == 30:
        return one_of(rng, f'half past {word} {day}|{word} thirty {half}'
                           f'|half past {clock} {day}'), value

    return one_of(rng, f'quarter past {word} {day}|{word} fifteen {half}'
                       f'|a quarter past {clock} {day}'), value


def ordinal(n):
    end = 'th' if 10 < n < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(
        n % 10, 'th')

    return f'{n}{end}'


def date(rng):
    """Returns a date with its year, and its YYYY-MM-DD."""

    when = datetime.date(rng.randrange(2025, 2031), rng.randrange(1, 13),
                         rng.randrange(1, 29))
    value, year, d = when.isoformat(), when.year, when.day
    month = MONTHS[when.month - 1]
    way = rng.random()

    if way < 0.2:
        return value, value

    if way < 0.3:
        return f'the {ORDINALS[d - 1]} of {month} {year}', value

    return one_of(rng, f'{d} {month} {year}|{month} {d}, {year}'
                       f'|{month} {ordinal(d)}, {year}|{d} {month[:3]} {year}'
                       f'|the {ordinal(d)} of {month} {year}'
                       f'|{month[:3]} {d} {year}|{ordinal(d)} {month} {year}'
                       ), value


LENGTHS = Split((
    ('half an hour', 30), ('a quarter of an hour', 15), ('an hour', 60),
    ('three quarters of an hour', 45), ('an hour and a half', 90),
    ('one and a half hours', 90), ('two hours', 120), ('1 hour', 60),
    ('2 hours', 120), ('two and a half hours', 150), ('1.5 hours', 90),
    ('three hours', 180), ('3 hours', 180), ('an hour and ten minutes', 70),
    ('an hour and twenty minutes', 80), ('1 h 15 min', 75), ('1h30', 90),
    ('1 h 20 min', 80), ('an hour and a quarter', 75), ('2h', 120),
    ('1 hour 40 minutes', 100), ('half an hour and five minutes', 35),
    ('2 h 10 min', 130), ('1 hour and 5 minutes', 65), ('0.5 h', 30),
    ('half hour', 30), ('1 h 45 min', 105), ('four hours', 240)))


def length(rng):
    """Returns a length of time, and its minutes."""

    n = rng.randrange(2, 100)
    way = rng.random()

    if way < 0.4:
        return one_of(rng, f'{n} minutes|{n} min|{n} mins|{n} minutes'), n

    if way < 0.6:
        return f'{in_words(n)} minutes', n

    said, minutes = rng.choice(LENGTHS)

    return said, minutes


def whole(rng, low, high):
    """Returns a whole number in digits or words, and its value."""

    n = rng.randrange(low, high)
    way = rng.random()

    if n < 100 and way < 0.35:
        return in_words(n), n

    if way < 0.45 and low <= 6 and high > 24:
        return one_of(rng, 'a dozen') if way < 0.39 else one_of(
            rng, 'two dozen') if way < 0.42 else 'half a dozen', \
            12 if way < 0.39 else 24 if way < 0.42 else 6

    return (f'{n:,}' if n > 999 and way > 0.7 else str(n)), n


def halves(rng, low, high):
    """Returns a number that may have a half, and its value."""

    n = rng.randrange(low, high)
    way = rng.random()

    if way < 0.3:
        return str(n), n

    if way < 0.55:
        return f'{n}.5', n + 0.5

    if way < 0.8:
        return f'{in_words(n)} and a half', n + 0.5

    return in_words(n), n


def listed(rng, words):
    """Returns words as people list them."""

    if len(words) == 1:
        return words[0]

    way = rng.random()

    if way < 0.25:
        return ', '.join(words)

    if way < 0.4:
        return ' and '.join(words)

    last = ', and ' if way < 0.5 and len(words) > 2 else ' and '

    return ', '.join(words[:-1]) + last + words[-1]


def bars(text):
    """Returns the Split of the alternatives between bars outside of brackets,
    so that some of them are held out."""

    found, depth = [''], 0

    for c in text:
        depth += (c == '[') - (c == ']')

        if c == '|' and depth == 0:
            found.append('')
        else:
            found[-1] += c

    return Split(found)


def aside(rng):
    """Returns slots of what a request mentions without need."""

    return dict(x_name=rng.choice(names.FIRST), x_city=rng.choice(
        names.PLACES), x_thing=rng.choice(names.PRODUCTS), x_goods=rng.choice(
            names.GOODS), x_room=rng.choice(names.ROOMS))
