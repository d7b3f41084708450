# Copyright (C) The nginx-dsa authors

"""The prompts in ordinary wording: their form, their examples, which a server
plays and which must be judged as they are listed, and that training does not
have their wording."""

import contextlib
import glob
import io
import json
import os
import re
import sys
import tempfile
import unittest
from collections import Counter
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', '..', 'demo')]

from eval import (disjoint, expect, ordinary,                   # noqa: E402
                  ordinary_table)
from eval.statements import names, normal, numbers              # noqa: E402
from gold_server import GoldServer, Refusal                     # noqa: E402
from tasks.mix import FAMILIES, task_of                         # noqa: E402
from tasks.task import CHAT, DISCARD, RETAIN, play              # noqa: E402
from train import corpus                                        # noqa: E402


COUNTS = {'single': 60, 'several': 25, 'none': 25, 'results': 25, 'sums': 35,
          'reading': 25, 'parts': 20, 'system': 15, 'talk': 20,
          'unknowable': 25, 'corrections': 15, 'formats': 10}

SAMPLES = 2000      # of each family
WORDS = 5           # a sequence that training must not have

# greetings that training may have, too

GREETINGS = {'talk-hi', 'talk-thanks', 'none-hello-tools'}

# prompts that a greeting answers, a "yes" or "OK", and a "no"

HELLO = {'none-hello-tools', 'talk-hi', 'talk-morning'}
YES = {'corrections-never-mind', 'results-air-compare'}
NO = {'reading-yes-no', 'results-customer-null', 'results-empty-search',
      'results-exit', 'results-parcel-late', 'system-secret',
      'talk-feelings', 'talk-human'}

SET = ordinary.load()
PROMPTS = {p.id: p for p in SET.prompts}


def example(prompt, verdict, n):
    """Returns (calls, answer or None) of the nth example of a verdict, or
    None.  A wrong example without an answer ends with its calls."""

    examples = [prompt.right] if verdict == expect.RIGHT \
        else getattr(prompt, verdict)

    if n >= len(examples):
        return None

    if isinstance(examples[n], dict):
        return examples[n]['calls'], examples[n].get('answer')

    calls = prompt.right['calls'] if isinstance(prompt.right, dict) else []

    return calls, examples[n]


class ExampleServer(GoldServer):
    """Plays examples.  pick is prompt -> example; spoil as in GoldServer."""

    def __init__(self, pick, spoil=lambda request, message: message):
        super().__init__(None, RETAIN, spoil)
        self.pick = pick
        self.of = {json.dumps(p.messages): p for p in SET.prompts}

    def prompt(self, request):
        """Returns the prompt of a request and the messages that follow."""

        messages = request['messages']

        for n in range(1, len(messages) + 1):
            prompt = self.of.get(json.dumps(messages[:n]))
            if prompt is not None:
                return prompt, messages[n:]

        raise Refusal(404, 'no such prompt')

    def message(self, request):
        prompt, after = self.prompt(request)
        calls, answer = self.pick(prompt)
        done = sum(m['role'] == 'tool' for m in after)

        if done == len(calls):
            assert answer is not None, prompt.id
            message = {'role': 'assistant', 'content': answer}
        else:
            name, arguments = calls[done]
            message = {'role': 'assistant', 'content': '', 'tool_calls': [
                {'id': f'new_{done}', 'type': 'function', 'function': {
                    'name': name, 'arguments': json.dumps(arguments)}}]}

        return self.spoil(request, message)


def evaluate(url, *args, prompts=SET):
    """Returns the exit status, the output file (None: not written), and
    stderr."""

    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, 'out.json')

        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            rc = ordinary.main(['--url', url, '--out', out, *args], prompts)

        if not os.path.exists(out):
            return rc, None, stderr.getvalue()

        with open(out, encoding='utf-8') as f:
            return rc, json.load(f), stderr.getvalue()


def some(*ids):
    """Returns the set with only these prompts."""

    return ordinary.Set([PROMPTS[i] for i in ids], SET.tools, SET.names,
                        SET.admits, SET.own)


def right(prompt):
    return example(prompt, expect.RIGHT, 0)


class Data(unittest.TestCase):

    def test_counts(self):
        self.assertEqual(Counter(p.category for p in SET.prompts), COUNTS)
        self.assertEqual(sum(COUNTS.values()), 300)
        self.assertEqual(len(PROMPTS), 300)
        self.assertEqual(len({json.dumps(p.messages) for p in SET.prompts}),
                         300)

    def test_size(self):
        files = glob.glob(os.path.join(ordinary.HERE, '*'))
        self.assertLess(sum(map(os.path.getsize, files)), 250_000)
        self.assertEqual({os.path.basename(f) for f in files},
                         {'tools.jsonl', 'names.txt', 'admits.txt', 'own.txt',
                          *(c + '.jsonl' for c in COUNTS)})

    def test_messages(self):
        for p in SET.prompts:
            with self.subTest(p.id):
                roles = [m['role'] for m in p.messages]
                self.assertIn(roles[-1], ('user', 'tool'))
                self.assertNotIn('system', roles[1:])
                ids = [c['id'] for m in p.messages
                       for c in m.get('tool_calls', ())]
                self.assertEqual(ids, [m['tool_call_id'] for m in p.messages
                                       if m['role'] == 'tool'])

                for m in p.messages:
                    self.assertIsInstance(m['content'], str)
                    for c in m.get('tool_calls', ()):
                        self.assertIn(c['function']['name'], p.tools)
                        json.loads(c['function']['arguments'])

    def test_length(self):
        """A small model has a fair chance."""

        for p in SET.prompts:
            with self.subTest(p.id):
                self.assertLess(len(' '.join(expect.texts_of(p.messages))
                                    .split()), 150)
                self.assertLessEqual(len(p.tools), 3)

        for p in SET.prompts:
            if p.category == 'sums':
                for n in numbers(p.messages[0]['content']):
                    self.assertLess(n, 10000, p.id)

    def test_tools(self):
        self.assertEqual({t for p in SET.prompts for t in p.tools},
                         set(SET.tools))

        for f in SET.tools.values():
            s = f['parameters']
            self.assertEqual(s['type'], 'object')
            self.assertLessEqual(len(s['properties']), 4, f['name'])
            self.assertLessEqual(set(s['required']), set(s['properties']))

    def test_expected_calls(self):
        for p in SET.prompts:
            for c in p.calls:
                with self.subTest(p.id):
                    self.assertIn(c['name'], p.tools)
                    self.assertEqual(c.keys(),
                                     {'name', 'arguments', 'result'})
                    s = SET.tools[c['name']]['parameters']
                    listed = expect.names_of(c['arguments'])
                    self.assertLessEqual(set(s['required']), set(listed))
                    self.assertLessEqual(set(listed), set(s['properties']))

    def test_expected_answers(self):
        for p in SET.prompts:
            with self.subTest(p.id):
                self.assertLessEqual(p.answer.keys(), expect.TESTS.keys())
                self.assertTrue(p.answer.keys() - {'may', 'not', 'work'})
                self.assertGreaterEqual(len(p.wrong) + len(p.false), 2)

    def test_categories(self):
        """What a category is about is in its prompts."""

        of = {c: [p for p in SET.prompts if p.category == c] for c in COUNTS}

        self.assertTrue(all(len(p.calls) == 1 for p in of['single']))
        self.assertTrue(all(len(p.tools) > 1 or len(p.calls) > 1
                            for p in of['several']))
        self.assertTrue(all(p.tools and not p.calls for p in of['none']))
        self.assertTrue(all('tool' in [m['role'] for m in p.messages]
                            for p in of['results']))
        self.assertTrue(all(p.answer['result'] for p in of['sums']))
        self.assertTrue(all(p.messages[0]['role'] == 'system'
                            for p in of['system']))
        self.assertTrue(all(p.answer['admits'] for p in of['unknowable']))
        self.assertTrue(all(len(p.messages) > 2 for p in of['corrections']))

    def test_names(self):
        """The recognized names have those of the examples with another name,
        and no name is a word that a prompt uses otherwise."""

        self.assertGreater(len(SET.names), 500)

        for p in SET.prompts:
            answer = right(p)[1]
            for name in names(answer, SET.names):
                self.assertIn(normal(name), normal(json.dumps(
                    [p.messages, p.calls, p.answer], ensure_ascii=False)))


class Examples(unittest.TestCase):

    def judge(self, verdict, n, mode):
        """Runs all prompts that have an nth example of a verdict."""

        chosen = [p.id for p in SET.prompts if example(p, verdict, n)]

        with ExampleServer(lambda p: example(p, verdict, n)) as server:
            rc, written, stderr = evaluate(server.url, '--mode', mode,
                                           prompts=some(*chosen))

        self.assertEqual(rc, 0, stderr)
        self.assertEqual(len(written['results']), len(chosen))

        return written['results']

    def test_right(self):
        for mode in RETAIN, DISCARD, CHAT:
            rs = self.judge(expect.RIGHT, 0, mode)
            self.assertEqual(
                [(r['id'], r['why']) for r in rs if r['why'] is not None], [])
            self.assertEqual({r['verdict'] for r in rs}, {'right'})
            self.assertTrue(all(r['called'] == r['needs_call'] for r in rs))
            self.assertEqual(sum(r['needs_call'] for r in rs),
                             sum(bool(p.calls) for p in SET.prompts))

    def test_wrong(self):
        for verdict in 'wrong', 'false':
            for n in range(max(len(getattr(p, verdict))
                               for p in SET.prompts)):
                rs = self.judge(verdict, n, RETAIN)
                self.assertEqual([(r['id'], r['verdict'], r['why'])
                                  for r in rs if r['verdict'] != verdict], [])


    def test_general_answers(self):
        """An answer that fits many questions is right only where it is
        listed."""

        for text, good in (
                ('I do not know that.', lambda p: p.answer.keys()
                 & {'admits', 'has', 'numbers'} == {'admits'}),
                ('Hello! What can I do for you?', lambda p: p.id in HELLO),
                ('Yes, done. OK!', lambda p: p.id in YES),
                ('No, not at all.', lambda p: p.id in NO)):
            with ExampleServer(lambda p: ([], text)) as server:
                rc, written, stderr = evaluate(server.url)
                self.assertEqual(rc, 0, stderr)

            for r in written['results']:
                with self.subTest(text, id=r['id']):
                    self.assertEqual(r['verdict'] == 'right',
                                     good(PROMPTS[r['id']]))


class Run(unittest.TestCase):

    def test_requests(self):
        """The messages, the tools and the seed are sent, then the call and
        the expected result."""

        with ExampleServer(right) as server:
            rc, written, _ = evaluate(
                server.url, '--seed', '7', '--max-tokens', '99', '--mode',
                'chat', prompts=some('several-contact-mail'))
            seen = [request for _, request in server.seen]

        self.assertEqual((rc, len(seen)), (0, 3))
        p = PROMPTS['several-contact-mail']

        for request in seen:
            self.assertEqual(request['seed'], 7)
            self.assertEqual(request['max_tokens'], 99)
            self.assertEqual(request['thinking'], {'type': 'disabled'})
            self.assertEqual(request['tools'], [
                {'type': 'function', 'function': SET.tools[t]}
                for t in p.tools])

        self.assertEqual(seen[0]['messages'], p.messages)
        self.assertEqual([m['role'] for m in seen[2]['messages']],
                         ['user', 'assistant', 'tool', 'assistant', 'tool'])
        self.assertEqual(json.loads(seen[2]['messages'][2]['content']),
                         p.calls[0]['result'])
        self.assertEqual(seen[2]['messages'][4]['content'], 'sent')

        results = written.pop('results')
        self.assertEqual(written, {
            'name': 'chat', 'model': 'gold', 'mode': 'chat', 'seed': 7,
            'temperature': 0, 'max_tokens': 99, 'concurrency': 8})
        self.assertEqual(results[0]['calls'], 2)
        self.assertEqual(results[0]['category'], 'several')
        self.assertEqual(results[0]['answer'], right(p)[1])

    def test_no_tools(self):
        with ExampleServer(right) as server:
            evaluate(server.url, prompts=some('sums-apples'))
            self.assertNotIn('tools', server.seen[0][1])

    def why(self, id, calls, answer=None):
        with ExampleServer(lambda p: (calls, answer)) as server:
            rc, written, stderr = evaluate(server.url, prompts=some(id))

        self.assertEqual(rc, 0, stderr)
        (r,) = written['results']

        return r['verdict'], r['called'], r['why']

    def test_calls(self):
        """A call is counted apart from the answer."""

        oslo = ['get_weather', {'city': 'oslo, norway.'}]

        self.assertEqual(
            self.why('single-weather-oslo', [oslo], 'Nice.'),
            ('wrong', True, 'lacks "snow*"'))
        self.assertEqual(
            self.why('single-weather-oslo', [], 'It snows.'),
            ('wrong', False, 'no call'))
        self.assertEqual(
            self.why('single-weather-oslo', [oslo, oslo], 'It snows.'),
            ('wrong', False,
             'wrong call: get_weather {"city": "oslo, norway."}'))
        self.assertEqual(
            self.why('single-weather-oslo', [['get_wether', oslo[1]]]),
            ('wrong', False,
             'wrong call: get_wether {"city": "oslo, norway."}'))

        # an invented number is false, also before a call

        self.assertEqual(
            self.why('single-weather-oslo', [], '14 degrees, snow.'),
            ('false', False, 'the number 14'))

    def test_work(self):
        """The lines before the last one may have other numbers, and do not
        count as the answer."""

        for answer, verdict in (
                ('3-1\nones 7 carry 9\n2 are left.', 'right'),
                ('2 are left.\nThat is 7.', 'false'),
                ('2 are left.\nThat is all.', 'wrong'),
                ('9' * 5000, 'false'),
                ('hundred ' * 3000, 'false'),
                ('I was taught numbers of up to five digits.', 'wrong'),
                ('I was taught five things.', 'false')):
            with self.subTest(answer):
                self.assertEqual(self.why('sums-apples', [], answer)[0],
                                 verdict)

    def test_unlisted_arguments(self):
        """A choice may be added, free text may not."""

        for added, verdict in ({'units': 'celsius'}, 'right'), \
                ({'units': 'kelvin'}, 'wrong'), ({'units': None}, 'right'), \
                ({'country': 'Norway'}, 'wrong'):
            with self.subTest(added):
                self.assertEqual(self.why(
                    'single-weather-oslo',
                    [['get_weather', {'city': 'Oslo', **added}]],
                    'Snow.')[0], verdict)

    def test_cut_off(self):
        def cut(request, message):
            return {**message, 'finish': 'length'}

        with ExampleServer(right, cut) as server:
            _, written, _ = evaluate(server.url,
                                     prompts=some('sums-apples'))

        self.assertEqual(written['results'][0]['verdict'], 'wrong')
        self.assertIn('cut off', written['results'][0]['why'])

    def test_categories(self):
        with ExampleServer(right) as server:
            rc, written, stderr = evaluate(server.url, '--categories',
                                           'sums,formats')

        self.assertEqual((rc, stderr), (0, '45 of 45 right\n'))
        self.assertEqual([r['category'] for r in written['results']],
                         ['sums'] * 35 + ['formats'] * 10)

        with contextlib.redirect_stderr(io.StringIO()) as stderr, \
                self.assertRaises(SystemExit):
            ordinary.main(['--categories', 'sum', '--out', 'x'], SET)

        self.assertIn('no such category: sum', stderr.getvalue())

    def test_the_server_fails(self):
        def fail(request, message):
            if request['messages'] == PROMPTS['sums-bus'].messages:
                raise Refusal(503, 'no engine')
            return message

        with ExampleServer(right, fail) as server:
            rc, written, stderr = evaluate(server.url)

        self.assertEqual((rc, written), (1, None))
        self.assertIn('the run failed: sums-bus: 503: no engine', stderr)

    def test_no_server(self):
        with ExampleServer(right) as server:
            url = server.url

        rc, written, stderr = evaluate(url, '--model', 'gold')
        self.assertEqual((rc, written), (1, None))
        self.assertIn('ConnectionRefusedError', stderr)


class Statements(unittest.TestCase):

    def test_spelling(self):
        for text, want in (("I CAN'T,  and you won't", 'i cannot, and you '
                            'will not'),
                           ('\u2018Caf\u00e9\u2019 isn\u2019t \u201cna\u00efve'
                            '\u201d', '\'cafe\' is not "naive"'),
                           ('e\u0301 1\u20132 \u22123', 'e 1-2 -3')):
            self.assertEqual(normal(text), want)

    def test_numbers(self):
        for text, wanted in (
                ('4, 5 and 06', [4, 5, 6]),
                ('1,250 euros and 12,5', [1250, 12, 5]),
                ('2,750.50', [Fraction('2750.5')]),
                ('It is -4, minus 7 or \u22128.', [-4, -7, -8]),
                ('5-3 and 2026-03-14 at 09:40', [5, 3, 2026, 14, 9, 40]),
                ('gate C7, 21st, 30%', [7, 21, 30]),
                ('twenty-one, forty two', [21, 42]),
                ('two hundred and five', [205]),
                ('three thousand four hundred', [3400]),
                ('two and three', [2, 3]),
                ('a hundred and someone often', [100]),
                ('1. tea\n2. milk\n', []),
                ('2. tea\n5. milk\n', [2, 5]),
                ('12. That is all.', [12])):
            with self.subTest(text):
                self.assertEqual(numbers(text), set(wanted))

    def test_names(self):
        known = {'Oslo', 'Sao Paulo', 'New York', 'Paulo'}

        for text, wanted in (
                ("Oslo's fjord", ['Oslo']), ('OSLO!', ['Oslo']),
                ('an oslo', []), ('São Paulo', ['Sao Paulo', 'Paulo']),
                ('In New York City', ['New York']), ('Osloer', [])):
            with self.subTest(text):
                self.assertEqual(names(text, known), set(wanted))

    def test_accepts(self):
        for wanted, good, bad in (
                ('Oslo', ['oslo', ' Oslo. '], ['Oslo, Norway', 4, None]),
                (['a', 'b'], ['a', 'B'], ['c', ['a']]),
                (5, [5, 5.0], ['5', True, 6]),
                (True, [True], [1, 'true']),
                ({'list': [1, 2]}, [[1, 2]], [[2, 1], [1], 1]),
                ({'set': ['a', 'b']}, [['b', 'a']], [['a', 'a'], ['a']]),
                ({'has': ['milk', ['out', 'gone']]}, ['Milk is out!'],
                 ['milk', 'milkshake is out', 3]),
                ({'object': {'a': 1, 'b?': 2}}, [{'a': 1},
                                                 {'a': 1, 'b': 2}],
                 [{'b': 2}, {'a': 1, 'c': 3}, {'a': 1, 'b': 3}, []])):
            for value in good:
                self.assertTrue(expect.accepts(wanted, value),
                                (wanted, value))
            for value in bad:
                self.assertFalse(expect.accepts(wanted, value),
                                 (wanted, value))


class Table(unittest.TestCase):

    def test_table(self):
        def result(category, verdict, needs=False, called=False):
            return {'category': category, 'verdict': verdict,
                    'needs_call': needs, 'called': called}

        runs = [('chat', 1, [result('single', 'right', True, True),
                             result('single', 'wrong', True, True),
                             result('sums', 'false')]),
                ('chat', 2, [result('single', 'wrong', True, False),
                             result('sums', 'right')])]

        with tempfile.TemporaryDirectory() as d:
            files = []
            for i, (name, seed, results) in enumerate(runs):
                files.append(os.path.join(d, f'{i}.json'))
                with open(files[-1], 'w') as f:
                    json.dump({'name': name, 'seed': seed,
                               'results': results}, f)

            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                ordinary_table.main(files)

        self.assertEqual(stdout.getvalue(), '\n'.join((
            '| chat | prompts | right | wrong | of them false '
            '| right, % (95 %) | calls right |',
            '| --- | ---: | ---: | ---: | ---: | ---: | ---: |',
            '| single | 3 | 1 | 2 | 0 | 33.3 (6.1-79.2) | 2 of 3 |',
            '| sums | 2 | 1 | 1 | 1 | 50.0 (9.5-90.5) |  |',
            '| **all** | 5 | 2 | 3 | 1 | 40.0 (11.8-76.9) | 2 of 3 |',
            '')))


def windows(text):
    """Yields the sequences of WORDS words of a text.  All numbers are the same
    word."""

    words = re.findall(r"[^\W\d]+(?:'[^\W\d]+)?|\d+", normal(text))
    words = ['0' if w.isdigit() else w for w in words]

    return zip(*(words[i:] for i in range(WORDS)))


def sequences(text):
    """Returns the sequences of a text, without those with less than three words
    that are no numbers, such as a day and a time."""

    return {s for s in windows(text) if s.count('0') <= WORDS - 3}


class Disjoint(unittest.TestCase):

    maxDiff = None

    def test_exempt(self):
        for id in GREETINGS:
            self.assertLess(len(PROMPTS[id].messages[-1]['content'].split()),
                            6, id)

    def test_shared(self):
        prompt = PROMPTS['single-reminder'].messages[-1]['content']
        words = prompt.split()

        for text, want in ((prompt, True), ('Hey! ' + prompt.upper(), True),
                           (' '.join(words[:4]), False),
                           (' '.join(words[:4] + ['x'] + words[4:8]), False)):
            self.assertEqual(disjoint.shared(
                [{'role': 'assistant', 'content': None},
                 {'role': 'user', 'content': text}]), want, text)

    def test_training_has_no_sequence_of_a_prompt(self):
        of = {}

        for p in SET.prompts:
            if p.id in GREETINGS:
                continue
            for m in p.messages:
                for s in sequences(m['content']):
                    of.setdefault(s, set()).add(p.id)

        found = set()

        for family in FAMILIES:
            for i in range(SAMPLES):
                _, _, messages = corpus.conversation(f'train-1-0-{i}',
                                                     [family])
                for m in messages:
                    for s in of.keys() & windows(m['content']):
                        found |= {(family, id, ' '.join(s)) for id in of[s]}

        self.assertEqual(sorted(found), [])


if __name__ == '__main__':
    unittest.main()
