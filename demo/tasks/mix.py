# Copyright (C) The nginx-dsa authors

"""All families, with their weights in training."""

import importlib

from tasks.parts import Draw


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
# repeating a statement is learned late, and most families need it.  More than
# half of the tasks have ordinary wording (daily_*).

WEIGHTS = {
    'talk': 0.09,
    'arithmetic': 0.07,
    'arithmetic_story': 0.02,
    'lookup': 0.13,
    'tools_single': 0.03,
    'tools_none': 0.02,
    'tools_error': 0.03,
    'tools_multi': 0.03,
    'chat': 0.05,
    'lookup_long': 0.03,
    'trip_facts': 0.01,
    'trip_short': 0.01,
    'trip': 0.02,
    'daily_tool': 0.14,
    'daily_many': 0.06,
    'daily_error': 0.05,
    'daily_none': 0.06,
    'daily_turns': 0.05,
    'daily_talk': 0.07,
    'daily_sums': 0.08,
    'daily_text': 0.05,
    'daily_events': 0.10,
    'daily_format': 0.05,
}

FAMILIES = {family: Make(family) for family in WEIGHTS}

# families for an experiment (coldstart.py), which training draws only if they
# are named

APART = {family: Make(family) for family in ('cold_reason', 'cold_agent')}


HELD_OUT = 'eval-'


def draw_family(rng, families=None):
    """Draws a family by weight, from these or from all."""

    families = families or list(WEIGHTS)

    return rng.choices(families, [WEIGHTS.get(f, 1) for f in families])[0]


def task_of(family, seed):
    """Returns the task of a family with this seed, which may be any text.
    Training uses the seeds train-N and evaluation eval-N, so no task is in
    both.  The seeds eval-N draw words and templates from the parts that are
    held out."""

    return {**FAMILIES, **APART}[family](Draw(
        f'{family}/{seed}', str(seed).startswith(HELD_OUT)))
