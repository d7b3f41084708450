# Copyright (C) The nginx-dsa authors

"""Operations that differ between a GPU with PyTorch 2.8 and a CPU with PyTorch
1.13.

Activations have one type: bfloat16 on a GPU and wherever serving is simulated,
else that of the parameters.  Products are accumulated in float32 or better.
"""

import math

import torch
import torch.nn.functional as F


def wide(x):
    """Returns x in at least float32."""

    return x if x.dtype == torch.float64 else x.float()


def matmul(a, b):
    """a @ b, with both and the result of one type.  A CPU is slow with
    bfloat16, so float32 is used there, in which products of two bfloat16 are
    exact."""

    return a @ b if a.is_cuda else (wide(a) @ wide(b)).to(a.dtype)


def wide_matmul(a, b):
    """a [...,M,K] @ b [...,K,N] in at least float32.  A GPU multiplies
    bfloat16 without copies in float32."""

    if a.is_cuda and a.dtype == torch.bfloat16:
        flat = torch.bmm(a.flatten(0, -3), b.flatten(0, -3),
                         out_dtype=torch.float32)
        return flat.unflatten(0, a.shape[:-2])

    return wide(a) @ wide(b)


def linear(x, w):
    """x @ w^T in the type of x; w is a parameter of any type."""

    if x.is_cuda:
        return F.linear(x, w.to(x.dtype))

    return F.linear(wide(x), wide(w)).to(x.dtype)


def causal_attention(q, k, v, scale):
    """q, k [B,T,H,Dq], v [B,T,H,Dv] -> [B,T,H,Dv]"""

    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    n, dim = v.shape[-2:]

    if hasattr(F, 'scaled_dot_product_attention'):

        # cuDNN's kernels are the fastest on Hopper.  accelerate() disables
        # the implementation that would store all probabilities.

        o = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           scale=scale)
    else:
        s = (wide(q) @ wide(k).transpose(-1, -2)) * scale
        seen = torch.ones(n, n, dtype=torch.bool, device=q.device).tril()
        p = s.masked_fill(~seen, -math.inf).softmax(-1)
        o = matmul(p.to(v.dtype), v)

    return o.transpose(1, 2)


class region:
    """Marks a function for compilation.  It runs uncompiled until accelerate()
    is called.

    Only parts of the model are compiled.  Layers share their code, and
    functions that treat each token separately see the same shapes for rows of
    any length.  So each is compiled once, instead of once per layer and
    length.

    all       the regions of the program
    compiles  this region is compiled when it is called
    """
    all = []

    def __init__(self, function):
        self.function = function
        self.compiles = False
        self.compiled = None
        self.__doc__ = function.__doc__
        region.all.append(self)

    def __call__(self, *args):
        if not self.compiles:
            return self.function(*args)

        if self.compiled is None:
            self.compiled = torch.compile(self.function)

        return self.compiled(*args)


def varying(x, *dims):
    """Returns x and marks these sizes as varying between calls; otherwise the
    compiler would compile a version for each of the first few sizes."""

    if any(r.compiles for r in region.all):
        torch._dynamo.maybe_mark_dynamic(x, dims)

    return x


def accelerate(regions=None):
    """Enables compilation of these regions, or of all, if PyTorch supports it,
    and tensor cores for products of float32 (TF32, which is exact for numbers
    that were bfloat16)."""

    torch.set_float32_matmul_precision('high')

    # The gradient of a weight is a sum over all tokens, which is divided among
    # many blocks.  The sums of the blocks are added in float32, too.

    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False

    if not hasattr(torch, 'compile'):
        return

    # attention uses cuDNN's kernel, or fails with a reason

    torch.backends.cuda.enable_math_sdp(False)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(True)

    import torch._dynamo as dynamo

    config = dynamo.config

    # Stages differ in the trained parameters, and layers in their kind of
    # network.  So a function has more variants than the default limit.

    for name in ('recompile_limit', 'cache_size_limit'):
        if hasattr(config, name):
            setattr(config, name, 64)

    for r in region.all if regions is None else regions:
        r.compiles = True
