# Copyright (C) The nginx-dsa authors

"""Short questions about the places of trip planning, with its tools.  They are
the steps that trip.py combines in one conversation."""

from tasks import digits, trip_tools, trip_world
from tasks.task import CHAT, DISCARD, RETAIN, Task, Turn
from tasks.tools_check import says_choice, says_no, says_number, says_words
from tasks.tools_text import listed
from tasks.trip_think import Mind, compared, first_of, infos
from tasks.trip_world import Size
from tasks.wording import polite


SIZE = Size(cities=(3, 5), hotels=(2, 4), restaurants=(2, 4),
            attractions=(2, 3))

KINDS = ('hotel', 'restaurant', 'attraction')


def make(rng):
    world = trip_world.make(rng, SIZE, trip_world.dates(rng, 3))
    draw, modes = rng.choice(QUESTIONS)
    ways, policy, check = draw(rng, world)
    user = polite(rng, rng.choice(ways))

    def gold(mode):
        return policy(Mind(mode))

    return Task(family='trip_facts', kind='multi', modes=modes,
                tools=trip_tools.make(world),
                turns=[Turn(user, lambda answer, calls: check(answer, user),
                            gold)])


# Each function below takes rng and world and returns (ways, policy, check):
# ways to ask, Mind -> generator of steps, and (answer, user) -> None or the
# reason why the answer is wrong.


# kind, info, a question about this info of place x, its answer

INFOS = (
    ('hotel', 'price', (
        'What does a night at {x} cost?', 'How much is a night at {x}?',
        'What is the price of {x}?', 'Tell me what {x} costs a night.'),
     'A night at {x} costs {n}.'),
    ('hotel', 'stars', (
        'How many stars does {x} have?', 'With how many stars comes {x}?',
        'I look for the stars of the hotel {x}.'),
     '{x} has {n} stars.'),
    ('restaurant', 'price', (
        'What does dinner at {x} cost?', 'How much is a meal at {x}?',
        'What will I pay at the restaurant {x}?'),
     'A meal at {x} costs {n}.'),
    ('restaurant', 'rating', (
        'How is {x} rated?', 'What is the rating of {x}?',
        'Find out the rating of the restaurant {x}.'),
     '{x} is rated {n}.'),
    ('attraction', 'ticket', (
        'What is a ticket for {x}?', 'How much does it cost to see {x}?',
        'What do I pay to get into {x}?'),
     'A ticket for {x} costs {n}.'),
    ('attraction', 'opens', (
        'When does {x} open?', 'At what hour can I get into {x}?',
        'From when on is {x} open?'),
     '{x} opens at {n}.'),
    ('city', 'population', (
        'How many thousand people live in {x}?',
        'What is the population of {x} in thousands?',
        'How large is {x}, in thousands of people?'),
     '{n} thousand people live in {x}.'),
    ('city', 'region', (
        'In which region is {x}?', 'What region is {x} in?',
        'Where in the country is {x}?'),
     'The region of {x} is: {n}.'),
)


def one_info(rng, world):
    kind, info, ways, answer = rng.choice(INFOS)

    if kind == 'city':
        x = rng.choice(list(world.cities))
        wanted = getattr(world.cities[x], info)
    else:
        known = trip_tools.places(world, kind)
        x = rng.choice(list(known))
        wanted = known[x][info]

    def policy(mind):
        mind.think(f'{info.capitalize()} of {x}.')
        result, = yield mind.step(*infos(kind, [x], info))
        mind.think(f'It is {result[info]}.')
        yield mind.answer(answer.format(x=x, n=result[info]))

    def check(answer, user):
        if info == 'region':
            return says_choice(answer, wanted, trip_world.REGIONS)
        return says_number(answer, wanted, user)

    return [w.format(x=x) for w in ways], policy, check


def lines_from(rng, world):
    x = rng.choice(list(world.cities))
    lines = world.cities[x].lines
    others = [c for c in world.cities if c not in lines and c != x]

    def policy(mind):
        mind.think(f'Lines from {x}.')
        result, = yield mind.step(('get_city_transport', {'city': x}))
        mind.think(f'Lines: {", ".join(result["lines"])}.')
        yield mind.answer(f'From {x} there are direct lines to '
                          f'{listed(result["lines"])}.')

    return ([f'Where can I go from {x} by direct line?',
             f'To which cities is there a direct line from {x}?',
             f'Which cities have a direct line to {x}?',
             f'I am in {x}. What cities can I reach directly?',
             f'List the direct lines that start in {x}.'],
            policy,
            lambda answer, user: names_all(answer, lines, others))


def line_between(rng, world):
    a, b = rng.sample(list(world.cities), 2)
    line = world.cities[a].lines.get(b)

    def policy(mind):
        mind.think(f'Line from {a} to {b}.')
        result, = yield mind.step(('get_inter_city_transport',
                                   {'from_city': a, 'to_city': b}))

        if result['by'] == 'none':
            mind.think('No line.')
            yield mind.answer(f'There is no direct line from {a} to {b}.')
        else:
            mind.think(f'By {result["by"]} for {result["price"]}.')
            yield mind.answer(f'You can take the {result["by"]} from {a} to '
                              f'{b}; it costs {result["price"]}.')

    def check(answer, user):
        if line is None:
            return says_no(answer)
        return says_words(answer, line['by']) \
            or says_number(answer, line['price'], user)

    return ([f'How do I get from {a} to {b}, and what does it cost?',
             f'What is the direct line from {a} to {b} and its price?',
             f'I want to go to {b} from {a} directly. By what, and for how '
             f'much?',
             f'Is there a direct line from {a} to {b}? What does it cost?'],
            policy, check)


def weather_at(rng, world):
    kind = rng.choice(KINDS)
    city = rng.choice(list(world.cities))
    x = rng.choice(list(getattr(world.cities[city], kind + 's')))
    date = rng.choice(world.dates)
    weather = world.cities[city].weather[date]['weather']

    def policy(mind):
        mind.think(f'City of {x}.')
        result, = yield mind.step((f'get_city_by_{kind}', {kind: x}))
        mind.think(f'It is {result["city"]}. Weather there on {date}.')
        result, = yield mind.step(('get_weather_by_city_date',
                                   {'city': result['city'], 'date': date}))
        mind.think(f'It is {result["weather"]}, {result["degrees"]} '
                   f'degrees.')
        yield mind.answer(f'{x} is in {result["city"]}. The weather there on '
                          f'{date}: {result["weather"]}, '
                          f'{result["degrees"]} degrees.')

    def check(answer, user):
        return says_words(answer, city) \
            or says_choice(answer, weather, trip_world.WEATHER)

    return ([f'In which city is the {kind} {x}, and what is the weather '
             f'there on {date}?',
             f'What is the weather in the city of the {kind} {x} on {date}? '
             f'Name the city too.',
             f'I will be at the {kind} {x} on {date}. In what city is it, '
             f'and how is the weather?',
             f'Where is the {kind} {x}? And the weather in that city on '
             f'{date}?'],
            policy, check)


# kind, info, the sign for better, the text of the question

BEST = (
    ('hotel', 'price', '<', 'cheapest hotel'),
    ('hotel', 'stars', '>', 'hotel with the most stars'),
    ('restaurant', 'price', '<', 'cheapest restaurant'),
    ('restaurant', 'rating', '>', 'best rated restaurant'),
    ('attraction', 'ticket', '<', 'cheapest attraction'),
    ('attraction', 'opens', '<', 'attraction that opens first'),
)


def best_in_city(rng, world):
    kind, info, better, what = rng.choice(BEST)
    city = rng.choice(list(world.cities))
    known = getattr(world.cities[city], kind + 's')

    return ([f'Which is the {what} in {city}?',
             f'What is the {what} in {city}?',
             f'Find me the {what} in {city}.',
             f'I stay in {city}. Which is the {what} there?',
             f'Name the {what} of {city}, with its number.'],
            lambda mind: find_best(mind, city, kind, info, better, what),
            check_best(known, info, better))


def best_near(rng, world):
    """As best_in_city, but the city must first be found from a place."""

    kind, info, better, what = rng.choice(BEST)
    near = rng.choice([k for k in KINDS if k != kind])
    city = rng.choice(list(world.cities))
    x = rng.choice(list(getattr(world.cities[city], near + 's')))
    known = getattr(world.cities[city], kind + 's')

    def policy(mind):
        mind.think(f'City of {x}.')
        result, = yield mind.step((f'get_city_by_{near}', {near: x}))
        mind.think(f'It is {result["city"]}.')
        yield from find_best(mind, result['city'], kind, info, better, what)

    return ([f'Which is the {what} in the city of the {near} {x}?',
             f'I want to see the {near} {x}. What is the {what} in its city?',
             f'Find me the {what} in the city where the {near} {x} is.'],
            policy,
            check_best(known, info, better))


def find_best(mind, city, kind, info, better, what):
    names = yield from look_up(mind, city, kind, info)
    results = yield mind.step(*infos(kind, names, info))
    numbers = {r[kind]: r[info] for r in results}
    thought, best = first_of(numbers, better, what)
    mind.think(thought)
    yield mind.answer(f'The {what} in {city} is {best}: {numbers[best]}.')


def look_up(mind, city, kind, info):
    """Finds the names of a city's places, and queries the info of each."""

    mind.think(f'{kind.capitalize()}s of {city}.')
    result, = yield mind.step((f'get_all_{kind}s_by_city', {'city': city}))
    mind.think(f'{info.capitalize()} of each.')
    return result[kind + 's']


def check_best(known, info, better):
    extreme = min if better == '<' else max
    best = extreme(known, key=lambda name: known[name][info])
    return lambda answer, user: says_choice(answer, best, known)


def largest_city(rng, world):
    better, what = rng.choice((('>', 'most'), ('<', 'fewest')))
    known = {name: {'population': c.population}
             for name, c in world.cities.items()}

    def policy(mind):
        mind.think('All cities.')
        result, = yield mind.step(('get_all_cities', {}))
        mind.think('Population of each.')
        results = yield mind.step(*infos('city', result['cities'],
                                         'population'))
        thought, best = first_of({r['city']: r['population']
                                  for r in results}, better, what)
        mind.think(thought)
        yield mind.answer(f'{best} has the {what} people.')

    return ([f'Which city has the {what} people?',
             f'Find the city with the {what} people.',
             f'In which of all the cities do the {what} people live?',
             f'Of all cities, which has the {what} people?'],
            policy,
            check_best(known, 'population', better))


# kind, info, signs that satisfy a limit, the text of the question

KEPT = (
    ('restaurant', 'rating', '>=', 'restaurants in {city} are rated {n} or '
                                   'better'),
    ('restaurant', 'price', '<', 'restaurants in {city} cost less than {n}'),
    ('attraction', 'ticket', '<', 'attractions in {city} cost less than {n}'),
    ('hotel', 'price', '<', 'hotels in {city} cost less than {n}'),
)


def keep_limit(rng, world):
    kind, info, ok, what = rng.choice(KEPT)
    city = rng.choice(list(world.cities))
    known = getattr(world.cities[city], kind + 's')

    # equal to one of the numbers, or near it

    n = known[rng.choice(list(known))][info]
    limit = round(n + rng.randint(-3, 3) / 10, 1) if info == 'rating' \
        else n + rng.choice((-5, 0, 5, 10))
    what = what.format(city=city, n=limit)

    def policy(mind):
        names = yield from look_up(mind, city, kind, info)
        results = yield mind.step(*infos(kind, names, info))
        mind.think(*(compared(r[kind], r[info], limit, ok) for r in results))
        good = [r[kind] for r in results
                if digits.sign(r[info], limit) in ok]
        yield mind.answer(f'These {what}: {listed(good)}.' if good
                          else f'No {what}.')

    right = [x for x, has in known.items()
             if (has[info] >= limit if ok == '>=' else has[info] < limit)]

    def check(answer, user):
        if right == []:
            return says_no(answer) or names_all(answer, [], known)
        return names_all(answer, right,
                         [x for x in known if x not in right])

    return ([f'Which {what}?',
             f'Find out which {what}.',
             f'I want to know which {what}.'],
            policy, check)


def together(rng, world):
    city = rng.choice(list(world.cities.values()))
    hotel = rng.choice(list(city.hotels))
    restaurant = rng.choice(list(city.restaurants))
    wanted = city.hotels[hotel]['price'] \
        + city.restaurants[restaurant]['price']

    def policy(mind):
        mind.think(f'Price of {hotel}, price of {restaurant}.')
        a, b = yield mind.step(*infos('hotel', [hotel], 'price'),
                               *infos('restaurant', [restaurant], 'price'))
        mind.think(*digits.add(a['price'], b['price']))
        yield mind.answer(f'Together they cost {a["price"] + b["price"]}.')

    return ([f'What do a night at {hotel} and dinner at {restaurant} cost '
             f'together?',
             f'How much is it in sum to stay at {hotel} and eat at '
             f'{restaurant}?',
             f'I sleep at {hotel} and have a meal at {restaurant}. What do I '
             f'pay for both?'],
            policy,
            lambda answer, user: says_number(answer, wanted, user))


def names_all(answer, right, wrong):
    """The answer must have all the right names, and none of the wrong ones."""

    why = says_words(answer, *right)

    if why is not None:
        return why

    for name in wrong:
        if says_words(answer, name) is None:
            return f'{name} does not belong to: {answer}'

    return None


# questions of one round do not need thinking, except for a sum

ONE_ROUND = (RETAIN, DISCARD, CHAT)
MORE_ROUNDS = (RETAIN, DISCARD)

QUESTIONS = (
    (one_info, ONE_ROUND),
    (lines_from, ONE_ROUND),
    (line_between, ONE_ROUND),
    (weather_at, MORE_ROUNDS),
    (best_in_city, MORE_ROUNDS),
    (best_near, MORE_ROUNDS),
    (largest_city, MORE_ROUNDS),
    (keep_limit, MORE_ROUNDS),
    (together, MORE_ROUNDS),
)
