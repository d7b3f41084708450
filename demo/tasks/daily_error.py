# Copyright (C) The nginx-dsa authors

"""Calls that fail, at first or always, that find nothing, or that cannot be
made because the request lacks something."""

from tasks import daily_lack
from tasks.daily import (Thoughts, box, choice, described, draw_use, judge, line,
                         request, task, turn)
from tasks.daily_chain import ended
from tasks.daily_turns import AGAIN
from tasks.parts import Split
from tasks.phrase import capital, expand
from tasks.task import CHAT, DISCARD, Step, Text, Turn
from tasks.times import clock
from tasks.tools_check import NEGATIVE
from tasks.uses_act import ACT
from tasks.uses_book import BOOK
from tasks.uses_do import DO


BROKEN = Split('''service unavailable
internal server error
rate limit exceeded
permission denied
the API key has expired
connection refused
quota exceeded
the service is down for maintenance
access denied
bad gateway
invalid credentials
payment required
database is locked
certificate has expired
account suspended
the host cannot be reached
disk full
not authorized
too many requests
upstream is broken
the token is invalid
login required
the license has expired
monthly limit reached
this endpoint was removed
not implemented
unsupported region
the server has too little memory
name resolution failed
the network is down
forbidden
the backend crashed
TLS handshake failed
blocked by the firewall
the feature is disabled for this user
no connection to the database
method not allowed
out of service until tomorrow
the subscription of this account has ended
closed for today
the daily limit is used up
unexpected end of the response
the device is offline
read-only mode, changes are not possible'''.splitlines())

PASSING = Split('''timeout, please try again
temporary failure, try again
busy, retry
request timed out; retry
server overloaded, try again
connection reset, please retry
not ready yet, try again
try again
lost the connection, retry the call
a short interruption, please repeat
the queue was full, send it again
temporarily unavailable, retry now
please retry
the server was restarted, call again
gateway timeout (retry)
a lock was held, try once more
the cache is warming up, repeat the request
transient error, please repeat the call
conflict with another request, retry
network hiccup, try again'''.splitlines())

FORMS = (lambda text: {'error': text}, lambda text: Text('Error: ' + text),
         lambda text: {'status': 'error', 'message': text},
         lambda text: {'ok': False, 'reason': text},
         lambda text: {'error': {'code': 503, 'message': text}},
         lambda text: Text(text), lambda text: Text('ERROR ' + text),
         lambda text: {'success': False, 'errors': [text]},
         lambda text: {'type': 'about:blank', 'title': 'Error',
                       'detail': text},
         lambda text: {'result': None, 'error': text},
         lambda text: Text(f'Exception: {text}'),
         lambda text: Text(f'failed: {text}'),
         lambda text: {'status': 500, 'error': text},
         lambda text: {'data': None, 'errors': [{'message': text}]},
         lambda text: Text(f'(error) {text}'),
         lambda text: {'code': -1, 'msg': text},
         lambda text: {'failed': True, 'why': text})

SORRY = '''[I'm sorry, but|Sorry,|Unfortunately,|I am afraid] I could not {want}: {why}.
[Sorry|I'm sorry], that did not work. The tool [says|reports|answered]: {why}.
I [could not|cannot] {want}, because the tool reports: {why}.
[It failed|That failed|No luck]: {why}. I [could not|can't] {want}[ right now|].
The tool returned an error ({why}), so I could not {want}.
I tried to {want}, but the answer was "{why}". [It does not work now.|I cannot do it now.]
[I wasn't able to|I was not able to] {want}. [The reason given is|The error was|It says]: {why}.
That is not possible [now|at the moment]: {why}.
{why} - that is what the tool says, so I can't {want}. [Sorry.|I'm sorry.|]
[My attempt|The attempt] to {want} did not succeed ({why}).
[I'd like to help, but|I'd gladly do it, but] the call failed: {why}. [So I can't {want}.|I could not {want}.]
I couldn't {want}. [Error|Message]: {why}. [Shall I try again later?|Please try again later.|]
[Something went wrong|There was a problem]: {why}. I did not manage to {want}.
[Not done|Nothing was done]. The tool gave an error: {why}.'''

NOTHING = ({'results': []}, {'count': 0, 'items': []}, [], {},
           Text('No results.'), Text('nothing found'), {'data': None},
           Text(''), {'matches': []}, {'total': 0}, Text('(empty)'),
           {'found': False}, Text('0 results'), {'hits': 0, 'hits_list': []},
           Text('null'), {'rows': []}, Text('No matching entries.'),
           {'status': 'ok', 'data': []}, {'result': None}, [[]])

NONE = '''[I'm sorry, but|Sorry,|Unfortunately,|] I found nothing[ for that|]: I could not {want}.
There [is|was] no result, so I could not {want}.
[Nothing was found.|The result is empty.|The tool found nothing.] I could not {want}.
I tried to {want}, but [there is nothing|nothing was found|the result is empty]. I do not know it.
I [could not|can't] {want}, because [the result is empty|nothing was found].
[Nothing there|No luck]: the tool has no entry for that. [Is it spelled right?|Maybe try another name.|]
I looked, but [nothing came back|there is no entry]. [So I can't|I could not] {want}.
The search came back empty, so I don't know. [Shall I try something else?|]
[It seems that|Apparently] there is nothing about that. I couldn't {want}.
No entry was found, [sorry|I'm afraid]. I did not manage to {want}.
I don't know: the tool returned [an empty result|nothing].'''

# what a service may refuse; {alternative} is a time that would do

REFUSED = {
    'table bookings': 'fully booked|the restaurant is closed on that day'
                      '|only tables for two are left',
    'hotels': 'no rooms left|the hotel is full|sold out for these dates',
    'taxis': 'no car is free|the pick-up place is outside of the area'
             '|all drivers are busy',
    'train tickets': 'sold out|no train on that day|the line is closed',
    'appointments': 'the slot is taken|the practice is closed then'
                    '|no new patients are accepted',
    'mail': 'the address was rejected|mailbox full|the message is too large'
            '|unknown recipient',
    'messages': 'the contact is unknown|the number is not in service'
                '|the contact has blocked messages',
    'the calendar': 'the calendar is read-only|an event overlaps'
                    '|the time is in the past',
    'reminders': 'the time is in the past|too many reminders',
    'music': 'the song is not in the catalog|not available in your country'
             '|no speaker is connected',
    'the home': 'the device does not answer|device offline'
                '|no such device in this room',
    'the thermostat': 'the value is above the limit|the room has no '
                      'thermostat|the boiler is locked',
    'orders': 'out of stock|we do not deliver there|the card was declined',
    'user accounts': 'the address is taken already|no free licenses',
    'team channels': 'no such channel|you are not a member of the channel',
    'support tickets': 'the mail address is not a customer',
    'the warehouse': 'unknown article|the stock is locked for counting',
    'cancelling events': 'no such event|the event belongs to somebody else',
    'moving events': 'no such event|the new time is taken',
    'alarms': 'the speaker is offline|too many alarms',
    'notes': 'the storage is full|a note with this title exists',
    'expenses': 'the month is closed|the receipt is missing',
}

# services that may offer another time

TIMES = ('table bookings', 'taxis', 'appointments')

OFFER = '''{why}, but {time} is free. [Shall I take that?|Would that do?|Do you want that?]
[Sorry|I'm afraid], {why}. [They offer|There is] {time} instead. [Is that OK?|Shall I book it?]
That did not work: {why}. [What about|How about] {time}?
I could not {want}: {why}. {time} [would be possible|is possible]. [Shall I?|Do you want it?]
[Unfortunately|Sorry], {why}. At {time} [it would work|there is room]. [What do you think?|Shall I do that?]
Not possible, {why}. [The next free time is|Possible is] {time} - [OK for you?|does that suit you?]'''


def make(rng):
    way = rng.random()

    if way < 0.3:
        return daily_lack.make(rng)

    if way < 0.42:
        return (meant if way < 0.37 else half)(rng)

    if way < 0.54:
        return refused(rng)

    use = draw_use(rng)
    apis, tools = box(rng, [use], (0, 3))
    api, = apis.values()
    form = rng.choice(FORMS)

    if way < 0.72:
        api.failing = [form(rng.choice(PASSING))
                       for _ in range(rng.choice((1, 1, 1, 2)))]
        turns = [again(rng, use, api, apis)]
    elif way < 0.87 or not use.service.gives:
        why = rng.choice(BROKEN)
        api.failing = [form(why)] * 20
        turns = [report(rng, use, api, line(rng, SORRY).format(
            want=use.want, why=why), why)]
    else:
        api.failing = [rng.choice(NOTHING)] * 20
        turns = [report(rng, use, api, line(rng, NONE).format(
            want=use.want), 'nothing was found')]

    return task(rng, 'daily_error', 'multi', turns, tools)


def again(rng, use, api, apis):
    """The first calls fail, and the same call works then."""

    whole = turn(rng, [use], apis, use.user, use.answer, True)
    times = len(api.failing)
    retry = expand(rng, '[The call failed and should be repeated'
                        '|The error says to try again|I try once more'
                        '|It says to retry|It may work now'
                        '|A passing error, so I call again].')
    t = Thoughts(rng, [use], apis, use.user)
    call = api.call(use.given)

    def gold(mode):
        steps = whole.gold(mode)
        yield next(steps)

        for _ in range(times):
            yield Step('' if mode == CHAT else
                       f'{t.want[0]} {retry} {t.call[0]}', '', [call])

        yield from steps

    return Turn(use.user, whole.check, gold)


def report(rng, use, api, answer, why):
    """The call fails, and the answer says so."""

    want = request(rng, use.want, use.user, use.user)
    call = api.call(use.given)
    chosen = choice(api, use)
    bad = expand(rng, '[It failed|An error|No success|That did not work]: '
                      '{why}. [I say so.|I report that.|I tell the user.]'
                 ).format(why=why)
    answer = capital(answer)

    def gold(mode):
        yield Step('' if mode == CHAT else f'{want} {chosen}', '',
                   [call])
        yield Step('' if mode == CHAT else f'{want} {bad}' if mode ==
                   DISCARD else bad, answer)

    def check(text, calls):
        if not any(c.name == api.name for c in calls):
            return f'{api.name} was not called'

        return None if NEGATIVE.search(text) else f'no failure in: {text}'

    return Turn(use.user, check, gold)


def refused(rng):
    """A service refuses an action; it may offer another time."""

    kind = rng.choice([k for k in ACT + BOOK + DO
                       if k.service.topic in REFUSED])
    use = kind.draw(rng)
    topic = kind.service.topic
    apis, tools = box(rng, [use], (0, 3))
    api, = apis.values()
    why = expand(rng, f'[{REFUSED[topic]}]')
    form = rng.choice(FORMS)

    if topic not in TIMES or rng.random() < 0.4:
        api.failing = [form(why)] * 20
        turns = [report(rng, use, api, line(rng, SORRY).format(
            want=use.want, why=why), why)]

        return task(rng, 'daily_error', 'multi', turns, tools)

    time = clock(rng)
    said = expand(rng, '[{}; free at {}|{}, next free time {}|{} (try {})'
                       '|{}. available: {}]').format(why, time)
    api.failing = [form(said)] * 20
    one = report(rng, use, api, line(rng, OFFER).format(
        want=use.want, why=why, time=time), said)

    def check(text, calls):
        if len(calls) != 1:
            return 'one call should have been made'

        return None if time.lower() in text.lower() \
            else f'{time} is not in: {text}'

    return task(rng, 'daily_error', 'multi',
                [Turn(one.user, check, one.gold)], tools)


def typo(rng, word):
    """Returns a word with two letters exchanged, or one too few or double."""

    at = rng.randrange(1, len(word) - 1)
    way = rng.random()

    if way < 0.4:
        return word[:at] + word[at + 1] + word[at] + word[at + 2:]

    return word[:at] + (word[at] * 2 if way < 0.7 else '') + word[at + 1:]


MEANT = Split('''"{bad}" is unknown. Did you mean "{good}"?
not found: {bad}; similar: {good}
unknown value {bad}, closest match: {good}
no entry for {bad}, try {good}
{bad} does not exist (perhaps {good})
did you mean {good}?
"{bad}" was not found. Suggestions: {good}
invalid value "{bad}", use "{good}"
nothing for {bad}, 1 suggestion: {good}'''.splitlines())

SPELLED = ('city', 'name', 'sender', 'product', 'language', 'end', 'query',
           'shop', 'room')


def meant(rng):
    """The user misspells a word, and the error names the right one."""

    kind = rng.choice([k for k in AGAIN if k.swap in SPELLED])
    good = kind.draw(rng)
    right = good.slots[kind.swap]
    wrong = type(right)(typo(rng, right)) if len(right) > 4 else right

    if wrong == right:
        return meant(rng)

    bad = kind.use(rng, {**good.slots, kind.swap: wrong})

    if wrong not in bad.user:
        return meant(rng)

    apis, tools = box(rng, [good], (0, 3))
    api, = apis.values()
    said = rng.choice(MEANT).format(bad=wrong, good=right)
    api.failing = [rng.choice(FORMS)(said)]
    whole = turn(rng, [good], apis, bad.user, good.answer, True)
    begin = request(rng, bad.want, bad.user, bad.user)
    first, second = api.call(bad.given), api.call(good.given)
    retry = expand(rng, f'[The error names|It suggests|Probably meant is] '
                        f'{right}. [I call again with that.|So I use it.'
                        f'|Once more:] {described(api, good.given)}')

    def gold(mode):
        steps = whole.gold(mode)
        next(steps)
        yield Step('' if mode == CHAT else
                   f'{begin} {choice(api, bad)}', '', [first])
        yield Step('' if mode == CHAT else
                   f'{begin} {retry}' if mode == DISCARD else retry, '',
                   [second])
        yield from steps

    return task(rng, 'daily_error', 'multi',
                [Turn(bad.user, whole.check, gold)], tools)


BOTH = ('{0} {1}', '{0} And: {1}', '1. {0}\n2. {1}', '{0}\n{1}',
        '{0} Then this: {1}', '- {0}\n- {1}')


def half(rng):
    """One of two requests works, and the other fails."""

    works = draw_use(rng)
    fails = draw_use(rng, (works.service.topic,))
    apis, tools = box(rng, [works, fails], (0, 2))
    broken = apis[fails.service.topic]
    why = rng.choice(BROKEN)
    broken.failing = [rng.choice(FORMS)(why)] * 20
    uses = [works, fails]
    sorry = capital(line(rng, SORRY).format(want=fails.want, why=why))
    parts = [works.answer, sorry]

    if rng.random() < 0.5:
        uses.reverse()
        parts.reverse()

    user = rng.choice(BOTH).format(*(ended(u.user) for u in uses))
    answer = rng.choice((' ', '\n')).join(
        ended(p) for p in parts)
    t = Thoughts(rng, uses, apis, user)
    good = uses.index(works)
    calls = [apis[u.service.topic].call(u.given) for u in uses]
    mine = {works.service.topic: apis[works.service.topic]}
    failed = expand(rng, '[The other failed|One call failed|That one did not '
                         f'work]: {why}. [I report both.|I say both.]')

    def gold(mode):
        yield Step('' if mode == CHAT else ' '.join(t.want + t.call), '',
                   calls)
        yield Step('' if mode == CHAT else ' '.join(
            (t.want if mode == DISCARD else []) + [t.read[good], failed]),
            answer)

    def check(text, made):
        if not any(c.name == broken.name for c in made):
            return f'{broken.name} was not called'

        return judge([works], mine, text, made) or (
            None if NEGATIVE.search(text) else f'no failure in: {text}')

    return task(rng, 'daily_error', 'multi', [Turn(user, check, gold)],
                tools)
