# Copyright (C) The nginx-dsa authors

"""The reward of a conversation, as section 3 of the paper has it:

    R = outcome - length + language

outcome   a rule: 1 if the verifier of the family found nothing wrong, else 0.
          In general tasks a judge's scores by the rubric of the prompt, over
          the highest possible ones.  Without an answer it is 0
length    strength * min(1, |o| / tokens), |o| being all sampled tokens of the
          conversation.  The paper names a length penalty without a formula;
          this one is linear, for right and wrong answers alike, and at a
          strength below 1 never larger than the outcome
language  strength * the share of letters, in all that the model wrote, of the
          script in which the user writes.  Two languages of one script are
          not told apart

Strengths are those of the domain (plan.Domain).
"""

import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Optional

from tasks.task import CHAT
from train.rubric import rubric_of


# what --off may leave out; without the rubric, the verifier decides

SWITCHES = ('length_penalty', 'language', 'rubric')


class Reward(NamedTuple):
    """
    total     R, or None if the judge gave no verdict
    outcome, length, language
              its parts, with their strengths
    judged    true if a judge had to score it
    why       why there is no verdict (judge.py), or None
    """
    total: Optional[float]
    outcome: float
    length: float
    language: float
    judged: bool = False
    why: Optional[str] = None


def reward(domain, task, conversation, mode, judge=None, off=()):
    """Returns the Reward of a conversation.

    domain        a plan.Domain
    task          what it was about; its tools are not called
    conversation  a rollout.Trajectory: the verifier's outcome, the messages
                  of the model, and how many tokens they have
    mode          in CHAT there is no reasoning, and only answers count for
                  the language
    judge         a judge.Judge, if the domain has rubrics
    off           names of SWITCHES
    """
    penalty = consistency = 0.0

    if 'length_penalty' not in off:
        penalty = length(conversation.tokens, domain.length, domain.tokens)

    if domain.language and 'language' not in off:
        texts = [m.get('content') or '' for m in conversation.written]
        if mode != CHAT:
            texts += [m.get('reasoning_content') or ''
                      for m in conversation.written]
        consistency = domain.language * language(
            ' '.join(t.user for t in task.turns), ' '.join(texts))

    outcome, judged = conversation.reward, False
    rubric = domain.rubric and 'rubric' not in off

    if rubric:
        outcome = 0.0
        pairs = answered(task, conversation)

        if pairs is not None:
            judged = True
            verdict = judge.verdict(pairs, rubric_of(conversation.family,
                                                     conversation.seed))
            if verdict.scores is None:
                return Reward(None, 0.0, penalty, consistency, True,
                              verdict.why)
            outcome = verdict.share

    return Reward(outcome - penalty + consistency, outcome, penalty,
                  consistency, judged)


def length(tokens, strength, limit):
    """Returns the length penalty, which is subtracted."""

    return strength * min(1, tokens / limit)


def answered(task, conversation):
    """Returns [(request, answer)] of all turns, or None if one has no answer:
    a message was cut, or is empty."""

    answers = [m.get('content') for m in conversation.written
               if not m.get('tool_calls')]

    if conversation.cut or len(answers) != len(task.turns) \
            or not all(answers):
        return None

    return [(t.user, a) for t, a in zip(task.turns, answers)]


def scripts(text):
    """Returns how many letters of each script a text has: Latin, CJK, ..."""

    return Counter(unicodedata.name(c, '?').split()[0] for c in text
                   if c.isalpha())


def language(asked, text):
    """Returns the share of letters of the script that most letters of asked
    have; 1 if a text has no letters."""

    wanted, found = scripts(asked), scripts(text)

    if not wanted or not found:
        return 1.0

    return found[wanted.most_common(1)[0][0]] / sum(found.values())


def settle(groups, plan, make, mode, judge, off, concurrency):
    """Returns the Rewards of groups of trajectories, many at the same time,
    because a judge may be slow.  make: as for rollout.rollouts."""

    def one(t):
        return reward(plan.of(t.family), make(t.family, t.seed), t, mode,
                      judge, off)

    with ThreadPoolExecutor(concurrency) as pool:
        futures = [[pool.submit(one, t) for t in g] for g in groups]

        return [[f.result() for f in row] for row in futures]


def mean(values):
    values = list(values)

    return sum(values) / max(1, len(values))


def figures(plan, groups, rewards):
    """Returns the figures of rewards for the log."""

    each = [(t, r) for g, row in zip(groups, rewards)
            for t, r in zip(g, row)]
    domains = {}

    for t, r in each:
        domains.setdefault(plan.names[t.family], []).append((t, r))

    return {
        'total': mean(r.total for _, r in each if r.total is not None),
        'length_penalty': mean(r.length for _, r in each),
        'language': mean(r.language for _, r in each),
        'judged': sum(r.judged for _, r in each),
        'no_verdict': dict(sorted(Counter(
            r.why for _, r in each if r.why is not None).items())),
        'domains': {name: {
            'reward': mean(r.total for _, r in some if r.total is not None),
            'tokens': mean(t.tokens for t, _ in some)}
            for name, some in sorted(domains.items())}}
