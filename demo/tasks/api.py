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

from tasks.habits import (STYLES, joined, parameter_style, role_about,
                          tool_about, tool_words)
from tasks.layouts import DONE, KEYED, LAYOUTS, OUTER, noise
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
    always    its description is never left out, since it states the form
    kept      every tool has it, though a call may leave it out
    inside    names of the object that has it, or ''
    """
    role: str
    names: Tuple[str, ...]
    about: str
    kind: str = 'string'
    choices: Tuple[str, ...] = ()
    needed: bool = True
    several: bool = False
    always: bool = False
    kept: bool = False
    inside: str = ''


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
    schema    nobody could call it without its description
    """
    names: Tuple[str, ...]
    about: Split
    takes: Tuple[Parameter, ...]
    gives: Tuple[str, ...]
    topic: str
    plain: bool = False
    schema: bool = False


def service(topic, names, about, takes, gives='', plain=False, schema=False):
    return Service(tuple(names.splitlines()), Split(about.splitlines()),
                   tuple(takes), tuple(gives.split()), topic, plain, schema)


# names of the fields of results; a field with a point in its role has the name
# after it

FIELDS = {
    'temp': 'temperature temp temp_c temperature_c current_temp degrees t_now',
    'sky': 'sky condition conditions summary description weather wx_text '
           'outlook',
    'wind': 'wind wind_kmh wind_speed windSpeed wind_kph speed_kmh',
    'humidity': 'humidity humidity_percent rel_humidity relativeHumidity rh',
    'city': 'city location place name town locality city_name',
    'title': 'title headline name heading page_title',
    'site': 'site source url domain link host website',
    'snippet': 'snippet text summary excerpt description abstract preview',
    'price': 'price last last_price close value current quote px',
    'change': 'change change_percent delta pct_change day_change diff',
    'symbol': 'symbol ticker code instrument',
    'result': 'result converted converted_amount value amount output answer',
    'rate': 'rate exchange_rate fx_rate factor ratio',
    'translation': 'translation translated_text translatedText output text '
                   'target_text translated',
    'distance': 'distance distance_km km length_km distanceKm kilometers',
    'minutes': 'minutes duration duration_min travel_time time_minutes eta '
               'total_minutes durationMinutes',
    'name': 'name title display_name label full_name',
    'rating': 'rating stars score avg_rating',
    'street': 'street address location street_address addr',
    'opens': 'opens opening_time open_from openAt from opens_at',
    'closes': 'closes closing_time open_until closesAt until closes_at',
    'phone': 'phone phone_number tel mobile number telephone phoneNumber',
    'mail': 'email mail email_address contact e_mail',
    'sender': 'from sender author from_name sent_by',
    'subject': 'subject title topic subject_line re',
    'day': 'day date when on date_text',
    'time': 'time start start_time at begins hour',
    'event': 'event title summary name entry',
    'state': 'state status value current_state condition',
    'where': 'location place current_location last_seen at whereabouts',
    'file': 'name file filename path file_name',
    'size': 'size bytes size_kb length',
    'task': 'task text title reminder todo',
    'text': 'text',
    'stock': 'stock in_stock quantity available count qty units_left',
    'cost': 'price cost amount unit_price total price_each',
    'low': 'low min temp_min min_temp night lowest',
    'high': 'high max temp_max max_temp day_temp highest',
    'rain': 'rain rain_chance precipitation_probability pop chance_of_rain '
            'rain_percent',
    'index': 'index aqi air_quality_index value aqi_value',
    'level': 'level category rating description quality',
    'pollen': 'pollen pollen_level pollen_count_level pollenLevel',
    'rises': 'rises sunrise sun_up sunrise_time dawn up',
    'sets': 'sets sunset sun_down sunset_time dusk down',
    'clock': 'time local_time current_time localTime now',
    'ahead': 'offset utc_offset gmt_offset utcOffset tz',
    'line': 'line route line_name service number',
    'leaves': 'leaves departure departure_time departs dep time',
    'stand': 'platform stop stand track bay platform_no',
    'gate': 'gate gate_no boarding_gate departure_gate',
    'lands': 'lands arrival arrival_time arrives arr eta',
    'year': 'year released release_year published first_published',
    'director': 'director directed_by directors made_by',
    'length': 'minutes runtime runtime_minutes length duration',
    'author': 'author written_by authors creator by',
    'pages': 'pages page_count num_pages length',
    'version': 'version latest latest_version current_version release',
    'license': 'license licence license_id spdx',
    'meaning': 'meaning definition sense gloss description',
    'sort': 'part_of_speech word_class pos class type',
    'against': 'opponent against other_team versus away_team',
    'score': 'score result final_score goals outcome',
    'starts': 'kickoff start start_time starts_at begins time',
    'parts': 'ingredients parts needs you_need shopping_list',
    'calories': 'calories kcal energy energy_kcal cal',
    'protein': 'protein protein_g proteins protein_grams',
    'holiday': 'holiday name title local_name holiday_name',
}

WRAP = '''request params input options payload query_params arguments body args
parameters data inputs filter config criteria spec'''


class Api:
    """The tool of a service in a task.

    name     of the tool
    tool     the Tool
    known    [(arguments by role, result)]: what it answers; others are not
             found
    offered  the names of all tools of the task, in the order of its list
    """

    def __init__(self, rng, service, style=None, failing=()):
        """failing are results that the first calls get instead."""

        self.service = service

        # one of four has another style, so that there is a name of both parts

        self.name = drawn(rng, lambda: joined(
            tool_words(rng, expand(rng, rng.choice(service.names)).split()),
            style if style and rng.random() < 0.75
            else rng.choice(STYLES)))
        self.known = []
        self.offered = [self.name]
        self.failing = list(failing)
        self.names = {}
        self.lists = set()
        self.fields = self.field_names(rng)
        self.noise = noise(rng, self.fields.values())
        self.texts = rng.random() < 0.1
        self.layout = rng.choice(LAYOUTS)
        self.outer = rng.choice(OUTER.split())
        self.done = rng.choice(DONE)
        self.number = rng.randrange(100, 100000)
        self.wrap = None
        self.objects = {}
        self.tool = Tool(self.function(rng), self.run)

    def field_names(self, rng):
        """Returns the name of each field of a result, all different."""

        keyed = rng.choice(KEYED)
        found = {}

        for f in self.service.gives:
            own = f.rpartition('.')[2]
            names = [n for n in FIELDS.get(f, own).split()
                     if n not in found.values()]
            found[f] = rng.choice(names or [own])

        return found if keyed is None else {f: keyed(n) for f, n
                                            in found.items()}

    def function(self, rng):
        """Returns the "function" object of the tool."""

        described = rng.random() < 0.75
        styled = parameter_style(rng)
        titled = rng.random() < 0.08
        properties, needed = {}, []

        for p in self.service.takes:
            if not p.needed and not p.kept and rng.random() < 0.5:
                continue

            names = [n for n in map(styled, p.names) if n not in properties]
            name = rng.choice(names or [p.role])
            self.names[p.role] = name
            schema = {'type': 'number' if p.kind == 'integer'
                      and rng.random() < 0.15 else p.kind}

            # as libraries write it that make schemas from classes

            if titled:
                schema = {'title': name.replace('_', ' ').title(), **schema}

            if p.kind == 'array':
                schema['items'] = {'type': 'string'}

            if p.several and rng.random() < 0.3:
                self.lists.add(p.role)
                schema = {'type': 'array', 'items': {'type': 'string'}}

            if described and p.about:
                schema['description'] = role_about(rng, expand(rng, p.about))

            if p.choices:
                schema['enum'] = list(p.choices)

            if p.always:
                schema['description'] = expand(rng, p.about)

            if p.inside:
                self.nest(rng, p, name, schema, properties, needed)
                continue

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

        if described or self.service.schema or rng.random() < 0.6:
            function['description'] = tool_about(
                rng, expand(rng, rng.choice(self.service.about)))

        if properties or rng.random() < 0.7:
            function['parameters'] = whole

        return function

    def nest(self, rng, p, name, schema, properties, needed):
        """Puts a property into its object, which is made if it is not
        there."""

        outer = self.objects.setdefault(
            p.inside, rng.choice(p.inside.split()))

        if outer not in properties:
            properties[outer] = {'type': 'object', 'properties': {}}
            needed.append(outer)

        whole = properties[outer]
        whole['properties'][name] = schema

        if p.needed:
            whole.setdefault('required', []).append(name)

    def call(self, given):
        """Returns the (name, arguments) of a Step's call; given is by
        role."""

        arguments = {}

        for p in self.service.takes:
            if p.role in given and p.role in self.names:
                value = given[p.role]
                into = arguments.setdefault(self.objects[p.inside], {}) \
                    if p.inside else arguments
                into[self.names[p.role]] = [value] if p.role in self.lists \
                    else value

        return self.name, {self.wrap: arguments} if self.wrap else arguments

    def roles(self, arguments):
        """Returns the arguments of a call by role."""

        if self.wrap:
            arguments = arguments.get(self.wrap, {})

        if not isinstance(arguments, dict):
            return {}

        given = {}

        for p in self.service.takes:
            name, found = self.names.get(p.role), arguments

            if p.inside:
                found = arguments.get(self.objects.get(p.inside), {})

            if isinstance(found, dict) and name in found:
                value = found[name]
                given[p.role] = value[0] if isinstance(value, list) \
                    and value and p.kind != 'array' else value

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

        made = self.layout([self.record(r) for r in records], self.outer)

        return Text(made) if isinstance(made, str) else made

    def record(self, r):
        named = {self.fields[f]: str(r[f]) if self.texts else r[f]
                 for f in self.service.gives if f in r}

        return {**named, **self.noise}


def same(role, wanted, value):
    """Returns true if an argument is the wanted one; letters may differ in
    case, and blanks and marks at the ends."""

    if isinstance(wanted, list):
        return isinstance(value, list) \
            and sorted(map(plainly, wanted)) == sorted(map(plainly, value))

    if isinstance(wanted, (int, float)) or isinstance(value, (int, float)):
        try:
            return abs(float(value) - float(wanted)) < 1e-9
        except (TypeError, ValueError):
            return False

    return plainly(value) == plainly(wanted)


def plainly(text):
    return ' '.join(str(text).lower().replace('"', '').split()).strip(".!? '")


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
