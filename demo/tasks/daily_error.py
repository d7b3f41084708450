# Copyright (C) The nginx-dsa authors

"""Calls that fail, at first or always, that find nothing, or that cannot be
made because the request lacks something."""

from tasks.daily import (BEGIN, TOPICS, Thoughts, box, described, draw_use,
                         line, task, turn)
from tasks.parts import Split
from tasks.phrase import capital, expand, manner
from tasks.task import CHAT, DISCARD, Step, Text, Turn
from tasks.tools_check import NEGATIVE


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
upstream is broken'''.splitlines())

PASSING = Split('''timeout, please try again
temporary failure, try again
busy, retry
request timed out; retry
server overloaded, try again
connection reset, please retry
not ready yet, try again
try again
lost the connection, retry the call
a short interruption, please repeat'''.splitlines())

FORMS = (lambda text: {'error': text}, lambda text: Text('Error: ' + text),
         lambda text: {'status': 'error', 'message': text},
         lambda text: {'ok': False, 'reason': text},
         lambda text: {'error': {'code': 503, 'message': text}},
         lambda text: Text(text), lambda text: Text('ERROR ' + text),
         lambda text: {'success': False, 'errors': [text]})

SORRY = '''[I'm sorry, but|Sorry,|Unfortunately,|I am afraid] I could not {want}: {why}.
[Sorry|I'm sorry], that did not work. The tool [says|reports|answered]: {why}.
I [could not|cannot] {want}, because the tool reports: {why}.
[It failed|That failed|No luck]: {why}. I [could not|can't] {want}[ right now|].
The tool returned an error ({why}), so I could not {want}.
I tried to {want}, but the answer was "{why}". [It does not work now.|I cannot do it now.]'''

NOTHING = ({'results': []}, {'count': 0, 'items': []}, [], {},
           Text('No results.'), Text('nothing found'), {'data': None},
           Text(''), {'matches': []}, {'total': 0}, Text('(empty)'))

NONE = '''[I'm sorry, but|Sorry,|Unfortunately,|] I found nothing[ for that|]: I could not {want}.
There [is|was] no result, so I could not {want}.
[Nothing was found.|The result is empty.|The tool found nothing.] I could not {want}.
I tried to {want}, but [there is nothing|nothing was found|the result is empty]. I do not know it.
I [could not|can't] {want}, because [the result is empty|nothing was found].'''


def make(rng):
    way = rng.random()

    if way < 0.3:
        return lacking(rng)

    use = draw_use(rng)
    apis, tools = box(rng, [use], (0, 3))
    api, = apis.values()
    form = rng.choice(FORMS)

    if way < 0.55:
        api.failing = [form(rng.choice(PASSING))]
        turns = [again(rng, use, api, apis)]
    elif way < 0.8 or not use.service.gives:
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
    """The first call fails, and the same call works then."""

    whole = turn(rng, [use], apis, use.user, use.answer, True)
    retry = expand(rng, '[The call failed and should be repeated'
                        '|The error says to try again|I try once more'
                        '|A passing error, so I call again].')
    t = Thoughts(rng, [use], apis)
    call = api.call(use.given)

    def gold(mode):
        steps = whole.gold(mode)
        yield next(steps)
        yield Step('' if mode == CHAT else
                   f'{t.want[0]} {retry} {t.call[0]}', '', [call])
        yield from steps

    return Turn(use.user, whole.check, gold)


def report(rng, use, api, answer, why):
    """The call fails, and the answer says so."""

    want = line(rng, BEGIN).format(want=use.want)
    call = api.call(use.given)
    args = described(call[1])
    bad = expand(rng, '[It failed|An error|No success|That did not work]: '
                      '{why}. [I say so.|I report that.|I tell the user.]'
                 ).format(why=why)
    answer = capital(answer)

    def gold(mode):
        yield Step('' if mode == CHAT else f'{want} {api.name}: {args}.', '',
                   [call])
        yield Step('' if mode == CHAT else f'{want} {bad}' if mode ==
                   DISCARD else bad, answer)

    def check(text, calls):
        if not any(c.name == api.name for c in calls):
            return f'{api.name} was not called'

        return None if NEGATIVE.search(text) else f'no failure in: {text}'

    return Turn(use.user, check, gold)


# topic of the service; requests that lack something; what to ask for, and a
# word that the question must have

LACK = (
    ('the weather', '[What\'s|How is] the weather[ like|]?|Is it raining?'
     '|How warm is it[ outside|]?|Tell me the temperature.|Weather, please.',
     '[city|place]', 'city|place|where|location|town'),
    ('translations', 'Translate a sentence for me.|I need a translation.'
     '|Can you translate something?|Translate this.',
     'text and language', 'text|language|sentence|translate|what'),
    ('exchange rates', 'Convert some money[ for me|].|Change my dollars.'
     '|What is the exchange rate?|I want to change money.',
     'amount and currency', 'amount|currency|currencies|much'),
    ('deliveries', 'Where is my [parcel|order|package]?|Track my parcel.'
     '|When does my delivery arrive?|My order is late. Where is it?',
     'number[ of the order| of the parcel|]', 'number'),
    ('mail', 'Send a mail[ for me|].|I need to write an email.'
     '|Please email them.|Mail this to her.',
     'address and text', 'address|text|whom|who|recipient|subject'),
    ('reminders', 'Remind me[ later|].|Set a reminder.|I need a reminder.'
     '|Do not let me forget it.', 'time and task',
     'time|when|what|task'),
    ('the calendar', 'Add an [event|appointment] to my calendar.'
     '|Schedule a meeting.|Put it into my calendar.|Plan something for me.',
     'day and time', 'day|time|when|what'),
    ('contacts', 'What is her phone number?|Find a phone number for me.'
     '|Where does he live?|Give me the mail address.',
     'name[ of the person|]', 'name|who|whom|whose'),
    ('stock prices', 'How is my stock doing?|What is the share price?'
     '|Check a stock for me.|Is it up or down?',
     '[symbol|ticker]', 'symbol|ticker|stock|share|which'),
    ('distances', 'How far is it?|How long does the drive take?'
     '|Plan a route for me.|What is the distance?',
     'start and [end|destination]', 'start|where|from|destination|end'),
    ('music', 'Play [a song|something|some music].|Put on some music.'
     '|I want to hear a song.', '[title|song] and artist',
     'song|title|artist|what|which'),
    ('the home', 'Turn it on.|Switch that off.|Turn on the device.'
     '|Switch something off for me.', 'device and room',
     'device|room|what|which|where'),
)

ASK = '''[Which|What] {what} [do you mean|should it be|shall I use|do you want]?
[Please|Could you] [tell|give] me the {what}[, please|]?
[Sure|OK|Gladly|All right][.|!] [Which|What] {what}?
[I need|To do that I need|For that I need] the {what}. What is it?
[Can|Could|Would] you tell me the {what}?
[I'd like to help.|I can do that.] What is the {what}?'''


def lacking(rng):
    topic, asks, what, key = rng.choice(LACK)
    use = rng.choice(TOPICS[topic]).draw(rng)
    _, tools = box(rng, [use], (0, 3))
    user = manner(rng, expand(rng, f'[{asks}]'))
    answer = line(rng, ASK).format(what=expand(rng, what))
    thoughts = expand(rng, '[The request lacks|Missing is|I do not have|The '
                           f'user did not name] the {what}. [I ask.'
                           '|I must ask for it.|So I ask.|First I ask.]')

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'a call was made without its arguments'

        if '?' not in text:
            return f'no question: {text}'

        return None if any(k in text.lower() for k in key.split('|')) \
            else f'it does not ask for {what}: {text}'

    return task(rng, 'daily_error', 'single', [Turn(user, check, gold)],
                tools)
