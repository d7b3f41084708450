# Copyright (C) The nginx-dsa authors

"""Look-up tasks: this test finds the answers again in the user's text, and
wrong answers are rejected."""

import json
import random
import re
import unittest

from tasks import lookup, lookup_check, lookup_long
from tasks.lookup_long import tokens
from tasks.task import CHAT, RETAIN, play


# patterns of the sentences, by column

SAYS = (('age', r'is (\d+) years old'), ('city', r'lives in (\w+)'),
        ('color', r'(?:likes|is painted) (\w+)'),
        ('thing', r'(?:owns|holds) the (\w+)'), ('room', r'is in the (\w+)'),
        ('price', r'costs (\d+) coins'), ('owner', r'belongs to (\w+)'),
        ('weight', r'weighs (\d+) kg'),
        ('link', r'(?:has the friend|has the teacher|replaces the|leads to)'
                 r' (\w+ from \w+|box \d+|[A-Z]\w+|\w+ \w+)'))

# patterns of the questions, by column; the first match counts

ASKS = (('age', r'how old|years old|\bages?\b|older|younger|oldest|youngest'),
        ('price', r'\bcosts?\b|how much is|\bprices?\b|dear|cheap|coins'),
        ('weight', r'weigh|how heavy|heav|light|\bkg\b'),
        ('city', r'\blives?\b|\bcity\b'),
        ('owner', r'who owns (the|box)|belong|owner|whose'),
        ('color', r'\bcolor\b|\blikes?\b|painted'),
        ('room', r'where (is|do)|\broom\b|(is|are) in the'),
        ('thing', r'\bowns?\b|\bthing of\b|holds?|what is in|which thing is in'
                  r'|do i find in'))

EACH = r'the \w+ of each|, each\b|(tell me|i need) the \w+ of .* and '
LINK = r'friend|teach|replace|\bleads?\b'
LINKS = 'friend teacher replaces next'.split()
MORE = r'older|dearer|heavier|oldest|dearest|heaviest'
LESS = r'younger|cheaper|lighter|youngest|cheapest|lightest'
NUMBERS = ('age', 'price', 'weight')


def read(text):
    """Returns (question, records).  A record is a dict of texts by column,
    including the columns of its key."""

    parts = text.split('\n\n')
    question = parts[-1]

    if len(parts) == 2:
        question = min(parts, key=lambda p: p.count('\n') + p.count('. '))

    parts.remove(question)
    return question, records('\n'.join(parts))


def records(text):
    found, header = [], None

    for line in text.split('\n'):
        note = re.fullmatch(r'(?:\d\d-\d\d )?([\w ]+): (.*\w)', line)

        if line.startswith('{'):
            found.append(json.loads(line).items())
        elif ' | ' in line:
            cells = line.split(' | ')
            found += [zip(header, cells)] if header else []
            header = header or cells
        elif note:
            cells = re.split(r', | (?=\w+=)', note[2])
            found.append(key_columns(note[1])
                         + [re.split('[ =]', c, maxsplit=1) for c in cells])
        else:
            found += sentences(line)

    return [{'link' if name in LINKS else name: str(v) for name, v in cells}
            for cells in found]


def sentences(text):
    found = []

    for s in re.findall(r'[^.]+\.', text):
        says = [(name, m) for name, p in SAYS for m in re.finditer(p, s)]

        if says:
            start = min(m.start() for _, m in says)
            found.append(key_columns(s[:start].strip())
                         + [(name, m[1]) for name, m in says])

    return found


def key_columns(key):
    key = re.sub('^[Tt]he ', '', key)

    if key.lower().startswith('box '):
        return [('box', key[4:])]

    if ' from ' in key:
        return list(zip(('name', 'city'), key.split(' from ')))

    if ' ' in key:
        return list(zip(('color', 'thing'), key.split(' ')))

    return [('name', key)]


def full(r):
    """Returns the whole key of a record, as lists have it."""

    if 'box' in r:
        return f'box {r["box"]}'

    if 'name' in r:
        return r['name'] + (f' from {r["city"]}' if 'city' in r else '')

    return f'{r["color"]} {r["thing"]}'


def key_in(text, r):
    """Returns the part of a record's key that is in a text, and its
    columns."""

    if 'name' in r and ' from ' not in text:
        return r['name'], ('name',)

    return full(r), ('box',) if 'box' in r else ('name', 'city') \
        if 'name' in r else ('color', 'thing')


def label(r, notes):
    """Returns the shortest key that identifies a record; a name is enough if
    no other record has it."""

    if 'name' in r and sum(r['name'] == s['name'] for s in notes) == 1:
        return r['name']

    return full(r)


def mentioned(r, question):
    if 'name' in r and ' from ' not in question:
        return word(r['name'], question)

    return word(full(r), question)


def word(w, text):
    return re.search(rf'\b{w}\b', text, re.I) is not None


def answer(question, notes):
    """Returns what the answer must contain: a text, a list of texts in order,
    or a tuple of keys with their values."""

    asks = question.lower()
    columns = set.intersection(*map(set, notes))
    about = [c for c, p in ASKS if c in columns and re.search(p, asks)]
    number = next((c for c in about if c in NUMBERS), None)
    known = [r for r in notes if mentioned(r, question)]
    up = re.search(MORE, asks) is not None

    def size(r):
        return int(r[number])

    if re.search('how many (of the )?(people|things|boxes)|count the', asks):
        bound = re.search(rf'(?:{MORE}|{LESS}) than (\d+)', asks)

        if bound:
            n = int(bound[1])
            return str(sum(size(r) > n if up else size(r) < n
                           for r in notes))

        return str(sum(word(r[about[0]], question) for r in notes))

    if re.search(EACH, asks) and not re.search(LINK, asks):
        return tuple((key_in(question, r)[0], r[about[0]]) for r in known)

    if re.search('sort the|list the|order them|put the', asks):
        first = re.search(f'{MORE}|{LESS}', asks)[0]
        return [label(r, notes) for r in sorted(notes, key=size,
                                         reverse=first in MORE.split('|'))]

    if re.search(r'sum of|plus|\badd the|together', asks):
        return str(sum(map(size, known)))

    if re.search('differ|far apart', asks):
        return str(abs(size(known[0]) - size(known[1])))

    if re.search(f'{MORE}|{LESS}', asks):
        best = (max if up else min)(known or notes, key=size)
        return label(best, notes)

    if not known:
        said = re.sub('(?i)which (box|thing)', '', question)
        found = next(r for c in about for r in notes if word(r[c], said))
        return label(found, notes)

    r, = known

    if re.search(LINK, asks):
        to = next(s for s in notes if r['link'] in (full(s), s.get('name')))
        return to[about[0]] if about else label(to, notes)

    return r[about[0]]


class Lookup(unittest.TestCase):

    def task(self, family, seed):
        task = family.make(random.Random(seed))
        turn = task.turns[0]
        question, notes = read(turn.user)
        right = answer(question, notes)

        thought = play(task, RETAIN)[-1]
        shown = play(task, CHAT)[-1]
        self.assertNotIn('reasoning_content', shown)

        for text in (thought['content'], shown['content'].split('\n')[-1]):
            if isinstance(right, tuple):
                said = [(key, *(v for c, v in r.items() if c not in of))
                        for r in records(text)
                        for key, of in [key_in(text, r)]]
                self.assertEqual(sorted(said), sorted(right))
                continue

            found = [text.lower().find(t.lower())
                     for t in ([right] if isinstance(right, str) else right)]
            self.assertNotIn(-1, found)
            self.assertEqual(found, sorted(found))

        return turn, question, notes, right, thought['reasoning_content']

    def every(self, family, seeds):
        for seed in range(seeds):
            with self.subTest(seed=seed):
                turn, _, notes, right, _ = self.task(family, seed)
                self.verdicts(turn.check, notes, right)

    def verdicts(self, check, notes, right):
        """The answer that this test found is accepted, and no other one."""

        self.assertIsNotNone(check('', []))
        self.assertIsNotNone(check('I do not know.', []))

        if isinstance(right, tuple):
            self.each(check, right)
            return

        if isinstance(right, list):
            self.assertIsNone(check('They are: ' + ' < '.join(right), []))
            self.assertIsNotNone(check(', '.join(right[::-1]), []))
            self.assertIsNotNone(check(', '.join(right[1:]), []))
            return

        self.assertIsNone(check(right.capitalize(), []))
        self.assertIsNone(check(f'I found it: **{right}**.', []))

        if right.isdigit():
            self.assertIsNotNone(check(str(int(right) + 1), []))
            self.assertIsNotNone(check('1' + right, []))

        labels = {label(r, notes) for r in notes}
        values = {v for r in notes for v in r.values()}
        wrong = (labels if right in labels else values) - {right}

        for w in (w for w in wrong if not word(right, w)):
            self.assertIsNotNone(check(f'It is {w}.', []), w)

    def each(self, check, right):
        keys, values = zip(*right)

        def says(values):
            return '. '.join(f'{k}: it is {v}'
                             for k, v in zip(keys, values)) + '.'

        self.assertIsNone(check(says(values), []))
        self.assertIsNone(check(says(values).replace('. ', '\n'), []))
        self.assertIsNotNone(check(says(values[:-1]), []))
        self.assertIsNotNone(check(says(values[:-1] + ('x',)), []))

        if len(set(values)) > 1:
            self.assertIsNotNone(check(says(values[1:] + values[:1]), []))
            self.assertIsNotNone(check(says([' '.join(values)] * len(keys)),
                                       []))

    def test_short(self):
        self.every(lookup, 3000)

    def test_long(self):
        self.every(lookup_long, 300)

    def test_quotes(self):
        """Quotes in the reasoning are parts of the user's text."""

        for family, seeds in ((lookup, 1000), (lookup_long, 200)):
            quoted = 0

            for seed in range(seeds):
                turn, _, _, _, thought = self.task(family, seed)

                for q in re.findall(r'(?m)^(?:Found|First|Then): (.*)',
                                    thought):
                    self.assertIn(q, turn.user)
                    quoted += 1

            self.assertGreater(quoted, seeds // 2)

    def test_thoughts_are_true(self):
        """Comparisons of numbers in the reasoning are true.  When entries are
        searched in order, the match is the last one that is listed."""

        compared = passed = 0

        for seed in range(1500):
            _, _, _, right, thought = self.task(lookup, seed)

            for a, sign, b in re.findall(r'(?<!\S)(\d+)([<>=])(\d+)(?!\S)',
                                         thought.replace(':', ' ')):
                self.assertEqual(sign, '<' if int(a) < int(b) else
                                 '>' if int(a) > int(b) else '=')
                compared += 1

            said = re.findall(r'(?m)^(.*) (?:no|yes)$', thought)

            if said and 'Found' not in thought:
                lines = thought.split('\n')
                self.assertEqual([line.endswith(' yes') for line in lines],
                                 [False] * (len(lines) - 1) + [True])
                self.assertIn(right, said[-1])
                passed += 1

        self.assertGreater(compared, 200)
        self.assertGreater(passed, 100)

    def test_sizes(self):
        for seed in range(2000):
            task = lookup.make(random.Random(seed))
            size = sum(tokens(m['content'])
                       + tokens(m.get('reasoning_content', ''))
                       for m in play(task, RETAIN))
            self.assertLess(size, 560)

        sizes = []

        for seed in range(300):
            task = lookup_long.make(random.Random(seed))
            user = tokens(task.turns[0].user)
            rest = sum(tokens(m['content'])
                       + tokens(m.get('reasoning_content', ''))
                       for m in play(task, RETAIN)[1:])
            self.assertGreater(user, 550)
            self.assertLess(user + rest, 7500)
            sizes.append(user)

        # log-uniform: as many below the geometric mean as above

        low = sum(n < 2050 for n in sizes)
        self.assertTrue(110 < low < 190, low)

    def test_lookalikes(self):
        """In long notes each part of a key belongs to several records."""

        for seed in range(100):
            turn = lookup_long.make(random.Random(seed)).turns[0]
            question, notes = read(turn.user)

            for r in notes:
                if not mentioned(r, question):
                    continue

                for part in full(r)[:6 if 'box' in r else None].split():
                    alike = sum(part in full(s) for s in notes)
                    self.assertGreater(alike, 1, (seed, part))

    def test_seeds(self):
        for family in lookup, lookup_long:
            a, b, c = (play(family.make(random.Random(s)), RETAIN)
                       for s in (5, 5, 6))
            self.assertEqual(a, b)
            self.assertNotEqual(a, c)


class Checks(unittest.TestCase):

    def test_prefers(self):
        ada, bela = ['Ada', 'Belham'], ['Bela', 'Corby']

        for said, right in (
                ('Ada from Belham', True), ('It is Ada of Belham.', True),
                ('Ada from Belham is older than Bela from Corby.', True),
                ('Bela from Corby is younger than Ada from Belham.', True),
                ('Bela from Corby is older than Ada from Belham.', False),
                ('Bela from Corby', False), ('Ada from Corby', False),
                ('Ada from Belham and Bela from Corby', False)):
            why = lookup_check.prefers(said, ada, bela, 'older', 'younger')
            self.assertEqual(why is None, right, said)

    def test_counts(self):
        for said, right in (('2', True), ('There are two.', True),
                            ('3', False), ('none', False), ('', False)):
            self.assertEqual(lookup_check.counts(said, 2) is None, right)

    def test_has_value(self):
        for said, right in (('Belham.', True), ('in BELHAM', True),
                            ('Corby', False), ('Belham or Corby', False),
                            ('Bel', False)):
            why = lookup_check.has_value(said, 'Where is Ada?', 'Belham',
                                         {'Belham', 'Corby'})
            self.assertEqual(why is None, right, said)


if __name__ == '__main__':
    unittest.main()
