# Copyright (C) The nginx-dsa authors

"""The trip of the paper's example (section 3.2.3): its request word for word
and its tools, over a generated database in which each of its rules matters.

Names differ between training and evaluation, but for the city of the request.
Some direct lines lead into cities from which none leads on.  A plan that takes
the first line and the first places fails, so a solution has to go back.
"""

import functools
import random
from itertools import permutations, product

from worlds.general import hangzhou_levels as levels
from worlds.general import words
from worlds.general.candidate import Candidate


REQUEST = (
    "I'm planning a three-day trip starting from Hangzhou, and I need help "
    'creating an itinerary from October 1st to October 3rd, 2025. A few '
    "important requirements: I don't want to repeat any cities, hotels, "
    'attractions, or restaurants during the entire trip. Also, please make '
    'sure that every hotel, restaurant, and attraction you recommend is '
    "actually located in the city where I'll be staying that day. One more "
    "thing about the second day - I'm trying to be smart about my budget. If "
    'I end up booking a luxury hotel that costs 800 CNY or more per night, '
    'then I need to be more careful with other expenses: my total spending on '
    'both restaurants (lunch and dinner) should stay under 350 CNY, both '
    'restaurants should be rated at least 4.0 stars, and the afternoon '
    'attraction ticket needs to be less than 120 CNY. If the hotel on day 2 '
    'is in the mid-to-high range (500-800 CNY), then I have a bit more '
    'flexibility - I just need to make sure at least one of my restaurant '
    'choices is rated 4.0 or higher, and the attraction ticket should be '
    'below 180 CNY. For more affordable hotels (200-500 CNY range), I only '
    'need to ensure that at least one restaurant has a rating of 3.2 or '
    'above. Can you help me put together this itinerary?')

FORM = ('Submit it with submit_result as a JSON list of three objects with '
        'the fields time, city, hotel, afternoon_restaurant, '
        'afternoon_attraction, evening_restaurant; time is 2025-10-01 and so '
        'on. The first day is in the city where the trip starts; each next '
        'city has a direct line from the city of the day before.')

DATES = ('2025-10-01', '2025-10-02', '2025-10-03')
START = 'Hangzhou'
FIELDS = ('time', 'city', 'hotel', 'afternoon_restaurant',
          'afternoon_attraction', 'evening_restaurant')

PRICES = {'luxury': (800, 1500), 'middle': (500, 799), 'plain': (200, 499)}

POLICY = 'sample-1'


def database(rng, part):
    names = words.Names(rng, part)
    cities = [START] + names.draw(6)
    found = {}

    for i, c in enumerate(cities):
        bands = list(PRICES)
        rng.shuffle(bands)
        found[c] = {
            'lines': {},
            'hotels': {h: {'price': rng.randint(*PRICES[b])}
                       for h, b in zip(names.draw(3), bands)},
            'restaurants': {r: {'price': rng.randint(60, 280),
                                'rating': rng.randint(20, 45) / 10}
                            for r in names.draw(4)},
            'attractions': {a: {'ticket': rng.randrange(80, 280, 5)}
                            for a in names.draw(2)},
            'weather': {d: rng.choice(('sunny', 'cloudy', 'rain'))
                        for d in DATES},
            'population': rng.randint(80, 2000)}

    # lines lead one way round; some cities lead nowhere

    for i, c in enumerate(cities):
        ways = rng.sample([x for x in cities[1:] if x != c],
                          3 if i == 0 else rng.randint(0, 2))
        for to in ways:
            found[c]['lines'][to] = {'by': rng.choice(('train', 'bus')),
                                     'price': rng.randint(40, 300)}

    return {'cities': found}


def day_two(hotel, lunch, dinner, attraction):
    """The rules of the second day.  Returns the price class of the hotel and
    the clauses that are broken, by number."""

    price = hotel['price']
    ratings = sorted((lunch['rating'], dinner['rating']))
    ticket = attraction['ticket']

    if price >= 800:
        broken = [lunch['price'] + dinner['price'] >= 350, ratings[0] < 4.0,
                  ticket >= 120]
        return 'luxury', [n for n, b in enumerate(broken) if b]

    if price >= 500:
        broken = [ratings[1] < 4.0, ticket >= 180]
        return 'middle', [n for n, b in enumerate(broken) if b]

    if price >= 200:
        return 'plain', [0] if ratings[1] < 3.2 else []

    return 'none', []


def days(city):
    """Yields (hotel, lunch, attraction, dinner) of a city."""

    for h, a in product(city['hotels'], city['attractions']):
        for lunch, dinner in permutations(city['restaurants'], 2):
            yield h, lunch, a, dinner


class Audit:
    """Every right plan: of each route, the days that each city allows."""

    def __init__(self, db):
        self.cities = db['cities']
        self.routes = []

        for second in self.cities[START]['lines']:
            for third in self.cities[second]['lines']:
                if third not in (START, second):
                    self.routes.append((START, second, third))

    # most worlds are refused for their routes or clauses, without these

    @functools.cached_property
    def days(self):
        return {name: list(days(c)) for name, c in self.cities.items()}

    @functools.cached_property
    def sets(self):
        return {name: set(d) for name, d in self.days.items()}

    @functools.cached_property
    def second(self):
        return {c: self.allowed(c) for c in self.cities}

    def allowed(self, name):
        c = self.cities[name]

        return {d for d in days(c) if not day_two(
            c['hotels'][d[0]], c['restaurants'][d[1]], c['restaurants'][d[3]],
            c['attractions'][d[2]])[1]}

    def clauses(self):
        """Returns the (price class, clause) pairs that alone exclude a day
        of a city which a route has on the second day."""

        found = set()

        for name in {r[1] for r in self.routes}:
            c = self.cities[name]
            for h, lunch, a, dinner in days(c):
                band, broken = day_two(
                    c['hotels'][h], c['restaurants'][lunch],
                    c['restaurants'][dinner], c['attractions'][a])
                if len(broken) == 1:
                    found.add((band, broken[0]))

        return found

    def is_right(self, answer):
        if not isinstance(answer, list) or len(answer) != 3 \
                or not all(isinstance(d, dict) and sorted(d) == sorted(FIELDS)
                           and all(isinstance(v, str) for v in d.values())
                           for d in answer):
            return False

        if tuple(d['time'] for d in answer) != DATES \
                or tuple(d['city'] for d in answer) not in self.routes:
            return False

        chosen = [(d['hotel'], d['afternoon_restaurant'],
                   d['afternoon_attraction'], d['evening_restaurant'])
                  for d in answer]

        return all(x in self.sets[d['city']]
                   for d, x in zip(answer, chosen)) \
            and chosen[1] in self.second[answer[1]['city']]

    def draw(self, rng):
        """Returns a plan with a route and places of its cities, which need not
        keep the rules of the second day."""

        route = rng.choice(self.routes)
        plan = []

        for date, c in zip(DATES, route):
            h, lunch, a, dinner = rng.choice(self.days[c])
            plan.append(dict(zip(FIELDS, (date, c, h, lunch, a, dinner))))

        return plan


CLAUSES = {('luxury', 0), ('luxury', 1), ('luxury', 2), ('middle', 0),
           ('middle', 1), ('plain', 0)}


def goes_back(db, audit):
    """Whether a plan that takes the first line and the first places fails,
    and one of the lines leads into a city from which no trip goes on."""

    ways = list(db['cities'][START]['lines'])
    leads_on = {r[1] for r in audit.routes}

    return not leads_on >= set(ways) and (
        ways[0] not in leads_on
        or next(days(db['cities'][ways[0]])) not in audit.second[ways[0]])


TOOLS = '''
def get_all_cities(db):
    """Lists all cities."""
    return {"cities": list(db["cities"])}

def get_city_transport(db, city: str):
    """Lists the cities to which a direct line leads from a city."""
    if city not in db["cities"]:
        raise ValueError("no such city: " + city)
    return {"city": city, "lines": list(db["cities"][city]["lines"])}

def get_inter_city_transport(db, from_city: str, to_city: str):
    """Returns the direct line between two cities and its price."""
    for c in (from_city, to_city):
        if c not in db["cities"]:
            raise ValueError("no such city: " + c)
    lines = db["cities"][from_city]["lines"]
    return lines.get(to_city, {"by": "none", "price": 0})

def get_weather_by_city_date(db, city: str, date: str):
    """Returns the weather in a city on a date, such as 2025-10-01."""
    if city not in db["cities"]:
        raise ValueError("no such city: " + city)
    if date not in db["cities"][city]["weather"]:
        raise ValueError("no such date: " + date)
    return {"weather": db["cities"][city]["weather"][date]}

def get_infos_by_city(db, info_keywords: str, city: str):
    """Returns an info of a city: population."""
    if city not in db["cities"]:
        raise ValueError("no such city: " + city)
    if info_keywords != "population":
        raise ValueError("no such info; known: population")
    return {"city": city, "population": db["cities"][city]["population"]}
'''

KINDS = (('hotel', 'price'), ('restaurant', 'price and rating'),
         ('attraction', 'ticket'))

KIND_TOOLS = '''
def get_all_{k}s_by_city(db, city: str):
    """Lists the {k}s of a city."""
    if city not in db["cities"]:
        raise ValueError("no such city: " + city)
    return {{"city": city, "{k}s": list(db["cities"][city]["{k}s"])}}

def get_city_by_{k}(db, {k}: str):
    """Returns the city of a {k}."""
    for c in db["cities"]:
        if {k} in db["cities"][c]["{k}s"]:
            return {{"{k}": {k}, "city": c}}
    raise ValueError("no such {k}: " + {k})

def get_infos_by_{k}(db, info_keywords: str, {k}: str):
    """Returns infos of a {k}: {infos}.  Keywords are divided by blanks."""
    for c in db["cities"].values():
        if {k} in c["{k}s"]:
            known = c["{k}s"][{k}]
            found = {{"{k}": {k}}}
            for w in info_keywords.split():
                if w in known:
                    found[w] = known[w]
            return found
    raise ValueError("no such {k}: " + {k})
'''

SOLUTION = '''
def solve():
    dates = ["2025-10-01", "2025-10-02", "2025-10-03"]
    known = {}
    part = [("Hangzhou", None)]
    ways = [[]]
    while part:
        city = part[-1][0]
        if len(part) == 2 and part[-1][1] is None:
            if city not in known:
                known[city] = []
                hotels = get_all_hotels_by_city(city)["hotels"]
                places = get_all_restaurants_by_city(city)["restaurants"]
                sights = get_all_attractions_by_city(city)["attractions"]
                table = [get_infos_by_restaurant("price rating", r)
                         for r in places]
                ticket = {}
                for a in sights:
                    ticket[a] = get_infos_by_attraction("ticket", a)["ticket"]
                for h in hotels:
                    price = get_infos_by_hotel("price", h)["price"]
                    for x in table:
                        for y in table:
                            if x["restaurant"] == y["restaurant"]:
                                continue
                            low = min(x["rating"], y["rating"])
                            high = max(x["rating"], y["rating"])
                            both = x["price"] + y["price"]
                            for a in sights:
                                if price >= 800:
                                    good = both < 350 and low >= 4.0 \\
                                        and ticket[a] < 120
                                elif price >= 500:
                                    good = high >= 4.0 and ticket[a] < 180
                                else:
                                    good = high >= 3.2
                                if good:
                                    known[city].append(
                                        [h, x["restaurant"], a,
                                         y["restaurant"]])
            if not known[city]:
                part.pop()
                ways.pop()
                continue
            part[-1] = (city, known[city][0])
        if len(part) == 3:
            plan = []
            for i in range(3):
                c, day = part[i]
                if day is None:
                    r = get_all_restaurants_by_city(c)["restaurants"]
                    day = [get_all_hotels_by_city(c)["hotels"][0], r[0],
                           get_all_attractions_by_city(c)["attractions"][0],
                           r[1]]
                plan.append({"time": dates[i], "city": c, "hotel": day[0],
                             "afternoon_restaurant": day[1],
                             "afternoon_attraction": day[2],
                             "evening_restaurant": day[3]})
            return plan
        if not ways[-1]:
            ways[-1] = [None] + [
                c for c in get_city_transport(city)["lines"]
                if c not in [p[0] for p in part]]
        if len(ways[-1]) == 1:
            part.pop()
            ways.pop()
            continue
        part.append((ways[-1].pop(), None))
        ways.append([])
    return None
'''

VERIFIER = '''
def verify(db, answer):
    fields = ["time", "city", "hotel", "afternoon_restaurant",
              "afternoon_attraction", "evening_restaurant"]
    if not isinstance(answer, list) or len(answer) != 3:
        return "it is not a list of three days"
    seen = []
    for i in range(3):
        day = answer[i]
        if not isinstance(day, dict) or sorted(day) != sorted(fields):
            return "a day has other fields"
        if not all([isinstance(v, str) for v in day.values()]):
            return "a field is no text"
        if day["time"] != "2025-10-0" + str(i + 1):
            return "a day has another date"
        if day["city"] not in db["cities"]:
            return "no such city"
        here = db["cities"][day["city"]]
        for field, kind in (("hotel", "hotels"),
                            ("afternoon_restaurant", "restaurants"),
                            ("evening_restaurant", "restaurants"),
                            ("afternoon_attraction", "attractions")):
            if day[field] not in here[kind]:
                return "a place is not in the city of its day"
            seen.append((kind, day[field]))
        seen.append(("city", day["city"]))
        if i == 0 and day["city"] != "Hangzhou":
            return "the trip starts elsewhere"
        if i > 0 and day["city"] not in db["cities"][
                answer[i - 1]["city"]]["lines"]:
            return "there is no direct line"
    if len(set(seen)) != len(seen):
        return "something is there twice"
    day = answer[1]
    here = db["cities"][day["city"]]
    price = here["hotels"][day["hotel"]]["price"]
    lunch = here["restaurants"][day["afternoon_restaurant"]]
    dinner = here["restaurants"][day["evening_restaurant"]]
    ticket = here["attractions"][day["afternoon_attraction"]]["ticket"]
    good = 0
    fair = 0
    for r in (lunch, dinner):
        if r["rating"] >= 4.0:
            good += 1
        if r["rating"] >= 3.2:
            fair += 1
    if price >= 800:
        if lunch["price"] + dinner["price"] >= 350:
            return "luxury: the restaurants cost too much"
        if good < 2:
            return "luxury: a restaurant is rated below 4.0"
        if ticket >= 120:
            return "luxury: the ticket costs too much"
    if 500 <= price and price < 800:
        if good == 0:
            return "middle: no restaurant is rated 4.0"
        if ticket >= 180:
            return "middle: the ticket costs too much"
    if 200 <= price and price < 500 and fair == 0:
        return "plain: no restaurant is rated 3.2"
    return None
'''


# wrong variants of a solution and of a verifier, as program.py has them

FAULTY = 0.25
WRONG_SOLUTION = ('forgets', 'database', 'import', 'name', 'form')
WRONG_VERIFIER = ('forgets', 'reversed', 'form')


class Hangzhou:
    """The proposer of this task.  The first level is the paper's; each further
    one adds a limit (hangzhou_levels.py)."""

    levels = levels.LEVELS

    def __init__(self, seed, faulty=FAULTY):
        self.seed = seed
        self.faulty = faulty
        self.last = 'verifier'
        self.part = words.part_of(seed)
        rng = random.Random(f'hangzhou/{seed}')
        self.values = None

        while self.values is None:
            self.db = database(rng, self.part)
            self.audit = Audit(self.db)

            if self.audit.routes and CLAUSES == self.audit.clauses() \
                    and any(self.audit.second[r[1]]
                            for r in self.audit.routes) \
                    and goes_back(self.db, self.audit):
                self.values = levels.choose(random.Random(
                    f'hangzhou/{seed}/limits'), self.audit)

    def limits(self, level):
        """Returns (Limit, value) of a level."""

        return list(zip(levels.LIMITS, self.values))[:level - 1]

    def is_right(self, level, plan):
        return self.audit.is_right(plan) and all(
            limit.holds(self.db['cities'], plan, x)
            for limit, x in self.limits(level))

    def propose(self, level=1):
        self.random = random.Random(f'hangzhou/{self.seed}/{level}')
        kinds = ''.join(KIND_TOOLS.format(k=k, infos=i) for k, i in KINDS)
        limits = self.limits(level)
        side = (words.TRAIN, words.EVAL).index(self.part)

        return Candidate(
            category='hangzhou', seed=self.seed, level=level, db=self.db,
            tools=TOOLS + kinds,
            text='\n\n'.join([REQUEST, *(
                limit.texts[side].format(x=x) for limit, x in limits), FORM]),
            solution=self.solution(level, self.variant(WRONG_SOLUTION)),
            verifier=self.verifier(level, self.variant(WRONG_VERIFIER)),
            check=lambda plan: self.is_right(level, plan),
            probes=self.probes(level),
            attempt=self.attempt, policy=POLICY,
            kinds=('located', 'distinct', 'connected', 'conditional', 'sum',
                   'extreme', 'count', *(x.kind for x, _ in limits)))

    def harder(self, candidate):
        return self.propose(candidate.level + 1)

    def attempt(self, rng):
        return self.audit.draw(rng)

    def variant(self, wrong):
        return self.random.choice(wrong) \
            if self.random.random() < self.faulty else ''

    def probes(self, level):
        """Returns plans that a verifier must decide rightly: drawn ones, those
        that break one limit only, and for each clause of the second day one
        that breaks nothing else."""

        drawn = [self.attempt(self.random) for _ in range(levels.DRAWS)]
        good = [p for p in drawn if self.is_right(level, p)]
        cities = self.db['cities']
        found = drawn[:60] + good[:20]

        for one in self.limits(level):
            found += [p for p in drawn if self.audit.is_right(p)
                      and [x for x in self.limits(level)
                           if not x[0].holds(cities, p, x[1])] == [one]][:4]

        for clause in CLAUSES:
            found += [p for p in drawn if broken_by(cities, p)
                      == (clause[0], [clause[1]])][:2]

        return found

    def solution(self, level, wrong):
        text = SOLUTION
        limits = self.limits(level)

        if level > 1:
            used = limits[:-1] if wrong == 'forgets' else limits
            rules = ''.join(
                f'{INDENT}if {limit.condition(limit.sol, x, wrong=True)}:\n'
                f'{INDENT}    continue\n' for limit, x in used)
            text = levels.SEARCH.replace(f'{INDENT}RULES\n', rules)

        elif wrong == 'forgets':
            text = text.replace('both < 350 and ', '')

        return {'database': lambda: text.replace(
                    'def solve():\n', 'def solve():\n    x = db["cities"]\n'),
                'import': lambda: 'import itertools\n' + text,
                'name': lambda: text.replace('continue', 'contineu', 1),
                'form': lambda: text.replace('return plan', 'return [plan]'),
                }.get(wrong, lambda: text)()

    def verifier(self, level, wrong):
        text = VERIFIER
        limits = self.limits(level)
        rules = ''

        for i, (limit, x) in enumerate(limits):
            last = i == len(limits) - 1
            if last and wrong == 'forgets':
                continue
            lines = limit.ver + 'if ' + limit.condition(
                'n', x, wrong='' if last and wrong == 'reversed' else 'no') \
                + f':\n    return "limit: {limit.kind}"\n'
            rules += ''.join(f'    {line}\n'
                             for line in lines.strip('\n').split('\n'))

        if level == 1 and wrong == 'forgets':
            text = text.replace('if ticket >= 120:', 'if ticket >= 9999:')
        elif level == 1 and wrong == 'reversed':
            text = text.replace('if ticket >= 180:', 'if ticket < 180:')
        elif wrong == 'form':
            text = text.replace('len(answer) != 3', 'len(answer) != 4')

        return text.replace('    return None\n', rules + '    return None\n')

    def repair(self, candidate, fault):
        """Writes the part again at which the fault points.  If that can be
        the solution or the verifier, it takes turns."""

        c = candidate
        self.last = 'verifier' if self.last == 'solution' else 'solution'
        part = {'source': 'solution', 'tools': 'solution',
                'failed': 'solution', 'broken': 'verifier',
                'strict': 'verifier', 'lenient': 'verifier'}.get(fault.kind,
                                                              self.last)

        if part == 'solution':
            c.solution = self.solution(c.level, self.variant(WRONG_SOLUTION))
        else:
            c.verifier = self.verifier(c.level, self.variant(WRONG_VERIFIER))

        return c


INDENT = ' ' * 24


def broken_by(cities, plan):
    """Returns what day_two() returns for the second day of a plan."""

    c, d = cities[plan[1]['city']], plan[1]

    return day_two(c['hotels'][d['hotel']],
                   c['restaurants'][d['afternoon_restaurant']],
                   c['restaurants'][d['evening_restaurant']],
                   c['attractions'][d['afternoon_attraction']])
