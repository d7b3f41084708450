# Copyright (C) The nginx-dsa authors

"""Conversations with tools: the user corrects a request, asks the same about
something else, or goes on to another topic."""

import re

from tasks import daily_talk
from tasks.daily import TOPICS, box, draw_use, task, turn
from tasks.parts import Split
from tasks.phrase import expand


CORRECT = Split('''[Sorry|Oh|Wait|No], I [meant|mean] {new}.
No, {new}[, please|, not {old}|].
[Not {old}, but|Wrong:] {new}.
I [said|wrote] {old}, but I [meant|want] {new}.
[Oops|Sorry], {new}[, of course|].
[Make that|Change that to|Actually,] {new}.
{new} instead of {old}[, please|].
[My mistake|A mistake of mine]: {new}, not {old}.'''.splitlines())

ALSO = Split('''[And|Now] {new}?
[What|How] about {new}?
[The same|Now the same|Again] for {new}[, please|].
And [for|with] {new}?
[Also|Then] {new}[, please|].
[Do|Can you do] that [for|with] {new}[, too|][.|?]
{new}[ too| as well|, please].
[Next|One more]: {new}.'''.splitlines())


def is_whole(kind):
    """Returns true if a request has no slots but the arguments, so that it
    can be repeated for another one."""

    slots = set(re.findall(r'{(\w+)}', ' '.join(kind.asks)))

    return kind.swap != '' and slots <= set(kind.roles)


AGAIN = [k for t, kinds in TOPICS.items() if t != 'the database'
         for k in kinds if is_whole(k)]


def make(rng):
    first = rng.choice(AGAIN).draw(rng)
    swap = first.kind.swap
    way = rng.random()
    uses, texts = [first], [first.user]

    if way < 0.75:
        other = first.kind.case(rng)

        if str(other[swap]) == str(first.slots[swap]):
            return make(rng)

        slots = {**other, **{r: first.slots[r] for r in first.given
                             if r != swap}}

        ways = ALSO if rng.random() < 0.6 else CORRECT
        user = expand(rng, rng.choice(ways)).format(
            new=slots[swap], old=first.slots[swap])
        uses.append(first.kind.use(rng, slots, user))

    if way > 0.55:
        uses.append(draw_use(rng, (first.service.topic,)))

    apis, tools = box(rng, uses, (0, 2))
    turns = [turn(rng, [u], {u.service.topic: apis[u.service.topic]}, u.user,
                  u.answer, True) for u in uses]

    if rng.random() < 0.25:
        turns.append(daily_talk.thanks(rng))

    return task(rng, 'daily_turns', 'multi', turns, tools)
