# Copyright (C) The nginx-dsa authors

"""Compares a judge with the verifiers, and refuses one that agrees too little.

    PYTHONPATH=demo python3 -m train.agreement RUN/answers-0.jsonl \\
        --url URL --model NAME --families talk,writing --answers 200 \\
        --out judge.json

RUN/answers-0.jsonl has answers of a policy to held-out tasks; train.rl --eval
writes it before any update.  The last of these files, written after RL, is for
the same comparison with what the policy has become.  With several files, all
their answers are taken together: a good policy alone is seldom wrong.

Of each family as many right as wrong answers are judged.  The judge calls an
answer right if the criteria that decide have full scores.  An answer without a
verdict counts as a disagreement.

The table has Cohen's kappa by family.  The exit status is 0 if all are at
least 0.8, else 1.  train.rl --judge reads the file that --out names, and
trains no family that it does not have at that kappa.
"""

import argparse
import json
import random
import sys
from collections import Counter
from types import SimpleNamespace

from eval.client import RunFailed
from eval.run import in_parallel, positive
from eval.table import grid
from train.judge import Judge
from train.rewards import answered
from train.rubric import rubric_of
from worlds.form import Refused
from worlds.registry import task_of


LEAST = 0.8


def kappa(both, first, second, neither):
    """Returns Cohen's kappa of two raters from counts: both said yes, only the
    first, only the second, neither.  Returns None if it is not defined,
    because there is nothing, or both gave the same label to all."""

    # (observed - chance) / (1 - chance), times n * n, in whole numbers: one
    # division, so that a kappa of 4/5 is not below 0.8

    most = (both + first) * (first + neither) \
        + (both + second) * (second + neither)

    return 2 * (both * neither - first * second) / most if most else None


def arguments(args=None):
    p = argparse.ArgumentParser(prog='train.agreement', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)
    p.add_argument('files', nargs='+', metavar='FILE')
    p.add_argument('--url', required=True)
    p.add_argument('--model', required=True)
    p.add_argument('--families', required=True,
                   type=lambda s: s.split(','))
    p.add_argument('--answers', type=positive, default=200,
                   help='of a family; an even number')
    p.add_argument('--timeout', type=float, default=60)
    p.add_argument('--concurrency', type=positive, default=8)
    p.add_argument('--seed', default='1')
    p.add_argument('--out', required=True)

    return p.parse_args(args)


def lines(paths):
    """Yields (where it is, a line) of files."""

    for path in paths:
        with open(path, encoding='utf-8') as f:
            for n, line in enumerate(f, 1):
                yield f'{path}, line {n}', line


def read(paths, family):
    """Returns [(seed, conversation, right)] of a family's answers in files,
    each once.  right is what the verifier decides here, whatever a file has.
    Raises RunFailed."""

    found = {}

    for where, line in lines(paths):
        try:
            x = SimpleNamespace(**json.loads(line))

            if x.family != family:
                continue

            if not x.seed.startswith('eval-'):
                raise ValueError(f'{x.seed} is not held out')

            task = task_of(family, x.seed)
            pairs = answered(task, x)
        except (ValueError, TypeError, AttributeError,
                RecursionError) as e:
            raise RunFailed(f'{where}: {e}') from None

        if pairs is not None:
            right = all(t.check(a, []) is None
                        for t, (_, a) in zip(task.turns, pairs))
            found[x.seed, str(pairs)] = x.seed, pairs, right

    return list(found.values())


def balanced(answers, n, seed):
    """Returns n answers, of which half are right.  Raises RunFailed."""

    rng, found = random.Random(seed), []

    for wanted in (True, False):
        some = [a for a in answers if a[2] == wanted]

        if len(some) < n // 2:
            raise RunFailed(f'{len(some)} {"right" if wanted else "wrong"} '
                            f'answers; expected at least {n // 2}')

        found += rng.sample(some, n // 2)

    return found


def compared(judge, family, answers, concurrency):
    """Returns the counts and kappa of a family."""

    def one(seed, pairs, right):
        criteria = rubric_of(family, seed)
        verdict = judge.verdict(pairs, criteria)

        if verdict.scores is None:
            return right, not right, verdict.why

        return right, verdict.right(criteria), None

    each = in_parallel([lambda a=a: one(*a) for a in answers], concurrency)
    n = Counter((rule, judged) for rule, judged, _ in each)
    table = [n[True, True], n[True, False], n[False, True], n[False, False]]

    return {'counts': table, 'kappa': kappa(*table), 'no_verdict': dict(
        sorted(Counter(why for _, _, why in each if why).items()))}


def accepted(path, families):
    """Returns the Judge of a file that main() wrote.  Raises Refused unless it
    agrees on all families."""

    try:
        with open(path, encoding='utf-8') as f:
            file = json.load(f)
        kappas = {name: v['kappa'] for name, v in file['families'].items()}
        judge = Judge(file['url'], file['model'],
                      float(file['timeout']))
    except (OSError, ValueError, LookupError, TypeError, AttributeError,
            RunFailed) as e:
        raise Refused(f'{path} is not a file of train.agreement: {e}') \
            from None

    for f in families:
        if not enough(kappas.get(f)):
            raise Refused(f'{path}: kappa on {f} is {kappas.get(f)}; expected '
                          f'at least {LEAST}')

    return judge


def enough(value):
    return isinstance(value, (int, float)) and value >= LEAST


def main(args=None):
    """Returns the exit status."""

    o = arguments(args)

    try:
        judge = Judge(o.url, o.model, o.timeout)
        judge.check()
        found = {}

        for f in o.families:
            rubric_of(f, 'eval-1')
            try:
                some = balanced(read(o.files, f), o.answers, o.seed)
            except RunFailed as e:
                raise RunFailed(f'{f}: {e}') from None
            found[f] = compared(judge, f, some, o.concurrency)

    except (RunFailed, Refused, OSError, UnicodeError) as e:
        print(f'train.agreement: {e}', file=sys.stderr)
        return 1

    with open(o.out, 'w', encoding='utf-8') as f:
        json.dump({'url': o.url, 'model': o.model, 'timeout': o.timeout,
                   'answers': o.files, 'families': found}, f, indent=1)
        f.write('\n')

    print('\n'.join(grid(
        ['family', 'both right', 'rule only', 'judge only', 'both wrong',
         'no verdict', 'kappa'],
        [[f, *map(str, v['counts']),
          ', '.join(f'{n} {why}' for why, n in v['no_verdict'].items())
          or '0',
          'undefined' if v['kappa'] is None else f'{v["kappa"]:.3f}']
         for f, v in found.items()])))

    return 0 if all(enough(v['kappa']) for v in found.values()) else 1


if __name__ == '__main__':
    sys.exit(main())
