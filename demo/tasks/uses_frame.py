# Copyright (C) The nginx-dsa authors

"""What people write around a request: a greeting, a reason, a mail, or a
sentence that does not matter."""

from dataclasses import dataclass, fields, replace

from tasks import names
from tasks.parts import Split
from tasks.uses import Kind


FRAMES = Split('''Good morning! I am new in the team. {x}
{x} I need it for a report.
{name} is on holiday, so I ask you. {x}
Quick one before lunch: {x}
{x} (It is not urgent.)
Task: {x}
I hope this is the right place to ask. {x}
Sorry to bother you. {x}
I tried it myself and failed. {x}
@bot {x}
ok so {x}
{x} No need to explain.
Next: {x}
1) {x}
Before I forget: {x}
The phone rang all morning, and now this. {x}
We have visitors today, so I am short of time. {x}
{x} My boss is waiting.
User request: {x}
{x} Answer in one line.
Could you do me a favor? {x}
Hello from {city}. {x}
I am in {city} today and can't look myself. {x}
{x} I'll have a coffee meanwhile.
This is {name}. {x}
{name} here, from the night shift. {x}
"{x}" - that is what {name} wants to know.
Something else now. {x}
It has been a long day. {x}
{x} You would make {name} happy.
I do this for the first time. {x}
You did well yesterday. Today I have this: {x}
My English is not good, sorry. {x}
{x} Then I can go home.
I should know this, but I don't. {x}
Meeting in five minutes! {x}
{x} {name} will ask me about it.
Urgent!!! {x}
Let's see what you can do. {x}
{x} If it does not work, tell me.
As usual on a Monday: {x}
I asked {name}, who didn't know. {x}'''.splitlines())

# those with lines; for a request that is alone

MAILS = Split(s.replace('\\n', '\n') for s in r'''
{x}\n\nThanks,\n{name}
Dear assistant,\n\n{x}\n\nKind regards\n{name}
From: {name}\nSubject: a question\n\n{x}
Here is what I need:\n{x}
Hi,\n\n{x}\n\nBest,\n{name}
Forwarded by {name}:\n\n> {x}
{x}\n-- \n{name}, {city}
Hello {name},\n\n{x}\n\nBye,\n{name2}
{x}\n\nSent from my phone
Subject: please help\n\n{x}\n\n{name}, {city}
To: the bot\nFrom: {name}\n\n{x}
# Request\n\n{x}
--- note of {name} ---\n{x}\n---
I got this from {name}, please do it:\n\n{x}
(pasted from the chat)\n{name}: {x}
Context: we are three people in {city}.\nRequest: {x}
user={name}\nrequest={x}'''.strip().splitlines())

# the shares of requests that have one of them

FRAMED = 0.2
MAILED = 0.1


@dataclass(frozen=True)
class Framed(Kind):
    """A kind of use whose requests may have something around them."""

    def use(self, rng, slots, user=None):
        use = super().use(rng, slots, user)

        return use if user else replace(use, user=framed(rng, use.user))


def framed(rng, text):
    return around(rng, FRAMES, text) if rng.random() < FRAMED else text


def mailed(rng, use):
    """Returns the request of a use, which may be in a mail or the like."""

    return around(rng, MAILS, use.user) if isinstance(use.kind, Framed) \
        and rng.random() < MAILED else use.user


def around(rng, frames, text):
    return rng.choice(frames).format(
        x=text, name=rng.choice(names.FIRST), name2=rng.choice(names.FIRST),
        city=rng.choice(names.PLACES))


def frame(kinds):
    """Returns the kinds with requests that may be framed."""

    return [Framed(**{f.name: getattr(k, f.name) for f in fields(k)})
            for k in kinds]
