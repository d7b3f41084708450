# Copyright (C) The nginx-dsa authors

"""Runs the conversations of many tasks with a served model, and writes a file
of results.

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
    """Returns the numbers of a run's tasks.  Runs with other seeds have other
    numbers."""

    first = seed * SEEDS_A_RUN
    return range(first, first + n)


def name_of(number):
    """Returns the seed of a task.  Training uses other names, so that no task
    is in both."""

    return f'eval-{number}'


def have(task, number, options, key):
    """Runs a task.  Returns its result as the output file has it."""

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
    """Runs all conversations, several at a time, and returns their results in
    the order of their tasks.  The first failure ends the run."""

    todo = []

    for family in options.families:
        tasks = [(task_of(family, name_of(n)), n)
                 for n in task_numbers(options.seed, options.tasks)]
        fit = [(t, n) for t, n in tasks if options.mode in t.modes]

        if len(fit) < len(tasks):
            log(f'{family}: {len(fit)} of {len(tasks)} tasks have the mode '
                 + options.mode)

        todo += fit

    # each task has a key and so a cache of its own: what it finds in the
    # server's cache does not depend on other tasks or earlier runs

    nonce = uuid.uuid4().hex

    return in_parallel(
        [lambda task=task, n=n, i=i: have(task, n, options, f'{nonce}-{i}')
         for i, (task, n) in enumerate(todo)], options.concurrency)


def in_parallel(jobs, concurrency):
    """Calls functions, several at a time, and returns their results in order.
    The first exception ends the run."""

    pool = ThreadPoolExecutor(concurrency)

    try:
        futures = [pool.submit(job) for job in jobs]

        for future in wait(futures, return_when=FIRST_EXCEPTION).done:
            future.result()

        return [future.result() for future in futures]

    finally:
        pool.shutdown(cancel_futures=True)


def model_of(options):
    """Returns the name of the model: the given one, or the server's first."""

    if options.model is not None:
        return options.model

    client = Client(options.url)

    try:
        return client.model()
    finally:
        client.close()


def summary(results):
    """Returns one line for each family: how many tasks were right."""

    count = {}

    for r in results:
        n, right = count.get(r['family'], (0, 0))
        count[r['family']] = n + 1, right + r['right']

    return [f'{family}: {right} of {n} right'
            for family, (n, right) in count.items()]


def log(text):
    print(text, file=sys.stderr, flush=True)


def positive(text):
    n = int(text)

    if n < 1:
        raise ValueError

    return n


def add_options(p):
    """Adds the options that are the same for all that is evaluated."""

    p.add_argument('--url', default='http://127.0.0.1:8080/v1')
    p.add_argument('--model', help='default: the first that the server lists')
    p.add_argument('--name', help='name of the run in tables; default: its '
                                  'mode')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--mode', choices=(RETAIN, DISCARD, CHAT), default=RETAIN,
                   help='retain: reasoning is sent back until the next '
                        'message of the user; discard: it is not sent back; '
                        'chat: the model does not think')
    p.add_argument('--temperature', type=float, default=0,
                   help='only for the mode chat, because the API ignores it '
                        'when the model thinks')
    p.add_argument('--max-tokens', type=positive, default=2048,
                   help='limit of one message')
    p.add_argument('--concurrency', type=positive, default=8,
                   help='conversations at a time')
    p.add_argument('--out', required=True, metavar='FILE')


def parse(args, known):
    p = argparse.ArgumentParser(prog='eval.run', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    p.add_argument('--families', default='all',
                   help='comma-separated names, or all: '
                        + ', '.join(known))
    p.add_argument('--tasks', type=positive, default=100,
                   help='how many of each family')
    add_options(p)

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
        options.model = model_of(options)
        results = run(options, task_of)

    except RunFailed as e:
        log(f'the run failed: {e}')
        return 1

    what = ('name', 'model', 'mode', 'seed', 'tasks', 'temperature',
            'max_tokens', 'concurrency')

    with open(options.out, 'w') as f:
        json.dump({**{k: getattr(options, k) for k in what},
                   'results': results}, f, indent=1)
        f.write('\n')

    for line in summary(results):
        log(line)

    return 0


if __name__ == '__main__':
    from tasks.mix import FAMILIES, task_of

    sys.exit(main(sys.argv[1:], list(FAMILIES), task_of))
