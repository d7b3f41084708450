# Copyright (C) The nginx-dsa authors

"""Turns of a conversation that refer to earlier turns."""

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from tasks import digits
from tasks.arithmetic_check import last_is, numbers
from tasks.memory import FACTS
from tasks.said import Said, ask, words
from tasks.skills import ONES
from tasks.task import CHAT, DISCARD, RETAIN, Tool, Turn
from tasks.tools_check import has_word


SHORT = 120         # longest text to repeat, in characters


@dataclass
class Piece:
    """Turns of a conversation that stay together.

    about    a noun for their topic, or ''
    said     what was said, if it was not a task
    result   the number that the last answer states as its result, or None
    """
    turns: List[Turn]
    tools: Dict[str, Tool] = field(default_factory=dict)
    modes: Tuple[str, ...] = (RETAIN, DISCARD, CHAT)
    about: str = ''
    said: Optional[Said] = None
    result: Optional[int] = None

    @staticmethod
    def of(said):
        return Piece([said.turn()], about=said.about, said=said,
                     result=said.result)


def draw(rng, before, calculator, known):
    """Returns a turn that refers to the pieces before it.

    calculator   one is offered, so the model does not calculate itself
    known        facts that the user has stated; they are not asked as unknown
    """
    users = [t.user for piece in before for t in piece.turns]
    last = before[-1]
    ways = [lambda: how_many(rng, users), lambda: untold(rng, known)]

    if short(users[0]):
        ways += [lambda: first(rng, users)] * 2

    if len(users) > 1 and short(users[-1]):
        ways.append(lambda: just_said(rng, users))

    if before[0].about != '':
        ways += [lambda: first_about(rng, before[0].about)] * 2

    if last.said is not None and last.said.work == '' \
            and short(last.said.answer):
        ways.append(lambda: again(rng, last.said))

    if last.result is not None and not calculator:
        ways += [lambda: go_on(rng, last.result)] * 6

    return rng.choice(ways)()


def short(text):
    return len(text) <= SHORT and '\n' not in text


def first(rng, users):
    user = ask(rng, rng.choice((
        'What was my first message?', 'What did I write first?',
        'What did I say first?', 'Repeat my first message.',
        'How did I begin this conversation?', 'Quote my first message.',
        'What was the first thing that I wrote?')))

    return Said(user, 'The first message of the user, as it was.',
                f'Your first message was: {users[0]}',
                lambda answer: quotes(answer, users[0]))


def just_said(rng, users):
    user = ask(rng, rng.choice((
        'What was my last message?', 'What did I write just now?',
        'What did I just say?', 'Repeat my last message.',
        'Quote what I wrote before this.', 'What did I say before this?')))

    return Said(user, 'The message of the user before this one, as it was.',
                f'Your last message was: {users[-1]}',
                lambda answer: quotes(answer, users[-1]))


def quotes(answer, text):
    """Returns None if an answer ends with a text; punctuation is ignored, if
    the text is not all punctuation."""

    wanted = words(text)
    return None if words(answer)[-len(wanted):] == wanted \
        or not wanted and answer.endswith(text) else f'does not quote: {text}'


def first_about(rng, about):
    user = ask(rng, rng.choice((
        'What was my first question about?', 'What did we begin with?',
        'What was the first thing that we talked about?',
        'What was the first topic?', 'What did I ask about first?',
        'What did we talk about at first?')))

    return Said(user, f'The first message was about {about}.',
                f'It was about {about}.',
                lambda answer: None if has_word(answer, about)
                else f'not about {about}')


def how_many(rng, users):
    n = len(users)
    user = ask(rng, rng.choice((
        'How many messages did I send before this one?',
        'How many messages have I written before this?',
        'How often did I write to you before this?',
        'Count my messages before this one.')))
    counted = ', '.join(f'{i} {" ".join(u.split()[:2])}'
                        for i, u in enumerate(users, 1))

    # with its end, so that it is no question how many follow

    counted += ', then this one'

    def wrong(answer):
        said = numbers(answer) or [ONES.index(w) for w in words(answer)
                                   if w in ONES]
        return None if said[:1] == [n] else f'not {n}'

    return Said(user, f'The messages of the user: {counted}.',
                f'Before this one: {n}.', wrong)


def untold(rng, known):
    return rng.choice([f for f in FACTS if f.what not in known]).asked(
        rng, None, known)


def again(rng, said):
    user = ask(rng, rng.choice((
        'Say that again.', 'Repeat your last answer.', 'What did you say?',
        'Can you repeat that?', 'Once more, please.', 'Say it once more.',
        'I did not get that. Say it again.')))

    return Said(user, 'My last answer, as it was.', said.answer, said.wrong,
                said.about)


def go_on(rng, n):
    """Returns a sum with the last result."""

    way = rng.choice('+-*')
    k = rng.randrange(2, 10) if way == '*' else rng.randrange(1, 100)

    if way == '-' and k > n:
        way = '+'

    user, work, right = {
        '+': (('Add {k} to the last result.', 'Add {k} to that.',
               'And {k} more?', 'Now add {k}.', 'What is that plus {k}?',
               'Plus {k}, what does it make?', 'And if I add {k}?'),
              digits.add, n + k),
        '-': (('Subtract {k} from the last result.', 'Take {k} from that.',
               'And {k} less?', 'Now subtract {k}.',
               'What is that minus {k}?', 'And without {k} of it?'),
              digits.sub, n - k),
        '*': (('Multiply the last result by {k}.', 'And {k} times that?',
               'Now multiply it by {k}.', 'What is that times {k}?',
               'Times {k}, what does it make?'),
              digits.mul, n * k),
    }[way]

    lines = work(n, k)
    shown = '\n'.join(lines) + '\n' if len(lines) > 1 else ''

    return Said(ask(rng, rng.choice(user).format(k=k)),
                '\n'.join([f'The last result is {n}.'] + lines),
                f'The answer is {right}.',
                lambda answer: last_is(answer, right),
                work=shown, result=right if right < 10000 else None)
