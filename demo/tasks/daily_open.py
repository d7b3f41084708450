# Copyright (C) The nginx-dsa authors

"""Tools for things of any kind (open_words.py): a thing is changed, one of its
values is read, or things with a value are found.  The other tools do something
else with the same things, or the same with other things.  There are too many
for a model to remember, so that it must compare the words of a request with
those of the descriptions."""

import re

from tasks import names, open_details, strings
from tasks.api import Use, parameter, service
from tasks.daily import box, line, task, turn
from tasks.daily_chain import ended
from tasks.daily_many import JOIN
from tasks.daily_none import declined, refusal, weighed
from tasks.open_details import TIMES, compound, detail
from tasks.open_words import STATES, THINGS, TRAITS, VERBS
from tasks.parts import Split
from tasks.phrase import capital, expand, manner, say


def plural(thing):
    one, _, many = thing.partition(' ')

    return many or one + ('es' if re.search('(s|x|ch|sh)$', one) else 's')


def third(verb):
    """Returns the form of a verb after "it"."""

    if re.search('[^aeiou]y$', verb):
        return verb[:-1] + 'ies'

    return verb + ('es' if re.search('(s|x|ch|sh)$', verb) else 's')


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


def noun(thing):
    return thing.partition(' ')[0]


def words(text):
    return text.replace(' ', '_')


def parameters(rng, thing, traits, states, given):
    """Returns the Parameters of an action.  Those that are given are always
    there."""

    found = [parameter('name', f'{NAMED} {noun(thing)} {noun(thing)}_name '
                       f'{noun(thing)}_id', say_about(NAMED_ABOUT, thing))]

    for t in traits:
        found.append(parameter(
            t.words, f'{words(t.words)} {words(t.words)} '
            f'{noun(thing)}_{words(t.words)} new_{words(t.words)}',
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
    return '[' + text.format(thing=noun(thing), words=words, unit=unit) + ']' \
        if '|' in text else text.format(thing=noun(thing), words=words,
                                        unit=unit)


def about(texts, thing, **more):
    one, many = noun(thing), plural(thing)

    return '\n'.join(re.sub(r'\ba (?=[aeiou])', 'an ', t.format(
        thing=one, things=many, Things=many.capitalize(),
        key='[name|title|id]', **more))
        for t in texts.splitlines())


def act_service(thing, verb, takes):
    one = noun(thing)

    return service(
        f'{verb} a {one}', f'{verb} {one}\n{one} {verb}\n{verb} [one|a|the] '
        f'{one}\n[do|run|make] {verb} {one}',
        about(ACTS, thing, verb=verb, Verbs=third(verb).capitalize()), takes)


def read_service(thing, traits):
    one = noun(thing)

    return service(
        f'read a {one}', f'[get|read|show|fetch|lookup] {one}\n{one} '
        f'[details|info|get|data]\n[get|show] {one} [details|info|data]',
        about(READS, thing),
        [parameter('name', f'{NAMED} {one} {one}_name {one}_id q query',
                   say_about(NAMED_ABOUT, thing))],
        ' '.join(['name'] + [field(t) for t in traits]))


def find_service(thing, trait):
    one, many = noun(thing), plural(thing)

    return service(
        f'find {many}', f'[find|list|search|filter] {many}\n[find|list|search] '
        f'{many} by {trait.words}\n{many} by {trait.words}\n{one} search',
        about(FINDS, thing, words=trait.words),
        [parameter(trait.words, f'{words(trait.words)} {words(trait.words)} '
                   f'by_{words(trait.words)} value filter',
                   say_about(TRAIT_ABOUT, thing, trait.words,
                             f', in {trait.unit}' if trait.unit else ''),
                   trait.kind, trait.choices)], 'name')


def field(trait):
    """Returns the role of a field of results, which has its own name."""

    return 'open.' + words(trait.words)


# ---------------------------------------------------------------------- uses


def value(rng, trait):
    return rng.choice(trait.choices) if trait.choices else trait.make(rng)


def shown(v):
    if isinstance(v, list):
        return ' and '.join([', '.join(v[:-1]), v[-1]] if v[1:] else v)

    return str(v)


def state_detail(rng, state, v):
    return expand(rng, '[it is|it should be|] ' if v else
                  '[it is|it should be|] not ').strip() + ' ' + state \
        if rng.random() < 0.7 else f'{state}: {"yes" if v else "no"}'


ACT = Split('''{Verb} the {thing} {name}{d}.
Please {verb} the {thing} {name}{d}.
[Can|Could|Would] you {verb} the {thing} {name}{d}?
I [want|need|would like] to {verb} the {thing} {name}{d}.
{verb} {thing} {name}{d}
{thing} {name}: please {verb} it{d}.
There is a {thing} called {name}. {Verb} it[, please|]{d}.
[It is time to|We have to|Time to] {verb} the {thing} {name}{d}.
{name} is a {thing}. [Please|Could you] {verb} it{d}.
[My boss|My sister|A colleague] asked me to {verb} the {thing} {name}{d}. Do it for me.
About the {thing} {name}: {verb} it, [please|thanks]{d}.
I'd be glad if you could {verb} the {thing} {name}{d}.
[Hi|Hello], I need somebody to {verb} {thing} {name}{d}.
Next [step|job]: {verb} the {thing} "{name}"{d}.
the {thing} "{name}", [pls|please] {verb} it{d}
[You can|You may] {verb} the {thing} {name} now{d}.
Would it be possible to {verb} {thing} "{name}"{d}?
We agreed to {verb} the {thing} {name}{d}. [Go ahead.|Please do.]
{thing}: {name}. [What to do|Action]: {verb}{d}.
[Let's|Let us] {verb} the {thing} {name}{d}.
I forgot to {verb} the {thing} {name}. [Do that now|Can you do it]{d}?
{Verb} it: the {thing} {name}{d}.
[Don't forget to|Remember to|Make sure to] {verb} the {thing} {name}[ today| now|]{d}.
[The plan is to|The idea is to|What I want is to] {verb} {thing} {name}{d}.'''.splitlines())

DID = '''[Done|OK|All right]. The {thing} {name} is {past}.
The {thing} {name} [is|was] {past}.
I {past_i} the {thing} {name}.
[Done|Ready]: the {thing} {name} is {past}.
{name} is {past}.'''

READ = Split('''What is the {words} of the {thing} {name}?
What {words} does the {thing} {name} have?
[Tell|Give] me the {words} of the {thing} {name}.
{words} of {thing} {name}?
I need the {words} of the {thing} {name}.
{thing} {name}: {words}?
Which {words} does {thing} {name} have?
Do you know the {words} of the {thing} called {name}?
Look at the {thing} {name}. What is its {words}?
The {thing} {name}, what's the {words}?
[Can|Could] you look up the {words} of {thing} "{name}"?
whats the {words} for {thing} {name}
For the {thing} {name} I have no {words} in my notes. What is it?
There is a {thing} named {name}. I'd like to know the {words}.
Somebody asked for the {words} of our {thing} {name}.
[Check|Find out] the {words} of the {thing} {name}[, please|].
My {thing} is {name}. The {words}, please?
I can't remember the {words} of the {thing} {name}.
Is there a {words} for the {thing} {name}? Which one?
Let me have the {words} of the {thing} {name}.'''.splitlines())

READ_SAID = '''{v}.
The {words} is {v}.
The {words} of {name} is {v}.
{name}: {words} {v}.
[It is|That is] {v}.
The {thing} {name} has the {words} {v}.'''

FIND = Split('''Which {things} have the {words} {v}?
[Find|List|Show me] [all|the] {things} with the {words} {v}.
[Are there any|Do we have] {things} with {words} {v}? Name them.
{things} with {words} {v}?
I look for {things}. {Words}: {v}.
What {things} are there with the {words} {v}?
Name every {thing} whose {words} is {v}.
[I need|Give me] the {things} that have {v} as {words}.
{words} {v}, which {things} are that?
Search the {things} for {words} {v}.
Can you find me the {things} whose {words} is {v}?
The {words} should be {v}. Which {things} fit?
Go through the {things}: who has {words} {v}?
all {things}, {words} {v}, pls
Filter the {things}, I only want {words} {v}.'''.splitlines())

FOUND = '''{v}.
[There is|There are|I found]: {v}.
[It is|They are] {v}.
With the {words} {x}: {v}.
The {things} are {v}.'''


def act(rng, thing, verb):
    """Returns a Use that changes a thing, with some details."""

    does, others, past = verb
    traits = rng.sample(TRAITS, rng.randint(0, 5))
    states = rng.sample(STATES, rng.choice((0, 0, 0, 1, 1, 2)))
    given, details = {'name': label(rng)}, []

    if rng.random() < 0.2:
        traits.append(rng.choice(TIMES))

    if rng.random() < 0.3:
        traits.append(compound(rng))

    # a value that no parameter takes

    if traits and rng.random() < 0.2:
        t = traits.pop()
        details.append(detail(rng, t, open_details.draw(rng, t)[0],
                              [*traits, t]))

    for t in traits:
        if rng.random() < 0.75:
            said, given[t.words] = open_details.draw(rng, t)
            details.append(detail(rng, t, said, traits))

    for s in states:
        if rng.random() < 0.75:
            given[s] = rng.random() < 0.5
            details.append(state_detail(rng, s, given[s]))

    rng.shuffle(details)

    said = does if rng.random() < 0.5 else rng.choice(others.split(', '))
    template = rng.choice(ACT)
    gap = rng.choice((', ', ', ', ': ', '; ', ' - '))
    d = gap + rng.choice((', ', ', ', '; ')).join(details) if details else ''
    one = noun(thing)
    slots = dict(thing=one, name=given['name'], verb=said,
                 Verb=capital(said), d=d, past=past, past_i='have ' + past)
    user = tidy(manner(rng, say(rng, template, **slots),
                       template.startswith('{name}')))
    takes = parameters(rng, thing, traits, states, given)

    return Use(act_service(thing, does, takes), user, given, [],
               capital(say(rng, line(rng, DID), **slots)),
               (given['name'],), f'{does} the {one} {given["name"]}')


def tidy(text):
    """Removes a mark that follows another one."""

    return re.sub(r'([?.!])\.', r'\1', text)


def read(rng, thing):
    """Returns a Use that reads a value of a thing."""

    traits = rng.sample(TRAITS, rng.randint(2, 5))
    t, name = traits[0], label(rng)
    record = {'name': name, **{field(x): value(rng, x) for x in traits}}
    v = shown(record[field(t)])
    one = noun(thing)
    slots = dict(thing=one, name=name, words=t.words, v=v)
    template = rng.choice(READ)
    rng.shuffle(traits)

    return Use(read_service(thing, traits), manner(
        rng, say(rng, template, **slots), template.startswith('{')),
        {'name': name}, [record], capital(say(rng, line(rng, READ_SAID),
                                              **slots)),
        tuple(record[field(t)]) if t.kind == 'array' else (v,),
        f'find the {t.words} of the {one} {name}')


def find(rng, thing):
    """Returns a Use that finds the things with a value."""

    t = rng.choice([t for t in part_of(rng) if t.kind != 'array'])
    x = value(rng, t)
    found = []

    for _ in range(rng.choice((1, 1, 2, 3))):
        name = label(rng)
        if name not in found:
            found.append(name)

    slots = dict(things=plural(thing), thing=noun(thing), words=t.words,
                 Words=capital(t.words), v=x)
    template = rng.choice(FIND)
    user = manner(rng, say(rng, template, **slots), template.startswith('{'))
    answer = capital(say(rng, line(rng, FOUND), things=plural(thing),
                         words=t.words, x=x, v=shown(found)))

    return Use(find_service(thing, t), user, {t.words: x},
               [{'name': n} for n in found], answer, tuple(found),
               f'find the {plural(thing)} with the {t.words} {x}')


def part_of(rng):
    return rng.of(TRAITS) if hasattr(rng, 'of') else TRAITS


# --------------------------------------------------------------------- tasks


def draw(rng, thing):
    way = rng.random()

    if way < 0.5:
        return act(rng, thing, rng.choice(VERBS))

    return read(rng, thing) if way < 0.8 else find(rng, thing)


def beside(rng, things, verbs):
    """Returns other services: with these things or others, and what is done
    with them."""

    found = {}

    for _ in range(rng.randint(1, 5)):
        thing = rng.choice(things) if rng.random() < 0.6 \
            else rng.choice(THINGS)
        way = rng.random()

        if way < 0.6:
            verb = rng.choice(verbs) if rng.random() < 0.3 \
                else rng.choice(VERBS)[0]
            made = act_service(thing, verb, parameters(
                rng, thing, rng.sample(TRAITS, rng.randint(0, 3)), (), {}))
        elif way < 0.8:
            made = read_service(thing, rng.sample(TRAITS, 3))
        else:
            made = find_service(thing, rng.choice(
                [t for t in part_of(rng) if t.kind != 'array']))

        found[made.topic] = made

    return list(found.values())


def apart(use, other):
    """Returns true if two services cannot be taken for each other: their
    topics differ in the thing, or in what is done by more than a synonym."""

    a, b = use.topic.split(), other.topic.split()

    return a[-1] != b[-1] and plural(a[-1]) != b[-1] \
        and plural(b[-1]) != a[-1] or not same_deed(a[0], b[0])


def same_deed(a, b):
    if a == b or {a, b} == {'read', 'find'}:
        return True

    return any({a, b} <= {v[0], *(o.split()[0] for o in v[1].split(', '))}
               for v in VERBS) or any(
        a == v[0] and b in v[1] or b == v[0] and a in v[1] for v in VERBS)


def make(rng):
    thing = rng.choice(THINGS)
    use = draw(rng, thing)
    others = [s for s in beside(rng, [thing], [use.service.topic.split()[0]])
              if apart(use.service, s)]
    way = rng.random()

    if way < 0.12 and others:
        return nothing(rng, use, others)

    if way < 0.3:
        return two(rng, use, thing, others)

    apis, tools = box(rng, [use], (0, 5), (), others or [use.service])

    return task(rng, 'daily_open', 'single',
                [turn(rng, [use], apis, use.user, use.answer, True)], tools)


def two(rng, use, thing, others):
    """Two requests in one message."""

    second = draw(rng, thing if rng.random() < 0.5 else rng.choice(THINGS))

    while not apart(use.service, second.service):
        second = draw(rng, rng.choice(THINGS))

    uses = [use, second]
    apis, tools = box(rng, uses, (0, 4), (), [
        s for s in others if apart(second.service, s)] or [use.service])
    user = expand(rng, rng.choice(JOIN)).format(*(ended(u.user)
                                                  for u in uses))

    return task(rng, 'daily_open', 'multi', [turn(
        rng, uses, apis, user, ' '.join(ended(u.answer) for u in uses),
        rng.random() < 0.6)], tools)


def nothing(rng, use, others):
    """No tool does what is requested."""

    _, tools = box(rng, [], (1, 5), (), others)

    return declined(
        rng, 'daily_open', use.user,
        weighed(rng, use.want, use.user, tools),
        refusal(rng, use.want), tools)
