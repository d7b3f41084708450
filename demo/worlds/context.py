# Copyright (C) The nginx-dsa authors

"""What an agent does when its context fills up (the paper, section 4.4),
measured on search tasks.

    PYTHONPATH=demo python3 -m worlds.context [--strategy NAME,NAME]
        [--tasks 100] [--window 4000] [--draw FILE.svg] [--url URL]

When a prompt has more than 80 % of the window:

    none          nothing: the task ends when the window is full
    summary       the rollout begins again from a summary of it
    discard_75    the first 75 % of the rounds of tool calls are dropped
    discard_all   all of them are dropped
    parallel      nothing, but of several independent rollouts the answer of
                  the one with the fewest steps counts

Steps and tokens are those that were really made, with summaries and with all
parallel rollouts.  Without --url, a program answers instead of a model
(searcher.py).
"""

import argparse
import sys
from dataclasses import asdict, dataclass, field
from typing import List

from eval.client import Client, ContextFull
from eval.converse import assistant
from eval.table import grid, share
from tasks.task import CHAT, RETAIN, Call
from worlds import chart
from worlds.search import task as search
from worlds.search.searcher import Searcher


STRATEGIES = ('none', 'summary', 'discard_75', 'discard_all', 'parallel')

THRESHOLD = 0.8
MOST_STEPS = 150        # of a rollout
ROLLOUTS = 4            # of parallel

SUMMARIZE = ('Your context is almost full. Write a summary of what you have '
             'found and of what is left to do; you will go on with it alone.')


@dataclass
class Rollout:
    """
    why        what was wrong; None: the answer was right
    answered   whether there was an answer
    steps      messages of the model, with summaries
    tokens     of these messages
    managed    how often the strategy changed the context
    path       the calls, to compare rollouts
    """
    why: str = 'too many steps'
    answered: bool = False
    steps: int = 0
    tokens: int = 0
    managed: int = 0
    path: List[str] = field(default_factory=list)


class Full(Exception):
    """The prompt does not fit into the window."""


def rollout(task, strategy, chat, window, seed, mode=CHAT):
    """Runs one rollout.  chat takes a request without a model and returns a
    completion.  Returns a Rollout."""

    run = Rollout()
    turn = task.turns[0]
    head = [{'role': 'user', 'content': turn.user}]
    if task.system:
        head.insert(0, {'role': 'system', 'content': task.system})
    rounds, calls = [], []

    def ask(messages, **more):
        completion = chat({
            'messages': messages, 'seed': seed * 1000 + run.steps,
            'thinking': {'type': 'disabled' if mode == CHAT else 'enabled'},
            **more})
        usage = completion['usage']
        run.steps += 1
        run.tokens += usage['completion_tokens']

        if usage['prompt_tokens'] > window:
            raise Full

        return completion, usage['prompt_tokens']

    try:
        while run.steps < MOST_STEPS:
            completion, used = ask(head + sum(rounds, []),
                                   tools=task.tool_list())
            message = completion['choices'][0]['message']
            wanted = message.get('tool_calls') or []

            if not wanted:
                run.answered = True
                run.why = turn.check(message.get('content') or '', calls)
                return run

            made = [assistant(message, mode)]
            for c in wanted:
                f = c['function']
                result = task.call(f['name'], f['arguments'])
                calls.append(Call(f['name'], {}, result))
                run.path.append(f'{f["name"]} {f["arguments"]}')
                made.append({'role': 'tool', 'content': result,
                             'tool_call_id': c['id']})
            rounds.append(made)

            if used > THRESHOLD * window and strategy != 'none':
                run.managed += 1
                head, rounds = managed(strategy, head, rounds, ask)

    except (Full, ContextFull):
        run.why = 'the context is full'

    return run


def managed(strategy, head, rounds, ask):
    """Returns (head, rounds) after the strategy changed them."""

    if strategy == 'discard_all':
        return head, []

    if strategy == 'discard_75':
        return head, rounds[(3 * len(rounds) + 3) // 4:]

    completion, _ = ask(head + sum(rounds, [])
                        + [{'role': 'user', 'content': SUMMARIZE}])
    text = completion['choices'][0]['message'].get('content') or ''
    question = head[-1]['content'].partition('\n\nSummary')[0]

    return head[:-1] + [{'role': 'user', 'content':
                         f'{question}\n\nSummary so far: {text}'}], []


def measure(make_task, strategy, chat, window, number, mode=CHAT):
    """Returns the Rollout that counts, with the steps and tokens of all that
    were made, and the number of different rollouts."""

    if strategy != 'parallel':
        return rollout(make_task(), strategy, chat, window, number, mode), 1

    made = [rollout(make_task(), 'none', chat, window,
                    1_000_000 + ROLLOUTS * number + n, mode)
            for n in range(ROLLOUTS)]
    best = min(made, key=lambda r: (not r.answered, r.steps))
    total = Rollout(**{**asdict(best), 'steps': sum(r.steps for r in made),
                       'tokens': sum(r.tokens for r in made)})

    return total, len({tuple(r.path) for r in made})


def run(options):
    """Returns strategy -> its rollouts, and how many different ones a task of
    parallel has on average."""

    results = {s: [] for s in options.strategy}
    different = []

    for n in range(1, options.tasks + 1):
        seed = f'eval-{n}'
        corpus, engine, question = search.question_of(seed, options.level)
        if options.url:
            client = Client(options.url, f'context-{n}')
            model = options.model or client.model()

            def chat(request):
                return client.chat({'model': model, 'max_tokens': 512,
                                    **request})
        else:
            chat = Searcher(question, corpus.part, sorted(corpus.pages)).chat

        for s in options.strategy:
            one, n_different = measure(
                lambda: search.make(seed, options.level), s, chat,
                options.window, n, options.mode)
            results[s].append(one)
            if s == 'parallel':
                different.append(n_different)

    return results, different


def mean(numbers):
    return sum(numbers) / len(numbers)


def table(results):
    return grid(
        ['strategy', 'right, % (95 %)', 'steps a task', 'tokens a task',
         'changes of the context a task', 'full, %'],
        [[s, share(sum(r.why is None for r in runs), len(runs)),
          f'{mean([r.steps for r in runs]):.1f}',
          f'{mean([r.tokens for r in runs]):.0f}',
          f'{mean([r.managed for r in runs]):.2f}',
          f'{100 * mean([r.why == "the context is full" for r in runs]):.0f}']
         for s, runs in results.items()])


def parse(args):
    p = argparse.ArgumentParser(prog='worlds.context', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)
    p.add_argument('--strategy', default=','.join(STRATEGIES))
    p.add_argument('--tasks', type=int, default=100)
    p.add_argument('--window', type=int, default=4000)
    p.add_argument('--level', type=int, default=2)
    p.add_argument('--mode', choices=(CHAT, RETAIN), default=CHAT)
    p.add_argument('--url', help='of a served model')
    p.add_argument('--model')
    p.add_argument('--draw', metavar='FILE')
    options = p.parse_args(args)
    options.strategy = options.strategy.split(',')

    for s in options.strategy:
        if s not in STRATEGIES:
            p.error(f'no such strategy: {s}; known: ' + ', '.join(STRATEGIES))

    return options


def main(args):
    options = parse(args)
    results, different = run(options)
    print('\n'.join(table(results)))

    if different:
        print(f'\nof {ROLLOUTS} parallel rollouts of a task, '
              f'{mean(different):.2f} differ on average')

    if options.draw:
        points = [(s, mean([r.steps for r in runs]),
                   100 * mean([r.why is None for r in runs]))
                  for s, runs in results.items()]
        with open(options.draw, 'w', encoding='utf-8') as f:
            f.write(chart.scatter(points, 'steps a task', 'right, %'))

    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
