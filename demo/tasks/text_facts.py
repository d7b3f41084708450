# Copyright (C) The nginx-dsa authors

"""Facts for the short texts of daily_text.py: "=" is the slot that is asked
for, "." a sentence that states it, "-" a question, ">" an answer."""

FACTS = r'''
= city
. {name} [lives|works] in {city}.
. {name} [comes from|moved to] {city}[ last year| in May|].
. The [home|office] of {name} is in {city}.
. In {city} [lives|works] {name}[, a teacher|].
. You can find {name} in {city} these days.
. {city} is where {name} [lives|has a flat].
. {name} has a [small|new] flat in {city}.
. After the summer, {name} settled in {city}.
- [Where|In which city] does {name} [live|work]?
- Which city is {name} in?
- Where can one [find|meet] {name}?
- What is the city of {name}?
- {name} is in which place?
- I want to write to {name}. Which city do I put on the letter?
- where abouts is {name}
- To which city do I go to see {name}?
- Do you see where {name} is?
- Tell me the place where {name} is.
- What city does the text name for {name}?
> In {v}.
> {name} is in {v}.
> [It is|The city is|That is] {v}.
> {v}.
> [According to the text|The text says]: {v}.
> You find {name} in {v}.

= goods
. {name} [sells|buys|grows|collects] {goods}.
. [Every {day}|At the market] {name} sells {goods}.
. {name} [likes|loves] {goods}[ most of all|].
. {goods} are what {name} [wants|needs].
. {name} came home with a bag full of {goods}.
. The {goods} belong to {name}.
. {name} asked me for {goods}.
- What does the text say {name} has to do with?
- Which things are mentioned for {name}?
- What is {name} into?
- What things go with {name}?
- {name} and what? Which things are meant?
- which stuff is it with {name}
- If I think of {name}, which things come to mind in the text?
- Name the things that are connected with {name}.
> {v}.
> [It is|That is] {v}.
> {name} has to do with {v}.
> The text [names|mentions] {v}.
> [According to the text|The text says]: {v}.
> The things are {v}.

= day
. [The {event} is on|The {event} takes place on] {day}.
. On {day} there is a {event}.
. Do not forget the {event} on {day}.
. [We|They] meet for the {event} on {day}.
. The {event} was put off until {day}.
. {day} is the day of the {event}.
. I noted the {event} for {day}.
- When is the {event}?
- On what day will the {event} be?
- What day does the {event} take place?
- Which day is it for the {event}?
- The {event} is on what day?
- which day do i keep free for the {event}
- For the {event}, which day did they pick?
- I can't remember the day of the {event}. Which one is it?
- Tell me the day of the {event}.
- On what day do people come for the {event}?
> On {v}.
> [It is|The {event} is] on {v}.
> {v}.
> The day is {v}.
> [According to the text|The text says]: {v}.
> They meet on {v}.

= time
. [The {event} begins|The {event} starts] at {time}.
. At {time} the {event} [begins|starts].
. Be there at {time} for the {event}.
. The {event} was moved to {time}.
. From {time} on we have the {event}.
. The doors open at {time} for the {event}.
. {time} is when the {event} begins.
- At what time [is|does] the {event}[ begin|]?
- What time is the {event}?
- When does the {event} [begin|start]?
- How late is it when the {event} begins?
- The {event} is at what time?
- what time do i have to be at the {event}
- I set my alarm for the {event}. What time does it begin?
- Tell me the hour of the {event}.
- By when should I be at the {event}?
> At {v}.
> [It is|It begins|The {event} is] at {v}.
> {v}.
> The time is {v}.
> [According to the text|The text says]: {v}.
> Be there at {v}.

= price
. The {product} costs {n} euros.
. [For|At] {n} euros you can [get|have] the {product}.
. {name} paid {n} euros for the {product}.
. The price of the {product} is {n} euros.
. They want {n} euros for the {product}.
. {n} euros is what the {product} costs.
. I saw the {product} for {n} euros.
- How much [is|does] the {product}[ cost|]?
- What is the price of the {product}?
- What does one pay for the {product}?
- For how much can I have the {product}?
- The {product}, how much was it?
- how many euros is the {product}
- How expensive is the {product}?
- I need to know what the {product} costs.
- What sum is named for the {product}?
- How much money goes into the {product}?
> {v} euros.
> [It costs|It is|The price is] {v} euros.
> The {product} [costs|is] {v} euros.
> {v}.
> [According to the text|The text says]: {v} euros.
> One pays {v} euros for it.

= room
. The {product} is in the {room}.
. In the {room} [stands|is] the {product}.
. {name} put the {product} into the {room}.
. You find the {product} in the {room}.
. The {product} was brought to the {room}.
. Somebody left the {product} in the {room}.
. We keep the {product} in the {room}.
- Where is the {product}?
- In which room is the {product}?
- Where do I find the {product}?
- Which room has the {product}?
- I am looking for the {product}. Where is it?
- where did they put the {product}
- The {product} must be somewhere. In which room?
- Where should I go to fetch the {product}?
- What room do I look in for the {product}?
> In the {v}.
> [It is|The {product} is] in the {v}.
> The {v}.
> Look in the {v}.
> [According to the text|The text says]: in the {v}.
> You find it in the {v}.

= author
. The [book|article|report] about {topic} is by {other}.
. {other} wrote [a book|an article|a report] about {topic}.
. About {topic} there is [a report|a text] by {other}.
. {other} gave a talk about {topic}.
. There is a film about {topic}, made by {other}.
. {other} knows all about {topic} and wrote it down.
- Who [made|did] the work about {topic}?
- Who is the author of the text about {topic}?
- By whom is the work about {topic}?
- Who knows about {topic}?
- whose work is about {topic}
- If I have a question about {topic}, whom does the text name?
- {topic}: who did something about that?
- Name the person who is mentioned with {topic}.
> {v}.
> [It is by|It was|The author is] {v}.
> {v} did it.
> [According to the text|The text says]: {v}.
> The work is by {v}.
> {v} is named for that.

= reason
. {name} is late because {reason}.
. {name} did not come, because {reason}.
. Since {reason}, {name} stayed at home.
. {name} is happy today because {reason}.
. {name} called us, as {reason}.
. Because {reason}, {name} had to go.
. {name} laughed because {reason}.
- Why is that so with {name}?
- What is the reason in the case of {name}?
- Why, in the part about {name}?
- What reason is given for {name}?
- why did that happen with {name}
- {name}... what was the reason?
- For what reason is {name} mentioned?
- How come, I mean {name}?
> Because {v}.
> {v}.
> The reason is that {v}.
> [The text says|It says] that {v}.
> It was because {v}.
> As the text says, {v}.

= count
. There are {n} {goods} in the {room}.
. {name} counted {n} {goods}.
. We ordered {n} {goods} last week.
. {n} {goods} [came|arrived] with the post.
. In the end {n} {goods} were sold.
. {name} brought {n} {goods} for everybody.
. On the list it said {n} {goods}.
- How many {goods} are mentioned?
- How many {goods} [is it|are there]?
- What is the number of {goods}?
- how many {goods}
- {goods}: how many does it say?
- Tell me how many {goods} there are in the text.
- I need the number for the {goods}.
- Of the {goods}, how many are named?
> {v}.
> {v} {goods}.
> [It is|There are|The text names] {v}.
> [According to the text|The text says]: {v}.
> The number is {v}.
> It says {v} {goods}.
'''

REASONS = '''the bus did not come
the alarm clock was broken
the {product} arrived at last
the exam went well
the keys were in the {room}
a friend from {city} came by
the street was closed
the doctor had no time
the dog ran away
it rained all morning
the phone was empty
the {goods} were sold out
there was no light in the {room}
the train to {city} was full
the shop gave the money back'''
