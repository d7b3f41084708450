# Copyright (C) The nginx-dsa authors

"""FP8 e4m3 as the published checkpoints and their serving use it: blocks of
128, one power of two as the scale of each (kernels/fp8.h).

Values are rounded by arithmetic on float32 and its bits, neither by casts nor
by division: every version of PyTorch gives the same bits then, and those of
the engine.  Compiled code leaves out a cast to bfloat16 and back, and divides
only nearly right.
"""

import torch
import torch.nn.functional as F


MOST = 448.0            # the largest e4m3 number
LEAST_AMAX = 1e-4       # published: a block of zeros needs a scale too
BLOCK = 128


def bits(x):
    return x.view(torch.int32)


def floats(i):
    return i.view(torch.float32)


def e4m3(x):
    """The e4m3 number nearest to each of x (float32), ties to even; beyond
    the largest one the largest one.

    Adding 1.5 * 2^(e + 20) to a number of exponent e leaves its bits from
    2^(e - 3) up, rounded by the addition itself: three of fraction, as e4m3
    has.  Below 2^-6 its step stays 2^-9.  No zero is negative here.
    """
    x = x.clamp(-MOST, MOST)
    exponent = (bits(x) & 0x7f800000).clamp(min=121 << 23)
    c = floats(exponent + (20 << 23)) * 1.5

    return (x + c) - c


def e4m3_code(x):
    """The byte of each of x (float32), which are e4m3 numbers."""

    sign = (bits(x) >> 24) & 0x80
    x = x.abs()
    normal = (bits(x) >> 20) - (120 << 3)
    small = (x * 512).to(torch.int32)

    return (torch.where(x < 2.0 ** -6, small, normal) | sign).to(torch.uint8)


def scale_of(amax):
    """The scale of a block whose greatest magnitude is amax (float32): amax
    / 448, rounded up to a power of two (ue8m0) before anything is divided
    by it.  448 is 1.75 * 2^8."""

    i = bits(amax.clamp(min=LEAST_AMAX))
    up = ((i & 0x7fffff) > 0x600000).to(torch.int32)

    return floats(((i >> 23) - 8 + up) << 23)


def inverse(scale):
    """1 / scale, a power of two."""

    return floats((254 << 23) - bits(scale))


def bf16(x):
    """The bfloat16 number nearest to each of x (float32), ties to even."""

    i = bits(x)

    return floats((i + 0x7fff + ((i >> 16) & 1)) & -0x10000)


def through(x, rounded):
    """rounded, with the gradient of x: "straight through".  What is added
    is a zero."""

    return rounded.to(x.dtype).detach() + (x - x.detach())


def narrow(x, dtype):
    """x in a type, rounded to it even where the next thing is to widen it
    again."""

    if dtype == torch.bfloat16 and x.dtype == torch.float32:
        x = through(x, bf16(x.detach()))

    return x.to(dtype)


def quantize(x):
    """x [..., n] as an FP8 product sees its left operand: groups of 128 of
    the last dimension, each with a scale of its own."""

    n = x.shape[-1]
    v = F.pad(x.detach().float(), (0, -n % BLOCK))
    v = v.reshape(*v.shape[:-1], -1, BLOCK)
    scale = scale_of(v.abs().amax(-1, keepdim=True))
    v = e4m3(v * inverse(scale)) * scale

    return through(x, v.flatten(-2)[..., :n])


def weight_blocks(w):
    """w [..., rows, cols] -> e4m3 numbers of the same shape, their scales
    [..., ceil(rows / 128), ceil(cols / 128)]."""

    rows, cols = w.shape[-2:]
    v = F.pad(w.detach().float(), (0, -cols % BLOCK, 0, -rows % BLOCK))
    v = v.reshape(*v.shape[:-2], v.shape[-2] // BLOCK, BLOCK,
                  v.shape[-1] // BLOCK, BLOCK)
    scale = scale_of(v.abs().amax((-3, -1), keepdim=True))
    v = e4m3(v * inverse(scale)).flatten(-2).flatten(-3, -2)

    return v[..., :rows, :cols], scale[..., 0, :, 0]


def quantize_weight(w):
    """w [..., rows, cols] as it is after export."""

    rows, cols = w.shape[-2:]
    v, scale = weight_blocks(w)
    scale = scale.repeat_interleave(BLOCK, -2)[..., :rows, :]
    scale = scale.repeat_interleave(BLOCK, -1)[..., :cols]

    return through(w, v * scale)


def hadamard(n):
    """The orthonormal Walsh-Hadamard matrix in Sylvester's order, but for
    the factor n^-0.5; n is a power of two."""

    h = torch.ones(1, 1)

    while h.shape[0] < n:
        h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)])

    return h
