# Copyright (C) The nginx-dsa authors

"""Makes the directory of a model, as an engine loads it, from a checkpoint.

    python3 -m train.export CHECKPOINT DIR [--tokenizer FILE]

CHECKPOINT is one of train.train (checkpoint.py).  DIR gets config.json,
generation_config.json, the weights in two shards with an index, and FILE as
tokenizer.json.  Names and types are as published, with projections in FP8; the
draft layer has no copies of embedding and head.
"""

import argparse
import json
import os
import re
import shutil
import struct
import sys

import torch

from train import checkpoint, fp8


LIMIT = 18 * 1000 * 1000        # bytes of all files
SHARDS = 2
BF16 = ('embed_tokens.weight', 'lm_head.weight', 'mlp.gate.weight',
        'weights_proj.weight', 'eh_proj.weight')
SIZE = {'F32': 4, 'I32': 4, 'BF16': 2, 'F8_E4M3': 1}


def main():
    p = argparse.ArgumentParser(prog='train.export')
    p.add_argument('checkpoint')
    p.add_argument('dir')
    p.add_argument('--tokenizer')
    args = p.parse_args()

    saved = checkpoint.load(args.checkpoint)
    size = export(saved['config'], saved['model'], args.dir, args.tokenizer)

    print(f'{args.dir}: {size} bytes')


def export(config, state, path, tokenizer=None):
    """Writes all files and returns their total size in bytes."""

    os.makedirs(path, exist_ok=True)

    # config.json is written last: where it exists, the model is complete

    target = os.path.join(path, 'config.json')

    if os.path.exists(target):
        os.unlink(target)

    written = write_weights(config, state, path)

    # As published: answers have several wordings, so samples differ.  top_p
    # cuts what is improbable where one word is right.

    written.append(write_json(path, 'generation_config.json', {
        '_from_model_config': True,
        'bos_token_id': config['bos_token_id'],
        'eos_token_id': config['eos_token_id'],
        'do_sample': True,
        'temperature': 1.0,
        'top_p': 0.95,
    }))

    if tokenizer is not None:
        written.append(os.path.join(path, 'tokenizer.json'))
        shutil.copyfile(tokenizer, written[-1])

    written.append(write_json(path, 'config.json', config))
    size = sum(os.path.getsize(x) for x in written)

    if size > LIMIT:
        os.unlink(target)
        sys.exit(f'train.export: {size} bytes; the limit is {LIMIT}')

    return size


def write_json(path, name, value):
    path = os.path.join(path, name)

    with open(path, 'w') as f:
        json.dump(value, f, indent=2)
        f.write('\n')

    return path


def write_weights(config, state, path):
    """Writes the weights and returns the names of the files."""

    shards = [[] for _ in range(SHARDS)]

    for name, tensor in state.items():
        shard = shards[place(config, name)]
        for part, value in split(name, tensor):
            shard += stored(part, value)

    files, total, where = [], 0, {}

    for i, shard in enumerate(shards):
        name = f'model-{i + 1:05d}-of-{SHARDS:06d}.safetensors'
        files.append(os.path.join(path, name))
        total += write_safetensors(files[-1], shard)
        where.update((tensor[0], name) for tensor in shard)

    files.append(write_json(path, 'model.safetensors.index.json', {
        'metadata': {'total_size': total},
        'weight_map': dict(sorted(where.items())),
    }))

    return files


def place(config, name):
    """Returns the number of the shard.  Layers are in order, the embedding is
    before the first, the head and the draft layer are after the last."""

    layer = re.match(r'model\.layers\.(\d+)\.', name)

    if layer:
        return min(int(layer[1]) * SHARDS // config['num_hidden_layers'],
                   SHARDS - 1)

    return 0 if 'embed_tokens' in name else SHARDS - 1


def split(name, tensor):
    """Returns [(name, tensor)] of a tensor, or of a stack of experts."""

    if '.experts.' not in name:
        return [(name, tensor)]

    return [(name.replace('.experts.', f'.experts.{e}.'), one)
            for e, one in enumerate(tensor)]


def stored(name, tensor):
    """Returns [(name, type, shape, bytes)] of the tensors that are stored for
    a tensor."""

    if tensor.dim() == 1:
        return [(name, 'F32', tensor.shape, raw(tensor.float()))]

    if name.endswith(BF16):
        codes = tensor.bfloat16().view(torch.int16)
        return [(name, 'BF16', tensor.shape, raw(codes))]

    values, scale = fp8.weight_blocks(tensor)

    return [(name, 'F8_E4M3', tensor.shape, raw(fp8.e4m3_code(values))),
            (name + '_scale_inv', 'F32', scale.shape, raw(scale))]


def raw(tensor):
    """Returns its bytes, which are little-endian like the machines for
    training."""

    return tensor.contiguous().cpu().numpy().tobytes()


def write_safetensors(path, tensors):
    """Writes a file in the safetensors format: a length, a JSON object and
    bytes.  Debian 12 has no package of the library.  Floats come before
    halves before bytes, so that each is aligned.  Returns the bytes of the
    tensors."""

    header, at = {'__metadata__': {'format': 'pt'}}, 0
    tensors = sorted(tensors, key=lambda t: (-SIZE[t[1]], t[0]))

    for name, kind, shape, data in tensors:
        header[name] = {'dtype': kind, 'shape': list(shape),
                        'data_offsets': [at, at + len(data)]}
        at += len(data)

    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)

    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text)
        for tensor in tensors:
            f.write(tensor[3])

    return at


if __name__ == '__main__':
    main()
