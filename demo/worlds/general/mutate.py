# Copyright (C) The nginx-dsa authors

"""Wrong answers, made from a right one by small changes."""

import copy
import json


def names_in(value):
    """Returns all texts in a database that could be names."""

    if isinstance(value, dict):
        return set(value) | {n for v in value.values() for n in names_in(v)}

    if isinstance(value, list):
        return {n for v in value for n in names_in(v)}

    return {value} if isinstance(value, str) else set()


def places(value, path=()):
    """Yields the path of every value within a value."""

    yield path

    if isinstance(value, dict):
        for k in value:
            yield from places(value[k], (*path, k))

    elif isinstance(value, list):
        for i in range(len(value)):
            yield from places(value[i], (*path, i))


def at(value, path):
    for k in path:
        value = value[k]

    return value


def put(value, path, new):
    """Returns a copy of a value with another one at a path."""

    if path == ():
        return copy.deepcopy(new)

    value = copy.deepcopy(value)
    at(value, path[:-1])[path[-1]] = copy.deepcopy(new)

    return value


def changed(rng, answer, names):
    """Returns an answer with one change."""

    paths = list(places(answer))
    path = rng.choice(paths)
    here = at(answer, path)

    if isinstance(here, bool) or here is None:
        return put(answer, path, 1)

    if isinstance(here, int):
        return put(answer, path, rng.choice(
            (here + 1, here - 1, -here, str(here), here + 10)))

    if isinstance(here, str):
        kind = rng.randrange(8)
        if kind == 0:
            return put(answer, path, here + ' ')
        if kind == 1:
            return put(answer, path, rng.choice((None, 1, [], {}, '')))
        if kind < 4:
            other = at(answer, rng.choice(paths))
            return put(put(answer, path, other), path, other)
        return put(answer, path, rng.choice(names))

    return changed_whole(rng, answer, path, here)


def changed_whole(rng, answer, path, here):
    """Changes a list or an object."""

    if isinstance(here, list) and here:
        kind = rng.randrange(5)
        i, j = rng.randrange(len(here)), rng.randrange(len(here))
        new = copy.deepcopy(here)

        if kind == 0:
            del new[i]
        elif kind == 1:
            new.insert(i, copy.deepcopy(here[j]))
        elif kind == 2:
            new[i], new[j] = new[j], new[i]
        elif kind == 3:
            new.reverse()
        else:
            new = {str(n): v for n, v in enumerate(here)}

        return put(answer, path, new)

    if isinstance(here, dict) and here:
        kind = rng.randrange(4)
        k, m = rng.choice(list(here)), rng.choice(list(here))
        new = copy.deepcopy(here)

        if kind == 0:
            del new[k]
        elif kind == 1:
            new['other'] = new[k]
        elif kind == 2:
            new[k], new[m] = new[m], new[k]
        else:
            new = list(here.values())

        return put(answer, path, new)

    return put(answer, path, rng.choice((None, 'x', json.dumps(here))))


def mutations(rng, answer, db, check, n=20, tries=400):
    """Returns n different answers, made of a right one, that the check calls
    wrong."""

    names = sorted(names_in(db))
    found = {}

    for _ in range(tries):
        one = changed(rng, answer, names)

        if not check(one):
            found[json.dumps(one, sort_keys=True)] = one

        if len(found) == n:
            break

    return list(found.values())
