# Copyright (C) The nginx-dsa authors

"""Serves a checkpoint and measures it on held-out tasks, with eval.run and
eval.ordinary.

    PYTHONPATH=demo python3 -m train.measure --model RUN/policy.bf16 \\
        --tokenizer FILE --name specialist --domain logic --out DIR \\
        [--mode both] [--seeds 1,2,3] [--tasks 100] [--ordinary]
        [--seconds N] [--backend cuda]

--domain or --families, as train.rl has them; `held` are the categories that no
domain has.  --ordinary adds the prompts in ordinary wording, once, because all
seeds have the same.  A file is for one family, mode and seed, and has the
digest of the model as "weights".  A file that is there is not made again, so
the same command continues after --seconds, when the exit status is 75; it is an
error if the file has other weights.
"""

import argparse
import json
import math
import os
import re
import sys
import time

from eval import ordinary, run
from eval.client import RunFailed
from eval.run import positive
from train import domains
from train.served import (LEFT, add_options, digest, ends_on_signal,
                          serving)
from train.tables import BadResults, load
from worlds import registry
from worlds.form import Refused


def arguments(args=None):
    p = argparse.ArgumentParser(prog='train.measure', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    add_options(p)
    p.add_argument('--name', required=True)
    what = p.add_mutually_exclusive_group()
    what.add_argument('--domain', type=lambda s: s.split(','))
    what.add_argument('--families', type=lambda s: s.split(','), default=[])
    p.add_argument('--ordinary', action='store_true')
    p.add_argument('--mode', choices=domains.MODES, default=domains.BOTH)
    p.add_argument('--seeds', default=[1],
                   type=lambda s: [int(x) for x in s.split(',')])
    p.add_argument('--tasks', type=positive, default=100)
    p.add_argument('--max-tokens', type=positive, default=1024)
    p.add_argument('--concurrency', type=positive, default=64)
    p.add_argument('--seconds', type=float, default=math.inf)
    p.add_argument('--out', required=True)
    options = p.parse_args(args)

    if not re.fullmatch(r'[\w-]+', options.name):
        p.error('--name: expected letters, digits, _ and -')

    try:
        if options.domain == ['held']:
            options.families = list(domains.HELD)
        elif options.domain:
            options.families = domains.families_of(options.domain)

        for family in options.families:
            domains.check(family)
    except Refused as e:
        p.error(str(e))

    return options


def jobs(options):
    """Yields (path, a function that takes a server and returns the exit
    status) for each file."""

    for mode in domains.MODES[options.mode]:
        for seed in options.seeds:
            for what in [*options.families,
                         *(['ordinary'] if options.ordinary
                           and seed == options.seeds[0] else [])]:
                path = os.path.join(
                    options.out, f'{options.name}.{what}.{mode}.{seed}.json')
                args = ['--name', options.name, '--mode', mode, '--seed',
                        str(seed), '--concurrency', str(options.concurrency),
                        '--max-tokens', str(options.max_tokens), '--out',
                        path + '.tmp']

                if what == 'ordinary':
                    yield path, lambda url, args=args: ordinary.main(
                        [*args, '--url', url], ordinary.load())
                else:
                    args += ['--families', what, '--tasks',
                             str(options.tasks)]
                    yield path, lambda url, args=args: run.main(
                        [*args, '--url', url], registry.names(),
                        registry.task_of)


def finish(path, weights):
    """Adds the digest to a file of results, and gives it its name."""

    with open(path + '.tmp', encoding='utf-8') as f:
        made = json.load(f)

    with open(path + '.tmp', 'w', encoding='utf-8') as f:
        json.dump({'weights': weights, **made}, f, indent=1)
        f.write('\n')

    os.rename(path + '.tmp', path)


def measure(options):
    """Returns how many files are left."""

    begin, weights = time.monotonic(), digest(options.model)
    todo = []

    for path, job in jobs(options):
        if not os.path.exists(path):
            todo.append((path, job))
        elif load(path)['weights'] != weights:
            raise BadResults(f'{path}: of the weights '
                             f'{load(path)["weights"]}; expected {weights}')

    if not todo:
        return 0

    with serving(options) as server:
        for n, (path, job) in enumerate(todo):
            if time.monotonic() - begin >= options.seconds:
                return len(todo) - n

            if job(server.url):
                raise RunFailed(f'{path} was not made')

            finish(path, weights)

    return 0


def main():
    options = arguments()
    ends_on_signal()
    os.makedirs(options.out, exist_ok=True)

    try:
        left = measure(options)
    except (RunFailed, BadResults) as e:
        sys.exit(f'train.measure: {e}')

    if left:
        print(f'{left} files are left; the same command continues',
              file=sys.stderr)
        sys.exit(LEFT)


if __name__ == '__main__':
    main()
