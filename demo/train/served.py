# Copyright (C) The nginx-dsa authors

"""A checkpoint, served while a program needs it."""

import contextlib
import hashlib
import os
import signal
import sys
import tempfile

from train import restore
from train.server import Server


# exit status after --seconds: the same command continues (EX_TEMPFAIL)

LEFT = 75


def add_options(p):
    """Adds the options of a program that serves --model."""

    p.add_argument('--model', required=True,
                   help='a checkpoint, or the directory of a model')
    p.add_argument('--tokenizer', help='of a checkpoint')
    p.add_argument('--build', default='build')
    p.add_argument('--nginx')
    p.add_argument('--backend', default='cpu')
    p.add_argument('--memory', default='1g')
    p.add_argument('--running', type=int, default=64)


def digest(path):
    """Returns what identifies the weights of a checkpoint or a directory."""

    files = [os.path.join(path, f) for f in sorted(os.listdir(path))
             if f.endswith('.safetensors')] if os.path.isdir(path) else [path]
    found = hashlib.sha256()

    for file in files:
        with open(file, 'rb') as f:
            found.update(f.read())

    return found.hexdigest()[:16]


def ends_on_signal():
    """Lets SIGTERM end the program as Ctrl-C does, so that the programs that
    it started end, too."""

    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))


@contextlib.contextmanager
def serving(options):
    """Starts the server of --model, and ends it.  A checkpoint is exported
    into a temporary directory first."""

    with tempfile.TemporaryDirectory(prefix='dsa-served.') as made:
        path = options.model

        if not os.path.isdir(path):
            from train.export import export

            saved = restore.start(path)
            export(saved['config'], saved['model'], made, options.tokenizer)
            path = made

        server = Server(options.build, path, options.backend, options.memory,
                        options.running, nginx=options.nginx)

        try:
            server.start()
            yield server
        finally:
            server.stop()
