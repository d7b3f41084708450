# Copyright (C) The nginx-dsa authors

"""A plan of reinforcement learning: domains, and orders in which they are
trained.

A domain is some families of tasks whose rewards and KL terms have the same
strengths.  The file is a JSON object:

    {"domains": {NAME: {"families": {FAMILY: WEIGHT}, "beta": 0.01,
                        "length": 0.1, "tokens": 512, "language": 0.1,
                        "rubric": false}},
     "orders": {NAME: [{"domains": [NAME, ...], "batches": N}, ...]}}

An order is stages one after the other.  In a stage, tasks of the families of
its domains are drawn in proportion to their weights.  All orders have the same
number of batches and expect the same number of tasks of each family, so that
what a run ends with depends on the order alone; load() refuses other files.
"""

import json
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Dict, Tuple


class BadPlan(ValueError):
    """The file is not a plan; the text is for people."""


@dataclass(frozen=True)
class Domain:
    """
    families  their weights, whole numbers from 1
    beta      strength of the KL term (eq. 7); 0 leaves it out
    length    strength of the length penalty; 0: none (rewards.length)
    tokens    sampled tokens of a conversation with the whole penalty
    language  strength of the language consistency reward; 0: none
    rubric    a judge scores the answers by a rubric for each prompt;
              otherwise the verifier of the family decides
    """
    families: Dict[str, int]
    beta: float = 0.01
    length: float = 0.0
    tokens: int = 512
    language: float = 0.0
    rubric: bool = False


@dataclass(frozen=True)
class Stage:
    domains: Tuple[str, ...]
    batches: int

    @property
    def name(self):
        return '+'.join(self.domains)


class Plan:
    """
    domains  Domain by name
    stages   of the chosen order
    """

    def __init__(self, domains, stages):
        self.domains, self.stages = domains, stages
        self.names = {f: name for name, d in domains.items()
                      for f in d.families}

    def of(self, family):
        """Returns the Domain of a family."""

        return self.domains[self.names[family]]

    def weights(self, stage):
        """Returns the weights of the families of a stage."""

        return {f: w for name in stage.domains
                for f, w in self.domains[name].families.items()}


class Mixture:
    """Draws families so that after each draw the counts are as near to the
    weights as whole numbers can be (Webster's apportionment), and after a
    multiple of the sum of the weights equal to them."""

    def __init__(self, weights):
        self.counts = dict.fromkeys(weights, 0)
        self.weights = weights

    def draw(self):
        family = min(self.counts, key=lambda f: Fraction(
            2 * self.counts[f] + 1, self.weights[f]))
        self.counts[family] += 1

        return family


def load(path, order):
    """Returns the Plan of a file and one of its orders.  Raises BadPlan."""

    try:
        with open(path, encoding='utf-8') as f:
            file = json.load(f)
    except (OSError, ValueError, RecursionError) as e:
        raise BadPlan(f'{path}: {e}') from None

    file = checked(path, file, {'domains': dict, 'orders': dict})
    domains = {name: domain(f'domain {name}', d)
               for name, d in file['domains'].items()}
    all_families = [f for d in domains.values() for f in d.families]

    if len(set(all_families)) < len(all_families):
        raise BadPlan(f'{path}: a family is in two domains')

    orders = {name: stages(f'order {name}', o, domains)
              for name, o in file['orders'].items()}

    if order not in orders:
        raise BadPlan(f'{path}: the order {order} is not one of '
                      + ', '.join(orders))

    plans = {name: Plan(domains, o) for name, o in orders.items()}
    alike = {name: (sum(s.batches for s in p.stages), expected(p))
             for name, p in plans.items()}

    for name, (batches, shares) in alike.items():
        if batches != alike[order][0]:
            raise BadPlan(f'{path}: {name} has {batches} batches; expected '
                          f'{alike[order][0]} as {order}')

        for f, n in shares.items():
            if n != alike[order][1].get(f):
                raise BadPlan(f'{path}: {name} and {order} have tasks of {f} '
                              'in unlike proportions')

    return plans[order]


def expected(plan):
    """Returns for each family how many batches of its tasks a plan has."""

    found = {}

    for stage in plan.stages:
        weights = plan.weights(stage)
        for f, w in weights.items():
            found[f] = found.get(f, 0) + stage.batches * Fraction(
                w, sum(weights.values()))

    return found


def domain(what, value):
    kinds = {f.name: dict if f.name == 'families' else f.type
             for f in fields(Domain)}
    given = checked(what, value, kinds, optional=set(kinds) - {'families'})
    families = checked(what, given['families'],
                       dict.fromkeys(given['families'], int))

    if not families or min(families.values()) < 1:
        raise BadPlan(f'{what}: expected families with weights from 1')

    for name, low in (('beta', 0), ('length', 0), ('tokens', 1),
                      ('language', 0)):
        if not low <= given.get(name, 1) < 1e9:
            raise BadPlan(f'{what}: {name} is {given[name]}; expected a '
                          f'number from {low}')

    return Domain(**given)


def stages(what, value, domains):
    if not isinstance(value, list) or not value:
        raise BadPlan(f'{what}: expected a list of stages')

    found = []

    for s in value:
        s = checked(what, s, {'domains': list, 'batches': int})
        names = s['domains']

        if not names or not all(isinstance(n, str) and n in domains
                                for n in names) \
                or len(set(names)) < len(names):
            raise BadPlan(f'{what}: {names} are not names of domains')

        if s['batches'] < 1:
            raise BadPlan(f'{what}: expected at least one batch')

        found.append(Stage(tuple(names), s['batches']))

    if {n for s in found for n in s.domains} != set(domains):
        raise BadPlan(f'{what}: a domain has no stage')

    return found


def checked(what, value, kinds, optional=()):
    """Returns an object whose fields have these types.  Raises BadPlan."""

    if not isinstance(value, dict):
        raise BadPlan(f'{what}: expected an object')

    for name in kinds:
        if name not in value and name not in optional:
            raise BadPlan(f'{what}: {name} is missing')

    for name, v in value.items():
        if name not in kinds:
            raise BadPlan(f'{what}: {name} is unknown')

        kind = (int, float) if kinds[name] is float else kinds[name]

        if not isinstance(v, kind) \
                or isinstance(v, bool) != (kinds[name] is bool):
            raise BadPlan(f'{what}: {name} is of another type')

    return value
