# Copyright (C) The nginx-dsa authors

"""All families in the one form: those of demo/tasks, and those of this
folder."""

import functools
import random

from tasks import mix, sums_zh
from worlds.answers import logic, programming, writing
from worlds.code import interpreter, repo
from worlds.form import Family, Refused
from worlds.general import hangzhou, program
from worlds.general.task import family as general
from worlds.search.task import family as search


# families of demo/tasks of which one continues another: the second has what
# the first has, in more steps or in a longer context

HARDER = (
    ('arithmetic', 'arithmetic_story'),
    ('lookup', 'lookup_long'),
    ('tools_single', 'tools_multi'),
    ('trip_facts', 'trip_short', 'trip'),
)


@functools.lru_cache(maxsize=None)
def families():
    """Returns name -> Family."""

    found = {}

    for name in mix.FAMILIES:
        add(found, of_tasks(chain_from(name)))

    for name in program.CATEGORIES:
        add(found, general(name, lambda seed, name=name:
                           program.Program(name, seed), program.LEVELS))

    add(found, general('hangzhou', hangzhou.Hangzhou,
                       hangzhou.Hangzhou.levels))
    add(found, search())
    add(found, repo.family())
    add(found, interpreter.family())
    add(found, programming.family())
    add(found, logic.family())
    add(found, writing.family())
    add(found, second_language())

    return found


def add(found, family):
    if family.name in found:
        raise ValueError(f'two families {family.name}')

    found[family.name] = family


def chain_from(name):
    """Returns a family of demo/tasks and those that continue it."""

    for chain in HARDER:
        if name in chain:
            return chain[chain.index(name):]

    return (name,)


def of_tasks(chain):
    return Family(chain[0],
                  lambda seed, level: mix.task_of(chain[level - 1], seed),
                  levels=len(chain), about={'made_by': 'tasks.' + chain[0]})


def second_language():
    """Returns the family that is not in English.  Supervised training does
    not draw from it."""

    return Family('sums_zh', lambda seed, level: sums_zh.make(
        random.Random(f'sums_zh/{seed}')), about={'made_by': 'tasks.sums_zh'})


def find(name):
    """Returns (Family, level) of NAME or NAME@LEVEL.  Raises Refused."""

    name, at, level = name.partition('@')
    known = families()

    if name not in known:
        raise Refused(f'no such family: {name}; known: ' + ' '.join(known))

    if at and not (level.isascii() and level.isdigit()):
        raise Refused(f'{name}@{level}: the level is not a number')

    return known[name], int(level) if at else 1


def names():
    """Returns NAME, and NAME@LEVEL for the levels above the first that are
    not families of their own."""

    own = set(mix.FAMILIES)
    found = []

    for name, family in families().items():
        levels = 1 if name in own else family.levels
        found += [name] + [f'{name}@{n}' for n in range(2, levels + 1)]

    return found


def task_of(name, seed):
    """Returns the task of NAME or NAME@LEVEL with this seed, for
    eval.run."""

    family, level = find(name)
    task = family.task(seed, level)
    task.family = name

    return task
