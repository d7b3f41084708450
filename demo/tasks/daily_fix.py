# Copyright (C) The nginx-dsa authors

"""Conversations of two or three turns in which the user corrects what was said
before, without tools: another number, a shorter text, another item of a list,
never mind."""

import re

from tasks import names, words
from tasks.daily import line, states
from tasks.daily_rough import typed
from tasks.daily_sums import STORIES, drawn_numbers, told_turn
from tasks.parts import Split
from tasks.phrase import capital, expand
from tasks.task import CHAT, Step, Turn
from tasks.times import clock


def turns(rng):
    """Returns the Turns of a conversation."""

    return rng.choice((number, number, listing, listing, message, message,
                       nothing))(rng)


def one_turn(user, thought, answer, wrong):
    """wrong: text -> None, or the reason why it is wrong"""

    def gold(mode):
        yield Step('' if mode == CHAT else thought, answer)

    return Turn(user, lambda text, calls: 'there was nothing to call'
                if calls else wrong(text), gold)


# ------------------------------------------------------------ another number

MEANT = Split('''No, I meant {new}.
Sorry, I meant {new}.
no i meant {new}
Oh, it was {new}.
I wrote it wrong, it should be {new}.
Wait, {new}!
Correction: {new}.
Make that {new}.
And if it were {new}?
What if it is {new}?
Hm, actually it is {new}.
Now the same with {new}[, please|].
And for {new}?
{new}, sorry.
Oops, typo. {new}.
Change the number to {new}.
It's {new}, I've just checked.
Take {new} instead.
how about {new}
Please do it again with {new}.
I misread it. It says {new}.
ah no, {new}
I'm told that it is {new}.
Use {new} this time.
Actually {new}'''.splitlines())

NOT_OLD = Split('''No, {new}, not {old}.
Not {old} but {new}.
I meant {new} instead of {old}.
Sorry, I said {old}, but it is {new}.
The {old} is wrong, it must be {new}.
Replace {old} by {new}[, please|].
{new} instead of {old}, sorry.
What if it is {new} and not {old}?
I mixed it up: {new}, not {old}.
not {old}, {new}
Please do it again with {new} in place of {old}.
Where I wrote {old}, read {new}.
My mistake, the {old} should be {new}.
Change {old} to {new} and tell me again.
Oh, {old} was yesterday's number. Today it is {new}.
Let's say {new} instead of {old}.
Wait. It wasn't {old}, it was {new}.
{old} was wrong! {new} is right.
Suppose it were {new} instead of {old}.
make the {old} a {new}'''.splitlines())

SIMPLE = [s for s in STORIES if len(s.ranges) <= 2 and s.what != 'sum']


def number(rng):
    """A sum, and then the same with another number."""

    story = rng.choice(SIMPLE)
    given = drawn_numbers(rng, story)

    while len(set(given.values())) < len(given):
        given = drawn_numbers(rng, story)

    first, _ = told_turn(rng, story, given, True, None, True)
    letter = rng.choice(sorted(given))

    for _ in range(1000):
        new = drawn_numbers(rng, story)[letter]
        changed = {**given, letter: new}

        if new not in given.values() and eval(story.holds, {}, dict(changed)):
            break
    else:
        return number(rng)

    way = MEANT if len(given) == 1 and rng.random() < 0.7 else NOT_OLD
    user = typed(rng, rng.choice(way), True, new=new, old=given[letter])
    second, _ = told_turn(rng, story, changed, True, user, True)

    return [first, second] + ending(rng)


# ------------------------------------------------------------------- a list

LIST = Split('''Write this as a list: {items}
Make a list of {items}.
List: {items}
My shopping list is {items}. Repeat it.
Please note: {items}
I need {items}. Say it back to me.
Put these in a list: {items}.
Give me {items} as a list.
The order is {items}. Please confirm it.
Let's pack: {items}. What do we have?
shopping list: {items}
We invite {items}. Write the list.
Here's what I want: {items}. Write it down.
On my list are {items}. Read the list to me.
Can you write down {items}?
Keep this list: {items}
I'd like a list with {items}.
{items} - write that down pls
For the picnic: {items}. Write it as a list.
Things to buy: {items}. Repeat, please.'''.splitlines())

REPLACE = Split('''Replace {old} by {new}.
replace the {old} by {new}
Instead of {old} I want {new}.
No {old}, {new} instead.
Swap {old} for {new}[, please|].
I don't like {old}. Take {new}.
Not {old} but {new}.
Change {old} to {new}.
{new} in place of {old}, please.
Oh, they have no {old}. Write {new}.
Sorry, I meant {new}, not {old}.
Put {new} where {old} is.
can u make it {new} instead of {old}
{old} was wrong. It must be {new}.
I'd rather have {new} than {old}.
Please exchange {old} with {new}.
make {old} into {new}
Wait: {new} instead of {old}.'''.splitlines())

REMOVE = Split('''Remove {old}.
Take {old} off the list.
Without {old}, please.
I don't need {old} any more.
Delete {old}[, please|].
Leave out {old}.
no {old} please
Strike out {old}.
Forget {old}.
Drop {old}.
I already have {old}, so take it off.
The list without {old}, please.
{old} can go.
cross off {old}
Not {old} after all.
Please cancel {old}.
{old} is out.
We have {old} at home, take it away.
I said {old}, but it is not needed.
get rid of {old}
Kick out {old}.
{old} should not be on it.
Can you take {old} off?
The same without {old}.'''.splitlines())

ADD = Split('''Add {new}.
Add {new} at the end.
And {new}.
Also {new}[, please|].
I forgot {new}.
Put {new} on it, too.
One more: {new}.
plus {new}
Please append {new}.
{new} is missing.
We need {new} as well.
Oh, and {new}!
Write {new} below it.
can you add {new} too
Don't forget {new}.
Please write {new} on it, too.
{new} belongs there, too.
I would like {new} as well.
There's one thing missing: {new}.
and {new} pls
Append {new}[, please|].
I need {new} on top of that.
Put {new} at the end of it.
Include {new}.'''.splitlines())

FIRST_ONE = Split('''Put {old} first.
{old} should come first.
Move {old} to the top.
Begin with {old}.
Please write {old} at the beginning.
{old} is the most important. Put it first.
Start the list with {old}.
can {old} be first
{old} goes to the front.
{old} first, please.
I want {old} at the top.
Let {old} be the first.
{old} comes before all the others.
Take {old} to the first place.
Can {old} stand at the beginning?
first {old}, then the rest
Start with {old}, then the others as they are.
The top one should be {old}.'''.splitlines())

NOTED = '''[Here it is|Here is the list|The list|The new list|Done|OK]:\\n{list}
{list}
[Sure|All right|Of course|Gladly]:\\n{list}'''


def listing(rng):
    """A list, and then changes of it."""

    n = rng.randint(3, 5)
    pool = rng.choice((names.GOODS, words.THINGS, names.FIRST))
    items = rng.sample(pool, n)
    sep = rng.choice((', ', ', ', '\n- '))
    made = [list_turn(rng, typed(rng, rng.choice(LIST), True, items=(
        ', '.join(items[:-1]) + ' and ' + items[-1])), 'the list', items,
        sep)]

    for _ in range(rng.choice((1, 1, 2))):
        at, items = rng.randrange(len(items)), list(items)
        old = items[at]
        new = rng.choice(pool)

        while new in items:
            new = rng.choice(pool)

        what = rng.choice((REPLACE, REPLACE, REMOVE, ADD, FIRST_ONE))

        if what is REPLACE:
            items[at], why = new, f'{new} instead of {old}'
        elif what is REMOVE and len(items) > 2:
            items.remove(old)
            why = f'without {old}'
        elif what is FIRST_ONE and at > 0:
            items.insert(0, items.pop(at))
            why = f'{old} first'
        else:
            what, why = ADD, f'{new} is added'
            items.append(new)

        made.append(list_turn(rng, typed(rng, rng.choice(what), True, old=old,
                                         new=new), why, items, sep))

    return made + ending(rng)


def list_turn(rng, user, why, items, sep):
    shown = sep.join(items) if sep == ', ' else '- ' + sep.join(items)
    answer = line(rng, NOTED).replace('\\n', '\n' if sep != ', '
                                      else ' ').format(list=shown)

    def wrong(text):
        found = [last_of(i, text) for i in items]

        if -1 in found or found != sorted(found):
            return f'not {items} in this order: {text}'

        more = re.split(r'[,\n]', text.partition(':')[2] or text)

        return None if len([m for m in more if m.strip()]) == len(items) \
            else f'not {len(items)} items: {text}'

    return one_turn(user, f'{why}: {", ".join(items)}', answer, wrong)


def last_of(words, text):
    """Returns where a text has these words for the last time, or -1."""

    found = list(re.finditer(r'(?<!\w)' + re.escape(words) + r'(?!\w)', text,
                             re.IGNORECASE))

    return found[-1].start() if found else -1


# ---------------------------------------------------------------- a message

TELL = Split('''Write a [short |]message to {name}: the {event} is on {day} at {time}.
Tell {name} in a few words that the {event} is on {day} at {time}.
I need a text for {name}. The {event} takes place on {day} at {time}.
Draft a note to {name} about the {event} on {day}, {time}.
{event}, {day}, {time}. Write that to {name} in a nice way.
Can you write an invitation for {name}? It's the {event} on {day} at {time}.
Please write to {name} that we meet for the {event} on {day} at {time}.
mail to {name} pls: {event} {day} {time}
Help me with a message. {name} must know that the {event} is on {day} at {time}.
What could I write to {name}? The {event} will be on {day} at {time}.
Compose a reminder for {name}: {event} on {day} at {time}.
The {event} was moved to {day} at {time}. Write a message to {name} about it.
Invite {name} to the {event} on {day} at {time}.
text {name} about the {event} ({day}, {time}), just write it here
I have to inform {name} about the {event}, {day} at {time}. Please word it.
A friendly note, please. To: {name}. About: {event}. When: {day}, {time}.
Let {name} know that there is the {event} on {day} at {time}. How would you write it?
My hands are wet, so please write for me: {name}, {event}, {day}, {time}.
Put this in a kind message for {name}: {event} on {day} at {time}.
I want {name} to come to the {event}. It's on {day}, {time}. Write a few lines.
{name} always forgets the {event}. Write a note: {day}, {time}.
{day} at {time} there's the {event}. Tell that to {name} in a message.
Would you write to {name} for me? The {event} is on {day} and begins at {time}.
pls word a message. who: {name}. what: {event}. when: {day} {time}.'''
              .splitlines())

LONG_TEXT = '''Hello {name}, I hope you are well. The {event} is on {day} at {time}. [I look forward to it.|See you there!|Let me know if you can come.]
Hi {name}, how are you? I just want to tell you that the {event} takes place on {day} at {time}. [See you then!|I'd be happy to see you.]
Dear {name}, please note that the {event} will be on {day} at {time}. [Best wishes|Many greetings|Kind regards].
Good day {name}, this is about the {event}. It is on {day} at {time}. [I hope that it suits you.|Please tell me if you can come.]'''

SHORT_TEXT = '''{name}: {event}, {day}, {time}.
{event} on {day} at {time}, {name}.
{name}, {event} on {day} at {time}.'''

SHORTER = Split('''Shorter, please.
shorter pls
That is too long.
Make it shorter.
Can you shorten it?
Just the most important things.
A bit less text[, please|].
Too many words.
In one short sentence, please.
keep it short
Cut it down.
tl;dr version?
Fewer words!
I'd like it briefer.
Only the facts, please.
Could it be shorter?
Half as long would be better.
Nobody reads that much. Make it short.
short version pls
It should fit on a small card.'''.splitlines())

OTHER_DAY = Split('''No, on {new}.
Sorry, it's {new}, not {old}.
Change the day to {new}.
Make it {new}.
It was moved to {new}.
{new} instead of {old}[, please|].
Wait, the day is wrong. {new}!
oh, {new}
I meant {new}.
Not {old} but {new}, sorry.
Please put {new} in there.
They changed it from {old} to {new}.
on {new} actually
The same text, but for {new}.
The day should be {new}.
It has to be {new} now.
{old} does not suit me. Write {new}.
I got the day wrong, it's {new}.
Take {new} as the day.
let's do {new}
Instead of {old} please say {new}.
We do it on {new}, not on {old}.
Could you set it to {new}?'''.splitlines())

OTHER_NAME = Split('''The same for {new}.
Now write it to {new}.
Sorry, the name is {new}.
It goes to {new}, not {old}.
Change the name to {new}.
{new} instead of {old}[, please|].
And one for {new}.
not {old}, i meant {new}
Please address it to {new}.
Write {new} where it says {old}.
I got the name wrong. It is {new}.
once more, for {new}
Please write {new} as the name.
{old} can't come, so write to {new}.
Do it for {new}, too, with the same text.
the name should be {new}
I don't want to write to {old} but to {new}.
Use the name {new} instead.
It's for {new}.
Send it to {new}, I mean: write that name.
Another copy with the name {new}.'''.splitlines())

DAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split()


def message(rng):
    """A message to somebody, and then changes of it."""

    given = dict(name=rng.choice(names.FIRST), event=rng.choice(names.EVENTS),
                 day=rng.choice(DAYS), time=clock(rng))
    text = line(rng, LONG_TEXT)
    made = [message_turn(typed(rng, rng.choice(TELL), True, **given),
                         'a message with all of it', text, given)]

    for what in rng.sample((SHORTER, OTHER_DAY, OTHER_NAME),
                           rng.choice((1, 1, 2))):
        old, limit = dict(given), 200

        if what is SHORTER:
            text, why, limit = line(rng, SHORT_TEXT), 'in fewer words', 80
            user = typed(rng, rng.choice(what), True)
        else:
            key = 'day' if what is OTHER_DAY else 'name'

            while given[key] == old[key]:
                given = {**given, key: rng.choice(
                    DAYS if key == 'day' else names.FIRST)}

            why = f'{given[key]} instead of {old[key]}'
            user = typed(rng, rng.choice(what), True, new=given[key],
                         old=old[key])

        made.append(message_turn(user, why, text, given, limit, old))

    return made + ending(rng)


def message_turn(user, why, text, given, limit=200, old=None):
    def wrong(said):
        for key, value in given.items():
            if not states(said, value):
                return f'"{value}" is not in: {said}'

            if old and old[key] != value and states(said, old[key]):
                return f'"{old[key]}" is still in: {said}'

        return None if len(said) < limit else f'too long: {said}'

    return one_turn(user, f'{why}: ' + ', '.join(given.values()),
                    capital(text.format(**given)), wrong)


# -------------------------------------------------------------- never mind

NEVER = Split('''Never mind.
nvm
Forget it.
Oh, never mind, I found it.
Leave it.
It's not important any more.
Don't bother.
Stop, I don't need it now.
Cancel that.
I changed my mind.
Forget what I said.
ok forget it
Ah, I know it now. Thanks anyway.
Not needed any more, sorry.
Let's drop it.
Skip it.
It does not matter.
no no, leave it, all good
Sorry, that was meant for somebody else.
I've got it myself, never mind.
We can stop here.
Oops, wrong chat. Never mind.
On second thought, no. Leave it.
You don't have to do that any more.
doesnt matter
It's fine, I worked it out.
Please ignore that.'''.splitlines())

FINE = '''[OK|Okay|All right|Sure], [never mind|no problem|as you like].
[No problem|No worries|All right]! [I'm here if you need something.|Just ask if there is more.|]
[Fine|OK|All right], we leave it [at that|there]. [What else can I do?|]
[Sure|Of course]. [Let me know if you need something else.|I'm here.|]
[As you like|As you wish]! [Is there something else?|]
[Okay, forgotten.|All right, forgotten.|OK, I drop it.] [Anything else?|]
[That's fine.|That is all right.] [Tell me if there is something else.|]
[Good, then that's settled.|Fine with me.] [What comes next?|]'''

FINE_WORDS = re.compile(r'\bok|all right|no problem|no worries|sure|course'
                        r'|fine|as you|good', re.I)

VAGUE = Split('''I wanted to ask you something.
I have a question about the {event}.
Can you help me with the {p}?
There's something I need to know.
Could you do something for me?
I need to write a letter to {name}.
Let me think what I wanted to ask...
I have a problem with my {p}.
It's about {name}.
May I ask you a thing?
can u help me with smth
I'm looking for an idea for the {event}.
About yesterday...
I have to plan the {event}.
Help me write something for {name}.
We should talk about the {event}.
I've got a task for you.
One question, if I may.'''.splitlines())

ASK_BACK = '''[Sure|Of course|Gladly]! [What is it about?|What do you need?|What would you like to know?]
[I'm listening|Go ahead|Tell me more]. [What do you need?|How can I help?]
[Happy to help|I can try to help]. [What exactly do you need?|Please tell me more.]
[OK|All right], [what is it|what can I do|what is the question]?
[Yes|Certainly]! [What should I do?|What is the matter?]
[Let's see|Let us see]: [what do you need|what is it about]?'''


def nothing(rng):
    """A request that is taken back."""

    given = dict(name=rng.choice(names.FIRST), event=rng.choice(names.EVENTS),
                 p=rng.choice(names.PRODUCTS))
    vague = typed(rng, rng.choice(VAGUE), True, **given)

    if rng.random() < 0.3:
        return [never(rng, vague + ' ')]

    return [one_turn(vague, expand(rng, '[It is not said what.|I ask what it '
                                        'is about.|I need to know more.]'),
                     capital(line(rng, ASK_BACK)),
                     lambda text: None if text.rstrip()[-1:] == '?'
                     or re.search('tell me', text, re.I)
                     else f'does not ask: {text}'), never(rng)]


def never(rng, before=''):
    return one_turn(before + typed(rng, rng.choice(NEVER), True),
                    expand(rng, '[The request is taken back.|Nothing is left '
                                'to do.|It is no longer needed.]'),
                    line(rng, FINE), lambda text: None
                    if FINE_WORDS.search(text) else f'not fine: {text}')


# ------------------------------------------------------------------ the end

THANKED = Split('''Thanks!
Perfect, thank you.
Great, thanks.
thx
That's it, thanks.
Good, that's right now.
Yes, like that. Thank you.
Wonderful!
ok perfect
Now it's right, thanks a lot.
Exactly. Thank you!
Super.
Now it fits, thank you.
Very good.
that's what i wanted, thx
Fine, thank you!
OK, I'll take it like that.
Good work, thanks.
You got it, thanks.
Much better, thank you.'''.splitlines())

WELCOME = '''[You're|You are] welcome!
[My pleasure|Gladly|Any time]!
[Glad|Happy] that it [helps|is right now].
[No problem|Sure]! [Anything else?|]
[Good|Great]! [Just ask if you need more.|]'''

WELCOME_WORDS = re.compile(r'welcome|pleasure|gladly|any time|glad|happy'
                           r'|no problem|sure|good|great', re.I)


def ending(rng):
    """Returns the turn of thanks at the end of some conversations."""

    if rng.random() > 0.15:
        return []

    return [one_turn(typed(rng, rng.choice(THANKED), True),
                     'The user is content.', line(rng, WELCOME),
                     lambda text: None if WELCOME_WORDS.search(text)
                     else f'no answer to thanks: {text}')]
