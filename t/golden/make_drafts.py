#!/usr/bin/env python3
#
# Copyright (C) The nginx-dsa authors
#
# Computes the outputs of t/data/golden/drafts*: a model and its draft layer in
# float64, by the published formulas, in plain Python.  Layers without an indexer
# attend to all positions.
#
#     python3 t/golden/make_drafts.py MODEL_DIR TOKENS PROMPT OUT.safetensors
#
# The tokens are drawn, or those of a safetensors file TOKENS; the greedy answer
# begins after PROMPT of them.  t/golden/shorten makes golden.safetensors of it.

import glob
import json
import math
import random
import struct
import sys
from operator import mul

BLOCK = 128
STEPS = 3
ANSWER = 28


def e4m3(b):
    e, m = b >> 3 & 15, b & 7
    v = m / 8 * 2.0**-6 if e == 0 else (1 + m / 8) * 2.0 ** (e - 7)
    return -v if b & 128 else v


E4M3 = [e4m3(b) for b in range(256)]


def tensors(path):
    out = {}
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack_from("<Q", data)[0]
    for name, t in json.loads(data[8 : 8 + n]).items():
        if name == "__metadata__":
            continue
        at, end = (8 + n + x for x in t["data_offsets"])
        raw = data[at:end]
        if t["dtype"] in ("F32", "I32"):
            code = "f" if t["dtype"] == "F32" else "i"
            flat = struct.unpack(f"<{len(raw) // 4}{code}", raw)
        elif t["dtype"] == "BF16":
            up = b"".join(
                b"\0\0" + raw[i : i + 2] for i in range(0, len(raw), 2)
            )
            flat = struct.unpack(f"<{len(raw) // 2}f", up)
        else:
            flat = [E4M3[b] for b in raw]
        cols = t["shape"][1] if len(t["shape"]) == 2 else len(flat)
        out[name] = [
            list(flat[i : i + cols]) for i in range(0, len(flat), cols)
        ]
        if len(t["shape"]) == 1:
            out[name] = out[name][0]
    return out


def write(path, out):
    head, body = {}, b""
    for name, (dtype, rows) in sorted(out.items()):
        flat = [x for row in rows for x in row] if rows[0:1] and isinstance(
            rows[0], list) else rows
        shape = [len(rows), len(rows[0])] if isinstance(
            rows[0], list) else [len(rows)]
        raw = struct.pack(f"<{len(flat)}{'f' if dtype == 'F32' else 'i'}",
                          *flat)
        head[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def matvec(w, x):
    return [sum(map(mul, row, x)) for row in w]


def add(a, b):
    return [x + y for x, y in zip(a, b)]


def rms(x, w, eps):
    r = 1 / math.sqrt(sum(map(mul, x, x)) / len(x) + eps)
    return [v * r * g for v, g in zip(x, w)]


def layernorm(x, w, b, eps=1e-6):
    mean = sum(x) / len(x)
    r = 1 / math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + eps)
    return [(v - mean) * r * g + c for v, g, c in zip(x, w, b)]


def silu(x):
    return x / (1 + math.exp(-x))


class Model:
    def __init__(self, directory):
        with open(directory + "/config.json") as f:
            self.c = c = json.load(f)
        self.w = {}
        for path in sorted(glob.glob(directory + "/model-*.safetensors")):
            self.w |= tensors(path)
        for name in [n for n in self.w if n.endswith("_scale_inv")]:
            scale, w = self.w[name], self.w[name[: -len("_scale_inv")]]
            for i, row in enumerate(w):
                s = scale[i // BLOCK]
                w[i] = [v * s[j // BLOCK] for j, v in enumerate(row)]
        self.layers = c["num_hidden_layers"]
        self.rope = c["qk_rope_head_dim"]
        self.interleave = c.get("indexer_rope_interleave", False)
        self.share = c.get("index_share_for_mtp_iteration", False)
        self.indexed = "index_topk" in c
        self.types = c.get("indexer_types",
                           ["full" if self.indexed else "all"] * self.layers)
        self.frequencies()
        self.cache = [{} for _ in range(self.layers + 1)]

    def frequencies(self):
        c, n = self.c, self.rope
        scaling = c.get("rope_scaling")
        theta = c.get("rope_theta") or c["rope_parameters"]["rope_theta"]
        self.freq = [theta ** (-2 * i / n) for i in range(n // 2)]
        self.scale = (c["qk_nope_head_dim"] + n) ** -0.5
        if not scaling:
            return
        factor, most = scaling["factor"], scaling[
            "original_max_position_embeddings"]

        def at(turns):
            return n * math.log(most / (turns * 2 * math.pi)) / (
                2 * math.log(theta))

        low = max(math.floor(at(scaling["beta_fast"])), 0)
        high = min(math.ceil(at(scaling["beta_slow"])), n - 1)
        for i in range(n // 2):
            ramp = min(max((i - low) / max(high - low, 0.001), 0), 1)
            self.freq[i] *= ramp / factor + 1 - ramp
        m = 0.1 * scaling["mscale_all_dim"] * math.log(factor) + 1
        self.scale *= m * m

    def rotate(self, x, position, interleave):
        n, out = self.rope // 2, list(x)
        for i in range(n):
            a, b = (2 * i, 2 * i + 1) if interleave else (i, i + n)
            s, k = math.sin(position * self.freq[i]), math.cos(
                position * self.freq[i])
            out[a], out[b] = x[a] * k - x[b] * s, x[b] * k + x[a] * s
        return out

    def lin(self, name, x):
        return matvec(self.w[name + ".weight"], x)

    def mlp(self, p, x):
        g = [silu(a) * b for a, b in zip(self.lin(p + "gate_proj", x),
                                         self.lin(p + "up_proj", x))]
        return self.lin(p + "down_proj", g)

    def moe(self, p, x):
        c = self.c
        score = [1 / (1 + math.exp(-v)) for v in self.lin(p + "gate", x)]
        biased = add(score, self.w[p + "gate.e_score_correction_bias"])
        size = len(score) // c["n_group"]
        rank = lambda g: -sum(
            sorted(biased[g * size : (g + 1) * size])[-2:])
        groups = sorted(range(c["n_group"]), key=rank)[: c["topk_group"]]
        chosen = sorted(
            (e for e in range(len(score)) if e // size in groups),
            key=lambda e: -biased[e])[: c["num_experts_per_tok"]]
        total = sum(score[e] for e in chosen)
        y = self.mlp(p + "shared_experts.", x)
        for e in chosen:
            f = score[e] / total * c["routed_scaling_factor"]
            y = add(y, [f * v for v in self.mlp(f"{p}experts.{e}.", x)])
        return y, chosen

    def select(self, p, layer, x, qr, position):
        """Writes the index key, and returns the positions and the gap."""

        c, w = self.c, self.w
        heads, dim = c["index_n_heads"], c["index_head_dim"]
        q = self.lin(p + "wq_b", qr)
        q = [self.rotate(q[h * dim : (h + 1) * dim], position,
                         self.interleave) for h in range(heads)]
        k = layernorm(self.lin(p + "wk", x), w[p + "k_norm.weight"],
                      w[p + "k_norm.bias"])
        cache = self.cache[layer]
        cache["k", position] = self.rotate(k, position, self.interleave)
        weight = self.lin(p + "weights_proj", x)
        score = [sum(wh * max(sum(map(mul, qh, cache["k", s])), 0)
                     for wh, qh in zip(weight, q))
                 for s in range(position + 1)]
        order = sorted(range(position + 1), key=lambda s: (-score[s], s))
        n = c["index_topk"]
        gap = (score[order[n - 1]] - score[order[n]]) if position >= n else 0
        return sorted(order[:n]), gap / math.sqrt(heads * dim)

    def layer(self, layer, x, position, shared=None):
        c, w, p = self.c, self.w, f"model.layers.{layer}."
        eps, rope = c["rms_norm_eps"], self.rope
        nope, vdim = c["qk_nope_head_dim"], c["v_head_dim"]
        a = p + "self_attn."
        y = rms(x, w[p + "input_layernorm.weight"], eps)
        qr = rms(self.lin(a + "q_a_proj", y), w[a + "q_a_layernorm.weight"],
                 eps)
        q = self.lin(a + "q_b_proj", qr)
        kv = self.lin(a + "kv_a_proj_with_mqa", y)
        latent = rms(kv[:-rope], w[a + "kv_a_layernorm.weight"], eps)
        cache = self.cache[layer]
        cache["r", position] = self.rotate(kv[-rope:], position, True)
        cache["kv", position] = self.lin(a + "kv_b_proj", latent)
        picked, gap = shared, 0
        if not self.indexed:
            picked = range(position + 1)
        elif layer == self.layers or self.types[layer] == "full":
            own, gap = self.select(a + "indexer.", layer, y, qr, position)
            picked = own if picked is None else picked
        out = []
        for h in range(c["num_attention_heads"]):
            qh = q[h * (nope + rope) : (h + 1) * (nope + rope)]
            qn, qe = qh[:nope], self.rotate(qh[nope:], position, True)
            at = h * (nope + vdim)
            s = [self.scale * (sum(map(mul, qn, cache["kv", t][at:at + nope]))
                               + sum(map(mul, qe, cache["r", t])))
                 for t in picked]
            most = max(s)
            s = [math.exp(v - most) for v in s]
            total = sum(s)
            o = [0.0] * vdim
            for v, t in zip(s, picked):
                row = cache["kv", t][at + nope : at + nope + vdim]
                o = [b + v / total * g for b, g in zip(o, row)]
            out += o
        x = add(x, self.lin(a + "o_proj", out))
        y = rms(x, w[p + "post_attention_layernorm.weight"], eps)
        if p + "mlp.gate.weight" in w:
            y, experts = self.moe(p + "mlp.", y)
        else:
            y, experts = self.mlp(p + "mlp.", y), []
        return add(x, y), picked, gap, experts

    def run(self, token, position):
        """One token of the model: hidden, logits, selections."""

        x, topk, picked = self.w["model.embed_tokens.weight"][token], [], None
        for i in range(self.layers):
            keep = picked if self.types[i] == "shared" else None
            x, picked, _, _ = self.layer(i, x, position, keep)
            topk.append(picked)
        h = rms(x, self.w["model.norm.weight"], self.c["rms_norm_eps"])
        return h, self.lin("lm_head", h), topk

    def draft(self, token, h, position, shared=None):
        """One row of the draft layer."""

        w, eps, p = self.w, self.c["rms_norm_eps"], f"model.layers.{self.layers}."
        z = self.lin(p + "eh_proj",
                     rms(w["model.embed_tokens.weight"][token],
                         w[p + "enorm.weight"], eps)
                     + rms(h, w[p + "hnorm.weight"], eps))
        o, picked, gap, experts = self.layer(self.layers, z, position, shared)
        g = rms(o, w[p + "shared_head.norm.weight"], eps)
        return {"in": z, "out": o, "hidden": g, "topk": picked, "gap": gap,
                "expert": experts, "logits": self.lin("lm_head", g)}


def best(logits):
    return max(range(len(logits)), key=lambda i: logits[i])


def steps(m, row, tokens, h):
    """Drafts behind a row; tokens is None: free-running."""

    out, token, shared = [], tokens[0], None
    for k in range(STEPS):
        if k > 0:
            if len(tokens) > 1 and k >= len(tokens):
                break
            token = tokens[k] if len(tokens) > 1 else best(out[-1]["logits"])
        r = m.draft(token, h, row + k, shared)
        out.append(r)
        h = r["hidden"]
        shared = r["topk"] if m.share and shared is None else shared
    return out


def main():
    directory, source, prompt, path = sys.argv[1:]
    m, prompt = Model(directory), int(prompt)
    width, vocab = m.c.get("index_topk"), m.c["vocab_size"]
    if source.isdigit():
        draw = random.Random(20261124)
        tokens = [draw.randrange(4, vocab) for _ in range(int(source))]
    else:
        tokens = tensors(source)["tokens"]

    pad = lambda s: s + [-1] * (width - len(s))
    out = {"tokens": ("I32", tokens)}
    rows = [m.run(t, i) for i, t in enumerate(tokens)]
    hidden = [r[0] for r in rows]
    out["logits"] = ("F32", [r[1] for r in rows])
    for i in range(m.layers if m.indexed else 0):
        out[f"topk.{i}"] = ("I32", [pad(r[2][i]) for r in rows])

    forced = [[] for _ in range(STEPS)]
    free = [[] for _ in range(STEPS)]
    for i in range(len(tokens) - 1):
        last = min(len(tokens), i + 1 + STEPS)
        one = steps(m, i, [tokens[i + 1]], hidden[i])
        two = one[:1]
        if last - i > 2:
            two = steps(m, i, tokens[i + 1 : last], hidden[i])
        for k in range(STEPS):
            free[k].append(one[k])
            if k < len(two):
                forced[k].append(two[k])
        steps(m, i, [tokens[i + 1]], hidden[i])

    for k in range(STEPS):
        n, f = k + 1, forced[k]
        for name in ("in", "out", "hidden", "logits"):
            out[f"draft_{name}.{n}"] = ("F32", [r[name] for r in f])
        if m.indexed:
            out[f"draft_topk.{n}"] = ("I32", [pad(r["topk"]) for r in f])
            out[f"draft_gap.{n}"] = ("F32", [r["gap"] for r in f])
        if f[0]["expert"]:
            out[f"draft_expert.{n}"] = ("I32", [r["expert"] for r in f])
        out[f"free_tokens.{n}"] = ("I32", [best(r["logits"]) for r in free[k]])
        out[f"free_logits.{n}"] = ("F32", [r["logits"] for r in free[k]])

    answer(m, tokens[:prompt], out)
    write(path, out)


def answer(m, tokens, out):
    """Greedy rounds: drafts behind what is known, then what was right."""

    m.cache = [{} for _ in m.cache]
    rows = [m.run(t, i) for i, t in enumerate(tokens)]
    prompt = len(tokens)
    tokens = tokens + [best(rows[-1][1])]
    while len(tokens) < prompt + ANSWER:
        rows.append(m.run(tokens[-1], len(tokens) - 1))
        tokens.append(best(rows[-1][1]))

    anchors, drafts, accepted = [], [], []
    n = prompt + 1
    for i in range(n - 2):
        m.draft(tokens[i + 1], rows[i][0], i)
    while n + STEPS < len(tokens):
        free = steps(m, n - 2, [tokens[n - 1]], rows[n - 2][0])
        d = [best(r["logits"]) for r in free]
        a = 0
        while a < STEPS and d[a] == tokens[n + a]:
            a += 1
        anchors.append(n - 2)
        drafts.append(d)
        accepted.append(a)
        for i in range(n - 1, n + a):
            m.draft(tokens[i + 1], rows[i][0], i)
        n += a + 1
    out["greedy"] = ("I32", tokens[prompt:])
    out["greedy_prompt_len"] = ("I32", [prompt])
    out["round_anchor"] = ("I32", anchors)
    out["round_drafts"] = ("I32", drafts)
    out["round_accepted"] = ("I32", accepted)
    print("accepted", accepted)


main()
