# Copyright (C) The nginx-dsa authors

"""Requests for trips, and worlds in which each has a solution.

A trip has one to three days, one city per day, and starts in a given city.  On
the day of the limits, the price of the hotel determines the limits for the two
restaurants and the attraction, as in the paper's example: the more expensive
the hotel, the stricter the limits.
"""

from dataclasses import dataclass
from itertools import permutations
from typing import Optional, Tuple

from tasks import trip_text, trip_world


@dataclass
class Limits:
    """Limits that apply if the hotel costs hotel_from or more.

    rated           so many of the two restaurants must have the rating ...
    rating          ... of at least this
    together_under  the sum of both restaurants is less, or None: any
    ticket_under    the ticket of the attraction is less, or None: any
    """
    hotel_from: int
    rated: int
    rating: float
    together_under: Optional[int] = None
    ticket_under: Optional[int] = None


@dataclass
class Request:
    """
    start   the city of day 1
    dates   of the days
    day     the day of the limits, from 1
    limits  sorted from the most expensive hotels; the first whose hotel_from
            is reached applies; the last one has a hotel_from of 0
    text    the whole request in the words of a user
    """
    start: str
    dates: Tuple[str, ...]
    day: int
    limits: Tuple[Limits, ...]
    text: str = ''


def make(rng, size, days):
    """Returns (request, world).  In each city some choice satisfies the
    limits, and at least half of the choices do not."""

    limits = draw_limits(rng)
    dates = trip_world.dates(rng, days)

    # a lowest price at each limit, so that the cheapest hotels of the worlds
    # are evenly distributed over the limits

    floors = [max(x.hotel_from, trip_world.HOTEL_LEAST) for x in limits]
    world = trip_world.make(rng, size, dates, floors,
                            lambda city: 0 < passing(city, limits) <= 0.5)

    request = Request(rng.choice(list(world.cities)), dates,
                      rng.randint(1, days), limits)
    request.text = trip_text.phrase(rng, request)
    return request, world


def draw_limits(rng):
    """Returns three Limits, none of them stricter in anything than the one
    before.  So the cheapest hotel always has the loosest limits."""

    dear = 10 * rng.randint(22, 32)
    fair = dear - 10 * rng.randint(4, 9)
    rating = rng.randint(36, 43)
    ticket = 5 * rng.randint(7, 12)
    lower = rating - rng.randint(0, 4)

    return (Limits(dear, 2, rating / 10, 5 * rng.randint(15, 26), ticket),
            Limits(fair, 1, lower / 10, None, ticket + 5 * rng.randint(1, 4)),
            Limits(0, 1, (lower - rng.randint(1, 6)) / 10))


def passing(city, limits):
    """Returns the share of a city's choices that satisfy the limits."""

    pairs = list(permutations(city.restaurants.values(), 2))
    tickets = [a['ticket'] for a in city.attractions.values()]
    good = 0

    for hotel in city.hotels.values():
        held = next(x for x in limits if hotel['price'] >= x.hotel_from)
        cheap = [t for t in tickets if under(t, held.ticket_under)]

        for a, b in pairs:
            rated = [r for r in (a, b) if r['rating'] >= held.rating]

            if len(rated) >= held.rated \
                    and under(a['price'] + b['price'], held.together_under):
                good += len(cheap)

    return good / (len(city.hotels) * len(pairs) * len(tickets))


def under(price, limit):
    return limit is None or price < limit
