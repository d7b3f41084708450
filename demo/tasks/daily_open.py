# Copyright (C) The nginx-dsa authors

"""Tools for things of any kind (open_words.py): a thing is changed, one of its
values is read, or things with a value are found.  The other tools do something
else with the same things, or the same with other things.  There are too many
for a model to remember, so that it must compare the words of a request with
those of the descriptions.  In open_deeds.py, people have other words for what
is done than the tools have; and there are lists, with a name and items."""

import re

from tasks import names, open_deeds, open_details, spoken
from tasks.api import Use, parameter, same, service
from tasks.daily import box, line, task, turn
from tasks.daily_chain import ended
from tasks.daily_many import JOIN
from tasks.daily_none import declined, refusal, weighed
from tasks.open_details import TIMES, compound, detail, meant, typed
from tasks.open_words import (STATES, THINGS, TRAITS, VERBS, act_service,
                              field, find_service, label, parameters, person,
                              plural, read_service, shown, singular, value,
                              with_it)
from tasks.parts import Split, part
from tasks.phrase import capital, expand, manner, say


# ---------------------------------------------------------------------- uses


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

    if rng.random() < 0.2:
        traits.append(meant(rng, traits))

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
    one = singular(thing)
    slots = dict(thing=one, name=given['name'], verb=said,
                 Verb=capital(said), d=d, past=past, past_i='have ' + past,
                 verb_it=with_it(said), Verb_it=capital(with_it(said)))
    user = tidy(manner(rng, say(rng, template.replace('erb} it', 'erb_it}'),
                                **slots),
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
    one = singular(thing)
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

    slots = dict(things=plural(thing), thing=singular(thing), words=t.words,
                 Words=capital(t.words), v=x)
    template = rng.choice(FIND)
    user = manner(rng, say(rng, template, **slots), template.startswith('{'))
    answer = capital(say(rng, line(rng, FOUND), things=plural(thing),
                         words=t.words, x=x, v=shown(found)))

    return Use(find_service(thing, t), user, {t.words: x},
               [{'name': n} for n in found], answer, tuple(found),
               f'find the {plural(thing)} with the {t.words} {x}')


def part_of(rng):
    return part(rng, TRAITS)


# --------------------------------------------------------- lists with items


# what is done with a list: names of the tool; its descriptions; requests, with
# {i} for the items and {n} for the name of the list; answers

ON_LISTS = {
    'add': ('''add to list
add [item|items]
list add
append to list
add list items
put on list''', '''[Adds|Appends] items to a list
[Puts|Writes] [something|items] on a list
Lists: add items''', Split('''Put {i} on my {n} list.
Add {i} to the {n} list.
{i} for the {n} list, please.
My {n} list needs {i}.
I still need {i}. My {n} list, please.
{n} list: {i}
{n} list + {i}
Note {i} on the {n} list.
{i} should go on the {n} list.
Please write {i} on my {n} list.
For the {n} list: {i}.
{i} -> {n} list
Can you get {i} onto my {n} list?
Don't let me forget {i}, on the {n} list with that.
The {n} list lacks {i}.'''.splitlines()),
            '''[Done|OK]: {i} added to the {n} list.
The {n} list has {i} now.
I put {i} on the {n} list.'''),
    'take': ('''remove from list
remove [item|items]
delete items
take off list
strike items''', '''[Removes|Deletes] items from a list
[Takes|Strikes] items off a list
Lists: remove items''', Split('''Take {i} off my {n} list.
Cross {i} off the {n} list.
Strike {i} from my {n} list.
Remove {i} from the {n} list.
I no longer need {i} on my {n} list.
My {n} list without {i}, please.
{i} can come off the {n} list.
Drop {i} from the {n} list.
{n} list - {i} (off)
I have got {i} now. Off my {n} list with that.
We have got {i} now, so cross that off the {n} list.
On the {n} list, delete {i}.'''.splitlines()),
             '''[Done|OK]: {i} taken off the {n} list.
The {n} list has no {i} any more.
I took {i} off the {n} list.'''),
    'read': ('''[get|show|read|view|fetch] list
list items
[get|show|fetch] list items
list [read|show|view]''', '''[Returns|Shows|Reads] [the items of|what is on] a list
Lists: the items of one''', Split('''What's on my {n} list?
Read me the {n} list.
Show me my {n} list.
Let me see the {n} list.
What is there on the {n} list?
{n} list, please
What did I put on my {n} list?
I need to look at my {n} list.
Tell me everything that is on the {n} list.
How does my {n} list look?'''.splitlines()),
             '''{i}.
On the {n} list: {i}.
Your {n} list has {i}.'''),
    'make': ('''create list
make list
new list
start list''', '''[Creates|Makes|Starts] a [new |]list
Lists: create one''', Split('''I need a {n} list.
Make me a {n} list.
Start a new {n} list.
Set up a {n} list for me.
Let's begin a {n} list.
Create a list called {n}.
A new list, please: {n}.
Could I have a {n} list?
There is no {n} list yet, so make one.'''.splitlines()),
             '''[Done|OK]: the {n} list is there.
The {n} list is set up.
I made a {n} list.'''),
    'clear': ('''clear list
empty list
list clear
reset list''', '''[Clears|Empties] a list
[Removes|Deletes] all items of a list
Lists: empty one''', Split('''Empty my {n} list.
Clear the {n} list.
Everything off my {n} list, please.
I want an empty {n} list again.
Wipe my {n} list clean.
Nothing on the {n} list is needed any more, empty it.
Take all items off the {n} list.
I have got it all, so clear my {n} list.
Let me begin my {n} list from zero, without the old items.'''.splitlines()),
              '''[Done|OK]: the {n} list is empty.
The {n} list is empty now.
I cleared the {n} list.''')}

GIVEN = {'add': True, 'take': True}         # with items

LIST_NAMES = Split('''shopping grocery packing reading wish guest party to-do
birthday holiday baking cleaning repair garden music movie gift camping moving
office school weekend summer travel invitation breakfast market hardware
pharmacy picnic festival wedding ski beach work lunch barbecue tool'''.split())

ITEMS = (names.GOODS, names.GOODS, names.PRODUCTS, names.ERRANDS, names.TOPICS)


def list_name(rng):
    return rng.choice(LIST_NAMES if rng.random() < 0.7 else names.NOUNS)


def list_items(rng):
    """Returns some items of one kind, such as people or goods."""

    pool = rng.choice(ITEMS)
    n = rng.choice((1, 2, 2, 3, 3, 4))

    if rng.random() < 0.15:
        return list(dict.fromkeys(person(rng) for _ in range(n)))

    return list(dict.fromkeys(rng.choice(pool) for _ in range(n)))


def list_use(rng, deed):
    called, described, ways, answers = ON_LISTS[deed]
    n, items = list_name(rng), list_items(rng)
    takes = [parameter('name', 'list list_name name list_title list_id',
                       '[Name of the list|Which list|The list]')]
    given = {'name': n}

    if deed in GIVEN:
        takes.insert(rng.randint(0, 1), parameter(
            'items', 'items entries things list_items new_items'
            if deed == 'add' else 'items entries things list_items',
            '[The items|What it is|Items of the list]', 'array'))
        given['items'] = items

    way = rng.choice(ways)
    said = spoken.listed(rng, items)
    request = say(rng, way, n=n, i=said)
    user = typed(rng, request, way[:3] == '{i}')
    answer = say(rng, line(rng, answers), n=n, i=shown(items))

    return Use(service(f'{deed} items', called, described, takes,
                       'item' if deed == 'read' else ''),
               user, given, [{'item': i} for i in items]
               if deed == 'read' else [], capital(answer),
               tuple(items) if deed in ('add', 'take', 'read') else (n,),
               {'add': f'put {said} on the {n} list',
                'take': f'take {said} off the {n} list',
                'read': f'show the {n} list', 'make': f'make the {n} list',
                'clear': f'empty the {n} list'}[deed], on_list)


def on_list(role, wanted, value):
    """Compares arguments; the name of a list may end with "list"."""

    if role == 'name':
        return same(role, wanted, re.sub(' list$', '', str(value)))

    return same(role, wanted, value)


def lists(rng):
    """Tools for lists that have a name and items, which are different
    parameters."""

    deeds = rng.sample(list(ON_LISTS), rng.randint(2, 5))
    name = deeds[0]

    if name not in GIVEN and rng.random() < 0.5:
        name = 'add'
        deeds = ['add'] + [d for d in deeds if d != 'add']

    use = list_use(rng, name)
    beside = [list_use(rng, d).service for d in deeds[1:]]
    apis, tools = box(rng, [use], (len(beside), len(beside)), (), beside)

    return task(rng, 'daily_open', 'single',
                [turn(rng, [use], apis, use.user, use.answer, True)], tools)


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
    """Returns true if two verbs of tools, or what people say for them, can
    mean the same."""

    if a == b or {a, b} == {'read', 'find'} or any(
            open_deeds.same_verb(x, y) for x in said_for(a)
            for y in said_for(b)):
        return True

    return any({a, b} <= {v[0], *(o.split()[0] for o in v[1].split(', '))}
               for v in VERBS) or any(
        a == v[0] and b in v[1] or b == v[0] and a in v[1] for v in VERBS)


def said_for(verb):
    return {verb, *(o for v in VERBS if v[0] == verb
                    for o in v[1].split(', '))}


# the shares of tasks whose tools do different things with one thing, and of
# those with lists

DEEDS = 0.36
LISTS = 0.04


def make(rng):
    way = rng.random()

    if way < DEEDS:
        return open_deeds.make(rng)

    return lists(rng) if way < DEEDS + LISTS else any_tool(rng)


def any_tool(rng):
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
