# Copyright (C) The nginx-dsa authors

"""Trip planning, a small version of the paper's general agent task (section
3.2.3): one to three days, conditional limits, fifteen tools, a verified
plan."""

import json

from tasks import trip_request, trip_solve, trip_tools
from tasks.task import DISCARD, RETAIN, Task, Turn
from tasks.trip_verify import verify
from tasks.trip_world import Size


# by days: a conversation must fit into 3,600 tokens

SIZES = {
    1: Size(cities=(3, 6), hotels=(2, 4), restaurants=(3, 4),
            attractions=(2, 3)),
    2: Size(cities=(3, 6), hotels=(2, 3), restaurants=(3, 3),
            attractions=(2, 3)),
    3: Size(cities=(4, 6), hotels=(2, 2), restaurants=(3, 3),
            attractions=(2, 2)),
}

SYSTEM = ('A plan is a JSON list of days: time, city, hotel, '
          'afternoon_restaurant, afternoon_attraction, evening_restaurant.')


def make(rng):
    days = rng.choice((1, 2, 3, 3))
    return plan_task('trip', 'plan', rng, SIZES[days], days)


def plan_task(family, kind, rng, size, days):
    """Returns a task of one request."""

    request, world = trip_request.make(rng, size, days)

    def check(answer, calls):
        return judge(request, world, answer, calls)

    return Task(family=family, kind=kind, modes=(RETAIN, DISCARD),
                system=SYSTEM, tools=trip_tools.make(world),
                turns=[Turn(request.text, check, trip_solve.gold(request))])


def judge(request, world, answer, calls):
    """Checks the last submitted plan.  The answer must not be empty, but may
    describe the plan in any way."""

    plans = [c.arguments['answer_text'] for c in calls
             if c.name == 'submit_result'
             and json.loads(c.result) == trip_tools.RECEIVED]

    if not plans:
        return 'no plan was submitted'

    why = verify(request, world, plans[-1])

    if why is None and answer.strip() == '':
        return 'the answer is empty'

    return why
