# Copyright (C) The nginx-dsa authors

"""Tests of demo/train/texts.py and vary.py."""

import collections
import contextlib
import io
import json
import lzma
import os
import random
import re
import tempfile
import unittest
from unittest import mock

from train import encode, texts, vary


PAGE = '''<html><head><title>One two three four five</title></head><body>
<nav><ul><li>Here is a menu entry</li></ul></nav>
<h1>How to fold a map</h1>
<p>Maps are  <b>never</b> folded
the same way&nbsp;twice &amp; that is fine.</p>
<p>Too short.</p>
<pre>
for fold in map:
    fold.twice(left, right)
</pre>
<ul><li>Take the first of them.<br>Then the next.</li>
<li>Put all of it away</ul>
<script>var one = two, three = four;</script></body></html>'''

WORDNET = '''  1 This line is part of the licence, and no entry
00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 | that which exists by itself
00010435 29 v 02 act 0 do_something 3 001 @ 1 v 0000 01 + 02 00 | do a thing; "act now"
'''


class Texts(unittest.TestCase):

    def written(self, files):
        """Returns the documents that the program writes for some files."""

        with tempfile.TemporaryDirectory() as directory:
            for name, text in files.items():
                path = os.path.join(directory, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, 'w', encoding='utf-8') as f:
                    f.write(text)

            with contextlib.redirect_stdout(io.StringIO()) as out:
                texts.main([directory])

        return [json.loads(line) for line in out.getvalue().splitlines()]

    def test_page(self):
        page = texts.Page()
        page.feed(PAGE)
        page.end()

        self.assertEqual(page.paragraphs, [
            'How to fold a map',
            'Maps are never folded the same way twice & that is fine.',
            'for fold in map:\n    fold.twice(left, right)',
            'Take the first of them. Then the next.',
            'Put all of it away'])

    def test_hostile_pages(self):
        """No page makes it fail, and what follows is read."""

        after = '<p>This is read after it, too.</p>'

        for text in ('</nav></nav></pre></script>', '<p><p><li><td>', '<pre>',
                     '<![CDATA[x', '<!-- </p>', '&#xffffffff;&bad;', '<a href="',
                     '\0\ufffd<p\0>'):
            page = texts.Page()
            page.feed(text + '\n' + after)
            page.close()
            page.end()

            if not text.startswith(('<![', '<!--', '<a')):
                self.assertIn('This is read after it, too.',
                              ' '.join(page.paragraphs), text)

    def test_documents(self):
        long = ''.join(f'<p>Sentence number {i} of a page that is long enough.'
                       '</p>' for i in range(20))
        other = '<p>' + 'これは日本語の文です。 ' * 9 + '</p>'
        special = f'<p>It ends with &lt;｜end▁of▁sentence｜&gt; as text.</p>'
        found = self.written({'doc/a.html': long + long + other + special,
                              'doc/b.html': '<p>It is a short page.</p>',
                              'doc/c.txt': long,
                              'wn/data.noun': WORDNET})

        self.assertEqual(found, [[f'Sentence number {i} of a page that is '
                                  'long enough.' for i in range(20)]])

    def test_dictionary(self):
        with mock.patch.object(texts, 'SHORTEST', 1):
            found = self.written({'data.verb': WORDNET * 40})

        said = {p for paragraphs in found for p in paragraphs}

        self.assertEqual(said, {
            form.format(word=word, kind='verb', meaning=meaning)
            for form in texts.FORMS
            for word, meaning in (
                ('entity', 'that which exists by itself'),
                ('act, do something', 'do a thing; "act now"'))})

    def test_samples(self):
        documents = [[f'{name}{i} is the {i}th of all.' for i in range(n)]
                     for name, n in (('a', 900), ('b', 100))]

        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'texts.xz')
            with lzma.open(path, 'wt', encoding='utf-8') as f:
                f.writelines(json.dumps(d) + '\n' for d in documents)
            drawn = texts.Texts(path)

        lengths, names = [], collections.Counter()

        for seed in range(1000):
            head, (text, target) = drawn.sample(random.Random(seed))
            self.assertEqual(head, (encode.BOS, False))
            self.assertTrue(target)
            self.assertTrue(text.endswith(encode.EOS))

            text = text[:-len(encode.EOS)]
            first = int(re.match(r'[ab](\d+)', text).group(1))
            whole = '\n\n'.join(documents[text[0] == 'b'][first:])
            self.assertTrue(whole.startswith(text))
            self.assertLessEqual(len(text), texts.SAMPLE[1])
            lengths.append(len(text))
            names[text[0]] += 1

        words = [drawn.word(random.Random(seed)) for seed in range(100)]
        self.assertEqual(set(words), {'the', 'all'} & set(words))

        # nine tenths of the characters are of the first

        self.assertAlmostEqual(names['a'] / 1000, 0.9, delta=0.05)
        self.assertGreater(sum(n > 4000 for n in lengths), 150)
        self.assertGreater(sum(n < 600 for n in lengths), 150)


WORDS = re.compile(r'[A-Za-z]+')


class Vary(unittest.TestCase):

    SAMPLE = [
        (encode.BOS + 'Be brief.\n\n' + encode.TOOLS_HEAD
         + '{"name": "getWeather", "parameters": {"type": "object", '
         '"properties": {"town_name": {"type": "string"}}}}\n</functions>\n',
         False),
        (encode.USER + 'Weather in Oslo? OSLO, I said' + encode.ASSISTANT
         + encode.THINK, False),
        ('The weather in Oslo: getWeather, town_name Oslo.' + encode.THINK_END
         + f'<{encode.DSML}invoke name="getWeather">\n'
         f'<{encode.DSML}parameter name="town_name" string="true">Oslo'
         f'</{encode.DSML}parameter>' + encode.EOS, True),
        ('\n\n<function_results>\n<result>sunny</result>', False)]

    def test_words_agree(self):
        """Whatever is replaced, one mapping of words explains it, words of
        the encoding stay, and capitals are those of the old word."""

        changed = collections.Counter()

        for seed in range(300):
            got = vary.rename(random.Random(seed), self.SAMPLE)
            self.assertEqual([target for _, target in got],
                             [target for _, target in self.SAMPLE])
            mapping = {}

            for (new, _), (old, _) in zip(got, self.SAMPLE):
                self.assertEqual(WORDS.sub('', new), WORDS.sub('', old))

                for a, b in zip(vary.WORD.findall(old),
                                vary.WORD.findall(new)):
                    self.assertEqual(mapping.setdefault(a.lower(), b.lower()),
                                     b.lower())
                    self.assertEqual((a[0].isupper(), a.isupper()),
                                     (b[0].isupper(), b.isupper()))

                self.assertEqual(encode.TOOLS_HEAD in new,
                                 encode.TOOLS_HEAD in old)

            self.assertEqual(len(set(mapping.values())), len(mapping))
            changed.update(a for a, b in mapping.items() if a != b)

        # only words that the assistant has from the prompt; not "name", which
        # is of the encoding, nor "in", nor the verb of the tool

        self.assertEqual(set(changed), {'weather', 'oslo', 'town'})
        self.assertGreater(min(changed.values()), 100)

    def test_other_forms_stay(self):
        sample = [('How many pencils are in a pencil box?', False),
                  ('A pencil box has pencils.', True)]

        for seed in range(50):
            for text, _ in vary.rename(random.Random(seed), sample):
                self.assertRegex(text, r'\bpencil\b')
                self.assertRegex(text, r'\bpencils\b')
                self.assertNotIn('box', text)

    def test_families_that_take_words_apart(self):
        sample = [[('Spell Oslo', False), ('Oslo: O-S-L-O', True)]]

        for seed in range(20):
            self.assertEqual(vary.renamed(random.Random(seed), 'talk', sample),
                             sample)

    def test_words_that_say_what_is_wanted_stay(self):
        """Strict renaming replaces names only."""

        sample = [('Write a table for Oslo and Nina', False),
                  ('A table: Oslo, Nina', True)]
        texts = [vary.rename(random.Random(seed), sample, None, loose)[1][0]
                 for loose in (False, True) for seed in range(100)]

        self.assertEqual({t.split(':')[0] for t in texts[:100]}, {'A table'})
        self.assertGreater(sum('table' not in t for t in texts[100:]), 20)
        self.assertGreater(sum('Nina' not in t for t in texts[:100]), 20)

    def test_forms_of_words(self):
        """A new word is a plural or a past if the old one is, follows "a" or
        "an" as the old one, and comes from the text that is given, too."""

        sample = [('An apple, a pear, three carrots, painted.', False),
                  ('Carrots, painted: a pear, an apple.', True)]
        of_text = 0

        for seed in range(300):
            got = vary.rename(random.Random(seed), sample,
                              lambda rng: 'zuvonix')
            self.assertNotRegex(got[0][0], r'\b[Aa] [aeiou]|\b[Aa]n [^aeiou]')
            self.assertRegex(got[0][0], r's, \S+ed\.$')
            of_text += 'zuvonix' in got[1][0]

        self.assertGreater(of_text, 30)

    def test_disguised_tools(self):
        """What has a description gets another name everywhere; what has none,
        and what could be a word of a sentence, keeps its own."""

        tool = {'function': {
            'name': 'get_weather', 'description': 'The weather of a city',
            'parameters': {'type': 'object', 'properties': {
                'cityName': {'type': 'string', 'description': 'The city'},
                'day': {'type': 'string', 'description': 'The day'},
                'unit_code': {'type': 'string'}}}}}
        sample = [(json.dumps(tool), False),
                  ('get_weather: cityName Oslo, on the day unit_code', True)]
        changed = collections.Counter()

        for seed in range(300):
            (prompt, _), (written, _) = vary.disguised(
                random.Random(seed), 'daily_tool', [tool], [sample])[0]
            new = json.loads(prompt)['function']
            names = list(new['parameters']['properties'])
            self.assertEqual(names[1:], ['day', 'unit_code'])
            self.assertEqual(written, f'{new["name"]}: {names[0]} Oslo, '
                             'on the day unit_code')
            changed.update(((new['name'] != 'get_weather'),
                            (names[0] != 'cityName') + 2))

        self.assertGreater(min(changed[n] for n in range(4)), 20)
        self.assertEqual(vary.disguised(random.Random(1), 'chat', [tool],
                                        [sample]), [sample])

    def test_reordered(self):
        """Objects are equal, parameters are in order, and the keys of tools
        are not, in some."""

        tools = [{'type': 'function', 'function': {
            'name': 'f', 'description': 'd', 'parameters': {
                'type': 'object', 'properties': {
                    'b': {'type': 'string', 'description': 'x'},
                    'a': {'type': 'object', 'properties': {
                        'type': {'type': 'number', 'enum': [2, 1]}}}},
                'required': ['b']}}}]
        first = set()

        for seed in range(100):
            got = vary.reordered(random.Random(seed), tools)
            function = got[0]['function']
            first.add(next(iter(function)))
            self.assertEqual(got, tools)
            self.assertEqual(list(function['parameters']['properties']),
                             ['b', 'a'])

        self.assertEqual(first, {'name', 'description', 'parameters'})


    def test_requests(self):
        messages = [{'role': 'system', 'content': 'Be brief.'},
                    {'role': 'user', 'content': 'Weather in Oslo?'},
                    {'role': 'assistant', 'content': 'Weather in Oslo?'}]
        seen = collections.Counter()

        for seed in range(400):
            got = vary.greeted(random.Random(seed), 'daily_tool', messages)
            self.assertEqual([got[0], got[2]], [messages[0], messages[2]])
            self.assertIn('Weather in Oslo?', got[1]['content'])
            seen[got[1]['content'] == 'Weather in Oslo?'] += 1
            self.assertEqual(vary.greeted(random.Random(seed), 'daily_copy',
                                          messages), messages)

        self.assertGreater(min(seen[True], seen[False]), 40)


if __name__ == '__main__':
    unittest.main()
