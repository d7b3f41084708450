# Copyright (C) The nginx-dsa authors

"""Tasks with one call: the model must choose the right tool among those
offered, and put its result into a sentence.  Sometimes the user asks a second
question of the same kind."""

from fractions import Fraction

from tasks.task import CHAT, RETAIN, Step, Task, Turn
from tasks.tools_box import Kit
from tasks.tools_calc import value
from tasks.tools_check import (number_check, numbers, says_words, sent,
                               stored, words_check)
from tasks.tools_text import ANSWER, Notes, ask, chosen, listed
from tasks.tools_units import UNITS, converted
from tasks.tools_world import World
from tasks.wording import plural
from tasks.words import COLORS, THINGS


def make(rng):
    world = World(rng)
    role, draw = rng.choice(KINDS)
    kit = Kit(rng, world, [role], (0, 5))
    turns = draw(rng, world, kit)

    if rng.random() < 0.8:
        turns = turns[:1]

    return Task('tools_single', 'single', turns, (RETAIN, CHAT),
                tools=kit.tools)


def question(kit, user, wanted, call, found, answer, check):
    """Returns the Turn with one call.

    wanted    the purpose, in the reasoning
    call      (role, values)
    found     result -> its text in the reasoning
    answer    result -> the answer
    check     as a Turn's
    """
    role, values = call

    def gold(mode):
        notes = Notes(mode, wanted, user)
        call = kit.call(role, *values)
        results = yield Step(notes.think(chosen(kit, call)), calls=[call])
        yield Step(notes.think(ANSWER, found(results[0])),
                   answer(results[0]))

    return Turn(user, check, gold)


# calculator

SHAPES = ('a + b', 'a - b', 'a * b', 'a / b', 'a + b + c', 'a * b + c',
          'a * b - c', 'a + b * c', 'a * b * c', 'a + b - c')

BRACKETED = ('(a + b) * c', '(a - b) * c', 'a * (b + c)', 'a - (b - c)',
             '(a + b) / c', '(a + b) * (c - d)', 'a * b + c * d')

SPOKEN = {'+': 'plus', '-': 'minus', '*': 'times', '/': 'divided by'}


def draw_number(rng):
    n = rng.randrange(2, 10 ** rng.randint(1, 4))

    return f'{n}.{rng.choice("125")}' if rng.random() < 0.15 else str(n)


def draw_expression(rng, shapes):
    """Returns an expression that needs a calculator.  Its value is short and
    differs from all numbers in it."""

    while True:
        e = rng.choice(shapes)

        for letter in 'abcd':
            e = e.replace(letter, draw_number(rng))

        result = value(e)

        if max(map(len, numbers(e))) > 1 and (100 * result).denominator == 1 \
                and abs(result) < 10 ** 8 and str(result) not in numbers(e):
            return e


def sums(rng, world, kit):
    def turn(follows):
        e = draw_expression(rng, SHAPES + BRACKETED)
        user = ask(rng, f'What is {e}?', f'How much is {e}?',
                   f'Compute {e}.', f'Calculate {e}.',
                   f'Work out {e} for me.', f'Give me the value of {e}.',
                   f'Tell me what {e} is.', f'What do you get for {e}?',
                   f'{e} = ?', f'I need the result of {e}.')

        if follows:
            user = rng.choice((f'And {e}?', f'What about {e}?'))

        return question(kit, user, 'the value of ' + e, ('calculator', (e,)),
                        result_found, result_answer,
                        number_check(kit, value(e), user))

    return [turn(False), turn(True)]


def spoken_sums(rng, world, kit):
    def turn(follows):
        e = draw_expression(rng, SHAPES)
        spoken = ' '.join(SPOKEN.get(w, w) for w in e.split())
        user = ask(rng, f'What is {spoken}?', f'How much is {spoken}?',
                   f'Compute {spoken}.', f'Calculate {spoken}.',
                   f'Tell me what {spoken} is.',
                   f'What does {spoken} make?', f'Work out {spoken}.')

        if follows:
            user = rng.choice((f'And {spoken}?', f'What about {spoken}?'))

        return question(kit, user, 'the value of ' + e, ('calculator', (e,)),
                        result_found, result_answer,
                        number_check(kit, value(e), user))

    return [turn(False), turn(True)]


def percents(rng, world, kit):
    def turn(follows):
        while True:
            p, n = rng.randrange(2, 100), rng.randrange(20, 2000)
            e = f'{n} * {p} / 100'
            result = Fraction(n * p, 100)
            if result not in (p, n):
                break

        user = ask(rng, f'What is {p} percent of {n}?',
                   f'How much is {p} percent of {n}?',
                   f'Compute {p}% of {n}.', f'Tell me {p}% of {n}.',
                   f'I need {p} percent of {n}.',
                   f'Take {p} percent of {n}. What is it?')

        if follows:
            user = rng.choice((f'And {p} percent of {n}?',
                               f'What about {p}% of {n}?'))

        return question(kit, user, f'{p} percent of {n}, that is {e}',
                        ('calculator', (e,)), result_found, result_answer,
                        number_check(kit, result, user))

    return [turn(False), turn(True)]


def purchases(rng, world, kit):
    def turn(follows):
        thing = rng.choice(THINGS)
        n, price = rng.randrange(11, 90), rng.randrange(11, 400)
        e = f'{n} * {price}'
        user = ask(rng,
                   f'What do {n} {plural(thing)} cost at {price} each?',
                   f'I buy {n} {plural(thing)} for {price} each. '
                   'What do I pay?',
                   f'One {thing} costs {price}. '
                   f'What do {n} {plural(thing)} cost?',
                   f'How much are {n} {plural(thing)} if one is {price}?',
                   f'Each {thing} is {price}. Tell me the price of {n}.',
                   f'At {price} per {thing}, how much do I pay for {n}?')

        if follows:
            user = f'And {n} {plural(thing)} at {price} each?'

        return question(kit, user, f'{n} at {price} each, that is {e}',
                        ('calculator', (e,)), result_found, result_answer,
                        number_check(kit, n * price, user))

    return [turn(False), turn(True)]


def result_found(r):
    return f'The result is {r["result"]}.'


result_answer = result_found


# unit conversion

def draw_conversion(rng, from_unit=None):
    """Returns a number, two Units and the converted number, which is neither
    tiny nor huge and differs from the first."""

    while True:
        source = from_unit or rng.choice(UNITS)
        into = rng.choice([u for u in UNITS if u is not source
                           and u.measures == source.measures])
        n = rng.randrange(2, rng.choice((20, 100, 1000)))

        if rng.random() < 0.2:
            n += 0.5

        result = converted(n, source, into)

        if 0.1 < abs(result) < 10 ** 6 and result != n:
            return n, source, into, result


def conversions(rng, world, kit):
    n, source, into, result = draw_conversion(rng)
    style = rng.choice(('short', 'many', 'many'))
    a, b = getattr(source, style), getattr(into, style)
    user = ask(rng, f'How many {b} are {n} {a}?',
               f'Turn {n} {a} into {b}.', f'What is {n} {a} in {b}?',
               f'Express {n} {a} in {b}.', f'{n} {a} in {b}?',
               f'I have {n} {a}. How much is that in {b}?',
               f'Change {n} {a} into {b}.', f'Turn {n} {a} into {b}.',
               f'How much is {n} {a} in {b}?')

    def turn(user, n, result):
        return question(kit, user, f'{n} {a} in {b}',
                        ('convert', (n, a, b)),
                        lambda r: f'It is {r["result"]} {b}.',
                        lambda r: f'{n} {a} is {r["result"]} {b}.',
                        number_check(kit, result, user))

    m = n + rng.randrange(1, 9)

    return [turn(user, n, result),
            turn(rng.choice((f'And {m} {a}?', f'What about {m} {a}?')), m,
                 converted(m, source, into))]


# weather

def weather(rng, world, kit):
    what = rng.choice(('temperature', 'sky', 'wind', 'weather'))
    city, other = rng.sample(world.cities, 2)
    day = rng.choice(world.days)
    on = f'on {day}'

    user = {
        'temperature': ask(
            rng, f'How warm will it be in {city} {on}?',
            f'What is the temperature in {city} {on}?',
            f'Tell me the temperature in {city} {on}.',
            f'How many degrees will {city} have {on}?',
            f'Is it warm in {city} {on}? Give me the degrees.'),
        'sky': ask(
            rng, f'What will the sky be like in {city} {on}?',
            f'How will the sky be in {city} {on}?',
            f'Tell me about the sky over {city} {on}.',
            f'Sunny, rainy or what in {city} {on}?'),
        'wind': ask(
            rng, f'How strong is the wind in {city} {on}?',
            f'What is the wind speed in {city} {on}?',
            f'Tell me the wind in {city} {on}.',
            f'How windy will it be in {city} {on}?'),
        'weather': ask(
            rng, f'What is the weather in {city} {on}?',
            f'How will the weather be in {city} {on}?',
            f'Give me the weather for {city} {on}.',
            f'What weather can I expect {on} in {city}?',
            f'Weather in {city} {on}?'),
    }[what]

    def turn(user, city):
        fact = world.weather[city][day]
        check = number_check(kit, fact.get(what), user) \
            if what in ('temperature', 'wind') else \
            words_check(kit, *([fact['sky']] if what == 'sky'
                             else fact.values()))

        return question(kit, user, f'the {what} in {city} {on}',
                        ('get_weather', (city, day)),
                        lambda r: weather_found(what, r),
                        lambda r: weather_answer(what, city, day, r), check)

    return [turn(user, city),
            turn(rng.choice((f'And in {other}?', f'What about {other}?')),
                 other)]


def weather_found(what, r):
    """Returns the text about a forecast r for the reasoning."""

    if what == 'weather':
        return (f'{r["sky"]}, temperature {r["temperature"]}, '
                f'wind {r["wind"]}.')

    return f'The {what} is {r[what]}.'


def weather_answer(what, city, day, r):
    place = f'in {city} on {day}'

    if what == 'temperature':
        return f'It will be {r["temperature"]} degrees {place}.'

    if what == 'sky':
        return f'It will be {r["sky"]} {place}.'

    if what == 'wind':
        return f'The wind {place} will be {r["wind"]} km/h.'

    return (f'{city} on {day}: {r["sky"]}, {r["temperature"]} degrees, '
            f'wind {r["wind"]} km/h.')


def clock(rng, world, kit):
    what, other = rng.sample(('time', 'date', 'weekday'), 2)
    ways = {'time': ('What time is it?', 'Tell me the time.',
                     'How late is it?', 'What does the clock say?'),
            'date': ('What is the date today?', "Tell me today's date.",
                     'Which date do we have?', 'What is the current date?'),
            'weekday': ('Which weekday is it?', 'What day of the week is it?',
                        'Tell me the weekday.', 'Is it Monday or what?')}

    def turn(user, what):
        return question(kit, user, f'the {what} now', ('get_time', ()),
                        lambda r: f'The {what} is {r[what]}.',
                        lambda r: f'It is {r[what]}.',
                        words_check(kit, world.now[what]))

    return [turn(ask(rng, *ways[what]), what),
            turn(f'And the {other}?', other)]


# people

def people(rng, world, kit):
    what = rng.choice(('phone', 'city'))
    name, other = rng.sample(list(world.people), 2)
    user = {
        'phone': ask(rng, f'What is the phone number of {name}?',
                     f'How can I call {name}?',
                     f'Give me the phone number of {name}.',
                     f'I want to call {name}. Which number is it?',
                     f"Look up {name}'s phone number."),
        'city': ask(rng, f'Where does {name} live?',
                    f'Which city does {name} live in?',
                    f'Tell me in which city {name} lives.',
                    f"What is {name}'s city?",
                    f'Do you know where {name} lives?'),
    }[what]

    def turn(user, name):
        return question(
            kit, user, f'the {what} of {name}', ('find_person', (name,)),
            lambda r: f'The {what} is {r[what]}.',
            lambda r: person_answer(what, name, r),
            words_check(kit, world.people[name][what]))

    return [turn(user, name),
            turn(rng.choice((f'And {other}?', f'What about {other}?')),
                 other)]


def person_answer(what, name, r):
    if what == 'phone':
        return f'The phone number of {name} is {r["phone"]}.'

    return f'{name} lives in {r["city"]}.'


def said_of(rng):
    """Returns a message's text."""

    thing, color = rng.choice(THINGS), rng.choice(COLORS)

    return rng.choice((f'the {thing} is ready',
                       f'please bring the {color} {thing}',
                       f'I found your {thing}',
                       f'the {color} {thing} is yours',
                       f'we meet at {rng.randint(1, 12)}',
                       f'do not forget the {thing}',
                       f'I will be {rng.randint(5, 50)} minutes late',
                       f'you can have my {thing}'))


def messages(rng, world, kit):
    name, other = rng.sample(list(world.people), 2)
    text = said_of(rng)
    user = ask(rng, f'Send "{text}" to {name}.',
               f'Write {name} a message: "{text}".',
               f'Send {name} this text: "{text}".',
               f'Let {name} know: "{text}".',
               f'Message {name}: "{text}".',
               f'Please tell {name}: "{text}".')

    def turn(user, name):
        return question(
            kit, user, f'to send "{text}" to {name}',
            ('send_message', (name, text)), lambda r: 'It is sent.',
            lambda r: f'I sent the message to {name}.',
            lambda answer, calls: (sent(kit, calls, name, text)
                                   or says_words(answer, name)))

    return [turn(user, name),
            turn(rng.choice((f'Send it to {other} too.',
                             f'The same to {other}, please.')), other)]


# key-value store

def reads(rng, world, kit):
    key, other = rng.sample(list(world.store), 2)
    user = ask(rng, f'What is stored under {key}?',
               f'What is the value of {key}?', f'Read {key}.',
               f'Get {key} from the store.', f'Which value has {key}?',
               f'Tell me the stored value of {key}.',
               f'What does the store have for {key}?',
               f'Look up the key {key}.')

    def turn(user, key):
        return question(kit, user, f'the value of {key}', ('kv_get', (key,)),
                        lambda r: f'The value is {r["value"]}.',
                        lambda r: f'The value of {key} is {r["value"]}.',
                        number_check(kit, world.store[key], user))

    return [turn(user, key),
            turn(rng.choice((f'And {other}?', f'What about {other}?')),
                 other)]


def writes(rng, world, kit):
    keys = [f'{rng.choice(COLORS)}_{thing}' for thing in rng.sample(THINGS,
                                                                   2)]
    new = rng.choice((str(rng.randrange(10, 1000)), rng.choice(THINGS)))
    key = keys[0]
    user = ask(rng, f'Store {new} under {key}.', f'Set {key} to {new}.',
               f'Save {new} as {key}.', f'Put {new} into {key}.',
               f'Remember {new} under the key {key}.',
               f'Write {new} to {key} in the store.')

    def turn(user, key):
        return question(
            kit, user, f'to set {key} to {new}', ('kv_set', (key, new)),
            lambda r: 'It is stored.', lambda r: f'{key} is now {new}.',
            lambda answer, calls: (stored(kit, calls, key, new)
                                   or says_words(answer, key)))

    return [turn(user, key), turn(f'And {keys[1]} to the same.', keys[1])]


def keys(rng, world, kit):
    user = ask(rng, 'Which keys are in the store?', 'List the stored keys.',
               'What keys do you have in the store?', 'Show me all keys.',
               'Tell me the names of all stored keys.',
               'Give me the keys of the store.')

    return [question(kit, user, 'the keys of the store', ('kv_list', ()),
                     lambda r: 'The result has them.',
                     lambda r: f'The keys are {listed(r["keys"])}.',
                     words_check(kit, *world.store))]


# tables

def cells(rng, world, kit):
    table = rng.choice(list(world.tables().values()))
    row, other = rng.sample(table.rows(), 2)
    column = rng.choice(table.columns())
    user = ask(rng,
               f'In the table {table.name}, what is the {column} of {row}?',
               f'What {column} does {row} have in the table {table.name}?',
               f'Look up the {column} of {row} in table {table.name}.',
               f'Tell me the {column} of {row} from the {table.name} table.',
               f'Which {column} has {row} in the {table.name} table?',
               f'Read {column} for {row} in the table {table.name}.')

    def turn(user, row):
        return question(
            kit, user, f'the {column} of {row} in {table.name}',
            ('table_lookup', (table.name, row, column)),
            lambda r: f'The {column} is {r[column]}.',
            lambda r: f'The {column} of {row} is {r[column]}.',
            number_check(kit, table.cells[row][column], user))

    return [turn(user, row),
            turn(rng.choice((f'And of {other}?', f'What about {other}?')),
                 other)]


def headings(kind):
    """Returns a function that draws a question for the 'rows' or 'columns' of
    a table."""

    def draw(rng, world, kit):
        table = rng.choice(list(world.tables().values()))
        user = ask(rng, f'Which {kind} does the table {table.name} have?',
                   f'List the {kind} of the table {table.name}.',
                   f'What {kind} are in the table {table.name}?',
                   f'Show me the {kind} of table {table.name}.',
                   f'Name all {kind} of the {table.name} table.')
        names = table.rows() if kind == 'rows' else table.columns()

        return [question(kit, user, f'the {kind} of {table.name}',
                         ('table_' + kind, (table.name,)),
                         lambda r: 'The result has them.',
                         lambda r: f'The {kind} are {listed(r[kind])}.',
                         words_check(kit, *names))]

    return draw


KINDS = (
    ('calculator', sums),
    ('calculator', spoken_sums),
    ('calculator', percents),
    ('calculator', purchases),
    ('convert', conversions),
    ('convert', conversions),
    ('get_weather', weather),
    ('get_weather', weather),
    ('get_time', clock),
    ('find_person', people),
    ('send_message', messages),
    ('kv_get', reads),
    ('kv_set', writes),
    ('kv_list', keys),
    ('table_lookup', cells),
    ('table_lookup', cells),
    ('table_rows', headings('rows')),
    ('table_columns', headings('columns')),
)
