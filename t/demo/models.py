# Copyright (C) The nginx-dsa authors

"""Small models of the training code for tests, and the distance of their
results.  Without PyTorch this module can be imported, but not used."""

import json
import os
import unittest

try:
    import numpy
    import torch
    from train.model import Model
except ImportError:
    numpy = torch = None


ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
CONFIG = os.path.join(ROOT, 'demo/train/config.json')

needs_torch = unittest.skipIf(torch is None, 'no torch here')


def config(**change):
    with open(CONFIG) as f:
        return {**json.load(f), **change}


def tiny(**change):
    """Returns a configuration so small that loops in Python can compute it."""

    return config(**{
        'first_k_dense_replace': 1, 'hidden_size': 16, 'index_head_dim': 8,
        'index_n_heads': 2, 'index_topk': 5, 'intermediate_size': 12,
        'kv_lora_rank': 8, 'max_position_embeddings': 64,
        'moe_intermediate_size': 6, 'num_attention_heads': 2,
        'num_hidden_layers': 2, 'num_nextn_predict_layers': 0,
        'q_lora_rank': 8, 'qk_nope_head_dim': 6,
        'qk_rope_head_dim': 4, 'v_head_dim': 5, 'vocab_size': 24, **change})


def lively(model):
    """Changes the parameters that start as 0 or 1, and scales the layers'
    outputs up, so that an error anywhere is seen in the logits."""

    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p += 0.1 * torch.randn_like(p)
            if name.endswith(('o_proj.weight', 'down_proj.weight')):
                p *= 2.5
            if name == 'lm_head.weight':
                p *= 4

        for name, b in model.named_buffers():
            if name.endswith('bias'):
                b += 2 + 0.05 * torch.randn_like(b)

    return model


def make(c, seed=1):
    torch.manual_seed(seed)
    return lively(Model(c))


def batch(c, B, T, seed=1):
    torch.manual_seed(seed)
    return (torch.randint(0, c['vocab_size'], (B, T)),
            torch.ones(B, T, dtype=torch.bool))


def distances(got, want):
    """Returns the norm of the difference over the norm, row by row, sorted."""

    got, want = got.double(), want.double()

    return ((got - want).norm(dim=-1)
            / want.norm(dim=-1)).flatten().sort().values


def quantile(d, q):
    return float(d[min(len(d) - 1, int(q * len(d)))])
