# Copyright (C) The nginx-dsa authors

"""Draws a log of train.train.

    python3 -m train.plot LOG.jsonl > curves.svg

It has three panels over the tokens of all stages: the language loss, the
indexer's loss, and the load of experts.  If a stage was trained again from
some step on, the later lines replace the earlier ones.
"""

import json
import math
import sys
from dataclasses import dataclass
from html import escape


WIDTH, HEIGHT = 640, 150        # of a panel's inside, pixels
LEFT, RIGHT, TOP, GAP, BOTTOM = 62, 18, 40, 34, 46
COLORS = ('#4a7ab5', '#d1812b', '#5b9a57', '#a4508b', '#7a6a58', '#3a9a9a')


@dataclass(frozen=True)
class Panel:
    """
    label   of its y axis
    curves  (field of the log, dashes or None)
    log     the y axis is logarithmic
    """
    title: str
    label: str
    curves: tuple
    log: bool


PANELS = (
    Panel('language loss', 'nats per token', (('loss', None),), True),
    Panel('indexer loss', 'KL, nats', (('index_loss', None),), True),
    Panel('experts: busiest, and idlest (dashed)', 'share of choices',
          (('busiest_expert', None), ('idlest_expert', '4 3')), False),
)


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: python3 -m train.plot LOG.jsonl > curves.svg')

    with open(sys.argv[1]) as f:
        stages = read(f)

    if not stages:
        sys.exit(f'{sys.argv[1]}: the log has no lines')

    print(draw(stages))


def read(lines):
    """Returns a list of (stage, its points).  A point is a line of the log
    with 'at', the tokens until then, including earlier stages."""

    stages = {}

    for point in map(json.loads, lines):
        if 'step' not in point:         # what the indexer selects
            continue

        before = stages.get(point['stage'], [])
        stages[point['stage']] = [p for p in before
                                  if p['step'] < point['step']] + [point]

    done = 0

    for points in stages.values():
        for p in points:
            p['at'] = done + p['tokens']
        done = points[-1]['at']

    return list(stages.items())


def draw(stages):
    """Returns the SVG of stages one after the other."""

    return picture(stages, PANELS, 'tokens trained on, without padding',
                   legend(stages), stages[-1][1][-1]['at'],
                   [points[-1]['at'] for _, points in stages[:-1]])


def picture(stages, panels, label, svg, total, borders):
    """Returns an SVG with panels over an x axis from 0 to total.

    label    of the x axis
    svg      of the legend
    borders  where there are dotted lines
    """
    ticks = steps(total, 8)

    def x(tokens):
        return LEFT + WIDTH * tokens / total

    for n, panel in enumerate(panels):
        top = TOP + GAP + n * (HEIGHT + GAP)
        svg += frame(panel, top, [x(t) for t in ticks],
                     [x(at) for at in borders])
        svg += curves(panel, stages, top, x)

    bottom = TOP + len(panels) * (HEIGHT + GAP)
    size = (LEFT + WIDTH + RIGHT, bottom + BOTTOM)

    for t in ticks:
        svg.append(text(x(t), bottom + 16, short(t), 'middle'))

    svg.append(text(LEFT + WIDTH / 2, bottom + 36, label, 'middle'))

    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" '
            f'height="{size[1]}" viewBox="0 0 {size[0]} {size[1]}" '
            'font-family="sans-serif" font-size="11" fill="#222">\n'
            '<rect width="100%" height="100%" fill="#fff"/>\n'
            + '\n'.join(svg) + '\n</svg>')


def legend(stages):
    """Returns the stages' colors and names, with the tokens of each."""

    svg, step, before = [], (LEFT + WIDTH) / max(4, len(stages)), 0

    for n, (name, points) in enumerate(stages):
        at = RIGHT + n * step
        tokens = short(points[-1]['at'] - before)
        before = points[-1]['at']
        svg.append(f'<rect x="{at:.1f}" y="17" width="12" height="12" '
                   f'fill="{COLORS[n % len(COLORS)]}"/>')
        svg.append(text(at + 17, 27, f'{name}, {tokens}'))

    return svg


def frame(panel, top, ticks, borders):
    """Returns the axes of a panel and its lines at ticks, dotted between
    stages."""

    bottom, right = top + HEIGHT, LEFT + WIDTH
    svg = [text(LEFT, top - 8, panel.title, more=' font-weight="bold"')]

    for x in ticks:
        svg.append(line(x, top, x, bottom, '#eee'))

    for x in borders:
        svg.append(line(x, top, x, bottom, '#999',
                        ' stroke-dasharray="1 3"'))

    svg.append(line(LEFT, bottom, right, bottom, '#888'))
    svg.append(line(LEFT, top, LEFT, bottom, '#888'))

    middle = top + HEIGHT / 2
    svg.append(text(14, middle, panel.label, 'middle',
                    f' transform="rotate(-90 14 {middle:.1f})"'))

    return svg


def curves(panel, stages, top, x):
    """Returns a panel's y axis and a curve for each field and stage.  On a
    logarithmic axis, 0 has no position; it is the value of a loss that is not
    computed."""

    def values(field, points):
        return [(p['at'], p[field]) for p in points
                if field in p and (p[field] > 0 or not panel.log)]

    every = [v for field, _ in panel.curves for _, points in stages
             for _, v in values(field, points)]

    if not every:
        return [text(LEFT + 8, top + 20, 'not in this log')]

    if panel.log:
        low, high, ticks = log_axis(min(every), max(every))
        place = math.log
    else:
        low, high = min(0, *every), max(0, *every) * 1.1 or 1
        ticks = steps(high, 4)
        place = float

    def y(value):
        part = (place(high) - place(value)) / (place(high) - place(low))
        return top + HEIGHT * part

    svg = []

    for t in ticks:
        svg.append(line(LEFT, y(t), LEFT + WIDTH, y(t), '#eee'))
        svg.append(text(LEFT - 6, y(t) + 4, f'{t:g}', 'end'))

    for field, dashes in panel.curves:
        for n, (name, points) in enumerate(stages):
            places = [f'{x(at):.1f},{y(v):.1f}'
                      for at, v in values(field, points)]

            if not places:
                continue

            # a line needs two points

            if len(places) == 1:
                places *= 2

            dash = f' stroke-dasharray="{dashes}"' if dashes else ''
            svg.append(
                f'<polyline points="{" ".join(places)}" fill="none" '
                f'stroke="{COLORS[n % len(COLORS)]}" stroke-width="1.5" '
                f'stroke-linecap="round"{dash}>'
                f'<title>{escape(name)}: {field}</title></polyline>')

    return svg


def log_axis(least, most):
    """Returns the ends of the axis and its ticks."""

    grid = [m * 10.0 ** e
            for e in range(math.floor(math.log10(least)) - 1,
                           math.ceil(math.log10(most)) + 1)
            for m in (1, 2, 5)]
    low = max(t for t in grid if t <= least)
    high = min(t for t in grid if t > most)
    ticks = [t for t in grid if low <= t <= high]

    # if there are many, only whole decades

    if len(ticks) > 9:
        ticks = [t for t in ticks if round(math.log10(t), 9) % 1 == 0]

    return low, high, ticks


def steps(most, about):
    """Returns round numbers from 0 to most, at most about + 1 of them."""

    size = 10.0 ** math.floor(math.log10(most / about))
    size *= min(m for m in (1, 2, 5, 10) if m * size * about >= most)

    return [i * size for i in range(int(most / size + 1e-9) + 1)]


def short(n):
    """Formats a count for people."""

    for size, letter in ((1e9, ' G'), (1e6, ' M'), (1e3, ' k')):
        if n >= size:
            return f'{n / size:.3g}{letter}'

    return f'{n:g}'


def text(x, y, what, anchor='start', more=''):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>'
            f'{escape(what)}</text>')


def line(x1, y1, x2, y2, color, more=''):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{color}"{more}/>')


if __name__ == '__main__':
    main()
