# Copyright (C) The nginx-dsa authors

"""Measures what the indexer selects: the share of the main attention's mass,
as it would be without a selection, that is on the selected tokens.

    python3 -m train.recall CHECKPOINT --data DIR [--rows N] [--dense]

--data has shards of train.data that were not used for training.  They are
packed into rows of the whole context.  Only queries count that see more tokens
than are selected.  It prints for every layer

    recall   the mass on the tokens that the indexer selects
    best     the mass on as many tokens with the greatest mass
    recent   the mass on as many tokens directly before the query

each a mean over heads and queries.
"""

import argparse
import json
import random

import torch

from train import checkpoint
from train.attention import index_scores, pieces, select
from train.data import Shards
from train.model import Model, index, project
from train.ops import wide


ROWS = 4


def main():
    p = argparse.ArgumentParser(prog='train.recall')
    p.add_argument('checkpoint')
    p.add_argument('--data', required=True)
    p.add_argument('--rows', type=int, default=ROWS)
    p.add_argument('--dense', action='store_true',
                   help='the layers before attend to all tokens')
    args = p.parse_args()

    saved = checkpoint.load(args.checkpoint)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    model = Model(saved['config'])
    model.load_state_dict(saved['model'])

    print(json.dumps(measure(
        model.to(device), 'dense' if args.dense else 'sparse', args.data,
        device, args.rows)))


@torch.no_grad()
def measure(model, attention, data, device, rows=ROWS):
    """Returns [{'recall', 'best', 'recent'}] by layer.  attention is that of
    the layers: in a model that has not been trained for the selection it is
    'dense', and 'warmup' counts as this."""

    length = model.cos.shape[0]
    batches = Shards(data).packed(random.Random(1), length, length)
    attention = 'sparse' if attention == 'sparse' else 'dense'
    sums = []

    for _, (ids, _, lengths) in zip(range(rows), batches):
        ids = torch.from_numpy(ids[:, :int(lengths.max())]).to(device)
        sums.append(of_row(model, ids, attention))

    mean = torch.stack(sums).mean(0).tolist()

    return [dict(zip(('recall', 'best', 'recent'),
                     (round(x, 4) for x in layer))) for layer in mean]


def of_row(model, ids, attention):
    """ids [1,T] -> [layers, 3]"""

    valid = torch.ones_like(ids, dtype=torch.bool)
    rows = model.rows(valid, attention, 'float', False, valid)
    h = model.embedded(ids, rows)
    found = []

    for layer in model.model.layers[:model.n_layers]:
        x, qr, q, k, _ = project(layer, h, rows.cos, rows.sin, False)
        i = index(layer, x, qr, rows.cos, rows.sin, False)
        found.append(mass(
            *(t.unflatten(0, rows.shape).transpose(1, 2) for t in (q, k)),
            [t.unflatten(0, rows.shape) for t in i], model.topk,
            layer.self_attn.scale))
        h = model.through(layer, h, rows, [], [])

    return torch.stack(found)


def mass(q, k, i, topk, scale):
    """q, k [1,H,T,D], i (iq, ik, iw) -> [3]: the mean over the queries from
    the position topk on of the mass on the selected, the best and the most
    recent topk keys."""

    iq, ik, iw = i
    T = q.shape[2]
    total, n = torch.zeros(3, device=q.device), 0

    for first, end in pieces(q):
        first = max(first, topk)

        if first >= end:
            continue

        at = torch.arange(first, end, device=q.device)[:, None]
        key = torch.arange(end, device=q.device)
        s = wide(q[:, :, first:end]) @ wide(k[:, :, :end]).transpose(-1, -2)
        s = (s * scale).masked_fill(key > at, float('-inf'))
        p = s.softmax(-1).mean(1)
        _, scores = index_scores(iq[:, first:end], ik[:, :end],
                                 iw[:, first:end])
        chosen = select(scores.masked_fill(key > at, float('-inf')), topk)
        recent = (key <= at) & (key > at - topk)

        total += torch.stack([(p * chosen).sum(),
                              p.topk(topk, dim=-1).values.sum(),
                              (p * recent).sum()]).to(total.dtype)
        n += end - first

    return total / max(n, 1) if T > topk else total + 1


if __name__ == '__main__':
    main()
