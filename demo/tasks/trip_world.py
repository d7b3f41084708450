# Copyright (C) The nginx-dsa authors

"""A database of cities, places and the lines between them, made from rng.

Prices are integers: a night in a hotel has three digits and ends in 0 or 5,
dinner and tickets have two digits.  Ratings are tenths from 2.5 to 4.9.
Within a city no two places of a kind have an equal number, so that 'the
cheapest' is unique.  No two places of a world share the first word of their
names.
"""

from dataclasses import dataclass, field
from typing import Dict, Tuple

from tasks import names, words
from tasks.parts import Split, part
from tasks.phrase import capital


# Places begin with words that cannot be confused with a weather, a region or a
# kind of place.  There are many for training, so that names are copied instead
# of remembered.

CONFUSED = '''bridge cloud coast garden hotel museum night north palace park
rain sea snow storm sun tower town train weather wind'''.split()

HELD_OUT = [
    *'''Badge Beacon Breeze Camel Candy Chalk Clay Comet Cotton Daisy Delta Dune
    Fable Feather Fiddle Forge Frost Gull Indigo Jasper Juniper Lagoon
    Lodestar Magnet Meadow Mirror Myrtle Nutmeg Oasis Oyster Palm Parrot Peach
    Peony Pigeon Pistachio Pony Quartz Quill Rabbit Ribbon Saddle Shell Sparrow
    Summit Thistle Thyme Turtle Valley Vanilla Vine Wagon Willet
    Yarrow'''.split(),
    *(capital(w) for w in names.ADJECTIVES if w not in (
        'northern', 'southern', 'western', 'stormy', 'sunny', 'foggy',
        'golden', 'silver', 'green', 'iron', 'quiet', 'red', 'blue', 'white',
        'winter', 'velvet'))]

TRAINING = [
    *'''Acorn Alder Amber Anvil Apple Arrow Ash Aspen Aster Badger Barley Basil
    Beech Bell Berry Birch Blue Brass Brook Candle Castle Cedar Cherry Clover
    Cobalt Copper Coral Crane Crown Dawn Deer Dove Eagle Echo Elder Elm Ember
    Falcon Fern Finch Fir Flint Fox Garnet Ginger Glass Gold Grape Green Harbor
    Hare Harp Hawk Hazel Heron Honey Iris Iron Ivy Jade Kite Lake Lantern Lark
    Laurel Lemon Lilac Lily Linden Lion Lotus Maple Marble Mill Mint Moon Moss
    Oak Olive Onyx Opal Orchid Otter Owl Pearl Pebble Pepper Pine Plum Poplar
    Poppy Quiet Raven Red Reed River Robin Rose Ruby Rye Saffron Sage Salt
    Silver Spring Star Stone Swan Thorn Tiger Topaz Tulip Velvet Violet Walnut
    White Willow Winter Wolf Wren'''.split(),
    *map(capital, names.NOUNS.training), *names.LAST.training]

FIRST = Split.given([w for w in dict.fromkeys(TRAINING)
                     if w not in HELD_OUT and w.lower() not in CONFUSED],
                    HELD_OUT)

HOTEL = 'Court Hotel House Inn Lodge Rest'.split()
RESTAURANT = 'Cafe Diner Grill Kitchen Table Tavern'.split()
ATTRACTION = 'Bridge Garden Museum Palace Park Temple Tower Zoo'.split()

REGIONS = 'coast east hills north south west'.split()
WEATHER = 'clouds fog rain snow storm sun wind'.split()
VEHICLES = 'boat bus plane train'.split()

HOTEL_LEAST = 100
HOTEL_MOST = 400


@dataclass
class City:
    """
    hotels       name -> {'price', 'stars'}
    restaurants  name -> {'price', 'rating'}
    attractions  name -> {'ticket', 'opens'}; opens is an hour
    weather      date -> {'weather', 'degrees'}
    lines        city -> {'by', 'price'}; the way back has the same
    population   in thousands
    """
    population: int
    region: str
    hotels: Dict[str, dict]
    restaurants: Dict[str, dict]
    attractions: Dict[str, dict]
    weather: Dict[str, dict] = field(default_factory=dict)
    lines: Dict[str, dict] = field(default_factory=dict)


@dataclass
class World:
    """cities by name; dates, such as '2025-10-01', are those with weather."""
    cities: Dict[str, City]
    dates: Tuple[str, ...]


@dataclass
class Size:
    """How many of each there are: (least, most); the last three are per
    city."""
    cities: Tuple[int, int]
    hotels: Tuple[int, int]
    restaurants: Tuple[int, int]
    attractions: Tuple[int, int]


def dates(rng, n):
    """Returns n consecutive days of one month."""

    year, month = rng.choice((2025, 2026, 2027)), rng.randint(1, 12)
    day = rng.randint(1, 29 - n)
    return tuple(f'{year}-{month:02}-{day + i:02}' for i in range(n))


def make(rng, size, days, floors=(HOTEL_LEAST,), fits=None):
    """Returns a world with weather for the dates in days.

    floors  in each city all hotels cost at least one of these
    fits    city -> bool; a city's numbers are drawn again until it is true
    """
    words_left = part(rng, FIRST)
    first = iter(rng.sample(words_left, len(words_left)))
    people = iter(rng.sample(range(20, 1000), size.cities[1]))
    cities = {}

    def places(span, second):
        return [f'{next(first)} {rng.choice(second)}'
                for _ in range(rng.randint(*span))]

    for name in words.cities(rng, rng.randint(*size.cities)):
        hotels = places(size.hotels, HOTEL)
        restaurants = places(size.restaurants, RESTAURANT)
        attractions = places(size.attractions, ATTRACTION)
        floor = rng.choice(floors)
        population, region = next(people), rng.choice(REGIONS)

        while True:
            city = City(population, region,
                        hotel_numbers(rng, hotels, floor),
                        restaurant_numbers(rng, restaurants),
                        attraction_numbers(rng, attractions))

            if fits is None or fits(city):
                break

        for day in days:
            city.weather[day] = {'weather': rng.choice(WEATHER),
                                 'degrees': rng.randint(2, 35)}

        cities[name] = city

    connect(rng, cities)
    return World(cities, tuple(days))


def hotel_numbers(rng, names, floor):
    prices = rng.sample(range(floor, HOTEL_MOST, 5), len(names))
    stars = rng.sample(range(1, 6), len(names))
    return {n: {'price': p, 'stars': s}
            for n, p, s in zip(names, prices, stars)}


def restaurant_numbers(rng, names):
    prices = rng.sample(range(12, 90), len(names))
    ratings = rng.sample(range(25, 50), len(names))
    return {n: {'price': p, 'rating': r / 10}
            for n, p, r in zip(names, prices, ratings)}


def attraction_numbers(rng, names):
    tickets = rng.sample(range(10, 90), len(names))
    opens = rng.sample(range(7, 13), len(names))
    return {n: {'ticket': t, 'opens': o}
            for n, t, o in zip(names, tickets, opens)}


def connect(rng, cities):
    """Draws the lines: a ring, so that every route through three cities can be
    continued, and some across; no city has more than three."""

    ring = rng.sample(list(cities), len(cities))
    pairs = {frozenset((ring[i - 1], ring[i])) for i in range(len(ring))}
    count = {name: 2 for name in ring}

    for a in ring:
        for b in ring:
            if a != b and frozenset((a, b)) not in pairs \
                    and max(count[a], count[b]) < 3 and rng.random() < 0.3:
                pairs.add(frozenset((a, b)))
                count[a] += 1
                count[b] += 1

    for a in rng.sample(ring, len(ring)):
        for b in rng.sample(ring, len(ring)):
            if frozenset((a, b)) in pairs and b not in cities[a].lines:
                line = {'by': rng.choice(VEHICLES),
                        'price': rng.randint(10, 99)}
                cities[a].lines[b] = line
                cities[b].lines[a] = line
