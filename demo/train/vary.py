# Copyright (C) The nginx-dsa authors

"""Varies conversations for training.  The lists of words and templates that
tasks are made of are short enough for a model to learn them by heart; it then
writes a word that it has learned instead of the one in the prompt, and calls a
tool by its usual name instead of the one that is offered.

renamed() replaces words that the assistant has from the prompt, in the whole
sample: in requests, names of tools and of parameters, descriptions, results,
calls and answers.  What is left to learn is that the words agree.
disguised() gives tools and parameters that have a description names without a
meaning, so that the description is what must be read.
greeted() puts words around a request that change nothing.
reordered() writes the objects of tools with other orders of their keys.
"""

import itertools
import re

from tasks import daily_records, names
from tasks.open_deeds import DEEDS
from tasks.open_details import MEANINGS
from tasks.strings import letters
from train.encode import DSML, TOOLS_HEAD


# words within identifiers count: get_weather, getWeather

WORD = re.compile(r'[A-Z]?[a-z]+|[A-Z]{2,}')
SPECIAL = re.compile('(' + re.escape(TOOLS_HEAD) + '|<｜[^｜]*｜>|</?think>'
                     f'|</?{DSML}[a-z_]+(?: name=)?|</?functions?(?:_results)?>'
                     '|</?result>)')

COMPOUND = re.compile(r'[a-z0-9][A-Z_-]')

# Words that are not replaced: those of schemas, and those that decide what is
# right or what a sentence means.

KEPT = frozenset('''name string true false type object properties required
description parameters integer number boolean array items enum default null
a an the this that these those it its i you he she we they me my your his her
our their him us them mine yours who whom whose which what when where why how
and or but if then than as at by for from in into of off on onto out over to
up down with without within about after before between behind under above
below near next last first second third fourth fifth other others another
same all any both each every either neither none nothing no not nor only
is am are was were be been being do does did done have has had will would
shall should can could may might must cannot don doesn isn aren won
s t re ve ll d m
there here now today tomorrow yesterday tonight morning evening noon night
day days week weeks month months year years hour hours minute minutes
monday tuesday wednesday thursday friday saturday sunday january february
march april june july august september october november december
one two three four five six seven eight nine ten eleven twelve dozen half
double twice once more most less least least few many much some several
same equal sum total difference product plus minus times divided average
highest lowest largest smallest longest shortest cheapest oldest newest
earliest latest maximum minimum count sort order reverse alphabetical
upper lower capital capitals letters letter word words line lines list
json xml csv yes ok sorry please thanks thank hello hi hey bye goodbye welcome
tool tools call calls called use user asked request answer answers result
results text texts says say said know knows find found error failed works
worked it so too also just still again already never always
euro euros degrees celsius fahrenheit metric imperial percent am pm
repeat copy write swap between brackets stars comes stands'''.split())

# The same for what decides, and what users say in other words, so that another
# word has no such meaning: the verbs of tools, the values of enums, and the
# fields by which records are compared.

KEPT |= {w.lower() for text in itertools.chain(
    (v for d in DEEDS.values() for v in d.verbs),
    (v for _, _, values in MEANINGS for v in values),
    (daily_records.ORDERED, daily_records.COUNTED, daily_records.FLAGS),
    (key for week in daily_records.WEEKS for key, _ in week))
    for w in WORD.findall(text)}

# Families whose samples take words apart, compare their letters, calculate with
# them, or have words with a meaning that an answer needs.

WHOLE = frozenset('''talk daily_talk arithmetic arithmetic_story daily_sums
daily_parts chat tools_error'''.split())

# Families in which any word may be replaced, in half of the samples.  In the
# others a word that is no name of a person or a place can say what is wanted,
# such as a table or the telephone number.

LOOSE = frozenset('''daily_tool daily_many daily_error daily_turns daily_text
daily_events daily_copy daily_open lookup lookup_long tools_single
tools_multi'''.split())

HEAD = frozenset(w.lower() for w in WORD.findall(TOOLS_HEAD))

SHARE = 0.6             # of the samples in which words are renamed
MOST = 8                # words of a sample that are renamed
DISGUISED = 0.3         # of the samples with tools, in which tools are
REORDERED = 0.3         # of the conversations with tools, in which tools are

# The new word ends as the old one, so that it is as much a plural or a past,
# and "a" and "an" before it stay right.

SUFFIXES = 'ings', 'ing', 'ers', 'er', 'ed', 'ly', 's'
VOWELS = 'aeiou'
TRIES = 8


def listed(*parts):
    """Returns the words of the training parts of lists, in small letters."""

    return frozenset(w.lower() for part in parts for text in part.training
                     for w in re.findall(r'[A-Za-z]{3,}', text))


WORDS = sorted(listed(names.NOUNS, names.ADJECTIVES, names.GOODS, names.TOPICS,
                      names.PRODUCTS, names.EVENTS, names.ERRANDS,
                      names.PLACES, names.LAST))
NAMED = listed(names.FIRST, names.LAST, names.PLACES) \
    - frozenset('price city day may will mark'.split())     # other words, too


def reordered(rng, tools):
    """Returns tools whose objects may have their keys in another order: by the
    alphabet or by chance, as languages write them whose objects have no order.
    Names of parameters stay in order, because thoughts follow it."""

    if rng.random() >= REORDERED:
        return tools

    order = rng.choice((sorted, lambda keys: rng.sample(keys, len(keys))))

    def made(value, named=False):
        if isinstance(value, list):
            return [made(v) for v in value]

        if not isinstance(value, dict):
            return value

        keys = list(value) if named else order(list(value))

        return {k: made(value[k], k == 'properties' and not named)
                for k in keys}

    return made(tools)


def renamed(rng, family, samples, draw=None):
    """Returns the samples, which are lists of segments (text, target), with
    some words replaced.  draw: rng -> a word of small letters, for some of
    the new words; without it they are all of the lists of names."""

    if family in WHOLE:
        return samples

    return [sample if rng.random() >= SHARE else rename(
        rng, sample, draw, family in LOOSE and rng.random() < 0.5)
        for sample in samples]


def rename(rng, sample, draw=None, loose=True):
    """Returns a sample with some words replaced: names of people and
    places, or, if loose, any but those of KEPT."""

    prompt, written = set(), set()

    for text, target in sample:
        for part in SPECIAL.split(text)[::2]:
            (written if target else prompt).update(
                w.lower() for w in WORD.findall(part))

    both = sorted(w for w in prompt & written
                  if w not in KEPT and len(w) > 2 and (loose or w in NAMED)
                  and not related(w, prompt | written))

    if not both:
        return sample

    chosen = rng.sample(both, min(len(both), rng.randint(1, MOST)))
    seen, other = prompt | written | HEAD, {}

    for word in chosen:
        new = formed(rng, word, draw)

        while new in seen or new in KEPT:
            new = formed(rng, word, draw)

        seen.add(new)
        other[word] = new

    def replace(match):
        word = match.group()
        new = other.get(word.lower())

        return word if new is None else like(word, new)

    return [(type(text)(''.join(
        part if i % 2 else WORD.sub(replace, part)
        for i, part in enumerate(SPECIAL.split(text)))), target)
        for text, target in sample]


def related(word, words):
    """Returns true if one of the words is another form of this one, such as
    its plural, which would have to be replaced by that of the new word."""

    return any(w != word and (w.startswith(word[:-1]) or len(w) > 2
                              and word.startswith(w[:-1])) and
               abs(len(w) - len(word)) <= 3 for w in words)


def invented(rng, draw=None):
    """Returns a word in small letters."""

    way = rng.random()

    if way < 0.5:
        return draw(rng) if draw and way < 0.35 else rng.choice(WORDS)

    return names.syllables(rng).lower() if way < 0.8 else letters(rng)


def formed(rng, word, draw=None):
    """Returns an invented word that begins and ends as the word does."""

    ending = next((s for s in SUFFIXES if word.endswith(s)
                   and len(word) > len(s) + 2), '')

    for _ in range(TRIES):
        new = invented(rng, draw)

        if (new[0] in VOWELS) == (word[0] in VOWELS) and new.endswith(ending):
            return new

    first = rng.choice(VOWELS) if word[0] in VOWELS else \
        rng.choice(names.STARTS)

    return first + names.syllables(rng) + ending


def unnamed(rng):
    """Returns the name of a tool or a parameter, which means nothing."""

    way = rng.random()

    if way < 0.4:
        a, b = invented(rng), invented(rng)
    elif way < 0.7:
        a, b = rng.choice(('fn', 'tool', 'op', 'x', 'cmd', 'api', 'p')), \
            letters(rng) if rng.random() < 0.5 else str(rng.randrange(1, 999))
    else:
        a, b = letters(rng), f'{letters(rng)}{rng.randrange(1, 99)}'

    return rng.choice((f'{a}_{b}', f'{a}{b.capitalize()}', f'{a}-{b}',
                       f'{a}_{b}', f'{a.upper()}_{b.upper()}'))


def disguised(rng, family, tools, samples):
    """Returns the samples with other names of some tools and parameters, if
    they have a description.  A name of one word stays, since it can be a word
    of a sentence, too."""

    if family in WHOLE or family.startswith('cold') \
            or rng.random() >= DISGUISED:
        return samples

    found = {}

    for tool in tools:
        for name in described(tool['function']):
            if COMPOUND.search(name) and rng.random() < 0.5:
                found.setdefault(name, unnamed(rng))

    if not found or len(set(found.values())) < len(found):
        return samples

    named = re.compile(r'(?<![\w-])(?:' + '|'.join(
        map(re.escape, sorted(found, key=len, reverse=True))) + r')(?![\w-])')

    return [[(type(text)(named.sub(lambda m: found[m.group()], text)), target)
             for text, target in sample] for sample in samples]


def described(function):
    """Yields the names of a function and of its parameters, of those that
    have a description."""

    if function.get('description'):
        yield function['name']

    def inner(schema):
        for name, part in schema.get('properties', {}).items():
            if part.get('description'):
                yield name

            yield from inner(part)

    yield from inner(function.get('parameters', {}))


def like(word, new):
    """Returns the new word with capitals as the word has them."""

    if word.isupper() and len(word) > 1:
        return new.upper()

    return new.capitalize() if word[0].isupper() else new


BEFORE = '''ok so|hey|um|right|quick one|one thing|so|alright|morning|listen
|hm|good|hello there|sorry to bother you|I was wondering|for my sister
|just checking|if you have a moment|next|new one|oh and|well|dear bot
|my boss wants this|it's me again|first of all|not sure if you can'''.replace(
    '\n', '').split('|')
MARKS = (', ', ': ', '. ', ' - ', '... ', '\n')
AFTER = '''|pls|asap|thx|cheers|thanks!!|:)|please|if that's ok|if you can
|right now|thank you so much|that would be great|I'm in a hurry|ty|ok?
|for me|would be nice|Take your time.|I need it soon'''.replace(
    '\n', '').split('|')


def greeted(rng, family, messages):
    """Returns the messages, with words around some requests to use tools."""

    if not family.startswith(('daily_tool', 'daily_many', 'daily_error',
                              'daily_none', 'daily_turns', 'daily_events',
                              'daily_text', 'daily_open')):
        return messages

    return [{**m, 'content': around(rng, m['content'])}
            if m['role'] == 'user' and rng.random() < 0.25 else m
            for m in messages]


def around(rng, text):
    if rng.random() < 0.6:
        first = rng.choice(BEFORE)
        first = first.capitalize() if rng.random() < 0.5 else first
        text = first + rng.choice(MARKS) + text

    if rng.random() < 0.4:
        between = (' ',) if text[-1:] in '.?!' else (' ', ', ')
        text += rng.choice(between) + rng.choice(AFTER)

    return text
