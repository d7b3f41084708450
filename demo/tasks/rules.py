# Copyright (C) The nginx-dsa authors

"""System prompts that change every answer, each with its check."""

import re
from dataclasses import dataclass
from typing import Callable, Optional

from tasks import names
from tasks.phrase import expand, say
from tasks.task import Step, Turn


WORDS = '''over indeed captain friend done amen cheers copper lantern kettle
hello please harbor maple now well right listen velvet comrade bingo meow
pronto banana roger check fin howdy ahoy splendid thunder pepper marble'''.split()

PLAIN = ('You are a helpful model.', 'You are the demonstration model of '
         'nginx-dsa.', 'Be brief.', 'Answer in short sentences.',
         'Be friendly and exact.', 'Help the user.',
         'Answer the questions of the user.', 'You are polite.',
         'Be kind and be brief.', 'Say what is asked, not more.',
         'Write plain English.', 'Your answers are short and right.',
         'You talk to visitors of a website.', 'Keep it simple.',
         'You chat with people who try out a small model.')

# who the model is, before a rule

IDENTITY = '''You are {name}, [the|a] [bot|assistant|helper|chat bot] of [a|our] [bakery|library|garage|school|shop|hotel|museum|farm|radio station|town hall].
You are [a|the] [pirate|robot|butler|teacher|captain|cook|librarian|wizard|gardener|sailor|clerk][ named {name}| of {city}|].
You are [a|an internal] [tool|service|bot] [for|of] the [staff|team|customers|guests] [in|of] {city}.
You work [with|for] {name}.'''.splitlines()

# the same, without names and occupations

CONTEXT = '''Your users are [children|old people|busy people|tourists in {city}|engineers].
[Be kind.|Be brief.|Be exact.|Be patient.|Do not chat.]
The [company|shop|office] is in {city}.
Some users are in a rush. [Do not waste their time.|]'''.splitlines()


@dataclass
class Rule:
    """
    system   the system prompt
    form     the answer without the rule -> with it
    core     the answer with the rule -> without it; None if it was not
             followed
    note     the reasoning's text before the answer, or ''
    """
    system: str
    form: Callable[[str], str]
    core: Callable[[str], Optional[str]]
    note: str = ''

    def turn(self, turn):
        """Returns a turn that follows the rule, too."""

        def check(answer, calls):
            core = self.core(answer)
            return 'the system prompt was not followed' if core is None \
                else turn.check(core, calls)

        def gold(mode):
            policy = turn.gold(mode)
            step = next(policy)

            while step.calls:
                step = policy.send((yield step))

            yield Step(f'{step.reasoning}\n{self.note}'
                       if step.reasoning and self.note else step.reasoning,
                       self.form(step.content))

        return Turn(turn.user, check, gold)


def free(system):
    """Returns the rule of a system prompt that changes no answer."""

    return Rule(system, lambda text: text, lambda answer: answer)


def plain(rng):
    return free(rng.choice(PLAIN))


def stripped(answer):
    return answer.strip(' \n')


def capitals(rng):
    return Rule(rng.choice(('Answer in capital letters.',
                            'Write every answer in capital letters.',
                            'Use capital letters only.',
                            'All your answers are in capital letters.',
                            'SHOUT: you write everything in capital letters.',
                            'The display has only capital letters, so write '
                            'each answer with them.',
                            'Never use anything but capital letters.',
                            'Reply in capital letters, always.')),
                str.upper,
                lambda answer: answer if answer == answer.upper() else None,
                'In capital letters.')


def small(rng):
    return Rule(rng.choice(('Write everything in lower case.',
                            'Answer in small letters only.',
                            'Never use an upper case letter.',
                            'lower case only, please.',
                            'Your answers are all lowercase.',
                            'You do not have a shift key: small letters '
                            'only.',
                            'Every letter that you write is a small one.')),
                str.lower,
                lambda answer: answer if answer == answer.lower() else None,
                'In small letters.')


def ends(rng):
    word = rng.choice(WORDS)

    def core(answer):
        text = answer.rstrip(' .!\n')
        before = text[:-len(word)]

        return before.rstrip() if text.lower().endswith(word) \
            and not before[-1:].isalnum() else None

    return Rule(rng.choice((f'End every answer with the word {word}.',
                            f'Your answers end with the word {word}.',
                            f'The last word of each answer is {word}.',
                            f'Whatever you say, your last word is {word}.',
                            f'After your answer, say {word}.',
                            f'Finish each reply with the word {word}.',
                            f'No answer without the word {word} at its end.',
                            f'Always close with {word}.',
                            f'Put the word {word} at the end of everything '
                            'that you write.',
                            f'You are known for your last word: {word}.')),
                lambda text: f'{text} {word.capitalize()}.', core,
                f'The last word: {word}.')


def begins(rng):
    word = rng.choice(WORDS)

    def core(answer):
        text = answer.lstrip()
        after = text[len(word):]

        return after.lstrip(' .,:!\n') if text.lower().startswith(word) \
            and not after[:1].isalnum() else None

    return Rule(rng.choice((f'Begin every answer with the word {word}.',
                            f'Your answers begin with the word {word}.',
                            f'The first word of each answer is {word}.',
                            f'Whatever you say, your first word is {word}.',
                            f'Before your answer, say {word}.',
                            f'Start each reply with the word {word}.',
                            f'Always open with {word}.',
                            f'You never begin with any word but {word}.',
                            f'Put the word {word} in front of everything '
                            'that you write.',
                            f'In this chat, each answer starts with {word}.')),
                lambda text: f'{word.capitalize()}. {text}', core,
                f'The first word: {word}.')


# what stands between a beginning and the answer, but no minus of a number

MARKS = re.compile(r'[ .,:!\n]*(?:-(?=\s)\s*)?')


def before(system, start, note, mark=' '):
    """Returns the rule of answers that begin with a text."""

    def core(answer):
        text = answer.lstrip()

        return MARKS.sub('', text[len(start):], count=1) \
            if text.lower().startswith(start.lower()) else None

    return Rule(system, lambda text: f'{start}{mark}{text}', core, note)


def after(system, end, note, mark=' '):
    """Returns the rule of answers that end with a text."""

    def core(answer):
        text = answer.rstrip()

        return text[:-len(end)].rstrip(' -\n') \
            if text.lower().endswith(end.lower()) else None

    return Rule(system, lambda text: f'{text}{mark}{end}', core, note)


GREETINGS = {
    'French': 'Bonjour', 'Spanish': 'Hola', 'German': 'Hallo',
    'Italian': 'Ciao', 'Swedish': 'Hej', 'Dutch': 'Hoi', 'Turkish': 'Merhaba',
    'Finnish': 'Hei', 'Japanese': 'Konnichiwa', 'Hawaiian': 'Aloha',
    'Hindi': 'Namaste', 'Swahili': 'Jambo', 'Latin': 'Salve',
    'Hebrew': 'Shalom', 'English': 'Hello', 'Hungarian': 'Szia'}


def greeting(rng):
    """The greeting is named, or only its language."""

    language = rng.choice(sorted(GREETINGS))
    word = GREETINGS[language]

    return before(expand(rng, rng.choice((
        f'Begin each answer with "{word}!"',
        f'Greet the user in {language} before every answer.',
        f'Every answer [starts|begins] with a greeting in {language}: {word}.',
        f'You come from far away. Say "{word}!" first, whatever you answer.',
        f'Say {word} before you answer.',
        f'The greeting is in {language}, the rest in English.',
        f'Always greet in {language} first, then answer in English.',
        f'Our guests expect to be greeted in {language} each time.'))),
        word + '!', f'First the greeting in {language}: {word}!')


TITLES = ('captain|boss|sir|madam|your majesty|professor|doctor|my friend'
          '|chief|commander|dear guest|my lady|general|comrade|neighbor')


def address(rng):
    """The user is called by a name or a title."""

    if rng.random() < 0.5:
        name = rng.choice(names.FIRST)
        system = rng.choice((
            f"The user's name is {name}. Begin each answer with it.",
            f'The user is called {name}. Address the user by name in every '
            'answer.',
            f'You talk to {name}. Use this name at the beginning of each '
            'answer.',
            f'Your only user is {name}, who likes to be called by name first.',
            f'Say "{name}" before each answer, that is the name of the user.',
            f'{name} is the user. Every answer is addressed to {name}.'))
    else:
        name = expand(rng, f'[{TITLES}]')
        system = rng.choice((
            f'Call the user {name} in each answer, at its beginning.',
            f'Address the user as "{name}" first, then answer.',
            f'Every answer begins with "{name}", because that is how the '
            'user wants to be called.',
            f'You serve the user, whom you address as {name} before you say '
            'anything.'))
        name = name[0].upper() + name[1:]

    return before(system, name, f'First I say {name}.',
                  rng.choice((': ', '! ', '. ')))


LABELS = ('Answer:|Bot:|Reply:|Assistant:|A:|Result:|>>|->|*|#|Info:|Note:'
          '|[bot]|~|AI:|Helper:')


def label(rng):
    start = rng.choice(LABELS.split('|'))

    return before(rng.choice((
        f'Start each answer with "{start}"',
        f'Put {start} in front of every answer.',
        f'The format of your answers: {start} and then the text',
        f'Every reply has the prefix {start}',
        f'Write "{start}" and after it your answer.',
        f'Our parser needs {start} before each answer.')), start,
        f'It begins with {start}')


PHRASES = ('Have a nice day!|Anything else?|Thank you for asking.|Take care!'
           '|Is there more that I can do?|At your service.|Yours, the bot.'
           '|That is all I have.|Come back soon!|No warranty.|Stay curious!'
           '|Ask again any time.|Best wishes!|Peace.|And that is that.'
           '|Your feedback helps us.|We are open from 9 to 5.|Drink water!'
           '|May the wind be with you.|Mind the gap.|Kind regards.')


def phrase(rng):
    end = rng.choice(PHRASES.split('|'))

    return after(rng.choice((
        f'Close each answer with "{end}"',
        f'Your last sentence is always: {end}',
        f'At the end of every answer, write "{end}"',
        f'Do not forget the last sentence of each answer: {end}',
        f'Every reply ends like this: {end}',
        f'After each answer comes "{end}"',
        f'Finish with "{end}", whatever the question is.')), end,
        f'It ends with: {end}', rng.choice((' ', ' ', '\n')))


def signature(rng):
    name = rng.choice(names.FIRST)

    return after(rng.choice((
        f'Your name is {name}. Sign every answer with it.',
        f'You are {name}. Each answer ends with your name.',
        f'Sign each of your answers as {name}.',
        f'Every answer carries the signature {name} at its end.',
        f'Write your name, {name}, under all that you write.',
        f'As {name}, you sign your messages.')), name,
        f'I sign it: {name}', rng.choice((' - ', '\n- ', '\n')))


SIGNS = ('***|~|...|:-)|<3|!!!|//|==|^^|(end)|;-)|* * *|--|+++|STOP|EOF')


def sign(rng):
    end = rng.choice(SIGNS.split('|'))

    return after(rng.choice((
        f'End each answer with {end}',
        f'Put {end} after every answer',
        f'The last characters of each of your answers are {end}',
        f'Mark the end of your answers by {end}',
        f'Every reply is followed by {end}',
        f'So that we see that you are through, write {end} last')), end,
        f'At the end: {end}')


def between(rng):
    name = rng.choice('answer reply text out say response message'.split())
    first, last, system = rng.choice((
        (f'<{name}>', f'</{name}>', rng.choice((
            f'Write every answer between <{name}> and </{name}>.',
            f'Your answers are XML: <{name}>...</{name}>',
            f'Wrap each answer in the tag <{name}>.',
            f'We parse the tag <{name}>, so put your answer into it.'))),
        ('"', '"', rng.choice((
            'Put each answer in double quotes.',
            'All your answers stand between double quotes.',
            'Quote yourself: write every answer in double quotes.'))),
        ('(', ')', rng.choice((
            'Put each answer in round brackets.',
            'Your answers are whispered, so write them in parentheses.',
            'Every answer is written in parentheses.'))),
        ('*', '*', rng.choice((
            'Put a star before and after each answer.',
            'Your answers stand between two stars.',
            'Write all answers like this: *answer*'))),
        ('---\n', '\n---', rng.choice((
            'Write --- on a line before and on a line after each answer.',
            'Each answer stands between two lines with ---'))),
    ))

    def core(answer):
        text = stripped(answer)
        a, b = first.strip(), last.strip()

        return stripped(text[len(a):-len(b)]) if len(text) > len(a + b) \
            and text.startswith(a) and text.endswith(b) else None

    return Rule(system, lambda text: first + text + last, core,
                f'Between {first.strip()} and {last.strip()}.')


def both(rng, first=None, last=None):
    """The beginning and the end are given."""

    one = rng.choice(first or (begins, greeting, address))(rng)
    two = rng.choice(last or (ends, phrase, signature))(rng)
    a, b = (one, two) if rng.random() < 0.5 else (two, one)

    def core(answer):
        text = two.core(answer)

        return None if text is None else one.core(text)

    return Rule(f'{a.system} {b.system}',
                lambda text: two.form(one.form(text)), core,
                f'{one.note} {two.note}')


def unnamed(rng):
    return both(rng, (begins, greeting), (ends, phrase))


def introduced(rng, rule, ways):
    """Returns a rule with a sentence before it, about the model or its
    users."""

    text = say(rng, rng.choice(ways), name=rng.choice(names.FIRST),
               city=rng.choice(names.PLACES))

    return Rule(f'{text}{rng.choice((" ", " ", chr(10)))}{rule.system}',
                rule.form, rule.core, rule.note)


KINDS = {capitals: 2, small: 1, ends: 4, begins: 4, greeting: 2, label: 2,
         phrase: 3, sign: 1, between: 2, unnamed: 1}

# kinds that name the model or the user

NAMING = {address: 3, signature: 2, both: 2}


def changing(rng, naming=True):
    """Returns a rule that changes answers.  naming: it may say who the model
    and the user are."""

    kinds = {**KINDS, **NAMING} if naming else KINDS
    rule = rng.choices(list(kinds), list(kinds.values()))[0](rng)

    return introduced(rng, rule, CONTEXT + IDENTITY if naming else CONTEXT) \
        if rng.random() < 0.25 else rule


def draw(rng):
    """Returns a rule, or None for no system prompt.  It names nobody, because
    turns may be about names."""

    way = rng.choices((None, plain, changing), (14, 2, 6))[0]

    return None if way is None else plain(rng) if way is plain \
        else changing(rng, False)
