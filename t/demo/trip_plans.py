# Copyright (C) The nginx-dsa authors

"""Plans of trips for tests: the right ones, and all possible ones."""

import itertools
import json
import random

from tasks import trip, trip_request
from tasks.task import RETAIN, play


FIELDS = ['time', 'city', 'hotel', 'afternoon_restaurant',
          'afternoon_attraction', 'evening_restaurant']


def by_assistant(messages):
    return [m for m in messages if m['role'] == 'assistant']


def calls_of(message):
    return [(c['function']['name'], json.loads(c['function']['arguments']))
            for c in message.get('tool_calls', [])]


def submitted(messages):
    texts = [a['answer_text'] for m in by_assistant(messages)
             for name, a in calls_of(m) if name == 'submit_result']
    assert len(texts) == 1
    return json.loads(texts[0])


def solved(seed, days):
    """Returns (request, world, plan); the plan is the gold policy's."""

    size = trip.SIZES[days]
    request, world = trip_request.make(random.Random(seed), size, days)
    task = trip.plan_task('trip', 'plan', random.Random(seed), size, days)
    return request, world, submitted(play(task, RETAIN))


def choices(world, date, name):
    """Yields each day that is possible in a city."""

    city = world.cities[name]

    for hotel, (noon, evening), attraction in itertools.product(
            city.hotels, itertools.permutations(city.restaurants, 2),
            city.attractions):
        yield dict(zip(FIELDS, (date, name, hotel, noon, attraction,
                                evening)))
