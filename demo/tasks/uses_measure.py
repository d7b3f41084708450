# Copyright (C) The nginx-dsa authors

"""Services about measures: units of them, and charging stations within a
distance."""

from tasks import names
from tasks.api import parameter, same, service
from tasks.stated import Typed, in_words, meters
from tasks.uses import kinds, one_of


# units: names of each, and how many of the first one of its row it is

UNITS = tuple(tuple((tuple(names_of.split('/')), float(n)) for names_of, n in (
    entry.rsplit(' ', 1) for entry in row.split(', '))) for row in (
        'meters/m/metres 1, kilometers/km/kilometres 1000, miles/mi 1609.344, '
        'feet/ft 0.3048, inches/in 0.0254, yards/yd 0.9144, '
        'centimeters/cm/centimetres 0.01',
        'grams/g 1, kilograms/kg/kilos 1000, pounds/lb/lbs 453.592, '
        'ounces/oz 28.3495, stones/st 6350.29',
        'liters/l/litres 1, milliliters/ml/millilitres 0.001, '
        'gallons/gal 3.78541, pints/pt 0.473176, cups 0.24',
        'seconds/s/sec 1, minutes/min 60, hours/h 3600, days/d 86400, '
        'weeks 604800'))

UNIT = service('units', '''[convert|change] [units|unit|measure|measurement]
[unit|units|measure|measurement] [converter|conversion|convert|calc|calculator]
[compute|get] [unit conversion|conversion|converted units]
[metric|imperial|si] [convert|converter|units]''',
'''[Converts|Changes] [a value|a measure|a quantity] from one unit to another
[Unit conversion|Conversion of units]: length, weight, volume and time
[Returns|Gives|Computes] a [value|quantity] in another unit
[Converter|Calculator] for units of [length, weight, volume and time|measure]
How much a measure is in another unit''', [
    parameter('amount', 'value amount quantity number x magnitude',
              '[The|] [value|number] to convert', kind='number'),
    parameter('origin', 'from from_unit unit source_unit unit_from source',
              '[Unit|The unit] to convert from[, such as km|]'),
    parameter('target', 'to to_unit target_unit unit_to target into',
              '[Unit|The unit] to convert to[, such as miles|]')], 'result')


def alike(role, wanted, value):
    """Compares arguments: as same(), but a unit may have another name."""

    if isinstance(wanted, str):
        for row in UNITS:
            for all_names, _ in row:
                if wanted in all_names:
                    return str(value).lower().strip('. ') in {
                        *all_names, *(n[:-1] for n in all_names
                                      if n.endswith('s') and len(n) > 3),
                        'foot' if 'feet' in all_names else wanted,
                        'inch' if 'inches' in all_names else wanted}

    return same(role, wanted, value)


def unit_case(rng):
    one, other = rng.sample(rng.choice(UNITS), 2)
    amount = rng.choice((rng.randrange(2, 30), rng.randrange(2, 1000),
                         10 * rng.randrange(1, 90)))
    said = in_words(amount) if rng.random() < 0.3 and (
        amount < 21 or amount % 10 == 0 and amount < 100) else str(amount)
    result = amount * one[1] / other[1]
    result = f'{result:.4f}' if result > 0.01 else f'{result:.9f}'

    return dict(amount=amount, said=said, origin=rng.choice(one[0]),
                target=rng.choice(other[0]),
                result=result.rstrip('0').rstrip('.'))


LOOK = kinds(UNIT, unit_case, r'''
= convert {amount} {origin} to {target}
@ amount origin target
- [How much|What] is {said} {origin} in {target}?
- [Convert|Change] {said} {origin} [to|into] {target}.
- {said} {origin} in {target}[?|, please|]
- How many {target} [are|is] {said} {origin}?
- [I think|I was brought up] in {target}. What's {said} {origin}?
- [The recipe|The manual|The sign] says {said} {origin}. [How many {target} is that?|And in {target}?|I need it in {target}.]
- {amount} {origin} -> {target}
- whats {amount} {origin} in {target} pls
- [My American cousin|My cousin|A friend abroad] speaks of {said} {origin}. [In {target}?|What is that in {target}?]
- Value: {amount}\nFrom: {origin}\nTo: {target}
- [Unit conversion|Convert]: {amount} {origin}, {target}
- [Could|Can] you [work out|tell me|calculate] how many {target} {said} {origin} make?
- If something [is|has] {said} {origin}, [what's that|how much is it] in {target}?
- I have {said} {origin} and the form wants {target}. [What do I write?|Which number do I enter?]
- Turn {said} {origin} into {target}[ for me|].
- In {target}, how much [is|are] {said} {origin}?
- I never remember how to get from {origin} to {target}. It's {said} {origin} now.
- [Please give|Give] me {said} {origin} as {target}.
- [Does anybody know|Do you know] how many {target} there are in {said} {origin}?
- {said} {origin} makes how many {target}?
- The old [book|plan] has everything in {origin}. [For example {said} - in {target}?|It says {said}. How much is it in {target}?]
- ({amount} {origin}) to ({target})
- How much {target} are {said} {origin}?
- [We ordered|They sold us] {said} {origin} of it. I'd like that number in {target}.
- Not in {origin}, in {target} please: {said} {origin}.
- What would {said} {origin} be if I measured in {target}?
> {amount} {origin} [are|make|equal] {result} {target}.
> [That is|It is|That makes] {result} {target}.
> {result} {target}.
> {amount} {origin} = {result} {target}.
> [In {target}|Converted]: {result}.
> [You get|It comes to|The result is] {result} {target}.
> {said} {origin} is {result} in {target}.
> {result}[ in {target}|].
+ {result}
''', '', alike)

CHARGE = service('charging stations', '''[find|search|list|get] [charging stations|chargers|ev chargers|charge points]
[charging|charger|ev|charge point] [stations|search|finder|lookup|nearby|map]
[chargers|charging] [near|nearby|around|within]''',
'''[Finds|Lists|Searches] charging stations [around a place|within a distance]
[Charging stations|Charge points] for electric cars [near a place|nearby]
[Where|At which stations] an electric car can be charged
[Chargers|Charge points] around a [town|place|city], with street and free places
EV [chargers|charging]: [search by place and radius|place and radius]''', [
    parameter('city', 'city location place near center around where town',
              '[Place|Where|City][ to search around|]'),
    parameter('radius', 'radius radius_m within_meters max_distance distance '
              'meters range_m', '[Radius|Distance|How far away], in meters',
              kind='integer')],
    'name street stock')


def charge_case(rng):
    said, radius = meters(rng)
    records = [dict(
        name=one_of(rng, 'Volt|Spark|Green|City|Fast|Blue|Plug|Ohm')
        + one_of(rng, 'Point|Charge|Station|Park|Hub|Stop') + ' '
        + str(rng.randrange(1, 100)),
        street=f'{rng.choice(names.LAST)} '
               f'{one_of(rng, "Street|Road|Lane|Square|Avenue")} '
               f'{rng.randrange(1, 200)}',
        stock=rng.randrange(0, 9)) for _ in range(rng.randint(1, 4))]

    return dict(city=Typed(rng.choice(names.PLACES)), said=said,
                radius=radius, records=records, n=len(records),
                first=records[0]['name'], street=records[0]['street'])


LOOK += kinds(CHARGE, charge_case, r'''
= find a charging station within {radius} meters of {city}
@ city radius
- [Where|Where near {city}] can I charge my [electric |]car? [I'm in {city}, at most {said}.|{city}, not more than {said} away.]
- [Find|Show] me a charging station within {said} of {city}.
- charging station {city:l}, {said}
- My [battery|car] is [nearly empty|at five percent] and I'm in {city}. Any charger within {said}?
- Is there a [charger|charge point] in {city}, at most {said} from the center?
- EV charging: {city}, radius {said}
- [We|I] just got an electric car. Where do we charge it in {city}? Up to {said} is fine.
- Place: {city}\nRadius: {said}\n[One charging station, please.|Charging station?]
- [I can walk|I'd walk] {said} at most. Charging station in {city}?
- Look for chargers {said} around {city} and name the first.
- Within {said}: where can I plug in my car in {city}?
- [Could|Can] you [find|look up] a charging station? I'm in {city} and {said} is as far as I can go.
- Where exists a charging station {said} around {city}?
- [The hotel|Our hotel] in {city} has no charger. Is there one no farther than {said}?
- Chargers near {city}, max. {said}. The first is enough.
- I'd need power for my car in {city}; a station within {said} would do.
- My car can still drive {said}. A charging station in {city}?
- [Uncle|My uncle] has range anxiety in {city}. Nearest charging station, up to {said}?
- Charge point in {city} (within {said})?
- need to charge my car in {city}, no further than {said}
- {city}, {said}, charging station?
- Search for a place to charge an electric car. Around {city}, radius {said}.
- I park in {city} tonight and want to charge my car there. Something within {said}, please.
- From the middle of {city}, go {said} in any direction: where's a charging station?
> [There is|I found|Try] {first}, {street}.
> {first}, {street}.
> {first} is at {street}.
> [You can charge|Charge] at {first}, {street}.
> [The first is|One is] {first} at {street}.
> {first} ({street})[ is within reach|].
> At {street} there is {first}.
> Plug in at {first}, {street}.
+ {first}; {street}

= count the charging stations within {radius} meters of {city}
@ city radius
- How many charging stations are there within {said} of {city}?
- [Count|Please count] the chargers [around|near] {city}, radius {said}.
- number of ev chargers {city:l} within {said}
- {city}: how many charging stations inside {said}?
- [We plan|The town plans] new chargers in {city}. How many are there within {said}?
- Before I buy an electric car: how many charging stations has {city} within {said}?
- Place: {city}\nRadius: {said}\nHow many charging stations?
- [Is {city} good|How good is {city}] for electric cars? Tell me the number of chargers within {said}.
- How much charging stations are in {city} in a distance of {said}?
- If I draw a circle of {said} around {city}, how many charging stations are in it?
- I live in {city}. How many chargers do I have within {said}?
- [Could|Can] you find out how many charge points there are at most {said} from {city}?
- Within {said} around {city}, what's the number of charging stations?
- Charging stations near {city}, not farther than {said} - how many?
- [My neighbor|My dad] says there are no chargers in {city}. How many do you find within {said}?
- No names, only how many: charging stations, {city}, {said}.
- In a radius of {said}, how many places to charge a car does {city} have?
- The charging stations of {city} up to {said} away: count them, please.
- I'm writing about electric cars in {city}. The number of chargers within {said}?
- Do we have a choice of chargers in {city}? Within {said}, how many?
- Search {said} around {city} for charging stations and give me the count.
- Tell me how many EV chargers one finds {said} around {city}.
> [There are|I found] {n}.
> {n}[ charging stations| charger(s)|].
> [It is|That makes|I count] {n}.
> {n}[ within {said}| near {city}|].
> [Charging stations|Number]: {n}.
> {city} has {n} within {said}.
> [The search|It] found {n}.
> You have {n} to choose from.
+ {n}
''', 'city')
