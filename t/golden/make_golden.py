#!/usr/bin/env python3
#
# Copyright (C) The nginx-dsa authors
#
# Computes the outputs of t/data/golden/MODEL again by Hugging Face transformers
# (5.17, its deepseek_v32 model) in float32 on a CPU, and compares them with the
# stored ones.
#
#     python3 t/golden/make_golden.py a-fp8|b-bf16 OUT.safetensors [GOLDEN_DIR]
#
# Needs what make_variants.py needs.  t/golden/shorten makes golden.safetensors
# of what it writes.  The tokens are those of the stored file.

import json
import os
import sys
import tempfile

import make_variants
import torch
from make_variants import build, fail, relative, sums
from safetensors.torch import load_file, save_file

BLOCK = 128  # rows and columns that share a scale
GREEDY = 16


def dequantized(source, target):
    """Writes the weights of source in float32."""

    stored = {}
    for name in sorted(os.listdir(source)):
        if name.startswith("model-") and name.endswith(".safetensors"):
            stored |= load_file(os.path.join(source, name))

    weights = {}
    for name, w in stored.items():
        if name.endswith("_scale_inv"):
            continue

        w = w.float()
        if name + "_scale_inv" in stored:
            scale = stored[name + "_scale_inv"]
            scale = scale.repeat_interleave(BLOCK, 0)[: w.shape[0]]
            w = w * scale.repeat_interleave(BLOCK, 1)[:, : w.shape[1]]

        weights[name] = w.contiguous()

    save_file(weights, os.path.join(target, "model.safetensors"))


def watch(model, out):
    """Has the next forward pass write its inner values to out."""

    def keep(name, pick):
        def hook(module, args, result):
            out[name] = pick(result).clone()

        return hook

    def selected(indices):
        rows = torch.arange(indices.shape[1])[:, None]
        at = indices[0].long()
        last = indices.shape[1]
        at = torch.where(at > rows, last, at).sort(-1).values
        return torch.where(at == last, -1, at).int()

    hooks = []

    for i, layer in enumerate(model.model.layers):
        attention = layer.self_attn
        for name, module, pick in (
            ("hidden", layer, lambda r: r[0]),
            ("attn_out", attention.o_proj, lambda r: r[0]),
            ("topk", attention.indexer, selected),
        ):
            hooks.append(
                module.register_forward_hook(keep(f"{name}.{i}", pick))
            )

        if hasattr(layer.mlp, "gate"):
            gate = layer.mlp.gate
            hooks.append(
                gate.register_forward_hook(
                    keep(f"expert.{i}", lambda r: r[2].int())
                )
            )
            hooks.append(
                gate.register_forward_hook(
                    keep(f"expert_weight.{i}", lambda r: r[1])
                )
            )

    return hooks


def compute(model, tokens, prompt_len):
    out = {}
    hooks = watch(model, out)
    logits = model(input_ids=tokens[None].long(), use_cache=False).logits[0]
    for hook in hooks:
        hook.remove()

    ids = tokens[:prompt_len].tolist()
    for _ in range(GREEDY):
        last = model(input_ids=torch.tensor([ids]), use_cache=False).logits
        ids.append(int(last[0, -1].argmax()))

    return out | {
        "tokens": tokens,
        "logits": logits,
        "greedy": torch.tensor(ids[prompt_len:], dtype=torch.int32),
        "greedy_prompt_len": torch.tensor([prompt_len], dtype=torch.int32),
    }


def compare(out, stored):
    for name in sorted(stored):
        if name not in out:
            fail(f"{name} was not computed")

        got, want = out[name], stored[name]
        if got.is_floating_point() and got.shape != want.shape:
            got = sums(got)

        if not got.is_floating_point():
            rows = int((got != want).reshape(len(want), -1).any(-1).sum())
            print(f"{name}: {rows} of {len(want)} rows differ")
            if rows != 0:
                fail(f"{name} is not the stored one")
            continue

        error = relative(got, want).max().item()
        print(f"{name}: {error:.2e} from the stored one")
        if not error <= make_variants.BASE_ERROR:
            fail(f"{name} is not the stored one")


def main():
    if len(sys.argv) not in (3, 4):
        fail("usage: make_golden.py a-fp8|b-bf16 OUT.safetensors [GOLDEN_DIR]")

    torch.set_grad_enabled(False)

    golden = sys.argv[3] if len(sys.argv) == 4 else "t/data/golden"
    source = os.path.join(golden, sys.argv[1])
    stored = load_file(os.path.join(source, "golden.safetensors"))

    with open(os.path.join(source, "config.json")) as f:
        config = json.load(f)

    config.pop("quantization_config", None)

    with tempfile.TemporaryDirectory() as d:
        dequantized(source, d)
        model = build(d, config)

    out = compute(model, stored["tokens"], int(stored["greedy_prompt_len"]))
    compare(out, stored)
    save_file({k: v.contiguous() for k, v in out.items()}, sys.argv[2])


if __name__ == "__main__":
    main()
