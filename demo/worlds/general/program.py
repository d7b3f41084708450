# Copyright (C) The nginx-dsa authors

"""The proposer that is shipped: a program, not a model.

It writes candidates of a Category.  As a model would, it makes mistakes: each
part that it writes or writes again is a wrong variant with the probability
FAULTY.  Which part is wrong it does not record: only the loop finds out, and
after a fault the program writes the part again that the fault's kind points
at; where that could be the solution or the verifier, it draws one of them.
"""

import random
import re

from worlds.general import choose, assign, order, paths, amounts, trip
from worlds.general import words
from worlds.general.candidate import Candidate
from worlds.general.category import LEVELS, database, indented


CATEGORIES = {c.name: c for module in (choose, assign, order, paths, amounts,
                                       trip) for c in module.CATEGORIES}

FAULTY = 0.25

# wrong variants of a solution and of a verifier

SOLUTION = ('forgets', 'slack', 'form', 'database', 'import', 'name')
VERIFIER = ('forgets', 'strict', 'reversed', 'lenient')

DRAWS = 8
POLICY = f'sample-{DRAWS}'


class Program:
    """
    levels     how many it can propose
    """
    levels = LEVELS

    def __init__(self, category, seed, faulty=FAULTY):
        self.category = CATEGORIES[category]
        self.seed = seed
        self.faulty = faulty
        self.part = words.part_of(seed)
        rng = random.Random(f'{category}/{seed}')
        self.db, self.audit = database(self.category, rng, self.part)

    def propose(self, level=1):
        """Returns a candidate without the tools that only rules above the
        first level need."""

        return self.write(level, self.category.tools, self.rng(level))

    def harder(self, candidate):
        """Returns a candidate of the next level, with the same tools."""

        return self.write(candidate.level + 1, candidate.tools,
                          self.rng(candidate.level + 1))

    def rng(self, level):
        return random.Random(f'{self.category.name}/{self.seed}/{level}')

    def write(self, level, tools, rng):
        self.random = rng

        return Candidate(
            category=self.category.name, seed=self.seed, level=level,
            db=self.db, tools=tools, text=self.text(level),
            solution=self.solution(level, self.variant(SOLUTION)),
            verifier=self.verifier(level, self.variant(VERIFIER)),
            check=lambda answer: self.audit.is_right(level, answer),
            probes=self.audit.probes(level, rng),
            attempt=lambda r: self.attempt(level, r), policy=POLICY,
            kinds=self.category.structure + tuple(
                x.rule.kind for x in self.audit.limits[level - 1]))

    def variant(self, wrong):
        return self.random.choice(wrong) \
            if self.random.random() < self.faulty else ''

    def repair(self, candidate, fault):
        """Writes again what the fault points at."""

        c = candidate

        if fault.kind == 'tools' and self.augment(c, fault.tools):
            return c

        part = {'source': 'solution', 'tools': 'solution',
                'failed': 'solution', 'broken': 'verifier',
                'strict': 'verifier', 'lenient': 'verifier'}.get(fault.kind) \
            or self.random.choice(('solution', 'verifier'))

        if part == 'solution':
            c.solution = self.solution(c.level, self.variant(SOLUTION))
        else:
            c.verifier = self.verifier(c.level, self.variant(VERIFIER))

        return c

    def augment(self, candidate, names):
        """Adds the tools with these names, if a rule has them.  Returns
        whether it has."""

        added = [r.tool for r in self.category.rules if r.tool
                 and any(f'def {n}(' in r.tool for n in names)]
        candidate.tools += ''.join(added)

        return added != []

    def text(self, level):
        """Returns the request of a level.  A rule has the same words at all
        levels."""

        c = self.category
        side = (words.TRAIN, words.EVAL).index(self.part)
        parts = [c.intro[side].format(**self.db['task'])]

        for n, x in enumerate(self.audit.limits[level - 1]):
            rng = random.Random(f'{c.name}/{self.seed}/rule {n}')
            parts.append(x.text(rng, self.part))

        return ' '.join(parts + [words.SUBMIT[self.part].format(form=c.form)])

    def solution(self, level, wrong):
        c = self.category
        limits = self.audit.limits[level - 1]
        used = limits[:-1] if wrong == 'forgets' else limits
        load = ''.join(x.rule.load.strip('\n') + '\n' for x in used
                       if x.rule.load)
        conditions = [x.expression('sol') for x in used]

        if wrong == 'slack':
            conditions[0] = limits[0].expression('sol', off=1)

        def rules(match):
            return '\n'.join(f'{match[1]}if not ({e}):\n{match[1]}    continue'
                             for e in conditions)

        search = re.sub(r'^( *)RULES$', rules, c.search.strip('\n'),
                        flags=re.M)

        if wrong == 'form':
            search = re.sub(r'\breturn ([^\n]*)\Z', r'return [\1]', search)

        if wrong == 'name':
            search = search.replace('continue', 'contineu', 1)

        head = c.head.strip('\n') + '\n'

        if wrong == 'database':
            head = 'data_ = db["task"]\n' + head

        if wrong == 'import':
            head = 'from itertools import product\n' + head

        return 'def solve():\n' + indented(head + load + search, 4) + '\n'

    def verifier(self, level, wrong):
        c = self.category
        limits = self.audit.limits[level - 1]
        used = limits[:-1] if wrong == 'forgets' else limits
        conditions = [x.expression('ver') for x in used]

        if wrong == 'strict':
            conditions[-1] = limits[-1].expression('ver', off=-1)
        elif wrong == 'lenient':
            conditions[-1] = limits[-1].expression('ver', off=1)
        elif wrong == 'reversed':
            conditions[-1] = 'not ' + conditions[-1]

        rules = '\n'.join(
            f'if not ({e}):\n    return "limit {n}: {x.rule.kind}"'
            for n, (e, x) in enumerate(zip(conditions, used), 1))

        return 'def verify(db, answer):\n' + indented(
            c.verify.strip('\n') + '\n' + rules, 4) + '\n    return None\n'

    def attempt(self, level, rng):
        """The policy POLICY: it draws so many answers that have the structure,
        and returns the first that keeps all limits, or the last."""

        answer = None

        for _ in range(DRAWS):
            answer = rng.choice(self.audit.answers)

            if all(x.holds(self.db, answer)
                   for x in self.audit.limits[level - 1]):
                break

        return answer
