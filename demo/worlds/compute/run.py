# Copyright (C) The nginx-dsa authors

"""Runs jobs for tasks, one after another, until a deadline."""

import sys
import time
import uuid
from dataclasses import dataclass

from eval.client import Client
from eval.run import in_parallel, model_of, name_of, task_numbers
from worlds import registry
from worlds.compute.player import Player


@dataclass
class Job:
    """A task and a way to ask a model about it.

    family, level, seed    name the task
    make                   returns it, newly made
    ask                    takes a request without a model, returns a
                           completion
    number                 for the seeds of requests
    """
    family: str
    level: int
    seed: str
    make: object
    ask: object
    number: int

    def sampling_seed(self, n):
        """Returns the seed of the n-th sample."""

        return self.number * 1000 + n


def jobs(options, wanted):
    """Yields the Jobs of (NAME or NAME@LEVEL, number) pairs."""

    nonce = uuid.uuid4().hex

    for i, (name, number) in enumerate(wanted):
        family, level = registry.find(name)
        seed = name_of(number)

        def make(family=family, seed=seed, level=level):
            return family.task(seed, level)

        yield Job(family.name, level, seed, make,
                  asker(options, make, (family.name, seed, level),
                        f'{nonce}-{i}'), number)


def asker(options, make, task, key):
    if options.url is None:
        return Player(task, make).chat

    def ask(request):

        # a client is one connection, and threads do not share it

        client = Client(options.url, key)
        try:
            return client.chat({'model': options.model,
                                'temperature': options.temperature,
                                'max_tokens': options.max_tokens, **request})
        finally:
            client.close()

    return ask


def in_rounds(families, options):
    """Returns (name, number) pairs: the first task of every family, then the
    second one, and so on, so that a run which ends early has about as many of
    each."""

    return [(name, n) for n in task_numbers(options.seed, options.tasks)
            for name in families]


LATEST = 1.5        # times --minutes, after which no request is sent


class Late(Exception):
    """A task was not finished in time."""


def run(options, wanted, work):
    """Calls work(job) for the jobs in their order, several at a time.  After
    --minutes no further job begins.  Those that have begun are finished, so
    that tasks with long answers are not left out, but for those that take
    longer than LATEST allows.  Returns (job, result) pairs in order, and
    reports how many there are not."""

    if options.url is not None:
        options.model = model_of(options)

    begin = time.monotonic()
    deadline = begin + 60 * options.minutes
    late = []

    def one(job):
        if time.monotonic() >= deadline:
            return None

        ask = job.ask

        def asked(request):
            if time.monotonic() >= begin + LATEST * 60 * options.minutes:
                raise Late
            return ask(request)

        job.ask = asked

        try:
            return job, work(job)
        except Late:
            late.append(job)
            return None

    results = in_parallel([lambda job=job: one(job)
                           for job in jobs(options, wanted)],
                          options.concurrency)
    done = [r for r in results if r is not None]

    print(f'{len(done)} of {len(results)} tasks in '
          f'{time.monotonic() - begin:.0f} s; {len(late)} more had begun and '
          'were not finished in time', file=sys.stderr)

    return done
