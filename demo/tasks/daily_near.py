# Copyright (C) The nginx-dsa authors

"""Requests that are close to a tool which is offered, but need another one
that is not there: to delete a mail, if mails can only be sent."""

from tasks import names
from tasks.daily import TOPICS
from tasks.daily_near_more import MORE
from tasks.parts import Split
from tasks.phrase import manner, say
from tasks.times import clock, day


# the topic of the tool that is offered, = what the user wants, - requests

NEAR = '''
: mail
= read your mail
- Read me my last mail.
- What did {name} write in the mail yesterday?
- Is there any mail from {name}?
- What's new in my inbox?
- any new mails?
- Did {name} answer my email?
- Show me the newest messages in my mailbox.
- How many unread emails do I have?

: mail
= change or delete mails
- Delete the mail that {name} sent me.
- Empty my spam folder, please.
- Throw away all emails from {name}.
- Please unsubscribe me from that newsletter about {topic}.
- My mailbox is full. Remove the old mails.

: mail
= call {name}
- Call {name} for me.
- Ring {name} up and say that I am late.
- Please phone {name} now, a mail takes too long.
- dial {name}

: messages
= call {name}
- Call {name}.
- Phone {name} for me, please.
- Can you ring {name} and ask about the {goods}?
- Start a video call with {name}.
- I want to talk to {name}. Place a call.
- get {name} on the line

: messages
= read your messages
- What did {name} text me?
- Read me my messages.
- Any new texts from {name}?
- Who wrote to me today?
- Show me the last message by {name}.

: messages
= block {name}
- Block {name}, please.
- I do not want to get messages from {name} any more. Block that number.
- Can you mute {name} for me?

: the calendar
= show your appointments
- What is on my calendar {day}?
- When is my {event}?
- Am I free {day} at {time}?
- How many meetings do I have {day}?
- Read me my appointments.
- What's next on my schedule?

: the calendar
= cancel the {event}
- Cancel the {event}.
- Delete the {event} from my calendar.
- The {event} {day} does not take place, remove it.
- I can't make it to the {event}; take it out of the calendar.
- Call off my {event} {day}.

: the agenda
= cancel the {event}
- Cancel my {event} {day}.
- Remove the {event} from my calendar, please.
- I am ill. Delete the {event} {day}.
- Take the {event} off my schedule.

: the agenda
= add the {event} to your calendar
- Add a {event} {day} at {time}.
- Put the {event} into my calendar for {day}.
- Schedule a {event} {day} at {time}, please.
- I have a {event} {day} at {time}. Enter it for me.
- new appointment: {event}, {day}, {time}

: reminders
= show your reminders
- Which reminders do I have?
- What did I want to be reminded of {day}?
- List all my reminders, please.
- Did I set a reminder to {errand}?

: reminders
= delete reminders
- Delete the reminder to {errand}.
- I don't need to {errand} any more. Remove that reminder.
- Cancel all my reminders for {day}.

: timers
= tell how long a timer has left
- How much time is left on my timer?
- Is the timer still running?
- When does my timer go off?

: timers
= stop a timer
- Stop the timer.
- Cancel the timer for the {goods}.
- Turn off the alarm, it is ringing.

: the inbox
= write mails
- Reply to {name}: I will be there at {time}.
- Answer the mail of {name} with "no, thank you".
- Write back to {name} that {day} is fine.
- Forward the last mail of {name} to my boss.
- Send {name} a mail about the {event}.

: the inbox
= change or delete mails
- Delete everything from {name}.
- Move the mails of {name} to the archive.
- Mark the mail from {name} as spam.
- Remove {name}'s messages from my inbox.

: stock prices
= buy shares
- Buy {n} shares of {symbol}.
- Sell all my {symbol} today.
- I'd like to invest {n} dollars in {symbol}. Do it, please.
- Place an order for {n} {symbol} at the market price.
- get me {n} {symbol} before the market closes

: stock prices
= show your portfolio
- How many {symbol} do I own?
- What is my portfolio worth?
- Did I make money with my shares of {symbol}?

: exchange rates
= send money
- Send {n} euros to {name}.
- Transfer {n} dollars to the account of {name}.
- Pay {name} the {n} pounds that I owe.
- wire {n} euros to {name} pls

: exchange rates
= show your balance
- How many euros are in my account?
- What is the balance of my bank account?
- Did {name} pay me the {n} euros?

: the weather
= change anything at your home
- It is going to rain. Close the windows.
- The sun is strong today; lower the blinds in the {room}.
- It is cold. Turn up the heating in the {room}.

: the weather
= book or buy anything
- I want to go where it is warm. Book me a flight to {city}.
- Buy me a train ticket to {city} for {day}.
- The weather in {city} is good, so reserve a hotel there.

: translations
= do that
- Print my translation twice.
- Send the French version of this to {name}.
- Make an appointment with a translator in {city}.
- Find me a {language} teacher in {city}.

: translations
= play or record sounds
- Let me hear how "good morning" sounds in {language}.
- Play me a {language} song.
- Record my voice and tell me if my {language} is good.

: distances
= book or buy a ride
- Book a train from {city2} to {city}.
- Buy two tickets to {city} for {day}.
- I need a seat on the next bus to {city}, please reserve it.
- Get me a taxi to {city}.
- Rent a car in {city2} for {day}.

: distances
= look up tickets, trains or buses
- What does a ticket from {city2} to {city} cost?
- How much is the bus to {city}?
- Is the train to {city} late {day}?
- When does the next train from {city2} to {city} leave?

: places nearby
= book a table
- Book a table for two at the best restaurant in {city}.
- Reserve a room in a hotel in {city} for {day}.
- Get me a table at {time} {day}, somewhere in {city}.
- Make a reservation for {n} people in {city}.

: places nearby
= order food
- Order a pizza to the {room}.
- I am hungry. Have {goods} delivered to me.
- Order {goods} from the nearest shop in {city}.

: table bookings
= order food
- Order two pizzas and some {goods}.
- Have dinner delivered at {time}.
- I would rather eat at home. Get me {goods} from a restaurant.

: table bookings
= look for restaurants
- Which restaurant in {city} is the best?
- Find me a cheap place to eat in {city}.
- Where in {city} can I get good {goods}?
- Is there a vegetarian restaurant in {city}?

: table bookings
= change or cancel a booking
- Cancel my table {day}.
- We can't come {day}, so call off the reservation.
- Change my booking at the restaurant: {day} instead.

: contacts
= change your contacts
- Save the number of {name}, it is {n}.
- Add {name} {last} to my contacts.
- {name} has a new phone number, {n}. Change it in my contacts.
- New contact: {name} {last}, {n}

: contacts
= call {name}
- Call {name} {last}.
- Ring {name} and ask about the {event}.
- Phone {name} {last} at once, please.
- Get {name} {last} on the phone.

: contacts
= write to {name}
- Text {name} that I'll be late.
- Send {name} {last} a mail about the {event}.
- Write to {name}: see you {day}.

: deliveries
= send a parcel
- Send a parcel to {name} in {city}.
- I want to ship a {product} to {city}. Arrange it.
- Have the {product} picked up at my home {day}.

: deliveries
= cancel or return the {product}
- I don't like the {product}. Send it back for me.
- Cancel my order of the {product}.
- Return the {product} and get my money back.

: goods and prices
= buy or reserve the {product}
- Buy the {product} for me.
- Order one {product}, please.
- Put a {product} into my basket and pay.
- I'll take the {product}. Check out, please.
- Reserve a {product} for me until {day}.

: goods and prices
= return or exchange the {product}
- The {product} is broken. Send it back.
- I want a refund for my {product}.
- Exchange my {product} for a larger one.

: music
= buy concert tickets
- Buy me two tickets for a concert in {city}.
- When does my favorite band play in {city}?
- Get me into the concert {day}.

: music
= record, write or copy songs
- Record what I sing.
- Write the notes of the song that I hum.
- Download my songs to the phone.

: the home
= find out how much power you use
- How much power does the {room} use?
- What was my electricity bill last month?
- Which of my lamps needs the most power?

: the home
= order or call anything
- Order new bulbs for the {room}.
- The lamp in the {room} is broken. Call an electrician.
- Buy a smart plug for the {room}.

: notes
= find your notes
- What did I write down about {topic}?
- Read me my last note.
- Search my notes for "{goods}".
- Which notes do I have?

: notes
= delete a note
- Delete my note about {topic}.
- Throw all my notes away.
- Remove the last note, please.

: the to-do list
= change your to-do list
- I did it: {errand}. Check it off my list.
- Mark "{errand}" as done.
- Remove "{errand}" from my to-do list.
- Delete all tasks of {day}.

: a search
= post or upload anything
- Post a comment under that article about {topic}.
- Write a review of the {product} on the site.
- Upload my photos of {city} to the web.
- Sign me up for the newsletter about {topic}.

: reading files
= write the file {file}
- Write "hello {name}" into {file}.
- Append a line to {file}: {errand}
- Change the port in {file} to {n}.
- Correct the typo in {file} and save it.

: reading files
= delete or rename {file}
- Delete {file}.
- Remove the file {file}, please.
- Rename {file} to old_{file}.
- {file} may go, get rid of it.

: reading files
= print or send {file}
- Print {file} on paper.
- Mail {file} to {name}.
- Upload {file} to our server.

: folders
= delete or move {file}
- Delete {file}.
- Move {file} to the trash.
- Please remove {file} from the folder.

: folders
= make or pack folders
- Make a new folder for {topic}.
- Create a folder called {name}.
- Pack the folder with my photos into a zip file.

: writing files
= delete or move {file}
- Delete the file {file}.
- I no longer want {file}. Remove it.
- Move {file} to another folder.

: a calculator
= draw charts or make tables
- Draw a chart of {n}, 12 and 40.
- Plot a curve for these numbers: {n}, 3, 17.
- Make a spreadsheet with my expenses.

: a calculator
= pay or book money
- Pay my bill of {n} euros.
- Transfer {n} to {name}.
- Book {n} euros as travel costs.

: issues
= change {key}
- Close {key}.
- Assign {key} to {name}.
- Set the priority of {key} to high.
- Write a comment to {key}: fixed {day}.
- {key} is done, mark it as resolved.

: builds
= start or stop a build
- Start the build of web-{noun} again.
- Cancel the pipeline of {noun}-api.
- Rerun the tests of {noun}-app, please.
- Retry the last job of web-{noun}.

: deployments
= look up what is deployed
- Which version of web-{noun} runs in production?
- What is deployed in staging at the moment?
- Who deployed {noun}-api last?
- When was the last release of {noun}-app?

: logs
= do that
- Restart {noun}-api.
- The logs are full of errors, so roll {noun}-api back.
- Delete the old logs of {noun}-app.
- Silence the alarm for web-{noun}.
'''

# topics that can be offered besides, because they are far from the others.
# None of them does what a request in NEAR wants, unless its own topic is the
# one that is close

FAR = {'the weather', 'stock prices', 'exchange rates', 'translations',
       'distances', 'deliveries', 'timers', 'contacts', 'issues', 'builds',
       'logs', 'goods and prices', 'a calculator'}


# they are close to each other, so that none is offered beside another

TEAM = {'issues', 'new issues', 'builds', 'deployments', 'logs'}


def beside(topic):
    """Returns the topics of tools that may be offered beside a close
    one."""

    return FAR - TEAM if topic in TEAM else FAR


def requests():
    """Returns (topic, want, requests); those of the same topic and want are
    one."""

    found = {}

    for block in (NEAR + MORE).strip().split('\n\n'):
        topic, want, *asks = (line[2:] for line in block.strip().splitlines())
        found.setdefault((topic, want), []).extend(asks)

    return [(t, w, Split(asks)) for (t, w), asks in found.items()
            if t in TOPICS]


REQUESTS = requests()


def draw(rng):
    """Returns the topic of the tool that is offered, what the user wants, and
    the request."""

    topic, want, asks = rng.choice(REQUESTS)
    city, city2 = rng.sample(names.PLACES, 2)
    slots = dict(
        name=rng.choice(names.FIRST), last=rng.choice(names.LAST), city=city,
        city2=city2, goods=rng.choice(names.GOODS), day=day(rng),
        product=rng.choice(names.PRODUCTS), topic=rng.choice(names.TOPICS),
        event=rng.choice(names.EVENTS), errand=rng.choice(names.ERRANDS),
        time=clock(rng), room=rng.choice(names.ROOMS),
        language=rng.choice(names.LANGUAGES), n=rng.randrange(2, 900),
        symbol=''.join(rng.choice('ABCDEFGHIJKLMNOPRSTUVWXZ')
                       for _ in range(3)),
        file=f'{rng.choice(names.STEMS)}.{rng.choice(names.ENDINGS)}',
        key=f'WEB-{rng.randrange(10, 999)}', noun=rng.choice(names.NOUNS))
    ask = rng.choice(asks)

    return topic, say(rng, want, **slots), manner(
        rng, say(rng, ask, **slots), ask.startswith('{'))
