# Copyright (C) The nginx-dsa authors

"""Services that book, move and cancel: hotels, taxis, trains, appointments,
alarms, events.  Dates and times are said in many forms, and the schema says
which one the call must have."""

from tasks import names, spoken
from tasks.api import parameter, service
from tasks.spoken import aside
from tasks.times import clock, day
from tasks.uses import kinds, one_of


HOTEL = service('hotels', '''[book|reserve] [hotel|room|hotel room|accommodation]
[hotel|room|stay|accommodation] [book|booking|reserve|reservation]
[create|make|new] hotel [booking|reservation]''',
'''[Books|Reserves|Book] [a hotel room|a room|a stay] in a city
[Hotel|Room] [booking|reservation]: city, arrival, nights
Reserve accommodation from a date for some nights''', [
    parameter('city', 'city place location destination town where',
              '[City|Place] of the hotel'),
    parameter('start', 'check_in arrival from_date start_date checkin date',
              '[Day of arrival|Check-in date|First night], YYYY-MM-DD',
              always=True),
    parameter('nights', 'nights num_nights stay_nights length_of_stay',
              '[Number of nights|How many nights]', kind='integer'),
    parameter('guests', 'guests people adults persons num_guests',
              'Number of guests', kind='integer', kept=True, needed=False),
    parameter('breakfast', 'breakfast with_breakfast include_breakfast',
              'Whether breakfast is included', kind='boolean',
              needed=False, kept=True)])


def hotel_case(rng):
    said, start = spoken.date(rng)
    nights, n = spoken.whole(rng, 2, 15)
    guests, g = spoken.whole(rng, 2, 7)

    return dict(**aside(rng), city=rng.choice(names.PLACES), start=start,
                start_said=said, nights=n, nights_said=nights, guests=g,
                guests_said=guests, breakfast=True)


BOOK = kinds(HOTEL, hotel_case, '''
= book a hotel in {city} from {start_said}
@ city start nights
- [Book|Reserve|Get] [me |]a [hotel|hotel room|room] in {city} from {start_said} for {nights_said} nights.
- [I need|I'm looking for|We need] a [hotel|room|place to stay] in {city}, [arriving|arrival|from] {start_said}, {nights_said} nights. [Book it.|Please book.|]
- {city}, {start_said}, {nights_said} nights. [Hotel please.|Book a hotel.|I need a room.]
- [I'll|I will] be in {city} from {start_said}. [Please book a room|Get me a hotel] for {nights_said} nights.
- [Can|Could|Would] you [book|reserve] {nights_said} nights in {city}[, starting|, beginning] {start_said}?
- hotel {city} {nights_said} nights from {start_said} [pls|please|asap]
- City: {city}\\nArrival: {start_said}\\nNights: {nights_said}\\n[Book a hotel.|Hotel booking please.]
- [My company sends me|They are sending me] to {city}. I arrive on {start_said} and stay {nights_said} nights, so I need a hotel.
- For {nights_said} nights, starting on {start_said}, I need [a bed|a room] in {city}.
- [We're|We are] [on holiday|travelling], and the next stop is {city}. {nights_said} nights from {start_said}, please book a hotel.
- [Arrange|Organise|Organize] accommodation in {city}: check-in {start_said}, {nights_said} nights.
- Check-in: {start_said}. Stay: {nights_said} nights. Town: {city}. [Reserve it.|Make the booking.]
- I have [a conference|a wedding|a fair] in {city} and still no hotel! It's {nights_said} nights from {start_said}.
- Where will I sleep in {city}? [Book something|Find and book a room] for {nights_said} nights as of {start_said}.
- From {start_said} I want to stay {nights_said} nights in {city}. You can make hotel reservation?
- [pls|please] reserve a room, {nights_said} nights, {city}, check in is {start_said}
- {x_name} and I fly to {city}. We land on {start_said} and leave after {nights_said} nights. Hotel, please.
- A hotel in {city} for {nights_said} nights would be [great|good|lovely]. We come on {start_said}.
- Make a hotel booking ({city}, {nights_said} nights, first night {start_said}).
- Sort out [a hotel|a room] for me in {city}, will you? {start_said}, {nights_said} nights.
- The hotel in {city} has to be booked: {nights_said} nights, and we check in on {start_said}.
- [Is it|Would it be] possible to get {nights_said} nights in {city}? The first night is {start_said}.
- My plan: {start_said}, {city}, {nights_said} nights in a hotel. [Please reserve.|Make it so.]
- The kids want to see {city}. We go on {start_said} and need a hotel for {nights_said} nights.
- need hotel in {city}, {nights_said} nites starting {start_said}
- Reserve a stay: {nights_said} nights, arriving {start_said}, and it has to be {city}.
> Your [room|hotel] in {city} is [booked|reserved]: {nights_said} nights from {start_said}.
> [Done|Booked|OK]: {city}, {start_said}, {nights_said} nights.
> [I booked|I reserved|I've booked] a [hotel|room] in {city} from {start_said} for {nights_said} nights.
> You have a room in {city} for {nights_said} nights[, arriving|, from] {start_said}.
> {nights_said} nights in {city}, [from|check-in] {start_said}: [it's booked|all set].
> [All set|No problem]: the hotel in {city} expects you on {start_said} for {nights_said} nights.
> {city} is [booked|reserved]. You arrive on {start_said} and stay {nights_said} nights.
> From {start_said} you [stay|have a room] in {city}, {nights_said} nights.
+ {city}; {start}|{start_said}; {nights}|{nights_said}

= book a hotel with breakfast in {city} from {start_said}
@ city start nights guests breakfast
- [Book|Reserve] a room with breakfast in {city} for {guests_said} people, {nights_said} nights from {start_said}.
- [We're|We are] {guests_said} and need a hotel in {city} from {start_said}, {nights_said} nights, [breakfast included|with breakfast].
- {city}, {start_said}, {nights_said} nights, {guests_said} guests, with breakfast[. Book it.| - book please.]
- [Can|Could] you book a hotel in {city}? {guests_said} of us, {nights_said} nights, arrival {start_said}, and we want breakfast.
- Hotel in {city}\\n- from {start_said}\\n- {nights_said} nights\\n- {guests_said} persons\\n- breakfast: yes
- Breakfast must be included: a hotel in {city} for {nights_said} nights, {guests_said} guests, check-in {start_said}.
- {guests_said} friends and a lot of luggage: we come to {city} on {start_said} for {nights_said} nights and like to have breakfast in the hotel. Book for {guests_said}.
- I'd like a room for {guests_said} in {city}. We stay {nights_said} nights from {start_said}. And please add breakfast.
- For {guests_said} guests: {city}, check-in {start_said}, {nights_said} nights. Breakfast, yes please.
- We arrive in {city} on {start_said}, {guests_said} people. We want {nights_said} nights and a breakfast every morning. Book a hotel.
- hotel {city} {start_said} {nights_said} nights {guests_said} ppl incl breakfast
- A room with breakfast, that's what {guests_said} of us need in {city}. From {start_said}, {nights_said} nights.
- Please reserve a hotel with breakfast for {guests_said} persons in {city}, first night {start_said}, {nights_said} nights in all.
> Your hotel in {city} is booked for {guests_said} from {start_said}, {nights_said} nights with breakfast.
> [Done|Booked]: {city}, {start_said}, {nights_said} nights, {guests_said} guests, with breakfast.
> [I booked|I reserved] a hotel in {city}: {guests_said} people, {nights_said} nights from {start_said}, breakfast included.
> {nights_said} nights in {city} for {guests_said}, from {start_said}, with breakfast: [all set|it's booked].
> [All set|OK], {guests_said} guests, {nights_said} nights, {city}, from {start_said}. Breakfast is included.
+ {city}; {start}|{start_said}; {nights}|{nights_said}; {guests}|{guests_said}
''', 'city')

TAXI = service('taxis', '''[order|book|call|request|get] [taxi|cab|ride|car]
[taxi|cab|ride] [order|booking|request|book]''',
'''[Orders|Books|Calls] a [taxi|cab|ride] [from one place to another|]
[Taxi|Ride|Cab] [booking|order]: from, to and time
Order a car that picks up the user''', [
    parameter('start', 'pickup from origin pickup_location start',
              '[Where to pick up|Pick-up place|Start]'),
    parameter('end', 'destination to dropoff drop_off_location end',
              '[Where to go|Destination]'),
    parameter('time', 'time pickup_time at when', '[Pick-up time|Time|When]'
              '[, HH:MM in 24 hours|, as HH:MM (24 h)]', always=True),
    parameter('passengers', 'passengers people seats', 'How many people',
              kind='integer', needed=False)])

STOP = ('the airport|the main station|the town hall|the [city|] hospital'
        '|the museum|the zoo|the stadium|the harbor|the university'
        '|the opera|the old market|the shopping mall')


def stop(rng):
    if rng.random() < 0.4:
        return one_of(rng, STOP)

    return f'{rng.randrange(1, 200)} {rng.choice(names.LAST)} ' + one_of(
        rng, 'Street|Road|Lane|Avenue|Square|St')


def taxi_case(rng):
    said, time = spoken.time(rng)
    start, end = stop(rng), stop(rng)

    while start == end:
        end = stop(rng)

    return dict(**aside(rng), start=start, end=end, time=time,
                time_said=said)


BOOK += kinds(TAXI, taxi_case, '''
= order a taxi to {end} at {time_said}
@ start end time
- [Order|Call|Get|Book] [me |]a [taxi|cab] from {start} to {end} at {time_said}.
- [I need|We need|I'd like] a [taxi|cab|ride] to {end}[. Pick me up|, pick-up] at {start}, {time_said}.
- [Can|Could] you [order|book|get] a [cab|taxi] for {time_said}, from {start} to {end}?
- [My flight leaves early|My train is cancelled|My car broke down|It's raining cats and dogs]. A taxi at {time_said} from {start} to {end}, please.
- taxi {time_said}: {start} -> {end}
- From: {start}\\nTo: {end}\\nWhen: {time_said}\\n[Taxi please.|Please order a cab.]
- Pick-up at {start} at {time_said}, going to {end}. [Order a taxi.|Cab, please.]
- At {time_said} I [have to|must] leave {start} for {end}. [Get me a cab.|Could you order a taxi?]
- {time_said}, {start}, one taxi, destination {end}.
- [pls|please] get me a ride [2|to] {end}, {time_said}, i'm at {start}
- [Send|Have] a [taxi|car] [to come |]to {start} at {time_said}; I want to go to {end}.
- How do I get from {start} to {end} at {time_said}? [By taxi, I think. Order one.|No bus then, so order a taxi.]
- I want to be picked up at {start}, {time_said}, and driven to {end}.
- [Mum|My mother|{x_name}] needs a taxi from {start} to {end}. [Her time is|She wants it at] {time_said}.
- A cab for {time_said}, [please|if possible]. It should bring me from {start} to {end}.
- We have to be at {end} [soon after|later], so the taxi must be at {start} at {time_said}.
- Please to order one taxi for {time_said}, we go from {start} in direction of {end}.
- [Arrange|Organise] a ride: {start} to {end}, {time_said}.
- Going to {end} from {start}, taxi at {time_said}. [thanks|thx|pls]
- To {end}, please! I wait at {start}, the taxi should come at {time_said}.
- Would you mind calling a taxi? {start} to {end}, [leaving|departure] {time_said}.
- [Grandma|My boss|A guest] has to get to {end}. Pick-up {start}, {time_said}. Taxi, please.
- I'm not driving tonight. A cab from {start} to {end}, {time_said}.
- Where: {start}. Where to: {end}. When: {time_said}. I need a taxi.
- Could a driver be at {start} at {time_said}? The ride is to {end}.
- Let a taxi come at {time_said}, {start}, and it should go to {end}.
> [The|Your] [taxi|cab] from {start} to {end} is [ordered|booked] for {time_said}.
> [Done|OK|Ordered]: taxi to {end} at {time_said}.
> A [taxi|cab] [will pick you up|picks you up] at {time_said} and [takes|brings] you to {end}.
> [I ordered|I've booked|I booked] a [taxi|cab] for {time_said}, to {end}.
> At {time_said} a [taxi|cab] to {end} [will be waiting|waits] at {start}.
> Your ride to {end} [comes|is coming] at {time_said}.
> {time_said}, {start} to {end}: [the taxi is ordered|your cab is booked].
> [All right|No problem|Sure], the cab to {end} comes at {time_said}.
+ {end}; {time}|{time_said}
''', 'time')

TRAIN = service('train tickets', '''[book|buy|get|reserve] [train ticket|train|rail ticket|ticket]
[train|rail|ticket] [booking|book|buy|purchase]''',
'''[Books|Buys] a [train|rail] ticket[ between two cities|]
[Train|Rail] tickets: from, to, date[, class|]
Buy a ticket for a train on a date''', [
    parameter('start', 'from origin departure_city from_station start',
              '[Where the trip begins|Departure]'),
    parameter('end', 'to destination arrival_city to_station end',
              '[Where the trip ends|Destination]'),
    parameter('date', 'date travel_date departure_date day on',
              '[Date|Day of travel], YYYY-MM-DD', always=True),
    parameter('level', 'class travel_class seat_class cabin',
              'Class', choices=('first', 'second'), kept=True,
              needed=False)])


def train_case(rng):
    a, b = rng.sample(names.PLACES, 2)
    said, date = spoken.date(rng)

    return dict(**aside(rng), start=a, end=b, date=date, date_said=said,
                level=rng.choice(('first', 'second')))


BOOK += kinds(TRAIN, train_case, '''
= buy a train ticket from {start} to {end} for {date_said}
@ start end date
- [Book|Buy|Get] [me |]a [train ticket|ticket|train] from {start} to {end} [for|on] {date_said}.
- I [need|want|have] to [go|travel|get] from {start} to {end} by train on {date_said}. [Book it.|Buy the ticket.|]
- train {start} - {end}, {date_said}[, one ticket| please| pls|]
- [Can|Could] you [get|buy|book] me a train to {end}? I start in {start} on {date_said}.
- {date_said}: {start} to {end}, by [train|rail]. [Ticket please.|Please book.]
- Departure: {start}\\nDestination: {end}\\nDate: {date_said}\\nBook the train.
- On {date_said} I [visit|see] {x_name} in {end}. [Get me|I need] a train ticket from {start}.
- One ticket to {end}, [please|thanks]. [Leaving|Departing] from {start}, {date_said}.
- [I hate flying|I don't fly any more], so book me on a train from {start} to {end} on {date_said}.
- How about the train? From {start} to {end}, {date_said}. [Yes, buy a ticket.|I'd like a ticket.]
- [Please reserve|Reserve] a seat on a train to {end} on {date_said}; I board in {start}.
- I am in {start} and on {date_said} I must be in {end}; buy one train ticket for me.
- Rail ticket, {date_said}, {start}-{end}.
- The trip goes from {start} to {end}, the day is {date_said}, and I take the train. [Book that.|Can you buy the ticket?]
- For {date_said}, [I'd like|I would like] to have a ticket for the train between {start} and {end}, starting in {start}.
- My meeting in {end} is on {date_said}. [Buy|Get] a train ticket from {start}.
- Travelling by train on {date_said}: {start} to {end}. I still need the ticket.
- My sister in {end} has a party on {date_said}. Please buy me a train ticket from {start}.
- Can I go from {start} to {end} by rail on {date_said}? If so, book it.
- get me on a train {start} to {end}, {date_said}
- I shall be in {end} on {date_said}, coming from {start}. Rail ticket, please.
- Ticket wanted! {start} to {end}, train, {date_said}.
> [The|Your] train ticket from {start} to {end} is [booked|bought] for {date_said}.
> [Done|Booked|OK]: {start} to {end}, {date_said}.
> [I bought|I booked|I've got] a ticket from {start} to {end} for {date_said}.
> You [go|travel] from {start} to {end} on {date_said}[, the ticket is booked|].
> {date_said}, {start} to {end}: [your ticket is ready|booked].
> On {date_said} you have a train from {start} to {end}.
> [All set|No problem]: train from {start} to {end} on {date_said}.
> Your trip from {start} to {end} on {date_said} is [booked|paid].
+ {start}; {end}; {date}|{date_said}

= buy a {level} class ticket from {start} to {end} for {date_said}
@ start end date level
- [Book|Buy|Get] a {level} class [train |]ticket from {start} to {end} for {date_said}.
- [One|A] ticket, {level} class, {start} to {end}, {date_said}.
- I want to travel {level} class from {start} to {end} on {date_said}. [Buy a train ticket.|Book the train.]
- {date_said}, train {start} - {end}, {level} class please
- [My boss pays|The office pays|I'm on a budget], so {level} class: train from {start} to {end}, {date_said}.
- Can you book the train to {end} on {date_said}? I leave from {start}, in {level} class.
- From {start} to {end} by rail. Date: {date_said}. Class: {level}.
- Please reserve a {level} class seat on the train from {start} to {end}, {date_said}.
- Train to {end} from {start}. {date_said}. I go {level} class. Get the ticket.
- rail {start} {end} {date_said} {level} class
- Departure {start}, arrival {end}, date {date_said}, {level} class. Buy it.
- On {date_said} I take the train from {start} to {end}, and I want to sit in {level} class.
> [The|Your] {level} class ticket from {start} to {end} is booked for {date_said}.
> [Done|Booked]: {start} to {end}, {date_said}, {level} class.
> [I bought|I booked] a {level} class ticket to {end} for {date_said}, from {start}.
> You travel {level} class from {start} to {end} on {date_said}.
> {level} class, {start} to {end}, {date_said}: [all set|it's booked].
+ {end}; {date}|{date_said}; {level}
''', 'end')

VISIT = service('appointments', '''[book|make|schedule|request] [appointment|visit|slot]
[appointment|appointments|clinic|salon] [book|schedule|request|create]''',
'''[Books|Makes] an appointment [with a doctor, a hairdresser or another service|at a service]
[Appointments|Visits]: with whom, date and time
Book a slot at a practice, a salon or a garage''', [
    parameter('whom', 'provider with service practitioner where practice',
              '[With whom|Who is visited|The provider]'),
    parameter('date', 'date day on appointment_date', '[Date|Day], '
              'YYYY-MM-DD', always=True),
    parameter('time', 'time at start_time slot', '[Time|Start], HH:MM in 24 '
              'hours', always=True)])

WHOM = ('dentist|doctor|hairdresser|barber|vet|eye doctor|physiotherapist'
        '|tax adviser|lawyer|garage|nail salon|optician|pediatrician'
        '|massage studio|skin doctor|notary')


def visit_case(rng):
    date, day_ = spoken.date(rng)
    time, hour = spoken.time(rng)

    return dict(**aside(rng), whom=one_of(rng, WHOM), date=day_,
                date_said=date, time=hour, time_said=time)


BOOK += kinds(VISIT, visit_case, '''
= book an appointment at the {whom}
@ whom date time
- [Book|Make|Get] [me |]an appointment [at|with] the {whom} [on|for] {date_said} at {time_said}.
- I need to see the {whom}. {date_said}, {time_said}[ would be good| suits me|]. [Book it.|Please make an appointment.]
- [Can|Could] you [get|book] me in at the {whom} on {date_said}? {time_said} [is best|would be perfect].
- {whom}: {date_said}, {time_said} - [book me in|please book|make the appointment]
- [My tooth hurts|It can't go on like this|It's high time], I need an appointment with the {whom}: {date_said} at {time_said}.
- On {date_said} I have time at {time_said}. Make an appointment at the {whom}.
- appointment {whom} {date_said} {time_said} [pls|please]
- Provider: {whom}\\nDate: {date_said}\\nTime: {time_said}\\n[Book it.|Appointment please.]
- [I'd|I would] like to go to the {whom} at {time_said} on {date_said}. [Could you book that?|Arrange it.]
- [Sign|Put] me [up|down] at the {whom} for {date_said}, {time_said}.
- The {whom} has a free slot on {date_said} at {time_said}. [Take it.|Grab it for me.|Book it.]
- {x_name} says I should see the {whom}. [OK then|All right], {date_said}, {time_said}. Book me in.
- [Reserve|Request] a slot with the {whom}, {time_said}, {date_said}.
- Please you make for me a termin at the {whom}, it is {date_said}, {time_said}.
- When? {date_said}, {time_said}. Where? The {whom}. Book the appointment, please.
- Tell the {whom} that I come on {date_said} at {time_said} - make it an appointment.
- Could you ring the {whom} and get me in on {date_said} at {time_said}? An online booking is fine, too.
- My next visit at the {whom} should be on {date_said}, {time_said}. Book it.
- [My son|My mother|{x_name}] needs the {whom}. {date_said}, {time_said}. Make an appointment, please.
- need appt w/ {whom} {date_said} {time_said}
- I'd like an appointment. With the {whom}. On {date_said}. At {time_said}.
- For {time_said} on {date_said}, arrange a visit at the {whom}.
- {date_said}. {time_said}. {whom}. Book!
> Your appointment [at|with] the {whom} is [booked|set]: {date_said}, {time_said}.
> [Done|Booked|OK]: {whom}, {date_said}, {time_said}.
> [I booked|I made|I've booked] an appointment with the {whom} for {date_said} at {time_said}.
> You [see|visit] the {whom} on {date_said} at {time_said}.
> The {whom} expects you on {date_said} at {time_said}.
> {date_said} at {time_said}, the {whom}: [you are booked in|it's confirmed].
> [All set|No problem], you have an appointment with the {whom} on {date_said}, {time_said}.
> On {date_said} at {time_said} you [have an appointment|are expected] at the {whom}.
+ {whom}; {date}|{date_said}; {time}|{time_said}
''')

ALARM = service('alarms', '''[set|create|add] [alarm|wake up alarm|alarm clock|wakeup]
[alarm|alarms|alarm clock] [set|create|add|new]
wake [me|user]''',
'''[Sets|Creates] an alarm[ for a time of the day|]
[Alarm clock|Alarms]: wakes the user at a time[, on some days|]
Wake the user''', [
    parameter('time', 'time at alarm_time when wake_time', '[Time|When], '
              'HH:MM, 24 hours', always=True),
    parameter('days', 'days repeat weekdays repeat_on', '[Days of the week '
              'on which it repeats, mon to sun|Repeats on these days, such as '
              'mon]', kind='array', needed=False, kept=True, always=True)])


DAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split()


def alarm_case(rng):
    said, time = spoken.time(rng)

    if rng.random() < 0.4:
        some = range(0, 5) if rng.random() < 0.5 else range(5, 7)
        text = 'weekdays' if len(some) == 5 else 'the weekend'
    else:
        some = sorted(rng.sample(range(7), rng.randint(2, 3)))
        text = spoken.listed(rng, [DAYS[i] for i in some])

    return dict(**aside(rng), time=time, time_said=said, days_said=text,
                days=[DAYS[i][:3].lower() for i in some])


BOOK += kinds(ALARM, alarm_case, '''
= set an alarm for {time_said}
@ time
- [Wake me [up|]|Get me up|Get me out of bed] at {time_said}.
- [Set|Make] [an|the|my] alarm [for|to] {time_said}.
- Alarm[:|,|] {time_said}[, please| pls|]
- I [have to|need to|must] [get up|be up|be awake] at {time_said}. [Set an alarm.|Please wake me.|Don't let me sleep longer.]
- [Can|Could|Would] you [wake me|set the alarm for|set my alarm for] {time_said}?
- [My shift starts early|I have a flight|Big day tomorrow]: alarm at {time_said}, please.
- Ring at {time_said}[ so that I wake up|, I'm going to sleep now|].
- I want that you wake me at {time_said}.
- {time_said} alarm
- [No later than|Exactly at] {time_said} I want to hear the alarm.
- [I'll take a nap|I'm off to bed]. Alarm clock on {time_said}!
- It would be [nice|good] to wake up at {time_said}. [Set it.|Set the alarm clock.]
- [I overslept|I was late] today, so tomorrow the alarm has to ring at {time_said}.
- set alarm clock {time_said} [tmrw|tomorrow]
- {x_name} [picks me up early|is coming early]. Let the alarm ring at {time_said}.
- Please make sure I'm awake at {time_said} - use the alarm.
- At {time_said} I must be out of bed. Alarm!
- tomorrow i need 2 be up at {time_said}, alarm pls
- Is the alarm set? If not, {time_said}.
- Could the alarm go off at {time_said}?
- New alarm: {time_said}.
- For {time_said}, an alarm.
- [The exam|The train|Work] won't wait. Wake me at {time_said}.
- I sleep now, you wake me {time_said}, ok?
- Let me sleep until {time_said}, then ring.
> [The alarm is set|Alarm set|Your alarm is set] for {time_said}.
> [I will|I'll] wake you at {time_said}.
> [Done|OK|Sure], alarm at {time_said}.
> {time_said}, [the alarm is on|it's set].
> The alarm [rings|goes off|will ring] at {time_said}.
> [Sleep well!|Good night!|Got it.] The alarm is [on|set] for {time_said}.
> I set [an|your] alarm for {time_said}.
> You'll be woken at {time_said}.
+ {time}|{time_said}

= set an alarm for {time_said} on {days_said}
@ time days
- [Wake me|Get me up] at {time_said} on {days_said}.
- [Set|Make] an alarm for {time_said}, repeating on {days_said}.
- Alarm {time_said}, {days_said}[, every week| please|]
- On {days_said} I have to get up at {time_said}. [Set a repeating alarm.|Please set the alarm.]
- [Can|Could] you set my alarm to {time_said} on {days_said}?
- I work on {days_said} and need an alarm at {time_said} [on those days|then].
- {days_said}: alarm at {time_said}.
- Every week on {days_said}, the alarm should ring at {time_said}.
- My shift on {days_said} starts early, so wake me at {time_said} on those days.
- repeat alarm: {time_said}, {days_said}
- I want an alarm that rings at {time_said} each time on {days_said}.
- {days_said} I go running. Alarm for {time_said}, repeating.
- Can the alarm ring at {time_said} on {days_said}? Every week, please.
- Time: {time_said}\\nDays: {days_said}\\nSet the alarm.
> [The alarm is set|Alarm set] for {time_said} on {days_said}.
> On {days_said} [the alarm rings|I'll wake you] at {time_said}.
> [Done|OK]: {time_said}, {days_said}.
> {days_said} at {time_said}, [the alarm is on|all set].
> I set an alarm for {time_said}, repeating on {days_said}.
+ {time}|{time_said}
''', 'time')

CANCEL = service('cancelling events', '''[cancel|delete|remove] [event|appointment|meeting|calendar event]
[calendar|event|appointment] [cancel|delete|remove]''',
'''[Cancels|Deletes|Removes] an [event|appointment] [of the calendar|]
[Calendar|Events]: [delete|cancel] an entry of a day
Remove an entry from the calendar''', [
    parameter('event', 'event title name event_title what', '[Title|Name]'),
    parameter('day', 'day date on when', '[Day|Date]'),
    parameter('reason', 'reason note comment', 'Why', needed=False)])


def cancel_case(rng):
    return dict(**aside(rng), event=rng.choice(names.EVENTS), day=day(rng))


BOOK += kinds(CANCEL, cancel_case, '''
= cancel the {event} of {day}
@ event day
- [Cancel|Delete|Remove] [the|my] {event} {day}.
- [I can't make it to|I won't be able to attend|I have to skip] the {event} {day}. [Cancel it.|Please take it out of my calendar.]
- [Can|Could] you [cancel|delete|drop] the {event} [that I have|I have] {day}?
- The {event} {day} [is off|won't happen|was called off|fell through]. [Remove it from|Delete it in] my calendar.
- {day}, {event}: [cancel|delete|please cancel|cancel pls]
- Take the {event} {day} [out of|off] my calendar.
- [I'm ill|I'm sick|My kid is ill|Something came up]. Please cancel the {event} {day}.
- cancel {event} {day}
- My calendar still has the {event} {day}. [It isn't needed any more, delete it.|It has to go.]
- No {event} {day}, [please|thanks]. Cancel it.
- [Call off|Scrap|Drop] the {event} {day}.
- Event: {event}\\nDay: {day}\\n[To be cancelled.|Cancel it please.]
- [We agreed|They decided] to do without the {event} {day}, so please cancel it.
- {day} I [have no time|am away], so the {event} must be [cancelled|canceled].
- [pls|plz] delete the {event} from my calendar, {day}
- Could the {event} {day} be cancelled? {x_name} can't come.
- I don't go to {event} {day}, you can remove this from calendar.
- Free up my {day}: [delete|cancel] the {event}.
- {x_name} cancelled, so the {event} {day} can be deleted.
- [I'm not going to|We won't have] the {event} {day}. Out of the calendar with it.
- Is the {event} still in my calendar {day}? It should be removed.
- There was a {event} planned {day}. Not any more. Delete it.
- Please strike the {event} from my calendar {day}.
- {event}, {day}: no longer needed. [Cancel.|Remove.]
- [gotta|have to] skip {event} {day}, cancel it pls
> The {event} {day} is [cancelled|deleted|removed].
> [Done|OK|Cancelled]: {event}, {day}.
> [I cancelled|I deleted|I've removed] the {event} {day}.
> {day}: the {event} is [out of your calendar|off|gone].
> [All right|No problem], the {event} {day} is cancelled.
> Your calendar has no {event} {day} any more.
> You no longer have the {event} {day}.
> The {event} [has been|was] taken out of your calendar, {day}.
+ {event}; {day}
''', 'day')

MOVE = service('moving events', '''[move|reschedule|postpone|shift|change] [event|appointment|meeting]
[calendar|event|appointment] [move|reschedule|update]''',
'''[Moves|Reschedules] an event [to another day and time|]
[Calendar|Events]: change day and time of an entry
Give an appointment a new day and time''', [
    parameter('event', 'event title name meeting what', '[Title|Name]'),
    parameter('day', 'new_day new_date to_day day date', 'The new day'),
    parameter('time', 'new_time to_time time start new_start',
              'The new time')])


def move_case(rng):
    return dict(**aside(rng), event=rng.choice(names.EVENTS), day=day(rng),
                time=clock(rng))


BOOK += kinds(MOVE, move_case, '''
= move the {event} to {day} at {time}
@ event day time
- [Move|Reschedule|Shift|Postpone] [the|my] {event} to {day} at {time}.
- [Can|Could] [you|we] move the {event} to {day}, {time}?
- The {event} [is now|takes place] {day} at {time} instead. [Change it in my calendar.|Please move it.]
- [I can't make the old time|They changed the plan]: the {event} goes to {day}, {time}.
- {event} -> {day} {time}
- [Put|Push] the {event} [back |off |]to {day}, {time}.
- Change the [date|time] of the {event}: {day} at {time}.
- [pls|please] reschedule {event}: {day} {time}
- The {event}, which is in my calendar already, has a new date: {day} at {time}.
- Event: {event}\\nNew day: {day}\\nNew time: {time}
- {x_name} asked if we can have the {event} {day} at {time}. [Move it.|Yes, so please move it.]
- Instead of the old date, I want the {event} {day} at {time}.
- For the {event}, {day} at {time} [is better|suits me better]. [Please change it.|Reschedule.]
- I would like to change {event} for {day} in {time}.
- My {event} has to be moved. New slot: {day}, {time}.
- We need to [bring forward|postpone] the {event}. Make it {day}, {time}.
- Please change my calendar: the {event} now begins at {time}, {day}.
- [The trainer|My dentist|The host] wrote that the {event} will be {day} at {time}. Move it.
- {day} at {time} would suit everybody. Reschedule the {event}.
- move my {event} 2 {day} {time}
- Can the {event} be {day} at {time}? Yes? Then move it there.
- The {event} has been postponed. {day}, {time}. Update the calendar.
- Shift: {event}, to {day}, {time}.
- Let's have the {event} {day} at {time} instead of the old slot.
> The {event} is [now|moved to] {day} at {time}.
> [Done|OK|Moved]: {event}, {day} at {time}.
> [I moved|I've moved|I rescheduled] the {event} to {day} at {time}.
> Your {event} [takes place|is] {day} at {time} now.
> {day} at {time} [is the new date of|is the new slot for] the {event}.
> [No problem|All right], the {event} now starts at {time} {day}.
> New date for the {event}: {day}, {time}.
> The {event} has a new place in your calendar: {day}, {time}.
+ {event}; {day}; {time}
''', 'day')
