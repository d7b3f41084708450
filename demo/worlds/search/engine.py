# Copyright (C) The nginx-dsa authors

"""A search engine over the pages of a corpus, and its tools."""

import math
import re
from collections import Counter

from tasks.task import Tool, function


K1, B = 1.2, 0.75       # of BM25, as usual
RESULTS = 5
LONGEST = 200           # characters of a query that count


def tokens(text):
    return re.findall(r'\w+', text.lower())


class Engine:
    """Ranks pages by BM25; the words of a title count three times."""

    def __init__(self, pages):
        self.pages = pages
        self.counts = {t: Counter(3 * tokens(t) + tokens(text))
                       for t, text in pages.items()}
        self.lengths = {t: sum(c.values()) for t, c in self.counts.items()}
        self.average = sum(self.lengths.values()) / len(pages)
        self.df = Counter(w for c in self.counts.values() for w in c)

    def search(self, query, n=RESULTS):
        """Returns the n best titles with a snippet, best first."""

        scores = Counter()

        for w in set(tokens(query[:LONGEST])):
            if w in self.df:
                idf = math.log(1 + (len(self.pages) - self.df[w] + 0.5)
                               / (self.df[w] + 0.5))
                for title, c in self.counts.items():
                    if w in c:
                        norm = 1 - B + B * self.lengths[title] / self.average
                        scores[title] += idf * c[w] * (K1 + 1) / (
                            c[w] + K1 * norm)

        best = sorted(scores, key=lambda t: (-scores[t], t))[:n]

        return [{'page': t, 'snippet': self.snippet(t, query)} for t in best]

    def snippet(self, title, query):
        """Returns the sentence of a page that has most words of a query."""

        wanted = set(tokens(query))

        return max(re.findall(r'[^.]+\.', self.pages[title]),
                   key=lambda s: len(wanted & set(tokens(s)))).strip()

    def open(self, page):
        if page not in self.pages:
            raise ValueError(f'no such page: {page[:60]}')

        return self.pages[page]

    def tools(self):
        return {
            'search': Tool(
                function('search', 'Searches all pages; returns the best '
                         'with a sentence of each.', query='string'),
                lambda a: {'results': self.search(a['query'])}),
            'open_page': Tool(
                function('open_page', 'Returns the text of a page.',
                         page='string'),
                lambda a: {'text': self.open(a['page'])}),
        }
