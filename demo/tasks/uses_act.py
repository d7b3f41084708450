# Copyright (C) The nginx-dsa authors

"""Services that do something: mail, calendar, reminders, messages, music, the
home, timers, bookings, notes."""

from tasks import happen, names
from tasks.api import parameter, service
from tasks.times import clock, day
from tasks.uses import kinds, loosely, one_of


MAIL = service('mail', '''send [email|mail|message|e mail]
[email|mail] [send|sender|]
[write|compose] [email|mail]''',
'''[Sends|Send] an email[ to a recipient|]
[Email|Mail] [sending|delivery]: recipient, subject and text
Write and send a mail''', [
    parameter('to', 'to recipient email address receiver to_address',
              '[Address|Mail address] of the [recipient|receiver]',
              several=True),
    parameter('subject', 'subject title subject_line topic',
              '[The|] subject[ line|]'),
    parameter('text', 'body text message content body_text',
              '[The|] [text|body] of the [mail|message]'),
    parameter('cc', 'cc copy cc_list', 'Further recipients', needed=False)])

MESSAGE = ('I will be late|the meeting moved to {day}|the {goods} are here'
           '|please call me|we need more {goods}|I am in {city} now'
           '|the {product} is broken|thank you for the {goods}|dinner is at '
           '{time}|happy birthday|I found your {product}|see you in {city}'
           '|the report is ready|can we talk {day}|the train is late'
           '|I cannot come {day}|{person} says hello|let us meet at {time}'
           '|the {room} is free|do not forget the {goods}')


def message(rng):
    if rng.random() < 0.5:
        return happen.note(rng)

    return one_of(rng, MESSAGE).format(
        day=day(rng), goods=rng.choice(names.GOODS), time=clock(rng),
        city=rng.choice(names.PLACES), product=rng.choice(names.PRODUCTS),
        person=rng.choice(names.FIRST), room=rng.choice(names.ROOMS))


def mail_case(rng):
    first = rng.choice(names.FIRST)
    last = rng.choice(names.LAST)
    mail = one_of(rng, f'{first}|{first}.{last}|{last}|{first}{last[0]}'
                       f'|{first}{rng.randrange(1, 99)}').lower()

    return dict(first=first, to=f'{mail}@'
                + one_of(rng, f'{rng.choice(names.NOUNS)}.[com|org|net|io]'
                              '|example.com|example.org'),
                subject=one_of(rng, f'{rng.choice(names.TOPICS)}'
                                    f'|{rng.choice(names.EVENTS)}'
                                    f'|the {rng.choice(names.PRODUCTS)}'
                                    f'|{rng.choice(names.ERRANDS)}'),
                text=message(rng))


ACT = kinds(MAIL, mail_case, '''
= send a mail to {to}
@ to subject text
- [Send|Write] [an email|a mail|an e-mail] to {to} with the subject "{subject}" and the text "{text}".
- [Email|Mail] {to}: subject "{subject}", text "{text}".
- [Please email|Could you email|Can you write to] {to}? [The subject is|Subject:] "{subject}"[,| and] the [text|message] [is|should be] "{text}".
- I need to write to {to}. Subject: {subject}. Text: {text}
- [Send|Mail] "{text}" to {to}, [with the subject|subject] "{subject}".
- To: {to}, subject: {subject}, body: {text}. [Send it.|Please send this mail.]
> [The|Your] [mail|email] to {to} [is sent|has been sent|is on its way].
> [Done|Sent]: [the mail to|] {to}[ got your mail|].
> [I sent|I have sent] [the|your] [mail|email] to {to}.
> [OK|All right], {to} [gets|will get] [it|your mail].
+ {to}
''', '', loosely)

EVENT = service('the calendar', '''[create|add|schedule|new] [event|calendar event|appointment|meeting]
calendar [create|add|insert|event|new event]
[book|schedule] [meeting|appointment|in calendar]''',
'''[Creates|Adds|Create] an [event|appointment|entry] [in the calendar|of the calendar]
[Schedules|Schedule] a [meeting|new event] [on a day and at a time|]
[Calendar|New calendar entry]: title, day and time''', [
    parameter('event', 'title event name summary what',
              '[Title|Name] of the event'),
    parameter('day', 'day date on when start_date', '[Day|Date][, e.g. Monday'
              '|]'),
    parameter('time', 'time start_time at start begin',
              '[Time|Start][, e.g. 14:30 or 3 pm|]'),
    parameter('minutes', 'duration minutes length duration_minutes',
              'Length in minutes', kind='integer', needed=False)])


def event_case(rng):
    return dict(event=rng.choice(names.EVENTS), day=day(rng),
                time=clock(rng))


ACT += kinds(EVENT, event_case, '''
= put the {event} into the calendar
@ event day time
- [Add|Put] [the|a] {event} [to|in|into] my calendar[:| for|,] {day} at {time}.
- [Schedule|Plan|Book] a {event} [for|on] {day} at {time}.
- [I have|There is] a {event} {day} at {time}. [Put it in my calendar.|Add it, please.|Please note it in the calendar.]
- New [event|appointment|calendar entry]: {event}, {day}, {time}.
- Can you [add|enter] "{event}" {day} at {time}[ in my calendar| to the calendar|]?
- {day} at {time}: {event}. [Please add it.|Add that to my calendar.]
> [The|Your] {event} is [in your calendar|scheduled|planned] for {day} at {time}.
> [Done|OK|All right]: {event}, {day} at {time}.
> [I added|I have added|I put] the {event} [for|on] {day} at {time}[ to your calendar|].
> {day} at {time} [is set for|you have] the {event}[ now|].
+ {event}; {day}; {time}
''', 'day')

REMIND = service('reminders', '''[set|create|add|new] [reminder|alert|to do|task]
[reminder|reminders|task|todo] [create|add|set|]
remind [me|user]''',
'''[Sets|Creates|Adds] a [reminder|task|reminder for the user]
[Reminds|Remind] the user of something at a time
[Reminders|To-do list]: add an entry''', [
    parameter('task', 'text task what title reminder message note',
              '[What to remind of|Text of the reminder|The task]'),
    parameter('time', 'time at when due remind_at', '[When|The time]'
              '[, e.g. 9 am|]'),
    parameter('repeat', 'repeat recurrence', 'How often',
              choices=('none', 'daily', 'weekly'), needed=False)])


def remind_case(rng):
    return dict(task=rng.choice(names.ERRANDS), time=clock(rng))


ACT += kinds(REMIND, remind_case, '''
= set a reminder to {task}
@ task time
- Remind me to {task}, at {time}.
- [Set|Create|Add] a reminder [to|for me to] {task} at {time}.
- At {time} I [have to|must|need to|should] {task}. [Remind me.|Please remind me.|Don't let me forget.]
- [Don't let me forget|Make sure I remember] to {task} at {time}.
- [Reminder|Remind me]: {task}, {time}.
- [Could|Can] you remind me to {task} when it is {time}?
- I always forget to {task}. [Set|Make] a reminder for {time}.
> [I will|I'll] remind you to {task} at {time}.
> [The reminder is set|Reminder set|Done|OK]: {task} at {time}.
> [At {time} I will remind you|You will be reminded at {time}]: {task}.
> [Noted|All right|Sure]. {time}: {task}.
+ {task}; {time}
''', 'time', loosely)

CHAT = service('messages', '''send [message|text|sms|text message|dm|chat message]
[message|sms|text|chat] [send|contact|person|]
[post|write] [message|chat message]''',
'''[Sends|Send] a [message|text message|text] to [a contact|a person|somebody]
[Messaging|Text messages|SMS] to contacts
Write a short message to a contact''', [
    parameter('to', 'to recipient contact person name receiver',
              '[Name|Who gets it|The contact]'),
    parameter('text', 'text message body content msg',
              '[The|] [text|message]')])


def chat_case(rng):
    return dict(to=rng.choice(names.FIRST), text=message(rng))


ACT += kinds(CHAT, chat_case, '''
= send {to} a message
@ to text
- [Text|Message|Tell] {to}: "{text}".
- [Send|Write] {to} [a message|a text|an SMS]: "{text}".
- [Send|Write] "{text}" to {to}.
- [Can|Could] you [text|message|tell] {to} "{text}"?
- [Let {to} know|Tell {to}] that {text}.
- I need to tell {to} something: "{text}". [Send it.|]
> [The|Your] message to {to} [is sent|has been sent].
> [I sent|I have sent|I wrote] {to} [the|your] message.
> [Done|Sent]: "{text}" to {to}.
> {to} [has|got] [it|your message][ now|].
+ {to}
''', 'to', loosely)

MUSIC = service('music', '''[play|start] [music|song|track|audio]
[music|player|spotify|audio] [play|start|control|]
[queue|put on] [song|music]''',
'''[Plays|Starts|Play] [music|a song|a track][ by title and artist|]
[Music|Music player|Player] [control|]
Start playing a song''', [
    parameter('song', 'song title track name query', '[Title|Name] of the '
              '[song|track]'),
    parameter('artist', 'artist by band performer', '[Artist|Band]'),
    parameter('volume', 'volume level', 'From 0 to 100', kind='integer',
              needed=False)])


def music_case(rng):
    adjective, other = rng.sample(names.ADJECTIVES, 2)
    noun, second = rng.sample(names.NOUNS, 2)

    return dict(song=one_of(rng, f'{adjective} {noun}|The {noun}'
                                 f'|{noun} and {second}|{other} {second}'
                                 f'|My {adjective} {noun}').title(),
                artist=one_of(rng, f'The {second}s|{rng.choice(names.FIRST)} '
                                   f'{rng.choice(names.LAST)}'
                                   f'|{other} {second}').title())


ACT += kinds(MUSIC, music_case, '''
= play {song} by {artist}
@ song artist
- Play [the song |]{song} by {artist}.
- [Put on|I want to hear|Let me hear|I'd like to listen to] {song} by {artist}.
- [Can|Could] you play {artist}'s {song}?
- [Start|Play] {artist}, {song}.
- I [love|like] {artist}. [Play|Put on] {song}.
- Some music, please: {song} by {artist}.
> [Now playing|Playing|Here is]: {song} by {artist}.
> [I am playing|I started|You hear] {song} by {artist}[ now|].
> {song} by {artist} [is playing|is on|starts now].
> [Enjoy|Here comes] {song}.
+ {song}
''', 'song')

HOME = service('the home', '''[set|control|switch] [device|light|smart home|home device|appliance]
[smart home|home|device|home automation] [control|set|command|switch]
turn [device|on off]''',
'''[Controls|Switches|Sets] a device [of the smart home|at home|in a room]
[Smart home|Home automation]: [switch devices|device, room and state]
[Turns|Turn] a device in a room on or off''', [
    parameter('device', 'device what appliance device_type entity',
              '[The|] device[, e.g. light|]'),
    parameter('room', 'room where location area', '[The|] room'),
    parameter('state', 'state action status value command',
              '[What to do|New state]', choices=('on', 'off'))])

DEVICE = ('light|lamp|heating|fan|television|radio|air conditioner|humidifier'
          '|coffee machine|speaker|heater|projector|dishwasher|oven|dryer')


def home_case(rng):
    return dict(device=one_of(rng, DEVICE), room=rng.choice(names.ROOMS),
                state=rng.choice(('on', 'off')))


ACT += kinds(HOME, home_case, '''
= turn the {device} in the {room} {state}
@ device room state
- [Turn|Switch] {state} the {device} in the {room}.
- [Turn|Switch] the {device} in the {room} {state}.
- [Can|Could] you [turn|switch] {state} the {room} {device}?
- The {device} in the {room} should be {state}.
- [I want|Please make sure that|Set] the {device} in the {room} [to be |]{state}.
- {room} {device} {state}
> The {device} in the {room} is {state}[ now|].
> [Done|OK|All right|Sure]: {room} {device} {state}.
> [I turned|I switched|I have turned] {state} the {device} in the {room}.
> The {room} {device} is [now |]{state}.
+ {device}; {state}
''', 'room')

TIMER = service('timers', '''[set|start|create] [timer|countdown|alarm]
[timer|countdown] [start|set|create|]''',
'''[Starts|Sets] a [timer|countdown][ in minutes|]
[Timer|Countdown|Kitchen timer]''', [
    parameter('minutes', 'minutes duration duration_minutes min length',
              '[Minutes|Length in minutes]', kind='integer'),
    parameter('label', 'label name', 'A name', needed=False)])


def timer_case(rng):
    return dict(minutes=rng.randrange(2, 120))


ACT += kinds(TIMER, timer_case, '''
= set a timer for {minutes} minutes
@ minutes
- [Set|Start] a timer [for|of] {minutes} minutes.
- [Timer|Countdown]: {minutes} minutes.
- [Wake me|Beep|Ring|Tell me] in {minutes} minutes.
- [The eggs|The pasta|My tea|The cake|The rice] [needs|need] {minutes} minutes. [Set a timer.|Start a timer, please.]
- [Can|Could] you count {minutes} minutes for me?
> [The timer is set|Timer set|Timer started] for {minutes} minutes.
> {minutes} minutes[, starting now| from now on| are running].
> [I set|I started|I have set] a timer [for|of] {minutes} minutes.
> [Done|OK|Sure], {minutes} minutes.
+ {minutes}
''', 'minutes')

TABLE = service('table bookings', '''[book|reserve|make] [table|reservation|restaurant|restaurant table]
[restaurant|table] [booking|reservation|book|reserve]''',
'''[Books|Reserves] a table [in|at] a restaurant
[Table|Restaurant] [reservations|bookings]: restaurant, people, time''', [
    parameter('place', 'restaurant place name venue where',
              '[Name of the|The] restaurant'),
    parameter('people', 'people guests party_size persons seats number',
              '[How many people|Number of guests]', kind='integer'),
    parameter('time', 'time at when', '[Time|When]'),
    parameter('note', 'note wishes comment', 'Wishes', needed=False)])


def table_case(rng):
    return dict(place=f'{rng.choice(names.ADJECTIVES)} '
                      f'{rng.choice(names.NOUNS)}'.title(),
                people=rng.randrange(2, 13), time=clock(rng))


ACT += kinds(TABLE, table_case, '''
= book a table at the {place}
@ place people time
- [Book|Reserve|Get] a table for {people} at the {place} at {time}.
- [I need|We need|I'd like] a table for {people} at {time}[, at|. The restaurant is] the {place}.
- [Can|Could] you [book|reserve] the {place} for {people} [people|persons] at {time}?
- Dinner at the {place}, {time}, {people} people. [Please book.|Book it.]
- We are {people} and want to eat at the {place} at {time}. [Reserve a table.|]
> [The table at|A table at|Your table at] the {place} is [booked|reserved] for {people} at {time}.
> [Done|OK|Booked]: {place}, {people} people, {time}.
> [I booked|I reserved|I have booked] the {place} for {people} at {time}.
> [You have|There is] a table for {people} at the {place} at {time}.
+ {place}; {people}; {time}
''', 'time')

NOTE = service('notes', '''[save|create|add|write|take] [note|memo]
[note|notes|memo] [save|create|add|new|]''',
'''[Saves|Creates|Writes] a note[ with a title|]
[Notes|Memos]: save a text under a title''', [
    parameter('title', 'title name heading subject', '[Title|Name] of the '
              'note'),
    parameter('text', 'text content body note', '[The|] text'),
    parameter('tags', 'tags labels', 'Tags', needed=False)])


def note_case(rng):
    return dict(title=one_of(rng, f'{rng.choice(names.STEMS)}'
                                  f'|{rng.choice(names.EVENTS)}'
                                  f'|{rng.choice(names.TOPICS)}'),
                text=message(rng))


ACT += kinds(NOTE, note_case, '''
= save a note with the title {title}
@ title text
- [Save|Make|Take|Create] a note "{title}": {text}.
- [Note|Write down] under "{title}": {text}.
- [Title|Note title]: {title}. Text: {text}. [Save it.|Please save that as a note.]
- [Can|Could] you save "{text}" as a note with the title "{title}"?
- I want to remember this: "{text}". [Make|Save] a note called "{title}".
> [The note|Your note] "{title}" is [saved|stored].
> [I saved|I have saved|I wrote] [the note|it] [under|as] "{title}".
> [Done|Saved|Noted|OK]: {title}.
> "{title}" is in your notes[ now|].
+ {title}
''', '', loosely)
