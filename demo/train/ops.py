# Copyright (C) The nginx-dsa authors

"""What differs between a GPU with PyTorch 2 and a CPU with PyTorch 1.13.

Activations are held in one type: bfloat16 on a GPU and wherever serving is
imitated, else that of the parameters.  Products add up in float32 or better.
"""

import math

import torch
import torch.nn.functional as F


def wide(x):
    """x in at least float32."""

    return x if x.dtype == torch.float64 else x.float()


def matmul(a, b):
    """a @ b, both and the result of one type.  A CPU is slow at bfloat16,
    and exact: the products of two fit into float32."""

    return a @ b if a.is_cuda else (wide(a) @ wide(b)).to(a.dtype)


def linear(x, w):
    """x @ w^T in the type of x; w is a parameter, of any type."""

    if x.is_cuda:
        return F.linear(x, w.to(x.dtype))

    return F.linear(wide(x), wide(w)).to(x.dtype)


def causal_attention(q, k, v, scale):
    """q, k [B,T,H,Dq], v [B,T,H,Dv] -> [B,T,H,Dv]"""

    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    n, dim = v.shape[-2:]

    if hasattr(F, 'scaled_dot_product_attention'):

        # the flash kernel knows one size of head only; accelerate() forbids
        # what would keep all of the probabilities

        v = F.pad(v, (0, q.shape[-1] - dim))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           scale=scale)[..., :dim]
    else:
        s = (wide(q) @ wide(k).transpose(-1, -2)) * scale
        seen = torch.ones(n, n, dtype=torch.bool, device=q.device).tril()
        p = s.masked_fill(~seen, -math.inf).softmax(-1)
        o = matmul(p.to(v.dtype), v)

    return o.transpose(1, 2)


class region:
    """Marks a function that is worth compiling.  It runs as it is until
    accelerate() was called.

    Not the whole model is compiled: layers share their code, and what works
    token by token sees the same shapes whatever the length of the rows, so
    each of these is compiled once and not once for every layer and length.
    """
    compiling = False

    def __init__(self, function):
        self.function = function
        self.compiled = None
        self.__doc__ = function.__doc__

    def __call__(self, *args):
        if not region.compiling:
            return self.function(*args)

        if self.compiled is None:
            self.compiled = torch.compile(self.function)

        return self.compiled(*args)


def varying(x, *dims):
    """x, having told the compiler that these of its sizes differ from call
    to call: else it would compile for each of the first few."""

    if region.compiling:
        torch._dynamo.maybe_mark_dynamic(x, dims)

    return x


def accelerate():
    """From now on regions are compiled, where PyTorch can do that, and
    products of float32 use the tensor cores (TF32: exact for numbers that
    were bfloat16)."""

    torch.set_float32_matmul_precision('high')

    # a weight's gradient is a sum over all tokens, which is divided among
    # many blocks: their sums too are added in float32

    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False

    if not hasattr(torch, 'compile'):
        return

    # attention is flash or memory-efficient, or an error that says why not

    torch.backends.cuda.enable_math_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)

    import torch._dynamo as dynamo

    config = dynamo.config

    # a region that cannot be compiled runs as it is

    config.suppress_errors = True

    # stages differ in what learns, layers in their kind of network: more
    # variants of a function than the default allows before it gives up

    for name in ('recompile_limit', 'cache_size_limit'):
        if hasattr(config, name):
            setattr(config, name, 64)

    region.compiling = True
