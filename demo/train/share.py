# Copyright (C) The nginx-dsa authors

"""Prints the share of reinforcement learning in all computation of a model,
from the logs of its steps.

    PYTHONPATH=demo python3 -m train.share RUN/log.jsonl RUN/rl/log.jsonl ...

A log is one of train.train or of train.rl.  Floating-point operations are 6ND:
2 N for each token in a forward pass and 4 N in the backward pass, for the N
parameters that multiply a token (k of the experts; not the embedding) and the D
tokens without padding.  The scores of attention and of the indexer are not
among them, as usual; they are in the seconds, which the logs have, too.

    stages of a model      6 N; sparse stages, 6 N of the indexer, too; with a
                           draft layer, 6 N of it for each of its steps
    the indexer's warm-up  2 N, and 6 N of the indexer and of the draft layer's
    reinforcement learning 12 N, with the indexer: 2 N each for the rollout,
                           the reference and the agreement, 6 N for the update

Evaluation, judges, the samples of train.verified, and batches whose weights
were lost are not counted.
"""

import argparse
import json
import os
import sys

from eval.table import grid
from train import lines, recipe
from train.model import Model
from train.train import CONFIG


BASE = ('pretrain', 'extend', 'warmup', 'sparse')
RL_SECONDS = ('rollout_seconds', 'reward_seconds', 'update_seconds',
              'export_seconds', 'reload_seconds')


def sizes(config):
    """Returns the parameters that multiply a token: of the model, of its
    indexers, of the draft layer, and of the draft layer's indexer."""

    model = Model(config)
    chosen = config['num_experts_per_tok'] / config['n_routed_experts']
    found = {'model': 0, 'indexer': 0, 'draft': 0, 'draft_indexer': 0}

    for name, p in model.named_parameters():
        if p.dim() < 2 or 'embed_tokens' in name:
            continue

        draft = name.startswith(f'model.layers.{model.n_layers}.')
        what = ('draft_indexer' if draft else 'indexer') \
            if '.indexer.' in name else 'draft' if draft else 'model'
        found[what] += p.numel() * (chosen if '.experts.' in name else 1)

    # the draft layer shares the head

    head = model.lm_head.weight.numel()

    if found['draft']:
        found['draft'] += head

    return found


def of_stage(stage, n):
    """Returns the operations of a token in a recipe.Stage; n: of sizes()."""

    if stage.attention == 'warmup':
        return (2 * (n['model'] + n['draft'])
                + 6 * (n['indexer'] + n['draft_indexer']))

    sparse = stage.attention == 'sparse'
    drafts = stage.recycled if stage.drafts else 0

    return 6 * (n['model'] + sparse * n['indexer']
                + drafts * (n['draft'] + sparse * n['draft_indexer']))


def of_rl(n):
    return 12 * (n['model'] + n['indexer'])


def read(path, n):
    """Returns [(name, tokens, operations, seconds)] of a log, a row for each
    time that a stage was trained.  Raises BadLines."""

    stages = {s.name: s for s in recipe.ALL}
    rows, last, rl = [], None, [0, 0]

    def end():
        if last is not None:
            rows.append((last['stage'], last['tokens'], last['tokens']
                         * of_stage(stages[last['stage']], n),
                         last['seconds']))

    for number, x in enumerate(lines.read(path), 1):
        try:
            if 'batch' in x:
                rl[0] += x['positions']
                rl[1] += sum(x[k] for k in RL_SECONDS)
            elif 'step' in x:
                if x['stage'] not in stages:
                    raise lines.BadLines(
                        f'{path}:{number}: the stage {x["stage"]}; expected '
                        + ' or '.join(stages))

                if last is not None and (
                        last['stage'] != x['stage']
                        or x['step'] <= last['step']):
                    end()

                last = {k: x[k] for k in ('stage', 'step', 'tokens',
                                          'seconds')}
        except (KeyError, TypeError) as e:
            raise lines.BadLines(f'{path}:{number}: {type(e).__name__}: {e}; '
                                 'expected a line of train.train or train.rl')\
                from None

    end()

    if rl[0]:
        rows.append(('rl ' + os.path.basename(os.path.dirname(
            os.path.abspath(path))), rl[0], rl[0] * of_rl(n), rl[1]))

    return rows


def table(rows):
    whole = [sum(r[i] for r in rows) for i in (1, 2, 3)]
    base = [sum(r[i] for r in rows if r[0] in BASE) for i in (1, 2, 3)]
    rl = [sum(r[i] for r in rows if r[0].startswith('rl '))
          for i in (1, 2, 3)]

    def row(name, tokens, operations, seconds):
        return [name, f'{tokens / 1e6:.2f}', f'{operations / 1e15:.3f}',
                f'{operations / whole[1]:.1%}', f'{seconds:.0f}',
                f'{seconds / whole[2]:.1%}']

    found = grid(['', 'tokens, M', 'PFLOP', 'of all', 'seconds', 'of all'],
                 [row(*r) for r in rows]
                 + [row('**reinforcement learning**', *rl),
                    row('**all**', *whole)])

    if base[1]:
        found += ['', 'Reinforcement learning, as a share of the base '
                  f'({", ".join(BASE)}): {rl[1] / base[1]:.1%} of the '
                  f'operations, {rl[2] / base[2]:.1%} of the seconds.']

    return found


def main(args=None):
    p = argparse.ArgumentParser(prog='train.share', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    p.add_argument('--config', default=CONFIG)
    p.add_argument('logs', nargs='+', metavar='log.jsonl')
    options = p.parse_args(args)

    with open(options.config) as f:
        n = sizes(json.load(f))

    try:
        rows = [r for path in options.logs for r in read(path, n)]
    except lines.BadLines as e:
        sys.exit(f'train.share: {e}')

    if not sum(r[2] for r in rows) or not sum(r[3] for r in rows):
        sys.exit('train.share: the logs have no steps')

    print('\n'.join(table(rows)))


if __name__ == '__main__':
    main()
