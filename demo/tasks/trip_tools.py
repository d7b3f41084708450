# Copyright (C) The nginx-dsa authors

"""The tools of trip planning: the set of the paper's section 3.2.3.

A result names its subject ({"hotel": "Amber Inn", "price": 230}), so that the
model can find it again by name instead of by position.
"""

from tasks.task import Tool, function


RECEIVED = 'received'


def make(world):
    """Returns the fifteen tools on a world, by name."""

    tools = [
        by_city('attractions', world),
        Tool(function('get_all_cities', 'All cities'),
             lambda a: {'cities': list(world.cities)}),
        by_city('hotels', world),
        by_city('restaurants', world),
        city_of('attraction', world),
        city_of('hotel', world),
        city_of('restaurant', world),
        Tool(function('get_city_transport', 'Cities with a direct line',
                      city='string'),
             lambda a: {'city': a['city'],
                        'lines': list(find(world, a['city']).lines)}),
        infos('attraction', 'ticket, opens', places(world, 'attraction')),
        infos('city', 'population, region',
              {n: {'population': c.population, 'region': c.region}
               for n, c in world.cities.items()}),
        infos('hotel', 'price, stars', places(world, 'hotel')),
        infos('restaurant', 'price, rating', places(world, 'restaurant')),
        Tool(function('get_inter_city_transport', 'Line between two cities',
                      from_city='string', to_city='string'),
             lambda a: line(world, a['from_city'], a['to_city'])),
        Tool(function('get_weather_by_city_date', 'Weather on a date',
                      city='string', date='string'),
             lambda a: weather(world, a['city'], a['date'])),

        # the submitted plan is kept in the record of calls; the check verifies
        # it, not the tool

        Tool(function('submit_result', 'Hand in the plan',
                      answer_text='string'),
             lambda a: RECEIVED),
    ]

    return {t.function['name']: t for t in tools}


def find(world, city):
    """Returns the City of a name."""

    if city not in world.cities:
        raise ValueError('no such city: ' + city)

    return world.cities[city]


def places(world, kind):
    """Returns all hotels, restaurants or attractions of a world."""

    return {name: infos for c in world.cities.values()
            for name, infos in getattr(c, kind + 's').items()}


def by_city(kinds, world):
    return Tool(function(f'get_all_{kinds}_by_city',
                         f'{kinds.capitalize()} of a city', city='string'),
                lambda a: {'city': a['city'],
                           kinds: list(getattr(find(world, a['city']),
                                               kinds))})


def city_of(kind, world):
    home = {name: city for city, c in world.cities.items()
            for name in getattr(c, kind + 's')}

    def run(arguments):
        name = arguments[kind]
        if name not in home:
            raise ValueError(f'no such {kind}: {name}')
        return {kind: name, 'city': home[name]}

    return Tool(function(f'get_city_by_{kind}', f'City of the {kind}',
                         **{kind: 'string'}), run)


def infos(kind, keywords, known):
    """Returns the tool that reports the queried infos of a thing; known is
    name -> infos."""

    def run(arguments):
        name = arguments[kind]
        if name not in known:
            raise ValueError(f'no such {kind}: {name}')

        result = {kind: name}

        for keyword in arguments['info_keywords']:
            if not isinstance(keyword, str) or keyword not in known[name]:
                raise ValueError(f'no such info: {keyword}')
            result[keyword] = known[name][keyword]

        return result

    return Tool(function(f'get_infos_by_{kind}', keywords.capitalize(),
                         info_keywords='array', **{kind: 'string'}), run)


def line(world, a, b):
    result = {'from': a, 'to': b, 'by': 'none'}
    find(world, b)
    result.update(find(world, a).lines.get(b, {}))
    return result


def weather(world, city, date):
    known = find(world, city).weather

    if date not in known:
        raise ValueError('no weather for ' + date)

    return {'city': city, 'date': date, **known[date]}
