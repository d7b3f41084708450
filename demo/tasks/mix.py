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
# long as a hundred greetings, so that the plans are a tenth of the tasks and
# four tenths of the text.

WEIGHTS = {
    'talk': 0.13,
    'arithmetic': 0.16,
    'arithmetic_story': 0.05,
    'lookup': 0.11,
    'tools_single': 0.12,
    'tools_none': 0.05,
    'tools_error': 0.05,
    'tools_multi': 0.10,
    'chat': 0.09,
    'lookup_long': 0.04,
    'trip_facts': 0.03,
    'trip_short': 0.03,
    'trip': 0.04,
}

# for training after that, with more of what is hard: to find what was said and
# to say it again

PRACTICE = {
    'talk': 0.05,
    'arithmetic': 0.05,
    'arithmetic_story': 0.02,
    'lookup': 0.50,
    'tools_single': 0.03,
    'tools_none': 0.03,
    'tools_error': 0.08,
    'tools_multi': 0.025,
    'chat': 0.08,
    'lookup_long': 0.10,
    'trip_facts': 0.01,
    'trip_short': 0.01,
    'trip': 0.015,
}

FAMILIES = {family: Make(family) for family in WEIGHTS}


def draw_family(rng, families=None, weights=WEIGHTS):
    """Returns one of the families, of all unless told, by their weights."""

    families = families or list(weights)

    return rng.choices(families, [weights[f] for f in families])[0]


def task_of(family, seed):
    """Returns the task that a seed, any text, names in a family.  Training
    uses seeds train-N and evaluation eval-N, so that they do not meet."""

    return FAMILIES[family](random.Random(f'{family}/{seed}'))
