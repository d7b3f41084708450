# Copyright (C) The nginx-dsa authors

"""Tools are offered, but none is needed or none fits: the right answer makes
no call."""

from tasks import digits, weigh
from tasks.task import CHAT, Step, Task, Turn
from tasks.tools_box import Kit
from tasks.tools_check import (repeats, says_choice, says_no, says_number,
                               says_words)
from tasks.tools_single import said_of
from tasks.tools_text import ask, listed
from tasks.tools_world import World
from tasks.wording import plural
from tasks.words import COLORS, PEOPLE, THINGS


def make(rng):
    draw, without = rng.choice(KINDS)
    world = World(rng)
    kit = Kit(rng, world, (), (1, 6), without)

    return draw(rng, world, kit)


def direct(kit, user, thought, answer, check, shown=()):
    """Returns the Task; check depends on the answer only.  shown are lines of
    work, which are part of the answer if there is no reasoning."""

    shown = list(shown)

    def gold(mode):
        if mode == CHAT:
            yield Step(content='\n'.join(shown + [answer]))
        else:
            yield Step('\n'.join([thought] + shown), answer)

    def checked(text, calls):
        return 'there was nothing to call' if calls else check(text)

    return Task('tools_none', 'single', [Turn(user, checked, gold)],
                tools=kit.tools)


def none_of(kit, user, about):
    """Returns the thought that goes through the tools, none of which fits."""

    return f'"{" ".join(user.split())}" {weigh.weighed(kit.tools)} ' \
        f'None is for {about}.'


# no tool is needed

POLITE = (
    (('Hello!', 'Hi!', 'Hey there!', 'Hello there.', 'Hi, anybody there?'),
     'The user greets me', 'Hello! What can I do for you?', 'hello'),
    (('Thanks!', 'Thank you very much.', 'That was helpful, thank you.',
      'Great, thanks a lot.', 'Many thanks for your help.'),
     'The user thanks me', 'You are welcome.', 'welcome'),
    (('Goodbye!', 'Bye!', 'See you tomorrow.', 'That is all, bye.',
      'I have to go now. Goodbye!'),
     'The user leaves', 'Goodbye! Come back with another question.',
     'goodbye'),
)


def courtesies(rng, world, kit):
    ways, thought, answer, word = rng.choice(POLITE)

    return direct(kit, rng.choice(ways), thought + '. No tool is needed.',
                  answer, lambda text: says_words(text, word))


def digit_sums(rng, world, kit):
    a, b = rng.randrange(1, 10), rng.randrange(1, 10)
    sign = rng.choice('+-')

    if sign == '-':
        a, b = max(a, b), min(a, b)

    result = a + b if sign == '+' else a - b
    word = 'plus' if sign == '+' else 'minus'
    user = ask(rng, f'What is {a} {sign} {b}?', f'How much is {a}{sign}{b}?',
               f'What is {a} {word} {b}?', f'How much is {a} {word} {b}?',
               f'Tell me what {a} {word} {b} is.')

    return direct(kit, user, f'No tool is needed. {a}{sign}{b}={result}',
                  f'{a} {sign} {b} = {result}.',
                  lambda text: says_number(text, result))


def tools_offered(rng, world, kit):
    user = ask(rng, 'Which tools do you have?', 'What tools can you use?',
               'List your tools.', 'Name the tools that you can call.',
               'Tell me the names of your tools.')

    seen = ', '.join(f'{i} {t}' for i, t in enumerate(kit.tools, 1))

    return direct(kit, user,
                  f'The list of tools: {seen}, its end. No call is needed.',
                  f'My tools are {listed(kit.tools)}.',
                  lambda text: says_words(text, *kit.tools))


def tool_meant(rng, world, kit):
    name = rng.choice(list(kit.tools))
    text = kit.tools[name].function['description']
    user = ask(rng, f'What does your tool {name} do?',
               f'What is the tool {name} for?',
               f'Describe the tool {name}.',
               f'What can you do with {name}?',
               f'Explain {name} to me.')

    return direct(kit, user,
                  f'The list describes {name}. No call is needed.',
                  f'{name}: {text}.',
                  lambda answer: says_words(answer, name, text))


def facts_told(rng, world, kit):
    """The user asks for a fact that is in the same message."""

    thing, other = rng.sample(THINGS, 2)
    name, second = rng.sample(PEOPLE, 2)
    n, m = rng.sample(range(2, 1000), 2)
    color = rng.choice(COLORS)

    city = world.cities[0]

    # statement and question, the answer, and the right word of some

    user, answer, words = rng.choice((
        (f'My {thing} is {color}. Which color has my {thing}?',
         f'Your {thing} is {color}.', (color,)),
        (f'The code of my {thing} is {n}. What is the code?',
         f'The code is {n}.', (n,)),
        (f'I left the {thing} in {city}. Where is it?',
         f'The {thing} is in {city}.', (city,)),
        (f'I have {m} {plural(other)} and {n} {plural(thing)}. '
         f'How many {plural(thing)} do I have?',
         f'You have {n} {plural(thing)}.', (n, m)),
        (f'My friend {name} has {n} {plural(thing)} and {second} has {m}. '
         f'How many has {name}?',
         f'{name} has {n} {plural(thing)}.', (n, m)),
        (f'I gave my {thing} to {name} and my {other} to {second}. '
         f'Who has the {thing}?',
         f'{name} has the {thing}.', (name, second))))

    words = [str(w) for w in words]

    def check(text):
        return says_choice(text, words[0], words)

    return direct(kit, ask(rng, user),
                  'The user has told me. No tool is needed.', answer, check)


def echoes(rng, world, kit):
    text = said_of(rng)
    user = ask(rng, f'Repeat after me: "{text}"', f'Say "{text}".',
               f'Just answer "{text}".', f'Repeat the words "{text}".')

    return direct(kit, user, 'The user wants these words. No tool is needed.',
                  text, lambda answer: repeats(answer, text))


def written_sums(rng, world, kit):
    """No calculator is offered, so the model calculates itself."""

    a, b = rng.randrange(11, 1000), rng.randrange(11, 1000)
    sign = rng.choice('+-')

    if sign == '-':
        a, b = max(a, b), min(a, b)

    lines = (digits.add if sign == '+' else digits.sub)(a, b)
    result = a + b if sign == '+' else a - b
    word = 'plus' if sign == '+' else 'minus'
    user = ask(rng, f'What is {a} {sign} {b}?', f'How much is {a}{sign}{b}?',
               f'What is {a} {word} {b}?', f'Compute {a} {sign} {b}.',
               f'Tell me what {a} {word} {b} is.')

    return direct(kit, user, none_of(kit, user, 'computing'),
                  f'{a} {sign} {b} = {result}.',
                  lambda text: says_number(text, result), lines)


# no tool fits

def missing(about, *ways):
    """Returns a function that draws a task about something for which there is
    no tool.  The ways may contain {city}, {day}, {person}, {key}, {table},
    {row}, {column} and {text}."""

    def draw(rng, world, kit):
        table = rng.choice(list(world.tables().values()))
        user = ask(rng, *ways).format(
            city=rng.choice(world.cities), day=rng.choice(world.days),
            person=rng.choice(list(world.people)),
            key=rng.choice(list(world.store)), table=table.name,
            row=rng.choice(table.rows()),
            column=rng.choice(table.columns()), text=said_of(rng))

        return direct(kit, user, none_of(kit, user, about),
                      f'I have no tool for {about}.', says_no)

    return draw


NEEDLESS = (courtesies, digit_sums, tools_offered, tool_meant, facts_told,
            echoes)

# functions that draw a task, each with the roles that must not be offered

KINDS = tuple((draw, ()) for draw in NEEDLESS) + (
    (written_sums, ('calculator',)),

    (missing('the weather', 'What is the weather in {city} on {day}?',
             'How warm will it be in {city} on {day}?',
             'Will it be windy in {city} on {day}?',
             'Tell me the temperature in {city} on {day}.'),
     ('get_weather',)),

    (missing('the time', 'What time is it?', 'What is the date today?',
             'Which weekday is it?', 'Tell me the time.'),
     ('get_time',)),

    (missing('people', 'What is the phone number of {person}?',
             'Where does {person} live?', 'How can I call {person}?',
             'Tell me in which city {person} lives.'),
     ('find_person',)),

    (missing('messages', 'Send "{text}" to {person}.',
             'Write {person} a message: "{text}".',
             'Let {person} know: "{text}".'),
     ('send_message',)),

    (missing('stored values', 'What is stored under {key}?',
             'What is the value of {key}?', 'Set {key} to {row}.',
             'Look up the key {key}.'),
     ('kv_get', 'kv_set', 'kv_list')),

    (missing('tables',
             'In the table {table}, what is the {column} of {row}?',
             'Which rows does the table {table} have?',
             'Look up the {column} of {row} in table {table}.'),
     ('table_lookup', 'table_rows', 'table_columns')),
)
