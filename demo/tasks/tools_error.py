# Copyright (C) The nginx-dsa authors

"""A call fails.  Its error lists the names that would have been valid.  If one
of them is meant, the call is made again with it; otherwise the answer says
that there is no such name."""

from tasks.parts import part
from tasks.task import CHAT, DISCARD, RETAIN, Step, Task, Turn
from tasks.tools_box import Kit
from tasks.tools_check import (no_check, number_check, says_words, sent,
                               words_check)
from tasks.tools_single import (draw_conversion, person_answer, said_of,
                                weather_answer)
from tasks.tools_text import ANSWER, Notes, ask, chosen, listed
from tasks.tools_units import UNITS
from tasks.tools_world import WEEKDAYS, World
from tasks.words import COLORS, PEOPLE, THINGS, cities


def make(rng):
    return rng.choice(KINDS)(rng, World(rng))


def corrected(kit, user, wanted, call, wrong, right, how, answer, check):
    """Returns the Task in which a call is made twice.

    wanted    the purpose, in the reasoning
    call      name -> (role, values)
    wrong     the name in the user's text
    right     the name that exists
    how       the reason why it is that one, in the reasoning
    answer    the second result -> the answer
    """
    def gold(mode):
        notes = Notes(mode, wanted, user)
        role, values = call(wrong)
        first = kit.call(role, *values)
        yield Step(notes.think(chosen(kit, first)), calls=[first])
        role, values = call(right)
        results = yield Step(
            notes.think(f'I try {right}.',
                        f'{wrong} is unknown. {how}.'),
            calls=[kit.call(role, *values)])
        yield Step(notes.think(ANSWER, f'{right} is known.'),
                   answer(results[0]))

    return task(kit, user, gold, check)


def failed(kit, user, wanted, call, why, answer, check):
    """Returns the Task in which a call fails and is not repeated.

    call      (role, values)
    why       in the reasoning
    answer    the error's text -> the answer
    """
    def gold(mode):
        notes = Notes(mode, wanted, user)
        role, values = call
        first = kit.call(role, *values)
        results = yield Step(notes.think(chosen(kit, first)), calls=[first])
        yield Step(notes.think(ANSWER, why), answer(results[0]['error']))

    return task(kit, user, gold, check)


def task(kit, user, gold, check):
    return Task('tools_error', 'multi', [Turn(user, check, gold)],
                (RETAIN, DISCARD, CHAT), tools=kit.tools)


# names

def misspell(rng, name):
    """Returns the name with a wrong letter, but not in its beginning."""

    while True:
        i = rng.randrange(2, len(name))
        kind = rng.randrange(3)

        if kind == 0:
            wrong = name[:i] + name[i] + name[i:]
        elif kind == 1:
            wrong = name[:i] + name[i + 1:]
        else:
            wrong = name[:i] + rng.choice('aeioulnrst') + name[i + 1:]

        if wrong != name and len(wrong) > 2:
            return wrong


def draw_typo(rng, names):
    """Returns one of names and its misspelled form, or None and a name that is
    not similar to any.  Names are similar if they begin with the same two
    letters."""

    alike = [n for n in names if sum(m[:2] == n[:2] for m in names) == 1]
    right = rng.choice(alike + [None] * (len(alike) // 2 + 1))

    if right is not None:
        return right, misspell(rng, right)

    spare = part(rng, PEOPLE) if names[0] in PEOPLE else cities(rng, 30)
    unlike = [n for n in spare if all(m[:2] != n[:2] for m in names)]

    return None, rng.choice(unlike)


def likeness(wrong, names, right):
    """Returns the thought that compares the beginnings of names with that of
    the wrong one, up to the right one, or of all if right is None.  It has no
    full stop at its end."""

    said = [f'It begins with {wrong[:2]}.']

    for name in names:
        same = name == right
        said.append(f'{name}: {name[:2]}, {"yes" if same else "no"}.')
        if same:
            break

    return ' '.join(said)[:-1]


def names_in(error):
    """Returns the names in an error's list."""

    return error.partition('; known: ')[2].split(', ')


def not_found(what, name):
    return lambda error: (f'I do not know the {what} {name}. '
                          f'Known are {listed(names_in(error))}.')


def weather(rng, world):
    """The user misspells a city, or it is unknown."""

    kit = Kit(rng, world, ('get_weather',), (0, 4))
    right, wrong = draw_typo(rng, world.cities)
    day = rng.choice(world.days)
    what = rng.choice(('temperature', 'wind'))
    user = ask(rng, f'What is the {what} in {wrong} on {day}?',
               f'Tell me the {what} in {wrong} on {day}.',
               f'Which {what} will {wrong} have on {day}?',
               f'On {day}, what {what} does {wrong} expect?',
               f'Give me the {what} for {wrong} on {day}.')
    wanted = f'the {what} in {wrong} on {day}'

    if right is None:
        return failed(kit, user, wanted, ('get_weather', (wrong, day)),
                      f'{wrong} is unknown. '
                      f'{likeness(wrong, world.cities, right)}.',
                      not_found('city', wrong), no_check(kit, wrong))

    return corrected(
        kit, user, wanted, lambda city: ('get_weather', (city, day)),
        wrong, right, likeness(wrong, world.cities, right),
        lambda r: weather_answer(what, right, day, r),
        number_check(kit, world.weather[right][day][what], user))


def days(rng, world):
    """The user asks for a day without a forecast."""

    kit = Kit(rng, world, ('get_weather',), (0, 4))
    city = rng.choice(world.cities)

    if world.dated:
        year, month, day = world.days[0].split('-')
        day = f'{int(year) + 1}-{month}-{day}'
    else:
        day = rng.choice([d for d in WEEKDAYS if d not in world.days])

    what = rng.choice(('temperature', 'sky', 'wind', 'weather'))
    user = ask(rng, f'What will the {what} be in {city} on {day}?',
               f'How will the {what} be in {city} on {day}?',
               f'Tell me the {what} in {city} on {day}.',
               f'What is the {what} in {city} on {day}?',
               f'I need the {what} in {city} on {day}.')

    return failed(kit, user, f'the {what} in {city} on {day}',
                  ('get_weather', (city, day)),
                  f'{day} has no forecast.',
                  lambda error: f'I have no forecast for {day}. Known are '
                                f'{listed(names_in(error))}.',
                  no_check(kit, day))


def people(rng, world):
    """The user misspells a person, or the person is unknown."""

    kit = Kit(rng, world, ('find_person',), (0, 4))
    right, wrong = draw_typo(rng, list(world.people))
    what, asked = rng.choice((('phone', 'phone number'), ('city', 'city')))
    user = ask(rng, f'What is the {asked} of {wrong}?',
               f'Give me the {asked} of {wrong}.',
               f'I need the {asked} of {wrong}.',
               f'Which {asked} has {wrong}?',
               f'Can you look up the {asked} of {wrong}?')
    wanted = f'the {what} of {wrong}'

    if right is None:
        return failed(kit, user, wanted, ('find_person', (wrong,)),
                      f'{wrong} is unknown. '
                      f'{likeness(wrong, world.people, right)}.',
                      not_found('person', wrong), no_check(kit, wrong))

    return corrected(
        kit, user, wanted, lambda name: ('find_person', (name,)),
        wrong, right, likeness(wrong, world.people, right),
        lambda r: person_answer(what, right, r),
        words_check(kit, world.people[right][what]))


def messages(rng, world):
    """The user misspells the receiver of a message, or the receiver is
    unknown."""

    kit = Kit(rng, world, ('send_message',), (0, 4))
    right, wrong = draw_typo(rng, list(world.people))
    text = said_of(rng)
    user = ask(rng, f'Send "{text}" to {wrong}.',
               f'Write {wrong} a message: "{text}".',
               f'Send {wrong} this text: "{text}".',
               f'Let {wrong} know: "{text}".')
    wanted = f'to send "{text}" to {wrong}'

    if right is None:
        return failed(
            kit, user, wanted, ('send_message', (wrong, text)),
            f'{wrong} is unknown. '
            f'{likeness(wrong, world.people, right)}.',
            not_found('person', wrong), no_check(kit, wrong))

    return corrected(
        kit, user, wanted, lambda name: ('send_message', (name, text)),
        wrong, right, likeness(wrong, world.people, right),
        lambda r: f'I sent the message to {right}.',
        lambda answer, calls: (sent(kit, calls, right, text)
                               or says_words(answer, right)))


# names of which the user gives only a part

def draw_part(rng, things):
    """Returns one of the things, its longer real name, and all long names.  If
    the thing does not exist, its longer name is None."""

    names = {t: f'{rng.choice(COLORS)}_{t}' for t in things}
    thing = rng.choice([t for t in things
                        if sum(t in n for n in names.values()) == 1])

    if rng.random() < 0.3:
        thing = rng.choice([t for t in part(rng, THINGS)
                            if not any(t in n for n in names.values())])

    return thing, names.get(thing), list(names.values())


def looked_through(part, names):
    """Returns the reasoning that searches the long names in order for one that
    contains the part."""

    said = []

    for name in names:
        color, thing = name.split('_')
        said.append(f'{color} {thing} {"yes" if thing == part else "no"}.')
        if thing == part:
            break

    return ' '.join(said)


def keys(rng, world):
    """The user gives a part of a key."""

    things = rng.sample(THINGS, rng.randint(3, 5))
    part, right, names = draw_part(rng, things)
    world.store = {n: str(rng.randrange(10, 1000)) for n in names}
    kit = Kit(rng, world, ('kv_get',), (0, 4))
    user = ask(rng, f'What is stored under {part}?',
               f'What is the value of {part}?', f'Read the key {part}.',
               f'Get {part} from the store.',
               f'Tell me the stored value of {part}.')
    wanted = f'the value of {part}'

    if right is None:
        return failed(kit, user, wanted, ('kv_get', (part,)),
                      f'{part} is unknown. {looked_through(part, names)} '
                      'It is in no known name.',
                      not_found('key', part), no_check(kit, part))

    return corrected(kit, user, wanted, lambda key: ('kv_get', (key,)),
                     part, right, f'{looked_through(part, names)} '
                     f'The known name with it is {right}',
                     lambda r: f'The value of {right} is {r["value"]}.',
                     number_check(kit, world.store[right], user))


def rows(rng, world):
    """The user gives a part of a row's name."""

    table = world.shop
    part, right, names = draw_part(rng, table.rows())
    table.cells = dict(zip(names, table.cells.values()))
    column = rng.choice(table.columns())
    kit = Kit(rng, world, ('table_lookup',), (0, 4))
    user = ask(
        rng, f'In the table {table.name}, what is the {column} of {part}?',
        f'Look up the {column} of {part} in table {table.name}.',
        f'Tell me the {column} of {part} from the {table.name} table.',
        f'Which {column} has {part} in the {table.name} table?')
    wanted = f'the {column} of {part} in {table.name}'

    if right is None:
        return failed(kit, user, wanted,
                      ('table_lookup', (table.name, part, column)),
                      f'{part} is unknown. {looked_through(part, names)} '
                      'It is in no known name.',
                      not_found('row', part), no_check(kit, part))

    return corrected(
        kit, user, wanted,
        lambda row: ('table_lookup', (table.name, row, column)),
        part, right, f'{looked_through(part, names)} '
        f'The known name with it is {right}',
        lambda r: f'The {column} of {right} is {r[column]}.',
        number_check(kit, table.cells[right][column], user))


# units

STRANGE = '''furlongs cubits leagues fathoms stones grains pecks barrels
drams chains spans fortnights'''.split()


def strange_units(rng, world):
    """The user gives a unit that no converter has."""

    kit = Kit(rng, world, ('convert',), (0, 4))
    n = rng.randrange(2, 1000)
    strange = rng.choice(STRANGE)
    into = rng.choice(UNITS).many
    user = ask(rng, f'Convert {n} {strange} to {into}.',
               f'How many {into} are {n} {strange}?',
               f'What is {n} {strange} in {into}?',
               f'Express {n} {strange} in {into}.')

    return failed(kit, user, f'{n} {strange} in {into}',
                  ('convert', (n, strange, into)),
                  f'{strange} is no known unit.',
                  lambda error: f'I cannot convert {strange}: the unit is '
                                'not known.', no_check(kit, strange))


def short_units(rng, world):
    """The converter accepts only the short names of units."""

    kit = Kit(rng, world, ('convert_short',), (0, 4))
    n, source, into, result = draw_conversion(rng)
    a, b = source.many, into.many
    user = ask(rng, f'How many {b} are {n} {a}?', f'Convert {n} {a} to {b}.',
               f'What is {n} {a} in {b}?', f'Express {n} {a} in {b}.',
               f'Change {n} {a} into {b}.')

    def gold(mode):
        notes = Notes(mode, f'{n} {a} in {b}', user)
        first = kit.call('convert_short', n, a, b)
        yield Step(notes.think(chosen(kit, first)), calls=[first])
        results = yield Step(
            notes.think('I try these.',
                        f'Short names are known: {source.short} for {a}, '
                        f'{into.short} for {b}.'),
            calls=[kit.call('convert_short', n, source.short, into.short)])
        r = results[0]['result']
        yield Step(notes.think(ANSWER, f'That is {r}.'),
                   f'{n} {a} is {r} {b}.')

    return task(kit, user, gold, number_check(kit, result, user))


def mixed_units(rng, world):
    """The user gives units of different quantities."""

    kit = Kit(rng, world, ('convert',), (0, 4))
    source, into = rng.sample(UNITS, 2)

    while source.measures == into.measures:
        into = rng.choice(UNITS)

    n, a, b = rng.randrange(2, 1000), source.many, into.many
    user = ask(rng, f'How many {b} are {n} {a}?', f'Convert {n} {a} to {b}.',
               f'What is {n} {a} in {b}?', f'Express {n} {a} in {b}.')

    return failed(kit, user, f'{n} {a} in {b}', ('convert', (n, a, b)),
                  f'{a} and {b} measure different things.',
                  lambda error: f'I cannot convert {a} to {b}: they measure '
                                'different things.', no_check(kit, a))


def zero_divisions(rng, world):
    kit = Kit(rng, world, ('calculator',), (0, 4))
    n, m = rng.randrange(2, 1000), rng.randrange(2, 100)
    e = rng.choice((f'{n} / 0', f'{n} / ({m} - {m})', f'{n} * {m} / 0',
                    f'({n} + {m}) / 0'))
    user = ask(rng, f'What is {e}?', f'How much is {e}?', f'Compute {e}.',
               f'Calculate {e}.', f'Give me the value of {e}.')

    return failed(kit, user, f'the value of {e}', ('calculator', (e,)),
                  'It divides by zero.',
                  lambda error: f'{e} has no value: it divides by zero.',
                  no_check(kit))


KINDS = (weather, weather, days, people, people, messages, keys, keys, rows,
         rows, strange_units, short_units, mixed_units, zero_divisions)
