# Copyright (C) The nginx-dsa authors

"""Services that know something: search, stock prices, exchange rates,
translations, the meaning of words, and the time elsewhere."""

import re

from tasks import happen, names
from tasks.api import parameter, service
from tasks.phrase import capital, say
from tasks.stated import Typed, number
from tasks.uses import kinds, loosely, one_of
from tasks.words import made_up


SEARCH = service('a search', '''[web|internet|news|online] search
search [web|internet|the web|online|news]
[google|bing] [search|it]
[search|find|lookup|browse]
[do|run|perform] [web|] search
[find|get|fetch] [pages|articles|results|web pages]
[seek|research|browse] [web|topic|online|]
[serp|websearch|duck|finder] [query|search|find|run]
[web|internet|page] [lookup|query|finder|retriever]''',
'''[Search|Searches] the [web|internet] [for a query|and return the results|]
[Finds|Returns|Lists] [pages|web pages|articles|results] [about|for] a [query|topic|search term]
[Web|Internet|Online] search[ engine|]
Look something up [online|on the internet|on the web]
[Given|For] a query, [gives|returns] titles, sites and snippets
[Asks|Queries] a search engine
Use it for [topics|questions] that need [the web|pages from the internet]
[Full-text|Keyword] search [over|of] [public|] web pages''', [
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

    return dict(query=Typed(topic), records=records, first=records[0]['title'],
                site=records[0]['site'], snippet=records[0]['snippet'],
                n=len(records))


LOOK = kinds(SEARCH, search_case, r'''
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
- search "{query}"[ pls|]
- google {query:l}[ pls|]
- {query}[ - anything online?|? Search, please.| - what does the web say?]
- [My daughter|My son|A pupil] has to [give a talk|write a paper] on {query}. [Find an article.|Search the web, please.]
- [I've been hearing|People keep talking] about {query}. [What's out there?|Find me a page.]
- [Do|Run] a [web |quick |]search[:| for] {query}.
- I know nothing about {query}. [Help me find a page to start with.|Find me something to read.]
- Something to read about {query}[, please|] - [one good hit is enough|whatever comes first].
- [Topic|Keywords|Search terms]: {query}\n[Please search the web.|Find a page.]
- [Check|Look] [online|on the internet] what [people write|has been written] about {query}.
- [There was|I saw] [a programme|something] [on TV|on the radio] about {query}. [I'd like to read more, find me a page.|Search for that.]
- Look on internet for {query}, please.
- [I'm writing|We're preparing] a [newsletter|blog post] on {query} and [need|could use] a source from the web.
- Use the web search for this[:| -] "{query}".
- any good article on {query}?
- Would you mind searching for {query}?
- [Browse|Scan] the web for {query} and [show|give] me the [first|top] hit.
- [Who writes about|Who has written on] {query}? Search the web.
- [My neighbour|My uncle] won't stop talking about {query}. Find me [a page|an article] so I can [join in|keep up].
- {query}: [first search result|top result|first hit], [please|thanks].
- Find out about {query} [online|on the web].
- [Before the meeting|Before dinner|By tomorrow] I have to know [something|a bit] about {query}. Search, please.
> [I found|The first result is|The best result is] "{first}" [on|at|from] {site}.
> "{first}" ({site})[ is the first result| looks best|].
> There is "{first}" [on|at] {site}.
> [The search|It] found "{first}" on {site}.
> [Try|Have a look at] "{first}" on {site}.
> {site} has "{first}".
> [First hit|Top result]: "{first}", {site}.
> On {site} [you can read|there is] "{first}".
> [You could start with|A place to start is] "{first}" ({site}).
+ {first}; {site}

= search for {query} and name the site of the first result
@ query
- Which [site|website] [has|comes first for] {query}? Search for it.
- Search for {query} and [tell|give] me only the [site|website] of the first result.
- Where can I read about {query}? [Give me one site.|One site is enough.]
- [Which|What] [website|site] is the [first|top] result for "{query}"?
- {query} - [which site comes up first|what site is on top]?
- [Name|Give] me a [site|website] about {query}[, the first you find|].
- [I only need|Just] the [domain|site|address of the site] for {query}, first hit.
- If I search for {query}, which site is [first|on top]?
- [Search|Google] {query}. Site of the top hit?
- what website do i go to for {query:l}
- [Recommend|Suggest] a [website|site] [on|about] {query}. Take the first result.
- [Where on the web|On which site] is there [something|anything] about {query}? The first result will do.
- I need one link about {query}. The site of the first result is fine.
- [Point me to|Send me to] a site [about|on] {query}, whatever comes first.
- [Put|Enter] "{query}" in the search and tell me the site that comes first.
- [My club|My class] discusses {query}. Which website comes first if I search for it?
- [First|Top] site for {query}, please.
- Look for {query} on the web. I want only the name of the first website.
- Site with {query}, the first one in the search?
- [A website|One website] about {query} please, not the title, only the site.
- My notes say "{query}: look for a good site". Which one does the search give first?
- Which place on the web would you send me to for {query}? First result, only the site.
- [I love|I collect everything about] {query}. [First website in the search?|Which website comes first in a search?]
- Search terms: {query}\nWanted: site of the first result
- The title doesn't matter. On which site is the first hit for {query}?
> The site is {site}.
> It is {site}.
> Try {site}.
> {site}.
> [The first result is|You can read about it] [on|at] {site}.
> [I found|] {site}[ has it| for that|].
> [The first site is|First comes] {site}.
> [Go to|Look at|See] {site}.
> The top hit is on {site}.
+ {site}

= search for {query} and count the results
@ query
- How many results are there for {query}? [Search for it.|]
- Search for {query} and count the [results|hits].
- [What number|How many] of [hits|results] do you get for {query}?
- Count [the|your] search results for {query}.
- {query}: how many [hits|results]?
- [Do|Run] a search for {query}. I only want [the number of results|to know how many there are].
- [I don't need the pages|Never mind the titles], just how many results {query} has.
- how many hits for "{query}"?
- If you search {query}, how many things come up?
- [Is there a lot|Is there much] about {query}? Count the results.
- Number of results for {query}, please.
- [Tell|Give] me how many pages the search finds for {query}.
- Search the web: {query}. How many did it return?
- [I bet|I guess] there is little about {query}. How many results?
- For "{query}", how many results come back?
- How much results has a search for {query}?
- [Look up|Search for] {query} and [say|tell me] how many [results|pages] you [see|got].
- [Results|Hits] for {query} - how many?
- Please search {query}, I want the count of results only.
- [We compare topics|I compare keywords]. How many results has {query}?
- Is {query} a popular topic? Search and tell me the number of results.
- Search terms: {query}\nWanted: number of results
- We bet on how many results {query} gets in the search. Please settle it.
- Do a search on {query} and then count what you found.
- How long is the list of results for {query}?
> [There are|The search has|I found] {n} [result(s)|in all].
> It is {n}.
> That makes {n}.
> {n} [results|hits|in all].
> [The count is|I count|I got] {n}.
> [Number of results|Results]: {n}.
> [It returned|The search returned|It found] {n}.
> The list has {n}.
> {n} [in the list|came back|on {query}].
+ {n}
''', 'query', loosely)

STOCK = service('stock prices', '''[get|fetch|check|show|query] [stock|share] [price|quote]
[stock|share|market] [price|quote|lookup|data|ticker]
[quote|ticker|price of stock]
[equity|security|instrument] [quote|price|lookup]
[market data|finance|exchange|broker] [quote|get|ticker|price]''',
'''[Get|Returns|Fetches] the [current|latest|] [price|quote] of a [stock|share]
[Stock|Share] [price|quote] by [ticker|symbol|ticker symbol]
[Price and change|Market data] of a listed company
[Last trade|Last price] and [daily change|change today] of a security
[What|How much] a share costs [now|at the exchange]
[Real-time|Delayed|Live] market data for one symbol''', [
    parameter('symbol', 'symbol ticker code stock name',
              '[Ticker|Ticker symbol|Symbol][, e.g. ABC|]'),
    parameter('market', 'market exchange', 'The exchange', needed=False)],
    'symbol price change')


def stock_case(rng):
    sign = rng.choice('+-')

    return dict(symbol=Typed(''.join(
                    rng.choice('ABCDEFGHIJKLMNOPRSTUVWXZ')
                    for _ in range(rng.choice((3, 4))))),
                price=f'{rng.randrange(2, 900)}.{rng.randrange(10, 100)}',
                change=f'{sign}{rng.randrange(0, 9)}.'
                       f'{rng.randrange(1, 10)}%',
                way='up' if sign == '+' else 'down')


LOOK += kinds(STOCK, stock_case, r'''
= [look up|check] the price of {symbol}
@ symbol
- [What is|What's] the [stock |share |current |]price of {symbol}?
- How much is {symbol} [trading at|worth|now|today]?
- [Check|Look up|Get] the [stock|share] {symbol}[ for me|].
- Where [is|does] {symbol} [stand |trade |]right now?
- I own some {symbol}. What is one share worth?
- {symbol} price?
- {symbol} rn?
- [Quote|Price] [for|of] {symbol}[, please|?|]
- [What does|What would] one share of {symbol} cost [me|] [now|today]?
- [My broker|My brother|A colleague] [says|thinks] I should buy {symbol}. What's it at?
- stock {symbol:l} price pls
- [Tell|Give] me what {symbol} [costs|is quoted at|trades for].
- [I want to sell|I might sell] my {symbol} shares. What's the price?
- [Ticker|Symbol]: {symbol}. [Price?|Please quote it.]
- [I forgot|I don't remember] what a share of {symbol} costs. [Look it up.|Could you check?]
- At what price is {symbol} [now|at the moment]?
- How stands {symbol} today? The price please.
- [What's|Whats] {symbol} going for?
- [Latest|Last|Current] price, {symbol}.
- [Portfolio check|For my portfolio]: {symbol}, current price.
- Could I get a quote [for|on] {symbol}?
- [If I sold|When I sell] one {symbol} share now, [what would I get|how much is that]?
- The stock ({symbol}) - what's [it at|its price]?
- [Markets are open|The market just opened]. How much for {symbol}?
- I need the share price of the company with ticker {symbol}.
- [Fetch|Pull up|Pull] the quote: {symbol}
- [How expensive|How dear] is a {symbol} share?
- [Let me know|I'd like to know|I'm curious] what {symbol} is worth.
> {symbol} [is|trades|stands] at {price}.
> [The price of {symbol} is|One share costs|It is at] {price}.
> {symbol}: {price}[ per share|].
> [Right now|Currently] {symbol} is at {price}.
> {price}[ per share| for one share|].
> [The last price|The quote] [of {symbol}|] is {price}.
> One {symbol} share is worth {price}.
> A share of {symbol} [costs|is] {price}[ now|].
> [It costs|It trades at] {price}.
+ {price}

= find out whether {symbol} is up or down
@ symbol
- Is {symbol} up or down[ today|]?
- {symbol}: up or down?
- up or down, {symbol:l}?
- Did {symbol} gain or lose today?
- Is my {symbol} share in the red[ today|]?
- [Smile or frown?|Champagne or tears?] Is {symbol} up?
- [Check|See] whether {symbol} is up[ today|].
- Is {symbol} in the green or in the red?
- My stock is {symbol}. Is it rising?
- [The news|My paper] says that {symbol} falls. Is it down?
- Which way does {symbol} go today, up or down?
- I'd like to know if {symbol} is up or down.
- In what direction did {symbol} move?
- [Grandpa|My boss] asks whether {symbol} went up.
- Ticker: {symbol}\nUp or down?
- Can you look if {symbol} is up?
- {symbol} is going down today, or up?
- Good times or bad times for owners of {symbol} today? Up or down?
- The arrow next to {symbol}, does it point up or down today?
- How is the direction of {symbol} today?
- For my market report: is {symbol} up or down, and by how many percent?
- Does {symbol} climb or drop at the moment?
> {symbol} is {way}, at {change}.
> {way}: {change}.
> It is {way}[ today|], {change}.
> {way}, the change is {change}.
> {symbol} [went|is] {way} ({change}).
> [Today|So far] it is {way}: {change}.
> {change}, so it is {way}.
> {change}, that is {way}.
+ {way}; {change}

= check how {symbol} changed
@ symbol
- [How much did|By how much did] {symbol} [change|move][ today|]?
- By how much is {symbol} up or down[ today|]?
- [Give|Tell] me the change of {symbol} in percent.
- {symbol}: up or down, how many percent?
- [Did|Has] {symbol} [gone up|gone down|moved|risen|fallen] today? [In percent, please.|How much?]
- how much is {symbol:l} up or down
- [What's|What is] the daily change of {symbol}?
- [I heard|They say] {symbol} [crashed|jumped|moved a lot] today. By how much?
- {symbol} change[?|, please|]
- [By what percentage|How many percent] did {symbol} move?
- [Am I rich yet?|Good day or bad day?] I own {symbol} - what's the change today?
- [Daily move|Percent change|Movement] of {symbol}?
- I don't need the price of {symbol}, [only the change|just how it moved].
- How did {symbol} do [today|on the market today]?
- [Check|Look up] how {symbol} changed.
- Winner or loser today: {symbol}? Percentage, please.
- [My shares|My stocks] are all {symbol}. How much are they up or down?
- How did the stock {symbol} develop today in percent?
- Change in percent: {symbol}
- Has {symbol} won or lost since yesterday? How many percent?
- Should I cry or dance? {symbol}, daily change please.
- I put my savings into {symbol}. What's today's movement, in percent?
- Ticker: {symbol}\nChange today?
- Compared with yesterday, where is {symbol}? In percent.
- A red day or a green day for {symbol}? By how many percent?
> {symbol} [changed by|moved by|is at] {change}.
> [The change of {symbol} is|The change is|It is] {change}.
> {symbol}: {change}[ today|].
> {change}[ today| for {symbol}|].
> [Today|So far] {symbol} is at {change}.
> [It moved|It changed by] {change}[ today|].
> The [move|daily change] of {symbol}: {change}.
> {change} [is the change|so far|since the start of the day].
> [In percent|The movement of {symbol} in percent]: {change}.
+ {change}
''', 'symbol')

CURRENCY = service('exchange rates', '''[convert|exchange] [currency|money|amount]
[currency|money|fx] [converter|conversion|exchange|convert]
[get|fetch] [exchange rate|fx rate|conversion]
[forex|fx|cash|bank] [quote|calc|calculate|rate|change]
[change|calculate|compute] [money|currency|foreign currency]''',
'''[Converts|Convert|Exchanges] [money|an amount] [from one currency to another|between currencies|into another currency]
[Currency|Money] [conversion|converter] with [daily|current|live] rates
[Exchange rates|FX] [for|between] currencies, given as ISO codes
What an amount is worth in another currency
[Calculates|Computes] an amount of money in a foreign currency, with the rate
[Foreign exchange|Forex] [calculator|calculation] by ISO 4217 code''', [
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

    amount = rng.choice((rng.randrange(1, 100), 10 * rng.randrange(1, 500),
                         100 * rng.randrange(1, 100)))
    rate = rng.randrange(100, 160000)

    return dict(amount=amount, said=number(rng, amount), one=one, other=other,
                origin=Typed(a), target=Typed(b),
                result=f'{amount * rate / 10000:.2f}',
                rate=f'{rate / 10000:.4f}')


LOOK += kinds(CURRENCY, currency_case, r'''
= convert {amount} {origin} to {target}
@ amount origin target
- [How much|What] [is|are] {amount} {one} in {other}?
- [Convert|Change] {amount} {one} [to|into] {other}.
- Convert {amount} {origin} to {target}.
- {amount} {origin} in {target}?
- I have {amount} {one}. How [much is that|many {other} do I get]?
- [What do|How many {other} do] I get for {amount} {one}[ in {other}|]?
- I [need|want] to [pay|send] {amount} {one}[ abroad|]. What is that in {other}?
- {said} {one} [to|into|in] {other}[?|, please|]
- [What's|What would] {said} {one} [be |]in {other}?
- The [hotel|flight|jacket|bill] [is|comes to] {said} {one}. How much is that in {other}?
- [My aunt|My boss|A client] [sent|paid|owes] me {said} {one}. [What's that in {other}?|In {other} that is?]
- How many {other} are {said} {one}?
- convert {amount} {origin:l} to {target:l}
- {target} for {amount} {origin}?
- [Amount|Sum]: {amount} {origin}\n[Convert to|Into]: {target}
- [I'm back from holiday and have|There are] {said} {one} left[ in my wallet|]. [Worth in {other}?|What are they worth in {other}?]
- In {other}, how much [is|are] {said} {one}?
- [Exchange|Turn] {said} {one} into {other}[ for me|].
- I'd like to know the value of {said} {one} in {other}.
- [If I change|When I exchange] {said} {one}, how many {other} [will I get|do I end up with]?
- [Rent there is|A coffee there costs|The deposit is] {said} {one}. I think in {other}, so how much is it?
- For {said} {one}, what amount in {other} I will receive?
- [Price tag says|It says] {amount} {origin}. [I pay in|My card is in] {target}. How much?
- Currency conversion: {amount} {origin} -> {target}
- [Quick maths:|Quick one:] {amount} {origin} = ? {target}
- whats {amount} {origin:l} in {target:l}[ rn|]
- [Could|Can] you [work out|calculate|check] what {said} {one} [are|is] in {other} today?
- I must [wire|transfer] {amount} {origin}, but my account is in {target}. [What will it cost?|How much is that?]
- ({amount} {origin}) in {target}, please.
- [We collected|We raised] {said} {one} at the [bake sale|concert]. How much would it be in {other}?
> {amount} {origin} [equals|make|makes] {result} {target}.
> [That is|That makes|You get|It is] {result} {target}[ at a rate of {rate}|].
> {amount} {one} make {result} {other}.
> [The result is|You get] {result} {other}.
> {result} {target}.
> {amount} {origin} = {result} {target}.
> [At today's rate|Today] that is {result} {other}.
> {result} {other}[, at a rate of {rate}|].
> [For {amount} {one} you get|You would get] {result} {other}.
> {amount} {origin} [is worth|comes to|are] {result} {target}.
+ {result}

= find the exchange rate for {amount} {origin} in {target}
@ amount origin target
- [What is|What's] the exchange rate if I change {amount} {one} into {other}?
- At [which|what] rate would {amount} {one} be changed to {other}?
- I'm changing {said} {one} to {other}. [What's the rate?|Only the rate, please.|Tell me the rate.]
- Rate for {amount} {origin} to {target}?
- [Not the sum, the rate|I just need the rate]: {amount} {origin} into {target}.
- {amount} {origin} to {target} - [which rate|what rate] [applies|do I get]?
- My bank changes {said} {one} into {other}. [What should the rate be?|What would be the rate?]
- fx rate {amount} {origin:l} {target:l}
- [Give|Tell] me the exchange rate for {said} {one} in {other}.
- What rate do I get for {said} {one} [against|in] {other}?
- [Before I exchange|If I exchange] {said} {one} for {other}: what is the rate?
- [Check|Look up] the rate for changing {amount} {origin} to {target}.
- How is the exchange rate when I convert {said} {one} to {other}?
- [The airport|The kiosk] offers a bad rate for {said} {one} to {other}. What is the real rate?
- [Exchange rate|Rate], please: {amount} {origin} -> {target}
- I want to see the rate, not the amount, for {amount} {origin} in {target}.
- [Which|What] exchange rate is used for {said} {one} to {other} today?
- Rate of exchange ({amount} {origin}, {target})?
- [For my expense report|For the accounts] I need the exchange rate: {amount} {origin} to {target}.
- {said} {one} into {other}, at what rate?
- From: {amount} {origin}\nTo: {target}\nRate?
- My hotel wants to charge {said} {one} in {other}. At which rate should that be done today?
- I know the amount, {said} {one}. What I lack is the rate to {other}.
- Is there a good rate now if I swap {said} {one} for {other}? What is it?
> The rate is {rate}.
> {rate}.
> The exchange rate [from {origin} to {target}|] is {rate}.
> [It is|You get a rate of|They change at] {rate}.
> {origin} to {target}: {rate}.
> [Today's|The current] rate is {rate}.
> At a rate of {rate}.
> One {origin} is {rate} {target}.
> [Rate|Exchange rate]: {rate}.
> They would use a rate of {rate}.
+ {rate}
''')

TRANSLATE = service('translations', '''translate [text|sentence|phrase|]
[text|language] [translation|translator]
[get|make] translation
[text|phrase|lang] [to language|into|interpret|convert language]
[interpreter|polyglot|babel] [translate|run|text]''',
'''[Translates|Translate] [a text|text|a sentence] [into|to] another language
[Translation|Machine translation] of [texts|short texts|sentences]
Returns the text in the target language
[Turns|Renders|Puts] a [phrase|sentence|text] into [a foreign|another] language
[How to say something|Words and sentences] in another language
[Translator|Interpreter] [for|of] short texts''', [
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


ASKS = re.compile('(?:where|how|do|is|who|when|what|can|are) ', re.I)


def translate_case(rng):
    text = happen.note(rng) if rng.random() < 0.4 \
        else one_of(rng, PHRASES).format(
        name=rng.choice(names.FIRST), city=rng.choice(names.PLACES),
        goods=rng.choice(names.GOODS), room=rng.choice(names.ROOMS))
    words = [made_up(rng) for _ in range(rng.randint(1, 4))]

    # what is in quotes is translated with its mark

    if ' ' in text and rng.random() < 0.5:
        text = capital(text.rstrip('.!?')) + (
            '?' if ASKS.match(text) else rng.choice(('.', '.', '!')))

    return dict(text=text, language=Typed(rng.choice(names.LANGUAGES)),
                translation=' '.join(words).capitalize())


LOOK += kinds(TRANSLATE, translate_case, r'''
= translate "{text}" into {language}
@ text language
- [Translate|Please translate] "{text}" [to|into] {language}.
- [What is|How do you say|How do I say] "{text}" in {language}?
- I need "{text}" in {language}.
- How would [someone|a friend] say "{text}" in {language}?
- [Put|Write] this in {language}: "{text}"
- {language} for "{text}"?
- What's the {language} [translation|word] for "{text}"?
- "{text}" in {language}[?|, please|, pls]
- [translate|Translate] to {language}: {text}
- {text}\n[In {language}, please.|Translate that into {language}.|How is that in {language}?|The line above in {language}?]
- How'd you put "{text}" in {language}?
- [My neighbours speak|My grandmother speaks|The landlord only speaks] {language}. How do I [say|tell them] "{text}"?
- [I'm learning|I'm bad at|I don't speak any] {language}. What is "{text}"?
- [I'm making|We're printing] a [sign|card|label] in {language}. It should say: "{text}".
- Text: {text}\nLanguage: {language}\n[Translate.|Please translate the text.]
- Say "{text}" in {language}.
- [Could|Can|Would] you translate [this sentence|the following] into {language}? "{text}"
- Into {language}, please: "{text}"
- [Give|Get] me the {language} [version|translation] of "{text}".
- [We have guests who only speak|A customer writes in] {language}. [I want to answer|I'd like to say] "{text}".
- whats "{text}" in {language:l}[ pls|]
- Make {language} out of this: "{text}"
- [For my trip|For a postcard|For a crossword] I want to know how "{text}" is in {language}.
- ({language}) "{text}" - translation?
- In {language}, "{text}" [is said how|would be what]?
- How one says "{text}" in {language}?
- The sentence is "{text}" and the language should be {language}. [Translate it, please.|]
- [What do people say in|What's the word in] {language} for "{text}"?
- Translation {language}: "{text}"
- [I'm writing to|I'm texting] a friend in {language}. Help me with "{text}".
- [Turn|Convert] "{text}" into {language}[, thanks|, please|].
> [In {language} that is|In {language} it is|That is] "{translation}".
> "{translation}"[ in {language}|].
> {translation}
> [The {language} translation is|You say|It is] "{translation}".
> "{text}" is "{translation}" in {language}.
> [The translation|{language}]: "{translation}".
> In {language}[ you say| you would say| people say|]: "{translation}".
> "{translation}" is how you say it[ in {language}|].
> [They say|One says] "{translation}"[ in {language}|].
+ {translation}
''', 'language')

MEANING = service('the dictionary', '''[define|explain|lookup|look up|get] [word|term|definition|meaning]
[dictionary|word|glossary|lexicon] [lookup|search|entry|define|definition|meaning|info]
[definition|meaning] [of|of word|finder]
[find|fetch] [definition|dictionary entry|word meaning]''',
'''[Returns|Gets|Finds] the [definition|meaning] of a [word|rare word|term]
[Dictionary|Lexicon|Glossary][: meaning and word class|]
[Looks up|Look up] a word in the dictionary
[What a word means|Explains words|Word meanings]
[Given a word|For a word], [returns|gives] its meaning and part of speech''', [
    parameter('word', 'word term entry q query headword lemma expression text',
              '[The|] [word|term][ to look up|]'),
    parameter('lang', 'language lang locale', 'Language of the word',
              needed=False)],
    'meaning sort')

SENSE = ('a [small|large|wooden|heavy|round] {thing} [for|made of] {goods}'
         '|a [kind|sort|type] of {thing}|a person who sells {goods}'
         '|[afraid|fond|full] of {goods}|the {part} of a {thing}'
         '|to [count|collect|throw|hide|polish] {goods}'
         '|a place where {goods} are kept|a dish of {goods}'
         '|the sound of {goods}|like a {thing}')


def meaning_case(rng):
    meaning = say(
        rng, f'[{SENSE}]', thing=rng.choice(names.NOUNS),
        goods=rng.choice(names.GOODS), part=one_of(rng, 'handle|lid|upper end|back|rim|inside'))

    return dict(word=Typed(made_up(rng)), meaning=meaning,
                sort='verb' if meaning.startswith('to ') else 'adjective'
                if meaning.split()[0] in ('afraid', 'fond', 'full', 'like')
                else 'noun')


LOOK += kinds(MEANING, meaning_case, r'''
= look up what "{word}" means
@ word
- What does "{word}" mean?
- What is the [meaning|definition] of "{word}"?
- Define {word}.
- define "{word}"[ pls|]
- {word}, meaning?
- What's a definition [for|of] {word}?
- [I came across|I stumbled over|I read] the word {word}. What does it mean?
- [My grandfather|My teacher|The novel] [keeps using|uses] the word "{word}". [Meaning?|What is meant?|What's that?]
- [Look up|Check] {word} in the dictionary[, please|].
- Dictionary: {word}
- what do they mean by {word}
- [Never heard|I have never heard] of "{word}". Explain the word, please.
- [Explain|Tell me] the word {word}[ to me|].
- [Scrabble|Crossword] question: what is the meaning of {word}?
- Do you know what {word} [is|means]?
- What means "{word}"?
- [Can|Could] you [define|explain] "{word}"[ for me|]?
- The word is {word}. [Its meaning?|I need its meaning.|What does it mean?]
- How is {word} defined?
- [Word|Term]: {word}\n[Please give the definition.|What does it mean?]
- I [don't|do not] [understand|know] the word "{word}".
- [She called me|He called it] "{word}". What does that mean?
- [My translation|My essay] has the word {word}. Is there an entry for it? What does it say?
- In the dictionary, what [is written|does it say] [under|for] "{word}"?
- [Give|Get] me the [dictionary entry|definition] for {word}.
- It says "{word}" on the old sign over our door. Meaning?
- I nodded when she said "{word}", but I have no clue what it means.
> "{word}" means "{meaning}".
> It means "{meaning}".
> {word}: {meaning}.
> [The meaning of {word} is|The dictionary says|It is defined as] "{meaning}".
> "{meaning}".
> [The word means|That means] "{meaning}".
> {word} ({sort}): {meaning}.
> As a {sort}, {word} means "{meaning}".
+ {meaning}

= look up what kind of word "{word}" is
@ word
- Is "{word}" a noun, a verb or an adjective?
- [What|Which] part of speech is "{word}"?
- [What|Which] kind of word is "{word}" - noun, verb, adjective?
- part of speech of {word}?
- {word}: noun, verb or adjective?
- [For my grammar homework|For homework]: which word class has "{word}"?
- [Which|What] word class does {word} belong to?
- [Check|Look up] the part of speech of {word}.
- [I'm tagging a text|I'm doing grammar]. What is "{word}", a noun or a verb or an adjective?
- Could {word} be a verb? Look up its part of speech.
- [Grammar|Word class] of "{word}"[?|, please]
- [I know the meaning|Never mind the meaning], but is {word} a noun or an adjective or a verb?
- Tell me the word class of {word}.
- What class of word is {word}?
- Verb, noun, adjective - which one is "{word}"?
- In the dictionary, is {word} listed as a noun or what?
- the word {word}, is it noun or verb or adjective?
- [Please say|I need to know] which part of speech "{word}" is.
- Which kind of a word is it, {word}?
- Look {word} up. [Just the part of speech.|I only want to know the word class.]
- Can one conjugate {word}, or is it no verb? Give me its part of speech.
- Word: {word}\nPart of speech?
- Before I use "{word}" in a sentence: is it a noun, a verb or an adjective?
- She says {word} is a verb, he says it's a noun. What does the dictionary say?
- {word} - which part of speech?
> "{word}" is a {sort}.
> It is a {sort}.
> A {sort}.
> {word}: {sort}.
> [The dictionary lists it as|It is listed as] a {sort}.
> {word} is a {sort}[ according to the dictionary|].
> {sort}.
> Part of speech: {sort}.
> The word is a {sort}.
> [It says|The entry says] {sort}.
+ {sort}
''', 'word')

ZONE = service('local times', '''[get|fetch|check|show] [local time|time|time zone|city time|world clock]
[world clock|time zone|local time|city clock] [lookup|get|by city|now|query|]
[current time|time now] [in|in city|of city]
[what time|time] [in|is it in]''',
'''[Returns|Gets|Shows] the [local|current] time [of|in] a [city|place]
[World clock|Time zones|Local time] [by city|for cities|]
What time it is [somewhere else|in another city]
[Local time and offset|Time and time zone] of a [city|town|place]''', [
    parameter('city', 'city location place town where zone_of q area',
              '[The|Name of the] [city|place]'),
    parameter('style', 'format style', 'How to write the time',
              choices=('12h', '24h'), needed=False)],
    'clock ahead')


def zone_case(rng):
    return dict(city=Typed(rng.choice(names.PLACES)),
                clock=f'{rng.randrange(24):02}:{rng.randrange(60):02}',
                ahead=one_of(rng, 'UTC[+|-]') + f'{rng.randrange(1, 12)}')


LOOK += kinds(ZONE, zone_case, r'''
= find what time it is in {city}
@ city
- What time is it in {city}[ now| right now|]?
- [What's|What is] the [local |current |]time in {city}?
- time in {city:l}[?|]
- {city} time?
- [Can I still call|Is it too late to call|Is it too early to ring] my [sister|friend|client] in {city}? What time is it there?
- [Tell|Give] me the time in {city}.
- How late is it in {city}?
- [I have|There's] a call with our office in {city}. What time do they have [now|]?
- Local time {city}, please.
- [My parents|My cousins] live in {city}. [Are they asleep? What's the time there?|What time is it for them?]
- World clock: {city}
- Is it morning or evening in {city}? [The exact time, please.|What's the time?]
- [Check|Look up] the local time [in|of] {city}.
- whats the time over in {city:l} rn
- What does the clock say in {city}?
- Which time do they have in {city} at the moment?
- I just landed in {city} and have to set my watch. [What time is it here?|The time, please.]
- [Please could you|Could you] find out what time it is in {city}?
- How many o'clock is it in {city}?
- In {city}, what's the time?
- [The match|The show] is live from {city}. What time is it there now?
- [Before I text him|Before I phone her], what time is it in {city}?
- My watch stopped in {city}. What time is it?
- I'm up at night anyway. Is somebody in {city} awake now? What time is it there?
- Place: {city}\nTime now?
> It is {clock} in {city}.
> {clock}[ in {city}|].
> The [local time|time] in {city} is {clock}.
> In {city} it is [now|] {clock}.
> {city}: {clock}.
> [Right now|At the moment] it is {clock}[ there| in {city}|].
> [They have|The clock says] {clock}[ in {city}|].
> {city} has {clock}[ now|].
> The local clock shows {clock}.
+ {clock}

= find the time zone of {city}
@ city
- [What|Which] time zone is {city} in?
- [What's|What is] the time zone of {city}?
- [What's|What is] the UTC offset of {city}?
- time zone {city:l}[?|]
- {city} UTC offset[?|, please]
- [For the invitation|To set up the server|For my calendar] I need the time zone of {city}.
- How far is {city} from UTC?
- [Tell|Give] me the offset from UTC for {city}.
- How many hours is {city} ahead of or behind UTC?
- Which offset to UTC has {city}?
- [Check|Look up] the time zone of {city}.
- Time zone: {city}
- [My phone shows the wrong time|My laptop is set wrong] here in {city}. Which time zone do I choose?
- In what time zone lies {city}?
- [We plan|I plan] a call with {city}. Their UTC offset, please.
- whats the timezone for {city:l}
- [I'm confused by time zones.|Time zones, ugh.] Which one does {city} use?
- [Offset|Zone] of {city} relative to UTC?
- The time zone in {city} is what?
- Not the time, the time zone: {city}.
- Offset from UTC, {city}.
- My cron job should follow {city} time. What is the UTC offset there?
- Place: {city}\nTime zone?
- If it's noon in UTC, I want to compute the time in {city}. What's the offset?
- Does {city} lie before or after UTC, and by how many hours?
> {city} is in {ahead}.
> {ahead}[ for {city}|].
> The time zone [of {city}|] is {ahead}.
> [It is|They use|They have] {ahead}[ there| in {city}|].
> {city}: {ahead}.
> [The offset is|Its offset:] {ahead}.
> Time zone[ of {city}|]: {ahead}.
> Clocks in {city} follow {ahead}.
> [That is|You need] {ahead}.
+ {ahead}
''', 'city')
