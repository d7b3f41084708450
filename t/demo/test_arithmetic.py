# Copyright (C) The nginx-dsa authors

"""Arithmetic tasks: every line of written-out reasoning is true, the checks
expect the right results, and wrong answers are rejected."""

import random
import re
import unittest
from decimal import Decimal

from tasks import arithmetic, arithmetic_check, arithmetic_story, digits
from tasks.task import CHAT, RETAIN, play


PLACES = 'ones tens hundreds thousands myriads lakhs'.split()

SPELLED = re.compile(r'(\d+):((?: [a-z]+ \d)+)')
COLUMN = re.compile(r'([a-z]+) (\d[-+*\d=< ]*)'
                    r'(?: (?:carry|borrow) (\d))? so (\d+)')
DIVISION = re.compile(r'(\d+)\|(\d*) (\d+)/(\d)=(\d+) rest (\d) so (\d+)')
ORDER = re.compile(r'(\d+) and (\d+): (.*) so (\d+)([<=>])(\d+)')
INSERTED = re.compile(r'(\d+)((?: \d+[<=>]\d+)*): (\d+(?:, \d+)*)')
RESULT = re.compile(r'([-+*/\d()]+)=(-?\d+)(?: rest (\d))?')

# parts of a question that the tasks do not solve without a calculator

BEYOND = re.compile(
    r'\d{6}|\d{5}\D+\d{3}|\d{3}( \* | times )\d{5}|\d\.\d|-\d+[ ?.]*[-+*/]'
    r'|^\W*-\d|[ ]-\d|%|percent|\^|\*\*|power|squared|cubed|root|sqrt|(/|by) '
    r'(0|zero|\d\d)|does \d\d|prime|factor|average|mean|median|/\d+ |half'
    r'|third|\bx\b.*=|\dx |(find|is) x|sin|cos|\d!|log', re.I)


def holds(left, sign, right):
    return {'<': left < right, '=': left == right, '>': left > right}[sign]


def evaluate(text):
    """Returns the value of a text with + - * and parentheses."""

    if not re.fullmatch(r'[-+*()\d ]+', text):
        raise AssertionError(f'no expression: {text}')

    return eval(re.sub(r'\b0+(?=\d)', '', text), {'__builtins__': {}})


class Reader:
    """Checks lines of reasoning in their order.  Fails at the first line that
    is wrong or does not follow from the lines before."""

    def __init__(self, test, lines):
        self.test = test
        self.spelled = []    # digits by place, the last one spelled at the end
        self.so = ''
        self.carry = 0
        self.rest = None        # of a division: digits to come, remainder
        self.order = []         # of a sort: the numbers so far

        for line in lines:
            self.read(line)

    def read(self, line):
        t = self.test

        for pattern, what in ((SPELLED, self.number), (COLUMN, self.column),
                              (DIVISION, self.divide), (ORDER, self.compare),
                              (INSERTED, self.insert),
                              (RESULT, self.result)):
            m = pattern.fullmatch(line)

            if m:
                what(*m.groups())
                return

        t.assertRegex(line, r'^(first|then) [\d]+[-+*]\d+$'
                            r'|^(largest|smallest) \d+$|^[-+*/()\d]+$')

    def number(self, n, places):
        by_place = {p: int(d) for p, d in re.findall(r'(\w+) (\d)', places)}
        self.test.assertEqual(list(by_place), PLACES[:len(by_place)])
        self.test.assertEqual(int(n), sum(
            d * 10 ** PLACES.index(p) for p, d in by_place.items()))
        self.spelled.append(by_place)

    def column(self, place, facts, carry, so):
        t = self.test

        if place == 'ones':
            self.so, self.carry = '', 0

        first = int(facts[0])

        for fact in facts.split():
            left, sign, right = re.fullmatch(r'([^=<]+)([=<])(\d+)',
                                             fact).groups()
            t.assertTrue(holds(evaluate(left), sign, int(right)), fact)

        value = int(facts.rsplit('=', 1)[1])
        terms = [int(d) for d in re.findall(r'\d+', facts.split('=')[0])]

        if '*' in facts:
            t.assertEqual(first, self.spelled[-1][place])
            carried = int(facts.split('+')[1].split('=')[0]) \
                if '+' in facts else 0
        else:
            t.assertEqual(first, self.spelled[-2][place])
            t.assertEqual(terms[1], self.spelled[-1][place])
            carried = terms[2] if place != 'ones' and '<' not in facts \
                else self.carry

        t.assertEqual(carried, self.carry)

        if '-' in facts:
            t.assertEqual('<' in facts, first < terms[1] + self.carry)
            t.assertEqual(int(carry or 0), '<' in facts)
            t.assertLess(value, 10)
        elif carry is not None:
            t.assertEqual(int(carry), value // 10)

        written = str(value % 10 if carry is not None else value)
        t.assertEqual(so, written + self.so)
        self.so, self.carry = so, int(carry or 0)

    def divide(self, now, left, n, d, q, rest, so):
        t = self.test
        t.assertEqual(now, n)
        t.assertEqual(divmod(int(n), int(d)), (int(q), int(rest)))

        if self.rest is not None:
            digits_left, kept = self.rest
            t.assertEqual(int(now), kept * 10 + int(digits_left[0]))
            t.assertEqual(left, digits_left[1:])

        t.assertEqual(so, (self.so if self.rest else '') + q)
        self.so = so
        self.rest = (left, int(rest)) if left else None

    def compare(self, a, b, why, left, sign, right):
        t = self.test
        t.assertEqual((a, b), (left, right))
        t.assertTrue(holds(int(a), sign, int(b)))

        if 'digits' in why:
            n, s, m = re.fullmatch(r'(\d) digits ([<>]) (\d) digits',
                                   why).groups()
            t.assertEqual((len(a), len(b), s), (int(n), int(m), sign))
            return

        seen = [re.fullmatch(r'(\d)([<=>])(\d)', w).groups()
                for w in why.split()]
        t.assertEqual(''.join(x for x, _, _ in seen), a[:len(seen)])
        t.assertEqual(''.join(y for _, _, y in seen), b[:len(seen)])
        t.assertTrue(all(holds(x, s, y) for x, s, y in seen))
        t.assertEqual(seen[-1][1], sign)

    def insert(self, n, signs, listed):
        t = self.test
        row = listed.split(', ')

        for a, sign, b in re.findall(r'(\d+)([<=>])(\d+)', signs):
            t.assertEqual(a, n)
            t.assertIn(b, self.order)
            t.assertTrue(holds(int(a), sign, int(b)))

        t.assertEqual([x for x in row if x != n], self.order)
        t.assertIn([int(x) for x in row],
                   (sorted(map(int, row)), sorted(map(int, row))[::-1]))
        self.order = row

    def result(self, left, value, rest):
        if rest is not None:
            a, b = map(int, left.split('/'))
            self.test.assertEqual(divmod(a, b), (int(value), int(rest)))
        else:
            self.test.assertEqual(evaluate(left), int(value))


def some_number(rng):
    return rng.randrange(10 ** rng.randint(1, 5))


class Digits(unittest.TestCase):

    def test_add(self):
        self.every(digits.add, lambda a, b: f'{a}+{b}={a + b}')

    def test_sub(self):
        self.every(digits.sub, lambda a, b: f'{a}-{b}={a - b}')

    def test_mul(self):
        self.every(digits.mul, lambda a, b: f'{a}*{b}={a * b}',
                   lambda a, b: (a % 1000, b % 1000))

    def test_divmod(self):
        self.every(digits.divmod_,
                   lambda a, b: f'{a}/{b}={a // b} rest {a % b}',
                   lambda a, b: (a, b % 9 + 1))

    def test_comparisons(self):
        for a, b, text in (
                (-8, 3, '-8<3'), (12, 12, '12 and 12: 1=1 2=2 so 12=12'),
                (-8, -14, '8 and 14: 1 digits < 2 digits so 8<14 so -8>-14'),
                (3.8, 4.0, '3.8 and 4.0: 3<4 so 3.8<4.0'),
                (Decimal('12.5'), Decimal('12'),
                 '12.5 and 12: 1=1 2=2 5>0 so 12.5>12')):
            self.assertEqual(digits.compare(a, b), text)

        for s, t, is_, text in (
                ('8:10', '13:00', '<',
                 '8:10 and 13:00: 1 digits < 2 digits so 8:10<13:00'),
                ('2027-04', '2027-05', '<', '2027-04 and 2027-05: '
                 '2=2 0=0 2=2 7=7 0=0 4<5 so 2027-04<2027-05'),
                ('1,200', '900', '>', '1,200>900'),
                ('Monday', 'Friday', '<', 'Monday<Friday')):
            self.assertEqual(digits.reasoned(s, t, is_), text)

    def test_compare(self):
        self.every(lambda a, b: [digits.compare(a, b)], None)

    def every(self, function, last, fit=lambda a, b: (a, b)):
        rng = random.Random(1)
        edges = [(a, b) for a in (0, 1, 9, 10, 99, 100, 999, 1000)
                 for b in (0, 1, 9, 10, 99, 100, 999)]

        for a, b in edges + [(some_number(rng), some_number(rng))
                             for _ in range(3000)]:
            a, b = fit(a, b)

            with self.subTest(a=a, b=b):
                lines = function(a, b)
                Reader(self, lines)

                if last:
                    self.assertEqual(lines[-1], last(a, b))

    def test_lists(self):
        rng = random.Random(2)

        for _ in range(1000):
            given = [some_number(rng) for _ in range(rng.randint(2, 6))]
            lines = digits.sum_list(given)
            Reader(self, lines)
            self.assertEqual(int(lines[-1].split('=')[1]), sum(given))

            lines, order = digits.insertion([('', n) for n in given], True)
            self.assertEqual([given[i] for i in order], sorted(given))
            lines, order = digits.insertion([('x', n) for n in given], False)
            self.assertEqual([given[i] for i in order],
                             sorted(given, reverse=True))
            self.assertEqual(lines[0], f'x {given[0]}: x {given[0]}')

            for up, best in ((True, max), (False, min)):
                lines = digits.extreme(given, up)
                Reader(self, lines)
                self.assertEqual(int(lines[-1].split()[1]), best(given))

        self.assertEqual(digits.sum_list([5]), [])

    def test_refused(self):
        for function, a, b in ((digits.add, -1, 5), (digits.sub, 5, 10 ** 6),
                               (digits.mul, 1000, 1000),
                               (digits.divmod_, 5, 0),
                               (digits.divmod_, 5, 10)):
            with self.assertRaises(ValueError):
                function(a, b)


def recompute(text):
    """Returns the numbers that the answer to a bare question must end with,
    computed from the words of the question."""

    text = text.lower().replace(' x ', '*')
    text = re.sub(r' (plus|minus|times) ',
                  lambda m: dict(plus='+', minus='-', times='*')[m[1]], text)
    ns = [int(s) for s in re.findall(r'\d+', text)]

    if re.search('remainder of|what remains when|which remainder'
                 '|is the remainder', text):
        return [ns[0] % ns[1]]

    if re.search('divid|/| into ', text):
        q, r = divmod(*(ns[::-1] if 'does' in text else ns))
        return [q, r] if r else [q]

    if re.search('larg|great|bigg|maximum', text):
        return [max(ns)]

    if re.search('small|less|least|minimum', text):
        return [min(ns)]

    if re.search('multiply|product', text):
        return [ns[0] * ns[1]]

    if re.search('add|sum of|together', text):
        return [ns[0] + ns[1]]

    if re.search('without', text):
        return [ns[0] - ns[1]]

    if re.search('subtract|take', text):
        return [ns[1] - ns[0]]

    return [evaluate(re.search(r'[(\d][-+*()\d ]*', text)[0].strip())]


NUMBERS = 'two three four five six seven eight nine'.split()


class Tasks(unittest.TestCase):

    def last(self, task, mode):
        message = play(task, mode)[-1]
        self.assertEqual('reasoning_content' in message, mode == RETAIN)
        return message

    def test_answers(self):
        beyond = 0

        for seed in range(4000):
            task = arithmetic.make(random.Random(seed))
            turn = task.turns[0]

            with self.subTest(seed=seed, user=turn.user):
                m = self.last(task, RETAIN)

                if m['content'].startswith('I cannot'):
                    beyond += 1
                    self.assertRegex(turn.user, BEYOND)
                    self.assertIsNone(turn.check("I can't do that.", []))
                    self.assertIsNotNone(turn.check('You can: it is 4.', []))
                    continue

                self.assertNotRegex(
                    re.sub(r' x (?=\d)', ' ', turn.user),
                    r'\d{6}|\d\.\d|%|\^|root|prime|average|\bx\b')
                Reader(self, m['reasoning_content'].split('\n'))
                Reader(self, self.last(task, CHAT)['content']
                       .split('\n')[:-1])

                if re.search('sort|order', turn.user, re.I):
                    row = sorted(map(int, re.findall(r'\d+', turn.user)))
                    if re.search('downwards|largest first|from the largest',
                                 turn.user):
                        row.reverse()
                    self.assertIsNone(turn.check(f'{row}', []))
                    self.assertIsNotNone(turn.check(f'{row[::-1]}', []))
                    self.assertIsNotNone(turn.check(f'{row[:-1]}', []))
                    continue

                asked = re.search(r'(?i)\b(is|would) (\d+) (be )?'
                                  r'(>|[a-z]+ than|more than) (\d+)',
                                  turn.user)

                if asked:
                    yes = int(asked[2]) > int(asked[5])
                    words = ('Yes', 'No') if yes else ('No', 'Yes')
                    self.assertIsNone(turn.check(words[0] + '.', []))
                    self.assertIsNotNone(turn.check(words[1], []))
                    continue

                right = recompute(turn.user)
                bare = ' rest '.join(map(str, right))
                off = ' rest '.join(map(str, [right[0] + 1] + right[1:]))
                self.assertIsNone(turn.check(bare, []))
                self.assertIsNone(turn.check(f'It is **{bare}**.', []))
                self.assertIsNotNone(turn.check(off, []))
                self.assertIsNotNone(turn.check('I do not know.', []))
                self.assertIsNotNone(turn.check('', []))

        self.assertGreater(beyond, 100)

    def test_stories(self):
        for seed in range(3000):
            task = arithmetic_story.make(random.Random(seed))
            turn = task.turns[0]

            with self.subTest(seed=seed, user=turn.user):
                m = self.last(task, RETAIN)
                lines = m['reasoning_content'].split('\n')
                Reader(self, lines)
                Reader(self, self.last(task, CHAT)['content']
                       .split('\n')[:-1])

                # the plan has each number of the story once

                told = re.sub('[a-z]+', lambda m: str(NUMBERS.index(m[0]) + 2)
                              if m[0] in NUMBERS else '', turn.user.lower())
                self.assertEqual(sorted(re.findall(r'\d+', lines[0])),
                                 sorted(re.findall(r'\d+', told)))
                n = int(re.findall(r'-?\d+', m['content'])[-1])

                if '/' not in lines[0]:
                    self.assertEqual(n, evaluate(lines[0]))
                else:
                    a, b = map(int, lines[0].split('/'))
                    self.assertEqual(n, a % b if re.search(
                        'left|not fill', turn.user) else a // b)

                self.assertIsNone(turn.check(f'They are {n}.', []))
                self.assertIsNotNone(turn.check(f'{n + 1}', []))
                self.assertIsNotNone(turn.check(f'1{n}', []))

    def test_sizes(self):
        for family in arithmetic, arithmetic_story:
            for seed in range(3000):
                task = family.make(random.Random(seed))
                size = sum(len(m['content'])
                           + len(m.get('reasoning_content', ''))
                           for m in play(task, RETAIN))
                self.assertLess(size, 1100)

    def test_seeds(self):
        for family in arithmetic, arithmetic_story:
            a, b, c = (play(family.make(random.Random(s)), RETAIN)
                       for s in (5, 5, 6))
            self.assertEqual(a, b)
            self.assertNotEqual(a, c)


class Checks(unittest.TestCase):

    def test_numbers(self):
        for text, found in (('-5', [-5]), ('12-5=7', [12, 5, 7]),
                            ('1,234 and 12.5.', [1234, 12.5]),
                            ('5-12=-7', [5, 12, -7]), ('x', [])):
            self.assertEqual(arithmetic_check.numbers(text), found)

    def test_last_is(self):
        for answer, right in (('713', True), ('638+75=713', True),
                              ('It is 713, I think.', True),
                              ('713 or 714', False), ('7130', False),
                              ('-713', False), ('none', False)):
            why = arithmetic_check.last_is(answer, 713)
            self.assertEqual(why is None, right, answer)

    def test_picks(self):
        for answer, right in (('51', True), ('51 is larger than 34.', True),
                              ('34 < 51', True), ('34 is less than 51', True),
                              ('The larger one is 51, not 34.', True),
                              ('Of 34 and 51 the larger is 51.', True),
                              ('34', False), ('34 is larger than 51.', False),
                              ('51 < 34', False), ('The larger is 34.', False),
                              ('34 and 51', False), ('52', False)):
            why = arithmetic_check.picks(answer, 51, {34, 51}, True)
            self.assertEqual(why is None, right, answer)

    def test_divides(self):
        for answer, right in (('8 rest 3', True), ('8 remainder 3', True),
                              ('8', False), ('3', False), ('8, 2', False)):
            why = arithmetic_check.divides(answer, 8, 3)
            self.assertEqual(why is None, right, answer)

        for answer, right in (('8', True), ('8 remainder 0', True),
                              ('7 remainder 8', False)):
            why = arithmetic_check.divides(answer, 8, 0)
            self.assertEqual(why is None, right, answer)


if __name__ == '__main__':
    unittest.main()
