# Copyright (C) The nginx-dsa authors

"""Requests whose later calls depend on the results of earlier ones: send what
was found, act only if a condition holds, use what was found, compare."""

from dataclasses import replace
from decimal import Decimal

from tasks import digits
from tasks.daily import (TOPICS, box, choice, judge, line, request, states,
                         task)
from tasks.parts import Split
from tasks.phrase import capital, expand, say
from tasks.spoken import bars
from tasks.task import CHAT, DISCARD, Step, Turn
from tasks.uses import loosely


def kind_of(topic, want=''):
    """Returns the first kind of a topic whose want has this text, or else its
    first kind."""

    return next((k for k in TOPICS[topic] if want in k.want),
                TOPICS[topic][0])


def planned(rng, goal, first, reason, then, apis, user, answer):
    """Returns the Turn that does the uses of first, concludes with reason
    and does those of then, which may be none.  The apis of actions that must
    not be done are there, too."""

    begin = request(rng, goal, user, user)
    say = {id(u): choice(apis[u.service.topic], u)
           for u in (*first, *then)}
    before = expand(rng, '[Let me look.|One moment.|I will check.|||]')
    done = expand(rng, '[It worked.|That is done.|The call succeeded.] '
                       '[I say so.|Now I answer.|I confirm it.]')

    def calls(uses):
        return [apis[u.service.topic].call(u.given) for u in uses]

    def gold(mode):
        def thought(*parts):
            return '' if mode == CHAT else ' '.join(parts)

        again = (begin,) if mode == DISCARD else ()
        yield Step(thought(begin, *(say[id(u)] for u in first)),
                   before if mode == CHAT else '', calls(first))

        if then:
            yield Step(thought(*again, reason, *(say[id(u)] for u in then)),
                       '', calls(then))
            yield Step(thought(*again, *((reason,) if again else ()), done),
                       answer)
        else:
            yield Step(thought(*again, reason), answer)

    uses = [*first, *then]

    return Turn(user, lambda text, made: judge(uses, apis, text, made), gold)


def finish(rng, goal, first, reason, then, user, answer, idle=()):
    """Returns the Task; idle are uses whose tools are there, but which must
    not be called."""

    apis, tools = box(rng, [*first, *then, *idle], (0, 3))

    return task(rng, 'daily_many', 'multi',
                [planned(rng, goal, first, reason, then, apis,
                         capital(user), capital(answer))], tools)


def ended(text):
    return text if text[-1] in '.?!"' or '\n' in text else text + '.'


# ------------------------------------------------------- send what was found


SEND = Split('''{q} [Text|Send|Message] the answer to {to}.
{q} {to} [wants|needs] to know, so [send a message|text the answer].
[Please|] {want} and [text|send|message] {to} the result.
[Can|Could] you {want} and [tell|text|let] {to} [know |]by message?
{to} [asked me|wants me] to {want}. [Do it and text {to} the answer.|Please answer {to} in a message.]
[Text|Message] {to} [the answer to this|the answer]: {q}
{q} Then [forward|pass] the answer [on |]to {to}.
I [promised|told] {to} that I would {want}. [Look it up and text the result.|Do both for me.]
First {want}, then [message|text] {to} with [what you find|the result].
After you {want}, send {to} a text with it.
{want} -> text result to {to}
{to} is waiting for this: {q} [Send it over.|Let {to} know by text.]
{q} Not for me, for {to}. Send it as a message.
[pls|please] {want} and msg it to {to}
Two steps: {want}; send {to} the outcome.
You must {want}, and after this you send the answer to {to}.
Send {to} a message with the answer to this question. {q}
{q} [Reply|Write] to {to} with that.'''.splitlines())

POST = Split('''{q} [Post|Put|Write] the answer in {channel}.
[Please|] {want} and post the result in {channel}.
The people in {channel} want to know this: {q} [Post it there.|Answer there.]
{channel} needs it: {want}[, then post it there|, and post the outcome].
First {want}. Then write it in {channel}.
[Can|Could] you {want} and share [it|the answer] in {channel}?
Post in {channel} what you find: {q}
{want}, post to {channel} [pls|thx]
{q} Share that with {channel}.'''.splitlines())

NOTE = Split('''{q} [Save|Keep|Store] the answer as a note [called|with the title] "{title}".
[Please|] {want} and save the result in a note "{title}".
[Make|Write] a note "{title}" with the answer to this: {q}
I'll need this later: {q} Put it in a note titled "{title}".
First {want}, then note the result under "{title}".
[Can|Could] you {want} and write it down as a note, title "{title}"?
{want}, note it ("{title}")
{q} Keep that for me in my notes as "{title}".'''.splitlines())

SENT = '''I [sent|texted|messaged] {who} [the answer|this]: "{text}"
[Done|Sent]. {who} [has|got] the answer: {text}
{text} I [sent|passed] that to {who}.
{who} knows now: {text}
[The answer is with|It went to] {who}: "{text}"
{text} {who} [has it now|got the message|was informed].
I found it and [sent it|passed it on] to {who}: {text}
[All right|OK|Done], {who} got this: "{text}"'''

POSTED = '''I [posted|wrote] it in {who}: "{text}"
[Done|Posted] in {who}: {text}
{text} It is in {who} now.
{who} has it: "{text}"
[The answer is in|You can read it in] {who}: {text}
{text} I posted that in {who}.'''

NOTED = '''I saved it as "{who}": {text}
[Done|Noted]: {text} The note is "{who}".
{text} It is in the note "{who}".
The note "{who}" says: {text}
[You find it under|It is stored under] "{who}": {text}
{text} I made the note "{who}".'''

# topic of the action; requests; answers; the slot that names where it goes

WAYS = (('messages', SEND, SENT, 'to'), ('messages', SEND, SENT, 'to'),
        ('team channels', POST, POSTED, 'channel'),
        ('notes', NOTE, NOTED, 'title'))

# results of these have lines, or are no sentence

SKIP = ('reading files', 'the shell', 'the database', 'records', 'folders')


def whole(rng, use):
    """Returns an answer that names what was asked about, if there is one, so
    that another person understands it."""

    text = use.answer

    for _ in range(8):
        if any(str(v).lower() in text.lower() for v in use.given.values()):
            break

        text = capital(say(rng, rng.choice(use.kind.answers), **use.slots))

    return ended(text)


def tell(rng):
    """The result of one tool is sent by another."""

    topic = rng.choice([t for t in TOPICS if t not in SKIP
                        and TOPICS[t][0].service.gives])
    first = rng.choice(TOPICS[topic]).draw(rng)
    way, asks, answers, where = rng.choice(WAYS)
    kind = kind_of(way)
    slots = kind.case(rng)
    text = whole(rng, first)
    slots['text'] = text
    who = slots[where]

    def accepts(role, wanted, value):
        return all(states(str(value), k) for k in first.keys) \
            if role == 'text' else loosely(role, wanted, value)

    then = replace(kind.use(rng, slots, ''), accepts=accepts, keys=(who,))
    user = expand(rng, rng.choice(asks)).format(
        q=ended(first.user), want=first.want, **slots)
    found = ', '.join(k.split('|')[0] for k in first.keys)
    act = f'save it as {who}' if way == 'notes' else f'send it to {who}'
    reason = expand(rng, '[It returned|The result has|I got]: {}. '
                         '[Now I|Next I|So I] {}.').format(found, act)

    return finish(rng, f'{first.want} and {act}',
                  [replace(first, keys=())], reason, [then], user,
                  line(rng, answers).format(who=who, text=text))


# ---------------------------------------------- act only if a condition holds


# topic, part of the want; what is compared; its slot; unit; how it may differ

VALUES = (
    ('the weather', 'temperature', 'the temperature in {city}', 'temp',
     ' degrees', 12),
    ('the weather', 'wind', 'the wind in {city}', 'wind', ' km/h', 30),
    ('the weather', 'humidity', 'the humidity in {city}', 'humidity',
     ' percent', 30),
    ('stock prices', 'price', 'the price of {symbol}', 'price', '', 90),
    ('goods and prices', 'price', 'the price of the {product}', 'cost', '',
     60),
    ('goods and prices', 'left', 'the stock of the {product}', 'stock', '',
     40),
    ('distances', 'distance', 'the distance from {start} to {end}',
     'distance', ' km', 200),
    ('distances', 'how long', 'the time from {start} to {end}', 'minutes',
     ' minutes', 60),
    ('the bank account', 'balance', 'the balance of my {account} account',
     'balance', '', 400),
    ('fitness', 'steps', 'my number of steps {day}', 'steps', '', 4000),
    ('subscriptions', 'costs', 'the price of my {name} subscription', 'cost',
     '', 20),
    ('the inbox', 'count', 'the number of mails from {sender}', 'n', '', 2),
    ('the agenda', 'count', 'the number of my appointments {day}', 'n', '',
     2),
    ('the to-do list', 'count', 'the number of my tasks {day}', 'n', '', 2),
)

# topic; what is done, with all arguments

ACTIONS = (
    ('messages', '[text|message] {to} "{text}"'),
    ('messages', 'send {to} the message "{text}"'),
    ('the home', '[turn|switch] {state} the {device} in the {room}'),
    ('reminders', 'remind me at {time} to {task}'),
    ('timers', '[set|start] a timer for {minutes_said}'),
    ('music', 'play {song} by {artist}'),
    ('team channels', '[post|write] "{text}" in {channel}'),
    ('the shopping list', 'put {items_said} on the shopping list'),
    ('the thermostat', 'set the {room} to {degrees_said} degrees'),
    ('the calendar', 'put the {event} in my calendar, {day} at {time}'),
    ('cancelling events', 'cancel the {event} {day}'),
    ('alarms', 'wake me at {time_said}'),
    ('lamps', 'dim the lamps in the {room} to {level_said}'),
    ('mail', 'mail {to} the text "{text}" with the subject "{subject}"'),
    ('taxis', 'order a taxi from {start} to {end} for {time_said}'),
)

IF = Split('''If {noun} is {cmp} {limit}, {act}.
{act} if {noun} is {cmp} {limit}.
[Check|Look up|Find out] {noun}. If it is {cmp} {limit}, {act}.
{act}, but only if {noun} is {cmp} {limit}.
[In case|Provided that] {noun} is {cmp} {limit}, {act}.
Is {noun} {cmp} {limit}? Then {act}[, please|].
[Please|] {act} [when|in case] {noun} is {cmp} {limit}. [Otherwise do nothing.|If not, leave it.]
I want you to {act} if {noun} is {cmp} {limit}, [not otherwise|and nothing else].
[Have a look at|Look at] {noun}: {cmp} {limit}? [If so|If yes], {act}.
My rule is: {noun} {cmp} {limit}, then {act}. [Check it.|Does it hold? Act on it.]
Only if {noun} is {cmp} {limit}: {act}.
First check {noun}, and if that's {cmp} {limit}, {act}.
{noun} - if {cmp} {limit} then {act}
Could you {act}, [provided that|as long as] {noun} is {cmp} {limit}?
When you see that {noun} is {cmp} {limit}, [please|] {act}.
Suppose {noun} is {cmp} {limit}: then {act}. [If not, fine.|Otherwise nothing is to be done.]
If it should turn out that {noun} is {cmp} {limit}, {act}.
[I'm not sure whether|I wonder if] {noun} is {cmp} {limit}. If it is, {act}.
pls {act} if {noun} {cmp} {limit}'''.splitlines())

ELSE = Split('''If {noun} is {cmp} {limit}, {act}. [If not|Otherwise|Else], {other}.
[Check|Look up] {noun}. {cmp} {limit}: {act}. [Otherwise|If not]: {other}.
Depending on {noun}: if it is {cmp} {limit}, {act}; if it is not, {other}.
{act} if {noun} is {cmp} {limit}, or else {other}.
Is {noun} {cmp} {limit}? If yes, {act}. If no, {other}.
When {noun} is {cmp} {limit} you {act}, when not you {other}.
I'd like you to {act}, but if {noun} is not {cmp} {limit}, then {other}.
Look at {noun} and decide: {cmp} {limit} means {act}; anything else means {other}.'''
             .splitlines())

COMPARED = (('[above|over|more than|higher than|greater than]', '>'),
            ('[below|under|less than|lower than]', '<'))

YES = '''{noun} is {value}{unit}, so I [did it|acted]. {did}
[Yes|It is so]: {noun} is {value}{unit}. {did}
With {value}{unit}, {noun} is {cmp} {limit}. {did}
{did} [That is because|The reason:|You said so, and] {noun} is {value}{unit}.
It holds: {value}{unit} is {cmp} {limit}. {did}
{value}{unit} is {cmp} {limit}, so I acted. {did}'''

NO = '''{noun} is {value}{unit}, so I did nothing.
[No|It is not so]: {noun} is {value}{unit}. I did nothing.
Nothing was done, because {noun} is {value}{unit}, not {cmp} {limit}.
{value}{unit} is not {cmp} {limit}, so I left it.
I did not do it: {noun} is {value}{unit}.
[There was nothing to do|Nothing to do]: {noun} is {value}{unit}.
{noun} is {value}{unit}, which is not {cmp} {limit}. [I left everything as it is.|So nothing happened.]'''

INSTEAD = '''{noun} is {value}{unit}, so I did the other thing. {did}
{value}{unit} is not {cmp} {limit}. {did}
[No|Not so]: {noun} is {value}{unit}. Instead: {did}
As {noun} is {value}{unit}, not {cmp} {limit}: {did}
{did} [That is because|The reason:] {noun} is {value}{unit}, not {cmp} {limit}.'''


def acting(rng, but=()):
    """Returns the Use of an action, and the words that ask for it."""

    topic, act = rng.choice([a for a in ACTIONS if a[0] not in but])
    kind = TOPICS[topic][0]
    slots = kind.case(rng)

    return kind.use(rng, slots, ''), expand(rng, act).format(**slots)


def condition(rng):
    topic, want, noun, slot, unit, spread = rng.choice(VALUES)
    use = kind_of(topic, want).draw(rng)
    noun = noun.format(**use.slots)
    value = use.slots[slot]
    limit = int(Decimal(str(value))) + rng.choice((-1, 1)) * rng.randint(
        1, spread)
    limit = limit if topic == 'the weather' else max(1, abs(limit))

    if Decimal(str(value)) == limit:
        return condition(rng)

    words, sign = rng.choice(COMPARED)
    cmp = expand(rng, words)
    holds = (Decimal(str(value)) > limit) == (sign == '>')
    then, act = acting(rng)
    both = rng.random() < 0.25
    instead, other = acting(rng, (then.service.topic,)) if both \
        else (None, '')
    fields = dict(noun=noun, cmp=cmp, limit=f'{limit}{unit}', value=value,
                  unit=unit, act=act, other=other)
    user = expand(rng, rng.choice(ELSE if both else IF)).format(**fields)
    done = then if holds else instead
    compared = f'{value} is {"" if holds else "not "}{cmp} {limit}'
    reason = expand(rng, '[The result is|It returned|I read] {0}. {1}'
                         '[, so|. Therefore] {2}').format(
        value, compared, 'I act: ' if holds
        else 'I do the other: ' if both else 'nothing is to be done.')

    if done is not None:
        reason += f'{done.want}.'

    answer = line(rng, YES if holds else INSTEAD if both else NO).format(
        did=capital(ended(done.answer)) if done else '', **fields)
    goal = f'{act} if {noun} is {cmp} {limit}{unit}' \
        + (f', else {other}' if both else '')

    return finish(rng, goal, [replace(use, keys=() if done
                                      else (str(value),))],
                  reason, [done] if done else [], user, answer,
                  [u for u in (then, instead) if u and u is not done])


# ------------------------------------------------------------------- compare


# topic, part of the want; the slot that differs; the slot that is compared;
# questions for the greater and for the smaller

COMPARE = (
    ('the weather', 'temperature', 'city', 'temp',
     'Where is it [warmer|hotter], in {a} or in {b}?'
     '|[Which city is|What is] warmer[ right now|], {a} or {b}?'
     '|{a} or {b} - which is warmer?|I like the heat. {a} or {b}?'
     '|Compare {a} and {b}: where is it warmer?'
     '|We can fly to {a} or {b}. We want the warmer one.'
     '|warmer: {a} or {b}?|Tell me which of {a} and {b} has the higher '
     'temperature.',
     'Where is it [colder|cooler], in {a} or in {b}?'
     '|[Which city is|What is] colder[ today|], {a} or {b}?'
     '|{a} or {b} - which is cooler?|I hate the heat. {a} or {b}?'
     '|Of {a} and {b}, which has the lower temperature?'
     '|colder: {a} or {b}?|Is it colder in {a} or in {b}?'),
    ('the weather', 'wind', 'city', 'wind',
     'Where is it windier, in {a} or {b}?|I want to fly a kite. Is there more '
     'wind in {a} or in {b}?|Which has the stronger wind, {a} or {b}?'
     '|windier: {a} or {b}?',
     'Where is there less wind, in {a} or {b}?|Which is calmer, {a} or {b}? '
     'Compare the wind.|We want to play badminton. Less wind in {a} or {b}?'),
    ('stock prices', 'price', 'symbol', 'price',
     'Which [share|stock] costs more, {a} or {b}?|{a} or {b}: which is at the '
     'higher price?|Compare {a} with {b}. Which one is dearer?'
     '|Is {a} or {b} worth more per share?|which is higher rn, {a} or {b}',
     'Which [share|stock] is cheaper, {a} or {b}?|{a} or {b}: which has the '
     'lower price?|I want the cheaper share. {a} or {b}?'
     '|Of {a} and {b}, what costs less?'),
    ('goods and prices', 'price', 'product', 'cost',
     'What is more expensive, the {a} or the {b}?|Which costs more: {a} or '
     '{b}?|Compare the prices of the {a} and the {b}. Which is higher?',
     'What is cheaper, the {a} or the {b}?|{a} or {b}, which costs less?'
     '|I have little money. Should I take the {a} or the {b}?'
     '|My budget is small. Which is cheaper, the {a} or the {b}?'
     '|cheaper one: {a} or {b}?|Compare the {a} with the {b} and name the '
     'cheaper one.'),
    ('goods and prices', 'left', 'product', 'stock',
     'Do we have more of the {a} or of the {b} in stock?|Of which are more '
     'left, the {a} or the {b}?|Stock of {a} vs {b}: which is larger?',
     'Do we have fewer of the {a} or of the {b} in stock?|What runs out '
     'first by the stock, the {a} or the {b}? I mean where fewer are left.'
     '|Stock of {a} vs {b}: which is smaller?'),
    ('distances', 'distance', 'end', 'distance',
     'I am in {start}. Which is farther, {a} or {b}?|From {start}, is {a} or '
     '{b} farther away?|Starting in {start}: what is the longer way, to {a} '
     'or to {b}?',
     'I am in {start}. Which is closer, {a} or {b}?|From {start}, is {a} or '
     '{b} nearer?|We live in {start} and want a short drive. {a} or {b}?'
     '|{start} to {a} or {start} to {b}: which is shorter?'),
    ('fitness', 'steps', 'day', 'steps',
     'Did I take more steps {a} or {b}?|When was I more active, {a} or {b}? '
     'Compare the steps.|Steps {a} or {b}, which is more?',
     'Did I take fewer steps {a} or {b}?|When did I walk less, {a} or {b}?'
     '|Steps {a} or {b}, which is less?'),
    ('the bank account', 'balance', 'account', 'balance',
     'Is there more in my {a} account or in my {b} account?|Which account has '
     'more money, {a} or {b}?|Where do I have more, {a} or {b} account?',
     'Is there less in my {a} account or in my {b} account?|Which account '
     'has less money, {a} or {b}?|Which is the emptier account, {a} or {b}?'),
    ('subscriptions', 'costs', 'name', 'cost',
     'Which subscription costs more, {a} or {b}?|I want to cancel the dearer '
     'one of the {a} and the {b} subscription. Which is it?|Do I pay more '
     'for the {a} or for the {b} subscription?',
     'Which subscription is cheaper, {a} or {b}?|Do I pay less for the {a} '
     'or for the {b} subscription?|{a} or {b} subscription: which one costs '
     'less?'),
    ('the inbox', 'count', 'sender', 'n',
     'Who wrote me more mails, {a} or {b}?|Did I get more mails from {a} or '
     'from {b}?|{a} or {b}: who mails me more?',
     'Who wrote me fewer mails, {a} or {b}?|Did I get fewer mails from {a} '
     'or from {b}?|{a} or {b}: who mails me less?'),
    ('the agenda', 'count', 'day', 'n',
     'Am I busier {a} or {b}? Count the appointments.|Do I have more '
     'appointments {a} or {b}?|Which is fuller in my calendar, {a} or {b}?',
     'Do I have fewer appointments {a} or {b}?|I need a quiet day. {a} or '
     '{b}, when are there fewer appointments?|Is there less in my calendar '
     '{a} or {b}?'),
)

QUESTIONS = {text: bars(text) for row in COMPARE for text in row[4:]}

BEST = '''{best}: {x}{unit}, [against|and not|compared with] {y}{unit}[ for {worst}|].
[It is|That is|It's] {best}, with {x}{unit}.
{best}. It has {x}{unit}, {worst} {y}{unit}.
{best}[.| ({x}{unit}).| has it: {x}{unit}.]
[The answer is|My answer:] {best} ({x}{unit}); {worst} has {y}{unit}.
{best} with {x}{unit}, {worst} has {y}{unit}.
I compared {x}{unit} for {best} with {y}{unit} for {worst}, so {best}.
{best}, since {x}{unit} [is|was] {than} {y}{unit}.'''

UNITS = {'temp': ' degrees', 'wind': ' km/h', 'distance': ' km',
         'steps': ' steps'}


def compare(rng):
    topic, want, differs, slot, more, less = rng.choice(COMPARE)
    kind = kind_of(topic, want)
    one = kind.draw(rng)
    slots = kind.case(rng)
    slots = {**slots, **{r: one.slots[r] for r in one.given if r != differs}}

    if differs == 'product':
        slots['name'] = slots['product']

    x, y = Decimal(str(one.slots[slot])), Decimal(str(slots[slot]))

    a, b = (str(s[differs]).lower() for s in (one.slots, slots))

    # an answer with a name would have the other one, too

    if x == y or a in b or b in a:
        return compare(rng)

    two = kind.use(rng, slots, '')
    greater = rng.random() < 0.5
    best, worst = (one, two) if (x > y) == greater else (two, one)
    than = 'more than' if greater else 'less than'
    wins = f'{than.split()[0]}: {">" if greater else "<"} wins'
    user = expand(rng, rng.choice(
        QUESTIONS[more if greater else less])).format(
            a=one.slots[differs], b=slots[differs], **one.slots)
    reason = expand(rng, '[I have|The results are|I got] {} for {} and {} for '
                         '{}. {}. {}, so [it is|the answer is] {} {}.'
                    ).format(one.slots[slot], one.slots[differs], slots[slot],
                             slots[differs], wins, digits.compare(x, y),
                             best.slots[slot], best.slots[differs])
    answer = line(rng, BEST).format(
        best=best.slots[differs], worst=worst.slots[differs],
        x=best.slots[slot], y=worst.slots[slot], than=than,
        unit=UNITS.get(slot, ''))
    goal = f'compare {one.slots[differs]} and {slots[differs]}'
    task_ = finish(rng, goal, [replace(u, keys=()) for u in (one, two)],
                   reason, [], user, answer)
    turn, = task_.turns
    check = turn.check
    right, wrong = best.slots[differs], worst.slots[differs]

    # the first name in the answer must be the right one

    def named(text, made):
        a, b = text.lower().find(str(right).lower()), \
            text.lower().find(str(wrong).lower())

        return check(text, made) or (
            None if a >= 0 and (b < 0 or a < b)
            else f'{right} is not the choice of: {text}')

    turn.check = named

    return task_
