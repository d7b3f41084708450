# Copyright (C) The nginx-dsa authors

"""Rollouts in several processes are those of one, and a process that ends ends
the run."""

import base64
import json
import os
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from test_rl import V, experts, needs_numpy, prompt, sample

try:
    from eval.client import RunFailed
    from tasks.mix import task_of
    from train.clients import Clients
    from train.rollout import Sampling
except ImportError:
    Clients = None


class Handler(BaseHTTPRequestHandler):
    """Answers a chat with one token, which depends on the seed."""

    def do_POST(self):
        request = json.loads(self.rfile.read(
            int(self.headers['Content-Length'])))
        seed = request['seed']
        self.server.seeds.append(seed)
        rows = prompt(3, 4) + experts(0, 2, first=seed) + sample(2, seed % V)
        body = json.dumps({'choices': [{
            'message': {'role': 'assistant', 'content': f'answer {seed}'},
            'finish_reason': 'stop',
            'rollout': {'rows': base64.b64encode(rows).decode()}}],
            'usage': {'prompt_tokens': 2, 'completion_tokens': 1}}).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@needs_numpy
class Several(unittest.TestCase):

    def setUp(self):
        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.seeds = []
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.sampling = Sampling(
            f'http://127.0.0.1:{self.server.server_port}/v1', 'm', 'chat', V)

    def clients(self, n):
        found = Clients(n)
        self.addCleanup(found.close)
        return found

    def have(self, clients, tasks, group=3):
        groups, _ = clients.rollouts(tasks, task_of, self.sampling, group,
                                     1000, 4, 'n')

        return [[(t.family, t.seed, t.reward, t.versions, t.written,
                  [(s.ids, s.sampled, s.old, s.kept, s.experts.tolist())
                   for s in t.sequences]) for t in g] for g in groups]

    def test_same(self):
        tasks = [('talk', 'rl-1'), ('arithmetic', 'rl-2'), ('talk', 'rl-3'),
                 ('talk', 'rl-4'), ('arithmetic', 'rl-5')]
        one, three = self.clients(1), self.clients(3)
        self.assertIsNone(one.pool)

        want = self.have(one, tasks)
        self.assertEqual([len(g) for g in want], [3] * 5)
        self.assertEqual(want[4][2][4][0]['content'], 'answer 1014')
        self.assertEqual(self.have(three, tasks), want)
        self.assertEqual(sorted(self.server.seeds),
                         sorted(2 * list(range(1000, 1015))))

        # fewer tasks than processes, and none

        self.assertEqual(self.have(three, tasks[:2]), want[:2])
        self.assertEqual(self.have(three, []), [])

    def test_failures(self):
        three = self.clients(3)
        tasks = [('talk', 'rl-1'), ('no such family', 'rl-2'),
                 ('talk', 'rl-3')]

        with self.assertRaisesRegex(KeyError, 'no such family'):
            self.have(three, tasks)

        # the others' answers to that call are not those of the next one

        self.assertEqual([g[0][1] for g in self.have(three, tasks[::2])],
                         ['rl-1', 'rl-3'])

        with self.assertRaisesRegex(RunFailed, 'a process .* ended'):
            three.rollouts(tasks[:1], deadly, self.sampling, 1, 1, 1, 'n')


def deadly(family, name):
    os._exit(1)


if __name__ == '__main__':
    unittest.main()
