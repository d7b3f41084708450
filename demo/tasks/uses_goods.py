# Copyright (C) The nginx-dsa authors

"""Services about people and things: contacts, deliveries, goods, recipes, what
food has in it."""

from tasks import names
from tasks.api import parameter, service
from tasks.stated import Typed, few, minutes
from tasks.uses import kinds, one_of
from tasks.words import made_up


DAY = ('today|tomorrow|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday'
       '|Sunday|tonight|this weekend')

PERSON = service('contacts', '''[get|find|look up|search|show] [contact|person|contacts|employee]
[contact|contacts|person|employee|address book] [lookup|search|info|details|]
who is
[directory|people|staff|rolodex] [find|get|lookup|query|person]
[phone book|crm contact|hr person] [get|lookup|search]''',
'''[Finds|Returns|Looks up] [a contact|a person|an entry of the address book] by name
[Contacts|Address book|Staff directory][: phone, mail and city|]
[Phone number|Email address|Details] of a person
[How to reach|Where to reach] [somebody|a colleague|a contact]
The [card|record] of a person: phone, mail, city
[Searches|Queries] the [people directory|list of contacts] [by full name|]''', [
    parameter('name', 'name person full_name contact_name who query',
              '[Name|Full name] of the person'),
    parameter('group', 'group department list', 'Where to search',
              needed=False)],
    'name phone mail city')


def person_case(rng):
    first, last = rng.choice(names.FIRST), rng.choice(names.LAST)

    return dict(name=Typed(f'{first} {last}'), first=first,
                phone=f'+{rng.randrange(1, 99)} {rng.randrange(100, 999)} '
                      f'{rng.randrange(1000, 9999)}',
                mail=f'{first.lower()}{rng.choice("._-")}{last.lower()}'
                     f'@{made_up(rng)}.{one_of(rng, "com|org|net|io")}',
                city=rng.choice(names.PLACES))


LOOK = kinds(PERSON, person_case, r'''
= find the phone number of {name}
@ name
- What is {name}'s [phone |telephone |]number?
- [Give|Get|Find] me the [phone |]number of {name}.
- How can I [call|phone|ring] {name}?
- I [need|want] to call {name}. [What's the number?|Which number?]
- {name}, phone number?
- {name}'s number pls
- number of {name:l}?
- [Phone|Tel.|Number]: {name}
- I [broke|lost|just got a new] phone and [miss|need] the number of {name}.
- [Look up|Check] {name} in the [contacts|address book|directory] and [tell|give] me the phone number.
- [My meeting with|The date with] {name} is off and I should [call|phone]. What's the number?
- [Do you have|Have you got|Is there] a phone number for {name}?
- [Could|Can] you [find|dig out|look up] the phone number of {name}[ for me|]?
- Under [what|which] number [do I reach|can I reach] {name}?
- {name} didn't [answer|reply to] my mail, so I'd rather call. Number, please?
- Which is the phone number from {name}?
- The number of {name}, I need it [right now|now|asap].
- [Contact|Person|Name]: {name}\n[I need the phone number.|Phone?]
- What do I dial to [speak to|talk to|get hold of] {name}?
- [I promised to|I have to|Mum says I should] ring {name}. [Number?|What's the number again?]
- whats the number for {name}
- "Ask {name}", it says on the note. How do I reach this person by phone?
- [Not the mail address, the|Only the] phone number of {name}.
- I'd like to [phone|call|give a ring to] {name}, [please look up the number|what number do you have].
- (Contact: {name}) phone number, please.
- [Remind me,|Sorry,] what was the phone number of {name}?
> The number of {name} is {phone}.
> {first}'s number is {phone}.
> It is {phone}.
> {phone}.
> You can [call|reach] {first} [at|under] {phone}.
> {name}: {phone}
> [Call|Dial] {phone}[ for {first}|].
> [Phone|Number]: {phone}.
> [The contacts say|The entry has] {phone}.
> {first} [has the number|is at] {phone}.
+ {phone}

= find the email address of {name}
@ name
- What is {name}'s [email|mail|email address|mail address]?
- [Get|Find] {name}'s [email|mail address|email address].
- [Where|To which address] do I write to {name}? By email.
- {name}, email?
- email of {name:l} pls
- [Mail address|Email]: {name}
- I [want|have] to [write|send a file] to {name}. [Which email address?|What's the address?]
- [My invitation|The invoice] should go to {name} by email. [What's the address?|Address?]
- Do you [know|have] the email [address |]of {name}?
- [Look up|Check] {name}'s email in [my contacts|the address book].
- {name} [doesn't pick up|never answers the phone], so I'd like to mail. To which address?
- [My mail bounced|I got a mail back]: what's the right email address of {name}?
- How can I reach {name} by email?
- [Contact|Person]: {name}\n[Email address, please.|Mail?]
- whats {name}s email
- I'd need an email address for {name}.
- [Not the number|No phone number], just {name}'s email address.
- The [e-mail|email] of {name}, please.
- Which mail address has {name}?
- [HR|Accounting|The school] wants the email address of {name}. [Find it.|Can you look?]
- [Could|Can] you tell me under which email [I can reach {name}|{name} can be reached]?
- To mail {name}, what address do I use?
- "Cc {name}", says my boss. With which address?
- The letter came back, so I'll write an email to {name}. Where to?
- Could I have {name}'s address for emails?
> The address is {mail}.
> It is {mail}.
> {first}'s address is {mail}.
> {mail}
> You can write to {first} at {mail}.
> {name}: {mail}
> [Email|Mail]: {mail}
> [Write|Send it] to {mail}
> [The contacts say|The entry has]: {mail}
+ {mail}

= find where {name} lives
@ name
- Where does {name} live?
- In which city [does {name} live|is {name}]?
- Which city is {name} [in|from]?
- {name} lives where?
- [I want to visit|I'm going to surprise] {name}. [In which city?|Which city do I go to?]
- [Check|Look up] which city {name} lives in.
- city of {name:l}?
- Home town of {name}, [according to|in] the contacts?
- [Has {name} moved?|Did {name} move?] Which city do my contacts say?
- [Planning a road trip|On my road trip] I could drop by {name}. [What city is that?|Which city?]
- [Can|Could] you [find out|tell me] in what city {name} lives?
- Contact: {name}\nCity?
- I [forgot|can't remember] which city {name} lives in.
- The city where {name} [is|lives], please.
- In what town can I find {name}?
- Where lives {name}?
- [For the parcel|For a postcard] I need to know the city of {name}.
- [Not the phone number, but|Only] the city for {name}.
- {name} - from where is this person?
- Which place does the address book give for {name}?
- "Say hello to {name}", she said. Where does {name} live, which city?
- I'm filling in a form about {name}: city?
- Is {name} far away? In which city, according to the contacts?
- Wasn't {name} from somewhere in the north? Which city is it?
- Invitation for {name}. Which city do I write on the envelope?
> {name} lives in {city}.
> In {city}.
> {first} [lives|is] in {city}.
> [That is|The city is] {city}.
> {city}.
> {name}: {city}.
> [The contacts say|The entry says] {city}.
> [You find {first}|{first}'s home is] in {city}.
+ {city}
''', 'name')

PARCEL = service('deliveries', '''[track|trace] [parcel|package|shipment|order|delivery]
[get|check] [order|delivery|shipping|parcel] status
[order|parcel|shipment] [status|tracking|lookup]
[where is|find|locate|follow] [parcel|package|order|delivery]
[post|courier|logistics|shop] [track|trace|status|order status]''',
'''[Tracks|Returns the state of] [a parcel|an order|a shipment]
[Where a parcel is|State of an order] by its number
[Tracking|Order] [information|status]
[Where|In which state] a delivery is, and when it comes
[Last known place|Status] and delivery day of a [parcel|shipment]
[Asks|Queries] the [carrier|courier] about a [tracking number|shipment]''', [
    parameter('number', 'number order_id tracking_number id order_number code '
              'parcel_id', '[Number|Id] of the [order|parcel|shipment]')],
    'state where day')


def parcel_case(rng):
    state = one_of(rng, 'in transit|delivered|delivered|delayed|at customs'
                        '|out for delivery|being packed|returned|delivered'
                        '|waiting for pickup|cancelled')

    return dict(number=one_of(rng, 'A|B|KX|ORD-|P-|TR|#|')
                + str(rng.randrange(1000, 999999)), state=state,
                done='yes' if state == 'delivered' else 'no',
                where=rng.choice(names.PLACES),
                day=one_of(rng, DAY))


LOOK += kinds(PARCEL, parcel_case, r'''
= check the state of {number}
@ number
- Where is my [order|parcel|package|shipment] {number}?
- [Track|Check] [order|parcel|package|shipment] {number}[ for me|].
- What is the status of {number}?
- What happened to my [order|package] {number}?
- My tracking number is {number}. [Where is it?|What's going on?|Any news?]
- {number} status[?| pls]
- track {number}
- [Any news|Any update] [on|about] [order|parcel|delivery|shipment] {number}?
- [I ordered|I bought] [shoes|a lamp|a present] [weeks ago|last week] and [nothing came|still nothing]. Number {number}. [Where is it?|What's up with it?]
- [Order number|Tracking number|Parcel number]: {number}\n[Where is it now?|Status, please.]
- Did {number} [get lost|get stuck|get sent]? [Where is it, and what's its state?|Check its status and place.]
- [Can|Could] you [see|find out|check] where [parcel|package] {number} is?
- The [shop|seller|website] says "{number}". [Please track that.|Where is this parcel?]
- [My gift|The birthday present] is in parcel {number}. [How is it doing?|Where is it?]
- Still waiting for {number}. [What's the hold-up?|What's the status?|Where is it?]
- In what state is [delivery|shipment] {number}[, and where|]?
- Where's {number} at?
- I am expecting the shipment {number}, please tell me its state and place.
- [Tell|Give] me the [latest|current status] on {number}.
- Hi, [the number is {number}|here's my number: {number}]. I'd like to know what's happening with my package.
- [Look up|Look into] [order|shipment] {number}, [please|will you].
- Parcel ({number}), location and status?
- My neighbour [took|may have] a parcel of mine, number {number}. What does the tracking say?
- [Is|Was] {number} [already sent|still at the warehouse]? [Its state, please.|What's its state?]
- Where does stay my package {number}?
> It is {state}, last seen in {where}.
> Your parcel is {state}[,| and was] last [seen|scanned] in {where}.
> {number} is {state}[, last seen|,] in {where}.
> The state is {state}, [the place is|and it is in] {where}.
> {number}: {state}, {where}.
> [Status|State]: {state} ({where}).
> {state}, in {where}.
> [The tracking says|Tracking]: {state}, {where}.
> Last seen in {where}: {state}.
> [It was last scanned|It is] in {where} and the state is "{state}".
+ {state}; {where}

= find out whether {number} was delivered
@ number
- [Has|Was] my [parcel|order|package] {number} [already |]delivered?
- Is {number} delivered[ yet| or not|]?
- {number} delivered, yes or no?
- did {number} get delivered[ yet|]
- [My neighbor says|The kids say] the courier was here. Has {number} been delivered?
- [The shop wrote|They claim] that {number} has been delivered. Is it so?
- Check if [delivery|parcel|order] {number} has been [handed over|delivered].
- [I was out all day|I was in the shower]. Did they deliver {number}?
- Can I stop waiting for {number}, has it been delivered?
- [Tell me|I want to know] whether {number} was delivered.
- Delivered or not: {number}?
- My [customer|sister] should have {number} by now. Is it delivered?
- Parcel: {number}\nDelivered?
- Was the delivery of {number} done?
- Did the parcel with the number {number} reach its receiver, that is, is it delivered?
- Has the status of {number} become "delivered"?
- [Before I complain|Before I write an angry mail]: is {number} really not delivered?
- I don't see {number} anywhere in the hall. Does the tracking say that it was delivered?
- If {number} is delivered I can go to bed. Is it?
- Yes or no, was shipment {number} delivered?
- Should {number} be at the door, I mean has it been delivered?
- Please see if somebody delivered {number}[ today| already|].
- The present is in {number}. [Has it been delivered?|Is it delivered?]
- Order {number}: delivered?
> {done}, the state is "{state}".
> {done}: {state}.
> {done}. [It says|The tracking says] "{state}".
> {done}, {number} is {state}.
> {done}, [it is|the parcel is] {state}.
> {done} - [the state|its state] is {state}.
> {done}, [according to the tracking|as of now] it is {state}.
+ {done}; {state}

= find when {number} arrives
@ number
- When [will|does] my [order|parcel|package] {number} arrive?
- On which day does {number} come?
- [Expected|] delivery [date|day] of {number}?
- {number} eta[?| pls]
- when is {number} coming
- [How long|Until when] must I wait for {number}? Which day?
- I [have to be|want to be] home when {number} [comes|arrives]. [Which day is that?|When?]
- [Tell|Give] me the [arrival day|delivery day] of {number}.
- [Shipment|Order|Parcel]: {number}\n[When will it be here?|Arrival?]
- [I'm going on holiday|I leave town]. Does {number} come before that? [On which day is it due?|When is it due?]
- Has {number} got a delivery day[ yet|]?
- [Check|Look up] when {number} [is due|will be delivered].
- Can you tell me [on which day|when] [order|package] {number} gets here?
- {number}: which day will it be delivered?
- [My son asks every hour|I'm so excited]: when does {number} get here?
- When can I expect {number}?
- When comes the parcel {number}?
- Not where it is, but when it arrives: {number}.
- [The party is soon|I need the dress soon]. When will parcel {number} be delivered?
- ({number}) delivery date, please.
- I ordered [a book|a chair|pens], number {number}. On what day do I get it?
- The courier has {number}. On what day will he ring at my door?
- Somebody must be home for {number}. When is it due?
- Number: {number}\nDelivery day?
- If all goes well, when do I hold {number} in my hands?
> [It arrives|It comes|Expect it] {day}.
> The [day|delivery day] is {day}.
> {number} [comes|arrives|is due]: {day}.
> {day}[, it says| according to the tracking|].
> [It is due|It should be there|You get it] {day}.
> [Delivery|Arrival]: {day}.
> [The plan says|It is planned for] {day}.
> [Look out for it|Wait for it] {day}.
+ {day}
''', 'number')

PRICE = service('goods and prices', '''[get|find|look up|check] [product|item|price|stock]
[product|item|price|inventory|catalog] [lookup|search|info|check|details]
[shop|store|webshop|erp|warehouse] [product|item|article|get item|price]
[query|read] [catalog|stock|price list|article]''',
'''[Price and stock|Price|Stock] of a product
[Looks up|Finds|Returns] [a product|an article|an item] [of the shop|in the catalog|]
[Catalog|Inventory|Product] [search|lookup]
[What|How much] an article costs and how many are left
Price list and stock of [the shop|our store]
[Reads|Queries] the [article master|product database|price list]''', [
    parameter('product', 'product item name product_name article q',
              '[Name of the|The] [product|item]'),
    parameter('shop', 'shop store branch', 'Which shop', needed=False)],
    'name cost stock')


def price_case(rng):
    product = rng.choice(names.PRODUCTS)

    return dict(product=product, name=product,
                cost=f'{rng.randrange(3, 900)}.'
                     f'{rng.choice(("00", "50", "90", "95", "99"))}',
                stock=rng.randrange(1, 300))


LOOK += kinds(PRICE, price_case, r'''
= find the price of the {product}
@ product
- [How much is|What does|What's the price of] the {product}[ cost|]?
- [What do you charge|How much do I pay] for a {product}?
- [Look up|Check|Tell me] the price of the {product}.
- I want to buy a {product}. What does it cost?
- {product}, how much?
- price {product}[?| pls]
- [Price|Cost] of a {product}[, please|]?
- [My mother|A customer|My flatmate] [asks|wants to know] what the {product} costs.
- [I saw|There was] a {product} in your [window|shop|catalogue]. [What's the price?|How much?]
- How much does the {product} cost?
- [Product|Item|Article]: {product}\nPrice?
- how much for a {product}
- [I'm saving up|I've got some birthday money] for a {product}. How much [do I need|is it]?
- [Is the {product} expensive?|Can I afford the {product}?] [Give me the price.|What does it cost?]
- [Could|Can|Would] you [check|tell me|find out] how much you [want|ask] for the {product}?
- The {product}, what does [it|that] cost?
- [No label on|I see no price on] the {product}. How much is it?
- What's the {product} going for?
- I'd be interested in the {product}, [if the price is right|depending on the price]. [How much is it?|So, how much?]
- [Old one broke|Mine broke], so I need a {product}. [Price?|At what price do you sell it?]
- For the [quote|invoice|insurance claim] I need the price of the {product}.
- How much costs the {product}?
- [What would I pay|What will it set me back] for one {product}?
- whats the price for your {product}
- Price check[:|,] {product}.
- [Not the stock, only|Just] the price of the {product}, please.
> [The {product} costs|It costs|The price is|It is] {cost}.
> {cost}[ for the {product}|].
> [A|The] {product} is {cost}.
> [We sell it|You get it] for {cost}.
> {product}: {cost}.
> [The price of the {product}|Its price] is {cost}.
> One {product} [costs|is] {cost}.
> [You pay|That would be] {cost}.
> It is {cost}[ for one|].
+ {cost}

= find how many of the {product} are left
@ product
- How many [of the {product}|pieces of the {product}] are [in stock|left|available]?
- Do you [still |]have the {product} in stock? How many?
- [Check|Tell me] the stock of the {product}.
- stock {product}[?| pls]
- {product}: how many [left|in stock]?
- Is the {product} [sold out|still available]? How many are there?
- [Inventory|Stock] check: {product}.
- [I need|We need] several of the {product}. How many do you have?
- [A school|A hotel] wants to order many of the {product}. [How many could we deliver?|How many are in the warehouse?]
- How many units of the {product} [do we have|are on the shelf|are there]?
- how many {product} u got
- [Article|Product]: {product}\nQuantity in stock?
- [Running low on|Running out of] the {product}? How many are left?
- [Could|Can] you [count|look up] how many of the {product} [remain|are left]?
- I don't need the price of the {product}, [just|only] how many there are.
- What quantity of the {product} is available?
- [Before I drive over|Before I come by]: is the {product} in stock, and how many?
- How much pieces of {product} are still there?
- [Stock|Number in stock] of the item "{product}", please.
- The {product} - do you have a few? How many exactly?
- Availability of the {product}? [In pieces.|How many?]
- A customer stands here and wants the {product}. How many do we have?
- Do I have to reorder the {product}? How many are in stock?
- Shelf is empty. How many of the {product} are in the stock room?
- Is one {product} enough for two orders? How many do we have?
> [There are|We have] {stock} [in stock|left|available].
> {stock}[ are left| in stock|].
> The stock of the {product} is {stock}.
> {product}: {stock}.
> [Stock|In stock|Available]: {stock}.
> [The number is|The count is] {stock}.
> [You can have|We could send] up to {stock}.
> {stock} of them[ are there|].
+ {stock}
''', 'product')

RECIPE = service('recipes', '''[find|search|get|suggest] [recipe|recipes|dish|meal]
[recipe|meal|cooking|dish] [search|finder|lookup|ideas|suggest|by ingredient]
[cookbook|kitchen|chef] [search|query|find|recipes]
[what to|how to] cook''',
'''[Finds|Suggests|Returns] a recipe [with an ingredient|for an ingredient]
[Recipe search|Recipes] by ingredient, [number of people|people] and time
[Cookbook|Kitchen helper]: what to cook [with something|in a given time]
[Given|From] an ingredient, servings and minutes, [finds|gives] a dish
[Meals|Dishes] that can be made with what is there''', [
    parameter('with', 'ingredient main_ingredient with contains q food using',
              '[Main|The] ingredient'),
    parameter('people', 'servings people portions persons serves n_people',
              '[For how many people|How many servings|Number of people]',
              kind='integer'),
    parameter('time', 'max_minutes minutes time_limit max_time within '
              'duration_min', '[Minutes at most|Time in minutes|Longest time, '
              'in minutes]', kind='integer')],
    'name minutes parts')

FOODS = names.listed('''almonds, apples, apricots, artichokes, asparagus,
aubergines, avocados, bananas, barley, beans, beetroot, blackberries,
blueberries, broccoli, brown rice, brussels sprouts, bulgur, butter beans,
cabbage, carrots, cashews, cauliflower, celery, cheddar, cherries, chestnuts,
chickpeas, cod, corn, cottage cheese, couscous, cranberries, cucumbers, dates,
eggs, fennel, feta, figs, goat cheese, grapes, green beans, halloumi, hazelnuts,
herring, kale, kidney beans, leeks, lemons, lentils, lobster, mackerel, mangoes,
millet, mozzarella, mushrooms, mussels, noodles, oats, olives, onions, oranges,
parsnips, peaches, peanuts, pears, peas, pecans, peppers, pineapple, pistachios,
plums, polenta, potatoes, prawns, pumpkin, quinoa, radishes, raisins, red
lentils, rhubarb, ricotta, salmon, sardines, spinach, squash, strawberries,
sunflower seeds, sweet potatoes, swiss chard, tempeh, tofu, tomatoes, trout,
tuna, turkey, turnips, walnuts, white beans, white rice, wild rice, yoghurt,
zucchini''')
DISH = ('stew|soup|pie|salad|gratin|risotto|curry|omelette|bake|pasta'
        '|casserole|stir fry|wraps|pancakes|tart|dumplings')
TASTE = ('Creamy|Spicy|Quick|Roasted|Summer|Winter|Crispy|Simple|Golden'
         '|Country|Baked|Smoky|Lemon|Garlic|Herb|Sunday|Island|Harvest')


def recipe_case(rng):
    said, people = few(rng, 2, 12)
    limit, n = minutes(rng)
    food, *other = rng.sample(FOODS, 3)

    return {'with': Typed(food), 'people': people, 'said': said,
            'limit': limit, 'time': n,
            'name': one_of(rng, TASTE) + ' ' + one_of(rng, DISH)
            + f' with {food}',
            'minutes': n - 5 * rng.randrange(0, 2),
            'parts': one_of(rng, '{0} and {1}|{0}, salt, {1}'
                                 '|{0}, butter and {1}|{0}, oil, {1}').format(
                *other)}


LOOK += kinds(RECIPE, recipe_case, r'''
= find a recipe with {with} for {people} people in {time} minutes
@ with people time
- [Find|Give|Suggest] me a recipe with {with} for {said} [people|persons], in [at most|under|no more than] {limit}.
- What can I cook with {with} for {said} people in {limit}?
- recipe {with}, {said} people, max {limit}
- [I have|I found] {with} in the [fridge|kitchen|pantry] and {said} [guests|hungry people]. [What can I make in {limit}?|I have {limit}.]
- [Dinner|Lunch] for {said} with {with}, [ready in {limit}|not longer than {limit}]?
- [My guests come in {limit}|In {limit} everybody is here], {said} people. What dish can I make from {with}?
- {with}, {said} servings, {limit}. [Ideas?|What could I cook?|A recipe, please.]
- [We are|We'll be] {said} at the table and [love|want to use up] {with}. [A recipe that takes {limit} at most?|I only have {limit}.]
- Ingredient: {with}\nPeople: {said}\nTime: {limit}\n[Which recipe?|Recipe, please.]
- [The market had|I bought a big bag of] {with}. Please find something for {said} people that's done in {limit}.
- Cooking time [max|at most] {limit}, {said} people, must contain {with}.
- I need [something quick|a dish] with {with} - {limit}, {said} portions.
- Can you [look up|find] a recipe? Main ingredient {with}, serves {said}, {limit}.
- For {said} people and within {limit}: what do I cook with {with}?
- In {limit} I must feed {said} people with {with}. [Help!|What shall I cook?]
- How can I use {with} for a meal of {said} persons? Time is {limit}.
- [Kids are starving|Everyone is hungry], {limit} left, {said} plates, and lots of {with}. Recipe?
- I'd like to cook {with}. It's for {said} people, and I don't want to stand in the kitchen longer than {limit}.
- [Any recipe|Got a recipe] that uses {with}, feeds {said}, and takes {limit}?
- what to cook with {with} for {said} ppl in {limit}
- [Search|Check] the recipes: {with}; {said} servings; [max.|up to] {limit}.
- My {said} [friends|colleagues] visit me, I have {limit} and a lot of {with}. What dish is possible?
- Note on the fridge: "{said} people tonight, {with} must go, {limit} max". So which dish?
- I can cook for {limit}, not longer. It's {with} for {said} people. Which dish?
- Romantic dinners are for two, mine is for {said}. With {with}, in {limit}. What do I cook?
> [How about|Try|Make] "{name}"? It takes {minutes} minutes.
> {name}, [ready in|done in|in] {minutes} minutes.
> "{name}" takes {minutes} minutes[ for {people} people|].
> [I found|There is] "{name}" ({minutes} minutes)[, with {parts}|].
> {name}: {minutes} minutes[, you also need {parts}|].
> [You could cook|Cook] "{name}" in {minutes} minutes.
> In {minutes} minutes you can have "{name}".
> My suggestion: "{name}", {minutes} minutes.
> A dish for you: {name}. It needs {minutes} minutes.
+ {name}; {minutes}

= find what a dish of {with} for {people} people in {time} minutes needs
@ with people time
- What do I [need to buy|have to buy] for a dish with {with}, {said} people, done in {limit}?
- [Look for|Find] a recipe with {with} for {said} people in {limit}. What else goes in?
- Which [other |further |]ingredients does a recipe with {with} need? {said} people, {limit}.
- I [cook|make] something with {with} for {said} people, in {limit}. [Shopping list?|What should I put on the shopping list?]
- shopping list: dish with {with}, {said} servings, {limit}
- [I'm at the shop|I'm in the supermarket]. What goes into a dish of {with} for {said} that takes {limit}?
- If I want to cook {with} for {said} people within {limit}, what else do I need?
- {with} for {said} people in {limit} - [which other ingredients|what other things do I need]?
- [The cook|My flatmate] wants to make {with} for {said} in {limit} and asks what else is in the recipe.
- Besides {with}, what do I need for a meal for {said} made in {limit}?
- Recipe search: {with}, {said} persons, {limit}. Only the ingredients, please.
- [Tell|Give] me the ingredients of a recipe with {with} for {said} people, at most {limit}.
- What should be at home for cooking {with} for {said} persons in {limit}?
- I have {with}, {limit} and {said} guests. What ingredients am I missing for a dish?
- Ingredient: {with}\nPeople: {said}\nTime: {limit}\nWhat else does the recipe need?
- Take a recipe of at most {limit} with {with} for {said} people: what's in it?
- [Dinner tonight|Tonight]: {with}, {said} people, {limit}. Ingredients?
- My list so far: {with}. What else for a recipe that serves {said} and takes {limit}?
- Which things do I need apart from {with}, if I cook for {said} people in {limit}?
- Look up a dish with {with} ({said} people, {limit}). Its ingredients?
- Write me the ingredients: some dish with {with}, {said} servings, up to {limit}.
- A recipe with {with} for {said}, not over {limit}. What do I have to get?
- What does it take to cook {with} for {said} people in {limit}? The ingredients, I mean.
- Ingredients, please. It's a dish of {with} for {said} people, and it may take {limit}.
> [You need|You also need|It needs] {parts}.
> {parts}.
> [For "{name}" you need|"{name}" needs] {parts}.
> [Ingredients|Buy|On the list]: {parts}.
> [Get|Buy] {parts}[ for "{name}"|].
> Besides {with} it takes {parts}.
> The recipe "{name}" asks for {parts}.
> The rest is {parts}.
> You would have to get {parts}.
+ {parts}
''', 'with')

FOOD = service('nutrition facts', '''[get|look up|find|fetch] [nutrition|calories|food facts|nutrients]
[nutrition|food|calorie] [facts|lookup|info|database|counter|value]
[count] [calories|kcal]
[diet|health|food] [values|query|facts]''',
'''[Calories and protein|Nutrition facts|Energy and protein] of [a food|food|an amount of food]
[Returns|Looks up|Gets] what [food|an amount of food] has in it
[Food database|Nutrition table]: food and grams
[Nutrients|Energy] for a number of grams''', [
    parameter('food', 'food item name ingredient product q dish',
              '[The|Name of the] food'),
    parameter('grams', 'grams amount_g weight_g quantity weight grams_total',
              '[Grams|Amount in grams|Weight, in grams]', kind='integer')],
    'calories protein')

GRAMS = (('half a kilo', 500), ('a kilo', 1000), ('1 kg', 1000),
         ('half a pound (250 g)', 250), ('0.5 kg', 500), ('two kilos', 2000),
         ('a quarter of a kilo', 250), ('1.5 kg', 1500), ('one kilogram',
                                                         1000),
         ('a hundred grams', 100), ('two hundred grams', 200),
         ('100 grams', 100), ('fifty grams', 50), ('0.2 kg', 200),
         ('one and a half kilos', 1500), ('three quarters of a kilo', 750))


def food_case(rng):
    n = 10 * rng.randint(2, 90)
    said, grams = rng.choice(GRAMS) if rng.random() < 0.5 else (
        one_of(rng, f'{n} g|{n}g|{n} grams|{n} gram'), n)

    return dict(food=Typed(rng.choice(FOODS)), said=said, grams=grams,
                calories=max(5, grams * rng.randrange(15, 600) // 100),
                protein=max(1, grams * rng.randrange(1, 30) // 100))


LOOK += kinds(FOOD, food_case, r'''
= look up the calories of {grams} grams of {food}
@ food grams
- How many calories [do I get from|are there in] {said} of {food}?
- How many calories are in {said} of {food}?
- calories {said} {food}[?|]
- [Calories|Kcal|Energy] of {food}, {said}[, please|]?
- [I just ate|I had|I've eaten] {said} of {food}. [How many calories was that?|How bad is that in calories?]
- [My diet|My app|My coach] asks for calories: {food}, {said}.
- [I'm on a diet|I count calories] and [fancy|would like] {said} of {food}. How many calories would it be?
- {said} of {food}: how many kcal?
- Food: {food}\nAmount: {said}\nCalories?
- [Look up|Check] the calories in {said} of {food}.
- [Tell|Give] me the energy in kcal for {said} of {food}.
- If I eat {said} of {food}, how many calories do I take in?
- [For the menu|For the label] I need the calories of {said} of {food}.
- How much calories has {said} of {food}?
- whats the kcal of {food} ({said})
- [Could|Can] you work out the calories? It's {said} of {food}.
- Nutrition facts, {food}, {said}: only calories.
- [The dog ate|My brother ate] {said} of {food}! How many calories is that?
- Calorie count for {food}. Weight: {said}.
- [In terms of energy|In kcal], what's {said} of {food}?
- On my plate: {said} of {food}. In kcal that is?
- I weighed it, {said} of {food}. How many calories?
- Swimming for an hour burns a lot. And {said} of {food} gives how many calories?
- Don't judge me, it was {said} of {food}. Calories?
- Calories, not protein: {said} of {food}.
> {said} of {food} has {calories} calories.
> [That is|It is|That makes] {calories} calories.
> {calories} calories.
> {food} ({grams} g): {calories} kcal.
> [There are|It has] {calories} calories in it.
> {calories} kcal[ for {grams} grams|].
> [Energy|Calories]: {calories}.
> {calories} kcal[ in {said} of {food}|].
> Count {calories} calories[ for that|].
+ {calories}

= look up the protein in {grams} grams of {food}
@ food grams
- How much protein [do I get from|is there in] {said} of {food}?
- How much protein is in {said} of {food}?
- protein {said} {food}[?|]
- [Protein|Grams of protein] in {food}, {said}?
- [I lift weights|I do sports|My trainer wants me to eat protein]. What protein does {said} of {food} have?
- {said} of {food}: how much protein?
- Food: {food}\nAmount: {said}\nProtein?
- [Look up|Check] the protein in {said} of {food}.
- [Tell|Give] me the grams of protein in {said} of {food}.
- If I eat {said} of {food}, how much protein do I get?
- Forget the calories, what protein is in {said} of {food}?
- How many protein has {said} of {food}?
- [Can|Could] you find the protein content? {food}, {said}.
- [My doctor wants a|I need a] protein check: {said} of {food}.
- I want muscles. How much protein do I get out of {said} of {food}?
- [A shake or|Meat or] {food}? I'd have {said}. How much protein is that?
- Nutrition facts, {food}, {said}: only protein.
- ({food}, {said}) protein in grams, please.
- On my plate: {said} of {food}. How many grams of protein is that?
- I weighed it, {said} of {food}. How much protein?
- Does {said} of {food} cover my protein? How many grams is it?
- My gym friend eats {said} of {food} a day. How much protein does he get?
- Vegan week: what protein is there in {said} of {food}?
- Protein, not calories: {said} of {food}.
- [Lunch box|Lunch]: {said} of {food}. Protein content?
> {said} of {food} has {protein} grams of protein.
> [That is|It is] {protein} grams[ of protein|].
> {protein} grams.
> {food} ({grams} g): {protein} g protein.
> [There are|It has] {protein} grams of protein in it.
> Protein: {protein} grams.
> [You get|You would get] {protein} grams of protein.
> {protein} g [of protein|are in it].
> That much {food} has {protein} grams[ of protein|].
+ {protein}
''', 'food')
