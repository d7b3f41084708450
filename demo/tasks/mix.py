# Copyright (C) The nginx-dsa authors

"""All families, with their weights in training."""

import importlib
import random


class Make:
    """The make() of a module of this package.  The module is imported when
    it is first used, so that a program that needs one family does not load
    all."""

    def __init__(self, module):
        self.module = module

    def __call__(self, rng):
        return importlib.import_module('tasks.' + self.module).make(rng)


# family: weight in training.  The weights count tasks, not tokens: a trip is
# as long as sixteen look-ups.  There are many look-ups because finding and
# repeating a statement is learned late, and most families need it.

WEIGHTS = {
    'talk': 0.20,
    'arithmetic': 0.12,
    'arithmetic_story': 0.04,
    'lookup': 0.27,
    'tools_single': 0.06,
    'tools_none': 0.04,
    'tools_error': 0.07,
    'tools_multi': 0.04,
    'chat': 0.08,
    'lookup_long': 0.04,
    'trip_facts': 0.01,
    'trip_short': 0.01,
    'trip': 0.02,
}

FAMILIES = {family: Make(family) for family in WEIGHTS}


def draw_family(rng, families=None):
    """Draws a family by weight, from these or from all."""

    families = families or list(WEIGHTS)

    return rng.choices(families, [WEIGHTS[f] for f in families])[0]


def task_of(family, seed):
    """Returns the task of a family with this seed, which may be any text.
    Training uses the seeds train-N and evaluation eval-N, so no task is in
    both."""

    return FAMILIES[family](random.Random(f'{family}/{seed}'))
