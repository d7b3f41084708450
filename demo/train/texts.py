# Copyright (C) The nginx-dsa authors

"""Collects ordinary English text for the base model: from the HTML
documentation that Debian packages, and from the dictionary of WordNet.

    python3 -m train.texts DIR ... | xz > texts.xz

Tasks alone have too few words in too few sentences: a model that has only seen
them repeats words that it has learned by heart instead of those in front of
it.  Each DIR is searched for *.html and for WordNet's data.noun, data.verb,
data.adj and data.adv.  A line of the output is the JSON of a document: a list
of its paragraphs, in which white space is single, except in code.
"""

import glob
import html.parser
import json
import lzma
import os
import re
import sys

from train.encode import BOS, EOS, NAMES


BLOCKS = frozenset('p li dt dd td th h1 h2 h3 h4 h5 pre caption'.split())
SKIPPED = frozenset('script style head nav footer form svg math'.split())
EMPTY = frozenset('br hr img input link meta wbr col area source'.split())

FEWEST = 4              # words of a paragraph; shorter ones are mostly menus
SHORTEST = 600          # characters of a document
ASCII = 0.97            # of the characters of a paragraph are ASCII, at least

# characters of a sample, from and to; the lengths are spread evenly on a
# logarithmic scale, so that some need a long context

SAMPLE = 150, 16000

# the words near a place; not those of an escape in JSON

WORD = re.compile(r'(?<![\\A-Za-z])[a-z]{3,14}(?![A-Za-z])')
NEAR = 120              # characters

# how an entry of the dictionary is written: word, kind, meaning

FORMS = ('{word}: {meaning}', '{word} ({kind}) - {meaning}',
         'What does "{word}" mean? {meaning}', '{meaning}: {word}',
         'The {kind} "{word}" means: {meaning}')
KINDS = {'noun': 'noun', 'verb': 'verb', 'adj': 'adjective', 'adv': 'adverb'}
ENTRIES = 12            # of a document


class Page(html.parser.HTMLParser):
    """Collects the paragraphs of a page."""

    def __init__(self):
        super().__init__()
        self.paragraphs, self.text = [], []
        self.skipped = self.code = 0

    def handle_starttag(self, tag, attributes):
        if tag in EMPTY:
            self.text.append(' ')
            return

        if tag in BLOCKS:
            self.end()

        self.skipped += tag in SKIPPED
        self.code += tag == 'pre'

    def handle_endtag(self, tag):
        if tag in BLOCKS:
            self.end()

        if tag in SKIPPED:
            self.skipped = max(0, self.skipped - 1)

        if tag == 'pre':
            self.code = max(0, self.code - 1)

    def handle_data(self, data):
        if not self.skipped:
            self.text.append(data)

    def end(self):
        text = ''.join(self.text)
        self.text = []

        if self.code:
            text = text.strip('\n').rstrip()
        else:
            text = re.sub(r'\s+', ' ', text).replace('\N{PILCROW SIGN}', '')
            text = text.strip()

        if len(text.split()) >= FEWEST:
            self.paragraphs.append(text)


def pages(directory):
    """Yields the paragraphs of each page below a directory."""

    for path in sorted(glob.glob(os.path.join(directory, '**', '*.html*'),
                                 recursive=True)):
        if not re.search(r'\.html(\.en)?$', path) or os.path.islink(path):
            continue

        with open(path, encoding='utf-8', errors='ignore') as f:
            page = Page()
            page.feed(f.read())
            page.end()

        if page.paragraphs:
            yield page.paragraphs


def dictionary(directory):
    """Yields documents of entries of WordNet below a directory.  A line of its
    files has after 4 fields the words, each with a number, and after a bar the
    meaning, with examples."""

    entries = []

    for kind, name in KINDS.items():
        for path in sorted(glob.glob(os.path.join(directory, '**',
                                                  f'data.{kind}'),
                                     recursive=True)):
            with open(path, encoding='utf-8', errors='ignore') as f:
                for line in f:
                    if line.startswith(' '):
                        continue

                    fields, meaning = line.split('|', 1)
                    fields = fields.split()
                    words = fields[4:4 + 2 * int(fields[3], 16):2]
                    form = FORMS[len(entries) % len(FORMS)]
                    entries.append(form.format(
                        word=', '.join(re.sub(r'\(\w+\)$', '', w).replace(
                            '_', ' ') for w in words),
                        kind=name, meaning=meaning.strip()))

                    if len(entries) == ENTRIES:
                        yield entries
                        entries = []


def english(text):
    """Returns true if a text has few other characters than ASCII, and no name
    of a special token."""

    return (sum(map(str.isascii, text)) >= ASCII * len(text)
            and not NAMES.search(text))


def main(directories):
    for directory in directories:
        for paragraphs in (*dictionary(directory), *pages(directory)):
            paragraphs = list(dict.fromkeys(
                p for p in paragraphs if english(p)))

            if sum(map(len, paragraphs)) >= SHORTEST:
                print(json.dumps(paragraphs, ensure_ascii=False))


class Texts:
    """The documents of a file that was written by this program."""

    def __init__(self, path):
        with lzma.open(path, 'rt', encoding='utf-8') as f:
            self.documents = [line for line in f]

        # a longer document is drawn more often

        self.ends, end = [], 0

        for line in self.documents:
            end += len(line)
            self.ends.append(end)

    def draw(self, rng):
        """Returns some paragraphs, one after the other, of a document."""

        line, = rng.choices(self.documents, cum_weights=self.ends)
        paragraphs = json.loads(line)
        low, high = SAMPLE
        length = low * (high / low) ** rng.random()
        first = rng.randrange(len(paragraphs))
        taken, n = [], 0

        for p in paragraphs[first:]:
            taken.append(p)
            n += len(p) + 2

            if n >= length:
                break

        return '\n\n'.join(taken)[:int(length)]

    def word(self, rng):
        """Returns a word in small letters, the longest of some, because the
        short ones are the same everywhere."""

        while True:
            line = rng.choice(self.documents)
            at = rng.randrange(len(line))
            words = WORD.findall(line, at, at + NEAR)

            if words:
                return max(words[1:5] or words, key=len)

    def sample(self, rng):
        """Returns a training sample, in which every token is a target."""

        return [(BOS, False), (self.draw(rng) + EOS, True)]


if __name__ == '__main__':
    main(sys.argv[1:])
