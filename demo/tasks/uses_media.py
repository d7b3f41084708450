# Copyright (C) The nginx-dsa authors

"""Services about what is published and planned: films, books, packages of
software, holidays, matches, flights."""

from tasks import names
from tasks.api import parameter, service
from tasks.stated import MONTHS, Typed, clearly, date
from tasks.times import clock
from tasks.uses import kinds, loosely, one_of
from tasks.words import made_up


def title_of(rng):
    """Returns the title of a work."""

    adjective, noun = rng.choice(names.ADJECTIVES), rng.choice(names.NOUNS)
    other = rng.choice(names.NOUNS)

    return one_of(rng, f'The {adjective} {noun}|{adjective} {noun}'
                       f'|The {noun} of {rng.choice(names.PLACES)}'
                       f'|A {noun} for {rng.choice(names.FIRST)}'
                       f'|The {noun} and the {other}|{noun} {other}'
                       f'|No {noun} in {rng.choice(names.PLACES)}').title() \
        .replace(' Of ', ' of ').replace(' And ', ' and ') \
        .replace(' For ', ' for ').replace(' In ', ' in ') \
        .replace(' The ', ' the ')


def full_name(rng):
    return f'{rng.choice(names.FIRST)} {rng.choice(names.LAST)}'


FILM = service('films', '''[find|get|search|look up] [film|movie|movie info|film details]
[film|movie|cinema] [lookup|info|search|details|by title|data]
[movies|films] [get|find|query|title]''',
'''[Finds|Returns|Looks up] a [film|movie] by [its|] title
[Film|Movie] [database|facts|details]: year, director, length and rating
[Facts|Data|Information] about a [film|movie|motion picture]
[Who made a film|When a film came out] and how long it is
[Queries|Asks] the [film archive|movie catalogue]''', [
    parameter('title', 'title film movie name q query film_title',
              '[The|] title[ of the film| of the movie|]'),
    parameter('page', 'page offset', 'Page of the results', kind='integer',
              needed=False)],
    'title year director length rating')


def film_case(rng):
    return dict(title=Typed(title_of(rng)), year=rng.randrange(1930, 2026),
                director=full_name(rng), length=rng.randrange(70, 200),
                rating=f'{rng.randrange(2, 9)}.{rng.randrange(10)}')


LOOK = kinds(FILM, film_case, r'''
= find who directed {title}
@ title
- Who [directed|made|is the director of] {title}?
- Who is the director of the [film|movie] "{title}"?
- director of {title:l}?
- "{title}" - [director|who directed it]?
- [We watched|I just saw] "{title}" and [loved|hated] it. Who directed it?
- [Quiz night|Pub quiz], quick: who [directed|made] "{title}"?
- [Look up|Find] the director of "{title}".
- Film: {title}\nDirector?
- [I forgot|I can't remember] who directed {title}.
- The movie {title} was directed by whom?
- By which director is {title}?
- [Can|Could] you tell me whose film "{title}" is? The director, I mean.
- [For my film class|For an essay on cinema] I need the director of {title}.
- Which director is behind "{title}"?
- [Tell|Give] me the name of the director of the film {title}.
- whos the guy that directed {title:l}
- Somebody directed {title}. [But who?|Who was it?]
- [My date|My uncle] thinks Hitchcock directed "{title}". Who really did?
- I'd like more films by the director of "{title}". Who is it?
- {title} is film of which director?
- Poster on my wall: "{title}". Whose film is that, who directed it?
- The prize goes to the director of {title}. To whom, then?
- I mix up directors. Who's the one behind the movie {title}?
- The credits of "{title}" ran too fast. Who directed it?
- Movie: {title}\nDirected by?
> {title} was directed by {director}.
> {director}.
> [It was|The director is] {director}.
> {director} directed [it|{title}|"{title}"].
> "{title}" is a film by {director}.
> Director: {director}.
> [That was|It is by] {director}[, {year}|].
> The name is {director}.
> Behind the film was {director}.
+ {director}

= find when {title} came out
@ title
- When did the [film|movie] {title} come out?
- [In which|From which|What] year is the film "{title}"?
- film release year {title:l}[?|]
- How old is the film {title}? [The year is enough.|Which year is it from?]
- Film "{title}": year?
- [Look up|Check] the [release year|year] of the movie {title}.
- [My parents|My grandparents] had their first date at the film "{title}". What year was it released?
- Which year was "{title}" in the cinema?
- [I'm sorting my films by year|I label my DVDs]. When did {title} come out?
- The movie {title}, what year?
- [Tell|Give] me the year when the film {title} was released.
- Is "{title}" an old film? Year, please.
- Since when exists the film {title}?
- [Can|Could] you find the year of the film "{title}"?
- For the [subtitles|programme] I need the year of "{title}", the movie.
- [I was a child|I must have been at school] when the film {title} came out. Which year was that?
- Film: {title}\nYear?
- The film "{title}" was released in which year?
- in what yr did the movie {title:l} come out
- Not the director, [the year|only the year] of the movie {title}.
- "{title}" was on TV last night, an old film I think. From which year?
- Archive label for the film reel "{title}": which year do I write?
- Was I born yet when the movie {title} was released? The year?
- The film {title} is how old, what year did it come out?
- In cinemas since when? I mean the film {title}.
> [It came out|It was released|{title} came out] in {year}.
> {year}.
> [In|It is from] {year}.
> {title} ({year}).
> "{title}" is [a film from|from] {year}.
> Year: {year}.
> The [release year|year] is {year}.
> It was first shown in {year}.
> That was in {year}.
+ {year}

= find how long the film {title} is
@ title
- How long is the [film|movie] {title}?
- [What's|What is] the [length|running time|runtime] of {title}?
- runtime {title:l}[?|]
- Movie "{title}": how many minutes?
- [My last bus leaves early|The babysitter asks]. How long is the film "{title}"?
- [Look up|Check] the length of the movie {title}.
- Can I watch {title} [before bed|on the train]? How long is it?
- [Tell|Give] me the running time of the film {title}.
- How many minutes does the film "{title}" [last|take]?
- Film: {title}\nLength?
- [I fell asleep|My popcorn ran out] during {title}. How long does that film go on?
- [Is {title} a long film?|Is the film {title} longer than two hours?] Minutes, please.
- How much time takes the movie {title}?
- [We start|We start the film] at eight: how long is "{title}"?
- [Could|Can] you find out how many minutes {title}, the film, runs?
- The film "{title}" runs for how long?
- I'm planning a film night with {title}. Length?
- how long does {title:l} go (the movie)
- [Duration|Length in minutes], {title}, please. It's a film.
- Minutes of the movie "{title}"?
- I have an evening and a film, {title}. Its length in minutes?
- Do we need a break in "{title}"? How long does the film last?
- The projector lamp gets hot. How many minutes does {title} run?
- Will the kids sit through the film {title}? How long is it?
- Movie: {title}\nMinutes?
> {title} [lasts|runs for|takes] {length} minutes.
> {length} minutes.
> [It lasts|It runs|It takes] {length} minutes.
> "{title}": {length} minutes.
> [The length|The running time] is {length} minutes.
> The film [goes on for|lasts] {length} minutes.
> Plan {length} minutes[ for it|].
> Running time: {length} minutes.
> After {length} minutes it is over.
+ {length}
''', 'title', loosely)

BOOK = service('books', '''[find|get|search|look up] [book|books|book info|title]
[book|library|isbn|bookshop] [lookup|info|search|details|by title|catalog]
[books|library] [get|find|query|title]''',
'''[Finds|Returns|Looks up] a book by [its|] title
[Book|Library] [catalogue|database|search]: author, year and pages
[Facts|Data|Information] about a book
[Who wrote a book|When a book appeared] and how long it is
[Queries|Asks] the [library|catalogue of books]''', [
    parameter('title', 'title book name q query book_title',
              '[The|] title[ of the book|]'),
    parameter('lang', 'language lang', 'Language of the edition',
              needed=False)],
    'title author year pages')


def book_case(rng):
    return dict(title=Typed(title_of(rng)), author=full_name(rng),
                year=rng.randrange(1800, 2026), pages=rng.randrange(60, 1200))


LOOK += kinds(BOOK, book_case, r'''
= find who wrote {title}
@ title
- Who wrote {title}?
- Who is the [author|writer] of [the book|the novel] "{title}"?
- author of {title:l}?
- "{title}" - [author|who wrote it]?
- [I found|My aunt gave me] a book without a cover, "{title}". Who's the author?
- [Look up|Find] the author of "{title}".
- Book: {title}\nAuthor?
- [Book club|The reading group] reads {title}. Who wrote that?
- [I forgot|I can't remember] who wrote the book {title}.
- By whom is the novel {title}?
- The book {title} was written by whom?
- [For the footnote|For my bibliography] I need the author of "{title}".
- [Tell|Give] me the name of the author of {title}.
- whos the author for the book {title:l}
- [I'm at the library|I'm in the bookshop]. Under which author do I find "{title}"?
- Which author do we owe "{title}" to?
- Who has written {title}?
- [My teacher|My grandma] praises "{title}". [Whose book is it?|Who wrote it?]
- I want to write to the author of the book {title}. Who is that?
- Name the writer of "{title}", please.
- On the shelf: "{title}", the author's name has faded. Who is it?
- To order "{title}" the shop needs the author. Who wrote it?
- Title: {title}\nWritten by?
- I mix up authors. Who's the one that wrote {title}?
- The exam asks about {title}. Who's the writer?
> {title} was written by {author}.
> {author}.
> [It was|The author is] {author}.
> {author} wrote [it|{title}|"{title}"].
> "{title}" is [a book |]by {author}.
> Author: {author}.
> [It is by|You find it under] {author}.
> The name is {author}.
> The writer is {author}.
+ {author}

= find how many pages {title} has
@ title
- How many pages does {title} have?
- How long is the book {title}? [In pages.|How many pages?]
- page count {title:l}[?|]
- "{title}": how many pages?
- [We read|I must read] {title} by next week. How many pages is that?
- [Look up|Check] the number of pages of the book "{title}".
- Book: {title}\nPages?
- Is {title} a thick book? Pages, please.
- [Tell|Give] me the page count of {title}.
- How much pages has the book {title}?
- [My bag is small|I read slowly]. How many pages are in "{title}"?
- The novel {title} - number of pages?
- [Can|Could] you find out how many pages "{title}" has?
- I read thirty pages a day and start "{title}" now. How many pages does it have in all?
- Pages in {title}?
- For printing I must know how many pages the book "{title}" has.
- [Not the author|I know the author], how many pages has {title}?
- [Would|Could] I manage {title} in one evening? How many pages are there?
- How thick is the book "{title}"? I mean the pages.
- number of pages, {title:l}, pls
- My shelf holds only thin books. How many pages does "{title}" have?
- Two weeks of holiday, one book: {title}. How many pages do I have to read a day? First tell me its pages.
- Reading challenge: "{title}". Page count?
- Title: {title}\nNumber of pages?
- Is "{title}" under five hundred pages? How many are there?
> {title} has {pages} pages.
> {pages} pages.
> {pages}.
> [It has|There are] {pages} pages.
> "{title}": {pages} pages.
> [The book has|The page count is] {pages}.
> You have {pages} pages to read.
> Pages: {pages}.
> It runs to {pages} pages.
+ {pages}
''', 'title', loosely)

PACKAGE = service('software packages', '''[get|find|look up|query] [package|package info|library version|module]
[package|pkg|module|registry] [lookup|info|version|search|latest|metadata]
[npm|pip|cargo|apt|registry] [info|show|view|package]
[latest|newest] [version|release]''',
'''[Returns|Finds|Gets] the [latest|newest] version of a [package|library]
[Package|Software] registry: version, license and date of a package
[Metadata|Facts|Information] about a [package|library|module]
[Looks up|Queries] a [package|module] in the registry
[Which|What] version of a library is the newest, and its license''', [
    parameter('name', 'name package package_name pkg library module q',
              '[Name of the|The] [package|library]'),
    parameter('channel', 'channel tag', 'Such as stable or beta',
              needed=False)],
    'name version license day')


def package_case(rng):
    name = made_up(rng)
    said, day = date(rng)

    return dict(name=Typed(one_of(rng, f'{name}|{name}-{made_up(rng)}'
                                       f'|lib{name}|py{name}|{name}js'
                                       f'|{name}_utils|go-{name}')),
                version=f'{rng.randrange(0, 20)}.{rng.randrange(0, 40)}'
                        f'.{rng.randrange(0, 30)}',
                license=one_of(rng, 'MIT|Apache-2.0|BSD-2-Clause|GPL-3.0'
                                    '|MPL-2.0|ISC|LGPL-2.1|Zlib'),
                day=day)


LOOK += kinds(PACKAGE, package_case, r'''
= find the latest version of {name}
@ name
- What is the [latest|newest|current] version of {name}?
- Which version of {name} is the [latest|newest]?
- latest {name}?
- {name} latest version[?| pls]
- [Look up|Check] the newest release of [the package|] {name}.
- [My build is broken|CI fails] because of an old {name}. What's the [latest|current] version?
- Which version [should I put|do I write] into the requirements for {name}? [The newest one.|I want the latest.]
- [I still use|We're on] {name} 0.1. [What's the newest?|Which version is current?]
- Package: {name}\nVersion?
- Is there a new {name}? [Which version is it at?|What's its version?]
- [Tell|Give] me the current version number of {name}.
- [I want to pin|Let me pin] {name}. To which version?
- What version is {name} at[ now|]?
- Which is latest version for {name} package?
- version of `{name}`?
- [Could|Can] you [find out|check] which version of {name} is out?
- [Dependency update|Upgrading dependencies]: newest {name}, please.
- [The docs mention|Our wiki names] some old version of {name}. What is the newest?
- how new is {name}, what version
- I'd like the version of the last release of {name}.
- The library {name} - what's the latest that one can install?
- Release notes say "bump {name}". To what version, if I take the newest?
- [Bot says|A bot says] {name} is out of date. What is current?
- I wrote {name}==latest, which is nonsense. What number is the latest?
- We froze our dependencies last year. {name} is at which version today?
- Newest version number, package {name}.
> The [latest|newest|current] version of {name} is {version}.
> {version}.
> Version {version} of {name}.
> [It is|The latest is|It is at] {version}.
> [The newest release|The last release] is {version}[, of {day}|].
> The package {name} is at {version}[ now|].
> Version {version}.
> Take {version}[, the newest|].
> The registry has {version}[ as the latest|].
+ {version}

= find the license of {name}
@ name
- [What|Which] license does {name} [have|use]?
- Under which license is {name}[ published|]?
- license of {name}?
- {name} licence[?| pls]
- [Can we ship|May I use] {name} in our product? Which license is it?
- [The lawyers ask|Legal asks] about the license of {name}.
- [Look up|Check] the [license|licence] of the package {name}.
- Package: {name}\nLicense?
- Is {name} [GPL|MIT] or something else?
- [Tell|Give] me the licence of {name}.
- [I'm writing|We need] a list of licenses. What's {name} under?
- [Could|Can] you [find out|check] how {name} is licensed?
- How is the library {name} licensed?
- Open source audit: license for {name}?
- which licence has `{name}`
- Not the version of {name}, the license.
- I'd like to know {name}'s license before I [install|copy|fork] it.
- For the notices file: {name}, licensed under what?
- Terms of {name}? The short name of the license is enough.
- What licence do the authors of {name} use?
- A customer wants to know what licence our dependency {name} has.
- Before merging: {name}, is its license permissive? Name it.
- The README of {name} doesn't say it: which license?
- I forked {name}. Under which license may I publish that?
- License check, package {name}, please.
> The package {name} is [licensed|published] under {license}.
> {license}.
> [It is|Its license is|The license is] {license}.
> The license of {name} is {license}.
> [License|Licence]: {license}.
> The package has the license {license}.
> [It uses|It comes under] {license}.
> {license} is its license.
> The registry says {license}.
+ {license}
''', 'name')

HOLIDAY = service('public holidays', '''[get|list|find|look up] [public holidays|holidays|bank holidays|next holiday]
[holiday|public holiday|holidays|bank holiday] [lookup|list|by country|of country|by year]
[holidays] [get|for country|year]''',
'''[Lists|Returns|Gets] the public holidays of a [country|country in a year]
[Public holidays|Bank holidays|Days off] by country and year
[When|On which days] a country has [public|national] holidays
[Holiday calendar|National holidays] for a [given|] year''', [
    parameter('country', 'country nation country_name where region q',
              '[The|Name of the] country'),
    parameter('year', 'year yr for_year in_year calendar_year',
              '[The|Which] year', kind='integer')],
    'holiday day')

COUNTRIES = names.listed('''Albania, Algeria, Argentina, Armenia, Australia,
Austria, Bangladesh, Belgium, Bolivia, Botswana, Brazil, Bulgaria, Cambodia,
Cameroon, Canada, Chile, China, Colombia, Croatia, Cuba, Cyprus, Denmark,
Ecuador, Egypt, Estonia, Ethiopia, Fiji, Finland, France, Gabon, Germany, Ghana,
Greece, Guatemala, Honduras, Hungary, Iceland, India, Indonesia, Iraq, Ireland,
Israel, Italy, Jamaica, Japan, Kazakhstan, Kenya, Laos, Latvia, Lebanon, Libya,
Lithuania, Malawi, Malaysia, Mali, Malta, Mexico, Moldova, Mongolia, Morocco,
Mozambique, Namibia, Nepal, New Zealand, Nicaragua, Niger, Nigeria, Norway,
Oman, Pakistan, Paraguay, Peru, Poland, Portugal, Romania, Rwanda, Senegal,
Serbia, Slovakia, Slovenia, South Africa, South Korea, Spain, Sri Lanka, Sudan,
Sweden, Switzerland, Syria, Taiwan, Tanzania, Thailand, Togo, Tunisia, Turkey,
Uganda, Ukraine, Uruguay, Uzbekistan, Venezuela, Vietnam, Yemen, Zambia,
Zimbabwe''')

FEAST = ('Independence Day|Labour Day|Constitution Day|Harvest Day'
         '|Republic Day|Unity Day|Liberation Day|Flag Day|Heroes Day'
         '|Spring Festival|Lantern Festival|Remembrance Day|Youth Day'
         '|Farmers Day|National Day|Day of Peace|Teachers Day')


def holiday_case(rng):
    days = sorted(rng.sample([d for d in range(360) if d not in (58, 59)],
                             rng.randint(2, 4)))
    feasts = []

    while len(feasts) < len(days):
        feast = one_of(rng, FEAST)
        feasts += [feast] if feast not in feasts else []

    records = [dict(holiday=f, day=f'{d % 30 + 1} {MONTHS[d // 30]}')
               for f, d in zip(feasts, days)]

    return dict(country=Typed(rng.choice(COUNTRIES)),
                year=rng.randrange(2024, 2034), records=records,
                n=len(records), first=records[0]['holiday'],
                start=records[0]['day'])


LOOK += kinds(HOLIDAY, holiday_case, r'''
= find the first holiday of {country} in {year}
@ country year
- What is the first public holiday in {country} in {year}?
- [Which|What] public holiday comes first in {country} in {year}, and when is it?
- first holiday {year} {country:l}
- In {year}, when does {country} have its first public holiday?
- [I'm planning a trip|We open an office] in {country}. What's the first holiday of {year} there?
- [Our colleagues|My team] in {country} will be off. When's the first day off of {year} over there?
- [Look up|Check] the first bank holiday of {year} in {country}.
- Country: {country}\nYear: {year}\nFirst public holiday?
- {country}, {year}: first public holiday and its date?
- [When are|When will] the shops [first closed|first be closed] for a holiday in {country} in {year}?
- [Tell|Give] me the earliest public holiday of {country} in {year}.
- For {year}: the first holiday in {country}[, with the date|]?
- Which first holiday has {country} in the year {year}?
- I need to fill a calendar for {country}, {year}. What's the first public holiday?
- [Can|Could] you find the holidays of {country} for {year}? Just the first is enough.
- The first day that is a public holiday in {country}, year {year}, please.
- [School|Work] in {country} starts the year {year}. When is the first public holiday?
- Holiday list of {country} {year}, only the first entry.
- when do people in {country} get their first day off in {year} (public holiday)
- What do they celebrate first in {country} in {year}? A public holiday, I mean, with its date.
- Contract work in {country}, all of {year}. What's the first public holiday I get?
- Public holidays, {country}, {year}: what is the first one and when?
- My calendar for {year} misses the holidays of {country}. Start with the first, please.
- Banks in {country} close on public holidays. Which is the first in {year}, on what date?
- Which holiday opens the year {year} in {country}? With date.
> The first is {first}, [on|] {start}.
> {first}, {start}.
> [It is|That is] {first} on {start}.
> {first} on {start} [is the first|comes first][ in {country}|].
> [On {start}|{start}]: {first}.
> In {year} it is {first}, on {start}.
> [First|First holiday]: {first} ({start}).
> The year begins with {first}, {start}.
> {start} is {first}[ in {country}|], the first one.
+ {first}; {start}

= count the public holidays of {country} in {year}
@ country year
- How many public holidays does {country} have in {year}?
- How many bank holidays are there in {country} in {year}?
- number of public holidays {country:l} {year}
- {country}, {year}: how many holidays?
- Which is larger, my luck or the number of public holidays in {country} in {year}? Tell me the latter.
- Country: {country}. Year: {year}. [How many public holidays?|The number of public holidays, please.]
- [HR|Payroll] asks how many public holidays {country} has in {year}.
- [Count|Please count] the public holidays of {country} for {year}.
- In {year}, how many days off [do people in {country} get|does everyone in {country} get] from public holidays?
- [For the payroll|For our planning] I need the number of public holidays in {country} in {year}.
- Country: {country}\nYear: {year}\nHow many public holidays?
- [I envy|Lucky] people in {country}! How many public holidays have they got in {year}?
- How much public holidays has {country} in {year}?
- Public holidays in {country} during {year} - how many in total?
- [Tell|Give] me how many public holidays you find for {country} in {year}.
- [Look up|Check] {country}'s public holidays of {year}. I only want the count.
- [We compare|I compare] countries: how many public holidays in {country} ({year})?
- For the year {year}, what's the number of public holidays in {country}?
- Does {country} have many holidays in {year}? How many?
- How many times are the banks in {country} closed for public holidays in {year}?
- Contract work in {country}, all of {year}. How many public holidays will there be?
- Is it true that {country} has the most holidays? How many in {year}?
- Public holidays {year}, {country}: just the number.
- My calendar for {year} should have the holidays of {country}. How many are they?
- If I work in {country} in {year}, how many public holidays do I get?
- Can you count the holidays ({country}, {year})?
> [There are|They have|{country} has] {n}[ in {year}|].
> {n}[ public holidays| in {year}|].
> [It is|That makes|I count] {n}.
> {country} has {n} in {year}.
> [Number of holidays|Public holidays]: {n}.
> The list has {n}[ for {year}|].
> People there get {n}.
> {n} in all[ in {country}|].
> For {year} I find {n}.
+ {n}
''', 'country')

MATCH = service('sports results', '''[get|find|fetch|check] [score|match result|game result|last match|sports result]
[sports|match|game|league|team] [result|score|lookup|results|last game|info]
[score|result] [of team|by team|lookup]''',
'''[Returns|Gets|Finds] the last [match|game] of a team
[Sports results|Scores|Match results] by team
[How|Against whom] a team played last, and when it plays next
[Last result and next match|Score and opponent] of a [team|club]
[Scores|Results] of [sports teams|clubs]''', [
    parameter('team', 'team club team_name side name q who',
              '[The|Name of the] [team|club]'),
    parameter('sport', 'sport league competition', 'Which sport',
              needed=False)],
    'against score starts')

TEAM = ('{a} United|{a} Rovers|{a} City|FC {a}|{a} {b}s|{a} Athletic|SC {a}'
        '|Real {a}|{a} Wanderers|Dynamo {a}|{a} Rangers|{a} {b} Club')


def team(rng):
    return one_of(rng, TEAM).format(a=rng.choice(names.PLACES),
                                    b=rng.choice(names.NOUNS).title())


def match_case(rng):
    mine, other = rng.randrange(0, 6), rng.randrange(0, 6)
    day = one_of(rng, 'Monday|Tuesday|Wednesday|Thursday|Friday|Saturday'
                      '|Sunday')

    return dict(team=Typed(team(rng)), against=team(rng),
                score=f'{mine}:{other}', starts=f'{day} {clock(rng)}',
                how='won' if mine > other else 'lost' if mine < other
                else 'drew', won='yes' if mine > other else 'no')


LOOK += kinds(MATCH, match_case, r'''
= find the last result of {team}
@ team
- How did {team} play[ last time| in their last match|]?
- What was the [score|result] of {team}'s last [game|match]?
- {team} score[?| pls]
- {team:l} result[?|]
- [I missed|I slept through] the {team} game. [What was the score?|How did it end?|Who did they play, and the score?]
- [Score|Result] of the last {team} match, please.
- How did it go for {team}?
- [My husband|My brother] is in a bad mood. How did {team} do?
- [Look up|Check] the last result of {team}.
- Team: {team}\nLast result?
- [Tell|Give] me [the last score of {team}|how {team} did].
- [No spoilers until now, but|Okay, I'm ready]: the score of {team}'s last match?
- Never mind who scored for {team}. [What's the score?|The score, please.]
- [Can|Could] you find out how {team} played?
- whats the score in the last {team} game
- How ended the last match of {team}?
- Final score, {team}?
- [The whole pub|The whole office] talks about {team}. [What was the result?|How did their match end?]
- [Against whom|Against which team] did {team} play last, and how did it end?
- {team}, last match: opponent and score?
- Everyone at work is grinning. Did {team} play? What was the score, and against whom?
- Team: {team}\nScore of the last match?
- My bet was on {team}. How did it end?
- I only read headlines: "{team} again!" What's the result of their last game?
- I was on a plane during the {team} match. The score?
> {team} played {score} against {against}.
> {score} against {against}.
> [It ended|The score was|It was] {score} against {against}.
> {team} [against|vs.] {against}: {score}.
> [The last match|Their last match], against {against}, ended {score}.
> {score}, [the opponent was|against] {against}.
> They {how}: {score} against {against}.
> Against {against} it was {score}.
> {team} played against {against}; the score was {score}.
+ {score}; {against}

= find out whether {team} won
@ team
- Did {team} win[ their last match| last time|]?
- I can't believe it. Did {team} really win?
- {team:l} win?
- {team}, did they win?
- [I hear cheering|People are singing] in the street. Did {team} win?
- [My friend bet|I bet] on {team}. Did they win?
- Was it a win for {team}?
- [Check|See] whether {team} won[ the last match|].
- Please tell me that {team} won!
- [The kids|My twins] are fans of {team}. Did they win their last game?
- Win or no win for {team}?
- Has {team} won its last match?
- Can I wear my {team} scarf with pride, did they win?
- Team: {team}\nDid they win?
- The last match of {team} - a win?
- Yes or no: did {team} win the last time?
- I went to bed at half time. Did {team} win in the end?
- My barber will talk about {team}. Did they win?
- Is it true that {team} won?
- did {team} pull it off, i mean did they win
- The {team} fans look sad. Didn't they win?
- Whether {team} won is all I want to know.
- I only want to hear if {team} won.
> {won}, {score} against {against}.
> {won}: {score}[ against {against}|].
> {won}. [They {how}|{team} {how}] {score}[ against {against}|].
> {won}, it was {score}[ against {against}|].
> {won}, [the score|their score] was {score}.
> {won} - {score}.
> {won}, they {how}[ against {against}|], {score}.
+ {won}; {score}

= find when {team} plays next
@ team
- When does {team} play next?
- When is {team}'s next [game|match]?
- next {team:l} game[?|]
- {team}, next match: when?
- [I have|We have] tickets for {team}. When do they play next?
- [Look up|Check] when {team} plays again.
- Team: {team}\nNext match, day and time?
- [I don't want to miss|I must not miss] the next {team} match. [When is it?|When is that?]
- [Tell|Give] me [day and time|the start] of the next {team} game.
- [My wedding|Our picnic] must not be during a {team} match. When do they play next?
- On which day and at what time will {team} play?
- [Kickoff|Start] of the next {team} match?
- [Can|Could] you find when {team} is on next?
- When plays {team} the next time?
- whens the next match of {team}
- Not the last result of {team}, [the next date|when they play next].
- [The pub wants to show|We show] the next match of {team}. When does it begin?
- [Fan club here|As a fan], I need the date of {team}'s next match.
- Is {team} playing [soon|this week]? When exactly?
- Next fixture of {team}, with the time, please.
- My season ticket is for {team}. When's the next match, day and time?
- Team: {team}\nPlays next when?
- Shall I record it? The next {team} game, when does it start?
- Friends come to watch {team}. For which day and time do I invite them?
- I work shifts. When is the next match of {team}?
> {team} [plays|play] [on|next on|] {starts}.
> {starts}.
> [The next match is|They play|It is] [on|] {starts}.
> [Next match|Next game]: {starts}.
> {team}: {starts}.
> On {starts}.
> [You can see them|It starts] on {starts}.
> Be there on {starts}.
> Their next match begins on {starts}.
+ {starts}
''', 'team')

FLIGHT = service('flights', '''[get|track|check|find] [flight|flight status|flight info]
[flight|airline|airport|aviation] [status|tracker|lookup|info|by number|details]
[flights] [get|status|track]''',
'''[Returns|Gets|Shows] the [state|status] of a flight [by its number|]
[Flight|Airport] [tracker|information]: state, gate and arrival
[Where|From which gate] a flight leaves, and when it lands
[Live|Current] data of [a flight|flights] by flight number and day''', [
    parameter('flight', 'flight flight_number number code flight_no id',
              '[Number of the|The] flight[, e.g. XY123|]'),
    parameter('day', 'day date departure_date on flight_date',
              '[Day|Date] of departure, [YYYY-MM-DD|as YYYY-MM-DD'
              '|such as 2027-01-31]')],
    'state gate lands')


def flight_case(rng):
    said, day = date(rng)
    lands = rng.randrange(24 * 60)

    return dict(flight=Typed(''.join(rng.choice('ABDEFKLMQRTUXZ')
                                     for _ in range(2))
                             + str(rng.randrange(10, 9999))),
                day=day, said=said, lands=f'{lands // 60:02}:{lands % 60:02}',
                state=one_of(rng, 'on time|delayed|cancelled|boarding'
                                  '|scheduled|diverted|gate closed'),
                gate=rng.choice('ABCDE') + str(rng.randrange(1, 60)))


LOOK += kinds(FLIGHT, flight_case, r'''
= check the state of flight {flight} on {day}
@ flight day
- Is flight {flight} on {said} on time?
- What's the [status|state] of flight {flight} on {said}?
- {flight} {said} status[?| pls]
- [I'm flying|My parents fly] with {flight} on {said}. [Any delay?|Is everything fine with the flight?]
- [Check|Look up] flight {flight}, {said}[, please|].
- On {said} I [take|am booked on] {flight}. What's its status?
- Flight: {flight}\nDate: {said}\nStatus?
- [Is|Has] {flight} [on|of] {said} [cancelled|delayed]? What does the airport say?
- [There's a storm|There's a strike]. Will flight {flight} on {said} go? The status, please.
- [Tell|Give] me the state of {flight}, departure {said}.
- how is flight {flight:l} on {said} doing
- [Can|Could] you see if there's something wrong with {flight}? The date is {said}.
- {said}: flight {flight}. [On time?|Delayed or on time?]
- For {said}, what does the flight tracker say about {flight}?
- How is the status of the flight {flight} at {said}?
- [My boss lands|Grandpa arrives] with {flight}, {said}. Status?
- [The ticket says|My ticket:] {flight}, {said}. How is it looking?
- Does {flight} fly as planned on {said}?
- [I'm nervous about|I worry about] my flight ({flight}, {said}). What's its state?
- The state of flight {flight} of {said}, thanks.
- Taxi ordered, bags packed. Is {flight} of {said} all right?
- Do I have to expect a delay with {flight}? I fly on {said}.
- {said}, {flight}. The airport app is down, so please look up the status.
- Dad sits in flight {flight}, {said}. What's its status?
- News for flight {flight} on {said}?
> Flight {flight} is [now |]"{state}".
> [Status|State]: {state}.
> {flight}: {state}.
> {state}[, gate {gate}|].
> [It is listed as|The flight is listed as|The tracker says] "{state}".
> {flight} on {day}: {state}.
> [The state is|The status is] "{state}"[ for {flight}|].
> Right now it is "{state}".
> The airport says "{state}"[ about {flight}|].
+ {state}

= find the gate of flight {flight} on {day}
@ flight day
- [Which|What] gate does flight {flight} leave from on {said}?
- What's the gate [of|for] {flight} on {said}?
- gate {flight} {said}[?|]
- [I'm at the airport|I'm at security] for {flight}, {said}. Which gate?
- [Check|Look up] the gate of flight {flight}, {said}.
- On {said} I fly with {flight}. Where do I board?
- Flight: {flight}\nDate: {said}\nGate?
- [Tell|Give] me the gate for flight {flight} on {said}.
- From where leaves {flight} on {said}, which gate?
- To which gate [do I go|must I run] for {flight}? It's on {said}.
- {flight}, {said}: gate?
- [My grandmother needs a wheelchair|We need help with the pram]. From which gate does {flight} go on {said}?
- [Can|Could] you find the gate? Flight {flight}, {said}.
- Boarding gate, flight {flight}, {said}, please.
- [The display is broken|I can't read the board]. What is the gate of {flight} on {said}?
- Only the gate of {flight} ({said}), nothing else.
- My boarding pass ({flight}, {said}) has no gate printed. Which is it?
- I run through the airport! {flight}, {said}, which gate?
- Is it a long way to the gate of {flight} on {said}? Which gate is it?
- Gate for {flight}? Departure is on {said}.
- Where do we queue for flight {flight} on {said}? The gate, I mean.
- Meet me at the gate of {flight}, {said}. Which one is that?
- Flight {flight} leaves on {said}. What gate shall I look for?
- We change planes to {flight} on {said}. At which gate?
> The gate is {gate}.
> {gate}.
> [Gate|Go to gate|It leaves from gate] {gate}.
> {flight}: gate {gate}.
> [You board at|Boarding is at] {gate}.
> Flight {flight} [leaves|departs] from gate {gate}.
> Please go to {gate}.
> It is gate {gate}[ for {flight}|].
> They board at {gate}.
+ {gate}

= find when flight {flight} on {day} lands
@ flight day
- When does flight {flight} on {said} [land|arrive]?
- [At what time|What time] does {flight} get in on {said}?
- arrival {flight} {said}[?|]
- I [pick up|fetch] my [sister|aunt] from {flight} on {said}. When does it land?
- [Check|Look up] the arrival time of flight {flight}, {said}.
- On {said}, when will {flight} be down?
- Flight: {flight}\nDate: {said}\nLanding time?
- [Tell|Give] me the landing time for flight {flight} on {said}.
- When lands the {flight} of {said}?
- [The taxi driver|My friend] asks when flight {flight} arrives. It's the one on {said}.
- {flight}, {said}: arrives when?
- [I book the train|I booked a bus] after my flight {flight} on {said}. What time do I land?
- [Can|Could] you find when {flight} touches down? Date: {said}.
- Estimated arrival of {flight}, {said}, please.
- Not the gate: I need the arrival time of {flight} on {said}.
- By what time is {flight} there on {said}?
- She's on flight {flight}, {said}. What time do I pick her up?
- My parking is by the hour: when does {flight} of {said} arrive?
- When will the passengers of {flight} be here? Date {said}.
- Arrival board: flight {flight}, {said}, what time?
- I promised to wave when {flight} comes in on {said}. What time?
- Do I still catch the last train if I take {flight} on {said}? When does it land?
- Flight {flight} starts on {said}, but when does it land?
- Landing of {flight}? The flight is on {said}.
> It lands at {lands}.
> {lands}.
> [Arrival|Landing]: {lands}.
> Flight {flight} [lands|arrives|gets in] at {lands}.
> [At|It should be there at] {lands}.
> {flight}: {lands}.
> Touchdown is at {lands}.
> It gets in at {lands}.
> Expect it at {lands}.
+ {lands}
''', 'flight', clearly)
