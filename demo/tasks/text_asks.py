# Copyright (C) The nginx-dsa authors

"""Questions about the texts of text_docs.py and their answers: "=" is the kind
of question, "-" a question, ">" an answer; {x} is what is asked about and {v}
the value."""

ASKS = '''
= price
- How much is the {x}?
- What does the {x} cost?
- what do i pay for the {x}
- Price of the {x}?
- For how much can I get the {x}?
- I'd like the {x}. How much money do I need?
- The {x} is how expensive?
- What do they want for the {x}?
- how expensive is the {x} pls
- I only need the price of the {x}.
- Can you find the price of the {x}?
- The {x}, please. What do I owe?
- My wife wants the {x}. What does it cost?
- {x}: price?
- If I buy the {x}, how many euros is that?
- I can't read the line with the {x}. What is the price?
- What sum do they ask for the {x}?
- {x} - how much
> {v} euros.
> The {x} [costs|is] {v} euros.
> [It is|It costs|That would be] {v} euros.
> You pay {v} euros[ for it|].
> The list says {v}.
> [The price is|They want] {v} euros.
> {v}.

= costs
- What costs {x} euros?
- Which thing is {x} euros?
- I have exactly {x} euros. What can I get for that?
- Which item has the price {x}?
- {x} euros, what was that for?
- what is sold for {x}
- Something costs {x} euros. What is it?
> The {v}.
> {v}.
> [It is|That is] the {v}.
> The {v} costs that.
> You can get the {v}.
> That is the price of the {v}.

= cheapest
- What is the cheapest thing[ here| on the list|]?
- Which costs least?
- Which one is the cheapest?
- I have little money. What costs the least?
- cheapest?
- What has the lowest price?
- Name the item with the smallest price.
- If I want to pay as little as possible, what do I take?
- Which of them is the best buy, going by the price alone?
- Nothing is cheaper than what?
- the one with the lowest price is?
- What should I buy when I am short of money?
> The {v}.
> {v}.
> [It is|That is] the {v}.
> The {v} is the cheapest.
> The cheapest is the {v}.
> The lowest price has the {v}.

= dearest
- What is the most expensive thing[ here| on the list|]?
- Which costs most?
- Which one is the dearest?
- Money is no problem. What costs the most?
- most expensive item?
- What has the highest price?
- Name the item with the largest price.
- Nothing is more expensive than what?
- If I want to show off, what is the dearest thing to buy?
- the one with the highest price is?
- For which one would I need the most money?
- Where do they ask for the most euros?
> The {v}.
> {v}.
> [It is|That is] the {v}.
> The {v} is the most expensive.
> The most expensive is the {v}.
> The highest price has the {v}.

= count
- How many [things|entries|items] are on the list?
- How many entries does it have?
- Count the lines[ for me|].
- how many is that in all
- What is the number of entries?
- The list has how many lines?
- How long is the list, I mean how many entries?
> {v}.
> [There are|It has|I count] {v}.
> {v} [entries|lines].
> The list has {v} [entries|items].
> In all there are {v}.
> The number is {v}.

= after
- What comes after {x}?
- What is next after {x}?
- Which one follows {x}?
- And after {x}?
- What stands below {x}?
- {x} is done. What is the next one?
- what do we have right after {x}
- Which entry comes directly after {x}?
- Which one is right behind {x}?
- We are through with {x}. What now?
- {x}, and after that?
- Find {x}, then tell me the next one.
- What's the following entry after {x}?
> {v}.
> [It is|That is] {v}.
> After that comes {v}.
> {v} comes next.
> The next one is {v}.
> Then there is {v}.

= before
- What comes before {x}?
- Which one is just before {x}?
- And before {x}?
- What stands above {x}?
- what was right before {x}
- Which entry comes directly before {x}?
- {x} follows on which entry?
- Which one is right in front of {x}?
- Find {x}, then tell me the one before.
- What precedes {x}?
- {x}, and one earlier?
- What had we before {x}?
> {v}.
> [It is|That is] {v}.
> Before that comes {v}.
> {v} comes before it.
> The one before is {v}.
> Just before it there is {v}.

= first
- What is the first one?
- Which comes first?
- What does the list begin with?
- What stands at the top?
- first entry?
- What do they start with?
> {v}.
> [It is|That is] {v}.
> The first is {v}.
> {v} comes first.
> It begins with {v}.
> At the top there is {v}.

= last
- What is the last one?
- Which comes last?
- What does the list end with?
- What stands at the bottom?
- last entry?
- What do they finish with?
> {v}.
> [It is|That is] {v}.
> The last is {v}.
> {v} comes last.
> It ends with {v}.
> At the bottom there is {v}.

= leaves
- When does the [train|bus] to {x} leave?
- At what time can I go to {x}?
- I have to be in {x} today. When do I leave?
- when is the one to {x}
- Departure to {x}?
- I want to go to {x}. What time is it?
- What is the time for {x}?
- My aunt goes to {x}. When must she be ready?
- What time must I be on the platform for {x}?
- {x}: what time?
- We want to see {x}. When do we start?
- how late does it go to {x}
- Tell me the departure for {x}.
- My train to {x} goes when?
> At {v}.
> {v}.
> [It leaves|It goes|You go|It is] at {v}.
> The one to {x} leaves at {v}.
> To {x}: {v}.
> You can go to {x} at {v}.

= goes
- Where does the [train|bus] at {x} go?
- Which place does the one at {x} go to?
- {x}, where does that go?
- What is the destination at {x}?
- I take the one at {x}. Where will I be?
- at {x} it goes where
> To {v}.
> {v}.
> [It goes|It leaves|That one is] to {v}.
> The one at {x} goes to {v}.
> The destination is {v}.
> You will be in {v}.

= platform
- From which platform does the one to {x} leave?
- Platform for {x}?
- I go to {x}. Which platform is it?
- Where do I stand for {x}, which platform?
- what platform for {x}
- The one to {x}: which track?
- On which track does the one to {x} stand?
- {x}, platform?
- I'm in the station and look for {x}. To which platform do I go?
- Tell me the platform for {x}.
> [Platform|From platform] {v}.
> {v}.
> It leaves from platform {v}.
> [It is|That is] platform {v}.
> To {x} it is platform {v}.
> Go to platform {v}.

= age
- How old is {x}?
- What is the age of {x}?
- {x} is how old?
- Which age does {x} have?
- age of {x}?
- Can you tell me how old {x} is?
- how many years is {x} old
- {x}: age?
- Do you see the age of {x}?
- When people ask how old {x} is, what do I say?
- {x} has how many years?
- Find out how old {x} is.
> {v}.
> {v} years[ old|].
> {x} is {v}[ years old|].
> The age is {v}.
> [It says|According to the text] {v}.
> {x} is {v} now.

= home
- Where does {x} live?
- In which city is {x} at home?
- {x} is from where?
- What is the city of {x}?
- where can i find {x}
- I want to visit {x}. Where do I have to go?
- Home of {x}?
- {x}: where?
- Do you see where {x} lives?
- To which city do I send a letter for {x}?
- From which place is {x}?
- What does it say about the home of {x}?
- In what town is {x} living?
> In {v}.
> {v}.
> {x} lives in {v}.
> [It is|That is] {v}.
> You find {x} in {v}.
> The home of {x} is {v}.

= job
- What does {x} do for a living?
- What is the job of {x}?
- What is {x}?
- {x} works as what?
- which job does {x} have
- What kind of work does {x} do?
- In what profession is {x}?
- {x}: job?
- Do you see what {x} does?
- How does {x} earn money?
- What is written about the work of {x}?
- {x} has what job?
> {v}.
> {x} is a {v}.
> {x} works as a {v}.
> [It is|The job is] {v}.
> The text says: {v}.
> As a {v}.

= lives
- Who lives in {x}?
- Which people are in {x}?
- Whom can I visit in {x}?
- Who is at home in {x}?
- who all lives in {x}
- I go to {x}. Whom do I meet there?
- Name everybody who lives in {x}.
- Who comes from {x}?
- Find all people in {x}.
- Who is from {x}? Name all.
- {x}: who is that?
- Which names belong to {x}?
- Do you see who lives in {x}? There may be more than one.
> {v}.
> [It is|That is|There is] {v}.
> In {x} you find {v}.
> According to the text: {v}.
> You can meet {v}[ there|].
> I find {v}.

= does
- Who is a {x}?
- Which of them works as a {x}?
- Who works as a {x}?
- I need a {x}. Whom do I ask?
- who here is a {x}
- Name whoever is a {x}.
- Is there a {x}? Who?
- Who has the job of a {x}?
- Find all who work as a {x}.
- {x}: who is that?
- Whose job is it to be a {x}?
- Is anybody a {x} here? Name all of them.
> {v}.
> [It is|That is] {v}.
> You can ask {v}.
> According to the text: {v}.
> The text names {v}.
> I find {v}.

= oldest
- Who is the oldest?
- Which of them is oldest?
- Who has the highest age?
- oldest person?
- Whose age is the largest?
- Who was born first?
> {v}.
> [It is|That is] {v}.
> {v} is the oldest.
> The oldest is {v}.
> The highest age has {v}.
> {v}, going by the age.

= youngest
- Who is the youngest?
- Which of them is youngest?
- Who has the lowest age?
- youngest person?
- Whose age is the smallest?
- Who was born last?
> {v}.
> [It is|That is] {v}.
> {v} is the youngest.
> The youngest is {v}.
> The lowest age has {v}.
> {v}, going by the age.

= writer
- Who wrote this [mail|message]?
- Who is it from?
- Who sent it?
- Whose message is that?
- from whom is this
- What is the name of the sender?
- Whom do I have to answer?
> {v}.
> [It is from|It comes from] {v}.
> {v} [wrote it|sent it].
> The sender is {v}.
> It was {v}.
> {v} is the one who wrote.

= reader
- Who is it written to?
- Who got this [mail|message]?
- Whom does it address?
- for whom is this
- Who should read it?
- What is the name of the person it was sent to?
> {v}.
> [It is for|It was sent to] {v}.
> {v} got it.
> To {v}.
> It was written to {v}.
> It addresses {v}.

= new_day
- When is the {x} [now|in the end]?
- On which day does the {x} take place now?
- What is the new day of the {x}?
- Which day should I note for the {x}?
- so when is the {x}
- The {x} was moved to what day?
- To which day did they move the {x}?
- I want to come to the {x}. On which day?
- {x}: which day now?
- What's the right day for the {x}, after the change?
- My calendar still has the old day. What is the new one for the {x}?
- When will the {x} really be?
- Tell me the day on which the {x} is now.
> On {v}.
> {v}.
> [It is|It was moved to|The new day is] {v}.
> The {x} is on {v} now.
> Now it is on {v}.
> Note {v} for it.

= old_day
- When was the {x} before?
- For which day was the {x} planned at first?
- What was the old day of the {x}?
- On which day will the {x} not take place any more?
- which day was it planned for, originally
- From what day was the {x} moved away?
- What day stood in the first plan for the {x}?
- Before the change, when was the {x}?
- Which day do I cross out for the {x}?
- the day of the {x} that is no longer right?
- On what day would the {x} have been?
> {v}.
> On {v}.
> It was [planned for|on] {v}.
> At first it was on {v}.
> The old day was {v}.
> Before that it was {v}.

= why
- Why was it moved?
- What is the reason[ for the change|]?
- Why did they change the day?
- how come it was moved
- What made them move it?
- For what reason is it on another day?
- And why?
- I do not see why it was moved. What does it say?
- What happened that it had to be moved?
- Give me the reason.
- the reason, please
- I wonder why they could not keep the day.
- What is behind the change?
- Which reason do they give?
> Because {v}.
> {v}.
> The reason is that {v}.
> It was moved because {v}.
> [It says|The text says] that {v}.
> They moved it since {v}.

= bring
- What should I bring?
- What do we have to take along?
- What is to be brought?
- do i need to bring smth, and what
- What shall I not forget?
- Which things are needed there?
- I pack my bag. What goes in?
- What do they want me to take with me?
- what to bring?
- With what in my hands should I come?
- Is there something that I need to have with me? What?
- What shall I put in my basket for it?
> {v}.
> [You should bring|Bring|Take along] {v}.
> Please bring {v}.
> It says {v}.
> Do not forget {v}.
> You need {v}.

= place
- Where is the {x}?
- At which place do we meet?
- In which room is it?
- where do i have to go
- What room is the {x} in?
- Where does the {x} take place?
- The place of the {x}?
> In the {v}.
> {v}.
> [It is|We meet|It takes place] in the {v}.
> The {x} is in the {v}.
> You go to the {v}.
> The place is the {v}.

= amount
- How [much|many] {x} do I need?
- What amount of {x} goes in?
- {x}: how much?
- how much of the {x} does it take
- I am at the shelf with the {x}. How much do I buy?
- What quantity of {x} is it?
- Tell me the amount for {x}.
- How much {x} do I weigh out?
- {x}, what amount?
- Do you see how much {x} is needed?
- I have the {x} here. How much of it goes in?
- The recipe wants how much {x}?
- My son asks how much {x} we need.
> {v}.
> [You need|It takes|Take] {v}.
> {v} of {x}.
> It says {v}.
> The recipe has {v}.
> For {x} it is {v}.

= bake
- How long does it have to bake?
- How many minutes must it be in the oven?
- What is the baking time?
- When do I take it out, after how many minutes?
- how long in the oven
- It's in the oven now. For how long?
- For what time do I set the timer?
- baking time?
- How many minutes till I can take it out?
- It has to stay in the oven for how long?
> {v} minutes.
> [It bakes|It must bake|Leave it in] for {v} minutes.
> The baking time is {v} minutes.
> After {v} minutes.
> {v}.
> In the oven it takes {v} minutes.

= heat
- At how many degrees?
- How hot must the oven be?
- What temperature does it need?
- To what do I set the oven?
- which temp
- The oven has to have how many degrees?
> {v} degrees.
> At {v} degrees.
> [Set it to|The oven must have] {v} degrees.
> The temperature is {v}.
> {v}.
> It says {v} degrees.

= serves
- For how many people is it?
- How many persons does it serve?
- how many can eat from it
- We are some guests. For how many is this meant?
- It is enough for how many?
- What number of people is it for?
> {v}.
> [For|It serves|It is for] {v}[ people|].
> It is enough for {v}.
> {v} people.
> {v} can eat from it.
> The recipe is for {v}.

= orders
- What does {x} [want|order]?
- What will {x} have?
- What did {x} ask for?
- And {x}, what does {x} take?
- what was it that {x} ordered
- Which order came from {x}?
- I bring the plates. What is for {x}?
- What should I bring to {x}?
- {x}: what is the order?
- Do you see what {x} is having?
- What did {x} choose?
- Read me the order of {x}.
> {v}.
> {x} [wants|takes|orders] {v}.
> [It is|That is] {v}.
> {x} asked for {v}.
> For {x} it is {v}.
> The order is {v}.

= wants
- Who [wants|orders] the {x}?
- For whom are the {x}?
- Who asked for {x}?
- The {x} are ready. Who gets them?
- who takes {x}
- Which of them orders {x}?
- To whom do I bring the {x}?
- {x}: who is that for?
- I have the {x} on my tray. For whom?
- Whose are the {x}?
- Find out who chose {x}.
> {v}.
> [It is|That is] {v}.
> {v} does.
> {v} [wants|takes|ordered] them.
> They are for {v}.
> Give them to {v}.

= pays
- Who pays?
- Who is paying for it?
- Whose money is it?
- who takes the bill
- Which of them pays the bill?
- Who invites the others?
- Who will get the bill?
- Who is the kind one that pays for all?
- Whom should the waiter ask for money?
- Who pays in the end?
> {v}.
> {v} pays.
> [It is|That is] {v}.
> {v} does.
> The one who pays is {v}.
> {v} takes the bill.

= on_day
- What is planned for {x}?
- What happens on {x}?
- What do I have to do on {x}?
- And {x}?
- whats on {x}
- Anything on {x}? What?
- {x}: what does the plan say?
- I look at {x}. What is there?
- Tell me what is on {x}.
- What did I want to do on {x}?
- {x}, what was that?
- Is {x} free? If not, what is there?
- How will I spend {x}?
> {v}.
> On {x}: {v}.
> [It is|There is] "{v}".
> For {x} it says "{v}".
> You want to {v}.
> The plan says: {v}.

= day_of
- On which day is "{x}" planned?
- When do I {x}?
- Which day is for "{x}"?
- when is it that i have to {x}
- "{x}" is on what day?
- What day did I choose to {x}?
- Look up "{x}" for me. Which day?
- "{x}": which day?
- Do you see on which day I {x}?
- For what day is it planned to {x}?
- I want to {x}. On which day did I note it?
- Find the day for "{x}".
> On {v}.
> {v}.
> [It is|That is] on {v}.
> "{x}" is on {v}.
> The plan says {v}.
> [The day is|You do that on] {v}.

= opens
- When does the {x} open?
- From what time is the {x} open?
- At what time can I go to the {x} at the earliest?
- opening time of the {x}?
- the {x} opens when
- I get up early. When may I be at the {x}?
- What's the earliest time for a visit to the {x}?
- {x}: from when?
- I stand in front of the {x}. When will they let me in?
- How early does the {x} open?
- Do you see when the {x} opens?
> At {v}.
> {v}.
> [It opens at|You can go there from] {v}.
> The {x} opens at {v}.
> From {v} on.
> Not before {v}.

= closes
- When does the {x} close?
- Until when is the {x} open?
- At what time do I have to be at the {x} at the latest?
- closing time of the {x}?
- till when is the {x} open
- When does the {x} shut its doors?
- {x}: until when?
- How late can I still go to the {x}?
- When do they send the last people out of the {x}?
- Do you see when the {x} closes?
- How long is the {x} open in the evening?
> At {v}.
> {v}.
> [It closes|It is open until] {v}.
> The {x} closes at {v}.
> Until {v}.
> Be there before {v}.

= closed
- What day of the week is the {x} closed?
- What day does the {x} not open?
- When can't I go to the {x}, on which day?
- closed day of the {x}?
- On what day is nobody at the {x}?
- The {x} has a day off. Which one?
- {x}: closed when?
- Which day should I not go to the {x}?
- Do you see on what day the {x} stays shut?
- On one day I would stand before a locked door at the {x}. Which?
> On {v}.
> {v}.
> It is closed on {v}.
> The {x} is not open on {v}.
> The day is {v}.
> They close on {v}.
'''

YES_NO = '''
= home
- Does {x} live in {y}?
- Is {x} at home in {y}?
- {x} lives in {y}, right?
- is {y} the city of {x}
- Can I find {x} in {y}?
- I think {x} lives in {y}. Is that so?
- Is it true that {x} lives in {y}?
> Yes[, {x} lives in {y}|, in {y}|, that is right|].
> No, {x} lives in {v}.
> No, in {v}.
> No, [it is|the text says] {v}.

= job
- Is {x} a {y}?
- Does {x} work as a {y}?
- {x} is a {y}, isn't that so?
- Do I remember it right that {x} is a {y}?
- is it correct that {x} is a {y}
- Would you say that {x} is a {y}?
> Yes[, {x} is a {y}|, that is right|].
> No, {x} is a {v}.
> No, [a|it is] {v}.
> No, {x} works as a {v}.

= day
- Is the {x} on {y} now?
- Does the {x} take place on {y}?
- The {x} is on {y}, right?
- do we meet on {y} for the {x}
- I noted {y} for the {x}. Is that correct?
- Can I be there on {y} for the {x}?
> Yes[, on {y}|, it is on {y}|, that is right|].
> No, on {v}.
> No, [it is|the {x} is] on {v}.
> No, it was moved to {v}.

= price
- Does the {x} cost {y} euros?
- Is the {x} {y} euros?
- The {x} is {y} euros, right?
- is {y} euros enough for the {x}, exactly
- I think I have to pay {y} euros for the {x}. Is that correct?
- Is {y} euros the price of the {x}?
> Yes[, {y} euros|, it costs {y} euros|, that is right|].
> No, it costs {v} euros.
> No, {v} euros.
> No, the {x} is {v} euros.

= open
- Is the {x} open on {y}?
- Can I go to the {x} on {y}?
- {y} is my free day. Is the {x} open then?
- is the {x} closed on {y}? I mean: is it open?
- On {y}, will there be somebody at the {x}?
- Does the {x} open on {y}?
> Yes[, it is open|, you can go there|].
> No, [it is closed then|on {y} it is closed|that is the day when it is closed].
> No, the {x} is closed on {y}.
> No, not on that day.
'''
