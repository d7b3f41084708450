# Copyright (C) The nginx-dsa authors

"""Trips over several days that need backtracking: a city, a hotel, a
restaurant and an attraction for each day.  Direct lines lead into dead ends,
and what a day costs limits the others."""

from itertools import product

from worlds.general.category import Category, Rule, When
from worlds.general.choose import table


DAYS = 3


def trip_db(rng, names):
    cities = names.draw(6)
    found = {}
    for c in cities:
        found[c] = {'lines': sorted(rng.sample([x for x in cities if x != c],
                                               2)),
                    'hotels': table(rng, names.draw(2), price=(30, 200),
                                    stars=(1, 40)),
                    'restaurants': table(rng, names.draw(2), price=(8, 60),
                                         rating=(20, 50)),
                    'attractions': table(rng, names.draw(2), ticket=(0, 40),
                                         queue=(1, 90))}

    return {'task': {'start': cities[0]}, 'cities': found}


PLACES = ('hotel', 'restaurant', 'attraction')


def trip_every(db):
    def days(city):
        return product(*(db['cities'][city][p + 's'] for p in PLACES))

    def go(route):
        if len(route) == DAYS:
            for choice in product(*map(days, route)):
                yield [{'city': c, **dict(zip(PLACES, d))}
                       for c, d in zip(route, choice)]
            return
        for c in db['cities'][route[-1]]['lines']:
            if c not in route:
                yield from go([*route, c])

    yield from go([db['task']['start']])


def place(db, day, kind):
    return db['cities'][day['city']][kind + 's'][day[kind]]


def cost(db, day):
    return place(db, day, 'hotel')['price'] \
        + place(db, day, 'restaurant')['price'] \
        + place(db, day, 'attraction')['ticket']


TRIP = Category(
    name='trip',
    intro=('Plan a trip of three days. The first day is in {start}; each next '
           'day is in another city, to which a direct line leads from the city '
           'of the day before. No city comes twice. Hotel, restaurant and '
           'attraction are in the city of the day.',
           'I start in {start} and travel for three days, each in a city of '
           'its own that I have not seen before and can reach from the last '
           'one by a direct line. Every day needs a hotel, a restaurant and an '
           'attraction there.'),
    form='a list of three objects with city, hotel, restaurant, attraction',
    database=trip_db,
    tools='''
def get_start(db):
    """Returns the city of the first day."""
    return db["task"]["start"]

def list_lines(db, city: str):
    """Lists the cities to which a direct line leads from a city."""
    if city not in db["cities"]:
        raise ValueError("no such city: " + city)
    return db["cities"][city]["lines"]

def list_places(db, city: str):
    """Returns the hotels (price), restaurants (price) and attractions
    (ticket) of a city."""
    if city not in db["cities"]:
        raise ValueError("no such city: " + city)
    c = db["cities"][city]
    return {"hotels": {h: v["price"] for h, v in c["hotels"].items()},
            "restaurants": {r: v["price"]
                            for r, v in c["restaurants"].items()},
            "attractions": {a: v["ticket"]
                            for a, v in c["attractions"].items()}}
''',
    head='''
start = get_start()
lines = {}
places = {}
seen = [start]
for city in seen:
    lines[city] = list_lines(city)
    places[city] = list_places(city)
    for c in lines[city]:
        if c not in seen:
            seen.append(c)
''',
    search='''
plans = [([], 0, [])]
while plans:
    plan, spent, costs = plans.pop()
    if len(plan) < 3:
        cities = lines[plan[-1]["city"]] if plan else [start]
        for c in cities:
            if any(d["city"] == c for d in plan):
                continue
            for h, x in places[c]["hotels"].items():
                for r, y in places[c]["restaurants"].items():
                    for a, z in places[c]["attractions"].items():
                        day = {"city": c, "hotel": h, "restaurant": r,
                               "attraction": a}
                        plans.append((plan + [day], spent + x + y + z,
                                      costs + [[x, y, z]]))
        continue
    RULES
    return plan
''',
    verify='''
cities = db["cities"]
if not isinstance(answer, list) or len(answer) != 3:
    return "it is not a list of three days"
hotels = []
tables = []
sights = []
been = []
for day in answer:
    if not isinstance(day, dict) or sorted(day) != [
            "attraction", "city", "hotel", "restaurant"]:
        return "a day has other fields"
    if not all([isinstance(v, str) for v in day.values()]):
        return "a field is no text"
    if day["city"] not in cities:
        return "no such city"
    if day["city"] in been:
        return "a city is there twice"
    if been and day["city"] not in cities[been[-1]]["lines"]:
        return "there is no direct line"
    if not been and day["city"] != db["task"]["start"]:
        return "the first day is elsewhere"
    been.append(day["city"])
    c = cities[day["city"]]
    if day["hotel"] not in c["hotels"] \\
            or day["restaurant"] not in c["restaurants"] \\
            or day["attraction"] not in c["attractions"]:
        return "a place is not in the city of its day"
    hotels.append(c["hotels"][day["hotel"]])
    tables.append(c["restaurants"][day["restaurant"]])
    sights.append(c["attractions"][day["attraction"]])
''',
    every=trip_every,
    structure=('connected', 'distinct', 'located'),
    rules=(
        Rule('sum', 'the cost of all hotels, restaurants and attractions',
             '<=', 'spent',
             'sum([h["price"] for h in hotels]) + sum([t["price"] for t in '
             'tables]) + sum([s["ticket"] for s in sights])',
             lambda db, a: sum(cost(db, d) for d in a)),
        Rule('conditional', 'the restaurant and the attraction of the second '
             'day together', '<=',
             'costs[1][1] + costs[1][2]',
             'tables[1]["price"] + sights[1]["ticket"]',
             lambda db, a: cost(db, a[1]) - place(db, a[1], 'hotel')['price'],
             when=When('the hotel of the second day costs', 'costs[1][0]',
                       'hotels[1]["price"]',
                       lambda db, a: place(db, a[1], 'hotel')['price'])),
        Rule('extreme', 'the rating of the worst restaurant', '>=',
             'min(rating[d["restaurant"]] for d in plan)',
             'min([t["rating"] for t in tables])',
             lambda db, a: min(place(db, d, 'restaurant')['rating']
                               for d in a),
             load='''
rating = {}
for c in places:
    rating.update(list_ratings(c))
''', tool='''
def list_ratings(db, city: str):
    """Returns the rating of each restaurant of a city."""
    if city not in db["cities"]:
        raise ValueError("no such city: " + city)
    return {r: v["rating"]
            for r, v in db["cities"][city]["restaurants"].items()}
'''),
        Rule('difference', 'the difference between the dearest and the '
             'cheapest day', '<=',
             'max(sum(x) for x in costs) - min(sum(x) for x in costs)',
             'max([hotels[i]["price"] + tables[i]["price"] '
             '+ sights[i]["ticket"] for i in (0, 1, 2)]) '
             '- min([hotels[i]["price"] + tables[i]["price"] '
             '+ sights[i]["ticket"] for i in (0, 1, 2)])',
             lambda db, a: max(cost(db, d) for d in a)
             - min(cost(db, d) for d in a)),
    ))


CATEGORIES = (TRIP,)
