# Copyright (C) The nginx-dsa authors

"""Services that look something up: weather, search, prices, translation,
places, people, deliveries, goods."""

from tasks import happen, names
from tasks.api import parameter, service
from tasks.uses import kinds, loosely, one_of
from tasks.words import made_up


SKY = ('clear sky|sunny|light rain|heavy rain|cloudy|overcast|fog|snow|drizzle'
       '|thunderstorms|hail|windy|partly cloudy|mist|sleet|showers')
DAY = ('today|tomorrow|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday'
       '|Sunday|tonight|this weekend')

WEATHER = service('the weather', '''[get|fetch|check|look up|show|query|read]
  [weather|current weather|city weather|weather report|conditions]
[weather|forecast|current weather|local weather]
[weather|forecast] [lookup|service|info|report|check|api|now|by city|data]
current [conditions|weather|temperature]'''.replace('\n  ', ' '),
'''[Get|Returns|Fetches|Look up|Shows] the [current|latest|] weather [for|of|in]
  a [city|location|place|town]
[Weather|Current weather|Weather report] [for|by|of] [city|location|place]
[Temperature|Conditions] and [sky|wind] [in|at] a given [city|location]
Use this to find out [what the weather is like|about the weather] somewhere.
'''.replace('\n  ', ' ').strip(), [
    parameter('city', 'city location place town city_name q query where',
              '[The|Name of the] [city|location|place][, e.g. Paris'
              '| to look up|]'),
    parameter('unit', 'unit units temperature_unit', '[Unit|Units] of the '
              'temperature', choices=('celsius', 'fahrenheit'),
              needed=False),
    parameter('days', 'days forecast_days num_days',
              'How many days', kind='integer', needed=False)],
    'city temp sky wind humidity')


def weather_case(rng):
    return dict(city=rng.choice(names.PLACES), temp=rng.randrange(-18, 39),
                sky=one_of(rng, SKY), wind=rng.randrange(1, 90),
                humidity=rng.randrange(20, 100))


LOOK = kinds(WEATHER, weather_case, '''
= [look up|find out|check] the weather in {city}
@ city
- [What's|What is|How is|How's] the weather [like|] in {city}[ right now| today| at the moment|]?
- [Tell|Give] me the [current|] weather [for|in] {city}.
- [Can|Could] you [check|look up|tell me] the weather in {city}[ for me|]?
- [I'm|I am] [travelling|flying|going|heading] to {city}[, what is| - how's|. How is] the weather there?
- {city} weather[ now| please|]?
- What's it like outside in {city}[ today|]?
- I need [a weather report|the weather] for {city}.
- [How does|What does] the weather look [like|] in {city}?
> [It is|It's|Right now it is|There] {temp} degrees in {city}[, with|,] {sky}.
> In {city} it is [currently|now|] {temp} degrees [and|with] {sky}.
> [The weather in|Weather in] {city}: {temp} degrees, {sky}.
> {city} has {temp} degrees [and|with] {sky}[ at the moment| now|].
+ {temp}; {sky}

= [look up|find out|check] the temperature in {city}
@ city
- How [warm|cold|hot] is it in {city}[ right now| today|]?
- What[ is|'s] the [current |]temperature in {city}?
- [Tell|Give] me {city}'s temperature.
- How many degrees [does {city} have|is it in {city}|are there in {city}]?
- [Do I need a coat|Can I wear shorts|Is it freezing] in {city}? [Just|] give me the temperature.
> [It is|It's] [currently|now|] {temp} degrees in {city}.
> The temperature in {city} is {temp} degrees.
> {temp} degrees[ in {city}|].
> {city}: {temp} degrees.
> In {city} it is {temp} degrees[ right now| at the moment|].
+ {temp}

= [look up|find out|check] the wind in {city}
@ city
- How [strong|fast] is the wind in {city}?
- Is it windy in {city}[ today|]?
- What's the wind speed in {city}?
- [Tell|Give] me the wind in {city}.
- I want to go sailing [near|at] {city}. How much wind is there?
> The wind in {city} [is|blows at|has] {wind} km/h.
> [It blows at|The wind speed is] {wind} km/h[ in {city}|].
> {city} has [a wind|wind] of {wind} km/h.
> {wind} km/h[ in {city}|].
+ {wind}

= [look up|find out|check] the humidity in {city}
@ city
- [How humid is it|What is the humidity] in {city}?
- [Tell|Give] me the humidity in {city}[ right now|].
- Is the air [dry|humid] in {city}? What is the humidity?
> The humidity in {city} is {humidity} percent.
> {humidity} percent[ in {city}|].
> It is {humidity} percent humid in {city}.
> In {city} the [air has a|] humidity is {humidity} percent.
> {city}: {humidity} percent humidity.
+ {humidity}
''', 'city')

SEARCH = service('a search', '''[web|internet|news|online] search
search [web|internet|the web|online|news]
[google|bing] [search|it]
[search|find|lookup|browse]
[do|run|perform] [web|] search
[find|get|fetch] [pages|articles|results|web pages]''',
'''[Search|Searches] the [web|internet] [for a query|and return the results|]
[Finds|Returns|Lists] [pages|web pages|articles|results] [about|for] a [query|topic|search term]
[Web|Internet|Online] search[ engine|]
Look something up [online|on the internet|on the web]''', [
    parameter('query', 'query q search_query text term keywords topic search',
              '[The|] [search query|words to search for|search terms|what to '
              'look for]'),
    parameter('limit', 'limit num_results max_results top_k n count',
              '[How many results|Number of results]', kind='integer',
              needed=False),
    parameter('lang', 'language lang hl', 'Language of the results',
              needed=False)],
    'title site snippet')

SITE = ('{0}.org|{0}.net|{0}-news.com|www.{0}.com|the{0}.info|{0}blog.com'
        '|{0}.io')


def headline(rng, topic):
    return one_of(rng, f'A guide to {topic}|Everything about {topic}|Ten facts'
                       f' about {topic}|{topic.capitalize()} explained'
                       f'|{topic.capitalize()}: the basics|The truth about '
                       f'{topic}|Why {topic} matter|How {topic} changed'
                       f'|{topic.capitalize()} for everyone')


def search_case(rng):
    topic = rng.choice(names.TOPICS)
    records = []

    for _ in range(rng.randint(1, 3)):
        word = made_up(rng)
        records.append({
            'title': headline(rng, topic),
            'site': one_of(rng, SITE.format(word)),
            'snippet': one_of(
                rng, f'A [short|long] [article|text|study] by '
                     f'{rng.choice(names.FIRST)} {rng.choice(names.LAST)}'
                     f'|Written in {rng.randrange(1990, 2026)}'
                     f'|[Read|Seen] by {rng.randrange(100, 9000)} people'
                     f'|From {rng.choice(names.PLACES)}')})

    return dict(query=topic, records=records, first=records[0]['title'],
                site=records[0]['site'], snippet=records[0]['snippet'],
                n=len(records))


LOOK += kinds(SEARCH, search_case, '''
= [search for|find something about|look up] {query}
@ query
- [Search|Look|Google] [the web |online |the internet |]for {query}.
- [Find|Get|Show] me [something|some information|articles|pages|an article] [about|on] {query}.
- What can you find [online|on the internet|on the web] about {query}?
- [I want to|I'd like to|I need to] [read|learn|know] [something|more] about {query}. [Can you search for it?|Please search.|]
- [Google|Search] {query}[ for me|]
- [Is there|Are there] [any news|anything new|an article] about {query}?
- [Could|Can] you look up {query}[ online|]?
- Search: {query}
> [I found|The first result is|The best result is] "{first}" [on|at|from] {site}.
> "{first}" ({site})[ is the first result| looks best|].
> There is "{first}" [on|at] {site}.
> [The search|It] found "{first}" on {site}.
+ {first}; {site}

= search for {query} and name the site of the first result
@ query
- Which [site|website] [has|comes first for] {query}? Search for it.
- Search for {query} and [tell|give] me only the [site|website] of the first result.
- Where can I read about {query}? [Give me one site.|One site is enough.]
> [The site is|It is|Try] {site}.
> {site}.
> [The first result is|You can read about it] [on|at] {site}.
> [I found|] {site}[ has it| for that|].
+ {site}

= search for {query} and count the results
@ query
- How many results are there for {query}? [Search for it.|]
- Search for {query} and count the [results|hits].
> [There are|The search has|I found] {n} [result(s)|in all].
> [It is|That makes] {n}.
> {n} [results|hits|in all].
+ {n}
''', 'query', loosely)

STOCK = service('stock prices', '''[get|fetch|check|show|query] [stock|share] [price|quote]
[stock|share|market] [price|quote|lookup|data|ticker]
[quote|ticker|price of stock]''',
'''[Get|Returns|Fetches] the [current|latest|] [price|quote] of a [stock|share]
[Stock|Share] [price|quote] by [ticker|symbol|ticker symbol]
[Price and change|Market data] of a listed company''', [
    parameter('symbol', 'symbol ticker code stock name',
              '[Ticker|Ticker symbol|Symbol][, e.g. ABC|]'),
    parameter('market', 'market exchange', 'The exchange', needed=False)],
    'symbol price change')


def stock_case(rng):
    return dict(symbol=''.join(rng.choice('ABCDEFGHIJKLMNOPRSTUVWXZ')
                               for _ in range(rng.choice((3, 4)))),
                price=f'{rng.randrange(2, 900)}.{rng.randrange(10, 100)}',
                change=f'{rng.choice("+-")}{rng.randrange(0, 9)}.'
                       f'{rng.randrange(1, 10)}%')


LOOK += kinds(STOCK, stock_case, '''
= [look up|check] the price of {symbol}
@ symbol
- [What is|What's] the [stock |share |current |]price of {symbol}?
- How much is {symbol} [trading at|worth|now|today]?
- [Check|Look up|Get] the [stock|share] {symbol}[ for me|].
- Where [is|does] {symbol} [stand |trade |]right now?
- I own some {symbol}. What is one share worth?
- {symbol} price?
> {symbol} [is|trades|stands] at {price}.
> [The price of {symbol} is|One share costs|It is at] {price}.
> {symbol}: {price}[ per share|].
> [Right now|Currently] {symbol} is at {price}.
+ {price}

= check how {symbol} changed
@ symbol
- [How much did|By how much did] {symbol} [change|move][ today|]?
- Is {symbol} up or down[ today|]? By how much?
- [Give|Tell] me the change of {symbol} in percent.
> {symbol} [changed by|moved by|is at] {change}.
> [The change of {symbol} is|The change is|It is] {change}.
> {symbol}: {change}[ today|].
+ {change}
''', 'symbol')

CURRENCY = service('exchange rates', '''[convert|exchange] [currency|money|amount]
[currency|money|fx] [converter|conversion|exchange|convert]
[get|fetch] [exchange rate|fx rate|conversion]''',
'''[Converts|Convert|Exchanges] [money|an amount] [from one currency to another|between currencies|into another currency]
[Currency|Money] [conversion|converter] with [daily|current|live] rates
[Exchange rates|FX] [for|between] currencies, given as ISO codes''', [
    parameter('amount', 'amount value sum quantity money',
              '[The|] amount [to convert|]', kind='number'),
    parameter('origin', 'from from_currency source base source_currency '
              'base_currency', '[ISO code|Code] of the currency to convert '
              'from[, such as EUR|]'),
    parameter('target', 'to to_currency target quote target_currency',
              '[ISO code|Code] of the currency to convert to[, such as '
              'USD|]')], 'result rate')


def currency_case(rng):
    one, other = rng.sample(list(names.CURRENCIES), 2)

    while names.CURRENCIES[one] == names.CURRENCIES[other]:
        one, other = rng.sample(list(names.CURRENCIES), 2)

    a, b = names.CURRENCIES[one], names.CURRENCIES[other]

    return dict(amount=rng.choice((rng.randrange(1, 100),
                                   10 * rng.randrange(1, 500))),
                one=one, other=other, origin=a, target=b,
                result=f'{rng.randrange(1, 9000)}.{rng.randrange(10, 100)}',
                rate=f'{rng.randrange(0, 20)}.{rng.randrange(1000, 9999)}')


LOOK += kinds(CURRENCY, currency_case, '''
= convert {amount} {origin} to {target}
@ amount origin target
- [How much|What] [is|are] {amount} {one} in {other}?
- [Convert|Change] {amount} {one} [to|into] {other}.
- Convert {amount} {origin} to {target}.
- {amount} {origin} in {target}?
- I have {amount} {one}. How [much is that|many {other} do I get]?
- [What do|How many {other} do] I get for {amount} {one}[ in {other}|]?
- I [need|want] to [pay|send] {amount} {one}[ abroad|]. What is that in {other}?
> {amount} {origin} [equals|make|makes] {result} {target}.
> [That is|That makes|You get|It is] {result} {target}[ at a rate of {rate}|].
> {amount} {one} make {result} {other}.
> [The result is|You get] {result} {other}.
+ {result}
''')

TRANSLATE = service('translations', '''translate [text|sentence|phrase|]
[text|language] [translation|translator]
[get|make] translation''',
'''[Translates|Translate] [a text|text|a sentence] [into|to] another language
[Translation|Machine translation] of [texts|short texts|sentences]
Returns the text in the target language''', [
    parameter('text', 'text sentence input phrase source_text content',
              '[The|] text to translate'),
    parameter('language', 'language target_language to target lang '
              'to_language', '[Language to translate to|Target language]'),
    parameter('formal', 'formal polite', 'Whether to be formal',
              kind='boolean', needed=False)],
    'translation')

PHRASES = ('a warm welcome|where is the station|I would like a table for two'
           '|how much does this cost|the bill, please|see you tomorrow'
           '|happy birthday|I am lost|do you speak English|thank you very much'
           '|my name is {name}|we are from {city}|I am looking for {name}'
           '|is this the train to {city}|two {goods}, please'
           '|do you have {goods}|where can I buy {goods}|I love {goods}'
           '|the {room} is cold|nice to meet you, {name}|we need more {goods}'
           '|how far is {city}|the museum is closed|{name} is my friend'
           '|I lost my keys in {city}|please call {name}')


def translate_case(rng):
    text = happen.note(rng) if rng.random() < 0.4 \
        else one_of(rng, PHRASES).format(
        name=rng.choice(names.FIRST), city=rng.choice(names.PLACES),
        goods=rng.choice(names.GOODS), room=rng.choice(names.ROOMS))
    words = [made_up(rng) for _ in range(rng.randint(1, 4))]

    return dict(text=text, language=rng.choice(names.LANGUAGES),
                translation=' '.join(words).capitalize())


LOOK += kinds(TRANSLATE, translate_case, '''
= translate "{text}" into {language}
@ text language
- [Translate|Please translate] "{text}" [to|into] {language}.
- [What is|How do you say|How do I say] "{text}" in {language}?
- I need "{text}" in {language}.
- How would [someone|a friend] say "{text}" in {language}?
- [Put|Write] this in {language}: "{text}"
- {language} for "{text}"?
- What's the {language} [translation|word] for "{text}"?
> [In {language} that is|In {language} it is|That is] "{translation}".
> "{translation}"[ in {language}|].
> {translation}
> [The {language} translation is|You say|It is] "{translation}".
> "{text}" is "{translation}" in {language}.
+ {translation}
''', 'language')

ROUTE = service('distances', '''[get|find|plan|calculate|compute] [route|directions|distance]
[route|directions|distance|travel time] [planner|finder|between|lookup|matrix|]
[maps|map] [route|directions|distance]''',
'''[Route|Distance|Directions|Distance and travel time] [from one place to another|between two places]
[Finds|Plans|Computes|Returns] the [route|way|distance] between two [places|cities|addresses]
How far it is from one place to another''', [
    parameter('start', 'from origin start source from_city start_location',
              '[Where it begins|Start|Origin|Starting point]'),
    parameter('end', 'to destination end target to_city end_location',
              '[Where it ends|Destination|End]'),
    parameter('mode', 'mode travel_mode by transport', 'How to travel',
              choices=('car', 'bike', 'walk', 'train'), needed=False)],
    'distance minutes')


def route_case(rng):
    a, b = rng.sample(names.PLACES, 2)

    return dict(start=a, end=b, distance=rng.randrange(3, 2500),
                minutes=rng.randrange(5, 900))


LOOK += kinds(ROUTE, route_case, '''
= find the distance from {start} to {end}
@ start end
- How far is it from {start} to {end}?
- How [many kilometers|far] is {end} from {start}?
- [What is|What's|Give me] the distance [between {start} and|from {start} to] {end}[?|]
- I [drive|go|travel] from {start} to {end}. How many [km|kilometers] is that?
- [How long is|Tell me the length of] the way from {start} to {end}[?|]
> [It is|It's] {distance} km from {start} to {end}.
> {start} to {end}: {distance} km.
> The distance [from {start} to {end}|] is {distance} km.
> [That is|It is|About] {distance} km.
> {distance} km.
+ {distance}

= find how long it takes from {start} to {end}
@ start end
- How long [is the way|is the drive|do I need] from {start} to {end}?
- How [many minutes|much time] do I need from {start} to {end}?
- [What is the travel time|When I leave {start} now, how long is it] to {end}[ from {start}|]?
- I'm in {start} and want to be in {end}. How long is the trip?
> [It takes|You need|The trip takes] {minutes} minutes[ from {start} to {end}|].
> {minutes} minutes.
> From {start} to {end} it is {minutes} minutes.
> [The travel time is|About] {minutes} minutes.
+ {minutes}
''', 'end')

PLACE = service('places nearby', '''[find|search|list|get] [places|nearby places|restaurants|venues|local businesses]
[places|venue|local|nearby] [search|finder|lookup]''',
'''[Finds|Lists|Searches] [places|shops and restaurants|businesses] [in a city|near a location]
[Places|Local search] with [ratings|addresses], by kind and city''', [
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

    return dict(what=one_of(rng, SHOP), city=rng.choice(names.PLACES),
                records=records, **{f'first_{k}': v
                                    for k, v in records[0].items()},
                best=best['name'], top=best['rating'])


LOOK += kinds(PLACE, place_case, '''
= find a {what} in {city}
@ what city
- [Find|Show|Get] me a {what} in {city}.
- Is there a {what} in {city}?
- [Where is|Where can I find|Where do I find] a {what} in {city}?
- I [need|am looking for|want] a {what} [in|near] {city}.
- Any {what} [in|near] {city}?
> [There is|I found|Try] [the |]{first_name}[,| at|:] {first_street}.
> {first_name}, {first_street}.
> {first_name} is at {first_street}.
> [The first one is|One is|How about] {first_name} at {first_street}.
+ {first_name}; {first_street}

= find the best rated {what} in {city}
@ what city
- [What is|Which is] the best[ rated|] {what} in {city}?
- Which {what} in {city} has the highest rating?
- I want the top {what} in {city}.
> [The best is|It is|That is] {best}, [rated|with] {top}.
> {best} [has the highest rating, {top}|is rated {top}|({top})].
> {best} with {top}[ stars|].
+ {best}; {top}

= find when the first {what} in {city} opens
@ what city
- When does a {what} in {city} open? [Take the first that you find.|The first one is fine.]
- From when on is a {what} in {city} open? [Just the first result.|]
> {first_name} opens at {first_opens}.
> [At|It opens at|From] {first_opens}[ ({first_name})|].
> {first_opens}, at {first_name}.
+ {first_opens}
''', 'city')

PERSON = service('contacts', '''[get|find|look up|search|show] [contact|person|contacts|employee]
[contact|contacts|person|employee|address book] [lookup|search|info|details|]
who is''',
'''[Finds|Returns|Looks up] [a contact|a person|an entry of the address book] by name
[Contacts|Address book|Staff directory][: phone, mail and city|]
[Phone number|Email address|Details] of a person''', [
    parameter('name', 'name person full_name contact_name who query',
              '[Name|Full name] of the person')],
    'name phone mail city')


def person_case(rng):
    first, last = rng.choice(names.FIRST), rng.choice(names.LAST)

    return dict(name=f'{first} {last}', first=first,
                phone=f'+{rng.randrange(1, 99)} {rng.randrange(100, 999)} '
                      f'{rng.randrange(1000, 9999)}',
                mail=f'{first.lower()}{rng.choice("._-")}{last.lower()}'
                     f'@{made_up(rng)}.{one_of(rng, "com|org|net|io")}',
                city=rng.choice(names.PLACES))


LOOK += kinds(PERSON, person_case, '''
= find the phone number of {name}
@ name
- What is {name}'s [phone |telephone |]number?
- [Give|Get|Find] me the [phone |]number of {name}.
- How can I [call|phone|ring] {name}?
- I [need|want] to call {name}. [What's the number?|Which number?]
> [The number of {name} is|{first}'s number is|It is] {phone}.
> {phone}.
> You can [call|reach] {first} [at|under] {phone}.
> {name}: {phone}
+ {phone}

= find the email address of {name}
@ name
- What is {name}'s [email|mail|email address|mail address]?
- [Get|Find] {name}'s [email|mail address|email address].
- [Where|To which address] do I write to {name}? By email.
> [The address is|It is|{first}'s address is] {mail}.
> {mail}
> You can write to {first} at {mail}.
> {name}: {mail}
+ {mail}

= find where {name} lives
@ name
- Where does {name} live?
- In which city [does {name} live|is {name}]?
- Which city is {name} [in|from]?
> {name} lives in {city}.
> In {city}.
> {first} [lives|is] in {city}.
> [That is|The city is] {city}.
+ {city}
''', 'name')

PARCEL = service('deliveries', '''[track|trace] [parcel|package|shipment|order|delivery]
[get|check] [order|delivery|shipping|parcel] status
[order|parcel|shipment] [status|tracking|lookup]''',
'''[Tracks|Returns the state of] [a parcel|an order|a shipment]
[Where a parcel is|State of an order] by its number
[Tracking|Order] [information|status]''', [
    parameter('number', 'number order_id tracking_number id order_number code '
              'parcel_id', '[Number|Id] of the [order|parcel|shipment]')],
    'state where day')


def parcel_case(rng):
    return dict(number=one_of(rng, 'A|B|KX|ORD-|P-|TR|#|')
                + str(rng.randrange(1000, 999999)),
                state=one_of(rng, 'in transit|delivered|delayed|at customs'
                                  '|out for delivery|being packed|returned'
                                  '|waiting for pickup|cancelled'),
                where=rng.choice(names.PLACES),
                day=one_of(rng, DAY))


LOOK += kinds(PARCEL, parcel_case, '''
= check the state of {number}
@ number
- Where is my [order|parcel|package|shipment] {number}?
- [Track|Check] [order|parcel|package|shipment] {number}[ for me|].
- What is the status of {number}?
- What happened to my [order|package] {number}?
- My tracking number is {number}. [Where is it?|What's going on?|Any news?]
> [It is|Your parcel is|{number} is] {state}[,| and was] last [seen|scanned] in {where}.
> The state is {state}, [the place is|and it is in] {where}.
> {number}: {state}, {where}.
> [Status|State]: {state} ({where}).
+ {state}; {where}

= find when {number} arrives
@ number
- When [will|does] my [order|parcel|package] {number} arrive?
- On which day does {number} come?
- [Expected|] delivery [date|day] of {number}?
> [It arrives|It comes|Expect it] {day}.
> The [day|delivery day] is {day}.
> {number} [comes|arrives|is due]: {day}.
> {day}[, it says| according to the tracking|].
+ {day}
''', 'number')

PRICE = service('goods and prices', '''[get|find|look up|check] [product|item|price|stock]
[product|item|price|inventory|catalog] [lookup|search|info|check|details]''',
'''[Price and stock|Price|Stock] of a product
[Looks up|Finds|Returns] [a product|an article|an item] [of the shop|in the catalog|]
[Catalog|Inventory|Product] [search|lookup]''', [
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


LOOK += kinds(PRICE, price_case, '''
= find the price of the {product}
@ product
- [How much is|What does|What's the price of] the {product}[ cost|]?
- [What do you charge|How much do I pay] for a {product}?
- [Look up|Check|Tell me] the price of the {product}.
- I want to buy a {product}. What does it cost?
> [The {product} costs|It costs|The price is|It is] {cost}.
> {cost}[ for the {product}|].
> [A|The] {product} is {cost}.
+ {cost}

= find how many of the {product} are left
@ product
- How many [of the {product}|pieces of the {product}] are [in stock|left|available]?
- Do you [still |]have the {product} in stock? How many?
- [Check|Tell me] the stock of the {product}.
> [There are|We have] {stock} [in stock|left|available].
> {stock}[ are left| in stock|].
> The stock of the {product} is {stock}.
+ {stock}
''', 'product')
