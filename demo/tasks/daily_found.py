# Copyright (C) The nginx-dsa authors

"""Requests with an action that needs what another tool finds, such as a mail
to an address that must be looked up first; and the same tool for several
things."""

from dataclasses import replace

from tasks import spoken
from tasks.daily import box, line, states, task, turn
from tasks.daily_chain import ended, finish, kind_of
from tasks.parts import Split
from tasks.phrase import capital, expand
from tasks.times import clock
from tasks.uses import loosely
from tasks.uses_book import stop


def has(word):
    """Returns an accepts of a Use: the word must be in the text."""

    return lambda role, wanted, value: states(str(value), word)


# topic and part of the want of what is found; topic of the action; requests;
# what is concluded; answers.  {v} is what was found.

MAIL = ('contacts', 'email', 'mail',
        '''Find the [mail|email] address of {name} and [send|write] them [an email|a mail] with the subject "{subject}" and the text "{text}".
[Email|Mail] {name}: subject "{subject}", text "{text}". [The address is in my contacts.|Look up the address first.]
I don't have {name}'s address here. [Look it up|Find it] and mail them "{text}", subject "{subject}".
Write to {name} by email - you have to look for the address. Subject: {subject}. Text: "{text}"
{name} should get a mail from me ("{subject}": "{text}"). Which address? See the contacts.
Get {name}'s mail address from the contacts, then send: subject "{subject}", body "{text}".
[Can|Could] you mail {name}? I forgot the address, so check the contacts. "{subject}" is the subject and "{text}" the text.
mail {name} (address in contacts) subject "{subject}" text "{text}"
I want to email {name}. Subject "{subject}", then "{text}". I never know the address, please look it up.
The address book has {name}. Take the mail address from there and write "{text}" (subject "{subject}").
"{text}" must reach {name} by mail, subject "{subject}". Find out where to send it.
Who knows the address of {name}? Look it up and mail: subject "{subject}", message "{text}".
First the mail address of {name}, then the mail itself: "{subject}" as subject, "{text}" as text.
{name} waits for an email from me, but I don't have the address. It should have the subject "{subject}" and say "{text}".
Please to search email of {name} and send there "{text}" with subject "{subject}".''',
        '''I [found|looked up] {v} and sent the mail.
[Done|Sent]: the mail to {name} went to {v}.
The address of {name} is {v}. The mail is sent.
{name} [gets|has] your mail at {v}.
Your mail went to {v}.
I sent it to {v}, which is {name}'s address.''')

REMINDER = ('the agenda', 'when the', 'reminders',
            '''When is the {event} {day}? Remind me [at that time|then] to {task}.
Remind me to {task} when the {event} {day} [begins|starts].
[Look up|Check] when my {event} is {day} and set a reminder for that time: {task}.
At the time of the {event} {day}, I want to be reminded to {task}.
{day} is the {event}. [Find out when|Check at what time], and remind me at that time to {task}.
Set a reminder to {task} for the time at which the {event} {day} starts. It's in my calendar.
I have to {task} as soon as the {event} {day} starts. Look up the time and remind me then.
Remind me to {task}, {day}, when it's time for the {event}. My calendar has the time.
What time is the {event} {day}? I want a reminder for exactly then: {task}.
{task} - that must happen {day} when the {event} begins. Set a reminder for the right time.
See when the {event} is {day}. Then set a reminder at this time, it should say: {task}.
I don't know when the {event} {day} is, but that's when I must {task}. Remind me.
reminder to {task} at the time of the {event} {day} (see calendar)
Could you check the start of the {event} {day} and remind me at that time to {task}?''',
            '''The {event} is at {v}, and I will remind you then to {task}.
[Done|OK]: {v}, {task}.
I set a reminder for {v}, when the {event} begins: {task}.
At {v} (the {event}) I'll remind you to {task}.
Your {event} starts at {v}. The reminder is set: {task}.
{v} is the time of the {event}, so then: {task}.''')

TIMER = ('distances', 'how long', 'timers',
         '''How long does it take from {start} to {end}? Set a timer for that.
Set a timer for the time that one needs from {start} to {end}.
[Look up|Find out] the travel time from {start} to {end} and start a timer of that length.
I'm leaving {start} for {end} now. Start a timer that rings when I should be there.
Timer, please: as long as the trip from {start} to {end} takes.
Check how many minutes the drive from {start} to {end} is and then count them down.
I want a timer for the drive from {start} to {end}. Find out how long it takes first.
How many minutes from {start} to {end}? Start a countdown of as many minutes.
The cake may bake as long as the trip from {start} to {end} takes. Look that up and set the timer.
timer = travel time {start} to {end}
We're driving from {start} to {end}. Set a timer to the travel time, please.
Look up {start} to {end}, the minutes, and use them for a timer.''',
         '''It takes {v} minutes, and the timer is set.
[Done|OK]: a timer for {v} minutes.
From {start} to {end} it is {v} minutes. The timer is running.
The timer rings in {v} minutes, the time to {end}.
I set a timer of {v} minutes for the way to {end}.
{v} minutes to {end}: the timer has started.''')

TABLE = ('places nearby', 'best', 'table bookings',
         '''Find the best rated {what} in {city} and book a table for {people} at {time}.
Book a table for {people} at {time} in the best {what} of {city}.
We are {people} and come to {city}. Which {what} has the best rating? Reserve a table there at {time}.
[Look for|Search] the top {what} in {city}; then reserve for {people} at {time}.
Dinner for {people} in {city}, {time}: take the {what} with the highest rating and book it.
I want to eat in the best {what} in {city}. {people} people, {time}. Find it and make the booking.
Which is the best {what} in {city}? Whatever it is, book it for {people} at {time}.
We'd like the {what} in {city} with the most stars. Table for {people}, {time}.
best {what} in {city}, table for {people}, {time}, find + book
My wife wants the best {what} of {city}. Look it up and reserve for {people} at {time}.
Compare the ratings of every {what} in {city} and book a table for {people} at {time} in the best.
Could you find the top rated {what} in {city} and get us a table? We're {people} and come at {time}.''',
         '''The best one is {v}: a table for {people} is booked at {time}.
[Done|Booked]: {v}, {people} people, {time}.
{v} has the highest rating, so I booked a table for {people} at {time} there.
I reserved a table at {v} for {people} at {time}.
Your table for {people} is at {v}, {time}.
At {time} {v} expects {people} people. It has the best rating.''')

TAXI = ('places nearby', 'a {what}', 'taxis',
        '''Find a {what} in {city} and order a taxi from {start} to it at {time_said}.
I need a {what} in {city}. Get me a taxi there from {start} at {time_said}.
Is there a {what} in {city}? If there is, send a cab to {start} at {time_said} that takes me there.
[Search|Look for] a {what} in {city}, then book a taxi: pick-up {start}, {time_said}.
At {time_said} I want to go by taxi from {start} to a {what} in {city}. Find one first.
taxi from {start} at {time_said} to any {what} in {city}, look one up
I'm at {start} in {city} and have to go to a {what}. Look for one and order a taxi for {time_said}.
Which {what} is there in {city}? Take the first and send a taxi to {start} at {time_said} to bring me there.
A cab at {time_said}, please, from {start} to a {what} in {city}. You have to look for the {what} first.
Look up a {what} in {city}. That's where the taxi should take me from {start} at {time_said}.
Could you get me from {start} to some {what} in {city} by taxi? {time_said} is when I want to leave.''',
        '''I found {v}. The taxi comes at {time_said}.
[Done|Ordered]: at {time_said} a taxi takes you to {v}.
The taxi to {v} is ordered for {time_said}.
There is {v}, and the cab picks you up at {time_said}.
Your cab goes to {v} at {time_said}.
{v} it is: the taxi comes at {time_said}.''')

PARTY = ('birthdays', '', 'the calendar',
         '''When is {name}'s birthday? Put it in my calendar, at {time}.
Look up {name}'s birthday and add it to my calendar at {time}.
Put the birthday of {name} in my calendar. Start at {time}; look up the day.
I always forget {name}'s birthday. Find the date and make a calendar entry for {time} on that day.
Add an event for the birthday of {name}, {time}. You have to check which day it is.
Calendar: birthday of {name}, {time}, the date is in the list of birthdays.
{name}'s birthday must be in my calendar ({time}). Look up the date.
Check on which day {name} has their birthday, then enter it in the calendar for {time}.
I want to celebrate the birthday of {name} at {time}. Find the day and add the event.
calendar entry for the birthday of {name}, time {time}, find the day yourself
Could you find out {name}'s birthday and schedule it in my calendar? {time} is fine.
Let's not miss {name}'s birthday. Which day is it? Calendar, {time}.''',
         '''{name}'s birthday is on {v}. It is in your calendar at {time}.
[Done|OK]: {v}, {time}, birthday of {name}.
I added {name}'s birthday to your calendar: {v} at {time}.
Your calendar has the birthday of {name} on {v}, {time}.
The birthday of {name} ({v}) is entered at {time}.
On {v} at {time} you have {name}'s birthday in the calendar.''')

SOLD = ('goods and prices', 'left', 'the warehouse',
        '''We sold {k} of the {product}. Look up the stock and enter the new one.
{k} of the {product} [broke|are gone|were sold]. Check how many there are in the system and reduce the stock by {k}.
Take {k} off the stock of the {product}.
Lower the stock of the {product} by {k}.
Subtract {k} from the stock of the {product} and save it.
A customer bought {k} of the {product}. Update the stock, it still has the old number.
{k} pieces of the {product} left the warehouse. Look up the old stock and save the new one.
We lost {k} of the {product}. What's in stock? Enter the number without them.
The stock of the {product} is to go down by {k}.
minus {k} for the {product} in the inventory, check the current number first
Somebody took {k} of the {product} from the shelf. Please correct the stock.
Check the stock of the {product}, take away {k}, and set that as the stock.''',
        '''The stock of the {product} was {old} and is {v} now.
[Done|OK]: {product}, {v} left.
{old} minus {k} is {v}, so the {product} is at {v} now.
I set the stock of the {product} to {v}.
There are {v} of the {product} now.
{v} is the new stock of the {product}.''')

GOALS = {'mail': 'send the mail there', 'reminders': 'set the reminder',
         'timers': 'set the timer', 'table bookings': 'book a table there',
         'taxis': 'order a taxi to it', 'the calendar': 'enter it in the '
         'calendar', 'the warehouse': 'enter the new stock'}

FOUND = (MAIL, REMINDER, TIMER, TABLE, TAXI, PARTY, SOLD)
ASKS = {f: Split(f[3].splitlines()) for f in FOUND}


def found(rng):
    """An action that needs what was found."""

    plan = rng.choice(FOUND)
    topic, want, action, _, answers = plan
    first = kind_of(topic, want).draw(rng)
    s, kind = first.slots, kind_of(action)
    other = kind.case(rng)
    accepts, keys, extra = None, None, {}

    if plan is MAIL:
        v = s['mail']
        other = {**other, 'to': v}
        accepts = loosely
        keys = (v,)
        extra = dict(subject=other['subject'], text=other['text'])
    elif plan is REMINDER:
        v = s['time']
        other = {**other, 'time': v}
        accepts = loosely
        keys = (v, other['task'])
        extra = dict(task=other['task'])
    elif plan is TIMER:
        v = s['minutes']

        if v > 300:
            return found(rng)

        other = {**other, 'minutes': v, 'minutes_said': f'{v} minutes'}
        keys = (str(v),)
    elif plan is TABLE:
        v = s['best']
        other = {**other, 'place': v, 'people_said': str(other['people'])}
        keys = (v, f'{other["people"]}', other['time'])
        extra = dict(people=other['people'], time=other['time'])
        s = {**s, 'what': expand(rng, '[pizzeria|sushi restaurant|bar|pub'
                                      '|vegan restaurant|tapas bar|cafe'
                                      '|fish restaurant|burger bar|grill]')}
        first = first.kind.use(rng, s, '')
    elif plan is TAXI:
        v, street = s['first_name'], s['first_street']
        start = stop(rng)
        other = {**other, 'end': v, 'start': start}

        def accepts(role, wanted, value):
            return states(str(value), f'{v}|{street}') if role == 'end' \
                else loosely(role, wanted, value)

        keys = (f'{v}|{street}', f'{other["time"]}|{other["time_said"]}')
        extra = dict(start=start, time_said=other['time_said'])
    elif plan is PARTY:
        v, name = s['date'], s['name']
        other = {**other, 'day': v, 'event': f'birthday of {name}',
                 'time': clock(rng)}

        def accepts(role, wanted, value):
            return states(str(value), name) if role == 'event' \
                else loosely(role, wanted, value)

        keys = (v, other['time'], name)
        extra = dict(time=other['time'])
    else:
        k = rng.randint(2, min(40, s['stock'] + 1))

        if s['stock'] <= k:
            return found(rng)

        v = s['stock'] - k
        other = {**other, 'product': s['product'], 'count': v,
                 'count_said': str(v)}
        keys = (str(v), s['product'])
        extra = dict(k=k, old=s['stock'])

    then = replace(kind.use(rng, other, ''), accepts=accepts, keys=keys)
    fields = {**s, **extra, 'v': v}
    reason = expand(rng, '[It returned|The result has|I found] {}.').format(
        s['stock'] if plan is SOLD else v)

    if plan is SOLD:
        reason += f' {s["stock"]} - {extra["k"]} = {v}.'

    reason += ' ' + expand(rng, '[Now I|Next I|With that I]') \
        + f' {then.want}.'
    user = expand(rng, rng.choice(ASKS[plan])).format(**fields)

    return finish(rng, f'{first.want}, then {GOALS[action]}',
                  [replace(first, keys=())], reason, [then], user,
                  line(rng, answers).format(**fields))


# ------------------------------------------------- switch what should be so


TOGGLE = Split('''Is the {device} in the {room} {a}? If so, [turn|switch] it {b}.
If the {device} in the {room} is {a}, turn it {b}.
[Check|See] whether the {device} in the {room} is {a}, and if it is, switch it {b}.
The {device} in the {room} should not be {a}. Check it, and turn it {b} if you have to.
[Did somebody leave|Did I leave] the {device} in the {room} {a}? Then turn it {b}, please.
Make sure that the {device} in the {room} isn't {a}: look at its state first, switch it {b} only if needed.
Turn the {device} in the {room} {b}, in case it is {a}. [Look first.|Check before.]
In case the {device} of the {room} is still {a}, switch {b}.'''.splitlines())

WAS = '''The {device} in the {room} was {a}, so I turned it {b}.
[Yes|It was {a}]: I switched the {device} in the {room} {b}.
The {room} {device} is {b} now. It was {a}.
It was {a}. Now the {device} is {b}.
[Done|OK], the {device} in the {room} was {a} and is {b} now.
I found the {device} {a} and turned it {b}.'''

WAS_NOT = '''The {device} in the {room} is {b}[ already|], so I did nothing.
[No|Nothing to do]: the {device} is {b}.
It is {b} already, so I left it.
The {room} {device} is {b}. There was nothing to do.
I checked: the {device} is {b}. Nothing was changed.
No need, the {device} in the {room} is {b}.'''


def toggle(rng):
    first = kind_of('the state of the home').draw(rng)
    s = first.slots
    a = rng.choice(('on', 'off'))
    b = 'off' if a == 'on' else 'on'
    fields = dict(device=s['device'], room=s['room'], a=a, b=b)
    then = kind_of('the home').use(rng, {**s, 'state': b}, '')
    holds = s['state'] == a
    reason = expand(rng, f'[It is|The state is] {s["state"]}, '
                         f'{"as asked" if holds else "not " + a}.') \
        + (f' So I {then.want}.' if holds else ' Nothing is to be done.')

    return finish(rng, f'turn the {s["device"]} {b} if it is {a}',
                  [replace(first, keys=() if holds else (b,))], reason,
                  [replace(then, keys=(b,))] if holds else [],
                  expand(rng, rng.choice(TOGGLE)).format(**fields),
                  line(rng, WAS if holds else WAS_NOT).format(**fields),
                  () if holds else (then,))


# ------------------------------------------------ one tool for several things


# topic, part of the want, requests with {all}; "wants" has the slot

SEVERAL = (
    ('the weather', 'temperature', 'city',
     'How warm is it in {all}?|What are the temperatures in {all}?'
     '|Temperature in {all}[, please|]?|I have friends in {all}. How many '
     'degrees do they have there?|Give me the temperature for each of these: '
     '{all}.|{all} - how cold is it there?|[Check|Look up] the temperature '
     'in {all}.|temps for {all} pls'),
    ('the weather', 'weather', 'city',
     'What\'s the weather [like |]in {all}?|Weather for {all}, please.'
     '|[Tell|Give] me the weather in {all}.|I travel to {all}. How is the '
     'weather in each?|{all}: weather?|We still have to choose between {all}. '
     'What is the weather like there?'),
    ('stock prices', 'price', 'symbol',
     'What are {all} trading at?|Give me the prices of {all}.|I own {all}. '
     'What is each share worth?|Check these shares: {all}.|{all} prices?'),
    ('deliveries', 'state', 'number',
     'Where are my parcels {all}?|Track {all}.|What is the state of {all}?'
     '|I ordered several things: {all}. What happened to each?'),
    ('contacts', 'phone', 'name',
     'I need the phone numbers of {all}.|What are the numbers of {all}?'
     '|How do I reach {all} by phone?|Phone numbers please: {all}.'),
    ('contacts', 'email', 'name',
     'I need the mail addresses of {all}.|What are the email addresses of '
     '{all}?|I want to invite {all} by mail. Which addresses do they have?'),
    ('goods and prices', 'price', 'product',
     'What do these cost: {all}?|Prices of {all}?|I want to buy {all}. How '
     'much is each?|Look up what {all} cost, one by one.'),
    ('birthdays', '', 'name',
     'When are the birthdays of {all}?|Birthdays of {all}?|I\'m making a '
     'calendar. When do {all} have their birthdays?'),
    ('fitness', 'steps', 'day',
     'How many steps did I take {all}?|My steps {all}?|[Show|Tell] me the '
     'steps of each of these days: {all}.'),
    ('the home', '', 'room',
     '[Turn|Switch] {state} the {device} in each of these rooms: {all}.'
     '|The {device} should be {state} in {all}.|{all}: {device} {state}.'
     '|In {all}, turn the {device} {state}.'),
    ('the thermostat', '', 'room',
     'Set {all} to {degrees_said} degrees.|I want {degrees_said} degrees in '
     'each of these: {all}.|{all}: {degrees_said} degrees.'),
    ('messages', '', 'to',
     '[Text|Message] {all}: "{text}".|Let {all} know: "{text}".|Send each of '
     'these a message: {all}. The text is "{text}".|"{text}" - send that to '
     '{all}.'),
    ('reminders', '', 'time',
     'Remind me to {task} at {all}.|{task}: remind me at {all}.|Set reminders '
     'at {all}, always to {task}.'),
    ('timers', '', 'minutes',
     'Set timers for {all}.|I need several timers: {all}.|Start these timers: '
     '{all}.'),
    ('alarms', '', 'time',
     'Set alarms for {all}.|Wake me at {all}, to be safe.|I need several '
     'alarms: {all}.'),
    ('cancelling events', '', 'event',
     'Cancel these {day}: {all}.|I am ill {day}. Cancel {all}.|{day} I want '
     'nothing of this: {all}. Take each out of my calendar.'),
)

FOR_ALL = {row[3]: spoken.bars(row[3]) for row in SEVERAL}


def several(rng):
    """One tool is called for two or three things."""

    topic, want, differs, asks = rng.choice(SEVERAL)
    kind = kind_of(topic, want)
    first = kind.draw(rng)
    uses, said = [first], [str(first.slots.get(f'{differs}_said',
                                               first.slots[differs]))]

    for _ in range(rng.choice((1, 1, 2))):
        s = kind.case(rng)
        s = {**s, **{r: first.slots[r] for r in first.given if r != differs},
             **{f'{r}_said': first.slots[f'{r}_said'] for r in first.given
                if r != differs and f'{r}_said' in first.slots}}

        if differs == 'product':
            s['name'] = s['product']

        uses.append(kind.use(rng, s, ''))
        said.append(str(s.get(f'{differs}_said', s[differs])))

    if len({str(u.given[differs]) for u in uses}) < len(uses) \
            or len(set(said)) < len(said):
        return several(rng)

    listed = [f'the {x}' for x in said] if differs in ('room', 'product') \
        or (differs == 'event') else said
    user = capital(expand(rng, rng.choice(FOR_ALL[asks])).format(
        **{**first.slots, 'all': spoken.listed(rng, listed)}))
    parts = []

    for use, name in zip(uses, said):
        text = ended(use.answer)
        parts.append(text if name.lower() in text.lower()
                     else f'{capital(name)}: {text}')

    apis, tools = box(rng, uses, (0, 3))

    return task(rng, 'daily_many', 'multi',
                [turn(rng, uses, apis, user,
                      rng.choice((' ', '\n')).join(parts),
                      rng.random() < 0.7)], tools)
