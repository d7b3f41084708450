# Copyright (C) The nginx-dsa authors

"""A rubric for each prompt of a general task, by which a judge scores an answer
(judge.py)."""

from typing import NamedTuple

from tasks.task import play
from worlds.answers import writing
from worlds.form import Refused
from worlds.registry import find, task_of


class Criterion(NamedTuple):
    """
    name     of its score
    text     when the score is full
    decides  an answer is right only with a full score, as for the verifier
    """
    name: str
    text: str
    decides: bool


MANNERS = (
    Criterion('direct', 'The answers have what was asked for and nothing '
                        'else.', False),
    Criterion('correct', 'Grammar and spelling have no faults.', False),
)


def rubric_of(family, seed):
    """Returns the criteria of a task: those that its verifier has as well come
    first.  Raises Refused if the family has tools, because the judge would
    have to see their results."""

    task = task_of(family, seed)

    if task.tools:
        raise Refused(f'{family}: a rubric is for families without tools')

    kind, level = find(family)

    if kind.name == 'writing':
        order = writing.order_of(seed, level)
        texts = [f'The text has the word {order.place} and at least three '
                 'sentences of three words or more, none of them twice.']
        texts += [c.texts[0] for c in order.conditions]

        return [*(Criterion(f'condition_{i}', text, True)
                  for i, text in enumerate(texts, 1)),
                *(Criterion(name, text, False)
                  for name, text in writing.RUBRICS)]

    return [*(Criterion(f'answer_{i}', f'The answer to request {i} has the '
                        'content of this one, in any words: ' + m['content'],
                        True)
              for i, m in enumerate([m for m in play(task, task.modes[-1])
                                     if m['role'] == 'assistant'], 1)),
            *MANNERS]
