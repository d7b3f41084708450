# Copyright (C) The nginx-dsa authors

"""Categories in which one thing is assigned to another."""

from itertools import permutations, product

from worlds.general.category import Category, Rule, When
from worlds.general.choose import table


# shifts and workers

def shifts_db(rng, names):
    return {'task': {},
            'shifts': {f'{day} {half}': rng.randint(3, 9)
                       for day, half in (('Monday', 'early'),
                                         ('Monday', 'late'),
                                         ('Tuesday', 'early'),
                                         ('Tuesday', 'late'),
                                         ('Wednesday', 'early'))},
            'workers': table(rng, names.draw(5), wage=(10, 40), skill=(1, 60),
                             distance=(1, 50))}


def shifts_every(db):
    for w in product(db['workers'], repeat=len(db['shifts'])):
        if all(a != b for a, b in zip(w, w[1:])):
            yield list(w)


def worker(name):
    return lambda db, a: [db['workers'][w][name] for w in a]


SHIFTS = Category(
    name='shifts',
    intro=('Assign a worker to each shift, in the order of the shifts. Nobody '
           'may have two shifts in a row.',
           'Fill the rota: one worker for every shift, in their order, and '
           'always a different one in the shift after.'),
    form='a list with a worker for each shift, in the order of the shifts',
    database=shifts_db,
    tools='''
def list_shifts(db):
    """Lists the shifts in their order, with their hours."""
    return [{"shift": s, "hours": h} for s, h in db["shifts"].items()]

def list_workers(db):
    """Lists the names of all workers."""
    return list(db["workers"])

def get_worker(db, worker: str):
    """Returns the hourly wage and the skill of a worker."""
    if worker not in db["workers"]:
        raise ValueError("no such worker: " + worker)
    return {k: db["workers"][worker][k] for k in ("wage", "skill")}
''',
    head='''
shifts = list_shifts()
workers = {}
for w in list_workers():
    workers[w] = get_worker(w)
''',
    search='''
stack = [[]]
while stack:
    part = stack.pop()
    if len(part) < len(shifts):
        for w in workers:
            if not part or part[-1] != w:
                stack.append(part + [w])
        continue
    RULES
    return part
''',
    verify='''
workers = db["workers"]
hours = list(db["shifts"].values())
if not isinstance(answer, list) or len(answer) != len(hours):
    return "it is not a list with a worker for each shift"
for i in range(len(answer)):
    if not isinstance(answer[i], str) or answer[i] not in workers:
        return "it has something that is no worker"
    if i > 0 and answer[i] == answer[i - 1]:
        return "somebody has two shifts in a row"
''',
    every=shifts_every,
    structure=('no neighbours',),
    rules=(
        Rule('sum', 'the cost of all shifts (hours times wage)', '<=',
             'sum(s["hours"] * workers[w]["wage"] for s, w in '
             'zip(shifts, part))',
             'sum([hours[i] * workers[answer[i]]["wage"] for i in '
             'range(len(hours))])',
             lambda db, a: sum(x * y for x, y in zip(db['shifts'].values(),
                                                     worker('wage')(db, a)))),
        Rule('sum', 'the sum of the skills over all shifts', '>=',
             'sum(workers[w]["skill"] for w in part)',
             'sum([workers[w]["skill"] for w in answer])',
             lambda db, a: sum(worker('skill')(db, a))),
        Rule('count', 'the number of different workers', '>=',
             'len(set(part))', 'len({w: 1 for w in answer})',
             lambda db, a: len(set(a))),
        Rule('sum', 'the sum of the distances that the workers travel to '
             'their shifts', '<=',
             'sum(distance[w] for w in part)',
             'sum([workers[w]["distance"] for w in answer])',
             lambda db, a: sum(worker('distance')(db, a)),
             load='distance = {w: get_distance(w) for w in workers}',
             tool='''
def get_distance(db, worker: str):
    """Returns the distance from a worker's home in kilometres."""
    if worker not in db["workers"]:
        raise ValueError("no such worker: " + worker)
    return db["workers"][worker]["distance"]
'''),
    ))


# groups and rooms

def rooms_db(rng, names):
    return {'task': {},
            'groups': table(rng, names.draw(5), size=(4, 26)),
            'rooms': table(rng, names.draw(7), seats=(8, 40), rent=(10, 99),
                           floor=(0, 9), light=(1, 50))}


def rooms_every(db):
    for rooms in permutations(db['rooms'], len(db['groups'])):
        a = dict(zip(db['groups'], rooms))
        if all(db['rooms'][r]['seats'] >= db['groups'][g]['size']
               for g, r in a.items()):
            yield a


def room(name):
    return lambda db, a: [db['rooms'][r][name] for r in a.values()]


ROOMS = Category(
    name='rooms',
    intro=('Give each group a room of its own that has enough seats.',
           'Every group meets at the same hour. Find rooms, no two groups in '
           'the same one, and seats for all of each group.'),
    form='an object from each group to its room',
    database=rooms_db,
    tools='''
def list_groups(db):
    """Returns the number of people in each group."""
    return {g: v["size"] for g, v in db["groups"].items()}

def list_rooms(db):
    """Lists all rooms, with their seats."""
    return [{"room": r, "seats": v["seats"]} for r, v in db["rooms"].items()]

def get_room(db, room: str):
    """Returns the rent and the floor of a room."""
    if room not in db["rooms"]:
        raise ValueError("no such room: " + room)
    return {k: db["rooms"][room][k] for k in ("rent", "floor")}
''',
    head='''
groups = list_groups()
seats = {}
room = {}
for r in list_rooms():
    seats[r["room"]] = r["seats"]
    room[r["room"]] = get_room(r["room"])
''',
    search='''
plans = [{}]
for g in groups:
    longer = []
    for p in plans:
        for r in room:
            if r not in p.values() and seats[r] >= groups[g]:
                q = p.copy()
                q[g] = r
                longer.append(q)
    plans = longer
for p in plans:
    RULES
    return p
''',
    verify='''
groups = db["groups"]
rooms = db["rooms"]
if not isinstance(answer, dict) or set(answer) != set(groups):
    return "it is not an object with all groups"
taken = set()
for g in groups:
    r = answer[g]
    if not isinstance(r, str) or r not in rooms:
        return "no such room"
    if r in taken:
        return "a room is given twice"
    taken.add(r)
    if rooms[r]["seats"] < groups[g]["size"]:
        return "a room is too small"
''',
    every=rooms_every,
    structure=('capacity', 'distinct'),
    rules=(
        Rule('sum', 'the sum of the rents', '<=',
             'sum(room[r]["rent"] for r in p.values())',
             'sum([rooms[r]["rent"] for r in taken])',
             lambda db, a: sum(room('rent')(db, a))),
        Rule('sum', 'the sum of the numbers of the floors', '<=',
             'sum(room[r]["floor"] for r in p.values())',
             'sum([rooms[r]["floor"] for r in taken])',
             lambda db, a: sum(room('floor')(db, a))),
        Rule('extreme', 'the largest number of seats that stay empty in a '
             'room', '<=',
             'max(seats[p[g]] - groups[g] for g in p)',
             'max([rooms[answer[g]]["seats"] - groups[g]["size"] '
             'for g in groups])',
             lambda db, a: max(db['rooms'][r]['seats']
                               - db['groups'][g]['size']
                               for g, r in a.items())),
        Rule('extreme', 'the light of the darkest room', '>=',
             'min(light[r] for r in p.values())',
             'min([rooms[r]["light"] for r in taken])',
             lambda db, a: min(room('light')(db, a)),
             load='''
light = {}
for r in room:
    light[r] = get_light(r)
''', tool='''
def get_light(db, room: str):
    """Returns how much light a room has."""
    if room not in db["rooms"]:
        raise ValueError("no such room: " + room)
    return db["rooms"][room]["light"]
'''),
    ))


# parcels and vans

def parcels_db(rng, names):
    parcels = table(rng, names.draw(7), weight=(5, 40), worth=(10, 99))
    total = sum(p['weight'] for p in parcels.values())
    vans = table(rng, names.draw(3), rate=(1, 9))
    for v in vans.values():
        v['capacity'] = total // 3 + rng.randint(5, 20)

    return {'task': {}, 'parcels': parcels, 'vans': vans}


def loads(db, a, column='weight'):
    found = {v: 0 for v in db['vans']}
    for p, v in a.items():
        found[v] += db['parcels'][p][column]
    return found


def parcels_every(db):
    for vans in product(db['vans'], repeat=len(db['parcels'])):
        a = dict(zip(db['parcels'], vans))
        if all(n <= db['vans'][v]['capacity']
               for v, n in loads(db, a).items()):
            yield a


PARCELS = Category(
    name='parcels',
    intro=('Distribute all parcels over the vans. The weight in a van must not '
           'exceed its capacity.',
           'Everything has to be loaded today: say which van takes which '
           'parcel, and overload none of them.'),
    form='an object from each parcel to its van',
    database=parcels_db,
    tools='''
def list_parcels(db):
    """Lists the names of all parcels."""
    return list(db["parcels"])

def get_weight(db, parcel: str):
    """Returns the weight of a parcel."""
    if parcel not in db["parcels"]:
        raise ValueError("no such parcel: " + parcel)
    return db["parcels"][parcel]["weight"]

def list_vans(db):
    """Lists all vans, with their capacity and their rate per weight."""
    return [{"van": v, "capacity": x["capacity"], "rate": x["rate"]}
            for v, x in db["vans"].items()]
''',
    head='''
parcels = list_parcels()
weight = [get_weight(p) for p in parcels]
vans = list_vans()
''',
    search='''
at = [-1] * len(parcels)
i = 0
while i >= 0:
    at[i] += 1
    if at[i] == len(vans):
        at[i] = -1
        i -= 1
        continue
    load = [0] * len(vans)
    for k in range(i + 1):
        load[at[k]] += weight[k]
    if load[at[i]] > vans[at[i]]["capacity"]:
        continue
    if i + 1 < len(parcels):
        i += 1
        continue
    RULES
    return {parcels[k]: vans[at[k]]["van"] for k in range(len(parcels))}
''',
    verify='''
parcels = db["parcels"]
vans = db["vans"]
if not isinstance(answer, dict) or set(answer) != set(parcels):
    return "it is not an object with all parcels"
load = {v: 0 for v in vans}
worth = {v: 0 for v in vans}
for p, v in answer.items():
    if not isinstance(v, str) or v not in vans:
        return "no such van"
    load[v] += parcels[p]["weight"]
    worth[v] += parcels[p]["worth"]
for v in vans:
    if load[v] > vans[v]["capacity"]:
        return "a van is overloaded"
''',
    every=parcels_every,
    structure=('capacity',),
    rules=(
        Rule('sum', 'the total cost (weight times the rate of the van)', '<=',
             'sum(n * v["rate"] for n, v in zip(load, vans))',
             'sum([load[v] * vans[v]["rate"] for v in vans])',
             lambda db, a: sum(n * db['vans'][v]['rate']
                               for v, n in loads(db, a).items())),
        Rule('difference', 'the difference between the heaviest and the '
             'lightest load', '<=',
             'max(load) - min(load)',
             'max(load.values()) - min(load.values())',
             lambda db, a: max(loads(db, a).values())
             - min(loads(db, a).values())),
        Rule('extreme', 'the worth of all parcels in the van with the most',
             '<=',
             'max(sum(worth[k] for k in range(len(at)) if at[k] == j) '
             'for j in range(len(vans)))',
             'max(worth.values())',
             lambda db, a: max(loads(db, a, 'worth').values()),
             load='worth = [get_worth(p) for p in parcels]', tool='''
def get_worth(db, parcel: str):
    """Returns the worth of a parcel."""
    if parcel not in db["parcels"]:
        raise ValueError("no such parcel: " + parcel)
    return db["parcels"][parcel]["worth"]
'''),
        Rule('count', 'the number of parcels in the fullest van', '<=',
             'max(at.count(j) for j in at)',
             'max([list(answer.values()).count(v) for v in vans])',
             lambda db, a: max(list(a.values()).count(v) for v in db['vans'])),
    ))


# swimmers of a relay

STROKES = ('back', 'breast', 'butterfly', 'free')


def relay_db(rng, names):
    swimmers = table(rng, names.draw(7), age=(15, 40), calm=(1, 50))
    for s in swimmers.values():
        s['times'] = {stroke: rng.randint(240, 400) for stroke in STROKES}

    return {'task': {}, 'swimmers': swimmers}


def relay_every(db):
    for four in permutations(db['swimmers'], 4):
        yield dict(zip(STROKES, four))


def relay_times(db, a):
    return [db['swimmers'][s]['times'][stroke] for stroke, s in a.items()]


RELAY = Category(
    name='relay',
    intro=('Choose four different swimmers for the strokes back, breast, '
           'butterfly and free.',
           'For our medley, back, breast, butterfly and free need a swimmer '
           'each, and nobody swims twice.'),
    form='an object from each stroke to its swimmer',
    database=relay_db,
    tools='''
def list_swimmers(db):
    """Returns the age of each swimmer."""
    return {s: v["age"] for s, v in db["swimmers"].items()}

def get_times(db, swimmer: str):
    """Returns the times of a swimmer in tenths of a second, by stroke."""
    if swimmer not in db["swimmers"]:
        raise ValueError("no such swimmer: " + swimmer)
    return db["swimmers"][swimmer]["times"]
''',
    head='''
age = list_swimmers()
time = {s: get_times(s) for s in age}
''',
    search='''
for a in age:
    for b in age:
        for c in age:
            for d in age:
                if len({a, b, c, d}) < 4:
                    continue
                team = {"back": a, "breast": b, "butterfly": c, "free": d}
                RULES
                return team
''',
    verify='''
people = db["swimmers"]
strokes = ["back", "breast", "butterfly", "free"]
if not isinstance(answer, dict) or sorted(answer) != strokes:
    return "it is not an object with the four strokes"
for s in answer.values():
    if not isinstance(s, str) or s not in people:
        return "no such swimmer"
if len(set(answer.values())) < 4:
    return "somebody swims twice"
times = [people[answer[k]]["times"][k] for k in strokes]
''',
    every=relay_every,
    structure=('distinct', 'one each'),
    rules=(
        Rule('sum', 'the sum of the times', '<=',
             'sum(time[team[k]][k] for k in team)', 'sum(times)',
             lambda db, a: sum(relay_times(db, a))),
        Rule('extreme', 'the slowest time', '<=',
             'max(time[team[k]][k] for k in team)', 'max(times)',
             lambda db, a: max(relay_times(db, a))),
        Rule('sum', 'the sum of the ages', '>=',
             'age[a] + age[b] + age[c] + age[d]',
             'sum([people[s]["age"] for s in answer.values()])',
             lambda db, a: sum(db['swimmers'][s]['age']
                               for s in a.values())),
        Rule('conditional', 'the calm of the one who swims free', '>=',
             'calm[d]', 'people[answer["free"]]["calm"]',
             lambda db, a: db['swimmers'][a['free']]['calm'],
             load='calm = {s: get_calm(s) for s in age}', tool='''
def get_calm(db, swimmer: str):
    """Returns how calm a swimmer is."""
    if swimmer not in db["swimmers"]:
        raise ValueError("no such swimmer: " + swimmer)
    return db["swimmers"][swimmer]["calm"]
''',
             when=When('the time of the one who swims back is',
                       'time[a]["back"]', 'times[0]',
                       lambda db, a: relay_times(db, a)[0])),
    ))


# plants and beds

def garden_db(rng, names):
    beds = names.draw(6)
    near = {b: [] for b in beds}
    for i in range(1, len(beds)):
        for j in {rng.randrange(i), i - 1}:
            near[beds[i]].append(beds[j])
            near[beds[j]].append(beds[i])

    return {'task': {}, 'beds': {b: {'near': n, 'area': rng.randint(2, 9),
                                     'sun': rng.randint(1, 20)}
                                 for b, n in near.items()},
            'plants': table(rng, names.draw(4), water=(1, 20), crop=(1, 30),
                            shade=(1, 20))}


def garden_every(db):
    for plants in product(db['plants'], repeat=len(db['beds'])):
        a = dict(zip(db['beds'], plants))
        if all(a[b] != a[n] for b in a for n in db['beds'][b]['near']):
            yield a


def garden_sum(name):
    return lambda db, a: sum(db['beds'][b]['area'] * db['plants'][p][name]
                             for b, p in a.items())


GARDEN = Category(
    name='garden',
    intro=('Choose a plant for each bed. Beds that are next to one another '
           'must have different plants.',
           'Tell me what to grow in which bed, so that no bed has the same '
           'plant as a bed beside it.'),
    form='an object from each bed to its plant',
    database=garden_db,
    tools='''
def list_beds(db):
    """Lists the names of all beds."""
    return list(db["beds"])

def get_bed(db, bed: str):
    """Returns the area of a bed and the beds next to it."""
    if bed not in db["beds"]:
        raise ValueError("no such bed: " + bed)
    return {k: db["beds"][bed][k] for k in ("area", "near")}

def list_plants(db):
    """Lists all plants, with their water and crop per area."""
    return [{"plant": p, "water": v["water"], "crop": v["crop"]}
            for p, v in db["plants"].items()]
''',
    head='''
bed = {b: get_bed(b) for b in list_beds()}
plant = {p["plant"]: p for p in list_plants()}
''',
    search='''
states = [{}]
for b in bed:
    states = [dict(list(s.items()) + [(b, p)]) for s in states for p in plant
              if all(s.get(n) != p for n in bed[b]["near"])]
for s in states:
    RULES
    return s
''',
    verify='''
beds = db["beds"]
plants = db["plants"]
if not isinstance(answer, dict) or set(answer) != set(beds):
    return "it is not an object with all beds"
for b in beds:
    if not isinstance(answer[b], str) or answer[b] not in plants:
        return "no such plant"
for b in beds:
    for n in beds[b]["near"]:
        if answer[n] == answer[b]:
            return "neighbours have the same plant"
''',
    every=garden_every,
    structure=('no neighbours',),
    rules=(
        Rule('sum', 'the water of all beds (area times water)', '<=',
             'sum(bed[b]["area"] * plant[s[b]]["water"] for b in s)',
             'sum([beds[b]["area"] * plants[answer[b]]["water"] '
             'for b in beds])',
             garden_sum('water')),
        Rule('sum', 'the crop of all beds (area times crop)', '>=',
             'sum(bed[b]["area"] * plant[s[b]]["crop"] for b in s)',
             'sum([beds[b]["area"] * plants[answer[b]]["crop"] '
             'for b in beds])',
             garden_sum('crop')),
        Rule('count', 'the number of different plants', '>=',
             'len(set(s.values()))', 'len(set([answer[b] for b in beds]))',
             lambda db, a: len(set(a.values()))),
        Rule('extreme', 'the largest difference between the sun of a bed and '
             'the shade number of its plant', '<=',
             'max(abs(sun[b] - shade[s[b]]) for b in s)',
             'max([abs(beds[b]["sun"] - plants[answer[b]]["shade"]) '
             'for b in beds])',
             lambda db, a: max(abs(db['beds'][b]['sun']
                                   - db['plants'][p]['shade'])
                               for b, p in a.items()),
             load='''
sun = list_sun()
shade = list_shade()
''', tool='''
def list_sun(db):
    """Returns the sun of each bed."""
    return {b: v["sun"] for b, v in db["beds"].items()}

def list_shade(db):
    """Returns the shade number of each plant."""
    return {p: v["shade"] for p, v in db["plants"].items()}
'''),
    ))


CATEGORIES = (SHIFTS, ROOMS, PARCELS, RELAY, GARDEN)
