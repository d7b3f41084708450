# Copyright (C) The nginx-dsa authors

"""Questions for a search tool: pages, ranking, and the passes that verify."""

import copy
import functools
import random
import re
import unittest
from unittest import mock

from tasks.task import CHAT, DISCARD, RETAIN, GoldFailed, play
from worlds.form import verify
from worlds.general.words import EVAL, TRAIN
from worlds.search import corpus as corpora
from worlds.search import policy, task
from worlds.search import question as q
from worlds.search.corpus import FACTS, Corpus, Entity, Reader
from worlds.search.engine import Engine


def made(part=TRAIN, seed=1):
    c = corpora.make(random.Random(seed), part)
    return c, Engine(c.pages), Reader(part)


class Pages(unittest.TestCase):

    def test_facts_are_read(self):
        """Each fact of an entity is on its page, in the words of its part."""

        for part in (TRAIN, EVAL):
            c, _, reader = made(part)
            for e in c.entities.values():
                found = {(f, v) for x, f, v in reader.facts(c.pages[e.name])
                         if x == e.name}
                self.assertLessEqual(set(e.facts.items()), found, e.name)

    def test_parts_are_disjoint(self):
        names = {part: {w for seed in range(3)
                        for x in made(part, seed)[0].entities
                        for w in x.split()} for part in (TRAIN, EVAL)}
        fixed = {'River', 'Guild', 'Star', 'Mill', 'The'}
        self.assertEqual(names[TRAIN] & names[EVAL], fixed)

        for f in FACTS.values():
            self.assertFalse(set(f.sentences[TRAIN]) & set(f.sentences[EVAL]))

        self.assertFalse(set(corpora.FILLER[TRAIN])
                         & set(corpora.FILLER[EVAL]))

    def test_from_seeds(self):
        self.assertEqual(made()[0].pages, made()[0].pages)
        self.assertNotEqual(made()[0].pages, made(seed=2)[0].pages)


class Search(unittest.TestCase):

    def test_ranking(self):
        engine = Engine({'Red Mill': 'The mill is old. It has a wheel.',
                         'Blue Mill': 'The mill is new.',
                         'Fish': 'A fish swims under the wheel of Red Mill.'})
        self.assertEqual([r['page'] for r in engine.search('red mill')],
                         ['Red Mill', 'Fish', 'Blue Mill'])
        self.assertEqual(engine.search('fish')[0], {
            'page': 'Fish',
            'snippet': 'A fish swims under the wheel of Red Mill.'})
        self.assertEqual(engine.search('zebra ?!'), [])
        self.assertEqual(len(engine.search('mill', n=1)), 1)

    def test_own_page_is_first(self):
        c, engine, _ = made(EVAL)
        found = sum(engine.search(x)[0]['page'] == x for x in c.entities)
        self.assertGreater(found, 0.95 * len(c.entities))

    def test_tools(self):
        t = task.make('eval-1', 1)
        self.assertIn('no such page', t.call('open_page', '{"page": "x"}'))
        self.assertIn('missing argument', t.call('search', '{}'))


class Passes(unittest.TestCase):
    """Each pass removes what it is for, in a corpus made by hand."""

    def setUp(self):
        self.entities = {
            'Ada Cor': Entity('person', 'Ada Cor', {'born_in': 'Balen',
                                                    'born': 1800}),
            'Bela Cor': Entity('person', 'Bela Cor', {'born_in': 'Dunen',
                                                      'born': 1800}),
            'Balen': Entity('village', 'Balen', {'on_river': 'Fen River'}),
            'Dunen': Entity('village', 'Dunen', {'on_river': 'Fen River'}),
            'Fen River': Entity('river', 'Fen River', {'length': 50})}
        self.pages = {
            'Ada Cor': 'Ada Cor was born in Balen. '
                       'Ada Cor was born in the year 1800.',
            'Bela Cor': 'Bela Cor was born in Dunen. '
                        'Bela Cor was born in the year 1800.',
            'Balen': 'Balen lies on the Fen River.',
            'Dunen': 'Dunen lies on the Fen River.',
            'Fen River': 'The Fen River is 50 kilometres long.'}
        self.question = q.Question(
            'person', 'Ada Cor', [], ['born_in', 'on_river', 'length'],
            ['Balen', 'Fen River', 50], 'What is the length?')

    def removed(self):
        corpus = Corpus(TRAIN, self.entities, self.pages)
        engine, reader = Engine(self.pages), Reader(TRAIN)
        return [p.__name__ for p in q.PASSES
                if not p(corpus, engine, reader, self.question,
                         random.Random(0))]

    def test_kept(self):
        self.question.text = 'Where does it end?'
        self.assertEqual(self.removed(), [])

    def test_not_found(self):
        del self.pages['Balen']
        self.assertIn('is_found', self.removed())

    def test_not_true(self):
        self.entities['Fen River'].facts['length'] = 51
        self.assertIn('is_true', self.removed())

    def test_not_unique(self):
        self.question.described = [('born', 1800)]
        self.assertIn('is_unique', self.removed())
        self.question.described += [('born_in', 'Balen')]
        self.assertNotIn('is_unique', self.removed())

    def test_disputed(self):
        self.pages['Dunen'] += ' An older page has it otherwise: Ada Cor ' \
            'was born in Dunen.'
        self.assertEqual(self.removed()[0], 'is_undisputed')

    def test_easy(self):
        """Questions that one or two pages answer are not hard."""

        river = self.question
        self.question = q.Question('river', 'Fen River', [], ['length'], [50],
                                   'What is the length of the Fen River?')
        self.assertEqual(self.removed(), ['is_hard'])
        self.question = q.Question('village', 'Balen', [],
                                   ['on_river', 'length'], ['Fen River', 50],
                                   'Where?')
        self.assertEqual(self.removed(), ['is_hard'])

        # the snippets of a search may have the answer, too

        river.text = 'kilometres of the river'
        self.assertEqual(self.removed(), ['is_hard'])


class Tasks(unittest.TestCase):

    def test_levels(self):
        """The gold policy is right in all modes, and the answer is what the
        entities have."""

        for level in range(1, len(task.LEVELS) + 1):
            for seed in ('eval-2', 'train-2'):
                corpus, _, question = task.question_of(seed, level)
                depth, breadth = task.LEVELS[level - 1]
                self.assertEqual((len(question.chain),
                                  len(question.described)), (depth, breadth))
                x = question.start
                for f in question.chain:
                    x = corpus.entities[x].facts[f]

                for mode in (RETAIN, DISCARD, CHAT):
                    messages = play(task.make(seed, level), mode)
                    self.assertIn(str(x), messages[-1]['content'])

                wrong = copy.deepcopy(messages)
                wrong[-1]['content'] = f'It is {x + 1}.'
                self.assertIsNotNone(verify(task.make(seed, level), wrong))

                if breadth:
                    self.assertNotIn(question.start, question.text)

    def test_levels_are_harder(self):
        """The bounded policy falls by 30 points, and it is right if it is
        never distracted and has enough calls."""

        # a question is made once for all of the policy's bounds

        question_of = functools.lru_cache(maxsize=None)(task.question_of)

        for module in (task, policy):
            patched = mock.patch.object(module, 'question_of', question_of)
            patched.start()
            self.addCleanup(patched.stop)

        def share(level):
            return sum(task.make(seed, level).turns[0].check(
                policy.attempt(seed, level, random.Random(seed)), []) is None
                for seed in (f'train-{n}' for n in range(40))) / 40

        self.assertGreater(share(1) - share(len(task.LEVELS)), 0.3)

        with mock.patch.multiple(policy, CALLS=99, DISTRACTED=0):
            self.assertEqual(share(1), 1)
            self.assertEqual(share(5), 1)

        with mock.patch.multiple(policy, CALLS=5, DISTRACTED=0):
            self.assertEqual(share(1), 0)

    def test_gold_reads_the_pages(self):
        """Without the page of a step, the gold policy fails."""

        t = task.make('eval-3', 1)
        t.tools['open_page'].run = lambda a: {'text': ''}
        with self.assertRaises((GoldFailed, StopIteration, RuntimeError)):
            play(t, CHAT)

    def test_rubrics(self):
        corpus, _, question = task.question_of('eval-4', 1)
        page = question.values[-2]
        names = [name for name, _ in task.RUBRICS]

        def score(answer):
            s = task.score(corpus, question, answer)
            self.assertEqual(sorted(s), sorted(names))
            return s

        good = score(f'It is {question.answer}, according to {page}.')
        self.assertEqual(set(good.values()), {2})
        self.assertEqual(score('It is 987654.')['factual'], 0)
        self.assertEqual(score('It is 987654.')['complete'], 0)
        self.assertEqual(score(f'It is {question.answer}.')['sourced'], 0)
        late = score(f'Good question. Let me think. Well. I have searched. '
                     f'It is {question.answer}, see {page}.')
        self.assertEqual((late['direct'], late['brief']), (0, 0))
        other = next(str(v) for e in corpus.entities.values()
                     for v in e.facts.values() if type(v) is int
                     and not re.search(rf'\b{v}\b', corpus.pages[page]))
        two = score(f'It is {other} or {question.answer} ({page}).')
        self.assertEqual(two['complete'], 1)


if __name__ == '__main__':
    unittest.main()
