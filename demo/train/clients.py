# Copyright (C) The nginx-dsa authors

"""Rollouts in several processes: one Python interpreter has fewer
conversations in a second than the server answers.

A process gets whole groups, in order, and its share of the conversations at
the same time.  The tasks and the seeds of the noise do not depend on the number
of processes.
"""

import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from eval.client import RunFailed
from train.rollout import rollouts


CORES = 4               # of the host for each process


class Clients:
    """n: the number of processes, by default one for each CORES; a single one
    is the program itself."""

    def __init__(self, n=None):
        self.n = n or max(1, os.cpu_count() // CORES)

        # a forked process could not use what this one has of the GPU

        self.pool = None if self.n == 1 else ProcessPoolExecutor(
            self.n, multiprocessing.get_context('spawn'), uninterrupted)

    def rollouts(self, tasks, make, sampling, group, first, concurrency,
                 nonce):
        """rollout.rollouts() by all processes.  Raises RunFailed if one of
        them ends."""

        if self.pool is None:
            return rollouts(tasks, make, sampling, group, first, concurrency,
                            nonce)

        begin = time.monotonic()
        at = [i * len(tasks) // self.n for i in range(self.n + 1)]
        share = max(1, concurrency // self.n)

        try:
            jobs = [self.pool.submit(
                rollouts, tasks[a:b], make, sampling, group, first + a * group,
                share, f'{nonce}-{a}') for a, b in zip(at, at[1:]) if a < b]

            # a failure does not leave conversations to the next call

            wait(jobs)
            groups = [g for job in jobs for g in job.result()[0]]
        except BrokenProcessPool:
            raise RunFailed('a process that has rollouts ended') from None

        return groups, time.monotonic() - begin

    def close(self):
        """Waits for the conversations, which fail when the server has
        ended."""

        if self.pool is not None:
            self.pool.shutdown()


def uninterrupted():
    """Ctrl-C is for the program, which then ends its server."""

    signal.signal(signal.SIGINT, signal.SIG_IGN)
