# Copyright (C) The nginx-dsa authors

"""A bounded policy for search questions: it goes the way of the gold policy,
but looks at something else with half of its calls, and it has 15 calls."""

from tasks.task import CHAT
from worlds.search.task import gold, question_of


CALLS = 15
DISTRACTED = 0.5
POLICY = f'calls-{CALLS}'


def attempt(seed, level, rng):
    """Returns the answer of one attempt, which is empty if the calls did not
    suffice."""

    corpus, engine, question = question_of(seed, level)
    tools, titles = engine.tools(), sorted(corpus.pages)
    policy = gold(question, corpus.part)(CHAT)
    step = next(policy)

    for _ in range(CALLS):
        if rng.random() < DISTRACTED:
            engine.open(rng.choice(titles))
            continue

        (name, arguments), = step.calls
        step = policy.send([tools[name].run(arguments)])

        if not step.calls:
            return step.content

    return ''
