# Copyright (C) The nginx-dsa authors

"""Generate, verify, refine (the paper, appendix D): the model evaluates its own
solution, and improves it until the evaluation is perfect or a cap is reached.
"""

import re
from dataclasses import dataclass, replace
from typing import List, Optional

from worlds.compute.tries import Try, judged, sample


BEST = 2

VERIFY = '''Evaluate a solution to this task:

{task}

The solution:

{solution}
{calls}
Look for each condition of the task that the solution does not keep. End with a
line "Score: N": 2 if everything is right, 1 if there are small faults, 0 if
it is wrong.'''

REFINE = '''An evaluation of your solution:

{evaluation}

Improve the solution, and answer in the same form as before.'''

LONGEST = 6000      # characters of the calls that an evaluation reads


@dataclass
class Refined:
    """
    first    the Try before any evaluation
    last     the Try of the solution that is left, with the tokens of all
    scores   that the model gave; None: there was none in its text
    """
    first: Try
    last: Try
    scores: List[Optional[int]]


def refine(task, chat, cap):
    """Returns Refined.  cap is the number of revisions."""

    first = last = sample(task, chat)
    scores = []

    while True:
        if last.answer is None:
            break       # there is nothing to evaluate

        evaluation = chat.text([{'role': 'user', 'content':
                                 question(task, last)}])
        scores.append(score(evaluation))

        if scores[-1] == BEST or len(scores) > cap:
            break

        last = revised(task, chat, last, evaluation)

    return Refined(first, replace(
        last, tokens=chat.outcome.completion_tokens), scores)


def question(task, one):
    calls = '\n'.join(f'{c.name}: {c.result}' for c in one.calls)

    if calls:
        calls = '\nWhat the tools returned:\n' + calls[-LONGEST:] + '\n'

    return VERIFY.format(task=task.turns[0].user, solution=one.solution(),
                         calls=calls)


def score(text):
    """Returns the score of an evaluation, or None."""

    found = re.findall(r'(?i)\bscore\W{0,4}([0-9]{1,9})', text)

    return int(found[-1]) if found and int(found[-1]) <= BEST else None


def revised(task, chat, one, evaluation):
    """Returns the Try of a revision; if it has no answer, the solution before
    it stays."""

    messages = [{k: v for k, v in m.items() if k != 'reasoning_content'}
                for m in one.messages]
    messages.append({'role': 'user', 'content': REFINE.format(
        evaluation=evaluation)})
    answer, calls, why = chat.turn(task, messages)

    if answer is None:
        return one

    return judged(task, chat, messages, answer, one.calls + calls, why)
