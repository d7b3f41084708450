# Copyright (C) The nginx-dsa authors

"""Services that do something: mail, calendar, reminders, messages, music, the
home, timers, bookings, notes."""

from tasks import happen, names, spoken
from tasks.api import parameter, service
from tasks.spoken import aside
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

    return dict(**aside(rng), to=f'{mail}@'
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
- {to} [is waiting for|wants] [a mail from me|news]. Write "{text}" [and use "{subject}" as the subject|with subject "{subject}"].
- [pls|please] [email|mail] {to} - subject {subject} - "{text}"
- [Draft|Prepare] and send [an email|a mail]:\\nTo: {to}\\nSubject: {subject}\\n\\n{text}
- [I'd|I would] like to [send|get] [a short email|a few words] [off |out |]to {to}. [Put|Use] "{subject}" [in|for] the subject line, and in the body[ just|]: "{text}"
- [Fire off|Shoot] an email to {to} saying "{text}", subject line "{subject}".
- Subject "{subject}", [address|recipient] {to}, [message|text] "{text}". [Off with it.|Mail that please.|You can send it.]
- [Would you mind emailing|Would it be possible to email] {to}? It's about "{subject}" (that's the subject too) and it should just say "{text}".
- [My phone is nearly dead|I'm driving|My hands are full], so please mail {to} for me: "{text}". The subject can be "{subject}".
- the mail address is {to}, the subject is {subject}. Write there: "{text}"
- [Drop|Send] a line to {to}: "{text}" ([subject|title]: {subject})
- "{text}" - [that's what|this is what] {to} [needs to|should] read in [an email|a mail] from me, subject "{subject}".
- {x_name} asked me to write to {to}. [Please do it for me.|Do that now.] Subject "{subject}", text "{text}".
- [I promised to write|I still owe an email] to {to}. [Send it:|Do it for me:] subject "{subject}", then "{text}".
- Mail for {to}\\nsubject: {subject}\\ntext: {text}
- An email has to go out [today|now|asap] with the text "{text}" and the subject "{subject}". It goes to {to}.
- email {to} "{subject}" "{text}"
- hey, can u [email|mail] {to} [rn|real quick|for me]? subject "{subject}" text "{text}" thx
- [I want that you send|Please to send] an email at {to}, subject "{subject}", with this text: "{text}"
- Use the subject "{subject}" and send "{text}" by [email|e-mail] to {to}.
- Under the heading "{subject}", [inform|notify] {to} by email: "{text}"
- [The following should go|This goes] to {to} as an email with the subject "{subject}":\\n{text}
- I've got to reply to {to}, but no time. Write "{text}", call it "{subject}" and send it off.
> [The|Your] [mail|email] to {to} [is sent|has been sent|is on its way].
> [Done|Sent]: [the mail to {to}|{to} has your mail].
> [I sent|I have sent] [the|your] [mail|email] to {to}.
> [OK|All right], {to} [gets|will get] [it|your mail].
> [That's done|There you go]: the [mail|email] went [out |]to {to}.
> Your [email|message] [is off|went out|just went] to {to}.
> [Email|Mail] sent to {to}[ with the subject "{subject}"|].
> {to} [should have|has] your [email|mail] now.
> I [mailed|emailed|wrote to] {to} [about "{subject}"|as you asked].
> [Sure.|Gladly.|No problem.] The [email|mail] to {to} has gone out.
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
- [I'd|I would] like to have the {event} [in my calendar|on my schedule], {day}, starting [at|from] {time}.
- [Block|Reserve|Keep free] {day} [from|starting at] {time} for the {event}.
- [We've just agreed on|They just confirmed] {day}, {time}, for the {event}. [Calendar, please.|Put that down for me.|Can you add it to my calendar?]
- calendar: {event} / {day} / {time}
- My {event} is {day}. It starts at {time}. [Get it into the calendar|Pop it in the calendar|Stick it on my calendar], [please|will you].
- [pls|please] add {event} {day} {time} to [my calendar|cal]
- what about {day}, {time}, for the {event}? [Fine with me, so add it.|Good, schedule it.]
- [The next|Our] {event} takes place {day} at {time}; [make an entry in|please add it to] my calendar.
- [Please create|Make] [an entry|an event] called "{event}" in my calendar.\\nDay: {day}\\nTime: {time}
- So that I don't double-book myself: {event}, {day}, {time}. Into the calendar with it.
- When I look at my calendar {day}, I want to see the {event} at {time}.
- [Could you|Would you] pencil in the {event} for {time} {day}?
- I don't want to miss the {event}. It's {day} at {time}, [so please schedule it|put it on the calendar].
- [Create|Make] a calendar event: title {event}, start {time}, date {day}.
- [gonna have|got] a {event} {day} at {time}, add it pls
- [Enter|Record] this in my [diary|planner]: {event}, {time}, {day}.
- There will be {event} at {time} {day}, please you put it to my calendar.
- "{event}" should [appear|show up] in my calendar {day} at {time}.
- [For|At] {time} {day}, schedule the {event}.
- Mark my calendar. {day} at {time} is the {event}.
- [Did I tell you about|Have I mentioned] the {event}? It's {day}, {time}. Add it before I forget.
- Nothing is planned {day} yet, is it? Then set up the {event} for {time}.
- {event}\\n{day}\\n{time}\\n[please add to calendar|-> calendar]
- I need a slot at {time} {day} for my {event}. [Book it in the calendar.|Please block it.]
> [The|Your] {event} is [in your calendar|scheduled|planned] for {day} at {time}.
> [Done|OK|All right]: {event}, {day} at {time}.
> [I added|I have added|I put] the {event} [for|on] {day} at {time}[ to your calendar|].
> {day} at {time} [is set for|you have] the {event}[ now|].
> The {event} [now has its place|is noted] in your calendar: {day}, {time}.
> [Got it.|Sure.|No problem.] {event} {day} at {time}.
> Your calendar [shows|has] the {event} {day} at {time} now.
> [Added|Scheduled|Saved]: {event} - {day}, {time}.
> I've [scheduled|entered|blocked] {day}, {time}, for the {event}.
> {event}: {day} at {time}, [it's in|all set|entered].
> [You're all set.|All set.] The {event} is {day} at {time}.
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
    return dict(**aside(rng), task=rng.choice(names.ERRANDS),
                time=clock(rng))


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
- I [mustn't|must not|can't] forget to {task}. [Ping|Nudge|Remind] me at {time}[, ok?|, please.|.]
- {task} - [remind me|reminder pls|don't let me forget], {time}
- [Give me a nudge|Ping me|Poke me|Tell me] at {time} to {task}.
- [It would be great if you could remind|Would you be so kind as to remind] me at {time} that I [have to|need to|should] {task}.
- My [wife|husband|boss|flatmate] will [kill me|be upset] if I don't {task}. A reminder at {time} would [help|save me].
- remind me at {time}: {task}
- {time} reminder: {task}
- [Put|Add] "{task}" [on|to] my [to-do list|list|reminders] for {time}.
- New [to-do|task|reminder]: "{task}"\\nWhen: {time}
- [I'll|I will] be busy until {time}, but then I have to {task}. Remind me.
- At {time}, say to me that it is time to {task}.
- [pls|please] [dont|don't] let me forget 2 {task}, {time} would be good
- I need reminding to {task}. {time} [is a good time|works|suits me].
- Something to remember: {task}. [Bring it up at|Let me know at] {time}.
- Can I get a reminder at {time}? I have to {task}.
- [Set|Create] a task [called|named] "{task}" [that is|] due at {time}.
- When the clock shows {time}, please remind me to {task}.
- I keep putting it off, but today I will {task}. [Remind|Alert] me at {time}.
- [Please to remind|You must remind] me I must {task} at {time}.
- {x_name} wants me to {task}. Make it a reminder, {time}.
- what i have to do at {time} is {task}. can you set reminder for it?
- Could there be an alert at {time} with the text "{task}"?
- Schedule a reminder for {time} so that I {task}.
- It's important that I {task}; a reminder at {time} please.
- [Jog|Refresh] my memory at {time}: {task}.
- [Note to self|Memo to me], {time}: {task}. Set that up as a reminder.
> [I will|I'll] remind you to {task} at {time}.
> [The reminder is set|Reminder set|Done|OK]: {task} at {time}.
> [At {time} I will remind you|You will be reminded at {time}]: {task}.
> [Noted|All right|Sure]. {time}: {task}.
> [Got it|No problem|Done], I'll [ping|nudge|remind] you at {time} to {task}.
> You'll [get|have] a reminder at {time}: {task}.
> [I've set|I set|There is] a reminder for {time}: {task}.
> {task}: [I'll remind you|reminder set] at {time}.
> Your reminder to {task} is [set|scheduled] for {time}.
> At {time} [it's time to|you will be told to|I will tell you to] {task}.
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
    return dict(**aside(rng), to=rng.choice(names.FIRST), text=message(rng))


ACT += kinds(CHAT, chat_case, '''
= send {to} a message
@ to text
- [Text|Message|Tell] {to}: "{text}".
- [Send|Write] {to} [a message|a text|an SMS]: "{text}".
- [Send|Write] "{text}" to {to}.
- [Can|Could] you [text|message|tell] {to} "{text}"?
- [Let {to} know|Tell {to}] this: {text}
- I need to tell {to} something: "{text}". [Send it.|]
- [I'm|I am] [running around|in a meeting|on my bike] and can't type. [Send|Text] {to} this: "{text}"
- {to} [should|needs to] know: "{text}". [Send a text.|Can you message them?|Text it.]
- [txt|text|msg] {to} "{text}"
- [Drop|Shoot|Send] {to} a [quick |short |]message saying "{text}".
- "{text}" - [send that|text this|pass that on] to {to}, [please|will you|ok].
- Message for {to}: {text}
- [Please|Would you] pass on [the following|this] to {to}: "{text}"
- [What I want to say to|My message for] {to} [is|:] "{text}". [Please deliver it.|Send it.]
- to: {to}\\nmessage: {text}
- [I forgot to text|I haven't answered|I still have to write to] {to}. Say "{text}".
- [Say|Write] "{text}" in a message to {to}.
- can u [tell|text|msg] {to} "{text}" [thx|pls|asap]
- Get this to {to} [right away|as soon as you can|now]: "{text}"
- {to} is waiting for an answer from me. [It's|The answer is] "{text}".
- I [want|would like] that {to} gets this text message: "{text}"
- [Reply|Answer] to {to} with "{text}".
- New message. Recipient: {to}. Text: "{text}".
- Is it possible to text {to}? The text is "{text}".
- [Ask my phone to send|Have it send] {to} the words "{text}".
- [If you can, write|Be so kind and write] to {to}: "{text}"
- SMS {to}: {text}
- {x_name} asked about {to} - ah, that reminds me: text {to} "{text}".
> [The|Your] message to {to} [is sent|has been sent].
> [I sent|I have sent|I wrote] {to} [the|your] message.
> [Done|Sent]: "{text}" to {to}.
> {to} [has|got] [it|your message][ now|].
> [That's sent|It's on its way|It went out]: your message to {to}.
> {to} [will see|should see] your message [soon|now|shortly].
> Message sent to {to}[: "{text}"|].
> [Sure|OK|All right|No problem], I [texted|messaged|wrote] {to}.
> I['ve| have] passed [it|that|your message] on to {to}.
> Your text [is with|has reached|went to] {to}.
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

    return dict(**aside(rng), song=one_of(rng, f'{adjective} {noun}|The {noun}'
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
- [I'm|I am] in the mood for {artist}. {song}, please.
- {song} - {artist}
- [Give|Get] me {song} by {artist}[, would you|, loud and clear|].
- [Do you have|Have you got|Can you find] {song}? It's by {artist}. [If so, play it.|Play it.]
- That {artist} song, {song} - [play it|put it on|let's hear it].
- play {song} from {artist} [pls|please|rn]
- [We're having a party|Guests are here|I'm cooking] and need [some music|music]: {song} by {artist}.
- [Queue up|Start|Stream] "{song}" by {artist}.
- [Could|Would] you put "{song}" on? {artist} [sings|plays|made] it.
- Song: {song}\\nArtist: {artist}\\n[Play.|Start it.]
- {artist} please. The track is called {song}.
- [I haven't heard|It's been ages since I heard] {song} by {artist}. [Play it for me.|Put it on.]
- [Turn on|Switch on|Start up] some {artist}, [the track|I mean] {song}.
- How about {song} by {artist}? Yes, play that.
- I [want|would like] to dance to {song} by {artist}.
- [What I want to listen now is|Now I want to hear] the song {song} of {artist}.
- my daughter wants {song} by {artist}, can you play it
- Time for [a song|music]. {song}, by {artist}.
- [Let's|Let us] listen to {artist} with "{song}".
- {x_name} says that {song} by {artist} is good. Let me hear it.
- Music! {artist} - {song}!
- The next song should be {song}, artist {artist}.
- [It's too quiet|It is so quiet] here. {song} by {artist} would [help|be nice].
- [gimme|lemme hear] {song} by {artist}
> [Now playing|Playing|Here is]: {song} by {artist}.
> [I am playing|I started|You hear] {song} by {artist}[ now|].
> {song} by {artist} [is playing|is on|starts now].
> [Enjoy|Here comes] {song}.
> {song}[, coming up| coming right up].
> [Sure|OK|With pleasure|Good choice], here's {song}.
> {artist} with {song}, [now playing|on now].
> [I've put on|I put on|I have started] {song} by {artist}.
> [You're|You are] listening to {song}.
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
    return dict(**aside(rng), device=one_of(rng, DEVICE),
                room=rng.choice(names.ROOMS),
                state=rng.choice(('on', 'off')))


ACT += kinds(HOME, home_case, '''
= turn the {device} in the {room} {state}
@ device room state
- [Turn|Switch] {state} the {device} in the {room}.
- [Turn|Switch] the {device} in the {room} {state}.
- [Can|Could] you [turn|switch] {state} the {room} {device}?
- The {device} in the {room} should be {state}.
- [I want the {device} in the {room} to be|Please make sure that the {device} in the {room} is|Set the {device} in the {room} to] {state}.
- {room} {device} {state}
- {device} {state} in the {room}[, please|].
- [Make|Get] the {room} {device} go {state}.
- [I'm|I am] in the {room} and want the {device} {state}.
- [Is there a way to|Are you able to] turn the {device} in the {room} {state}?
- [Put|Flip] the {device} {state} in the {room}, [would you|please|thanks].
- {room}: {device} {state}
- [Please see to it|See] that the {device} in the {room} is [switched |turned |]{state}.
- [turn|switch] {state} {room} {device} [pls|plz|thx]
- The {device} [in|of] the {room} - {state}, please.
- [Why isn't|Shouldn't] the {device} in the {room} [be |]{state}? [Turn|Switch] it {state}.
- [My hands are wet|I can't get up|I'm in bed already], [can you|please] turn the {device} in the {room} {state}.
- Go to the {room} [settings|controls] and set the {device} to {state}.
- {x_name} [wants|asked for] the {device} in the {room} to be {state}. [Do it.|Can you do that?]
- device: {device}\\nroom: {room}\\nset to: {state}
- [In|For] the {room}, turn {state} the {device}.
- [I'd|I would] [prefer|like] the {device} in the {room} [to be |]{state}.
- Could somebody turn the {device} {state}? The one in the {room}.
- There is a {device} in the {room}. I need it {state}.
- [You can|You may] [turn|switch] the {room} {device} {state} now.
- [hey|yo], {room} {device} {state}!
- I [forgot|did not manage] to [turn|switch] the {device} {state} in the {room}. [Do it for me.|Could you?]
- Please you turn {state} the {device} which is in the {room}.
- [Everybody|Everyone] has left the house, only you can turn the {device} in the {room} {state}.
- Switch: {room}, {device}, {state}.
> The {device} in the {room} is {state}[ now|].
> [Done|OK|All right|Sure]: {room} {device} {state}.
> [I turned|I switched|I have turned] {state} the {device} in the {room}.
> The {room} {device} is [now |]{state}.
> [No problem|There you go|Right away], the {device} in the {room} is {state}.
> The {device} is {state} in the {room} now.
> [Switched|Turned] {state}: the {device} in the {room}.
> {device} {state}[ in the {room}|, as you wished].
> [You'll find|You have] the {room} {device} {state} now.
> {room}: the {device} is {state}.
+ {device}; {state}
''', 'room')

TIMER = service('timers', '''[set|start|create] [timer|countdown|kitchen timer]
[timer|countdown] [start|set|create|]''',
'''[Starts|Sets] a [timer|countdown][ in minutes|]
[Timer|Countdown|Kitchen timer]''', [
    parameter('minutes', 'minutes duration duration_minutes min length',
              '[Minutes|Length in minutes|How many minutes]', kind='integer',
              always=True),
    parameter('label', 'label name', 'A name', needed=False)])


def timer_case(rng):
    said, minutes = spoken.length(rng)

    return dict(minutes=minutes, minutes_said=said)


ACT += kinds(TIMER, timer_case, '''
= set a timer for {minutes_said}
@ minutes
- [Set|Start] a timer [for|of] {minutes_said}.
- [Timer|Countdown]: {minutes_said}.
- [Wake me|Beep|Ring|Let me know|Call me] in {minutes_said}.
- [The eggs need|The noodles need|My tea needs|The cake needs|The rice needs|The dough needs|The roast needs] {minutes_said}. [Set a timer.|Start a timer, please.]
- [Can|Could] you count {minutes_said} for me?
- {minutes_said} timer[, please| pls|]
- [I'm|I am] going to [nap|read|meditate|practice] for {minutes_said}. [Time me.|Set a timer so I know when it's over.|Timer, please.]
- [The pizza|The bread|The pie] is in the oven now. It has to come out in {minutes_said}. [Timer!|Can you time it?]
- [Start|Begin] counting down [from|] {minutes_said} now.
- [Give me|I get] {minutes_said} [for this exercise|for a break], then [ring|beep].
- How about a timer? {minutes_said} should be enough.
- The recipe says {minutes_said}. [Start the timer.|Please set the timer.]
- set timer {minutes_said}
- [I need|I'd like] to be [alerted|reminded] after {minutes_said}. [Use a timer.|A timer will do.]
- [My parking ticket|The washing machine|The parking meter] runs {minutes_said}. Set a timer [for that|for it].
- Make it ring when {minutes_said} have passed.
- [pls|please] time {minutes_said} [for me|starting now]
- From now on, {minutes_said}. Then a [beep|bell|signal].
- [We play|The kids may play] for {minutes_said}, not longer. Timer on.
- Would you set a [kitchen timer|countdown] to {minutes_said}?
- I will go away from the stove for {minutes_said}. Please set the timer for me.
- Let the timer run for {minutes_said}.
- The [hair dye|face mask|glue] has to [stay on|dry] for {minutes_said}; timer please.
- [Countdown|Timer] [start|go]! {minutes_said}.
- Can a timer be started? It should be {minutes_said} long.
- [I have|There are] {minutes_said} until the [call|bus|train]. [Count them down for me.|Set a timer.]
> [The timer is set|Timer set|Timer started] for {minutes_said}.
> {minutes_said}[, starting now| from now on|, the timer is running].
> [I set|I started|I have set] a timer [for|of] {minutes_said}.
> [Done|OK|Sure], {minutes_said}.
> The timer [rings|goes off|will ring] in {minutes_said}.
> [Your|The] {minutes_said} [start|begin] now.
> [All right|Got it|No problem]: the timer runs for {minutes_said}.
> I'll let you know in {minutes_said}.
> Counting down {minutes_said}.
+ {minutes}|{minutes_said}
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
    people, number = spoken.whole(rng, 2, 13)

    return dict(place=f'{rng.choice(names.ADJECTIVES)} '
                      f'{rng.choice(names.NOUNS)}'.title(),
                people=number, people_said=people, time=clock(rng))


ACT += kinds(TABLE, table_case, '''
= book a table at the {place}
@ place people time
- [Book|Reserve|Get] a table for {people_said} at the {place} at {time}.
- [I need|We need|I'd like] a table for {people_said} at {time}[, at|. The restaurant is] the {place}.
- [Can|Could] you [book|reserve] the {place} for {people_said} [people|persons] at {time}?
- Dinner at the {place}, {time}, {people_said} people. [Please book.|Book it.]
- We are {people_said} and want to eat at the {place} at {time}. [Reserve a table.|Please reserve a table.]
- table for {people_said}, {place}, {time}[ pls| please|]
- [It's our anniversary|My parents are in town|We have something to celebrate]! A table at the {place}, please: {people_said} people, {time}.
- [Get us|Find us|We'd love] a table at the {place}. There will be {people_said} of us, and we come at {time}.
- Restaurant: {place}\\nPeople: {people_said}\\nTime: {time}
- At {time} we [want to|would like to] dine at the {place}, {people_said} persons. [Make the reservation.|Book, please.]
- Is it possible to reserve for {people_said} [people |guests |]at the {place}? {time} would be best.
- [Make|Place] a reservation: the {place}, {time}, party of {people_said}.
- Please call the {place} - or book online - for {time}. We're {people_said}.
- {time} at the {place}, {people_said} guests. [Reserve it.|A table, please.]
- [Reserve|Hold] {people_said} seats [for|at] {time} in the {place}.
- I [said to|promised] my friends that we eat at the {place}. {people_said} people, {time}. Can you arrange a table?
- the {place} for {people_said} at {time}, book it
- We're hungry! Table at the {place} at {time}. Number of guests: {people_said}.
- I want that you reserve one table in restaurant {place}, we are {people_said}, hour {time}.
- My boss wants to have dinner with the team at the {place} ({people_said} people, {time}). [Please sort out a table.|Book a table.]
- [Sort us out|Get] dinner at the {place}, {time}, for {people_said}.
- For {people_said} guests we need a table at {time}, and it has to be the {place}.
- [Reservation|Booking] request: {place} / {people_said} people / {time}
- Could we eat at the {place} at {time}? We'd be {people_said}. If you can, book it right away.
- [Let's|Let us] go to the {place} at {time}. A table for {people_said} will do.
> [The table at|A table at|Your table at] the {place} is [booked|reserved] for {people_said} at {time}.
> [Done|OK|Booked]: {place}, {people_said} people, {time}.
> [I booked|I reserved|I have booked] the {place} for {people_said} at {time}.
> [You have|There is] a table for {people_said} at the {place} at {time}.
> The {place} [expects you|is expecting you] at {time}, {people_said} people.
> {time} at the {place}, a table for {people_said}: [it's booked|reserved|confirmed].
> [All set|Good news|Great]: your table for {people_said} at the {place} is at {time}.
> Your reservation at the {place} [stands|is made]: {people_said} people at {time}.
+ {place}; {people}|{people_said}; {time}
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
    return dict(**aside(rng),
                title=one_of(rng, f'{rng.choice(names.STEMS)}'
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
- {title}: "{text}" - [note that|write that down|make a note of it].
- [Jot|Take] this down[ for me|], title "{title}": {text}
- [Create|Open|Start] a [new |]note.\\nTitle: {title}\\nText: {text}
- I [just had|have] a thought that I [want to|must] keep: "{text}". [File it under|Title:] "{title}".
- note "{title}" "{text}"
- [pls|please] save a note, call it "{title}", it should say "{text}"
- In my notes, [add|put|write] "{text}" under the [title|name] "{title}".
- [Before I forget|Quick|Real quick]: note with the [title|heading] "{title}", content "{text}".
- {x_name} has just said "{text}". [Keep it|Save it] as a note called "{title}".
- [Put|Store|Keep] "{text}" [somewhere|in my notes]. The title should be "{title}".
- A memo, please. It's called "{title}" and reads "{text}".
- Would you [make|write] me a note? Title {title}; text {text}
- The note "{title}" should contain this: {text}
- [I am making|I'm making] notes. Next one: title "{title}", text "{text}".
- write "{text}" to a note with name "{title}"
- Make memo: "{text}". As title use "{title}".
- [Could|Would] you keep a note for me? Heading "{title}", then "{text}".
- Under which title? Take "{title}". And the note is "{text}".
- Remember this in a note titled "{title}":\\n{text}
- [I'd|I would] like to have "{text}" in my notes as "{title}".
- Please add to my notes one with title "{title}" which says: "{text}"
- new memo [called|titled] "{title}" saying "{text}"
> [The note|Your note] "{title}" is [saved|stored].
> [I saved|I have saved|I wrote] [the note|it] [under|as] "{title}".
> [Done|Saved|Noted|OK]: {title}.
> "{title}" is in your notes[ now|].
> [It's|That is] [noted|saved] [under|as] "{title}".
> [No problem|Sure|All right], the note "{title}" is [saved|there].
> Your notes [now have|have] "{title}"[ now|].
> A note [called|titled|with the title] "{title}" [was|has been] saved.
> I [made|created] a note: "{title}".
> "{title}" [has been|is] [saved|stored|noted].
+ {title}
''', '', loosely)
