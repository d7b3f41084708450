# Copyright (C) The nginx-dsa authors

"""Reads the directory of a model that train.export has written back into a
state for training.  FP8 matrices become what their codes and scales stand for.
Exporting them again gives the same numbers, in a few blocks by another
scale."""

import json
import os
import re
import struct

import numpy
import torch

from train import checkpoint
from train.fp8 import BLOCK


def start(path):
    """Returns {'config', 'model'} of a directory, or of a checkpoint."""

    return restore(path) if os.path.isdir(path) else checkpoint.load(path)


def restore(path):
    with open(os.path.join(path, 'config.json')) as f:
        config = json.load(f)

    with open(os.path.join(path, 'model.safetensors.index.json')) as f:
        files = sorted(set(json.load(f)['weight_map'].values()))

    stored = {}

    for name in files:
        stored.update(read_safetensors(os.path.join(path, name)))

    state, experts = {}, {}

    for name, (kind, value) in stored.items():
        if name.endswith('_scale_inv'):
            continue

        if kind == 'F8_E4M3':
            value = scaled(e4m3(value), stored[name + '_scale_inv'][1])

        one = re.match(r'(.*\.experts)\.(\d+)(\..*)', name)

        if one:
            experts.setdefault(one[1] + one[3], {})[int(one[2])] = value
        else:
            state[name] = torch.from_numpy(value)

    for name, parts in experts.items():
        state[name] = torch.from_numpy(
            numpy.stack([parts[e] for e in range(len(parts))]))

    return {'config': config, 'model': state}


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
