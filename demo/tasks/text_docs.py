# Copyright (C) The nginx-dsa authors

"""Texts to read that have a form: price lists, timetables, notes about people,
mails, recipes, dialogues, plans, opening hours; with questions about them."""

from dataclasses import dataclass
from typing import Tuple

from tasks import happen, names, text_asks, text_asks_more
from tasks.arithmetic_check import affirms
from tasks.daily import states
from tasks.parts import Split, part
from tasks.phrase import capital, expand, say


@dataclass
class Question:
    """
    kind      of text_asks.ASKS or YES_NO
    x         what is asked about
    v         the value as the answer says it
    values    what an answer must have
    seen      the line of the text, or how it was found
    yes       None, or the answer to a question for yes or no about y
    y         what is asked for, e.g. another value
    without   what an answer must not have
    missing   true if the text does not say it
    """
    kind: str
    x: object
    v: str
    values: Tuple[str, ...]
    seen: str
    yes: object = None
    y: object = ''
    without: Tuple[str, ...] = ()
    missing: bool = False

    def wrong(self, answer):
        """Returns None if an answer is right, or the reason."""

        if self.yes is not None:
            return affirms(answer, self.yes)

        for v in self.values:
            if not states(answer, v):
                return f'"{v}" is not in: {answer}'

        for v in self.without:
            if states(answer, v):
                return f'"{v}" does not belong in: {answer}'

        return None

    def ask(self, rng):
        asks, answers = (ASKS if self.yes is None else YES_NO)[self.kind]

        if self.yes is not None:
            answers = [a for a in answers
                       if a.startswith('Yes') == self.yes]

        given = dict(x=self.x, v=self.v, y=self.y)

        return rng.choice(asks), given, capital(
            say(rng, rng.choice(answers), **given))


def kinds(text):
    found = {}

    for block in text.strip().split('\n\n'):
        top, *rest = block.split('\n')
        found[top[2:]] = (Split(t[2:] for t in rest if t[0] == '-'),
                          tuple(t[2:] for t in rest if t[0] == '>'))

    return found


ASKS = {**kinds(text_asks.ASKS), **kinds(text_asks_more.ASKS)}
YES_NO = kinds(text_asks.YES_NO)


def q(kind, x, v, seen, *values, **more):
    return Question(kind, x, str(v), values or (str(v),), seen, **more)


def truth(rng, kind, x, v, seen, others):
    """Returns a question for yes or no about a value or one of others."""

    yes = rng.random() < 0.5
    y = v if yes else rng.choice([o for o in others if o != v])

    return q(kind, x, v, seen, yes=yes, y=y)


def order(rows, shown):
    """Returns the questions for the item before or after another one."""

    at = [(i, j) for i in range(len(rows)) for j in (i - 1, i + 1)
          if 0 <= j < len(rows)]

    return [q('after' if j > i else 'before', rows[i], rows[j],
              f'{shown[min(i, j)]} / {shown[max(i, j)]}') for i, j in at] \
        + [q('first', '', rows[0], shown[0]),
           q('last', '', rows[-1], shown[-1])]


def headed(rng, heads, lines):
    """Returns a list with a line above it, or none."""

    head = expand(rng, rng.choice(heads))

    return '\n'.join(([head] if head else []) + lines)


def prices(rng):
    n = rng.randint(3, 6)
    items = rng.sample(names.PRODUCTS, n + 1)
    costs = rng.sample(range(3, 400), n)
    form = rng.choice(('{x}: {v} euros', '{x} ... {v}', '- {x}, {v} euros',
                       '{x} | {v}', '* {x} ({v} euros)', '{v} - {x}',
                       '{x} = {v}', '{x} {v} EUR'))
    lines = [form.format(x=x, v=v) for x, v in zip(items, costs)]
    text = headed(rng, ('Price list', '[Prices|Our prices]:', 'Sale!',
                        'item | price' if '|' in form else '',
                        'What we sell', ''), lines)
    low, high = min(costs), max(costs)
    by = dict(zip(costs, items))
    shown = ', '.join(map(str, costs))
    asked = [q('price', x, v, s) for x, v, s in zip(items, costs, lines)] * 2
    asked += [q('costs', v, x, s) for x, v, s in zip(items, costs, lines)]
    asked += [q('cheapest', '', by[low], f'{shown}: the smallest is {low}'),
              q('dearest', '', by[high], f'{shown}: the largest is {high}'),
              q('count', '', n, ', '.join(
                  f'{i + 1} {x}' for i, x in enumerate(items[:n])))]
    asked += [truth(rng, 'price', x, v, s, costs)
              for x, v, s in zip(items, costs, lines)]
    asked += order(items[:n], lines)

    return text, asked, [q('price', items[n], '', '', missing=True)]


def timetable(rng):
    n = rng.randint(3, 5)
    places = rng.sample(names.PLACES, n + 1)
    times = sorted(rng.sample(range(5 * 60, 22 * 60, 5), n))
    times = [f'{t // 60}:{t % 60:02}' for t in times]
    tracks = rng.sample(range(1, 15), n)
    form = rng.choice(('{t} {x}, platform {p}', '{t} | {x} | {p}',
                       'to {x} at {t}, platform {p}', '{x}: {t} (platform '
                       '{p})', '- {t} to {x} from platform {p}'))
    lines = [form.format(t=t, x=x, p=p)
             for t, x, p in zip(times, places, tracks)]
    text = headed(rng, ('Departures', '[Trains|Buses] today:', 'Timetable:',
                        'time | to | platform' if '|' in form else '',
                        'Next trains'), lines)
    asked = []

    for t, x, p, s in zip(times, places, tracks, lines):
        asked += [q('leaves', x, t, s)] * 2
        asked += [q('goes', t, x, s), q('platform', x, p, s)]

    asked += order(places[:n], lines)

    return text, asked, [q(rng.choice(('leaves', 'platform')), places[n], '',
                           '', missing=True)]


TOLD = ('{name} is {age}, lives in {city} and works as a {job}.',
        '{name}, {age}, {job}, {city}', '{name} ({age}) is a {job} in {city}.',
        'The {job} {name} from {city} is {age} years old.',
        '{name} | {age} | {city} | {job}', '- {name}: {job}, {age}, {city}',
        'In {city} lives {name}, a {job}, {age} years old.')


JOBS = Split('''baker barber builder butcher carpenter cashier cook dentist
doctor driver editor farmer florist gardener guide journalist judge lawyer
librarian mechanic musician nurse painter pharmacist photographer pilot plumber
postman professor sailor scientist secretary singer student tailor teacher
vet waiter writer'''.split())


def people(rng):
    n = rng.randint(3, 5)
    first = rng.sample(names.FIRST, n + 1)
    cities, jobs = rng.sample(names.PLACES, n), rng.sample(part(rng, JOBS), n)
    ages = rng.sample(range(18, 90), n)

    # two of them may have the same city or the same job

    for values in (cities, jobs):
        if rng.random() < 0.6:
            i, j = rng.sample(range(n), 2)
            values[i] = values[j]

    mixed = rng.random() < 0.4
    form = rng.choice(TOLD)
    lines = [say(rng, rng.choice((TOLD[0], TOLD[2], TOLD[3], TOLD[6]))
                 if mixed else form, name=name, age=age, city=city, job=job)
             for name, age, city, job in zip(first, ages, cities, jobs)]
    text = (' ' if mixed else '\n').join(lines)
    asked = []

    for i, s in enumerate(lines):
        x = first[i]
        asked += [q('age', x, ages[i], s), q('home', x, cities[i], s),
                  q('job', x, jobs[i], s),
                  truth(rng, 'home', x, cities[i], s,
                        cities + [rng.choice(names.PLACES)]),
                  truth(rng, 'job', x, jobs[i], s, jobs + ['pianist'])]

        for kind, values in (('lives', cities), ('does', jobs)):
            there = [name for name, v in zip(first, values) if v == values[i]]
            seen = ' / '.join(t for t, v in zip(lines, values)
                              if v == values[i])
            asked += [q(kind, values[i], ' and '.join(there), seen, *there,
                        without=tuple(name for name in first[:n]
                                      if name not in there
                                      and len(name) > 3))
                      ] * (3 if len(there) > 1 else 1)

    shown = ', '.join(map(str, ages))
    asked += [q('oldest', '', first[ages.index(max(ages))],
                f'{shown}: the largest is {max(ages)}'),
              q('youngest', '', first[ages.index(min(ages))],
                f'{shown}: the smallest is {min(ages)}')]

    return text, asked, [q(rng.choice(('age', 'home', 'job')), first[n], '',
                           '', missing=True)]


REASONS = Split('''the {room} is being painted
{other} is ill
the train from {city} is late
the heating is broken
{other} is on holiday until then
there was no room free
half of us are at a wedding
the {product} has not arrived yet
the key is lost
a storm is coming
{other} has a doctor's appointment
the guests from {city} come later
the power is off
the street is closed'''.splitlines())

MAILS = ('''From: {name}
To: {reader}
Subject: {event}

{hello} {reader},
the {event} is not on {old} any more, it was moved to {new}, because {why}. We meet in the {room}. Please bring {bring}.
{bye}
{name}''', '''{hello} {reader}, {name} here. A change: the {event} moves from {old} to {new}. The reason is that {why}. It will be in the {room}. Do not forget {bring}. {bye}''',
         '''{hello} {reader},

{event}: new day! Instead of {old} it is on {new}, as {why}. Place: {room}. To bring: {bring}.

{bye}, {name}''', '''{hello} {reader}! Since {why}, we had to move the {event} from {old} to {new}. Come to the {room}, and take {bring} with you. {bye}, your {name}''')


def mail(rng):
    name, reader, other = rng.sample(names.FIRST, 3)
    old, new, third = rng.sample(happen.DAYS.split('|'), 3)
    event, room = rng.choice(names.EVENTS), rng.choice(names.ROOMS)
    bring = rng.choice(names.GOODS)
    why = rng.choice(REASONS).format(
        room=rng.choice(names.ROOMS), other=other,
        city=rng.choice(names.PLACES), product=rng.choice(names.PRODUCTS))
    form = rng.choice(MAILS)

    if rng.random() < 0.3:
        form = form.replace(' Please bring {bring}.', '').replace(
            ' Do not forget {bring}.', '').replace(
            ' To bring: {bring}.', '').replace(
            ', and take {bring} with you', '')

    text = form.format(name=name, reader=reader, event=event, old=old,
                       new=new, why=why, room=room, bring=bring,
                       hello=expand(rng, '[Hi|Hello|Dear|Good morning]'),
                       bye=expand(rng, '[Best wishes|See you|Greetings|'
                                       'Kind regards|Bye]'))
    asked = [q('writer', '', name, f'it is from {name}'),
             q('reader', '', reader, f'it is to {reader}'),
             q('new_day', event, new, f'from {old} to {new}', new),
             q('old_day', event, old, f'from {old} to {new}', old),
             q('why', '', why, f'because {why}'),
             q('why', '', why, f'because {why}'),
             q('place', event, room, f'in the {room}'),
             truth(rng, 'day', event, new, f'from {old} to {new}',
                   [old, old, third])]
    bringing = q('bring', '', bring, f'bring {bring}')
    missing = []

    if '{bring}' in form:
        asked.append(bringing)
    else:
        bringing.missing = True
        missing = [bringing]

    return text, asked, missing


AMOUNTS = Split('''flour=200 g|250 g|300 g|400 g
sugar=50 g|80 g|100 g|120 g
butter=60 g|90 g|125 g|150 g
milk=100 ml|200 ml|350 ml
water=150 ml|300 ml|500 ml
rice=220 g|330 g|450 g
salt=1 pinch|half a spoon|5 g
oil=2 spoons|3 spoons|40 ml
honey=1 spoon|4 spoons|30 g
cheese=70 g|140 g|210 g
yeast=7 g|21 g|42 g
chocolate=55 g|110 g|180 g
cream=130 ml|250 ml
lemon juice=10 ml|15 ml|25 ml
cinnamon=2 g|3 g|6 g'''.splitlines())

DISHES = Split('''apple cake, bread, carrot soup, cheese pie, cherry tart,
chocolate cake, cookies, lemon cake, lentil soup, muffins, noodle casserole,
nut bread, onion tart, pizza, plum cake, potato gratin, quiche, rice pudding,
rolls, vegetable pie'''.replace('\n', ' ').split(', '))


def recipe(rng):
    rows = [r.split('=') for r in rng.sample(AMOUNTS, rng.randint(3, 4))]
    amounts = [(x, rng.choice(v.split('|'))) for x, v in rows]
    spare = rng.choice([r for r in AMOUNTS
                        if r.split('=')[0] not in dict(amounts)])
    minutes, degrees = rng.randrange(15, 80, 5), rng.randrange(160, 240, 10)
    serves = rng.randrange(2, 9)
    dish = rng.choice(DISHES)
    form = rng.choice(('- {v} {x}', '{x}: {v}', '{v} of {x}', '* {x}, {v}'))
    lines = [form.format(x=x, v=v) for x, v in amounts]
    steps = expand(rng, f'[Mix everything.|Stir it all well.|Mix and let it '
                        f'rest.] [Bake it for {minutes} minutes at {degrees} '
                        f'degrees.|Then {minutes} minutes in the oven at '
                        f'{degrees} degrees.|Put it into the oven: {minutes} '
                        f'minutes, {degrees} degrees.]')
    head = expand(rng, f'[{capital(dish)} for {serves} people|{capital(dish)}'
                       f' (for {serves})|Recipe: {dish}, {serves} persons]')

    if rng.random() < 0.3:
        text = f'{head}. You need ' + ', '.join(
            f'{v} of {x}' for x, v in amounts) + f'. {steps}'
    else:
        text = '\n'.join([head] + lines + [steps])

    asked = [q('amount', x, v, f'{x}: {v}') for x, v in amounts]
    asked += [q('bake', '', minutes, steps), q('heat', '', degrees, steps),
              q('serves', '', serves, head)]

    return text, asked, [q('amount', spare.split('=')[0], '', '',
                           missing=True)]


LINES = ('{a}: I take {x}[, please|]. And you, {b}?',
         '{a}: For me {x}[, please|].', '{a}: I would like {x}.',
         '{a}: {x} for me.', "{a}: I'll have {x}.",
         '{a}: [Hm|Oh|Well], {x} sound[ very|] good.')


def dialogue(rng):
    n = rng.randint(2, 4)
    first, goods = rng.sample(names.FIRST, n + 1), rng.sample(names.GOODS,
                                                               n + 1)
    pays = rng.choice(first[:n])
    lines = [say(rng, rng.choice(LINES[1:] if i == n - 1 else LINES),
                 a=first[i], x=goods[i], b=first[i + 1]) for i in range(n)]
    lines = [t.partition(': ')[0] + ': ' + capital(t.partition(': ')[2])
             for t in lines]
    seen = list(lines)

    if rng.random() < 0.5:
        lines.insert(0, expand(rng, 'Waiter: [Good evening.|What will it be?|'
                                    'Ready to order?|Hello.]'))

    paid = rng.random() < 0.6

    if paid:
        lines.append(expand(rng, f"{pays}: [I pay for all of us.|The bill is "
                                 "on me.|You are my guests, I'll pay.]"))

    asked = []

    for i in range(n):
        asked += [q('orders', first[i], goods[i], seen[i]),
                  q('wants', goods[i], first[i], seen[i])]

    missing = [q('orders', first[n], '', '', missing=True),
               q('wants', goods[n], '', '', missing=True)]

    if paid:
        asked += [q('pays', '', pays, lines[-1])] * 2
    else:
        missing.append(q('pays', '', '', '', missing=True))

    return '\n'.join(lines), asked, missing


def plan(rng):
    n = rng.randint(3, 5)
    at = rng.randrange(7)
    week = happen.DAYS.split('|')
    days = [week[(at + i) % 7] for i in range(n)]
    todo = rng.sample(names.ERRANDS, n + 1)
    form = rng.choice(('{d}: {x}', '- {d}: {x}', '{d} - {x}', '{d} | {x}',
                       'On {d} {x}.', '{d}, {x}'))
    lines = [form.format(d=d, x=x) for d, x in zip(days, todo)]
    text = headed(rng, ('My week', '[Plan|Plans]:', '', 'To do', 'This week:'),
                  lines)
    asked = []

    for d, x, s in zip(days, todo, lines):
        asked += [q('on_day', d, x, s), q('day_of', x, d, s)]

    asked += [o for o in order(todo[:n], lines) if o.kind in ('first', 'last')]
    gone = next(d for d in week if d not in days)

    return text, asked, [q('on_day', gone, '', '', missing=True),
                         q('day_of', todo[n], '', '', missing=True)]


SHOPS = Split('''bakery, bank, bar, bike shop, bookshop, butcher's, cafe,
castle, cinema, clinic, corner shop, gallery, gym, hairdresser's, ice rink,
kiosk, laundry, library, market hall, museum, office, opera, pet shop, pharmacy,
pizzeria, pool, post office, pub, restaurant, shoe shop, tailor's, tea house,
theater, town hall, toy shop, zoo'''.replace('\n', ' ').split(', '))


def hours(rng):
    n = rng.randint(2, 4)
    spots = rng.sample(SHOPS, n + 1)
    rows = [(x, f'{rng.randrange(6, 11)}:{rng.choice(("00", "30"))}',
             f'{rng.randrange(15, 23)}:{rng.choice(("00", "30"))}', d)
            for x, d in zip(spots, rng.sample(happen.DAYS.split('|'), n))]
    form = rng.choice(('The {x} opens at {a}, and it closes at {b}. It is closed '
                       'on {d}.', '{x}: {a}-{b}, closed on {d}',
                       '{x}: from {a} to {b}, not on {d}',
                       '- {x}, {a} to {b} ({d} closed)',
                       'The {x} is open from {a} to {b}, but not on {d}.'))
    lines = [capital(form.format(x=x, a=a, b=b, d=d)) for x, a, b, d in rows]
    text = headed(rng, ('', '[Opening hours|Opening times]', 'When we open:'),
                  lines)
    asked = []

    for (x, a, b, d), s in zip(rows, lines):
        y = rng.choice((d, d, *happen.DAYS.split('|')))
        asked += [q('opens', x, a, s), q('closes', x, b, s),
                  q('closed', x, d, s),
                  q('open', x, '', s, yes=y != d, y=y)]

    return text, asked, [q(rng.choice(('opens', 'closes', 'closed')),
                           spots[n], '', '', missing=True)]


def counts(rng):
    n = rng.randint(3, 6)
    goods = rng.sample(names.GOODS, n + 1)
    many = rng.sample(range(2, 60), n)
    form = rng.choice(('{v} {x}', '- {v} {x}', '{x}: {v}', '* {x} x {v}',
                       '{x} ({v})', '{x} | {v}', '{v}x {x}'))
    whole = rng.random() < 0.3
    lines = [('{v} {x}' if whole else form).format(x=x, v=v)
             for x, v in zip(goods, many)]
    text = f'We need {", ".join(lines)}.' if whole else headed(
        rng, ('Shopping list', '[To buy|We need]:', '',
              'In the [box|bag|store room]:', 'Order'), lines)
    asked = [q('how_many', x, v, s) for x, v, s in zip(goods, many, lines)] * 2
    asked += [q('what_number', v, x, s)
              for x, v, s in zip(goods, many, lines)]
    asked += order(goods[:n], lines)

    return text, asked, [q('how_many', goods[n], '', '', missing=True)]


def contacts(rng):
    n = rng.randint(3, 5)
    people = rng.sample(names.FIRST, n + 1)
    phones = [expand(rng, f'[{rng.randrange(100, 999)}-'
                          f'{rng.randrange(1000, 9999)}|'
                          f'0{rng.randrange(100, 999)} '
                          f'{rng.randrange(10000, 99999)}|'
                          f'{rng.randrange(10 ** 6, 10 ** 7)}]')
              for _ in range(n)]
    form = rng.choice(('{x}: {v}', '{x} | {v}', '- {x}, {v}', '{v} {x}',
                       '{x} can be reached under {v}.', '{x} ({v})',
                       '{x}, tel. {v}'))
    lines = [form.format(x=x, v=v) for x, v in zip(people, phones)]
    text = headed(rng, ('Phone list', '[Numbers|Contacts]:', '', 'Who to '
                        'call'), lines)
    asked = [q('phone', x, v, s) for x, v, s in zip(people, phones, lines)] * 2
    asked += [q('whose', v, x, s) for x, v, s in zip(people, phones, lines)]

    return text, asked, [q('phone', people[n], '', '', missing=True)]


SKIES = ('sunny', 'rainy', 'cloudy', 'foggy', 'windy', 'stormy', 'mild',
         'clear', 'hazy', 'humid')


def weather(rng):
    n = rng.randint(3, 5)
    places, skies = rng.sample(names.PLACES, n + 1), rng.sample(SKIES, n)
    temps = rng.sample(range(2, 39), n)
    form = rng.choice(('{x}: {s}, {v} degrees', '{x} {v} degrees {s}',
                       'In {x} it is {s}, with {v} degrees.',
                       '{x} | {s} | {v}', '- {x}, {v}, {s}'))
    lines = [form.format(x=x, s=s, v=v)
             for x, s, v in zip(places, skies, temps)]
    text = headed(rng, ('Weather report', '[Weather|Temperatures] today:',
                        ''), lines)
    shown = ', '.join(map(str, temps))
    asked = [q('degrees', x, v, s) for x, v, s in zip(places, temps, lines)]
    asked += [q('sky', x, v, s) for x, v, s in zip(places, skies, lines)]
    asked += [q('warmest', '', places[temps.index(max(temps))],
                f'{shown}: the largest is {max(temps)}'),
              q('coldest', '', places[temps.index(min(temps))],
                f'{shown}: the smallest is {min(temps)}')]

    return text, asked, [q(rng.choice(('degrees', 'sky')), places[n], '', '',
                           missing=True)]


def diary(rng):
    """What somebody did, one thing after the other."""

    name = rng.choice(names.FIRST)
    n = rng.randint(3, 5)
    todo = rng.sample(names.ERRANDS, n)
    first = expand(rng, f'[{name} had a list for today|The list of {name}|'
                        f'What {name} wants to do]:')
    then = ['[First|At first|To begin with]: {x}.'] + [
        '[Then|Next|After that]: {x}.'] * (n - 2) + [
        '[Finally|At the end|Last]: {x}.']
    lines = [expand(rng, t).format(x=x) for t, x in zip(then, todo)]
    text = f'{first} ' + ' '.join(lines)

    if rng.random() < 0.4:
        lines = [f'{i + 1}. {x}' for i, x in enumerate(todo)]
        text = '\n'.join([first] + lines)

    asked = []

    for i in range(n - 1):
        a, b, seen = todo[i], todo[i + 1], f'{lines[i]} {lines[i + 1]}'
        asked += [q('next_did', a, b, seen, y=name),
                  q('prior', b, a, seen, y=name)]

    asked += [q('first', '', todo[0], lines[0]),
              q('last', '', todo[-1], lines[-1])]

    return text, asked, []


DOCS = (prices, timetable, people, people, mail, mail, recipe, dialogue, plan,
        hours, counts, contacts, weather, diary)


def draw(rng):
    """Returns a text and a Question about it."""

    text, asked, missing = rng.choice(DOCS)(rng)

    return text, rng.choice(missing) if missing and rng.random() < 0.2 \
        else rng.choice(asked)
