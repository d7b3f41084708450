# Copyright (C) The nginx-dsa authors

"""Training in two to four processes: the gradients and the log are those of
one process, all have the same parameters, and they end stages together.  Their
number does not divide the number of rows in every batch."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

from models import needs_torch

try:
    import torch
    import torch.distributed
except ImportError:
    torch = None


HERE = os.path.dirname(os.path.abspath(__file__))
WORLDS = (2, 3, 4)
DEADLINE = 300          # seconds
VARYING = {'seconds', 'tokens_per_second'}


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def run(out, world):
    """Trains in world processes.  Returns what each rank saw."""

    common = {**os.environ, 'MASTER_ADDR': '127.0.0.1',
              'MASTER_PORT': str(free_port()), 'WORLD_SIZE': str(world),
              'GLOO_SOCKET_IFNAME': 'lo', 'OMP_NUM_THREADS': '1'}
    path = os.path.join(out, str(world))
    ranks = [subprocess.Popen(
        [sys.executable, os.path.join(HERE, 'ranks.py'), path],
        env={**common, 'RANK': str(r), 'LOCAL_RANK': str(r)},
        stderr=subprocess.PIPE, text=True) for r in range(world)]

    try:
        errors = [p.communicate(timeout=DEADLINE)[1] for p in ranks]
    finally:
        for p in ranks:
            p.kill()

    if any(p.returncode for p in ranks):
        raise AssertionError('\n'.join(errors))

    return [torch.load(f'{path}.{r}') for r in range(world)]


@needs_torch
class Ranks(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if not (torch.distributed.is_available()
                and torch.distributed.is_gloo_available()):
            raise unittest.SkipTest('no torch with gloo')

        with tempfile.TemporaryDirectory() as out:
            cls.one, = run(out, 1)
            cls.worlds = {world: run(out, world) for world in WORLDS}

    def of_rank_0(self):
        """Yields what one process and rank 0 of several saw of each stage that
        has a fixed length."""

        for world in WORLDS:
            for want, got in zip(self.one[:4], self.worlds[world][0]):
                yield world, want, got

    def test_gradients_of_one_process(self):
        for world, want, got in self.of_rank_0():
            for a, b in zip(want['grads'], got['grads']):
                self.assertEqual(set(a), set(b))
                for name in a:
                    distance = float((a[name] - b[name]).norm())
                    self.assertLessEqual(
                        distance, 1e-4 * float(a[name].norm()) + 1e-7,
                        (world, name))

    def test_log_of_one_process(self):
        for world, want, got in self.of_rank_0():
            want, got = (json.loads(x['log'].splitlines()[-1])
                         for x in (want, got))
            self.assertEqual(set(want), set(got))
            for name in set(want) - VARYING - {'stage'}:
                self.assertAlmostEqual(want[name], got[name], delta=2e-4,
                                       msg=(world, name))

    def each_stage(self):
        """Yields what rank 0 and each other rank saw of each stage."""

        for world in WORLDS:
            for first, *others in zip(*self.worlds[world]):
                for other in others:
                    yield world, first, other

    def test_ranks_are_equal(self):
        for world, a, b in self.each_stage():
            for name in a['state']:
                self.assertTrue(torch.equal(a['state'][name],
                                            b['state'][name]), (world, name))

    def test_rank_0_decides(self):
        for world, a, b in self.each_stage():
            self.assertEqual(len(a['grads']), len(b['grads']), world)
            self.assertEqual(a['stopped'], b['stopped'], world)

        for world in WORLDS:
            timed, stopped = self.worlds[world][0][4:]
            self.assertIsNone(timed['stopped'])
            self.assertTrue(3 < len(timed['grads']) < 10,
                            (world, len(timed['grads'])))
            self.assertEqual(stopped['stopped'], 6, world)


if __name__ == '__main__':
    unittest.main()
