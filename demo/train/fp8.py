# Copyright (C) The nginx-dsa authors

"""FP8 e4m3 as in the published checkpoints and in serving: blocks of 128, each
with a power of two as its scale (kernels/core/fp8.h).

Values are rounded by arithmetic on float32 and its bits, without casts and
divisions.  So every version of PyTorch gives the same bits as the engine.
Compiled code would omit a cast to bfloat16 and back, and its divisions are not
exact.
"""

import torch
import torch.nn.functional as F


MOST = 448.0            # the largest e4m3 number
LEAST_AMAX = 1e-4       # published; a block of zeros needs a scale, too
BLOCK = 128


def bits(x):
    return x.view(torch.int32)


def floats(i):
    return i.view(torch.float32)


def e4m3(x):
    """Rounds x (float32) to the nearest e4m3 numbers, ties to even; beyond the
    largest number, to the largest.

    Adding 1.5 * 2^(e + 20) to a number with the exponent e keeps only its bits
    from 2^(e - 3) up, and the addition itself rounds them.  These are the
    three bits of fraction that e4m3 has.  Below 2^-6 the step is always 2^-9.
    Zeros are never negative here.
    """
    x = x.clamp(-MOST, MOST)
    exponent = (bits(x) & 0x7f800000).clamp(min=121 << 23)
    c = floats(exponent + (20 << 23)) * 1.5

    return (x + c) - c


def e4m3_code(x):
    """Returns the byte of each of x (float32), which must be e4m3 numbers."""

    sign = (bits(x) >> 24) & 0x80
    x = x.abs()
    normal = (bits(x) >> 20) - (120 << 3)
    small = (x * 512).to(torch.int32)

    return (torch.where(x < 2.0 ** -6, small, normal) | sign).to(torch.uint8)


def scale_of(amax):
    """Returns the scale of a block whose greatest magnitude is amax (float32):
    amax / 448, rounded up to a power of two (ue8m0) before it is used as a
    divisor.  448 is 1.75 * 2^8."""

    i = bits(amax.clamp(min=LEAST_AMAX))
    up = ((i & 0x7fffff) > 0x600000).to(torch.int32)

    return floats(((i >> 23) - 8 + up) << 23)


def inverse(scale):
    """Returns 1 / scale, for a power of two."""

    return floats((254 << 23) - bits(scale))


def bf16(x):
    """Rounds x (float32) to the nearest bfloat16 numbers, ties to even."""

    i = bits(x)

    return floats((i + 0x7fff + ((i >> 16) & 1)) & -0x10000)


def through(x, rounded):
    """Returns rounded, with the gradient of x ("straight through").  The added
    difference is zero and only carries the gradient."""

    return rounded.to(x.dtype).detach() + (x - x.detach())


def narrow(x, dtype):
    """Converts x to a type and rounds it, even if the next operation makes it
    wider again."""

    if dtype == torch.bfloat16 and x.dtype == torch.float32:
        x = through(x, bf16(x.detach()))

    return x.to(dtype)


def quantize(x):
    """Rounds x [..., n] like the left operand of an FP8 product: groups of 128
    of the last dimension, each with its own scale."""

    n = x.shape[-1]
    v = F.pad(x.detach().float(), (0, -n % BLOCK))
    v = v.reshape(*v.shape[:-1], -1, BLOCK)
    scale = scale_of(v.abs().amax(-1, keepdim=True))
    v = e4m3(v * inverse(scale)) * scale

    return through(x, v.flatten(-2)[..., :n])


def weight_blocks(w):
    """Splits w [..., rows, cols] into e4m3 numbers of the same shape and their
    scales [..., ceil(rows / 128), ceil(cols / 128)]."""

    rows, cols = w.shape[-2:]
    v = F.pad(w.detach().float(), (0, -cols % BLOCK, 0, -rows % BLOCK))
    v = v.reshape(*v.shape[:-2], v.shape[-2] // BLOCK, BLOCK,
                  v.shape[-1] // BLOCK, BLOCK)
    scale = scale_of(v.abs().amax((-3, -1), keepdim=True))
    v = e4m3(v * inverse(scale)).flatten(-2).flatten(-3, -2)

    return v[..., :rows, :cols], scale[..., 0, :, 0]


def quantize_weight(w):
    """Returns w [..., rows, cols] as it is after export."""

    rows, cols = w.shape[-2:]
    v, scale = weight_blocks(w)
    scale = scale.repeat_interleave(BLOCK, -2)[..., :rows, :]
    scale = scale.repeat_interleave(BLOCK, -1)[..., :cols]

    return through(w, v * scale)


def hadamard(n):
    """Returns the Walsh-Hadamard matrix in Sylvester's order.  It is
    orthonormal except for the factor n^-0.5; n is a power of two."""

    h = torch.ones(1, 1)

    while h.shape[0] < n:
        h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)])

    return h
