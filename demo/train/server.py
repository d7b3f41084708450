# Copyright (C) The nginx-dsa authors

"""The server that rollouts come from: dsa-engine and nginx on loopback, with
weights that are replaced in place."""

import base64
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

from eval.client import Client, RunFailed
from train.rollout import read_rows


ENGINE = '''\
model         {run}/model;
name          policy;
listen        unix:{run}/engine.sock;
backend       {backend};
speculate     off;
kv_memory     {memory};
max_running   {running};
'''

NGINX = '''\
load_module {module};

{user}
worker_processes  {workers};
pid               {run}/nginx.pid;
error_log         {run}/error.log  notice;

events {{
    worker_connections  4096;
}}

http {{
    access_log             off;
    client_body_temp_path  {run}/temp.body;
    proxy_temp_path        {run}/temp.proxy;
    fastcgi_temp_path      {run}/temp.fastcgi;
    uwsgi_temp_path        {run}/temp.uwsgi;
    scgi_temp_path         {run}/temp.scgi;

    dsa_pool policy {{
        engine  unix:{run}/engine.sock;
    }}

    server {{
        listen  127.0.0.1:{port};

        client_max_body_size     4m;
        client_body_buffer_size  4m;

        location / {{
            dsa_pass     policy;
            dsa_rollout  16m;
        }}

        location = /metrics {{
            dsa_metrics;
        }}
    }}
}}
'''


class Server:
    """
    build    the directory of dsa-engine and of nginx's module
    model    the directory of the first weights
    backend  cpu or cuda
    memory   for pages, as kv_memory has it
    running  most sequences in a step
    """

    def __init__(self, build, model, backend='cpu', memory='1g', running=64,
                 workers=2, nginx=None):
        self.build = os.path.abspath(build)
        self.run = tempfile.mkdtemp(prefix='dsa-rl.')
        self.programs, self.version = [], 0
        self.nginx = nginx or shutil.which('nginx') or '/usr/sbin/nginx'
        self.values = {'run': self.run, 'backend': backend, 'memory': memory,
                       'running': running, 'workers': workers,
                       'port': free_port(),
                       'user': 'user root;' if os.getuid() == 0 else '',
                       'module': self.build + '/ngx_http_dsa_module.so'}
        self.url = f'http://127.0.0.1:{self.values["port"]}/v1'
        self.link(model)

    def start(self, limit=300):
        """Starts both, and returns when they answer."""

        for name, text in (('engine', ENGINE), ('nginx', NGINX)):
            with open(f'{self.run}/{name}.conf', 'w') as f:
                f.write(text.format(**self.values))

        self.spawn('engine', self.build + '/dsa-engine', '-c',
                   self.run + '/engine.conf')
        self.wait(lambda: os.path.exists(self.run + '/engine.sock'), limit)
        self.spawn('nginx', self.nginx, '-p', self.run, '-e',
                   self.run + '/error.log', '-c', self.run + '/nginx.conf',
                   '-g', 'daemon off;')
        self.wait(self.ready, limit)
        self.model = self.call(lambda c: c.model())
        self.version = self.weights()

    def spawn(self, name, *argv):

        # in a thread: a signal's handler may raise in this one before the
        # program is in the list, and nobody would end it

        with open(f'{self.run}/{name}.log', 'wb') as log, \
                ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: self.programs.append(subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True))).result()

    def wait(self, done, limit):
        end = time.monotonic() + limit

        while not done():
            if any(p.poll() is not None for p in self.programs):
                raise RunFailed('a program of the server ended:\n'
                                + self.logs())

            if time.monotonic() > end:
                raise RunFailed(f'the server is not ready after {limit} s:\n'
                                + self.logs())

            time.sleep(0.02)

    def ready(self):
        """Returns true if each worker has its session with the engine: one
        without it would answer 503."""

        try:
            with urlopen(self.url[:-2] + 'metrics', timeout=20) as answer:
                text = answer.read().decode()
        except OSError:
            return False

        return f'\ndsa_sessions {self.values["workers"]}\n' in text

    def call(self, what):
        client = Client(self.url, timeout=120)

        try:
            return what(client)
        finally:
            client.close()

    def weights(self):
        """Returns the version of the weights that compute now."""

        answer = self.call(lambda c: c.request('POST', '/completions', {
            'model': self.model, 'prompt': 'a', 'max_tokens': 1,
            'rollout': {}}))

        if answer[0] != 200:
            raise RunFailed(f'{answer[0]}: {answer[1]}')

        rows = answer[1]['choices'][0]['rollout']['rows']

        return max(read_rows(base64.b64decode(rows), 1 << 20).versions)

    def replace(self, model, limit=120):
        """Lets the engine replace its weights by those of a directory, and
        returns the seconds until it computes with them."""

        before, begin = self.version, time.monotonic()
        self.link(model)
        os.kill(self.programs[0].pid, signal.SIGHUP)

        def replaced():
            self.version = self.weights()
            return self.version != before

        self.wait(replaced, limit)

        if self.version != before + 1:
            raise RunFailed(f'the weights have version {self.version} after '
                            f'{before}; expected {before + 1} (was the engine '
                            'started again?)\n' + self.logs())

        return time.monotonic() - begin

    def link(self, model):
        os.symlink(os.path.abspath(model), self.run + '/next')
        os.rename(self.run + '/next', self.run + '/model')

    def logs(self):
        text = ''

        for name in ('engine.log', 'nginx.log', 'error.log'):
            try:
                with open(f'{self.run}/{name}', errors='replace') as f:
                    text += f'-- {name}\n' + f.read()[-3000:]
            except OSError:
                pass

        return text

    def stop(self):
        """Ends nginx first, so that no request is cut off."""

        for p in reversed(self.programs):
            if p.poll() is None:
                p.terminate()
                try:
                    p.wait(30)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait()

        shutil.rmtree(self.run, ignore_errors=True)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]
