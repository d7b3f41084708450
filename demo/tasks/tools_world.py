# Copyright (C) The nginx-dsa authors

"""The data behind the tools: weather, people, a key-value store, tables, a
clock.

A World is drawn from rng.  Its methods implement the tools.  They take strings
and return values for JSON, or raise ValueError with a text that lists the
valid names.
"""

import datetime
from dataclasses import dataclass
from typing import Dict

from tasks.words import COLORS, PEOPLE, THINGS, cities


WEEKDAYS = '''Monday Tuesday Wednesday Thursday Friday Saturday
Sunday'''.split()

SKIES = 'sunny cloudy rainy snowy foggy stormy'.split()

# a table has one of the names of a group, and rows of that group

SHOPS = 'shop stock prices market'.split()
CLUBS = 'staff club team class'.split()
PLACES = 'towns places map region'.split()

COLUMNS = {
    'price': (2, 60),
    'count': (1, 90),
    'weight': (1, 40),
    'age': (18, 80),
    'height': (150, 199),
    'points': (1, 99),
    'distance': (5, 900),
    'altitude': (1, 990),
    'streets': (4, 99),
}

LONGEST = 300       # characters of a stored or sent text
STORED = 20         # keys in the store


def unknown(what, name, known):
    """Returns the error for a name that is not known."""

    return ValueError(f'unknown {what}: {name[:40]}; known: '
                      + ', '.join(known))


def look_up(what, name, known):
    """Returns known[name]; letters may differ in case."""

    for k in known:
        if k.lower() == name.strip().lower():
            return known[k]

    raise unknown(what, name, known)


@dataclass
class Table:
    """cells is row -> column -> number."""
    name: str
    cells: Dict[str, Dict[str, object]]

    def rows(self):
        return list(self.cells)

    def columns(self):
        return list(next(iter(self.cells.values())))

    def column(self, name):
        """Returns row -> number."""
        return {row: cells[name] for row, cells in self.cells.items()}


def draw_table(rng, names, rows, columns):
    """Returns a Table in which no column has a number twice, so that sorting
    has a unique order."""

    columns = rng.sample(columns, rng.randint(2, 3))
    numbers = {}

    for column in columns:
        low, high = COLUMNS[column]
        numbers[column] = rng.sample(range(low, high), len(rows))

        if column == 'price' and rng.random() < 0.3:
            numbers[column] = [n + 0.5 for n in numbers[column]]

    return Table(rng.choice(names),
                 {row: {c: numbers[c][i] for c in columns}
                  for i, row in enumerate(rows)})


class World:
    """
    dated     days are named by date instead of weekday
    days      those that have a forecast: today and those after it
    weather   city -> day -> {"temperature", "sky", "wind"}; on a day no two
              cities have the same temperature or wind
    people    name -> {"city", "phone"}
    store     key -> value, both strings
    """

    def __init__(self, rng):
        self.draw_days(rng)
        self.cities = cities(rng, 5)
        self.draw_weather(rng)
        self.draw_people(rng)
        self.draw_store(rng)
        self.shop = draw_table(rng, SHOPS,
                               rng.sample(THINGS, rng.randint(3, 5)),
                               ['price', 'count', 'weight'])
        self.club = draw_table(rng, CLUBS,
                               rng.sample(list(self.people),
                                          rng.randint(3, 5)),
                               ['age', 'height', 'points'])
        self.region = draw_table(rng, PLACES,
                                 rng.sample(self.cities, rng.randint(3, 5)),
                                 ['distance', 'altitude', 'streets'])

    def draw_days(self, rng):
        today = datetime.date(2025, 1, 1) \
            + datetime.timedelta(rng.randrange(1000))
        days = [today + datetime.timedelta(i) for i in range(4)]

        self.dated = rng.random() < 0.4
        self.days = [d.isoformat() if self.dated else WEEKDAYS[d.weekday()]
                     for d in days]
        self.now = {'date': today.isoformat(),
                    'weekday': WEEKDAYS[today.weekday()],
                    'time': f'{rng.randrange(24):02}:{rng.randrange(60):02}'}

    def draw_weather(self, rng):
        self.weather = {city: {} for city in self.cities}

        for day in self.days:
            temperatures = rng.sample(range(-9, 36), len(self.cities))
            winds = rng.sample(range(1, 80), len(self.cities))

            for i, city in enumerate(self.cities):
                self.weather[city][day] = {'temperature': temperatures[i],
                                           'sky': rng.choice(SKIES),
                                           'wind': winds[i]}

    def draw_people(self, rng):
        self.people = {
            name: {'city': rng.choice(self.cities),
                   'phone': f'{rng.randrange(100, 1000)}-'
                            f'{rng.randrange(1000, 10000)}'}
            for name in rng.sample(PEOPLE, 6)}

    def draw_store(self, rng):
        things = rng.sample(THINGS, rng.randint(3, 6))
        self.store = {f'{rng.choice(COLORS)}_{thing}':
                      str(rng.randrange(10, 1000)) for thing in things}

    def tables(self):
        return {t.name: t for t in (self.shop, self.club, self.region)}

    # implementations of the tools

    def get_weather(self, city, day):
        days = look_up('city', city, self.weather)
        return {'city': city, **look_up('day', day, days)}

    def get_time(self):
        return self.now

    def find_person(self, name):
        return {'name': name, **look_up('person', name, self.people)}

    def send_message(self, to, text):
        look_up('person', to, self.people)

        if len(text) > LONGEST:
            raise ValueError('text too long')

        return {'sent': True}

    def kv_get(self, key):
        return {'key': key, 'value': look_up('key', key, self.store)}

    def kv_set(self, key, value):
        if len(key) + len(value) > LONGEST:
            raise ValueError('value too long')

        if key not in self.store and len(self.store) == STORED:
            raise ValueError('store full')

        self.store[key] = value

        return {'ok': True}

    def kv_list(self):
        return {'keys': list(self.store)}

    def table_lookup(self, table, row, column):
        cells = look_up('table', table, self.tables()).cells
        return {'row': row,
                column: look_up('column', column,
                                look_up('row', row, cells))}

    def table_columns(self, table):
        return {'columns': look_up('table', table, self.tables()).columns()}

    def table_rows(self, table):
        return {'rows': look_up('table', table, self.tables()).rows()}
