# Copyright (C) The nginx-dsa authors

"""Questions so simple that no tool is needed: opposites, days, small sums, the
larger of two numbers, and which tools there are.

A kind is a function: rng -> the user's text, the answers, the words that an
answer must have, and a thought.
"""

from tasks.parts import Split
from tasks.skills import COLOR_OF, DAYS, KINDS, MONTHS, ONES, OPPOSITES
from tasks.wording import a


def lines(text):
    return Split(text.strip().splitlines())


OPPOSITE = lines('''
[What is|What's|whats] the opposite of {a}?
Opposite of {a}?
[Tell|Give] me the opposite of "{a}".
{a} - and the opposite[, please|]?
I need a word that means the contrary of {a}.
Not {a} but ...? I need the opposite.
If something is not {a}, it is what? The opposite, please.
Which word is the reverse of {a}?
For my crossword: the opposite of "{a}".
My teacher asks for the opposite of {a}. What is it?
[How do you call|What do you call] the opposite of {a}?
antonym of {a} pls
Quick, without any tools: the opposite of {a}?
We play opposites. I say {a}. You say?
Can you tell me the antonym of the word {a}?
The word is {a}. What is the contrary?
{a} is one end, what is the other end?
just one word: opposite of {a}
I forgot the word. It means the opposite of {a}.
Turn {a} around: what is the opposite?
What would you say if something is anything but {a}? One word.
A word puzzle asks for the opposite of {a}. Any idea?
opposite {a}?''')

OPPOSITE_SAID = ('{b}.', 'The opposite of {a} is {b}.', '[It is|That is] {b}.',
                 '{b} is the opposite[ of {a}|].', 'The contrary is {b}.',
                 '"{b}"[, of course|].', '[I say|That would be] {b}.',
                 'Not {a}, but {b}.')


def opposite(rng):
    x, y = rng.sample(rng.choice(OPPOSITES), 2)

    return OPPOSITE, OPPOSITE_SAID, dict(a=x, b=y), [y], \
        f'The opposite of {x} is {y}'


AFTER = lines('''
[Which|What] {kind} [comes|is] after {a}?
[What is|What's] the {kind} after {a}?
After {a} comes [what|which {kind}]?
{a}, and then? Which {kind}?
Name the {kind} that follows {a}.
Which {kind} follows {a}?
If now it is {a}, which {kind} is next?
Say, what {kind} do we have after {a}?
The next {kind} after {a}, please.
whats the {kind} after {a}
I mixed them up again: which {kind} comes right after {a}?
{a} is nearly over. What comes next?
Tell me the {kind} that comes after {a}.
My child asks which {kind} comes after {a}.
{kind} after {a}?
I only need the {kind} that comes after {a}.
Today's quiz for children: after {a} comes which {kind}?
Count on by one {kind}: {a}, ...?''')

BEFORE = lines('''
[Which|What] {kind} [comes|is] before {a}?
[What is|What's] the {kind} before {a}?
Before {a} comes [what|which {kind}]?
Name the {kind} that comes before {a}.
Which {kind} precedes {a}?
If now it is {a}, which {kind} was the last one?
The {kind} just before {a}, please.
whats the {kind} before {a}
Which {kind} is directly before {a}?
Tell me the {kind} that ends when {a} begins.
I mixed them up again: which {kind} comes right before {a}?
My child asks which {kind} comes before {a}.
{kind} before {a}?
I only need the {kind} that comes before {a}.
One {kind} back from {a}, which is it?
What was the {kind} if {a} is the next one?''')

ROW_SAID = ('{b}.', '[It is|That is] {b}.', '{b}, of course.',
            'The {kind} is {b}.', '[I would say|That would be] {b}.',
            '[Easy|Sure]: {b}.', '{where} {a} [comes|is] {b}.',
            '{b} [comes|is] {w} {a}.')


def in_a_row(rng):
    kind, row = rng.choice((('day', DAYS), ('month', MONTHS)))
    i = rng.randrange(len(row))
    after = rng.random() < 0.6
    b = row[(i + (1 if after else -1)) % len(row)]
    w = 'after' if after else 'before'

    return AFTER if after else BEFORE, ROW_SAID, dict(
        kind=kind, a=row[i], b=b, w=w, where=w.capitalize()), [b], \
        f'{w.capitalize()} {row[i]} comes {b}'


SUM = lines('''
What is {a} {sign} {b}?
{a} {sign} {b}?
how much is {a} {sign} {b}
[What's|whats] {a}{sign}{b}?
What does {a} {word} {b} make?
{a} {word} {b} is what?
In your head please: {a} {word} {b}.
Do you know what {a} {sign} {b} is?
My little sister asks how much {a} {word} {b} is.
quick one: {a} {sign} {b}
Tell me {a} {word} {b}.
I think {a} {word} {b} is easy for you.
[Just|Only] the number: {a} {sign} {b}
Can you do sums? {a} {word} {b}?
{a} {word} {b} equals?
solve {a} {sign} {b} pls
No calculator needed, I hope: {a} {sign} {b}
How many is {a} {word} {b}?''')

SUM_SAID = ('{n}.', '[It is|That is|That makes] {n}.', '{a} {sign} {b} = {n}.',
            '{a} {word} {b} is {n}.', 'The answer is {n}.',
            '[Easy|Sure]: {n}.', 'That would be {n}.',
            '{a} {sign} {b} is {n}.')


def small_sum(rng):
    a_, b = rng.randrange(1, 10), rng.randrange(1, 10)
    sign = rng.choice('+-')

    if sign == '-':
        a_, b = max(a_, b), min(a_, b)

    n = a_ + b if sign == '+' else a_ - b

    return SUM, SUM_SAID, dict(a=a_, b=b, sign=sign, n=n, word={
        '+': 'plus', '-': 'minus'}[sign]), [f'{n}|{ONES[n]}'], \
        f'{a_} {sign} {b} = {n}'


LARGER = lines('''
[What|Which] is {more}, {a} or {b}?
Which number is {more}: {a} or {b}?
{a} or {b}, which one is {more}?
Is {a} {more} or is {b}?
Tell me the {more} number of {a} and {b}.
Compare {a} and {b}. Which is {more}?
Of the two numbers {a} and {b}, which is {more}?
{a}, {b}: the {more} one, please.
I have {a} and my friend has {b}. Which is {more}?
whats {more}, {a} or {b}
Take {a} and {b} and name the {more} one.
Between {a} and {b}, which number is {more}?
{more}: {a} or {b}?
My son asks which is {more}, {a} or {b}.
Please pick the {more} of {a} and {b}.
Say which number is {more}. {a}. {b}.''')

LARGER_SAID = ('{n}.', '[It is|That is] {n}.', '{n} is {more}.',
               'The {more} number is {n}.', '{n} is the {more} one.',
               '[Easy|Sure]: {n}.')


def larger(rng):
    x, y = rng.sample(range(1, 100), 2)
    more = rng.choice(('larger', 'larger', 'smaller'))
    n = max(x, y) if more == 'larger' else min(x, y)

    return LARGER, LARGER_SAID, dict(a=x, b=y, n=n, more=more), \
        [('only', n, x + y - n)], f'{n} is {more}'


COLOR = lines('''
[What|Which] color is {a}?
What color does {a} have?
Tell me the color of {a}.
{a}: which color?
I want to paint {a}. Which color do I take?
What is the color of {a}?
Which color do you think of when you hear "{a}"?
color of {a}?
My son wants to know the color of {a}.
In which color would a child draw {a}?
No need to search, just say the color of {a}.
whats the color of {a}
I am doing a drawing with {a}. In which color?
{a} - color?
Do you know what color {a} is?
Crayons are ready. Which one for {a}?''')

COLOR_SAID = ('{b}.', '[It is|That is] {b}.', 'The color is {b}.',
              '{b}, [I would say|of course].', '[Take|Use] {b}.',
              '[Usually|Mostly], it is {b}.')


def color(rng):
    thing = rng.choice(sorted(COLOR_OF))

    return COLOR, COLOR_SAID, dict(a=thing, b=COLOR_OF[thing]), \
        [COLOR_OF[thing]], f'The color of {thing} is {COLOR_OF[thing]}'


KIND = lines('''
What [kind of thing|sort of thing] is {a}?
Is {a} {right} or {wrong}?
{a}: {right} or {wrong}?
Would you call {a} {wrong} or {right}?
What is {a}, {right} or {wrong}?
I say that {a} is {wrong}, my brother says it's {right}. Who is right? Name the kind.
Does {a} belong to the {wrongs} or to the {rights}?
{rights} or {wrongs} - where does {a} belong?
{right} or {wrong}, what is {a}?
Sort this for me: is {a} {wrong} or is it {right}?
My child says that {a} is {wrong}. Is it, or is it {right}?
Under which heading do I put {a}, {rights} or {wrongs}?
{a} - would you say {right} or {wrong}?''')

KIND_SAID = ('{right}.', '[It is|That is] {right}.', '{a} is {right}.',
             '[I would say|Of course], it is {right}.',
             '{right}, [of course|I think].', '[Easy|Sure]: {right}.')


def kind(rng):
    known = sorted(k for k in KINDS if k[0] in (
        'fruit', 'vegetable', 'animal', 'bird', 'tool', 'tree'))
    (right, rights), (wrong, wrongs) = rng.sample(known, 2)

    if {right, wrong} == {'animal', 'bird'}:
        return kind(rng)

    word = rng.choice(KINDS[right, rights])

    return KIND, KIND_SAID, dict(
        a=a(word), right=a(right), rights=rights, wrong=a(wrong),
        wrongs=wrongs), [('only', right, wrong)], \
        f'{a(word)} is {a(right)}'


# questions; the words of the answer; answers

FIXED = tuple((lines(q), key, said) for q, key, said in (
    ('''
How many days [has|are in] a week?
number of days in a week?
A week has how many days?
[Tell me|Say] how many days there are in one week.
Do I remember right? How many days does a week have?''', '7|seven',
     ('Seven.', '[A week has|There are] 7 days.', '7.', 'It is seven.')),
    ('''
How many months [has|are in] a year?
A year has how many months?
number of months in a year?
[Tell me|Say] how many months make a year.
Into how many months is a year divided?''', '12|twelve',
     ('Twelve.', '[A year has|There are] 12 months.', '12.',
      'It is twelve.')),
    ('''
How many minutes [has|are in] an hour?
An hour has how many minutes?
minutes per hour?
[Tell me|Say] how many minutes there are in one hour.
One hour is how many minutes?''', '60|sixty',
     ('Sixty.', '[An hour has|There are] 60 minutes.', '60.',
      'It is 60 minutes.')),
    ('''
How many hours [has|are in] a day?
A day has how many hours?
hours per day?
[Tell me|Say] how many hours there are in one day.
One whole day, how many hours is that?''', '24|twenty-four',
     ('24.', '[A day has|There are] 24 hours.', 'It is 24 hours.',
      'Twenty-four.')),
    ('''
Which letter comes first in the alphabet?
With which letter does the alphabet begin?
first letter of the alphabet?
What is the first letter of the ABC?''', 'A',
     ('A.', 'It is A.', 'The alphabet begins with A.', 'The letter A.')),
    ('''
How many letters has the alphabet?
number of letters in the English alphabet?
[Tell me|Say] how many letters the alphabet has.
How many letters are there from A to Z?''', '26|twenty-six',
     ('26.', '[The alphabet has|There are] 26 letters.', 'It is 26.',
      'Twenty-six.')),
    ('''
Is ice cold or hot?
Ice: hot or cold?
What would you say, is ice hot or cold?
My child asks whether ice is hot or cold.''', 'cold',
     ('Cold.', 'It is cold.', 'Ice is cold.', 'Cold, of course.')),
    ('''
Is fire hot or cold?
Fire: hot or cold?
What would you say, is a fire hot or cold?
My child asks whether fire is cold or hot.''', 'hot',
     ('Hot.', 'It is hot.', 'Fire is hot.', 'Hot, of course.')),
))


def fixed(rng):
    asks, key, said = rng.choice(FIXED)

    return asks, said, {}, [key], f'Everybody knows that: {key.split("|")[0]}'


SIMPLE = (opposite, opposite, in_a_row, in_a_row, small_sum, small_sum,
          larger, color, kind, fixed)

TOOLS = lines('''
[Which|What] tools do you have?
What can you do[ for me|]?
List your tools[, please|].
Which functions can you call?
What are you connected to?
name your tools
With what can you help me? Name your tools.
Before I ask anything: which tools are there?
I am new here. What tools can you use?
Tell me the names of all your tools.
What kind of things are you able to call?
Can you show me a list of the tools that you have?
whats in your toolbox
How could you help me? The names of the tools are enough.
Give me an overview of your tools.
Don't do anything yet, only tell me your tools.''')

TOOLS_SAID = '''[I have|My tools are|I can use|I can call] {names}.
[There is|There are|These are my tools:] {names}.
[Sure|Gladly|OK]: {names}.
{names}.
[I am connected to|I work with] {names}.
[The tools|My tools|The functions] here: {names}.'''
