# Copyright (C) The nginx-dsa authors

"""Conversations with tools: the user corrects a request, asks the same about
something else, undoes an action, sends on what was found, wants an answer
again or shorter, compares two answers, or goes on to another topic."""

import re
from dataclasses import replace
from decimal import Decimal

from tasks import daily_talk
from tasks.daily import (TOPICS, box, described, draw_use, line, states, task,
                         turn)
from tasks.daily_chain import COMPARE, SKIP, WAYS, kind_of, whole
from tasks.parts import Split
from tasks.phrase import capital, expand
from tasks.task import CHAT, Step, Turn
from tasks.uses import loosely


CORRECT = Split('''[Sorry|Oh|Wait|No], I [meant|mean] {new}.
No, {new}[, please|, not {old}|].
[Not {old}, but|Wrong:] {new}.
I [said|wrote] {old}, but I [meant|want] {new}.
[Oops|Sorry], {new}[, of course|].
[Make that|Change that to|Actually,] {new}.
{new} instead of {old}[, please|].
[My mistake|A mistake of mine]: {new}, not {old}.
{old} was wrong. [It should be|Take|I need] {new}.
[Ah|Hmm], that's not [right|what I wanted]. {new} is what I wanted.
Did I say {old}? I meant {new}.
Typo, sorry. {new}.
*{new}
I [got it mixed up|was confused]: {new} is right, {old} is wrong.
[Hold on|Stop|Wait a moment]. Not {old}, {new}.
[Let's|Let us] do {new} rather than {old}.
Could you change {old} to {new}?
I changed my mind. {new}[ after all| is better|].
Forget {old}, [do|take|use] {new}.
no no, {new}
Correction: {new} [instead of|for] {old}.
I should have said {new}.
Replace {old} [with|by] {new}, please.
That was the wrong one, {old}. The right one is {new}.
{new} was what I wanted to write.
Once more with {new}, because {old} was a mistake.
Excuse me, it is not {old}, it is {new}.'''.splitlines())

ALSO = Split('''[And|Now] {new}?
[What|How] about {new}?
[The same|Now the same|Again] for {new}[, please|].
And [for|with] {new}?
[Also|Then] {new}[, please|].
[Do|Can you do] that [for|with] {new}[, too|][.|?]
{new}[ too| as well|, please].
[Next|One more]: {new}.
[I need|I'd like] the same [thing |]for {new}.
And while you're at it, {new}.
[Now do|Do] {new}.
same with {new}
[Could|Can] you also [do|take] {new}?
Thanks. And {new}?
[Great|Good|Perfect|OK]. Now {new}.
[Let's|Let us] go on with {new}.
{new} next.
Please repeat that for {new}.
Besides {old}, I also [need|want] {new}.
One more time, but with {new}.
what abt {new}
[Last one|And one last thing]: {new}.
It would help to have {new}, too.
Not only {old}, also {new}.
After {old}, please {new}.
How is it [with|for] {new}?
The next one is {new}.'''.splitlines())

# roles that may be corrected one by one, as users call them

CALLED = {'time': 'time', 'day': 'day', 'date': 'date', 'people': 'number of '
          'people', 'room': 'room', 'city': 'city', 'nights': 'number of '
          'nights', 'count': 'number', 'degrees': 'temperature', 'level':
          'brightness', 'minutes': 'time', 'amount': 'amount', 'to':
          'recipient', 'priority': 'priority', 'role': 'role', 'end':
          'destination', 'start': 'start', 'language': 'language',
          'artist': 'artist', 'event': 'event', 'device': 'device'}

OTHER = Split('''[No|Sorry|Wait], the {what} is {new}.
The {what} [should be|must be|has to be] {new}[, not {old}|].
[Change|Correct] the {what}[ from {old}|] to {new}[, please|].
I gave you the wrong {what}. It's {new}.
[Everything else is right|The rest is fine], but the {what} is {new}.
{what}: {new}, not {old}.
Same again, with {new} as the {what}.
As the {what} I meant {new}[, sorry|].
[Oops|Oh no], wrong {what}. {new}!
Could you take {new} as the {what}?
The {what} was a mistake, use {new}.
{new} is the right {what}.
I forgot that the {what} changed: {new}.
Can we make the {what} {new}?
Wrong {what}, I wanted {new} and not {old}.
Please once more, with {new} as {what}.'''.splitlines())


def is_whole(kind):
    """Returns true if a request has no slots but the arguments, and what it
    mentions besides, so that it can be repeated for another one."""

    slots = {s.removesuffix('_said') for s in re.findall(
        r'{(\w+)}', ' '.join((*kind.asks, kind.want)))
        if not s.startswith('x_')}

    return kind.swap != '' and slots <= set(kind.roles)


AGAIN = [k for t, kinds in TOPICS.items() if t != 'the database'
         for k in kinds if is_whole(k)]


def said(slots, role):
    """Returns an argument as users say it."""

    return str(slots.get(f'{role}_said', slots[role]))


def with_another(rng, use, role, words):
    """Returns the Use with another value of an argument, and None if it has
    the same."""

    kind = use.kind
    other = kind.case(rng)

    if said(other, role) == said(use.slots, role) \
            or str(other[role]) == str(use.slots[role]):
        return None

    kept = [r for r in use.given if r != role]
    slots = {**other, **{n: use.slots[n] for r in kept
                         for n in (r, f'{r}_said') if n in use.slots}}

    # a record names what it is about

    if role == 'product' and 'name' in slots:
        slots['name'] = slots['product']

    user = expand(rng, rng.choice(words)).format(
        new=said(slots, role), old=said(use.slots, role),
        what=CALLED.get(role, role))

    return kind.use(rng, slots, capital(user) if rng.random() < 0.8
                    else user)


def turns_of(rng, uses, apis):
    """Returns a Turn for each use.  If the one before has the same tool, the
    thought repeats what that call had, so that what does not change is near
    when the next call is written."""

    turns, last = [], None

    for u in uses:
        topic, api = u.service.topic, apis[u.service.topic]
        before = f'Before: {api.name}, {described(api, last.given)}' \
            if last and last.service.topic == topic else ''
        turns.append(turn(rng, [u], {topic: api}, u.user, u.answer, True,
                          before))
        last = u

    return turns


def follow(rng, turns, tools):
    if rng.random() < 0.25:
        turns.append(daily_talk.thanks(rng))

    return task(rng, 'daily_turns', 'multi', turns, tools)


def make(rng):
    way = rng.random()

    if way < 0.5:
        return again(rng)

    return (other_role if way < 0.6 else undo if way < 0.7
            else pass_on if way < 0.8 else reword if way < 0.92
            else which)(rng)


def again(rng):
    """The same for something else, a correction, or another topic."""

    first = rng.choice(AGAIN).draw(rng)
    way = rng.random()
    uses = [first]

    for _ in range(2 if way < 0.2 else 1 if way < 0.8 else 0):
        use = with_another(rng, uses[-1], first.kind.swap,
                           ALSO if rng.random() < 0.6 else CORRECT)

        if use is None:
            return again(rng)

        uses.append(use)

    if len({said(u.slots, first.kind.swap) for u in uses}) < len(uses):
        return again(rng)

    if way > 0.6:
        uses.append(draw_use(rng, (first.service.topic,)))

    apis, tools = box(rng, uses, (0, 2))

    return follow(rng, turns_of(rng, uses, apis), tools)


def other_role(rng):
    """An argument is corrected that has a name of its own."""

    first = rng.choice(AGAIN).draw(rng)
    roles = [r for r in first.given if r in CALLED]

    if not roles:
        return other_role(rng)

    use = with_another(rng, first, rng.choice(roles), OTHER)

    if use is None:
        return other_role(rng)

    apis, tools = box(rng, [first, use], (0, 2))

    return follow(rng, turns_of(rng, [first, use], apis), tools)


# ---------------------------------------------------------------- undo, move


DROP = Split('''[Cancel|Delete|Remove] it[ again|], please.
[Sorry|Oh], cancel [that|it]. [I can't come.|It won't happen.|They called it off.|]
[Undo that|Take that back], [please|I don't need it].
[Actually|On second thought], cancel that.
Hm, no. Take it out of the calendar again.
They just wrote that it's off. Remove it.
I changed my mind, delete the event.
Never mind, please cancel it again.
That was a mistake. Delete it.
It was called off, so it can go.
pls remove that again
Please you cancel this event again.'''.splitlines())

MOVE = Split('''[Move|Change|Shift] it to {day} at {time}.
[Sorry|Oh], it's been moved to {day}, {time}. [Change it.|Please reschedule.]
[Can|Could] you move that to {day} at {time}?
They changed the plan: {day}, {time}. Reschedule it.
[Actually|On second thought], move it to {day}, {time}.
That doesn't work for {x_name}. Shift it to {day} at {time}.
Put it off until {day}, {time}.
reschedule that to {day} {time} pls
I'd rather have it {day} at {time}. Please move it.'''.splitlines())

BACK = Split('''[Undo that|Take that back|Undo], please.
[Turn|Switch] it {state} again.
[Oh|Sorry], [that was wrong|not that one]. Switch it back.
[Actually|On second thought], turn it back {state}.
Now {state} again.
I changed my mind, {state} again please.
No, put it back as it was.
Back to {state}[, please|, thanks].
That was a mistake, {state} again.
It should be {state} after all.'''.splitlines())


def undo(rng):
    """An action is taken back or changed by another call."""

    way = rng.random()

    if way < 0.35:
        first = kind_of('the home').draw(rng)
        state = 'off' if first.slots['state'] == 'on' else 'on'
        slots = {**first.slots, 'state': state}
        then = first.kind.use(rng, slots, expand(
            rng, rng.choice(BACK)).format(**slots))
    else:
        first = kind_of('the calendar').draw(rng)
        topic, words = ('cancelling events', DROP) if way < 0.7 \
            else ('moving events', MOVE)
        kind = kind_of(topic)
        slots = {**kind.case(rng), 'event': first.slots['event']}

        if words is DROP:
            slots['day'] = first.slots['day']
        elif (slots['day'], slots['time']) == (first.slots['day'],
                                               first.slots['time']):
            return undo(rng)

        then = kind.use(rng, slots, expand(rng, rng.choice(words)).format(
            **slots))

    apis, tools = box(rng, [first, then], (0, 2), ('moving events',
                                                   'cancelling events'))

    return follow(rng, turns_of(rng, [first, then], apis), tools)


# ------------------------------------------------------------------- pass on


PASS = {'messages': Split('''[Text|Send|Message] that to {to}.
[Please|Now] [send|text] {to} the answer.
{to} should know that, too. Send a message.
[Can|Could] you let {to} know[ by text|]?
[Great|OK|Good]. Tell {to}, please.
{to} asked the same. Text it over.
Now pass that on to {to}.
send it to {to} pls
Write that to {to} in a message.
Let {to} have this information.
Now text {to} what you found.
Forward this to {to}.
Could {to} get that as a text?
{to} needs this, too.
And now a message to {to} with it, please.
Copy that to {to}.'''.splitlines()),
        'team channels': Split('''Post that in {channel}.
[Please|Now] share it with {channel}.
[Can|Could] you put that in {channel}?
{channel} should know. Post it.
Write the answer in {channel}, please.
post it to {channel}
The people in {channel} want to know that as well.
Now put that into {channel} so that all see it.
Could {channel} have that, too?
Announce it in {channel}.
Tell the people in {channel}.'''.splitlines()),
        'notes': Split('''Save that as a note [called|with the title] "{title}".
Make a note of it, title "{title}".
[Please|Now] note that under "{title}".
[Can|Could] you keep that in my notes as "{title}"?
I'll need it later. Note "{title}", please.
note that, call it "{title}"
Write it down in a note titled "{title}".
Keep it. A note "{title}" would be good.
I want to have that as a note, "{title}".
Could you store this under "{title}" in my notes?
Put that in a memo called "{title}".'''.splitlines())}


def pass_on(rng):
    """An action uses the answer of the turn before."""

    topic = rng.choice([t for t in TOPICS if t not in SKIP
                        and TOPICS[t][0].service.gives])
    first = rng.choice(TOPICS[topic]).draw(rng)
    first.answer = whole(rng, first)
    way, _, answers, where = rng.choice(WAYS)
    kind = kind_of(way)
    slots = {**kind.case(rng), 'text': first.answer}
    user = expand(rng, rng.choice(PASS[way])).format(**slots)

    def accepts(role, wanted, value):
        return all(states(str(value), k) for k in first.keys) \
            if role == 'text' else loosely(role, wanted, value)

    then = replace(kind.use(rng, slots, user), accepts=accepts,
                   keys=(slots[where],))
    then.answer = capital(line(rng, answers).format(who=slots[where],
                                                    text=first.answer))
    apis, tools = box(rng, [first, then], (0, 2))

    return follow(rng, turns_of(rng, [first, then], apis), tools)


# --------------------------------------------- the answer again, in a new way


SHORT = Split('''[Shorter|Short|Shorter, please|Make it shorter].
Just the [answer|result|facts], please.
[Too long|TL;DR]. [Only the result.|Say it in a few words.]
In one word or two?
Cut it down.
Can you say that in fewer words?
[Less text|Fewer words], please.
Without the words around it.
Give me only the plain answer.
shorter pls
I just need [the result itself|the bare answer].'''.splitlines())

REPEAT = Split('''[What was that|What was it] again?
[Say|Tell me] that again[, please|].
[Sorry|Pardon|Excuse me], I didn't [catch|get] that.
[Once more|Again], please.
Can you repeat [that|it|the answer]?
I didn't hear you. What was the answer?
come again?
Could you say it once more?
I forgot what you said. Repeat it.
What did you just say?
Please repeat what is the result.
Wait, what was the result?'''.splitlines())

SOURCE = Split('''[How|Where] do you know that[ from|]?
Which tool did you use?
[Where|From where] did you get that?
What's your source?
Did you look that up or guess?
How did you find that out?
Which function was it that you called?
Is that made up, or from a tool?
what did u use to find that
Can I trust that? How did you get it?'''.splitlines())

NEVER = Split('''[Never mind|Nevermind|Forget it][, thanks|].
[OK|Ah], [that's fine|it doesn't matter][ then|].
I don't need it any more.
Forget what I asked.
Let's leave it at that.
That will do. Don't do anything else.
Stop here, please.
nvm
No need to go on.
[Skip it|Drop it], it's not important.'''.splitlines())

AS_BEFORE = '''{text}
[Again|Once more|Sure]: {text}
[I said|As I said|It was]: {text}
[Of course|Gladly]. {text}
[The answer was|Here it is again]: {text}
[No problem|OK]: {text}'''

BY = '''I used {name}.
[It comes|That is] from {name}.
I looked it up with {name}.
[I called|I asked] the tool {name}, and this is what it returned.
{name} [returned|gave me] that.
From a call of {name}[, I did not guess|].
The source is the tool {name}.
I did not make it up, {name} says so.'''

FINE = '''[OK|All right|Sure], [no problem|as you like|then we leave it].
[No problem|Fine]. [Just ask if you need something else.|Tell me if there is something else.|]
[OK|All right]. [Anything else?|What else can I do?|I am here if you need me.]
[All right|OK], I [leave it there|stop here|won't do anything else].
Sure[, no problem|, that's fine]. [Let me know if you need it after all.|]
[Fine|OK], we [leave it|stop here].'''


def reword(rng):
    """The answer is wanted again, shorter, or with its source."""

    first = draw_use(rng, SKIP)

    while not first.service.gives or '\n' in first.answer:
        first = draw_use(rng, SKIP)

    apis, tools = box(rng, [first], (0, 3))
    name = apis[first.service.topic].name
    plain = ', '.join(k.split('|')[0] for k in first.keys)
    asks, answer, keys, why = rng.choice((
        (SHORT, capital(plain) + rng.choice(('.', '')), first.keys,
         f'The user wants fewer words: {plain}.'),
        (SHORT, capital(plain) + '.', first.keys,
         f'Shorter, so only {plain}.'),
        (REPEAT, line(rng, AS_BEFORE).format(text=first.answer), first.keys,
         f'The answer again: {plain}. A call is not needed.'),
        (REPEAT, line(rng, AS_BEFORE).format(text=first.answer), first.keys,
         f'The user wants to hear it again: {plain}.'),
        (SOURCE, capital(line(rng, BY).format(name=name))
         if not name[:1].islower() else line(rng, BY).format(name=name),
         (name,), f'I called {name}, so I say that.'),
        (NEVER, line(rng, FINE), ('ok|all right|sure|problem|fine',),
         'The user needs nothing else. I do nothing.')))

    turns = turns_of(rng, [first], apis)
    turns.append(spoken(expand(rng, rng.choice(asks)), answer, keys, why))

    return follow(rng, turns, tools)


def spoken(user, answer, keys, why):
    """Returns a Turn that needs no call."""

    def gold(mode):
        yield Step('' if mode == CHAT else why, answer)

    def check(text, calls):
        if calls:
            return 'a call was made without need'

        return next((f'"{k}" is not in: {text}' for k in keys
                     if not states(text, k)), None)

    return Turn(user, check, gold)


# ------------------------------------------------------ which of two it is


MORE = {'temp': ('warmer', 'colder'), 'wind': ('windier', 'calmer'),
        'humidity': ('more humid', 'drier'), 'price': ('more expensive',
                                                       'cheaper'),
        'cost': ('more expensive', 'cheaper'), 'distance': ('farther',
                                                            'closer'),
        'stock': ('in better supply', 'closer to being sold out')}

WHICH = Split('''Which [of the two|of them|one] is {more}?
So which is {more}?
And which one is {more}[ now|]?
[Compare them|Compare the two]: which is {more}?
{more}: the first or the second?
What do you say, which of both is {more}?
Then {more} is...?
which one's {more}
[Thanks|OK]. [And|So] the {more} one is?
Of these two, what is {more}?'''.splitlines())

PICK = '''{best}[ is {more}|].
[It is|That is|That's] {best}.
{best}, with {x} [against|and not|compared with] {y}.
{best} ({x}), not {worst} ({y}).
{best} is {more}: {x}, {worst} has {y}.
[The answer is|I'd say] {best}.
{best} is {more} than {worst}.'''


def which(rng):
    """Two answers are compared without a call."""

    topic, want, differs, slot, *_ = rng.choice(
        [c for c in COMPARE if c[3] in MORE])
    first = kind_of(topic, want).draw(rng)

    second = with_another(rng, first, differs, ALSO)

    if second is None:
        return which(rng)

    a, b = Decimal(str(first.slots[slot])), Decimal(str(second.slots[slot]))

    if a == b:
        return which(rng)

    greater = rng.random() < 0.5
    best, worst = (first, second) if (a > b) == greater else (second, first)
    fields = dict(more=MORE[slot][0 if greater else 1],
                  best=best.slots[differs], worst=worst.slots[differs],
                  x=best.slots[slot], y=worst.slots[slot])
    answer = capital(line(rng, PICK).format(**fields))
    why = '{x} is {than} {y}, so {best}.'.format(
        than='more than' if greater else 'less than', **fields)
    apis, tools = box(rng, [first, second], (0, 2))
    turns = turns_of(rng, [first, second], apis)
    last = spoken(capital(expand(rng, rng.choice(WHICH)).format(**fields)),
                  answer, (str(fields['best']),), why)
    turns.append(last)

    return follow(rng, turns, tools)
