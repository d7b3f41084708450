# Copyright (C) The nginx-dsa authors

"""The values of a request for a tool of any kind (daily_open.py), as people
write them: with the name of the parameter ("priority: high"), or without it,
where a unit or a preposition shows what is meant ("for 45 minutes"), or in
other words than those of the tool ("by bike" for cycling)."""

import re

from tasks import happen, names, spoken
from tasks.open_words import Trait, number
from tasks.parts import Split, part
from tasks.phrase import HELLO, capital, expand, manner


NAMED = '''{words} {v}
{words}: {v}
the {words} is {v}
{words} = {v}
with {v} as the {words}
with the {words} {v}
and {v} for the {words}'''

NAMED_LIST = '''{words} {v}
{words}: {v}
with {v} as {words}
with the {words} {v}
and as {words} {v}'''

NAMED_UNIT = '''{words} {v}
a {words} of {v}
{words}: {v}
the {words} is {v}
with a {words} of {v}
and the {words} should be {v}'''

# without the name, by the unit or the name of the trait; parameters of one row
# could be taken for each other, so only one of a tool is written like this

SHOWN = tuple((tuple(f.strip() for f in row.partition('=')[0].split(',')),
               Split(f.strip()
                     for f in row.partition('=')[2].split(' / ')))
              for row in '''
euros = for {v} euros / at {v} euros / {v} euros / {v} EUR / it's {v} euros
cm = {v} cm / it has {v} cm / {v} centimeters
kg = {v} kg / it weighs {v} kg / weighing {v} kilos
years = {v} years old / it is {v} years old / aged {v}
pieces = {v} of them / {v} pieces / make it {v} / quantity {v}
people = for {v} people / {v} people / for a party of {v} / there are {v} of us
minutes = for {v} minutes / it takes {v} min / {v} minutes / {v} min long
km/h = at {v} km/h / {v} km/h / going {v} km/h
degrees = at {v} degrees / to {v} degrees / {v} degrees / {v} °C
% = {v} percent / {v}% / at {v} % / by {v} percent
points = {v} points / it got {v} points / with {v} points
km = {v} km / {v} km away / over {v} kilometers
watts = {v} watts / {v} W / it needs {v} watts
stars = {v} stars / with {v} stars / I give {v} stars
mm = {v} mm / {v} mm thick
tons = {v} tons / {v} t
due date, end date = by {v} / until {v} / till {v} / not after {v}
start date = from {v} on / as of {v} / starting {v} / beginning {v}
start, appointment, end = {v} / it is {v}
opening time, closing time, departure time = at {v} / {v}
day = on {v} / {v} / this {v} / next {v}
days = on {v} / always on {v} / every {v}
month, months = in {v} / this {v}
time = at {v} / {v} sharp / around {v}
city, birthplace = in {v} / over in {v} / down in {v}
origin = from {v} / starting in {v} / leaving {v}
destination = to {v} / bound for {v} / going to {v}
address = at {v} / it's at {v}
email = {v} / use {v} / reach me at {v}
color = in {v} / {v} of course / make it {v}
priority, urgency = {v} prio / {v} priority / it has {v} priority
format = as {v} / in {v} form / as a {v}
topic, keyword = about {v} / it's about {v} / on {v}
room = in the {v} / it is in the {v} / for the {v}
floor = on floor {v} / up on floor {v}
page = on page {v} / see page {v}
year = from {v} / of {v} / in {v}
author = by {v} / written by {v}
reviewer = reviewed by {v} / {v} reviews it / to be reviewed by {v}
owner = it belongs to {v} / owned by {v} / {v}'s
manager = managed by {v} / {v} manages it / under the management of {v}
members, guests = with {v} / together with {v} / {v} will come
tags, keywords = tagged {v} / under {v}
contents = with {v} inside / full of {v} / there are {v} in it
currency = in {v} / paid in {v}
copies = {v} copies / in {v} copies
limit, count, top, max results, number of results = max {v} / at most {v} / up to {v} / not more than {v} / no more than {v} / {v} at most
folder = into {v} / in the folder {v} / under {v}
latitude, longitude = {v}
'''.strip().splitlines())

ROWS = {key: (i, ways) for i, (keys, ways) in enumerate(SHOWN)
        for key in keys}


def row(trait):
    return ROWS.get(trait.unit or trait.words, (None, None))


def detail(rng, trait, said, traits):
    """Returns how a request states that a trait has the value that is said
    like this; traits are all of the tool."""

    if trait.said and said not in trait.said:
        return said

    at, ways = row(trait)
    rivals = [t for t in traits if t is not trait and row(t)[0] == at]

    if ways and not rivals and rng.random() < 0.6:
        return rng.choice(ways).format(v=said)

    unit = '' if trait.unit in ('', '%') else ' ' + trait.unit
    named = NAMED_LIST if trait.kind == 'array' else \
        NAMED_UNIT if trait.unit else NAMED

    return rng.choice(named.splitlines()).format(
        words=trait.words, v=said + ('%' if trait.unit == '%' else unit))


def draw(rng, trait):
    """Returns a value as people write it, and as a program does."""

    if trait.form == 'date':
        return spoken.date(rng)

    if trait.form == 'time':
        return spoken.time(rng)

    if trait.form == 'moment':
        (day, date), (hour, time) = spoken.date(rng), spoken.time(rng)

        return expand(rng, f'{day} at {hour}|{day}, {hour}'
                      f'|{hour} on {day}'.join('[]')), f'{date}T{time}'

    v = rng.choice(trait.choices) if trait.choices else trait.make(rng)

    # the value itself, with the name of the parameter, or as it is meant

    if trait.said:
        return v.lower() if len(v) > 3 and rng.random() < 0.15 else \
            rng.choice(trait.said[v.lower()]).lstrip('~'), v

    if isinstance(v, list):
        return spoken.listed(rng, v), v

    if trait.form == 'compound':
        return ' '.join(parted(v)).lower(), v

    if trait.kind == 'integer' and 2 <= v < 100 and trait.unit != '%' \
            and rng.random() < (0.3 if v < 13 else 0.1):
        return spoken.in_words(v), v

    return str(v), v


# ------------------------------------------------- traits that are not words


TIMES = Split((Trait('start', 'string', None, form='moment'),
               Trait('appointment', 'string', None, form='moment'),
               Trait('end', 'string', None, form='moment'),
               Trait('opening time', 'string', None, form='time'),
               Trait('closing time', 'string', None, form='time'),
               Trait('departure time', 'string', None, form='time')))

# none of them is the name of another trait

CHOICE = Split('scheme zone area target plan kind type layer source sector lane '
               'stage track region group route'.split())


def compound(rng):
    """Returns a trait with a choice of names that are written like those of a
    program."""

    style = rng.choice((str.lower, str.lower, str.upper, str.title))
    gap = rng.choice(('_', '_', '-', ''))

    if gap == '':
        style = str.title

    made, n = [], rng.randint(2, 5)

    while len(made) < n:
        name = gap.join(map(style, (rng.choice(names.ADJECTIVES),
                                    rng.choice(names.NOUNS))))
        if name.isascii() and ' ' not in name and name not in made:
            made.append(name)

    return Trait(rng.choice(CHOICE), 'string', None, choices=tuple(made),
                 form='compound')


def parted(name):
    """Returns the words of a name of a program."""

    out = ''

    for at, letter in enumerate(name):
        out += ' ' if letter in '_-' else \
            ' ' + letter if letter.isupper() and at \
            and not name[at - 1].isupper() else letter

    return out.split()


# ------------------------------------------- choices that are said otherwise

# names of the parameter; other traits that it could be taken for | each of its
# values = the ways to say it, with a ~ before those that may precede a noun

MEANT = '''
priority, urgency, importance | low = ~low priority, ~low-priority, low prio, no hurry | normal = ~normal priority, normal prio, of normal priority | high = ~high priority, ~high-priority, high prio, top priority, very important | critical = critical priority, as urgent as can be
travel mode, transport, means of transport | driving = by car, in the car, with the car | cycling = by bike, by bicycle, on my bike | walking = on foot, walking, all the way on foot | transit = by public transport, by bus, by bus or train
frequency, interval, repeat, recurrence | hourly = every hour, once an hour, each hour | daily = every day, once a day, each day | weekly = every week, once a week, each week | monthly = every month, once a month, each month | yearly = every year, once a year, each year
price level, price range, price class | cheap = ~cheap, ~inexpensive, ~low-priced, for little money | moderate = ~mid-priced, mid-range, ~reasonably priced | expensive = ~expensive, ~luxury, ~high-end, of the expensive kind
size class, dimensions; size | small = ~small, ~little, size S, in small | medium = ~medium-sized, size M, in medium | large = ~large, ~big, size L, in large
output format, file type, file format; format | pdf = as a PDF, as PDF, in PDF form | csv = as CSV, as a CSV file, in CSV form | json = as JSON, in JSON form | xlsx = as an Excel sheet, for Excel, as an Excel file | docx = as a Word file, for Word, as a Word document
travel class, service class | economy = in economy, economy class, ~economy-class | business = in business class, business class, ~business-class | first = first class, in first class, ~first-class
audience, access, readers; visibility | public = for everybody to see, visible to all, open to everyone | private = just for me, only for me, for my eyes only | team = for the whole team, for my team, visible to the team
contact channel, way of sending, medium | email = by mail, by email, as an email | sms = by text message, by SMS, as a text message | phone = by phone, on the phone, with a call | post = by letter, as a letter
payment method, means of payment | card = by card, with my card, by credit card | cash = in cash, with cash | invoice = on invoice, with a bill afterwards | transfer = by bank transfer, by transfer
part of day, daypart; time | morning = in the morning, before noon | afternoon = in the afternoon, after lunch | evening = in the evening, after dinner | night = at night, late at night
permission, access level | viewer = read-only, just for reading, as a viewer | editor = with the right to edit, as an editor | admin = with all rights, as an admin
shipping, delivery method | express = by express, as fast as possible, with express delivery | standard = by normal mail, with standard delivery | pickup = to be picked up, for pickup
seat type, seating | window = by the window, at the window, next to the window | aisle = on the aisle, at the aisle, next to the aisle | middle = in the middle, between the two others
difficulty, skill level; level | beginner = for beginners, ~easy, for starters | intermediate = ~intermediate, for people with some practice | advanced = for experts, ~advanced, ~difficult
age group, target group; age | children = for kids, for children, for little ones | adults = for grown-ups, for adults | families = for the whole family, for families
condition, wear | new = ~brand-new, never used, unused | used = ~second-hand, used before, not new | refurbished = ~refurbished, made like new
weekday, day of the week; day, days | mon = on Monday, on Mondays, every Monday | tue = on Tuesday, on Tuesdays, every Tuesday | wed = on Wednesday, on Wednesdays, every Wednesday | thu = on Thursday, on Thursdays, every Thursday | fri = on Friday, on Fridays, every Friday | sat = on Saturday, on Saturdays, every Saturday | sun = on Sunday, on Sundays, every Sunday'''

LANGUAGES = '''ar Arabic, cs Czech, da Danish, de German, el Greek, en English,
es Spanish, fi Finnish, fr French, hi Hindi, hu Hungarian, it Italian,
ja Japanese, ko Korean, nl Dutch, no Norwegian, pl Polish, pt Portuguese,
ro Romanian, ru Russian, sv Swedish, tr Turkish, uk Ukrainian, vi Vietnamese,
zh Chinese'''


def listed(text):
    return tuple(' '.join(part.split()) for part in text.split(','))


def meanings(text):
    """Returns [(names of a parameter, words of traits like it, {value: ways
    to say it})]."""

    found = []

    for row in text.strip().splitlines():
        called, *values = row.split('|')
        called, _, like = called.partition(';')
        found.append((listed(called), listed(like), {
            value.strip(): Split(listed(ways))
            for value, _, ways in (v.partition('=') for v in values)}))

    return found


MEANINGS = meanings(MEANT) + [(('language', 'lang', 'locale'), (), {
    code: Split((f'in {name}', f'written in {name}', f'{name} language'))
    for code, name in (pair.split() for pair in LANGUAGES.split(','))})]

STYLES = (str.lower, str.lower, str.lower, str.lower, str.upper, str.title)
FEW = 6                 # values of an enum of many


# those that fit what is searched, booked or bought, by the first of their
# names

FOR_SEARCH = ('priority', 'difficulty', 'age group', 'part of day', 'language',
              'price level')
FOR_GOODS = ('price level', 'size class', 'condition', 'age group')
FOR_BOOKING = ('travel class', 'payment method', 'seat type', 'price level',
               'part of day', 'age group', 'size class', 'weekday')
FOR_BUYING = ('payment method', 'shipping', 'size class', 'condition',
              'price level')


def meant(rng, without=(), among=()):
    """Returns a trait whose values people say in other words than the tool
    has, and which none of these traits could be taken for; one of those among
    or any."""

    taken = {t.words for t in without}
    called, _, said = rng.choice([
        m for m in MEANINGS if not taken & {*m[0], *m[1]}
        and (not among or m[0][0] in among)])
    style = rng.choice(STYLES)
    values = list(said)

    # not always all of them, and of many only a few

    if len(values) > FEW or len(values) > 2 and rng.random() < 0.3:
        chosen = rng.sample(values, rng.randint(2, min(FEW, len(values))))
        values = [v for v in values if v in chosen]

    return Trait(rng.choice(called), 'string', None,
                 choices=tuple(map(style, values)), said=said)


# --------------------------------------------------------------------- texts


DEVICES = names.listed('''alarm, boiler, camera, coffee machine, copier, door
bell, elevator, escalator, hand dryer, heating, intercom, light switch, fire
alarm, microphone, parking meter, printer, projector, radiator, router,
scanner, screen, smoke detector, loudspeaker, staircase lamp, thermostat,
ticket machine, vending machine, washing machine, dishwasher, ventilation,
cash desk, barrier, garage door, water pump''')

TROUBLES = names.listed('''is broken, is stuck, is too loud, does not start,
does not react, makes a strange noise, smells of smoke, is out of order, has no
power, keeps blinking, is much too hot, stopped working, needs to be replaced,
turns itself off, shows a red light, does not stop beeping, is too slow, works
only half of the time, is dirty, rattles at night, starts without a reason,
gave me a shock, has a loose cable, is not safe any more, lost its cover''')

ASKED = Split('''Where is the {x}?
Who has the key to the {x}?
When do we meet at the {x}?
Did anybody call {name}?
Is {name} coming, too?
How late is it in {city}?
What did {name} say about the {x}?
Can you pick up {name} in {city}?
Shall I bring the {x}?
Why is the {x} still here?
Which train goes to {city}?
Do you still need the {x}?
Have you seen {name}?
Are you at home?
What is for dinner?
Could you water the plants?'''.splitlines())

CALLED = Split('''Happy birthday!
Well done, {name}!
See you in {city}!
Don't forget the {x}!
Careful, wet paint!
We are moving to {city}!
Good luck with the {x}!
Back in five minutes!
Welcome, {name}!
The {x} has arrived!
Call {name}!
No entry!
Thanks for the {x}!
Hurry up!'''.splitlines())


def trouble(rng):
    """Returns what is wrong with something, as people report it."""

    return expand(rng, '[|the]') + f' {rng.choice(DEVICES)} ' \
        f'{rng.choice(TROUBLES)}'


def marked(rng):
    """Returns a text that ends with a question mark or an exclamation
    mark."""

    return rng.choice(ASKED if rng.random() < 0.5 else CALLED).format(
        x=rng.choice(names.PRODUCTS), name=rng.choice(names.FIRST),
        city=rng.choice(names.PLACES))


def short(rng):
    way = rng.random()

    return rng.choice(names.GOODS if way < 0.2 else names.EVENTS
                      if way < 0.4 else names.TOPICS if way < 0.6
                      else names.ERRANDS) if way < 0.8 \
        else trouble(rng).strip()


def long(rng):
    way = rng.random()

    return trouble(rng).strip() if way < 0.45 else happen.note(rng) \
        if way < 0.65 else marked(rng) if way < 0.8 \
        else rng.choice(names.ERRANDS)


SHORT = ('label', 'title', 'subject', 'heading', 'caption', 'headline')
LONG = ('text', 'note', 'message', 'description', 'comment', 'remark',
        'summary', 'details')


def free(rng, words=None):
    """Returns a trait whose value is any text; with this name or with one
    of its own."""

    words = words or rng.choice(SHORT if rng.random() < 0.5 else LONG)

    return Trait(words, 'string', short if words in SHORT else long,
                 form='text')


# ------------------------------------------- values that need no name at all

# what stands before a noun for a value of a trait: "a 12-minute break"

BEFORE = {'minutes': '{v}-minute', 'km': '{v}-km', 'color': '{v}',
          'diet': '{v}', 'size': '{v}', 'shape': '{v}',
          'priority': '{v}-priority', 'urgency': '{v}-urgency'}


def before(rng, trait):
    """Returns what stands before a noun for a value of the trait, and the
    value; or None if the trait is not said like this."""

    if trait.said:
        v = rng.choice(trait.choices)
        ways = [w[1:] for w in part(rng, trait.said[v.lower()])
                if w[0] == '~']

        return (rng.choice(ways), v) if ways else None

    form = BEFORE.get(trait.unit or trait.words)

    if form is None:
        return None

    v = rng.choice(trait.choices) if trait.choices else trait.make(rng)

    # "an 8-minute break", but all others have "a"

    return None if re.match(r'8|1[18]$', str(v)) else (form.format(v=v), v)


def is_bare(trait):
    """Returns true if a value of the trait is clear without its name."""

    return trait.said is not None or row(trait)[1] is not None \
        and row(trait)[1] != ('{v}',)


def bare(rng, trait, said):
    """Returns how a request states the value without the name of the
    trait."""

    return said if trait.said else rng.choice(row(trait)[1]).format(v=said)


def distinct(traits):
    """Returns those of the traits that are not taken for one before them if
    they are said without their names."""

    found = {}

    for t in traits:
        at = row(t)[0]
        found.setdefault(t.words if at is None else at, t)

    return list(found.values())


LIMITS = tuple(number(words, 2, 31) for words in (
    'limit', 'count', 'top', 'max results', 'number of results'))


# ------------------------------------------------- where they are in a request


def is_single(text):
    """Returns true if a request is one sentence that can go on."""

    return text[-1] not in '?!' and not re.search('[.?!] ', text)


def longer(rng, request, details):
    """Returns a request with some details behind it."""

    if not details:
        return request

    said = ', '.join(details)

    if not is_single(request):
        return f'{request} {capital(said)}.'

    end = '.' if request[-1] == '.' else ''

    return request.rstrip('.') + rng.choice((', ', ', ', ' - ')) + said + end


WITH_TEXT = Split('''{r}, {words}: {v}
{r}. {Words}: {v}
{r} - {words}: {v}
{r}. The {words} is: {v}
{r}, with the {words} "{v}".
{r} with the {words} "{v}".
{r}. Put "{v}" as the {words}.
{r}: {v}
{r}, {words} "{v}"
{r}.\\n{Words}: {v}'''.splitlines())

AFTER_ALL = Split('''{r} {Words}: {v}
{r} The {words} is "{v}".
{r} {Words}: "{v}"
{r} Put "{v}" as the {words}.
{r}\\n{Words}: {v}'''.splitlines())


def with_text(rng, request, words, v):
    """Returns a request with a text at its end.  Where the text is not in
    quotes, a full stop behind it belongs to the request."""

    single = is_single(request)
    bare = single and ':' not in request and v[-1] not in '?!'
    form = rng.choice([f for f in part(rng, WITH_TEXT if single
                                       else AFTER_ALL)
                       if bare or f != '{r}: {v}'])
    said = form.replace('\\n', '\n').format(
        r=request.rstrip('.') if single else request, words=words,
        Words=capital(words), v=v)

    return said + '.' if said[-1] not in '.?!"' and rng.random() < 0.4 \
        else said


def typed(rng, text, name=False, fixed=False):
    """Returns a request as people type it.  name: it begins with a name.
    fixed: it ends with a text to which nothing may be added."""

    if not name:
        text = capital(text)

    if not fixed:
        return manner(rng, text, name)

    if rng.random() < 0.15:
        return expand(rng, HELLO) + ' ' + text

    return text[:1].lower() + text[1:] if not name and rng.random() < 0.2 \
        else text


# what stands where in a telegram: a text and the other values

TEXT_FIRST = (': {text}, {ds}', ' "{text}", {ds}', ' - {text} - {ds}',
              ', {text}, {ds}', ': "{text}", {ds}', ' ({text}), {ds}',
              ': {text} ({ds})')
TEXT_LAST = (' {ds}, {text}', ', {ds}: {text}', ', {ds}, {text}',
             ' {ds}: {text}', ', {ds} - {text}', ', {ds}, "{text}"',
             ' {ds} "{text}"', ': {ds}, {text}')
NO_TEXT = (' {ds}', ', {ds}', ': {ds}', ' - {ds}')
ONLY_TEXT = (': {text}', ', {text}', ' - {text}', ' "{text}"', ': "{text}"',
             ' ({text})')


JOINED = re.compile(r'(?:as|at|by|every|for|from|in|max|on|till|to|until|with)'
                    r' |\d')


def telegram(rng, text, details):
    """Returns a text and details one after the other, without the names of
    their parameters."""

    ds = ', '.join(details)

    if text is None and not details:
        return ''

    forms = NO_TEXT if text is None else ONLY_TEXT if not details \
        else TEXT_FIRST if rng.random() < 0.5 else TEXT_LAST

    # not "tent it belongs to Anna", but "tent for two people"

    if not JOINED.match(ds):
        forms = [f for f in forms if f[:5] != ' {ds}']

    if text is None:
        return rng.choice(forms).format(ds=ds)

    # a text that is long or has a mark has quotes, or a colon before it if it
    # is the last

    clear = [f for f in forms if '"' in f or f.endswith(': {text}')]

    return rng.choice(clear if re.search('[,?!]|(?: .*){6}', text)
                      else forms).format(text=text, ds=ds)
