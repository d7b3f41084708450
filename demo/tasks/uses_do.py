# Copyright (C) The nginx-dsa authors

"""Services that enter or change something: tickets of a help desk, the
shopping list, the thermostat, workouts, channels, accounts, the stock,
expenses, payments, orders, lamps, polls.  Some take nested objects or lists,
and numbers are said in words, too."""

from tasks import names, spoken
from tasks.api import parameter, same, service
from tasks.spoken import aside
from tasks.uses import kinds, loosely, one_of
from tasks.uses_act import message


def address(rng, first, last):
    return (one_of(rng, f'{first}.{last}|{first}{last[0]}|{last}')
            + '@' + one_of(rng, f'{rng.choice(names.NOUNS)}.[com|org|net|io]'
                                '|example.com|example.org')).lower()


def loose_or_same(role, wanted, value):
    return loosely(role, wanted, value) if isinstance(wanted, str) \
        else same(role, wanted, value)


# names of the objects of arguments

CUSTOMER = 'contact customer reporter requester person'
USER = 'user account profile person new_user'
ADDRESS = 'address ship_to delivery_address destination shipping'

TICKET = service('support tickets', '''[create|open|submit|file] [ticket|support ticket|issue|case]
[ticket|support|helpdesk|issue] [create|open|submit|new]
report [problem|issue|bug]''',
'''[Creates|Opens|Submits] a [support ticket|ticket|case] [for the help desk|for the support team|]
[Help desk|Support]: [new ticket|open a ticket] with subject and priority
Report a problem to the support team''', [
    parameter('subject', 'subject title summary problem issue',
              '[The problem in a few words|Title of the ticket|Subject]'),
    parameter('priority', 'priority severity urgency level', 'Priority',
              choices=('low', 'normal', 'high')),
    parameter('mail', 'email mail reply_to email_address',
              'Mail address of the customer', inside=CUSTOMER),
    parameter('tags', 'tags labels', 'Labels', kind='array', needed=False)])

TROUBLE = ('the {product} does not start|the {product} makes a strange noise'
           '|I cannot log in|my invoice is wrong|the {product} is broken'
           '|the app crashes|no mails arrive|the printer is offline'
           '|the website is slow|I was charged twice|the {product} never came'
           '|the screen stays black|my password was rejected'
           '|the wifi in the {room} is down|a part of the {product} is missing'
           '|the download stops halfway|the {product} has the wrong color')


def ticket_case(rng):
    first, last = rng.choice(names.FIRST), rng.choice(names.LAST)

    return dict(**aside(rng), mail=address(rng, first, last),
                subject=one_of(rng, TROUBLE).format(
                    product=rng.choice(names.PRODUCTS),
                    room=rng.choice(names.ROOMS)),
                priority=rng.choice(('low', 'normal', 'high')))


DO = kinds(TICKET, ticket_case, '''
= open a ticket about "{subject}"
@ subject priority mail
- [Open|Create|File|Submit] a [support |]ticket: "{subject}", priority {priority}, [contact|mail|reply to] {mail}.
- [I need help|Please report this]: {subject}. [Priority|The priority is] {priority}, [you can|they can] reach me at {mail}.
- Ticket with {priority} priority: "{subject}". My address is {mail}.
- [Can|Could] you [raise|open|log] a ticket for me? {mail} is my address, the problem is "{subject}", and the priority is {priority}.
- Problem: {subject}\\nPriority: {priority}\\nContact: {mail}\\n[Please open a ticket.|Ticket please.]
- "{subject}" - [that's a case for|please tell] the support team. Priority {priority}, answer to {mail}.
- [It's annoying|What a day|Nothing works]: {subject}. Open a {priority} priority ticket for {mail}[ please|].
- As {mail} I want to report with {priority} priority: "{subject}".
- support ticket pls, "{subject}", prio {priority}, {mail}
- A customer ({mail}) says: "{subject}". [Make it a ticket|File it] with {priority} priority.
- The customer {mail} wrote to us: "{subject}". Create a ticket, {priority} priority.
- {subject}. [I'd like|I want] a ticket for that, priority {priority}. Mail me at {mail}.
- Write to the help desk that {subject}. Set the priority to {priority}, and give {mail} as contact.
- Please you open ticket: {subject}. It has {priority} priority, my email {mail}.
- Log an issue. Title "{subject}", severity {priority}, reporter {mail}.
- [We have an issue here|There is a problem]: "{subject}". Priority is {priority}. {mail} [waits for an answer|wants an answer].
- [Submit|Enter] "{subject}" as a new case. Contact address {mail}, urgency {priority}.
- I've tried everything, but {subject}. Ticket, {priority} priority, to {mail}.
- Priority {priority}: {subject}. Please open a ticket, my mail is {mail}.
- Dear support, "{subject}". This is {priority} priority for me. Regards, {mail}. (Open a ticket for that.)
- pls raise ticket: "{subject}" / {priority} / {mail}
- Who can help? "{subject}" Make a {priority} priority ticket, contact {mail}.
- I was asked to report this: "{subject}". Use {priority} as priority and {mail} as contact.
- It would be good to have a ticket. Subject: "{subject}", from {mail}, priority {priority}.
- Send "{subject}" to the help desk as a ticket with priority {priority}; they answer to {mail}.
> [The|Your] ticket "{subject}" is [open|filed|created], priority {priority}.
> [Done|OK|Filed]: "{subject}", {priority} priority.
> [I opened|I've opened|I created] a {priority} priority ticket: "{subject}".
> The [support team|help desk] now [has|knows]: {subject}. Priority: {priority}.
> A ticket with {priority} priority [is open|was created]: "{subject}".
> "{subject}" is [reported|filed] with {priority} priority[, answers go to {mail}|].
> Reported: "{subject}" ({priority} priority). [They will write to {mail}.|]
> [Sorry for the trouble.|I'm sorry about that.] A {priority} priority ticket is open: "{subject}".
+ {subject}; {priority}
''', '', loose_or_same)

FOOD = names.listed('''milk, bread, butter, cheese, rice, pasta, flour, sugar,
salt, oil, vinegar, honey, jam, tea, coffee, juice, water, yogurt, cream, ham,
bacon, chicken, beef, fish, tofu, oats, cereal, soap, shampoo, toothpaste, cat
food, dog food, tissues, paper towels, toilet paper, batteries, detergent,
garlic, ginger, basil, parsley, spinach, lettuce, corn, chili, mustard,
ketchup, peanut butter, ice cream, frozen peas, tuna, cocoa, cinnamon, yeast,
sparkling water, orange juice, baking powder, foil, bin bags''')

SHOPPING = service('the shopping list', '''[add|put] [to shopping list|shopping items|groceries|shopping item]
[shopping|shopping list|grocery|groceries] [add|insert|append]''',
'''[Adds|Puts] [items|things|goods] [to|on] the shopping list
[Shopping list|Groceries]: add items
Add one or several items to buy''', [
    parameter('items', 'items products entries things goods list',
              '[Items|What to buy], one per entry', kind='array')])


def shopping_case(rng):
    pool = names.GOODS if rng.random() < 0.3 else FOOD
    items = rng.sample(pool, rng.randint(1, 4))

    return dict(**aside(rng), items=items,
                items_said=spoken.listed(rng, items), first=items[0],
                last=items[-1], bullets='\n'.join('- ' + i for i in items))


DO += kinds(SHOPPING, shopping_case, '''
= put {items_said} on the shopping list
@ items
- [Add|Put] {items_said} [to|on] [the|my] shopping list.
- [We're out of|We've run out of|We need more|There's no more] {items_said}. [Add it to the shopping list.|Shopping list, please.|Put that on the list.]
- Shopping list: {items_said}[.|, please.]
- [Can|Could] you [put|add|write] {items_said} on the [shopping|grocery] list?
- I [have to|need to|must] buy {items_said}. [Put it on my shopping list.|Note that on the list for the shop.]
- add {items_said} [2|to] [shopping list|groceries] [pls|thx]
- [Next time at the shop|When I go to the supermarket], I want to buy {items_said}. On the list with it!
- On the shopping list [should be|we also need] {items_said}.
- New on the list for the supermarket:\\n{bullets}
- Shopping:\\n{bullets}\\n[Please add.|On the list, please.]
- {items_said} - [add to the shopping list|shopping list pls|we need that, put it on the shopping list].
- {x_name} is making dinner and needs {items_said}. Add that to the shopping list.
- [Don't let me forget to buy|I always forget to buy] {items_said}; put it on the shopping list.
- What's missing? {items_said}. [Add it.|Please put it on the shopping list.]
- [The fridge is empty|Breakfast will be sad tomorrow]: we need {items_said}. Shopping list!
- Please to add in the shopping list: {items_said}.
- My grocery list [is missing|lacks] {items_said}. Fix that, please.
- Get {items_said} on the shopping list for me, would you?
- Could we get {items_said}? Shopping list, please.
- {items_said} is what we need from the shop. [List it.|Add it to the shopping list.]
- For the weekend we need {items_said}. Put it on the shopping list.
- My flatmate finished the last of it: {items_said}. Add to the shopping list.
- The recipe calls for {items_said}. On the list, please.
- Write on the shopping list: {items_said}.
- grocery list += {items_said}
- Don't let us run out of {items_said}; note it for the next shopping trip.
> [I added {items_said} to|I put {items_said} on|I've put {items_said} on] [the|your] shopping list.
> [Done|OK|Added]: {items_said}.
> {items_said}: [on the list|added to your shopping list|noted].
> [Your|The] shopping list now has {items_said}.
> [All right|No problem], {items_said} [goes|went] on the list.
> On your list now: {items_said}.
> The list [has got longer|is up to date]: {items_said}.
> You won't forget it now: {items_said}.
+ {first}; {last}
''')

HEAT = service('the thermostat', '''[set|change|adjust] [thermostat|temperature|room temperature|heating]
[thermostat|temperature|heating|climate] [set|adjust|control]''',
'''[Sets|Changes] the [temperature|thermostat] of a room
[Thermostat|Heating]: room and degrees
Set to how many degrees a room is heated''', [
    parameter('room', 'room zone area where', '[The|] room'),
    parameter('degrees', 'temperature degrees target celsius temp',
              '[Degrees Celsius|Temperature in Celsius, a number]',
              kind='number', always=True),
    parameter('mode', 'mode program', 'The mode', choices=('heat', 'cool'),
              needed=False)])


def heat_case(rng):
    said, n = spoken.halves(rng, 15, 27)

    return dict(**aside(rng), room=rng.choice(names.ROOMS), degrees=n,
                degrees_said=said)


DO += kinds(HEAT, heat_case, '''
= set the {room} to {degrees_said} degrees
@ room degrees
- [Set|Turn] the [thermostat|temperature|heating] in the {room} to {degrees_said} degrees.
- [Make it|I want] {degrees_said} degrees in the {room}.
- {room} {degrees_said} degrees[, please| pls|]
- [Can|Could] you [set|put] the {room} [to|at] {degrees_said} degrees?
- [It's freezing|It's too hot|It's chilly|I'm sweating] in the {room}. [Set it to|Make it] {degrees_said} degrees.
- The {room} should [be|have] {degrees_said} degrees.
- Thermostat, {room}: {degrees_said}.
- [The baby sleeps|We have guests|I'm working] in the {room} [tonight|today], so {degrees_said} degrees [there|please].
- [Heat|Bring] the {room} to {degrees_said} degrees.
- Change the {room} temperature to {degrees_said}.
- I'd [like|prefer] the {room} at {degrees_said} degrees.
- room: {room}\\ntemp: {degrees_said}
- How about {degrees_said} degrees in the {room}? [Yes, set that.|Please set it.]
- Please you put heating of {room} on {degrees_said} degrees.
- [To save energy|To save gas], {degrees_said} degrees is enough in the {room}. Set the thermostat.
- {degrees_said} degrees would be [nice|right|good] for the {room}. [Adjust it.|Do that.]
- Would you mind adjusting the thermostat? {room}, {degrees_said} degrees.
- {x_name} is cold. Give the {room} {degrees_said} degrees.
- {room}: {degrees_said}°, please. Use the thermostat.
- I'd feel better with {degrees_said} degrees in the {room}.
- What about {degrees_said} degrees for the {room}? Set it.
- Let the {room} have {degrees_said} degrees.
- heating {room} -> {degrees_said}
- The thermostat of the {room} should show {degrees_said} degrees.
- When I come home, I want {degrees_said} degrees in the {room}. Set it now.
- Put the heating in the {room} on {degrees_said}.
> The {room} is set to {degrees_said} degrees.
> [Done|OK|Sure]: {room}, {degrees_said} degrees.
> [I set|I've set|I turned] the {room} to {degrees_said} degrees.
> The thermostat [in|of] the {room} [is at|is on|shows] {degrees_said} degrees now.
> {degrees_said} degrees in the {room}[, as you wished| now|].
> [All right|No problem], it will be {degrees_said} degrees in the {room}.
> The {room} will [soon have|be at] {degrees_said} degrees.
> Soon it's {degrees_said} degrees in the {room}.
+ {room}; {degrees}|{degrees_said}
''', 'room')

SPORT = service('workouts', '''[log|add|record|save] [workout|exercise|training|activity]
[workout|fitness|activity|training] [log|add|record]''',
'''[Logs|Records|Saves] a [workout|training|activity]
[Fitness|Workouts]: kind, minutes[ and distance|]
Add a workout to the training diary''', [
    parameter('sport', 'type activity sport kind exercise', 'Kind of sport',
              choices=('running', 'swimming', 'cycling', 'yoga', 'rowing',
                       'walking')),
    parameter('minutes', 'minutes duration duration_minutes length_min',
              '[Minutes|How long, in minutes]', kind='integer',
              always=True),
    parameter('km', 'distance km distance_km kilometers', '[Kilometers'
              '|Distance in km]', kind='number', kept=True, needed=False,
              always=True)])

SPORTS = {'running': 'ran|went running|was out running|went for a run',
          'swimming': 'swam|went swimming|was swimming|went for a swim',
          'cycling': 'cycled|went cycling|rode my bike|was on the bike',
          'yoga': 'did yoga|practiced yoga|had a yoga session',
          'rowing': 'rowed|went rowing|was rowing',
          'walking': 'walked|went for a walk|was out walking'}


def sport_case(rng):
    sport = rng.choice(sorted(SPORTS))
    said, minutes = spoken.length(rng)
    far, km = spoken.halves(rng, 2, 30)

    return dict(**aside(rng), sport=sport, did=one_of(rng, SPORTS[sport]),
                minutes=minutes, minutes_said=said, km=km, km_said=far)


DO += kinds(SPORT, sport_case, '''
= log {minutes_said} of {sport}
@ sport minutes
- [Log|Record|Save|Enter] {minutes_said} of {sport}.
- I {did} [for |]{minutes_said}. [Log it.|Put it in my training diary.|Add the workout, please.]
- Workout: {sport}, {minutes_said}.
- [Can|Could] you [log|record] a workout? I {did} for {minutes_said}.
- [Just back|Phew|I'm exhausted]: {minutes_said} of {sport}. [Log that.|Note the workout.]
- Today I {did}, {minutes_said} in all. [Record it, please.|Into the log!]
- {sport} {minutes_said} log pls
- [Training diary|Fitness log]: {minutes_said} {sport}
- Activity: {sport}\\nDuration: {minutes_said}
- {x_name} and I {did} for {minutes_said} [this morning|yesterday evening|today]. Add it to my workouts.
- My workout today was {sport}. It took {minutes_said}. Save it.
- After {minutes_said} of {sport} I deserve an entry in the training log.
- [Please to|You can] log my sport: {sport}, {minutes_said}.
- [Put|Write] {minutes_said} of {sport} [down|in the log] for me.
- What did I do today? I {did}! {minutes_said}. Log it.
- {minutes_said} of {sport} done! [Log it.|Save it.]
- For my training log: {sport}, {minutes_said}.
- [Guess what|Good news], I {did} for {minutes_said}. Enter it.
- I {did} today. It took me {minutes_said}. Keep a record.
- Add a workout. Type {sport}. Length {minutes_said}.
- Did my {sport}, {minutes_said}. log pls
- My coach wants to see it: {minutes_said} of {sport}. Record it.
- This morning: {sport}. Time: {minutes_said}. Put that in my fitness log.
- Could you note that I {did} for {minutes_said}?
- That was {minutes_said} of {sport}, please save the activity.
> [I logged|I've logged|I saved] {minutes_said} of {sport}.
> [Done|Logged|OK]: {sport}, {minutes_said}.
> {minutes_said} of {sport} [is|are] in your log.
> [Well done!|Nice work!|Good job!] {sport}, {minutes_said}, is saved.
> Your {sport} workout of {minutes_said} is [recorded|saved].
> [Recorded|Saved|Noted]: {minutes_said} {sport}.
> Your training diary has {minutes_said} of {sport} now.
> [All right|Great], {sport} for {minutes_said} is logged.
+ {sport}; {minutes}|{minutes_said}
''')


def far_case(rng):
    case = sport_case(rng)

    return far_case(rng) if case['sport'] == 'yoga' else case


DO += kinds(SPORT, far_case, '''
= log {km_said} km of {sport} in {minutes_said}
@ sport minutes km
- [Log|Record] {km_said} km of {sport} in {minutes_said}.
- I {did}, {km_said} kilometers in {minutes_said}. [Log it.|Save the workout.]
- Workout: {sport}, {km_said} km, {minutes_said}.
- {minutes_said}, {km_said} km: I {did} today. [Add it to my workouts.|Put it in the log.]
- [Can|Could] you log my {sport}? It was {km_said} km and took {minutes_said}.
- Sport: {sport}\\nDistance: {km_said} km\\nTime: {minutes_said}
- {km_said}km {sport} {minutes_said} log it
- Yesterday I {did} with {x_name}. {km_said} kilometers, {minutes_said}. Enter that as a workout.
- {km_said} km, {minutes_said}, {sport}. [Log that.|Into the diary.]
- I {did} for {minutes_said} and made {km_said} km. Record it.
- New activity: {sport} over {km_said} kilometers in {minutes_said}.
- My watch says {km_said} km in {minutes_said}. It was {sport}. Log it, please.
- Save this workout: {minutes_said} {sport}, distance {km_said} km.
- Today's {sport}: {km_said} km / {minutes_said}.
> [I logged|I saved] {km_said} km of {sport} in {minutes_said}.
> [Done|Logged]: {sport}, {km_said} km, {minutes_said}.
> {km_said} km of {sport} in {minutes_said}: [it's in your log|well done, saved].
> Your {sport} is recorded: {km_said} km, {minutes_said}.
> [Nice!|Strong!] {sport}, {km_said} km in {minutes_said}, is saved.
+ {sport}; {km}|{km_said}; {minutes}|{minutes_said}
''')

CHANNEL = service('team channels', '''[post|send|publish] [to channel|channel message|in channel|message to channel]
[channel|slack|team chat|group] [post|send|write|publish]''',
'''[Posts|Sends|Writes] a message [in|to] a channel[ of the team|]
[Team chat|Channels]: post a text
Write something to everybody in a channel''', [
    parameter('channel', 'channel room channel_name group where',
              '[Name of the|The] channel'),
    parameter('text', 'text message content body', '[The|] [text|message]'),
    parameter('pin', 'pin pinned', 'Whether to pin it', kind='boolean',
              needed=False)])


def channel_case(rng):
    return dict(**aside(rng), text=message(rng), channel='#' + one_of(
        rng, f'general|random|team-{rng.choice(names.STEMS)}|support|news'
             f'|{rng.choice(names.STEMS)}|{rng.choice(names.NOUNS)}-'
             f'{rng.choice(names.STEMS)}|help|announcements'))


DO += kinds(CHANNEL, channel_case, '''
= post in {channel}
@ channel text
- [Post|Write|Put] "{text}" in {channel}.
- [Post|Send] to {channel}: "{text}"
- [Tell everybody|Let everybody know] in {channel}: {text}
- [Can|Could] you post this in {channel}? "{text}"
- {channel}: {text}
- The people in {channel} [should|need to] know: "{text}". [Post it.|Please post that.]
- Channel: {channel}\\nText: {text}
- New post for {channel}, [please|thanks]: "{text}"
- "{text}" - post that to {channel}[ please| pls|].
- [I can't open the team chat|My chat client is down], so please write in {channel}: "{text}"
- Announce in {channel}: "{text}".
- [Everyone|The team] in {channel} waits for this: "{text}". Publish it.
- post in {channel} "{text}" [thx|asap|pls]
- I want [to post|to share] something in {channel}, namely "{text}".
- In {channel}, [say|write|post] "{text}".
- [Drop|Leave] a message in {channel} saying "{text}".
- Please make a posting on {channel} with the words "{text}".
- Everybody in {channel} should read this: "{text}"
- Message for {channel}: {text}
- I'd like {channel} to know: "{text}". Post it.
- Quick post to {channel}, text "{text}".
- Say this in {channel}: {text}
- Let's tell {channel}: "{text}"
- Would you put "{text}" into {channel} for me?
- Please inform {channel} with the words "{text}".
> [I posted|I've posted|I wrote] it in {channel}.
> [Done|Posted|OK]: "{text}" in {channel}.
> Your [message|post] is in {channel}[ now|].
> {channel} [has|got] your [message|post].
> Everybody in {channel} can read it now.
> [All right|No problem|Sure], it's posted in {channel}.
> The [post|message] to {channel} is [out|up|online].
> It's [up|online] in {channel}: "{text}".
+ {channel}
''', 'channel', loosely)

ACCOUNT = service('user accounts', '''[create|add|new|register] [user|account|user account|member]
[user|account|users|accounts] [create|add|register]''',
'''[Creates|Adds|Registers] [a user|an account|a user account]
[Accounts|Users]: new account with name, mail and role
Give a person access, with a role''', [
    parameter('first', 'first_name given_name firstName forename',
              'First name', inside=USER),
    parameter('last', 'last_name surname family_name lastName',
              'Last name', inside=USER),
    parameter('mail', 'email mail email_address', 'Mail address',
              inside=USER),
    parameter('role', 'role permission access_level group', 'Rights',
              choices=('viewer', 'editor', 'admin'))])


def account_case(rng):
    first, last = rng.choice(names.FIRST), rng.choice(names.LAST)

    return dict(**aside(rng), first=first, last=last,
                mail=address(rng, first, last),
                role=rng.choice(('viewer', 'editor', 'admin')))


DO += kinds(ACCOUNT, account_case, '''
= create an account for {first} {last}
@ first last mail role
- [Create|Make|Add|Register] [an account|a user|a user account] for {first} {last}, {mail}, [as|role|with the role] {role}.
- {first} {last} [needs|gets] [access|an account]. [Mail|The address is] {mail}, role {role}.
- New user: {first} {last}, {mail}, {role}.
- [Can|Could] you [create|set up] an account? It's for {first} {last} ({mail}), who is [to be|going to be] {role}.
- We have a new colleague, {first} {last}. [Set up|Create] an account as {role}; the mail is {mail}.
- First name: {first}\\nLast name: {last}\\nEmail: {mail}\\nRole: {role}\\n[Create the user.|Please add.]
- Add {mail} as {role}. The name is {first} {last}.
- {first} {last} starts on Monday and should be {role} in our system. Mail address: {mail}. Create the account.
- user {first} {last} {mail} role {role} [pls|please]
- Give {first} {last} ({mail}) {role} rights[ with a new account|].
- [I hired|We hired] {first} {last}. An account, please: {role}, {mail}.
- Please you create user {first} {last} with email {mail} and the role {role}.
- The role {role} for {first} {last}, email {mail} - [register that person|make the account].
- Sign up {first} {last} using {mail}. They'll be {role}.
- Access for {first} {last}: {mail}, {role}. [Do it today.|Set it up.]
- {first} {last} joins us. Role {role}, mail {mail}. Make the account, please.
- Please add a new {role}: {first} {last}, reachable at {mail}.
- I need a login for {first} {last} with {role} rights. Use the address {mail}.
- acct for {first} {last}, {mail}, {role}
- From today {first} {last} works with us as {role}. Mail: {mail}. Set up the user.
- Could {first} {last} get an account? {mail}, as {role}.
- Name {first} {last}, address {mail}, rights {role}: create that user.
- A new user has to be created: {mail}, {first} {last}, and the role is {role}.
> [The|An] account for {first} {last} [is there|is ready|was created], role {role}.
> [Done|Created|OK]: {first} {last}, {role}.
> [I created|I've created|I added] {first} {last} as {role}.
> {first} {last} [is now|is] {role}, [mail|address] {mail}.
> {first} {last} [has|got] an account with the role {role}.
> The user {first} {last} [exists|was added] as {role}.
> [All set|No problem]: {first} {last} can log in as {role}.
> [Welcome|A warm welcome to] {first} {last}, our new {role}.
+ {first} {last}; {role}
''')

SUPPLY = service('the warehouse', '''[update|set|change] [stock|inventory|quantity|stock level]
[stock|inventory|warehouse] [update|set|adjust]''',
'''[Updates|Sets|Changes] the stock of a product
[Warehouse|Inventory]: set how many there are
Enter the number of pieces of an article''', [
    parameter('product', 'product item article sku_name name',
              '[Name of the|The] [product|article]'),
    parameter('count', 'quantity count stock amount units new_quantity',
              '[How many there are|New quantity]', kind='integer'),
    parameter('place', 'warehouse location store', 'Which warehouse',
              needed=False)])


def supply_case(rng):
    said, n = spoken.whole(rng, 3, 3000) if rng.random() < 0.5 \
        else spoken.whole(rng, 3, 90)

    return dict(**aside(rng), product=rng.choice(names.PRODUCTS), count=n,
                count_said=said)


DO += kinds(SUPPLY, supply_case, '''
= set the stock of the {product} to {count_said}
@ product count
- [Set|Change|Update] the stock of the {product} to {count_said}.
- We [have|counted] {count_said} of the {product}. [Update the stock.|Enter that in the inventory.]
- Stock update: {product}, {count_said}.
- [Can|Could] you [set|change] the quantity of the {product} to {count_said}?
- {product}: {count_said} [pieces|pcs|units] in stock. [Please enter it.|Update it.]
- The inventory [is wrong|is out of date]: there are {count_said} of the {product}. Correct it.
- [A delivery came|The truck was here|We did a count], and the {product} stands at {count_said} now. Set the stock.
- product: {product}\\nquantity: {count_said}\\nupdate stock
- update stock {product} {count_said} [pls|thx]
- For the {product}, the new stock is {count_said}.
- The {product} has a stock of {count_said} from now on. Put it in the system.
- Please write in the warehouse system: {product} {count_said}.
- {x_name} counted the {product} again, and it's {count_said}. Fix the number in the inventory.
- In the warehouse, the {product} should be listed with {count_said} pieces.
- How many of the {product}? {count_said}. [Set it.|So update the stock, please.]
- Inventory: {product} now {count_said}.
- The shelf has {count_said} of the {product}. The system should say so, too.
- Please correct the quantity of the {product}; {count_said} is right.
- After counting: {product}, {count_said} pieces. Update.
- We now have exactly {count_said} of the {product} in the warehouse. Set it.
- {count_said} - that's the new stock for the {product}.
- The number for the {product} is wrong. Make it {count_said}.
- pls fix stock, {product} = {count_said}
> The stock of the {product} is [set to|now] {count_said}.
> [Done|Updated|OK]: {product}, {count_said}.
> [I set|I've set|I changed] the {product} to {count_said}.
> {product}: {count_said} [in stock|pieces] now.
> The inventory now [says|has] {count_said} for the {product}.
> {count_said} of the {product} [are|is] entered.
> [All right|No problem], the new stock of the {product} is {count_said}.
> The {product} is at {count_said} now.
+ {product}; {count}|{count_said}
''', 'product')

SPEND = service('expenses', '''[add|log|record|submit] [expense|spending|cost|receipt]
[expense|expenses|spending] [add|create|log|submit]''',
'''[Adds|Records] an expense[ of the user|]
[Expenses|Spending]: amount, currency and category
Enter what was spent''', [
    parameter('amount', 'amount value sum total price', '[The|] amount, '
              'a number', kind='number'),
    parameter('currency', 'currency currency_code code', '[Currency, a code'
              '|ISO code of the currency]', choices=('USD', 'EUR', 'GBP',
                                                     'CHF', 'JPY')),
    parameter('category', 'category type kind', 'What it was for',
              choices=('travel', 'food', 'hotel', 'office', 'other'))])

SPENT = {'travel': 'a taxi|the train|a bus ticket|parking|petrol|a flight',
         'food': 'lunch|dinner|coffee with a client|a sandwich|breakfast',
         'hotel': 'a hotel room|the hotel|one night in a hotel',
         'office': 'printer paper|pens|a stapler|toner|envelopes'}
MONEY = {'USD': 'dollars|US dollars|USD', 'EUR': 'euros|EUR|euro',
         'GBP': 'pounds|GBP|quid', 'CHF': 'Swiss francs|CHF|francs',
         'JPY': 'yen|JPY|Japanese yen'}


def spend_case(rng):
    code = rng.choice(sorted(MONEY))
    kind = rng.choice(sorted(SPENT))
    said, n = spoken.halves(rng, 3, 100)

    if rng.random() < 0.5:
        n = rng.randrange(300, 40000) / 100 if code != 'JPY' \
            else rng.randrange(300, 9000)
        said = str(n)

    return dict(**aside(rng), amount=n, amount_said=said, currency=code,
                money=one_of(rng, MONEY[code]), category=kind,
                spent=one_of(rng, SPENT[kind]))


DO += kinds(SPEND, spend_case, '''
= record an expense of {amount_said} {money} for {spent}
@ amount currency category
- [Add|Log|Record] an expense: {amount_said} {money} for {spent}.
- I [spent|paid] {amount_said} {money} [for|on] {spent}. [Log it.|Put it in my expenses.|Record that.]
- Expense: {spent}, {amount_said} {money}.
- [Can|Could] you [record|enter] {amount_said} {money} for {spent}[ as an expense]?
- {spent} cost me {amount_said} {money}. [Add it to my expenses.|Expenses, please.]
- [Here's a receipt|I have a receipt]: {amount_said} {money}, {spent}. Enter it.
- for the expenses: {spent} {amount_said} {money}
- What: {spent}\\nCost: {amount_said} {money}\\n[Enter it as an expense.|Add to expenses.]
- On my trip to {x_city} I paid {amount_said} {money} for {spent}. Please file it as an expense.
- Put {amount_said} {money} down as an expense, it was for {spent}.
- I want that you note my expense of {amount_said} {money}, it was {spent}.
- log {amount_said} {money} {spent} [thx|pls|asap]
- My boss pays {spent}: {amount_said} {money}. Into the expenses with it.
- {amount_said} {money} [went to|were for] {spent}. [Record it.|Book the expense.]
- {spent}, {amount_said} {money}: add that to the expenses.
- Yesterday {spent} cost {amount_said} {money}. It's an expense for the company.
- I'd like to claim {amount_said} {money} for {spent}. Record the expense.
- One more receipt, {amount_said} {money}. It was for {spent}. Please enter it.
- Expense report: {amount_said} {money}, {spent}.
- Book {amount_said} {money} for {spent} under expenses.
- We paid {amount_said} {money}. What for? {spent}. Log it as an expense.
- {x_name} and I had {amount_said} {money} of costs for {spent}. Put it in the expenses.
- new expense {amount_said} {money} - {spent}
> [I recorded|I've recorded|I added] {amount_said} {money} for {spent}.
> [Done|OK|Recorded]: {amount_said} {money}, {spent}.
> {amount_said} {money} for {spent} [is|are] in your expenses.
> The expense is [saved|entered]: {spent}, {amount_said} {money}.
> [Noted|Saved|All right]: {spent} for {amount_said} {money}.
> Your expenses have a new entry: {amount_said} {money} for {spent}.
> [Got it.|No problem.] {amount_said} {money} for {spent}.
> An expense of {amount_said} {money} was added for {spent}.
+ {amount}|{amount_said}
''')

ORDER = service('orders', '''[place|create|submit|make] [order|purchase|shop order]
[order|orders|shop] [create|place|new|submit]''',
'''[Places|Creates] an order [of goods|in the shop|]
[Orders|Shop]: order a product, with quantity and address
Order something and have it delivered''', [
    parameter('product', 'product item article name what',
              '[Name of the|The] product'),
    parameter('count', 'quantity count amount pieces qty', 'How many',
              kind='integer'),
    parameter('street', 'street street_address line1', 'Street and number',
              inside=ADDRESS),
    parameter('city', 'city town place', 'City', inside=ADDRESS),
    parameter('express', 'express fast urgent', 'Whether it is urgent',
              kind='boolean', needed=False)])


def order_case(rng):
    said, n = spoken.whole(rng, 2, 60)

    return dict(**aside(rng), product=rng.choice(names.GOODS), count=n,
                count_said=said, city=rng.choice(names.PLACES),
                street=f'{rng.randrange(1, 200)} {rng.choice(names.LAST)} '
                       + one_of(rng, 'Street|Road|Lane|Avenue|Square'))


DO += kinds(ORDER, order_case, '''
= order {count_said} {product} to {street}, {city}
@ product count street city
- [Order|Buy|Get me] {count_said} {product} and [send|deliver] them to {street}, {city}.
- I [need|want|would like] {count_said} {product}, delivered to {street} in {city}. [Order them.|Please place the order.]
- Order: {count_said} {product}. Address: {street}, {city}.
- [Can|Could] you order {count_said} {product} [to|for] {street}, {city}?
- {count_said} {product} to {street}, {city}[, please| pls|]
- Item: {product}\\nQuantity: {count_said}\\nStreet: {street}\\nCity: {city}\\n[Order it.|Place the order.]
- [Our office|Our club|The school] at {street} in {city} [is out of {product}|needs {product}]. Order {count_said}.
- Please ship {count_said} {product}. They go to {street}, {city}.
- Place an order for {count_said} {product}; the delivery address is {street} in {city}.
- My new address is {street}, {city}. [Have|Order] {count_said} {product} [sent|delivered] there.
- {x_name} asked for {product}. Order {count_said} to {street}, {city}.
- order {product} x {count_said}, ship to {street} {city}
- I want to order some {product}, {count_said} in number, for address {street} in {city}.
- To {street}, {city}, I'd like to have {count_said} {product} delivered.
- We're having a party at {street}, {city}, and need {count_said} {product}. Order them.
- I'd like {count_said} {product}. Send them to {street}, {city}.
- Could {count_said} {product} be delivered to {street} in {city}? Place the order.
- {product}, {count_said} of them, to {city}, {street}. Order please.
- Delivery to {street}, {city}: {count_said} {product}. [Buy them.|Order them.]
- For the office at {street}, {city}: {count_said} {product}. Order today.
- please buy {count_said} {product} 4 me, address is {street}, {city}
- Purchase {count_said} {product} and have them shipped. Address: {street}, {city}.
> [I ordered|I've ordered] {count_said} {product} to {street}, {city}.
> [Done|Ordered|OK]: {count_said} {product}, {street}, {city}.
> {count_said} {product} [will go|are on their way|will be sent] to {street}, {city}.
> The order is [placed|made]: {count_said} {product} to {street} in {city}.
> Your {count_said} {product} [come|will come] to {street}, {city}.
> [All right|No problem], {count_said} {product} for {street}, {city}.
> {street}, {city} gets {count_said} {product}.
> The shop sends {count_said} {product} to {street}, {city}.
+ {product}; {count}|{count_said}; {city}
''')

GLOW = service('lamps', '''[set|change|adjust] [lamp|brightness|light color|lamp color|dimmer]
[lamp|dimmer|brightness|light scene] [set|adjust|change]''',
'''[Sets|Changes] brightness[ and color|] of the lamps in a room
[Lamps|Dimmer]: room, brightness in percent[, color|]
Dim the lamps of a room''', [
    parameter('room', 'room zone where area', '[The|] room'),
    parameter('level', 'brightness level percent dim_level',
              '[Brightness in percent|0 to 100]', kind='integer',
              always=True),
    parameter('color', 'color colour hue', 'Color', choices=(
        'white', 'warm', 'red', 'blue', 'green'), kept=True,
              needed=False)])

BRIGHT = (('half', 50), ('a quarter', 25), ('one hundred percent', 100),
          ('three quarters', 75))


def glow_case(rng):
    if rng.random() < 0.3:
        said, n = rng.choice(BRIGHT)
    else:
        n = 5 * rng.randrange(1, 21)
        said = one_of(rng, f'{n}%|{n} percent|{n} %') if n > 95 \
            or rng.random() < 0.7 else f'{spoken.in_words(n)} percent'

    return dict(**aside(rng), room=rng.choice(names.ROOMS), level=n,
                level_said=said, color=rng.choice(
                    ('white', 'warm', 'red', 'blue', 'green')))


DO += kinds(GLOW, glow_case, '''
= set the lamps in the {room} to {level_said}
@ room level
- [Dim|Set|Turn] the [lamps|lights] in the {room} to {level_said}.
- [Can|Could] you [dim|set] the {room} lights to {level_said}?
- {room} lights {level_said}[, please| pls|]
- [I want to watch a film|It's too bright|I'm reading|We have guests] in the {room}. Lamps to {level_said}, please.
- The [lamps|lights] in the {room} should be at {level_said}.
- Brightness in the {room}: {level_said}.
- In the {room}, [put|set] the brightness to {level_said}.
- {level_said} light in the {room} is [enough|right|fine]. [Set it.|Adjust the lamps.]
- room: {room}\\nbrightness: {level_said}
- Make the light in the {room} {level_said}, I [have a headache|can't see well].
- [Adjust|Change] the {room} dimmer to {level_said}.
- Please you change light of the {room} to {level_said}.
- Lamps in the {room}, now at {level_said}!
- [Would|Could] it be {level_said} in the {room}? The brightness, I mean.
- I want the lamps of the {room} at {level_said}.
- It's too dark in the {room}. Lamps to {level_said}.
- Please bring the {room} lights to {level_said}.
- {level_said} brightness, {room}.
- Could the lights in the {room} go to {level_said}?
- lamps {room} {level_said}
- For the {room}, {level_said} would be nice. The lamps, I mean.
- Let there be {level_said} light in the {room}.
- My eyes hurt. {room} lamps at {level_said}, please.
> The lamps in the {room} are at {level_said}[ now|].
> [Done|OK|Sure]: {room}, {level_said}.
> [I set|I've set|I dimmed] the lamps in the {room} to {level_said}.
> {room}: the brightness is {level_said}.
> The {room} [has|is at] {level_said} now.
> [All right|No problem], {level_said} in the {room}.
> The brightness in the {room} is now {level_said}.
> Lamps in the {room}: {level_said}.
+ {room}; {level}|{level_said}

= make the lamps in the {room} {color} at {level_said}
@ room level color
- [Set|Turn] the lamps in the {room} to {color} light, {level_said}.
- [Make|I want] the {room} {color}, brightness {level_said}.
- {color} light in the {room} at {level_said}[, please| pls|]
- [Can|Could] you [give|make] me {color} light in the {room}, at {level_said}?
- Party mode! The {room} lamps {color}, {level_said}.
- {room}: color {color}, brightness {level_said}
- The light in the {room} should be {color} and at {level_said}.
- Something cosy for the {room}: {color}, {level_said}. Set the lamps.
- Lamps in the {room}: {color}, {level_said}.
- The {room} should glow {color}. Brightness {level_said}.
- Change the {room} lamps to {color} and dim them to {level_said}.
- Could the {room} be lit in {color}, at {level_said}?
- {color} lamps at {level_said} in the {room} would be [nice|great].
- Set a scene for the {room}: {color} light with {level_said}.
> The {room} has {color} light at {level_said}.
> [Done|OK|Sure]: {room}, {color}, {level_said}.
> [I set|I've set] the lamps in the {room} to {color}, {level_said}.
> {color} light in the {room} now, at {level_said}.
> The lamps in the {room} are {color}[ now|], {level_said}.
+ {room}; {color}; {level}|{level_said}
''', 'room')

POLL = service('polls', '''[create|start|make|open] [poll|vote|survey|ballot]
[poll|survey|vote] [create|start|new|open]''',
'''[Creates|Starts] a poll [with a question and choices|]
[Polls|Votes]: question and options
Let a group vote''', [
    parameter('question', 'question title topic text', '[The|] question'),
    parameter('options', 'options choices answers candidates',
              '[The choices|Possible answers], one per entry',
              kind='array'),
    parameter('many', 'multiple allow_multiple', 'Whether one may choose '
              'several', kind='boolean', needed=False)])

VOTE = (('Where do we eat', 'pizza sushi burgers tacos curry noodles salad'),
        ('When do we meet', 'Monday Tuesday Wednesday Thursday Friday'),
        ('What shall we play', 'chess cards football darts tennis bowling'),
        ('Which color for the logo', 'red blue green black orange purple'),
        ('Where shall we go', ''), ('Who should speak first', ''),
        ('Which drink for the party', 'cola lemonade juice beer wine tea'),
        ('What shall we bake', 'bread cake cookies muffins pie scones'))


def poll_case(rng):
    question, options = rng.choice(VOTE)
    pool = options.split() or (names.FIRST if question[:3] == 'Who'
                               else names.PLACES)
    options = rng.sample(pool, rng.randint(2, 4))

    return dict(**aside(rng), question=question + '?', options=options,
                options_said=spoken.listed(rng, options), first=options[0],
                last=options[-1], bullets='\n'.join(
                    '- ' + o for o in options))


DO += kinds(POLL, poll_case, '''
= start a poll: {question}
@ question options
- [Start|Create|Make|Open] a poll "{question}" with the [options|choices] {options_said}.
- [Poll|New poll|Vote]: {question} {options_said}.
- [Let the team vote|I want the team to vote]: "{question}" [Options|The choices are]: {options_said}.
- [Can|Could] you [make|start] a poll? The question is "{question}", and people may choose between {options_said}.
- {question}\\n{bullets}\\n[Make a poll of that.|Poll, please.]
- We can't agree. [Start a vote|Make a poll]: "{question}" - {options_said}.
- Set up a poll, [please|thanks]. Choices: {options_said}. Question: {question}
- poll pls: {question} options {options_said}
- {x_name} wants a vote on this: {question} One can choose from {options_said}. Create the poll.
- With {options_said} as answers, [open|start] a poll that asks "{question}"
- I'd like to ask the group "{question}" and let them choose: {options_said}. A poll would do.
- Please to make a poll for the group. Ask: {question} Answers: {options_said}.
- Everybody has another opinion: "{question}" Make a poll with {options_said}.
- I need the opinion of the group. {question} Choices: {options_said}. Poll, please.
- Open a vote. Question: "{question}" Answers: {options_said}.
- Let them decide between {options_said}. The question for the poll: "{question}"
- new poll "{question}" {options_said}
- Could we vote on this? "{question}" - {options_said}
- A poll for the team, please. {question} One may pick {options_said}.
- {options_said} - that's what people can choose. The poll asks: {question}
> The poll is [open|online|started]: {question} {options_said}.
> [Done|OK]: "{question}" with {options_said}.
> [I started|I created|I've opened] a poll: {question} {options_said}.
> People can [vote|choose] now: {question} {options_said}.
> "{question}" [is up for a vote|can be voted on]: {options_said}.
> [All right|No problem], the vote is on: {question} Choices: {options_said}.
+ {question}; {first}; {last}
''', '', loose_or_same)
