# Copyright (C) The nginx-dsa authors

"""Small skills: counting, spelling, repeating, naming and comparing words.

Each function of SKILLS takes a random.Random and returns a Said.
"""

import re

from tasks import wording
from tasks.facts import MODEL, PROJECT
from tasks.parts import Split
from tasks.said import Said, ask, words
from tasks.tools_check import has_word
from tasks.words import COLORS, PEOPLE, THINGS, made_up


DAYS = '''Monday Tuesday Wednesday Thursday Friday Saturday Sunday'''.split()

MONTHS = '''January February March April May June July August September
October November December'''.split()

ALPHABET = 'abcdefghijklmnopqrstuvwxyz'

ONES = '''zero one two three four five six seven eight nine ten eleven twelve
thirteen fourteen fifteen sixteen seventeen eighteen nineteen'''.split()

TENS = '''zero ten twenty thirty forty fifty sixty seventy eighty
ninety'''.split()

OPPOSITES = [pair.split('/') for pair in '''hot/cold big/small long/short
early/late old/new fast/slow high/low open/closed full/empty heavy/light
strong/weak wet/dry loud/quiet happy/sad good/bad left/right up/down
first/last day/night summer/winter north/south east/west begin/end buy/sell
give/take push/pull come/go ask/answer win/lose inside/outside before/after
above/below near/far rich/poor hard/soft wide/narrow thick/thin
sweet/sour'''.split()]

COLOR_OF = dict(pair.split('=') for pair in '''snow=white|grass=green
coal=black|blood=red|milk=white|salt=white|chocolate=brown
ash=gray|a lemon=yellow
a banana=yellow|a cherry=red|a tomato=red|a strawberry=red|a carrot=orange
a crow=black|a swan=white|a frog=green|a mouse=gray|a leaf=green|a pea=green
the sea=blue|the sky=blue|the sun=yellow|the night=black|a plum=purple
flour=white|rust=brown|a fir tree=green|sugar=white|soot=black
the clear sky=blue|a pumpkin=orange|a ripe apple=red|sand=yellow'''.replace(
    '\n', '|').split('|'))

# kind, kinds: words of this kind; no word is of two kinds

KINDS = {
    ('fruit', 'fruits'): 'apple pear plum cherry lemon banana grape peach',
    ('vegetable', 'vegetables'):
        'carrot onion potato leek pea bean cabbage tomato',
    ('animal', 'animals'): 'dog cat horse cow sheep goat fox bear',
    ('bird', 'birds'): 'robin crow owl swan duck goose eagle gull',
    ('tool', 'tools'): 'hammer saw drill spade shovel rake pliers chisel',
    ('color', 'colors'): 'red blue green yellow black white brown gray',
    ('tree', 'trees'): 'oak pine birch elm fir beech maple willow',
    ('metal', 'metals'): 'iron copper tin zinc lead steel nickel brass',
    ('instrument', 'instruments'):
        'violin flute drum trumpet harp piano guitar cello',
    ('piece of furniture', 'pieces of furniture'):
        'chair table desk shelf bed bench sofa wardrobe',
    ('piece of clothing', 'pieces of clothing'):
        'shirt coat hat sock scarf glove dress belt',
    ('shape', 'shapes'):
        'circle square triangle cube cone sphere ellipse hexagon',
    ('day', 'days'): ' '.join(DAYS),
    ('month', 'months'): ' '.join(MONTHS),
}

KINDS = {kind: words_.split() for kind, words_ in KINDS.items()}

# also accepted when the user asks for some of a kind

MORE = {
    'fruits': '''orange lime mango melon fig date kiwi apricot strawberry
        raspberry tomato pineapple''',
    'vegetables': 'lettuce spinach celery radish turnip beet pepper garlic',
    'animals': '''wolf lion tiger mouse rabbit pig deer elephant robin crow
        owl swan duck goose eagle gull fish frog''',
    'tools': 'file knife axe plane wrench screwdriver broom brush needle',
    'colors': ' '.join(COLORS),
    'metals': 'gold silver aluminium bronze platinum',
    'instruments': 'horn bell organ oboe clarinet viola lute whistle',
}

# the words for skills with letters

SPELLED = sorted({*THINGS, *COLORS, *(w.lower() for row in KINDS.values()
                                      for w in row),
                  *' '.join(MORE.values()).split(),
                  *'''nginx redis token server engine worker module model
                  prompt answer cache memory sparse attention banana letter
                  alphabet question hello world computer mississippi
                  bookkeeper'''.split()})

ADJECTIVES = '''old small red blue green warm cold heavy light round narrow
quiet bright empty full new broken copper wooden silver'''.split()

# the words of texts to repeat

REPEATED = Split((*THINGS, *ADJECTIVES, *PEOPLE, *SPELLED))

PLACES = '''on the table|under the bed|in the garden|behind the door|at the
river|near the bridge|by the window|on the roof|in the boat|beside the
wall'''.replace('\n', ' ').split('|')

NTH = ('first', 'second', 'third', 'fourth', 'fifth')


def a_word(rng):
    return made_up(rng) if rng.random() < 0.2 else rng.choice(SPELLED)


def count(rng):
    down = rng.random() < 0.3
    step = rng.choice((1, 1, 1, 1, 2, 3, 5, 10))
    to = step == 1 and not down and rng.random() < 0.3
    first = 1 if to else rng.randrange(0, 40) if step < 5 \
        else step * rng.randrange(6)
    last = first + step * rng.randrange(3, 14)
    row = list(range(first, last + 1, step))

    if down:
        row.reverse()

    by = '' if step == 1 else rng.choice((f' in steps of {step}',
                                          f' by {step}s'))
    way = 'down' if down else 'up'
    how = rng.choice((
        'Count from {a} to {b}{by}.', 'Count {way} from {a} to {b}{by}.',
        'Can you count from {a} to {b}{by}?', 'List {a} to {b}{by}.',
        'Say the numbers from {a} to {b}{by}.', 'Count {a} to {b}{by}.',
        'Start at {a} and count {way} to {b}{by}.',
        'Write the numbers from {a} to {b}{by}.',
        'From {a} to {b}{by}: count.', 'Count {way}{by}, {a} to {b}.',
        'Would you count from {a} {way} to {b}{by}?'))

    if to:
        how = rng.choice(('Count to {b}.', 'Can you count to {b}?',
                          'Count up to {b}.', 'I want you to count to {b}.'))

    def wrong(answer):
        found = [int(n) for n in re.findall(r'\d+', answer)]
        return None if found == row else f'not {row}'

    return Said(ask(rng, how.format(a=row[0], b=row[-1], by=by, way=way)),
                f'Count {way} by {step} from {row[0]} to {row[-1]}.',
                ', '.join(map(str, row)), wrong, about='counting')


def spell(rng):
    word = a_word(rng)
    how = rng.choice((
        'Spell {}.', 'Spell the word {}.', 'How do you spell {}?',
        'How is {} spelled?', 'Can you spell {}?', 'Spell {} for me.',
        'Which letters are in {}?', 'Give me the letters of {}.',
        'Please spell the word "{}".', 'What is the spelling of {}?'))

    return Said(ask(rng, how.format(word)),
                f'Spell {word}, a letter at a time.', '-'.join(word),
                lambda answer: spelled(answer, word), about='spelling')


def spelled(answer, *right):
    """Returns None if the letters that stand alone make one of the words."""

    return None if ''.join(alone(answer)) in right else f'not {right[0]}'


def alone(text):
    """Returns the letters that stand alone."""

    return re.findall(r'(?<![a-z])[a-z](?![a-z])', text.lower())


def backwards(rng):
    word = rng.choice([w for w in SPELLED if len(w) <= 6])
    how = rng.choice((
        'Spell {} backwards.', 'Write {} backwards.', 'Reverse the word {}.',
        'What is {} backwards?', 'Turn the word {} around.',
        'How do you spell {} backwards?', 'Say {} from its end.',
        'Read {} from right to left.', 'What is {} in reverse?'))

    back = '-'.join(reversed(word))

    return Said(ask(rng, how.format(word)),
                f'{word} from its end to its start.',
                f'{"-".join(word)} backwards is {back}',
                lambda answer: spelled(answer, word[::-1],
                                       word + word[::-1]),
                about='a word backwards')


def letters(rng):
    word = a_word(rng)
    how = rng.choice((
        'How many letters has {}?', 'How many letters are in {}?',
        'Count the letters of {}.', 'How long is the word {}?',
        'How many letters does the word {} have?',
        'What is the number of letters in {}?', 'How many letters in {}?'))

    counted = ', '.join(f'{c} {i + 1}' for i, c in enumerate(word))

    def wrong(answer):
        found = re.findall(r'\d+', answer)
        return None if found[-1:] == [str(len(word))] \
            else f'not {len(word)} letters'

    return Said(ask(rng, how.format(word)),
                f'Count the letters of {word}.',
                f'{counted}: {len(word)} letters.', wrong,
                about='the letters of a word')


def letter_times(rng):
    word = a_word(rng)
    letter = rng.choice(word if rng.random() < 0.85 else ALPHABET)
    how = rng.choice((
        'How many {c} are in {w}?', "How many {c}'s are in {w}?",
        'How many times does the letter {c} appear in {w}?',
        'How often is {c} in {w}?', "Count the {c}'s in {w}.",
        'How many letters {c} has the word {w}?', 'Count the {c} in {w}.',
        'How often does {w} have the letter {c}?',
        'How many times is there a {c} in {w}?'))
    n, counted = 0, []

    for c in word:
        n += c == letter
        counted.append(f'{c} {n}')

    def wrong(answer):
        found = re.findall(r'\d+', answer) or [
            str(ONES.index(w)) for w in words(answer) if w in ONES]
        return None if found[-1:] == [str(n)] else f'not {n} times {letter}'

    return Said(ask(rng, how.format(c=rng.choice((letter, letter.upper())),
                                    w=word)),
                f'Count the letter {letter} in {word}.',
                f'{", ".join(counted)}: {letter} is there {n} times.', wrong,
                about='the letters of a word')


def end_letter(rng):
    word = a_word(rng)
    where = rng.choice(('first', 'last'))
    how = rng.choice((
        'What is the {} letter of {}?', 'Which letter is {} in {}?',
        'Name the {} letter of {}.', 'Tell me the {} letter of {}.',
        'Which is the {} letter of {}?', 'Say the {} letter of {}.'))
    letter = word[0] if where == 'first' else word[-1]

    def wrong(answer):
        return None if alone(answer)[-1:] == [letter] else f'not {letter}'

    return Said(ask(rng, how.format(where, word)),
                f'{word}: {"-".join(word)}; the {where} is {letter}.',
                f'The {where} letter of {word} is {letter}.', wrong,
                about='a letter of a word')


def next_letter(rng):
    i = rng.randrange(1, 25)
    way = rng.choice(('after', 'before'))
    letter = ALPHABET[i + 1 if way == 'after' else i - 1]
    how = rng.choice((
        'Which letter comes {} {}?', 'What letter is {} {}?',
        'What comes {} {} in the alphabet?', 'Name the letter {} {}.',
        'Tell me the letter {} {}.', 'Which letter stands {} {}?'))

    def wrong(answer):
        return None if alone(answer)[-1:] == [letter] else f'not {letter}'

    row = f'{ALPHABET[i - 1]} {ALPHABET[i]} {ALPHABET[i + 1]}'

    return Said(ask(rng, how.format(way, rng.choice((
                    ALPHABET[i], ALPHABET[i].upper())))),
                f'The alphabet: {row}.',
                f'{way.capitalize()} {ALPHABET[i]} comes {letter}.', wrong,
                about='the alphabet')


def phrase(rng):
    """Returns a text to repeat: of our words, of made-up words, or a sentence
    that would usually be a request."""

    kind = rng.random()

    if kind < 0.3:
        return ' '.join(
            made_up(rng) if rng.random() < 0.3
            else str(rng.randrange(1000)) if rng.random() < 0.01
            else rng.choice(REPEATED)
            for _ in range(rng.randrange(1, 9)))

    if kind < 0.6:
        topic = rng.choice(list(MODEL.values()) + list(PROJECT.values()))
        text = topic.answer if rng.random() < 0.5 else topic.ask(rng)
        return text.rstrip('.?!').replace('"', '')

    thing, other = rng.sample(THINGS, 2)
    adjective, another = rng.sample(ADJECTIVES, 2)

    return rng.choice((
        f'the {adjective} {thing} is {rng.choice(PLACES)}',
        f'my {thing} and my {other} are {adjective}',
        f'a {adjective} {thing}, a {another} {other}',
        f'{rng.randrange(2, 90)} {adjective} {wording.plural(thing)} '
        + rng.choice(PLACES),
        f'{adjective} {another} {thing} {other}'))


def repeat(rng):
    text = phrase(rng)
    how = rng.choice((
        'Repeat: {}', 'Repeat after me: {}', 'Say "{}"', 'Repeat "{}".',
        'Say this again: {}', 'Say exactly this: {}', 'Copy this: {}',
        'Write the same: {}', 'Repeat the words "{}".', 'Echo {}'))

    def wrong(answer):
        return None if words(answer) == words(text) else 'not the same words'

    return Said(ask(rng, how.format(text)),
                'Repeat the words as they are.', text, wrong,
                about='repeating words')


def repeat_times(rng):
    n = rng.randrange(2, 7)
    word = rng.choice(THINGS + COLORS)
    times = rng.choice((ONES[n], str(n))) + ' times'
    how = rng.choice((
        'Say {} {}.', 'Repeat {} {}.', 'Write {} {}.',
        'Say the word {} {}.', 'Write the word {} {}.',
        'Can you say {} {}?', 'I want to read {} {}.'))

    def wrong(answer):
        return None if words(answer) == [word] * n else f'not {word} {n}x'

    return Said(ask(rng, how.format(word, times)),
                f'Say {word} {n} times: ' + ', '.join(
                    f'{i} {word}' for i in range(1, n + 1)) + '.',
                ' '.join([word] * n), wrong, about='repeating a word')


def neighbor(rng):
    """Returns a question about the day or month n after or before another."""

    what, row = rng.choice((('day', DAYS), ('month', MONTHS)))
    way = rng.choice(('after', 'before'))
    n = rng.choice((1, 1, 1, 2, 3))
    i = rng.randrange(len(row))
    steps = [row[(i + (k if way == 'after' else -k)) % len(row)]
             for k in range(1, n + 1)]

    if n == 1:
        how = rng.choice((
            'What {what} comes {way} {start}?', 'What {what} is {way} '
            '{start}?', 'Which {what} comes {way} {start}?',
            'Name the {what} {way} {start}.', 'What comes {way} {start}?',
            'Tell me the {what} {way} {start}.'))
    else:
        how = rng.choice((
            'What {what} is {n} {what}s {way} {start}?',
            'Which {what} comes {n} {what}s {way} {start}?',
            '{n} {what}s {way} {start}: which {what} is it?',
            'Name the {what} {n} {what}s {way} {start}.'))

    user = how.format(what=what, way=way, start=row[i],
                      n=rng.choice((ONES[n], str(n))))

    def wrong(answer):
        named = [w for w in words(answer)
                 if w in [r.lower() for r in row]]
        return None if named and named[-1] == steps[-1].lower() \
            else f'not {steps[-1]}'

    path = ', '.join(f'{k} {s}' for k, s in enumerate(steps, 1))

    return Said(ask(rng, user[0].upper() + user[1:]),
                f'{what}s {way} {row[i]}: {path}.',
                f'{way.capitalize()} {row[i]}: {", ".join(steps)}.', wrong,
                about=f'{what}s')


def whole_row(rng):
    what, row = rng.choice((('days of the week', DAYS),
                            ('months of the year', MONTHS),
                            ('letters of the alphabet', list(ALPHABET))))
    how = rng.choice((
        'Name the {}.', 'What are the {}?', 'List the {}.',
        'Tell me the {}.', 'Which are the {}?', 'Do you know the {}?',
        'Name all the {}.', 'Say the {} in order.', 'Write down the {}.'))

    def wrong(answer):
        known = [r.lower() for r in row]
        return None if [w for w in words(answer) if w in known] == known \
            else f'not the {what}'

    return Said(ask(rng, how.format(what)),
                f'Name the {what}, in order.', ', '.join(row), wrong,
                about=f'the {what}')


def opposite(rng):
    pair = rng.choice(OPPOSITES)
    a, b = rng.sample(pair, 2)
    how = rng.choice((
        'What is the opposite of {}?', "What's the opposite of {}?",
        'Opposite of {}?', 'Name the opposite of {}.',
        'Which word is the opposite of {}?', 'Tell me the opposite of {}.',
        'What is the contrary of {}?', 'The opposite of {} is what?',
        'Not {}, but what?'))

    def wrong(answer):
        return None if has_word(answer, b) else f'not {b}'

    return Said(ask(rng, how.format(a)),
                f'The opposite of {a}: {b}.',
                f'The opposite of {a} is {b}.', wrong, about='opposites')


def color(rng):
    thing = rng.choice(sorted(COLOR_OF))
    right = COLOR_OF[thing]
    how = rng.choice((
        'What color is {}?', 'Which color is {}?', 'What color has {}?',
        'Tell me the color of {}.', 'What is the color of {}?',
        'Name the color of {}.', 'In what color do you see {}?',
        'Do you know the color of {}?', 'Which color does {} have?'))

    def wrong(answer):
        named = {w for w in words(answer) if w in COLORS}
        return None if named == {right} else f'not {right}'

    return Said(ask(rng, how.format(thing)),
                f'The color of {thing}: {right}.',
                f'{thing.capitalize()} is {right}.', wrong, about='colors')


def is_color(rng):
    thing = rng.choice(sorted(COLOR_OF))
    right = COLOR_OF[thing]
    asked = right if rng.random() < 0.5 \
        else rng.choice(sorted(set(COLOR_OF.values()) - {right}))
    how = rng.choice((
        'Is {} {}?', 'Would you say that {} is {}?', 'Is it true that {} is '
        '{}?', 'Am I right that {} is {}?', 'Do you think {} is {}?'))
    yes = 'Yes' if asked == right else 'No'

    def wrong(answer):
        first = words(answer)[:1]
        return None if first == [yes.lower()] and has_word(answer, right) \
            else f'not: {yes}, {right}'

    return Said(ask(rng, how.format(thing, asked)),
                f'{thing.capitalize()} is {right}; asked: {asked}.',
                f'{yes}, {thing} is {right}.', wrong, about='colors')


def name_some(rng):
    (_, kinds), known = rng.choice(sorted(KINDS.items()))
    n = rng.randrange(2, 7)
    how = rng.choice((
        'Name {} {}.', 'Tell me {} {}.', 'List {} {}.', 'Give me {} {}.',
        'Which {} {} do you know?', 'Can you name {} {}?', 'I need {} {}.',
        'Write down {} {}.', 'Say {} {}.'))
    right = {w.lower() for w in known + MORE.get(kinds, '').split()}

    def wrong(answer):
        named = [w for w in words(answer) if w in right]
        return None if len(named) == n == len(set(named)) \
            else f'not {n} {kinds}'

    return Said(ask(rng, how.format(rng.choice((ONES[n], str(n))),
                                             kinds)),
                f'{n} {kinds}: ' + ', '.join(
                    f'{i} {w}' for i, w in enumerate(known[:n], 1)) + '.',
                ', '.join(known[:n]), wrong, about=kinds)


def what_is(rng):
    (kind, _), known = rng.choice(sorted(KINDS.items()))
    word = rng.choice(known)
    text = word if kind in ('metal', 'day', 'month', 'color') \
        else wording.a(word)
    how = rng.choice((
        'What is {}?', 'What kind of thing is {}?', "What's {}?",
        'Tell me what {} is.', 'Do you know what {} is?',
        'What do you call {}?', 'What sort of thing is {}?'))

    def wrong(answer):
        return None if has_word(answer, kind) else f'not a {kind}'

    return Said(ask(rng, how.format(text)),
                f'{word}: {wording.a(kind)}.',
                f'{text[0].upper()}{text[1:]} is {wording.a(kind)}.',
                wrong, about='the meaning of a word')


def odd_one(rng):
    (kind, kinds), (other, _) = rng.sample(sorted(KINDS), 2)
    one = rng.choice(KINDS[other, _])
    row = rng.sample(KINDS[kind, kinds], 3) + [one]
    rng.shuffle(row)
    how = rng.choice((
        'Which does not belong: {}?', 'Which is the odd one out: {}?',
        'One of these does not fit: {}. Which one?',
        'Find the odd one: {}.', 'Which word does not fit: {}?',
        'What does not belong here: {}?'))

    def wrong(answer):
        named = [w for w in words(answer) if w in map(str.lower, row)]
        return None if named and named[-1] == one.lower() else f'not {one}'

    seen = ', '.join(f'{w}: {other if w == one else kind}' for w in row)

    return Said(ask(rng, how.format(', '.join(row))),
                f'What each is. {seen}. Only once: {other}, {one}.',
                f'{seen}. The odd one is {one}.', wrong,
                about='words that belong together')


def in_words(rng):
    n = rng.randrange(100)
    text = ONES[n] if n < 20 else TENS[n // 10]

    if n >= 20 and n % 10 > 0:
        text += '-' + ONES[n % 10]

    how = rng.choice((
        'Write {} in words.', 'Write {} as a word.', 'Say {} in words.',
        'What is {} in words?', 'How do you write {} in words?',
        'How is the number {} written in words?', 'Turn {} into words.'))

    def wrong(answer):
        said = re.sub('[^a-z]', '', answer.lower())
        return None if said.endswith(text.replace('-', '')) \
            and (n < 20 or n % 10 == 0 or TENS[n // 10] in said) \
            and has_word(answer.replace('-', ' '), text.replace('-', ' ')) \
            else f'not {text}'

    return Said(ask(rng, how.format(n)),
                f'{n} in words: {text}.', text, wrong,
                about='a number in words')


def even(rng):
    n = rng.randrange(1000)
    asked = rng.choice(('even', 'odd'))
    right = 'odd' if n % 2 else 'even'
    how = rng.choice((
        'Is {} {}?', 'Is {} an {} number?', 'Is the number {} {}?',
        'Would you call {} {}?', 'Tell me whether {} is {}.'))
    yes = 'Yes' if asked == right else 'No'

    def wrong(answer):
        first = words(answer)[:1]
        other = 'even' if right == 'odd' else 'odd'
        return None if first == [yes.lower()] and has_word(answer, right) \
            and not has_word(answer, other) else f'not: {yes}, {right}'

    return Said(ask(rng, how.format(n, asked)),
                f'{n} ends with {n % 10}, which is {right}.',
                f'{yes}, {n} is {right}.', wrong, about='even and odd numbers')


def reverse_words(rng):
    row = rng.sample(THINGS, rng.randrange(3, 7))
    how = rng.choice((
        'Turn this list around: {}', 'Reverse these words: {}',
        'Say these words from the last to the first: {}',
        'Write in reverse order: {}', 'Put the last first: {}'))

    def wrong(answer):
        return None if words(answer) == row[::-1] else 'not in reverse'

    return Said(ask(rng, how.format(', '.join(row))),
                'The last word first, then the one before it.',
                ', '.join(reversed(row)), wrong, about='a list of words')


def nth_word(rng):
    row = rng.sample(THINGS, rng.randrange(3, 6))
    i = rng.randrange(len(row))
    how = rng.choice((
        'Which is the {nth} word of: {row}', 'What is the {nth} word here: '
        '{row}', 'Tell me the {nth} of these words: {row}',
        'Which word comes {nth} in this list: {row}',
        'Pick the {nth} word: {row}'))

    def wrong(answer):
        named = [w for w in words(answer) if w in row]
        return None if named and named[-1] == row[i] else f'not {row[i]}'

    return Said(ask(rng, how.format(nth=NTH[i], row=', '.join(row))),
                ', '.join(f'{NTH[k]} {w}' for k, w in
                          enumerate(row[:i + 1])) + '.',
                f'The {NTH[i]} word is {row[i]}.', wrong,
                about='a list of words')


def sentence(rng):
    word = rng.choice(THINGS)
    how = rng.choice((
        'Use the word {} in a sentence.', 'Make a sentence with {}.',
        'Write a sentence with the word {}.', 'A sentence with {}, please.',
        'Can you make a sentence with {}?', 'Say a sentence about {}.'))

    def wrong(answer):
        said = words(answer)
        return None if word in said and len(said) >= 4 \
            else f'no sentence with {word}'

    return Said(ask(rng, how.format(word)),
                f'A sentence with the word {word}.',
                f'The {word} is on the table near the window.', wrong,
                about='a sentence')


# skills that newcomers try and that are hard to learn are listed twice

SKILLS = (count, spell, backwards, letters, letter_times, letter_times,
          end_letter, next_letter, repeat, repeat, repeat_times, neighbor,
          whole_row, opposite, color, is_color, name_some, what_is, odd_one,
          in_words, even, reverse_words, nth_word, sentence)
