# Copyright (C) The nginx-dsa authors

"""One conversation with a model about a task of one turn, and what is left of
it."""

from dataclasses import dataclass, field
from typing import List, Optional

from eval.client import ContextFull
from eval.converse import Outcome, Unanswered, have_turn
from tasks.task import CHAT
from worlds.general.task import SUBMIT


@dataclass
class Try:
    """
    why         what is wrong; None: it is right.  No client reads it
    answer      the text of the last message; None: there is none
    messages    of the conversation, with the answer
    calls       that were made
    tokens      that the model wrote, of which reasoning were reasoning
    """
    why: Optional[str]
    answer: Optional[str]
    messages: list
    calls: list
    tokens: int
    reasoning: int

    @property
    def right(self):
        return self.why is None

    def submitted(self):
        """Returns the last result that was submitted, or None."""

        return next((c.arguments['answer_text'] for c in reversed(self.calls)
                     if c.name == SUBMIT and 'error' not in c.result), None)

    def solution(self):
        """Returns the solution as text: the answer, and what was
        submitted."""

        parts = [self.answer, self.submitted()]

        return '\n\n'.join(p for p in parts if p)


@dataclass
class Chat:
    """A model.  ask takes a request without a model and returns a completion;
    seed is sent with each request, so that two with the same one are the
    same."""

    ask: object
    mode: str
    seed: int
    outcome: Outcome = field(default_factory=Outcome)

    def __call__(self, request):
        return self.ask({'seed': self.seed, **request})

    def turn(self, task, messages):
        """Goes on with messages until an answer.  Returns (answer or None,
        calls, why there is no answer)."""

        try:
            answer, calls = have_turn(task, self.mode, self, messages,
                                      self.outcome)
        except Unanswered as e:
            return None, [], str(e)

        return answer, calls, None

    def text(self, messages):
        """Returns the text of an answer without tools; '' if the context has
        no room for it."""

        try:
            completion = self({'messages': messages, 'thinking': {
                'type': 'disabled' if self.mode == CHAT else 'enabled'}})
        except ContextFull:
            return ''

        self.outcome.count(completion)

        return completion['choices'][0]['message'].get('content') or ''


def begin(task):
    """Returns the first messages of a task."""

    head = [{'role': 'system', 'content': task.system}] if task.system else []

    return head + [{'role': 'user', 'content': task.turns[0].user}]


def sample(task, chat):
    """Returns a Try."""

    messages: List[dict] = begin(task)
    answer, calls, why = chat.turn(task, messages)

    return judged(task, chat, messages, answer, calls, why)


def judged(task, chat, messages, answer, calls, why):
    if answer is not None:
        why = task.turns[0].check(answer, calls)

    return Try(why, answer, messages, calls, chat.outcome.completion_tokens,
               chat.outcome.reasoning_tokens)
