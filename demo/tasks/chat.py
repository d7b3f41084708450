# Copyright (C) The nginx-dsa authors

"""The family 'chat': conversations of two to five turns from several families,
with turns that ask about earlier turns, and system prompts that change the
answers."""

import re

from tasks import mix, refer, rules, talk
from tasks.facts import MODEL
from tasks.memory import FACTS
from tasks.parts import again
from tasks.refer import Piece
from tasks.said import Said, ask
from tasks.task import CHAT, DISCARD, RETAIN, GoldFailed, Task, play
from tasks.tools_box import ROLES
from tasks.tools_check import has_word
from tasks.words import PEOPLE


LIMIT = 3400            # tokens of a conversation, as estimated by tokens()
TURNS = (2, 5)

# the families that take part, with their weights

JOIN = {'talk': 7, 'arithmetic': 3, 'arithmetic_story': 1, 'lookup': 2,
        'tools_single': 4, 'tools_none': 1, 'tools_multi': 2,
        'tools_error': 1}

# families in which the model calculates itself; if a calculator is offered, it
# should call the calculator instead

RECKON = {'arithmetic', 'arithmetic_story', 'lookup'}

# the topic of a question; other families have it in Said

ABOUT = {'arithmetic': 'numbers', 'arithmetic_story': 'numbers'}

# an answer that states a result and nothing else

RESULT = re.compile(r'(?:answer|result|sum|total) is (\d{1,4})\.$')

# roughly a token: a digit, a part of a word, or a punctuation mark

TOKEN = re.compile(r'\d| ?[^\W\d_]{1,6}|[^\w\s]|_')
HEAD = 300              # tokens of the fixed text before a list of tools
CALL = 14          # tokens of the markup around a call, and around an argument


def make(rng):
    """Draws until a conversation fits.  To be measured it is played, which may
    change the data of its tools; then it is made again."""

    while True:
        seed = rng.getrandbits(64)
        task = build(again(rng, seed))

        if task is not None and fits(task):
            return build(again(rng, seed))


def fits(task):
    try:
        return all(tokens(task, play(task, mode)) <= LIMIT
                   for mode in task.modes)

    except GoldFailed:
        if task.system == '':
            raise

        # the rule of the system prompt may make an answer wrong, for example
        # if its small letters matter

        return False


def tokens(task, messages):
    """Estimates the tokens of a conversation.  The estimate is rather too
    high, because the tokenizer does not exist yet."""

    n = sum(len(TOKEN.findall(str(t))) for t in task.tool_list())
    n += HEAD if task.tools else 0

    for m in messages:
        n += 2 + len(TOKEN.findall(m['content']))
        n += len(TOKEN.findall(m.get('reasoning_content', '')))

        for call in m.get('tool_calls', ()):
            text = call['function']['arguments']
            n += CALL * (1 + text.count('": ')) + len(TOKEN.findall(text))

    return n


def build(rng):
    """Returns a conversation, or None if the draws give too few or too many
    turns, or no mode that all turns have."""

    rule, question, known = opening(rng)
    acts = list(draw_pieces(rng, rng.choice((1, 1, 2, 2, 3)),
                            personal=question is not None))

    # a None becomes a turn that refers to those before it

    for _ in range(rng.choice((0, 1, 1, 2))):
        acts.insert(rng.randint(1, len(acts)), None)

    if question is not None:
        acts.insert(rng.randint(0, len(acts)), Piece.of(question))
    elif rng.random() < 0.3:
        fact = rng.choice(FACTS)
        value = fact.value(rng)
        known.add(fact.what)
        acts.insert(rng.randint(1, len(acts)),
                    Piece.of(fact.asked(rng, value)))
        acts.insert(0, Piece.of(fact.told(rng, value)))

    tools = {}

    for act in acts:
        tools.update(act.tools if act is not None else {})

    said = []

    for act in acts:
        said.append(act or Piece.of(refer.draw(
            rng, said, 'calculator' in roles(tools), known)))

    turns = [t for piece in said for t in piece.turns]
    modes = tuple(m for m in (RETAIN, DISCARD, CHAT)
                  if all(m in piece.modes for piece in said))

    if not modes or not TURNS[0] <= len(turns) <= TURNS[1]:
        return None

    if rule is None:
        return Task('chat', 'multi', turns, modes, tools=tools)

    return Task('chat', 'multi', [rule.turn(t) for t in turns], modes,
                rule.system, tools)


def opening(rng):
    """Returns three things: the rule of the system prompt, or None; a question
    about it, if it describes the model or the user, or else None; and the set
    of facts about the user in it."""

    kind = rng.random()

    if kind < 0.1:
        name = rng.choice(PEOPLE)
        user = ask(rng, MODEL['asks for my name'].ask(rng))

        return (rules.free(f'Your name is {name}.'),
                Said(user, f'The system prompt names me {name}.',
                     f'My name is {name}.',
                     lambda answer: None if has_word(answer, name)
                     else f'does not say {name}'), set())

    if kind < 0.2:
        fact = rng.choice(FACTS)
        value = fact.value(rng)

        return (rules.free(fact.system.format(value)),
                fact.asked(rng, value), {fact.what})

    return rules.draw(rng), None, set()


def draw_pieces(rng, n, personal):
    """Returns at most n pieces whose tools do not conflict."""

    families = rng.choices(list(JOIN), list(JOIN.values()), k=n)
    tasks = [None if family == 'talk' else task_piece(rng, family)
             for family in families]
    tools = {}

    for i, piece in enumerate(tasks):
        if piece is None:
            continue

        # a piece of tools_none is about tools that are missing, so no other
        # piece may offer them

        if (roles(tools) & roles(piece.tools)
                or tools and piece.tools and 'tools_none' in families
                or RECKON & set(families)
                and 'calculator' in roles(piece.tools)):
            families[i] = 'left out'
        else:
            tools.update(piece.tools)

    for family, piece in zip(families, tasks):
        if family == 'talk':
            yield Piece.of(talk.among(rng, personal, tools))
        elif family != 'left out':
            yield piece


def task_piece(rng, family):
    """Returns the turns of a task of a family as a piece.  The task is played
    once to get its result, and then made again, because playing changes its
    tools."""

    seed = rng.getrandbits(64)
    make_task = mix.FAMILIES[family]
    task = make_task(again(rng, seed))
    results = set()

    for mode in task.modes:
        m = RESULT.search(play(task, mode)[-1]['content'])
        results.add(int(m.group(1)) if m else None)

    task = make_task(again(rng, seed))

    return Piece(task.turns, task.tools, task.modes, ABOUT.get(family, ''),
                 result=results.pop() if len(results) == 1 else None)


def roles(tools):
    """Returns what the tools do: their roles, or for tools without a role
    their names."""

    return {next((r for r, role in ROLES.items() if name in role.names), name)
            for name in tools}
