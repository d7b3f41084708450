# Copyright (C) The nginx-dsa authors

"""Sample many, filter, keep the longest (the paper, appendix D): of the samples
that pass the filters, those with the most reasoning are submitted, and one of
them that is right solves the task."""

from collections import Counter
from dataclasses import dataclass
from typing import List

from tasks.task import CHAT
from worlds.answers import programming
from worlds.compute.stats import pass_at
from worlds.compute.tries import Chat, Try, sample
from worlds.general.task import SUBMIT


REFUSES = '''Does this answer state that its author cannot solve the task, or
does not want to? Answer with yes or no.

{answer}'''

FILTERS = ('cut off', 'no submission', 'samples', 'refusal')


@dataclass
class Kept:
    """
    samples   all
    valid     those that pass the filters
    kept      those that are submitted
    removed   how many each filter removed
    tokens    of all samples, and of the filter that asks the model
    """
    samples: List[Try]
    valid: List[Try]
    kept: List[Try]
    removed: Counter
    tokens: int

    def random(self, k, of='samples'):
        """Returns the probability that k of the samples, drawn at random,
        have a right one."""

        some = getattr(self, of)
        n = len(some)

        return pass_at(sum(t.right for t in some), n, min(k, n)) if n else 0.0

    def solved(self):
        return float(any(t.right for t in self.kept))


def keep(make, name, seed, level, chats, k):
    """Returns Kept.

    make    returns the task, newly made, because tools may have state
    name, seed, level    of the task; the family "programming" has sample
            tests in its request
    chats   a Chat for each sample
    k       how many are submitted
    """
    samples, valid, removed = [], [], Counter()

    for chat in chats:
        task = make()
        one = sample(task, chat)
        why = invalid(task, name, seed, level, one, chat)
        samples.append(one)

        if why is None:
            valid.append(one)
        else:
            removed[why] += 1

    longest = sorted(valid, key=lambda t: -length(t))[:k]

    return Kept(samples, valid, longest, removed,
                sum(c.outcome.completion_tokens for c in chats))


def length(one):
    """Returns by what samples are compared: the tokens of reasoning, or if
    the model did not reason, of all its messages."""

    return one.reasoning or one.tokens


def invalid(task, name, seed, level, one, chat):
    """Returns the filter that removes a sample, or None.  No filter reads
    whether it is right."""

    if one.answer is None:
        return 'cut off'

    if SUBMIT in task.tools and one.submitted() is None:
        return 'no submission'

    if name == 'programming' and not programming.problem_of(
            seed, level).passes_samples(one.answer):
        return 'samples'

    asked = Chat(chat.ask, CHAT, chat.seed, chat.outcome)
    said = asked.text([{'role': 'user', 'content': REFUSES.format(
        answer=one.answer)}])

    return 'refusal' if said.strip().lower().startswith('yes') else None
