# Copyright (C) The nginx-dsa authors

"""Rollouts in several processes: one Python interpreter has fewer
conversations in a second than the server answers.

A process gets whole groups, in order, and its share of the conversations at
the same time.  The tasks, the seeds of the noise and so the trajectories do not
depend on the number of processes.
"""

import multiprocessing
import os
import signal
import time

from eval.client import RunFailed
from train.rollout import rollouts


CORES = 4               # of the host for each process


class Clients:
    """Processes that end with this object, or with the program.  n: their
    number, by default one for each CORES; a single one is the program itself."""

    def __init__(self, n=None):
        n = n or os.cpu_count() // CORES
        self.pipes, self.processes = [], []

        # a forked process could not use what this one has of the GPU

        spawn = multiprocessing.get_context('spawn')

        for _ in range(n if n > 1 else 0):
            ours, theirs = spawn.Pipe()
            self.processes.append(spawn.Process(target=serve, args=(theirs,),
                                                daemon=True))
            self.processes[-1].start()
            theirs.close()
            self.pipes.append(ours)

    def rollouts(self, tasks, make, sampling, group, first, concurrency,
                 nonce):
        """rollout.rollouts() by all processes."""

        if not self.pipes or not tasks:
            return rollouts(tasks, make, sampling, group, first, concurrency,
                            nonce)

        begin, n = time.monotonic(), len(self.pipes)
        at = [i * len(tasks) // n for i in range(n + 1)]
        share = max(1, concurrency // n)

        try:
            for i, pipe in enumerate(self.pipes):
                pipe.send((tasks[at[i]:at[i + 1]], make, sampling, group,
                           first + at[i] * group, share, f'{nonce}-{i}'))

            # all of them are read, so that the next call gets its own answers

            answers = [pipe.recv() for pipe in self.pipes]
        except (EOFError, OSError):
            raise RunFailed('a process that has rollouts ended') from None

        for answer in answers:
            if isinstance(answer, RunFailed):
                raise answer

        return ([g for groups, _ in answers for g in groups],
                time.monotonic() - begin)

    def close(self):
        """Ends the processes, whatever they do."""

        for p in self.processes:
            p.terminate()
            p.join()


def serve(pipe):
    """Has rollouts until the other end of the pipe is closed."""

    # Ctrl-C is for the program, which then ends this process

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    while True:
        try:
            work = pipe.recv()
        except EOFError:
            return

        try:
            answer = rollouts(*work)
        except Exception as e:
            answer = e if isinstance(e, RunFailed) else RunFailed(repr(e))

        pipe.send(answer)
