# Copyright (C) The nginx-dsa authors

"""Categories in which steps lead from one place to another."""

from itertools import combinations, product

from worlds.general.category import Category, Rule, When
from worlds.general.choose import table


# a route along roads

def route_db(rng, names):
    towns = names.draw(8)
    found = table(rng, towns, height=(10, 900))
    roads = {t: {} for t in towns}
    for i, j in combinations(range(len(towns)), 2):
        if j == i + 1 or rng.random() < 0.5:
            road = {'km': rng.randint(5, 90), 'toll': rng.randint(0, 30)}
            roads[towns[i]][towns[j]] = roads[towns[j]][towns[i]] = road

    return {'task': {'start': towns[0], 'end': towns[-1]},
            'towns': found, 'roads': roads}


def route_every(db):
    def go(path):
        if path[-1] == db['task']['end']:
            yield path
            return
        for t in db['roads'][path[-1]]:
            if t not in path:
                yield from go(path + [t])

    yield from go([db['task']['start']])


def road(name):
    return lambda db, a: [db['roads'][x][y][name] for x, y in zip(a, a[1:])]


ROUTE = Category(
    name='route',
    intro=('Find a route along roads from {start} to {end} that visits no '
           'town twice.',
           'I drive from {start} and want to arrive in {end}, on roads, '
           'without passing a town again.'),
    form='a list of the towns in their order, with the first and the last',
    database=route_db,
    tools='''
def get_request(db):
    """Returns the first and the last town of the route."""
    return db["task"]

def list_roads(db, town: str):
    """Lists the roads from a town, with kilometres and toll."""
    if town not in db["roads"]:
        raise ValueError("no such town: " + town)
    return [{"to": t, "km": r["km"], "toll": r["toll"]}
            for t, r in db["roads"][town].items()]

def list_towns(db):
    """Lists all towns."""
    return list(db["towns"])
''',
    head='''
ends = get_request()
roads = {}
for t in list_towns():
    roads[t] = list_roads(t)
''',
    search='''
todo = [([ends["start"]], [])]
while todo:
    path, used = todo.pop()
    if path[-1] != ends["end"]:
        for r in roads[path[-1]]:
            if r["to"] in path:
                continue
            todo.append((path + [r["to"]], used + [r]))
        continue
    RULES
    return path
''',
    verify='''
roads = db["roads"]
if not isinstance(answer, list) or len(answer) < 2:
    return "it is not a list of towns"
for t in answer:
    if not isinstance(t, str) or t not in roads:
        return "no such town"
if len(set(answer)) != len(answer):
    return "a town is there twice"
if answer[0] != db["task"]["start"] or answer[-1] != db["task"]["end"]:
    return "it has other ends"
legs = []
for i in range(1, len(answer)):
    if answer[i] not in roads[answer[i - 1]]:
        return "there is no road"
    legs.append(roads[answer[i - 1]][answer[i]])
''',
    every=route_every,
    structure=('connected', 'distinct'),
    least=60,
    rules=(
        Rule('sum', 'the length in kilometres', '<=',
             'sum(r["km"] for r in used)', 'sum([r["km"] for r in legs])',
             lambda db, a: sum(road('km')(db, a))),
        Rule('count', 'the number of towns on the route, with both ends',
             '>=', 'len(path)', 'len(answer)', lambda db, a: len(a)),
        Rule('sum', 'the sum of the tolls', '<=',
             'sum(r["toll"] for r in used)', 'sum([r["toll"] for r in legs])',
             lambda db, a: sum(road('toll')(db, a))),
        Rule('sum', 'the sum of the heights of its towns', '<=',
             'sum(height[t] for t in path)',
             'sum([db["towns"][t]["height"] for t in answer])',
             lambda db, a: sum(db['towns'][t]['height'] for t in a),
             load='height = {t: get_height(t) for t in roads}', tool='''
def get_height(db, town: str):
    """Returns the height of a town above the sea in metres."""
    if town not in db["towns"]:
        raise ValueError("no such town: " + town)
    return db["towns"][town]["height"]
'''),
    ))


# exchanges of money

STEPS = 4


def exchange_db(rng, names):
    money = names.draw(7)
    worth = {m: rng.randint(200, 3000) for m in money}
    found = {m: {'rates': {}, 'minutes': rng.randint(1, 40),
                 'trust': rng.randint(1, 99)} for m in money}
    for m in money:
        for n in money:
            if m != n:
                fair = 1000 * worth[m] // worth[n]
                found[m]['rates'][n] = {
                    'rate': max(1, fair * rng.randint(930, 1030) // 1000),
                    'fee': rng.randint(1, 50)}

    return {'task': {'start': money[0], 'end': money[1]}, 'money': found}


def exchange_every(db):
    start, end = db['task']['start'], db['task']['end']
    for middle in product(db['money'], repeat=STEPS - 1):
        path = [start, *middle, end]
        if all(x != y for x, y in zip(path, path[1:])):
            yield path


def amount(db, a):
    n = 1000000
    for x, y in zip(a, a[1:]):
        n = n * db['money'][x]['rates'][y]['rate'] // 1000
    return n


EXCHANGE = Category(
    name='exchange',
    intro=('Exchange 1000000 {start} in exactly four exchanges so that we end '
           'with {end}. An exchange multiplies by the rate, divides by 1000 '
           'and rounds down. Currencies may come again.',
           'We have 1000000 {start} and want {end}, after four exchanges and '
           'not fewer. Each one gives the amount times the rate over 1000, '
           'rounded down; a currency may be used more than once.'),
    form='a list of the five currencies, from the first to the last',
    database=exchange_db,
    tools='''
def get_request(db):
    """Returns the first and the last currency."""
    return db["task"]

def list_currencies(db):
    """Returns the minutes that an exchange from each currency takes."""
    return {m: v["minutes"] for m, v in db["money"].items()}

def get_rates(db, currency: str):
    """Returns the rate and the fee from a currency to each other one."""
    if currency not in db["money"]:
        raise ValueError("no such currency: " + currency)
    return db["money"][currency]["rates"]
''',
    head='''
wanted = get_request()
minutes = list_currencies()
rates = {}
for m in minutes:
    rates[m] = get_rates(m)
''',
    search='''
paths = [([wanted["start"]], 1000000)]
for step in range(4):
    paths = [(p + [m], n * rates[p[-1]][m]["rate"] // 1000)
             for p, n in paths for m in minutes if m != p[-1]]
for p, n in paths:
    if p[-1] != wanted["end"]:
        continue
    RULES
    return p
''',
    verify='''
money = db["money"]
if not isinstance(answer, list) or len(answer) != 5:
    return "it is not a list of five currencies"
for m in answer:
    if not isinstance(m, str) or m not in money:
        return "no such currency"
if [answer[0], answer[4]] != [db["task"]["start"], db["task"]["end"]]:
    return "it has other ends"
left = 1000000
fees = []
for i in (0, 1, 2, 3):
    if answer[i] == answer[i + 1]:
        return "an exchange into the same currency"
    offer = money[answer[i]]["rates"][answer[i + 1]]
    left = left * offer["rate"] // 1000
    fees.append(offer["fee"])
''',
    every=exchange_every,
    structure=('connected', 'length'),
    rules=(
        Rule('product', 'the final amount', '>=', 'n', 'left', amount),
        Rule('sum', 'the sum of the minutes', '<=',
             'sum(minutes[m] for m in p[:-1])',
             'sum([money[answer[i]]["minutes"] for i in (0, 1, 2, 3)])',
             lambda db, a: sum(db['money'][m]['minutes'] for m in a[:-1])),
        Rule('extreme', 'the highest fee of an exchange', '<=',
             'max(rates[p[i]][p[i + 1]]["fee"] for i in range(4))',
             'max(fees)',
             lambda db, a: max(db['money'][x]['rates'][y]['fee']
                               for x, y in zip(a, a[1:]))),
        Rule('sum', 'the sum of the trust scores of the three currencies in '
             'the middle', '>=',
             'sum(trust[m] for m in p[1:4])',
             'money[answer[1]]["trust"] + money[answer[2]]["trust"] '
             '+ money[answer[3]]["trust"]',
             lambda db, a: sum(db['money'][m]['trust'] for m in a[1:4]),
             load='trust = {m: get_trust(m) for m in minutes}', tool='''
def get_trust(db, currency: str):
    """Returns the trust score of a currency."""
    if currency not in db["money"]:
        raise ValueError("no such currency: " + currency)
    return db["money"][currency]["trust"]
'''),
    ))


# three buses that connect

def buses_db(rng, names):
    towns, lines = names.draw(6), names.draw(70)
    found = {}
    for b in lines:
        x, y = rng.sample(towns, 2)
        begins = rng.randint(300, 1000)
        found[b] = {'from': x, 'to': y, 'departs': begins,
                    'arrives': begins + rng.randint(15, 90),
                    'fare': rng.randint(2, 40), 'seats': rng.randint(1, 60)}

    return {'task': {'start': towns[0], 'end': towns[1]}, 'towns': towns,
            'buses': found}


def connects(x, y):
    return x['to'] == y['from'] and y['departs'] >= x['arrives'] + 5


def buses_every(db):
    b, task = db['buses'], db['task']
    first = [x for x in b if b[x]['from'] == task['start']]
    last = [x for x in b if b[x]['to'] == task['end']]
    for x in first:
        for y in b:
            if connects(b[x], b[y]):
                for z in last:
                    if connects(b[y], b[z]):
                        yield [x, y, z]


def bus(name):
    return lambda db, a: [db['buses'][b][name] for b in a]


BUSES = Category(
    name='buses',
    intro=('Find three buses that lead from {start} to {end}. Each change '
           'needs at least five minutes, in the same town.',
           'With exactly three buses I want to come to {end} from {start}. '
           'Where I change, the next one must leave from there, five minutes '
           'after my arrival or later.'),
    form='a list of the names of the three buses',
    database=buses_db,
    tools='''
def get_request(db):
    """Returns where the journey starts and ends."""
    return db["task"]

def list_towns(db):
    """Lists all towns."""
    return db["towns"]

def list_buses(db, town: str):
    """Lists the buses that leave a town, with times in minutes."""
    if town not in db["towns"]:
        raise ValueError("no such town: " + town)
    return [{"bus": b, "to": v["to"], "departs": v["departs"],
             "arrives": v["arrives"], "fare": v["fare"]}
            for b, v in db["buses"].items() if v["from"] == town]
''',
    head='''
journey = get_request()
leaving = {t: list_buses(t) for t in list_towns()}
''',
    search='''
for x in leaving[journey["start"]]:
    for y in leaving[x["to"]]:
        if y["departs"] - x["arrives"] < 5:
            continue
        for z in leaving[y["to"]]:
            if z["to"] != journey["end"] or z["departs"] - y["arrives"] < 5:
                continue
            RULES
            return [x["bus"], y["bus"], z["bus"]]
''',
    verify='''
buses = db["buses"]
if not isinstance(answer, list) or len(answer) != 3:
    return "it is not a list of three buses"
if not all([isinstance(b, str) and b in buses for b in answer]):
    return "no such bus"
ride = [buses[b] for b in answer]
if ride[0]["from"] != db["task"]["start"]:
    return "it starts elsewhere"
if ride[2]["to"] != db["task"]["end"]:
    return "it ends elsewhere"
waits = []
for i in (1, 2):
    if ride[i]["from"] != ride[i - 1]["to"]:
        return "a bus leaves from another town"
    waits.append(ride[i]["departs"] - ride[i - 1]["arrives"])
    if waits[-1] < 5:
        return "there is no time to change"
''',
    every=buses_every,
    structure=('connected', 'time windows'),
    least=60,
    rules=(
        Rule('sum', 'the sum of the fares', '<=',
             'x["fare"] + y["fare"] + z["fare"]',
             'sum([r["fare"] for r in ride])',
             lambda db, a: sum(bus('fare')(db, a))),
        Rule('gap', 'the longer of the two waits in minutes', '<=',
             'max(y["departs"] - x["arrives"], z["departs"] - y["arrives"])',
             'max(waits)',
             lambda db, a: max(d - e for d, e in zip(bus('departs')(db, a)[1:],
                                                     bus('arrives')(db, a)))),
        Rule('conditional', 'the fare of the last bus', '<=', 'z["fare"]',
             'ride[2]["fare"]', lambda db, a: bus('fare')(db, a)[2],
             when=When('the minute of arrival is', 'z["arrives"]',
                       'ride[2]["arrives"]',
                       lambda db, a: bus('arrives')(db, a)[2])),
        Rule('extreme', 'the number of seats in the smallest bus', '>=',
             'min(seats[x["bus"]], seats[y["bus"]], seats[z["bus"]])',
             'min([r["seats"] for r in ride])',
             lambda db, a: min(bus('seats')(db, a)),
             load='''
seats = {}
for t in leaving:
    seats.update(list_seats(t))
''', tool='''
def list_seats(db, town: str):
    """Returns the number of seats of each bus that leaves a town."""
    if town not in db["towns"]:
        raise ValueError("no such town: " + town)
    return {b: v["seats"] for b, v in db["buses"].items()
            if v["from"] == town}
'''),
    ))


CATEGORIES = (ROUTE, EXCHANGE, BUSES)
