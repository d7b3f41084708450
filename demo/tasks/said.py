# Copyright (C) The nginx-dsa authors

"""Turns that need no tool: the user says something, the model thinks one line
and answers."""

from dataclasses import dataclass
from typing import Callable, Optional

from tasks.task import CHAT, Step, Turn
from tasks.wording import polite


@dataclass
class Said:
    """
    user      the user's text
    thought   the reasoning
    answer    the answer
    wrong     answer -> None, or the reason why it is wrong
    about     a noun for the topic, or ''
    work      lines before the answer if there is no reasoning
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
    """Returns a question or a request in one of several styles.  A text that
    does not end with a punctuation mark ends with words that must be kept as
    they are."""

    return polite(rng, text) if text[-1] in '.?!' else text


def words(text):
    """Returns a text's words in small letters, without punctuation."""

    return [w for w in (''.join(c for c in part if c.isalnum())
                        for part in text.lower().split()) if w]
