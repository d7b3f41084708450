# Copyright (C) The nginx-dsa authors

"""Words for tools of any kind (daily_open.py): things, what is done with them,
and what they have."""

from tasks import happen, names, strings
from tasks.parts import Split
from tasks.times import clock


# a plural is given if it is not made by -s or -es

THINGS = names.listed('''account, adapter, aircraft aircraft, album, alert,
ambulance, antenna, apartment, archive, article, artist, asset, auction,
avatar, badge, bakery bakeries, balance, balcony balconies, banner, basket,
battery batteries, beam, bed, bench, bicycle, bill, blog, boat, bonus, booth,
bottle, branch, bridge, broadcast, brochure, bucket, budget, building, bus,
cabin, cable, campaign, camper, canoe, car, card, cart, catalog, category
categories, certificate, chair, channel, chapter, charger, cinema, claim,
classroom, client, clinic, clip, coach, coin, collection, comment, commit,
company companies, competition, concert, contract, cottage, coupon, course,
court, crate, crew, customer, dashboard, deck, delivery deliveries, department,
desk, device, dish, district, document, dog, domain, donation, door, draft,
drawer, drill, drone, editor, elevator, employee, engine, essay, exam, exhibit,
experiment, factory factories, farm, feature, feed, ferry ferries, festival,
field, filter, fine, firm, fleet, flyer, folder, font, forklift, formula,
fountain, frame, freezer, fund, gallery galleries, game, garage, garden, gate,
generator, gift, goal, grant, greenhouse, guest, guitar, gym, harbor, hedge,
helmet, highway, horse, hostel, house, icon, incident, insurance, interview,
invoice, island, item, jacket, job, journal, journey, key, kiosk, kit, label,
laptop, lawn, layer, lecture, lesson, letter, license, lift, lighthouse, loan,
lobby lobbies, locker, lock, log, lottery lotteries, machine, magazine, manual,
map, mask, match, mattress, meal, medal, medicine, member, memo, menu, meter,
microphone, mill, mine, mission, mixer, model, module, monitor, monument,
motor, museum, necklace, newsletter, nurse, offer, office, orchard, oven, page,
painting, pallet, panel, parcel, park, parrot, part, passport, patient,
payment, pen, pet, photo, piano, picture, pier, pillow, pipe, pipeline, plan,
plant, platform, player, playlist, plot, podcast, poem, pool, portrait,
position, post, poster, pot, printer, prize, product, profile, project, pump,
puppet, quiz quizzes, rack, radio, ranking, receipt, recording, refund,
region, relay, rental, report, request, reservoir, review, reward, ring,
river, road, robot, role, roof, rope, route, rule, sample, sauna, scanner,
scene, scholarship, school, scooter, screen, script, sculpture, seat, secret,
segment, sensor, series series, server, shelf shelves, shelter, shift, ship,
shirt, shuttle, signal, site, sketch, slide, slot, sofa, song, speaker,
speech, spice, stable, stadium, stage, stall, stamp, statue, sticker, stock,
stove, street, student, studio, supplier, survey, switch, table, tablet, tank,
task, taxi, teacher, team, telescope, tenant, tent, theater, theme, tile,
token, tool, tour, tower, toy, tractor, trailer, train, tram, tree, trip,
truck, tunnel, tutorial, umbrella, uniform, upload, valve, vase, vehicle,
vendor, video, village, vineyard, visa, visitor, voucher, wagon, wall, wallet,
warehouse, warning, watch, webinar, well, wheel, window, workshop, yacht''')

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
publish / release, put online, post / published
hide / conceal, take offline / hidden
print / put on paper, make a printout of / printed
lock / secure, close / locked
unlock / open, free / unlocked
start / launch, run, begin / started
stop / end, halt, shut down / stopped
pause / hold, interrupt / paused
resume / continue, go on with / resumed
restart / reboot, start again / restarted
copy / duplicate, clone / copied
move / transfer, relocate / moved
rename / call differently, give a new name to / renamed
share / pass on, make available / shared
assign / hand over, allocate / assigned
reserve / book, hold, keep / reserved
rent / hire, lease / rented
buy / purchase, get, order / bought
sell / put up for sale, get rid of / sold
ship / dispatch, send out / shipped
return / send back, give back / returned
repair / fix, mend / repaired
inspect / check, examine, look over / inspected
clean / tidy, wash / cleaned
paint / give a coat of paint to, color / painted
install / fit, put in / installed
upload / put on the server, send in / uploaded
download / fetch, get, save / downloaded
export / write out, save to a file / exported
import / load, read in / imported
translate / put into another language / translated
rate / score, grade, give stars to / rated
tag / label, mark / tagged
flag / report, mark / flagged
block / ban, stop / blocked
invite / ask to come, send an invitation to / invited
notify / inform, let know / notified
pay / settle, transfer the money for / paid
refund / pay back, give the money back for / refunded
schedule / plan, set a date for / scheduled
postpone / delay, put off / postponed
extend / prolong, make longer / extended
merge / join, combine / merged
split / divide, break up / split
weigh / put on the scales / weighed
measure / take the size of / measured
charge / load, fill / charged
test / try, run a test on / tested
water / give water to / watered
feed / give food to / fed
subscribe / follow, sign up for / subscribed
close / shut, finish / closed
reopen / open again / reopened
upgrade / improve, move to a better version / upgraded
encrypt / protect, scramble / encrypted
rotate / turn, spin / rotated
resize / scale, make another size of / resized
compress / shrink, make smaller / compressed
donate / give away / donated
insure / cover, take out insurance for / insured'''.strip().splitlines())


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
    """
    def __init__(self, words, kind, make, unit='', choices=(), form=''):
        self.words, self.kind, self.make = words, kind, make
        self.unit, self.choices, self.form = unit, choices, form

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
