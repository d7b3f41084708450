# Copyright (C) The nginx-dsa authors

"""Services that read more of what the user has: orders, bookings, messages,
notes, the shopping list, birthdays, accounts, subscriptions, fitness, the
state of the home."""

from tasks import names, spoken
from tasks.api import FIELDS, parameter, service
from tasks.spoken import aside
from tasks.times import clock, day
from tasks.uses import kinds, loosely, one_of
from tasks.uses_act import DEVICE, message
from tasks.uses_do import FOOD


# names of the fields of results, beside those of api.py

FIELDS.update({
    'product': 'product item article name',
    'date': 'date day on when due_date',
    'code': 'code reference booking_code pnr confirmation',
    'amount': 'amount quantity count pieces',
    'balance': 'balance amount available current_balance saldo',
    'steps': 'steps step_count num_steps',
    'sleep': 'sleep sleep_hours hours_slept slept_h',
    'device': 'device entity appliance',
    'room': 'room area zone',
})


def money(rng):
    return f'{rng.randrange(3, 900)}.' + rng.choice(
        ('00', '20', '50', '80', '90', '99'))


def shop_name(rng):
    return f'{rng.choice(names.ADJECTIVES)} {rng.choice(names.NOUNS)}'.title()


ORDERS = service('my orders', '''[list|get|show|find] [orders|purchases|order history|my orders]
[orders|purchases|shop orders] [list|get|history|search]''',
'''[Lists|Returns|Shows] the orders [of the user|of the user at a shop]
[Order history|Purchases] at a shop: product, price and state
What the user bought at a shop''', [
    parameter('shop', 'shop store merchant vendor seller where',
              '[The|Name of the] shop'),
    parameter('limit', 'limit max_results', 'How many at most',
              kind='integer', needed=False)],
    'product cost state')


def orders_case(rng):
    records = [dict(product=p, cost=money(rng), state=one_of(
        rng, 'shipped|delivered|paid|open|cancelled|returned|packed'))
        for p in rng.sample(names.PRODUCTS, rng.randint(1, 4))]
    top = max(records, key=lambda r: float(r['cost']))

    return dict(**aside(rng), shop=shop_name(rng), records=records,
                n=len(records), **records[0], top=top['product'],
                all=', '.join(r['product'] for r in records),
                last=records[-1]['product'], most=top['cost'])


MINE = kinds(ORDERS, orders_case, '''
= list what I ordered at the {shop}
@ shop
- What [did I order|have I ordered|did I buy] at the {shop}?
- [Show|List|Give me] my orders [at|from] the {shop}.
- {shop}: what have I bought there?
- [Can|Could] you check what I ordered from the {shop}?
- [I forgot|I don't remember] what I ordered at the {shop}. [List it.|Can you look?]
- my orders {shop} pls
- [I'm doing my taxes|I'm cleaning up]. Which things did I order from the {shop}?
- Order history for the {shop}, please.
- Which of my orders [are|come] from the {shop}?
- I want to see everything that I bought from the {shop}.
- The {shop} sent me a bill. What did I order there?
- Tell me the products that I ordered in the {shop}.
- Purchases at the {shop}?
- What all I have ordered in the {shop}?
- Orders at {shop}: which?
- I've shopped at the {shop} a few times. What was it?
- Look up my purchases from the {shop}.
- Before I order again at the {shop}, what did I get last time? All orders, please.
- Could you show everything from the {shop} in my order history?
- What have I got from the {shop} so far?
- {shop} orders, list them
- There should be some orders at the {shop}. Read them to me.
> You ordered: {all}.
> {all}.
> At the {shop} you [ordered|bought]: {all}.
> [Your orders|Your order history] at the {shop}: {all}.
> [I see|I found|There is]: {all}.
> [It was|That was]: {all}.
> From the {shop}: {all}.
> Bought there: {all}.
+ {product}; {last}

= check the state of my {product} from the {shop}
@ shop
- [What is|What's] the state of my {product} from the {shop}?
- I ordered a {product} at the {shop}. [What's happening with it?|Is it on its way?|Any news?]
- {shop}, the {product}: status?
- [Has the {shop} handled|Did the {shop} do something about] my order of a {product}? Tell me its state.
- [Can|Could] you check my {product} order at the {shop}?
- Still waiting for my {product} from the {shop}. What does the order say?
- status of {product} order, {shop}
- How is my order of the {product} at the {shop} [doing|going]?
- Look up my orders at the {shop}. I only care about the {product}: what's its state?
- Please say me what state has my {product}, I bought it in {shop}.
- Where does my order of the {product} stand? It's from the {shop}.
- The {shop} promised me a {product}. Check the state of the order.
- My {product}, ordered at the {shop} - which state is it in?
- [No news|Nothing] from the {shop} about my {product}. What's the status?
- Order status please: {product}, {shop}.
- Is my {product} from the {shop} shipped, open or what? Tell me the state.
> [The|Your] {product} is {state}.
> {state}.
> [It says|State|Status]: {state}.
> The order of the {product} is marked {state}.
> According to the {shop}, it is {state}.
> {product}: {state}.
> Your {product} [from the {shop}|] is listed as {state}.
+ {state}

= find the most expensive order at the {shop}
@ shop
- [What is|What's|Which is] the most expensive thing I [ordered|bought] at the {shop}?
- Which of my orders at the {shop} cost the most?
- [Look at|Check] my orders from the {shop}: which product was the dearest?
- Most expensive order, {shop}?
- I [must have|have] spent a lot at the {shop}. What was my biggest order there?
- Of all my {shop} orders, name the one with the highest price.
- Can you find the priciest item of my orders at the {shop}?
- what cost me most at the {shop}
- For what did I pay most at the {shop}?
- Name my priciest {shop} order.
- In my orders from the {shop}, which one has the highest price?
- Which purchase at the {shop} was the most expensive?
- What's the costliest thing that I got from the {shop}?
- Sort my orders from the {shop} by price and tell me the top one.
> [It was|That was] the {top}[, {most}|].
> The {top}[ for {most}|].
> The {top} cost the most[, namely {most}|].
> {top}, {most}.
> Your most expensive order was the {top}.
> [The dearest was|You paid most for] the {top}.
+ {top}
''', 'shop')

TRIP = service('my bookings', '''[get|find|show|look up] [booking|reservation|trip|itinerary]
[bookings|booking|trips|itinerary] [get|find|lookup|details]''',
'''[Returns|Finds|Shows] a booking [of the user|by city|]
[Bookings|Trips]: date, time and code of a trip to a city
Look up what the user booked''', [
    parameter('city', 'city destination to place where', '[City|Destination]'
              '[ of the trip|]')],
    'city date time code')


def trip_case(rng):
    said, date = spoken.date(rng)

    return dict(**aside(rng), city=rng.choice(names.PLACES), date=date,
                time=clock(rng), code=''.join(rng.choice(
                    'ABCDEFGHJKLMNPQRSTUVWXYZ23456789') for _ in range(6)))


MINE += kinds(TRIP, trip_case, '''
= find when my trip to {city} is
@ city
- When [is|do I leave for] my trip to {city}?
- [On which day|What day] do I [go|travel|fly] to {city}?
- {city} trip - when?
- [I booked something to|I have a booking for] {city}. What's the date?
- [Can|Could] you check the date of my {city} booking?
- My [boss|sister|landlady] asks when I'm away. It's the trip to {city}, [so when is it|which date]?
- date of my booking to {city} pls
- How is it with {city}, when I am travelling?
- I forgot when I'm off to {city}. [Look it up.|Help!]
- Which date did I book for {city}?
- When am I going to {city}? I can't find the mail.
- Look at my bookings: on which date is {city}?
- Trip to {city}: which date?
- I'm so looking forward to {city}! When is it again?
- What date did I book for {city}?
- {x_name} wants to join me in {city}. When do I go?
- Please check my bookings for {city}, I need the day.
- When was {city} again? I mean my booking.
- Tell me when I travel to {city}.
- {city}, when do i go
> [It is|You go|You leave] on {date}.
> {date}.
> Your trip to {city} is on {date}[ at {time}|].
> You [travel|go] to {city} on {date}.
> [The date is|According to your booking it's] {date}.
> {city}: {date}[, {time}|].
> On {date}[, at {time}|].
> The booking [says|is for] {date}.
+ {date}

= find the booking code of the trip to {city}
@ city
- [What is|What's] the [booking|reservation] code [of|for] my trip to {city}?
- I'm at the [desk|counter] and they want my code for {city}.
- [Give|Tell|Get] me the booking code for {city}.
- {city} booking code?
- I need to [check in|change my trip]. Which code do I have for {city}?
- [Can|Could] you find the reference of my booking to {city}?
- Reservation code, trip to {city}, please.
- Under which code did I book {city}?
- code for {city} trip pls, quick
- Please look my booking for {city} and say the code.
- The airline asks for the code of my {city} booking. What is it?
- Which reference number has my trip to {city}?
- Look up the code for {city} in my bookings.
- I lost the paper with the booking code for {city}.
- What code do I show for my trip to {city}?
- {city}: reservation code?
> [The code is|It is|Your code is] {code}.
> {code}.
> Your booking to {city} has the code {code}.
> {code}[ for {city}| is your code|].
> [Use|Show them] {code}.
> {city}: {code}.
+ {code}
''', 'city')

HEARD = service('the last message', '''[read|get|show|find] [messages|last message|chat|texts]
[messages|chat|sms|conversation] [read|get|last|history]''',
'''[Reads|Returns|Shows] the last message [of a person|from a contact]
[Chat|Messages]: what a contact wrote, and when
Read the newest text message of somebody''', [
    parameter('sender', 'from contact sender person who name', 'The contact')],
    'sender text time')


def heard_case(rng):
    return dict(**aside(rng), sender=rng.choice(names.FIRST),
                text=message(rng), time=clock(rng))


MINE += kinds(HEARD, heard_case, '''
= read the last message from {sender}
@ sender
- What did {sender} [write|text|say][ in the last message|]?
- [Read|Show|Give] me the [last|latest|newest] message from {sender}.
- {sender} texted me. [What does it say?|Read it to me.]
- [Any|Is there a] message from {sender}? [Read it.|What does it say?]
- My phone buzzed, [I think it was|it must be] {sender}. What is it about?
- last msg from {sender}
- [Can|Could] you read what {sender} wrote?
- [I'm driving|I'm cooking]. Read {sender}'s message to me.
- What's new from {sender}?
- {sender}'s last text, please.
- Has {sender} answered? Tell me what the message says.
- Please read me what did {sender} write.
- Message from {sender}? Read it out.
- What has {sender} to say?
- Show what {sender} wrote last.
- I heard a beep. Did {sender} write? What?
- read {sender}s message
- Tell me what the newest text of {sender} says.
- The last thing that {sender} wrote to me, please.
- Can I hear {sender}'s message?
- What's in the message that {sender} sent?
> {sender} [wrote|says]: "{text}".
> "{text}".
> The [last|latest] message from {sender}: "{text}".
> [It says|It reads]: "{text}".
> {sender}, at {time}: "{text}".
> At {time} {sender} wrote: "{text}".
> Here it is: "{text}".
+ {text}

= find when {sender} wrote
@ sender
- When did {sender} [write|text me|send the last message]?
- [At what|What] time did {sender} text me?
- {sender}'s last message, when was it?
- [How late was it|What time was it] when {sender} wrote to me?
- I missed a text from {sender}. When did it come?
- when did {sender} text
- Check at what time {sender}'s last message arrived.
- Tell me the time of {sender}'s latest message.
- Since when is {sender} waiting? I mean, when was the last message?
- How long ago... no, at what time did {sender} write?
- The last text by {sender}: at what time?
- {sender} wrote. When?
- Give me the time at which {sender}'s message came.
- Did {sender} write early or late? The exact time, please.
> [At|It was at] {time}.
> {sender} [wrote|texted] at {time}.
> {time}.
> The message [came|arrived] at {time}.
> {sender}'s [last message|text] is from {time}.
> [It came in|You got it] at {time}.
+ {time}
''', 'sender', loosely)

MARKET = names.listed('''supermarket, corner shop, farmers market, drugstore,
health food shop, discount store, organic shop, village shop, grocery, mall,
wholesale market, farm shop, kiosk, department store''')

BUY = service('what to buy', '''[get|read|show|list] [shopping list|groceries|shopping items]
[shopping|groceries|shopping list] [get|list|show|items]''',
'''[Returns|Reads|Shows] the shopping list[ of a shop|]
[Shopping list|Groceries] by shop: what to buy
What the user has to buy at a shop''', [
    parameter('shop', 'shop store where list list_name', 'The shop')],
    'product amount')


def buy_case(rng):
    some = rng.sample(FOOD, rng.randint(2, 6))
    other = some.pop()
    there = rng.random() < 0.5
    asked = rng.choice(some) if there else other

    be = 'are' if asked.endswith('s') else 'is'

    return dict(**aside(rng), shop=rng.choice(MARKET), asked=asked, be=be,
                yes='Yes' if there else 'No',
                it=be if there else be + ' not',
                records=[dict(product=p, amount=rng.randrange(1, 9))
                         for p in some], n=len(some),
                first=some[0], last=some[-1],
                all=', '.join(some))


MINE += kinds(BUY, buy_case, '''
= read the shopping list for the {shop}
@ shop
- What do I [need|have to buy|have to get] at the {shop}?
- [Read|Show|Give] me [my|the] shopping list for the {shop}.
- I'm at the {shop} now. What's on my list?
- {shop} list pls
- [On my way to|I'm about to leave for] the {shop}. [What do we need?|What should I bring?]
- What is on the shopping list for the {shop}?
- [Can|Could] you read out the list for the {shop}?
- What did we want from the {shop}?
- Shopping list, {shop}.
- What I must buy in the {shop}?
- [Standing in|Waiting in] the {shop} and I forgot everything. The list, please!
- {x_name} goes to the {shop}. What should they get?
- What's to buy at the {shop}?
- Which things are on my {shop} list?
- I'm going to the {shop}. Remind me what's on the list.
- List for the {shop}, please, all of it.
- What do we still need from the {shop}?
- Tell me what to get from the {shop}.
- whats on the {shop} list
- Open the shopping list of the {shop}.
> You [need|wanted]: {all}.
> {all}.
> [On the list|On your list for the {shop}]: {all}.
> At the {shop}: {all}.
> [The list says|It says|Please get]: {all}.
> [You should|Don't forget to] buy {all}.
> For the {shop} there is: {all}.
+ {first}; {last}

= check whether {asked} {be} on the list for the {shop}
@ shop
- Have I put {asked} on the shopping list for the {shop}?
- Do I have {asked} on my list for the {shop}?
- [Did I|Did we] note {asked} for the {shop}?
- {shop} list: {be} {asked} on it?
- Check the list for the {shop}. {asked} - there or not?
- [I can't remember|I'm not sure] whether {asked} {be} on the list for the {shop}. [Can you check?|Please check.]
- {asked} on the {shop} list, yes or no?
- Please look if {asked} stands on the list for {shop}.
- I think we need {asked}. Did I put that on the list for the {shop}?
- Look at the {shop} list: {asked}, yes or no?
- Does my list for the {shop} have {asked}?
- Did anyone add {asked} to the {shop} list?
- Can you find {asked} on the list for the {shop}?
- {asked} - did I write that on the {shop} list?
> {yes}.
> {yes}, {asked} {it} on the list.
> {yes}, {asked} {it} there.
> {yes}, {asked} {it}.
> {yes}[, according to the list|], {asked} {it} on it.
> {yes}: {all}.
+ {yes}
''')

BIRTHDAY = service('birthdays', '''[get|find|look up|show] [birthday|birthdate|date of birth]
[birthday|birthdays] [get|find|lookup|of]''',
'''[Finds|Returns|Looks up] the birthday of a person
[Birthdays|Birthday calendar]: date by name
When somebody was born''', [
    parameter('name', 'name person who contact friend', '[Name|The person]')],
    'name date')


def birthday_case(rng):
    return dict(**aside(rng), name=rng.choice(names.FIRST), date=one_of(
        rng, f'{rng.choice(spoken.MONTHS)} {rng.randrange(1, 29)}'
             f'|{rng.randrange(1, 29)} {rng.choice(spoken.MONTHS)}'))


MINE += kinds(BIRTHDAY, birthday_case, '''
= find the birthday of {name}
@ name
- When is {name}'s birthday?
- [When|On which day] was {name} born?
- {name}'s birthday?
- [I want to send|I'd like to buy] {name} a present. When's the birthday?
- [Don't tell {name}|This is embarrassing], but I forgot the birthday of {name}. [Which day is it?|When is it?]
- birthday of {name} pls
- [Can|Could] you look up when {name} has their birthday?
- Tell me the date of {name}'s birthday.
- Which day should I congratulate {name}?
- We plan a party for {name}. When is the birthday?
- Do you know the birthday of {name}? Look it up.
- When has {name} birthday?
- I need to know how long I have until {name}'s birthday, so when is it?
- Find {name} in the birthday calendar.
- {name} has a birthday soon, I think. Which date?
- What's the date of birth of {name}, day and month?
- I should know this, but when's {name}'s birthday?
- Give me {name}'s birthday.
- Is {name}'s birthday noted somewhere? When is it?
- bday of {name}?
- On what date do we celebrate {name}?
- Please check the birthday of {name}.
> {name}'s birthday is [on |]{date}.
> [It is|It's] on {date}.
> {date}.
> On {date}.
> {name} has birthday on {date}.
> {name}: {date}.
> [According to the calendar|As noted], {name}'s birthday is {date}.
> You can congratulate {name} on {date}.
+ {date}
''', 'name')

BANK = service('the bank account', '''[get|check|show] [balance|account balance|bank balance]
[bank|account] [balance|status|check]''',
'''[Returns|Shows|Checks] the balance of [an account|a bank account]
[Bank|Accounts]: balance of an account
How much money is in an account''', [
    parameter('account', 'account account_name account_type which name',
              '[Which|The] account', choices=('checking', 'savings',
                                              'business', 'joint'))],
    'balance')


def bank_case(rng):
    return dict(**aside(rng), account=rng.choice(
        ('checking', 'savings', 'business', 'joint')),
        balance=f'{rng.randrange(10, 9000)}.{rng.randrange(10, 100)}')


MINE += kinds(BANK, bank_case, '''
= check the balance of the {account} account
@ account
- [What is|What's] the balance of my {account} account?
- How much [money |]is [in|on] my {account} account?
- {account} account balance?
- [Check|Show me|Tell me] my {account} account[ balance|].
- [Can I afford a {x_thing}|The rent is due]? What's in the {account} account?
- [Can|Could] you look how much I have in the {account} account?
- How much do I have left? The {account} account, I mean.
- balance {account} pls
- [I want to buy a {x_thing}|I'm planning a holiday]. How much have I got in the {account} account?
- My {account} account: what does it stand at?
- How many money I have on {account} account?
- Before I pay {x_name}: how much is in my {account} account?
- I'd like to know the state of my {account} account.
- {account} account: how much?
- What am I worth? Check the {account} account.
- Please look up the balance. It's the {account} account.
- Did my salary arrive? Tell me what's in the {account} account.
- Money in {account} account?
- How rich am I on the {account} account?
- I wonder how much the {account} account has.
- Tell me the amount in my {account} account.
> [There is|There are|You have] {balance} [in|on] your {account} account.
> {balance}.
> [The balance is|It stands at|It is] {balance}.
> Your {account} account has {balance}.
> {account}: {balance}.
> [You've got|You own] {balance} [there|in that account].
> The {account} account [shows|is at] {balance}.
> [Right now|At the moment] it's {balance}.
+ {balance}
''', 'account')

PAYS = service('subscriptions', '''[get|find|show|check] [subscription|membership|contract]
[subscription|subscriptions|membership] [get|details|find|info]''',
'''[Returns|Finds|Shows] a subscription of the user
[Subscriptions|Memberships]: price and next payment by name
What a subscription costs and when it renews''', [
    parameter('name', 'name subscription service provider which',
              '[Name of the|The] subscription')],
    'name cost day')

PLAN = names.listed('''music, gym, newspaper, cloud storage, film club,
phone, magazine, photo editor, language course, car sharing, vegetable box,
coffee, swimming club, museum pass, antivirus, e-book, chess club, parking,
yoga, meal kit''')


def pays_case(rng):
    return dict(**aside(rng), name=rng.choice(PLAN),
                cost=f'{rng.randrange(3, 90)}.'
                     + rng.choice(('00', '50', '99')),
                day=day(rng))


MINE += kinds(PAYS, pays_case, '''
= find what the {name} subscription costs
@ name
- [How much|What] do I pay for [the|my] {name} subscription?
- What does my {name} subscription cost?
- {name} subscription, how much?
- [I want to save money|I'm making a budget]. What does the {name} subscription cost me?
- [Can|Could] you check the price of my {name} subscription?
- Is the {name} subscription expensive? [The price, please.|What do I pay?]
- price of {name} subscription pls
- Look up my {name} subscription and tell me what it costs.
- How much money goes to the {name} subscription?
- [My wife|My husband|{x_name}] asks what I pay for the {name} subscription.
- {name}: what do I pay for the subscription?
- The {name} subscription - what's the price?
- Tell me the price of the {name} subscription.
- How dear is my {name} subscription?
- I pay for {name}, but how much? It's a subscription.
- Which amount do they take for the {name} subscription?
- My {name} subscription has become expensive, I think. What does it cost?
> [You pay|It costs|It is] {cost}.
> {cost}.
> [The|Your] {name} subscription costs {cost}.
> You pay {cost} for the {name} subscription.
> {name}: {cost}.
> [The price is|That is|It comes to] {cost}.
+ {cost}

= find when the {name} subscription renews
@ name
- When does my {name} subscription renew?
- When is the next payment for [the|my] {name} subscription?
- {name} subscription: when do I pay next?
- [I want to cancel|I'm thinking of cancelling] my {name} subscription. When does it renew?
- [Can|Could] you check on which day the {name} subscription is paid again?
- when do they charge me for {name}, the subscription
- On which day will my {name} subscription be renewed?
- How long does my {name} subscription run? I mean the next renewal.
- {name} subscription, next payment?
- Which day is the {name} subscription due?
- I must not forget to stop the {name} subscription. When does it renew?
- Until when is the {name} subscription paid? When does it renew, I mean.
- The {name} subscription renews when?
- Tell me the day on which {name} renews, my subscription.
> [It renews|It's renewed] {day}.
> {day}.
> [The|Your] {name} subscription renews {day}.
> [The next payment is|You pay again] {day}.
> {name}: {day}.
> The renewal is {day}.
+ {day}
''', 'name')

FIT = service('fitness', '''[get|read|show] [fitness|health|activity|step] [data|stats|summary]
[fitness|health|steps|activity] [get|today|stats|summary]''',
'''[Returns|Shows] steps, distance and sleep of a day
[Fitness|Health] data of a day
How active the user was''', [
    parameter('day', 'day date when on', '[Day|Date]')],
    'steps distance sleep')

PAST = ('today|yesterday|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday'
        '|Sunday|last Monday|last Sunday')


def fit_case(rng):
    return dict(**aside(rng), day=one_of(rng, PAST), sleep=rng.choice(
        (5, 6, 7, 8, 9, 5.5, 6.5, 7.5)), steps=rng.randrange(500, 25000),
        distance=rng.randrange(1, 20))


MINE += kinds(FIT, fit_case, '''
= find the steps of {day}
@ day
- How many steps [did I take|did I walk|have I made] {day}?
- [Show|Give|Tell] me my steps [of|for] {day}.
- {day}: steps?
- [Was I active|Did I move enough] {day}? How many steps was it?
- [Can|Could] you check my steps {day}?
- step count {day}
- My feet hurt. How many steps were it {day}?
- [What does my watch say|What does the tracker say] about {day}? Just the steps.
- I made a bet with {x_name}. How many steps did I do {day}?
- What was my number of steps {day}?
- My steps {day}, please.
- Did I walk much {day}? The number of steps will do.
- How far did my feet carry me {day}, in steps?
- Look at my fitness data of {day}: how many steps?
- steps {day}
- I'd like to know my steps {day}.
- Count of steps for {day}?
- What did I manage {day}, in steps?
> [You took|You made|You walked] {steps} steps {day}.
> {steps}[ steps|].
> {steps} steps {day}.
> {day} it was {steps} steps.
> [It was|It is|Your watch counted] {steps}.
> {day}: {steps}.
+ {steps}

= find how long I slept {day}
@ day
- How [long|many hours] did I sleep {day}?
- [Tell|Show] me my sleep of {day}.
- {day}: how much sleep?
- [I feel tired|I'm so sleepy]. How many hours did I sleep {day}?
- [Can|Could] you look up how long I slept {day}?
- sleep {day} pls
- Did I sleep well {day}? Give me the hours.
- How much sleep I got {day}?
- Hours of sleep {day}?
- What does the fitness tracker say about my sleep {day}?
- I'd like to know how long I was asleep {day}.
- Check my sleep {day}, please.
- Did I get enough sleep {day}? How many hours?
- {day}, sleep in hours?
> [You slept|It was] {sleep} hours.
> {sleep} hours[ of sleep|].
> {day} you slept {sleep} hours.
> You got {sleep} hours of sleep {day}.
> {day}: {sleep} hours.
> [About|In all] {sleep} hours.
+ {sleep}
''', 'day')

STATE = service('the state of the home', '''[get|check|read] [device|device state|home state|sensor]
[home|device|smart home] [status|state|check|get]''',
'''[Returns|Checks] whether a device is on or off
[Smart home|Home]: state of a device in a room
Read the state of a device''', [
    parameter('device', 'device what entity appliance', '[The|] device'),
    parameter('room', 'room where area', '[The|] room')],
    'device room state')


def state_case(rng):
    return dict(**aside(rng), device=one_of(rng, DEVICE),
                room=rng.choice(names.ROOMS), state=rng.choice(('on', 'off')))


MINE += kinds(STATE, state_case, '''
= check the {device} in the {room}
@ device room
- Is the {device} in the {room} on[ or off|]?
- [Did I leave|Have I left] the {device} on in the {room}?
- {room} {device}: on or off?
- [Check|Tell me] whether the {device} in the {room} is [on|off].
- [I already left the house|I'm in bed already|I'm at work]. Is the {device} in the {room} still on?
- [Can|Could] you see if the {device} in the {room} is on?
- What's the state of the {device} in the {room}?
- {device} in the {room} still on?
- [My electricity bill is high|I smell something]. Is the {device} on in the {room}?
- [Is anybody|Who is] using the {device} in the {room}? Is it on or off?
- How is it with the {device} of the {room}, on or off?
- {x_name} thinks the {device} in the {room} is on. [True?|Is that right?]
- status {room} {device} pls
- Someone may be in the {room}. Is the {device} on?
- The {device} in the {room}: is it running?
- I hear something from the {room}. Is the {device} on?
- Did we switch off the {device} in the {room}?
- Tell me if the {device} in the {room} is off.
- Please see to the {device} in the {room}: on or off? Don't change it.
- {room}, {device}: is it on?
- Can't remember whether the {device} in the {room} is on. Check it.
> [It is|It's] {state}.
> The {device} in the {room} is {state}.
> {state}.
> The {room} {device} is {state}[ right now| at the moment|].
> [I checked|I looked]: it's {state}.
> {device}: {state}.
> Right now the {device} is {state}.
> [It says|The state is] {state}.
+ {state}
''', 'room')
