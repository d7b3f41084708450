# Copyright (C) The nginx-dsa authors

"""Thoughts that go through the sentences of a text."""

import random
import re
import unittest

from tasks import mix, scan
from tasks.task import play


STEP = re.compile(r'"([^"]*)": (yes|no)\.')


class Sentences(unittest.TestCase):
    def test_division(self):
        self.assertEqual(
            scan.sentences('Dr. Novak sees dogs. Ask J. Silva! Is it 3.5? Yes'),
            ['Dr. Novak sees dogs.', 'Ask J. Silva!', 'Is it 3.5?', 'Yes'])
        self.assertEqual(scan.sentences('Prices:\n- tea: 2\n* milk: 1\n\n'
                                        '1. first\n2) second'),
                         ['Prices:', 'tea: 2', 'milk: 1', 'first', 'second'])
        self.assertEqual(scan.sentences(' \n'), [])


class Through(unittest.TestCase):
    said = ['It opens at 10.', 'On Thursdays it closes at 21.', 'Dogs wait.']

    def test_ends_after_the_last_that_fits(self):
        self.assertEqual(
            scan.through(self.said, 'Until when?', {1}),
            '"Until when?" "It opens at 10.": no. '
            '"On Thursdays it closes at 21.": yes.')

    def test_whole(self):
        self.assertEqual(scan.through(self.said, 'Q', {0}, True).count(': '),
                         3)
        self.assertEqual(
            STEP.findall(scan.through(self.said, 'Q', ())),
            [(s, 'no') for s in self.said])

    def test_what_cannot_be_quoted(self):
        self.assertEqual(scan.through(['a "b" c'], 'Q', {0}), '')
        self.assertEqual(scan.through(self.said, 'Who is "B"?', {0}), '')
        self.assertEqual(scan.through(['x' * 1000], 'Q', {0}), '')
        self.assertEqual(scan.through([], 'Q', ()), '')


class Looked(unittest.TestCase):
    said = ['Ann lives in Rome.', 'Bob lives in Oslo since May.', 'It rains.']

    def looked(self, thoughts, *more, **named):
        return scan.looked(random.Random(1), self.said, 'Where is Bob?',
                           thoughts, *more, **named)

    def test_goes_to_what_was_quoted_and_keeps_the_end(self):
        self.assertEqual(
            self.looked('Bob? Here: "Bob lives in Oslo since May" So Oslo.'),
            '"Where is Bob?" "Ann lives in Rome.": no. '
            '"Bob lives in Oslo since May.": yes. So Oslo.')

    def test_a_word_is_no_quotation(self):
        self.assertEqual(self.looked('It is "Oslo".'), 'It is "Oslo".')

    def test_the_question_is_not_repeated(self):
        self.assertEqual(
            self.looked('"Ann lives in Rome." They said: "Where is Bob?" So?'),
            '"Where is Bob?" "Ann lives in Rome.": yes. So?')

    def test_what_is_not_there(self):
        found = self.looked('I search for Bob.', False)
        self.assertEqual([d for _, d in STEP.findall(found)], ['no'] * 3)
        self.assertFalse(found.endswith('.": no.'))


class Families(unittest.TestCase):
    """The thoughts of tasks repeat what is there, in its order."""

    def test_sentences_are_those_of_the_message(self):
        for family in ('daily_text', 'daily_events', 'daily_system'):
            scanned = 0

            for n in range(150):
                messages = play(mix.task_of(family, f'train-scan{n}'),
                                'retain')
                there = ' '.join(
                    ' '.join(m['content'] for m in messages
                             if m['role'] in ('system', 'user')).split())

                for m in messages:
                    at = -1

                    for said, _ in STEP.findall(m.get('reasoning_content')
                                                or ''):
                        place = there.find(said)
                        self.assertGreaterEqual(place, 0, said)
                        scanned += place > at
                        at = place

            self.assertGreater(scanned, 150, family)


if __name__ == '__main__':
    unittest.main()
