# Copyright (C) The nginx-dsa authors

"""A category of general tasks: what the shipped proposer has to write
candidates with.

The answers of a category have a structure, such as "four different items" or
"a route along roads", and rules that limit numbers of an answer, such as its
price.  A rule is written three times, by hand and differently: as an
expression of the solution, over what the tools returned; as an expression of
the verifier, over the database; and as a function of the audit.  The audit
enumerates every answer with the structure, so that it finds all right ones; it
takes part in no solution and no verifier.
"""

import bisect
import json
from dataclasses import dataclass, field
from typing import Callable, Optional, Tuple

from worlds.general import words


@dataclass
class When:
    """The condition of a rule: a number that is at least a limit.

    text        'the price of the hotel is'
    sol, ver    the number in the solution and in the verifier
    audit       (db, answer) -> the number
    """
    text: str
    sol: str
    ver: str
    audit: Callable


@dataclass
class Rule:
    """
    kind        'sum', 'extreme', 'count', 'difference', ...
    noun        what the number is
    sense       '<=' or '>='
    sol, ver    the number in the solution and in the verifier
    audit       (db, answer) -> the number
    load        lines of the solution that call the rule's tools
    tool        the source of a tool that only this rule needs
    when        a condition: the limit is another one if it holds
    """
    kind: str
    noun: str
    sense: str
    sol: str
    ver: str
    audit: Callable
    load: str = ''
    tool: str = ''
    when: Optional[When] = None


@dataclass
class Category:
    """
    name
    intro       the request, for training and evaluation; {NAME} is from
                db['task']
    form        the form of the answer, as text
    database    (rng, names) -> db, a dict for JSON; db['task'] has what the
                request names
    tools       their source
    head        lines of the solution that call tools
    search      lines of the solution that enumerate answers; the line RULES
                stands where an answer is complete: "continue" rejects it
    verify      lines of the verifier that check the structure: "return" gives
                a reason
    every       db -> all answers that have the structure
    rules       in the order of levels
    structure   kinds of constraints that the structure has
    canonical   answer -> the same value for answers that do not differ; may
                raise for other values
    least       fewest answers that a database must have
    """
    name: str
    intro: Tuple[str, str]
    form: str
    database: Callable
    tools: str
    head: str
    search: str
    verify: str
    every: Callable
    rules: Tuple[Rule, ...]
    structure: Tuple[str, ...] = ()
    canonical: Callable = lambda answer: json.dumps(answer, sort_keys=True)
    least: int = 120
    about: dict = field(default_factory=dict)


# the share of the answers that are right, by level

SHARES = (0.4, 0.16, 0.06, 0.025, 0.008)
LEVELS = len(SHARES)


@dataclass
class Limit:
    """A rule with its numbers: x, or if it has a condition, x from p on and
    otherwise y."""
    rule: Rule
    x: int
    p: int = 0
    y: int = 0

    def holds(self, db, answer):
        return self.excess(db, answer) <= 0

    def excess(self, db, answer):
        """Returns by how much an answer exceeds the limit."""

        r, x = self.rule, self.x

        if r.when is not None and r.when.audit(db, answer) < self.p:
            x = self.y

        n = r.audit(db, answer)

        return n - x if r.sense == '<=' else x - n

    def expression(self, of, off=0):
        """Returns the condition as source; of is 'sol' or 'ver'.  off is by
        how much it allows too much."""

        r = self.rule
        n = getattr(r, of)
        by = off if r.sense == '<=' else -off

        if r.when is None:
            return f'{n} {r.sense} {self.x + by}'

        return (f'{n} {r.sense} ({self.x + by} if {getattr(r.when, of)} >= '
                f'{self.p} else {self.y + by})')

    def text(self, rng, part):
        r = self.rule
        values = {'noun': r.noun, 'Noun': r.noun[0].upper() + r.noun[1:],
                  'sense': words.SENSES[part][r.sense], 'x': self.x,
                  'y': self.y, 'p': self.p}

        if r.when is None:
            return rng.choice(words.RULES[part]).format(**values)

        return rng.choice(words.CONDITIONS[part]).format(
            when=r.when.text, **values)


def limit_for(rule, db, answers, wanted):
    """Returns a Limit that about so many of the answers keep, at least
    one."""

    if rule.when is None:
        return Limit(rule, cut([rule.audit(db, a) for a in answers],
                               rule.sense, wanted))

    tests = [rule.when.audit(db, a) for a in answers]
    p = sorted(tests)[len(tests) // 2]
    groups = [[rule.audit(db, a) for a, t in zip(answers, tests)
               if (t >= p) == side] for side in (True, False)]
    x, y = (cut(g or groups[0] or groups[1], rule.sense,
                wanted * len(g) / len(answers)) for g in groups)

    return Limit(rule, x, p, y)


def cut(numbers, sense, wanted):
    """Returns the number that about so many others are on the right side
    of."""

    ordered = sorted(numbers, reverse=sense == '>=')
    best, distance = ordered[0], None

    for n in sorted(set(numbers)):
        kept = bisect.bisect_right(ordered, n) if sense == '<=' \
            else sum(m >= n for m in ordered)

        if kept and (distance is None or abs(kept - wanted) < distance):
            best, distance = n, abs(kept - wanted)

    return best


class Audit:
    """All answers to a database, and which of them are right at each level.

    answers     all that have the structure
    right       for each level, the answers that keep its limits
    limits      for each level
    """

    def __init__(self, category, db):
        self.category = category
        self.db = db
        self.answers = list(category.every(db))
        self.limits = []
        self.right = []
        left = self.answers
        limits = []

        for level, share in enumerate(SHARES):
            wanted = max(1, share * len(self.answers))

            # above the last rule, the first becomes stricter

            n = level % len(category.rules)
            made = limit_for(category.rules[n], db, left, wanted)
            limits = limits[:n] + [made] + limits[n + 1:]
            left = [a for a in left if made.holds(db, a)]
            self.limits.append(limits)
            self.right.append(left)

        self.keys = [{category.canonical(a) for a in right}
                     for right in self.right]

    def is_right(self, level, answer):
        try:
            return self.category.canonical(answer) in self.keys[level - 1]
        except Exception:
            return False

    def probes(self, level, rng, most=4):
        """Returns answers that a verifier must decide rightly: wrong ones that
        break one limit only, and by little, up to so many for each limit; and
        right ones."""

        limits = self.limits[level - 1]
        found = {}

        for a in self.answers:
            broken = [i for i, x in enumerate(limits)
                      if not x.holds(self.db, a)]
            if len(broken) == 1:
                found.setdefault(broken[0], []).append(a)

        wrong = [a for i, answers in found.items()
                 for a in sorted(answers, key=lambda a: limits[i].excess(
                     self.db, a))[:most]]
        right = self.right[level - 1]

        return wrong + rng.sample(right, min(len(right), 12))


def database(category, rng, part):
    """Returns a database with enough answers, and its Audit."""

    for _ in range(200):
        db = category.database(rng, words.Names(rng, part))
        audit = Audit(category, db) if enough(category, db) else None

        if audit is not None:
            return db, audit

    raise ValueError(f'{category.name}: no database has enough answers')


MOST = 4000


def enough(category, db):
    n = 0

    for n, _ in enumerate(category.every(db), 1):
        if n > MOST:
            return False

    return n >= category.least


def indented(lines, by):
    return '\n'.join(' ' * by + line if line else ''
                     for line in lines.strip('\n').split('\n'))
