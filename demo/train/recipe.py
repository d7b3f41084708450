# Copyright (C) The nginx-dsa authors

"""The stages of training, in the order of the paper: a dense base, extended to
a long context; the warm-up of the indexer and sparse training on the same long
data (2.1.1); then all post-training with sparse attention (3).

No stage trains with the roundings of serving.  They compile longer than the
last stages train, and a model that was trained without them had a loss of
0.0793 with them and of 0.0790 without
(bench/results/2026-11-29-training-four.md)."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Stage:
    """
    attention  'dense': no selection, the indexer is not used
               'warmup': dense, and only the indexer is trained (eq. 3)
               'sparse': the indexer selects, and is trained, too (eq. 4)
    prompts    weight in the loss of the tokens that are not the assistant's;
               most of them are tools and instructions that repeat, and with
               the weight 1 they would drown what the model has to write
    positions  to train on, including padding; they measure the work, and every
               batch has the same number of them; there are fewer tokens
    batch      positions per step
    rate       the highest learning rate; it rises over the first 2 % of the
               steps and falls along a cosine to a tenth
    length     of the rows, which are packed with samples; 0: each row has one
               sample, and the length of the next bucket
    drafts     weight of the loss of the draft layer, 0.3 and at the end 0.1
               as in DeepSeek-V3
    recycled   how many steps the draft layer is trained for; the steps after
               the first get its own output instead of the model's
    """
    name: str
    attention: str
    prompts: float
    positions: int
    batch: int
    rate: float
    length: int = 0
    drafts: float = 0.0
    recycled: int = 1


M = 1000 * 1000
BATCH = 61440
LONG = 8192                     # the context
LONG_BATCH = 16 * LONG          # 16 sequences, as in the paper's warm-up

STAGES = (
    # the dense predecessor, from random weights, on whole conversations with
    # the texts of users and tools
    Stage('pretrain', 'dense', 0.2, 3000 * M, 2 * BATCH, 5e-3,
          drafts=0.3),

    # its context extended to 8,192 tokens
    Stage('extend', 'dense', 0.2, 30 * M, LONG_BATCH, 2.5e-3, LONG,
          drafts=0.3),

    # 2.1.1, dense warm-up: 1,000 steps of 16 sequences at 1e-3, as in the
    # paper; everything but the indexer is frozen.  The sequences have half of
    # the context, because the target of eq. 3 costs most of a step, and grows
    # with the square of their length.
    Stage('warmup', 'warmup', 0.2, 1000 * (LONG_BATCH // 2),
          LONG_BATCH // 2, 1e-3, LONG // 2),

    # 2.1.1, sparse training on the same data.  The paper's rate, 7.3e-6, is
    # 1/30 of the highest of DeepSeek-V3's pre-training, 2.2e-4; this is 1/30
    # of pretrain's.
    Stage('sparse', 'sparse', 0.2, 12 * M, LONG_BATCH, 1.7e-4,
          LONG, drafts=0.1),

    # 3, post-training: tool use and thinking, on the assistant's tokens; as
    # conversations are served, then after other conversations, so that the
    # selection has more to choose from
    Stage('instruct', 'sparse', 0.0, 300 * M, BATCH, 2e-3,
          drafts=0.1),
    Stage('deepen', 'sparse', 0.0, 16 * M, LONG_BATCH, 1e-3,
          LONG // 2, drafts=0.1),

    # its end: the draft layer learns from its own output, too
    Stage('tune', 'sparse', 0.0, 50 * M, BATCH, 5e-4, drafts=0.1,
          recycled=3),
)

# 3.2.2, an experiment beside the model: after sparse, only on the data of the
# cold start (tasks/coldstart.py)

COLD = Stage('cold', 'sparse', 0.0, 20 * M, BATCH, 3e-4, drafts=0.1)

# 3, for an experiment, too: after sparse, only on samples of the specialists
# that their verifiers accepted (distill.py)

DISTILL = Stage('distill', 'sparse', 0.0, 50 * M, BATCH, 1e-3,
                drafts=0.1)

ALL = STAGES + (COLD, DISTILL)


def dense(stages):
    """Returns the stages of the dense twin: it gets the same data in the same
    order, without a selection, and so without a warm-up."""

    return tuple(replace(s, attention='dense') for s in stages
                 if s.attention != 'warmup')
