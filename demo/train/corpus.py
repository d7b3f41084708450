# Copyright (C) The nginx-dsa authors

"""Draws conversations by their seeds, and writes them as a text on which a
tokenizer can be trained.

    python3 -m train.corpus --seed S --tasks N [--texts FILE] [FILE ...] |
        demo/make-tokenizer 4096

The text is in the model's format, with each segment of a conversation once.
FILEs are added as they are: code and JSON, such as those of the project, so
that tokens are not only made of the words of tasks.  No file adds more than
MOST characters, and all of them no more than the conversations.  --texts adds
ordinary text (texts.py), as much as the conversations.
"""

import argparse
import itertools
import random
import sys

from eval import disjoint
from tasks import mix
from tasks.task import CHAT, DISCARD, RETAIN, play
from train.encode import NAMES, training_samples
from train.texts import Texts
from worlds.registry import task_of


MOST = 30000            # characters of a file

# weights of the modes that a task has; a task in the mode discard makes as
# many samples as it has steps

MODES = {RETAIN: 0.5, DISCARD: 0.2, CHAT: 0.3}


def conversation(seed, families=None, apart=False, others=(), share=0):
    """Returns (task, mode, messages).  The task is drawn from the families by
    weight, and played by its gold policy in one of its modes.  apart: no
    conversation has both reasoning and calls.  others: families of demo/worlds
    that are drawn instead, each as often, for this share of the conversations.
    No conversation shares a sequence of words with the prompts of
    demo/eval."""

    rng = random.Random(seed)

    for n in itertools.count():
        made = f'{seed}-{n}' if n else seed

        if share and rng.random() < share:
            task = task_of(rng.choice(others), made)
        else:
            task = mix.task_of(mix.draw_family(rng, families), made)

        modes = [m for m in task.modes
                 if not apart or not task.tools or m == CHAT]

        if not modes:
            continue

        mode, = rng.choices(modes, [MODES[m] for m in modes])
        messages = play(task, mode)

        if not disjoint.shared(messages):
            return task, mode, messages


def text(seed):
    task, mode, messages = conversation(seed)
    segments = dict.fromkeys(
        text for sample in training_samples(messages, task.tool_list(), mode)
        for text, _ in sample)

    return ''.join(segments)


def files(paths, room):
    """Yields the texts of files, of at most room characters in all."""

    for path in paths:
        with open(path, encoding='utf-8') as f:
            part = f.read(min(MOST, room))

        room -= len(part)
        yield NAMES.sub('', part) + '\n'

        if room <= 0:
            break


def main():
    p = argparse.ArgumentParser(prog='train.corpus')
    p.add_argument('--seed', required=True)
    p.add_argument('--tasks', type=int, required=True)
    p.add_argument('--texts')
    p.add_argument('files', nargs='*', metavar='FILE')
    args = p.parse_args()
    written = 0

    for n in range(args.tasks):
        written += sys.stdout.write(text(f'corpus-{args.seed}-{n}'))

    for part in files(args.files, written):
        sys.stdout.write(part)

    if args.texts:
        texts, rng = Texts(args.texts), random.Random(args.seed)

        while written > 0:
            written -= sys.stdout.write(texts.draw(rng) + '\n')


if __name__ == '__main__':
    main()
