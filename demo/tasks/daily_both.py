# Copyright (C) The nginx-dsa authors

"""Requests of one sentence that need two calls or three: the same is asked for
several values, or two things are asked at once.  A thought quotes only the
part of the message that its call is for."""

import re
from dataclasses import dataclass, replace

from tasks import daily
from tasks.daily import TOPICS, Thoughts, box, draw_use, judge, line, task
from tasks.daily_chain import ended
from tasks.parts import Split
from tasks.phrase import capital, expand, manner, say
from tasks.stated import Typed
from tasks.task import CHAT, Step, Turn
from tasks.uses_frame import FRAMES, around


FRAMED = 0.1            # of the requests that have a sentence around them


def make(rng):
    return (shared if rng.random() < 0.5 else coordinated)(rng)


# -------------------------------------------------- a value and another value


# topics for which one request with two values is unusual, or which could do
# both in one call

LEFT_OUT = ('the database', 'departures', 'hotels', 'moving events',
            'nutrition facts', 'recipes', 'table bookings', 'taxis',
            'train tickets', 'writing files')

# roles that vary, if not only the one that a correction changes

VARIES = {'the home': ('room', 'device'), 'deployments': ('target',),
          'the state of the home': ('room', 'device'),
          'places nearby': ('city', 'what'), 'opening hours': ('name',),
          'cancelling events': ('day', 'event')}

# slots that state the value of a role, beside those with its name

STATED = ('said', 'stay')


def sharing():
    """Returns (kind, role) by topic: requests for which this role may have
    several values."""

    found = {}

    for topic, kinds in TOPICS.items():
        for kind in kinds if topic not in LEFT_OUT else ():
            for role in VARIES.get(topic, (kind.swap,)):
                if role != '':
                    found.setdefault(topic, []).append((kind, role))

    return found


SHARING = sharing()
SHARING_OFTEN = tuple(t for t in daily.OFTEN if t in SHARING)


# what may stand before a value, so that several may stand there, too

PREPOSITIONS = tuple('''about at for from in into near of off on over to up
until with'''.split())
ACTED = tuple('''add book call cancel cat check define delete dial directed
dump explain find get google hear inform list me message msg open output phone
play print queue read ring search show sms start stream tell text track txt
visit wrote {state}'''.split())
HELPING = tuple('did will can could should'.split())
ASKED = tuple('''city how if minutes pages results that what when where
whether'''.split())

# what may stand after it

AFTER = tuple('''a an any are asap at before during each for from go have how
if in into just live need next now on or over please pls plz right rn still
take there to today tonight tomorrow until what when where with yet
yes'''.split())
PAST = tuple('came changed won wrote'.split())

# words that agree with it

NOUNS = {n: re.sub('y$', 'ie', n) + 's' for n in '''account alarm album book
channel delivery directory file film flight folder issue light movie novel
number order package parcel project share shipment song subscription ticket
timer word'''.split()}
NOUNS.update(lights='lights', lamps='lamps', orders='orders', shares='shares')
BE = {'is': 'are', 'was': 'were', 'has': 'have', 'does': 'do'}
VERBS = {**BE, **{v + 's': v for v in '''arrive close come cost land live mean
open play renew'''.split()}}

# nouns of which each value has one of its own, and the verb before them

OWN = re.compile(r"(?i)\b(?:(?:an?|the) (?=alarm|timer|reminder)|(my |the )"
                 r"(?=trip|booking))(\w+)(?= (?:at|for|of|to) $)")
VERB = re.compile(r"(?i)\b(is|was|has|does)(?= (?:(?:the|my) )?"
                  r"(?:\w+s (?:(?:to|for) )?)?$)")

# words that mean a single thing, of what was said before

SINGLE = re.compile(
    r"(?i)\b(?:its|it's|this|these|those|one|he|she|his|her|him|person|both|"
    r"somebody|someone|two|then|(?:is|will|would|was|of|do) that|that's)\b"
    r"|\bthat(?=[.?!,]|$)")
SINGLE_AFTER = re.compile(r'the (?:film|movie|subscription)\b|[.?!] ')
IT = re.compile(r'(?i)\bit\b')
BEING_THERE = re.compile(r"(?i)\b(?:i'm|i am|we're|we are|i'll be) in $")
SLOT = re.compile(r'{(\w+)(?::\w)?}')


@dataclass(frozen=True)
class Gap:
    """A template with a place for several values.

    form   of one of them, which may have "the" before it, or quotes
    bare   nothing else may be written before them, such as "both"
    """
    before: str
    form: str
    after: str
    bare: bool = False

    @property
    def text(self):
        return self.before + '{these}' + self.after


def gap(kind, role, text):
    """Returns the Gap of a template for several values of a role, or None if
    it would not be English with more than one."""

    known = {*kind.roles, *STATED}

    if '\n' in text or any(
            s.removesuffix('_said') not in known and not s.startswith('x_')
            for s in SLOT.findall(text)):
        return None

    found = list(re.finditer(r'(?:\b(?:the|an?) )?("?){%s(?:_said)?(?::\w)?}\1'
                             % role, text))

    if len(found) != 1:
        return None

    before, form, after = (text[:found[0].start()], found[0][0],
                           text[found[0].end():])

    if before.count('"') % 2 or SINGLE.search(f'{before}.{after}') \
            or SINGLE_AFTER.search(after) or BEING_THERE.search(before) \
            or role not in ('city', 'end') and IT.search(before + after):
        return None

    return agreed(Gap(OWN.sub(lambda m: f'{m[1] or ""}{m[2]}s', before), form,
                      after))


def agreed(g):
    """Returns a Gap whose words agree with several values, or None."""

    before, form, after = g.before, g.form, g.after
    last = re.search(r"(?:([\w']+) )?([\w']+|{\w+}) $", before)
    prior, low = (last[1] or '', last[2].lower()) if last else ('', '')
    then = re.match(r"( (?:in|on) {\w+})?(?:(?=$|[?.!,:]| -| \()"
                    r"| ({?[\w']+))", after)

    if then is None or form[0] in 'TA' or "'s the" in before[-6:]:
        return None

    follows, n = then[2] or '', len(then[0])
    noun = follows in NOUNS

    if noun:
        first, _, form = form.rpartition(' ')
        before += 'the ' if first == 'the' else ''
        after = f' {NOUNS[follows]}{after[n:]}'
        verb = re.match(r' \w+ (\w+)', after)
        follows, n = (verb[1], verb.end()) if verb else ('', 0)
    elif low in NOUNS and prior.lower() in (
            'the', 'my', '', *PREPOSITIONS, *ACTED, *ASKED, *BE):
        before = before[:-len(low) - 1] + like(before[-len(low) - 1],
                                               NOUNS[low]) + ' '
    elif low in BE and is_odd(before, after, prior):
        return None
    elif low not in ('', *HELPING, *ASKED, *BE, *PREPOSITIONS, *ACTED):
        return None

    many = noun or low in NOUNS
    before = VERB.sub(lambda m: like(m[0], BE[m[0].lower()]), before)

    if follows in VERBS and (many or low in ASKED):
        after = after[:n - len(follows)] + VERBS[follows] + after[n:]
    elif low in ASKED and follows not in (*PAST, *(
            ('',) if low in ('results', 'pages') else ())):
        return None
    elif not (noun or low in (*HELPING, *BE) or follows[:1] == '{') \
            and follows not in ('', *AFTER) or follows == '{device}':
        return None

    return Gap(before, form, after, many or low == '')


def is_odd(before, after, prior):
    """Returns true if a question with the verb before several values would
    need other words: "which problem is", "is it a", "the place is"."""

    ends = re.match(r'$|[?.!,:]| -', after) is not None

    return re.search(r'\b(?:an?|or a)\b', after) is not None \
        or prior.lower() in ('who', 'it', 'place', 'environment') \
        or ends and re.search(r'(?i)\b(?:which|whose|what) \w', before[
            :-len(prior)]) is not None


def like(old, new):
    return capital(new) if old[0].isupper() else new


# ------------------------------------------------------ the request for them


# {w} is what is wanted, a verb with its object; {n} a noun with the values;
# {one} the noun alone; {t} the values; {c} a clause with a question word; {q}
# or {Q} a question

WANTED = Split('''{w}
{w}, please
[Can|Could|Would] you {w}?
[Please|Kindly] {w}.
I'd like you to {w}.
I need you to {w}.
Help me {w}[, please|].
[I want to|I'd like to|I have to] {w}.
[Could|Can] you please {w}[ for me|]?
[Let's|Let us] {w}.
{w} [pls|plz|thx|for me]
Would you be so kind as to {w}?
I'd be glad if you could {w}.
You should {w} now.
Next [thing|job|task]: {w}.
It's time to {w}.
My [boss|sister|colleague] asked me to {w}. [Do it for me.|Could you?|]
[Go ahead and|Now] {w}.'''.splitlines())

NOUN = Split('''{n}?
{n}, please
I need {n}[ now| for a report|].
[Give|Get|Tell] me {n}[, please|].
[I'd like|I want] {n}.
[Can|Could] you get me {n}?
Compare {n}.
[Please|Can you|Could you] compare {n}.
I want to compare {n}.
For my [notes|records|list|table]: {n}.
[Do you know|Can you tell me] {n}?
[What about|How about] {n}?
A comparison of {n}, please.
[Check|Look up] {n}.
[Somebody|A friend|A client] asks for {n}.
I am interested in {n}.
{n} [pls|thx|asap]
[List|Show] {n}.'''.splitlines())

BEFORE = Split('''{t}: {one}, please
{t}: {one}?
I need this for {t}: {one}.
For {t}, I need {one}.
For {t}, what is {one}?
{t} - {one}?
For {t}: {one}, [please|thanks].
[It's|This is] about {t}. I need {one}.
{t}, {one} [pls|thx]
For {t} I'd like to [have|know] {one}.
Take {t} and [tell|give] me {one} of each.
Compare {one} for {t}.
Look up {one} for {t}.
{one} for {t}?
{one}: {t}'''.splitlines())

CLAUSE = Split('''[Tell me|Let me know] {c}.
I [want|need|have] to know {c}.
[Can|Could] you tell me {c}?
Do you know {c}?
I wonder {c}.
I'd like to know {c}.
[Find|Work] out {c}, please.
[Please|Can you] check {c}.
Any idea {c}?
I'm curious {c}.
[Somebody|My boss|My daughter] asks {c}.
[I forgot|I can't remember] {c}. [Look it up.|]
The question is {c}.
What I want to know is {c}.'''.splitlines())

THERE = Split('''{t}: {q}
{t} - {q}
[It's|This is] about {t}. {Q}
I [travel|drive|go] to {t}, {q}
[We have offices|I have friends|I know people] in {t}. {Q}
About {t}: {q}
[For|In the case of] {t}: {q}
[I think|We talk] of {t}. {Q}
[I compare|We compare|Compare] {t}: {q}
[The cities are|My cities are] {t}. {Q}
{t} [interest me|are on my list]. {Q}'''.splitlines())

WANT = re.compile(r'(?:find out|look up|find|check|get|read) (?=the )')
ONE = re.compile(r'(the .+) (?:for|in|of) $')
QUESTION = re.compile(r'(?:find out|look up|find|check) (?=(?:how|what|when'
                      r'|where|whether|which|who) )')


def varied(rng, want):
    """Returns what is wanted with another verb for "find"."""

    question = QUESTION.match(want)

    if question:
        return rng.choice(('look up ', 'check ', 'find out ')) \
            + want[question.end():]

    return re.sub('^find (?=the )', lambda m: rng.choice(
        ('look up ', 'check ', 'find ', 'get ')), want)


def written(rng, kind, role):
    """Returns the Gap of a request, or None."""

    if rng.random() < 0.55:
        ask = gap(kind, role, expand(rng, rng.choice(kind.asks)))

        return ask and (there(rng, ask, role) or ask)

    want = gap(kind, role, varied(rng, expand(rng, kind.want)))

    if want is None or not {*kind.roles} <= {
            s.removesuffix('_said') for s in SLOT.findall(kind.want)}:
        return None

    def filled(frames, bare, **parts):
        text = expand(rng, rng.choice(frames))

        for name, value in parts.items():
            text = text.replace('{%s}' % name, value)

        before, _, after = text.partition('{these}')

        return Gap(capital(before), want.form, after if after.endswith(
            ('.', '?', '!', '"')) else after + '.', bare or before == '')

    # the state of two lamps is no noun that people ask for

    noun = kind.service.topic != 'the state of the home' \
        and WANT.match(want.before)
    clause = QUESTION.match(want.before)
    way = rng.random()

    if clause and way < 0.5:
        return filled(CLAUSE, want.bare, c=want.text[clause.end():])

    if noun and way < 0.4:
        return filled(NOUN, want.bare, n=want.text[noun.end():])

    one = noun and not want.after and ONE.match(want.before[noun.end():])

    if one and way < 0.7:
        return filled(BEFORE, True, one=one[1], t='{these}')

    return filled(WANTED, want.bare, w=want.text)


def there(rng, ask, role):
    """Returns the Gap of a question that names the places first, or None."""

    if role != 'city' or rng.random() < 0.6 \
            or not ask.before.lower().endswith(' in ') \
            or not ask.after.endswith('?') \
            or not re.match(r"(?i)(?:how|what|when|is|which)\b[^.?!:,]*$",
                            ask.before + ask.after[:-1]):
        return None

    asked = f'{ask.before[:-3]}there{ask.after}'
    text = expand(rng, rng.choice(THERE)).replace('{Q}', capital(asked)) \
        .replace('{q}', asked[0].lower() + asked[1:])
    before, _, after = text.partition('{t}')

    return Gap(before, ask.form, after, True)


TWO = ('{0} and {1}',) * 10 + ('{0} as well as {1}', '{0} & {1}',
                               '{0} / {1}', '{0} plus {1}')
THREE = ('{0}, {1} and {2}',) * 4 + ('{0}, {1}, and {2}',
                                     '{0} and {1} and {2}', '{0}, {1} & {2}')

# what a value cannot have: "an hour and ten minutes" would be one length

MARKS = re.compile(r'(?i),| and |[&+]| plus |hour|\d ?h\b')


def listed(rng, items, bare):
    """Returns several values as people join them; bare as in a Gap."""

    if len(items) > 2:
        return rng.choice(THREE).format(*items)

    if not bare and rng.random() < 0.2:
        return f'both {items[0]} and {items[1]}'

    return (rng.choice(TWO) if '/' not in ''.join(items)
            else TWO[0]).format(*items)


def several(rng, kind, role, n):
    """Returns the slots of n cases that differ in one role, or None."""

    first = kind.case(rng)
    kept = {s: v for s, v in first.items() if s in STATED
            or s.removesuffix('_said') in {*kind.roles} - {role}}
    found = []

    for _ in range(40):
        case = {**kind.case(rng), **kept}
        value = named(case, role).lower()

        # a value in another one would be taken for it

        if not MARKS.search(value) and not any(
                str(c[role]) == str(case[role]) or value in v or v in value
                for c in found for v in [named(c, role).lower()]):
            found.append(case)

        if len(found) == n:
            return found

    return None


def named(slots, role):
    """Returns the value of a role as users say it."""

    return str(slots.get(f'{role}_said', slots[role]))


FIRST = '''"{said}" [First|One is|The first is|1:|Begin with] {v}.
"{said}" That is [for {all}|about {all}]. [First|Now] {v}.
[There are {n} calls to make|It needs {n} calls|{n} things]: "{said}" [First|One is|1:] {v}.'''
LATER = '''[Then|Next|And|Now|After that] {v}.
[The next is|Next comes|Now it is] {v}.'''
FOR = '''{v}: {read}
[For|About] {v}: {read}'''


def shared(rng):
    """One request for two or three values of the same argument."""

    topic = rng.choice(SHARING_OFTEN if rng.random() < 0.4 else tuple(SHARING))
    kind, role = rng.choice(SHARING[topic])
    slots = several(rng, kind, role, 2 if rng.random() < 0.8 else 3)
    g = written(rng, kind, role)

    if slots is None or g is None:
        return shared(rng)

    g = repeated(rng, g)
    these = listed(rng, [say(rng, g.form, **s) for s in slots], g.bare)
    user = manner(rng, say(rng, g.text, these=capital(these) if g.before == ''
                           and g.form.startswith('the ') else these,
                           **slots[0]), g.before == '')
    values = [SLOT.search(g.form)[0].format(**s) for s in slots]
    names = [f'{named(s, role)}|{s[role]}' for s in slots]
    uses = [kind.use(rng, s, user) for s in slots]
    uses = [replace(u, answer=naming(rng, u, n)) for u, n in zip(uses, names)]
    apis, tools = box(rng, uses, (0, 3))
    t = Thoughts(rng, uses, apis, user)
    together = rng.random() < 0.65
    fields = dict(said=' '.join(user.split()), all=' and '.join(values),
                  n=('two', 'three')[len(values) - 2])
    first = line(rng, FIRST)
    t.want = [capital(first.format(v=values[0], **fields))]
    t.want += [('' if together else f'"{fields["said"]}" ')
               + line(rng, LATER).format(v=v) for v in values[1:]]
    t.read = [line(rng, FOR).format(v=v, read=r)
              for v, r in zip(values, t.read)]

    def check(text, made):
        return judge(uses, apis, text, made) or unnamed(uses, names, text)

    return finish(rng, t, uses, apis, tools, user, check, together)


def repeated(rng, g):
    """Returns a Gap whose values may each have the preposition: in A and in
    B."""

    last = re.search(r' (at|for|from|in|of|on|to) $', g.before)

    if last is None or g.bare or rng.random() > 0.15:
        return g

    return replace(g, before=g.before[:last.start() + 1],
                   form=f'{last[1]} {g.form}')


def naming(rng, use, name):
    """Returns an answer that names the value that it is about."""

    for _ in range(6):
        answer = use.kind.use(rng, use.slots, use.user).answer

        if daily.states(answer, name):
            return answer

    return f'{capital(name.split("|")[0])}: {use.answer}'


def unnamed(uses, names, answer):
    """Returns None if an answer has the value that each result belongs to,
    and in the same order as the results."""

    for name in names:
        if not daily.states(answer, name):
            return f'"{name}" is not in: {answer}'

    at = [place(answer, n) for n in names]

    for keys in zip(*(u.keys for u in uses)):
        found = [place(answer, k) for k in keys]

        if None not in found + at and order(found) != order(at):
            return f'{keys} are not those of {names} in: {answer}'

    return None


def order(places):
    return sorted(range(len(places)), key=places.__getitem__)


def place(answer, key):
    """Returns where an answer has a key, or None if it has it more often than
    once."""

    found = [m.start() for k in dict.fromkeys(str(key).split('|'))
             for m in re.finditer(r'(?<![\w.+-])' + re.escape(k)
                                  + r'(?!\w|[.,]\d)', answer, re.I)]

    return found[0] if len(found) == 1 else None


def finish(rng, t, uses, apis, tools, user, check, together):
    """Returns the Task that does the uses and answers.

    t          what is thought and said
    together   the calls are made in one step
    """
    calls = [apis[u.service.topic].call(u.given) for u in uses]
    answer = rng.choice((' ', ' ', '\n')).join(ended(u.answer) for u in uses)
    n = range(len(uses))

    def gold(mode):
        seen = []

        for group in [[*n]] if together else [[i] for i in n]:
            yield Step(daily.thought(mode, t, seen, group),
                       t.before if mode == CHAT and not seen else '',
                       [calls[i] for i in group])
            seen += group

        yield Step(daily.thought(mode, t, seen, []), answer)

    whole = around(rng, FRAMES, user) if rng.random() < FRAMED else user

    return task(rng, 'daily_many', 'multi', [Turn(whole, check, gold)], tools)


# ---------------------------------------------- one thing and another thing


LONGEST = 90            # letters of a part

ASKING = frozenset('''are can could did do does has have how how's is was
what what's whats when where which who who's whose will would'''.split())
DOING = frozenset('''add announce answer ask begin block book buy calculate
call cancel change check compare compute convert count create define delete
deploy dim do drop email enter explain fetch find forward get give go list look
log mail make message move msg name note open order pay play please poke post
postpone print put read record remind remove reply reschedule reserve restart
save say schedule search send set share shift ship show start stop submit swap
switch take tell text track translate turn type update wake write
work'''.split())

# what cannot stand in the middle of a sentence, or refers to something else

APART = re.compile(r'[\n;()]|[.?!]"? |: (?!")|[.?!]"|(?<!\w)- | ->|\bplease$'
                   r'|\b(?:thanks|thank you|thx|pls|plz|asap|rn|ok|okay|one'
                   r'|ones|someone|too|also|then|first|not|but|so|if you can)'
                   r'\b', re.I)

# most people join with "and"; others draw from the Splits

PLAIN = ('{0}, and {1}', '{0} and {1}')

AND = Split('''{0} and also {1}
{0}, and also {1}
{0}, also {1}
{0} & {1}
{0}, oh and {1}
{0}, and by the way, {1}
{0} - and {1}
{0}, and besides, {1}
{0}, plus {1}
{0} and, [another thing|one more thing], {1}
{0}, and while you're at it, {1}
{0} and on top of that {1}'''.splitlines())

THEN = Split('''{0}, then {1}
{0} and then {1}
{0} and after that {1}
{0}, after that {1}
{0}; then {1}
{0} and afterwards {1}
{0}, and next {1}
{0} and when that is done, {1}
{0}, and once you have that, {1}
{0} and right after that {1}
{0}, and finally {1}'''.splitlines())

BOTH = Split('''[Could|Can|Would] you {0} and {1}?
[Could|Can] you please {0}, and {1}?
Please {0}, and {1}.
Please {0} and then {1}.
I need you to {0} and to {1}.
I need you to {0} and then {1}.
I'd like to {0} and {1}.
I'd like you to {0} and also {1}.
I want to {0} and then {1}.
I want you to {0}, and also to {1}.
You should {0} and {1}.
Help me {0} and {1}.
It would be [great|good|nice] if you could {0} and {1}.
[I have|There are] two things to do: {0} and {1}.
First {0}, then {1}.
Both, please: {0} and {1}.
[Go ahead and|Now] {0}, and {1}.
[Let's|Let us] {0} and {1}.
I have to {0} and {1}, can you do both?
My [boss|wife|husband|colleague] wants me to {0} and to {1}.
{0} and {1}, [pls|please|thanks].
{0} plus {1}.
After you {0}, {1}.
Before you {1}, {0}.
[Would it be possible to|Is it possible to] {0} and {1}?
Your [job|task]: {0} and {1}.
You can {0} and {1} [now|at once].'''.splitlines())

ONE_OF = '''"{said}"
"{said}" [comes first|is the first part|is one part|for now].
[First|1|One part|The first part|Part one|Begin with]: "{said}"'''
OTHER = '''"{said}"
"{said}" [comes next|is the second part|is the other part|is left].
[Then|2|The other part|The second part|Part two|Next|And]: "{said}"'''


@dataclass(frozen=True)
class Part:
    """The words of a request for a place in a sentence.

    asks    they are a question
    polite  they are one that asks to do something
    """
    said: str
    asks: bool = False
    polite: bool = False


def is_whole(use):
    """Returns true if what is wanted names all arguments, so that it can be
    the request."""

    want, slots = use.want.lower(), use.slots or {}

    return use.service.topic == 'the shell' or all(
        str(v).lower() in want
        or str(slots.get(f'{r}_said', '\n')).lower() in want
        for r, v in use.given.items())


def spoken(rng, use):
    """Returns the Part of a request for a use, or None if none was found that
    can be one."""

    if is_whole(use) and rng.random() < 0.2:
        return Part(varied(rng, use.want))

    said = [use.user]

    if use.slots:
        said += [use.kind.use(rng, use.slots).user for _ in range(8)]

    return next(filter(None, map(part_of, said)), None)


def part_of(text):
    """Returns the Part of a request, or None if it cannot be one.  It begins
    with a small letter, unless that is "I"."""

    text = text.rstrip('.?!')
    first, second = (*text.lower().split(), '')[:2]

    if len(text) > LONGEST or APART.search(text):
        return None

    if first in ("i'd", 'i') and second in ('like', 'need', 'want'):
        return Part(text)

    # "what I need is", "when the clock shows", "have it sent"

    if first not in (*ASKING, *DOING) or second in ('i', 'the') \
            and first in ('how', 'what', 'when') \
            or first == 'have' and second in ('a', 'it'):
        return None

    asks = first in ASKING and (first, second) not in (('do', 'a'),
                                                       ('do', 'the'))

    return Part(text[0].lower() + text[1:], asks, second == 'you' and first
                in ('can', 'could', 'will', 'would'))


def coordinated(rng):
    """One sentence that asks for two things of different topics."""

    one = draw_use(rng)
    two = at_the_same_place(rng, one, draw_use(rng, (one.service.topic,)))
    uses = [one, two]
    parts = [spoken(rng, u) for u in uses]

    if None in parts or any(len(u.want) > LONGEST for u in uses):
        return coordinated(rng)

    if all(map(is_whole, uses)) and rng.random() < 0.3:
        said = [varied(rng, u.want) for u in uses]
        user = expand(rng, rng.choice(BOTH)).format(*said)
    else:
        said = [p.said for p in parts]
        user = joined(rng, *parts)

    user = manner(rng, capital(user))
    said = [quoted(user, text) for text in said]
    apis, tools = box(rng, uses, (0, 3))
    t = Thoughts(rng, uses, apis, user)
    t.want = [line(rng, way).format(said=text)
              for way, text in zip((ONE_OF, OTHER), said)]

    return finish(rng, t, uses, apis, tools, user,
                  lambda text, made: judge(uses, apis, text, made),
                  rng.random() < 0.65)


def at_the_same_place(rng, one, two):
    """Returns the second use, sometimes about the place of the first."""

    place = one.given.get('end' if one.service.topic in (
        'distances', 'train tickets') else 'city')

    if place is None or 'city' not in two.given or rng.random() < 0.3:
        return two

    return two.kind.use(rng, {**two.slots, 'city': Typed(place)})


def joined(rng, one, two):
    """Returns a sentence of two Parts with the right mark at its end."""

    then = not two.asks and (one.polite or not one.asks)
    way = rng.random()
    text = rng.choice(PLAIN if way < 0.5 else THEN if then and way < 0.8
                      else AND)
    ask = two.asks or one.polite

    return expand(rng, text).format(one.said, two.said) + ('?' if ask else '.')


def quoted(user, part):
    """Returns a part as it stands in a message, where its first letter may be
    a capital."""

    at = user.lower().find(part.lower())

    return user[at:at + len(part)]
