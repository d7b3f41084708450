# Copyright (C) The nginx-dsa authors

"""All families, and how often training draws each."""

import importlib
import random


class Make:
    """The make() of a module of this package, which is imported when first
    used: a program that needs one family does not wait for all."""

    def __init__(self, module):
        self.module = module

    def __call__(self, rng):
        return importlib.import_module('tasks.' + self.module).make(rng)


# family: weight in training.  These count tasks, not tokens: a trip is as
# long as sixteen look-ups.  Look-ups are many because to find what was said,
# and to say it again, is learned late, and most families ask for it.

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
    """Returns one of the families, of all unless told, by their weights."""

    families = families or list(WEIGHTS)

    return rng.choices(families, [WEIGHTS[f] for f in families])[0]


def task_of(family, seed):
    """Returns the task that a seed, any text, names in a family.  Training
    uses seeds train-N and evaluation eval-N, so that they do not meet."""

    return FAMILIES[family](random.Random(f'{family}/{seed}'))
