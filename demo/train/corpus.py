# Copyright (C) The nginx-dsa authors

"""Draws conversations by their seeds, and writes them as a text on which a
tokenizer can be trained.

    python3 -m train.corpus --seed S --tasks N | demo/make-tokenizer 4096

The text is in the model's format, with each segment of a conversation once.
"""

import argparse
import random
import sys

from tasks import mix
from tasks.task import CHAT, DISCARD, RETAIN, play
from train.encode import training_samples


# weights of the modes that a task has; a task in the mode discard makes as
# many samples as it has steps

MODES = {RETAIN: 0.5, DISCARD: 0.2, CHAT: 0.3}


def conversation(seed, families=None):
    """Returns (task, mode, messages).  The task is drawn from the families by
    weight, and played by its gold policy in one of its modes."""

    rng = random.Random(seed)
    family = mix.draw_family(rng, families)
    task = mix.task_of(family, seed)
    mode, = rng.choices(task.modes, [MODES[m] for m in task.modes])

    return task, mode, play(task, mode)


def text(seed):
    task, mode, messages = conversation(seed)
    segments = dict.fromkeys(
        text for sample in training_samples(messages, task.tool_list(), mode)
        for text, _ in sample)

    return ''.join(segments)


def main():
    p = argparse.ArgumentParser(prog='train.corpus')
    p.add_argument('--seed', required=True)
    p.add_argument('--tasks', type=int, required=True)
    args = p.parse_args()

    for n in range(args.tasks):
        sys.stdout.write(text(f'corpus-{args.seed}-{n}'))


if __name__ == '__main__':
    main()
