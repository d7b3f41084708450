# Copyright (C) The nginx-dsa authors

"""Stories about money for daily_sums: "=" is the expression, how the result is
said, the ranges of its numbers and a condition; "-" is what a user writes."""

STORIES = '''
= a*b | cost | a 2-12w b 2-60
- [What do|How much are|How much do] {a} {g} cost if one costs {b} [cents|{cur}]?
- {a} {g} at {b} [cents|{cur}] each. [What is the total?|How much is that?|What do I pay?]
- One {p} costs {b} {cur}. What do {a} cost?
- My neighbor wants {a} {g} from the market. They sell them for {b} {cur} apiece. How much money should I take with me?
- I'm buying {a} of them, {b} {cur} each... what will they charge me?
- need the price for {a} {g}. single price: {b}
- The sign at the stall says "{g}: {b} {cur} each". I took {a}. What do I owe?
- price per piece {b} {cur}\\npieces {a}\\ntotal?
- {name} orders {a} tickets for the concert. A ticket is {b} {cur}. How much does {name} pay altogether?
- Can you work out what {a} {g} come to? They are {b} {cur} a piece.
- Everyone in our group pays {b} {cur} for the trip and we are {a}. How much do we collect?
- I want to give {a} people a {p} each. If a {p} is {b} {cur}, what does that cost me in all?
- We took {a} rides at the fair. A ride was {b} {cur}. How much did it cost us?
- Every stamp is {b} cents and I need {a}. What do they cost?
- {a} nights at {b} {cur} a night. What is the bill?
- Our school buys {a} of the {p}, each for {b} {cur}. How much is that for the school?
- i pay {b} {cur} per lesson and had {a} lessons
- {name} sells {g} at {b} {cur} apiece. If somebody takes {a}, what does {name} get?
- Haircuts are {b} {cur}. All {a} of us need one. How much is it?
- A meter of cloth costs {b} {cur}. I want {a} meters. What is the price?

= a*b+c*d | cost | a 2-6w b 2-15 c 2-6w d 2-15
- I buy {a} {g} for {b} {cur} each and {c} {h} for {d} {cur} each. What is the total?
- {a} {g} at {b} and {c} {h} at {d}. How much altogether?
- {name} gets {a} coffees, {b} {cur} each. {other} gets {c} sandwiches, {d} {cur} each. I pay for both. How much?
- My basket: {a} x {g} ({b} {cur}), {c} x {h} ({d} {cur}). Sum?
- We need {a} adult tickets ({b} {cur} each) and {c} child tickets ({d} {cur} each). What will that be in total?
- At the bakery I took {a} loaves, one is {b} {cur}, plus {c} cakes, one is {d} {cur}. What do I pay?
- shopping list with prices:\\n- {a} {g}, {b} each\\n- {c} {h}, {d} each\\nwhat does it come to?
- If {g} are {b} {cur} apiece and {h} are {d} {cur} apiece, what do {a} {g} and {c} {h} cost together?
- {name} needs {a} {g} and {c} {h}. The {g} are {b} {cur} each, the {h} {d} {cur} each. What does it cost?
- We had {a} teas for {b} {cur} each and {c} pieces of cake for {d} {cur} each. The bill?
- {a} big boxes ({b} {cur} apiece) and {c} small ones ({d} {cur} apiece). How much do I need?
- how much is {a} times {b} {cur} plus {c} times {d} {cur}
- I sold {a} {g} at {b} {cur} and {c} {h} at {d} {cur}. What did I take in?

= a+b | cost | a 3-90 b 3-90
- The {p} is {a} {cur} and shipping is {b} {cur}. What do I pay [in total|altogether]?
- I bought a {p} for {a} {cur} and {g} for {b} {cur}. How much did I spend?
- Lunch was {a} {cur}, dinner {b}. How much did we spend on food?
- {a} {cur} for the taxi and {b} {cur} for the ticket. Sum?
- {name} lent me {a} {cur} in May and {b} {cur} in June. How much do I owe {name}?
- What do a {p} at {a} {cur} and a pair of shoes at {b} {cur} cost together?
- bill one {a} {cur}, bill two {b} {cur}, add them up pls
- I earned {a} {cur} on Friday. On Saturday it was {b} {cur}. What did I make over both days?
- There are {a} {cur} in my wallet and another {b} in the drawer. How much cash do I have?
- I tip {b} {cur} on a bill of {a} {cur}. What do I pay in all?
- The ring is {a} {cur}, the box for it {b} {cur}. Both, please. How much?
- One ticket for me ({a} {cur}) and one for my son ({b} {cur}). What does it come to?
- {name} bought a {p} at {a} {cur} and later a second thing at {b} {cur}. What was spent?
- repair {a} {cur}, parts {b} {cur}, what will the bill be

= a+b+c | cost | a 3-60 b 3-60 c 3-60
- {g} {a} {cur}, {h} {b} {cur}, bag {c} {cur}. What do I pay for everything?
- I spent {a} on Monday, {b} on Tuesday and {c} on Wednesday. What is that in all?
- Please add my receipts: {a} {cur}, {b} {cur} and {c} {cur}.
- {name} put {a} {cur} into the pot, {other} put {b} {cur} and I put {c} {cur}. How much is in the pot?
- the hotel was {a}, the train {b} and food {c} {cur}. total for the trip?
- My three bills this month are {a}, {b} and {c} {cur}. What is the sum?
- A {p} for {a} {cur}, a book for {b} {cur}, flowers for {c} {cur}: what was it altogether?
- Here's what I paid:\\nbread {a}\\nmilk {b}\\nmeat {c}\\nHow much was it all?
- What is the sum of {a}, {b} and {c} {cur}?
- {name} earned {a} {cur} on Friday, {b} on Saturday and {c} on Sunday. How much in all?
- Fuel {a}, toll {b}, parking {c}. What did the drive cost?
- We collected {a} {cur}, then {b} {cur}, then {c} {cur}. How much is in the box?
- add up pls: {a} + {b} + {c}

= a-b | change | a 20-200/10 b 3-190 | a > b
- I pay with {a} {cur}. The {p} costs {b}. [What is the change?|How much do I get back?]
- How much change do I get from {a} for [something|a {p}] that costs {b}?
- The {p} costs {b}[ {cur}|]. I give {a}. [What do I get back?|And the change?]
- The bill is {b} {cur} and I only have a note of {a}. How much will the waiter give me back?
- I handed over {a} {cur} for {g} worth {b} {cur}. What change should I have got?
- change from {a} if it costs {b}?
- At the till it was {b} {cur}. {name} gave the cashier {a} {cur}. How much money does {name} get back?
- paid: {a} {cur}\\nprice: {b} {cur}\\nmy change?
- I'm working at a kiosk. A customer buys something for {b} {cur} and gives me {a} {cur}. How much must I return?
- Suppose I put {a} {cur} on the counter and the shopping is {b} {cur}. What comes back?
- My taxi ride was {b} {cur}, and the driver got {a} from me. How much should he hand back?
- Groceries: {b} {cur}. Given: {a} {cur}. Returned: ?
- The cashier has {a} {cur} from me for a bill of {b}. She must give me how much?
- Is it right that I got so little back? I paid with {a} and it cost {b}. What should it be?
- I bought stamps for {b} {cur} with a note of {a}. What comes back?
- For a book at {b} {cur} I handed in {a} {cur}. My change, please?
- got {a} on me, the ticket machine wants {b}. how much will it spit out

= a-b*c | change | a 20-100/10 b 2-8w c 2-12 | a > b*c
- I take {b} {g} at {c} {cur} each and pay with a note of {a} {cur}. What is the change?
- {name} buys {b} {g} for {c} {cur} each and pays with {a} {cur}. How much does {name} get back?
- {b} coffees, {c} {cur} each. I give the waiter {a} {cur}. How much change?
- My purse had {a} {cur}. I took {b} {g}, {c} {cur} apiece. What do I get back if I hand over everything?
- I have a note of {a} {cur} and want {b} tickets. A ticket costs {c} {cur}. How much comes back to me?
- {c} {cur} per piece, I take {b}, and I give {a} {cur}. what do i get back
- The museum costs {c} {cur} per person and there are {b} of us. From {a} {cur}, what is the change?
- {name} gives the baker {a} {cur} for {b} cakes. One cake is {c} {cur}. How much comes back?
- Rides are {c} {cur}. We want {b} rides and pay with {a} {cur}. Change?
- what's left of {a} {cur} after buying {b} {g} at {c} {cur} each
- {b} {g} for {c} {cur} apiece, please. Here are {a} {cur}. What do I get back?

= a-b | money_left | a 20-300 b 3-250 | a > b
- I had {a} {cur} and spent {b} [on {g}|for a {p}]. What is left?
- My [budget|money] is {a}, the {p} is {b}. What [remains|is left]?
- There were {a} {cur} in my account. The rent took {b}. How much is still there?
- {name} got {a} {cur} as a birthday gift and has already spent {b}. How much money does {name} still have?
- I started the day with {a} {cur}, and {b} went on lunch and parking. How much do I have now?
- out of {a} {cur} i paid {b}, whats left
- We planned {a} {cur} for the party. So far we used {b}. What can we still spend?
- I owe {name} {a} {cur}. Yesterday I gave back {b}. How much do I still owe?
- If my card has {a} {cur} on it and I buy something for {b}, what remains on the card?
- {name} has {a} {cur} for the month. The phone bill is {b}. What does {name} have left?
- My daughter had {a} {cur} in her piggy bank and took out {b}. How much is still in it?
- I won {a} {cur} and gave {b} of it to {name}. How much did I keep?
- From my {a} {cur} of pocket money, {b} went on sweets. Left over?
- We had {a} {cur} for {g}. {b} {cur} are gone. And now?
- my account says {a}. tomorrow they take {b}. what will it say then

= a-b-c | money_left | a 60-300 b 3-90 c 3-90 | a > b+c
- I had {a} {cur}. I spent {b} on {g} and {c} on {h}. What is left?
- From {a} {cur}, {b} go to food and {c} to the bus. How much remains?
- My budget for the weekend is {a}. The hotel is {b} and the train is {c}. What do I have for the rest?
- {name} has {a} {cur} saved. A {p} costs {b} {cur} and the case {c} {cur}. How much is left after buying both?
- Start: {a} {cur}. Then minus {b}, then minus {c}. Where am I now?
- There was {a} in the cash box. We took out {b} for drinks, later {c} for cake. How much should be in there?
- I get {a} {cur} a week. {b} go for lunch, and I put {c} in the piggy bank. How much can I spend freely?
- Of my {a} {cur}, {name} got {b} and {other} got {c}. What is mine?
- {a} {cur} came in. {b} {cur} went to the bank and {c} {cur} to the tax office. What stays?
- I take {a} {cur} to the fair and spend {b} on rides and {c} on food. With how much do I go home?
- what remains of {a} after {b} and then {c} are spent

= a-b | missing | a 40-400 b 5-350 | a > b
- The {p} costs {a} {cur} and I have {b}. How much do I still need?
- I'm saving for a {p}. It is {a} {cur}, so far I have {b}. How much is missing?
- {name} wants to collect {a} {cur} for the school and already has {b}. How much more is needed?
- how much short am i: have {b}, need {a}
- The trip is {a} {cur} per head. {b} is all I have got. What am I missing?
- Our goal is {a} {cur}, we are at {b} now. How much to go?
- I can put {b} {cur} towards the {a} that the {p} costs. How much must I borrow?
- My wallet has {b} {cur}. The ticket is {a}. How much more do I have to find?
- {name} lacks some money for the {p}: it costs {a} {cur}, {name} has {b}. How much is lacking?
- A new {p} is {a} {cur}. With my {b} {cur}, how far am I from it?
- the goal is {a}, the pot has {b}. what's missing

= a-b | saved | a 20-400 b 9-390 | a > b
- The {p} was {a} {cur} and is now {b}. How much [cheaper is it|do I save]?
- Old price {a}, new price {b}. What is the difference?
- Shop one wants {a} {cur} for the {p}, shop two only {b}. How much do I save in shop two?
- in the sale its {b} {cur} instead of {a}, so how much less?
- {name} paid {a} {cur} for the same {p} that I got for {b}. By how much was mine cheaper?
- By the month the pass costs {a}, with the student card {b}. What does the card save me?
- They wanted {a}, I got them down to {b}. How much did I knock off?
- Instead of {a} {cur} I only had to pay {b}. What did I save?
- The early ticket is {b} {cur}, the late one {a}. How much cheaper is the early one?
- How big is the discount if the price falls from {a} to {b}?
- {p}: was {a}, now {b}. discount?

= a/b | each_money | a 12-180 b 2-9w | a % b == 0 and a > b
- {a} {cur} for {b} [people|hours]. How much is that [each|per person|for one]?
- We are {b} and the bill is {a} {cur}. We split it evenly. What does each of us pay?
- {b} friends rent a boat for {a} {cur} and share the cost. How much per person?
- The gift for {name} costs {a} {cur}. {b} of us chip in the same amount. What is my share?
- {b} {g} cost {a} {cur}. What does one cost?
- i paid {a} for {b} of them. price of one?
- If a pack of {b} {g} is {a} {cur}, how much is a single one?
- {name} earned {a} {cur} in {b} hours. What is that per hour?
- Split {a} by {b} ways please, it's a restaurant bill.
- Dinner came to {a} {cur} and there were {b} of us at the table. Everyone pays the same. How much do I put in?
- A taxi for {a} {cur}, shared by {b} of us. My part?
- The boat costs {a} {cur} for {b} hours. What does an hour cost?
- {b} nights came to {a} {cur}. How much was one night?
- We won {a} {cur} with {b} people on the ticket. How much does each of us get?
- {b} bottles were {a} {cur}. what is one bottle

= a/10 | percent | a 20-900/10
- [What is|How much is|Calculate] 10 [%|percent] of {a}?
- The bill is {a} {cur} and I want to leave a tip of ten percent. How much tip is that?
- The {p} costs {a} {cur} and there is a discount of 10%. How much do I save?
- I save a tenth of my pay. My pay is {a} {cur}. How much do I save?
- ten percent of {a}?
- They ask for 10 percent of the price in advance. The price is {a} {cur}. What do I pay in advance?
- A tenth of the {a} guests cancelled. How many is that?
- {name} gets 10 percent of every sale. Today's sales were {a} {cur}. What does {name} get?
- Our waiter gets 10% of the bill of {a} {cur}. How much does he get?
- One in ten of the {a} {g} was bad. How many were bad?
- I give ten percent of the {a} {cur} to my sister. What does she get?
- {a} {cur}, and 10 percent of that?
- The bank wants 10 percent of {a} {cur} as a fee. What is the fee?

= a/2 | percent | a 8-800/2
- [What is|How much is] 50 [%|percent] of {a}?
- [What is|How much is|Tell me] half of {a}?
- Everything is half price. The {p} was {a} {cur} before. What does it cost now?
- We got through 50 percent of the {a} pages. How many pages is that?
- I pay half of the rent, and the rent is {a} {cur}. What is my part?
- The recipe is for {a} biscuits, but I only want half as many. How many do I bake?
- {name} and I go halves on something that costs {a} {cur}. What do I pay?
- fifty percent of {a} pls
- Children pay half. The ticket is {a} {cur}. What does a child pay?
- Of {a} people in the hall, half are students. How many students are there?
- Fifty percent of the {a} seats are sold. How many is that?
- {name} gets one half of {a} {cur}. How much is it?
- The bottle holds {a} ml and is half full. How many ml are in it?
- I have done half of my {a} exercises. How many have I done?
- at half time {a} divides into two equal parts. one part?

= a/4 | percent | a 8-400/4
- [What is|How much is] 25 [%|percent] of {a}?
- [What is|How much is|I need] a quarter of {a}[?|.]
- One quarter of the {a} seats are taken. How many seats is that?
- There is 25% off the {p}. It costs {a} {cur}. How much is taken off?
- {name} ate a quarter of the {a} {g}. How many did {name} eat?
- twenty-five percent of {a} is what?
- A fourth of my pay goes into rent. I earn {a} {cur}. How much is the rent?
- 25% of my {a} books are about travel. How many books are that?
- The tank takes {a} liters and is a quarter full. How many liters are in it?
- A quarter of {a} {cur} goes to {name}. How much does {name} get?
- We have done one fourth of the {a} km. How many km is that?
- quarter of {a}?

= a-a/10 | cost | a 20-500/10
- The {p} is {a} {cur}, minus 10 percent. What do I pay?
- A {p} costs {a} {cur}, and today everything is 10% off. What is the price today?
- Price {a}, discount ten percent. New price?
- I have a coupon for 10 percent off. Without it the {p} costs {a} {cur}. What will I pay with the coupon?
- they take 10% off {a} {cur}, whats the final price
- {name} gets a staff discount of 10 percent on a {p} for {a} {cur}. How much does {name} pay?
- If {a} {cur} goes down by 10 percent, where does it end up?
- Take 10 percent off {a}. What do you get?
- For members the price of {a} {cur} falls by ten percent. What do members pay?
- A bag of {a} kilos loses 10 percent of its weight. What does it weigh then?
- My bill was {a} {cur}, and they gave me 10% off. What did I pay?
- ten percent less than {a}?

= a+a/10 | cost | a 20-500/10
- The dinner was {a} {cur}. With a tip of 10 percent, how much do we pay in all?
- My rent is {a} {cur} and goes up by 10%. What is the new rent?
- {a} {cur} plus 10 percent. What do I get?
- The price of {a} rises by ten percent. What is it then?
- Net {a} {cur}, tax 10 percent. What is it with tax?
- {name} earns {a} {cur} and gets 10 percent more from May on. What will {name} earn?
- add 10% to {a}
- We had {a} visitors last year and 10 percent more this year. How many this year?
- My pay of {a} {cur} goes up ten percent. What will it be?
- Put 10 percent on top of {a} {cur}. The sum?
- A ticket was {a} {cur} and got 10% dearer. What is it now?
- ten percent more than {a}?

= a-a/2 | cost | a 10-400/2
- The {p} costs {a} {cur}. With 50 percent off, what do I pay?
- Everything in the shop is 50% off. A {p} was {a} {cur}. How much is it now?
- sale! minus 50 percent. old price {a} {cur}. new price?
- I have a voucher for half off and the {p} is {a} {cur}. What remains to pay?
- They cut the price of {a} {cur} by half. What do they ask now?
- Usually it is {a} {cur}, but before noon it is fifty percent less. What does it cost before noon?
- I get 50 percent off as a student. The full price is {a} {cur}. What do I pay?
- Two for one: I pay half of {a} {cur}. How much?
- The last day of the sale, all at half price. Before: {a} {cur}. Now?
- {a} {cur} minus fifty percent?

= a*b | per_time | a 5-60 b 4-12
- I save {a} {cur} a month. How much do I have after {b} months?
- The gym costs {a} {cur} a month. What do I pay for {b} months?
- {name} puts {a} {cur} aside every month. How much is that in {b} months?
- {a} {cur} per month, {b} months. total?
- My phone contract is {a} {cur} monthly and runs for {b} months. What does it cost me overall?
- If I spend {a} {cur} on coffee each week, how much do I spend in {b} weeks?
- Pocket money is {a} {cur} a week. After {b} weeks without spending anything, how much is there?
- a newspaper subscription for {b} months at {a} {cur} a month makes how much?
- The rent of my garden is {a} {cur} a month. What is it for {b} months?
- {name} pays {a} {cur} a month for the phone. After {b} months, how much was paid?
- {b} weeks, {a} {cur} a week. How much is it?
- My kid gets {a} {cur} a week. For {b} weeks, what do I have to put aside?

= a*12 | per_time | a 4-80
- I pay {a} {cur} a month for music. How much is that [a|per] year?
- The club fee is {a} {cur} monthly. What does a whole year cost?
- {a} {cur} every month, what is that in a year?
- {name} saves {a} {cur} each month. How much will it be after one year?
- My insurance takes {a} {cur} per month. What do I pay in twelve months?
- what does {a} a month come to per year
- Streaming is {a} {cur} a month now. I would like to know the cost per year.
- Each month they take {a} {cur} for the garage. What does it cost per year?
- How much is it in a year if I pay {a} {cur} a month?
- My phone is {a} {cur} a month. One year of it?
- yearly cost of something that's {a} {cur} a month?

= a*7 | per_time | a 3-60
- I spend {a} {cur} a day. How much is that a week?
- The parking lot takes {a} {cur} per day. What does a week cost?
- A day with the rented bike is {a} {cur}. How much is it for seven days?
- {a} a day, how much per week?
- Lunch costs me {a} {cur} every day, weekends too. What is that per week?
- We stay a week, and the room is {a} {cur} a night. What do seven nights cost?
- My dog eats for {a} {cur} a day. What does a week of food cost?
- {name} earns {a} {cur} a day and works all seven days. How much a week?
- Every day of the week I put {a} {cur} in a jar. How much is in it after the week?
- {a} {cur} daily, seven days. total?
'''
