# Copyright (C) The nginx-dsa authors

"""A plan of a trip is accepted if and only if it satisfies the request."""

import copy
import itertools
import json
import random
import unittest

from tasks import trip_request
from tasks.trip_verify import verify
from tasks.trip_world import Size
from trip_plans import FIELDS, solved


class Verifier(unittest.TestCase):

    def refuses(self, why, request, world, plan):
        text = plan if isinstance(plan, str) else json.dumps(plan)
        self.assertRegex(verify(request, world, text) or 'accepted', why)

    def test_garbage(self):
        request, world, plan = solved(0, 1)
        good = json.dumps(plan)
        self.assertIsNone(verify(request, world, good))
        self.assertIsNone(verify(request, world, f'\n {good} '))

        for text in (None, 5, plan, good.encode()):
            self.assertEqual(verify(request, world, text),
                             'the plan is no text')

        for text in ('', 'a plan', good[:-1], good + ']', '[' * 200000,
                     good.replace('"', "'"), '9' * 9999, '\x00', '\ud800'):
            self.assertEqual(verify(request, world, text),
                             'the plan is no JSON')

        for text in ('null', '1', 'NaN', '"x"', '{}',
                     json.dumps(plan[0]), json.dumps(good)):
            self.assertEqual(verify(request, world, text),
                             'the plan is no list')

        twice = good.replace('{', '{"city": "' + request.start + '", ')
        self.refuses('an object has a field twice', request, world, twice)

        # one character missing, or another one in its place

        rng = random.Random(0)

        for i in range(len(good)):
            for c in ('', rng.choice('x[{":,0}] ')):
                text = good[:i] + c + good[i + 1:]
                try:
                    same = json.loads(text) == plan
                except ValueError:
                    same = False
                self.assertEqual(verify(request, world, text) is None, same,
                                 text)

    def test_form(self):
        for days in (1, 2, 3):
            request, world, plan = solved(days, days)
            self.refuses(f'{days + 1} days instead of {days}', request,
                         world, plan + plan[:1])
            self.refuses(f'{days - 1} days instead of {days}', request,
                         world, plan[1:])

            for n in range(1, days + 1):
                for value in (None, [], 'x', 1):
                    self.refuses(f'day {n} is no object', request, world,
                                 plan[:n - 1] + [value] + plan[n:])

                for name in FIELDS:
                    bad = copy.deepcopy(plan)
                    del bad[n - 1][name]
                    self.refuses(f'day {n} has no {name}', request, world,
                                 bad)

                    for value in (None, 1, [], ['x'], {}, True):
                        bad[n - 1][name] = value
                        self.refuses(f'day {n}: {name} is no string',
                                     request, world, bad)

                bad = copy.deepcopy(plan)
                bad[n - 1]['note'] = ''
                self.refuses(f"day {n} has an unknown field 'note'", request,
                             world, bad)

                bad = copy.deepcopy(plan)
                bad[n - 1]['time'] = '2024-01-01'
                self.refuses(f"day {n} is '2024-01-01' instead of "
                             + request.dates[n - 1], request, world, bad)

    def test_nothing_twice(self):
        for seed in range(30):
            request, world, plan = solved(seed, 3)

            for name in FIELDS[1:]:
                bad = copy.deepcopy(plan)
                bad[2][name] = bad[0][name]
                self.refuses('day 3: \\w+ .* again', request, world, bad)

            for n in range(3):
                bad = copy.deepcopy(plan)
                bad[n]['evening_restaurant'] = bad[n]['afternoon_restaurant']
                self.refuses(f'day {n + 1}: restaurant .* again', request,
                             world, bad)

            bad = copy.deepcopy(plan)
            bad[1]['afternoon_restaurant'] = plan[0]['evening_restaurant']
            self.refuses('day 2: restaurant .* again', request, world, bad)

    def test_places(self):
        kinds = {'hotel': 'hotels', 'afternoon_restaurant': 'restaurants',
                 'evening_restaurant': 'restaurants',
                 'afternoon_attraction': 'attractions'}

        for seed in range(30):
            request, world, plan = solved(seed, 2)
            far = next(c for name, c in world.cities.items()
                       if name not in (plan[0]['city'], plan[1]['city']))

            for n in range(2):
                for name, kind in kinds.items():
                    bad = copy.deepcopy(plan)
                    bad[n][name] = next(iter(getattr(far, kind)))
                    self.refuses(f'day {n + 1}: no {name} .* in ', request,
                                 world, bad)

                    bad[n][name] = 'Nowhere Inn'
                    self.refuses(f'day {n + 1}: no {name} ', request, world,
                                 bad)

                    # a place of another kind

                    bad[n][name] = plan[n]['city']
                    self.refuses(f'day {n + 1}: no {name} ', request, world,
                                 bad)

                bad = copy.deepcopy(plan)
                bad[n]['city'] = 'Atlantis'
                self.refuses(f"day {n + 1}: no city 'Atlantis'", request,
                             world, bad)

                bad = copy.deepcopy(plan)
                bad[n]['hotel'] = bad[n]['hotel'].lower()
                self.refuses('no hotel', request, world, bad)

    def test_way(self):
        for seed in range(30):
            request, world, plan = solved(seed, 3)

            bad = copy.deepcopy(request)
            bad.start = plan[1]['city']
            self.refuses(f'day 1 is in .* instead of {bad.start}', bad,
                         world, plan)

            for n in (1, 2):
                bad = copy.deepcopy(world)
                a, b = plan[n - 1]['city'], plan[n]['city']
                del bad.cities[a].lines[b]
                self.refuses(f'day {n + 1}: no line from {a} to {b}',
                             request, bad, plan)

    def test_limits_by_one(self):
        """Sets each number to its limit, and one beyond it."""

        for seed in range(30):
            request, world, plan = solved(seed, seed % 3 + 1)
            day = plan[request.day - 1]
            dear, fair, cheap = request.limits

            def wrong(price, ratings, prices, ticket):
                w = copy.deepcopy(world)
                city = w.cities[day['city']]
                city.hotels[day['hotel']]['price'] = price
                city.attractions[day['afternoon_attraction']]['ticket'] \
                    = ticket
                for name, rating, cost in zip(
                        ('afternoon_restaurant', 'evening_restaurant'),
                        ratings, prices):
                    city.restaurants[day[name]].update(
                        rating=rating, price=cost)
                return verify(request, w, json.dumps(plan)) or ''

            def below(rating):
                return (round(rating * 10) - 1) / 10

            # dear: the limits of both ratings, of the sum, and of the ticket

            r, most = dear.rating, dear.together_under
            ticket = dear.ticket_under - 1

            for price in (dear.hotel_from, dear.hotel_from + 100):
                self.assertEqual(
                    wrong(price, (r, r), (20, most - 21), ticket), '')
                self.assertIn('restaurants cost', wrong(
                    price, (r, r), (20, most - 20), ticket))
                self.assertIn('attraction costs', wrong(
                    price, (r, r), (20, most - 21), ticket + 1))
                self.assertIn('1 instead of 2', wrong(
                    price, (below(r), r), (20, most - 21), ticket))
                self.assertIn('1 instead of 2', wrong(
                    price, (5.0, below(r)), (20, most - 21), ticket))

            # fair: the limits of one rating and of the ticket, any sum

            r, ticket = fair.rating, fair.ticket_under - 1

            for price in (fair.hotel_from, dear.hotel_from - 1):
                for ratings in ((r, 1.0), (1.0, r)):
                    self.assertEqual(
                        wrong(price, ratings, (most, most), ticket), '')
                self.assertIn('attraction costs', wrong(
                    price, (r, r), (10, 10), ticket + 1))
                self.assertIn('0 instead of 1', wrong(
                    price, (below(r), below(r)), (10, 10), ticket))

            # cheap: the limit of one rating, any sum and ticket

            r = cheap.rating

            for price in (1, fair.hotel_from - 1):
                for ratings in ((r, 1.0), (1.0, r)):
                    self.assertEqual(
                        wrong(price, ratings, (most, most), 999), '')
                self.assertIn('0 instead of 1', wrong(
                    price, (below(r), below(r)), (10, 10), 10))

    def test_limits_hold_on_their_day_only(self):
        for seed in range(20):
            request, world, plan = solved(seed, 2)
            city = world.cities[plan[2 - request.day]['city']]

            for h in city.hotels.values():
                h['price'] = 999
            for r in city.restaurants.values():
                r.update(price=999, rating=0.1)
            for a in city.attractions.values():
                a['ticket'] = 999

            self.assertIsNone(verify(request, world, json.dumps(plan)))

    def test_agrees_with_search(self):
        """Checks all plans of small worlds, right and wrong ones."""

        size = Size(cities=(3, 3), hotels=(2, 2), restaurants=(2, 3),
                    attractions=(2, 2))

        for seed in range(12):
            days = seed % 2 + 1
            request, world = trip_request.make(random.Random(seed), size,
                                               days)
            options = [list(every_day(world, date, days))
                       for date in request.dates]
            right = total = 0

            for plan in itertools.product(*options):
                total += 1
                expected = is_right(request, world, plan)
                right += expected
                self.assertEqual(
                    verify(request, world, json.dumps(plan)) is None,
                    expected, plan)

            self.assertGreater(right, 0)
            self.assertLess(right, total / 4)


def every_day(world, date, days):
    """Yields each day that is possible with a city and the places in it,
    including one restaurant twice.  For a single day, it also yields places of
    other cities."""

    for name, city in world.cities.items():
        around = world.cities.values() if days == 1 else [city]
        for values in itertools.product(
                [date], [name],
                [x for c in around for x in c.hotels],
                [x for c in around for x in c.restaurants],
                [x for c in around for x in c.attractions],
                [x for c in around for x in c.restaurants]):
            yield dict(zip(FIELDS, values))


def is_right(request, world, plan):
    """States the rules a second time, independently and briefly."""

    for i, day in enumerate(plan):
        city = world.cities[day['city']]
        noon, evening = day['afternoon_restaurant'], day['evening_restaurant']

        if noon == evening \
                or not {noon, evening} <= set(city.restaurants) \
                or day['hotel'] not in city.hotels \
                or day['afternoon_attraction'] not in city.attractions:
            return False

        before = plan[i - 1]['city'] if i else None

        if day['city'] in [d['city'] for d in plan[:i]] \
                or (before and day['city'] not in world.cities[before].lines):
            return False

    day = plan[request.day - 1]
    city = world.cities[day['city']]
    night = city.hotels[day['hotel']]['price']
    noon = city.restaurants[day['afternoon_restaurant']]
    evening = city.restaurants[day['evening_restaurant']]
    ticket = city.attractions[day['afternoon_attraction']]['ticket']
    dear, fair, cheap = request.limits
    best = max(noon['rating'], evening['rating'])
    worst = min(noon['rating'], evening['rating'])

    if night >= dear.hotel_from:
        kept = worst >= dear.rating and ticket < dear.ticket_under \
            and noon['price'] + evening['price'] < dear.together_under
    elif night >= fair.hotel_from:
        kept = best >= fair.rating and ticket < fair.ticket_under
    else:
        kept = best >= cheap.rating

    return kept and plan[0]['city'] == request.start


if __name__ == '__main__':
    unittest.main()
