# Copyright (C) The nginx-dsa authors

"""The measurements, and their tables in Markdown."""

import random
from collections import Counter, defaultdict

from eval.converse import converse
from eval.run import task_numbers
from eval.table import grid
from tasks.task import CHAT
from worlds import registry
from worlds.compute import keep as keeping
from worlds.compute import refine as refining
from worlds.compute import run as running
from worlds.compute.stats import mean, pass_at, percent, points
from worlds.compute.tries import Chat, sample
from worlds.form import Refused
from worlds.general.program import LEVELS


# thinking against non-thinking, by category (the paper, Table 9)

def modes(options):
    def work(job):
        def ask(request):
            return job.ask({'seed': job.sampling_seed(0), **request})

        return {mode: converse(job.make(), mode, ask)
                for mode in options.modes if mode in job.make().modes}

    done = running.run(options, running.in_rounds(options.families, options),
                       work)
    rows = [mode_row(name, [o for job, o in done if label(job) == name],
                     options.modes)
            for name in options.families]
    rows = [r for r in rows if r[1] != '0']
    general = [o for job, o in done if job.family.startswith('general_')]

    if general:
        rows.append(mode_row('**all general**', general, options.modes))

    rows.append(mode_row('**all**', [o for _, o in done], options.modes))
    head = ['right, % (95 %)', 'tasks', *options.modes]

    if len(options.modes) == 2:
        head.append(f'{options.modes[1]} - {options.modes[0]}, points')

    return [grid(head, rows), what_else(done, options.modes)]


def label(job):
    """Returns the name of a job's family and level as options have it."""

    return job.family if job.level == 1 else f'{job.family}@{job.level}'


def mode_row(name, outcomes, names):
    right = {m: [float(o[m].why is None) for o in outcomes if m in o]
             for m in names}
    row = [name, str(len(outcomes))] + [percent(right[m]) for m in names]

    if len(names) == 2:
        both = [o for o in outcomes if set(names) <= set(o)]
        row.append(points(*([float(o[m].why is None) for o in both]
                            for m in names)))

    return row


def what_else(done, names):
    """Returns a table of what the outcomes have besides."""

    rows = []

    for m in names:
        of = [o[m] for _, o in done if m in o]
        calls = sum(o.calls for o in of)
        rows.append([m, str(len(of)), str(calls),
                     f'{100 * sum(o.parsed for o in of) / calls:.1f}'
                     if calls else '',
                     str(sum(o.finish[-1:] == ['length'] for o in of)),
                     str(sum(o.why == 'too many rounds' for o in of)),
                     f'{mean([o.completion_tokens for o in of]):.0f}'
                     if of else ''])

    return grid(['mode', 'tasks', 'calls', 'that fit their schema, %',
                 'cut off', 'too many rounds', 'tokens a task'], rows)


# pass@k (the paper, Table 5)

KS = (1, 2, 4)


def held_out(options):
    """Returns (NAME@LEVEL, number) of general tasks, drawn from all
    categories and levels."""

    rng = random.Random(f'held-out/{options.seed}')
    names = [n for n, f in registry.families().items()
             if n.startswith('general_') and f.levels == LEVELS]

    return [(f'{rng.choice(names)}@{rng.randint(1, LEVELS)}', n)
            for n in task_numbers(options.seed, options.tasks)]


def passes(options):
    def work(job):
        return {mode: [sample(job.make(), Chat(job.ask, mode,
                                               job.sampling_seed(i)))
                       for i in range(options.samples)]
                for mode in options.modes}

    done = running.run(options, held_out(options), work)
    rows = [[str(k)] + [percent([
        pass_at(sum(t.right for t in o[m]), options.samples, k)
        for _, o in done]) for m in options.modes]
        for k in KS if k <= options.samples]
    differ = {m: [len({t.solution() for t in o[m]}) for _, o in done]
              for m in options.modes}

    return [grid(['pass@k, % (95 %)', *options.modes], rows),
            [f'{len(done)} tasks. Of {options.samples} solutions of a task '
             'differ on average: ' + ', '.join(
                 f'{m} {mean(d):.2f}' for m, d in differ.items() if d)]]


# generate, verify, refine; sample, filter, keep the longest (appendix D)

def refine(options):
    mode, = options.modes

    def work(job):
        return refining.refine(job.make(), Chat(job.ask, mode,
                                                job.sampling_seed(0)),
                               options.cap)

    done = running.run(options, running.in_rounds(options.families, options),
                       work)
    rows = [refine_row(n, [r for job, r in done if label(job) == n])
            for n in [*options.families]]
    rows.append(refine_row('**all**', [r for _, r in done]))

    return [grid(['right, % (95 %)', 'tasks', 'generated', 'refined',
                  'gain, points', 'score was perfect, %',
                  'of these right, %', 'evaluations a task',
                  'tokens generated', 'tokens refined'], rows)]


def refine_row(name, results):
    first = [float(r.first.right) for r in results]
    last = [float(r.last.right) for r in results]
    perfect = [r for r in results if r.scores[-1:] == [refining.BEST]]

    return [name, str(len(results)), percent(first), percent(last),
            points(first, last), share_of(len(perfect), len(results)),
            share_of(sum(r.last.right for r in perfect), len(perfect)),
            average(len(r.scores) for r in results),
            average(r.first.tokens for r in results),
            average(r.last.tokens for r in results)]


def share_of(n, all_):
    return f'{100 * n / all_:.1f}' if all_ else ''


def average(numbers):
    numbers = list(numbers)
    return f'{mean(numbers):.1f}' if numbers else ''


def keep(options):
    mode, = options.modes

    def work(job):
        return keeping.keep(
            job.make, job.family, job.seed, job.level,
            [Chat(job.ask, mode, job.sampling_seed(i))
             for i in range(options.samples)], options.keep)

    done = running.run(options, running.in_rounds(options.families, options),
                       work)
    of = defaultdict(list)

    for job, r in done:
        of[label(job)].append(r)
        of['**all**'].append(r)

    of['**all**'] = of.pop('**all**', [])
    k = options.keep
    rows = []

    for name, results in of.items():
        one = [r.random(1) for r in results]
        drawn = [r.random(k) for r in results]
        valid = [r.random(k, 'valid') for r in results]
        longest = [r.solved() for r in results]
        rows.append([name, str(len(results)), percent(one), percent(drawn),
                     percent(valid), percent(longest),
                     points(one, longest), points(drawn, longest),
                     average(r.tokens for r in results)])

    removed = sum((r.removed for r in of['**all**']), Counter())
    n = sum(len(r.samples) for r in of['**all**'])

    return [grid(['right, % (95 %)', 'tasks', 'one sample',
                  f'{k} of {options.samples}', f'{k} of the valid',
                  f'{k} longest of the valid', 'gain over one, points',
                  f'gain over {k}, points', 'tokens a task'], rows),
            [f'of {n} samples the filters removed: ' + (', '.join(
                f'{removed[f]} {f}' for f in keeping.FILTERS))]]


def one_turn(families):
    """Raises Refused if a family has tasks of several turns."""

    for name in families:
        if len(registry.task_of(name, 'eval-1').turns) > 1:
            raise Refused(f'{name} has tasks of several turns; only the '
                          'command modes has these')
