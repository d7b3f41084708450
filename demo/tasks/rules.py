# Copyright (C) The nginx-dsa authors

"""System prompts that change every answer, each with its check."""

from dataclasses import dataclass
from typing import Callable, Optional

from tasks.task import Step, Turn


WORDS = '''over indeed captain friend done amen cheers copper lantern kettle
hello please harbor maple now well right listen'''.split()

PLAIN = ('You are a helpful model.', 'You are the demonstration model of '
         'nginx-dsa.', 'Be brief.', 'Answer in short sentences.',
         'Be friendly and exact.', 'Help the user.',
         'Answer the questions of the user.')


@dataclass
class Rule:
    """
    system   the system prompt
    form     the answer without the rule -> with it
    core     the answer with the rule -> without it; None if it was not
             followed
    note     the reasoning's text before the answer, or ''
    """
    system: str
    form: Callable[[str], str]
    core: Callable[[str], Optional[str]]
    note: str = ''

    def turn(self, turn):
        """Returns a turn that follows the rule, too."""

        def check(answer, calls):
            core = self.core(answer)
            return 'the system prompt was not followed' if core is None \
                else turn.check(core, calls)

        def gold(mode):
            policy = turn.gold(mode)
            step = next(policy)

            while step.calls:
                step = policy.send((yield step))

            yield Step(f'{step.reasoning}\n{self.note}'
                       if step.reasoning and self.note else step.reasoning,
                       self.form(step.content))

        return Turn(turn.user, check, gold)


def free(system):
    """Returns the rule of a system prompt that changes no answer."""

    return Rule(system, lambda text: text, lambda answer: answer)


def plain(rng):
    return free(rng.choice(PLAIN))


def capitals(rng):
    return Rule(rng.choice(('Answer in capital letters.',
                            'Write every answer in capital letters.',
                            'Use capital letters only.')),
                str.upper,
                lambda answer: answer if answer == answer.upper() else None,
                'In capital letters.')


def ends(rng):
    word = rng.choice(WORDS)

    def core(answer):
        text = answer.rstrip(' .!\n')
        before = text[:-len(word)]

        return before.rstrip() if text.lower().endswith(word) \
            and not before[-1:].isalnum() else None

    return Rule(rng.choice((f'End every answer with the word {word}.',
                            f'Your answers end with the word {word}.',
                            f'The last word of each answer is {word}.')),
                lambda text: f'{text} {word.capitalize()}.', core,
                f'The last word: {word}.')


def begins(rng):
    word = rng.choice(WORDS)

    def core(answer):
        text = answer.lstrip()
        after = text[len(word):]

        return after.lstrip(' .,:!\n') if text.lower().startswith(word) \
            and not after[:1].isalnum() else None

    return Rule(rng.choice((f'Begin every answer with the word {word}.',
                            f'Your answers begin with the word {word}.',
                            f'The first word of each answer is {word}.')),
                lambda text: f'{word.capitalize()}. {text}', core,
                f'The first word: {word}.')


def draw(rng):
    """Returns a rule, or None for no system prompt."""

    kind = rng.choices((None, plain, capitals, ends, begins),
                       (14, 2, 1, 2, 2))[0]

    return None if kind is None else kind(rng)
