# Copyright (C) The nginx-dsa authors

"""The tools of a task.

A role is what a tool does.  In each task a role has another name, another
description and other names for its arguments, so that the model must read the
list of tools and cannot learn the calls by heart.
"""

import json
from dataclasses import dataclass
from typing import Tuple

from tasks.task import Tool, function
from tasks.tools_calc import calculate
from tasks.tools_units import convert, convert_short


@dataclass(frozen=True)
class Role:
    """
    types      of the arguments, in order
    arguments  sets of names that the arguments may have"""
    names: Tuple[str, ...]
    descriptions: Tuple[str, ...]
    types: Tuple[str, ...]
    arguments: Tuple[Tuple[str, ...], ...]


def role(names, descriptions, types='', *arguments):
    return Role(tuple(names.split()), descriptions, tuple(types.split()),
                tuple(tuple(a.split()) for a in arguments) or ((),))


ROLES = {
    'calculator': role(
        'calculator calculate compute evaluate do_math',
        ('Computes an arithmetic expression',
         'Gives the value of an expression',
         'Works out sums, products and quotients'),
        'string', 'expression', 'formula', 'input'),

    'convert': role(
        'convert_units convert unit_converter change_units',
        ('Converts a number to another unit',
         'Changes the unit of a quantity',
         'Unit conversion of lengths, weights and more'),
        'number string string', 'value from_unit to_unit',
        'amount from to', 'number unit new_unit'),

    'kv_get': role(
        'kv_get get_value read_key store_get',
        ('Reads the value of a key',
         'Returns what the store has for a key',
         'Gets a stored value by key'),
        'string', 'key', 'name', 'key_name'),

    'kv_set': role(
        'kv_set set_value write_key store_set',
        ('Stores a value under a key',
         'Writes a key of the store',
         'Sets the stored value of a key'),
        'string string', 'key value', 'name content', 'key_name new_value'),

    'kv_list': role(
        'kv_list list_keys all_keys store_keys',
        ('Lists the keys of the store',
         'Returns all keys of the store',
         'Shows which keys are stored')),

    'table_lookup': role(
        'table_lookup lookup_cell read_cell table_get',
        ('Reads one cell of a table',
         'Returns a cell by row and column',
         'Looks up a number in a table'),
        'string string string', 'table row column',
        'table_name row_name column_name', 'table line field'),

    'table_columns': role(
        'table_columns list_columns columns_of get_columns',
        ('Lists the columns of a table',
         'Returns the names of all columns',
         'Shows which columns a table has'),
        'string', 'table', 'table_name', 'name'),

    'table_rows': role(
        'table_rows list_rows rows_of get_rows',
        ('Lists the rows of a table',
         'Returns the names of all rows',
         'Shows which rows a table has'),
        'string', 'table', 'table_name', 'name'),

    'get_weather': role(
        'get_weather weather_by_city weather city_weather forecast',
        ('Weather of a city on a day',
         'Returns temperature, sky and wind',
         'Weather forecast for a city'),
        'string string', 'city day', 'place weekday', 'town day'),

    'get_time': role(
        'get_time current_time clock now date_and_time',
        ("Today's date, weekday and time",
         'Returns the current date and time',
         'Tells the time and the date')),

    'find_person': role(
        'find_person person_info get_contact who_is',
        ('City and phone of a person',
         'Finds where a person lives, and the phone',
         'Looks up a person by name'),
        'string', 'name', 'person', 'who'),

    'send_message': role(
        'send_message send_text write_message message',
        ('Sends a message to a person',
         'Sends a text to somebody',
         'Writes a message to a person'),
        'string string', 'to text', 'person message', 'receiver body'),
}

# the stricter tool has the same descriptions

ROLES['convert_short'] = ROLES['convert']

# if days are given by date, the name of the argument shows it

DATED = ('city date', 'place date', 'town on_date')


class Kit:
    """The tools of a task.

    tools     by name, as Task.tools
    offered   the roles that are offered
    """

    def __init__(self, rng, world, needed, others=(0, 3), without=()):
        """needed are the roles that must be offered.  others is the least and
        the largest number of further roles; those in without are excluded."""

        spare = [r for r in ROLES
                 if r not in needed and r not in without
                 and r != 'convert_short'
                 and not (r == 'convert' and 'convert_short' in needed)]
        roles = list(needed) + rng.sample(spare, rng.randint(*others))

        rng.shuffle(roles)

        self.names = {}
        self.arguments = {}
        self.tools = {}

        for r in roles:
            self.add(rng, r, run_of(r, world), world.dated)

        self.offered = tuple(roles)

    def add(self, rng, which, run, dated):
        spec = ROLES[which]
        name = rng.choice(spec.names)
        arguments = rng.choice(spec.arguments)

        if which == 'get_weather' and dated:
            arguments = tuple(rng.choice(DATED).split())

        self.names[which] = name
        self.arguments[which] = arguments
        self.tools[name] = Tool(
            function(name, rng.choice(spec.descriptions),
                     **dict(zip(arguments, spec.types))),
            lambda given: run(*[given[a] for a in arguments]))

    def call(self, which, *values):
        """Returns the (name, arguments) of a Step's call."""

        return self.names[which], dict(zip(self.arguments[which], values))

    def done(self, which, calls):
        """For each successful call to a role, returns its arguments in
        order."""

        return [tuple(c.arguments[a] for a in self.arguments[which])
                for c in calls
                if c.name == self.names[which]
                and 'error' not in json.loads(c.result)]


def run_of(which, world):
    """Returns the function of a role."""

    free = {'calculator': calculate, 'convert': convert,
            'convert_short': convert_short}

    return free.get(which) or getattr(world, which)
