# Copyright (C) The nginx-dsa authors

"""The stages of training: the paper's sections 2.1.1 and 3 in miniature."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """
    attention  'dense': no selection, the indexer is not used
               'warmup': dense, and only the indexer is trained (eq. 3)
               'sparse': the indexer selects, and is trained, too (eq. 4)
    precision  'float', or 'served': rounded as in serving
    answers    the loss is only on the assistant's tokens
    positions  to train on, including padding; they measure the work, and every
               batch has the same number of them; there are fewer tokens
    batch      positions per step
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
    # 2.1: the dense predecessor, here trained from random weights on whole
    # conversations, including the texts of users and tools
    Stage('pretrain', 'dense', 'float', False, 400 * M, BATCH, 2e-3),

    # 3: tool use and thinking, on the assistant's tokens only.  In the paper
    # it follows sparse training.  Most of it is here, because a step of dense
    # attention takes a third of the time.
    Stage('instruct', 'dense', 'float', True, 1000 * M, BATCH, 1.5e-3),

    # 2.1.1, dense warm-up: the indexer learns where dense attention looks
    Stage('warmup', 'warmup', 'float', False, 20 * M, BATCH, 1e-3),

    # 2.1.1, sparse training: the model adapts to the selection
    Stage('sparse', 'sparse', 'float', True, 60 * M, BATCH, 5e-4),

    # 3, its end, in the precision of serving
    Stage('tune', 'sparse', 'served', True, 100 * M, BATCH, 3e-4),
)
