# Copyright (C) The nginx-dsa authors

"""Categories in which the answer has amounts and times."""

from itertools import combinations

from worlds.general.category import Category, Rule, When
from worlds.general.choose import table


def split(n, parts, least=0):
    """Yields all lists of so many integers with the sum n."""

    if parts == 1:
        yield [n]
        return
    for first in range(least, n - least * (parts - 1) + 1):
        for rest in split(n - first, parts - 1, least):
            yield [first, *rest]


# ten units over five funds

def funds_db(rng, names):
    return {'task': {}, 'funds': table(rng, names.draw(5), gain=(1, 40),
                                       risk=(1, 40), cost=(1, 30))}


def funds_every(db):
    for units in split(10, len(db['funds'])):
        yield dict(zip(db['funds'], units))


def fund_sum(name):
    return lambda db, a: sum(n * db['funds'][f][name] for f, n in a.items())


FUNDS = Category(
    name='funds',
    intro=('Divide ten units among all funds; a fund may get 0 units.',
           'I hold ten units and five funds to put them into, some perhaps '
           'left at 0.'),
    form='an object from each fund to its number of units',
    database=funds_db,
    tools='''
def list_funds(db):
    """Lists the names of all funds."""
    return list(db["funds"])

def get_fund(db, fund: str):
    """Returns the gain and the risk of a unit of a fund."""
    if fund not in db["funds"]:
        raise ValueError("no such fund: " + fund)
    return {k: db["funds"][fund][k] for k in ("gain", "risk")}
''',
    head='''
names = list_funds()
fund = [get_fund(f) for f in names]
''',
    search='''
for a in range(11):
    for b in range(11 - a):
        for c in range(11 - a - b):
            for d in range(11 - a - b - c):
                units = [a, b, c, d, 10 - a - b - c - d]
                RULES
                return dict(zip(names, units))
''',
    verify='''
funds = db["funds"]
if not isinstance(answer, dict) or set(answer) != set(funds):
    return "it is not an object with all funds"
for n in answer.values():
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        return "a number of units is not an integer from 0"
if sum(answer.values()) != 10:
    return "the sum is not ten"
''',
    every=funds_every,
    canonical=lambda a: tuple(sorted((f, n) for f, n in a.items()
                                     if type(n) is int or 1 / 0)),
    structure=('total', 'integer'),
    rules=(
        Rule('weighted', 'the gain of all units', '>=',
             'sum(n * f["gain"] for n, f in zip(units, fund))',
             'sum([answer[f] * funds[f]["gain"] for f in funds])',
             fund_sum('gain')),
        Rule('weighted', 'the risk of all units', '<=',
             'sum(n * f["risk"] for n, f in zip(units, fund))',
             'sum([answer[f] * funds[f]["risk"] for f in funds])',
             fund_sum('risk')),
        Rule('extreme', 'the number of units in the fund with the most', '<=',
             'max(units)', 'max(answer.values())',
             lambda db, a: max(a.values())),
        Rule('weighted', 'the cost of all units', '<=',
             'sum(n * k for n, k in zip(units, cost))',
             'sum([answer[f] * funds[f]["cost"] for f in funds])',
             fund_sum('cost'),
             load='cost = [get_cost(f) for f in names]', tool='''
def get_cost(db, fund: str):
    """Returns the cost of a unit of a fund."""
    if fund not in db["funds"]:
        raise ValueError("no such fund: " + fund)
    return db["funds"][fund]["cost"]
'''),
    ))


# a trail in days

STAGES, DAYS = 13, 5


def trail_db(rng, names):
    return {'task': {}, 'stages': table(rng, names.draw(STAGES), km=(2, 15),
                                        climb=(0, 600), price=(10, 60))}


def trail_days(db, a, name):
    numbers = [s[name] for s in db['stages'].values()]
    found = []
    for n in a:
        found.append(numbers[:n])
        numbers = numbers[n:]
    return found


TRAIL = Category(
    name='trail',
    intro=('A trail has 13 stages, which come in a fixed order. Divide them '
           'into five days, with at least one stage a day. The nights are in '
           'the huts at the ends of the first four days.',
           'I walk the 13 stages of a trail, one after another, in five days '
           'and none of them without a stage; after each of the first four '
           'days I sleep in the hut where the last stage of the day ends.'),
    form='a list of five numbers: how many stages each day has',
    database=trail_db,
    tools='''
def list_stages(db):
    """Lists the stages in their order, with kilometres and climb."""
    return [{"stage": s, "km": v["km"], "climb": v["climb"]}
            for s, v in db["stages"].items()]
''',
    head='''
stages = list_stages()
''',
    search='''
for cuts in range(1 << (len(stages) - 1)):
    days = [[]]
    for i in range(len(stages)):
        days[-1].append(stages[i])
        if cuts >> i & 1:
            days.append([])
    if len(days) != 5:
        continue
    RULES
    return [len(d) for d in days]
''',
    verify='''
stages = list(db["stages"].values())
if not isinstance(answer, list) or len(answer) != 5:
    return "it is not a list of five numbers"
for n in answer:
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        return "a day has no number of stages from 1"
if sum(answer) != len(stages):
    return "it is not the whole trail"
days = []
at = 0
for n in answer:
    days.append(stages[at:at + n])
    at += n
''',
    every=lambda db: split(STAGES, DAYS, 1),
    canonical=lambda a: tuple(n if type(n) is int else 1 / 0 for n in a),
    structure=('partition', 'integer'),
    rules=(
        Rule('extreme', 'the kilometres of the longest day', '<=',
             'max(sum(s["km"] for s in d) for d in days)',
             'max([sum([s["km"] for s in d]) for d in days])',
             lambda db, a: max(map(sum, trail_days(db, a, 'km')))),
        Rule('extreme', 'the climb of the day with the most', '<=',
             'max(sum(s["climb"] for s in d) for d in days)',
             'max([sum([s["climb"] for s in d]) for d in days])',
             lambda db, a: max(map(sum, trail_days(db, a, 'climb')))),
        Rule('sum', 'the price of the four nights together', '<=',
             'sum(price[d[-1]["stage"]] for d in days[:4])',
             'sum([d[-1]["price"] for d in days[:4]])',
             lambda db, a: sum(d[-1] for d in
                               trail_days(db, a, 'price')[:-1]),
             load='''
price = {}
for s in stages:
    price[s["stage"]] = get_price(s["stage"])
''', tool='''
def get_price(db, stage: str):
    """Returns the price of a night in the hut where a stage ends."""
    if stage not in db["stages"]:
        raise ValueError("no such stage: " + stage)
    return db["stages"][stage]["price"]
'''),
        Rule('difference', 'the difference in kilometres between the first '
             'and the last day', '<=',
             'abs(sum(s["km"] for s in days[0]) '
             '- sum(s["km"] for s in days[4]))',
             'abs(sum([s["km"] for s in days[0]]) '
             '- sum([s["km"] for s in days[4]]))',
             lambda db, a: abs(sum(trail_days(db, a, 'km')[0])
                               - sum(trail_days(db, a, 'km')[-1]))),
    ))


# a mixture of three paints

def paints_db(rng, names):
    return {'task': {}, 'paints': table(rng, names.draw(6), red=(0, 99),
                                        blue=(0, 99), price=(1, 40),
                                        hours=(1, 30))}


def paints_every(db):
    for three in combinations(db['paints'], 3):
        for parts in split(8, 3, 1):
            yield dict(zip(three, parts))


def paint_sum(name):
    return lambda db, a: sum(n * db['paints'][p][name] for p, n in a.items())


PAINTS = Category(
    name='paints',
    intro=('Mix three different paints, eight parts in all, each of them with '
           'at least one part.',
           'A colour is made of eight parts, of exactly three kinds of '
           'paint, none with less than one part.'),
    form='an object from each of the three paints to its number of parts',
    database=paints_db,
    tools='''
def list_paints(db):
    """Lists all paints, with the red and the blue of a part."""
    return [{"paint": p, "red": v["red"], "blue": v["blue"]}
            for p, v in db["paints"].items()]

def get_price(db, paint: str):
    """Returns the price of a part of a paint."""
    if paint not in db["paints"]:
        raise ValueError("no such paint: " + paint)
    return db["paints"][paint]["price"]
''',
    head='''
paints = list_paints()
price = {p["paint"]: get_price(p["paint"]) for p in paints}
''',
    search='''
for i in range(len(paints)):
    for j in range(i):
        for k in range(j):
            for n in range(1, 7):
                for m in range(1, 8 - n):
                    mix = [(paints[i], n), (paints[j], m),
                           (paints[k], 8 - n - m)]
                    RULES
                    return {p["paint"]: q for p, q in mix}
''',
    verify='''
paints = db["paints"]
if not isinstance(answer, dict) or len(answer) != 3:
    return "it is not an object with three paints"
for p, n in answer.items():
    if p not in paints:
        return "no such paint"
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        return "a number of parts is not an integer from 1"
if sum(answer.values()) != 8:
    return "there are not eight parts"
''',
    every=paints_every,
    canonical=lambda a: tuple(sorted((f, n) for f, n in a.items()
                                     if type(n) is int or 1 / 0)),
    structure=('total', 'size'),
    rules=(
        Rule('weighted', 'the red of all parts', '>=',
             'sum(p["red"] * q for p, q in mix)',
             'sum([paints[p]["red"] * answer[p] for p in answer])',
             paint_sum('red')),
        Rule('weighted', 'the price of all parts', '<=',
             'sum(price[p["paint"]] * q for p, q in mix)',
             'sum([paints[p]["price"] * answer[p] for p in answer])',
             paint_sum('price')),
        Rule('difference', 'the difference between the red and the blue of '
             'all parts', '<=',
             'abs(sum((p["red"] - p["blue"]) * q for p, q in mix))',
             'abs(sum([paints[p]["red"] * answer[p] for p in answer]) '
             '- sum([paints[p]["blue"] * answer[p] for p in answer]))',
             lambda db, a: abs(paint_sum('red')(db, a)
                               - paint_sum('blue')(db, a))),
        Rule('extreme', 'the hours that the slowest of them needs to dry',
             '<=',
             'max(hours[p["paint"]] for p, q in mix)',
             'max([paints[p]["hours"] for p in answer])',
             lambda db, a: max(db['paints'][p]['hours'] for p in a),
             load='''
hours = {}
for p in paints:
    hours[p["paint"]] = get_hours(p["paint"])
''', tool='''
def get_hours(db, paint: str):
    """Returns the hours that a paint needs to dry."""
    if paint not in db["paints"]:
        raise ValueError("no such paint: " + paint)
    return db["paints"][paint]["hours"]
'''),
    ))


# a meeting

WEEK = ('Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday')


def meeting_db(rng, names):
    people = {p: {'busy': {d: sorted(rng.sample(range(8, 18), 4))
                           for d in WEEK}, 'way': rng.randint(1, 9)}
              for p in names.draw(6)}
    rooms = {r: {'seats': rng.randint(3, 9), 'rent': rng.randint(5, 60),
                 'walk': rng.randint(1, 20),
                 'closed': rng.sample(WEEK, 1)} for r in names.draw(6)}

    return {'task': {}, 'people': people, 'rooms': rooms}


def meeting_every(db):
    for room, r in db['rooms'].items():
        for day in WEEK:
            if day not in r['closed']:
                for hour in range(8, 18):
                    yield {'day': day, 'hour': hour, 'room': room}


def free(db, a):
    return sum(a['hour'] not in p['busy'][a['day']]
               for p in db['people'].values())


MEETING = Category(
    name='meeting',
    intro=('Find a day from Monday to Friday, an hour from 8 to 17 and a room '
           'that is not closed on that day, for a meeting of an hour.',
           'When and where do we meet for an hour? It must be a weekday, begin '
           'at 8 or later and at 17 at the latest, in a room that is open on '
           'the day.'),
    form='an object with day, hour (a number) and room',
    database=meeting_db,
    tools='''
def list_people(db):
    """Lists all people."""
    return list(db["people"])

def get_busy(db, person: str):
    """Returns the hours at which a person is busy, by day."""
    if person not in db["people"]:
        raise ValueError("no such person: " + person)
    return db["people"][person]["busy"]

def list_rooms(db):
    """Lists all rooms, with their rent, seats, and the days when they are
    closed."""
    return [{"room": r, "rent": v["rent"], "seats": v["seats"],
             "closed": v["closed"]} for r, v in db["rooms"].items()]
''',
    head='''
busy = [get_busy(p) for p in list_people()]
rooms = list_rooms()
''',
    search='''
for day in busy[0]:
    for hour in range(8, 18):
        absent = [b for b in busy if hour in b[day]]
        for r in rooms:
            if day in r["closed"]:
                continue
            RULES
            return {"day": day, "hour": hour, "room": r["room"]}
''',
    verify='''
if not isinstance(answer, dict) or sorted(answer) != ["day", "hour", "room"]:
    return "it is not an object with day, hour and room"
day = answer["day"]
hour = answer["hour"]
if not isinstance(day, str) or day not in ("Monday", "Tuesday", "Wednesday",
                                           "Thursday", "Friday"):
    return "no such day"
if not isinstance(hour, int) or isinstance(hour, bool) or not 8 <= hour < 18:
    return "no such hour"
if not isinstance(answer["room"], str) or answer["room"] not in db["rooms"]:
    return "no such room"
room = db["rooms"][answer["room"]]
if day in room["closed"]:
    return "the room is closed"
''',
    every=meeting_every,
    structure=('time windows',),
    rules=(
        Rule('count', 'the number of people who are free', '>=',
             'len(busy) - len(absent)',
             'len([p for p in db["people"].values() '
             'if hour not in p["busy"][day]])', free),
        Rule('difference', 'the rent of the room', '<=', 'r["rent"]',
             'room["rent"]', lambda db, a: db['rooms'][a['room']]['rent']),
        Rule('conditional', 'the number of seats of the room', '>=',
             'r["seats"]', 'room["seats"]',
             lambda db, a: db['rooms'][a['room']]['seats'],
             when=When('the hour is', 'hour', 'hour',
                       lambda db, a: a['hour'])),
        Rule('sum', 'the walk to the room plus the hour', '<=',
             'walk[r["room"]] + hour', 'room["walk"] + hour',
             lambda db, a: db['rooms'][a['room']]['walk'] + a['hour'],
             load='walk = {r["room"]: get_walk(r["room"]) for r in rooms}',
             tool='''
def get_walk(db, room: str):
    """Returns the minutes to walk to a room."""
    if room not in db["rooms"]:
        raise ValueError("no such room: " + room)
    return db["rooms"][room]["walk"]
'''),
    ))


CATEGORIES = (FUNDS, TRAIL, PAINTS, MEETING)
