# Copyright (C) The nginx-dsa authors

"""Stories about time, ages, distances and amounts for daily_sums, written as in
sums_money.py; and those about the clock and the days of the week."""

STORIES = '''
= a+b | minutes | a 5-90 b 5-90
- [The film|The class|The trip|The walk] takes {a} minutes and the [break|way|talk] {b}. How many minutes [in all|together]?
- I need {a} minutes for {errand} and {b} for the rest. How long is that in minutes?
- The [bus|train] is {a} minutes late and the next one {b} minutes more. How many minutes in all?
- Bake it {a} minutes, then {b} more. How long in all?
- {name} worked {a} minutes, then {b} minutes. How many minutes are that?
- From home to the station it is {a} minutes on foot. The train takes another {b}. How long am I on my way?
- The pasta needs {a} minutes and the sauce {b}, one after the other. When I start now, in how many minutes do we eat?
- warm up {a} min, run {b} min. whole workout?
- I waited {a} minutes at the doctor's and {b} at the pharmacy. How much waiting was that?
- First film {a} minutes, second film {b} minutes. How many minutes of film is that?
- The first half took {a} minutes, the second {b}. How long was the game?
- I need {a} minutes to shower and dress and {b} for breakfast. How long until I can leave?
- Drive {a} minutes, park and walk {b} minutes. How long in total?
- {name} played {a} minutes before the break and {b} after it. Minutes in all?
- my podcast is {a} min and the next one {b} min. both?

= a+b+c | minutes | a 5-60 b 5-60 c 5-60
- Bus {a} minutes, walk {b} minutes, train {c} minutes. How long am I on the way?
- I practiced {a} minutes on Monday, {b} on Tuesday and {c} on Friday. How many minutes did I practice?
- The show has three parts of {a}, {b} and {c} minutes. How long is it?
- Washing takes {a} minutes, drying {b} and ironing {c}. How long is all of that?
- {name} spoke for {a} minutes, {other} for {b}, and the questions took {c}. How long was the talk?
- sum of my calls today pls: {a} min, {b} min, {c} min
- Three songs of {a}, {b} and {c} minutes. How long does the music play?
- Shower {a}, breakfast {b}, way to work {c} minutes. From getting up to work, how long?
- My lessons took {a}, {b} and {c} minutes today. Minutes in all?
- I waited three times: {a} minutes, {b} minutes and {c} minutes. How long did I wait?

= a-b | minutes_left | a 20-120 b 5-110 | a > b
- The film is {a} minutes long and we have seen {b}. How many minutes are left?
- The cake must bake {a} minutes. It has been in the oven for {b}. How much longer?
- My break is {a} minutes. {b} are over. How many minutes do I still have?
- {name} has {a} minutes for the test and has used {b}. How much time remains?
- parking ticket for {a} minutes, {b} gone. time left?
- The train ride takes {a} minutes. We left {b} minutes ago. When are we there, in minutes?
- We play {a} minutes, and {b} have been played. How many minutes are to go?
- My battery lasts {a} minutes. After {b} minutes of talk, how many minutes remain?
- The pie needs {a} minutes, I put it in {b} minutes ago. How long do I wait?
- The class is {a} minutes. After {b}, how long do the kids have to sit?

= a*b | minutes | a 2-7w b 5-60/5
- I [run|read|swim] {b} minutes [a day|every day]. How many minutes is that in {a} days?
- {name} practices {b} minutes a day, {a} days a week. How many minutes a week?
- {a} lessons of {b} minutes each. How long is that in all?
- One load of laundry takes {b} minutes. I have {a} loads. How many minutes is the machine busy?
- The bus to work takes {b} minutes. I sat in it {a} times this week. How many minutes was that?
- {a} episodes, {b} min each. How long do we watch?
- We walk the dog {a} times a day, {b} minutes each time. How many minutes do we walk a day?
- {a} calls, {b} minutes each. How long did I talk?
- Each of my {a} kids gets {b} minutes at the computer. How many minutes is it in use?
- {name} sleeps {b} minutes on each of {a} train rides. How many minutes of sleep?
- we train {a} times, {b} min each time

= a*60 | minutes | a 2-9w
- How many minutes are {a} hours?
- {a} hours in minutes?
- The trip takes {a} hours. What is that in minutes?
- My flight lasts {a} hours. How many minutes do I sit?
- {name} slept only {a} hours. How many minutes is that?
- convert {a} hours to minutes
- How many seconds are {a} minutes?
- We waited for {a} hours! Tell me how many minutes that was.
- The play lasts {a} hours. In minutes?
- I worked {a} hours in the garden. What is that in minutes?
- {a} hours: how many minutes do I have to set on the timer?
- an exam of {a} hours is how many minutes

= a*7 | days | a 2-12w
- How many days are {a} weeks?
- {a} weeks in days?
- My holiday is {a} weeks long. How many days do I have off?
- {name} was in hospital for {a} weeks. How many days was that?
- I have to take the pills for {a} weeks, one a day. How many pills do I need?
- {a} weeks till the exam. how many days is that
- We stay for {a} weeks. How many nights is that?
- The plaster stays on for {a} weeks. How many days is that?
- Count the days of {a} weeks.
- {name} will be away for {a} weeks. In how many days do we meet again?
- {a} full weeks in days

= a*24 | hours | a 2-9w
- How many hours are {a} days?
- The ferry takes {a} days. How many hours is that?
- {a} days in hours?
- We were without power for {a} days. What is that in hours?
- the battery lasts {a} days. hours?
- {name} has to wait {a} days for the parcel. How many hours is that?
- {a} days without sleep, how many hours is that?
- The trip by ship takes {a} days. Hours?
- How many hours do I have if there are {a} days left?
- {a} full days are how many hours?

= a*b | per_time | a 2-12 b 4-8w
- {name} works {a} hours a day on {b} days. How many hours are that?
- I drink {a} glasses of water a day. How many glasses are that in {b} days?
- I read {a} pages every evening. How many pages will I have read after {b} evenings?
- The cat eats {a} cans a week. How many cans do I need for {b} weeks?
- I learn {a} new words each day. After {b} days, how many words do I know?
- {a} hours daily for {b} days?
- A hen lays {a} eggs a week. How many eggs do {b} hens lay in a week?
- {name} smokes {a} cigarettes a day. How many is that over {b} days?
- {name} writes {a} letters a week. How many letters are that in {b} weeks?
- My cow gives {a} liters a day. How many liters in {b} days?
- I do {a} push-ups every morning. After {b} mornings, how many were it?
- The baby wakes {a} times a night. In {b} nights, how often is that?

= a+b | age | a 3-60 b 2-20w
- {name} is {a} years old. How old will {name} be in {b} years?
- I am {a} now. How old am I in {b} years?
- {name} is {a}. {other} is {b} years older. How old is {other}?
- My daughter turned {a} yesterday. In {b} years, what is her age?
- My brother is {b} years older than me and I'm {a}. What is his age?
- {a} years old today. and in {b} years?
- The boat was {a} years old when we got it, and that is {b} years ago. How old is it?
- {other} was born {b} years before {name}. {name} is {a}. How old is {other}?
- In {b} years I will look back at today, when I'm {a}. How old will I be then?
- {name} is {a} today. What age will it be {b} years from now?
- My cousin is {a}. My aunt's friend is {b} years older than my cousin. How old is that friend?
- {name} turns {a} this week. Add {b} years. What age is that?

= a-b | age | a 20-90 b 2-18w
- {name} is {a} years old. How old was {name} {b} years ago?
- I'm {a}, and my sister is {b} years younger. How old is she?
- {name} is {a} and {other} is {b} years younger. What is the age of {other}?
- My mother is {a}. How old was she {b} years ago?
- I am {a} now and moved here {b} years ago. At what age did I move here?
- {name} is {a} today and has been married for {b} years. How old was {name} at the wedding?
- im {a}. my wife is {b} yrs younger. her age?
- {b} years ago I started to work. Now I am {a}. How old was I when I started?
- My wife is {b} years younger than me, and I am {a}. What is her age?
- {name}, who is {a} now, learned to swim {b} years ago. At what age was that?
- Go back {b} years from age {a}. How old is that?

= a-b | years | a 30-90 b 3-29
- {name} is {a} and {other} is {b}. How many years are between them?
- My father is {a}, I am {b}. How much older is he?
- What is the age difference of someone who is {a} and someone who is {b}?
- Grandma is {a} years old. I am {b}. By how many years is she older?
- I'm {b}. When will I be {a}? In how many years, I mean.
- {name} retires at {a} and is {b} now. How many years are left?
- age gap between {a} and {b}
- {name} is {a}, the grandchild is {b}. What is the difference?
- The tree is {a} years old and the house {b}. By how many years is the tree older?
- I'm {b} and want to stop working at {a}. For how many years do I still work?
- My mother is {a} and I am {b}. How many years are between us?

= a+b+c | sum | a 3-30 b 3-30 c 3-30
- Our children are {a}, {b} and {c} years old. How old are they together?
- {name} is {a}, {other} is {b} and I am {c}. What do our ages add up to?
- sum of the ages {a}, {b}, {c}?
- There are three cats in this house, aged {a}, {b} and {c}. What is their age in total?
- The ages of my kids: {a}, {b}, {c}. Added up?
- The dogs are {a}, {b} and {c} years old. Add their ages.
- {name} is {a} years old, {other} {b}, and the dog {c}. The ages in sum?
- What do {a}, {b} and {c} years make together?
- My three sisters: {a}, {b}, {c}. Their ages added together?

= a+b | km | a 3-90 b 3-90
- I [walked|drove|ran] {a} km [in the morning|on Monday] and {b} km [in the evening|on Tuesday]. How [far|many km] was that[ in all|]?
- From {city} to the lake it is {a} km, and from there to the hut {b} km. How far is it in all?
- {name} cycled {a} km, had a break and cycled {b} km more. How many km did {name} cycle?
- I live {a} km north of the town. {other} lives {b} km south of it. How far is it from me to {other} through the town?
- outward {a} km, back another way {b} km. sum?
- The first day of the hike is {a} km. The second is {b} km. How long is the hike?
- We had driven {a} km when the car broke down, and a truck took us {b} km to {city}. How far did we travel?
- My morning ride was {a} km, the evening ride {b} km. What does my counter say for today?
- We flew... no, we drove {a} km to {city} and then {b} km to the sea. How far was the drive?
- {name} ran {a} km on Saturday. On Sunday it was {b} km. Both days together?
- the bus goes {a} km, then i walk {b} km. all in all?

= a-b | km_left | a 40-400 b 10-390 | a > b
- It is {a} km to {city}. I have driven {b} km. How far is it still?
- The hike is {a} km and we did {b} so far. How many km are left?
- {name} wants to run {a} km this month and has {b}. How many km to go?
- The sign said {a} km to {city}. Since then we made {b} km. What is left?
- {a} km total, {b} done. remaining?
- My tank lasts for {a} km and I drove {b}. How far can I still go?
- Our trip is {a} km long. After {b} km we have lunch. How far is it after lunch?
- {name} has {a} km to ride and did {b} before noon. How many km in the afternoon?
- We are {b} km into a {a} km trip. How much is left?
- {a} km to go at the start, {b} km later, how many km?

= a*2 | km | a 3-200
- My way to work is {a} km. How far do I go there and back?
- {city} is {a} km away. I drive there and return today. How many km is that?
- One way is {a} km. Both ways?
- {name} drives {a} km to {city} and the same way back. How many km does {name} drive?
- It's {a} km to my parents. A round trip is how far?
- there and back, {a} km each way
- The lake is {a} km away. I cycle there and back. How far do I cycle?
- I forgot my bag and drove {a} km back and {a} km again. How many km were for nothing?
- {name} walks {a} km to school and {a} km home. How far is that a day?
- To {city} it's {a} km. What is it with the way back?

= a*b | km | a 3-60 b 2-9w
- I ride {a} km a day. How far is it in {b} days?
- {name} runs {a} km, {b} times a week. How many km a week?
- A lap is {a} km. We drive {b} laps. How far is that?
- The car makes {a} km in an hour. How far does it get in {b} hours?
- On each of {b} days we walk {a} km. What does the whole tour come to in km?
- {a} km per hour for {b} hours makes how many km?
- If my bike goes {a} km an hour, how many km do I get in {b} hours?
- Each day of the tour has {a} km, and it has {b} days. How long is the tour?
- My way to work is {a} km. I went {b} times. How many km was that?
- The ferry crosses {b} times a day, {a} km each time. How many km a day?
- {name} swims... no, rows {a} km a day. In {b} days?

= a/b | hours | a 12-400 b 3-9 | a % b == 0 and a > b
- I walk {b} km an hour. How many hours do I need for {a} km?
- {name} reads {b} pages in an hour. The book has {a} pages. How many hours will that be?
- A pump fills {b} buckets per hour. How many hours until {a} buckets are full?
- We make {b} {g} an hour and need {a}. For how many hours must we work?
- {a} km at {b} km/h, how many hours?
- The snail creeps {b} meters an hour. After how many hours has it done {a} meters?
- {name} paints {b} chairs an hour. How many hours for {a} chairs?
- I type {b} pages an hour and there are {a}. How long do I need, in hours?
- We ride at {b} km an hour. How many hours to {city}, {a} km away?
- {a} {g}, {b} an hour. hours?

= a/b | per_day | a 14-360 b 2-9w | a % b == 0 and a > b
- I must learn {a} words in {b} days. How many words a day?
- {name} drove {a} km in {b} hours. How many km were that per hour?
- The hens laid {a} eggs in {b} days, every day the same number. How many a day?
- We have {a} km to hike and {b} days. How many km do we hike each day?
- {a} pages, {b} days. per day?
- I sold {a} {g} in {b} weeks. What is that per week?
- To earn {a} {cur} in {b} days, how much do I need to make each day?
- {name} has {b} days for {a} exercises. How many a day?
- The well gives {a} liters in {b} hours. How many liters per hour?
- {a} steps up, {b} floors, all the same. How many steps per floor?
- In {b} days I must sell {a} tickets. What is that per day?

= a+b | weight | a 20-900/5 b 20-900/5
- Mix {a} grams of flour with {b} grams of sugar. What does it weigh?
- The bag weighs {a} grams and I put {b} grams of {g} in. How heavy is it now?
- {a} g butter and {b} g chocolate. How many grams in all?
- {name} needs {a} ml of milk and {b} ml of water. How many ml will that be?
- I poured {a} ml into the jug, then {b} ml more. How much is in it?
- One parcel is {a} grams, the other {b}. What do both weigh?
- The cat weighs... no, my lunch box weighs {a} grams, the bottle {b} grams. Both?
- Put {a} g of rice and {b} g of beans on the scale. What does it show?
- I have a bag of {a} grams and one of {b} grams. What is the weight of both?
- {a} grams plus {b} grams

= a*b | weight | a 2-9w b 20-250/5
- One portion needs {b} grams of rice. How many grams do I need for {a} people?
- {a} packs of {b} grams. How heavy is that in all?
- The recipe for one takes {b} ml of milk. We are {a}. How much milk?
- {a} bottles with {b} ml each: how many ml?
- I take {b} grams of pasta per person. {a} persons are eating. How many grams do I cook?
- {a} of the {g}, each one weighs {b} grams. weight?
- {a} apples weigh {b} grams each. What do they weigh?
- For one cup I take {b} ml. I make {a} cups. How many ml?
- Each letter is {b} grams, and I send {a}. How heavy is the lot?
- {name} drinks {a} glasses of {b} ml. How many ml is that?

= a-b | degrees | a 15-38 b 2-14 | a > b
- At noon it was {a} degrees. By night it fell by {b} degrees. How warm was it then?
- It is {a} degrees outside and {b} degrees less in the cellar. How many degrees does the cellar have?
- {city} has {a} degrees, and here it is {b} degrees colder. What do we have here?
- Yesterday {a} degrees, today {b} degrees cooler. What is it today?
- from {a} degrees down by {b}?
- The sun was out with {a} degrees, then clouds came and it fell {b} degrees. And now?
- My room has {a} degrees. I turn the heater down by {b}. How many degrees do I get?
- {city} had {a} degrees last week. It's {b} less this week. How warm is it?
- {a} degrees minus {b} degrees

= a+b | degrees | a 2-20 b 2-15
- At breakfast we had {a} degrees. Since then it got {b} degrees warmer. How warm is it now?
- The thermometer showed {a} and rose by {b} degrees. What does it show?
- {city} is {b} degrees warmer than here. We have {a} degrees. What does {city} have?
- {a} degrees now, tomorrow {b} degrees more. How many tomorrow?
- The heater is at {a} degrees and I turn it up by {b}. What does it say?
- It is {a} degrees now, and they say {b} more for tomorrow. What will tomorrow be?
- The water has {a} degrees. I warm it by {b}. How warm is it?
- {name} has {a} degrees in the house and wants {b} more. What should the heater show?
- {a} degrees plus {b}?
'''

# the clock: it begins at {t} and takes {m} minutes, or ends at {u}

END = '''The film begins at {t} and lasts {m} minutes. When does it end?
My train leaves at {t} and needs {m} minutes to {city}. When do I arrive?
I put the cake in the oven at {t}. It needs {m} minutes. When must I take it out?
It's {t} now. What time is it in {m} minutes?
{name} starts the {event} at {t}. It takes {m} minutes. At what time is {name} done?
what time is {m} minutes after {t}
The {event} is at {t} and goes on for {m} minutes. When can I go home?
At {t} I parked the car, and the ticket is good for {m} minutes. Until when may I stay?
The doctor is {m} minutes behind. My appointment was for {t}. When is it my turn?
Start {t}, length {m} min. End?
The bus should be here at {t}, but it is {m} minutes late. When will it come?
We meet {m} minutes after {t}. What time is that?'''

BEFORE = '''I have to be at work at {u}. The way takes {m} minutes. When do I have to leave?
The {event} starts at {u} and I want to be there {m} minutes earlier. When should I be there?
What time is {m} minutes before {u}?
The film ended at {u}. It was {m} minutes long. When did it begin?
My flight goes at {u}. Boarding is {m} minutes before that. When is boarding?
dinner at {u}, cooking takes {m} min. when do i start cooking
{name} arrived at {u} after a ride of {m} minutes. When did {name} set out?
Guests come at {u}. I need {m} minutes to clean up. At what time do I begin?
The shop closes at {u}. They stop selling bread {m} minutes before. When is that?
I want to wake up {m} minutes before {u}. For what time do I set the alarm?'''

BETWEEN = '''The {event} is from {t} to {u}. How many minutes is that?
I slept from {t} to {u}. How many minutes did I sleep?
How many minutes are there between {t} and {u}?
The train leaves at {t} and arrives at {u}. How many minutes does it take?
{name} began at {t} and was done at {u}. How many minutes did it take?
from {t} till {u}, in minutes?
My bus goes at {u} and it is {t}. How many minutes do I have to wait?
It is {t}. The {event} starts at {u}. In how many minutes is that?
Lunch break starts {t}, ends {u}. Length in minutes?
We left {city} at {t} and got home at {u}. For how many minutes were we driving?'''

WEEKDAY = '''Today is {d}. What day is it in {k} days?
It's {d}. In {k} days I have my exam. Which day of the week is that?
The parcel was sent on {d} and takes {k} days. On which day does it come?
If the {event} is {k} days after {d}, what day is it on?
{name} left on {d} and comes back {k} days later. What day is that?
{d} plus {k} days?
I borrowed the book on {d} for {k} days. On what day do I have to return it?
The milk keeps for {k} days. I opened it on {d}. Until which day is it good?
whats {k} days after {d}'''

# prices with cents: {x} and {y} are prices

TIMES = '''{a} {g} at {x} [{cur} |]each. How much is that?
One coffee is {x} {cur}. What do {a} cost?
I buy {a} {g} and they cost {x} apiece. What do I pay?
A ticket costs {x} {cur} and we are {a} people. How much in all?
price {x}, quantity {a}, total?
{name} takes {a} bottles for {x} {cur} each. How much does {name} pay?
The bus is {x} {cur} a ride. What do {a} rides cost?
If a roll is {x} {cur}, how much are {a} rolls?'''

BOTH = '''A coffee for {x} and a cake for {y}. How much is that together?
The bread is {x} {cur} and the cheese {y} {cur}. What do I pay?
{x} plus {y}?
I paid {x} {cur} at the bakery and {y} {cur} at the butcher's. What did I spend?
{g} {x}, {h} {y}. sum?
{name} owes me {x} {cur} for lunch and {y} {cur} for the bus. How much is it in all?
What do I owe you for the drinks, {x} {cur}, and the food, {y} {cur}?
Milk costs {x}, butter costs {y}. I take one of each. How much do they charge?'''

BACK = '''The bill is {x} {cur}. I pay with a note of {a}. What do I get back?
It costs {x} and I give {a} {cur}. How much change?
Change from {a} {cur} for {x}?
{name} hands over {a} {cur} for a {p} at {x} {cur}. What is the change?
I have {a} {cur}. After paying {x} {cur}, what is left?
from a note of {a}, minus {x}
A sandwich is {x} {cur}. If I put down {a} {cur}, what must the seller return?'''
