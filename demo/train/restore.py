# Copyright (C) The nginx-dsa authors

"""Reads the directory of a model that train.export has written back into a
state for training.  FP8 matrices become what their codes and scales stand for.
Exporting them again gives the same numbers, in a few blocks by another
scale.

The updates of reinforcement learning are far smaller than the distance of two
FP8 numbers, so a weight that begins at one of them is served unchanged until
hundreds of updates have moved it by half that distance.  spread() gives each
weight a random place among those that are rounded to its number, as weights
before an export have.  Some of them are near the edge, so what is served
follows the mean of the weights from the first update on."""

import json
import os
import re
import struct

import numpy
import torch

from train import checkpoint, fp8
from train.fp8 import BLOCK


SEED = 1                # of the places that spread() chooses


def start(path, wide=False):
    """Returns {'config', 'model'} of a directory, or of a checkpoint.  wide:
    the FP8 matrices of a directory are spread."""

    return restore(path, wide) if os.path.isdir(path) \
        else checkpoint.load(path)


def restore(path, wide=False):
    with open(os.path.join(path, 'config.json')) as f:
        config = json.load(f)

    with open(os.path.join(path, 'model.safetensors.index.json')) as f:
        files = sorted(set(json.load(f)['weight_map'].values()))

    stored = {}

    for name in files:
        stored.update(read_safetensors(os.path.join(path, name)))

    state, experts = {}, {}
    generator = torch.Generator().manual_seed(SEED)

    for name, (kind, value) in stored.items():
        if name.endswith('_scale_inv'):
            continue

        if kind == 'F8_E4M3':
            value = scaled(e4m3(value), stored[name + '_scale_inv'][1])
            if wide:
                value = spread(torch.from_numpy(value), generator).numpy()

        one = re.match(r'(.*\.experts)\.(\d+)(\..*)', name)

        if one:
            experts.setdefault(one[1] + one[3], {})[int(one[2])] = value
        else:
            state[name] = torch.from_numpy(value)

    for name, parts in experts.items():
        state[name] = torch.from_numpy(
            numpy.stack([parts[e] for e in range(len(parts))]))

    return {'config': config, 'model': state}


def spread(w, generator):
    """Returns w [rows, cols], whose numbers are those of FP8 blocks, with a
    place for each that is uniform among those that an export rounds to it,
    except for the greatest of a block, which make its scale."""

    v, scale = fp8.weight_blocks(w)
    scale = torch.from_numpy(scaled(torch.ones_like(w).numpy(),
                                    scale.numpy()))
    exponent = torch.frexp(v)[1] - 1
    step = torch.exp2(exponent.clamp(min=-6).float() - 3)
    moved = v + step * (torch.rand(v.shape, generator=generator) - 0.5)

    # beside a power of two, the numbers below are at half the distance

    most = block_most(v)
    same = (fp8.e4m3(moved) == v) & (v.abs() < most) \
        & (moved.abs() < most)

    return torch.where(same, moved, v) * scale


def block_most(v):
    """Returns the greatest magnitude of each block of v [rows, cols], for
    each of its numbers."""

    found = torch.empty_like(v)

    for i in range(0, v.shape[0], BLOCK):
        for j in range(0, v.shape[1], BLOCK):
            part = v[i:i + BLOCK, j:j + BLOCK]
            found[i:i + BLOCK, j:j + BLOCK] = part.abs().max()

    return found


def read_safetensors(path):
    """Returns name -> (dtype, array); BF16 as float32, FP8 as its codes."""

    with open(path, 'rb') as f:
        n, = struct.unpack('<Q', f.read(8))
        header = json.loads(f.read(n))
        data = numpy.frombuffer(f.read(), numpy.uint8)

    header.pop('__metadata__', None)
    found = {}

    for name, t in header.items():
        first, end = t['data_offsets']
        raw, kind = data[first:end], t['dtype']

        if kind == 'BF16':
            value = (raw.view('<u2').astype('<u4') << 16).view('<f4')
        elif kind == 'F32':
            value = raw.view('<f4')
        elif kind == 'F8_E4M3':
            value = raw
        else:
            raise ValueError(f'{path}: {name} has dtype {kind}; expected '
                             'BF16, F32 or F8_E4M3')

        found[name] = kind, value.reshape(t['shape']).copy()

    return found


def e4m3(codes):
    """Returns the numbers of e4m3 codes [..., rows, cols] in float32."""

    c = numpy.arange(256)
    exponent, fraction = c >> 3 & 15, c & 7
    table = numpy.where(exponent == 0, fraction * 2.0 ** -9,
                        (8 + fraction) * 2.0 ** (exponent - 10.0))
    table = numpy.where(c >> 7, -table, table).astype(numpy.float32)

    return table[codes]


def scaled(values, scale):
    """Multiplies [rows, cols] by the scale of its 128x128 block."""

    rows, cols = values.shape
    scale = scale.repeat(BLOCK, 0)[:rows].repeat(BLOCK, 1)[:, :cols]

    return values * scale
