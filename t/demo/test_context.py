# Copyright (C) The nginx-dsa authors

"""What is done when the context of a search task fills up."""

import contextlib
import copy
import io
import json
import os
import tempfile
import unittest
import xml.etree.ElementTree as ET

from worlds import chart, context
from worlds.search import task as search
from worlds.search.searcher import Searcher


class Script:
    """Answers with calls, each as long as it is told, and records the
    requests."""

    def __init__(self, prompts, answer_after):
        self.prompts = prompts
        self.answer_after = answer_after
        self.seen = []

    def chat(self, request):
        self.seen.append(copy.deepcopy(request))
        n = len(self.seen)
        message = {'role': 'assistant', 'content': f'text {n}'}

        if n < self.answer_after and 'tools' in request:
            message['tool_calls'] = [{
                'id': f'c{n}', 'type': 'function', 'function': {
                    'name': 'search', 'arguments': f'{{"query": "q{n}"}}'}}]

        return {'choices': [{'message': message, 'finish_reason': 'stop'}],
                'usage': {'prompt_tokens': self.prompts[min(
                    n, len(self.prompts)) - 1], 'completion_tokens': 7}}


def rounds(request):
    """Returns the queries of the calls that a request has."""

    return [json.loads(c['function']['arguments'])['query']
            for m in request['messages'] for c in m.get('tool_calls', ())]


class Strategies(unittest.TestCase):

    def roll(self, strategy, prompts, answer_after=8, window=100):
        script = Script(prompts, answer_after)
        run = context.rollout(search.make('eval-1', 1), strategy, script.chat,
                              window, 1)
        return run, script.seen

    def test_none(self):
        run, seen = self.roll('none', [10, 50, 85, 100, 101])
        self.assertEqual((run.why, run.steps, run.tokens, run.managed),
                         ('the context is full', 5, 35, 0))
        self.assertEqual(rounds(seen[-1]), ['q1', 'q2', 'q3', 'q4'])

    def test_threshold(self):
        """Nothing is done up to 80 % of the window."""

        for used, managed in ((80, 0), (81, 1)):
            run, _ = self.roll('discard_all', [10, used, 10], 5)
            self.assertEqual(run.managed, managed)

    def test_discard_all(self):
        run, seen = self.roll('discard_all', [10, 40, 60, 81, 20])
        self.assertEqual(rounds(seen[3]), ['q1', 'q2', 'q3'])
        self.assertEqual(rounds(seen[4]), [])
        self.assertEqual(rounds(seen[5]), ['q5'])
        self.assertEqual((run.answered, run.steps), (True, 8))

    def test_discard_75(self):
        run, seen = self.roll('discard_75', [10, 40, 60, 81, 20], 7)
        self.assertEqual(rounds(seen[4]), ['q4'])
        run, seen = self.roll('discard_75', [1] * 6 + [90, 1], 10)
        self.assertEqual(rounds(seen[7]), ['q7'])
        self.assertEqual(rounds(seen[6]), [f'q{n}' for n in range(1, 7)])

    def test_summary(self):
        run, seen = self.roll('summary', [10, 85, 20])
        self.assertEqual(seen[2]['messages'][-1],
                         {'role': 'user', 'content': context.SUMMARIZE})
        self.assertEqual(rounds(seen[2]), ['q1', 'q2'])
        self.assertNotIn('tools', seen[2])
        self.assertEqual(rounds(seen[3]), [])
        self.assertRegex(seen[3]['messages'][-1]['content'],
                         r'\n\nSummary so far: text 3\Z')
        self.assertEqual(run.steps, len(seen))

        # the next summary replaces the first one

        _, seen = self.roll('summary', [10, 85, 20, 85, 20])
        self.assertEqual(seen[-1]['messages'][1]['content'].count('Summary'),
                         1)

    def test_parallel(self):
        """The shortest rollout with an answer counts, and the steps of all."""

        scripts = [Script([10], n) for n in (5, 3, 9, 4)]
        current = []

        def make():
            current.append(scripts[len(current)])
            return search.make('eval-1', 1)

        run, different = context.measure(
            make, 'parallel', lambda r: current[-1].chat(r), 100, 1)
        self.assertEqual((run.answered, run.steps, len(run.path)),
                         (True, 5 + 3 + 9 + 4, 2))
        self.assertEqual(different, 4)
        seeds = [s.seen[0]['seed'] for s in scripts]
        self.assertEqual(len(set(seeds)), 4)

    def test_endless(self):
        run, _ = self.roll('discard_all', [10], 10 ** 6)
        self.assertEqual((run.why, run.steps),
                         ('too many steps', context.MOST_STEPS))


class Program(unittest.TestCase):

    def test_searcher(self):
        """Without distraction it is right, and has no memory."""

        corpus, _, question = search.question_of('eval-1', 2)
        s = Searcher(question, corpus.part, sorted(corpus.pages), 0)
        t = search.make('eval-1', 2)
        run = context.rollout(t, 'none', s.chat, 10 ** 6, 1)
        self.assertIsNone(run.why)
        self.assertEqual(run.steps, 2 * len(question.chain) + 1)

        first = {'messages': [{'role': 'user', 'content': question.text}],
                 'seed': 1}
        self.assertEqual(s.chat(first), s.chat(first))

    def test_strategies_help(self):
        """On tasks that overflow the window, each strategy is right more often
        than none, and parallel rollouts differ."""

        options = context.parse(['--tasks', '6', '--window', '3000',
                                 '--strategy', 'none,summary,discard_75'])
        results, _ = context.run(options)
        right = {s: sum(r.why is None for r in runs)
                 for s, runs in results.items()}
        self.assertGreater(right['summary'], right['none'])
        self.assertGreater(right['discard_75'], right['none'])
        self.assertTrue(any(r.managed for r in results['summary']))

    def test_command(self):
        with tempfile.TemporaryDirectory() as d:
            name = os.path.join(d, 'x.svg')
            with contextlib.redirect_stdout(io.StringIO()) as out:
                self.assertEqual(context.main([
                    '--tasks', '1', '--strategy', 'none,parallel', '--draw',
                    name]), 0)
            self.assertRegex(out.getvalue(),
                             r'of 4 parallel rollouts of a task, 4\.00 differ')
            root = ET.parse(name).getroot()
            self.assertIn('parallel', [t.text for t in root.iter(
                '{http://www.w3.org/2000/svg}text')])

        with contextlib.redirect_stderr(io.StringIO()), \
                self.assertRaises(SystemExit):
            context.parse(['--strategy', 'forget'])

    def test_chart(self):
        root = ET.fromstring(chart.scatter([('a<b', 10, 50), ('c', 0, 100)],
                                           'x', 'y'))
        y = [float(c.get('cy')) for c in root.iter(
            '{http://www.w3.org/2000/svg}circle')]
        self.assertGreater(y[0], y[1])


if __name__ == '__main__':
    unittest.main()
