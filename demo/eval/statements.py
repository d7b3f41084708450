# Copyright (C) The nginx-dsa authors

"""What a text says: its words in one spelling, and its numbers and names."""

import re
import unicodedata
from fractions import Fraction


QUOTES = str.maketrans('\u2018\u2019\u201c\u201d\u2212\u2010\u2011\u2013',
                       '\'\'""----')

SHORT = tuple((re.compile(pattern), whole) for pattern, whole in (
    (r"\bcan't\b|\bcan not\b", 'cannot'), (r"\bwon't\b", 'will not'),
    (r"n't\b", ' not'), (r"'m\b", ' am'), (r"'re\b", ' are'),
    (r"'ve\b", ' have'), (r"'ll\b", ' will'),
    (r'\b(?:(?:am |are |is )?(?:not able|unable|not allowed)'
     r'|have no way) to\b', 'cannot')))

UNITS = ('zero one two three four five six seven eight nine ten eleven twelve '
         'thirteen fourteen fifteen sixteen seventeen eighteen nineteen'
         ).split()
TENS = 'twenty thirty forty fifty sixty seventy eighty ninety'.split()
WORDS = {**{w: n for n, w in enumerate(UNITS)},
         **{w: 10 * n for n, w in enumerate(TENS, 2)}}
SCALES = {'hundred': 100, 'thousand': 1000, 'million': 1000000}

# digits, with commas between thousands and a fraction; a minus is a sign if
# it stands at the beginning of a word

DIGITS = re.compile(r'(?:(?<![\w.)-])-|\bminus )?'
                    r'(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?')
NUMBER_WORD = f'(?:{"|".join([*WORDS, *SCALES])})\\b'
NAMED = re.compile(rf'\b{NUMBER_WORD}(?:(?:-| and | ){NUMBER_WORD}){{0,8}}')

# a model can repeat a digit thousands of times

LONGEST = 100
MARKER = re.compile(r'^[ \t]*(\d{1,2})[.)][ \t]+(?=\S)', re.MULTILINE)


def plain(text):
    """Returns a text without accents and typographic signs."""

    if text.isascii():
        return text

    text = unicodedata.normalize('NFKD', text.translate(QUOTES))

    return ''.join(c for c in text if not unicodedata.combining(c))


def normal(text):
    """Returns a text in the spelling in which texts are compared: plain, lower
    case, without contractions, with single spaces."""

    text = plain(text).casefold()

    for pattern, whole in SHORT:
        text = pattern.sub(whole, text)

    return ' '.join(text.split())


def contains(text, phrase):
    """Returns whether a normal text has a phrase as whole words.  A phrase
    with * at its end is the beginning of a word, and one with ^ at its
    beginning is that of the text."""

    begin = r'\A' if phrase.startswith('^') else r'(?<!\w)'
    end = '' if phrase.endswith('*') else r'(?!\w)'
    words = re.escape(normal(phrase.strip('^*')))

    return re.search(begin + words + end, text) is not None


def without_markers(text):
    """Returns a text without the numbers of a numbered list."""

    markers = [int(n) for n in MARKER.findall(text)]

    if len(markers) > 1 and markers == list(range(1, len(markers) + 1)):
        return MARKER.sub('', text)

    return text


def numbers(text):
    """Returns the set of numbers in a text, of digits or words."""

    text = normal(without_markers(text))
    found = {Fraction(n.replace(',', '').replace('minus ', '-')[:LONGEST])
             for n in DIGITS.findall(text)}

    return found | {n for words in NAMED.findall(text)
                    for n in in_words(words)}


def in_words(text):
    """Returns the numbers of consecutive number words: "two hundred and five"
    is one, "two and three" are two."""

    found = []
    total = part = last = None

    for word in re.findall(r'[a-z]+', text):
        if word == 'and':
            continue

        if word in SCALES:
            scale = SCALES[word]
            part = (part or 1) * scale
            if scale > 100:
                total = (total or 0) + part
                part = 0
            last = scale
            continue

        n = WORDS[word]

        # a number continues only with a smaller one: "forty two"

        if last is not None and not (last >= 100 or last >= 20 and 0 < n < 10):
            found.append(Fraction((total or 0) + (part or 0)))
            total = part = None

        part = (part or 0) + n
        last = n

    return found + [Fraction((total or 0) + (part or 0))]


def names(text, known):
    """Returns the names of a set that a text has.  They begin with a capital
    letter or are all capitals, and may have several words."""

    text = plain(text)
    found = set()

    for words in re.findall(r'[A-Z]\w*(?: [A-Z]\w*)*', text):
        parts = [w.title() if w.isupper() and len(w) > 3 else w
                 for w in words.split()]

        found |= {name for i in range(len(parts))
                  for j in range(i + 1, len(parts) + 1)
                  if (name := ' '.join(parts[i:j])) in known}

    return found
