# Copyright (C) The nginx-dsa authors

"""Turns that need no tool: something is said, a line is thought, an answer is
given.
"""

from dataclasses import dataclass
from typing import Callable, Optional

from tasks.task import CHAT, Step, Turn
from tasks.wording import polite


@dataclass
class Said:
    """
    user      what the user says
    thought   the reasoning
    answer    what to say
    wrong     answer -> None, or why it is wrong
    about     a noun for what it was about, or ''
    work      what stands before the answer where it was not thought
    result    the number that the answer states as its result, or None
    """
    user: str
    thought: str
    answer: str
    wrong: Callable[[str], Optional[str]]
    about: str = ''
    work: str = ''
    result: Optional[int] = None

    def turn(self):
        def check(answer, calls):
            if calls:
                return 'there was nothing to call'

            return self.wrong(answer)

        def gold(mode):
            if mode == CHAT:
                yield Step('', self.work + self.answer)
            else:
                yield Step(self.thought, self.answer)

        return Turn(self.user, check, gold)


def ask(rng, text):
    """Returns a question or a demand as somebody might put it.  What ends
    without a mark ends with words to be taken as they are."""

    return polite(rng, text) if text[-1] in '.?!' else text


def words(text):
    """Returns a text's words, in small letters, without marks."""

    return [w for w in (''.join(c for c in part if c.isalnum())
                        for part in text.lower().split()) if w]
