# Copyright (C) The nginx-dsa authors

"""Turns with tools as people write them: which calls are made, what is thought
and said, and what is right."""

import re

from tasks import names, rules, weigh
from tasks.api import Api, same, text_of
from tasks.parts import Split
from tasks.phrase import expand, say
from tasks.task import CHAT, DISCARD, RETAIN, Step, Task, Turn
from tasks.uses_act import ACT
from tasks.uses_book import BOOK
from tasks.uses_code import CODE
from tasks.uses_do import DO
from tasks.uses_look import LOOK
from tasks.uses_mine import MINE
from tasks.uses_own import OWN


# kinds of use by the topic of their service, which is drawn first

TOPICS = {}

for kind in LOOK + ACT + OWN + CODE + BOOK + DO + MINE:
    topic = 'the database' if not hasattr(kind, 'service') \
        else kind.service.topic
    TOPICS.setdefault(topic, []).append(kind)

SERVICES = [TOPICS[t][0].service for t in TOPICS if t != 'the database']

# topics whose tools can do the same, so that they are not offered together

CLASH = (('the shell', 'reading files', 'writing files', 'folders'),
         ('the database', 'records'), ('new issues', 'support tickets'))


def alike(topics):
    """Returns these topics and those that clash with one of them."""

    return {*topics, *(t for group in CLASH for t in group
                       if set(group) & set(topics))}


# topics that people ask for more often than for others

OFTEN = [t for t in TOPICS if any(t == k.service.topic for k in LOOK + ACT)]


def draw_use(rng, but=()):
    """Returns a Use of a topic that is not in but, or like one of it."""

    but = alike(but)
    topic = rng.choice([t for t in (OFTEN if rng.random() < 0.4 else TOPICS)
                        if t not in but])

    return rng.choice(TOPICS[topic]).draw(rng)


def box(rng, uses, others=(0, 5), without=(), services=None):
    """Returns the Apis for the uses, by topic, and the tools of a task: theirs
    and those of others of these services, in any order."""

    style = rng.choice(('snake', 'snake', 'camel', None))
    apis = {}

    for use in uses:
        topic = use.service.topic

        if topic not in apis:
            apis[topic] = Api(rng, use.service, style)

        apis[topic].learn(use.given, use.records, use.accepts)

    without = alike(apis) | set(without)
    spare = [s for s in services or SERVICES if s.topic not in without]
    offered = [a for a in apis.values()]
    offered += [Api(rng, s, style)
                for s in rng.sample(
                    spare, min(len(spare), rng.randint(*others)))]
    rng.shuffle(offered)
    tools = {}

    for api in offered:
        if api.name not in tools:
            tools[api.name] = api.tool

    if any(tools.get(a.name) is not a.tool for a in apis.values()):
        return box(rng, uses, others, without, services)

    for api in offered:
        api.offered = list(tools)

    return apis, tools


# ----------------------------------------------------------------- thoughts


BEGIN = '''[The user wants me to|I should|I have to|The request is to|To do:] {want}.
[Asked is to|What to do:|The task is to|I am asked to] {want}.'''
QUOTE = '''[The user writes|The user says|The request is|Asked is]: "{said}"
"{said}" [That is asked.|I do that.|is the request.]'''
READ = '''[It returned|The result has|I got|The result says|Found]: {keys}. [Now I answer.|That answers it.|So I can answer.|]
[From the result|The answer is in the result|I read]: {keys}.'''
DONE = '''[It worked.|It is done.|The call succeeded.|The result says that it is done.] [Now I say so.|I confirm {keys}.|So: {keys}.]
[Done|No error], [I confirm|I report]: {keys}.'''
BEFORE = '''[Let me|I will|I'll] {want}.
[One moment|Sure|All right|OK][.|!|, one moment.]
[I am going to|Just a second, I] {want}.'''


def line(rng, text):
    return expand(rng, rng.choice(text.splitlines()))


class Thoughts:
    """What is thought and said at the steps of a turn, drawn once for all
    modes.  before: what an earlier call had, which the request changes."""

    def __init__(self, rng, uses, apis, user, before=''):
        self.want = [f'{request(rng, u.want, u.user, user)} {before}'.strip()
                     for u in uses]
        self.call = [choice(apis[u.service.topic], u) for u in uses]
        self.read = [line(rng, READ if u.service.gives and u.records != ''
                          else DONE).format(
            keys=fields(apis[u.service.topic], u.records, u.keys))
            for u in uses]
        self.before = line(rng, BEFORE).format(
            want=' and '.join(u.want for u in uses)) \
            if rng.random() < 0.3 else ''


READABLE = 60           # letters of a value that is repeated


def fields(api, records, keys):
    """Returns what is read in a result: the fields of a single record up to
    the last one that matters, each with whether it does, or only those that
    matter."""

    if isinstance(records, list) and len(records) == 1:
        read = [(api.fields[r], str(v)) for r, v in records[0].items()
                if r in api.fields]
        wanted = {k.split('|')[0] for k in keys}
        last = max((i for i, (_, v) in enumerate(read) if v in wanted),
                   default=-1)

        if wanted <= {v for _, v in read} and max(
                len(v) for _, v in read) <= READABLE:
            return '. '.join(f'{n}: {v}, {"yes" if v in wanted else "no"}'
                             for n, v in read[:last + 1])

    return ', '.join(field(api, records, k) for k in keys)


def field(api, records, key):
    """Returns what is read in a result: a word of the answer, after the name
    of its field if it has one."""

    key = key.split('|')[0]

    for record in records if isinstance(records, list) else ():
        for role, value in record.items():
            if str(value) == key and role in api.fields:
                return f'{api.fields[role]}: {key}'

    return key


# Words that a model copies are right more often than its own, above all if it
# has never seen a request like this.  So a thought quotes what is not long.

LONGEST = 240           # letters of a quotation


def request(rng, want, said, user):
    """Returns the thought about what a user wants who has said it with these
    words in a message, or with others."""

    said, user = (' '.join(text.split()) for text in (said, user))
    said = said if said in user else user

    return line(rng, QUOTE).format(said=said) if 0 < len(said) <= LONGEST \
        else line(rng, BEGIN).format(want=want)


def choice(api, use):
    """Returns the thought about the tool of a use and its arguments."""

    return f'{weigh.weighed(api.offered, api.name)} {described(api, use.given)}'


def described(api, given):
    """Returns the thought about the arguments of a call; given is by role."""

    said = weigh.filled(api.tool.function, api.call(given)[1])

    return said if said.endswith('.') else said + '.'


# -------------------------------------------------------------------- turns


def turn(rng, uses, apis, user, answer, together, before=''):
    """Returns the Turn that does the uses and answers.

    together   their calls are made in one step
    before     as in Thoughts
    """
    t = Thoughts(rng, uses, apis, user, before)
    calls = [apis[u.service.topic].call(u.given) for u in uses]
    n = len(uses)
    groups = [list(range(n))] if together else [[i] for i in range(n)]

    def gold(mode):
        seen = []

        for group in groups:
            content = t.before if mode == CHAT and not seen else ''
            yield Step(thought(mode, t, seen, group), content,
                       [calls[i] for i in group])
            seen += group

        yield Step(thought(mode, t, seen, []), answer)

    return Turn(user, lambda text, made: judge(uses, apis, text, made), gold)


def thought(mode, t, seen, group):
    """Returns the reasoning before the calls of a group, or before the answer
    if it is empty; seen are the uses whose results are there."""

    if mode == CHAT:
        return ''

    said = []

    if seen and mode == DISCARD:
        said += [t.want[i] for i in seen]

    said += [t.read[i] for i in (seen if mode == DISCARD or not group
                                 else seen[-1:])]

    for i in group:
        said += [t.want[i], t.call[i]]

    return ' '.join(said)


def judge(uses, apis, answer, calls):
    """Returns None if each use has its call, no action was done twice or
    without need, and the answer has the words of each use."""

    for use in uses:
        api = apis[use.service.topic]
        right = [c for c in calls if c.name == api.name
                 and is_right(api, use, c)]

        if not right:
            return f'{api.name} was not called to {use.want}'

    for api in apis.values():
        if not api.service.gives:
            done = [c for c in calls if c.name == api.name
                    and c.result == text_of(api.show([]))]

            if len(done) > sum(u.service.topic == api.service.topic
                               for u in uses):
                return f'{api.name} was called too often'

    for use in uses:
        for key in use.keys:
            if not states(answer, key):
                return f'"{key}" is not in: {answer}'

    return None


def is_right(api, use, call):
    asked = api.roles(call.arguments)
    accepts = use.accepts or same

    return (call.result == text_of(api.show(use.records))
            and all(r in asked and accepts(r, v, asked[r])
                    for r, v in use.given.items()))


def states(answer, key):
    """Returns true if an answer has a key, or one of several that are divided
    by bars, as a word of its own."""

    return any(re.search(r'(?<![\w.+-])' + re.escape(k)
                         + r'(?!\w|[.,]\d)', answer, re.IGNORECASE)
               or k[:1] in '+-' and k in answer
               for k in str(key).split('|'))


# ------------------------------------------------------------------- system

SYSTEM = Split('''You are a helpful assistant.
You are a [helpful|friendly|polite|careful|smart] assistant[ with tools|].
You [help|assist] the [user|customers|people] of [a small company|our shop|a school|an office|a hotel|the city].
Use the tools [if they help|when you need them|that you have].
[Answer|Reply] [briefly|in one sentence|shortly|in a few words].
You are [the assistant|a bot] of {name}.
Today is a [nice|normal|busy] day. [Be kind.|Be exact.|Be quick.]
Be [concise|brief|friendly|precise].
You [work|answer] for {name}, [an office|a shop|a service] in {city}.
[Do not guess.|Never invent facts.|Do not make up results.]
You are {name}, a [digital|virtual|personal] assistant.
Help the user. [Call tools when needed.|Be brief.|]
You are {name}. You [work|live] in {city} and [answer|help] [whoever writes to you|the guests|everybody].
You are the [chat bot|assistant|help desk] of [a|the] [bakery|library|garage|gym|museum|hotel|town hall|pharmacy] in {city}.
[You have access to|You can use] [tools|functions]. [Call one if it helps.|Use them rather than guess.|]
If a tool [fails|returns an error], say so. [Do not invent a result.|]
[If no tool fits|If you lack a tool], [say so|tell the user].
If something is missing, ask for it.
[Keep|Make] [it|your answers] short. No [small talk|long explanations|lists].
You are an [expert|experienced] [assistant|secretary|operator].
The user is called {name}[ and lives in {city}|].
Your user, {name}, is [busy|in a hurry|not a native speaker|a beginner].
[assistant mode|You are an AI assistant|AI assistant]. [Answer truthfully.|Be useful.|]
This is a chat on the website of {name}[, {city}|].
You talk to [employees|members|students|guests|clients] of {name}.
[Speak|Write] [plain|simple] English. [Short sentences.|No jargon.|]
Respond to the [request|last message] of the user.
[Do|Only do] what the user asks[, not more|].
You help {name} [to organize the day|with small tasks|at work|with the household].
Think before you answer. [Then be brief.|Check the result.|]
You are connected to the [systems|services] of [our company|the office|{name}].
Each tool call costs money. Do not call without need.
Never do [anything|something] that was not asked for.
Report numbers exactly as the tools give them.'''.splitlines())


def system(rng, strict):
    """Returns a rule of a system prompt, or None; strict: it changes no
    answer."""

    way = rng.random()

    if way < 0.55:
        return None

    if way < 0.85 or strict:
        return rules.free(say(rng, rng.choice(SYSTEM),
                              name=rng.choice(names.FIRST),
                              city=rng.choice(names.PLACES)))

    return rules.changing(rng)


def task(rng, family, kind, turns, tools, modes=(RETAIN, DISCARD, CHAT),
         strict=False):
    """Returns the Task, with a system prompt or without.  strict: the form of
    the answers is fixed."""

    rule = system(rng, strict)

    if rule is None:
        return Task(family, kind, turns, modes, tools=tools)

    return Task(family, kind, [rule.turn(t) for t in turns], modes,
                rule.system, tools)
