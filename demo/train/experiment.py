# Copyright (C) The nginx-dsa authors

"""Runs the next commands of an experiment that fit into a call.

    PYTHONPATH=demo python3 -m train.experiment FILE.json --run RUN \\
        --instruct RUN/tune.bf16 --sparse RUN/sparse.bf16 --tokenizer FILE \\
        [--seconds 540] [--backend cuda] [--list]

An experiment is {"about", "steps"}.  A step has a "command", which is a module
of Python with its options, may have "needs", the seconds that must be left when
it begins (60), and "each", names for {each} in the command, one after the
other; "domains" are those of train.domains that can be verified here.  With
"together", so many of them run at once, and share a GPU.  Commands have {run},
{instruct}, {sparse}, {tokenizer}, {build}, {seconds} and {serve}, the options
of train.served; they run without a shell.  What is done is in
RUN/experiment.jsonl, by its command.  A command that ends with the status 75
has more to do in the next call, and so has this program then.  --list prints
all commands, and runs none.
"""

import argparse
import contextlib
import itertools
import json
import os
import shlex
import subprocess
import sys
import time

from train import lines
from train.domains import DOMAINS, usable
from train.served import LEFT, ends_on_signal


SPARE = 20              # seconds for the end of a command


def load(path):
    """Returns the steps.  Raises BadLines."""

    try:
        with open(path, encoding='utf-8') as f:
            steps = json.load(f)['steps']

        each = {'domains': [d for d, f in DOMAINS.items() if usable(f)]}

        return [(s['command'], s.get('needs', 60),
                 max(1, int(s.get('together', 1))),
                 s['each'] if isinstance(s.get('each'), list)
                 else each[s['each']] if 'each' in s else [''])
                for s in steps]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise lines.BadLines(f'{path}: {type(e).__name__}: {e}; expected '
                             '{"about", "steps"}, each with a "command"') \
            from None


def commands(steps, options):
    """Yields (batch, command, needs).  command: a list of words, of which
    {seconds} is left; those of one batch run at once."""

    values = {k: getattr(options, k) for k in (
        'run', 'instruct', 'sparse', 'tokenizer', 'build')}
    serve = ['--tokenizer', options.tokenizer, '--build', options.build,
             '--backend', options.backend]

    for step, (text, needs, together, each) in enumerate(steps):
        for i, name in enumerate(each):
            words = []

            for word in shlex.split(text):
                words += serve if word == '{serve}' else [word.format(
                    each=name, seconds='{seconds}', **values)]

            yield (step, i // together), words, needs


def run(todo, log, seconds):
    """Runs what is not done.  Returns the exit status: of a batch that did
    not succeed one that is not LEFT, if there is one."""

    begin = time.monotonic()

    for _, batch in itertools.groupby(todo, key=lambda t: t[0]):
        batch = list(batch)
        left = seconds - (time.monotonic() - begin) - SPARE

        if left < batch[0][2]:
            return LEFT

        for _, words, _ in batch:
            print('+', shlex.join(words), file=sys.stderr, flush=True)

        statuses = ended([[w.format(seconds=int(left)) for w in words]
                          for _, words, _ in batch])

        with open(log, 'a', encoding='utf-8') as f:
            for (_, words, _), status in zip(batch, statuses):
                if status == 0:
                    f.write(lines.line({'done': shlex.join(words)}))

        bad = sorted(filter(None, statuses), key=lambda s: s == LEFT)

        if bad:
            return bad[0]

    return 0


def ended(commands):
    """Runs modules at once and returns the exit status of each.  They end
    with this program, and so do the servers that they started."""

    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(subprocess.Popen(
            [sys.executable, '-m', *words])) for words in commands]

        try:
            return [p.wait() for p in running]
        except BaseException:
            for p in running:
                p.terminate()
            raise


def main(args=None):
    p = argparse.ArgumentParser(prog='train.experiment', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    p.add_argument('experiment', metavar='FILE.json')
    p.add_argument('--run', required=True)
    p.add_argument('--instruct', required=True,
                   help='the checkpoint that specialists begin with')
    p.add_argument('--sparse', required=True,
                   help='the sparse base, for the stage distill')
    p.add_argument('--tokenizer', required=True)
    p.add_argument('--build', default='build')
    p.add_argument('--backend', default='cpu')
    p.add_argument('--seconds', type=float, default=540)
    p.add_argument('--list', action='store_true')
    options = p.parse_args(args)
    ends_on_signal()
    log = os.path.join(options.run, 'experiment.jsonl')
    os.makedirs(options.run, exist_ok=True)

    try:
        done = set()

        if os.path.exists(log):
            lines.repair(log)
            done = {str(x.get('done')) for x in lines.read(log)}

        todo = list(commands(load(options.experiment), options))

        if options.list:
            for _, words, _ in todo:
                print('done' if shlex.join(words) in done else 'left',
                      shlex.join(words))
            return 0

        return run([t for t in todo if shlex.join(t[1]) not in done], log,
                   options.seconds)
    except (lines.BadLines, OSError) as e:
        sys.exit(f'train.experiment: {e}')


if __name__ == '__main__':
    sys.exit(main())
