# Copyright (C) The nginx-dsa authors

"""Trip planning of one or two days and few cities, an easier step before
trip.py in learning."""

from tasks.trip import plan_task
from tasks.trip_world import Size


SIZE = Size(cities=(3, 3), hotels=(2, 2), restaurants=(2, 3),
            attractions=(2, 2))


def make(rng):
    return plan_task('trip_short', 'multi', rng, SIZE, rng.choice((1, 1, 2)))
