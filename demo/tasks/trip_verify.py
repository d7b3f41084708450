# Copyright (C) The nginx-dsa authors

"""Verifies plans of trips.

It uses the request, the database and the text of an answer, and is independent
of the code that makes and solves requests.
"""

import json


FIELDS = ('time', 'city', 'hotel', 'afternoon_restaurant',
          'afternoon_attraction', 'evening_restaurant')

# kinds of which nothing may be twice in a plan, and their fields

ONCE = {'city': ('city',),
        'hotel': ('hotel',),
        'restaurant': ('afternoon_restaurant', 'evening_restaurant'),
        'attraction': ('afternoon_attraction',)}


class Wrong(Exception):
    """A plan is wrong; the text is the reason."""


def verify(request, world, text):
    """Returns None if text is a plan that satisfies the request, or else the
    reason."""

    try:
        plan = read(text)
        have_form(plan, request.dates)
        have_none_twice(plan)
        have_places(plan, world)
        have_lines(plan, request.start, world)
        keep_limits(plan, request, world)

    except Wrong as e:
        return str(e)

    return None


def read(text):
    if not isinstance(text, str):
        raise Wrong('the plan is no text')

    try:
        return json.loads(text, object_pairs_hook=read_object)
    except (ValueError, RecursionError):
        raise Wrong('the plan is no JSON') from None


def read_object(pairs):
    """Rejects an object with a repeated field, because it is ambiguous."""

    known = dict(pairs)

    if len(known) != len(pairs):
        raise Wrong('an object has a field twice')

    return known


def have_form(plan, dates):
    if not isinstance(plan, list):
        raise Wrong('the plan is no list')

    if len(plan) != len(dates):
        raise Wrong(f'{len(plan)} days instead of {len(dates)}')

    for n, (day, date) in enumerate(zip(plan, dates), 1):
        if not isinstance(day, dict):
            raise Wrong(f'day {n} is no object')

        for name in FIELDS:
            if name not in day:
                raise Wrong(f'day {n} has no {name}')
            if not isinstance(day[name], str):
                raise Wrong(f'day {n}: {name} is no string')

        for name in day:
            if name not in FIELDS:
                raise Wrong(f'day {n} has an unknown field {name!r}')

        if day['time'] != date:
            raise Wrong(f'day {n} is {day["time"]!r} instead of {date}')


def have_none_twice(plan):
    for kind, names in ONCE.items():
        seen = set()

        for n, day in enumerate(plan, 1):
            for name in names:
                if day[name] in seen:
                    raise Wrong(f'day {n}: {kind} {day[name]!r} again')
                seen.add(day[name])


def have_places(plan, world):
    for n, day in enumerate(plan, 1):
        city = world.cities.get(day['city'])

        if city is None:
            raise Wrong(f'day {n}: no city {day["city"]!r}')

        for name, there in (('hotel', city.hotels),
                            ('afternoon_restaurant', city.restaurants),
                            ('afternoon_attraction', city.attractions),
                            ('evening_restaurant', city.restaurants)):
            if day[name] not in there:
                raise Wrong(f'day {n}: no {name} {day[name]!r} in '
                            f'{day["city"]}')


def have_lines(plan, start, world):
    if plan[0]['city'] != start:
        raise Wrong(f'day 1 is in {plan[0]["city"]} instead of {start}')

    for n in range(1, len(plan)):
        a, b = plan[n - 1]['city'], plan[n]['city']
        if b not in world.cities[a].lines:
            raise Wrong(f'day {n + 1}: no line from {a} to {b}')


def keep_limits(plan, request, world):
    day = plan[request.day - 1]
    city = world.cities[day['city']]
    price = city.hotels[day['hotel']]['price']
    tables = [city.restaurants[day['afternoon_restaurant']],
              city.restaurants[day['evening_restaurant']]]
    ticket = city.attractions[day['afternoon_attraction']]['ticket']

    reached = [x for x in request.limits if x.hotel_from <= price]
    limits = max(reached, key=lambda x: x.hotel_from)

    where = f'day {request.day}, hotel for {price}: '
    rated = len([t for t in tables if t['rating'] >= limits.rating])
    together = sum(t['price'] for t in tables)

    if rated < limits.rated:
        raise Wrong(f'{where}{rated} instead of {limits.rated} restaurants '
                    f'rated {limits.rating} or better')

    if limits.together_under is not None \
            and together >= limits.together_under:
        raise Wrong(f'{where}the restaurants cost {together}, not under '
                    f'{limits.together_under}')

    if limits.ticket_under is not None and ticket >= limits.ticket_under:
        raise Wrong(f'{where}the attraction costs {ticket}, not under '
                    f'{limits.ticket_under}')
