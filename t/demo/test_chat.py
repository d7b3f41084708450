# Copyright (C) The nginx-dsa authors

"""Conversations of several turns, and the mix of all families."""

import json
import os
import random
import re
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path.insert(0, os.path.join(ROOT, 'demo'))

from tasks import memory, mix, refer, rules              # noqa: E402
from tasks.said import Said                              # noqa: E402
from tasks.task import CHAT, DISCARD, RETAIN, play       # noqa: E402
from tasks.tools_box import ROLES                        # noqa: E402


N = 1000


def chats():
    return [mix.task_of('chat', f'test-{i}') for i in range(N)]


def fault(value, schema):
    """Returns why a value does not fit a JSON schema, or ''."""

    kind = {'string': str, 'integer': int, 'number': (int, float),
            'boolean': bool, 'array': list,
            'object': dict}.get(schema.get('type'), object)

    if not isinstance(value, kind):
        return f'{value!r} is no {schema["type"]}'

    if value not in schema.get('enum', (value,)):
        return f'{value!r} is not one of {schema["enum"]}'

    if 'properties' not in schema:
        return ''

    inner = schema['properties']
    names = [n for n in schema.get('required', ()) if n not in value] + \
        [n for n in value if n not in inner]

    return f'missing or unknown: {names}' if names else next(
        filter(None, (fault(v, inner[n]) for n, v in value.items())), '')


def role(name):
    return next((r for r in ROLES if name in ROLES[r].names), name)


class Gold(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.chats = chats()
        cls.played = [(task, play(task, task.modes[0]))
                      for task in cls.chats]

    def test_plays_in_every_mode(self):
        seen = set()

        for i in range(N):
            for mode in self.chats[i].modes:
                task = mix.task_of('chat', f'test-{i}')
                messages = play(task, mode)
                thoughts = [m.get('reasoning_content', '') for m in messages
                            if m['role'] == 'assistant']
                seen.add(mode)
                self.assertEqual(all(thoughts), mode != CHAT)
                self.assertEqual(any(thoughts), mode != CHAT)

        self.assertEqual(seen, {RETAIN, DISCARD, CHAT})

    def test_two_to_five_turns_that_fit(self):
        for task, messages in self.played:
            self.assertEqual((task.family, task.kind), ('chat', 'multi'))
            self.assertIn(len(task.turns), range(2, 6))

            characters = len(json.dumps(task.tool_list())) + sum(
                len(m['content']) + len(m.get('reasoning_content', ''))
                + len(json.dumps(m.get('tool_calls', ''))) for m in messages)
            self.assertLess(300 + characters / 4, 3600)

    def test_same_seed_same_task(self):
        for i in range(0, N, 10):
            again = mix.task_of('chat', f'test-{i}')
            self.assertEqual(play(again, again.modes[0]), self.played[i][1])
            self.assertEqual(again.tool_list(), self.chats[i].tool_list())
            self.assertEqual(again.modes, self.chats[i].modes)

    def test_wrong_answers_are_refused(self):
        for task in self.chats:
            for turn in task.turns:
                self.assertIsNotNone(turn.check('', []), turn.user)
                self.assertIsNotNone(turn.check('Zebra 7777', []), turn.user)

    def test_tools_do_not_overlap(self):
        tooled = 0

        for task, messages in self.played:
            roles = [role(name) for name in task.tools]
            self.assertEqual(len(roles), len(set(roles)), roles)
            tooled += bool(roles)

            called = {c['function']['name'] for m in messages
                      for c in m.get('tool_calls', ())}
            self.assertLessEqual(called, set(task.tools))

            # with a calculator there is no written-out arithmetic

            if 'calculator' in roles:
                for m in messages:
                    self.assertNotIn(': ones ',
                                     m.get('reasoning_content', ''))

        self.assertGreater(tooled, N / 5)

    def test_turns_of_all_kinds(self):
        users = [t.user for task in self.chats for t in task.turns]
        systems = [task.system for task in self.chats]

        for part in (r'[Ww]hat (is|\'s) my name', 'my first message',
                     'my first question about', 'add \\d+', 'say that again',
                     'how many messages', 'my last message', 'spell',
                     'what do you know about', 'from the store'):
            self.assertTrue(any(re.search(part, u, re.I) for u in users),
                            part)

        for part in ('', 'capital letters', 'end with|End every',
                     'Begin every', 'Your name is', 'The user is called',
                     'brief'):
            self.assertTrue(any(re.search(part, s) for s in systems), part)

        self.assertGreater(systems.count(''), N / 4)

    def test_answers_follow_the_system_prompt(self):
        followed = 0

        for task, messages in self.played:
            answers = [m['content'] for m in messages
                       if m['role'] == 'assistant' and not m.get('tool_calls')]
            self.assertEqual(len(answers), len(task.turns))

            m = re.match(r'End every answer with the word (\w+)', task.system)

            for answer in answers:
                if m:
                    self.assertEqual(re.findall(r'\w+', answer)[-1].lower(),
                                     m[1])
                    followed += 1
                elif 'capital letters' in task.system:
                    self.assertEqual(answer, answer.upper())
                    followed += 1

        self.assertGreater(followed, 50)


class Rules(unittest.TestCase):

    def turn(self, rule):
        said = Said('Say blue.', 'The user wants blue.', 'It is blue.',
                    lambda answer: None if answer in (
                        'It is blue.', 'IT IS BLUE.', 'It is blue') else 'no')
        return rule.turn(said.turn())

    def judge(self, rule, right, wrong):
        turn = self.turn(rule)
        step = next(turn.gold(RETAIN))
        self.assertIsNone(turn.check(step.content, []))
        self.assertTrue(step.reasoning.startswith('The user wants blue.'))
        self.assertEqual(next(turn.gold(CHAT)).reasoning, '')

        for answer in right:
            self.assertIsNone(turn.check(answer, []), answer)

        for answer in wrong:
            self.assertIsNotNone(turn.check(answer, []), answer)

    def rule(self, draw, word=None):
        for i in range(1000):
            rule = draw(random.Random(i))
            if word is None or f' {word}.' in rule.system:
                return rule

    def test_capitals(self):
        self.judge(self.rule(rules.capitals), ['IT IS BLUE.'],
                   ['It is blue.', 'IT IS RED.'])

    def test_ends(self):
        self.judge(self.rule(rules.ends, 'over'),
                   ['It is blue. Over.', 'It is blue. OVER!'],
                   ['It is blue.', 'Over. It is blue.', 'It is red. Over.',
                    'It is blueover', ''])

    def test_begins(self):
        self.judge(self.rule(rules.begins, 'well'),
                   ['Well. It is blue.', 'WELL, It is blue.'],
                   ['It is blue.', 'It is blue. Well.', 'Well. It is red.',
                    'WellIt is blue.', 'Well'])

    def test_reports_a_broken_rule(self):
        turn = self.turn(self.rule(rules.ends, 'over'))
        self.assertIn('system prompt', turn.check('It is blue.', []))
        self.assertEqual(turn.check('It is red. Over.', []), 'no')

    def test_plain(self):
        self.judge(self.rule(rules.plain), ['It is blue.'], ['It is red.'])


class Refer(unittest.TestCase):

    def setUp(self):
        self.rng = random.Random(4)

    def judge(self, said, right, wrong):
        for answer in right + [said.answer]:
            self.assertIsNone(said.wrong(answer), answer)

        for answer in wrong:
            self.assertIsNotNone(said.wrong(answer), answer)

    def test_quotes(self):
        users = ['What is a KV cache?', 'Spell kite.']
        self.judge(refer.first(self.rng, users), ['"What is a KV cache?"'],
                   ['Spell kite.', 'What is a cache?'])
        self.judge(refer.just_said(self.rng, users), ['spell kite'],
                   ['What is a KV cache?', 'Spell'])

    def test_about(self):
        self.judge(refer.first_about(self.rng, 'opposites'),
                   ['You asked for opposites.'], ['It was about numbers.'])

    def test_how_many(self):
        self.judge(refer.how_many(self.rng, ['a b', 'c d', 'e']),
                   ['3', 'It was three messages.'], ['2', 'four', 'many'])

    def test_sums(self):
        for i in range(300):
            rng = random.Random(i)
            n = rng.randrange(10000)
            said = refer.go_on(rng, n)
            k = int(re.search(r'\d+', said.user)[0])
            words = said.user.lower()

            if re.search('times|multiply', words):
                right = n * k
            elif re.search('subtract|take|less|minus|without', words):
                right = n - k
            else:
                right = n + k

            self.judge(said, [str(right), f'It makes {right}.'],
                       [str(right + 1), f'{right} {n + right + 2}', 'much'])
            self.assertIn(str(n), said.thought)

    def test_facts_not_stated(self):
        known = {f.what for f in memory.FACTS[1:]}
        said = refer.untold(self.rng, known)
        self.judge(said, ["I don't know your name."], ['You are Ada.'])


class Mix(unittest.TestCase):

    FAMILIES = {'talk', 'chat', 'arithmetic', 'arithmetic_story', 'lookup',
                'lookup_long', 'tools_single', 'tools_none', 'tools_multi',
                'tools_error', 'trip_facts', 'trip_short', 'trip',
                'daily_tool', 'daily_many', 'daily_error', 'daily_none',
                'daily_turns', 'daily_talk', 'daily_sums', 'daily_text',
                'daily_events', 'daily_format', 'daily_copy', 'daily_parts',
                'daily_system', 'daily_open'}

    def test_families(self):
        self.assertEqual(set(mix.FAMILIES), self.FAMILIES)
        self.assertEqual(set(mix.WEIGHTS), self.FAMILIES)
        self.assertEqual(set(mix.TOKENS), self.FAMILIES)
        self.assertTrue(all(w > 0 for w in mix.WEIGHTS.values()))

    def test_every_family_plays(self):
        for family in mix.FAMILIES:
            for i in range(100):
                task = mix.task_of(family, f'eval-{i}')
                self.assertEqual(task.family, family)
                self.assertIn(task.kind, ('talk', 'single', 'multi', 'plan'))
                self.assertIn(RETAIN, task.modes)

                for mode in task.modes:
                    messages = play(mix.task_of(family, f'eval-{i}'), mode)
                    self.assertEqual(messages[-1]['role'], 'assistant')

    def test_calls_and_sentences_are_well_formed(self):
        """Calls fit the schemas of their tools, also in training, where names
        are composed; nothing is left of a template, and no mark or blank is
        doubled in a text that is not code."""

        for family in mix.FAMILIES:
            for i in range(40):
                task = mix.task_of(family, f'train-form-{i}')
                functions = {t['function']['name']: t['function']
                             for t in task.tool_list()}

                for m in play(task, RETAIN):
                    for call in m.get('tool_calls') or ():
                        f = call['function']
                        self.assertEqual(fault(
                            json.loads(f['arguments']),
                            functions[f['name']].get('parameters', {})),
                            '', (family, i, f))

                    if m['role'] == 'assistant':
                        self.assertNotRegex(
                            m['content'] or '',
                            r'\{\w+\}|\[\w+\||(?<!\.)\.\.(?!\.)|,,'
                            r'|[a-z] (?:Do|What|Anything|Shall) [a-z]+ ',
                            (family, i))

    def test_training_and_evaluation_are_disjoint(self):
        for family in ('arithmetic', 'arithmetic_story', 'lookup',
                       'lookup_long', 'trip_short', 'trip'):
            users = [{t.user for i in range(300)
                      for t in mix.task_of(family, f'{use}-{i}').turns}
                     for use in ('train', 'eval')]
            self.assertEqual(users[0] & users[1], set(), family)

    def test_families_follow_the_weights(self):
        rng = random.Random(1)
        n = 20000
        drawn = [mix.draw_family(rng) for _ in range(n)]
        total = sum(mix.WEIGHTS.values())

        for family, weight in mix.WEIGHTS.items():
            self.assertAlmostEqual(drawn.count(family) / n, weight / total,
                                   delta=0.01)

    def test_a_seed_is_a_task(self):
        for family in mix.FAMILIES:
            a, b = (mix.task_of(family, 'x') for _ in 'ab')
            self.assertEqual(play(a, RETAIN), play(b, RETAIN))
            c = mix.task_of(family, 'y')
            self.assertNotEqual([t.user for t in a.turns],
                                [t.user for t in c.turns])


if __name__ == '__main__':
    unittest.main()
