# Copyright (C) The nginx-dsa authors

"""Families with ordinary wording: how many prompts and wordings they have,
what is held out from training, and that their checks reject wrong answers."""

import json
import os
import re
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path.insert(0, os.path.join(ROOT, 'demo'))

from tasks import (daily_chain, daily_error, daily_fix,     # noqa: E402
                   daily_found, daily_lack, daily_none, daily_parts,
                   daily_records, daily_rough, daily_sums, daily_talk,
                   daily_text, mix, names, open_details, open_words, parts,
                   spoken, text_docs, text_frame, text_more, uses_code, weigh,
                   words)
from tasks.daily import TOPICS, states                      # noqa: E402
from tasks.parts import Draw, Split                         # noqa: E402
from tasks.phrase import expand                             # noqa: E402
from tasks.task import RETAIN, Call, play, value_of         # noqa: E402


N = 5000
LEAST = 2000

# first messages, and of them skeletons: without names, numbers and quotes

DAILY = {'daily_tool': 2500, 'daily_many': 4000, 'daily_error': 2000,
         'daily_none': 2500, 'daily_turns': 1500, 'daily_talk': 800,
         'daily_sums': 1200, 'daily_text': 2000, 'daily_events': 4000,
         'daily_format': 2500, 'daily_parts': 3000, 'daily_system': 1200}

LISTS = {name: value for name, value in vars(names).items()
         if isinstance(value, Split)}
NAMES = names.FIRST + names.PLACES + names.LAST
PARTS_OF_PLACES = {w for name in names.PLACES if ' ' in name
                   for w in name.split()}
LOWER = frozenset(names.NOUNS + names.ADJECTIVES)

# names that are words, too

WORDS = '''Bath Cook Hall Hunt June Male Nice Park Price Reading Said Split
Wall White Will Winter Young'''.split()

WORD = re.compile(r'[A-Za-z][\w-]*')

# composed names of towns, whose words may be other names

TOWN = re.compile(r'(?:New|San|Port|Saint|Upper|El|Lake) [A-Z]\w+'
                  r'|[A-Z]\w+ (?:City|Bay|Falls|Springs)')


def tasks(family, use, n):
    return [mix.task_of(family, f'{use}-{i}') for i in range(n)]


def calls_of(task, messages):
    results = {m['tool_call_id']: m['content'] for m in messages
               if m['role'] == 'tool'}

    return [Call(c['function']['name'], json.loads(c['function']['arguments']),
                 results[c['id']])
            for m in messages for c in m.get('tool_calls', ())]


def skeleton(text, known):
    text = re.sub(r'"[^"]*"', 'Q', text)
    text = re.sub(r'\S*[\d@/]\S*', '0', text)

    return WORD.sub(lambda m: 'W' if m[0] in known else m[0], text)


class Variety(unittest.TestCase):

    def test_distinct_first_messages(self):
        known = {w for v in LISTS.values() for e in v for w in e.split()}

        for family, least in DAILY.items():
            users, skeletons = set(), set()

            for i in range(N):
                user = mix.task_of(family, f'train-{i}').turns[0].user

                if user not in users:
                    users.add(user)
                    skeletons.add(skeleton(user, known))

                # more tasks only add to both

                if len(users) >= LEAST and len(skeletons) >= least:
                    break

            self.assertGreaterEqual(len(users), LEAST, family)
            self.assertGreaterEqual(len(skeletons), least, family)

    def test_long_word_lists(self):
        for name, least in (('FIRST', 500), ('LAST', 250), ('PLACES', 380),
                            ('PRODUCTS', 130), ('TOPICS', 190),
                            ('GOODS', 120), ('STEMS', 120)):
            self.assertGreaterEqual(len(LISTS[name]), least, name)

    def wordings(self, texts, what):
        found = {expand(Draw(i), t) for t in texts for i in range(60)}
        self.assertGreaterEqual(len(found), 6, what)

    def test_answers_have_wordings(self):
        for topic, kinds in TOPICS.items():
            for kind in kinds:
                self.wordings(kind.answers, kind.want)

        for subject in daily_talk.SUBJECTS:
            self.wordings(subject.answers, subject.what)

        for text in (daily_talk.ADMIT, daily_error.SORRY, daily_error.NONE,
                     daily_lack.ASK, daily_none.REFUSE, daily_none.ALONE,
                     daily_sums.DECLINE, text_frame.MISSING,
                     daily_parts.NOT_KNOWN, daily_parts.NOT_TOLD,
                     daily_parts.GREETED, daily_parts.WELCOME,
                     daily_parts.ENDED, daily_fix.FINE, daily_fix.ASK_BACK,
                     *daily_sums.SAY.values()):
            self.wordings(text.splitlines(), text)

        for what, _, _, answers in daily_text.FACTS:
            self.wordings(answers, what)

        for what, (_, answers) in text_docs.ASKS.items():
            self.wordings(answers, what)

    def test_documents(self):
        """Each question to a text accepts its answer and no other."""

        for i in range(300):
            rng = Draw(i, i % 2 == 0)
            _, asked, missing = rng.choice(text_docs.DOCS)(rng)

            for question in asked:
                answer = question.ask(rng)[2]
                self.assertIsNone(question.wrong(answer), answer)
                self.assertIsNotNone(question.wrong('Zebra 7777'))

            self.assertTrue(all(m.missing for m in missing))

    def test_a_slip_keeps_what_was_filled_in(self):
        for i in range(300):
            said = daily_rough.typed(Draw(i), 'Please tell me about {x} or '
                                     'anything that follows {y}.',
                                     x='Kowtow 12', y='Nuuk')
            self.assertIn('Kowtow 12', said)
            self.assertIn('Nuuk', said)

    def test_answers_of_the_same_prompt_differ(self):
        """Tasks with the same first message have different answers."""

        answers = {}

        for i in range(N):
            task = mix.task_of('daily_talk', f'train-{i}')
            step = next(task.turns[0].gold('chat'))
            answers.setdefault((task.system, task.turns[0].user),
                               []).append(step.content)

        repeated = [a for a in answers.values() if len(a) >= 5]
        self.assertGreater(len(repeated), 20)
        self.assertTrue(all(len(set(a)) > 1 for a in repeated))

    def test_tools_are_written_in_many_ways(self):
        seen, forms = {}, set()

        for task in tasks('daily_tool', 'train', 2000):
            for tool in task.tools.values():
                f = tool.function
                p = f.get('parameters', {})
                seen.setdefault('names', set()).add(f['name'])
                forms.add('described' if 'description' in f else 'bare')
                forms.add('required' if 'required' in p else 'no required')

                for schema in p.get('properties', {}).values():
                    forms.add(schema['type'])
                    forms |= {'enum'} & schema.keys()

            for m in play(task, RETAIN):
                if m['role'] == 'tool':
                    value = value_of(m['content'])
                    forms.add('result ' + type(value).__name__)

        self.assertGreater(len(seen['names']), 800)
        self.assertEqual(
            {'described', 'bare', 'required', 'no required', 'string',
             'integer', 'number', 'array', 'object', 'enum', 'result dict',
             'result list', 'result str'} - forms, set())


class HeldOut(unittest.TestCase):

    def test_parts_are_disjoint(self):
        for name, words_of in {**LISTS, 'PEOPLE': words.PEOPLE,
                               'THINGS': words.THINGS}.items():
            a, b = set(words_of.training), set(words_of.held_out)
            self.assertEqual(a & b, set(), name)
            self.assertEqual(a | b, set(words_of), name)
            self.assertGreater(len(b), len(words_of) / 8, name)

    def test_a_word_has_one_part_in_all_lists(self):
        for name, words_of in LISTS.items():
            self.assertEqual({parts.held_out(w) for w in words_of.held_out},
                             {True}, name)

    def test_templates_are_disjoint(self):
        for kinds in TOPICS.values():
            for kind in kinds:
                a, b = set(kind.asks.training), set(kind.asks.held_out)
                self.assertEqual(a & b, set(), kind.want)
                self.assertTrue(a and b, kind.want)

        for subject in daily_talk.SUBJECTS:
            self.assertTrue(subject.says.held_out)

    def words_of(self, use, family):
        """Returns the names that tasks have in their users' messages."""

        text = ' '.join(turn.user for task in tasks(family, use, 300)
                        for turn in task.turns)
        found = set(WORD.findall(TOWN.sub(' ', text)))

        return {w for w in (NAMES if family in DAILY else names.FIRST)
                if w in found and len(w) > 3
                and w not in PARTS_OF_PLACES and w not in WORDS
                and w.lower() not in LOWER}

    def test_evaluation_has_other_names(self):
        for family in (*DAILY, 'lookup', 'chat', 'tools_single',
                       'arithmetic_story', 'talk'):
            train = self.words_of('train', family)
            held = self.words_of('eval', family)

            self.assertEqual({w for w in train if parts.held_out(w)}, set(),
                             family)
            self.assertEqual({w for w in held if not parts.held_out(w)},
                             set(), family)

            self.assertTrue(train, family)
            self.assertTrue(held or family == 'daily_sums', family)

    def test_a_draw_keeps_its_part(self):
        for part in (True, False):
            rng = Draw('x', part).again('y')
            self.assertEqual({parts.held_out(rng.choice(names.FIRST))
                              for _ in range(50)}, {part})
            self.assertEqual({parts.held_out(w) for w in
                              rng.sample(names.PLACES, 40)}, {part})
            self.assertEqual({parts.held_out(w) for w in
                              rng.choices(names.GOODS, k=40)}, {part})


class Checks(unittest.TestCase):

    def test_gold_passes_and_wrong_answers_do_not(self):
        for family in DAILY:
            for i in range(150):
                task = mix.task_of(family, f'check-{i}')

                for mode in task.modes:
                    play(mix.task_of(family, f'check-{i}'), mode)

                for turn in task.turns:
                    self.assertIsNotNone(turn.check('', []), turn.user)
                    self.assertIsNotNone(turn.check('Zebra 7777', []),
                                         turn.user)

    def played(self, family, n):
        """Yields (task, turn, answer, calls) of tasks with one turn."""

        for i in range(n):
            task = mix.task_of(family, f'check-{i}')

            if len(task.turns) == 1:
                messages = play(task, RETAIN)
                results = {m['tool_call_id']: m['content'] for m in messages
                           if m['role'] == 'tool'}
                calls = [Call(c['function']['name'],
                              json.loads(c['function']['arguments']),
                              results[c['id']])
                         for m in messages for c in m.get('tool_calls', ())]

                yield task, task.turns[0], messages[-1]['content'], calls

    def test_another_answer_or_call_is_wrong(self):
        before = None

        for task, turn, answer, calls in self.played('daily_tool', 200):
            self.assertIsNone(turn.check(answer, calls))
            self.assertIsNotNone(turn.check(answer, []), turn.user)

            if before is not None:
                self.assertIsNotNone(turn.check(answer, before), turn.user)

            wrong = [Call(c.name, {k: 'Zebra' for k in c.arguments},
                          task.call(c.name, json.dumps(
                              {k: 'Zebra' for k in c.arguments})))
                     for c in calls]
            self.assertIsNotNone(turn.check(answer, wrong), turn.user)
            before = calls

    def test_an_action_is_done_once(self):
        found = 0

        for task, turn, answer, calls in self.played('daily_tool', 800):
            name = calls[0].name.lower()

            if re.search('timer|reminder', name) \
                    and not re.search('get|list|show|read|all', name):
                found += 1
                self.assertIsNotNone(turn.check(answer, calls + calls))

        self.assertGreater(found, 3)

    def test_gold_has_no_hidden_knowledge(self):
        """Numbers and names of an answer are in the request or in the
        results."""

        for task, turn, answer, calls in self.played('daily_tool', 300):
            seen = ' '.join([turn.user, task.system] + [
                c.result + json.dumps(c.arguments, ensure_ascii=False)
                for c in calls]).lower()

            for number in re.findall(r'\d{2,}', answer):
                if not re.search('count|how many', turn.user, re.I):
                    self.assertIn(number, seen, answer)

    def test_a_part_that_needs_another(self):
        """A call that should follow from a result must be made, and one that
        should not follow must not."""

        for make in (daily_chain.tell, daily_chain.condition,
                     daily_found.found, daily_found.toggle):
            for i in range(60):
                task = make(Draw(f'chain-{i}'))
                turn, = task.turns
                made = calls_of(task, play(make(Draw(f'chain-{i}')), RETAIN))

                if len(made) > 1:
                    answer = next(reversed(list(turn.gold('chat')))).content
                    self.assertIsNone(turn.check(answer, made))
                    self.assertIsNotNone(turn.check(answer, made[:1]))
                    self.assertIsNotNone(turn.check(answer,
                                                    made + made[1:]))

    def test_said_values(self):
        seen = dict(spoken.time(Draw(i)) for i in range(3000))

        for said, value in (('half past seven in the evening', '19:30'),
                            ('noon', '12:00'), ('7 pm', '19:00'),
                            ('quarter to twelve in the morning', '11:45'),
                            ('6:15 am', '06:15')):
            self.assertEqual(seen.get(said), value, said)

        for i in range(300):
            self.assertRegex(spoken.date(Draw(i))[1], r'^\d{4}-\d\d-\d\d$')

        self.assertIn(('six and a half', 6.5),
                      [spoken.halves(Draw(i), 3, 9) for i in range(300)])

    def test_thoughts_about_calls(self):
        """They name each tool up to the right one, and each parameter."""

        self.assertEqual(weigh.weighed(['a', 'b', 'c'], 'b'), 'a: no. b: yes.')
        self.assertEqual(weigh.weighed(['a', 'b']), 'a: no. b: no.')
        self.assertEqual(weigh.filled({'name': 'f'}, {}), 'no arguments')
        self.assertEqual(weigh.filled({'parameters': {'properties': {
            'city': {'type': 'string'}, 'days': {'type': 'integer'},
            'unit': {'type': 'string', 'enum': ['C', 'F']},
            'more': {'type': 'object', 'properties': {
                'tags': {'type': 'array'}, 'rain': {'type': 'boolean'}}}}}},
            {'city': 'Oslo', 'more': {'tags': ['x', 'y'], 'rain': False}}),
            'city: Oslo, days (integer): not said, unit (C, F): not said, '
            'tags (array): x, y, rain (boolean): false')

        for task in tasks('daily_open', 'train', 100):
            for message in play(task, RETAIN):
                for call in message.get('tool_calls', ()):
                    f = call['function']
                    self.assertIn(f'{f["name"]}: yes.',
                                  message['reasoning_content'])

    def test_questions_about_records(self):
        """The check of the largest of some records accepts its name and that
        of no other, and of a question for yes or no it accepts one."""

        others = 0

        for i in range(300):
            asked = daily_records.extreme(Draw(i, i % 2 == 0))
            self.assertIsNone(asked.wrong(asked.answer))

            for name, _ in asked.case.rows:
                if not states(asked.answer, name):
                    self.assertIsNotNone(asked.wrong(name), asked.answer)
                    others += 1

            asked = daily_records.whether(Draw(i, i % 2 == 0))
            self.assertIsNone(asked.wrong(asked.answer))

        self.assertGreater(others, 300)

    def test_values_without_their_names(self):
        self.assertEqual(open_details.parted('front_door'), ['front', 'door'])
        self.assertEqual(open_details.parted('FrontDoor'), ['Front', 'Door'])
        self.assertEqual(open_details.parted('FRONT-DOOR'), ['FRONT', 'DOOR'])

        for i in range(500):
            rng = Draw(i)
            trait = rng.choice(open_details.TIMES)
            self.assertRegex(open_details.draw(rng, trait)[1],
                             r'^(\d{4}-\d\d-\d\dT)?\d\d:\d\d$')

            # two of one unit would be taken for each other

            same = rng.choice([[t] * 2 for t in open_words.TRAITS if t.unit])
            twin = open_words.Trait('twin', same[0].kind, None, same[0].unit)
            self.assertIn(same[0].words, open_details.detail(
                rng, same[0], '7', [same[0], twin]))

    def test_statements(self):
        """The check of a question about plain statements accepts its answer,
        and neither another value of the message nor an evasion."""

        for i in range(600):
            rng = Draw(i, i % 2 == 0)
            asked = text_more.draw(rng)
            self.assertIsNone(asked.wrong(asked.answer), asked)
            self.assertIsNotNone(asked.wrong(''), asked)

            for quoted in re.findall(r'"([^"]*)"', asked.thoughts):
                self.assertIn(' '.join(quoted.split()), ' '.join(
                    ' '.join([*asked.text, asked.question]).split()))

            values = {w for w in asked.filled if w and w != asked.answer}
            passed = [w for w in values if asked.wrong(w) is None]

            self.assertLessEqual(len(passed), 1, asked)

    def test_sums_that_were_not_taught(self):
        declined = 0

        for task in tasks('daily_sums', 'train', 400):
            turn = task.turns[0]
            answer = next(turn.gold('chat')).content

            if not re.search(r'\d', answer) and not task.system:
                declined += 1
                self.assertIsNotNone(turn.check('It is 211014.', []))
                self.assertIsNotNone(turn.check(
                    'I do not know exactly, but it is 211014.', []))
                self.assertGreaterEqual(
                    len(''.join(re.findall(r'\d', turn.user))), 4)

        self.assertGreater(declined, 40)

    def test_feelings(self):
        sad = daily_talk.SUBJECTS[0].check

        self.assertIsNotNone(sad('Goodbye!', []))
        self.assertIsNotNone(sad("That's great!", []))
        self.assertIsNotNone(sad("I'm sorry. Goodbye!", []))
        self.assertIsNone(sad("I'm sorry to hear that.", []))

    def test_sql_is_read_only_and_bounded(self):
        table = uses_code.Table('t', ('a', 'b', 'c'), [(1, 2, 3)])

        self.assertEqual(table.query('SELECT b FROM t'), (['b'], [(2,)]))

        large = uses_code.Table('t', ('a',), [(i,) for i in range(40)])

        with self.assertRaisesRegex(ValueError, 'interrupted'):
            large.query('SELECT COUNT(*) FROM t a, t b, t c, t d, t e, t f')

        for sql in ('DROP TABLE t', 'ATTACH "/tmp/x" AS x', 'DELETE FROM t',
                    'PRAGMA database_list', 'SELECT * FROM nothing',
                    'SELECT randomblob(1000000000)', 'SELECT 1; SELECT 2',
                    'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 '
                    'FROM n) SELECT MAX(x) FROM n'):
            with self.assertRaises(ValueError, msg=sql):
                table.query(sql)


if __name__ == '__main__':
    unittest.main()
