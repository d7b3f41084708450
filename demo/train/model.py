# Copyright (C) The nginx-dsa authors

"""DeepSeek-V3.2 for training: MLA, the lightning indexer, and experts without
dispatch.  Parameters have the names of the published checkpoint, except that
the experts of a layer are stacked: experts.gate_proj.weight [E, I, H] is split
at export.

The residual stream and the parameters are float32, activations are bfloat16 on
a GPU.  Norms, softmax, router and index scores are computed in float32.  All
types are explicit; autocast is disabled.

    attention  'dense'   a token sees all before it; the indexer is not used
               'warmup'  the same, and only the indexer is trained (eq. 3)
               'sparse'  a token sees the index_topk tokens that the indexer
                         selects; the indexer is trained on the model's
                         attention (eq. 4), without gradients to the model
    precision  'float', or 'served': rounded where serving rounds, with
               straight-through gradients (fp8.py)

MLA is computed in its multi-head form, or if served in its absorbed form, in
which the engine serves, because the two round different numbers: see
kernels/attention/attention.h and engine/cpu/mqa.c.

Functions that treat each token separately get the tokens in one dimension:
[N, ...], N = B * T.
"""

import math
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from train import fp8
from train.attention import selected_attention
from train.loss import cross_entropy
from train.ops import causal_attention, linear, matmul, region, wide


INNER_EPS = 1e-6        # of norms within attention, independent of the config


class Output(NamedTuple):
    """
    hidden      [B,T,H] after the last norm
    index_loss  the indexers' loss, a mean over valid tokens and layers
    load        [MoE layers, experts] the share of each in the choices that
                valid tokens of the batch made
    drafts      [B,T,H] of each step of the draft layer, after its norm
    """
    hidden: torch.Tensor
    index_loss: torch.Tensor
    load: torch.Tensor
    drafts: tuple = ()


# ------------------------------------------------------------- parameters


class Matrix(nn.Module):
    """A projection [rows, cols], or a stack of them; FP8 when served.

    The initial deviation is gain / sqrt(cols), so that a product is as large
    as its input.  The published 0.02 is right for a width of 2,500, but much
    too small for one of 256.
    """
    def __init__(self, rows, cols, gain=1.0, stack=()):
        super().__init__()
        self.weight = nn.Parameter(
            torch.randn(*stack, rows, cols) * (gain / math.sqrt(cols)))

    def value(self, served):
        return fp8.quantize_weight(self.weight) if served else self.weight


class Plain(nn.Module):
    """A matrix that is BF16 when served."""

    def __init__(self, rows, cols, deviation):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, cols) * deviation)

    def value(self, served):
        w = self.weight
        return fp8.through(w, fp8.bf16(w.detach().float())) if served else w


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))


class LayerNorm(Norm):
    def __init__(self, size):
        super().__init__(size)
        self.bias = nn.Parameter(torch.zeros(size))


class Indexer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.dim = c['index_n_heads'], c['index_head_dim']
        self.rope = c['qk_rope_head_dim']
        self.wq_b = Matrix(self.heads * self.dim, c['q_lora_rank'])
        self.wk = Matrix(self.dim, c['hidden_size'])
        self.k_norm = LayerNorm(self.dim)
        self.weights_proj = Plain(self.heads, c['hidden_size'],
                                  c['hidden_size'] ** -0.5)
        self.register_buffer('hadamard', fp8.hadamard(self.dim),
                             persistent=False)


class Attention(nn.Module):
    def __init__(self, c, gain):
        super().__init__()
        hidden, self.heads = c['hidden_size'], c['num_attention_heads']
        self.nope, self.rope = c['qk_nope_head_dim'], c['qk_rope_head_dim']
        self.v, self.latent = c['v_head_dim'], c['kv_lora_rank']
        self.q_rank = c['q_lora_rank']
        self.scale = softmax_scale(c)

        self.q_a_proj = Matrix(self.q_rank, hidden)
        self.q_a_layernorm = Norm(self.q_rank)
        self.q_b_proj = Matrix(self.heads * (self.nope + self.rope),
                               self.q_rank)
        self.kv_a_proj_with_mqa = Matrix(self.latent + self.rope, hidden)
        self.kv_a_layernorm = Norm(self.latent)
        self.kv_b_proj = Matrix(self.heads * (self.nope + self.v),
                                self.latent)
        self.o_proj = Matrix(hidden, self.heads * self.v, gain)
        self.indexer = Indexer(c)


class Mlp(nn.Module):
    def __init__(self, hidden, inner, gain, stack=()):
        super().__init__()
        self.gate_proj = Matrix(inner, hidden, 1.0, stack)
        self.up_proj = Matrix(inner, hidden, 1.0, stack)
        self.down_proj = Matrix(hidden, inner, gain, stack)


class Gate(Plain):
    def __init__(self, c):
        super().__init__(c['n_routed_experts'], c['hidden_size'],
                         c['hidden_size'] ** -0.5)
        self.register_buffer('e_score_correction_bias',
                             torch.zeros(c['n_routed_experts']))
        self.groups, self.groups_kept = c['n_group'], c['topk_group']
        self.k, self.normalize = c['num_experts_per_tok'], c['norm_topk_prob']
        self.factor = c['routed_scaling_factor']


class Moe(nn.Module):
    def __init__(self, c, gain):
        super().__init__()
        hidden, inner = c['hidden_size'], c['moe_intermediate_size']

        self.gate = Gate(c)
        self.experts = Mlp(hidden, inner, gain, (c['n_routed_experts'],))
        self.shared_experts = Mlp(hidden, inner * c['n_shared_experts'], gain)


class Layer(nn.Module):
    def __init__(self, c, moe):
        super().__init__()

        # each layer adds twice to the stream; all layers together add as much
        # as the embedding

        gain = (2 * c['num_hidden_layers']) ** -0.5

        self.eps = c['rms_norm_eps']
        self.moe = moe
        self.input_layernorm = Norm(c['hidden_size'])
        self.post_attention_layernorm = Norm(c['hidden_size'])
        self.self_attn = Attention(c, gain)
        self.mlp = Moe(c, gain) if self.moe else Mlp(
            c['hidden_size'], c['intermediate_size'], gain)


class Head(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = Norm(size)


class DraftLayer(Layer):
    """Multi-token prediction (DeepSeek-V3's report, 2.2): a layer whose input
    is made of the model's output at a position and the next token.  It has a
    norm of its own, and shares embedding and head with the model."""

    def __init__(self, c):
        super().__init__(c, True)
        hidden = c['hidden_size']

        self.enorm, self.hnorm = Norm(hidden), Norm(hidden)
        self.eh_proj = Plain(hidden, 2 * hidden, (2 * hidden) ** -0.5)
        self.shared_head = Head(hidden)


class Body(nn.Module):
    """The draft layer is the last of layers, if there is one."""

    def __init__(self, c):
        super().__init__()
        self.embed_tokens = Plain(c['vocab_size'], c['hidden_size'], 1.0)
        self.layers = nn.ModuleList(
            Layer(c, n >= c['first_k_dense_replace']
                  and n % c['moe_layer_freq'] == 0)
            for n in range(c['num_hidden_layers']))
        self.layers.extend(DraftLayer(c) for _ in range(
            min(1, c['num_nextn_predict_layers'])))
        self.norm = Norm(c['hidden_size'])


# ------------------------------------------------------------------- rope


def mscale(scaling, field):
    if scaling['factor'] <= 1:
        return 1.0

    return 0.1 * scaling[field] * math.log(scaling['factor']) + 1


def softmax_scale(c):
    dim = c['qk_nope_head_dim'] + c['qk_rope_head_dim']
    return dim ** -0.5 * mscale(c['rope_scaling'], 'mscale_all_dim') ** 2


def rope_table(c):
    """Returns YaRN's cosines and sines, [positions, dim / 2] each.  Low
    frequencies are divided by factor, high ones are unchanged, with a ramp
    between."""

    s, dim, theta = c['rope_scaling'], c['qk_rope_head_dim'], c['rope_theta']

    def dimension(turns):
        """Returns the dimension with so many turns over the original
        context."""
        return (dim * math.log(s['original_max_position_embeddings']
                               / (2 * math.pi * turns))
                / (2 * math.log(theta)))

    i = torch.arange(dim // 2, dtype=torch.float64)
    f = theta ** (-2 * i / dim)
    low = max(math.floor(dimension(s['beta_fast'])), 0)
    high = min(math.ceil(dimension(s['beta_slow'])), dim - 1)
    ramp = ((i - low) / max(high - low, 0.001)).clamp(0, 1)
    f = (f * (1 - ramp) + f / s['factor'] * ramp).float()

    at = torch.arange(c['max_position_embeddings']).float()
    angle = (at[:, None] * f).double()
    magnitude = mscale(s, 'mscale') / mscale(s, 'mscale_all_dim')

    return ((angle.cos() * magnitude).float(),
            (angle.sin() * magnitude).float())


def interleaved(x, cos, sin):
    """Rotates pairs (2i, 2i + 1) of x [..., dim]: the layout of MLA."""

    v = wide(x).unflatten(-1, (-1, 2))
    a, b = v[..., 0], v[..., 1]

    return fp8.narrow(torch.stack([a * cos - b * sin, a * sin + b * cos],
                                  -1).flatten(-2), x.dtype)


def half_split(x, cos, sin):
    """Rotates pairs (i, i + dim / 2) of x [..., dim]: the indexer's layout."""

    a, b = wide(x).chunk(2, -1)

    return fp8.narrow(torch.cat([a * cos - b * sin, a * sin + b * cos], -1),
                      x.dtype)


# ------------------------------------------------------------------ layers


def rms_norm(x, weight, eps, dtype):
    x = wide(x)
    return fp8.narrow(x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()
                      * weight, dtype)


def held(h, served):
    """Returns the type of activations beside the stream h."""

    return torch.bfloat16 if served or h.is_cuda else h.dtype


def carried(h, served):
    """Returns the stream as it continues beside a block.  Norms read it before
    it is rounded."""

    return fp8.through(h, fp8.bf16(h.detach().float())) if served else h


def rounded(x, served):
    """Rounds x like the input of a product with FP8 weights."""

    return fp8.quantize(x) if served else x


@region
def project(layer, h, cos, sin, served):
    """h [N,H], cos and sin [N,dim/2] -> x [N,H] and qr [N,rank], which the
    indexer reads without gradients; q [N,heads,192], k the same, v
    [N,heads,128].  If served, in the absorbed form: q [N,heads,576], k
    [N,1,576] and v [N,1,512]."""

    a = layer.self_attn
    x = rms_norm(h, layer.input_layernorm.weight, layer.eps, held(h, served))
    cos, sin = cos[:, None], sin[:, None]

    # one product for both matrices with the same input

    low = linear(rounded(x, served),
                 torch.cat([a.q_a_proj.value(served),
                            a.kv_a_proj_with_mqa.value(served)]))
    qr, c, k_rope = low.split([a.q_rank, a.latent, a.rope], -1)

    qr = rms_norm(qr, a.q_a_layernorm.weight, INNER_EPS, x.dtype)
    q = linear(rounded(qr, served), a.q_b_proj.value(served))
    q = q.unflatten(-1, (a.heads, -1))
    q = torch.cat([q[..., :a.nope],
                   interleaved(q[..., a.nope:], cos, sin)], -1)

    # rounded as in the cache; rounding it once more for the product would not
    # change it

    c = rounded(rms_norm(c, a.kv_a_layernorm.weight, INNER_EPS, x.dtype),
                served)
    k_rope = interleaved(k_rope[:, None], cos, sin)

    if served:
        q = torch.cat([by_head(q[..., :a.nope], expansion(a, x)[:, :a.nope]),
                       q[..., a.nope:]], -1)
        c = c[:, None]

        return x.detach(), qr.detach(), q, torch.cat([c, k_rope], -1), c

    kv = linear(c, a.kv_b_proj.value(served))
    kv = kv.unflatten(-1, (a.heads, -1))
    k = torch.cat([kv[..., :a.nope], k_rope.expand(-1, a.heads, -1)], -1)

    return x.detach(), qr.detach(), q, k, kv[..., a.nope:]


def expansion(a, x):
    """Returns the served kv_b_proj in the type of x, [heads,128+128,latent]:
    for each head the rows of its keys, then those of its values.  It is applied
    with BF16 operands.  BF16 has all numbers that FP8 with its scales has."""

    return a.kv_b_proj.value(True).to(x.dtype).unflatten(0, (a.heads, -1))


def by_head(x, w):
    """x [N,heads,n], w [heads,n,m] -> x w [N,heads,m], a product for each head,
    or for each expert."""

    return matmul(x.transpose(0, 1), w).transpose(0, 1)


@region
def index(layer, x, qr, cos, sin, served):
    """Returns iq [N,J,D], ik [N,D], iw [N,J] with the constants in it.  The
    parts of a head are in the opposite order of MLA: rope first."""

    i = layer.self_attn.indexer

    iq = linear(rounded(qr, served), i.wq_b.value(served))
    iq = iq.unflatten(-1, (i.heads, i.dim))
    iq = torch.cat([half_split(iq[..., :i.rope], cos[:, None], sin[:, None]),
                    iq[..., i.rope:]], -1)

    ik = wide(linear(rounded(x, served), i.wk.value(served)))
    ik = fp8.narrow(F.layer_norm(ik, (i.dim,), i.k_norm.weight,
                                 i.k_norm.bias, INNER_EPS), x.dtype)
    ik = torch.cat([half_split(ik[..., :i.rope], cos, sin),
                    ik[..., i.rope:]], -1)

    # the transform does not change products of two vectors, only their
    # rounding

    if served:
        iq, ik = turned(i, iq), turned(i, ik)

    iw = wide(x) @ wide(i.weights_proj.value(served)).t()

    return iq, ik, iw * (i.heads * i.dim) ** -0.5


def turned(i, x):
    """Applies the Hadamard transform to x [..., D] and rounds it.  The matrix
    of 1 and -1 is exact in TF32; the factor is applied afterwards."""

    y = (wide(x) @ i.hadamard) * i.dim ** -0.5
    return fp8.quantize(fp8.narrow(y, x.dtype))


@region
def finish(layer, h, o, valid, served, forced):
    """Returns the stream h [N,H] after attention with the output o
    [N,heads,128], if served in latent space, [N,heads,512], and how many
    tokens chose each expert, or None.  forced as for route()."""

    a = layer.self_attn

    if served:
        o = by_head(o, expansion(a, o)[:, a.nope:].transpose(1, 2))

    h = carried(h, served) + linear(rounded(o.flatten(1), served),
                                    a.o_proj.value(served))
    x = rms_norm(h, layer.post_attention_layernorm.weight, layer.eps,
                 held(h, served))

    if layer.moe:
        y, load = moe(layer.mlp, x, valid, served, forced)
    else:
        y, load = mlp(layer.mlp, x, served), None

    return carried(h, served) + y, load


def swiglu(gate, up):
    return fp8.narrow(F.silu(wide(gate)) * wide(up), gate.dtype)


def mlp(m, x, served):
    gate, up = linear(rounded(x, served),
                      torch.cat([m.gate_proj.value(served),
                                 m.up_proj.value(served)])).chunk(2, -1)

    return linear(rounded(swiglu(gate, up), served),
                  m.down_proj.value(served))


def moe(m, x, valid, served, forced=None):
    """x [N,H] -> y [N,H], how many valid tokens chose each expert [E].

    The experts are so small that sorting tokens by expert would cost more than
    computing all experts for every token.  One product makes all intermediate
    values, experts that were not chosen get the weight 0, and one product adds
    up.  If served, each expert has a product of its own, because its result is
    rounded before it is weighted.
    """
    weight, chosen = route(m.gate, x, served, forced)

    def joined(name, dim):
        """Joins the experts' matrices, with the shared expert last."""
        stack = getattr(m.experts, name).value(served)
        shared = getattr(m.shared_experts, name).value(served)
        stack = stack.movedim(0, -2) if dim == 1 else stack
        return torch.cat([stack.flatten(dim, dim + 1), shared], dim)

    gate, up = linear(rounded(x, served),
                      torch.cat([joined('gate_proj', 0),
                                 joined('up_proj', 0)])).chunk(2, -1)
    inner = swiglu(gate, up)

    E, I, _ = m.experts.gate_proj.weight.shape
    routed, shared = inner[:, :E * I].unflatten(-1, (E, I)), inner[:, E * I:]

    if served:
        y = combined(m, routed, shared, weight)
    else:
        routed = (routed * weight[..., None]).to(x.dtype).flatten(-2)
        y = linear(torch.cat([routed, shared], -1), joined('down_proj', 1))

    return y, (chosen & valid[:, None]).to(weight.dtype).sum(0)


def combined(m, routed, shared, weight):
    """routed [N,E,I], shared [N,I], weight [N,E] -> y [N,H], rounded as in
    dsa_moe_combine(): each expert's result, then the sum, in which the experts
    come in their order and the shared one is the last."""

    w = m.experts.down_proj.value(True).to(routed.dtype)
    each = by_head(fp8.quantize(routed), w.transpose(1, 2))
    y = sum([wide(each[:, e]) * weight[:, e, None] for e in range(len(w))])
    shared = linear(fp8.quantize(shared),
                    m.shared_experts.down_proj.value(True))

    return fp8.narrow(y + wide(shared), routed.dtype)


def route(gate, x, served, forced=None):
    """x [N,H] -> weights [N,E], 0 if not chosen, and chosen [N,E].

    The bias affects the choice only; the weights are the sigmoids.  forced
    [N,k] are the experts of a token instead of those that the router would
    choose, or -1 where it chooses (Keep Routing).
    """
    s = (wide(x) @ wide(gate.value(served)).t()).sigmoid()
    b = (s + gate.e_score_correction_bias).detach()

    group = b.unflatten(-1, (gate.groups, -1))
    size = group.shape[-1]
    score = torch.where(greatest(group, 2), group,
                        torch.zeros_like(group)).sum(-1)
    kept = greatest(score, gate.groups_kept)
    b = b.masked_fill(~kept.repeat_interleave(size, -1), -math.inf)
    chosen = greatest(b, gate.k)

    if forced is not None:
        experts = torch.arange(s.shape[-1], device=s.device)
        given = (forced[..., None] == experts).any(-2)
        chosen = torch.where(forced[:, :1] >= 0, given, chosen)

    w = s * chosen

    if gate.normalize:
        w = w / w.sum(-1, keepdim=True)

    return w * gate.factor, chosen


def greatest(x, k):
    """Returns true for the k greatest of the last dimension; of equal numbers
    the first.  It compares all with all, which for a few experts is one small
    kernel and needs no sort."""

    n = x.shape[-1]
    a, b = x[..., :, None], x[..., None, :]
    before = torch.ones(n, n, dtype=torch.bool, device=x.device).tril(-1)
    rank = ((b > a) | ((b == a) & before)).sum(-1)

    return rank < k


# ------------------------------------------------------------------- model


@region
def joined(layer, e, hidden, served):
    """Returns the stream [N,H] that enters the draft layer, from embeddings e
    and outputs hidden; the embedding is the first half."""

    x = torch.cat([rms_norm(e, layer.enorm.weight, layer.eps,
                            held(e, served)),
                   rms_norm(hidden, layer.hnorm.weight, layer.eps,
                            held(e, served))], -1)

    return wide(linear(x, layer.eh_proj.value(served)))


def shifted(weights, k):
    """Returns for each position of weights [B,T] the weight of the one that is
    k further in the row."""

    ahead = weights.roll(-k, 1)
    ahead[:, -k:] = 0

    return ahead


class Rows(NamedTuple):
    """What a layer needs besides its stream.

    shape           (B, T)
    flat, weight    [N] which tokens are valid; [B,T] their weight in the
                    indexer's loss, of 1 in the whole batch
    whole           the number of valid tokens in the batch, at least 1
    cos, sin        [N,dim/2]
    attention, served, learning
                    the mode, whether to round, whether there are gradients
    routes          None, or for each MoE layer the experts of route()'s forced
    """
    shape: tuple
    flat: torch.Tensor
    weight: torch.Tensor
    whole: torch.Tensor
    cos: torch.Tensor
    sin: torch.Tensor
    attention: str
    served: bool
    learning: bool
    routes: tuple = None


class Model(nn.Module):
    """config is a checkpoint's config.json."""

    def __init__(self, config):
        super().__init__()
        self.topk = config['index_topk']
        self.eps = config['rms_norm_eps']
        self.n_layers = config['num_hidden_layers']
        self.model = Body(config)

        # logits are small at first, so that all tokens are nearly equally
        # probable

        self.lm_head = Plain(config['vocab_size'], config['hidden_size'],
                             0.25 * config['hidden_size'] ** -0.5)

        cos, sin = rope_table(config)
        self.register_buffer('cos', cos, persistent=False)
        self.register_buffer('sin', sin, persistent=False)

    def forward(self, ids, valid, attention, precision, drafts=0, batch=None,
                routes=None):
        """ids [B,T] int64; valid [B,T] bool, false for the padding at a row's
        end; drafts: steps of the draft layer; batch: the valid of all rows, if
        these are some rows of a batch; routes: None, or int64 [B,T,MoE
        layers,k], the experts of each token, -1 for those that its router
        chooses; the draft layer's are always its own.  Returns an Output, in
        which the indexer's loss and the load are the rows' parts of the
        batch's."""

        with torch.autocast(ids.device.type, enabled=False):
            return self.run(ids, valid, attention, precision, drafts,
                            valid if batch is None else batch, routes)

    def run(self, ids, valid, attention, precision, drafts, batch, routes):
        learning = torch.is_grad_enabled()
        rows = self.rows(valid, attention, precision, learning, batch)

        if routes is not None:
            rows = rows._replace(routes=routes.flatten(0, 1).unbind(1))

        losses, loads = [], []

        # in the warm-up only the indexer is trained

        with torch.set_grad_enabled(learning and attention != 'warmup'):
            h = self.embedded(ids, rows)

            for layer in self.model.layers[:self.n_layers]:
                h = self.through(layer, h, rows, losses, loads)

            hidden = rms_norm(h, self.model.norm.weight, self.eps,
                              held(h, rows.served))
            steps, last = [], hidden

            for k in range(1, drafts + 1):
                last = self.draft(ids, valid, last, k, rows, losses, loads,
                                  batch)
                steps.append(last.unflatten(0, rows.shape))

        return Output(hidden.unflatten(0, rows.shape),
                      torch.stack(losses).mean() if losses
                      else hidden.new_zeros((), dtype=self.cos.dtype),
                      torch.stack(loads), tuple(steps))

    def rows(self, valid, attention, precision, learning, batch):
        """Returns the Rows of some rows of a batch."""

        B, T = valid.shape

        return Rows((B, T), *self.counted(valid, batch),
                    self.cos[:T].repeat(B, 1), self.sin[:T].repeat(B, 1),
                    attention, precision == 'served', learning)

    def counted(self, valid, batch):
        """Returns flat, weight and whole of Rows."""

        whole = batch.sum().clamp(min=1).to(self.cos.dtype)

        return valid.flatten(), valid.to(self.cos.dtype) / whole, whole

    def embedded(self, ids, rows):
        return F.embedding(ids.flatten(),
                           self.model.embed_tokens.value(rows.served))

    def through(self, layer, h, rows, losses, loads):
        """Returns the stream h [N,H] after a layer, and adds its indexer's
        loss and its experts' load to the lists."""

        x, qr, q, k, v = project(layer, h, rows.cos, rows.sin, rows.served)
        q, k, v = (t.unflatten(0, rows.shape) for t in (q, k, v))
        scale = layer.self_attn.scale

        if rows.attention == 'dense':
            o = causal_attention(q, k, v, scale) if not rows.served else \
                selected_attention(q, k, v, [None] * 3, None, None, scale)[0]

        else:
            with torch.set_grad_enabled(rows.learning):
                i = index(layer, x, qr, rows.cos, rows.sin, rows.served)
                o, loss = selected_attention(
                    q, k, v, [t.unflatten(0, rows.shape) for t in i],
                    rows.weight,
                    self.topk if rows.attention == 'sparse' else None, scale)

            losses.append(loss)

        forced = rows.routes[len(loads)] if layer.moe and rows.routes else None
        h, load = finish(layer, h, o.flatten(0, 1), rows.flat, rows.served,
                         forced)

        if load is not None:
            loads.append(load / (rows.whole * layer.mlp.gate.k))

        return h

    def draft(self, ids, valid, hidden, k, rows, losses, loads, batch):
        """Returns the output [N,H] of step k of the draft layer, whose row i
        reads token i + k and drafts token i + k + 1.  hidden [N,H] is the
        model's output, or from step 2 on that of the step before.

        In training a row of step 2 sees keys of step 2, while in serving it
        sees those of step 1 and its own: the rows then need no attention of
        another kind.  Positions are those of step 1, because only their
        differences matter.
        """
        layer = self.model.layers[self.n_layers]
        rows = rows._replace(routes=None, **dict(zip(
            ('flat', 'weight', 'whole'),
            self.counted(shifted(valid, k), shifted(batch, k)))))
        mine = []

        h = joined(layer, self.embedded(ids.roll(-k, 1), rows), hidden,
                   rows.served)
        h = self.through(layer, h, rows, losses, mine)

        # the router's balance depends on the first step only

        loads += mine if k == 1 else []

        return rms_norm(h, layer.shared_head.norm.weight, self.eps,
                        held(h, rows.served))

    def logits(self, hidden, precision='float'):
        """[..., H] -> [..., V] in float32."""

        with torch.autocast(hidden.device.type, enabled=False):
            w = self.lm_head.value(precision == 'served')
            return wide(hidden) @ wide(w).t()

    def loss(self, hidden, targets, weights, precision='float', total=None):
        """Returns the mean of the cross-entropy of targets [B,T] int64 after
        hidden [B,T,H], weighted by weights [B,T], or the part of some rows in
        the mean of a batch with this total of weights.  Logits are never in
        memory all at once."""

        with torch.autocast(hidden.device.type, enabled=False):
            return cross_entropy(hidden.flatten(0, 1),
                                 self.lm_head.value(precision == 'served'),
                                 targets.flatten(), weights.flatten(),
                                 total)

    @torch.no_grad()
    def balance(self, load, rate):
        """Balances experts without a loss (DeepSeek-V3): the bias of an expert
        with less than its share of the choices is increased, with more it is
        decreased.  load is that of an Output."""

        gates = [layer.mlp.gate for layer in self.model.layers if layer.moe]

        for gate, share in zip(gates, load):
            gate.e_score_correction_bias += rate * torch.sign(
                share.mean() - share)
