# Copyright (C) The nginx-dsa authors

"""Lets a served model have the conversations of many tasks, and writes down
what came of them.

    PYTHONPATH=demo python3 -m eval.run --families all --tasks 100 \\
        --seed 1 --mode retain --out retain.1.json
"""

import argparse
import json
import sys
import time
import uuid
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict

from eval.client import Client, RunFailed
from eval.converse import converse
from tasks.task import CHAT, DISCARD, RETAIN


SEEDS_A_RUN = 1_000_000


def task_numbers(seed, n):
    """Returns the numbers of a run's tasks, which no other seed has."""

    first = seed * SEEDS_A_RUN
    return range(first, first + n)


def name_of(number):
    """Returns the seed of a task; training has other names for its own."""

    return f'eval-{number}'


def have(task, number, options, key):
    """Returns what came of a task, as it is written."""

    client = Client(options.url, key)
    seed = name_of(number)

    def chat(request):
        return client.chat({'model': options.model, 'seed': number,
                            'temperature': options.temperature,
                            'max_tokens': options.max_tokens, **request})

    begin = time.monotonic()

    try:
        outcome = converse(task, options.mode, chat)
    except RunFailed as e:
        raise RunFailed(f'{task.family} {seed}: {e}') from None
    except Exception as e:
        e.add_note(f'{task.family} {seed}')
        raise
    finally:
        client.close()

    return {'family': task.family, 'kind': task.kind, 'seed': seed,
            'right': outcome.why is None, **asdict(outcome),
            'seconds': round(time.monotonic() - begin, 3)}


def run(options, task_of):
    """Has all conversations, several at a time; returns their results in the
    order of their tasks.  The first failure ends the run."""

    todo = []

    for family in options.families:
        tasks = [(task_of(family, name_of(n)), n)
                 for n in task_numbers(options.seed, options.tasks)]
        fit = [(t, n) for t, n in tasks if options.mode in t.modes]

        if len(fit) < len(tasks):
            tell(f'{family}: {len(fit)} of {len(tasks)} tasks have the mode '
                 + options.mode)

        todo += fit

    # a key for each task: it finds in the server's cache what it has itself
    # put there, whatever ran before or runs beside it

    nonce = uuid.uuid4().hex

    pool = ThreadPoolExecutor(options.concurrency)

    try:
        jobs = [pool.submit(have, task, n, options, f'{nonce}-{i}')
                for i, (task, n) in enumerate(todo)]

        for job in wait(jobs, return_when=FIRST_EXCEPTION).done:
            job.result()

        return [job.result() for job in jobs]

    finally:
        pool.shutdown(cancel_futures=True)


def summary(results):
    """Returns lines: how many were right, by family."""

    count = {}

    for r in results:
        n, right = count.get(r['family'], (0, 0))
        count[r['family']] = n + 1, right + r['right']

    return [f'{family}: {right} of {n} right'
            for family, (n, right) in count.items()]


def tell(text):
    print(text, file=sys.stderr, flush=True)


def positive(text):
    n = int(text)

    if n < 1:
        raise ValueError

    return n


def parse(args, known):
    p = argparse.ArgumentParser(prog='eval.run', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    p.add_argument('--url', default='http://127.0.0.1:8080/v1')
    p.add_argument('--model', help='the first that is listed, unless given')
    p.add_argument('--name', help="the run's in tables; its mode, unless "
                                  'given')
    p.add_argument('--families', default='all',
                   help='names with commas between, or all: '
                        + ', '.join(known))
    p.add_argument('--tasks', type=positive, default=100,
                   help='of each family')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--mode', choices=(RETAIN, DISCARD, CHAT), default=RETAIN,
                   help='reasoning is sent back until the user speaks, is '
                        'not sent back, is not there')
    p.add_argument('--temperature', type=float, default=0,
                   help='has an effect in the mode chat only: the API '
                        'ignores it while thinking')
    p.add_argument('--max-tokens', type=positive, default=2048,
                   help='of one message')
    p.add_argument('--concurrency', type=positive, default=8,
                   help='conversations at a time')
    p.add_argument('--out', required=True, metavar='FILE')

    options = p.parse_args(args)
    options.name = options.name or options.mode
    options.families = list(known) if options.families == 'all' \
        else options.families.split(',')

    for family in options.families:
        if family not in known:
            p.error(f'no such family: {family}')

    return options


def main(args, known, task_of):
    """Returns the exit status."""

    options = parse(args, known)

    try:
        if options.model is None:
            client = Client(options.url)
            options.model = client.model()
            client.close()

        results = run(options, task_of)

    except RunFailed as e:
        tell(f'the run failed: {e}')
        return 1

    what = ('name', 'model', 'mode', 'seed', 'tasks', 'temperature',
            'max_tokens', 'concurrency')

    with open(options.out, 'w') as f:
        json.dump({**{k: getattr(options, k) for k in what},
                   'results': results}, f, indent=1)
        f.write('\n')

    for line in summary(results):
        tell(line)

    return 0


if __name__ == '__main__':
    from tasks.mix import FAMILIES, task_of

    sys.exit(main(sys.argv[1:], list(FAMILIES), task_of))
