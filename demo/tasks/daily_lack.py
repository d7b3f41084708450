# Copyright (C) The nginx-dsa authors

"""Requests that lack something, so that the assistant must ask for it; in
some, the user then says it, and the call is made."""

from tasks import weigh
from tasks.daily import box, described, line, request, task, turn
from tasks.daily_chain import kind_of
from tasks.parts import Split
from tasks.phrase import expand, manner
from tasks.spoken import bars
from tasks.task import CHAT, Step, Turn


# topic of the service; requests that lack something; what to ask for; words
# of which the question must have one; what the user then replies

LACK = (
    ('the weather', '[What\'s|How is] the weather[ like|]?|Is it raining?'
     '|How warm is it[ outside|]?|Tell me the temperature.|Weather, please.'
     '|Do I need an umbrella?|Should I take a coat?|whats the weather'
     '|I want to know if it\'s cold there.|How are the conditions?'
     '|Can you check the weather for me?|Weather report!',
     '[city|place]', 'city|place|where|location|town',
     '{city}.|In {city}.|{city}, please.|I mean {city}.|For {city}.'
     '|I am in {city}.|{city}, sorry, I forgot that.'),
    ('translations', 'Translate a sentence for me.|I need a translation.'
     '|Can you translate something?|Translate this.|Translation please'
     '|How do I say that in another language?|I want something translated.'
     '|Help me with a foreign language.',
     'text and language', 'text|language|sentence|translate|what',
     '"{text}", in {language}.|"{text}" to {language}, please.'
     '|Into {language}. The text is "{text}".|{language}: "{text}"'),
    ('exchange rates', 'Convert some money[ for me|].|Change my dollars.'
     '|What is the exchange rate?|I want to change money.'
     '|How much is that in my currency?|I need a currency conversion.'
     '|What are my coins worth?|Exchange please',
     'amount and [currencies|the two currencies]',
     'amount|currency|currencies|much',
     '{amount} {origin} to {target}.|{amount} {origin}, in {target}.'
     '|I have {amount} {origin} and want {target}.'),
    ('deliveries', 'Where is my [parcel|order|package]?|Track my parcel.'
     '|When does my delivery arrive?|My order is late. Where is it?'
     '|Is my package on its way?|Check my delivery.|track my stuff pls'
     '|The parcel has not come yet!|Any news about my shipment?',
     'number[ of the order| of the parcel|]', 'number',
     '{number}.|It is {number}.|The number is {number}.|{number}, I think.'
     '|Here: {number}'),
    ('mail', 'Send a mail[ for me|].|I need to write an email.'
     '|Please email them.|Mail this to her.|An email, please.'
     '|Can you mail my landlord?|I have to answer a mail.|email pls'
     '|Write to my teacher by mail.',
     'address[, subject|] and text', 'address|text|whom|who|recipient'
     '|subject',
     'To {to}, subject "{subject}", text "{text}".|{to}. The subject is '
     '"{subject}" and the text "{text}".|Address: {to}\nSubject: {subject}\n'
     'Text: {text}'),
    ('reminders', 'Remind me[ later|].|Set a reminder.|I need a reminder.'
     '|Do not let me forget it.|Remind me of that thing.|reminder pls'
     '|I have to remember something.|Can you remind me?',
     'time and task', 'time|when|what|task',
     'At {time}: {task}.|{task}, at {time}.|To {task}. {time} would be good.'
     '|{time}, {task}'),
    ('the calendar', 'Add an [event|appointment] to my calendar.'
     '|Schedule a meeting.|Put it into my calendar.|Plan something for me.'
     '|New appointment, please.|I want to enter a date in the calendar.'
     '|Block some time for me.|Make a calendar entry.',
     '[event, |]day and time', 'day|time|when|what',
     'The {event}, {day} at {time}.|{event}, {day}, {time}.'
     '|{day} at {time}. It is the {event}.|Call it {event}. {day}, {time}.'),
    ('contacts', 'What is her phone number?|Find a phone number for me.'
     '|Where does he live?|Give me the mail address.|I need to call someone.'
     '|Look up a contact.|What\'s his number?|number pls'
     '|Who was that again? I need the phone number.',
     'name[ of the person|]', 'name|who|whom|whose',
     '{name}.|It is {name}.|I mean {name}.|{name}, please.'),
    ('stock prices', 'How is my stock doing?|What is the share price?'
     '|Check a stock for me.|Is it up or down?|Did my share rise?'
     '|Give me a quote.|What is it trading at?|Price of the share?',
     '[symbol|ticker]', 'symbol|ticker|stock|share|which',
     '{symbol}.|The symbol is {symbol}.|{symbol}, please.|I mean {symbol}.'),
    ('distances', 'How far is it?|How long does the drive take?'
     '|Plan a route for me.|What is the distance?|How many kilometers?'
     '|Is it far?|I want to go there by car. How long?|Route please',
     'start and [end|destination]', 'start|where|from|destination|end',
     'From {start} to {end}.|{start} to {end}.|I start in {start} and go to '
     '{end}.|Start {start}, destination {end}.'),
    ('music', 'Play [a song|something|some music].|Put on some music.'
     '|I want to hear a song.|Music please|Turn on the music.|Play that '
     'song that I like.|Some sound, please!|It\'s too quiet here.',
     '[title|song] and artist', 'song|title|artist|what|which',
     '{song} by {artist}.|{artist}, {song}.|I want {song}. It is by {artist}.'
     '|The song is {song}, the artist {artist}.'),
    ('the home', 'Turn it on.|Switch that off.|Turn on the device.'
     '|Switch something off for me.|Can you switch it?|Off, please.'
     '|I forgot to turn it off.|Please make it go on.', 'device and room',
     'device|room|what|which|where',
     'The {device} in the {room}. Turn it {state}.|{device}, {room}, {state}.'
     '|I mean the {device} in the {room}, {state} please.'),
    ('timers', 'Set a timer.|Start a timer[ for me|].|I need a timer.'
     '|Timer please|Start the countdown.|Time this for me.|Kitchen timer!'
     '|The eggs are in the water now. Timer!',
     '[length|time|duration]', 'long|length|time|duration|minutes|many',
     '{minutes_said}.|For {minutes_said}.|{minutes_said}, please.'
     '|Make it {minutes_said}.'),
    ('alarms', 'Wake me up.|Set an alarm.|I need an alarm.|Alarm please'
     '|I have to get up early.|Don\'t let me oversleep.|Wake me tomorrow.'
     '|I want to set the alarm clock.',
     'time', 'time|when',
     '{time_said}.|At {time_said}.|{time_said}, please.|Let\'s say '
     '{time_said}.'),
    ('table bookings', 'Book a table.|I want to eat out.|Reserve a table for '
     'us.|We need a table.|Dinner reservation please|Make a reservation.'
     '|Can you get us a table?|table booking pls',
     'restaurant, [number of people|people] and time',
     'restaurant|where|people|many|time|when',
     'The {place}, {people_said} people, {time}.|At the {place}, at {time}, '
     'for {people_said}.|{people_said} people at the {place}. {time}, '
     'please.|{place}, {time}, we are {people_said}.'),
    ('hotels', 'Book a hotel.|I need a hotel room.|Find me a place to sleep.'
     '|Hotel please|Reserve a room for us.|We need somewhere to stay.',
     'city, [day of arrival|arrival|date] and [number of |]nights',
     'city|where|date|when|night|arriv|day',
     '{city}, from {start_said}, {nights_said} nights.|In {city}. We arrive '
     'on {start_said} and stay {nights_said} nights.|{start_said}, {city}, '
     '{nights_said} nights.'),
    ('taxis', 'Order a taxi.|I need a cab.|Get me a taxi.|Taxi please'
     '|Call a cab for me.|I want to be picked up.',
     'start, destination and time', 'where|start|destination|time|when|from',
     'From {start} to {end} at {time_said}.|{time_said}, {start}. I go to '
     '{end}.|Pick me up at {start} at {time_said}, I want to go to {end}.'),
    ('the shopping list', 'Add something to my shopping list.'
     '|Put it on the shopping list.|I need something from the shop. List!'
     '|Can you add to the shopping list?'
     '|We ran out of it. Put it on the list.',
     '[items|things|goods]', 'item|thing|goods|what|which',
     '{items_said}.|We need {items_said}.|{items_said}, please.'
     '|Write {items_said}.'),
    ('the thermostat', 'Set the temperature.|Change the heating.'
     '|It\'s cold. Adjust the thermostat.|Make it warmer somewhere.'
     '|Thermostat please|Can you set the heating?',
     'room and temperature', 'room|where|temperature|degrees|warm|which',
     '{room}, {degrees_said} degrees.|The {room}. {degrees_said} degrees.'
     '|{degrees_said} degrees in the {room}.'),
    ('messages', 'Send a message.|Text him.|I have to text someone.'
     '|Message her for me.|Write a text.|Tell them.|text pls'
     '|Can you send a message for me?',
     'name and text', 'name|who|whom|text|message|what',
     'To {to}: "{text}".|{to}. The text is "{text}".|Text {to} "{text}".'),
    ('notes', 'Make a note.|Note something down.|Save a note for me.'
     '|New note|I want to write something down.|Take a memo.',
     'title and text', 'title|text|what',
     'Title "{title}", text "{text}".|"{text}", and the title is "{title}".'
     '|Call it "{title}". It should say "{text}".'),
    ('expenses', 'Log an expense.|I spent some money. Record it.'
     '|Add a receipt.|New expense|I have a bill to enter.',
     'amount and what it was for', 'amount|much|what|for',
     '{amount_said} {money} for {spent}.|It was {spent}, {amount_said} '
     '{money}.|{spent}: {amount_said} {money}.'),
    ('workouts', 'Log a workout.|I did some sport. Note it.|Record my '
     'training.|Workout log please|Save my exercise.',
     '[sport|kind of sport] and time', 'sport|what|which|long|time|kind',
     '{sport}, {minutes_said}.|{minutes_said} of {sport}.|It was {sport}, '
     'for {minutes_said}.'),
    ('birthdays', 'When is the birthday?|Look up a birthday.|I forgot a '
     'birthday.|Whose birthday... I mean, when is it?|Birthday lookup please',
     'name', 'name|who|whose|person',
     '{name}.|I mean {name}.|{name}\'s.|It is about {name}.'),
    ('the bank account', 'What\'s my balance?|How much money do I have?'
     '|Check my account.|Am I broke?|balance pls',
     '[account|kind of account]', 'account|which',
     'The {account} account.|{account}.|My {account} one.|{account}, '
     'please.'),
    ('cancelling events', 'Cancel my appointment.|Delete an event.'
     '|I can\'t come. Cancel it.|Remove something from my calendar.'
     '|Please cancel the meeting.',
     'event and day', 'event|day|which|what|when',
     'The {event} {day}.|{event}, {day}.|I mean the {event}. It is {day}.'),
)

ASK = '''[Which|What] {what} [do you mean|should it be|shall I use|do you want]?
[Please|Could you] [tell|give] me the {what}[, please|]?
[Sure|OK|Gladly|All right][.|!] [Which|What] {what}?
[I need|To do that I need|For that I need] the {what}. What is it?
[Can|Could|Would] you tell me the {what}?
[I'd like to help.|I can do that.] What is the {what}?
[One thing is missing|Something is missing]: what is the {what}?
[Yes, if you tell me|I can, if you tell me] the {what}. [Will you?|What should I take?]
[Happy to|With pleasure]. I only need the {what}: what should I take?
You didn't [say|mention] the {what}. What [is it|should it be]?
[Before I start|First], what is the {what}?
And the {what}?'''

THINK = Split('''The request lacks the {what}. [I ask.|I must ask for it.]
Missing is the {what}. [So I ask.|First I ask.]
I do not have the {what}. [I ask.|A question comes first.]
The user did not name the {what}. [I must ask for it.|So I ask.]
Without the {what} a call is not possible. I ask.
A guess would be wrong: nobody named the {what}. I ask.
The call needs the {what}. It is not in the request, so I ask.'''.splitlines())

SAID = {text: bars(text) for row in LACK for text in (row[1], row[4])}


def make(rng):
    topic, asks, what, key, replies = rng.choice(LACK)
    kind = kind_of(topic)
    use = kind.draw(rng)
    apis, tools = box(rng, [use], (0, 3))
    user = manner(rng, expand(rng, rng.choice(SAID[asks])))
    what = expand(rng, what)
    answer = line(rng, ASK).format(what=what)
    api = apis[use.service.topic]
    thoughts = ' '.join((request(rng, use.want, user, user),
                         weigh.weighed(api.offered, api.name),
                         described(api, {}),
                         expand(rng, rng.choice(THINK)).format(what=what)))

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'a call was made without its arguments'

        if '?' not in text:
            return f'no question: {text}'

        return None if any(k in text.lower() for k in key.split('|')) \
            else f'it does not ask for {what}: {text}'

    turns = [Turn(user, check, gold)]

    if rng.random() < 0.5:
        user = expand(rng, rng.choice(SAID[replies])).format(**use.slots)
        turns.append(turn(rng, [use], apis, user, use.answer, True))

    return task(rng, 'daily_error', 'single' if len(turns) == 1 else 'multi',
                turns, tools)
