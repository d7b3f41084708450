# Copyright (C) The nginx-dsa authors

"""The loop of synthesis: propose, examine, repair, keep, make harder.

A proposer has propose(), harder(candidate) and repair(candidate, fault), each
of which returns a Candidate, and levels.  program.Program is a program;
chat.Chat is any model behind a chat API.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import List

from worlds.general import box, source
from worlds.general.candidate import Fault, judge, missing_tools, solve
from worlds.general.mutate import mutations


REPAIRS = 12        # of one candidate
MUTATIONS = 20
ATTEMPTS = 100      # of the policy; kept if at least one is right


@dataclass
class Kept:
    """
    candidate
    faults      the kinds of its faults that were repaired, in their order
    answer      of its solution
    successes   of ATTEMPTS attempts of its policy
    """
    candidate: object
    faults: List[str]
    answer: object
    successes: int


@dataclass
class Result:
    """What the loop made of one environment."""
    kept: List[Kept] = field(default_factory=list)
    given_up: int = 0       # candidates that could not be repaired
    unsolved: int = 0       # those that the policy never solves
    faults: Counter = field(default_factory=Counter)


def synthesize(proposer, attempts=ATTEMPTS):
    """Runs the loop over all levels.  Returns a Result."""

    result = Result()
    candidate = proposer.propose()

    while True:
        kept = settle(proposer, candidate, result, attempts)

        if kept is None:
            return result

        if kept.successes > 0 or attempts == 0:
            result.kept.append(kept)
        else:
            result.unsolved += 1

        if candidate.level == proposer.levels:
            return result

        candidate = proposer.harder(kept.candidate)


def settle(proposer, candidate, result, attempts):
    """Examines and repairs a candidate until nothing is wrong.  Returns Kept,
    or None."""

    faults = []

    for _ in range(REPAIRS + 1):
        rng = random.Random(f'{candidate.category}/{candidate.seed}/'
                            f'{candidate.level}/examine')
        fault, answer, successes = examine(candidate, rng, attempts)

        if fault is None:
            return Kept(candidate, faults, answer, successes)

        result.faults[fault.kind] += 1
        faults.append(fault.kind)
        candidate = proposer.repair(candidate, fault)

    result.given_up += 1

    return None


def examine(candidate, rng, attempts):
    """Returns (Fault, None, 0), or (None, the answer of the solution, the
    successes of the policy)."""

    c = candidate

    try:
        names = c.signatures()
        definitions = c.definitions()
        functions = source.functions(c.verifier)

        if set(functions) != {'verify'} or 'verify' in names:
            raise source.BadSource('the verifier is not verify(db, answer)')

    except source.BadSource as e:
        return Fault('broken', str(e)), None, 0

    missing = missing_tools(c.solution, names)

    if missing:
        return Fault('tools', 'there are no tools ' + ', '.join(missing),
                     missing), None, 0

    try:
        source.solution(c.solution, names)
    except source.BadSource as e:
        return Fault('source', str(e)), None, 0

    try:
        opened = c.open()
    except box.Failed as e:
        return Fault('broken', str(e)), None, 0

    with opened:
        return tried(c, opened, rng, attempts)


def tried(c, opened, rng, attempts):
    """Runs a candidate whose sources are allowed."""

    try:
        answer = solve(c, opened)
    except box.Failed as e:
        return Fault('failed', str(e)), None, 0

    if answer is None:
        return Fault('failed', 'the solution found no answer'), None, 0

    try:
        why = judge(opened, answer)

        if why is not None:
            return Fault('rejected', why), None, 0

        if c.check is not None:
            fault = compared(c, opened, answer, rng)
            if fault is not None:
                return fault, None, 0

        successes = 0 if c.attempt is None else sum(
            judge(opened, c.attempt(rng)) is None for _ in range(attempts))

    except box.Failed as e:
        return Fault('broken', f'the verifier failed: {e}'), None, 0

    return None, answer, successes


def compared(c, opened, answer, rng):
    """Compares the verifier with the independent check.  Returns a Fault or
    None."""

    if not c.check(answer):
        return Fault('wrong', 'the check calls the accepted answer wrong')

    others = mutations(rng, answer, c.db, c.check, MUTATIONS) + c.probes

    for other in others:
        accepted, right = judge(opened, other) is None, c.check(other)

        if accepted and not right:
            return Fault('lenient', f'accepted, but wrong: {other}')

        if right and not accepted:
            return Fault('strict', f'rejected, but right: {other}')

    return None
