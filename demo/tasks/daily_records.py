# Copyright (C) The nginx-dsa authors

"""Questions about several records of one result: the cheapest of them, those
that are free, how many there are, whether one has something, a sum, two fields
of one.  The thoughts go through the records in their order and decide after
each, so that each step copies a value or compares two that are side by side.
A tenth of the results is a plain text, and a tenth has an object in
another."""

import json
import re
from dataclasses import dataclass, replace
from typing import Callable, Tuple

from tasks import digits, happen, names, scan, strings
from tasks.api import Use, parameter, service, text_of
from tasks.daily import SERVICES, box, choice, judge, request, states, task
from tasks.open_words import COLORS, person, place, third, weekday
from tasks.parts import Split
from tasks.phrase import capital, expand, manner, say
from tasks.spoken import ORDINALS, in_words, listed
from tasks.task import CHAT, DISCARD, Step, Text, Turn
from tasks.tools_check import NEGATIVE
from tasks.uses_frame import FRAMES, MAILS, around
from tasks.uses_goods import FOODS


# -------------------------------------------------------------------- fields


@dataclass(frozen=True, eq=False)
class Field:
    """What a record has beside its name.

    kind     'number', 'time', 'date', 'flag' or 'choice'
    noun     its name in a sentence; a flag has none
    names    those that results have for it
    told     those of them that tell the unit, too
    unit     of a number, or ''
    make     rng -> a value; (low, high) of numbers and of the hours of times
    least    adjectives and phrases for the smallest: ((..), (..))
    most     the same for the largest
    less     what is said of one below {n}
    more     what is said of one above {n}
    yes      what is said of one that has it: "is free", "is in {v}"
    no       what is said of one that does not have it
    words    pairs of values that mean the same as true and false
    clause   what is said of one with this value, {v}
    adds     the sum of several has a meaning
    """
    kind: str
    noun: str
    names: Tuple[str, ...]
    told: Tuple[str, ...] = ()
    unit: str = ''
    make: object = None
    least: tuple = ()
    most: tuple = ()
    less: Tuple[str, ...] = ()
    more: Tuple[str, ...] = ()
    yes: str = ''
    no: str = ''
    words: tuple = ()
    clause: str = ''
    adds: bool = False

    @property
    def ordered(self):
        return self.kind in ('number', 'time', 'date')

    @property
    def tests(self):
        return self.kind in ('flag', 'choice')


def cells(text):
    """Yields the columns of each line of a table."""

    for row in text.strip().splitlines():
        yield [c.strip() for c in row.split('|')]


def commas(text):
    return tuple(w.strip() for w in text.split(',') if w.strip())


def ranked(text):
    adjectives, _, phrases = text.partition('/')

    return commas(adjectives), commas(phrases) or tuple(
        f'is the {a}' for a in commas(adjectives))


# key | noun | names / names with the unit | unit | range, with tenths if it
# has a point; times have hours | adjectives / phrases for the smallest | for
# the largest | below {n} | above {n} | with the value {v} | + if a sum has a
# meaning

ORDERED = '''
price | price | price cost rate fee / price_eur cost_eur euros | euros | 5 400 | cheapest, least expensive / costs the least, has the lowest price | most expensive / costs the most, has the highest price | costs less than {n}, costs under {n} | costs more than {n}, costs over {n} | costs {v} | +
rent | rent | rent monthly_rent / rent_eur rent_euros | euros | 300 2400 | cheapest / has the lowest rent, costs the least | most expensive / has the highest rent, costs the most | has a rent below {n}, costs less than {n} | has a rent above {n}, costs more than {n} | has a rent of {v} |
amount | amount | amount total sum / amount_eur total_eur | euros | 12 2900 | smallest / has the lowest amount, is for the least money | largest, biggest / has the highest amount, is for the most money | is for less than {n} | is for more than {n} | is for {v} | +
salary | salary | salary pay / salary_eur pay_eur | euros | 1800 6900 | worst paid / has the lowest salary, pays the least | best paid / has the highest salary, pays the most | pays less than {n} | pays more than {n} | pays {v} |
balance | balance | balance saldo available / balance_eur | euros | 20 9000 | / has the lowest balance, has the least money | / has the highest balance, has the most money | has less than {n} | has more than {n} | has a balance of {v} | +
rating | rating | rating stars avg_rating review_score | | 1.5 5.0 | worst rated, lowest rated / has the lowest rating | best rated, top rated / has the best rating, has the highest rating | has a rating below {n} | has a rating above {n}, is rated above {n} | has a rating of {v} |
distance | distance | distance / distance_km km_away km distanceKm | km | 0.3 25.0 | nearest, closest / is the nearest, has the shortest distance | farthest, most distant / is the farthest away, has the longest distance | is less than {n} away | is more than {n} away | is {v} away |
length | length | length / length_km km distance_km | km | 1.5 29.0 | shortest | longest | is shorter than {n}, is less than {n} long | is longer than {n}, is more than {n} long | is {v} long |
climb | climb | climb ascent / climb_m ascent_m meters_up | m | 40 1600 | flattest / climbs the least | steepest / climbs the most | climbs less than {n} | climbs more than {n} | climbs {v} | +
minutes | duration | duration / minutes duration_min time_minutes | minutes | 10 240 | shortest, quickest / takes the least time | longest / takes the longest, takes the most time | takes less than {n} | takes more than {n} | takes {v} | +
running | length | length runtime / minutes length_min runtime_min | minutes | 12 180 | shortest / is over first | longest / lasts the longest | lasts less than {n} | lasts more than {n} | lasts {v} | +
seconds | length | length / seconds duration_s length_sec | seconds | 95 420 | shortest | longest / lasts the longest | lasts less than {n} | lasts more than {n} | lasts {v} | +
weight | weight | weight / weight_kg kg kilograms | kg | 2 60 | lightest / weighs the least | heaviest / weighs the most | weighs less than {n} | weighs more than {n} | weighs {v} | +
age | age | age years_old age_years | | 18 90 | youngest | oldest | is younger than {n} | is older than {n} | is {v} years old |
size | size | size / size_mb mb sizeMB size_in_mb | MB | 2 900 | smallest / takes the least space | largest, biggest / takes the most space | is smaller than {n} | is larger than {n}, is bigger than {n} | has a size of {v} | +
area | area | area / area_m2 m2 sqm | m2 | 22 160 | smallest / has the smallest area | largest, biggest / has the largest area | is smaller than {n} | is larger than {n} | has an area of {v} | +
celsius | temperature | temperature temp / temp_c celsius degrees | degrees | 3 34 | coldest, coolest / has the lowest temperature | warmest, hottest / has the highest temperature | is colder than {n}, is below {n} | is warmer than {n}, is above {n} | has a temperature of {v} |
battery | battery level | battery battery_level / battery_percent battery_pct | percent | 2 100 | / has the lowest battery level, has the emptiest battery | / has the highest battery level, has the fullest battery | has a battery level below {n} | has a battery level above {n} | has a battery level of {v} |
load | load | load cpu / load_percent cpu_percent | percent | 2 99 | / has the lowest load, has the least to do | busiest / has the highest load | has a load below {n} | has a load above {n} | has a load of {v} |
stock | stock | stock in_stock quantity qty on_hand | | 2 240 | / has the smallest stock, has the lowest stock | / has the largest stock, has the highest stock | has a stock below {n} | has a stock above {n} | has a stock of {v} | +
year | year | year release_year year_made | | 1951 2027 | oldest | newest, most recent | is from before {n} | is from after {n} | is from {v} |
score | score | score points grade_points | | 2 100 | weakest / has the lowest score | strongest / has the highest score, has the best score | has a score below {n} | has a score above {n} | has a score of {v} | +
speed | speed | speed / speed_kmh max_kmh kmh | km/h | 15 210 | slowest | fastest | is slower than {n} | is faster than {n} | has a speed of {v} |
tall | height | height / height_cm cm | cm | 8 230 | smallest, shortest | tallest | is shorter than {n} | is taller than {n} | is {v} tall |
high | height | height / height_m elevation_m meters | m | 300 4800 | lowest | highest | is lower than {n} | is higher than {n} | is {v} high |
delay | delay | delay / delay_min delay_minutes minutes_late | minutes | 2 90 | least delayed / has the shortest delay | most delayed / has the longest delay | has a delay of less than {n} | has a delay of more than {n} | has a delay of {v} |
reading | reading | reading value meter_reading / kwh reading_kwh | kWh | 40 9900 | / has the lowest reading | / has the highest reading | has a reading below {n} | has a reading above {n} | has a reading of {v} | +
power | power | power / watts power_w watt | watts | 3 900 | weakest / needs the least power | strongest / needs the most power | needs less than {n} | needs more than {n} | needs {v} | +
charge | charging power | power / kw power_kw max_kw | kW | 11 350 | slowest / has the lowest power | fastest, strongest / has the highest power | has less than {n} | has more than {n} | has a power of {v} |
leaves | departure time | departure leaves departs departure_time dep | | 5 23 | earliest / leaves first, leaves earliest | latest / leaves last, leaves latest | leaves before {n} | leaves after {n} | leaves at {v} |
arrives | arrival time | arrival arrives arrival_time arr | | 6 24 | / arrives first, arrives earliest | / arrives last, arrives latest | arrives before {n}, gets there before {n} | arrives after {n}, gets there after {n} | arrives at {v} |
starts | start time | start starts start_time begins | | 7 23 | earliest / starts first, begins first | latest / starts last, begins last | starts before {n}, begins before {n} | starts after {n}, begins after {n} | starts at {v} |
opens | opening time | opens opening_time open_from opens_at | | 6 12 | / opens first, opens earliest | / opens last, opens latest | opens before {n} | opens after {n} | opens at {v} |
closes | closing time | closes closing_time open_until closes_at | | 15 24 | / closes first, closes earliest | / closes last, closes latest | closes before {n} | closes after {n} | closes at {v} |
due | due date | due due_date deadline due_on | | | most urgent / is due first, has the earliest due date | / is due last, has the latest due date | is due before {n} | is due after {n} | is due on {v} |
dated | date | date created created_on issued | | | oldest / has the earliest date | newest, most recent / has the latest date | is from before {n} | is from after {n} | is from {v} |
happens | date | date day on_day takes_place | | | earliest / takes place first, comes first | latest / takes place last, comes last | takes place before {n} | takes place after {n} | takes place on {v} |
expires | expiry date | expires expiry valid_until expiry_date | | | / expires first, has the earliest expiry date | / expires last, has the latest expiry date | expires before {n} | expires after {n} | expires on {v} |
'''

# what is counted | names | for the fewest | for the most | range | verb

COUNTED = '''
rooms | rooms room_count num_rooms | smallest | largest | 2 90 | has
seats | seats capacity max_people places | smallest | largest, biggest | 2 120 | has
beds | beds bed_count sleeps | smallest | largest, biggest | 2 14 | has
pages | pages page_count num_pages | shortest, thinnest | longest, thickest | 40 900 | has
stops | stops stop_count num_stops | | | 2 40 | has
goals | goals goals_scored scored | | | 2 40 | has
points | points pts score | weakest | strongest | 2 90 | has
votes | votes vote_count total_votes | least popular | most popular | 20 9000 | has
plays | plays play_count listens | least popular | most popular | 20 9000 | has
comments | comments comment_count replies | least discussed | most discussed | 2 90 | has
items | items item_count num_items | | | 2 30 | has
visitors | visitors visitor_count guests | least visited | most visited | 40 9000 | has
calories | calories kcal energy_kcal | lightest | richest | 90 900 | has
ingredients | ingredients ingredient_count num_ingredients | simplest | | 3 19 | has
free places | free_places places_left open_places | | | 2 60 | has
hours | hours weekly_hours hours_worked | | busiest | 8 48 | works
tablets | tablets tablets_left pieces_left | | | 2 90 | has
'''

# key | names | has it | has it not | values that mean so

FLAGS = '''
free | free is_free available vacant | is free | is taken | free/taken, free/booked, vacant/occupied, available/reserved
breakfast | breakfast breakfast_included with_breakfast | includes breakfast | does not include breakfast |
pool | pool has_pool swimming_pool | has a pool | has no pool |
parking | parking has_parking car_park | has parking | has no parking |
dogs | dogs dogs_allowed pets_allowed | allows dogs | does not allow dogs |
sauna | sauna has_sauna with_sauna | has a sauna | has no sauna |
balcony | balcony has_balcony | has a balcony | has no balcony |
furnished | furnished is_furnished | is furnished | is not furnished | furnished/empty
projector | projector has_projector beamer | has a projector | has no projector |
whiteboard | whiteboard has_whiteboard | has a whiteboard | has no whiteboard |
wheelchair | wheelchair accessible wheelchair_access | is accessible by wheelchair | is not accessible by wheelchair |
vegan | vegan is_vegan | is vegan | is not vegan | vegan/not vegan
dishes | vegan_dishes vegan_options vegan | has vegan dishes | has no vegan dishes |
cards | cards card_payment accepts_cards | accepts cards | takes only cash | cards/cash
direct | direct nonstop is_direct | is direct | is not direct | direct/with change
delayed | delayed late is_late | is delayed | is on time | delayed/on time, late/on time
canceled | canceled cancelled is_canceled | is canceled | is not canceled | canceled/scheduled
full | full is_full booked_up | is full | is not full | full/open
soldout | sold_out soldOut no_tickets | is sold out | is not sold out | sold out/on sale
paid | paid is_paid settled | is paid | is unpaid | paid/unpaid, paid/open, settled/due
done | done completed is_done finished | is done | is not done | done/todo, finished/open, complete/pending
open | open is_open open_now | is open | is closed | open/closed
loan | on_loan loaned lent_out checked_out | is on loan | is on the shelf | on loan/on the shelf, loaned/in
online | online connected is_online | is online | is offline | online/offline, up/down, connected/disconnected
on | on is_on switched_on powered | is on | is off | on/off
locked | locked is_locked secured | is locked | is unlocked | locked/unlocked
water | needs_water thirsty dry | needs water | does not need water | dry/moist, thirsty/fine
duty | on_duty working on_shift | is on duty | is off duty | on duty/off duty, working/off
present | present checked_in here | is present | is absent | present/absent
injured | injured is_injured hurt | is injured | is fit | injured/fit
broken | broken defective out_of_order | is broken | is in order | broken/in order, defective/ok
fragile | fragile is_fragile handle_with_care | is fragile | is not fragile |
delivered | delivered is_delivered arrived | is delivered | is not delivered | delivered/on the way, arrived/in transit
urgent | urgent is_urgent priority_high | is urgent | is not urgent | urgent/normal
public | public is_public shared | is public | is private | public/private
active | active is_active enabled | is active | is paused | active/paused
vaccinated | vaccinated is_vaccinated vaccines_ok | is vaccinated | is not vaccinated |
children | good_with_children child_friendly kids | likes children | does not like children |
automatic | automatic is_automatic automatic_gearbox | has an automatic gearbox | has a manual gearbox | automatic/manual
prescription | prescription needs_prescription rx | needs a prescription | is sold without a prescription |
parttime | part_time is_part_time parttime | is part-time | is full-time | part-time/full-time
snow | snow snow_covered has_snow | has snow | has no snow |
new | new is_new recent | is new | is old | new/old
lift | lift elevator has_lift | has a lift | has no lift |
'''

# key | noun | names | values, or who makes them in capitals | what is said

CHOICES = '''
city | city | city town location | PLACE | is in {v}
home | city | city town lives_in | PLACE | lives in {v}
owner | owner | owner owned_by user | FIRST | belongs to {v}
assignee | assignee | assignee assigned_to handled_by | FIRST | is assigned to {v}
customer | customer | customer client buyer | PERSON | is for {v}
author | author | author written_by writer | PERSON | is by {v}
color | color | color colour paint | COLOR | is {v}
level | difficulty | level difficulty grade | easy, moderate, hard | is {v}
room | room | room place where | ROOM | is in the {v}
floor | floor | floor level storey | FLOOR | is on floor {v}
priority | priority | priority prio urgency | low, normal, high | has {v} priority
department | department | department dept unit | sales, support, finance, research, logistics | works in {v}
day | day | day weekday on | DAY | is on {v}
language | language | language spoken lang | LANGUAGE | is in {v}
genre | genre | genre style kind | jazz, rock, folk, pop, soul | is {v}
fuel | fuel | fuel fuel_type energy | petrol, diesel, gas | runs on {v}
state | status | status state stage | packed, shipped, returned, delivered | is {v}
gate | gate | gate gate_no boarding_gate | GATE | leaves from gate {v}
platform | platform | platform track bay | FLOOR | leaves from platform {v}
position | position | position role plays_as | goalkeeper, defender, striker | plays as {v}
'''

MAKERS = {
    'PLACE': place, 'PERSON': person, 'DAY': weekday,
    'FIRST': lambda rng: rng.choice(names.FIRST),
    'COLOR': lambda rng: rng.choice(COLORS.split()),
    'ROOM': lambda rng: rng.choice(names.ROOMS),
    'FLOOR': lambda rng: rng.randint(1, 9),
    'LANGUAGE': lambda rng: rng.choice(names.LANGUAGES),
    'GATE': lambda rng: rng.choice('ABCDEF') + str(rng.randint(1, 40)),
}


def fields():
    """Returns all Fields by their keys."""

    found = {}

    for key, noun, named, unit, span, least, most, less, more, clause, adds \
            in cells(ORDERED):
        plain, _, told = named.partition('/')
        kind = 'date' if not span else 'time' if clause.endswith(' at {v}') \
            else 'number'
        found[key] = Field(
            kind, noun, (*plain.split(), *told.split()), tuple(told.split()),
            unit, tuple(map(float if '.' in span else int, span.split())),
            ranked(least), ranked(most), commas(less), commas(more),
            clause=clause, adds=adds == '+')

    for what, named, few, many, span, verb in cells(COUNTED):
        found[what] = Field(
            'number', f'number of {what}', tuple(named.split()), (), '',
            tuple(map(int, span.split())),
            (commas(few), (f'{verb} the fewest {what}',)),
            (commas(many), (f'{verb} the most {what}',)),
            (f'{verb} fewer than {{n}} {what}',),
            (f'{verb} more than {{n}} {what}',),
            clause=f'{verb} {{v}} {what}', adds=True)

    for key, named, yes, no, words in cells(FLAGS):
        found[key] = Field('flag', '', tuple(named.split()), yes=yes, no=no,
                           words=tuple(tuple(w.split('/'))
                                       for w in commas(words)))

    for key, noun, named, values, clause in cells(CHOICES):
        found[key] = Field('choice', noun, tuple(named.split()),
                           make=MAKERS.get(values) or commas(values),
                           yes=clause, clause=clause)

    return found


FIELDS = fields()


# -------------------------------------------------------------------- things


def titled(*forms):
    """Returns a maker of names with an adjective {a}, a noun {n}, several
    {ns}, a last name {l} or a town {p}."""

    def make(rng):
        noun = rng.choice(names.NOUNS).title()

        return rng.choice(forms).format(
            a=rng.choice(names.ADJECTIVES).title(), n=noun, ns=third(noun),
            l=rng.choice(names.LAST), p=rng.choice(names.PLACES))

    return make


def code(rng):
    """Returns a code that is no number and begins with a capital, so that it
    looks the same at the beginning of a sentence."""

    while True:
        found = strings.code(rng).upper()

        if re.match(r'[A-Z][A-Z0-9/_-]*\d', found) and len(found) < 12:
            return found


def kinds(ways, words_):
    """Returns a maker of words with one of these ways before them, or
    without."""

    return lambda rng: ' '.join(
        [rng.choice(commas(ways))] * (rng.random() < 0.5)
        + [rng.choice(words_)])


def in_rooms(thing):
    return lambda rng: f'{rng.choice(names.ROOMS)} {thing}' + rng.choice(
        ('', ' 1', ' 2', ' 3'))


PLANTS = Split('''basil rosemary fern cactus palm orchid ivy lavender mint aloe
begonia geranium jasmine thyme sage hibiscus azalea bonsai parsley oleander
monstera chives yucca dahlia bamboo calathea camellia clivia croton
dracaena ficus fuchsia gardenia hydrangea hyacinth magnolia marigold myrtle
narcissus oregano peony petunia philodendron poinsettia primrose protea
rhododendron sunflower tulip verbena violet zinnia'''.split())
DISHES = names.listed('''lentil soup, potato salad, mushroom risotto, pea
curry, onion tart, bean stew, pumpkin pie, rice pudding, tomato pasta, corn
chowder, leek quiche, apple crumble, chickpea salad, spinach lasagna, carrot
cake, bread dumplings, cabbage rolls, pepper omelet, noodle soup, plum cake,
barley bowl, beet burger''', names.crossed)
ACCOUNTS = Split('''savings checking travel household business wedding holiday
emergency school pension'''.split()) + names.NOUNS
JOBS = Split('''accountant architect baker barber butcher carpenter cashier
cook dentist driver editor electrician engineer farmer gardener guide
hairdresser interpreter janitor lawyer librarian mechanic nurse optician
painter pharmacist photographer plumber receptionist tailor teacher waiter
welder analyst animator auditor bricklayer butler cleaner consultant decorator
designer detective dietitian forester jeweler lecturer locksmith magician
midwife packer physicist programmer roofer surgeon surveyor therapist
translator tutor vet'''.split())

LABELS = {
    'inn': titled('{n} Inn', 'Hotel {l}', 'The {a} {n}', '{l} House',
                  'Hotel {n}', '{a} {n}'),
    'path': titled('{n} Path', '{a} {n} Trail', '{n} Loop', '{l} Trail',
                   '{a} Ridge', '{n} Walk'),
    'hall': titled('{n}', '{l}', '{a} {n}'),
    'venue': titled('The {a} {n}', '{n} Bar', '{l} and Sons', 'Chez {l}',
                    '{a} {n}', "{l}'s Kitchen"),
    'title': titled('{a} {n}', 'My {n}', 'The {a} {n}', 'Our {n}',
                    '{n} of {p}'),
    'band': titled('The {a} {ns}', '{a} {n}', 'DJ {l}', '{l} Trio',
                   '{n} Choir'),
    'street': lambda rng: f'{rng.choice(names.LAST)} Street '
                          f'{rng.randint(1, 160)}',
    'museum': titled('{n} Museum', '{l} Gallery', 'Museum of the {n}',
                     '{p} House'),
    'camp': titled('{n} Camp', 'Camp {l}', '{a} {n}', '{n} Meadows'),
    'lot': titled('{n} Garage', '{l} Square', '{n} Parking', '{a} {n}'),
    'station': titled('{n} Station', '{l} Energy', '{n} Charge', '{a} {n}'),
    'peak': titled('Mount {l}', '{n} Peak', '{a} Horn', '{n} Top'),
    'club': titled('FC {p}', '{p} United', '{a} {ns}', '{p} {ns}'),
    'tour': titled('{n} Tour', '{a} {n} Tour', '{p} by Boat', '{p} on Foot'),
    'game': lambda rng: ' v '.join(rng.sample(names.PLACES, 2)),
    'ship': titled('MS {n}', '{a} {n}', '{n} Express'),
    'language': lambda rng: rng.choice(names.LANGUAGES),
    'cottage': titled('{n} Cottage', '{l} Cabin', '{a} {n}', 'Villa {l}'),
    'brand': lambda rng: names.syllables(rng).capitalize(),
    'model': lambda rng: f'{names.syllables(rng).capitalize()} '
                         f'{rng.choice((3, 5, 7, 200, 208, 320, 500))}',
    'flight': lambda rng: f'{rng.choice(("LH", "AF", "BA", "KL", "SK", "TP"))}'
                          f' {rng.randint(100, 2999)}',
    'train': lambda rng: f'{rng.choice(("ICE", "IC", "RE", "TGV", "EC"))} '
                         f'{rng.randint(10, 999)}',
    'bus': lambda rng: f'Line {rng.randint(1, 99)}',
    'code': code, 'person': person,
    'first': lambda rng: rng.choice(names.FIRST),
    'product': lambda rng: rng.choice(names.PRODUCTS),
    'errand': lambda rng: rng.choice(names.ERRANDS),
    'event': lambda rng: rng.choice(names.EVENTS),
    'plant': kinds('old, young, small, tall, dark, wild, new', PLANTS),
    'dish': kinds('spicy, creamy, quick, baked, cold, green, winter', DISHES),
    'account': lambda rng: rng.choice(ACCOUNTS),
    'job': kinds('senior, junior, night, chief, school, hotel', JOBS),
    'file': lambda rng: f'{rng.choice(names.STEMS)}.'
                        f'{rng.choice(names.ENDINGS)}',
    'sensor': in_rooms('sensor'), 'lamp': in_rooms('lamp'),
    'door': in_rooms('door'),
    'host': lambda rng: f'{rng.choice(names.NOUNS)}_{rng.randint(1, 9)}',
    'medicine': lambda rng: names.syllables(rng).capitalize() + rng.choice(
        ('ol', 'in', 'an', 'ex')),
}

# key | in a request | in a description | parameters, divided by semicolons:
# role: names: description: who makes it

SCOPES = '''
city | in {city} | in a city | city: city town location place where: [City|Town|Name of the city]: PLACE
near | near {city} | near a town | city: near city town around location: [Town|City|Where to look]: PLACE
to | to {end} | to a place | end: destination to target to_city: [Destination|Where to|Place]: PLACE
route | from {start} to {end} | between two places | start: from origin start from_city departure: [Origin|Start|From where]: PLACE; end: to destination end to_city arrival: [Destination|End|Where to]: PLACE
stop | from {stop} | from a stop | stop: stop from station stop_name: [Name of the stop|Stop]: hall
floor | on floor {floor} | on a floor | floor: floor level storey: [Floor|Number of the floor]: NUMBER
hall | in hall {hall} | in a hall | hall: hall hall_no building: [Hall|Number of the hall]: NUMBER
building | in building {building} | in a building | building: building house block: [Building|Letter of the building]: LETTER
group | in group {group} | in a group | group: group division pool: [Group|Letter of the group]: LETTER
grade | in class {grade} | in a class | grade: class class_name group: [Class|Name of the class]: GRADE
ward | in ward {ward} | in a ward | ward: ward station unit: [Ward|Number of the ward]: NUMBER
customer | of {customer} | of a customer | customer: customer client name customer_name: [Name of the customer|Customer]: PERSON
member | of {owner} | of a person | owner: user person name owner: [Name|Whose]: PERSON
project | in the project {project} | in a project | project: project project_name board: [Project|Name of the project]: hall
team | in the team {team} | in a team | team: team group team_name: [Team|Name of the team]: hall
club | of {club} | of a club | club: team club team_name: [Team|Club]: club
folder | in the folder {folder} | in a folder | folder: folder directory path dir: [Folder|Name of the folder]: FOLDER
category | in the category {category} | in a category | category: category type section: [Category|Section]: NOUN
author | by {author} | by an author | author: author writer by name: [Author|Name of the author]: PERSON
artist | by {artist} | by an artist | artist: artist band by musician: [Artist|Band]: band
room | in the {room} | in a room | room: room area where place: [Room|Which room]: ROOM
venue | at {venue} | at a place | venue: venue place where name: [Where|Name of the place]: venue
shop | at {shop} | at a shop | shop: shop store pharmacy name: [Shop|Name of the shop]: inn
day | on {day} | on a day | day: day weekday date on: [Day|Day of the week]: DAY
region | in the region {region} | in a region | region: region zone datacenter: [Region|Zone]: REGION
with | with {part} | with an ingredient | part: ingredient with contains query: [Ingredient|What is in it]: FOOD
show | of the show {show} | of a show | show: show podcast series name: [Show|Name of the show]: title
'''

ALSO = {
    **MAKERS, **LABELS,
    'NUMBER': lambda rng: rng.randint(1, 12),
    'LETTER': lambda rng: rng.choice('ABCDEFGH'),
    'GRADE': lambda rng: f'{rng.randint(1, 12)}{rng.choice("ABC")}',
    'FOLDER': lambda rng: rng.choice(names.FOLDERS),
    'NOUN': lambda rng: rng.choice(names.NOUNS),
    'FOOD': lambda rng: rng.choice(FOODS),
    'REGION': lambda rng: rng.choice(('eu', 'us', 'ap', 'sa')) + rng.choice(
        ('-west', '-east', '-north')),
}


@dataclass(frozen=True)
class Scope:
    """Which records are asked for: its words, its words in a description, and
    (role, names, description, maker) of each parameter."""

    said: str
    about: str
    takes: tuple


def scopes():
    """Returns the Scopes by their keys."""

    found = {}

    for row in SCOPES.strip().splitlines():
        key, said, about, takes = (c.strip() for c in row.split(' | '))
        found[key] = Scope(said, f' {about}', tuple(
            tuple(p.strip() for p in t.split(':')) for t in takes.split(';')))

    return found


SCOPE = scopes()
ALL = Scope('', '', ())


@dataclass(frozen=True, eq=False)
class Thing:
    """
    one     its name, and many in the plural
    label   who makes the name of one
    ref     how a sentence names one
    scopes  the keys of its Scopes; 'mine' for those of the user
    fields  its Fields
    close   topics of tools that could be taken for its tool
    person  it is one
    """
    one: str
    many: str
    label: Callable
    ref: str
    scopes: Tuple[str, ...]
    fields: Tuple[Field, ...]
    close: Tuple[str, ...]
    person: bool

    @property
    def topic(self):
        return f'the list of {self.many}'


# one | many | label | in a sentence | scopes | fields, with another range |
# topics of tools that are close | * for a person

THINGS = '''
hotel | hotels | inn | {name} | city, near | price 48 420, rating, distance, rooms, breakfast, pool, parking, dogs | hotels, hotel prices, places nearby |
trail | trails | path | {name} | near | length, climb, level, open, dogs | |
meeting room | meeting rooms | hall | {name} | floor, building | seats, floor, free, projector, whiteboard | |
flight | flights | flight | flight {name} | route, to | price 39 890, leaves, arrives, minutes 50 760, direct, delayed, gate | flights, departures |
train | trains | train | {name} | route, to | price 9 190, leaves, arrives, delay, stops, direct, platform | departures, train tickets |
bus | buses | bus | {name} | stop | leaves, delay, stops, wheelchair, platform | departures |
ferry | ferries | ship | the {name} | route, to | price 8 120, leaves, arrives, delay, canceled | departures |
invoice | invoices | code | invoice {name} | customer, mine | amount, due, paid, customer | expenses, orders |
order | orders | code | order {name} | customer | amount, dated, items, state, paid | orders, my orders |
parcel | parcels | code | parcel {name} | to, member | weight, fragile, delivered, dated | deliveries |
support ticket | support tickets | code | ticket {name} | project, customer | dated, comments, priority, assignee, open | support tickets, issues, new issues |
book | books | title | "{name}" | author, category | pages, year, language, loan, rating | books |
film | films | title | "{name}" | venue, day | starts, running 70 190, year, language, soldout, rating | films |
song | songs | title | "{name}" | artist | seconds, year, plays, genre | music |
concert | concerts | band | {name} | city | price 12 160, happens, free places, soldout, genre | |
talk | talks | title | "{name}" | day, venue | starts, running 15 90, language, author, full | |
worker | workers | person | {name} | team, hall | age 19 64, hours, duty, department, home | contacts, user accounts | *
student | students | person | {name} | grade | age 7 19, score, present, home | contacts | *
player | players | person | {name} | club | age 17 39, goals, tall 162 209, position, injured | sports results, contacts | *
candidate | candidates | person | {name} | city, group | votes, age 24 79, home | polls, contacts | *
dog | dogs | first | {name} | city, shop | age 2 15, weight 3 48, vaccinated, children | |
appointment | appointments | person | the appointment of {name} | day, mine | starts, minutes 10 120, canceled, new | appointments, the agenda, the calendar, moving events, cancelling events |
event | events | event | the {name} | day, city | starts, minutes 20 240, price 3 60, canceled, visitors | the agenda, the calendar, appointments, moving events, cancelling events |
sensor | sensors | sensor | the {name} | building, hall | celsius, battery, online, floor | the state of the home, the thermostat |
meter | meters | code | meter {name} | building, mine | reading, dated, online, floor | |
lamp | lamps | lamp | the {name} | building, mine | power 3 90, on, broken | lamps, the home, the state of the home |
door | doors | door | the {name} | building, mine | locked, floor, broken, color | the home, the state of the home |
file | files | file | {name} | folder, member | size, dated, owner, public | folders, reading files, writing files |
product | products | product | the {name} | category, shop | price, weight, rating, stock, color | goods and prices, the warehouse, what to buy |
match | matches | game | {name} | group | happens, visitors, soldout, city | sports results |
team | teams | club | {name} | group, city | points, goals, year | sports results |
task | tasks | errand | "{name}" | project, mine | due, minutes 5 180, priority, assignee, done | the to-do list, reminders, the agenda |
course | courses | language | the {name} course | venue, city, day | price 20 380, starts, free places, day, full | |
tour | tours | tour | {name} | city, day | price 9 120, starts, minutes 45 480, free places, full, wheelchair | |
restaurant | restaurants | venue | {name} | city, near | rating, distance, closes, dishes, cards, open | places nearby, table bookings, opening hours |
museum | museums | museum | {name} | city, near | price 3 28, opens, closes, distance, visitors, open, wheelchair | places nearby, opening hours |
shop | shops | venue | {name} | city, near | distance, opens, closes, open, cards | places nearby, opening hours, what to buy |
apartment | apartments | street | the apartment in {name} | city, near | rent, area, floor, balcony, furnished, lift, dogs | |
car | cars | model | the {name} | city, shop | price 24 160, seats 2 9, year 2009 2027, fuel, color, automatic | |
scooter | scooters | code | scooter {name} | near, stop | battery, distance, speed 15 45, free | |
charging station | charging stations | station | {name} | near, city | charge, distance, free, cards | charging stations |
campsite | campsites | camp | {name} | near | price 8 60, distance, rating, dogs, open, pool | |
car park | car parks | lot | {name} | city, near | price 2 40, distance, free places, closes, open | places nearby |
cottage | cottages | cottage | {name} | near, city | price 45 320, beds, distance, sauna, free, dogs | |
mountain | mountains | peak | {name} | near | high, distance, snow | |
machine | machines | code | machine {name} | hall, building | year 1984 2027, power 200 9000, on, broken | |
server | servers | host | {name} | region, project | load, year 2012 2027, online, city | builds, deployments, logs |
subscription | subscriptions | brand | {name} | member, mine | price 2 45, expires, active | subscriptions |
account | accounts | account | the {name} account | member, mine | balance, locked, owner | the bank account, user accounts |
bill | bills | brand | the bill from {name} | member, mine | amount 9 700, due, paid, urgent | expenses |
recipe | recipes | dish | the {name} | with, mine | minutes 10 150, calories, ingredients, rating, vegan, level | recipes, nutrition facts |
plant | plants | plant | the {name} | room, mine | tall 8 190, water, room, new | |
medicine | medicines | medicine | {name} | shop, mine | tablets, price 3 80, expires, prescription | |
episode | episodes | title | "{name}" | show | running, dated, plays, new | |
job | jobs | job | the job as a {name} | city, near | salary, dated, parttime, distance | |
'''


def things():
    """Returns the Things."""

    found = []

    for one, many, label, ref, scoped, has, close, person_ in cells(THINGS):
        mine = []

        for key in commas(has):
            key, _, span = key.partition(' ') if key not in FIELDS \
                else (key, '', '')
            mine.append(replace(FIELDS[key], make=tuple(
                map(int, span.split()))) if span else FIELDS[key])

        found.append(Thing(one, many, LABELS[label], ref, commas(scoped),
                           tuple(mine), commas(close), person_ == '*'))

    return tuple(found)


THINGS = things()


# -------------------------------------------------------------------- phrases


VERBS = {'is': 'are', 'has': 'have', 'does': 'do', 'goes': 'go'}
NO = re.compile(r"\b(?:not?|none|nope|never|nobody)\b|n't\b", re.IGNORECASE)


def plural(phrase):
    """Returns a phrase that is said of one as it is said of several."""

    verb, blank, rest = phrase.partition(' ')

    return VERBS.get(verb, verb[:-1]) + blank + rest


def negative(phrase):
    """Returns what is said of one of which the phrase is not true."""

    verb, _, rest = phrase.partition(' ')

    return f'is not {rest}' if verb == 'is' \
        else f'does not {plural(phrase)}'


def question(ref, phrase):
    """Returns the question whether a phrase is true of one."""

    rest = phrase.partition(' ')[2]

    return f'Is {ref} {rest}?' if phrase.startswith('is ') \
        else f'Does {ref} {plural(phrase)}?'


def tail(phrase):
    return phrase.partition(' ')[2]


def among(found, text):
    """Returns true if a name stands in a text as a word of its own."""

    return place_of(found, text) >= 0


def place_of(found, text):
    """Returns where a name stands in a text as a word of its own, or -1."""

    m = re.search(r'(?<![\w.+-])' + re.escape(found) + r'(?![\w-])', text,
                  re.IGNORECASE)

    return m.start() if m else -1


def ways(text):
    """Returns the texts of a number or a time that mean the same, divided by
    bars."""

    other = text[1:] if re.match(r'0\d:', text) \
        else text[:-2] if text.endswith('.0') else ''

    return f'{text}|{other}' if other else text


# ---------------------------------------------------------------------- cases


ROWS = (2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6)

# units as an object or a text of a result has them

SHORT = {'euros': 'EUR', 'minutes': 'min', 'seconds': 's', 'percent': '%',
         'watts': 'W', 'degrees': '°C'}

FORMS = ('rows',) * 21 + ('text',) * 2 + ('nested',) * 2
MORE = (
    parameter('limit', 'limit max_results count max top', 'How many at most',
              'integer', needed=False),
    parameter('page', 'page page_no offset', 'Page of the list', 'integer',
              needed=False),
    parameter('lang', 'lang language locale', 'Language of the answer',
              needed=False),
    parameter('details', 'details verbose full include_details',
              'All details', 'boolean', needed=False))

TOOL = '''[list|get|find|search|show|fetch|query] {many}
{many} [list|search|finder|lookup|overview]
[all|the|known] {many}
[get|load|read] {one} [list|data|records|table]
{one} [list|index|search|table]'''

ABOUT = '''[Lists|Returns|Finds|Shows|Gets] [the |all |]{many}{by}
{Many}{by}[ with their details|, with all fields|: what is known of them|]
[All|The] {many}{by}[ that are known| in the system|]
[Search for|Look up] {many}{by}
[List|Overview|Table] of {many}{by}'''


class Case:
    """Records of a thing, in a scope.

    given   the arguments by role
    fields  those that the records have, in their order
    rows    names and values: [(name, {Field: value})]
    others  the same for records that are not there
    form    'rows', 'text' or 'nested'
    slots   for requests and answers
    """

    def __init__(self, rng, thing, need, sizes=ROWS):
        """need are Fields that the records must have; sizes are those of the
        result, or empty if only the tool matters."""

        self.thing = thing
        asked = {f.names[0] for f in need}
        apart = [k for k in thing.scopes if not any(
            role in asked for role, *_ in SCOPE.get(k, ALL).takes)]
        key = rng.choice([*apart, *apart, 'all'])
        self.scope = SCOPE.get(key, ALL)
        self.given = {role: ALSO[make](rng)
                      for role, _, _, make in self.scope.takes}
        self.fields = list(need)
        spare = [f for f in thing.fields if f not in need
                 and f.names[0] not in self.given]
        self.fields += rng.sample(spare, min(
            len(spare), rng.choice((0, 1, 1, 2) if need else (1, 1, 2)),
            3 - len(need)))
        rng.shuffle(self.fields)
        size = rng.choice(sizes) if sizes else 0
        self.form = rng.choice(FORMS)

        if self.form == 'text' and (size > 3 or '"' in thing.ref):
            self.form = 'rows'

        self.write(rng)
        in_ = expand(rng, self.scope.said).format(**self.given)
        in_ = f' {in_}' if in_ else ''
        own = rng.choice(('my', 'my', 'our')) if key == 'mine' else ''
        self.slots = dict(
            one=thing.one, many=thing.many, one_=thing.one + in_,
            many_=thing.many + in_, the=own or 'the',
            your='your' if own else 'the',
            its='their' if thing.person else 'its',
            who='who' if thing.person else 'that')

        if sizes:
            self.draw_rows(rng, size)

    def write(self, rng):
        """Draws how the values are written: the names of fields, the forms of
        times and truth, and whether a unit is seen."""

        used = {rng.choice((
            'name', 'name', 'name', 'title', 'label', 'id',
            self.thing.one.replace(' ', '_')))}
        self.key, = used
        self.labels, self.written, self.unit = {}, {}, {}

        for f in self.fields:
            labels, how = f.names, ''

            if f.kind == 'flag':
                way = rng.random()

                if way < 0.35 and f.words and not used & {'status', 'state'}:
                    how = rng.choice(f.words)
                    labels = ('status', 'state')
                elif way < 0.55:
                    how = ('yes', 'no')
            elif f.kind == 'time':
                how = rng.random() < 0.7
            elif f.unit and self.form == 'rows' and rng.random() < 0.12:
                how = SHORT.get(f.unit, f.unit)

            label = rng.choice([n for n in labels if n not in used]
                               or [f'{f.names[0]}_2'])
            used.add(label)
            self.labels[f], self.written[f] = label, how
            self.unit[f] = f.unit if how or self.form == 'text' \
                or label in f.told else ''

        self.at = 0 if rng.random() < 0.8 else rng.randint(
            0, len(self.fields))
        self.inner = rng.choice(('by name', 'details', 'query', 'units'))

        if self.form == 'nested' and self.inner == 'units':
            self.unit.update({f: f.unit for f in self.fields})

    def draw_rows(self, rng, size):
        """Draws the records, and two that are not there.  No name is a part of
        another one or of what is asked for, or a word of answers."""

        found, asked = [], f'{self.slots["one_"]} {self.slots["many_"]}'

        while len(found) < size + 2:
            name = self.thing.label(rng)

            if name.lower() not in COMMON and not among(name, asked) \
                    and not any(among(name, n) or among(n, name)
                                for n in found):
                found.append(name)

        columns = {f: self.draw_column(rng, f, size + 2) for f in self.fields}
        rows = [(name, {f: columns[f][i] for f in self.fields})
                for i, name in enumerate(found)]
        self.rows, self.others = rows[:size], rows[size:]

    def draw_column(self, rng, field, size):
        """Returns values of a field; those of a number or a time differ."""

        if field.kind == 'flag':
            return [rng.random() < 0.5 for _ in range(size)]

        if field.kind == 'choice':
            few = []

            while len(few) < 3:
                value = field.make(rng) if callable(field.make) \
                    else rng.choice(field.make)
                few += [value] if value not in few else []

            return [rng.choice(few) for _ in range(size)]

        year, month = rng.randint(2024, 2030), rng.randint(1, 10)
        found = []

        while len(found) < size:
            value = self.draw_value(rng, field, year, month)
            found += [value] if value not in found else []

        return found

    @staticmethod
    def draw_value(rng, field, year, month):
        """Returns a number, the minutes of a time, or a date."""

        if field.kind == 'date':
            return f'{year}-{month + rng.randint(0, 2):02}-' \
                f'{rng.randint(1, 28):02}'

        low, high = field.make

        if field.kind == 'time':
            return 60 * rng.randrange(low, high) + 5 * rng.randrange(12)

        return rng.randint(low, high) if isinstance(low, int) \
            else round(rng.uniform(low, high), 1)

    def bare(self, field, value):
        """Returns the text of a value, without a unit."""

        if field.kind == 'time':
            hour = f'{value // 60:02}' if self.written[field] \
                else value // 60

            return f'{hour}:{value % 60:02}'

        return str(value)

    def versus(self, field, a, b):
        """Returns the thought that compares two values."""

        return digits.reasoned(self.bare(field, a), self.bare(field, b),
                               digits.sign(a, b))

    def said(self, field, value):
        """Returns the text of a value, with its unit if it is seen."""

        unit = self.unit[field]

        return f'{self.bare(field, value)} {unit}' if unit \
            else self.bare(field, value)

    def clause(self, field, value):
        """Returns what is said of one with this value, or '' if its unit is
        not known."""

        if field.kind == 'flag':
            return field.yes if value else field.no

        return '' if field.unit and not self.unit[field] \
            else field.clause.format(v=self.said(field, value))

    def shown(self, field, value):
        """Returns a value as a result has it."""

        how = self.written[field]

        if field.kind == 'flag':
            return (how[0] if value else how[1]) if how else value

        if field.kind == 'number':
            return f'{value} {how}' if how else value

        return value if field.kind == 'choice' else self.bare(field, value)

    def ref(self, name):
        return say(None, self.thing.ref, name=name)

    def names(self):
        return [name for name, _ in self.rows]

    # -------------------------------------------------------------- the tool

    def role(self, label):
        return f'records.{label}'

    def order(self):
        """Returns the fields with None for the name."""

        return [*self.fields[:self.at], None, *self.fields[self.at:]]

    def service(self, rng):
        t, scope = self.thing, self.scope
        takes = [parameter(role, named, about,
                           'integer' if make == 'NUMBER' else 'string')
                 for role, named, about, make in scope.takes]
        takes += [rng.choice(MORE)] if rng.random() < 0.35 else []

        return service(
            t.topic, TOOL.format(one=t.one, many=t.many),
            ABOUT.format(many=t.many, Many=capital(t.many), by=scope.about),
            takes, ' '.join(self.role(self.label(f)) for f in self.order()))

    def label(self, field):
        return self.key if field is None else self.labels[field]

    def records(self, rng):
        """Returns the result."""

        if self.form == 'text':
            return Text(' '.join(self.sentence(row) for row in self.rows)
                        or expand(rng, '[There are|We have] no '
                                  f'{self.slots["many_"]}.'))

        if self.form == 'nested':
            return Text(json.dumps(self.nested(rng), ensure_ascii=False))

        return [{self.role(self.label(f)): name if f is None
                 else self.shown(f, values[f]) for f in self.order()}
                for name, values in self.rows]

    def sentence(self, row):
        name, values = row
        said = [self.clause(f, values[f]) for f in self.fields]

        return capital(f'{self.ref(name)} {both_of(said)}.')

    def nested(self, rng):
        """Returns a result with an object in another."""

        inner = [(name, {self.labels[f]: self.measured(f, values[f])
                         for f in self.fields}) for name, values in self.rows]
        whole = rng.choice((self.thing.many.replace(' ', '_'), 'results',
                            'items', 'data'))

        if self.inner == 'by name':
            return {self.labels[self.fields[0]]: {
                name: next(iter(v.values())) for name, v in inner}} \
                if len(self.fields) == 1 else {whole: dict(inner)}

        if self.inner == 'details':
            outer = rng.choice(('details', 'info', 'attributes', 'properties'))
            listed_ = [{self.key: name, outer: v} for name, v in inner]

            return {whole: listed_} if rng.random() < 0.5 else listed_

        listed_ = [{self.key: name, **v} for name, v in inner]

        return {'query': dict(self.given), whole: listed_} \
            if self.inner == 'query' else {whole: listed_}

    def measured(self, field, value):
        shown = self.shown(field, value)

        return {'value': shown, 'unit': SHORT.get(field.unit, field.unit)} \
            if field.unit and self.inner == 'units' else shown


class View:
    """How a result looks to one who reads it.

    labels  the names of fields in it, in their order; none if it is a text
    """

    def __init__(self, case, api, records):
        self.case, self.text = case, case.form == 'text'
        self.result = text_of(api.show(records))
        self.labels = {} if self.text else {
            f: case.labels[f] if case.form == 'nested'
            else api.fields[case.role(case.labels[f])] for f in case.fields}

    def read(self, field, value):
        """Returns a value as the thoughts copy it."""

        if field.kind != 'flag':
            return self.case.bare(field, value)

        if self.text:
            return self.case.clause(field, value)

        shown = str(self.case.shown(field, value))

        return shown if re.search(r'\b(True|False)\b', self.result) \
            else shown.lower()

    def head(self, goals):
        """Returns the thought about which fields matter, and what of them is
        wanted.  It goes through the fields up to the last of these.

        goals   a text after the name, by Field
        """
        if self.text:
            return ' '.join(f'{f.noun}{goal}' if f.noun else goal.strip('= ')
                            for f, goal in goals.items())

        until = max([*self.labels].index(f) for f in goals)

        return ' '.join(self.labels[f] + goals.get(f, ': no.')
                        for f in [*self.labels][:until + 1])

    def row(self, row):
        """Returns the beginning of the thought about a record: its name, after
        its sentence in a text."""

        return f'"{self.case.sentence(row)}" {row[0]}' if self.text \
            else row[0]


class Test:
    """What may be true of a record: a flag, a value, or a limit.

    yes, no  what is said of one of which it is true or not
    """

    def __init__(self, rng, case, field, plain=False):
        """plain: neither of the phrases has a negation."""

        self.case, self.field = case, field

        if field.ordered:
            self.limit = self.draw_limit(rng)
            self.sign = rng.choice('<>')
            n = case.bare(field, self.limit)
            n = f'{n} {field.unit}' if field.unit else n
            yes, no = (field.less, field.more) if self.sign == '<' \
                else (field.more, field.less)
            self.yes, self.no = (rng.choice(p).format(n=n) for p in (yes, no))
            case.unit[field] = field.unit
        elif field.kind == 'choice':
            self.limit = rng.choice([*case.rows, *case.others])[1][field]
            self.yes = field.yes.format(v=self.limit)
            self.no = negative(self.yes)
        else:
            self.limit = rng.random() < 0.72 or bool(
                plain and NO.search(field.no))
            self.yes, self.no = (field.yes, field.no) if self.limit \
                else (field.no, field.yes)

    def draw_limit(self, rng):
        """Returns a value that no record has, often a round number."""

        field, rows = self.field, self.case.rows
        limit = rng.choice(self.case.others)[1][field]
        round_ = limit if field.kind == 'date' \
            else limit // 30 * 30 if field.kind == 'time' \
            else round(2 * limit) / 2 or limit if isinstance(limit, float) \
            else limit // 10 * 10 or limit

        return limit if any(v[field] == round_ for _, v in rows) else round_

    def holds(self, values):
        value = values[self.field]

        return digits.sign(value, self.limit) == self.sign \
            if self.field.ordered else value == self.limit

    def goal(self, view):
        """Returns what is looked for in a field, after its name."""

        return f'{self.sign}{self.case.bare(self.field, self.limit)}?' \
            if self.field.ordered \
            else f'={view.read(self.field, self.limit)}?'

    def why(self, view, values):
        """Returns the thought about a value, after the name of its record."""

        read = view.read(self.field, values[self.field])

        return f' {self.compared(values)}' if self.field.ordered \
            else f': {read}'

    def compared(self, values):
        return self.case.versus(self.field, values[self.field], self.limit)


# ----------------------------------------------------------------- questions


@dataclass
class Asked:
    """A question about the records of a Case, and its answer.

    ask     a template of the request
    slots   for it, beside those of the case
    short   what is added to a request that wants no more than the answer
            itself, or ''
    answer  the gold answer
    think   View -> the thought about the records
    wrong   the text of an answer -> None if it is right, else the reason
    """
    case: Case
    ask: str
    slots: dict
    short: str
    answer: str
    think: Callable
    wrong: Callable


SHORT_SHARE = 0.18      # of the questions that want only a name or a number
SIZES = (*ROWS * 2, 0, 1)

NAME_ONLY = Split('''Just the name.
Only the name, please.
The name is enough.
Answer with the name only.
No sentence, just the name.
Nothing but the name.
I only need the name.
One name, nothing else.
Please give only the name.
Name only.'''.splitlines())

NAMES_ONLY = Split('''Just the names.
Only the names, please.
The names are enough.
Answer with the names only.
No sentence, just the names.
Nothing but the names.
I only need the names, with commas.
Names only, divided by commas.
Please give only the names.
A list of names, no more.'''.splitlines())

LINES_ONLY = Split('''One per line.
One name per line, please.
A list, each on its own line.
Each name on a new line.
Write one under the other.
Put every name on a line of its own.
Line by line, only names.
As a list with one name in each line.'''.splitlines())

NUMBER_ONLY = Split('''Just the number.
Only the number, please.
The number is enough.
Answer with the number only.
No sentence, just the number.
Nothing but the number.
I only need the number.
One number, nothing else.
A number is all I need.
Number only.'''.splitlines())

YES_OR_NO = Split('''Yes or no?
Just yes or no.
Answer yes or no.
A yes or a no is enough.
Only yes or no, please.
I only need a yes or a no.
Say yes or no, not more.
One word: yes or no?
Yes/no.
Nothing but yes or no.'''.splitlines())


def said(rng, text, **slots):
    """Returns one of the answers of which all slots are known."""

    known = [row for row in text.splitlines()
             if all(slots[k] != '' for k in re.findall(r'\{(\w+)\}', row))]

    return capital(say(rng, rng.choice(known), **slots))


def drawn(rng, fits):
    """Returns a thing and one of its fields that fits."""

    thing = rng.choice([t for t in THINGS if any(map(fits, t.fields))])

    return thing, rng.choice([f for f in thing.fields if fits(f)])


NOTHING = '''[There are|I found|I see] no {many_}.
No {many_}[ were found| are there|, as far as I see].
[Sorry|I'm sorry], [there are|I found] no {many_}.
The [list|result] of {many_} is empty.
[None|Nothing found]: [there are|I see] no {many_}.
None.
None, the list is empty.
Nothing was found.'''
EMPTY = '[The result is empty|No records|The list is empty].'


def nothing(text):
    return None if NEGATIVE.search(text) or 'empty' in text.lower() \
        else f'nothing was found, but: {text}'


def empty(rng, view):
    """Returns the thought about a result without records."""

    return (f'"{view.result}"' if view.text else expand(rng, EMPTY)) \
        + ' So none.'


# -------------------------------------------------- the smallest, the largest


BY_EST = Split('''Which {one_} is the {est}?
What is {the} {est} {one_}?
[Find|Show|Get] me {the} {est} {one_}.
[The |]{est} {one_}[?|, please.]
I[ need|'m looking for|'d like to have] {the} {est} {one_}.
Of [all |]{the} {many_}, which is the {est}?
[Look at|Check|Go through] {the} {many_} and [name|tell me] the {est}[ one|].
Compare {the} {many_}. Which is the {est}?
[Can|Could] you tell me which {one_} is the {est}?
I only care about {the} {est} {one_}. Which one is that?
Do you know which of {the} {many_} is the {est}?
Tell me which of {the} {many_} is the {est}.
Name {the} {est} {one_}.
There are [several|some] {many_}, I think. [Give|Tell] me the {est}[ one|].
Which one is the {est} of {the} {many_}?
{many_}: [which is the {est}?|the {est}, please.]
Out of {the} {many_}, pick the {est}.
If you had to name {the} {est} {one_}, which would it be?
which {one_} is the {est}
I wonder which of {the} {many_} is the {est}.'''.splitlines())

BY_DOES = Split('''Which {one_} {does}?
Which of {the} {many_} {does}?
[Find|Name|Tell me] the {one_} that {does}.
Tell me which {one_} {does}.
[Go through|Look at|Check] {the} {many_}: which [one |]{does}?
I[ want to|'d like to| have to] know which {one_} {does}.
[Can|Could] you [see|check|find out] which of {the} {many_} {does}?
Among {the} {many_}, which one {does}?
{many_}: [which one|which] {does}?
We wonder which {one_} {does}.
One of {the} {many_} {does}. Which one?
which of {the} {many_} {does}
Look for the {one_} that {does}.
Compare {the} {many_} and tell me which one {does}.'''.splitlines())

BOTH_EST = Split('''Which {one_} is the {est}, and what is {its} {noun}?
[Give|Tell] me {the} {est} {one_} [and {its} {noun}|with {its} {noun}].
What is {the} {est} {one_}, and what's {its} {noun}?
The name and the {noun} of {the} {est} {one_}, please.
I want {the} {est} {one_}. Also tell me {its} {noun}.
What is the {noun} of {the} {est} {one_}? And which one is it?
{est} {one_} + {noun}
Compare {the} {many_} and tell me which is the {est}, with the {noun}.
[Find|Look up] {the} {est} {one_}. I need the {noun}, too.
The {est} of {the} {many_}: which one is it, and what is the {noun}?
Name {the} {est} {one_} and {its} {noun}.
Of {the} {many_}, which is the {est}? Add the {noun}.
I need to know which {one_} is the {est} and what {its} {noun} is.'''
                 .splitlines())

BOTH_DOES = Split('''Which {one_} {does}, and what is {its} {noun}?
Tell me which {one_} {does}, and give me {its} {noun}.
Which of {the} {many_} {does}? I need the {noun}, too.
Find the {one_} that {does} and tell me {its} {noun}.
Go through {the} {many_}: which one {does}? Name and {noun}, please.
I need the name and the {noun} of the {one_} that {does}.
[Can|Could] you see which of {the} {many_} {does}, and say what {its} {noun} is?
Among {the} {many_}, which one {does}? With the {noun}, please.
which {one_} {does} + {noun}
One of {the} {many_} {does}. Which one, and what is the {noun}?'''
                  .splitlines())

FIRST_IS = '''{name}
{ref}.
It is {ref}.
[That is|That would be] {ref}.
{your} {est} {one_} is {ref}.
{ref} is the {est}.
{ref} is the {est} of them.
{ref} {does}.
I compared {your} {many_}: {ref} {does}.
[My answer|The answer]: {ref}.
{ref} ({v}).
{ref}: {v}.'''

FIRST_HAS = '''{ref}, {v}.
{ref} ({v}).
{ref}: {v}.
It is {ref}, and {its} {noun} is {v}.
{ref} {does}: {v}.
{your} {est} {one_} is {ref}. The {noun} is {v}.
{ref} is the {est}. {its_} {noun} is {v}.
{ref} {clause}.
{ref} {clause} and is the {est}.
{name} - {noun}: {v}
[That is|That would be] {ref}, {noun} {v}.'''


def extreme(rng):
    """The record with the smallest or the largest number, of all or of those
    of which something is true."""

    thing, field = drawn(rng, lambda f: f.ordered)
    other = [f for f in thing.fields if f.tests]
    small = rng.random() < 0.55
    adjectives, phrases = field.least if small else field.most
    est = rng.choice(adjectives) if adjectives else ''
    does = rng.choice(phrases)
    some = [rng.choice(other)] if est and other and rng.random() < 0.2 else []
    case = Case(rng, thing, [field, *some], SIZES)
    tests = [Test(rng, case, f) for f in some]

    for t in tests:
        case.slots['one_'] += f' {case.slots["who"]} {t.yes}'
        case.slots['many_'] += f' {case.slots["who"]} {plural(t.yes)}'

    both = rng.random() < 0.45
    ask = rng.choice((BOTH_EST if both else BY_EST) if some or est
                     and rng.random() < 0.65 else BOTH_DOES if both
                     else BY_DOES)
    short = '' if both or rng.random() > SHORT_SHARE \
        else rng.choice(NAME_ONLY)
    slots = {**case.slots, 'est': est, 'does': does, 'noun': field.noun}
    fit = [(name, v) for name, v in case.rows
           if all(t.holds(v) for t in tests)]
    best = (min if small else max)(fit, key=lambda row: row[1][field],
                                   default=None)

    def think(view):
        if not case.rows:
            return empty(rng, view)

        goal = ('earliest', 'latest') if field.kind != 'number' \
            else ('smallest', 'largest')
        parts = [view.head({**{t.field: t.goal(view) for t in tests},
                            field: f': the {goal[not small]}.'})]
        top = None

        for row in case.rows:
            values = row[1]
            lead = view.row(row) + reasons(view, tests, row)

            if not all(t.holds(values) for t in tests):
                parts.append(f'{lead}, no.')
                continue

            lead += ', yes' if tests else ''
            value = case.bare(field, values[field])

            if top is None:
                parts.append(f'{lead} {value}.')
                top = row
                continue

            parts.append(f'{lead} '
                         f'{case.versus(field, values[field], top[1][field])}.')
            top = row if digits.sign(values[field], top[1][field]) \
                == '<>'[not small] else top

        end = f'{top[0]} {case.bare(field, top[1][field])}' if top else 'none'

        return ' '.join(parts) + f' So {end}.'

    if best is None:
        return Asked(case, ask, slots, short,
                     'None' if short else said(rng, NOTHING, **slots), think,
                     lambda text: nothing(text) or named(case, (), text))

    name, values = best
    ref, value = case.ref(name), case.bare(field, values[field])
    answer = name if short else said(
        rng, FIRST_HAS if both else FIRST_IS, name=name, ref=ref,
        v=case.said(field, values[field]),
        clause=case.clause(field, values[field]),
        its_=capital(case.slots['its']), **slots)

    def wrong(text):
        at = place_of(name, text)

        if at < 0 or any(0 <= place_of(n, text) < at
                         for n in case.names() if n != name):
            return f'{name} is not the choice of: {text}'

        return f'{value} is not in: {text}' \
            if both and not states(text, ways(value)) else None

    return Asked(case, ask, slots, short, answer, think, wrong)


def named(case, right, text):
    """Returns None if the names in a text are these of the records, else the
    reason."""

    for name in case.names():
        if among(name, text) != (name in right):
            return f'{name} should {"" if name in right else "not "}be in: ' \
                f'{text}'

    return None


# ------------------------------------------------- those that have something


WHICH = Split('''Which {many_} {that}?
Which of {the} {many_} {that}?
[List|Name|Show me] [all |]{the} {many_} {who} {that}.
[Give|Show] me only those {many_} {who} {that}.
I need all {many_} {who} {that}.
Are there {many_} {who} {that}? [Which ones?|Name them.|If so, which?]
Which {many_} {that}? [Only name those.|Leave out the others.|Nothing about the others.]
[Look at|Check|Go through] {the} {many_} and [name|list] those {who} {that}.
{many_} {who} {that}[?|, please.]
[Can|Could] you tell me which {many_} {that}?
I[ want|'d like] to know which of {the} {many_} {that}.
Filter {the} {many_}: I only want those {who} {that}.
Is there a {one_} {who} {is_}? Name all that there are.
We only want {many_} {who} {that}. Which ones are there?
The names of {the} {many_} {who} {that}, please.
which {many_} {that}
From {the} {many_}, pick those {who} {that}.
I'm only interested in {many_} {who} {that}. [Which are they?|Name them, please.]
Tell me which {many_} {that}.'''.splitlines())

SOME_ARE = '''{list}.
{list}
{all} {agree}.
[These|They are]: {list}.
{k} of them: {list}.
[I found|That is true of] {list}.
The {many_} {who} {that}: {list}.
[The answer|My answer|Found]: {list}.'''

ONE_IS = '''{list}.
{list}
Only {list}.
Only {list} {is_}.
[One|There is one|Just one]: {list}.
{list} {is_}.
[It is|That is] {list}.
I found one: {list}.'''

NONE_IS = '''None of them {is_}.
None.
[No|Not a single] {one_} {is_}.
[I found|There is|I see] no {one_} {who} {is_}.
[Sorry, none|Not one of them|None of {your} {many}] {is_}.
None, I went through all of them.'''

NONE_AT_ALL = '''None.
None of them.
There are none.
[Sorry|I'm sorry], there are none.
None, I went through all of them.
That is true of none of them.'''


def tested(rng, sizes):
    """Returns a Case, one or two Tests of its records, and the slots that say
    what is looked for."""

    thing, field = drawn(rng, lambda f: f.tests or f.less)
    need = [field]

    if len(thing.fields) > 1 and rng.random() < 0.12:
        need.append(rng.choice([f for f in thing.fields if f is not field]))

    case = Case(rng, thing, need, sizes)
    tests = [Test(rng, case, f) for f in need]

    return case, tests, {**case.slots,
                         'is_': ' and '.join(t.yes for t in tests),
                         'that': ' and '.join(plural(t.yes) for t in tests)}


def gone_through(view, tests, counts=False):
    """Returns the thought about each record, after which it says whether it
    is one of those, or counts them."""

    parts, k = [view.head({t.field: t.goal(view) for t in tests})], 0

    for row in view.case.rows:
        holds = all(t.holds(row[1]) for t in tests)
        k += holds
        verdict = 'no' if not holds else k if counts else 'yes'
        parts.append(f'{view.row(row)}{reasons(view, tests, row)}, {verdict}.')

    return ' '.join(parts)


def reasons(view, tests, row):
    """Returns the values that decide about a record, after its name."""

    return ''.join(',' * (i > 0) + (t.why(view, row[1]).lstrip(':') if i
                                    else t.why(view, row[1]))
                   for i, t in enumerate(tests))


def items(rng, case, found):
    """Returns names as they stand in a list."""

    ref = case.thing.ref

    return [case.ref(n) for n in found] if ref.startswith('the ') \
        or rng.random() < 0.4 else list(found)


def both_of(found):
    """Returns the subject of a sentence."""

    return ' and '.join([', '.join(found[:-1])] * bool(found[1:])
                        + found[-1:])


def which(rng):
    """The records of which something is true."""

    case, tests, slots = tested(rng, SIZES)
    found = [name for name, v in case.rows if all(t.holds(v) for t in tests)]
    way = rng.random()
    short = rng.choice(NAMES_ONLY) if way < SHORT_SHARE / 2 \
        else rng.choice(LINES_ONLY) if way < SHORT_SHARE else ''

    def think(view):
        return empty(rng, view) if not case.rows else \
            f'{gone_through(view, tests)} So {", ".join(found) or "none"}.'

    if short:
        answer = (', ' if way < SHORT_SHARE / 2 else '\n').join(found) \
            or 'None'
    elif not case.rows:
        answer = said(rng, NOTHING, **slots)
    elif not found:
        answer = said(rng, NONE_AT_ALL if NO.search(slots['is_']) else NONE_IS,
                      **slots)
    else:
        answer = said(
            rng, SOME_ARE if found[1:] else ONE_IS,
            **{**slots, 'list': listed(rng, items(rng, case, found)),
               'all': both_of(items(rng, case, found)),
               'agree': slots['that' if found[1:] else 'is_'],
               'k': counted(rng, len(found)).capitalize()})

    def wrong(text):
        return named(case, found, text) or (
            nothing(text) if not found else f'not one per line: {text}'
            if short in LINES_ONLY and len(text.split('\n')) != len(found)
            else None)

    return Asked(case, rng.choice(WHICH), slots, short, answer, think, wrong)


# ---------------------------------------------------------- how many have it


HOW_MANY = Split('''How many {many_} {that}?
How many of {the} {many_} {that}?
[Count|Please count] {the} {many_} {who} {that}.
What is the number of {many_} {who} {that}?
Of {the} {many_}, how many {that}?
[Tell me|I want to know|I need to know] how many {many_} {that}.
[Can|Could] you count how many of {the} {many_} {that}?
Number of {many_} {who} {that}?
[Look at|Go through|Check] {the} {many_}: how many {that}?
{many_}: how many {that}?
Are there many {many_} {who} {that}? [How many exactly?|Give me the number.]
For my [report|notes]: how many {many_} {that}?
how many {many_} {that}
Do you see how many of {the} {many_} {that}?'''.splitlines())

HOW_MANY_ALL = Split('''How many {many_} are there?
What is the number of {many_}?
Count {the} {many_}.
How many {many_} do you find?
[Tell me|I need to know] how many {many_} there are.
[Can|Could] you count {the} {many_}?
{many_}: how many are there?
Number of {many_}, please.
[Look up|Check] how many {many_} there are.
how many {many_} are in the list'''.splitlines())

SO_MANY = '''{k}.
{k}
{k} of them.
{k} {agree}.
[I count|The number is|It is] {small}.
{k} of the {n}.
{k}: {list}.
[The answer|In all]: {small}.'''

SO_MANY_ALL = '''{k}.
{k}
{k} {noun}.
[I count|The number is|It is] {small}.
[The answer|In all]: {small}.
{k}: {list}.'''


WORDS = {w: i for i in range(10) for w in (str(i), in_words(i))}


def numbers_of(text, phrases):
    """Returns the small numbers of a text that are in none of the phrases."""

    for phrase in sorted(phrases, key=len, reverse=True):
        text = re.sub(re.escape(phrase), ' ', text, flags=re.IGNORECASE)

    return {WORDS[w] for w in re.findall(r'\w+', text.lower()) if w in WORDS}


def counted(rng, n):
    return in_words(n) if rng.random() < 0.5 else str(n)


def count(rng):
    """The number of records of which something is true, or of all."""

    whole = rng.random() < 0.2

    if whole:
        case = Case(rng, rng.choice(THINGS), [], SIZES)
        tests, slots = [], case.slots
    else:
        case, tests, slots = tested(rng, SIZES)

    found = [name for name, v in case.rows if all(t.holds(v) for t in tests)]
    k, n = len(found), len(case.rows)
    short = rng.choice(NUMBER_ONLY) if rng.random() < SHORT_SHARE else ''

    def think(view):
        if not case.rows:
            return empty(rng, view) + ' 0.'

        if whole:
            return ' '.join(f'{i} {view.row(row)}.' for i, row in enumerate(
                case.rows, 1)) + f' So {n}.'

        return f'{gone_through(view, tests, True)} So {k}.'

    if short:
        answer = str(k)
    elif k == 0:
        answer = rng.choice(('0', '0.', 'Zero.')) if rng.random() < 0.3 \
            else said(rng, NOTHING if not case.rows else NONE_AT_ALL
                      if NO.search(slots['is_']) else NONE_IS, **slots)
    else:
        word = counted(rng, k)
        noun = slots['one_' if k == 1 else 'many_']
        answer = said(
            rng, SO_MANY_ALL if whole else SO_MANY, k=capital(word),
            small=word, n=counted(rng, n) if n > k else '', noun=noun,
            agree='' if whole else f'{noun} '
            + slots['is_' if k == 1 else 'that'],
            list=listed(rng, items(rng, case, found)))

    phrases = [*case.names(), slots['one_'], slots['many_'],
               *(p for t in tests for p in (t.yes, plural(t.yes)))]

    def wrong(text):
        if k == 0:
            return None if states(text, '0|zero') else nothing(text) \
                or named(case, (), text)

        numbers = numbers_of(text, phrases)

        return None if k in numbers and numbers <= {k, n, n - k} \
            else f'{k} is not the number in: {text}'

    return Asked(case, rng.choice(HOW_MANY_ALL if whole else HOW_MANY), slots,
                 short, answer, think, wrong)


# ------------------------------------------------------ whether one has it


WHETHER = Split('''{q} [Look at|See|Check] {the} {many_}.
[Look at|Check|Go through] {the} {many_}. {q}
[Can|Could] you [check|see|find out] [if|whether] {ref} {is_}? Look at {the} {many_}.
Among {the} {many_} there is {ref}. {q}
I[ want|'d like] to know [if|whether] {ref}, one of {the} {many_}, {is_}.
{q} I mean the one in the list of {many_}.
Of {the} {many_}, I'm interested in {ref}. {q}
[My colleague says|Somebody told me|I think] that {ref} {is_}. Is that [right|true]? Check {the} {many_}.
Does the list of {many_} say that {ref} {is_}?
{q} You can see it in the list of {many_}.
[Tell me|Please check] [if|whether] {ref} {is_}. The list of {many_} has it.
{the_} {many_}: {q}
{q} (One of {the} {many_}.)
I heard that {ref} {isnt}. Is that so? See the list of {many_}.
Find {ref} among {the} {many_}. {q}'''.splitlines())

YES = '''Yes.
Yes, {ref} {is_}.
{ref} {is_}.
Yes, that's right: {ref} {is_}.
Yes, {ref} {value}.
[According to the list|As far as I see], {ref} {is_}.'''

NOT = '''No.
No, {ref} {isnt}.
{ref} {isnt}.
No, {ref} {value}.
[According to the list|As far as I see], {ref} {isnt}.
No: {ref} {isnt}.'''

NOT_THERE = '''{ref} is not [there|in the list].
I [can't find|did not find|don't see] {ref} among {your} {many_}.
There is no {name} among {your} {many_}.
[Sorry|I'm sorry], {ref} is not among {your} {many_}.
I don't know: {ref} is not in the list.
[The list|The result] does not have {ref}.'''


def found_one(view, name):
    """Returns the thought that looks for a record by its name, and the values
    of it, or None if it is not there."""

    parts = []

    for row in view.case.rows:
        parts.append(f'{view.row(row)}: {"yes" if row[0] == name else "no"}.')

        if row[0] == name:
            return ' '.join(parts), row[1]

    return ' '.join([*parts, 'Not there.']), None


def one_of(rng, case):
    """Returns a record, which is now and then not in the result."""

    return rng.choice(case.rows if case.rows and rng.random() < 0.92
                      else case.others)


def whether(rng):
    """Something is true of the record with this name or not."""

    thing, field = drawn(rng, lambda f: f.tests or f.less)
    case = Case(rng, thing, [field], SIZES)
    test = Test(rng, case, field, True)
    name, values = one_of(rng, case)
    there, holds = name in case.names(), test.holds(values)
    ref = case.ref(name)
    ask = rng.choice(WHETHER)

    # who heard that it is not so wants to know the contrary

    asked, other = (test.no, test.yes) if '{isnt}' in ask \
        and not NO.search(test.no) else (test.yes, test.no)
    holds = holds == (asked == test.yes)
    slots = {**case.slots, 'ref': ref, 'q': question(ref, asked),
             'is_': asked, 'isnt': asked,
             'the_': capital(case.slots['the'])}
    short = rng.choice(YES_OR_NO) if there and rng.random() < SHORT_SHARE \
        else ''
    value = case.clause(field, values[field]) if field.kind != 'flag' else ''

    def think(view):
        if not case.rows:
            return empty(rng, view)

        looked, found = found_one(view, name)

        if found is None:
            return looked

        read = test.why(view, found).lstrip(': ')
        read = view.head({field: f': {read}.'})

        return f'{looked} {read.lstrip(": ")} So {"yes" if holds else "no"}.'

    if not there:
        answer = said(rng, NOT_THERE, name=name, **slots)
    elif short:
        answer = 'Yes' if holds else 'No'
    else:
        answer = said(rng, YES if holds else NOT, **{
            **slots, 'isnt': other, 'value': value})

    def wrong(text):
        if not there:
            return nothing(text)

        rest = re.sub(re.escape(name), ' ', text, flags=re.IGNORECASE)
        no, yes = NO.search(rest), states(rest, 'yes')

        # both may end alike: "without a prescription", "needs a prescription"

        contrary = states(text, tail(other)) and not states(asked, tail(other))

        if holds:
            right = yes or states(text, tail(asked)) and not no
            right = right and not contrary
        else:
            right = (no or contrary
                     or states(text, ways(case.bare(field, values[field])))) \
                and not yes

        return None if right else f'it is {holds} that {ref} {asked}: {text}'

    return Asked(case, ask, slots, short, answer, think, wrong)


# ------------------------------------------------------- one or two fields


DETAILS = Split('''What {are} {what} of {ref}? [Look at|See|Check] {the} {many_}.
[Tell|Give] me {what} of {ref}, one of {the} {many_}.
I need {what} of {ref}. You find {ref} among {the} {many_}.
From the list of {many_}: {bare} of {ref}, please.
[Look up|Find] {ref} in the list of {many_} and tell me {what}.
{ref} (one of {the} {many_}): {bare}?
Of {the} {many_}, I'm interested in {ref}. What {are} {what}?
[Go through|Check] {the} {many_} for {ref}. I want {what}.
{the_} {many_}: what {are} {what} of {ref}?
Among {the} {many_} there should be {ref}. {What}, please.
[Can|Could] you look through {the} {many_} and tell me {what} of {ref}?
{bare} of {ref}? It's in the list of {many_}.
What does the list of {many_} say about {ref}? I only need {what}.
Get {the} {many_} and read out {what} of {ref}.'''.splitlines())

ONE_VALUE = '''{v}
{v}.
The {noun} of {ref} is {v}.
{ref}: {v}.
{noun}: {v}.
It is {v}.
{ref} {clause}.
The {noun} is {v}.'''

TWO_VALUES = '''The {noun} of {ref} is {v} and the {noun2} is {v2}.
{noun}: {v}, {noun2}: {v2}.
{v} and {v2}.
{ref}: {v}, {v2}.
{ref}: {noun} {v}, {noun2} {v2}.
{its_} {noun} is {v}, {its} {noun2} {v2}.
{ref} {clause} and {clause2}.
{v} ({noun}) and {v2} ({noun2}).'''


def details(rng):
    """One field or two of the record with this name."""

    thing, field = drawn(rng, lambda f: f.noun)
    nouns = [f for f in thing.fields if f.noun and f is not field]
    need = [field, *rng.sample(nouns, min(len(nouns), rng.random() < 0.65))]
    case = Case(rng, thing, need, SIZES)
    name, values = one_of(rng, case)
    there, ref = name in case.names(), case.ref(name)
    what = ' and '.join(f'the {f.noun}' for f in need)
    slots = {**case.slots, 'ref': ref, 'what': what, 'What': capital(what),
             'bare': ' and '.join(f.noun for f in need),
             'are': 'are' if need[1:] else 'is',
             'the_': capital(case.slots['the'])}

    def think(view):
        if not case.rows:
            return empty(rng, view)

        looked, found = found_one(view, name)

        if found is None:
            return looked

        read = [f'{view.labels.get(f, f.noun)}: '
                f'{view.read(f, found[f])}, {"yes" if f in need else "no"}.'
                for f in case.fields if f in need or not view.text]
        last = max(i for i, r in enumerate(read) if r.endswith('yes.'))

        return ' '.join([looked, *read[:last + 1]])

    if there:
        of = {f'{key}{i}': text for i, f in zip(('', 2), need)
              for key, text in (('noun', f.noun),
                                ('v', case.said(f, values[f])),
                                ('clause', case.clause(f, values[f])))}
        answer = said(rng, TWO_VALUES if need[1:] else ONE_VALUE, **slots,
                      its_=capital(case.slots['its']), **of)
    else:
        answer = said(rng, NOT_THERE, name=name, **slots)

    def wrong(text):
        if not there:
            return nothing(text) or named(case, (), text)

        for f in need:
            if not states(text, ways(case.bare(f, values[f]))):
                return f'{values[f]} is not in: {text}'

        return next((f'{n} is in: {text}' for n in case.names()
                     if n != name and among(n, text)), None)

    return Asked(case, rng.choice(DETAILS), slots, '', answer, think, wrong)


# ------------------------------------------------------------ by its place


NTH = Split('''What is the {nth} {one} in the list of {many_}?
[Give|Tell] me the {nth} in the list of {many_}.
[Show|Name] the {nth} {one} on the list of {many_}.
List {the} {many_}. [I only need|Just tell me] the {nth} one.
Which {one} comes {nth} in the list of {many_}?
The {nth} {one} on the list of {many_}?
In the list of {many_}, which one comes {nth}?
[Go|Look] through {the} {many_} and name only the {nth} in the list.
Of {the} {many_}, take the {nth} in the list.
I'd like to know the {nth} of {the} {many_}, as they are listed.
which is the {nth} {one} in the list of {many_}
[Can|Could] you read me the {nth} entry in the list of {many_}?
{many_}: which is listed {nth}?'''.splitlines())

WITH = Split('''And what is {its} {noun}?
I also need {its} {noun}.
With the {noun}, please.
What about {its} {noun}?
And the {noun}?
Name and {noun}, please.
Also tell me the {noun}.
I want the {noun}, too.
Add the {noun}.
The {noun} as well, please.'''.splitlines())

NTH_IS = '''{name}
{ref}.
The {nth} is {ref}.
It is {ref}.
The {nth} {one_} is {ref}.
The {nth} on the list: {ref}.
[That is|That would be] {ref}.
{ref} comes {nth}.'''

NTH_HAS = '''{ref}, {noun}: {v}.
{ref} ({noun} {v}).
The {nth} is {ref}, and {its} {noun} is {v}.
{ref}. The {noun} is {v}.
{ref}: {v}.
The {nth} {one_} is {ref}. {its_} {noun} is {v}.
{ref} comes {nth} and {clause}.'''

NO_NTH = '''There is no {nth} one.
The list has only {n}.
There [are|is] no {nth} {one}, the list ends before.
[Sorry|I'm sorry], the list has no {nth} {one}.
There is no {nth} {one} in the list.
No, there are fewer than that.'''


def nth(rng):
    """The record at this place of the list, or the last, often with a
    field."""

    thing, field = drawn(rng, lambda f: f.noun)
    case = Case(rng, thing, [field], SIZES)
    n = len(case.rows)
    last = n > 0 and rng.random() < 0.3
    at = n if last else rng.randint(1, max(n, 1)) if rng.random() < 0.93 \
        else n + 1
    word = 'last' if last else ORDINALS[at - 1]
    with_ = rng.random() < 0.4
    short = rng.choice(NAME_ONLY) if not with_ and at <= n \
        and rng.random() < SHORT_SHARE else ''
    ask = rng.choice(NTH)
    slots = {**case.slots, 'nth': word, 'noun': field.noun}

    if with_:
        ask += ('' if ask[-1] in '.?!' else '.') + f' {rng.choice(WITH)}'

    def think(view):
        if not case.rows:
            return empty(rng, view)

        seen = case.rows if last or at > n else case.rows[:at]
        parts = [f'{i} {view.row(row)}.' for i, row in enumerate(seen, 1)]

        if at > n:
            return ' '.join([*parts, f'No {at}.'])

        name, values = seen[-1]
        parts += ['No more.'] if last else []
        parts += [view.head({field: f': {view.read(field, values[field])}.'})
                  ] if with_ else []

        return ' '.join([*parts, f'So {name}.'])

    if at > n:
        return Asked(case, ask, slots, '', said(
            rng, NO_NTH if n else NOTHING, n=counted(rng, n), **slots), think,
            lambda text: named(case, (), text) or (
                None if states(text, f'only|just|fewer|{n}|{in_words(n)}')
                else nothing(text)))

    name, values = case.rows[at - 1]
    value = case.bare(field, values[field])
    answer = name if short else said(
        rng, NTH_HAS if with_ else NTH_IS, name=name, ref=case.ref(name),
        v=case.said(field, values[field]),
        clause=case.clause(field, values[field]),
        its_=capital(case.slots['its']), **slots)

    def wrong(text):
        return named(case, [name], text) or (
            f'{value} is not in: {text}'
            if with_ and not states(text, ways(value)) else None)

    return Asked(case, ask, slots, short, answer, think, wrong)


# ------------------------------------------------------------------- the sum


TOTAL = Split('''What is the total {noun} of {the} {many_}?
Add up the {noun} of {the} {many_}.
What is the {noun} of {the} {many_} [together|in total|altogether]?
[I need|Work out|Calculate] the total {noun} of {the} {many_}.
If I take {the} {many_} together, what is the total {noun}?
{many_}: total {noun}?
[Sum up|Add together] the {noun} of each {one_}, please.
[Can|Could] you add up the {noun} of {the} {many_}?
What total {noun} do {the} {many_} have?
Look at {the} {many_} and tell me the total {noun}.
total {noun} of {the} {many_}
Take the {noun} of each {one_} and give me the sum.'''.splitlines())

TOTAL_OF = Split('''What is the total {noun} of {two}? [Look at|See] {the} {many_}.
Add up the {noun} of {two}, which are among {the} {many_}.
Of {the} {many_}, I want {two}. What is their total {noun}?
I need the total {noun} of {two}. They are in the list of {many_}.
Take {two} from {the} {many_} and add up the {noun}.
From the list of {many_}: {two}. The total {noun}, please.
[Look up|Check] {the} {many_}: what is the {noun} of {two} together?
If I take {two} from the list of {many_}, what is the total {noun}?
[Can|Could] you add up the {noun} of {two}? See the list of {many_}.
total {noun} of {two}, see the list of {many_}'''.splitlines())

SUM = '''{s}.
{s}
[Together|In total|Altogether]: {s}.
The total {noun} is {s}.
[It adds up to|The sum is|That makes] {s}.
{s} in total.
[It is|That is] {s} together.
I get {s}.'''


def total(rng):
    """The sum of a field of two or three records."""

    thing, field = drawn(rng, lambda f: f.adds)
    some = rng.random() < 0.4
    case = Case(rng, thing, [field], (3, 4, 4, 5) if some else (2, 2, 3, 3))
    chosen = rng.sample(case.rows, 2) if some else case.rows
    wanted = [name for name, _ in case.rows if any(name == n
                                                   for n, _ in chosen)]
    numbers = [v[field] for name, v in case.rows if name in wanted]

    if len(numbers) > 2 and max(numbers) > 999:
        return total(rng)

    s = str(sum(numbers))
    short = rng.choice(NUMBER_ONLY) if rng.random() < SHORT_SHARE else ''
    slots = {**case.slots, 'noun': field.noun,
             'two': ' and '.join(case.ref(n) for n, _ in chosen)}

    def think(view):
        parts = [view.head({field: ': add.'})]

        for row in case.rows:
            yes = row[0] in wanted
            parts.append(view.row(row) + (': yes' if yes and some else ': no'
                                          if some else '')
                         + (f' {row[1][field]}.' if yes else '.'))

        return ' '.join(parts) + '\n' + '\n'.join(digits.sum_list(numbers)) \
            + f'\nSo {s}.'

    answer = s if short else said(rng, SUM, s=case.said(field, s), **slots)

    return Asked(case, rng.choice(TOTAL_OF if some else TOTAL), slots, short,
                 answer, think, lambda text: None if states(text, s)
                 else f'{s} is not in: {text}')


# ------------------------------------------------------------ told in a text


# = the noun; names of the tool; its descriptions; its parameter: names:
#   description: slot; topics that are close
# : the text
# a slot | questions / questions > answers / answers

TOLD = '''
= parcel; [track|locate|find] parcel / parcel [status|tracking|info]; [Tracks|Finds] a parcel / Where a parcel is[ and when it comes|]; number code parcel tracking_number: Number of the parcel: code; deliveries
: Parcel {code} left {a} at {t} and is due in {b} at {u}.
: {code} was picked up in {a} at {t}. It will be in {b} at {u}.
: Left {a} at {t}. Parcel {code} should reach {b} at {u}.
u | When is parcel {code} due? / At what time will parcel {code} arrive? / parcel {code}: when does it come? / I'm waiting for parcel {code}. At what time will it be there? / When can I expect parcel {code}? / Tell me when parcel {code} gets there. > Parcel {code} is due at {u}. / At {u}. / It is due in {b} at {u}.
t | When did parcel {code} start? / At what time was parcel {code} sent off? / Since when is parcel {code} on its way? / parcel {code}, when did it leave? / I want to know when parcel {code} set off. > Parcel {code} left at {t}. / At {t}. / It left {a} at {t}.
a | Where was parcel {code} sent from? / Which town does parcel {code} come from? / From where was parcel {code} sent? / Parcel {code}: where did it start? / Look up where parcel {code} comes from. > Parcel {code} comes from {a}. / From {a}. / It left {a} at {t}.
b | Where is parcel {code} going? / To which town is parcel {code} sent? / What is the destination of parcel {code}? / Parcel {code}: where to? / In which town will parcel {code} arrive? > Parcel {code} goes to {b}. / To {b}. / It is due in {b} at {u}.

= train; [find|get|show] train / train [info|status|lookup]; [Looks up|Shows] a train / Times and platform of a train; train number train_no: Number of the train: train; departures, train tickets
: {train} leaves {a} at {t} from platform {n}. It gets to {b} at {u}.
: {train} to {b} departs at {t} in {a}, platform {n}, and arrives at {u}.
t | When does {train} leave? / At what time does {train} depart? / {train}: departure? / When do I have to be on {train}? / I take {train}. When does it start? > {train} leaves at {t}. / At {t}. / It departs at {t}.
u | When does {train} arrive? / At what time is {train} there? / {train}: arrival? / How late will it be when {train} arrives? / My sister comes by {train}. When is it there? > {train} arrives at {u}. / At {u}. / It gets to {b} at {u}.
n | Which platform does {train} leave from? / From which platform does {train} go? / {train}: platform? / What is the platform of {train}? / Where does {train} stand? I mean the platform. > {train} leaves from platform {n}. / Platform {n}. / From platform {n}.
b | Where does {train} go? / What is the last stop of {train}? / Where does {train} take me? / {train}: where to? / In which town does {train} arrive? > {train} goes to {b}. / To {b}. / It arrives in {b}.

= repair; [check|get|find] repair / repair [status|state]; [State|Status] of a repair / [Looks up|Checks] a repair; order code repair_no number: Number of the repair: code; orders, my orders
: Repair {code}: the {product} is ready since {d} and costs {m} euros. It can be collected until {e}.
: The {product} of order {code} was repaired on {d}. The price is {m} euros, and the shop keeps it until {e}.
m | What does repair {code} cost? / How much do I have to pay for repair {code}? / The price of repair {code}? / Repair {code}: how many euros? / How expensive was repair {code}? > It costs {m} euros. / {m} euros. / Repair {code} costs {m} euros.
e | Until when can I collect repair {code}? / How long does the shop keep repair {code}? / Repair {code}: what is the last day to pick it up? / By which day must I fetch repair {code}? / When do I have to get repair {code} at the latest? > Until {e}. / It can be collected until {e}. / {e} is the last day.
d | On which day was repair {code} finished? / Since when is repair {code} ready? / When did they finish repair {code}? / Repair {code}: which day was it done? / What day did repair {code} get ready? > It was ready on {d}. / On {d}. / Repair {code} was done on {d}.

= booking; [get|find|show] booking / booking [info|details]; [Shows|Finds] a booking / Details of a booking; code booking reference booking_no: Code of the booking: code; my bookings, hotels
: Booking {code} is for {n} guests at the {venue}, from {x} to {y}.
: {p} booked {n} places at the {venue} ({code}). The stay begins on {x} and ends on {y}.
n | For how many people is booking {code}? / How many guests does booking {code} have? / Booking {code}: how many people? / How many of us are in booking {code}? / I need the number of guests of booking {code}. > It is for {n} people. / {n}. / Booking {code} is for {n}.
x | When does booking {code} begin? / What is the first day of booking {code}? / Booking {code}: arrival? / From which day is booking {code}? / On which day do we arrive with booking {code}? > It begins on {x}. / On {x}. / From {x}.
y | When does booking {code} end? / What is the last day of booking {code}? / Booking {code}: departure? / Until which day is booking {code}? / On which day do we leave with booking {code}? > It ends on {y}. / On {y}. / Until {y}.

= class; [find|get|look up] class / class [info|news|details]; News about a class / [Shows|Finds] what is new about a class; name class title: Name of the class: language; the agenda
: The {language} class on {d} moved from the {r} to the {s}. It begins at {t}.
: {p} teaches the {language} class on {d} instead of {q}. It starts at {t} in the {s}, not in the {r}.
s | Where is the {language} class? / In which room is the {language} class now? / {language} class: which room? / What room do I go to for the {language} class? / Where does the {language} class take place? > It is in the {s}. / In the {s}. / The {language} class is in the {s}.
t | When does the {language} class begin? / At what time does the {language} class start? / {language} class, what time? / What time is the {language} class? / How late does the {language} class start? > It begins at {t}. / At {t}. / The {language} class starts at {t}.
d | On which day is the {language} class? / Which day is the {language} class? / {language} class: what day? / What day does the {language} class take place? / On what day do I have the {language} class? > It is on {d}. / On {d}. / The {language} class is on {d}.

= match; [find|get|show] match / match [report|result]; [Report|Result] of a match / [Finds|Shows] the last match of a team; team club name: [Team|Name of the team]: team; sports results
: {team} won against {team2} by {k} to {j}. The match was in {a}.
: In {a}, {team} beat {team2} with {k} to {j}. {p} was the best player.
team2 | Who did {team} play against? / Against whom did {team} play? / {team}: who was the opponent? / Which team did {team} beat? / Which club was the opponent of {team}? > {team2}. / It was {team2}. / Against {team2}.
a | Where did {team} play? / In which city was the match of {team}? / {team}: where was the match? / In what town did {team} win? / What was the place of the match of {team}? > In {a}. / They played in {a}. / The match was in {a}.
k | How many goals did {team} score? / What was the number of goals of {team}? / {team}: how many goals did they get? / How often did {team} score? / I want the goals of {team}, not of the others. How many? > {k}. / They scored {k}. / {team} scored {k} goals.

= payment; [check|find|get] payment / payment [status|info]; [Status|State] of a payment / [Checks|Finds] what was paid; invoice invoice_no number code: Number of the invoice: code; expenses, orders, the bank account
: We received {m} euros from {p} for invoice {code} on {x}. {v} euros are still open.
: Invoice {code}: {p} paid {m} euros on {x}, and {v} euros are left to pay.
m | How much was paid for invoice {code}? / What did they pay for invoice {code}? / Invoice {code}: how much did we get? / How many euros came in for invoice {code}? / What did we receive for invoice {code}? > {m} euros. / We got {m} euros. / {m} euros were paid.
v | How much is still open for invoice {code}? / What is left to pay of invoice {code}? / Invoice {code}: what is missing? / How many euros do we still get for invoice {code}? / How much has not been paid of invoice {code}? > {v} euros. / {v} euros are open. / Still {v} euros.
p | Who paid invoice {code}? / Whose payment came in for invoice {code}? / Invoice {code}: who paid? / From whom is the money for invoice {code}? / Who sent us money for invoice {code}? > {p}. / It was {p}. / {p} paid it.
x | When was invoice {code} paid? / On which day did the money for invoice {code} come? / Invoice {code}: date of payment? / On what date did we get money for invoice {code}? / When did somebody pay for invoice {code}? > On {x}. / It was paid on {x}. / The money came on {x}.

= ferry; [find|get|check] ferry / ferry [status|info]; [Status|News] of a ferry / [Checks|Finds] a ferry; name ship ferry: Name of the ferry: ship; departures
: The {ship} from {a} to {b} is late: it leaves at {u} instead of {t}.
: The {ship} should have left {a} at {t}. It will go at {u} and be in {b} {m} minutes later.
u | When does the {ship} leave now? / At what time will the {ship} go? / The {ship} is late, I heard. When does it leave? / {ship}: what is the new departure time? / At what time does the {ship} really leave? > It leaves at {u}. / At {u}. / The {ship} goes at {u}.
t | When should the {ship} have left? / What was the planned time of the {ship}? / {ship}: when was it planned to go? / At what time was the {ship} supposed to leave? / What was the old departure time of the {ship}? > It was planned for {t}. / At {t}. / The {ship} should have left at {t}.
a | Where does the {ship} start? / From which port does the {ship} leave? / {ship}: from where? / In which town do I get on the {ship}? / What is the first port of the {ship}? > In {a}. / From {a}. / The {ship} starts in {a}.
b | Where does the {ship} go? / To which port does the {ship} sail? / {ship}: where to? / In which town do I get off the {ship}? / What is the destination of the {ship}? > To {b}. / It goes to {b}. / The {ship} sails to {b}.

= file; [who changed|describe|inspect] file / file [history|info]; [History|Description] of a file / Who changed a file[ and when|]; path file name filename: [Path|Name] of the file: file; reading files, folders, writing files
: {p} wrote {file} on {x}, and {q} changed it on {y}. It has {m} lines.
: The file {file} has {m} lines. It was made by {p} on {x} and last edited by {q} on {y}.
q | Who changed {file} last? / Who was the last to edit {file}? / Whose are the last changes of {file}? / Who edited {file}? / By whom was {file} changed? > {q}. / It was {q}. / {q} changed it.
p | Who wrote {file}? / Who made {file}? / Who is the author of {file}? / By whom was {file} created? / Who started {file}? > {p}. / It was {p}. / {p} made it.
y | When was {file} changed? / On which day was {file} edited last? / What is the date of the last change of {file}? / When did somebody edit {file}? / Since when is {file} as it is now? > On {y}. / It was changed on {y}. / {y} is the day of the last change.
m | How many lines does {file} have? / How long is {file}, in lines? / What is the number of lines of {file}? / Count of lines in {file}? / How many lines are in {file}? > {m}. / It has {m} lines. / {file} has {m} lines.

= shift; [find|get|show] shift / shift [plan|info]; [Shows|Finds] the shift of a person / Who works when; name person worker employee: Name of the person: p; the agenda
: {p} works on {d} from {t} to {u}. {q} takes over on {e}.
: On {d}, {p} begins at {t} and stays until {u}. The next shift, on {e}, is that of {q}.
u | Until when does {p} work? / When does the shift of {p} end? / At what time can {p} go home? / {p}: end of the shift? / How long does {p} stay? I mean until what time. > Until {u}. / The shift ends at {u}. / {p} works until {u}.
t | When does {p} begin to work? / At what time does the shift of {p} start? / From when on is {p} at work? / {p}: start of the shift? / When does {p} have to be there? > At {t}. / {p} begins at {t}. / The shift starts at {t}.
d | On which day does {p} work? / Which day is the shift of {p}? / What day is {p} on duty? / {p}: day of the shift? / On what day does {p} have a shift? > On {d}. / {p} works on {d}. / It is {d}.
q | Who works after {p}? / Who takes the shift after {p}? / Who comes after {p}? / Who has the next shift after that of {p}? / By whom is {p} followed? > {q}. / It is {q}. / {q} comes next.

= car; [get|check|read] car / car [status|state|info]; [State|Status] of an electric car / Battery and range of a car; car name plate vehicle: Name of the car: model; charging stations
: The {model} is charged to {n} percent and can drive {m} km. It will be full at {t}.
: {model}: {m} km left with {n} percent in the battery. It is plugged in since {t} in {a}.
n | How full is the battery of the {model}? / What is the charge of the {model} in percent? / The {model}: how many percent? / Battery level of the {model}? / How many percent does the {model} have? > {n} percent. / It has {n} percent. / The {model} is at {n} percent.
m | How far can the {model} drive? / What is the range of the {model}? / The {model}: how many kilometers are left? / How many km can I go with the {model}? / Range of the {model}, please. > {m} km. / It can drive {m} km. / The {model} has {m} km left.

= room; [find|get|check] room / room [info|status|booking]; [Shows|Checks] who has a room / The booking of a room; room name location: [Room|Which room]: r; the calendar, appointments, the agenda
: The {r} is booked by {p} until {t}. After that, {q} has it until {u}.
: {p} has the {r} until {t}, then {q} until {u}. It seats {n} people.
p | Who is in the {r} now? / Who booked the {r} first? / By whom is the {r} used at the moment? / {r}: who has it now? / Who has the {r} right now? > {p}. / It is {p}. / {p} has it.
q | Who has the {r} next? / Who gets the {r} afterwards? / By whom is the {r} used later? / {r}: who is next? / Who comes second in the {r}? > {q}. / It is {q}. / {q} is next.
t | Until when does {p} have the {r}? / When does the first booking of the {r} end? / At what time does {p} leave the {r}? / {r}: when is {p} done? / How long is {p} in the {r}? Until what time? > Until {t}. / {p} has it until {t}. / It ends at {t}.
u | When is the {r} free? / At what time do both bookings of the {r} end? / From when on can I have the {r}? / {r}: when is nobody in it any more? / When do all of them leave the {r}? > At {u}. / It is free at {u}. / From {u} on.

= weather station; [read|get|query] station / station [data|report]; [Report|Data] of a weather station / Reads a weather station; place city station town: [Town|Place]: a; the weather, the forecast
: The station of {a} reports {n} degrees and {w} km/h of wind. For {d} it expects {o} degrees.
: It is {n} degrees at the station of {a} now, after {o} degrees at {t}. The wind blows with {w} km/h.
n | How warm is it at the station of {a}? / What does the station of {a} measure now, in degrees? / Temperature at the station of {a} now? / How many degrees does the station of {a} show now? / The station of {a}: how warm is it at the moment? > {n} degrees. / It is {n} degrees. / The station shows {n} degrees.
w | How strong is the wind at the station of {a}? / What wind does the station of {a} report? / Wind at the station of {a}? / How fast does the wind blow at the station of {a}? / The station of {a}: how much wind? > {w} km/h. / The wind has {w} km/h. / It blows with {w} km/h.
'''

# what a slot is; those of one maker could be taken for each other

SLOTS = {
    'a': place, 'b': place, 'code': code, 'd': weekday, 'e': weekday,
    'file': LABELS['file'], 'language': LABELS['language'],
    'model': LABELS['model'], 'p': MAKERS['FIRST'], 'q': MAKERS['FIRST'],
    'product': LABELS['product'], 'r': MAKERS['ROOM'], 's': MAKERS['ROOM'],
    'ship': LABELS['ship'], 'team': LABELS['club'], 'team2': LABELS['club'],
    'train': LABELS['train'], 'venue': LABELS['venue'],
}


def values(rng):
    """Returns a value of each slot.  They differ, and times and dates are in
    the order of the alphabet."""

    found = {}

    for slot, make_ in SLOTS.items():
        while slot not in found or found[slot] in [
                v for s, v in found.items() if s != slot]:
            found[slot] = make_(rng)

    times = sorted(rng.sample(range(6 * 12, 24 * 12), 2))
    days = sorted(rng.sample(range(1, 29), 2))
    month = rng.choice(happen.MONTHS)
    found.update(zip('tu', (f'{t // 12:02}:{t % 12 * 5:02}' for t in times)))
    found.update(zip('xy', (f'{d} {month}' for d in days)))
    found.update(zip('jkno', rng.sample(range(3), 1) + rng.sample(
        range(3, 9), 1) + rng.sample(range(9, 35), 2)))
    found.update(zip('mv', rng.sample(range(40, 990), 2)))
    found['w'] = rng.randint(35, 90)

    return found


# slots of which a text may have several

GROUPS = ('ab', 'de', 'pq', 'rs', 'tu', 'xy', 'jk', 'mv', ('team', 'team2'))


@dataclass(frozen=True)
class Report:
    """What a tool tells in a text.

    takes   names, description and slot of its parameter
    texts   Split of the texts
    asks    by slot: Split of questions, and answers
    """
    noun: str
    tools: str
    about: str
    takes: Tuple[str, str, str]
    close: Tuple[str, ...]
    texts: Split
    asks: dict


def reports():
    """Returns the Reports."""

    found = []

    for block in TOLD.strip().split('\n\n'):
        head, *rows = block.splitlines()
        noun, tools, about, takes, close = (c.strip() for c
                                            in head[2:].split(';'))
        asks = {}

        for row in rows:
            if not row.startswith(': '):
                slot, _, rest = row.partition(' | ')
                questions, _, answers = rest.partition(' > ')
                asks[slot] = (Split(questions.split(' / ')),
                              answers.split(' / '))

        found.append(Report(
            noun, '\n'.join(tools.split(' / ')), '\n'.join(about.split(' / ')),
            tuple(p.strip() for p in takes.split(':')), commas(close),
            Split(r[2:] for r in rows if r.startswith(': ')), asks))

    return tuple(found)


REPORTS = reports()


def told(rng):
    """The result is a text of one or two sentences; one of its values is
    asked for."""

    report = rng.choice(REPORTS)
    text = rng.choice(report.texts)
    slot = rng.choice([s for s in report.asks if f'{{{s}}}' in text])
    slots = values(rng)
    asks, answers = report.asks[slot]
    ask = rng.choice(asks)
    question_ = capital(ask.format(**slots))
    value = str(slots[slot])
    answer = rng.choice((*answers, *answers, value, f'{value}.'))
    named_, about, key = report.takes
    service_ = service(f'told about {report.noun}', report.tools, report.about,
                       [parameter('of', named_, about)], 'text')
    result = capital(text.format(**slots))
    records = Text(json.dumps({rng.choice(('message', 'text', 'status')):
                               result}) if rng.random() < 0.25 else result)
    use = Use(service_, manner(rng, question_, ask.startswith('{')),
              {'of': slots[key]}, records,
              capital(answer.format(**slots)), (),
              f'look up the {report.noun} {slots[key]}')
    parts = scan.sentences(result)
    start = len(text[:text.index(f'{{{slot}}}')].format(**slots))
    there = next(i for i in range(len(parts))
                 if len(' '.join(parts[:i + 1])) > start)
    thought = scan.through(parts, question_, {there})

    def wrong(text):
        if not states(text, ways(value)):
            return f'{value} is not in: {text}'

        return next((f'{slots[k]} is in: {text}' for group in GROUPS
                     if slot in group for k in group
                     if k != slot and states(text, str(slots[k]))), None)

    return finish(rng, use, lambda api: f'{thought} So {value}.', wrong,
                  report.close)


# ------------------------------------------------------------ opening hours


OPEN_PLACES = names.listed('''library, pharmacy, bakery, museum, gym, pool,
post office, bike shop, bookshop, garden center, town hall, zoo, cafe, clinic,
bank, castle, ticket office, flea market, ice rink, planetarium, hardware
store, toy shop, recycling center, tailor, tourist office, sauna, gallery,
cinema, canteen, language school''')

WEEK = tuple(happen.DAYS.split('|'))

# the names of an object's entries, each for some days

WEEKS = (
    (('weekdays', WEEK[:5]), ('Saturday', WEEK[5:6]), ('Sunday', WEEK[6:])),
    (('Mon-Fri', WEEK[:5]), ('Sat', WEEK[5:6]), ('Sun', WEEK[6:])),
    (('weekdays', WEEK[:5]), ('weekend', WEEK[5:])),
    (('mon_thu', WEEK[:4]), ('fri', WEEK[4:5]), ('sat_sun', WEEK[5:])),
    (('Mon-Sat', WEEK[:6]), ('Sun', WEEK[6:])),
    tuple((d, (d,)) for d in WEEK), tuple((d[:3].lower(), (d,)) for d in WEEK),
    tuple((d.lower(), (d,)) for d in WEEK))

OPEN_ON = Split('''Is the {place} open on {day}?
[Can|Could] I go to the {place} on {day}?
Does the {place} open on {day}?
I want to go to the {place} on {day}. Is it open?
[Check|See] [if|whether] the {place} is open on {day}.
Do they open the {place} on {day}?
{day}, {place}: open?
I'd like to know whether the {place} is open on {day}.
We have time on {day}. Is the {place} open then?
is the {place} open {day}
Is {day} a day on which the {place} is open?
[Somebody said|I heard] that the {place} is closed on {day}. Is it open?'''
                .splitlines())

OPEN_AT = Split('''Is the {place} open on {day} at {time}?
[Can|Could] I go to the {place} on {day} at {time}?
I want to be at the {place} on {day} at {time}. Is it open then?
{day} at {time}: is the {place} open?
[Check|See] [if|whether] the {place} is open on {day} at {time}.
Would the {place} be open at {time} on {day}?
If I come to the {place} on {day} at {time}, is it open?
is the {place} open {day} {time}
My friend is at the {place} on {day} at {time}. Will it be open?
I can only go to the {place} at {time} on {day}. Is it open?'''
                .splitlines())

OPENS_WHEN = Split('''When does the {place} open on {day}?
At what time does the {place} open on {day}?
From when on is the {place} open on {day}?
How early can I go to the {place} on {day}?
{place}, {day}: when does it open?
Tell me when the {place} opens on {day}.
I need the opening time of the {place} on {day}.
On {day}, what time do they open the {place}?
when does the {place} open {day}
From what time can we go to the {place} on {day}?'''.splitlines())

CLOSES_WHEN = Split('''When does the {place} close on {day}?
Until when is the {place} open on {day}?
At what time does the {place} close on {day}?
How long can I stay at the {place} on {day}? Until what time?
{place}, {day}: when does it close?
Tell me when the {place} closes on {day}.
I need the closing time of the {place} on {day}.
On {day}, what time do they close the {place}?
when does the {place} close {day}
How late can we go to the {place} on {day}?'''.splitlines())

IT_IS_OPEN = '''Yes.
Yes, the {place} is open {when}.
The {place} is open {when}.
Yes, it is open {when}.
Yes, on {day} it is open from {a} to {b}.
Yes, from {a} to {b}.
It is open: {a} to {b}.'''

IT_IS_CLOSED = '''The {place} is closed {when}.
It is closed {when}.
Closed {when}.
The {place} isn't open {when}.
[Sorry|I'm sorry], it's closed {when}.'''

NO_IT_IS = '''No.
No, the {place} is closed {when}.
No, it's closed.
No, the {place} isn't open {when}.
No, {when} it's closed.'''

IT_IS_AT = '''{t}.
{t}
{t} on {day}.
[The answer|My answer]: {t}.
The {place} {does} at {t}.
It {does} at {t} on {day}.
On {day} it {does} at {t}.'''


def hours(rng):
    """Opening hours, which are an object in a result."""

    place_, day_ = rng.choice(OPEN_PLACES), rng.choice(WEEK)
    week = rng.choice(WEEKS)
    style = rng.choice(('{}-{}', '{}:00-{}:00', '{}:00 - {}:00', 'from {} to '
                        '{}', None))
    gone = rng.choice(('closed', 'closed', 'closed', '-'))
    spans = [None if rng.random() < (0.5 if 'Sunday' in days else 0.15
                                     if not days[1:] else 0)
             else (rng.randint(6, 11), rng.randint(13, 22))
             for _, days in week]
    at = next(i for i, (_, days) in enumerate(week) if day_ in days)
    span, minutes = spans[at], ':00' if style is None or ':' in style else ''

    def written(span):
        return gone if span is None else style.format(*span) if style \
            else {'open': f'{span[0]}:00', 'close': f'{span[1]}:00'}

    shown = {key: written(s) for (key, _), s in zip(week, spans)}
    outer = rng.choice(('hours', 'opening_hours', 'open', 'times', 'schedule'))
    result = rng.choice((
        shown, {outer: shown}, {'name': place_, outer: shown},
        {outer: shown, 'street': f'{rng.choice(names.LAST)} Street '
                                 f'{rng.randint(1, 99)}'},
        {'place': {'name': place_, outer: shown}}))
    way = rng.choice(('on', 'on', 'at', 'opens', 'closes'))
    time = rng.choice([h for h in range(7, 23) if span is None
                       or h not in span])
    slots = dict(place=place_, day=day_, time=f'{time}:00')
    ask = rng.choice({'on': OPEN_ON, 'at': OPEN_AT, 'opens': OPENS_WHEN,
                      'closes': CLOSES_WHEN}[way])
    is_open = span is not None and (way != 'at' or span[0] < time < span[1])
    said_ = shown[week[at][0]]
    read = said_ if isinstance(said_, str) \
        else f'{said_["open"]} to {said_["close"]}'
    thought = f'{day_}? ' + ' '.join(
        f'{key}: no.' for key, _ in week[:at]) + (' ' if at else '') \
        + f'{week[at][0]}: yes, {read}.'

    if way == 'at' and span:
        thought += f' {digits.compare(time, span[0])}, ' \
            f'{digits.compare(time, span[1])}.'

    if way in ('on', 'at') or not is_open:
        when = f'on {day_} at {time}:00' if way == 'at' else f'on {day_}'
        end = 'closed' if way in ('opens', 'closes') else 'yes' if is_open \
            else 'no'
        answer = say(rng, rng.choice(
            (IT_IS_OPEN if is_open else NO_IT_IS + '\n' + IT_IS_CLOSED
             if way in ('on', 'at') else IT_IS_CLOSED).splitlines()),
            when=when, **slots, **({'a': f'{span[0]}{minutes}',
                                    'b': f'{span[1]}{minutes}'}
                                   if is_open else {}))

        def wrong(text):
            shut = NO.search(text) or states(text, 'closed')

            return None if (states(text, 'yes|open|from') and not shut
                            if is_open else shut) \
                else f'it is {end}, but: {text}'
    else:
        hour = span[way == 'closes']
        end = f'{hour}{minutes}'
        answer = say(rng, rng.choice(IT_IS_AT.splitlines()), t=end, does=way,
                     **slots)
        other = span[way == 'opens']

        def wrong(text):
            return None if states(text, f'{hour}|{hour}:00') and not states(
                text, f'{other}|{other}:00') else f'{end} is not in: {text}'

    service_ = service(
        'hours of a place', '[get|find|check|show] [opening hours|hours]\n'
        '[opening|open|business] [hours|times] [lookup|]\n[when is|is] open',
        '[Opening hours|Hours|Opening times] of a [place|shop|business]\n'
        'When a [place|shop] is open\n[Returns|Finds] the [hours|opening '
        'hours] of a [place|shop] by [its name|day]',
        [parameter('name', 'name place shop business where query',
                   '[Name of the place|Place|Which place]')], 'text')
    use = Use(service_, manner(rng, capital(say(rng, ask, **slots))),
              {'name': place_}, Text(json.dumps(result)), capital(answer), (),
              f'look up the hours of the {place_}', with_article)

    return finish(rng, use, lambda api: f'{thought} So {end}.', wrong,
                  ('opening hours', 'places nearby'))


def with_article(role, wanted, value):
    """Returns true if a place is the wanted one, with an article or
    without."""

    return re.sub('^the ', '', str(value).lower().strip()) == wanted.lower()


# ------------------------------------------------------------------- the task


# words of answers, which are no names

COMMON = frozenset(re.findall('[a-z]+', ' '.join((
    ORDERED, COUNTED, FLAGS, CHOICES, NOTHING, FIRST_IS, FIRST_HAS, SOME_ARE,
    ONE_IS, NONE_IS, NONE_AT_ALL, SO_MANY, SO_MANY_ALL, YES, NOT, NOT_THERE,
    ONE_VALUE, TWO_VALUES, NTH_IS, NTH_HAS, NO_NTH, SUM)).lower()))

QUESTIONS = {extreme: 30, which: 22, count: 12, whether: 12, details: 12,
             nth: 5, total: 8}
PAUSE = '[Let me look.|One moment.|I will check.|||]'
FRAMED = 0.12           # of the requests


def make(rng):
    way = rng.random()

    return (told if way < 0.06 else hours if way < 0.1 else listing)(rng)


def listing(rng):
    """A question about several records."""

    asked = rng.choices([*QUESTIONS], [*QUESTIONS.values()])[0](rng)
    case = asked.case
    user = capital(say(rng, asked.ask, **asked.slots))

    if asked.short:
        user += ('' if user[-1] in '.?!)' else '.') + f' {asked.short}'

    user = manner(rng, user, asked.ask.startswith('{ref}'))
    records = case.records(rng)
    use = Use(case.service(rng), user, case.given, records, asked.answer, (),
              f'look at {case.slots["the"]} {case.slots["many_"]}')

    def wrong(text):
        return asked.wrong(text) or (
            f'not only what was asked for: {text}' if asked.short
            and len(text) > len(asked.answer) + 12 else None)

    return finish(rng, use, lambda api: asked.think(View(case, api, records)),
                  wrong, case.thing.close, bool(asked.short))


def finish(rng, use, think, wrong, close, strict=False):
    """Returns the Task of a call and the answer from its result.

    think   Api -> the thought about the result
    wrong   as in Asked
    close   topics whose tools could be taken for the tool
    """
    user = around(rng, FRAMES if rng.random() < 0.6 else MAILS, use.user) \
        if not strict and rng.random() < FRAMED else use.user
    apis, tools = box(rng, [use], (0, 4), (*close, *ANYTHING),
                      [*SERVICES, *(Case(rng, t, [], ()).service(rng)
                                    for t in rng.sample(THINGS, 8))])
    api = apis[use.service.topic]
    want = request(rng, use.want, use.user, user)
    chosen, reason = choice(api, use), think(api)
    pause = expand(rng, PAUSE)

    def gold(mode):
        thinks = mode != CHAT
        yield Step(f'{want} {chosen}' if thinks else '',
                   '' if thinks else pause, [api.call(use.given)])
        yield Step(f'{want} {reason}' if mode == DISCARD else
                   reason if thinks else '', use.answer)

    return task(rng, 'daily_many', 'multi', [Turn(
        user, lambda text, made: judge([use], apis, text, made)
        or wrong(text), gold)], tools, strict=strict)


# topics of tools that could find anything

ANYTHING = ('a search', 'records', 'the shell', 'the database')
