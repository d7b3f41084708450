# Copyright (C) The nginx-dsa authors

"""Requests that need a tool which is not there, with other tools or without
any, or with one that is close (daily_near.py); and requests for which the
tools that are there are not needed."""

from tasks import (daily_copy, daily_format, daily_near, daily_simple,
                   daily_sums, daily_talk, daily_text, weigh)
from tasks.daily import TOPICS, box, line, request, states, task
from tasks.phrase import capital, expand, manner, say
from tasks.task import CHAT, RETAIN, Step, Task, Turn
from tasks.tools_check import NEGATIVE


REFUSE = '''[I'm sorry, but|Sorry,|Unfortunately,] I have no tool for that.
I [cannot|can't] do that[. My tools are for other things.|: there is no tool for it.]
[I'm sorry, but|Sorry,|Unfortunately,|I am afraid] I [cannot|can't] {want}[: none of my tools does that| with my tools| here|].
None of my tools can {want}[, so I have to pass|]. [Sorry.|I am sorry.|]
I have no tool [for that|for it], so I [cannot|can't] {want}.
[That is not possible here|I cannot help with that]: I have no tool to {want}.
I would need [another tool|a tool] to {want}, and I do not have [it|one].
[My tools do not cover that|There is no tool for that], so I can't {want}.
I [can't|cannot] {want}. [The tools that I have are for other things.|My tools do other things.|That is beyond my tools.]
[I wish I could, but|Much as I would like to,] I am not able to {want}[ here| with what I have|].
To {want}[,|] I would have to have [another tool|a different tool], which I don't.
[Not with these tools|Not possible with my tools], sorry: I can't {want}.
[I looked at my tools|I went through my tools], but there is none to {want}.
That is not something I can do: nothing here lets me {want}.
[I'm afraid that|It seems that] I have nothing to {want}. [You will have to do it yourself, sorry.|Please do it in another way.|Can I do something else?]
[Sorry|I'm sorry], no tool here can {want}.'''

# Half of the refusals do not name what is refused: of a request unlike those of
# training, a model names it wrongly.

PLAIN = '''[I'm sorry, but|Sorry,|Unfortunately,|I am afraid] I have no tool for that.
[Sorry, I|I'm afraid I|I] [cannot|can't] do that[ here| with my tools|].
I have no tool for [that|this|it].
None of my tools can do that[, sorry|].
[That is not possible here|I cannot help with that]: [the tool for it is missing|I have no tool for it].
[My tools do not cover that|There is no tool for that][, sorry|]. [Can I do something else?|]
I [can't|cannot] do that: no tool here is made for it.
[I looked at my tools|I went through my tools], but none fits.'''

PLAIN_ALONE = '''[I'm sorry, but|Sorry,|Unfortunately,|I am afraid] I [cannot|can't] do that without tools.
I have no [access to that|tools in this chat], so I [cannot|can't] do it.
I can only [write|answer in text] here, so I can't do that. [Sorry.|]
[That needs a tool|I would need a tool for that], and I have none. [So I can't do it.|I cannot do it.]
I am not connected to [anything|any service], so I cannot do that.
[Here I have only words|All I have here is text], so I can't. [Sorry.|]
I [can't|cannot] do that, [because|since] I have no tools.'''

ALONE = '''[I'm sorry, but|Sorry,|Unfortunately,|I am afraid] I [cannot|can't] {want}: I have no tools[ here|].
I have no [access to that|tools in this chat], so I [cannot|can't] {want}.
[Without a tool|Without tools] I cannot {want}.
I can only [write|answer in text] here, so I can't {want}. [Sorry.|]
[That needs a tool|I would need a tool for that], and I have none. I can't {want}.
I am not connected to [anything|any service], so I cannot {want}.
I [can't|cannot] {want}, [because|since] nobody gave me a tool for it.
[Here I have only words|All I have here is text], so I can't {want}. [Sorry.|]
I am not able to {want}[ from here|]: [there are no tools|no tools are connected|I have no connection to anything].
[No tools are connected|There are no tools here|I have no tools], which means that I can't {want}.
[I would like to help, but|I'd be glad to, but] I cannot {want} without a tool.
[Sorry|I'm sorry], I don't have what it takes to {want}: no tool at all.
To {want}[,|] I would have to be connected to [something|a service], and I am not.'''

def refusal(rng, want, alone=False):
    """Returns an answer that refuses; alone: there are no tools."""

    plain = rng.random() < 0.5
    texts = (PLAIN_ALONE if alone else PLAIN) if plain \
        else ALONE if alone else REFUSE

    return capital(line(rng, texts).format(want=want))


NO_TOOLS = '[I have no tools.|There are no tools here.|No tool is connected.]'
NONE_FITS = '[None is for that.|None of them does it.|No tool fits.]'


def weighed(rng, want, user, tools):
    """Returns the thought about a request for which no tool is there."""

    return ' '.join((request(rng, want, user, user), weigh.weighed(tools),
                     expand(rng, NONE_FITS)) if tools else
                    (request(rng, want, user, user), expand(rng, NO_TOOLS)))


def make(rng):
    way = rng.random()

    if way < 0.2:
        return needless(rng)

    if way < 0.4:
        return simple(rng)

    if way < 0.65:
        return close(rng)

    return missing(rng)


# topics whose requests are understood without a tool, or that are offered in
# another way

NOT_MISSING = ('the database', 'records', 'the shell', 'a calculator')


def missing(rng):
    """The tool for the request is not there."""

    topic = rng.choice([t for t in TOPICS if t not in NOT_MISSING])
    use = rng.choice(TOPICS[topic]).draw(rng)
    alone = rng.random() < 0.3
    tools = {} if alone else box(rng, [], (1, 6), near(topic))[1]
    answer = refusal(rng, use.want, alone)
    thoughts = weighed(rng, use.want, use.user, tools)

    return declined(rng, 'daily_none', use.user, thoughts, answer, tools)


def declined(rng, family, user, thoughts, answer, tools):
    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'a tool was called that does not fit'

        return None if NEGATIVE.search(text) else f'no refusal in: {text}'

    return task(rng, family, 'single', [Turn(user, check, gold)], tools,
                (RETAIN, CHAT))


def close(rng):
    """The tool that is offered is close to the request, but does another
    thing."""

    topic, want, user = daily_near.draw(rng)
    use = rng.choice(TOPICS[topic]).draw(rng)
    tools = box(rng, [use], (0, 4), set(TOPICS) - daily_near.beside(topic))[1]

    return declined(rng, 'daily_none', user, weighed(rng, want, user, tools),
                    refusal(rng, want), tools)


# services of which one could be taken for another; any of them could be
# replaced by a search

ALIKE = (
    ('mail', 'messages', 'team channels'),
    ('the inbox', 'messages', 'the last message', 'mail'),
    ('the calendar', 'the agenda', 'reminders', 'appointments', 'alarms',
     'the to-do list', 'timers', 'notes', 'moving events', 'birthdays',
     'cancelling events'),
    ('notes', 'writing files', 'the shopping list', 'the to-do list'),
    ('table bookings', 'the calendar', 'places nearby', 'my bookings',
     'hotels', 'opening hours'),
    ('goods and prices', 'records', 'the warehouse', 'orders', 'what to buy',
     'the shopping list', 'hotel prices'),
    ('deliveries', 'records', 'my orders', 'orders'),
    ('contacts', 'records', 'the inbox', 'user accounts', 'birthdays',
     'opening hours'),
    ('charging stations', 'places nearby', 'distances'),
    ('opening hours', 'places nearby'), ('units', 'a calculator'),
    ('distances', 'departures', 'train tickets', 'taxis', 'places nearby'),
    ('the weather', 'the forecast', 'air quality', 'sunrise and sunset',
     'the state of the home'),
    ('the home', 'lamps', 'the thermostat', 'the state of the home', 'music'),
    ('reading files', 'writing files', 'folders', 'the shell', 'notes'),
    ('issues', 'new issues', 'support tickets', 'the to-do list'),
    ('builds', 'deployments', 'logs', 'the shell'),
    ('fitness', 'workouts'), ('flights', 'departures', 'train tickets'),
    ('recipes', 'nutrition facts'), ('software packages', 'the shell'),
    ('new issues', 'support tickets'), ('local times', 'the shell', 'timers',
                              'sunrise and sunset'),
    ('the dictionary', 'translations'), ('hotels', 'hotel prices',
                                         'places nearby', 'my bookings'),
    ('the bank account', 'expenses', 'exchange rates', 'subscriptions'),
)


def near(topic):
    """Returns the topic and those whose tools might do."""

    return {topic, 'a search', 'records', 'the shell', 'the database',
            *(t for group in ALIKE if topic in group for t in group)}


# ------------------------------------------------------- no tool is needed


# topics of tools that know nothing of what talk, sums and texts are about

BESIDE = {'mail', 'the calendar', 'reminders', 'music', 'the home',
          'deliveries', 'issues', 'new issues', 'builds', 'deployments',
          'logs', 'table bookings', 'the to-do list', 'stock prices', 'polls', 'workouts', 'fitness',
          'subscriptions', 'support tickets', 'lamps', 'the thermostat',
          'alarms', 'my orders', 'user accounts', 'moving events',
          'cancelling events', 'hotels', 'train tickets', 'taxis'}


def needless(rng):
    """Talk, sums and texts beside tools that are not needed."""

    source = rng.choice((daily_talk, daily_talk, daily_sums, daily_text,
                         daily_copy, daily_format))
    whole = source.make(rng)
    _, tools = box(rng, [], (1, 5), set(TOPICS) - BESIDE)

    # its turns may follow the rule of its own system prompt

    return Task('daily_none', 'single', whole.turns, (RETAIN, CHAT),
                whole.system, tools)


NO_TOOL = '''[No tool is needed.|I know that without a tool.|That needs no call.|I can answer that myself.|The tools are for other things.|Nothing to call here.] {thought}.
{thought}. [No tool is needed.|That is simple.|No call for that.|I answer at once.|]
[A simple question|An easy one|Simple]: {thought}. [No tool.|I need no tool for it.|]'''


def simple(rng):
    """A question that anybody can answer, beside tools; or about them."""

    _, tools = box(rng, [], (1, 6), ('a calculator', 'a search',
                                     'the dictionary', 'the shell'))

    if rng.random() < 0.15:
        asks, said = daily_simple.TOOLS, daily_simple.TOOLS_SAID.splitlines()
        names = list(tools)
        slots = dict(names=', '.join(names[:-1])
                     + (' and ' if names[1:] else '') + names[-1])
        keys, thought = names, 'The tools are in the list'
    else:
        asks, said, slots, keys, thought = rng.choice(
            daily_simple.SIMPLE)(rng)

    ask = rng.choice(asks)
    user = manner(rng, say(rng, ask, **slots), ask.startswith('{'))
    answer = say(rng, rng.choice(said), **slots)
    answer = answer if keys == list(tools) else capital(answer)
    thoughts = line(rng, NO_TOOL).format(thought=capital(thought))

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'no tool was needed'

        for key in keys:
            wanted, other = key[1:] if isinstance(key, tuple) \
                else (key, None)

            if not states(text, wanted):
                return f'{wanted} is not in: {text}'

            if other is not None and states(text, other):
                return f'{other} is in: {text}'

        return None

    return task(rng, 'daily_none', 'single', [Turn(user, check, gold)],
                tools, (RETAIN, CHAT))
