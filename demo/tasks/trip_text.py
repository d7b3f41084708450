# Copyright (C) The nginx-dsa authors

"""Texts of requests for trips: an opening, the rules and the limits, each in
many wordings, in one of several orders."""


# {n} is '1 day' or '3 days'; {when} is 'on 2025-10-01' or 'from 2025-10-01 to
# 2025-10-03'

OPENINGS = (
    'Plan a trip of {n} for me, {when}. It starts in {start}.',
    'I want to travel for {n}, {when}, starting in {start}.',
    'Please plan {n} of travel {when}. Day 1 is in {start}.',
    '{n} of holiday, {when}! I begin in {start}. Make me a plan.',
    'can you plan a trip {when}? it is {n} and begins in {start}.',
    'My trip is {when}, that is {n}, and it starts in {start}. Please plan '
    'it.',
    'Starting in {start}, I have {n} {when}. What could I do?',
    'I need a plan for {n} {when}; the first city is {start}.',
    'plan {n} {when} please, first city {start}.',
    'Hello! Could you plan a trip? {n}, {when}, from {start} on.',
    'We travel {when}. That makes {n}, and {start} comes first. Find us a '
    'plan.',
    'Our holiday: {n}, {when}, start in {start}. Please make the plan.',
    'Make a travel plan, {when}, {n} in all, with {start} on day 1.',
    'Day 1 of my trip is in {start}. It goes on {when}, {n} in all. Plan it.',
)

RULES = (
    'No city, hotel, restaurant or attraction twice, each in the city of its '
    'day, and a direct line to each next city.',
    'All places in the city of their day, nothing twice, no city either, and '
    'only direct lines.',
    'I take direct lines only, stay in the city of the day and do not repeat '
    'any city, hotel, attraction or restaurant.',
    'A new city each day by a direct line, all places in it, and nothing '
    'repeated.',
    'never the same city, hotel, restaurant or attraction again; all in the '
    'city of the day; go on by direct line.',
    'From city to city by direct line. Do not repeat a city, hotel, '
    'restaurant or attraction; each is in its day\'s city.',
)

RULES_ONE_DAY = (
    'Two different restaurants, and all in that city.',
    'Everything in the city, and no restaurant twice.',
    'All places in this city; do not repeat the restaurant.',
    'not the same restaurant twice, and stay in the city.',
)

# an introduction, followed by the limits for expensive, medium and cheap
# hotels, in the order of the text

LIMITS = (
    ('On day {day} the hotel\'s price decides.', (
        '{dear} or more: both restaurants together under {together}, each '
        'rated {rating0} or better, attraction under {ticket0}.',
        '{fair} or more: one restaurant rated {rating1} or better, '
        'attraction under {ticket1}.',
        'Under {fair}: one restaurant rated {rating2} or better.')),
    ('I watch the money on day {day}:', (
        'with a hotel of {dear} or more, restaurants under {together} in '
        'sum, both with {rating0} or more, and a ticket under {ticket0};',
        'with a hotel of {fair} or more, one restaurant with {rating1} or '
        'more and a ticket under {ticket1};',
        'with a hotel below {fair}, one restaurant with {rating2} or more.')),
    ('For day {day}:', (
        'hotel at {dear} and up means restaurants rated at least {rating0} '
        'both, their sum below {together}, ticket below {ticket0}.',
        'Hotel at {fair} and up means one restaurant rated at least '
        '{rating1}, ticket below {ticket1}.',
        'A cheaper hotel means one restaurant rated at least {rating2}.')),
    ('day {day} has limits:', (
        'hotel {dear}+: both restaurants {rating0}+, together < {together}, '
        'ticket < {ticket0};',
        'hotel {fair}+: one restaurant {rating1}+, ticket < {ticket1};',
        'hotel < {fair}: one restaurant {rating2}+.')),
)

LIMITS_UPWARDS = (
    ('On day {day} it depends on the hotel.', (
        'Under {fair} one restaurant must be rated {rating2} or more.',
        'From {fair} on one must be rated {rating1} or more and the '
        'attraction be under {ticket1}.',
        'From {dear} on both must be rated {rating0} or more and be under '
        '{together} together, the attraction under {ticket0}.')),
    ('My budget for day {day}:', (
        'hotel under {fair}, then one restaurant with at least {rating2};',
        'hotel from {fair} on, then one with at least {rating1} and a '
        'ticket under {ticket1};',
        'hotel from {dear} on, then both with at least {rating0}, for both '
        'under {together}, and a ticket under {ticket0}.')),
)

CLOSINGS = ('', '', '', 'Thank you!', 'Thanks.', 'Many thanks!')


def phrase(rng, request):
    """Returns the text of a request."""

    n, dates = len(request.dates), request.dates
    dear, fair, cheap = request.limits

    known = {
        'n': '1 day' if n == 1 else f'{n} days',
        'when': f'on {dates[0]}' if n == 1
                else f'from {dates[0]} to {dates[-1]}',
        'start': request.start,
        'day': request.day,
        'dear': dear.hotel_from,
        'fair': fair.hotel_from,
        'together': dear.together_under,
        'ticket0': dear.ticket_under,
        'ticket1': fair.ticket_under,
        'rating0': dear.rating,
        'rating1': fair.rating,
        'rating2': cheap.rating,
    }

    lead, cases = rng.choice(LIMITS + LIMITS_UPWARDS)
    opening = rng.choice(OPENINGS)
    rules = rng.choice(RULES_ONE_DAY if n == 1 else RULES)
    parts = [rules, ' '.join((lead,) + cases)]

    if rng.random() < 0.5:
        parts.reverse()

    # sometimes the limits precede the opening

    parts.insert(rng.choice((0, 0, 0, 0, 1)), opening)
    parts.append(rng.choice(CLOSINGS))

    return ' '.join(p for p in parts if p != '').format(**known)
