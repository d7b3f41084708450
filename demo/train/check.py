# Copyright (C) The nginx-dsa authors

"""Prints the distances between a trained checkpoint, its export as PyTorch
computes it, and its export as the engine computes it.

    python3 -m train.check CHECKPOINT MODEL_DIR --data DIR --dsa PROGRAM
                           [--samples N] [--backend cpu|cuda]

--data has shards of train.data that were not used for training.  Perplexities
are of the assistant's tokens.  A distance is the norm of the difference of
logits over their norm; quantiles are over all positions.  The last number is
how often the most probable token is the same, of the assistant's tokens.
"""

import argparse
import json
import math
import os
import random
import struct
import subprocess
import tempfile

import numpy
import torch

from train import checkpoint, fp8
from train.data import Shards
from train.export import BF16, write_safetensors
from train.model import Model


QUANTILES = (0.1, 0.5, 0.9, 1.0)


def main():
    p = argparse.ArgumentParser(prog='train.check')
    p.add_argument('checkpoint')
    p.add_argument('model')
    p.add_argument('--data', required=True)
    p.add_argument('--dsa', required=True)
    p.add_argument('--samples', type=int, default=64)
    p.add_argument('--backend', choices=('cpu', 'cuda'), default='cpu')
    args = p.parse_args()

    saved = checkpoint.load(args.checkpoint)
    config, state = saved['config'], saved['model']
    bf16 = model_of(config, {n: bfloat(t) for n, t in state.items()})
    exact = model_of(config, {n: exported(n, t) for n, t in state.items()})
    served = model_of(config, state)

    runs = {
        'BF16': lambda ids: torch_logits(bf16, ids, 'float'),
        'FP8 weights': lambda ids: torch_logits(exact, ids, 'float'),
        'served': lambda ids: torch_logits(served, ids, 'served'),
        'engine exact': lambda ids: engine_logits(args, ids, '--exact'),
        'engine served': lambda ids: engine_logits(args, ids, '--backend',
                                                   args.backend),
    }
    pairs = (('FP8 weights', 'engine exact'), ('served', 'engine served'),
             ('BF16', 'engine served'))
    loss = dict.fromkeys(runs, 0.0)
    apart = {pair: [] for pair in pairs}
    same = dict.fromkeys(pairs, 0)
    targets = 0

    for ids, target in samples(args.data, args.samples):
        logits = {name: run(ids) for name, run in runs.items()}
        counts = torch.from_numpy(target[1:])
        after = torch.from_numpy(ids[1:])
        targets += int(counts.sum())

        for name, x in logits.items():
            log = x[:-1].double().log_softmax(-1)
            log = log.gather(-1, after[:, None])[:, 0]
            loss[name] -= float(log[counts].sum())

        for a, b in pairs:
            x, y = logits[a].double(), logits[b].double()
            apart[a, b].append((x - y).norm(dim=-1) / x.norm(dim=-1))
            same[a, b] += int((x.argmax(-1) == y.argmax(-1))[:-1][counts]
                              .sum())

    for name in runs:
        print(f'perplexity {name}: {math.exp(loss[name] / targets):.4f}')

    for (a, b), d in apart.items():
        d = torch.cat(d).sort().values
        at = [d[min(len(d) - 1, int(q * len(d)))] for q in QUANTILES]
        print(f'{b} from {a}, 10/50/90/100 %: '
              + ' / '.join(f'{100 * float(x):.3g}' for x in at)
              + f' %; {same[a, b]} of {targets} tokens the same')


def samples(directory, n):
    """Yields n times (ids [T] int64, target [T] bool)."""

    batches = Shards(directory).batches(random.Random(1), 4096)

    while n > 0:
        for ids, target, length in zip(*next(batches)):
            if n > 0:
                yield ids[:length], target[:length]
                n -= 1


def model_of(config, state):
    model = Model(config)
    model.load_state_dict(state)
    return model.eval()


def bfloat(tensor):
    """Rounds a matrix to BF16; other tensors stay float32, as in a checkpoint
    that is not quantized."""

    return tensor.bfloat16().float() if tensor.dim() > 1 else tensor


def exported(name, tensor):
    """Returns the tensor that train.export stores, as float32."""

    if tensor.dim() == 1 or name.endswith(BF16):
        return bfloat(tensor)

    return fp8.quantize_weight(tensor)


@torch.no_grad()
def torch_logits(model, ids, precision):
    """ids [T] -> [T,V]"""

    row = torch.from_numpy(ids)[None]
    out = model(row, torch.ones_like(row, dtype=torch.bool), 'sparse',
                precision)

    return model.logits(out.hidden[0], precision)


def engine_logits(args, ids, *options):
    """ids [T] -> [T,V]"""

    with tempfile.TemporaryDirectory() as path:
        tokens = os.path.join(path, 'tokens.safetensors')
        out = os.path.join(path, 'out.safetensors')
        write_safetensors(tokens, [('tokens', 'I32', ids.shape,
                                    ids.astype(numpy.int32).tobytes())])
        subprocess.run([args.dsa, 'logits', '--model', args.model,
                        '--tokens', tokens, '--out', out, *options],
                       check=True)

        with open(out, 'rb') as f:
            n, = struct.unpack('<Q', f.read(8))
            logits = json.loads(f.read(n))['logits']
            data = numpy.frombuffer(f.read(), numpy.float32)

    return torch.from_numpy(data.reshape(logits['shape']).copy())


if __name__ == '__main__':
    main()
