# Copyright (C) The nginx-dsa authors

"""The plot of a training log shows the numbers of the log."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml


ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
SVG = '{http://www.w3.org/2000/svg}'


def line(stage, step, tokens, loss, index_loss=0.0, busiest=0.25,
         idlest=0.05):
    return {'stage': stage, 'step': step, 'of': 9, 'positions': 2 * tokens,
            'tokens': tokens, 'loss': loss, 'index_loss': index_loss,
            'busiest_expert': busiest, 'idlest_expert': idlest}


def plot(lines, program='train.plot'):
    """Returns the exit status, and the parsed SVG or the message."""

    with tempfile.NamedTemporaryFile('w', suffix='.jsonl') as f:
        f.writelines(json.dumps(x) + '\n' for x in lines)
        f.flush()

        # it needs only the standard library

        p = subprocess.run([sys.executable, '-S', '-m', program, f.name],
                           cwd=os.path.join(ROOT, 'demo'),
                           capture_output=True)

    if p.returncode:
        return p.returncode, p.stderr.decode()

    return 0, xml.fromstring(p.stdout)


def curves(svg):
    """Returns {'stage: field': [(x, y) in pixels]}."""

    return {c.find(SVG + 'title').text:
            [tuple(map(float, p.split(','))) for p in c.get('points').split()]
            for c in svg.iter(SVG + 'polyline')}


def texts(svg):
    """Returns [(text, x, y)]."""

    return [(t.text, float(t.get('x')), float(t.get('y')))
            for t in svg.iter(SVG + 'text')]


class Plot(unittest.TestCase):

    LINES = [line('pretrain', 1, 1000000, 8.0, busiest=0.4),
             line('pretrain', 2, 2000000, 2.0),
             line('pretrain', 3, 6000000, 1.0),
             line('warmup', 1, 1000000, 1.0, 0.5),
             line('tune <a>', 1, 1500000, 0.5, 0.2),
             line('tune <a>', 2, 3000000, 0.25, 0.02)]

    def draw(self, lines):
        status, svg = plot(lines)
        self.assertEqual(status, 0, svg)

        return svg

    def test_stages_are_named(self):
        svg = self.draw(self.LINES)
        words = [t for t, _, _ in texts(svg)]

        for want in ('pretrain, 6 M', 'warmup, 1 M', 'tune <a>, 3 M',
                     'language loss', 'indexer loss', 'nats per token',
                     'share of choices', 'tokens trained on, without padding',
                     '10 M'):
            self.assertIn(want, words)

        colors = {name: c.get('stroke') for name, c in zip(
            curves(svg), svg.iter(SVG + 'polyline'))}
        squares = [r.get('fill') for r in svg.iter(SVG + 'rect')][1:]

        self.assertEqual(len(set(squares)), 3)
        for stage, color in zip(('pretrain', 'warmup', 'tune <a>'), squares):
            self.assertEqual(colors[f'{stage}: loss'], color)
            self.assertEqual(colors[f'{stage}: idlest_expert'], color)

    def test_positions(self):
        svg = self.draw(self.LINES)
        c = curves(svg)
        label = {}

        for what, x, y in texts(svg):
            label.setdefault(what, (x, y))

        # ten million tokens in total; a stage begins where the last one ended

        zero = max(x for what, x, _ in texts(svg) if what == '0')
        width = label['10 M'][0] - zero

        for name, tokens in (('pretrain: loss', (1, 2, 6)),
                             ('warmup: loss', (7, 7)),
                             ('tune <a>: loss', (8.5, 10)),
                             ('tune <a>: idlest_expert', (8.5, 10))):
            self.assertEqual(len(c[name]), len(tokens))
            for (x, _), t in zip(c[name], tokens):
                self.assertAlmostEqual(x, zero + width * t / 10, delta=0.2)

        # logarithmic: halving always has the same distance, and values are at
        # their labels

        y = [y for name in ('pretrain: loss', 'tune <a>: loss')
             for _, y in c[name]]
        half = y[2] - y[1]
        self.assertGreater(half, 10)
        self.assertAlmostEqual(y[1] - y[0], 2 * half, delta=0.3)
        self.assertAlmostEqual(y[3] - y[2], half, delta=0.3)
        self.assertAlmostEqual(y[4] - y[3], half, delta=0.3)
        self.assertAlmostEqual(label['2'][1] - 4, y[1], delta=0.2)
        self.assertAlmostEqual(label['0.5'][1] - 4, y[3], delta=0.2)

        # the curves of the experts are linear and start at 0

        y = {name: [y for _, y in c[f'pretrain: {name}_expert']]
             for name in ('busiest', 'idlest')}
        unit = (y['busiest'][1] - y['busiest'][0]) / 0.15
        self.assertAlmostEqual(y['idlest'][0] - y['busiest'][0], 0.35 * unit,
                               delta=0.3)
        self.assertAlmostEqual(label['0.4'][1] - 4, y['busiest'][0],
                               delta=0.2)
        self.assertAlmostEqual(label['0.4'][1] + 0.4 * unit, label['0'][1],
                               delta=0.3)
        self.assertAlmostEqual(label['10 M'][1] - label['0'][1], 12,
                               delta=0.2)      # 0 is at the bottom

    def test_all_is_inside(self):
        svg = self.draw(self.LINES)
        bold = [float(t.get('y')) for t in svg.iter(SVG + 'text')
                if t.get('font-weight')]
        self.assertEqual(len(bold), 3)
        ends = bold[1:] + [float(svg.get('height'))]

        for name, points in curves(svg).items():
            n = (0 if name.endswith(': loss') else
                 1 if name.endswith('index_loss') else 2)
            for x, y in points:
                self.assertTrue(bold[n] < y < ends[n], name)
                self.assertTrue(0 < x < float(svg.get('width')), name)

    def test_no_indexer(self):
        """A stage without an indexer has no curve of its loss; without any
        such stage the plot has none."""

        c = curves(self.draw(self.LINES))
        self.assertNotIn('pretrain: index_loss', c)
        self.assertEqual(len(c['tune <a>: index_loss']), 2)

        svg = self.draw(self.LINES[:3])
        self.assertIn('not in this log', [t for t, _, _ in texts(svg)])

    def test_repeated_stage(self):
        """If a stage was trained again, the new lines replace the old ones."""

        again = [line('pretrain', 2, 1900000, 4.0),
                 line('pretrain', 3, 6000000, 1.0)]
        a = self.draw(self.LINES[:1] + [line('pretrain', 2, 5, 70.0),
                                        line('pretrain', 3, 6, 90.0)] + again)
        b = self.draw(self.LINES[:1] + again)
        self.assertEqual(xml.tostring(a), xml.tostring(b))

    def test_wide_ranges(self):
        """The axis of a loss has few labels, even if the loss falls by far."""

        for low in (7.9, 0.5, 1e-4):
            svg = self.draw([line('pretrain', 1, 10, 8.0),
                             line('pretrain', 2, 20, low)])
            labels = [t for t in svg.iter(SVG + 'text')
                      if t.get('text-anchor') == 'end']
            self.assertTrue(5 <= len(labels) <= 18, len(labels))

    def test_nothing_to_draw(self):
        status, message = plot([])
        self.assertEqual(status, 1)
        self.assertIn('no lines', message)


class Rollouts(unittest.TestCase):
    """The plot of train.rl's log."""

    def test_curves(self):
        lines = [{'eval': 'before', 'reward': 0.9}] + [
            {'batch': n, 'reward': r, 'mixed': 0.5, 'kl': k, 'entropy': 0.25,
             'tokens': 100 * n}
            for n, r, k in ((1, 0.2, 0.01), (2, 0.4, 0.1), (4, 0.8, 1.0))]
        status, svg = plot(lines, 'train.rl_plot')
        self.assertEqual(status, 0, svg)

        found = {k.split(': ')[1]: v for k, v in curves(svg).items()}
        self.assertEqual(set(found),
                         {'reward', 'mixed', 'kl', 'entropy', 'tokens'})

        # three points each, without the line of the evaluation; equal steps
        # are equally far apart

        for points in found.values():
            self.assertEqual(len(points), 3)
            x = [p[0] for p in points]
            self.assertAlmostEqual(x[2] - x[1], 2 * (x[1] - x[0]), 0)

        for name in ('reward', 'tokens'):
            y = [p[1] for p in found[name]]
            self.assertAlmostEqual(y[1] - y[2], 2 * (y[0] - y[1]), 0)

        y = [p[1] for p in found['kl']]
        self.assertAlmostEqual(y[1] - y[2], y[0] - y[1], 0)

    def test_domains(self):
        """A curve for each domain with its batches only; rewards below 0 are
        below the axis."""

        lines = [{'batch': n, 'stage': stage, 'reward': 0.5, 'mixed': 0.5,
                  'kl': 0.1, 'entropy': 1, 'tokens': 5, 'domains': {
                      name: {'reward': r, 'kl': 0.01 * n, 'entropy': 0.1 * n,
                             'tokens': 10 * n} for name, r in some}}
                 for n, stage, some in (
                     (1, 'r', [('r', -0.2)]), (2, 'r', [('r', 0.2)]),
                     (3, 'a', [('a', 0.4)]), (4, 'a', [('a', 0.8)]))]
        status, svg = plot(lines, 'train.rl_plot')
        self.assertEqual(status, 0, svg)
        c = curves(svg)
        self.assertEqual(set(c), {f'{d}: {k}' for d in 'ra' for k in (
            'reward', 'kl', 'entropy', 'tokens')})

        # 4 batches, 0.4 of the reward is as far as 0.4 anywhere

        (x1, y1), (x2, y2) = c['r: reward']
        (x3, y3), (x4, y4) = c['a: reward']
        self.assertAlmostEqual(x2 - x1, x3 - x2, 0)
        self.assertAlmostEqual(y1 - y2, y3 - y4, delta=0.3)
        self.assertAlmostEqual(y1 - y2, 2 * (y2 - y3), delta=0.3)

        for key in ('entropy', 'tokens'):
            y = [y for d in 'ra' for _, y in c[f'{d}: {key}']]
            self.assertAlmostEqual(y[0] - y[3], 3 * (y[0] - y[1]), delta=0.5)

        # all is inside its panel

        bold = [float(t.get('y')) for t in svg.iter() if t.get('font-weight')]
        self.assertLess(max(y for _, y in c['r: reward']), bold[1])
        dotted = [x for x in svg.iter() if x.get('stroke-dasharray') == '1 3']
        self.assertEqual({float(x.get('x1')) for x in dotted}, {x2})
        self.assertEqual(len(dotted), 4)

    def test_nothing(self):
        status, text = plot([{'eval': 'before', 'reward': 1}],
                            'train.rl_plot')
        self.assertEqual(status, 1)
        self.assertIn('no batch', text)


if __name__ == '__main__':
    unittest.main()
