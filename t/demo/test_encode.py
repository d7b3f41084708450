# Copyright (C) The nginx-dsa authors

"""The prompts of the training data equal the server's, byte for byte, and its
targets are the text that a served model generates."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from tasks import mix
from tasks.task import CHAT, DISCARD, RETAIN, function, play
from train import corpus
from train.encode import encode, training_samples


ROOT = os.path.join(os.path.dirname(__file__), '../..')
BUILD = os.path.join(ROOT, os.environ.get('DSA_BUILD', 'build'))
TOKENIZER = os.path.join(BUILD, 'model/tokenizer.json')
DATA = os.path.join(ROOT, 't/data/encoding')

EOS = '<｜end▁of▁sentence｜>'

TOOLS = [{'type': 'function', 'function': f} for f in (
    function('look_up', 'Find a «thing»', name='string',
             many=('boolean', 'all of them')),
    function('now', 'Tell the time'))]


def dsa(*args, text):
    return subprocess.run(
        [os.path.join(BUILD, 'dsa'), *args], input=text.encode(), check=True,
        stdout=subprocess.PIPE).stdout.decode()


def served_prompt(messages, tools, thinking):
    return dsa('encode', text=json.dumps({
        'messages': messages, 'tools': tools,
        'thinking': {'type': 'enabled' if thinking else 'disabled'}}))


def parsed(text, thinking):
    return json.loads(dsa('parse', *['--thinking'] * thinking, text=text))


def tokenized(texts):
    lines = ''.join(json.dumps(t) + '\n' for t in texts)
    answers = dsa('tokenize', '--tokenizer', TOKENIZER, '--special',
                  '--jsonl', text=lines)
    return [json.loads(a) for a in answers.splitlines()]


def call(id, tool, /, **arguments):
    return {'id': id, 'type': 'function',
            'function': {'name': tool, 'arguments': json.dumps(arguments)}}


def user(text):
    return {'role': 'user', 'content': text}


def assistant(content, reasoning, *calls):
    m = {'role': 'assistant', 'content': content,
         'reasoning_content': reasoning}
    if calls:
        m['tool_calls'] = list(calls)
    return m


def result(id, text):
    return {'role': 'tool', 'tool_call_id': id, 'content': text}


# a turn with several steps, several calls in a step, values of every type and
# results out of order, followed by another turn

TALK = [
    user('Where is the "red"\nlamp, 我的?'),
    assistant('I look.', 'First the time,\nthen it.',
              call('a', 'now'),
              call('b', 'look_up', name='<lamp> & "co"\n', many=True)),
    result('b', '{"in": "böx"}'),
    result('a', '12:30'),
    assistant('', 'Again.',
              call('c', 'look_up', name='', many=False, n=1.5, k=-2, l=None,
                   of=['ä', {'x': []}], e=1e30)),
    result('c', '[]'),
    assistant('In the *box*.\n', 'So it is.'),
    user('thanks'),
    assistant('You are welcome!', 'Be polite.'),
]
SYSTEM = {'role': 'system', 'content': 'Be kind.\n'}


def same_message(test, got, message, thinking):
    """got is the output of `dsa parse` for the model's text."""

    test.assertEqual(got['content'], message['content'])
    test.assertEqual(got.get('reasoning_content', ''),
                     message.get('reasoning_content', '') if thinking
                     else '')
    test.assertEqual(
        [(c['function']['name'], json.loads(c['function']['arguments']))
         for c in got.get('tool_calls', [])],
        [(c['function']['name'], json.loads(c['function']['arguments']))
         for c in message.get('tool_calls', [])])


class Published(unittest.TestCase):

    def test_conversation(self):
        with open(os.path.join(DATA, 'test_input.json')) as f:
            request = json.load(f)
        with open(os.path.join(DATA, 'test_output.txt')) as f:
            expected = f.read().rstrip('\n')

        segments = encode(request['messages'], request['tools'], True)
        self.assertEqual(''.join(t for t, _ in segments), expected)

    def test_worked_examples(self):
        with open(os.path.join(DATA, 'worked_examples.json')) as f:
            examples = json.load(f)['examples']

        tried = 0

        for e in examples:
            first = e['messages'][0]

            if first['role'] == 'developer' or 'response_format' in first:
                continue

            tried += 1
            segments = encode(e['messages'], first.get('tools'),
                              e['thinking_mode'] == 'thinking')
            self.assertEqual(''.join(text for text, _ in segments),
                             e['prompt'], e['name'])

        self.assertGreater(tried, 8)


class ByHand(unittest.TestCase):
    """Expects each prompt of the conversation and the text after it."""

    def check(self, messages, tools, thinking):
        first = 1 if messages[0]['role'] == 'system' else 0

        for i in range(first, len(messages)):
            if messages[i]['role'] != 'assistant':
                continue

            before = encode(messages[:i], tools, thinking)
            *same, (text, target) = encode(messages[:i + 1], tools, thinking)

            self.assertEqual(same, before)
            self.assertEqual(''.join(t for t, _ in before),
                             served_prompt(messages[:i], tools, thinking))
            self.assertTrue(target)
            same_message(self, parsed(text, thinking), messages[i], thinking)
            self.assertTrue(text.endswith(EOS))

    def test_thinking(self):
        self.check([SYSTEM] + TALK, TOOLS, True)

    def test_chat(self):
        self.check([SYSTEM] + TALK, TOOLS, False)

    def test_tools_without_a_system_message(self):
        self.check(TALK[:2], TOOLS, True)

    def test_neither(self):
        for thinking in (True, False):
            self.check([user('hi'), assistant('Hello!', 'Hm.')], None,
                       thinking)
            self.check([SYSTEM, user('hi'), assistant('Hello!', 'Hm.')], [],
                       thinking)

    def test_a_history_of_chat_is_extended(self):
        # so that one sample has the targets of all its turns

        whole = encode([SYSTEM] + TALK, TOOLS, False)

        for i in range(2, len(TALK) + 1):
            if TALK[i - 1]['role'] == 'tool' and i == 3:
                continue                # one result of two

            part = encode([SYSTEM] + TALK[:i], TOOLS, False)
            self.assertEqual(part, whole[:len(part)])

    def test_names_of_tokens_are_refused(self):
        for name in ('<think>', '</think>', '<｜User｜>', '｜DSML｜', EOS,
                     '<|EOT|>'):
            bad = (
                [user(name)],
                [{'role': 'system', 'content': name}, user('hi')],
                [user('hi'), assistant(name, '')],
                [user('hi'), assistant('', 'is ' + name)],
                [user('hi'), assistant('', '', call('a', 'f', x=name))],
                [user('hi'), assistant('', '', call('a', 'f', x=[name]))],
                [user('hi'), assistant('', '', call('a', 'f', **{name: 1}))],
                [user('hi'), assistant('', '', call('a', 'now')),
                 result('a', name)])

            for messages in bad:
                with self.assertRaises(ValueError):
                    encode(messages, TOOLS, True)

            with self.assertRaises(ValueError):
                encode([user('hi')], [{'function': {'name': name}}], True)

    def test_invalid_conversations_are_rejected(self):
        for messages in ([user('hi'), result('a', '1')],
                         [user('hi'), assistant('', '', call('a', 'now')),
                          user('and?')],
                         [user('hi'), assistant('', '', call('a', 'now')),
                          result('b', '1')],
                         [user('hi'), SYSTEM]):
            with self.assertRaises(ValueError):
                encode(messages, TOOLS, True)


class Samples(unittest.TestCase):

    def written(self, sample):
        return [text for text, target in sample if target]

    def test_a_turn_is_a_sample(self):
        first, second = training_samples([SYSTEM] + TALK, TOOLS, RETAIN)

        self.assertEqual([parsed(t, True)['reasoning_content']
                          for t in self.written(first)],
                         ['First the time,\nthen it.', 'Again.',
                          'So it is.'])
        self.assertEqual(self.written(second),
                         ['Be polite.</think>You are welcome!' + EOS])

        seen = ''.join(t for t, target in second if not target)
        self.assertNotIn('So it is.', seen)
        self.assertIn('</think>In the *box*.\n' + EOS, seen)

    def test_a_step_is_a_sample(self):
        samples = training_samples([SYSTEM] + TALK, TOOLS, DISCARD)

        self.assertEqual(len(samples), 4)

        for sample, reasoning in zip(samples, ('First the time,\nthen it.',
                                               'Again.', 'So it is.',
                                               'Be polite.')):
            text, = self.written(sample)
            self.assertEqual(sample[-1], (text, True))
            self.assertEqual(parsed(text, True)['reasoning_content'],
                             reasoning)

        seen = ''.join(t for t, _ in samples[2][:-1])
        self.assertNotIn('Again.', seen)
        self.assertNotIn('First the time', seen)
        self.assertIn('<think></think>I look.\n\n<｜DSML｜', seen)
        self.assertIn('<think></think>\n\n<｜DSML｜', seen)

        # the server encodes the same prompt for a client that sends no
        # reasoning

        bare = [{k: v for k, v in m.items() if k != 'reasoning_content'}
                for m in TALK[:6]]
        self.assertEqual(seen, served_prompt([SYSTEM] + bare, TOOLS, True))

    def test_a_chat_is_a_sample(self):
        sample, = training_samples([SYSTEM] + TALK, TOOLS, CHAT)

        self.assertEqual(len(self.written(sample)), 4)
        self.assertNotIn('think', ''.join(self.written(sample)))


class Families(unittest.TestCase):

    def test_all_of_them(self):
        texts = []

        for family in mix.FAMILIES:
            task = mix.task_of(family, 'encode')

            for mode in task.modes:
                with self.subTest(family=family, mode=mode):
                    texts += self.family(task, mode)

        # the ids of the segments, joined, equal the ids of the whole text

        ids = iter(tokenized(t for sample in texts
                             for t in [*sample, ''.join(sample)]))

        for sample in texts:
            parts = [i for _ in sample for i in next(ids)]
            self.assertEqual(parts, next(ids))

    def family(self, task, mode):
        """Checks the samples of a conversation and returns their texts."""

        thinking = mode != CHAT
        tools = task.tool_list()
        messages = play(task, mode)
        samples = training_samples(messages, tools, mode)
        written = [m for m in messages if m['role'] == 'assistant']

        self.assertEqual(sum(target for s in samples for _, target in s),
                         len(written))

        # only the first and the last sample: each starts a process or two

        for sample in {id(s): s for s in (samples[0], samples[-1])}.values():
            *before, (text, target) = sample
            self.assertTrue(target)

            got = parsed(text, thinking)
            i = next(i for i, m in enumerate(messages)
                     if m['role'] == 'assistant'
                     and m['content'] == got['content']
                     and (not thinking or m.get('reasoning_content', '')
                          == got.get('reasoning_content', '')))

            same_message(self, got, messages[i], thinking)

            if mode == DISCARD:
                seen = [{k: v for k, v in m.items()
                         if k != 'reasoning_content'} for m in messages[:i]]
            else:
                seen = messages[:i]

            self.assertEqual(''.join(t for t, _ in before),
                             served_prompt(seen, tools, thinking))

        return [[text for text, _ in s] for s in samples]


class Corpus(unittest.TestCase):

    def text(self, seed, hashes):
        return subprocess.run(
            [sys.executable, '-m', 'train.corpus', '--seed', seed,
             '--tasks', '30'],
            env={**os.environ, 'PYTHONHASHSEED': hashes},
            stdout=subprocess.PIPE, check=True).stdout

    def test_seeds(self):
        # the order of sets and hashes has no effect

        a = self.text('a', '1')
        self.assertEqual(a, self.text('a', '2'))
        self.assertNotEqual(a, self.text('b', '1'))

    def test_families(self):
        some = ['talk', 'lookup']
        drawn = {corpus.conversation(f'b-{n}', some)[0].family
                 for n in range(60)}
        self.assertEqual(drawn, set(some))

    def test_files(self):
        """Files are cut, have no names of special tokens, and are at most as
        long as the conversations."""

        with tempfile.TemporaryDirectory() as path:
            path = os.path.join(path, 'a.c')
            with open(path, 'w') as f:
                f.write('int main(void) { return <think>0; }\n' * 9000)

            got = list(corpus.files([path, path, path], 50000))

        self.assertEqual(''.join(got).count('<think>'), 0)
        self.assertTrue(got[0].startswith('int main(void) { return 0; }'))
        self.assertEqual(len(got), 2)
        self.assertLess(len(''.join(got)), 50010)

    def test_segments_are_unique(self):
        for n in range(5):
            text = corpus.text(f'c-{n}')
            self.assertEqual(text.count('<｜begin▁of▁sentence｜>'), 1)


if __name__ == '__main__':
    unittest.main()
