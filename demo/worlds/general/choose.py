# Copyright (C) The nginx-dsa authors

"""Categories in which some of many are chosen."""

from itertools import combinations, product

from worlds.general.category import Category, Rule, When


def table(rng, names, **ranges):
    """Returns name -> {column: number}."""

    return {name: {c: rng.randint(*r) for c, r in ranges.items()}
            for name in names}


# a purchase of four different items

def basket_db(rng, names):
    return {'task': {}, 'items': table(
        rng, names.draw(12), price=(5, 95), weight=(1, 40), rating=(20, 99))}


BASKET = Category(
    name='basket',
    intro=('I want to buy four different items of the catalogue.',
           'Please put together a parcel: four articles, none of them twice.'),
    form='a list of the four names',
    database=basket_db,
    tools='''
def list_items(db):
    """Lists the names of all items in the catalogue."""
    return list(db["items"])

def get_item(db, item: str):
    """Returns the price and the weight of an item."""
    if item not in db["items"]:
        raise ValueError("no such item: " + item)
    return {k: db["items"][item][k] for k in ("price", "weight")}
''',
    head='''
names = list_items()
item = {}
for x in names:
    item[x] = get_item(x)
''',
    search='''
for a in range(len(names)):
    for b in range(a):
        for c in range(b):
            for d in range(c):
                pick = [names[a], names[b], names[c], names[d]]
                RULES
                return pick
''',
    verify='''
items = db["items"]
if not isinstance(answer, list) or len(answer) != 4:
    return "it is not a list of four items"
for x in answer:
    if not isinstance(x, str) or x not in items:
        return "it has something that is no item"
if len(set(answer)) != 4:
    return "an item is there twice"
''',
    every=lambda db: map(list, combinations(db['items'], 4)),
    canonical=lambda a: tuple(sorted(a)),
    structure=('distinct', 'size'),
    rules=(
        Rule('sum', 'the total price', '<=',
             'sum(item[x]["price"] for x in pick)',
             'sum([items[x]["price"] for x in answer])',
             lambda db, a: sum(db['items'][x]['price'] for x in a)),
        Rule('sum', 'the total weight', '>=',
             'sum(item[x]["weight"] for x in pick)',
             'sum([items[x]["weight"] for x in answer])',
             lambda db, a: sum(db['items'][x]['weight'] for x in a)),
        Rule('extreme', 'the lowest rating among them', '>=',
             'min(rating[x] for x in pick)',
             'min([items[x]["rating"] for x in answer])',
             lambda db, a: min(db['items'][x]['rating'] for x in a),
             load='''
rating = {}
for x in names:
    rating[x] = get_rating(x)
''', tool='''
def get_rating(db, item: str):
    """Returns the rating of an item, from 0 to 100."""
    if item not in db["items"]:
        raise ValueError("no such item: " + item)
    return db["items"][item]["rating"]
'''),
        Rule('conditional', 'the price of the dearest item', '<=',
             'max(item[x]["price"] for x in pick)',
             'max([items[x]["price"] for x in answer])',
             lambda db, a: max(db['items'][x]['price'] for x in a),
             when=When('the weight of the heaviest item is',
                       'max(item[x]["weight"] for x in pick)',
                       'max([items[x]["weight"] for x in answer])',
                       lambda db, a: max(db['items'][x]['weight']
                                         for x in a))),
    ))


# a dish for each course

def menu_db(rng, names):
    return {'task': {}, 'courses': {
        course: table(rng, names.draw(6), price=(4, 40), energy=(80, 900),
                      minutes=(5, 60), salt=(1, 30))
        for course in ('starter', 'soup', 'main', 'dessert')}}


def menu_every(db):
    for dishes in product(*db['courses'].values()):
        yield dict(zip(db['courses'], dishes))


def menu_column(name):
    return lambda db, a: [db['courses'][c][d][name] for c, d in a.items()]


MENU = Category(
    name='menu',
    intro=('Plan a dinner with one dish for every course.',
           'Our guests come tonight: choose a dish for each of the courses.'),
    form='an object from each course to the name of its dish',
    database=menu_db,
    tools='''
def list_courses(db):
    """Lists the courses of a dinner, in their order."""
    return list(db["courses"])

def list_dishes(db, course: str):
    """Lists the dishes for a course, with prices, energy and salt."""
    if course not in db["courses"]:
        raise ValueError("no such course: " + course)
    return [{"dish": d, "price": v["price"], "energy": v["energy"],
             "salt": v["salt"]} for d, v in db["courses"][course].items()]
''',
    head='''
courses = list_courses()
menu = {}
size = 1
for c in courses:
    menu[c] = list_dishes(c)
    size = size * len(menu[c])
''',
    search='''
for n in range(size):
    meal = {}
    rest = n
    for c in courses:
        meal[c] = menu[c][rest % len(menu[c])]
        rest = rest // len(menu[c])
    RULES
    return {c: meal[c]["dish"] for c in courses}
''',
    verify='''
courses = db["courses"]
if not isinstance(answer, dict) or set(answer) != set(courses):
    return "it is not an object with all courses"
dishes = []
for c in courses:
    if not isinstance(answer[c], str) or answer[c] not in courses[c]:
        return "no dish for a course"
    dishes.append(courses[c][answer[c]])
''',
    every=menu_every,
    structure=('one each',),
    rules=(
        Rule('sum', 'the price of the dinner', '<=',
             'sum(meal[c]["price"] for c in meal)',
             'sum([d["price"] for d in dishes])',
             lambda db, a: sum(menu_column('price')(db, a))),
        Rule('sum', 'the energy of all dishes together', '>=',
             'sum(meal[c]["energy"] for c in meal)',
             'sum([d["energy"] for d in dishes])',
             lambda db, a: sum(menu_column('energy')(db, a))),
        Rule('extreme', 'the salt of the saltiest dish', '<=',
             'max(meal[c]["salt"] for c in meal)',
             'max([d["salt"] for d in dishes])',
             lambda db, a: max(menu_column('salt')(db, a))),
        Rule('sum', 'the minutes that all dishes take together', '<=',
             'sum(minutes[meal[c]["dish"]] for c in meal)',
             'sum([d["minutes"] for d in dishes])',
             lambda db, a: sum(menu_column('minutes')(db, a)),
             load='''
minutes = {}
for c in courses:
    for d in menu[c]:
        minutes[d["dish"]] = get_minutes(d["dish"])
''', tool='''
def get_minutes(db, dish: str):
    """Returns the minutes that a dish takes in the kitchen."""
    for dishes in db["courses"].values():
        if dish in dishes:
            return dishes[dish]["minutes"]
    raise ValueError("no such dish: " + dish)
'''),
    ))


# suppliers that deliver all materials

def cover_db(rng, names):
    materials = names.draw(5)
    suppliers = table(rng, names.draw(12), fee=(10, 90), days=(1, 30),
                      trust=(10, 99), region=(1, 5))
    for s in suppliers.values():
        s['delivers'] = rng.sample(materials, rng.randint(2, 3))

    return {'task': {'needed': ', '.join(materials)},
            'materials': materials, 'suppliers': suppliers}


def cover_every(db):
    for some in combinations(db['suppliers'], 4):
        delivered = set()
        for s in some:
            delivered.update(db['suppliers'][s]['delivers'])
        if delivered >= set(db['materials']):
            yield list(some)


COVER = Category(
    name='cover',
    intro=('We need the materials {needed}. Find four suppliers that together '
           'deliver all of them.',
           'The workshop has run out of {needed}. Four firms have to be '
           'ordered from, so that nothing is missing.'),
    form='a list of the four names',
    database=cover_db,
    tools='''
def list_suppliers(db):
    """Lists all suppliers, with their fees and delivery days."""
    return [{"supplier": s, "fee": v["fee"], "days": v["days"]}
            for s, v in db["suppliers"].items()]

def get_materials(db, supplier: str):
    """Lists the materials that a supplier delivers."""
    if supplier not in db["suppliers"]:
        raise ValueError("no such supplier: " + supplier)
    return db["suppliers"][supplier]["delivers"]

def list_materials(db):
    """Lists the materials that are needed."""
    return db["materials"]
''',
    head='''
needed = list_materials()
firms = list_suppliers()
has = [get_materials(f["supplier"]) for f in firms]
''',
    search='''
for mask in range(1 << len(firms)):
    chosen = [i for i in range(len(firms)) if mask >> i & 1]
    if len(chosen) != 4:
        continue
    missing = set(needed)
    for i in chosen:
        for m in has[i]:
            missing.discard(m)
    if missing:
        continue
    RULES
    return [firms[i]["supplier"] for i in chosen]
''',
    verify='''
firms = db["suppliers"]
if not isinstance(answer, list) or len(answer) != 4:
    return "it is not a list of four suppliers"
if not all([isinstance(s, str) and s in firms for s in answer]):
    return "it has something that is no supplier"
if len(set(answer)) < 4:
    return "a supplier is there twice"
for m in db["materials"]:
    if not any([m in firms[s]["delivers"] for s in answer]):
        return "a material is missing"
''',
    every=cover_every,
    canonical=lambda a: tuple(sorted(a)),
    structure=('coverage', 'distinct'),
    rules=(
        Rule('sum', 'the sum of the fees', '<=',
             'sum(firms[i]["fee"] for i in chosen)',
             'sum([firms[s]["fee"] for s in answer])',
             lambda db, a: sum(db['suppliers'][s]['fee'] for s in a)),
        Rule('extreme', 'the number of days until the last delivery', '<=',
             'max(firms[i]["days"] for i in chosen)',
             'max([firms[s]["days"] for s in answer])',
             lambda db, a: max(db['suppliers'][s]['days'] for s in a)),
        Rule('sum', 'the sum of the trust scores', '>=',
             'sum(trust[i]["trust"] for i in chosen)',
             'sum([firms[s]["trust"] for s in answer])',
             lambda db, a: sum(db['suppliers'][s]['trust'] for s in a),
             load='trust = [get_record(f["supplier"]) for f in firms]',
             tool='''
def get_record(db, supplier: str):
    """Returns the trust score and the number of the region of a supplier."""
    if supplier not in db["suppliers"]:
        raise ValueError("no such supplier: " + supplier)
    return {k: db["suppliers"][supplier][k] for k in ("trust", "region")}
'''),
        Rule('conditional', 'the highest fee', '<=',
             'max(firms[i]["fee"] for i in chosen)',
             'max([firms[s]["fee"] for s in answer])',
             lambda db, a: max(db['suppliers'][s]['fee'] for s in a),
             when=When('the fewest delivery days among them are',
                       'min(firms[i]["days"] for i in chosen)',
                       'min([firms[s]["days"] for s in answer])',
                       lambda db, a: min(db['suppliers'][s]['days']
                                         for s in a))),
    ))


# parts of a computer that fit

KINDS = ('processor', 'board', 'memory', 'supply')


def computer_db(rng, names):
    parts = {kind: table(rng, names.draw(6), price=(20, 400), speed=(10, 99),
                         watts=(5, 120)) for kind in KINDS}
    for kind, column, n in (('processor', 'socket', 2), ('board', 'socket', 2),
                            ('board', 'type', 2), ('memory', 'type', 2)):
        for p in parts[kind].values():
            p[column] = rng.randint(1, n)
    for p in parts['supply'].values():
        p['watts'] = rng.randint(150, 500)

    return {'task': {}, 'parts': parts}


def computer_every(db):
    p = db['parts']
    for c, b, m, s in product(*(p[k] for k in KINDS)):
        if p['processor'][c]['socket'] == p['board'][b]['socket'] \
                and p['board'][b]['type'] == p['memory'][m]['type']:
            yield dict(zip(KINDS, (c, b, m, s)))


def computer_parts(db, a):
    return [db['parts'][k][a[k]] for k in KINDS]


COMPUTER = Category(
    name='computer',
    intro=('Choose a processor, a board, a memory and a supply. Processor and '
           'board must have the same socket, board and memory the same type.',
           'I am building a machine from one part of each kind: processor, '
           'board, memory, supply. The sockets of processor and board have to '
           'match, and so have the types of board and memory.'),
    form='an object with processor, board, memory and supply',
    database=computer_db,
    tools='''
def list_parts(db, kind: str):
    """Lists the parts of a kind (processor, board, memory, supply), with
    price, speed, and socket or type if they have one."""
    if kind not in db["parts"]:
        raise ValueError("no such kind: " + kind)
    found = []
    for name, p in db["parts"][kind].items():
        one = {"name": name}
        for k in ("price", "speed", "socket", "type"):
            if k in p:
                one[k] = p[k]
        found.append(one)
    return found
''',
    head='''
cpus = list_parts("processor")
boards = list_parts("board")
memories = list_parts("memory")
supplies = list_parts("supply")
''',
    search='''
for cpu in cpus:
    for board in boards:
        if cpu["socket"] != board["socket"]:
            continue
        for memory in memories:
            if memory["type"] != board["type"]:
                continue
            for supply in supplies:
                four = (cpu, board, memory, supply)
                RULES
                return {"processor": cpu["name"], "board": board["name"],
                        "memory": memory["name"], "supply": supply["name"]}
''',
    verify='''
kinds = ("processor", "board", "memory", "supply")
if not isinstance(answer, dict) or sorted(answer) != sorted(kinds):
    return "it is not an object with the four kinds"
for k in kinds:
    if not isinstance(answer[k], str) or answer[k] not in db["parts"][k]:
        return "no such part"
cpu, board, memory, supply = [db["parts"][k][answer[k]] for k in kinds]
if cpu["socket"] != board["socket"]:
    return "processor and board do not fit"
if board["type"] != memory["type"]:
    return "board and memory do not fit"
''',
    every=computer_every,
    structure=('compatible', 'one each'),
    rules=(
        Rule('sum', 'the total price', '<=',
             'sum(p["price"] for p in four)',
             'cpu["price"] + board["price"] + memory["price"] '
             '+ supply["price"]',
             lambda db, a: sum(p['price'] for p in computer_parts(db, a))),
        Rule('sum', 'the speed of processor, board and memory together', '>=',
             'sum(p["speed"] for p in four[:3])',
             'cpu["speed"] + board["speed"] + memory["speed"]',
             lambda db, a: sum(p['speed'] for p in computer_parts(db, a)[:3])),
        Rule('difference', 'what the watts of the supply exceed those of the '
             'other parts by', '>=',
             'watts[supply["name"]] - sum(watts[p["name"]] for p in '
             'four[:3])',
             'supply["watts"] - cpu["watts"] - board["watts"] '
             '- memory["watts"]',
             lambda db, a: computer_parts(db, a)[3]['watts']
             - sum(p['watts'] for p in computer_parts(db, a)[:3]),
             load='''
watts = {}
for group in (cpus, boards, memories, supplies):
    for p in group:
        watts[p["name"]] = get_watts(p["name"])
''', tool='''
def get_watts(db, part: str):
    """Returns the watts that a part uses, or that a supply has."""
    for parts in db["parts"].values():
        if part in parts:
            return parts[part]["watts"]
    raise ValueError("no such part: " + part)
'''),
        Rule('conditional', 'the price of the board', '<=',
             'board["price"]', 'board["price"]',
             lambda db, a: computer_parts(db, a)[1]['price'],
             when=When('the price of the processor is', 'cpu["price"]',
                       'cpu["price"]',
                       lambda db, a: computer_parts(db, a)[0]['price'])),
    ))


# a captain and two deputies below him

def crew_db(rng, names):
    people = names.draw(24)
    crew = table(rng, people, pay=(20, 99), years=(1, 40), sick=(0, 20))
    crew[people[0]]['boss'] = ''

    for i, p in enumerate(people[1:], 1):
        crew[p]['boss'] = people[rng.randrange(max(0, i - 9), i)
                                 if i > 3 else 0]

    return {'task': {}, 'people': crew}


def bosses(db, p):
    above = []
    while db['people'][p]['boss']:
        p = db['people'][p]['boss']
        above.append(p)
    return above


def crew_every(db):
    above = {p: bosses(db, p) for p in db['people']}
    for captain in db['people']:
        below = [p for p in db['people'] if captain in above[p]]
        for a, b in combinations(below, 2):
            if a not in above[b] and b not in above[a]:
                yield {'captain': captain, 'deputies': [a, b]}


def crew_all(db, a):
    return [db['people'][p] for p in [a['captain'], *a['deputies']]]


CREW = Category(
    name='crew',
    intro=('Name a captain and two deputies. Both deputies must be below the '
           'captain, over any number of bosses, and neither of them above '
           'the other.',
           'A captain with two deputies is wanted. The chain of bosses of each '
           'deputy has to reach the captain, and no deputy may be in the '
           'chain of the other.'),
    form='an object with captain (a name) and deputies (a list of two names)',
    database=crew_db,
    tools='''
def list_people(db):
    """Lists all people, with pay and years of service."""
    return [{"person": p, "pay": v["pay"], "years": v["years"]}
            for p, v in db["people"].items()]

def get_staff(db, boss: str):
    """Lists the people whose boss this is, directly."""
    if boss not in db["people"]:
        raise ValueError("no such person: " + boss)
    return [p for p, v in db["people"].items() if v["boss"] == boss]
''',
    head='''
data = {p["person"]: p for p in list_people()}
boss = {}
for p in data:
    for q in get_staff(p):
        boss[q] = p
chain = {}
for p in data:
    chain[p] = []
    q = p
    while q in boss:
        q = boss[q]
        chain[p].append(q)
''',
    search='''
for one in data:
    for captain in chain[one]:
        for two in data:
            if two <= one or captain not in chain[two]:
                continue
            if one in chain[two] or two in chain[one]:
                continue
            three = [captain, one, two]
            RULES
            return {"captain": captain, "deputies": [one, two]}
''',
    verify='''
people = db["people"]
if not isinstance(answer, dict) or sorted(answer) != ["captain", "deputies"]:
    return "it is not an object with captain and deputies"
deputies = answer["deputies"]
if not isinstance(deputies, list) or len(deputies) != 2:
    return "there are not two deputies"
names = [answer["captain"]] + deputies
if not all([isinstance(p, str) and p in people for p in names]):
    return "somebody is not one of the people"
for p, other in ((deputies[0], deputies[1]), (deputies[1], deputies[0])):
    seen = []
    at = people[p]["boss"]
    while at:
        seen.append(at)
        at = people[at]["boss"]
    if answer["captain"] not in seen:
        return "a deputy is not below the captain"
    if other in seen or other == p:
        return "a deputy is above the other"
''',
    every=crew_every,
    canonical=lambda a: (a['captain'], *sorted(a['deputies']), len(a)),
    structure=('below', 'distinct'),
    rules=(
        Rule('sum', 'the pay of the three together', '<=',
             'sum(data[p]["pay"] for p in three)',
             'sum([people[p]["pay"] for p in names])',
             lambda db, a: sum(p['pay'] for p in crew_all(db, a))),
        Rule('sum', 'their years of service together', '>=',
             'sum(data[p]["years"] for p in three)',
             'sum([people[p]["years"] for p in names])',
             lambda db, a: sum(p['years'] for p in crew_all(db, a))),
        Rule('difference', "the difference of the deputies' pay", '<=',
             'abs(data[one]["pay"] - data[two]["pay"])',
             'abs(people[deputies[0]]["pay"] - people[deputies[1]]["pay"])',
             lambda db, a: abs(crew_all(db, a)[1]['pay']
                               - crew_all(db, a)[2]['pay'])),
        Rule('sum', 'the sum of their days of sickness', '<=',
             'sum(sick[p] for p in three)',
             'sum([people[p]["sick"] for p in names])',
             lambda db, a: sum(p['sick'] for p in crew_all(db, a)),
             load='sick = list_sickness()', tool='''
def list_sickness(db):
    """Returns the days of sickness of every person."""
    return {p: v["sick"] for p, v in db["people"].items()}
'''),
    ))


CATEGORIES = (BASKET, MENU, COVER, COMPUTER, CREW)
