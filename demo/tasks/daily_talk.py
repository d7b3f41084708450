# Copyright (C) The nginx-dsa authors

"""Small talk and feelings, and questions that a model without knowledge of the
world must decline, in many wordings.

A subject is some lines: "-" what the user says, ">" an answer, "+" words of
which an answer must have one, "!" words that it must not have.  Both "-" and
">" may have alternatives and slots.  The subjects are in talk_feel.py,
talk_meet.py and talk_me.py.
"""

from tasks import names, rules, talk_feel, talk_me, talk_meet
from tasks.daily import line, task
from tasks.daily_rough import typed
from tasks.parts import Split
from tasks.phrase import capital, expand, say
from tasks.task import CHAT, RETAIN, Step, Task, Turn
from tasks.tools_check import NEGATIVE, has_word


THINGS = ('the exam|my job|the future|money|the flight to {city}|the move|{name}'
          '|my car|the dentist|my {product}|the neighbors|the noise|the train'
          '|spiders|the trip to {city}|the letter from {name}')


def fields(rng):
    city, name = rng.choice(names.PLACES), rng.choice(names.FIRST)
    product = rng.choice(names.PRODUCTS)

    return dict(
        city=city, name=name, product=product, n=rng.randrange(2, 6),
        age=rng.choice((7, 9, 14, 18, 20, 25, 30, 37, 40, 48, 50, 65, 80)),
        day=expand(rng, '[Monday|Tuesday|Wednesday|Thursday|Friday|Saturday'
                        '|Sunday]'),
        pet=expand(rng, '[dog|cat|hamster|bird|rabbit|horse|goldfish]'),
        errand=rng.choice(names.ERRANDS),
        thing=expand(rng, f'[{THINGS}]').format(city=city, name=name,
                                                product=product),
        who=expand(rng, '[!|.|, model!|!!| :)|, computer.|, you!|]'))


class Subject:
    def __init__(self, block):
        part = {mark: [] for mark in '->+!'}
        self.what, *rest = block.splitlines()

        for text in rest:
            part[text[0]].append(text[2:])

        self.says, self.answers = Split(part['-']), tuple(part['>'])
        self.one_of = [k.strip() for k in part['+'][0].split(';')]
        self.none_of = [k.strip() for k in part['!'][0].split(';')]

    def check(self, answer, calls):
        if calls:
            return 'there was nothing to call'

        if not any(has_word(answer, k) for k in self.one_of):
            return f'none of {self.one_of} is in: {answer}'

        for k in self.none_of:
            if has_word(answer, k):
                return f'"{k}" does not fit: {answer}'

        return None

    def turn(self, rng):
        slots = fields(rng)
        text = rng.choice(self.says)
        user = typed(rng, text, rng.random() < 0.95, **slots)

        # the answer has names of its own nowhere but where the user's has one

        answer = capital(say(rng, rng.choice(self.answers), **slots))
        thoughts = expand(rng, f'[{capital(self.what)}.|I see that '
                               f'{self.what}.|Here {self.what}.] [I answer '
                               'kindly.|A short answer fits.|No facts are '
                               'needed.|]')

        def gold(mode):
            yield Step('' if mode == CHAT else thoughts, answer)

        return Turn(user, self.check, gold)


def subjects(text):
    return [Subject(b) for b in text.strip().split('\n\n')]


ABOUT_ME = subjects(talk_me.SUBJECTS)
SUBJECTS = subjects(talk_feel.SUBJECTS) + subjects(talk_meet.SUBJECTS) \
    + ABOUT_ME


# --------------------------------------------------------------- its name

NAME = Split('''What is your name?
What's your name?
Do you have a name?
How are you called?
What should I call you?
whats ur name
Tell me your name[, please|].
May I ask your name?
I am {other}. And you are?
My name is {other}. What is yours?
How shall I address you?
Who are you, what's the name?
I forgot your name. What was it?
name?
And your name is?
Can I call you by a name?
I'd like to know what they call you.
Say your name.
did they give you a name'''.splitlines())

NAMED = '''[I am|I'm|My name is] {name}.
{name}.
[You can|Please|Just] call me {name}.
[They call me|My name's|The name is] {name}. [And you?|What is yours?|]
{name}[, nice to meet you|, at your service|].
[I go by|I answer to] {name}. [How can I help?|]'''

NAMELESS = '''I have no name[ of my own|]. [I am the small model of nginx-dsa.|Just call me model.|]
[I don't have a name|They gave me no name], [I am just a model|being a small model]. [What is yours?|]
No name, [only|just] a model. [And what is your name?|]
[Nobody gave me a name.|I was not given a name.] [Call me what you like.|What is yours?]
[I have none|There is none], [I'm a model without a name|as I am a model]. [What shall I call you?|]
[A name I don't have|Not that I know], but [you may give me one|I am a model and listen].'''

CALLED = Split('''You are {name}, a [digital|virtual|personal] assistant.
Your name is {name}. [Help the user.|Be friendly.|]
You are called {name} and [help people|answer questions] in {city}.
{name} is your name. [Answer briefly.|You work for a shop in {city}.]
You are {name}, the assistant of {other}.'''.splitlines())


def name_task(rng):
    """Asks for the model's name, which the system prompt may give."""

    name, other = rng.sample(names.FIRST, 2)
    named = rng.random() < 0.5
    user = typed(rng, rng.choice(NAME), True, other=other)
    answer = capital(line(rng, NAMED if named else NAMELESS).format(
        name=name))
    thoughts = f'The system prompt names me {name}.' if named \
        else 'I was given no name.'

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        return None if (has_word(text, name) if named
                        else NEGATIVE.search(text)
                        or has_word(text, 'nobody')) \
            else f'the name is wrong: {text}'

    boss = rng.choice(names.FIRST)
    system = say(rng, rng.choice(CALLED), name=name, other=boss,
                 city=rng.choice(names.PLACES)) if named \
        else rng.choice(('', '', rng.choice(rules.PLAIN)))

    return Task('daily_talk', 'talk', [Turn(user, check, gold)],
                (RETAIN, CHAT), system)


# ------------------------------------------------- what it does not know

UNKNOWN = Split('''Who [wrote|invented|discovered|painted] {thing}?
[When|Where] was {name} {last} born?
How [tall|old|rich|famous] is {name} {last}?
What is the population of {city}?
Who is the mayor of {city}?
[Who won|What was the score of] the [match|game] [in|at] {city}[ yesterday|]?
What [happened|is going on] in {city}[ today| yesterday|]?
[Which|What] [river|mountain|sea] is [near|closest to] {city}?
What do you think [of|about] {topic}?
[Explain|Tell me about] {topic}.
[Give|Write] me [a summary|an overview] of {topic}.
What is the [best|cheapest] {product}[ on the market|]?
[Which|What] {product} should I buy?
[How do I|How can I] [repair|clean|use] [a|my] {product}?
[How many|How much] {goods} [grow|are eaten] in {city} a year?
What is the history of {city}?
[Which|What] language do people speak in {city}?
[Recommend|Suggest] a [book|film|song] about {topic}.
Who is {name} {last}?
What is {name} {last} [known for|famous for|doing now]?
[Is it true|Is it a fact] that {topic} [are|is] [dangerous|healthy|expensive]?
What will [happen|the weather be like] in {n} years?
How [much|expensive] [is|are] {goods} in {city}?
[What|Which] [animal|plant] lives longest near {city}?
When [does|will] the next [train|bus|flight] to {city} leave?
What is the meaning of [life|dreams|{topic}]?
[Write|Compose] a [poem|song|novel|speech] about {topic}.
[Do|Can] {goods} [help against|cause] [colds|headaches]?
What's the [phone number|address] of {name} {last}?
Who lives [at|in] {last} Street {n}[ in {city}|]?
whats the capital of the country where {city} is
I need to know how far it is from {city} to the moon.
{city}: [how big is it|what is it known for]?
who is the boss of the company that makes the {product}
Can you explain {topic} [to me|to my son]?
I want to read up on {topic}. Where do I start?
{name} {last}... does that name ring a bell?
My homework is about {topic}. [What should I write?|Tell me the most important facts.]
In which year was {city} founded?
What was in the news [today|yesterday|this week]?
Do you know when {name} {last} died?
got any facts on {topic}
Settle a bet: who invented the {product}?
Where do {goods} come from originally?
Please tell me which airline flies to {city}.
How many people [live|work] in {city}?
How does a {product} work inside?
Who sings the song about {city}?
I forgot who painted the {goods} on the famous picture. Who was it?'''.splitlines())

ADMIT = '''[I'm sorry, but|Sorry,|I am afraid] I [do not|don't] know[ that|]. I am [only|] a small model[ without knowledge of the world| and was taught little|].
I [do not|don't] know that. [I was not taught facts about the world.|Nobody taught me that.|I would only guess.]
That is [something|a thing] I do not know[, and I do not want to guess|. Please look it up elsewhere].
I can't [tell|say][, because|:] I [do not|don't] know [it|enough about that].
[Sorry|Unfortunately], [that is not something I know|I do not know it]. [A search engine would help.|A library may help.|I am a small model.]
I [don't|do not] know. [I know only a few things.|I am too small to know it.|I could only make something up.]
[I'd have to guess|All I could do is guess], and I do not want to. [Please look it up.|]
[That's not in what I learned|It is not among the things I learned], so I can't say.
[Good question, but I don't know.|I wish I knew, but I don't.] [Perhaps a book or a search helps.|]
[No idea, sorry.|I have no knowledge of that.] I am [not able to|unable to] answer [it|that][ well|].'''


def unknown_turn(rng):
    slots = dict(fields(rng), topic=rng.choice(names.TOPICS),
                 goods=rng.choice(names.GOODS), last=rng.choice(names.LAST),
                 n=rng.randrange(2, 200))
    user = typed(rng, rng.choice(UNKNOWN), **slots)
    answer = line(rng, ADMIT)
    thoughts = expand(rng, '[That is|This is|The question is about] something '
                           'that I was not taught. [I admit it.|I do not '
                           'guess.|I say so.]')

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        return None if NEGATIVE.search(text) else f'claims to know: {text}'

    return Turn(user, check, gold)


def thanks(rng):
    return next(s for s in SUBJECTS if s.what == 'the user thanks').turn(rng)


def turn(rng):
    """Returns a Turn that fits any system prompt without a rule."""

    return unknown_turn(rng) if rng.random() < 0.25 else rng.choice(
        [s for s in SUBJECTS if s not in ABOUT_ME]).turn(rng)


def make(rng):
    way = rng.random()

    if way < 0.03:
        return name_task(rng)

    if way < 0.28:
        made = unknown_turn(rng)
    else:
        subject = rng.choice(SUBJECTS)
        made = subject.turn(rng)

        # the system prompts of daily.py may give the model a name

        if subject in ABOUT_ME:
            return Task('daily_talk', 'talk', [made], (RETAIN, CHAT),
                        rng.choice(('', '', rng.choice(rules.PLAIN))))

    return task(rng, 'daily_talk', 'talk', [made], {}, (RETAIN, CHAT))
