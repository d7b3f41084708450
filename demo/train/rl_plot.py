# Copyright (C) The nginx-dsa authors

"""Draws the logs of one or several runs of train.rl, one above the other.

    python3 -m train.rl_plot RUN/log.jsonl ... > curves.svg

Each run has the name of its directory.
"""

import json
import os
import sys

from train.plot import COLORS, LEFT, RIGHT, WIDTH, Panel, picture, text


PANELS = (
    Panel('reward, and groups with right and wrong answers (dashed)', 'share',
          (('reward', None), ('mixed', '4 3')), False),
    Panel('divergence from the reference', 'eq. 7, nats', (('kl', None),),
          True),
    Panel('entropy of the sampling policy', 'nats', (('entropy', None),),
          False),
    Panel('length of a trajectory', 'sampled tokens', (('tokens', None),),
          False),
)


def main():
    if len(sys.argv) < 2:
        sys.exit('usage: python3 -m train.rl_plot RUN/log.jsonl ... '
                 '> curves.svg')

    runs = []

    for path in sys.argv[1:]:
        with open(path) as f:
            points = read(f)

        if not points:
            sys.exit(f'{path}: the log has no batch')

        runs.append((os.path.basename(os.path.dirname(os.path.abspath(path))),
                     points))

    print(draw(runs))


def read(lines):
    """Returns the lines of batches, with 'at', the batch."""

    points = [json.loads(line) for line in lines]

    return [{**p, 'at': p['batch']} for p in points if 'batch' in p]


def draw(runs):
    """Returns the SVG of [(name, points)]."""

    return picture(runs, PANELS, 'batches of rollouts', legend(runs),
                   max(p['at'] for _, points in runs for p in points), [])


def legend(runs):
    svg, step = [], (LEFT + WIDTH) / max(4, len(runs))

    for n, (name, _) in enumerate(runs):
        at = RIGHT + n * step
        svg.append(f'<rect x="{at:.1f}" y="17" width="12" height="12" '
                   f'fill="{COLORS[n % len(COLORS)]}"/>')
        svg.append(text(at + 17, 27, name))

    return svg


if __name__ == '__main__':
    main()
