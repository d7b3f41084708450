# Copyright (C) The nginx-dsa authors

"""Services about places: ways, shops and their hours, departures, hotels."""

from tasks import names
from tasks.api import parameter, service
from tasks.stated import Typed, clearly, date, few, nights
from tasks.uses import kinds, one_of


ROUTE = service('distances', '''[get|find|plan|calculate|compute] [route|directions|distance]
[route|directions|distance|travel time] [planner|finder|between|lookup|matrix|]
[maps|map] [route|directions|distance]
[how far|how long|way|drive] [between|from to|calculator]
[geo|nav|osm|roads] [route|distance|leg|matrix]
[estimate|measure|lookup] [trip|drive|distance]''',
'''[Route|Distance|Directions|Distance and travel time] [from one place to another|between two places]
[Finds|Plans|Computes|Returns] the [route|way|distance] between two [places|cities|addresses]
How far it is from one place to another
[Given|From] start and end, [returns|gives] kilometers and minutes
[Length and duration|Kilometers and minutes] of a [trip|way|drive]
[Road|Map] [distances|data], [in km and minutes|from A to B]''', [
    parameter('start', 'from origin start source from_city start_location',
              '[Where it begins|Start|Origin|Starting point]'),
    parameter('end', 'to destination end target to_city end_location',
              '[Where it ends|Destination|End]'),
    parameter('mode', 'mode travel_mode by transport', 'How to travel',
              choices=('car', 'bike', 'walk', 'train'), needed=False)],
    'distance minutes')


def route_case(rng):
    a, b = rng.sample(names.PLACES, 2)

    return dict(start=Typed(a), end=Typed(b), distance=rng.randrange(3, 2500),
                minutes=rng.randrange(5, 900))


LOOK = kinds(ROUTE, route_case, r'''
= find the distance from {start} to {end}
@ start end
- How far is it from {start} to {end}?
- How [many kilometers|far] is {end} from {start}?
- [What is|What's|Give me] the distance [between {start} and|from {start} to] {end}[?|]
- I [drive|go|travel] from {start} to {end}. How many [km|kilometers] is that?
- [How long is|Tell me the length of] the way from {start} to {end}[?|]
- {start} to {end}, how far?
- distance {start:l} to {end:l}
- {start} - {end}[: distance?|, how many km?|: how many kilometres?]
- [My car only does|My electric car does] 200 km on one charge. How far is {end} from {start}?
- [I'm in|I live in|We start in] {start} and {end} is [next on the list|where we're headed]. How many [km|kilometres] lie between them?
- From: {start}\nTo: {end}\n[Distance?|How far is it?]
- how far is {end:l} from {start:l}[ pls|]
- [Could|Can] you [work out|find out|check] how far apart {start} and {end} are?
- [We're cycling|We'll walk|I ride my motorbike] from {start} to {end}. What's the distance?
- [I'd like to know|I wonder|Tell me] how many kilometers [there are|it is] from {start} to {end}.
- For my travel expenses: [the distance|kilometers] from {start} to {end}[, please|].
- To get to {end} from {start}, how far do I have to [go|drive]?
- The [van|truck] leaves {start} for {end}. How many km will it [drive|have driven]?
- How much kilometers are from {start} until {end}?
- [Route|Way]: {start} -> {end}. [Length?|How long is it in km?]
- [Somebody|My uncle] claims {end} is close to {start}. How far is it really?
- [Distance|Kilometers] between {start} and {end}, please.
- I moved from {start} to {end}. [How far is that?|What distance is that?]
- Is {end} far from {start}? [How many km?|In km, please.]
- [Look up|Check] the [road |]distance from {start} to {end}.
- (from {start}, to {end}) how many kilometers?
> [It is|It's] {distance} km from {start} to {end}.
> {start} to {end}: {distance} km.
> The distance [from {start} to {end}|] is {distance} km.
> [That is|It is] {distance} km.
> {distance} km.
> {end} is {distance} km from {start}.
> [The way|The route] [from {start} to {end}|] has {distance} km.
> {distance} km[ lie between them| between {start} and {end}|].
> From {start} it is {distance} km to {end}.
+ {distance}

= find how long it takes from {start} to {end}
@ start end
- How long [is the way|is the drive|do I need] from {start} to {end}?
- How [many minutes|much time] do I need from {start} to {end}?
- [What is the travel time|When I leave {start} now, how long is it] to {end}[ from {start}|]?
- I'm in {start} and want to be in {end}. How long is the trip?
- {start} to {end}, how long?
- travel time {start:l} to {end:l}
- [Duration|Travel time]: {start} - {end}[?|]
- [I have a meeting|My concert is|The wedding is] in {end}, and I'm still in {start}. How long [does it take|will I need]?
- [Kids ask|The children keep asking] "are we there yet". We drive from {start} to {end} - how many minutes is that?
- how long to get to {end:l} from {start:l}
- [Can|Could] you tell me how long it takes to [get|go|travel] from {start} to {end}?
- [Leaving|Starting] in {start}, how many minutes later [would I be|am I] in {end}?
- From: {start}, to: {end}. [How long does it take?|Minutes, please.]
- [My mother|A friend] drives from {start} to {end}. [How long will it take her?|How much time does that take?]
- How much time takes the way from {start} to {end}?
- I have to plan my day: travel time from {start} to {end}?
- Not the distance but the time from {start} to {end}[, please|].
- [Look up|Check] how many minutes it is from {start} to {end}.
- Will the trip from {start} to {end} take long? [In minutes, please.|How long?]
- [We set off|I set off] from {start} after breakfast. How long to {end}?
- To reach {end} from {start}, how many minutes should I [plan|allow]?
- [It's a long way|The road is long] from {start} to {end}. How long does it take?
- The oven is on in {end}, and I'm still in {start}! How long till I'm there?
- "Pick me up in {end}", she texts. I'm in {start}. How many minutes does that take me?
- How far it is from {start} to {end} I know, but not how long it takes.
> [It takes|You need|The trip takes] {minutes} minutes[ from {start} to {end}|].
> {minutes} minutes.
> From {start} to {end} it is {minutes} minutes.
> [The travel time is|It is] {minutes} minutes.
> {start} to {end}: {minutes} minutes.
> [Plan|Allow] {minutes} minutes[ from {start} to {end}|].
> You get to {end} in {minutes} minutes.
> {minutes} minutes [to {end}|on the way].
> The trip to {end} is {minutes} minutes long.
+ {minutes}
''', 'end')

PLACE = service('places nearby', '''[find|search|list|get] [places|nearby places|restaurants|venues|local businesses]
[places|venue|local|nearby] [search|finder|lookup]
[poi|place|map|city] [search|query|finder|by kind]
[shops|venues|businesses] [in city|nearby|search]
[where is|what is] nearby''',
'''[Finds|Lists|Searches] [places|shops and restaurants|businesses] [in a city|near a location]
[Places|Local search] with [ratings|addresses], by kind and city
Points of interest [of a kind|by category] in a city
[Which|What] [shops, bars and so on|places] there are in a [town|city]
[Suggests|Recommends] places with street, rating and opening time''', [
    parameter('what', 'category type kind query keyword what',
              'Kind of place[, e.g. bakery|]'),
    parameter('city', 'city near location where area',
              'Where to search'),
    parameter('open', 'open_now is_open', 'Only those that are open',
              kind='boolean', needed=False)],
    'name rating street opens')

SHOP = ('bakery|pharmacy|hotel|cafe|library|gym|bookshop|hairdresser|cinema'
        '|dentist|florist|museum|pizzeria|sushi restaurant|vegan restaurant'
        '|bike shop|supermarket|bar|pub|car park|bank|post office|hostel'
        '|swimming pool|toy shop|tailor|butcher|playground|laundromat')


def place_case(rng):
    def name():
        return f'{rng.choice(names.ADJECTIVES)} {rng.choice(names.NOUNS)}' \
            .title()

    records = [dict(name=name(), rating=f'{rng.randrange(2, 5)}.'
                                        f'{rng.randrange(10)}',
                    street=f'{rng.choice(names.LAST)} '
                           f'{one_of(rng, "Street|Road|Lane|Square")} '
                           f'{rng.randrange(1, 200)}',
                    opens=f'{rng.randrange(6, 13):02}:{rng.choice("03")}0')
               for _ in range(rng.randint(1, 3))]
    best = max(records, key=lambda r: float(r['rating']))

    return dict(what=one_of(rng, SHOP), city=Typed(rng.choice(names.PLACES)),
                records=records, **{f'first_{k}': v
                                    for k, v in records[0].items()},
                best=best['name'], top=best['rating'])


LOOK += kinds(PLACE, place_case, r'''
= find a {what} in {city}
@ what city
- [Find|Show|Get] me a {what} in {city}.
- Is there a {what} in {city}?
- [Where is|Where can I find|Where do I find] a {what} in {city}?
- I [need|am looking for|want] a {what} [in|near] {city}.
- Any {what} [in|near] {city}?
- {what} {city:l}[?|]
- {what} in {city}[, please|]
- [I'm stuck|We're stranded|I'm staying] in {city} and [need|could do with] a {what}.
- [Do you know|Can you recommend] a {what} in {city}?
- [I just moved|We've moved] to {city}. [Where's|Is there] a {what}?
- [Kind|Category]: {what}\nCity: {city}\n[Find one.|One is enough.]
- [My mother|A guest|My friend] is [asking|looking] for a {what} in {city}.
- a {what} somewhere in {city} pls
- [Search|Look up] places: {what}, {city}.
- Does {city} have a {what}?
- In {city}, where [would|do] I go for a {what}?
- [Which|What] {what} is there in {city}? [One will do.|Just the first.]
- [I'll be|I'm] in {city} for [a day|work], so I'd like the name and street of a {what}.
- Where in {city} exists a {what}?
- [It's late and|It's early,] I'm in {city}, {what} needed.
- [Could|Can] you [look|check] whether there's a {what} in {city}?
- [Help!|Urgent:|SOS:] {what} in {city}, where?
- Somewhere in {city} there must be a {what}. [Where?|Find it, please.]
- [Street|Address] of a {what} in {city}, please.
- I'd rather not search all of {city} on foot: where's a {what}?
> [There is|I found|Try] [the |]{first_name}[,| at|:] {first_street}.
> {first_name}, {first_street}.
> {first_name} is at {first_street}.
> [The first one is|One is|How about] {first_name} at {first_street}.
> [Go to|You could go to] {first_name}, {first_street}.
> Yes: {first_name}, {first_street}.
> {first_name} ({first_street})[ is one| in {city}|].
> At {first_street} there is {first_name}.
> [In {city} there is|Nearby is] {first_name}, at {first_street}.
+ {first_name}; {first_street}

= find the best rated {what} in {city}
@ what city
- [What is|Which is] the best[ rated|] {what} in {city}?
- Which {what} in {city} has the highest rating?
- I want the top {what} in {city}.
- best {what} {city:l}[?|]
- [Where's|Who has] the best {what} in {city}? [By rating.|Go by the ratings.|Which has the most stars?]
- {city}: best rated {what}?
- [It's our anniversary|My parents visit], only the best {what} in {city} will do. Which [has the top rating|is rated best]?
- Compare the ratings of every {what} in {city} and give me the [best|top] one.
- [Top rated|Highest rated] {what}, {city}[, please|].
- The {what} with the most stars in {city}?
- [Which|What] {what} do people in {city} rate the highest?
- [I'm picky|Quality matters to me]. Best rated {what} in {city}, please.
- [Find|Show] me the {what} in {city} with the best reviews.
- If I look for a {what} in {city}, which one has the best rating?
- Best {what} of {city} according to the ratings?
- Not just any {what} in {city}, the one with the highest score.
- I treat myself: the best {what} in {city}. Which is it, and what's its rating?
- [My boss|My mother-in-law] expects a good {what} in {city}. [Which is rated best?|Which has the highest score?]
- Who has highest rating, looking for {what} in {city}?
- Rank each {what} in {city}. Who's first, by stars?
- Kind: {what}\nCity: {city}\nThe best by rating, please.
- I only trust ratings. {what}, {city}, number one?
- My sister swears there's a good {what} in {city}. Which has the highest rating?
- What do people like best when it comes to a {what} in {city}? Go by rating.
- If you had to choose a {what} in {city} by its rating, which one?
> The best is {best}, [rated|with] {top}.
> It is {best}, [rated|with] {top}.
> {best} [has the highest rating, {top}|is rated {top}|({top})].
> {best} with {top}[ stars|].
> [The top one|The best rated] is {best} ({top}).
> [Go to|Take] {best}, it has {top}[ stars|].
> {top} stars: {best}.
> {best} is the best[ in {city}|], [at|with] {top}.
+ {best}; {top}

= find when the first {what} in {city} opens
@ what city
- When does a {what} in {city} open? [Take the first that you find.|The first one is fine.]
- From when on is a {what} in {city} open? [Just the first result.|]
- I [have to be at|need to go to] a {what} in {city} [early|first thing]. When does the first on the list open?
- [Opening time|Opening hours] of a {what} in {city}? [The first one listed, please.|Take the first.]
- {what} {city:l} - when do they open[?| (the first one)]
- [How early|At what time] can I go to a {what} in {city}? [First result, please.|The first one listed will do.]
- [Find|Look for] a {what} in {city} and tell me when it opens[, the first one is fine|].
- In {city} I need a {what}. From what time is the first one open?
- When opens the first {what} in {city}?
- Take the first {what} in {city}: when does it open?
- A {what} in {city}, any. What time does it open? I take the first.
- [I get up early.|I'm an early bird.] The first {what} that you find in {city} opens when?
- [Tell|Give] me the opening time of the first {what} you find in {city}.
- [Is it open yet?|Open already?] The first {what} in the list for {city} - from when on?
- Search {what} in {city}. When does the top result open?
- For {city}: {what}, opening time of the first hit.
- [Do I have to wait long|Will I stand before closed doors]? First {what} you find in {city}, opening at?
- Which time opens a {what} in {city}? Only the first one.
- [My train arrives early|I arrive at dawn] in {city}. When does the first {what} listed open?
- whats the opening time, first {what} u find in {city:l}
- Kind: {what}\nCity: {city}\nOpening time of the first result?
- List each {what} in {city}, and tell me when the first of the list opens.
- I have one errand in {city}, at a {what}. First one you find: from when on can I go?
- A {what} in {city}, the first in your list: opening time?
> {first_name} opens at {first_opens}.
> [At|It opens at|From] {first_opens}[ ({first_name})|].
> {first_opens}, at {first_name}.
> The first one, {first_name}, opens at {first_opens}.
> {first_name}: from {first_opens}.
> [You can go there|It is open] from {first_opens}[ on|].
> {first_opens}[ ({first_name})|].
> It is {first_name}, open from {first_opens}.
> From {first_opens} you can go to {first_name}.
+ {first_opens}
''', 'city')

HOURS = service('opening hours', '''[get|find|look up|check] [opening hours|business|business info|shop info|store details]
[business|shop|store|venue] [info|details|lookup|entry|hours|card]
[opening|business] [hours|times] [lookup|by name|]
[yellow pages|city guide|business directory] [lookup|entry|get|search]''',
'''[Opening hours|Hours] and phone of a [business|shop|restaurant] by name
[Returns|Gets|Finds] [when a business opens and closes|the entry of a business]
[Business directory|Yellow pages]: [hours, phone and street|look up one business]
[Details|Information|Data] of a [named|given] [shop|restaurant|business] in a city
[When|Until when] a [shop|business] is open, and how to reach it''', [
    parameter('name', 'name business shop store venue business_name company',
              '[Name of the|The] [business|shop|place]'),
    parameter('city', 'city location town place where in_city',
              '[City|Town][ where it is|]')],
    'opens closes phone street')

FIRM = ('bakery|pharmacy|cafe|bookshop|cinema|florist|museum|pizzeria|bank'
        '|bike shop|garage|optician|salon|gallery|bistro|hardware store'
        '|garden centre|tea house|library|toy shop|pet shop|brewery')


def hours_case(rng):
    opens, closes = rng.randrange(6, 12), rng.randrange(16, 23)
    hour = rng.choice((rng.randrange(5, opens), rng.randrange(opens + 1, 16),
                       rng.randrange(closes + 1, 24)))

    return dict(name=Typed(f'{rng.choice(names.ADJECTIVES)} '
                           f'{rng.choice(names.NOUNS)} {one_of(rng, FIRM)}'
                           .title()),
                city=Typed(rng.choice(names.PLACES)), hour=f'{hour:02}:00',
                open='yes' if opens < hour < closes else 'no',
                opens=f'{opens:02}:{rng.choice("03")}0',
                closes=f'{closes:02}:{rng.choice("03")}0',
                phone=f'0{rng.randrange(10, 999)} '
                      f'{rng.randrange(1000, 999999)}',
                street=f'{rng.choice(names.LAST)} '
                       f'{one_of(rng, "Street|Road|Lane|Square|Avenue")} '
                       f'{rng.randrange(1, 200)}')


LOOK += kinds(HOURS, hours_case, r'''
= find when the {name} in {city} opens
@ name city
- When does the {name} in {city} open?
- [What time|From what time on] is the {name} in {city} open?
- [Opening time|Opening hours], {name}, {city}?
- when does {name:l} open ({city:l})
- I want to be first in line at the {name}, in {city}. [When do they open?|When do the doors open?]
- [How early|At what time] can I go to the {name} in {city}?
- {name}, {city}: opens at?
- [Check|Look up] when the {name} ({city}) opens.
- In {city} there's a shop named "{name}". When does it open?
- I'm standing in front of the {name} in {city}, and it's closed. [When will it open?|From when on is it open?]
- [Tell|Give] me the opening time of the {name} in {city}.
- [My appointment|The tour] starts at the {name} in {city}. [I wonder when they open.|When do they open?]
- Business: {name}\nCity: {city}\nWhen does it open?
- Does the {name} in {city} open early? [What time?|When exactly?]
- [We're in|We're visiting] {city} and [love|want to see] the {name}. When does it open?
- [Could|Can] you [find out|tell me] when the {name} opens? It's in {city}.
- At which hour opens {name} in {city}?
- Open when? {name}, {city}.
- [Before work|On my way to work] I stop at the {name}, {city}. Do you know when they open?
- The opening time of "{name}" in {city}, please.
- "Meet you at the {name} when they open", he wrote. It's in {city}. What time is that?
- Do I have time for coffee before the {name} in {city} opens? When is that?
- The {name}, {city}: I want to be there first. Opening time?
- Is 7 too early for the {name} in {city}? When do they open?
> The {name} opens at {opens}.
> [It opens|They open] at {opens}.
> {opens}[ in the morning|].
> {name}: from {opens}[ to {closes}|].
> [It is|They are] open from {opens}[ on|].
> [From|At] {opens}.
> [In {city}|] the {name} is open from {opens}.
> They let you in from {opens}[ on|].
> Opening time: {opens}.
+ {opens}

= find when the {name} in {city} closes
@ name city
- When does the {name} in {city} close?
- [Until when|How late] is the {name} in {city} open?
- [Closing time|Closing hours], {name}, {city}?
- what time does {name:l} in {city:l} close
- I [finish work late|can't leave before five]. Until when is the {name} in {city} open?
- [Can I still make it to|Will I make it to] the {name} in {city}? When do they close?
- {name}, {city}: closes at?
- [Check|Look up] when the {name} ({city}) closes.
- [Tell|Give] me the closing time of the {name} in {city}.
- How long is the {name} open today? It's in {city}. [I mean the closing time.|When does it close?]
- Business: {name}\nCity: {city}\nWhen does it close?
- [Our bus is late|We are late]. Does the {name} in {city} close soon? [At what time?|When?]
- The {name} of {city} shuts at what time?
- [They throw us out|The last round is] when the {name} in {city} closes. When is that?
- At which hour closes the {name} in {city}?
- [Could|Can] you [find out|tell me] when the {name} closes? It's in {city}.
- [I'd like to|We'd like to] go to the {name} in {city} this evening. How late are they open?
- Shop hours: {name} in {city}, closing time only.
- [I left my scarf at|I have to return something to] the {name}, {city}. Until what time are they there?
- When's closing time at "{name}", in {city}?
- "Come before we close", writes the {name} in {city}. And when is that?
- I still need something from the {name} in {city}. How long have I got, until what time are they open?
- When do they lock up at the {name}, {city}?
- Is ten in the evening too late for the {name} in {city}? When do they close?
> The {name} closes at {closes}.
> [It closes|They close] at {closes}.
> {closes}[ in the evening|].
> {name}: until {closes}.
> [It is|They are] open until {closes}.
> [Until|At] {closes}.
> [In {city}|] the {name} is open until {closes}.
> You can stay until {closes}.
> Closing time: {closes}.
+ {closes}

= find out whether the {name} in {city} is open at {hour}
@ name city
- Is the {name} in {city} open at {hour}?
- Can I go to the {name} in {city} at {hour}?
- {name}, {city}, {hour}: open or closed?
- I [finish work|get off the train] at {hour}. Is the {name} in {city} open then?
- Is {hour} a time when the {name} in {city} is open?
- [Will|Would] I find the {name} in {city} open at {hour}?
- is {name:l} ({city:l}) open at {hour}
- My friend wants to meet at {hour} at the {name} in {city}. Do they have open then?
- [Check|See] whether the {name} in {city} is open at {hour}.
- At {hour}, are there still people at the {name}, {city}, to serve me?
- At {hour} I could be at the {name} in {city}. Is it open?
- Business: {name}\nCity: {city}\nOpen at {hour}?
- {hour} at the {name} ({city}) - does that work with their hours?
- If I come to the {name} in {city} at {hour}, is it open?
- Open at {hour}? I mean the {name} in {city}.
- The {name} in {city}, has it open by {hour}?
- I can be there at {hour}. Is that within the hours of the {name} in {city}?
- Are they open if I go to the {name} in {city} around {hour}?
- [The parcel|My order] waits at the {name} in {city}, and I'm free at {hour}. Are they open then?
- Someone said the {name} in {city} is open at {hour}. Is it?
- {hour} is when I have time. The {name}, in {city}, open then?
- Would the {name} of {city} let me in at {hour}, is it open?
> {open}, it is open from {opens} to {closes}.
> {open}: {opens} to {closes}.
> {open}. [The hours are|They are there from] {opens} to {closes}.
> {open}, [the {name}|it] opens at {opens} and closes at {closes}.
> {open}, their hours are {opens} to {closes}.
> {open}[, at least|] according to the hours: {opens} to {closes}.
> {open}. From {opens} to {closes} [it is open|they are open].
+ {open}; {opens}; {closes}

= find the phone number of the {name} in {city}
@ name city
- What is the phone number of the {name} in {city}?
- [How can I call|How do I reach] the {name} in {city}? [By phone.|I need the number.]
- phone number {name:l} {city:l}
- I [want|need] to [reserve|order|complain] by phone: the number of the {name} in {city}[, please|]?
- {name}, {city} - telephone?
- [Look up|Find|Get] the number of the {name} in {city}.
- Nobody answers the mails of the {name} ({city}). What's their phone number?
- [Business|Shop]: {name}\nCity: {city}\nPhone number?
- [Can|Could] you get me the {name} in {city} on the phone? I mean, their number.
- [I lost|I threw away] the card of the {name} in {city}. What's the number?
- Which number must I dial for the {name}, {city}?
- I'd like to ring the {name} in {city}.
- [Tell|Give] me the telephone number of the {name} in {city}.
- In {city}, what is the number of the "{name}"?
- Before I drive to the {name} in {city} I [had better|want to] call. Number?
- Phone: {name} in {city}?
- How is the phone number from {name} of {city}?
- [My order|My repair] at the {name} in {city} is late, I'll call them. [What's the number?|The number, please.]
- number for {name}, {city} pls
- Who can I phone at the {name} in {city}? [Just the number.|The number is enough.]
- I'd rather talk to a human at the {name} in {city}. What number do I dial?
- Calling ahead: {name}, {city}. The number?
- Is there a way to phone the {name}? City: {city}.
- Their website is down: {name}, {city}. Do you have a phone number?
> The number [of the {name}|] is {phone}.
> {phone}.
> [It is|Call|You can call] {phone}.
> {name}: {phone}.
> The {name} [has the number|can be reached at|is at] {phone}.
> Phone: {phone}.
> [Their number is|Dial] {phone}.
> Try {phone}.
> Here it is: {phone}.
+ {phone}
''', 'city')

DEPARTURES = service('departures', '''[get|list|show|fetch|check] [departures|next departures|timetable|departure board|trains]
[departures|timetable|transit|station|stop] [board|list|next|lookup|from stop|monitor]
[next] [departures|trains|buses]
[transit|transport|railway|bus] [departures|timetable|board|next]''',
'''[Lists|Returns|Shows] the next departures [from|of|at] a [stop|station]
[Departure board|Timetable] of a [stop|station|bus stop]
[Public transport|Trains and buses]: [next departures|line, time and platform]
[When|What] leaves next at a [station|stop]
[Live|Planned] departures with line, direction, time and platform''', [
    parameter('stop', 'stop station from stop_name at origin location halt',
              '[Name of the|The] [stop|station]'),
    parameter('count', 'count limit n max number num_departures how_many',
              '[How many|Number of] departures', kind='integer')],
    'line where leaves stand')

HALT = ('Central Station|Main Station|Town Hall|Harbor|University|Zoo|Airport'
        '|Market Square|Riverside|Old Bridge|Hospital|Opera|City Park')


def departures_case(rng):
    said, n = few(rng, 2, 4)
    at, records = rng.randrange(5 * 60, 22 * 60), []

    for _ in range(n):
        at += rng.randrange(2, 25)
        records.append(dict(
            line=rng.choice(('S', 'U', 'RE ', 'IC ', 'Bus ', 'Tram '))
            + str(rng.randrange(1, 99)), where=rng.choice(names.PLACES),
            leaves=f'{at // 60:02}:{at % 60:02}', stand=rng.randrange(1, 20)))

    return dict(stop=Typed(f'{rng.choice(names.PLACES)} {one_of(rng, HALT)}'),
                said=said, count=n, records=records,
                first=records[0]['leaves'], line=records[0]['line'],
                to=records[0]['where'], stand=records[0]['stand'],
                last=records[-1]['leaves'],
                times=', '.join(r['leaves'] for r in records),
                both=' and '.join(r['leaves'] for r in records[:2]))


LOOK += kinds(DEPARTURES, departures_case, r'''
= list the next {count} departures at {stop}
@ stop count
- When do the next {said} [trains or buses|lines] leave from {stop}?
- [Show|List|Give] me the next {said} departures [at|from] {stop}.
- Next {said} departures, {stop}[?|, please]
- {stop}: what are the [next {said}|{said} next] departure times?
- next {count} departures {stop:l}
- I'm [waiting|standing] at {stop}. When do the next {said} leave?
- [Can|Could] you look up the next {said} departures from {stop}?
- [At what times|When] [do|will] the next {said} [things leave|departures be] at {stop}?
- Stop: {stop}\nNumber: {count}\n[Departure times, please.|When do they leave?]
- [I just missed my train|The bus drove off without me] at {stop}. The next {said} departures, please.
- [Departure board|Timetable] for {stop}, [just|only] the next {said}.
- How late leave the next {said} from {stop}?
- From {stop}, the {said} next times?
- [We're a group and must split up|I like to have a choice]. Times of the next {said} departures at {stop}?
- Tell me the next {said} departure times for {stop}.
- [Grandma|My son] is at {stop}. When are the next {said} departures?
- whats leaving next from {stop:l}, {said} of them
- What [goes|runs] from {stop} next? The times of {said} departures are enough.
- Departures at {stop} (the next {said})?
- I need {said} departure times, starting now, at {stop}.
- My phone battery is at two percent. Quick: the next {said} departures at {stop}!
- "{stop}", says the sign here. When do the next {said} leave?
- Board of {stop}: {said} departures, [only the times|times only].
- We're at {stop} with suitcases. In what order do the next {said} leave, at which times?
> [The next {count} leave|They leave] at {times}.
> {times}.
> [From|At] {stop}: {times}.
> [Departures|The next departures] [from {stop}|]: {times}.
> The next {said} [departures|] are at {times}.
> {stop}: {times}[, beginning with {line}|].
> [The times are|You have departures at] {times}.
> Something leaves at {times}.
> On the board of {stop}: {times}.
+ {first}; {last}

= find the first of the next {count} departures at {stop}
@ stop count
- [Get|Look up] the next {said} departures at {stop}. [Which line goes first?|Which line is the first?]
- Of the next {said} departures at {stop}, which leaves first, [and when|and at what time]?
- [Check|Look at] the next {said} departures from {stop}. What's the first [line and its time|one]?
- The next {said} departures of {stop}, but [tell me|I want] only the first, with its line.
- {stop}, next {said} departures: first line and time?
- Among the next {said} at {stop}, what is the first line to leave?
- I'm late for the {stop} stop! Get {said} departures and give me the first, line and time.
- [Fetch|Load] {said} departures for {stop} and name the first of them, with line and time.
- If you [list|look at] the next {said} departures at {stop}, what [comes|leaves] first?
- which line leaves first at {stop:l}, check the next {said}
- Ask for {count} departures at {stop}. Name [only |]the [first|earliest]: which line, when?
- Which one is first of the next {said} departures in {stop}?
- [My feet hurt|It's raining], I take whatever leaves {stop} first. Look at the next {said} and give line and time.
- From {stop}: the next {said}, and out of them the first line.
- [Read the board|Look at the board] of {stop}, {said} entries. Which line is on top, at what time?
- I don't care where it goes. Of the next {said} departures at {stop}, which is first?
- Out of {said} coming departures at {stop}, I need the first: line, time.
- Stop: {stop}\nDepartures: {count}\nWhich is first?
- Whatever leaves {stop} first is mine. Check {said} departures: which line, what time?
- If you had {said} departures of {stop} on a board, which would be at the top? Line and time.
- Not all of the next {said} departures at {stop}, only the very first: its line and when it goes.
- My boss takes the first thing that leaves {stop}. Look at the next {said}: which line, what time?
- {stop}. Ask for {said} departures, tell me the earliest one with its line.
- Let me have the first of the next {said} departures at {stop}, with line and time.
- Can you fetch {said} departures for {stop}? I only want to hear about the first.
> {line} leaves first, at {first}.
> [The first is|First comes] {line} at {first}.
> {line}, at {first}[ to {to}|].
> {line} to {to}, {first}, [platform|stand] {stand}.
> [At {first}|{first}:] {line}[ to {to}|].
> {line} [goes|leaves] at {first}[, to {to}|].
> It is {line}, which leaves at {first}.
> Take {line} at {first}.
> First: {line}, {first}.
+ {line}; {first}
''', 'stop')

HOTEL = service('hotel prices', '''[find|search|get|list|check] [hotels|hotel|hotel rooms|stays|accommodation]
[hotel|stay|room|lodging] [search|finder|lookup|availability|offers|prices]
[hotels|rooms] [in city|available|free]''',
'''[Finds|Lists|Searches] [free hotel rooms|hotels] [in a city|for a stay]
[Hotels|Rooms] with prices for a [stay|city, day and number of nights]
[Hotel search|Accommodation search]: city, arrival and nights
[Which|What] hotels are free, and what they cost
Offers of hotels for [a stay|given nights]''', [
    parameter('city', 'city location where town destination place',
              '[City|Where to stay|The city]'),
    parameter('day', 'arrival check_in from checkin_date start_date day',
              '[Arrival|Day of arrival|Check-in], [YYYY-MM-DD|as YYYY-MM-DD'
              '|such as 2027-01-31]'),
    parameter('nights', 'nights duration length num_nights stay n_nights',
              '[How many|Number of] nights', kind='integer')],
    'name cost rating')


def hotel_case(rng):
    said, day = date(rng)
    stay, n = nights(rng)
    costs = rng.sample(range(40, 400), rng.randint(1, 3))
    records = [dict(name='Hotel ' + f'{rng.choice(names.ADJECTIVES)} '
                    f'{rng.choice(names.NOUNS)}'.title(), cost=n * c,
                    rating=f'{rng.randrange(2, 5)}.{rng.randrange(10)}')
               for c in costs]
    least = min(records, key=lambda r: r['cost'])

    return dict(city=Typed(rng.choice(names.PLACES)), day=day, said=said,
                nights=n, stay=stay, records=records, n=len(records),
                first=records[0]['name'], cost=records[0]['cost'],
                cheap=least['name'], least=least['cost'])


LOOK += kinds(HOTEL, hotel_case, r'''
= find the cheapest hotel in {city} from {day} for {nights} nights
@ city day nights
- [What is|Which is|Find me] the cheapest hotel in {city} from {said} for {stay}[?|]
- [I'm|We're] [spending|staying for] {stay} in {city}[, arriving on|, from] {said}. [Cheapest hotel?|What's the cheapest room?]
- [Cheap hotel|Cheapest hotel], {city}, {said}, {stay}[, please|?]
- [I need|I'm looking for] a [cheap bed|cheap room] in {city} for {stay}. I arrive on {said}. [Which hotel costs least?|Cheapest offer?]
- On {said} we get to {city} and stay for {stay}. What does the cheapest hotel cost?
- cheapest hotel {city:l} {said} {stay}
- City: {city}\nArrival: {said}\nStay: {stay}\n[Cheapest hotel, please.|Which hotel is the cheapest?]
- For {stay} from {said}, which hotel in {city} [is cheapest|has the lowest price]?
- [My budget is tight|I'm a student], so what's the cheapest hotel in {city}? Arrival {said}, {stay}.
- [Check-in|Check in] {said}, {stay}, {city} - which hotel is the cheapest?
- [The conference|My course] in {city} begins on {said}; I stay {stay}. The lowest price for a hotel?
- [Check|Look up] hotels in {city}. [We come on|We arrive on] {said} and stay for {stay}, as cheap as possible.
- We want to spend {stay} at {city} starting {said}. Cheapest?
- How much is the cheapest hotel if I stay {stay} in {city} from {said}?
- [Two backpackers|Four students] need the cheapest place to sleep in {city}, from {said}, {stay}.
- {city}, {stay}, from {said}: the hotel with the lowest price?
- I will be in {city} {stay} from {said}. Which hotel is most cheap?
- [Compare|Look through] hotels in {city} for a stay of {stay} from {said} and name the cheapest.
- I have holidays! {city}, {stay}, starting on {said}. Where do I sleep for the least money?
- From {said} on I need a roof over my head in {city} ({stay}). The cheapest one, please.
- Wedding in {city}! We arrive on {said} and stay for {stay}. Which hotel is the cheapest?
- Dear travel desk, I have to be in {city} for {stay} from {said}. Please name the cheapest hotel.
- My parents visit {city}. They need a room for {stay}, from {said}, and don't want to pay much. Which hotel is the cheapest?
- Arriving {said}, leaving after {stay}, sleeping in {city}: which hotel costs the least?
- Money is short. {city}, {said}, {stay}: lowest hotel price?
> The cheapest is {cheap} at {least}.
> {cheap} [for|at] {least}.
> [It is|Take|That would be] {cheap}, [for|which costs] {least}.
> {cheap} costs the least, {least}[ for the stay|].
> {least}, at {cheap}.
> In {city} {cheap} is the cheapest: {least}.
> [Cheapest|Lowest price]: {cheap}, {least}.
> You pay the least at {cheap}, namely {least}.
> I would take {cheap}: {least}.
+ {cheap}; {least}

= count the hotels in {city} from {day} for {nights} nights
@ city day nights
- How many hotels in {city} are free from {said} for {stay}?
- [Is anything|Is there anything] free in {city} from {said}, {stay}? How many hotels?
- [Count|Number of] hotels with free rooms: {city}, {said}, {stay}[.|]
- {city}, arrival {said}, {stay}: how many hotels [are there|have rooms]?
- [Do I have to hurry|Is it getting full] in {city}? How many hotels are left for {stay} from {said}?
- If we come on {said} for {stay}, how many hotels in {city} have a room?
- how many hotels free in {city:l} {said} {stay}
- [We come|They come] to {city} on {said} for {stay}. How many hotels could we choose from?
- Tell me how many hotels you find in {city} for a stay of {stay} from {said}.
- For {stay} starting on {said}, how many hotels does {city} offer?
- City: {city}\nArrival: {said}\nStay: {stay}\nHow many free hotels?
- How much hotels are available at {city} from {said} during {stay}?
- [My friends|The guests] arrive in {city} on {said} and stay for {stay}. How many hotels have free rooms then?
- Search hotels ({city}, {said}, {stay}) and count them.
- I only want to know how many hotels there are in {city} for {stay}, beginning {said}.
- A stay of {stay} in {city} from {said} - number of free hotels?
- Fair week in {city}: is anything free from {said} for {stay}? Tell me how many hotels.
- How many hotels have rooms if I want {stay} in {city}, starting {said}?
- Before we decide on {city}: from {said}, for {stay}, how many hotels are free?
- Rooms in {city}, {said}, {stay}: how many hotels still have some?
- The trip to {city} is fixed: we come on {said} and leave after {stay}. How many hotels can we choose from?
- Number of hotels available in {city}, check-in {said}, {stay}, please.
- I'd like a choice of hotels in {city} for {stay} from {said}. How many are there?
- Are there many free hotels in {city}? It's for {stay}, from {said}. How many?
> [There are|I found] {n}.
> {n}[ hotels| hotel(s)|].
> [It is|That makes|The number is] {n}.
> {n} [in {city}|are free|with rooms].
> [Free|Hotels found]: {n}.
> You can choose from {n}.
> The search found {n}[ in {city}|].
> {n} for {stay}[ in {city}|].
> {city} has {n} for you.
+ {n}
''', 'city', clearly)
