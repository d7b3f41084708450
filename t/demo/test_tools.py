# Copyright (C) The nginx-dsa authors

"""The families of tasks with tools, and the tools themselves."""

import json
import os
import random
import re
import subprocess
import sys
import unittest
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
DEMO = os.path.join(HERE, '..', '..', 'demo')

sys.path.insert(0, DEMO)

from tasks import tools_error, tools_multi, tools_none, tools_single
from tasks.task import CHAT, DISCARD, RETAIN, Call, play
from tasks.tools_box import ROLES, Kit
from tasks.tools_calc import calculate
from tasks.tools_check import (numbers, says_choice, says_no, says_number,
                               says_words)
from tasks.tools_text import compare
from tasks.tools_units import UNITS, convert, convert_short
from tasks.tools_world import World


FAMILIES = (tools_single, tools_none, tools_multi, tools_error)
SEEDS = 600
GOLD_SEEDS = 1500

# answers that name one of several items

CHOICE = re.compile(r'is the \w+( windy)? with|has the \w+ \w+:')


def tasks(family, seeds=SEEDS):
    for seed in range(seeds):
        yield seed, family.make(random.Random(seed))


def last_turn(task, mode):
    """Plays a task and returns (user, answer, calls) of the last turn."""

    messages = play(task, mode)
    start = max(i for i, m in enumerate(messages) if m['role'] == 'user')
    calls, results = [], []

    for m in messages[start:]:
        for c in m.get('tool_calls', []):
            calls.append((c['function']['name'],
                          json.loads(c['function']['arguments'])))
        if m['role'] == 'tool':
            results.append(m['content'])

    return (messages[start]['content'], messages[-1]['content'],
            [Call(*c, r) for c, r in zip(calls, results)])


def tokens(text):
    """Estimates the number of tokens of a text: one per digit, and one per
    four other characters."""

    digits = sum(c.isdigit() for c in text)

    return digits + (len(text) - digits) // 4 + 1


def size(messages):
    """Estimates the tokens of messages; a call has about 30 more."""

    n = 0

    for m in messages:
        n += 6 + tokens(m['content']) + tokens(m.get('reasoning_content', ''))
        for c in m.get('tool_calls', []):
            n += 30 + tokens(c['function']['arguments'])

    return n


class Families(unittest.TestCase):
    def test_gold_passes_in_every_mode_and_fits(self):
        """play() raises if a gold answer fails its check."""

        for family in FAMILIES:
            seen = set()

            for seed in range(GOLD_SEEDS):
                modes = family.make(random.Random(seed)).modes

                for mode in modes:
                    task = family.make(random.Random(seed))
                    messages = play(task, mode)
                    limit = 420 if task.kind == 'single' else 1500

                    with self.subTest(family=task.family, seed=seed,
                                      mode=mode):
                        self.assertLessEqual(size(messages), limit)
                        self.assertTrue(1 <= len(task.tools) <= 6)
                        self.assertEqual(
                            any('reasoning_content' in m for m in messages),
                            mode != CHAT)

                    seen.add(mode)

            multi = family in (tools_multi, tools_error)
            self.assertEqual(seen, {RETAIN, CHAT}
                             | ({DISCARD} if multi else set()))

    def test_a_task_can_be_played_again(self):
        for family in FAMILIES:
            for seed, task in tasks(family, 200):
                first = [play(task, mode) for mode in task.modes]
                again = [play(task, mode) for mode in task.modes]
                self.assertEqual(first, again, (family, seed))

    def test_a_seed_names_a_task(self):
        code = '''if True:
            import hashlib, json, random
            from tasks import (tools_error, tools_multi, tools_none,
                               tools_single)
            from tasks.task import play
            h = hashlib.sha256()
            for f in (tools_single, tools_none, tools_multi, tools_error):
                for seed in range(150):
                    t = f.make(random.Random(seed))
                    h.update(json.dumps([t.tool_list(), t.modes, t.family,
                                         play(t, t.modes[0])]).encode())
            print(h.hexdigest())'''
        digests = {subprocess.run(
            [sys.executable, '-c', code], check=True, capture_output=True,
            env={**os.environ, 'PYTHONPATH': DEMO, 'PYTHONHASHSEED': h,
                 'PYTHONDONTWRITEBYTECODE': '1'}).stdout
            for h in ('1', '2')}
        self.assertEqual(len(digests), 1)

    def test_tasks_differ(self):
        """At most one user text in five may be a repetition, among texts with
        names or numbers."""

        for family in (tools_single, tools_multi, tools_error):
            said = {t.turns[0].user for _, t in tasks(family)}
            self.assertGreater(len(said), SEEDS * 0.8, family)

    def test_empty_and_evasive_answers_are_refused(self):
        for family in FAMILIES:
            for seed, task in tasks(family):
                _, answer, calls = last_turn(task, RETAIN)
                check = task.turns[-1].check
                self.assertIsNotNone(check('', calls), seed)

                if says_no(answer) is not None:
                    self.assertIsNotNone(check('I do not know.', calls),
                                         (family, seed))

    def test_wrong_numbers_are_refused(self):
        """Replaces every number of the answer that is not in the user's
        text."""

        tried = 0

        for family in FAMILIES:
            for seed, task in tasks(family):
                user, answer, calls = last_turn(task, RETAIN)
                known = set(numbers(task.turns[0].user + ' ' + user))

                def other(m):
                    n = m.group()
                    return n if n in known or len(n) == len('2025-01-01') \
                        else str(int(n) + 1)

                wrong = re.sub(r'\d{4}-\d\d-\d\d|\d+', other, answer)

                if wrong == answer or says_no(answer) is None \
                        or 'I sent' in answer or '"' in user:
                    continue

                tried += 1

                # a choice is checked by its name only

                if CHOICE.search(answer):
                    continue

                self.assertIsNotNone(task.turns[-1].check(wrong, calls),
                                     (task.family, seed, wrong))

        self.assertGreater(tried, SEEDS)

    def test_wrong_names_are_refused(self):
        """Of compared cities or rows, another one is named."""

        tried = 0

        for seed, task in tasks(tools_multi):
            _, answer, calls = last_turn(task, RETAIN)

            if not CHOICE.search(answer):
                continue

            names = {list(json.loads(c.result).values())[0] for c in calls
                     if not c.result.startswith('{"rows"')}

            for name in names:
                if not answer.startswith(name + ' '):
                    tried += 1
                    wrong = name + answer[answer.index(' '):]
                    self.assertIsNotNone(task.turns[0].check(wrong, calls),
                                         (seed, wrong))

        self.assertGreater(tried, 300)

    def test_wrong_actions_are_rejected(self):
        """Something that should be sent or stored is missing, different, or
        too much: the same answer is then rejected."""

        tried = 0

        for family in (tools_single, tools_multi, tools_error):
            for seed, task in tasks(family):
                user, answer, calls = last_turn(task, RETAIN)
                acts = [c for c in calls
                        if c.result in ('{"sent": true}', '{"ok": true}')]

                if not acts:
                    continue

                tried += 1
                check = task.turns[-1].check
                act = acts[-1]
                rest = [c for c in calls if c is not act]
                self.assertIsNotNone(check(answer, rest), (family, seed))

                for name in act.arguments:
                    other = Call(act.name, {**act.arguments, name: 'pear'},
                                 act.result)
                    self.assertIsNotNone(check(answer, rest + [other]))
                    self.assertIsNotNone(check(answer, calls + [other]))

                failed = Call(act.name, act.arguments, '{"error": "no"}')
                self.assertIsNotNone(check(answer, rest + [failed]))

        self.assertGreater(tried, 150)

    def test_nothing_is_done_unasked(self):
        """Sending a message that was not requested makes a right answer
        wrong."""

        tried = 0

        for family in FAMILIES:
            for seed, task in tasks(family):
                _, answer, calls = last_turn(task, RETAIN)

                for name in set(task.tools) & set(
                        ROLES['send_message'].names):
                    extra = dict.fromkeys(task.tools[name].function
                                          ['parameters']['properties'], 'Ada')
                    tried += 1
                    self.assertIsNotNone(task.turns[-1].check(
                        answer, calls + [Call(name, extra,
                                              '{"sent": true}')]),
                        (family, seed))

        self.assertGreater(tried, 500)

    def test_unneeded_calls_are_rejected(self):
        for seed, task in tasks(tools_none, 200):
            _, answer, _ = last_turn(task, RETAIN)
            self.assertIsNotNone(task.turns[0].check(
                answer, [Call('clock', {}, '{}')]), seed)

    def test_numbers_of_answers_have_a_source(self):
        """All numbers of a final answer are in the user's text or in
        results."""

        for family in (tools_single, tools_multi, tools_error):
            for seed, task in tasks(family):
                for mode in task.modes:
                    messages = play(family.make(random.Random(seed)), mode)
                    seen = ' '.join(m['content'] for m in messages[:-1])
                    new = set(re.findall(r'\d+', messages[-1]['content'])) \
                        - set(re.findall(r'\d+', seen))
                    self.assertEqual(new, set(), (family, seed, mode))

    def test_discarded_reasoning_is_repeated(self):
        """In DISCARD each step repeats the goal, which may be the words of
        the user, and all results so far; in RETAIN each step has only what is
        new."""

        for family in (tools_multi, tools_error):
            for seed, task in tasks(family, 400):
                kept, dropped = [
                    [m.get('reasoning_content', '')
                     for m in play(family.make(random.Random(seed)), mode)
                     if m['role'] == 'assistant']
                    for mode in (RETAIN, DISCARD)]
                self.assertEqual(kept[0], dropped[0])
                user = ' '.join(next(m['content'] for m in play(
                    family.make(random.Random(seed)), RETAIN)
                    if m['role'] == 'user').split())
                goal = 'Wanted: ' if kept[0].startswith('Wanted: ') \
                    else f'"{user}" '
                self.assertTrue(all(r.startswith(goal) for r in dropped))
                self.assertFalse(any(goal in r for r in kept[1:]))

                for k, d in zip(kept[1:], dropped[1:]):
                    self.assertTrue(d.endswith(k), seed)
                    self.assertGreater(len(d), len(k))

                # all sentences of a step but the last are results

                for i, k in enumerate(kept[1:], 1):
                    found = k.rpartition('. ')[0]
                    for d in dropped[i:]:
                        self.assertIn(found, d, seed)

    def test_names_are_searched_in_order(self):
        """Long names are searched in order for a part, up to the first
        match."""

        found = missed = 0

        for _, task in tasks(tools_error):
            messages = play(task, RETAIN)
            text = ' '.join(m.get('reasoning_content', '') for m in messages)
            part = re.search(r'(\w+) is unknown\. '
                             r'((?:\w+ \w+ (?:no|yes)\. )+)', text)

            if part is None:
                continue

            known = next(re.findall(r'\w+_\w+', m['content'].partition(
                         'known: ')[2]) for m in messages
                         if m['role'] == 'tool')
            said = re.findall(r'(\w+) (\w+) (no|yes)\.', part[2])
            self.assertEqual([f'{a}_{b}' for a, b, _ in said],
                             known[:len(said)])
            self.assertEqual([how == 'yes' for *_, how in said],
                             [b == part[1] for _, b, _ in said])
            self.assertNotIn('yes', [how for *_, how in said[:-1]])

            if said[-1][2] == 'yes':
                found += 1
            else:
                self.assertEqual(len(said), len(known))
                missed += 1

        self.assertGreater(found, 10)
        self.assertGreater(missed, 5)

    def test_rounds(self):
        """Several rounds have 2 to 6 steps, some with parallel calls; an error
        is followed by one more call or by the answer."""

        steps, parallel = set(), set()

        for _, task in tasks(tools_multi):
            calls = [len(m.get('tool_calls', []))
                     for m in play(task, RETAIN) if m['role'] == 'assistant']
            steps.add(len(calls))
            parallel |= set(calls)

        self.assertEqual(steps, {2, 3, 4, 5, 6})
        self.assertTrue({0, 1, 2, 3, 4} <= parallel)

        for seed, task in tasks(tools_error, 400):
            results = [json.loads(m['content'])
                       for m in play(task, RETAIN) if m['role'] == 'tool']
            self.assertIn('error', results[0], seed)
            self.assertTrue(all('error' not in r for r in results[1:]))
            self.assertLessEqual(len(results), 2)


class Offers(unittest.TestCase):
    def test_names_are_of_one_role(self):
        owner = {}

        for role, spec in ROLES.items():
            for name in spec.names:
                self.assertRegex(name, r'^[a-z_]{1,64}$')
                self.assertIs(owner.setdefault(name, spec), spec, name)
            for text in spec.descriptions:
                self.assertTrue(3 <= len(text.split()) <= 8, text)

    def test_offers_vary(self):
        """The needed tool is at any position, has any of its names, and none
        to five other tools are offered with it."""

        names, counts, places, arguments = set(), set(), set(), set()

        for seed in range(400):
            rng = random.Random(seed)
            kit = Kit(rng, World(rng), ['find_person'], (0, 5))
            name, given = kit.call('find_person', 'Ada')
            names.add(name)
            counts.add(len(kit.tools))
            places.add(list(kit.tools).index(name))
            arguments.add(tuple(given))
            self.assertEqual(len(kit.tools), len(kit.offered))

        self.assertEqual(names, set(ROLES['find_person'].names))
        self.assertEqual(counts, {1, 2, 3, 4, 5, 6})
        self.assertEqual(places, {0, 1, 2, 3, 4, 5})
        self.assertEqual(arguments, set(ROLES['find_person'].arguments))

    def test_forbidden_tools(self):
        for seed in range(300):
            rng = random.Random(seed)
            kit = Kit(rng, World(rng), (), (1, 6), ('get_weather',))
            self.assertNotIn('get_weather', kit.offered)
            self.assertNotIn('convert_short', kit.offered)

    def test_bad_arguments_are_errors(self):
        wrong = {'string': (1, None, ['x'], True, {}),
                 'number': ('1', None, True, [1])}

        for seed, task in tasks(tools_multi, 150):
            def fails(name, text):
                result = json.loads(task.call(name, text))
                self.assertEqual(list(result), ['error'], (seed, name, text))

            for name, tool in task.tools.items():
                p = tool.function['parameters']['properties']
                good = {n: 'x' if s['type'] == 'string' else 1
                        for n, s in p.items()}

                for text in ('', '{', '[]', '3', 'null', '"x"'):
                    fails(name, text)

                fails(name, json.dumps({**good, 'further': 'x'}))
                fails('un' + name, json.dumps(good))

                for n, s in p.items():
                    fails(name, json.dumps({k: v for k, v in good.items()
                                            if k != n}))
                    for w in wrong[s['type']]:
                        fails(name, json.dumps({**good, n: w}))

    def test_errors_list_the_known_names(self):
        world = World(random.Random(3))
        city, day = world.cities[0], world.days[0]
        table = world.shop.name
        row, column = world.shop.rows()[0], world.shop.columns()[0]

        for call, known in (
                (lambda: world.get_weather('Nowhere', day), city),
                (lambda: world.get_weather(city, 'Someday'), day),
                (lambda: world.find_person('Nobody'), list(world.people)[0]),
                (lambda: world.send_message('Nobody', 'x'),
                 list(world.people)[0]),
                (lambda: world.kv_get('none'), list(world.store)[0]),
                (lambda: world.table_rows('none'), table),
                (lambda: world.table_columns('none'), table),
                (lambda: world.table_lookup('none', row, column), table),
                (lambda: world.table_lookup(table, 'none', column), row),
                (lambda: world.table_lookup(table, row, 'none'), column)):
            with self.assertRaisesRegex(ValueError, 'known: .*' + known):
                call()

    def test_the_store_keeps_values(self):
        world = World(random.Random(4))
        world.kv_set('a', '1')
        world.kv_set('a', '2')
        self.assertEqual(world.kv_get('a')['value'], '2')
        self.assertIn('a', world.kv_list()['keys'])

        with self.assertRaises(ValueError):
            world.kv_set('b', 'x' * 1000)

        with self.assertRaises(ValueError):
            for i in range(100):
                world.kv_set(f'k{i}', '1')

        with self.assertRaises(ValueError):
            world.send_message(list(world.people)[0], 'x' * 1000)


def expression(rng, depth):
    """Returns a random expression and its value by Python's own operators, or
    None for a division by zero."""

    kind = rng.randrange(7)

    if depth == 0 or kind == 0:
        n = str(rng.randrange(10 ** rng.randint(1, 4)))
        if rng.random() < 0.2:
            n += f'.{rng.randrange(100):02}'
        return n, f"Fraction('{n}')"

    a, pa = expression(rng, depth - 1)

    if kind == 1:
        return f'-{a}', f'-{pa}'

    if kind == 2:
        return f'({a})', f'({pa})'

    b, pb = expression(rng, depth - 1)
    space = rng.choice(('', ' '))
    op = rng.choice('+-*/')

    return f'{a}{space}{op}{space}{b}', f'{pa} {op} {pb}'


class Calculator(unittest.TestCase):
    def test_agrees_with_python(self):
        rng = random.Random(1)
        right = zero = 0

        for _ in range(6000):
            text, python = expression(rng, 4)

            if len(text) > 200:
                continue

            try:
                wanted = eval(python, {'Fraction': Fraction})
            except ZeroDivisionError:
                zero += 1
                with self.assertRaisesRegex(ValueError, 'zero'):
                    calculate(text)
                continue

            if abs(wanted) >= 10 ** 11:
                with self.assertRaisesRegex(ValueError, 'large'):
                    calculate(text)
                continue

            result = calculate(text)['result']
            shown = Fraction(json.dumps(result))
            self.assertLessEqual(abs(shown - wanted), Fraction(1, 20000))

            if (wanted * 10000).denominator == 1:
                self.assertEqual(shown, wanted, text)

            if shown.denominator == 1:
                self.assertIsInstance(result, int)

            right += 1

        self.assertGreater(right, 4000)
        self.assertGreater(zero, 50)

    def test_is_exact_and_short(self):
        for text, wanted in (('0.1 + 0.2', '0.3'), ('10 / 4', '2.5'),
                             ('1 / 3', '0.3333'), ('2 / 3 * 3', '2'),
                             ('7 - 10', '-3'), ('-(2 - 5) * 2', '6'),
                             ('8 / 4 / 2', '1'), ('9 - 4 - 3', '2'),
                             ('2 + 3 * 4', '14'), ('(2+3)*4', '20'),
                             ('99999999999', '99999999999'),
                             ('99999999999 - 0.0001', '99999999998.9999')):
            self.assertEqual(json.dumps(calculate(text)['result']), wanted,
                             text)

    def test_refuses_garbage(self):
        for text in ('', ' ', '+', '2 +', '2 2', '(', ')', '(2', '2)', '()',
                     '2 ** 3', '2 // 3', '2 % 3', '1e5', 'x', 'abs(2)',
                     '__import__("os")', '2 + two', '1.', '.5', '1..2',
                     '1,000', '+3', '١', '1 / 0', '1 / (2 - 2)',
                     '(' * 50 + '1' + ')' * 50, '-' * 100 + '1',
                     '1' * 13, '9' * 12 + ' * ' + '9' * 12,
                     '1 + ' * 100 + '1', '1\0'):
            with self.assertRaises(ValueError, msg=text):
                calculate(text)

    def test_any_text_is_a_number_or_refused(self):
        rng = random.Random(2)

        for _ in range(20000):
            text = ''.join(rng.choices('0123456789.+-*/()  ex',
                                       k=rng.randint(0, 24)))
            try:
                self.assertIsInstance(calculate(text)['result'],
                                      (int, float))
            except ValueError:
                pass


class Units(unittest.TestCase):
    def test_published_factors(self):
        for n, a, b, wanted in (
                (1, 'mile', 'km', 1.6093), (1, 'mi', 'feet', 5280),
                (1, 'inch', 'cm', 2.54), (1, 'yard', 'm', 0.9144),
                (3, 'feet', 'yard', 1), (1, 'foot', 'inches', 12),
                (1, 'lb', 'g', 453.5924), (1, 'oz', 'g', 28.3495),
                (1, 'pound', 'ounces', 16), (1, 't', 'kg', 1000),
                (1, 'gallon', 'liters', 3.7854), (1, 'gal', 'cups', 16),
                (1, 'cup', 'ml', 236.5882), (1, 'week', 'hours', 168),
                (1.5, 'days', 'minutes', 2160), (1, 'h', 's', 3600),
                (100, 'celsius', 'fahrenheit', 212),
                (-40, 'C', 'F', -40), (0, 'kelvin', 'celsius', -273.15),
                (98.6, 'Fahrenheit', 'Celsius', 37),
                (25, 'c', 'K', 298.15), (0.1, 'm', 'mm', 100)):
            self.assertEqual(convert(n, a, b), {'result': wanted, 'unit': b},
                             (n, a, b))

    def test_there_and_back(self):
        for a in UNITS:
            for b in UNITS:
                if a.measures != b.measures:
                    with self.assertRaisesRegex(ValueError, 'measure'):
                        convert(1, a.many, b.many)
                    continue

                there = convert(500, a.many, b.short)['result']

                if abs(there) > 100:
                    back = convert(there, b.one, a.many)['result']
                    self.assertAlmostEqual(back / 500, 1, 5, (a, b))

    def test_rejects_bad_numbers_and_units(self):
        for n in (float('nan'), float('inf'), -float('inf'), 10 ** 400,
                  1e300, -10 ** 10):
            with self.assertRaisesRegex(ValueError, 'too large'):
                convert(n, 'm', 'km')

        for a, b in (('furlong', 'm'), ('m', ''), ('', 'm')):
            with self.assertRaisesRegex(ValueError, 'unknown unit.*meters'):
                convert(1, a, b)

        with self.assertRaises(ValueError):
            convert(10 ** 9, 'weeks', 's')

    def test_strict_converter_takes_short_names(self):
        self.assertEqual(convert_short(1, 'km', 'm')['result'], 1000)

        for a, b in (('kilometers', 'm'), ('km', 'meters'), ('KM', 'm')):
            with self.assertRaisesRegex(ValueError, 'unknown unit.*km'):
                convert_short(1, a, b)


class Checks(unittest.TestCase):
    def test_numbers(self):
        for text, wanted in (('-4 degrees', ['-4']), ('is 9,396.', ['9396']),
                             ('7.5km', ['7.5']), ('3-4', ['3', '4']),
                             ('a, 14, 200', ['14', '200']),
                             ('1,234,567.8', ['1234567.8']),
                             ('on 2025-10-02', []), ('(3*-4)', ['3', '-4']),
                             ('lamp2', [])):
            self.assertEqual(numbers(text), wanted, text)

    def test_right_numbers(self):
        for answer, wanted, user in (
                ('It is 14.', 14, ''), ('14', 14, ''), ('14.0', 14, ''),
                ('12 km is 7.4565 miles.', 7.4565, 'convert 12 km'),
                ('About 7.46 miles.', 7.4565, ''),
                ('7.5 miles are 12 km', 7.4565, 'what are 12 km'),
                ('It makes 1,202,913.', 1202913, ''),
                ('-3 degrees on 2025-10-02', -3, ''),
                ('One costs 4, so it is 12', 12, 'What do 3 cost?'),
                ('12 for 3', 12, 'What do 3 cost?')):
            self.assertIsNone(says_number(answer, wanted, user), answer)

    def test_wrong_numbers(self):
        for answer, wanted, user in (
                ('', 14, ''), ('15', 14, ''), ('3', -3, ''), ('141', 14, ''),
                ('14 or 15', 14, ''), ('7 miles', 7.4565, ''),
                ('7.44', 7.4565, ''), ('fourteen', 14, ''),
                ('14 on 2025-10-18', 18, ''), ('1.4', 14, ''),
                ('9' * 5000, 4, '')):
            self.assertIsNotNone(says_number(answer, wanted, user), answer)

    def test_words(self):
        self.assertIsNone(says_words('It is RAINY.', 'rainy'))
        self.assertIsNotNone(says_words('It is brainy.', 'rainy'))
        self.assertIsNone(says_words('blue_lamp is 3', 'blue_lamp'))
        self.assertIsNotNone(says_words('blue_lamps', 'blue_lamp'))

    def test_choices(self):
        three = ('Ada', 'Ivo', 'Zoe')
        self.assertIsNone(says_choice('ivo', 'Ivo', three))
        self.assertIsNone(says_choice('Ivo, not Ada.', 'Ivo', three))
        self.assertIsNotNone(says_choice('Ada', 'Ivo', three))
        self.assertIsNotNone(says_choice('Ada, not Ivo.', 'Ivo', three))
        self.assertIsNotNone(says_choice('nobody', 'Ivo', three))

    def test_negations(self):
        for text in ('I do not know X.', 'X is unknown', "I can't find X",
                     'There is no X.'):
            self.assertIsNone(says_no(text, 'X'), text)

        self.assertIsNotNone(says_no('X is 14.', 'X'))
        self.assertIsNotNone(says_no('I do not know.', 'X'))

    def test_compare(self):
        self.assertEqual(
            compare({'a': 5, 'b': 13, 'c': 19}, True, 'oldest'),
            ('c', ['oldest: > wins.', 'a 5.',
                   'b 13 and 5: 2 digits > 1 digits so 13>5: b 13.',
                   'c 19 and 13: 1=1 9>3 so 19>13: c 19.', 'So c.']))
        self.assertEqual(
            compare({'a': -5, 'b': 3}, False, 'coldest'),
            ('a', ['coldest: < wins.', 'a -5.', 'b 3>-5: a -5.', 'So a.']))


if __name__ == '__main__':
    unittest.main()
