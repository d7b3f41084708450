# Copyright (C) The nginx-dsa authors

"""Small talk: every gold answer is accepted, other answers are rejected, and
the facts about the project and the model are true."""

import glob
import json
import os
import random
import re
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path.insert(0, os.path.join(ROOT, 'demo'))

from tasks import memory, skills, story, talk, unknown   # noqa: E402
from tasks.facts import MODEL, PROJECT                   # noqa: E402
from tasks.manners import MANNERS                        # noqa: E402
from tasks.mix import task_of                            # noqa: E402
from tasks.task import CHAT, RETAIN, Call, play          # noqa: E402
from tasks.topics import WHAT                            # noqa: E402


TOPICS = {**MODEL, **MANNERS, **PROJECT}


def seeds(n):
    return (random.Random(f'test-{i}') for i in range(n))


def text(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as f:
        return f.read()


def find(draw, pattern):
    """Returns the first question and answer whose user text matches, and the
    match."""

    for rng in seeds(20000):
        said = draw(rng)
        m = re.search(pattern, said.user, re.IGNORECASE)
        if m:
            return said, m

    raise AssertionError(f'no user text matches {pattern}')


class Gold(unittest.TestCase):

    def test_plays(self):
        for i in range(5000):
            task = task_of('talk', f'test-{i}')
            self.assertEqual((task.family, task.kind), ('talk', 'talk'))
            self.assertEqual(set(task.modes), {RETAIN, CHAT})

            thinking = play(task, RETAIN)
            chat = play(task, CHAT)

            self.assertEqual(len(thinking), 2)
            self.assertIn('reasoning_content', thinking[1])
            self.assertNotIn('reasoning_content', chat[1])
            self.assertEqual(chat[1]['content'], thinking[1]['content'])
            self.assertLess(len(str(thinking)), 1000)

    def test_same_seed_same_task(self):
        for i in range(300):
            a, b = (play(task_of('talk', f's-{i}'), RETAIN) for _ in 'ab')
            self.assertEqual(a, b)

    def test_other_answers_are_refused(self):
        silent = 'We do not know that.'

        for i in range(3000):
            turn = task_of('talk', f'test-{i}').turns[0]
            right = next(turn.gold(CHAT)).content

            self.assertIsNone(turn.check(right, []))
            self.assertIsNotNone(turn.check('', []))
            self.assertIsNotNone(turn.check('Zebra 7777', []))
            self.assertIsNotNone(turn.check(right, [Call('f', {}, '1')]))

            if 'not know' not in right:
                self.assertIsNotNone(turn.check(silent, []), turn.user)

    def test_variety(self):
        users = {task_of('talk', f'test-{i}').turns[0].user
                 for i in range(3000)}
        self.assertGreater(len(users), 2000)


class Topics(unittest.TestCase):

    def test_answers_differ(self):
        self.assertGreaterEqual(len(TOPICS), 60)

        for one in TOPICS.values():
            ways = len(one.questions) + len(WHAT) * len(one.names)
            self.assertGreaterEqual(ways, 5, one.asks)

            for other in TOPICS.values():
                missing = one.missing(other.answer)
                if one is other:
                    self.assertIsNone(missing, one.asks)
                else:
                    self.assertIsNotNone(missing,
                                         f'{one.asks}: {other.answer}')

    def test_questions_differ(self):
        asked = {}

        for topic in TOPICS.values():
            for rng in seeds(300):
                user = topic.ask(rng)
                self.assertNotRegex(user, r'[][|{}]|  | $|^ | [?.!,]')
                first = asked.setdefault(user.lower().strip('.?!'), topic)
                self.assertIs(first, topic, user)

    def test_are_well_formed(self):
        for topic in TOPICS.values():
            self.assertRegex(topic.answer, r'[.!?]$')
            self.assertNotIn('  ', topic.answer)
            self.assertLess(len(topic.answer), 140)

    def test_model_is_the_one_of_config_json(self):
        c = json.loads(text('demo', 'train', 'config.json'))

        for about, n in (
                ('asks how many layers I have', c['num_hidden_layers']),
                ('asks how many experts I have', c['n_routed_experts']),
                ('asks how many experts I have', c['num_experts_per_tok']),
                ('asks how large my vocabulary is', c['vocab_size']),
                ('asks how long my context is',
                 c['max_position_embeddings']),
                ('asks how many tokens my attention selects',
                 c['index_topk'])):
            self.assertIn(f'{n:,}', MODEL[about].answer)

        self.assertIn(f'{round(parameters(c) / 1e6)} million',
                      MODEL['asks how large I am'].answer)

    def test_pages_agree_with_answers(self):
        pages = ''.join(text(os.path.relpath(page, ROOT)) for page in
                         [os.path.join(ROOT, 'README.md')] + glob.glob(
                             os.path.join(ROOT, 'docs', '**', '*.md'),
                             recursive=True))

        for topic in PROJECT.values():
            for name in re.findall(r'make [a-z]+|\b[A-Z]{4,}=\w+'
                                   r'|/v1/[a-z/]+|/[a-z]+z\b|\bdsa_\w+'
                                   r'|deepseek-[a-z]+|max_tokens',
                                   topic.answer):
                name = re.sub(r'^/v1/', '', name).rstrip('/')
                self.assertIn(name, pages, topic.asks)


def parameters(c):
    """Returns the number of parameters of the model of a config.json."""

    hidden, heads = c['hidden_size'], c['num_attention_heads']
    rope, nope = c['qk_rope_head_dim'], c['qk_nope_head_dim']
    attention = (hidden * c['q_lora_rank']
                 + c['q_lora_rank'] * heads * (rope + nope)
                 + hidden * (c['kv_lora_rank'] + rope)
                 + c['kv_lora_rank'] * heads * (nope + c['v_head_dim'])
                 + heads * c['v_head_dim'] * hidden)
    indexer = (c['q_lora_rank'] * c['index_n_heads'] * c['index_head_dim']
               + hidden * (c['index_head_dim'] + c['index_n_heads']))
    dense = 3 * hidden * c['intermediate_size']
    experts = 3 * hidden * c['moe_intermediate_size'] \
        * (c['n_routed_experts'] + c['n_shared_experts'])
    first = c['first_k_dense_replace']
    layers = c['num_hidden_layers']

    return (2 * c['vocab_size'] * hidden + layers * (attention + indexer)
            + first * dense + (layers - first) * experts)


class Skills(unittest.TestCase):
    """The right answers are computed here from the user's words."""

    def judge(self, said, right, wrong):
        for answer in right:
            self.assertIsNone(said.wrong(answer), f'{said.user}: {answer}')

        for answer in wrong:
            self.assertIsNotNone(said.wrong(answer),
                                 f'{said.user}: {answer}')

    def test_count(self):
        said, m = find(skills.count, r'from (\d+) to (\d+)[.?]?$')
        a, b = int(m[1]), int(m[2])
        row = [str(n) for n in (range(a, b + 1) if a < b
                                else range(a, b - 1, -1))]
        self.judge(said, [', '.join(row), '\n'.join(row), said.answer],
                   [', '.join(row[:-1]), ', '.join(row[::-1]),
                    ', '.join(row[1:])])

    def test_count_in_steps(self):
        said, m = find(skills.count, r'from (\d+) to (\d+) in steps of (\d+)')
        a, b, step = map(int, m.groups())
        row = [str(n) for n in range(min(a, b), max(a, b) + 1, step)]
        row = row if a < b else row[::-1]
        self.judge(said, [' '.join(row)], [f'{a} {b}'])

    def test_spell(self):
        said, m = find(skills.spell, r'spell the word (\w+)')
        word = m[1]
        self.judge(said, ['-'.join(word), ' '.join(word.upper()),
                          f'{word}: {", ".join(word)}.'],
                   [word, '-'.join(word[1:]), '-'.join(word[::-1])])

    def test_backwards(self):
        said, m = find(skills.backwards, r'reverse the word (\w+)')
        word = m[1]
        self.judge(said, ['-'.join(word[::-1])],
                   ['-'.join(word), '-'.join(word[:0:-1])])

    def test_letters(self):
        said, m = find(skills.letters, r'how many letters has (\w+)')
        n = len(m[1])
        self.judge(said, [f'{n}', f'It has {n} letters.'],
                   [f'{n + 1}', 'It has some letters.'])

    def test_letter_times(self):
        said, m = find(skills.letter_times, r"^how many (\w)'s are in (\w+)")
        n = m[2].count(m[1].lower())
        self.judge(said, [f'{n}', f'There are {n}.'],
                   [f'{n + 1}', 'Some.', m[2]])

        said, m = find(skills.letter_times, r"the (r)'s in (strawberry)")
        self.judge(said, ['3', 'Three.', 'r 1, r 2, r 3'], ['2', 'Two.'])

    def test_count_to(self):
        said, m = find(skills.count, r'^count to (\d+)')
        row = [str(n) for n in range(1, int(m[1]) + 1)]
        self.judge(said, [', '.join(row)], [', '.join(row[1:])])

    def test_next_letter(self):
        said, m = find(skills.next_letter, r'letter comes after (\w)')
        after = chr(ord(m[1].lower()) + 1)
        self.judge(said, [after, f'It is {after.upper()}.'],
                   [m[1], chr(ord(after) + 1)])

    def test_repeat(self):
        said, m = find(skills.repeat, r'repeat after me: (.*)')
        self.judge(said, [m[1], f'"{m[1].capitalize()}."'],
                   [m[1] + ' and more', m[1].split(' ', 1)[1]])

    def test_repeat_times(self):
        said, m = find(skills.repeat_times, r'^say (\w+) (\d) times')
        word, n = m[1], int(m[2])
        self.judge(said, [', '.join([word] * n)],
                   [' '.join([word] * (n + 1)), word])

    def test_days(self):
        said, m = find(skills.neighbor, r'^which day comes before (\w+)')
        i = skills.DAYS.index(m[1].capitalize())
        self.judge(said, [skills.DAYS[i - 1]],
                   [skills.DAYS[i], skills.DAYS[i - 2]])

        said, m = find(skills.neighbor, r'^what month is 3 months after '
                       r'(\w+)')
        i = skills.MONTHS.index(m[1].capitalize())
        self.judge(said, [f'It is {skills.MONTHS[(i + 3) % 12]}.'],
                   [skills.MONTHS[(i + 2) % 12]])

    def test_words(self):
        said, m = find(skills.opposite, r'opposite of hot')
        self.judge(said, ['cold', 'Cold.'], ['warm', 'hot'])

        said, m = find(skills.color, r'color is snow')
        self.judge(said, ['White.'], ['red', 'white or black'])

        said, m = find(skills.is_color, r'^is snow (?!white)(\w+)')
        self.judge(said, ['No, it is white.'], ['Yes, it is white.', 'No.'])

        said, m = find(skills.name_some, r'(?:3|three) fruits')
        self.judge(said, ['apple, pear, melon'],
                   ['apple, pear', 'apple, apple, pear', 'apple, pear, dog',
                    'apple, pear, plum, fig'])

        said, m = find(skills.what_is, r'what is a hammer')
        self.judge(said, ['It is a tool.'], ['It is a fruit.'])

        said, m = find(skills.in_words, r'write (\d\d) in words')
        self.judge(said, [said.answer.replace('-', ' '),
                          f'It is {said.answer}.'], ['zero', m[1]])

        said, m = find(skills.odd_one, r'odd one out: (.*?)[?.]?$')
        row = m[1].split(', ')
        right = said.answer.rstrip('.').split()[-1]
        self.judge(said, [right], [w for w in row if w != right])

    def test_lists(self):
        said, m = find(skills.reverse_words, r'reverse order: (.*)')
        row = m[1].split(', ')
        self.judge(said, [' '.join(row[::-1])], [m[1]])

        said, m = find(skills.nth_word, r'is the second word of: (.*)')
        row = m[1].split(', ')
        self.judge(said, [f'It is {row[1]}.'], [row[0], row[2]])

    def test_even(self):
        said, m = find(skills.even, r'^is (\d+) even')
        odd = int(m[1]) % 2
        self.judge(said, ['No, it is odd.' if odd else 'Yes, it is even.'],
                   ['Yes, it is even.' if odd else 'No, it is odd.',
                    'Yes, it is odd.', 'No.'])

    def test_story(self):
        said, m = find(story.story,
                       r'sad story about (\w+) and an? (\w+)\.$')
        end = f'{m[1]} cried.'
        middle = f'It was a {m[2]}.'
        self.judge(said, [f'One day. {middle} {end}'],
                   [f'{middle} {end}', f'One day. Two days. {end}',
                    f'One day. {middle} {m[1]} sang.',
                    f'One day. {middle} Ottokar cried.'])


class Unknown(unittest.TestCase):

    def test_claims_are_refused(self):
        said, _ = find(unknown.unknown, r'capital of France')
        self.assertIsNotNone(said.wrong('The capital of France is Paris.'))
        self.assertIsNotNone(said.wrong('Paris, as a small model knows.'))
        self.assertIsNone(said.wrong("I don't know, I was taught a few "
                                     "things only."))

    def test_questions_are_complete(self):
        for rng in seeds(2000):
            self.assertNotRegex(unknown.unknown(rng).user, r'[{}\n]|  ')

    def test_facts_not_stated(self):
        for fact in memory.FACTS:
            rng = random.Random(1)
            value = fact.value(rng)
            asked = fact.asked(rng, None)
            self.assertIsNotNone(asked.wrong(f'It is {value}.'))
            self.assertIsNone(asked.wrong(f'I do not know your {fact.what}.'))

            told = fact.asked(rng, value)
            self.assertIsNone(told.wrong(f'It is {value}!'))
            self.assertIsNotNone(told.wrong('I do not know it.'))

    def test_stated_and_asked_at_once(self):
        for fact in memory.FACTS:
            rng = random.Random(1)
            value = fact.value(rng)
            both = fact.both(rng, value)
            self.assertIn(value, both.user)
            self.assertIsNone(both.wrong(f'It is {value}.'))
            self.assertIsNotNone(both.wrong('I do not know it.'))

    def test_talk_has_all(self):
        users = [talk.make(rng).turns[0].user for rng in seeds(4000)]
        for part in ('MLA', 'story', 'capital', 'spell', 'count', 'joke',
                     'my name', 'make demo|start', 'layers'):
            self.assertTrue(any(re.search(part, u) for u in users), part)


if __name__ == '__main__':
    unittest.main()
