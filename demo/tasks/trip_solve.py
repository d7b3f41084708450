# Copyright (C) The nginx-dsa authors

"""The gold policy of trip planning.

For choices without limits it takes the first possibility: the first line to a
new city, the first hotel, the first restaurants.  On the day of the limits it
takes the cheapest hotel, because the limits of cheaper hotels are never
stricter, and then the first restaurants and the first attraction that satisfy
them.  So it never has to revise a choice.

A thought about a day also has their number, and whether it is the last one,
because a model that has to find this in the request plans a day too many or too
few.
"""

import json
from itertools import combinations

from tasks import digits
from tasks.task import Step
from tasks.trip_think import Mind, compared, first_of, infos


def gold(request):
    """Returns the gold policy: mode -> generator of steps."""

    def policy(mode):
        mind = Mind(mode)
        n = len(request.dates)
        days = []
        mind.think(f'{n} {"day" if n == 1 else "days"}, limits on day '
                   f'{request.day}. Day 1 of {n} {request.start}.')
        city = request.start

        for i in range(1, n + 1):
            results = yield mind.step(*look_round(city, last=i == n))
            days.append(Day(city, *results[:3]))

            if i != request.day:
                mind.think(f'Day {i} of {n} {days[-1].take_first()}')

            if i < n:
                thought, city = next_city(results[3], days)
                last = ', the last:' if i + 1 == n else ''
                mind.think(f'{thought} Day {i + 1} of {n}{last} {city}.')

        yield from keep_limits(mind, days[request.day - 1], request)

        plan = [d.plan(date) for d, date in zip(days, request.dates)]
        yield mind.step(('submit_result',
                         {'answer_text': json.dumps(plan)}))

        # the last step repeats the submitted plan

        yield Step('Received.', ' '.join(
            f'Day {i}: {d.city}, {d.hotel}.' for i, d in enumerate(days, 1)))

    return policy


class Day:
    """A day's city, its places, and the choices made."""

    def __init__(self, city, hotels, restaurants, attractions):
        self.city = city
        self.hotels = hotels['hotels']
        self.restaurants = restaurants['restaurants']
        self.attractions = attractions['attractions']
        self.hotel = self.attraction = self.noon = self.evening = None

    def take_first(self):
        self.hotel, self.attraction = self.hotels[0], self.attractions[0]
        self.noon, self.evening = self.restaurants[:2]
        return self.taken()

    def taken(self):
        """Returns the thought with the choices, in the order of the plan."""

        return (f'{self.city}: {self.hotel}, {self.noon}, '
                f'{self.attraction}, {self.evening}.')

    def plan(self, date):
        return {'time': date,
                'city': self.city,
                'hotel': self.hotel,
                'afternoon_restaurant': self.noon,
                'afternoon_attraction': self.attraction,
                'evening_restaurant': self.evening}


def look_round(city, last):
    """Returns the calls that list the places of a city."""

    names = ['get_all_hotels_by_city', 'get_all_restaurants_by_city',
             'get_all_attractions_by_city']

    if not last:
        names.append('get_city_transport')

    return [(name, {'city': city}) for name in names]


def next_city(transport, days):
    """Returns (thought, city)."""

    seen = [d.city for d in days]
    said = [f'Seen {", ".join(seen)}. Lines:']

    for city in transport['lines']:
        if city not in seen:
            said.append(f'{city} new.')
            break
        said.append(f'{city} used.')

    return ' '.join(said), city


def keep_limits(mind, day, request):
    """Makes the choices of the day of the limits."""

    mind.think(f'Limits on day {request.day}: hotels of {day.city}.')
    results = yield mind.step(*infos('hotel', day.hotels, 'price'))
    prices = {r['hotel']: r['price'] for r in results}
    thought, day.hotel = first_of(prices, '<', 'cheapest')
    mind.think(thought)

    thought, held = which_limits(prices[day.hotel], request.limits)
    mind.think(thought)

    wanted = ['rating'] if held.together_under is None \
        else ['price', 'rating']
    calls = infos('restaurant', day.restaurants, *wanted)

    if held.ticket_under is not None:
        calls += infos('attraction', day.attractions, 'ticket')

    results = yield mind.step(*calls)
    n = len(day.restaurants)
    choose_restaurants(mind, day, held, results[:n])
    choose_attraction(mind, day, held, results[n:])
    mind.think(f'Day {request.day} of {len(request.dates)} {day.taken()}')


def which_limits(price, limits):
    """Returns (thought, Limits)."""

    said = []

    for held in limits:
        if held.hotel_from == 0:
            break
        sign = digits.sign(price, held.hotel_from)
        said.append(digits.compare(price, held.hotel_from))
        if sign != '<':
            break

    rules = [('one' if held.rated == 1 else 'both') + f' {held.rating}']

    if held.together_under is not None:
        rules.append(f'together {held.together_under}')

    if held.ticket_under is not None:
        rules.append(f'ticket {held.ticket_under}')

    return ' '.join(said) + ': ' + ', '.join(rules) + '.', held


def choose_restaurants(mind, day, held, results):
    good = []

    for r in results:
        mind.think(compared(r['restaurant'], r['rating'], held.rating, '>='))

        if r['rating'] >= held.rating:
            good.append(r)

        if held.rated == 1 and len(good) == 1:
            day.noon = r['restaurant']
            day.evening = next(x for x in day.restaurants if x != day.noon)
            return

    for a, b in combinations(good, 2):
        day.noon, day.evening = a['restaurant'], b['restaurant']
        total = a['price'] + b['price']
        mind.think(f'{day.noon} {a["price"]}, {day.evening} {b["price"]}',
                   *digits.add(a['price'], b['price']),
                   compared('together', total, held.together_under, '<'))

        if total < held.together_under:
            return


def choose_attraction(mind, day, held, results):
    if held.ticket_under is None:
        day.attraction = day.attractions[0]
        return

    for r in results:
        mind.think(compared(r['attraction'], r['ticket'], held.ticket_under,
                            '<'))

        if r['ticket'] < held.ticket_under:
            day.attraction = r['attraction']
            return
