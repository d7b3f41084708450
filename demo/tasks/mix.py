# Copyright (C) The nginx-dsa authors

"""All families, with their shares in training."""

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


# family: share of the tokens of training, about.  In most of its steps the
# trainer has rows of one length (train/data.py), so a family with short texts
# would learn in few steps if the shares were of tasks.  TOKENS are those of a
# task, about; they only make shares of tokens from shares of tasks.  daily_copy
# has a large share because finding and repeating a text is learned late, and
# most families need it.

SHARES = {
    'talk': 6, 'arithmetic': 6, 'arithmetic_story': 2, 'lookup': 12,
    'tools_single': 3, 'tools_none': 2, 'tools_error': 6, 'tools_multi': 12,
    'chat': 14, 'lookup_long': 8, 'trip_facts': 8, 'trip_short': 14,
    'trip': 40,
    'daily_tool': 22, 'daily_many': 20, 'daily_error': 5, 'daily_none': 8,
    'daily_turns': 9, 'daily_talk': 3, 'daily_sums': 8, 'daily_text': 12,
    'daily_events': 8, 'daily_format': 3, 'daily_copy': 6, 'daily_parts': 7,
    'daily_system': 8, 'daily_open': 20,
}

TOKENS = {
    'talk': 45, 'arithmetic': 130, 'arithmetic_story': 150, 'lookup': 240,
    'tools_single': 610, 'tools_none': 450, 'tools_error': 630,
    'tools_multi': 880, 'chat': 450, 'lookup_long': 2600, 'trip_facts': 1300,
    'trip_short': 2350, 'trip': 2800, 'daily_tool': 660, 'daily_many': 770,
    'daily_error': 570, 'daily_none': 440, 'daily_turns': 750,
    'daily_talk': 45, 'daily_sums': 155, 'daily_text': 140,
    'daily_events': 180, 'daily_format': 57, 'daily_copy': 68,
    'daily_parts': 116, 'daily_system': 133, 'daily_open': 650,
}

WEIGHTS = {family: share / TOKENS[family] for family, share in SHARES.items()}

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
