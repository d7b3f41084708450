# Copyright (C) The nginx-dsa authors

"""Words for tools of any kind (daily_open.py): things, what is done with them,
what they have, and the tools that are named and described with them."""

import re
from dataclasses import dataclass

from tasks import happen, names, strings
from tasks.api import parameter, service
from tasks.parts import Split, part
from tasks.phrase import capital, expand
from tasks.times import clock


# a plural is given if it is not made by -s or -es

THINGS = names.listed('''account, adapter, aircraft aircraft, alarm, album,
alert, ambulance, antenna, apartment, appointment, archive, article, artist,
asset, auction, avatar, backup, badge, bakery bakeries, balance, balcony
balconies, banner, basket, battery batteries, beam, bed, bench, bicycle, bill,
blog, boat, bonus, booking, booth, bottle, branch, bridge, broadcast, brochure,
bucket, budget, building, bus, cabin, cable, campaign, camper, canoe, car,
card, cart, catalog, category categories, certificate, chair, channel, chapter,
charger, chart, cinema, claim, classroom, client, clinic, clip, coach, coin,
collection, comment, commit, company companies, competition, concert, contact,
contract, cottage, coupon, course, court, crate, crew, customer, dashboard,
deck, delivery deliveries, department, desk, device, dish, district, document,
dog, domain, donation, door, draft, drawer, drill, drone, editor, elevator,
employee, engine, environment, essay, event, exam, exhibit, expense,
experiment, factory factories, farm, feature, feed, ferry ferries, festival,
field, file, film, filter, fine, firm, fleet, flyer, folder, font, forklift,
formula, fountain, frame, freezer, fund, gallery galleries, game, garage,
garden, gate, generator, gift, goal, grant, greenhouse, guest, guitar, gym,
harbor, hedge, helmet, highway, horse, hostel, house, icon, incident,
insurance, interview, invoice, island, issue, item, jacket, job, journal,
journey, key, kiosk, kit, label, lamp, laptop, lawn, layer, lecture, lesson,
letter, license, lift, lighthouse, loan, lobby lobbies, lock, locker, log,
lottery lotteries, machine, magazine, manual, map, mask, match, mattress, meal,
medal, medicine, meeting, member, memo, menu, message, meter, microphone, mill,
mine, mission, mixer, model, module, monitor, monument, motor, museum,
necklace, newsletter, note, notification, nurse, offer, office, orchard, order,
oven, page, painting, pallet, panel, parcel, park, parrot, part, passport,
patient, payment, pen, pet, photo, piano, picture, pier, pillow, pipe,
pipeline, plan, plant, platform, player, playlist, plot, podcast, poem, pool,
portrait, position, post, poster, pot, presentation, printer, prize, product,
profile, project, pump, puppet, quiz quizzes, rack, radio, ranking, receipt,
recording, refund, region, relay, reminder, rental, report, repository
repositories, request, reservation, reservoir, review, reward, ring, river,
road, robot, role, roof, rope, route, rule, sample, sauna, scanner, scene,
scholarship, school, scooter, screen, script, sculpture, seat, secret, segment,
sensor, series series, server, session, shelf shelves, shelter, shift, ship,
shipment, shirt, shuttle, signal, site, sketch, slide, slot, sofa, song,
speaker, speech, spice, spreadsheet, stable, stadium, stage, stall, stamp,
statement, statue, sticker, stock, stove, street, student, studio,
subscription, supplier, survey, switch, table, tablet, tank, task, taxi,
teacher, team, telescope, template, tenant, tent, theater, theme, ticket, tile,
timer, token, tool, tour, tower, toy, tractor, trailer, train, tram,
transaction, transcript, tree, trip, truck, tunnel, tutorial, umbrella, upload,
valve, vase, vehicle, vendor, version, video, village, vineyard, visa, visitor,
volunteer, voucher, wagon, wall, wallet, warehouse, warning, watch, webinar,
well, wheel, window, workflow, workshop, workspace, yacht''')

# things with which not everything can be done, by what can be done with them

GROUPS = {name.strip(): frozenset(' '.join(words.split()).split(', '))
          for name, _, words in (g.partition(':') for g in '''
papers: album, article, bill, brochure, catalog, certificate, chart, contract,
document, draft, essay, exam, file, flyer, invoice, journal, letter, log,
manual, map, memo, menu, newsletter, note, photo, picture, plan, poem, poster,
presentation, quiz, receipt, report, review, script, sketch, slide,
spreadsheet, statement, survey, template, transcript, tutorial, voucher;
data: account, backup, campaign, channel, collection, comment, course,
dashboard, environment, experiment, feed, filter, folder, game, issue, layer,
lesson, message, model, module, notification, page, pipeline, playlist,
podcast, post, profile, project, ranking, recording, repository, rule, segment,
song, table, task, theme, version, video, workflow, workspace;
files: chart, contract, document, draft, file, log, map, photo, picture,
presentation, recording, report, script, song, spreadsheet, template,
transcript, video;
paths: document, draft, file, log, presentation, report, script, spreadsheet,
template, transcript;
machines: auction, backup, campaign, drone, elevator, engine, experiment,
fountain, game, generator, job, machine, mill, mixer, motor, pipeline, printer,
pump, robot, scanner, script, server, session, survey, timer, train, workflow;
media: album, broadcast, clip, film, lecture, playlist, podcast, recording,
song, video;
switches: alarm, alert, antenna, banner, beam, channel, charger, device,
feature, feed, filter, fountain, freezer, lamp, microphone, module, monitor,
oven, pump, radio, relay, reminder, robot, rule, sauna, scanner, screen,
sensor, signal, speaker, stove, switch;
locks: account, apartment, bicycle, cabin, car, card, classroom, cottage,
device, door, drawer, file, garage, gate, greenhouse, house, laptop, locker,
office, page, profile, scooter, studio, tablet, vehicle, wallet, warehouse,
window, workshop;
cases: claim, goal, incident, issue, job, mission, order, project, report,
request, review, survey, task, ticket;
decisions: article, booking, budget, claim, contract, draft, expense, grant,
invoice, loan, offer, order, payment, plan, post, project, refund, rental,
report, request, reservation, review, scholarship, sketch, transaction, trip,
visa;
events: appointment, auction, broadcast, competition, concert, course, event,
exam, festival, game, interview, journey, lecture, lesson, match,
meeting, session, shift, tour, trip, webinar, workshop;
orders: booking, delivery, insurance, order, rental, reservation, shipment,
subscription;
bookable: apartment, appointment, bicycle, boat, bus, cabin, camper, canoe,
car, coach, cottage, court, lesson, locker, sauna, scooter, seat, stall,
studio, table, taxi, tent, tour, trip, workshop, yacht;
goods: badge, basket, battery, bed, bench, bicycle, bottle, bucket, chair,
charger, desk, drill, guitar, helmet, jacket, kit, lamp, laptop, mask,
mattress, microphone, monitor, necklace, pen, piano, pillow, pot, printer,
radio, rope, scooter, shelf, shirt, sofa, speaker, sticker, stove, table,
tablet, telescope, tent, toy, umbrella, vase, wagon, watch;
bills: bill, booking, expense, fine, invoice, loan, order, rental, reservation,
subscription, ticket;
selectable: account, branch, channel, environment, layer, model, plan, profile,
project, repository, theme, version, workspace;
people: artist, client, contact, customer, employee, guest, member, nurse,
patient, student, supplier, teacher, tenant, vendor, visitor, volunteer;
animals: dog, horse, parrot, pet'''.split(';'))}

# what is done: the verb of descriptions and requests, others of requests, and
# the participle of answers

VERBS = Split(tuple(p.strip() for p in v.split('/')) for v in '''
add / create, set up, enter / added
create / make, add, set up / created
register / enrol, sign up, enter / registered
delete / remove, erase, get rid of / deleted
remove / delete, take out, drop / removed
cancel / call off, drop / canceled
archive / put away, file away / archived
restore / bring back, recover / restored
update / change, edit, adjust / updated
edit / change, correct, revise / edited
approve / accept, confirm, wave through / approved
reject / decline, refuse, turn down / rejected
publish / release, bring out, post / published
hide / conceal, cover up / hidden
print / print out, make a printout of / printed
lock / secure, close / locked
unlock / open, free / unlocked
start / launch, run, begin / started
stop / end, halt, shut down / stopped
pause / hold, interrupt / paused
resume / continue, go on with / resumed
restart / reboot, relaunch / restarted
copy / duplicate, clone / copied
move / transfer, relocate / moved
rename / give another name to, give a new name to / renamed
share / pass on, send round / shared
assign / hand over, allocate / assigned
reserve / book, hold, keep / reserved
rent / hire, lease / rented
buy / purchase, get, order / bought
sell / find a buyer for, get rid of / sold
ship / dispatch, send out / shipped
return / send back, give back / returned
repair / fix, mend / repaired
inspect / check, examine, look over / inspected
clean / tidy, wash / cleaned
paint / give a coat of paint to, color / painted
install / fit, put in / installed
upload / send in, send up / uploaded
download / fetch, get, save / downloaded
export / write out, save / exported
import / load, read in / imported
translate / make a translation of / translated
rate / score, grade, give stars to / rated
tag / label, mark / tagged
flag / report, mark / flagged
block / ban, stop / blocked
invite / send an invitation to / invited
notify / inform, write to / notified
pay / settle, transfer the money for / paid
refund / pay back, give the money back for / refunded
schedule / plan, set a date for / scheduled
postpone / delay, put off / postponed
extend / prolong, lengthen / extended
merge / join, combine / merged
split / divide, break up / split
weigh / determine the weight of / weighed
measure / take the size of / measured
charge / load, fill / charged
test / try, run a test on / tested
water / give water to / watered
feed / give food to / fed
subscribe / follow, sign up for / subscribed
close / shut, finish / closed
reopen / reactivate / reopened
upgrade / improve, modernize / upgraded
encrypt / protect, scramble / encrypted
rotate / turn, spin / rotated
resize / scale, change the size of / resized
compress / shrink, squeeze / compressed
donate / give away / donated
insure / cover, take out insurance for / insured'''.strip().splitlines())


def singular(thing):
    return thing.partition(' ')[0]


def plural(thing):
    one, _, many = thing.partition(' ')

    return many or one + ('es' if re.search('(s|x|ch|sh)$', one) else 's')


def third(verb):
    """Returns the form of a verb after "it"; a verb may have other words
    after it."""

    verb, blank, rest = verb.partition(' ')

    if re.search('[^aeiou]y$', verb):
        verb = verb[:-1] + 'ie'

    return verb + ('es' if re.search('(s|x|ch|sh)$', verb) else 's') \
        + blank + rest


PARTICLES = frozenset('away back down in off on out over round through up'
                      .split())


def with_it(verb):
    """Returns a verb with "it" as its object: "put it away"."""

    *first, last = verb.split()

    return ' '.join([*first, 'it', last]) if first and last in PARTICLES \
        else verb + ' it'


def label(rng):
    """Returns the name of one thing."""

    way = rng.random()

    if way < 0.35:
        return f'{rng.choice(names.ADJECTIVES)} {rng.choice(names.NOUNS)}' \
            .title()

    if way < 0.55:
        return rng.choice(names.FIRST)

    if way < 0.7:
        return names.syllables(rng).capitalize()

    return strings.code(rng) if way < 0.9 else '#' + str(rng.randrange(1, 9999))


class Trait:
    """What a thing has.

    words   its name
    kind    the JSON type of its value
    make    rng -> a value
    unit    a text after the value, or ''
    choices the values of an enum, or none
    form    how a program writes it, if people write it in another way:
            'date' (2025-01-31), 'time' (14:30), 'moment'
            (2025-01-31T14:30), 'compound' (front_door), or ''
    said    the ways to say each of the choices, if people have other words
            for them ("by bike"), or none
    """
    def __init__(self, words, kind, make, unit='', choices=(), form='',
                 said=None):
        self.words, self.kind, self.make = words, kind, make
        self.unit, self.choices, self.form = unit, choices, form
        self.said = said

    def __str__(self):
        return self.words


def number(words, low, high, unit='', step=1):
    return Trait(words, 'integer',
                 lambda rng: rng.randrange(low, high, step), unit)


def decimal(words, high, unit=''):
    return Trait(words, 'number',
                 lambda rng: round(rng.uniform(0.1, high), 1), unit)


def amount(words, high):
    """Returns a trait of money, with cents or without."""

    return Trait(words, 'number', lambda rng: rng.randrange(1, high)
                 if rng.random() < 0.4 else
                 round(rng.randrange(1, high) + rng.randrange(1, 100) / 100,
                       2), 'euros')


def angle(words, high):
    return Trait(words, 'number',
                 lambda rng: round(rng.uniform(-high, high), rng.choice(
                     (1, 2, 2, 3))))


def text(words, make):
    return Trait(words, 'string', make)


def one(words, choices):
    return Trait(words, 'string', None, choices=tuple(choices.split()))


def several(words, make):
    return Trait(words, 'array', make)


def some(make):
    def draw(rng):
        found = []

        for _ in range(rng.choice((1, 2, 2, 3))):
            item = make(rng)
            if item not in found:
                found.append(item)

        return found

    return draw


def person(rng):
    first = rng.choice(names.FIRST)

    return first if rng.random() < 0.6 else f'{first} {rng.choice(names.LAST)}'


def date(rng):
    return f'{rng.randrange(2024, 2031)}-{rng.randrange(1, 13):02}-' \
        f'{rng.randrange(1, 29):02}'


def dated(words):
    return Trait(words, 'string', date, form='date')


def weekday(rng):
    return rng.choice(happen.DAYS.split('|'))


def month(rng):
    return rng.choice(happen.MONTHS)


def noun(rng):
    return rng.choice(names.NOUNS)


def goods(rng):
    return rng.choice(names.GOODS)


def place(rng):
    return rng.choice(names.PLACES)


COLORS = 'red green blue yellow white black brown gray orange purple pink'

TRAITS = Split((
    amount('price', 900), amount('fee', 200), angle('latitude', 90),
    angle('longitude', 180),
    number('budget', 100, 9000, 'euros', 50), number('rent', 100, 2500, 'euros'),
    number('height', 3, 400, 'cm'), number('width', 3, 400, 'cm'),
    number('length', 3, 900, 'cm'), number('depth', 2, 300, 'cm'),
    number('weight', 1, 300, 'kg'), number('age', 1, 99, 'years'),
    number('quantity', 1, 99, 'pieces'), number('floor', 1, 40),
    number('room number', 1, 600), number('capacity', 2, 900, 'people'),
    number('duration', 5, 240, 'minutes'), number('speed', 5, 220, 'km/h'),
    number('temperature', -30, 90, 'degrees'), number('discount', 1, 90, '%'),
    number('score', 1, 100, 'points'), number('level', 1, 20),
    number('page', 1, 500), number('year', 1900, 2031),
    number('number of seats', 1, 80), number('distance', 1, 900, 'km'),
    number('power', 10, 3000, 'watts'), number('volume', 1, 100, '%'),
    number('rank', 1, 50), number('limit', 5, 5000),
    amount('deposit', 900), number('salary', 900, 9000, 'euros'),
    decimal('rating', 5, 'stars'), decimal('tax', 30, '%'),
    decimal('thickness', 90, 'mm'), decimal('load', 40, 'tons'),
    text('owner', person), text('author', person), text('manager', person),
    text('contact', person), text('driver', person), text('teacher', person),
    text('reviewer', person), text('sponsor', person),
    text('city', place), text('origin', place), text('destination', place),
    text('birthplace', place), text('address', lambda rng:
                                    f'{rng.choice(names.LAST)} Street '
                                    f'{rng.randrange(1, 199)}'),
    text('email', strings.mail),
    text('serial number', strings.code), text('code', strings.code),
    text('reference', strings.code), text('license plate', strings.code),
    dated('due date'), dated('start date'), dated('end date'),
    text('day', weekday), text('month', month), text('time', clock),
    text('room', lambda rng: rng.choice(names.ROOMS)),
    text('topic', lambda rng: rng.choice(names.TOPICS)),
    text('category', noun), text('keyword', noun), text('nickname', noun),
    text('brand', lambda rng: names.syllables(rng).capitalize()),
    text('contents', goods), text('material', noun),
    text('reason', lambda rng: rng.choice(names.ERRANDS)),
    text('folder', strings.letters), text('comment', happen.note),
    one('color', COLORS), one('frame color', COLORS),
    one('priority', 'low normal high'), one('urgency', 'low medium high'),
    one('size', 'small medium large'), one('format', 'pdf csv json xml'),
    one('quality', 'poor fair good'), one('season', 'spring summer autumn '
                                          'winter'),
    one('shape', 'round square oval flat'), one('status', 'open closed '
                                                'pending'),
    one('visibility', 'public private internal'),
    one('direction', 'left right up down'), one('currency', 'EUR USD GBP'),
    one('diet', 'vegan vegetarian kosher halal'), one('mode', 'auto manual '
                                                      'eco'),
    several('tags', some(noun)), several('members', some(person)),
    several('cities', some(place)), several('contents list', some(goods)),
    several('days', some(weekday)), several('guests', some(person)),
    several('keywords', some(noun)), several('months', some(month)),
))

# what a thing is or is not

STATES = Split('''urgent public private active paid insured fragile heated
vegetarian waterproof digital refundable temporary permanent confidential
electric used new foldable visible mandatory optional furnished recurring
shared anonymous portable licensed taxable verified automatic final silent
returnable seasonal featured sealed damaged complete encrypted'''.split())


def value(rng, trait):
    return rng.choice(trait.choices) if trait.choices else trait.make(rng)


def shown(v):
    if isinstance(v, list):
        return ' and '.join([', '.join(v[:-1]), v[-1]] if v[1:] else v)

    return str(v)


# ------------------------------------------------------------------ services


NAMED = 'name title id label key identifier number'
NAMED_ABOUT = '[Name|Title|Identifier|Label] of the {thing}|Which {thing}|The ' \
    '{thing}'
TRAIT_ABOUT = '[[The|] {words}[ of the {thing}|]|Its {words}]{unit}'
STATE_ABOUT = '[Whether it is|Is it|True if the {thing} is] {words}'

ACTS = '''[Tool to|Use this to|] {verb} a {thing}
{Verbs} a {thing}[ by its {key}| in the system| for the user|]
{Verbs} [one|a single] {thing}
{Things}: {verb} one
[Lets you|Can] {verb} {things}[, one per call|]'''

READS = '''[Returns|Shows|Gets|Reads] a {thing}[ by its {key}|]
[All|The] [data|details|fields] of a {thing}
[Look up|Details of|Information about] a {thing}
{Things}: [data|details] of one'''

FINDS = '''[Finds|Lists|Searches|Returns] [all |]{things} [by|with a given] {words}
All {things} [that have|with] a [given|certain] {words}
[Search|Filter] {things} by {words}
{Things} [of|for] a given {words}'''


def words(text):
    return text.replace(' ', '_')


def parameters(rng, thing, traits, states, given):
    """Returns the Parameters of an action.  Those that are given are always
    there."""

    one = singular(thing)
    found = [parameter('name', f'{NAMED} {one} {one}_name {one}_id',
                       say_about(NAMED_ABOUT, thing))]

    for t in traits:
        found.append(parameter(
            t.words, f'{words(t.words)} {words(t.words)} '
            f'{one}_{words(t.words)} new_{words(t.words)}',
            say_about(TRAIT_ABOUT, thing, t.words, form_of(t)), t.kind,
            t.choices,
            needed=t.words in given and rng.random() < 0.7,
            kept=t.words in given, always=bool(t.unit or t.form in FORMS)))

    for s in states:
        found.append(parameter(
            s, f'{s} is_{s} {s}_flag', say_about(STATE_ABOUT, thing, s),
            'boolean', needed=False, kept=s in given))

    return found


FORMS = {'date': ', as YYYY-MM-DD', 'time': ', as HH:MM, 24 hours',
         'moment': ', such as 2025-01-31T14:30'}


def form_of(trait):
    """Returns what the description of a parameter says of its values."""

    return f', in {trait.unit}' if trait.unit else FORMS.get(trait.form, '')


def say_about(text, thing, words='', unit=''):
    said = text.format(thing=singular(thing), words=words, unit=unit)

    return f'[{said}]' if '|' in said else said


def about(texts, thing, **more):
    one, many = singular(thing), plural(thing)

    return '\n'.join(re.sub(r'\ba (?=[aeiou])', 'an ', t.format(
        thing=one, things=many, Things=many.capitalize(),
        key='[name|title|id]', **more))
        for t in texts.splitlines())


def act_service(thing, verb, takes):
    one = singular(thing)

    return service(
        f'{verb} a {one}', f'{verb} {one}\n{one} {verb}\n{verb} [one|a|the] '
        f'{one}\n[do|run|make] {verb} {one}',
        about(ACTS, thing, verb=verb, Verbs=third(verb).capitalize()), takes)


def read_service(thing, traits):
    one = singular(thing)

    return service(
        f'read a {one}', f'[get|read|show|fetch|lookup] {one}\n{one} '
        f'[details|info|get|data]\n[get|show] {one} [details|info|data]',
        about(READS, thing),
        [parameter('name', f'{NAMED} {one} {one}_name {one}_id q query',
                   say_about(NAMED_ABOUT, thing))],
        ' '.join(['name'] + [field(t) for t in traits]))


def find_service(thing, trait):
    one, many = singular(thing), plural(thing)

    return service(
        f'find {many}', f'[find|list|search|filter] {many}\n'
        f'[find|list|search] {many} by {trait.words}\n'
        f'{many} by {trait.words}\n{one} search',
        about(FINDS, thing, words=trait.words),
        [parameter(trait.words, f'{words(trait.words)} {words(trait.words)} '
                   f'by_{words(trait.words)} value filter',
                   say_about(TRAIT_ABOUT, thing, trait.words,
                             f', in {trait.unit}' if trait.unit else ''),
                   trait.kind, trait.choices)], 'name')


def field(trait):
    """Returns the role of a field of results, which has its own name."""

    return 'open.' + words(trait.words)


# --------------------------------------------------------------------- names


# What is said of a thing, by the kind of its name.

CALLED = {kind: Split(forms.splitlines()) for kind, forms in {
    'number': '''{thing} {v}
{thing} #{v}
{thing} number {v}
{thing} no. {v}
{thing} No. {v}
{thing} nr. {v}
the {thing} with the id {v}
the {thing} with id {v}
the {thing} with the number {v}
the {thing} with number {v}
the {thing} whose id is {v}
the {thing} with the ID {v}
the {thing} {v}
{thing} ID {v}
{thing} id {v}
our {thing} no. {v}
our {thing} number {v}
the {thing} that has the number {v}
the {thing} number {v}
the {thing} no. {v}
#{v}
no. {v}
number {v}
the one with the number {v}
the one with the id {v}''',
    'code': '''{thing} {v}
the {thing} {v}
the {thing} with the code {v}
the {thing} with the id {v}
the {thing} with the reference {v}
our {thing} {v}
my {thing} {v}
the {thing} "{v}"
{thing} "{v}"
{v}
the {thing} whose code is {v}
the {thing} with code {v}
the {thing} with the key {v}
the {thing} listed as {v}
"{v}"
the {thing} {v} of ours''',
    'person': '''the {thing} {v}
{thing} {v}
our {thing} {v}
my {thing} {v}
the {thing} called {v}
the {thing} named {v}
the {thing} "{v}"
{v}, the {thing}
{v}, our {thing}
{v}
the {thing} whose name is {v}
the {thing} with the name {v}
{thing} "{v}"
the {thing} by the name of {v}''',
    'branch': '''the {thing} {v}
{thing} {v}
{v}
the {v} {thing}
the {thing} called {v}
the {thing} named {v}
my {thing} {v}
our {thing} {v}
"{v}"
the {thing} "{v}"
{thing} "{v}"
our {v} {thing}
my {v} {thing}
that {thing} {v}
the {thing} with the name {v}''',
    'path': '''{v}
the {thing} {v}
{thing} {v}
"{v}"
the {thing} "{v}"
the {thing} at {v}
the {thing} called {v}
my {thing} {v}
our {thing} {v}
the {thing} under {v}
the {thing} stored at {v}
the {thing} with the path {v}''',
    'title': '''the {thing} {v}
{thing} {v}
the {thing} "{v}"
the {thing} called {v}
the {thing} called "{v}"
the {v} {thing}
our {thing} {v}
my {thing} "{v}"
my {thing} {v}
our {v} {thing}
the {thing} named "{v}"
the {thing} named {v}
"{v}"
the {thing} with the title "{v}"
the {thing} with the name {v}
{thing} "{v}"
the {thing} titled "{v}"'''}.items()}

KEYS = {'path': 'path path file_path location {thing}_path file',
        'number': 'id {thing}_id {thing}_number number {thing} no key',
        'other': 'name title id label key identifier {thing} {thing}_name '
                 '{thing}_id'}

KEYS_ABOUT = {'path': 'Path of the {thing}|Where the {thing} is',
              'number': '[ID|Number] of the {thing}|Which {thing}',
              'other': NAMED_ABOUT}


@dataclass(frozen=True)
class Key:
    """How all the things of a kind are called.

    kind    of their names: 'number', 'code', 'title', 'person', 'path' or
            'branch'
    type    the JSON type of a parameter that has such a name
    """
    kind: str
    type: str = 'string'

    def draw(self, rng):
        """Returns a name."""

        if self.kind == 'number':
            n = rng.randrange(1, 10 ** rng.randint(1, 5))

            return n if self.type == 'integer' else str(n)

        return NAMERS[self.kind](rng)

    def parameter(self, thing):
        kind = self.kind if self.kind in KEYS else 'other'

        return parameter('name', KEYS[kind].format(thing=singular(thing)),
                         say_about(KEYS_ABOUT[kind], thing), self.type)

    def form(self, rng, alone):
        """Returns the form of what is said of a thing; alone: there is only
        one kind of thing, so that it need not be named."""

        return rng.choice([f for f in part(rng, CALLED[self.kind])
                           if alone or '{thing}' in f])


def key(rng, thing):
    """Returns a Key for a thing."""

    one, way = singular(thing), rng.random()

    for group, kind, share in (('paths', 'path', 0.5),
                               ('people', 'person', 0.5),
                               ('media', 'title', 0.8)):
        if one in GROUPS[group] and way < share:
            return Key(kind)

    if one == 'branch' and way < 0.8:
        return Key('branch')

    way = rng.random()

    return Key('title') if way < 0.4 else Key('code') if way < 0.6 \
        else Key('number', rng.choice(('integer', 'string')))


def title(rng):
    way = rng.random()

    if way < 0.6:
        return f'{rng.choice(names.ADJECTIVES)} {rng.choice(names.NOUNS)}' \
            .title()

    return names.syllables(rng).capitalize() if way < 0.8 \
        else capital(rng.choice(names.TOPICS))


def branch(rng):
    if rng.random() < 0.2:
        return expand(rng, '[main|develop|staging|next|stable]')

    return expand(rng, '[feature|fix|bugfix|hotfix|release|chore|docs|test]') \
        + f'/{rng.choice(names.ADJECTIVES)}-{rng.choice(names.NOUNS)}'


NAMERS = {'code': strings.code, 'title': title, 'person': person,
          'path': strings.path, 'branch': branch}
