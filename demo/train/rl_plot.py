# Copyright (C) The nginx-dsa authors

"""Draws the logs of one or several runs of train.rl, one above the other.

    python3 -m train.rl_plot RUN/log.jsonl ... > curves.svg

Each run has the name of its directory.  A single run of several domains has a
curve for each of them instead.
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
BY_DOMAIN = (
    Panel('reward with its penalties, before an update', 'R',
          (('reward', None),), False), *PANELS[1:])


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

    domains = by_domain(runs[0][1])

    if len(runs) == 1 and 1 < len(domains) <= len(COLORS):
        print(draw(domains, BY_DOMAIN, borders(runs[0][1])))
    else:
        print(draw(runs))


def read(lines):
    """Returns the lines of batches, with 'at', the batch."""

    points = [json.loads(line) for line in lines]

    return [{**p, 'at': p['batch']} for p in points if 'batch' in p]


def by_domain(points):
    """Returns [(domain, its points)] of a run."""

    found = {}

    for p in points:
        for name, values in p.get('domains', {}).items():
            found.setdefault(name, []).append({**values, 'at': p['at']})

    return list(found.items())


def borders(points):
    """Returns the last batch of each stage but the last one."""

    return [a['at'] for a, b in zip(points, points[1:])
            if a['stage'] != b['stage']]


def draw(runs, panels=PANELS, borders=()):
    """Returns the SVG of [(name, points)]."""

    return picture(runs, panels, 'batches of rollouts', legend(runs),
                   max(p['at'] for _, points in runs for p in points),
                   borders)


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
