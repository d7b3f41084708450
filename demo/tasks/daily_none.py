# Copyright (C) The nginx-dsa authors

"""Requests that need a tool which is not there, with other tools or without
any; and requests for which the tools that are there are not needed."""

from tasks import daily_sums, daily_talk
from tasks.daily import box, draw_use, line, task
from tasks.parts import Split
from tasks.phrase import capital, expand
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.tools_check import NEGATIVE


REFUSE = '''[I'm sorry, but|Sorry,|Unfortunately,|I am afraid] I [cannot|can't] {want}[: none of my tools does that| with my tools| here|].
None of my tools can {want}[, so I have to pass|]. [Sorry.|I am sorry.|]
I have no tool [for that|for it], so I [cannot|can't] {want}.
[That is not possible here|I cannot help with that]: I have no tool to {want}.
I would need [another tool|a tool] to {want}, and I do not have [it|one].
[My tools do not cover that|There is no tool for that], so I can't {want}.'''

ALONE = '''[I'm sorry, but|Sorry,|Unfortunately,|I am afraid] I [cannot|can't] {want}: I have no tools[ here|].
I have no [access to that|tools in this chat], so I [cannot|can't] {want}.
[Without a tool|Without tools] I cannot {want}.
I can only [write|answer in text] here, so I can't {want}. [Sorry.|]
[That needs a tool|I would need a tool for that], and I have none. I can't {want}.
I am not connected to [anything|any service], so I cannot {want}.'''

THINK = Split('''None of the tools can {want}.
The tools that I have do not {want}.
I look for a tool to {want}: there is none.
To {want} I would need a tool that is missing.
No tool fits: the request is to {want}.'''.splitlines())


def make(rng):
    if rng.random() < 0.3:
        return needless(rng)

    use = draw_use(rng, ('the database', 'records', 'the shell'))
    alone = rng.random() < 0.3
    tools = {} if alone else box(
        rng, [], (1, 6), (use.service.topic, *NEAR.get(use.service.topic,
                                                       ())))[1]
    answer = capital(line(rng, ALONE if alone else REFUSE).format(
        want=use.want))
    thoughts = expand(rng, rng.choice(THINK)).format(want=use.want)

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'a tool was called that does not fit'

        return None if NEGATIVE.search(text) else f'no refusal in: {text}'

    return task(rng, 'daily_none', 'single', [Turn(use.user, check, gold)],
                tools, (RETAIN, CHAT))


# services that could be taken for another one

ALL_FILES = ('reading files', 'writing files', 'folders', 'the shell', 'notes')
NEAR = {
    'mail': ('messages',), 'messages': ('mail',),
    'the calendar': ('reminders',), 'reminders': ('the calendar', 'notes'),
    'the agenda': ('the to-do list', 'the calendar'),
    'the to-do list': ('the agenda', 'reminders'),
    'timers': ('reminders',), 'notes': ('writing files', 'reminders'),
    'goods and prices': ('a search', 'records'),
    'places nearby': ('a search', 'distances', 'opening hours'),
    'table bookings': ('the calendar', 'places nearby'),
    'stock prices': ('a search',),
    'the weather': ('a search', 'the forecast'),
    'the forecast': ('a search', 'the weather'),
    'air quality': ('a search', 'the weather'),
    'sunrise and sunset': ('a search', 'the weather', 'the forecast'),
    'opening hours': ('a search', 'places nearby', 'contacts'),
    'hotel prices': ('a search', 'places nearby'),
    'the dictionary': ('a search', 'translations'),
    **{t: ('a search',) for t in (
        'local times', 'departures', 'recipes', 'nutrition facts', 'films',
        'books', 'software packages', 'public holidays', 'sports results',
        'flights', 'units')},
    'charging stations': ('a search', 'places nearby'),
    'contacts': ('a search', 'records', 'opening hours'), 'exchange rates': ('a search',),
    'translations': ('a search',), 'distances': ('a search',),
    'the inbox': ('messages',), 'deliveries': ('records',),
    **{f: ALL_FILES for f in ALL_FILES},
}


def needless(rng):
    """Talk and sums beside tools that are not needed."""

    turn = rng.choice((daily_talk, daily_sums)).turn(rng)
    _, tools = box(rng, [], (1, 4), ('messages', 'timers', 'notes'))

    return task(rng, 'daily_none', 'single', [turn], tools,
                (RETAIN, CHAT))
