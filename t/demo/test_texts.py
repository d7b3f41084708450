# Copyright (C) The nginx-dsa authors

"""Tests of demo/train/texts.py."""

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

from train import encode, texts


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

        # nine tenths of the characters are of the first

        self.assertAlmostEqual(names['a'] / 1000, 0.9, delta=0.05)
        self.assertGreater(sum(n > 4000 for n in lengths), 150)
        self.assertGreater(sum(n < 600 for n in lengths), 150)


if __name__ == '__main__':
    unittest.main()
