# Copyright (C) The nginx-dsa authors

"""What the levels of the Hangzhou trip ask for besides the paper's request.

A limit is written three times, by hand and differently: for the solution, for
the verifier and for the audit (category.py has the reason).
"""

from dataclasses import dataclass
from typing import Callable, Tuple


@dataclass(frozen=True)
class Limit:
    """
    kind
    sense   '<=' or '>='
    texts   for training and for evaluation; {x} is the limit
    sol     the number in the solution, of the days a, b and c
    ver     lines of the verifier that compute n
    audit   (cities, plan) -> the number
    """
    kind: str
    sense: str
    texts: Tuple[str, str]
    sol: str
    ver: str
    audit: Callable

    def holds(self, cities, plan, x):
        n = self.audit(cities, plan)

        return n <= x if self.sense == '<=' else n >= x

    def condition(self, n, x, wrong=''):
        return f'{"not " if wrong else ""}({n} {self.sense} {x})'


def places(cities, plan, field, kind):
    return [cities[d['city']][kind][d[field]] for d in plan]


def fares(cities, plan):
    return sum(cities[a['city']]['lines'][b['city']]['price']
               for a, b in zip(plan, plan[1:]))


def worst(cities, plan):
    return min(r['rating'] for f in ('afternoon', 'evening')
               for r in places(cities, plan, f + '_restaurant',
                               'restaurants'))


# the first level has none of them, each further one the next, too

LIMITS = (
    Limit('sum', '<=',
          ('The hotels of the three nights together must cost at most {x} '
           'CNY.', 'I cannot spend more than {x} CNY on all hotels of the '
           'trip.'),
          'a[4] + b[4] + c[4]',
          'n = 0\nfor d in answer:\n'
          '    n += db["cities"][d["city"]]["hotels"][d["hotel"]]["price"]\n',
          lambda cities, plan: sum(h['price'] for h in places(
              cities, plan, 'hotel', 'hotels'))),
    Limit('connected', '<=',
          ('The prices of the two direct lines must add up to at most {x} '
           'CNY.', 'For travelling from city to city I have {x} CNY and no '
           'more.'),
          'fare[start + second] + fare[second + third]',
          'n = 0\nfor i in range(2):\n'
          '    lines = db["cities"][answer[i]["city"]]["lines"]\n'
          '    n += lines[answer[i + 1]["city"]]["price"]\n', fares),
    Limit('extreme', '>=',
          ('Every restaurant of the trip must be rated {x} or better.',
           'No restaurant, on whichever day, may have a rating below {x}.'),
          'min(a[6], b[6], c[6])',
          'rated = []\nfor d in answer:\n'
          '    known = db["cities"][d["city"]]["restaurants"]\n'
          '    rated.append(known[d["afternoon_restaurant"]]["rating"])\n'
          '    rated.append(known[d["evening_restaurant"]]["rating"])\n'
          'n = min(rated)\n', worst),
    Limit('total', '<=',
          ('The tickets of the three attractions must not exceed {x} CNY in '
           'all.', 'All attraction tickets taken together may come to {x} CNY '
           'at most.'),
          'a[5] + b[5] + c[5]',
          'tickets = [db["cities"][d["city"]]["attractions"]'
          '[d["afternoon_attraction"]]["ticket"] for d in answer]\n'
          'n = sum(tickets)\n',
          lambda cities, plan: sum(a['ticket'] for a in places(
              cities, plan, 'afternoon_attraction', 'attractions'))),
)

# the share of the first level's right plans that are right, by level

SHARES = (1, 0.6, 0.35, 0.16, 0.07)
LEVELS = len(SHARES)

DRAWS = 4000


def cut(limit, numbers, wanted):
    """Returns the value for which about so many of the numbers are on the
    right side."""

    ordered = sorted(numbers, reverse=limit.sense == '>=')

    return ordered[max(0, min(len(ordered), round(wanted)) - 1)]


def choose(rng, audit):
    """Returns the values of LIMITS for an Audit, or None if too few plans
    would be right."""

    drawn = [p for p in (audit.draw(rng) for _ in range(DRAWS))
             if audit.is_right(p)]
    left, values = drawn, []

    for limit, share in zip(LIMITS, SHARES[1:]):
        numbers = [limit.audit(audit.cities, p) for p in left]
        values.append(cut(limit, numbers, share * len(drawn)))
        left = [p for p in left
                if limit.holds(audit.cities, p, values[-1])]

    return values if len(left) >= DRAWS // 100 else None


SEARCH = '''
def solve():
    start = "Hangzhou"
    fare = {}
    lines = {}
    todo = [start]
    for city in todo:
        lines[city] = get_city_transport(city)["lines"]
        for to in lines[city]:
            line = get_inter_city_transport(city, to)
            fare[city + to] = line["price"]
            if to not in todo:
                todo.append(to)
    options = {}
    for city in todo:
        options[city + " 2"] = []
        options[city] = []
        hotels = [get_infos_by_hotel("price", h)
                  for h in get_all_hotels_by_city(city)["hotels"]]
        meals = [get_infos_by_restaurant("price rating", r) for r in
                 get_all_restaurants_by_city(city)["restaurants"]]
        sights = [get_infos_by_attraction("ticket", s) for s in
                  get_all_attractions_by_city(city)["attractions"]]
        for h in hotels:
            for s in sights:
                for x in meals:
                    for y in meals:
                        if x["restaurant"] == y["restaurant"]:
                            continue
                        low = min(x["rating"], y["rating"])
                        high = max(x["rating"], y["rating"])
                        day = [h["hotel"], x["restaurant"], s["attraction"],
                               y["restaurant"], h["price"], s["ticket"], low]
                        options[city].append(day)
                        if h["price"] >= 800:
                            good = x["price"] + y["price"] < 350 \\
                                and low >= 4.0 and s["ticket"] < 120
                        elif h["price"] >= 500:
                            good = high >= 4.0 and s["ticket"] < 180
                        else:
                            good = high >= 3.2
                        if good:
                            options[city + " 2"].append(day)
    # of equal prices and tickets, the day with the best restaurants is enough
    for key in options:
        best = {}
        for day in options[key]:
            seen = best.get(day[0] + "," + day[2])
            if seen is None or seen[6] < day[6]:
                best.update({day[0] + "," + day[2]: day})
        options[key] = list(best.values())
    for second in lines[start]:
        for third in lines[second]:
            if third in (start, second):
                continue
            for a in options[start]:
                for b in options[second + " 2"]:
                    for c in options[third]:
                        RULES
                        plan = []
                        for date, city, d in (("2025-10-01", start, a),
                                              ("2025-10-02", second, b),
                                              ("2025-10-03", third, c)):
                            plan.append({"time": date, "city": city,
                                         "hotel": d[0],
                                         "afternoon_restaurant": d[1],
                                         "afternoon_attraction": d[2],
                                         "evening_restaurant": d[3]})
                        return plan
    return None
'''
