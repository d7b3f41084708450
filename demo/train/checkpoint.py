# Copyright (C) The nginx-dsa authors

"""Checkpoints between stages: matrices in BF16, vectors in float32, no state
of the optimizer.

A file is the length of a header (8 bytes, little-endian), the header in JSON
{"config", "stage", "tensors": [[name, type, shape], ...]}, and zlib's
compression of the tensors: of all numbers first the high bytes, then the low
ones, because the high bytes of trained weights repeat.  So 15 million
parameters need about 23 MB.
"""

import json
import os
import struct
import zlib

import numpy
import torch


LIMIT = 30 * 1000 * 1000        # bytes of a file
ENDING = '.bf16'


def save(path, config, stage, state):
    """Writes a checkpoint and returns its size in bytes.  A larger one than
    LIMIT is not written: it raises ValueError."""

    tensors, parts = [], []

    for name, x in state.items():
        x = x.detach().cpu().contiguous()
        kind = 'BF16' if x.dim() > 1 else 'F32'
        codes = x.bfloat16().view(torch.int16) if kind == 'BF16' \
            else x.float().view(torch.int32)
        tensors.append([name, kind, list(x.shape)])
        parts.append(codes.numpy().tobytes())

    data = compressed(parts, tensors)
    header = json.dumps({'config': config, 'stage': stage,
                         'tensors': tensors}).encode()
    size = 8 + len(header) + len(data)

    if size > LIMIT:
        raise ValueError(f'{path}: {size} bytes; the limit is {LIMIT}')

    with open(path + '.tmp', 'wb') as f:
        f.write(struct.pack('<Q', len(header)) + header + data)

    os.rename(path + '.tmp', path)

    return size


def compressed(parts, tensors):
    wide = b''.join(p for p, t in zip(parts, tensors) if t[1] == 'F32')
    half = b''.join(p for p, t in zip(parts, tensors) if t[1] == 'BF16')

    return zlib.compress(half[1::2] + half[0::2] + wide, 6)


def load(path):
    """Returns {'config', 'stage', 'model': name -> float32 tensor} of a
    checkpoint, or what torch.save wrote, if the name has another ending."""

    if not path.endswith(ENDING):
        return torch.load(path, map_location='cpu')

    with open(path, 'rb') as f:
        n, = struct.unpack('<Q', f.read(8))
        header = json.loads(f.read(n))
        data = numpy.frombuffer(zlib.decompress(f.read()), numpy.uint8)

    sizes = [numpy.prod(shape, dtype=int)
             for _, _, shape in header['tensors']]
    half = sum(n for n, (_, kind, _) in zip(sizes, header['tensors'])
               if kind == 'BF16')
    bf16 = numpy.empty(half, numpy.uint32)
    bf16[:] = data[:half]
    bf16 = ((bf16 << 8 | data[half:2 * half]) << 16).view(numpy.float32)
    wide = data[2 * half:].view(numpy.float32)
    model, at = {}, {'BF16': 0, 'F32': 0}

    for n, (name, kind, shape) in zip(sizes, header['tensors']):
        source = bf16 if kind == 'BF16' else wide
        first, at[kind] = at[kind], at[kind] + n
        model[name] = torch.from_numpy(
            source[first:at[kind]].reshape(shape).copy())

    return {'config': header['config'], 'stage': header['stage'],
            'model': model}
