# Copyright (C) The nginx-dsa authors

"""The stages of training: the paper's sections 2.1.1 and 3 in miniature."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """
    attention  'dense': no selection, the indexer rests
               'warmup': dense, and only the indexer learns (eq. 3)
               'sparse': the indexer selects, and learns beside (eq. 4)
    precision  'float', or 'served': rounded as serving rounds
    answers    the loss is on what the assistant says only
    positions  to train on, padding among them: what the work is measured by,
               and the same in each batch; tokens are fewer
    batch      positions a step
    rate       the highest learning rate; it rises over the first 2 % of the
               steps and falls along a cosine to a tenth
    """
    name: str
    attention: str
    precision: str
    answers: bool
    positions: int
    batch: int
    rate: float


M = 1000 * 1000
BATCH = 61440

STAGES = (
    # 2.1: the dense predecessor, here from nothing; it reads whole
    # conversations, what users and tools say too
    Stage('pretrain', 'dense', 'float', False, 400 * M, BATCH, 2e-3),

    # 3: tool use and thinking, on the assistant's words only.  The paper has
    # them after sparse training; most of it stands here because a step of
    # dense attention takes a third of the time
    Stage('instruct', 'dense', 'float', True, 1000 * M, BATCH, 1.5e-3),

    # 2.1.1, dense warm-up: the indexer learns what dense attention looks at
    Stage('warmup', 'warmup', 'float', False, 20 * M, BATCH, 1e-3),

    # 2.1.1, sparse training: the model gets used to the selection
    Stage('sparse', 'sparse', 'float', True, 60 * M, BATCH, 5e-4),

    # 3, its end, in the precision in which it will be served
    Stage('tune', 'sparse', 'served', True, 100 * M, BATCH, 3e-4),
)
