# Copyright (C) The nginx-dsa authors

"""Samples a specialist through the running server, and keeps the answers that
the verifiers of its domain accept.

    PYTHONPATH=demo python3 -m train.verified --model RUN/policy.bf16 \\
        --tokenizer FILE --domain logic --mode both --tasks 400 \\
        --out logic.jsonl [--attempts 8] [--most 2] [--backend cuda]
        [--seconds N]

Each of --tasks tasks, of the domain's families in turn, is had --attempts
times, and the first --most different conversations that are accepted are kept.
Their tasks are neither those of reinforcement learning nor of evaluation.
--seconds ends a call, with the exit status 75, and the same command continues:
what is written does not depend on where it was ended.  A line of --out, one for
each task:

    number, domain, family, seed, mode
                    the task, and whether the model thought
    weights         the digest of the model
    version         of its weights in the server
    attempts, right how many, and how many of them the verifier accepted
    refused         accepted, but not of use in training, by reason
    samples         [{"noise", "messages"}]: the seed of the noise, and the
                    messages of a chat request, the assistant's with reasoning
    tools           of a chat request, if there are samples

--out is written as FILE.part, and gets its name when all tasks are in it.
train.distill makes shards of such files.
"""

import argparse
import base64
import itertools
import json
import math
import os
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from eval import disjoint
from eval.client import Client, RunFailed
from eval.converse import converse
from eval.run import positive
from train import domains, lines
from train.encode import training_samples
from train.rollout import read_rows
from train.served import (LEFT, add_options, digest, ends_on_signal,
                          serving)
from worlds.form import Refused, verify
from worlds.registry import task_of


NOISE = 1 << 20                 # seeds of the noise of a task
CHUNK = 16                      # tasks that are had together
PART = '.part'

TYPES = {'number': int, 'domain': str, 'family': str, 'seed': str, 'mode': str,
         'weights': str, 'version': int, 'samples': list}


def conversation(messages, written):
    """Returns the messages of a conversation as training reads them: with all
    reasoning, as the completions `written` have it, in order, and with calls
    named by their place."""

    names, found, rest = {}, [], iter(written)

    for n, m in enumerate(messages):
        m = {k: v for k, v in m.items() if k != 'reasoning_content'}

        if m['role'] == 'assistant':
            reasoning = next(rest).get('reasoning_content')
            if reasoning:
                m['reasoning_content'] = reasoning

            if m.get('tool_calls'):
                for i, call in enumerate(m['tool_calls']):
                    names[call['id']] = f'call_{n}_{i}'
                m['tool_calls'] = [{**c, 'id': names[c['id']]}
                                   for c in m['tool_calls']]

        if m['role'] == 'tool':
            m['tool_call_id'] = names[m['tool_call_id']]

        found.append(m)

    return found


def have(task, mode, server, sampling, noise, key):
    """Has a conversation.  Returns its messages, or None if it does not come
    to its end.  Raises RunFailed if other weights than the server's first
    ones computed a part of it."""

    client, written, seen = Client(server.url, key), [], []

    def chat(request):
        completion = client.chat({**request, **sampling, 'seed': noise,
                                  'model': server.model, 'rollout': {}})
        choice = completion['choices'][0]
        rows = base64.b64decode(choice['rollout']['rows'])
        versions = read_rows(rows, 1 << 20).versions

        if versions != {server.version}:
            raise RunFailed(
                f'{task.family}: an answer of weights of version '
                + ', '.join(map(str, sorted(versions)))
                + f'; expected {server.version}')

        written.append(choice['message'])
        seen[:] = [request['messages']]

        return completion

    try:
        outcome = converse(task, mode, chat)
    finally:
        client.close()

    # converse() appends each message to the list of its requests

    return conversation(seen[0], written) if outcome.why is None else None


def refusal(task, mode, messages, known):
    """Returns why a conversation is not kept, or None.  task: newly made; its
    calls are executed again, so that what is kept is right as it is written.
    known: texts of conversations that are kept."""

    if verify(task, messages) is not None:
        return 'wrong when it is repeated'

    try:
        training_samples(messages, task.tool_list(), mode)
    except ValueError:
        return 'not encodable'

    if disjoint.shared(messages):
        return 'shares words with a prompt of demo/eval'

    return 'as another' if json.dumps(messages) in known else None


def entry(task, found, make, most):
    """Returns what a line has of a task, a dict of number, family, seed and
    mode.  found: of each attempt the messages, or None.  make(family, seed)
    returns the Task.  most: how many samples are kept."""

    number, family, seed, mode = task.values()
    refused, samples, known = {}, [], set()

    for i, messages in enumerate(found):
        if messages is None or len(samples) == most:
            continue

        why = refusal(make(family, seed), mode, messages, known)

        if why is None:
            known.add(json.dumps(messages))
            samples.append({'noise': number * NOISE + i,
                            'messages': messages})
        else:
            refused[why] = refused.get(why, 0) + 1

    return {**task, 'attempts': len(found),
            'right': sum(m is not None for m in found),
            'refused': refused, 'samples': samples,
            **({'tools': make(family, seed).tool_list()} if samples else {})}


def tasks_of(families, mode, seed, number=0):
    """Yields tasks without end, from a number on, as dicts: of families in
    turn, and of the modes in turn for each of them."""

    modes = domains.MODES[mode]

    while True:
        turn, at = divmod(number, len(families))
        yield {'number': number, 'family': families[at],
               'seed': f'distill-{seed}-{number}',
               'mode': modes[turn % len(modes)]}
        number += 1


def possible(tasks):
    """Leaves out tasks that do not have their mode."""

    return (t for t in tasks
            if t['mode'] in task_of(t['family'], t['seed']).modes)


def read(path, weights=None):
    """Returns the lines of a file.  Raises BadLines for what this program
    does not write: a member of another type, an unknown domain, a family that
    is not the domain's, several models.  weights: the digest that all lines
    must have."""

    found = lines.read(path)

    for n, x in enumerate(found, 1):
        weights = weights or x.get('weights')
        why = wrong(x, weights)

        if why is not None:
            raise lines.BadLines(f'{path}:{n}: {why}')

    return found


def wrong(x, weights):
    """Returns what is wrong in a line, with what is accepted, or None."""

    for name, kind in TYPES.items():
        if not isinstance(x.get(name), kind):
            return f'{name}: expected a value of type {kind.__name__}'

    for name, known in (
            ('domain', domains.DOMAINS),
            ('family', domains.DOMAINS.get(x['domain'], ())),
            ('mode', domains.MODES[domains.BOTH]), ('weights', (weights,))):
        value = domains.base(x[name]) if name == 'family' else x[name]

        if value not in known:
            return (f'{name}: {x[name]:.80}; expected ' + ' or '.join(known)
                    + (', one model in a file' if name == 'weights' else ''))

    return None


def arguments(args=None):
    p = argparse.ArgumentParser(prog='train.verified', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    add_options(p)
    p.add_argument('--domain', required=True, choices=domains.DOMAINS)
    p.add_argument('--out', required=True)
    p.add_argument('--mode', choices=domains.MODES, default=domains.BOTH)
    p.add_argument('--tasks', type=positive, default=400)
    p.add_argument('--attempts', type=positive, default=8)
    p.add_argument('--most', type=positive, default=2)
    p.add_argument('--seconds', type=float, default=math.inf)
    p.add_argument('--concurrency', type=positive, default=128)
    p.add_argument('--temperature', type=float, default=1.0)
    p.add_argument('--top-p', type=float, default=0.95)
    p.add_argument('--max-tokens', type=positive, default=512)
    p.add_argument('--seed', type=int, default=1)
    options = p.parse_args(args)

    try:
        options.families = domains.families_of([options.domain])
    except Refused as e:
        p.error(f'--domain: {e}')

    if options.attempts > NOISE:
        p.error(f'--attempts: expected at most {NOISE}')

    return options


def sample(options, server, todo, weights, out):
    """Has the tasks that todo yields, and appends a line for each to a file,
    until --seconds are over.  Returns how many."""

    begin, nonce = time.monotonic(), uuid.uuid4().hex
    sampling = {'temperature': options.temperature, 'top_p': options.top_p,
                'max_tokens': options.max_tokens}
    done = 0

    with ThreadPoolExecutor(options.concurrency) as pool:
        while time.monotonic() - begin < options.seconds:
            jobs = []

            for t in itertools.islice(todo, CHUNK):
                jobs.append((t, [pool.submit(
                    have, task_of(t['family'], t['seed']), t['mode'], server,
                    sampling, t['number'] * NOISE + i,
                    f'{nonce}-{t["number"]}-{i}')
                    for i in range(options.attempts)]))

            if not jobs:
                break

            for t, row in jobs:
                out.write(lines.line({
                    'domain': options.domain, 'weights': weights,
                    'version': server.version,
                    **entry(t, [f.result() for f in row], task_of,
                            options.most)}))
                out.flush()
                done += 1

    return done


def run(options):
    """Returns how many tasks are left."""

    weights, part = digest(options.model), options.out + PART

    if os.path.exists(options.out):
        read(options.out, weights)
        return 0

    os.makedirs(os.path.dirname(os.path.abspath(part)), exist_ok=True)

    with open(part, 'ab'):
        pass

    if lines.repair(part):
        print(f'{part}: removed a line that was cut off', file=sys.stderr)

    done = read(part, weights)
    due = possible(tasks_of(options.families, options.mode, options.seed,
                            done[-1]['number'] + 1 if done else 0))
    left = options.tasks - len(done)

    for x in done:
        same = next(tasks_of(options.families, options.mode, options.seed,
                             x['number']))

        if {k: x[k] for k in same} != same:
            raise lines.BadLines(f'{part}: {x["family"]} {x["seed"]} '
                                 f'{x["mode"]} is of another command; '
                                 f'expected {" ".join(list(same.values())[1:])}'
                                 ', or no file')

    if left > 0:
        with serving(options) as server, \
                open(part, 'a', encoding='utf-8') as out:
            left -= sample(options, server, itertools.islice(due, left),
                           weights, out)

    if left <= 0:
        os.rename(part, options.out)

    return max(0, left)


def main():
    options = arguments()
    ends_on_signal()

    try:
        left = run(options)
    except (RunFailed, lines.BadLines) as e:
        sys.exit(f'train.verified: {e}')

    if left:
        print(f'{left} of {options.tasks} tasks are left; the same command '
              'continues', file=sys.stderr)
        sys.exit(LEFT)


if __name__ == '__main__':
    main()
