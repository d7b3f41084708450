# Copyright (C) The nginx-dsa authors

"""Tasks with several rounds of calls; each round uses the results before
it."""

from fractions import Fraction

from tasks.task import CHAT, DISCARD, RETAIN, Step, Task, Turn
from tasks.tools_box import Kit
from tasks.tools_calc import short
from tasks.tools_check import (choice_check, number_check, says_number,
                               says_words, sent, stored, words_check)
from tasks.tools_text import ANSWER, Notes, ask, compare, listed
from tasks.tools_units import UNITS, converted
from tasks.tools_world import World
from tasks.wording import plural
from tasks.words import COLORS, THINGS


def make(rng):
    return rng.choice(KINDS)(rng, World(rng))


THINKING = (RETAIN, DISCARD)
ANY = (RETAIN, DISCARD, CHAT)


def task(kit, modes, user, gold, check):
    return Task('tools_multi', 'multi', [Turn(user, check, gold)], modes,
                tools=kit.tools)


# prices of a table, and their totals

def totals(rng, world):
    while 'price' not in world.shop.columns():
        world = World(rng)

    kit = Kit(rng, world, ('table_lookup', 'calculator'), (0, 3))
    shop = world.shop.name
    prices = world.shop.column('price')
    order = {thing: rng.randrange(2, 20) for thing in
             rng.sample(world.shop.rows(), rng.randint(2, 3))}
    percent = rng.choice((0, 0, 5, 10, 20, 25))
    goods = listed(f'{n} {plural(t)}' for t, n in order.items())
    less = f', {percent} percent off' if percent else ''
    user = ask(
        rng, f'What do {goods} cost with the prices of table {shop}{less}?',
        f'I want {goods}{less}. The prices are in the table {shop}. '
        'What is the total?',
        f'Add up the price of {goods} from the {shop} table{less}.',
        f'How much are {goods}{less}? See the table {shop}.',
        f'The table {shop} has prices. What do I pay for {goods}{less}?')

    def gold(mode):
        notes = Notes(mode, f'the total of {goods}{less}')
        results = yield Step(
            notes.think(f'First the prices in {shop}.'),
            calls=[kit.call('table_lookup', shop, t, 'price')
                   for t in order])
        found = {t: r['price'] for t, r in zip(order, results)}
        e = ' + '.join(f'{n} * {found[t]}' for t, n in order.items())
        e = f'({e}) * (100 - {percent}) / 100' if percent else e
        results = yield Step(
            notes.think(f'The total is {e}.',
                        *[f'One {t} costs {p}.' for t, p in found.items()]),
            calls=[kit.call('calculator', e)])
        total = results[0]['result']
        yield Step(notes.think(ANSWER, f'The total is {total}.'),
                   f'The total is {total}.')

    total = sum(n * Fraction(prices[t]) for t, n in order.items()) \
        * (100 - percent) / 100

    return task(kit, ANY, user, gold,
                number_check(kit, short(total), user))


# comparisons of cities

EXTREMES = (('temperature', True, 'warmest'),
            ('temperature', False, 'coldest'),
            ('wind', True, 'windiest'),
            ('wind', False, 'least windy'))


def extremes(rng, world):
    kit = Kit(rng, world, ('get_weather',), (0, 4))
    what, more, word = rng.choice(EXTREMES)
    chosen = rng.sample(world.cities, rng.randint(2, 4))
    day = rng.choice(world.days)
    names = listed(chosen)
    user = ask(rng, f'Which is the {word} of {names} on {day}?',
               f'Compare {names}: which is the {word} on {day}?',
               f'Where is it {word} on {day}: {names}?',
               f'On {day}, which of {names} is the {word}?',
               f'I can go to {names} on {day}. Which is the {word}?')

    def gold(mode):
        notes = Notes(mode, f'the {word} of {names} on {day}')
        results = yield Step(
            notes.think('First the weather of each.'),
            calls=[kit.call('get_weather', c, day) for c in chosen])
        numbers = {c: r[what] for c, r in zip(chosen, results)}
        best, lines = compare(numbers, more, word)
        unit = 'degrees' if what == 'temperature' else 'km/h'
        yield Step(notes.think(ANSWER, *lines),
                   f'{best} is the {word} with {numbers[best]} {unit}.')

    pick = max if more else min
    best = pick(chosen, key=lambda c: world.weather[c][day][what])

    return task(kit, THINKING, user, gold,
                choice_check(kit, best, chosen))


def differences(rng, world):
    """Asks how much warmer one city is than another."""

    kit = Kit(rng, world, ('get_weather', 'calculator'), (0, 3))
    day = rng.choice(world.days)
    a, b = rng.sample(world.cities, 2)

    if world.weather[a][day]['temperature'] \
            < world.weather[b][day]['temperature']:
        a, b = b, a

    user = ask(rng, f'How many degrees warmer is {a} than {b} on {day}?',
               f'By how many degrees is {a} warmer than {b} on {day}?',
               f'On {day}, how much warmer is it in {a} than in {b}?',
               f'It is warmer in {a} than in {b} on {day}. By how much?')

    def gold(mode):
        notes = Notes(mode, f'by how much {a} is warmer than {b} on {day}')
        results = yield Step(
            notes.think('First the weather of both.'),
            calls=[kit.call('get_weather', c, day) for c in (a, b)])
        one, other = [r['temperature'] for r in results]
        e = f'{one} - {other}' if other >= 0 else f'{one} - ({other})'
        results = yield Step(
            notes.think(f'The difference is {e}.',
                        f'{a} has {one} degrees.', f'{b} has {other}.'),
            calls=[kit.call('calculator', e)])
        d = results[0]['result']
        yield Step(notes.think(ANSWER, f'That is {d}.'),
                   f'{a} is {d} degrees warmer than {b}.')

    wanted = world.weather[a][day]['temperature'] \
        - world.weather[b][day]['temperature']

    return task(kit, ANY, user, gold,
                number_check(kit, wanted, user))


def todays(rng, world):
    """Asks for today's weather; the forecast needs the name of the day."""

    kit = Kit(rng, world, ('get_time', 'get_weather'), (0, 3))
    city = rng.choice(world.cities)
    user = ask(rng, f'How warm is it in {city} today?',
               f'What is the temperature in {city} today?',
               f'Tell me how many degrees {city} has today.',
               f"What is today's temperature in {city}?")
    # a forecast by date has an argument with this name
    which = 'date' if world.dated else 'weekday'

    def gold(mode):
        notes = Notes(mode, f'the temperature in {city} today')
        results = yield Step(notes.think(f'First the {which} of today.'),
                             calls=[kit.call('get_time')])
        day = results[0][which]
        results = yield Step(notes.think('Then the weather.',
                                         f'Today is {day}.'),
                             calls=[kit.call('get_weather', city, day)])
        n = results[0]['temperature']
        yield Step(notes.think(ANSWER, f'{city} has {n} degrees.'),
                   f'It is {n} degrees in {city} today.')

    wanted = world.weather[city][world.days[0]]['temperature']

    return task(kit, ANY, user, gold,
                number_check(kit, wanted, user))


# the key-value store

def chains(rng, world):
    """Asks for a number behind several keys, each the value of the one
    before."""

    hops = rng.randint(2, 5)
    chain = [f'{c}_{t}' for c, t in zip(rng.choices(COLORS, k=hops),
                                        rng.sample(THINGS, hops))]
    end = str(rng.randrange(10, 1000))

    for key, then in zip(chain, chain[1:] + [end]):
        world.store[key] = then

    kit = Kit(rng, world, ('kv_get',), (0, 4))
    user = ask(
        rng, f'Start at the key {chain[0]}: each value is the next key. '
        'Which number is at the end?',
        f'Follow the keys from {chain[0]} until the value is a number. '
        'Which number is it?',
        f'The value of {chain[0]} is a key, and so on. '
        'What number comes last?',
        f'In the store, go from {chain[0]} from key to key up to a number. '
        'Tell me the number.',
        f'Read {chain[0]}, then the key that it names, and so on. '
        'Give me the number at the end.')

    def gold(mode):
        notes = Notes(mode, f'the number at the end from {chain[0]}')
        key, found = chain[0], []

        while not key.isdigit():
            results = yield Step(notes.think(f'I read {key}.', *found),
                                 calls=[kit.call('kv_get', key)])
            then = results[0]['value']
            found = [f'{key} has {then}.']
            key = then

        yield Step(notes.think(ANSWER, *found),
                   f'The number at the end is {key}.')

    return task(kit, ANY, user, gold,
                number_check(kit, end, user))


def stored_sums(rng, world):
    """Asks to store the sum or the like of two stored values."""

    kit = Kit(rng, world, ('kv_get', 'calculator', 'kv_set'), (0, 2))
    a, b = rng.sample(list(world.store), 2)
    new = f'{rng.choice(COLORS)}_' + rng.choice(
        [t for t in THINGS if not any(k.endswith(t) for k in world.store)])
    sign, word = rng.choice((('+', 'sum'), ('*', 'product')))
    user = ask(rng,
               f'Store the {word} of {a} and {b} under {new}.',
               f'Read {a} and {b} and put their {word} into {new}.',
               f'Set {new} to the {word} of {a} and {b}.',
               f'I want the {word} of {a} and {b} stored as {new}.',
               f'Compute the {word} of the values of {a} and {b}. '
               f'Store it under {new}.')

    def gold(mode):
        notes = Notes(mode, f'to set {new} to the {word} of {a} and {b}')
        results = yield Step(notes.think('First both values.'),
                             calls=[kit.call('kv_get', k) for k in (a, b)])
        x, y = [r['value'] for r in results]
        e = f'{x} {sign} {y}'
        results = yield Step(notes.think(f'The {word} is {e}.',
                                         f'{a} has {x}.', f'{b} has {y}.'),
                             calls=[kit.call('calculator', e)])
        n = results[0]['result']
        yield Step(notes.think(f'I store it under {new}.', f'{e} is {n}.'),
                   calls=[kit.call('kv_set', new, str(n))])
        yield Step(notes.think(ANSWER, 'It is stored.'),
                   f'{new} is now {n}.')

    x, y = int(world.store[a]), int(world.store[b])
    wanted = x + y if sign == '+' else x * y

    return task(kit, ANY, user, gold,
                lambda answer, calls: (says_number(answer, wanted, user)
                                       or stored(kit, calls, new, wanted)))


def store_sums(rng, world):
    """Asks for the total of all values of the store."""

    while len(world.store) > 4:
        world = World(rng)

    kit = Kit(rng, world, ('kv_list', 'kv_get', 'calculator'), (0, 2))
    user = ask(rng, 'What is the sum of all values in the store?',
               'Add up all stored values.',
               'Take all keys of the store and add up their values.',
               'How much do all the stored values make together?',
               'Tell me the total of the values of all keys.')

    def gold(mode):
        notes = Notes(mode, 'the sum of all stored values')
        results = yield Step(notes.think('First the keys.'),
                             calls=[kit.call('kv_list')])
        keys = results[0]['keys']
        results = yield Step(
            notes.think('Then the value of each.',
                        f'The keys are {listed(keys)}.'),
            calls=[kit.call('kv_get', key) for key in keys])
        e = ' + '.join(r['value'] for r in results)
        results = yield Step(notes.think(f'The sum is {e}.'),
                             calls=[kit.call('calculator', e)])
        n = results[0]['result']
        yield Step(notes.think(ANSWER, f'That is {n}.'),
                   f'The sum of all values is {n}.')

    wanted = sum(map(int, world.store.values()))

    return task(kit, ANY, user, gold, number_check(kit, wanted, user))


# tables whose rows are not in the user's text

def firsts(rng, world):
    """Asks for the row with the most or the least of a column."""

    kit = Kit(rng, world, ('table_rows', 'table_lookup'), (0, 3))
    table = rng.choice(list(world.tables().values()))
    column = rng.choice(table.columns())
    more = rng.random() < 0.5
    word = 'highest' if more else 'lowest'
    user = ask(
        rng, f'Which row of the table {table.name} has the {word} {column}?',
        f'In the table {table.name}, which has the {word} {column}?',
        f'Find the {word} {column} in table {table.name}. Whose is it?',
        f'Look at the table {table.name}: which row has the {word} '
        f'{column}?')

    def gold(mode):
        notes = Notes(mode, f'the row of {table.name} with the {word} '
                      f'{column}')
        best, n = yield from find_first(kit, notes, table.name, column,
                                         more, word)
        yield Step(notes.think(ANSWER),
                   f'{best} has the {word} {column}: {n}.')

    return task(kit, THINKING, user, gold,
                choice_check(kit, first(table, column, more), table.rows()))


def column_sums(rng, world):
    """Asks for the sum or the average of a column."""

    kit = Kit(rng, world, ('table_rows', 'table_lookup', 'calculator'),
              (0, 2))
    table = rng.choice(list(world.tables().values()))
    column = rng.choice(table.columns())
    average = rng.random() < 0.5
    word = 'average' if average else 'sum'
    user = ask(
        rng, f'What is the {word} of the column {column} in the table '
        f'{table.name}?',
        f'Compute the {word} of all {column} numbers in table {table.name}.',
        f'In the table {table.name}, what is the {word} of {column}?',
        f'Take each {column} of the table {table.name} and tell me the '
        f'{word}.',
        f'I need the {word} of {column} over all rows of {table.name}.')

    def gold(mode):
        notes = Notes(mode, f'the {word} of {column} in {table.name}')
        results = yield Step(notes.think(f'First the rows of {table.name}.'),
                             calls=[kit.call('table_rows', table.name)])
        rows = results[0]['rows']
        results = yield Step(
            notes.think(f'Then the {column} of each.',
                        f'The rows are {listed(rows)}.'),
            calls=[kit.call('table_lookup', table.name, row, column)
                   for row in rows])
        e = ' + '.join(str(r[column]) for r in results)
        e = f'({e}) / {len(rows)}' if average else e
        results = yield Step(notes.think(f'The {word} is {e}.'),
                             calls=[kit.call('calculator', e)])
        n = results[0]['result']
        yield Step(notes.think(ANSWER, f'That is {n}.'),
                   f'The {word} of {column} is {n}.')

    wanted = sum(map(Fraction, table.column(column).values()))

    if average:
        wanted /= len(table.rows())

    return task(kit, ANY, user, gold, number_check(kit, short(wanted), user))


def find_first(kit, notes, table, column, more, word):
    """Yields steps that find the row with the most, or the least, of a column.
    word is what the request calls it.  They add the comparisons to the notes.
    Returns the row and its number."""

    results = yield Step(notes.think(f'First the rows of {table}.'),
                         calls=[kit.call('table_rows', table)])
    rows = results[0]['rows']
    results = yield Step(
        notes.think(f'Then the {column} of each.',
                    f'The rows are {listed(rows)}.'),
        calls=[kit.call('table_lookup', table, row, column) for row in rows])
    numbers = {row: r[column] for row, r in zip(rows, results)}
    best, lines = compare(numbers, more, word)
    notes.find(*lines)

    return best, numbers[best]


def first(table, column, more):
    numbers = table.column(column)

    return (max if more else min)(numbers, key=numbers.get)


OLDEST = (('age', True, 'oldest'), ('age', False, 'youngest'),
          ('height', True, 'tallest'), ('height', False, 'shortest'))


def calls_to_first(rng, world):
    """Asks for the phone or the city of the oldest, tallest, ..., of a
    table."""

    column, more, word = rng.choice(OLDEST)

    while column not in world.club.columns():
        world = World(rng)

    kit = Kit(rng, world, ('table_rows', 'table_lookup', 'find_person'),
              (0, 2))
    club = world.club
    what = rng.choice(('phone', 'city'))
    asked = 'phone number' if what == 'phone' else 'city'
    user = ask(
        rng, f'What is the {asked} of the {word} in the table {club.name}?',
        f'I need the {asked} of the {word} person in table {club.name}.',
        f'Find the {word} in the {club.name} table and give me the {asked}.',
        f'Who is the {word} in the table {club.name}, and what is the '
        f'{asked}?')

    def gold(mode):
        notes = Notes(mode, f'the {asked} of the {word} in {club.name}, by '
                      + column)
        best, _ = yield from find_first(kit, notes, club.name, column, more,
                                        word)
        results = yield Step(notes.think(f'I look for {best}.'),
                             calls=[kit.call('find_person', best)])
        it = results[0][what]
        yield Step(notes.think(ANSWER, f'The {what} of {best} is {it}.'),
                   f'The {word} is {best}, {asked} {it}.')

    wanted = world.people[first(club, column, more)][what]

    return task(kit, THINKING, user, gold,
                words_check(kit, wanted))


# units

MEASURED = (('weight', 'shop', 'kg'), ('distance', 'region', 'km'),
            ('altitude', 'region', 'm'), ('height', 'club', 'cm'))


def converted_cells(rng, world):
    """Asks for a number of a table in another unit."""

    column, where, unit = rng.choice(MEASURED)

    while column not in getattr(world, where).columns():
        world = World(rng)

    kit = Kit(rng, world, ('table_lookup', 'convert'), (0, 3))
    table = getattr(world, where)
    row = rng.choice(table.rows())
    source = next(u for u in UNITS if u.short == unit)
    into = rng.choice([u for u in UNITS if u.measures == source.measures
                       and u is not source and u.short not in ('mm', 't')])
    user = ask(
        rng, f'The table {table.name} has each {column} in {source.many}. '
        f'What is the {column} of {row} in {into.many}?',
        f'What is the {column} of {row} from table {table.name} in '
        f'{into.many}? The table is in {source.many}.',
        f'Look up the {column} of {row} in the table {table.name}, in '
        f'{source.many}, and convert it to {into.many}.',
        f'Give me the {column} of {row} in {into.many}. The table '
        f'{table.name} has it in {source.many}.')

    def gold(mode):
        notes = Notes(mode, f'the {column} of {row} in {into.many}')
        results = yield Step(
            notes.think(f'First the {source.many} in {table.name}.'),
            calls=[kit.call('table_lookup', table.name, row, column)])
        n = results[0][column]
        results = yield Step(
            notes.think('I convert it.',
                        f'The {column} is {n} {source.many}.'),
            calls=[kit.call('convert', n, source.many, into.many)])
        m = results[0]['result']
        yield Step(notes.think(ANSWER, f'That is {m} {into.many}.'),
                   f'The {column} of {row} is {m} {into.many}.')

    wanted = converted(table.cells[row][column], source, into)

    return task(kit, ANY, user, gold,
                number_check(kit, wanted, user))


# quantities to compare: a word for more of it, and two units

LENGTHS = (('longer', 'km', 'mi'), ('longer', 'm', 'ft'),
           ('longer', 'cm', 'in'), ('longer', 'm', 'yd'),
           ('heavier', 'kg', 'lb'), ('heavier', 'g', 'oz'),
           ('more', 'l', 'gal'), ('more', 'l', 'cp'),
           ('longer', 'min', 's'), ('longer', 'h', 'min'))


def unlike_units(rng, world):
    """Asks which of two quantities is larger; one must be converted first."""

    kit = Kit(rng, world, ('convert',), (0, 4))
    word, short_a, short_b = rng.choice(LENGTHS)
    a = next(u for u in UNITS if u.short == short_a)
    b = next(u for u in UNITS if u.short == short_b)

    while True:
        # near each other, but with different integer parts

        n = rng.randrange(2, 200)
        m = round(converted(n, a, b) * rng.uniform(0.6, 1.6))
        other = converted(m, b, a)
        if m > 1 and m != n and int(other) != n:
            break

    one, two = f'{n} {a.many}', f'{m} {b.many}'

    if rng.random() < 0.5:
        pair = f'{one} or {two}'
    else:
        pair = f'{two} or {one}'

    user = ask(rng, f'Which is {word}: {pair}?', f'What is {word}, {pair}?',
               f'Is it {pair} that is {word}?',
               f'Tell me which is {word}, {pair}.',
               f'I have to choose {pair}. Which is {word}?')

    def gold(mode):
        notes = Notes(mode, f'which is {word}, {pair}')
        results = yield Step(
            notes.think(f'I convert {two} to {a.many}.'),
            calls=[kit.call('convert', m, b.many, a.many)])
        r = results[0]['result']
        best, relation = (two, 'more') if r > n else (one, 'less')
        yield Step(notes.think(ANSWER, f'{two} is {r} {a.many}, {relation} '
                               f'than {n}.'),
                   f'{best} is {word}.')

    best = two if other > n else one

    return task(kit, THINKING, user, gold,
                choice_check(kit, best, (one, two)))


# people, the weather at their homes, and messages to them

def visits(rng, world):
    """Asks for the weather at somebody's home."""

    kit = Kit(rng, world, ('find_person', 'get_weather'), (0, 3))
    name = rng.choice(list(world.people))
    day = rng.choice(world.days)
    what = rng.choice(('temperature', 'wind'))
    user = ask(rng, f'What is the {what} where {name} lives on {day}?',
               f'I visit {name} on {day}. What will the {what} be there?',
               f'Tell me the {what} on {day} in the city of {name}.',
               f'On {day}, what {what} does the city of {name} have?')

    def gold(mode):
        notes = Notes(mode, f'the {what} where {name} lives on {day}')
        city = yield from find_city(kit, notes, name)
        results = yield Step(
            notes.think('Then the weather.', f'{name} lives in {city}.'),
            calls=[kit.call('get_weather', city, day)])
        n = results[0][what]
        yield Step(notes.think(ANSWER, f'The {what} is {n}.'),
                   f'{name} lives in {city}. The {what} there is {n}.')

    wanted = world.weather[world.people[name]['city']][day][what]

    return task(kit, ANY, user, gold,
                number_check(kit, wanted, user))


def find_city(kit, notes, name):
    """The step that finds somebody's city."""

    results = yield Step(notes.think(f'First the city of {name}.'),
                         calls=[kit.call('find_person', name)])

    return results[0]['city']


def reports(rng, world):
    """Asks to send somebody the temperature at their home."""

    kit = Kit(rng, world, ('find_person', 'get_weather', 'send_message'),
              (0, 2))
    name = rng.choice(list(world.people))
    day = rng.choice(world.days)
    user = ask(
        rng, f'Send {name} the temperature of their city on {day}, as '
        '"N degrees".',
        f'Find where {name} lives and send them the temperature there on '
        f'{day}, as "N degrees".',
        f'I want {name} to know how warm it is at home on {day}: send '
        '"N degrees".',
        f'Message {name} with "N degrees", the temperature of {day} where '
        'they live.')

    def gold(mode):
        notes = Notes(mode, f'to send {name} the temperature at home on '
                      + day)
        city = yield from find_city(kit, notes, name)
        results = yield Step(
            notes.think('Then the weather.', f'{name} lives in {city}.'),
            calls=[kit.call('get_weather', city, day)])
        n = results[0]['temperature']
        yield Step(
            notes.think('I send it.', f'{city} has {n} degrees.'),
            calls=[kit.call('send_message', name, f'{n} degrees')])
        yield Step(notes.think(ANSWER, 'It is sent.'),
                   f'I sent {name} the message: {n} degrees.')

    n = world.weather[world.people[name]['city']][day]['temperature']

    return task(kit, ANY, user, gold,
                lambda answer, calls: (
                    sent(kit, calls, name, f'{n} degrees')
                    or says_words(answer, name)))


def advice(rng, world):
    """Asks to send one of two messages, depending on the weather at somebody's
    home."""

    kit = Kit(rng, world, ('find_person', 'get_weather', 'send_message'),
              (0, 2))
    name = rng.choice(list(world.people))
    day = rng.choice(world.days)
    sky = rng.choice(('rainy', 'sunny', 'snowy', 'stormy'))
    there = world.weather[world.people[name]['city']][day]

    if rng.random() < 0.5:
        there['sky'] = sky

    one, other = [f'take the {t}' for t in rng.sample(THINGS, 2)]
    user = ask(
        rng, f'If it is {sky} on {day} where {name} lives, send them '
        f'"{one}", otherwise "{other}".',
        f'Look up the sky on {day} in the city of {name}. If it is {sky}, '
        f'send {name} "{one}", else "{other}".',
        f'Message {name}: "{one}" if their city is {sky} on {day}, '
        f'"{other}" if not.')

    def gold(mode):
        notes = Notes(mode, f'to send {name} "{one}" if {sky} at home on '
                      f'{day}, else "{other}"')
        city = yield from find_city(kit, notes, name)
        results = yield Step(
            notes.think('Then the weather.', f'{name} lives in {city}.'),
            calls=[kit.call('get_weather', city, day)])
        seen = results[0]['sky']
        text, word = (one, 'so') if seen == sky else (other, f'not {sky}, so')
        yield Step(
            notes.think(f'I send "{text}".',
                        f'{city} is {seen}, {word} "{text}".'),
            calls=[kit.call('send_message', name, text)])
        yield Step(notes.think(ANSWER, 'It is sent.'),
                   f'I sent {name} the message: {text}.')

    text = one if there['sky'] == sky else other

    return task(kit, THINKING, user, gold,
                lambda answer, calls: (sent(kit, calls, name, text)
                                       or says_words(answer, name)))


KINDS = (totals, totals, extremes, extremes, differences, todays, chains,
         chains, stored_sums, store_sums, firsts, firsts, column_sums,
         calls_to_first, converted_cells, unlike_units, visits, reports,
         advice)
