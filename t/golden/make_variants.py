#!/usr/bin/env python3
#
# Copyright (C) The nginx-dsa authors
#
# Makes t/data/golden/variants.{safetensors,json}: sums of the logits of the
# golden tokens of b-bf16 under changed values of its config.json, by Hugging
# Face transformers (5.17, its deepseek_v32 model) in float32 on a CPU.
#
#     python3 t/golden/make_variants.py [GOLDEN_DIR [OUT_DIR]]
#
# Needs torch, safetensors and transformers, what `make golden` makes, and
# about a minute; what it writes is kept packed by xz -9e.  Before it
# writes anything it reproduces the stored logits of the unchanged config.json,
# and for every variant it checks that the model was built with the values asked
# for and that they changed the logits.
#
# Index scores are often equal: where no head's ReLU passes a key it scores
# exactly 0.  torch.topk() then takes any of them.  So the stored logits are
# reproduced with the stored selections, and the variants are computed with the
# engine's rule, the lowest positions first.

import json
import math
import os
import sys
import tempfile
import types

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.models.deepseek_v32.modeling_deepseek_v32 import (
    DeepseekV32ForCausalLM,
)

EVERY = 4  # positions kept: every fourth
BASE_ERROR = 0.5e-4  # the unchanged config.json against golden.safetensors
LEAST_CHANGE = 1e-3  # of a variant's logits against the base

YARN = {
    "beta_fast": 32,
    "beta_slow": 1,
    "factor": 40,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 4096,
    "type": "yarn",
}

# None: the field is taken out.

VARIANTS = {
    "index_topk": {"index_topk": 16},
    "routed_scaling_factor": {"routed_scaling_factor": 1.0},
    "groups": {"n_group": 4, "topk_group": 2},
    "num_experts_per_tok": {"num_experts_per_tok": 3},
    "norm_topk_prob": {"norm_topk_prob": False},
    "rope_theta": {"rope_theta": 50000},
    "yarn": {
        "max_position_embeddings": 4096,
        "rope_scaling": YARN
        | {
            "factor": 8,
            "beta_fast": 16,
            "beta_slow": 2,
            "mscale": 0.7,
            "mscale_all_dim": 0.7,
            "original_max_position_embeddings": 512,
        }
    },
    "yarn_mscale": {"rope_scaling": YARN | {"mscale_all_dim": 0.5}},
    "no_rope_scaling": {"rope_scaling": None},
    "rms_norm_eps": {"rms_norm_eps": 1e-3},
}


def fail(text):
    sys.exit(os.path.basename(sys.argv[0]) + ": " + text)


def relative(x, y):
    """Per row: the norm of x - y over the norm of y."""

    x, y = x.double(), y.double()
    return (x - y).norm(dim=-1) / y.norm(dim=-1)


def sums(x):
    """Each row as the 32 sums that sums() of t/lib/DSA/Tensors.pm returns."""

    signs = []
    state = 0

    for _ in range(x.shape[1]):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        signs.append(-1.0 if state >> 31 else 1.0)

    x = x.double() * torch.tensor(signs, dtype=torch.float64)

    return x.reshape(len(x), -1, 32).sum(1).float()


class Selection:
    """Stands in for the topk() of one layer's indexer."""

    def __init__(self, indexer):
        self.forward = indexer.forward
        self.stored = None  # [T, k] positions to take instead, -1 pads
        self.calls = 0
        self.ties = 0
        self.gap = math.inf  # the least one, relative to the largest score
        indexer.forward = self

    def __call__(self, *args, **kwargs):
        own = torch.Tensor.__dict__.get("topk")
        torch.Tensor.topk = lambda scores, k, dim=-1: self.topk(scores, k, dim)

        try:
            return self.forward(*args, **kwargs)
        finally:
            if own is None:
                del torch.Tensor.topk
            else:
                torch.Tensor.topk = own

    def topk(self, scores, k, dim):
        self.calls += 1
        values, at = torch.sort(scores, dim=dim, descending=True, stable=True)

        if k < scores.shape[-1]:
            last, after = values[..., k - 1], values[..., k]
            full = after > torch.finfo(torch.float32).min
            gap = (last - after)[full] / values[..., 0][full].abs()
            self.ties += int((gap == 0).sum())
            gap = gap[gap > 0]
            if len(gap) > 0:
                self.gap = min(self.gap, gap.min().item())

        values, at = values[..., :k], at[..., :k]

        if self.stored is not None:

            # a pad becomes the row itself, which is among the others

            rows = torch.arange(self.stored.shape[0])[:, None]
            at = torch.where(self.stored < 0, rows, self.stored.long())[None]

        return types.SimpleNamespace(values=values, indices=at)


def run(name, model, tokens, stored=None):
    """The logits of all positions."""

    layers = model.model.layers
    selections = [Selection(layer.self_attn.indexer) for layer in layers]

    for i, selection in enumerate(selections):
        if stored is not None:
            selection.stored = stored[f"topk.{i}"]

    logits = model(input_ids=tokens, use_cache=False).logits[0].float()

    for i, selection in enumerate(selections):
        if selection.calls != 1:
            fail(f"{name}: layer {i} chose {selection.calls} times, not once")

        print(
            f"{name}: layer {i}: {selection.ties} rows with a tie, "
            f"else a gap of at least {selection.gap:.1e}"
        )

        del layers[i].self_attn.indexer.forward

    if not torch.isfinite(logits).all():
        fail(f"{name}: logits are not finite")

    return logits


def build(source, config):
    """The model of source's weights under config, in float32."""

    with tempfile.TemporaryDirectory() as d:
        for name in os.listdir(source):
            if name.startswith("model"):
                os.symlink(os.path.join(source, name), os.path.join(d, name))

        with open(os.path.join(d, "config.json"), "w") as f:
            json.dump(config, f)

        model, info = DeepseekV32ForCausalLM.from_pretrained(
            d,
            dtype=torch.float32,
            attn_implementation="eager",
            output_loading_info=True,
        )

    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        keys = info[kind] if isinstance(info, dict) else getattr(info, kind)
        if keys:
            fail(f"{kind}: {sorted(map(str, keys))[:5]}")

    wrong = [n for n, p in model.named_parameters() if p.dtype != torch.float32]
    if wrong:
        fail(f"not float32: {wrong[:5]}")

    # the plain loop over experts, where there is a choice

    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")

    return model.eval()


def mscale(factor, m):
    return 0.1 * m * math.log(factor) + 1.0 if factor > 1 else 1.0


def expected_rope(config):
    """Frequencies, factor on cos and sin, softmax scale: the YaRN paper's."""

    dim = config["qk_rope_head_dim"]
    theta = config["rope_theta"]
    freq = [theta ** (-2 * i / dim) for i in range(dim // 2)]
    scale = (config["qk_nope_head_dim"] + dim) ** -0.5

    y = config.get("rope_scaling")
    if y is None:
        return freq, 1.0, scale

    def turn(r):
        turns = y["original_max_position_embeddings"] / (2 * math.pi * r)
        return dim * math.log(turns) / (2 * math.log(theta))

    low = max(math.floor(turn(y["beta_fast"])), 0)
    high = min(math.ceil(turn(y["beta_slow"])), dim - 1)

    for i, f in enumerate(freq):
        ramp = min(max((i - low) / max(high - low, 1e-3), 0), 1)
        freq[i] = f * (1 - ramp) + f / y["factor"] * ramp

    all_dim = mscale(y["factor"], y["mscale_all_dim"])

    return freq, mscale(y["factor"], y["mscale"]) / all_dim, scale * all_dim**2


def check_built(name, model, config):
    """The model has config's values: none was lost on the way."""

    c = model.config

    for field in (
        "index_topk",
        "routed_scaling_factor",
        "n_group",
        "topk_group",
        "num_experts_per_tok",
        "norm_topk_prob",
        "rms_norm_eps",
    ):
        if getattr(c, field) != config[field]:
            fail(f"{name}: {field} is {getattr(c, field)}, not {config[field]}")

    freq, attention, softmax = expected_rope(config)
    rotary = model.model.rotary_emb
    freq = torch.tensor(freq, dtype=torch.float64)
    error = (rotary.inv_freq.double() / freq - 1).abs().max().item()

    if not error <= 1e-5:
        print(c.rope_parameters)
        fail(f"{name}: rope frequencies differ by {error:.1e}")

    got = rotary.attention_scaling
    if not abs(got - attention) <= 1e-6:
        fail(f"{name}: cos and sin are times {got}, not {attention}")

    for i, layer in enumerate(model.model.layers):
        got = layer.self_attn.scaling
        if not abs(got / softmax - 1) <= 1e-6:
            fail(f"{name}: softmax scale {got}, not {softmax}")

        if layer.input_layernorm.variance_epsilon != config["rms_norm_eps"]:
            fail(f"{name}: layer {i} has another rms_norm_eps")

        if layer.self_attn.indexer.index_topk != config["index_topk"]:
            fail(f"{name}: layer {i} has another index_topk")


def main():
    torch.manual_seed(0)
    torch.set_grad_enabled(False)

    golden = sys.argv[1] if len(sys.argv) > 1 else "t/data/golden"
    out = sys.argv[2] if len(sys.argv) > 2 else golden
    source = os.path.abspath(os.path.join(golden, "b-bf16"))

    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    if not transformers.__version__.startswith("5.17"):
        print("warning: the golden logits were made with transformers 5.17")

    with open(os.path.join(source, "config.json")) as f:
        base_config = json.load(f)

    stored = load_file(os.path.join(source, "golden.safetensors"))
    tokens = stored["tokens"].long()[None]
    positions = list(range(EVERY - 1, tokens.shape[1], EVERY))

    if base_config["rope_scaling"] != YARN:
        fail("b-bf16 has another rope_scaling than this script changes")

    model = build(source, base_config)
    check_built("base", model, base_config)
    again = run("base, stored selections", model, tokens, stored)
    error = relative(sums(again), stored["logits"]).max().item()
    print(f"base: {error:.2e} from golden.safetensors, at most {BASE_ERROR:g}")
    if not error <= BASE_ERROR:
        fail("the unchanged config.json does not give the stored logits")

    base = run("base", model, tokens)
    rows = int((relative(base, again) > BASE_ERROR).sum())
    print(f"base: the rule for ties moves {rows} of {tokens.shape[1]} rows")

    tensors = {}
    described = []

    for name, changed in VARIANTS.items():
        config = dict(base_config)
        for field, value in changed.items():
            if value is None:
                del config[field]
            else:
                config[field] = value

        model = build(source, config)
        check_built(name, model, config)
        logits = run(name, model, tokens)
        change = relative(logits, base)[positions]
        attention = model.model.layers[0].self_attn
        latent_eps = attention.q_a_layernorm.variance_epsilon
        print(
            f"{name}: change {change.median():.2e} median, "
            f"{change.max():.2e} most; eps of the latents' norms {latent_eps:g}"
        )
        if not change.max() >= LEAST_CHANGE:
            fail(f"{name}: the change had no effect")

        tensors["logits." + name] = sums(logits[positions])
        described.append(
            {
                "name": name,
                "config": changed,
                "change": float(f"{change.median():.4g}"),
                "latent_norm_eps": latent_eps,
            }
        )

    path = os.path.join(out, "variants.safetensors")
    save_file(tensors, path)

    with open(os.path.join(out, "variants.json"), "w") as f:
        json.dump(
            {
                "model": "b-bf16",
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "base_error": float(f"{error:.3g}"),
                "positions": positions,
                "variants": described,
            },
            f,
            indent=1,
        )
        f.write("\n")

    print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
