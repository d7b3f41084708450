# Copyright (C) The nginx-dsa authors

"""Runs the loop of synthesis, and reports what it made.

    PYTHONPATH=demo python3 -m worlds.general make [--environments 10]
    PYTHONPATH=demo python3 -m worlds.general curve [--tasks 200]
    PYTHONPATH=demo python3 -m worlds.general chat CATEGORY --url URL

make runs the loop over all levels for so many environments of each category,
with the seeds PART-1 and so on, and prints the counts in Markdown.  curve
prints how often the bounded policy is right at each level, over so many tasks.
chat has a model propose one environment and attempt its tasks, and prints what
was kept as JSON.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from multiprocessing import Pool

from eval.client import Client, RunFailed
from eval.converse import converse
from eval.table import grid, share, wilson
from tasks.task import CHAT
from worlds.code import cage
from worlds.general import box, chat, source
from worlds.general.candidate import judge
from worlds.general.hangzhou import Hangzhou
from worlds.general.loop import Kept, synthesize
from worlds.general.program import CATEGORIES, LEVELS, Program
from worlds.general.task import SUBMIT, task_of


NAMES = [*CATEGORIES, 'hangzhou']


def proposer_of(name, seed, **more):
    return Hangzhou(seed, **more) if name == 'hangzhou' \
        else Program(name, seed, **more)


def made(job):
    """Runs the loop for an environment.  Returns what the report needs."""

    name, seed = job
    proposer = proposer_of(name, seed)
    result = synthesize(proposer)

    return {
        'category': name, 'given_up': result.given_up,
        'unsolved': result.unsolved, 'faults': result.faults,
        'kept': [(k.candidate.level, k.faults, k.candidate.kinds,
                  source.normalized(k.candidate.solution), k.successes)
                 for k in result.kept]}


def make(options):
    names = options.categories
    jobs = [(name, f'{options.part}-{n}') for name in names
            for n in range(1, options.environments + 1)]
    begin = time.monotonic()

    with Pool(options.processes) as pool:
        results = pool.map(made, jobs, chunksize=4)

    seconds = time.monotonic() - begin
    kept = [k for r in results for k in r['kept']]
    faults = sum((r['faults'] for r in results), Counter())
    repaired = [k for k in kept if set(k[1]) - {'tools'}]
    rows = []

    for name in names:
        own = [r for r in results if r['category'] == name]
        tasks = [k for r in own for k in r['kept']]
        rows.append([name, str(sum(r['kept'] != [] for r in own)),
                     str(len(tasks)),
                     str(sum(set(k[1]) - {'tools'} != set() for k in tasks)),
                     str(sum(r['unsolved'] for r in own)),
                     str(sum(r['given_up'] for r in own))])

    print('\n'.join(grid(['category', 'environments', 'tasks', 'repaired',
                          'unsolved', 'given up'], rows)))
    print(f'\n{sum(r["kept"] != [] for r in results)} environments, '
          f'{len(kept)} tasks; {len(repaired)} passed through a repair '
          f'({100 * len(repaired) / len(kept):.1f} %), '
          f'{sum("tools" in k[1] for k in kept)} through new tools')
    print('faults: ' + ', '.join(f'{k} {n}' for k, n in
                                 faults.most_common()))
    print('tasks by level: ' + ' '.join(
        f'{n}: {sum(k[0] == n for k in kept)}' for n in range(1, LEVELS + 1)))
    print('kinds of constraints: '
          + ', '.join(sorted({x for k in kept for x in k[2]})))
    print(f'categories that share a normalized solution: {shared(results)}')
    print(f'{seconds:.0f} s with {options.processes} processes: '
          f'{len(kept) / seconds:.1f} tasks a second')


def shared(results):
    """Returns the number of pairs of categories that share the normalized
    tree of a solution."""

    trees = {}

    for r in results:
        trees.setdefault(r['category'], set()).update(k[3] for k in r['kept'])

    names = list(trees)

    return sum(bool(trees[a] & trees[b]) for i, a in enumerate(names)
               for b in names[:i])


def tried(job):
    """Returns for each level whether one attempt of the policy is right."""

    name, seed = job
    proposer = proposer_of(name, seed, faulty=0)
    rng = random.Random(f'{name}/{seed}/curve')
    right = []

    for level in range(1, LEVELS + 1):
        c = proposer.propose(level)
        with box.Functions(c.verifier, c.db) as opened:
            right.append(judge(opened, c.attempt(rng)) is None)

    return right


def curve(options):
    rows, bad = [], []

    with Pool(options.processes) as pool:
        for name in options.categories:
            results = pool.map(tried, [
                (name, f'{options.part}-{n}')
                for n in range(1, options.tasks + 1)], chunksize=10)
            counts = [sum(level) for level in zip(*results)]
            rows.append([name] + [share(n, options.tasks) for n in counts])

            if counts[0] - counts[-1] < 0.3 * options.tasks or any(
                    wilson(b, options.tasks)[0] > wilson(a, options.tasks)[1]
                    for a, b in zip(counts, counts[1:])):
                bad.append(name)

            print(rows[-1], file=sys.stderr, flush=True)

    print('\n'.join(grid(['category'] + [f'level {n}' for n in
                                         range(1, LEVELS + 1)], rows)))
    print('\ncategories that fall by less than 30 points, or rise outside '
          'the interval: ' + (' '.join(bad) or 'none'))


def submitted(candidate, ask):
    """Returns the result that a model submits for a candidate, or None."""

    task = task_of(Kept(candidate, [], None, 0), candidate.category)
    submit = task.tools[SUBMIT].run
    given = [None]

    def run(arguments):
        received = submit(arguments)
        given.append(json.loads(arguments['answer_text']))
        return received

    task.tools[SUBMIT].run = run
    converse(task, CHAT, ask)

    return given[-1]


def by_chat(options):
    client = Client(options.url)

    def ask(messages):
        completion = client.chat({
            'model': options.model or client.model(), 'messages': messages,
            'max_tokens': options.max_tokens})
        return completion['choices'][0]['message'].get('content') or ''

    def attempt(candidate, rng):
        return submitted(candidate, lambda request: client.chat({
            'model': options.model or client.model(),
            'seed': rng.randrange(1 << 31),
            'max_tokens': options.max_tokens, **request}))

    try:
        result = synthesize(chat.Chat(
            options.category, 'chat', ask, attempt,
            f'the model, {options.attempts} attempts'), options.attempts)
    except (chat.Failed, RunFailed) as e:
        print(e, file=sys.stderr)
        return 1
    finally:
        client.close()

    for k in result.kept:
        c = k.candidate
        print(json.dumps({'level': c.level, 'database': c.db,
                          'tools': c.tools, 'task': c.text,
                          'solution': c.solution, 'verifier': c.verifier,
                          'faults': k.faults}, ensure_ascii=False))

    return 0 if result.kept else 1


def main(args):
    parser = argparse.ArgumentParser(
        prog='worlds.general', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)

    for name in ('make', 'curve'):
        p = commands.add_parser(name)
        p.add_argument('--part', choices=('train', 'eval'), default='train')
        p.add_argument('--processes', type=int, default=2)

        p.add_argument('--categories', nargs='+', choices=NAMES,
                       default=NAMES)

    commands.choices['make'].add_argument('--environments', type=int,
                                          default=10)
    commands.choices['curve'].add_argument('--tasks', type=int, default=200)
    p = commands.add_parser('chat')
    p.add_argument('category')
    p.add_argument('--url', default='http://127.0.0.1:8080/v1')
    p.add_argument('--model')
    p.add_argument('--max-tokens', type=int, default=16384)
    p.add_argument('--attempts', type=int, default=8,
                   help='of the model at a task, which is kept if one is '
                        'right')

    options = parser.parse_args(args)

    try:
        cage.check()
    except cage.NoCage as e:
        print(e, file=sys.stderr)
        return 1

    return {'make': make, 'curve': curve,
            'chat': by_chat}[options.command](options) or 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
