# Copyright (C) The nginx-dsa authors

"""Tools as people write them.

A Service is what a tool does.  In each task its tool has another name, another
description, other names for its arguments, other fields in its results and
another layout of them, so that a model must read the list of tools and the
results.
"""

import json
from dataclasses import dataclass
from typing import Callable, Optional, Tuple

from tasks.parts import Split, drawn
from tasks.phrase import expand
from tasks.task import Text, Tool


@dataclass(frozen=True)
class Parameter:
    """
    role      what it means; a case has its value under this name
    names     those that it may have
    about     a description with alternatives
    kind      its JSON type
    choices   the values of an enum, or none
    needed    false if a call may leave it out
    several   it may be a list of texts instead of a text
    """
    role: str
    names: Tuple[str, ...]
    about: str
    kind: str = 'string'
    choices: Tuple[str, ...] = ()
    needed: bool = True
    several: bool = False


def parameter(role, names, about, kind='string', choices=(), **more):
    return Parameter(role, tuple(names.split()), about, kind,
                     tuple(choices), **more)


@dataclass(frozen=True)
class Service:
    """
    names     of the tool, words with alternatives; the style joins them
    about     descriptions with alternatives
    takes     its Parameters
    gives     the fields of a record of its result, or () for an action, whose
              result is that it was done
    topic     a noun for it
    plain     its results are Texts, as from a terminal
    """
    names: Tuple[str, ...]
    about: Split
    takes: Tuple[Parameter, ...]
    gives: Tuple[str, ...]
    topic: str
    plain: bool = False


def service(topic, names, about, takes, gives='', plain=False):
    return Service(tuple(names.splitlines()), Split(about.splitlines()),
                   tuple(takes), tuple(gives.split()), topic, plain)


# names of the fields of results

FIELDS = {
    'temp': 'temperature temp temp_c temperature_c current_temp degrees',
    'sky': 'sky condition conditions summary description weather',
    'wind': 'wind wind_kmh wind_speed windSpeed wind_kph',
    'humidity': 'humidity humidity_percent rel_humidity relativeHumidity',
    'city': 'city location place name town',
    'title': 'title headline name heading',
    'site': 'site source url domain link',
    'snippet': 'snippet text summary excerpt description',
    'price': 'price last last_price close value current',
    'change': 'change change_percent delta pct_change',
    'symbol': 'symbol ticker code',
    'result': 'result converted converted_amount value amount output',
    'rate': 'rate exchange_rate fx_rate factor',
    'translation': 'translation translated_text translatedText output text',
    'distance': 'distance distance_km km length_km distanceKm',
    'minutes': 'minutes duration duration_min travel_time time_minutes eta',
    'name': 'name title display_name label',
    'rating': 'rating stars score',
    'street': 'street address location street_address',
    'opens': 'opens opening_time open_from openAt',
    'phone': 'phone phone_number tel mobile number',
    'mail': 'email mail email_address contact',
    'sender': 'from sender author from_name',
    'subject': 'subject title topic',
    'day': 'day date when on',
    'time': 'time start start_time at begins',
    'event': 'event title summary name',
    'state': 'state status value current_state',
    'where': 'location place current_location last_seen at',
    'file': 'name file filename path',
    'size': 'size bytes size_kb length',
    'task': 'task text title reminder',
    'text': 'text',
    'stock': 'stock in_stock quantity available count',
    'cost': 'price cost amount unit_price total',
}

WRAP = 'request params input options payload query_params arguments body'
OUTER = 'data result results response output payload items current'
STYLES = ('snake',) * 6 + ('camel',) * 3 + ('kebab', 'pascal')


def joined(words, style):
    if style == 'camel':
        return words[0] + ''.join(w.capitalize() for w in words[1:])

    if style == 'pascal':
        return ''.join(w.capitalize() for w in words)

    return ('-' if style == 'kebab' else '_').join(words)


class Api:
    """The tool of a service in a task.

    name     of the tool
    tool     the Tool
    known    [(arguments by role, result)]: what it answers; others are not
             found
    """

    def __init__(self, rng, service, style=None, failing=()):
        """failing are results that the first calls get instead."""

        self.service = service

        # one of four has another style, so that there is a name of both parts

        self.name = drawn(rng, lambda: joined(
            expand(rng, rng.choice(service.names)).split(),
            style if style and rng.random() < 0.75
            else rng.choice(STYLES)))
        self.known = []
        self.failing = list(failing)
        self.names = {}
        self.lists = set()
        self.fields = {f: rng.choice(FIELDS[f].split())
                       for f in service.gives}
        self.layout = rng.choice(LAYOUTS)
        self.outer = rng.choice(OUTER.split())
        self.done = rng.choice(DONE)
        self.number = rng.randrange(100, 100000)
        self.wrap = None
        self.tool = Tool(self.function(rng), self.run)

    def function(self, rng):
        """Returns the "function" object of the tool."""

        described = rng.random() < 0.75
        properties, needed = {}, []

        for p in self.service.takes:
            if not p.needed and rng.random() < 0.5:
                continue

            name = rng.choice([n for n in p.names
                               if n not in properties] or [p.role])
            self.names[p.role] = name
            schema = {'type': p.kind}

            if p.several and rng.random() < 0.3:
                self.lists.add(p.role)
                schema = {'type': 'array', 'items': {'type': 'string'}}

            if described and p.about:
                schema['description'] = expand(rng, p.about)

            if p.choices:
                schema['enum'] = list(p.choices)

            properties[name] = schema
            needed += [name] if p.needed else []

        whole = {'type': 'object', 'properties': properties}

        if needed and rng.random() < 0.8:
            whole['required'] = needed

        if rng.random() < 0.12:
            whole['additionalProperties'] = False

        if len(properties) > 1 and rng.random() < 0.12:
            self.wrap = rng.choice(WRAP.split())
            whole = {'type': 'object', 'properties': {self.wrap: whole},
                     'required': [self.wrap]}

        function = {'name': self.name}

        if described or rng.random() < 0.6:
            function['description'] = expand(rng,
                                             rng.choice(self.service.about))

        if properties or rng.random() < 0.7:
            function['parameters'] = whole

        return function

    def call(self, given):
        """Returns the (name, arguments) of a Step's call; given is by
        role."""

        arguments = {self.names[r]: [v] if r in self.lists else v
                     for r, v in given.items() if r in self.names}

        return self.name, {self.wrap: arguments} if self.wrap else arguments

    def roles(self, arguments):
        """Returns the arguments of a call by role."""

        if self.wrap:
            arguments = arguments.get(self.wrap, {})

        given = {}

        for role, name in self.names.items():
            if name in arguments:
                value = arguments[name]
                given[role] = value[0] if isinstance(value, list) and value \
                    else value

        return given

    def learn(self, given, records, accepts=None):
        """Makes the tool answer a call that has these arguments by role with
        these records.  accepts compares other arguments, or is None."""

        self.known.append((given, records, accepts or same))

    def run(self, arguments):
        asked = self.roles(arguments)

        if self.failing:
            return self.failing.pop(0)

        for given, records, accepts in self.known:
            if all(role in asked and accepts(role, value, asked[role])
                   for role, value in given.items() if role in self.names):
                return self.show(records)

        raise ValueError('nothing found for '
                         + ', '.join(str(v)[:40] for v in asked.values()))

    def show(self, records):
        if isinstance(records, Text):
            return records

        if not self.service.gives:
            made = self.done(self.number)

            return Text(made) if isinstance(made, str) else made

        made = self.layout([{self.fields[f]: r[f]
                             for f in self.service.gives if f in r}
                            for r in records], self.outer)

        return Text(made) if isinstance(made, str) else made


def same(role, wanted, value):
    """Returns true if an argument is the wanted one; letters may differ in
    case, and blanks and marks at the ends."""

    if isinstance(wanted, (int, float)) or isinstance(value, (int, float)):
        try:
            return abs(float(value) - float(wanted)) < 1e-9
        except (TypeError, ValueError):
            return False

    return plainly(value) == plainly(wanted)


def plainly(text):
    return ' '.join(str(text).lower().replace('"', '').split()).strip(".!? '")


# layouts of a result: (records, the name of an outer object) -> a value for
# json.dumps, or a text

def rows(records):
    return [' | '.join(map(str, r.values())) for r in records]


def table(records, outer):
    return '\n'.join([' | '.join(records[0])] + rows(records)) if records \
        else 'no rows'


def comma_table(records, outer):
    return '\n'.join([','.join(records[0])] + [','.join(map(str, r.values()))
                                               for r in records]) \
        if records else '(empty)'


def lines(records, outer):
    return '\n\n'.join('\n'.join(f'{k}: {v}' for k, v in r.items())
                       for r in records) or 'No results.'


def sentence(records, outer):
    return '\n'.join(', '.join(f'{k} {v}' for k, v in r.items())
                     for r in records) or 'Nothing found.'


def bare(records, outer):
    return records[0] if len(records) == 1 else records


def inside(records, outer):
    return {outer: bare(records, outer)}


def counted(records, outer):
    return {'count': len(records), outer: records}


def status(records, outer):
    return {'status': 'ok', outer: bare(records, outer)}


def meta(records, outer):
    return {outer: records, 'meta': {'took_ms': 12, 'page': 1}}


LAYOUTS = (bare, bare, inside, counted, status, meta, lines, table, sentence,
           comma_table)

# results of actions: a number -> a value

DONE = (lambda n: {'ok': True}, lambda n: {'success': True, 'id': n},
        lambda n: {'status': 'ok'}, lambda n: {'status': 'success'},
        lambda n: {'id': str(n), 'status': 'created'}, lambda n: 'OK',
        lambda n: 'Done.', lambda n: {'result': 'done', 'error': None},
        lambda n: {'data': {'id': n}, 'errors': []}, lambda n: {'code': 200},
        lambda n: f'success (id {n})', lambda n: {'queued': True, 'ref': n})


@dataclass
class Use:
    """One use of a service in a task.

    user      the request
    given     the right arguments by role
    records   the result
    answer    the gold answer
    keys      words that an answer must have; "a|b" is a or b
    want      what the user wants, a verb with its object
    accepts   (role, wanted, value) -> whether an argument is right
    slots     its case
    kind      the kind of use
    """
    service: Service
    user: str
    given: dict
    records: object
    answer: str
    keys: Tuple[str, ...]
    want: str
    accepts: Optional[Callable] = None
    slots: Optional[dict] = None
    kind: object = None


def text_of(result):
    """Returns a result as the model reads it."""

    return result if isinstance(result, str) \
        else json.dumps(result, ensure_ascii=False)
