# Copyright (C) The nginx-dsa authors

"""Tasks without tools: programming, logic and writing."""

import json
import random
import re
import unittest
from itertools import permutations, product

from tasks.task import CHAT, RETAIN, play
from worlds import registry
from worlds.answers import logic, operations, programming, sentences, writing
from worlds.answers.solver import Clue, Puzzle, solve
from worlds.code import cage, calling, function
from worlds.form import record, verify
from worlds.general.words import EVAL, TRAIN


try:
    cage.check()
    no_cage = None
except cage.NoCage as e:
    no_cage = f'no isolation: {e}'


MODULES = {'programming': programming, 'logic': logic, 'writing': writing}


class Families(unittest.TestCase):

    def test_gold(self):
        for name in MODULES:
            if name == 'programming' and no_cage:
                continue

            family = registry.families()[name]

            for level in range(1, family.levels + 1):
                for mode in (RETAIN, CHAT):
                    for seed in (f'train-{level}', f'eval-{level}'):
                        messages = play(family.task(seed, level), mode)
                        again = family.task(seed, level)
                        self.assertIsNone(verify(again, messages))
                        self.assertEqual('reasoning_content' in messages[-1],
                                         mode == RETAIN)
                        json.dumps(record(family, seed, level))

    def test_nothing_is_no_answer(self):
        for name, module in MODULES.items():
            check = module.make('eval-1', 1).turns[0].check
            for text in ('', 'I do not know.', 'Answer:', '```python\n```',
                         'Answer: ' + 'a,' * 9999, '```python\n', '.' * 9999):
                self.assertIsNotNone(check(text, []), (name, text[:20]))

    def test_any_answer(self):
        """No text makes a check fail, and none of these is right."""

        rng = random.Random(3)
        parts = ['Answer:', '**', 'nobody', ',', ';', ':', '\n', ' ', '.',
                 '\0', '\ud800', 'Answer: ' + '.' * 30000, '9' * 5000, '!?',
                 'é', '\u2028', 'Elmar', 'answer', ' * ' * 10000]
        checks = [module.make(f'eval-{n}', 2).turns[0].check
                  for module in (logic, writing) for n in range(12)]

        for _ in range(300):
            text = ''.join(rng.choices(parts, k=rng.randint(1, 12)))
            self.assertIsInstance(rng.choice(checks)(text, []), str)
            self.assertIsNone(programming.program_of(text))

    def test_levels_are_harder(self):
        """The policy falls by 30 points.  Programs of the policy are judged
        by the expected results, because only those that are right for the
        samples have to be run."""

        for name, module in MODULES.items():
            right = {}

            for level in (1, module.LEVELS):
                right[level] = 0
                for n in range(60):
                    seed = f'train-{n}'
                    answer = module.attempt(seed, level, random.Random(n))
                    if name == 'programming':
                        p = module.problem_of(seed, level)
                        scope = {}
                        exec(module.program_of(answer), scope)
                        right[level] += all(
                            scope[p.name](xs) == p.result(xs)
                            for xs in p.inputs)
                    else:
                        right[level] += module.make(seed, level).turns[
                            0].check(answer, []) is None

            self.assertGreater(right[1] - right[module.LEVELS], 18, name)

    def test_parts_are_disjoint(self):
        """No sentence of a request is in both parts, without its names,
        numbers and words of the lists."""

        listed = {w for lists in (sentences.NOUNS, sentences.PLACES)
                  for part in lists.values() for w in part}
        listed |= {w for part in logic.PROPERTIES.values() for p, values in
                   part for w in (p, *values)}
        listed |= {w for part in sentences.ACROSTICS.values() for w in part}
        listed |= {w for part in programming.LIST.values() for w in part}

        for name, module in MODULES.items():
            found = {TRAIN: set(), EVAL: set()}

            for part, n, level in product(found, range(40), (1, 3, 5)):
                text = module.make(f'{part}-{n}', level).turns[0].user
                text = re.sub(r'\[.*?\]|"[^"]*"', '_', text)
                text = re.sub(r'\b(%s)\b' % '|'.join(listed), '_', text)
                text = re.sub(r'\b[A-Z][a-z]+\b|\w+\(|\d+', '_', text)
                found[part] |= {re.sub(r'\W+', ' ', s).strip()
                                for s in re.split(r'[.?!:;\n]', text)}

            shared = {s for s in found[TRAIN] & found[EVAL]
                      if re.search(r'[a-z]{2}', s)}
            self.assertEqual(shared, set(), name)

        for lists in (sentences.NOUNS, sentences.PLACES, sentences.ADJECTIVES,
                      sentences.VERBS, sentences.OPENERS, sentences.ENDS,
                      sentences.ACROSTICS):
            self.assertFalse(set(lists[TRAIN]) & set(lists[EVAL]))

    def test_from_seeds(self):
        for module in MODULES.values():
            a, b, c = (module.make(seed, 3).turns[0].user
                       for seed in ('eval-4', 'eval-4', 'eval-5'))
            self.assertEqual(a, b)
            self.assertNotEqual(a, c)


class Programming(unittest.TestCase):

    def test_operations(self):
        """Both ways in which an operation is written agree."""

        rng = random.Random(1)

        for o in operations.LISTS + operations.NUMBERS:
            for n in range(60):
                xs = programming.draw_input(rng, n)
                k = o.draw(rng)
                p = programming.Problem(EVAL, 'f', 'xs_', [(o, k)], [xs])
                scope = {}
                exec(p.program(), scope)
                got = scope['f'](xs)
                self.assertTrue(programming.same(got, p.result(xs)),
                                (o.name, xs, k, got))

    def test_no_program_is_in_both_parts(self):
        steps = {part: {' '.join(o.name for o, _ in programming.problem_of(
            f'{part}-{n}', level).steps) for n in range(60)
            for level in (1, 2, 3)} for part in (TRAIN, EVAL)}
        self.assertGreater(len(steps[EVAL]), 60)
        self.assertFalse(steps[TRAIN] & steps[EVAL])

    def test_samples(self):
        p = programming.problem_of('eval-3', 2)
        for xs in p.inputs[:programming.SAMPLES]:
            self.assertIn(f'{p.name}({xs}) gives {p.result(xs)}', p.text())
        for xs in p.inputs[programming.SAMPLES + 3:]:
            self.assertNotIn(str(xs), p.text())

    @unittest.skipIf(no_cage, no_cage)
    def test_mutations(self):
        """20 programs with another sequence of steps: each is wrong that
        gives another result for an input, as its steps decide."""

        rng = random.Random(5)
        p = programming.problem_of('eval-2', 3)
        wrong = 0

        while wrong < 20:
            steps = list(p.steps)
            i = rng.randrange(3)
            kind = rng.randrange(3)
            if kind == 0:
                del steps[i]
            elif kind == 1:
                steps[i], steps[i - 1] = steps[i - 1], steps[i]
            else:
                steps[i] = programming.draw_steps(rng, 2)[0]
            if any(o in operations.NUMBERS for o, _ in steps[:-1]):
                continue
            right = all(programming.same(p.result(xs, steps), p.result(xs))
                        for xs in p.inputs)
            got = p.wrong(f'```python\n{p.program(steps)}```', p.inputs)
            self.assertEqual(got is None, right, steps)
            wrong += not right

    @unittest.skipIf(no_cage, no_cage)
    def test_tricks(self):
        """Nothing but the right values is right."""

        p = programming.problem_of('eval-2', 1)
        gold = p.program()
        body = f'\ndef {p.name}(xs):\n    return '

        for text in (
                'class A(list):\n    __eq__ = lambda *a: True' + body + 'A()',
                'class A:\n    __eq__ = lambda *a: True' + body + 'A()',
                body + str({str(xs): p.result(xs) for xs in p.inputs[:3]})
                + '.get(str(xs))', body + 'None', body + '1 / 0', body + '[True] * len(xs)',
                body + f'{p.name}(xs)', body + '[' * 60 + ']' * 60,
                'import os\nos._exit(0)', 'raise SystemExit',
                f'{p.name} = 3', 'def other(xs):\n    return xs',
                'import os\nos.write(4, b\'{"value": 1}\\n\' * 50)',
                'import os\nfor fd in range(9):\n    try:\n'
                '        os.close(fd)\n    except OSError:\n        pass',
                body + 'float("nan")', 'x = (', '#' * 9000 + '\n' + gold):
            self.assertIsNotNone(p.wrong(f'```python\n{text}\n```', p.inputs),
                                 text)

        self.assertIsNone(p.wrong(f'First:\n```python\nx\n```\nBetter:\n'
                                  f'```python\n{gold}```\nDone.', p.inputs))
        self.assertIsNotNone(p.wrong(gold, p.inputs))

    @unittest.skipIf(no_cage, no_cage)
    def test_bounds(self):
        for text, why in (
                ('while True:\n    pass', 'more than 2 seconds'),
                ('def f(x):\n    while True:\n        pass',
                 'more than 2 seconds'),
                ('import os, time\nwhile True:\n    os.write(4, b" ")\n'
                 '    time.sleep(0.1)', 'more than 2 seconds'),
                ('import os\nos.write(4, b"x" * (5 << 20))',
                 'an answer of more than')):
            with self.assertRaisesRegex(calling.Ended, why):
                function.results(text, 'f', [[1]],
                                 seconds=2 if '2 seconds' in why else 100)

        # forks that end by themselves, a lot of memory, the network, files

        (got, _), = function.results(
            'import os, time\ndef f(x):\n    n = 0\n    try:\n'
            '        for n in range(100):\n'
            '            if os.fork() == 0:\n'
            '                time.sleep(60)\n                os._exit(0)\n'
            '    except OSError:\n        return n\n', 'f', [[1]])
        self.assertLess(got, 30)

        for line, want in (
                ('bytearray(10 << 30)', 'MemoryError'),
                ('open("/etc/passwd")', 'FileNotFoundError'),
                ('__import__("socket").create_connection(("203.0.113.9", 80))',
                 'OSError')):
            (_, error), = function.results(
                f'def f(x):\n    return {line}', 'f', [[1]])
            self.assertEqual(error[0], want, line)


class Logic(unittest.TestCase):

    QUEUE = (
        (r'(\w+) comes later in the line than (\w+)\.',
         lambda at, a, b: at[a] > at[b]),
        (r'(\w+) is the one who precedes (\w+) directly\.',
         lambda at, a, b: at[b] - at[a] == 1),
        (r'(\w+) and (\w+) have a single person between them\.',
         lambda at, a, b: abs(at[b] - at[a]) == 2),
        (r'Place (\d+) does not belong to (\w+)\.',
         lambda at, k, a: at[a] != int(k) - 1),
        (r'(\w+) is either in front of all or behind all\.',
         lambda at, a: at[a] in (0, len(at) - 1)),
        (r'One of (\w+) and (\w+) is ahead of (\w+), and the other one is '
         r'not\.', lambda at, b, c, a: (at[b] < at[a]) != (at[c] < at[a])),
    )

    SAID = (
        (r'never believe (\w+)', lambda ok, a, b: not ok[b]),
        (r'you can believe (\w+)', lambda ok, a, b: ok[b]),
        (r'what I am, (\w+) is as well', lambda ok, a, b: ok[a] == ok[b]),
        (r'the number of liars here is (\d+)',
         lambda ok, a, k: list(ok.values()).count(False) == int(k)),
        (r'(\w+) and (\w+) are not both honest',
         lambda ok, a, b, c: not (ok[b] and ok[c])),
    )

    ROOMS = (
        (r'The (\w+) of (\w+) is another one than (\w+)\.',
         lambda has, p, x, v: has[x, p] != v),
        (r'The (\w+) that is (\w+) belongs to (\w+) or to (\w+)\.',
         lambda has, p, v, x, y: v in (has[x, p], has[y, p])),
        (r'For the (\w+) of (\w+) there are two possibilities: (\w+) and '
         r'(\w+)\.', lambda has, p, x, v, w: has[x, p] in (v, w)),
        (r'The (\w+) that is (\w+) and the (\w+) that is (\w+) belong to the '
         r'same person\.', lambda has, p, v, q, u: any(
             has[x, r] == v and has[x, q] == u for x, r in has if r == p)),
    )

    def test_queues(self):
        """Every order is decided as a reading of the request decides it."""

        for n in range(200):
            kind = logic.kind_of(f'eval-{n}', 1 + n % 3)
            if not isinstance(kind, logic.Queue):
                continue
            clues = re.findall(r'(?m)^\d+\. (.*)$', logic.request(kind))
            for order in permutations(kind.names):
                at = {x: i for i, x in enumerate(order)}
                good = all(self.holds(self.QUEUE, c, at) for c in clues)
                self.assertEqual(logic.wrong(
                    kind, 'So.\nAnswer: ' + ', '.join(order)) is None, good,
                    (n, order))

    def test_honest(self):
        for n in range(200):
            kind = logic.kind_of(f'eval-{n}', 1 + n % 4)
            if not isinstance(kind, logic.Honest):
                continue
            said = re.findall(r'(?m)^\d+\. According to (\w+), "(.*)"\.$',
                              logic.request(kind))
            self.assertTrue(said)
            for values in product((True, False), repeat=len(kind.names)):
                ok = dict(zip(kind.names, values))
                good = all(self.holds(self.SAID, text, ok, a) == ok[a]
                           for a, text in said)
                names = [x for x in kind.names if ok[x]]
                self.assertEqual(logic.wrong(
                    kind, 'Answer: ' + (', '.join(names) or 'nobody'))
                    is None, good, (n, ok))

    def test_rooms(self):
        for n in range(120):
            kind = logic.kind_of(f'eval-{n}', 1 + n % 3)
            if not isinstance(kind, logic.Rooms):
                continue
            clues = re.findall(r'(?m)^\d+\. (.*)$', logic.request(kind))
            names = sorted(kind.names)
            properties = [p for p, _ in kind.properties]
            for orders in product(*(permutations(own) for _, own
                                    in kind.properties)):
                has = {(x, p): order[i] for p, order in zip(properties, orders)
                       for i, x in enumerate(names)}
                good = all(self.holds(self.ROOMS, c, has) for c in clues)
                self.assertEqual(logic.wrong(kind, 'Answer: ' + '; '.join(
                    f'{x}: ' + ', '.join(has[x, p] for p in properties)
                    for x in names)) is None, good, (n, has))

    def holds(self, known, text, state, *first):
        for pattern, f in known:
            m = re.fullmatch(pattern, text)
            if m:
                return f(state, *first, *m.groups())
        self.fail(f'no such clue: {text}')

    def test_forms(self):
        kind = next(k for k in (logic.kind_of(f'eval-{n}', 2)
                                for n in range(99))
                    if isinstance(k, logic.Honest))
        right = kind.answer(kind.puzzle.solution)
        for text in (f'Answer: {right}', f'**Answer:** {right}.',
                     f'Answer: x\nanswer: {right} '):
            self.assertIsNone(logic.wrong(kind, text), text)
        for text in (f'Answer: {right}, {right}', f'{right}',
                     f'Answer: {right}\nAnswer: none of them',
                     f'Answer: {right}, Nobody'):
            self.assertIsNotNone(logic.wrong(kind, text), text)

    def test_solver(self):
        """It goes back from a supposition that fails."""

        def equal(a, b, same):
            return Clue(('', ''), (a, b), lambda x, y: (x == y) == same)

        p = Puzzle({v: [1, 2] for v in 'abc'}, [], [
            equal('a', 'b', True), equal('b', 'c', False),
            Clue(('', ''), ('a', 'c'), lambda x, y: x + 2 * y == 4)], {})
        found, lines = solve(p)
        self.assertEqual(found, {'a': 2, 'b': 2, 'c': 1})

        p.clues[-1] = Clue(('', ''), ('a', 'b', 'c'),
                           lambda x, y, z: x + y + z == 5)
        self.assertEqual(solve(p)[0], {'a': 2, 'b': 2, 'c': 1})


class Writing(unittest.TestCase):

    RULES = (
        (r'Use (\d) sentences, no more and no fewer\.',
         lambda s, n: len(s) == int(n)),
        (r'Keep every sentence at (\d) words or less\.',
         lambda s, n: max(len(x.split()) for x in s) <= int(n)),
        (r'The word "(\w+)" is forbidden\.', lambda s, w: not any(
            w in re.split(r'\W+', x.lower()) for x in s)),
        (r'Mention (\w+) as well as (\w+)\.', lambda s, a, b: all(
            any(w in re.split(r'\W+', x.lower()) for x in s) for w in (a, b))),
        (r'Write (\w+) (\d) times, not more often and not less\.',
         lambda s, w, n: sum(re.split(r'\W+', x.lower()).count(w)
                             for x in s) == int(n)),
        (r'Close with this sentence: (.*)', lambda s, last: s[-1] == last),
        (r'From sentence to sentence the number of words grows\.',
         lambda s: [len(x.split()) for x in s] == sorted(
             {len(x.split()) for x in s})),
        (r'Read downwards, the initial letters of the sentences give (\w+)\.',
         lambda s, w: [x[0] for x in s] == list(w)),
    )

    def good(self, request, text):
        """Whether a text keeps a request, as a reading of it decides."""

        own = text.replace('. ', '.\n').split('\n')
        place = re.search(r'use the word (\w+)\.', request)[1]

        if len(own) < 3 or place not in re.split(r'\W+', text.lower()):
            return False

        for line in re.findall(r'(?m)^- (.*)$', request):
            m, f = next((m, f) for p, f in self.RULES
                        for m in [re.fullmatch(p, line)] if m)
            if not f(own, *m.groups()):
                return False

        return True

    def test_mutations(self):
        rng = random.Random(2)
        kinds = set()

        for n in range(60):
            order = writing.order_of(f'eval-{n}', 1 + n % 5)
            kinds |= {c.kind for c in order.conditions}
            gold, _ = writing.written(order, rng)
            self.assertTrue(self.good(order.text(), gold))
            wrong = 0

            for text in self.changed(rng, gold):
                good = self.good(order.text(), text)
                self.assertEqual(order.wrong(text) is None, good,
                                 (order.text(), text))
                wrong += not good
                if wrong == 20:
                    break

            self.assertGreaterEqual(wrong, 1)

        self.assertEqual(len(kinds), 8)

    @staticmethod
    def changed(rng, text):
        """Yields texts with one change, none of which repeats a sentence."""

        lists = [sentences.NOUNS[EVAL], ['with', 'by', 'a', 'the'],
                 ['Then silence came.']]

        for _ in range(300):
            own = text.replace('. ', '.\n').split('\n')
            i = rng.randrange(len(own))
            kind = rng.randrange(5)
            if kind == 0:
                del own[i]
            elif kind == 1:
                own[i], own[i - 1] = own[i - 1], own[i]
            elif kind == 2:
                words = own[i][:-1].split()
                words[rng.randrange(1, len(words))] = rng.choice(
                    rng.choice(lists[:2]))
                own[i] = ' '.join(words) + '.'
            elif kind == 3:
                words = own[i][:-1].split()
                words.insert(1, rng.choice(rng.choice(lists[:2])))
                own[i] = ' '.join(words) + '.'
            else:
                own.append('Then silence came.')
            if len(set(own)) == len(own) \
                    and all(len(s.split()) > 2 for s in own):
                yield ' '.join(own)

    def test_no_texts(self):
        order = writing.Order(EVAL, 'beach', [])
        self.assertIsNone(order.wrong('The beach is wide. It is warm. Crabs '
                                      'walk there!'))
        for text in ('The beach is wide. The beach is wide. It is warm.',
                     'Beach. Beach. Beach.', 'beach ' * 50,
                     'The beach is wide. It is warm.',
                     'The beaches are wide. They are warm. I like them.',
                     'The beach is wide. It is warm. Crabs walk there'):
            self.assertIsNotNone(order.wrong(text), text)


if __name__ == '__main__':
    unittest.main()
