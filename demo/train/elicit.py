# Copyright (C) The nginx-dsa authors

"""Counts how often the prompt of Table 8 of the paper elicits calls inside the
reasoning of a served model (3.2.2).

    python3 -m train.elicit [--url URL] [--model NAME] [--n 500] [--bare]

The requests have words and templates that training does not have
(tasks/coldstart.py).  The model thinks, and has the Python tool.  --bare
leaves the system prompt out, to compare.  It prints one JSON object:

    n          requests
    called     of them, how many led to a call
    thought    how many led to a call after reasoning in the same message
    several    how many led to at least two such calls
    right      how many ended with the right program
    calls      all calls, and parsed: those that fit the tool's schema
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from eval.client import Client, RunFailed
from eval.converse import converse
from tasks.coldstart import required
from tasks.mix import HELD_OUT
from tasks.parts import Draw
from tasks.task import RETAIN


def main():
    p = argparse.ArgumentParser(prog='train.elicit')
    p.add_argument('--url', default='http://127.0.0.1:8080/v1')
    p.add_argument('--model')
    p.add_argument('--n', type=int, default=500)
    p.add_argument('--bare', action='store_true')
    p.add_argument('--concurrency', type=int, default=8)
    p.add_argument('--max-tokens', type=int, default=1024)
    args = p.parse_args()

    try:
        args.model = args.model or Client(args.url).model()

        with ThreadPoolExecutor(args.concurrency) as pool:
            found = list(pool.map(lambda i: have(args, i), range(args.n)))

    except RunFailed as e:
        sys.exit(f'train.elicit: {e}')

    print(json.dumps(summary(found)))


def have(args, i):
    """Has one conversation.  Returns its Outcome, and for each call whether
    there is reasoning before it in the same message."""

    task = required(Draw(f'elicit/{HELD_OUT}{i}', True))
    client = Client(args.url, f'elicit-{i}')
    before = []

    if args.bare:
        task.system = ''

    def chat(request):
        completion = client.chat({'model': args.model, 'seed': i,
                                  'max_tokens': args.max_tokens, **request})
        message = completion['choices'][0]['message']
        thought = bool((message.get('reasoning_content') or '').strip())
        before.extend(thought for _ in message.get('tool_calls') or ())

        return completion

    try:
        return converse(task, RETAIN, chat), before
    finally:
        client.close()


def summary(found):
    """found is [(Outcome, [bool for each call])]."""

    return {'n': len(found),
            'called': sum(bool(b) for _, b in found),
            'thought': sum(any(b) for _, b in found),
            'several': sum(sum(b) > 1 for _, b in found),
            'right': sum(o.why is None for o, _ in found),
            'calls': sum(o.calls for o, _ in found),
            'parsed': sum(o.parsed for o, _ in found)}


if __name__ == '__main__':
    main()
