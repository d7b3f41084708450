# Copyright (C) The nginx-dsa authors

"""The family 'talk': small talk of one turn about the project and the model,
small skills, and questions to which "I do not know" is the answer."""

from tasks.facts import MODEL, PROJECT
from tasks.manners import MANNERS
from tasks.memory import FACTS
from tasks.said import Said, ask
from tasks.skills import SKILLS
from tasks.story import story
from tasks.task import CHAT, RETAIN, Task
from tasks.unknown import unknown
from tasks.wording import lower


def make(rng):
    draw = rng.choices((project, model, manners, skill, story, unknown, own),
                       (24, 16, 4, 26, 4, 12, 5))[0]

    return Task('talk', 'talk', [draw(rng).turn()], (RETAIN, CHAT))


def among(rng, personal, tools):
    """Returns a turn of small talk for a longer conversation.

    personal   the system prompt describes the user or the model
    tools      tools are offered; they may have what the model does not know
    """
    draws = [(project, 5), (manners, 1), (skill, 5), (story, 1)]

    if not personal:
        draws.append((model, 3))

    if not tools:
        draws.append((unknown, 2))

    draw = rng.choices([d for d, _ in draws], [n for _, n in draws])[0]

    return draw(rng)


def project(rng):
    topic = rng.choice(list(PROJECT.values()))
    return of_topic(topic, ask(rng, topic.ask(rng)))


def model(rng):
    topic = rng.choice(list(MODEL.values()))
    return of_topic(topic, ask(rng, topic.ask(rng)))


def manners(rng):
    """Returns a greeting or the like, for the beginning of a conversation."""

    topic = rng.choice(list(MANNERS.values()))
    user = topic.ask(rng)

    if rng.random() < 0.25:
        user = user.rstrip('?.!') or user

    said = of_topic(topic, lower(user) if rng.random() < 0.25 else user)
    said.answer = topic.reply(rng)

    return said


def of_topic(topic, user):
    def wrong(answer):
        missing = topic.missing(answer)
        return None if missing is None else f'says nothing of: {missing}'

    return Said(user, f'The user {topic.asks}. To say: {topic.say()}.',
                topic.answer, wrong, about=topic.names[0] if topic.names
                else '')


def skill(rng):
    return rng.choice(SKILLS)(rng)


def own(rng):
    """Returns a fact about the user, stated, or asked for without having been
    stated."""

    fact = rng.choice(FACTS)
    way = rng.randrange(3)

    if way == 0:
        return fact.asked(rng, None)

    tell = fact.told if way == 1 else fact.both
    return tell(rng, fact.value(rng))
