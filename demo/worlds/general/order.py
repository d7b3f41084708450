# Copyright (C) The nginx-dsa authors

"""Categories in which things are put into an order or into pairs."""

from itertools import combinations, permutations

from worlds.general.category import Category, Rule, When
from worlds.general.choose import table


def neighbours(a):
    return list(zip(a, a[1:]))


# guests in a row

def seating_db(rng, names):
    guests = names.draw(7)
    people = table(rng, guests, age=(18, 90), noise=(1, 30))
    for g in guests:
        people[g]['likes'] = {h: rng.randint(0, 20) for h in guests if h != g}

    return {'task': {'host': guests[0]}, 'guests': people}


def seating_every(db):
    host, *others = db['guests']
    for p in permutations(others):
        yield [host, *p]


SEATING = Category(
    name='seating',
    intro=('Seat all guests in one row, and {host} on the first chair.',
           'There is one long bench. {host} sits at its beginning; find the '
           'order of all guests.'),
    form='a list of all guests in their order',
    database=seating_db,
    tools='''
def list_guests(db):
    """Returns the age of each guest."""
    return {g: v["age"] for g, v in db["guests"].items()}

def get_likes(db, guest: str):
    """Returns how much a guest likes each of the others."""
    if guest not in db["guests"]:
        raise ValueError("no such guest: " + guest)
    return db["guests"][guest]["likes"]

def get_host(db):
    """Returns the guest who sits first."""
    return db["task"]["host"]
''',
    head='''
age = list_guests()
likes = {g: get_likes(g) for g in age}
host = get_host()
''',
    search='''
rows = [[]]
for g in age:
    if g != host:
        rows = [r[:i] + [g] + r[i:] for r in rows for i in range(len(r) + 1)]
for r in rows:
    row = [host] + r
    RULES
    return row
''',
    verify='''
guests = db["guests"]
if not isinstance(answer, list):
    return "it is not a list"
for g in answer:
    if not isinstance(g, str) or g not in guests:
        return "somebody is no guest"
if len(answer) != len(guests) or len(set(answer)) != len(guests):
    return "not every guest has one chair"
if answer[0] != db["task"]["host"]:
    return "another guest is first"
pairs = [(guests[answer[i - 1]], guests[answer[i]], answer[i - 1], answer[i])
         for i in range(1, len(answer))]
''',
    every=seating_every,
    structure=('order', 'distinct'),
    rules=(
        Rule('sum', 'the sum over all neighbours of how much each likes the '
             'other', '>=',
             'sum(likes[row[i]][row[i + 1]] + likes[row[i + 1]][row[i]] '
             'for i in range(len(row) - 1))',
             'sum([p["likes"][y] + q["likes"][x] for p, q, x, y in pairs])',
             lambda db, a: sum(db['guests'][x]['likes'][y]
                               + db['guests'][y]['likes'][x]
                               for x, y in neighbours(a))),
        Rule('extreme', 'the largest difference of age between neighbours',
             '<=',
             'max(abs(age[row[i]] - age[row[i + 1]]) '
             'for i in range(len(row) - 1))',
             'max([abs(p["age"] - q["age"]) for p, q, x, y in pairs])',
             lambda db, a: max(abs(db['guests'][x]['age']
                                   - db['guests'][y]['age'])
                               for x, y in neighbours(a))),
        Rule('conditional', 'how much the last but one likes the last', '>=',
             'likes[row[-2]][row[-1]]',
             'guests[answer[-2]]["likes"][answer[-1]]',
             lambda db, a: db['guests'][a[-2]]['likes'][a[-1]],
             when=When('the age of the last guest is', 'age[row[-1]]',
                       'guests[answer[-1]]["age"]',
                       lambda db, a: db['guests'][a[-1]]['age'])),
        Rule('extreme', 'the largest noise of two neighbours together', '<=',
             'max(noise[row[i]] + noise[row[i + 1]] '
             'for i in range(len(row) - 1))',
             'max([p["noise"] + q["noise"] for p, q, x, y in pairs])',
             lambda db, a: max(db['guests'][x]['noise']
                               + db['guests'][y]['noise']
                               for x, y in neighbours(a)),
             load='noise = {g: get_noise(g) for g in age}', tool='''
def get_noise(db, guest: str):
    """Returns how noisy a guest is."""
    if guest not in db["guests"]:
        raise ValueError("no such guest: " + guest)
    return db["guests"][guest]["noise"]
'''),
    ))


# courses with prerequisites

def courses_db(rng, names):
    order = names.draw(7)
    courses = table(rng, order, effort=(1, 30), level=(1, 40), fee=(1, 60))
    for i, c in enumerate(order):
        courses[c]['needs'] = sorted(rng.sample(order[:i], min(i, 1))
                                     if i % 2 else [])

    mixed = list(courses)
    rng.shuffle(mixed)

    return {'task': {}, 'courses': {c: courses[c] for c in mixed}}


def courses_every(db):
    needs = {c: v['needs'] for c, v in db['courses'].items()}
    for p in permutations(db['courses']):
        if all(p.index(n) < p.index(c) for c in p for n in needs[c]):
            yield list(p)


def weighted(name):
    return lambda db, a: sum(i * db['courses'][c][name]
                             for i, c in enumerate(a, 1))


COURSES = Category(
    name='courses',
    intro=('Put all courses into an order in which each one comes after the '
           'courses that it needs.',
           'I take one course a term and have to pass all. Which order '
           'respects what each course requires before it?'),
    form='a list of all courses in their order',
    database=courses_db,
    tools='''
def list_courses(db):
    """Lists the names of all courses."""
    return list(db["courses"])

def get_course(db, course: str):
    """Returns the effort, the level and the needed courses of a course."""
    if course not in db["courses"]:
        raise ValueError("no such course: " + course)
    return {k: db["courses"][course][k] for k in ("effort", "level", "needs")}
''',
    head='''
course = {}
for c in list_courses():
    course[c] = get_course(c)
''',
    search='''
work = [([], list(course))]
while work:
    done, left = work.pop()
    for c in left:
        if all(n in done for n in course[c]["needs"]):
            work.append((done + [c], [x for x in left if x != c]))
    if left:
        continue
    RULES
    return done
''',
    verify='''
courses = db["courses"]
if not isinstance(answer, list) or len(answer) != len(courses):
    return "it is not a list of all courses"
seen = []
for c in answer:
    if not isinstance(c, str) or c not in courses:
        return "no such course"
    if c in seen:
        return "a course is there twice"
    if not all([n in seen for n in courses[c]["needs"]]):
        return "a course comes before one that it needs"
    seen.append(c)
place = {answer[i]: i + 1 for i in range(len(answer))}
''',
    every=courses_every,
    structure=('precedence', 'order'),
    rules=(
        Rule('weighted', 'the sum of effort times place in the order', '<=',
             'sum((i + 1) * course[done[i]]["effort"] '
             'for i in range(len(done)))',
             'sum([place[c] * courses[c]["effort"] for c in courses])',
             weighted('effort')),
        Rule('extreme', 'the largest effort of two courses in a row', '<=',
             'max(course[done[i]]["effort"] + course[done[i + 1]]["effort"] '
             'for i in range(len(done) - 1))',
             'max([courses[answer[i - 1]]["effort"] '
             '+ courses[answer[i]]["effort"] for i in range(1, len(seen))])',
             lambda db, a: max(db['courses'][x]['effort']
                               + db['courses'][y]['effort']
                               for x, y in neighbours(a))),
        Rule('weighted', 'the sum of level times place in the order', '>=',
             'sum((i + 1) * course[done[i]]["level"] '
             'for i in range(len(done)))',
             'sum([place[c] * courses[c]["level"] for c in courses])',
             weighted('level')),
        Rule('sum', 'the fees of the first three courses together', '<=',
             'sum(fee[c] for c in done[:3])',
             'sum([courses[c]["fee"] for c in courses if place[c] <= 3])',
             lambda db, a: sum(db['courses'][c]['fee'] for c in a[:3]),
             load='fee = list_fees()', tool='''
def list_fees(db):
    """Returns the fee of each course."""
    return {c: v["fee"] for c, v in db["courses"].items()}
'''),
    ))


# stops with opening hours

def delivery_db(rng, names):
    stops = names.draw(6)
    found = {s: {'opens': rng.randint(480, 620), 'stay': rng.randint(5, 20),
                 'parking': rng.randint(1, 30)} for s in stops}
    for s in stops:
        found[s]['closes'] = found[s]['opens'] + rng.randint(90, 260)
        found[s]['far'] = rng.randint(5, 40)
    drive = {s: {} for s in stops}
    for s, t in combinations(stops, 2):
        drive[s][t] = drive[t][s] = rng.randint(5, 45)

    return {'task': {}, 'stops': found, 'drive': drive}


def delivery_run(db, a):
    """Returns (the end, the minutes of waiting, of driving), or None if a
    stop is closed."""

    now, waited, driven, at = 480, 0, 0, None
    for s in a:
        stop = db['stops'][s]
        d = stop['far'] if at is None else db['drive'][at][s]
        driven += d
        now += d
        waited += max(0, stop['opens'] - now)
        now = max(now, stop['opens'])
        if now > stop['closes']:
            return None
        now += stop['stay']
        at = s

    return now, waited, driven


DELIVERY = Category(
    name='delivery',
    intro=('A van leaves at minute 480 and visits all stops. It waits where it '
           'comes before the opening, and must not arrive after the closing. '
           'Each stop takes the minutes of its stay.',
           'Find a tour over all stops that starts at minute 480. Arriving '
           'early means to wait until the stop opens; arriving after it closes '
           'is not possible; every stay takes its minutes.'),
    form='a list of all stops in their order',
    database=delivery_db,
    tools='''
def list_stops(db):
    """Lists all stops."""
    return list(db["stops"])

def get_stop(db, stop: str):
    """Returns when a stop opens and closes, the minutes of the stay, and the
    minutes to drive there at the beginning (far)."""
    if stop not in db["stops"]:
        raise ValueError("no such stop: " + stop)
    return {k: db["stops"][stop][k]
            for k in ("opens", "closes", "stay", "far")}

def get_drives(db, stop: str):
    """Returns the minutes to drive from a stop to each of the others."""
    if stop not in db["stops"]:
        raise ValueError("no such stop: " + stop)
    return db["drive"][stop]
''',
    head='''
stop = {s: get_stop(s) for s in list_stops()}
drive = {s: get_drives(s) for s in stop}
''',
    search='''
tours = [(480, 0, 0, [])]
while tours:
    now, waited, driven, tour = tours.pop()
    if len(tour) < len(stop):
        for s in stop:
            if s in tour:
                continue
            d = drive[tour[-1]][s] if tour else stop[s]["far"]
            early = max(0, stop[s]["opens"] - now - d)
            if now + d <= stop[s]["closes"]:
                tours.append((now + d + early + stop[s]["stay"],
                              waited + early, driven + d, tour + [s]))
        continue
    RULES
    return tour
''',
    verify='''
stops = db["stops"]
if not isinstance(answer, list) or len(answer) != len(stops):
    return "it is not a list of all stops"
for s in answer:
    if not isinstance(s, str) or s not in stops:
        return "no such stop"
if len(set(answer)) < len(answer):
    return "a stop is there twice"
clock = 480
waiting = 0
driving = 0
for i in range(len(answer)):
    s = stops[answer[i]]
    way = db["drive"][answer[i - 1]][answer[i]] if i else s["far"]
    driving += way
    clock += way
    if clock > s["closes"]:
        return "a stop is closed"
    if clock < s["opens"]:
        waiting += s["opens"] - clock
        clock = s["opens"]
    clock += s["stay"]
''',
    every=lambda db: (list(p) for p in permutations(db['stops'])
                      if delivery_run(db, p) is not None),
    structure=('time windows', 'order'),
    least=100,
    rules=(
        Rule('time', 'the minute at which the last stay ends', '<=', 'now',
             'clock', lambda db, a: delivery_run(db, a)[0]),
        Rule('sum', 'the minutes of driving', '<=', 'driven', 'driving',
             lambda db, a: delivery_run(db, a)[2]),
        Rule('sum', 'the minutes of waiting', '<=', 'waited', 'waiting',
             lambda db, a: delivery_run(db, a)[1]),
        Rule('weighted', 'the sum of parking fee times place in the order',
             '<=',
             'sum((i + 1) * parking[tour[i]] for i in range(len(tour)))',
             'sum([(i + 1) * stops[answer[i]]["parking"] '
             'for i in range(len(answer))])',
             lambda db, a: sum(i * db['stops'][s]['parking']
                               for i, s in enumerate(a, 1)),
             load='parking = {s: get_parking(s) for s in stop}', tool='''
def get_parking(db, stop: str):
    """Returns the parking fee at a stop."""
    if stop not in db["stops"]:
        raise ValueError("no such stop: " + stop)
    return db["stops"][stop]["parking"]
'''),
    ))


# talks that do not overlap

def talks_db(rng, names):
    talks = {}
    for t in names.draw(16):
        begins = rng.randint(540, 960)
        talks[t] = {'begins': begins, 'ends': begins + rng.randint(15, 60),
                    'points': rng.randint(1, 50), 'seats': rng.randint(5, 90),
                    'topic': rng.choice(('a', 'b', 'c', 'd'))}

    return {'task': {}, 'talks': talks}


def talks_every(db):
    for some in combinations(sorted(db['talks'], key=lambda t:
                                    (db['talks'][t]['begins'], t)), 4):
        four = [db['talks'][t] for t in some]
        if all(x['ends'] <= y['begins'] for x, y in neighbours(four)):
            yield list(some)


def talk(name):
    return lambda db, a: [db['talks'][t][name] for t in a]


TALKS = Category(
    name='talks',
    intro=('Choose four talks that do not overlap.',
           'I would like to hear four of the talks, each from its beginning '
           'to its end.'),
    form='a list of the four talks in the order of time',
    database=talks_db,
    tools='''
def list_talks(db):
    """Lists all talks, with the minutes when they begin and end."""
    return [{"talk": t, "begins": v["begins"], "ends": v["ends"]}
            for t, v in db["talks"].items()]

def list_points(db):
    """Returns the points of each talk."""
    return {t: v["points"] for t, v in db["talks"].items()}
''',
    head='''
talks = list_talks()
points = list_points()
''',
    search='''
chains = [[t] for t in talks]
while chains:
    c = chains.pop()
    if len(c) < 4:
        chains = chains + [c + [t] for t in talks
                           if t["begins"] >= c[-1]["ends"]]
        continue
    RULES
    return [t["talk"] for t in c]
''',
    verify='''
talks = db["talks"]
if not isinstance(answer, list) or len(answer) != 4:
    return "it is not a list of four talks"
last = 0
for t in answer:
    if not isinstance(t, str) or t not in talks:
        return "no such talk"
    if talks[t]["begins"] < last:
        return "talks overlap or are not in their order"
    last = talks[t]["ends"]
''',
    every=talks_every,
    structure=('no overlap', 'order'),
    rules=(
        Rule('sum', 'the sum of the points', '>=',
             'sum(points[t["talk"]] for t in c)',
             'sum([talks[t]["points"] for t in answer])',
             lambda db, a: sum(talk('points')(db, a))),
        Rule('sum', 'the minutes that the four talks take together', '<=',
             'sum(t["ends"] - t["begins"] for t in c)',
             'sum([talks[t]["ends"] - talks[t]["begins"] for t in answer])',
             lambda db, a: sum(talk('ends')(db, a))
             - sum(talk('begins')(db, a))),
        Rule('gap', 'the shortest break between two of them', '>=',
             'min(c[i + 1]["begins"] - c[i]["ends"] for i in range(3))',
             'min([talks[answer[i]]["begins"] - talks[answer[i - 1]]["ends"] '
             'for i in (1, 2, 3)])',
             lambda db, a: min(y - x for x, y in zip(
                 talk('ends')(db, a), talk('begins')(db, a)[1:]))),
        Rule('extreme', 'the number of seats in the smallest hall', '>=',
             'min(seats[t["talk"]] for t in c)',
             'min([talks[t]["seats"] for t in answer])',
             lambda db, a: min(talk('seats')(db, a)),
             load='seats = {t["talk"]: get_seats(t["talk"]) for t in talks}',
             tool='''
def get_seats(db, talk: str):
    """Returns the number of seats in the hall of a talk."""
    if talk not in db["talks"]:
        raise ValueError("no such talk: " + talk)
    return db["talks"][talk]["seats"]
'''),
    ))


# pairs of people

def pairs_db(rng, names):
    people = names.draw(10)
    found = table(rng, people, level=(1, 60), home=(1, 99))
    for p in people:
        found[p]['fit'] = {}
    for p, q in combinations(people, 2):
        found[p]['fit'][q] = found[q]['fit'][p] = rng.randint(1, 50)

    return {'task': {}, 'people': found}


def matchings(people):
    if not people:
        yield []
        return
    first, *rest = people
    for i, other in enumerate(rest):
        for more in matchings(rest[:i] + rest[i + 1:]):
            yield [[first, other], *more]


def fits(db, a):
    return [db['people'][p]['fit'][q] for p, q in a]


def apart(name):
    return lambda db, a: [abs(db['people'][p][name] - db['people'][q][name])
                          for p, q in a]


PAIRS = Category(
    name='pairs',
    intro=('Put all people into pairs.',
           'Everybody works with one partner. Who is with whom?'),
    form='a list of pairs, each a list of two names',
    database=pairs_db,
    tools='''
def list_people(db):
    """Returns the level of each person."""
    return {p: v["level"] for p, v in db["people"].items()}

def get_fits(db, person: str):
    """Returns how well a person fits with each of the others."""
    if person not in db["people"]:
        raise ValueError("no such person: " + person)
    return db["people"][person]["fit"]
''',
    head='''
level = list_people()
fit = {p: get_fits(p) for p in level}
''',
    search='''
open_ = [([], sorted(level))]
while open_:
    pairs, left = open_.pop()
    for i in range(1, len(left)):
        open_.append((pairs + [[left[0], left[i]]], left[1:i] + left[i + 1:]))
    if len(left) > 0:
        continue
    RULES
    return pairs
''',
    verify='''
people = db["people"]
if not isinstance(answer, list):
    return "it is not a list"
seen = []
for p in answer:
    if not isinstance(p, list) or len(p) != 2:
        return "it has something that is no pair"
    for name in p:
        if not isinstance(name, str) or name not in people:
            return "no such person"
        if name in seen:
            return "somebody is there twice"
        seen.append(name)
if len(seen) != len(people):
    return "somebody is missing"
''',
    every=lambda db: matchings(list(db['people'])),
    canonical=lambda a: tuple(sorted(tuple(sorted(p)) for p in a)),
    structure=('matching', 'distinct'),
    rules=(
        Rule('sum', 'the sum over the pairs of how well they fit', '>=',
             'sum(fit[p][q] for p, q in pairs)',
             'sum([people[x[0]]["fit"][x[1]] for x in answer])',
             lambda db, a: sum(fits(db, a))),
        Rule('extreme', 'how well the worst pair fits', '>=',
             'min(fit[p][q] for p, q in pairs)',
             'min([people[x[0]]["fit"][x[1]] for x in answer])',
             lambda db, a: min(fits(db, a))),
        Rule('difference', 'the sum over the pairs of the difference of their '
             'levels', '<=',
             'sum(abs(level[p] - level[q]) for p, q in pairs)',
             'sum([abs(people[x[0]]["level"] - people[x[1]]["level"]) '
             'for x in answer])',
             lambda db, a: sum(apart('level')(db, a))),
        Rule('extreme', 'the largest difference of the house numbers in a '
             'pair', '<=',
             'max(abs(home[p] - home[q]) for p, q in pairs)',
             'max([abs(people[x[0]]["home"] - people[x[1]]["home"]) '
             'for x in answer])',
             lambda db, a: max(apart('home')(db, a)),
             load='home = {p: get_home(p) for p in level}', tool='''
def get_home(db, person: str):
    """Returns the house number of a person."""
    if person not in db["people"]:
        raise ValueError("no such person: " + person)
    return db["people"][person]["home"]
'''),
    ))


CATEGORIES = (SEATING, COURSES, DELIVERY, TALKS, PAIRS)
