# Copyright (C) The nginx-dsa authors

"""More requests for daily_near.py, in its form.  Topics that do not exist are
left out."""

MORE = '''
: mail
= read your mail
- I am waiting for a mail by {name}. Is it there?
- Who wrote to me today?
- check my email pls
- Summarize the mails of this week.
- Has the offer for the {product} come in by mail?

: mail
= change or delete mails
- Get rid of the mail by {name} about {topic}.
- Put a star on the last mail from {name}.
- I sent {name} a mail by mistake. Take it back.
- archive everything older than {day}

: messages
= send a mail
- Mail the report to {name}.
- Send {name} an email with the subject "{topic}".
- This is too long for a text. Email it to {name}, please.
- Attach the file {file} and mail it.

: messages
= read your messages
- Has {name} answered yet?
- What was the last thing that {name} wrote?
- read my texts to me while I drive
- Did {name} see my message?

: the calendar
= show your appointments
- How many events do I have {day}?
- What time is the {event}?
- Do I have anything on {day}?
- Which day is the {event}?
- Is there a {event} in my calendar already?
- Show me {day}, please.

: the calendar
= cancel the {event}
- No {event} {day}. Take it out.
- {name} is ill, so the {event} is off. Remove it.
- del {event} {day}
- Clear my calendar for {day}.

: the agenda
= move the {event}
- Move the {event} to {day} at {time}.
- The {event} is at {time} now, not earlier. Change it.
- Postpone the {event} by a week.
- Can we have the {event} {day} instead? Change my calendar.

: the agenda
= add the {event} to your calendar
- {name} invited me to a {event} {day} at {time}. Put it in.
- Block {day} from {time} on for the {event}.
- Write it into my calendar: {event}, {day}, {time}.

: reminders
= show your reminders
- what do I have to remember {day}
- Are there reminders for {day}?
- Read out what you are going to remind me of.

: reminders
= do the task for you
- Don't remind me, do it for me: {errand}.
- I have no time to {errand}. Can you do it?
- Please {errand} today, not just a note of it.

: timers
= tell how long a timer has left
- timer status?
- How many minutes are left for the {goods}?
- Has the time run out yet?

: the inbox
= write mails
- Tell {name} by mail that I agree.
- Answer {name}: "{topic}, yes please".
- Compose a mail to {name} about the {event}.
- Forward what {name} wrote to {last}.

: the inbox
= change or delete mails
- Flag the mail of {name}.
- Delete the newsletter about {topic}.
- clean up my inbox, {name} first

: stock prices
= buy or sell shares
- {symbol} is cheap. Buy {n}.
- I'd like to get rid of my {symbol}; sell them, please.
- If {symbol} falls, sell mine.
- Put {n} into {symbol}.

: exchange rates
= send or withdraw money
- Get me {n} euros in cash.
- {name} needs {n} pounds. Transfer it.
- Pay the bill of {n} dollars with my card.

: the weather
= plan a trip to {city}
- Reserve a hotel in {city} if it is sunny there.
- Take me to {city} by train, buy the ticket.
- It is nice in {city}. Book the flight for {day}.

: the weather
= water the garden
- No rain {day}. Water the garden.
- Turn on the sprinkler, it is too dry.
- It's windy. Roll in the awning at the {room}.

: translations
= send texts to people
- Write to {name} in {language} that we come {day}.
- Text {name} "good luck" in {language}.
- Post it in {language} on my page.

: distances
= book or buy a ride
- I don't want to drive to {city}. Buy a bus ticket.
- Order a cab from {city2} to {city}.
- Reserve me a rental car for {city}.
- get me on the train to {city} {day}

: places nearby
= call the place
- Call the best restaurant in {city} and ask for a table.
- Phone the nearest pharmacy and ask if they have it.
- Ring the hotel in {city} for me.

: table bookings
= look for restaurants
- What is a good restaurant for {goods} in {city}?
- Which place in {city} is open late?
- Does that restaurant have {goods} on the menu?
- How is the food there? Read me a review.

: contacts
= change your contacts
- {name} moved to {city}. Change the address.
- Delete {name} {last} from my address book.
- The number of {name} is {n} from now on, so save it.
- new contact pls: {name} {last}

: contacts
= call {name}
- Get me {name} on the line.
- I need to speak to {name} now. Call.
- Would you dial the number of {name} {last}?

: deliveries
= cancel or change the order
- I moved. Change the address of my order to {city}.
- Stop the delivery of the {product}.
- Have them deliver the {product} {day} instead.
- I ordered too much. Cancel the {goods}.

: goods and prices
= buy or reserve the {product}
- If the {product} is in stock, order it.
- Add a {product} to my cart.
- Get me the {product} before {day}.
- The {product} is fine, I'll have it. Send it to {city}.

: music
= tell about songs
- Who wrote that song?
- In which year was this song made?
- Print the words of the song.
- What is the name of the song that is playing?

: the home
= tell the state of your home
- Is the light in the {room} on?
- Did I leave the heater on?
- How warm is it in the {room}?
- Are all the windows closed?

: notes
= find your notes
- Where did I write about {goods}?
- What was in my note of {day}?
- Look through my notes for {name}.
- I noted the number of {name} once. What was it?

: the to-do list
= add a task
- Put "{errand}" on my list for {day}.
- New task: {errand}
- I also have to {errand}. Add that.
- Add one more thing to do {day}: {errand}.

: a search
= buy or order anything
- Find a {product} and order it.
- Book the cheapest hotel in {city} for me.
- Sign me up for a course about {topic}.

: reading files
= change {file}
- Replace every comma in {file} by a semicolon.
- Add {name} to the end of {file}.
- Sort the lines of {file} and save the file.
- Set the title in {file} to "{topic}".

: reading files
= list files
- Which files are there besides {file}?
- What other files are in the folder of {file}?
- List everything in my documents folder.

: folders
= open or change files
- What does {file} say?
- Read me the first line of {file}.
- Write "{topic}" into {file}.
- Copy {file} to my stick.

: writing files
= read {file}
- What is in {file}?
- Read {file} to me.
- How many lines does {file} have?
- Look up the password in {file}.

: issues
= open a new issue
- Open a ticket: the {noun} page is broken.
- New bug: {noun} button does nothing.
- File a report about the {noun} list.
- Make a ticket like {key}, but for {noun}.

: new issues
= look up issues
- What is the state of {key}?
- Who works on {key}?
- How many tickets are open?
- Is {key} fixed?

: new issues
= change {key}
- Close {key}.
- Give {key} to {name}.
- {key} is a duplicate, mark it.

: builds
= deploy anything
- The build of web-{noun} is green. Release it.
- Deploy {noun}-api to production.
- Roll web-{noun} back to the last version.

: deployments
= look at builds or logs
- Did the tests of web-{noun} pass?
- Why does {noun}-api fail? Look into its logs.
- How many errors does {noun}-app have?

: logs
= open an issue
- Write a ticket about the errors of {noun}-api.
- Tell {name} that {noun}-app is down.
- Page the person on call for web-{noun}.

: hotels
= change or cancel a booking
- Cancel my room in {city}.
- Did I book a hotel in {city}?
- How good is that hotel in {city}? Read me reviews.

: hotel prices
= book a room
- Book me a room in {city} for {day}.
- Reserve the cheapest hotel in {city}.
- I'll take it. Book the room, please.

: taxis
= tell where the taxi is
- Where is my taxi?
- Cancel the cab.
- How long does my driver still need?

: train tickets
= look up trains
- When does the train to {city} leave?
- Is my train to {city} late?
- From which platform does the train to {city} go?
- I want my money back for the ticket to {city}.

: departures
= buy a ticket
- Buy me a ticket for the next train.
- Reserve a seat to {city}.
- What does the ride to {city} cost?

: flights
= book or change a flight
- Book a flight to {city} {day}.
- Cancel my flight.
- Get me a window seat.
- I missed the plane to {city}. Put me on the next one.

: appointments
= cancel an appointment
- Cancel my appointment {day}.
- When is my next appointment at the dentist?
- I can't come {day}; call them.

: alarms
= stop or show alarms
- Which alarms are set?
- Turn off the alarm of {time}.
- Delete all my alarms.

: the shopping list
= read the shopping list
- What is on my shopping list?
- Are {goods} on my list already?
- Take {goods} off the shopping list.
- Order everything on my shopping list.

: the bank account
= pay or send money
- Pay my rent.
- Send {name} {n} euros.
- Transfer {n} to my savings account.

: subscriptions
= cancel a subscription
- Cancel my subscription.
- I want to stop paying for that newspaper. End it.
- Change my plan to the cheaper one.

: the thermostat
= tell the temperature
- How warm is it in the {room}?
- What is the thermostat in the {room} set to?

: expenses
= show your expenses
- How much did I spend on {goods}?
- Pay me back what I spent in {city}.
- Show me my expenses of the last trip.

: user accounts
= change or delete accounts
- Delete the account of {name}.
- {name} forgot the password. Reset it.
- Lock the account of {name} {last}.

: recipes
= buy or order food
- Order what I need for the recipe.
- Have a dish with {goods} brought to me.

: opening hours
= book or call the place
- Book a table there {day} at {time}.
- Call them and ask for {name}.

: books
= borrow or buy a book
- Order that book for me.
- Reserve the book at the library.
- Read me the first chapter.

: films
= buy tickets
- Buy two tickets for that film {day}.
- Play the film on my television.

: fitness
= record a workout
- I ran for {n} minutes. Write it down.
- Add my swim of {day}.

: workouts
= show your workouts
- How far did I run last week?
- How many steps did I take {day}?
'''
