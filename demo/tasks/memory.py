# Copyright (C) The nginx-dsa authors

"""Facts that users state about themselves and later ask for: a name, a town, a
color.

{} is the value, in the texts of the user and in the answers.
"""

from dataclasses import dataclass
from typing import Callable, Tuple

from tasks.said import Said, ask
from tasks.tools_check import has_word
from tasks.words import COLORS, PEOPLE, THINGS, cities, made_up


JOBS = '''baker teacher gardener nurse painter driver cook tailor fisher farmer
writer pilot doctor singer lawyer programmer waiter carpenter
plumber'''.split()


def name(rng):
    """Returns a name, sometimes a made-up one."""

    return made_up(rng).capitalize() if rng.random() < 0.3 \
        else rng.choice(PEOPLE)


@dataclass
class Fact:
    """
    what      a noun: "your WHAT"
    value     rng -> a value
    system    the fact in a system prompt
    tell      ways in which a user states it
    ask       ways in which a user asks for it
    noted     the answer to the statement
    """
    what: str
    value: Callable
    system: str
    tell: Tuple[str, ...]
    ask: Tuple[str, ...]
    noted: str

    def told(self, rng, value):
        return Said(rng.choice(self.tell).format(value),
                    f'The user tells me: {self.what}, {value}.',
                    self.noted.format(value),
                    lambda answer: None if has_word(answer, value)
                    else f'does not repeat {value}', about=f'your {self.what}')

    def both(self, rng, value):
        """Returns a turn that states the fact and asks for it at once."""

        told, asked = self.told(rng, value), self.asked(rng, value)

        return Said(f'{told.user} {asked.user}', told.thought, asked.answer,
                    asked.wrong, asked.about)

    def asked(self, rng, value, known=()):
        """Returns the question and the answer: the value, or, if value is
        None, that the user has not stated it; known are the nouns of what the
        user has stated."""

        user = ask(rng, rng.choice(self.ask))

        if value is None:
            return Said(user,
                        'The user told me: '
                        f'{", ".join(sorted(known)) or "nothing"}. '
                        f'Not among it: {self.what}.',
                        f'I do not know your {self.what}. You have not told '
                        'me.', untold, about=f'your {self.what}')

        return Said(user,
                    f'The user told me: {self.what}, {value}.',
                    f'Your {self.what} is {value}.',
                    lambda answer: None if has_word(answer, value)
                    else f'not {value}', about=f'your {self.what}')


def untold(answer):
    return None if any(has_word(answer, s) for s in (
        'do not know', "don't know", 'not told')) else 'claims to know'


FACTS = (
    Fact('name', name,
         'The user is called {}.',
         ('My name is {}.', 'I am {}.', "I'm {}.", 'Hello, I am {}.',
          'Call me {}.', 'Hi, my name is {}.', 'You can call me {}.',
          'This is {} speaking.', 'I am called {}.', 'Hello! {} is my name.'),
         ('What is my name?', "What's my name?", 'Who am I?',
          'Do you remember my name?', 'How am I called?',
          'Do you know my name?', 'Say my name.', 'Tell me my name.'),
         'Hello, {}! What can I do for you?'),
    Fact('town', lambda rng: cities(rng, 1)[0],
         'The user lives in {}.',
         ('I live in {}.', 'I am from {}.', 'My town is {}.',
          'My home is in {}.', 'I come from {}.', 'I have a house in {}.',
          'Just so you know, I live in {}.', 'Note that I live in {}.'),
         ('Where do I live?', 'What is my town?', 'Which town am I from?',
          'In which town do I live?', 'Where am I from?',
          'Do you remember where I live?', 'Tell me where I live.'),
         'Your town is {}. I will remember it here.'),
    Fact('favorite color', lambda rng: rng.choice(COLORS),
         'The favorite color of the user is {}.',
         ('My favorite color is {}.', 'I like the color {}.',
          'I love {}, the color.', 'The color I like most is {}.',
          'Of all colors I like {} best.', 'My color is {}.',
          'Please note that my favorite color is {}.'),
         ('What is my favorite color?', 'Which color do I like?',
          'What color do I like most?', 'Do you remember my color?',
          'Which color is my favorite?', 'Tell me my favorite color.'),
         'Your favorite color is {}. I will remember it here.'),
    Fact('lucky number', lambda rng: str(rng.randrange(2, 1000)),
         'The lucky number of the user is {}.',
         ('My lucky number is {}.', 'Remember the number {}.',
          'Keep my lucky number in mind: {}.', 'My number is {}.',
          'Note my lucky number, {}.', '{} is my lucky number.'),
         ('What is my lucky number?', 'Which number did I tell you to keep?',
          'What was my number?', 'Do you remember my lucky number?',
          'Tell me my lucky number.', 'Which number is my lucky one?'),
         'Your lucky number is {}. I will remember it here.'),
    Fact('lost thing', lambda rng: rng.choice(THINGS),
         'The user has lost a {}.',
         ('I have lost my {}.', 'I lost my {} today.', 'My {} is gone.',
          'I cannot find my {}.', 'Somebody took my {}.',
          'I have been looking for my {} all day.'),
         ('What did I lose?', 'What have I lost?', 'What am I looking for?',
          'Which thing did I lose?', 'Tell me what I have lost.',
          'Do you remember what I lost?'),
         'Your lost thing is the {}. I will remember it here.'),
    Fact('dog', name,
         'The dog of the user is called {}.',
         ('My dog is called {}.', 'My dog is {}.', 'I have a dog, {}.',
          'The name of my dog is {}.', 'I call my dog {}.',
          'My dog has the name {}.'),
         ('What is my dog called?', 'What is the name of my dog?',
          "What is my dog's name?", 'How is my dog called?',
          'Do you remember the name of my dog?', 'Who is my dog?'),
         'Your dog is {}. I will remember it here.'),
    Fact('sister', name,
         'The sister of the user is called {}.',
         ('My sister is called {}.', 'My sister is {}.', 'I have a sister, '
          '{}.', "My sister's name is {}.", 'The name of my sister is {}.'),
         ('What is my sister called?', 'What is the name of my sister?',
          "What is my sister's name?", 'Who is my sister?',
          'Do you remember the name of my sister?'),
         'Your sister is {}. I will remember it here.'),
    Fact('age', lambda rng: str(rng.randrange(5, 100)),
         'The user is {} years old.',
         ('I am {} years old.', "I'm {} years old.", 'My age is {}.',
          'I am {}, by age.', 'I turned {} today.'),
         ('How old am I?', 'What is my age?', 'Do you remember my age?',
          'Tell me my age.', 'Which age do I have?'),
         'Your age is {}. I will remember it here.'),
    Fact('job', lambda rng: rng.choice(JOBS),
         'The user works as a {}.',
         ('I work as a {}.', 'I am a {}.', 'My job is {}.', "I'm a {} by "
          'profession.', 'By profession I am a {}.'),
         ('What is my job?', 'What do I work as?', 'What am I by profession?',
          'Do you remember my job?', 'Tell me my job.'),
         'Your job is {}. I will remember it here.'),
)
