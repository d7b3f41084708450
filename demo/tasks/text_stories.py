# Copyright (C) The nginx-dsa authors

"""Short coherent texts as people paste them, such as a mail of a landlord, a
job advertisement or an accident report, with questions that often use other
words than the text.  Pronouns refer to the sentence before, and two people or
things have the same kind of attribute, so the question must pick one."""

import re
from dataclasses import dataclass

from tasks import happen, names, scan, text_docs, text_frame
from tasks.arithmetic_check import affirms
from tasks.daily import line, states
from tasks.daily_rough import typed
from tasks.parts import Names, Split
from tasks.phrase import ARTICLE, capital, expand, say
from tasks.task import CHAT, Step, Turn
from tasks.tools_check import NEGATIVE, says_choice


# The marks before a sentence: "." it stands for itself; "+" it has a pronoun
# for something in the sentence before; "?" and "*" are the same, but it may be
# left out; "-" it is a line of its own.  In <kind x: value> the text has the
# value, which answers a question of the kind about x.  "#" begins a story.

STORIES = r'''
#- [Hi|Hello|Dear|Good morning] {b},
. [we meet for the {event1} on <day the {event1}: {d1}>|the next {event1} is on <day the {event1}: {d1}>|please keep <day the {event1}: {d1}> free for the {event1}].
+ It [starts|begins] at <time the {event1}: {t1}> and [ends|is over] at <end the {event1}: {t2}>.
? [We meet|The {event1} takes place] <place the {event1}: [in the {room1}|at the {spot1}]>[ this time|].
? [This time|As agreed,] <who [writes the minutes|takes the notes]: {c}> will keep the record.
? [Bring|Please bring|Do not forget to bring] <bring the {event1}: {goods1}>.
? The {event2} [was cancelled|is off], because <why the {event2} was cancelled: {moved}>.
- [Best|Regards|Cheers|See you|Yours], <who [wrote|sent] this [mail|message]: {a}>
#. [Hi all, a change of plan|Short notice|News from the office]: the {event1} [moves to|will now be on] <day the {event1}: {d2}>, because <why the {event1} was moved: {moved}>.
+ It [is|takes place] <place the {event1}: [in the {room1}|at the {spot1}]> and [lasts|takes] <lasts the {event1}: {m1} minutes>.
. The {event2} [stays|is still] on <day the {event2}: {d1}>, [but now|and it is] <place the {event2}: [in the {room2}|at the {spot2}]>.
? [If you cannot come, tell|Questions about both go to] <contact the meetings: {a}>.
? <who [does the slides|makes the slides]: {b}> [prepares|brings along] the presentation.
#- [Dear tenants|Dear all|To all tenants],
. the {part1} [will be repaired|is going to be fixed] on <day the repair: {d1}>[, as announced|].
+ It [does not work, because|is out of order, since] <why the {part1} does not work: {broken}>.
? The [workers|men] [come|arrive] at <time the work: {t1}> and [leave|finish] at <end the work: {t2}>.
? From <when the rent goes up: {date1}> on, the rent [rises to|will be] <sum the rent: {p1} euros>[ a month|].
? A parking space [costs|is] <cost a parking space: {p2} euros> [a month|per month].
? [Keys are kept by|The spare keys are with] <who [has|keeps] the [spare|extra] keys: {b}>[, first floor|].
- [Your landlord|Your landlady|Kind regards], <who [wrote|sent] this: {a}>
#. [The flat in {street1} has|In {street1} there is a flat with] <many rooms: {k1}> rooms and <size the flat in {street1}: {m1} square meters>.
+ It [costs|rents for] <cost the flat in {street1}: {p1} euros> [a month|per month] and is free from <when the flat in {street1} becomes free: {date1}>.
. [The one|The flat|Another one] in {street2} [has|measures] <size the flat in {street2}: {m2} square meters>, and [costs|the rent is] <cost the flat in {street2}: {p2} euros>.
? [To see them, call|Visits can be arranged with] <contact the flats: {a}>.
? [Pets are not allowed, because|No pets, since] <why pets are not allowed: {pets}>.
#. The {product1} [is our best seller|is new in our shop|comes from {city1}].
+ It [weighs|has a weight of] <weight the {product1}: {k1} kg> and [sells for|costs] <cost the {product1}: {p1} euros>.
. The {product2} [is heavier on the purse|comes] at <cost the {product2}: {p2} euros>[ and|, and it] weighs <weight the {product2}: {k2} kg>.
? [We give|There is] a guarantee of <lasts the guarantee: {k3} years>[ on both|].
? The {product1} [comes in|is only sold in] <color the {product1}: {color1}>, the {product2} in <color the {product2}: {color2}>.
? [Delivery takes|We deliver within] <lasts the delivery: {n3} hours>.
#. [Meet|This is|Discover] the new {product1}[ of|, made by] <who [makes|produces] the {product1}: {org1}>.
+ It is made of <material the {product1}: {material1}> and [has a battery that runs for|runs for] <lasts the battery: {n1} hours>.
* It [comes in|is sold in] <color the {product1}: {color1}>.
? [The price is|You pay] <cost the {product1}: {p1} euros>[, and|;] [shipping|postage] [adds|is] <cost the shipping: {k1} euros>.
? [You can send it back|Returns are free] until <deadline returns: {date1}>.
#. [{org1} is looking for|We at {org1} need|{org1} wants to hire] <what {org1} is looking for: a {job1}>[ in|, to work in] <place the {job1} job: {city1}>.
. [The pay is|We offer] <pay the {job1}: {p1} euros> a [week|month].
? [You must speak|Good knowledge is needed of] <what applicants must [know|speak]: {language1}>.
? [You work|The job is] <many hours a week: {h1}> hours a week[, and you get|, with] <many days of holiday: {h2}> days [off|of holiday].
? [Apply by|Send your papers before] <deadline applications: {date1}>[, please|].
? [Write to|The contact is] <contact the job: {a}>[, who leads the team|].
#. [At {org1} in {city1} two jobs are open|Two posts at {org1} in {city1} are free|Two vacancies at {org1}, {city1}].
. The {job1} [earns|gets] <pay the {job1}: {p1} euros> a week and [starts|begins] in <when the {job1} [starts|begins]: {month1}>.
. For the {job2} [there are|we pay] <pay the {job2}: {p2} euros> a week[;|,] [the work starts|it starts] in <when the {job2} [starts|begins]: {month2}>.
? [The team is led by|Head of the team is] <who [is the boss|runs the team]: {a}>.
? [Applications are open|You can apply] until <deadline applications: {date1}>.
#. {city1} [has|got] a new {spot1}[ at last|].
+ It [was opened|was inaugurated] by <who opened the new {spot1}: {a}> [in|, it was in] <when the new {spot1} was opened: {month1}>.
* The [work|construction] [took|lasted] <lasts the construction: {k1} years> and [cost|swallowed] <cost the construction: {n1} million euros>.
? The old {spot1} is closed [now|for good], because <why the old {spot1} is closed: {closed}>.
? The town [expects|counts on] <many visitors a day: {p2}> visitors a day.
? [People complain about|There are complaints about] <what people complain about: the {complaint1}>.
#. {city1} [has|counts] <many people in {city1}: {n1},000> [inhabitants|people], and [its|the] mayor is <who [governs|is mayor of] {city1}: {a}>.
. [The neighboring town of {city2}|{city2}, nearby,] [has|counts] <many people in {city2}: {n2},000>, and is [led|governed] by <who [governs|is mayor of] {city2}: {b}>.
. The two towns are <distance the other town: {n3} km> apart.
? [In {city1}, the bridge dates from|The bridge in {city1} was built in] <built the bridge in {city1}: {y1}>, the one in {city2} [from|in] <built the bridge in {city2}: {y2}>.
? [This year they plan|Together they plan] <what the towns plan: a {event1}>.
#. [On {d1}|Last {d1}], at <when the accident happened: {t1}>, [a {color1} {vehicle1} and a {vehicle2} collided|a {vehicle1} hit a {vehicle2}] <place the accident: [in {street1}|at the {spot1}]>.
? The {vehicle1} was [driven by|steered by] <who drove the {vehicle1}: {a}>, the {vehicle2} by <who drove the {vehicle2}: {b}>.
. The police were called by <who called the police: {c}>[ from the {spot2}| from a window|].
? [Injured were|There were] <many injured people: {k1}> [people|persons][ with injuries|].
? [The damage is|The loss is put at] <sum the damage: {p1} euros>.
? The [road|street] [stayed|was] closed for <lasts the closure: {n1} minutes>.
? [The cause was that|It happened because] <why the accident happened: {crash}>.
#. <who [reported|called in] the fire: {a}> [saw|noticed] smoke [in|coming from] the {room1} at <when the smoke was seen: {t1}>[ and called for help|].
. The fire brigade [came|arrived] at <when the fire brigade [arrived|came]: {t2}> with <many fire engines: {k1}> [trucks|engines].
? [It started|The fire broke out] because <why the fire [started|broke out]: {fire}>.
? The {product1} [was lost|burned], but <what was saved: the {product2}> was saved.
#. [Dear diary, today|Today] I got up at <when I got up: {t1}> [and felt|, feeling] <what I felt in the morning: {mood1}>.
. [Then|After that|In the morning] I met <who met me: {a}> <place my meeting with {a}: [at|in front of] the {spot1}>.
+ {a_She} [gave me|brought] <what {a} gave me: {goods1}> and told me about <what {a} talked about: {topic1}>.
? [In the afternoon|Later] I [went shopping and bought|found] <what I bought: a {product1}> for <cost the {product1}: {p1} euros>.
? [Dinner was|In the evening I cooked] <what I had for dinner: {dish1}>[, at home|].
? [I could not sleep, because|I am still awake, as] <why I cannot sleep: {awake}>.
#- [Minutes of the club|Club meeting|Minutes], {date1}.
. [Present were|There were] <many members at the meeting: {n1}> members[ in the {room1}|].
. [New chair is|As chair they elected] <who [leads the club|is the new chair]: {a}>, the [money is kept by|treasurer is] <who [looks after the money|is the treasurer]: {b}>.
? <who [suggested|proposed|had the idea of] a trip: {c}> proposed a trip to <place the goal of the trip: {city1}>.
? The [fee|contribution] [rises to|is now] <cost the membership: {p1} euros>[, since|, because] <why the fee rises: {fee}>.
? [The first item was|It began with] <first item: the {item1}>, [the last one|the last item was] <last item: the {item2}>.
? [We meet again on|Next meeting:] <day the next meeting: {d1}>.
#. [Our trip|The tour|Our holiday] [begins|starts] in <first stop: {city1}>[, where we stay for|, with] <many nights in {city1}: {k1}> nights.
. [Then|From there] we go to {city2} [by train|by bus] for <many nights in {city2}: {k2}> nights.
. [The last stop is|We end in] <last stop: {city3}>.
? The hotel in {city1} [costs|is] <cost the hotel in {city1}: {n1} euros> a night, the one in {city2} <cost the hotel in {city2}: {n2} euros>.
? [Our guide is|We are guided by] <who [shows us around|guides us]: {a}>.
? [We leave on|The bus leaves on] <day the departure: {d1}> at <time the departure: {t1}>.
? [Do not forget|You need] <bring the trip: {goods1}>[!|.]
#. From {city1} [it is|there are] <distance the beach: {k1} km> to the beach and <distance the castle: {n1} km> to the castle.
. [The boat trip|A tour by boat] [takes|lasts] <lasts the boat trip: {m1} minutes>, the walk <lasts the [walk|hike]: {m2} minutes>.
? [Tickets for the boat|The boat tickets] [are sold by|come from] <who sells the boat tickets: {a}>.
? The walk [starts|begins] at <time the [walk|hike]: {t1}>[ from|, at] <place the start: the {spot1}>.
? [In {month1} there is no walk, because|There is no walk in {month1}, since] <why there is no walk in {month1}: {danger}>.
#. [The {plant1} needs|Give the {plant1}] <amount water for the {plant1}: {n1} ml> of water <often the {plant1} gets water: every {k1} days>.
+ It [should stand|likes to stand] <place the {plant1}: in the {room1}>.
. The {plant2} [is thirstier|is different]: <amount water for the {plant2}: {n2} ml>, <often the {plant2} gets water: every {k2} days>.
* [Put it|It stands] <place the {plant2}: in the {room2}>.
? [Cut both in|Both are cut in] <when the plants are cut: {month1}>.
? [If leaves turn yellow, ask|For questions there is] <contact the plants: {a}>.
#. [Thanks for looking after|Here is how to care for] {pet1}, [our|the] {animal1}.
+ {pet1_She} gets <amount food for {pet1}: {n1} grams> of food <often {pet1} is fed: every {k1} hours>.
* {pet1_She} sleeps <place {pet1}'s bed: in the {room1}>.
. {pet2}, [our|the] {animal2}, [gets|eats] <amount food for {pet2}: {n2} grams>[ and|, and] is <age {pet2}: {k3} years> old; {pet1} is <age {pet1}: {k2} years> old.
? [The vet is|If one is ill, call] <contact the animals: {a}>[, phone|, number] <phone {a}: {phone1}>.
? [Never give them|They must not have] <what the animals must not eat: {goods1}>.
#. [First|To begin with], [fill the tank of the {machine1} with|the {machine1} gets] <amount water for the {machine1}: {n1} ml> of water.
. [Then press|Next, press] the <color the start button: {color1}> button[ to start|] and wait for <lasts the warming up: {k1} minutes>.
. [To stop it, use|It stops when you press] the <color the stop button: {color2}> button.
? [Clean the filter|The filter must be cleaned] <often the filter is cleaned: every {k2} weeks>.
? [If the lamp blinks, it is because|A blinking lamp means that] <why the lamp blinks: {blinks}>.
? [Repairs are done by|For repairs call] <contact repairs: {a}>.
#. {a} was born in <origin {a}: {city1}> in <when {a} was born: {y1}>.
+ {a_She} [worked as a|became a|earned {a_her} living as a] <job {a}: {job1}> and later [moved to|lived in] <home {a}: {city2}>.
* [In {y2} {a_she} founded|In {y2}, {a_she} started] <what {a} founded in {y2}: the company {org1}>.
. {a_Her} [brother|sister|cousin] {b}, born in <when {b} was born: {y3}>, [was a|worked as a] <job {b}: {job2}>[ in|, living in] <home {b}: {city3}>.
? [The two wrote|Together they wrote] a book about <what they wrote a book about: {topic1}>.
#. [Two cousins, {a} and {b}, run the {shop1}|The {shop1} belongs to {a} and {b}].
. {a} [is|turned] <age {a}: {age1} years> old and [comes from|was born in] <origin {a}: {city1}>.
+ {a_She} [does|is responsible for] <what {a} is in charge of: the {duty1}>.
. {b} is <age {b}: {age2} years> old[, from|, and was born in] <origin {b}: {city2}>.
+ {b_She} [does|is responsible for] <what {b} is in charge of: the {duty2}>.
? [The shop was opened in|They opened it in] <when the shop was opened: {y2}>.
#. [This contract is|This agreement is made] between {org1} ("the owner") and {a} ("the tenant").
. The [rent is|tenant pays] <sum the rent: {p1} euros>[ per month|], [due|to be paid] on <when the rent is due: the {nth} of the month>.
. The deposit [is|amounts to] <sum the deposit: {p2} euros>.
? [The notice period is|Notice must be given] <lasts the notice period: {k2} months>[ in advance|, in writing].
? [Repairs are paid by|The costs of repairs are borne by] <who [pays for repairs|has to pay when something breaks]: the {party1}>.
? The [contract|agreement] ends on <when the contract ends: {date1}>.
#. {a} [shall deliver|undertakes to deliver] <many {goods1} in the contract: {n1}> {goods1} to {b} [by|before] <deadline the delivery: {date1}>.
. [The price is|{b} pays] <cost the goods: {p1} euros>[, payable|, to be paid] within <lasts the time to pay: {n2} days>.
? [If the delivery is late|For each day of delay], a fine of <sum the fine for [delays|late delivery]: {p2} euros> [is due|applies].
? [Disputes are decided by|Any quarrel goes to] a court in <place the court: {city1}>.
#- [Dear parents|Note to all parents|To the parents of class {k1}],
. on <day the school trip: {d1}> [we go|the class goes] to <place the goal of the school trip: the {spot1}>[ in {city1}|].
+ [The bus leaves at <time the school trip: {t1}> and is back at|We leave at <time the school trip: {t1}> and are back at] <end the school trip: {t2}>.
? [The trip costs|Each child pays] <cost the school trip: {k2} euros>[, lunch|, and lunch is] <cost lunch: {k3} euros>[ more|].
? [Each child needs|Children should have] <bring the school trip: {goods1}>.
? [Return the form|Sign the form and send it back] by <deadline the form: {date1}>.
- [Yours|Best wishes|Thank you], <who [wrote|signed] this [note|letter]: {a}>[, head of the school|, class teacher]
#. [School ends early on|There is no lesson after noon on] <day the short school day: {d1}>, because <why school ends early: {moved}>.
. Math is [now taught by|given by] <who teaches math: {a}>, [music|and music] by <who teaches music: {b}>.
. [The {event1} is|Parents are invited to the {event1}] on <day the {event1}: {d2}>[ at|, from] <time the {event1}: {t1}>.
? [The library is looking for|The school needs] <what the school [needs|is looking for]: {goods1}>.
? [Lost things are kept by|Who lost something should ask] <contact lost things: {c}>.
#. [Last night we|We|Yesterday we] [ate|had dinner] at {org1}[ in {city1}|].
. The {dish1} was <how the {dish1}: {taste1}>, [but|while] the {dish2} was <how the {dish2}: {taste2}>.
+ [We paid|It was] <cost the {dish1}: {k1} euros> for the first and <cost the {dish2}: {k2} euros> for the second.
? [Our waiter|The waiter], <who served [us|the food]: {a}>, was <how the waiter: {mood1}>.
? We [waited|had to wait] <lasts the wait: {m1} minutes>[ for a table|], because <why the wait was so long: {wait}>.
? [I give|It gets] <many stars: {k3}> stars[ in all|].
#. [The match {team1} against {team2} ended|{team1} played {team2}, and it ended] <score the match: {k1}:{k2}>.
. [The first goal was scored by|The first to score was] <who scored [first|the first goal]: {a}> in minute <many minutes until the first goal: {n1}>.
? [The last one came from|The last goal was by] <who scored [last|the last goal]: {b}>.
? <many people in the stadium: {n2},000> people watched [in the rain|in the sun|].
? [The coach of {team1}, {c},|Coach {c}] said: "[We won|We lost|It went so] because <why it went so: {match}>."
? [Next, {team1} plays in|The next match is in] <place the next match: {city1}>[ on|, on] <day the next match: {d1}>.
#. [In the final|In the race], <who [won|came first]: {a}> [was first|won] with <lasts the run of {a}: {n1} minutes>.
. {b} [needed|took] <lasts the run of {b}: {n2} minutes>.
+ {b_She} [comes from|is from] <origin {b}: {city1}>[ and is|, and is] trained by <who [trains|coaches] {b}: {c}>.
? [The winner got|As prize there was] <what the winner got: a {product1}>.
? [The course was|They ran] <distance the finish: {k1} km> long.
#. [Weather warning|Notice]: [in|around] {city1} it will be <sky in {city1}: {sky1}> with <degrees in {city1}: {k1} degrees>[ tomorrow| on {d1}].
. {city2} [expects|gets] <sky in {city2}: {sky2}> weather and <degrees in {city2}: {k2} degrees>.
? [Strong wind is expected from|The wind comes from] <when the wind starts: {t1}>[ on|].
? [Stay away from|Keep out of] the <what people should stay away from: {spot1}>, because <why one should stay away: {danger}>.
? The [warning|notice] [ends|is lifted] on <when the warning ends: {d2}>.
#. [Hi {b}, sorry that|Sorry, {b}, that|{b}, I am so sorry that] I [missed|did not come to] <what the writer missed: the {event1}>, but <why the writer did not come: {missed}>.
. [We could meet on|Let us meet on] <day the meeting: {d1}> <place the meeting: at the {spot1}>[ instead|][.|, if you like.]
? [I still have|I will return] <what [will be returned|belongs to {b}]: the {product1}> [of yours|that you lent me].
? [My sister {c} comes along|{c} comes, too].
* {c_She} is a <job {c}: {job1}> and [lives|has a flat] in <home {c}: {city1}>.
- [Love|Yours|Bye], <who [wrote|sent] this [message|note]: {a}>
#. [Our team has two new people|We have two new colleagues|Please welcome two colleagues]: {a} and {b}.
. {a} [works as a|is our new] <job {a}: {job1}>[ and|, and] [sits|has a desk] <place the desk of {a}: in the {room1}>.
+ {a_She} [speaks|can speak] <what {a} speaks: {language1}> and [lives|has a house] in <home {a}: {city1}>.
. {b} is a <job {b}: {job2}>[ from|, and lives in] <home {b}: {city2}>.
+ {b_She} [speaks|can speak] <what {b} speaks: {language2}> and [reports to|is managed by] <who [is the boss of|manages] {b}: {c}>.
? [You reach {a} under|The phone of {a} is] <phone {a}: {phone1}>, {b} under <phone {b}: {phone2}>.
#. [The {spot1} in {city1} was built in <built the {spot1}: {y1}>, the {spot2} in <built the {spot2}: {y2}>|The {spot1} dates from <built the {spot1}: {y1}>, the {spot2} is from <built the {spot2}: {y2}>].
. [Both were designed by|The architect of both was] <who [designed|planned] them: {a}>.
+ {a_She} [also painted|was also known for] <what {a} painted: pictures of {goods1}>.
? The {spot1} [is closed in|stays closed in] <when the {spot1} is closed: {month1}>.
? [A visit|Entrance] to the {spot1} [costs|is] <cost the {spot1}: {k1} euros>, to the {spot2} <cost the {spot2}: {k2} euros>.
#. [I have lost a|Lost: a|Stolen or lost: a|My lost thing is a] <color the lost thing: {color1}> {product1}, [left|last seen|forgotten] <place the lost thing: [at the {spot1}|in the {room1}]> <when the {product1} was lost: on {d1}>.
+ It is made of <material the lost thing: {material1}>, and [inside are|it holds] <what is inside: {goods1}>.
. [The finder gets|I pay] <sum the reward: {p1} euros>[ as a reward|].
? [Please call|The number is] <phone the owner: {phone1}>[, ask for|, and ask for] <contact the lost thing: {a}>.
'''


# kind | question word | answers | statement, or none | questions

ASKS = r'''
cost | how much | {v}. / It is {v}. / [The price is|The sum is|It costs] {v}. / {v} for {x}. / [The text says|It says]: {v}. | the price of {x} is {v} | What does {x} cost? / How much is {x}? / What is the price of {x}? / how much do i pay for {x} / How expensive is {x}? / {x}: how much? / How much money is it for {x}? / Tell me the price of {x}. / What is to be paid for {x}? / I only want to know how much {x} is. / What sum is named for {x}? / How many euros is {x}? / For {x}, how much money? / What is the amount for {x}? / Can you find the sum for {x}? / what do they say {x} costs
sum | how much | {v}. / It is {v}. / [The sum is|The amount is] {v}. / {x}: {v}. / [The text says|It says]: {v}. | {x} is {v} | How [high|much] is {x}? / What is the amount of {x}? / How many euros is {x}? / {x}: how much? / what sum is {x} / Tell me how high {x} is. / To what does {x} come, in euros? / What figure is given for {x}? / How much money is it, {x}? / What does {x} amount to? / Is {x} much? How much? / What do I write down for {x}, in euros? / I'd like to know the size of {x}, in money. / What sum is named for {x}? / How large is {x}, in euros? / What amount do they state for {x}?
pay | how much | {v}. / {x} [gets|earns] {v}. / [It is|The pay is|The salary is] {v}. / [The text says|They pay] {v}. | the pay of {x} is {v} | How much does {x} earn? / What is the salary of {x}? / What does {x} get paid? / how much money does {x} make / What are the wages of {x}? / What income can {x} expect? / How well is {x} paid? / {x}: what pay? / Tell me the salary of {x}. / How many euros does {x} get? / What do they pay {x}? / What would one earn as {x} there? / I want to know the wages of {x}. / For {x}, how much is on offer? / In euros, what is the pay of {x}? / What is {x} paid?
day | on which day | On {v}. / {v}. / [It is|That is] on {v}. / {x} is on {v}. / The day is {v}. / [The text says|It says]: {v}. | {x} is on {v} | [On what|On which|What|Which] day is {x}? / When is {x}? / What day do I have to note for {x}? / Which weekday is {x}? / {x} - what day? / which day is {x} again / On what day of the week do we have {x}? / Tell me the day of {x}. / For {x}, which day is named? / Which day should I keep free for {x}? / What weekday is given for {x}? / I forgot the day of {x}. Which is it? / In which part of the week is {x}, I mean the day? / What day did they choose for {x}? / Is there a day for {x}? Which one? / When does {x} take place?
time | at what time | At {v}. / {v}. / [It is|It starts|It begins] at {v}. / {x} starts at {v}. / [The text says|The time is] {v}. | {x} begins at {v} | [What time|When] does {x} [start|begin]? / At what time is {x}? / When do I have to be there for {x}? / what time is {x} / What is the start of {x}? / At what hour does {x} begin? / {x}: from when on? / Tell me the time of {x}. / By when should I be ready for {x}? / When will {x} get going? / How early does {x} start? / From what time on is {x}? / On the clock, when does {x} start? / What time do they give for the start of {x}? / At what time does {x} kick off? / I set an alarm for {x}. What time does it start?
end | at what time | At {v}. / {v}. / [It ends|It is over|It finishes] at {v}. / {x} ends at {v}. / Until {v}. / The end is at {v}. | {x} ends at {v} | When does {x} [end|finish|stop]? / Until when is {x}? / At what time is {x} over? / How long into the day does {x} go, until when? / when is {x} done / Till when does {x} last? / What time is the end of {x}? / {x}: until when? / Tell me when {x} is over. / By what time is {x} finished? / When can I go home after {x}? / At what hour will {x} come to an end? / When are we through with {x}? / What is the closing time of {x}? / What time will it be after {x}? / From when on am I free after {x}?
place | where | {v}. / [It is|That is] {v}. / The place is {v}. / [The text says|It says]: {v}. / {x}: {v}. |  | Where is {x}? / In what place is {x}? / What is the place of {x}? / where do i find {x} / {x}: where? / Tell me where {x} is. / Where do I have to go for {x}? / At which place is {x}? / Which place is named for {x}? / What location is given for {x}? / I am looking for {x}. Where must I go? / For {x}, what is the place? / Do you see where {x} is? / Whereabouts is {x}? / Where should I look for {x}? / What is the location of {x}?
who | who | {v}. / {v} {x}. / It [is|was] {v}. / [The text says|It says] that {v} {x}. / [The text names|That would be] {v}. | {v} {x} | Who {x}? / Who was it that {x}? / Which person {x}? / Who is the one that {x}? / who {x} according to this / Name the one who {x}. / Tell me who {x}. / Do you see who {x}? / I want to know who {x}. / Somebody {x}, but who? / What is the name of the one who {x}? / By name, who {x}? / The one who {x}, who is that? / And who {x}? / Can you find out who {x}? / Whose name is given as the one who {x}?
what | what | {v}. / It [is|was] {v}. / [The text says|It says]: {v}. / [That is|The text names] {v}. |  | What is it that {x}? / What was it again that {x}? / Tell me what {x}. / Do you see what {x}? / I want to know what {x}. / Can you tell me what {x}? / What does the text say that {x}? / do you know what {x} / Find out what {x}, please. / Is it written what {x}? If so, what? / I did not get what {x}. / Read again: what is it that {x}? / What exactly is it that {x}? / Say in a word or two what {x}. / For my notes: what is it that {x}? / I forgot what {x}.
when | when | {v}. / [It is|That is|It was]: {v}. / The text says {v}. / It says: {v}. / The time given is {v}. |  | When was it again that {x}? / Could you say when {x}? / Tell me when {x}. / Do you see when {x}? / I want to know when {x}. / do you know when {x} / Is it written when {x}? When? / What does the text give as the time when {x}? / For my notes, when was it that {x}? / I need the exact date or time when {x}. / Can you find the time or date when {x}? / {x}, but when? / I did not get when {x}. / Find out when {x}. / Give me the date or time when {x}. / I was asked when {x}. What do I say?
contact | whom to ask | {v}. / [Ask|Call|Contact|Turn to] {v}. / [It is|That is] {v}. / [The text names|The contact is] {v}. / {v} can help. | {v} is the contact for {x} | Who should I [call|ask|write to] about {x}? / To whom do I turn about {x}? / Who is [responsible for|in charge of] {x}? / who do i contact for {x} / Who helps with {x}? / I have a question about {x}. Whom do I ask? / Whom should people contact about {x}? / {x}: who is the contact? / Tell me who deals with {x}. / Who knows more about {x}? / Is there a person to ask about {x}? Who? / Which name is given for {x}? / Who takes care of {x}? / If I have trouble with {x}, who is the right person? / Who will answer my questions about {x}?
bring | what to bring | {v}. / [Bring|Take|Pack] {v}. / You need {v}. / [The text says|It says]: {v}. / Do not forget {v}. |  | What should I bring to {x}? / What must I take along to {x}? / What do people need for {x}? / what do i take to {x} / What must not be forgotten for {x}? / For {x}, what do I have to pack? / What goes into my bag for {x}? / {x}: what to bring? / Which things are needed for {x}? / Tell me what to pack for {x}. / What are we asked to have with us on {x}? / Is there anything to bring to {x}? What? / What should one have ready for {x}? / I'm packing for {x}. What is needed? / Which things should be in the bag for {x}? / What do I carry with me to {x}?
job | what job | A {v}. / {x} is a {v}. / {v}. / [The job is|By trade:] {v}. / [The text says|It says]: {v}. | {x} works as a {v} | What does {x} do for a living? / What is the [job|profession|occupation] of {x}? / What does {x} work as? / what is {x} by trade / How does {x} earn money? / {x}: what profession? / What line of work is {x} in? / Tell me the job of {x}. / What kind of work does {x} do? / What trade is named for {x}? / Which profession does {x} have? / By profession, what is {x}? / With what job does {x} pay the bills? / What position does {x} hold? / What do we learn about the work of {x}? / I need the occupation of {x}.
home | where | In {v}. / {v}. / {x} lives in {v}. / [The text says|It says]: {v}. / The home of {x} is {v}. | {x} lives in {v} | Where does {x} live? / In which [city|town] does {x} live? / Where is the home of {x}? / what city does {x} live in / Where do I find {x}? / {x} lives where? / Which town is home to {x}? / Tell me where {x} lives. / To which place do I send a letter for {x}? / In what town would one visit {x}? / What is the city of {x}? / Where has {x} settled? / Which city is the home of {x}? / Where is {x} at home? / In what place does {x} have a home? / What place of residence is given for {x}?
origin | where from | {v}. / [From|In] {v}. / {x} comes from {v}. / [The text says|It says]: {v}. / The place is {v}. | {x} comes from {v} | Where was {x} born? / Where does {x} come from? / What is the home town of {x}? / where is {x} from / What is the birthplace of {x}? / From which city is {x}? / In which town was {x} born? / {x} is from where? / Tell me where {x} comes from. / Which place does {x} come from? / From what place does {x} come? / What is the origin of {x}? / What town does {x} hail from? / What place of birth is given for {x}? / What city is {x} a native of?
age | how old | {v}. / {x} is {v} old. / [The age is|It is] {v}. / [The text says|It says]: {v}. | {x} is {v} old | How old is {x}? / What is the age of {x}? / How many years old is {x}? / what age is {x} / {x}: what age? / What age is given for {x}? / Tell me how old {x} is. / How many candles would be on the cake of {x}? / I need the age of {x}. / In years, how old is {x}? / How many birthdays has {x} had? / Can you see the age of {x}? / For the form: age of {x}? / What number of years has {x} lived? / How old is {x} by now?
built | in which year | In {v}. / {v}. / [It was built|It is from the year] {v}. / {x} is from {v}. / The year is {v}. | {x} was built in {v} | When was {x} built? / In [what|which] year was {x} built? / From when is {x}? / how old is {x}, i mean what year is it from / What year does {x} come from? / What is the year of {x}? / {x}: built when? / Tell me the year of {x}. / In which year did they put up {x}? / What year was {x} finished? / Since when does {x} stand there? / Which year is given for {x}? / Since what year has {x} been there? / What is the date of {x}? / When did {x} come into being? / For {x}, which year is named?
many | how many | {v}. / [It is|It says|There are] {v}. / The number is {v}. / {v} {x}. / [The text says|The figure is] {v}. |  | How many {x} are [there|named|mentioned]? / What is the number of {x}? / how many {x} / {x}: how many? / What number of {x} is given? / Tell me how many {x}. / The text counts how many {x}? / I need the number of {x}. / Of {x}, how many are there? / How large is the number of {x}? / Can you find the number of {x}? / How many {x} is it? / What figure is given for {x}? / How many {x} does it say? / Do you see how many {x} there are? / What is the count of {x}?
size | how large | {v}. / It has {v}. / {x} has {v}. / [The size is|It is] {v}. / [The text says|It says]: {v}. | {x} has {v} | How [big|large] is {x}? / What is the size of {x}? / How many square meters does {x} have? / how much space is in {x} / What is the area of {x}? / {x}: what size? / How much room does {x} offer? / Tell me the size of {x}. / What floor space does {x} have? / How many square meters are there in {x}? / How spacious is {x}? / What area is given for {x}? / What size is named for {x}? / I need to know how large {x} is. / In square meters, how big is {x}? / What does {x} measure?
weight | how heavy | {v}. / It weighs {v}. / {x} weighs {v}. / [The weight is|It is] {v}. / [The text says|It says]: {v}. | {x} weighs {v} | How heavy is {x}? / What does {x} weigh? / What is the weight of {x}? / how many kilos is {x} / How many kg do I have to carry with {x}? / {x}: what weight? / How much does {x} weigh? / Tell me the weight of {x}. / What do the scales show for {x}? / In kilos, how heavy is {x}? / How many kilograms does {x} have? / What weight is given for {x}? / Which weight does {x} have? / I have to lift {x}. How heavy is it? / What weight do I write on the parcel with {x}? / For {x}, how many kg?
distance | how far | {v}. / It is {v}. / [The distance is|It is] {v}. / {x} is {v} away. / [The text says|It says]: {v}. | it is {v} to {x} | How far is {x}? / How far away is {x}? / What is the distance to {x}? / how many km to {x} / How many kilometers is it to {x}? / {x}: how far? / How long is the way to {x}, in km? / Tell me the distance to {x}. / How far must one go to {x}? / What distance is given for {x}? / How many km would I walk to {x}? / Is {x} far? How many km? / What stretch is it to {x}? / How much of a way is it to {x}? / I want to go to {x}. How far is that? / In kilometers, how far is {x}?
lasts | how long | {v}. / It is {v}. / [The time is|The duration is|That is] {v}. / [The text says|It says]: {v}. / {x}: {v}. | {x} lasts {v} | How long is {x}? / How long does {x} last? / What is the duration of {x}? / how long is it for {x} / For how long is {x}? / {x}: how long? / How much time is it for {x}? / Tell me the length of {x}. / What time span is given for {x}? / What period is named for {x}? / How much time does {x} cover? / What length of time is {x}? / How long must one reckon with for {x}? / For {x}, how much time? / How long do they say {x} is? / I need to know the duration of {x}.
why | why | Because {v}. / {v}. / The reason is that {v}. / [It is|That is] because {v}. / [The text says|It says] that {v}. | {x} because {v} | Why is it that {x}? / What is the reason that {x}? / {x}. Why? / For what reason is it that {x}? / why is that so: {x} / How come {x}? / What is the cause, when {x}? / Tell me why {x}. / What reason is given for the fact that {x}? / I don't get why {x}. / What is behind it that {x}? / Do you see why {x}? / How is it explained that {x}? / {x}, but what for or why? / I'd like to know why {x}. / Can you give the reason why {x}? / On what grounds is it that {x}?
color | which color | {v}. / It is {v}. / {x} is {v}. / [The color is|It says] {v}. / The text says: {v}. | {x} is {v} | [What|Which] color is {x}? / What is the color of {x}? / In what color is {x}? / what colour is {x} / {x}: what color? / Which color does {x} have? / Tell me the color of {x}. / What color do I look for with {x}? / What shade is {x}? / How do I know {x} by its color? / What color is given for {x}? / If I draw {x}, which color do I take? / Which color is named for {x}? / I need the color of {x}. / What is the tone of {x}, I mean the color? / Can you find the color of {x}?
material | what of | {v}. / Of {v}. / It is made of {v}. / [The material is|It is] {v}. / {x} is made of {v}. | {x} is made of {v} | What is {x} made of? / What material is {x}? / From what material is {x}? / what stuff is {x} made from / Which material was used for {x}? / {x}: what material? / Tell me the material of {x}. / Of what does {x} consist? / What is used to make {x}? / What do I touch when I touch {x}, I mean the material? / Which material is named for {x}? / What sort of material is {x}? / I need to know the material of {x}. / Is the material of {x} given? Which is it? / What was taken to make {x}? / By its material, what is {x}?
deadline | until when | {v}. / [Until|By] {v}. / [The deadline is|The last date is] {v}. / [The text says|It says]: {v}. | the deadline for {x} is {v} | What is the [deadline|last date|closing date] for {x}? / Until when is there time for {x}? / By when is {x} due? / what's the last day for {x} / How long can I wait with {x}, until when? / {x}: until when? / What is the latest date for {x}? / By what date must I be done with {x}? / Tell me the deadline for {x}. / When does the time for {x} run out? / Until which date is it not too late for {x}? / When is the time limit for {x}? / By which day does {x} have to be there? / What date do I write down for {x}? / What is the cut-off for {x}? / After which date is it too late for {x}?
often | how often | {v}. / It is {v}. / That is {v}. / [The text says|It says]: {v}. / {x} {v}. | {x} {v} | How often is it that {x}? / Tell me how often {x}. / What does it say about how often {x}? / do you know how often {x} / I want to know how often {x}. / At what interval is it that {x}? / {x}, but how often? / Do you see how often {x}? / In what rhythm is it that {x}? / I forgot how often {x}. / Is it written how often {x}? What is it? / For my calendar: how often is it that {x}? / Please say how often {x}. / How regularly is it that {x}? / How much time lies between the times when {x}? / Find out how often {x}.
amount | how much | {v}. / It is {v}. / [Take|Use|Give] {v}. / [The amount is|It says] {v}. / The text says: {v}. |  | How much {x}? / What amount of {x}? / how much {x} is needed / What is the right amount of {x}? / How much {x} should it be? / {x}: how much? / Tell me how much {x}. / What quantity of {x} is given? / How much {x} do I take? / I need the amount of {x}. / What is the dose of {x}? / How much do I measure of {x}? / What does it say on the amount of {x}? / Of {x}, how much? / What portion of {x} is named? / Can you see how much {x} is right?
degrees | how warm | {v}. / It is {v}. / [The temperature is|They have] {v}. / It is {v} {x}. / The text says: {v}. | it is {v} {x} | How [warm|cold|hot] is it {x}? / What is the temperature {x}? / How many degrees {x}? / what temp is it {x} / What does the thermometer show {x}? / {x}: how many degrees? / What temperature is forecast {x}? / How warm does it get {x}? / Tell me the temperature {x}. / Which temperature do they have {x}? / How many degrees do they expect {x}? / What temperature is given for those {x}? / I pack for a day {x}. How warm is it? / With how many degrees do I reckon {x}? / What is the forecast in degrees {x}? / On a thermometer {x}, what do I read?
sky | how | {v}. / It is {v}. / [The weather is|They have] {v}. / It is {v} {x}. / The text says: {v}. | it is {v} {x} | What is the weather like {x}? / How is the weather {x}? / What sort of weather is there {x}? / whats the weather {x} / What does the sky look like {x}? / {x}: what weather? / What weather can I expect {x}? / Tell me the weather {x}. / Which weather is forecast {x}? / What do they say about the weather {x}? / What is the sky like {x}? / What kind of day is it {x}, by the weather? / How will the weather be {x}? / Do I see the sun or what {x}? / In a word, how is the weather {x}? / For a trip, what is the weather {x}?
how | how | {v}. / It was {v}. / {x} was {v}. / [The text says|The word is] {v}. | {x} was {v} | How was {x}? / How is {x} described? / What is said about {x}? / how did the writer find {x} / What word is used for {x}? / {x}: how was it? / What did the writer think of {x}? / Tell me how {x} was. / Which word describes {x}? / What was {x} like? / In a word, how was {x}? / How does the text judge {x}? / What opinion is there of {x}? / What do we learn about {x}? / How would the writer describe {x}? / By this text, how was {x}?
first | which first | {v}. / It is {v}. / First comes {v}. / [The first {x} is|It begins with] {v}. | the first {x} is {v} | [What|Which] {x} comes first? / What is the first {x}? / Which {x} is the first one? / first {x}? / With which {x} does it begin? / What {x} is at the beginning? / Tell me the first {x}. / Which is {x} number one? / What {x} do they start with? / Name the {x} that comes before all others. / At the start, which {x} is it? / Of all, which {x} is first? / What is the opening {x}? / Which {x} stands at the start? / What {x} is ahead of the others? / In the order of the text, which {x} is first?
last | which last | {v}. / It is {v}. / Last comes {v}. / [The last {x} is|It ends with] {v}. | the last {x} is {v} | [What|Which] {x} comes last? / What is the last {x}? / Which {x} is the final one? / last {x}? / With which {x} does it end? / What {x} is at the end? / Tell me the last {x}. / Which {x} closes it? / What {x} do they finish with? / Name the {x} after which there is no other. / At the end, which {x} is it? / Of all, which {x} is last? / What is the final {x}? / Which {x} stands at the end? / What {x} is behind all others? / In the order of the text, which {x} is last?
phone | which number | {v}. / It is {v}. / [The number is|Dial|Call] {v}. / The text says: {v}. |  | What is the phone number of {x}? / At what number can I reach {x}? / Which number do I dial for {x}? / number of {x} pls? / How do I reach {x} by phone? / {x}: phone? / I want to call {x}. What is the number? / Tell me the number of {x}. / What do I dial to get {x}? / Under which number is {x}? / Which telephone number is given for {x}? / What digits do I type to call {x}? / On the phone, how do I get {x}? / Can you find the phone number of {x}? / What is the number to call for {x}? / Where can {x} be called, I mean the number?
score | what result | {v}. / It ended {v}. / [The score was|The result is] {v}. / The text says: {v}. | {x} ended {v} | What was the [result|score] of {x}? / How did {x} end? / What did {x} end with? / how did {x} finish / {x}: what result? / Tell me the score of {x}. / What was the final score of {x}? / With what result did {x} end? / How did {x} go, in goals? / What stood on the board after {x}? / How many goals each in {x}? / Give me the numbers of {x}. / What figure did {x} end on? / How many goals on each side in {x}? / What does it say about the outcome of {x}? / In numbers, how did {x} turn out?
'''

# a kind, "<" for who has the smaller number or ">" for the larger one

COMPARE = '''
cost < Which is cheaper, {a} or {b}? / What costs less: {a} or {b}? / I want to pay less. {a} or {b}? / Of {a} and {b}, which has the lower price?
cost > Which is more expensive, {a} or {b}? / What costs more: {a} or {b}? / Of {a} and {b}, which is dearer? / For which do I pay more, {a} or {b}?
pay < Who earns less, {a} or {b}? / Which is paid worse: {a} or {b}? / Of {a} and {b}, who has the lower pay?
pay > Who earns more, {a} or {b}? / Which is paid better: {a} or {b}? / Of {a} and {b}, who makes more money?
age < Who is younger, {a} or {b}? / Is {a} or {b} the younger one? / Of {a} and {b}, who has lived fewer years?
age > Who is older, {a} or {b}? / Is {a} or {b} the older one? / Of {a} and {b}, who was born first?
built < Which is older, {a} or {b}? / What was there first: {a} or {b}? / Of {a} and {b}, which was built earlier?
built > Which is newer, {a} or {b}? / What was built later: {a} or {b}? / Of {a} and {b}, which is the younger one?
size < Which is smaller, {a} or {b}? / Of {a} and {b}, which has less room? / What has fewer square meters: {a} or {b}?
size > Which is larger, {a} or {b}? / Of {a} and {b}, which has more space? / What is bigger: {a} or {b}?
weight < Which is lighter, {a} or {b}? / Of {a} and {b}, which weighs less? / What is easier to carry by its weight: {a} or {b}?
weight > Which is heavier, {a} or {b}? / Of {a} and {b}, which weighs more? / What has more kilos: {a} or {b}?
distance < Which is nearer, {a} or {b}? / Of {a} and {b}, which is closer? / To which is the way shorter: {a} or {b}?
distance > Which is farther away, {a} or {b}? / Of {a} and {b}, which is more distant? / To which is the way longer: {a} or {b}?
lasts < Which is shorter, {a} or {b}? / Of {a} and {b}, which takes less time? / What is over sooner: {a} or {b}?
lasts > Which is longer, {a} or {b}? / Of {a} and {b}, which takes more time? / What lasts longer: {a} or {b}?
degrees < Where is it colder, {a} or {b}? / Is it cooler {a} or {b}? / Which has the lower temperature: {a} or {b}?
degrees > Where is it warmer, {a} or {b}? / Is it hotter {a} or {b}? / Which has the higher temperature: {a} or {b}?
'''

YES_NO = Split("Is it true that {s}? / {s}, right? / {s}. Is that correct? / Does it say that {s}? / I think that {s}. Am I right? / Can I tell people that {s}? / So {s}? / I was told that {s}. True? / Is it correct that {s}? / Would it be right to say that {s}? / {s}, yes or no? / Yes or no: {s}? / Am I right that {s}? / My neighbor says that {s}. Is it so? / If I say that {s}, is that right? / Can it be that {s}? / I read that {s}. Did I get that right? / {s}, or did I mix something up? / is it so that {s} / Do I understand correctly that {s}?".split(' / '))
YES = 'Yes. / Yes, {s}. / Yes, that is [right|so|correct]. / Yes, the text says so.'
NO = 'No, {s}. / No, it says {v}. / No: {v}. / No, that is wrong: {s}.'

COMPARED = '{v}. / It is {v}. / [That is|The answer is] {v}. / {v}, with {n}. / {v}: {n}, [but|and] {o}: {m}. / {v}, because it says {n}, not {m}.'.split(' / ')
NEAR = '[About|On|Of] {k} I [read|find]: "{s}" [It|That] does not say {w}.'

# what the slots of STORIES can be, and the reasons that may have slots

WORDS = '''
animal: beagle, canary, cat, cockatoo, dog, ferret, goat, guinea pig, hamster, hedgehog, horse, parrot, pony, poodle, rabbit, snake, terrier, tortoise
color: beige, black, blue, brown, crimson, gold, gray, green, olive, orange, pink, purple, red, silver, turquoise, violet, white, yellow
complaint: bad light, closed doors, dirt, dust, high prices, long way, lost parking spaces, noise, queues, smell, traffic, ugly roof
duty: accounts, advertising, baking, cleaning, deliveries, orders, purchasing, repairs, sales, staff, website, window displays
item: accounts, annual report, budget, elections, fence, new rules, new sign, roof, summer party, website, youth group, donations
machine: bread maker, carpet cleaner, coffee machine, dishwasher, espresso machine, humidifier, ice cream maker, rice cooker, soup maker, steam iron, washing machine
material: aluminum, bamboo, brass, canvas, ceramic, copper, cork, glass, leather, linen, oak, pine, plastic, rubber, silver, steel, wool
party: owner, tenant
club: Athletic, City, Rangers, Rovers, Town, United, Wanderers
mood: cheerful, friendly, grumpy, impatient, lazy, lonely, nervous, proud, relaxed, rude, sleepy, tired
part: door bell, drain, elevator, front door, garage door, gutter, heating, intercom, mailbox, roof, stair light, water pump
plant: aloe, daisy, jade tree, monstera, azalea, basil, begonia, cactus, fern, fig tree, geranium, hibiscus, ivy, lemon tree, lily, mint, orchid, palm, rosemary
sky: calm, cloudy, dry, foggy, hazy, humid, icy, mild, rainy, snowy, stormy, sunny, wet, windy
taste: bland, burned, cold, creamy, delicious, dry, excellent, fresh, greasy, overcooked, perfect, salty, spicy, sweet, tasteless, too sour
vehicle: ambulance, bus, camper, coach, delivery van, limousine, jeep, milk truck, motorcycle, pickup, taxi, tractor, tram, truck
'''

REASONS = '''
moved: {c} is ill; the {room3} is being painted; the heating is broken; a storm is coming; half of us are at a wedding; the power will be off; {c} is stuck in {city3}; the teachers have a training; the {room3} is flooded
broken: a cable has melted; the motor is too old; a part from {city3} is missing; somebody lost the key; water got into it; a mouse bit through the wire; the lightning hit the house
pets: the neighbors are allergic; the floors are new; the landlord has had trouble with a {animal1}; the walls are thin; the garden belongs to {b}; the insurance forbids it
closed: the roof leaks; there is no money for staff; a storm has damaged the doors; too few people came; the walls have cracks; the owner moved to {city3}
crash: the road was icy; a {animal1} ran across the street; the traffic light was out; one driver looked at the phone; the sun was low; the brakes failed; fog covered the road
fire: a candle fell over; the {machine1} was left on; a cable was broken; somebody smoked in bed; hot ashes lay in the bin; lightning struck the chimney; the oven was too hot
awake: the neighbors have a party; I drank too much coffee; the {animal1} is making noise; tomorrow I fly to {city3}; my tooth hurts; it is too hot in the {room3}; the moon is so bright
fee: the heating costs more; the roof must be repaired; a sponsor has left; the {room3} needs new chairs; the trainer wants more money; they lost the case in {city3}
blinks: the filter is full; the tank is empty; the lid is open; the water is too hard; the plug is loose; the motor is too hot
wait: the oven was broken; the cook was ill; a wedding party sat at all tables; they had lost our booking; a bus from {city3} had just arrived; only one waiter was there
match: the defense was awake; the keeper was ill; we trained well in {city3}; the referee was blind; the grass was wet; two players were missing; nobody gave up
danger: trees may fall; the river is rising; the roof is loose; the path is flooded; the bridge may break; the ground is too wet; cables hang down
missed: my train from {city3} was late; I had a fever; the {product2} broke; I had to wait for the plumber; my {animal1} was ill; I forgot the date; the car did not start; I lost my keys
'''


def listed(text, mark):
    return {top: Split(rest.strip().split(mark)) for top, _, rest in (
        row.partition(':') for row in text.strip().split('\n'))}


SITES = Split(w for w in happen.SPOTS if w not in (
    'beach', 'camp site', 'forest', 'hill', 'lake', 'river', 'village'))
WORDS, REASONS = listed(WORDS, ', '), listed(REASONS, '; ')
LISTS = dict(WORDS, city=names.PLACES, event=names.EVENTS, goods=names.GOODS,
             room=names.ROOMS, spot=SITES, month=happen.MONTHS,
             job=text_docs.JOBS, topic=names.TOPICS, shop=text_docs.SHOPS,
             language=names.LANGUAGES, **{what: Names(
                 (w for w in words if w[-1] != 's'), names.crossed) for what,
                 words in (('product', names.PRODUCTS),
                           ('dish', text_docs.DISHES))})
STORIES = Split(STORIES.strip()[1:].split('\n#'))
COMPARE = {(kind, sign): Split(asks.split(' / ')) for kind, sign, asks in (
    row.split(' ', 2) for row in COMPARE.strip().split('\n'))}
ASKS = {kind: (word, said.split(' / '), statement, Split(asks.split(' / ')))
        for kind, word, said, statement, asks in (
            row.split(' | ') for row in ASKS.strip().split('\n'))}

# first names that are mostly of men; those that end with "a" are of women

HIS = re.compile(r'([^k]o|us|rd|rt|ld|ck|im|ph|ob|las|[ngm]uel)$')
BOTH = ('Akira', 'Ezra', 'Hamza', 'Sasha')


def person(rng):
    """Returns a name, and true if it is of a woman."""

    name = BOTH[0]

    while name in BOTH or name in names.FIRST and name[-1] != 'a' \
            and not HIS.search(name):
        name = rng.choice(names.FIRST)

    return name, name[-1] == 'a' or not HIS.search(name) \
        and rng.random() < 0.5


def slots(rng):
    """Returns the words, numbers and people of a story."""

    given = {'nth': f'{rng.randrange(5, 20)}th'}

    for what, words in LISTS.items():
        found = rng.sample(words, min(3, len(rng.of(words))))
        given.update((f'{what}{i + 1}', w) for i, w in enumerate(found))

    for who, last in zip(('a', 'b', 'c', 'pet1', 'pet2'),
                         rng.sample(names.LAST, 5)):
        name, her = person(rng)
        way = rng.random()

        if who in 'abc' and way < 0.3:
            name = expand(rng, '[Ms|Mrs]' if her else 'Mr') + ' ' + last
        elif who in 'abc' and way < 0.6:
            name += ' ' + last

        given.update({who: name, who + '_She': 'She' if her else 'He',
                      who + '_she': 'she' if her else 'he',
                      who + '_Her': 'Her' if her else 'His',
                      who + '_her': 'her' if her else 'his'})

    days, start = happen.DAYS.split('|'), rng.randrange(6)
    minute = rng.choice(('00', '10', '15', '30', '40', '45'))
    many = {'n': range(14, 98), 'k': range(2, 13), 'p': range(103, 990),
            'h': range(20, 41), 'm': range(20, 180, 5), 'age': range(19, 88)}

    for what, numbers in many.items():
        given.update((f'{what}{i + 1}', n)
                     for i, n in enumerate(rng.sample(numbers, 3)))

    year, hour = rng.randrange(1850, 1920), rng.randrange(6, 17)

    for i, later, hours, day in (
            ('1', 0, 0, start), ('2', rng.randrange(24, 70), rng.randrange(
                1, 5), rng.randrange(start + 1, 7)), ('3', rng.randrange(
                    1, 9), 5, 6)):
        given['y' + i], given['d' + i], given['t' + i] = \
            year + later, days[day], f'{hour + hours}:{minute}'
        given[f'date{i}'] = f'{given["month" + i]} {rng.randrange(1, 29)}'
        given[f'org{i}'] = capital(names.syllables(rng)) + rng.choice(
            ('', ' ' + rng.choice(names.LAST)))
        given[f'street{i}'] = rng.choice(names.LAST) + ' Street'
        given[f'team{i}'] = f'{given["city" + i]} {rng.choice(WORDS["club"])}'
        given[f'phone{i}'] = str(rng.randrange(10 ** 5, 10 ** 7))

    given.update([(what, rng.choice(words).format(**given))
                  for what, words in REASONS.items()])

    return given


@dataclass
class Fact:
    """What a text says; raw and open are x and v of the template."""
    kind: str
    raw: str
    x: str
    open: str
    v: str
    seen: str


BRACED = re.compile(r'{.*?}')
COMMON = set("""a about an and are as at be because by did do does euros for
from has have he her his how i in is it many me much my not of on or our s she
that the there this to us was we were what when where which who why will with
you your""".split())
MARKED = re.compile(r'<(\w+) ([^<>]*?): ([^<>]*)>')


def told(rng, given):
    """Returns the sentences of a text, each with the space before it, its
    facts, and those that were left out."""

    sentences, facts, gone, chain = [], [], [], ''
    gap, alone, known = rng.choice(('\n', '\n', '\n\n', ' ')), True, True
    units = re.findall(r'[^+*\n].*(?:\n[+*].*)*', rng.choice(STORIES))
    free = [i for i, unit in enumerate(units) if unit[0] == '?']
    put = dict(zip(free, rng.sample(free, len(free))))

    for row in '\n'.join(units[put.get(i, i)] for i in range(
            len(units))).split('\n'):
        mark, form = row[0], expand(rng, row[2:])
        said = capital(filled(MARKED.sub(r'\3', form), given))
        there = (mark not in '?*' or rng.random() < 0.65) \
            and (known or mark not in '+*')
        seen = f'{chain} {said}' if mark in '+*' else said
        known = there if mark not in '+*' else known
        (facts if there else gone).extend(
            Fact(kind, x, filled(x, given), v, filled(v, given), seen)
            for kind, x, v in MARKED.findall(form))

        if there:
            sentences.append((gap if alone or mark == '-' else ' ', said))
            chain, alone = seen, mark == '-'

    return sentences, facts, gone


def filled(text, given):
    return ARTICLE.sub(r'\1n ', text.format(**given))


def bare(text):
    """Returns a value or a name as the answer must have it: a number without
    its unit, other words without preposition and article."""

    number = re.match(r'([\d,]+) (?!million)', text)

    return number[1] if number else re.sub(
        r'^((in|at|on|in front of|the|a|an) )+', '', text)


def shared(question, text, but=''):
    """Returns the longest run of words that a question and a text have, but
    for some words, or ''."""

    asked, words = (re.findall(r"[\w'-]+", t) for t in (question, text))
    asked = f' {" ".join(asked)} '.lower()
    out = COMMON | set(but.lower().split())
    runs = [' '.join(words[i:j]) for i in range(len(words))
            for j in range(i + 1, min(i + 7, len(words)) + 1)
            if words[i].lower() not in out and words[j - 1].lower() not in out]

    return max((r for r in runs if f' {r.lower()} ' in asked and r in text),
               key=len, default='')


def turn(rng):
    """Returns the Turn of a text and a question about it."""

    given, other = slots(rng), slots(rng)
    sentences, facts, gone = told(rng, given)
    text = ''.join(gap + said for gap, said in sentences).strip()
    twins = [(f, g) for f in facts for g in facts if f.kind == g.kind
             and f.x != g.x and f.v != g.v]
    likely, way = facts + [f for f, _ in twins], rng.random()
    pairs = [(f, g) for f, g in twins if (f.kind, '<') in COMPARE
             and f.v.split(' ')[1:] == g.v.split(' ')[1:]
             and (BRACED.sub('', f.raw) == BRACED.sub('', g.raw)
                  or f.kind in ('distance', 'lasts'))]
    absent = [Fact(f.kind, '', x, '', '', '') for f in likely
              for x in [filled(f.raw, other)] if x != f.x
              and bare(x).lower() not in text.lower()]

    there = True

    if pairs and way < 0.25:
        question, thoughts, answer, wrong = compared(rng, *rng.choice(pairs))
    elif gone + absent and way > 0.82:
        there = False
        question, thoughts, answer, wrong = missing(
            rng, rng.choice(gone or absent if way > 0.91 else absent or gone),
            [said for _, said in sentences])
    else:
        question, thoughts, answer, wrong = stated(
            rng, rng.choice(likely), twins, other, way < 0.45)

    thoughts = scan.looked(rng, scan.sentences(text), question, thoughts,
                           there)

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    return Turn(text_frame.framed(rng, text, question), gold=gold,
                check=lambda said, calls: 'there was nothing to call'
                if calls else wrong(said))


def stated(rng, fact, twins, other, doubted):
    """Returns question, thoughts, answer and check, for what a fact says or
    for yes or no."""

    _, answers, statement, asks = ASKS[fact.kind]
    x, v = fact.x, fact.v
    twins = [g for f, g in twins if f is fact]

    if doubted and statement:
        y = v if rng.random() < 0.5 else rng.choice(
            [g.v for g in twins] or [filled(fact.open, other)])
        yes = y == v
        question = typed(rng, rng.choice(YES_NO), True,
                         s=statement.format(x=x, v=y))
        answer = say(rng, rng.choice((YES if yes else NO).split(' / ')),
                     s=statement.format(x=x, v=v), v=v)
        thoughts = text_frame.found(
            rng, shared(question, fact.seen, f'{v} {y}'), fact.seen, v) \
            + f' Asked is "{y}": ' + ('yes.' if yes else f'no, "{v}".')

        return question, thoughts, answer, lambda said: affirms(said, yes)

    question = typed(rng, rng.choice(asks), True, x=x)
    question = capital(question) if rng.random() < 0.7 else question
    answer = capital(say(rng, rng.choice(answers), x=x, v=v))
    out = [bare(g.v) for g in twins if not states(answer, bare(g.v))]
    thoughts = text_frame.found(rng, shared(question, fact.seen, v),
                                fact.seen, v)

    return question, thoughts, answer, lambda said: None if states(
        said, bare(v)) and not any(states(said, w) for w in out) \
        else f'"{bare(v)}" is not in, or is not alone in: {said}'


def compared(rng, f, g):
    """The same for which of two is more or less."""

    sign = rng.choice('<>')
    question = typed(rng, rng.choice(COMPARE[f.kind, sign]), True,
                     a=f.x, b=g.x)
    low, high = sorted((f, g), key=lambda e: int(
        re.search(r'\d+', e.v.replace(',', ''))[0]))
    best, rest = (low, high) if sign == '<' else (high, low)
    seen = f'"{f.seen}"' + ('' if g.seen == f.seen else f' "{g.seen}"')
    thoughts = f'{bare(f.x)}, {bare(g.x)}: {seen} {f.v}, {g.v}: ' \
        f'{"less" if sign == "<" else "more"} is {best.v}, {bare(best.x)}.'
    answer = capital(say(rng, rng.choice(COMPARED), v=best.x, n=best.v,
                         o=rest.x, m=rest.v))
    both = [bare(f.x), bare(g.x)]

    return question, thoughts, answer, lambda said: says_choice(
        said, bare(best.x), both)


def missing(rng, fact, sentences):
    """The same for what the text does not say."""

    word, _, _, asks = ASKS[fact.kind]
    question = capital(typed(rng, rng.choice(asks), True, x=fact.x))
    found = max(sentences, key=lambda s: len(shared(question, s)))
    k = fact.raw and shared(question, found)
    thoughts = expand(rng, NEAR).format(k=k, s=found, w=word) if k \
        else text_frame.not_found(rng, bare(fact.x))

    return question, thoughts, line(rng, text_frame.MISSING), \
        lambda said: None if NEGATIVE.search(said) \
        else f'claims what is not said: {said}'
